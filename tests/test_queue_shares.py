"""Shares of queues in plans: worked by hand, the two ways to divide, the best of all plans, and who refuses them."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mig_tiny import random_mig
from quota_cases import MODELS, leaves, trees
from share_cases import SHARES, Shares, best, cards, details, gang, in_queues, shared
from strategies import random_tied_tiny, random_tiny
from tenant_cases import random_apart
from zoned_strategies import random_zoned

import placement as pl
from placement.check.queues.division import ALL, Division
from placement.decisions.preempt import preempt
from placement.engine import SOLVERS
from placement.entitlement import rows
from placement.entitlement.asked import Asked, asked, share_of
from placement.entitlement.rows import queue_rows
from placement.errors import UnhonouredError, UsageError
from placement.plan import Plan
from placement.quota import Quotas
from placement.session import Session
from placement.snapshot import (
    Gpu,
    Job,
    MigInstance,
    Node,
    Policy,
    Queue,
    Running,
    RunningTask,
    Snapshot,
    Task,
    TaskGroup,
)

TWO = (Queue(name="a"), Queue(name="b"))


def started(plan: Plan) -> list[str]:
    return sorted(set(plan.tasks.job))


# --- worked by hand ----------------------------------------------------------------------------------------------


def both(name: str, queue: str, c: int, m: int, value: int) -> Job:
    """Nine jobs, each of so many tasks on cards of C and on cards of M, all or nothing."""
    groups = tuple(
        TaskGroup(name=model.lower(), count=count, task=Task(gpus=1, gpu_models=(model,)))
        for model, count in (("C", c), ("M", m))
    )
    return Job(name=name, queue=queue, count=9, value=value, groups=groups)


def example(shares: Shares) -> Snapshot:
    """The example of DRF's paper, with 9 cards of C for its 9 CPUs and 18 of M for its 18 GB.

    A job of a takes 1 C and 4 M, one of b 3 C and 1 M, and is worth four times as much.
    """
    return Snapshot(
        nodes=(cards("c", "C", 9), cards("m", "M", 18)),
        jobs=(both("a", "a", 1, 4, 1), both("b", "b", 3, 1, 4)),
        queues=TWO,
        policy=Policy(shares=shares),
    )


def test_the_example_of_dominant_resource_fairness() -> None:
    """With x jobs of a and y of b, 4 x / 18 = 3 y / 9 and x + 3 y = 9: 3 jobs of a and 2 of b.

    C is out then: a has 3 of it and b 6. Of M they have 12 and 2, and share the 4 that are left, which keeps no job
    from running. Without shares 3 jobs of b, worth 12, are more than 3 and 2, worth 3 + 8.
    """
    snapshot = example("dominant_share")
    plan = pl.solve(snapshot)
    assert started(plan) == ["a-0", "a-1", "a-2", "b-0", "b-1"]
    assert (plan.status, plan.phases[0].value, plan.phases[0].bound) == ("proven", 11, 11)
    assert pl.check(snapshot, plan) == []
    waits = details(plan)
    assert waits["a-3"].endswith("it asks for 1 card of C too many for the share of queue a")
    assert waits["b-2"].endswith("it asks for 3 cards of C too many for the share of queue b")
    free = pl.solve(snapshot, without=("policy.shares", "schedule"))
    assert started(free) == ["b-0", "b-1", "b-2"]


def test_the_same_by_fair_shares() -> None:
    """Of C each has 4.5, of M 9: two jobs of a take 8 M, and one of b 3 C; a second one would take 6."""
    plan = pl.solve(example("fair_share"))
    assert started(plan) == ["a-0", "a-1", "b-0"]
    assert plan.status == "proven"


@pytest.mark.parametrize("shares", SHARES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_every_method_keeps_to_shares(shares: Shares, solver: str) -> None:
    """Of 8 cards on two nodes, a has 8 * 3 / 4 = 6 and b 2: one of b's jobs of 2 starts, and one of a's of 4."""
    snapshot = Snapshot(
        nodes=(cards("x", "A", 4), cards("y", "A", 4)),
        jobs=(gang("big", "a", 1, 4, count=2, value=4), gang("small", "b", 1, 2, count=3, value=9)),
        queues=(Queue(name="a", weight=3), Queue(name="b")),
        policy=Policy(shares=shares),
    )
    try:
        plan = pl.solve(snapshot, solver=solver)
    except UsageError:
        return  # the method does not take limits
    assert plan.checked
    assert plan.notes == []
    assert [name.split("-")[0] for name in started(plan)] == ["big", "small"]
    assert plan.phases[0].bound is None or plan.phases[0].bound >= 13


def test_a_gang_that_does_not_fit_into_a_share_waits() -> None:
    """Five cards for two queues are 2.5 each: a gang of 3 waits though 5 are free, and 2 single tasks start."""
    jobs = (gang("gang", "a", 3), gang("one", "b", 1, count=3))
    snapshot = Snapshot(nodes=(cards("x", "A", 5),), jobs=jobs, queues=TWO, policy=Policy(shares="fair_share"))
    plan = pl.solve(snapshot)
    assert started(plan) == ["one-0", "one-1"]
    assert details(plan)["gang"].endswith("it asks for 1 card of A too many for the share of queue a")
    # a share is no more than is asked for, and what nobody else asks for is left over to the others
    alone = msgspec.structs.replace(snapshot, jobs=jobs[:1])
    assert started(pl.solve(alone)) == ["gang"]


def test_what_runs_above_a_share_stays_and_nothing_is_added() -> None:
    """Of 6 cards a uses 4, and its share is 3, as b's. What a has above it b cannot have: 2 are free."""
    places = tuple(RunningTask(group="g", index=i, node="x", gpus=(i,)) for i in range(4))
    runs = gang("run", "a", 4, running=Running(tasks=places))
    jobs = (runs, gang("more", "a", 1, value=9), gang("b", "b", 1, count=4))
    snapshot = Snapshot(nodes=(cards("x", "A", 6),), jobs=jobs, queues=TWO, policy=Policy(shares="fair_share"))
    plan = pl.solve(snapshot)
    assert "more" not in started(plan)
    assert len(plan.tasks) == 2
    assert plan.status == "proven"
    assert "1 card of A too many for the share of queue a" in details(plan)["more"]


