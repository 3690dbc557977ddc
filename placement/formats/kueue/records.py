"""The records of Kueue's objects: what is read of them, in v1alpha1, v1beta1 and v1beta2 alike.

The API: https://kueue.sigs.k8s.io/docs/reference/
"""

from __future__ import annotations

from typing import Any

import msgspec

from placement.errors import InputError
from placement.formats.kubernetes.objects import Item, Meta
from placement.formats.kubernetes.pod import PodSpec, PodToleration
from placement.snapshot.report import show
from placement.units import Quantity

GROUP = "kueue.x-k8s.io"

MOST_NAME = 500
"""Characters of a name; Kubernetes has 253 at most."""


class Record(msgspec.Struct, rename="camel", gc=False):
    """Base of the records; fields that they do not list are not looked at."""


# --- topology and flavours -----------------------------------------------------------------------------------------


class NodeLabel(Record):
    """A level of a topology."""

    node_label: str = ""


class TopologySpec(Record):
    """Levels from wide to narrow."""

    levels: list[NodeLabel] | None = None


class TopologyObject(Record):
    """A Topology."""

    metadata: Meta = msgspec.field(default_factory=Meta)
    spec: TopologySpec | None = None


class NodeObject(Record):
    """A Node, of which the labels are looked at."""

    metadata: Meta = msgspec.field(default_factory=Meta)


class NodeTaint(Record):
    """A taint that the nodes of a flavour have."""

    key: str = ""
    value: str | None = None
    effect: str | None = None


class FlavorSpec(Record):
    """What the nodes of a flavour are, and what pods on them get."""

    node_labels: dict[str, str] | None = None
    node_taints: list[NodeTaint] | None = None
    tolerations: list[PodToleration] | None = None
    topology_name: str | None = None


class ResourceFlavor(Record):
    """A ResourceFlavor."""

    metadata: Meta = msgspec.field(default_factory=Meta)
    spec: FlavorSpec | None = None


# --- queues --------------------------------------------------------------------------------------------------------


class ResourceQuota(Record):
    """Quota of one resource of one flavour."""

    name: str = ""
    nominal_quota: Quantity | None = None
    borrowing_limit: Quantity | None = None
    lending_limit: Quantity | None = None


class FlavorQuotas(Record):
    """Quotas of one flavour."""

    name: str = ""
    resources: list[ResourceQuota] | None = None


class ResourceGroup(Record):
    """Resources that come from the same flavour."""

    covered_resources: list[str] | None = None
    flavors: list[FlavorQuotas] | None = None


class Preemption(Record):
    """Who may be stopped for whom."""

    reclaim_within_cohort: str | None = None
    within_cluster_queue: str | None = None


class FairSharing(Record):
    """Weight among the siblings."""

    weight: Quantity | None = None


class QueueSpec(Record):
    """Spec of a ClusterQueue or Cohort; `cohort` and `parent` are what older versions called the parent."""

    resource_groups: list[ResourceGroup] | None = None
    cohort: str | None = None
    cohort_name: str | None = None
    parent: str | None = None
    parent_name: str | None = None
    queueing_strategy: str | None = None
    namespace_selector: dict[str, Any] | None = None
    preemption: Preemption | None = None
    stop_policy: str | None = None
    fair_sharing: FairSharing | None = None
    admission_checks: list[str] | None = None
    admission_checks_strategy: dict[str, Any] | None = None


class QueueObject(Record):
    """A ClusterQueue or a Cohort."""

    metadata: Meta = msgspec.field(default_factory=Meta)
    spec: QueueSpec | None = None


class LocalQueueSpec(Record):
    """What a LocalQueue points at."""

    cluster_queue: str | None = None
    stop_policy: str | None = None


class LocalQueue(Record):
    """A LocalQueue."""

    metadata: Meta = msgspec.field(default_factory=Meta)
    spec: LocalQueueSpec | None = None


class PriorityClass(Record):
    """A WorkloadPriorityClass."""

    metadata: Meta = msgspec.field(default_factory=Meta)
    value: int = 0


# --- workloads -----------------------------------------------------------------------------------------------------


class Constraint(Record):
    """A layer of slices; annotations have the size in quotes."""

    topology: str = ""
    size: int | str | None = None
    sizes: list[int] | None = None


class TopologyRequest(Record):
    """Where the pods of a pod set may lie relative to one another."""

    required: str | None = None
    preferred: str | None = None
    unconstrained: bool | None = None
    pod_set_group_name: str | None = None
    pod_set_slice_required_topology: str | None = None
    pod_set_slice_size: int | str | None = None
    podset_slice_required_topology_constraints: list[Constraint] | None = None


class Template(Record):
    """Template of a pod."""

    metadata: Meta = msgspec.field(default_factory=Meta)
    spec: PodSpec = msgspec.field(default_factory=PodSpec)


class PodSet(Record):
    """A set of like pods."""

    name: str = "main"
    count: int = 1
    min_count: int | None = None
    template: Template = msgspec.field(default_factory=Template)
    topology_request: TopologyRequest | None = None


class ClassRef(Record):
    """Reference to a priority class."""

    group: str = ""
    name: str = ""


class WorkloadSpec(Record):
    """What a workload is."""

    pod_sets: list[PodSet] | None = None
    queue_name: str | None = None
    priority: int | None = None
    priority_class_name: str | None = None
    priority_class_ref: ClassRef | None = None
    active: bool | None = None
    maximum_execution_time_seconds: int | None = None


class Condition(Record):
    """A condition."""

    type: str = ""
    status: str = ""


class PodSetAssignment(Record):
    """What a pod set got."""

    name: str = "main"
    flavors: dict[str, str] | None = None
    count: int | None = None


class Admission(Record):
    """The queue that admitted a workload."""

    cluster_queue: str | None = None
    pod_set_assignments: list[PodSetAssignment] | None = None


class WorkloadStatus(Record):
    """What became of a workload."""

    conditions: list[Condition] | None = None
    admission: Admission | None = None


class Workload(Record):
    """A Workload."""

    metadata: Meta = msgspec.field(default_factory=Meta)
    spec: WorkloadSpec | None = None
    status: WorkloadStatus | None = None


def wrong(item: Item[Any], end: str, what: str, remedy: str) -> InputError:
    """Return an error at a place in an object."""
    return InputError.one(what, remedy, path=f"{item.path}.{end}".removeprefix("."), source=item.file)


def named(item: Item[Any], end: str, name: str) -> str:
    """Return a name that a snapshot can have.

    Raises
    ------
    InputError
        If it is empty, too long or cannot be printed.
    """
    if not name.strip() or not name.isprintable() or len(name) > MOST_NAME:
        raise wrong(item, end, f"found {show(name)}, expected a name", "dump it again")
    return name


def at(item: Item[Any], end: str) -> str:
    """Return a place in an object for the ledger."""
    path = f"{item.path}.{end}".removeprefix(".")
    return f"{item.file}: {path}"
