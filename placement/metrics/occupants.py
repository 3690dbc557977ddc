"""Who is on which card: running tasks and those of a plan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from placement.plan import Plan
from placement.snapshot import Gpu, Node, Snapshot, Task
from placement.snapshot.fields import Names
from placement.snapshot.leaves import leaf_tasks


@dataclass(frozen=True, slots=True)
class Occupant:
    """One task on one card.

    Attributes
    ----------
    job : str
    task : Task
    start : int or None
        First slot of its MIG instance.
    workload : str
        Name of the measured workload that it is, as its job has it; empty for none.
    shared : float, optional
        Factor on its run time on a shared card, where its job states one.
    """

    job: str
    task: Task
    start: int | None
    workload: str = ""
    shared: float | None = None


@dataclass(frozen=True, slots=True)
class Card:
    """A card and who is on it; cards of counted nodes are told apart by the node's name."""

    node: str
    device: int
    gpu: Gpu
    host: Node
    occupants: list[Occupant] = field(default_factory=list)


class Cards:
    """The cards of a snapshot with the tasks of a plan; only those that somebody is on are made.

    Parameters
    ----------
    snapshot : Snapshot
    plan : Plan
        A checked plan for it.
    """

    def __init__(self, snapshot: Snapshot, plan: Plan) -> None:
        self.snapshot = snapshot
        nodes = snapshot.nodes
        self._names = Names("node", [node.name for node in nodes], [node.count for node in nodes])
        self._jobs = Names("job", [job.name for job in snapshot.jobs], [job.count for job in snapshot.jobs])
        self._tasks: dict[tuple[int, str], Task] = {}
        self.used: dict[tuple[str, int], Card] = {}
        for job in snapshot.jobs:
            for place in job.running.tasks if job.running is not None else ():
                task = self._task(job.name, place.group)
                self._add(job.name, task, place.node, place.gpus, place.mig_starts)
        for job_name, group, index, node, gpus in plan.tasks:
            starts = plan.tasks[job_name, group, index].mig_starts
            self._add(job_name, self._task(job_name, group), node, tuple(gpus), starts)

    def _add(self, job: str, task: Task, node: str, gpus: tuple[int, ...], starts: tuple[int, ...]) -> None:
        for number, device in enumerate(gpus):
            start = starts[number] if number < len(starts) else None
            if (node, device) not in self.used:
                self.used[node, device] = Card(node, device, *self._gpu(node, device))
            self.used[node, device].occupants.append(Occupant(job, task, start, *self._said(job)))

    def _said(self, job: str) -> tuple[str, float | None]:
        """Return what a job says of its run time beside others."""
        entry = self._jobs.find(job)
        assert entry is not None, job
        duration = self.snapshot.jobs[entry].duration
        return ("", None) if duration is None else (duration.workload, duration.shared)

    def _task(self, job: str, path: str) -> Task:
        entry = self._jobs.find(job)
        assert entry is not None, job
        if (entry, path) not in self._tasks:
            self._tasks |= {(entry, name): task for name, task in leaf_tasks(self.snapshot.jobs[entry].groups)}
        return self._tasks[entry, path]

    def _gpu(self, node: str, device: int) -> tuple[Gpu, Node]:
        entry = self._names.find(node)
        assert entry is not None, node
        host = self.snapshot.nodes[entry]
        for gpu in host.gpus:
            if device < gpu.count:
                return gpu, host
            device -= gpu.count
        raise IndexError(f"{node} has no such card")

    def idle(self) -> Iterator[tuple[Node, Gpu, int]]:
        """Yield the cards that nobody is on: node entry, kind of card, and how many of it."""
        taken: dict[tuple[int, int], int] = defaultdict(int)
        for node, device in self.used:
            entry = self._names.find(node)
            assert entry is not None
            first = 0
            for number, gpu in enumerate(self.snapshot.nodes[entry].gpus):
                if first <= device < first + gpu.count:
                    taken[entry, number] += 1
                first += gpu.count
        for entry, one in enumerate(self.snapshot.nodes):
            for number, gpu in enumerate(one.gpus):
                yield one, gpu, one.count * gpu.count - taken[entry, number]
