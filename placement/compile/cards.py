"""Node entries by what they provide, and the cards in them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from fractions import Fraction
from operator import attrgetter

import numpy as np

from placement import units
from placement.compile.work import encode
from placement.hardware.sharing import most_clients, slowdown
from placement.index import numbered
from placement.instance import Bools, CardKind, Ints
from placement.rules import CARD_FILTERS, DIMENSIONS
from placement.scale import Capacity, Scale
from placement.snapshot import Gpu, Node

_BESIDES = {"name", "count", "position", "nvlink_domain", "labels", "links"}
"""What no dimension and no card filter reads of a node. It is what nodes of one make differ in."""
_PROVIDES = attrgetter(*(field for field in Node.__struct_fields__ if field not in _BESIDES))


class NodeKinds:
    """Node entries by what they provide, numbered by first appearance.

    Attributes
    ----------
    of_spec : int array
        Kind of each node entry.
    nodes : list of Node
        The first entry of each kind.
    capacity : list of mapping
        What a node of each kind provides.
    counts : list of int
        Nodes of each kind.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.of_spec, first = numbered(encode(_PROVIDES(node)) for node in nodes)
        self.nodes = [nodes[i] for i in first.tolist()]
        self.capacity: list[Capacity] = [_capacity(node) for node in self.nodes]
        counts = np.zeros(len(self.nodes), dtype=np.int64)
        np.add.at(counts, self.of_spec, np.array([node.count for node in nodes], dtype=np.int64))
        self.counts: list[int] = counts.tolist()


def _capacity(node: Node) -> Capacity:
    capacity: dict[str, Fraction | None] = {}
    for dimension in DIMENSIONS:
        capacity.update(dimension.capacity(node))
    return capacity


class Cards:
    """Card kinds by what card filters and capacity see of them, and the cards of each node kind.

    Attributes
    ----------
    kinds : list of CardKind
    keys : list of tuple
        What the card filters read of each card kind.
    unlimited : int
        Device memory of a card without a figure for it: more than all demand.
    counts : int array
        Cards of each node kind.
    start : int array
        Where the cards of each node kind begin in what follows.
    kind : int array
        Card kind, by device index.
    device_memory : list of Fraction or None
        Bytes of each card, likewise.
    mig : bool array
        Whether it is in MIG mode, likewise.
    """

    def __init__(self, nodes: Sequence[Node], scale: Scale, unlimited: int) -> None:
        self.scale = scale
        self.unlimited = unlimited
        self.kinds: list[CardKind] = []
        self.keys: list[tuple[Hashable, ...]] = []
        self._index: dict[Hashable, int] = {}
        self._owned: dict[tuple[int, int], int] = {}
        kind: list[int] = []
        mig: list[bool] = []
        self.device_memory: list[Fraction | None] = []
        for node in nodes:
            for gpu in node.gpus:
                kind += [self._number(gpu, node)] * gpu.count
                mig += [gpu.mig_enabled] * gpu.count
                self.device_memory += [None if gpu.memory is None else units.exact(gpu.memory)] * gpu.count
        self.kind: Ints = np.array(kind, dtype=np.int64)
        self.mig: Bools = np.array(mig, dtype=np.bool_)
        self.counts: Ints = np.array([sum(gpu.count for gpu in node.gpus) for node in nodes], dtype=np.int64)
        self.start: Ints = np.cumsum(self.counts) - self.counts

    def owned(self, kind: int, owner: int) -> int:
        """Return the kind of a card that is somebody's already, who alone may join what runs there."""
        index = self._owned.setdefault((kind, owner), len(self.kinds))
        if index == len(self.kinds):
            self.kinds.append(self.kinds[kind])
            self.keys.append(self.keys[kind])
        return index

    def kinds_of(self, node_kind: int) -> list[int]:
        """Return the card kind of each card of a node kind, by device index."""
        first = int(self.start[node_kind])
        kinds: list[int] = self.kind[first : first + int(self.counts[node_kind])].tolist()
        return kinds

    def memory_of(self, node_kind: int) -> list[Fraction | None]:
        """Return the bytes of each card of a node kind, by device index."""
        first = int(self.start[node_kind])
        return self.device_memory[first : first + int(self.counts[node_kind])]

    def _number(self, gpu: Gpu, node: Node) -> int:
        memory = self.unlimited
        if gpu.memory is not None:
            memory = min(memory, math.floor(units.exact(gpu.memory) / self.scale.memory))
        keys = tuple(rule.card_key(gpu, node) for rule in CARD_FILTERS)
        clients = most_clients(gpu, node.cuda)
        slower = None if gpu.mig_enabled or gpu.sharing == "exclusive" else slowdown(gpu)
        index = self._index.setdefault((keys, memory, clients, slower), len(self.kinds))
        if index == len(self.kinds):
            self.kinds.append(CardKind(gpu.model, memory, gpu.health == "healthy", clients, slower))
            self.keys.append(keys)
        return index
