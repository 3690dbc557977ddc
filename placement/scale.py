"""Units in which everything a snapshot asks for is a whole number."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from placement import units
from placement.rules import DIMENSIONS
from placement.snapshot import Snapshot, Task, TaskGroup

LARGEST = 2**60
"""Sums over the cluster stay below this, so that 64-bit sums of them cannot overflow."""
FINEST = 10**12
"""Most units to a card."""


@dataclass(frozen=True, slots=True)
class Amounts:
    """What one task takes, in base units."""

    demand: dict[str, Fraction]
    share: Fraction
    memory: Fraction


@dataclass(frozen=True, slots=True)
class Scale:
    """Units in which everything becomes a whole number."""

    resources: dict[str, Fraction]
    card: Fraction
    memory: Fraction
    exact: bool


def tasks_of(groups: Iterable[TaskGroup]) -> Iterable[Task]:
    """Yield the task of every leaf group, in the order of the file."""
    for group in groups:
        if group.task is not None:
            yield group.task
        yield from tasks_of(group.groups)


def amounts_of(task: Task) -> Amounts:
    """Return what one task takes."""
    demand: dict[str, Fraction] = {}
    for dimension in DIMENSIONS:
        demand.update(dimension.demand(task))
    share = Fraction(0) if not task.gpus else units.exact(1 if task.gpu_share is None else task.gpu_share)
    memory = Fraction(0) if not task.gpus or task.gpu_memory is None else units.exact(task.gpu_memory)
    return Amounts(demand, share, memory)


def counted(groups: Iterable[TaskGroup], copies: int = 1) -> Iterable[tuple[Task, int]]:
    """Yield each task with how many of it one job has."""
    for group in groups:
        if group.task is not None:
            yield group.task, copies * group.count
        yield from counted(group.groups, copies * group.count)


def gcd(values: Iterable[Fraction]) -> Fraction:
    """Return the greatest common divisor of positive rationals; 1 when there are none."""
    numerator, denominator = 0, 1
    for value in set(values):
        denominator_new = math.lcm(denominator, value.denominator)
        numerator = math.gcd(
            numerator * (denominator_new // denominator), value.numerator * (denominator_new // value.denominator)
        )
        denominator = denominator_new
    return Fraction(numerator, denominator) if numerator else Fraction(1)


def choose_scale(snapshot: Snapshot, amounts: dict[int, Amounts]) -> Scale:
    """Choose units that make every request whole; coarser ones only where 64 bits would overflow."""
    exact = True
    names = dict.fromkeys(name for amount in amounts.values() for name in amount.demand)
    totals: dict[str, Fraction] = defaultdict(Fraction)
    for job in snapshot.jobs:
        for task, count in counted(job.groups, job.count):
            for name, value in amounts[id(task)].demand.items():
                totals[name] += value * count
    for node in snapshot.nodes:
        for dimension in DIMENSIONS:
            for name, capacity in dimension.capacity(node).items():
                if name in names and capacity is not None:
                    totals[name] += capacity * node.count
    resources: dict[str, Fraction] = {}
    places = max(1, sum(node.count for node in snapshot.nodes))
    for name in names:
        unit = gcd(amount.demand[name] for amount in amounts.values() if amount.demand.get(name))
        if totals[name] * places / unit > LARGEST:
            unit = totals[name] * places / LARGEST
            exact = False
        resources[name] = unit
    card = gcd([Fraction(1), *(amount.share for amount in amounts.values() if amount.share)])
    if 1 / card > FINEST:
        card, exact = Fraction(1, FINEST), False
    memory = gcd(amount.memory for amount in amounts.values() if amount.memory)
    largest = sum(
        (amounts[id(t)].memory * c for j in snapshot.jobs for t, c in counted(j.groups, j.count)), Fraction(0)
    )
    if largest / memory > LARGEST:
        memory, exact = largest / LARGEST, False
    return Scale(resources, card, memory, exact)


def total_memory(snapshot: Snapshot, amounts: dict[int, Amounts], scale: Scale) -> int:
    """Return all device memory asked for and one task more of each kind, in the scale's unit; no card can need more."""
    total = sum(
        (amounts[id(t)].memory * (c + 1) for j in snapshot.jobs for t, c in counted(j.groups, j.count)), Fraction(0)
    )
    return math.ceil(total / scale.memory)
