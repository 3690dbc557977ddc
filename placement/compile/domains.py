"""Domains: which node lies in which, and which levels some pending job looks at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter

import numpy as np

from placement.index import numbered
from placement.instance import Ints
from placement.snapshot import Job, Node, TaskGroup


def levels_of(topology: Sequence[str]) -> tuple[str, ...]:
    """Return all levels, from wide to narrow."""
    return ("cluster", *topology, "node")


def domains(nodes: Sequence[Node], node_spec: Ints, levels: Sequence[str]) -> Ints:
    """Return the number of the domain of each node at each level, shape (levels, N), -1 where it is in none."""
    found = np.zeros((len(levels), len(node_spec)), dtype=np.int64)
    found[-1] = np.arange(len(node_spec))
    for row, level in enumerate(levels[1:-1], 1):
        found[row] = _numbers(nodes, level)[node_spec] if len(nodes) else 0
    return found


def _numbers(nodes: Sequence[Node], level: str) -> Ints:
    names = [node.domains.get(level, "") for node in nodes]
    known = {name: number for number, name in enumerate(dict.fromkeys(name for name in names if name))}
    return np.array([known.get(name, -1) for name in names], dtype=np.int64)


def tied_places(
    nodes: Sequence[Node], jobs: Sequence[Job], gangs: Iterable[Sequence[TaskGroup]], topology: Sequence[str]
) -> Ints:
    """Return where each entry of nodes is, as far as some gang looks at domains: equal numbers mean equal domains."""
    named = {one.level for affinity in map(attrgetter("affinity"), jobs) for one in affinity}
    named.update(level for groups in gangs for level in _levels_of_groups(groups))
    levels = [level for level in topology if level in named]
    return numbered(tuple(node.domains.get(level) for level in levels) for node in nodes)[0]


def _levels_of_groups(groups: Sequence[TaskGroup]) -> Iterator[str]:
    for group in groups:
        if group.topology is not None:
            topology = group.topology
            yield from (topology.required, topology.preferred, topology.balanced)
            yield from (part.level for part in topology.slices)
            yield from (one.level for one in topology.spread)
        if group.groups:
            yield from _levels_of_groups(group.groups)
