"""Dominant shares: by hand, where there is one model, against a division in small steps, and what is claimed back."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from preempt_cases import kinds, node, runs, sure, waits

import placement as pl
from placement.entitlement.dominant import by_dominant_share
from placement.entitlement.entitled import by_fair_share
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
    # 12 + 2 of B are taken then, and nobody gets more but of B: of the other 4 both get as much
    assert found == {"a": {"A": 3, "B": 14}, "b": {"A": 6, "B": 4}}


def test_what_nobody_is_given_sets_no_pace() -> None:
    # All 10 A are c's quota. However much of A a asks for, it gets as much of B as b, who asks for as much of it.
    queues = [Queue(name="a"), Queue(name="b"), Queue(name="c", quota={"A": 10})]
    for much in (0, 1, 100):
        found = shares({"A": 10, "B": 2}, queues, {"a": {"A": much, "B": 2}, "b": {"B": 2}, "c": {"A": 10}})
        assert found == {"a": {"A": 0, "B": 1}, "b": {"A": 0, "B": 1}, "c": {"A": 10, "B": 0}}


def test_who_asks_for_more_than_there_is_gets_what_others_do_without() -> None:
    # a asks for 1200 of 12 A and 3 of 12 B, b for 12 of each. A fills at 12 + 12 and has run out at 1/2: a has 3 / 200
    # of B then, and b 6. Of the other 1197 / 200 a gets the 597 / 200 that it still asks for as fast as b: all of it.
    queues = [Queue(name="a"), Queue(name="b")]
    found = shares({"A": 12, "B": 12}, queues, {"a": {"A": 1200, "B": 3}, "b": {"A": 12, "B": 12}})
    assert found == {"a": {"A": 6, "B": 3}, "b": {"A": 6, "B": 9}}


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
    assert found == {
        "p": {"A": 6, "B": 0},
        "q": {"A": 6, "B": 12},
        "x": {"A": 4, "B": 0},
        "y": {"A": 2, "B": 0},
        "z": {"A": 6, "B": 12},
    }


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


Row = tuple[dict[str, int], dict[str, int], dict[str, int], int]
"""What a queue has as its quota, asks for and may borrow, by model, and its weight."""

GRAIN = 2.0**-10
TREES = st.lists(
    st.tuples(
        st.sampled_from([-1, -1, 0, 1, 2]),
        st.fixed_dictionaries({}, optional=dict.fromkeys("ABC", st.integers(0, 6))),
        st.fixed_dictionaries(dict.fromkeys("ABC", st.sampled_from([0, 1, 2, 4, 6, 9]))),
        st.fixed_dictionaries({}, optional=dict.fromkeys("ABC", st.integers(0, 4))),
        st.sampled_from([0, 1, 1, 2, 3]),
    ),
    min_size=2,
    max_size=5,
)
"""Queues: the number of the queue above, if it is before this one and at the top, and a row."""


def by_steps(totals: dict[str, float], rows: list[Row]) -> list[dict[str, float]]:
    """Share out what is left over beyond quotas in grains of what each queue asks for."""
    mine: list[dict[str, float]] = [
        {model: min(quota.get(model, 0), ask.get(model, 0)) for model in totals} for quota, ask, _, _ in rows
    ]
    wants = [
        {model: min(ask.get(model, 0), quota.get(model, 0) + borrow.get(model, 10**6)) - one[model] for model in totals}
        for (quota, ask, borrow, _), one in zip(rows, mine, strict=True)
    ]
    left = {model: total - sum(one[model] for one in mine) for model, total in totals.items()}
    parts, moments = [0.0] * len(rows), [0.0] * len(rows)
    there: list[str] = []
    while True:
        if there != (now := [model for model in totals if left[model] > 1e-9]):
            there, moments = now, [0.0] * len(rows)
        able = [
            i for i, row in enumerate(rows) if row[3] and parts[i] < 1 and any(wants[i][model] > 0 for model in there)
        ]
        if not able:
            return mine
        # to whoever has been given least by now, by the largest part of what he is given over his weight
        one = min(able, key=moments.__getitem__)
        moments[one] += GRAIN * max(wants[one][model] / totals[model] for model in there) / rows[one][3]
        parts[one] += GRAIN
        for model in there:
            step = min(GRAIN * wants[one][model], left[model])
            mine[one][model] += step
            left[model] -= step


@settings(max_examples=60, deadline=None)
@given(st.fixed_dictionaries(dict.fromkeys("ABC", st.integers(1, 8))), TREES)
def test_it_is_what_sharing_out_in_small_steps_comes_to(
    cards: dict[str, int], drawn: list[tuple[int, dict[str, int], dict[str, int], dict[str, int], int]]
) -> None:
    tops = [i for i, (above, *_) in enumerate(drawn) if not 0 <= above < i or 0 <= drawn[above][0] < above]
    above = {i: one[0] for i, one in enumerate(drawn) if i not in tops}
    queues = [
        Queue(
            name=f"q{i}",
            parent=f"q{above[i]}" if i in above else "",
            quota={**quota},
            # at the top there is nobody to borrow from
            borrowing_limit={**borrow} if i in above else {},
            weight=float(weight),
        )
        for i, (_, quota, _, borrow, weight) in enumerate(drawn)
    ]
    leaves = [i for i in range(len(drawn)) if i not in above.values()]
    found = shares(cards, queues, {f"q{i}": drawn[i][2] for i in leaves})

    def row(number: int) -> Row:
        below = [i for i in above if above[i] == number]
        asked = {model: sum(drawn[i][2].get(model, 0) for i in below or [number]) for model in cards}
        return drawn[number][1], asked, drawn[number][3] if number in above else {}, drawn[number][4]

    for parent in (None, *tops):
        children = tops if parent is None else [i for i in above if above[i] == parent]
        has = cards if parent is None else found[f"q{parent}"]
        stepped = by_steps({model: float(amount) for model, amount in has.items()}, [row(i) for i in children])
        # each time that a model runs out, each queue may be off by a grain
        off = 3 * len(children) * GRAIN * max((amount for i in children for amount in row(i)[1].values()), default=0)
        for i, expected in zip(children, stepped, strict=True):
            asked = row(i)[1]
            for model, amount in found[f"q{i}"].items():
                assert abs(amount - expected[model]) <= off
                assert amount <= asked[model]


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
