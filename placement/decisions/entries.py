"""Entries of a snapshot that stand for several nodes or cards, where some of these become different from the others."""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile

import msgspec

from placement.snapshot import Gpu, Node

Spot = tuple[str, int]
"""A card: name of the node and index."""

Change = Callable[[Spot, Gpu], Gpu]
"""What becomes of a card, given the entry that it is in."""


def node_names(node: Node) -> list[str]:
    """Return the names of the nodes that an entry stands for."""
    return [node.name] if node.count == 1 else [f"{node.name}-{copy}" for copy in range(node.count)]


def changed(node: Node, change: Change) -> list[Node]:
    """Return the entries of the same nodes, in the same order, with changed cards.

    Copies have numbers from 0 on, so those at the front that stay alike stay counted, and what follows is listed one
    by one. Where all are alike after it there is one entry.
    """
    names = node_names(node)
    cards = [_changed_cards(name, node.gpus, change) for name in names]
    alike = sum(1 for _ in takewhile(lambda one: one == cards[0], cards))
    # a single node is not numbered, so what is left of an entry has the name of its copy
    name = node.name if alike > 1 else names[0]
    first = msgspec.structs.replace(node, name=name, count=alike, gpus=cards[0])
    rest = zip(names[alike:], cards[alike:], strict=True)
    return [first, *(msgspec.structs.replace(node, name=name, count=1, gpus=gpus) for name, gpus in rest)]


def _changed_cards(name: str, gpus: tuple[Gpu, ...], change: Change) -> tuple[Gpu, ...]:
    """Return the entries of a node's cards; what was one entry is parted where its cards differ."""
    found: list[Gpu] = []
    card = 0
    for gpu in gpus:
        first = len(found)
        for _ in range(gpu.count):
            one = change((name, card), gpu)
            if len(found) > first and msgspec.structs.replace(found[-1], count=1) == msgspec.structs.replace(
                one, count=1
            ):
                found[-1] = msgspec.structs.replace(found[-1], count=found[-1].count + 1)
            else:
                found.append(msgspec.structs.replace(one, count=1))
            card += 1
    return tuple(found)
