"""The judge against the second opinion, the engine's own scores, and plans nobody would write."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any, get_args

import pytest
from check_cases import PLACING, Row, assignment_of, jobs_of, nodes_of, opinion, plan_of, tasks_of, valid_rows, wanted
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from strategies import OBJECTIVES, Source, random_tiny, snapshots

from placement.check import RULES, Violation, check, objective, usage
from placement.compile import compile as compile_snapshot
from placement.errors import PlanError, Problem
from placement.evaluate import scores
from placement.plan import Pending, Phase, Plan, Provenance, Tasks, Usage
from placement.snapshot import Gpu, Job, Node, Policy, Snapshot, Task, TaskGroup
from placement.units import MAX_BASE

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]


@st.composite
def placements(draw: st.DrawFn) -> tuple[Snapshot, list[Row], Source]:
    """Draw a snapshot and a placement that keeps every rule."""
    source = Source(lambda low, high: draw(st.integers(low, high)))
    snapshot = draw(snapshots())
    return snapshot, valid_rows(source, snapshot), source


# --- agreement ------------------------------------------------------------------------------------------------


def agree_on_scores(snapshot: Snapshot, rows: list[Row]) -> None:
    instance = compile_snapshot(snapshot)
    due = [(s.objective, s.priority, s.value) for s in scores(instance, assignment_of(instance, rows), OBJECTIVES)]
    assert objective(snapshot, tasks_of(rows), OBJECTIVES) == due


@settings(max_examples=60, deadline=None, suppress_health_check=SLOW)
@given(placements())
def test_right_plans_pass_and_scores_agree(case: tuple[Snapshot, list[Row], Source]) -> None:
    snapshot, rows, _ = case
    assert check(snapshot, plan_of(snapshot, rows, OBJECTIVES)) == []
    agree_on_scores(snapshot, rows)


def test_scores_agree_by_seed_where_much_is_placed() -> None:
    placed = 0
    for seed in range(60):
        snapshot = random_tiny(seed, max_tasks=12)
        rows = valid_rows(Source(random.Random(seed).randint), snapshot)
        agree_on_scores(snapshot, rows)
        placed += len(rows)
    assert placed > 60


# --- mutations ------------------------------------------------------------------------------------------------


def mutate(source: Source, snapshot: Snapshot, rows: list[Row]) -> list[Row]:
    """Change one thing of some rows; what comes out may be right all the same."""
    nodes = [*nodes_of(snapshot), "nowhere"]
    everything = wanted(snapshot)
    if not rows or source.one_in(5):  # place a task anywhere
        if not everything:
            return rows
        job, group, index, task = source.pick(everything)
        gpus = [source.number(0, 3) for _ in range(task.gpus)]
        return [*rows, (job, group, index, source.pick(nodes), gpus)]
    number = source.number(0, len(rows) - 1)
    job, group, index, node, gpus = rows[number]
    rest = rows[:number] + rows[number + 1 :]
    changed: list[Callable[[], Row]] = [
        lambda: (job, group, index, source.pick(nodes), gpus),
        lambda: (job, group, index, node, [source.number(-1, 4) for _ in gpus]),
        lambda: (job, group, source.number(-1, 6), node, gpus),
        lambda: (job, group, index, node, gpus[1:]),
        lambda: (job, group, index, node, [*gpus, source.number(0, 3)]),
        lambda: (source.pick([*jobs_of(snapshot), "nobody"]), group, index, node, gpus),
        lambda: (job, source.pick(["g0", "g1", "g0/c0", "g", ""]), index, node, gpus),
    ]
    kind = source.number(0, len(changed) + 1)
    if kind == len(changed):
        return rest
    if kind > len(changed):
        return [*rows, rows[number]]
    return [*rest, changed[kind]()]


def same_rules(snapshot: Snapshot, rows: list[Row]) -> set[str]:
    """Judge rows; the rules that the judge and the second opinion name must be the same."""
    violations = check(snapshot, plan_of(snapshot, rows, OBJECTIVES))
    found = {violation.rule for violation in violations}
    due = opinion(snapshot, rows)
    if due == {"identity"}:
        assert "identity" in found
    else:
        assert found == due
    return found


@settings(max_examples=150, deadline=None, suppress_health_check=SLOW)
@given(placements(), st.integers(1, 3))
def test_mutated_plans_are_caught_or_right(case: tuple[Snapshot, list[Row], Source], changes: int) -> None:
    snapshot, rows, source = case
    for _ in range(changes):
        rows = mutate(source, snapshot, rows)
    same_rules(snapshot, rows)


def test_mutations_by_seed_reach_every_rule() -> None:
    reached: set[str] = set()
    right = 0
    for seed in range(600):
        source = Source(random.Random(seed).randint)
        snapshot = random_tiny(seed)
        rows = valid_rows(source, snapshot)
        for _ in range(source.number(1, 3)):
            rows = mutate(source, snapshot, rows)
        found = same_rules(snapshot, rows)
        reached |= found & PLACING
        right += not found
    assert reached == PLACING
    assert right > 30  # a judge that refuses everything would do well without this


# --- what a plan says of itself -------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None, suppress_health_check=SLOW)
@given(placements(), st.data())
def test_numbers_are_caught(case: tuple[Snapshot, list[Row], Source], data: st.DataObject) -> None:
    snapshot, rows, _ = case
    plan = plan_of(snapshot, rows, OBJECTIVES)
    number = data.draw(st.integers(0, len(plan.phases) - 1))
    phase = plan.phases[number]
    value = data.draw(st.floats().filter(lambda x: x != phase.value))
    plan.phases[number] = replace(phase, value=value)
    found = {(violation.rule, violation.path) for violation in check(snapshot, plan)}
    assert ("objective", f"phases[{number}].value") in found
    # a bound on the right side of the value, with its gap, is accepted; on the wrong side it is not
    step = data.draw(st.floats(min_value=1e-3, max_value=1e6))
    for sign in (1, -1):
        bound = phase.value + sign * step
        gap = abs(bound - phase.value) / abs(phase.value) if phase.value else None
        plan.phases[number] = replace(phase, bound=bound, gap=gap)
        status: Any = "feasible" if number else "bounded"
        found = {(v.rule, v.path) for v in check(snapshot, replace(plan, status=status))}
        fine = (sign > 0) == (phase.sense == "max")
        assert found == (set() if fine else {("bounds", f"phases[{number}].bound")})


@settings(max_examples=60, deadline=None, suppress_health_check=SLOW)
@given(placements(), st.data())
def test_pending_is_caught(case: tuple[Snapshot, list[Row], Source], data: st.DataObject) -> None:
    snapshot, rows, _ = case
    plan = plan_of(snapshot, rows)
    if not plan.pending:
        return
    number = data.draw(st.integers(0, len(plan.pending) - 1))
    entry = plan.pending[number]
    others = plan.pending[:number] + plan.pending[number + 1 :]
    wrong = data.draw(
        st.sampled_from(
            [
                others,
                [*plan.pending, entry],
                [*others, replace(entry, placed=entry.placed + 1)],
                [*others, replace(entry, wanted=entry.wanted - 1)],
                [*others, replace(entry, reason="no_room" if entry.reason != "no_room" else "not_wanted")],
                [*others, replace(entry, job=f"{entry.job}-0")],
            ]
        )
    )
    assert {violation.rule for violation in check(snapshot, replace(plan, pending=wrong))} == {"pending"}


# --- plans nobody would write ---------------------------------------------------------------------------------

CASE = Snapshot(
    nodes=(Node(name="n", count=2, cpu=2, gpus=(Gpu(model="A", count=2, memory="8Gi"),)), Node(name="m")),
    jobs=(
        Job(name="j", count=2, groups=(TaskGroup(name="g", count=2, task=Task(gpus=1, cpu=1)),)),
        Job(name="k", value=5, groups=(TaskGroup(name="r", count=2, groups=(TaskGroup(name="g", task=Task()),)),)),
    ),
)
NAMES = st.sampled_from(["j-0", "j-1", "k", "g", "r/g", "n-0", "n-1", "m", "value", "tasks", ""]) | st.text(max_size=9)
NUMBERS = st.integers(-1, 3) | st.integers() | st.just(10**400)


def any_of(hint: Any) -> st.SearchStrategy[Any]:
    """Return values of a field's type: any text, numbers of any size."""
    known: dict[Any, st.SearchStrategy[Any]] = {str: NAMES, int: NUMBERS, float: st.floats(), bool: st.booleans()}
    return known.get(hint) or st.sampled_from(get_args(hint))


