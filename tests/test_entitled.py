"""Fair shares: by hand, against a division in small steps, and what a queue claims back with them."""

from __future__ import annotations

import random
from collections.abc import Iterable
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from preempt_cases import kinds, node, runs, sure, waits

import placement as pl
from placement.decisions.preempt import preempt
from placement.entitlement.entitled import by_fair_share
from placement.quota import Cards, Quotas
from placement.snapshot import MigInstance, Queue, Snapshot
from placement.units import Quantity


def shares(cards: int, queues: list[Queue], asked: dict[str, int]) -> dict[str, Fraction]:
    snapshot = Snapshot(nodes=(node("n", cards),), queues=tuple(queues))
    model = snapshot.nodes[0].gpus[0].model
    of = by_fair_share(snapshot, {name: [{model: Fraction(amount)}] for name, amount in asked.items()})
    limited = any(queue.borrowing_limit for queue in queues)
    assert limited or all(of(queue.name, model) == of(queue.name, "*") for queue in queues)
    return {queue.name: of(queue.name, "*") for queue in queues}


def test_what_is_left_over_goes_by_weight() -> None:
    # 12 cards, quotas 2 and 4, so 6 are left over: 2 : 1 by weight is 4 and 2
    queues = [Queue(name="a", quota={"*": 2}, weight=2.0), Queue(name="b", quota={"*": 4})]
    assert shares(12, queues, {"a": 100, "b": 100}) == {"a": 6, "b": 6}


def test_what_one_does_not_ask_for_goes_to_the_others() -> None:
    # a asks for 3 of its 2 + 4: b gets the other 3 beside its 4, and c, that asks for nothing, nothing of its 2
    queues = [
        Queue(name="a", quota={"*": 2}, weight=2.0),
        Queue(name="b", quota={"*": 4}),
        Queue(name="c", quota={"*": 2}),
    ]
    assert shares(12, queues, {"a": 3, "b": 100}) == {"a": 3, "b": 9, "c": 0}


def test_a_limit_on_borrowing_and_no_weight() -> None:
    queues = [
        Queue(name="a", quota={"*": 2}, borrowing_limit={"*": 1}),
        Queue(name="b", quota={"*": 2}, weight=0.0),
        Queue(name="c"),
    ]
    # 6 are left over: a may take 1, b takes none, c all of the rest
    assert shares(10, queues, {"a": 9, "b": 9, "c": 9}) == {"a": 3, "b": 2, "c": 5}


def test_quotas_beyond_what_there_is_are_kept() -> None:
    assert shares(4, [Queue(name="a", quota={"*": 3}), Queue(name="b", quota={"*": 3})], {"a": 9, "b": 9}) == {
        "a": 3,
        "b": 3,
    }


def test_children_share_what_their_parent_has() -> None:
    # of 12 the parents have 8 and 4 (weights 2 : 1); x and y share the 8 evenly
    queues = [
        Queue(name="p", weight=2.0),
        Queue(name="q"),
        Queue(name="x", parent="p"),
        Queue(name="y", parent="p"),
        Queue(name="z", parent="q"),
    ]
    found = shares(12, queues, {"x": 9, "y": 9, "z": 9})
    assert found == {"p": 8, "q": 4, "x": 4, "y": 4, "z": 4}


DRAWN = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 8), st.integers(1, 3)), min_size=1, max_size=4)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), DRAWN)
def test_it_is_what_sharing_out_in_small_steps_comes_to(cards: int, drawn: list[tuple[int, int, int]]) -> None:
    queues = [
        Queue(name=f"q{i}", quota={"*": quota}, weight=float(weight)) for i, (quota, _, weight) in enumerate(drawn)
    ]
    found = shares(cards, queues, {f"q{i}": asked for i, (_, asked, _) in enumerate(drawn)})
    # a grain at a time to whoever has least of what is left over for his weight
    grain = Fraction(1, 6)
    mine = [Fraction(min(quota, asked)) for quota, asked, _ in drawn]
    given_ = [Fraction(0)] * len(drawn)
    left = cards - sum(mine)
    while left > 0:
        wanting = [i for i, (_, asked, _) in enumerate(drawn) if mine[i] < asked]
        if not wanting:
            break
        one = min(wanting, key=lambda i: (given_[i] / drawn[i][2], i))
        step = min(grain, left, drawn[one][1] - mine[one])
        mine[one], given_[one], left = mine[one] + step, given_[one] + step, left - step
    assert all(abs(found[f"q{i}"] - mine[i]) <= len(drawn) * grain for i in range(len(drawn)))
    assert sum(found.values()) == sum(mine)


