"""Value: the weighted completion time, what is said of its bound, and the figures."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import msgspec

from placement.check.schedules.case import Timed, milli
from placement.check.violation import Violation
from placement.figures import figures

VALUE, BOUNDS, FIGURES = "completion_time", "bounds", "figures"


def judge(case: Timed) -> Iterator[Violation]:
    """Yield what is wrong with the numbers of a schedule whose tables are right."""
    schedule, jobs = case.schedule, case.schedule.jobs
    columns = zip(jobs.weight, jobs.release, jobs.end, strict=True)
    value = sum(weight * (milli(end) - milli(release)) for weight, release, end in columns)
    if schedule.value != value / 1000:
        what = f"the value is {schedule.value!r}, the jobs make {value / 1000!r}"
        yield Violation(VALUE, "value", what)
    yield from _bound(case, value)
    due = figures(case.snapshot, jobs, schedule.stretches, schedule.tasks)
    for path, found, right in _differing("figures", schedule.figures, due):
        yield Violation(FIGURES, path, f"found {found!r}, the tables make {right!r}")


def _bound(case: Timed, value: int) -> Iterator[Violation]:
    schedule, bound = case.schedule, case.schedule.bound
    gap, status = None, "feasible"
    if bound is not None:
        if not math.isfinite(bound) or bound < 0:
            yield Violation(BOUNDS, "bound", f"the bound is {bound!r}, expected a number of at least 0")
            return
        if bound > value / 1000:
            yield Violation(BOUNDS, "bound", f"the bound {bound!r} is more than the value {value / 1000!r}")
            return
        # of numbers so large that not every one is a double, those count that are written
        whole = milli(value / 1000)
        gap = (whole - milli(bound)) / whole if whole else 0.0
        # whether as few jobs as can be are left out for their deadlines is not proven
        late = any(job.reason == "late" for job in schedule.left_out)
        status = "proven" if bound == value / 1000 and not late else "bounded"
    if schedule.gap != gap:
        yield Violation(BOUNDS, "gap", f"the gap is {schedule.gap!r}, value and bound make {gap!r}")
    if schedule.status != status:
        yield Violation(BOUNDS, "status", f"the status is {schedule.status}, value and bound make it {status}")
    if (schedule.stop == "optimal") != (schedule.status == "proven"):
        what = f"the search stopped by {schedule.stop}, and the status is {schedule.status}"
        yield Violation(BOUNDS, "stop", what)


def _differing(path: str, found: Any, due: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield every number of two records that differs, and where it is."""
    if isinstance(due, msgspec.Struct):
        for name in due.__struct_fields__:
            yield from _differing(f"{path}.{name}", getattr(found, name), getattr(due, name))
    elif isinstance(due, dict) and due.keys() == found.keys():
        for key, value in due.items():
            yield from _differing(f"{path}.{key}", found[key], value)
    elif found != due:
        yield (path, found, due) if not isinstance(due, dict) else (path, sorted(found), sorted(due))
