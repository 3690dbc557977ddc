r"""Where blocks of cards are all there is to count: conditions, and the blocks of every pool.

A task of size g takes exactly g/u blocks of every smaller size u, wherever it is put, if sizes divide one another and
nothing but cards can bind. Then a number of tasks fits if its blocks do, size by size; the proof is in
`placement.models.ladder`. Modelling language and solver are not needed to see whether this is so, so it is seen here.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from placement.evaluate import demand
from placement.instance import Instance


@dataclass(frozen=True, slots=True)
class Pool:
    """Nodes that admit the same shapes and count in the same limits.

    Attributes
    ----------
    classes : tuple of int
        Its node classes.
    shapes : tuple of int
        Shapes it admits.
    limits : tuple of int
    blocks : dict of int to int
        By size of its shapes: how many blocks of that size are free.
    """

    classes: tuple[int, ...]
    shapes: tuple[int, ...]
    limits: tuple[int, ...]
    blocks: dict[int, int]


_Alike = tuple[bytes, tuple[tuple[int, int, int], ...]]
"""Shapes that a node class admits, and its cards."""


def size(instance: Instance, shape: int) -> int:
    """Return the card units of all cards of a task."""
    return instance.shapes[shape].gpus * instance.shapes[shape].units


def unsupported(instance: Instance) -> str | None:
    """Return why ladder rows would not be exact, or None."""
    if instance.zoned:
        return "a task is bound to NUMA zones, which part the cards of a node"
    total = demand(instance)
    wanted = np.flatnonzero(total).tolist()
    for s in wanted:
        task = instance.shapes[s]
        if not task.gpus:
            return "a task takes no card"
        if task.gpus > 1 and task.units < instance.card_units:
            return "a task takes shares of several cards"
    reason = _sizes_unsupported(instance, wanted)
    if reason:
        return reason
    tasks = {s: int(total[s]) for s in wanted}
    # there may be as many classes as nodes, so what depends on cards and filters is worked out once for all alike
    known: dict[_Alike, str | tuple[int, ...]] = {}
    for number, node_class in enumerate(instance.classes):
        alike = _alike(instance, number)
        if alike not in known:
            known[alike] = _cards_unsupported(instance, number, tasks) or _enough(instance, number, tasks)
        found = known[alike]
        if isinstance(found, str):
            return found
        for r, (free, enough) in enumerate(zip(node_class.free, found, strict=True)):
            if free < enough:
                return f"{instance.resources[r]} may bind"
    return None


def _alike(instance: Instance, number: int) -> _Alike:
    """Return what node classes have in common that admit the same shapes on the same cards."""
    return instance.admits_node[:, number].tobytes(), instance.classes[number].cards


def _sizes_unsupported(instance: Instance, wanted: list[int]) -> str | None:
    sizes = sorted({size(instance, s) for s in wanted})
    if sizes and sizes[-1] >= instance.card_units:
        sizes = sorted({*sizes, instance.card_units})
    for small, large in itertools.pairwise(sizes):
        if large % small:
            return f"task sizes do not divide one another: {small} and {large} units of {instance.card_units} a card"
    return None


def _cards_unsupported(instance: Instance, number: int, tasks: dict[int, int]) -> str | None:
    """Return why the cards of a node class are more than blocks, given the tasks wanted of each shape, or None."""
    let_in = [s for s in tasks if instance.admits_node[s, number]]
    cards = _open_cards(instance, number, let_in)
    for s in let_in:
        if len({bool(instance.admits_card[s, kind]) for kind, _, _ in cards}) > 1:
            return "a task may use some cards of a node and not others"
    here = [(instance.shapes[s], tasks[s]) for s in _admitted(instance, number, list(tasks))]
    for kind, units, memory in sorted(set(cards)):
        if _most([(task.memory, task.units, wanted) for task, wanted in here], units) > memory:
            return f"device memory may bind on cards of model {instance.card_kinds[kind].model}"
    return None


def _enough(instance: Instance, number: int, tasks: dict[int, int]) -> tuple[int, ...]:
    """Return how much of each resource is enough for whatever the cards of a node class can hold."""
    here = _admitted(instance, number, list(tasks))
    units = sum(units for _, units, _ in _open_cards(instance, number, list(here)))
    return tuple(
        _most([(instance.shapes[s].demand[r], size(instance, s), tasks[s]) for s in here], units)
        for r in range(len(instance.resources))
    )


def _most(asked: list[tuple[int, int, int]], units: int) -> int:
    """Return what tasks can use at most where `units` are free, from (amount, units, tasks) by shape, rounded up."""
    by_units = max((-(-amount * units // each) for amount, each, _ in asked), default=0)
    return min(by_units, sum(amount * tasks for amount, _, tasks in asked))


def _open_cards(instance: Instance, number: int, shapes: list[int]) -> list[tuple[int, int, int]]:
    """Return the cards of a node class with something free that one of some shapes may use."""
    cards = instance.classes[number].cards
    kinds = {kind for kind, units, _ in cards if units and instance.admits_card[shapes, kind].any()}
    return [card for card in cards if card[1] and card[0] in kinds]


def _admitted(instance: Instance, number: int, wanted: list[int]) -> tuple[int, ...]:
    """Return the shapes that a node class admits on its cards."""
    kinds = list({kind for kind, units, _ in instance.classes[number].cards if units})
    return tuple(s for s in wanted if instance.admits_node[s, number] and bool(instance.admits_card[s, kinds].any()))


def pools(instance: Instance) -> tuple[Pool, ...]:
    """Return the pools of an instance that ladder rows support."""
    wanted = np.flatnonzero(demand(instance)).tolist()
    members: dict[tuple[tuple[int, ...], tuple[int, ...]], list[int]] = {}
    admitted: dict[_Alike, tuple[int, ...]] = {}
    for number, node_class in enumerate(instance.classes):
        alike = _alike(instance, number)
        if alike not in admitted:
            admitted[alike] = _admitted(instance, number, wanted)
        if admitted[alike]:
            members.setdefault((admitted[alike], node_class.limits), []).append(number)
    return tuple(
        Pool(tuple(classes), shapes, limits, _blocks(instance, classes, shapes))
        for (shapes, limits), classes in members.items()
    )


def _blocks(instance: Instance, classes: list[int], shapes: tuple[int, ...]) -> dict[int, int]:
    """Return by size of some shapes how many blocks node classes have free; all shapes may use the same cards."""
    nodes: dict[tuple[tuple[int, int, int], ...], int] = {}
    for number in classes:
        node_class = instance.classes[number]
        nodes[node_class.cards] = nodes.get(node_class.cards, 0) + node_class.size
    full = instance.card_units
    blocks = dict.fromkeys(sorted({size(instance, s) for s in shapes}), 0)
    for cards, times in nodes.items():
        free = [units for kind, units, _ in cards if instance.admits_card[shapes[0], kind]]
        for u in blocks:
            mine = free.count(full) // (u // full) if u >= full else sum(units // u for units in free)
            blocks[u] += mine * times
    return blocks
