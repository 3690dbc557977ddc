"""The reader: what is right comes back the same, what is wrong is said once and where."""

from __future__ import annotations

import gzip
import io
import json
import math
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest
from bad_snapshots import BAD, GOOD, HEAD, Bad, edited
from bad_zones import BAD_ZONES

from placement.errors import SnapshotError
from placement.snapshot import (
    Gpu,
    Job,
    Node,
    Policy,
    Requires,
    Running,
    RunningTask,
    Snapshot,
    Spread,
    Task,
    TaskGroup,
    Topology,
    strict,
)
from placement.snapshot.events import JobArrived
from placement.snapshot.read import digest, dumps, load, load_events, loads, verified
from placement.snapshot.structure import records_in

ROOT = Path(__file__).parent.parent
EVERY_FIELD = ROOT / "docs" / "every-field.json"


def refused(data: bytes) -> SnapshotError:
    with pytest.raises(SnapshotError) as caught:
        loads(data, "file.json")
    return caught.value


@pytest.mark.parametrize("bad", [*BAD, *BAD_ZONES], ids=lambda bad: bad.name)
def test_wrong_snapshots(bad: Bad) -> None:
    error = refused(bad.data)
    assert [problem.path for problem in error.problems] == [bad.path], str(error)
    assert bad.phrase in str(error.problems[0])
    assert error.total == 1
    assert error.problems[0].remedy
    assert error.__cause__ is None
    lines = str(error).splitlines()
    assert len(lines) == 1
    assert lines[0].startswith(f"file.json: {bad.path}")
    assert len(lines[0]) < 700
    assert lines[0].isprintable()


@pytest.mark.parametrize("count", [1, 5000])
def test_an_unknown_name_among_many_jobs_is_not_said_to_be_among_none(count: int) -> None:
    group = {"name": "g", "task": {"gpus": 1}}
    jobs: list[dict[str, object]] = [{"name": f"job{number}", "groups": [group]} for number in range(count)]
    jobs[0]["after"] = ["nope"]
    (problem,) = refused(json.dumps({"format": "placement-snapshot/1", "jobs": jobs}).encode()).problems
    assert problem.path == "jobs[0].after[0]"
    assert problem.what == 'there is no job "nope"'
    assert problem.remedy.startswith('the known ones are "job0"')
    assert ("and 4980 more" in problem.remedy) == (count == 5000)


def test_the_table_is_long_and_its_names_differ() -> None:
    assert len({bad.name for bad in [*BAD, *BAD_ZONES]}) == len(BAD) + len(BAD_ZONES) >= 60


def test_problems_in_meaning_are_reported_together_in_the_order_of_the_file() -> None:
    error = refused(edited({"jobs[0].weight": -1, "nodes[0].pods": -1, "policy.max_moves": -1, "time": 0}))
    assert [problem.path for problem in error.problems] == [
        "nodes[0].pods",
        "jobs[0].weight",
        "jobs[2].running.since",
        "jobs[2].running.last_checkpoint",
        "policy.max_moves",
    ]


def test_a_long_list_of_problems_is_cut() -> None:
    error = refused(edited({f"nodes[{i}]": {"name": f"n{i}", "pods": -1} for i in range(2, 80)}))
    assert (len(error.problems), error.total) == (50, 78)
    assert str(error).endswith("and 28 more problems")


def test_a_structural_problem_comes_alone() -> None:
    assert refused(edited({"jobs[0].weight": -1, "nodes[0].pods": "x"})).total == 1


@pytest.mark.parametrize("key", ["a", "a b", "é", "x` - at `$.nodes[0]", "`", "x` - at `$.nodes[9].name", "\n", ""])
def test_any_unknown_field_is_reported(key: str) -> None:
    (problem,) = refused(edited({"nodes": []}).replace(b'"nodes"', json.dumps(key).encode())).problems
    assert "field" in problem.what


# --- what is right ----------------------------------------------------------------------------------------------


def test_round_trip() -> None:
    snapshot = load(EVERY_FIELD)
    data = dumps(snapshot)
    assert loads(data) == snapshot
    assert dumps(loads(data)) == data
    assert len(data.splitlines()) == 1
    assert len(digest(snapshot)) == 64


def records(value: object) -> Iterator[msgspec.Struct]:
    """Yield a record and all below it."""
    if isinstance(value, tuple):
        for item in value:
            yield from records(item)
    elif isinstance(value, msgspec.Struct):
        yield value
        for name in value.__struct_fields__:
            yield from records(getattr(value, name))


