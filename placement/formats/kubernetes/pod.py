"""The records of pods: what is read of them, as the API writes it.

The API: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/
"""

from __future__ import annotations

from typing import Any

import msgspec

from placement.formats.kubernetes.objects import Meta
from placement.units import Quantity


class Resources(msgspec.Struct, gc=False):
    """Requests and limits of a container."""

    requests: dict[str, Quantity] | None = None
    limits: dict[str, Quantity] | None = None
    claims: list[dict[str, Any]] | None = None


class Port(msgspec.Struct, rename="camel", gc=False):
    """A port of a container, and that of the node which it takes."""

    container_port: int | None = None
    host_port: int | None = None
    host_ip: str | None = msgspec.field(name="hostIP", default=None)
    protocol: str | None = None


class Volume(msgspec.Struct, rename="camel", gc=False):
    """A volume of a pod, where a claim says which."""

    name: str = ""
    persistent_volume_claim: dict[str, Any] | None = None
    ephemeral: dict[str, Any] | None = None


class Container(msgspec.Struct, rename="camel", gc=False):
    """A container; init containers that restart always are sidecars."""

    name: str = ""
    resources: Resources | None = None
    restart_policy: str | None = None
    ports: list[Port] | None = None


class PodToleration(msgspec.Struct, rename="camel", gc=False):
    """A toleration."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class PodClaim(msgspec.Struct, rename="camel", gc=False):
    """A claim that a pod refers to, by its own name or by that of a template."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSpec(msgspec.Struct, rename="camel", gc=False):
    """What a pod asks for."""

    node_name: str | None = None
    scheduler_name: str | None = None
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    host_network: bool | None = None
    volumes: list[Volume] | None = None
    overhead: dict[str, Quantity] | None = None
    resources: Resources | None = None
    node_selector: dict[str, str] | None = None
    affinity: dict[str, Any] | None = None
    topology_spread_constraints: list[dict[str, Any]] | None = None
    tolerations: list[PodToleration] | None = None
    priority: int | None = None
    priority_class_name: str | None = None
    preemption_policy: str | None = None
    scheduling_gates: list[dict[str, Any]] | None = None
    resource_claims: list[PodClaim] | None = None
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None
    workload_ref: dict[str, Any] | None = None
    scheduling_group: dict[str, Any] | None = None


class ClaimStatus(msgspec.Struct, rename="camel", gc=False):
    """Name of the claim that was made from a template for a pod."""

    name: str = ""
    resource_claim_name: str | None = None


class Mapped(msgspec.Struct, rename="camel", gc=False):
    """A resource of a container that a claim stands for."""

    resource_name: str = ""


class ExtendedClaim(msgspec.Struct, rename="camel", gc=False):
    """The claim that the scheduler made for resources that a pod asks for as if they were a device plugin's."""

    resource_claim_name: str = ""
    request_mappings: list[Mapped] | None = None


class ContainerStatus(msgspec.Struct, rename="camel", gc=False):
    """What a container has been given."""

    name: str = ""
    allocated_resources: dict[str, Quantity] | None = None
    resources: Resources | None = None


class PodStatus(msgspec.Struct, rename="camel", gc=False):
    """What became of a pod."""

    phase: str | None = None
    start_time: str | None = None
    nominated_node_name: str | None = None
    resource_claim_statuses: list[ClaimStatus] | None = None
    extended_resource_claim_status: ExtendedClaim | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None


class Pod(msgspec.Struct, rename="camel", gc=False):
    """A pod."""

    metadata: Meta = msgspec.field(default_factory=Meta)
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus | None = None
