"""The search over devices: as good as brute force on tiny clusters, no worse than policies, and by hand."""

from __future__ import annotations

import math
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from brute_schedules import optimum, random_schedule_case
from msgspec.structs import replace
from policy_cases import job, node, running

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

import agreement_time

from placement.check.schedules.judge import check_schedule
from placement.heuristics.filling import OutOfTimeError
from placement.plan import Provenance
from placement.scheduling.answer import schedule_of
from placement.scheduling.baselines import baseline
from placement.scheduling.compile import compile_work
from placement.scheduling.found import Found
from placement.scheduling.on_devices.climb import Climb, Climbing
from placement.scheduling.on_devices.passing import Bench, Choice, Way
from placement.scheduling.on_devices.search import search_devices
from placement.scheduling.progress import silent
from placement.scheduling.timing import Timetable
from placement.scheduling.work import Work
from placement.snapshot import Job, Policy, Queue, Reservation, Snapshot
from placement.snapshot.read import digest, verified
from placement.solver import Limits, Stop

MAY: dict[str, Any] = {"preemptible": True, "restart_seconds": 1.0, "checkpoint_interval": 1.0}


def cluster(*jobs: Job, cards: int = 4, **more: Any) -> Snapshot:
    return verified(Snapshot(time=0.0, nodes=(node("a", cards),), jobs=jobs, **more))


def search(snapshot: Snapshot, limits: Limits | None = None, seed: int = 0) -> tuple[Work, Found]:
    """Return what is found, accepted by the judge."""
    work = compile_work(snapshot)
    found = search_devices(work, limits or Limits(), seed, silent)
    provenance = Provenance(version="", solver=found.method, objectives=("completion_time",))
    made = schedule_of(work, found.table, found.bound, found.stop, provenance, digest(snapshot), (), snapshot)
    assert list(check_schedule(snapshot, made)) == []
    return work, found


def spells(work: Work, table: Timetable) -> list[tuple[int, float, float]]:
    return sorted((one.job, one.start / 1000, one.end / 1000) for one in table.stretches)


# --- against brute force -----------------------------------------------------------------------------------------


def test_tiny_clusters_are_solved_as_by_brute_force_and_bounds_are_bounds() -> None:
    record = agreement_time.Record()
    for seed in (*range(40), 1075):  # in the last a gang that is tied has quota for fewer of its tasks
        agreement_time.compare(verified(random_schedule_case(seed)), f"seed {seed}", record)
    assert record.wrong == []
    assert record.missed == []
    # on seed 8 what runs may be stopped only after 2 s: brute force, which stops jobs at 0 or never, comes to 43 s
    assert record.line("search over devices").agree == 40
    assert record.features["better by stopping later"] == 1
    assert all(record.features[one] >= 2 for one in ("elastic", "topology", "quotas", "preemptible", "stopped now"))


def test_brute_force_by_hand() -> None:
    # One node of 4 cards. r has 9 of 10 s to go, x takes 2 s: 9 + 11, or 2 and r restored from 2: 2 + (2 + 1 + 9).
    r = running(job("r", 4, 10, **MAY), "a", (0, 1, 2, 3), since=-1.0)
    assert optimum(cluster(r, job("x", 4, 2, priority=1))) == (14_000, frozenset())
    assert optimum(cluster(r, job("x", 4, 2))) == (20_000, frozenset())
    assert optimum(cluster(r, job("x", 5, 2, priority=1))) == (9_000, frozenset({"x"}))
    # Of 2 cards for p and 1 for q, lent freely, with 1 more on top: 4 in all; q borrows none, so y waits for x.
    queues = (
        Queue(name="p", parent="top", quota={"*": 2}),
        Queue(name="q", parent="top", quota={"*": 1}, borrowing_limit={"*": 0}),
        Queue(name="top", quota={"*": 1}),
    )
    jobs = (job("x", 1, 2, queue="q"), job("y", 1, 3, queue="q"), job("z", 3, 4, queue="p"))
    assert optimum(cluster(*jobs, queues=queues)) == (2_000 + 5_000 + 4_000, frozenset())


# --- by hand -----------------------------------------------------------------------------------------------------