@st.composite
def absurd(draw: st.DrawFn) -> Plan:
    """Draw a plan of which nothing holds but the types of its fields."""
    rows = draw(st.lists(st.tuples(NAMES, NAMES, NUMBERS, NAMES, st.lists(NUMBERS, max_size=3)), max_size=6))
    tasks = tasks_of(rows)
    if draw(st.integers(0, 9)) == 9:
        tasks.node.append("n-0")
    maybe = st.none() | st.floats()
    phase = st.builds(Phase, objective=NAMES, priority=st.none() | NUMBERS, value=st.floats(), bound=maybe, gap=maybe)
    pending = st.builds(Pending, job=NAMES, placed=NUMBERS, wanted=NUMBERS, detail=NAMES)
    objectives = draw(st.lists(st.sampled_from(OBJECTIVES) | NAMES, max_size=3).map(tuple))
    numbers = {name: draw(NUMBERS | st.floats() | st.none()) for name in Usage.__struct_fields__}
    return Plan(
        snapshot=draw(NAMES),
        status=draw(st.sampled_from(["proven", "bounded", "feasible"])),
        stop=draw(st.sampled_from(["optimal", "gap", "complete", "work", "time", "failed"])),
        reproducible=draw(st.booleans()),
        phases=draw(st.lists(phase, max_size=4)),
        tasks=tasks,
        pending=draw(st.lists(pending, max_size=4)),
        usage=Usage(**numbers),  # type: ignore[arg-type]
        notes=[],
        provenance=Provenance(
            version="", solver="", objectives=objectives, without=draw(st.just(()) | st.tuples(NAMES))
        ),
        checked=draw(st.booleans()),
    )


