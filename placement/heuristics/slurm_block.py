"""Slurm's topology/block: one block that is large enough for the job, and as few base blocks of it as may be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from placement.gang import Group
from placement.heuristics.domain_order import FIRST, Candidates, DomainOrder, lowest
from placement.heuristics.domains import Domains, Need
from placement.heuristics.first_fit import FirstFit
from placement.heuristics.needs import needs_of
from placement.heuristics.slurm_tree_best_fit import FewestNodes, fewest_first, usable_nodes
from placement.instance import Ints


class OneBlock(FewestNodes):
    """The block with the fewest usable nodes of those that hold all; else the one with most; of equals the last."""

    def levels(self, group: Group, domains: Domains, *, tied: bool) -> Sequence[int]:
        """Return the levels to try for a copy of a group: for the job the one that is large enough, and no other.

        A job that is tied together, by slices for one, is so by its own rules alone.
        """
        if group.path or tied:
            return DomainOrder.levels(self, group, domains, tied=tied)
        nodes = _nodes_needed(group, domains)
        return (next((level for level in range(domains.levels - 2, 0, -1) if _size(level, domains) >= nodes), 0),)

    def order(self, among: Candidates, wanted: int) -> Ints:
        """Return positions among the candidates; see `DomainOrder.order`."""
        nodes = usable_nodes(among)
        return lowest(np.where(among.room >= wanted, nodes - FIRST, -nodes), -np.arange(len(nodes)))

    def below(self, among: Candidates, wanted: int) -> Ints:
        """Return positions in the order in which the blocks within one, or the nodes of a base block, are filled."""
        if among.asked.level == among.asked.domains.levels - 1:
            return np.arange(len(among.room))
        backwards = fewest_first(usable_nodes(among)[::-1], among.room[::-1], wanted)
        found: Ints = len(among.room) - 1 - backwards
        return found


def _nodes_needed(group: Group, domains: Domains) -> int:
    """Return how many nodes a copy of a group takes, if each had the room of the one that has most now."""
    nodes = 0.0
    for need in needs_of(group):
        room = domains.room(domains.levels - 1, Need(need.shape, 1), domains.everywhere)[1]
        nodes += need.tasks / max(1, int(room.max(initial=0)))
    return int(np.ceil(nodes))


def _size(level: int, domains: Domains) -> int:
    """Return the nodes of the largest domain of a level, used ones and all."""
    known = domains.of_row[level][domains.of_row[level] >= 0]
    return int(np.bincount(known).max(initial=0))


class SlurmBlock(FirstFit):
    """A whole job in one block, which is made of as few base blocks as may be; levels of the snapshot are block sizes.

    The narrowest level above the node is that of base blocks. A job goes to the narrowest level of which a block is
    large enough for it when empty, to that block with the fewest usable nodes that hold it; if none does, it waits,
    even where blocks of a wider level would hold it. Within the block the one with most usable nodes is filled first,
    until one holds all the rest: of these it is the one with the fewest. Of equals the last one is taken; nodes are
    filled in the fixed order. A job that no level is large enough for takes blocks of the whole cluster.

    Source: ``eval_nodes_block``, ``_get_block_level`` and ``_choose_best_bblock`` in
    ``src/plugins/topology/block/eval_nodes_block.c`` of Slurm (SchedMD/slurm). Differs from the source in: the sizes
    there are powers of two of base blocks that follow one another in the file, here they are the levels; how many
    nodes a job takes is reckoned from the room that one node has now; node weights and required nodes have no
    counterpart; slices are its segments, taken one by one, each in the domain of its own level, consolidated or spread
    segments are not there; a job with rules on its groups is held together by these alone; and what
    `placement.heuristics.slurm_tree_best_fit` says of tasks beyond the minimum and
    of rules within the job goes for this, too. A node in no block takes nothing, as in the source.
    """

    name: ClassVar[str] = "slurm-block"
    domains: ClassVar[DomainOrder] = OneBlock()