def test_a_job_is_stopped_only_for_one_of_higher_priority_that_gains() -> None:
    # r has 9 of 10 s to go (1 done, kept by a checkpoint), x 2 s. Waiting: r ends at 9, x at 11: 20. Stopping r: x ends
    # at 2, r is restored and ends at 2 + 1 + 9 = 12: 14.
    r = running(job("r", 4, 10, **MAY), "a", (0, 1, 2, 3), since=-1.0)
    work, found = search(cluster(r, job("x", 4, 2, priority=1)))
    assert spells(work, found.table) == [(0, 2, 12), (1, 0, 2)]
    assert found.table.value(work) == 14_000
    for x in (job("x", 4, 2), job("x", 4, 11, priority=1)):
        # not for its equal; and for 11 s (11 + 21) there is nothing to be gained over 9 + 20
        work, found = search(cluster(r, x))
        assert spells(work, found.table)[0] == (0, 0, 9)


def test_minimum_runs_and_most_preemptions_are_kept_to() -> None:
    r = running(job("r", 4, 10, **MAY, minimum_run_seconds=20.0), "a", (0, 1, 2, 3), since=-1.0)
    work, found = search(cluster(r, job("x", 4, 2, priority=1)))
    assert spells(work, found.table) == [(0, 0, 9), (1, 9, 11)]
    halves = [
        running(job(name, 2, 10, **MAY), "a", cards, since=-1.0) for name, cards in (("r", (0, 1)), ("s", (2, 3)))
    ]
    short = [job(name, 2, 2, priority=1) for name in "xy"]
    for most, stopped in ((0, 0), (1, 1), (None, 2)):
        snapshot = cluster(*halves, *short, policy=Policy(max_preemptions=most))
        work, found = search(snapshot)
        assert sum(one.job < 2 and one.start > 0 for one in found.table.stretches) == stopped
        # none: 9 + 9 + 11 + 11; one: x at 2, y after it at 4, r from 4 to 14, s until 9; both: 2 + 2 + 12 + 12
        assert found.table.value(work) == {0: 40_000, 1: 29_000, 2: 28_000}[stopped]


def test_a_gang_starts_with_fewer_tasks_now_or_with_all_later() -> None:
    # 4 cards, 3 of them in use until t. With 1 of 4 tasks at a quarter of the speed 8 s take 32 s.
    for until, expected in ((5, (5, 13)), (40, (0, 32))):
        r = running(job("r", 3, until), "a", (0, 1, 2), since=0.0)
        snapshot = cluster(r, job("x", 1, 8, tasks=4, least=1, scaling=((1, 0.25), (2, 0.5), (3, 0.75))))
        work, found = search(snapshot)
        assert spells(work, found.table)[1] == (1, *expected)


def test_jobs_wait_for_windows_and_for_others_and_are_left_out_if_late() -> None:
    window = Reservation(name="w", nodes=("a",), start=3.0, end=6.0)
    jobs = (
        job("long", 4, 4),
        job("short", 4, 3),
        job("then", 2, 1, after=("long",)),
        job("late", 4, 2, deadline=4.0, hard_deadline=True),
    )
    work, found = search(cluster(*jobs, reservations=(window,)))
    # Only one of short and late can end before the window, and late is not left out: 2. Then long, then, short: 10 + 11
    # + 14 = 35; with short first it would be 9 + 13 + 14 = 36.
    assert found.table.late == set()
    assert spells(work, found.table) == [(0, 6, 10), (1, 11, 14), (2, 10, 11), (3, 0, 2)]
    work, found = search(cluster(*(replace(one, deadline=1.0) if one.hard_deadline else one for one in jobs)))
    assert found.table.late == {3}


def test_an_answer_that_leaves_a_job_out_is_not_the_best_for_being_cheap() -> None:
    # on one card: x and y come at 0 and 2 and run for 6 and 1 s, both until 8 at the latest; z runs for 2 s. First z
    # and y without x: 2 * 2 + 3 * 1 = 7, which no schedule beats that may leave out x. But x, y and z one after the
    # other leave out nobody: x 2 * 6, y 3 * (7 - 2), z 2 * 9, in all 45.
    x = job("x", 1, seconds=6.0, weight=2, deadline=8.0, hard_deadline=True)
    y = job("y", 1, seconds=1.0, weight=3, submit_time=2.0, deadline=8.0, hard_deadline=True)
    z = job("z", 1, seconds=2.0, weight=2, priority=1)
    work, found = search(cluster(x, y, z, cards=1))
    assert spells(work, found.table) == [(0, 0.0, 6.0), (1, 6.0, 7.0), (2, 7.0, 9.0)]
    assert (found.table.late, found.table.value(work)) == (set(), 45_000)
    assert found.bound is not None
    assert found.bound <= 45_000
    # one that is late whatever is done keeps nothing from being proven
    work, found = search(cluster(x, replace(z, weight=1, deadline=1.0, hard_deadline=True), cards=1))
    assert (found.table.late, found.stop, found.bound) == ({1}, Stop.OPTIMAL, 12_000)


