"""Measured interference on shared cards: the facts, how long jobs run by them, and who slows down whom."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from shared_cases import Placed, card, job, milli, node, plans, runs

import placement as pl
from placement.check.values.slowdown import shared_factor
from placement.compile import compile as compile_snapshot
from placement.errors import SnapshotError
from placement.evaluate import scores
from placement.exact import run
from placement.hardware import interference
from placement.heuristics.fastest_fit import ranks
from placement.snapshot import Duration, Gpu, Job, Policy, Snapshot
from placement.snapshot.read import loads, verified
from placement.solver import Limits

LARGE, SMALL = "ResNet-50 (batch size 128)", "ResNet-18 (batch size 16)"

ON_V100 = ("1.135", "1.153", "1.124", "1.228", "1.264", "1.339", "1.502", "2.556", "1.866", "1.141")
"""ResNet-50 with batch size 128 on V100, beside LM 5, 10, 20, 40 and 80, Recommendation 512, and ResNet-18 16 to 128.

They add up to 14.308, and a tenth of it is 1.4308. On P100 18 numbers add up to 31.512, which is 1.7506666... on
average; on K80 there are none, for it does not fit there beside anything.
"""
MEAN_V100, MEAN_P100 = Fraction(14308, 10_000), Fraction(31512, 18_000)


# --- facts ----------------------------------------------------------------------------------------------------


def test_pairs() -> None:
    # alone 7.175767 and 4.426088 steps a second on V100, side by side 4.562136 and 3.163266: 1.57290 and 1.39921
    assert interference.factor("V100", "A3C", "CycleGAN") == Fraction("1.573")
    assert interference.factor("V100", "CycleGAN", "A3C") == Fraction("1.399")
    assert interference.factor("V100", LARGE, "A3C") is None
    assert interference.factor("V100", "A3C", "") is interference.factor("V100", "", "A3C") is None
    assert interference.models() == ("K80", "P100", "V100")


def test_means() -> None:
    found = [interference.factor("V100", LARGE, other) for other in interference.workloads()]
    assert [one for one in found if one is not None] == [Fraction(one) for one in ON_V100]
    assert interference.usual("V100", LARGE) == MEAN_V100
    assert interference.usual("P100", LARGE) == MEAN_P100
    assert interference.usual("K80", LARGE) is interference.usual("T4", LARGE) is interference.usual("V100", "") is None


def test_every_fact() -> None:
    names = interference.workloads()
    assert len(set(names)) == 26
    pairs = {
        (model, one, other): interference.factor(model, one, other)
        for model in interference.models()
        for one in names
        for other in names
    }
    for (model, one, other), factor in pairs.items():
        assert factor is None or 1 <= factor < 11
        assert (factor is None) == (pairs[model, other, one] is None)
    # 589, 656 and 636 ordered pairs ran
    known = [sum(pairs[model, a, b] is not None for a in names for b in names) for model in interference.models()]
    assert known == [589, 656, 636]


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("v100", "V100"),
        ("V100M16", "V100"),
        ("Tesla-V100-SXM2-32GB", "V100"),
        ("Tesla_V100-PCIE-16GB-SHARED", "V100"),
        ("NVIDIA P100-PCIE-16GB", "P100"),
        ("Tesla K80", "K80"),
        ("V100S", None),
        ("Tesla V100-FHHL-16GB", None),
        ("P1000", None),
        ("A100-SXM4-40GB", None),
    ],
)
def test_names_of_cards(name: str, model: str | None) -> None:
    expected = None if model is None else interference.factor(model, "A3C", SMALL)
    assert interference.factor(name, "A3C", SMALL) == expected


def test_near_names() -> None:
    assert interference.nearest("a3c") == ("A3C",)
    assert interference.nearest("resnet50 (batch size 64)")[0] == "ResNet-50 (batch size 64)"
    assert {one.partition(" (")[0] for one in interference.nearest("resnet50")} == {"ResNet-50"}
    assert interference.nearest("zzz") == interference.nearest("x" * 1000) == ()


# --- names ----------------------------------------------------------------------------------------------------


def problem(workload: object) -> str:
    shares = {"name": "w", "task": {"gpus": 1, "gpu_share": 0.5}}
    duration = {"seconds": 1, "workload": workload}
    data = {"format": "placement-snapshot/1", "jobs": [{"name": "a", "groups": [shares], "duration": duration}]}
    with pytest.raises(SnapshotError) as caught:
        loads(json.dumps(data).encode())
    (found,) = caught.value.problems
    return str(found)


def test_unknown_workloads() -> None:
    assert problem("CycleGan") == (
        'jobs[0].duration.workload: there is no measured workload "CycleGan"; did you mean "CycleGAN"? '
        "leave it out for one that was not measured"
    )
    near = problem("resnet-18 (batch size 17)")
    assert 'did you mean "ResNet-18 (batch size 16)" or "ResNet-18 (batch size 1' in near
    far = problem("zzz")
    assert all(name in far for name in interference.workloads())
    assert "expected text" in problem(3)
    assert "no measured workload" in problem(" ")


def test_known_workloads() -> None:
    for name in ("", *interference.workloads()):
        verified(Snapshot(jobs=(job("a", 0.5, duration=Duration(seconds=1, workload=name)),)))


# --- how long -------------------------------------------------------------------------------------------------


def row(plan: pl.Plan) -> tuple[float, float]:
    assert plan.checked
    assert plan.run is not None
    return plan.run.seconds[0], plan.run.by_sharing[0]


def took(gpu: Gpu, share: object, **duration: object) -> tuple[float, float]:
    jobs = (job("a", share, duration=Duration(seconds=100, **duration)),)  # type: ignore[arg-type]
    plan = pl.solve(Snapshot(nodes=(node("n", gpu),), jobs=jobs))
    assert plan.phases[-1].objective == "run_time"
    assert plan.phases[-1].bound == pytest.approx(row(plan)[0])
    return row(plan)


def test_how_long_a_measured_workload_takes() -> None:
    # whatever the mode; 175.0666... s is rounded up to milliseconds
    for way in ("shared", "mps", "time_slicing", "vgpu"):
        assert took(card(way, model="V100"), 0.5, workload=LARGE) == (143.08, 1.4308)
        assert took(card(way, model="P100"), 0.5, workload=LARGE) == (175.067, float(MEAN_P100))
    # not measured on such a card: what is usual for the mode
    assert took(card("time_slicing", model="K80"), 0.5, workload=LARGE) == (119, 1.19)
    assert took(card("shared", model="T4"), 0.5, workload=LARGE) == (100, 1)
    # who states a factor knows better, and a whole card is nobody else's
    assert took(card("mps", model="V100"), 0.5, workload=LARGE, shared=1.25) == (125, 1.25)
    assert took(card("shared", model="V100"), 1, workload=LARGE) == (100, 1)
    assert took(card("exclusive", model="V100"), None, workload=LARGE) == (100, 1)


def measured_job(name: str, share: object, workload: str, count: int = 1, **duration: object) -> Job:
    return job(name, share, count, duration=Duration(seconds=100, workload=workload, **duration))  # type: ignore[arg-type]


def test_the_model_with_less_interference_is_preferred() -> None:
    # on average: Transformer 16 takes 1.3752 times as long on P100 and 2.2510 times on V100, ResNet-18 16 1.6935 and
    # 1.1305 times. Each of the cards has room for one share of two thirds, so they go apart.
    nodes = (node("p", card(model="P100")), node("v", card("mps", model="V100")))
    other = "Transformer (batch size 16)"
    for first, second, places in ((SMALL, other, ["v", "p"]), (other, SMALL, ["p", "v"])):
        jobs = (measured_job("a", 0.66, first), measured_job("b", 0.66, second))
        plan = pl.solve(Snapshot(nodes=nodes, jobs=jobs))
        assert (plan.tasks.job, plan.tasks.node, plan.status) == (["a", "b"], places, "proven")
        # a greedy rule sees one job at a time
        greedy = pl.solve(Snapshot(nodes=nodes, jobs=jobs[:1]), solver="fastest-fit")
        assert greedy.tasks.node == places[:1]


def test_the_largest_over_the_cards_counts() -> None:
    nodes = (node("n", card(model="V100"), card(model="P100")),)
    plan = pl.solve(Snapshot(nodes=nodes, jobs=(measured_job("a", 0.75, LARGE, 2),)))
    assert len(plan.tasks) == 2
    assert row(plan)[0] == 175.067


def test_classes_are_told_apart_by_what_counts() -> None:
    """Workloads make classes of their own where some card knows them, and only there."""
    pair = (measured_job("a", 0.5, SMALL), measured_job("b", 0.5, LARGE))
    instance = compile_snapshot(verified(Snapshot(nodes=(node("n", card(model="V100")),), jobs=pair)))
    assert len(instance.job_classes) == 2
    assert ranks(instance).shape[0] == len(instance.shapes)
    instance = compile_snapshot(verified(Snapshot(nodes=(node("n", card(model="T4")),), jobs=pair)))
    assert [one.run.measured for one in instance.job_classes if one.run is not None] == [()]
    stated = (measured_job("a", 0.5, SMALL, shared=1.5), measured_job("b", 0.5, LARGE, shared=1.5))
    instance = compile_snapshot(verified(Snapshot(nodes=(node("n", card(model="V100")),), jobs=stated)))
    assert len(instance.job_classes) == 1


def test_many_measured_jobs_move_to_cards_that_suit_them() -> None:
    # too many for the model: 40 jobs of each kind, and just room for each kind on the cards that it prefers
    nodes = (node("p", card(model="P100", count=4), count=5), node("v", card(model="V100", count=4), count=5))
    other = "Transformer (batch size 16)"
    jobs = (replace(measured_job("a", 0.5, other), count=40), replace(measured_job("b", 0.5, SMALL), count=40))
    plan = pl.solve(Snapshot(nodes=nodes, jobs=jobs), time_limit=20)
    assert plan.checked
    assert plan.run is not None
    assert len(plan.run.job) == 80
    best = {"a": float(interference.usual("P100", other) or 0), "b": float(interference.usual("V100", SMALL) or 0)}
    assert [best[name[0]] for name in plan.run.job] == plan.run.by_sharing


# --- who slows down whom --------------------------------------------------------------------------------------


def exposed(gpu: Gpu, *jobs: Job) -> dict[str, float]:
    """Return by how much each job on a card is slowed down; those that run stay, the others are placed."""
    snapshot = Snapshot(nodes=(node("n", gpu),), jobs=jobs)
    found = pl.sharing(snapshot, pl.solve(snapshot, solver="first-fit"))
    return {one.job: one.slow_down for one in found.jobs}


def running(name: str, share: object, workload: str) -> Job:
    return runs(name, share, ("n", 0), duration=Duration(seconds=1, workload=workload))


def test_two_measured_workloads_on_a_card() -> None:
    pair = (running("a", 0.5, "A3C"), measured_job("b", 0.5, "CycleGAN"))
    # on V100 1.573 and 1.399, on P100 1.903 and 2.002
    for way in ("time_slicing", "mps", "shared"):
        assert exposed(card(way, model="V100"), *pair) == {"a": 1.573, "b": 1.399}
        assert exposed(card(way, model="P100"), *pair) == {"a": 1.903, "b": 2.002}
    # two take turns: 1.04 and a seventh of 0.15
    turns = pytest.approx(1.04 + 0.15 / 7)
    assert exposed(card("time_slicing", model="T4"), *pair) == {"a": turns, "b": turns}
    unknown = (pair[0], job("b", 0.5))
    assert exposed(card("time_slicing", model="V100"), *unknown) == {"a": turns, "b": turns}
    never = (pair[0], measured_job("b", 0.5, LARGE))  # they were not measured together on V100
    assert exposed(card("time_slicing", model="V100"), *never) == {"a": turns, "b": turns}


def test_three_on_a_card_are_no_pair() -> None:
    jobs = tuple(measured_job(name, 0.25, "A3C") for name in "abc")
    assert exposed(card("mps", model="V100"), *jobs) == {"a": 1, "b": 1, "c": 1}
    turns = pytest.approx(1.04 + 2 * 0.15 / 7)
    assert exposed(card("time_slicing", model="V100"), *jobs) == {"a": turns, "b": turns, "c": turns}


def test_alone_on_a_card_nobody_is_slowed_down() -> None:
    snapshot = Snapshot(nodes=(node("n", card("time_slicing", model="V100")),), jobs=(measured_job("a", 0.5, "A3C"),))
    found = pl.sharing(snapshot, pl.solve(snapshot, solver="first-fit"))
    assert (found.jobs, found.slow_down) == ((), 1)


def test_two_tasks_of_one_job() -> None:
    # beside itself A3C takes 7.175767 / 3.657169 = 1.96211 times as long on V100
    snapshot = Snapshot(nodes=(node("n", card(model="V100")),), jobs=(measured_job("a", 0.5, "A3C", 2),))
    found = pl.sharing(snapshot, pl.solve(snapshot, solver="first-fit"))
    assert (found.slow_down, found.slow_down_p99) == (1.962, 1.962)


# --- at random ------------------------------------------------------------------------------------------------

MODELS = ("K80", "V100", "Tesla-P100-PCIE-16GB", "T4")
CHOSEN = ("", LARGE, SMALL, "A3C", "Transformer (batch size 16)")


@st.composite
def measured_snapshots(draw: st.DrawFn) -> Snapshot:
    """Draw one node of up to three cards, and up to four tasks that may take a share of one."""
    gpus = tuple(
        card(
            draw(st.sampled_from(("shared", "time_slicing", "vgpu", "exclusive"))), model=draw(st.sampled_from(MODELS))
        )
        for _ in range(draw(st.integers(1, 3)))
    )
    jobs = []
    for number in range(draw(st.integers(1, 3))):
        duration = Duration(
            seconds=draw(st.sampled_from((7, 100))),
            workload=draw(st.sampled_from(CHOSEN)),
            shared=draw(st.sampled_from((None, None, 1.5))),
            gpu_models=draw(st.sampled_from(({}, {"V100": 0.5}, {"K80": 3, "T4": 1.25}))),
        )
        share = draw(st.sampled_from((0.5, 0.3, None)))
        count = draw(st.integers(1, 2)) if number < 2 else 1
        jobs.append(job(f"j{number}", share, count, duration=duration, weight=draw(st.sampled_from((1, 2)))))
    return Snapshot(nodes=(node("n", *gpus),), jobs=tuple(jobs), policy=Policy(objectives=("value", "run_time")))


def factor(duration: Duration, gpu: Gpu) -> Fraction:
    """Return the factor of sharing a card, in words of this file."""
    if duration.shared is not None:
        return Fraction(str(duration.shared))
    model = "P100" if "P100" in gpu.model else gpu.model
    if duration.workload and model != "T4" and (duration.workload, model) != (LARGE, "K80"):
        found = [interference.factor(model, duration.workload, other) for other in interference.workloads()]
        numbers = [one for one in found if one is not None]
        return sum(numbers, Fraction(0)) / len(numbers)
    return Fraction("1.19") if gpu.sharing in ("time_slicing", "vgpu") else Fraction(1)


def total(placed: Placed, gpus: list[Gpu]) -> Fraction:
    """Return the weighted seconds of all jobs of a plan."""
    used: dict[str, tuple[Job, list[Gpu]]] = {}
    for one, c in placed:
        used.setdefault(one.name, (one, []))[1].extend([] if c is None else [gpus[c]])
    found = Fraction(0)
    for one, on in used.values():
        task, duration = one.groups[0].task, one.duration
        assert task is not None
        assert duration is not None
        if on:
            slow = max(Fraction(str(duration.gpu_models.get(gpu.model, 1))) for gpu in on)
            shared = max(factor(duration, gpu) for gpu in on) if task.gpu_share is not None else 1
            found += one.weight * Fraction(-(-1000 * int(duration.seconds) * slow * shared // 1), 1000)
    return found


@settings(max_examples=25)
@given(measured_snapshots())
def test_run_times_are_the_least_of_all_best_plans(snapshot: Snapshot) -> None:
    best = max(
        (sum((milli(one) for one, c in placed if c is not None), Fraction(0)), -total(placed, gpus))
        for placed, gpus in plans(snapshot)
    )
    instance = compile_snapshot(verified(snapshot))
    found = run(instance, objectives=("value", "run_time"), limits=Limits(float("inf"), 0.0), seed=0)
    assert scores(instance, found.assignment, ("run_time",))[0].value == -best[1]
    plan = pl.solve(snapshot)
    assert pl.check(snapshot, plan) == []
    assert [Fraction(str(phase.value)) for phase in plan.phases if phase.objective == "run_time"] == [-best[1]]


@settings(max_examples=40)
@given(measured_snapshots(), st.sampled_from(("first-fit", "best-fit", "fastest-fit", "worst-fit")))
def test_the_judge_measures_alike(snapshot: Snapshot, solver: str) -> None:
    plan = pl.solve(snapshot, solver=solver)
    assert pl.check(snapshot, plan) == []
    if plan.run is not None:
        plan.run.by_sharing[0] += 0.001
        assert {one.rule for one in pl.check(snapshot, plan)} == {"run_time"}


@given(st.sampled_from(MODELS), st.sampled_from(("", *interference.workloads())), st.sampled_from((None, 1.5)))
def test_the_judge_has_the_same_means(model: str, workload: str, stated: float | None) -> None:
    usual = Fraction("1.19")
    mean = interference.usual(model, workload)
    expected = usual if mean is None else mean
    expected = expected if stated is None else Fraction("1.5")
    assert shared_factor(Duration(seconds=1, workload=workload, shared=stated), model, usual) == expected
