"""What the readers of the kinds of a cluster hand to one another.

.. code-block:: text

    ResourceSlice, claims ──dra──> Devices ──┐
    NodeResourceTopology ───nrt──> Zones ────┼─ nodes ─> Cluster ──┐
    Topology, HyperNode ──┐                  │                     ├─ pods ─> jobs
    queues, gangs ────────┴─ kueue, volcano, kai, gangs ─> Addition┘

A system beside the core (Kueue, Volcano, KAI, the core's own gangs) is one `Addition`: levels of the topology, queues,
gangs, and the knowledge which pod belongs to which gang.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from placement.snapshot import Affinity, Node, NumaZone, Queue, Topology

if TYPE_CHECKING:
    from placement.formats.kubernetes.pod import Pod, PodSpec

# --- topology and gangs ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Level:
    """A level of the topology that a node label says.

    Attributes
    ----------
    name : str
        Name of the level in the snapshot.
    label : str
        Key of the node label of which the value is the domain.
    """

    name: str
    label: str


@dataclass(frozen=True, slots=True)
class Gang:
    """Pods that start together: a job of the snapshot.

    Attributes
    ----------
    key : str
        ``namespace/name``; the name of the job.
    groups : tuple of GangGroup
    queue : str
        Name of a queue of the snapshot; empty for none.
    priority : int, optional
        None: that of the pods.
    topology : Topology, optional
        Of the whole job, where it has several groups.
    preemptible : bool
    minimum_run_seconds : float
    submit_time : float, optional
        None: when the first of its pods was made.
    where : str
        Place of the object that says so, for the ledger.
    affinity : tuple of Affinity
        Groups that share a domain; of jobs without a `topology` of their own.
    min_groups : int, optional
        How many of `groups` it needs; None: all.
    started : bool
        Whether its system has started it, so that pods that wait are what is left of it, even where none runs yet.
    """

    key: str
    groups: tuple[GangGroup, ...]
    queue: str = ""
    priority: int | None = None
    topology: Topology | None = None
    preemptible: bool = False
    minimum_run_seconds: float = 0.0
    submit_time: float | None = None
    where: str = ""
    affinity: tuple[Affinity, ...] = ()
    min_groups: int | None = None
    started: bool = False


@dataclass(frozen=True, slots=True)
class GangGroup:
    """A group of like pods in a gang, or of groups.

    Attributes
    ----------
    name : str
    count : int, optional
        Pods wanted; None: as many as there are.
    min_count : int, optional
        Pods without which the gang does not start; None: all.
    template : PodSpec, optional
        What each asks for, where the pods themselves do not exist yet.
    topology : Topology, optional
    groups : tuple of GangGroup
        Groups within it, called ``parent/child`` by `Addition.member`; it has no pods of its own then, and no counts.
    min_groups : int, optional
        How many of `groups` it needs; None: all.
    """

    name: str
    count: int | None = None
    min_count: int | None = None
    template: PodSpec | None = None
    topology: Topology | None = None
    groups: tuple[GangGroup, ...] = ()
    min_groups: int | None = None


def _nobody(pod: Pod) -> None:
    return None


def _itself(pod: Pod) -> PodSpec:
    return pod.spec


def _none_of(pod: Pod) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class Addition:
    """What a system beside the core says.

    Attributes
    ----------
    levels : tuple of Level
        From wide to narrow.
    tiers : tuple of str
        Levels that no label says, from wide to narrow; `positions` does.
    positions : mapping of str to (mapping of str to str)
        Domain by level, by node.
    queues : tuple of Queue
    gangs : tuple of Gang
    member : callable
        Returns key of the gang and name of the group that a pod belongs to, or None. A gang that is not in `gangs` is
        made of its pods, all of which are needed.
    queue_of : callable
        Returns the queue of a pod that is in no gang, or None.
    withheld : frozenset of str
        Keys of gangs that the system does not start, whatever is free. They are not in `gangs`; pods of them that wait
        are left out.
    spec_of : callable
        Returns what a pod that waits asks for, with what the system adds when it starts it, such as tolerations.
        Templates in `gangs` have it already.
    bound : callable
        Returns the node that a pod is being bound to, though its own object does not say so yet, or None. It holds its
        devices there.
    shared : callable
        Returns a name for each card that a pod with a share of cards is on: pods of the same name are on the same card.
    """

    levels: tuple[Level, ...] = ()
    tiers: tuple[str, ...] = ()
    positions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    queues: tuple[Queue, ...] = ()
    gangs: tuple[Gang, ...] = ()
    member: Callable[[Pod], tuple[str, str] | None] = _nobody
    queue_of: Callable[[Pod], str | None] = _nobody
    withheld: frozenset[str] = frozenset()
    spec_of: Callable[[Pod], PodSpec] = _itself
    bound: Callable[[Pod], str | None] = _nobody
    shared: Callable[[Pod], tuple[str, ...]] = _none_of


# --- devices ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Offer:
    """What a countable resource, such as ``nvidia.com/gpu``, stands for on a node.

    Attributes
    ----------
    cards : tuple of int
        Indices of the cards that it is about; with a `profile` one for each instance.
    replicas : int
        How many units one card is; 1: a unit is a whole card.
    profile : str
        MIG profile of a unit.
    starts : tuple of int
        With a `profile`, the first slot of each instance.
    instance : str
        MIG profile, where each of `cards` is an instance that several pods share.
    """

    cards: tuple[int, ...]
    replicas: int = 1
    profile: str = ""
    starts: tuple[int, ...] = ()
    instance: str = ""


@dataclass(frozen=True, slots=True)
class Device:
    """A card that a ResourceSlice lists.

    Attributes
    ----------
    name : str
        In its pool.
    model : str
    memory : int, optional
        Bytes.
    uuid : str
    profiles : dict of str to tuple of int
        MIG devices that the slice lists for this card: first slots by profile.
    healthy : bool
    compute_capability : str
    whole : bool
        Whether the card itself is listed, and not only MIG devices of it. What is listed of one card shares it: whole,
        or as instances that do not overlap.
    """

    name: str
    model: str
    memory: int | None = None
    uuid: str = ""
    profiles: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    healthy: bool = True
    compute_capability: str = ""
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Claim:
    """What a ResourceClaim asks for and has.

    Attributes
    ----------
    gpus : int
        Distinct cards, or with a `profile` MIG instances.
    gpu_models : tuple of str
        Models that its selectors admit; empty: any.
    profile : str
    node : str
        Node of the devices that are allocated; empty where none is.
    cards : tuple of int
        Indices of the cards that are allocated.
    starts : tuple of int
    reserved_for : tuple of str
        Names of pods, in the claim's namespace.
    request : str
        Name of the request, where it has just one.
    more : tuple of Claim
        The rest, where it asks for or has devices of several kinds: cards and MIG instances, or several profiles.
    """

    gpus: int
    gpu_models: tuple[str, ...] = ()
    profile: str = ""
    node: str = ""
    cards: tuple[int, ...] = ()
    starts: tuple[int, ...] = ()
    reserved_for: tuple[str, ...] = ()
    request: str = ""
    more: tuple[Claim, ...] = ()


@dataclass(frozen=True, slots=True)
class Devices:
    """What the objects of dynamic resource allocation say.

    Attributes
    ----------
    by_node : mapping of str to tuple of Device
        In the order of the indices of the cards.
    claims : mapping of str to Claim
        By ``namespace/name``.
    templates : mapping of str to Claim
        ResourceClaimTemplates, likewise.
    drivers : mapping of str to (str, str)
        Driver and pool of a node's cards.
    resources : mapping of str to Claim
        What one of a resource is that stands for a class of devices.
    """

    by_node: Mapping[str, tuple[Device, ...]] = field(default_factory=dict)
    claims: Mapping[str, Claim] = field(default_factory=dict)
    templates: Mapping[str, Claim] = field(default_factory=dict)
    drivers: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    resources: Mapping[str, Claim] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Zones:
    """What a NodeResourceTopology object says of a node.

    Attributes
    ----------
    zones : tuple of NumaZone
        With CPU and memory, and without cards.
    cards : tuple of int
        Cards by zone, in the order of `zones`; empty where it does not say.
    policy : str
        Policy of the kubelet's topology manager, such as ``"single-numa-node"``; empty where it does not say.
    """

    zones: tuple[NumaZone, ...]
    cards: tuple[int, ...] = ()
    policy: str = ""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Nodes, and what the resources that pods ask for stand for on them.

    Attributes
    ----------
    nodes : tuple of Node
        In the order of the files; zones and links among them.
    levels : tuple of str
        Topology levels of the snapshot, from wide to narrow.
    level_of : mapping of str to str
        Level by the node label that says it; ``kubernetes.io/hostname`` is ``"node"``.
    offers : mapping of str to (mapping of str to Offer)
        By node and resource. Resources that stand for no cards are in `Node.extended`.
    policies : mapping of str to str
        Policy of the kubelet's topology manager by node, where it is known.
    named : frozenset of str
        Resources that some node names, be it with an amount of 0.
    """

    nodes: tuple[Node, ...]
    levels: tuple[str, ...] = ()
    level_of: Mapping[str, str] = field(default_factory=dict)
    offers: Mapping[str, Mapping[str, Offer]] = field(default_factory=dict)
    policies: Mapping[str, str] = field(default_factory=dict)
    named: frozenset[str] = frozenset()
