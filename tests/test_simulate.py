"""Simulations: equal to schedules where all goes as estimated, and failures by hand where it does not."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from cli_cases import placement, refused
from hypothesis import given, settings
from hypothesis import strategies as st

import placement as pl
from placement.report.simulation import picture
from placement.scheduling.baselines import BASELINES
from placement.scheduling.desk import Desk
from placement.scheduling.rolling import Rolling
from placement.simulation import Samples
from placement.snapshot.cluster import Reservation
from placement.snapshot.events import Event, EventLog, JobArrived, JobEnded, NodeDrained, NodeFailed, NodeRestored
from placement.snapshot.queues import Queue
from placement.snapshot.workload import Duration

CARDS = (pl.Gpu(model="A", count=4),)


def _job(name: str, gpus: int, seconds: float, at: float = 0.0, tasks: int = 1, **fields: object) -> pl.Job:
    group = pl.TaskGroup(name="w", count=tasks, task=pl.Task(gpus=gpus))
    job = pl.Job(name=name, groups=(group,), duration=Duration(seconds=seconds, levels={"node": 1.0}), submit_time=at)
    return msgspec.structs.replace(job, **fields)


def _snapshot(nodes: int, *jobs: pl.Job) -> pl.Snapshot:
    return pl.Snapshot(nodes=tuple(pl.Node(name=f"n{i}", gpus=CARDS) for i in range(nodes)), jobs=jobs)


def _ends(found: pl.Simulation) -> dict[str, float]:
    return dict(zip(found.jobs.job, found.jobs.end, strict=True))


JOBS = st.lists(
    st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 30), st.integers(0, 40)), min_size=1, max_size=8
)


@settings(max_examples=20, deadline=None)
@given(JOBS, st.sampled_from(sorted(BASELINES)))
def test_it_is_the_schedule_where_jobs_run_as_estimated(drawn: list[tuple[int, int, int, int]], policy: str) -> None:
    jobs = [_job(f"j{i}", g, float(s), float(at), t) for i, (g, t, s, at) in enumerate(drawn)]
    snapshot = _snapshot(3, *jobs)
    found, expected = pl.simulate(snapshot, policy), pl.schedule(snapshot, solver=policy)
    assert found.jobs == expected.jobs
    assert found.figures == expected.figures
    assert found.unfinished == [one.job for one in expected.left_out]
    # jobs that arrive by events come as those do that the snapshot states
    log: list[Event] = [JobArrived(time=job.submit_time or 0.0, job=job) for job in jobs]
    again = pl.simulate(_snapshot(3), policy, events=sorted(log, key=lambda one: one.time))
    assert _ends(again).keys() == _ends(found).keys()


def test_true_run_times_are_seen_by_nobody_before_a_job_ends() -> None:
    # one node of 4. Shortest first goes by estimates: a (20 s), then b (30 s); a takes 3 times as long, b a tenth.
    snapshot = _snapshot(1, _job("b", 4, 30.0), _job("a", 4, 20.0))
    found = pl.simulate(snapshot, "shortest-job-first", actual={"a": 3.0, "b": 0.1})
    assert _ends(found) == {"b": 63.0, "a": 60.0}
    assert found.jobs.run == [3.0, 60.0]
    assert found.figures.utilisation == 1.0


def test_a_failure_costs_what_was_not_saved_and_restoring() -> None:
    # x runs on n0 from 0, y on n1 for 50 s as it turns out, z there from 50 to 60. n0 fails at 70: of 70 s of work 60
    # are saved, so x is restored for 5 s on n1 and works 40 s there, until 115.
    x = _job("x", 4, 100.0, checkpoint_interval=30.0, restart_seconds=5.0)
    snapshot = _snapshot(2, x, _job("y", 4, 100.0), _job("z", 4, 10.0, 1.0))
    log: list[Event] = [NodeFailed(time=70.0, node="n0"), NodeRestored(time=200.0, node="n0")]
    found = pl.simulate(snapshot, "fifo", events=log, actual={"y": 0.5})
    assert _ends(found) == {"x": 115.0, "y": 50.0, "z": 60.0}
    assert found.jobs.restart == [15.0, 0.0, 0.0]
    assert found.jobs.queued == [0.0, 0.0, 49.0]
    assert (found.failures, found.figures.preemptions) == (1, 1)
    # 4 cards for 70 + 45 + 50 + 10 of 115 s, of 8
    assert found.figures.utilisation == pytest.approx(4 * 175 / (8 * 115), abs=1e-15)


def test_a_gang_on_a_failed_node_is_stopped_as_a_whole_and_waits_for_the_node() -> None:
    log: list[Event] = [NodeFailed(time=10.0, node="n1"), NodeRestored(time=25.0, node="n1")]
    found = pl.simulate(_snapshot(2, _job("x", 4, 20.0, tasks=2)), "fifo", events=log)
    # 10 s are lost, then 15 s of waiting, then all of it
    assert _ends(found) == {"x": 45.0}
    assert (found.jobs.queued, found.jobs.restart, found.jobs.run) == ([15.0], [10.0], [20.0])


def test_nothing_is_placed_on_a_node_that_is_drained() -> None:
    log: list[Event] = [NodeDrained(time=1.0, node="n0"), NodeRestored(time=30.0, node="n0")]
    found = pl.simulate(_snapshot(1, _job("x", 2, 20.0), _job("y", 2, 5.0, 2.0)), "fifo", events=log)
    assert _ends(found) == {"x": 20.0, "y": 35.0}
    lost = pl.simulate(_snapshot(1, _job("x", 2, 20.0), _job("y", 2, 5.0, 2.0)), "fifo", events=log[:1])
    assert _ends(lost) == {"x": 20.0}
    assert lost.unfinished == ["y"]


def test_a_job_that_is_cancelled_gives_its_cards_back() -> None:
    snapshot = _snapshot(1, _job("x", 4, 20.0), _job("y", 4, 5.0, 1.0), _job("z", 4, 5.0, 2.0))
    log: list[Event] = [JobEnded(time=8.0, job="x"), JobEnded(time=9.0, job="z", outcome="cancelled")]
    found = pl.simulate(snapshot, "fifo", events=log)
    assert _ends(found) == {"x": 8.0, "y": 13.0}
    assert found.unfinished == ["z"]


def test_samples_count_idle_cards_and_where_they_are() -> None:
    snapshot = _snapshot(3, _job("x", 3, 10.0), _job("y", 2, 20.0), _job("z", 4, 5.0, 2.0))
    seen = pl.simulate(snapshot, "fifo", sample=1.0).samples
    # at 0: 3 and 2 cards of two nodes; at 2 the third is full until 7; x ends at 10; y at 20
    assert seen.time == [0.0, 2.0, 7.0, 10.0, 20.0]
    assert seen.used == [5.0, 9.0, 5.0, 2.0, 0.0]
    assert seen.scattered == [3.0, 3.0, 3.0, 2.0, 0.0]
    assert seen.largest == [4, 0, 4, 8, 12]
    assert (seen.running, seen.waiting) == ([2, 3, 2, 1, 0], [0, 0, 0, 0, 0])


def test_a_rolling_plan_holds_jobs_back_until_it_is_asked_again() -> None:
    asked = []

    def plan(desk: Desk, seconds: float | None) -> list[tuple[int, int]]:
        asked.append((desk.now, seconds, sorted(desk.waiting)))
        return [(job, desk.now) for job in ([1] if desk.now == 0 else sorted(desk.waiting))]

    # at 0 job 0 (x) is held back; at 10 s it is listed; z came in between and starts at once
    snapshot = _snapshot(1, _job("x", 1, 5.0), _job("y", 1, 30.0), _job("z", 1, 5.0, 3.0))
    found = pl.simulate(snapshot, Rolling(plan, period=10_000, time_limit=0.5))
    assert asked == [(0, 0.5, [0, 1]), (10_000, 0.5, [0])]
    assert _ends(found) == {"x": 15.0, "y": 30.0, "z": 8.0}


@pytest.mark.parametrize("event", [NodeFailed(time=2.0, node="n1"), NodeDrained(time=2.0, node="n1")])
def test_a_reservation_on_a_node_that_is_lost_is_made_anew(event: Event) -> None:
    # n1 is kept free from 1 to 5, so z has both nodes reserved from 5 on; without n1 it waits until that is back at 9
    aside = (Reservation(name="w", nodes=("n1",), start=1.0, end=5.0),)
    snapshot = msgspec.structs.replace(_snapshot(2, _job("z", 4, 10.0, 1.0, tasks=2)), reservations=aside)
    log: list[Event] = [event, NodeRestored(time=9.0, node="n1")]
    assert pl.simulate(snapshot, "conservative-backfill").jobs.start == [5.0]
    assert pl.simulate(snapshot, "conservative-backfill", events=log).jobs.start == [9.0]


def test_a_job_may_be_cancelled_while_it_is_restored() -> None:
    # x loses 3 s at 3, and is restored on n1 from 3 until 8, but taken away at 5
    log: list[Event] = [NodeFailed(time=3.0, node="n0"), JobEnded(time=5.0, job="x", outcome="cancelled")]
    found = pl.simulate(_snapshot(2, _job("x", 4, 9.0, restart_seconds=5.0)), "fifo", events=log).jobs
    assert (found.end, found.queued, found.run, found.restart) == ([5.0], [0.0], [0.0], [5.0])


def test_a_job_that_a_failure_made_late_has_not_ended() -> None:
    # x would have ended at 5, loses 3 s at 3, and from 4 on would end at 9, after 6; the card is held for 3 of 3 s
    log: list[Event] = [NodeFailed(time=3.0, node="n0"), NodeRestored(time=4.0, node="n0")]
    found = pl.simulate(_snapshot(1, _job("x", 4, 5.0, deadline=6.0, hard_deadline=True)), "fifo", events=log)
    assert (found.unfinished, len(found.jobs)) == (["x"], 0)
    assert (found.figures.makespan, found.figures.utilisation) == (3.0, 1.0)


def test_a_job_that_its_quota_never_admits_has_not_ended() -> None:
    snapshot = _snapshot(1, _job("x", 1, 5.0, queue="q"), _job("y", 1, 5.0))
    found = pl.simulate(msgspec.structs.replace(snapshot, queues=(Queue(name="q", quota={"*": 0}),)))
    assert (found.unfinished, found.jobs.job) == (["x"], ["y"])


@pytest.mark.parametrize("event", [NodeFailed(time=3.0, node="n0"), JobEnded(time=3.0, job="x")])
def test_work_without_an_end_holds_its_cards_until_it_is_gone(event: Event) -> None:
    task = pl.RunningTask(group="w", index=0, node="n0", gpus=(0, 1, 2, 3))
    x = _job("x", 4, 1.0, duration=None, submit_time=None, running=pl.Running(tasks=(task,)))
    # x has 4 cards until 3, and y 4 from 4 to 9, of 4 for 9 s; or y from 3 to 8, of 4 for 8 s
    log = [event, NodeRestored(time=4.0, node="n0")]
    found = pl.simulate(_snapshot(1, x, _job("y", 4, 5.0)), "fifo", events=log)
    end = 9.0 if isinstance(event, NodeFailed) else 8.0
    assert _ends(found) == {"y": end}
    assert (found.figures.makespan, found.figures.utilisation) == (end, 8 / end)


@pytest.mark.parametrize("policy", ["fifo", "rolling"])
def test_it_ends_though_a_job_can_never_start_again(policy: str) -> None:
    log: list[Event] = [NodeFailed(time=5.0, node="n0")]
    found = pl.simulate(_snapshot(1, _job("x", 1, 10.0)), policy, events=log)
    assert (found.unfinished, len(found.jobs)) == (["x"], 0)


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({"policy": "fif"}, "policy: 'fif' is unknown"),
        ({"events": [NodeFailed(time=1.0, node="n9")]}, 'events[0].node: there is no node "n9"'),
        ({"events": [JobEnded(time=1.0, job="q")]}, 'events[0].job: there is no job "q"'),
        ({"events": [NodeFailed(time=-1.0, node="n0")]}, "events[0].time"),
        ({"actual": {"q": 1.0}}, 'actual["q"]: there is no such job'),
        ({"actual": {"x": -1.0}}, 'actual["x"]: found -1.0'),
        ({"sample": 0.0}, "sample: is 0.0"),
    ],
)
def test_wrong_arguments_have_one_clear_message(given_: dict[str, object], message: str) -> None:
    with pytest.raises(pl.InputError) as raised:
        pl.simulate(_snapshot(1, _job("x", 1, 1.0)), **given_)  # type: ignore[arg-type]
    assert message in str(raised.value)


def test_the_command_compares_policies(tmp_path: Path) -> None:
    snapshot, events, actual = tmp_path / "s.json", tmp_path / "e.json", tmp_path / "a.json"
    snapshot.write_bytes(pl.dumps(_snapshot(1, _job("x", 4, 1000.0), _job("y", 4, 10.0))))
    events.write_bytes(msgspec.json.encode(EventLog(events=(NodeDrained(time=0.0, node="n0"),))))
    actual.write_text('{"x": 2}')
    result = placement("simulate", str(snapshot), "--policy", "fifo,smith-area", "--actual", str(actual))
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    # x, y: 2000 and 2010; y, x: 10 and 2010
    assert lines[2].split() == ["fifo", "2", "2,005", "2,000", "2,010", "2,010", "1,000", "0", "101.00"]
    assert lines[3].split() == ["smith-area", "2", "1,010", "10", "2,010", "2,010", "5", "0", "1.00"]
    assert max(map(len, lines)) <= 80
    result = placement("simulate", str(snapshot), str(events), "--format", "json")
    found = msgspec.json.decode(result.stdout_bytes, type=list[pl.Simulation])
    assert [(one.policy, one.unfinished) for one in found] == [("fifo", ["x", "y"])]
    refused(placement("simulate", snapshot, "--policy", "lifo"), "--policy", "'lifo' is unknown")
    refused(placement("simulate", snapshot, "--sample", "-1"), "--sample: is -1.0")
    actual.write_text('{"x": "long"}')
    refused(placement("simulate", snapshot, "--actual", actual), "--actual", "Expected `float`")


def test_the_picture_shows_the_most_of_each_part_of_the_time() -> None:
    samples = Samples(
        time=[0.0, 10.0, 30.0, 40.0],
        used=[8.0, 4.0, 1.0, 0.0],
        idle=[0.0, 4.0, 7.0, 8.0],
        scattered=[0.0] * 4,
        largest=[0] * 4,
        running=[1] * 4,
        waiting=[0, 2, 1, 0],
    )
    # four columns of 10 s beside the labels; the last sample is in the last one
    assert picture(samples, 29) == [
        "cards in use, of 8:      █▄▄▁",
        "jobs that wait, up to 2:  ██▄",
    ]


@pytest.mark.parametrize("policy", ["fifo", "rolling"])
def test_a_century_beside_milliseconds(policy: str) -> None:
    # a holds the only cards for 10^10 s, b waits for all of that; 33 million periods are not gone through one by one
    snapshot = _snapshot(1, _job("a", 4, 1e10), _job("b", 4, 0.001, at=1.0))
    assert _ends(pl.simulate(snapshot, policy, sample=1e9)) == {"a": 1e10, "b": 1e10 + 0.001}


def test_a_job_that_its_quota_never_lets_start_is_not_forgotten() -> None:
    snapshot = msgspec.structs.replace(
        _snapshot(1, _job("a", 1, 1.0), _job("b", 3, 1.0, queue="q")), queues=(Queue(name="q", quota={"A": 2}),)
    )
    found = pl.simulate(snapshot)
    assert (_ends(found), found.unfinished) == ({"a": 1.0}, ["b"])


@pytest.mark.parametrize("sample", [0.0, -1.0, float("nan"), float("inf"), 1e300])
def test_no_time_between_samples(sample: float) -> None:
    with pytest.raises(pl.UsageError, match="give seconds above 0"):
        pl.simulate(_snapshot(1), sample=sample)


def test_a_factor_that_is_too_large() -> None:
    with pytest.raises(pl.UsageError, match="expected a number above 0, at most 1,000,000"):
        pl.simulate(_snapshot(1, _job("a", 1, 1.0)), actual={"a": 1e300})


def test_a_wrong_job_that_arrives_is_named_by_its_event() -> None:
    log = NodeDrained(time=1.0, node="n0"), JobArrived(time=2.0, job=_job("x", 1, 1.0, after=("z",)))
    with pytest.raises(pl.SnapshotError, match=r"^events\[1\]\.job\.after\[0\]: there is no job"):
        pl.simulate(_snapshot(1, _job("a", 1, 1.0)), events=log)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--policy", "fifo,fifo"], "--policy: 'fifo' is named twice; name each policy once"),
        (["-o", "-", "--format", "json"], "--format: -o - writes the result there already; leave one of the two out"),
        (["--actual", "twice.json"], '--actual: twice.json: "wide" is listed twice; keep it once'),
    ],
)
def test_what_cannot_both_be_meant(options: list[str], message: str, in_tmp: Path) -> None:
    Path("twice.json").write_text('{"wide": 1, "wide": 2}')
    result = placement("simulate", "time-hold-back", *options)
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", f"error: {message}\n")


def test_a_job_does_not_end_before_it_arrives() -> None:
    log: list[Event] = [JobEnded(time=1.0, job="late-1"), JobArrived(time=2.0, job=_job("late", 1, 5.0, count=2))]
    with pytest.raises(pl.SnapshotError, match=r'events\[0\]\.job: "late-1" ends before it arrives \(events\[1\]\)'):
        pl.simulate(_snapshot(1), "fifo", events=log)
    assert pl.simulate(_snapshot(1), "fifo", events=[log[1], JobEnded(time=3.0, job="late-1")]).jobs.job


def test_what_comes_after_a_job_that_is_taken_away_may_start() -> None:
    # y waits for x until it is taken away at 2, later never comes; z after both starts when x ends, w at once
    jobs = (
        _job("x", 4, 10.0),
        _job("y", 4, 10.0),
        _job("later", 1, 10.0, 50.0),
        _job("z", 4, 10.0, after=("y", "later")),
        _job("w", 4, 5.0, after=("x", "y")),
    )
    log: list[Event] = [JobEnded(time=float(time), job=name) for time, name in ((2, "y"), (3, "later"), (4, "y"))]
    found = pl.simulate(_snapshot(1, *jobs), "fifo", events=log)
    assert _ends(found) == {"x": 10.0, "z": 20.0, "w": 25.0}
    assert sorted(found.unfinished) == ["later", "y"]


def test_a_job_that_is_taken_away_while_it_waits_again_has_not_ended() -> None:
    log: list[Event] = [NodeFailed(time=2.0, node="n0"), JobEnded(time=6.0, job="x", outcome="cancelled")]
    found = pl.simulate(_snapshot(1, _job("x", 4, 10.0)), "fifo", events=log)
    assert (found.unfinished, len(found.jobs)) == (["x"], 0)
    assert found.figures.makespan == 2.0


def test_a_job_may_arrive_before_it_may_start() -> None:
    log: list[Event] = [JobArrived(time=1.0, job=_job("x", 1, 5.0, 8.0)), JobArrived(time=2.0, job=_job("y", 1, 5.0))]
    assert _ends(pl.simulate(_snapshot(1), "fifo", events=log)) == {"x": 13.0, "y": 7.0}
