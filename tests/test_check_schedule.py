"""The judge of schedules: hand-made ones, a tampered one for every rule, and random ones by every policy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

import placement as pl
from placement.check import SCHEDULE_RULES
from placement.cli import app
from placement.figures import figures
from placement.plan import Provenance
from placement.planning import dump_schedule, load_plan_or_schedule, load_schedule
from placement.snapshot import (
    Affinity,
    DomainLimit,
    Duration,
    Gpu,
    Job,
    Node,
    NumaZone,
    Policy,
    Reservation,
    Running,
    RunningTask,
    Snapshot,
    Task,
    TaskGroup,
    Topology,
)
from placement.snapshot.read import digest, verified
from placement.timetable import JobTimes, LeftOut, Schedule, Stretches, StretchTasks

Part = tuple[str, float, float, float, float, list[tuple[str, int, str, list[int]]]]
"""Job, start, end, restart, lost, and group, index, node and cards of each task."""


def made(snapshot: Snapshot, parts: list[Part], left: tuple[LeftOut, ...] = ()) -> Schedule:
    """Return a schedule of some stretches with its numbers right; those of jobs that count, by a count of its own."""
    jobs = JobTimes()
    for job in snapshot.jobs:
        mine = [part for part in parts if part[0] == job.name]
        if not mine or not (job.running is None or job.preemptible):
            continue
        submit = (job.submit_time or 0) - snapshot.time if job.submit_time is not None else 0
        release, end = max(submit, 0), max(part[2] for part in mine)
        held, restart = sum(part[2] - part[1] for part in mine), sum(part[3] + part[4] for part in mine)
        row = (job.name, job.queue, job.priority, job.weight, release, min(part[1] for part in mine), end)
        rest = (end - release - held, held - restart, restart, 0.0 if job.running else max(0, -submit))
        for name, value in zip(jobs.__struct_fields__, (*row, *(round(one, 3) for one in rest)), strict=True):
            getattr(jobs, name).append(value)
    columns: list[list[object]] = [[part[place] for part in parts] for place in range(5)]
    stretches = Stretches(**dict(zip(Stretches.__struct_fields__, columns, strict=True)))  # type: ignore[arg-type]
    tasks = StretchTasks()
    for number, part in enumerate(parts):
        for group, index, node, gpus in part[5]:
            tasks.stretch.append(number)
            tasks.group.append(group)
            tasks.index.append(index)
            tasks.node.append(node)
            tasks.gpus.append(list(gpus))
    value = sum(w * (e - r) for w, e, r in zip(jobs.weight, jobs.end, jobs.release, strict=True))
    return Schedule(
        snapshot=digest(snapshot),
        status="feasible",
        stop="complete",
        reproducible=True,
        value=round(float(value), 3),
        bound=None,
        gap=None,
        jobs=jobs,
        stretches=stretches,
        tasks=tasks,
        left_out=list(left),
        figures=figures(snapshot, jobs, stretches, tasks),
        notes=[],
        provenance=Provenance(version="0", solver="hand"),
        checked=False,
    )


def job(name: str, seconds: float = 10, count: int = 1, gpus: int = 1, **fields: object) -> Job:
    task = fields.pop("task", None) or Task(gpus=gpus, cpu=1)
    topology = fields.pop("topology", None)
    group = TaskGroup(name="w", count=count, task=task, topology=topology)  # type: ignore[arg-type]
    return Job(name=name, duration=Duration(seconds=seconds), groups=(group,), **fields)  # type: ignore[arg-type]


def cluster(*jobs: Job, **fields: object) -> Snapshot:
    """Return two nodes of two cards and four cores in two racks, with some jobs."""
    nodes = tuple(
        Node(name=name, cpu=4, position={"rack": rack}, gpus=(Gpu(model="A", count=2, memory="10Gi"),))
        for name, rack in (("n0", "r0"), ("n1", "r1"))
    )
    fields.setdefault("nodes", nodes)
    return verified(Snapshot(topology=("rack",), jobs=jobs, **fields))  # type: ignore[arg-type]


def rules(snapshot: Snapshot, schedule: Schedule) -> set[str]:
    found = {violation.rule for violation in pl.check(snapshot, schedule)}
    assert found <= set(SCHEDULE_RULES)
    return found


# --- by hand -------------------------------------------------------------------------------------------------

RUNS = Running(tasks=(RunningTask(group="w", index=0, node="n0", gpus=(0,)),), since=-4)
STAYS = Running(tasks=(RunningTask(group="w", index=0, node="n1", gpus=(0,)),), since=-6)

BASE = cluster(
    # 20 s, of which 4 are done; stopped at 3 s with 7 s done, of which 6 are safe at checkpoints of 2 s: 1 s is lost
    job("old", 20, running=RUNS, preemptible=True, checkpoint_interval=2, restart_seconds=1.5),
    # 10 s, of which 6 are done
    job("stay", 10, running=STAYS),
    job("wide", 5, count=2, priority=1, weight=3),
    job("late", 4, submit_time=7, after=("wide",), deadline=40, hard_deadline=True),
    reservations=(Reservation(name="aside", nodes=("n1",), start=30, end=50, jobs=("wide",)),),
)
PARTS: list[Part] = [
    ("old", 0, 3, 0, 1, [("w", 0, "n0", [0])]),
    ("stay", 0, 4, 0, 0, [("w", 0, "n1", [0])]),
    ("wide", 3, 8, 0, 0, [("w", 0, "n0", [0]), ("w", 1, "n0", [1])]),
    # 14 of 20 s are left, and 1.5 s to restore it
    ("old", 8, 23.5, 1.5, 0, [("w", 0, "n0", [0])]),
    ("late", 8, 12, 0, 0, [("w", 0, "n0", [1])]),
]


def test_a_schedule_by_hand_is_accepted() -> None:
    schedule = made(BASE, PARTS)
    assert pl.check(BASE, schedule) == []
    # wide 3 x 8, late 12 - 7, old 23.5
    assert schedule.value == 24 + 5 + 23.5
    assert schedule.jobs.queued == [5, 3, 1]
    assert schedule.jobs.restart == [2.5, 0, 0]


def test_a_list_of_rules_without_repetition() -> None:
    assert len(SCHEDULE_RULES) == len(set(SCHEDULE_RULES))


def tampered(change: Callable[[list[Part]], None]) -> Schedule:
    parts = [(*part[:5], list(part[5])) for part in PARTS]
    change(parts)
    return made(BASE, parts)


def part(number: int, place: int, value: object) -> Callable[[list[Part]], None]:
    def change(parts: list[Part]) -> None:
        row = list(parts[number])
        row[place] = value
        parts[number] = tuple(row)  # type: ignore[assignment]

    return change


def both(*changes: Callable[[list[Part]], None]) -> Callable[[list[Part]], None]:
    def change(parts: list[Part]) -> None:
        for one in changes:
            one(parts)

    return change


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        ("run_time", part(2, 2, 8.001)),  # too long
        ("run_time", part(3, 2, 23)),  # too short
        ("run_time", part(1, 2, 5)),  # runs on for too long
        ("run_time", lambda parts: parts.pop(3)),  # never goes on
        ("preemption", part(0, 4, 0)),  # nothing is lost
        ("preemption", both(part(3, 3, 0), part(3, 2, 23.5))),  # not restored
        ("preemption", part(1, 5, [("w", 0, "n1", [1])])),  # moves though nobody may stop it
        ("order", both(part(4, 1, 7.5), part(4, 2, 11.5), lambda parts: parts.insert(3, parts.pop(4)))),
        ("arrival", both(part(4, 1, 6.5), part(4, 2, 10.5), lambda parts: parts.insert(3, parts.pop(4)))),
        ("deadline", both(part(4, 1, 36.5), part(4, 2, 40.5))),
        ("windows", both(part(4, 1, 28), part(4, 2, 32), part(4, 5, [("w", 0, "n1", [1])]))),
        ("shares", part(4, 5, [("w", 0, "n0", [0])])),
        ("gang", part(2, 5, [("w", 0, "n0", [0])])),
        ("jobs", lambda parts: parts.pop(4)),
        ("jobs", lambda parts: parts.pop(1)),
        ("identity", part(4, 5, [("w", 0, "n0", [2])])),
        ("identity", part(4, 5, [("w", 1, "n0", [1])])),
        ("identity", part(4, 5, [("w", 0, "n9", [1])])),
        ("identity", part(2, 5, [("w", 0, "n0", [0]), ("w", 0, "n0", [1])])),
        ("identity", part(4, 5, [])),
        ("identity", part(4, 1, 8.0005)),
        ("identity", lambda parts: parts.insert(0, parts.pop(4))),
    ],
)
def test_a_tampered_stretch_is_refused(rule: str, change: Callable[[list[Part]], None]) -> None:
    assert rule in rules(BASE, tampered(change))


def test_no_job_is_twice_at_a_time_and_none_is_stopped_too_soon() -> None:
    again = tampered(both(part(3, 1, 2), part(3, 2, 17.5), lambda parts: parts.insert(2, parts.pop(3))))
    assert "preemption" in rules(BASE, again)
    old = replace(BASE.jobs[0], minimum_run_seconds=7)
    parts = PARTS
    allowed = verified(replace(BASE, jobs=(old, *BASE.jobs[1:])))  # it is stopped 3 + 4 s after its start
    assert rules(allowed, made(allowed, parts)) == set()
    refused = verified(replace(BASE, jobs=(replace(old, minimum_run_seconds=7.5), *BASE.jobs[1:])))
    assert rules(refused, made(refused, parts)) == {"preemption"}


@pytest.mark.parametrize("column", JobTimes.__struct_fields__[1:])
def test_every_column_of_jobs_is_judged(column: str) -> None:
    schedule = made(BASE, PARTS)
    values = getattr(schedule.jobs, column)
    values[1] = "other" if column == "queue" else values[1] + 1
    assert rules(BASE, schedule) == {"jobs"}


@pytest.mark.parametrize(
    ("rule", "fields"),
    [
        ("snapshot", {"snapshot": "0" * 64}),
        ("completion_time", {"value": 52.0}),
        ("bounds", {"bound": 52.501, "gap": 0.0, "status": "bounded"}),
        ("bounds", {"bound": 42.0, "gap": 0.1, "status": "bounded"}),
        ("bounds", {"bound": 42.0, "gap": 0.2, "status": "proven"}),
        ("bounds", {"gap": 0.2}),
        ("bounds", {"stop": "optimal"}),
        ("identity", {"left_out": [LeftOut(job="nobody", reason="never", detail="")]}),
        ("identity", {"jobs": JobTimes(job=["old"])}),
    ],
)
def test_every_number_of_a_schedule_is_judged(rule: str, fields: dict[str, object]) -> None:
    schedule = made(BASE, PARTS)
    for name, value in fields.items():
        setattr(schedule, name, value)
    assert rules(BASE, schedule) == {rule}


def test_bound_and_gap_that_are_right_are_accepted() -> None:
    schedule = made(BASE, PARTS)
    schedule.bound, schedule.gap, schedule.status = 42.0, 0.2, "bounded"  # (52.5 - 42) / 52.5
    assert rules(BASE, schedule) == set()


def test_no_job_is_both_scheduled_and_left_out() -> None:
    assert rules(BASE, made(BASE, PARTS, (LeftOut(job="wide", reason="never", detail=""),))) == {"jobs", "left_out"}


def test_figures_are_judged() -> None:
    schedule = made(BASE, PARTS)
    schedule.figures = replace(schedule.figures, preemptions=2)
    assert [one.path for one in pl.check(BASE, schedule)] == ["figures.preemptions"]


# --- nodes at moments ----------------------------------------------------------------------------------------


def pair(one: Job, other: Job, **fields: object) -> tuple[Snapshot, Callable[[float, str, list[int]], Schedule]]:
    """Return two jobs of 10 s, and a schedule with one on n0 gpu 0 from 0 on and the other at some time and place."""
    snapshot = cluster(one, other, **fields)

    def at(start: float, node: str, gpus: list[int]) -> Schedule:
        first: Part = ("a", 0, 10, 0, 0, [("w", 0, "n0", [0])])
        return made(snapshot, [first, ("b", start, round(start + 10, 3), 0, 0, [("w", 0, node, gpus)])])

    return snapshot, at


MOMENTS: list[tuple[str, Task, dict[str, object]]] = [
    ("capacity", Task(gpus=1, cpu=3), {}),
    ("limits", Task(gpus=1), {"limits": (DomainLimit(level="rack", domain="r0", gpus=1),)}),
    ("tenants", Task(gpus=1), {"policy": Policy(tenants_apart="node")}),
    ("tenants", Task(gpus=1), {"policy": Policy(tenants_apart="rack")}),
]


@pytest.mark.parametrize(("rule", "task", "fields"), MOMENTS)
def test_a_node_is_judged_at_each_moment(rule: str, task: Task, fields: dict[str, object]) -> None:
    snapshot, at = pair(job("a", task=task, tenant="x"), job("b", task=task, tenant="y"), **fields)
    assert rules(snapshot, at(9.999, "n0", [1])) == {rule}
    assert rules(snapshot, at(10, "n0", [1])) == set()
    assert rules(snapshot, at(0, "n1", [1])) == set()


@pytest.mark.parametrize(
    ("rule", "task", "gpu", "tenants"),
    [
        ("shares", Task(gpus=1, gpu_share=0.6), Gpu(model="A", count=2), ""),
        ("device_memory", Task(gpus=1, gpu_share=0.5, gpu_memory="6Gi"), Gpu(model="A", count=2, memory="10Gi"), ""),
        ("clients", Task(gpus=1, gpu_share=0.5), Gpu(model="A", count=2, sharing="time_slicing", replicas=1), ""),
        ("tenants", Task(gpus=1, gpu_share=0.5), Gpu(model="A", count=2), "gpu"),
    ],
)
def test_a_card_is_judged_at_each_moment(rule: str, task: Task, gpu: Gpu, tenants: str) -> None:
    nodes = (Node(name="n0", count=1, gpus=(gpu,)),)
    # unshared and shared cards are as fast here
    jobs = [replace(job(name, task=task, tenant=name), duration=Duration(seconds=10, shared=1)) for name in "ab"]
    snapshot, at = pair(*jobs, nodes=nodes, policy=Policy(tenants_apart=tenants))
    assert rules(snapshot, at(3, "n0", [0])) == {rule}
    assert rules(snapshot, at(3, "n0", [1])) == set()
    assert rules(snapshot, at(10, "n0", [0])) == set()


def test_slots_of_mig_instances_are_judged_at_each_moment() -> None:
    nodes = (Node(name="n0", gpus=(Gpu(model="NVIDIA A100-SXM4-40GB", count=2, mig_enabled=True),)),)
    task = Task(gpus=1, mig_profile="3g.20gb")
    snapshot, at = pair(job("a", task=task), job("b", task=task), nodes=nodes)

    def slots(start: float, gpu: int, first: int) -> set[str]:
        schedule = at(start, "n0", [gpu])
        schedule.tasks.mig_starts = [[0], [first]]
        return rules(snapshot, schedule)

    assert slots(5, 0, 0) == {"mig"}
    assert slots(5, 0, 3) == {"mig"}  # not where it may start
    assert slots(5, 0, 4) == slots(5, 1, 0) == slots(10, 0, 0) == set()
    assert rules(snapshot, at(5, "n0", [1])) == {"mig"}


def test_zones_are_judged_at_each_moment() -> None:
    zones = tuple(NumaZone(id=zone, cpu=2, gpus=(zone,)) for zone in (0, 1))
    nodes = (Node(name="n0", cpu=4, gpus=(Gpu(model="A", count=2),), zones=zones),)
    bound = [job(name, task=Task(cpu=1.5, numa="single-numa-node")) for name in "ab"]
    snapshot = cluster(*bound, nodes=nodes)

    def lies(start: float, *listed: list[int]) -> set[str]:
        parts: list[Part] = [("a", 0, 10, 0, 0, [("w", 0, "n0", [])])]
        schedule = made(snapshot, [*parts, ("b", start, start + 10, 0, 0, [("w", 0, "n0", [])])])
        schedule.tasks.zones = list(listed)
        return rules(snapshot, schedule)

    assert lies(3, [0], [1]) == lies(10, [0], [0]) == set()
    assert lies(3, [0], [0]) == lies(3, [0], [0, 1]) == lies(3, [0], []) == lies(3, [0], [7]) == {"numa"}


def test_a_stretch_is_judged_as_a_plan_is() -> None:
    tied = job("a", count=2, topology=Topology(required="rack"))
    snapshot = cluster(tied)
    for nodes, due in ((("n0", "n0"), set()), (("n0", "n1"), {"topology", "run_time"})):
        tasks = [("w", place, node, [place]) for place, node in enumerate(nodes)]
        assert rules(snapshot, made(snapshot, [("a", 0, 10, 0, 0, tasks)])) == due
    picky = cluster(job("a", task=Task(gpus=1, gpu_models=("B",))))
    assert rules(picky, made(picky, [("a", 0, 10, 0, 0, [("w", 0, "n0", [0])])])) == {"gpu_models"}
    groups = tuple(TaskGroup(name=name, task=Task(gpus=1)) for name in "wv")
    apart = replace(job("a"), groups=groups, affinity=(Affinity(a="w", b="v", level="rack", kind="apart"),))
    snapshot = cluster(apart)
    tasks = [("w", 0, "n0", [0]), ("v", 0, "n0", [1])]
    assert rules(snapshot, made(snapshot, [("a", 0, 10, 0, 0, tasks)])) == {"affinity"}


def test_fewer_tasks_run_as_fast_as_is_stated() -> None:
    # of 4 tasks 1 has speed 0.4, so 2 have 0.4 + (1 - 0.4) / 3 = 0.6, and 10 s take 10 / 0.6 = 16.667 s
    group = TaskGroup(name="w", count=4, min_count=1, task=Task(gpus=1))
    some = Job(name="a", groups=(group,), duration=Duration(seconds=10, scaling=((1, 0.4),)))
    snapshot = cluster(some)
    tasks = [("w", 0, "n0", [0]), ("w", 1, "n0", [1])]
    assert rules(snapshot, made(snapshot, [("a", 0, 16.667, 0, 0, tasks)])) == set()
    assert rules(snapshot, made(snapshot, [("a", 0, 16.666, 0, 0, tasks)])) == {"run_time"}


# --- left out ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", ["never", "late", "quota"])
def test_no_reason_is_said_of_a_job_that_could_run(reason: str) -> None:
    snapshot = cluster(job("a"))
    left = LeftOut(job="a", reason=reason, detail="")  # type: ignore[arg-type]
    assert rules(snapshot, made(snapshot, [], (left,))) == {"left_out"}


def test_a_job_that_nothing_holds_is_never_started() -> None:
    snapshot = cluster(job("a", gpus=3), job("b", after=("a",)))
    left = tuple(LeftOut(job=name, reason="never", detail="") for name in "ab")
    assert rules(snapshot, made(snapshot, [], left)) == set()


def test_a_job_like_one_that_starts_is_not_never_started() -> None:
    snapshot = cluster(job("a", count=2), job("b", count=2))
    parts: list[Part] = [("a", 0, 10, 0, 0, [("w", 0, "n0", [0]), ("w", 1, "n0", [1])])]
    assert rules(snapshot, made(snapshot, parts, (LeftOut(job="b", reason="never", detail=""),))) == {"left_out"}


# --- files ---------------------------------------------------------------------------------------------------


def test_schedules_are_read_and_judged_from_files(tmp_path: Path) -> None:
    schedule, file, source = made(BASE, PARTS), tmp_path / "schedule.json", tmp_path / "snapshot.json"
    file.write_bytes(dump_schedule(schedule))
    source.write_bytes(pl.dumps(BASE))
    assert load_schedule(file) == load_plan_or_schedule(file)
    assert pl.check(BASE, load_schedule(file)) == []
    assert CliRunner().invoke(app, ["check", str(source), str(file)]).exit_code == 0
    schedule.value += 1
    file.write_bytes(dump_schedule(schedule))
    result = CliRunner().invoke(app, ["check", str(source), str(file)])
    assert result.exit_code == 1
    assert "completion_time: value" in result.output
    with pytest.raises(pl.PlanError, match="expected a plan or a schedule"):
        load_plan_or_schedule(source)
    with pytest.raises(pl.PlanError, match="this is a schedule"):
        pl.load_plan(file)


def test_a_schedule_of_wrong_types_is_an_error() -> None:
    schedule = made(BASE, PARTS)
    schedule.stretches.start[0] = "now"  # type: ignore[call-overload]
    with pytest.raises(pl.PlanError, match="start"):
        pl.check(BASE, schedule)
