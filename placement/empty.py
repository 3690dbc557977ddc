"""The same cluster without any work: what can never start there can never start at all."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from operator import attrgetter

import msgspec
import numpy as np

from placement import units
from placement.gang import Group, Leaf, leaves
from placement.instance import Bools, Instance, Ints, JobClass
from placement.mig.slots import most
from placement.most import MANY, Most, blocked
from placement.refusals import Refusals, admitting, places, shared_by
from placement.rules import DIMENSIONS, node_filters
from placement.snapshot import Job, Node, Task, TaskGroup

CELLS = 2**22
"""Pairs of a shape and a kind of node that are looked at together; keeps the tables small."""
MOST = 2**62
"""Stands for no limit, and for every capacity beyond it; requests in an instance are smaller."""


@dataclass(frozen=True, slots=True)
class _Kinds:
    """Nodes that no pending task can tell apart when they are empty: one of each kind, its index, and how many.

    Last comes the kind of each node.
    """

    nodes: list[Node]
    first: Ints
    count: list[int]
    of_node: Ints


@dataclass(frozen=True, slots=True)
class _Asked:
    """Of the tasks of one shape in a job one that takes least of its cards, and the part that it takes of each."""

    job: Job
    task: Task
    share: Fraction


class EmptyCluster:
    """Answers for classes of jobs whether nodes without work could take them."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self._known: dict[int, str | None] = {}
        self._admits: dict[int, list[list[bool]]] = {}
        self._by_shares: dict[tuple[tuple[int, Fraction], ...], Most] = {}

    def never(self, number: int) -> str | None:
        """Return why jobs of a class can never start, or None if nodes without work could take what they need."""
        if number not in self._known:
            self._known[number] = self._find(self.instance.job_classes[number])
        return self._known[number]

    def _find(self, job_class: JobClass) -> str | None:
        spec = self._job(job_class)
        leaf = _blocking(job_class.root, lambda leaf: self._fits(spec, leaf))
        if leaf is None:
            # rounded amounts would make the most that nodes hold too little, and "never" must be true
            return None if self.instance.rounded else blocked(job_class.root, self._most(job_class).refusal)
        task = _task(spec.groups, leaf.path.split("/"))
        listed = self._refusals.listed(spec, task, np.array(self._kinds.count, dtype=np.int64))
        return f"no node could take a task of {leaf.path} even without other work ({listed or 'there are no nodes'})"

    def _job(self, job_class: JobClass) -> Job:
        return self.instance.snapshot.jobs[int(self.instance.job_spec[job_class.jobs[0]])]

    def _fits(self, spec: Job, leaf: Leaf) -> bool:
        """Return whether some node without work can take a task of a leaf."""
        if self._shapes[leaf.shape]:
            return True
        if not self.instance.rounded and not self.instance.crowded:
            return False
        # amounts rounded, or counted as more, never say "yes" wrongly, but "no" too often, and "never" must be true
        task = _task(spec.groups, leaf.path.split("/"))
        return self._refusals.takes(spec, task)

    def _most(self, job_class: JobClass) -> Most:
        """Return what knows the most tasks that domains hold, for jobs whose tasks take as much as those of a class."""
        asked = self._asked(job_class)
        key = tuple((shape, asked[shape].share) for shape in sorted(asked))
        if key not in self._by_shares:
            self._by_shares[key] = Most(
                self.instance,
                lambda shape: self._of_node(shape, asked.get(shape)),
                lambda shape: self._of_cards(shape, asked.get(shape)),
                (lambda shapes: self._places([(shape, asked[shape]) for shape in sorted(shapes)])) if asked else None,
            )
        return self._by_shares[key]

    def _asked(self, job_class: JobClass) -> dict[int, _Asked]:
        """Return what tasks of each shape with cards take, where the instance has some count as more; else nothing."""
        found: dict[int, _Asked] = {}
        if self.instance.crowded:
            spec = self._job(job_class)
            for leaf in leaves(job_class.root):
                if self.instance.shapes[leaf.shape].gpus:
                    task, known = _task(spec.groups, leaf.path.split("/")), found.get(leaf.shape)
                    share = units.exact(1 if task.gpu_share is None else task.gpu_share)
                    if known is None or share < known.share:
                        found[leaf.shape] = _Asked(spec, task, share)
        return found

    def _of_cards(self, shape: int, asked: _Asked | None) -> Fraction:
        """Return what part of a card a task of a shape takes of all its cards together."""
        one = self.instance.shapes[shape]
        return Fraction(one.of_cards, self.instance.card_units) if asked is None else one.gpus * asked.share

    def _of_node(self, shape: int, asked: _Asked | None) -> Ints:
        """Return at most how many tasks of a shape each node holds when it is empty; MIG cards count on their host."""
        held = self._held(shape, asked)[self._kinds.of_node]
        if self.instance.shapes[shape].profile < 0:
            held[self.instance.hosts :] = 0  # MIG cards, whose host takes such tasks
            return held
        on_cards = np.zeros_like(held)
        np.add.at(on_cards, self.instance.host, self._instances(shape))
        return np.minimum(held, on_cards)

    def _instances(self, shape: int) -> Ints:
        """Return how many instances of a shape's profile each node has when it is empty."""
        instance = self.instance
        assert instance.slots is not None
        of_class = []
        for number, one in enumerate(instance.classes):
            admits = one.slots >= 0 and instance.admits_node[shape, number]
            card = instance.slots.cards[one.slots] if admits else None
            profile = None if card is None else instance.slots.profile(card, instance.shapes[shape].profile)
            of_class.append(0 if card is None or profile is None else most(card.board, profile))
        return np.array(of_class, dtype=np.int64)[instance.node_class]

    @cached_property
    def _refusals(self) -> Refusals:
        return Refusals(self._kinds.nodes, node_filters(self._tasks))

    # --- kinds of nodes --------------------------------------------------------------------------------------

    @cached_property
    def _kinds(self) -> _Kinds:
        """Kinds in the order of the snapshot; a node's name and place keep no task off, labels only if one asks."""
        nodes = self.instance.snapshot.nodes
        asked = sorted({label for task in self._tasks for label in task.node_selector})
        besides = {"name", "count", "position", "nvlink_domain", "labels"}
        hardware = attrgetter(*(field for field in Node.__struct_fields__ if field not in besides))
        encode = msgspec.json.Encoder().encode  # tells 1 from 1.0, as equality does not
        number: dict[tuple[bytes, tuple[str | None, ...]], int] = {}
        kinds: list[Node] = []
        count: list[int] = []
        first, index, of = [], 0, []
        for node in nodes:
            labels = tuple([node.labels.get(label) for label in asked]) if asked else ()
            kind = number.setdefault((encode(hardware(node)), labels), len(kinds))
            if kind == len(kinds):
                kinds.append(node)
                count.append(0)
                first.append(index)
            count[kind] += node.count
            of.append(kind)
            index += node.count
        of_node = np.array(of, dtype=np.int64)[self.instance.node_spec]
        return _Kinds(kinds, np.array(first, dtype=np.int64), count, of_node)

    @cached_property
    def _tasks(self) -> list[Task]:
        """One of every sort that waits."""
        return [task for job_class in self.instance.job_classes for task in _tasks(self._job(job_class).groups)]

    # --- shapes ----------------------------------------------------------------------------------------------

    @cached_property
    def _shapes(self) -> Bools:
        """Which shapes fit on some kind of node; kinds in pieces, and only for the shapes that fit on none so far."""
        instance, kinds = self.instance, self._kinds
        fits = np.zeros(len(instance.shapes), dtype=np.bool_)
        capacity, cards = self._capacity, self._cards
        first = 0
        while first < len(kinds.nodes) and not fits.all():
            left = np.flatnonzero(~fits)
            piece = slice(first, first + max(1, CELLS // len(left)))
            fits[left] = self._takes(left, piece, capacity[piece], cards[piece]).any(axis=1)
            first = piece.stop
        return fits

    def _takes(self, shapes: Ints, piece: slice, capacity: Ints, cards: Ints) -> Bools:
        """Return which kinds of nodes in a piece take which shapes."""
        instance = self.instance
        takes = self._takes_but_for_cards(shapes, piece, capacity)
        memory = np.array([kind.memory for kind in instance.card_kinds], dtype=np.int64)
        needed = np.array([instance.shapes[shape].memory for shape in shapes.tolist()], dtype=np.int64)
        gpus = np.array([instance.shapes[shape].gpus for shape in shapes.tolist()], dtype=np.int64)
        usable = instance.admits_card[shapes] & (needed[:, None] <= memory[None, :])
        # doubles, for they multiply faster, and no node has 2**53 cards
        takes &= usable.astype(np.float64) @ cards.T.astype(np.float64) >= gpus[:, None]
        return takes

    def _takes_but_for_cards(self, shapes: Ints, piece: slice, capacity: Ints) -> Bools:
        """Return which kinds of nodes in a piece take which shapes as far as filters and resources of nodes tell."""
        instance = self.instance
        takes: Bools = instance.admits_node[shapes[:, None], instance.node_class[self._kinds.first[piece]][None, :]]
        if instance.slots is not None:
            takes = takes | self._on_mig_cards[shapes, piece]
        for resource in self._of_nodes:
            demand = np.array([instance.shapes[shape].demand[resource] for shape in shapes.tolist()], dtype=np.int64)
            takes &= demand[:, None] <= capacity[None, :, resource]
        return takes

    @cached_property
    def _on_mig_cards(self) -> Bools:
        """Return on which kinds of nodes some MIG card admits which shapes."""
        instance = self.instance
        admits = np.zeros((len(instance.shapes), len(self._kinds.nodes)), dtype=np.bool_)
        pairs = np.stack([self._kinds.of_node, instance.node_class], axis=1)[instance.hosts :]
        for kind, number in np.unique(pairs, axis=0).tolist():
            admits[:, kind] |= instance.admits_node[:, number]
        return admits

    def _held(self, shape: int, exactly: _Asked | None) -> Ints:
        """Return at most how many tasks of a shape a node of each kind holds when it is empty."""
        instance, asked = self.instance, self.instance.shapes[shape]
        held = np.full(len(self._kinds.nodes), MANY, dtype=np.int64)
        for resource in self._of_nodes:
            demand = asked.demand[resource]
            if demand:
                held = np.minimum(held, self._capacity[:, resource] // demand)
        if exactly is not None:
            return self._held_as_asked(shape, exactly, held)
        if asked.gpus:
            memory = np.array([kind.memory for kind in instance.card_kinds], dtype=np.int64)
            on_card = np.full(len(memory), min(MANY, instance.card_units // asked.units), dtype=np.int64)
            if asked.memory:
                on_card = np.minimum(on_card, memory // asked.memory)
            on_card[~instance.admits_card[shape]] = 0
            held = np.minimum(held, self._cards @ on_card // asked.gpus)
        takes = self._takes(np.array([shape]), slice(None), self._capacity, self._cards)[0]
        return np.where(takes, held, 0)

    def _held_as_asked(self, shape: int, one: _Asked, held: Ints) -> Ints:
        """Return the same where tasks may count as more than they take: by what they take, and how many may share."""
        nodes, of_kind = self._alike_in_cards
        pairs = zip(self._admitting(shape, one), nodes, strict=True)
        by_cards = np.array([min(MANY, shared_by(one.task, one.share, *pair)) for pair in pairs], dtype=np.int64)
        takes = self._takes_but_for_cards(np.array([shape]), slice(None), self._capacity)[0]
        return np.where(takes, np.minimum(held, by_cards[of_kind]), 0)

    def _places(self, asked: list[tuple[int, _Asked]]) -> Ints:
        """Return at most how many of some tasks the cards of each empty node take, each once on each card."""
        nodes, of_kind = self._alike_in_cards
        admits = [(one.share, self._admitting(shape, one)) for shape, one in asked]
        number = [
            min(MANY, places([(share, some[place]) for share, some in admits], node))
            for place, node in enumerate(nodes)
        ]
        found = np.array(number, dtype=np.int64)[of_kind[self._kinds.of_node]]
        found[self.instance.hosts :] = 0
        return found

    def _admitting(self, shape: int, one: _Asked) -> list[list[bool]]:
        """Return which cards admit tasks of a shape, on each node of `_alike_in_cards`; all tasks of it are alike."""
        if shape not in self._admits:
            self._admits[shape] = [admitting(one.job, one.task, node) for node in self._alike_in_cards[0]]
        return self._admits[shape]

    @cached_property
    def _alike_in_cards(self) -> tuple[list[Node], Ints]:
        """One node of each sort that cards can tell apart, and the sort of each kind."""
        looks = [(node.gpus, node.cuda, node.cgroup) for node in self._kinds.nodes]
        example = dict(zip(looks, self._kinds.nodes, strict=True))
        number = {look: place for place, look in enumerate(example)}
        return list(example.values()), np.array([number[look] for look in looks], dtype=np.int64)

    @cached_property
    def _of_nodes(self) -> list[int]:
        """Return the resources that could run out on a node: all but those that stand for what queues may take."""
        of_queues = {row.resource for row in self.instance.limits if row.queue is not None}
        return [resource for resource in range(len(self.instance.resources)) if resource not in of_queues]

    @cached_property
    def _capacity(self) -> Ints:
        """Return what each kind of node has of each resource, in the instance's units."""
        resources = list(zip(self.instance.resources, self.instance.resource_units, strict=True))
        capacity = np.zeros((len(self._kinds.nodes), len(resources)), dtype=np.int64)
        for row, node in enumerate(self._kinds.nodes):
            there = {name: amount for dimension in DIMENSIONS for name, amount in dimension.capacity(node).items()}
            for column, (name, unit) in enumerate(resources):
                amount = there.get(name, 0)
                capacity[row, column] = MOST if amount is None else min(MOST, math.floor(amount / unit))
        return capacity

    @cached_property
    def _cards(self) -> Ints:
        """Return how many cards of each kind a node of each kind has."""
        instance = self.instance
        cards = np.zeros((len(self._kinds.nodes), len(instance.card_kinds)), dtype=np.int64)
        for row, number in enumerate(instance.node_class[self._kinds.first].tolist()):
            for kind, _, _ in instance.classes[number].cards:
                cards[row, kind] += 1
        return cards


def _blocking(group: Group, fits: Callable[[Leaf], bool]) -> Leaf | None:
    """Return a leaf that keeps the group from ever reaching its minimum, or None."""
    if isinstance(group, Leaf):
        return None if fits(group) else group
    blocked = [leaf for leaf in (_blocking(child, fits) for child in group.children) if leaf is not None]
    return blocked[0] if len(group.children) - len(blocked) < group.min_groups else None


def _task(groups: Iterable[TaskGroup], path: list[str]) -> Task:
    group = next(group for group in groups if group.name == path[0])
    return group.task if group.task is not None else _task(group.groups, path[1:])


def _tasks(groups: Iterable[TaskGroup]) -> list[Task]:
    return [task for group in groups for task in ([group.task] if group.task is not None else _tasks(group.groups))]
