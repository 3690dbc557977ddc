"""Capacity: CPU, memory, pod slots and extended resources add up within each node, running work included.

A node without a figure for CPU, memory or pod slots does not limit them; an extended resource that a node does not
list is not there. Running work that is over a capacity by itself is no violation, new work that adds to it is.
"""

from __future__ import annotations

from collections.abc import Iterator

from placement.check.case import Case
from placement.check.facts import Facts
from placement.check.violation import Violation, decimal, show, size

RULE = "capacity"


def judge(case: Case) -> Iterator[Violation]:
    """Yield every resource of a node that new tasks overfill."""
    for node in case.load.nodes.values():
        for resource in node.new.demand:
            capacity = node.fact.capacity.get(resource, 0)
            if capacity is not None and node.demand(resource) > capacity:
                running = node.running.demand.get(resource, 0)
                taken, before, allowed = (
                    amount(case.facts, resource, number) for number in (node.demand(resource), running, capacity)
                )
                already = f" ({before} of it by running work)" if running else ""
                what = f"{show(node.name)}: {label(resource)} adds up to {taken}{already}, at most {allowed}"
                yield Violation(RULE, f"nodes[{node.fact.spec}]", what)


def label(resource: str) -> str:
    """Return a resource's name as the snapshot spells it."""
    return show(resource.removeprefix("extended:"))


def amount(facts: Facts, resource: str, number: int) -> str:
    """Return an amount of a resource as text."""
    value = facts.base(resource, number)
    return size(value) if facts.is_bytes(resource) else decimal(value)
