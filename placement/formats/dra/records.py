"""The records of dynamic resource allocation, as ``resource.k8s.io`` v1alpha3 to v1 write them.

The API: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/resource-slice-v1/. Up to v1beta1 a
device keeps its attributes in ``basic``, and a request its fields beside its name; since v1beta2 they are in the
device, and in ``exactly``.
"""

from __future__ import annotations

from typing import Any

import msgspec

from placement.formats.kubernetes.objects import Meta
from placement.units import Quantity

GROUP = "resource.k8s.io"


class Value(msgspec.Struct, gc=False, rename={"number": "int", "flag": "bool"}):
    """An attribute: one of four kinds."""

    string: str | None = None
    number: int | None = None
    flag: bool | None = None
    version: str | None = None


class Amount(msgspec.Struct, gc=False):
    """An amount, of a capacity or a counter."""

    value: Quantity


class CounterSet(msgspec.Struct, rename="camel", gc=False):
    """Counters that devices draw from; `counter_set` is the set's name where a device consumes it."""

    name: str = ""
    counter_set: str = ""
    counters: dict[str, Amount] | None = None


class Taint(msgspec.Struct, gc=False):
    """A taint of a device."""

    key: str = ""
    effect: str = ""


class Basic(msgspec.Struct, rename="camel", gc=False):
    """What a device has."""

    attributes: dict[str, Value] | None = None
    capacity: dict[str, Amount | Quantity] | None = None
    consumes_counters: list[CounterSet] | None = None
    taints: list[Taint] | None = None
    node_name: str | None = None
    all_nodes: bool | None = None
    allow_multiple_allocations: bool | None = None


class SliceDevice(Basic, rename="camel", gc=False):
    """A device of a slice."""

    name: str = ""
    basic: Basic | None = None


class Pool(msgspec.Struct, rename="camel", gc=False):
    """The pool that a slice is a part of."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int | None = None


class SliceSpec(msgspec.Struct, rename="camel", gc=False):
    """What a slice says."""

    driver: str = ""
    pool: Pool = msgspec.field(default_factory=Pool)
    node_name: str | None = None
    node_selector: dict[str, Any] | None = None
    all_nodes: bool | None = None
    devices: list[SliceDevice] | None = None
    shared_counters: list[CounterSet] | None = None


class Slice(msgspec.Struct, gc=False):
    """A ResourceSlice."""

    metadata: Meta = msgspec.field(default_factory=Meta)
    spec: SliceSpec = msgspec.field(default_factory=SliceSpec)


class TaintSelector(msgspec.Struct, rename="camel", gc=False):
    """Devices that a rule taints: those that match all that is given."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None
    device_class_name: str | None = None
    selectors: list[dict[str, Any]] | None = None


class TaintSpec(msgspec.Struct, rename="camel", gc=False):
    """What a rule says."""

    device_selector: TaintSelector | None = None
    taint: Taint = msgspec.field(default_factory=Taint)


class TaintRule(msgspec.Struct, gc=False):
    """A DeviceTaintRule."""

    metadata: Meta = msgspec.field(default_factory=Meta)
    spec: TaintSpec = msgspec.field(default_factory=TaintSpec)


class Cel(msgspec.Struct, gc=False):
    """An expression in the common expression language."""

    expression: str = ""


class Selector(msgspec.Struct, gc=False):
    """A selector of devices."""

    cel: Cel | None = None


class ClassSpec(msgspec.Struct, rename="camel", gc=False):
    """What a class says."""

    selectors: list[Selector] | None = None
    extended_resource_name: str | None = None


class DeviceClass(msgspec.Struct, gc=False):
    """A DeviceClass."""

    metadata: Meta = msgspec.field(default_factory=Meta)
    spec: ClassSpec = msgspec.field(default_factory=ClassSpec)


class Exactly(msgspec.Struct, rename="camel", gc=False):
    """Devices that are asked for."""

    device_class_name: str = ""
    selectors: list[Selector] | None = None
    allocation_mode: str | None = None
    count: int | None = None
    admin_access: bool | None = None
    tolerations: list[dict[str, Any]] | None = None
    capacity: dict[str, Any] | None = None


class Request(Exactly, rename="camel", gc=False):
    """A request of a claim."""

    name: str = ""
    exactly: Exactly | None = None
    first_available: list[Exactly] | None = None


class Constraint(msgspec.Struct, rename="camel", gc=False):
    """What the devices of a claim must have in common, or not."""

    match_attribute: str | None = None
    distinct_attribute: str | None = None


class ClaimDevices(msgspec.Struct, gc=False):
    """The devices of a claim."""

    requests: list[Request] | None = None
    constraints: list[Constraint] | None = None


class ClaimSpec(msgspec.Struct, gc=False):
    """What a claim asks for."""

    devices: ClaimDevices = msgspec.field(default_factory=ClaimDevices)


class Result(msgspec.Struct, rename="camel", gc=False):
    """A device that is allocated."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    share_id: str | None = msgspec.field(default=None, name="shareID")


class Results(msgspec.Struct, gc=False):
    """The devices that are allocated."""

    results: list[Result] | None = None


class Allocation(msgspec.Struct, rename="camel", gc=False):
    """What a claim has."""

    devices: Results = msgspec.field(default_factory=Results)


class Consumer(msgspec.Struct, gc=False):
    """Who uses a claim."""

    resource: str = ""
    name: str = ""


class ClaimState(msgspec.Struct, rename="camel", gc=False):
    """The state of a claim."""

    allocation: Allocation | None = None
    reserved_for: list[Consumer] | None = None


class ResourceClaim(msgspec.Struct, gc=False):
    """A ResourceClaim."""

    metadata: Meta = msgspec.field(default_factory=Meta)
    spec: ClaimSpec = msgspec.field(default_factory=ClaimSpec)
    status: ClaimState | None = None


class TemplateSpec(msgspec.Struct, gc=False):
    """What claims of a template ask for."""

    spec: ClaimSpec = msgspec.field(default_factory=ClaimSpec)


class ClaimTemplate(msgspec.Struct, gc=False):
    """A ResourceClaimTemplate."""

    metadata: Meta = msgspec.field(default_factory=Meta)
    spec: TemplateSpec = msgspec.field(default_factory=TemplateSpec)
