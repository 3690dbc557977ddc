"""ResourceSlice, DeviceClass and ResourceClaim: cards, what claims ask for, and what they have."""

from __future__ import annotations

from placement.formats.kubernetes.objects import Objects
from placement.formats.kubernetes.parts import Devices
from placement.formats.ledger import Ledger


def read(objects: Objects, ledger: Ledger) -> Devices:
    """Return what the objects of dynamic resource allocation say."""
    return Devices()
