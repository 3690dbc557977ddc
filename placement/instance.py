"""The instance: a snapshot compiled once to integers and classes.

Everything a model or a heuristic needs is here, and all of it is whole numbers. Each resource has a unit of its
own, the greatest common divisor of everything asked of it, so requests are exact and rounding a capacity down
to a multiple loses nothing: a bound on the instance is a bound on the snapshot. Nodes that no task can tell
apart form a node class, tasks that no node can tell apart a shape, jobs with equal gangs and worth a job class.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from placement.assignment import Assignment as Assignment
from placement.assignment import Ints as Ints
from placement.durations import RunTime
from placement.gang import Branch, Leaf, is_tied
from placement.mig import Slots
from placement.quota import QueueLimit
from placement.snapshot import Snapshot
from placement.tenants import Apart as Apart

Bools = npt.NDArray[np.bool_]

NO_INTS: Ints = np.zeros(0, dtype=np.int64)

GPU = -1
"""Resource index that stands for card units in a `LimitRow`."""

MOST_ZONES = 8
"""Most NUMA zones of a node."""

ANY, FEWEST, ONE = 0, 1, 2
"""What a shape asks of NUMA zones: nothing, as few as an empty node needs for it (``restricted``), or one."""


@dataclass(frozen=True, slots=True)
class CardKind:
    """Cards that no task can tell apart when they are free.

    Attributes
    ----------
    model : str
    memory : int
        Device memory, in the instance's device-memory unit; more than all demand where the snapshot gives no limit.
    healthy : bool
    clients : int, optional
        Most tasks on it at a time; see `placement.compile.clients`. Absent where nothing limits that.
    slowdown : Fraction, optional
        Usual factor on the run time of tasks that share it; absent where no task does.
    """

    model: str
    memory: int
    healthy: bool
    clients: int | None = None
    slowdown: Fraction | None = None


@dataclass(frozen=True, slots=True)
class Zones:
    """The NUMA zones of a node, as far as tasks that are bound to some of them are concerned.

    A task that is not bound takes its CPU and memory wherever the others leave it, so beside what the whole node has
    free, these rows say all: tasks that are bound within a set of zones fit if and only if for every set the demand of
    those within it is at most what the set has (Hall's condition, for each resource by itself).

    Attributes
    ----------
    count : int
        How many there are.
    card : tuple of int
        Zone of each card, in canonical order.
    slack : tuple of tuple of int
        For each of `Instance.zone_sets` and each resource: what tasks bound within it may still take. At least all
        demand where zones do not count the resource, and for sets that are no proper subset of these zones.
    """

    count: int
    card: tuple[int, ...]
    slack: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class NodeClass:
    """Nodes that no task can tell apart now.

    Attributes
    ----------
    nodes : int array
        Indices of its nodes, ascending.
    free : tuple of int
        Free amount per resource.
    cards : tuple of (int, int, int)
        (kind, free units, free device memory) of each card, in canonical order. A card without running work has
        `Instance.card_units` free units.
    in_use : bool
        Whether running work is on the node.
    limits : tuple of int
        Indices of the limit rows the node counts in.
    zones : Zones, optional
        Absent where no pending task is bound to zones, and on nodes that list none.
    slots : int
        State of a MIG card that is a node by itself, see `Instance.slots`; -1 for other nodes.
    """

    nodes: Ints
    free: tuple[int, ...]
    cards: tuple[tuple[int, int, int], ...]
    in_use: bool
    limits: tuple[int, ...]
    zones: Zones | None = None
    slots: int = -1

    @property
    def size(self) -> int:
        """Number of nodes."""
        return len(self.nodes)


@dataclass(frozen=True, slots=True)
class Shape:
    """Tasks that no node can tell apart.

    Attributes
    ----------
    gpus : int
        Distinct cards.
    units : int
        Units taken of each card; `Instance.card_units` for a whole card. For a MIG instance what it counts as.
    memory : int
        Device memory needed on each card.
    demand : tuple of int
        Amount per resource.
    numa : int
        What it asks of NUMA zones: `ANY`, `FEWEST` or `ONE`.
    profile : int
        MIG profile, see `placement.mig.Slots.profiles`; -1 for none. Such a task takes an instance and no cards.
    tenant : int
        Index into `placement.tenants.Apart.tenants`; -1 where it does not matter whose the task is.
    counts_whole : bool
        Whether it asks for less than the whole of each card though it takes all units of it: because no other task may
        be there, or since amounts were rounded.
    """

    gpus: int
    units: int
    memory: int
    demand: tuple[int, ...]
    numa: int = 0
    profile: int = -1
    tenant: int = -1
    counts_whole: bool = False

    @property
    def of_cards(self) -> int:
        """Units that it takes of all its cards together, or of the one that its MIG instance is on."""
        return self.units if self.profile >= 0 else self.gpus * self.units


@dataclass(frozen=True, slots=True)
class Affinity:
    """Two groups of a job that must share a domain of a level, or must not.

    Attributes
    ----------
    a, b : str
        Paths of the groups.
    level : int
        Index into `Instance.levels`.
    together : bool
    """

    a: str
    b: str
    level: int
    together: bool


@dataclass(frozen=True, slots=True)
class JobClass:
    """Pending jobs with equal gangs, worth and priority.

    Attributes
    ----------
    jobs : int array
        Indices of its jobs, ascending.
    priority : int
    root : Branch
        The gang.
    leaves : tuple of Leaf
        Its leaves by index; `Leaf.value` is in `Instance.value_unit`.
    affinity : tuple of Affinity
    run : RunTime, optional
        Absent where the jobs state neither a duration nor data.
    """

    jobs: Ints
    priority: int
    root: Branch
    leaves: tuple[Leaf, ...]
    affinity: tuple[Affinity, ...] = ()
    run: RunTime | None = None

    @property
    def tied(self) -> bool:
        """Whether it matters where its tasks lie relative to one another."""
        return bool(self.affinity) or is_tied(self.root)

    @property
    def size(self) -> int:
        """Number of jobs."""
        return len(self.jobs)


@dataclass(frozen=True, slots=True)
class LimitRow:
    """What is left of a cap on one resource in one domain.

    Attributes
    ----------
    path : str
        Where the snapshot states it.
    level, domain : str
    resource : int
        Index of the resource, or `GPU` for card units.
    capacity : int
        Amount that new tasks may still take.
    queue : QueueLimit, optional
        What it stands for where it is no cap of the snapshot but a limit of a queue.
    """

    path: str
    level: str
    domain: str
    resource: int
    capacity: int
    queue: QueueLimit | None = None


@dataclass(frozen=True, slots=True)
class Instance:
    """A compiled snapshot.

    Shapes of arrays use N nodes, K node classes, J pending jobs, S shapes, C card kinds, R resources.

    Attributes
    ----------
    snapshot : Snapshot
        What it was compiled from, after `without` was applied.
    resources : tuple of str
        Names of the R resources (``"cpu"``, ``"memory"``, ``"pods"``, ``"extended:…"``).
    resource_units : tuple of Fraction
        One count of each resource, in base units (cores, bytes, …).
    card_units : int
        Units of a whole card.
    memory_unit : Fraction
        One count of device memory, in bytes.
    value_unit : Fraction
        One count of value.
    exact : bool
        False where `rounded` or `crowded`, or worths had to be rounded: plans are valid, no bound may be claimed.
    node_spec, node_copy : int arrays (N,)
        Entry of `snapshot.nodes` and number within it.
    node_class : int array (N,)
    node_cards : dict of int to tuple of int
        Device index of each card in canonical order, for nodes where it is not 0, 1, 2, …
    job_spec, job_copy : int arrays (J,)
        Entry of `snapshot.jobs` and number within it, for pending jobs.
    job_class : int array (J,)
    arrival : int array (J,)
        Pending jobs in the order in which a one-at-a-time scheduler sees them: priority, submit time, copies of
        counted jobs spread evenly, file order.
    card_kinds : tuple of CardKind
    classes : tuple of NodeClass
    shapes : tuple of Shape
    admits_node : bool array (S, K)
        Whether no node filter refuses.
    admits_card : bool array (S, C)
        Whether no card filter refuses.
    job_classes : tuple of JobClass
    limits : tuple of LimitRow
    levels : tuple of str
        Of domains, from wide to narrow: ``"cluster"``, the snapshot's, ``"node"``.
    domains : int array (levels, N)
        Number of the domain of each node at each level; -1 where it is in none.
    zone_sets : tuple of int
        Sets of NUMA zones, as bits, for which `Zones.slack` has rows: single zones, or every proper subset where some
        task is bound to several. Empty where no pending task is bound.
    bound : int array (S, K)
        Within how many zones a task lies on a node of the class, 0 where it is not bound.
    node_zones : dict of int to tuple of int
        Which of the node's zones, in the order of the file, each canonical zone is, where it is not 0, 1, 2, …
    widest : int
        Most cards in a node. Zone z that a task is bound to is position ``widest + z`` among what the task takes.
    slots : Slots, optional
        What MIG cards can come to; absent where no pending task asks for an instance. Otherwise each MIG card is a node
        by itself behind all others, with one card that takes instances alone, and takes what else its tasks ask for
        from its host, on which nothing of that card is free. An instance that starts at slot s is position
        ``slot_base + s`` among what the task takes, beside position 0, the card.
    host : int array (N,)
        The node that a MIG card is in; every other node is its own.
    mates : dict of int to int array
        For each host and MIG card, all nodes that share what is free of the host, itself among them.
    rounded : bool
        Whether amounts had to be rounded to fit 64 bits: requests up, capacities down.
    crowded : bool
        Whether some tasks count as more of a card than they take, since only so many may be on one; see
        `placement.compile.clients`.
    mig_cards : int
        MIG cards on which running work has an instance, whether or not such cards are nodes here.
    apart : Apart, optional
        Absent where all tasks may be together, whosever they are.
    """

    snapshot: Snapshot
    resources: tuple[str, ...]
    resource_units: tuple[Fraction, ...]
    card_units: int
    memory_unit: Fraction
    value_unit: Fraction
    exact: bool
    node_spec: Ints
    node_copy: Ints
    node_class: Ints
    node_cards: dict[int, tuple[int, ...]]
    job_spec: Ints
    job_copy: Ints
    job_class: Ints
    arrival: Ints
    card_kinds: tuple[CardKind, ...]
    classes: tuple[NodeClass, ...]
    shapes: tuple[Shape, ...]
    admits_node: Bools
    admits_card: Bools
    job_classes: tuple[JobClass, ...]
    limits: tuple[LimitRow, ...]
    levels: tuple[str, ...]
    domains: Ints
    zone_sets: tuple[int, ...]
    bound: Ints
    node_zones: dict[int, tuple[int, ...]]
    widest: int
    slots: Slots | None = None
    host: Ints = field(default_factory=lambda: NO_INTS)
    mates: dict[int, Ints] = field(default_factory=dict)
    rounded: bool = False
    crowded: bool = False
    mig_cards: int = 0
    apart: Apart | None = None

    @property
    def slot_base(self) -> int:
        """Where positions of MIG slots begin among what a task takes."""
        return self.widest + MOST_ZONES

    @property
    def hosts(self) -> int:
        """Number of nodes that are no MIG cards; they come first."""
        return self.nodes - int((self.host != np.arange(len(self.host))).sum())

    def hosts_of(self, nodes: Ints) -> Ints:
        """Return the nodes of the snapshot that some nodes are, or are in."""
        return self.host[nodes] if len(self.host) else nodes

    @property
    def only_instances(self) -> bool:
        """Whether every task asks for a MIG instance."""
        return self.slots is not None and all(shape.profile >= 0 for shape in self.shapes)

    @property
    def zoned(self) -> bool:
        """Whether some pending task is bound to NUMA zones on some node."""
        return bool(self.zone_sets)

    @property
    def tied(self) -> bool:
        """Whether some pending job says where its tasks may lie relative to one another."""
        return any(job_class.tied for job_class in self.job_classes)

    @property
    def timed(self) -> bool:
        """Whether some pending job states how long it runs or where its data are."""
        return any(job_class.run is not None for job_class in self.job_classes)

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.node_spec)

    @property
    def jobs(self) -> int:
        """Number of pending jobs."""
        return len(self.job_spec)

    @property
    def priorities(self) -> tuple[int, ...]:
        """Priorities of the pending jobs, highest first."""
        return tuple(sorted({job_class.priority for job_class in self.job_classes}, reverse=True))

    def node_name(self, node: int) -> str:
        """Return the name of a node by its index."""
        spec = self.snapshot.nodes[self.node_spec[node]]
        return spec.name if spec.count == 1 else f"{spec.name}-{self.node_copy[node]}"

    def job_name(self, job: int) -> str:
        """Return the name of a pending job by its index."""
        spec = self.snapshot.jobs[self.job_spec[job]]
        return spec.name if spec.count == 1 else f"{spec.name}-{self.job_copy[job]}"
