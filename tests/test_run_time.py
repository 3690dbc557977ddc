"""Run times: the factors and roundings by hand, engine against check against brute force, and the plan's table."""

from __future__ import annotations

import random
from fractions import Fraction

import brute
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_cases import golden_timed
from msgspec.structs import replace
from timed_strategies import random_timed, timed_snapshots

import placement
from placement import run_time
from placement.check import check, objective
from placement.check.values.objectives import place
from placement.check.values.run_time import run_times_of
from placement.compile import compile as compile_snapshot
from placement.errors import SnapshotError
from placement.evaluate import scores
from placement.exact import run
from placement.exact.timed import untimed
from placement.heuristics import HEURISTICS
from placement.instance import Assignment
from placement.naming import name_tasks
from placement.plan import RunTimes
from placement.run_time import settled, times
from placement.slowdown import BY_LEVELS_WIDER
from placement.snapshot import (
    DataLocality,
    Duration,
    Gpu,
    Job,
    Link,
    Nic,
    Node,
    NumaZone,
    Policy,
    Snapshot,
    Task,
    TaskGroup,
)
from placement.snapshot.read import loads, verified
from placement.solver import Limits, Stop

CARD = Task(gpus=1)


def node(name: str, model: str = "A", cards: int = 2, **position: str) -> Node:
    return Node(name=name, position=position, gpus=(Gpu(model=model, count=cards),))


def cluster(*jobs: Job, nodes: tuple[Node, ...] = ()) -> Snapshot:
    """Block x has racks r (nodes a and b) and s (c, of model B), block y has rack t (d)."""
    usual = (
        node("a", block="x", rack="r"),
        node("b", block="x", rack="r"),
        node("c", "B", block="x", rack="s"),
        node("d", block="y", rack="t"),
    )
    return Snapshot(topology=("block", "rack"), nodes=nodes or usual, jobs=jobs)


def job(duration: Duration | None = None, task: Task = CARD, count: int = 2, **more: object) -> Job:
    group = TaskGroup(name="w", count=count, min_count=1, task=task)
    return Job(name="j", groups=(group,), duration=duration, **more)  # type: ignore[arg-type]


def measured(snapshot: Snapshot, *places: tuple[int, tuple[int, ...]]) -> tuple[float, ...]:
    """Return the row of the plan's table for tasks of job 0, given as nodes and cards: engine and check must agree."""
    instance = compile_snapshot(verified(snapshot))
    assignment = Assignment.of((0, 0, task, n, cards) for task, (n, cards) in enumerate(places))
    tasks = name_tasks(instance, assignment)
    (score,) = scores(instance, assignment, ("run_time",))
    assert objective(snapshot, tasks, ("run_time",)) == [("run_time", None, score.value)]
    table = run_times_of(place(snapshot, tasks))
    assert table is not None
    weight = snapshot.jobs[0].weight
    assert score.value == weight * (Fraction(str(table.seconds[0])) + Fraction(str(table.fetch[0])))
    names = ("seconds", "fetch", "by_model", "by_level", "by_numa", "by_nic")
    return tuple(getattr(table, name)[0] for name in names)


A, B, C, D = ((number, (0,)) for number in range(4))


# --- the factors ----------------------------------------------------------------------------------------------


def test_seconds_are_rounded_up_to_milliseconds() -> None:
    # 0.0011 s is 1.1 ms: 2 ms; 0.1 s is exactly 100 ms, though no double is a tenth
    assert measured(cluster(job(Duration(seconds=0.0011))), A)[0] == 0.002
    assert measured(cluster(job(Duration(seconds=0.1))), A)[0] == 0.1
    # 0.1 times 1.1 is 110 ms exactly, and would be 111 in doubles; times 1.15 is 126.5: 127
    stated = {"gpu_models": {"A": 1.1}}
    assert measured(cluster(job(Duration(seconds=0.1, **stated))), A)[0] == 0.11  # type: ignore[arg-type]
    both = Duration(seconds=0.1, gpu_models={"A": 1.1}, levels={"node": 1.15})
    assert measured(cluster(job(both)), A)[0] == 0.127
    # rounded once, at the end: 1.4 ms times 1.5 is 2.1 ms, 3 ms; rounded before, it would be 2 times 1.5
    assert measured(cluster(job(Duration(seconds=0.0014, levels={"node": 1.5}))), A)[0] == 0.003


