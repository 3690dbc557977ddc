"""Objects of the KAI scheduler, as far as they are read.

The API: ``pkg/apis/{scheduling/v2,scheduling/v2alpha2,scheduling/v1alpha2,kai/v1alpha1}`` of
kai-scheduler/KAI-Scheduler.
"""

from __future__ import annotations

import msgspec

from placement.formats.kubernetes.objects import Meta

SCHEDULING = "scheduling.run.ai"
KAI = "kai.scheduler"
KUEUE = "kueue.x-k8s.io"


class _Record(msgspec.Struct, rename="camel", gc=False):
    pass


class TopologyLevel(_Record):
    """A level, by the node label that says the domain."""

    node_label: str
    alias: str = ""


class _TopologySpec(_Record):
    levels: list[TopologyLevel] | None = None


class KaiTopology(_Record):
    """Levels from wide to narrow."""

    metadata: Meta = msgspec.field(default_factory=Meta)
    spec: _TopologySpec = msgspec.field(default_factory=_TopologySpec)


class Constraint(_Record):
    """How near pods have to be to one another."""

    topology: str = ""
    required_topology_level: str = ""
    preferred_topology_level: str = ""


class SubGroup(_Record):
    """Some pods of a pod group, or subgroups."""

    name: str
    min_member: int | None = None
    min_sub_group: int | None = None
    parent: str | None = None
    topology_constraint: Constraint | None = None


class _GroupSpec(_Record):
    min_member: int | None = None
    min_sub_group: int | None = None
    queue: str | None = None
    priority_class_name: str | None = None
    preemptibility: str | None = None
    topology_constraint: Constraint | None = None
    sub_groups: list[SubGroup] | None = None


class KaiPodGroup(_Record):
    """Pods that start together."""

    metadata: Meta = msgspec.field(default_factory=Meta)
    spec: _GroupSpec = msgspec.field(default_factory=_GroupSpec)


class Share(_Record):
    """What a queue may have of one resource; below 0 is any amount, and what is absent is 0."""

    quota: float | None = None
    over_quota_weight: float | None = None
    limit: float | None = None
    lending_limit: float | None = None


class _Resources(_Record):
    gpu: Share | None = None
    cpu: Share | None = None
    memory: Share | None = None


class _QueueSpec(_Record):
    parent_queue: str | None = None
    priority: int | None = None
    preempt_min_runtime: str | None = None
    reclaim_min_runtime: str | None = None
    resources: _Resources | None = None


class KaiQueue(_Record):
    """A queue of KAI."""

    metadata: Meta = msgspec.field(default_factory=Meta)
    spec: _QueueSpec = msgspec.field(default_factory=_QueueSpec)


class _SharedCard(_Record):
    id: str = ""


class _BindSpec(_Record):
    pod_name: str = ""
    selected_node: str = ""
    backoff_limit: int | None = None
    # the one spelling that does not follow from the name here
    selected_groups: list[str] | None = msgspec.field(name="selectedGPUGroups", default=None)
    selected_fractional_gpu_groups: list[_SharedCard] | None = None

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the shared cards: as newer versions say them, else as older ones do."""
        newer = tuple(one.id for one in self.selected_fractional_gpu_groups or ())
        return newer or tuple(self.selected_groups or ())


class _BindStatus(_Record):
    phase: str | None = None
    failed_attempts: int | None = None


class BindRequest(_Record):
    """A pod that is being bound to a node."""

    metadata: Meta = msgspec.field(default_factory=Meta)
    spec: _BindSpec = msgspec.field(default_factory=_BindSpec)
    status: _BindStatus | None = None

    @property
    def failed(self) -> bool:
        """Whether it is given up; one that may be tried again holds its place."""
        if self.status is None or self.status.phase != "Failed":
            return False
        return self.spec.backoff_limit is None or (self.status.failed_attempts or 0) >= self.spec.backoff_limit
