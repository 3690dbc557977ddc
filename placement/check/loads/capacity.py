"""Capacity: CPU, memory, pod slots, NICs and extended resources add up within each node, running work included.

A node without a figure for CPU, memory or pod slots does not limit them; an extended resource that a node does not
list is not there, and neither is a NIC that none of its NUMA zones lists. Running work that is over a capacity by
itself is no violation, new work that adds to it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from placement.check.case.case import Placed
from placement.check.case.load import Load, Taken
from placement.check.exact import Bools
from placement.check.facts.amounts import BYTES
from placement.check.facts.facts import Facts
from placement.check.violation import Violation, decimal, show, size

RULE = "capacity"


def judge(case: Placed) -> Iterator[Violation]:
    """Yield every resource of a node that new tasks overfill."""
    load = case.load
    over = {
        resource: exceeds(load, resource, load.demand(resource)) & (load.new.demand[resource] > 0)
        for resource in load.resources
    }
    for node, resource in in_order(load, load.new, over):
        running, new = (int(part.demand[resource][node]) for part in (load.running, load.new))
        kind = case.facts.kinds[int(load.kind[node])]
        taken, before, allowed = (
            amount(case.facts, resource, number)
            for number in (running + new, running, kind.capacity.get(resource, 0) or 0)
        )
        already = f" ({before} of it by running work)" if running else ""
        what = f"{show(load.name(node))}: {label(resource)} adds up to {taken}{already}, at most {allowed}"
        yield Violation(RULE, f"nodes[{load.spec[node]}]", what)


def exceeds(load: Load, resource: str, taken: np.ndarray) -> Bools:
    """Return on which nodes more is taken of a resource than there is."""
    capacity, limited = load.capacity(resource)
    return np.asarray((taken > capacity[load.kind]) & limited[load.kind], dtype=np.bool_)


def in_order(load: Load, taken: Taken, over: dict[str, Bools]) -> list[tuple[int, str]]:
    """Return nodes and their overfilled resources; those of a node as its tasks first name them."""
    found = []
    for resource, nodes in over.items():
        if nodes.any():
            first = load.first_named(taken, resource)
            for node in np.flatnonzero(nodes).tolist():
                leaf = load.facts.leaves[int(taken.uses.leaf[first[node]])]
                found.append((node, int(first[node]), list(leaf.shape.demand).index(resource), resource))
    return [(node, resource) for node, _, _, resource in sorted(found)]


def label(resource: str) -> str:
    """Return a resource's name as the snapshot spells it."""
    return show(resource.removeprefix("extended:"))


def amount(facts: Facts, resource: str, number: int) -> str:
    """Return an amount of a resource as text."""
    return amount_of(resource, facts.base(resource, number))


def amount_of(resource: str, value: Fraction) -> str:
    """Return an amount of a resource in base units as text."""
    return size(value) if resource in BYTES else decimal(value)