def test_a_queue_claims_back_its_part_of_what_is_left_over() -> None:
    # 4 cards, no quotas: b has all of them, and a, of the same weight, may claim 2 back, one job at a time
    running = tuple(runs(f"r{i}", ("a", (i,)), queue="b", priority=1) for i in range(4))
    queues = (Queue(name="top", quota={"*": 4}), Queue(name="a", parent="top"), Queue(name="b", parent="top"))
    new = tuple(waits(f"new{i}", queue="a") for i in range(3))
    snapshot = Snapshot(nodes=(node("a"),), queues=queues, jobs=(*running, *new))
    assert sure(snapshot).started == ()
    found = sure(snapshot, reclaim="fair_share")
    assert found.started == ("new0", "new1")
    assert sorted(kinds(found).values()) == ["stop", "stop"]


def test_nobody_is_stopped_who_has_no_more_than_his_share() -> None:
    # weights 3 : 1: of 4 cards b may keep 3
    running = tuple(runs(f"r{i}", ("a", (i,)), queue="b", priority=1) for i in range(4))
    queues = (
        Queue(name="top", quota={"*": 4}),
        Queue(name="a", parent="top"),
        Queue(name="b", parent="top", weight=3.0),
    )
    new = tuple(waits(f"new{i}", queue="a") for i in range(3))
    found = sure(Snapshot(nodes=(node("a"),), queues=queues, jobs=(*running, *new)), reclaim="fair_share")
    assert found.started == ("new0",)


def test_what_it_may_be() -> None:
    with pytest.raises(pl.UsageError, match="give one of quota, fair_share"):
        preempt(Snapshot(), reclaim="all")  # type: ignore[arg-type]


def test_of_a_card_cut_for_good_only_its_instances_count() -> None:
    # two 1g of seven slices: a has one and no quota, b asks for both, with a quota of 2: the 2/7 that are there are b's
    card = pl.Gpu(
        model="A100-40",
        mig_enabled=True,
        mig_static=True,
        mig_layout=(MigInstance(profile="1g.5gb", start=0), MigInstance(profile="1g.5gb", start=1)),
    )
    snapshot = Snapshot(
        nodes=(pl.Node(name="n", gpus=(card,)),), queues=(Queue(name="a"), Queue(name="b", quota={"*": 2}))
    )
    of = by_fair_share(snapshot, {"a": [{"A100-40": Fraction(1, 7)}], "b": [{"A100-40": Fraction(2, 7)}]})
    assert [of("a", "*"), of("b", "*")] == [Fraction(0), Fraction(2, 7)]


def test_a_queue_that_keeps_something_back_has_a_limit_too() -> None:
    # a has 1 of its own, lends none of it and borrows none: with r on one card nothing of a starts, though two are free
    queues = (
        Queue(name="top", quota={"*": 4}),
        Queue(name="a", parent="top", quota={"*": 1}, borrowing_limit={"*": 0}, lending_limit={"*": 0}),
    )
    running = runs("r", ("a", (0,)), queue="a", priority=1)
    snapshot = Snapshot(nodes=(node("a", 3),), queues=queues, jobs=(running, waits("new", queue="a")))
    found = sure(snapshot)
    assert (found.started, found.waiting[0].reason) == ((), "quota")


