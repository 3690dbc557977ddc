"""MIG beside all else, by hand: objectives on what is left, other methods, greedy rules, zones, run times and ties."""

from __future__ import annotations

import pytest
from mig_cases import A100, A100_80, SEVENTH, WHOLE, jobs, node, plan_of, proven, runs, task, whole

from placement import solve
from placement.errors import UsageError
from placement.heuristics import HEURISTICS
from placement.snapshot import Duration, Gpu, Job, Link, Node, NumaZone, Snapshot, Task, TaskGroup, Topology

# --- what nodes are left like ----------------------------------------------------------------------------------


def test_whole_nodes_with_idle_mig_cards() -> None:
    """A card in MIG mode without instances in use is wholly free; one with some is not, whoever waits."""
    nodes = (node(A100, WHOLE), node(WHOLE, WHOLE, name="m"))
    aims = ("tasks", "whole_nodes")
    # either node is left whole
    proven(plan_of(nodes, whole("all"), objectives=aims), 1, 1)
    proven(plan_of(nodes, objectives=("whole_nodes",)), 2)
    # an instance runs on n, so n takes the task and m stays whole
    proven(plan_of(nodes, runs("old", "1g.5gb", 0, 6), whole("all"), objectives=aims), 1, 1)
    # an instance starts on n, so n takes the other task too
    plan = plan_of(nodes, jobs("new", "1g.5gb"), whole("all"), objectives=aims)
    assert [phase.value for phase in plan.phases] == [2, 1]
    assert plan.usage.whole_nodes == 1


def test_fragmentation_of_mig_cards() -> None:
    """4/7 of a card with a 3g are idle, of which a whole card's task can use nothing and a 4g, at slot 0, all."""
    old = runs("old", "3g.20gb", 0, 4)
    plan = plan_of(node(A100), old, whole("all"), objectives=("fragmentation",))
    proven(plan, 4 * SEVENTH)
    # two tasks, one of which could use it
    plan = plan_of(node(A100), old, whole("all"), jobs("four", "4g.20gb"), objectives=("whole_nodes", "fragmentation"))
    assert plan.phases[1].value in (float(2 * SEVENTH), 0.0)
    plan = plan_of(node(A100), old, whole("all"), jobs("four", "4g.20gb"), objectives=("tasks", "fragmentation"))
    assert [phase.value for phase in plan.phases] == [1, 0]


def test_nodes_in_use() -> None:
    """A MIG card is no node of its own: both tasks are on one node."""
    nodes = (node(A100, WHOLE), node(WHOLE, name="m"))
    plan = plan_of(nodes, jobs("new", "1g.5gb"), whole("all"), objectives=("tasks", "nodes"))
    assert [phase.value for phase in plan.phases] == [2, 1]
    plan = plan_of(nodes, runs("old", "1g.5gb", 0, 0), jobs("new", "1g.5gb"), objectives=("tasks", "nodes"))
    assert [(phase.value, phase.bound) for phase in plan.phases] == [(1, 1), (1, 1)]


# --- who can take it -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["ladder", "columns", "configurations", "pooled"])
def test_other_methods_say_that_they_cannot(solver: str) -> None:
    snapshot = Snapshot(nodes=(node(A100, WHOLE),), jobs=(jobs("new", "1g.5gb"), whole("all")))
    with pytest.raises(UsageError, match="MIG instances, which exact alone knows of"):
        solve(snapshot, solver=solver)
    # cards in MIG mode are in nobody's way where nobody waits for an instance
    plan = solve(
        Snapshot(nodes=(node(A100, WHOLE),), jobs=(runs("old", "1g.5gb", 0, 6), whole("all", 3))), solver=solver
    )
    assert plan.value == 1000


@pytest.mark.parametrize("rule", sorted(HEURISTICS))
def test_every_greedy_rule_knows_instances(rule: str) -> None:
    """7g on one card, and 4g and 3g on the other; a whole card beside them. Rules with fixed layouts place fewer."""
    work = (jobs("seven", "7g.40gb"), jobs("four", "4g.20gb"), jobs("three", "3g.20gb"), whole("all"))
    plan = solve(Snapshot(nodes=(node(A100, WHOLE, A100),), jobs=work), solver=rule, objectives=("tasks",))
    assert plan.checked
    assert plan.value == (2 if rule in ("kai-fractions", "mig-parted-fixed") else 4)


