"""Capacity and allocatable of a node: what there is of each resource, and how much of it works."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from placement.errors import InputError
from placement.formats.kubernetes.objects import Item
from placement.formats.ledger import Ledger
from placement.snapshot.report import show
from placement.units import Quantity, exact

PLAIN = ("cpu", "memory", "pods")
"""Resources that nodes have fields for."""

VOLUMES = "attachable-volumes-"
"""Start of the names of how many volumes a node takes."""


@dataclass(frozen=True, slots=True)
class Amounts:
    """Resources of a node.

    Attributes
    ----------
    item : Item
        The node, for messages.
    allocatable : mapping of str to quantity
        As the file writes it; each has been checked.
    capacity : mapping of str to quantity
    """

    item: Item[Any]
    allocatable: Mapping[str, Quantity]
    capacity: Mapping[str, Quantity]

    def units(self, name: str, ledger: Ledger) -> tuple[int, int]:
        """Return how many units of a device work, and how many there are.

        Raises
        ------
        InputError
            If a number is not whole.
        """
        working, there = (self._whole(field, name) for field in ("allocatable", "capacity"))
        if there < working:
            if name in self.capacity:
                ledger.contradiction("capacity of a device below its allocatable", "allocatable", self.item.where)
            there = working
        return working, there

    def has(self, name: str) -> bool:
        """Return whether the node names a resource, be it with 0 units."""
        return name in self.allocatable or name in self.capacity

    def names(self) -> list[str]:
        """Return the resources of which there are units, working or not."""
        names = dict.fromkeys([*self.allocatable, *self.capacity])
        return [name for name in names if any(exact(side.get(name, 0)) for side in (self.allocatable, self.capacity))]

    def _whole(self, field: str, name: str) -> int:
        value = exact(getattr(self, field).get(name, 0))
        if value.denominator != 1:
            raise _error(self.item, field, name, f"{show(str(value))} devices, expected a whole number")
        return int(value)


def amounts(
    item: Item[Any], allocatable: dict[str, Quantity] | None, capacity: dict[str, Quantity] | None, ledger: Ledger
) -> Amounts:
    """Return the resources of a node, each quantity checked.

    Raises
    ------
    InputError
        If one is no quantity, negative or too large.
    """
    for field, found in (("allocatable", allocatable), ("capacity", capacity)):
        for name, quantity in (found or {}).items():
            if not name or not name.isprintable():
                raise _error(item, field, name, f"a resource is called {show(name)}")
            try:
                exact(quantity)
            except (ValueError, OverflowError, ZeroDivisionError) as why:
                near = quantity.removesuffix("B") if isinstance(quantity, str) else ""
                remedy = f"did you mean {near}?" if near and near != quantity else "correct the amount"
                raise _error(item, field, name, str(why), remedy) from None
    if allocatable is None and capacity is not None:
        ledger.assumed("a node states no allocatable", "all of its capacity, as the kubelet does", item.where)
        allocatable = capacity
    # no capacity: all that there is works
    return Amounts(item, allocatable or {}, (allocatable if capacity is None else capacity) or {})


def fields(found: Amounts, ledger: Ledger) -> tuple[Quantity | None, Quantity | None, int | None]:
    """Return CPU, memory and pods that tasks may have; None for what the node does not state."""
    values = {name: found.allocatable.get(name) for name in PLAIN}
    for name, value in values.items():
        if value is None:
            ledger.assumed(f"a node states no {name}", f"{name} does not limit it", found.item.where)
    memory, pods = values["memory"], values["pods"]
    if memory is not None and exact(memory).denominator != 1:
        ledger.assumed("memory in thousandths of a byte", "read as it is written", found.item.where)
    return values["cpu"], memory, None if pods is None else min(math.floor(exact(pods)), 2**53)


def countable(found: Amounts, taken: frozenset[str], ledger: Ledger) -> dict[str, Quantity]:
    """Return the other resources that pods may ask for, but for those taken for cards and those there is nothing of."""
    extended: dict[str, Quantity] = {}
    for name, quantity in found.allocatable.items():
        if name in PLAIN or name in taken or exact(quantity) == Fraction(0):
            continue
        if name.startswith(VOLUMES):
            ledger.ignored("how many volumes nodes take", "a snapshot has no volumes", found.item.where)
            continue
        extended[name] = quantity
    return extended


def _error(item: Item[Any], field: str, name: str, what: str, remedy: str = "correct the amount") -> InputError:
    path = f"{item.path}.status.{field}.{name}".removeprefix(".")
    return InputError.one(what, remedy, path=path, source=item.file)
