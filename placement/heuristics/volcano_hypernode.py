"""Volcano's network topology: a group goes to the narrowest hypernodes that hold it, and there to the fullest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from placement import units
from placement.gang import Group, Ties
from placement.heuristics.domain_order import Candidates, DomainOrder, lowest
from placement.heuristics.domains import Domains, node_rows
from placement.heuristics.nodes import Nodes
from placement.heuristics.ranking import Ranking
from placement.heuristics.rule import Finder, Floats, Rule
from placement.instance import Bools, Ints
from placement.snapshot import Node

FADING = 0.8
"""Weight of a tier relative to the one below it, for tasks that are tied to none: the source's default."""
STEPS = 10**9
"""Scores of domains, from 0 to 1, are told apart in so many steps."""
UNLIMITED = -1
"""Size of a node without a limit on a resource."""
LARGEST = 2**62
"""No sum may be larger."""


class FullestHypernode(DomainOrder):
    """The narrowest level that holds a copy, and of its domains the one of which most is used with it."""

    def __init__(self, use: Use) -> None:
        self._use = use

    def levels(self, group: Group, domains: Domains, *, tied: bool) -> Sequence[int]:
        """Return the levels to try for a copy of a group: all from that above the nodes up to what it may span."""
        ties = group.ties or Ties()
        asks = max(ties.required, ties.preferred)
        if asks <= 0:
            return (0,)
        return range(max(asks, domains.levels - 2), max(ties.required, 0) - 1, -1)

    def order(self, among: Candidates, wanted: int) -> Ints:
        """Return positions among the candidates; see `DomainOrder.order`."""
        asked = among.asked
        request = sum((wanted * one.tasks * self._use.request(one.shape) for one in asked.needs), self._use.nothing)
        share = self._use.share(asked.level, request)[among.numbers]
        return lowest(-(share * STEPS).astype(np.int64))


class VolcanoHypernodeBinpack(Rule):
    r"""Domains, called hypernodes, by the mean over CPU, memory and cards of :math:`(u + r)/a`, as far as asked for.

    Of what a domain has in all, a, u is in use and r is requested; a domain without room for r scores 0. A group that
    requires a level (hard mode), or prefers one (soft mode), goes to a domain of the narrowest level above the nodes
    that holds it, of these to the one with the highest score for the whole group, and if none holds it to the next
    wider level, up to the one it requires or else the cluster. So hard mode names the widest domain that is
    allowed, soft mode none. Each task goes to the node with the highest score of its domains for the task alone, from
    narrow to wide with weights 1, 0.8, 0.64, …; a domain that a node lacks scores 1. Of equals the first is taken.

    Source: ``HyperNodeOrderFn``, ``hyperNodeGradientFn`` and ``batchNodeOrderFnForNormalPods`` in
    ``pkg/scheduler/plugins/network-topology-aware/network_topology_aware.go`` of Volcano (volcano-sh/volcano), with
    cards among ``hypernode.binpack.resources`` and all weights 1. Differs from the source in: tasks of a group that
    names a level go there to nodes near those the group has already, and the first to any; here they follow the
    score, which fills one domain after the other as well, beginning with the fullest. The level that a group prefers
    is not looked at unless it is the node, for soft mode names none. Other plugins, which score nodes within a
    hypernode, are left out; nodes without a limit on a resource keep it out of their domains' score; running work
    is in use, but stops for nobody.
    """

    name: ClassVar[str] = "volcano-hypernode"

    def __init__(self, nodes: Nodes, rng: np.random.Generator) -> None:
        super().__init__(nodes, rng)
        self.use = Use(self)

    def domain_order(self) -> DomainOrder:
        """Return the order by what is in use now."""
        return FullestHypernode(self.use)

    def finder(self) -> Finder:
        """Return what finds the node whose domains are fullest."""
        return _Fullest(self)

    def scores(self, shape: int, rows: Ints) -> Ints:
        """Return 0 for every row: the finder decides, which looks at domains."""
        return np.zeros(len(rows), dtype=np.int64)


