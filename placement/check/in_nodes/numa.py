"""NUMA: every new task lies in zones of its node as its policy says, takes all it asks for, and the zones hold it.

A task of policy ``single-numa-node`` lies in one zone, a ``restricted`` one in as few as an empty node like this one
needs for it, and neither on a node that lists no zones. The plan says of each task which zones its cards, CPU, memory
and NICs come from, and how much CPU and memory from each. What runs must still find room beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

from placement.check.case.case import Case
from placement.check.case.lying import Lie, Lying, quantity_of
from placement.check.facts.zones import Zoning
from placement.check.in_nodes.zone_loads import Over, overfilled
from placement.check.loads.capacity import amount, amount_of, label
from placement.check.violation import Violation, integer, many, show
from placement.units import Quantity

RULE = "numa"
AMOUNTS = ("cpu", "memory")


def judge(case: Case) -> Iterator[Violation]:
    """Yield every task that lies in zones as it may not, and every zone that new tasks overfill."""
    lying = case.lying
    uneven = [name for name in ("zones", *AMOUNTS) if name in lying.uneven]
    for name in uneven:
        yield uneven_column(RULE, name, lying.uneven[name], len(case.plan.tasks))
    if uneven or not len(lying.rows):
        return
    wrong = [list(_wrong(lying, lie, taken)) for lie, taken in zip(lying.lies, lying.taken, strict=True)]
    missing = [_unsaid(lying, lie) for lie in lying.lies]
    if "zones" in lying.absent and any(missing):
        number = sum(missing[place] for place in lying.number.tolist())
        what = f"the plan does not say in which zones of its nodes {many(number, 'task')} of it lies"
        yield Violation(RULE, "tasks.zones", what if number == 1 else what.replace("lies", "lie"))
        missing = [False] * len(missing)
    for row, place in zip(lying.rows.tolist(), lying.number.tolist(), strict=True):
        if wrong[place] or missing[place]:
            path, name = f"tasks[{case.rows.number[row]}]", show(case.node_name(row))
            for what in [*wrong[place], *["no zone is listed, and zones count what the task takes"] * missing[place]]:
                yield Violation(RULE, path, f"{name}: {what}")
    for over in overfilled(case, AMOUNTS) if "zones" not in lying.absent else ():
        yield overfull_zones(RULE, case, over)


def uneven_column(rule: str, name: str, length: int, tasks: int) -> Violation:
    """Return that a column of the plan does not have as many entries as there are tasks."""
    expected = f"expected one for each of {many(tasks, 'task')}"
    return Violation(rule, f"tasks.{name}", f"found {many(length, 'entry')}, {expected}")


def overfull_zones(rule: str, case: Case, over: Over) -> Violation:
    """Return that new tasks overfill zones."""
    load = case.load
    zoning = case.facts.zonings[int(load.kind[over.node])]
    assert zoning is not None
    scale = case.facts.scale.get(over.resource, 1)
    taken, before = (amount_of(over.resource, number / scale) for number in (over.before + over.new, over.before))
    already = f" ({before} of it by running work)" if over.before else ""
    allowed = amount(case.facts, over.resource, over.allowed)
    where = f"{show(load.name(over.node))} {_zones([zoning.ids[place] for place in over.zones])}"
    what = f"{where}: {label(over.resource)} adds up to {taken}{already}, at most {allowed}"
    return Violation(rule, f"nodes[{load.spec[over.node]}]", what)


# --- one task ------------------------------------------------------------------------------------------------


def _unsaid(lying: Lying, lie: Lie) -> bool:
    """Return whether no zone is listed of a task that takes something of zones."""
    zoning = lying.zoning(lie)
    return zoning is not None and not lie.zones and zoning.counts(lie.shape)


def _wrong(lying: Lying, lie: Lie, taken: dict[str, list[Fraction]]) -> Iterator[str]:
    """Yield what is wrong with the zones of one task, given what is taken of each."""
    zoning = lying.zoning(lie)
    if zoning is None:
        if lie.shape.policy:
            yield f"the node lists no NUMA zones, and the task is {lie.shape.policy}"
        for name, listed in (("zones", lie.zones), *lie.amounts.items()):
            if listed:
                yield f"the plan lists {name} of a node that lists no NUMA zones"
        return
    listed_wrongly = list(_listing(lie, zoning))
    yield from listed_wrongly
    yield from _policy(lying, lie, zoning)
    outside = [device for device in lie.cards if zoning.card[device] not in lie.places(zoning)]
    if lie.zones:
        for device in outside:
            yield f"gpu {device} is in {_zones([zoning.ids[zoning.card[device]]])}, which the plan does not list"
    if not listed_wrongly and (lie.zones or any(lie.amounts.values())):
        for resource, listed in lie.amounts.items():
            yield from _amounts(lying, lie, zoning, resource, listed)
        yield from _idle(lie, zoning, taken)


def _listing(lie: Lie, zoning: Zoning) -> Iterator[str]:
    unknown = [zone for zone in lie.zones if zone not in zoning.ids]
    places = lie.places(zoning)
    if unknown:
        yield f"it has no {_zones(unknown)}, only {_zones(zoning.ids)}"
    if any(one >= other for one, other in pairwise(places)):
        due = _zones([zoning.ids[place] for place in sorted(set(places))])
        yield f"{_zones(lie.zones)} are listed, in order and each once that is {due}"


def _policy(lying: Lying, lie: Lie, zoning: Zoning) -> Iterator[str]:
    """Yield that a task lies in more zones than it may."""
    number = len(set(lie.zones))
    if not lie.shape.policy:
        return
    if lie.shape.policy == "single-numa-node":
        if number > 1:
            yield f"the task lies in {_zones(lie.zones)}, single-numa-node allows one"
        return
    fewest = lying.fewest(lie)
    if fewest is None:
        yield "the task is restricted, and all zones of an empty node like this one do not hold it"
    elif number > fewest:
        need = f"an empty node like this one needs {many(fewest, 'zone')} for it"
        yield f"the task is restricted and lies in {_zones(lie.zones)}, {need}"


def _amounts(lying: Lying, lie: Lie, zoning: Zoning, resource: str, listed: tuple[Quantity, ...]) -> Iterator[str]:
    """Yield what is wrong with the amounts of a resource by zone."""
    asked = lie.shape.demand.get(resource, 0) if resource in zoning.there else 0
    name = label(resource)
    if not asked:
        if listed:
            why = "the task asks for none" if resource in zoning.there else "the zones of the node state none"
            yield f"{name} is listed by zone, and {why}"
        return
    if len(listed) != len(lie.zones):
        yield f"{name} is listed for {many(len(listed), 'zone')}, the task lies in {integer(len(lie.zones))}"
        return
    amounts = [quantity_of(quantity) for quantity in listed]
    for quantity, found in zip(listed, amounts, strict=True):
        if found is None:
            yield f"{name} by zone has {show(str(quantity))}, which is no amount of at least 0"
    if None not in amounts:
        total = sum((found for found in amounts if found is not None), Fraction(0))
        due = lying.facts.base(resource, asked)
        if total != due:
            found_, asked_ = (amount_of(resource, value) for value in (total, due))
            yield f"{name} by zone adds up to {found_}, the task asks for {asked_}"


def _idle(lie: Lie, zoning: Zoning, taken: dict[str, list[Fraction]]) -> Iterator[str]:
    """Yield that a zone is listed from which nothing comes."""
    used = {zoning.card[device] for device in lie.cards}
    for parts in taken.values():
        used |= {place for place, part in enumerate(parts) if part}
    idle = [zoning.ids[place] for place in lie.places(zoning) if place not in used]
    if idle:
        yield f"nothing of the task comes from {_zones(idle)}, only zones that it takes something of are listed"


def _zones(ids: tuple[int, ...] | list[int]) -> str:
    return f"NUMA zone{'' if len(ids) == 1 else 's'} {', '.join(map(integer, ids))}"
