"""Ways to share a card: how many may, what each has of its memory, how much longer it runs; by hand and at random."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from shared_cases import (
    GIB,
    Placed,
    card,
    job,
    limit_of,
    milli,
    most_milli,
    node,
    plans,
    runs,
    shared_cards,
    shared_snapshots,
)

import placement as pl
from placement.check import overfull
from placement.check.loads import clients as judged
from placement.check.values.slowdown import sharing_factor
from placement.compile import compile as compile_snapshot
from placement.errors import SnapshotError
from placement.evaluate import scores
from placement.exact import run
from placement.hardware.sharing import memory_of_replica, most_clients, slowdown, slowed
from placement.instance import Instance
from placement.snapshot import Duration, Gpu, Job, MigInstance, Node, Policy, Snapshot
from placement.snapshot.read import verified
from placement.solver import Limits

# --- facts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gpu", "cuda", "most"),
    [
        (card("shared"), "", None),
        (card("time_slicing"), "", None),
        (card("time_slicing", replicas=4), "", 4),
        (card("mps"), "", 48),
        (card("mps"), "13.0", 48),
        (card("mps"), "13.1", 60),
        (card("mps", compute_capability="7.0"), "12.4", 48),
        (card("mps", compute_capability="6.1"), "13.2", 16),
        (card("mps", replicas=10), "13.1", 10),
        (card("mps", replicas=100), "", 48),
        (card("exclusive"), "", None),
        (card("shared", mig_enabled=True), "", None),
    ],
)
def test_how_many_may_share_a_card(gpu: Gpu, cuda: str, most: int | None) -> None:
    assert most_clients(gpu, cuda) == most
    assert judged.most(Node(name="n", cuda=cuda), gpu) == (judged.NO_LIMIT if most is None else most)
    if not gpu.mig_enabled:
        assert limit_of(gpu, cuda) == most


def test_replicas_divide_the_memory_under_mps_alone() -> None:
    assert memory_of_replica(card("mps", replicas=4, memory="80Gi")) == 20 * GIB
    assert memory_of_replica(card("mps", replicas=3, memory=10)) == Fraction(10, 3)
    for gpu in (card("mps", memory="80Gi"), card("mps", replicas=4), card("time_slicing", replicas=4, memory="80Gi")):
        assert memory_of_replica(gpu) is None


def test_usual_slowdown() -> None:
    # taking turns: 4 % for memory, and up to 15 % for turns, evenly from one task to eight
    assert slowdown(card("time_slicing", replicas=1)) == Fraction("1.04")
    assert slowdown(card("vgpu", replicas=2)) == Fraction("1.04") + Fraction(15, 700)
    assert slowdown(card("time_slicing", replicas=8)) == Fraction("1.19")
    assert slowdown(card("time_slicing", replicas=20)) == slowdown(card("vgpu")) == Fraction("1.19")
    for way in ("shared", "mps", "exclusive"):
        assert slowdown(card(way)) == 1


def test_who_has_a_fixed_share_gains_nothing_from_absent_neighbours() -> None:
    # for planning all that may come count, under every policy
    for policy in ("", "best_effort", "equal_share", "fixed_share"):
        gpu = card("vgpu", replicas=4, vgpu_policy=policy)
        assert slowdown(gpu) == Fraction("1.04") + Fraction(15 * 3, 700)
        # two who are there: 0.15 / 7 for turns; with fixed shares it is as if all four were
        assert slowed(gpu, 2) == (slowdown(gpu) if policy == "fixed_share" else Fraction("1.04") + Fraction(15, 700))
    assert slowed(card("vgpu", vgpu_policy="fixed_share"), 2) == Fraction("1.19")


@given(shared_cards(["shared", "time_slicing", "mps", "vgpu", "exclusive"]))
def test_the_judge_has_the_same_slowdown(gpu: Gpu) -> None:
    assert sharing_factor(gpu) == slowdown(gpu)


# --- what is wrong --------------------------------------------------------------------------------------------


def problems(*gpus: Gpu) -> dict[str, str]:
    with pytest.raises(SnapshotError) as caught:
        verified(Snapshot(nodes=(node("n", *gpus),)))
    return {problem.path: str(problem) for problem in caught.value.problems}


def test_replicas_of_cards_that_nobody_shares() -> None:
    assert "expected 1 or more" in problems(card("mps", replicas=0))["nodes[0].gpus[0].replicas"]
    assert '"exclusive" cards are not shared' in problems(card("exclusive", replicas=2))["nodes[0].gpus[0].replicas"]
    instances = (MigInstance(profile="3g.20gb", start=0),)
    mig = Gpu(model="A100-40", mig_enabled=True, mig_layout=instances, replicas=2)
    assert "while MIG mode is on" in problems(mig)["nodes[0].gpus[0].replicas"]
    assert (
        "while MIG mode is on" in problems(card("mps", model="A100-40", mig_enabled=True))["nodes[0].gpus[0].sharing"]
    )


def test_a_node_shares_its_cards_in_one_way() -> None:
    found = problems(card("shared"), card("mps"), card("vgpu"), card("time_slicing"))
    assert found == {
        "nodes[0].gpus[3].sharing": 'nodes[0].gpus[3].sharing: found "time_slicing", but gpus[1] of the same node says '
        '"mps"; a node shares its cards in one of these ways: keep one'
    }
    verified(Snapshot(nodes=(node("a", card("mps"), card("exclusive")), node("b", card("time_slicing")))))


def test_policies_of_virtual_gpus() -> None:
    found = problems(card("mps", vgpu_policy="fixed_share"), card(vgpu_policy="best_effort"), card("vgpu"))
    assert found["nodes[0].gpus[0].vgpu_policy"] == (
        'nodes[0].gpus[0].vgpu_policy: found "fixed_share", but the card is "mps": only virtual GPUs have a policy; '
        'leave it out, or say "sharing": "vgpu"'
    )
    assert set(found) == {"nodes[0].gpus[0].vgpu_policy", "nodes[0].gpus[1].vgpu_policy"}
    sliced = card("vgpu", model="A100-40GB", mig_enabled=True, vgpu_policy="equal_share")
    assert "do not take turns" in problems(sliced)["nodes[0].gpus[0].vgpu_policy"]
    verified(Snapshot(nodes=(node("n", card("vgpu", vgpu_policy="equal_share")),)))


def test_cards_too_old_for_mps() -> None:
    assert (
        "MPS needs compute capability 3.5"
        in problems(card("mps", compute_capability="3.0"))["nodes[0].gpus[0].sharing"]
    )
    verified(Snapshot(nodes=(node("n", card("mps", compute_capability="3.5"), card("mps")),)))


# --- how many -------------------------------------------------------------------------------------------------


def compiled(nodes: tuple[Node, ...], *jobs: Job) -> Instance:
    return compile_snapshot(verified(Snapshot(nodes=nodes, jobs=jobs)))


def test_shares_as_large_as_a_replica_keep_the_limit_by_themselves() -> None:
    instance = compiled((node("n", card("mps", replicas=4)),), job("a", 0.25), job("b", 0.5))
    assert instance.exact
    assert not instance.crowded
    assert [shape.units * 4 for shape in instance.shapes] == [instance.card_units, instance.card_units * 2]


def test_smaller_shares_count_as_a_replica() -> None:
    # a tenth counts as a quarter: the unit is the largest that both are whole in, a twentieth
    instance = compiled((node("n", card("mps", replicas=4, count=2)),), job("a", 0.1, 3), job("b"))
    assert instance.crowded
    assert not instance.exact
    assert (instance.card_units, [shape.units for shape in instance.shapes]) == (20, [5, 20])
    # what they are worth is what they ask for
    assert [job_class.leaves[0].value * instance.value_unit for job_class in instance.job_classes] == [100, 1000]


def test_few_limited_cards_are_left_alone() -> None:
    # ten tenths on each of three plain cards, or two on each of four: the card for two is given up
    nodes = (node("n", card(count=3)), node("m", card("mps", replicas=2)))
    instance = compiled(nodes, job("a", 0.1), job("b"), job("c", 0.5))
    assert instance.crowded
    limited = [kind.clients for kind in instance.card_kinds].index(2)
    assert [shape.units for shape in instance.shapes] == [1, 10, 5]
    assert instance.admits_card[:, limited].tolist() == [False, True, True]
    # three cards for two and one without a limit: ten tenths are more than four times two
    nodes = (node("n", card()), node("m", card("mps", replicas=2, count=3)))
    assert [shape.units for shape in compiled(nodes, job("a", 0.1)).shapes] == [1]
    # with four of them both ways hold ten, and the smaller share is kept; with five, twelve
    for count, units in ((4, 1), (5, 5)):
        nodes = (node("n", card()), node("m", card("mps", replicas=2, count=count)))
        assert [shape.units for shape in compiled(nodes, job("a", 0.1)).shapes] == [units]


def test_cards_that_a_task_may_not_use_do_not_count() -> None:
    nodes = (node("n", card(model="B")), node("m", card("mps", replicas=2)))
    assert compiled(nodes, job("a", 0.1, gpu_models=("B",))).exact
    assert compiled(nodes, job("a", 1)).exact
    unhealthy = (node("n", card()), node("m", card("mps", replicas=2, health="unhealthy")))
    assert compiled(unhealthy, job("a", 0.1)).exact
    # of 3 GiB one fits on the card for one and none on the others, of 1 GiB two on each of these, so they are better
    nodes = (node("n", card(memory=2 * GIB, count=2)), node("m", card(memory=8 * GIB, replicas=1)))
    for memory, units, placed in ((3, 2, 1), (1, 1, 4)):  # a half is one unit of two
        work = job("a", 0.5, 5, gpu_memory=memory * GIB)
        instance = compiled(nodes, work)
        assert instance.shapes[0].units == units
        assert instance.shapes[0].counts_whole == (memory == 3)
        assert len(pl.solve(Snapshot(nodes=nodes, jobs=(work,))).tasks) == placed
    # nor do cards of which each replica has less memory than is asked for
    nodes = (node("n", card("mps", memory=8 * GIB, replicas=4, count=9)), node("m", card("mps", replicas=1)))
    assert len(pl.solve(Snapshot(nodes=nodes, jobs=(job("a", 0.3, gpu_memory=3 * GIB),))).tasks) == 1


def test_a_schedule_counts_shares_where_one_may_be_there() -> None:
    # each 10 s at twice its time, one after the other: 20 and 40
    jobs = tuple(job(name, 0.5, duration=Duration(seconds=10, shared=2)) for name in "ab")
    policy = Policy(objectives=("completion_time",))
    snapshot = Snapshot(nodes=(node("n", card("mps", replicas=1)),), jobs=jobs, policy=policy)
    found = pl.schedule(snapshot)
    assert (found.value, pl.check(snapshot, found)) == (60, [])
    assert found.bound is not None
    assert found.bound <= 60


def test_no_more_tasks_than_replicas() -> None:
    # ten tasks of a twentieth would be half a card, but only four may be on it; nothing is proven then
    plan = pl.solve(Snapshot(nodes=(node("n", card("time_slicing", replicas=4)),), jobs=(job("a", 0.05, 10),)))
    assert len(plan.tasks) == 4
    assert plan.checked
    assert plan.phases[0].bound == 500  # what all that wait are worth is all that is known
    assert any("counted as one Nth" in note for note in plan.notes)


def test_replicas_of_equal_shares_are_proven() -> None:
    plan = pl.solve(Snapshot(nodes=(node("n", card("mps", replicas=4)),), jobs=(job("a", 0.25, 10),)))
    assert (len(plan.tasks), plan.status) == (4, "proven")


def test_running_tasks_are_clients_too() -> None:
    # two run with a tenth each; 0.3 + 0.3 would fit beside them, and as many as two more may come
    nodes = (node("n", card("mps", replicas=4)),)
    snapshot = Snapshot(nodes=nodes, jobs=(runs("r", 0.1, ("n", 0), ("n", 0)), job("a", 0.25, 5)))
    plan = pl.solve(snapshot)
    assert len(plan.tasks) == 2
    assert plan.checked
    assert plan.phases[0].bound == 5 * 250
    # nobody who waits shares: then what runs takes what it takes
    alone = compiled(nodes, runs("r", 0.1, ("n", 0)), job("a"))
    assert alone.exact
    assert alone.classes[0].cards[0][1] * 10 == 9 * alone.card_units


def test_what_runs_may_be_too_much_already() -> None:
    nodes = (node("n", card("mps", replicas=2), card("mps", replicas=2)),)
    snapshot = Snapshot(nodes=nodes, jobs=(runs("r", 0.1, *[("n", 0)] * 3), job("a", 0.5, 5)))
    assert overfull(verified(snapshot)) == ["n gpu 0: 3 tasks on it, at most 2 (job r)"]
    plan = pl.solve(snapshot)
    assert plan.tasks.gpus == [[1], [1]]
    plan.tasks.gpus[1] = [0]
    found = [str(one) for one in pl.check(snapshot, plan) if one.rule == "clients"]
    assert found == ["clients: nodes[0].gpus[0]: n gpu 0: 4 tasks on it (3 of them running work), at most 2"]


def test_many_clients_of_mps() -> None:
    # 60 tasks of a hundredth: 48 are let in, 60 from CUDA 13.1 on, 16 before Volta
    for more, cuda, most in (({}, "12.9", 48), ({}, "13.1", 60), ({"compute_capability": "6.1"}, "", 16)):
        nodes = (node("n", card("mps", **more), cuda=cuda),)
        assert len(pl.solve(Snapshot(nodes=nodes, jobs=(job("a", 0.01, 70),)), solver="best-fit").tasks) == most


def test_more_memory_than_a_replica_has() -> None:
    nodes = (node("n", card("mps", replicas=4, memory="80Gi")),)
    jobs = (job("a", 0.25, gpu_memory="20Gi"), job("b", 0.25, gpu_memory="21Gi"))
    plan = pl.solve(Snapshot(nodes=nodes, jobs=jobs))
    assert plan.tasks.job == ["a"]
    (waits,) = plan.pending
    assert "21Gi of device memory is asked for, and each replica has 20Gi" in waits.detail
    # a whole card is nobody's replica
    assert len(pl.solve(Snapshot(nodes=nodes, jobs=(job("c", gpu_memory="70Gi"),))).tasks) == 1


# --- how long -------------------------------------------------------------------------------------------------


def row(plan: pl.Plan) -> tuple[float, float]:
    assert plan.run is not None
    return plan.run.seconds[0], plan.run.by_sharing[0]


def took(gpu: Gpu, share: object, **duration: object) -> tuple[float, float]:
    jobs = (job("a", share, duration=Duration(seconds=100, **duration)),)  # type: ignore[arg-type]
    snapshot = Snapshot(nodes=(node("n", gpu),), jobs=jobs)
    plan = pl.solve(snapshot)
    assert plan.checked
    assert plan.phases[-1].objective == "run_time"
    assert plan.phases[-1].bound == pytest.approx(row(plan)[0])
    return row(plan)


def test_how_long_it_takes_on_a_share() -> None:
    assert took(card("time_slicing"), 0.5) == (119, 1.19)
    # for two tasks 1.04 and a seventh of 0.15, 1.061428...: 106,143 ms, rounded up
    longer, factor = took(card("time_slicing", replicas=2), 0.5)
    assert longer == 106.143
    assert factor == pytest.approx(1.04 + 0.15 / 7)
    assert took(card("time_slicing"), None) == took(card("time_slicing"), 1) == (100, 1)
    assert took(card("mps"), 0.5) == took(card("shared"), 0.5) == (100, 1)
    # a job that knows better: on any shared card, and with its card model's factor
    assert took(card("shared"), 0.5, shared=1.5) == (150, 1.5)
    assert took(card("time_slicing"), 0.5, shared=0.8) == (80, 0.8)
    assert took(card("vgpu"), 0.5, gpu_models={"A": 2}) == (238, 1.19)
    assert took(card("vgpu"), None, shared=3) == (100, 1)


@pytest.mark.parametrize(
    ("gpu", "share", "shared", "seconds"),
    [("time_slicing", 0.5, None, 104), ("mps", 0.5, 2, 200), ("mps", 1, 2, 100), ("mps", None, 2, 100)],
)
def test_where_one_may_be_there_it_still_takes_a_share(gpu: str, share: object, shared: object, seconds: int) -> None:
    # it counts as a whole card, but it is half of one that it takes
    work = job("a", share, duration=Duration(seconds=100, shared=shared))  # type: ignore[arg-type]
    plan = pl.solve(Snapshot(nodes=(node("n", card(gpu, replicas=1)),), jobs=(work,)))
    assert plan.checked
    assert row(plan)[0] == seconds


def test_the_least_factor_is_found() -> None:
    # 1.04 plus 0.15 / 7 for two, 1.19 without a limit; both cards take the task
    nodes = (node("n", card("time_slicing"), card("time_slicing", replicas=2)),)
    plan = pl.solve(Snapshot(nodes=nodes, jobs=(job("a", 0.5, duration=Duration(seconds=700)),)))
    assert plan.tasks.gpus == [[1]]
    assert row(plan)[0] == 743  # 700 * 1.04 + 15
    assert plan.status == "proven"


def test_the_slowest_shared_card_counts() -> None:
    nodes = (node("n", card("time_slicing"), card("shared")),)
    jobs = (job("a", 0.75, 2, duration=Duration(seconds=100)),)
    plan = pl.solve(Snapshot(nodes=nodes, jobs=jobs))
    assert len(plan.tasks) == 2
    assert row(plan) == (119, 1.19)


def test_fastest_fit_prefers_cards_without_turns() -> None:
    nodes = (node("a", card("time_slicing")), node("b", card("mps")), node("c", card("vgpu", replicas=2)))
    jobs = tuple(job(name, 0.5, duration=Duration(seconds=10)) for name in "jklmn")
    plan = pl.solve(Snapshot(nodes=nodes, jobs=jobs), solver="fastest-fit")
    # two on MPS, two on the vGPU card, 1.061..., the last where it takes 1.19 times as long
    assert sorted(plan.tasks.node) == ["a", "b", "b", "c", "c"]


def test_many_jobs_are_moved_off_cards_with_turns() -> None:
    # too many for the model: 60 tasks of half a card, and 30 cards on which nobody takes turns
    nodes = (node("a", card("time_slicing", count=4), count=10), node("b", card("mps", count=3), count=10))
    two = (job("j", 0.5, duration=Duration(seconds=10)), job("k", 0.5, duration=Duration(seconds=20)))
    jobs = tuple(replace(one, count=30) for one in two)
    plan = pl.solve(Snapshot(nodes=nodes, jobs=jobs), time_limit=20)
    assert plan.checked
    assert plan.run is not None
    assert plan.run.by_sharing == [1] * 60


# --- at random ------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(shared_snapshots(), st.sampled_from(("first-fit", "best-fit", "fgd", "fastest-fit", "worst-fit")))
def test_greedy_plans_hold(snapshot: Snapshot, solver: str) -> None:
    plan = pl.solve(snapshot, solver=solver)
    assert pl.check(snapshot, plan) == []
    assert plan.value is not None
    assert plan.value <= most_milli(snapshot)


@settings(max_examples=25)
@given(shared_snapshots(most_tasks=4))
def test_bounds_are_none_or_true(snapshot: Snapshot) -> None:
    plan = pl.solve(snapshot, objectives=("value",))
    assert pl.check(snapshot, plan) == []
    best = most_milli(snapshot)
    instance = compile_snapshot(verified(snapshot))
    if instance.exact:
        assert plan.status == "proven"
        assert plan.value == best
    assert plan.phases[0].bound is not None
    assert plan.phases[0].bound >= best


def seconds(one: Job, gpus: list[Gpu]) -> Fraction:
    """Return the weighted seconds of a job of one node with tasks on some cards."""
    task, duration = one.groups[0].task, one.duration
    if duration is None or not gpus:
        return Fraction(0)
    assert task is not None
    factor = Fraction(1)
    if task.gpu_share is not None:
        usual = [sharing_factor(gpu) for gpu in gpus]
        factor = max(usual) if duration.shared is None else Fraction(str(duration.shared))
    return one.weight * Fraction(-(-1000 * int(duration.seconds) * factor // 1), 1000)


def total_seconds(placed: Placed, gpus: list[Gpu]) -> Fraction:
    """Return the weighted seconds of all jobs of a plan."""
    used: dict[str, tuple[Job, list[Gpu]]] = {}
    for one, c in placed:
        used.setdefault(one.name, (one, []))[1].extend([] if c is None else [gpus[c]])
    return sum((seconds(one, on) for one, on in used.values()), Fraction(0))


@settings(max_examples=25)
@given(shared_snapshots(most_tasks=4))
def test_run_times_are_the_least_of_all_best_plans(snapshot: Snapshot) -> None:
    """On one node, so that levels do not count; engine and judge measure alike, and the model proves the least."""
    names = {snapshot.nodes[0].name}
    jobs = tuple(
        one for one in snapshot.jobs if one.running is None or {task.node for task in one.running.tasks} <= names
    )
    snapshot = Snapshot(nodes=snapshot.nodes[:1], jobs=jobs)
    instance = compile_snapshot(verified(snapshot))
    if not instance.exact:
        return
    best = max(
        (sum((milli(one) for one, c in placed if c is not None), Fraction(0)), -total_seconds(placed, gpus))
        for placed, gpus in plans(snapshot)
    )
    found = run(instance, objectives=("value", "run_time"), limits=Limits(float("inf"), 0.0), seed=0)
    reached = scores(instance, found.assignment, ("run_time",))[0].value
    assert reached == -best[1]
    plan = pl.solve(snapshot, objectives=("value", "run_time"))
    assert pl.check(snapshot, plan) == []
    assert [Fraction(str(phase.value)) for phase in plan.phases if phase.objective == "run_time"] == [-best[1]]
