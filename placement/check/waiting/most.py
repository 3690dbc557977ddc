"""Whether a job needs more tasks than a domain holds at most without any work.

A node holds at most what its resources, and the cards that the task may use, are enough for, with one shape at a time
and no more on a card than may share it; a domain what its nodes do together, and no more than a cap on it (all of the
cap, running work or not) allows. A group can never run when one leaf of it needs more than that: in the cluster; in one
domain of the level that the group requires; in one domain for a slice, or for all slices of one size; or as thinly as
its spread says. Nor can it when its leaves together have more tasks than may be on the cards.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from placement.check.case.case import Placed
from placement.check.exact import Ints, Whole, numbered, sums, whole
from placement.check.facts.amounts import GPUS
from placement.check.facts.kinds import Gang, NodeKind, Shape
from placement.check.filters import mig_cards
from placement.check.loads import clients
from placement.check.waiting.room import Rooms
from placement.snapshot import TaskGroup, Topology

MANY = 2**31
"""Stands for any number of tasks that is larger."""
CLUSTER = "cluster"


class Most:
    """The most tasks that the domains of a snapshot hold.

    Parameters
    ----------
    placed : Placed
    zoned : function
        Returns whether NUMA zones of an empty node hold a task, where it is bound to some.
    """

    def __init__(self, placed: Placed, zoned: Callable[[Shape, NodeKind], bool]) -> None:
        self._zoned = zoned
        self._placed = placed
        self._facts = placed.facts
        self._known: dict[tuple[int, str], tuple[Ints, Ints]] = {}
        self._top: dict[tuple[int, str], int] = {}
        self._every: Ints = np.arange(len(self._facts.kinds), dtype=np.int64)
        self._count: Ints = np.diff(self._facts.node_names.first)

    def enough(self, gang: Gang) -> bool:
        """Return whether no count of tasks shows that jobs can never run."""
        groups = gang.job.groups
        needs = {leaf: tasks for group in groups for leaf, tasks in _needs(group, group.name).items()}
        enough = all(self._group(gang, group, group.name) for group in groups)
        enough = enough and self._together(gang, needs, CLUSTER)
        self._known.clear()  # domains of all levels for all shapes may be many
        return enough

    def _group(self, gang: Gang, group: TaskGroup, path: str) -> bool:
        if group.task is None:
            able = sum(self._group(gang, child, f"{path}/{child.name}") for child in group.groups)
            if able < _enough(group):
                return False
        needs = _needs(group, path)
        if max(needs.values(), default=0) > MANY:
            return True
        topology = Topology() if group.topology is None else group.topology
        return all(
            self._largest(gang.leaves[leaf].shape, level) >= tasks
            for leaf, tasks in needs.items()
            for level in (CLUSTER, topology.required)
            if level
        ) and (
            self._together(gang, needs, topology.required or CLUSTER)
            if group.task is None
            else self._leaf(gang.leaves[path].shape, group, topology)
        )

    def _together(self, gang: Gang, needs: dict[str, int], level: str) -> bool:
        """Return whether the cards of some domain take all tasks of several leaves, each once on each of its cards.

        A card takes as many as may share it, and as the smallest share of those that it admits leaves room for.
        """
        shapes = [(gang.leaves[leaf].shape, tasks) for leaf, tasks in needs.items()]
        shapes = [(shape, tasks) for shape, tasks in shapes if shape.gpus and not shape.task.mig_profile]
        asked = sum(tasks * shape.gpus for shape, tasks in shapes)
        allowed = clients.allowed_on(self._facts)
        if len(shapes) < 2 or asked > MANY or not (allowed < clients.NO_LIMIT).any():
            return True
        kind, every = self._cards[0], np.arange(len(allowed), dtype=np.int64)
        on_card = np.zeros(len(allowed), dtype=np.int64)
        for shape, _ in shapes:
            admits = self._placed.filters.admits_cards(shape, every)
            on_card = np.maximum(on_card, np.where(admits, min(MANY, self._facts.scale[GPUS] // shape.share), 0))
        places = sums(kind, np.minimum(on_card, allowed), len(self._every))
        return int(self._summed(np.minimum(places, MANY), level, [])[0].max(initial=0)) >= asked

    def _leaf(self, shape: Shape, group: TaskGroup, topology: Topology) -> bool:
        """Return whether slices and a spread leave room for a group of tasks."""
        needed = _minimum(group)
        for part in topology.slices if needed == group.count else ():
            tasks, times = self._domains(shape, part.level)
            if max(part.sizes) > tasks.max(initial=0):
                return False
            if len(part.sizes) == 1 and int((tasks // part.sizes[0] * times).sum()) < needed // part.sizes[0]:
                return False
        for spread in topology.spread:
            tasks, times = self._domains(shape, spread.level)
            if int(times[tasks > 0].sum()) < (spread.min_domains or 0):
                return False
            most = MANY if spread.max_per_domain is None else min(MANY, spread.max_per_domain)
            if int((np.minimum(tasks, most) * times).sum()) < needed:
                return False
        return True

    # --- domains ---------------------------------------------------------------------------------------------

    def _largest(self, shape: Shape, level: str) -> int:
        key = shape.number, level
        if key not in self._top:
            self._top[key] = int(self._domains(shape, level)[0].max(initial=0))
        return self._top[key]

    def _domains(self, shape: Shape, level: str) -> tuple[Ints, Ints]:
        """Return the most tasks in domains of a level, and how many domains each number stands for."""
        key = shape.number, level
        if key not in self._known:
            self._known[key] = self._find(shape, level)
        return self._known[key]

    def _find(self, shape: Shape, level: str) -> tuple[Ints, Ints]:
        caps = [(of_kind, self._allowed(shape, limits)) for of_kind, limits in self._limits]
        return self._summed(self._held(shape), level, caps)

    def _summed(self, tasks: Ints, level: str, caps: list[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
        """Return the same, given the most tasks in a node of each kind, and what caps allow."""
        for of_kind, allowed in caps:
            tasks = np.minimum(tasks, allowed[of_kind])
        kind = self._facts.kind
        tasks, times = tasks[kind], self._count
        if level == "node":
            return tasks, times
        domain = self._domain(level)
        some = np.flatnonzero((domain >= 0) & (tasks > 0))
        domain, tasks = domain[some], (tasks * times)[some]
        length = int(domain.max(initial=-1)) + 1
        total = sums(domain, tasks, length)
        for of_kind, allowed in caps if len(some) else ():
            cap = of_kind[kind[some]]
            both, first = numbered([domain, cap])
            part = np.minimum(sums(both, tasks, len(first)), allowed[cap[first]])
            total = np.minimum(total, sums(domain[first], part, length))
        return total, np.ones(length, dtype=np.int64)

    def _domain(self, level: str) -> Ints:
        """Return the number of the domain that the nodes of each entry are in; -1 for none."""
        nodes = self._facts.snapshot.nodes
        if level == CLUSTER:
            return np.zeros(len(nodes), dtype=np.int64)
        if level not in self._positions:
            number: dict[str, int] = {}
            names = (node.domains.get(level) for node in nodes)
            found = [number.setdefault(name, len(number)) if name else -1 for name in names]
            self._positions[level] = np.array(found, dtype=np.int64)
        return self._positions[level]

    @cached_property
    def _positions(self) -> dict[str, Ints]:
        return {}

    # --- caps ------------------------------------------------------------------------------------------------

    @cached_property
    def _limits(self) -> list[tuple[Ints, list[list[int]]]]:
        """For each level of limits: a number of each kind's domain, 0 for none, and the limits of each number."""
        facts, found = self._facts, []
        limits = facts.snapshot.limits
        for level in dict.fromkeys(limit.level for limit in limits):
            number: dict[str, int] = {}
            for limit in limits:
                if limit.level == level:
                    number.setdefault(limit.domain, len(number) + 1)
            of: list[list[int]] = [[] for _ in range(len(number) + 1)]
            for index, limit in enumerate(limits):
                if limit.level == level:
                    of[number[limit.domain]].append(index)
            kinds = [
                next((number[limits[i].domain] for i in kind.limits if limits[i].level == level), 0)
                for kind in facts.kinds
            ]
            found.append((np.array(kinds, dtype=np.int64), of))
        return found

    def _allowed(self, shape: Shape, limits: list[list[int]]) -> Ints:
        """Return the most tasks of a shape that each of some sets of limits allows, whatever runs."""
        taken = {**shape.demand, GPUS: shape.gpus * shape.share}
        allowed = [
            [cap // taken[name] for i in some for name, cap in self._facts.caps[i].items() if taken.get(name)]
            for some in limits
        ]
        return np.array([min([MANY, *numbers]) for numbers in allowed], dtype=np.int64)

    # --- nodes -----------------------------------------------------------------------------------------------

    def _held(self, shape: Shape) -> Ints:
        """Return the most tasks of a shape that a node of each kind holds without any work."""
        able = self._placed.filters.admits_nodes(shape, self._every) & self._rooms.hold(shape, self._every)
        held = np.where(able, MANY, 0)
        for resource, needed in shape.demand.items():
            there = np.minimum(self._capacity(resource) // needed, MANY).astype(np.int64)
            held = np.where(there < 0, held, np.minimum(held, there))
        if shape.gpus:
            held = np.minimum(held, self._by_cards(shape))
        if shape.policy:
            for kind in np.flatnonzero(held).tolist():
                if not self._zoned(shape, self._facts.kinds[kind]):
                    held[kind] = 0
        return held

    def _by_cards(self, shape: Shape) -> Ints:
        kind, memory = self._cards
        by_share = min(MANY, self._facts.scale[GPUS] // shape.share)
        on_card = np.minimum(by_share, clients.allowed_on(self._facts))
        if shape.task.mig_profile:
            on_card = self._instances(shape)
        elif shape.memory:
            there = np.minimum(memory // shape.memory, MANY).astype(np.int64)
            on_card = np.where(there < 0, on_card, np.minimum(on_card, there))
        on_card[~self._placed.filters.admits_cards(shape, np.arange(len(kind), dtype=np.int64))] = 0
        some = sums(kind, (on_card > 0).astype(np.int64), len(self._every))
        return np.where(some < shape.gpus, 0, sums(kind, on_card, len(self._every)) // shape.gpus)

    def _instances(self, shape: Shape) -> Ints:
        """Return how many MIG instances of a task each card holds at most."""
        known: dict[int, int] = {}
        for card in self._facts.cards:
            if card.kind not in known:
                known[card.kind] = mig_cards.most(shape.task, card.gpu)
        return np.array([known[card.kind] for card in self._facts.cards], dtype=np.int64)

    @cached_property
    def _rooms(self) -> Rooms:
        return Rooms(self._facts, self._every)

    @cached_property
    def _cards(self) -> tuple[Ints, Whole]:
        """Kind of node of each card, and its device memory; -1 for no limit."""
        cards = self._facts.cards
        kind = np.repeat(self._every, np.diff(self._facts.first_card))
        return kind, whole([-1 if card.memory is None else card.memory for card in cards], 1)

    @cached_property
    def _capacities(self) -> dict[str, Whole]:
        return {}

    def _capacity(self, resource: str) -> Whole:
        """Return what each kind of node has of a resource; -1 for no limit."""
        if resource not in self._capacities:
            there = [kind.capacity.get(resource, 0) for kind in self._facts.kinds]
            self._capacities[resource] = whole([-1 if amount is None else amount for amount in there], 1)
        return self._capacities[resource]


def _needs(group: TaskGroup, path: str) -> dict[str, int]:
    """Return the tasks of each leaf without which a copy of a group does not run."""
    if group.task is not None:
        return {path: _minimum(group)}
    if _enough(group) < len(group.groups):
        return {}
    below = [_needs(child, f"{path}/{child.name}") for child in group.groups]
    return {leaf: _minimum(group) * tasks for needs in below for leaf, tasks in needs.items()}


def _enough(group: TaskGroup) -> int:
    return len(group.groups) if group.min_groups is None else group.min_groups


def _minimum(group: TaskGroup) -> int:
    return group.count if group.min_count is None else group.min_count
