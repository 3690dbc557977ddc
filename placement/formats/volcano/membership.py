"""Which pod belongs to which pod group or job of Volcano, and to which part of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from placement.formats.kubernetes.objects import Item, Meta
from placement.formats.kubernetes.peers import plain
from placement.formats.volcano.hypernodes import selects
from placement.formats.volcano.records import JobTask, LabelSelector, PodGroup, SubGroupPolicy, VolcanoJob

GROUP_NAMES = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
"""Annotations of a pod that name its pod group."""

JOB_NAME = "volcano.sh/job-name"
TASK = "volcano.sh/task-spec"
PARTITION = "volcano.sh/partition-id"
PREEMPTABLE = "volcano.sh/preemptable"
QUEUE = "volcano.sh/queue-name"


def said(meta: Meta, key: str) -> str:
    """Return what an annotation says, or a label of the same key; empty for nothing."""
    return (meta.annotations or {}).get(key) or (meta.labels or {}).get(key) or ""


@dataclass(frozen=True, slots=True)
class Groups:
    """The pod groups and jobs that there are.

    Attributes
    ----------
    pod_groups : dict of str to Item[PodGroup]
        By ``namespace/name``.
    jobs : dict of str to Item[VolcanoJob]
    """

    pod_groups: Mapping[str, Item[PodGroup]]
    jobs: Mapping[str, Item[VolcanoJob]]

    def member(self, meta: Meta) -> tuple[str, str] | None:
        """Return the key of a pod's gang and the path of its group in it."""
        space = meta.namespace or "default"
        name = next(filter(None, (said(meta, key) for key in GROUP_NAMES)), "")
        job = said(meta, JOB_NAME)
        key = f"{space}/{name or job}"
        if key not in self.pod_groups and job and f"{space}/{job}" in self.jobs:
            key = f"{space}/{job}"
        if not name and not job:
            return None
        pod_group = self.pod_groups.get(key)
        policies = pod_group.value.spec.sub_group_policy if pod_group else self._partitions(key)
        for policy in policies or ():
            path = _subgroup(policy, meta)
            if path:
                return key, path
        rest = plain(said(meta, TASK))
        return key, f"{rest}-rest" if any(plain(policy.name) == rest for policy in policies or ()) else rest

    def _partitions(self, key: str) -> list[SubGroupPolicy]:
        job = self.jobs.get(key)
        return [] if job is None else policies_of(job.value)

    def job_of(self, key: str, item: Item[PodGroup]) -> Item[VolcanoJob] | None:
        """Return the job that a pod group was made for."""
        space = key.partition("/")[0]
        for owner in item.value.metadata.owner_references or ():
            if owner.kind == "Job" and f"{space}/{owner.name}" in self.jobs:
                return self.jobs[f"{space}/{owner.name}"]
        return self.jobs.get(key)


def _subgroup(policy: SubGroupPolicy, meta: Meta) -> str:
    """Return the path of the subgroup that a pod is in by a policy; empty for none."""
    labels = meta.labels or {}
    if policy.label_selector is not None and not selects(policy.label_selector, labels):
        return ""
    keys = policy.match_label_keys or ()
    values = [said(meta, key) for key in keys]
    if not all(values):
        return ""
    return f"{plain(policy.name)}/{plain('-'.join(values))}" if keys else plain(policy.name)


def policies_of(job: VolcanoJob) -> list[SubGroupPolicy]:
    """Return the policies that Volcano makes of the partitions of a job's tasks."""
    return [
        SubGroupPolicy(
            name=task_name(task, number),
            sub_group_size=task.partition_policy.partition_size,
            min_sub_groups=task.partition_policy.min_partitions,
            label_selector=_of_task(task_name(task, number)),
            match_label_keys=[PARTITION],
            network_topology=task.partition_policy.network_topology,
        )
        for number, task in enumerate(job.spec.tasks or ())
        if task.partition_policy is not None
    ]


def _of_task(name: str) -> LabelSelector:
    return LabelSelector(match_labels={TASK: name})


def task_name(task: JobTask, number: int) -> str:
    """Return the name of a task; Volcano calls one without a name by its number."""
    return task.name or f"default{number}"
