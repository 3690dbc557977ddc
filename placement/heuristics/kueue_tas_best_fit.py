"""Kueue's topology-aware scheduling, BestFit: the domain with least free capacity that fits, else as few as may be."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from placement.heuristics.domain_order import FIRST, Candidates, DomainOrder, lowest
from placement.heuristics.rule import Rule
from placement.instance import Ints


class FewestDomains(DomainOrder):
    """The domain with room for the fewest slices or tasks of those that hold all that is left; else with most room."""

    descends: ClassVar[bool] = True

    def order(self, among: Candidates, wanted: int) -> Ints:
        """Return positions among the candidates; see `DomainOrder.order`."""
        fits = among.room >= wanted
        return lowest(np.where(fits, among.room - FIRST, -among.room), among.spare)

    def deal(self, among: Candidates, wanted: int, *, first: bool) -> Ints:
        """Return positions in the order in which candidates are filled, the last of them the tightest."""
        one = among.tightest(np.arange(len(among.room)), wanted)
        if len(one):
            return one
        order: Ints = np.lexsort((among.spare, -among.room))
        room = among.room[order]
        left = wanted - np.cumsum(room) + room
        holds = np.flatnonzero(room >= left)[:1]
        if not len(holds):
            return order
        full = int(holds[0])
        return np.append(order[:full], among.tightest(order[full:], int(left[full])))


class KueueTasBestFit(Rule):
    """Domains by the number of tasks, or of slices, that they have room for.

    A group with a required or preferred level goes to the domain of that level with least such room that holds it
    all, and for a preferred level that has none, of the next wider one. What no one domain holds, and what is in a
    domain level by level down to the node, or to the level of slices, goes to the domains with most room, each filled
    in turn, until one holds all the rest: of these it is the one with least room. Each level is dealt out anew to all
    that lies in the domains chosen at the level above. Of equals the one with room for fewer single tasks comes first.
    Below the level of slices each domain's tasks are dealt out by themselves, to what has least room first. What
    asks for slices alone, or prefers a level in vain, starts at the widest level, a group that names none at the nodes.
    Groups of several kinds of tasks are counted in whole copies, and each kind is dealt out by itself.

    Source: ``findLevelWithFitDomains``, ``sortedDomains`` and ``updateCountsToMinimumGeneric`` in
    ``tas_flavor_snapshot.go`` of Kueue (kubernetes-sigs/kueue; the default up to version 0.14). Differs from the
    source in: of equals Kueue takes the first by name, here it is the first of the file; slices within slices, slices
    of several sizes, those of groups that hold groups and those that other ties keep apart are placed one by one; a
    leader and its workers are not counted together below the domain that holds both; and what Kueue does not know:
    tasks beyond the minimum, which take the first node with room, and balance across members, spread and affinity of
    this kind, which shut domains out as for every rule.
    """

    name: ClassVar[str] = "kueue-tas-best-fit"
    domains: ClassVar[DomainOrder] = FewestDomains()

    def scores(self, shape: int, rows: Ints) -> Ints:
        """Return 0 for every row: which node it is is decided by domains, of which nodes are the narrowest."""
        return np.zeros(len(rows), dtype=np.int64)
