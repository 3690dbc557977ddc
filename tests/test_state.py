"""What is free, and how cards are shared."""

import numpy as np
import pytest

from placement.compile import compile as compile_snapshot
from placement.instance import Assignment
from placement.snapshot import DomainLimit, Gpu, Job, Node, Snapshot, Task, TaskGroup
from placement.state import State


def snapshot(*tasks: Task, nodes: tuple[Node, ...], limits: tuple[DomainLimit, ...] = ()) -> Snapshot:
    jobs = tuple(Job(name=f"j{i}", groups=(TaskGroup(name="w", task=task),)) for i, task in enumerate(tasks))
    return Snapshot(nodes=nodes, jobs=jobs, limits=limits)


def test_two_part_cards_are_not_a_card() -> None:
    node = Node(name="n", gpus=(Gpu(model="A", count=2),))
    share = Task(gpus=1, gpu_share=0.6)
    state = State(compile_snapshot(snapshot(share, share, Task(gpus=1, gpu_share=0.8), nodes=(node,))))
    small, large = 0, 1
    state.place(small, 0, (0,))
    state.place(small, 0, (1,))
    # 0.4 + 0.4 are free, on two cards
    assert not state.fits(large, np.array([0]))[0]
    assert state.tightest(large, 0) is None
    state.remove(small, 0, (0,))
    assert state.tightest(large, 0) == (0,)


def test_tightest_prefers_the_fullest_card_that_still_fits() -> None:
    node = Node(name="n", gpus=(Gpu(model="A", count=3),))
    tasks = (Task(gpus=1, gpu_share=0.3), Task(gpus=1, gpu_share=0.5), Task(gpus=2))
    state = State(compile_snapshot(snapshot(*tasks, nodes=(node,))))
    state.place(1, 0, (2,))
    assert state.tightest(0, 0) == (2,)
    assert state.tightest(2, 0) == (0, 1)
    state.place(0, 0, (2,))
    assert state.tightest(0, 0) == (0,)  # 0.2 are left on card 2


def test_device_memory_binds() -> None:
    node = Node(name="n", gpus=(Gpu(model="A", memory="24Gi"),))
    task = Task(gpus=1, gpu_share=0.1, gpu_memory="10Gi")
    state = State(compile_snapshot(snapshot(task, task, task, nodes=(node,))))
    state.place(0, 0, (0,))
    assert state.fits(0, np.array([0]))[0]
    state.place(0, 0, (0,))
    assert not state.fits(0, np.array([0]))[0]  # 20 of 24 GiB are taken


def test_limits_block_only_their_nodes() -> None:
    nodes = (
        Node(name="a", position={"rack": "r"}, gpus=(Gpu(model="A", count=2),)),
        Node(name="b", gpus=(Gpu(model="A", count=2),)),
    )
    limits = (DomainLimit(level="rack", domain="r", gpus=1),)
    task = Task(gpus=1)
    state = State(compile_snapshot(snapshot(task, task, nodes=nodes, limits=limits)))
    assert state.fits(0, np.array([0, 1])).tolist() == [True, True]
    state.place(0, 0, (0,))
    assert state.fits(0, np.array([0, 1])).tolist() == [False, True]


@pytest.mark.parametrize("cards", [(), (0,), (0, 1)])
def test_place_and_remove_are_inverse(cards: tuple[int, ...]) -> None:
    node = Node(name="n", cpu=4, gpus=(Gpu(model="A", count=2, memory=100),))
    task = Task(gpus=len(cards), cpu=1, gpu_memory=30 if cards else None)
    state = State(compile_snapshot(snapshot(task, nodes=(node,))))
    before = (state.free.copy(), state.units.copy(), state.memory.copy())
    state.apply(Assignment.of([(0, 0, 0, 0, cards)]))
    assert not np.array_equal(state.free, before[0])
    state.remove(0, 0, cards)
    assert all(np.array_equal(a, b) for a, b in zip((state.free, state.units, state.memory), before, strict=True))
