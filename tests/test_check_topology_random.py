"""Topology and affinity in random tiny snapshots: the judge, the second opinion of `brute_ties`, and the best plan."""

from __future__ import annotations

import random

import brute
from brute_ties import Placed, keeps, may_run, written_out
from check_cases import Row, nodes_of, plan_of, valid_rows, wanted
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from strategies import OBJECTIVES, Source, random_tied_tiny, tied_tiny

from placement.check import check, locality
from placement.check.case.case import Case
from placement.check.facts.facts import facts_of
from placement.check.groups import affinity, topology
from placement.honoured import refuse_unhonoured
from placement.plan import Plan
from placement.snapshot import Affinity, Gpu, Job, Node, Snapshot, Spread, Task, TaskGroup, Topology
from placement.snapshot.read import dumps, loads, verified

SLOW = [HealthCheck.too_slow]


def placed_of(snapshot: Snapshot, rows: list[Row], job: str) -> Placed:
    nodes = nodes_of(snapshot)
    return {(row[1], row[2]): (row[3], nodes[row[3]]) for row in rows if row[0] == job}


def drawn(data: st.DataObject) -> Source:
    return Source(lambda low, high: data.draw(st.integers(low, high)))


def test_every_seed_gives_a_valid_snapshot_that_is_honoured() -> None:
    for seed in range(300):
        snapshot = random_tied_tiny(seed)
        assert refuse_unhonoured(verified(snapshot)) == snapshot
        assert loads(dumps(snapshot)) == snapshot


# --- two opinions ---------------------------------------------------------------------------------------------


def some_rows(source: Source, snapshot: Snapshot) -> list[Row]:
    """Return a random placement on a few nodes; cards, room and gangs do not matter here."""
    few = [name for name in nodes_of(snapshot) if not source.one_in(3)] or list(nodes_of(snapshot))
    tasks = [task[:3] for task in wanted(snapshot) if not source.one_in(6)]
    return [(*task, source.pick(few), []) for task in tasks]


def agree(snapshot: Snapshot, rows: list[Row]) -> bool:
    """Return what both opinions say of each job alone, which must be the same; whether all jobs are right."""
    case = Case(facts_of(snapshot), plan_of(snapshot, rows, ()))
    found = {v.path.partition(".")[0] for judge in (topology.judge, affinity.judge) for v in judge(case)}
    for number, job in enumerate(snapshot.jobs):
        placed = placed_of(snapshot, rows, job.name)
        assert keeps(job, written_out(job), placed, snapshot.topology) == (f"jobs[{number}]" not in found)
    return not found


@settings(max_examples=100, deadline=None, suppress_health_check=SLOW)
@given(st.data())
def test_both_opinions_agree(data: st.DataObject) -> None:
    source = drawn(data)
    snapshot = tied_tiny(source)
    rows = some_rows(source, snapshot)
    agree(snapshot, rows)
    for number, row in enumerate(rows):  # and with one task elsewhere
        other = source.pick(list(nodes_of(snapshot)))
        agree(snapshot, [*rows[:number], (*row[:3], other, []), *rows[number + 1 :]])


def test_both_opinions_agree_by_seed() -> None:
    right = [
        agree(s := random_tied_tiny(seed), some_rows(Source(random.Random(seed).randint), s)) for seed in range(400)
    ]
    assert 100 < sum(right) < 300


# --- whole plans ----------------------------------------------------------------------------------------------


def whole_plan(snapshot: Snapshot, rows: list[Row]) -> Plan:
    plan = plan_of(snapshot, rows, OBJECTIVES)
    return replace(plan, locality=locality(snapshot, plan.tasks))


def accepted(snapshot: Snapshot, rows: list[Row]) -> bool:
    """Return whether every job may run as it is placed, in the second opinion, which the judge must share."""
    placed = {job.name: placed_of(snapshot, rows, job.name) for job in snapshot.jobs}
    right = all(
        may_run(job, written_out(job), placed[job.name], snapshot.topology) for job in snapshot.jobs if placed[job.name]
    )
    found = check(snapshot, whole_plan(snapshot, rows))
    assert right == (not found), found
    assert {violation.rule for violation in found} <= {"topology", "affinity"}
    return right


def test_plans_that_keep_all_other_rules() -> None:
    verdicts = []
    for seed in range(150):
        snapshot = random_tied_tiny(seed)
        rows = valid_rows(Source(random.Random(seed).randint), snapshot)
        verdicts.append(accepted(snapshot, rows))
        plan = whole_plan(snapshot, rows)
        found = {violation.rule for violation in check(snapshot, replace(plan, locality=None))}
        assert ("locality" in found) == (plan.locality is not None)
    assert 30 < sum(verdicts) < 120


# --- the best plan --------------------------------------------------------------------------------------------


def best(group: TaskGroup, *more: TaskGroup, affinity: tuple[Affinity, ...] = ()) -> int:
    """Return how many tasks of a card each start at best: 3 cards on a, 2 on b, both in rack r0; 4 on c in r1."""
    nodes = tuple(
        Node(name=name, position={"rack": rack}, gpus=(Gpu(model="A", count=cards),))
        for name, rack, cards in (("a", "r0", 3), ("b", "r0", 2), ("c", "r1", 4))
    )
    job = Job(name="j", groups=(group, *more), affinity=affinity)
    snapshot = Snapshot(topology=("rack",), nodes=nodes, jobs=(job,))
    ((_, _, value),) = brute.optimum(snapshot, ("tasks",))
    return int(value)


def cards(count: int, name: str = "w", **stated: object) -> TaskGroup:
    ties = Topology(**stated) if stated else None  # type: ignore[arg-type]
    return TaskGroup(name=name, count=count, min_count=1, task=Task(gpus=1), topology=ties)


def test_brute_force_by_hand() -> None:
    assert best(cards(6)) == 6  # of 9
    assert best(cards(6, required="rack")) == 5  # 3 + 2 of r0
    assert best(cards(6, required="node")) == 4  # c
    assert best(cards(6, spread=(Spread(level="node", max_per_domain=1),))) == 3  # one on each of three nodes
    assert best(cards(6, spread=(Spread(level="rack", max_per_domain=2, min_domains=2),))) == 4
    assert best(cards(6, balanced="node")) == 6  # 2, 2, 2
    apart = (Affinity(a="v", b="w", level="rack", kind="apart"),)
    assert best(cards(3, "v"), cards(3), affinity=apart) == 6  # 3 in r0, 3 in r1
    together = (Affinity(a="v", b="w", level="node", kind="together"),)
    assert best(cards(3, "v"), cards(3), affinity=together) == 4  # c
