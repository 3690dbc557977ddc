"""The phases of a plan: what each objective reaches, and the best bound on it that can be trusted."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction

from placement.evaluate import SENSE, demand
from placement.instance import Instance
from placement.plan import Phase
from placement.solver import Bound

ROUNDING = 1e-11
"""Relative error of a number that was added up in double precision."""

Reached = tuple[str, int | None, Fraction]
"""Objective, priority and value of a phase."""


Key = tuple[str, int | None]
"""Objective and priority of a phase."""


def phases_of(
    instance: Instance, reached: Sequence[Reached], bounds: Mapping[str, Sequence[Bound]]
) -> tuple[list[Phase], bool, list[str]]:
    """Return the phases, whether all of them are proven, and what is to be said about bounds that are wrong."""
    usable, notes = _trusted(instance, reached, bounds if instance.exact else {})
    limits = _limits(instance)
    phases, proven = [], True
    for name, priority, value in reached:
        sense = SENSE[name]
        best, conditional = _best_bound(instance, limits[name, priority], usable[name, priority], sense)
        proven = proven and best == value
        shown = float(value) if best == value else _outwards(best, sense, float(value))
        phases.append(
            Phase(
                objective=name,
                priority=priority,
                sense="max" if sense > 0 else "min",
                value=float(value),
                bound=shown,
                gap=gap(float(value), shown),
                conditional=conditional,
            )
        )
    return phases, proven, notes


def _trusted(
    instance: Instance, reached: Sequence[Reached], bounds: Mapping[str, Sequence[Bound]]
) -> tuple[dict[Key, list[Bound]], list[str]]:
    """Return the bounds that hold for the plan by phase, of all methods but those that the plan itself contradicts."""
    usable: dict[Key, list[Bound]] = defaultdict(list)
    notes = []
    values = {(name, priority): value for name, priority, value in reached}
    kept = _Kept(reached)
    for source, given in bounds.items():
        valid = [bound for bound in given if kept.holds(bound)]
        if any(
            (_round(instance, bound) - values[bound.objective, bound.priority]) * SENSE[bound.objective] < 0
            for bound in valid
        ):
            notes.append(f"{source}: the plan contradicts a bound it gave, so none of its bounds is used")
            continue
        for bound in valid:
            usable[bound.objective, bound.priority].append(bound)
    return usable, notes


class _Kept:
    """Tells which bounds hold for a plan that reached some values.

    A bound that takes earlier values as given speaks of all plans whose earlier values are at least as good. Bounds
    of one run take the same values as given, each one more than the one before, so what was found good is kept.
    """

    def __init__(self, reached: Sequence[Reached]) -> None:
        self._reached = reached
        self._number = {(name, priority): number for number, (name, priority, _) in enumerate(reached)}
        self._good: tuple[float, ...] = ()

    def holds(self, bound: Bound) -> bool:
        """Return whether a bound is on a phase of the plan, and takes as given what the plan keeps."""
        number = self._number.get((bound.objective, bound.priority))
        if number is None or bound.value is None:
            return False
        return not bound.held or (len(bound.held) == number and self._keeps(bound.held))

    def _keeps(self, held: tuple[float, ...]) -> bool:
        known = min(len(held), len(self._good))
        begin = known if held[:known] == self._good[:known] else 0
        for (objective, _, value), given in zip(self._reached[begin : len(held)], held[begin:], strict=True):
            least = Fraction(given)
            if (value - least) * SENSE[objective] < -Fraction(ROUNDING) * abs(least):
                return False
        if len(held) > len(self._good):
            self._good = held
        return True


def _best_bound(instance: Instance, limit: Fraction, bounds: Sequence[Bound], sense: int) -> tuple[Fraction, bool]:
    """Return the best of a phase's bounds and its limit, and whether it takes the phases before as given."""
    best, conditional = limit, False
    for bound in bounds:
        rounded = _round(instance, bound)
        if (rounded - best) * sense < 0:
            best, conditional = rounded, bool(bound.held)
    return best, conditional


def _outwards(bound: Fraction, sense: int, value: float) -> float:
    """Return the nearest float that is no tighter than a bound and is not the plan's own value."""
    near = float(bound)
    while (Fraction(near) - bound) * sense < 0 or near == value:
        near = math.nextafter(near, sense * math.inf)
    return near


def gap(value: float, bound: float) -> float | None:
    """Return ``|value - bound| / |value|``; 0 where they are equal, None where only the value is 0."""
    if value == bound:
        return 0.0
    return abs(value - bound) / abs(value) if value else None


def _step(instance: Instance, objective: str) -> Fraction:
    """Return the amount of which every value of an objective is a multiple."""
    if objective == "value":
        return instance.value_unit
    if objective == "fragmentation":
        return Fraction(1000, max(1, int(demand(instance).sum())) * instance.card_units)
    return Fraction(1, 1000) if objective == "run_time" else Fraction(1)


def _round(instance: Instance, bound: Bound) -> Fraction:
    """Move a bound to the nearest value that a plan can have.

    Methods give bounds that are safe but for the rounding of a double; that much is granted here.
    """
    assert bound.value is not None
    step, sense, given = _step(instance, bound.objective), SENSE[bound.objective], Fraction(bound.value)
    steps = (given + sense * Fraction(ROUNDING) * abs(given)) / step
    return (math.floor(steps) if sense > 0 else math.ceil(steps)) * step


def _limits(instance: Instance) -> dict[Key, Fraction]:
    """Return what no plan can exceed whatever it does: all that is wanted, what is in use by running work, or zero."""
    tasks = 0
    worth: dict[int, int] = defaultdict(int)
    for job_class in instance.job_classes:
        for leaf in job_class.leaves:
            wanted = job_class.size * leaf.count * leaf.copies
            tasks += wanted
            worth[job_class.priority] += wanted * leaf.value
    in_use = sum(one.size for one in instance.classes if one.in_use and one.slots < 0)
    limits: dict[Key, Fraction] = {("value", tier): total * instance.value_unit for tier, total in worth.items()}
    numbers = {
        "tasks": tasks,
        "locality": 0,
        "run_time": 0,
        "fragmentation": 0,
        "whole_nodes": instance.hosts,
        "nodes": in_use,
        "mig_cards": instance.mig_cards,
    }
    return limits | {(name, None): Fraction(number) for name, number in numbers.items()}
