"""Instances handed out to tasks: all at once where hosts have room for all, else one by one, to the same effect."""

from __future__ import annotations

import numpy as np
import pytest

from placement.compile import compile as compile_snapshot
from placement.exact.layouts.layout import Layout
from placement.exact.mig.places import Spot, hand_out
from placement.instance import Instance
from placement.snapshot import DomainLimit, Gpu, Job, Node, Snapshot, Task, TaskGroup
from placement.snapshot.read import verified


def _instance(cpu: int, cap: int | None = None) -> Instance:
    """Return a host with two cards, and jobs of an instance with 2 cores and with 1 core."""
    limits = (DomainLimit(level="cluster", cpu=cap),) if cap is not None else ()
    snapshot = Snapshot(
        nodes=(Node(name="n", cpu=cpu, gpus=(Gpu(model="A100-80GB", count=2, mig_enabled=True),)),),
        limits=limits,
        jobs=tuple(
            Job(
                name=f"job-{cores}",
                count=4,
                groups=(TaskGroup(name="main", task=Task(gpus=1, mig_profile="1g.10gb", cpu=cores)),),
            )
            for cores in (2, 1)
        ),
    )
    return compile_snapshot(verified(snapshot))


SPOTS: list[Spot] = [(1, 0), (2, 0), (1, 1), (2, 3)]
"""Of the cards, which are nodes 1 and 2 behind their host, node 0."""


def _placed(layout: Layout) -> list[tuple[int, int, int]]:
    """Return card, slot and shape of each instance."""
    base = layout.instance.slot_base
    return [(node, cards[1] - base, shape) for node in (1, 2) for shape, cards in layout.tasks[node]]


@pytest.mark.parametrize(
    ("cpu", "cap", "left"),
    [
        # 2 + 1 + 1 cores: all three lie on the first three spots, and the rest is left over
        (5, None, 1),
        (4, 4, 0),
    ],
)
def test_room_for_all(cpu: int, cap: int | None, left: int) -> None:
    layout = Layout(_instance(cpu, cap))
    hand_out(layout, [(1, 2), (0, 1)], SPOTS)
    # the task with 2 cores comes first
    assert _placed(layout) == [(1, 0, 0), (1, 1, 1), (2, 0, 1)]
    assert layout.count.tolist() == [1, 2]
    assert layout.state.free[:, 0].tolist() == [left] * 3


@pytest.mark.parametrize(("cpu", "cap"), [(3, None), (8, 3)])
def test_room_for_some(cpu: int, cap: int | None) -> None:
    layout = Layout(_instance(cpu, cap))
    hand_out(layout, [(1, 2), (0, 1)], SPOTS)
    # 2 + 1 cores are there, or allowed; the third task would make it 4
    assert _placed(layout) == [(1, 0, 0), (2, 0, 1)]
    assert layout.state.free[:, 0].tolist() == [cpu - 3] * 3
    assert (layout.state.limits >= 0).all()


def test_fewer_spots_than_tasks() -> None:
    layout = Layout(_instance(20))
    hand_out(layout, [(0, 1), (1, 4)], SPOTS[:2])
    assert _placed(layout) == [(1, 0, 0), (2, 0, 1)]


def test_tasks_are_added_to_those_that_are_there() -> None:
    instance = _instance(20, 20)
    at_once, singly = Layout(instance), Layout(instance)
    base = instance.slot_base
    for layout in (at_once, singly):
        layout.place(0, 1, (0, base))
    at_once.add(np.array([1, 0]), np.array([1, 2]), [(0, base + 1), (0, base + 3)])
    singly.place(1, 1, (0, base + 1))
    singly.place(0, 2, (0, base + 3))
    assert at_once.tasks == singly.tasks
    assert at_once.count.tolist() == singly.count.tolist()
    for name in ("free", "units", "limits", "slots"):
        assert getattr(at_once.state, name).tolist() == getattr(singly.state, name).tolist()
