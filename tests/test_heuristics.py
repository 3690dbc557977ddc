"""Every greedy rule on a cluster small enough to do the sums by hand, and what all of them must keep to."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import strategies
from hypothesis import given, settings
from msgspec.structs import replace

from placement.check import check
from placement.compile import compile as compile_snapshot
from placement.heuristics import HEURISTICS
from placement.heuristics.fgd import Fgd
from placement.heuristics.nodes import Nodes
from placement.instance import Assignment, Instance
from placement.plan import Provenance
from placement.planning import name_tasks, plan_of
from placement.snapshot import Gpu, Job, Node, Running, RunningTask, Snapshot, Task, TaskGroup
from placement.snapshot.read import digest
from placement.solver import Limits, Stop
from placement.state import State

DETERMINED = [name for name in HEURISTICS if name != "random"]


def node(name: str, cards: int, cpu: float | None = None) -> Node:
    return Node(name=name, cpu=cpu, gpus=(Gpu(model="A", count=cards),) if cards else ())


def job(name: str, task: Task) -> Job:
    return Job(name=name, groups=(TaskGroup(name="w", task=task),))


def runs(name: str, place: str, card: int, share: float | None = None) -> Job:
    """A running job with one task on one card."""
    group = TaskGroup(name="w", task=Task(gpus=1, gpu_share=share))
    return Job(
        name=name, groups=(group,), running=Running(tasks=(RunningTask(group="w", index=0, node=place, gpus=(card,)),))
    )


def solve(rule: str, snapshot: Snapshot, seed: int = 0) -> dict[str, tuple[str, list[int]]]:
    """Return node and cards of each placed job."""
    instance = compile_snapshot(snapshot)
    result = HEURISTICS[rule].solve(instance, objectives=(), limits=Limits(), seed=seed)
    assert result.stop is Stop.COMPLETE
    return {name: (where, gpus) for name, _, _, where, gpus in name_tasks(instance, result.assignment)}


def test_names() -> None:
    names = ["first-fit", "fgd", "best-fit", "gpu-packing", "gpu-clustering", "dot-product", "worst-fit", "random"]
    names += ["fastest-fit"]
    names += ["kube-most-allocated", "kube-least-allocated", "kueue-tas-best-fit", "kueue-tas-least-free"]
    names += ["kueue-tas-balanced", "volcano-hypernode", "slurm-tree-best-fit", "slurm-block", "hived-buddy"]
    names += ["go-gpuallocator"]
    names += ["dra-first-fit", "mig-parted-fixed", "hami-contiguous", "mig-best-fit", "miso", "kai-fractions"]
    assert list(HEURISTICS) == names
    assert [solver.name for solver in HEURISTICS.values()] == names


# --- one rule at a time --------------------------------------------------------------------------------------------


def test_first_fit_takes_the_first_node_with_room() -> None:
    snapshot = Snapshot(
        nodes=(node("cpu", 0), node("small", 1), node("large", 4)),
        jobs=(job("one", Task(gpus=1)), job("two", Task(gpus=2)), job("none", Task())),
    )
    assert solve("first-fit", snapshot) == {"one": ("small", [0]), "two": ("large", [0, 1]), "none": ("cpu", [])}


def test_best_and_worst_fit() -> None:
    # The largest node has 16 cores and 8 cards; the task asks for 4/16 = 0.25 and 1/8 = 0.125 of it.
    #   large: rest (1 - 0.25)/2 + (1 - 0.125)/2 = 0.8125          best 100 * 0.1875 -> 18, worst -> 81
    #   small: rest (0.5 - 0.25)/2 + (0.25 - 0.125)/2 = 0.1875     best 100 * 0.8125 -> 81, worst -> 18
    task = Task(gpus=1, cpu=4)
    for nodes in ((node("large", 8, 16), node("small", 2, 8)), (node("small", 2, 8), node("large", 8, 16))):
        snapshot = Snapshot(nodes=nodes, jobs=(job("j", task),))
        assert solve("best-fit", snapshot)["j"][0] == "small"
        assert solve("worst-fit", snapshot)["j"][0] == "large"


def test_dot_product_prefers_what_is_least_aligned() -> None:
    # The largest node has 16 cores and 8 cards; the task asks for 8/16 = 0.5 and 1/8 = 0.125 of it.
    #   cores: 1 * 0.5 + 0.125 * 0.125 = 0.515625     100 * (1 - 0.2578125) -> 74
    #   cards: 0.5 * 0.5 + 1 * 0.125 = 0.375          100 * (1 - 0.1875) -> 81
    # Best fit, for comparison: cores 100 * (1 - 0.25) -> 75, cards 100 * (1 - 0.4375) -> 56.
    snapshot = Snapshot(nodes=(node("cores", 1, 16), node("cards", 8, 8)), jobs=(job("j", Task(gpus=1, cpu=8)),))
    assert solve("dot-product", snapshot)["j"][0] == "cards"
    assert solve("best-fit", snapshot)["j"][0] == "cores"


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        # used: the card in use has 50 % free, 100 - 50 // 10 = 95; free: 33 - 2 = 31
        (Task(gpus=1, gpu_share=0.3), ("used", [1])),
        # used: only its free card has room, 50 - 1 = 49
        (Task(gpus=1, gpu_share=0.6), ("used", [0])),
        (Task(gpus=1), ("used", [0])),
        (Task(gpus=2), ("free", [0, 1])),
        # 0 for every node without a card in question, so the first
        (Task(), ("free", [])),
    ],
)
def test_gpu_packing_keeps_cards_and_nodes_free(task: Task, expected: tuple[str, list[int]]) -> None:
    snapshot = Snapshot(nodes=(node("free", 2), node("used", 2)), jobs=(runs("r", "used", 1, 0.5), job("j", task)))
    assert solve("gpu-packing", snapshot)["j"] == expected


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        # base = 25 * (cards in use) // 4 is 0 idle, 6 whole, 9 both, 3 share
        # idle 25 + 0 = 25, whole 6, both 50 + 9 = 59, share 75 + 3 = 78
        (Task(gpus=1, gpu_share=0.1), "share"),
        # idle 25, whole 75 + 6 = 81, both 50 + 9 = 59, share 3
        (Task(gpus=1), "whole"),
        # no node holds a request of two cards: idle 25, whole 6, both 9, share 3
        (Task(gpus=2), "idle"),
        (Task(), "idle"),
    ],
)
def test_gpu_clustering_keeps_equal_requests_together(task: Task, expected: str) -> None:
    running = (
        runs("r0", "whole", 0),
        runs("r1", "both", 0),
        runs("r2", "both", 1, 0.5),
        runs("r3", "share", 0, 0.5),
    )
    nodes = tuple(node(name, 4) for name in ("idle", "whole", "both", "share"))
    assert solve("gpu-clustering", Snapshot(nodes=nodes, jobs=(*running, job("j", task))))["j"][0] == expected


def half_used() -> Snapshot:
    """A free card, a half-used one, and a task for each."""
    return Snapshot(
        nodes=(node("free", 1), node("half", 1)),
        jobs=(runs("r", "half", 0, 0.5), job("share", Task(gpus=1, gpu_share=0.5)), job("whole", Task(gpus=1))),
    )


def test_fgd_fills_what_others_cannot_use() -> None:
    # Expected: half a card and a whole card, each with probability 1/2.
    #   half: before, the whole task loses 0.5, F = 0.25; after, nothing is idle, F = 0. Fall 0.25.
    #   free: before, F = 0; after, the whole task loses 0.5, F = 0.25. Fall -0.25.
    assert solve("first-fit", half_used())["share"] == ("free", [0])
    assert solve("fgd", half_used()) == {"share": ("half", [0]), "whole": ("free", [0])}


def test_fgd_scores_are_whole_numbers() -> None:
    # 100 / (1 + exp(-0.25)) = 56.2 and 100 / (1 + exp(0.25)) = 43.8
    instance = compile_snapshot(half_used())
    rule = Fgd(Nodes(instance, np.arange(2)), np.random.default_rng(0))
    share = instance.job_classes[instance.job_class[0]].leaves[0].shape
    assert rule.scores(share, np.arange(2)).tolist() == [43, 56]


def test_fgd_counts_tasks_without_cards_as_unable_to_use_any() -> None:
    # Three tasks without cards and one of half a card, so 3/4 of what is idle is lost wherever it is.
    #   half: F falls from 0.75 * 0.5 to 0, by 0.375; free: from 0.75 to 0.75 * 0.5, by 0.375. A tie: the first node.
    jobs = (
        runs("r", "half", 0, 0.5),
        job("share", Task(gpus=1, gpu_share=0.5)),
        *(job(f"c{i}", Task()) for i in range(3)),
    )
    snapshot = Snapshot(nodes=(node("free", 1), node("half", 1)), jobs=jobs)
    assert solve("fgd", snapshot)["share"][0] == "free"


def test_fgd_tries_every_card() -> None:
    # Cards 0 and 1 have 0.5 and 0.7 free. Expected: 0.2 and 0.5 of a card, with probability 1/2 each; F = 0 before.
    #   on card 0: 0.3 and 0.7 are left, 0.5 cannot use the 0.3, F = 0.15: 100 / (1 + exp(0.15)) -> 46
    #   on card 1: 0.5 and 0.5 are left, F = 0: 50
    jobs = (
        runs("r0", "n", 0, 0.5),
        runs("r1", "n", 1, 0.3),
        job("fifth", Task(gpus=1, gpu_share=0.2)),
        job("half", Task(gpus=1, gpu_share=0.5)),
    )
    snapshot = Snapshot(nodes=(node("n", 2),), jobs=jobs)
    assert solve("fgd", snapshot)["fifth"] == ("n", [1])
    assert solve("best-fit", snapshot)["fifth"] == ("n", [0])


def test_random_uses_every_node_and_card_with_room() -> None:
    snapshot = Snapshot(
        nodes=(node("cpu", 0), node("a", 2), node("b", 1)), jobs=(job("j", Task(gpus=1, gpu_share=0.5)),)
    )
    found = {(where, *gpus) for where, gpus in (solve("random", snapshot, seed)["j"] for seed in range(60))}
    assert found == {("a", 0), ("a", 1), ("b", 0)}


# --- what all rules keep to ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", DETERMINED)
def test_ties_go_to_the_first_node_of_the_fixed_order(rule: str) -> None:
    snapshot = Snapshot(nodes=tuple(node(f"n{i}", 1) for i in range(9)), jobs=(job("j", Task(gpus=1)),))
    assert solve(rule, snapshot)["j"][0] == "n0"
    for seed in (1, 2, 3):
        first = int(np.random.default_rng(seed).permutation(9)[0])
        assert solve(rule, snapshot, seed)["j"][0] == f"n{first}"


@pytest.mark.parametrize("rule", HEURISTICS)
def test_same_seed_same_answer(rule: str) -> None:
    for number in range(20):
        instance = compile_snapshot(strategies.random_tiny(number, max_tasks=12))
        first, second = (
            HEURISTICS[rule].solve(instance, objectives=(), limits=Limits(), seed=3).assignment for _ in range(2)
        )
        assert rows(first) == rows(second)


def test_higher_priority_goes_first() -> None:
    low, high = job("low", Task(gpus=1)), job("high", Task(gpus=1))
    snapshot = Snapshot(nodes=(node("n", 1),), jobs=(low, replace(high, priority=1)))
    assert set(solve("best-fit", snapshot)) == {"high"}


def test_earlier_submission_goes_first() -> None:
    late, early = job("late", Task(gpus=1)), job("early", Task(gpus=1))
    jobs = (replace(late, submit_time=2.0), replace(early, submit_time=1.0))
    assert set(solve("best-fit", Snapshot(nodes=(node("n", 1),), jobs=jobs))) == {"early"}


@pytest.mark.parametrize("rule", HEURISTICS)
def test_no_nodes_and_no_jobs(rule: str) -> None:
    assert solve(rule, Snapshot(jobs=(job("j", Task(gpus=1)),))) == {}
    assert solve(rule, Snapshot(nodes=(node("n", 1),))) == {}
    assert solve(rule, Snapshot()) == {}


def test_a_deadline_in_the_past_places_nothing_and_says_so() -> None:
    instance = compile_snapshot(Snapshot(nodes=(node("n", 1),), jobs=(job("j", Task(gpus=1)),)))
    result = HEURISTICS["best-fit"].solve(instance, objectives=(), limits=Limits(deadline=0.0))
    assert result.stop is Stop.TIME
    assert len(result.assignment) == 0


@pytest.mark.parametrize("rule", HEURISTICS)
def test_the_independent_judge_accepts_everything(rule: str) -> None:
    @settings(max_examples=60, deadline=None)
    @given(strategies.snapshots(max_tasks=12))
    def judge(snapshot: Snapshot) -> None:
        instance = compile_snapshot(snapshot)
        for seed in (0, 1):
            result = HEURISTICS[rule].solve(instance, objectives=(), limits=Limits(), seed=seed)
            origin = Provenance(version="0", solver=rule, seed=seed, objectives=("value",))
            plan = plan_of(instance, result, {}, ("value",), origin, digest(snapshot))
            plan.checked = True
            assert check(snapshot, plan) == []
            # Kueue's and Slurm's rules place nothing on nodes that are not in the topology
            if not rule.startswith(("kueue-tas", "slurm")):
                no_single_task_was_forgotten(instance, result.assignment)

    judge()


def no_single_task_was_forgotten(instance: Instance, assignment: Assignment) -> None:
    """What is free only shrinks, so a job of one task that was refused cannot fit at the end."""
    state = State(instance)
    state.apply(assignment)
    for number in set(range(instance.jobs)) - set(assignment.job.tolist()):
        job_class = instance.job_classes[instance.job_class[number]]
        if len(job_class.leaves) == 1 and job_class.leaves[0].count * job_class.leaves[0].copies == 1:
            assert not state.fits(job_class.leaves[0].shape, np.arange(instance.nodes)).any()


def rows(assignment: Assignment) -> list[list[int]]:
    return [getattr(assignment, column.name).tolist() for column in dataclasses.fields(assignment)]
