"""Quotas of queues in plans without shares: worked by hand, the best of all plans, bounds, and what is refused."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import msgspec
import pytest
from hypothesis import given, settings
from mig_tiny import random_mig
from share_cases import Shares, best, cards, details, gang, in_queues, shared
from strategies import random_tied_tiny, random_tiny
from tenant_cases import random_apart
from zoned_strategies import random_zoned

import placement as pl
from placement.engine import SOLVERS
from placement.entitlement.rows import queue_rows
from placement.errors import SnapshotError, UnhonouredError, UsageError
from placement.plan import Plan
from placement.snapshot import Gpu, Job, Node, Policy, Queue, Running, RunningTask, Snapshot, Task, TaskGroup

LENDS = (
    Queue(name="top"),
    Queue(name="a", parent="top", quota={"A": 4}, borrowing_limit={"A": 1}),
    Queue(name="b", parent="top", quota={"A": 4}, lending_limit={"A": 3}),
)
"""Of b's 4 cards 1 is never lent: of all 8 a may use min(4 + 1, 4 + 3) = 5, and b all 4 and the 4 of a."""


def started(plan: Plan) -> list[int]:
    """Return how many jobs of a and of b start."""
    return [sum(name.startswith(queue) for name in set(plan.tasks.job)) for queue in "ab"]


# --- worked by hand ----------------------------------------------------------------------------------------------


def lending(a: int, b: int, queues: tuple[Queue, ...] = LENDS, **fields: int) -> Snapshot:
    """Single tasks in queues of 8 cards, on 10."""
    jobs = [gang(name, name, 1, count=count, value=9) for name, count in (("a", a), ("b", b)) if count]
    return Snapshot(nodes=(cards("x", "A", 10),), jobs=tuple(jobs), queues=queues)


def test_a_queue_borrows_as_much_as_its_limit() -> None:
    """The queue a has 4 and borrows 1: 5 of 9 start. Two cards of ten are nobody's, and b wants none."""
    plan = pl.solve(lending(9, 0))
    assert started(plan) == [5, 0]
    assert (plan.status, plan.phases[0].value, plan.phases[0].bound) == ("proven", 45, 45)
    assert details(plan)["a-5"].endswith("it asks for 1 card of A too many for the quota of queue a")


def test_a_queue_keeps_what_it_does_not_lend() -> None:
    """Without a borrowing limit a has 4 and the 3 that b lends, 7; the eighth is b's alone."""
    queues = (LENDS[0], msgspec.structs.replace(LENDS[1], borrowing_limit={}), LENDS[2])
    plan = pl.solve(lending(9, 0, queues))
    assert started(plan) == [7, 0]
    assert details(plan)["a-7"].endswith("it asks for 1 card of A too many for the quota of queue top")
    # with one task of b that uses what b keeps, a's usage is the same, and 8 of 8 are used
    plan = pl.solve(lending(9, 1, queues))
    assert started(plan) == [7, 1]
    assert plan.phases[0].bound == 72


def test_a_gang_says_by_how_much_its_queue_is_short() -> None:
    """A gang of 8 in a queue that may use 5 is 3 too many, though 10 cards are free."""
    snapshot = msgspec.structs.replace(lending(1, 0), jobs=(gang("a", "a", 8),))
    (waits,) = pl.solve(snapshot).pending
    assert (waits.reason, waits.detail) == (
        "no_room",
        "beside the other work of this plan it asks for 3 cards of A too many for the quota of queue a",
    )


