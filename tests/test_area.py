"""The area bound is a bound, and is tight where it should be."""

from placement.area import area_bounds
from placement.compile import compile as compile_snapshot
from placement.snapshot import Gpu, Job, Node, Snapshot, Task, TaskGroup


def bounds(snapshot: Snapshot) -> dict[tuple[str, int | None], float]:
    found = area_bounds(compile_snapshot(snapshot))
    return {(b.objective, b.priority): round(b.value or 0.0, 6) for b in found}


def job(name: str, task: Task, count: int = 1, priority: int = 0, weight: int = 1) -> Job:
    groups = (TaskGroup(name="w", task=task),)
    return Job(name=name, count=count, priority=priority, weight=weight, groups=groups)


def test_cards_bind() -> None:
    # 4 cards. Weight 3: two tasks of 1 card (6000). Weight 1: tasks of 3 cards; 2/3 of one fits beside (2000).
    snapshot = Snapshot(
        nodes=(Node(name="n", gpus=(Gpu(model="A", count=4),)),),
        jobs=(job("heavy", Task(gpus=1), 2, weight=3), job("light", Task(gpus=3), 2)),
    )
    # tasks: the two small ones, then 2/3 of a large one
    assert bounds(snapshot) == {("value", 0): 8000.0, ("tasks", None): round(2 + 2 / 3, 6)}


def test_cpu_binds_and_priorities_have_bounds_of_their_own() -> None:
    # 6 cores: three tasks of 2 cores, whatever the 4 cards allow
    snapshot = Snapshot(
        nodes=(Node(name="n", cpu=6, gpus=(Gpu(model="A", count=4),)),),
        jobs=(job("a", Task(gpus=1, cpu=2), 4, priority=1), job("b", Task(gpus=1, cpu=2), 4)),
    )
    assert bounds(snapshot) == {("value", 1): 3000.0, ("value", 0): 3000.0, ("tasks", None): 3.0}


def test_refused_everywhere_counts_nowhere() -> None:
    snapshot = Snapshot(
        nodes=(Node(name="n", gpus=(Gpu(model="A", count=4),)),),
        jobs=(job("a", Task(gpus=1, node_selector={"x": "y"})),),
    )
    assert bounds(snapshot) == {}


def test_nothing() -> None:
    assert area_bounds(compile_snapshot(Snapshot())) == ()
