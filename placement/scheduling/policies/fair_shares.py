"""Shares of time on kinds of nodes by max-min fairness."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from placement.exact.milp.arrays import Program
from placement.heuristics.fastest_fit import FastestFit
from placement.heuristics.filling import Filling
from placement.heuristics.gangs import Placed
from placement.instance import Ints
from placement.scheduling.desk import Desk

LITTLE = 1e-6
"""What all together counts beside who has least."""


class Kinds:
    """Nodes by the models of their cards.

    Attributes
    ----------
    nodes : list of int array
        Of each kind.
    of_node : list of int
        Kind of each node.
    units : list of int
        Card units of each kind.
    """

    def __init__(self, desk: Desk) -> None:
        instance = desk.work.instance
        number: dict[frozenset[str], int] = {}
        self._desk = desk
        self._speed: dict[int, list[float]] = {}
        self._empty = Filling(instance, FastestFit, math.inf, 0)
        self._places: dict[tuple[int, int], list[Placed]] = {}
        """Where a job of each kind is placed on the nodes of each kind when they are empty."""
        of_class, units = [], [0] * len(instance.classes)
        for one in instance.classes:
            healthy = [card for card in one.cards if instance.card_kinds[card[0]].healthy]
            models = frozenset(instance.card_kinds[kind].model for kind, _, _ in healthy)
            of_class.append(number.setdefault(models, len(number)))
            units[of_class[-1]] += one.size * sum(free for _, free, _ in healthy)
        self.units = units[: len(number)]
        self.of_node = [of_class[one] for one in instance.node_class.tolist()]
        self.nodes: list[Ints] = [np.flatnonzero(np.array(self.of_node) == kind) for kind in range(len(number))]

    def speeds(self, job: int) -> list[float]:
        """Return what part of its work a job does in a millisecond on each kind; 0 where it cannot run."""
        one = int(self._desk.work.instance.job_class[job])
        if one not in self._speed:
            self._speed[one] = [self._alone(job, one, kind) for kind in range(len(self.nodes))]
        return self._speed[one]

    def _alone(self, job: int, job_class: int, kind: int) -> float:
        key = self._desk.kind(job), kind
        if key not in self._places:
            self._empty.keep_to(self.nodes[kind])
            self._places[key] = self._empty.serve(job_class, [])
            self._empty.release(job_class, self._places[key])
        tasks = self._places[key]
        return 1 / max(1, self._desk.clock.run(job, tasks)) if tasks else 0.0


def fair_shares(desk: Desk, kinds: Kinds, jobs: Sequence[int], units: Sequence[int]) -> dict[int, list[float]]:
    """Return the part of the time that each job is to have on each kind.

    The least, over jobs, of cards times speed over weight is made greatest, where the speed is relative to that with as
    much time on each kind as it has of all cards (Gavel, OSDI 2020, section 4.1). Jobs without cards have all the time
    wherever they can run.

    Parameters
    ----------
    desk : Desk
    kinds : Kinds
    jobs : sequence of int
    units : sequence of int
        Card units of each kind that are to be shared.
    """
    found = {job: [float(speed > 0) for speed in kinds.speeds(job)] for job in jobs if not desk.cards(job)}
    alike: dict[tuple[int, int], list[int]] = defaultdict(list)
    for job in jobs:
        if desk.cards(job):
            alike[int(desk.work.instance.job_class[job]), max(1, int(desk.work.weight[job]))].append(job)
    groups = [group for group in alike.values() if any(kinds.speeds(group[0]))]
    if not groups or not sum(units):
        return found
    shares = _level(desk, groups, units) if len(units) == 1 else _fairest(desk, kinds, groups, units)
    return found | {job: share for group, share in zip(groups, shares, strict=True) for job in group}


def _level(desk: Desk, groups: Sequence[Sequence[int]], units: Sequence[int]) -> list[list[float]]:
    """Return the shares on one kind: all rise by weight over cards until a job has all the time, or none is left."""
    wanted = [desk.cards(group[0]) for group in groups]
    rates = [max(1, int(desk.work.weight[group[0]])) for group in groups]
    left, shares = float(units[0]), [1.0] * len(groups)
    rising = sorted(range(len(groups)), key=lambda one: wanted[one] / rates[one])
    still = sum(rates[other] * len(groups[other]) for other in rising)
    for place, one in enumerate(rising):
        level = left / still
        if level * rates[one] < wanted[one]:
            for other in rising[place:]:
                shares[other] = level * rates[other] / wanted[other]
            break
        left -= wanted[one] * len(groups[one])
        still -= rates[one] * len(groups[one])
    return [[share] for share in shares]


def _fairest(desk: Desk, kinds: Kinds, groups: Sequence[Sequence[int]], units: Sequence[int]) -> list[list[float]]:
    """Return the shares on several kinds, by a linear program over the jobs of each group alike."""
    from placement.exact.milp.highs import solve

    count, width = len(groups), len(units)
    card = desk.work.instance.card_units
    wanted = np.array([desk.cards(group[0]) / card for group in groups])
    number = np.array([len(group) for group in groups], dtype=np.float64)
    weight = np.array([max(1, int(desk.work.weight[group[0]])) for group in groups], dtype=np.float64)
    speed = np.array([kinds.speeds(group[0]) for group in groups])
    equal = speed @ (np.array(units) / sum(units))
    runs = equal > 0
    gain = speed * np.divide(wanted / weight, equal, out=np.zeros(count), where=runs)[:, np.newaxis]
    rows: list[tuple[list[int], list[float], float, float]] = []
    for one in range(count):
        mine = [one * width + kind for kind in range(width)]
        rows.append((mine, [1.0] * width, -math.inf, 1.0))
        if runs[one]:  # on something that is to be shared
            rows.append(([*mine, count * width], [*gain[one].tolist(), -1.0], 0.0, math.inf))
    for kind in range(width):
        columns = [one * width + kind for one in range(count)]
        rows.append((columns, (number * wanted).tolist(), -math.inf, units[kind] / card))
    program = Program(
        sense=-1,
        cost=np.append(LITTLE * (gain * number[:, np.newaxis]).reshape(-1) / count, 1.0),
        lower=np.zeros(count * width + 1),
        upper=np.append((speed > 0).astype(np.float64).reshape(-1), math.inf),
        integer=np.zeros(count * width + 1, dtype=np.bool_),
        start=np.cumsum([0, *(len(row[0]) for row in rows)]).astype(np.int32),
        index=np.array([column for row in rows for column in row[0]], dtype=np.int32),
        value=np.array([value for row in rows for value in row[1]]),
        row_lower=np.array([row[2] for row in rows]),
        row_upper=np.array([row[3] for row in rows]),
    )
    x = solve(program).x
    assert x is not None, "shares of nothing are always possible"
    return np.clip(np.round(x[:-1], 9), 0, 1).reshape(count, width).tolist()
