"""Every greedy rule on nodes with NUMA zones: what it gives holds, and no single task that fits is forgotten."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import strategies
import zoned_strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from test_heuristics import no_single_task_was_forgotten
from test_heuristics_topology_random import judged
from zoned_room import Placed, fits_beside

from placement.check import check
from placement.compile import compile as compile_snapshot
from placement.heuristics import HEURISTICS
from placement.instance import Assignment, Instance
from placement.plan import Provenance
from placement.planning import name_tasks, plan_of
from placement.snapshot import Gpu, Job, Nic, Node, NumaZone, Running, RunningTask, Snapshot, Task, TaskGroup
from placement.snapshot.read import digest
from placement.solver import Limits, Result


def placed_by(instance: Instance, assignment: Assignment) -> Iterator[Placed]:
    for row in range(len(assignment)):
        job_class = instance.job_classes[instance.job_class[assignment.job[row]]]
        positions = assignment.cards[assignment.offset[row] : assignment.offset[row + 1]].tolist()
        yield job_class.leaves[assignment.leaf[row]].shape, int(assignment.node[row]), tuple(positions)


def accepted(instance: Instance, rule: str, seed: int) -> Result:
    """Return the answer of a rule, of which each task fits beside those before it and the judge accepts all."""
    result = HEURISTICS[rule].solve(instance, objectives=(), limits=Limits(), seed=seed)
    before: list[Placed] = []
    for one in placed_by(instance, result.assignment):
        assert instance.admits_node[one[0], instance.node_class[one[1]]]
        assert fits_beside(instance, before, one)
        before.append(one)
    origin = Provenance(version="0", solver=rule, seed=seed, objectives=("value",))
    plan = plan_of(instance, result, {}, ("value",), origin, digest(instance.snapshot))
    plan.checked = True
    assert check(instance.snapshot, plan) == []
    return result


@pytest.mark.parametrize("rule", HEURISTICS)
def test_what_a_rule_gives_lies_in_its_zones(rule: str) -> None:
    @settings(max_examples=30)
    @given(zoned_strategies.zoned_snapshots(max_tasks=10))
    def judge(snapshot: Snapshot) -> None:
        instance = compile_snapshot(snapshot)
        for seed in (0, 1):
            result = accepted(instance, rule, seed)
            if not rule.startswith(("kueue-tas", "slurm")):
                no_single_task_was_forgotten(instance, result.assignment)
            again = HEURISTICS[rule].solve(instance, objectives=(), limits=Limits(), start=result.assignment)
            assert set(placed_by(instance, result.assignment)) <= set(placed_by(instance, again.assignment))

    judge()


# --- gangs that are tied ---------------------------------------------------------------------------------------------


@st.composite
def tied_and_zoned(draw: st.DrawFn) -> Snapshot:
    """Draw a tied snapshot of which nodes have two zones and tasks are bound to them."""
    source = strategies.Source(lambda low, high: draw(st.integers(low, high)))
    snapshot = strategies.tied_tiny(source, 10)
    nodes = tuple(_with_zones(source, node) for node in snapshot.nodes)
    jobs = tuple(replace(job, groups=tuple(_bound(source, group) for group in job.groups)) for job in snapshot.jobs)
    return replace(snapshot, nodes=nodes, jobs=jobs)


def _with_zones(source: strategies.Source, node: Node) -> Node:
    cards = sum(gpu.count for gpu in node.gpus)
    cut = source.number(0, cards)
    cores = source.pick((2, 3, 1)), source.pick((2, 1, 4))
    nics = tuple(Nic(name=f"nic{i}") for i in range(source.pick((1, 2, 0))))
    zones = (
        NumaZone(id=0, cpu=cores[0], gpus=tuple(range(cut)), nics=nics),
        NumaZone(id=1, cpu=cores[1], gpus=tuple(range(cut, cards))),
    )
    return replace(node, cpu=sum(cores), zones=zones)


def _bound(source: strategies.Source, group: TaskGroup) -> TaskGroup:
    if group.task is None:
        return replace(group, groups=tuple(_bound(source, child) for child in group.groups))
    numa = source.pick(("single-numa-node", "restricted", "none"))
    task = replace(group.task, numa=numa, cpu=source.pick((1, 0, 2, "500m")), nics=source.pick((0, 0, 1)))
    return replace(group, task=task)


@pytest.mark.parametrize("rule", HEURISTICS)
def test_gangs_that_are_tied_lie_in_their_zones(rule: str) -> None:
    @settings(max_examples=20)
    @given(tied_and_zoned())
    def judge(snapshot: Snapshot) -> None:
        instance = compile_snapshot(snapshot)
        for seed in (0, 1):
            assert judged(instance, accepted(instance, rule, seed).assignment) == []

    judge()


# --- by hand ---------------------------------------------------------------------------------------------------------


def job(name: str, task: Task, count: int = 1) -> Job:
    return Job(name=name, groups=(TaskGroup(name="w", count=count, task=task),))


def runs(name: str, node: str, *cards: int) -> Job:
    place = RunningTask(group="w", index=0, node=node, gpus=cards)
    return replace(job(name, Task(gpus=len(cards))), running=Running(tasks=(place,)))


def two_zones(name: str) -> Node:
    zones = (NumaZone(id=0, gpus=(0, 1, 2, 3)), NumaZone(id=1, gpus=(4, 5, 6, 7)))
    return Node(name=name, gpus=(Gpu(model="A", count=8),), zones=zones)


def solve(rule: str, snapshot: Snapshot) -> dict[str, tuple[str, list[int]]]:
    instance = compile_snapshot(snapshot)
    found = accepted(instance, rule, 0).assignment
    return {name: (node, cards) for name, _, _, node, cards in name_tasks(instance, found)}


@pytest.mark.parametrize("rule", HEURISTICS)
def test_the_node_with_a_whole_zone_is_taken(rule: str) -> None:
    # Node a has 3 cards free in its first zone and 1 in its second, b has 4 and 2. Four of one zone are on b alone.
    snapshot = Snapshot(
        topology=("rack",),
        nodes=tuple(replace(two_zones(name), position={"rack": "r"}) for name in "ab"),
        jobs=(runs("x", "a", 3, 4, 5, 6), runs("y", "b", 4, 5), job("four", Task(gpus=4, numa="single-numa-node"))),
    )
    assert solve(rule, snapshot)["four"] == ("b", [0, 1, 2, 3])


@pytest.mark.parametrize("rule", [name for name in HEURISTICS if name != "random"])
def test_shares_and_small_tasks_leave_a_zone_whole(rule: str) -> None:
    # Six tasks of one card and of half a card each: 1 + 0.5 + 1 + 0.5 take three cards of one zone, so that four of
    # the other are left for the task that comes last.
    small = [job(f"s{i}", Task(gpus=1, gpu_share=(None, 0.5)[i % 2])) for i in range(4)]
    four = job("four", Task(gpus=4, numa="single-numa-node"))
    snapshot = Snapshot(
        topology=("rack",), nodes=(replace(two_zones("n"), position={"rack": "r"}),), jobs=(*small, four)
    )
    assert "four" in solve(rule, snapshot)


def test_a_share_goes_to_a_card_of_the_zone_that_has_the_cores() -> None:
    # Card 0 is half taken and would be the tightest; its zone has one core, the task needs two: it gets card 1.
    zones = (NumaZone(id=0, cpu=1, gpus=(0,)), NumaZone(id=1, cpu=2, gpus=(1,)))
    node = Node(name="n", position={"rack": "r"}, cpu=3, gpus=(Gpu(model="A", count=2),), zones=zones)
    half = Task(gpus=1, gpu_share=0.5)
    place = RunningTask(group="w", index=0, node="n", gpus=(0,))
    running = replace(job("x", half), running=Running(tasks=(place,)))
    asks = job("j", replace(half, cpu=2, numa="single-numa-node"))
    for rule in HEURISTICS:
        assert solve(rule, Snapshot(topology=("rack",), nodes=(node,), jobs=(running, asks)))["j"] == ("n", [1])
