"""Rules for where running tasks are: what is physically impossible is an error, what is merely too much is not.

Cards and nodes that are over-full, minima that are not met, cards that are unhealthy now: all of that happens on real
clusters and is carried, and so are NUMA zones of which running work takes more than they have. A device that does not
exist, a MIG instance that cannot be beside the others of its card, or a NIC that two tasks hold, cannot be.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter

from placement.snapshot.cluster import Gpu, Node
from placement.snapshot.fields import MOST_MOMENT, MOST_SECONDS, Names, distinct, moment, number, whole, wrong_name
from placement.snapshot.report import Found, Report, many, show, suggestion
from placement.snapshot.validate_jobs import MOST_DEPTH
from placement.snapshot.validate_mig import MOST_SLOT, RunningInstances, mig_cards
from placement.snapshot.validate_zones import cards_of, no_card, outside
from placement.snapshot.workload import Job, Running, RunningTask, Task, TaskGroup

# what few running jobs and tasks have is looked at one by one where it is there at all
_STATE = attrgetter("since", "work_done", "last_checkpoint", "restarts")
_NO_STATE = _STATE(Running(tasks=()))
_DEVICES = attrgetter("zone", "nics", "mig_starts")
_NO_DEVICES = _DEVICES(RunningTask(group="", index=0, node=""))

Leaves = Mapping[str, tuple[Task, int]]
"""Groups with tasks by path: the task, and how many of it a whole job has."""


@dataclass(frozen=True, slots=True)
class _Devices:
    """What a node has that a task can hold; None for what is wrong itself, which is all there is to say of it.

    Cards with MIG on are listed by index.
    """

    cards: int | None
    zones: frozenset[int] | None
    nics: frozenset[str] | None
    mig: dict[int, Gpu]


class RunningRules:
    """Rules for running jobs; remembers which MIG instances and NICs are taken."""

    def __init__(self, nodes: tuple[Node, ...], names: Names, time: float, report: Report) -> None:
        self.nodes = nodes
        self.names = names
        self.time = time
        self.report = report
        # by identity of what they are made of: jobs and nodes that were read share equal groups and cards
        self.leaves: dict[int, Leaves] = {}
        self.devices: dict[tuple[int, int], _Devices] = {}
        self.instances = RunningInstances()
        self.nics: dict[tuple[str, str], str] = {}

    def judge(self, index: int, job: Job, running: Running) -> None:
        """Report what is wrong with where a running job is."""
        if job.count > 1:
            what = f"the job stands for {show(job.count)} jobs, but only one of them can be at these places"
            self.report.add(f"jobs[{index}].running", what, "give each running job an entry of its own")
        if _STATE(running) != _NO_STATE:
            self.report.extend(f"jobs[{index}].running", self._state(running))
        leaves = self.leaves.get(id(job.groups))
        if leaves is None:
            leaves = self.leaves[id(job.groups)] = dict(_leaves(job.groups))
        taken: dict[tuple[str, int], int] = {}
        for number_, place in enumerate(running.tasks):
            leaf = leaves.get(place.group)
            first = taken.setdefault((place.group, place.index), number_)
            if leaf is None or not 0 <= place.index < leaf[1]:
                self._judge_group(f"jobs[{index}].running.tasks[{number_}]", place, leaves)
            elif first != number_:
                what = f"task {place.index} of {show(place.group)} is at tasks[{first}] already"
                self.report.add(f"jobs[{index}].running.tasks[{number_}].index", what, "keep one of them")
            entry = self.names.find(place.node)
            if entry is None:
                path = f"jobs[{index}].running.tasks[{number_}].node"
                self.report.unknown(path, "node", place.node, self.names.known)
                continue
            devices = self._devices(self.nodes[entry])
            if not _holds_just_cards(place, devices, None if leaf is None else leaf[0]):
                where = f"jobs[{index}].running.tasks[{number_}]"
                self.report.extend(where, _held(place, devices, None if leaf is None else leaf[0]))
                inside = devices.cards is not None and not any(outside(card, devices.cards) for card in place.gpus)
                if leaf is not None and inside:
                    found = self.instances.judge(where, job.name, place, leaf[0], devices.mig)
                    self.report.extend(where, found)
                self._judge_nics(where, place)

    def _judge_group(self, where: str, place: RunningTask, leaves: Leaves) -> None:
        """Report a task that its job does not have."""
        if place.group not in leaves:
            self.report.unknown(f"{where}.group", "group with tasks in this job called", place.group, sorted(leaves))
        else:
            most = leaves[place.group][1] - 1
            what = f"found {show(place.index)}, but the group has tasks 0 to {show(most)}"
            self.report.add(f"{where}.index", what, "correct the index")

    def _devices(self, node: Node) -> _Devices:
        key = id(node.gpus), id(node.zones)
        devices = self.devices.get(key)
        if devices is None:
            devices = self.devices[key] = _devices_of(node)
        return devices

    def _state(self, running: Running) -> Iterator[Found]:
        yield from moment(".since", running.since)
        yield from number(".work_done", running.work_done, 0, MOST_SECONDS)
        yield from moment(".last_checkpoint", running.last_checkpoint)
        yield from whole(".restarts", running.restarts)
        since = running.since if running.since is not None else -math.inf
        for key, found in (("since", running.since), ("last_checkpoint", running.last_checkpoint)):
            if found is not None and self.time < found <= MOST_MOMENT:
                yield (
                    f".{key}",
                    f"found {show(found)}, which is after the snapshot's time {show(self.time)}",
                    "correct it",
                )
        if running.last_checkpoint is not None and running.last_checkpoint < since <= self.time:
            yield (
                ".last_checkpoint",
                f"found {show(running.last_checkpoint)}, which is before the job began",
                "correct it",
            )

    def _judge_nics(self, where: str, place: RunningTask) -> None:
        for number_, nic in enumerate(place.nics):
            other = self.nics.setdefault((place.node, nic), where)
            if other != where:
                what = f"NIC {show(nic)} of {show(place.node)} is held by {other}"
                self.report.add(f"{where}.nics[{number_}]", what, "a NIC has one task: correct one of them")


def _leaves(
    groups: tuple[TaskGroup, ...], above: str = "", copies: int = 1, depth: int = 1
) -> Iterator[tuple[str, tuple[Task, int]]]:
    """Yield the path of each group with tasks, its task and how many of them a whole job has."""
    for group in groups:
        count = copies * max(0, group.count)
        if group.task is not None:
            yield f"{above}{group.name}", (group.task, count)
        if depth < MOST_DEPTH:
            yield from _leaves(group.groups, f"{above}{group.name}/", count, depth + 1)


def _devices_of(node: Node) -> _Devices:
    nics = frozenset(nic.name for zone in node.zones for nic in zone.nics)
    cards = cards_of(node.gpus)
    return _Devices(
        cards=cards,
        zones=None if any(any(whole("", zone.id)) for zone in node.zones) else frozenset(z.id for z in node.zones),
        nics=None if any(map(wrong_name, nics)) else nics,
        mig={} if cards is None else mig_cards(node.gpus),
    )


def _holds_just_cards(place: RunningTask, devices: _Devices, task: Task | None) -> bool:
    """Return whether a task holds cards that are there, as many as it asks for, and nothing else: nearly all do."""
    gpus = place.gpus
    return (
        task is not None
        and len(gpus) == task.gpus
        and not task.mig_profile
        and _DEVICES(place) == _NO_DEVICES
        and (
            not gpus
            or (
                not outside(min(gpus), devices.cards)
                and not outside(max(gpus), devices.cards)
                and len(set(gpus)) == len(gpus)
                and devices.mig.keys().isdisjoint(gpus)
            )
        )
    )


def _held(place: RunningTask, devices: _Devices, task: Task | None) -> Iterator[Found]:
    """Yield what is wrong with the devices that a task holds."""
    gpus = place.gpus
    if task is not None and len(gpus) != task.gpus:
        what = f"the task holds {many(len(gpus), 'card')}, but asks for {show(task.gpus)}"
        yield ".gpus", what, "list the indices of exactly these cards"
    for number_, card in enumerate(gpus):
        if outside(card, devices.cards):
            yield f".gpus[{number_}]", no_card(card, devices.cards, show(place.node)), "correct the index"
    if len(set(gpus)) != len(gpus):
        yield from distinct(".gpus", gpus, "card")
    if place.zone is not None and devices.zones is not None and place.zone not in devices.zones:
        yield ".zone", f"{show(place.node)} has no NUMA zone {show(place.zone)}", "list it in the node's `zones`"
    for number_, nic in enumerate(place.nics):
        if devices.nics is not None and nic not in devices.nics:
            remedy = suggestion(nic, sorted(devices.nics)) if devices.nics else "list it in the node's `zones`"
            yield f".nics[{number_}]", f"{show(place.node)} has no NIC {show(nic)}", remedy
    yield from distinct(".nics", place.nics, "NIC")
    if task is not None and place.nics and len(place.nics) != task.nics:
        yield (
            ".nics",
            f"the task holds {many(len(place.nics), 'NIC')}, but asks for {show(task.nics)}",
            "correct the list",
        )
    if task is not None and task.mig_profile and len(place.mig_starts) != len(gpus):
        what = f"{len(place.mig_starts)} slots for instances on {len(gpus)} cards"
        yield ".mig_starts", what, "give the first slot of the instance on each card"
    elif task is not None and not task.mig_profile and place.mig_starts:
        yield ".mig_starts", "the task asks for no MIG instance", "leave it out, or give the task a `mig_profile`"
    for number_, start in enumerate(place.mig_starts):
        yield from whole(f".mig_starts[{number_}]", start, 0, MOST_SLOT)
