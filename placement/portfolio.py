"""Several methods on one instance: a greedy rule at once, the exact method in its process, more rules beside it."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace

from placement.evaluate import demand
from placement.instance import Assignment
from placement.run import Run
from placement.solver import Limits, Result, Solver, Stop

FIRST_SHARE = 0.25
"""Share of the time after which the first greedy rule gives up, so that the exact method has most of it."""
SMALL = 2_000
"""Nodes and wanted tasks up to which greedy rules take too little to matter."""
LARGE = 150_000
"""Nodes and wanted tasks from which on the exact method does not wait for a greedy rule's answer to start from."""
LEAST = 0.02
"""Seconds that the first greedy rule has in any case: on a small cluster it ends within them, and with none it would
start nothing at all, where compiling alone took the time."""
LEAST_FOR_EXACT = 0.1
"""Seconds that must be left for the exact method to be tried: a solver needs some hundredths just to be handed over."""
LEAVE = 0.5
"""Seconds for which greedy rules may go on when the exact method has reached the gap that was asked for."""


@dataclass(frozen=True)
class Cancellable(Limits):
    """Limits whose time is also up when somebody says so."""

    cancelled: threading.Event = field(default_factory=threading.Event)

    @property
    def left(self) -> float:
        """Seconds until the deadline, at least 0."""
        return 0.0 if self.cancelled.is_set() else max(0.0, self.deadline - time.monotonic())


def alone(run: Run, solver: Solver) -> None:
    """Try one greedy rule."""
    run.tell(solver.name)
    run.add(solver.name, _solve(run, solver, None, _at_least(run.limits)))


def together(run: Run, exact: Solver, rules: Mapping[str, Solver], all_rules: bool) -> None:
    """Try greedy rules and an exact method that starts from the first of them.

    The exact method works in another process, so the rules that remain run beside it; on a large instance all do. Where
    a gap is good enough they come after it, if it does not reach that.

    Parameters
    ----------
    run : Run
        Filled with candidates and bounds.
    exact : Solver
    rules : mapping of str to Solver
        Greedy rules by name, the one to start from first.
    all_rules : bool
        Whether to try all of them.
    """
    usable = [rule for rule in rules.values() if rule.supports(run.instance) is None]
    things = run.instance.nodes + int(demand(run.instance).sum())
    start: Assignment | None = None
    unfinished: Assignment | None = None
    if things > LARGE:
        # a large answer takes long to make and to hand over, and the exact method is soon past it
        others = usable if all_rules else usable[:1]
    else:
        run.tell(usable[0].name)
        begun = _solve(run, usable[0], None, _early(run.limits))
        run.add(usable[0].name, begun)
        start = begun.assignment
        others = usable[1:] if all_rules else []
        if all_rules and begun.stop is Stop.TIME:
            # what was cut short goes on with all of the time
            others, unfinished = usable, start
    # whoever is content with a gap wants it soon, and what runs beside the exact method slows it down
    beside = len(others) if not run.limits.gap or things <= SMALL else int(things > LARGE)
    found = _beside(run, exact, start, others[:beside], unfinished)
    if found is None or found.stop not in (Stop.OPTIMAL, Stop.GAP):
        limits = Cancellable(run.limits.deadline, run.limits.gap, run.limits.nodes)
        _greedy(run, others[beside:], limits, None if beside else unfinished)


def _beside(
    run: Run, exact: Solver, start: Assignment | None, rules: Sequence[Solver], unfinished: Assignment | None
) -> Result | None:
    """Try an exact method, and greedy rules beside it; return the exact method's result."""
    limits = Cancellable(run.limits.deadline, run.limits.gap, run.limits.nodes)
    kept = len(run.candidates), len(run.notes)
    with ThreadPoolExecutor(max_workers=1) as pool:
        others = pool.submit(_greedy, run, rules, limits, unfinished)
        try:
            # in this thread, so that an interrupt reaches it and ends the solver's process
            found = _exactly(run, exact, start)
            if found is not None and found.stop in (Stop.OPTIMAL, Stop.GAP):
                wait([others], timeout=LEAVE)
                limits.cancelled.set()
        except BaseException:
            limits.cancelled.set()
            raise
        others.result()
    if found is not None:
        if found.stop in (Stop.OPTIMAL, Stop.GAP):
            # which of the others came in time is chance, and the same call must give the same plan
            run.beside += run.candidates[kept[0] :]
            del run.candidates[kept[0] :], run.notes[kept[1] :]
        run.add(exact.name, found)
    return found


def _exactly(run: Run, exact: Solver, start: Assignment | None) -> Result | None:
    if run.limits.left < LEAST_FOR_EXACT:
        run.cut = True
        run.notes.append(f"{exact.name}: not tried, too little time was left")
        return None
    return _solve(run, exact, start, run.limits)


def _early(limits: Limits) -> Limits:
    """Return limits that end after the first greedy rule's share of the time."""
    if limits.deadline == math.inf:
        return limits
    return _at_least(replace(limits, deadline=limits.deadline - (1 - FIRST_SHARE) * limits.left))


def _at_least(limits: Limits) -> Limits:
    """Return limits that leave a greedy rule time for some jobs."""
    return replace(limits, deadline=max(limits.deadline, time.monotonic() + LEAST))


def _greedy(run: Run, rules: Sequence[Solver], limits: Cancellable, unfinished: Assignment | None) -> None:
    """Try greedy rules one after the other; the first goes on from what it has, if it was cut short."""
    for rule in rules:
        # one answer there has to be
        if limits.left <= 0 and run.candidates:
            if not limits.cancelled.is_set():
                run.cut = True
                run.notes.append(f"{rule.name}: not tried, the time was up")
            return
        run.tell(rule.name)
        run.add(rule.name, _solve(run, rule, unfinished, limits))
        unfinished = None


def _solve(run: Run, solver: Solver, start: Assignment | None, limits: Limits) -> Result:
    began = time.monotonic()
    result = solver.solve(
        run.instance,
        objectives=run.objectives,
        limits=limits,
        seed=run.seed,
        start=start,
        report=lambda progress: run.hear(solver.name, progress),
    )
    run.seconds[solver.name] = time.monotonic() - began
    return result