def test_what_queues_above_may_use_is_kept_though_one_below_keeps_something_back() -> None:
    # top may use 1 + 2 = 3 cards. b keeps 1 of its 2 back, so top counts 3 - 1 of b's cards and 1 of c's, which are
    # all 3 that there are. Two of b's jobs are of lower priority: with one of them gone, new takes its place.
    queues = (
        Queue(name="top", quota={"*": 2}),
        Queue(name="b", parent="top", quota={"*": 2}, lending_limit={"*": 1}),
        Queue(name="c", parent="top"),
    )
    running = (
        runs("b0", ("a", (0,)), queue="b", priority=0, restart_seconds=1),
        runs("b1", ("a", (1,)), queue="b", priority=0, restart_seconds=2),
        runs("b2", ("a", (2,)), queue="b", priority=2),
        runs("c0", ("a", (3,)), queue="c", priority=2),
    )
    nodes = (node("a", 6),)
    one = Snapshot(nodes=nodes, queues=queues, jobs=(*running, waits("new", queue="b")))
    assert kinds(sure(one)) == {"b0": "stop"}
    # two tasks need both
    two = Snapshot(nodes=nodes, queues=queues, jobs=(*running, waits("new", count=2, queue="b")))
    assert kinds(sure(two)) == {"b0": "stop", "b1": "stop"}
    # of c, new counts at top in full, and so does what leaves b
    other = Snapshot(nodes=nodes, queues=queues, jobs=(*running, waits("new", queue="c")))
    assert kinds(sure(other)) == {"b0": "stop"}


def test_where_only_all_models_count_a_job_of_any_model_is_counted() -> None:
    # of the 1 card that top has all is a's; b is on two, and a may claim it back, whichever model it will be of
    queues = (
        Queue(name="top"),
        Queue(name="a", parent="top", quota={"*": 1}),
        Queue(name="b", parent="top", quota={"*": 0}),
    )
    nodes = (node("a", 1), pl.Node(name="z", gpus=(pl.Gpu(model="B", count=2),)))
    running = (runs("b0", ("a", (0,)), queue="b", priority=1), runs("b1", ("z", (0,)), queue="b", priority=1, weight=2))
    full = Snapshot(nodes=nodes, queues=queues, jobs=(*running, waits("new", queue="a")))
    # top is over by 1 and would be by 2, so both have to go though a card is free
    assert kinds(sure(full)) == {"b0": "stop", "b1": "stop"}
    # and b, with nothing that it could claim, starts nothing on the card that is free
    assert sure(Snapshot(nodes=nodes, queues=queues, jobs=(*running, waits("new", queue="b")))).started == ()


@pytest.mark.parametrize("seed", range(12))
def test_no_limit_is_exceeded_by_what_starts(seed: int) -> None:
    # queues that keep something back beside some that do not, and may borrow up to a limit: what is beyond a limit in
    # the end was so before, by as much or more
    draw = random.Random(f"limits {seed}")

    def queue(name: str, parent: str) -> Queue:
        quota = draw.choice((1, 1, 2))
        limit: dict[str, Quantity] = {"*": draw.choice((0, 1))} if draw.random() < 0.5 else {}
        kept: dict[str, Quantity] = {"*": draw.choice((0, 1))} if draw.random() < 0.6 else {}
        return Queue(name=name, parent=parent, quota={"*": quota}, borrowing_limit=limit, lending_limit=kept)

    queues = (Queue(name="top"), queue("mid", "top"), queue("a", "mid"), queue("b", "mid"), queue("c", "top"))
    on = [draw.choice("abc") for _ in range(4)]
    running = tuple(runs(f"r{i}", ("a", (i,)), queue=name, priority=draw.choice((0, 1))) for i, name in enumerate(on))
    new = tuple(waits(f"new{i}", queue=draw.choice("abc"), count=draw.choice((1, 2))) for i in range(3))
    snapshot = Snapshot(nodes=(node("a", 6),), queues=queues, jobs=(*running, *new))
    found = sure(snapshot, reclaim=draw.choice(("quota", "fair_share")))
    gone = {one.job for one in found.evictions}
    queue_of = {job.name: job.queue for job in snapshot.jobs}

    def over(names: Iterable[str]) -> dict[str, Cards]:
        quotas = Quotas(queues)
        for name in names:
            quotas.change(queue_of[name], {"A": 1})
        return {short.queue: short.amount for short in quotas.over()}

    before = over(job.name for job in running)
    then = over([*(job.name for job in running if job.name not in gone), *found.plan.tasks.job])
    assert all(amount <= before.get(name, 0) for name, amount in then.items())
