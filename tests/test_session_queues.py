"""Sessions keep quotas: worked by hand, and random events after which every plan is judged and compared."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from quota_cases import MODELS, leaves, trees
from share_cases import cards, details, gang
from test_queue_quotas import LENDS

import placement as pl
from placement.errors import UnhonouredError
from placement.quota import Quotas, quota_of
from placement.session import Session
from placement.session.judged import places_of
from placement.snapshot import (
    Duration,
    Gpu,
    Job,
    MigInstance,
    Node,
    Policy,
    Queue,
    Running,
    RunningTask,
    Snapshot,
    Task,
    TaskGroup,
)
from placement.snapshot.events import Event, JobArrived, JobEnded, NodeDrained, NodeFailed, NodeRestored

# --- worked by hand ----------------------------------------------------------------------------------------------


def ten(*jobs: Job, queues: tuple[Queue, ...] = LENDS) -> Session:
    """Ten cards, of which a may use 5 and b its 4 and the 4 of a; see `test_queue_quotas.LENDS`."""
    return Session(Snapshot(nodes=(cards("x", "A", 10),), jobs=jobs, queues=queues))


def arrive(session: Session, job: Job) -> str:
    """Let a job arrive and start if it may; return why it does not."""
    session.apply(JobArrived(time=session.time, job=job))
    decision = session.decide(job.name)
    if decision.starts:
        session.start(decision)
    return decision.reason


def test_a_gang_that_would_exceed_its_quota_does_not_start_and_says_by_how_much() -> None:
    """Of 10 free cards a may use 5: a gang of 8 is 3 too many, beside one of 4 one of 2 is 1 too many."""
    session = ten()
    assert arrive(session, gang("large", "a", 8)) == "it asks for 3 cards of A too many for the quota of queue a"
    assert arrive(session, gang("four", "a", 4)) == ""
    reason = arrive(session, gang("two", "a", 2))
    assert reason == "it asks for 1 card of A too many for the quota of queue a"
    # the same words as in a plan of the moment
    assert details(session.solve())["two"].endswith(reason)
    assert list(session.running) == ["four"]


def test_what_is_borrowed_counts_above_until_it_is_given_back() -> None:
    """5 of a leave b 3 of 8, and 1 more that it keeps; when they end it has all 8."""
    session = ten()
    assert arrive(session, gang("a", "a", 5)) == ""
    # above, 5 and max(0, u - 1) of b are at most 7: u is 3
    assert arrive(session, gang("b4", "b", 4)) == "it asks for 1 card of A too many for the quota of queue top"
    assert arrive(session, gang("b3", "b", 3)) == ""
    assert arrive(session, gang("b1", "b", 1)) == "it asks for 1 card of A too many for the quota of queue top"
    session.apply(JobEnded(time=1.0, job="a"))
    assert [session.decide(name).starts for name in ("b4", "b1")] == [True, True]


def test_a_node_that_fails_gives_its_cards_back_to_the_quota_and_a_drained_one_does_not() -> None:
    nodes = (cards("x", "A", 5), cards("y", "A", 5))
    session = Session(Snapshot(nodes=nodes, jobs=(gang("first", "a", 5),), queues=LENDS))
    session.start(session.decide("first"))
    session.apply(NodeDrained(time=1.0, node="x"))
    assert arrive(session, gang("next", "a", 1)).startswith("it asks for 1 card of A too many")
    session.apply(NodeFailed(time=2.0, node="x"))
    assert session.decide("next").starts
    assert session.decide("first").starts
    session.start(session.decide("next"))
    # it was stopped and asks for 5 beside 1
    assert session.decide("first").reason == "it asks for 1 card of A too many for the quota of queue a"
    session.stop("next")
    assert session.decide("first").starts


def test_what_ran_at_the_start_counts_and_stays_where_it_is_too_much() -> None:
    """The queue a runs 6 of the 5 it may use: nothing is added, and b has 2 of 8 and the one that it keeps."""
    places = tuple(RunningTask(group="g", index=i, node="x", gpus=(i,)) for i in range(6))
    session = ten(gang("run", "a", 6, running=Running(tasks=places)))
    assert arrive(session, gang("a1", "a", 1)) == "it asks for 1 card of A too many for the quota of queue a"
    assert [arrive(session, gang(f"b{i}", "b", 1)) == "" for i in range(3)] == [True, True, False]
    assert "run" in session.running


def test_a_job_grows_as_far_as_its_quota_goes() -> None:
    group = TaskGroup(name="g", count=8, min_count=2, task=Task(gpus=1))
    session = ten(Job(name="j", queue="a", groups=(group,)))
    assert len(session.decide("j").tasks) == 5
    assert len(session.solve().tasks) == 5


def test_shares_of_cards_count_as_they_are_stated() -> None:
    """20 quarters are the 5 cards that a may use."""
    quarter = Task(gpus=1, gpu_share=0.25)
    jobs = [Job(name=f"j{i}", queue="a", groups=(TaskGroup(name="g", task=quarter),)) for i in range(21)]
    session = ten()
    assert [arrive(session, job) for job in jobs[:20]] == [""] * 20
    assert arrive(session, jobs[20]) == "it asks for 0.25 cards of A too many for the quota of queue a"


def test_instances_count_as_parts_of_their_card() -> None:
    """One card of a MIG card: 4 of 7 and 3 of 7 are its quota of 1, on two cards."""
    card = Gpu(model="A100-40GB", mig_enabled=True, mig_layout=(MigInstance(profile="1g.5gb", start=0),))
    session = Session(Snapshot(nodes=(Node(name="n", gpus=(card, card)),), queues=(Queue(name="q", quota={"*": 1}),)))

    def instance(name: str, profile: str) -> Job:
        return Job(name=name, queue="q", groups=(TaskGroup(name="g", task=Task(gpus=1, mig_profile=profile)),))

    assert arrive(session, instance("a", "4g.20gb")) == ""
    # 1 - 4/7 is left, 1/7 less than another asks for
    assert arrive(session, instance("b", "4g.20gb")).endswith(" cards of all models too many for the quota of queue q")
    assert arrive(session, instance("c", "3g.20gb")) == ""
    assert arrive(session, instance("d", "1g.5gb")) != ""


def test_the_model_with_quota_left_is_taken_though_another_fits_better() -> None:
    """Best fit goes to the one card of A that is left; of A the queue may use none, so it goes to B."""
    queues = (Queue(name="q", quota={"A": 0, "B": 2}),)
    session = Session(Snapshot(nodes=(cards("x", "A", 1), cards("y", "B", 4)), queues=queues))
    session.apply(JobArrived(time=0.0, job=gang("one", "q", 1)))
    assert session.decide("one").tasks.node == ["y"]
    # of both together 2 are left, of A alone none
    assert arrive(session, gang("three", "q", 3)) == "it asks for 1 card of A, B too many for the quota of queue q"
    assert (
        arrive(session, gang("on", "q", 1, models=("A",)))
        == "it asks for 1 card of A too many for the quota of queue q"
    )


def test_what_no_model_has_alone_is_said_to_be_within_what_quotas_leave() -> None:
    """One task of two cards: of A and of B one card each is left."""
    queues = (Queue(name="q", quota={"A": 1, "B": 1}),)
    session = Session(Snapshot(nodes=(cards("x", "A", 2), cards("y", "B", 2)), queues=queues))
    reason = arrive(session, gang("two", "q", 1, 2))
    assert reason == "nothing that it could use is free now within what quotas leave to queue q"


def test_a_decision_of_an_earlier_state_that_exceeds_a_quota_now_is_refused() -> None:
    jobs = gang("one", "a", 3), gang("two", "a", 3)
    session = Session(Snapshot(nodes=(cards("x", "A", 5), cards("y", "A", 5)), jobs=jobs, queues=LENDS))
    session.apply(NodeDrained(time=0.0, node="x"))
    on_y = session.decide("two")
    session.apply(NodeRestored(time=0.0, node="x"))
    session.apply(NodeDrained(time=0.0, node="y"))
    session.start(session.decide("one"))
    session.apply(NodeRestored(time=0.0, node="y"))
    with pytest.raises(pl.UsageError, match=r"it comes to 1 card of A too many for the quota of queue a"):
        session.start(on_y)
    assert (list(session.running), list(session.waiting)) == (["one"], ["two"])


def test_queues_can_be_left_out_and_shares_are_refused() -> None:
    snapshot = Snapshot(nodes=(cards("x", "A", 10),), jobs=(gang("j", "a", 8),), queues=LENDS)
    session = Session(snapshot, without=("queues",))
    assert session.decide("j").starts
    assert len(session.solve().tasks) == 8
    shared = msgspec.structs.replace(snapshot, policy=Policy(shares="fair_share"))
    with pytest.raises(UnhonouredError, match="is honoured by placement solve alone"):
        Session(shared)
    assert not Session(shared, without=("policy.shares",)).decide("j").starts
    mixed = msgspec.structs.replace(snapshot, nodes=(Node(name="n", gpus=(Gpu(model="A"), Gpu(model="B"))),))
    with pytest.raises(UnhonouredError, match="quotas by model of queues are not honoured yet"):
        Session(mixed)


def test_a_schedule_starts_now_what_the_quota_takes_and_counts_it() -> None:
    jobs = [gang(f"j{i}", "a", 2, duration=Duration(seconds=10.0)) for i in range(3)]
    session = ten(*jobs)
    session.start(session.schedule())
    # 2 and 2 of 5
    assert (len(session.running), len(session.waiting)) == (2, 1)
    (name,) = session.waiting
    assert session.decide(name).reason == "it asks for 1 card of A too many for the quota of queue a"


# --- random events -----------------------------------------------------------------------------------------------

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["arrive", "arrive", "arrive", "end", "fail", "drain", "restore", "stop", "solve", "schedule"]),
        st.integers(0, 5),
        st.sampled_from([(1, 1), (2, 1), (1, 3), (2, 2)]),
        st.sampled_from([(), ("A",), ("B",)]),
        st.booleans(),
    ),
    max_size=12,
)


def lendable(queues: tuple[Queue, ...]) -> tuple[Queue, ...]:
    """Return queues that lend no more than their quotas."""
    return tuple(
        msgspec.structs.replace(
            one, lending_limit={m: min(int(x), int(quota_of(one, m))) for m, x in one.lending_limit.items()}
        )
        for one in queues
    )


def judged(session: Session, plan: pl.Plan) -> None:
    """Have a plan of the present judged, with quotas."""
    assert plan.checked
    assert not any("refused" in note for note in plan.notes)
    assert pl.check(session.snapshot(in_time=False), plan) == []


@settings(max_examples=25, deadline=None)
@given(trees().map(lendable), STEPS)
def test_decisions_are_those_of_a_plan_made_anew_and_the_judge_accepts_all(
    queues: tuple[Queue, ...], steps: list[tuple[str, int, tuple[int, int], tuple[str, ...], bool]]
) -> None:
    nodes = tuple(cards(f"n{i}", MODELS[i % 2], 3) for i in range(4))
    session = Session(Snapshot(nodes=nodes, queues=queues))
    of = [*leaves(queues), ""]
    for number, (what, which, size, models, grows) in enumerate(steps):
        time, node = float(number), f"n{which % 4}"
        events: dict[str, Event] = {
            "fail": NodeFailed(time=time, node=node),
            "drain": NodeDrained(time=time, node=node),
            "restore": NodeRestored(time=time, node=node),
        }
        if what in events:
            session.apply(events[what])
        elif what == "arrive":
            tasks, gpus = size
            group = TaskGroup(
                name="g", count=tasks, min_count=1 if grows else None, task=Task(gpus=gpus, gpu_models=models)
            )
            job = Job(name=f"j{number}", queue=of[which % len(of)], groups=(group,), duration=Duration(seconds=5.0))
            session.apply(JobArrived(time=time, job=job))
        elif what == "schedule" and session.waiting:
            session.start(session.schedule())
        elif what == "solve":
            plan = session.solve()
            judged(session, plan)
            session.start(plan)
        elif session.running:
            name = sorted(session.running)[which % len(session.running)]
            if what == "end":
                session.apply(JobEnded(time=time, job=name))
            elif what == "stop":
                session.stop(name)
        names = list(session.waiting)
        for name in names[: which + 1]:
            decision = session.decide(name)
            whole = session.snapshot(in_time=False)
            jobs = tuple(job for job in whole.jobs if job.running is not None or job.name == name)
            alone = pl.solve(msgspec.structs.replace(whole, jobs=jobs), solver="fastest-fit")
            assert decision.starts == (len(alone.tasks) > 0)
            if decision.starts:
                plan = msgspec.structs.replace(alone, tasks=decision.tasks, checked=False)
                broken = {one.rule for one in pl.check(msgspec.structs.replace(whole, jobs=jobs), plan)}
                assert "queue_shares" not in broken
                if number % 2:
                    session.start(decision)
            elif " too many for" in decision.reason and " too many for" in details(alone)[name]:
                # a plan counts in units of what tasks take, so of the same models it may say more cards
                mine, his = (text.partition("asks for ")[2].split() for text in (decision.reason, details(alone)[name]))
                named = [text[1 : text.index("too")] for text in (mine, his)]
                assert named[0] != named[1] or float(mine[0]) <= float(his[0])
        # what is counted is what runs
        anew = Quotas(queues)
        model = {f"n{i}": MODELS[i % 2] for i in range(4)}
        for job in session.running.values():
            assert job.running is not None
            for task in job.running.tasks:
                anew.change(job.queue, {model[task.node]: len(task.gpus)})
        for queue in leaves(queues):
            room = session._cluster.queue_use.room(queue)
            assert all(amount == anew.room(queue, one) for one, amount in room.items())


def test_places_of_a_decision_go_back_as_they_came() -> None:
    session = ten(gang("j", "a", 2))
    decision = session.decide("j")
    session.start(decision)
    running = session.running["j"].running
    assert running is not None
    assert running.tasks == places_of(decision.tasks)["j"]
