"""MIG beside zones, paths, run times and domains: the engine and the judge measure alike, and plans are accepted."""

from __future__ import annotations

import random
from collections.abc import Sequence

import mig_brute
import pytest
from brute import TooLarge
from mig_dressed import OBJECTIVES, random_dressed
from mig_tiny import random_mig
from msgspec.structs import replace

from placement import solve
from placement.check import objective
from placement.compile import compile as compile_snapshot
from placement.evaluate import scores
from placement.exact.mig.places import only
from placement.exact.timed import untimed
from placement.heuristics import HEURISTICS
from placement.instance import Assignment
from placement.models.assignment import pending_tasks
from placement.naming import name_tasks
from placement.pending import pending
from placement.snapshot.read import verified
from placement.solver import Limits


@pytest.mark.parametrize("seed", range(60))
def test_the_engine_measures_as_the_judge_does(seed: int) -> None:
    snapshot = verified(random_dressed(seed))
    instance = compile_snapshot(snapshot)
    for name in random.Random(seed).sample(sorted(HEURISTICS), 6):
        if HEURISTICS[name].supports(instance) is None:
            found = HEURISTICS[name].solve(instance, objectives=snapshot.policy.objectives, limits=Limits()).assignment
            mine = [(one.objective, one.priority, one.value) for one in scores(instance, found, OBJECTIVES)]
            assert mine == [tuple(one) for one in objective(snapshot, name_tasks(instance, found), OBJECTIVES)], name


@pytest.mark.parametrize("seed", range(60))
def test_plans_are_accepted_at_once(seed: int) -> None:
    plan = solve(verified(random_dressed(seed)))
    assert plan.checked
    assert not [note for note in plan.notes if "refused" in note or "contradicts" in note]


@pytest.mark.parametrize("first", range(0, 150, 30))
def test_what_can_never_run_cannot(first: int) -> None:
    """A job that is said never to run does not run on the cluster without other work."""
    said = 0
    for seed in range(first, first + 30):
        snapshot = verified(random_mig(seed, scarce=seed % 2 == 0, mixed=seed % 3 > 0))
        instance = compile_snapshot(snapshot)
        never = {
            one.job
            for one in pending(instance, Assignment.empty(), snapshot.policy.objectives)
            if one.reason == "never"
        }
        for job in snapshot.jobs:
            names = [job.name] if job.count == 1 else [f"{job.name}-{number}" for number in range(job.count)]
            if job.running is None and never.intersection(names):
                alone = replace(snapshot, jobs=(replace(job, count=1),))
                said += 1
                assert most_tasks(alone) in (0, None), (seed, job)
    assert said > 10


def most_tasks(snapshot: object) -> int | None:
    try:
        return int(mig_brute.optimum(snapshot, ("tasks",))[0].value)  # type: ignore[arg-type]
    except TooLarge:
        return None


def test_a_part_of_the_jobs_is_no_more_than_that() -> None:
    """What methods do with an instance of some jobs must not bring back the others."""
    snapshot = verified(random_dressed(14))
    instance = compile_snapshot(snapshot)
    for number, one in enumerate(instance.job_classes):
        part = only(instance, [number])
        jobs = sorted(one.jobs.tolist())
        assert sorted(part.arrival.tolist()) == jobs
        assert sorted({task.job for task in pending_tasks(part)}) == jobs
        assert jobs_of(untimed(part).job_classes) == jobs
    assert jobs_of(untimed(instance).job_classes) == list(range(instance.jobs))


def jobs_of(classes: Sequence[object]) -> list[int]:
    return sorted(job for one in classes for job in one.jobs.tolist())  # type: ignore[attr-defined]
