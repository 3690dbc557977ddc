"""The ladder: optimal and proven where it applies, a reason where it does not."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace

import brute
import model_cases
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import random_tiny

import placement
from placement.check import check
from placement.compile import compile as compile_snapshot
from placement.errors import UsageError
from placement.evaluate import scores
from placement.exact import run, unsupported
from placement.exact.ladder import method as ladders
from placement.heuristics import HEURISTICS
from placement.instance import Assignment, Instance
from placement.models import LADDER
from placement.plan import Provenance
from placement.planning import plan_of
from placement.snapshot import DomainLimit, Gpu, Job, Node, Running, RunningTask, Snapshot, Task, TaskGroup
from placement.snapshot.read import digest, verified
from placement.solver import Limits, Progress, Result, Stop

OBJECTIVES = ("value", "tasks")


def solved(
    instance: Instance,
    objectives: tuple[str, ...] = OBJECTIVES,
    limits: Limits | None = None,
    start: Assignment | None = None,
) -> tuple[Result, list[Progress]]:
    told: list[Progress] = []
    limits = limits or Limits()
    result = run(instance, objectives=objectives, limits=limits, start=start, report=told.append, method="ladder")
    return result, told


def values(instance: Instance, result: Result, objectives: tuple[str, ...] = OBJECTIVES) -> list[float]:
    return [float(score.value) for score in scores(instance, result.assignment, objectives)]


def refused(snapshot: Snapshot, result: Result) -> list[str]:
    """Return what the judge has against the plan."""
    provenance = Provenance(version="test", solver="ladder", objectives=OBJECTIVES)
    instance = compile_snapshot(snapshot)
    plan = plan_of(instance, result, {"ladder": result.bounds}, OBJECTIVES, provenance, digest(verified(snapshot)))
    return [str(violation) for violation in check(snapshot, plan)]


def assert_optimal(snapshot: Snapshot, start: Assignment | None = None) -> None:
    """Compare with brute force; the bounds must equal the values, and the judge accept the plan."""
    instance = compile_snapshot(snapshot)
    assert unsupported("ladder", instance) is None
    result, told = solved(instance, start=start)
    expected = brute.optimum(snapshot, OBJECTIVES)
    found = scores(instance, result.assignment, OBJECTIVES)
    assert [(s.objective, s.priority, s.value) for s in found] == expected
    assert [(b.objective, b.priority) for b in result.bounds] == [(name, p) for name, p, _ in expected]
    assert all(brute.close(b.value, value) for b, (_, _, value) in zip(result.bounds, expected, strict=True))
    assert result.stop is Stop.OPTIMAL
    assert refused(snapshot, result) == []
    for progress in told:
        first = progress.bounds[0].value
        assert first is None or first >= float(expected[0][2]) - 1e-6


# --- by hand -------------------------------------------------------------------------------------------------------


def test_whole_cards_by_hand() -> None:
    # Nodes of 7 and 5 cards. Blocks of four: 1 + 1 = 2, so two of the three fours run. Blocks of two: 3 + 2 = 5, the
    # fours take 2 each, so one of the two pairs runs. Single cards: 12 - 2 * 4 - 2 = 2 of three. All 12 are taken.
    # With at most two fours, two pairs and three singles, 12 = 4 + 4 + 2 + 1 + 1 is the only sum that fits: 5 tasks.
    jobs = (
        model_cases.job("four", Task(gpus=4), copies=3),
        model_cases.job("pair", Task(gpus=2), copies=2),
        model_cases.job("one", Task(gpus=1), copies=3),
    )
    snapshot = Snapshot(nodes=model_cases.cards(7, 5), jobs=jobs)
    instance = compile_snapshot(snapshot)
    result, _ = solved(instance)
    assert values(instance, result) == [12_000, 5]
    assert [bound.value for bound in result.bounds] == [12_000, 5]
    assert refused(snapshot, result) == []


def test_shares_beside_running_work_by_hand() -> None:
    # A card with a half free and one with three quarters. Blocks of a half: 1 + 1, of a quarter: 2 + 3 = 5. Five
    # quarters are worth 1250; of the ways to fill them, two halves and a quarter are 3 tasks, a half and three
    # quarters 4, and five quarters would be 5, but only four are wanted.
    group = TaskGroup(name="g", task=Task(gpus=1, gpu_share="250m"))
    busy = tuple(
        Job(
            name=f"busy{number}",
            groups=(group,),
            running=Running(tasks=(RunningTask(group="g", index=0, node="n0", gpus=(card,)),)),
        )
        for number, card in enumerate((0, 0, 1))
    )
    jobs = (
        *busy,
        model_cases.job("half", Task(gpus=1, gpu_share="500m"), copies=3),
        model_cases.job("quarter", Task(gpus=1, gpu_share="250m"), copies=4),
    )
    snapshot = Snapshot(nodes=model_cases.cards(2), jobs=jobs)
    instance = compile_snapshot(snapshot)
    result, _ = solved(instance)
    assert values(instance, result) == [1250, 4]
    assert result.stop is Stop.OPTIMAL
    assert refused(snapshot, result) == []


def test_gangs_with_a_minimum_priorities_and_limits_by_hand() -> None:
    # Two racks of two nodes of 4 cards, rack a limited to 5 cards: 5 + 8 = 13 cards. Priority 1: gangs of four pairs,
    # at least three: two gangs want 16 cards and need 12. Rack a has two pairs in its 5 cards, rack b four: 6 pairs, so
    # both run with three each: 12000. Priority 0: the 13th card takes one of the singles: 1000. Tasks: 6 + 1.
    nodes = tuple(
        Node(name=rack, count=2, position={"rack": rack}, gpus=(Gpu(model="A", count=4),)) for rack in ("a", "b")
    )
    jobs = (
        model_cases.job("gang", Task(gpus=2), 4, 3, copies=2, priority=1),
        model_cases.job("one", Task(gpus=1), copies=5),
    )
    limits = (DomainLimit(level="rack", domain="a", gpus=5),)
    snapshot = Snapshot(topology=("rack",), nodes=nodes, limits=limits, jobs=jobs)
    instance = compile_snapshot(snapshot)
    result, _ = solved(instance)
    assert values(instance, result) == [12_000, 1000, 7]
    assert [bound.value for bound in result.bounds] == [12_000, 1000, 7]
    assert result.bounds[2].held == (12_000, 1000)
    assert refused(snapshot, result) == []


# --- against brute force -------------------------------------------------------------------------------------------


def _sized(size: int | str, models: tuple[str, ...] = ()) -> Task:
    if isinstance(size, int):
        return Task(gpus=size, gpu_models=models)
    return Task(gpus=1, gpu_share=size, gpu_models=models)


@st.composite
def supported(draw: st.DrawFn) -> Snapshot:
    """Nodes of two models in two racks, some of them in use, and gangs of sizes that divide one another."""
    sizes: tuple[int | str, ...] = draw(
        st.sampled_from([(1, 2, 4), (1, 3), ("500m", 1, 2), ("250m", "500m", 1), (2, 4), ("500m", 2)])
    )
    nodes, running = [], []
    for number in range(draw(st.integers(1, 3))):
        count = draw(st.integers(1, 4))
        model, rack = draw(st.sampled_from("AB")), draw(st.sampled_from("rs"))
        name = f"n{number}"
        nodes.append(Node(name=name, position={"rack": rack}, gpus=(Gpu(model=model, count=count),)))
        if draw(st.booleans()):
            task = RunningTask(group="g", index=0, node=name, gpus=(draw(st.integers(0, count - 1)),))
            group = TaskGroup(name="g", task=Task(gpus=1, gpu_share=draw(st.sampled_from(("250m", "500m", None)))))
            running.append(Job(name=f"r{number}", groups=(group,), running=Running(tasks=(task,))))
    jobs, left = [], 7
    for number in range(draw(st.integers(1, 3))):
        count = draw(st.integers(1, min(3, left)))
        left -= count
        models = draw(st.sampled_from(((), (), ("A",), ("B",))))
        group = TaskGroup(
            name="g",
            count=count,
            min_count=draw(st.integers(1, count)),
            task=_sized(draw(st.sampled_from(sizes)), models),
        )
        groups: tuple[TaskGroup, ...] = (group,)
        if left and draw(st.booleans()):
            left -= 1
            groups = (group, TaskGroup(name="h", task=_sized(draw(st.sampled_from(sizes)), models)))
            outer = TaskGroup(name="o", groups=groups, min_groups=draw(st.integers(1, 2)))
            groups = (outer,)
        jobs.append(
            Job(
                name=f"j{number}",
                priority=draw(st.integers(0, 1)),
                weight=draw(st.sampled_from((1, 1, 3))),
                groups=groups,
            )
        )
        if not left:
            break
    limits = []
    if draw(st.booleans()):
        present = sorted({node.position["rack"] for node in nodes})
        amounts: tuple[int | str, ...] = (1, 2, 3, "1500m")
        gpus = draw(st.sampled_from(amounts))
        limits.append(DomainLimit(level="rack", domain=draw(st.sampled_from(present)), gpus=gpus))
    return Snapshot(topology=("rack",), nodes=tuple(nodes), limits=tuple(limits), jobs=(*running, *jobs))


@settings(deadline=None, max_examples=120)
@given(supported())
def test_it_agrees_with_brute_force(snapshot: Snapshot) -> None:
    if unsupported("ladder", compile_snapshot(snapshot)) is None:
        assert_optimal(snapshot)


@settings(deadline=None, max_examples=40)
@given(supported())
def test_it_agrees_with_brute_force_from_a_start(snapshot: Snapshot) -> None:
    instance = compile_snapshot(snapshot)
    if unsupported("ladder", instance) is None:
        start = HEURISTICS["worst-fit"].solve(instance, objectives=OBJECTIVES, limits=Limits()).assignment
        assert_optimal(snapshot, start)


def test_it_agrees_on_the_tiny_snapshots_that_it_takes() -> None:
    taken = [s for s in map(random_tiny, range(300)) if unsupported("ladder", compile_snapshot(s)) is None]
    assert len(taken) > 20
    for snapshot in taken:
        assert_optimal(snapshot)


# --- many nodes ----------------------------------------------------------------------------------------------------


def large(nodes: int = 10_000) -> Snapshot:
    """Nodes of 8 cards, every third of them with three in use, and gangs of tasks of 1, 2, 4 and 8 cards."""
    group = TaskGroup(name="g", count=nodes // 3, min_count=1, task=Task(gpus=3))
    tasks = tuple(RunningTask(group="g", index=i, node=f"n-{3 * i}", gpus=(0, 1, 2)) for i in range(nodes // 3))
    busy = Job(name="busy", groups=(group,), running=Running(tasks=tasks))
    jobs = [
        model_cases.job(f"j{size}{count}", Task(gpus=size), count, max(1, count // 2), nodes // (4 * count), count % 2)
        for size in (1, 2, 4, 8)
        for count in (1, 2, 4)
    ]
    return Snapshot(nodes=(Node(name="n", count=nodes, gpus=(Gpu(model="A", count=8),)),), jobs=(busy, *jobs))


def test_many_nodes_are_full_and_proven() -> None:
    # 10,000 nodes, 3333 of them with 5 cards free: 53336 + 16665 = 70001 cards. Priority 1 wants 2500 tasks of each
    # size, 2500 * 15 = 37500 cards, and gets them; 32501 are left for priority 0, which wants 5000 of each size. To
    # fill them takes an odd number of singles, o + 2p + 4f = 32501: with o = 4999, p + 2f = 13751, so p is odd, too,
    # p = 4999 and f = 4376: 14374 tasks, the most, and 10000 of priority 1.
    instance = compile_snapshot(large())
    result, _ = solved(instance)
    assert result.stop is Stop.OPTIMAL
    assert values(instance, result)[:2] == [37_500_000, 70_001_000 - 37_500_000]
    assert values(instance, result)[2] == 24_374
    assert [bound.value for bound in result.bounds] == values(instance, result)


def test_exact_chooses_it_where_patterns_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[int] = []

    class Spy(ladders.Ladder):
        def run(self) -> Result:
            chosen.append(1)
            return super().run()

    monkeypatch.setattr(ladders, "Ladder", Spy)
    shares = tuple(
        model_cases.job(f"s{share}", Task(gpus=1, gpu_share=f"{share}m"), copies=200) for share in (125, 250, 500)
    )
    snapshot = Snapshot(nodes=large(99).nodes, jobs=(*large(99).jobs, *shares))
    instance = compile_snapshot(snapshot)
    assert run(instance, objectives=OBJECTIVES, limits=Limits()).stop is Stop.OPTIMAL
    assert chosen == [1]
    few = model_cases.golden_ladder()
    assert run(few, objectives=OBJECTIVES, limits=Limits()).stop is Stop.OPTIMAL
    assert chosen == [1]


def test_the_same_again() -> None:
    instance = compile_snapshot(large(60))
    (first, _), (second, _) = solved(instance), solved(instance)
    for column in ("job", "leaf", "task", "node", "cards", "offset"):
        assert getattr(first.assignment, column).tolist() == getattr(second.assignment, column).tolist()


# --- limits, starts and what is not proven -------------------------------------------------------------------------


def test_without_time_the_start_stands() -> None:
    instance = compile_snapshot(large(30))
    start = HEURISTICS["first-fit"].solve(instance, objectives=OBJECTIVES, limits=Limits()).assignment
    result, _ = solved(instance, limits=Limits(deadline=time.monotonic() - 1), start=start)
    assert len(result.assignment) == len(start)
    assert result.stop is Stop.TIME
    assert all(bound.value is None for bound in result.bounds)


def test_a_gap_that_was_asked_for_is_enough() -> None:
    instance = compile_snapshot(large(30))
    result, _ = solved(instance, ("value",), Limits(gap=0.5))
    assert result.stop in (Stop.GAP, Stop.OPTIMAL)
    for score, bound in zip(scores(instance, result.assignment, ("value",)), result.bounds, strict=True):
        assert bound.value is not None
        assert bound.value >= float(score.value)


def test_values_too_far_apart_for_the_solver_still_have_a_bound() -> None:
    # the value of 1 is lost beside 1,000,000 in the solver's tolerances; the relaxation's duals are added up here.
    # Two cards, both jobs fit: 1,000,001
    jobs = (
        replace_value(model_cases.job("large", Task(gpus=1)), 1_000_000),
        replace_value(model_cases.job("small", Task(gpus=1)), 1),
    )
    instance = compile_snapshot(Snapshot(nodes=model_cases.cards(2), jobs=jobs))
    result, _ = solved(instance)
    assert values(instance, result) == [1_000_001, 2]
    assert [bound.value for bound in result.bounds] == [1_000_001, 2]


def replace_value(job: Job, value: int) -> Job:
    return Job(name=job.name, groups=job.groups, value=value)


def test_amounts_that_are_not_exact_have_no_bound() -> None:
    instance = replace(model_cases.golden_ladder(), exact=False)
    result, _ = solved(instance)
    assert all(bound.value is None for bound in result.bounds)


def test_what_nodes_are_left_like_is_improved_and_not_proven() -> None:
    snapshot = large(30)
    instance = compile_snapshot(snapshot)
    objectives = ("value", "tasks", "fragmentation")
    alone, _ = solved(instance)
    result, _ = solved(instance, objectives)
    assert values(instance, result) == values(instance, alone)
    assert len(result.bounds) == 3
    assert any("fragmentation" in note for note in result.notes)
    assert result.stop is Stop.WORK
    after, before = (scores(instance, r.assignment, objectives)[-1].value for r in (result, alone))
    assert after <= before


def test_progress_has_places_before_the_end() -> None:
    _, told = solved(compile_snapshot(large(30)))
    assert any(progress.assignment is not None for progress in told)


# --- where it does not apply ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "task", "reason"),
    [
        (model_cases.cards(2), Task(cpu=1), "takes no card"),
        (model_cases.cards(2), Task(gpus=2, gpu_share=0.5), "shares of several cards"),
        (model_cases.cards(8), Task(gpus=3), "do not divide one another: 2 and 3 units"),
        (model_cases.cards(2, cpu=1), Task(gpus=1, cpu=1), "cpu may bind"),
    ],
)
def test_reasons(nodes: tuple[Node, ...], task: Task, reason: str) -> None:
    jobs = (model_cases.job("j", task, copies=2), model_cases.job("pair", Task(gpus=2)))
    instance = compile_snapshot(Snapshot(nodes=nodes, jobs=jobs))
    found = unsupported("ladder", instance)
    assert found is not None
    assert reason in found
    assert LADDER.supports(instance) == found


def test_the_reason_is_found_without_the_modelling_language() -> None:
    script = (
        "import sys; import placement; from placement.exact import unsupported\n"
        "from placement.compile import compile\n"
        "from placement.snapshot import Snapshot\n"
        "assert unsupported('ladder', compile(Snapshot())) is None\n"
        "print(sorted({'pyomo', 'highspy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_forced_by_name() -> None:
    plan = placement.solve(large(30), solver="ladder", objectives=OBJECTIVES)
    assert plan.status == "proven"
    assert plan.provenance.solver == "ladder"


def test_forced_where_it_does_not_apply() -> None:
    snapshot = Snapshot(nodes=model_cases.cards(8), jobs=(model_cases.job("j", Task(cpu=1)),))
    with pytest.raises(UsageError, match="ladder cannot take this snapshot: a task takes no card"):
        placement.solve(snapshot, solver="ladder")
