"""Names of cards that pods say: groups of pods that share a card have a name, and the card has it then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from placement.snapshot import Node


def named(nodes: Sequence[Node], names: Mapping[tuple[str, int], str]) -> tuple[Node, ...]:
    """Return nodes with the names of cards, by node and index; the others are called by their index.

    A node that names its cards already keeps these names.
    """
    found: dict[str, dict[int, str]] = {}
    for (node, card), name in names.items():
        found.setdefault(node, {})[card] = name
    return tuple(node if node.devices or node.name not in found else _named(node, found[node.name]) for node in nodes)


def _named(node: Node, names: Mapping[int, str]) -> Node:
    count = sum(gpu.count for gpu in node.gpus)
    devices = [names.get(card, str(card)) for card in range(count)]
    if len(set(devices)) != count:
        return node  # one name for two cards says nothing
    return msgspec.structs.replace(node, devices=tuple(devices))
