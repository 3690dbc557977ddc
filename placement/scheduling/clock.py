"""How long jobs run where they are placed, data included, in whole milliseconds.

`placement.run_time` measures all jobs of an assignment at once, for any snapshot. Most jobs of most snapshots depend on
nothing but the level that they span, the models of their cards and how many tasks they have, which is looked up here.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from fractions import Fraction

import numpy as np

from placement.durations import RunTime
from placement.heuristics.gangs import Placed
from placement.instance import Assignment, Instance
from placement.numa import without_zones
from placement.run_time import by_cards, times
from placement.shared_cards import parted_leaves

ONE = Fraction(1)


class Clock:
    """Run times in one instance."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        parted = parted_leaves(instance)
        zoned = by_cards(instance)
        self._plain = [
            one.run is not None
            and not one.run.data
            and not parted[number].any()
            and not (zoned and (one.run.numa != 1 or one.run.nic != 1))
            for number, one in enumerate(instance.job_classes)
        ]
        self._cards = [[kind for kind, _, _ in one.cards] for one in instance.classes]
        self._node_class = instance.node_class.tolist()
        self._known: dict[tuple[int, int, frozenset[int], int], int] = {}

    def within(self, instance: Instance) -> Clock:
        """Return the same for another form of the instance."""
        other = copy(self)
        other._instance = instance
        return other

    def plain(self, number: int) -> bool:
        """Return whether jobs of a class depend on nothing but level, models and number of tasks."""
        return self._plain[number]

    def run(self, job: int, tasks: Sequence[Placed]) -> int:
        """Return how long a job runs with some tasks placed, from its start to its end."""
        number = int(self._instance.job_class[job])
        if not self._plain[number]:
            return self._measured(job, tasks)
        nodes = {spot[0] for _, _, spot in tasks}
        level = len(self._instance.levels) - 1 if len(nodes) == 1 else self._level(sorted(nodes))
        kinds = frozenset(self._kinds(tasks))
        key = number, level, kinds, len(tasks)
        if key not in self._known:
            self._known[key] = self._at(number, level, kinds, len(tasks))
        return self._known[key]

    def _at(self, number: int, level: int, kinds: frozenset[int], count: int) -> int:
        run = self._run_of(number)
        factors = dict(run.models)
        names = [self._instance.card_kinds[kind].model for kind in kinds]
        model = max((factors.get(name, ONE) for name in names), default=ONE)
        return run.milliseconds(level, model, False, False, speed=run.speed(count))

    def _run_of(self, number: int) -> RunTime:
        run = self._instance.job_classes[number].run
        assert run is not None
        return run

    def _kinds(self, tasks: Sequence[Placed]) -> set[int]:
        widest = self._instance.widest
        found: set[int] = set()
        for _, _, (node, cards) in tasks:
            kinds = self._cards[self._node_class[node]]
            found.update(kinds[card] for card in cards if card < widest)
        return found

    def _level(self, nodes: Sequence[int]) -> int:
        of_nodes = self._instance.domains[:, np.array(nodes)]
        same = (of_nodes == of_nodes[:, :1]).all(axis=1) & (of_nodes[:, 0] >= 0)
        return int(np.flatnonzero(same)[-1])

    def _measured(self, job: int, tasks: Sequence[Placed]) -> int:
        rows = [(job, leaf, number, node, cards) for leaf, number, (node, cards) in tasks]
        # cards alone: placed tasks list the zones that they are bound to behind them
        found = times(self._instance, without_zones(self._instance, Assignment.of(rows))[0])
        return found.run[0] + found.fetch[0]
