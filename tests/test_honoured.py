"""Every field of the format is honoured by a rule or refused by name."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from bad_snapshots import GOOD

from placement import rules
from placement.check import check
from placement.decisions.preempt import preempt
from placement.engine import solve
from placement.errors import UnhonouredError, UsageError
from placement.honoured import ONLY, RULES, refuse_unhonoured, removable
from placement.honoured.left_out import without_fields
from placement.snapshot import (
    IN_SCHEDULES,
    OBJECTIVES,
    Gpu,
    Job,
    Node,
    Policy,
    Queue,
    Running,
    RunningTask,
    Snapshot,
    Task,
    TaskGroup,
)
from placement.snapshot.read import loads, verified
from placement.snapshot.structure import hints_of, records_of


def leaves(record: type[msgspec.Struct] = Snapshot, prefix: str = "", above: tuple[type, ...] = ()) -> list[str]:
    """Return the path of every field that holds no records, or the records it is in."""
    found = []
    for info in msgspec.structs.fields(record):
        parts = records_of(hints_of(record)[info.name])
        inside = [part for part in parts if part not in (*above, record)]
        path = prefix + info.name
        found += [path] if not inside else [p for part in inside for p in leaves(part, f"{path}.", (*above, record))]
    return found


def lines(path: str) -> list[str]:
    """Return the lines of the table that speak of a field."""
    return [line for line in RULES if path == line or path.startswith(f"{line}.")]


def test_every_field_has_one_line() -> None:
    assert {path: lines(path) for path in leaves() if len(lines(path)) != 1} == {}


def test_every_line_is_a_field() -> None:
    paths = leaves()
    assert [line for line in RULES if not any(p == line or p.startswith(f"{line}.") for p in paths)] == []


def test_only_what_is_refused_stands_for_the_records_below_it() -> None:
    assert [line for line, rule in RULES.items() if rule is not None and line not in leaves()] == []


def test_rules_are_named_as_they_name_themselves() -> None:
    registered = {rule.name for rule in rules.NODE_FILTERS} | {rule.name for rule in rules.CARD_FILTERS}
    registered |= {rule.name for rule in rules.DIMENSIONS}
    others = {
        "identity",
        "text",
        "limits",
        "shares",
        "device_memory",
        "clients",
        "gang",
        "value",
        "arrival",
        "links",
        "numa",
        "nics",
        "topology",
        "affinity",
        "tenants",
        "running",
        "objectives",
        "queue_shares",
        "run_time",
    }
    named = {rule for listed in RULES.values() if listed is not None for rule in listed.split(", ")}
    assert registered <= named
    assert named - registered == others


def test_partly_honoured_fields_name_possible_values() -> None:
    assert ONLY["policy.objectives"] == set(OBJECTIVES) - set(IN_SCHEDULES)
    assert ONLY["policy.shares"] == {Policy().shares}
    assert set(ONLY) == {"policy.objectives", "policy.shares"}


def problems(snapshot: Snapshot, *without: str) -> dict[str, str]:
    with pytest.raises(UnhonouredError) as caught:
        refuse_unhonoured(verified(snapshot), without)
    return {problem.path: str(problem) for problem in caught.value.problems}


def with_task(task: Task, **fields: object) -> Snapshot:
    return Snapshot(jobs=(Job(name="j", groups=(TaskGroup(name="g", task=task),), **fields),))  # type: ignore[arg-type]


EVERYTHING = loads(msgspec.json.encode(GOOD))


def test_each_refused_field_is_named_once() -> None:
    with pytest.raises(UnhonouredError) as caught:
        refuse_unhonoured(EVERYTHING)
    named = {problem.remedy.rpartition(" ")[2] for problem in caught.value.problems}
    assert named == set(removable())
    assert len(caught.value.problems) == len(named)


def test_each_field_can_be_left_out() -> None:
    left = refuse_unhonoured(EVERYTHING, removable())
    assert refuse_unhonoured(left) is left
    assert verified(left) is left
    assert left.policy.objectives == ("value", "tasks")
    assert left.jobs[0].requires == EVERYTHING.jobs[0].requires
    assert left.nodes[1].gpus[2].sharing == "exclusive"
    assert [len(job.groups) for job in left.jobs] == [2, 1, 1]


def test_first_use_and_number_of_uses() -> None:
    nodes = (Node(name="a"), *(Node(name=f"n{i}", failure_rate=0.5) for i in range(3)))
    (message,) = problems(Snapshot(nodes=nodes)).values()
    assert message == (
        "nodes[1].failure_rate: no rule honours nodes.failure_rate yet, which is used 3 times; "
        "remove it, or solve as if it were absent with --without nodes.failure_rate"
    )


def test_some_objectives() -> None:
    snapshot = verified(Snapshot(policy=Policy(objectives=("tasks", "completion_time", "nodes"))))
    assert list(problems(snapshot)) == ["policy.objectives[1]"]
    assert refuse_unhonoured(snapshot, ["policy.objectives"]).policy.objectives == ("tasks", "nodes")


def test_state_of_running_jobs() -> None:
    running = Running(tasks=(RunningTask(group="g", index=0, node="n"),), restarts=2)
    snapshot = verified(msgspec.structs.replace(with_task(Task(), running=running), nodes=(Node(name="n"),)))
    # a plan stops nothing, so it makes no difference; to leave it out is no mistake either
    assert refuse_unhonoured(snapshot) is snapshot
    assert refuse_unhonoured(snapshot, ["jobs.running.restarts", "jobs.preemptible"]) is snapshot


def test_what_stopping_would_cost_makes_no_difference_to_a_plan() -> None:
    task = RunningTask(group="g", index=0, node="n", gpus=(0,))
    states = (
        Running(tasks=(task,)),
        Running(tasks=(task,), since=1.0, work_done=2.0, last_checkpoint=3.0, restarts=4),
    )
    fields: tuple[dict[str, Any], ...] = (
        {},
        {"preemptible": True, "minimum_run_seconds": 9.0, "checkpoint_interval": 5.0, "restart_seconds": 6.0},
    )
    nodes = (Node(name="n", gpus=(Gpu(model="A", count=3),)),)
    places = []
    for running, more in zip(states, fields, strict=True):
        group = (TaskGroup(name="g", task=Task(gpus=1)),)
        jobs = (Job(name="r", groups=group, running=running, **more), Job(name="p", groups=group, **more))
        plan = solve(Snapshot(time=10.0, nodes=nodes, jobs=jobs))
        assert plan.checked
        places.append(list(plan.tasks))
    assert places[0] == places[1] == [("p", "g", 0, "n", [1])]


def test_what_is_honoured_passes_as_it_is() -> None:
    snapshot = verified(with_task(Task(gpus=1, gpu_share="500m", cpu=1), priority=3, submit_time=2.0))
    assert refuse_unhonoured(snapshot) is snapshot
    assert refuse_unhonoured(snapshot, ["queues"]) is snapshot


def test_leaving_out_does_not_hide_the_rest() -> None:
    nodes, policy = (Node(name="n", failure_rate=1.0),), Policy(max_moves=1)
    snapshot = verified(Snapshot(nodes=nodes, queues=(Queue(name="q"),), policy=policy))
    assert list(problems(snapshot, "queues", "policy.max_moves")) == ["nodes[0].failure_rate"]


@pytest.mark.parametrize(
    ("name", "phrase"),
    [
        ("nodes.failure_rates", 'did you mean "nodes.failure_rate"?'),
        ("nodes.cgroup", "nodes.cgroup is honoured (memory_limit)"),
        ("nodes.cpu", "nodes.cpu is honoured (capacity)"),
        ("topology", "topology is honoured (limits, topology, affinity, tenants)"),
        ("jobs", "of jobs some is honoured (identity, tenants, value,"),
        ("", "there is no field"),
        ("nodes.zones.cpu", "nodes.zones.cpu is honoured (numa)"),
        ("nodes.zones", "nodes.zones is honoured (numa, nics,"),
        ("jobs.data", "jobs.data is honoured (run_time), so"),
        ("jobs.duration", "of jobs.duration some is honoured (run_time), so"),
        ("jobs.duration", "; name jobs.duration.scaling\n"),
    ],
)
def test_what_cannot_be_left_out(name: str, phrase: str) -> None:
    with pytest.raises(UsageError) as caught:
        refuse_unhonoured(Snapshot(), [name])
    assert phrase in str(caught.value)
    assert "possible are nodes.failure_rate" in str(caught.value)


@pytest.mark.parametrize("path", sorted(removable()))
def test_each_refused_field_is_found_where_it_is_alone(path: str) -> None:
    """The quick look over all records must find by itself whatever the table refuses."""
    others = frozenset(removable()) - {path}
    with pytest.raises(UnhonouredError) as caught:
        refuse_unhonoured(without_fields(EVERYTHING, others))
    assert [problem.remedy.rpartition(" ")[2] for problem in caught.value.problems] == [path]


def test_one_word_stands_for_all_that_counts_in_a_schedule_alone() -> None:
    snapshot = verified(Snapshot(queues=(Queue(name="q"),), nodes=(Node(name="n", failure_rate=1.0),)))
    assert list(problems(snapshot, "schedule")) == ["nodes[0].failure_rate"]
    plan = solve(snapshot, without=("schedule", "nodes.failure_rate"))
    assert (plan.checked, check(snapshot, plan)) == (True, [])
    assert preempt(snapshot, without=("schedule", "nodes.failure_rate")).plan.checked
