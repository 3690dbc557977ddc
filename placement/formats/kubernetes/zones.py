"""NodeResourceTopology: the NUMA zones of nodes."""

from __future__ import annotations

from collections.abc import Mapping

from placement.formats.kubernetes.objects import Objects
from placement.formats.kubernetes.parts import Zones
from placement.formats.ledger import Ledger


def read(objects: Objects, ledger: Ledger) -> Mapping[str, Zones]:
    """Return what the objects say of zones, by node."""
    return {}