def test_elastic_jobs_ask_for_all_they_want_and_grow_to_the_share() -> None:
    """Of 6 cards, 3 are a's: its gang of 1 to 6 tasks runs with 3, and b's three single tasks run."""
    group = TaskGroup(name="g", count=6, min_count=1, task=Task(gpus=1))
    jobs = (Job(name="elastic", queue="a", value=60, groups=(group,)), gang("b", "b", 1, count=4))
    snapshot = Snapshot(nodes=(cards("x", "A", 6),), jobs=jobs, queues=TWO, policy=Policy(shares="fair_share"))
    plan = pl.solve(snapshot)
    assert [plan.tasks.job.count(name) for name in ("elastic", "b-0", "b-1", "b-2")] == [3, 1, 1, 1]


def test_parts_of_cards_count_as_parts() -> None:
    """Three queues have a third of one card each: of thirds rounded down, tasks of a tenth start three times each."""
    task = Task(gpus=1, gpu_share=0.1)
    jobs = tuple(Job(name=f"j{q}", queue=q, count=9, groups=(TaskGroup(name="g", count=1, task=task),)) for q in "abc")
    node = Node(name="x", gpus=(Gpu(model="A", count=1, sharing="time_slicing"),))
    snapshot = Snapshot(
        nodes=(node,), jobs=jobs, queues=(*TWO, Queue(name="c")), policy=Policy(shares="dominant_share")
    )
    plan = pl.solve(snapshot)
    assert [sum(name.startswith(f"j{q}") for name in started(plan)) for q in "abc"] == [3, 3, 3]


def test_instances_of_mig_count_by_their_compute_slices() -> None:
    """Two A100 have 14 slices: of 7 each a starts two instances of 3g, and b seven of 1g."""
    gpu = Gpu(model="A100-40", count=2, mig_enabled=True)
    jobs = tuple(
        Job(name=q, queue=q, count=9, groups=(TaskGroup(name="g", count=1, task=Task(gpus=1, mig_profile=profile)),))
        for q, profile in (("a", "3g.20gb"), ("b", "1g.5gb"))
    )
    policy = Policy(shares="fair_share")
    plan = pl.solve(Snapshot(nodes=(Node(name="x", gpus=(gpu,)),), jobs=jobs, queues=TWO, policy=policy))
    assert [sum(name.startswith(q) for name in started(plan)) for q in "ab"] == [2, 7]
    assert plan.status == "proven"
    # cards whose instances stay offer these: 1/7 for two
    one = (MigInstance(profile="1g.5gb", start=0),)
    static = msgspec.structs.replace(gpu, count=1, mig_layout=one, mig_static=True)
    nothing = pl.solve(Snapshot(nodes=(Node(name="x", gpus=(static,)),), jobs=jobs, queues=TWO, policy=policy))
    assert started(nothing) == []


