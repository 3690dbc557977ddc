"""Synthetic clusters: valid whatever is asked for, about as full as asked, and the same bytes everywhere."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement import units
from placement.check import overfull
from placement.errors import UsageError
from placement.generate import MODELS, generate
from placement.honoured import refuse_unhonoured
from placement.snapshot import Job, Snapshot, TaskGroup
from placement.snapshot.read import digest, dumps, loads


def gpu(groups: tuple[TaskGroup, ...]) -> Fraction:
    total = Fraction(0)
    for group in groups:
        task = group.task
        own = Fraction(0) if task is None else task.gpus * units.exact(1 if task.gpu_share is None else task.gpu_share)
        total += group.count * (own + gpu(group.groups))
    return total


def asked(jobs: list[Job]) -> Fraction:
    return sum((gpu(job.groups) for job in jobs), Fraction(0))


def cards(snapshot: Snapshot) -> int:
    return sum(entry.count * node.count for node in snapshot.nodes for entry in node.gpus)


def split(snapshot: Snapshot) -> tuple[list[Job], list[Job]]:
    return [j for j in snapshot.jobs if j.running is not None], [j for j in snapshot.jobs if j.running is None]


@settings(max_examples=60, deadline=None)
@given(
    nodes=st.integers(1, 12),
    models=st.lists(st.sampled_from(sorted(MODELS)), min_size=1, max_size=4),
    load=st.floats(0, 3),
    gangs=st.floats(0, 1),
    shares=st.floats(0, 1),
    running=st.floats(0, 1),
    seed=st.integers(0, 2**40),
)
def test_always_valid(
    nodes: int, models: list[str], load: float, gangs: float, shares: float, running: float, seed: int
) -> None:
    made = generate(nodes=nodes, models=models, load=load, gangs=gangs, shares=shares, running=running, seed=seed)
    assert refuse_unhonoured(made) is made
    assert loads(dumps(made)) == made
    assert overfull(made) == []
    there, _ = split(made)
    assert asked(there) <= Fraction(running) * cards(made)


def test_as_full_as_asked() -> None:
    made = generate(nodes=60, load=1.5, running=0.4, seed=3)
    there, pending = split(made)
    assert 0.38 * cards(made) <= asked(there) <= 0.4 * cards(made)
    wanted = 1.5 * (cards(made) - asked(there))
    assert wanted <= asked(pending) <= wanted + 64


def test_kinds_of_jobs() -> None:
    alone = generate(nodes=30, gangs=0, shares=0)
    assert all(len(job.groups) == 1 and job.groups[0].count == 1 for job in alone.jobs)
    assert all(job.groups[0].task is not None and job.groups[0].task.gpu_share is None for job in alone.jobs)
    _, gangs = split(generate(nodes=30, gangs=1))
    assert all(job.groups[0].count > 1 or job.groups[0].groups for job in gangs)
    assert any(job.groups[0].groups for job in gangs)
    assert any(job.groups[0].min_count not in (None, 1) for job in gangs)
    assert generate(nodes=2, load=0, running=0).jobs == ()


def test_same_bytes_everywhere() -> None:
    """The digest was taken once; another one is another stream of clusters, which belongs into the changelog."""
    assert digest(generate(nodes=20, seed=11)) == "6617e8c44753b609e1d26907c58c3be911a47690840166471656c4660ebcc00e"
    assert dumps(generate(seed=1)) != dumps(generate(seed=2))


def test_bad_arguments_are_named_together() -> None:
    with pytest.raises(UsageError) as caught:
        generate(nodes=0, models=(), load=float("nan"), gangs=-1, shares=2, running=float("inf"), seed=-1)
    assert [problem.path for problem in caught.value.problems] == [
        "nodes",
        "models",
        "load",
        "gangs",
        "shares",
        "running",
        "seed",
    ]
