"""Ways to measure tasks of few jobs, so that no node holds more than 1 of any, and prices of all of them over time."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from placement.exact.milp.arrays import Program
from placement.scheduling.bounds.remaining import Job

MEASURES = 3
"""Dual feasible functions by which tasks are measured beside their cards."""

Node = tuple[tuple[int, int, int], ...]
"""When tasks end, how many cards each holds, and how many there are, ascending."""


def measures(size: int) -> list[list[Fraction]]:
    """Return ways to count a task by its cards, each so that what a node can hold counts 1 at most.

    The first is its part of the cards; the others are the dual feasible functions u(k) of Fekete and Schepers (2001).
    """
    found = [[Fraction(cards, size) for cards in range(size + 1)]]
    for k in range(1, MEASURES + 1):
        rounded = [Fraction((k + 1) * cards // size, k) for cards in range(size + 1)]
        exact = [not (k + 1) * cards % size for cards in range(size + 1)]
        found.append([found[0][cards] if exact[cards] else rounded[cards] for cards in range(size + 1)])
    return found


def horizon_of(jobs: Sequence[Job], last: Sequence[int], running: Sequence[Node]) -> int:
    """Return when all has ended, where no job starts later than it may at last."""
    ends = [end + one.length for one, end in zip(jobs, last, strict=True)]
    return max([*ends, *(end for node in running for end, _, _ in node)])


def prices_of(
    jobs: Sequence[Job], last: Sequence[int], size: int, running: Sequence[Node]
) -> tuple[list[list[float]], list[float]]:
    """Return what a task of so many cards pays until each moment, and all nodes together.

    The prices of each measure in each slot of time are duals of the linear program of starts by slot, at least 0.
    """
    nodes = len(running)
    held = [one for node in running for one in node]
    horizon = horizon_of(jobs, last, running)
    ways = measures(size) if nodes > 1 else measures(size)[:1]
    cost: list[float] = []
    rows: list[int] = []
    columns: list[int] = []
    values: list[float] = []
    for number, (one, end) in enumerate(zip(jobs, last, strict=True)):
        counts = [(place, float(one.tasks * measure[one.cards])) for place, measure in enumerate(ways)]
        counts = [(place, count) for place, count in counts if count]
        for start in range(one.release, end + 1):
            rows.append(number)
            values.append(1.0)
            for place, count in counts:
                first = len(jobs) + place * horizon + start
                rows += range(first, first + one.length)
                values += [count] * one.length
            columns += [len(cost)] * (len(rows) - len(columns))
            cost.append(float(one.weight * (start + one.length - one.release)))
    room = np.full((len(ways), horizon), float(nodes))
    for place, measure in enumerate(ways):
        for end, cards, tasks in held:
            room[place, :end] -= tasks * float(measure[cards])
    order = np.lexsort((columns, rows))
    count = len(jobs) + horizon * len(ways)
    program = Program(
        sense=1,
        cost=np.array(cost),
        lower=np.zeros(len(cost)),
        upper=np.ones(len(cost)),
        integer=np.zeros(len(cost), dtype=np.bool_),
        start=np.searchsorted(np.array(rows)[order], np.arange(count + 1)).astype(np.int32),
        index=np.array(columns, dtype=np.int32)[order],
        value=np.array(values)[order],
        row_lower=np.concatenate([np.ones(len(jobs)), np.full(count - len(jobs), -np.inf)]),
        row_upper=np.concatenate([np.ones(len(jobs)), room.reshape(-1)]),
    )
    # loaded where it is needed, for it takes a while
    from placement.exact.milp.highs import solve

    duals = solve(program, relax=True).row_duals
    price = np.zeros((len(ways), horizon))
    if duals is not None:
        price = np.maximum(0.0, -duals[len(jobs) :]).reshape(len(ways), horizon)
    paid = np.concatenate([np.zeros((len(ways), 1)), np.cumsum(price, axis=1)], axis=1)
    by_cards = np.array(ways, dtype=np.float64).T @ paid
    return by_cards.tolist(), (nodes * paid.sum(axis=0)).tolist()
