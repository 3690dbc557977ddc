"""Records as Slurm's JSON has them, and what is asked of the snapshots made of them. Import it as ``slurm_records``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from placement.errors import InputError
from placement.formats.read import read
from placement.formats.source import File
from placement.snapshot import Job, Snapshot, Task

NOW = 1_800_000_000


def number(value: float) -> dict[str, Any]:
    return {"set": True, "infinite": False, "number": value}


UNSET = {"set": False, "infinite": False, "number": 0}


def node(name: str, gres: str = "gpu:h100:4", used: str | None = None, **more: Any) -> dict[str, Any]:
    """Return a node of 32 threads and 256 GiB as v0.0.44 prints it."""
    if used is None:
        used = ",".join(f"gpu:{part.split(':')[1]}:0(IDX:N/A)" for part in gres.split(",") if part.count(":") > 1)
    return {
        "name": name,
        "hostname": name,
        "state": ["IDLE"],
        "gres": gres,
        "gres_used": used,
        "gres_drained": "N/A",
        "cpus": 32,
        "effective_cpus": 32,
        "sockets": 2,
        "cores": 16,
        "threads": 1,
        "real_memory": 262144,
        "specialized_memory": 0,
        "alloc_memory": 0,
        "alloc_cpus": 0,
        "features": [],
        "active_features": [],
        "partitions": ["gpu"],
        "reservation": "",
        "owner": "",
        "tres_used": "",
        **more,
    }


def job(number_: int, **more: Any) -> dict[str, Any]:
    """Return a job that waits for one node with 4 threads and 1 GiB on each."""
    return {
        "job_id": number_,
        "array_job_id": number(0),
        "array_task_id": UNSET,
        "array_task_string": "",
        "het_job_id": number(0),
        "job_state": ["PENDING"],
        "state_reason": "Resources",
        "hold": False,
        "account": "physics",
        "partition": "gpu",
        "priority": number(100),
        "nodes": "",
        "gres_detail": [],
        "job_resources": None,
        "cpus": number(4),
        "node_count": number(1),
        "max_nodes": number(0),
        "tasks": number(1),
        "cpus_per_task": number(4),
        "memory_per_cpu": number(256),
        "memory_per_node": UNSET,
        "submit_time": number(NOW - 100),
        "start_time": number(0),
        "time_limit": number(60),
        **more,
    }


def runs(number_: int, nodes: str, detail: Sequence[str | None], **more: Any) -> dict[str, Any]:
    return job(
        number_,
        **{"job_state": ["RUNNING"], "nodes": nodes, "gres_detail": detail, "start_time": number(NOW - 50), **more},
    )


def dump(**lists: Any) -> File:
    return File(f"{'-'.join(lists)}.json", json.dumps({**lists, "last_update": number(NOW)}).encode())


def of(nodes: list[dict[str, Any]], jobs: list[dict[str, Any]] | None = None, *files: File, **more: Any) -> Snapshot:
    """Return the snapshot of nodes and jobs, each of which is free of others' work."""
    found = [dump(nodes=nodes)]
    if jobs is not None:
        found.append(dump(jobs=jobs))
    return read([*found, *files], **more)


def held(snapshot: Snapshot) -> dict[str, list[tuple[str, tuple[int, ...]]]]:
    """Return nodes and cards of each running job."""
    return {job.name: [(task.node, task.gpus) for task in job.running.tasks] for job in snapshot.jobs if job.running}


def only(snapshot: Snapshot) -> tuple[Job, Task]:
    """Return the one job, and the task of its one group."""
    (found,) = snapshot.jobs
    (group,) = found.groups
    assert group.task is not None
    return found, group.task


def ledger(snapshot: Snapshot) -> dict[str, str]:
    return {entry.what: entry.why for entry in snapshot.ledger}


def kinds(snapshot: Snapshot, kind: str) -> list[str]:
    return [entry.what for entry in snapshot.ledger if entry.kind == kind]


def message(*files: File, **more: Any) -> str:
    with pytest.raises(InputError) as found:
        read(files, **more)
    return str(found.value)