def test_a_queue_above_others_has_a_share_too() -> None:
    """Of 8 cards lab and other have 4 each; lab's two queues 2 each, of which one asks for one alone: 3 and 1."""
    queues = (Queue(name="lab"), Queue(name="x", parent="lab"), Queue(name="y", parent="lab"), Queue(name="other"))
    jobs = (gang("x", "x", 1, count=9), gang("y", "y", 1), gang("other", "other", 1, count=9))
    policy = Policy(shares="fair_share")
    plan = pl.solve(Snapshot(nodes=(cards("n", "A", 8),), jobs=jobs, queues=queues, policy=policy))
    assert [sum(name.split("-")[0] == q for name in started(plan)) for q in ("x", "y", "other")] == [3, 1, 4]


# --- the best of all, and bounds ---------------------------------------------------------------------------------


@settings(max_examples=60)
@given(shared())
def test_the_exact_method_finds_the_best_that_keeps_to_shares(snapshot: Snapshot) -> None:
    most = best(snapshot)
    plan = pl.solve(snapshot, solver="exact")
    assert plan.checked
    assert not any("refused" in note for note in plan.notes)
    assert plan.phases[0].value == most
    assert plan.phases[0].bound is not None
    assert plan.phases[0].bound >= most
    greedy = pl.solve(snapshot, solver="best-fit")
    assert greedy.phases[0].value <= most
    assert greedy.phases[0].bound is None or greedy.phases[0].bound >= most
    assert not any("refused" in note for note in greedy.notes)


@given(st.data(), st.sampled_from(SHARES))
def test_both_ways_to_divide_agree(data: st.DataObject, shares: Shares) -> None:
    queues = tuple(
        msgspec.structs.replace(one, weight=data.draw(st.sampled_from([0, 1, 2, 0.3])), lending_limit={})
        for one in data.draw(trees())
    )
    amount = st.integers(0, 12)
    nodes = tuple(cards(f"n{model}", model, data.draw(st.integers(1, 12))) for model in MODELS)
    models = st.sampled_from([(), ("A",), ("B",)])
    jobs = tuple(
        gang(f"{queue}{i}", queue, 1, max(1, data.draw(amount)), data.draw(models))
        for queue in leaves(queues)
        for i in range(data.draw(st.integers(0, 2)))
    )
    snapshot = Snapshot(nodes=nodes, jobs=jobs, queues=queues, policy=Policy(shares=shares))
    share, division = share_of(snapshot, asked(snapshot)), Division(snapshot, {})
    for queue in queues:
        for model in (*MODELS, ALL):
            assert share(queue.name, model) == division.share(queue.name, model)


@given(st.data())
def test_sums_over_choices_are_the_rule_of_quotas(data: st.DataObject) -> None:
    """Where no rows of sums are exceeded no quota is, and the other way round."""
    queues = data.draw(trees())
    usage = {(leaf, model): data.draw(st.integers(0, 4)) for leaf in leaves(queues) for model in MODELS}
    quotas = Quotas(queues)
    for leaf in leaves(queues):
        quotas.change(leaf, {model: usage[leaf, model] for model in MODELS})
    snapshot = Snapshot(nodes=tuple(cards(model, model, 1) for model in MODELS), queues=queues)
    what = Asked()
    for leaf in leaves(queues):
        what.wanted[leaf] |= {**dict.fromkeys(MODELS, Fraction(4)), ALL: Fraction(4 * len(MODELS))}
    kept = all(
        sum(usage[leaf, model] for leaf in row.queues for model in (MODELS if row.model == ALL else [row.model]))
        <= row.room
        for row in rows._quotas(snapshot, what)
    )
    assert kept == (quotas.over() == [])


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(
    "kind", [random_tiny, random_tied_tiny, random_zoned, random_apart, partial(random_mig, scarce=False, mixed=False)]
)
def test_shares_hold_beside_all_else(kind: Callable[[int], Snapshot], seed: int) -> None:
    """Where nodes, zones, domains, tenants or instances decide too, no method's answer is refused by the judge."""
    snapshot = in_queues(kind(seed), random.Random(seed))
    if any(len({gpu.model for gpu in node.gpus}) > 1 for node in snapshot.nodes):
        return
    for solver in ("exact", "fgd"):
        plan = pl.solve(snapshot, solver=solver)
        assert plan.checked
        assert not any("refused" in note for note in plan.notes)


