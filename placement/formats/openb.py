"""Reader of the openb trace: Alibaba's cluster-trace-gpu-v2023 as prepared for FGD (Weng et al., ATC'23).

Two CSV files, plain or gzipped. Nodes: ``sn, cpu_milli, memory_mib, gpu, model``. Pods: ``name, cpu_milli, memory_mib,
num_gpu, gpu_milli`` and optionally ``gpu_spec`` (``A|B`` = card models allowed) and ``creation_time``. The files are in
``data/csv`` of hkust-adsl/kubernetes-scheduler-simulator (Apache-2.0).

Where arrivals are wanted, a pod runs from ``scheduled_time``, or where that is empty ``creation_time``, to
``deletion_time``; seconds. Else these two are not read, and ``qos`` and ``pod_phase`` never are: a snapshot has no
place for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from placement.arrivals import draw
from placement.errors import InputError
from placement.formats.ledger import Ledger
from placement.formats.options import Options
from placement.formats.rows import Row, rows
from placement.formats.source import File, files
from placement.snapshot import Duration, Gpu, Job, Node, Snapshot, Task, TaskGroup

T = TypeVar("T", Node, Job)

_NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
_POD_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
_TIMES = ("creation_time", "deletion_time", "scheduled_time")


def read(nodes: str | Path, pods: str | Path) -> Snapshot:
    """Return the snapshot of a node list and a pod list; every pod is a pending job of one task.

    Parameters
    ----------
    nodes, pods : str or Path
        The two files; names that end in ``.gz`` are unpacked.

    Raises
    ------
    InputError
        If a file cannot be read, lacks a column, or has a field that is no whole number of 0 or more.
    """
    return _snapshot(*files(str(nodes)), *files(str(pods)))


def of(found: Sequence[File], options: Options, ledger: Ledger) -> Snapshot:
    """Return the snapshot of a trace's two files, in either order; they are told apart by their columns."""
    kinds = {file.data[:2] == b"sn": file for file in found}
    if len(found) != 2 or len(kinds) != 2:
        names = ", ".join(file.name for file in found)
        raise InputError.one(f"found {names}", "give one node list and one pod list of the trace")
    snapshot = _snapshot(kinds[True], kinds[False])
    unread = ["qos", "pod_phase"]
    if options.events:
        snapshot = _timed(snapshot, kinds[False], ledger)
    else:
        unread += ["deletion_time", "scheduled_time"]
    ledger.read("nodes", count=len(snapshot.nodes))
    ledger.read("pods, each a pending job of one task", count=len(snapshot.jobs))
    for column in unread:
        if column.encode() in kinds[False].data.partition(b"\n")[0]:
            ledger.ignored(f"column {column}", "a snapshot has no place for it", kinds[False].name)
    return snapshot if options.arrivals is None else draw(snapshot, options.arrivals, options.load or 1.0)


def _snapshot(nodes: File, pods: File) -> Snapshot:
    return Snapshot(
        description=f"openb trace: {Path(nodes.name).name}, {Path(pods.name).name}",
        source="https://github.com/hkust-adsl/kubernetes-scheduler-simulator",
        licence="Apache-2.0",
        nodes=tuple(_node(row) for row in rows(nodes, _NODE_COLUMNS)),
        jobs=tuple(_job(row) for row in rows(pods, _POD_COLUMNS)),
    )


def _timed(snapshot: Snapshot, pods: File, ledger: Ledger) -> Snapshot:
    """Return the snapshot with how long each pod ran; one that was not deleted after it began has no run time."""
    jobs = []
    for job, row in zip(snapshot.jobs, rows(pods, (*_POD_COLUMNS, *_TIMES)), strict=True):
        began = "scheduled_time" if row.fields["scheduled_time"] else "creation_time"
        seconds = row.number("deletion_time") - row.number(began) if row.fields["deletion_time"] else 0
        if seconds > 0:
            jobs.append(msgspec.structs.replace(job, duration=Duration(seconds=float(seconds))))
        else:
            jobs.append(job)
            ledger.contradiction("pods deleted before they began, or never", "no run time", row.where)
    return msgspec.structs.replace(snapshot, jobs=tuple(jobs))


def kinds(snapshot: Snapshot) -> Snapshot:
    """Return a trace's snapshot with equal nodes and equal pods counted: the same problem, without names and times.

    Kinds come in the order in which the trace first shows them.
    """
    nodes: dict[bytes, Node] = {}
    for node in snapshot.nodes:
        _count(nodes, msgspec.structs.replace(node, name=f"node-{len(nodes):02}"))
    jobs: dict[bytes, Job] = {}
    for job in snapshot.jobs:
        _count(jobs, msgspec.structs.replace(job, name=f"pod-{len(jobs):03}", submit_time=None))
    return msgspec.structs.replace(snapshot, nodes=tuple(nodes.values()), jobs=tuple(jobs.values()))


def _count(found: dict[bytes, T], item: T) -> None:
    key = msgspec.json.encode(msgspec.structs.replace(item, name="", count=1))
    known = found.setdefault(key, msgspec.structs.replace(item, count=0))
    found[key] = msgspec.structs.replace(known, count=known.count + 1)


def _node(row: Row) -> Node:
    cards = row.number("gpu")
    return Node(
        name=row.fields["sn"],
        cpu=_cores(row.number("cpu_milli")),
        memory=f"{row.number('memory_mib')}Mi",
        gpus=(Gpu(model=row.fields["model"], count=cards),) if cards else (),
    )


def _job(row: Row) -> Job:
    cards, milli = row.number("num_gpu"), row.number("gpu_milli")
    if cards and not 0 < milli <= 1000:
        raise InputError.one(
            f"{milli} is no share of a card",
            "give 1 to 1000",
            path=f"line {row.line}, column gpu_milli",
            source=row.source,
        )
    models = [model for model in row.fields.get("gpu_spec", "").split("|") if model]
    task = Task(
        gpus=cards,
        gpu_share=f"{milli}m" if cards and milli < 1000 else None,
        cpu=_cores(row.number("cpu_milli")),
        memory=f"{row.number('memory_mib')}Mi",
        gpu_models=tuple(models) if cards else (),
    )
    return Job(
        name=row.fields["name"],
        submit_time=float(row.number("creation_time")) if row.fields.get("creation_time") else None,
        groups=(TaskGroup(name="pod", task=task),),
    )


def _cores(milli: int) -> int | str:
    return f"{milli}m" if milli % 1000 else milli // 1000
