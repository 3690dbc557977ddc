"""In which order a rule tries the domains that could hold tasks that are tied together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from placement.gang import Group, Leaf, Ties
from placement.heuristics.domains import Domains, Need, Region
from placement.instance import Ints

MOST_TRIES = 32
"""Domains, or sets of domains, tried for one copy of a group."""
FIRST = 2**60
"""More than any room; taken off the scores of those that come before all others."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What candidates were looked for, for an order that looks at more than their room.

    Attributes
    ----------
    domains : Domains
    level : int
        Of the candidates.
    needs : sequence of Need
        What one of what `Candidates.room` counts needs.
    region : Region
        Within which they lie.
    """

    domains: Domains
    level: int
    needs: Sequence[Need]
    region: Region


@dataclass(frozen=True, slots=True)
class Candidates:
    """Domains of one level, ascending by number.

    Attributes
    ----------
    numbers : int array
    room : int array
        How much of what is to be placed each could hold, at most: copies, slices or tasks.
    spare : int array
        What decides between domains with equal room: idle card units in each, or, if the rule `descends`, how many
        single tasks each could hold.
    asked : Asked
    """

    numbers: Ints
    room: Ints
    spare: Ints
    asked: Asked

    def filled(self, order: Ints, wanted: int) -> list[tuple[int, int]]:
        """Return positions, and how much goes to each if filled in an order; nothing if they hold too little."""
        ends = np.cumsum(self.room[order])
        used = int(np.searchsorted(ends, wanted)) + 1
        if used > len(order):
            return []
        parts = np.minimum(self.room[order[:used]], wanted - ends[:used] + self.room[order[:used]])
        return list(zip(order[:used].tolist(), parts.tolist(), strict=True))

    def tightest(self, some: Ints, wanted: int) -> Ints:
        """Return that position of some that holds all that is wanted with least room, and least spare; none if none."""
        holding = some[self.room[some] >= wanted]
        least = holding[self.room[holding] == self.room[holding].min(initial=FIRST)]
        found: Ints = least[np.argsort(self.spare[least], kind="stable")][:1]
        return found


def lowest(score: Ints, tie: Ints | None = None) -> Ints:
    """Return the positions of the `MOST_TRIES` lowest scores in rising order, of equal ones the first position first.

    Before that a tie, if given, goes to the lower value. There may be as many domains as nodes, and sorting them all
    would take most of the time.
    """
    some: Ints = np.arange(len(score))
    if len(score) > MOST_TRIES:
        last = np.partition(score, MOST_TRIES - 1)[MOST_TRIES - 1]
        below, equal = np.flatnonzero(score < last), np.flatnonzero(score == last)
        if tie is not None:
            equal = equal[np.argsort(tie[equal], kind="stable")]
        some = np.sort(np.concatenate([below, equal[: MOST_TRIES - len(below)]]))
    by = (score[some],) if tie is None else (tie[some], score[some])
    order: Ints = some[np.lexsort(by)]
    return order


class DomainOrder:
    """Best fit: the domain with the fewest idle cards of those that could hold all that is left.

    Where none could, one that could hold most, so that few domains are used. Of equals the one of the lowest number
    is first.
    """

    descends: ClassVar[bool] = False
    """Whether tasks are dealt out to narrower and narrower domains down to the node, and not by the rule's scores."""
    anew: ClassVar[bool] = True
    """Whether, if it `descends`, each level is dealt out anew to all domains chosen above, and not domain by domain."""

    def levels(self, group: Group, domains: Domains, *, tied: bool) -> Sequence[int]:
        """Return the levels of which one domain is to hold a copy of a group, first one first; 0 for the cluster.

        Parameters
        ----------
        group : Group
        domains : Domains
        tied : bool
            Whether the job says where its tasks may lie relative to one another.
        """
        ties = group.ties or Ties()
        required = max(ties.required, 0)
        return range(max(ties.preferred, required), required - 1, -1)

    def order(self, among: Candidates, wanted: int) -> Ints:
        """Return positions among the candidates, first one first, no more than `MOST_TRIES`.

        Parameters
        ----------
        among : Candidates
        wanted : int
            How much is left to be placed, of what `Candidates.room` counts; the rest goes to other domains.
        """
        held = np.minimum(among.room, wanted)
        return lowest(among.spare - held * (among.spare.max(initial=0) + 1))

    def deal(self, among: Candidates, wanted: int, *, first: bool) -> Ints:
        """Return positions in the order in which candidates are filled, if `descends`: those with least room first.

        Parameters
        ----------
        among : Candidates
        wanted : int
            How much is to be placed, of what `Candidates.room` counts.
        first : bool
            Whether it is the first choice of a group that may use the whole cluster, so that one domain may hold all.
        """
        order: Ints = np.lexsort((among.spare, among.room))
        return order

    def below(self, among: Candidates, wanted: int) -> Ints:
        """Return positions in the order in which the parts of one domain are filled: those with least room first."""
        order: Ints = np.argsort(among.room, kind="stable")
        return order

    def shares(
        self, leaf: Leaf, tasks: int, domains: Domains, region: Region
    ) -> tuple[int, list[tuple[int, int]]] | None:
        """Return a level and how many tasks each of some of its domains is to hold, if it is to be no other way.

        It is asked before any domain is tried, and where what it says finds no room the domains are tried as usual.
        """
        return None


BEST_FIT = DomainOrder()
