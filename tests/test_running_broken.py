"""Rules that running work breaks today: carried, named in plans, in the terminal and by the judge, never worse."""

from __future__ import annotations

import importlib
import json
import pkgutil
from pathlib import Path
from typing import Any

import pytest
from check_cases import plan_of
from cli_cases import placement
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from shared_cases import CGROUP, CUDA, GIB, POLICIES, WAYS, card, fits, job, node, runs

import placement as pl
from placement.check import RULES, RUNNING, check, overfull, running_notes
from placement.check.running.overfull import breaches
from placement.snapshot import Duration, Gpu, Job, Node, Policy, Queue, Running, RunningTask, Snapshot, Task, TaskGroup
from placement.snapshot.read import dumps, verified

# --- one line for each ----------------------------------------------------------------------------------------


def on_mig(name: str, profile: str, memory: str, start: int) -> Job:
    place = RunningTask(group="w", index=0, node="n", gpus=(0,), mig_starts=(start,))
    task = Task(gpus=1, mig_profile=profile, gpu_memory=memory)
    return Job(name=name, groups=(TaskGroup(name="w", task=task),), running=Running(tasks=(place,)))


N0 = ("n", 0)
BROKEN: list[tuple[Node, tuple[Job, ...], list[str]]] = [
    (
        node("n", card("mps")),
        (runs("r", 0.5, N0, isolation=("fault", "security")),),
        ["isolation: n gpu 0: job r: the task asks for isolation of fault and security, which mps sharing does not "
         "guarantee"],
    ),
    (
        node("n", card("vgpu", vgpu_policy="equal_share")),
        (runs("r", 0.25, N0, N0, isolation=("security", "performance")),),
        ["isolation: n gpu 0: job r, 2 tasks: the task asks for isolation of performance, which vgpu (equal_share) "
         "sharing does not guarantee"],
    ),
    # 4 replicas of 40Gi have 10Gi each; 11Gi is too much for one, and fits on the card
    (
        node("n", card("mps", replicas=4, memory="40Gi")),
        (runs("r", 0.25, N0, gpu_memory="11Gi"),),
        ["replica_memory: n gpu 0: job r: the task needs 11Gi of device memory, each of 4 replicas has 10Gi"],
    ),
    # an instance 1g.5gb of an A100-40GB has 4,864 MiB = 4.75Gi
    (
        node("n", Gpu(model="A100-40GB", mig_enabled=True)),
        (on_mig("ok", "2g.10gb", "9Gi", 0), on_mig("r", "1g.5gb", "6Gi", 4)),
        ["mig: n gpu 0: job r: the task needs 6Gi of memory, an instance 1g.5gb has 4864Mi"],
    ),
    (
        node("n", card("time_slicing")),
        (runs("r", 0.5, N0, gpu_memory="1Gi", gpu_memory_limit="enforced"),),
        ["memory_limit: n gpu 0: job r: the task asks that device memory be enforced, which time_slicing sharing does "
         "not do"],
    ),
    (
        node("n", card("mps"), cuda="13.4", cgroup=1),
        (runs("r", 0.5, N0, gpu_memory="1Gi", gpu_memory_limit="partitioned"),),
        ["memory_limit: n gpu 0: job r: the task asks that device memory be partitioned, which mps sharing does with "
         "cgroup 2, the node has 1"],
    ),
    (
        node("n", card("exclusive")),
        (runs("r", 0.5, N0),),
        ["sharing: n gpu 0: job r: the card is exclusive and the task takes 0.5 of it, only whole cards are allowed"],
    ),
    (
        node("n", card("mps", replicas=2)),
        (runs("r", 0.1, N0, N0), runs("s", 0.1, N0)),
        ["clients: n gpu 0: 3 tasks on it, at most 2 (jobs r, s)"],
    ),
    # whole cards, and shares where all that is asked for is given
    (
        node("n", card("mps")),
        (runs("r", None, N0, isolation=("fault",), gpu_memory="1Gi", gpu_memory_limit="partitioned"),),
        [],
    ),
    (node("n", card("vgpu", vgpu_policy="fixed_share")), (runs("r", 0.5, N0, isolation=("performance",)),), []),
    (node("n", card("mps", replicas=4, memory="40Gi")), (runs("r", 0.25, N0, gpu_memory="10Gi"),), []),
    (node("n", Gpu(model="A100-40GB", mig_enabled=True)), (on_mig("r", "1g.5gb", "4864Mi", 0),), []),
    (node("n", card("mps"), cuda="11.5"), (runs("r", 0.5, N0, gpu_memory="1Gi", gpu_memory_limit="enforced"),), []),
    (node("n", card("mps", replicas=2)), (runs("r", 0.1, N0, N0),), []),
    # an unhealthy card, and a model that a new task could not have, only say where new tasks may go
    (node("n", card("shared", health="unhealthy")), (runs("r", 0.5, N0, gpu_models=("B",)),), []),
]  # fmt: skip


