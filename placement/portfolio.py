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

FIRST_SHARE, FIRST_SECONDS = 0.5, 0.6
"""Share of the time, and seconds, within which greedy rules are started before the exact method."""
SMALL = 2_000
"""Nodes and wanted tasks up to which greedy rules take too little to matter."""
LARGE = 150_000
"""Nodes and wanted tasks from which on the exact method does not wait for a greedy rule's answer to start from."""
LARGE_INSTANCES = 20_000
"""The same where all of them ask for MIG instances and a gap is good enough: there the exact method mostly takes no
longer than one greedy rule. Below it a greedy rule ends before a new solver process has loaded its libraries."""
LEAST = 0.02
"""Seconds that the first greedy rule has in any case: on a small cluster it ends within them, and with none it would
start nothing at all, where compiling alone took the time."""
LEAST_FOR_EXACT, LEAST_EACH, LEAST_EACH_INSTANCE = 0.1, 3e-5, 1.5e-5
"""Seconds that must be left for the exact method to be tried, at least and for each node and wanted task, fewer where
all of these ask for MIG instances: within them it has no bound yet, let alone an answer, and greedy rules end sooner
without a neighbour."""
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


def around(run: Run, solver: Solver, name: str, start: Assignment) -> None:
    """Add what a greedy rule makes around an answer, under a name."""
    run.tell(name)
    run.add(name, _solve(run, solver, start, _at_least(run.limits)))


def together(run: Run, exact: Solver, rules: Mapping[str, Solver], all_rules: bool, ready: bool = True) -> None:
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
    ready : bool
        Whether a solver process is there, or there is time to start one.
    """
    usable = [rule for rule in rules.values() if rule.supports(run.instance) is None]
    others = list(usable if all_rules else usable[:1])
    things = _things(run)
    soon = bool(run.limits.gap) and things > SMALL
    start = run.ranked()[0][2].assignment if run.candidates else None
    # a large answer takes long to make and to hand over, and the exact method is soon past it
    at_once = things > LARGE or (soon and things > LARGE_INSTANCES and run.instance.only_instances)
    if not at_once:
        start = _first(run, others, once=soon)
        if run.good_enough():
            return
    if ready:
        # whoever is content with a gap wants it soon, and what runs beside the exact method slows it down
        beside = int(at_once) if soon else len(others)
        if _beside(run, exact, start, others[:beside]):
            return
        del others[:beside]
    else:
        _not_tried(run, exact, "no solver process was ready in so short a time")
    _greedy(run, others, Cancellable(run.limits.deadline))


def _things(run: Run) -> int:
    """Return the nodes and wanted tasks, by which everything takes its time."""
    return run.instance.nodes + int(demand(run.instance).sum())


def _first(run: Run, others: list[Solver], once: bool) -> Assignment:
    """Run greedy rules with nothing beside them, one at least, and return the best answer; `others` keeps the rest.

    What would end in time by itself must not be late because of what else is tried, so further rules follow while
    little of the time is gone.
    """
    until = time.monotonic() + min(FIRST_SECONDS, FIRST_SHARE * run.limits.left)
    while True:
        rule = others.pop(0)
        run.tell(rule.name)
        run.add(rule.name, _solve(run, rule, None, _at_least(run.limits)))
        endless = run.limits.deadline == math.inf
        if once or endless or not others or time.monotonic() > until:
            return run.ranked()[0][2].assignment


def _beside(run: Run, exact: Solver, start: Assignment | None, rules: Sequence[Solver]) -> bool:
    """Try an exact method, and greedy rules beside it; return whether nothing remains to be tried."""
    limits = Cancellable(run.limits.deadline)
    kept = len(run.candidates), len(run.notes)
    with ThreadPoolExecutor(max_workers=1) as pool:
        others = pool.submit(_greedy, run, rules, limits)
        try:
            # in this thread, so that an interrupt reaches it and ends the solver's process
            found = _exactly(run, exact, start)
            over = found is not None and found.stop in (Stop.OPTIMAL, Stop.GAP)
            if over:
                wait([others], timeout=LEAVE)
                limits.cancelled.set()
        except BaseException:
            limits.cancelled.set()
            raise
        others.result()
    if over:
        # which of the others came in time is chance, and the same call must give the same plan
        run.beside += run.candidates[kept[0] :]
        del run.candidates[kept[0] :], run.notes[kept[1] :]
    if found is not None:
        run.add(exact.name, found)
    return over


def _exactly(run: Run, exact: Solver, start: Assignment | None) -> Result | None:
    each = LEAST_EACH_INSTANCE if run.instance.only_instances else LEAST_EACH
    if run.limits.left < max(LEAST_FOR_EXACT, each * _things(run)):
        _not_tried(run, exact, "too little time was left")
        return None
    return _solve(run, exact, start, run.limits)


def _not_tried(run: Run, method: Solver, reason: str) -> None:
    """Note that the clock kept a method from being tried."""
    run.cut = True
    run.notes.append(f"{method.name}: not tried, {reason}")


def _at_least(limits: Limits) -> Limits:
    """Return limits that leave a greedy rule time for some jobs."""
    return replace(limits, deadline=max(limits.deadline, time.monotonic() + LEAST))


def _greedy(run: Run, rules: Sequence[Solver], limits: Cancellable) -> None:
    """Try greedy rules one after the other."""
    for rule in rules:
        # one answer there has to be
        if limits.left <= 0 and run.candidates:
            if not limits.cancelled.is_set():
                _not_tried(run, rule, "the time was up")
            return
        run.tell(rule.name)
        run.add(rule.name, _solve(run, rule, None, limits))


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
    run.seconds[solver.name] = run.seconds.get(solver.name, 0.0) + time.monotonic() - began
    return result
