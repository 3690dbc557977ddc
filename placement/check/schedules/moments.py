"""Nodes at every moment: what the rules say of a node must hold whenever a stretch starts on it.

What is taken of a node grows only when something starts on it. So each node on which a stretch starts is judged at that
moment with all that is on it then, by the rules that judge a plan: every node at every such moment is a node of its
own, and all of them are judged at once. What goes on from before the snapshot's time is running work in them.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from placement.check.case.case import Placed
from placement.check.case.load import Load
from placement.check.exact import Ints
from placement.check.facts.names import name_of
from placement.check.in_nodes import mig
from placement.check.loads import capacity, clients, device_memory, shares
from placement.check.schedules.case import Timed, picked, seconds
from placement.check.violation import Violation

_JUDGES = (capacity.judge, shares.judge, clients.judge, device_memory.judge, mig.judge)

TOGETHER = 1_000_000
"""Tasks at moments that are looked at together; keeps the tables small."""


@dataclass(frozen=True, slots=True)
class Moments:
    """Nodes at moments, and what is on them.

    Attributes
    ----------
    node, time : list of int
        Of each.
    rows : list of (list of int)
        The tasks on it, those that were there before the snapshot's time first.
    """

    node: list[int]
    time: list[int]
    rows: list[list[int]]


def moments(case: Timed) -> Moments:
    """Return every node on which a stretch starts, at every moment at which one does."""
    if "moments" not in case.kept:
        case.kept["moments"] = _moments(case)
    found: Moments = case.kept["moments"]
    return found


def _moments(case: Timed) -> Moments:
    node = (case.facts.node_names.first[case.rows.spec] + case.rows.copy).tolist()
    begin, end, fresh = case.begin.tolist(), case.end.tolist(), case.fresh.tolist()
    there: dict[int, list[int]] = defaultdict(list)
    starting: dict[tuple[int, int], list[int]] = defaultdict(list)
    for row, (start, stop) in enumerate(zip(begin, end, strict=True)):
        if stop > start:
            (starting[start, node[row]] if fresh[row] else there[node[row]]).append(row)
    found = Moments([], [], [])
    for time, number in sorted(starting):
        rows = [row for row in there[number] if end[row] > time] + starting[time, number]
        there[number] = rows
        found.node.append(number)
        found.time.append(time)
        found.rows.append(rows)
    return found


def judge(case: Timed) -> Iterator[Violation]:
    """Yield every resource, card and instance of a node that is taken by too much at a time."""
    found = moments(case)
    first = 0
    while first < len(found.rows):
        last, tasks = first, 0
        while last < len(found.rows) and tasks < TOGETHER:
            tasks += len(found.rows[last])
            last += 1
        unrolled = _Unrolled(case, found, range(first, last))
        for rule in _JUDGES:
            yield from rule(unrolled)
        first = last


class _Load(Load):
    """What is taken of nodes at moments."""

    nodes: int
    when: list[int]

    def name(self, node: int) -> str:
        """Return the name of a node, and the moment."""
        moment, number = divmod(int(self.copy[node]), self.nodes)
        name = name_of(self.facts.snapshot.nodes[int(self.spec[node])], number)
        return f"{name} at {seconds(self.when[moment])}"


class _Unrolled(Placed):
    """Tasks on nodes at some moments, of which each counts as a node of its own."""

    loads = _Load
    load: _Load

    def __init__(self, case: Timed, found: Moments, which: range) -> None:
        rows = [row for number in which for row in found.rows[number]]
        moment = np.repeat(np.arange(len(which), dtype=np.int64), [len(found.rows[number]) for number in which])
        taken = picked(case.rows, np.array(rows, dtype=np.int64))
        nodes = int(case.facts.node_names.first[-1])
        taken.copy[:] += moment * nodes
        fresh = case.fresh[rows]
        facts = copy.copy(case.facts)
        old, new = (picked(taken, np.flatnonzero(some)) for some in (~fresh, fresh))
        facts.__dict__["running"] = old
        facts.__dict__["places"] = [case.places[key] for key in _keys(case, old.job, old.leaf, old.index)]
        self._running = [case.name_of(case.job[number]) for number in old.job.tolist()]
        super().__init__(facts, new, case.tasks)
        self.load.nodes, self.load.when = nodes, [found.time[number] for number in which]

    def running_name(self, row: int) -> str:
        """Return the name of a running task's job."""
        return self._running[row]


def _keys(case: Timed, job: Ints, leaf: Ints, index: Ints) -> Iterator[tuple[int, str, int]]:
    paths = [one.path for one in case.facts.leaves]
    for stretch, number, task in zip(job.tolist(), leaf.tolist(), index.tolist(), strict=True):
        yield stretch, paths[number], task
