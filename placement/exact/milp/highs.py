"""The solver behind every exact answer: HiGHS, driven through its own interface and believed only where checked.

What is guarded against here, each of it seen in practice: options that do not exist are dropped without an error;
an infeasible start is dropped in silence; whole numbers come back as 8.999999 and hide a broken row; values are
handed out where there is no solution. A run has two answers, why it stopped and what it holds, and they are kept
apart. The time limit is a wish: presolve and cuts may overrun it, so whoever needs a deadline kills the process.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import highspy
import numpy as np

from placement.exact.milp.arrays import Floats, Index, Program, with_columns
from placement.exact.milp.duality import safe_lp_bound as safe_lp_bound
from placement.exact.milp.interface import UnknownOption as UnknownOption
from placement.exact.milp.interface import open_solver, pass_program, run, set_time_limit
from placement.exact.milp.interface import version as version
from placement.instance import Bools


class Why(StrEnum):
    """Why a run stopped; what it holds is `Solved.has_solution` and `Solved.bound`."""

    OPTIMAL = "optimal"
    """Proven within the solver's tolerances."""
    GAP = "gap"
    """The gap asked for was reached."""
    TIME = "time"
    NODES = "nodes"
    """The limit on branch-and-bound nodes was reached."""
    ITERATIONS = "iterations"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    INFEASIBLE_OR_UNBOUNDED = "infeasible or unbounded"
    INTERRUPTED = "interrupted"
    MEMORY = "memory"
    FAILED = "failed"
    """An error, an unknown status, or an answer that contradicts the program."""


_WHY = {
    highspy.HighsModelStatus.kOptimal: Why.OPTIMAL,
    highspy.HighsModelStatus.kTimeLimit: Why.TIME,
    highspy.HighsModelStatus.kSolutionLimit: Why.NODES,
    highspy.HighsModelStatus.kIterationLimit: Why.ITERATIONS,
    highspy.HighsModelStatus.kInfeasible: Why.INFEASIBLE,
    highspy.HighsModelStatus.kUnbounded: Why.UNBOUNDED,
    highspy.HighsModelStatus.kUnboundedOrInfeasible: Why.INFEASIBLE_OR_UNBOUNDED,
    highspy.HighsModelStatus.kInterrupt: Why.INTERRUPTED,
    highspy.HighsModelStatus.kHighsInterrupt: Why.INTERRUPTED,  # type: ignore[attr-defined]
    highspy.HighsModelStatus.kMemoryLimit: Why.MEMORY,
}

Improved = Callable[[Floats, float, float | None], None]


class InfeasibleStart(ValueError):  # noqa: N818 - it names what was given
    """The start given breaks the program; the solver would have dropped it without a word."""


@dataclass(frozen=True, slots=True)
class Solved:
    """What a run found.

    Attributes
    ----------
    why : Why
        Why it stopped.
    has_solution : bool
        Whether `x` is a point that satisfies the program, as checked here.
    x : float array, optional
        Whole columns are exactly whole.
    objective : float, optional
        Of `x`, computed here.
    bound : float, optional
        No point of the program is better; for linear programs computed here from the duals, see `safe_lp_bound`.
    row_duals : float array, optional
        For linear programs solved to the end: y with reduced costs ``cost - A'y``, whatever the sense.
    nodes : int
        Branch-and-bound nodes.
    seconds, handover : float
        Wall time in the solver, and of passing the program to it.
    log : str
        What the solver printed, if asked for.
    version : str
        Of the solver.
    """

    why: Why
    has_solution: bool = False
    x: Floats | None = None
    objective: float | None = None
    bound: float | None = None
    row_duals: Floats | None = None
    nodes: int = 0
    seconds: float = 0.0
    handover: float = 0.0
    log: str = ""
    version: str = ""

    @property
    def gap(self) -> float | None:
        """Relative gap ``|objective - bound| / |objective|``; None where it is not defined."""
        if self.objective is None or self.bound is None:
            return None
        if self.objective == self.bound:
            return 0.0
        return abs(self.objective - self.bound) / abs(self.objective) if self.objective else None


