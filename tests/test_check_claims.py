"""What a plan says of itself: objectives, bounds, pending jobs and figures, worked out by hand and then falsified."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Literal

import pytest
from check_cases import Row, plan_of
from msgspec.structs import replace

from placement.check import check, objective, usage
from placement.errors import PlanError, SnapshotError, UsageError
from placement.plan import Pending, Phase, Plan, Provenance, Tasks, Usage
from placement.snapshot import Gpu, Job, Node, Policy, Running, RunningTask, Snapshot, Task, TaskGroup
from placement.snapshot.read import digest

# Two nodes of two cards and four cores.
#   half   2 tasks of half a card and a core, 3 times their GPU-milli     priority 5
#   free   3 tasks without cards, 1.5 cores each, the job is worth 7      priority 5
#   pair   1 task of two cards and a core                                 priority 0
#   val    x, a task of a whole card of a model that is not here, or y, 2 tasks of half a card and a core;
#          the job is worth 90, shared by 1000 + 2 * 500 GPU-milli        priority 0
TWO = Gpu(model="A", count=2)
HALF = Task(gpus=1, gpu_share="500m", cpu=1)
SNAPSHOT = Snapshot(
    nodes=(Node(name="a", cpu=4, gpus=(TWO,)), Node(name="b", cpu=4, gpus=(TWO,))),
    jobs=(
        Job(name="half", priority=5, weight=3, groups=(TaskGroup(name="g", count=2, task=HALF),)),
        Job(name="free", priority=5, value=7, groups=(TaskGroup(name="g", count=3, min_count=1, task=Task(cpu=1.5)),)),
        Job(name="pair", groups=(TaskGroup(name="g", task=Task(gpus=2, cpu=1)),)),
        Job(
            name="val",
            value=90,
            groups=(
                TaskGroup(
                    name="either",
                    min_groups=1,
                    groups=(
                        TaskGroup(name="x", task=Task(gpus=1, gpu_models=("B",))),
                        TaskGroup(name="y", count=2, min_count=1, task=HALF),
                    ),
                ),
            ),
        ),
    ),
    policy=Policy(objectives=("value", "tasks", "fragmentation", "whole_nodes", "nodes")),
)
ROWS: list[Row] = [
    ("half", "g", 0, "a", [0]),
    ("half", "g", 1, "a", [0]),
    ("free", "g", 0, "b", []),
    ("free", "g", 2, "b", []),
    ("val", "either/y", 0, "a", [1]),
]
# priority 5: 2 * 3 * 500 + 2 * 7/3 = 9014/3; priority 0: 90 * 500/2000 = 22.5
# idle: half of card 1 of a, both cards of b. Free cores: a 4 - 3 * 1 = 1, b 4 - 2 * 1.5 = 1.
# Of the 9 tasks wanted: 4 of half a card can use all of it; pair cannot use the 0.5 on a; x, and the 3 without cards,
# can use none of the 2.5. Fragmentation: 1000/9 * (0.5 + 2.5 + 3 * 2.5) = 1000/9 * 10.5 = 3500/3
# b is wholly free as far as cards go; both nodes are in use.
SCORES = [
    ("value", 5, Fraction(9014, 3)),
    ("value", 0, Fraction(45, 2)),
    ("tasks", None, Fraction(5)),
    ("fragmentation", None, Fraction(3500, 3)),
    ("whole_nodes", None, Fraction(1)),
    ("nodes", None, Fraction(2)),
]
SENSES: list[Literal["max", "min"]] = ["max", "max", "max", "min", "max", "min"]
USAGE = Usage(
    gpus=4.0,
    gpus_allocated=1.5,
    unallocated_percent=62.5,  # 100 * (1 - 1.5/4)
    fragmented_percent=float(Fraction(175, 6)),  # 3500/3 of 4000 GPU-milli
    nodes=2,
    nodes_used=2,
    whole_nodes=1,
    tasks_wanted=9,
    tasks_started=5,
    jobs_pending=4,
    jobs_started=3,
)
PENDING = [
    Pending(job="free", placed=2, wanted=3, reason="no_room", detail=""),
    Pending(job="pair", placed=0, wanted=1, reason="no_room", detail=""),
    Pending(job="val", placed=1, wanted=3, reason="no_room", detail=""),
]


def columns(rows: Sequence[Row]) -> Tasks:
    job, group, index, node, gpus = (list(column) for column in zip(*rows, strict=True))
    return Tasks(job=job, group=group, index=index, node=node, gpus=gpus)


def plan(**changes: Any) -> Plan:
    """Return the plan by hand, with a bound on the first phase and one that is met on the last."""
    phases = [
        Phase(objective=name, priority=priority, sense=sense, value=float(value))
        for (name, priority, value), sense in zip(SCORES, SENSES, strict=True)
    ]
    # (4507 - 9014/3) / (9014/3) = 1/2
    phases[0] = replace(phases[0], bound=4507.0, gap=0.5)
    phases[5] = replace(phases[5], bound=2.0, gap=0.0, conditional=True)
    made = Plan(
        snapshot=digest(SNAPSHOT),
        status="bounded",
        stop="work",
        reproducible=True,
        phases=phases,
        tasks=columns(ROWS),
        pending=PENDING,
        usage=USAGE,
        notes=[],
        provenance=Provenance(version="0", solver="by hand", objectives=SNAPSHOT.policy.objectives),
        checked=False,
    )
    return replace(made, **changes)


def phases(number: int, **changes: Any) -> Plan:
    """Return the plan with one phase changed."""
    made = plan()
    made.phases[number] = replace(made.phases[number], **changes)
    return made


def said(made: Plan, snapshot: Snapshot = SNAPSHOT) -> list[tuple[str, str]]:
    return [(violation.rule, violation.path) for violation in check(snapshot, made)]


def test_by_hand() -> None:
    assert objective(SNAPSHOT, columns(ROWS), SNAPSHOT.policy.objectives) == SCORES
    assert usage(SNAPSHOT, columns(ROWS)) == USAGE
    assert said(plan()) == []


def test_order_and_repetition_of_objectives_is_the_callers() -> None:
    assert objective(SNAPSHOT, columns(ROWS), ("nodes", "value", "nodes")) == [SCORES[5], *SCORES[:2], SCORES[5]]
    assert objective(SNAPSHOT, Tasks(), ("value", "whole_nodes")) == [
        ("value", 5, Fraction(0)),
        ("value", 0, Fraction(0)),
        ("whole_nodes", None, Fraction(2)),
    ]
    # a plan for other objectives than the snapshot's policy
    other = plan(phases=plan().phases[2:3], provenance=replace(plan().provenance, objectives=("tasks",)))
    assert said(replace(other, status="feasible")) == []


WRONG: dict[str, tuple[Callable[[], Plan], list[tuple[str, str]]]] = {
    "value": (lambda: phases(1, value=22.500000000000004), [("objective", "phases[1].value")]),
    "value of tasks": (lambda: phases(2, value=6.0), [("objective", "phases[2].value")]),
    "fragmentation": (
        lambda: phases(3, value=math.nextafter(3500 / 3, 0)),
        [("objective", "phases[3].value")],
    ),
    "sense": (lambda: phases(2, sense="min"), [("objective", "phases[2].sense")]),
    "priority": (lambda: phases(0, priority=6), [("objective", "phases[0]")]),
    "priority of tasks": (lambda: phases(2, priority=0), [("objective", "phases[2]")]),
    "name": (lambda: phases(2, objective="taks"), [("objective", "phases[2]")]),
    "missing phase": (lambda: plan(phases=plan().phases[:5]), [("objective", "phases")]),
    "another phase": (lambda: plan(phases=[*plan().phases, plan().phases[2]]), [("objective", "phases")]),
    "order": (
        lambda: plan(phases=[plan().phases[i] for i in (0, 1, 2, 4, 3, 5)]),
        [("objective", "phases[3]"), ("objective", "phases[4]")],
    ),
    "objective": (
        lambda: plan(provenance=replace(plan().provenance, objectives=("value", "completion_time", "x\n"))),
        [("objective", "provenance.objectives")] * 2,
    ),
    "repeated objective": (
        lambda: plan(provenance=replace(plan().provenance, objectives=("tasks", "tasks"))),
        [("objective", "provenance.objectives")],
    ),
    "bound below": (
        lambda: phases(0, bound=3000.0, gap=(9014 / 3 - 3000) / (9014 / 3)),
        [("bounds", "phases[0].bound")],
    ),
    "bound above": (lambda: phases(5, bound=3.0, gap=0.5), [("bounds", "phases[5].bound")]),
    "gap": (lambda: phases(0, gap=0.4999), [("bounds", "phases[0].gap")]),
    "missing gap": (lambda: phases(0, gap=None), [("bounds", "phases[0].gap")]),
    "gap of no bound": (lambda: phases(2, gap=0.0), [("bounds", "phases[2].gap")]),
    "negative gap": (lambda: phases(5, gap=-0.5), [("bounds", "phases[5].gap")]),
    "conditional first": (lambda: phases(0, conditional=True), [("bounds", "phases[0].conditional")]),
    "conditional nothing": (lambda: phases(3, conditional=True), [("bounds", "phases[3].conditional")]),
    "infinite bound": (lambda: phases(0, bound=math.inf), [("bounds", "phases[0].bound")]),
    "infinite gap": (lambda: phases(0, gap=math.inf), [("bounds", "phases[0].gap")]),
    "no number": (
        lambda: phases(0, value=math.nan),
        [("objective", "phases[0].value"), ("bounds", "phases[0].value")],
    ),
    "too proud": (lambda: plan(status="proven"), [("bounds", "status"), ("bounds", "stop")]),
    "a stop that proves nothing": (lambda: plan(stop="optimal"), [("bounds", "stop")]),
    "too modest": (lambda: plan(status="feasible"), [("bounds", "status")]),
    "no bound": (lambda: phases(0, bound=None, gap=None), [("bounds", "status")]),
    "snapshot": (lambda: plan(snapshot="0" * 64), [("snapshot", "snapshot")]),
    "missing pending": (lambda: plan(pending=PENDING[:2]), [("pending", "pending")]),
    "pending twice": (lambda: plan(pending=[*PENDING, PENDING[0]]), [("pending", "pending[3]")]),
    "not pending": (
        lambda: plan(pending=[replace(PENDING[0], job="half", placed=2, wanted=2), *PENDING]),
        [("pending", "pending[0]")],
    ),
    "unknown pending": (lambda: plan(pending=[*PENDING, replace(PENDING[0], job="no")]), [("pending", "pending[3]")]),
    "placed": (lambda: plan(pending=[replace(PENDING[0], placed=1), *PENDING[1:]]), [("pending", "pending[0].placed")]),
    "wanted": (lambda: plan(pending=[replace(PENDING[0], wanted=4), *PENDING[1:]]), [("pending", "pending[0].wanted")]),
    "reason": (
        lambda: plan(pending=[replace(entry, reason="never") for entry in PENDING]),
        [("pending", f"pending[{i}].reason") for i in range(3)],
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_falsified(name: str) -> None:
    make, found = WRONG[name]
    assert said(make()) == found


@pytest.mark.parametrize("name", Usage.__struct_fields__)
def test_falsified_figure(name: str) -> None:
    assert said(plan(usage=replace(USAGE, **{name: getattr(USAGE, name) + 1}))) == [("usage", f"usage.{name}")]
    if name.endswith("percent"):
        assert said(plan(usage=replace(USAGE, **{name: None}))) == [("usage", f"usage.{name}")]


def test_task_left_out_or_moved_is_noticed_everywhere() -> None:
    moved = plan(tasks=columns([*ROWS[:4], ("val", "either/y", 0, "b", [1])]))
    # 22.5 all the same, but b is no longer whole, and a keeps a card that more can use
    assert said(moved) == [
        ("objective", "phases[3].value"),
        ("objective", "phases[4].value"),
        ("usage", "usage.fragmented_percent"),
        ("usage", "usage.whole_nodes"),
    ]
    dropped = plan(tasks=columns(ROWS[:4]))
    assert {rule for rule, _ in said(dropped)} == {"objective", "pending", "usage"}


@pytest.mark.parametrize(
    ("bounds", "status"),
    [
        ([5.0, 3.0], "proven"),
        ([5.0, None], "bounded"),
        ([6.0, 3.0], "bounded"),
        ([None, 3.0], "feasible"),
        ([None, None], "feasible"),
    ],
)
def test_status(bounds: list[float | None], status: str) -> None:
    # five tasks, and no whole node: b takes a sixth task beside the five
    rows: list[Row] = [*ROWS[:4], ("val", "either/y", 0, "b", [1])]
    made = plan_of(SNAPSHOT, rows, ("tasks", "nodes"))
    values = (5.0, 2.0)
    for i, (value, bound) in enumerate(zip(values, [bounds[0], None if bounds[1] is None else 2.0], strict=True)):
        gap = None if bound is None else abs(value - bound) / value
        made.phases[i] = replace(made.phases[i], bound=bound, gap=gap)
    for claim in ("proven", "bounded", "feasible"):
        made = replace(made, status=claim, stop="optimal" if claim == "proven" else "work")
        assert said(made) == ([] if claim == status else [("bounds", "status")])


@pytest.mark.parametrize(
    ("bound", "gap", "fine"),
    [
        (0.0, 0.0, True),
        (0.0, None, False),
        (1.0, None, True),
        (1.0, 1.0, False),
        (None, None, True),
        (None, 0.0, False),
    ],
)
def test_gap_at_value_zero(bound: float | None, gap: float | None, fine: bool) -> None:
    made = plan_of(SNAPSHOT, [], ("tasks",))
    made.phases[0] = replace(made.phases[0], bound=bound, gap=gap)
    status = "feasible" if bound is None else "proven" if bound == 0 else "bounded"
    stop = "optimal" if status == "proven" else "work"
    assert said(replace(made, status=status, stop=stop)) == ([] if fine else [("bounds", "phases[0].gap")])


def test_gap_may_differ_by_rounding_alone() -> None:
    value, bound = 9014 / 3, 3333.3
    gap = (bound - value) / value
    for right in (gap, math.nextafter(gap, 1), math.nextafter(gap, 0)):
        assert said(phases(0, bound=bound, gap=right)) == []
    assert said(phases(0, bound=bound, gap=gap * (1 + 1e-9))) == [("bounds", "phases[0].gap")]


# --- figures, and errors of callers ---------------------------------------------------------------------------


def test_usage_without_cards_or_jobs() -> None:
    # an unhealthy card counts only if it has work; 0.5 + 0.75 of one card are 1.25 of the 1 + 1 cards that count
    cards = (Gpu(model="A"), Gpu(model="A", count=2, health="unhealthy"))
    old = TaskGroup(name="g", count=2, task=Task(gpus=1, gpu_share="625m"))
    places = tuple(RunningTask(group="g", index=i, node="n-1", gpus=(2,)) for i in range(2))
    running = Job(name="old", groups=(old,), running=Running(tasks=places))
    empty = Snapshot(nodes=(Node(name="n", count=2, gpus=cards),), jobs=(running,))
    found = usage(empty, Tasks())
    # healthy cards: one a node; n-1 has work on an unhealthy card as well, but its healthy card is free
    assert (found.gpus, found.gpus_allocated, found.whole_nodes, found.nodes_used) == (3.0, 1.25, 2, 1)
    # the over-full card is no fuller than full: 2 of 3 cards are idle
    assert found.unallocated_percent == float(Fraction(200, 3))
    assert found.fragmented_percent is None
    assert (found.tasks_wanted, found.jobs_pending) == (0, 0)
    none = usage(Snapshot(jobs=(Job(name="j", groups=(TaskGroup(name="g", task=Task()),)),)), Tasks())
    assert (none.gpus, none.unallocated_percent, none.fragmented_percent) == (0.0, None, None)


def test_callers_are_told_what_is_wrong() -> None:
    with pytest.raises(PlanError, match="tasks: the columns differ in length"):
        objective(SNAPSHOT, Tasks(job=["half"]), ("tasks",))
    with pytest.raises(PlanError, match="tasks: the columns differ in length"):
        usage(SNAPSHOT, Tasks(index=[1]))
    with pytest.raises(UsageError, match="objectives: completion_time cannot be measured; use value, tasks"):
        objective(SNAPSHOT, Tasks(), ("tasks", "completion_time"))


# --- fields left out ------------------------------------------------------------------------------------------

LATE = replace(SNAPSHOT, jobs=tuple(replace(job, deadline=9.0) for job in SNAPSHOT.jobs))


def left_out(*fields: str) -> Plan:
    return plan(snapshot=digest(LATE), provenance=replace(plan().provenance, without=fields))


def test_fields_that_the_plan_left_out_are_left_out() -> None:
    assert said(left_out("jobs.deadline"), LATE) == []
    assert check(LATE, left_out(), without=("jobs.deadline",)) == []


def test_fields_that_no_rule_honours_must_be_named() -> None:
    (violation,) = check(LATE, left_out())
    assert (violation.rule, violation.path) == ("snapshot", "provenance.without")
    assert violation.what == (
        "jobs[0].deadline: no rule honours jobs.deadline yet, which is used 4 times, so the plan must name it"
    )


@pytest.mark.parametrize("field", ["jobs.deadlin", "", "a\nb", "nodes.cpu"])
def test_fields_that_cannot_be_left_out(field: str) -> None:
    (violation,) = check(LATE, left_out("jobs.deadline", field))
    assert (violation.rule, violation.path) == ("snapshot", "provenance.without")
    assert str(violation).isprintable()
    with pytest.raises(UsageError):
        check(LATE, left_out("jobs.deadline"), without=("jobs.deadline", field))


def test_a_wrong_snapshot_is_an_error_of_its_own() -> None:
    twice = replace(SNAPSHOT, nodes=(SNAPSHOT.nodes[0], SNAPSHOT.nodes[0]))
    with pytest.raises(SnapshotError, match=r"nodes\[1\]\.name"):
        check(twice, plan())
