"""Which NICs tasks get: near their cards first, and always as many as they ask for."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import placement as pl
from placement.check import check
from placement.numa.kinds import Kind
from placement.numa.node import Shared, Wanted
from placement.snapshot import (
    Gpu,
    Job,
    Nic,
    Node,
    NumaZone,
    PcieSwitch,
    Running,
    RunningTask,
    Snapshot,
    Task,
    TaskGroup,
)

NICS = tuple(Nic(name=f"mlx5_{number}") for number in range(4))
SWITCHES = tuple(
    PcieSwitch(name=f"p{number}", gpus=(number,), nics=(nic.name,)) for number, nic in enumerate(reversed(NICS))
)
"""A switch for each card: card 0 with mlx5_3, card 1 with mlx5_2, and so on."""
ZONES = (
    NumaZone(id=0, cpus="0-15", gpus=(0, 1), nics=NICS[2:], switches=SWITCHES[:2]),
    NumaZone(id=1, cpus="16-31", gpus=(2, 3), nics=NICS[:2], switches=SWITCHES[2:]),
)


def job(name: str, count: int = 1, **task: object) -> Job:
    return Job(name=name, groups=(TaskGroup(name="g", count=count, task=Task(**task)),))  # type: ignore[arg-type]


def runs(name: str, gpus: tuple[int, ...], held: tuple[str, ...] = (), **task: object) -> Job:
    groups = (TaskGroup(name="g", task=Task(gpus=len(gpus), **task)),)  # type: ignore[arg-type]
    place = RunningTask(group="g", index=0, node="n", gpus=gpus, nics=held)
    return Job(name=name, groups=groups, running=Running(tasks=(place,)))


def cluster(*jobs: Job, zones: tuple[NumaZone, ...] = ZONES) -> Snapshot:
    return Snapshot(nodes=(Node(name="n", gpus=(Gpu(model="A", count=4),), zones=zones),), jobs=jobs)


def nics(*jobs: Job, zones: tuple[NumaZone, ...] = ZONES) -> dict[str, tuple[tuple[int, ...], tuple[str, ...]]]:
    """Return cards and NICs of each task by job and number."""
    plan = pl.solve(cluster(*jobs, zones=zones), solver="best-fit")
    assert plan.checked
    places = {f"{name}{index}": plan.tasks[name, group, index] for name, group, index, _, _ in plan.tasks}
    return {name: (place.gpus, place.nics) for name, place in places.items()}


def test_below_the_switch_of_the_card() -> None:
    found = nics(job("a", 4, gpus=1, nics=1))
    assert len(found) == 4
    assert all(held == (f"mlx5_{3 - card}",) for (card,), held in found.values())


def test_one_below_the_switch_of_each_card() -> None:
    # two NICs for two cards: one of each switch, in the order of the file
    assert nics(job("a", gpus=2, nics=2, numa="single-numa-node"))["a0"] in (
        ((0, 1), ("mlx5_2", "mlx5_3")),
        ((2, 3), ("mlx5_0", "mlx5_1")),
    )
    # both switches have two NICs; a task with 2 cards below the one and 1 below the other gets 2 and 1 of three
    switches = (
        PcieSwitch(name="p0", gpus=(0, 1), nics=("a0", "a1")),
        PcieSwitch(name="p1", gpus=(2,), nics=("b0", "b1")),
    )
    four = tuple(Nic(name=name) for name in ("a0", "a1", "b0", "b1"))
    zone = NumaZone(id=0, gpus=(0, 1, 2, 3), nics=four, switches=switches)
    found = nics(runs("r", (3,)), job("a", gpus=3, nics=3), zones=(zone,))
    assert found["a0"] == ((0, 1, 2), ("a0", "a1", "b0"))


def test_then_the_same_zone_then_any() -> None:
    # the NIC of card 0 is held: the task there gets the other one of its zone; a third one comes from the other zone
    busy = (runs("r", (1, 2, 3), ("mlx5_3",), nics=1),)
    assert nics(*busy, job("a", gpus=1, nics=1))["a0"] == ((0,), ("mlx5_2",))
    assert nics(*busy, job("a", gpus=1, nics=3))["a0"] == ((0,), ("mlx5_2", "mlx5_0", "mlx5_1"))


def test_near_pairs_of_all_tasks_come_before_the_rest_of_one() -> None:
    # b has card 0 and asks for two NICs. It takes mlx5_3 below its switch, and leaves mlx5_2 to the task on card 1
    found = nics(runs("r", (2, 3)), job("b", gpus=1, nics=2), job("c", gpus=1, nics=1))
    (card_b,), held_b = found["b0"]
    (card_c,), held_c = found["c0"]
    assert held_c == (f"mlx5_{3 - card_c}",)
    assert f"mlx5_{3 - card_b}" in held_b


def test_those_that_are_bound_come_first() -> None:
    # a on card 0 or 1 would take mlx5_2 or mlx5_3 near it, but c needs both with its single card of zone 0
    found = nics(runs("r", (2, 3)), job("a", gpus=1, nics=1), job("c", gpus=1, nics=2, numa="single-numa-node"))
    assert found["c0"][1] == ("mlx5_2", "mlx5_3")
    assert found["a0"][1] == ("mlx5_0",)


def test_running_work_without_names_reduces_the_number() -> None:
    # one NIC somewhere is held by what runs: three are left, and a single-zone task of two still fits
    busy = runs("r", (), nics=1)
    found = nics(busy, job("a", gpus=1, nics=2, numa="single-numa-node"), job("b", nics=1), job("c", nics=1))
    assert len(found) == 2
    assert len({nic for _, held in found.values() for nic in held}) == 3


@given(st.randoms(use_true_random=False))
def test_no_exchange_brings_more_nics_near(source: random.Random) -> None:
    """A NIC is far from who holds it only if nobody to whom it is near holds another one that is far."""
    switches = [PcieSwitch(name=f"p{n}", gpus=(n,), nics=tuple(f"{n}-{i}" for i in range(2))) for n in range(4)]
    held = [tuple(Nic(name=nic) for nic in switch.nics) for switch in switches]
    zones = tuple(
        NumaZone(id=z, gpus=(z, z + 1), nics=held[z] + held[z + 1], switches=tuple(switches[z : z + 2])) for z in (0, 2)
    )
    kind = Kind.of(Node(name="n", gpus=(Gpu(model="A", count=4),), zones=zones))
    new, left = list[Wanted](), 8
    while left and source.random() < 0.8:
        nics = source.randint(1, min(4, left))
        new.append(Wanted(0, tuple(sorted(source.sample(range(4), source.randint(0, 2)))), (0, 0, nics)))
        left -= nics
    found = Shared(kind, [None, None, [4, 4]], [], frozenset(), new).result()
    holder = {nic: task for task, got in enumerate(found) for nic in got.nics}
    assert len(holder) == 8 - left

    def near(nic: int, task: int) -> bool:
        return kind.nics[nic][2] in new[task].cards

    far = {task for nic, task in holder.items() if not near(nic, task)}
    for nic in range(8):
        if nic not in holder or not near(nic, holder[nic]):
            assert not any(near(nic, task) for task in far)


def test_tasks_of_a_gang_come_to_the_same_rails_on_nodes_that_list_them_in_another_order() -> None:
    # Two NICs beside the one card of each node: of the first x is on rail r2 and y on r1, of the second the other way.
    nodes = tuple(
        Node(
            name=name,
            gpus=(Gpu(model="A"),),
            zones=(NumaZone(id=0, gpus=(0,), nics=tuple(Nic(name=nic, rail=rail) for nic, rail in rails)),),
        )
        for name, rails in (("a", (("x", "r2"), ("y", "r1"))), ("b", (("x", "r1"), ("y", "r2"))))
    )
    plan = pl.solve(Snapshot(nodes=nodes, jobs=(job("j", count=2, gpus=1, nics=1),)), solver="best-fit")
    assert isinstance(plan.tasks.nics, list)
    assert dict(zip(plan.tasks.node, plan.tasks.nics, strict=True)) == {"a": ["y"], "b": ["x"]}


def test_without_cards_all_from_one_zone() -> None:
    zones = tuple(msgspec.structs.replace(zone, cpu=cpu) for zone, cpu in zip(ZONES, (4, 8), strict=True))
    node = Node(name="n", cpu=12, gpus=(Gpu(model="A", count=4),), zones=zones)
    # 6 cores and a NIC: only zone 1 has both
    plan = pl.solve(Snapshot(nodes=(node,), jobs=(job("a", cpu=6, nics=1),)), solver="best-fit")
    assert plan.checked
    place = plan.tasks["a", "g", 0]
    assert (place.zones, place.cpu, place.nics, place.cpuset_cpus) == ((1,), (6,), ("mlx5_0",), "16-31")


@pytest.mark.parametrize(
    ("cpus", "what"),
    [
        (["0-31"], ["cpuset: tasks[0]: the NUMA zones of a on n have CPUs 0-15, and the plan says 0-31"]),
        (["0-15", "0-15"], ["cpuset: tasks.cpus: found 2 lists, expected one for each of 1 task"]),
        (["0-15"], []),
        (msgspec.UNSET, []),
    ],
)
def test_a_stated_list_of_cpus_is_judged(cpus: object, what: list[str]) -> None:
    snapshot = cluster(runs("r", (2, 3)), job("a", gpus=2, nics=1))
    plan = pl.solve(snapshot, solver="best-fit")
    assert (plan.tasks.zones, plan.tasks.cpus) == ([[0]], ["0-15"])
    wrong = msgspec.structs.replace(plan, tasks=msgspec.structs.replace(plan.tasks, cpus=cpus))
    assert [str(violation) for violation in check(snapshot, wrong)] == what


def test_cpus_of_a_zone_that_lists_none_are_unknown() -> None:
    zones = (ZONES[0], msgspec.structs.replace(ZONES[1], cpus=""))
    snapshot = cluster(job("a", gpus=4), zones=zones)
    plan = pl.solve(snapshot, solver="best-fit")
    assert plan.checked
    assert (plan.tasks.zones, plan.tasks.cpus) == ([[0, 1]], msgspec.UNSET)
    said = msgspec.structs.replace(plan.tasks, cpus=["0-15"])
    (wrong,) = map(str, check(snapshot, msgspec.structs.replace(plan, tasks=said)))
    there = "the NUMA zones of a on n list no CPUs, or not all of them"
    assert wrong == f"cpuset: tasks[0]: {there}, and the plan says 0-15"
