"""No claim without proof: instances on which a bound, a proof or a plan was once wrong, and their kinds."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import placement as pl
from placement.compile import compile as compile_snapshot
from placement.engine import SOLVERS, _overall_stop
from placement.evaluate import scores
from placement.exact import run
from placement.exact.pools.master import resolvable
from placement.plan import Provenance
from placement.planning import plan_of
from placement.run import Run
from placement.snapshot import DomainLimit, Gpu, Job, Node, Snapshot, Task, TaskGroup
from placement.solver import Bound, Limits, Result, Stop


def job(
    name: str,
    gpus: int,
    model: str,
    *,
    count: int = 1,
    members: int = 1,
    minimum: int | None = None,
    share: str | float | None = None,
    cpu: int = 0,
    weight: int = 1,
    priority: int = 0,
) -> Job:
    task = Task(gpus=gpus, gpu_share=share, gpu_models=(model,), cpu=cpu)
    group = TaskGroup(name="g", count=members, min_count=minimum, task=task)
    return Job(name=name, count=count, groups=(group,), weight=weight, priority=priority)


def fill(model: str) -> tuple[Job, ...]:
    """Return jobs whose shares make so many patterns that the pipeline for large instances is taken."""
    return tuple(job(f"f{i}", 1, model, share=f"{200 + 7 * i}m", priority=-1) for i in range(14))


@pytest.mark.parametrize("weight", [3 * 10**7, 10**8, 10**9, 10**12])
def test_a_heavy_gang_that_cannot_start_hides_nothing_from_the_bound(weight: int) -> None:
    # two nodes of 3 cards hold two tasks of 2 cards, so the gang of three never starts. The best of the rest:
    # b and one c on the one node, three c on the other: 2 * 1000 * 5 + 4 * 1000 * 7 = 38,000
    snapshot = Snapshot(
        nodes=(
            Node(name="n", count=2, gpus=(Gpu(model="A", count=3),)),
            Node(name="x", gpus=(Gpu(model="B", count=8),)),
        ),
        jobs=(
            job("gang", 2, "A", members=3, weight=weight),
            job("a", 3, "A", count=2, weight=3),
            job("b", 2, "A", weight=5),
            job("c", 1, "A", count=5, weight=7),
            *fill("B"),
        ),
    )
    for objectives in (("value",), ("value", "tasks")):
        plan = pl.solve(snapshot, objectives=objectives)
        first = plan.phases[0]
        assert first.bound is not None
        assert first.value <= 38_000 <= first.bound
        assert (first.value == first.bound) <= (first.value == 38_000)


def test_what_the_solver_cannot_tell_apart_is_not_believed() -> None:
    assert resolvable([1000, 7000, 0])
    assert resolvable([])
    assert not resolvable([1, 10**8])


def test_exchanges_do_not_carry_work_over_a_limit() -> None:
    # rack a: 2 cards and 5 cores. Two halves with 2 cores each fit there (4 cores); all other work goes to rack b
    def tasks(name: str, cpu: int, count: int, members: int = 1, minimum: int | None = None, share: float = 1.0) -> Job:
        return job(
            name, 1, "B", count=count, members=members, minimum=minimum, share=share if share < 1 else None, cpu=cpu
        )

    nodes = (
        Node(name="n0", count=2, position={"rack": "a"}, cpu=6, gpus=(Gpu(model="B", count=2),)),
        Node(name="n1", count=2, position={"rack": "b"}, cpu=6, gpus=(Gpu(model="B", count=4),)),
        Node(name="x", gpus=(Gpu(model="F", count=8),)),
    )
    jobs = (tasks("j2", 2, 2, share=0.5), tasks("j4", 1, 3, members=2, minimum=1), tasks("j5", 2, 3), *fill("F"))
    limits = (DomainLimit(level="rack", domain="a", gpus=2, cpu=5),)
    plan = pl.solve(Snapshot(topology=("rack",), limits=limits, nodes=nodes, jobs=jobs), solver="exact")
    assert plan.notes == []
    # 2 halves, 6 and 3 whole cards: all ten thousandths there are
    assert (plan.phases[0].value, plan.phases[0].bound) == (10_000, 10_000)


def test_values_beyond_a_double_are_not_called_equal() -> None:
    # C is worth 3 thousandths of 1, B one; the double next to 10^17 is 16 away
    nodes = (
        Node(name="n", gpus=(Gpu(model="A", count=100),)),
        Node(name="m", pods=1, gpus=(Gpu(model="B"),)),
    )
    jobs = (
        job("A", 100, "A", weight=10**12),
        job("B", 1, "B", share="1m"),
        job("C", 1, "B", share="1m", weight=3),
    )
    plan = pl.solve(Snapshot(nodes=nodes, jobs=jobs))
    placed_c = "C" in plan.tasks.job
    assert (plan.status == "proven") <= placed_c
    assert plan.phases[0].bound is not None
    assert Fraction(plan.phases[0].bound) >= 10**17 + 3


def test_fine_shares_are_exact() -> None:
    # three tasks of 0.333333333333 leave a trillionth of the card
    snapshot = Snapshot(
        nodes=(Node(name="n", gpus=(Gpu(model="A"),)),), jobs=(job("a", 1, "A", count=3, share=0.333333333333),)
    )
    plan = pl.solve(snapshot)
    assert (plan.status, len(plan.tasks)) == ("proven", 3)


def plan_with(bounds: dict[str, tuple[Bound, ...]]) -> pl.Plan:
    snapshot = Snapshot(nodes=(Node(name="n", gpus=(Gpu(model="A", count=2),)),), jobs=(job("a", 1, "A", count=4),))
    instance = compile_snapshot(snapshot)
    result = run(instance, objectives=("value", "tasks"), limits=Limits())
    assert [score.value for score in scores(instance, result.assignment, ("value", "tasks"))] == [2000, 2]
    provenance = Provenance(version="0", solver="exact")
    given = Result(result.assignment, Stop.WORK)
    return plan_of(instance, given, bounds, ("value", "tasks"), provenance, "")


def test_a_contradicted_bound_costs_its_source_all_its_bounds() -> None:
    wrong = (Bound("value", 0, 1000.0), Bound("tasks", None, 2.0))
    plan = plan_with({"good": (Bound("value", 0, 3000.0),), "bad": wrong})
    assert [phase.bound for phase in plan.phases] == [3000, 4]
    assert plan.status == "bounded"
    assert plan.notes == ["bad: the plan contradicts a bound it gave, so none of its bounds is used"]


@pytest.mark.parametrize(("held", "valid"), [(2000.0, True), (1000.0, True), (2000.5, False), (3000.0, False)])
def test_a_conditional_bound_counts_only_where_its_condition_is_met(held: float, valid: bool) -> None:
    # "at most 2 tasks among plans of value >= held" says something of a plan of value 2000 only if held <= 2000
    plan = plan_with({"it": (Bound("tasks", None, 2.0, (held,)),)})
    tasks = plan.phases[1]
    assert (tasks.bound, tasks.conditional) == ((2, True) if valid else (4, False))


def test_the_clock_is_not_blamed_where_there_is_none() -> None:
    snapshot = Snapshot(
        nodes=(Node(name="n", count=3, gpus=(Gpu(model="A", count=2),)),),
        jobs=(job("a", 1, "A", count=2, members=3, minimum=2, share="700m"), *fill("A")),
    )
    plan = pl.solve(snapshot, solver="exact")
    assert plan.stop != "time"
    assert plan.reproducible


CRASHED: dict[str, Snapshot] = {
    "worths without a common unit": Snapshot(
        nodes=(Node(name="n", gpus=(Gpu(model="A", count=4),)),),
        jobs=(job("a", 1, "A", share=0.3333333333333333), job("b", 1, "A", weight=1000)),
    ),
    "a share next to nothing": Snapshot(
        nodes=(Node(name="n", gpus=(Gpu(model="A"),)),), jobs=(job("a", 1, "A", share=1e-300),)
    ),
    "coarse units without nodes": Snapshot(
        jobs=tuple(
            Job(name=f"j{i}", groups=(TaskGroup(name="g", task=Task(memory=memory)),))
            for i, memory in enumerate(("1Ti", "1n"))
        )
    ),
    "a limit beyond 64 bits of its unit": Snapshot(
        nodes=(Node(name="n"),),
        limits=(DomainLimit(level="cluster", cpu=2**62),),
        jobs=(Job(name="j", groups=(TaskGroup(name="g", task=Task(cpu=0.3333333333333333)),)),),
    ),
    "a request that is infinite beside what nodes have": Snapshot(
        nodes=(Node(name="n0"), Node(name="n1", cpu="500m")),
        jobs=(Job(name="j", groups=(TaskGroup(name="g", task=Task(cpu="7Ei")),)),),
    ),
}


@pytest.mark.parametrize("name", CRASHED)
def test_what_once_crashed_is_solved(name: str) -> None:
    snapshot = CRASHED[name]
    plan = pl.solve(snapshot)
    assert pl.check(snapshot, plan) == []
    fits = [j.name for j in snapshot.jobs if snapshot.nodes]
    assert sorted(set(plan.tasks.job)) == sorted(fits)
    if not compile_snapshot(snapshot).exact:
        assert any("rounded" in note for note in plan.notes)


def test_worths_that_are_rounded_still_bound() -> None:
    # 12 jobs of value 1000 with prime counts share no unit below 2^53 counts; every task fits
    primes = (97, 89, 83, 79, 73, 71, 67, 61, 59, 53, 47, 43)
    jobs = tuple(
        Job(name=f"p{p}", value=1000, groups=(TaskGroup(name="g", count=p, task=Task(gpus=1)),)) for p in primes
    )
    snapshot = Snapshot(nodes=(Node(name="n", gpus=(Gpu(model="A", count=250),), count=4),), jobs=jobs)
    plan = pl.solve(snapshot, solver="first-fit")
    assert plan.phases[0].value == 12_000
    assert plan.phases[0].bound is not None
    assert plan.phases[0].bound >= 12_000


def test_labels_that_no_task_names_tell_no_nodes_apart() -> None:
    nodes = tuple(Node(name=f"n{i}", labels={"host": f"n{i}", "pool": "ab"[i % 2]}) for i in range(10))
    task = Task(node_selector={"pool": "a"})
    instance = compile_snapshot(Snapshot(nodes=nodes, jobs=(Job(name="j", groups=(TaskGroup(name="g", task=task),)),)))
    assert [c.nodes.tolist() for c in instance.classes] == [[0, 2, 4, 6, 8], [1, 3, 5, 7, 9]]


def test_a_snapshot_changed_after_a_call_is_read_again() -> None:
    jobs = [job("a", 1, "A")]
    snapshot = Snapshot(nodes=(Node(name="n", gpus=(Gpu(model="A", count=4),)),), jobs=jobs)  # type: ignore[arg-type]
    assert len(pl.solve(snapshot, solver="first-fit").tasks) == 1
    jobs.append(job("b", 1, "A"))
    assert len(pl.solve(snapshot, solver="first-fit").tasks) == 2


def test_files_in_the_working_directory_are_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "queue.py").write_text("open('ran', 'w'); raise SystemExit('shadowed')")
    monkeypatch.chdir(tmp_path)
    plan = pl.solve(pl.load(pl.instances.path("filters")), solver="exact")
    assert plan.status == "proven"
    assert plan.notes == []
    assert not (tmp_path / "ran").exists()


def test_a_start_that_the_clock_cut_short_is_not_called_reproducible() -> None:
    # with a deadline that is past the greedy rule gives up at once; the exact method, asked without one, ends by itself
    instance = compile_snapshot(pl.load(pl.instances.path("openb")))
    cut = SOLVERS["first-fit"].solve(instance, objectives=("value",), limits=Limits(deadline=0.0))
    assert cut.stop is Stop.TIME
    call = Run(instance, ("value",), Limits(), seed=0, listener=None, began=0.0)
    call.add("first-fit", cut)
    call.add("exact", Result(cut.assignment, Stop.WORK))
    assert _overall_stop(call) is Stop.TIME
