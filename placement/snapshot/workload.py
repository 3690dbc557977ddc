"""What the cluster is asked to run: jobs, their task groups, and where running ones are."""

from __future__ import annotations

from typing import Literal

import msgspec

from placement.snapshot.nothing import NOTHING
from placement.units import Quantity


class Toleration(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, gc=False):
    """Allows a task on nodes with a matching taint, as in Kubernetes.

    Attributes
    ----------
    key : str
        Key of the taints it matches; empty (with ``operator="Exists"``) matches every key.
    operator : str
        ``"Equal"`` compares the value too, ``"Exists"`` does not.
    value : str
    effect : str
        Effect it matches; empty matches both.
    """

    key: str = ""
    operator: Literal["Equal", "Exists"] = "Equal"
    value: str = ""
    effect: Literal["", "NoSchedule", "NoExecute"] = ""


class Task(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, gc=False):
    """What each task of a group asks of the one node it runs on.

    Attributes
    ----------
    gpus : int
        Distinct cards.
    gpu_share : quantity of one card, optional
        Fraction of each of these cards, above 0 and at most 1. Absent means whole cards, which nobody shares.
    mig_profile : str
        MIG profile of each instance, such as ``"3g.40gb"``.
    mig_instance : str
        MIG profile of the instance that the task takes its `gpu_share` of, together with others; see
        `Gpu.mig_instance`. Empty: the share is one of a card.
    gpu_memory : quantity of bytes, optional
        Device memory needed on each card.
    gpu_memory_limit : str
        What must make every task on a card keep to its device memory, for a task that takes a share of it.
        ``"enforced"``: allocations beyond a limit fail. ``"partitioned"``: so they do, and all device memory of a task
        counts, not only what it allocates itself. Empty: nothing has to. See `placement.hardware.sharing.unlimited`.
        Whole cards and MIG instances will always do.
    cpu : quantity of cores
    memory : quantity of bytes
    nics : int
        Distinct NICs of the node, of which nobody else has any.
    extended : dict of str to quantity
    gpu_models : tuple of str
        Card models it may use; empty means any. A task of several cards may mix the models it allows.
    node_selector : dict of str to str
        Labels the node must carry.
    tolerations : tuple of Toleration
    numa : str
        NUMA policy, named as in the Kubernetes topology manager. ``"single-numa-node"``: cards, CPU, memory and NICs
        all come from one zone. ``"restricted"``: from as few zones as an empty node like this one needs for one such
        task, on cards that it may use; where that is all of them, it is not bound there. A node that lists no zones
        takes no such task. ``"none"`` and ``"best-effort"``: from any zones.
    isolation : tuple of str
        What must be isolated from other tenants of a card. A task that takes a share of a card is placed only where the
        card's way of sharing guarantees all of it; see `placement.hardware.sharing`. Whole cards have all of it, and so
        have MIG instances, but for the PCIe bus and the power that they share.
    """

    gpus: int = 0
    gpu_share: Quantity | None = None
    mig_profile: str = ""
    mig_instance: str = ""
    gpu_memory: Quantity | None = None
    gpu_memory_limit: Literal["", "enforced", "partitioned"] = ""
    cpu: Quantity = 0
    memory: Quantity = 0
    nics: int = 0
    extended: dict[str, Quantity] = NOTHING
    gpu_models: tuple[str, ...] = ()
    node_selector: dict[str, str] = NOTHING
    tolerations: tuple[Toleration, ...] = ()
    numa: Literal["none", "best-effort", "restricted", "single-numa-node"] = "none"
    isolation: tuple[Literal["security", "performance", "fault"], ...] = ()


class Slice(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, gc=False):
    """Tasks of each copy of a group that must lie together, slice by slice.

    The tasks of a copy are numbered from 0, member after member, and within a member group after group, in the order of
    the file. Slices are cut off in this order.

    Attributes
    ----------
    level : str
        Level of which one domain must hold all placed tasks of a slice.
    sizes : tuple of int
        Sizes of all slices, which add up to the tasks of a copy; or one that divides them, and is repeated.
    """

    level: str
    sizes: tuple[int, ...]


class Spread(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, gc=False):
    """How thinly each copy of a group is spread over the domains of a level; every placed task must lie in one.

    Attributes
    ----------
    level : str
    max_per_domain : int, optional
        Most tasks of a copy in one domain.
    min_domains : int, optional
        Fewest domains that a copy uses; at most as many as it has tasks.
    """

    level: str
    max_per_domain: int | None = None
    min_domains: int | None = None


