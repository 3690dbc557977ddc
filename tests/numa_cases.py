"""A node of two NUMA zones, and plans for it that say what they are told to. Import it as ``numa_cases``."""

from __future__ import annotations

from typing import Any

from check_cases import plan_of
from msgspec.structs import replace

from placement.check import check
from placement.plan import Plan
from placement.snapshot import Gpu, Job, Nic, Node, NumaZone, Running, RunningTask, Snapshot, Task, TaskGroup

Said = dict[str, Any]


def zone(number: int, *gpus: int, nics: str = "", **more: Any) -> NumaZone:
    return NumaZone(id=number, gpus=gpus, nics=tuple(Nic(name=name) for name in nics.split()), **more)


# two zones of 8 cores, 32Gi, four cards and two NICs each; the system calls the second one 3
TWO = Node(
    name="n",
    cpu=16,
    memory="64Gi",
    gpus=(Gpu(model="A", count=8, memory="80Gi"),),
    zones=(
        zone(0, 0, 1, 2, 3, nics="a0 a1", cpu=8, memory="32Gi"),
        zone(3, 4, 5, 6, 7, nics="b0 b1", cpu=8, memory="32Gi"),
    ),
)
BARE = Node(name="bare", cpu=16, gpus=(Gpu(model="A", count=8),))


def job(name: str = "j", count: int = 1, **task: Any) -> Job:
    return Job(name=name, groups=(TaskGroup(name="g", count=count, min_count=1, task=Task(**task)),))


def runs(name: str, node: str, *gpus: int, zone: int | None = None, nics: str = "", **task: Any) -> Job:
    """A running job of one task; its NICs by name."""
    group = TaskGroup(name="g", task=Task(gpus=len(gpus), **task))
    place = RunningTask(group="g", index=0, node=node, gpus=gpus, zone=zone, nics=tuple(nics.split()))
    return Job(name=name, groups=(group,), running=Running(tasks=(place,)))


def said(*gpus: int, zones: str = "", cpu: str = "", memory: str = "", nics: str = "", **more: Any) -> Said:
    """What a plan says of one task: node n, job j, the next index, if nothing else is given."""
    listed = [int(number) for number in zones.split()]
    return {
        "gpus": [*gpus],
        "zones": listed,
        "cpu": cpu.split(),
        "memory": memory.split(),
        "nics": nics.split(),
        **more,
    }


def plan(snapshot: Snapshot, *tasks: Said) -> Plan:
    rows = [
        (task.get("job", "j"), "g", index if "job" not in task else 0, task.get("node", "n"), task["gpus"])
        for index, task in enumerate(tasks)
    ]
    made = plan_of(snapshot, rows)
    columns = {name: [task[name] for task in tasks] for name in ("zones", "cpu", "memory", "nics")}
    return replace(made, tasks=replace(made.tasks, **columns))


def lines(snapshot: Snapshot, *tasks: Said) -> list[str]:
    return [str(violation) for violation in check(snapshot, plan(snapshot, *tasks))]


def cluster(*jobs: Job, nodes: tuple[Node, ...] = (TWO,)) -> Snapshot:
    return Snapshot(nodes=nodes, jobs=jobs)
