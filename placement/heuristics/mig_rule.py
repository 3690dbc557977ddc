"""What rules for MIG instances share: a start on every card for every profile, and how good that card is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from placement.heuristics.nodes import Nodes
from placement.heuristics.ranking import Ranking
from placement.heuristics.rule import MOST, Finder, Rule
from placement.instance import Bools, Ints
from placement.mig.slots import Card, Slots

REFUSED = -MOST - 1
"""Score of a card on which the rule creates no instance though there is room."""


def free_slots(card: Card) -> int:
    """Return how many memory slots of a card are free; where instances stay as they are, only slots of theirs count."""
    there = (1 << card.board.geometry.slots) - 1
    if card.board.existing is not None:
        there = 0
        for name, first in card.board.existing:
            mine = card.board.geometry.profile(name)
            there |= 0 if mine is None else mine.bits(first)
    return (there & ~card.bits).bit_count()


class MigRule(Rule):
    """A rule that looks at what is on a MIG card, which is a node by itself here, and at nothing else.

    Tasks without a profile take the first node with room, and there the cards with least room left.
    """

    def __init__(self, nodes: Nodes, rng: np.random.Generator) -> None:
        super().__init__(nodes, rng)
        self._tables: dict[int, tuple[Ints, Ints]] = {}

    @abstractmethod
    def start(self, slots: Slots, state: int, profile: int, starts: Sequence[int]) -> int:
        """Return where to start an instance on a card, or -1 to create none there.

        Parameters
        ----------
        slots : Slots
        state : int
            What is on the card.
        profile : int
        starts : sequence of int
            First slots at which there is room, ascending; at least one. Where instances stay as they are, those of the
            instances that nobody uses.
        """

    def worth(self, slots: Slots, state: int, profile: int, start: int) -> int:
        """Return how good it is to start an instance there, from -100 to 100; of equal cards the first is taken."""
        return 0

    def others(self, shape: int, rows: Ints) -> Ints:
        """Return the scores of nodes for a task without a profile."""
        return np.zeros(len(rows), dtype=np.int64)

    def scores(self, shape: int, rows: Ints) -> Ints:
        """Return `worth` of the start on each card, or `REFUSED`."""
        profile = self.shapes[shape].profile
        if profile < 0:
            return self.others(shape, rows)
        found: Ints = self._table(profile)[1][self.nodes.state.slots[rows]]
        return found

    def finder(self) -> Finder:
        """Return what finds the node for a task: the best one by score, unless the rule refuses it."""
        return _Willing(self)

    def cards(self, shape: int, row: int) -> tuple[int, ...]:
        """Return the card and the slot of an instance, or the cards for another task."""
        profile = self.shapes[shape].profile
        if profile < 0:
            return super().cards(shape, row)
        start = int(self._table(profile)[0][self.nodes.state.slots[row]])
        return 0, self.nodes.instance.slot_base + start

    def _table(self, profile: int) -> tuple[Ints, Ints]:
        """Return start and score by state of the card."""
        if profile not in self._tables:
            slots = self.nodes.instance.slots
            assert slots is not None
            start = np.full(len(slots.cards), -1, dtype=np.int64)
            score = np.full(len(slots.cards), REFUSED, dtype=np.int64)
            for state in np.flatnonzero(slots.takes[:-1, profile]).tolist():
                starts = np.flatnonzero(slots.after[state, profile] >= 0).tolist()
                start[state] = self.start(slots, state, profile, starts)
                if start[state] >= 0:
                    score[state] = self.worth(slots, state, profile, int(start[state]))
            self._tables[profile] = start, score
        return self._tables[profile]


class _Willing(Ranking):
    """The scores of one run; no node is found for an instance if the rule refuses the best one."""

    def __init__(self, rule: MigRule) -> None:
        super().__init__(rule)
        self._with_profile = [shape.profile >= 0 for shape in rule.shapes]

    def find(self, shape: int, within: Bools | None) -> int:
        """Return the row of the best node, among some if `within` is given; -1 for none."""
        row = super().find(shape, within)
        refused = row >= 0 and self._with_profile[shape] and self.of(shape)[row] == REFUSED
        return -1 if refused else row