def test_what_runs_above_a_quota_stays_and_nothing_is_added() -> None:
    """The queue a runs 6 of the 5 it may use. Its tree has 8, of which b has 2 more, and the one that it keeps: 3."""
    places = tuple(RunningTask(group="g", index=i, node="x", gpus=(i,)) for i in range(6))
    runs = gang("run", "a", 6, running=Running(tasks=places))
    snapshot = lending(1, 4)
    plan = pl.solve(msgspec.structs.replace(snapshot, jobs=(runs, *snapshot.jobs)))
    # above, 6 of a and max(0, u - 1) of b are at most 7: u is 2
    assert started(plan) == [0, 2]


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_method_keeps_to_quotas(solver: str) -> None:
    try:
        plan = pl.solve(lending(9, 9), solver=solver)
    except UsageError:
        return  # the method does not take limits
    assert plan.checked
    assert plan.notes == []
    assert sum(started(plan)) == 8
    assert started(plan)[0] <= 5
    assert plan.phases[0].bound is None or plan.phases[0].bound >= 72


def test_quotas_of_all_models_hold_on_nodes_of_several() -> None:
    """Of two A and two B on one node a queue may use 3 in all: one of four tasks waits."""
    node = Node(name="n", gpus=(Gpu(model="A", count=2), Gpu(model="B", count=2)))
    jobs = (gang("a", "a", 1, count=2, models=("A",)), gang("b", "a", 1, count=2, models=("B",), value=1))
    snapshot = Snapshot(nodes=(node,), jobs=jobs, queues=(Queue(name="a", quota={"*": 3}),))
    plan = pl.solve(snapshot)
    assert (plan.checked, sum(started(plan))) == (True, 3)
    assert "1 card of all models too many for the quota of queue a" in plan.pending[0].detail


# --- the best of all, and bounds ---------------------------------------------------------------------------------


@settings(max_examples=60)
@given(shared(kinds=("quota",)))
def test_the_exact_method_finds_the_best_that_keeps_to_quotas(snapshot: Snapshot) -> None:
    most = best(snapshot)
    for solver in ("exact", "best-fit"):
        plan = pl.solve(snapshot, solver=solver)
        assert plan.checked
        assert not any("refused" in note for note in plan.notes)
        assert plan.phases[0].value == most if solver == "exact" else plan.phases[0].value <= most
        assert plan.phases[0].bound is None or plan.phases[0].bound >= most
        assert pl.check(snapshot, plan) == []


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    "kind", [random_tiny, random_tied_tiny, random_zoned, random_apart, partial(random_mig, scarce=False, mixed=False)]
)
def test_quotas_hold_beside_all_else(kind: Callable[[int], Snapshot], seed: int) -> None:
    """Where nodes, zones, domains, tenants or instances decide too, no method's answer is refused by the judge."""
    source = random.Random(seed)
    snapshot = in_queues(kind(seed), source)
    queues = tuple(
        msgspec.structs.replace(
            one,
            parent="top",
            quota={"*": source.randint(0, 3)},
            lending_limit={"*": 0} if source.random() < 0.3 else {},
        )
        for one in snapshot.queues
    )
    policy = msgspec.structs.replace(snapshot.policy, shares="quota")
    snapshot = msgspec.structs.replace(snapshot, queues=(Queue(name="top"), *queues), policy=policy)
    for solver in ("exact", "fgd"):
        plan = pl.solve(snapshot, solver=solver)
        assert plan.checked
        assert not any("refused" in note for note in plan.notes)


# --- why jobs wait ------------------------------------------------------------------------------------------------


def test_a_job_that_runs_with_fewer_tasks_says_that_its_quota_is_why() -> None:
    """The queue a has 4 and borrows 1: 5 of 6 tasks run on 10 cards, and one more is 1 card too many."""
    group = TaskGroup(name="g", count=6, min_count=1, task=Task(gpus=1))
    snapshot = msgspec.structs.replace(lending(1, 0), jobs=(Job(name="j", queue="a", groups=(group,)),))
    (waits,) = pl.solve(snapshot).pending
    assert (waits.placed, waits.reason, waits.detail) == (
        5,
        "no_room",
        "runs with fewer tasks than it wants: beside the other work of this plan one more asks for "
        "1 card of A too many for the quota of queue a",
    )


