"""A linear program as arrays: the hand-over between Pyomo models and the solver.

A model is written in Pyomo because its rows read like the maths; a solver wants arrays. The walk below makes them
without scipy, whose import alone costs half a second.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from placement.instance import Bools

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Program:
    """Minimise or maximise ``cost @ x + offset`` over ``row_lower <= A x <= row_upper``, ``lower <= x <= upper``.

    Attributes
    ----------
    sense : int
        +1 to minimise, -1 to maximise.
    cost, lower, upper : float array (n,)
        Infinities where there is no bound.
    integer : bool array (n,)
        Which columns must be whole.
    start, index, value : arrays (m + 1,), (nonzeros,), (nonzeros,)
        The matrix by rows: row i has columns ``index[start[i]:start[i + 1]]``, no column twice.
    row_lower, row_upper : float array (m,)
    columns, rows : callable
        Name of a column and of a row by number; made on demand, for names cost more than numbers.
    offset : float
    """

    sense: int
    cost: Floats
    lower: Floats
    upper: Floats
    integer: Bools
    start: Index
    index: Index
    value: Floats
    row_lower: Floats
    row_upper: Floats
    columns: Callable[[int], str] = "x{}".format
    rows: Callable[[int], str] = "r{}".format
    offset: float = 0.0

    @property
    def size(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return len(self.row_lower), len(self.cost)

    @property
    def row_of(self) -> Index:
        """Row of each nonzero."""
        return np.repeat(np.arange(len(self.row_lower), dtype=np.int32), np.diff(self.start))

    def activity(self, x: Floats) -> Floats:
        """Return ``A x``."""
        return np.bincount(self.row_of, self.value * x[self.index], minlength=len(self.row_lower)).astype(np.float64)

    def objective(self, x: Floats) -> float:
        """Return ``cost @ x + offset``."""
        return float(self.cost @ x) + self.offset

    def relaxed(self) -> Program:
        """Return the program without its integrality."""
        return replace(self, integer=np.zeros_like(self.integer))

    def violation(self, x: Floats, tolerance: float = 1e-6) -> str | None:
        """Return what a point breaks, or None.

        Rows are allowed ``tolerance`` and the rounding error of adding up their terms in double precision.

        Parameters
        ----------
        x : float array (n,)
        tolerance : float
        """
        if len(x) != len(self.cost):
            return f"the point has {len(x)} values and the program {len(self.cost)} columns"
        if not np.isfinite(x).all():
            return f"column {self.columns(int(np.argmin(np.isfinite(x))))} is not finite"
        beyond = np.maximum(self.lower - x, x - self.upper)
        if len(x) and beyond.max() > tolerance:
            worst = int(beyond.argmax())
            return f"column {self.columns(worst)} is {x[worst]:.9g}, outside [{self.lower[worst]}, {self.upper[worst]}]"
        fraction = np.where(self.integer, np.abs(x - np.round(x)), 0.0)
        if len(x) and fraction.max() > tolerance:
            worst = int(fraction.argmax())
            return f"column {self.columns(worst)} is {x[worst]:.9g}, not whole"
        if not len(self.row_lower):
            return None
        activity = self.activity(x)
        rounding = 1e-15 * np.bincount(self.row_of, np.abs(self.value * x[self.index]), minlength=len(self.row_lower))
        beyond = np.maximum(self.row_lower - activity, activity - self.row_upper) - rounding
        if beyond.max() > tolerance:
            worst = int(beyond.argmax())
            return (
                f"row {self.rows(worst)} is {activity[worst]:.9g}, "
                f"outside [{self.row_lower[worst]:.9g}, {self.row_upper[worst]:.9g}]"
            )
        return None


def with_columns(
    program: Program,
    *,
    cost: Floats,
    lower: Floats,
    upper: Floats,
    integer: Bools,
    start: Index,
    index: Index,
    value: Floats,
) -> Program:
    """Return a program with more columns, whose rows ``index[start[j]:start[j + 1]]`` are given by column."""
    rows, old = program.size
    column_of = np.repeat(np.arange(old, old + len(cost), dtype=np.int32), np.diff(start))
    row = np.concatenate([program.row_of, np.asarray(index, dtype=np.int32)])
    order = np.argsort(row, kind="stable")
    first = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(np.bincount(row, minlength=rows))])
    return replace(
        program,
        cost=np.concatenate([program.cost, cost]),
        lower=np.concatenate([program.lower, lower]),
        upper=np.concatenate([program.upper, upper]),
        integer=np.concatenate([program.integer, integer]),
        start=first.astype(np.int32),
        index=np.concatenate([program.index, column_of])[order],
        value=np.concatenate([program.value, value])[order],
        columns=lambda column: program.columns(column) if column < old else f"added{column - old}",
    )


# --- from and to Pyomo -----------------------------------------------------------------------------------------


def program(model: Any) -> Program:
    """Return the arrays of a linear Pyomo model.

    Columns are all active variables in the order of their declaration, whether or not a row uses them.

    Parameters
    ----------
    model : pyomo.environ.ConcreteModel
        With one active objective, or none.

    Raises
    ------
    ValueError
        If a row or the objective is not linear, or there are several objectives.
    """
    from pyomo.core import Constraint, Objective, minimize

    variables = variables_of(model)
    position = {id(variable): column for column, variable in enumerate(variables)}
    lower, upper, integer = _bounds(variables)
    starts = [0]
    index: list[int] = []
    value: list[float] = []
    row_lower: list[float] = []
    row_upper: list[float] = []
    constraints = list(model.component_data_objects(Constraint, active=True))
    for constraint in constraints:
        low, body, high = constraint.to_bounded_expression(True)
        terms, constant = _terms(body, position)
        index += terms.keys()
        value += terms.values()
        starts.append(len(index))
        row_lower.append(-np.inf if low is None else low - constant)
        row_upper.append(np.inf if high is None else high - constant)
    cost = np.zeros(len(variables))
    offset, sense = 0.0, 1
    objectives = list(model.component_data_objects(Objective, active=True))
    if len(objectives) > 1:
        raise ValueError(f"the model has {len(objectives)} active objectives; one is allowed")
    for objective in objectives:
        terms, offset = _terms(objective.expr, position)
        cost[list(terms)] = list(terms.values())
        sense = 1 if objective.sense == minimize else -1
    return Program(
        sense=sense,
        cost=cost,
        lower=lower,
        upper=upper,
        integer=integer,
        start=np.array(starts, dtype=np.int32),
        index=np.array(index, dtype=np.int32),
        value=np.array(value, dtype=np.float64),
        row_lower=np.array(row_lower, dtype=np.float64),
        row_upper=np.array(row_upper, dtype=np.float64),
        columns=lambda column: str(variables[column].name),
        rows=lambda row: str(constraints[row].name),
        offset=offset,
    )


def load_solution(model: Any, x: Floats) -> None:
    """Set the variables of a model to a point in the column order of `program`; whole ones to whole numbers."""
    variables = variables_of(model)
    if len(variables) != len(x):
        raise ValueError(f"the point has {len(x)} values and the model {len(variables)} variables")
    for variable, number in zip(variables, x.tolist(), strict=True):
        variable.set_value(round(number) if variable.is_integer() else number, skip_validation=True)


def current_point(model: Any) -> Floats:
    """Return the values of a model's variables in the column order of `program`; 0 where there is none."""
    return np.array([variable.value or 0 for variable in variables_of(model)], dtype=np.float64)


