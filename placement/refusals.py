"""Why nodes without work refuse a task: in words, kind by kind of node, each question asked once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import cast

import msgspec
import numpy as np

from placement import units
from placement.hardware.sharing import most_clients
from placement.instance import Ints
from placement.rules import CARD_FILTERS, DIMENSIONS, NodeFilter
from placement.snapshot import Gpu, Job, Node, Task

BOUND = ("restricted", "single-numa-node")
"""Policies that bind a task to NUMA zones."""


class Refusals:
    """Asks nodes of distinct kinds for the first reason why they refuse a task.

    Kinds that are alike to a rule have one answer of it: many nodes differ, and few of them in any one respect.
    """

    def __init__(self, nodes: Sequence[Node], filters: Sequence[NodeFilter]) -> None:
        self._count = len(nodes)
        self._filters = [(rule, *_distinct([rule.node_key(node) for node in nodes])) for rule in filters]
        self._capacity = [_amounts([dimension.capacity(node) for node in nodes]) for dimension in DIMENSIONS]
        encode = msgspec.json.Encoder().encode
        layouts, self._layout = _distinct([encode((node.gpus, node.cuda, node.cgroup)) for node in nodes])
        first = np.unique(self._layout, return_index=True)[1].tolist()
        self._with_cards = [nodes[number] for number in first]
        assert len(layouts) == len(first)
        self._nodes = nodes

    def reasons(self, job: Job, task: Task) -> tuple[list[str], Ints]:
        """Return some reasons, and for each kind the number of the first that it has; -1 where it takes the task."""
        found = _Found(self._count)
        for rule, keys, number in self._filters:
            task_key = rule.task_key(job, task)
            found.add([rule.refusal(task_key, key) or "" for key in keys], number)
        for dimension, capacity in zip(DIMENSIONS, self._capacity, strict=True):
            for name, amount in dimension.demand(task).items():
                text = too_little(name)
                known = capacity.get(name)
                if known is not None:
                    there, number = known
                    found.add([text if have is not None and amount > have else "" for have in there], number)
                elif amount > 0:
                    found.add([text], np.zeros(self._count, dtype=np.int64))
        found.add([cards_refusal(job, task, node) or "" for node in self._with_cards], self._layout)
        if task.numa in BOUND:
            first, number = self._zones
            found.add([zones_refusal(job, task, node) or "" for node in first], number)
        return found.texts, found.of

    @cached_property
    def _zones(self) -> tuple[list[Node], Ints]:
        """One node of each sort that zones can tell apart, and the number of each kind's."""
        encode = msgspec.json.Encoder().encode
        _, number = _distinct([encode((node.gpus, node.zones, node.cuda, node.cgroup)) for node in self._nodes])
        return [self._nodes[place] for place in np.unique(number, return_index=True)[1].tolist()], number

    def takes(self, job: Job, task: Task) -> bool:
        """Return whether some kind of node takes a task."""
        return bool((self.reasons(job, task)[1] < 0).any())

    def listed(self, job: Job, task: Task, count: Ints) -> str:
        """Return the commonest reasons and the number of nodes that have each, with `count` nodes of each kind."""
        texts, of = self.reasons(job, task)
        numbers, first, which = np.unique(of, return_index=True, return_inverse=True)
        nodes = np.zeros(len(numbers), dtype=np.int64)
        np.add.at(nodes, which.reshape(-1), count)
        order = np.lexsort((first, -nodes))[:4]
        return "; ".join(f"{nodes[i]}: {texts[numbers[i]] if numbers[i] >= 0 else ''}" for i in order.tolist())


class _Found:
    """Reasons found so far; the first one of each kind of node counts."""

    def __init__(self, kinds: int) -> None:
        self.texts: list[str] = []
        self.of: Ints = np.full(kinds, -1, dtype=np.int64)
        self._number: dict[str, int] = {}

    def add(self, answers: list[str], number: Ints) -> None:
        """Take answers for kinds that have no reason yet; `number` names each kind's, an empty one is none."""
        if any(answers):
            codes = np.array([self._code(text) for text in answers], dtype=np.int64)
            self.of = np.where(self.of < 0, codes[number], self.of)

    def _code(self, text: str) -> int:
        if not text:
            return -1
        if text not in self._number:
            self._number[text] = len(self.texts)
            self.texts.append(text)
        return self._number[text]


def _distinct(keys: Sequence[Hashable]) -> tuple[list[Hashable], Ints]:
    """Return the distinct keys, and the number of each one's."""
    number: dict[Hashable, int] = {}
    of = [number.setdefault(key, len(number)) for key in keys]
    return list(number), np.array(of, dtype=np.int64)


def _amounts(capacities: Sequence[Mapping[str, Fraction | None]]) -> dict[str, tuple[list[Fraction | None], Ints]]:
    """Return the distinct amounts of each resource, and the number of each kind's; what is not named is not there."""
    found = {}
    for name in dict.fromkeys(name for capacity in capacities for name in capacity):
        amounts, number = _distinct([capacity.get(name, Fraction(0)) for capacity in capacities])
        found[name] = (cast(list[Fraction | None], amounts), number)
    return found


