"""Jobs of the snapshot: those that run, with what they hold, and those that wait, with what they ask for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from placement.formats.kubernetes.objects import Item
from placement.formats.ledger import Ledger
from placement.formats.slurm import asks
from placement.formats.slurm.held import Held
from placement.formats.slurm.hostlist import expand
from placement.formats.slurm.labels import WITHOUT, Labels, simple
from placement.formats.slurm.names import Dependencies, Entry
from placement.formats.slurm.nodes import RESERVED, Host
from placement.formats.slurm.numbers import moment, whole
from placement.formats.slurm.records import JobRecord, Texts, texts
from placement.snapshot import (
    Affinity,
    Duration,
    Job,
    Running,
    RunningTask,
    Slice,
    Task,
    TaskGroup,
    Toleration,
    Topology,
)
from placement.snapshot.fields import MOST_PRIORITY, MOST_SECONDS

UNKNOWN = "slurm/unknown/"
"""Name of the stand-in for work on a node that is not known, before the node's name."""

NOT_READ = ("licenses", "burst_buffer", "cluster_features", "network")
"""Fields of a job that limit when it may start, for which a snapshot has no place."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What jobs are read against.

    Attributes
    ----------
    hosts : mapping of str to Host
    labels : Labels
    levels : tuple of str
        Of the topology, from wide to narrow.
    apart : bool
        Whether no job runs in two domains of the widest of them.
    reserved : mapping of str to frozenset of str
        Nodes by reservation.
    partitions : mapping of str to frozenset of str
        States of each partition that is described.
    time : float
    priorities : mapping of int to int
        What Slurm's priorities are here.
    choices : dict of frozenset of str to Choice
        Those that were asked for, by the labels that a job's nodes must carry.
    """

    hosts: Mapping[str, Host]
    labels: Labels
    levels: tuple[str, ...]
    apart: bool
    reserved: Mapping[str, frozenset[str]]
    partitions: Mapping[str, frozenset[str]]
    time: float
    priorities: Mapping[int, int]
    choices: dict[frozenset[str], asks.Choice] = field(default_factory=dict)

    def choice(self, labels: frozenset[str]) -> asks.Choice:
        """Return the nodes that carry some labels."""
        found = self.choices.get(labels)
        if found is None:
            found = asks.Choice.of(self.labels.nodes(labels))
            self.choices[labels] = found
        return found


def priorities(found: Mapping[str, Entry]) -> dict[int, int]:
    """Return tiers for Slurm's priorities: the numbers themselves, or their ranks where one is too large."""
    numbers = sorted({_priority(entry.item) for entry in found.values()})
    large = bool(numbers) and numbers[-1] > MOST_PRIORITY
    return {number: rank if large else number for rank, number in enumerate(numbers)}


def _priority(item: Item[JobRecord]) -> int:
    return whole(item, "priority", item.value.priority) or 0


def _common(entry: Entry, around: Surroundings, ledger: Ledger) -> dict[str, Any]:
    """Return what running and waiting jobs have alike."""
    item, job = entry.item, entry.item.value
    minutes = whole(item, "time_limit", job.time_limit)
    duration = None
    if minutes and minutes * 60 <= MOST_SECONDS:
        ledger.assumed("run time of a job", "its limit", item.where)
        # Slurm ends a job at its limit wherever it lies, so that no place makes it longer
        duration = Duration(seconds=float(minutes * 60), levels={"node": 1.0})
    else:
        ledger.assumed("run time of a job without a limit", "not known", item.where)
    deadline = moment(item, "deadline", job.deadline)
    return {
        "name": entry.name,
        "tenant": (job.account or "").replace("(null)", ""),
        "priority": around.priorities[_priority(item)],
        "submit_time": moment(item, "submit_time", job.submit_time),
        "duration": duration,
        "deadline": deadline,
        "hard_deadline": deadline is not None,
    }


def running(entry: Entry, held: Sequence[tuple[str, Held]], around: Surroundings, ledger: Ledger) -> Job:
    """Return a job that runs; its tasks are what it has on each of its nodes."""
    item = entry.item
    since = moment(item, "start_time", item.value.start_time)
    if since is not None and since > around.time:
        ledger.contradiction("a running job was started after the moment of the snapshot", "that moment", item.where)
        since = around.time
    groups, tasks = _groups(held)
    restarts = whole(item, "restart_cnt", item.value.restart_cnt, short=True) or 0
    return Job(
        **_common(entry, around, ledger),
        groups=groups,
        running=Running(tasks=tasks, since=since, restarts=restarts),
    )


