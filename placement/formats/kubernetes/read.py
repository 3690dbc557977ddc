"""Objects of a cluster to a snapshot: what is read in which order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from placement.collector import collector_paused
from placement.errors import InputError
from placement.formats.dra import read as dra
from placement.formats.kai import read as kai
from placement.formats.kubernetes import coscheduling, gangs, nodes, pods, zones
from placement.formats.kubernetes.objects import Objects
from placement.formats.kueue import read as kueue
from placement.formats.ledger import Ledger
from placement.formats.options import Options
from placement.formats.source import File
from placement.formats.volcano import read as volcano
from placement.snapshot import Job, Snapshot, TaskGroup
from placement.snapshot.report import show

SYSTEMS = (kueue, volcano, kai, gangs, coscheduling)
"""Systems beside the core; a pod belongs to the first that knows it."""


def read(files: Sequence[File], options: Options, ledger: Ledger) -> Snapshot:
    """Return the snapshot of what kubectl printed.

    Parameters
    ----------
    files : sequence of File
        Objects, in any order and split over files in any way.
    options : Options
    ledger : Ledger
        Gets what was read, assumed and ignored.

    Raises
    ------
    InputError
        If an object is not what its kind has to be, or there is no node.
    """
    with collector_paused():
        objects = Objects(files)
        devices = dra.read(objects, ledger)
        additions = [system.read(objects, ledger) for system in SYSTEMS]
        cluster = nodes.read(objects, devices, zones.read(objects, ledger), additions, options, ledger)
        if not cluster.nodes:
            _refuse_status(objects)
            names = ", ".join(file.name for file in files)
            raise InputError.one(
                f"there is no Node in {names}", "add what `kubectl get nodes -o json` prints", source=""
            )
        named, jobs = pods.read(objects, cluster, devices, additions, ledger)
        if cluster.levels:
            _note_free(jobs, ledger)
        objects.note_unread(ledger)
        return Snapshot(
            time=_time(jobs, options, ledger),
            topology=cluster.levels,
            nodes=named,
            jobs=jobs,
            queues=tuple(queue for addition in additions for queue in addition.queues),
        )


def _note_free(jobs: Sequence[Job], ledger: Ledger) -> None:
    """Note gangs with cards that may lie in several racks, which few of those want who do not say so."""
    for job in jobs:
        groups = [group for top in job.groups for group in _all(top)]
        tasks = [group for group in groups if group.task is not None and group.task.gpus]
        ruled = job.affinity or any(group.topology is not None for group in groups)
        if job.running is None and not ruled and sum(group.count for group in tasks) > 1:
            ledger.assumed("where a gang without a topology rule lies", "anywhere, so in several domains too", job.name)


def _all(group: TaskGroup) -> Iterator[TaskGroup]:
    yield group
    for inner in group.groups:
        yield from _all(inner)


class _Status(msgspec.Struct):
    message: str | None = None


def _refuse_status(objects: Objects) -> None:
    """Raise with what the API server said where a file holds its refusal in the place of objects."""
    for item in objects.of("", "Status", _Status):
        what = f"the API server refused: {show(item.value.message or 'it does not say why', 200)}"
        raise InputError.one(what, "dump it again with the rights to read it", path=item.path, source=item.file)


def _time(jobs: Sequence[Job], options: Options, ledger: Ledger) -> float:
    """Return the moment of the snapshot: no object says when it was dumped."""
    if options.time is not None:
        return options.time
    since = [job.running.since for job in jobs if job.running is not None and job.running.since is not None]
    latest = max([*since, *(job.submit_time for job in jobs if job.submit_time is not None)], default=0.0)
    ledger.assumed("moment of the snapshot", "the latest time in it; --time says another")
    return latest
