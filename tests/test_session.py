"""Sessions: events, decisions, failures by hand, and random ones whose every state is valid."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import placement as pl
from placement.session import Session
from placement.session.judged import places_of, plan_for, unnamed
from placement.snapshot import MigInstance, Nic, NumaZone
from placement.snapshot.events import Event, EventLog, JobArrived, JobEnded, NodeDrained, NodeFailed, NodeRestored
from placement.snapshot.workload import Duration, Running, RunningTask, Topology

CARDS = (pl.Gpu(model="A", count=4),)


def _node(name: str, rack: str = "r0", **fields: object) -> pl.Node:
    return msgspec.convert(
        {"name": name, "position": {"rack": rack}, "gpus": [{"model": "A", "count": 4}], **fields}, pl.Node
    )


def _job(name: str, gpus: int = 1, tasks: int = 1, rack: bool = False, **fields: object) -> pl.Job:
    group = pl.TaskGroup(
        name="w", count=tasks, task=pl.Task(gpus=gpus), topology=Topology(required="rack") if rack else None
    )
    return msgspec.structs.replace(pl.Job(name=name, groups=(group,)), **fields)


def _session(*nodes: pl.Node, jobs: tuple[pl.Job, ...] = (), **fields: object) -> Session:
    snapshot = pl.Snapshot(topology=("rack",), nodes=nodes, jobs=jobs)
    return Session(msgspec.structs.replace(snapshot, **fields))


def _start(session: Session, job: pl.Job, time: float = 0.0) -> list[str]:
    """Let a job arrive and start; return its nodes."""
    session.apply(JobArrived(time=time, job=job))
    decision = session.decide(job.name)
    assert decision.starts
    session.start(decision)
    return decision.tasks.node


def test_a_job_is_placed_by_best_fit_and_its_cards_come_free_when_it_ends() -> None:
    session = _session(_node("a"), _node("b"))
    # 3 of 4 cards of a; then a single one fills a, and four go to b
    assert _start(session, _job("x", 3)) == ["a"]
    assert _start(session, _job("y", 1)) == ["a"]
    assert _start(session, _job("z", 4)) == ["b"]
    session.apply(JobArrived(time=1.0, job=_job("w", 2)))
    waits = session.decide("w")
    assert (waits.starts, waits.reason) == (False, "nothing that it could use is free now")
    session.apply(JobEnded(time=2.0, job="x"))
    assert session.decide("w").tasks.node == ["a"]
    assert list(session.running) == ["y", "z"]
    assert list(session.waiting) == ["w"]


def test_deciding_takes_nothing_and_a_decision_of_an_earlier_state_is_judged_again() -> None:
    session = _session(_node("a"))
    session.apply([JobArrived(time=0.0, job=_job("x", 4)), JobArrived(time=0.0, job=_job("y", 4))])
    first, second = session.decide("x"), session.decide("y")
    assert first.starts
    assert second.starts
    session.start(first)
    with pytest.raises(pl.UsageError, match="does not go with what runs now"):
        session.start(second)
    assert list(session.running) == ["x"]


def test_a_gang_stays_within_a_rack_beside_what_runs() -> None:
    session = _session(_node("a", "r0"), _node("b", "r0"), _node("c", "r1"), _node("d", "r1"))
    assert _start(session, _job("x", 1)) == ["a"]
    assert _start(session, _job("y", 4, 2, rack=True)) == ["c", "d"]
    session.apply(JobArrived(time=1.0, job=_job("z", 4, 2, rack=True)))
    assert not session.decide("z").starts
    session.apply(JobEnded(time=2.0, job="x"))
    assert session.decide("z").tasks.node == ["a", "b"]


def test_a_failed_node_stops_its_jobs_which_keep_what_was_saved() -> None:
    # 100 s of work, saved every 30 s. It fails after 70 s: 60 s are kept, so 40 s and 5 s of restoring are left.
    job = _job("x", 4, duration=Duration(seconds=100.0), checkpoint_interval=30.0, restart_seconds=5.0)
    session = _session(_node("a"), _node("b"), jobs=(job,))
    session.start(session.decide("x"))
    session.apply(NodeFailed(time=70.0, node="a"))
    waits = session.waiting["x"]
    assert waits.duration is not None
    assert waits.duration.seconds == 45.0
    decision = session.decide("x")
    assert decision.tasks.node == ["b"]
    session.start(decision)
    running = session.running["x"].running
    assert running is not None
    assert (running.since, running.restarts) == (70.0, 1)
    # it fails again after 39 s, 5 of restoring and 34 of work, of which 30 are kept: 10 are left, and 5 again
    session.apply(NodeFailed(time=109.0, node="b"))
    assert session.waiting["x"].duration == Duration(seconds=15.0)
    assert not session.decide("x").starts
    session.apply(NodeRestored(time=110.0, node="a"))
    assert session.decide("x").tasks.node == ["a"]


def test_without_checkpoints_all_work_is_lost_also_that_of_before() -> None:
    running = Running(tasks=(RunningTask(group="w", index=0, node="a", gpus=(0,)),), work_done=50.0, restarts=2)
    lost = _job("x", 1, duration=Duration(seconds=80.0), running=running)
    saved = msgspec.structs.replace(running, tasks=(RunningTask(group="w", index=0, node="a", gpus=(1,)),))
    kept = _job("y", 1, duration=Duration(seconds=80.0), checkpoint_interval=20.0, running=saved)
    session = _session(_node("a"), jobs=(lost, kept), time=1000.0)
    state = session.snapshot()
    assert [job.running.work_done for job in state.jobs if job.running] == [50.0, 50.0]
    session.apply(NodeFailed(time=1015.0, node="a"))
    # 65 s are done: none is kept of x, 60 of y
    assert session.waiting["x"].duration == Duration(seconds=80.0)
    assert session.waiting["y"].duration == Duration(seconds=20.0)


def test_a_drained_node_keeps_its_jobs_and_takes_no_others() -> None:
    session = _session(_node("a"), _node("b", cordoned=True))
    _start(session, _job("x", 1))
    session.apply([NodeDrained(time=1.0, node="a"), JobArrived(time=1.0, job=_job("y", 1))])
    assert list(session.running) == ["x"]
    assert not session.decide("y").starts
    session.apply(JobEnded(time=2.0, job="x"))
    assert not session.decide("y").starts
    session.apply(NodeRestored(time=3.0, node="b"))
    assert session.decide("y").tasks.node == ["b"]
    session.apply(NodeRestored(time=3.0, node="a"))
    assert session.decide("y").tasks.node == ["a"]


def test_a_job_waits_for_those_it_comes_after() -> None:
    session = _session(_node("a"))
    _start(session, _job("x", 1))
    session.apply(JobArrived(time=0.0, job=_job("y", 1, after=("x",))))
    assert session.decide("y").reason == "it comes after x, which has not ended"
    assert len(session.solve(solver="first-fit").tasks) == 0
    session.apply(JobEnded(time=1.0, job="x"))
    assert session.decide("y").starts


def test_solving_keeps_what_runs_and_its_plan_can_be_started() -> None:
    session = _session(_node("a"), _node("b"))
    _start(session, _job("x", 1))
    before = session.running["x"]
    session.apply([JobArrived(time=1.0, job=_job("y", 4)), JobArrived(time=1.0, job=_job("z", 3))])
    plan = session.solve()
    assert plan.status == "proven"
    session.start(plan)
    assert session.running["x"] is before
    assert sorted(session.running) == ["x", "y", "z"]
    assert pl.check(session.snapshot(in_time=False), session.solve()) == []


def test_instances_that_nobody_uses_make_room() -> None:
    # the 1g at 1 is idle and goes for the 4g; that at 6 of the second card goes for nobody
    layout = (MigInstance(profile="1g.5gb", start=1), MigInstance(profile="1g.5gb", start=6))
    card = pl.Gpu(model="A100-40GB", mig_enabled=True, mig_layout=layout)
    session = _session(pl.Node(name="n", gpus=(card, card)))
    for name, profile in (("a", "1g.5gb"), ("b", "4g.20gb"), ("c", "4g.20gb"), ("d", "3g.20gb"), ("e", "7g.40gb")):
        task = pl.Task(gpus=1, mig_profile=profile)
        session.apply(JobArrived(time=1, job=pl.Job(name=name, groups=(pl.TaskGroup(name="g", task=task),))))
        decision = session.decide(name)
        assert decision.starts == (name != "e")
        if decision.starts:
            session.start(decision)
    assert session.solve().value == 0


def test_limits_count_what_is_elsewhere_in_the_domain() -> None:
    limit = pl.DomainLimit(level="rack", domain="r0", gpus=4)
    session = _session(_node("a"), _node("b"), _node("c", "r1"), limits=(limit,))
    _start(session, _job("x", 3))
    assert _start(session, _job("y", 2)) == ["c"]
    session.apply(JobArrived(time=0.0, job=_job("z", 3)))
    assert not session.decide("z").starts


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([JobEnded(time=0.0, job="xx")], 'events[0].job: there is no job "xx"'),
        ([NodeFailed(time=0.0, node="aa")], 'events[0].node: there is no node "aa"'),
        (
            [NodeDrained(time=5.0, node="a"), NodeDrained(time=4.0, node="a")],
            "events[1].time: found 4, which is",
        ),
        ([JobArrived(time=0.0, job=_job("x"))], 'events[0].job.name: "x" has arrived before'),
        ([JobEnded(time=0.0, job="x"), JobArrived(time=0.0, job=_job("x"))], 'events[1].job.name: "x" has arrived'),
        ([JobArrived(time=0.0, job=_job("y", after=("q",)))], 'events[0].job.after: there is no job "q"'),
        ([JobArrived(time=0.0, job=_job("y", -1))], "events[0].job.groups[0].task.gpus"),
        ([JobArrived(time=float("nan"), job=_job("y"))], "events[0].time"),
    ],
)
def test_wrong_events_have_one_clear_message(events: list[Event], message: str) -> None:
    session = _session(_node("a"), jobs=(_job("x"),))
    with pytest.raises(pl.InputError) as raised:
        session.apply(events)
    assert message in str(raised.value)


def test_what_looks_ahead_is_refused() -> None:
    jobs = (_job("x", deadline=5.0, hard_deadline=True, duration=Duration(seconds=1.0)),)
    with pytest.raises(pl.UsageError, match=r"a session does not honour jobs\.hard_deadline"):
        _session(_node("a"), jobs=jobs)
    snapshot = pl.Snapshot(nodes=(pl.Node(name="a", gpus=CARDS),), jobs=jobs)
    assert Session(snapshot, without=("jobs.hard_deadline",)).decide("x").starts


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["arrive", "arrive", "arrive", "end", "fail", "drain", "restore"]),
        st.integers(0, 5),
        st.sampled_from([(1, 1), (2, 1), (4, 1), (1, 3), (2, 2), (4, 2)]),
        st.sampled_from(["", "share", "rack", "cpu"]),
    ),
    max_size=14,
)


def _random_job(number: int, size: tuple[int, int], kind: str) -> pl.Job:
    gpus, tasks = size
    task = pl.Task(gpus=gpus, gpu_share=0.5 if kind == "share" else None, cpu=3 if kind == "cpu" else 1)
    topology = Topology(required="rack") if kind == "rack" else None
    return pl.Job(
        name=f"j{number}",
        groups=(pl.TaskGroup(name="w", count=tasks, min_count=1 + tasks // 2, task=task, topology=topology),),
        duration=Duration(seconds=10.0),
        checkpoint_interval=2.0,
    )


@settings(max_examples=25, deadline=None)
@given(STEPS)
def test_every_state_is_valid_and_a_full_check_accepts_every_decision(
    steps: list[tuple[str, int, tuple[int, int], str]],
) -> None:
    nodes = [_node(f"n{i}", f"r{i // 2}", cpu=6) for i in range(6)]
    session = _session(*nodes)
    for number, (what, which, size, kind) in enumerate(steps):
        time, node = float(number), f"n{which}"
        if what == "end" and session.running:
            session.apply(JobEnded(time=time, job=sorted(session.running)[which % len(session.running)]))
        elif what in ("fail", "drain", "restore"):
            records: dict[str, Event] = {
                "fail": NodeFailed(time=time, node=node),
                "drain": NodeDrained(time=time, node=node),
                "restore": NodeRestored(time=time, node=node),
            }
            session.apply(records[what])
        elif what == "arrive":
            session.apply(JobArrived(time=time, job=_random_job(number, size, kind)))
        for name in list(session.waiting):
            decision = session.decide(name)
            whole = session.snapshot(in_time=False)
            alone = pl.solve(msgspec.structs.replace(whole, jobs=_only(whole, name)), solver="fastest-fit")
            # on its own, the same rule places it from scratch if and only if it does on what is kept
            assert decision.starts == (len(alone.tasks) > 0)
            if decision.starts:
                plan = plan_for(whole, places_of(decision.tasks))
                assert plan.checked, plan.notes
                assert plan.tasks == decision.tasks
                session.start(decision)
        assert pl.snapshot.read.verified(session.snapshot()) is not None
        on_failed = {task.node for job in session.running.values() if job.running for task in job.running.tasks}
        assert what != "fail" or node not in on_failed


def _only(snapshot: pl.Snapshot, name: str) -> tuple[pl.Job, ...]:
    return tuple(job for job in snapshot.jobs if job.running is not None or job.name == name)


def test_what_has_no_limit_has_none_however_many_jobs_are_started() -> None:
    # no figure for CPU; 10 tasks of a tenth of the one card and of its 40 GB
    card = pl.Gpu(model="A100", count=1, memory=40e9)
    session = Session(pl.Snapshot(nodes=(pl.Node(name="n0", gpus=(card,)),)))
    task = pl.Task(gpus=1, gpu_share=0.1, gpu_memory=4e9, cpu=4)
    jobs = [pl.Job(name=f"j{number}", groups=(pl.TaskGroup(name="w", count=1, task=task),)) for number in range(11)]
    assert [_start(session, job) for job in jobs[:10]] == [["n0"]] * 10
    session.apply(JobArrived(time=0.0, job=jobs[10]))
    assert not session.decide("j10").starts


def test_names_of_ended_jobs_are_forgotten_in_time_and_what_comes_after_them_may_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("placement.session.session.REMEMBERED", 1)
    session = _session(_node("n0"), jobs=(_job("a"), _job("b"), _job("c", after=("a",))))
    session.apply([JobEnded(time=0.0, job="a"), JobEnded(time=0.0, job="b")])
    assert session.decide("c").starts
    session.apply(JobArrived(time=0.0, job=_job("a")))
    with pytest.raises(pl.UsageError, match='"b" has arrived before'):
        session.apply(JobArrived(time=0.0, job=_job("b")))


@pytest.mark.parametrize("time", [float("inf"), float("nan"), 1e13, -1.0])
def test_events_at_no_moment(time: float) -> None:
    session = _session(_node("a"))
    with pytest.raises(pl.UsageError, match=r"events\[0\].time"):
        session.apply(JobArrived(time=time, job=_job("x")))
    assert (session.time, list(session.waiting)) == (0.0, [])


def test_an_event_log_is_taken_in_as_its_events_are() -> None:
    session = _session(_node("a"))
    session.apply(EventLog(events=(JobArrived(time=1.0, job=_job("x")), JobArrived(time=2.0, job=_job("y")))))
    assert (session.time, list(session.waiting)) == (2.0, ["x", "y"])


def test_a_job_does_not_start_before_it_is_submitted() -> None:
    session = _session(_node("a"), jobs=(_job("later", submit_time=10.0),))
    assert session.decide("later").reason == "it is submitted at 10, and it is 0"
    assert len(session.solve().tasks) == 0
    session.apply(JobArrived(time=10.0, job=_job("now")))
    assert session.decide("later").starts
    assert len(session.solve().tasks) == 2


def test_a_longest_wait_is_refused_unless_it_is_left_out() -> None:
    snapshot = pl.Snapshot(topology=("rack",), nodes=(_node("a"),), policy=pl.Policy(max_wait_seconds=60.0))
    with pytest.raises(pl.UsageError, match=r"does not honour policy\.max_wait_seconds"):
        Session(snapshot)
    assert not Session(snapshot, without=("policy.max_wait_seconds",)).running


def test_a_schedule_is_started_as_far_as_it_starts_now() -> None:
    # 4 cards: x runs on 2 until 10; wide needs 4 and waits for it; short is done by then and starts beside x
    session = _session(_node("a"))
    _start(session, _job("x", 2, duration=Duration(seconds=10.0)))
    session.apply(JobArrived(time=0.0, job=_job("wide", 4, duration=Duration(seconds=5.0))))
    session.apply(JobArrived(time=0.0, job=_job("short", 2, duration=Duration(seconds=10.0))))
    found = session.schedule()
    assert dict(zip(found.jobs.job, found.jobs.start, strict=True)) == {"wide": 10.0, "short": 0.0}
    session.start(found)
    assert (list(session.running), list(session.waiting)) == (["x", "short"], ["wide"])
    session.apply([JobEnded(time=10.0, job="x"), JobEnded(time=10.0, job="short")])
    session.start(session.schedule())
    assert list(session.running) == ["wide"]
    with pytest.raises(pl.UsageError, match="no job"):
        session.start(session.decide("wide"))


def test_a_schedule_of_another_state_is_judged_anew() -> None:
    session = _session(_node("a"))
    session.apply(JobArrived(time=0.0, job=_job("x", 4, duration=Duration(seconds=10.0))))
    found = session.schedule()
    assert _start(session, _job("y", 1)) == ["a"]
    with pytest.raises(pl.UsageError, match="does not go with what runs now"):
        session.start(found)
    assert list(session.waiting) == ["x"]


def test_what_follows_work_of_no_time_at_once_waits_until_that_has_ended() -> None:
    # first and then take no time: in a schedule all four start at 0, wide on the cards of first, and last after it
    session = _session(_node("a"))
    for job in (
        _job("first", 4, duration=Duration(seconds=0.0)),
        _job("then", 4, duration=Duration(seconds=0.0), after=("first",)),
        _job("wide", 3, duration=Duration(seconds=5.0)),
        _job("last", 1, duration=Duration(seconds=5.0), after=("first",)),
    ):
        session.apply(JobArrived(time=0.0, job=job))
    found = session.schedule()
    assert set(found.stretches.start) == {0.0}
    session.start(found)
    assert list(session.running) == ["wide"]
    session.apply(JobEnded(time=5.0, job="wide"))
    alone = session.schedule()
    session.apply(JobEnded(time=5.0, job="last", outcome="cancelled"))
    session.start(alone)
    assert list(session.running) == ["first"]


def test_what_names_its_nics_is_planned_around() -> None:
    # x has a card of each zone and the one NIC of zone 1, which a schedule cannot say; y is bound to one zone
    zones = tuple(
        NumaZone(id=number, gpus=(2 * number, 2 * number + 1), nics=(Nic(name=f"nic{number}"),)) for number in (0, 1)
    )
    session = _session(_node("a", zones=msgspec.to_builtins(zones)))
    spread = pl.Task(gpus=3, nics=1)
    bound = pl.Task(gpus=1, nics=1, numa="single-numa-node")
    for name, task, seconds in (("x", spread, 10.0), ("y", bound, 5.0)):
        group = pl.TaskGroup(name="w", task=task)
        session.apply(JobArrived(time=0.0, job=pl.Job(name=name, groups=(group,), duration=Duration(seconds=seconds))))
        if name == "x":
            session.start(session.decide(name))
    running = session.running["x"].running
    assert running is not None
    assert running.tasks[0].nics
    found = session.schedule()
    assert found.jobs.job == ["y"]
    assert pl.check(unnamed(session.snapshot()), found) == []
    session.start(found)
    assert list(session.running) == ["x", "y"]
