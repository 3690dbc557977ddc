"""Schedules by counts: how many cards of each node are free when, for work of which nothing else matters.

Where all tasks take whole cards and nodes never run out of anything else first, a node's free cards say all: tasks that
hold some of them for a while never have to change to others. Passes over such work take a small part of what passes
over devices do.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from placement.instance import Bools, Instance, Ints
from placement.scheduling.clock import Clock
from placement.scheduling.work import Work
from placement.shared_cards import parted
from placement.snapshot import Snapshot

Small = npt.NDArray[np.int32]

NO_DEADLINE = 1 << 62
"""Later than any job ends, also one that starts at `NEVER`, in milliseconds."""

Nodes = tuple[tuple[int, int], ...]
"""Nodes and how many tasks each takes."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A way in which jobs of a class may run.

    Attributes
    ----------
    nodes : int array
        Those with cards of one model on which its tasks may run.
    least : int
        Least time that it runs there.
    pool : int
        Number of this set of nodes.
    """

    nodes: Ints
    least: int
    pool: int


@dataclass(frozen=True, slots=True)
class Gang:
    """What jobs of a class ask for.

    Attributes
    ----------
    tasks, cards : int
        Number of tasks, and cards of each.
    kinds : tuple of Kind
        Fastest first.
    """

    tasks: int
    cards: int
    kinds: tuple[Kind, ...]


class Counted:
    """Work of which counts of cards say all.

    Attributes
    ----------
    work : Work
    gangs : list of Gang
        By job class.
    free : int array (N,)
        Cards of each node when nothing runs on it.
    deadline : list of int
        By job: its hard deadline, which may be past, and `NO_DEADLINE` where it has none.
    """

    def __init__(self, work: Work, gangs: list[Gang], free: Small, pools: list[Ints]) -> None:
        self.work, self.gangs, self.free, self.pools = work, gangs, free, pools
        self.member: Small = np.zeros((len(free), len(pools)), dtype=np.int32)
        for number, nodes in enumerate(pools):
            self.member[nodes, number] = 1
        self.clock = Clock(work.instance)
        self._inside = [frozenset(nodes.tolist()) for nodes in pools]
        self._leaf = [one.leaves[0].leaf for one in work.instance.job_classes]
        self._known: dict[tuple[int, Nodes], int] = {}
        self.job_class: list[int] = work.instance.job_class.tolist()
        self.release: list[int] = work.release.tolist()
        self.weight: list[int] = work.weight.tolist()
        self.deadline = [
            end if hard else NO_DEADLINE for end, hard in zip(work.deadline.tolist(), work.hard, strict=True)
        ]
        self.by_level = len(work.instance.levels) > 2 or any(
            one.run is not None and len(set(one.run.levels)) > 1 for one in work.instance.job_classes
        )

    def kind_of(self, job: int, nodes: Nodes) -> int:
        """Return the number of the kind that some nodes are of, for a job."""
        kinds = self.gangs[self.job_class[job]].kinds
        if len(kinds) == 1:
            return 0
        return next(number for number, kind in enumerate(kinds) if nodes[0][0] in self._inside[kind.pool])

    def run(self, job: int, kind: Kind, nodes: Nodes) -> int:
        """Return how long a job runs on some nodes of a kind."""
        if not self.by_level:
            return kind.least
        number = self.job_class[job]
        key = number, nodes
        if key not in self._known:
            self._known[key] = self.full(job, nodes)
        return self._known[key]

    def full(self, job: int, nodes: Nodes) -> int:
        """Return how long all of a job's work takes on some nodes."""
        return self.clock.run(job, [(0, 0, (node, (0,))) for node, tasks in nodes for _ in range(tasks)])

    def bare(self, base: Profile) -> tuple[Counted, Profile]:
        """Return the same and a profile of it without the snapshot, which takes long to send and says no more."""
        work, profile = copy(self), copy(base)
        instance = replace(self.work.instance, snapshot=Snapshot())
        work.work, work.clock = replace(self.work, instance=instance), self.clock.within(instance)
        profile._work = work
        return work, profile


