"""What `check` says of plans that were built in Python with values that no file can hold."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec
import numpy
import pytest

import placement as pl

SNAPSHOT = pl.load(pl.instances.path("fragmentation-two-nodes"))


def solved(path: str = "", value: object = None) -> pl.Plan:
    """Return a right plan for the snapshot with one attribute set to something else."""
    plan = pl.solve(SNAPSHOT, solver="fgd")
    assert len(plan.tasks) == 2
    *above, name = path.split(".")
    holder: Any = plan
    for step in above:
        holder = getattr(holder, step)
    if name:
        setattr(holder, name, value)
    return plan


@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        ("tasks", None, "tasks"),
        ("tasks.job", None, "tasks.job"),
        ("tasks.job", [None, "next"], "tasks.job[0]"),
        ("tasks.job", ["now", object()], "tasks.job[1]"),
        ("tasks.group", "main", "tasks.group"),
        ("tasks.index", [0, "0"], "tasks.index[1]"),
        ("tasks.index", [0.0, 0], "tasks.index[0]"),
        ("tasks.node", [3, "b"], "tasks.node[0]"),
        ("tasks.gpus", [[0, 1], None], "tasks.gpus[1]"),
        ("tasks.gpus", [[0, 1], [0, "1"]], "tasks.gpus[1][1]"),
        ("phases", None, "phases"),
        ("phases", [None], "phases[0]"),
        ("pending", [{}], "pending[0].job"),
        ("usage", None, "usage"),
        ("provenance", None, "provenance"),
        ("snapshot", None, "snapshot"),
        ("status", "sure", "status"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_wrong_type_is_an_error_with_its_path(path: str, value: object, where: str) -> None:
    with pytest.raises(pl.PlanError) as caught:
        pl.check(SNAPSHOT, solved(path, value))
    assert [problem.path for problem in caught.value.problems] == [where]


@pytest.mark.parametrize(
    ("path", "value", "what"),
    [
        ("tasks.job", [3, "b"], "found 3, expected text; write it in quotes"),
        ("tasks.gpus", [[0, 1], 1], "found 1, expected a list of whole numbers; put it in a list"),
        ("tasks.gpus", 1, "found 1, expected a list of lists of whole numbers; write a list"),
        ("tasks.gpus", [[0, None], [1]], "found null, expected a whole number; take it out of the list"),
        ("tasks.zones", [1], "found 1, expected a list of whole numbers; put it in a list"),
        ("tasks.links", [None, []], "found a list, expected a whole number; correct the value"),
        ("tasks.nics", [3], "found 3, expected a list of texts; write a list"),
        ("tasks.cpu", [True], 'found true, expected a list of quantities, such as 0.5 or "80Gi"; write a list'),
        ("tasks.cpu", [[True]], 'found true, expected a quantity, such as 0.5 or "80Gi"; write the amount'),
        ("phases", [{"objective": "value", "sense": "x"}], 'found the text "x", expected one of "max", "min"; write'),
        ("phases", 3, "found 3, expected a list of objects; write a list"),
        ("status", None, 'found null, expected one of "proven", "bounded", "feasible"; write one of'),
        ("run", {"seconds": [[]]}, "found a list, expected a number; correct the value"),
        ("run", {"seconds": ["1"]}, 'found the text "1", expected a number; write it without quotes'),
    ],
)
def test_a_wrong_type_is_met_with_what_was_expected(path: str, value: object, what: str) -> None:
    with pytest.raises(pl.PlanError) as caught:
        pl.check(SNAPSHOT, solved(path, value))
    assert what in str(caught.value)


def endless() -> list[object]:
    loop: list[object] = []
    loop.append(loop)
    return loop


@pytest.mark.parametrize(
    "wrong",
    [lambda: None, lambda: {"format": "placement-plan/1"}, lambda: solved("tasks.gpus", endless())],
    ids=["nothing", "mapping", "endless"],
)
def test_what_is_no_plan(wrong: Callable[[], Any]) -> None:
    with pytest.raises(pl.PlanError, match=r"expected a Plan|cannot be written as JSON"):
        pl.check(SNAPSHOT, wrong())


def test_columns_may_be_of_other_sequences_and_numbers() -> None:
    plan = solved()
    tasks = plan.tasks
    tasks.job, tasks.index = tuple(tasks.job), list(numpy.array(tasks.index))  # type: ignore[assignment]
    tasks.gpus = [list(numpy.array(gpus)) for gpus in tasks.gpus]
    phase = plan.phases[0]
    plan.phases[0] = msgspec.structs.replace(phase, value=numpy.float32(phase.value))
    assert pl.check(SNAPSHOT, plan) == []


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_numbers_that_no_file_can_hold_are_violations(number: float) -> None:
    plan = solved()
    plan.phases[0] = msgspec.structs.replace(plan.phases[0], value=number)
    assert "only finite numbers are allowed" in " ".join(str(violation) for violation in pl.check(SNAPSHOT, plan))


def test_the_plan_is_left_as_it_is() -> None:
    plan = solved("tasks.index", list(numpy.array([0, 0])))
    columns = msgspec.structs.astuple(plan.tasks)
    assert pl.check(SNAPSHOT, plan) == []
    assert all(now is before for now, before in zip(msgspec.structs.astuple(plan.tasks), columns, strict=True))
