"""MIG instances solved by hand: what fits beside what, on which model, and what hosts, caps and priorities make of it.

Slots of an A100: 1g at 0 to 6, 1g.10gb (two slots) at 0, 2, 4, 6, 2g (two) at 0, 2, 4, 3g (four) at 0 and 4, 4g (four)
at 0, 7g at 0. Of all of them only ``+me`` and 7g take the one optical flow unit. An instance counts as its compute
slices over those of the card, here sevenths; what is worth 1 is worth 1000 GPU-milli.
"""

from __future__ import annotations

import pytest
from mig_cases import (
    A100,
    A100_80,
    RTX,
    SEVENTH,
    WHOLE,
    gang,
    instances,
    jobs,
    node,
    plan_of,
    proven,
    runs,
    starts,
    task,
)

from placement.snapshot import DomainLimit, Gpu, Job, Node, Running, RunningTask, Taint, Task, TaskGroup, Toleration

# --- one card --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        ("1g.5gb", [0, 2, 3, 4, 5, 6]),
        ("1g.10gb", [2, 4, 6]),  # 0 and 1 is half taken
        ("2g.10gb", [2, 4]),
        ("3g.20gb", [4]),
        ("4g.20gb", []),
        ("7g.40gb", []),
    ],
)
def test_beside_a_running_instance(profile: str, expected: list[int]) -> None:
    """A 1g.5gb runs in slot 1."""
    plan = plan_of(node(A100), runs("old", "1g.5gb", 0, 1), jobs("new", profile, 9), objectives=("tasks",))
    proven(plan, len(expected))
    assert not expected or starts(plan, "new") == expected


def test_a_card_filled_beside_a_running_instance() -> None:
    """3g at 4, 2g at 2 and 1g at 0 fill all but slots 1 (running): 3 + 2 + 1 sevenths; a second 2g has no place."""
    work = (jobs("three", "3g.20gb"), jobs("two", "2g.10gb", 2), jobs("one", "1g.5gb"))
    plan = plan_of(node(A100), runs("old", "1g.5gb", 0, 1), *work, objectives=("value", "tasks"))
    proven(plan, 6 * SEVENTH, 3)
    assert (starts(plan, "three"), starts(plan, "two"), starts(plan, "one")) == ([4], [2], [0])


def test_slots_run_short_before_slices() -> None:
    """Two 3g take all eight slots; 3g and 2g leave two, in which one 1g.10gb or one 1g.5gb lies (6, not 7)."""
    plan = plan_of(node(A100), jobs("three", "3g.20gb", 2), jobs("one", "1g.5gb", weight=2))
    # 3 + 3 sevenths, or 3 at 0 and 2 for the other: 6 against 5
    proven(plan, 6 * SEVENTH)
    plan = plan_of(node(A100), jobs("three", "3g.20gb", 2), jobs("one", "1g.5gb", 3, weight=2))
    # 3g at 0 and three of 2 in 4, 5 and 6: 9 against 6
    proven(plan, 9 * SEVENTH)


def test_one_optical_flow_unit() -> None:
    """Of two cards each gives one 1g.5gb+me; with 1g.5gb all 14 places are taken: 2 x 2 + 12 sevenths."""
    gpu = Gpu(model="A100-40GB", count=2, mig_enabled=True)
    work = (jobs("media", "1g.5gb+me", 5, weight=2), jobs("plain", "1g.5gb", 20))
    proven(plan_of(node(gpu), *work, objectives=("value", "tasks")), 16 * SEVENTH, 14)
    # one runs on card 0 already, in one of its places: 2 + 12
    plan = plan_of(node(gpu), runs("old", "1g.5gb+me", 0, 3), *work, objectives=("value", "tasks"))
    proven(plan, 14 * SEVENTH, 13)
    # 7g takes the unit too: 7 on one card, 2 + 6 on the other
    plan = plan_of(node(gpu), *work, jobs("seven", "7g.40gb", weight=3))
    proven(plan, (21 + 8) * SEVENTH)


def test_a_card_of_twelve_slots() -> None:
    """Four instances of three slots. +me.all takes all media engines, 1g.24gb one of four each, -me none.

    1g.24gb is worth 1000/7, since a card of seven slices has one of that name; the others 250.
    """
    others = (jobs("plain", "1g.24gb", 4), jobs("none", "1g.24gb-me", 2))
    # with all engines gone only -me can lie beside it: 5 x 250 + 2 x 250
    plan = plan_of(node(RTX), jobs("all", "1g.24gb+me.all", weight=5), *others)
    proven(plan, 1750)
    assert [slot % 3 for slot in starts(plan, "all") + starts(plan, "none")] == [0, 0, 0]
    # worth 250 it loses against two of 1000/7: 500 + 2000/7 = 786 against 750
    proven(plan_of(node(RTX), jobs("all", "1g.24gb+me.all"), *others), 500 + 2 * SEVENTH)
    # halves: one with all engines and one without any
    work = (jobs("all", "2g.48gb+me.all"), jobs("none", "2g.48gb-me"), jobs("half", "2g.48gb"))
    proven(plan_of(node(RTX), *work), 1000)
    proven(plan_of(node(RTX), work[0], work[2]), 500)


