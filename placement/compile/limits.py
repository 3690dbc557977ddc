"""Limits on domains: what running work leaves of each cap, and which caps a node counts in."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction

from placement import units
from placement.compile.running import Used
from placement.index import numbered
from placement.instance import GPU, Ints, LimitRow
from placement.rules.resources import extended
from placement.scale import Scale
from placement.snapshot import DomainLimit, Snapshot


def limits(
    snapshot: Snapshot, node_spec: Ints, used: Used, scale: Scale, total: dict[str, int]
) -> tuple[tuple[LimitRow, ...], Ints, list[tuple[int, ...]]]:
    """Return the limit rows, with running work taken off; where each node entry lies; the rows of each such place.

    Entries that lie in the same domains, as far as limits name their levels, lie at the same place.
    """
    levels = list(dict.fromkeys(limit.level for limit in snapshot.limits if limit.level != "cluster"))
    place, first = numbered(tuple(node.domains.get(level) for level in levels) for node in snapshot.nodes)
    inside: dict[tuple[str, str | None], list[int]] = defaultdict(list)
    for number, entry in enumerate(first.tolist()):
        inside["cluster", ""].append(number)
        for level in levels:
            inside[level, snapshot.nodes[entry].domains.get(level)].append(number)
    taken = _taken(place[node_spec[used.nodes]].tolist(), used, scale)
    rows: list[LimitRow] = []
    of_place: list[list[int]] = [[] for _ in first]
    resources = {name: index for index, name in enumerate(scale.resources)} | {"gpus": GPU}
    unit_of = scale.resources | {"gpus": scale.card}
    for number, limit in enumerate(snapshot.limits):
        within = inside["cluster", ""] if limit.level == "cluster" else inside[limit.level, limit.domain]
        for name, cap in _caps(limit):
            if name not in resources:
                continue  # nothing asks for it
            left = cap - sum(taken[name][i] for i in within if i in taken[name])
            capacity = min(total[name], max(0, math.floor(left / unit_of[name])))
            for i in within:
                of_place[i].append(len(rows))
            rows.append(LimitRow(f"limits[{number}]", limit.level, limit.domain, resources[name], capacity))
    return tuple(rows), place, [tuple(indices) for indices in of_place]


def _taken(places: list[int], used: Used, scale: Scale) -> dict[str, dict[int, Fraction]]:
    """Return what running work takes of each resource and of cards, in base units, by place."""
    unit = scale.whole
    columns = {name: (used.demand[name], one) for name, one in unit.resources.items()}
    columns["gpus"] = used.shares, unit.card
    taken: dict[str, dict[int, Fraction]] = {}
    for name, (amounts, one) in columns.items():
        of_place: dict[int, int] = defaultdict(int)
        for place, amount in zip(places, amounts.tolist(), strict=True):
            of_place[place] += amount
        taken[name] = {place: amount * one for place, amount in of_place.items()}
    return taken


def _caps(limit: DomainLimit) -> Iterable[tuple[str, Fraction]]:
    for name, quantity in (("gpus", limit.gpus), ("cpu", limit.cpu), ("memory", limit.memory)):
        if quantity is not None:
            yield name, units.exact(quantity)
    for resource, quantity in limit.extended.items():
        yield extended(resource), units.exact(quantity)
