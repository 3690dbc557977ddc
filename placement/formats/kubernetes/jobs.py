"""Pods to jobs: a lone pod is one, and so is a gang.

Of a gang that runs in part, what runs is one job and what does not is a second one, which needs what is missing to the
minimum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from placement.formats.kubernetes.asks import Tasks
from placement.formats.kubernetes.holdings import Held
from placement.formats.kubernetes.objects import Item
from placement.formats.kubernetes.parts import Gang, GangGroup
from placement.formats.kubernetes.pod import Pod
from placement.formats.ledger import Ledger
from placement.snapshot import Job, Running, RunningTask, Spread, TaskGroup, Topology
from placement.snapshot.nothing import NOTHING

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
    spread : str
        Label of which no two pods of its gang may have the same value.
    together : str
        Label of which all pods of its gang have to have the same value.
    """

    item: Item[Pod]
    tasks: Tasks
    priority: int = 0
    made: float | None = None
    since: float | None = None
    node: str = ""
    held: tuple[Held, ...] = ()
    spread: str = ""
    together: str = ""

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
class _Kind:
    """Pods of a group that ask for the same; some of them do not exist yet."""

    tasks: Tasks
    entries: list[Entry]
    missing: int = 0

    @property
    def count(self) -> int:
        return len(self.entries) + self.missing


