"""Node objects: what a node has, its cards, and where it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from placement.formats.kubernetes.objects import Objects
from placement.formats.kubernetes.parts import Addition, Cluster, Devices, Zones
from placement.formats.ledger import Ledger
from placement.formats.options import Options


def read(
    objects: Objects,
    devices: Devices,
    zones: Mapping[str, Zones],
    additions: Sequence[Addition],
    options: Options,
    ledger: Ledger,
) -> Cluster:
    """Return the nodes, and what the resources that pods ask for stand for on them."""
    return Cluster(())
