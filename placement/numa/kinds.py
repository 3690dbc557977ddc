"""What nodes with equal lists of NUMA zones have in common."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from placement.compile.zones import KindZones
from placement.snapshot import Node

RESOURCES = ("cpu", "memory", "nics")
"""What zones count."""


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """The zones of nodes that list equal ones, by their place in the file.

    Attributes
    ----------
    ids : tuple of int
        The operating system's number of each zone.
    counted : KindZones
        The zone of each card, and what each zone has of `RESOURCES`.
    nics : tuple of (str, int, int)
        Name, zone and PCIe switch of each NIC in the order of the file; switch -1 where it is below none.
    rails : tuple of str
        Rail of each NIC.
    switch : dict of int to int
        PCIe switch of each card that is below one; switches are numbered in the order of the file.
    cpus : tuple of str
        The CPU list of each zone.
    """

    ids: tuple[int, ...]
    counted: KindZones
    nics: tuple[tuple[str, int, int], ...]
    rails: tuple[str, ...]
    switch: dict[int, int]
    cpus: tuple[str, ...]

    @property
    def card(self) -> tuple[int, ...]:
        """Zone of each card, by device index."""
        return self.counted.zone

    @property
    def capacity(self) -> tuple[tuple[Fraction, ...] | None, ...]:
        """For each of `RESOURCES` what each zone has; None where zones do not count it."""
        return self.counted.capacity

    @classmethod
    def of(cls, node: Node) -> Kind:
        """Return the zones of a node that lists some."""
        switches = [switch for zone in node.zones for switch in zone.switches]
        below = {nic: number for number, switch in enumerate(switches) for nic in switch.nics}
        return cls(
            ids=tuple(zone.id for zone in node.zones),
            counted=KindZones.of(node, RESOURCES),
            nics=tuple(
                (nic.name, number, below.get(nic.name, -1))
                for number, zone in enumerate(node.zones)
                for nic in zone.nics
            ),
            rails=tuple(nic.rail for zone in node.zones for nic in zone.nics),
            switch={card: number for number, switch in enumerate(switches) for card in switch.gpus},
            cpus=tuple(zone.cpus for zone in node.zones),
        )