class Jobs:
    """Makes jobs, each with a name of its own.

    Parameters
    ----------
    ledger : Ledger
    lone : set of str
        Names of the pods that are in no gang.
    level : callable
        Name of a level of the snapshot by its name or node label; None where there is none.
    asked : callable
        Tasks of a pod by the template of a group.
    near : callable
        Given tasks, a level and nodes: the same tasks, kept to the domain that holds these nodes.
    """

    def __init__(
        self,
        ledger: Ledger,
        lone: set[str],
        level: Callable[[str], str | None],
        asked: Callable[[Gang, GangGroup], Tasks],
        near: Callable[[Tasks, str, set[str]], Tasks],
    ) -> None:
        self.ledger = ledger
        self.level = level
        self.asked = asked
        self.near = near
        self._names = lone
        self._alone: dict[int, tuple[TaskGroup, ...]] = {}

    # --- lone pods -----------------------------------------------------------------------------------------------

    def alone(self, entry: Entry, queue: str) -> Job:
        """Return the job of a pod that is in no gang."""
        groups = self._alone.get(id(entry.tasks))
        if groups is None:
            groups = self._alone[id(entry.tasks)] = (_group("pod", entry.tasks, 1, None, None, alone=True),)
        paths = _paths("pod", entry.tasks, alone=True)
        return Job(
            name=entry.name,
            queue=queue,
            priority=entry.priority,
            submit_time=entry.made,
            groups=groups,
            running=None if not entry.node else Running(tasks=_places(entry, paths, 0), since=entry.since),
            task_names=dict.fromkeys(paths, (entry.name,)) if len(paths) > 1 else NOTHING,
        )

    # --- gangs ---------------------------------------------------------------------------------------------------

    def together(self, key: str, members: Members) -> list[Job]:
        """Return the jobs of a gang: what runs of it, and what does not."""
        gang = members.gang or Gang(key, tuple(GangGroup(name) for name in members.groups))
        listed = {group.name for group in gang.groups}
        extra = tuple(GangGroup(name) for name in members.groups if name not in listed)
        runs: list[tuple[GangGroup, list[_Kind]]] = []
        waits: list[tuple[GangGroup, list[_Kind]]] = []
        for group in (*gang.groups, *extra):
            entries = sorted(members.groups.get(group.name, ()), key=lambda entry: entry.order)
            over = members.over.get(group.name, 0)
            running = [entry for entry in entries if entry.node]
            pending = [entry for entry in entries if not entry.node]
            least = group.min_count
            wanted = max((group.count or 0) - over, len(entries), 0 if least is None else least - over)
            kinds = _kinds(pending)
            missing = wanted - len(entries)
            if missing and not self._add_missing(gang, group, kinds, entries, missing):
                continue
            if running:
                runs.append((group, _kinds(running)))
            if kinds:
                left = None if least is None else max(1, least - over - len(running))
                waits.append((replace(group, min_count=left), kinds))
        jobs = []
        name = self._name(key)
        if runs:
            jobs.append(self._job(name, gang, members, runs, running=True))
        if waits:
            if runs:
                self.ledger.assumed(
                    "gangs that run in part",
                    "what is left of each is a job of its own, named with #pending",
                    gang.where,
                )
                waits = self._near(gang, waits, runs)
                name = self._name(f"{key}#pending")
            jobs.append(self._job(name, gang, members, waits, running=False))
        return jobs

    def _add_missing(
        self, gang: Gang, group: GangGroup, kinds: list[_Kind], entries: list[Entry], missing: int
    ) -> bool:
        """Add pods that do not exist yet; return False where nothing says what they ask for."""
        if kinds:
            kinds[0].missing = missing
        elif group.template is not None:
            kinds.append(_Kind(self.asked(gang, group), [], missing))
        elif entries:
            kinds.append(_Kind(self.asked(gang, replace(group, template=entries[0].item.value.spec)), [], missing))
        else:
            self.ledger.contradiction(
                "a group of a gang without pods and without a template", "it is left out", gang.where
            )
            return False
        self.ledger.assumed("pods of a gang that do not exist yet", "they ask for what the others do", gang.where)
        return True

    def _name(self, wanted: str) -> str:
        name, number = wanted, 1
        while name in self._names:
            number += 1
            name = f"{wanted}#{number}"
        self._names.add(name)
        return name

    def _job(
        self, name: str, gang: Gang, members: Members, parts: list[tuple[GangGroup, list[_Kind]]], running: bool
    ) -> Job:
        entries = [entry for _, kinds in parts for kind in kinds for entry in kind.entries]
        groups: list[TaskGroup] = []
        names: dict[str, tuple[str, ...]] = {}
        places: list[RunningTask] = []
        taken: set[str] = set()
        whole = None
        if gang.topology is not None:
            whole = self._topology(gang.topology, sum(kind.count for _, kinds in parts for kind in kinds), gang.where)
        wrapped = whole is not None and (len(parts) > 1 or len(parts[0][1]) > 1 or parts[0][0].topology is not None)
        above = "gang/" if wrapped else ""
        for group, kinds in parts:
            topology = self._of_group(group, kinds, gang.where) or (None if wrapped else whole)
            inner: list[TaskGroup] = []
            title = _free(group.name.replace("/", "-") or "pods", taken)
            nested = len(kinds) > 1 and topology is not None
            counts = [kind.count for kind in kinds]
            minima = self._minima(group.min_count, counts, gang.where)
            for number, (kind, least) in enumerate(zip(kinds, minima, strict=True)):
                base = title if number == 0 else f"{title}-{number + 1}"
                own = base if nested or number == 0 else _free(base, taken)
                path = f"{above}{title}/{own}" if nested else f"{above}{own}"
                inner.append(_group(own, kind.tasks, kind.count, least, None if nested else topology))
                paths = _paths(path, kind.tasks)
                if not kind.missing:
                    called = tuple(entry.name for entry in kind.entries)
                    names.update(dict.fromkeys(paths, called))
                for index, entry in enumerate(kind.entries if running else ()):
                    places += _places(entry, paths, index)
            if nested:
                groups.append(TaskGroup(name=title, groups=tuple(inner), topology=topology))
            else:
                groups += inner
        made = [entry.made for entry in entries if entry.made is not None]
        since = [entry.since for entry in entries if entry.since is not None]
        highest = max((entry.priority for entry in entries), default=0)
        return Job(
            name=name,
            queue=gang.queue or members.queue,
            priority=highest if gang.priority is None else gang.priority,
            submit_time=gang.submit_time if gang.submit_time is not None else min(made, default=None),
            preemptible=gang.preemptible,
            minimum_run_seconds=gang.minimum_run_seconds,
            groups=(TaskGroup(name="gang", groups=tuple(groups), topology=whole),) if wrapped else tuple(groups),
            running=Running(tasks=tuple(places), since=min(since, default=None)) if running else None,
            task_names=names or NOTHING,
        )

    def _minima(self, least: int | None, counts: list[int], where: str) -> list[int | None]:
        """Return the minimum of each kind of pods in a group; None where all are needed."""
        total = sum(counts)
        if least is None or least >= total:
            return [None] * len(counts)
        if len(counts) == 1:
            return [least]
        self.ledger.assumed(
            "minimum of a group whose pods ask for different things",
            "at least one of each kind, the first ones first",
            where,
        )
        left = max(0, least - len(counts))
        minima: list[int | None] = []
        for count in counts:
            more = min(count - 1, left)
            left -= more
            minima.append(1 + more)
        return minima

    # --- topology ------------------------------------------------------------------------------------------------

    def _of_group(self, group: GangGroup, kinds: list[_Kind], where: str) -> Topology | None:
        """Return the topology of a group, and what its pods say of one another."""
        topology = group.topology or Topology()
        entries = [entry for kind in kinds for entry in kind.entries]
        apart = {entry.spread for entry in entries}
        if len(apart) == 1 and (label := next(iter(apart))):
            topology = msgspec.structs.replace(
                topology, spread=(*topology.spread, Spread(level=label, max_per_domain=1))
            )
        near = {entry.together for entry in entries}
        if len(near) == 1 and (label := next(iter(near))) and not topology.required:
            topology = msgspec.structs.replace(topology, required=label)
        return self._topology(topology, sum(kind.count for kind in kinds), where)

    def _topology(self, given: Topology, count: int, where: str) -> Topology | None:
        """Return a topology at levels that the snapshot has, for so many tasks; None where nothing is left of it."""

        def at(name: str) -> str:
            found = self.level(name) if name else ""
            if found is None:
                self.ledger.unsupported("level of a gang's topology", "no node is known to be in a domain of it", where)
            return found or ""

        slices = []
        for one in given.slices:
            level = at(one.level)
            if level and (sum(one.sizes) == count or (len(one.sizes) == 1 and count % one.sizes[0] == 0)):
                slices.append(msgspec.structs.replace(one, level=level))
            elif level:
                self.ledger.assumed("slices of a gang that its pods do not divide into", "no slices", where)
        spread = []
        for limit in given.spread:
            if level := at(limit.level):
                fewest = None if limit.min_domains is None else min(limit.min_domains, count)
                spread.append(msgspec.structs.replace(limit, level=level, min_domains=fewest))
        found = Topology(
            required=at(given.required),
            preferred=at(given.preferred),
            slices=tuple(slices),
            balanced=at(given.balanced),
            spread=tuple(spread),
        )
        return None if found == Topology() else found

    def _near(
        self, gang: Gang, waits: list[tuple[GangGroup, list[_Kind]]], runs: list[tuple[GangGroup, list[_Kind]]]
    ) -> list[tuple[GangGroup, list[_Kind]]]:
        """Keep what is left of a gang to the domain that what runs of it is in, where all must be in one."""
        at: dict[str, set[str]] = {
            group.name: {entry.node for kind in kinds for entry in kind.entries} for group, kinds in runs
        }
        everywhere = set().union(*at.values())
        for group, kinds in waits:
            for topology, nodes in ((group.topology, at.get(group.name, set())), (gang.topology, everywhere)):
                level = self.level(topology.required) if topology is not None and topology.required else None
                if level and nodes:
                    for kind in kinds:
                        kind.tasks = self.near(kind.tasks, level, nodes)
        return waits


def _kinds(entries: Sequence[Entry]) -> list[_Kind]:
    """Return entries by what they ask for; equal tasks are one object."""
    kinds: dict[int, _Kind] = {}
    for entry in entries:
        kinds.setdefault(id(entry.tasks), _Kind(entry.tasks, [])).entries.append(entry)
    return list(kinds.values())


def _group(
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


def _paths(path: str, tasks: Tasks, alone: bool = False) -> list[str]:
    """Return the paths of the tasks of a pod in a group."""
    if len(tasks) == 1:
        return [path]
    return [f"{path}/{number + 1}" if alone else f"{path}/pod/{number + 1}" for number in range(len(tasks))]


def _places(entry: Entry, paths: Sequence[str], index: int) -> tuple[RunningTask, ...]:
    return tuple(
        RunningTask(group=path, index=index, node=entry.node, gpus=held.gpus, mig_starts=held.starts)
        for path, held in zip(paths, entry.held, strict=True)
    )


def _free(name: str, taken: set[str]) -> str:
    found, number = name, 1
    while found in taken:
        number += 1
        found = f"{name}-{number}"
    taken.add(found)
    return found
