"""Ties of tasks on MIG instances: all cards of a node are one domain of the level ``"node"``."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import placement as pl
from placement.compile import compile as compile_snapshot
from placement.heuristics import HEURISTICS
from placement.heuristics.domains import most_instances
from placement.instance import Instance
from placement.snapshot import (
    Affinity,
    Gpu,
    Job,
    MigInstance,
    Node,
    Running,
    RunningTask,
    Slice,
    Snapshot,
    Spread,
    Task,
    TaskGroup,
    Topology,
)

CARD = Gpu(model="A100-40GB", mig_enabled=True)
TWO = Gpu(model="A100-40GB", count=2, mig_enabled=True)


def tied(topology: Topology | None = None, count: int = 2, profile: str = "7g.40gb") -> Job:
    task = Task(gpus=1, mig_profile=profile)
    return Job(name="j", groups=(TaskGroup(name="w", count=count, task=task, topology=topology),))


def pair(kind: str) -> Job:
    groups = tuple(TaskGroup(name=name, task=Task(gpus=1, mig_profile="7g.40gb")) for name in "ab")
    return Job(name="j", groups=groups, affinity=(Affinity(a="a", b="b", level="node", kind=kind),))  # type: ignore[arg-type]


def nodes_of(job: Job, solver: str, *nodes: Node) -> list[str]:
    """Return the nodes of a plan's tasks; the judge accepts it."""
    snapshot = Snapshot(nodes=nodes, jobs=(job,))
    plan = pl.solve(snapshot, solver=solver, time_limit=10)
    assert pl.check(snapshot, plan) == []
    return sorted(plan.tasks.node)


SURE = ("auto", "exact", "first-fit", "best-fit", "fgd")
"""Those that must find a plan where there is one; other rules cut cards up in their own way, or place nothing."""
EACH = pytest.mark.parametrize("solver", ["auto", "exact", *HEURISTICS])
ONE_NODE = (Node(name="n", gpus=(TWO,)),)
TWO_NODES = (Node(name="n", gpus=(TWO,)), Node(name="m", gpus=(TWO,)))


@EACH
@pytest.mark.parametrize(
    "job",
    [
        tied(Topology(required="node")),
        tied(Topology(slices=(Slice(level="node", sizes=(2,)),))),
        tied(Topology(balanced="node")),
        pair("together"),
    ],
    ids=["required", "slice", "balanced", "together"],
)
def test_two_cards_of_a_node_hold_what_must_lie_on_one(job: Job, solver: str) -> None:
    found = nodes_of(job, solver, *ONE_NODE)
    assert found == ["n", "n"] or (not found and solver not in SURE)
    # a card each: what fits on a node in sum, and on no card
    apart = (Node(name="n", gpus=(CARD,)), Node(name="m", gpus=(CARD,)))
    if job.groups[0].topology != Topology(balanced="node"):
        assert nodes_of(job, solver, *apart) == []


@EACH
@pytest.mark.parametrize(
    "job",
    [
        tied(Topology(spread=(Spread(level="node", max_per_domain=1),))),
        tied(Topology(spread=(Spread(level="node", min_domains=2),))),
        pair("apart"),
    ],
    ids=["most", "fewest", "apart"],
)
def test_two_cards_of_a_node_are_not_two_nodes(job: Job, solver: str) -> None:
    assert nodes_of(job, solver, *ONE_NODE) == []
    found = nodes_of(job, solver, *TWO_NODES)
    assert found == ["m", "n"] or (not found and solver not in SURE)


@EACH
def test_a_node_whose_cards_are_full_is_not_the_tightest(solver: str) -> None:
    """Both cards of node n are taken, and m has room for four of 3g."""
    busy = tuple(RunningTask(group="w", index=i, node="n", gpus=(i,), mig_starts=(0,)) for i in range(2))
    old = Job(
        name="old",
        groups=(TaskGroup(name="w", count=2, task=Task(gpus=1, mig_profile="7g.40gb")),),
        running=Running(tasks=busy),
    )
    snapshot = Snapshot(nodes=TWO_NODES, jobs=(old, tied(Topology(required="node"), 3, "3g.20gb")))
    plan = pl.solve(snapshot, solver=solver, time_limit=10)
    assert plan.tasks.node == ["m"] * 3 or (not plan.tasks and solver not in SURE)


