"""The first node with room, for the rule that asks for no more.

Nodes only fill up, but for what is taken back. So a node found full for a shape is passed over from then on, and one
that was not found full is looked at when it comes first: nothing needs to be known of those behind it.
"""

from __future__ import annotations

from placement.heuristics.nodes import Nodes
from placement.instance import Bools, Ints

TRIES = 8
"""Full nodes met one by one before many are looked at together."""
CARD_TRIES = 2
"""The same for MIG cards, of which there are many and most are full for an instance of some size."""

AHEAD = 512
"""How many are looked at together."""


class Frontier:
    """Which nodes may have room for each shape; those before `_from` have none."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._open: dict[int, Bools] = {}
        self._from: dict[int, int] = {}
        self._asked: set[int] = set()
        self.cards: tuple[int, ...] | None = None
        """The tightest cards of the node found last."""

    def find(self, shape: int, within: Bools | None) -> int:
        """Return the row of the first node with room, among some if `within` is given; -1 if there is none."""
        state = self._nodes.state
        is_open = self._open.get(shape)
        if is_open is None:
            is_open = self._open[shape] = self._at_start(shape)
            self._from[shape] = 0
        self._asked.add(shape)
        look = is_open if within is None else is_open & within
        row = _next(look, self._from[shape])
        tries, patience = 0, TRIES if self._nodes.instance.shapes[shape].profile < 0 else CARD_TRIES
        while row >= 0:
            self.cards = state.spot(shape, row)
            if self.cards is not None:
                break
            is_open[row] = look[row] = False
            tries += 1
            if tries % patience == 0:
                ahead = look[row : row + AHEAD].nonzero()[0] + row
                is_open[ahead] = look[ahead] = state.has_room(shape, ahead)
            row = _next(look, row)
        if within is None:
            self._from[shape] = row if row >= 0 else len(is_open)
        return row

    def undone(self, rows: Ints) -> None:
        """Open nodes again whose tasks were taken back: they were found full by shapes asked for in between."""
        for shape in self._asked:
            free = rows[self._nodes.state.fits(shape, rows)]
            if len(free):
                self._open[shape][free] = True
                self._from[shape] = min(self._from[shape], int(free.min()))

    def commit(self) -> None:
        """Take what was placed so far as final."""
        self._asked.clear()

    def _at_start(self, shape: int) -> Bools:
        nodes = self._nodes
        fits: Bools = nodes.state.fits(shape, nodes.kinds)[nodes.kind_row - nodes.count]
        return fits


def _next(look: Bools, start: int) -> int:
    """Return the first position from `start` on that is True, or -1."""
    if start >= len(look):
        return -1
    row = start + int(look[start:].argmax())
    return row if look[row] else -1
