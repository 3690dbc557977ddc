"""Tenants kept apart by card, node or rack: by hand, against brute force, and every greedy rule by the judge."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
from check_cases import Row, plan_of
from hypothesis import given, settings
from mig_tiny import random_mig
from msgspec.structs import replace
from strategies import random_objectives, random_tiny
from tenant_cases import apart_snapshots, best_of, cluster, job, node, on, random_apart, with_tenants
from timed_strategies import random_timed
from zoned_strategies import random_zoned

import placement as pl
from placement.check import check, overfull
from placement.compile import compile as compile_snapshot
from placement.decisions.consolidate import consolidate
from placement.errors import SnapshotError, UsageError
from placement.evaluate import scores
from placement.exact import METHODS, run
from placement.exact.domains import tenants
from placement.exact.domains.ownership import keeps
from placement.exact.domains.tenants import BY_CARD
from placement.exact.layouts.layout import Layout
from placement.heuristics import HEURISTICS, PORTFOLIO
from placement.instance import Assignment
from placement.plan import Plan
from placement.planning import name_tasks
from placement.snapshot import Gpu, Policy, Snapshot
from placement.solver import Limits, Solver, Stop
from placement.state import State
from placement.tenants import FREE, SHUT, Apart, Owners

SOLVERS: dict[str, Solver] = {**HEURISTICS, **PORTFOLIO}
RACKS = (node("a", 2, "r0"), node("b", 2, "r0"), node("c", 2, "r1"))


def solved(snapshot: Snapshot, method: str = "exact") -> Plan:
    plan = pl.solve(snapshot, solver=method)
    assert plan.checked
    assert not [note for note in plan.notes if "refused" in note]
    return plan


def broken(snapshot: Snapshot, *rows: Row) -> list[str]:
    return [str(violation) for violation in check(snapshot, plan_of(snapshot, rows))]


def places(plan: Plan) -> dict[str, set[tuple[str, tuple[int, ...]]]]:
    found: dict[str, set[tuple[str, tuple[int, ...]]]] = {}
    for name, _, _, where, gpus in plan.tasks:
        found.setdefault(name[0], set()).add((where, tuple(gpus)))
    return found


# --- by hand --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["exact", "auto"])
@pytest.mark.parametrize(
    ("level", "value"),
    [
        # 6 cards; a asks for 3 times 0.5 and b for 5 times 0.5, 4 cards' worth: with nothing in the way all of it
        ("", 4000),
        # a needs 2 cards and b 3, which leaves one: still all
        ("gpu", 4000),
        # a needs 1 node of 2 cards and b 2: still all
        ("node", 4000),
        # r0 has 4 cards and r1 has 2: b in r0 with 2500, a in r1 with 1500
        ("rack", 4000),
    ],
)
def test_there_is_room_for_all(level: str, value: int, method: str) -> None:
    work = [job(f"a{i}", "a", gpu_share=0.5) for i in range(3)] + [job(f"b{i}", "b", gpu_share=0.5) for i in range(5)]
    assert solved(cluster(level, RACKS, *work), method).value == value


@pytest.mark.parametrize(
    ("level", "value", "tasks"),
    [
        # 6 cards and three tenants, each with 0.5 and 0.25 and then 1 card: 3 x 1.75 = 5.25 cards
        ("", 5250, 9),
        # each tenant's two shares on a card of its own, and 3 whole ones: 3 + 3 = 6 cards
        ("gpu", 5250, 9),
        # one node of 2 cards for each: 1.75 of it
        ("node", 5250, 9),
        # two racks for three: two tenants with 1.75 each
        ("rack", 3500, 6),
    ],
)
def test_a_domain_for_each(level: str, value: int, tasks: int) -> None:
    work = [
        job(f"{tenant}{share}", tenant or "", gpu_share=share)
        for tenant in ("x", "y", "")
        for share in (0.5, 0.25, None)
    ]
    plan = solved(cluster(level, RACKS, *work))
    assert (plan.value, len(plan.tasks)) == (value, tasks)
    if level in ("node", "rack"):
        assert plan.stop == "optimal"


def test_cards_are_for_one_tenant() -> None:
    # 2 cards, 4 times 0.25 for a and for b: 4 x 0.25 = 1 each, so a card for each; with c (0.25) one too many
    work = [job(f"{tenant}{i}", tenant, gpu_share=0.25) for tenant in "ab" for i in range(4)]
    plan = solved(cluster("gpu", [node("n", 2)], *work))
    assert plan.value == 2000
    assert sorted(len(where) for where in places(plan).values()) == [1, 1]
    third = solved(cluster("gpu", [node("n", 2)], *work, job("c", "c", gpu_share=0.25)))
    assert third.value == 2000
    assert [entry.job for entry in third.pending] == ["c"]
    assert {entry.reason for entry in third.pending} == {"no_room"}


def test_whole_cards_and_tasks_without_any_share_nothing_with_others() -> None:
    # whole cards side by side, and CPU alone beside them: of different tenants on one node, which gpu allows, node not
    work = job("a", "a"), job("b", "b"), job("c", "c", gpus=0, cpu=1)
    assert len(solved(cluster("gpu", [node("n", 2)], *work)).tasks) == 3
    assert len(solved(cluster("node", [node("n", 2)], *work)).tasks) == 1
    assert compile_snapshot(cluster("gpu", [node("n", 2)], *work)).apart is None


def test_a_node_in_no_rack_is_one_by_itself() -> None:
    loose = [node("n", 1), node("m", 1)]
    assert solved(cluster("rack", loose, job("a", "a"), job("b", "b"))).value == 2000
    # and equal copies of one entry are no domain either
    assert solved(cluster("rack", [node("n", 1, count=2)], job("a", "a"), job("b", "b"))).value == 2000


def test_instances_of_a_mig_card_share_it() -> None:
    cards = replace(node("n", 0), gpus=(Gpu(model="A100-40GB", count=2, mig_enabled=True),))
    work = [job(f"{tenant}{i}", tenant, mig_profile="1g.5gb") for tenant in "abc" for i in range(2)]
    # 7 instances fit on a card, but two cards are for two tenants: 2 x 2 instances
    assert len(solved(cluster("gpu", [cards], *work)).tasks) == 4
    assert len(solved(cluster("", [cards], *work)).tasks) == 6
    assert len(solved(cluster("node", [cards], *work)).tasks) == 2
    # c runs on the second card, and has all it wants there; one of a and b has the first: 2 + 2 instances
    old = replace(work[-1], name="old", running=None)
    place = replace(on("n", 1)[0], mig_starts=(0,))
    old = job("old", "c", running=(place,), mig_profile="1g.5gb")
    plan = solved(cluster("gpu", [cards], old, *work))
    assert len(plan.tasks) == 4
    assert places(plan)["c"] == {("n", (1,))}


@pytest.mark.parametrize("method", ["first-fit", "fgd", "exact"])
def test_running_work_owns_what_it_is_in(method: str) -> None:
    # half a card of a's runs on gpu 0 of a: b may not join it there; 0.5 of a's may
    old = job("old", "a", running=on("a", 0), gpu_share=0.5)
    want = job("x", "a", gpu_share=0.5), job("b", "b", gpu_share=0.5)
    one = [node("a", 1)]
    plan = solved(cluster("gpu", one, old, *want), method)
    assert [row[0] for row in plan.tasks] == ["x"]
    for level in ("node", "rack"):
        # node a and rack r0 are a's, so b goes to c in r1
        plan = solved(cluster(level, (RACKS[0], RACKS[2]), old, *want), method)
        assert places(plan)["b"] <= {("c", (0,)), ("c", (1,))}
        assert plan.value == 1000


@pytest.mark.parametrize(("level", "where"), [("gpu", "n gpu 0"), ("node", "n"), ("rack", "rack r0")])
@pytest.mark.parametrize("method", ["first-fit", "best-fit", "auto"])
def test_running_work_of_two_tenants_is_carried(level: str, where: str, method: str) -> None:
    # on gpu 0 of n 0.25 of a and of b run: nobody may join them there, in n, or in r0; c is free in each case
    nodes = [node("n", 1, "r0"), node("c", 1, "r1")]
    old = [job(f"old-{tenant}", tenant, running=on("n", 0), gpu_share=0.25) for tenant in "ab"]
    new = [job(f"a{i}", "a", gpu_share=0.5) for i in range(3)]
    snapshot = cluster(level, nodes, *old, *new)
    assert overfull(snapshot) == [f"{where}: running tasks of tenants a, b together (jobs old-a, old-b)"]
    plan = solved(snapshot, method)
    # c holds 2 times 0.5
    assert plan.value == 1000
    assert places(plan) == {"a": {("c", (0,))}}
    assert broken(snapshot, ("a0", "g", 0, "n", [0])) == [
        f"tenants: tasks[0]: {where} has tasks of tenants a, b; one may be there at a time"
    ]
    assert broken(snapshot) == []


def test_who_is_still_there_owns() -> None:
    """Two nodes of one domain and one of another, in which a task of tenant 0 runs."""
    owners = Owners(Apart(("x", "y"), np.array([0, 0, 1]), np.array([FREE, 0])))
    owners.change(1, 0, (), 1)
    owners.change(0, 1, (), 1)  # as running work is taken where it is
    assert owners.of(0) == SHUT
    owners.change(1, 0, (), -1)
    assert owners.of(0) == 0
    owners.change(0, 1, (), -1)
    assert owners.of(0) == FREE
    owners.change(1, 2, (), 1)
    twin = owners.copy()
    assert owners.of(2) == SHUT
    owners.change(1, 2, (), -1)
    assert (owners.of(2), twin.of(2)) == (0, SHUT)


def test_the_judge_names_place_and_tenants() -> None:
    work = [job(name, name if name != "z" else "", gpu_share=0.25) for name in "xyz"]
    rows: list[Row] = [("x", "g", 0, "a", [0]), ("y", "g", 0, "b", [0]), ("z", "g", 0, "b", [1])]
    assert broken(cluster("rack", RACKS, *work), *rows) == [
        "tenants: tasks[2]: rack r0 has tasks of tenants '' (none named), x, y; one may be there at a time"
    ]
    assert broken(cluster("node", RACKS, *work), *rows) == [
        "tenants: tasks[2]: b has tasks of tenants '' (none named), y; one may be there at a time"
    ]
    assert broken(cluster("gpu", RACKS, *work), *rows) == []
    assert broken(cluster("gpu", RACKS, *work), *rows[:2], ("z", "g", 0, "b", [0])) == [
        "tenants: tasks[2]: b gpu 0 has tasks of tenants '' (none named), y; one may be there at a time"
    ]
    assert broken(cluster("", RACKS, *work), *rows) == []


def test_unknown_levels_are_refused_and_one_tenant_is_fine() -> None:
    wrong = replace(cluster("node", RACKS), policy=Policy(tenants_apart="row"))
    with pytest.raises(SnapshotError, match=r"there is no level .*row.*gpu.*node.*rack"):
        pl.solve(wrong)
    with pytest.raises(SnapshotError, match="give that level another name"):
        pl.solve(Snapshot(topology=("gpu",), policy=Policy(tenants_apart="gpu")))
    alone = cluster("node", RACKS, job("x", "", gpu_share=0.5), job("y", "", gpu_share=0.5))
    assert solved(alone).value == 1000
    assert compile_snapshot(alone).apart is None
    assert solved(cluster("node", ())).value == 0


def test_shapes_are_told_apart_only_where_it_matters() -> None:
    work = [job(f"{tenant}{i}", tenant, gpu_share=0.5) for tenant in "abc" for i in range(2)]
    assert len(compile_snapshot(cluster("", RACKS, *work)).shapes) == 1
    assert len(compile_snapshot(cluster("node", RACKS, *work)).shapes) == 3
    whole = [replace(one, groups=job("w", "").groups) for one in work]
    assert len(compile_snapshot(cluster("gpu", RACKS, *whole)).shapes) == 1


@pytest.mark.parametrize("method", sorted({*METHODS} - {"exact"}))
def test_forced_methods_refuse(method: str) -> None:
    with pytest.raises(UsageError, match="keeps tenants apart"):
        pl.solve(cluster("node", RACKS, job("a", "a"), job("b", "b")), solver=method)


def test_consolidation_refuses() -> None:
    cards = replace(node("n", 0), gpus=(Gpu(model="A100-40GB", count=2, mig_enabled=True),))
    work = [job(tenant, tenant, mig_profile="1g.5gb") for tenant in "ab"]
    with pytest.raises(UsageError, match="keeps tenants apart"):
        consolidate(cluster("gpu", [cards], *work))
    assert consolidate(cluster("", [cards], *work)).moves == ()


def test_the_same_call_gives_the_same_plan() -> None:
    snapshot = random_apart(3)
    assert solved(snapshot).tasks == solved(snapshot).tasks


# --- against brute force --------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", range(6))
def test_value_optimum_and_bound(part: int) -> None:
    proven = 0
    for seed in range(25 * part, 25 * part + 25):
        snapshot = random_apart(seed)
        value, tasks = best_of(snapshot)
        plan = solved(snapshot)
        first, second = plan.phases
        assert first.bound is not None
        assert first.value <= value <= first.bound, seed
        assert (first.value, second.value) <= (float(value), float(tasks)), seed
        if first.value == value and second.bound is not None:
            assert tasks <= second.bound, seed
        if plan.status == "proven":
            assert (first.value, second.value) == (float(value), float(tasks)), seed
            proven += 1
    # they are small enough to be solved task by task
    assert proven == 25


@pytest.mark.parametrize("by_ways", [True, False])
def test_owners_that_are_tried(by_ways: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    # none is small enough to be solved task by task; then few ways are proven, and otherwise some owners are tried
    monkeypatch.setattr(tenants, "MOST_TIMED", 0)
    if not by_ways:
        monkeypatch.setattr(tenants, "MOST_WAYS", 0)
    best = {True: 0, False: 0}
    for seed in range(60):
        snapshot = random_apart(seed)
        instance = compile_snapshot(snapshot)
        if instance.apart is None:
            continue
        found = run(instance, objectives=("value", "tasks"), limits=Limits())
        assert keeps(instance, found.assignment)
        value, tasks = best_of(snapshot)
        reached = [score.value for score in scores(instance, found.assignment, ("value", "tasks"))]
        bound = found.bounds[0].value
        assert bound is not None
        assert reached <= [value, Fraction(tasks)], seed
        assert value <= bound, seed
        best[reached == [value, tasks]] += 1
        if by_ways and instance.apart.owner.ndim == 1:
            assert found.stop is Stop.OPTIMAL, seed
            assert reached == [value, tasks], seed
    assert best[False] <= 3


# --- every greedy rule, by the judge --------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(SOLVERS))
def test_every_greedy_rule_keeps_tenants_apart(name: str) -> None:
    rule = SOLVERS[name]

    @settings(max_examples=40, deadline=None)
    @given(apart_snapshots())
    def one(snapshot: Snapshot) -> None:
        instance = compile_snapshot(snapshot)
        found = rule.solve(instance, objectives=("value", "tasks"), limits=Limits()).assignment
        judged(snapshot, found)
        bulk, single = Layout.of(instance, found).state, State(instance)
        single.apply(found)
        nodes = np.arange(instance.nodes)
        for shape in range(len(instance.shapes)):
            assert (bulk.fits(shape, nodes) == single.fits(shape, nodes)).all()

    one()


def judged(snapshot: Snapshot, found: Assignment) -> None:
    """Ask the judge what it says of where the tasks are."""
    tasks = name_tasks(compile_snapshot(snapshot), found)
    plan = replace(plan_of(snapshot, ()), tasks=tasks)
    assert not [str(one) for one in check(snapshot, plan) if one.rule in ("tenants", "shares", "capacity", "mig")]


@pytest.mark.parametrize("name", ["first-fit", "mig-best-fit", "hami-contiguous", "dra-first-fit", "kai-fractions"])
def test_mig_cards(name: str) -> None:
    for seed in range(40):
        rng = random.Random(seed)
        snapshot = with_tenants(random_mig(seed, scarce=bool(seed % 2), mixed=bool(seed % 3), max_tasks=10), rng.choice)
        racks = {one.position["rack"] for one in snapshot.nodes if one.position}
        limits = tuple(one for one in snapshot.limits if one.level == "cluster" or one.domain in racks)
        snapshot = replace(snapshot, limits=limits)
        rule = HEURISTICS[name]
        judged(snapshot, rule.solve(compile_snapshot(snapshot), objectives=(), limits=Limits()).assignment)


def test_exact_on_mig_cards() -> None:
    for seed in range(20):
        rng = random.Random(seed)
        snapshot = with_tenants(random_mig(seed, scarce=False, mixed=bool(seed % 2), max_tasks=6), rng.choice)
        plan = solved(snapshot)
        without = solved(replace(snapshot, policy=replace(snapshot.policy, tenants_apart="")))
        assert plan.phases[0].value <= without.phases[0].value
        if BY_CARD in plan.notes:
            assert snapshot.policy.tenants_apart == "gpu"


@pytest.mark.parametrize("part", range(3))
def test_exact_with_other_rules_and_objectives(part: int) -> None:
    for seed in range(20 * part, 20 * part + 20):
        rng = random.Random(seed)
        tiny = (random_tiny, random_zoned, random_timed)[part](seed)
        snapshot = replace(with_tenants(tiny, rng.choice), policy=Policy(objectives=random_objectives(seed)))  # type: ignore[arg-type]
        free = solved(snapshot)
        snapshot = replace(snapshot, policy=replace(snapshot.policy, tenants_apart=rng.choice(("gpu", "node"))))
        plan = solved(snapshot)
        first, without = plan.phases[0], free.phases[0]
        sign = 1 if first.sense == "max" else -1
        # the rule only forbids, so what bounds plans without it bounds those with it
        assert without.bound is None or (without.bound - first.value) * sign >= 0, seed
        # no greedy rule is better
        for name in ("first-fit", "best-fit"):
            values = [phase.value * (1 if phase.sense == "max" else -1) for phase in solved(snapshot, name).phases]
            if plan.status == "proven":
                mine = [phase.value * (1 if phase.sense == "max" else -1) for phase in plan.phases]
                assert mine >= values, seed
