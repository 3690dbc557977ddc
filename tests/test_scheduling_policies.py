"""Every policy by the decision that it is known for, and what all of them keep to."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from policy_cases import job, node, run, running, spells

from placement.scheduling.baselines import BASELINES
from placement.scheduling.compile import compile_work
from placement.scheduling.desk import NEVER, Desk
from placement.scheduling.policies.fair_shares import Kinds, fair_shares
from placement.snapshot import Duration, Gpu, Job, Node, Running, RunningTask, Snapshot, Task, TaskGroup

KEPT: dict[str, Any] = {"preemptible": True, "checkpoint_interval": 1.0}
EVICTING = ("priority-preemptive", "volcano-gang-preempt", "kueue-preemption")


# --- backfilling -------------------------------------------------------------------------------------------------


def test_mig_cards_come_free_though_their_slots_were_reserved_before() -> None:
    """Both halves of a card are in use until 8: a reservation is tried there beside them, and the job starts then.

    The second takes a half or both, for 3 s; beside the first it has one, so both jobs end at 11.
    """
    instance = Task(gpus=1, mig_profile="3g.40gb")
    places = tuple(RunningTask(group="w", index=half, node="a", gpus=(0,), mig_starts=(4 * half,)) for half in (0, 1))
    both = TaskGroup(name="w", count=2, task=instance)
    one, some = TaskGroup(name="w", task=instance), replace(both, min_count=1)
    busy = Job(name="busy", groups=(both,), duration=Duration(seconds=8), running=Running(tasks=places))
    jobs = (
        busy,
        *(
            Job(name=name, groups=(it,), duration=Duration(seconds=3))
            for name, it in zip("xy", (one, some), strict=True)
        ),
    )
    there = Node(name="a", gpus=(Gpu(model="A100-SXM4-80GB", mig_enabled=True),))
    for name in BASELINES:
        found = spells(Snapshot(nodes=(there,), jobs=jobs), name)
        assert found.keys() == {"busy", "x", "y"}, name
        if name.endswith("backfill"):
            assert (found["x"], found["y"]) == ([(8, 11)], [(8, 11)])


def test_backfilling_goes_ahead_and_only_conservative_guards_the_second() -> None:
    # a is taken until 10, so the head, 8 cards of one node, is reserved a from 10 to 20. The second wants all 10 cards,
    # free from 20. The third wants 2 for 25 seconds: on b from 0 it is beside the head, but in the second's way.
    busy = running(job("busy", 8, 10), "a", range(8))
    jobs = (busy, job("head", 8, 10), job("second", 2, 10, tasks=5), job("third", 2, 25))
    snapshot = Snapshot(nodes=(node("a", 8), node("b", 2)), jobs=jobs)
    assert spells(snapshot, "fifo")["third"] == [(30, 55)]
    easy = spells(snapshot, "easy-backfill")
    assert (easy["head"], easy["second"], easy["third"]) == ([(10, 20)], [(25, 35)], [(0, 25)])
    careful = spells(snapshot, "conservative-backfill")
    assert (careful["head"], careful["second"], careful["third"]) == ([(10, 20)], [(20, 30)], [(30, 55)])


@pytest.mark.parametrize("name", ["easy-backfill", "conservative-backfill"])
def test_who_goes_ahead_ends_in_time(name: str) -> None:
    # 4 of 8 cards are free until the head takes all at 100: 100 seconds fit before it, 101 do not
    busy = running(job("busy", 4, 100), "a", range(4))
    jobs = (busy, job("head", 8, 50), job("late", 4, 101), job("in-time", 4, 100))
    found = spells(Snapshot(nodes=(node("a", 8),), jobs=jobs), name)
    assert (found["head"], found["late"], found["in-time"]) == ([(100, 150)], [(150, 251)], [(0, 100)])


def test_reservations_stand_when_others_come_later() -> None:
    # at 0: first has [0, 10), second all 8 cards [10, 20). What comes at 5 finds [5, 10) too short, and goes behind.
    jobs = (job("first", 4, 10), job("second", 8, 10), job("third", 4, 6, submit_time=5.0, priority=9))
    found = spells(Snapshot(nodes=(node("a", 8),), jobs=jobs), "conservative-backfill")
    assert found == {"first": [(0, 10)], "second": [(10, 20)], "third": [(20, 26)]}


# --- preemption --------------------------------------------------------------------------------------------------


def test_the_lowest_victims_not_the_fewest() -> None:
    # a: one victim of priority 1; b: two of priority 0, which are lower. The preemptor ends at 10.
    jobs = (
        running(job("a", 2, 100, priority=1, **KEPT), "a", (0, 1)),
        running(job("b0", 1, 100, **KEPT), "b", (0,)),
        running(job("b1", 1, 100, **KEPT), "b", (1,)),
        job("high", 2, 10, priority=5),
    )
    found = spells(Snapshot(nodes=(node("a", 2), node("b", 2)), jobs=jobs), "priority-preemptive")
    assert found == {"a": [(0, 100)], "b0": [(10, 110)], "b1": [(10, 110)], "high": [(0, 10)]}


@pytest.mark.parametrize(("name", "stopped"), [(EVICTING[0], {"y"}), (EVICTING[1], {"x", "y"}), (EVICTING[2], {"y"})])
def test_kueue_puts_back_and_volcano_does_not(name: str, stopped: set[str]) -> None:
    # 4 cards, 2 wanted. Newest first: without x 1 is free, without y too 3; x can go back, which Volcano does not try.
    jobs = (
        running(job("x", 1, 100, **KEPT), "a", (0,), since=-1.0),
        running(job("y", 2, 100, **KEPT), "a", (1, 2), since=-5.0),
        running(job("z", 1, 100, priority=1, **KEPT), "a", (3,), since=-9.0),
        job("high", 2, 10, priority=5),
    )
    found = spells(Snapshot(nodes=(node("a", 4),), jobs=jobs), name)
    assert found["high"] == [(0, 10)]
    # x has 1 of 100 done and y 5; one that is stopped at once has no stretch before 10, or x starts again at once
    assert {one for one in "xyz" if found[one][0][0] > 0} | (stopped & {"x"}) == stopped
    assert found["y"] == [(10, 105)]


@pytest.mark.parametrize("name", EVICTING)
def test_nobody_is_stopped_for_nothing(name: str) -> None:
    # the card of the victim is of no use, the equal may not be stopped, and of three cards two would still be wanting
    jobs = (
        running(job("other", 1, 50, **KEPT), "b", (0,)),
        running(job("equal", 1, 50, priority=5, **KEPT), "a", (0,)),
        running(job("low", 1, 50, **KEPT), "a", (1,)),
        job("high", 3, 10, priority=5, models=("A",)),
    )
    found = spells(Snapshot(nodes=(node("a", 3), node("b", 1, "B")), jobs=jobs), name)
    assert found == {"other": [(0, 50)], "equal": [(0, 50)], "low": [(0, 50)], "high": [(50, 60)]}


def test_volcano_stays_in_its_queue() -> None:
    jobs = (
        running(job("low", 1, 50, queue="one", **KEPT), "a", (0,)),
        job("high", 1, 10, priority=5, queue="two"),
    )
    snapshot = Snapshot(nodes=(node("a", 1),), jobs=jobs)
    assert spells(snapshot, "volcano-gang-preempt")["high"] == [(50, 60)]
    assert spells(snapshot, "kueue-preemption")["high"] == [(0, 10)]


@pytest.mark.parametrize("name", EVICTING)
def test_a_minimum_run_time_is_waited_for(name: str) -> None:
    jobs = (
        running(job("low", 1, 50, minimum_run_seconds=20, **KEPT), "a", (0,)),
        job("high", 1, 10, priority=5),
    )
    # at 20 it may be stopped, with 20 of 50 done
    assert spells(Snapshot(nodes=(node("a", 1),), jobs=jobs), name) == {"low": [(0, 20), (30, 60)], "high": [(20, 30)]}


# --- service and shares ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("comes", "starts"), [(4000.0, 4000.0), (1000.0, 3250.0)])
def test_the_least_served_goes_first_by_queues(comes: float, starts: float) -> None:
    # x goes down at 3,250 card seconds; until then it stays before those that came later
    jobs = (job("x", 1, 10000, **KEPT), job("y", 1, 100, submit_time=comes))
    found = spells(Snapshot(nodes=(node("a", 1),), jobs=jobs), "tiresias-las")
    assert found == {"x": [(0, starts), (starts + 100, 10100)], "y": [(starts, starts + 100)]}


def test_service_counts_cards() -> None:
    # 2 cards: down at 1,625 seconds
    jobs = (job("x", 2, 5000, **KEPT), job("y", 1, 100, submit_time=1.0))
    found = spells(Snapshot(nodes=(node("a", 2),), jobs=jobs), "tiresias-las")
    assert found["y"] == [(1625, 1725)]


def test_gavel_takes_turns_in_rounds() -> None:
    # half of the card each: rounds of 360 seconds in turn, the first of the file first where they are even
    jobs = (job("x", 1, 720, **KEPT), job("y", 1, 720, **KEPT))
    found = spells(Snapshot(nodes=(node("a", 1),), jobs=jobs), "gavel")
    assert found == {"x": [(0, 360), (720, 1080)], "y": [(360, 720), (1080, 1440)]}


def test_gavel_does_not_stop_who_would_lose_all() -> None:
    jobs = (job("x", 1, 720, preemptible=True), job("y", 1, 720, preemptible=True))
    found = spells(Snapshot(nodes=(node("a", 1),), jobs=jobs), "gavel")
    assert found == {"x": [(0, 720)], "y": [(720, 1440)]}


def shares_of(snapshot: Snapshot) -> dict[int, list[float]]:
    desk = Desk(compile_work(snapshot))
    kinds = Kinds(desk)
    return fair_shares(desk, kinds, range(desk.work.jobs), kinds.units)


def test_shares_follow_speed_on_several_kinds() -> None:
    # one card of each: whoever is twice as slow on B gets A, and the other, to whom it is all one, B
    jobs = (job("x", 1, 10, factors={"B": 2}), job("y", 1, 10))
    assert shares_of(Snapshot(nodes=(node("a", 1), node("b", 1, "B")), jobs=jobs)) == {0: [1, 0], 1: [0, 1]}


def test_shares_rise_together_on_one_kind() -> None:
    # 4 cards; x wants 1, y 4, z 4 of twice the weight. At level 1 x is full; of 3 left y has 1 and z 2 cards' worth.
    jobs = (job("x", 1, 10), job("y", 4, 10), job("z", 4, 10, weight=2))
    assert shares_of(Snapshot(nodes=(node("a", 4),), jobs=jobs)) == {0: [1], 1: [0.25], 2: [0.5]}


# --- all of them -------------------------------------------------------------------------------------------------


@st.composite
def workloads(draw: st.DrawFn) -> Snapshot:
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    nodes = tuple(node(f"n{number}", size, draw(st.sampled_from("AAB"))) for number, size in enumerate(sizes))
    jobs = []
    for number in range(draw(st.integers(1, 6))):
        one = job(
            f"j{number}",
            draw(st.integers(0, 2)),
            draw(st.sampled_from((0.0, 1.0, 3.5, 40.0, 400.0, 4000.0))),
            tasks=draw(st.integers(1, 3)),
            priority=draw(st.integers(0, 2)),
            weight=draw(st.integers(1, 3)),
            submit_time=draw(st.sampled_from((None, -5.0, 2.0, 30.0, 500.0))),
            preemptible=draw(st.booleans()),
            checkpoint_interval=draw(st.sampled_from((None, 1.0, 30.0))),
            restart_seconds=draw(st.sampled_from((None, 2.0, 500.0))),
            minimum_run_seconds=draw(st.sampled_from((0.0, 10.0))),
            after=(f"j{number - 1}",) if number and draw(st.integers(0, 5)) == 5 else (),
        )
        free = number == 0 and one.groups == job("one", 1, 1).groups
        one = replace(one, submit_time=None) if free else one
        jobs.append(running(one, "n0", (0,), since=-2.0) if free else one)
    return Snapshot(nodes=nodes, jobs=tuple(jobs))


@pytest.mark.parametrize("name", BASELINES)
@settings(max_examples=25, deadline=None)
@given(snapshot=workloads())
def test_what_every_policy_keeps_to(name: str, snapshot: Snapshot) -> None:
    work, table = run(snapshot, name)
    spells_of: dict[Any, list[tuple[int, int]]] = defaultdict(list)
    done: dict[int, int] = defaultdict(int)
    ends = table.ends()
    for one in table.stretches:
        assert one.start >= work.release[one.job]
        assert all(one.start >= ends[other] for other in work.after[one.job])
        assert 0 <= one.restart + one.lost <= one.end - one.start
        spells_of["job", one.job].append((one.start, one.end))
        done[one.job] += one.end - one.start - one.restart - one.lost
        for _, _, (place, cards) in one.tasks:
            for card in cards:
                spells_of["card", place, card].append((one.start, one.end))
    for taken in spells_of.values():
        taken = sorted(spell for spell in taken if spell[0] < spell[1])
        assert all(before[1] <= after[0] for before, after in pairwise(taken))
    alone = Desk(work)
    starts = {number for number in range(work.jobs) if alone.length(number) < NEVER}
    for number in range(work.jobs):  # in the order of the file, as `after` goes
        starts -= {number} if not starts.issuperset(work.after[number]) else set()
    assert {one.job for one in table.stretches} == starts
    assert table.never == set(range(work.jobs)) - starts
    for number in starts - work.ongoing.keys():
        duration = snapshot.jobs[number].duration
        assert duration is not None
        assert done[number] == 1000 * duration.seconds
