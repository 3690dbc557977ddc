"""One job at a time, one task at a time, by a rule that looks at the task at hand and takes back no choice."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from placement.heuristics.domains import Domains
from placement.heuristics.gangs import Gang, Placed, Spot
from placement.heuristics.nodes import Nodes
from placement.heuristics.rule import Rule
from placement.heuristics.ties import TiedGang
from placement.index import spread
from placement.instance import Assignment, Bools, Instance, Ints, JobClass
from placement.solver import Limits, Progress, Report, Result, Stop, silent

HANDOVER = 2e-6
"""Seconds kept back for each placed task, to put the assignment together before the deadline."""


Order = Callable[[Instance, tuple[str, ...]], Ints]
"""Returns the pending jobs in the order in which to take them, given the objectives."""


class _OutOfTimeError(Exception):
    pass


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
        run = _Run(instance, self._rule, limits, seed)
        stop = Stop.COMPLETE
        rows: list[tuple[int, int, int, int, tuple[int, ...]]] = []
        resumed = run.resume(start) if start is not None else {}
        for job in self._order(instance, objectives).tolist():
            kept = resumed.get(job, [])
            tasks = kept
            if stop is Stop.COMPLETE:
                try:
                    tasks = run.serve(int(instance.job_class[job]), kept)
                except _OutOfTimeError:
                    stop = Stop.TIME
            rows += [(job, leaf, number, node, cards) for leaf, number, (node, cards) in tasks]
        assignment = Assignment.of(rows)
        report(Progress(self.name, assignment))
        return Result(assignment, stop, seconds={"place": time.monotonic() - began})


def _file_order(instance: Instance) -> Ints:
    """Return the nodes as the snapshot lists them, copies of counted ones spread evenly, MIG cards as their hosts."""
    hosts = instance.hosts
    position = spread(instance.node_spec[:hosts], instance.node_copy[:hosts])
    return np.lexsort((np.arange(instance.nodes), position[instance.hosts_of(np.arange(instance.nodes))]))


class _Run:
    """One run: the nodes, the rule, and what it knows of both."""

    def __init__(self, instance: Instance, rule: type[Rule], limits: Limits, seed: int) -> None:
        rng = np.random.default_rng(seed)
        order = rng.permutation(instance.nodes) if seed else _file_order(instance)
        self._instance = instance
        self._nodes = Nodes(instance, order.astype(np.int64), rule.first_marks(instance))
        self._rule = rule(self._nodes, rng)
        self._finder = self._rule.finder()
        self._marks = [self._rule.marks(shape) for shape in range(len(instance.shapes))]
        self._tied = [rule.domains.descends or job_class.tied for job_class in instance.job_classes]
        self._single = [
            None if tied else _single_shape(job_class)
            for tied, job_class in zip(self._tied, instance.job_classes, strict=True)
        ]
        self._domains = Domains(self._nodes) if any(self._tied) else None
        self._deadline = limits.deadline
        self._placed = 0
        self._refused_at: dict[int, int] = {}
        self._fits_nowhere: set[int] = set()

    def resume(self, start: Assignment) -> dict[int, list[Placed]]:
        """Place the tasks of an assignment and return them by job."""
        found: dict[int, list[Placed]] = {}
        row_of = {self._nodes.node(row): row for row in range(self._nodes.count)}
        columns = zip(start.job.tolist(), start.leaf.tolist(), start.task.tolist(), start.node.tolist(), strict=True)
        for row, (job, leaf, number, node) in enumerate(columns):
            cards = tuple(start.cards[start.offset[row] : start.offset[row + 1]].tolist())
            shape = self._instance.job_classes[self._instance.job_class[job]].leaves[leaf].shape
            self._nodes.place(shape, row_of[node], cards, self._marks[shape])
            found.setdefault(job, []).append((leaf, number, (node, cards)))
        self._commit()
        return found

    def serve(self, number: int, kept: list[Placed]) -> list[Placed]:
        """Place what fits of a job of some class around what it has already; return all its tasks."""
        shape = self._single[number]
        if shape is not None and not kept:
            return self._serve_single(shape)
        if not kept and self._refused_at.get(number) == self._placed:
            return kept  # nothing has changed since the same was refused
        if self._tied[number] and kept:
            return kept  # it is not known in which domains it might grow
        gang = self._gang(number)
        gang.resume(kept)
        try:
            if kept or gang.start():
                gang.grow()
            else:
                self._refused_at[number] = self._placed
        except _OutOfTimeError:
            self.undo(0)
            raise
        self._placed += len(gang) - len(kept)
        self._commit()
        return list(gang.tasks())

    def _gang(self, number: int) -> Gang:
        job_class = self._instance.job_classes[number]
        if self._domains is None or not self._tied[number]:
            return Gang(job_class, self)
        return TiedGang(job_class, self, self._domains, self._rule.domain_order())

    def _serve_single(self, shape: int) -> list[Placed]:
        """Place a job of one task, which most are, without the ado of a gang."""
        spot = self.place(shape)
        if spot is None:
            return []
        self._placed += 1
        self._commit()
        return [(0, 0, spot)]

    def place(self, shape: int, within: Bools | None = None) -> Spot | None:
        """Place one task by the rule; see `placement.heuristics.gangs.Places`."""
        if shape in self._fits_nowhere:
            return None
        if time.monotonic() > self._deadline - HANDOVER * self._placed:
            raise _OutOfTimeError
        open_rows = self._nodes.within_limits(shape)
        if within is not None:
            open_rows = within if open_rows is None else open_rows & within
        row = self._finder.find(shape, open_rows)
        if row < 0:
            if within is None and not self._nodes.mark():  # nothing will be taken back, and what is free only shrinks
                self._fits_nowhere.add(shape)
            return None
        cards = self._rule.cards(shape, row)
        changed = self._nodes.place(shape, row, cards, self._marks[shape])
        if self._domains is not None:
            self._domains.touch(changed)
        return self._nodes.node(row), cards

    def mark(self) -> int:
        """Return the present point in time."""
        return self._nodes.mark()

    def undo(self, mark: int) -> None:
        """Take back everything placed since a point in time."""
        undone = self._nodes.undo(mark)
        if len(undone):
            self._finder.undone(undone)
            if self._domains is not None:
                self._domains.touch(undone.tolist())

    def _commit(self) -> None:
        self._nodes.commit()
        self._finder.commit()


def _single_shape(job_class: JobClass) -> int | None:
    """Return the shape of the one task of a job, or None if it may have more."""
    if len(job_class.leaves) != 1 or job_class.leaves[0].count * job_class.leaves[0].copies != 1:
        return None
    return job_class.leaves[0].shape
