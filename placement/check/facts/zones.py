"""NUMA zones of nodes: what each kind of node has in which zone, and within how few of them an empty one holds a task.

A task that is restricted lies within as few zones as an empty node like this one needs for it; one of a single zone
lies in one. Cards, CPU, memory and NICs count, of which zones state CPU and memory or leave them to the node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from placement.check.facts.amounts import by_zone
from placement.check.facts.kinds import Shape
from placement.snapshot import Node


@dataclass(frozen=True, slots=True, eq=False)
class Zoning:
    """The zones of a kind of node; a zone is known by its place in the file.

    Attributes
    ----------
    ids : tuple of int
    card : tuple of int
        Zone of each card, by device index; -1 where no zone lists it.
    nic : dict of str to int
        Zone of each NIC by its name.
    there : dict of str to (tuple of int)
        What each zone has of the resources that zones count.
    """

    ids: tuple[int, ...]
    card: tuple[int, ...]
    nic: dict[str, int]
    there: dict[str, tuple[int, ...]]

    @property
    def places(self) -> range:
        """All zones."""
        return range(len(self.ids))

    def counts(self, shape: Shape) -> bool:
        """Return whether a task asks for anything that zones count."""
        return shape.gpus > 0 or any(resource in shape.demand for resource in self.there)

    def fewest(self, shape: Shape, usable: Sequence[bool]) -> int | None:
        """Return the fewest zones of an empty node that hold a task, given which cards it may use; None if none do."""
        parts = self._parts(shape, usable)
        for size in range(1, len(self.ids) + 1):
            for some in combinations(self.places, size):
                if all(sum(there[zone] for zone in some) >= asked for _, asked, there in parts):
                    return size
        return None

    def largest(self, shape: Shape, usable: Sequence[bool]) -> dict[str, tuple[int, int]]:
        """Return what a task asks for that no single zone has, and the most that one has, by resource or "cards"."""
        parts = self._parts(shape, usable)
        return {name: (asked, max(there)) for name, asked, there in parts if asked > max(there)}

    def _parts(self, shape: Shape, usable: Sequence[bool]) -> list[tuple[str, int, tuple[int, ...]]]:
        """Return what a task asks for that zones count, and what each zone of an empty node has of it."""
        cards = [0] * len(self.ids)
        for zone, fine in zip(self.card, usable, strict=True):
            cards[zone] += bool(fine and zone >= 0)
        amounts = [(name, shape.demand.get(name, 0), there) for name, there in self.there.items()]
        return [("cards", shape.gpus, tuple(cards)), *amounts]


def zoning_of(node: Node, scale: dict[str, int]) -> Zoning | None:
    """Return the zones of a node in whole numbers, or None where it lists none."""
    if not node.zones:
        return None
    of_card = {card: place for place, zone in enumerate(node.zones) for card in zone.gpus}
    return Zoning(
        tuple(zone.id for zone in node.zones),
        tuple(of_card.get(device, -1) for device in range(sum(gpu.count for gpu in node.gpus))),
        {nic.name: place for place, zone in enumerate(node.zones) for nic in zone.nics},
        {name: tuple(int(part * scale[name]) for part in parts) for name, parts in by_zone(node).items()},
    )
