"""Quotas of queues: the tree, admission over time, the judge, the model's rows, order and fairness."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st
from pyomo import core as pyo
from pyomo.contrib.appsi.solvers.highs import Highs
from quota_cases import MODELS, job, leaves, trees

import placement
from placement.check.queues.quota import judge
from placement.models import quota as rows
from placement.quota import ALL, Quotas, Short
from placement.snapshot import (
    Gpu,
    Node,
    Queue,
    Snapshot,
)
from placement.timetable import Schedule

Usage = dict[tuple[str, str], int]
"""Cards by queue and model."""


# --- hand-computed trees -----------------------------------------------------------------------------------------


def test_borrowing_and_lending() -> None:
    """Of root, x with quota 4 that may borrow 2, and y with quota 4 that lends 3.

    root: subtree 0 + 4 + min(4, 3) = 7. y: guaranteed 4 - 3 = 1. x: limit 4 + 2 = 6, and what root has left.
    """
    quotas = Quotas(
        (
            Queue(name="root"),
            Queue(name="x", parent="root", quota={"A": 4}, borrowing_limit={"A": 2}),
            Queue(name="y", parent="root", quota={"A": 4}, lending_limit={"A": 3}),
        )
    )
    assert [quotas.row(queue, "A").subtree for queue in ("root", "x", "y")] == [7, 4, 4]
    assert [quotas.row(queue, "A").guaranteed for queue in ("root", "x", "y")] == [0, 0, 1]
    assert [quotas.room(queue, "A") for queue in ("x", "y")] == [6, 8]  # y: its own 1, and the 7 of root
    assert quotas.short_by("x", {"A": 7}) == Short("x", "A", 1)
    quotas.change("x", {"A": 6})
    # root has 7 - 6 = 1 left, and y has 1 that it never lends
    assert quotas.room("y", "A") == 2
    assert quotas.fits("y", {"A": 2})
    assert quotas.short_by("y", {"A": 4}) == Short("root", "A", 2)  # 6 + (4 - 1) - 7
    quotas.change("y", {"A": 4})  # as running work may
    assert quotas.over() == [Short("root", "A", 2)]
    assert (quotas.usage("root", "A"), quotas.usage("y", "A")) == (9, 4)
    quotas.change("y", {"A": 4}, -1)
    assert (quotas.usage("root", "A"), quotas.usage("y", "A")) == (6, 0)
    # what y never lends is still its own while root is exceeded, and makes nothing worse
    quotas.change("x", {"A": 2})  # root: 8 of 7
    assert quotas.fits("y", {"A": 1})
    assert quotas.short_by("y", {"A": 2}) == Short("root", "A", 2)
    assert quotas.room("y", "A") == 1


def test_three_levels() -> None:
    """Of top with 2 of its own; lab, which lends 3 and borrows 1; l1 with quota 4 that lends 1, and l2 with 2; and z.

    l1 keeps 3 and lends 1, so lab has 0 + 1 + 2 = 3 and lends all 3, and may use 3 + 1 = 4 beyond what l1 keeps.
    top has 2 + 3 + 1 of z = 6.
    """
    quotas = Quotas(
        (
            Queue(name="top", quota={"A": 2}),
            Queue(name="lab", parent="top", lending_limit={"A": 3}, borrowing_limit={"A": 1}),
            Queue(name="l1", parent="lab", quota={"A": 4}, lending_limit={"A": 1}),
            Queue(name="l2", parent="lab", quota={"A": 2}),
            Queue(name="z", parent="top", quota={"A": 1}),
        )
    )
    assert [quotas.row(q, "A").subtree for q in ("top", "lab", "l1", "l2", "z")] == [6, 3, 4, 2, 1]
    # l1: its own 3 and the 4 of lab; l2: the 4 of lab; z: all 6 of top
    assert [quotas.room(q, "A") for q in ("l1", "l2", "z")] == [7, 4, 6]
    quotas.change("l1", {"A": 5})  # lab uses 2, and so does top
    assert [quotas.usage(q, "A") for q in ("l1", "lab", "top")] == [5, 2, 2]
    assert [quotas.room(q, "A") for q in ("l2", "z")] == [2, 4]
    assert quotas.short_by("l2", {"A": 3}) == Short("lab", "A", 1)


def test_all_models_and_those_not_listed() -> None:
    """Of root with 4 A, and c with 4 of any: up to 8 A (4 + 4), 4 B (0 + 4), and 8 in all. Of 4 A alone: no B."""
    quotas = Quotas((Queue(name="r", quota={"A": 4}), Queue(name="c", parent="r", quota={"*": 4}), Queue(name="d")))
    assert [quotas.room("c", model) for model in ("A", "B", ALL)] == [8, 4, 8]
    assert quotas.fits("c", {"A": 4, "B": 4})
    assert quotas.short_by("c", {"A": 5, "B": 4}) == Short("r", ALL, 1)
    assert not quotas.limited("d")  # it states nothing, nor does anything above it
    assert quotas.room("d", "A") is None
    assert quotas.fits("d", {"A": 1000})
    assert quotas.fits("", {"A": 1000})
    alone = Quotas((Queue(name="d", quota={"A": 4}),))
    assert alone.short_by("d", {"B": 1}) == Short("d", "B", 1)
    assert alone.room("d", ALL) is None  # nobody speaks of all models; A and B say it
    half = Quotas((Queue(name="d", quota={"*": "500m"}),))
    assert half.fits("d", {"A": Fraction(1, 2)})
    assert half.short_by("d", {"A": Fraction(4, 7)}) == Short("d", ALL, Fraction(1, 14))


# --- against the definition --------------------------------------------------------------------------------------


def accepted(queues: tuple[Queue, ...], usage: Mapping[tuple[str, str], int]) -> bool:
    """Return whether usage is allowed, by the definition read word by word."""
    named = {queue.name: queue for queue in queues}

    def above(queue: Queue) -> Iterator[Queue]:
        yield queue
        if queue.parent:
            yield from above(named[queue.parent])

    def states(queue: Queue) -> bool:
        return bool(queue.quota or queue.borrowing_limit or queue.lending_limit)

    def below(queue: Queue) -> list[Queue]:
        return [one for one in queues if one.parent == queue.name and counts(one)]

    def counts(queue: Queue) -> bool:
        return queue.name not in leaves(queues) or any(map(states, above(queue)))

    def quota(queue: Queue, model: str) -> int:
        of_any = queue.quota.get("*", 0) if model != "*" else sum(int(one) for one in queue.quota.values())
        return int(queue.quota.get(model, of_any))

    def subtree(queue: Queue, model: str) -> int:
        return quota(queue, model) + sum(subtree(one, model) - guaranteed(one, model) for one in below(queue))

    def guaranteed(queue: Queue, model: str) -> int:
        if model not in queue.lending_limit:
            return 0
        return max(0, subtree(queue, model) - int(queue.lending_limit[model]))

    def used(queue: Queue, model: str) -> int:
        if queue.name in leaves(queues):
            return sum(usage.get((queue.name, one), 0) for one in MODELS if model in (one, "*"))
        return sum(max(0, used(one, model) - guaranteed(one, model)) for one in below(queue))

    for queue in queues:
        root = list(above(queue))[-1]
        tree = [one for one in queues if list(above(one))[-1] is root]
        stated = {model for one in tree for model in (*one.quota, *one.borrowing_limit, *one.lending_limit)}
        if not counts(queue) or not stated:
            continue
        for model in (*MODELS, "*") if "*" in stated else MODELS:
            if not queue.parent and used(queue, model) > subtree(queue, model):
                return False
            borrowed = queue.borrowing_limit.get(model)
            if queue.parent and borrowed is not None and used(queue, model) > subtree(queue, model) + int(borrowed):
                return False
    return True


@st.composite
def used_trees(draw: st.DrawFn) -> tuple[tuple[Queue, ...], Usage]:
    queues = draw(trees())
    keys = [(queue, model) for queue in leaves(queues) for model in MODELS]
    return queues, {key: draw(st.integers(0, 4)) for key in keys}


def start_at_once(queues: tuple[Queue, ...], usage: Usage) -> tuple[Snapshot, Schedule]:
    """Return a cluster, and a schedule in which jobs take just that from 0 to 1 s."""
    nodes = tuple(Node(name=model, gpus=(Gpu(model=model, count=100),)) for model in MODELS)
    jobs = tuple(
        job(f"{queue}-{model}", queue, amount, 1, models=(model,)) for (queue, model), amount in usage.items() if amount
    )
    bare = Snapshot(nodes=nodes, jobs=tuple(one for one in jobs))
    placed = placement.schedule(bare, solver="fifo-list")
    assert set(placed.stretches.start) <= {0.0}
    return Snapshot(nodes=nodes, jobs=jobs, queues=queues), placed


def modelled(queues: tuple[Queue, ...], usage: Usage) -> bool:
    """Return whether the model's rows have a solution with some usage."""
    m = pyo.ConcreteModel()
    m.u = pyo.Var(list(usage), within=pyo.NonNegativeReals)
    for key, amount in usage.items():
        m.u[key].fix(amount)
    rows.add(m, Quotas(queues), {key: m.u[key] for key in usage}, MODELS)
    m.least = pyo.Var(bounds=(0, 1))  # a solver wants something to minimise
    m.goal = pyo.Objective(expr=m.least)
    solver = Highs()
    solver.config.load_solution = False
    return bool(solver.solve(m).termination_condition.name == "optimal")