def unknown(node: str, held: Held) -> Job:
    """Return the stand-in for work on a node that no job explains."""
    groups, tasks = _groups([(node, held)])
    return Job(name=f"{UNKNOWN}{node}", groups=groups, running=Running(tasks=tasks))


def _groups(held: Sequence[tuple[str, Held]]) -> tuple[tuple[TaskGroup, ...], tuple[RunningTask, ...]]:
    kinds: dict[bytes, tuple[Task, list[tuple[str, Held]]]] = {}
    for node, mine in held:
        task = Task(
            gpus=len(mine.cards),
            cpu=mine.cpus,
            memory=f"{mine.memory}Mi" if mine.memory else 0,
            extended=dict(sorted(mine.extended.items())),
        )
        kinds.setdefault(msgspec.json.encode(task), (task, []))[1].append((node, mine))
    groups, tasks = [], []
    for number, (task, places) in enumerate(kinds.values()):
        name = "node" if len(kinds) == 1 else f"node-{number}"
        groups.append(TaskGroup(name=name, count=len(places), task=task))
        tasks += [
            RunningTask(group=name, index=index, node=node, gpus=tuple(mine.cards))
            for index, (node, mine) in enumerate(places)
        ]
    return tuple(groups), tuple(tasks)


def waiting(entry: Entry, around: Surroundings, after: Dependencies, ledger: Ledger) -> Job:
    """Return a job that waits."""
    item, job = entry.item, entry.item.value
    _note(entry, around, ledger)
    selector = _selector(item, around, ledger)
    groups = asks.groups(
        item, around.choice(frozenset(name for name in selector if not name.startswith(WITHOUT))), ledger
    )
    tolerations = tuple(Toleration(key=RESERVED, value=name) for name in _listed(job.resv_name))
    topology = _topology(item, groups, around, ledger)
    named = tuple(_placed(group, selector, tolerations, topology if len(groups) == 1 else None) for group in groups)
    affinity: tuple[Affinity, ...] = ()
    if len(named) == 2:
        affinity = (Affinity(a=named[0].name, b=named[1].name, level="node", kind="apart"),)
        if topology is not None and topology.required:
            # one domain for both: the groups become one
            named = (TaskGroup(name="job", groups=named, topology=topology),)
            affinity = (Affinity(a=f"job/{groups[0].name}", b=f"job/{groups[1].name}", level="node", kind="apart"),)
    return Job(**_common(entry, around, ledger), groups=named, affinity=affinity, after=after.of(entry, ledger))


def _placed(
    group: TaskGroup, selector: Mapping[str, str], tolerations: tuple[Toleration, ...], topology: Topology | None
) -> TaskGroup:
    """Return a group with what the job as a whole asks for."""
    task = group.task
    if task is not None:
        task = msgspec.structs.replace(task, node_selector=dict(selector), tolerations=tolerations)
    if topology is not None:
        own = group.topology or Topology()
        required = topology.required or own.required
        if own.required == "node":
            required = "node"
        preferred = topology.preferred if required != "node" else ""
        topology = Topology(required=required, preferred=preferred, slices=topology.slices, spread=own.spread)
    return msgspec.structs.replace(group, task=task, topology=topology or group.topology)


def _note(entry: Entry, around: Surroundings, ledger: Ledger) -> None:
    """Note what keeps a job from starting that a snapshot cannot say."""
    item, job = entry.item, entry.item.value
    # a job is held by taking its priority from it (scontrol(1), hold); the reason may be another that came later
    held = job.hold or (job.state_reason or "") in ("JobHeldUser", "JobHeldAdmin", "JobHoldMaxRequeue")
    if held or whole(item, "priority", job.priority) == 0:
        ledger.unsupported("a job that is held", "it may start here", item.where, item.file)
    if job.state_reason == "DependencyNeverSatisfied":
        ledger.unsupported("a job that waits for what cannot happen", "it may start here", item.where, item.file)
    eligible = moment(item, "eligible_time", job.eligible_time)
    if eligible is not None and eligible > around.time:
        ledger.unsupported("a job that may not start before a time", "it may start here", item.where, item.file)
    for name in NOT_READ:
        if _said(getattr(job, name)):
            ledger.unsupported(f"field {name} of a job", "a snapshot has no place for it", item.where, item.file)
    if job.contiguous:
        ledger.unsupported("nodes that must be neighbours", "they may be anywhere", item.where, item.file)
    if _said(job.prefer):
        ledger.ignored("features that a job would rather have", "a wish", item.where)
    for name in _listed(job.partition):
        bad = around.partitions.get(name, frozenset()) & {"DOWN", "INACTIVE"}
        if bad:
            what = f"a job in a partition that is {min(bad)}"
            ledger.unsupported(what, "it may start here", item.where, item.file)


