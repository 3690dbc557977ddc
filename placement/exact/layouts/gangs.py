"""From tasks to jobs: which jobs the placed tasks are, and what each copy of each group gets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np

from placement.exact.layouts.layout import Layout
from placement.exact.milp import highs
from placement.exact.milp.arrays import program
from placement.gang import Branch, Leaf, is_flat
from placement.instance import Assignment, Ints, JobClass
from placement.models import pooled
from placement.models.pooled_gangs import ChildCounts, Times, is_single
from placement.models.pooled_linear import Target
from placement.models.pooled_objective import coefficients
from placement.models.pools import leaf_table, pooling

Member = tuple[int, int]
"""A job of a class, by its number among those that run, and a copy of a group within it."""


def startable(layout: Layout, targets: Sequence[Target], seed: int) -> Ints:
    """Return how many tasks of each leaf can be started with the placed tasks, best for the targets in order.

    Parameters
    ----------
    layout : Layout
    targets : sequence of Target
    seed : int

    Returns
    -------
    int array (T,)
        By row of `leaf_table`.
    """
    instance = layout.instance
    view = pooling(layout.state, [], elsewhere=layout.count)
    held: dict[Target, int] = {}
    started = np.zeros(len(view.leaves), dtype=np.int64)
    for target in targets:
        worth = coefficients(instance, view.leaves, target)
        solved = highs.solve(program(pooled.build(view, [], {target: 1.0}, held)), seed=seed)
        if solved.x is None:
            break
        started = np.round(solved.x[: len(started)]).astype(np.int64)
        held[target] = int(worth @ started)
    return started


def named(layout: Layout, started: Ints, seed: int) -> Assignment:
    """Return the assignment in which each leaf has so many tasks, taken from the placed ones.

    Parameters
    ----------
    layout : Layout
        With at least as many tasks of each shape as are started.
    started : int array (T,)
        By row of `leaf_table`.
    seed : int
    """
    instance = layout.instance
    spots: dict[int, list[tuple[int, tuple[int, ...]]]] = defaultdict(list)
    for node in range(instance.nodes - 1, -1, -1):
        for shape, cards in layout.tasks[node]:
            spots[shape].append((node, cards))
    tasks: dict[int, dict[int, int]] = defaultdict(dict)
    for (number, leaf, _, _, _), times in zip(leaf_table(instance).tolist(), started.tolist(), strict=True):
        tasks[number][leaf] = times
    running = {number: by_leaf for number, by_leaf in tasks.items() if any(by_leaf.values())}
    counts = _nested_counts(layout, started, running, seed)
    tables: list[Ints] = []
    places: list[tuple[int, tuple[int, ...]]] = []
    for number, by_leaf in running.items():
        job_class = instance.job_classes[number]
        table = _dealt(job_class, by_leaf, counts.get(number))
        shapes = [job_class.leaves[leaf].shape for leaf in table[:, 1].tolist()]
        places += [spots[shape].pop() for shape in shapes]
        table[:, 0] = job_class.jobs[table[:, 0]]
        tables.append(table)
    return _assignment(np.concatenate(tables) if tables else np.zeros((0, 3), dtype=np.int64), places)


def _assignment(table: Ints, places: list[tuple[int, tuple[int, ...]]]) -> Assignment:
    """Return the assignment of (job, leaf, task) rows to places, in the order of its rows."""
    order = np.lexsort((table[:, 2], table[:, 1], table[:, 0]))
    table = table[order]
    cards = [places[row][1] for row in order.tolist()]
    offset = np.zeros(len(cards) + 1, dtype=np.int64)
    np.cumsum([len(some) for some in cards], out=offset[1:])
    node = np.array([place[0] for place in places], dtype=np.int64)[order]
    flat = np.fromiter(chain.from_iterable(cards), dtype=np.int64, count=int(offset[-1]))
    return Assignment(table[:, 0], table[:, 1], table[:, 2], node, flat, offset)


def _dealt(
    job_class: JobClass, tasks: Mapping[int, int], counts: tuple[int, Mapping[str, tuple[int, int]]] | None
) -> Ints:
    """Return (job, leaf, task) of every started task of a job class, job by job; jobs by number within the class."""
    root = job_class.root
    if is_single(job_class):
        table = np.zeros((next(iter(tasks.values())), 3), dtype=np.int64)
        table[:, 0] = np.arange(len(table))
        return table
    if counts is None:
        jobs = min(job_class.size, *(tasks[leaf.leaf] // leaf.minimum for leaf in job_class.leaves))
        children = {leaf.path: (jobs, tasks[leaf.leaf]) for leaf in job_class.leaves}
    else:
        jobs, children = counts[0], dict(counts[1])
    found: list[tuple[int, int, int]] = []
    _deal(root, [(job, 0) for job in range(jobs)], children, found)
    table = np.array(found, dtype=np.int64).reshape(-1, 3)[:, [1, 0, 2]]
    return table[np.lexsort((table[:, 2], table[:, 1], table[:, 0]))]


def _deal(
    branch: Branch,
    members: list[Member],
    counts: Mapping[str, tuple[int, int]],
    found: list[tuple[int, int, int]],
) -> None:
    """Give every child of a branch to as many of its running members as were counted, going round."""
    turn = 0
    for child in branch.children:
        active, total = counts[child.path]
        chosen = sorted(members[(turn + i) % len(members)] for i in range(active)) if members else []
        turn += active
        below: list[Member] = []
        for i, (job, copy) in enumerate(chosen):
            share = total // active + (i < total % active)
            for one in range(copy * child.count, copy * child.count + share):
                if isinstance(child, Leaf):
                    found.append((child.leaf, job, one))
                else:
                    below.append((job, one))
        if isinstance(child, Branch):
            _deal(child, below, counts, found)


def _nested_counts(
    layout: Layout, started: Ints, running: Mapping[int, object], seed: int
) -> dict[int, tuple[int, dict[str, tuple[int, int]]]]:
    """Return running jobs, and active and running members of every group, of the job classes that are not flat."""
    instance = layout.instance
    nested = [number for number in running if not is_flat(instance.job_classes[number].root)]
    if not nested:
        return {}
    shapes = np.zeros(0, dtype=np.int64)
    view = pooling(layout.state, [], elsewhere=layout.count, shapes=shapes, started=started, classes=nested)
    model = pooled.build(view, [], {})
    solved = highs.solve(program(model), seed=seed)
    if solved.x is None:
        raise RuntimeError("the counts of a gang cannot be dealt out")
    from placement.exact.milp.arrays import load_solution

    load_solution(model, solved.x)
    return {
        number: (_amount(jobs), {path: _pair(child) for path, child in children.items()})
        for number, (jobs, children) in model.draft.gangs.items()
    }


def _amount(times: Times) -> int:
    return int(times.factor * round(times.variable.value))


def _pair(child: ChildCounts) -> tuple[int, int]:
    return _amount(child.active), _amount(child.members)


def surplus(layout: Layout, started: Ints) -> Ints:
    """Return how many tasks of each shape are placed beyond those started."""
    instance = layout.instance
    used = np.bincount(leaf_table(instance)[:, 2], started, minlength=len(instance.shapes)).astype(np.int64)
    return layout.count - used