def test_the_example_uses_every_field() -> None:
    found = list(records(load(EVERY_FIELD)))
    for kind in records_in(Snapshot):
        for info in msgspec.structs.fields(kind):
            default = info.default if info.default_factory is msgspec.NODEFAULT else info.default_factory()
            values = [getattr(record, info.name) for record in found if type(record) is kind]
            assert any(value != default for value in values), f"{kind.__name__}.{info.name}"


def test_equal_snapshots_have_equal_bytes() -> None:
    spelt = {
        "time": 0,
        "nodes": [{"name": "a", "count": 1, "failure_rate": 0, "labels": {"x": "1", "b": "2"}, "cordoned": False}],
        "jobs": [
            {"name": "j", "requires": {}, "minimum_run_seconds": 0, "groups": [{"name": "g", "task": {"gpus": 0}}]}
        ],
        "queues": [{"name": "q", "weight": 1}],
        "policy": {"objectives": ["value", "tasks"]},
    }
    short = {
        "queues": [{"name": "q"}],
        "jobs": [{"groups": [{"task": {}, "name": "g"}], "name": "j"}],
        "nodes": [{"labels": {"b": "2", "x": "1"}, "name": "a"}],
    }
    a, b = (loads(HEAD + json.dumps(part).encode()[1:]) for part in (spelt, short))
    assert a == b
    assert dumps(a) == dumps(b)


@pytest.mark.parametrize("over", ["card", "node", "minimum"])
def test_what_runs_and_is_too_much_is_carried(over: str) -> None:
    places = [{"group": "g", "index": i, "node": "n", "gpus": [0]} for i in range(1 if over == "minimum" else 3)]
    task = {"gpus": 1, "gpu_share": 0.1} if over == "node" else {"gpus": 1}
    snapshot = {
        "nodes": [{"name": "n", "pods": 2, "cordoned": True, "gpus": [{"model": "T4", "health": "unhealthy"}]}],
        "jobs": [{"name": "j", "groups": [{"name": "g", "count": 3, "task": task}], "running": {"tasks": places}}],
    }
    assert loads(HEAD + json.dumps(snapshot).encode()[1:]).jobs[0].running is not None


def test_doubled_card_models_are_fine() -> None:
    assert loads(edited({"jobs[0].groups[0].task.gpu_models": ["H100-80", "H100-80"]}))


def test_names_that_only_look_alike_are_fine() -> None:
    counts = {"n": 3, "n-3": 1, "n-01": 1, "n-": 1, "-1": 1, "n-0-1": 1, "n-1": 2, "n-٣": 1}
    nodes = [{"name": name, "count": count} for name, count in counts.items()]
    loads(HEAD + json.dumps({"nodes": nodes}).encode()[1:])


# --- sources ----------------------------------------------------------------------------------------------------


def test_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = EVERY_FIELD.read_bytes()
    packed = tmp_path / "a.json.gz"
    packed.write_bytes(gzip.compress(data))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    pieces = gzip.compress(data[:999]) + gzip.compress(data[999:])
    snapshots = [load(str(EVERY_FIELD)), load(packed), load(io.BytesIO(data)), load("-"), loads(data), loads(pieces)]
    assert all(snapshot == snapshots[0] for snapshot in snapshots)


@pytest.mark.parametrize(
    ("name", "phrase"),
    [
        ("missing.json", "no such file"),
        (".", "a directory"),
        ("a" * 5000, "cannot be read"),
        ("a\0b", "cannot be read"),
    ],
)
def test_what_cannot_be_read(tmp_path: Path, name: str, phrase: str) -> None:
    with pytest.raises(SnapshotError, match=phrase) as caught:
        load(f"{tmp_path}/{name}")
    assert len(str(caught.value)) < 500


def test_a_text_file_is_refused() -> None:
    with pytest.raises(SnapshotError, match="binary"):
        load(io.StringIO("{}"))  # type: ignore[arg-type]


