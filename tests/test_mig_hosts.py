"""MIG cards on hosts, or in domains with caps, short of what tasks take: what all have together says too much."""

from __future__ import annotations

import random
from fractions import Fraction

import msgspec
import pytest
from brute import TooLarge
from consolidate_brute import Moves, tiny
from consolidate_cases import sound
from mig_brute import optimum
from mig_tiny import random_mig

import placement as pl
from placement.snapshot import DomainLimit, Gpu, Job, Node, Running, RunningTask, Snapshot, Task, TaskGroup
from placement.snapshot.read import verified


def cluster(cpu: int, hosts: int, *jobs: tuple[str, int, int]) -> Snapshot:
    """Hosts with two A100s each, and jobs as (profile, cores, how many)."""
    gpus = (Gpu(model="A100-80GB", count=2, mig_enabled=True),)
    return Snapshot(
        nodes=(Node(name="n", count=hosts, cpu=cpu, gpus=gpus),),
        jobs=tuple(
            Job(name=f"j{i}", count=count, groups=(TaskGroup(name="g", task=Task(gpus=1, mig_profile=p, cpu=c)),))
            for i, (p, c, count) in enumerate(jobs)
        ),
    )


def test_cores_that_no_task_can_put_together() -> None:
    # three hosts with 3 cores and tasks of 2: one fits on each, though 9 cores are there for four
    plan = pl.solve(cluster(3, 3, ("1g.10gb", 2, 5)))
    assert plan.phases[0].value == plan.phases[0].bound == pytest.approx(3000 / 7)


def test_large_and_small_shares_of_cores() -> None:
    # hosts of 4 cores: a 3g takes 3 of them, a 2g 2, a 1g 1. Per host the best are two 2g (4/7), a 3g and a 1g (4/7),
    # or four 1g (4/7); so 8/7 on two hosts, and no more: a seventh takes a core at least
    plan = pl.solve(cluster(4, 2, ("3g.40gb", 3, 2), ("2g.20gb", 2, 1), ("1g.10gb", 1, 3)))
    assert plan.phases[0].value == plan.phases[0].bound == pytest.approx(8000 / 7)
    # with one small job a 3g and a 1g on one host, and on the other the 3g leaves a core idle: 7/7
    plan = pl.solve(cluster(4, 2, ("3g.40gb", 3, 2), ("1g.10gb", 1, 1)))
    assert plan.phases[0].value == plan.phases[0].bound == pytest.approx(7000 / 7)


@pytest.mark.parametrize("first", range(9000, 9120, 40))
def test_scarce_cores_against_brute_force(first: int) -> None:
    """One priority and value alone, which is what hosts are looked at for: the best is found, and proven a bound."""
    found = []
    for seed in range(first, first + 40):
        snapshot = verified(random_mig(seed, scarce=True, mixed=False))
        if len({job.priority for job in snapshot.jobs}) > 1:
            continue
        try:
            best = optimum(snapshot, ("value",))
        except TooLarge:
            continue
        if best:
            phase, value = pl.solve(snapshot, objectives=("value",)).phases[0], float(best[0][2])
            assert phase.value <= value * (1 + 1e-12), seed
            assert phase.bound is None or phase.bound >= value * (1 - 1e-12), seed
            found.append(phase.value >= value * (1 - 1e-12))
    assert len(found) >= 10
    assert found.count(False) <= 1


# --- caps of domains -------------------------------------------------------------------------------------------


def racks(model: str, hosts: int, limits: tuple[DomainLimit, ...], *jobs: Job) -> Snapshot:
    """Racks p and q with so many hosts each, of one card and more cores than anybody asks for."""
    gpus = (Gpu(model=model, mig_enabled=True),)
    nodes = tuple(Node(name=rack, count=hosts, cpu=64, position={"rack": rack}, gpus=gpus) for rack in "pq")
    return Snapshot(topology=("rack",), nodes=nodes, jobs=jobs, limits=limits)


def work(name: str, profile: str, count: int, cpu: int = 0, rack: str = "") -> Job:
    task = Task(gpus=1, mig_profile=profile, cpu=cpu, node_selector={"at": rack} if rack else {})
    return Job(name=name, count=count, groups=(TaskGroup(name="g", task=task),))