class Topology(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, gc=False):
    """Where the tasks of each copy of a group may lie relative to one another.

    A nested group has as many copies as the counts above it multiply to. Each is judged alone, by its placed tasks. A
    node without a position at a level is in no domain of it.

    Attributes
    ----------
    required : str
        Level of which one domain must hold the whole copy.
    preferred : str
        Level of which one domain is tried first, and then one of each wider level up to the required one. It is a wish;
        how far plans stay behind it is the objective ``locality``.
    slices : tuple of Slice
        From wide to narrow, each judged alone.
    balanced : str
        Level over whose domains the tasks are split: the numbers in those that are used differ by 1 at most, or by one
        slice where slices of one size lie at this level or within it. Every placed task must lie in a domain.
    spread : tuple of Spread
        At levels within the required one.
    """

    required: str = ""
    preferred: str = ""
    slices: tuple[Slice, ...] = ()
    balanced: str = ""
    spread: tuple[Spread, ...] = ()


class TaskGroup(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, gc=False):
    """A gang: `count` members, of which `min_count` must run for the group to run at all.

    A member is one task (`task` is set), or one copy of the nested `groups`. A copy runs when at least
    `min_groups` of its groups run. A group that does not reach its minimum runs nothing.

    Attributes
    ----------
    name : str
        Unique among the groups of the same parent. A nested group is addressed as ``parent/child``.
    count : int
        Members wanted.
    min_count : int, optional
        Members without which the group does not run; absent means all.
    task : Task, optional
    groups : tuple of TaskGroup
    min_groups : int, optional
        How many of `groups` each member needs; absent means all.
    topology : Topology, optional
    """

    name: str
    count: int = 1
    min_count: int | None = None
    task: Task | None = None
    groups: tuple[TaskGroup, ...] = ()
    min_groups: int | None = None
    topology: Topology | None = None


class Affinity(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, gc=False):
    """Two groups of a job that must share, or must not share, a domain of a level.

    That goes for each member of the innermost group that holds both, and for the whole job where none does.

    Attributes
    ----------
    a, b : str
        Paths of the groups, of which neither is within the other.
    level : str
    kind : str
        ``"together"``: one domain holds all placed tasks of both. ``"apart"``: no domain holds tasks of both.
    """

    a: str
    b: str
    level: str
    kind: Literal["together", "apart"]


class DataLocality(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, gc=False):
    """Where a copy of a job's data is, and what fetching it costs.

    The entries of a job are copies of the same data, of which the cheapest is fetched. What a copy costs goes by the
    narrowest level, no narrower than its own, of which one domain holds it (all nodes of its domain) and all placed
    tasks of the job; the cluster holds everything. A level that is not listed costs what the next narrower listed one
    does, and nothing where there is none. Milliseconds are rounded up. A copy in a domain without nodes shares the
    cluster alone.

    Attributes
    ----------
    level, domain : str
        Where the copy is; of level ``"node"`` the name of a node.
    fetch_seconds : dict of str to float
        By level.
    """

    level: str
    domain: str
    fetch_seconds: dict[str, float]


class Duration(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, gc=False):
    """Estimated run time and how it depends on the place.

    A job runs for `seconds` times five factors, rounded up to whole milliseconds; numbers are the decimals they are
    written as, and nothing else is rounded.

    Attributes
    ----------
    seconds : float
        Run time at the full count, aligned, unshared, within one node, on a card model without a factor.
    gpu_models : dict of str to float
        Factor by card model: the largest over the cards of the job's placed tasks. It is 1 for a model that is not
        listed, and for a job of which no placed task has a card.
    levels : dict of str to float
        Factor by the narrowest of ``"cluster"``, the snapshot's levels and ``"node"`` of which one domain holds all
        placed tasks. A level that is not listed has the factor of the next narrower listed one, and 1 where there is
        none. Where none is listed at all, `placement.slowdown` says what is usual.
    numa_misaligned : float
        Factor where the cards of some placed task lie in more NUMA zones of its node than so many cards, whichever they
        are, need there. Not on nodes that list no zones.
    nic_misaligned : float
        Factor where the zones of the cards of some placed task have fewer NICs than it asks for. Not for tasks without
        cards or without NICs.
    shared : float, optional
        Factor where some placed task takes less than the whole of a card that is not of the mode ``"exclusive"``.
        Absent: what was measured for `workload` on each card's model, or else what is usual for the way in which the
        card is shared, the largest of them; see `placement.hardware.interference.usual` and
        `placement.hardware.sharing.slowdown`. A MIG instance is shared with nobody.
    workload : str
        Name of a workload of which it was measured how it fares beside others, one of
        `placement.hardware.interference.workloads`. Empty: none.
    scaling : tuple of (int, float)
        Placed tasks of the job, and the speed with so many relative to all of them. Between two that are listed, none
        (0) and all (1) among them, it changes on a line. Absent: the speed is the same with any number of tasks.
    """

    seconds: float
    gpu_models: dict[str, float] = NOTHING
    levels: dict[str, float] = NOTHING
    numa_misaligned: float = 1.4
    nic_misaligned: float = 1.4
    shared: float | None = None
    workload: str = ""
    scaling: tuple[tuple[int, float], ...] = ()


