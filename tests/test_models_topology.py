"""Ties in the reference model: every kind by hand, and small instances solved task by task against brute force."""

from __future__ import annotations

import brute
import model_cases
import pytest
from strategies import random_objectives, random_tied_tiny
from test_exact_tied import TOPOLOGY, gang, node, random_tied, valid

import placement
from placement import models
from placement.check import check
from placement.compile import compile as compile_snapshot
from placement.evaluate import scores
from placement.exact import run
from placement.exact.small.reference import is_small, solve_reference
from placement.plan import Plan, Provenance
from placement.planning import plan_of
from placement.snapshot import Affinity, Gpu, Job, Node, Slice, Snapshot, Spread, Task, TaskGroup, Topology
from placement.snapshot.read import digest, verified
from placement.solver import Limits, Stop

OBJECTIVES = ("value", "tasks")


def cluster(*cards: int) -> tuple[Node, ...]:
    """Return nodes of so many cards, each alone in a rack."""
    return tuple(node(f"n{i}", f"r{i}", count) for i, count in enumerate(cards))


def proven(snapshot: Snapshot, objectives: tuple[str, ...] = OBJECTIVES) -> Plan:
    """Return the plan that the exact method finds without a start, with its bounds and all else checked."""
    instance = compile_snapshot(snapshot)
    result = run(instance, objectives=objectives, limits=Limits())
    assert result.stop is Stop.OPTIMAL
    found = scores(instance, result.assignment, objectives)
    assert [bound.value for bound in result.bounds] == [float(score.value) for score in found]
    about = Provenance(version="test", solver="exact", objectives=objectives)
    plan = plan_of(instance, result, {"exact": result.bounds}, objectives, about, digest(verified(snapshot)))
    assert check(snapshot, plan) == []
    return plan


def placed(nodes: tuple[Node, ...], *jobs: Job) -> int:
    """Return the most tasks that can run."""
    return round(proven(Snapshot(topology=TOPOLOGY, nodes=nodes, jobs=jobs), ("tasks",)).phases[0].value)


def outside(cards: int) -> Node:
    """Return a node that is in no domain."""
    return Node(name="outside", gpus=(Gpu(model="A", count=cards),))


# --- every tie by hand ---------------------------------------------------------------------------------------------


def test_one_rack_holds_a_group_that_requires_it() -> None:
    # Racks with 3 and 2 cards, and 9 cards in no rack: of 5 tasks, 3 run if they may, and none if all must.
    nodes = (*cluster(3, 2), outside(9))
    assert placed(nodes, gang("j", 5, least=1, required="rack")) == 3
    assert placed(nodes, gang("j", 5, required="rack")) == 0
    # what is only preferred changes nothing
    assert placed(nodes, gang("j", 14, preferred="rack")) == 14