def solve(
    program: Program,
    *,
    gap: float = 0.0,
    time_limit: float = math.inf,
    nodes: int | None = None,
    seed: int = 0,
    start: Floats | None = None,
    relax: bool = False,
    log: bool = False,
    options: Mapping[str, object] | None = None,
    improved: Improved | None = None,
) -> Solved:
    """Solve a program, or with `relax` its linear relaxation.

    HiGHS 1.16.0 is known to contradict itself at times: it names an objective that its point does not have, after a
    start, or finds that its own point breaks a row, after presolve. Then it is asked again, first without the start and
    last without presolve.

    Parameters
    ----------
    program : Program
    gap : float
        Relative gap that is good enough.
    time_limit : float
        Seconds that the solver tries to keep.
    nodes : int, optional
        Most branch-and-bound nodes.
    seed : int
        Same program, seed and options give the same answer unless the clock stopped the run.
    start : float array, optional
        A point that satisfies the program; the answer is never worse.
    relax : bool
    log : bool
        Whether to keep what the solver prints.
    options : mapping of str to value, optional
        Further options of HiGHS; they win over what this module sets.
    improved : callable, optional
        Told of every better point: values, objective, bound. Called from the solver's run.

    Raises
    ------
    UnknownOption
        If HiGHS has no such option or refuses its value.
    InfeasibleStart
        If the start breaks a row, a bound or integrality by more than 1e-6.
    """
    if relax:
        program = program.relaxed()
    if start is not None:
        broken = program.violation(start)
        if broken:
            raise InfeasibleStart(f"the start is not feasible: {broken}")
        start = np.where(program.integer, np.round(start), start)
    if not len(program.cost):
        return _without_columns(program)
    settings = {"mip_rel_gap": gap, **({} if nodes is None else {"mip_max_nodes": nodes}), **(options or {})}
    lines: list[str] = []
    attempts: list[tuple[Floats | None, dict[str, object]]] = [(start, settings)]
    if start is not None:
        attempts.append((None, settings))
    attempts.append((start, {"presolve": "off", **settings}))
    began, handover = time.perf_counter(), 0.0
    for hint, chosen in attempts:
        left = max(0.0, time_limit - (time.perf_counter() - began - handover))
        found = _attempt(program, hint, start, {"time_limit": left, **chosen}, seed, lines if log else None, improved)
        handover += found.handover
        if found.why is not Why.FAILED:
            break
    seconds = time.perf_counter() - began - handover
    return replace(found, seconds=seconds, handover=handover, log="".join(lines), version=version())


def _attempt(
    program: Program,
    hint: Floats | None,
    floor: Floats | None,
    settings: Mapping[str, object],
    seed: int,
    lines: list[str] | None,
    improved: Improved | None,
) -> Solved:
    """Solve once, with a hint where to start; the answer is not worse than `floor`."""
    began = time.perf_counter()
    solver = open_solver(seed, settings, lines)
    if not pass_program(solver, program):
        return Solved(Why.FAILED)
    if hint is not None and program.integer.any():
        point = highspy.HighsSolution()
        point.col_value = hint.tolist()
        solver.setSolution(point)
    if improved is not None:
        _subscribe(solver, program, improved)
    handover = time.perf_counter() - began
    status = run(solver)
    return replace(_read(solver, program, status, floor), handover=handover, nodes=_nodes(solver))


class Session:
    """A linear program that grows: for column generation, where each solve starts from the last basis.

    Parameters
    ----------
    program : Program
        Its integrality is kept for `program` and not looked at in `solve`.
    seed : int
    options : mapping of str to value, optional
    """

    def __init__(self, program: Program, *, seed: int = 0, options: Mapping[str, object] | None = None) -> None:
        self._program = program
        self._solver = open_solver(seed, options, None)
        if not pass_program(self._solver, program.relaxed()):
            raise ValueError("the solver refuses the program: a coefficient is not finite or beyond 1e15")

    @property
    def program(self) -> Program:
        """The program with all columns added so far."""
        return self._program

    def add_columns(
        self,
        *,
        cost: Floats,
        lower: Floats,
        upper: Floats,
        start: Index,
        index: Index,
        value: Floats,
        integer: Bools | None = None,
    ) -> None:
        """Add columns, given by column: column j has rows ``index[start[j]:start[j + 1]]``."""
        count = len(cost)
        whole = np.zeros(count, dtype=np.bool_) if integer is None else integer
        self._program = with_columns(
            self._program, cost=cost, lower=lower, upper=upper, integer=whole, start=start, index=index, value=value
        )
        first = np.asarray(start[:-1], dtype=np.int32)
        status = self._solver.addCols(
            count, cost, lower, upper, len(index), first, np.asarray(index, dtype=np.int32), value
        )
        if status == highspy.HighsStatus.kError:
            raise ValueError("the solver refuses the columns")

    def solve(self, *, time_limit: float = math.inf) -> Solved:
        """Solve the linear relaxation from the last basis."""
        if not len(self._program.cost):
            return _without_columns(self._program.relaxed())
        set_time_limit(self._solver, time_limit)
        began = time.perf_counter()
        status = run(self._solver)
        seconds = time.perf_counter() - began
        return replace(_read(self._solver, self._program.relaxed(), status, None), seconds=seconds, version=version())


