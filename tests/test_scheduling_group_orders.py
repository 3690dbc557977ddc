"""Gangs of which a later group fits only where an earlier one did not take the room."""

from __future__ import annotations

import pytest

import placement as pl
from placement.scheduling.baselines import BASELINES
from placement.snapshot import Duration, Topology


def nodes(**cards: int) -> tuple[pl.Node, ...]:
    return tuple(pl.Node(name=name, gpus=(pl.Gpu(model=name[0], count=count),)) for name, count in cards.items())


def gang(*groups: pl.TaskGroup) -> pl.Job:
    return pl.Job(name="gang", groups=groups, duration=Duration(seconds=10, levels={"node": 1}))


def group(name: str, count: int, gpus: int, *models: str, together: bool = False) -> pl.TaskGroup:
    task = pl.Task(gpus=gpus, gpu_models=models)
    return pl.TaskGroup(
        name=name, count=count, task=task, topology=Topology(required="node") if together else None, min_count=count
    )


CASES = {
    # cards of 1, 2 and 3: the pairs take one node of 2 and two cards of that of 3, and the single cards the rest
    "large": (nodes(A1=1, A2=2, A3=3), (group("small", 2, 1), group("large", 2, 2))),
    # best fit gives the first task to B, which is the only node for the second
    "bound": (nodes(A=2, B=1), (group("any", 1, 1), group("bound", 1, 1, "B"))),
    # best fit gives the first task a card of the only node that has room for two tasks
    "tied": (nodes(A1=1, A2=2), (group("any", 1, 1), group("tied", 2, 1, together=True))),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("solver", ["auto", *BASELINES])
def test_a_gang_that_fits_is_started(name: str, solver: str) -> None:
    cluster, groups = CASES[name]
    snapshot = pl.Snapshot(nodes=cluster, jobs=(gang(*groups),))
    schedule = pl.schedule(snapshot, solver=solver)
    assert schedule.left_out == []
    assert (schedule.stretches.start, schedule.stretches.end) == ([0], [10])
    assert pl.check(snapshot, schedule) == []


def test_of_groups_that_are_not_all_needed_the_first_run() -> None:
    # the first two of three are enough: three tasks of one card on three cards
    groups = (group("a", 1, 1), group("b", 2, 1), group("c", 1, 3))
    some = pl.Job(
        name="some",
        groups=(pl.TaskGroup(name="top", groups=groups, min_groups=2),),
        duration=Duration(seconds=10, levels={"node": 1}),
    )
    schedule = pl.schedule(pl.Snapshot(nodes=nodes(A=3), jobs=(some,)))
    assert schedule.tasks.group == ["top/a", "top/b", "top/b"]