@pytest.mark.parametrize(("there", "work", "lines"), BROKEN)
def test_each_is_said_and_carried(there: Node, work: tuple[Job, ...], lines: list[str]) -> None:
    # beside it one more node, on which the job that waits starts whatever runs elsewhere
    snapshot = Snapshot(nodes=(there, node("free", card())), jobs=(*work, job("new")))
    assert [f"{one.rule}: {one.what}" for one in breaches(verified(snapshot))] == lines
    for solver in ("first-fit", "auto"):
        plan = pl.solve(snapshot, solver=solver)
        assert plan.checked
        assert plan.tasks.job == ["new"]
        said = [note for note in plan.notes if note.startswith(RUNNING)]
        assert said == [RUNNING + line.split(": ", 1)[1] for line in lines]
    assert check(snapshot, plan_of(snapshot, [])) == []


def test_tenants_together_are_said_with_their_jobs() -> None:
    old = [replace(runs(f"r{i}", 0.1, N0), tenant=tenant) for i, tenant in enumerate(["a", "b", "a"])]
    snapshot = Snapshot(nodes=(node("n", card()),), jobs=tuple(old), policy=Policy(tenants_apart="gpu"))
    assert overfull(verified(snapshot)) == ["n gpu 0: running tasks of tenants a, b together (jobs r0, r1, r2)"]
    assert overfull(replace(snapshot, policy=Policy())) == []


def test_it_may_not_get_worse() -> None:
    # 3 clients where 2 may be, one of which wants isolation that MPS does not give: no share may join them, and one
    # that wants isolation may be on no such card
    nodes = (node("n", card("mps", replicas=2), card("mps", replicas=2)),)
    old = (runs("r", 0.1, N0, N0), runs("s", 0.1, N0, isolation=("fault",)))
    snapshot = Snapshot(nodes=nodes, jobs=(*old, job("x", 0.1), job("y", 0.1, isolation=("fault",))))
    plan = pl.solve(snapshot)
    assert list(plan.tasks) == [("x", "w", 0, "n", [1])]
    assert {one.rule for one in check(snapshot, plan_of(snapshot, [("x", "w", 0, "n", [0])]))} == {"clients"}
    assert {one.rule for one in check(snapshot, plan_of(snapshot, [("y", "w", 0, "n", [1])]))} == {"isolation"}


@st.composite
def any_running(draw: st.DrawFn) -> Snapshot:
    """Draw a node of one card and a running task that takes a share of it, or all of it."""
    way = draw(st.sampled_from(WAYS))
    replicas = draw(st.sampled_from((None, 2, 4))) if way in ("shared", "time_slicing", "mps", "vgpu") else None
    policy = draw(st.sampled_from(POLICIES)) if way == "vgpu" else ""
    gpu = card(way, replicas=replicas, vgpu_policy=policy, memory=8 * GIB, compute_capability="8.0")
    there = node("n", gpu, cuda=draw(st.sampled_from(CUDA)), cgroup=draw(st.sampled_from(CGROUP)))
    memory = draw(st.sampled_from((None, GIB, 3 * GIB, 8 * GIB)))
    asked = {
        "isolation": tuple(draw(st.sets(st.sampled_from(("security", "performance", "fault"))))),
        "gpu_memory": memory,
        "gpu_memory_limit": draw(st.sampled_from(("", "enforced", "partitioned"))) if memory else "",
    }
    return Snapshot(nodes=(there,), jobs=(runs("r", draw(st.sampled_from((None, 0.25, 1))), N0, **asked),))