def test_instances_that_stay_as_they_are() -> None:
    layout = instances(("3g.20gb", 0), ("2g.10gb", 4), ("1g.5gb", 6))
    gpu = Gpu(model="A100-40GB", mig_enabled=True, mig_layout=layout, mig_static=True)
    work = [jobs(f"j{profile[0]}", profile, 2) for profile in ("1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb")]
    plan = plan_of(node(gpu), *work, objectives=("value", "tasks"))
    proven(plan, 6 * SEVENTH, 3)
    assert (starts(plan, "j3"), starts(plan, "j2"), starts(plan, "j1")) == ([0], [4], [6])
    proven(plan_of(node(gpu), runs("old", "2g.10gb", 0, 4), *work), 4 * SEVENTH)


def test_instances_that_may_go() -> None:
    """3g at 4 is used and stays, 3g at 0 goes for a 4g."""
    gpu = Gpu(model="A100-40GB", mig_enabled=True, mig_layout=instances(("3g.20gb", 0), ("3g.20gb", 4)))
    plan = plan_of(node(gpu), runs("old", "3g.20gb", 0, 4), jobs("new", "4g.20gb"))
    proven(plan, 4 * SEVENTH)
    assert starts(plan, "new") == [0]


# --- several cards ---------------------------------------------------------------------------------------------


def test_one_name_on_two_models() -> None:
    """1g.10gb takes two slots of a card of 40 GB (four of them), and one of a card of 80 GB (seven)."""
    plan = plan_of((node(A100), node(A100_80, name="m")), jobs("new", "1g.10gb", 20), objectives=("tasks",))
    proven(plan, 11)
    # 9984 MiB against 9856 MiB
    plan = plan_of(
        (node(A100), node(A100_80, name="m")), jobs("new", "1g.10gb", 20, gpu_memory="9900Mi"), objectives=("tasks",)
    )
    proven(plan, 4)
    # for 3g.20gb there is the card of 40 GB: two there and seven here, or four here and none there for the other
    work = (jobs("three", "3g.20gb", 2), jobs("new", "1g.10gb", 20))
    proven(plan_of((node(A100), node(A100_80, name="m")), *work), (6 + 7) * SEVENTH)


def test_a_gang_over_two_cards() -> None:
    two = gang("two", (2, task("4g.20gb")))
    proven(plan_of(node(A100, A100), two, objectives=("value", "tasks")), 8 * SEVENTH, 2)
    plan = plan_of(node(A100), two)
    assert [one.reason for one in plan.pending] == ["never"]
    proven(plan, 0)
    # a 1g in slot 0 of one of them leaves it no 4g, for that starts at 0
    plan = plan_of(node(A100, A100), runs("old", "1g.5gb", 0, 0), two)
    assert [one.reason for one in plan.pending] == ["no_room"]
    proven(plan, 0)


def test_an_instance_and_a_whole_card() -> None:
    """One job asks for both, and has 1000 + 3/7 of that only if both are there."""
    both = gang("both", (1, task("3g.20gb")), (1, Task(gpus=1)))
    plan = plan_of(node(A100, WHOLE), both, jobs("one", "1g.5gb", 9))
    # 3g in four slots, 1g in at most four others that start at 0 to 3
    proven(plan, 1000 + 7 * SEVENTH)
    plan = plan_of(node(A100), both, jobs("one", "1g.5gb", 9))
    assert plan.value == float(7 * SEVENTH)


# --- what else there is ----------------------------------------------------------------------------------------


def test_cpu_of_a_host() -> None:
    """Four CPUs for a whole card with two of them and instances with one: 1000 + 2 sevenths."""
    work = (jobs("one", "1g.5gb", 3, cpu=1), Job(name="all", groups=(TaskGroup(name="g", task=Task(gpus=1, cpu=2)),)))
    plan = plan_of(node(A100, WHOLE, cpu=4), *work)
    best = 1000 + 2 * SEVENTH
    assert plan.value is not None
    assert plan.bound is not None
    assert plan.value <= float(best) <= plan.bound
    # with five there is enough for all
    proven(plan_of(node(A100, WHOLE, cpu=5), *work), 1000 + 3 * SEVENTH)
    # and instances of two cards share them as well
    plan = plan_of(node(A100, A100, cpu=4), jobs("one", "1g.5gb", 9, cpu=1), objectives=("tasks",))
    assert plan.value == 4