def test_zones_and_paths_do_not_mind() -> None:
    """Instances of a node with NUMA zones and NVLink, beside a task that is bound to a zone and one of two cards."""
    zones = (NumaZone(id=0, gpus=(0, 1), cpu=4), NumaZone(id=1, gpus=(2, 3), cpu=4))
    links = (Link(a=1, b=2, kind="NVLINK", width=4), Link(a=2, b=3, kind="NVLINK", width=8))
    host = Node(name="n", cpu=8, gpus=(A100, Gpu(model="A100-40GB", count=3)), zones=zones, links=links)
    two = Job(name="two", groups=(TaskGroup(name="g", task=Task(gpus=2, cpu=2)),))
    bound = Job(name="bound", groups=(TaskGroup(name="g", task=Task(gpus=1, cpu=2, numa="single-numa-node")),))
    work = (two, jobs("new", "1g.5gb", 3, cpu=1))
    proven(plan_of(host, *work, objectives=("tasks",)), 4)
    plan = plan_of(host, *work, bound, objectives=("tasks",))
    assert plan.value == 5
    assert isinstance(plan.tasks.mig_starts, list)
    assert sorted(map(len, plan.tasks.mig_starts)) == [0, 0, 1, 1, 1]


def test_run_time_goes_by_the_model_of_the_mig_card() -> None:
    """2g.20gb runs 100 s on an A100 and 0.5 of that on an H100, which therefore gets both."""
    h100 = Gpu(model="H100-SXM5-80GB", mig_enabled=True)
    job = Job(
        name="j",
        count=2,
        duration=Duration(seconds=100, gpu_models={"H100-SXM5-80GB": 0.5}),
        groups=(TaskGroup(name="g", task=task("2g.20gb")),),
    )
    plan = plan_of((node(A100_80), node(h100, name="m")), job, objectives=("tasks", "run_time"))
    # each takes 50 s, with a weight of 1
    assert [phase.value for phase in plan.phases] == [2, 100]
    assert plan.tasks.node == ["m", "m"]


def test_a_gang_of_instances_on_one_node() -> None:
    """Three 3g in one rack: a node has two, so that a node cannot hold them, and the rack of two nodes can."""
    nodes = tuple(node(A100, name=f"n{i}", position={"rack": f"r{i // 2}"}) for i in range(4))
    for level, placed in (("rack", 3), ("node", 0)):
        group = TaskGroup(name="g", count=3, task=task("3g.20gb"), topology=Topology(required=level))
        plan = plan_of(nodes, Job(name="j", groups=(group,)), objectives=("tasks",), topology=("rack",))
        assert plan.value == placed
        assert len({name[:2] for name in plan.tasks.node}) <= 2
    assert [one.reason for one in plan.pending] == ["never"]


# --- many kinds of everything ----------------------------------------------------------------------------------


def test_cards_that_are_cut_into_runs_beside_others_that_are_not() -> None:
    """An A100 whose optical flow unit is asked for is taken as a whole, an A30 is not; few cards are looked for too.

    Two +me need two A100: with them lie five 2g (2 + 3) and two 1g more would, 2 x 1 + 5 x 2 = 12 sevenths; two 1g.6gb
    of a quarter and a 2g.12gb of a half fill the A30.
    """
    a30 = Gpu(model="A30-24GB", mig_enabled=True)
    a100 = Gpu(model="A100-40GB", mig_enabled=True, count=3)
    work = (
        jobs("media", "1g.5gb+me", 2),
        jobs("two", "2g.10gb", 5),
        jobs("quarter", "1g.6gb", 2),
        jobs("half", "2g.12gb"),
    )
    proven(plan_of(node(a30, a100), *work, objectives=("value", "tasks")), 12 * SEVENTH + 1000, 10)


def test_tasks_of_one_profile_that_may_use_other_nodes() -> None:
    """Each of twelve nodes is closed to one of twelve sorts of jobs, and +me makes contents of cards be listed.

    Ways to share the seven slots of a card among eleven sorts of 1g and of 2g are many; what they add up to is not: 24
    cards hold 168 sevenths, of which 12 x 6 tasks of 2g and 4 + 12 x 6 of 1g ask for 144 + 76. A card of seven slots
    gets at most three 2g and one 1g.
    """
    number = 12
    nodes = tuple(
        node(A100, A100, name=f"n{i}", labels={f"l{j}": "x" for j in range(number) if j != i}) for i in range(number)
    )
    work = [
        jobs(f"j{j}-{profile[0]}", profile, 6, node_selector={f"l{j}": "x"})
        for j in range(number)
        for profile in ("1g.5gb", "2g.10gb")
    ]
    plan = plan_of(nodes, jobs("media", "1g.5gb+me", 4), *work)
    proven(plan, 168 * SEVENTH)