def counted(work: Work) -> Counted | None:
    """Return work by counts, or None where they do not say all."""
    instance = work.instance
    if not _plain(work):
        return None
    cards = np.array([len(one.cards) for one in instance.classes], dtype=np.int32)
    pools: list[Ints] = []
    numbers: dict[bytes, int] = {}
    gangs = []
    clock = Clock(instance)
    for one in instance.job_classes:
        leaf = one.leaves[0]
        shape = instance.shapes[leaf.shape]
        kinds = []
        for model in range(len(instance.card_kinds)):
            mask = _on(instance, leaf.shape, model)
            nodes = np.flatnonzero(mask[instance.node_class])
            if not len(nodes) or not instance.admits_card[leaf.shape][model]:
                continue
            if shape.gpus and int((cards[instance.node_class[nodes]] // shape.gpus).sum()) < leaf.count:
                continue
            place = numbers.setdefault(nodes.tobytes(), len(pools))
            if place == len(pools):
                pools.append(nodes)
            least = clock.run(int(one.jobs[0]), [(0, 0, (int(nodes[0]), (0,)))] * leaf.count)
            # one array for all who may run there
            kinds.append(Kind(pools[place], least, place))
        gangs.append(Gang(leaf.count, shape.gpus, tuple(sorted(kinds, key=lambda kind: kind.least))))
        if not kinds and _fits_mixed(instance, leaf.shape, leaf.count):
            return None
    return Counted(work, gangs, cards[instance.node_class], pools)


def _fits_mixed(instance: Instance, shape: int, count: int) -> bool:
    """Return whether a gang that no model alone holds might still run on several."""
    cards = np.array([len(one.cards) for one in instance.classes], dtype=np.int64)[instance.node_class]
    return int((cards // max(1, instance.shapes[shape].gpus)).sum()) >= count


def _on(instance: Instance, shape: int, model: int) -> Bools:
    """Return which node classes have cards of one kind, and take tasks of a shape."""
    has = np.array([bool(one.cards) and one.cards[0][0] == model for one in instance.classes], dtype=np.bool_)
    found: Bools = has & instance.admits_node[shape]
    return found


def _plain(work: Work) -> bool:
    instance = work.instance
    if instance.slots is not None or instance.zone_sets or instance.limits or instance.apart is not None:
        return False
    if any(window.jobs for window in work.windows) or any(kind.clients is not None for kind in instance.card_kinds):
        return False
    for one in instance.classes:
        if len({kind for kind, _, _ in one.cards}) > 1:
            return False
    clock = Clock(instance)
    return all(_plain_job(instance, clock, number) for number in range(len(instance.job_classes))) and _cards_bind(
        instance
    )


def _plain_job(instance: Instance, clock: Clock, number: int) -> bool:
    one = instance.job_classes[number]
    if one.tied or len(one.leaves) != 1 or one.root.count != 1 or not clock.plain(number):
        return False
    leaf = one.leaves[0]
    shape = instance.shapes[leaf.shape]
    return leaf.copies == 1 and leaf.minimum == leaf.count and shape.gpus > 0 and not parted(instance, leaf.shape)


def _cards_bind(instance: Instance) -> bool:
    """Return whether no node can run out of anything before it runs out of cards, or of work."""
    shapes = instance.shapes
    every = [0] * len(instance.resources)
    for one in instance.job_classes:
        for leaf in one.leaves:
            tasks = len(one.jobs) * leaf.count * leaf.copies
            every = [so_far + tasks * amount for so_far, amount in zip(every, shapes[leaf.shape].demand, strict=True)]
    for k, node in enumerate(instance.classes):
        scarce = [r for r, free in enumerate(node.free) if every[r] > free]
        for shape in (shapes[s] for s in range(len(shapes)) if instance.admits_node[s, k] and shapes[s].gpus):
            if any(-(-shape.demand[r] // shape.gpus) * len(node.cards) > node.free[r] for r in scarce):
                return False
            if shape.memory and any(memory < shape.memory for _, _, memory in node.cards):
                return False
    return True


# --- time ----------------------------------------------------------------------------------------------------


class Profile:
    """Free cards of every node over time."""

    def __init__(self, work: Counted) -> None:
        self._work = work
        self._times: list[int] = [0]
        room = 64
        self._free: Small = np.zeros((room, len(work.free)), dtype=np.int32)
        self._free[0] = work.free
        self._total: Small = np.zeros((room, len(work.pools)), dtype=np.int32)
        self._total[0] = [int(work.free[nodes].sum()) for nodes in work.pools]

    @classmethod
    def as_ends(cls, work: Counted, held: Sequence[tuple[int, Sequence[tuple[int, int]]]]) -> Profile:
        """Return what is free as what is held is given back.

        Parameters
        ----------
        work : Counted
        held : sequence of (int, sequence of (int, int))
            When each job ends, above 0, and the nodes and how many cards of each it holds until then.
        """
        profile = cls(work)
        profile._times = [0, *sorted({end for end, _ in held})]
        row = {time: number for number, time in enumerate(profile._times)}
        free: Small = np.zeros((2 * len(row) + 64, len(work.free)), dtype=np.int32)
        free[0] = work.free
        for end, nodes in held:
            for node, cards in nodes:
                free[0, node] -= cards
                free[row[end], node] += cards
        free[: len(row)] = free[: len(row)].cumsum(axis=0)
        profile._free, profile._total = free, free @ work.member
        return profile

    def copy(self) -> Profile:
        """Return a profile that changes by itself."""
        other = Profile.__new__(Profile)
        other._work, other._times = self._work, self._times.copy()
        other._free, other._total = self._free.copy(), self._total.copy()
        return other

    def at(self, time: int) -> int:
        """Return the row of a time, which begins there."""
        row = bisect_left(self._times, time)
        count = len(self._times)
        if row < count and self._times[row] == time:
            return row
        if count == len(self._free):
            self._free = np.concatenate([self._free, np.zeros_like(self._free)])
            self._total = np.concatenate([self._total, np.zeros_like(self._total)])
        self._free[row + 1 : count + 1] = self._free[row:count]
        self._free[row] = self._free[row - 1]
        self._total[row + 1 : count + 1] = self._total[row:count]
        self._total[row] = self._total[row - 1]
        self._times.insert(row, time)
        return row

    def take(self, nodes: Nodes, cards: int, start: int, end: int) -> None:
        """Hold cards for each task on some nodes for a time."""
        if end <= start:
            return
        first = self.at(start)
        last = self.at(end)
        for node, tasks in nodes:
            self._free[first:last, node] -= tasks * cards
            self._total[first:last] -= tasks * cards * self._work.member[node]

    def earliest(self, job: int, after: int, among: Sequence[Kind] | None = None) -> tuple[int, int, Nodes] | None:
        """Return when a job may start and end first, and on which nodes; the kind on which it ends first.

        Parameters
        ----------
        job : int
        after : int
        among : sequence of Kind, optional
            Kinds on which it may run, fastest first; all if absent.
        """
        gang = self._work.gangs[self._work.job_class[job]]
        best: tuple[int, int, Nodes] | None = None
        for kind in gang.kinds if among is None else among:
            if best is not None and after + kind.least >= best[1]:
                break
            found = self._in(job, gang, kind, after, None if best is None else best[1])
            if found is not None and (best is None or found[1] < best[1]):
                best = found
        return best

    def now(self, job: int, now: int) -> tuple[int, Nodes] | None:
        """Return when a job would end if it started now, and on which nodes; None where it does not fit."""
        gang = self._work.gangs[self._work.job_class[job]]
        count = len(self._times)
        row = bisect_right(self._times, now) - 1
        for kind in gang.kinds:
            length = kind.least
            last = bisect_left(self._times, now + length)
            if int(self._total[row : max(last, row + 1), kind.pool].min()) < gang.tasks * gang.cards:
                continue
            nodes = self._fit(gang, kind, row, last)
            if nodes is not None:
                took = self._work.run(job, kind, nodes)
                if took <= length or self._holds(gang, nodes, row, min(count, bisect_left(self._times, now + took))):
                    return now + took, nodes
        return None

    def most(self, now: int) -> int:
        """Return how many cards are free at a moment, in the pool that has most of them."""
        return int(self._total[bisect_right(self._times, now) - 1].max(initial=0))

    def times(self) -> list[int]:
        """Return when anything changes."""
        return self._times.copy()

    def free(self) -> Small:
        """Return how many cards of each node are free from each of these times on."""
        return self._free[: len(self._times)]

    def _in(self, job: int, gang: Gang, kind: Kind, after: int, before: int | None) -> tuple[int, int, Nodes] | None:
        times, need = self._times, gang.tasks * gang.cards
        count = len(times)
        short = np.flatnonzero(self._total[:count, kind.pool] < need).tolist()
        row = bisect_right(times, after) - 1
        start = after
        length = kind.least
        while before is None or start + length < before:
            place = bisect_left(short, row)
            if place < len(short) and times[short[place]] < start + length:
                row = short[place] + 1
                if row >= count:
                    return None
                start = times[row]
                continue
            nodes = self._fit(gang, kind, row, bisect_left(times, start + length))
            if nodes is not None:
                took = self._work.run(job, kind, nodes)
                if took <= length or self._holds(gang, nodes, row, bisect_left(times, start + took)):
                    return start, start + took, nodes
            row += 1
            if row >= count:
                return None
            start = times[row]
        return None

    def _holds(self, gang: Gang, nodes: Nodes, row: int, last: int) -> bool:
        return all(int(self._free[row : max(last, row + 1), node].min()) >= tasks * gang.cards for node, tasks in nodes)

    def _fit(self, gang: Gang, kind: Kind, row: int, last: int) -> Nodes | None:
        """Return nodes for all tasks from one row up to another: those that it leaves fewest cards on."""
        free = self._free[row] if last <= row + 1 else self._free[row:last].min(axis=0)
        return best_fit(free[kind.nodes], kind.nodes, gang)


def best_fit(free: Small, nodes: Ints, gang: Gang) -> Nodes | None:
    """Return nodes for all tasks of a gang: those that it leaves fewest cards on, first ones first."""
    if gang.tasks == 1:
        fits = np.flatnonzero(free >= gang.cards)
        if not len(fits):
            return None
        return ((int(nodes[fits[free[fits].argmin()]]), 1),)
    room = free // gang.cards
    if int(room.sum()) < gang.tasks:
        return None
    found = []
    left = gang.tasks
    for place in np.lexsort((np.arange(len(free)), free - room * gang.cards, -room)).tolist():
        tasks = min(left, int(room[place]))
        found.append((int(nodes[place]), tasks))
        left -= tasks
        if not left:
            break
    return tuple(sorted(found))