# --- how many a card holds -------------------------------------------------------------------------------------------


def instance_of(*jobs: Job, gpu: Gpu = CARD) -> Instance:
    return compile_snapshot(Snapshot(nodes=(Node(name="n", gpus=(gpu,)),), jobs=jobs))


def test_most_instances_of_a_card() -> None:
    """Of an empty A100: 7 of 1g, 3 of 2g, 2 of 3g, one 7g; and once a 1g is at slot 6, 6, 3, 1 and none."""
    profiles = ("1g.5gb", "2g.10gb", "3g.20gb", "7g.40gb")
    parts = tuple(TaskGroup(name=f"g{i}", task=Task(gpus=1, mig_profile=one)) for i, one in enumerate(profiles))
    slots = instance_of(Job(name="j", groups=parts)).slots
    assert slots is not None
    most = most_instances(slots)
    columns = [slots.profiles.index(one) for one in profiles]
    by_bits = {one.bits: most[state, columns].tolist() for state, one in enumerate(slots.cards)}
    assert by_bits[0] == [7, 3, 2, 1]
    assert by_bits[1 << 6] == [6, 3, 1, 0]
    assert by_bits[255] == most[-1].tolist() == [0, 0, 0, 0]


def test_most_instances_of_a_card_that_stays_as_it_is() -> None:
    exists = (MigInstance(profile="1g.5gb", start=6), MigInstance(profile="1g.5gb", start=4))
    static = Gpu(model="A100-40GB", mig_enabled=True, mig_static=True, mig_layout=exists)
    slots = instance_of(tied(profile="1g.5gb"), gpu=static).slots
    assert slots is not None
    assert most_instances(slots)[slots.number(slots.cards[0])].tolist() == [2]


# --- at random -------------------------------------------------------------------------------------------------------

TOPOLOGIES = st.sampled_from(
    [
        None,
        Topology(required="node"),
        Topology(preferred="node"),
        Topology(balanced="node"),
        Topology(spread=(Spread(level="node", max_per_domain=1),)),
        Topology(spread=(Spread(level="node", max_per_domain=2),)),
        Topology(spread=(Spread(level="node", min_domains=2),)),
        Topology(required="rack", spread=(Spread(level="node", max_per_domain=2),)),
    ]
)


@st.composite
def tied_snapshots(draw: st.DrawFn) -> Snapshot:
    """Draw up to four nodes with up to three cards, and up to three gangs of instances."""
    nodes = tuple(
        Node(
            name=f"n{i}",
            position={"rack": f"r{i % 2}"},
            cpu=draw(st.sampled_from((None, 3))),
            gpus=(Gpu(model="A100-40GB", count=draw(st.integers(1, 3)), mig_enabled=draw(st.booleans())),),
        )
        for i in range(draw(st.integers(1, 4)))
    )
    jobs = []
    for i in range(draw(st.integers(1, 3))):
        count = draw(st.integers(2, 5))
        task = Task(gpus=1, mig_profile=draw(st.sampled_from(("", "1g.5gb", "3g.20gb", "7g.40gb"))), cpu=1)
        group = TaskGroup(
            name="w", count=count, min_count=draw(st.sampled_from((1, count))), task=task, topology=draw(TOPOLOGIES)
        )
        jobs.append(Job(name=f"j{i}", groups=(group,)))
    return Snapshot(topology=("rack",), nodes=nodes, jobs=tuple(jobs))


@settings(max_examples=60, deadline=None)
@given(snapshot=tied_snapshots(), rule=st.sampled_from(sorted(HEURISTICS)))
def test_rules_keep_ties_of_instances(snapshot: Snapshot, rule: str) -> None:
    """Their plans are accepted: one that is not would be an error."""
    plan = pl.solve(snapshot, solver=rule)
    assert pl.check(snapshot, plan) == []
