"""Units in which everything a snapshot asks for is a whole number."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from placement import units
from placement.hardware.mig import fraction
from placement.rules import DIMENSIONS
from placement.snapshot import Task, TaskGroup

LARGEST = 2**60
"""Sums over the cluster stay below this, so that 64-bit sums of them cannot overflow."""
FINEST = 10**12
"""Most units to a card."""

Capacity = Mapping[str, Fraction | None]
"""What a node provides, by resource name; None is no limit."""


@dataclass(frozen=True, slots=True)
class Amounts:
    """What one task takes, in base units; of each card `least` where that is more than its share.

    A MIG instance counts as a share of its card, see `placement.hardware.mig.fraction`.
    """

    demand: dict[str, Fraction]
    share: Fraction
    memory: Fraction
    least: Fraction = Fraction(0)

    @property
    def part(self) -> Fraction:
        """Part of each card that it is counted as."""
        return max(self.share, self.least)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A distinct task, what it takes, how many of it there are, and in how many groups of job entries it is."""

    task: Task
    amounts: Amounts
    count: int
    entries: int


@dataclass(frozen=True, slots=True)
class Scale:
    """Units in which everything becomes a whole number.

    Attributes
    ----------
    resources : dict of str to Fraction
    card, memory : Fraction
    exact : bool
        Whether every unit is the greatest common divisor of what is asked.
    finest : Scale, optional
        The greatest common divisors, where one was too fine for 64 bits; absent where they are the units themselves.
    """

    resources: dict[str, Fraction]
    card: Fraction
    memory: Fraction
    exact: bool
    finest: Scale | None = None

    @property
    def whole(self) -> Scale:
        """Units of which every request is a whole number, however large."""
        return self.finest or self


def amounts_of(task: Task) -> Amounts:
    """Return what one task takes."""
    demand: dict[str, Fraction] = {}
    for dimension in DIMENSIONS:
        demand.update(dimension.demand(task))
    if task.mig_profile:
        # what it counts as; `placement.mig` knows what it takes, and its memory is its own
        return Amounts(demand, fraction(task.mig_profile) or Fraction(0), Fraction(0))
    share = Fraction(0) if not task.gpus else units.exact(1 if task.gpu_share is None else task.gpu_share)
    memory = Fraction(0) if not task.gpus or task.gpu_memory is None else units.exact(task.gpu_memory)
    return Amounts(demand, share, memory)


def counted(groups: Iterable[TaskGroup], copies: int = 1) -> Iterable[tuple[Task, int]]:
    """Yield each task with how many of it one job has."""
    for group in groups:
        if group.task is not None:
            yield group.task, copies * group.count
        yield from counted(group.groups, copies * group.count)


def round_up(value: Fraction, unit: Fraction) -> int:
    """Return ``ceil(value / unit)``; a fraction need not be put in lowest terms for it."""
    return -(-value.numerator * unit.denominator // (value.denominator * unit.numerator))


def total(values: Iterable[tuple[Fraction, int]]) -> Fraction:
    """Return the sum of values, each times a whole number.

    Examples
    --------
    >>> total([(Fraction(1, 2), 3), (Fraction(2), 1)])
    Fraction(7, 2)
    """
    numerators: dict[int, int] = defaultdict(int)
    for value, count in values:
        numerators[value.denominator] += value.numerator * count
    return sum((Fraction(numerator, one) for one, numerator in numerators.items()), Fraction(0))


def gcd(values: Iterable[Fraction]) -> Fraction:
    """Return the greatest common divisor of positive rationals; 1 when there are none."""
    numerator, denominator = 0, 1
    for value_numerator, value_denominator in {value.as_integer_ratio() for value in values}:
        denominator_new = math.lcm(denominator, value_denominator)
        numerator = math.gcd(
            numerator * (denominator_new // denominator), value_numerator * (denominator_new // value_denominator)
        )
        denominator = denominator_new
    return Fraction(numerator, denominator) if numerator else Fraction(1)


def choose_scale(
    wanted: Sequence[Wanted], capacities: Iterable[tuple[Capacity, int]], parts: Iterable[Fraction] = ()
) -> Scale:
    """Choose units that make every request whole; coarser ones only where 64 bits would overflow.

    Parameters
    ----------
    wanted : sequence of Wanted
    capacities : iterable of (capacity, int)
        What nodes of each kind provide, and how many there are of the kind.
    parts : iterable of Fraction
        Parts of a card beside the shares asked for that are to be whole too.
    """
    names = dict.fromkeys(name for item in wanted for name in item.amounts.demand)
    kinds = list(capacities)
    places = max(1, sum(count for _, count in kinds))
    totals = {
        name: total((value, item.count) for item in wanted if (value := item.amounts.demand.get(name)))
        + total((value, count) for capacity, count in kinds if (value := capacity.get(name)))
        for name in names
    }
    finest = Scale(
        resources={name: gcd(d for item in wanted if (d := item.amounts.demand.get(name))) for name in totals},
        card=gcd([Fraction(1), *(item.amounts.share for item in wanted if item.amounts.share), *parts]),
        memory=gcd(item.amounts.memory for item in wanted if item.amounts.memory),
        exact=True,
    )
    resources = {
        name: totals[name] * places / LARGEST if totals[name] * places / unit > LARGEST else unit
        for name, unit in finest.resources.items()
    }
    card = Fraction(1, FINEST) if 1 / finest.card > FINEST else finest.card
    largest = total((item.amounts.memory, item.count) for item in wanted)
    memory = largest / LARGEST if largest / finest.memory > LARGEST else finest.memory
    if (resources, card, memory) == (finest.resources, finest.card, finest.memory):
        return finest
    return Scale(resources, card, memory, exact=False, finest=finest)


def total_memory(wanted: Sequence[Wanted], scale: Scale) -> int:
    """Return all device memory asked for and one task more of each kind, in the scale's unit; no card can need more."""
    return round_up(total((item.amounts.memory, item.count + item.entries) for item in wanted), scale.memory)


def total_demand(wanted: Sequence[Wanted], scale: Scale) -> dict[str, int]:
    """Return what stands for "no limit" of each resource and of card units (``"gpus"``): more than all tasks ask for.

    One more task of each kind is counted than is wanted: fragmentation asks what would fit on top of a plan.
    """
    demand: dict[str, int] = defaultdict(int)
    for item in wanted:
        number = item.count + item.entries
        for name, value in item.amounts.demand.items():
            demand[name] += round_up(value, scale.resources[name]) * number
        demand["gpus"] += round_up(item.amounts.part, scale.card) * item.task.gpus * number
    return demand
