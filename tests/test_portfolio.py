"""What methods share when time is short: some time for the first rule in any case, and none of it spent twice."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

import pytest

import placement as pl
from placement import engine, portfolio
from placement.compile import compile as compile_snapshot
from placement.exact.processes import worker
from placement.generate import generate
from placement.heuristics import HEURISTICS
from placement.instance import Assignment, Instance
from placement.run import Run
from placement.solver import Limits, Report, Result, Stop, silent


@dataclass
class Told:
    """A method that answers what it was told to and remembers what it was given."""

    name: str
    answers: list[Result]
    starts: list[Assignment | None] = field(default_factory=list)

    def supports(self, instance: Instance) -> str | None:
        return None

    def solve(
        self,
        instance: Instance,
        *,
        objectives: tuple[str, ...],
        limits: Limits,
        seed: int = 0,
        start: Assignment | None = None,
        report: Report = silent,
    ) -> Result:
        self.starts.append(start)
        return self.answers[len(self.starts) - 1]


@pytest.fixture(scope="module")
def instance() -> Instance:
    return compile_snapshot(generate(nodes=8, load=1.3, seed=9))


def test_the_exact_method_starts_from_the_first_rule_and_the_others_run_beside(instance: Instance) -> None:
    whole = HEURISTICS["first-fit"].solve(instance, objectives=("value",), limits=Limits())
    first, second = Told("first", [whole]), Told("second", [Result(Assignment.empty(), Stop.COMPLETE)])
    exact = Told("exact", [Result(whole.assignment, Stop.WORK)])
    run = Run(instance, ("value",), Limits(), 0, None, 0.0)
    portfolio.together(run, exact, {"first": first, "second": second}, all_rules=True)
    assert first.starts == second.starts == [None]
    assert exact.starts == [whole.assignment]
    assert [name for _, name, _ in run.candidates] in (["first", "second", "exact"], ["first", "exact", "second"])


def test_what_came_beside_a_gap_that_was_reached_is_kept_aside(instance: Instance) -> None:
    # whether it comes in time is chance, so the plan must not depend on it
    whole = HEURISTICS["first-fit"].solve(instance, objectives=("value",), limits=Limits())
    rules = {"first": Told("first", [whole]), "second": Told("second", [whole])}
    run = Run(instance, ("value",), Limits(gap=0.1), 0, None, 0.0)
    portfolio.together(run, Told("exact", [Result(whole.assignment, Stop.GAP)]), rules, all_rules=True)
    assert [name for _, name, _ in run.candidates] == ["first", "exact"]
    assert [name for _, name, _ in run.beside] == ["second"]


def test_an_exact_method_that_fails_leaves_the_rules(instance: Instance) -> None:
    whole = HEURISTICS["first-fit"].solve(instance, objectives=("value",), limits=Limits())
    rules = {"first": Told("first", [whole]), "second": Told("second", [whole])}
    failed = Told("exact", [Result(Assignment.empty(), Stop.FAILED, notes=("it broke",))])
    run = Run(instance, ("value",), Limits(gap=0.1), 0, None, 0.0)
    portfolio.together(run, failed, rules, all_rules=True)
    assert {name for _, name, _ in run.candidates} == {"first", "second", "exact"}
    assert run.notes == ["exact: it broke"]


def test_going_on_gives_what_the_rule_gives_in_one_go(instance: Instance) -> None:
    rule = HEURISTICS["first-fit"]
    whole = rows(rule.solve(instance, objectives=("value",), limits=Limits()).assignment)
    # every job is there with all of its tasks, or not at all, as where the clock ends a rule
    for end in sorted({row[0] for row in whole}):
        part = Assignment.of([row for row in whole if row[0] < end])
        again = rule.solve(instance, objectives=("value",), limits=Limits(), start=part)
        assert rows(again.assignment) == whole


def test_something_starts_however_short_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portfolio, "LEAST", math.inf)
    monkeypatch.setattr(worker, "warm", lambda: pytest.fail("a solver was started that nobody has time for"))
    monkeypatch.setattr(worker, "ready", lambda: False)
    monkeypatch.setattr(worker, "prepare", lambda: None)
    snapshot = generate(nodes=8, load=1.3, seed=9)
    for solver in ("auto", "first-fit"):
        plan = pl.solve(snapshot, time_limit=1e-6, solver=solver)
        assert len(plan.tasks)
        assert plan.value


def test_what_follows_the_search_is_given_as_long_as_compiling_shows(instance: Instance) -> None:
    usual = engine._reserve(instance, ("value",), 60.0, 0.0)
    assert 0 < usual < engine._reserve(instance, ("value", "fragmentation"), 60.0, 0.0)
    # a machine on which compiling these few nodes took a second
    assert engine._reserve(instance, ("value",), 60.0, 1.0) == engine.AS_COMPILING
    assert engine._reserve(instance, ("value",), 1.0, 1.0) == 0.5
    assert engine._reserve(instance, ("value",), None, 1.0) == 0.0


def rows(assignment: Assignment) -> list[tuple[int, int, int, int, tuple[int, ...]]]:
    offset, cards = assignment.offset.tolist(), assignment.cards.tolist()
    columns = (assignment.job, assignment.leaf, assignment.task, assignment.node)
    return [
        (job, leaf, task, node, tuple(cards[offset[row] : offset[row + 1]]))
        for row, (job, leaf, task, node) in enumerate(zip(*(c.tolist() for c in columns), strict=True))
    ]


def test_the_exact_method_is_not_tried_in_less_time_than_the_size_needs(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(portfolio, "LEAST_EACH", 1e6)
    rules = [Told(name, [Result(Assignment.empty(), Stop.COMPLETE)]) for name in ("first", "second", "third")]
    exact = Told("exact", [])
    run = Run(instance, ("value",), Limits(time.monotonic() + 1000), 0, None, 0.0)
    portfolio.together(run, exact, {rule.name: rule for rule in rules}, all_rules=True)
    assert exact.starts == []
    assert [name for _, name, _ in run.candidates] == ["first", "second", "third"]
    assert run.cut
    assert run.notes == ["exact: not tried, too little time was left"]
