"""The field `nvlink_domain` of a node says the same as a position at the level of that name."""

from __future__ import annotations

import time
from collections import Counter

import msgspec
import pytest
from bad_snapshots import GOOD
from msgspec.structs import replace
from rich.console import Console

import placement as pl
from placement.compile.cards import NodeKinds
from placement.errors import SnapshotError
from placement.report.tree import tree_report
from placement.snapshot import (
    Affinity,
    DataLocality,
    DomainLimit,
    Duration,
    Gpu,
    Job,
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
from placement.snapshot.cluster import NVLINK_DOMAIN
from placement.snapshot.read import digest, dumps, loads, verified

CARDS = (Gpu(model="GB200", count=4),)
CARD = Task(gpus=1)
# d0: four nodes of four cards, of which one runs something: 15 free; d1: two nodes, 8 free
NODES = (
    Node(name="a", count=4, position={"row": "x"}, nvlink_domain="d0", gpus=CARDS),
    Node(name="b", count=2, position={"row": "x"}, nvlink_domain="d1", gpus=CARDS),
)
RUNS = Job(
    name="runs",
    groups=(TaskGroup(name="g", task=CARD),),
    running=Running(tasks=(RunningTask(group="g", index=0, node="a-0", gpus=(0,)),)),
)


def snapshot_of(topology: Topology) -> Snapshot:
    group = TaskGroup(name="g", count=16, task=CARD, topology=topology)
    gang = Job(name="gang", groups=(group,))
    return Snapshot(topology=("row", NVLINK_DOMAIN), nodes=NODES, jobs=(RUNS, gang))


def in_positions(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with positions in place of the field."""
    return replace(snapshot, nodes=tuple(replace(n, position=n.domains, nvlink_domain="") for n in snapshot.nodes))


def by_domain(plan: pl.Plan) -> list[int]:
    """Return how many tasks are in each domain, most first."""
    return sorted(Counter(node.partition("-")[0] for _, _, _, node, _ in plan.tasks).values(), reverse=True)


@pytest.mark.parametrize(
    "topology",
    [
        Topology(required="row", balanced=NVLINK_DOMAIN),
        Topology(slices=(Slice(level=NVLINK_DOMAIN, sizes=(8,)),)),
        Topology(spread=(Spread(level=NVLINK_DOMAIN, max_per_domain=8),)),
    ],
    ids=["balanced", "slices", "spread"],
)
def test_eight_and_eight_rather_than_fifteen_and_one(topology: Topology) -> None:
    # 16 tasks of a card each: in d0 there is room for 15, in d1 for 8; even parts, slices of 8, and at most 8 in each
    # domain all leave 8 + 8 alone
    snapshot = snapshot_of(topology)
    plan = pl.solve(snapshot)
    assert (plan.value, plan.bound, by_domain(plan)) == (16_000, 16_000, [8, 8])
    assert pl.check(snapshot, plan) == []
    other = pl.solve(in_positions(snapshot))
    assert other.tasks == plan.tasks
    # fifteen and one is what both refuse
    left = [("b-0" if i == 15 else f"a-{(i + 1) // 4}", [(i + 1) % 4 if i < 15 else 0]) for i in range(16)]
    node, gpus = (list(column) for column in zip(*left, strict=True))
    wrong = replace(plan, tasks=replace(plan.tasks, node=node, gpus=gpus))
    rules = {violation.rule for violation in pl.check(snapshot, wrong)}
    assert "topology" in rules
    same = replace(wrong, snapshot=digest(in_positions(snapshot)))
    assert {violation.rule for violation in pl.check(in_positions(snapshot), same)} == rules


def test_the_tree_shows_the_domains() -> None:
    snapshot = snapshot_of(Topology(slices=(Slice(level=NVLINK_DOMAIN, sizes=(8,)),)))
    console = Console(width=100, color_system=None)
    with console.capture() as captured:
        console.print(tree_report(snapshot, pl.solve(snapshot), width=100))
    text = captured.get()
    assert "d0" in text
    assert "d1" in text


def test_a_domain_can_be_capped() -> None:
    # d1 may have 3 of its 8 cards in use: 15 + 3 = 18 tasks of the 20
    limit = DomainLimit(level=NVLINK_DOMAIN, domain="d1", gpus=3)
    jobs = (RUNS, Job(name="one", count=20, groups=(TaskGroup(name="g", task=CARD),)))
    snapshot = Snapshot(topology=(NVLINK_DOMAIN,), nodes=_rowless(NODES), limits=(limit,), jobs=jobs)
    plan = pl.solve(snapshot)
    assert (plan.value, by_domain(plan)) == (18_000, [15, 3])
    assert pl.check(snapshot, plan) == []
    assert pl.solve(in_positions(snapshot)).tasks == plan.tasks
    # with a cap of 2 in place of 3 the same plan is refused
    tighter = replace(snapshot, limits=(replace(limit, gpus=2),))
    assert "limits" in {violation.rule for violation in pl.check(tighter, replace(plan, snapshot=digest(tighter)))}


def test_groups_are_kept_together_and_data_is_near() -> None:
    # two groups of eight, each within a domain and not both in the same one: d0 and d1
    groups = tuple(TaskGroup(name=name, count=8, task=CARD, topology=Topology(required=NVLINK_DOMAIN)) for name in "pq")
    apart = Affinity(a="p", b="q", level=NVLINK_DOMAIN, kind="apart")
    job = Job(name="pair", groups=groups, affinity=(apart,))
    snapshot = Snapshot(topology=(NVLINK_DOMAIN,), nodes=_rowless(NODES), jobs=(RUNS, job))
    plan = pl.solve(snapshot)
    assert (plan.value, by_domain(plan)) == (16_000, [8, 8])
    assert pl.solve(in_positions(snapshot)).tasks == plan.tasks
    near = DataLocality(level=NVLINK_DOMAIN, domain="d1", fetch_seconds={"cluster": 60, NVLINK_DOMAIN: 0})
    one = Job(name="one", groups=(TaskGroup(name="g", task=CARD),), duration=Duration(seconds=100), data=(near,))
    snapshot = replace(snapshot, jobs=(RUNS, one))
    plan = pl.solve(snapshot)
    # in d1 the data are there: no second to fetch them, not 60
    assert plan.run is not None
    assert (by_domain(plan), plan.tasks.node[0].partition("-")[0], list(plan.run.fetch)) == ([1], "b", [0])
    assert pl.check(snapshot, plan) == []


def _rowless(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    return tuple(replace(node, position={}) for node in nodes)


def test_said_twice_is_said_once() -> None:
    both = Node(name="n", position={NVLINK_DOMAIN: "d"}, nvlink_domain="d")
    levels = ("row", NVLINK_DOMAIN)
    assert verified(Snapshot(topology=levels, nodes=(both,))).nodes[0].domains == {NVLINK_DOMAIN: "d"}
    with pytest.raises(SnapshotError) as caught:
        verified(Snapshot(topology=levels, nodes=(replace(both, nvlink_domain="e"),)))
    assert str(caught.value) == (
        'nodes[0].nvlink_domain: found "e", but `position` says "d" at that level; say it once, or the same twice'
    )


def test_the_level_has_to_be_listed() -> None:
    with pytest.raises(SnapshotError) as caught:
        verified(Snapshot(topology=("row",), nodes=(Node(name="n", nvlink_domain="d"),)))
    assert str(caught.value) == (
        'nodes[0].nvlink_domain: `topology` has no level "nvlink_domain", of which "d" would be a domain; '
        'add "nvlink_domain" to `topology` where it belongs from wide to narrow, or leave this out'
    )
    # a level that is listed and that no node is at cannot be asked for
    job = Job(name="j", groups=(TaskGroup(name="g", task=CARD, topology=Topology(required=NVLINK_DOMAIN)),))
    with pytest.raises(SnapshotError, match="in their `position` or `nvlink_domain`"):
        verified(Snapshot(topology=(NVLINK_DOMAIN,), nodes=(Node(name="n"),), jobs=(job,)))


def test_files_say_what_they_said() -> None:
    snapshot = loads(msgspec.json.encode(GOOD))
    assert loads(dumps(snapshot)) == snapshot
    assert snapshot.nodes[0].nvlink_domain == "domain-7"
    assert snapshot.nodes[0].domains == {"block": "b1", "rack": "r1", NVLINK_DOMAIN: "domain-7"}
    # the field stays where it was written, so that digests tell the two ways apart
    assert NVLINK_DOMAIN not in snapshot.nodes[0].position
    assert digest(snapshot) != digest(in_positions(snapshot))
    node = Node(name="n", position={"row": "x"})
    assert node.domains is node.position


def test_nodes_that_differ_in_the_domain_alone_are_of_one_kind() -> None:
    nodes = [Node(name=f"n{i}", nvlink_domain=f"d{i}", gpus=CARDS) for i in range(50)]
    assert len(NodeKinds(nodes).nodes) == 1


def test_many_nodes_are_looked_at_fast() -> None:
    nodes = tuple(Node(name=f"n{i}", nvlink_domain=f"d{i // 18}", gpus=CARDS) for i in range(100_000))
    began = time.perf_counter()
    verified(Snapshot(topology=(NVLINK_DOMAIN,), nodes=nodes))
    assert time.perf_counter() - began < 10
