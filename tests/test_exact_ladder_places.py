"""Counts to places: best fit, nothing beyond the rows, and many tasks laid out at once as if one by one."""

from __future__ import annotations

import model_cases
import numpy as np
import pytest
from strategies import random_tiny

from placement.compile import compile as compile_snapshot
from placement.exact.ladder.places import placed
from placement.exact.layouts.layout import Layout
from placement.exact.layouts.standing import Goals, Standing
from placement.exact.objectives.targets import targets_of
from placement.heuristics import HEURISTICS
from placement.ladder import pools
from placement.snapshot import Snapshot, Task
from placement.solver import Limits

OBJECTIVES = ("value", "tasks")


def test_best_fit_leaves_nodes_whole() -> None:
    # Nodes of 8, 2 and 8 cards. A pair fits the node of two exactly, and a half and a half share one card of the first.
    jobs = (model_cases.job("pair", Task(gpus=2)), model_cases.job("half", Task(gpus=1, gpu_share=0.5), copies=2))
    instance = compile_snapshot(Snapshot(nodes=model_cases.cards(8, 2, 8), jobs=jobs))
    (pool,) = pools(instance)
    counts = {(s, 0): 1 if instance.shapes[s].gpus == 2 else 2 for s in pool.shapes}
    layout = placed(instance, (pool,), counts)
    assert [len(spots) for spots in layout.tasks] == [2, 1, 0]
    assert layout.tasks[0][0] == layout.tasks[0][1]


def test_a_count_beyond_the_rows_is_a_mistake() -> None:
    instance = compile_snapshot(Snapshot(nodes=model_cases.cards(3), jobs=(model_cases.job("j", Task(gpus=2), 2),)))
    with pytest.raises(RuntimeError, match="promised"):
        placed(instance, pools(instance), {(0, 0): 2})


@pytest.mark.parametrize("seed", range(40))
def test_many_tasks_at_once_are_one_by_one(seed: int) -> None:
    instance = compile_snapshot(random_tiny(seed))
    goals = Goals(instance, targets_of(instance, OBJECTIVES))
    start = HEURISTICS["first-fit"].solve(instance, objectives=OBJECTIVES, limits=Limits()).assignment
    standing = Standing.of_assignment(goals, start)
    slow = Layout(instance)
    worth = dict.fromkeys(targets_of(instance, OBJECTIVES), 0)
    for row in range(len(start)):
        job_class = instance.job_classes[instance.job_class[start.job[row]]]
        leaf = job_class.leaves[start.leaf[row]]
        cards = start.cards[start.offset[row] : start.offset[row + 1]]
        slow.place(leaf.shape, int(start.node[row]), tuple(cards.tolist()))
        worth["value", job_class.priority] += leaf.value
        worth["tasks", None] += 1
    assert standing.ranks == tuple(worth.values())
    assert standing.started.sum() == len(start)
    assert standing.layout.tasks == slow.tasks
    for name in ("free", "units", "memory", "limits"):
        assert np.array_equal(getattr(standing.layout.state, name), getattr(slow.state, name))
    assert standing.layout.count.tolist() == slow.count.tolist()
