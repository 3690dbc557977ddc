"""One job at a time, one task at a time, by a rule that looks at the task at hand and takes back no choice."""

from __future__ import annotations

import time
from collections.abc import Callable

from placement.heuristics.filling import Filling, OutOfTimeError
from placement.heuristics.rule import Rule
from placement.instance import Assignment, Instance, Ints
from placement.solver import Limits, Progress, Report, Result, Stop, silent

Order = Callable[[Instance, tuple[str, ...]], Ints]
"""Returns the pending jobs in the order in which to take them, given the objectives."""


def by_arrival(instance: Instance, objectives: tuple[str, ...]) -> Ints:
    """Return the pending jobs in order of arrival."""
    return instance.arrival


class Greedy:
    """A solver that takes the pending jobs in order, of arrival if not told otherwise, and starts each one that fits.

    Each task goes to the node that the rule scores highest; among equals to the node first in a fixed order: that of
    the snapshot for seed 0 (copies of counted nodes spread evenly over it), a random permutation drawn from the seed
    otherwise. The order decides as much as the rule does, which is why it is part of the answer: with ties broken at
    random on every choice, FGD leaves twice as much idle on the openb trace as with any fixed order. A job that does
    not reach its minimum leaves nothing behind.

    Parameters
    ----------
    rule : type
    order : callable
    suffix : str
        What the order adds to the name of the rule.
    """

    def __init__(self, rule: type[Rule], order: Order = by_arrival, suffix: str = "") -> None:
        self._rule, self._order, self._suffix = rule, order, suffix

    @property
    def name(self) -> str:
        """Name of the rule, and of the order if it is not that of arrival."""
        return self._rule.name + self._suffix

    def supports(self, instance: Instance) -> str | None:
        """Return None: a greedy rule takes every instance."""
        return None

    def solve(
        self,
        instance: Instance,
        *,
        objectives: tuple[str, ...],
        limits: Limits,
        seed: int = 0,
        start: Assignment | None = None,
        report: Report = silent,
    ) -> Result:
        """Return the assignment of a greedy run; see `placement.solver.Solver.solve`.

        The rule has its own aim and ignores `objectives`; the order may follow them. Tasks of `start` are kept and the
        rest is placed around them.
        """
        began = time.monotonic()
        if not instance.nodes:
            return Result(Assignment.empty(), Stop.COMPLETE, seconds={"place": 0.0})
        run = Filling(instance, self._rule, limits.deadline, seed)
        stop = Stop.COMPLETE
        rows: list[tuple[int, int, int, int, tuple[int, ...]]] = []
        resumed = run.resume(start) if start is not None else {}
        for job in self._order(instance, objectives).tolist():
            kept = resumed.get(job, [])
            tasks = kept
            if stop is Stop.COMPLETE:
                try:
                    tasks = run.serve(int(instance.job_class[job]), kept)
                except OutOfTimeError:
                    stop = Stop.TIME
            rows += [(job, leaf, number, node, cards) for leaf, number, (node, cards) in tasks]
        assignment = Assignment.of(rows)
        report(Progress(self.name, assignment))
        return Result(assignment, stop, seconds={"place": time.monotonic() - began})
