"""What went wrong with MIG and shared cards elsewhere, each as a question with its right answer.

The reports are named by repository and number; the numbers in them are facts, the cases are this project's own. Sizes
in slots: of eight, 1g has one (starting at 0 to 6), 2g two (0, 2, 4), 3g four (0, 4), 4g four (0), 7g all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

import placement as pl
from placement.snapshot import (
    DomainLimit,
    Gpu,
    Job,
    MigInstance,
    Node,
    Running,
    RunningTask,
    Snapshot,
    Task,
    TaskGroup,
    Topology,
)

SMALL = Gpu(model="A100-40GB", mig_enabled=True)
LARGE = Gpu(model="A100-80GB", mig_enabled=True)
HOPPER = Gpu(model="H100-80GB", mig_enabled=True)
A30 = Gpu(model="A30-24GB", mig_enabled=True)
OFF = Gpu(model="A100-40GB")


def wants(profile: str, count: int = 1, **more: Any) -> Job:
    """Return a job of tasks with an instance each, of which any number may run."""
    task = Task(gpus=1, mig_profile=profile, **more)
    return Job(name=f"new-{profile}", groups=(TaskGroup(name="w", count=count, min_count=1, task=task),))


def runs(profile: str, *places: tuple[int, int], node: str = "n") -> Job:
    """Return a running job with an instance at each card and slot."""
    tasks = tuple(
        RunningTask(group="w", index=i, node=node, gpus=(card,), mig_starts=(slot,))
        for i, (card, slot) in enumerate(places)
    )
    group = TaskGroup(name="w", count=len(places), task=Task(gpus=1, mig_profile=profile))
    return Job(name=f"old-{profile}-{node}", groups=(group,), running=Running(tasks=tasks))


def plain(count: int = 1, name: str = "plain", **task: Any) -> Job:
    """Return a job of tasks with cards, or shares of them, of which any number may run."""
    group = TaskGroup(name="w", count=count, min_count=1, task=Task(**{"gpus": 1, **task}))
    return Job(name=name, groups=(group,))


def on(*gpus: Gpu, jobs: tuple[Job, ...], **more: Any) -> Snapshot:
    return Snapshot(nodes=(Node(name="n", gpus=gpus),), jobs=jobs, **more)


def solved(snapshot: Snapshot) -> pl.Plan:
    """Return a plan that is proven and that the judge accepts."""
    plan = pl.solve(snapshot, time_limit=20)
    assert pl.check(snapshot, plan) == []
    assert plan.status == "proven"
    return plan


def started(snapshot: Snapshot) -> int:
    return len(solved(snapshot).tasks)


def slots(plan: pl.Plan) -> list[tuple[str, list[int], list[int]]]:
    """Return node, cards and first slots of new tasks, sorted."""
    assert isinstance(plan.tasks.mig_starts, list)
    return sorted(zip(plan.tasks.node, plan.tasks.gpus, plan.tasks.mig_starts, strict=True))


def layout(*instances: tuple[str, int]) -> tuple[MigInstance, ...]:
    return tuple(MigInstance(profile=profile, start=start) for profile, start in instances)


# --- where instances lie decides, not how much is free ---------------------------------------------------------------

# instances of 1g at 0, 1 and 5 leave slots 2, 3, 4, 6 and 7
LEFT_BY_HOLES = [
    ("1g.10gb", [2, 3, 4, 6]),
    ("1g.20gb", [2, 6]),
    ("2g.20gb", [2]),
    ("3g.40gb", []),
    ("4g.40gb", []),
    ("7g.80gb", []),
]


@pytest.mark.parametrize(("profile", "starts"), LEFT_BY_HOLES)
def test_holes_block_larger_profiles(profile: str, starts: list[int]) -> None:
    """kubernetes-sigs/dra-driver-nvidia-gpu 933: four compute slices are free, and no 3g can be created."""
    plan = solved(on(HOPPER, jobs=(runs("1g.10gb", (0, 0), (0, 1), (0, 5)), wants(profile, 8))))
    assert [slot for _, _, (slot,) in slots(plan)] == starts if starts else not plan.tasks


def test_the_same_three_at_the_end_block_nothing() -> None:
    plan = solved(on(HOPPER, jobs=(runs("1g.10gb", (0, 4), (0, 5), (0, 6)), wants("4g.40gb"))))
    assert slots(plan) == [("n", [0], [0])]


@pytest.mark.parametrize("gpu", [SMALL, LARGE, HOPPER])
def test_small_instances_that_come_one_by_one_leave_room_for_large_ones(gpu: Gpu) -> None:
    """Up to three of 1g go where 4g does not start: it needs slots 0 to 3, and 4 to 6 are three."""
    tiny, large = ("1g.5gb", "4g.20gb") if gpu is SMALL else ("1g.10gb", "4g.40gb")
    held: list[tuple[int, int]] = []
    for _ in range(3):
        plan = solved(on(gpu, jobs=(*((runs(tiny, *held),) if held else ()), wants(tiny))))
        held += [(0, slot) for _, _, (slot,) in slots(plan)]
        assert started(on(gpu, jobs=(runs(tiny, *held), wants(large)))) == 1


def test_a_3g_leaves_the_slots_of_a_4g() -> None:
    """3g at 0 would block the only start of 4g; alone on the card it goes to 4."""
    assert slots(solved(on(SMALL, jobs=(wants("3g.20gb"),)))) == [("n", [0], [4])]


# --- several cards ---------------------------------------------------------------------------------------------------


def test_seven_small_ones_share_a_card_where_whole_cards_are_wanted() -> None:
    """kubernetes-sigs/dra-driver-nvidia-gpu 932, NVIDIA/k8s-device-plugin 1621: seven 1g spread over three cards leave
    no card for 7g, on one card they leave two."""
    nodes = (Node(name="n", gpus=(replace(HOPPER, count=2),)), Node(name="m", gpus=(HOPPER,)))
    snapshot = Snapshot(nodes=nodes, jobs=(wants("1g.10gb", 7), wants("7g.80gb", 2)))
    plan = solved(snapshot)
    assert len(plan.tasks) == 9
    cards = Counter((node, *gpus) for node, gpus, _ in slots(plan))
    assert sorted(cards.values()) == [1, 1, 7]


def test_seven_small_ones_that_come_one_by_one_stay_on_one_card() -> None:
    """The same without knowing what comes: each new one goes beside those that run, and 7g has two cards in the end."""
    held: list[tuple[int, int]] = []
    gpus = replace(HOPPER, count=3)
    for _ in range(7):
        before = (runs("1g.10gb", *held),) if held else ()
        plan = solved(on(gpus, jobs=(*before, wants("1g.10gb"))))
        held += [(gpu, slot) for _, (gpu,), (slot,) in slots(plan)]
    assert started(on(gpus, jobs=(runs("1g.10gb", *held), wants("7g.80gb", 3)))) == 2


def test_4g_2g_and_1g_are_one_card() -> None:
    """kubernetes-sigs/dra-driver-nvidia-gpu 897: three instances of one card, and not one card for each."""
    profiles = ("4g.40gb", "2g.20gb", "1g.10gb")
    parts = tuple(TaskGroup(name=f"g{i}", task=Task(gpus=1, mig_profile=one)) for i, one in enumerate(profiles))
    one_node = TaskGroup(name="together", groups=parts, topology=Topology(required="node"))
    plan = solved(on(HOPPER, jobs=(Job(name="j", groups=(one_node,)),)))
    assert slots(plan) == [("n", [0], [0]), ("n", [0], [4]), ("n", [0], [6])]
    # twice on two cards: 14 slices of 14, so that each card has one of each
    plan = solved(on(replace(HOPPER, count=2), jobs=(Job(name="j", count=2, groups=(one_node,)),)))
    assert slots(plan) == [("n", [card], [slot]) for card in (0, 1) for slot in (0, 4, 6)]
    # three times: what is left over waits as a whole
    assert started(on(replace(HOPPER, count=2), jobs=(Job(name="j", count=3, groups=(one_node,)),))) == 6


def test_capacities_of_profiles_are_alternatives() -> None:
    """openshift/instaslice-operator 285: four cards take 28 of 1g or 4 of 7g, never both; a card with MIG off none."""
    gpus = (replace(SMALL, count=4), OFF)
    alone = {"1g.5gb": 28, "2g.10gb": 12, "3g.20gb": 8, "4g.20gb": 4, "7g.40gb": 4}
    for profile, most in alone.items():
        assert started(on(*gpus, jobs=(wants(profile, most + 1),))) == most
    plan = solved(on(*gpus, jobs=tuple(wants(profile, most) for profile, most in alone.items())))
    assert plan.usage.gpus_allocated == pytest.approx(4)


@pytest.mark.parametrize("busy", [0, 1, 3, 4])
def test_a_7g_needs_a_card_on_which_nothing_runs(busy: int) -> None:
    old = (runs("1g.5gb", *((card, card) for card in range(busy))),) if busy else ()
    assert started(on(replace(SMALL, count=4), jobs=(*old, wants("7g.40gb", 4)))) == 4 - busy


# --- whole cards and slices ------------------------------------------------------------------------------------------


def test_a_card_is_whole_or_cut() -> None:
    """kubernetes-sigs/dra-driver-nvidia-gpu 719: one card handed out as a whole and as a slice."""
    for jobs in ((plain(), wants("3g.20gb")), (wants("3g.20gb"), plain())):
        assert [job for job, *_ in solved(on(SMALL, jobs=jobs)).tasks] == ["new-3g.20gb"]
        assert [job for job, *_ in solved(on(OFF, jobs=jobs)).tasks] == ["plain"]
    assert started(on(SMALL, jobs=(plain(gpu_share=0.5),))) == 0
    whole = RunningTask(group="w", index=0, node="n", gpus=(0,))
    with pytest.raises(pl.SnapshotError, match="MIG is on for card 0"):
        solved(on(SMALL, jobs=(replace(plain(), running=Running(tasks=(whole,))),)))


def test_whole_cards_are_those_with_mig_off() -> None:
    """NVIDIA/k8s-device-plugin 738: eight cards, four of them cut into seven; four are whole, not eight."""
    gpus = replace(LARGE, count=4), replace(LARGE, count=4, mig_enabled=False)
    plan = solved(on(*gpus, jobs=(plain(8), wants("1g.10gb", 30))))
    assert Counter(job for job, *_ in plan.tasks) == {"plain": 4, "new-1g.10gb": 28}


def test_instances_are_counted_once_and_as_parts_of_their_card() -> None:
    """kai-scheduler/KAI-Scheduler 422, NVIDIA/k8s-device-plugin 2036: neither a card more for each instance, nor the
    instances beside their card."""
    plan = solved(on(replace(SMALL, count=2), jobs=(runs("3g.20gb", (0, 4)), wants("4g.20gb"), wants("2g.10gb"))))
    # 3/7 + 4/7 + 2/7 of two cards
    assert plan.usage.gpus == 2
    assert plan.usage.gpus_allocated == pytest.approx(9 / 7)


def test_caps_on_cards_count_parts_of_them() -> None:
    """A cap of one card: seven of 1g on two cards, or four beside a 3g that runs."""
    gpus, cap = replace(SMALL, count=2), (DomainLimit(level="cluster", gpus=1),)
    assert started(on(gpus, jobs=(wants("1g.5gb", 14),), limits=cap)) == 7
    assert started(on(gpus, jobs=(runs("3g.20gb", (0, 4)), wants("1g.5gb", 14)), limits=cap)) == 4


# --- layouts that exist ----------------------------------------------------------------------------------------------

LAYOUTS = [["7g.80gb"], ["2g.20gb"] * 3, ["3g.40gb", "4g.40gb"], ["1g.10gb", "2g.20gb", "4g.40gb"]]
FULL = layout(*(("1g.10gb", slot) for slot in range(7)))


def each(profiles: list[str]) -> Iterator[Job]:
    yield from (wants(profile, count) for profile, count in Counter(profiles).items())


@pytest.mark.parametrize("profiles", LAYOUTS, ids="+".join)
def test_old_instances_make_a_layout_impossible_only_while_they_stay(profiles: list[str]) -> None:
    """NVIDIA/mig-parted 29, Project-HAMi/HAMi 948: legal layouts refused on cards that are full of old instances."""
    jobs = tuple(each(profiles))
    assert started(on(LARGE, jobs=jobs)) == len(profiles)
    assert started(on(replace(LARGE, mig_layout=FULL), jobs=jobs)) == len(profiles)
    # those that stay are of 1g alone
    kept = started(on(replace(LARGE, mig_layout=FULL, mig_static=True), jobs=jobs))
    assert kept == profiles.count("1g.10gb")


# with the 1g at slot 6 in use: 2g has 0, 2 and 4; 4g has 0, and 3g at 4 is blocked; 4g + 2g beside it, and no other 1g
@pytest.mark.parametrize(("profiles", "number"), list(zip(LAYOUTS, [0, 3, 1, 2], strict=True)), ids=str)
def test_an_old_instance_in_use_stays(profiles: list[str], number: int) -> None:
    new = tuple(each([one for one in profiles if one != "1g.10gb"]))
    assert started(on(replace(LARGE, mig_layout=FULL), jobs=(runs("1g.10gb", (0, 6)), *new))) == number


def test_a_card_without_any_instance_blocks_nothing() -> None:
    """kai-scheduler/KAI-Scheduler 1120: a profile that is there zero times kept other work from the node."""
    empty = replace(SMALL, mig_static=True)
    plan = solved(on(empty, OFF, jobs=(plain(), wants("1g.5gb"))))
    assert [(job, gpus) for job, _, _, _, gpus in plan.tasks] == [("plain", [1])]


# --- names -----------------------------------------------------------------------------------------------------------


def test_spellings_of_a_profile_are_one_profile() -> None:
    """NVIDIA/gpu-feature-discovery 7: a label says 3g.21gb, the resource 3g.20gb; it is there twice, not four times."""
    spellings = ("3g.20gb", "3g.21gb", "mig-3g.20gb", "nvidia.com/mig-3g.20gb")
    jobs = tuple(replace(wants(one), name=f"j{i}") for i, one in enumerate(spellings))
    for one in jobs:
        assert started(on(SMALL, jobs=(one,))) == 1
    assert started(on(SMALL, jobs=jobs)) == 2
    exists = replace(SMALL, mig_static=True, mig_layout=layout(("3g.21gb", 0), ("mig-3g.20gb", 4)))
    assert started(on(exists, jobs=jobs)) == 2


def test_media_engines_make_another_profile() -> None:
    """openshift/instaslice-operator 478: 2g.12gb beside two 1g.6gb was taken to be 2g.12gb+me."""
    beside = (runs("1g.6gb", (0, 0), (0, 1)), wants("2g.12gb"))
    assert slots(solved(on(A30, jobs=beside))) == [("n", [0], [2])]
    assert started(on(A30, jobs=(wants("2g.12gb", 2),))) == 2
    assert started(on(A30, jobs=(wants("2g.12gb+me", 2),))) == 1
    assert started(on(A30, jobs=(wants("2g.12gb+me", 2), wants("2g.12gb", 2)))) == 2
    only = replace(A30, mig_static=True, mig_layout=layout(("2g.12gb+me", 0)))
    assert started(on(only, jobs=(wants("2g.12gb"),))) == 0
    assert started(on(only, jobs=(wants("2g.12gb.me"),))) == 1


def test_a_name_is_that_of_a_card() -> None:
    """nebuly-ai/nos, table of known configurations: a profile of the 40 GB card among those of the 80 GB card."""
    plan = solved(on(LARGE, jobs=(wants("3g.20gb"),)))
    assert not plan.tasks
    assert plan.pending[0].reason == "never"
    with pytest.raises(pl.SnapshotError, match="has no MIG profile"):
        solved(on(replace(LARGE, mig_layout=layout(("3g.20gb", 0))), jobs=()))
    # both have a 1g.10gb: two slots of the one (0, 2, 4, 6), one slot of the other
    assert [started(on(gpu, jobs=(wants("1g.10gb", 8),))) for gpu in (SMALL, LARGE)] == [4, 7]
    assert started(on(SMALL, LARGE, jobs=(wants("1g.10gb", 20),))) == 11


# --- shares ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("card", "asked", "wanted", "fit"),
    [
        ("24576Mi", "12288Mi", 3, 2),  # Volcano vGPU: three on a card of twice the size
        ("46068Mi", "2000Mi", 24, 23),  # kai-scheduler/KAI-Scheduler 416: 23 x 2000 = 46000, 24 x 2000 = 48000
    ],
)
def test_memory_of_a_card_is_not_rounded(card: str, asked: str, wanted: int, fit: int) -> None:
    snapshot = on(Gpu(model="A", memory=card), jobs=(plain(wanted, gpu_share="0.001", gpu_memory=asked),))
    assert started(snapshot) == fit


def test_shares_are_of_one_card_each() -> None:
    """Ray: free parts of two cards (0.4 and 0.4) are not one of 0.8."""
    places = tuple(RunningTask(group="w", index=i, node="n", gpus=(i,)) for i in range(2))
    old = replace(plain(2, "old", gpu_share=0.6), running=Running(tasks=places))
    assert started(on(replace(OFF, count=2), jobs=(old, plain(gpu_share=0.8)))) == 0
    assert started(on(replace(OFF, count=2), jobs=(old, plain(3, gpu_share=0.4)))) == 2


def test_shares_in_bulk_fill_every_card() -> None:
    """kai-scheduler/KAI-Scheduler: 16 halves on 8 cards, two on each."""
    plan = solved(on(replace(OFF, count=8), jobs=(plain(16, gpu_share=0.5),)))
    assert Counter(gpu for *_, (gpu,) in plan.tasks) == dict.fromkeys(range(8), 2)


def test_shares_are_added_up_exactly() -> None:
    """Ray: 0.1 + 0.9 of the one card and 0.9 of the other, where binary fractions lost the last one."""
    jobs = (plain(1, "tenth", gpu_share=0.1), plain(2, "rest", gpu_share=0.9))
    assert started(on(replace(OFF, count=2), jobs=jobs)) == 3
    # in binary 0.1 + 0.7 + 0.2 is not 1, nor are ten tenths
    three = (plain(1, "a", gpu_share=0.1), plain(1, "b", gpu_share=0.7), plain(1, "c", gpu_share=0.2))
    assert started(on(OFF, jobs=three)) == 3
    assert started(on(OFF, jobs=(plain(11, gpu_share=0.1),))) == 10


def test_several_shares_are_of_several_cards() -> None:
    """koordinator-sh/koordinator 2097: four times 40 GiB are of four cards of 80 GiB, not 160 GiB of one;
    NVIDIA/k8s-device-plugin 321: two shares of one card are no larger share of it."""
    large = Gpu(model="A", count=8, memory="80Gi")
    plan = solved(on(large, jobs=(plain(gpus=4, gpu_share=0.5, gpu_memory="40Gi"),)))
    assert [len(set(gpus)) for *_, gpus in plan.tasks] == [4]
    assert started(on(large, jobs=(plain(5, gpus=4, gpu_share=0.5, gpu_memory="40Gi"),))) == 4
    assert started(on(Gpu(model="A", sharing="time_slicing", replicas=4), jobs=(plain(gpus=2, gpu_share=0.25),))) == 0