def test_rows_that_nothing_could_exceed_are_left_out() -> None:
    jobs = (gang("a", "a", 2), gang("b", "b", 2))
    snapshot = Snapshot(nodes=(cards("x", "A", 5),), jobs=jobs, queues=TWO, policy=Policy(shares="fair_share"))
    assert queue_rows(snapshot) == ()
    assert len(queue_rows(msgspec.structs.replace(snapshot, nodes=(cards("x", "A", 3),)))) == 2


# --- the judge ---------------------------------------------------------------------------------------------------


def test_the_judge_names_queue_model_usage_and_limit() -> None:
    """Without shares b gets 9 of C, and has 6 by dominant shares."""
    snapshot = example("dominant_share")
    free = pl.solve(snapshot, without=("policy.shares", "schedule"))
    assert pl.check(snapshot, free) == []
    assert [str(one) for one in pl.check(snapshot, free, without=())] == [
        "queue_shares: tasks: queue b uses 9 cards of C, at most 6 by its share"
    ]


def test_the_judge_holds_quotas_beside_shares() -> None:
    """Of 4 cards b asks for none, so that a's share is 4; its tree has 3 in all."""
    queues = (Queue(name="top", quota={"A": 1}), Queue(name="a", parent="top", quota={"A": 2}), Queue(name="b"))
    snapshot = Snapshot(
        nodes=(cards("x", "A", 4),),
        jobs=(gang("j", "a", 1, count=4),),
        queues=queues,
        policy=Policy(shares="fair_share"),
    )
    plan = pl.solve(snapshot)
    assert len(plan.tasks) == 3
    assert plan.pending[0].detail.endswith("it asks for 1 card of A too many for the quota of queue top")
    free = pl.solve(snapshot, without=("policy.shares", "schedule"))
    assert [one.rule for one in pl.check(snapshot, free, without=())] == ["queue_shares"]
    assert "at most 3 by its quota" in str(pl.check(snapshot, free, without=())[0])


# --- who refuses -------------------------------------------------------------------------------------------------


def test_what_plans_over_time_or_decides_job_by_job_refuses_shares() -> None:
    snapshot = example("fair_share")
    for call in (pl.schedule, pl.simulate, Session, preempt):
        with pytest.raises(UnhonouredError, match=r'policy.shares "fair_share" is honoured by placement solve alone'):
            call(snapshot)
    Session(snapshot, without=("policy.shares", "queues"))
    found = preempt(snapshot, without=("policy.shares",))
    assert [name for name in found.started if name.startswith("a")] == ["a-0", "a-1", "a-2", "a-3"]


def test_shares_cannot_be_kept_without_their_queues() -> None:
    with pytest.raises(UsageError, match="queues counts in the shares of queues"):
        pl.solve(example("fair_share"), without=("queues",))
    # what counts in a schedule alone does not stand for what counts in shares
    assert started(pl.solve(example("fair_share"), without=("schedule",))) == ["a-0", "a-1", "b-0"]


def test_nodes_with_several_models_are_refused() -> None:
    node = Node(name="mixed", gpus=(Gpu(model="A", count=1), Gpu(model="B", count=1)))
    snapshot = Snapshot(nodes=(node,), jobs=(gang("j", "a", 1),), queues=TWO, policy=Policy(shares="fair_share"))
    with pytest.raises(UnhonouredError, match=r"nodes\[0\].gpus: shares of queues are not honoured yet"):
        pl.solve(snapshot)


def test_shares_of_no_queues_are_an_error() -> None:
    snapshot = Snapshot(nodes=(cards("x", "A", 1),), policy=Policy(shares="fair_share"))
    with pytest.raises(UnhonouredError, match=r'policy.shares: found "fair_share", but there are no queues'):
        pl.solve(snapshot)