@given(used_trees())
@settings(max_examples=200)
def test_usage_is_accepted_as_the_definition_says(drawn: tuple[tuple[Queue, ...], Usage]) -> None:
    queues, usage = drawn
    quotas = Quotas(queues)
    for (queue, model), amount in usage.items():
        quotas.change(queue, {model: amount})
    assert (not quotas.over()) == accepted(queues, usage)
    for (queue, model), amount in reversed(usage.items()):
        quotas.change(queue, {model: amount}, -1)
    assert all(quotas.usage(queue.name, model) == 0 for queue in queues for model in (*MODELS, ALL))


@given(used_trees())
@settings(max_examples=20)
def test_model_and_judge_accept_the_same(drawn: tuple[tuple[Queue, ...], Usage]) -> None:
    queues, usage = drawn
    allowed = accepted(queues, usage)
    assert modelled(queues, usage) == allowed
    assert (not list(judge(*start_at_once(queues, usage)))) == allowed


@given(used_trees(), st.integers(0, 5), st.sampled_from([*MODELS]), st.integers(1, 4))
def test_what_fits_is_what_makes_nothing_worse(
    drawn: tuple[tuple[Queue, ...], Usage], which: int, model: str, amount: int
) -> None:
    queues, usage = drawn
    queue = leaves(queues)[which % len(leaves(queues))]
    quotas = Quotas(queues)
    for (other, one), used in usage.items():
        quotas.change(other, {one: used})
    before = {(short.queue, short.model): short.amount for short in quotas.over()}
    fits, rooms = quotas.fits(queue, {model: amount}), [quotas.room(queue, model), quotas.room(queue, ALL)]
    quotas.change(queue, {model: amount})
    after = {(short.queue, short.model): short.amount for short in quotas.over()}
    assert fits == all(worse <= before.get(row, 0) for row, worse in after.items())
    assert fits == all(room is None or amount <= room for room in rooms)
