"""The solver's driver: statuses on two axes, verified options, checked starts, bounds that are bounds."""

from __future__ import annotations

import itertools
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import program_of_rows

from placement.exact.milp import highs
from placement.exact.milp.arrays import Program
from placement.exact.milp.highs import Why

INF = math.inf


def knapsack(items: int, rows: int, seed: int) -> Program:
    """A 0-1 program that takes HiGHS some tenths of a second or more."""
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 60, (rows, items))
    return program_of_rows(
        sense=-1,
        cost=rng.integers(10, 60, items).tolist(),
        lower=[0] * items,
        upper=[1] * items,
        integer=[True] * items,
        rows=[(-INF, dict(enumerate(row.tolist())), int(row.sum()) // 2) for row in weights],
    )


# --- statuses -------------------------------------------------------------------------------------------------


def test_optimal_has_solution_and_bound() -> None:
    # x + y <= 3.5 with whole x, y: at most 3; the relaxation reaches 3.5
    p = program_of_rows(
        sense=-1,
        cost=[1, 1],
        lower=[0, 0],
        upper=[5, 5],
        integer=[True, True],
        rows=[(-INF, {0: 1, 1: 1}, 3.5)],
    )
    solved = highs.solve(p)
    assert (solved.why, solved.has_solution, solved.objective, solved.bound) == (Why.OPTIMAL, True, 3, 3)
    assert solved.x is not None
    assert solved.x.tolist() == np.round(solved.x).tolist()
    assert solved.gap == 0
    relaxed = highs.solve(p, relax=True)
    assert relaxed.objective == pytest.approx(3.5)
    assert relaxed.bound == pytest.approx(3.5)
    assert relaxed.row_duals is not None
    assert relaxed.version.startswith("1.16.")


def test_infeasible_holds_nothing() -> None:
    p = program_of_rows(sense=1, cost=[1], lower=[0], upper=[1], integer=[True], rows=[(0.25, {0: 1}, 0.75)])
    solved = highs.solve(p)
    assert solved.why in (Why.INFEASIBLE, Why.INFEASIBLE_OR_UNBOUNDED)
    assert not solved.has_solution
    assert solved.x is None
    assert solved.objective is None
    assert solved.bound is None


def test_unbounded_proves_nothing() -> None:
    p = program_of_rows(sense=-1, cost=[1, 0], lower=[0, 0], upper=[INF, 1], integer=[False, False], rows=[])
    solved = highs.solve(p)
    assert solved.why in (Why.UNBOUNDED, Why.INFEASIBLE_OR_UNBOUNDED)
    assert solved.x is None or p.violation(solved.x) is None
    assert solved.bound is None


def test_node_limit_stops_with_what_there_is() -> None:
    p = knapsack(40, 20, 0)
    solved = highs.solve(p, nodes=1)
    assert solved.why is Why.NODES
    assert solved.bound is not None
    if solved.objective is not None:
        assert solved.objective <= solved.bound
    again = highs.solve(p, nodes=1)
    assert again.objective == solved.objective
    assert again.bound == solved.bound


def test_gap_limit_says_gap() -> None:
    p = knapsack(40, 20, 0)
    solved = highs.solve(p, gap=0.9)
    assert solved.has_solution
    assert solved.why is Why.GAP
    assert solved.gap is not None
    assert 0 < solved.gap <= 0.9


def test_time_limit_zero_has_no_values() -> None:
    solved = highs.solve(knapsack(40, 20, 0), time_limit=0.0)
    assert solved.why is Why.TIME
    assert not solved.has_solution
    assert solved.x is None
    assert solved.bound is None


def test_no_columns() -> None:
    empty: dict[str, Any] = {"sense": 1, "cost": [], "lower": [], "upper": [], "integer": []}
    assert highs.solve(program_of_rows(**empty, rows=[(-1, {}, 0)])).why is Why.OPTIMAL
    solved = highs.solve(program_of_rows(**empty, rows=[(1, {}, 2)]))
    assert solved.why is Why.INFEASIBLE
    assert not solved.has_solution


def test_no_rows() -> None:
    p = program_of_rows(sense=-1, cost=[2, -1], lower=[0, 0], upper=[3, 3], integer=[True, False], rows=[])
    solved = highs.solve(p)
    assert solved.objective == 6
    assert solved.bound == 6


# --- options, log, seed ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("mip_rel_gapp", 0.5, "no option 'mip_rel_gapp'"),
        ("threads", 1.5, "wants int"),
        ("threads", True, "wants int"),
        ("output_flag", 1, "wants bool"),
        ("mip_rel_gap", -1.0, "refuses -1.0"),
        ("presolve", "sometimes", "refuses 'sometimes'"),
    ],
)
def test_wrong_options_are_refused(name: str, value: object, message: str) -> None:
    with pytest.raises(highs.UnknownOption, match=message):
        highs.solve(knapsack(3, 1, 0), options={name: value})


