"""Where in their nodes the plan says that new tasks lie: the columns of zones, amounts by zone, and NICs.

Rows that say the same of like tasks on like nodes are looked at once. Amounts of a plan may be any quantities, so they
are fractions of the judge's whole numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from placement import units
from placement.check.case.filtered import Filters
from placement.check.exact import Bools, Ints
from placement.check.facts.amounts import NICS
from placement.check.facts.facts import Facts
from placement.check.facts.kinds import Shape
from placement.check.facts.uses import Rows
from placement.check.facts.zones import Zoning
from placement.plan import Tasks
from placement.units import Quantity

COLUMNS = ("zones", "cpu", "memory", "nics")


@dataclass(frozen=True, slots=True, eq=False)
class Lie:
    """What the plan says of one task, or of several alike.

    Attributes
    ----------
    kind : int
        Of the node.
    shape : Shape
    cards : tuple of int
        Devices.
    zones : tuple of int
        Numbers of zones as the plan lists them.
    amounts : dict of str to (tuple of Quantity)
        As the plan lists them.
    nics : tuple of str
        Names as the plan lists them.
    """

    kind: int
    shape: Shape
    cards: tuple[int, ...]
    zones: tuple[int, ...]
    amounts: dict[str, tuple[Quantity, ...]]
    nics: tuple[str, ...]

    def places(self, zoning: Zoning) -> list[int]:
        """Return the places of the listed zones that the node has."""
        return [zoning.ids.index(zone) for zone in self.zones if zone in zoning.ids]

    def taken(self, zoning: Zoning, scale: dict[str, int]) -> dict[str, list[Fraction]]:
        """Return what is taken of each zone, by resource, as far as the plan can be understood."""
        found = {resource: [Fraction(0)] * len(zoning.ids) for resource in zoning.there}
        for resource, listed in self.amounts.items():
            if resource in found:
                for zone, quantity in zip(self.zones, listed, strict=False):
                    amount = quantity_of(quantity)
                    if zone in zoning.ids and amount is not None:
                        found[resource][zoning.ids.index(zone)] += amount * scale[resource]
        for name in dict.fromkeys(self.nics):
            if name in zoning.nic:
                found[NICS][zoning.nic[name]] += 1
        return found


def quantity_of(quantity: Quantity) -> Fraction | None:
    """Return an amount of a plan; None for what is none, such as a negative one."""
    try:
        return units.exact(quantity)
    except ValueError:
        return None


class Lying:
    """What the plan says of the tasks that zones or NICs are anything to.

    Attributes
    ----------
    rows : int array
        Tasks on nodes that list zones, tasks that are bound, and those of which the plan says anything.
    number : int array
        Which of `lies` is what the plan says of each of them.
    lies : list of Lie
    absent : set of str
        Columns that the plan does not have.
    """

    def __init__(self, facts: Facts, rows: Rows, filters: Filters, tasks: Tasks) -> None:
        self.facts, self._filters = facts, filters
        columns = {name: getattr(tasks, name) for name in COLUMNS}
        self.absent = {name for name, column in columns.items() if not isinstance(column, list)}
        self.uneven = {
            name: len(column)
            for name, column in columns.items()
            if isinstance(column, list) and len(column) != len(tasks)
        }
        self.rows: Ints = np.zeros(0, dtype=np.int64)
        self.number: Ints = self.rows
        self.lies: list[Lie] = []
        self._fewest: dict[tuple[int, int], int | None] = {}
        said = {name: column for name, column in columns.items() if name not in {*self.absent, *self.uneven}}
        touched = self._touched(rows, said)
        if touched.any():
            self._look(rows, np.flatnonzero(touched), said)

    def _touched(self, rows: Rows, said: dict[str, list[Sequence[object]]]) -> Bools:
        facts = self.facts
        bound = np.array([bool(shape.policy or NICS in shape.demand) for shape in facts.shapes], dtype=np.bool_)
        zoned = np.array([bool(kind.node.zones) for kind in facts.kinds], dtype=np.bool_)
        touched: Bools = zoned[facts.kind[rows.spec]] | bound[facts.shape_of_leaf[rows.leaf]]
        for column in said.values():
            touched |= np.fromiter(map(bool, column), dtype=np.bool_, count=len(column))[rows.number]
        return touched

    def _look(self, rows: Rows, which: Ints, said: dict[str, list[Sequence[object]]]) -> None:
        facts = self.facts
        begin = np.searchsorted(rows.row, np.arange(len(rows) + 1)).tolist()
        devices = rows.device.tolist()
        plan = rows.number.tolist()
        shapes = facts.shape_of_leaf[rows.leaf].tolist()
        kinds = facts.kind[rows.spec].tolist()
        listed = [said.get(name) for name in COLUMNS]
        known: dict[object, int] = {}
        number = []
        for row in which.tolist():
            place = plan[row]
            parts = tuple([() if column is None else tuple(column[place]) for column in listed])
            key = kinds[row], shapes[row], tuple(devices[begin[row] : begin[row + 1]]), parts
            found = known.setdefault(key, len(known))
            number.append(found)
            if found == len(self.lies):
                self.lies.append(_lie(facts, *key))
        self.rows, self.number = which, np.array(number, dtype=np.int64)

    def zoning(self, lie: Lie) -> Zoning | None:
        """Return the zones of a task's node."""
        return self.facts.zonings[lie.kind]

    def fewest(self, lie: Lie) -> int | None:
        """Return within how few zones an empty node holds such a task; None where it lists none or they never do."""
        key = lie.kind, lie.shape.number
        if key not in self._fewest:
            zoning = self.zoning(lie)
            usable = self._filters.usable(lie.shape, self.facts.kinds[lie.kind])
            self._fewest[key] = None if zoning is None else zoning.fewest(lie.shape, usable.tolist())
        return self._fewest[key]

    @cached_property
    def taken(self) -> list[dict[str, list[Fraction]]]:
        """What is taken of each zone by such a task, by resource; nothing where the node lists none."""
        found = []
        for lie in self.lies:
            zoning = self.zoning(lie)
            found.append({} if zoning is None else lie.taken(zoning, self.facts.scale))
        return found


def _lie(facts: Facts, kind: int, shape: int, cards: tuple[int, ...], parts: tuple[tuple[object, ...], ...]) -> Lie:
    zones, cpu, memory, nics = parts
    amounts = {"cpu": cpu, "memory": memory}
    return Lie(kind, facts.shapes[shape], cards, zones, amounts, nics)  # type: ignore[arg-type]