def test_the_slowest_model_counts() -> None:
    duration = Duration(seconds=10, gpu_models={"A": 0.5}, levels={"cluster": 1})
    assert measured(cluster(job(duration)), A)[2] == 0.5  # less than 1, and nothing else is used
    assert measured(cluster(job(duration)), A, C)[2] == 1  # B is not listed
    assert (
        measured(cluster(job(Duration(seconds=10, gpu_models={"A": 2, "B": 3}))), A, C)[0] == 10 * 3 * 2
    )  # racks r and s: two levels wider
    no_card = job(Duration(seconds=10, gpu_models={"A": 0.5}), Task())
    assert measured(cluster(no_card), (0, ()))[2] == 1


def test_cards_of_some_tasks_count_for_the_job() -> None:
    groups = (TaskGroup(name="c", task=Task()), TaskGroup(name="g", task=CARD))
    snapshot = cluster(Job(name="j", groups=groups, duration=Duration(seconds=1, gpu_models={"A": 0.5})))
    instance = compile_snapshot(verified(snapshot))
    both = Assignment.of([(0, 0, 0, 0, ()), (0, 1, 0, 0, (0,))])
    assert times(instance, both).run == [500]


def test_levels_count_from_the_narrowest_that_is_listed() -> None:
    # cluster > block > rack > node; what is not listed is as the next narrower that is
    duration = Duration(seconds=10, levels={"rack": 2, "cluster": 3})
    assert measured(cluster(job(duration)), A)[3] == 1  # node: nothing narrower is listed
    assert measured(cluster(job(duration)), A, B)[3] == 2  # rack r
    assert measured(cluster(job(duration)), A, C)[3] == 2  # block x, as the rack
    assert measured(cluster(job(duration)), A, D)[3] == 3
    assert measured(cluster(job(Duration(seconds=10, levels={"node": 4}))), A, D)[3] == 4
    nowhere = (node("a", rack="r"), node("b"))
    assert measured(cluster(job(duration), nodes=nowhere), A, B)[3] == 3  # b is in no rack, so the cluster holds it


def test_the_default_curve() -> None:
    assert [float(factor) for factor in BY_LEVELS_WIDER] == [1, 1.5, 2]
    snapshot = cluster(job(Duration(seconds=10)))
    assert measured(snapshot, A, (0, (1,)))[0] == 10  # one node
    assert measured(snapshot, A, B)[0] == 15  # one level wider: rack r
    assert measured(snapshot, A, C)[0] == 20  # block x
    assert measured(snapshot, A, D)[0] == 20  # the cluster
    assert measured(snapshot, A)[0] == 10  # one task


def zoned(*zones: tuple[tuple[int, ...], int]) -> tuple[Node, ...]:
    """A node whose zones have these cards and so many NICs."""
    listed = tuple(
        NumaZone(id=number, gpus=gpus, nics=tuple(Nic(name=f"{number}-{i}") for i in range(nics)))
        for number, (gpus, nics) in enumerate(zones)
    )
    cards = sum(len(gpus) for gpus, _ in zones)
    return (Node(name="a", gpus=(Gpu(model="A", count=cards),), zones=listed),)


def test_cards_in_more_zones_than_they_need() -> None:
    nodes = zoned(((0, 1), 0), ((2, 3), 0))
    two, three = (cluster(job(Duration(seconds=10), Task(gpus=gpus)), nodes=nodes) for gpus in (2, 3))
    assert measured(two, (0, (0, 1)))[::4] == (10, 1)
    assert measured(three, (0, (0, 1, 2)))[::4] == (10, 1)  # no zone has three
    for snapshot, cards, due in ((two, (0, 2), 1.4), (two, (2, 3), 1)):
        instance = compile_snapshot(verified(snapshot))
        # alike cards would be exchanged when they are named, so that those of a task are in one zone
        assert times(instance, Assignment.of([(0, 0, 0, 0, cards)])).run == [10_000 * due]
    # a zone with three cards, but two of three lie in the other one
    uneven = cluster(job(Duration(seconds=10, numa_misaligned=2), Task(gpus=2)), nodes=zoned(((0,), 0), ((1, 2), 0)))
    instance = compile_snapshot(verified(uneven))
    assert times(instance, Assignment.of([(0, 0, 0, 0, (0, 2))])).run == [20_000]
    plain = cluster(job(Duration(seconds=10), Task(gpus=2)))
    assert measured(plain, (0, (0, 1)))[4] == 1  # no zones are listed


