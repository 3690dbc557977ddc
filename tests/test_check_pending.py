"""Jobs that wait, and why, by hand."""

from __future__ import annotations

from typing import Literal

from check_cases import plan_of
from msgspec.structs import replace

from placement.check import check
from placement.plan import Plan
from placement.snapshot import Gpu, Job, Node, Running, RunningTask, Snapshot, Task, TaskGroup


def said(made: Plan, snapshot: Snapshot) -> list[tuple[str, str]]:
    return [(violation.rule, violation.path) for violation in check(snapshot, made)]


def never_case() -> tuple[Snapshot, dict[str, str]]:
    """Return a full cluster, and why each of its pending jobs waits."""

    def want(name: str, *tasks: Task, min_groups: int | None = None) -> Job:
        parts = tuple(TaskGroup(name=f"t{i}", task=task) for i, task in enumerate(tasks))
        return Job(name=name, groups=(TaskGroup(name="g", groups=parts, min_groups=min_groups),))

    old = TaskGroup(name="g", task=Task(gpus=2, cpu=4))
    one, big = Task(gpus=1), Task(gpus=3)
    snapshot = Snapshot(
        nodes=(
            Node(name="a", cpu=4, gpus=(Gpu(model="A", count=2, memory="16Gi"),)),
            Node(name="sick", gpus=(Gpu(model="A", count=2), Gpu(model="A", health="unhealthy"))),
            Node(name="off", cordoned=True, gpus=(Gpu(model="C", count=8),)),
        ),
        jobs=(
            Job(
                name="old",
                groups=(old,),
                running=Running(tasks=(RunningTask(group="g", index=0, node="a", gpus=(0, 1)),)),
            ),
            want("full", Task(gpus=2, cpu=4, gpu_memory="16Gi")),  # fits on a once old has ended
            want("three", big),  # sick has two healthy cards, off is cordoned
            want("model", Task(gpus=1, gpu_models=("C",))),
            want("memory", Task(gpus=2, gpu_memory="17Gi")),  # on the two cards of sick, whose memory is not known
            want("mixed", Task(gpus=2, gpu_memory="17Gi", extended={"lic": 1})),  # no node lists the licence
            want("some", one, big),  # one of the two can never run, and both must
            want("either", one, big, min_groups=1),
            want("or", one, big, big, min_groups=2),
        ),
    )
    reasons = {"full": "no_room", "three": "never", "model": "never", "memory": "no_room", "mixed": "never"}
    return snapshot, reasons | {"some": "never", "either": "no_room", "or": "never"}


def test_reasons() -> None:
    snapshot, reasons = never_case()
    made = plan_of(snapshot, [])
    assert {entry.job: entry.reason for entry in made.pending} == reasons
    assert said(made, snapshot) == []
    for number, entry in enumerate(made.pending):
        other: Literal["never", "no_room"] = "no_room" if entry.reason == "never" else "never"
        wrong = [replace(entry, reason=other) if e is entry else e for e in made.pending]
        assert said(replace(made, pending=wrong), snapshot) == [("pending", f"pending[{number}].reason")]


def test_counted_jobs_are_listed_one_by_one() -> None:
    group = TaskGroup(name="g", task=Task(gpus=1))
    snapshot = Snapshot(
        nodes=(Node(name="n", gpus=(Gpu(model="A"),)),), jobs=(Job(name="j", count=1000, groups=(group,)),)
    )
    made = plan_of(snapshot, [("j-1", "g", 0, "n", [0])])
    assert said(made, snapshot) == []
    cut = replace(made, pending=[entry for entry in made.pending if entry.job not in ("j-0", "j-7")])
    (violation,) = check(snapshot, cut)
    assert str(violation) == "pending: pending: job j-0 and 1 more of jobs[0] does not fully run, so it must be listed"
    running = replace(made, pending=[*made.pending, replace(made.pending[0], job="j")])
    assert said(running, snapshot) == [("pending", "pending[999]")]
