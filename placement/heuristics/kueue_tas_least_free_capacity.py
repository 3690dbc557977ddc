"""Kueue's topology-aware scheduling, LeastFreeCapacity: what has least room left is filled first."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from placement.heuristics.domain_order import Candidates, DomainOrder, lowest
from placement.heuristics.rule import Rule
from placement.instance import Ints


class LeastRoom(DomainOrder):
    """Domains by rising room for tasks."""

    descends: ClassVar[bool] = True

    def order(self, among: Candidates, wanted: int) -> Ints:
        """Return positions among the candidates; see `DomainOrder.order`."""
        return lowest(among.room, among.spare)

    def deal(self, among: Candidates, wanted: int, *, first: bool) -> Ints:
        """Return positions in the order in which candidates are filled: at first the one that holds all, if any."""
        one = among.tightest(np.arange(len(among.room)), wanted)
        return one if first and len(one) else super().deal(among, wanted, first=first)


class KueueTasLeastFreeCapacity(Rule):
    """Domains by rising number of tasks, or of slices, that they have room for.

    A group goes to the first domain that holds it all: of its required or preferred level, or of the next wider one
    where none of a preferred level does, of the widest where it asks for slices alone, or a node where it names no
    level. Within a domain, and where none holds all, tasks or slices fill the domains with least room first, level by
    level down to the node, so that fragments are used up.

    Source: ``useLeastFreeCapacityAlgorithm``, ``findLevelWithFitDomains`` and ``updateCountsToMinimumGeneric`` in
    ``tas_flavor_snapshot.go`` of Kueue (kubernetes-sigs/kueue, feature gate ``TASProfileLeastFreeCapacity``). What
    `placement.heuristics.kueue_tas_best_fit` says of levels, of equals and of what differs goes for this, too. The name
    is short for LeastFreeCapacity.
    """

    name: ClassVar[str] = "kueue-tas-least-free"
    domains: ClassVar[DomainOrder] = LeastRoom()

    def scores(self, shape: int, rows: Ints) -> Ints:
        """Return 0 for every row: which node it is is decided by domains, of which nodes are the narrowest."""
        return np.zeros(len(rows), dtype=np.int64)
