"""Kueue's topology-aware scheduling, LeastFreeCapacity: what has least room left is filled first."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from placement.heuristics.domain_order import FIRST, Candidates, DomainOrder, lowest
from placement.heuristics.rule import Rule
from placement.instance import Ints


class LeastRoom(DomainOrder):
    """Domains by rising room for tasks."""

    descends: ClassVar[bool] = True

    def order(self, among: Candidates, wanted: int) -> Ints:
        """Return positions among the candidates; see `DomainOrder.order`."""
        return lowest(among.room)

    def deal(self, among: Candidates, wanted: int, *, first: bool) -> Ints:
        """Return positions among the candidates to deal tasks out to; see `DomainOrder.deal`."""
        return lowest(np.where(first & (among.room >= wanted), among.room - FIRST, among.room))


class KueueTasLeastFreeCapacity(Rule):
    """Domains by rising number of tasks, or of slices, that they have room for.

    A group goes to the first domain that holds it all: of its required or preferred level, or of the next wider one
    where none of a preferred level does, or a node where it names no level. Within a domain, and where no node holds
    all, tasks fill the domains with least room first, level by level down to the node, so that fragments are used up.

    Source: ``useLeastFreeCapacityAlgorithm``, ``findLevelWithFitDomains`` and ``updateCountsToMinimumGeneric`` in
    ``tas_flavor_snapshot.go`` of Kueue (kubernetes-sigs/kueue, feature gate ``TASProfileLeastFreeCapacity``). What
    `placement.heuristics.kueue_tas_best_fit` says of equals, other ties and growth goes for this, too.
    """

    name: ClassVar[str] = "kueue-tas-least-free"
    domains: ClassVar[DomainOrder] = LeastRoom()

    def scores(self, shape: int, rows: Ints) -> Ints:
        """Return 0 for every row: which node it is is decided by domains, of which nodes are the narrowest."""
        return np.zeros(len(rows), dtype=np.int64)