def test_a_job_that_lacks_cards_does_not_blame_its_quota() -> None:
    """On 4 cards 4 of 6 tasks run; the fifth would be within the quota."""
    group = TaskGroup(name="g", count=6, min_count=1, task=Task(gpus=1))
    jobs = (Job(name="j", queue="a", groups=(group,)),)
    snapshot = msgspec.structs.replace(lending(1, 0), jobs=jobs, nodes=(cards("x", "A", 4),))
    (waits,) = pl.solve(snapshot).pending
    assert waits.placed == 4
    assert waits.detail.endswith("there is no room for more beside the other work of this plan")


def test_a_group_that_has_all_its_tasks_does_not_count_as_one_that_lacks_some() -> None:
    """Of 6 workers 4 run beside a leader of 1 card in a queue of 5; the leader's group is whole, and takes no cards."""
    groups = (
        TaskGroup(name="lead", task=Task(cpu=1)),
        TaskGroup(name="work", count=6, min_count=1, task=Task(gpus=1)),
    )
    snapshot = msgspec.structs.replace(lending(1, 0), jobs=(Job(name="j", queue="a", groups=groups),))
    (waits,) = pl.solve(snapshot).pending
    assert (waits.placed, waits.wanted) == (6, 7)
    assert waits.detail.endswith("one more asks for 1 card of A too many for the quota of queue a")


def test_limits_of_two_queues_on_two_models_are_both_named() -> None:
    """A job of 3 may be on A, of which its queue has 1, and on B, of which the one above it has 1: 1 too many."""
    queues = (
        Queue(name="top", quota={"B": 1}),
        Queue(name="a", parent="top", quota={"A": 1}, borrowing_limit={"A": 0}),
    )
    nodes = (cards("x", "A", 4), cards("y", "B", 4))
    plan = pl.solve(Snapshot(nodes=nodes, jobs=(gang("j", "a", 3),), queues=queues))
    assert plan.pending[0].detail == (
        "beside the other work of this plan it asks for 1 card of A, B too many for "
        "the quota of queue top and the quota of queue a"
    )


# --- the judge, and who refuses ----------------------------------------------------------------------------------


@pytest.mark.parametrize("left", ["queues", "schedule"])
def test_queues_can_be_left_out(left: str) -> None:
    snapshot = lending(9, 0)
    free = pl.solve(snapshot, without=(left,))
    assert started(free) == [9, 0]
    assert pl.check(snapshot, free) == []
    assert [str(one) for one in pl.check(snapshot, free, without=())] == [
        "queue_shares: tasks: queue a uses 9 cards of A, at most 5 by its quota",
        "queue_shares: tasks: queue top uses 9 cards of A, at most 7 by its quota",
    ]


def test_shares_left_out_alone_leave_quotas() -> None:
    snapshot = msgspec.structs.replace(lending(9, 0), policy=Policy(shares="fair_share"))
    assert started(pl.solve(snapshot, without=("policy.shares",))) == [5, 0]


def test_queues_that_state_nothing_limit_nothing() -> None:
    assert started(pl.solve(lending(9, 0, queues=()))) == [9, 0]
    assert started(pl.solve(lending(9, 0, queues=(Queue(name="a"),)))) == [9, 0]


def test_quotas_of_models_on_nodes_of_several_are_refused() -> None:
    node = Node(name="mixed", gpus=(Gpu(model="A", count=1), Gpu(model="B", count=1)))
    queues = (Queue(name="a", quota={"*": 1, "B": 1}),)
    snapshot = Snapshot(nodes=(node,), jobs=(gang("j", "a", 1),), queues=queues)
    with pytest.raises(UnhonouredError, match=r"nodes\[0\].gpus: quotas by model .*; do without queues by --without"):
        pl.solve(snapshot)
    assert pl.solve(snapshot, without=("queues",)).checked