@given(snapshot=any_running())
@settings(max_examples=150)
def test_whatever_a_new_task_may_not_do_is_said_of_a_running_one(snapshot: Snapshot) -> None:
    (there,), (old,) = snapshot.nodes, snapshot.jobs
    (group,) = old.groups
    assert group.task is not None
    assert (overfull(verified(snapshot)) == []) == fits(group.task, there.gpus[0], there)


# --- how many, where and in which order -----------------------------------------------------------------------


def crowd(cards: int) -> Snapshot:
    """Return cards with one running task each that asks for isolation it does not have; the first has too much, too."""
    work = [runs(f"r{i}", 0.5, ("n", i), isolation=("fault",)) for i in range(cards)]
    return Snapshot(nodes=(node("n", card(count=cards)),), jobs=(*work, runs("big", None, N0)))


def test_the_first_few_of_each_rule_are_told() -> None:
    snapshot = crowd(40)
    lacks = "the task asks for isolation of fault, which shared sharing does not guarantee"
    assert len(overfull(verified(snapshot))) == 41
    assert running_notes(verified(snapshot)) == [
        "running work: n gpu 0: shares add up to 1.5, at most 1 (jobs r0, big)",
        f"running work: n gpu 0: job r0: {lacks}",
        f"running work: n gpu 1: job r1: {lacks}",
        f"running work: n gpu 2: job r2: {lacks}",
        "running work: and 37 more that break the rule isolation",
    ]
    # cards come in the order of the node, not of their names
    assert [line.split(":")[0] for line in overfull(verified(snapshot))[1:]] == [f"n gpu {i}" for i in range(40)]


def test_the_same_snapshot_has_the_same_notes() -> None:
    snapshot = crowd(9)
    first = pl.solve(snapshot, solver="first-fit").notes
    assert first == pl.solve(snapshot, solver="best-fit").notes == running_notes(verified(snapshot))
    # the order in which running work is listed is no matter of what is broken
    turned = replace(snapshot, jobs=snapshot.jobs[::-1])
    assert sorted(overfull(verified(turned))) == sorted(
        line.replace("(jobs r0, big)", "(jobs big, r0)") for line in overfull(verified(snapshot))
    )


def test_notes_that_are_not_so_are_violations() -> None:
    snapshot = crowd(2)
    plan = pl.solve(snapshot, solver="first-fit")
    assert check(snapshot, plan) == []
    assert check(snapshot, replace(plan, notes=[])) == []
    false = replace(plan, notes=["of its own", *plan.notes, f"{RUNNING}n gpu 7: on fire"])
    assert [str(one) for one in check(snapshot, false)] == [
        f"notes: notes[{len(plan.notes) + 1}]: n gpu 7: on fire: running work of the snapshot breaks no such rule"
    ]


def test_the_terminal_tells_once(tmp_path: Path) -> None:
    file, made = tmp_path / "s.json", tmp_path / "p.json"
    file.write_bytes(dumps(crowd(9)))
    solved = placement("solve", file, "--solver", "first-fit", "-o", made)
    judged = placement("check", file, made)
    assert solved.exit_code == judged.exit_code == 0
    for text in (solved.stdout, judged.stdout):
        assert text.count("n gpu 0: shares add up to 1.5, at most 1 (jobs r0, big)") == 1
        assert text.count("Broken by running work\n") == 1
        assert text.count("and 6 more that break the rule isolation") == 1
    assert "Notes" not in solved.stdout
    listed = json.loads(placement("check", file, made, "--format", "json").stdout)
    assert listed["valid"]
    assert [f"{RUNNING}{line}" for line in listed["running"]] == running_notes(crowd(9))


# --- queues beyond a quota ------------------------------------------------------------------------------------


