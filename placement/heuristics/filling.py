"""Filling a cluster by a greedy rule: jobs are placed, whole or not at all, and may be taken away again."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from placement.gang import Branch, Leaf, at_most
from placement.heuristics.allowance import Allowance
from placement.heuristics.domains import Domains
from placement.heuristics.gangs import Gang, Placed, Spot
from placement.heuristics.group_orders import other_orders
from placement.heuristics.load import Load, load
from placement.heuristics.nodes import Nodes
from placement.heuristics.rule import Rule
from placement.heuristics.ties import TiedGang
from placement.index import spread
from placement.instance import ANY, Affinity, Assignment, Bools, Instance, Ints, JobClass

HANDOVER = 2e-6
"""Seconds kept back for each placed task, to put the assignment together before the deadline."""


class OutOfTimeError(Exception):
    """The deadline has passed."""


class Filling:
    """The nodes of a cluster, a rule that fills them, and what it knows of both.

    Parameters
    ----------
    instance : Instance
    rule : type
    deadline : float
        On the clock of `time.monotonic`.
    seed : int
    reorder : bool
        Whether groups of a gang that does not fit in the order of the file are placed in other orders.
    """

    def __init__(self, instance: Instance, rule: type[Rule], deadline: float, seed: int, reorder: bool = False) -> None:
        rng = np.random.default_rng(seed)
        order = rng.permutation(instance.nodes) if seed else _file_order(instance)
        self._instance = instance
        self._nodes = Nodes(instance, order.astype(np.int64), rule.first_marks(instance), rule.marks_add)
        self._rule = rule(self._nodes, rng)
        self._finder = self._rule.finder()
        self._marks = [self._rule.marks(shape) for shape in range(len(instance.shapes))]
        self._tied = [rule.domains.descends or job_class.tied for job_class in instance.job_classes]
        self._single = [
            None if tied else _single_shape(job_class)
            for tied, job_class in zip(self._tied, instance.job_classes, strict=True)
        ]
        self._alike = [
            not tied and _is_alike(instance, job_class)
            for tied, job_class in zip(self._tied, instance.job_classes, strict=True)
        ]
        self._domains = Domains(self._nodes) if any(self._tied) else None
        self._reordered = [other_orders(instance, one) if reorder else () for one in instance.job_classes]
        self._fewer: dict[tuple[int, Branch, tuple[int, ...]], JobClass] = {}
        self._deadline = deadline
        self._row_of = {self._nodes.node(row): row for row in range(self._nodes.count)}
        self._placed = 0
        self._open: Bools | None = None
        self._allowance: Allowance | None = None
        self._gangs: dict[tuple[Branch, tuple[Affinity, ...]], int] = {}
        self._kind = [self._kind_of(job_class) for job_class in instance.job_classes]
        self._refused_at: dict[int, int] = {}
        self._fits_nowhere: set[int] = set()

    def resume(self, start: Assignment) -> dict[int, list[Placed]]:
        """Place the tasks of an assignment and return them by job."""
        found: dict[int, list[Placed]] = {}
        columns = zip(start.job.tolist(), start.leaf.tolist(), start.task.tolist(), start.node.tolist(), strict=True)
        for row, (job, leaf, number, node) in enumerate(columns):
            cards = tuple(start.cards[start.offset[row] : start.offset[row + 1]].tolist())
            shape = self._instance.job_classes[self._instance.job_class[job]].leaves[leaf].shape
            self._nodes.place(shape, self._row_of[node], cards, self._marks[shape])
            found.setdefault(job, []).append((leaf, number, (node, cards)))
        self._commit()
        return found

    def kind(self, number: int) -> int:
        """Return a number that is the same for all classes of jobs that are placed in the same way."""
        return self._kind[number]

    def _kind_of(self, job_class: JobClass) -> int:
        return self._gangs.setdefault((job_class.root, job_class.affinity), len(self._gangs))

    def serve(self, number: int, kept: list[Placed], most: tuple[int, ...] = ()) -> list[Placed]:
        """Place what fits of a job of some class around what it has already; return all its tasks.

        Parameters
        ----------
        number : int
        kept : list of Placed
        most : tuple of int
            Most tasks of each leaf, no fewer than it needs; all that it wants where there are none. Of flat gangs.
        """
        shape = self._single[number]
        if shape is not None and not kept:
            return self._serve_single(shape)
        refused = self._refused_at.get(self._kind[number])
        if not kept and refused is not None and (self._alike[number] or refused == self._placed):
            return kept  # nothing was given back since the same was refused, or nothing has changed at all
        if self._tied[number] and kept:
            return kept  # it is not known in which domains it might grow
        gang = self._gang(number, self._at_most(number, self._instance.job_classes[number], most))
        gang.resume(kept)
        try:
            if kept or gang.start():
                gang.grow()
            else:
                gang = self._in_other_orders(number, most) or gang
            if not len(gang) and self._allowance is None:
                self._refused_at[self._kind[number]] = self._placed
        except OutOfTimeError:
            self.undo(0)
            raise
        self._placed += len(gang) - len(kept)
        self._commit()
        return list(gang.tasks())

    def refuses_for_long(self, number: int) -> bool:
        """Return whether a job of some class that was refused is refused until something is given back."""
        return self._single[number] is not None or self._alike[number]

    def _at_most(self, number: int, job_class: JobClass, most: tuple[int, ...]) -> JobClass:
        """Return a job class, or one of its other orders, with so many tasks of each leaf at most."""
        if not most:
            return job_class
        key = number, job_class.root, most
        if key not in self._fewer:
            leaves = tuple(replace(leaf, count=most[leaf.leaf]) for leaf in job_class.leaves)
            self._fewer[key] = replace(job_class, root=at_most(job_class.root, most), leaves=leaves)
        return self._fewer[key]

    def _in_other_orders(self, number: int, most: tuple[int, ...] = ()) -> Gang | None:
        """Return a gang that was placed in the first order of its groups in which it fits; None if it fits in none."""
        for job_class in self._reordered[number]:
            gang = self._gang(number, self._at_most(number, job_class, most))
            if gang.start():
                gang.grow()
                return gang
        return None

    def _gang(self, number: int, job_class: JobClass) -> Gang:
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

    def keep_to(self, nodes: Ints | None) -> None:
        """Place what follows on some nodes alone, or on all if there are none given."""
        if nodes is None and self._open is None:
            return
        self._refused_at.clear()
        self._open = None
        if nodes is not None:
            self._open = np.zeros(self._nodes.count, dtype=np.bool_)
            self._open[[self._row_of[node] for node in nodes.tolist()]] = True

    def serve_within(self, number: int, allowance: Allowance) -> list[Placed]:
        """Place what fits of a job of some class, with no more cards than are allowed; return its tasks."""
        self._allowance = allowance
        try:
            return self.serve(number, [])
        finally:
            self._allowance = None

    def release(self, number: int, tasks: Iterable[Placed]) -> None:
        """Give back what tasks of a job of some class took, for good."""
        leaves = self._instance.job_classes[number].leaves
        self._hand(tasks, leaves, -1)
        self._fits_nowhere.clear()
        self._refused_at.clear()

    def hold(self, number: int, tasks: Iterable[Placed]) -> None:
        """Take what tasks of a job of some class take where they are, whether or not it is there."""
        self._hand(tasks, self._instance.job_classes[number].leaves, 1)

    def load(self, number: int, tasks: Sequence[Placed]) -> Load:
        """Return what tasks of a job of some class take where they are."""
        return load(self._instance, self._instance.job_classes[number].leaves, tasks, self._row_of)

    def exchange(self, loads: Sequence[Load], signs: Sequence[int]) -> bool:
        """Give back loads with the sign -1 and take others; return False, and do nothing, where it is to be one by one.

        It is the same as `release` and `hold` of each.
        """
        if not self._nodes.counts_by_row() or not all(one.plain for one in loads):
            return False
        changed = self._nodes.alter_all(loads, signs)
        if self._domains is not None:
            self._domains.touch(changed)
        if -1 in signs:
            self._fits_nowhere.clear()
            self._refused_at.clear()
        return True

    def rows(self, nodes: Sequence[int]) -> list[int]:
        """Return the rows of some nodes."""
        return [self._row_of[node] for node in nodes]

    def _hand(self, tasks: Iterable[Placed], leaves: Sequence[Leaf], sign: int) -> None:
        for leaf, _, (node, cards) in tasks:
            row = self._row_of[node]
            changed = self._nodes.alter(leaves[leaf].shape, row, cards, sign)
            if self._domains is not None:
                self._domains.touch(changed)

    def shut(self, nodes: Iterable[int]) -> None:
        """Place nothing more on some nodes until they are opened again; what is on them stays."""
        self._touch(self._nodes.shut([self._row_of[node] for node in nodes]))

    def reopen(self, nodes: Iterable[int]) -> None:
        """Place tasks on nodes again that were shut."""
        self._touch(self._nodes.reopen([self._row_of[node] for node in nodes]))

    def resume_from(self, other: Filling) -> None:
        """Take over what is free in a filling of the same nodes, in the same units, by other jobs."""
        self._touch(self._nodes.resume_from(other._nodes))

    def closed(self) -> list[int]:
        """Return the nodes that are shut."""
        return [self._nodes.node(row) for row in self._nodes.shut_rows()]

    def _touch(self, rows: list[int]) -> None:
        self._fits_nowhere.clear()
        self._refused_at.clear()
        if self._domains is not None:
            self._domains.touch(rows)

    def place(self, shape: int, within: Bools | None = None) -> Spot | None:
        """Place one task by the rule; see `placement.heuristics.gangs.Places`."""
        if shape in self._fits_nowhere:
            return None
        if time.monotonic() > self._deadline - HANDOVER * self._placed:
            raise OutOfTimeError
        open_rows = self._nodes.within_limits(shape)
        allowed = None if self._allowance is None else self._allowance.rows(shape)
        for mask in (within, self._open, allowed):
            if mask is not None:
                open_rows = mask if open_rows is None else open_rows & mask
        row = self._finder.find(shape, open_rows)
        if row < 0:
            # nothing will be taken back, and what is free only shrinks
            if within is None and self._open is None and allowed is None and not self._nodes.mark():
                self._fits_nowhere.add(shape)
            return None
        cards = self._rule.cards(shape, row)
        changed = self._nodes.place(shape, row, cards, self._marks[shape])
        if self._allowance is not None:
            self._allowance.take(shape, row)
        if self._domains is not None:
            self._domains.touch(changed)
        return self._nodes.node(row), cards

    def has_room(self, shape: int, nodes: Ints) -> bool:
        """Return whether one of some nodes has room for a task, limits on domains aside."""
        rows = np.array([self._row_of[node] for node in nodes.tolist()], dtype=np.int64)
        return bool(self._nodes.state.fits(shape, rows).any())

    def idle_units(self) -> tuple[Ints, Bools]:
        """Return the free units of each card of each node, by row, none where the node is shut; and which are healthy.

        Returns
        -------
        int array, bool array (N, C)
            Absent cards are not healthy.
        """
        state = self._nodes.state
        healthy = np.array([kind.healthy for kind in self._instance.card_kinds] + [False], dtype=np.bool_)
        return state.units[: self._nodes.count], healthy[state.kind[: self._nodes.count]]

    def mark(self) -> int:
        """Return the present point in time."""
        return self._nodes.mark()

    def undo(self, mark: int) -> None:
        """Take back everything placed since a point in time."""
        undone = self._nodes.undo(mark)
        if self._allowance is not None:
            self._allowance.undo(mark)
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


def _is_alike(instance: Instance, job_class: JobClass) -> bool:
    """Return whether a job has one group, of tasks of which a node holds no more the more is on it, however placed."""
    if len(job_class.leaves) != 1:
        return False
    shape = instance.shapes[job_class.leaves[0].shape]
    return shape.numa == ANY and shape.profile < 0 and (shape.gpus <= 1 or shape.units == instance.card_units)


def _file_order(instance: Instance) -> Ints:
    """Return the nodes as the snapshot lists them, copies of counted ones spread evenly, MIG cards as their hosts."""
    hosts = instance.hosts
    position = spread(instance.node_spec[:hosts], instance.node_copy[:hosts])
    return np.lexsort((np.arange(instance.nodes), position[instance.hosts_of(np.arange(instance.nodes))]))
