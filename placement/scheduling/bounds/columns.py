"""Starts of jobs as columns of a linear program."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placement.exact.milp.arrays import Floats
from placement.instance import Bools, Ints


@dataclass(frozen=True, slots=True)
class Columns:
    """Starts on a grid.

    Attributes
    ----------
    kind, part : int array
        Kind, and mode of its `Kind.parts`.
    begin, end : int array
        From when until when the units of the mode are held.
    share : float array
        How many times these units are held: 1 for jobs that run at a stretch; for what is done in one slot of a job
        whose work is done in parts, all of its work over the length of the slot.
    cost : float array
        Weight times completion time, in milliseconds.
    """

    kind: Ints
    part: Ints
    begin: Ints
    end: Ints
    share: Floats
    cost: Floats


def chosen(columns: Columns, which: Ints | Bools) -> Columns:
    """Return some of the columns."""
    return Columns(
        kind=columns.kind[which],
        part=columns.part[which],
        begin=columns.begin[which],
        end=columns.end[which],
        share=columns.share[which],
        cost=columns.cost[which],
    )


def none() -> Columns:
    """Return no column."""
    ints = np.zeros(0, dtype=np.int64)
    return Columns(ints, ints, ints, ints, np.zeros(0), np.zeros(0))


def joined(one: Columns, other: Columns) -> Columns:
    """Return some columns and others after them."""
    return Columns(
        kind=np.concatenate([one.kind, other.kind]),
        part=np.concatenate([one.part, other.part]),
        begin=np.concatenate([one.begin, other.begin]),
        end=np.concatenate([one.end, other.end]),
        share=np.concatenate([one.share, other.share]),
        cost=np.concatenate([one.cost, other.cost]),
    )
