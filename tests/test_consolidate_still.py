"""Consolidation is never worse than moving nothing, nor than `placement.solve`, where hosts and racks are short.

Slots of an A30: four, one for each 1g.6gb, which is worth 250 GPU-milli.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from consolidate_cases import sound
from hypothesis import given, settings
from hypothesis import strategies as st

from placement import consolidate, solve
from placement.decisions import consolidate as module
from placement.decisions.consolidated import Case, standstill
from placement.snapshot import DomainLimit, Gpu, Job, Node, Running, RunningTask, Snapshot, Task, TaskGroup, Topology

QUARTER = "1g.6gb"


def node(name: str, cpu: int, rack: str, cards: int) -> Node:
    return Node(
        name=name, cpu=cpu, position={"rack": rack}, gpus=(Gpu(model="A30-24GB", count=cards, mig_enabled=True),)
    )


def waits(name: str, weight: int, count: int, cpu: int, **more: Any) -> Job:
    task = Task(gpus=1, mig_profile=QUARTER, cpu=cpu)
    return Job(name=name, weight=weight, groups=(TaskGroup(name="g", count=count, task=task, **more),))


def runs(name: str, where: str, card: int, start: int, cpu: int) -> Job:
    place = RunningTask(group="g", index=0, node=where, gpus=(card,), mig_starts=(start,))
    return msgspec.structs.replace(waits(name, 1, 1, cpu), preemptible=True, running=Running(tasks=(place,)))


def capped(nodes: tuple[Node, ...], jobs: tuple[Job, ...], **caps: Any) -> Snapshot:
    limit = DomainLimit(level="rack", domain="r0", **caps)
    return Snapshot(topology=("rack",), nodes=nodes, jobs=jobs, limits=(limit,))


GANG_BESIDE = capped(
    (node("a", 2, "r0", 2), node("b", 2, "r1", 1)),
    (waits("j1", 4, 3, 2, min_count=1), waits("j2", 4, 4, 0)),
    gpus=0.25,
)
"""r0 has one quarter: j2, a gang of four, is on b, worth 4 x 250 x 4, and one of j1 on a, worth 250 x 4."""

MOVERS = capped(
    (node("n0", 2, "r0", 2), node("n1", 2, "r0", 2), node("n2", 3, "r1", 1)),
    (
        runs("r0", "n0", 1, 0, 0),
        runs("r1", "n2", 0, 3, 1),
        waits("j0", 2, 1, 0),
        waits("j1", 4, 3, 2, min_count=1),
        waits("j2", 4, 3, 0),
    ),
    gpus=0.5,
    cpu=3,
)
"""As it stands n2 takes the three of j2, 3,000, and n0 one of j1, 1,000."""


def solved(snapshot: Snapshot) -> float:
    without = ("jobs.preemptible",) if any(job.preemptible for job in snapshot.jobs) else ()
    plan = solve(snapshot, objectives=("value", "tasks"), without=without)
    return float(sum(phase.value for phase in plan.phases if phase.objective == "value"))


def case_of(snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch) -> Case:
    """Return what consolidation works on."""
    seen: list[Case] = []

    def keep(case: Case, most: int | None) -> Any:
        seen.append(case)

    monkeypatch.setattr(module, "_best", keep)
    consolidate(snapshot)
    return seen[0]


@pytest.mark.parametrize(("snapshot", "worth"), [(GANG_BESIDE, 5000), (MOVERS, 4000)])
@pytest.mark.parametrize("most", [None, 0])
def test_by_hand(snapshot: Snapshot, worth: float, most: int | None) -> None:
    found = consolidate(snapshot, max_moves=most)
    sound(snapshot, found, most)
    assert solved(snapshot) == worth
    assert found.worth - found.cost >= worth
    assert found.bound is not None


@settings(max_examples=25, deadline=None)
@given(draw=st.randoms(use_true_random=False))
def test_never_worse_than_without_moves(draw: random.Random) -> None:
    snapshot = tiny(draw)
    found, still = consolidate(snapshot), consolidate(snapshot, max_moves=0)
    sound(snapshot, found)
    sound(snapshot, still, 0)
    assert still.worth >= solved(snapshot) - 1e-6
    assert found.worth - found.cost >= still.worth - 1e-6
    assert found.bound is None or found.bound >= still.worth - 1e-6


def tiny(draw: random.Random) -> Snapshot:
    nodes = tuple(
        node(f"n{number}", draw.randint(0, 4), f"r{draw.randint(0, 1) if number else 0}", draw.randint(1, 2))
        for number in range(draw.randint(1, 3))
    )
    spots = [(one.name, card, start) for one in nodes for card in range(one.gpus[0].count) for start in range(4)]
    free = {one.name: int(one.cpu or 0) for one in nodes}
    work: list[Job] = []
    for number, (where, card, start) in enumerate(draw.sample(spots, draw.randint(0, 3))):
        cpu = draw.randint(0, min(1, free[where]))
        free[where] -= cpu
        work.append(runs(f"r{number}", where, card, start, cpu))
    for number in range(draw.randint(1, 3)):
        least = draw.choice((None, 1))
        work.append(waits(f"j{number}", draw.randint(1, 4), draw.randint(1, 4), draw.randint(0, 2), min_count=least))
    # at least what may run there
    return capped(nodes, tuple(work), gpus=draw.choice((0.75, 1, 1.5)), cpu=draw.choice((None, 3, 4)))


def test_standing_still_is_what_solve_has(monkeypatch: pytest.MonkeyPatch) -> None:
    for snapshot, worth in ((GANG_BESIDE, 5000), (MOVERS, 4000)):
        with monkeypatch.context() as patch:
            found = standstill(case_of(snapshot, patch)).answer
        sound(snapshot, found, 0)
        assert (found.moves, found.worth, found.cost) == ((), worth, 0)


def test_standing_still_leaves_out_what_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """tied says where its tasks lie relative to one another: it waits, and the plan says so."""
    tied = waits("tied", 9, 2, 0, topology=Topology(required="rack"))
    snapshot = msgspec.structs.replace(GANG_BESIDE, jobs=(tied, *GANG_BESIDE.jobs))
    found = standstill(case_of(snapshot, monkeypatch)).answer
    sound(snapshot, found, 0)
    assert found.worth == 5000
    assert "tied" in {one.job for one in found.plan.pending}
    assert "tied" not in found.plan.tasks.job


def test_nothing_that_counts_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    case = case_of(msgspec.structs.replace(MOVERS, jobs=MOVERS.jobs[:2]), monkeypatch)
    assert standstill(case).answer.worth == 0
    # and with no time left a greedy rule still answers
    case = case_of(GANG_BESIDE, monkeypatch)
    late = standstill(replace(case, limits=replace(case.limits, deadline=0.0))).answer
    assert late.plan.checked
    assert (late.plan.stop, late.plan.reproducible) == ("time", False)
