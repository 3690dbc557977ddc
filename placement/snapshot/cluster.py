"""What the cluster is: nodes, the cards in them, and the domains they form."""

from __future__ import annotations

from typing import Literal

import msgspec

from placement.snapshot.nothing import NOTHING
from placement.units import Quantity

NVLINK_DOMAIN = "nvlink_domain"
"""Name of the topology level at which the field of that name says where a node is."""


class Taint(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, gc=False):
    """A mark that keeps tasks without a matching toleration off a node, as in Kubernetes.

    Attributes
    ----------
    key, value : str
        Compared with a toleration's key and value.
    effect : str
        ``NoSchedule`` and ``NoExecute`` keep tasks off; ``PreferNoSchedule`` is not accepted, for a plan either
        respects a mark or does not.
    """

    key: str
    value: str = ""
    effect: Literal["NoSchedule", "NoExecute"] = "NoSchedule"


class MigInstance(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, gc=False):
    """One MIG GPU instance in use on a card: profile name and first memory slot."""

    profile: str
    start: int


class Gpu(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, gc=False):
    """A run of identical cards in a node.

    Attributes
    ----------
    model : str
        Name of the card model, such as ``"H100-80"``; compared with a task's ``gpu_models``.
    count : int
        How many; indices within a node run through its entries in order, from 0.
    memory : quantity of bytes, optional
        Device memory of one card. Absent means unknown: no memory limit is applied.
    compute_capability : str
        Such as ``"9.0"``; empty means unknown, which satisfies no requirement.
    health : str
        ``"unhealthy"`` cards take no new work.
    sharing : str
        ``"shared"``: fractional shares may be placed on the card; ``"exclusive"``: whole-card tasks only;
        ``"time_slicing"``, ``"mps"`` and ``"vgpu"`` name the mechanism, on which depends what is guaranteed and to how
        many (`placement.hardware.sharing`). A node does not have both ``"time_slicing"`` and ``"mps"`` cards.
    vgpu_policy : str
        How virtual GPUs take turns, for ``sharing="vgpu"`` without MIG alone: ``"best_effort"``, ``"equal_share"`` or
        ``"fixed_share"``. Empty: not stated, which guarantees no more than best effort does.
    replicas : int, optional
        Most tasks that share one of these cards at a time; absent means as many as fit. With MPS each of N tasks that
        take a share has one Nth of the memory.
    mig_enabled : bool
        Whether MIG mode is on: then the card takes tasks with a ``mig_profile`` and no others.
    mig_layout : tuple of MigInstance
        The instances that exist now, on each card of the entry. Those that no running task uses may be destroyed for
        others.
    mig_static : bool
        Whether instances stay as they are: none is created and none destroyed.
    mig_switchable : bool
        Whether MIG mode may be switched while nothing runs on the card. `placement.partition` decides about such cards;
        every other command leaves the mode as it is.
    mig_instance : str
        MIG profile where each card of the entry is really one instance of a card of `model`, which several tasks share
        by MPS or in turns (`sharing`) and which stays as it is. `memory` is then the instance's. It counts as a card in
        every sum. Empty: cards.
    """

    model: str
    count: int = 1
    memory: Quantity | None = None
    compute_capability: str = ""
    health: Literal["healthy", "unhealthy"] = "healthy"
    sharing: Literal["shared", "exclusive", "time_slicing", "mps", "vgpu"] = "shared"
    vgpu_policy: Literal["", "best_effort", "equal_share", "fixed_share"] = ""
    replicas: int | None = None
    mig_enabled: bool = False
    mig_layout: tuple[MigInstance, ...] = ()
    mig_static: bool = False
    mig_switchable: bool = False
    mig_instance: str = ""


class Nic(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, gc=False):
    """A network device of a node.

    Attributes
    ----------
    name : str
        Unique in the node.
    rail : str
        Name of the rail it is cabled to. Of NICs that are as near to a task's cards it gets those of the first rails by
        name, so that tasks on different nodes come to the same ones.
    """

    name: str
    rail: str = ""


class PcieSwitch(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, gc=False):
    """A PCIe switch; a task gets NICs that are below the switches of its cards where some of these are left.

    Attributes
    ----------
    name : str
        Unique in the node.
    gpus : tuple of int
        GPU indices of the zone, each below one switch.
    nics : tuple of str
        Names of NICs of the zone, each below one switch.
    """

    name: str
    gpus: tuple[int, ...] = ()
    nics: tuple[str, ...] = ()


