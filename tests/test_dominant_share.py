"""Dominant shares: by hand, where there is one model, against a division in small steps, and what is claimed back."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from preempt_cases import kinds, node, runs, sure, waits

import placement as pl
from placement.decisions.dominant import by_dominant_share
from placement.decisions.entitled import by_fair_share
from placement.snapshot import Queue, Snapshot

Asked = dict[str, dict[str, int]]


def cluster(cards: dict[str, int], queues: list[Queue]) -> Snapshot:
    nodes = tuple(pl.Node(name=f"n{model}", gpus=(pl.Gpu(model=model, count=count),)) for model, count in cards.items())
    return Snapshot(nodes=nodes, queues=tuple(queues))


def shares(cards: dict[str, int], queues: list[Queue], asked: Asked) -> dict[str, dict[str, Fraction]]:
    wanted = {name: [{model: Fraction(amount) for model, amount in one.items()}] for name, one in asked.items()}
    of = by_dominant_share(cluster(cards, queues), wanted)
    return {queue.name: {model: of(queue.name, model) for model in cards} for queue in queues}


def test_who_asks_for_most_of_one_model_gets_most_of_it() -> None:
    # Both ask for all of one model. A fills at 12 + 3 cards for each unit of dominant share: both run out at 0.8.
    queues = [Queue(name="a"), Queue(name="b")]
    found = shares({"A": 12, "B": 12}, queues, {"a": {"A": 12, "B": 3}, "b": {"A": 3, "B": 12}})
    few, most = Fraction(12, 5), Fraction(48, 5)
    assert found == {"a": {"A": most, "B": few}, "b": {"A": few, "B": most}}


def test_the_example_of_the_paper() -> None:
    """The first example of Ghodsi et al. (NSDI 2011), with card models for its processors and memory.

    There are 9 of A and 18 of B. A task of a takes 1 and 4, one of b 3 and 1, and both have 18 tasks. Three tasks of a
    and two of b have two thirds of their largest parts each, 12 / 18 and 6 / 9, and take all of A: 3 + 6.
    """
    queues = [Queue(name="a"), Queue(name="b")]
    found = shares({"A": 9, "B": 18}, queues, {"a": {"A": 18, "B": 72}, "b": {"A": 54, "B": 18}})
    # 12 + 2 of B are taken then. The other 4 go at the same pace, of three tasks of a and two of b:
    # 12 parts to a and 2 to b
    assert {name: one["A"] for name, one in found.items()} == {"a": 3, "b": 6}
    assert found["a"]["B"] == 12 + Fraction(4 * 12, 14)
    assert found["b"]["B"] == 2 + Fraction(4 * 2, 14)


def test_weights_and_what_has_run_out() -> None:
    # a's largest part is 8 of 8 A, b's 8 of 8 A and 4 of 4 B; b's weight is 2. A fills at 8 + 16: it runs out at 1/3.
    # b then has 2/3 of its 4 B, and goes on alone until it has all of them.
    queues = [Queue(name="a"), Queue(name="b", weight=2.0), Queue(name="none", weight=0.0)]
    asked = {"a": {"A": 8}, "b": {"A": 8, "B": 4}, "none": {"A": 8}}
    assert shares({"A": 8, "B": 4}, queues, asked) == {
        "a": {"A": Fraction(8, 3), "B": 0},
        "b": {"A": Fraction(16, 3), "B": 4},
        "none": {"A": 0, "B": 0},
    }


def test_quotas_first_and_limits_on_borrowing() -> None:
    # Of 10 A, a has its quota of 2, and may borrow 1; b has none and gets the other 7 of 9. B is b's, who asks for 3.
    queues = [Queue(name="a", quota={"A": 2}, borrowing_limit={"A": 1}), Queue(name="b")]
    found = shares({"A": 10, "B": 5}, queues, {"a": {"A": 9}, "b": {"A": 9, "B": 3}})
    assert found == {"a": {"A": 3, "B": 0}, "b": {"A": 7, "B": 3}}


def test_children_share_what_their_parent_has() -> None:
    # p and q ask for 12 A each, q for 12 B too: 6 A each, and all of B is q's. x and y share p's 6 by weight, 2 : 1.
    queues = [
        Queue(name="p"),
        Queue(name="q"),
        Queue(name="x", parent="p", weight=2.0),
        Queue(name="y", parent="p"),
        Queue(name="z", parent="q"),
    ]
    asked = {"x": {"A": 6}, "y": {"A": 6}, "z": {"A": 12, "B": 12}}
    found = shares({"A": 12, "B": 12}, queues, asked)
    expected = {"p": (6, 0), "q": (6, 12), "x": (4, 0), "y": (2, 0), "z": (6, 12)}
    for name, (a, b) in expected.items():
        assert found[name] == {"A": a, "B": b}


QUEUES = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 8), st.integers(0, 8), st.integers(0, 3)), min_size=1, max_size=4
)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), QUEUES)
def test_of_one_model_it_is_the_fair_share(cards: int, drawn: list[tuple[int, int, int, int]]) -> None:
    queues = [Queue(name=f"q{i}", quota={"A": quota}, weight=float(w)) for i, (quota, _, _, w) in enumerate(drawn)]
    asked = {f"q{i}": [{"A": Fraction(most)}] for i, (_, most, _, _) in enumerate(drawn)}
    snapshot = cluster({"A": cards}, queues)
    dominant, fair = by_dominant_share(snapshot, asked), by_fair_share(snapshot, asked)
    for queue in queues:
        for model in ("A", "*", "B"):
            assert dominant(queue.name, model) == fair(queue.name, model)


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 8), st.integers(1, 8), QUEUES)
def test_it_is_what_sharing_out_in_small_steps_comes_to(a: int, b: int, drawn: list[tuple[int, int, int, int]]) -> None:
    cards = {"A": a, "B": b}
    queues = [Queue(name=f"q{i}", quota={"A": quota}, weight=float(w)) for i, (quota, _, _, w) in enumerate(drawn)]
    asked = {f"q{i}": {"A": x, "B": y} for i, (_, x, y, _) in enumerate(drawn)}
    found = shares(cards, queues, asked)
    mine = [{"A": Fraction(min(quota, x)), "B": Fraction(0)} for quota, x, _, _ in drawn]
    wants = [{"A": max(0, x - quota), "B": y} for quota, x, y, _ in drawn]
    left = {model: Fraction(count) - sum(one[model] for one in mine) for model, count in cards.items()}
    dominant = [max(Fraction(want[model], cards[model]) for model in cards) for want in wants]
    parts = [Fraction(0)] * len(drawn)
    grain = Fraction(1, 256)
    while True:
        # a grain of what he asks for, to whoever has least by his largest part over his weight
        open_ = [
            i
            for i, (_, _, _, weight) in enumerate(drawn)
            if weight and parts[i] < 1 and any(wants[i][model] and left[model] > 0 for model in cards)
        ]
        if not open_:
            break
        one = min(open_, key=lambda i: (parts[i] * dominant[i] / drawn[i][3], i))
        parts[one] += grain
        for model in cards:
            step = max(Fraction(0), min(grain * wants[one][model], left[model]))
            mine[one][model] += step
            left[model] -= step
    for i, one_ in enumerate(mine):
        for model in cards:
            assert abs(found[f"q{i}"][model] - one_[model]) <= len(drawn) * 8 * grain
    assert all(
        sum(one[model] for one in found.values()) <= max(cards[model], sum(q for q, *_ in drawn)) for model in cards
    )


def test_a_queue_claims_back_by_what_others_get_most_of() -> None:
    """8 A and 8 B. a asks for 8 A, b for 4 A and 8 B, which is all of B: A fills at 8 + 4 and has run out at 2/3.

    So a may have 16/3 of A and b 8/3, and a, who has 4, may claim a fifth. By fair shares of A alone both have 4.
    """
    queues = (
        Queue(name="top", quota={"A": 8, "B": 8}),
        Queue(name="a", parent="top"),
        Queue(name="b", parent="top"),
    )
    running = (
        runs("a0", ("a", (0, 1, 2, 3)), queue="a", priority=1),
        *(runs(f"b{i}", ("a", (4 + i,)), queue="b", priority=1) for i in range(4)),
        runs("bb", ("z", tuple(range(8))), queue="b", priority=1),
    )
    nodes = (node("a", 8), pl.Node(name="z", gpus=(pl.Gpu(model="B", count=8),)))
    new = tuple(waits(f"new{i}", queue="a", gpu_models=("A",)) for i in range(4))
    snapshot = Snapshot(nodes=nodes, queues=queues, jobs=(*running, *new))
    assert sure(snapshot, reclaim="fair_share").started == ()
    found = sure(snapshot, reclaim="dominant_share")
    assert found.started == ("new0",)
    assert len(found.evictions) == 1
    assert set(kinds(found)) <= {"b0", "b1", "b2", "b3"}


def test_what_it_may_be() -> None:
    with pytest.raises(pl.UsageError, match="give one of quota, fair_share, dominant_share"):
        pl.preempt(Snapshot(), reclaim="most")  # type: ignore[arg-type]