def test_cards_in_zones_with_fewer_nics() -> None:
    nodes = zoned(((0, 1), 1), ((2, 3), 2))
    for cards, due in (((0,), 1.4), ((2,), 1)):
        snapshot = cluster(job(Duration(seconds=10), Task(gpus=1, nics=2), 1), nodes=nodes)
        instance = compile_snapshot(verified(snapshot))
        assert times(instance, Assignment.of([(0, 0, 0, 0, cards)])).run == [10_000 * due]
    without_cards = cluster(job(Duration(seconds=10), Task(nics=3), 1), nodes=nodes)
    assert measured(without_cards, (0, ()))[5] == 1
    without_nics = cluster(job(Duration(seconds=10), Task(gpus=2), 1), nodes=zoned(((0, 1), 0)))
    assert measured(without_nics, (0, (0, 1)))[5] == 1


def test_links_do_not_pull_cards_into_zones_where_the_job_runs_longer() -> None:
    # NVLink joins cards of different zones; where nothing says how long the job runs, they are taken for it
    links = (Link(a=0, b=2, kind="NVLINK"), Link(a=1, b=3, kind="NVLINK"))
    nodes = (replace(zoned(((0, 1), 0), ((2, 3), 0))[0], links=links),)
    apart = compile_snapshot(verified(cluster(job(None, Task(gpus=2), 1), nodes=nodes)))
    assignment = Assignment.of([(0, 0, 0, 0, (0, 1))])
    assert settled(apart, assignment).cards.tolist() == [0, 2]
    timed = compile_snapshot(verified(cluster(job(Duration(seconds=9), Task(gpus=2), 1), nodes=nodes)))
    assert settled(timed, assignment).cards.tolist() == [0, 1]
    # it is settled once for as long as somebody holds it, and other arrays are another assignment
    assert settled(timed, assignment) is settled(timed, assignment)
    copied = Assignment.of([(0, 0, 0, 0, (0, 1))])
    assert settled(timed, copied) is not settled(timed, assignment)
    assert settled(apart, assignment).cards.tolist() == [0, 2]
    kept = len(run_time._kept._known)
    del copied
    assert len(run_time._kept._known) < kept


# --- data -----------------------------------------------------------------------------------------------------


def fetched(*data: DataLocality, places: tuple[tuple[int, tuple[int, ...]], ...]) -> float:
    return measured(cluster(job(data=data)), *places)[1]


def test_data_are_fetched_from_the_narrowest_shared_level() -> None:
    seconds = {"rack": 1.0, "block": 10.0, "cluster": 100.0}
    in_r = DataLocality(level="rack", domain="r", fetch_seconds=seconds)
    assert fetched(in_r, places=(A,)) == 1  # a node within the rack is no nearer than the rack
    assert fetched(in_r, places=(A, B)) == 1
    assert fetched(in_r, places=(A, C)) == 10
    assert fetched(in_r, places=(D,)) == 100
    assert fetched(DataLocality(level="rack", domain="r", fetch_seconds={"node": 3.0}), places=(C,)) == 3
    assert fetched(DataLocality(level="node", domain="b", fetch_seconds={"rack": 2.0001}), places=(A,)) == 2.001
    assert fetched(DataLocality(level="node", domain="b", fetch_seconds={"rack": 2.0}), places=(B,)) == 0
    assert fetched(DataLocality(level="rack", domain="none", fetch_seconds=seconds), places=(A,)) == 100


def test_the_cheapest_copy_counts() -> None:
    near = DataLocality(level="rack", domain="t", fetch_seconds={"rack": 5, "cluster": 50})
    far = DataLocality(level="block", domain="x", fetch_seconds={"block": 7, "cluster": 40})
    assert fetched(near, far, places=(D,)) == 5
    assert fetched(near, far, places=(A,)) == 7
    assert fetched(near, far, places=(A, D)) == 40


def test_data_on_one_of_counted_nodes() -> None:
    nodes = (Node(name="n", count=3, gpus=(Gpu(model="A"),)),)
    data = DataLocality(level="node", domain="n-1", fetch_seconds={"node": 1, "cluster": 9})
    one = job(data=(data,), count=1)
    assert [measured(cluster(one, nodes=nodes), (n, (0,)))[1] for n in range(3)] == [9, 1, 9]


# --- solving --------------------------------------------------------------------------------------------------


def test_the_objective_is_added_where_a_job_says_how_long_it_runs() -> None:
    plain = placement.solve(cluster(job()), solver="best-fit")
    assert ([phase.objective for phase in plain.phases], plain.run) == (["value", "tasks"], None)
    timed = placement.solve(cluster(job(Duration(seconds=1))), solver="best-fit")
    assert [phase.objective for phase in timed.phases] == ["value", "tasks", "run_time"]
    policy = Policy(objectives=("tasks",))
    stated = placement.solve(replace(cluster(job(Duration(seconds=1))), policy=policy), solver="best-fit")
    assert [phase.objective for phase in stated.phases] == ["tasks"]
    assert stated.run is not None


