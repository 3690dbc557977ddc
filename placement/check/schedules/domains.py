"""Domains at every moment: caps on what is in use in one, and tenants that are kept apart.

Time is gone through once. After all that ends and starts at a moment, each cap and each place to which something was
added is looked at.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from placement.check.facts.amounts import GPUS
from placement.check.loads import limits, tenants
from placement.check.loads.capacity import amount, label
from placement.check.schedules.case import Timed, seconds
from placement.check.violation import Violation, show


def judge(case: Timed) -> Iterator[Violation]:
    """Yield every cap that is exceeded and every place with tasks of two tenants, at each start that adds to it."""
    if case.facts.caps:
        yield from _limits(case)
    if case.snapshot.policy.tenants_apart:
        yield from _tenants(case)


def changes(case: Timed) -> Iterator[tuple[int, list[int], list[int]]]:
    """Yield each moment at which something starts, the rows that start then, and those that have ended since."""
    begin, end = case.begin.tolist(), case.end.tolist()
    some = [row for row in range(len(begin)) if end[row] > begin[row]]
    starts, ends = sorted(some, key=begin.__getitem__), sorted(some, key=end.__getitem__)
    over = first = 0
    while first < len(starts):
        time, last = begin[starts[first]], first
        while last < len(starts) and begin[starts[last]] == time:
            last += 1
        before = over
        while end[ends[over]] <= time:
            over += 1
        yield time, starts[first:last], ends[before:over]
        first = last


def _limits(case: Timed) -> Iterator[Violation]:
    facts, fresh = case.facts, case.fresh.tolist()
    shape, kind = facts.shape_of_leaf[case.rows.leaf].tolist(), facts.kind[case.rows.spec].tolist()
    taken = [{**one.demand, GPUS: one.share * one.gpus} for one in facts.shapes]
    use: dict[tuple[int, str], list[int]] = defaultdict(lambda: [0, 0])
    for time, started, ended in changes(case):
        touched: dict[tuple[int, str], None] = {}
        for sign, rows in ((-1, ended), (1, started)):
            for row in rows:
                for index in facts.kinds[kind[row]].limits:
                    for resource in facts.caps[index]:
                        added = taken[shape[row]].get(resource, 0)
                        use[index, resource][fresh[row]] += sign * added
                        if sign > 0 and added and fresh[row]:
                            touched[index, resource] = None
        for index, resource in touched:
            running, new = use[index, resource]
            cap = facts.caps[index][resource]
            if running + new > cap:
                total, before, allowed = (amount(facts, resource, number) for number in (running + new, running, cap))
                already = f" ({before} of it by running work)" if running else ""
                where = f"{limits.name(facts.snapshot.limits[index])} at {seconds(time)}"
                what = f"{where}: {label(resource)} in use adds up to {total}{already}, at most {allowed}"
                yield Violation(limits.RULE, limits.path(index, resource), what)


# --- tenants -------------------------------------------------------------------------------------------------

_Place = tuple[str, int, int]
"""A domain by its name, or a node by its number, or a card of it."""


def _tenants(case: Timed) -> Iterator[Violation]:
    fresh, places = case.fresh.tolist(), _places(case)
    whose = [case.job_of(number).tenant for number in case.rows.job.tolist()]
    there: dict[_Place, Counter[str]] = defaultdict(Counter)
    for time, started, ended in changes(case):
        for row in ended:
            for place in places[row]:
                there[place][whose[row]] -= 1
        for row in started:
            for place in places[row]:
                there[place][whose[row]] += 1
        touched = {place: row for row in started if fresh[row] for place in places[row]}
        for place, row in touched.items():
            found = sorted(name for name, tasks in there[place].items() if tasks)
            if len(found) > 1:
                listed = ", ".join(show(name) if name else "'' (none named)" for name in found)
                where = f"{_name(case, place)} at {seconds(time)}"
                what = f"{where} has tasks of tenants {listed}; one may be there at a time"
                yield Violation(tenants.RULE, f"tasks[{case.rows.number[row]}]", what)


def _places(case: Timed) -> list[list[_Place]]:
    """Return where each task may not be beside one of another tenant."""
    level, facts, rows = case.snapshot.policy.tenants_apart, case.facts, case.rows
    nodes = (facts.node_names.first[rows.spec] + rows.copy).tolist()
    if level == tenants.CARD:
        found: list[list[_Place]] = [[] for _ in nodes]
        for row, device in zip(rows.row.tolist(), rows.device.tolist(), strict=True):
            found[row].append(("", nodes[row], device))
        return found
    domains = [node.domains.get(level) for node in facts.snapshot.nodes]
    named = [domains[spec] for spec in rows.spec.tolist()]
    return [[("", node, -1) if name is None else (name, -1, -1)] for name, node in zip(named, nodes, strict=True)]


def _name(case: Timed, place: _Place) -> str:
    domain, node, device = place
    if node < 0:
        return f"{case.snapshot.policy.tenants_apart} {show(domain)}"
    first = case.facts.node_names.first
    spec = int(first.searchsorted(node, side="right")) - 1
    entry = case.snapshot.nodes[spec]
    name = show(entry.name if entry.count == 1 else f"{entry.name}-{node - int(first[spec])}")
    return name if device < 0 else f"{name} gpu {device}"
