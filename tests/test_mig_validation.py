"""What a snapshot may say of MIG: every wrong combination is told with its place, what is possible, and what to do."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from placement.errors import SnapshotError
from placement.snapshot import Gpu, Job, MigInstance, Node, Running, RunningTask, Snapshot, Task, TaskGroup
from placement.snapshot.read import loads, verified

A100 = Gpu(model="A100-40GB", count=2, mig_enabled=True)
OFF = Gpu(model="A100-40GB")


def layout(*instances: tuple[str, int]) -> tuple[MigInstance, ...]:
    return tuple(MigInstance(profile=profile, start=start) for profile, start in instances)


def card(**fields: Any) -> Snapshot:
    """A node with such a card behind one without MIG."""
    return Snapshot(nodes=(Node(name="n", gpus=(OFF, replace(A100, **fields))),))


def task(**fields: Any) -> Snapshot:
    stated: dict[str, Any] = {"gpus": 1, "mig_profile": "3g.20gb"} | fields
    return Snapshot(jobs=(Job(name="j", groups=(TaskGroup(name="g", task=Task(**stated)),)),))


def running(*places: tuple[int, str, int | None], gpu: Gpu = A100, **fields: Any) -> Snapshot:
    """Jobs on a node with one card without MIG and two others: card, profile (if any) and slot (if any) of each."""
    jobs = []
    for number, (device, profile, start) in enumerate(places):
        place = RunningTask(group="g", index=0, node="n", gpus=(device,), mig_starts=() if start is None else (start,))
        group = TaskGroup(name="g", task=Task(gpus=1, mig_profile=profile, **fields))
        jobs.append(Job(name=f"job{number}", groups=(group,), running=Running(tasks=(place,))))
    return Snapshot(nodes=(Node(name="n", gpus=(OFF, gpu)),), jobs=tuple(jobs))


def problem(snapshot: Snapshot) -> tuple[str, str]:
    """Return path and text of the one problem of a snapshot."""
    with pytest.raises(SnapshotError) as caught:
        verified(snapshot)
    (found,) = caught.value.problems
    assert found.remedy
    return found.path, str(found)


CARDS = [
    ({"model": "A100-400GB"}, ".model", ['"A100-400GB"', 'did you mean "A100-40GB"', '"A30-24GB"']),
    ({"model": "A100"}, ".model", ['"A100-80GB"', '"A100-40GB"']),
    ({"mig_enabled": False, "mig_static": True}, ".mig_static", ["off", '"mig_enabled": true']),
    ({"mig_enabled": False, "mig_layout": layout(("3g.20gb", 0))}, ".mig_layout", ["off"]),
    (
        {"mig_layout": layout(("3g.40gb", 0))},
        ".mig_layout[0].profile",
        ['a card "A100-40GB" has no MIG profile "3g.40gb"', "did you mean", '"7g.40gb"', '"1g.5gb+me"'],
    ),
    ({"mig_layout": layout(("", 0))}, ".mig_layout[0].profile", ["empty"]),
    ({"mig_layout": layout(("1g.5gb", 64))}, ".mig_layout[0].start", ["at most 63"]),
    (
        {"mig_layout": layout(("1g.5gb", 6), ("3g.20gb", 2))},
        ".mig_layout[1].start",
        ["found 2", '"3g.20gb" of a card "A100-40GB" starts at 0, 4'],
    ),
    # 2g.10gb at 2 is in slots 2 and 3, both of which are of 3g.20gb at 0 (slots 0 to 3)
    (
        {"mig_layout": layout(("3g.20gb", 0), ("3g.20gb", 4), ("2g.10gb", 2))},
        ".mig_layout[2]",
        ["slots 2 to 3 are taken twice", "mig_layout[0]"],
    ),
    ({"mig_layout": layout(("1g.5gb", 3), ("3g.20gb", 0))}, ".mig_layout[1]", ["slot 3 is taken twice"]),
    # each 1g.5gb+me takes the one optical flow unit and the one JPEG unit
    (
        {"mig_layout": layout(("1g.5gb+me", 0), ("1g.5gb+me", 1))},
        ".mig_layout",
        ["2 JPEG units of 1, 2 optical flow units of 1"],
    ),
]


@pytest.mark.parametrize(("fields", "end", "phrases"), CARDS)
def test_cards(fields: dict[str, Any], end: str, phrases: list[str]) -> None:
    path, text = problem(card(**fields))
    assert path == f"nodes[0].gpus[1]{end}"
    assert [phrase for phrase in phrases if phrase not in text] == []


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"mig_static": True, "mig_layout": layout(("3g.20gb", 4), ("2g.10gb", 0), ("1g.5gb", 2), ("1g.5gb", 3))},
        # spelt as node labels and other drivers do
        {"model": "NVIDIA A100-SXM4-40GB", "mig_layout": layout(("mig-1g.5gb.me", 0), ("3g.19gb", 4))},
        # seven of one slot each; the eighth slot belongs to profiles of several
        {"mig_layout": layout(*(("1g.5gb", start) for start in range(7)))},
        # on 40 GB 1g.10gb takes two slots, on 80 GB one
        {"mig_layout": layout(("1g.10gb", 0), ("1g.10gb", 2))},
        {"model": "A100-80GB", "mig_layout": layout(("1g.10gb", 0), ("1g.10gb", 1))},
    ],
)
def test_right_cards(fields: dict[str, Any]) -> None:
    assert verified(card(**fields)).nodes[0].gpus[1].mig_enabled


TASKS = [
    ({"mig_profile": "3g.21tb"}, ".mig_profile", ['no card model that is known has a MIG profile "3g.21tb"', "3g."]),
    ({"gpus": 2}, ".gpus", ["found 2", "does not span MIG instances", "a task of its own"]),
    ({"gpus": 0}, ".mig_profile", ["asks for no card"]),
    ({"gpu_share": 0.5}, ".mig_profile", ["both a MIG profile and a share"]),
    ({"numa": "restricted"}, ".numa", ['"restricted"', '"best-effort"']),
    ({"numa": "single-numa-node"}, ".numa", ['"single-numa-node"']),
]


@pytest.mark.parametrize(("fields", "end", "phrases"), TASKS)
def test_tasks(fields: dict[str, Any], end: str, phrases: list[str]) -> None:
    path, text = problem(task(**fields))
    assert path == f"jobs[0].groups[0].task{end}"
    assert [phrase for phrase in phrases if phrase not in text] == []


@pytest.mark.parametrize("fields", [{}, {"numa": "best-effort"}, {"mig_profile": "nvidia.com/mig-1g.5gb.me"}])
def test_right_tasks(fields: dict[str, Any]) -> None:
    assert verified(task(**fields)).jobs[0].groups[0].task


LISTED = replace(A100, mig_layout=layout(("3g.20gb", 0), ("3g.20gb", 4)))
RUNNING = [
    # the second of two MIG cards is card 2
    (running((2, "", None)), "jobs[0]", ".gpus[0]", ["MIG is on for card 2", "all of it", "false", "`mig_profile`"]),
    (running((1, "", None), gpu_share=0.5), "jobs[0]", ".gpus[0]", ["a share of it"]),
    (running((0, "3g.20gb", 0)), "jobs[0]", ".gpus[0]", ["MIG is off for card 0", '"mig_enabled": true']),
    (running((1, "3g.40gb", 0)), "jobs[0]", ".gpus[0]", ["has no MIG profile", '"3g.20gb"']),
    (running((1, "3g.20gb", 1)), "jobs[0]", ".mig_starts[0]", ["found 1", "starts at 0, 4"]),
    (running((1, "3g.20gb", None)), "jobs[0]", ".mig_starts", ["0 slots for instances on 1 cards"]),
    (running((1, "3g.20gb", -1)), "jobs[0]", ".mig_starts[0]", ["0 or more"]),
    (running((3, "3g.20gb", 0)), "jobs[0]", ".gpus[0]", ["there is no card 3"]),
    (
        running((1, "3g.20gb", 0), (1, "1g.5gb", 4), (1, "2g.10gb", 2)),
        "jobs[2]",
        ".mig_starts[0]",
        ['slots 2 to 3 of card 1 of "n" are held by jobs[0].running.tasks[0] of job "job0"'],
    ),
    (
        running((2, "1g.5gb", 3), (2, "3g.20gb", 0)),
        "jobs[1]",
        ".mig_starts[0]",
        ['slot 3 of card 2 of "n" is held by jobs[0].running.tasks[0] of job "job0"'],
    ),
    (
        running((1, "1g.5gb+me", 0), (1, "1g.5gb+me", 1)),
        "jobs[1]",
        ".mig_starts[0]",
        ["on card 1", "2 optical flow units of 1"],
    ),
    (
        running((1, "3g.20gb", 0), (1, "2g.10gb", 4), gpu=LISTED),
        "jobs[1]",
        ".mig_starts[0]",
        ['`mig_layout` of card 1 of "n" has no "2g.10gb" at slot 4'],
    ),
]


@pytest.mark.parametrize(("snapshot", "job", "end", "phrases"), RUNNING)
def test_running_tasks(snapshot: Snapshot, job: str, end: str, phrases: list[str]) -> None:
    path, text = problem(snapshot)
    assert path == f"{job}.running.tasks[0]{end}"
    assert [phrase for phrase in phrases if phrase not in text] == []


@pytest.mark.parametrize(
    "snapshot",
    [
        running((0, "", None), (1, "3g.20gb", 4), (1, "2g.10gb", 0), (1, "1g.5gb", 2)),
        # a layout is that of each card of its entry
        running((1, "3g.20gb", 0), (2, "3g.20gb", 0), (2, "3g.19gb", 4), gpu=LISTED),
    ],
)
def test_right_running_tasks(snapshot: Snapshot) -> None:
    assert len(verified(snapshot).jobs) >= 3


# --- any instances -------------------------------------------------------------------------------------------

SIZES = {"1g.5gb": 1, "1g.5gb+me": 1, "1g.10gb": 2, "2g.10gb": 2, "3g.20gb": 4, "4g.20gb": 4, "7g.40gb": 8}
"""Slots of the profiles of an A100 of 40 GB, of which it has eight."""
STARTS = {
    "1g.5gb": range(7),
    "1g.5gb+me": range(7),
    "1g.10gb": range(0, 8, 2),
    "2g.10gb": range(0, 6, 2),
    "3g.20gb": (0, 4),
    "4g.20gb": (0,),
    "7g.40gb": (0,),
}
FLOW = {"1g.5gb+me", "7g.40gb"}
"""Profiles that take the one optical flow unit."""

instances = st.lists(st.tuples(st.sampled_from(sorted(SIZES)), st.integers(0, 7)), max_size=7)


def possible(found: list[tuple[str, int]]) -> bool:
    """Return whether instances can be on one card, slot by slot."""
    slots = [slot for profile, start in found for slot in range(start, start + SIZES[profile])]
    return (
        all(start in STARTS[profile] for profile, start in found)
        and len(set(slots)) == len(slots)
        and sum(profile in FLOW for profile, _ in found) <= 1
    )


def accepted(snapshot: Snapshot) -> bool:
    try:
        verified(snapshot)
    except SnapshotError:
        return False
    return True


@settings(max_examples=300, deadline=None)
@given(instances)
def test_just_what_can_be_on_a_card_is_accepted(found: list[tuple[str, int]]) -> None:
    assert accepted(card(mig_layout=layout(*found))) == possible(found)
    assert accepted(running(*((1, *one) for one in found))) == possible(found)


# --- size ----------------------------------------------------------------------------------------------------


def test_many_nodes_with_mig_are_looked_at_once() -> None:
    """20,000 nodes listed one by one with eight MIG cards each: looked at card by card it would take far longer."""
    gpus = [{"model": "A100-40GB", "count": 8, "mig_enabled": True, "mig_layout": [{"profile": "1g.5gb", "start": 0}]}]
    task_ = {"gpus": 1, "mig_profile": "1g.5gb"}

    def job(number: int) -> dict[str, object]:
        place = {"group": "g", "index": 0, "node": f"n{number}", "gpus": [0], "mig_starts": [0]}
        return {"name": f"j{number}", "groups": [{"name": "g", "task": task_}], "running": {"tasks": [place]}}

    number = 20_000
    file = {
        "format": "placement-snapshot/1",
        "nodes": [{"name": f"n{one}", "gpus": gpus} for one in range(number)],
        "jobs": [job(one) for one in range(number)],
    }
    data = msgspec.json.encode(file)
    begin = time.process_time()
    assert len(loads(data).nodes) == number
    assert time.process_time() - begin < 10
