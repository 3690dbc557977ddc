"""What a set of cards is worth by the paths between them.

A pair of cards scores 100 for each NVLink lane between them, else by the PCIe path: PIX 50, PXB 40, PHB 30, NODE 20,
SYS 10. A pair that the node does not list counts as SYS. A set scores the sum of its pairs. The scale is that of the
best-effort policy of NVIDIA's go-gpuallocator (``gpuallocator/besteffort_policy.go``, Apache-2.0), whose table ends at
12 lanes; here every lane counts.

Where a node lists NUMA zones and no paths, a pair below one PCIe switch counts as PIX, one in one zone as NODE and any
other as SYS, as ``nvidia-smi topo -m`` would say of them. That decides which cards a task gets; a plan states scores of
paths that are listed alone. Where paths are listed, of choices that score the same that with more pairs in one zone is
taken.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from placement.instance import Assignment, Bools, Instance, Ints
from placement.snapshot import Link, Node, NumaZone

LANE = 100
"""Score of one NVLink lane."""
BUS = {"PIX": 50, "PXB": 40, "PHB": 30, "NODE": 20, "SYS": 10}
"""Score of a pair of cards without NVLink between them."""


_Look = tuple[tuple[Link, ...], tuple[tuple[tuple[int, ...], tuple[tuple[int, ...], ...]], ...], int]
"""What tables follow from: paths, the cards of each zone and of each switch of it, and the number of cards."""


def table(links: tuple[Link, ...], cards: int) -> Ints:
    """Return the score of each pair of a node's cards, by device index; 0 of a card with itself."""
    scores = np.full((cards, cards), BUS["SYS"], dtype=np.int64)
    np.fill_diagonal(scores, 0)
    for link in links:
        score = LANE * link.width if link.kind == "NVLINK" else BUS[link.kind]
        scores[link.a, link.b] = scores[link.b, link.a] = score
    return scores


def by_zones(zones: tuple[NumaZone, ...], cards: int) -> Ints:
    """Return the same for a node that lists NUMA zones alone."""
    scores = np.where(same_zone(zones, cards), BUS["NODE"], BUS["SYS"]).astype(np.int64)
    for zone in zones:
        for switch in zone.switches:
            scores[np.ix_(switch.gpus, switch.gpus)] = BUS["PIX"]
    np.fill_diagonal(scores, 0)
    return scores


def same_zone(zones: tuple[NumaZone, ...], cards: int) -> Bools:
    """Return which pairs of a node's cards, by device index, are in one NUMA zone."""
    zone_of = np.arange(cards) - cards  # a card in no zone is near itself alone
    for number, zone in enumerate(zones):
        zone_of[list(zone.gpus)] = number
    return np.asarray(zone_of[:, None] == zone_of)


def ordered(instance: Instance, nodes: Ints) -> Bools:
    """Return on which of some nodes cards of one kind may be nearer one another than others."""
    return _where(instance, nodes, lambda node: bool(node.links or len(node.zones) > 1))


def linked(instance: Instance, nodes: Ints) -> Bools:
    """Return which of some nodes list paths between their cards."""
    return _where(instance, nodes, lambda node: bool(node.links))


def _where(instance: Instance, nodes: Ints, which: Callable[[Node], bool]) -> Bools:
    entries, place = np.unique(instance.node_spec[nodes], return_inverse=True)
    chosen = np.array([which(instance.snapshot.nodes[entry]) for entry in entries.tolist()], dtype=np.bool_)
    return np.asarray(chosen[place.reshape(-1)], dtype=np.bool_)


def set_scores(instance: Instance, assignment: Assignment, gpus: list[list[int]]) -> list[int | None]:
    """Return what the cards of each task score as a set.

    Parameters
    ----------
    instance : Instance
    assignment : Assignment
    gpus : list of list of int
        Device indices of each task.

    Returns
    -------
    list of int or None
        None for tasks with fewer than two cards and on nodes that list no paths; empty if that is every task.
    """
    wide = (np.diff(assignment.offset) > 1) & (assignment.node < instance.hosts)  # a MIG instance is no set of cards
    rows = np.flatnonzero(wide & linked(instance, assignment.node))
    if not len(rows):
        return []
    scores: list[int | None] = [None] * len(assignment)
    tables = Tables(instance)
    known: dict[tuple[int, tuple[int, ...]], int] = {}
    for row, node in zip(rows.tolist(), assignment.node[rows].tolist(), strict=True):
        pairs, devices = tables.of(node), tuple(gpus[row])
        key = (id(pairs), devices)
        if key not in known:
            known[key] = int(pairs[np.ix_(devices, devices)].sum()) // 2
        scores[row] = known[key]
    return scores


class Tables:
    """The tables of a snapshot's nodes; equal ones are one object."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._known: dict[_Look, tuple[Ints, Bools | None]] = {}
        self._of_entry: dict[int, tuple[Ints, Bools | None]] = {}

    def of(self, node: int) -> Ints:
        """Return the table of a node."""
        return self._both(node)[0]

    def zones(self, node: int) -> Bools | None:
        """Return which pairs are in one NUMA zone, where a node lists paths too and its cards are in several."""
        return self._both(node)[1]

    def _both(self, node: int) -> tuple[Ints, Bools | None]:
        entry = int(self._instance.node_spec[node])
        if entry not in self._of_entry:
            listed = self._instance.snapshot.nodes[entry]
            # what else zones have does not matter here, and few nodes differ in this
            zones = tuple((zone.gpus, tuple(switch.gpus for switch in zone.switches)) for zone in listed.zones)
            key = (listed.links, zones, len(self._instance.classes[self._instance.node_class[node]].cards))
            if key not in self._known:
                self._known[key] = _tables(listed, key[2])
            self._of_entry[entry] = self._known[key]
        return self._of_entry[entry]


def _tables(node: Node, cards: int) -> tuple[Ints, Bools | None]:
    if not node.zones:
        return table(node.links, cards), None
    if not node.links:
        return by_zones(node.zones, cards), None
    same = same_zone(node.zones, cards)
    return table(node.links, cards), None if same.all() else same