def test_caps_count_parts_of_cards() -> None:
    """Of a cap of one card 3/7 run already: a 3g fits, a 4g does too, and of 1g four."""
    for cap, profile, count in (("1", "3g.20gb", 1), ("1", "4g.20gb", 1), ("1", "1g.5gb", 4), ("500m", "1g.5gb", 0)):
        limits = (DomainLimit(level="cluster", gpus=cap),)
        old = runs("old", "3g.20gb", 0, 0)
        plan = plan_of(node(A100, A100), old, jobs("new", profile, 9), objectives=("tasks",), limits=limits)
        assert plan.value == count
        assert not any("refused" in note for note in plan.notes)


def test_caps_are_shared_with_whole_cards() -> None:
    """Of a cap of 1.5 cards a whole one leaves half of one: three sevenths."""
    limits = (DomainLimit(level="cluster", gpus="1500m"),)
    plan = plan_of(node(A100, WHOLE), jobs("one", "1g.5gb", 9), jobs("all", "", weight=9), limits=limits)
    assert plan.value == float(9000 + 3 * SEVENTH)


def test_labels_and_taints() -> None:
    a30 = Gpu(model="A30-24GB", mig_enabled=True)
    nodes = (
        node(a30, name="a", labels={"zone": "a"}),
        node(a30, name="b", labels={"zone": "b"}, taints=(Taint(key="dedicated", value="x"),)),
    )
    plain = jobs("plain", "2g.12gb", 9)
    # two on the node without a taint, of 1/2 each
    proven(plan_of(nodes, plain), 1000)
    tolerant = jobs("tolerant", "2g.12gb", 9, tolerations=(Toleration(key="dedicated", operator="Exists"),))
    proven(plan_of(nodes, tolerant), 2000)
    picky = jobs("picky", "2g.12gb", 9, node_selector={"zone": "b"})
    plan = plan_of(nodes, picky)
    proven(plan, 0)
    assert {one.reason for one in plan.pending} == {"never"}


def test_priorities() -> None:
    """Whatever later ones are worth, earlier ones come first."""
    low = jobs("low", "4g.20gb", weight=50)
    # 3g at 4 and 4g at 0
    proven(plan_of(node(A100), jobs("high", "3g.20gb", priority=1), low), 3 * SEVENTH, 200 * SEVENTH)
    proven(plan_of(node(A100), jobs("high", "3g.20gb", 2, priority=1), low), 6 * SEVENTH, 0)
    proven(plan_of(node(A100), jobs("high", "7g.40gb", priority=1), jobs("low", "1g.5gb", 7, weight=50)), 1000, 0)


def test_a_value_of_its_own() -> None:
    """The job's 70 are shared by parts of cards: 40 for the 4g and 30 for the 3g, which may stay away."""
    groups = (
        TaskGroup(name="a", task=task("4g.20gb")),
        TaskGroup(name="b", count=1, task=task("3g.20gb")),
    )
    job = Job(name="j", value=70, groups=(TaskGroup(name="both", groups=groups, min_groups=1),))
    proven(plan_of(node(A100), job), 70)
    proven(plan_of(node(A100), runs("old", "1g.5gb", 0, 0), job), 30)
    proven(plan_of(node(A100), runs("old", "1g.5gb", 0, 6), job), 40)


def test_unhealthy_and_cordoned() -> None:
    sick = Gpu(model="A100-40GB", mig_enabled=True, health="unhealthy")
    proven(plan_of((node(sick), node(A100, name="m", cordoned=True)), jobs("new", "1g.5gb")), 0)
    proven(plan_of((node(sick, A100), node(A100, name="m", cordoned=True)), jobs("new", "1g.5gb", 9)), 7 * SEVENTH)


def test_counted_nodes_and_jobs() -> None:
    """Fifty nodes with two cards: a hundred 4g and a hundred 3g, of which one node has an instance in the way."""
    gpu = Gpu(model="A100-40GB", count=2, mig_enabled=True)
    place = RunningTask(group="g", index=0, node="n-7", gpus=(1,), mig_starts=(5,))
    old = Job(name="old", groups=(TaskGroup(name="g", task=task("1g.5gb")),), running=Running(tasks=(place,)))
    plan = plan_of(
        Node(name="n", count=50, gpus=(gpu,)), old, jobs("four", "4g.20gb", 200), jobs("three", "3g.20gb", 200)
    )
    proven(plan, (100 * 4 + 99 * 3) * SEVENTH)
