"""From Pyomo models to arrays and back."""

from __future__ import annotations

import math

import pyomo.environ as pyo
import pytest
from pyomo.core.expr.numeric_expr import LinearExpression

from placement.exact.milp import highs
from placement.exact.milp.arrays import load_solution, program
from placement.exact.milp.highs import Why

INF = math.inf


def test_program_of_a_pyomo_model() -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(3), domain=pyo.NonNegativeIntegers, bounds=(0, 4))
    m.y = pyo.Var(domain=pyo.Reals)
    m.unused = pyo.Var(bounds=(1, 2))
    m.block = pyo.Block()
    m.block.z = pyo.Var(domain=pyo.Binary)
    m.block.z.fix(1)
    m.p = pyo.Param(initialize=2.5, mutable=True)
    m.linear = pyo.Constraint(
        expr=(None, LinearExpression(constant=1, linear_coefs=[1, 2, 1], linear_vars=[m.x[0], m.x[1], m.x[0]]), 7)
    )
    m.generic = pyo.Constraint(expr=m.p * m.x[2] - m.y + 3 == m.block.z)
    m.ranged = pyo.Constraint(expr=pyo.inequality(-1, m.y + m.x[0] - m.x[0], 6))
    m.off = pyo.Constraint(expr=m.y >= 100)
    m.off.deactivate()
    m.objective = pyo.Objective(expr=2 * m.x[0] + 3 * m.x[1] + m.y + 10, sense=pyo.maximize)
    p = program(m)
    assert [p.columns(c) for c in range(6)] == ["x[0]", "x[1]", "x[2]", "y", "unused", "block.z"]
    assert [p.rows(r) for r in range(3)] == ["linear", "generic", "ranged"]
    assert p.sense == -1
    assert p.offset == 10
    assert p.cost.tolist() == [2, 3, 0, 1, 0, 0]
    assert p.integer.tolist() == [True, True, True, False, False, True]
    assert p.lower.tolist() == [0, 0, 0, -INF, 1, 1]
    assert p.upper.tolist() == [4, 4, 4, INF, 2, 1]
    assert p.row_upper.tolist() == [6, -2 if p.start[2] - p.start[1] == 2 else -3, 6]
    solved = highs.solve(p)
    # x0 <= 3, x1 <= 3: 2 x0 + 2 x1 <= 6 -> x1 = 3; y = 2.5 x2 + 2 <= 6 -> x2 = 1, y = 4.5
    assert solved.objective == pytest.approx(9 + 4.5 + 10)
    assert solved.x is not None
    load_solution(m, solved.x)
    assert pyo.value(m.x[1]) == 3
    assert isinstance(pyo.value(m.x[1]), int)
    assert pyo.value(m.objective) == pytest.approx(23.5)


def test_a_product_is_refused() -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(2))
    m.row = pyo.Constraint(expr=m.x[0] * m.x[1] <= 1)
    with pytest.raises(ValueError, match="not linear"):
        program(m)


def test_an_empty_model() -> None:
    p = program(pyo.ConcreteModel())
    assert p.size == (0, 0)
    assert highs.solve(p).why is Why.OPTIMAL