def test_log_only_on_request(capfd: pytest.CaptureFixture[str]) -> None:
    p = knapsack(10, 3, 0)
    assert highs.solve(p).log == ""
    assert "Presolving model" in highs.solve(p, log=True).log
    assert capfd.readouterr().out == ""


def test_the_first_solver_of_a_process_prints_no_greeting() -> None:
    code = (
        "from placement.exact.milp import highs; from programs import program_of_rows\n"
        "p = program_of_rows(sense=1, cost=[1], lower=[2], upper=[3], integer=[True], rows=[])\n"
        "print(highs.solve(p).objective); highs.solve(p)"
    )
    path = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60, env=path
    )
    assert done.stdout == "2.0\n"


def test_same_seed_same_answer() -> None:
    p = knapsack(40, 20, 3)
    first, second = highs.solve(p, seed=7), highs.solve(p, seed=7)
    assert first.x is not None
    assert second.x is not None
    assert first.x.tobytes() == second.x.tobytes()
    assert (first.nodes, first.bound) == (second.nodes, second.bound)


def test_coefficients_the_solver_refuses() -> None:
    p = program_of_rows(sense=1, cost=[1], lower=[0], upper=[1], integer=[False], rows=[(0, {0: 1e16}, 1)])
    solved = highs.solve(p)
    assert solved.why is Why.FAILED
    assert not solved.has_solution
    with pytest.raises(ValueError, match="refuses"):
        highs.Session(p)


# --- start ----------------------------------------------------------------------------------------------------


def test_feasible_start_is_kept_without_time() -> None:
    p = knapsack(40, 20, 0)
    start = np.zeros(40)
    start[:5] = 1
    solved = highs.solve(p, start=start, time_limit=0.0)
    assert solved.has_solution
    assert solved.objective is not None
    assert solved.objective >= p.objective(start)


def test_answer_is_never_below_the_start() -> None:
    p = knapsack(40, 20, 0)
    best = highs.solve(p)
    assert best.x is not None
    for limit in ({"nodes": 0}, {"time_limit": 0.01}, {"gap": 0.99}):
        solved = highs.solve(p, start=best.x, **limit)
        assert solved.objective == best.objective


@pytest.mark.parametrize(
    ("point", "what"),
    [
        ([2, 0], "column x0 is 2, outside"),
        ([0.5, 0], "column x0 is 0.5, not whole"),
        ([1, 1], "row r0 is 2, outside"),
        ([1], "1 values"),
        ([math.nan, 0], "not finite"),
    ],
)
def test_infeasible_start_is_refused(point: list[float], what: str) -> None:
    p = program_of_rows(
        sense=-1, cost=[1, 1], lower=[0, 0], upper=[1, 1], integer=[True, True], rows=[(-INF, {0: 1, 1: 1}, 1)]
    )
    with pytest.raises(highs.InfeasibleStart, match=what):
        highs.solve(p, start=np.array(point, dtype=np.float64))


def test_improving_points_are_told() -> None:
    p = knapsack(40, 20, 0)
    told: list[float] = []

    def improved(x: Any, objective: float, bound: float | None) -> None:
        assert p.violation(x) is None
        assert bound is None or bound >= objective
        told.append(objective)

    solved = highs.solve(p, improved=improved)
    assert told == sorted(told)
    assert told[-1] == solved.objective


# --- bounds ---------------------------------------------------------------------------------------------------


def small_programs() -> st.SearchStrategy[Program]:
    numbers = st.integers(-4, 4)

    @st.composite
    def build(draw: st.DrawFn) -> Program:
        columns, rows = draw(st.integers(1, 4)), draw(st.integers(0, 4))
        upper = [draw(st.integers(0, 3)) for _ in range(columns)]
        return program_of_rows(
            sense=draw(st.sampled_from([-1, 1])),
            cost=[draw(numbers) for _ in range(columns)],
            lower=[draw(st.integers(-2, 0)) for _ in range(columns)],
            upper=[INF if draw(st.integers(0, 5)) == 0 else u for u in upper],
            integer=[draw(st.booleans()) for _ in range(columns)],
            rows=[
                (
                    draw(st.sampled_from([-INF, -6, -1])),
                    {c: a for c in range(columns) if (a := draw(numbers))},
                    draw(st.sampled_from([INF, 0, 1.5, 7])),
                )
                for _ in range(rows)
            ],
        )

    return build()


@settings(deadline=None, max_examples=300)
@given(small_programs(), st.lists(st.integers(-5, 5), min_size=4, max_size=4))
def test_a_bound_is_a_bound(p: Program, duals: list[int]) -> None:
    solved = highs.solve(p)
    relaxed = highs.solve(p, relax=True)
    for bound in (solved.bound, relaxed.bound, highs.safe_lp_bound(p, np.array(duals[: p.size[0]], dtype=float))):
        if bound is not None and solved.objective is not None:
            assert p.sense * (solved.objective - bound) >= -1e-6
    if relaxed.why is Why.OPTIMAL and np.isfinite(p.upper).all():
        assert relaxed.bound == pytest.approx(relaxed.objective, abs=1e-6)


