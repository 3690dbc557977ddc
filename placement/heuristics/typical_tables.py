r"""What expected tasks could use of nodes whose cards are all of one kind, looked up instead of worked out.

With :math:`x_c` the idle units of card c, and b the number of CPU amounts asked by typical tasks that the node's free
CPU reaches, the idle GPU that the typical tasks m of weight :math:`w_m`, cards :math:`g_m` and units :math:`u_m` could
use is

.. math:: \sum_c x_c\,A_b(x_c) + \sum_u B_{bu}(k_u) \sum_{c: x_c \ge u} x_c

where :math:`A_b(x)` is the weight of the tasks of one card with CPU within b and :math:`u_m \le x` (that one of them
finds a card needs no test: without one it has nothing to use), :math:`k_u` the number of cards with :math:`x_c \ge u`,
and :math:`B_{bu}(k)` the weight of the tasks of several cards with CPU within b, :math:`u_m = u` and
:math:`g_m \le k`. Both are tables for each group of nodes that the same tasks may use.
"""

from __future__ import annotations

import numpy as np

from placement.heuristics.typical import Typical
from placement.instance import Bools, Instance, Ints

MOST_LOOKED_UP = 1 << 16
"""Card units up to which the level of an amount is in a table, which is quicker than to search for it."""

MIXED = -1
"""Group of nodes that have healthy cards of several kinds."""


class Tables:
    """The tables A and B of the module's text.

    Attributes
    ----------
    group : int array (K,)
        Group of each node class, or `MIXED`.
    """

    def __init__(self, instance: Instance, typical: Typical) -> None:
        widest = max((len(node_class.cards) for node_class in instance.classes), default=0)
        self._cpus = np.unique(typical.cpu)
        units = typical.units[typical.request]
        self._ones = np.unique(units[typical.gpus == 1])
        self._several = np.unique(units[typical.gpus > 1])
        keys: dict[tuple[bytes, int], int] = {}
        healthy = [kind.healthy for kind in instance.card_kinds]
        groups = []
        for k, node_class in enumerate(instance.classes):
            kinds = {kind for kind, _, _ in node_class.cards if healthy[kind]}
            if len(kinds) > 1:
                groups.append(MIXED)
                continue
            key = (typical.on_node[:, k].tobytes(), kinds.pop() if kinds else -1)
            groups.append(keys.setdefault(key, len(keys)))
        self.group: Ints = np.array(groups, dtype=np.int64)
        self._counts = widest + 1
        self._level_of: Ints | None = None
        if instance.card_units <= MOST_LOOKED_UP:
            self._level_of = self._ones.searchsorted(np.arange(instance.card_units + 1), side="right")
        cpu_levels = len(self._cpus) + 1
        self._by_card: Ints = np.zeros((len(keys), cpu_levels, len(self._ones) + 1), dtype=np.int64)
        self._by_count: list[Ints] = [
            np.zeros((len(keys), cpu_levels, widest + 1), dtype=np.int64) for _ in self._several
        ]
        cpu = np.searchsorted(self._cpus, typical.cpu) + 1  # the least level at which a task has its CPU
        for (on_node, kind), g in keys.items():
            mine: Bools = np.frombuffer(on_node, dtype=np.bool_) & typical.on_card[kind, typical.request]
            one = mine & (typical.gpus == 1)
            level = np.searchsorted(self._ones, units[one]) + 1
            np.add.at(self._by_card[g], (cpu[one], level), typical.weight[one])
            for table, size in zip(self._by_count, self._several, strict=True):
                # more cards than a node has are never found
                many = mine & (typical.gpus > 1) & (units == size) & (typical.gpus <= widest)
                np.add.at(table[g], (cpu[many], typical.gpus[many]), typical.weight[many])
        for table in (self._by_card, *self._by_count):
            np.cumsum(table, axis=1, out=table)
            np.cumsum(table, axis=2, out=table)

    def saved(self, group: Ints, cpu: Ints, idle: Ints) -> Ints:
        """Return what the typical tasks could use, weighted, of nodes with some CPU and idle units (C, nodes)."""
        base = self._base(group, cpu)
        found: Ints = (self._weights(base, self._levels(idle)) * idle).sum(axis=0)
        for table, size in zip(self._by_count, self._several, strict=True):
            room = idle >= size
            found += table.take(base * self._counts + room.sum(axis=0)) * (room * idle).sum(axis=0)
        return found

    def saved_by_share(self, group: Ints, cpu: tuple[Ints, Ints], idle: Ints, taken: int) -> Ints:
        """Return how much more they could use after some units of one card are taken, for each card (C, nodes).

        `cpu` is what each node has before and after. Cards with less than `taken` have numbers without meaning.
        """
        base, after = (self._base(group, amount) for amount in cpu)
        levels, less = self._levels(idle), np.maximum(idle - taken, 0)
        now = self._weights(after, levels) * idle
        found: Ints = self._weights(after, self._levels(less)) * less
        found -= now
        found += now.sum(axis=0) - (self._weights(base, levels) * idle).sum(axis=0)
        for table, size in zip(self._by_count, self._several, strict=True):
            room, still = idle >= size, less >= size
            use, count = room * idle, room.sum(axis=0)
            amount = use.sum(axis=0)
            found -= table.take(base * self._counts + count) * amount
            found += table.take(after * self._counts + count - (room ^ still)) * (amount - use + still * less)
        return found

    def _base(self, group: Ints, cpu: Ints) -> Ints:
        """Return group and level of CPU as one number."""
        return group * (len(self._cpus) + 1) + self._cpus.searchsorted(cpu, side="right")

    def _levels(self, idle: Ints) -> Ints:
        """Return how many of the sizes that tasks of one card have are within each of some idle units."""
        if self._level_of is None:
            return self._ones.searchsorted(idle, side="right")
        return self._level_of.take(idle)

    def _weights(self, base: Ints, levels: Ints) -> Ints:
        """Return A of the module's text."""
        return self._by_card.take(levels + base * (len(self._ones) + 1))
