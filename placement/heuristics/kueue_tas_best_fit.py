"""Kueue's topology-aware scheduling, BestFit: the domain with least free capacity that fits, else as few as may be."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from placement.heuristics.domain_order import FIRST, Candidates, DomainOrder, lowest
from placement.heuristics.rule import Rule
from placement.instance import Ints


class FewestDomains(DomainOrder):
    """The domain with room for the fewest tasks of those that hold all that is left; where none does, most room."""

    descends: ClassVar[bool] = True

    def order(self, among: Candidates, wanted: int) -> Ints:
        """Return positions among the candidates; see `DomainOrder.order`."""
        fits = among.room >= wanted
        return lowest(np.where(fits, among.room - FIRST, -among.room))


class KueueTasBestFit(Rule):
    """Domains by the number of tasks, or of slices, that they have room for.

    A group with a required or preferred level goes to the domain of that level with least such room that holds it
    all, and for a preferred level that has none, of the next wider one. What no one domain holds, and what is in a
    domain level by level down to the node, goes to the domains with most room, each filled in turn, until one holds
    all the rest: of these it is the one with least room. A group that names no level is dealt out to nodes at once.
    Groups of several kinds of tasks are counted in whole copies, and each kind is dealt out by itself.

    Source: ``findLevelWithFitDomains`` and ``updateCountsToMinimumGeneric`` in ``tas_flavor_snapshot.go`` of Kueue
    (kubernetes-sigs/kueue; the default up to version 0.14). Of equals Kueue takes the first by name, here it is the
    first of the file. Kueue knows no balance across members, spread or affinity of this kind; they shut domains out as
    for every rule. Tasks beyond the minimum are not dealt out but take the first node with room.
    """

    name: ClassVar[str] = "kueue-tas-best-fit"
    domains: ClassVar[DomainOrder] = FewestDomains()

    def scores(self, shape: int, rows: Ints) -> Ints:
        """Return 0 for every row: which node it is is decided by domains, of which nodes are the narrowest."""
        return np.zeros(len(rows), dtype=np.int64)
