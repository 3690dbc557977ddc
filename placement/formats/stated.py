"""Zones and NICs that running tasks are said to have, held against the nodes as all files together describe them."""

from __future__ import annotations

import msgspec

from placement.formats.ledger import Ledger
from placement.formats.tasks import copies
from placement.snapshot import Job, RunningTask, Snapshot, TaskGroup


def held(snapshot: Snapshot, ledger: Ledger) -> Snapshot:
    """Return the snapshot without zones and NICs that nodes do not have, and without NICs that another task has.

    Who had such a NIC still has as many, whichever they are, unless no node of its job has any.
    """
    if not any(_says(job) for job in snapshot.jobs):
        return snapshot
    places = {name: node for node in snapshot.nodes for name in copies(node)}
    zones = {name: {zone.id for zone in node.zones} for name, node in places.items()}
    nics = {name: {nic.name for zone in node.zones for nic in zone.nics} for name, node in places.items()}
    taken: set[tuple[str, str]] = set()

    def judged(job: str, place: RunningTask) -> RunningTask:
        zone, mine = place.zone, place.nics
        if zone is not None and zone not in zones.get(place.node, ()):
            ledger.contradiction("an annotation says a NUMA zone that the node does not have", "any zone", job)
            zone = None
        if mine and not set(mine) <= nics.get(place.node, set()):
            ledger.contradiction("an annotation says NICs that the node does not have", "the node", job)
            mine = ()
        elif len(set(mine)) < len(mine) or any((place.node, nic) in taken for nic in mine):
            ledger.contradiction("annotations say one NIC twice", "the first", job)
            mine = ()
        taken.update((place.node, nic) for nic in mine)
        return msgspec.structs.replace(place, zone=zone, nics=mine)

    jobs = []
    for job in snapshot.jobs:
        if job.running is not None and _says(job):
            found = tuple(judged(job.name, place) for place in job.running.tasks)
            none = not any(nics.get(place.node) for place in found)
            groups = tuple(map(_without, job.groups)) if none else job.groups
            job = msgspec.structs.replace(job, running=msgspec.structs.replace(job.running, tasks=found), groups=groups)
        jobs.append(job)
    return msgspec.structs.replace(snapshot, jobs=tuple(jobs))


def _says(job: Job) -> bool:
    return job.running is not None and any(place.zone is not None or place.nics for place in job.running.tasks)


def _without(group: TaskGroup) -> TaskGroup:
    """Return a group of which no task asks for NICs."""
    task = None if group.task is None else msgspec.structs.replace(group.task, nics=0)
    return msgspec.structs.replace(group, task=task, groups=tuple(map(_without, group.groups)))