def lenders(count: int, wanting: int, jobs: int = 9) -> Snapshot:
    """So many queues with a quota of 3 of which 1 is lent; single tasks wait in the first ones."""
    below = tuple(Queue(name=f"q{i}", parent="top", quota={"A": 3}, lending_limit={"A": 1}) for i in range(count))
    waiting = tuple(gang(f"j{i}", f"q{i}", 1, count=jobs) for i in range(wanting))
    return Snapshot(nodes=(cards("x", "A", 64),), jobs=waiting, queues=(Queue(name="top"), *below))


def test_too_many_sets_of_lenders_are_refused() -> None:
    """Twelve queues that keep 2 of the 9 that each wants are 2¹² sets, and of two queues 2 (9 - 2) is more than 12."""
    snapshot = lenders(12, 12)
    with pytest.raises(UnhonouredError, match=r"queues: lending limits of so many queues below top .*--without queues"):
        pl.solve(snapshot)
    assert len(pl.solve(snapshot, without=("queues",)).tasks) == 64


def test_lenders_that_ask_for_no_more_than_they_keep_make_no_sets() -> None:
    """Of 40 queues that lend 1 card each, 40 together, two ask for 30 cards each: 2 + 2 of their own and all 40."""
    plan = pl.solve(lenders(40, 2, 30))
    assert (plan.status, len(plan.tasks)) == ("proven", 44)


def test_sets_of_lenders_that_lend_nothing_are_single_queues() -> None:
    """Where nothing is lent each of 30 queues has its 3 cards, and that says all of any more of them: 64 of 90."""
    snapshot = lenders(30, 30, 4)
    queues = (
        snapshot.queues[0],
        *(msgspec.structs.replace(one, lending_limit={"A": 0}) for one in snapshot.queues[1:]),
    )
    rows = queue_rows(msgspec.structs.replace(snapshot, queues=queues))
    assert sorted((row.owner, row.room, len(row.queues)) for row in rows) == [("top", Fraction(3), 1)] * 30


def test_a_queue_may_have_any_number_below_it() -> None:
    """Of 2,000 queues with 1 card each, of which none borrows, each could take 2: the 4 cards there are go to four."""
    below = tuple(Queue(name=f"q{i}", parent="top", quota={"A": 1}, borrowing_limit={"A": 0}) for i in range(2000))
    jobs = tuple(gang(f"j{i}", one.name, 1, count=2) for i, one in enumerate(below[:8]))
    plan = pl.solve(Snapshot(nodes=(cards("x", "A", 4),), jobs=jobs, queues=(Queue(name="top"), *below)))
    assert (plan.status, len({name[:2] for name in plan.tasks.job}), len(plan.tasks)) == ("proven", 4, 4)


@pytest.mark.parametrize("shares", ["quota", "fair_share", "dominant_share"])
def test_trees_of_queues_are_sixteen_deep_at_most(shares: Shares) -> None:
    """A tree of 16 queues with a quota of 3 at its top has 3 of 4 tasks start; one of 17 is refused where it is."""

    def chain(depth: int) -> Snapshot:
        queues = [Queue(name="q0", quota={"A": 3})]
        queues += [Queue(name=f"q{i}", parent=f"q{i - 1}") for i in range(1, depth)]
        jobs = (gang("j", f"q{depth - 1}", 1, count=4),)
        policy = Policy(shares=shares)
        return Snapshot(nodes=(cards("x", "A", 4),), jobs=jobs, queues=tuple(queues), policy=policy)

    assert len(pl.solve(chain(16)).tasks) == 3
    for depth in (17, 2000):
        with pytest.raises(SnapshotError, match=r"^queues\[16\].parent: queues are more than 16 deep"):
            pl.solve(chain(depth))


def test_other_decisions_refuse_quotas_as_before() -> None:
    snapshot = lending(9, 0)
    with pytest.raises(UnhonouredError, match="no rule honours queues yet"):
        pl.consolidate(snapshot)
