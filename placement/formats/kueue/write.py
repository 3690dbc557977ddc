"""A plan to what Kueue writes when it admits workloads: the status of each, with the topology assignment.

The document is a ``List`` of Workloads of which each says its name and ``status.admission``, to be applied to the
status subresource. The pods of a pod set are assigned to hosts, for a plan speaks of nodes; Kueue leaves wider levels
out then too. The flavours of its resources are not in a snapshot, and are left out: to be filled in where Kueue's
quotas are to count.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from placement.errors import InputError
from placement.formats.kueue.assignment import Assignment, long, short
from placement.formats.kueue.levels import HOST
from placement.formats.kueue.records import GROUP
from placement.formats.listed import listed
from placement.formats.tasks import PlacedTask, placed
from placement.plan import Plan
from placement.snapshot import Snapshot
from placement.snapshot.report import show

FORMS = {"v1beta2": short, "v1beta1": long}
"""Form of a topology assignment by version of the API."""

AROUND = "gang"
"""Group that the readers put around all groups of a job that has a topology of its own."""

LEFT_OUT = "gpu-placement.io/left-out"
"""Annotation of the list: what of the plan is not in it."""


def write(snapshot: Snapshot, plan: Plan) -> bytes:
    """Return the admissions of a plan in v1beta2.

    Raises
    ------
    InputError
        If the name of a job is not ``namespace/name``.
    """
    return document(snapshot, plan)


def write_v1beta1(snapshot: Snapshot, plan: Plan) -> bytes:
    """Return the admissions of a plan in v1beta1; raises as `write`."""
    return document(snapshot, plan, version="v1beta1")


def document(snapshot: Snapshot, plan: Plan, *, version: str = "v1beta2", labels: Sequence[str] = (HOST,)) -> bytes:
    """Return the admissions of a plan.

    Parameters
    ----------
    snapshot : Snapshot
        Verified, and the one that the plan is of.
    plan : Plan
        Checked.
    version : str
        A key of `FORMS`.
    labels : sequence of str
        Node labels of the levels to write, from wide to narrow: those of the Topology, where it does not end at the
        host name.

    Raises
    ------
    InputError
        If the name of a job is not ``namespace/name``, or a node in use does not have one of the labels.
    """
    jobs, left = _parted(snapshot, plan)
    items = [_workload(name, tasks, version, tuple(labels)) for name, tasks in jobs.items()]
    said = "; ".join(f"{count} {what}" for what, count in left.items())
    return listed(items, {LEFT_OUT: said} if left else None)


def notes(snapshot: Snapshot, plan: Plan) -> list[str]:
    """Return what of a plan is in no admission, a line each."""
    return [
        f"left out: {count:,} {what}; write them as kubernetes" for what, count in _parted(snapshot, plan)[1].items()
    ]


def _parted(snapshot: Snapshot, plan: Plan) -> tuple[dict[str, list[PlacedTask]], Counter[str]]:
    """Return what is written, by job, and how many pods are not, by why."""
    jobs: dict[str, list[PlacedTask]] = defaultdict(list)
    left: Counter[str] = Counter()
    for task in placed(snapshot, plan):
        if not _leads(task):
            continue
        if _alone(task):
            left["pods that are in no workload"] += 1
        elif task.job_name.partition("#")[2].startswith("pending"):
            left["pods of workloads that are admitted already"] += 1
        elif "/" in task.job_name and not _NAME.fullmatch(task.job_name.partition("/")[2]):
            left["pods of jobs that are no workload by themselves"] += 1
        else:
            jobs[task.job_name].append(task)
    return jobs, left


_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?")
"""What objects of Kubernetes are called."""


def _alone(task: PlacedTask) -> bool:
    """Return whether a task is of a pod for itself, which is what the readers call the group of one."""
    groups = task.job.groups
    return len(groups) == 1 and groups[0].name == "pod" and groups[0].count == 1


def _leads(task: PlacedTask) -> bool:
    """Return whether a task is the first of its pod; the readers number those of a pod that is several tasks."""
    *above, last = task.group.split("/")
    return not (above and above[-1] == "pod" and last.isdigit() and last != "1")


def _pod_set(task: PlacedTask) -> str:
    """Return the pod set of a task: the outermost group, or that within the one which the readers put around all."""
    groups = task.job.groups
    around = len(groups) == 1 and groups[0].name == AROUND and [inner.name for inner in groups[0].groups] != ["pod"]
    parts = task.group.split("/")
    return parts[1] if around and len(parts) > 1 else parts[0]


def _workload(job: str, tasks: Sequence[PlacedTask], version: str, labels: tuple[str, ...]) -> Mapping[str, Any]:
    namespace, slash, name = job.partition("/")
    if not (namespace and slash and name):
        raise InputError.one(
            f"the job {show(job)} is not named as a Workload is", "name it namespace/name, or import it from Kueue"
        )
    sets: dict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)
    for task in tasks:
        sets[_pod_set(task)][_values(task, labels)] += 1
    form = FORMS[version]
    assignments = [
        {
            "name": pod_set,
            "count": domains.total(),
            "topologyAssignment": form(Assignment(labels, tuple(sorted(domains.items())))),
        }
        for pod_set, domains in sets.items()
    ]
    queue = {"clusterQueue": tasks[0].job.queue} if tasks[0].job.queue else {}
    return {
        "apiVersion": f"{GROUP}/{version}",
        "kind": "Workload",
        "metadata": {"namespace": namespace, "name": name},
        "status": {"admission": {**queue, "podSetAssignments": assignments}},
    }


def _values(task: PlacedTask, labels: tuple[str, ...]) -> tuple[str, ...]:
    """Return the values of a node's labels; a node that says no host name is called what it is called."""
    known = task.node.labels
    found = [known.get(label, task.place.node if label == HOST else "") for label in labels]
    for label, value in zip(labels, found, strict=True):
        if not value:
            raise InputError.one(
                f"node {show(task.place.node)} has no label {show(label)}", "give the levels that all nodes in use have"
            )
    return tuple(found)
