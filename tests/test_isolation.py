"""Isolation: what each way to share a card guarantees, by hand, in the rule, in the judge and in plans."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shared_cases import PROMISED, WAYS, card, fits, job, most_milli, node, shared_cards, shared_snapshots

import placement as pl
from placement.check import isolation as judged
from placement.check import replica_memory
from placement.check.sharing import refusal as exclusive
from placement.hardware.sharing import MODES, NEEDS, SOURCES, lacking
from placement.rules.card_model import Exclusive
from placement.rules.isolation import Isolation, ReplicaMemory
from placement.snapshot import Gpu, Job, Snapshot, Task


def test_every_statement_says_why_and_who_says_so() -> None:
    used = set()
    for mode in MODES.values():
        for need in NEEDS:
            guarantee = getattr(mode, need)
            assert guarantee.why
            assert guarantee.sources
            used.update(guarantee.sources)
    assert used | {"requirements"} == set(SOURCES)


def test_the_judge_has_the_same_table() -> None:
    assert {name: set(mode.guaranteed) for name, mode in MODES.items() if name != "mig"} == {
        name: set(judged.GUARANTEED.get(name, ())) for name in WAYS
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
    refusal = rule.refusal(rule.task_key(one, task), rule.card_key(gpu))
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
    isolation=st.lists(st.sampled_from(NEEDS), unique=True).map(tuple),
)


@given(tasks, shared_cards(list(WAYS)))
def test_rule_and_judge_and_words_agree(task: Task, gpu: Gpu) -> None:
    one = Job(name="j", groups=())
    rules = [rule.refusal(rule.task_key(one, task), rule.card_key(gpu)) for rule in (Exclusive(), Isolation())]
    rules.append(ReplicaMemory().refusal(ReplicaMemory().task_key(one, task), ReplicaMemory().card_key(gpu)))
    said = [exclusive(one, task, gpu), judged.refusal(one, task, gpu), replica_memory.refusal(one, task, gpu)]
    assert [text is None for text in rules] == [text is None for text in said]
    assert fits(task, gpu) == (rules == [None] * 3)


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