def test_a_gang_goes_to_the_fast_cards_and_stays_together() -> None:
    # four tasks: nodes a and b in rack r at 1.5 are the best; with c there were 3, and twice as wide
    plan = placement.solve(cluster(job(Duration(seconds=100, gpu_models={"B": 3}), count=4)), solver="exact")
    assert plan.run == RunTimes(
        job=["j"],
        level=["rack"],
        seconds=[150],
        fetch=[0],
        by_model=[1],
        by_level=[1.5],
        by_numa=[1],
        by_nic=[1],
        by_sharing=[1],
    )
    assert [(phase.value, phase.bound) for phase in plan.phases][2] == (150, 150)
    assert (plan.status, plan.stop) == ("proven", "optimal")


def test_the_heavier_job_gets_the_place_that_both_would_like() -> None:
    duration = Duration(seconds=10, gpu_models={"B": 2})
    nodes = (node("a", cards=1), node("b", "B", 1))
    light, heavy = (
        Job(name=name, weight=weight, duration=duration, groups=(TaskGroup(name="w", task=CARD),))
        for name, weight in (("light", 1), ("heavy", 3))
    )
    plan = placement.solve(cluster(light, heavy, nodes=nodes), solver="exact")
    assert plan.tasks["heavy", "w", 0].node == "a"
    assert plan.phases[2].value == 3 * 10 + 1 * 20


def test_one_node_outside_every_domain_is_still_one_node() -> None:
    # the rack and the node are worth the same, but the only node with two cards is in no rack
    nodes = (node("a", cards=1, rack="r"), node("b"))
    gang = TaskGroup(name="w", count=2, task=CARD)
    timed = Job(name="j", groups=(gang,), duration=Duration(seconds=10, levels={"cluster": 1.1, "node": 1}))
    plan = placement.solve(cluster(timed, nodes=nodes), solver="exact")
    assert plan.phases[2].value == plan.phases[2].bound == 10


def test_value_comes_first() -> None:
    plan = placement.solve(cluster(job(Duration(seconds=100, gpu_models={"B": 9}), count=8)), solver="exact")
    assert [phase.value for phase in plan.phases] == [8000, 8, 1800]


@pytest.mark.parametrize("seed", range(150))
def test_values_of_plans_against_brute_force(seed: int) -> None:
    snapshot = verified(random_timed(seed))
    orders = [("value", "tasks", "locality", "run_time"), ("value", "run_time"), ("run_time", "value")]
    objectives = random.Random(seed).choice([*orders, ("tasks", "run_time", "nodes")])
    instance = compile_snapshot(snapshot)
    result = run(instance, objectives=objectives, limits=Limits())
    found = [(s.objective, s.priority, s.value) for s in scores(instance, result.assignment, objectives)]
    assert found == brute.optimum(snapshot, objectives)
    assert found == objective(snapshot, name_tasks(instance, result.assignment), objectives)
    assert result.stop is Stop.OPTIMAL


@given(timed_snapshots(6), st.sampled_from(["first-fit", "worst-fit", "random", "fastest-fit"]))
def test_engine_and_check_measure_the_same(snapshot: Snapshot, rule: str) -> None:
    instance = compile_snapshot(verified(snapshot))
    assignment = HEURISTICS[rule].solve(instance, objectives=(), limits=Limits(), seed=1).assignment
    (score,) = scores(instance, assignment, ("run_time",))
    assert objective(snapshot, name_tasks(instance, assignment), ("run_time",)) == [("run_time", None, score.value)]


def test_random_snapshots_know_every_factor() -> None:
    seen = dict.fromkeys(("by_model", "by_level", "by_numa", "by_nic", "fetch"), 0)
    for seed in range(400):
        snapshot = verified(random_timed(seed))
        instance = compile_snapshot(snapshot)
        assignment = HEURISTICS["worst-fit"].solve(instance, objectives=(), limits=Limits()).assignment
        table = run_times_of(place(snapshot, name_tasks(instance, assignment))) or RunTimes()
        for name in seen:
            seen[name] += any(number not in (0, 1) for number in getattr(table, name))
    assert min(seen.values()) >= 3, seen


