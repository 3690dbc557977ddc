"""Slurm's topology/tree: the lowest switch that holds the job, and below it the leaves that fit best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from placement.gang import Group
from placement.heuristics.domain_order import FIRST, Candidates, DomainOrder, lowest
from placement.heuristics.domains import Domains, Need
from placement.heuristics.first_fit import FirstFit
from placement.instance import Ints


class FewestNodes(DomainOrder):
    """Of the switches that hold all that is left the one with the fewest usable nodes; else the one with most."""

    descends: ClassVar[bool] = True
    anew: ClassVar[bool] = False

    def levels(self, group: Group, domains: Domains, *, tied: bool) -> Sequence[int]:
        """Return the levels to try for a copy of a group: for the job from the leaves of the tree up to the cluster."""
        return super().levels(group, domains, tied=tied) if group.path else range(domains.levels - 2, -1, -1)

    def order(self, among: Candidates, wanted: int) -> Ints:
        """Return positions among the candidates; see `DomainOrder.order`."""
        nodes = usable_nodes(among)
        return lowest(np.where(among.room >= wanted, nodes - FIRST, -nodes))

    def below(self, among: Candidates, wanted: int) -> Ints:
        """Return positions in the order in which the switches below one, or the nodes of a leaf, are filled."""
        if among.asked.level == among.asked.domains.levels - 1:
            return np.arange(len(among.room))
        return fewest_first(usable_nodes(among), among.room, wanted)


def fewest_first(nodes: Ints, room: Ints, wanted: int) -> Ints:
    """Return positions in the order in which some switches or blocks are filled, the last of them the tightest.

    Those with most nodes come first, until one holds all that is left: then it is the one with the fewest.
    """
    most_first = np.argsort(-nodes, kind="stable")
    for used, position in enumerate(most_first.tolist()):
        left = most_first[used:]
        holds = left[room[left] >= wanted]
        if len(holds):
            holds = np.sort(holds)
            return np.append(most_first[:used], holds[int(nodes[holds].argmin())])
        wanted -= int(room[position])
    return most_first


def usable_nodes(among: Candidates) -> Ints:
    """Return how many nodes of each candidate have room for one task at least of those that were asked for."""
    asked = among.asked
    of_row = asked.domains.of_row[asked.level]
    rows: Ints = np.zeros(0, dtype=np.int64)
    for shape in {need.shape for need in asked.needs}:
        some, room = asked.domains.room(asked.domains.levels - 1, Need(shape, 1), asked.region)
        rows = np.union1d(rows, some[room > 0])
    counts = np.bincount(of_row[rows[of_row[rows] >= 0]], minlength=int(among.numbers.max(initial=0)) + 1)
    found: Ints = counts[among.numbers]
    return found


class SlurmTreeBestFit(FirstFit):
    """Switches by the number of nodes that the job could use; a level of the snapshot is a level of switches.

    A job goes to a leaf switch that holds all of it, that with the fewest usable nodes; if none does, to such a switch
    of the next wider level, and so on up to the cluster, which counts as a switch above all others. Below a switch the
    one with most usable nodes is filled first, until one holds all the rest: of these it is the one with the fewest.
    So it goes on down to the leaves, whose nodes are filled in the fixed order. Of equals the first one is taken.

    Source: ``_eval_nodes_topo``, ``_topo_choose_best_switch`` and ``_topo_compare_switches`` in
    ``src/plugins/topology/tree/eval_nodes_tree.c`` of Slurm (SchedMD/slurm). Differs from the source in: which
    switches come next depends there on their order in the file as well, where a near one does not hold the rest and a
    far one does, here near ones come first; node weights, ``--switches`` with a time to wait, dragonfly and required
    nodes have no counterpart, a required level is ``--switches=1`` that waits for ever; the cluster is one network
    even where the tree has several roots; a switch holds the rest by tasks, there by nodes and CPUs; and what Slurm
    does not know: tasks beyond the minimum, which take the first node with room, and rules on groups within the job,
    whose domains are chosen in the same order. A node below no leaf switch takes nothing, as in the source. Without
    levels nodes are filled in the fixed order.
    """

    name: ClassVar[str] = "slurm-tree-best-fit"
    domains: ClassVar[DomainOrder] = FewestNodes()