# --- reading the answer ----------------------------------------------------------------------------------------


def _nodes(solver: Any) -> int:
    return max(0, int(solver.getInfo().mip_node_count))


def _misreports(solver: Any, program: Program) -> bool:
    """Return whether the objective that the solver names is not that of the point it gives."""
    info = solver.getInfo()
    if info.primal_solution_status != highspy.kSolutionStatusFeasible:
        return False
    objective = program.objective(np.array(solver.getSolution().col_value, dtype=np.float64))
    return bool(abs(info.objective_function_value - objective) > 1e-6 * max(1.0, abs(objective)))


def _subscribe(solver: Any, program: Program, improved: Improved) -> None:
    def tell(event: Any) -> None:
        point = np.array(event.data_out.mip_solution, dtype=np.float64)
        point[program.integer] = np.round(point[program.integer])
        if program.violation(point) is None:
            bound = event.data_out.mip_dual_bound
            improved(point, program.objective(point), bound if math.isfinite(bound) else None)

    solver.cbMipImprovingSolution.subscribe(tell)


def _without_columns(program: Program) -> Solved:
    if (program.row_lower <= 0).all() and (program.row_upper >= 0).all():
        duals = None if program.integer.any() else np.zeros(len(program.row_lower))
        return Solved(Why.OPTIMAL, True, np.zeros(0), program.offset, program.offset, duals, version=version())
    return Solved(Why.INFEASIBLE, version=version())


def _read(solver: Any, program: Program, status: Any, start: Floats | None) -> Solved:
    """Return the run's answer as far as it stands up to a check."""
    why = _WHY.get(status, Why.FAILED)
    info = solver.getInfo()
    whole = bool(program.integer.any())
    x: Floats | None = None
    if info.primal_solution_status == highspy.kSolutionStatusFeasible and why is not Why.FAILED:
        x = _checked(program, np.array(solver.getSolution().col_value, dtype=np.float64))
        if (x is None and why is Why.OPTIMAL) or _misreports(solver, program):
            why = Why.FAILED
    if start is not None and (x is None or program.sense * (program.objective(x) - program.objective(start)) > 0):
        x = start  # and if the solver denies that there is a point, it is wrong
        if why in (Why.INFEASIBLE, Why.INFEASIBLE_OR_UNBOUNDED):
            why = Why.FAILED
    duals, bound = None, None
    if whole:
        bound = float(info.mip_dual_bound) if why is not Why.FAILED else None
        if bound is not None and not math.isfinite(bound):
            bound = None
    elif info.dual_solution_status == highspy.kSolutionStatusFeasible:
        duals = np.array(solver.getSolution().row_dual, dtype=np.float64)
        bound = safe_lp_bound(program, duals)
    if x is None:
        return Solved(why, bound=bound, row_duals=duals)
    objective = program.objective(x)
    if bound is not None and program.sense * (bound - objective) > 0:
        # The point is checked, so a bound beyond it is off: by rounding, or by a bug.
        if abs(bound - objective) > 1e-6 * max(1.0, abs(objective)):
            return Solved(Why.FAILED, True, x, objective, None, duals)
        bound = objective
    if why is Why.OPTIMAL and whole and bound is not None and abs(objective - bound) > 1e-7 * max(1.0, abs(objective)):
        why = Why.GAP
    return Solved(why, True, x, objective, bound, duals)


def _checked(program: Program, x: Floats) -> Floats | None:
    """Return the point with its whole columns made whole, or None if it breaks the program then."""
    x = np.clip(x, program.lower, program.upper)
    if not program.integer.any():
        return x if program.violation(x) is None else None
    rounded = np.where(program.integer, np.round(x), x)
    if program.violation(rounded) is None:
        return rounded
    if program.integer.all():
        return None
    fixed = replace(
        program.relaxed(),
        lower=np.where(program.integer, rounded, program.lower),
        upper=np.where(program.integer, rounded, program.upper),
    )
    return solve(fixed).x