def test_the_file_is_named_in_errors(tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    path.write_bytes(edited({"nodes[0].pods": -1}))
    with pytest.raises(SnapshotError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: nodes[0].pods: ")


def test_too_large_inputs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strict, "LARGEST", 1000)
    for source in (b" " * 1001, gzip.compress(b" " * 1001)):
        with pytest.raises(SnapshotError, match="larger than"):
            load(io.BytesIO(source))


def test_too_long_lists_are_refused_before_they_are_read() -> None:
    (problem,) = refused(HEAD + b'"nodes": [' + b"{}," * 10**6 + b"{}]}").problems
    assert (problem.path, problem.what) == ("nodes", "1,000,001 entries, at most 1,000,000 are accepted")


# --- snapshots built in Python ----------------------------------------------------------------------------------


def leaf(task: Task) -> tuple[TaskGroup, ...]:
    return (TaskGroup(name="g", task=task),)


def test_what_was_read_is_verified_already() -> None:
    snapshot = load(EVERY_FIELD)
    assert verified(snapshot) is snapshot


def test_the_normal_form_of_a_snapshot_built_in_python_is_checked_once() -> None:
    built = Snapshot(nodes=(Node(name="n", gpus=(Gpu(model="T4"),)),), jobs=(Job(name="j", groups=leaf(Task(gpus=1))),))
    normal = verified(built)
    assert normal == built
    assert verified(normal) is normal
    # lists and mappings in what was built may have changed since
    assert verified(built) is not normal


def test_lists_and_numbers_of_other_libraries_become_plain() -> None:
    built = Snapshot(
        nodes=[Node(name="n", cpu=np.float64(2.5), pods=np.int64(3))],  # type: ignore[arg-type]
        time=np.float32(1.5),  # type: ignore[arg-type]
    )
    assert verified(built) == Snapshot(nodes=(Node(name="n", cpu=2.5, pods=3),), time=1.5)


@pytest.mark.parametrize(
    ("built", "path", "phrase"),
    [
        (Snapshot(time=math.nan), "time", "found nan, expected a finite number"),
        (Snapshot(time=math.inf), "time", "found inf"),
        (Snapshot(nodes=(Node(name="n", cpu=math.nan),)), "nodes[0].cpu", "nan"),
        (Snapshot(nodes=(Node(name="n", failure_rate=math.nan),)), "nodes[0].failure_rate", "nan"),
        (Snapshot(jobs=(Job(name="j", deadline=math.nan, groups=leaf(Task())),)), "jobs[0].deadline", "nan"),
        (Snapshot(jobs=(Job(name="j", submit_time=math.inf, groups=leaf(Task())),)), "jobs[0].submit_time", "inf"),
        (Snapshot(nodes=(Node(name=3),)), "nodes[0].name", "found 3, expected text"),  # type: ignore[arg-type]
        (Snapshot(nodes=(Node(name="n", count=True),)), "nodes[0].count", "found true"),
        (Snapshot(nodes=Node(name="n")), "nodes", "found an object, expected a list"),  # type: ignore[arg-type]
        (Snapshot(nodes=(object(),)), "", "object of type object"),  # type: ignore[arg-type]
        (Snapshot(nodes=(Node(name="\ud800"),)), "", "surrogates"),
        (Snapshot(nodes=(Node(name="n", labels={3: "x"}),)), "nodes[0].labels", "expected"),  # type: ignore[dict-item]
        ({}, "", "found dict, expected a Snapshot"),
    ],
)
def test_wrong_snapshots_built_in_python(built: Snapshot, path: str, phrase: str) -> None:
    with pytest.raises(SnapshotError) as caught:
        verified(built)
    assert [problem.path for problem in caught.value.problems] == [path]
    assert phrase in str(caught.value)


def test_a_group_within_itself_is_refused() -> None:
    groups: list[TaskGroup] = []
    groups.append(TaskGroup(name="g", groups=groups))  # type: ignore[arg-type]
    with pytest.raises(SnapshotError, match="refers to itself"):
        verified(Snapshot(jobs=(Job(name="j", groups=groups),)))  # type: ignore[arg-type]


def test_the_same_errors_as_from_a_file() -> None:
    running = Running(tasks=(RunningTask(group="g", index=0, node="m", gpus=(0,)),))
    built = Snapshot(
        nodes=(Node(name="n"), Node(name="n")),
        jobs=(Job(name="j", groups=leaf(Task(gpus=1)), running=running, requires=Requires(cuda="x")),),
        policy=Policy(objectives=()),
    )
    with pytest.raises(SnapshotError) as from_python:
        verified(built)
    with pytest.raises(SnapshotError) as from_file:
        loads(msgspec.json.encode(built))
    assert from_python.value.problems == from_file.value.problems
    assert from_python.value.total == 4


# --- events -----------------------------------------------------------------------------------------------------

ARRIVAL = {"type": "job_arrived", "time": 1, "job": {"name": "j", "groups": [{"name": "g", "task": {"gpus": 1}}]}}
ENDED = {"type": "job_ended", "time": 2, "job": "j", "outcome": "failed"}
FAILED = {"type": "node_failed", "time": 3, "node": "n"}
ARRIVED = "events[0].job.groups[0].topology"


def log(*events: object) -> io.BytesIO:
    return io.BytesIO(json.dumps({"format": "placement-events/1", "events": events}).encode())


def test_events() -> None:
    restored = {"type": "node_restored", "time": 4, "node": "n"}
    assert (
        len(load_events(log(ARRIVAL, ENDED, FAILED, restored, FAILED | {"type": "node_drained", "time": 4})).events)
        == 5
    )


def arrival(**topology: object) -> dict[str, object]:
    group = {"name": "g", "count": 2, "task": {"gpus": 1}, "topology": topology}
    return ARRIVAL | {"job": {"name": "j", "groups": [group]}}


def test_levels_in_events_are_those_of_another_file() -> None:
    spread = [{"level": "node", "max_per_domain": 1}]
    (event,) = load_events(log(arrival(required="rack", preferred="leaf", spread=spread))).events
    assert isinstance(event, JobArrived)
    assert event.job.groups[0].topology == Topology(
        required="rack", preferred="leaf", spread=(Spread(level="node", max_per_domain=1),)
    )


@pytest.mark.parametrize(
    ("events", "path", "phrase"),
    [
        ([ENDED, ARRIVAL], "events[1].time", "before the event above it"),
        ([FAILED | {"type": "node_fails"}], "events[0].type", 'did you mean "node_failed"?'),
        ([FAILED | {"node": ""}], "events[0].node", "empty"),
        ([FAILED | {"job": "j"}], "events[0].job", "no such field"),
        ([{"time": 1}], "events[0].type", "missing"),
        ([ENDED | {"outcome": "lost"}], "events[0].outcome", "expected one of"),
        ([ARRIVAL, ARRIVAL], "events[1].job.name", "arrived at events[0] already"),
        ([ARRIVAL | {"job": {"name": "j", "groups": []}}], "events[0].job.groups", "no task group"),
        ([arrival(slices=[{"level": "", "sizes": [2]}])], f"{ARRIVED}.slices[0].level", "empty"),
        ([arrival(spread=[{"level": "rack"}])], f"{ARRIVED}.spread[0]", "asks for nothing"),
        ([ARRIVAL | {"job": {**ARRIVAL["job"], "running": {"tasks": []}}}], "events[0].job.running", "arrives"),  # type: ignore[dict-item]
    ],
)
def test_wrong_events(events: list[object], path: str, phrase: str) -> None:
    with pytest.raises(SnapshotError) as caught:
        load_events(log(*events))
    assert [problem.path for problem in caught.value.problems] == [path]
    assert phrase in str(caught.value)


def test_a_snapshot_is_no_event_log() -> None:
    with pytest.raises(SnapshotError, match="this is a snapshot"):
        load_events(io.BytesIO(json.dumps(GOOD).encode()))


def test_the_search_for_problems_ends() -> None:
    # 300,000 indices of the same GPU: one problem each, of which the first are told
    zone = b'{"id": 0, "gpus": [0' + b",0" * 300_000 + b"]}"
    node = b'{"name": "n", "gpus": [{"model": "A"}], "zones": [' + zone + b"]}"
    with pytest.raises(SnapshotError) as raised:
        loads(b'{"format": "placement-snapshot/1", "nodes": [' + node + b"]}")
    assert len(raised.value.problems) == 50
    assert raised.value.total == 100_000


def test_text_is_read_as_bytes_are() -> None:
    assert loads(EVERY_FIELD.read_text("utf-8")) == loads(EVERY_FIELD.read_bytes())
    with pytest.raises(SnapshotError, match="found dict, expected bytes or text"):
        loads({})  # type: ignore[arg-type]
    with pytest.raises(SnapshotError, match="UTF-8"):
        loads("\ud800")


@pytest.mark.parametrize("opened", [False, True])
def test_a_small_file_sets_aside_little(tmp_path: Path, opened: bool) -> None:
    """The most that may be read is a gigabyte, which not every process has."""
    path = tmp_path / "small.json"
    path.write_bytes(dumps(small := Snapshot()))
    tracemalloc.start()
    try:
        if opened:
            with path.open("rb") as file:
                assert load(file) == small
        else:
            assert load(path) == small
        assert tracemalloc.get_traced_memory()[1] < 2**25
    finally:
        tracemalloc.stop()