def _said(text: str | None) -> bool:
    return (text or "").strip().lower() not in ("", "(null)", "n/a", "none")


def _listed(found: Texts) -> tuple[str, ...]:
    return tuple(name for name in texts(found) if _said(name))


def _selector(item: Item[JobRecord], around: Surroundings, ledger: Ledger) -> dict[str, str]:
    """Return the labels that the nodes of a job must carry."""
    job, labels = item.value, around.labels
    found: list[str] = []
    names = _listed(job.partition)
    if names and labels.any_partition:
        if not any(labels.has_partition(name) for name in names):
            ledger.contradiction("a job waits in a partition that no node is in", "it fits nowhere", item.where)
        found.append(labels.partitions(names))
    if _said(job.features):
        text = (job.features or "").strip()
        words = simple(text)
        if words is not None:
            found += [labels.feature(word) for word in words]
        else:
            try:
                found.append(labels.features(text.replace("[", "(").replace("]", ")")))
                if "[" in text and whole(item, "node_count", job.node_count) != 1:
                    what = "features of which all nodes must have the same"
                    ledger.unsupported(what, "each has some of them", item.where, item.file)
            except ValueError:
                ledger.unsupported("features that are counted or set in relation", "they are not asked for", item.where)
    required, excluded = (
        expand(",".join(texts(listed)), item.file, f"{item.path}.{name}")
        for name, listed in (("required_nodes", job.required_nodes), ("excluded_nodes", job.excluded_nodes))
    )
    if required:
        if len(set(required)) >= max(1, whole(item, "node_count", job.node_count) or 1):
            found.append(labels.only(tuple(dict.fromkeys(required))))
        else:
            ledger.unsupported("some nodes that a job must have among others", "it may have others", item.where)
    if excluded:
        found.append(labels.without(tuple(dict.fromkeys(excluded))))
    reserved = _listed(job.resv_name)
    if reserved:
        nodes = frozenset[str]().union(*(around.reserved.get(name, ()) for name in reserved))
        found.append(labels.reservation(reserved, nodes))
    return dict.fromkeys(found, "yes")


def _topology(
    item: Item[JobRecord], groups: Sequence[TaskGroup], around: Surroundings, ledger: Ledger
) -> Topology | None:
    """Return what a job says about switches and blocks.

    Slurm gives a job as few of them as it can (topology.conf(5)), which is a preference for the narrowest.
    """
    job = item.value
    switches = whole(item, "required_switches", job.required_switches)
    if not switches:
        switches = whole(item, "minimum_switches", job.minimum_switches)
    segment = whole(item, "segment_size", job.segment_size, short=True) or 0
    tasks = sum(group.count for group in groups)
    required: str = around.levels[0] if around.apart and around.levels and tasks > 1 else ""
    slices: tuple[Slice, ...] = ()
    if switches and tasks > 1:
        if switches == 1 and around.levels:
            ledger.assumed("how long a job waits for few switches", "for ever", item.where)
            required = around.levels[-1]
        else:
            ledger.unsupported(
                "most switches of a job", "only one switch of a known topology can be asked for", item.where
            )
    if segment > 1 and tasks > 1:
        if around.levels and len(groups) == 1 and tasks % segment == 0:
            slices = (Slice(level=around.levels[-1], sizes=(segment,)),)
        else:
            ledger.unsupported("segments of a job", "no known topology, or they do not divide it", item.where)
    narrowest: str = around.levels[-1] if around.levels and tasks > 1 else ""
    if not narrowest:
        return Topology(required=required) if required else None
    return Topology(required=required, preferred=narrowest if required != narrowest else "", slices=slices)