class Requires(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, gc=False):
    """Least versions a node and its cards must have; empty means any."""

    driver: str = ""
    cuda: str = ""
    compute_capability: str = ""


class RunningTask(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, gc=False):
    """Where one task of a running job is.

    Attributes
    ----------
    group : str
        Path of its group, such as ``"workers"`` or ``"replica/leader"``.
    index : int
        Number of the task within its group, from 0; copies of a nested group continue the count.
    node : str
        Name of the node, after expansion of ``count``.
    gpus : tuple of int
        Indices of its cards.
    zone : int, optional
        ``id`` of the NUMA zone that its CPU, memory, and NICs that are not named come from. Absent: where its policy is
        ``"restricted"`` or ``"single-numa-node"`` and it has cards, they come from the zones of these; else they lie
        wherever they are least in the way of new work.
    nics : tuple of str
        Names of the NICs it holds, as many as it asks for; no other task holds them. Empty though it asks for some: as
        many, whichever they are.
    mig_starts : tuple of int
        First memory slot of its instance on each card.
    """

    group: str
    index: int
    node: str
    gpus: tuple[int, ...] = ()
    zone: int | None = None
    nics: tuple[str, ...] = ()
    mig_starts: tuple[int, ...] = ()


class Running(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, gc=False):
    """The present state of a running job; times on the snapshot's clock, in seconds.

    Attributes
    ----------
    tasks : tuple of RunningTask
    since : float, optional
        When it was started; absent is just now.
    work_done : float, optional
        Seconds of its run time, where it is now, that are done; absent are those since it was started.
    last_checkpoint : float, optional
        When it last saved its work; absent goes by `Job.checkpoint_interval`.
    restarts : int
        How often it was stopped before.
    """

    tasks: tuple[RunningTask, ...]
    since: float | None = None
    work_done: float | None = None
    last_checkpoint: float | None = None
    restarts: int = 0


class Job(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, gc=False):
    """A job, or `count` identical ones.

    Attributes
    ----------
    name : str
        With ``count`` above 1 the jobs are ``name-0`` … ``name-(count-1)``.
    count : int
        The copies of a counted job are taken to arrive spread evenly over the jobs of the same priority and submit
        time: a file of kinds says nothing of their order, and a greedy rule that saw all copies of a kind in a row
        would look far worse or better than it is.
    queue, tenant : str
    priority : int
        Jobs of a higher priority are served first, whatever the rest loses.
    weight : int
        Within a priority, a started task is worth `weight` times its GPU-milli.
    value : int, optional
        Worth of the whole job instead; its tasks share it by GPU-milli (by count where no task has a GPU).
    submit_time : float, optional
        Seconds; jobs without one come first, equal ones spread as `count` says, then in the order of the file.
    duration : Duration, optional
    checkpoint_interval : float, optional
        Seconds of work between two checkpoints. Absent: it writes none, and all of its work is lost when it is stopped.
    restart_seconds : float, optional
        What restoring it takes once it was stopped; absent is none.
    preemptible : bool
        Whether it may be stopped for others. It then waits again.
    minimum_run_seconds : float
        For how long it may not be stopped once it was started.
    deadline : float, optional
        When the job should have ended, in seconds on the snapshot's clock.
    hard_deadline : bool
        Whether the job, which must state a deadline then, is not started where it would end after that.
    after : tuple of str
        Jobs that must end before this one starts.
    requires : Requires
    groups : tuple of TaskGroup
        All of them must reach their minimum for the job to start.
    affinity : tuple of Affinity
    data : tuple of DataLocality
    running : Running, optional
        Absent for a pending job.
    task_names : dict of str to tuple of str
        Name of each task by index in the system that the job is from, such as a pod's ``namespace/name``, by path of
        the group. Not for counted jobs. A group that is not listed has no names but these; where fewer are listed than
        there are tasks, the last ones have none, as pods that do not exist yet.
    claims : dict of str to str
        What the cards of a task are claimed by in that system, by the name of the task: a ResourceClaim and the request
        in it, as ``claim/request``. Not for counted jobs.
    """

    name: str
    groups: tuple[TaskGroup, ...]
    count: int = 1
    queue: str = ""
    tenant: str = ""
    priority: int = 0
    weight: int = 1
    value: int | None = None
    submit_time: float | None = None
    duration: Duration | None = None
    checkpoint_interval: float | None = None
    restart_seconds: float | None = None
    preemptible: bool = False
    minimum_run_seconds: float = 0.0
    deadline: float | None = None
    hard_deadline: bool = False
    after: tuple[str, ...] = ()
    requires: Requires = Requires()
    affinity: tuple[Affinity, ...] = ()
    data: tuple[DataLocality, ...] = ()
    running: Running | None = None
    task_names: dict[str, tuple[str, ...]] = NOTHING
    claims: dict[str, str] = NOTHING
