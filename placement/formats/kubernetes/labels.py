"""Labels that an import gives to nodes, where a pod says in other words than a selector which nodes it may use."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from placement.snapshot import Node

PREFIX = "gpu-placement.io/"
"""Of the keys of such labels; the value is always ``"true"``."""


class Labels:
    """Sets of nodes that get a label of their own; equal sets have the same.

    Parameters
    ----------
    nodes : sequence of Node
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = nodes
        self.every = frozenset(range(len(nodes)))
        self.index = {node.name: index for index, node in enumerate(nodes)}
        self.cordoned: set[int] = set()
        self._taken = {key for node in nodes for key in node.labels if key.startswith(PREFIX)}
        self._keys: dict[tuple[str, frozenset[int]], str] = {}
        self._numbers: dict[str, int] = {}
        self._values: dict[str, dict[str, frozenset[int]]] = {}

    def narrow(self, selector: dict[str, str], allowed: frozenset[int], stem: str) -> dict[str, str]:
        """Return a selector that also keeps to some nodes; the same where it does so anyway."""
        if self.matching(selector) <= allowed:
            return selector
        return {**selector, self.key(stem, allowed): "true"}

    def key(self, stem: str, nodes: frozenset[int]) -> str:
        """Return the key of the label that just these nodes have."""
        key = self._keys.get((stem, nodes))
        while key is None:
            self._numbers[stem] = self._numbers.get(stem, 0) + 1
            found = f"{PREFIX}{stem}-{self._numbers[stem]}"
            if found not in self._taken:
                key = self._keys[stem, nodes] = found
                self._values[key] = {"true": nodes}
        return key

    def having(self, key: str) -> dict[str, frozenset[int]]:
        """Return the nodes with each value of a label."""
        if key not in self._values:
            found: dict[str, set[int]] = {}
            for index, node in enumerate(self.nodes):
                if key in node.labels:
                    found.setdefault(node.labels[key], set()).add(index)
            self._values[key] = {value: frozenset(nodes) for value, nodes in found.items()}
        return self._values[key]

    def matching(self, selector: dict[str, str]) -> frozenset[int]:
        """Return the nodes that a selector admits."""
        found = self.every
        for key, value in selector.items():
            found &= self.having(key).get(value, frozenset())
        return found

    def named(self) -> tuple[Node, ...]:
        """Return the nodes with the labels that were given out, and cordoned where they have to be."""
        added: dict[int, dict[str, str]] = {}
        for (_, nodes), key in self._keys.items():
            for index in nodes:
                added.setdefault(index, {})[key] = "true"
        changed = []
        for index, node in enumerate(self.nodes):
            if index in added:
                node = msgspec.structs.replace(node, labels={**node.labels, **added[index]})
            if index in self.cordoned and not node.cordoned:
                node = msgspec.structs.replace(node, cordoned=True)
            changed.append(node)
        return tuple(changed)
