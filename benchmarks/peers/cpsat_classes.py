"""The same MIP, another solver: our pooled master over node classes, given to HiGHS and to CP-SAT as the same arrays.

Both get what the exact pipeline gives HiGHS for whole counts: counts of tasks by shape and pool of nodes, cards by
pattern, gangs by job class (`placement.models.pooled`), with the patterns that column generation found. Finding them
takes linear programs with duals, which is HiGHS's work for both and on neither clock.

What comes out is no plan, and the row says so. The model adds up resources over the nodes of a pool, so its counts may
have no places; the pipeline deals them out, repairs and searches afterwards. Its value is compared between the two
solvers only, and its bound holds for the model with these patterns, not for the problem.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np

from placement.exact.milp import highs
from placement.exact.milp.arrays import Floats, Program, program
from placement.exact.pools.master import Master
from placement.exact.timing import Timing
from placement.instance import Instance
from placement.models import pooled
from placement.models.parts import parts_of
from placement.models.pooled_linear import Target, power_of_two
from placement.models.pooled_objective import coefficients
from placement.models.pools import pooling
from placement.solver import Limits
from placement.state import State

from . import cpsat
from .common import Course, Trace, Unsupported, improving

UNBOUNDED = 2**40
"""Stands for a column without an upper bound; far above every count."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """The arrays, and what one count of their objective is in the unit of the value."""

    program: Program
    unit: float
    seconds: float


def master_of(instance: Instance, seed: int, limit: float) -> Prepared:
    """Return the pooled master with the patterns of column generation, as the pipeline builds it.

    Both solvers are to be given the same one: where the limit ends column generation, patterns differ from run to run.
    """
    began = time.monotonic()
    if len(instance.priorities) != 1:
        raise Unsupported("several priorities are several solves; this comparison does one")
    state = State(instance)
    view = pooling(state, parts_of(state))
    master = Master(view, seed, Timing())
    target: Target = ("value", instance.priorities[0])
    for _ in master.bounds(target, {}, Limits(began + limit)):
        pass
    scale = power_of_two(coefficients(instance, view.leaves, target).tolist())
    arrays = program(pooled.build(view, master.patterns, {target: scale}, {}))
    return Prepared(arrays, float(instance.value_unit) / scale, time.monotonic() - began)


def run_highs(made: Prepared, limit: float, seed: int) -> Course:
    """Let HiGHS solve a master, with the options that the pipeline sets."""
    trace = Trace()
    values: list[tuple[float, float]] = []

    def improved(_: Floats, objective: float, bound: float | None) -> None:
        values.append((trace.now, objective * made.unit))
        if bound is not None and math.isfinite(bound):
            trace.better_bound(bound * made.unit)

    solved = highs.solve(made.program, gap=0.0, time_limit=limit, seed=seed, improved=improved)
    trace.seconds = trace.now
    if solved.objective is not None:
        values.append((trace.seconds, solved.objective * made.unit))
    if solved.bound is not None:
        trace.better_bound(solved.bound * made.unit)
    trace.about = {"version": f"HiGHS {solved.version}", "workers": 1, "stop": solved.why.value}
    return _course(made, trace, values)


def run_cpsat(made: Prepared, limit: float, seed: int, workers: int) -> Course:
    """Let CP-SAT solve a master."""
    cpsat.library()
    trace = Trace()
    model, step = model_of(made.program)
    built = trace.now
    values: list[tuple[float, float]] = []

    def incumbent(solution: list[int]) -> None:
        x = np.array(solution, dtype=np.float64)
        at = trace.now
        if made.program.violation(x) is None:
            values.append((at, made.program.objective(x) * made.unit))

    unit = step * made.unit
    cpsat.solve(model, trace, limit=limit, seed=seed, workers=workers, unit=unit, incumbent=incumbent)
    trace.about["build_seconds"] = round(built, 3)
    return _course(made, trace, values)


def _course(made: Prepared, trace: Trace, values: list[tuple[float, float]]) -> Course:
    rows, columns = made.program.size
    trace.about |= {
        "variables": columns,
        "rows": rows,
        "prepare_seconds": round(made.seconds, 3),
        "note": "counts of the pooled master, no plan: value and bound are the model's; preparing is not on the clock",
    }
    return Course(improving(values, 1), improving(trace.bounds, -1), trace.seconds, about=trace.about)


# --- arrays to CP-SAT ----------------------------------------------------------------------------------------------


def model_of(arrays: Program) -> tuple[Any, float]:
    """Return a program as a CP-SAT model that maximises, and what one count of its objective is in the program's.

    Every row is multiplied by what makes its coefficients whole, exactly: they are dyadic, for the pooled families
    divide rows by powers of two only.

    Raises
    ------
    Unsupported
        If a column need not be whole, or the program minimises.
    """
    if not arrays.integer.all():
        raise Unsupported("a column of the program need not be whole")
    if arrays.sense != -1:
        raise Unsupported("the program minimises")
    cp = cpsat.library()
    model = cp.CpModel()
    upper = np.where(np.isfinite(arrays.upper), arrays.upper, UNBOUNDED)
    variables = [
        model.new_int_var(math.ceil(low), math.floor(high), f"x{column}")
        for column, (low, high) in enumerate(zip(arrays.lower.tolist(), upper.tolist(), strict=True))
    ]
    for row in range(arrays.size[0]):
        mine = slice(int(arrays.start[row]), int(arrays.start[row + 1]))
        whole, factor = whole_numbers(arrays.value[mine].tolist())
        terms: Any = cp.LinearExpr.weighted_sum([variables[i] for i in arrays.index[mine].tolist()], whole)
        low, high = arrays.row_lower[row], arrays.row_upper[row]
        if np.isfinite(high):
            model.add(terms <= math.floor(Fraction(float(high)) * factor))
        if np.isfinite(low):
            model.add(terms >= math.ceil(Fraction(float(low)) * factor))
    used = np.flatnonzero(arrays.cost)
    whole, factor = whole_numbers(arrays.cost[used].tolist())
    model.maximize(cp.LinearExpr.weighted_sum([variables[i] for i in used.tolist()], whole))
    return model, float(1 / factor)


def whole_numbers(values: list[float]) -> tuple[list[int], Fraction]:
    """Return the least whole numbers in the same ratio, and by what the values were multiplied."""
    exact = [Fraction(value) for value in values]
    if not any(exact):
        return [0] * len(exact), Fraction(1)
    denominator = reduce(math.lcm, (value.denominator for value in exact), 1)
    divisor = reduce(math.gcd, (int(value * denominator) for value in exact), 0)
    factor = Fraction(denominator, divisor)
    return [int(value * factor) for value in exact], factor
