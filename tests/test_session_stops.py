"""Sessions that stop what runs: told to, or since a schedule that is started stops it."""

from __future__ import annotations

from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import placement as pl
from placement.session import Session
from placement.session.judged import unnamed
from placement.session.stopping import stopping
from placement.snapshot.events import JobArrived, JobEnded
from placement.snapshot.workload import Duration, Running, RunningTask

FLAT = {"cluster": 1.0}


def job(name: str, cards: int, seconds: float, **more: object) -> pl.Job:
    group = pl.TaskGroup(name="w", task=pl.Task(gpus=cards))
    return pl.Job(name=name, groups=(group,), duration=Duration(seconds=seconds, levels=FLAT), **more)  # type: ignore[arg-type]


def session_of(nodes: int, cards: int) -> Session:
    return Session(pl.Snapshot(nodes=(pl.Node(name="n", count=nodes, gpus=(pl.Gpu(model="A", count=cards),)),)))


def started(session: Session, one: pl.Job, time: float = 0.0) -> None:
    session.apply(JobArrived(time=time, job=one))
    session.start(session.decide(one.name))


def test_told_to_stop_a_job_keeps_what_was_saved() -> None:
    """100 s, saved every 30: after 70 s 60 are kept, and with 5 s of restoring 45 are left."""
    session = session_of(1, 4)
    started(session, job("x", 4, 100, checkpoint_interval=30.0, restart_seconds=5.0))
    session.apply(JobArrived(time=70.0, job=job("y", 1, 10)))
    assert not session.decide("y").starts
    session.stop("x")
    assert list(session.waiting) == ["y", "x"]
    assert session.waiting["x"].duration == Duration(seconds=45.0, levels=FLAT)
    session.start(session.decide("y"))
    assert list(session.running) == ["y"]
    with pytest.raises(pl.UsageError, match='no job "x" runs; it waits'):
        session.stop("x")
    with pytest.raises(pl.UsageError, match='no job "z" runs'):
        session.stop("z")


def test_a_schedule_stops_for_whom_it_starts() -> None:
    """All four cards run training of 1000 s, saved every 10 s; after 100 s an urgent job of 10 s, weight 9, needs four.

    To wait for the end of training costs 9 * 910 + 900; to stop it 9 * 10 + 10 + 5 + 900: it ends 15 s later.
    """
    session = session_of(1, 4)
    training = job("t", 4, 1000, preemptible=True, checkpoint_interval=10.0, restart_seconds=5.0)
    started(session, training)
    session.apply(JobArrived(time=100.0, job=job("u", 4, 10, weight=9, priority=1)))
    found = session.schedule()
    assert dict(zip(found.jobs.job, found.jobs.end, strict=True)) == {"t": 915.0, "u": 10.0}
    session.start(found)
    assert list(session.running) == ["u"]
    assert list(session.waiting) == ["t"]
    assert session.waiting["t"].duration == Duration(seconds=905.0, levels=FLAT)
    session.apply(JobEnded(time=110.0, job="u"))
    again = session.schedule()
    assert again.jobs.end == [905.0]
    session.start(again)
    running = session.running["t"].running
    assert running is not None
    assert (running.since, running.restarts) == (110.0, 1)


@pytest.mark.parametrize("given", [None, "u", pl.Snapshot()])
def test_what_is_no_plan_is_refused(given: object) -> None:
    with pytest.raises(pl.UsageError, match=f"plan: found {type(given).__name__}, expected a plan"):
        session_of(1, 4).start(given)  # type: ignore[arg-type]


def test_an_older_schedule_stops_nobody() -> None:
    session = session_of(1, 4)
    started(session, job("t", 4, 1000, preemptible=True, checkpoint_interval=10.0))
    session.apply(JobArrived(time=100.0, job=job("u", 4, 10, weight=9, priority=1)))
    found = session.schedule()
    session.apply(JobArrived(time=100.0, job=job("v", 1, 1)))
    before = session.snapshot()
    with pytest.raises(pl.UsageError, match="does not go with what runs now"):
        session.start(found)
    assert session.snapshot() == before


