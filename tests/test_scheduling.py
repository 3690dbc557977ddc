"""Time: what runs, what is lost, when things start; every number by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest
from msgspec.structs import replace
from policy_cases import job, node, run, running, spells

import placement as pl
from placement.scheduling.baselines import BASELINES
from placement.scheduling.compile import compile_work
from placement.scheduling.desk import Desk
from placement.snapshot import Job, Reservation, Snapshot

YEARS = 10 * 365 * 86400.0


def desk_of(*jobs: Job, cards: int = 8, time: float = 0.0) -> Desk:
    desk = Desk(compile_work(Snapshot(time=time, nodes=(node("a", cards),), jobs=jobs)))
    desk.waiting.update(dict.fromkeys((number for number, one in enumerate(jobs) if one.running is None), 0))
    return desk


def at(desk: Desk, seconds: int) -> Desk:
    desk.now = 1000 * seconds
    return desk


def shown(desk: Desk) -> list[tuple[float, float, float, float]]:
    return [(one.start / 1000, one.end / 1000, one.restart / 1000, one.lost / 1000) for one in desk.stretches]


# --- work, restarts and losses -----------------------------------------------------------------------------------


def test_a_job_stopped_twice_loses_what_no_checkpoint_saved() -> None:
    desk = desk_of(job("x", 1, 100, checkpoint_interval=30, restart_seconds=5, preemptible=True))
    assert at(desk, 0).start(0)
    at(desk, 70).stop(0)  # 70 done, 60 saved
    assert desk.todo[0] == Fraction(40, 100)
    assert at(desk, 80).start(0)
    assert desk.live[0].end == 125_000  # 80 + 5 + 40
    at(desk, 100).stop(0)  # 5 restored, 15 done, none of them saved
    assert desk.todo[0] == Fraction(40, 100)
    assert at(desk, 110).start(0)
    at(desk, 112).stop(0)  # stopped while it is restored
    assert at(desk, 120).start(0)
    assert desk.live[0].end == 165_000  # 120 + 5 + 40
    at(desk, 165).finish(0)
    # 60 + 0 + 0 + 40 = 100 seconds of work are kept
    assert shown(desk) == [(0, 70, 0, 10), (80, 100, 5, 15), (110, 112, 2, 0), (120, 165, 5, 0)]


def test_without_checkpoints_all_is_lost() -> None:
    desk = desk_of(job("x", 1, 100, restart_seconds=5, preemptible=True))
    assert at(desk, 0).start(0)
    at(desk, 70).stop(0)
    assert desk.todo[0] == 1
    assert at(desk, 80).start(0)
    assert desk.live[0].end == 185_000  # 80 + 5 + 100
    assert shown(desk) == [(0, 70, 0, 70)]


def test_what_is_started_and_stopped_at_one_moment_costs_nothing() -> None:
    x = job("x", 1, 100, checkpoint_interval=30, restart_seconds=5, preemptible=True)
    desk = desk_of(x)
    assert at(desk, 10).start(0)
    desk.stop(0)
    assert desk.waiting == {0: 0}  # since it came, not since it was stopped
    assert desk.todo == {}
    assert desk.stretches == []
    assert at(desk, 20).start(0)
    at(desk, 60).stop(0)  # 40 done, 30 saved
    assert at(desk, 70).start(0)
    desk.stop(0)
    assert desk.waiting == {0: 60_000}
    assert desk.todo[0] == Fraction(70, 100)
    assert at(desk, 80).start(0)
    assert desk.live[0].end == 155_000  # 80 + 5 + 70


def test_what_runs_now_and_is_stopped_now_is_restored_once() -> None:
    x = job("x", 1, 100, restart_seconds=5, preemptible=True)
    desk = desk_of(running(x, "a", (0,), since=0.0))
    for _ in range(2):
        desk.stop(0)
        assert desk.todo[0] == 1
        assert desk.start(0)
    assert desk.live[0].end == 105_000


@pytest.mark.parametrize(
    ("last", "stop", "lost", "todo"),
    [
        # started 100 ago, 60 of 200 were saved 40 ago; 40 + 5 < 50, so the next checkpoint is not written
        (960.0, 5, 5, Fraction(140, 200)),
        # 40 + 20 >= 50: saved up to 60 + 50
        (960.0, 20, 10, Fraction(90, 200)),
        # none for 100, though two were due: what is not said to be saved is not
        (900.0, 20, 20, Fraction(200, 200)),
        # 100 + 60 >= 150: the next one is
        (900.0, 60, 10, Fraction(50, 200)),
    ],
)
def test_a_job_that_ran_before_goes_by_its_last_checkpoint(last: float, stop: int, lost: float, todo: Fraction) -> None:
    one = job("x", 1, 200, checkpoint_interval=50, preemptible=True)
    desk = desk_of(running(one, "a", (0,), since=900.0, last_checkpoint=last), time=1000.0)
    at(desk, stop).stop(0)
    assert shown(desk) == [(0, stop, 0, lost)]
    assert desk.todo[0] == todo


def test_minimum_run_and_hard_deadline_forbid_stopping() -> None:
    desk = desk_of(
        job("x", 1, 100, preemptible=True, minimum_run_seconds=10),
        job("y", 1, 100, preemptible=True, deadline=500.0, hard_deadline=True),
        job("z", 1, 100),
    )
    assert all(at(desk, 0).start(number) for number in range(3))
    assert [at(desk, 9).may_stop(number) for number in range(3)] == [False, False, False]
    assert [at(desk, 10).may_stop(number) for number in range(3)] == [True, False, False]


# --- when things happen ------------------------------------------------------------------------------------------


class Watch:
    """Starts what fits and remembers when the first job was expected to end."""

    name, period = "watch", 0

    def __init__(self) -> None:
        self.seen: list[tuple[int, int]] = []

    def decide(self, desk: Desk) -> None:
        for one in sorted(desk.waiting):
            desk.start(one)
        if 0 in desk.live:
            self.seen.append((desk.now // 1000, desk.live[0].expected // 1000))


def test_overruns_go_by_steps_from_the_first_estimate() -> None:
    # 100 estimated, 450 in truth: at 120 it is 20 over, so 100 + 60; at 170 it is 70 over: 100 + 300; at 410: 100 + 900
    others = tuple(job(f"y{number}", 1, 1, submit_time=float(number)) for number in (120, 170, 410))
    watch = Watch()
    slow = [Fraction(9, 2), *[Fraction(1)] * 3]
    found = spells(Snapshot(nodes=(node("a", 8),), jobs=(job("x", 1, 100), *others)), watch, slow)
    assert found["x"] == [(0, 450)]
    # one-second jobs end at 121, 171 and 411
    assert watch.seen == [(0, 100), (120, 160), (121, 160), (170, 400), (171, 400), (410, 1000), (411, 1000)]


def test_a_job_that_is_over_already_is_expected_by_the_same_steps() -> None:
    # 130 of 100 done: 30 over, so 60 in all; at 40 it is 70 over: 300 in all, 270 from the snapshot's time
    x = running(job("x", 1, 100), "a", (0,), since=-130.0)
    watch = Watch()
    spells(
        Snapshot(nodes=(node("a", 8),), jobs=(x, job("y", 1, 1, submit_time=40.0))), watch, [Fraction(9), Fraction(1)]
    )
    assert watch.seen[:2] == [(0, 30), (40, 270)]


def test_windows_let_in_who_is_named_or_done_before() -> None:
    window = Reservation(name="r", nodes=("a",), start=50.0, end=100.0, jobs=("named",))
    jobs = (job("long", 1, 60), job("short", 1, 50), job("named", 1, 60))
    found = spells(Snapshot(nodes=(node("a", 8),), jobs=jobs, reservations=(window,)), "fifo-list")
    assert found == {"short": [(0, 50)], "named": [(0, 60)], "long": [(100, 160)]}


def test_a_job_starts_on_nodes_that_stay_open_until_it_ends_there() -> None:
    # 10 s on the node of model A, which is taken; 20 s on b, which is closed from 15 on, and on c
    nodes = (node("a", 1), node("b", 1, "B"), node("c", 1, "B"))
    aside = (Reservation(name="aside", nodes=("b",), start=15, end=100),)
    taken = running(replace(job("taken", 1, 1000), duration=None), "a", (0,))
    x = job("x", 1, 10, factors={"B": 2.0})
    found = spells(Snapshot(nodes=nodes, jobs=(taken, x), reservations=aside), "fifo")
    assert found == {"x": [(0, 20)]}
    # without c it waits until b is open again
    found = spells(Snapshot(nodes=nodes[:2], jobs=(taken, x), reservations=aside), "fifo")
    assert found == {"x": [(100, 120)]}


def test_what_comes_after_waits_for_the_end_and_the_release() -> None:
    jobs = (job("c", 1, 5, after=("b",)), job("b", 1, 5, after=("a",), submit_time=25.0), job("a", 1, 10))
    assert spells(Snapshot(nodes=(node("a", 8),), jobs=jobs), "fifo") == {
        "a": [(0, 10)],
        "b": [(25, 30)],
        "c": [(30, 35)],
    }


@pytest.mark.parametrize("name", BASELINES)
def test_hard_deadlines_leave_out_and_soft_ones_do_not(name: str) -> None:
    busy = running(job("busy", 1, 3600), "a", (0,), since=0.0)
    jobs = (busy, job("hard", 1, 10, deadline=3605.0, hard_deadline=True), job("soft", 1, 10, deadline=3605.0))
    made = pl.schedule(Snapshot(nodes=(node("a", 1),), jobs=jobs), solver=name)
    assert [(one.job, one.reason) for one in made.left_out] == [("hard", "late")]
    assert (made.jobs.job, made.jobs.end) == (["soft"], [3610.0])


def test_a_hard_deadline_holds_on_slow_cards_too() -> None:
    # on A 10 seconds, but A is taken for 100; on B 30, too long for a deadline at 25
    busy = running(job("busy", 1, 100), "a", (0,))
    hard = job("hard", 1, 10, factors={"B": 3}, deadline=25.0, hard_deadline=True)
    _, table = run(Snapshot(nodes=(node("a", 1), node("b", 1, "B")), jobs=(busy, hard)), "fifo")
    assert (table.late, table.never, [one.job for one in table.stretches]) == ({1}, set(), [0])


def test_an_elastic_gang_starts_with_what_there_is() -> None:
    # 2 of 4 cards are free; with 2 of 4 tasks it is half as fast: 100 / 0.5
    busy = running(job("busy", 2, 10), "a", (0, 1))
    gang = job("gang", 1, 100, tasks=4, least=2, scaling=((2, 0.5),))
    assert spells(Snapshot(nodes=(node("a", 4),), jobs=(busy, gang)), "fifo")["gang"] == [(0, 200)]


@pytest.mark.parametrize("name", BASELINES)
def test_who_waits_for_endless_work_or_fits_nowhere_never_starts(name: str) -> None:
    endless = pl.Job(name="endless", groups=job("e", 4, 1).groups)
    jobs = (running(endless, "a", (0, 1, 2, 3)), job("wide", 8, 10), job("huge", 9, 10), job("small", 4, 10))
    after = job("after", 1, 1, after=("endless",))
    made = pl.schedule(Snapshot(nodes=(node("a", 8),), jobs=(*jobs, after)), solver=name)
    assert {(one.job, one.reason) for one in made.left_out} == {(one, "never") for one in ("wide", "huge", "after")} | (
        {("small", "never")} if name == "fifo" else set()
    )


@pytest.mark.parametrize("name", BASELINES)
def test_moments_and_decades(name: str) -> None:
    jobs = (job("nothing", 8, 0), job("decade", 8, YEARS), job("second", 8, 1))
    made = pl.schedule(Snapshot(nodes=(node("a", 8),), jobs=jobs), solver=name)
    spell = {one: end - start for one, start, end in zip(made.jobs.job, made.jobs.start, made.jobs.end, strict=True)}
    assert spell == {"nothing": 0, "decade": YEARS, "second": 1}
    assert not made.left_out
