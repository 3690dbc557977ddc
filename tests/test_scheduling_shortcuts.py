"""What spares policies work changes no decision: jobs that are alike, counts of free cards, many changes at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policy_cases import job, node, running, spells

from placement.scheduling.baselines import BASELINES
from placement.scheduling.compile import compile_work
from placement.scheduling.desk import Desk
from placement.scheduling.line import Line, Waiting
from placement.scheduling.loop import Loop
from placement.scheduling.room import Room
from placement.scheduling.timing import Timetable
from placement.snapshot import Queue, Snapshot


class Tried(Desk):
    """A desk on which every job is tried, whatever is known of others and of free cards."""

    def refused_alike(self, job: int) -> int:
        return -1

    def least_tasks(self, job: int) -> tuple[int, int] | None:
        return None


@st.composite
def crowds(draw: st.DrawFn) -> Snapshot:
    """Return more jobs of a few sizes than there is room for, most of which may be stopped."""
    sizes = draw(st.lists(st.integers(2, 4), min_size=2, max_size=3))
    jobs = [
        job(
            f"j{number}",
            draw(st.integers(1, 3)),
            draw(st.sampled_from((10.0, 300.0, 900.0, 4000.0))),
            tasks=draw(st.sampled_from((1, 1, 2, 3))),
            queue=draw(st.sampled_from("ab")),
            priority=draw(st.integers(0, 2)),
            submit_time=draw(st.sampled_from((0.0, 0.0, 5.0, 60.0, 1000.0))),
            preemptible=draw(st.integers(0, 3)) > 0,
            checkpoint_interval=1.0,
            restart_seconds=2.0,
            minimum_run_seconds=draw(st.sampled_from((0.0, 0.0, 30.0))),
        )
        for number in range(draw(st.integers(6, 14)))
    ]
    if draw(st.booleans()):
        jobs[0] = running(job("busy", 1, 700.0, queue="a", preemptible=True), "n0", (0,), since=-2.0)
    nodes = tuple(node(f"n{number}", size) for number, size in enumerate(sizes))
    return Snapshot(nodes=nodes, queues=(Queue(name="a"), Queue(name="b")), jobs=tuple(jobs))


@pytest.mark.parametrize("name", BASELINES)
@settings(max_examples=12, deadline=None)
@given(snapshot=crowds())
def test_no_decision_changes(name: str, snapshot: Snapshot) -> None:
    def table(kind: type[Desk]) -> Timetable:
        return Loop(kind(compile_work(snapshot)), BASELINES[name]).run()

    assert table(Desk) == table(Tried)


def test_who_is_refused_stands_for_its_own_queue_and_until_others_are_stopped() -> None:
    # x finds nobody of its queue a to stop. y, as large, stops r in queue b, which leaves 2 cards: z of queue a, as
    # large as x, takes them, and x, which has had its turn, waits for both.
    jobs = (
        running(job("r", 4, 100, queue="b", preemptible=True, checkpoint_interval=1.0), "n", range(4)),
        job("x", 2, 10, queue="a", priority=1, submit_time=-3.0),
        job("y", 2, 10, queue="b", priority=1, submit_time=-2.0),
        job("z", 2, 10, queue="a", priority=1, submit_time=-1.0),
    )
    queues = (Queue(name="a"), Queue(name="b"))
    found = spells(Snapshot(nodes=(node("n", 4),), queues=queues, jobs=jobs), "volcano-gang-preempt")
    assert (found["x"], found["y"], found["z"]) == ([(10, 20)], [(0, 10)], [(0, 10)])


@given(
    jobs=st.lists(st.tuples(st.integers(0, 5), st.sampled_from((None, "x", "y"))), min_size=1, max_size=12),
    answers=st.lists(st.sampled_from(("start", "refuse", "readmit")), min_size=12, max_size=12),
)
def test_turns_are_those_of_one_after_the_other(jobs: list[tuple[int, str | None]], answers: list[str]) -> None:
    waiting = Waiting()
    for number in range(len(jobs)):
        waiting[number] = 0
    turns = Line(waiting, lambda one: jobs[one][0], lambda one: jobs[one][1]).turns()
    found = []
    while (head := turns.head()) is not None:
        one = turns.take()
        assert head == (jobs[one][0], one)
        found.append(one)
        if answers[one] == "refuse":
            turns.refuse(one)
        elif answers[one] == "readmit":
            turns.readmit(head)
    expected = []
    refused: set[str | None] = set()
    for one in sorted(range(len(jobs)), key=lambda one: (jobs[one][0], one)):
        if jobs[one][1] in refused:
            continue
        expected.append(one)
        if answers[one] == "refuse" and jobs[one][1] is not None:
            refused.add(jobs[one][1])
        elif answers[one] == "readmit":
            refused.clear()
    assert found == expected


def test_a_line_follows_who_comes_and_goes() -> None:
    waiting, rank = Waiting(), {0: 5, 1: 3, 2: 3}
    line = Line(waiting, lambda one: rank[one], lambda one: one % 2)
    for one in (0, 2, 1):
        waiting[one] = 0
    assert line.jobs() == [1, 2, 0]
    assert waiting.pop(1) == 0
    assert waiting.pop(9, None) is None
    assert line.jobs() == [2, 0]
    del waiting[2]
    rank[2] = 9  # it was stopped, and comes again behind the other
    waiting[2] = 4
    assert line.jobs() == [0, 2]


def _busy() -> Desk:
    """Return a desk with nodes of 4, 4 and 2 cards; one card of each of the first two is free."""
    places = (("a", (0,)), ("a", (1, 2)), ("b", (0, 1)), ("b", (3,)), ("c", (0, 1)))
    jobs = [running(job(f"r{number}", len(cards), 60), where, cards) for number, (where, cards) in enumerate(places)]
    jobs += [job("two of three", 3, 10, tasks=2), job("two of one", 1, 10, tasks=2), job("of two", 2, 10)]
    return Desk(compile_work(Snapshot(nodes=(node("a", 4), node("b", 4), node("c", 2)), jobs=tuple(jobs))))


def test_room_counts_node_by_node() -> None:
    desk = _busy()
    loads = [desk.load(one, desk.live[one].tasks) for one in range(5)]
    # 1 + 1 + 0 cards are free: two tasks of one card may fit, one of two cards not, though two cards are free
    assert [Room(desk).may_hold(one) for one in (5, 6, 7)] == [False, True, False]
    # without r4, r3 and r2 in turn: 1 + 1 + 2 holds no task of three, nor does 1 + 2 + 2, and 1 + 4 + 2 only one
    assert Room(desk).first_that_may_do(5, [loads[4], loads[3], loads[2]]) is None
    # 1 + 4 + 2 and then without r1: 3 + 4 + 2 holds two
    room = Room(desk)
    assert room.first_that_may_do(5, [loads[4], loads[3], loads[2], loads[1], loads[0]]) == 4
    assert room.on(5, [0, 1, 2]) == [0, 1]
    room.take(loads[2])  # 3 + 2 + 2
    assert not room.may_hold(5)
    assert room.on(7, [0, 1, 2]) == [0, 1, 2]


def test_many_at_once_is_one_by_one() -> None:
    at_once, in_turn = _busy(), _busy()
    before = at_once.filling.idle_units()[0].copy()
    at_once.lift_all(range(5))
    for one in range(5):
        in_turn.lift(one)
    assert np.array_equal(at_once.filling.idle_units()[0], in_turn.filling.idle_units()[0])
    found = [desk.fit(5) for desk in (at_once, in_turn)]
    assert found[0] is not None
    assert found[0] == found[1]
    at_once.withdraw(5, found[0])
    at_once.put_all_back(range(5))
    assert np.array_equal(at_once.filling.idle_units()[0], before)
    assert not at_once.may_fit(5)
    assert at_once.may_fit(6)