@settings(deadline=None, max_examples=150)
@given(small_programs())
def test_presolve_changes_no_optimum(p: Program) -> None:
    with_presolve, without = highs.solve(p), highs.solve(p, options={"presolve": "off"})
    if Why.OPTIMAL in (with_presolve.why, without.why):
        assert with_presolve.objective == pytest.approx(without.objective, abs=1e-6)


def test_safe_bound_survives_rubbish() -> None:
    p = knapsack(20, 5, 1)
    optimum = highs.solve(p).objective
    assert optimum is not None
    rng = np.random.default_rng(0)
    for scale in (1e-3, 1.0, 1e6):
        bound = highs.safe_lp_bound(p, rng.normal(size=5) * scale)
        assert bound is not None
        assert bound >= optimum
    assert highs.safe_lp_bound(p, np.full(5, np.nan)) == pytest.approx(p.cost.sum())


def test_safe_bound_uses_what_rows_imply() -> None:
    # x has no upper bound, but 2x + y <= 7.5 implies one, so rounding in the duals costs nothing
    p = program_of_rows(
        sense=-1,
        cost=[3, 2],
        lower=[0, 0],
        upper=[INF, INF],
        integer=[False, False],
        rows=[(-INF, {0: 2, 1: 1}, 7.5), (-INF, {0: 1, 1: 3}, 9)],
    )
    assert highs.safe_lp_bound(p, np.array([1.4 - 1e-9, 0.2])) == pytest.approx(12.3, abs=1e-6)
    unbounded = program_of_rows(sense=-1, cost=[1], lower=[0], upper=[INF], integer=[False], rows=[])
    assert highs.safe_lp_bound(unbounded, np.zeros(0)) is None


# --- columns added while solving ------------------------------------------------------------------------------


def test_session_generates_the_columns_of_a_cutting_stock_problem() -> None:
    """Rods of 10; 44 pieces of 3, 3 of 4, 48 of 5. Area 384: at least 38.4 rods, and 38.4 suffice as fractions."""
    sizes, wanted = np.array([3.0, 4.0, 5.0]), np.array([44.0, 3.0, 48.0])
    patterns = np.array([[3.0, 0, 0], [0, 2.0, 0], [0, 0, 2.0]])
    session = highs.Session(
        program_of_rows(
            sense=1,
            cost=[1, 1, 1],
            lower=[0] * 3,
            upper=[INF] * 3,
            integer=[True] * 3,
            rows=[(float(wanted[i]), {i: float(patterns[i, i])}, INF) for i in range(3)],
        )
    )
    every = [np.array(a) for a in itertools.product(range(4), range(3), range(3)) if sizes @ a <= 10]
    rounds = 0
    while True:
        solved = session.solve()
        assert solved.row_duals is not None
        duals = solved.row_duals
        best = max(every, key=lambda a: float(duals @ a))
        if float(solved.row_duals @ best) <= 1 + 1e-9:
            break
        rounds += 1
        rows = np.flatnonzero(best).astype(np.int32)
        session.add_columns(
            cost=np.ones(1),
            lower=np.zeros(1),
            upper=np.full(1, INF),
            start=np.array([0, len(rows)], dtype=np.int32),
            index=rows,
            value=best[rows].astype(np.float64),
            integer=np.ones(1, dtype=np.bool_),
        )
    assert 0 < rounds < 10
    everything = program_of_rows(
        sense=1,
        cost=[1] * len(every),
        lower=[0] * len(every),
        upper=[INF] * len(every),
        integer=[True] * len(every),
        rows=[(float(wanted[i]), {j: float(a[i]) for j, a in enumerate(every) if a[i]}, INF) for i in range(3)],
    )
    assert solved.objective == pytest.approx(highs.solve(everything, relax=True).objective)
    grown = highs.solve(session.program)
    assert grown.objective is not None
    assert grown.objective >= math.ceil(solved.objective or 0)


def test_each_solve_of_a_session_has_its_time_limit_to_itself() -> None:
    """The clock of HiGHS runs on over all runs; 0.3 s are for each of many that take more together."""
    size, rng = 120, np.random.default_rng(1)
    session = highs.Session(
        program_of_rows(
            sense=-1,
            cost=[1] * size,
            lower=[0] * size,
            upper=[INF] * size,
            integer=[False] * size,
            rows=[(-INF, {j: float(rng.integers(1, 100)) for j in range(size)}, 1000) for _ in range(size)],
        )
    )
    spent = 0.0
    while spent < 0.35:
        solved = session.solve(time_limit=0.3)
        assert solved.why is highs.Why.OPTIMAL
        spent += solved.seconds
        session.add_columns(
            cost=np.full(size, float(rng.integers(1, 3))),
            lower=np.zeros(size),
            upper=np.full(size, INF),
            start=np.arange(0, size * size + 1, size, dtype=np.int32),
            index=np.tile(np.arange(size, dtype=np.int32), size),
            value=rng.integers(1, 100, size * size).astype(np.float64),
        )
