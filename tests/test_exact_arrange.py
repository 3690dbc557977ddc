"""Arranging tasks on the cards of one node: found where there is a way, refused where there is none."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from placement.compile import compile as compile_snapshot
from placement.exact.layouts.layout import Layout
from placement.exact.packing.arrange import arrange
from placement.instance import Instance
from placement.snapshot import Gpu, Job, Node, Snapshot, Task, TaskGroup
from placement.state import State

ENOUGH = 10**9


def is_possible(state: State, instance: Instance, tasks: list[int]) -> bool:
    """Return whether tasks have a way onto the first node, by trying every choice of cards for each."""
    if not tasks:
        return True
    task = instance.shapes[tasks[0]]
    usable = np.flatnonzero(state.usable(tasks[0], np.array([0]))[0]).tolist()
    for cards in combinations(usable, task.gpus):
        state.place(tasks[0], 0, cards)
        found = is_possible(state, instance, tasks[1:])
        state.remove(tasks[0], 0, cards)
        if found:
            return True
    return False


def drawn(rng: np.random.Generator, memory: bool) -> tuple[Instance, list[int]]:
    """Return an instance of one node and shapes of tasks that fill about all of its cards."""
    cards = tuple(Gpu(model="a", memory="40") for _ in range(int(rng.integers(2, 4))))
    jobs = []
    for number in range(int(rng.integers(3, 7))):
        gpus = 1 if rng.random() < 0.8 else 2
        share = f"0.{rng.choice([2, 3, 4, 5, 7])}"
        asked = str(int(rng.integers(5, 25))) if memory else "0"
        task = Task(gpus=gpus, gpu_share=None if gpus > 1 else share, gpu_memory=asked)
        jobs.append(Job(name=f"j{number}", groups=(TaskGroup(name="g", task=task),)))
    instance = compile_snapshot(Snapshot(nodes=(Node(name="n", gpus=cards),), jobs=tuple(jobs)))
    classes = instance.job_classes
    return instance, [leaf.shape for job_class in classes for leaf in job_class.leaves for _ in range(job_class.size)]


@pytest.mark.parametrize("seed", range(150))
def test_a_way_is_found_exactly_where_there_is_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    instance, tasks = drawn(rng, memory=seed % 2 == 0)
    layout = Layout(instance)
    assert arrange(layout, 0, tasks, steps=ENOUGH) == is_possible(State(instance), instance, sorted(tasks))
    # all of them or none
    assert layout.count.sum() in (0, len(tasks))
    assert (layout.state.units >= 0).all()
    assert (layout.state.memory >= 0).all()
