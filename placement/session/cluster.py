"""The cluster of a session by name: its nodes, what is on each, and parts of it as snapshots of their own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from placement.hardware.mig import geometry
from placement.session.queue_use import QueueUse
from placement.snapshot import Gpu, Job, Node, Running, RunningTask, Snapshot
from placement.snapshot.leaves import leaf_tasks


class Cluster:
    """Nodes by name, and running jobs.

    Attributes
    ----------
    nodes : dict of str to Node
        One by one, in the order of the snapshot, cordoned where they take no new work.
    running : dict of str to Job
        Jobs that run, with their places.
    on : dict of str to dict of str to None
        Names of the jobs on each node, in the order in which they came.
    queue_use : QueueUse
        What queues use of their quotas.

    Parameters
    ----------
    snapshot : Snapshot
    quotas : bool
        Whether queues count.
    """

    def __init__(self, snapshot: Snapshot, quotas: bool = True) -> None:
        self._frame = msgspec.structs.replace(snapshot, nodes=(), jobs=(), reservations=())
        self.nodes: dict[str, Node] = {}
        for node in snapshot.nodes:
            for copy in range(node.count):
                name = node.name if node.count == 1 else f"{node.name}-{copy}"
                self.nodes[name] = msgspec.structs.replace(node, name=name, count=1)
        first = {level: node for node in reversed(self.nodes.values()) for level in node.domains}
        self._positions = tuple({node.name: node for node in first.values()}.values())
        self._order = {name: number for number, name in enumerate(self.nodes)}
        self.queue_use = QueueUse(snapshot.queues if quotas else (), self.nodes.values())
        self.running: dict[str, Job] = {}
        self.on: dict[str, dict[str, None]] = defaultdict(dict)
        apart = snapshot.policy.tenants_apart
        levels = {limit.level for limit in snapshot.limits} | ({apart} if apart not in ("", "gpu", "node") else set())
        self._levels = sorted(levels)
        self._inside: dict[tuple[str, str], list[str]] = defaultdict(list)
        for name, node in self.nodes.items():
            for key in self._domains(node):
                self._inside[key].append(name)

    def _domains(self, node: Node) -> list[tuple[str, str]]:
        """Return the domains of a node that are judged as a whole."""
        return [(level, "" if level == "cluster" else node.domains.get(level, "")) for level in self._levels]

    def cordon(self, node: str, shut: bool) -> None:
        """Have a node take no new work, or take some again."""
        self.nodes[node] = msgspec.structs.replace(self.nodes[node], cordoned=shut)

    def start(self, job: Job) -> None:
        """Add a job that runs."""
        assert job.running is not None
        self.running[job.name] = job
        self.queue_use.change(job, 1)
        profiles = {path: task.mig_profile for path, task in leaf_tasks(job.groups)}
        for task in job.running.tasks:
            self.on[task.node][job.name] = None
            if task.mig_starts:
                node = self.nodes[task.node]
                self.nodes[task.node] = _holding(node, task.gpus[0], profiles[task.group], task.mig_starts[0])

    def stop(self, name: str) -> Job:
        """Take away a job that runs, and return it."""
        job = self.running.pop(name)
        assert job.running is not None
        self.queue_use.change(job, -1)
        for node in {task.node for task in job.running.tasks}:
            del self.on[node][name]
        return job

    def set_order(self, names: Iterable[str]) -> None:
        """List running jobs, in all and on each node, in some order of their names."""
        self.running = {name: self.running[name] for name in names}
        for node, there in self.on.items():
            self.on[node] = {name: None for name in self.running if name in there}

    def frame(self, job: Job) -> Snapshot:
        """Return a job alone, with as many nodes as it takes to say whether it is well stated."""
        nodes = tuple(self.nodes.values()) if job.data else self._positions
        return msgspec.structs.replace(self._frame, nodes=nodes, jobs=(job,), limits=())

    def whole(self, time: float, jobs: Iterable[Job]) -> Snapshot:
        """Return the cluster with some jobs."""
        return msgspec.structs.replace(self._frame, time=time, nodes=tuple(self.nodes.values()), jobs=tuple(jobs))

    def part(self, nodes: Iterable[str], waiting: Sequence[Job]) -> Snapshot:
        """Return some nodes with all that is on them and jobs that wait, and with all nodes of domains with limits.

        Of a job that runs on other nodes too, only the tasks on these are there: what it takes elsewhere is no affair
        of theirs. There are no queues, for what these use is everywhere; see `queue_use`.
        """
        touched = set(nodes)
        for key in {key for name in touched for key in self._domains(self.nodes[name])}:
            touched.update(self._inside[key])
        inside = sorted(touched, key=self._order.__getitem__)
        here = dict.fromkeys(job for name in inside for job in self.on.get(name, ()))
        running = [self._trimmed(self.running[name], touched) for name in here]
        return msgspec.structs.replace(
            self._frame,
            nodes=tuple(self.nodes[name] for name in inside),
            jobs=(*running, *waiting),
            queues=(),
            limits=tuple(one for one in self._frame.limits if self._is_in(one.level, one.domain, touched)),
        )

    def _is_in(self, level: str, domain: str, nodes: set[str]) -> bool:
        return any(name in nodes for name in self._inside.get((level, domain), ()))

    @staticmethod
    def _trimmed(job: Job, nodes: set[str]) -> Job:
        assert job.running is not None
        tasks: tuple[RunningTask, ...] = tuple(task for task in job.running.tasks if task.node in nodes)
        return msgspec.structs.replace(job, after=(), data=(), queue="", running=Running(tasks=tasks))


def _holding(node: Node, card: int, profile: str, start: int) -> Node:
    """Return a node of which a card has an instance; cards list no instances where that one was not among them.

    Others may have had to make room for it, and those that are in use are known without the list.
    """
    gpus: list[Gpu] = []
    first = 0
    for gpu in node.gpus:
        if gpu.mig_layout and not gpu.mig_static and first <= card < first + gpu.count:
            there = geometry(gpu.model)
            assert there is not None
            if (there.profile(profile), start) not in [
                (there.profile(one.profile), one.start) for one in gpu.mig_layout
            ]:
                gpu = msgspec.structs.replace(gpu, mig_layout=())
        gpus.append(gpu)
        first += gpu.count
    return node if tuple(gpus) == node.gpus else msgspec.structs.replace(node, gpus=tuple(gpus))


def copies_of(job: Job) -> list[Job]:
    """Return the jobs that a counted entry stands for."""
    if job.count == 1:
        return [job]
    return [msgspec.structs.replace(job, name=f"{job.name}-{copy}", count=1) for copy in range(job.count)]
