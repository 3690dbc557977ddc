"""The objective ``mig_cards``: by hand, against brute force, and where it is one number whatever happens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import mig_brute
import pytest
from brute import TooLarge, Value
from mig_cases import A100, A100_80, RTX, WHOLE, gang, instances, jobs, node, plan_of, proven, runs, task, whole
from mig_tiny import random_mig
from msgspec.structs import replace

import placement as pl
from placement.compile import compile as compile_snapshot
from placement.evaluate import scores
from placement.exact import run
from placement.exact.objectives.idle import Idle
from placement.heuristics import HEURISTICS
from placement.plan import Phase
from placement.snapshot import Gpu, Snapshot
from placement.snapshot.read import verified
from placement.solver import Bound, Limits, Stop

ORDER = ("value", "tasks", "mig_cards")


def two(gpu: Gpu) -> Gpu:
    return replace(gpu, count=2)


def cards_used(plan: pl.Plan) -> int:
    return len({(place, *gpus) for _, _, _, place, gpus in plan.tasks})


# --- by hand -----------------------------------------------------------------------------------------------------


def test_as_few_cards_as_hold_the_instances() -> None:
    # 3g + 4g fill one card; 3g and 2g another: two cards for four instances of 12 sevenths, though three are there
    work = (jobs("a", "4g.20gb"), jobs("b", "3g.20gb", 2), jobs("c", "2g.10gb"))
    plan = plan_of(node(replace(A100, count=3)), *work, objectives=ORDER)
    # (4 + 3 + 3 + 2) / 7 of a card
    proven(plan, *(12000 / 7,), 4, 2)  # type: ignore[arg-type]
    assert cards_used(plan) == 2


def test_running_instances_count() -> None:
    # one card runs a 3g; the other 3g fits beside it, and the 7g needs a card of its own
    work = (runs("r", "3g.20gb", 0, 4), jobs("a", "3g.20gb"))
    plan = plan_of(node(two(A100)), *work, objectives=ORDER)
    assert [phase.value for phase in plan.phases[1:]] == [1, 1]
    assert plan.tasks.gpus == [[0]]
    assert plan.status == "proven"
    plan = plan_of(node(two(A100)), *work, jobs("b", "7g.40gb"), objectives=ORDER)
    assert [(phase.value, phase.bound) for phase in plan.phases[1:]] == [(2, 2), (2, 2)]


def test_instances_that_stay_are_of_one_card() -> None:
    # three 2g on each of two cards whose instances stay: three tasks need one card, not three
    static = replace(two(A100), mig_static=True, mig_layout=instances(("2g.10gb", 0), ("2g.10gb", 2), ("2g.10gb", 4)))
    plan = plan_of(node(static), jobs("a", "2g.10gb", 3), objectives=ORDER)
    assert [(phase.value, phase.bound) for phase in plan.phases[1:]] == [(3, 3), (1, 1)]
    assert plan.status == "proven"
    # a free card and such a one: the free one takes a 3g and a 2g, so that it alone is used
    plan = plan_of(node(replace(static, count=1), A100), jobs("a", "3g.20gb"), jobs("b", "2g.10gb"), objectives=ORDER)
    assert [(phase.value, phase.bound) for phase in plan.phases[1:]] == [(2, 2), (1, 1)]


def test_cards_whose_media_engines_count() -> None:
    # one 1g.5gb+me a card, for an A100 has one engine for it: two of them need two cards, six plain ones fit beside one
    work = (jobs("m", "1g.5gb+me", 2), jobs("a", "1g.5gb", 5))
    plan = plan_of(node(replace(A100, count=3)), *work, objectives=ORDER)
    assert [(phase.value, phase.bound) for phase in plan.phases[1:]] == [(7, 7), (2, 2)]


def test_other_work_beside() -> None:
    # a whole card is no MIG card
    plan = plan_of(node(two(A100), WHOLE), jobs("a", "2g.10gb", 3), whole("w"), objectives=ORDER)
    assert [(phase.value, phase.bound) for phase in plan.phases[1:]] == [(4, 4), (1, 1)]
    assert plan.status == "proven"


def test_a_bound_where_hosts_are_short() -> None:
    # a core on each of two hosts with a card, and a task that asks for one: two cards, where instances alone need one
    nodes = [node(A100, name=name, cpu=1) for name in "nm"]
    plan = plan_of(nodes, jobs("a", "1g.5gb", 2, cpu=1), objectives=ORDER)
    last = plan.phases[-1]
    assert (last.value, last.bound, last.conditional, plan.status) == (2, 1, True, "bounded")


def test_first_of_all_nothing_starts() -> None:
    plan = plan_of(node(two(A100)), jobs("a", "1g.5gb"), objectives=("mig_cards", "value"))
    assert [(phase.value, phase.bound) for phase in plan.phases][:1] == [(0, 0)]
    (waits,) = plan.pending
    assert waits.reason == "not_wanted"
    assert "mig_cards" in waits.detail


def test_before_tasks() -> None:
    # worth nothing, a 1g more is not started on a card of its own, and may be on one in use
    work = (jobs("a", "7g.40gb"), jobs("z", "1g.5gb", value=0))
    plan = plan_of(node(two(A100)), *work, objectives=("value", "mig_cards", "tasks"))
    assert [phase.value for phase in plan.phases] == [1000, 1, 1]
    assert [phase.bound for phase in plan.phases[:2]] == [1000, 1]


# --- where it is one number --------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", range(3))
def test_where_nobody_waits_for_an_instance(place: int) -> None:
    order = ["value", "tasks"]
    order.insert(place, "mig_cards")
    work = (runs("r", "3g.20gb", 0, 4), runs("q", "2g.10gb", 0, 0), whole("w", 3))
    plan = plan_of(node(two(A100), replace(WHOLE, count=2)), *work, objectives=order)
    values = {"value": 2000, "tasks": 2, "mig_cards": 1}
    assert [(phase.value, phase.bound) for phase in plan.phases] == [(values[name], values[name]) for name in order]
    assert plan.status == "proven"


def test_bounds_say_that_number() -> None:
    snapshot = Snapshot(nodes=(node(A100, WHOLE),), jobs=(runs("r", "3g.20gb", 0, 4), whole("w")))
    instance = compile_snapshot(verified(snapshot))
    assert instance.mig_cards == 1
    idle = Idle(instance, ("mig_cards", "value", "tasks"))
    assert idle.others == ("value", "tasks")
    assert idle.bound(Bound("tasks", None, 1.0, (1000.0,))).held == (1.0, 1000.0)


# --- the judge ---------------------------------------------------------------------------------------------------


def test_the_judge_counts_by_itself() -> None:
    nodes, work = node(two(A100)), (jobs("a", "3g.20gb", 2),)
    snapshot = Snapshot(nodes=(nodes,), jobs=work)
    plan = pl.solve(snapshot, objectives=ORDER)
    assert cards_used(plan) == 1
    plan.phases[-1] = replace(plan.phases[-1], value=2.0)
    assert [one.path for one in pl.check(snapshot, plan) if one.rule == "objective"] == ["phases[2].value"]


# --- at random ---------------------------------------------------------------------------------------------------

ORDERS = (ORDER, ("tasks", "value", "mig_cards"), ("value", "mig_cards"), ("tasks", "mig_cards", "nodes"))
LEAST = ("nodes", "mig_cards")


def sign(objective: str) -> int:
    return -1 if objective in LEAST else 1


def judge(phases: Sequence[Phase], best: Sequence[Value], proven: bool) -> bool:
    """Expect no phase beyond the optimum, no bound within it; return whether all values are the best ones."""
    kept = True
    for phase, (objective, _, value) in zip(phases, best, strict=True):
        if phase.bound is not None and (kept or not phase.conditional):
            assert sign(objective) * (phase.bound - float(value)) >= -1e-6, phase
        if kept:
            assert sign(objective) * (float(value) - phase.value) >= -1e-6, phase
        kept = kept and abs(phase.value - float(value)) <= 1e-9 * max(1.0, abs(phase.value))
    assert kept or not proven
    return kept


def agrees(seed: int, *, scarce: bool, mixed: bool) -> tuple[bool, bool] | None:
    """Return whether a plan is the best there is, and whether it is proven; None where that is too much to find out."""
    objectives = ORDERS[seed % len(ORDERS)]
    snapshot = verified(random_mig(seed, scarce=scarce, mixed=mixed))
    try:
        best = mig_brute.optimum(snapshot, objectives)
    except TooLarge:
        return None
    plan = pl.solve(snapshot, objectives=objectives)
    assert plan.checked
    assert not [note for note in plan.notes if "refused" in note or "contradicts" in note]
    return judge(plan.phases, best, plan.status == "proven"), plan.status == "proven"


@pytest.mark.parametrize("first", range(0, 100, 20))
def test_plans_are_best_and_proven_where_nothing_else_is_short(first: int) -> None:
    seeds = [seed for seed in range(first, first + 20) if "nodes" not in ORDERS[seed % len(ORDERS)]]
    found = Counter(agrees(seed, scarce=False, mixed=False) for seed in seeds)
    assert found[True, True] >= 8
    assert set(found) <= {(True, True), None}


@pytest.mark.parametrize("first", range(100, 180, 20))
@pytest.mark.parametrize("scarce", [False, True])
def test_bounds_hold_where_much_is_short(first: int, scarce: bool) -> None:
    found = Counter(agrees(seed, scarce=scarce, mixed=True) for seed in range(first, first + 20))
    assert found[True, True] >= 5


@pytest.mark.parametrize("seed", range(30))
def test_the_exact_method_from_any_start(seed: int) -> None:
    """It is never worse than what it starts from; and no rule is better than the best."""
    objectives = ORDERS[seed % len(ORDERS)]
    instance = compile_snapshot(verified(random_mig(seed, scarce=seed % 2 > 0, mixed=seed % 3 > 0)))
    for name in ("first-fit", "mig-best-fit", "worst-fit"):
        if HEURISTICS[name].supports(instance) is not None:
            continue
        start = HEURISTICS[name].solve(instance, objectives=objectives, limits=Limits()).assignment
        before = [score.rank for score in scores(instance, start, objectives)]
        found = run(instance, objectives=objectives, limits=Limits(), start=start)
        after = [score.rank for score in scores(instance, found.assignment, objectives)]
        assert after >= before, name
        if found.stop is Stop.OPTIMAL:
            bounds = {(one.objective, one.priority): one.value for one in found.bounds}
            reached = scores(instance, found.assignment, objectives)
            values = {(one.objective, one.priority): float(one.value) for one in reached}
            # of what is one number whatever happens there is nothing to prove
            assert bounds == {
                key: v for key, v in values.items() if key[0] != "mig_cards" or instance.slots is not None
            }


@pytest.mark.parametrize("gpu", [A100, A100_80, RTX])
def test_many_cards(gpu: Gpu) -> None:
    # gangs of seven 1g fill a card each, whatever the model calls them
    profile = {"A100-40GB": "1g.5gb", "A100-80GB": "1g.10gb"}.get(gpu.model, "1g.24gb")
    size = 4 if gpu is RTX else 7
    plan = plan_of(
        node(replace(gpu, count=8), count=20),
        *(gang(f"g{i}", (size, task(profile))) for i in range(30)),
        objectives=ORDER,
    )
    assert [(phase.value, phase.bound) for phase in plan.phases[1:]] == [(30 * size, 30 * size), (30, 30)]
