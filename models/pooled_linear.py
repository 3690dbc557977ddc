"""Rows of the pooled families, written so that building them is quick.

A row is a `LinearExpression` made from a list of coefficients and a list of variables; adding up terms one by one
costs several times as much. Rows over large amounts are divided by a power of two, which loses nothing in binary
floating point, so that the solver's absolute tolerances mean the same in every row.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyomo.environ as pyo
from pyomo.core.expr.numeric_expr import LinearExpression


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


@contextmanager
def paused_collection() -> Iterator[None]:
    """Pause garbage collection: it walks every new expression and makes building several times slower."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()