def test_fastest_fit_gives_fast_cards_to_those_who_gain() -> None:
    # A is twice as fast for the second job, and all the same to the first, which leaves it to the other
    nodes = (node("a", "A", 1), node("b", "B", 1))
    first = Job(name="i", groups=(TaskGroup(name="w", task=CARD),), duration=Duration(seconds=10))
    second = Job(name="j", groups=(TaskGroup(name="w", task=Task(gpus=1, cpu=1)),))
    second = replace(second, duration=Duration(seconds=10, gpu_models={"A": 0.5}))
    timed = placement.solve(cluster(first, second, nodes=nodes), solver="fastest-fit")
    assert (timed.tasks["i", "w", 0].node, timed.tasks["j", "w", 0].node) == ("b", "a")
    plain = cluster(replace(first, duration=None), replace(second, duration=None), nodes=nodes)
    fastest, best = (placement.solve(plain, solver=rule).tasks for rule in ("fastest-fit", "best-fit"))
    assert fastest == best


def test_jobs_that_differ_in_run_time_alone_are_one_class_without_it() -> None:
    jobs = tuple(replace(job(Duration(seconds=number)), name=f"j{number}") for number in range(3))
    instance = compile_snapshot(verified(cluster(*jobs)))
    one = untimed(instance)
    assert (len(instance.job_classes), len(one.job_classes)) == (3, 1)
    assert one.job_classes[0].jobs.tolist() == [0, 1, 2]
    assert (instance.timed, one.timed, one.job_class.tolist()) == (True, False, [0, 0, 0])


def test_large_instances_are_improved_and_their_plans_hold() -> None:
    nodes = (
        Node(name="slow", count=30, position={"rack": "r"}, gpus=(Gpu(model="B", count=8),)),
        Node(name="fast", count=30, position={"rack": "s"}, gpus=(Gpu(model="A", count=8),)),
    )
    jobs = tuple(
        Job(
            name=f"j{number}",
            count=10,
            duration=Duration(seconds=100 + number, gpu_models={"B": 1 + number % 3}),
            groups=(TaskGroup(name="w", count=1 + number % 2, task=CARD),),
        )
        for number in range(24)
    )
    snapshot = Snapshot(topology=("rack",), nodes=nodes, jobs=jobs)
    greedy = placement.solve(snapshot, solver="first-fit")
    plan = placement.solve(snapshot, solver="exact")
    assert [phase.value for phase in plan.phases][:2] == [phase.bound for phase in plan.phases][:2]
    assert plan.phases[2].bound == 0  # nothing is known but that time is not negative
    # a third of the jobs does not care; all others have room on the fast nodes
    assert plan.phases[2].value < 0.75 * greedy.phases[2].value
    assert plan.phases[2].value == sum((100 + number) * 10 for number in range(24))


# --- what is refused ------------------------------------------------------------------------------------------


def test_a_plan_that_lies_about_its_run_times() -> None:
    snapshot = cluster(job(Duration(seconds=10)))
    plan = placement.solve(snapshot, solver="first-fit")
    assert plan.run is not None
    assert check(snapshot, plan) == []
    assert plan.run.seconds == [10]
    lies = {name: [*getattr(plan.run, name)] for name in RunTimes.__struct_fields__}
    for name, value in lies.items():
        other = replace(plan.run, **{name: ["x" if name in ("job", "level") else value[0] + 1]})
        (violation,) = check(snapshot, replace(plan, run=other))
        assert (violation.rule, violation.path) == ("run_time", "run[0]")
    (violation,) = check(snapshot, replace(plan, run=None))
    assert "the tasks make 1 row" in str(violation)
    phases = [*plan.phases[:2], msgspec.structs.replace(plan.phases[2], value=9.0)]
    (violation,) = check(snapshot, replace(plan, phases=phases))
    assert (violation.rule, violation.path) == ("objective", "phases[2].value")


@pytest.mark.parametrize(
    "duration",
    [{"seconds": 1e11}, {"seconds": 1, "levels": {"node": 1e7}}, {"seconds": 1, "gpu_models": {"A": 1e300}}],
)
def test_numbers_that_mean_nothing(duration: dict[str, object]) -> None:
    jobs = [{"name": "j", "groups": [{"name": "g", "task": {}}], "duration": duration}]
    with pytest.raises(SnapshotError, match="at most"):
        loads(msgspec.json.encode({"format": "placement-snapshot/1", "jobs": jobs}))


def test_the_golden_instance_states_every_kind_of_mode() -> None:
    first, second = (one.run for one in golden_timed().job_classes)
    assert first is not None
    assert second is not None
    assert first.levels == (Fraction(3, 2), Fraction(1), Fraction(6, 5))
    assert first.nic == Fraction(3, 2)
    assert (first.data[0].domains, first.data[0].fetch) == ((0, 0), (500, 1000))
    assert second.numa == Fraction(1, 2)
