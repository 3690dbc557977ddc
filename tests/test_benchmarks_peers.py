"""The comparison with peers: its clockwork without any peer, and each peer on a tiny instance where it is installed."""

from __future__ import annotations

import importlib.util
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

from load import load
from peers import cpsat, cpsat_classes, cpsat_nodes, ours, rebalancer
from peers.common import Case, Course, NotInstalled, Trace, judged
from peers.report import HEAD, line, missing, row, target_of
from programs import program_of_rows

from placement.instance import Assignment

LIMIT = 20.0


@pytest.fixture(scope="module")
def case() -> Case:
    return Case(3, 1, load(3, 1).snapshot)


@pytest.fixture(scope="module")
def reference(case: Case) -> Course:
    return ours.run(case, LIMIT, 0)


# --- clockwork -----------------------------------------------------------------------------------------------------


def test_a_course_says_when_a_value_and_a_gap_were_reached() -> None:
    course = Course(values=[(1.0, 50.0), (4.0, 99.5)], bounds=[(2.0, 120.0), (3.0, 100.0)], seconds=5.0)
    assert course.to_value(50.0) == 1.0
    assert course.to_value(99.5) == 4.0
    assert course.to_value(100.0) is None
    # 100 - 50 is 100 % of 50 at second 3; (100 - 99.5) / 99.5 is 0.5 % at second 4
    assert course.to_gap(1.0) == (3.0, 50.0)
    assert course.to_gap(0.01) == (4.0, 99.5)
    assert course.to_gap(0.001) is None
    assert course.gap == pytest.approx(0.5 / 99.5)


def test_a_row_compares_with_the_reference() -> None:
    mine = Course(values=[(2.0, 100.0)], bounds=[(2.0, 100.0)], seconds=2.0)
    other = Course(values=[(1.0, 60.0), (8.0, 100.0)], bounds=[(9.0, 100.0)], seconds=9.0)
    found = row(4, "peer", other, mine, 10.0)
    assert isinstance(found["target"], dict)
    assert isinstance(found["proof"], dict)
    assert (found["target"]["value"], found["target"]["ratio"]) == (100.0, 4.0)
    assert found["proof"]["ratio"] == 4.5
    never = row(4, "peer", Course(values=[(1.0, 60.0)], bounds=[], seconds=10.0), mine, 10.0)
    assert isinstance(never["target"], dict)
    assert (never["target"]["ratio"], never["target"]["at_least"]) == (None, 5.0)
    assert ">10" in line(never)
    assert len(HEAD) < 140


def test_a_reference_without_proof_sets_its_last_value_as_target() -> None:
    target = target_of(Course(values=[(1.0, 5.0)], bounds=[], seconds=1.0))
    assert target is not None
    assert (target.value, target.proven) == (5.0, False)
    assert target_of(Course(values=[], bounds=[], seconds=1.0)) is None


def test_what_the_check_refuses_counts_for_nothing(case: Case) -> None:
    instance = case.compile()
    trace = Trace()
    # all jobs on one card
    wrong = Assignment.of([(job, 0, 0, 0, (0,)) for job in range(instance.jobs)])
    trace.incumbent(lambda: wrong)
    trace.incumbent(Assignment.empty)
    course = judged(case, instance, trace)
    assert course.refused == 1
    assert course.refusal
    assert course.value == 0.0


def test_the_engine_is_measured_on_the_way(reference: Course) -> None:
    assert reference.value
    assert reference.bound is not None
    assert reference.bound >= reference.value
    assert reference.refused == 0
    assert reference.values[0][0] < reference.seconds


def test_a_peer_that_is_not_installed_says_so(monkeypatch: pytest.MonkeyPatch, case: Case) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(NotInstalled, match="not installed"):
        cpsat_nodes.run(case, LIMIT, 0, 1)
    with pytest.raises(NotInstalled, match="not installed"):
        rebalancer.run(case, LIMIT, 0)
    assert "not installed" in line(missing(3, "peer", "not installed: reason"))


def test_coefficients_become_the_least_whole_numbers() -> None:
    assert cpsat_classes.whole_numbers([0.5, -1.5, 1.0]) == ([1, -3, 2], Fraction(2))
    assert cpsat_classes.whole_numbers([6.0, 9.0])[0] == [2, 3]
    assert cpsat_classes.whole_numbers([]) == ([], Fraction(1))


# --- peers ---------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
def test_cp_sat_solves_a_program_as_highs_does() -> None:
    cp = _cp_sat()
    arrays = program_of_rows(
        sense=-1,
        cost=[1.5, 1.0],
        lower=[0, 0],
        upper=[3, float("inf")],
        integer=[True, True],
        rows=[(-float("inf"), {0: 0.5, 1: 0.25}, 1.8), (1.0, {1: 1.0}, float("inf"))],
    )
    model, unit = cpsat_classes.model_of(arrays)
    solver = cp.CpSolver()
    assert solver.solve(model) == cp.OPTIMAL
    # 2 x + y <= 7 and y >= 1: y = 7, x = 0 gives 7; x = 3, y = 1 gives 5.5
    assert solver.objective_value * unit == 7.0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("started", [False, True])
def test_cp_sat_on_nodes_gives_plans_that_the_check_accepts(case: Case, reference: Course, started: bool) -> None:
    _cp_sat()
    course = cpsat_nodes.run(case, LIMIT, 0, 1, started)
    assert course.refused == 0, course.refusal
    assert course.gap == 0
    # two methods that share no model agree
    assert reference.gap == 0
    assert course.value == reference.value


@pytest.mark.filterwarnings("ignore")
def test_cp_sat_and_highs_agree_on_the_master(case: Case, reference: Course) -> None:
    _cp_sat()
    master = cpsat_classes.master_of(case.compile(), 0, LIMIT)
    highs, other = cpsat_classes.run_highs(master, LIMIT, 0), cpsat_classes.run_cpsat(master, LIMIT, 0, 1)
    assert highs.gap == other.gap == 0
    assert highs.value == other.value
    assert reference.value is not None
    assert highs.value is not None
    assert highs.value >= reference.value


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("solver", ["local", "started", "mip"])
def test_rebalancer_gives_plans_that_the_check_accepts(case: Case, reference: Course, solver: str) -> None:
    try:
        rebalancer.installed()
    except NotInstalled as why:
        pytest.skip(str(why))
    value = reference.value if solver == "mip" else None
    course = rebalancer.run(case, LIMIT, 0, value, started=solver == "started")
    assert course.refused == 0, course.refusal
    assert course.value is not None
    assert reference.value is not None
    assert 0 < course.value <= reference.value
    assert course.bound is None or course.bound >= reference.value - 1e-6


def _cp_sat() -> Any:
    try:
        return cpsat.library()
    except NotInstalled as why:
        pytest.skip(str(why))
