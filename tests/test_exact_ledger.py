"""The books of a run: which bounds hold for the standing, what is taken as better, and the targets in order."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.compile import compile as compile_snapshot
from placement.evaluate import demand
from placement.exact.layouts.layout import Layout
from placement.exact.layouts.standing import Standing
from placement.exact.ledger import Ledger
from placement.exact.neighbourhoods.tune import improve, polish
from placement.exact.objectives.targets import rest_of, targets_of
from placement.exact.packing.fill import fill
from placement.exact.timing import Timing
from placement.generate import generate
from placement.instance import Instance, Ints
from placement.snapshot import Gpu, Job, Node, Snapshot, Task, TaskGroup
from placement.solver import Limits, Progress, Stop

OBJECTIVES = ("value", "tasks")


def job(name: str, count: int, priority: int = 0, **task: object) -> Job:
    return Job(name=name, count=count, priority=priority, groups=(TaskGroup(name="g", task=Task(**task)),))  # type: ignore[arg-type]


def four_cards() -> Instance:
    """One node of 4 cards and 10 cores; a job of two cards of priority 1, four of one card, three without any."""
    return compile_snapshot(
        Snapshot(
            nodes=(Node(name="n", cpu=10, gpus=(Gpu(model="A", count=4),)),),
            jobs=(job("first", 1, 1, gpus=2), job("single", 4, gpus=1, cpu=1), job("none", 3, cpu=2)),
        )
    )


def ledger_of(instance: Instance, limits: Limits | None = None, told: list[Progress] | None = None) -> Ledger:
    said: list[Progress] = [] if told is None else told
    return Ledger(instance, targets_of(instance, OBJECTIVES), limits or Limits(), 0, None, said.append)


def layout_with(instance: Instance, wanted: Ints) -> Layout:
    """Return a layout with as many tasks of each shape as have room beside each other."""
    layout = Layout(instance)
    fill(layout, wanted.copy(), np.ones(len(wanted)))
    return layout


def shape_of(instance: Instance, gpus: int) -> int:
    return next(n for n, s in enumerate(instance.shapes) if s.gpus == gpus)


def only(instance: Instance, gpus: int, count: int) -> Layout:
    wanted = np.zeros(len(instance.shapes), dtype=np.int64)
    wanted[shape_of(instance, gpus)] = count
    return layout_with(instance, wanted)


# --- targets -------------------------------------------------------------------------------------------------------


def test_value_is_one_target_a_priority_the_highest_first() -> None:
    instance = four_cards()
    assert targets_of(instance, OBJECTIVES) == (("value", 1), ("value", 0), ("tasks", None))
    assert targets_of(instance, ("tasks", "value")) == (("tasks", None), ("value", 1), ("value", 0))


@pytest.mark.parametrize(
    ("objectives", "targets", "rest"),
    [
        (("tasks", "nodes"), 1, ("nodes",)),
        (("value", "tasks", "nodes", "fragmentation"), 3, ("nodes", "fragmentation")),
        # what follows an objective that counts do not determine is no target
        (("nodes", "value"), 0, ("nodes",)),
        (("tasks", "whole_nodes", "value", "nodes"), 1, ("whole_nodes",)),
        ((), 0, ()),
    ],
)
def test_targets_lead_and_what_nodes_are_left_like_follows(
    objectives: tuple[str, ...], targets: int, rest: tuple[str, ...]
) -> None:
    assert len(targets_of(four_cards(), objectives)) == targets
    assert rest_of(objectives) == rest


# --- bounds --------------------------------------------------------------------------------------------------------


def test_a_bound_holds_only_where_what_it_took_as_given_is_reached() -> None:
    instance = four_cards()
    ledger = ledger_of(instance)
    assert ledger.standing.ranks == (0, 0, 0)
    first = only(instance, 2, 1)
    ledger.prove(1, 4000, (0,))
    ledger.prove(1, 7, (1,))
    # the standing has nothing of the first target yet, and the tighter bound is about plans that have
    assert ledger.bound(1) == 4000
    assert ledger.bound(2) is None
    ledger.propose(first)
    assert ledger.standing.ranks[0] > 0
    assert ledger.bound(1) == 7
    # with none given, the standing's values are those taken as given
    ledger.prove(2, 9)
    assert ledger.bound(2) == 9
    assert ledger.held(2) == {("value", 1): ledger.standing.ranks[0], ("value", 0): 0}
    found = ledger.bounds()[2]
    assert (found.objective, found.value) == ("tasks", 9.0)
    assert list(found.held) == [ledger.standing.ranks[0] * float(instance.value_unit), 0.0]


@given(
    st.lists(st.tuples(st.tuples(*[st.integers(0, 3)] * 2), st.integers(0, 50))), st.tuples(*[st.integers(0, 3)] * 3)
)
def test_the_bound_is_the_least_of_those_that_hold(
    proven: list[tuple[tuple[int, int], int]], ranks: tuple[int, int, int]
) -> None:
    ledger = ledger_of(four_cards())
    ledger.standing.ranks = ranks
    for held, bound in proven:
        ledger.prove(2, bound, held)
    holding = [bound for held, bound in proven if held[0] <= ranks[0] and held[1] <= ranks[1]]
    assert ledger.bound(2) == (min(holding) if holding else None)


def test_why_a_run_stops() -> None:
    instance = four_cards()
    ledger = ledger_of(instance)
    ledger.propose(layout_with(instance, demand(instance)))
    ranks = ledger.standing.ranks
    assert ledger.why() is Stop.WORK
    ledger.note(True)
    assert ledger.why() is Stop.WORK
    for focus, rank in enumerate(ranks):
        assert not ledger.done(focus)
        ledger.prove(focus, rank)
        assert ledger.done(focus)
    assert ledger.why() is Stop.OPTIMAL
    # a gap is allowed in the first target alone
    other = ledger_of(instance, Limits(gap=1.0))
    other.propose(only(instance, 2, 1))
    for focus, rank in enumerate(other.standing.ranks):
        other.prove(focus, rank + (focus != 1))
    assert [other.done(focus) for focus in range(3)] == [True, True, False]
    other.prove(2, other.standing.ranks[2])
    assert other.why() is Stop.GAP
    other.prove(0, other.standing.ranks[0])
    assert other.why() is Stop.OPTIMAL
    other = ledger_of(instance)
    other.note(False)
    assert other.why() is Stop.TIME


def test_time_is_kept_for_the_answer() -> None:
    instance = four_cards()
    deadline = time.monotonic() + 100
    ledger = ledger_of(instance, Limits(deadline=deadline))
    assert ledger.limits.deadline < deadline
    assert ledger.share(0.5).deadline < ledger.limits.deadline
    assert ledger_of(instance).share(0.5).deadline == math.inf


# --- what is taken ---------------------------------------------------------------------------------------------------


def test_only_what_is_better_and_legal_is_taken() -> None:
    instance = four_cards()
    told: list[Progress] = []
    ledger = ledger_of(instance, told=told)
    ledger.propose(only(instance, 1, 4))
    four = ledger.standing.ranks
    assert four[0] == 0
    assert four[2] == 4
    ledger.propose(only(instance, 1, 3))
    assert ledger.standing.ranks == four
    # one task of the higher priority goes before four others
    ledger.propose(only(instance, 2, 1))
    high = ledger.standing.ranks
    assert high[0] > 0
    assert high[2] == 1
    # two single tasks beside it are better still, but not where the layout is beyond the node's resources
    wanted = demand(instance)
    wanted[[shape_of(instance, 1), shape_of(instance, 0)]] = 2, 0
    better = layout_with(instance, wanted)
    beyond = better.copy()
    beyond.state.free[:] = -1
    ledger.propose(beyond)
    assert ledger.standing.ranks == high
    ledger.propose(better)
    assert ledger.standing.ranks > high
    assert ledger.standing.ranks[2] == 3
    assert all(progress.assignment is not None for progress in told)


def test_a_standing_is_taken_as_a_copy() -> None:
    instance = four_cards()
    ledger = ledger_of(instance)
    standing = Standing.of_layout(ledger.goals, only(instance, 1, 4), 0)
    ledger.take(standing, "packed")
    ranks = ledger.standing.ranks
    assert ranks == standing.ranks
    standing.layout.remove(0, 0)
    assert ledger.standing.layout.count.sum() == 4
    worse = Standing.of_layout(ledger.goals, only(instance, 1, 1), 0)
    ledger.take(worse, "packed")
    assert ledger.standing.ranks == ranks
    assert len(ledger.assignment()) == 4


@pytest.mark.parametrize("seed", range(8))
def test_the_standing_never_gets_worse(seed: int) -> None:
    instance = compile_snapshot(generate(nodes=6, models=("A100-80",), load=1.5, gangs=0.2, seed=seed))
    ledger, rng, wanted = ledger_of(instance), np.random.default_rng(seed), demand(instance)
    best = ledger.standing.ranks
    for _ in range(12):
        layout = layout_with(instance, rng.integers(0, wanted + 1))
        reached = Standing.of_layout(ledger.goals, layout.copy(), 0).ranks
        ledger.propose(layout)
        assert ledger.standing.ranks == max(best, reached)
        best = ledger.standing.ranks


def test_earlier_targets_weigh_more_in_the_blend() -> None:
    instance = four_cards()
    worth = ledger_of(instance).blended_worth()
    first, single, none = (shape_of(instance, gpus) for gpus in (2, 1, 0))
    # a task of priority 1, then one that has value of priority 0, then one that only counts as a task
    assert worth[first] > 100 * worth[single]
    assert worth[single] > worth[none] > 0


# --- the last steps --------------------------------------------------------------------------------------------------


def test_improving_reaches_the_optimum_of_a_node_and_proves_it() -> None:
    instance = four_cards()
    ledger, timing = ledger_of(instance), Timing()
    ledger.propose(only(instance, 1, 3))
    for focus in range(len(ledger.targets)):
        before = ledger.standing.ranks
        improve(ledger, focus, None, timing, share=1.0)
        assert ledger.standing.ranks >= before
    # 2 cards for the first job, 2 for singles, and 3 tasks without: 6 cores and 2 of 10
    assert ledger.standing.ranks[2] == 1 + 2 + 3
    assert ledger.why() is Stop.OPTIMAL


def test_without_time_nothing_is_improved_and_the_ledger_says_so() -> None:
    instance = four_cards()
    ledger = ledger_of(instance, Limits(deadline=time.monotonic() - 1))
    improve(ledger, 0, None, Timing(), share=1.0)
    assert ledger.standing.ranks == (0, 0, 0)
    assert ledger.stop is Stop.TIME


def test_polish_keeps_the_targets_and_empties_nodes() -> None:
    # two tasks of one card on two nodes of two cards: they fit on one
    instance = compile_snapshot(
        Snapshot(nodes=(Node(name="n", count=2, gpus=(Gpu(model="A", count=2),)),), jobs=(job("j", 2, gpus=1),))
    )
    ledger = ledger_of(instance)
    layout = Layout(instance)
    for node in range(2):
        layout.place(0, node, (0,))
    ledger.propose(layout)
    ranks = ledger.standing.ranks
    polish(ledger, ("nodes",), Timing())
    assert ledger.standing.ranks == ranks
    assert sorted(len(spots) for spots in ledger.standing.layout.tasks) == [0, 2]