class Use:
    """What is in use of CPU, memory and cards in each domain, in counts of the instance's units.

    Attributes
    ----------
    nothing : float array (3,)
    levels : int
    of_row : int array (levels, rows)
        Number of the domain of each row; -1 for none.
    """

    def __init__(self, rule: Rule) -> None:
        instance = rule.nodes.instance
        self._rule, self._nodes = rule, rule.nodes
        self._columns = [
            instance.resources.index(name) if name in instance.resources else -1 for name in ("cpu", "memory")
        ]
        self.nothing: Floats = np.zeros(len(self._columns) + 1)
        order = np.array([rule.nodes.node(row) for row in range(rule.nodes.count)], dtype=np.int64)
        self.of_row: Ints = instance.domains[:, order]
        self.of_row[-1] = node_rows(instance, order)
        self.levels = len(self.of_row)
        specs = np.array([self._size_of(node) for node in instance.snapshot.nodes], dtype=np.int64)
        self._size: Ints = specs.reshape(-1, len(self.nothing))[instance.node_spec[order]]
        self._used: Ints = np.zeros_like(self._size)
        self._seen: Ints = np.full(rule.nodes.count, -1, dtype=np.int64)
        self._in_all = [_sums(of_row, np.maximum(self._size, 0)) for of_row in self.of_row]
        for of_row, in_all in zip(self.of_row, self._in_all, strict=True):
            row, column = np.nonzero(self._size == UNLIMITED)
            in_all[of_row[row], column] = 0
        self._in_use = [np.zeros_like(in_all) for in_all in self._in_all]

    def request(self, shape: int) -> Floats:
        """Return what one task asks for."""
        task = self._rule.shapes[shape]
        amounts = [task.demand[column] if column >= 0 else 0 for column in self._columns]
        return np.array([*amounts, task.gpus * task.units], dtype=np.float64)

    def share(self, level: int, request: Floats) -> Floats:
        """Return the score of each domain of a level for a request, and in the last place that of having none."""
        self._renew()
        size, used = self._in_all[level], self._in_use[level] + request
        counted = (request > 0) & (size > 0)
        over = (counted & (used > size)).any(axis=1)
        shares = np.where(counted, used / np.maximum(size, 1), 0.0).sum(axis=1) / np.maximum(counted.sum(axis=1), 1)
        found: Floats = np.where(over, 0.0, shares)
        found[-1] = 1.0
        return found

    def _size_of(self, node: Node) -> list[int]:
        """Return what a node has in all."""
        instance = self._rule.nodes.instance
        most = LARGEST // max(1, instance.nodes)  # so that no sum is too large
        sizes = []
        for column, amount in zip(self._columns, (node.cpu, node.memory), strict=True):
            if column < 0:
                sizes.append(0)
            elif amount is None:
                sizes.append(UNLIMITED)
            else:
                sizes.append(min(most, int(units.exact(amount) / instance.resource_units[column])))
        return [*sizes, instance.card_units * sum(gpu.count for gpu in node.gpus if gpu.health == "healthy")]

    def _renew(self) -> None:
        """Look again at the nodes that have changed."""
        version = self._nodes.version[: self._nodes.count]
        rows = np.flatnonzero(version != self._seen)
        if not len(rows):
            return
        self._seen[rows] = version[rows]
        state = self._nodes.state
        none = np.zeros(len(rows), dtype=np.int64)
        free = [state.free[rows, column] if column >= 0 else none for column in self._columns]
        left = np.stack([*free, self._rule.idle(rows).sum(axis=1)], axis=1)
        size = np.maximum(self._size[rows], 0)
        used = size - np.clip(left, 0, size)
        for of_row, in_use in zip(self.of_row, self._in_use, strict=True):
            np.add.at(in_use, of_row[rows], used - self._used[rows])
        self._used[rows] = used


class _Fullest:
    """Finds the node whose domains have the highest score."""

    def __init__(self, rule: VolcanoHypernodeBinpack) -> None:
        self._use, self._ranking = rule.use, Ranking(rule)

    def find(self, shape: int, within: Bools | None) -> int:
        """Return the row of the node for one task, among some if `within` is given; -1 where it fits nowhere."""
        fits = self._ranking.of(shape) > self._ranking.no_room
        rows = np.flatnonzero(fits if within is None else fits & within)
        if not len(rows):
            return -1
        request, score, weight = self._use.request(shape), np.zeros(len(rows)), 1.0
        for level in range(self._use.levels - 2, 0, -1):
            score += weight * self._use.share(level, request)[self._use.of_row[level, rows]]
            weight *= FADING
        return int(rows[np.argmax(score)])

    def undone(self, rows: Ints) -> None:
        """Take into account that tasks on some rows were taken back."""
        self._ranking.undone(rows)

    def commit(self) -> None:
        """Take what was placed so far as final."""
        self._ranking.commit()


def _sums(of_row: Ints, values: Ints) -> Ints:
    """Return the sums over the rows of each domain, and of those in none in the last place."""
    sums = np.zeros((int(of_row.max(initial=-1)) + 2, values.shape[1]), dtype=np.int64)
    np.add.at(sums, of_row, values)
    return sums