def test_a_cap_on_cards_of_each_rack() -> None:
    # an A30 in each rack: p may use half of it, q a quarter. A 2g counts half, so p takes one 2g or two 1g, q one 1g
    limits = (
        DomainLimit(level="rack", domain="p", gpus="500m"),
        DomainLimit(level="rack", domain="q", gpus="250m"),
    )
    snapshot = racks("A30-24GB", 1, limits, work("twos", "2g.12gb", 3), work("ones", "1g.6gb", 4))
    # 3/4 of a card by worth, where both cards together have room for two
    value = pl.solve(snapshot, objectives=("value",)).phases[0]
    assert value.value == value.bound == pytest.approx(750)
    # three 1g by number: as many quarters as the caps have
    tasks = pl.solve(snapshot, objectives=("tasks", "value")).phases[0]
    assert tasks.value == tasks.bound == 3


def test_a_cap_on_cores_of_one_rack() -> None:
    # two hosts a rack, whose cards hold two 3g each. Four start in q, which has no cap; in p 3 cores are one 3g
    # of 2 and the 1g: 5 * 3/7 + 1/7, though there is room for eight 3g
    limits = (DomainLimit(level="rack", domain="p", cpu=3),)
    jobs = work("threes", "3g.40gb", 8, cpu=2), work("one", "1g.10gb", 1, cpu=1)
    plan = pl.solve(racks("A100-80GB", 2, limits, *jobs), objectives=("value",))
    assert plan.phases[0].value == plan.phases[0].bound == pytest.approx(16000 / 7)
    plan = pl.solve(racks("A100-80GB", 2, limits, *jobs), objectives=("tasks",))
    assert plan.phases[0].value == plan.phases[0].bound == 6


def test_tasks_of_several_priorities_by_number() -> None:
    # p may use half an A30 and q a quarter: of a 2g, two 1g in p and one in q the three 1g are most, whoever is first
    limits = (
        DomainLimit(level="rack", domain="p", gpus="500m"),
        DomainLimit(level="rack", domain="q", gpus="250m"),
    )
    first = msgspec.structs.replace(work("two", "2g.12gb", 1), priority=5)
    plan = pl.solve(racks("A30-24GB", 1, limits, first, work("ones", "1g.6gb", 5)), objectives=("tasks",))
    assert plan.phases[0].value == plan.phases[0].bound == 3


def test_room_that_a_mover_makes_under_a_cap() -> None:
    # p may use half a card, of which x has a quarter. The 2g is half a card and must be in p, where slots are free for
    # it: once x is in q, for a tenth of its worth, it starts
    limits = (DomainLimit(level="rack", domain="p", gpus="500m"),)
    x = msgspec.structs.replace(
        work("x", "1g.6gb", 1),
        preemptible=True,
        running=Running(tasks=(RunningTask(group="g", index=0, node="p", gpus=(0,), mig_starts=(0,)),)),
    )
    snapshot = racks("A30-24GB", 1, limits, x, work("new", "2g.12gb", 1, rack="p"))
    nodes = tuple(msgspec.structs.replace(node, labels={"at": node.name}) for node in snapshot.nodes)
    snapshot = msgspec.structs.replace(snapshot, nodes=nodes)
    found = pl.consolidate(snapshot, move_cost=0.1)
    sound(snapshot, found)
    assert found.worth == pytest.approx(500)
    assert found.cost == pytest.approx(25)
    assert found.bound == pytest.approx(475)
    # where q may use nothing, x stays and nothing starts
    shut = (*limits, DomainLimit(level="rack", domain="q", gpus=0))
    found = pl.consolidate(msgspec.structs.replace(snapshot, limits=shut), move_cost=0.1)
    assert (found.worth, found.cost) == (0, 0)
    assert found.bound == pytest.approx(0)


