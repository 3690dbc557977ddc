"""Jobs that take less time elsewhere than where a rule would place them first: in windows, and with hard deadlines.

A gang of 2 tasks of a card each runs 2 s within a node and 6 s across two. Best fit gives its first task to the node of
one card, so it lies across both wherever all is free.
"""

from __future__ import annotations

from msgspec.structs import replace

import placement as pl
from placement.snapshot import Duration, Queue, Reservation

NODES = (
    pl.Node(name="two", gpus=(pl.Gpu(model="A", count=2),)),
    pl.Node(name="one", gpus=(pl.Gpu(model="A", count=1),)),
)
GANG = pl.Job(
    name="gang",
    groups=(pl.TaskGroup(name="g", count=2, task=pl.Task(gpus=1)),),
    duration=Duration(seconds=2, levels={"cluster": 3}),
    queue="all",
)
QUEUES = (Queue(name="all", quota={"*": 3}),)
"""They never limit anything, but jobs are placed on devices for them."""


def test_a_gang_goes_before_a_window_where_it_runs_shorter() -> None:
    aside = Reservation(name="aside", nodes=("two", "one"), start=3, end=5)
    snapshot = pl.Snapshot(nodes=NODES, queues=QUEUES, jobs=(GANG,), reservations=(aside,))
    schedule = pl.schedule(snapshot)
    assert (schedule.stretches.start, schedule.stretches.end, schedule.status) == ([0], [2], "proven")
    assert pl.check(snapshot, schedule) == []


def test_a_gang_meets_its_hard_deadline_where_it_runs_shorter() -> None:
    hard = replace(GANG, deadline=4, hard_deadline=True)
    schedule = pl.schedule(pl.Snapshot(nodes=NODES, queues=QUEUES, jobs=(hard,)))
    assert schedule.left_out == []
    assert (schedule.stretches.end, schedule.status) == ([2], "proven")
    tight = pl.schedule(pl.Snapshot(nodes=NODES, queues=QUEUES, jobs=(replace(hard, deadline=1.999),)))
    assert [(job.job, job.reason) for job in tight.left_out] == [("gang", "late")]


def test_a_job_that_a_rule_cannot_place_in_time_is_in_its_way_no_longer_than_it_could_be_in_time() -> None:
    # the rule places it for 6 s, which is too long; from 2.001 s on 2 s would be too long, and the next one may start
    hard = replace(GANG, deadline=4, hard_deadline=True)
    then = pl.Job(
        name="then", groups=(pl.TaskGroup(name="g", task=pl.Task(gpus=1)),), duration=Duration(seconds=1), submit_time=1
    )
    schedule = pl.schedule(pl.Snapshot(nodes=NODES, queues=QUEUES, jobs=(hard, then)), solver="fifo")
    assert [(job.job, job.reason) for job in schedule.left_out] == [("gang", "late")]
    assert (schedule.stretches.job, schedule.stretches.start) == (["then"], [2.001])