def too_little(resource: str) -> str:
    """Return that there is less of a resource than a task asks for: of what is counted, or of an amount."""
    counted = {"nics": "NICs", "pods": "pods"}
    return f"too few {counted[resource]}" if resource in counted else f"too little {resource.removeprefix('extended:')}"


def cards_refusal(job: Job, task: Task, node: Node) -> str | None:
    """Return why the cards of a node without work do not do for a task, or None."""
    cards = [gpu for gpu in node.gpus for _ in range(gpu.count)]
    if len(cards) < task.gpus:
        return f"fewer than {task.gpus} cards" if task.gpus > 1 else "no card"
    texts = [text for text in (_card_refusal(job, task, gpu, node) for gpu in cards) if text]
    if len(cards) - len(texts) < task.gpus:
        return Counter(texts).most_common(1)[0][0]
    return None


def admitting(job: Job, task: Task, node: Node) -> list[bool]:
    """Return whether the cards of an empty node take a task, entry by entry."""
    return [not _card_refusal(job, task, gpu, node) for gpu in node.gpus]


def shared_by(task: Task, share: Fraction, admits: Sequence[bool], node: Node) -> int:
    """Return at most how many tasks that take a share of each of their cards the cards of an empty node hold.

    That is as many as their shares and needs for memory, and limits on the tasks of a card, leave room for.
    """
    held = number = 0
    for gpu, admitted in zip(node.gpus, admits, strict=True):
        if admitted:
            most, clients = int(1 / share), most_clients(gpu, node.cuda)
            if clients is not None:
                most = min(most, clients)
            if task.gpu_memory is not None and gpu.memory is not None and units.exact(task.gpu_memory):
                most = min(most, int(units.exact(gpu.memory) / units.exact(task.gpu_memory)))
            held, number = held + most * gpu.count, number + gpu.count
    return held // task.gpus if number >= task.gpus else 0


def places(asks: Sequence[tuple[Fraction, Sequence[bool]]], node: Node) -> int:
    """Return at most how many of some tasks the cards of an empty node take, where a task counts once on each card.

    A card takes as many as its limit on tasks, and the smallest share of those that it admits, leave room for.

    Parameters
    ----------
    asks : sequence of (Fraction, sequence of bool)
        The share that tasks of each sort take of a card, and which cards admit them, see `admitting`.
    node : Node
    """
    found = 0
    for entry, gpu in enumerate(node.gpus):
        shares = [share for share, admits in asks if admits[entry]]
        if shares:
            clients, by_share = most_clients(gpu, node.cuda), int(1 / min(shares))
            found += gpu.count * (by_share if clients is None else min(by_share, clients))
    return found


def _card_refusal(job: Job, task: Task, gpu: Gpu, node: Node) -> str | None:
    for rule in CARD_FILTERS:
        text = rule.refusal(rule.task_key(job, task), rule.card_key(gpu, node))
        if text:
            return text
    if (
        task.gpu_memory is not None
        and gpu.memory is not None
        and units.exact(task.gpu_memory) > units.exact(gpu.memory)
    ):
        return "too little device memory"
    return None


def zones_refusal(job: Job, task: Task, node: Node) -> str | None:
    """Return why the NUMA zones of a node without work do not do for a task that is bound to some, or None.

    The node takes it otherwise: so a restricted task lies in all zones, if in no fewer.
    """
    if not node.zones:
        return f"no NUMA zones are listed, {task.numa} asks for some"
    if task.numa == "restricted":
        return None
    cards = [gpu for gpu in node.gpus for _ in range(gpu.count)]
    usable = [sum(not _card_refusal(job, task, cards[card], node) for card in zone.gpus) for zone in node.zones]
    parts: list[tuple[str, Fraction, list[Fraction]]] = [
        ("cards", Fraction(task.gpus), [Fraction(number) for number in usable]),
        ("NICs", Fraction(task.nics), [Fraction(len(zone.nics)) for zone in node.zones]),
    ]
    for name in ("cpu", "memory"):
        stated = [getattr(zone, name) for zone in node.zones]
        if None not in stated:
            parts.append((name, units.exact(getattr(task, name)), [units.exact(amount) for amount in stated]))
    if any(all(there[zone] >= asked for _, asked, there in parts) for zone in range(len(node.zones))):
        return None
    for name, asked, there in parts:
        if asked > max(there):
            have = _text(max(there), name)
            return f"{_text(asked, name)} {name} asked for in one NUMA zone, the largest has {have}"
    return "no NUMA zone has all it asks for at once"


def _text(amount: Fraction, name: str) -> str:
    """Return an amount for people, who read bytes in GiB; rounded where it is long."""
    value = amount / 2**30 if name == "memory" else amount
    number = f"{int(value):,}" if value.denominator == 1 else f"{float(value):.6g}"
    return f"{number}Gi" if name == "memory" else number
