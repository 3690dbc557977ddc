"""Zones and NICs of random plans: a valid one is accepted, each slip is refused, and zones hold what they can."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, cast

import msgspec
from brute_zones import COUNTED, Load, all_running, hold, zones_of
from check_cases import cards_of, nodes_of
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from strategies import Source
from zoned_plans import text, zoned_plan, zoned_rows
from zoned_strategies import random_zoned, zoned_snapshots

from placement.check import check
from placement.plan import Plan, Tasks
from placement.snapshot import Node, Snapshot
from placement.units import exact


def made(snapshot: Snapshot, seed: int) -> Plan:
    return zoned_plan(snapshot, zoned_rows(Source(random.Random(seed).randint), snapshot))


def rules(snapshot: Snapshot, plan: Plan) -> set[str]:
    return {violation.rule for violation in check(snapshot, plan)}


@settings(max_examples=60, deadline=None)
@given(zoned_snapshots(), st.integers(0, 2**32))
def test_valid_plans_are_accepted_and_every_slip_is_refused(snapshot: Snapshot, seed: int) -> None:
    plan = made(snapshot, seed)
    assert [str(violation) for violation in check(snapshot, plan)] == []
    for name, tasks in slips(snapshot, plan.tasks):
        found = rules(snapshot, replace(plan, tasks=tasks))
        assert found & {"numa", "nics"}, name


def test_every_slip_is_tried() -> None:
    tried: Counter[str] = Counter()
    for seed in range(150):
        snapshot = random_zoned(seed)
        tried.update(name for name, _ in slips(snapshot, made(snapshot, seed).tasks))
    assert set(tried) == {
        "more of a resource",
        "a negative amount",
        "no amounts",
        "zones in another order",
        "a zone twice",
        "an unknown zone",
        "an idle zone",
        "a zone less",
        "no zones",
        "no column of zones",
        "a card of another zone",
        "a NIC less",
        "a NIC twice",
        "an unknown NIC",
        "a NIC that is held",
        "no column of NICs",
        "a column too short",
        "a zone of a node without any",
    }


def slips(snapshot: Snapshot, tasks: Tasks) -> Iterator[tuple[str, Tasks]]:
    """Yield the columns with one thing wrong, whatever else could be right about it."""
    if any(tasks.zones or ()):
        yield "no column of zones", replace(tasks, zones=msgspec.UNSET)
        yield "a column too short", replace(tasks, zones=_column(tasks, "zones")[1:])
    if any(tasks.nics or ()):
        yield "no column of NICs", replace(tasks, nics=msgspec.UNSET)
    for row in range(len(tasks)):
        node = nodes_of(snapshot)[tasks.node[row]]
        if node.zones:
            yield from _zone_slips(tasks, row, node)
            yield from _nic_slips(snapshot, tasks, row, node)
        else:
            yield "a zone of a node without any", _with(tasks, row, zones=[0])


def _column(tasks: Tasks, name: str) -> list[Any]:
    """Return a column that is there."""
    return cast(list[Any], getattr(tasks, name))


def _with(tasks: Tasks, row: int, **cells: object) -> Tasks:
    """Return the columns with other cells in one row."""
    changed = {}
    for name, cell in cells.items():
        changed[name] = [*getattr(tasks, name)]
        changed[name][row] = cell
    return replace(tasks, **changed)


def _zone_slips(tasks: Tasks, row: int, node: Node) -> Iterator[tuple[str, Tasks]]:
    zones = _column(tasks, "zones")[row]
    cells = {name: _column(tasks, name)[row] for name in ("cpu", "memory")}
    for name, listed in cells.items():
        if listed:
            yield "more of a resource", _with(tasks, row, **{name: [text(exact(listed[0]) + 1), *listed[1:]]})
            yield "no amounts", _with(tasks, row, **{name: []})
        if len(listed) > 1:
            total = sum((exact(amount) for amount in listed), Fraction(0))
            negative = ["-1", text(total + 1), *[0] * (len(listed) - 2)]
            yield "a negative amount", _with(tasks, row, **{name: negative})
    if zones:
        yield "no zones", _with(tasks, row, zones=[], cpu=[], memory=[])
        yield "an unknown zone", _with(tasks, row, zones=[*zones[1:], 77])
        more = {name: [*listed, 0] if listed else [] for name, listed in cells.items()}
        yield "a zone twice", _with(tasks, row, zones=[*zones, zones[-1]], **more)
        less = {name: listed[1:] for name, listed in cells.items()}
        yield "a zone less", _with(tasks, row, zones=zones[1:], **less)
    if len(zones) > 1:
        turned = {name: listed[::-1] for name, listed in cells.items()}
        yield "zones in another order", _with(tasks, row, zones=zones[::-1], **turned)
    if len(zones) < len(node.zones):
        every = [zone.id for zone in node.zones]
        wide = {
            name: [dict(zip(zones, listed, strict=True)).get(zone, 0) for zone in every] if listed else []
            for name, listed in cells.items()
        }
        yield "an idle zone", _with(tasks, row, zones=every, **wide)
    inside = {card for zone in node.zones if zone.id in zones for card in zone.gpus}
    outside = [card for card in range(len(cards_of(node))) if card not in inside]
    if tasks.gpus[row] and outside:
        yield "a card of another zone", _with(tasks, row, gpus=sorted([*tasks.gpus[row][1:], outside[0]]))


def _nic_slips(snapshot: Snapshot, tasks: Tasks, row: int, node: Node) -> Iterator[tuple[str, Tasks]]:
    nics = _column(tasks, "nics")[row]
    if not nics:
        return
    yield "a NIC less", _with(tasks, row, nics=nics[1:])
    yield "an unknown NIC", _with(tasks, row, nics=[*nics[1:], "eth77"])
    if len(nics) > 1:
        yield "a NIC twice", _with(tasks, row, nics=[*nics[1:], nics[1]])
    running = [place for job in snapshot.jobs for place in (job.running.tasks if job.running else ())]
    busy = [nic for place in running if place.node == tasks.node[row] for nic in place.nics]
    busy += [
        nic
        for other, listed in enumerate(_column(tasks, "nics"))
        if other != row
        for nic in listed
        if tasks.node[other] == tasks.node[row]
    ]
    for nic in busy:
        yield "a NIC that is held", _with(tasks, row, nics=[*nics[1:], nic])


@settings(max_examples=60, deadline=None)
@given(zoned_snapshots(), st.integers(0, 2**32), st.data())
def test_zones_hold_what_they_hold(snapshot: Snapshot, seed: int, data: st.DataObject) -> None:
    """Amounts are moved between zones as hypothesis likes; flows through the zones must say the same as the judge."""
    plan = made(snapshot, seed)
    tasks = plan.tasks
    for row, name in itertools.product(range(len(tasks)), ("cpu", "memory")):
        listed = [exact(amount) for amount in _column(tasks, name)[row]]
        if len(listed) > 1:
            cut = data.draw(st.integers(1, 9)) * sum(listed, Fraction(0)) / 10
            tasks = _with(tasks, row, **{name: [text(cut), *[0] * (len(listed) - 2), text(sum(listed) - cut)]})
    plan = replace(plan, tasks=tasks)
    idle = any("nothing of the task" in violation.what for violation in check(snapshot, plan))
    found = rules(snapshot, plan)
    assert found <= {"numa"}
    assert ("numa" in found) == (idle or not all(_held(snapshot, tasks, node) for node in nodes_of(snapshot)))


def _held(snapshot: Snapshot, tasks: Tasks, name: str) -> bool:
    node = nodes_of(snapshot)[name]
    zones = zones_of(node)
    if zones is None:
        return True
    new: list[Load] = []
    for row in range(len(tasks)):
        if tasks.node[row] == name:
            for place, resource in enumerate(COUNTED[:2]):
                for zone, amount in zip(*(_column(tasks, key)[row] for key in ("zones", resource)), strict=False):
                    amounts = [Fraction(0)] * 3
                    amounts[place] = exact(amount)
                    new.append((frozenset({[z.id for z in node.zones].index(zone)}), tuple(amounts)))
    return hold(zones, all_running(snapshot)[name], new)
