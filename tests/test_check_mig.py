"""MIG before the judge: plans written by hand, each rule broken once, and random instances against slots."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from check_cases import SENSE, Row, tasks_of
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from placement.check import RULES, check, objective, usage
from placement.errors import PlanError
from placement.plan import Pending, Phase, Plan, Provenance
from placement.snapshot import (
    DomainLimit,
    Gpu,
    Job,
    MigInstance,
    Node,
    NumaZone,
    Policy,
    Running,
    RunningTask,
    Snapshot,
    Task,
    TaskGroup,
)
from placement.snapshot.policy import ObjectiveName
from placement.snapshot.read import digest, verified

A100 = Gpu(model="A100-40GB", mig_enabled=True)
"""1g.5gb starts at slots 0 to 6, 2g.10gb at 0, 2 and 4 (two slots), 3g.20gb at 0 and 4 (four), 4g.20gb at 0 (four)."""
NODE = Node(name="n", gpus=(A100, replace(A100, model="A100-80GB"), Gpu(model="A100-40GB")))
"""Card 0 has 40 GB, card 1 has 80 GB, and on card 2 MIG is off."""

Placed = tuple[str, int, Sequence[int]]
"""Name of the job, card, and first slots."""


def job(name: str, profile: str = "", count: int = 1, **fields: Any) -> Job:
    return Job(name=name, groups=(TaskGroup(name="g", count=count, task=Task(gpus=1, mig_profile=profile, **fields)),))


def exists(profile: str, start: int) -> MigInstance:
    return MigInstance(profile=profile, start=start)


def runs(name: str, device: int, profile: str, start: int) -> Job:
    place = RunningTask(group="g", index=0, node="n", gpus=(device,), mig_starts=(start,))
    return replace(job(name, profile), running=Running(tasks=(place,)))


def cluster(
    *jobs: Job, node: Node = NODE, objectives: tuple[ObjectiveName, ...] = ("value",), **fields: Any
) -> Snapshot:
    return verified(Snapshot(nodes=(node,), jobs=jobs, policy=Policy(objectives=objectives), **fields))


def plan(snapshot: Snapshot, *placed: Placed, pending: Sequence[Pending] = (), column: object = None) -> Plan:
    """Return a plan that says the truth of some tasks, the first of their jobs, but for what is given."""
    rows: list[Row] = [(name, "g", 0, "n", [card]) for name, card, _ in placed]
    tasks = tasks_of(rows)
    tasks.mig_starts = [list(starts) for _, _, starts in placed]
    if column is not None:
        tasks.mig_starts = column  # type: ignore[assignment]
    chosen = snapshot.policy.objectives
    phases = [
        Phase(objective=name, priority=priority, sense=SENSE[name], value=float(value))
        for name, priority, value in objective(snapshot, tasks, chosen)
    ]
    return Plan(
        snapshot=digest(snapshot),
        status="feasible" if phases else "proven",
        stop="complete" if phases else "optimal",
        reproducible=True,
        phases=phases,
        tasks=tasks,
        pending=list(pending),
        usage=usage(snapshot, tasks),
        notes=[],
        provenance=Provenance(version="0", solver="by hand", objectives=chosen),
        checked=False,
    )


def broken(snapshot: Snapshot, *placed: Placed, **fields: Any) -> list[str]:
    return [str(violation) for violation in check(snapshot, plan(snapshot, *placed, **fields))]


def says(found: list[str], start: str, *phrases: str) -> None:
    """Expect one line, which starts and goes on as it should."""
    assert len(found) == 1, found
    assert found[0].startswith(start), found
    assert [phrase for phrase in phrases if phrase not in found[0]] == [], found


# --- right plans ---------------------------------------------------------------------------------------------


def test_the_rule_is_listed() -> None:
    assert RULES.count("mig") == 1


def test_a_right_plan_is_accepted() -> None:
    snapshot = cluster(job("a", "3g.20gb"), job("b", "2g.10gb"), job("c"), runs("old", 0, "1g.5gb", 6))
    assert broken(snapshot, ("a", 0, [0]), ("b", 0, [4]), ("c", 2, [])) == []


def test_the_plan_need_not_say_what_nobody_asks() -> None:
    snapshot = cluster(job("c"), runs("old", 0, "1g.5gb", 6))
    assert broken(snapshot, ("c", 2, []), column=msgspec.UNSET) == []


def test_one_name_is_of_two_slots_on_one_card_and_of_one_on_another() -> None:
    snapshot = cluster(job("a", "1g.10gb"), job("b", "1g.10gb"))
    assert broken(snapshot, ("a", 1, [0]), ("b", 1, [1])) == []
    says(broken(snapshot, ("a", 0, [0]), ("b", 0, [1])), "mig: tasks[1]: n gpu 0", "at slot 1, allowed are 0, 2, 4, 6")
    assert broken(snapshot, ("a", 0, [0]), ("b", 0, [2])) == []


def test_figures() -> None:
    """3g.20gb is 3 of 7 compute slices of the card, 1g.5gb 1 of 7."""
    snapshot = cluster(replace(job("a", "3g.20gb"), weight=2), job("c"), runs("old", 0, "1g.5gb", 6))
    right = plan(snapshot, ("a", 0, [0]), ("c", 2, []))
    assert check(snapshot, right) == []
    # 2 * 3000/7 of a, and 1000 of the whole card
    assert right.phases[0].value == float(Fraction(6000, 7) + 1000)
    assert right.usage.gpus == 3
    # 4/7 of card 0, all of card 2
    assert right.usage.gpus_allocated == float(Fraction(11, 7))
    assert right.usage.unallocated_percent == float(100 * (1 - Fraction(11, 21)))
    assert right.usage.whole_nodes == 0
    wrong = replace(right, usage=replace(right.usage, gpus_allocated=2.0))
    says([str(one) for one in check(snapshot, wrong)], "usage: usage.gpus_allocated")


def test_a_value_is_shared_by_parts_of_cards() -> None:
    """Of a job of 3g.20gb and 1g.5gb, worth 100, the first is 75."""
    groups = tuple(
        TaskGroup(name=name, task=Task(gpus=1, mig_profile=profile), min_count=1)
        for name, profile in (("g", "3g.20gb"), ("h", "1g.5gb"))
    )
    snapshot = cluster(Job(name="a", groups=groups, value=100))
    tasks = tasks_of([("a", "g", 0, "n", [0])])
    tasks.mig_starts = [[0]]
    assert objective(snapshot, tasks, ["value"]) == [("value", 0, Fraction(75))]


def test_fragmentation() -> None:
    """One card, 3g.20gb at slot 0: 4/7 are idle, which 3g.20gb can use at slot 4 and 4g.20gb, at slot 0 alone, not."""
    node = replace(NODE, gpus=(A100,))
    snapshot = cluster(job("a", "3g.20gb"), job("b", "4g.20gb"), node=node, objectives=("fragmentation",))
    waits = Pending(job="b", placed=0, wanted=1, reason="not_wanted", detail="")
    found = plan(snapshot, ("a", 0, [0]), pending=[waits])
    assert check(snapshot, found) == []
    # each of the two shapes is half of what is wanted
    assert found.phases[0].value == float(Fraction(4000, 7) / 2)
    assert found.usage.fragmented_percent == float(100 * Fraction(4, 7) / 2)
    # at slot 4 it leaves room for 4g.20gb, and for another one of its own
    found = plan(snapshot, ("a", 0, [4]), pending=[waits])
    assert check(snapshot, found) == []
    assert found.phases[0].value == 0


def test_fragmentation_where_instances_stay_as_they_are() -> None:
    """Two 1g.5gb exist and one is used: 6/7 are idle, and 1g.5gb can use them; of 2g.10gb and whole cards none can."""
    gpu = replace(A100, mig_static=True, mig_layout=(exists("1g.5gb", 0), exists("1g.5gb", 1)))
    jobs = (job("a", "1g.5gb"), job("b", "2g.10gb"), job("c"), runs("old", 0, "1g.5gb", 1))
    snapshot = cluster(*jobs, node=replace(NODE, gpus=(gpu,)), objectives=("fragmentation",))
    nothing = plan(snapshot)
    assert nothing.phases[0].value == float(Fraction(6000, 7) * 2 / 3)
    # with both in use nobody can use the other 5/7
    assert plan(snapshot, ("a", 0, [0])).phases[0].value == float(Fraction(5000, 7))


def test_a_node_with_zones() -> None:
    """The instance is in the zone of its card, and so is what else its task takes."""
    zones = (NumaZone(id=0, gpus=(0,), cpu=8), NumaZone(id=1, gpus=(1, 2), cpu=8))
    snapshot = cluster(job("a", "1g.10gb", cpu=2, numa="best-effort"), node=replace(NODE, cpu=16, zones=zones))
    right = plan(snapshot, ("a", 1, [3]))
    right.tasks.zones, right.tasks.cpu, right.tasks.memory = [[1]], [[2]], [[]]
    assert check(snapshot, right) == []
    right.tasks.zones = [[0]]
    says([str(one) for one in check(snapshot, right)], "numa: tasks[0]", "gpu 1 is in NUMA zone 1")


# --- each rule broken ----------------------------------------------------------------------------------------


def test_a_slot_where_the_profile_does_not_start() -> None:
    found = broken(cluster(job("a", "3g.20gb")), ("a", 0, [2]))
    says(found, "mig: tasks[0]: n gpu 0:", "3g.20gb is at slot 2, allowed are 0, 4")


@pytest.mark.parametrize("start", [-1, 64, 2**70])
def test_a_slot_that_no_card_has(start: int) -> None:
    says(broken(cluster(job("a", "1g.5gb")), ("a", 0, [start])), "mig: tasks[0]", "allowed are 0, 1, 2, 3, 4, 5, 6")


def test_a_slot_of_another_new_task() -> None:
    found = broken(cluster(job("a", "3g.20gb"), job("b", "2g.10gb")), ("a", 0, [0]), ("b", 0, [2]))
    says(found, "mig: tasks[1]: n gpu 0: the instance 2g.10gb of b", "slots 2 to 3", "3g.20gb of a (tasks[0]) has")


def test_a_slot_of_a_running_task() -> None:
    found = broken(cluster(runs("old", 0, "1g.5gb", 3), job("a", "3g.20gb")), ("a", 0, [0]))
    says(found, "mig: tasks[0]: n gpu 0: the instance 3g.20gb of a", "slot 3,", "1g.5gb of old (running) has")


def test_equal_slots_of_two_cards() -> None:
    gpus = (replace(A100, count=2),)
    snapshot = cluster(job("a", "3g.20gb"), job("b", "3g.20gb"), node=replace(NODE, gpus=gpus))
    assert broken(snapshot, ("a", 0, [0]), ("b", 1, [0])) == []


def test_too_few_engines() -> None:
    """The card has one JPEG unit and one optical flow unit, of which each +me takes one; decoders are enough."""
    jobs = (runs("old", 0, "1g.5gb+me", 0), job("a", "1g.5gb+me"))
    found = broken(cluster(*jobs), ("a", 0, [1]))
    assert found == [
        f"mig: nodes[0].gpus[0]: n gpu 0: its instances take 2 {units} (1 of them by running work), at most 1"
        for units in ("JPEG units", "optical flow units")
    ]


STATIC = replace(
    NODE,
    gpus=(replace(A100, mig_static=True, mig_layout=(exists("3g.20gb", 0), exists("mig-1g.5gb", 4))),),
)


def test_instances_that_stay_as_they_are() -> None:
    snapshot = cluster(job("a", "3g.20gb"), job("b", "1g.5gb"), job("c", "1g.5gb"), node=STATIC)
    waits = [Pending(job=name, placed=0, wanted=1, reason="no_room", detail="") for name in "abc"]
    assert broken(snapshot, ("a", 0, [0]), ("b", 0, [4]), pending=waits[2:]) == []
    found = broken(snapshot, ("a", 0, [4]), pending=waits[1:])
    says(found, "mig: tasks[0]: n gpu 0: no instance 3g.20gb exists at slot 4", "none is made: one is at 0")
    found = broken(snapshot, ("b", 0, [5]), pending=[waits[0], waits[2]])
    says(found, "mig: tasks[0]: n gpu 0: no instance 1g.5gb exists at slot 5", "none is made: one is at 4")
    found = broken(snapshot, ("b", 0, [4]), ("c", 0, [4]), pending=waits[:1])
    says(found, "mig: tasks[1]", "slot 4,", "of b (tasks[0])")


def test_no_instance_of_the_profile_stays() -> None:
    snapshot = cluster(job("a", "2g.10gb"), node=STATIC)
    says(broken(snapshot, ("a", 0, [4])), "mig: tasks[0]: n gpu 0: the instances of the card stay", "none is a 2g.10gb")


def test_instances_of_a_layout_may_go_otherwise() -> None:
    gpu = replace(A100, mig_layout=(exists("3g.20gb", 0), exists("3g.20gb", 4)))
    snapshot = cluster(job("a", "4g.20gb"), runs("old", 0, "3g.20gb", 4), node=replace(NODE, gpus=(gpu,)))
    assert broken(snapshot, ("a", 0, [0])) == []


def test_device_memory() -> None:
    """3g.20gb of this card has 20096 MiB; all others of it, and the memory of the card, do not matter."""
    node = replace(NODE, gpus=(replace(A100, memory="20Gi"),))
    snapshot = cluster(job("a", "3g.20gb", gpu_memory="20096Mi"), job("b", "3g.20gb", gpu_memory="20096Mi"), node=node)
    assert broken(snapshot, ("a", 0, [0]), ("b", 0, [4])) == []
    snapshot = cluster(job("a", "3g.20gb", gpu_memory="20097Mi"))
    says(broken(snapshot, ("a", 0, [0])), "mig: tasks[0]: n gpu 0: the task needs 20097Mi of memory", "has 20096Mi")


def test_device_memory_that_is_not_published() -> None:
    node = replace(NODE, gpus=(Gpu(model="H20-96GB", memory="96Gi", mig_enabled=True),))
    assert broken(cluster(job("a", "3g.48gb", gpu_memory=0), node=node), ("a", 0, [0])) == []
    found = broken(cluster(job("a", "3g.48gb", gpu_memory=1), node=node), ("a", 0, [0]))
    says(found, "mig: tasks[0]", "not published")


@pytest.mark.parametrize("share", [None, 0.5])
def test_work_without_a_profile_on_a_card_with_mig(share: float | None) -> None:
    says(broken(cluster(job("c", gpu_share=share)), ("c", 0, [])), "mig: tasks[0]: n gpu 0: MIG is on")


def test_a_profile_on_a_card_without_mig() -> None:
    says(broken(cluster(job("a", "3g.20gb")), ("a", 2, [0])), "mig: tasks[0]: n gpu 2: MIG is off")


def test_a_profile_that_the_card_does_not_have() -> None:
    found = broken(cluster(job("a", "3g.40gb")), ("a", 0, [0]))
    says(found, "mig: tasks[0]: n gpu 0: a card A100-40GB has no MIG profile 3g.40gb", "1g.5gb, 1g.5gb+me")


def test_other_filters_hold_too() -> None:
    found = broken(cluster(job("a", "1g.10gb", gpu_models=("A100-80GB",))), ("a", 0, [0]))
    says(found, "gpu_models: tasks[0]")
    node = replace(NODE, gpus=(replace(A100, health="unhealthy"), A100))
    says(broken(cluster(job("a", "1g.5gb"), node=node), ("a", 0, [0])), "health: tasks[0]")


def test_two_cards_of_one_task() -> None:
    snapshot = cluster(job("a", "1g.5gb"))
    right = plan(snapshot, ("a", 0, [0]))
    right.tasks.gpus = [[0, 1]]
    assert "identity: tasks[0]: 2 cards listed, a task of group g takes 1" in map(str, check(snapshot, right))
    right.tasks.gpus = [[]]
    assert "identity: tasks[0]: 0 cards listed, a task of group g takes 1" in map(str, check(snapshot, right))


def test_a_cap_on_cards_counts_parts_of_them() -> None:
    limits = (DomainLimit(level="cluster", gpus=0.5),)
    snapshot = cluster(job("a", "3g.20gb"), job("b", "1g.5gb"), limits=limits)
    # 3/7 is less than a half, 4/7 is more
    waits = Pending(job="b", placed=0, wanted=1, reason="no_room", detail="")
    assert broken(snapshot, ("a", 0, [0]), pending=[waits]) == []
    says(broken(snapshot, ("a", 0, [0]), ("b", 0, [4])), "limits: limits[0].gpus", "at most 0.5")


# --- the column ----------------------------------------------------------------------------------------------


def test_a_column_that_is_not_there() -> None:
    found = broken(cluster(job("a", "1g.5gb"), job("b", "1g.5gb")), ("a", 0, [0]), ("b", 0, [1]), column=msgspec.UNSET)
    says(found, "mig: tasks.mig_starts: the plan does not say in which slots the instances of 2 tasks are")


def test_a_column_of_another_length() -> None:
    found = broken(cluster(job("a", "1g.5gb")), ("a", 0, [0]), column=[[0], [1]])
    says(found, "mig: tasks.mig_starts: found 2 entries, expected one for each of 1 task")


@pytest.mark.parametrize("starts", [[], [0, 1], [0] * 100])
def test_not_one_slot(starts: list[int]) -> None:
    found = broken(cluster(job("a", "1g.5gb")), ("a", 0, starts))
    says(found, "mig: tasks[0]: n:", f"{len(starts)} slots listed, the one instance of the task starts at 1")


def test_slots_of_a_task_that_asks_for_none() -> None:
    says(broken(cluster(job("c")), ("c", 2, [0])), "mig: tasks[0]: n: slot 0 of a MIG instance is listed")


@pytest.mark.parametrize(
    ("column", "path"),
    [
        (3, "tasks.mig_starts"),
        ([0], "tasks.mig_starts[0]"),
        ([["0"]], "tasks.mig_starts[0][0]"),
        ([[True]], "tasks.mig_starts[0][0]"),
        ([[0.5]], "tasks.mig_starts[0][0]"),
        ([None], "tasks.mig_starts[0]"),
    ],
)
def test_a_column_of_another_type(column: object, path: str) -> None:
    snapshot = cluster(job("a", "1g.5gb"))
    wrong = plan(snapshot, ("a", 0, [0]))
    wrong.tasks.mig_starts = column  # type: ignore[assignment]
    with pytest.raises(PlanError) as caught:
        check(snapshot, wrong)
    assert [problem.path for problem in caught.value.problems] == [path]


# --- what can never run --------------------------------------------------------------------------------------


def pending(snapshot: Snapshot, reason: str, wanted: int = 1) -> list[str]:
    entry = Pending(job="a", placed=0, wanted=wanted, reason=reason, detail="")  # type: ignore[arg-type]
    return broken(snapshot, pending=[entry])


@pytest.mark.parametrize(
    ("profile", "fields", "never"),
    [
        ("1g.5gb", {}, False),
        ("3g.40gb", {"gpu_models": ("A100-80GB",)}, False),
        ("3g.40gb", {"gpu_models": ("A100-40GB",)}, True),
        ("4g.24gb", {}, True),  # of an A30
        ("3g.40gb", {"gpu_memory": "40192Mi"}, False),
        ("3g.40gb", {"gpu_memory": "40193Mi"}, True),
        ("", {}, False),
        ("", {"gpu_models": ("A100-80GB",)}, True),  # the one such card has MIG on
    ],
)
def test_profiles_that_no_card_offers_never_run(profile: str, fields: dict[str, Any], never: bool) -> None:
    snapshot = cluster(job("a", profile, **fields))
    assert (pending(snapshot, "never") == []) == never
    assert (pending(snapshot, "no_room") == []) == (not never)


def test_unhealthy_cards_offer_none() -> None:
    snapshot = cluster(job("a", "1g.5gb"), node=replace(NODE, gpus=(replace(A100, health="unhealthy"),)))
    assert pending(snapshot, "never") == []
    assert len(pending(snapshot, "no_room")) == 1


@pytest.mark.parametrize(
    ("profile", "most"),
    # on one card of 40 GB; of +me there is one, for there is one optical flow unit
    [("1g.5gb", 7), ("1g.5gb+me", 1), ("1g.10gb", 4), ("2g.10gb", 3), ("3g.20gb", 2), ("4g.20gb", 1), ("7g.40gb", 1)],
)
def test_more_than_cards_hold_may_be_said_to_run_never(profile: str, most: int) -> None:
    node = replace(NODE, gpus=(A100,))
    assert len(pending(cluster(job("a", profile, most), node=node), "never", most)) == 1
    assert pending(cluster(job("a", profile, most + 1), node=node), "never", most + 1) == []
    assert pending(cluster(job("a", profile, most + 1), node=node), "no_room", most + 1) == []


def test_instances_that_stay_are_counted() -> None:
    assert len(pending(cluster(job("a", "1g.5gb"), node=STATIC), "never")) == 1
    assert pending(cluster(job("a", "1g.5gb", 2), node=STATIC), "never", 2) == []
    assert pending(cluster(job("a", "2g.10gb"), node=STATIC), "never") == []


# --- any instances -------------------------------------------------------------------------------------------

# by model: number of slots; slots, starts, compute slices and optical flow units of each profile
CARDS: dict[str, tuple[int, dict[str, tuple[int, Sequence[int], int, int]]]] = {
    "A100-40GB": (
        8,
        {
            "1g.5gb": (1, range(7), 1, 0),
            "1g.5gb+me": (1, range(7), 1, 1),
            "1g.10gb": (2, (0, 2, 4, 6), 1, 0),
            "2g.10gb": (2, (0, 2, 4), 2, 0),
            "3g.20gb": (4, (0, 4), 3, 0),
            "4g.20gb": (4, (0,), 4, 0),
            "7g.40gb": (8, (0,), 7, 1),
        },
    ),
    "A30-24GB": (
        4,
        {
            "1g.6gb": (1, range(4), 1, 0),
            "1g.6gb+me": (1, range(4), 1, 1),
            "2g.12gb": (2, (0, 2), 2, 0),
            "2g.12gb+me": (2, (0, 2), 2, 1),
            "4g.24gb": (4, (0,), 4, 1),
        },
    ),
}


@st.composite
def cases(draw: st.DrawFn) -> tuple[str, list[tuple[str, int]], int]:
    """Draw a model, instances on one card of it, of which the first few run, and how many these are."""
    model = draw(st.sampled_from(sorted(CARDS)))
    found: list[tuple[str, int]] = []
    for _ in range(draw(st.integers(1, 6))):
        profile = draw(st.sampled_from(sorted(CARDS[model][1])))
        legal = CARDS[model][1][profile][1]
        found.append((profile, draw(st.sampled_from(list(legal)) | st.integers(0, 8))))
    run = draw(st.integers(0, len(found)))
    while not possible(model, found[:run]):
        run -= 1
    return model, found, run


def possible(model: str, found: list[tuple[str, int]]) -> bool:
    """Return whether instances can be on one card, slot by slot."""
    slots, profiles = CARDS[model]
    free, flow = [True] * slots, 1
    for profile, start in found:
        size, starts, _, units = profiles[profile]
        flow -= units
        if start not in starts or not all(free[start : start + size]):
            return False
        free[start : start + size] = [False] * size
    return flow >= 0


@settings(max_examples=400, deadline=None)
@given(cases())
def test_just_what_can_be_on_a_card_is_accepted(case: tuple[str, list[tuple[str, int]], int]) -> None:
    model, found, run = case
    old = [runs(f"j{number}", 0, *one) for number, one in enumerate(found[:run])]
    new = [job(f"j{number}", found[number][0]) for number in range(run, len(found))]
    node = replace(NODE, gpus=(Gpu(model=model, mig_enabled=True),))
    snapshot = cluster(*old, *new, node=node)
    made = plan(snapshot, *((f"j{number}", 0, [found[number][1]]) for number in range(run, len(found))))
    violations = check(snapshot, made)
    right = possible(model, found)
    assert ("mig" in {violation.rule for violation in violations}) == (not right)
    if right:
        assert violations == []
        parts = [CARDS[model][1][profile][2] for profile, _ in found]
        allocated = made.usage.gpus_allocated
        assert allocated == float(Fraction(sum(parts), 4 if model == "A30-24GB" else 7))
        assert allocated <= 1
