"""One job at a time, one task at a time, by a rule that looks at the task at hand and takes back no choice."""

from __future__ import annotations

import time

import numpy as np

from placement.heuristics.gangs import Gang, Placed, Spot
from placement.heuristics.pool import Pool
from placement.heuristics.rule import Rule
from placement.index import spread
from placement.instance import Assignment, Instance, Ints
from placement.solver import Limits, Progress, Report, Result, Stop, silent

NO_ROOM = np.iinfo(np.int64).min

HANDOVER = 2e-6
"""Seconds kept back for each placed task, to put the assignment together before the deadline."""


class _OutOfTimeError(Exception):
    pass


class Greedy:
    """A solver that takes the pending jobs in order of arrival and starts each one that fits.

    Each task goes to the node that the rule scores highest; among equals to the node first in a fixed order: that of
    the snapshot for seed 0 (copies of counted nodes spread evenly over it), a random permutation drawn from the seed
    otherwise. The order decides as much as the rule does, which is why it is part of the answer: with ties broken at
    random on every choice, FGD leaves twice as much idle on the openb trace as with any fixed order. A job that does
    not reach its minimum leaves nothing behind.
    """

    def __init__(self, rule: type[Rule]) -> None:
        self._rule = rule

    @property
    def name(self) -> str:
        """Name of the rule."""
        return self._rule.name

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

        The rule has its own aim and ignores `objectives`. Tasks of `start` are kept and the rest is placed around them.
        """
        began = time.monotonic()
        if not instance.nodes:
            return Result(Assignment.empty(), Stop.COMPLETE, seconds={"place": 0.0})
        run = _Run(instance, self._rule, limits, seed)
        stop = Stop.COMPLETE
        rows: list[tuple[int, int, int, int, tuple[int, ...]]] = []
        resumed = run.resume(start) if start is not None else {}
        for job in instance.arrival.tolist():
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
    """Return the nodes as the snapshot lists them, copies of counted ones spread evenly."""
    return np.lexsort((np.arange(instance.nodes), spread(instance.node_spec, instance.node_copy)))


class _Run:
    """One run: the pool, the rule, and what the rule thought of each kind of node for each shape."""

    def __init__(self, instance: Instance, rule: type[Rule], limits: Limits, seed: int) -> None:
        rng = np.random.default_rng(seed)
        order = rng.permutation(instance.nodes) if seed else _file_order(instance)
        self._instance = instance
        self._pool = Pool(instance, order.astype(np.int64), rule.first_marks(instance))
        self._rule = rule(self._pool, rng)
        self._limits = limits
        self._known: dict[int, tuple[Ints, Ints]] = {}
        self._cards: dict[tuple[int, int], tuple[int, tuple[int, ...]]] = {}
        self._placed = 0
        self._refused_at: dict[int, int] = {}

    def resume(self, start: Assignment) -> dict[int, list[Placed]]:
        """Place the tasks of an assignment and return them by job."""
        found: dict[int, list[Placed]] = {}
        columns = zip(start.job.tolist(), start.leaf.tolist(), start.task.tolist(), start.node.tolist(), strict=True)
        for row, (job, leaf, number, node) in enumerate(columns):
            cards = tuple(start.cards[start.offset[row] : start.offset[row + 1]].tolist())
            shape = self._instance.job_classes[self._instance.job_class[job]].leaves[leaf].shape
            self._pool.place(shape, node, cards, self._rule.marks(shape))
            found.setdefault(job, []).append((leaf, number, (node, cards)))
        self._pool.commit()
        return found

    def serve(self, number: int, kept: list[Placed]) -> list[Placed]:
        """Place what fits of a job of some class around what it has already; return all its tasks."""
        if not kept and self._refused_at.get(number) == self._placed:
            return kept  # nothing has changed since the same was refused
        gang = Gang(self._instance.job_classes[number], self)
        gang.resume(kept)
        try:
            if kept or gang.start():
                gang.grow()
            else:
                self._refused_at[number] = self._placed
        except _OutOfTimeError:
            self._pool.undo(0)
            raise
        self._placed += len(gang) - len(kept)
        self._pool.commit()
        return list(gang.tasks())

    def place(self, shape: int) -> Spot | None:
        """Place one task by the rule; see `placement.heuristics.gangs.Places`."""
        if time.monotonic() > self._limits.deadline - HANDOVER * self._placed:
            raise _OutOfTimeError
        score = self._scores(shape)
        live = self._pool.size > 0
        within = self._pool.within_limits(shape)
        candidates = np.flatnonzero(live & (score != NO_ROOM) if within is None else live & (score != NO_ROOM) & within)
        if not len(candidates):
            return None
        node = self._rule.choose(candidates, score[candidates])
        cards = self._cards_of(shape, node)
        self._pool.place(shape, node, cards, self._rule.marks(shape))
        return node, cards

    def mark(self) -> int:
        """Return the present point in time."""
        return self._pool.mark()

    def undo(self, mark: int) -> None:
        """Take back everything placed since a point in time."""
        self._pool.undo(mark)

    def _cards_of(self, shape: int, node: int) -> tuple[int, ...]:
        """Return the rule's cards, asked for once for each kind of node."""
        if self._rule.draws_cards:
            return self._rule.cards(shape, node)
        slot = int(self._pool.slot_of[node])
        version = int(self._pool.version[slot])
        known = self._cards.get((shape, slot))
        if known is None or known[0] != version:
            known = self._cards[shape, slot] = (version, self._rule.cards(shape, node))
        return known[1]

    def _scores(self, shape: int) -> Ints:
        """Return the score of every slot that has nodes, `NO_ROOM` where the task does not fit."""
        pool = self._pool
        score, seen = self._known.get(shape, (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)))
        if len(score) < pool.capacity:
            new = pool.capacity - len(score)
            score = np.concatenate([score, np.full(new, NO_ROOM)])
            seen = np.concatenate([seen, np.zeros(new, dtype=np.int64)])
            self._known[shape] = (score, seen)
        stale = np.flatnonzero((pool.size > 0) & (seen != pool.version))
        if len(stale):
            seen[stale] = pool.version[stale]
            score[stale] = NO_ROOM
            fits = stale[pool.state.fits(shape, stale)]
            if len(fits):
                score[fits] = self._rule.scores(shape, fits)
        return score
