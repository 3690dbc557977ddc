"""The score of every node for every shape, kept from one task to the next.

Placing a task changes one node, so nearly all that was thought of the others stays true. A shape has a row of scores,
made when it is first asked for from the kinds that nodes start as; when it is asked for again, only the nodes that
have changed in between are scored anew. The best node is then the largest number of the row, and of equal ones the
first, which numpy finds in two microseconds among 100,000 single bytes.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from placement.heuristics.nodes import Nodes
from placement.instance import Bools, Ints

Scores = npt.NDArray[np.int8 | np.int64]

MOST_BYTES = 1 << 29
"""When all rows together take more, that of the shape not asked for longest is given up."""


class Scorer(Protocol):
    """What is asked of a rule: see `placement.heuristics.rule.Rule`."""

    nodes: Nodes
    has_small_scores: bool

    def scores(self, shape: int, rows: Ints) -> Ints:
        """Return how good it is to place one task on the node of each row."""
        ...


class Ranking:
    """The scores of one run of a rule."""

    def __init__(self, rule: Scorer) -> None:
        self._rule = rule
        self._nodes = rule.nodes
        self._dtype: type[np.int8] | type[np.int64] = np.int8 if rule.has_small_scores else np.int64
        self._never = int(np.iinfo(self._dtype).min)
        self.no_room = self._never + 1
        """Score of a node on which a task does not fit now; one on which it never fits has one less."""
        self._rows: dict[int, tuple[Scores, int]] = {}
        self._most_rows = max(1, MOST_BYTES // max(1, self._nodes.count * np.dtype(self._dtype).itemsize))
        self._asked: set[int] = set()

    def of(self, shape: int) -> Scores:
        """Return the score of every node for a shape, at most `no_room` where the task does not fit."""
        nodes = self._nodes
        row, seen = self._rows.pop(shape, (None, 0))
        if row is None:
            row = self._at_start(shape)
            if len(self._rows) >= self._most_rows:
                del self._rows[next(iter(self._rows))]
        if seen != nodes.changes:
            self._renew(shape, row, nodes.changed(seen))
        self._rows[shape] = row, nodes.changes  # put last: the first one was not asked for longest
        self._asked.add(shape)
        return row

    def find(self, shape: int, within: Bools | None) -> int:
        """Return the row of the best node, among some if `within` is given; -1 where the task fits nowhere."""
        row = self.of(shape)
        if not len(row):
            return -1
        if within is not None:
            row = np.where(within, row, self._never)
        best = int(row.argmax())
        return best if row[best] > self.no_room else -1

    def undone(self, rows: Ints) -> None:
        """Score nodes again whose tasks were taken back, for the shapes asked for in between."""
        for shape in self._asked & self._rows.keys():
            row, seen = self._rows[shape]
            if seen > self._nodes.changes:
                self._renew(shape, row, rows)
                self._rows[shape] = row, self._nodes.changes

    def commit(self) -> None:
        """Take what was placed so far as final."""
        self._asked.clear()

    def _at_start(self, shape: int) -> Scores:
        nodes, kinds = self._nodes, self._nodes.kinds
        score = np.full(len(kinds), self._never, dtype=self._dtype)
        fits = nodes.state.fits(shape, kinds)
        if fits.any():
            score[fits] = self._rule.scores(shape, kinds[fits])
        found: Scores = score[nodes.kind_row - nodes.count]
        return found

    def _renew(self, shape: int, row: Scores, changed: Ints) -> None:
        changed = changed.compress(row.take(changed) != self._never)
        if not len(changed):
            return
        row[changed] = self.no_room
        changed = changed.compress(self._nodes.state.has_room(shape, changed))
        if len(changed):
            row[changed] = self._rule.scores(shape, changed)