def test_fast_cards_are_waited_for_where_that_is_better() -> None:
    # 10 s on A, 40 s on B; A is free at 5 s.
    r = running(job("r", 2, 5), "a", (0, 1), since=0.0)
    snapshot = Snapshot(time=0.0, nodes=(node("a", 2), node("b", 2, "B")), jobs=(r, job("x", 2, 10, factors={"B": 4})))
    work, found = search(verified(snapshot))
    assert spells(work, found.table)[1] == (1, 5, 15)


def test_a_strict_policy_that_waits_for_ever_is_no_better_for_it() -> None:
    # wide, which came first, never fits beside what runs for ever; first in, first out starts nobody after it
    r = replace(running(job("r", 1, 1), "a", (0,)), duration=None)
    snapshot = cluster(r, job("wide", 4, 1, submit_time=-2.0), job("x", 2, 3, submit_time=-1.0))
    assert baseline(compile_work(snapshot), "fifo").table.never == {1, 2}
    work, found = search(snapshot)
    assert found.table.never == {1}
    assert spells(work, found.table) == [(2, 0, 3)]


# --- limits ------------------------------------------------------------------------------------------------------


def test_without_a_time_limit_the_same_comes_of_the_same() -> None:
    snapshot = verified(random_schedule_case(13))
    _, one = search(snapshot, seed=3)
    _, other = search(snapshot, seed=3)
    assert one == other
    assert one.stop in (Stop.WORK, Stop.COMPLETE, Stop.OPTIMAL)


def test_without_time_a_policy_is_all_there_is() -> None:
    snapshot = verified(random_schedule_case(13))
    work, found = search(snapshot, Limits(deadline=0.0))
    assert found.table == baseline(work, found.method).table
    assert found.stop is Stop.TIME
    assert search(snapshot, Limits(gap=1.0))[1].stop is Stop.GAP


def test_a_policy_is_given_up_at_its_deadline() -> None:
    work = compile_work(cluster(job("x", 1, 2.0), job("y", 4, 1.0)))
    with pytest.raises(OutOfTimeError):
        baseline(work, "conservative-backfill", time.monotonic() - 1.0)
    assert baseline(work, "conservative-backfill", time.monotonic() + 60.0).table.value(work) == 2000 + 3000


def test_nothing_runs_where_there_are_no_nodes() -> None:
    _, found = search(verified(Snapshot(time=0.0, nodes=(), jobs=(job("x", 1, 1),))))
    assert (found.table.never, found.table.stretches, found.bound) == ({0}, [], 0)


def test_passes_that_begin_alike_go_on_alike() -> None:
    # a pass that goes on from where another was is the same as one from the beginning
    snapshot = verified(random_schedule_case(13))
    work = compile_work(snapshot)
    bench, fresh = Bench(work), Bench(work)
    order = tuple(bench.waiting)
    bench.run(Choice(order))
    bench.keep()
    for at in range(len(order) - 1):
        swapped = (*order[:at], order[at + 1], order[at], *order[at + 2 :])
        assert bench.run(Choice(swapped)) == fresh.run(Choice(swapped))
    assert bench.run(Choice(order, ways={order[-1]: Way(1, 1)})) == fresh.run(
        Choice(order, ways={order[-1]: Way(1, 1)})
    )


def test_a_climb_stops_no_more_than_it_may() -> None:
    r = running(job("r", 4, 10, **MAY), "a", (0, 1, 2, 3), since=-1.0)
    work = compile_work(cluster(r, job("x", 4, 2, priority=1)))
    seen: list[Timetable] = []

    def take(table: Timetable) -> tuple[int, int, int]:
        seen.append(table)
        return 0, 0, table.value(work)

    climb = Climb(Bench(work), Climbing(take, lambda made: made / 50), 0, 1)
    climb.begin([(1, 0)], [frozenset(), frozenset({0})])
    climb.run()
    assert math.isclose(climb.passes, 50)
    assert all(one.start == 0 for table in seen for one in table.stretches if one.job == 0)
