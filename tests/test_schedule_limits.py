"""What a schedule may not pass over in silence: limits on stops, bounds that it contradicts, late work, other aims."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from policy_cases import job, node, running

import placement as pl
from placement.plan import Provenance
from placement.scheduling.answer import CONTRADICTED, schedule_of
from placement.scheduling.baselines import baseline
from placement.scheduling.compile import compile_work
from placement.scheduling.schedule import OTHER_AIM
from placement.snapshot import Policy, Snapshot
from placement.snapshot.read import digest, verified
from placement.solver import Stop

STOPPING = ("priority-preemptive", "volcano-gang-preempt", "kueue-preemption", "tiresias-las")


def two_in_the_way(**policy: Any) -> Snapshot:
    """Return a node of 4 cards on which two jobs of 2 run for 100,000 s, and one of 4 that has waited for 10 s."""
    held = [
        running(job(name, 2, 100_000, preemptible=True, checkpoint_interval=1.0), "a", cards, since=-10_000.0)
        for name, cards in (("r", (0, 1)), ("s", (2, 3)))
    ]
    jobs = (*held, job("x", 4, 10, priority=1, submit_time=-10.0))
    return Snapshot(nodes=(node("a", 4),), jobs=jobs, policy=Policy(**policy))


@pytest.mark.parametrize("solver", [*STOPPING, "auto"])
def test_no_more_running_jobs_are_stopped_than_may_be(solver: str) -> None:
    # x needs all cards, so it starts at 0 where two may be stopped, and else when both have ended: at 90,000
    for most, start in ((None, 0.0), (2, 0.0), (1, 90_000.0), (0, 90_000.0)):
        found = pl.schedule(two_in_the_way(max_preemptions=most), solver=solver)
        assert dict(zip(found.jobs.job, found.jobs.start, strict=True))["x"] == start, most


@pytest.mark.parametrize("solver", STOPPING)
def test_the_judge_counts_stopped_jobs(solver: str) -> None:
    two, one = two_in_the_way(max_preemptions=2), two_in_the_way(max_preemptions=1)
    found = pl.schedule(two, solver=solver)
    assert pl.check(two, found) == []
    found.snapshot = digest(verified(one))
    assert [(wrong.rule, wrong.path) for wrong in pl.check(one, found)] == [("preemption", "stretches")]


def test_a_bound_that_the_schedule_contradicts_is_not_used() -> None:
    snapshot = Snapshot(nodes=(node("a", 4),), jobs=(job("x", 4, 10),))
    work = compile_work(snapshot)
    found = baseline(work, "fifo")
    about = Provenance(version="", solver="")
    for bound, shown, status in ((10_000, 10.0, "proven"), (9_999, 9.999, "bounded"), (10_001, None, "feasible")):
        made = schedule_of(work, found.table, bound, Stop.OPTIMAL, about, digest(snapshot), (), snapshot)
        assert (made.bound, made.status, made.notes) == (shown, status, [CONTRADICTED] * (shown is None))


def test_a_bound_beyond_all_doubles_in_milliseconds_is_not_rounded_up() -> None:
    # 10 years with a weight of 10^9 are 3.1536e20 ms, and neighbouring doubles of so many seconds lie 64 s apart.
    snapshot = Snapshot(nodes=(node("a", 1),), jobs=(job("x", 1, 315_360_000.0, weight=10**9),))
    found = baseline(compile_work(snapshot), "fifo")
    value = 10**9 * 315_360_000_000
    about = Provenance(version="", solver="")
    for less, shown, status in ((0, value / 1000, "proven"), (1, value / 1000 - 64, "bounded")):
        work = compile_work(snapshot)
        made = schedule_of(work, found.table, value - less, Stop.OPTIMAL, about, digest(snapshot), (), snapshot)
        assert (made.bound, made.status) == (shown, status)
        assert pl.check(snapshot, made) == []


def test_work_that_takes_longer_than_estimated_is_noted() -> None:
    # it was to run for 10 s and has run for 25: after 15 s over, it is expected to have run for 60 s over at its end
    late = running(job("late", 4, 10), "a", (0, 1, 2, 3), since=-25.0)
    found = pl.schedule(Snapshot(nodes=(node("a", 4),), jobs=(late, job("x", 4, 10))), solver="fifo")
    assert found.notes == ["late has run 15 s longer than estimated and is expected to end in 45 s"]
    assert found.jobs.start == [45.0]
    many = [running(job(f"j{n}", 1, 10), f"n{n}", (0,), since=-25.0) for n in range(12)]
    found = pl.schedule(Snapshot(nodes=tuple(node(f"n{n}", 1) for n in range(12)), jobs=tuple(many)), solver="fifo")
    assert (len(found.notes), found.notes[-1]) == (11, "and 2 more jobs have run longer than estimated")


@pytest.mark.parametrize(("every", "again"), [(None, 70.0), (10.0, 50.0)])
def test_what_is_past_its_estimate_is_not_done_sooner_by_stopping_it(every: float | None, again: float) -> None:
    """Of 10 s it has run 25: after 15 over it is expected to run for 60 over, 70 in all, 45 from now.

    If it goes on, it ends at 45 and urgent at 50, 95 together. If it is stopped, urgent ends at 5 and it has 70 s
    before it, 75 + 5 = 80; with 20 of them saved 50 s, 55 + 5 = 60. Alone it goes on.
    """
    late = running(job("late", 4, 10), "a", (0, 1, 2, 3), since=-25.0)
    late = replace(late, preemptible=True, checkpoint_interval=every)
    found = pl.schedule(Snapshot(nodes=(node("a", 4),), jobs=(late, replace(job("urgent", 4, 5), priority=1))))
    assert dict(zip(found.jobs.job, found.jobs.end, strict=True)) == {"late": 5.0 + again, "urgent": 5.0}
    assert found.value == 10.0 + again
    assert found.bound is not None
    assert found.bound <= found.value
    assert pl.schedule(Snapshot(nodes=(node("a", 4),), jobs=(late,))).jobs.end == [45.0]


def test_another_aim_is_noted() -> None:
    snapshot = Snapshot(nodes=(node("a", 4),), jobs=(job("x", 4, 10),))
    for objectives, notes in ((("nodes",), [OTHER_AIM]), (("completion_time",), []), (Policy().objectives, [])):
        of = replace(snapshot, policy=Policy(objectives=objectives))  # type: ignore[arg-type]
        assert pl.schedule(of).notes == notes
