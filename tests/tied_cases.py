"""Small clusters of racks, and where a greedy rule places jobs on them."""

from __future__ import annotations

from placement.compile import compile as compile_snapshot
from placement.heuristics import HEURISTICS
from placement.instance import Assignment
from placement.snapshot import Affinity, Gpu, Job, Node, Snapshot, Task, TaskGroup
from placement.solver import Limits

CARD = Task(gpus=1)
CPU = Task(cpu=1)


def rack(name: str, *cards: int, zone: str = "z", cpu: float | None = None) -> list[Node]:
    """Return a node for each number of cards, called ``rack-0``, ``rack-1``, …."""
    return [
        Node(
            name=f"{name}-{i}",
            position={"zone": zone, "rack": name},
            cpu=cpu,
            gpus=(Gpu(model="A", count=n),) if n else (),
        )
        for i, n in enumerate(cards)
    ]


def solve(nodes: list[Node], *jobs: Job, rule: str = "first-fit") -> list[dict[str, list[str]]]:
    """Return the nodes of each group's placed tasks by their numbers, for each job."""
    snapshot = Snapshot(topology=("zone", "rack"), nodes=tuple(nodes), jobs=jobs)
    instance = compile_snapshot(snapshot)
    found: Assignment = HEURISTICS[rule].solve(instance, objectives=(), limits=Limits()).assignment
    places: list[dict[str, list[str]]] = [{} for _ in jobs]
    for row in range(len(found)):
        job = int(found.job[row])
        leaf = instance.job_classes[instance.job_class[job]].leaves[int(found.leaf[row])]
        places[job].setdefault(leaf.path, []).append(instance.node_name(int(found.node[row])))
    return places


def racks(places: list[str]) -> list[str]:
    return [name.split("-")[0] for name in places]


def one(group: TaskGroup, *more: TaskGroup, affinity: tuple[Affinity, ...] = ()) -> Job:
    return Job(name="j", groups=(group, *more), affinity=affinity)
