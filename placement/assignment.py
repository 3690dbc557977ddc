"""The assignment: what every method hands back. It says by index which tasks of an instance run where."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Assignment:
    """Which tasks run where, in columns; a row is one placed task.

    Attributes
    ----------
    job : int array (T,)
        Index of the pending job.
    leaf : int array (T,)
        Leaf of its gang.
    task : int array (T,)
        Number of the task within the leaf; copies continue the count (copy ``c`` has tasks ``c*count`` …).
    node : int array (T,)
    cards : int array
        Canonical positions of what all tasks take, one after the other: of cards, and behind them of the NUMA zones
        that a task is bound to (see `placement.instance.Instance.widest`).
    offset : int array (T + 1,)
        Row i has ``cards[offset[i]:offset[i + 1]]``.
    """

    job: Ints
    leaf: Ints
    task: Ints
    node: Ints
    cards: Ints
    offset: Ints

    @classmethod
    def empty(cls) -> Assignment:
        """Return an assignment that places nothing."""
        none = np.zeros(0, dtype=np.int64)
        return cls(none, none, none, none, none, np.zeros(1, dtype=np.int64))

    @classmethod
    def of(cls, rows: Iterable[tuple[int, int, int, int, tuple[int, ...]]]) -> Assignment:
        """Return an assignment of (job, leaf, task, node, cards) rows, sorted by the first three."""
        return cls.listed(sorted(rows))

    @classmethod
    def listed(cls, rows: Sequence[tuple[int, int, int, int, tuple[int, ...]]]) -> Assignment:
        """Return an assignment of (job, leaf, task, node, cards) rows in their order."""
        columns = np.array([row[:4] for row in rows], dtype=np.int64).reshape(-1, 4)
        counts = np.array([len(row[4]) for row in rows], dtype=np.int64)
        cards = np.array([card for row in rows for card in row[4]], dtype=np.int64)
        offset = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts, dtype=np.int64)])
        return cls(columns[:, 0], columns[:, 1], columns[:, 2], columns[:, 3], cards, offset)

    def of_jobs(self, jobs: Ints) -> Assignment:
        """Return the part that belongs to some jobs."""
        rows = np.flatnonzero(np.isin(self.job, jobs))
        lengths = np.diff(self.offset)[rows]
        offset = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
        first = np.repeat(self.offset[rows] - offset[:-1], lengths)
        cards = self.cards[first + np.arange(int(offset[-1]))]
        return Assignment(self.job[rows], self.leaf[rows], self.task[rows], self.node[rows], cards, offset)

    def __len__(self) -> int:
        return len(self.job)
