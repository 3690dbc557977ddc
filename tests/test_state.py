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


def test_mig_cards_on_which_more_is_held_than_fits_come_back() -> None:
    """Two halves of a card are in use, and a reservation of the second is tried, or of all of it, before they end."""
    task = TaskGroup(name="half", task=Task(gpus=1, mig_profile="3g.40gb"))
    whole = TaskGroup(name="whole", task=Task(gpus=1, mig_profile="7g.80gb"))
    node = Node(name="a", gpus=(Gpu(model="A100-SXM4-80GB", mig_enabled=True),))
    jobs = tuple(Job(name=group.name, groups=(group,)) for group in (task, whole))
    instance = compile_snapshot(Snapshot(nodes=(node,), jobs=jobs))
    state = State(instance)
    half, full = (one.leaves[0].shape for one in instance.job_classes)
    row, slot = 1, instance.slot_base
    empty = int(state.slots[row])
    held = [(half, slot), (half, slot + 4), (half, slot + 4), (full, slot), (half, slot)]
    for order in ([0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 4, 1, 3], [3, 1, 0, 4, 2], [1, 4, 3, 0, 2]):
        for shape, start in held:
            state.place(shape, row, (0, start))
        assert state.slots[row] == -1
        for number, one in enumerate(order):
            shape, start = held[one]
            state.place(shape, row, (0, start), -1)
            left = [held[other] for other in order[number + 1 :]]
            is_over = len(set(left)) < len(left) or ((full, slot) in left and len(left) > 1)
            assert bool(state.slots[row] == -1) is is_over
        assert state.slots[row] == empty