def test_where_what_starts_is_refused_nobody_is_stopped() -> None:
    session = session_of(1, 4)
    started(session, job("t", 4, 1000, preemptible=True, checkpoint_interval=10.0))
    session.apply(JobArrived(time=100.0, job=job("u", 4, 10, weight=9, priority=1)))
    found = session.schedule()
    place = found.stretches.job.index("u")
    found.tasks.gpus[found.tasks.stretch.index(place)] = [0, 1, 2, 2]
    before, waiting = session.snapshot(), session.waiting["u"]
    with pytest.raises(pl.UsageError):
        session.start(found)
    assert session.snapshot() == before
    assert session.waiting == {"u": waiting}
    session.start(session.schedule())
    assert list(session.running) == ["u"]


def full_of(*tasks: RunningTask, **more: object) -> tuple[Session, pl.Job]:
    """Return a session at 100 s of four cards with a job of 1000 s on some of them, and an urgent one of a card."""
    at = Running(tasks=tasks, **{"since": 0.0, **more})  # type: ignore[arg-type]
    one = job("t", len(tasks[0].gpus), 1000, preemptible=True, restart_seconds=0.0, running=at)
    nodes = (pl.Node(name="n", gpus=(pl.Gpu(model="A", count=4),)),)
    waits = job("u", 1, 10, weight=9, priority=1)
    return Session(pl.Snapshot(time=100.0, nodes=nodes, jobs=(one, waits))), one


def test_who_goes_on_does_so_though_its_cards_are_listed_in_another_order() -> None:
    session, one = full_of(RunningTask(group="w", index=0, node="n", gpus=(2, 0, 1)))
    session.start(session.schedule())
    assert session.running["t"] == one
    assert list(session.running) == ["t", "u"]


def test_another_slot_of_a_card_is_another_place() -> None:
    """A schedule in which an instance goes on at slot 4 of its card instead of 0 stops it there."""
    cards = (pl.Gpu(model="A100-SXM4-80GB", count=1, mig_enabled=True),)
    group = pl.TaskGroup(name="w", task=pl.Task(gpus=1, mig_profile="3g.40gb"))
    at = Running(tasks=(RunningTask(group="w", index=0, node="n", gpus=(0,), mig_starts=(0,)),), since=0.0)
    one = pl.Job(name="t", groups=(group,), duration=Duration(seconds=1000), preemptible=True, running=at)
    found = pl.schedule(pl.Snapshot(nodes=(pl.Node(name="n", gpus=cards),), jobs=(one,)))
    assert stopping(found, {"t": one}) == []
    found.tasks.mig_starts = [[4]]
    assert stopping(found, {"t": one}) == ["t"]


def test_a_job_that_was_saved_had_begun() -> None:
    """When it began is not said, but that it was saved at 60: then, at the latest; what it has done is not said."""
    session, _ = full_of(RunningTask(group="w", index=0, node="n", gpus=(0,)), since=None, last_checkpoint=60.0)
    found = session.snapshot().jobs[0].running
    assert found is not None
    assert (found.since, found.work_done, found.last_checkpoint) == (60.0, 0.0, 60.0)
    assert session.schedule().jobs.end == [1000.0, 10.0]
    session.apply(JobArrived(time=130.0, job=job("v", 4, 10)))
    session.stop("t")
    assert session.waiting["t"].duration == Duration(seconds=1000.0, levels=FLAT)


def test_what_ran_may_start_again_whatever_it_was_to_come_after() -> None:
    """By its entry t is yet to come, and after u; it runs all the same, and once it is stopped it may go on."""
    at = Running(tasks=(RunningTask(group="w", index=0, node="n", gpus=(0, 1, 2, 3)),), since=0.0)
    more = {"preemptible": True, "checkpoint_interval": 10.0, "after": ("v",), "submit_time": 500.0}
    training = job("t", 4, 1000, running=at, **more)
    nodes = (pl.Node(name="n", gpus=(pl.Gpu(model="A", count=4),)),)
    jobs = (training, job("u", 4, 10, weight=9, priority=1), job("v", 4, 5000))
    snapshot = pl.Snapshot(time=100.0, nodes=nodes, jobs=jobs)
    session = Session(snapshot)
    found = session.schedule()
    # u, then the other 900 s of t, then v
    assert found.jobs.end == [910.0, 10.0, 5910.0]
    assert found.status == "proven"
    session.start(found)
    assert list(session.running) == ["u"]
    session.apply(JobEnded(time=110.0, job="u"))
    assert session.decide("t").starts


