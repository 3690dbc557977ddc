"""Isolation and limits of device memory: what each way to share a card gives, in the rule, the judge and in plans."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shared_cases import (
    CGROUP,
    CUDA,
    POLICIES,
    PROMISED,
    WAYS,
    card,
    fits,
    job,
    most_milli,
    node,
    shared_cards,
    shared_snapshots,
)

import placement as pl
from placement.check.filters import isolation as judged
from placement.check.filters import memory_limit, replica_memory
from placement.check.filters.sharing import refusal as exclusive
from placement.compile import compile as compile_snapshot
from placement.errors import SnapshotError
from placement.hardware.sharing import MODES, NEEDS, SOURCES, lacking
from placement.rules.card_model import Exclusive
from placement.rules.isolation import Isolation, MemoryLimit, ReplicaMemory
from placement.snapshot import Gpu, Job, Node, Snapshot, Task, TaskGroup
from placement.snapshot.read import verified

ANY_NODE = Node(name="n")


def test_every_statement_says_why_and_who_says_so() -> None:
    used = set()
    for mode in MODES.values():
        for need in NEEDS:
            guarantee = getattr(mode, need)
            assert guarantee.why
            assert guarantee.sources
            used.update(guarantee.sources)
    assert used | {"requirements", "mps-memory"} == set(SOURCES)


def test_the_judge_has_the_same_table() -> None:
    assert {name: set(mode.guaranteed) for name, mode in MODES.items() if name != "mig"} == {
        f"{way} {policy}".rstrip(): set(judged.guaranteed_by(card(way, vgpu_policy=policy)))
        for way in WAYS
        for policy in (POLICIES if way == "vgpu" else ("",))
    }
    assert {name: set(promised) for name, promised in PROMISED.items()} == {
        name: set(MODES[name].guaranteed) for name in WAYS
    }
    assert MODES["mig"].guaranteed == set(NEEDS)


def test_what_is_lacking_is_named_in_order() -> None:
    assert lacking("vgpu", ("security",)) is None
    assert lacking("vgpu", ("fault", "performance")) is MODES["vgpu"].performance
    assert lacking("mps", ()) is None


def refused(task: Task, gpu: Gpu) -> bool:
    rule, one = Isolation(), Job(name="j", groups=())
    refusal = rule.refusal(rule.task_key(one, task), rule.card_key(gpu, ANY_NODE))
    assert (refusal is None) == (judged.refusal(one, task, gpu) is None)
    return refusal is not None


@pytest.mark.parametrize("need", NEEDS)
def test_whole_cards_and_instances_have_everything(need: str) -> None:
    for way in WAYS:
        assert not refused(Task(gpus=1, isolation=(need,)), card(way))  # type: ignore[arg-type]
        assert not refused(Task(gpus=2, gpu_share=1, isolation=(need,)), card(way))  # type: ignore[arg-type]
    mig = Task(gpus=1, mig_profile="1g.10gb", isolation=(need,))  # type: ignore[arg-type]
    assert not refused(mig, card(mig_enabled=True))


def test_shares_have_what_the_mode_guarantees() -> None:
    half = Task(gpus=1, gpu_share="0.5", isolation=("security",))
    assert [way for way in WAYS if not refused(half, card(way))] == ["vgpu", "exclusive"]
    for need in ("performance", "fault"):
        one = Task(gpus=1, gpu_share=0.5, isolation=(need,))
        assert [way for way in WAYS if not refused(one, card(way))] == ["exclusive"]
    assert not any(refused(Task(gpus=1, gpu_share=0.5), card(way)) for way in WAYS)


@pytest.mark.parametrize("policy", POLICIES)
def test_time_is_ones_own_with_a_fixed_share_alone(policy: str) -> None:
    for need, promised in (("security", True), ("performance", policy == "fixed_share"), ("fault", False)):
        one = Task(gpus=1, gpu_share=0.5, isolation=(need,))  # type: ignore[arg-type]
        assert refused(one, card("vgpu", vgpu_policy=policy)) == (not promised)


def test_the_policy_is_named_in_the_reason() -> None:
    jobs = (job("a", 0.5, isolation=("performance",)),)
    cards = [card("vgpu", vgpu_policy=policy) for policy in ("equal_share", "fixed_share")]
    (waits,) = pl.solve(Snapshot(nodes=(node("n", cards[0]),), jobs=jobs)).pending
    assert (
        "isolation of performance is asked for, and sharing 'vgpu equal_share' does not guarantee it: all that run "
        "have equal parts of the time, smaller ones with every one that starts"
    ) in waits.detail
    snapshot = Snapshot(nodes=(node("n", *cards),), jobs=jobs)
    plan = pl.solve(snapshot)
    assert plan.tasks.gpus == [[1]]
    plan.tasks.gpus = [[0]]
    found = [one.what for one in pl.check(snapshot, plan) if one.rule == "isolation"]
    asks = "n gpu 0: the task asks for isolation of performance"
    assert found == [f"{asks}, which vgpu (equal_share) sharing does not guarantee"]


# --- device memory -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gpu", "cuda", "cgroup", "enforced", "partitioned"),
    [
        (card("shared"), "13.4", 2, False, False),
        (card("time_slicing"), "13.4", 2, False, False),
        (card("vgpu"), "", None, True, True),
        (card("exclusive"), "", None, True, True),
        (Gpu(model="A100-40GB", mig_enabled=True), "", None, True, True),
        (card("mps"), "", 2, False, False),
        (card("mps"), "11.4", 2, False, False),
        (card("mps"), "11.5", 2, True, False),
        (card("mps"), "13.3", 2, True, False),
        (card("mps"), "13.4", 1, True, False),
        (card("mps"), "13.4", None, True, False),
        (card("mps"), "13.4", 2, True, True),
        (card("mps"), "14", 2, True, True),
    ],
)
def test_where_device_memory_is_limited(gpu: Gpu, cuda: str, cgroup: Any, enforced: bool, partitioned: bool) -> None:
    rule, on, one = MemoryLimit(), Node(name="n", cuda=cuda, cgroup=cgroup), Job(name="j", groups=())
    for limit, held in (("enforced", enforced), ("partitioned", partitioned), ("", True)):
        for share in (0.5, 1, None):
            task = Task(gpus=1, gpu_share=share, gpu_memory=1, gpu_memory_limit=limit)  # type: ignore[arg-type]
            refusal = rule.refusal(rule.task_key(one, task), rule.card_key(gpu, on))
            assert (refusal is None) == (held or share != 0.5)
            assert (memory_limit.refusal(one, task, gpu, on) is None) == (refusal is None)


def test_a_plan_goes_by_the_versions_of_nodes() -> None:
    # nodes that differ in their software alone
    nodes = (
        node("old", card("mps"), cuda="11.4", cgroup=2),
        node("limits", card("mps"), cuda="12.4"),
        node("parts", card("mps"), cuda="13.4", cgroup=2),
        node("unknown", card("mps")),
    )
    jobs = (
        job("p", 0.5, 3, gpu_memory="1Gi", gpu_memory_limit="partitioned"),
        job("e", 0.5, 3, gpu_memory="1Gi", gpu_memory_limit="enforced"),
    )
    snapshot = Snapshot(nodes=nodes, jobs=jobs)
    plan = pl.solve(snapshot)
    # two halves on "parts", of which the third p finds none left; two of e beside, on "limits"
    assert sorted((row[0], row[3]) for row in plan.tasks) == [*[("e", "limits")] * 2, *[("p", "parts")] * 2]
    assert (plan.value, plan.status) == (2000, "proven")
    rows = zip(plan.tasks.job, plan.tasks.node, strict=True)
    plan.tasks.node = ["old" if name == "p" else there for name, there in rows]
    found = [one.what for one in pl.check(snapshot, plan) if one.rule == "memory_limit"]
    asks = "old gpu 0: the task asks that device memory be partitioned"
    assert found == [f"{asks}, which mps sharing does with CUDA 13.4, the node has 11.4"] * 2


@pytest.mark.parametrize(
    ("gpu", "on", "reason"),
    [
        (card("time_slicing"), {"cuda": "13.4"}, "sharing 'time_slicing' does not limit it"),
        (card("mps"), {"cuda": "13.1"}, "MPS partitions memory from CUDA 13.4 on, which the node is not known to have"),
        (card("mps"), {"cuda": "13.4"}, "MPS partitions memory by cgroup 2, which the node is not known to have"),
    ],
)
def test_never_says_what_the_node_lacks(gpu: Gpu, on: dict[str, Any], reason: str) -> None:
    jobs = (job("a", 0.5, gpu_memory="1Gi", gpu_memory_limit="partitioned"),)
    (waits,) = pl.solve(Snapshot(nodes=(node("n", gpu, **on),), jobs=jobs)).pending
    assert waits.reason == "never"
    assert f"device memory is to be partitioned: {reason}" in waits.detail


def test_limits_on_how_many_leave_out_cards_that_do_not_do() -> None:
    # the card for two tasks takes none of this sort, so nothing has to count as half a card
    nodes = (node("n", card("vgpu")), node("m", card("mps", replicas=2), cuda="11.4"))
    instance = compile_snapshot(
        verified(Snapshot(nodes=nodes, jobs=(job("a", 0.1, gpu_memory=1, gpu_memory_limit="enforced"),)))
    )
    assert instance.exact


def test_a_limit_takes_an_amount() -> None:
    with pytest.raises(SnapshotError) as caught:
        verified(Snapshot(jobs=(job("a", 0.5, gpu_memory_limit="enforced"),)))
    assert str(caught.value.problems[0]) == (
        'jobs[0].groups[0].task.gpu_memory_limit: found "enforced", but the task does not say how much memory it may '
        "have; state `gpu_memory`, or leave it out"
    )
    mig = TaskGroup(name="g", task=Task(gpus=1, mig_profile="1g.10gb", gpu_memory_limit="partitioned"))
    verified(Snapshot(jobs=(Job(name="m", groups=(mig,)),)))


def test_a_plan_puts_tasks_where_they_are_safe() -> None:
    # a's three quarters would fit on the slices too; b, which asks for nothing, has to make room on the vGPU card
    cluster = (node("slices", card("time_slicing")), node("virtual", card("vgpu")))
    jobs = (job("b", 0.75), job("a", 0.75, isolation=("security",)))
    plan = pl.solve(Snapshot(nodes=cluster, jobs=jobs))
    assert plan.checked
    assert plan.status == "proven"
    assert {row[0]: row[3] for row in plan.tasks} == {"a": "virtual", "b": "slices"}
    assert plan.value == 1500


def test_never_says_what_is_missing() -> None:
    snapshot = Snapshot(nodes=(node("n", card("mps")),), jobs=(job("a", 0.5, isolation=("fault",)),))
    (waits,) = pl.solve(snapshot).pending
    assert waits.reason == "never"
    assert "isolation of fault is asked for, and sharing 'mps' does not guarantee it" in waits.detail


def test_a_whole_card_of_a_shared_mode_will_do() -> None:
    snapshot = Snapshot(nodes=(node("n", card("mps")),), jobs=(job("a", isolation=("fault", "performance")),))
    assert len(pl.solve(snapshot).tasks) == 1


def test_the_judge_finds_a_task_that_is_not_isolated() -> None:
    nodes, jobs = (node("n", card("vgpu"), card("shared")),), (job("a", 0.5, isolation=("security",)),)
    snapshot = Snapshot(nodes=nodes, jobs=jobs)
    plan = pl.solve(snapshot)
    assert plan.tasks.gpus == [[0]]
    plan.tasks.gpus = [[1]]
    (found,) = (one for one in pl.check(snapshot, plan) if one.path.startswith("tasks"))
    assert str(found) == (
        "isolation: tasks[0]: n gpu 1: the task asks for isolation of security, which shared sharing does not guarantee"
    )


def test_jobs_that_ask_for_other_things_are_told_apart() -> None:
    # two jobs that differ in isolation alone: one may be anywhere, the other nowhere
    jobs = (job("a", 0.5), job("b", 0.5, isolation=("performance",)))
    plan = pl.solve(Snapshot(nodes=(node("n", card("vgpu")),), jobs=jobs))
    assert plan.tasks.job == ["a"]


tasks = st.builds(
    Task,
    gpus=st.just(1),
    gpu_share=st.sampled_from((None, 1, 0.5, "0.25")),
    gpu_memory=st.sampled_from((None, 2**31, 2**32, 3 * 2**30)),
    gpu_memory_limit=st.sampled_from(("", "enforced", "partitioned")),
    isolation=st.lists(st.sampled_from(NEEDS), unique=True).map(tuple),
)
machines = st.builds(Node, name=st.just("n"), cuda=st.sampled_from(CUDA), cgroup=st.sampled_from(CGROUP))


@given(tasks, shared_cards(list(WAYS)), machines)
def test_rule_and_judge_and_words_agree(task: Task, gpu: Gpu, on: Node) -> None:
    one = Job(name="j", groups=())
    rules = [
        rule.refusal(rule.task_key(one, task), rule.card_key(gpu, on))
        for rule in (Exclusive(), Isolation(), ReplicaMemory(), MemoryLimit())
    ]
    said = [judge(one, task, gpu) for judge in (exclusive, judged.refusal, replica_memory.refusal)]
    said.append(memory_limit.refusal(one, task, gpu, on))
    assert [text is None for text in rules] == [text is None for text in said]
    assert fits(task, gpu, on) == (rules == [None] * 4)


@settings(max_examples=25)
@given(shared_snapshots(most_tasks=4))
def test_plans_are_as_good_as_the_best_of_all(snapshot: Snapshot) -> None:
    plan = pl.solve(snapshot, objectives=("value",))
    assert pl.check(snapshot, plan) == []
    best = float(most_milli(snapshot))
    if plan.status == "proven":
        assert plan.value == best
    assert plan.value is not None
    assert plan.value <= best
    assert plan.bound is None or plan.bound >= best - 1e-6