def capped(seed: int) -> Snapshot:
    """Two or three hosts with an A30 each: rack p may use some part of its cards, rack q has a few cores."""
    draw = random.Random(f"caps {seed}")
    gpus = (Gpu(model="A30-24GB", mig_enabled=True),)
    nodes = [Node(name=f"n{i}", gpus=gpus, position={"rack": "pq"[i % 2]}) for i in range(draw.randint(2, 3))]
    jobs = []
    for i in range(draw.randint(3, 4)):
        task = Task(gpus=1, mig_profile=draw.choice(("1g.6gb", "2g.12gb", "4g.24gb")), cpu=draw.randint(0, 3))
        group = TaskGroup(name="g", count=draw.randint(1, 2), min_count=draw.choice((None, 1)), task=task)
        jobs.append(Job(name=f"j{i}", weight=draw.choice((1, 1, 2, 3)), groups=(group,)))
    limits = (
        DomainLimit(level="rack", domain="p", gpus=draw.choice(("500m", 1, "1500m"))),
        DomainLimit(level="rack", domain="q", cpu=draw.randint(1, 5)),
    )
    return Snapshot(topology=("rack",), nodes=tuple(nodes), jobs=tuple(jobs), limits=limits)


@pytest.mark.parametrize("goal", ["value", "tasks"])
def test_caps_against_brute_force(goal: str) -> None:
    proven = 0
    for seed in range(10):
        snapshot = verified(capped(seed))
        phase, best = pl.solve(snapshot, objectives=(goal,)).phases[0], float(optimum(snapshot, (goal,))[0][2])
        assert phase.value == pytest.approx(best, rel=1e-12), seed
        assert phase.bound is not None
        assert phase.bound >= best * (1 - 1e-12), seed
        proven += phase.bound <= best * (1 + 1e-12)
    assert proven >= 9


@pytest.mark.parametrize("first", range(9248, 9280, 16))
def test_caps_beside_what_hosts_lack_against_brute_force(first: int) -> None:
    """Other models, profiles with media engines, running instances, and a cap on every rack."""
    found = []
    for seed in range(first, first + 16):
        draw = random.Random(seed)
        snapshot = random_mig(seed, scarce=seed % 2 == 1, mixed=False)
        limits = tuple(
            DomainLimit(level="rack", domain=rack, gpus=draw.choice(("500m", 1, "1500m")), cpu=draw.randint(1, 3))
            for rack in sorted({node.position["rack"] for node in snapshot.nodes})
        )
        snapshot = verified(msgspec.structs.replace(snapshot, limits=limits))
        several = len({job.priority for job in snapshot.jobs}) > 1
        goal: str = "tasks" if several else "value"
        try:
            best = optimum(snapshot, (goal,))
        except TooLarge:
            continue
        if best:
            phase, value = pl.solve(snapshot, objectives=(goal,)).phases[0], float(best[0][2])
            assert phase.value <= value * (1 + 1e-12), seed
            assert phase.bound is None or phase.bound >= value * (1 - 1e-12), seed
            found.append(phase.value >= value * (1 - 1e-12))
    assert len(found) >= 12
    assert found.count(False) <= 1


@pytest.mark.parametrize("first", range(100, 140, 20))
def test_moving_where_the_cores_of_a_host_are_the_cap_of_its_rack(first: int) -> None:
    """Every host is a rack of its own, so it is all the same whether it has three cores or its rack may use three."""
    missed = []
    for seed in range(first, first + 20):
        snapshot, cost, most = tiny(seed, cores=3), (0.01, 0.1, 0.5)[seed % 3], (None, 0, 1, 2)[seed % 4]
        best = float(Moves(snapshot, Fraction(str(cost)), most).best())
        nodes = tuple(msgspec.structs.replace(one, cpu=None, position={"rack": one.name}) for one in snapshot.nodes)
        limits = tuple(DomainLimit(level="rack", domain=one.name, cpu=3) for one in nodes)
        snapshot = msgspec.structs.replace(snapshot, topology=("rack",), nodes=nodes, limits=limits)
        found = pl.consolidate(snapshot, move_cost=cost, max_moves=most)
        sound(snapshot, found, most)
        assert found.worth - found.cost <= best + 1e-6, seed
        assert found.bound is not None
        assert found.bound >= best - 1e-6, seed
        missed.append(found.worth - found.cost < best - 1e-6)
    # whole cards with media engines count what they could hold, so not every answer is the best
    assert missed.count(True) <= 1
