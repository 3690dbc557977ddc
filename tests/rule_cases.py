"""What the tests of rules from other schedulers share: a run of one rule by name, and its plans before the judge.

Import it as ``rule_cases``.
"""

from __future__ import annotations

import strategies
from hypothesis import strategies as st

import placement as pl
from placement.compile import compile as compile_snapshot
from placement.heuristics import HEURISTICS
from placement.instance import Instance
from placement.snapshot import Gpu, Job, Node, Running, RunningTask, Snapshot, Task, TaskGroup
from placement.solver import Limits

Spots = dict[str, list[tuple[str, list[int]]]]
"""Node and device indices of the tasks of each job."""


def spots(rule: str, snapshot: Snapshot) -> Spots:
    """Return what a rule itself chose, before cards are exchanged for alike ones with better paths."""
    instance = compile_snapshot(snapshot)
    found = HEURISTICS[rule].solve(instance, objectives=(), limits=Limits()).assignment
    places: Spots = {}
    for row in range(len(found)):
        node = int(found.node[row])
        cards = found.cards[found.offset[row] : found.offset[row + 1]].tolist()
        place = instance.node_name(node), sorted(device(instance, node, card) for card in cards)
        places.setdefault(instance.job_name(int(found.job[row])), []).append(place)
    return places


def device(instance: Instance, node: int, card: int) -> int:
    """Return the device index of a card."""
    devices = instance.node_cards.get(node)
    return card if devices is None else devices[card]


def cards(name: str, count: int, **fields: object) -> Node:
    """Return a node with so many cards."""
    return Node(name=name, gpus=(Gpu(model="A", count=count),) if count else (), **fields)  # type: ignore[arg-type]


def asks(name: str, gpus: int, share: float | None = None) -> Job:
    """Return a pending job of one task."""
    return Job(name=name, groups=(TaskGroup(name="g", task=Task(gpus=gpus, gpu_share=share)),))


def runs(name: str, node: str, gpus: tuple[int, ...], share: float | None = None) -> Job:
    """Return a running job of one task."""
    place = RunningTask(group="g", index=0, node=node, gpus=gpus)
    group = TaskGroup(name="g", task=Task(gpus=len(gpus), gpu_share=share))
    return Job(name=name, groups=(group,), running=Running(tasks=(place,)))


@st.composite
def some_snapshots(draw: st.DrawFn) -> Snapshot:
    """Draw a tiny snapshot, tied or not."""
    source = strategies.Source(lambda low, high: draw(st.integers(low, high)))
    return strategies.tied_tiny(source, 12) if draw(st.booleans()) else strategies.tiny(source, 12)


def judge(rule: str, snapshot: Snapshot) -> None:
    """Check that the plan of a rule is a plan, by the code that shares nothing with any solver."""
    plan = pl.solve(snapshot, solver=rule)
    assert plan.checked
    assert pl.check(snapshot, plan) == []
