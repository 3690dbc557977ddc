"""What sharing cards means in a plan: worked out by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import placement as pl
from placement.hardware import mig
from placement.hardware.layouts import feasible
from placement.snapshot import Gpu, Job, Node, Running, RunningTask, Snapshot, Task, TaskGroup
from placement.snapshot.cluster import MigInstance
from placement.snapshot.workload import Duration

GIB, MIB = 2**30, 2**20


def job(name: str, task: Task, place: RunningTask | None = None, count: int = 1) -> Job:
    running = None if place is None else Running(tasks=(place,))
    return Job(name=name, count=count, groups=(TaskGroup(name="g", task=task),), running=running)


def at(card: int, start: int | None = None) -> RunningTask:
    return RunningTask(group="g", index=0, node="n", gpus=(card,), mig_starts=() if start is None else (start,))


def measured(gpus: tuple[Gpu, ...], *jobs: Job) -> pl.Sharing:
    snapshot = Snapshot(nodes=(Node(name="n", gpus=gpus),), jobs=jobs)
    return pl.sharing(snapshot, pl.solve(snapshot, solver="first-fit"))


HALF = Task(gpus=1, gpu_share="0.5")


@pytest.mark.parametrize(
    ("mode", "factor"),
    # two take turns: 4 % for memory and a seventh of 15 % for scheduling, 1.04 + 0.15 / 7
    [("time_slicing", Fraction(104, 100) + Fraction(15, 700)), ("mps", Fraction(1)), ("shared", Fraction(1))],
)
def test_two_on_a_card_fall_together(mode: str, factor: Fraction) -> None:
    found = measured((Gpu(model="T4", sharing=mode, count=2),), job("a", HALF), job("b", HALF), job("c", Task(gpus=1)))  # type: ignore[arg-type]
    assert [(one.job, one.falls_with) for one in found.jobs] == [("a", ("b",)), ("b", ("a",))]
    assert {one.slow_down for one in found.jobs} == {float(factor)}
    assert found.slow_down == float((2 * factor + 1) / 3)
    assert found.slow_down_p99 == float(factor)
    assert found.most_exposed == 1


def test_one_alone_takes_no_turns() -> None:
    found = measured((Gpu(model="T4", sharing="time_slicing"),), job("a", HALF))
    assert (found.jobs, found.slow_down, found.most_exposed) == ((), 1.0, 0)


def test_tasks_of_one_job_are_nobody_elses_fault() -> None:
    both = Job(name="a", groups=(TaskGroup(name="g", count=2, task=HALF),))
    found = measured((Gpu(model="T4", sharing="time_slicing"),), both)
    # who runs longer is listed, though nobody else is there: 1.04 + 0.15 / 7 for two who take turns
    assert [(one.job, one.falls_with) for one in found.jobs] == [("a", ())]
    assert found.jobs[0].slow_down == found.slow_down == pytest.approx(1.04 + 0.15 / 7)
    assert found.most_exposed == 0


@pytest.mark.parametrize("there", [1, 2, 4])
@pytest.mark.parametrize("stated", [None, 3.0])
@pytest.mark.parametrize(("policy", "share"), [("fixed_share", 0.25), ("equal_share", 0.25), ("fixed_share", 1)])
def test_a_fixed_part_is_the_same_whoever_is_there(there: int, stated: float | None, policy: str, share: float) -> None:
    """1.04 + 0.15 · 3 / 7 for four, whoever is there; with equal parts for those there; a whole card has no turns."""
    gpu = Gpu(model="T4", sharing="vgpu", vgpu_policy=policy, replicas=4, count=there if share == 1 else 1)  # type: ignore[arg-type]
    group = TaskGroup(name="g", task=Task(gpus=1, gpu_share=share))
    duration = Duration(seconds=100, shared=stated)
    found = measured((gpu,), Job(name="a", count=there, groups=(group,), duration=duration))
    turns = 0 if share == 1 else 4 if policy == "fixed_share" else there
    factor = (stated or 1.04 + 0.15 * (turns - 1) / 7) if turns > 1 else 1.0
    assert found.slow_down == pytest.approx(factor)
    assert found.slow_down_p99 == pytest.approx(factor)
    assert [one.slow_down for one in found.jobs] == [pytest.approx(factor)] * (there if turns > 1 else 0)


def test_mig_instances_fall_alone() -> None:
    small = Task(gpus=1, mig_profile="1g.5gb")
    found = measured((Gpu(model="A100-40GB", mig_enabled=True),), job("a", small), job("b", small))
    assert [(one.job, one.falls_with, one.slow_down) for one in found.jobs] == [("a", (), 1.0), ("b", (), 1.0)]


def test_running_work_may_ask_for_more_memory_than_there_is() -> None:
    # 10 + 10 GiB on 16
    task = Task(gpus=1, gpu_share="0.5", gpu_memory="10Gi")
    found = measured((Gpu(model="T4", memory="16Gi"),), job("a", task, at(0)), job("b", task, at(0)))
    assert [(load.node, load.card, load.asked, load.memory) for load in found.oversubscribed] == [
        ("n", 0, 20.0 * GIB, 16.0 * GIB)
    ]


def test_slots_that_no_profile_reaches() -> None:
    # 1g at 4, 5 and 6 of an A100: slot 7 is no start of a 1g, and what starts at 6 or 4 and covers it is in the way.
    # Free are 0 to 3 and 7. On 0 to 3: four 1g, two double-memory 1g (0, 2), two 2g (0, 2), a 3g (0), a 4g (0), no 7g.
    task = Task(gpus=1, mig_profile="1g.5gb", gpu_memory="4Gi")
    running = [job(f"r{start}", task, at(0, start)) for start in (4, 5, 6)]
    found = measured((Gpu(model="A100-40GB", mig_enabled=True, count=2),), *running)
    (room,) = found.mig
    assert (room.model, room.cards, room.used) == ("A100-40GB", 2, 1)
    # the other card is empty: 8 free slots, all of them reached by a 7g
    assert (room.free_slots, room.stranded_slots) == (5 + 8, 1)
    assert room.capability == {
        "1g.5gb": 4 + 7,
        "1g.10gb": 2 + 4,
        "2g.10gb": 2 + 3,
        "3g.20gb": 1 + 2,
        "4g.20gb": 1 + 1,
        "7g.40gb": 0 + 1,
    }
    # a 1g has 4,864 MiB, of which 4,096 are asked for
    assert room.wasted_memory == 3 * (4864 - 4096) * MIB


def test_memory_that_no_waiting_job_can_use() -> None:
    # 4 of 16 GiB are left beside 12; one that waits needs 6, and on the other card only 0.25 of the card is left
    wide = Task(gpus=1, gpu_share="0.75", gpu_memory="2Gi")
    deep = Task(gpus=1, gpu_share="0.5", gpu_memory="12Gi")
    waits = Task(gpus=1, gpu_share="0.5", gpu_memory="6Gi")
    found = measured(
        (Gpu(model="T4", memory="16Gi", count=2),), job("a", deep, at(0)), job("b", wide, at(1)), job("c", waits)
    )
    assert (found.idle_memory, found.unusable_memory) == ((4 + 14) * GIB, (4 + 14) * GIB)
    # with one that needs 3 GiB and a quarter waiting too, and room for it on neither for want of models
    other = Task(gpus=1, gpu_share="0.25", gpu_memory="3Gi")
    found = measured(
        (Gpu(model="T4", memory="16Gi", count=2),),
        job("a", deep, at(0)),
        job("b", wide, at(1)),
        job("c", waits),
        job("d", other, count=4),
    )
    # three of them start (two quarters beside the half of `a`, but 4 GiB hold one only; one beside `b`): a quarter of
    # card 0 with 1 GiB is left, and nothing of card 1, so what waits fits nowhere
    assert (found.idle_memory, found.unusable_memory) == ((1 + 11) * GIB, (1 + 11) * GIB)


def test_cards_that_take_nothing_new_have_no_room() -> None:
    # of three cards one is unhealthy; one keeps a 3g and a 1g, of which the 1g runs: a 3g of 4 slots is left there
    layout = (MigInstance(profile="3g.20gb", start=4), MigInstance(profile="1g.5gb", start=0))
    static = Gpu(model="A100-40GB", mig_enabled=True, mig_static=True, mig_layout=layout)
    broken = Gpu(model="A100-40GB", mig_enabled=True, health="unhealthy")
    (room,) = measured((static, broken), job("r", Task(gpus=1, mig_profile="1g.5gb"), at(0, 0))).mig
    assert (room.cards, room.used, room.free_slots, room.stranded_slots) == (2, 1, 4, 0)
    assert {name: number for name, number in room.capability.items() if number} == {"3g.20gb": 1}


@pytest.mark.parametrize(
    ("gpu", "task", "more", "unusable"),
    [
        (Gpu(model="T4", memory="16Gi"), HALF, {"cordoned": True}, 16),
        (
            Gpu(model="T4", memory="16Gi", sharing="time_slicing"),
            Task(gpus=1, gpu_share="0.5", isolation=("fault",)),
            {},
            16,
        ),
        (Gpu(model="T4", memory="16Gi"), Task(gpus=1, gpu_share="0.5", node_selector={"a": "b"}), {}, 16),
        (Gpu(model="T4", memory="16Gi"), Task(gpus=2), {}, 16),
        (Gpu(model="T4", memory="16Gi"), Task(gpus=1, cpu=9), {"cpu": 8}, 0),  # cores are not a matter of cards
    ],
)
def test_filters_say_who_could_use_memory(gpu: Gpu, task: Task, more: dict[str, object], unusable: int) -> None:
    snapshot = Snapshot(nodes=(Node(name="n", gpus=(gpu,), **more),), jobs=(job("a", task),))  # type: ignore[arg-type]
    found = pl.sharing(snapshot, pl.solve(snapshot, solver="first-fit"))
    assert (found.idle_memory, found.unusable_memory) == (16 * GIB, unusable * GIB)


def test_full_of_clients() -> None:
    gpu = Gpu(model="T4", memory="16Gi", sharing="mps", replicas=1)
    found = measured((gpu,), job("r", Task(gpus=1, gpu_share="0.5", gpu_memory="4Gi"), at(0)), job("a", HALF))
    assert (found.idle_memory, found.unusable_memory) == (12 * GIB, 12 * GIB)


def test_what_a_job_says_of_sharing_goes_first() -> None:
    own = Job(name="a", groups=(TaskGroup(name="g", task=HALF),), duration=Duration(seconds=100, shared=3))
    found = measured((Gpu(model="T4", sharing="time_slicing"),), own, job("b", HALF))
    assert {one.job: one.slow_down for one in found.jobs} == {"a": 3.0, "b": pytest.approx(1.04 + 0.15 / 7)}


@settings(max_examples=60)
@given(st.data())
def test_capability_is_what_could_be_created(data: st.DataObject) -> None:
    """For one card, against all feasible sets of its model."""
    geometry = mig.geometry(data.draw(st.sampled_from(("A30", "A100-40GB", "RTX-PRO-6000"))))
    assert geometry is not None
    sets = list(feasible(geometry, [profile for profile in geometry.profiles if profile.name.endswith("gb")]))
    there = data.draw(st.sampled_from(sorted(sets, key=str)))
    running = [
        job(f"r{start}", Task(gpus=1, mig_profile=profile.name), at(0, start))
        for profile, start in sorted(there, key=str)
    ]
    (room,) = measured((Gpu(model=geometry.model, mig_enabled=True),), *running).mig
    beyond = [other for other in sets if set(there) <= set(other)]
    for name, most in room.capability.items():
        added = [[profile.name for profile, _ in set(other) - set(there)] for other in beyond]
        assert most == max(len(names) for names in added if set(names) <= {name})
    covered = {
        slot
        for other in beyond
        for profile, start in set(other) - set(there)
        for slot in range(start, start + profile.size)
    }
    taken = sum(profile.size for profile, _ in there)
    assert room.free_slots == geometry.slots - taken
    assert room.stranded_slots == geometry.slots - taken - len(covered)
