"""Objects of Volcano, as far as they are read.

The API: ``staging/src/volcano.sh/apis/pkg/apis/{scheduling/v1beta1,batch/v1alpha1,topology/v1alpha1}`` of
volcano-sh/volcano.
"""

from __future__ import annotations

from typing import Any

import msgspec

from placement.formats.kubernetes.objects import Meta
from placement.formats.kubernetes.pod import PodSpec
from placement.units import Quantity

SCHEDULING = "scheduling.volcano.sh"
BATCH = "batch.volcano.sh"
TOPOLOGY = "topology.volcano.sh"

Amounts = dict[str, Quantity]


class _Record(msgspec.Struct, rename="camel", gc=False):
    pass


# --- hyper nodes ---------------------------------------------------------------------------------------------------


class Requirement(_Record):
    """One condition on labels."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class LabelSelector(_Record):
    """Conditions on labels, all of which hold."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[Requirement] | None = None


class _Exact(_Record):
    name: str = ""


class _Regex(_Record):
    pattern: str = ""


class Selector(_Record):
    """Which nodes, or which hyper node, a member is."""

    exact_match: _Exact | None = None
    regex_match: _Regex | None = None
    label_match: LabelSelector | None = None


class HyperMember(_Record):
    """A member of a hyper node."""

    type: str = "Node"
    selector: Selector | None = None


class _HyperSpec(_Record):
    # text in the first versions of the API
    tier: int | str | None = None
    tier_name: str | None = None
    members: list[HyperMember] | None = None


class HyperNode(_Record):
    """Nodes, or hyper nodes, that are near one another."""

    metadata: Meta = msgspec.field(default_factory=Meta)
    spec: _HyperSpec = msgspec.field(default_factory=_HyperSpec)


# --- pod groups and jobs -------------------------------------------------------------------------------------------


class NetworkTopology(_Record):
    """How far apart pods may be."""

    mode: str | None = None
    highest_tier_allowed: int | None = None
    highest_tier_name: str | None = None


class SubGroupPolicy(_Record):
    """How some pods of a group are divided."""

    name: str = ""
    sub_group_size: int | None = None
    min_sub_groups: int | None = None
    label_selector: LabelSelector | None = None
    match_label_keys: list[str] | None = None
    network_topology: NetworkTopology | None = None


class _GroupSpec(_Record):
    min_member: int | None = None
    min_task_member: dict[str, int] | None = None
    queue: str | None = None
    priority_class_name: str | None = None
    min_resources: Amounts | None = None
    network_topology: NetworkTopology | None = None
    sub_group_policy: list[SubGroupPolicy] | None = None
    topology_affinity: dict[str, Any] | None = None


class _Phase(_Record):
    phase: str | None = None


class PodGroup(_Record):
    """Pods that start together."""

    metadata: Meta = msgspec.field(default_factory=Meta)
    spec: _GroupSpec = msgspec.field(default_factory=_GroupSpec)
    status: _Phase | None = None


class PartitionPolicy(_Record):
    """How the pods of a task are divided."""

    total_partitions: int = 0
    partition_size: int = 0
    min_partitions: int | None = None
    network_topology: NetworkTopology | None = None


class _Template(_Record):
    metadata: Meta | None = None
    spec: PodSpec | None = None


class JobTask(_Record):
    """Like pods of a job."""

    name: str = ""
    replicas: int = 1
    min_available: int | None = None
    template: _Template | None = None
    partition_policy: PartitionPolicy | None = None
    depends_on: dict[str, Any] | None = None
    topology_policy: str | None = None


class _JobSpec(_Record):
    min_available: int | None = None
    queue: str | None = None
    tasks: list[JobTask] | None = None
    priority_class_name: str | None = None
    network_topology: NetworkTopology | None = None


class _JobStatus(_Record):
    state: _Phase | None = None


class VolcanoJob(_Record):
    """A job of Volcano."""

    metadata: Meta = msgspec.field(default_factory=Meta)
    spec: _JobSpec = msgspec.field(default_factory=_JobSpec)
    status: _JobStatus | None = None


# --- queues --------------------------------------------------------------------------------------------------------


class _Guarantee(_Record):
    resource: Amounts | None = None


class _QueueSpec(_Record):
    weight: int | None = None
    capability: Amounts | None = None
    deserved: Amounts | None = None
    guarantee: _Guarantee | None = None
    reclaimable: bool | None = None
    parent: str | None = None
    priority: int | None = None
    affinity: dict[str, Any] | None = None


class _QueueStatus(_Record):
    state: str | None = None


class VolcanoQueue(_Record):
    """A queue of Volcano."""

    metadata: Meta = msgspec.field(default_factory=Meta)
    spec: _QueueSpec = msgspec.field(default_factory=_QueueSpec)
    status: _QueueStatus | None = None