class NumaZone(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, gc=False):
    """A NUMA zone of a node: what is near what.

    A node lists all of its zones, 8 at most, or none; every card of it is in exactly one. NICs are counted by zone, and
    CPU and memory are where the zones state them; pods and extended resources are the node's alone.

    Attributes
    ----------
    id : int
        The operating system's number of the zone.
    cpus : str
        CPU list such as ``"0-31,64-95"``; no CPU is in two zones. A plan repeats it, and how much CPU there is does not
        follow from it.
    cpu : quantity of cores, optional
        Allocatable CPU. Either every zone of the node states it, and the sum is exactly the node's ``cpu``, or none
        does: then CPU comes from the node as a whole, and any zone is as good as another for it.
    memory : quantity of bytes, optional
        Allocatable memory, likewise.
    gpus : tuple of int
        GPU indices of the node.
    nics : tuple of Nic
    switches : tuple of PcieSwitch
    """

    id: int
    cpus: str = ""
    cpu: Quantity | None = None
    memory: Quantity | None = None
    gpus: tuple[int, ...] = ()
    nics: tuple[Nic, ...] = ()
    switches: tuple[PcieSwitch, ...] = ()


class Link(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, gc=False):
    """The best path between two GPUs of a node.

    Attributes
    ----------
    a, b : int
        GPU indices.
    kind : str
        As printed by ``nvidia-smi topo -m``.
    width : int
        Number of NVLink lanes; 1 for the other kinds.
    """

    a: int
    b: int
    kind: Literal["NVLINK", "PIX", "PXB", "PHB", "NODE", "SYS"]
    width: int = 1


class Node(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, gc=False):
    """A node, or `count` identical ones.

    Attributes
    ----------
    name : str
        Name of the node. With ``count`` above 1 the nodes are ``name-0`` … ``name-(count-1)``.
    count : int
        How many identical nodes this entry stands for.
    position : dict of str to str
        Domain of the node at the snapshot's topology levels, such as ``{"rack": "r7"}``.
    labels : dict of str to str
    taints : tuple of Taint
    cordoned : bool
        A cordoned node keeps its running work and takes no new tasks.
    cpu : quantity of cores, optional
        Allocatable CPU. Absent means that CPU does not limit what the node takes; likewise below.
    memory : quantity of bytes, optional
        Allocatable memory.
    pods : int, optional
        Pod slots; every task takes one.
    extended : dict of str to quantity
        Other countable resources by name. A resource that a node does not list is not there.
    driver, cuda : str
        Versions such as ``"550.54.14"`` and ``"12.4"``; empty means unknown, which satisfies no requirement.
    cgroup : int, optional
        Version of the control groups, 1 or 2. Absent means unknown, which satisfies no requirement.
    failure_rate : float
        Expected failures per hour.
    gpus : tuple of Gpu
    zones : tuple of NumaZone
        Empty means unknown: the node takes no task that is bound to zones, and has no NICs.
    links : tuple of Link
    nvlink_domain : str
        Name of the NVLink domain (rack-scale) that the node is in: the same as a `position` at the topology level
        ``"nvlink_domain"``, which the snapshot has to list. Empty means that `position` says it, or nothing does.
    devices : tuple of str
        Name of each card by index in the system that the node is from, such as a UUID or the name in a ResourceSlice.
        Not for counted nodes. Empty means that the index says all.
    """

    name: str
    count: int = 1
    position: dict[str, str] = NOTHING
    labels: dict[str, str] = NOTHING
    taints: tuple[Taint, ...] = ()
    cordoned: bool = False
    cpu: Quantity | None = None
    memory: Quantity | None = None
    pods: int | None = None
    extended: dict[str, Quantity] = NOTHING
    driver: str = ""
    cuda: str = ""
    cgroup: Literal[1, 2] | None = None
    failure_rate: float = 0.0
    gpus: tuple[Gpu, ...] = ()
    zones: tuple[NumaZone, ...] = ()
    links: tuple[Link, ...] = ()
    nvlink_domain: str = ""
    devices: tuple[str, ...] = ()

    @property
    def domains(self) -> dict[str, str]:
        """Domain of the node by level, whichever field says it; not to be changed."""
        if not self.nvlink_domain:
            return self.position
        return {**self.position, NVLINK_DOMAIN: self.nvlink_domain}


class DomainLimit(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, gc=False):
    """A cap on what may be in use at once within a domain, below the sum of its nodes.

    A rack's power or a block's licences are such caps. Running work counts against it.

    Attributes
    ----------
    level : str
        A topology level of the snapshot, or ``"cluster"``.
    domain : str
        Name of the domain at that level; ``""`` for the cluster.
    gpus : quantity of cards, optional
        Cards in use, shares counted by their fraction.
    cpu : quantity of cores, optional
    memory : quantity of bytes, optional
    extended : dict of str to quantity
    """

    level: str
    domain: str = ""
    gpus: Quantity | None = None
    cpu: Quantity | None = None
    memory: Quantity | None = None
    extended: dict[str, Quantity] = NOTHING


class Reservation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, gc=False):
    """Nodes set aside during an interval, for named jobs or queues or for maintenance.

    Attributes
    ----------
    name : str
    nodes : tuple of str
        Names of nodes, after expansion of ``count``.
    start, end : float
        Seconds on the snapshot's clock.
    jobs, queues : tuple of str
        Who may use the nodes during the interval; both empty means nobody.
    """

    name: str
    nodes: tuple[str, ...]
    start: float
    end: float
    jobs: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
