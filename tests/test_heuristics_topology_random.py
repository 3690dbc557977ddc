"""Random gangs with ties under greedy rules, judged by a few lines that share nothing with the rules."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from operator import le

import numpy as np
import pytest
import strategies
import zoned_strategies
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.compile import compile as compile_snapshot
from placement.gang import runs
from placement.heuristics import HEURISTICS
from placement.heuristics.domains import Domains, Need
from placement.heuristics.nodes import Nodes
from placement.instance import ANY, Assignment, Instance
from placement.snapshot import Job, Snapshot, TaskGroup, Topology
from placement.solver import Limits
from placement.state import State

Tasks = list[tuple[str, int]]
"""Leaves and numbers of tasks."""

Where = dict[str, str | None]
"""Domain of a task at every level."""


def where(instance: Instance, node: int) -> Where:
    spec = instance.snapshot.nodes[instance.node_spec[node]]
    return {level: spec.position.get(level) for level in instance.snapshot.topology} | {"node": str(node)}


def members(group: TaskGroup) -> Iterator[str]:
    """Yield the leaf of each task of one copy of a group, in order."""
    for _ in range(group.count):
        if group.task is not None:
            yield group.name
        for child in group.groups:
            yield from (f"{group.name}/{path}" for path in members(child))


def every_copy(groups: Sequence[TaskGroup], above: str = "", times: int = 1) -> Iterator[tuple[str, TaskGroup, Tasks]]:
    """Yield the path of each group, the group, and the tasks of each of its copies, in order."""
    for group in groups:
        following: Counter[str] = Counter()
        for _ in range(times):
            tasks = []
            for leaf in members(group):
                tasks.append((above + leaf, following[leaf]))
                following[leaf] += 1
            yield above + group.name, group, tasks
        yield from every_copy(group.groups, f"{above}{group.name}/", times * group.count)


def wrong(topology: Topology, tasks: list[Where | None]) -> Iterator[str]:
    """Yield what is wrong with one copy, whose tasks are placed or not."""
    placed = [task for task in tasks if task is not None]

    def one(some: list[Where], level: str) -> bool:
        return len({task[level] for task in some}) <= 1 and all(task[level] is not None for task in some)

    if topology.required and not one(placed, topology.required):
        yield "required"
    for part in topology.slices:
        sizes = part.sizes * (len(tasks) // part.sizes[0]) if len(part.sizes) == 1 else part.sizes
        start = 0
        for size in sizes:
            if not one([task for task in tasks[start : start + size] if task is not None], part.level):
                yield "slices"
            start += size
    if topology.balanced and placed:
        levels = ("block", "rack", "node")
        inner = levels[levels.index(topology.balanced) :]
        unit = max([1, *(p.sizes[0] for p in topology.slices if p.level in inner and len(p.sizes) == 1)])
        counts = Counter(task[topology.balanced] for task in placed if task[topology.balanced] is not None).values()
        if counts and max(counts) - min(counts) > unit:
            yield "balanced"
    for spread in topology.spread:
        found = Counter(task[spread.level] for task in placed)
        most = spread.max_per_domain or len(tasks)
        if placed and (None in found or max(found.values()) > most or len(found) < (spread.min_domains or 0)):
            yield "spread"


def broken(job: Job, tasks: dict[tuple[str, int], Where]) -> Iterator[str]:
    """Yield what is wrong with the ties of a job, of which some tasks are placed."""
    for _, group, copy in every_copy(job.groups):
        if group.topology is not None:
            yield from wrong(group.topology, [tasks.get(task) for task in copy])
    for one in job.affinity:
        # groups are side by side, in the job or in one of its groups, whose members have equal parts of their tasks
        count = next((group.count for group in job.groups if one.a.startswith(f"{group.name}/")), 1)
        every = [
            list(itertools.chain(*(c for p, _, c in every_copy(job.groups) if p == path))) for path in (one.a, one.b)
        ]
        for member in range(count):
            a, b = (
                {tasks[t][one.level] for t in part[member * len(part) // count :][: len(part) // count] if t in tasks}
                for part in every
            )
            if one.kind == "together" and (len(a | b) > 1 or None in a | b):
                yield "together"
            if one.kind == "apart" and (a & b) - {None}:
                yield "apart"


def judged(instance: Instance, assignment: Assignment) -> list[str]:
    """Return what is wrong with the jobs that are placed: ties, minima, and room."""
    state = State(instance)
    state.apply(assignment)
    found = ["room"] if (state.free < 0).any() or (state.units < 0).any() else []
    for job in set(assignment.job.tolist()):
        job_class = instance.job_classes[instance.job_class[job]]
        placed = [[0] * leaf.copies for leaf in job_class.leaves]
        tasks: dict[tuple[str, int], Where] = {}
        for row in (assignment.job == job).nonzero()[0].tolist():
            leaf, number = job_class.leaves[int(assignment.leaf[row])], int(assignment.task[row])
            placed[leaf.leaf][number // leaf.count] += 1
            tasks[leaf.path, number] = where(instance, int(assignment.node[row]))
        found += broken(instance.snapshot.jobs[instance.job_spec[job]], tasks)
        found += [] if runs(job_class.root, placed) else ["gang"]
    return found


def some_place(instance: Instance) -> Assignment | None:
    """Return any way to place the one job of a cluster of equal cards, or None if there is none."""
    leaves = instance.job_classes[0].leaves
    tasks = [(leaf, number) for leaf in leaves for number in range(leaf.count * leaf.copies)]
    cards = [len(instance.classes[instance.node_class[node]].cards) for node in range(instance.nodes)]
    for nodes in itertools.product(range(-1, instance.nodes), repeat=len(tasks)):
        used = [0] * instance.nodes
        rows = []
        for (leaf, number), node in zip(tasks, nodes, strict=True):
            if node >= 0:
                gpus = instance.shapes[leaf.shape].gpus
                rows.append((0, leaf.leaf, number, node, tuple(range(used[node], used[node] + gpus))))
                used[node] += gpus
        if rows and all(map(le, used, cards)):
            found = Assignment.of(rows)
            if not judged(instance, found):
                return found
    return None


@st.composite
def tied_snapshots(draw: st.DrawFn) -> Snapshot:
    return strategies.tied_tiny(strategies.Source(lambda low, high: draw(st.integers(low, high))), 12)


@pytest.mark.parametrize("rule", HEURISTICS)
def test_all_ties_hold(rule: str) -> None:
    @settings(max_examples=50, deadline=None)
    @given(tied_snapshots())
    def judge(snapshot: Snapshot) -> None:
        instance = compile_snapshot(snapshot)
        for seed in (0, 1):
            found = HEURISTICS[rule].solve(instance, objectives=(), limits=Limits(), seed=seed).assignment
            assert judged(instance, found) == []

    judge()


def test_a_job_alone_is_nearly_always_placed_if_it_can_be() -> None:
    missed = []
    for seed in range(150):
        snapshot = strategies.random_tied_tiny(seed, 5)
        alone = Snapshot(topology=snapshot.topology, nodes=snapshot.nodes, jobs=snapshot.jobs[:1])
        if not snapshot.jobs:
            continue
        instance = compile_snapshot(alone)
        found = HEURISTICS["first-fit"].solve(instance, objectives=(), limits=Limits()).assignment
        if not len(found) and some_place(instance) is not None:
            missed.append(seed)
    assert missed == []


def test_room_is_what_fits() -> None:
    """As many tasks fit on a node as it is said to have room for.

    At most as many, where a task takes shares of two cards or lies within zones of which sets overlap.
    """
    tiny = [strategies.random_tiny(seed) for seed in range(150)]
    tiny += [zoned_strategies.random_zoned(seed, max_tasks=8) for seed in range(150)]
    for instance in map(compile_snapshot, tiny):
        nodes = Nodes(instance, np.arange(instance.nodes))
        domains = Domains(nodes)
        for number, shape in enumerate(instance.shapes):
            every, room = domains.room(domains.levels - 1, Need(number, 1), domains.everywhere)
            assert every.tolist() == list(range(instance.nodes))
            for row in range(instance.nodes):
                placed = 0
                while nodes.state.fits(number, np.array([row]))[0] and placed < 99:
                    cards = nodes.state.tightest(number, row)
                    assert cards is not None
                    nodes.place(number, row, cards)
                    domains.touch([row])
                    placed += 1
                exact = shape.gpus < 2 or shape.units == instance.card_units
                exact &= shape.numa == ANY or all(bits.bit_count() == 1 for bits in instance.zone_sets)
                assert placed == min(99, room[row]) if exact else placed <= room[row]
                left = domains.room(0, Need(number, 1), domains.everywhere)[1]
                nodes.undo(0)
                domains.touch([row])
                again = domains.room(0, Need(number, 1), domains.everywhere)[1]
                assert again[0] == room.sum() >= left[0]
