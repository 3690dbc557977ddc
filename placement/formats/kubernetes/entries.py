"""Pods that are not over, as tasks, and how several of them become a group of tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from placement.formats.kubernetes.asks import Tasks
from placement.formats.kubernetes.holdings import Held
from placement.formats.kubernetes.objects import Item
from placement.formats.kubernetes.parts import Gang
from placement.formats.kubernetes.pod import Pod
from placement.snapshot import RunningTask, TaskGroup, Topology

NODE = "node"
INDICES = (
    "batch.kubernetes.io/job-completion-index",
    "apps.kubernetes.io/pod-index",
    "training.kubeflow.org/replica-index",
    "leaderworkerset.sigs.k8s.io/worker-index",
    "volcano.sh/task-index",
)
"""Labels or annotations that number the pods of a group."""


@dataclass(slots=True)
class Entry:
    """A pod that is not over.

    Attributes
    ----------
    item : Item of Pod
    tasks : tuple of Task
    priority : int
    made, since : float, optional
        When it was made, and when it was started.
    node : str
        Empty for a pending pod.
    held : tuple of Held
        For a running pod, cards of each task.
    shared : tuple of str
        Names of the cards that it shares with others, for a running pod that has shares.
    zone : int, optional
    nics : tuple of str
        For a running pod, where its CPU comes from and its NICs, where an annotation says them.
    spread : str
        Label of which no two pods of its gang may have the same value.
    together : str
        Label of which all pods of its gang have to have the same value.
    claim : str
        For a pending pod, what its cards are claimed by, as `placement.snapshot.Job.claims` says it.
    """

    item: Item[Pod]
    tasks: Tasks
    priority: int = 0
    made: float | None = None
    since: float | None = None
    node: str = ""
    held: tuple[Held, ...] = ()
    shared: tuple[str, ...] = ()
    zone: int | None = None
    nics: tuple[str, ...] = ()
    spread: str = ""
    together: str = ""
    claim: str = ""

    @property
    def name(self) -> str:
        """``namespace/name``."""
        return self.item.value.metadata.key

    @property
    def order(self) -> tuple[int, int, str]:
        """Place among the pods of its group: by number where it has one, else by name."""
        meta = self.item.value.metadata
        for said in (meta.labels or {}, meta.annotations or {}):
            for key in INDICES:
                text = said.get(key, "")
                if text.isascii() and text.isdigit() and len(text) < 10:
                    return 0, int(text), meta.name
        return 1, 0, meta.name


@dataclass(slots=True)
class Members:
    """The pods of a gang, by group; how many of each are over."""

    gang: Gang | None
    queue: str = ""
    groups: dict[str, list[Entry]] = field(default_factory=dict)
    over: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Kind:
    """Pods of a group that ask for the same; some of them do not exist yet."""

    tasks: Tasks
    entries: list[Entry]
    missing: int = 0

    @property
    def count(self) -> int:
        """Pods that there are and are to be."""
        return len(self.entries) + self.missing


def kinds_of(entries: Sequence[Entry]) -> list[Kind]:
    """Return entries by what they ask for; equal tasks are one object."""
    kinds: dict[int, Kind] = {}
    for entry in entries:
        kinds.setdefault(id(entry.tasks), Kind(entry.tasks, [])).entries.append(entry)
    return list(kinds.values())


def group_of(
    name: str, tasks: Tasks, count: int, least: int | None, topology: Topology | None, alone: bool = False
) -> TaskGroup:
    """Return a group of pods; the tasks of one pod lie together on a node."""
    if len(tasks) == 1:
        return TaskGroup(name=name, count=count, min_count=least, task=tasks[0], topology=topology)
    leaves = tuple(TaskGroup(name=str(number + 1), task=task) for number, task in enumerate(tasks))
    one = Topology(required=NODE)
    if alone:
        return TaskGroup(name=name, groups=leaves, topology=one)
    pod = TaskGroup(name="pod", groups=leaves, topology=one)
    return TaskGroup(name=name, count=count, min_count=least, groups=(pod,), topology=topology)


def paths_of(path: str, tasks: Tasks, alone: bool = False) -> list[str]:
    """Return the paths of the tasks of a pod in a group."""
    if len(tasks) == 1:
        return [path]
    return [f"{path}/{number + 1}" if alone else f"{path}/pod/{number + 1}" for number in range(len(tasks))]


def places_of(entry: Entry, paths: Sequence[str], index: int) -> tuple[RunningTask, ...]:
    """Return where the tasks of a running pod are."""
    return tuple(
        RunningTask(
            group=path,
            index=index,
            node=entry.node,
            gpus=held.gpus,
            mig_starts=held.starts,
            # the first task of a pod asks for all that is no card
            zone=entry.zone if number == 0 else None,
            nics=entry.nics if number == 0 else (),
        )
        for number, (path, held) in enumerate(zip(paths, entry.held, strict=True))
    )


def free_name(name: str, taken: set[str]) -> str:
    """Return a name that is not taken, and take it."""
    found, number = name, 1
    while found in taken:
        number += 1
        found = f"{name}-{number}"
    taken.add(found)
    return found