def _answer(plan: Plan) -> tuple[list[Violation], tuple[Problem, ...]]:
    """Return the violations of a plan, or what is wrong with it as a plan, such as numbers that no file could hold."""
    try:
        return list(check(CASE, plan)), ()
    except PlanError as error:
        return [], tuple(error.problems)


@settings(max_examples=150, deadline=None, suppress_health_check=SLOW)
@given(absurd())
def test_absurd_plans_get_an_answer(plan: Plan) -> None:
    violations, refused = _answer(plan)
    assert violations or refused  # the digest at least
    assert all(str(problem).isprintable() and len(str(problem)) < 1000 for problem in refused)
    for violation in violations:
        assert violation.rule in RULES
        assert str(violation).isprintable()
        assert len(str(violation)) < 1000


# --- numbers at the edge --------------------------------------------------------------------------------------


def test_amounts_that_no_float_holds() -> None:
    # 2**63 - 1 bytes less one do not hold 2**63 - 1, although both are the same float
    task = Task(gpus=1, memory=MAX_BASE, gpu_memory=MAX_BASE)
    job = Job(name="j", weight=10**12, groups=(TaskGroup(name="g", task=task),))
    for memory, rules in ((MAX_BASE, []), (MAX_BASE - 1, ["capacity", "device_memory"])):
        node = Node(name="n", memory=memory, gpus=(Gpu(model="A", memory=memory),))
        snapshot = Snapshot(nodes=(node,), jobs=(job,), policy=Policy(objectives=("value",)))
        plan = plan_of(snapshot, [("j", "g", 0, "n", [0])])
        assert [violation.rule for violation in check(snapshot, plan)] == rules
        assert objective(snapshot, plan.tasks, ("value",)) == [("value", 0, Fraction(1000 * 10**12))]


def test_a_share_that_no_float_holds() -> None:
    # ten tenths are one card; ten tenths and 10**-9 are not
    tenth = Job(name="t", count=10, groups=(TaskGroup(name="g", task=Task(gpus=1, gpu_share=0.1)),))
    bit = Job(name="b", groups=(TaskGroup(name="g", task=Task(gpus=1, gpu_share="1n")),))
    snapshot = Snapshot(nodes=(Node(name="n", gpus=(Gpu(model="A"),)),), jobs=(tenth, bit))
    rows: list[Row] = [(f"t-{i}", "g", 0, "n", [0]) for i in range(10)]
    assert check(snapshot, plan_of(snapshot, rows)) == []
    assert usage(snapshot, tasks_of(rows)).unallocated_percent == 0
    (violation,) = check(snapshot, plan_of(snapshot, [*rows, ("b", "g", 0, "n", [0])]))
    assert violation.what == "n gpu 0: shares add up to 1.000000001, at most 1"


def test_empty_snapshot() -> None:
    plan = plan_of(Snapshot(), [], OBJECTIVES)
    assert [phase.objective for phase in plan.phases] == ["tasks", "fragmentation", "whole_nodes", "nodes"]
    assert check(Snapshot(), plan) == []
    assert (
        check(Snapshot(policy=Policy(objectives=("value",))), plan_of(Snapshot(), [], ("value",)))[0].rule == "snapshot"
    )


@pytest.mark.parametrize("field", ["job", "group", "node"])
def test_names_are_compared_whole(field: str) -> None:
    plan = plan_of(CASE, [("k", "r/g", 0, "n-0", []), ("k", "r/g", 1, "m", [])])
    assert check(CASE, plan) == []
    getattr(plan.tasks, field)[0] += "\u200b"  # a space that nobody sees
    found = check(CASE, replace(plan, tasks=Tasks(**{n: getattr(plan.tasks, n) for n in Tasks.__struct_fields__})))
    assert found[0].rule == "identity"
    assert "\\u200b" in found[0].what
