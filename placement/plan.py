"""The plan: what runs where, what it is worth, how far from the best it can be, and why the rest waits."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Literal, TypeVar

import msgspec

from placement.plan_tables import Locality as Locality
from placement.plan_tables import RunTimes as RunTimes
from placement.units import Quantity

FORMAT = "placement-plan/1"


class _Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    pass


class Place(_Record, frozen=True, kw_only=True):
    """Where one task runs."""

    node: str
    gpus: tuple[int, ...]
    zones: tuple[int, ...] = ()
    cpu: tuple[Quantity, ...] = ()
    memory: tuple[Quantity, ...] = ()
    nics: tuple[str, ...] = ()
    cpus: str = ""
    mig_starts: tuple[int, ...] = ()

    @property
    def cpuset_cpus(self) -> str:
        """Value of ``cpuset.cpus``: all CPUs of these zones; empty where the snapshot does not list them."""
        return self.cpus

    @property
    def cpuset_mems(self) -> str:
        """Value of ``cpuset.mems``: the NUMA zones of the task; empty on a node that lists no zones."""
        return ",".join(map(str, self.zones))

    @property
    def cdi_devices(self) -> tuple[str, ...]:
        """Names of the cards for a container runtime that knows the Container Device Interface: ``nvidia.com/gpu=0``.

        They are those that ``nvidia-ctk cdi generate`` gives by default, where the snapshot counts the cards of the
        node as the driver does. A share of a card is the whole device: what divides it is set up beside this. A MIG
        instance has a name once it exists, so a task on one has none here.
        """
        if self.mig_starts:
            return ()
        return tuple(f"nvidia.com/gpu={device}" for device in self.gpus)

    @property
    def nvidia_visible_devices(self) -> str:
        """Value of ``NVIDIA_VISIBLE_DEVICES`` for the NVIDIA container runtime: ``0,1``, or ``void`` without cards.

        Empty for a task on a MIG instance, which has a name (``MIG-…``) once it exists.
        """
        if self.mig_starts:
            return ""
        return ",".join(map(str, self.gpus)) or "void"


class Tasks(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, dict=True):
    """Newly placed tasks in columns of equal length, sorted by the order of the snapshot.

    Attributes
    ----------
    job, group : list of str
        Name of the job (after expansion of ``count``) and path of the group.
    index : list of int
        Number of the task within its group, from 0; copies of a nested group continue the count.
    node : list of str
        Name of the node, after expansion of ``count``.
    gpus : list of list of int
        Indices of the cards on that node; empty for a task without cards.
    links : list of (int or None), optional
        What the cards of the task score by the paths between them, see `placement.links.scale`; None for a task with
        fewer than two cards or on a node that lists no paths. `msgspec.UNSET` where that is every task.
    zones : list of list of int, optional
        Numbers (``id``) of the NUMA zones of the node that cards, CPU, memory and NICs of the task come from, in the
        order of the file; empty on a node that lists no zones. `msgspec.UNSET` where that is every task.
    cpu, memory : list of list of quantity, optional
        Cores and bytes of the task from each of these zones; empty where the zones of the node state none.
    nics : list of list of str, optional
        NICs of the task; `msgspec.UNSET` where no task asks for any.
    cpus : list of str, optional
        All CPUs of these zones as the kernel lists them, such as ``"0-31,64-95"``; empty where one of the zones does
        not list its own. `msgspec.UNSET` where that is every task.
    mig_starts : list of list of int, optional
        First memory slot of the task's MIG instance on each of its cards; empty for a task without a MIG profile.
        `msgspec.UNSET` where that is every task.
    """

    job: list[str] = []
    group: list[str] = []
    index: list[int] = []
    node: list[str] = []
    gpus: list[list[int]] = []
    links: list[int | None] | msgspec.UnsetType = msgspec.UNSET
    zones: list[list[int]] | msgspec.UnsetType = msgspec.UNSET
    cpu: list[list[Quantity]] | msgspec.UnsetType = msgspec.UNSET
    memory: list[list[Quantity]] | msgspec.UnsetType = msgspec.UNSET
    nics: list[list[str]] | msgspec.UnsetType = msgspec.UNSET
    cpus: list[str] | msgspec.UnsetType = msgspec.UNSET
    mig_starts: list[list[int]] | msgspec.UnsetType = msgspec.UNSET

    def __len__(self) -> int:
        return len(self.job)

    def __iter__(self) -> Iterator[tuple[str, str, int, str, list[int]]]:
        return iter(zip(self.job, self.group, self.index, self.node, self.gpus, strict=True))

    @cached_property
    def _places(self) -> dict[tuple[str, str, int], Place]:
        in_zones = zip(
            _filled(self.zones, len(self)),
            _filled(self.cpu, len(self)),
            _filled(self.memory, len(self)),
            _filled(self.nics, len(self)),
            [""] * len(self) if isinstance(self.cpus, msgspec.UnsetType) else self.cpus,
            _filled(self.mig_starts, len(self)),
            strict=True,
        )
        return {
            (job, group, index): Place(
                node=node,
                gpus=tuple(gpus),
                zones=tuple(zones),
                cpu=tuple(cpu),
                memory=tuple(memory),
                nics=tuple(nics),
                cpus=cpus,
                mig_starts=tuple(starts),
            )
            for (job, group, index, node, gpus), (zones, cpu, memory, nics, cpus, starts) in zip(
                self, in_zones, strict=True
            )
        }

    def __getitem__(self, key: tuple[str, str, int]) -> Place:
        """Return where a task runs, by (job, group, index).

        Raises
        ------
        KeyError
            If the plan does not place that task.
        """
        return self._places[key]

    def __contains__(self, key: object) -> bool:
        return key in self._places


T = TypeVar("T")


def _filled(column: list[list[T]] | msgspec.UnsetType, length: int) -> list[list[T]]:
    """Return a column, with empty lists where it is not set."""
    return [[]] * length if isinstance(column, msgspec.UnsetType) else column


class Phase(_Record, frozen=True, kw_only=True):
    """One objective of the plan, or one priority of it.

    Attributes
    ----------
    objective : str
    priority : int, optional
        Tier of the ``value`` objective.
    sense : str
        ``"max"`` or ``"min"``.
    value : float
        Recomputed from the snapshot by `placement.check`.
    bound : float, optional
        No plan that keeps the values of the phases before can be better; None where nothing is proven.
    gap : float, optional
        ``|value - bound| / |value|``; None without a bound, or where the value is 0 and the bound is not.
    conditional : bool
        Whether the bound takes the values of earlier phases as given.
    """

    objective: str
    priority: int | None = None
    sense: Literal["max", "min"] = "max"
    value: float
    bound: float | None = None
    gap: float | None = None
    conditional: bool = False


class Pending(_Record, frozen=True, kw_only=True):
    """A job that stays pending, or runs with fewer tasks than it wants.

    Attributes
    ----------
    job : str
    placed, wanted : int
        Tasks.
    reason : str
        ``"never"`` when a cluster without any work could not take what the job needs, as far as it is looked for;
        ``"not_wanted"`` when an objective comes before all that starting the job serves; ``"no_room"`` otherwise.
    detail : str
        One sentence.
    """

    job: str
    placed: int
    wanted: int
    reason: Literal["never", "not_wanted", "no_room"]
    detail: str


class Usage(_Record, frozen=True, kw_only=True):
    """What is in use under the plan, running work included.

    Attributes
    ----------
    gpus : float
        Cards that can take work or have some (healthy, or in use).
    gpus_allocated : float
        Sum of shares in use.
    unallocated_percent : float, optional
        What is idle of the cards, ``100 * (1 - gpus_allocated / gpus)`` unless running work over-fills a card, which
        counts as full; None for a cluster without cards.
    fragmented_percent : float, optional
        Fragmentation (see the ``fragmentation`` objective) in percent of all cards; None without cards or jobs.
    nodes, nodes_used : int
    whole_nodes : int
        Nodes with cards of which all are wholly free.
    tasks_wanted, tasks_started : int
        Of pending jobs.
    jobs_pending, jobs_started : int
        Jobs that were pending before, and those of them that start.
    """

    gpus: float
    gpus_allocated: float
    unallocated_percent: float | None
    fragmented_percent: float | None
    nodes: int
    nodes_used: int
    whole_nodes: int
    tasks_wanted: int
    tasks_started: int
    jobs_pending: int
    jobs_started: int


class Baseline(_Record, frozen=True, kw_only=True):
    """What a greedy rule reached on the same snapshot.

    Attributes
    ----------
    solver : str
    values : tuple of float
        Of the plan's phases.
    usage : Usage
    """

    solver: str
    values: tuple[float, ...]
    usage: Usage


class Provenance(_Record, frozen=True, kw_only=True):
    """How the plan was made; all of it is input or a version, so equal runs give equal bytes.

    Attributes
    ----------
    version : str
        Of `placement`.
    solver : str
        The method whose assignment this is.
    solver_version : str
        Of HiGHS, where it was used.
    method : str
        What was asked for: a solver's name or ``"auto"``.
    objectives : tuple of str
    seed : int
    gap : float
        Relative gap that was good enough.
    time_limit : float, optional
        Seconds.
    without : tuple of str
        Fields of the snapshot that were left out of account on request.
    """

    version: str
    solver: str
    solver_version: str = ""
    method: str = "auto"
    objectives: tuple[str, ...] = ()
    seed: int = 0
    gap: float = 0.0
    time_limit: float | None = None
    without: tuple[str, ...] = ()


class Plan(
    msgspec.Struct,
    forbid_unknown_fields=True,
    omit_defaults=True,
    kw_only=True,
    tag_field="format",
    tag=FORMAT,
    dict=True,
):
    """A plan; in a file it carries ``"format": "placement-plan/1"`` beside these fields.

    Attributes
    ----------
    snapshot : str
        SHA-256 of the snapshot's canonical form.
    status : str
        What the plan holds: ``"proven"`` (every phase's bound equals its value), ``"bounded"`` (the first phase has
        a bound), ``"feasible"`` (no bound).
    stop : str
        Why the search stopped; see `placement.solver.Stop`.
    reproducible : bool
        Whether the same call gives the same plan; False when a clock stopped the search.
    phases : list of Phase
        In the order of the objectives.
    tasks : Tasks
        Newly placed tasks; running ones stay where they are.
    pending : list of Pending
    usage : Usage
    notes : list of str
    provenance : Provenance
    checked : bool
        Whether `placement.check` accepted the plan and recomputed its values.
    locality : Locality, optional
        Of the tasks that a topology or an affinity ties to one another; None where there are none.
    run : RunTimes, optional
        Of the placed jobs that state a duration or data; None where there are none.
    """

    snapshot: str
    status: Literal["proven", "bounded", "feasible"]
    stop: Literal["optimal", "gap", "complete", "work", "time", "failed"]
    reproducible: bool
    phases: list[Phase]
    tasks: Tasks
    pending: list[Pending]
    usage: Usage
    notes: list[str]
    provenance: Provenance
    checked: bool
    locality: Locality | None = None
    run: RunTimes | None = None

    @property
    def seconds(self) -> dict[str, float]:
        """Wall time by activity; not part of the record, since it differs from run to run."""
        return dict(self.__dict__.get("_seconds", {}))

    @seconds.setter
    def seconds(self, seconds: dict[str, float]) -> None:
        self.__dict__["_seconds"] = seconds

    @property
    def greedy(self) -> Baseline | None:
        """What the best greedy rule tried beside the exact method reached; not part of the record."""
        baseline: Baseline | None = self.__dict__.get("_greedy")
        return baseline

    @greedy.setter
    def greedy(self, baseline: Baseline | None) -> None:
        self.__dict__["_greedy"] = baseline

    @property
    def value(self) -> float | None:
        """Value of the first phase."""
        return self.phases[0].value if self.phases else None

    @property
    def bound(self) -> float | None:
        """Bound of the first phase."""
        return self.phases[0].bound if self.phases else None

    @property
    def gap(self) -> float | None:
        """Gap of the first phase."""
        return self.phases[0].gap if self.phases else None
