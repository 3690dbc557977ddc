"""What all families share: goals, linear terms, rows, and the bookkeeping of a model under construction."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor, gcd, inf
from typing import Any

from pyomo import core as pyo
from pyomo.core.expr.numeric_expr import LinearExpression

from placement.evaluate import SENSE, Score
from placement.instance import Instance

Terms = list[tuple[int, Any]]
"""Coefficients and variables of a linear expression; whole numbers, so that nothing is rounded."""

Row = tuple[float, Terms, float]
"""Lower limit, terms, upper limit; infinities where there is none."""


@dataclass(frozen=True, slots=True)
class Goal:
    """What one phase optimises: an objective, and for ``value`` one priority of it."""

    objective: str
    priority: int | None = None

    @property
    def sense(self) -> int:
        """+1 where more is better, -1 where less is."""
        return SENSE[self.objective]


def goals(instance: Instance, objectives: Iterable[str]) -> tuple[Goal, ...]:
    """Return the phases of some objectives in order: ``value`` has one a priority, highest first."""
    found: list[Goal] = []
    for objective in objectives:
        found += [Goal("value", p) for p in instance.priorities] if objective == "value" else [Goal(objective)]
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Linear:
    """A goal in terms of a model: ``unit * (constant + terms)`` is its value in its own unit.

    Attributes
    ----------
    terms : Terms
        Of whole variables with whole coefficients, so the goal only takes multiples of `unit`.
    constant : int
    unit : Fraction
    """

    terms: Terms
    constant: int
    unit: Fraction

    @classmethod
    def of(cls, terms: Terms, constant: int = 0, unit: Fraction = Fraction(1)) -> Linear:
        """Return the same with the greatest common divisor of all numbers moved into the unit."""
        terms = [(coefficient, variable) for coefficient, variable in terms if coefficient]
        divisor = gcd(constant, *(coefficient for coefficient, _ in terms)) or 1
        return cls([(c // divisor, variable) for c, variable in terms], constant // divisor, unit * divisor)

    def value(self, number: float) -> Fraction:
        """Return the goal's value, given that of ``constant + terms`` at a whole point."""
        return round(number) * self.unit

    def rounded(self, bound: float, sense: int) -> Fraction:
        """Return a bound on ``constant + terms`` as the best multiple of the unit that it allows."""
        slack = min(0.49, 1e-6 * max(1.0, abs(bound)))  # towards the weaker side
        return (floor(bound + slack) if sense > 0 else ceil(bound - slack)) * self.unit


@dataclass(slots=True)
class Parts:
    """What families tell one another about a model; it is the model's attribute ``parts``.

    Attributes
    ----------
    instance : Instance
    objectives : frozenset of str
        Objectives that are optimised or held.
    placed : dict of (int, int) to Terms
        By job class and leaf: the number of its tasks that run.
    goals : dict of Goal to Linear
    shared : dict
        What is worth keeping between models of one instance, such as its patterns; by family.
    """

    instance: Instance
    objectives: frozenset[str]
    placed: dict[tuple[int, int], Terms] = field(default_factory=dict)
    goals: dict[Goal, Linear] = field(default_factory=dict)
    shared: dict[str, Any] = field(default_factory=dict)


def add_rows(m: Any, name: str, rows: Mapping[Any, Row]) -> None:
    """Add constraints by index, of whole variables with whole coefficients.

    A row is divided by the greatest common divisor of its coefficients and its limits are rounded inwards, which whole
    points do not notice; rows without terms or limits are left out.

    Raises
    ------
    ValueError
        If a row cannot hold by itself: a model that can be infeasible is a mistake here.
    """
    expressions: dict[Hashable, Any] = {}
    for index, (low, given, high) in rows.items():
        terms = [(coefficient, variable) for coefficient, variable in given if coefficient]
        if not terms:
            if low > 0 or high < 0:
                raise ValueError(f"row {name}[{index}] has no terms and cannot hold")
            continue
        divisor = gcd(*(coefficient for coefficient, _ in terms))
        low = low if low == -inf else -(-int(low) // divisor)
        high = high if high == inf else int(high) // divisor
        if low == -inf and high == inf:
            continue
        if low > high:
            raise ValueError(f"row {name}[{index}] cannot hold for whole numbers")
        body = linear([(coefficient // divisor, variable) for coefficient, variable in terms])
        if low == high:
            expressions[index] = (body, low)
        else:
            expressions[index] = (None if low == -inf else low, body, None if high == inf else high)
    m.add_component(name, pyo.Constraint(list(expressions), rule=_Lookup(expressions)))


class _Lookup:
    """A rule that looks its answer up; indices of several parts come as several arguments."""

    def __init__(self, expressions: Mapping[Hashable, Any]) -> None:
        self.expressions = expressions

    def __call__(self, m: Any, *index: Hashable) -> Any:
        return self.expressions[index[0] if len(index) == 1 else index]


def linear(terms: Sequence[tuple[int, Any]], constant: int = 0) -> Any:
    """Return a Pyomo expression of terms."""
    return LinearExpression(
        constant=constant,
        linear_coefs=[coefficient for coefficient, _ in terms],
        linear_vars=[variable for _, variable in terms],
    )


def add_goal(m: Any, goal: Goal) -> None:
    """Make a goal the objective of the model, as ``constant + terms`` in its unit."""
    expression = m.parts.goals[goal]
    sense = pyo.maximize if goal.sense > 0 else pyo.minimize
    m.goal = pyo.Objective(expr=linear(expression.terms, expression.constant), sense=sense)


def add_held(m: Any, held: Sequence[Score]) -> None:
    r"""Add a row "no worse than found" for each earlier phase.

    .. math:: f(x) \ge v \quad\text{or}\quad f(x) \le v

    with v rounded to the next multiple of the goal's unit in the direction that a plan can reach.
    """
    rows: dict[Hashable, Row] = {}
    for number, score in enumerate(held):
        expression = m.parts.goals[Goal(score.objective, score.priority)]
        amount = score.value / expression.unit
        if SENSE[score.objective] > 0:
            rows[number] = (ceil(amount) - expression.constant, expression.terms, inf)
        else:
            rows[number] = (-inf, expression.terms, floor(amount) - expression.constant)
    add_rows(m, "held", rows)


def placed_by_shape(parts: Parts) -> dict[int, Terms]:
    """Return, by shape, the number of tasks that run; empty for shapes that no pending task has."""
    terms: dict[int, Terms] = {}
    for (number, leaf), mine in parts.placed.items():
        terms.setdefault(parts.instance.job_classes[number].leaves[leaf].shape, []).extend(mine)
    return terms
