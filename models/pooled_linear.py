"""Rows of the pooled families, written so that building them is quick.

A row is a `LinearExpression` made from a list of coefficients and a list of variables; adding up terms one by one
costs several times as much. Rows over large amounts are divided by a power of two, which loses nothing in binary
floating point, so that the solver's absolute tolerances mean the same in every row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from pyomo import core as pyo
from pyomo.core.expr.numeric_expr import LinearExpression

from placement.models.pools import Pattern, Pooling

Target = tuple[str, int | None]
"""An objective and, for ``value``, the priority."""

Prices = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]
"""Prices of the parts of every slot type, and the most value that a card of every group can hold, pool by pool."""


@dataclass(slots=True)
class Row:
    """``sum(coefficient * variable) <= upper`` under construction; `scaled` rows may be divided by a power of two."""

    upper: float = 0.0
    scaled: bool = True
    coefficients: list[float] = field(default_factory=list)
    variables: list[Any] = field(default_factory=list)

    def add(self, coefficient: float, variable: Any) -> None:
        """Add a term; a variable may come up once."""
        self.coefficients.append(coefficient)
        self.variables.append(variable)

    def constraint(self) -> Any:
        """Return the row as Pyomo takes it; nothing to state where no term is left."""
        if not self.variables:
            return pyo.Constraint.Skip if self.upper >= 0 else pyo.Constraint.Infeasible
        scale = power_of_two(self.coefficients) if self.scaled else 1.0
        coefficients = self.coefficients if scale == 1.0 else [c * scale for c in self.coefficients]
        return None, LinearExpression(linear_coefs=coefficients, linear_vars=self.variables), self.upper * scale


@dataclass(slots=True)
class Draft:
    """A pooled model under construction: what was asked for, and what its families have added so far.

    Attributes
    ----------
    view : Pooling
    patterns : sequence of Pattern
    weights : mapping of target to float
    held : mapping of target to int
    steps : sequence of (level, cost)
    prices : sequence of Prices
        See `placement.models.pooled.build` for these.
    n, t, x : lists of variables
        By pair of the view, by its leaves, by pattern.
    filling : list of (variable, pool, step)
        Shares of a pool's capacity used beyond a step.
    gangs : dict
        By job class, the count of running jobs and the counts of every child by path.
    """

    view: Pooling
    patterns: Sequence[Pattern]
    weights: Mapping[Target, float]
    held: Mapping[Target, int]
    steps: Sequence[tuple[float, float]]
    prices: Sequence[Prices]
    n: list[Any] = field(default_factory=list)
    t: list[Any] = field(default_factory=list)
    x: list[Any] = field(default_factory=list)
    filling: list[tuple[Any, int, int]] = field(default_factory=list)
    gangs: dict[int, Any] = field(default_factory=dict)


def power_of_two(coefficients: Sequence[float]) -> float:
    """Return the power of two that brings the largest coefficient into [1, 2), or 1 where it is below 1024."""
    largest = max((abs(c) for c in coefficients), default=1.0)
    return 1.0 if largest < 1024 else 2.0 ** -math.floor(math.log2(largest))


def add_rows(m: Any, name: str, rows: Sequence[Row]) -> None:
    """Add rows to a model as one indexed constraint."""
    m.add_component(name, pyo.Constraint(range(len(rows)), rule=lambda _, i: rows[i].constraint()))


def whole_numbers(m: Any, name: str, upper: Sequence[int]) -> list[Any]:
    """Add variables that are whole and between 0 and an upper bound, and return them as a list."""
    variables = pyo.Var(range(len(upper)), domain=pyo.NonNegativeIntegers)
    m.add_component(name, variables)
    listed = list(variables.values())
    for variable, bound in zip(listed, upper, strict=True):
        variable.setub(bound)
    return listed
