"""What runs now in planning over time: how far it is, what it keeps, in which NUMA zones it lies."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from msgspec.structs import replace
from policy_cases import job, node, running
from schedule_cases import Fickle, scheduled

import placement as pl
from placement.errors import SnapshotError
from placement.scheduling.baselines import BASELINES
from placement.scheduling.compile import compile_work
from placement.scheduling.work import Ongoing
from placement.snapshot import Duration, Gpu, Job, Nic, Node, NumaZone, Running, RunningTask, Snapshot, Task, TaskGroup
from placement.snapshot.read import verified


def snapshot(seconds: float, time: float = 1000.0, every: float | None = None, **more: Any) -> Snapshot:
    one = job("x", 1, seconds, checkpoint_interval=every, restart_seconds=5, preemptible=True)
    jobs = (running(one, "a", (0,), **more), job("y", 2, 10), job("z", 1, 10))
    return verified(Snapshot(time=time, nodes=(node("a", 2),), jobs=jobs))


def ongoing(given: Snapshot) -> Ongoing:
    return compile_work(given).ongoing[0]


@pytest.mark.parametrize(
    ("given", "since", "left", "done", "kept", "overrun"),
    [
        # nothing is known but that it runs: all is left
        (snapshot(100), 0, 100_000, 0, 0, None),
        # work done without a start: the last 20 of 70 are not saved
        (snapshot(100, every=50, work_done=70), 0, 30_000, Fraction(7, 10), Fraction(1, 2), None),
        # the start says how much is done where nothing else does, a checkpoint 30 ago kept 40 of 70
        (snapshot(100, since=930.0, last_checkpoint=970.0), -70_000, 30_000, Fraction(7, 10), Fraction(2, 5), None),
        # 90 in all, 20 of them since the checkpoint; when it was started is not said
        (snapshot(100, work_done=90, last_checkpoint=980.0), 0, 10_000, Fraction(9, 10), Fraction(7, 10), None),
        # all was done since the checkpoint, which is older than the work
        (snapshot(100, work_done=10, last_checkpoint=980.0), 0, 90_000, Fraction(1, 10), 0, None),
        # 130 of 100: 30 over, 60 are expected, so 30 more, 160 in all; without checkpoints 160 are done again,
        # which is 1 and 0.6 of the estimate
        (snapshot(100, work_done=130), 0, 30_000, Fraction(7, 10), -Fraction(6, 10), 30_000),
        # a checkpoint at 100: 60 are left
        (snapshot(100, every=50, work_done=130), 0, 30_000, Fraction(7, 10), Fraction(4, 10), 30_000),
        # the last one 40 ago, at 90: 70 are left
        (snapshot(100, work_done=130, last_checkpoint=960.0), 0, 30_000, Fraction(7, 10), Fraction(3, 10), 30_000),
        # 360,000 over is beyond all steps: as long again, which is 3600 times the estimate; 720,100 in all
        (snapshot(100, work_done=360_100), 0, 360_000_000, -3599, -7200, 360_000_000),
        # nothing to do, and it runs: nothing can be lost of it
        (snapshot(0), 0, 60_000, 1, 1, 0),
        (snapshot(0, since=900.0), -100_000, 200_000, 1, 1, 100_000),
    ],
)
def test_how_far_it_is(
    given: Snapshot, since: int, left: int, done: Fraction, kept: Fraction, overrun: int | None
) -> None:
    found = ongoing(given)
    assert (found.since, found.left, found.done, found.kept, found.overrun) == (since, left, done, kept, overrun)
    schedule = pl.schedule(given, solver="fifo-list")
    assert schedule.stretches.end[schedule.stretches.job.index("x")] == left / 1000
    for seed in range(6):
        assert pl.check(given, scheduled(given, Fickle(seed))) == []


def test_work_that_was_to_take_no_time_and_runs_is_not_stopped() -> None:
    """100 s after it was to be over it is expected to take 200 s more, and would be over at once if it was stopped."""
    given = snapshot(0, since=900.0)
    given = replace(given, jobs=(given.jobs[0], job("u", 2, 1, priority=1, weight=100)))
    for name in ("auto", *BASELINES):
        schedule = pl.schedule(given, solver=name)
        assert schedule.jobs.end[0] == 200.0, name


def test_a_checkpoint_that_is_overdue_has_not_been_written() -> None:
    """One of all 10 s, the last one 40 ago, at 30 of 70 s: a stop now loses all 40, and of 100 s 70 are left."""
    given = snapshot(100, every=10, work_done=70, last_checkpoint=960.0)
    urgent = job("u", 2, 1, priority=1, weight=100)
    given = replace(given, jobs=(given.jobs[0], urgent))
    # u is done at 1; x is restored for 5 s, and then works until 1 + 5 + 70
    schedule = pl.schedule(given)
    assert dict(zip(schedule.jobs.job, schedule.jobs.end, strict=True)) == {"x": 76.0, "u": 1.0}
    assert pl.check(given, schedule) == []


def test_a_checkpoint_before_the_start_is_refused() -> None:
    with pytest.raises(SnapshotError, match="last_checkpoint: found 900, which is before the job began"):
        snapshot(100, since=930.0, last_checkpoint=900.0)


def test_work_of_no_length_ends_at_once_when_it_is_started_again() -> None:
    class Restart:
        name, period = "restart", 0

        def decide(self, desk: Any) -> None:
            if desk.now == 0:
                desk.stop(0)
            for one in sorted(desk.waiting, reverse=True):
                desk.start(one)

    schedule = scheduled(snapshot(0), Restart())
    # z from 0 to 10 beside x, which is restored for 5 and has nothing left; then y
    columns = schedule.stretches
    assert sorted(zip(columns.job, columns.start, columns.end, columns.restart, strict=True)) == [
        ("x", 0, 5, 5),
        ("y", 10, 20, 0),
        ("z", 0, 10, 0),
    ]
    assert pl.check(snapshot(0), schedule) == []


# --- zones ---------------------------------------------------------------------------------------------------


def zoned(there: Task, waits: Task, **more: Any) -> Snapshot:
    """Return a node of two zones of 2 CPUs and 2 NICs, something that runs there for a minute, and two that wait."""
    zones = tuple(
        NumaZone(id=zone, cpu=2, gpus=(zone,), nics=(Nic(name=f"n{zone}0"), Nic(name=f"n{zone}1"))) for zone in (0, 1)
    )
    one = Node(name="a", cpu=4, gpus=(Gpu(model="A", count=2),), zones=zones)
    place = RunningTask(group="w", index=0, node="a", **more)
    runs = Job(
        name="runs",
        groups=(TaskGroup(name="w", count=1, task=there),),
        duration=Duration(seconds=60),
        running=Running(tasks=(place,)),
    )
    waiting = (
        Job(name=name, groups=(TaskGroup(name="w", count=1, task=waits),), duration=Duration(seconds=10))
        for name in ("y", "z")
    )
    return Snapshot(nodes=(one,), jobs=(runs, *waiting))


def starts(given: Snapshot) -> dict[str, float]:
    schedule = pl.schedule(given, solver="fifo-list")
    return dict(zip(schedule.stretches.job, schedule.stretches.start, strict=True)) | {"runs": 0.0}


BOUND = Task(cpu="1500m", numa="single-numa-node")


def test_unbound_work_is_in_the_zone_that_it_states() -> None:
    # 1 CPU of zone 0 is taken until 60, so 1.5 fit in zone 1 alone, though 3 CPUs are left in all
    assert starts(zoned(Task(cpu=1), BOUND, zone=0)) == {"runs": 0.0, "y": 0.0, "z": 10.0}
    # somewhere in the node it leaves room for both
    assert starts(zoned(Task(cpu=1), replace(BOUND, cpu=1), zone=0)) == {"runs": 0.0, "y": 0.0, "z": 0.0}


def test_bound_work_is_in_the_zone_that_it_states_where_it_has_no_cards() -> None:
    assert starts(zoned(replace(BOUND, cpu=1), BOUND, zone=1)) == {"runs": 0.0, "y": 0.0, "z": 10.0}


@pytest.mark.parametrize("solver", ["fifo-list", "easy-backfill", "auto"])
def test_bound_work_across_zones_where_nothing_else_is_takes_of_them_together(solver: str) -> None:
    # It has both cards, of zones 0 and 1, and so two of their NICs, until 60. Who waits asks for two of one zone, and
    # for more CPU than zone 2 has. Zone 1 alone has NICs, two: these are taken. With two in zone 0 as well two are left
    # for one who waits, and for the other when that has ended.
    wants = Task(cpu="1500m", nics=2, numa="single-numa-node")
    for first, started in (((), [60.0, 70.0]), (("n00", "n01"), [0.0, 10.0])):
        given = zoned(Task(gpus=2, nics=2, numa="single-numa-node"), wants, gpus=(0, 1))
        zones = (
            replace(given.nodes[0].zones[0], nics=tuple(Nic(name=name) for name in first)),
            given.nodes[0].zones[1],
            NumaZone(id=2, cpu=1, nics=(Nic(name="n20"), Nic(name="n21"))),
        )
        node = replace(given.nodes[0], cpu=5, zones=zones)
        schedule = pl.schedule(replace(given, nodes=(node,)), solver=solver)
        assert schedule.checked
        found = dict(zip(schedule.jobs.job, schedule.jobs.start, strict=True))
        assert sorted((found["y"], found["z"])) == started


def test_nics_by_name_are_in_the_zone_of_all_else_or_refused() -> None:
    wants = Task(nics=2, numa="single-numa-node")
    # one NIC of zone 1 is taken, two are left in zone 0
    assert starts(zoned(Task(cpu=1, nics=1), wants, zone=1, nics=("n10",))) == {"runs": 0.0, "y": 0.0, "z": 10.0}
    cases: list[dict[str, Any]] = [
        {"zone": 0, "nics": ("n10",)},
        {"nics": ("n10",)},
        {"zone": 0, "nics": ("n00", "n10")},
    ]
    for more in cases:
        with pytest.raises(SnapshotError, match=r"jobs\[0\].running.tasks\[0\].nics: runs on a holds NICs"):
            pl.schedule(zoned(Task(cpu=1, nics=len(more["nics"])), wants, **more), solver="fifo-list")
    # nobody who waits asks for NICs
    assert starts(zoned(Task(cpu=1, nics=1), BOUND, zone=0, nics=("n10",)))["z"] == 10.0