def test_slices_are_numbered_even_where_a_group_runs_in_part() -> None:
    # Racks with one card each. Of four tasks in slices of two, one of each slice can run: 0 and 2, but not 0 and 1.
    nodes = cluster(1, 1)
    plan = proven(
        Snapshot(
            topology=TOPOLOGY, nodes=nodes, jobs=(gang("j", 4, least=1, slices=(Slice(level="rack", sizes=(2,)),)),)
        )
    )
    assert plan.phases[1].value == 2
    assert len({index // 2 for index in plan.tasks.index}) == 2


def test_slices_of_several_sizes_stand_in_their_order() -> None:
    # Racks with 3 and 2 cards, and a gang of five that takes all of them: as 3 + 2 or 2 + 3, but not as 4 + 1.
    for sizes, tasks in (((3, 2), 5), ((2, 3), 5), ((4, 1), 0)):
        assert placed(cluster(3, 2), gang("j", 5, slices=(Slice(level="rack", sizes=sizes),))) == tasks
    # slices in slices: two racks of two nodes with one card each hold 4 tasks as 2 + 2 with each on a node
    nodes = tuple(node(f"n{i}", f"r{i // 2}", 1) for i in range(4))
    both = Slice(level="rack", sizes=(2,)), Slice(level="node", sizes=(1,))
    assert placed(nodes, gang("j", 4, slices=both)) == 4
    assert placed(nodes, gang("j", 4, slices=(both[0], Slice(level="node", sizes=(2,))))) == 0


def test_slices_of_a_nested_group_run_through_its_members() -> None:
    # Two members of one task of two cards and two of one: in slices of two, tasks 0 to 5 want 2+1, 1+2 and 1+1 cards.
    # That is what racks of 3, 3 and 2 cards have; counted group by group it would be 2+2, 1+1 and 1+1.
    groups = TaskGroup(name="a", task=Task(gpus=2)), TaskGroup(name="b", count=2, task=Task(gpus=1))
    sliced = Topology(slices=(Slice(level="rack", sizes=(2,)),))
    job = Job(name="j", groups=(TaskGroup(name="g", count=2, groups=groups, topology=sliced),))
    assert placed(cluster(3, 3, 2), job) == 6
    assert placed(cluster(4, 2, 2), job) == 0


def test_slices_may_leave_the_second_member_alone() -> None:
    # Racks with one card each, and two members of two tasks in slices of three and one: the first member's tasks are in
    # one slice, those of the second in both, so it alone can run.
    sliced = Topology(slices=(Slice(level="rack", sizes=(3, 1)),))
    pair = (TaskGroup(name="a", count=2, task=Task(gpus=1)),)
    job = Job(name="j", groups=(TaskGroup(name="g", count=2, min_count=1, groups=pair, topology=sliced),))
    assert placed(cluster(1, 1), job) == 2


def test_balance_counts_the_domains_that_are_used() -> None:
    # Racks with 4 and 2 cards: 3 + 2 may be, 4 + 2 only with slices of two. With 4 and 1, 4 + 1 may not, 4 alone may.
    assert placed(cluster(4, 2), gang("j", 6, least=1, balanced="rack")) == 5
    assert placed(cluster(4, 1), gang("j", 6, least=1, balanced="rack")) == 4
    slices = (Slice(level="rack", sizes=(2,)),)
    assert placed(cluster(4, 2), gang("j", 6, least=1, balanced="rack", slices=slices)) == 6
    # what is in no rack cannot be counted, and takes none of its tasks
    assert placed((*cluster(1), outside(5)), gang("j", 6, least=1, balanced="rack")) == 1


def test_spread_has_a_most_and_a_fewest() -> None:
    # Racks with 4 and 3 cards, and 5 in no rack, where no task that is spread may lie.
    nodes = (*cluster(4, 3), outside(5))
    assert placed(nodes, gang("j", 6, least=1, spread=(Spread(level="rack", max_per_domain=2),))) == 4
    assert placed(nodes, gang("j", 7, least=1, spread=(Spread(level="rack", min_domains=2),))) == 7
    assert placed(nodes, gang("j", 7, least=1, spread=(Spread(level="rack", min_domains=3),))) == 0
    wide = gang("j", 2, 2, spread=(Spread(level="rack", min_domains=2),))  # the second rack has no room for two cards
    assert placed(cluster(4, 1), wide) == 0
    both = (Spread(level="rack", max_per_domain=3, min_domains=2),)
    assert placed(nodes, gang("j", 7, least=1, spread=both)) == 6


@pytest.mark.parametrize(("kind", "tasks"), [("together", 3), ("apart", 5)])
def test_groups_together_and_apart(kind: str, tasks: int) -> None:
    # Racks with 3 and 2 cards, groups of at least one of up to three tasks each. Together they lie in the first rack;
    # apart one of them fills the first, and the other the second.
    groups = tuple(TaskGroup(name=name, count=3, min_count=1, task=Task(gpus=1)) for name in "ab")
    affinity = Affinity(a="a", b="b", level="rack", kind=kind)  # type: ignore[arg-type]
    assert placed(cluster(3, 2), Job(name="j", groups=groups, affinity=(affinity,))) == tasks


def test_affinity_goes_for_each_member_of_the_group_that_holds_both() -> None:
    # Two members of a leader and a worker, each in one rack: racks with 2 and 2 cards hold both members, with 3 and 1
    # one of them. All four lie in one rack only if the groups that must be together are not in one group.
    groups = tuple(TaskGroup(name=name, task=Task(gpus=1)) for name in ("leader", "worker"))
    affinity = Affinity(a="g/leader", b="g/worker", level="rack", kind="together")
    job = Job(name="j", groups=(TaskGroup(name="g", count=2, min_count=1, groups=groups),), affinity=(affinity,))
    assert placed(cluster(2, 2), job) == 4
    assert placed(cluster(3, 1), job) == 2


def test_what_nodes_are_left_like_comes_first() -> None:
    # Nothing placed leaves both nodes whole. Then value: nothing. The other way round the gang of two needs one rack.
    snapshot = Snapshot(topology=TOPOLOGY, nodes=cluster(2, 2), jobs=(gang("j", 2, required="block"),))
    assert [phase.value for phase in proven(snapshot, ("whole_nodes", "value")).phases] == [2, 0]
    assert [phase.value for phase in proven(snapshot, ("value", "nodes")).phases] == [2000, 1]


# --- what else is promised -----------------------------------------------------------------------------------------


def test_nothing_is_added_without_ties() -> None:
    m = models.build(model_cases.golden(), models.REFERENCE, "tasks")
    assert m.component("lies_in_domain") is None


def test_formulations_on_counts_refuse_ties() -> None:
    tied = model_cases.golden_tied()
    reasons = {name: formulation.supports(tied) for name, formulation in models.FORMULATIONS.items()}
    assert reasons.pop("reference") is None
    assert all("where their tasks may lie" in (reason or "") for reason in reasons.values())


def test_larger_instances_are_left_to_others() -> None:
    snapshot = Snapshot(topology=TOPOLOGY, nodes=cluster(*[8] * 10), jobs=(gang("j", 8, required="rack"),))
    assert not is_small(compile_snapshot(snapshot))


def test_unknown_objectives_and_no_time() -> None:
    instance = model_cases.golden_tied()
    assert solve_reference(instance, ("completion_time",), Limits()) is None
    late = solve_reference(instance, OBJECTIVES, Limits(deadline=0.0))
    assert late is not None
    assert (len(late.assignment), late.stop) == (0, Stop.TIME)


# --- against brute force -------------------------------------------------------------------------------------------


def agree(snapshot: Snapshot, objectives: tuple[str, ...] = OBJECTIVES) -> None:
    expected = brute.optimum(snapshot, objectives)
    plan = proven(snapshot, objectives)
    for phase, (objective, priority, value) in zip(plan.phases, expected, strict=True):
        assert (phase.objective, phase.priority) == (objective, priority)
        assert brute.close(phase.value, value), (phase, value)


@pytest.mark.parametrize("seed", range(350))
def test_values_of_plans(seed: int) -> None:
    agree(random_tied_tiny(seed, 5))


@pytest.mark.parametrize("seed", range(1000, 1175))
def test_values_of_plans_with_fractions_and_priorities(seed: int) -> None:
    agree(valid(random_tied, seed))


@pytest.mark.parametrize("seed", range(40))
def test_any_objectives_in_any_order(seed: int) -> None:
    agree(random_tied_tiny(seed, 4), random_objectives(seed))


@pytest.mark.parametrize("seed", [827, 1059, 1064, 1094, 1133, 1135, 1141, 1148, 1160, 1192])
def test_what_other_ways_miss(seed: int) -> None:
    """Domains first would lose tasks; and of the first one, presolve in HiGHS 1.16.0 finds that it has no solution."""
    snapshot = random_tied(seed)
    instance = compile_snapshot(snapshot)
    result = run(instance, objectives=OBJECTIVES, limits=Limits())
    found = [(s.objective, s.priority, s.value) for s in scores(instance, result.assignment, OBJECTIVES)]
    assert found == brute.optimum(snapshot, OBJECTIVES)
    assert result.stop is Stop.OPTIMAL


@pytest.mark.parametrize("seed", range(30))
def test_values_of_whole_calls(seed: int) -> None:
    snapshot = random_tied_tiny(seed, 5)
    plan = placement.solve(snapshot, solver="exact", objectives=OBJECTIVES)
    assert plan.status == "proven"
    assert all(
        brute.close(phase.value, value)
        for phase, (_, _, value) in zip(plan.phases, brute.optimum(snapshot, OBJECTIVES), strict=True)
    )


def test_a_group_may_be_called_job() -> None:
    # One card; the group needs both of its parts, each of one card: nothing runs.
    children = tuple(TaskGroup(name=name, task=Task(gpus=1)) for name in "ab")
    group = TaskGroup(name="job", groups=children, topology=Topology(required="rack"))
    snapshot = Snapshot(topology=TOPOLOGY, nodes=(node("n", "r", 1),), jobs=(Job(name="j", groups=(group,)),))
    assert proven(snapshot).phases[0].value == 0