def variables_of(model: Any) -> list[Any]:
    """Return the active variables of a Pyomo model, in the order of their declaration."""
    from pyomo.core import Var

    return [
        variable
        for component in model.component_objects(Var, active=True, descend_into=True)
        for variable in component.values()
    ]


def _bounds(variables: list[Any]) -> tuple[Floats, Floats, Bools]:
    lower, upper = np.full(len(variables), -np.inf), np.full(len(variables), np.inf)
    integer = np.zeros(len(variables), dtype=np.bool_)
    for column, variable in enumerate(variables):
        low, high = (variable.value, variable.value) if variable.fixed else variable.bounds
        if low is not None:
            lower[column] = low
        if high is not None:
            upper[column] = high
        integer[column] = variable.is_integer()
    return lower, upper, integer


def _terms(body: Any, position: dict[int, int]) -> tuple[dict[int, float], float]:
    """Return {column: coefficient} without zeros, and the constant, of a linear expression."""
    from pyomo.core.expr.numeric_expr import LinearExpression, MonomialTermExpression

    if body.__class__ is not LinearExpression:
        return _slow_terms(body, position)
    terms: dict[int, float] = {}
    constant = 0.0
    zeros = False
    for arg in body.args:
        if arg.__class__ is MonomialTermExpression:
            coefficient, variable = arg.args
            if coefficient.__class__ is not float:
                coefficient = _number(coefficient)
            column = position[id(variable)]
            if column in terms:
                coefficient += terms[column]
            terms[column] = coefficient
            zeros |= not coefficient
        elif arg.__class__ in (int, float):
            constant += arg
        else:  # a bare variable or a parameter
            return _slow_terms(body, position)
    if zeros:
        terms = {column: coefficient for column, coefficient in terms.items() if coefficient}
    return terms, constant


def _number(coefficient: Any) -> float:
    if coefficient.__class__ is int:
        return float(coefficient)
    from pyomo.core import value

    return float(value(coefficient))


def _slow_terms(body: Any, position: dict[int, int]) -> tuple[dict[int, float], float]:
    from pyomo.repn import generate_standard_repn

    found = generate_standard_repn(body, compute_values=True)
    if not found.is_linear():
        raise ValueError(f"the expression is not linear: {str(body)[:200]}")
    terms: dict[int, float] = {}
    for coefficient, variable in zip(found.linear_coefs, found.linear_vars, strict=True):
        column = position[id(variable)]
        terms[column] = terms.get(column, 0.0) + float(coefficient)
    return {column: coefficient for column, coefficient in terms.items() if coefficient}, float(found.constant)
