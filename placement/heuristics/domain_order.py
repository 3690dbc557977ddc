"""In which order a rule tries the domains that could hold tasks that are tied together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from placement.instance import Ints

MOST_TRIES = 32
"""Domains, or sets of domains, tried for one copy of a group."""
FIRST = 2**60
"""More than any room; taken off the scores of those that come before all others."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Domains of one level, ascending by number.

    Attributes
    ----------
    numbers : int array
    room : int array
        How much of what is to be placed each could hold, at most: copies, slices or tasks.
    idle : int array
        Idle card units in each.
    """

    numbers: Ints
    room: Ints
    idle: Ints


def lowest(score: Ints) -> Ints:
    """Return the positions of the `MOST_TRIES` lowest scores in rising order, of equal ones the first position first.

    There may be as many domains as nodes, and sorting them all would take most of the time.
    """
    if len(score) > MOST_TRIES:
        last = np.partition(score, MOST_TRIES - 1)[MOST_TRIES - 1]
        below = np.flatnonzero(score < last)
        some = np.concatenate([below, np.flatnonzero(score == last)[: MOST_TRIES - len(below)]])
        return some[np.argsort(score[some], kind="stable")]
    return np.argsort(score, kind="stable")


class DomainOrder:
    """Best fit: the domain with the fewest idle cards of those that could hold all that is left.

    Where none could, one that could hold most, so that few domains are used. Of equals the one of the lowest number
    is first.
    """

    descends: ClassVar[bool] = False
    """Whether tasks are dealt out to narrower and narrower domains down to the node, and not by the rule's scores."""

    def order(self, among: Candidates, wanted: int) -> Ints:
        """Return positions among the candidates, first one first, no more than `MOST_TRIES`.

        Parameters
        ----------
        among : Candidates
        wanted : int
            How much is left to be placed, of what `Candidates.room` counts; the rest goes to other domains.
        """
        held = np.minimum(among.room, wanted)
        return lowest(among.idle - held * (among.idle.max(initial=0) + 1))

    def deal(self, among: Candidates, wanted: int, *, first: bool) -> Ints:
        """Return positions among the candidates to deal tasks out to, if `descends`.

        Parameters
        ----------
        among : Candidates
        wanted : int
            Tasks left.
        first : bool
            Whether it is the first choice of a group that may use the whole cluster, so that one domain may hold all.
        """
        return self.order(among, wanted)


BEST_FIT = DomainOrder()
