"""The thin layer over HiGHS' own interface: making, setting and running a solver object, each step verified."""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from collections.abc import Mapping
from typing import Any

import highspy

from placement.exact.milp.arrays import Program

_DEFAULTS: dict[str, object] = {
    "threads": 1,
    "mip_abs_gap": 0.0,
    # The default of 1e-6 lets a row with whole data be exceeded, and the objective with it.
    "mip_feasibility_tolerance": 1e-9,
}


class UnknownOption(ValueError):  # noqa: N818 - it names what was given
    """The solver has no option of that name, or not with such a value."""


def version() -> str:
    """Return the solver's version."""
    return f"{highspy.HIGHS_VERSION_MAJOR}.{highspy.HIGHS_VERSION_MINOR}.{highspy.HIGHS_VERSION_PATCH}"


_banner = threading.Lock()
_greeted = False


def new_solver() -> Any:
    """Return a solver object, without the greeting that the first one of a process writes to standard output.

    There is no option against it, for it comes from the constructor. So for that moment, once per process, file
    descriptor 1 leads nowhere.
    """
    global _greeted
    with _banner:
        if _greeted:
            return highspy.Highs()  # type: ignore[no-untyped-call]
        _greeted = True
        try:
            kept = os.dup(1)
        except OSError:  # there is no standard output
            return highspy.Highs()  # type: ignore[no-untyped-call]
        sink = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(sink, 1)
            solver = highspy.Highs()  # type: ignore[no-untyped-call]
            with contextlib.suppress(OSError, TypeError, AttributeError):
                ctypes.CDLL(None).fflush(None)  # C's own buffer, where this can be had
        finally:
            os.dup2(kept, 1)
            os.close(kept)
            os.close(sink)
        return solver


def open_solver(seed: int, options: Mapping[str, object] | None, lines: list[str] | None) -> Any:
    """Return a silent solver object with options set; what it would print goes to `lines`, if given."""
    solver = new_solver()
    solver.setOptionValue("output_flag", lines is not None)
    solver.setOptionValue("log_to_console", False)
    if lines is not None:
        solver.cbLogging.subscribe(lambda event: lines.append(event.message))
    for name, value in {**_DEFAULTS, "random_seed": seed, **(options or {})}.items():
        set_option(solver, name, value)
    return solver


_TYPES: dict[Any, tuple[type, ...]] = {
    highspy.HighsOptionType.kBool: (bool,),
    highspy.HighsOptionType.kInt: (int,),
    highspy.HighsOptionType.kDouble: (float, int),
    highspy.HighsOptionType.kString: (str,),
}


def set_option(solver: Any, name: str, value: object) -> None:
    """Set an option, or raise `UnknownOption` if the solver lacks it or takes no such value."""
    status, kind = solver.getOptionType(name)
    if status != highspy.HighsStatus.kOk:
        raise UnknownOption(f"HiGHS {version()} has no option {name!r}; see its list of options")
    types = _TYPES[kind]
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        raise UnknownOption(f"option {name!r} wants {' or '.join(t.__name__ for t in types)}, not {value!r}")
    if kind == highspy.HighsOptionType.kDouble:
        value = float(value)  # type: ignore[arg-type]
    if solver.setOptionValue(name, value) != highspy.HighsStatus.kOk or solver.getOptionValue(name)[1] != value:
        raise UnknownOption(f"HiGHS {version()} refuses {value!r} for option {name!r}")


def set_time_limit(solver: Any, seconds: float) -> None:
    """Let the next run take so many seconds: the solver's clock runs on over all of its runs."""
    set_option(solver, "time_limit", solver.getRunTime() + max(0.0, seconds))


def pass_program(solver: Any, program: Program) -> bool:
    """Hand a program over; return whether the solver took it."""
    model = highspy.HighsLp()
    rows, columns = program.size
    model.num_row_, model.num_col_ = rows, columns
    model.sense_ = highspy.ObjSense.kMinimize if program.sense > 0 else highspy.ObjSense.kMaximize
    model.offset_ = program.offset
    model.col_cost_, model.col_lower_, model.col_upper_ = program.cost, program.lower, program.upper
    model.row_lower_, model.row_upper_ = program.row_lower, program.row_upper
    matrix = model.a_matrix_
    matrix.format_ = highspy.MatrixFormat.kRowwise
    matrix.num_row_, matrix.num_col_ = rows, columns
    matrix.start_, matrix.index_, matrix.value_ = program.start, program.index, program.value
    if program.integer.any():
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        model.integrality_ = [kinds[whole] for whole in program.integer.tolist()]
    return bool(solver.passModel(model) != highspy.HighsStatus.kError)


def run(solver: Any) -> Any:
    """Run the solver and return its model status."""
    solver.run()
    if solver.getModelStatus() == highspy.HighsModelStatus.kNotset:
        # Refused: other code of this process ran HiGHS with another number of threads.
        highspy.Highs.resetGlobalScheduler(True)
        solver.run()
    return solver.getModelStatus()
