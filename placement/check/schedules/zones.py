"""NUMA zones at every moment: bound tasks lie in zones as their policy says, and these hold all that is within them.

A schedule says of bound tasks alone in which zones they lie. Each takes what it asks for from there, and all others
from wherever something is left. So the zones of a node hold its tasks if and only if no set of zones has to hold more
than it has, tasks that lie within it alone (Hall's theorem), and the node as a whole has enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import msgspec

from placement.check.facts.amounts import NICS
from placement.check.facts.kinds import NodeKind, Shape
from placement.check.facts.names import name_of
from placement.check.facts.zones import Zoning
from placement.check.in_nodes.numa import RULE
from placement.check.in_nodes.zone_loads import known_of
from placement.check.loads.capacity import amount, label
from placement.check.schedules.case import Timed, seconds
from placement.check.schedules.moments import moments
from placement.check.violation import Violation, integer, many, show

_Part = tuple[int, str, int, bool]
"""Zones as bits, a resource, what is taken of it within them, and whether by new work."""


def judge(case: Timed) -> Iterator[Violation]:
    """Yield every task that lies in zones as it may not, and zones that have to hold too much at a time."""
    column = case.schedule.tasks.zones
    if not any(case.facts.zonings) and not isinstance(column, list) and not any(s.policy for s in case.facts.shapes):
        return
    zones = _Zones(case)
    found = list(zones.tasks())
    yield from found
    if not found:
        yield from zones.moments()


class _Zones:
    def __init__(self, case: Timed) -> None:
        self.case, self.facts = case, case.facts
        column = case.schedule.tasks.zones
        self.listed = [] if isinstance(column, msgspec.UnsetType) else column
        self.shape = [self.facts.shapes[one] for one in self.facts.shape_of_leaf[case.rows.leaf].tolist()]
        self.kind = [self.facts.kinds[one] for one in self.facts.kind[case.rows.spec].tolist()]
        self._fewest: dict[tuple[int, int], int | None] = {}

    def zones(self, row: int) -> list[int]:
        """Return the zones that are listed of a task."""
        number = int(self.case.rows.number[row])
        return self.listed[number] if number < len(self.listed) else []

    def fewest(self, shape: Shape, kind: NodeKind) -> int | None:
        """Return within how few zones an empty node holds such a task; None where they never do."""
        key = shape.number, kind.number
        if key not in self._fewest:
            zoning = self.facts.zonings[kind.number]
            usable = self.case.new.filters.usable(shape, kind).tolist()
            self._fewest[key] = None if zoning is None else zoning.fewest(shape, usable)
        return self._fewest[key]

    # --- one task ------------------------------------------------------------------------------------------------

    def tasks(self) -> Iterator[Violation]:
        """Yield what is wrong with the zones of each task that does not just go on."""
        devices = self.case.new.rows
        for place, (row, number) in enumerate(zip(self.case.fresh.nonzero()[0].tolist(), devices.number, strict=True)):
            if self.shape[row].policy or self.zones(row):
                for what in self._wrong(row, devices.devices(place)):
                    name = show(self.case.new.node_name(place))
                    yield Violation(RULE, f"tasks[{number}]", f"{name}: {what}")

    def _wrong(self, row: int, cards: list[int]) -> Iterator[str]:
        shape, kind, zones = self.shape[row], self.kind[row], self.zones(row)
        zoning = self.facts.zonings[kind.number]
        if zoning is None:
            yield "the node lists no NUMA zones, " + (
                f"and the task is {shape.policy}" if shape.policy else "and the schedule lists some of it"
            )
            return
        if not shape.policy:
            yield "NUMA zones are listed of a task that is bound to none"
            return
        if any(zone not in zoning.ids for zone in zones):
            there, listed = (", ".join(map(integer, ids)) for ids in (zoning.ids, zones))
            yield f"it has NUMA zones {there}, listed are {listed}"
            return
        if any(one >= other for one, other in pairwise(map(zoning.ids.index, zones))):
            yield f"NUMA zones {', '.join(map(integer, zones))} are not listed in the order of the file, and each once"
            return
        fewest = self.fewest(shape, kind)
        if fewest is None:
            yield f"the task is {shape.policy}, and all zones of an empty node like this one do not hold it"
            return
        most = 1 if shape.policy == "single-numa-node" else fewest
        if len(zones) > most:
            yield f"the task is {shape.policy} and lies in {many(len(zones), 'NUMA zone')}, at most {most}"
        if not zones and most < len(zoning.ids) and zoning.counts(shape):
            yield f"the task is {shape.policy}, and no NUMA zone is listed"
        if zones and any(zoning.ids[zoning.card[card]] not in zones for card in cards):
            yield "a card of the task is in a NUMA zone that is not listed"

    # --- all tasks of a node -------------------------------------------------------------------------------------

    def moments(self) -> Iterator[Violation]:
        """Yield zones that have to hold more than they have, with what starts."""
        found = moments(self.case)
        known: dict[tuple[int, tuple[_Part, ...]], tuple[str, str] | None] = {}
        for time, rows in zip(found.time, found.rows, strict=True):
            kind = self.kind[rows[0]]
            zoning = self.facts.zonings[kind.number]
            if zoning is None or len(zoning.ids) == 1:
                continue
            parts = tuple(sorted(part for row in rows for part in self._parts(row, zoning)))
            key = kind.number, parts
            if key not in known:
                known[key] = self._over(zoning, parts)
            wrong = known[key]
            if wrong is not None:
                spec = int(self.case.rows.spec[rows[0]])
                name = name_of(self.facts.snapshot.nodes[spec], int(self.case.rows.copy[rows[0]]))
                what = f"{show(name)} at {seconds(time)}: {wrong[0]}: {wrong[1]}"
                yield Violation(RULE, f"nodes[{spec}]", what)

    def _parts(self, row: int, zoning: Zoning) -> Iterator[_Part]:
        """Yield what a task takes within zones that it lies in."""
        shape = self.shape[row]
        if not self.case.fresh[row]:
            leaf = self.facts.leaves[int(self.case.rows.leaf[row])]
            place = self.case.places[int(self.case.rows.job[row]), leaf.path, int(self.case.rows.index[row])]
            for resource, bits, taken in known_of(zoning, shape, place):
                yield bits, resource, taken, False
            return
        bits = sum(1 << zoning.ids.index(zone) for zone in self.zones(row))
        if bits:
            for resource in zoning.there:
                if shape.demand.get(resource):
                    yield bits, resource, shape.demand[resource], True

    def _over(self, zoning: Zoning, parts: tuple[_Part, ...]) -> tuple[str, str] | None:
        """Return the fewest zones that have to hold too much, and how much; None where there are none."""
        every = (1 << len(zoning.ids)) - 1
        for some in sorted(range(1, every), key=int.bit_count):
            for resource, there in zoning.there.items():
                within = [part for part in parts if part[1] == resource and not part[0] & ~some]
                taken = sum(part[2] for part in within)
                allowed = sum(has for place, has in enumerate(there) if some >> place & 1)
                if taken > allowed and any(part[3] for part in within):
                    ids = ", ".join(integer(one) for place, one in enumerate(zoning.ids) if some >> place & 1)
                    had, may = (amount(self.facts, resource, number) for number in (taken, allowed))
                    name = "NICs" if resource == NICS else label(resource)
                    return f"NUMA zones {ids}", f"{name} adds up to {had}, at most {may}"
        return None