@pytest.mark.parametrize(
    ("column", "wrong", "said"),
    [
        ("gpus", [0, 0], "does not go with what runs now"),
        ("node", "m", 'has a place of node "m", and there is none; the known ones are "n"'),
        ("group", "v", 'has a place of group "v", and there is none; the known ones are "w"'),
    ],
)
def test_where_a_schedule_is_of_another_cluster_all_stays_in_its_order(column: str, wrong: object, said: str) -> None:
    """Two of four jobs of a card each are to be stopped; they run on, and are listed as before."""
    more: dict[str, object] = {"preemptible": True, "checkpoint_interval": 1.0}
    places = [Running(tasks=(RunningTask(group="w", index=0, node="n", gpus=(at,)),), since=0.0) for at in range(4)]
    # those of 90 s have less to do, so the first two are stopped
    jobs = [job(f"r{at}", 1, (100, 90)[at > 1], weight=1 + at, running=one, **more) for at, one in enumerate(places)]
    nodes = (pl.Node(name="n", gpus=(pl.Gpu(model="A", count=4),)),)
    session = Session(pl.Snapshot(time=50.0, nodes=nodes, jobs=(*jobs, job("u", 2, 1, weight=50, priority=3))))
    found = session.schedule()
    assert stopping(found, session.running) == ["r0", "r1"]
    getattr(found.tasks, column)[found.tasks.stretch.index(found.stretches.job.index("u"))] = wrong
    before = session.digest()
    with pytest.raises(pl.UsageError, match=said):
        session.start(found)
    assert session.digest() == before
    session.start(session.schedule())
    assert list(session.running) == ["r2", "r3", "u"]


@pytest.mark.parametrize(("time", "again"), [(3.333, 3.334), (3.3333, 63.334), (3.334, 63.334)])
def test_a_job_is_past_its_estimate_by_whole_milliseconds(time: float, again: float) -> None:
    """3.3333 s are 3.334 s in a schedule, the last of which has begun then; from then on 60 s more are expected."""
    session = session_of(1, 4)
    started(session, job("x", 4, 3.3333, preemptible=True))
    session.apply(JobArrived(time=time, job=job("y", 4, 1, weight=50, priority=1)))
    expected = session.schedule()
    assert dict(zip(expected.jobs.job, expected.jobs.end, strict=True))["x"] in (0.001, round(1 + again, 3))
    session.stop("x")
    assert session.waiting["x"].duration == Duration(seconds=again, levels=FLAT)


def test_what_is_no_name_cannot_be_stopped() -> None:
    for name in (3, None, ["x"]):
        with pytest.raises(pl.UsageError, match="give the name of a job"):
            session_of(1, 1).stop(name)  # type: ignore[arg-type]


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10**6))
def test_every_schedule_of_the_present_can_be_started(seed: int) -> None:
    """Jobs of two priorities come to a full cluster; what runs after each schedule is what it says begins now."""
    rng = Random(seed)
    session, time = session_of(2, 2), 0.0
    for number in range(6):
        time += rng.randint(0, 40)
        over = [name for name in session.running if rng.random() < 0.2]
        session.apply([JobEnded(time=time, job=name) for name in over])
        kind = rng.randint(0, 1)
        one = job(
            f"j{number}",
            rng.randint(1, 2),
            rng.randint(5, 90),
            weight=1 + 8 * kind,
            priority=kind,
            preemptible=rng.random() < 0.7,
            checkpoint_interval=rng.choice((None, 10.0)),
            restart_seconds=rng.choice((None, 3.0)),
        )
        session.apply(JobArrived(time=time, job=one))
        found = session.schedule()
        assert pl.check(unnamed(session.snapshot()), found) == []
        session.start(found)
        spans = zip(found.stretches.job, found.stretches.start, found.stretches.end, strict=True)
        assert set(session.running) == {name for name, start, end in spans if start == 0 < end}
        for name, waits in session.waiting.items():
            assert waits.running is None, name
    assert msgspec.json.encode(session.snapshot())
