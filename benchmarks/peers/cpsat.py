"""Running OR-tools' CP-SAT: one worker, a fixed seed, and every incumbent and bound with its time."""

from __future__ import annotations

import importlib
import importlib.util
import threading
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from .common import NotInstalled, Trace

LINEARIZATION = 2
"""All constraints go into the linear relaxation; the default, 1, leaves parts out and proves far weaker bounds here."""


def library() -> Any:
    """Return `ortools.sat.python.cp_model`, or raise `NotInstalled`."""
    if importlib.util.find_spec("ortools") is None:
        raise NotInstalled("not installed: pip install '.[bench]'")
    # by name, so that types are the same wherever it is installed and where it is not
    return importlib.import_module("ortools.sat.python.cp_model")


def solve(
    model: Any,
    trace: Trace,
    *,
    limit: float,
    seed: int,
    workers: int,
    unit: float,
    incumbent: Callable[[list[int]], None],
    gap: float = 0.0,
) -> None:
    """Maximise a model until `limit` seconds after the trace began, and note what happens in the trace.

    Parameters
    ----------
    model : CpModel
    trace : Trace
    limit : float
    seed, workers : int
    unit : float
        What one count of the model's objective is in the unit of the trace's values.
    incumbent : callable
        Told of the values of all variables by number whenever they are better.
    gap : float
        Relative gap at which to stop.
    """
    cp = library()
    solver = cp.CpSolver()
    solver.parameters.num_workers = workers
    solver.parameters.random_seed = seed
    solver.parameters.linearization_level = LINEARIZATION
    solver.parameters.relative_gap_limit = gap
    solver.parameters.max_time_in_seconds = max(0.01, limit - trace.now)
    # with several workers, the two callbacks come from different threads
    lock = threading.Lock()

    class Watch(cp.CpSolverSolutionCallback):  # type: ignore[misc, name-defined]
        def on_solution_callback(self) -> None:
            with lock:
                incumbent(list(self.response_proto.solution))

    def better(bound: float) -> None:
        with lock:
            trace.better_bound(bound * unit)

    solver.best_bound_callback = better
    status = solver.solve(model, Watch())
    trace.seconds = trace.now
    if status in (cp.OPTIMAL, cp.FEASIBLE):
        trace.better_bound(solver.best_objective_bound * unit)
    trace.about |= {
        "version": f"ortools {version('ortools')}",
        "workers": workers,
        "parameters": {"linearization_level": LINEARIZATION, "random_seed": seed, "relative_gap_limit": gap},
        "stop": solver.status_name(status).lower(),
        "branches": solver.num_branches,
        "conflicts": solver.num_conflicts,
    }
