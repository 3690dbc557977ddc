"""Equal parts of what was read are one object, and nobody can tell but by memory and time."""

from __future__ import annotations

import json
import math

import pytest

from placement.errors import SnapshotError
from placement.honoured import refuse_unhonoured
from placement.snapshot import Duration, Gpu, Job, Node, Queue, Snapshot, Task, TaskGroup
from placement.snapshot.read import dumps, loads, verified


def job(name: str, cpu: int | float) -> Job:
    return Job(name=name, groups=(TaskGroup(name="g", task=Task(cpu=cpu)),))


def built() -> Snapshot:
    nodes = tuple(Node(name=f"n{i}", gpus=(Gpu(model="A", count=1 + i % 2),)) for i in range(4))
    return Snapshot(nodes=nodes, jobs=(job("a", 1), job("b", 2), job("c", 1), job("d", 1.0)))


@pytest.mark.parametrize("how", [lambda s: loads(dumps(s)), verified], ids=["read", "verified"])
def test_equal_gangs_and_cards_are_one_object(how: object) -> None:
    own = built()
    snapshot = how(own)  # type: ignore[operator]
    a, b, c, d = snapshot.jobs
    assert a.groups is c.groups
    assert b.groups is not a.groups
    # 1 and 1.0 are equal to Python, but one is written without a fraction and has to stay so
    assert d.groups is not a.groups
    assert snapshot.nodes[0].gpus is snapshot.nodes[2].gpus
    assert snapshot.nodes[0].gpus is not snapshot.nodes[1].gpus
    assert snapshot == own
    assert dumps(snapshot) == dumps(own)
    assert own.jobs[0].groups is not own.jobs[2].groups, "what the caller built is not touched"


def test_a_mistake_that_jobs_share_is_said_of_each() -> None:
    group = {"name": "g", "task": {"cpu": "-1"}}
    right = {"name": "g", "task": {"cpu": 1}}
    jobs = [{"name": f"j{i}", "groups": [group if i % 2 else right]} for i in range(4)]
    with pytest.raises(SnapshotError) as caught:
        loads(json.dumps({"format": "placement-snapshot/1", "jobs": jobs}).encode())
    assert [p.path for p in caught.value.problems] == [f"jobs[{i}].groups[0].task.cpu" for i in (1, 3)]


def test_a_mistake_in_what_few_jobs_have_is_found_behind_a_gang_that_is_right() -> None:
    group = TaskGroup(name="g", task=Task(cpu=1))
    more: list[dict[str, object]] = [{}, {"weight": -1}, {"submit_time": math.inf}, {}, {"value": -1}, {"queue": "no"}]
    jobs = tuple(Job(name=f"j{i}", groups=(group,), **extra) for i, extra in enumerate(more))  # type: ignore[arg-type]
    with pytest.raises(SnapshotError) as caught:
        verified(Snapshot(jobs=jobs, queues=(Queue(name="yes"),)))
    found = [p.path for p in caught.value.problems]
    assert found == ["jobs[1].weight", "jobs[2].submit_time", "jobs[4].value", "jobs[5].queue"]


def test_what_is_left_out_leaves_shared_parts_shared() -> None:
    more = {"queue": "q", "duration": {"seconds": 10, "scaling": [[1, 1.0], [2, 1.5]]}}
    jobs = [{"name": f"j{i}", "groups": [{"name": "g", "task": {"gpus": 1}}], **more} for i in range(3)]
    snapshot = loads(json.dumps({"format": "placement-snapshot/1", "jobs": jobs}).encode())
    left = refuse_unhonoured(snapshot, ["jobs.queue", "jobs.duration.scaling"])
    group = TaskGroup(name="g", task=Task(gpus=1))
    assert left.jobs == tuple(Job(name=f"j{i}", groups=(group,), duration=Duration(seconds=10)) for i in range(3))
    assert len({id(job.groups) for job in left.jobs}) == 1
    assert left.jobs[0].groups is snapshot.jobs[0].groups
    assert all(job.queue == "q" for job in snapshot.jobs), "what was read is not touched"


def test_a_number_beyond_all_formats_is_an_error_of_the_snapshot() -> None:
    for number in (-(2**63) - 1, 2**64, 10**300):
        text = '{"format": "placement-snapshot/1", "nodes": [{"name": "n", "gpus": [{"model": "A", "count": %d}]}]}'
        with pytest.raises(SnapshotError, match="count"):
            loads((text % number).encode())
