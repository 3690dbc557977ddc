"""ResourceSlice, DeviceClass and ResourceClaim: cards, what claims ask for, and what they have."""

from __future__ import annotations

from placement.formats.dra import slices
from placement.formats.dra.claims import Claims, exclusive
from placement.formats.kubernetes.objects import Objects
from placement.formats.kubernetes.parts import Devices
from placement.formats.ledger import Ledger


def read(objects: Objects, ledger: Ledger) -> Devices:
    """Return what the objects of dynamic resource allocation say.

    Raises
    ------
    InputError
        If a pool lists a device twice, a device is allocated twice, or an amount is none.
    """
    inventory = slices.read(objects, ledger)
    reader = Claims(objects, inventory, ledger)
    claims = reader.claims(objects)
    exclusive(claims, lambda name: f"claim {name}", ledger)
    for what, number in (
        ("nodes with cards of ResourceSlices", len(inventory.by_node)),
        ("ResourceClaims", len(claims)),
    ):
        if number:
            ledger.read(what, count=number)
    return Devices(
        by_node=inventory.by_node,
        claims=claims,
        templates=reader.templates(objects),
        drivers=inventory.drivers,
        resources=reader.resources(),
    )