def beyond(**queue: Any) -> Snapshot:
    """Return 4 cards of H in use by b, which with a shares what is above; 4 are free, and one job of each waits."""
    group = TaskGroup(name="w", task=Task(gpus=4))
    place = RunningTask(group="w", index=0, node="n", gpus=(0, 1, 2, 3))
    ends = Duration(seconds=100)
    queues = (
        Queue(name="top", quota={"H": 1}),
        Queue(name="a", parent="top", quota={"H": 2}, lending_limit={"H": 1}),
        Queue(name="b", parent="top", **queue),
    )
    waits = [replace(job(f"{name}-new", 1, duration=ends), queue=name) for name in "ab"]
    old = Job(name="old", queue="b", duration=ends, groups=(group,), running=Running(tasks=(place,)))
    return Snapshot(nodes=(node("n", Gpu(model="H", count=8)),), queues=queues, jobs=(old, *waits))


@pytest.mark.parametrize(
    ("queue", "lines"),
    [
        # b may use 1 + 1; top has 1, 1 that a lends, and 1 of b, and b uses all of its 4 there
        (
            {"quota": {"H": 1}, "borrowing_limit": {"H": 1}},
            [
                "queue b uses 4 cards of H, at most 2 by its quota",
                "queue top uses 4 cards of H, at most 3 by its quota",
            ],
        ),
        # top has 1, 1 of a and 1 of b, of whose 4 cards 2 are those that it never lends: 2 of 3 are used there
        (
            {"quota": {"H": 3}, "borrowing_limit": {"H": 0}, "lending_limit": {"H": 1}},
            ["queue b uses 4 cards of H, at most 3 by its quota"],
        ),
        ({"quota": {"H": 4}}, []),
    ],
    ids=["both", "one", "none"],
)
def test_queues_that_are_beyond_a_quota_are_told(queue: dict[str, Any], lines: list[str], tmp_path: Path) -> None:
    snapshot = beyond(**queue)
    due = [f"{RUNNING}{line}" for line in lines]
    plan, schedule = pl.solve(snapshot), pl.schedule(snapshot)
    for answer in (plan, schedule):
        assert [note for note in answer.notes if note.startswith(RUNNING)] == due
        assert pl.check(snapshot, answer) == []
    wrong = schedule.notes.index(due[0]) if due else len(schedule.notes)
    notes = [*schedule.notes[:wrong], f"{RUNNING}queue b uses 5 cards of H", *schedule.notes[wrong + 1 :]]
    (violation,) = pl.check(snapshot, replace(schedule, notes=notes))
    assert str(violation).startswith(f"notes: notes[{wrong}]: queue b uses 5 cards of H: running work of the snapshot")
    without = pl.solve(snapshot, without=["queues"])
    assert not any(note.startswith(RUNNING) for note in without.notes)
    file, made = tmp_path / "s.json", tmp_path / "made.json"
    file.write_bytes(dumps(snapshot))
    for command in ("solve", "schedule"):
        said, judged = placement(command, file, "-o", made), placement("check", file, made)
        assert said.exit_code == judged.exit_code == 0
        for text in (said.stdout, judged.stdout):
            assert text.count("Broken by running work\n") == bool(lines)
            assert all(text.count(line) == 1 for line in lines)


# --- names of rules -------------------------------------------------------------------------------------------


def test_every_name_of_a_rule_is_listed_once() -> None:
    judge = importlib.import_module("placement.check")  # as a name it is the function
    modules = [importlib.import_module(one.name) for one in pkgutil.walk_packages(judge.__path__, "placement.check.")]
    named = {module.__name__: module.RULE for module in modules if hasattr(module, "RULE")}
    assert named["placement.check.in_nodes.mig"] == "mig"
    assert len(named) > 20
    assert {name: rule for name, rule in named.items() if rule not in {*RULES, *judge.SCHEDULE_RULES}} == {}
    assert len(RULES) == len(set(RULES))
    # a module that judges plans names its rule; admission and cards say which filter refused
    judges = {one.__module__ for one in judge._JUDGES}
    assert judges - named.keys() == {"placement.check.admission"}
    # those that are no filters come in the order of the judges
    order = [named[one.__module__] for one in judge._JUDGES if one.__module__ in named]
    assert [rule for rule in RULES if rule in order and rule != "mig"] == [rule for rule in order if rule != "mig"]
