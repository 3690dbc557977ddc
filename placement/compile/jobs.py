"""Compiling jobs: task shapes, gangs and job classes."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from operator import attrgetter

import numpy as np

from placement.compile.admission import admission
from placement.compile.tenants import Tenants
from placement.compile.work import Work, encode
from placement.durations import RunTime
from placement.gang import Branch, Group, Leaf, Ties, leaves
from placement.hardware.mig import plain_profile
from placement.index import members, numbered, spread
from placement.instance import ANY, FEWEST, ONE, Affinity, Bools, Ints, JobClass, Shape
from placement.rules import CARD_FILTERS, NodeFilter
from placement.scale import Amounts, Scale, gcd, round_up, total
from placement.snapshot import Job, Snapshot, Task, TaskGroup, Topology

MOST_WORTH = 2**53
"""Most value of all jobs together, in units; a double holds every whole number up to it. Beyond it worths round up."""

NONE = Fraction(0)

_NUMA = {"none": ANY, "best-effort": ANY, "restricted": FEWEST, "single-numa-node": ONE}

_WORTH = attrgetter("weight", "value")
_BESIDES = {"name", "count", "submit_time", "priority", "weight", "value", "groups", "running"}
"""What no filter reads of a job."""
_ASKS = attrgetter(*(field for field in Job.__struct_fields__ if field not in _BESIDES))


class Shapes:
    """Task shapes by what filters and capacity see of them.

    Attributes
    ----------
    shapes : list of Shape
    keys : list of tuple
        What filters on nodes and on cards read of each.
    amounts : list of Amounts
        What a task of each takes, before it is rounded.
    profiles : tuple of str
        MIG profiles that tasks ask for.
    """

    def __init__(self, scale: Scale, work: Work, node_filters: Sequence[NodeFilter], tenants: Tenants) -> None:
        self.node_filters = node_filters
        self._tenants = tenants
        self.shapes: list[Shape] = []
        self.keys: list[tuple[tuple[Hashable, ...], tuple[Hashable, ...]]] = []
        self.amounts: list[Amounts] = []
        self._work = work
        self.profiles = tuple(sorted({plain_profile(task.mig_profile) for task in work.tasks if task.mig_profile}))
        profiles = {name: number for number, name in enumerate(self.profiles)}
        self._taken = [
            _taken(task, amounts, scale, profiles) for task, amounts in zip(work.tasks, work.amounts, strict=True)
        ]
        self._index: dict[Hashable, int] = {}

    def of_leaves(self, job: Job, gang: int) -> list[int]:
        """Return the shape of each leaf of a job's gang, new ones where no task before was like it."""
        return [self._number(job, task) for task, _ in self._work.leaves[gang].values()]

    def _number(self, job: Job, number: int) -> int:
        shape, task = self._tenants.marked(self._taken[number], job), self._work.tasks[number]
        keys = (
            tuple(rule.task_key(job, task) for rule in self.node_filters),
            tuple(rule.task_key(job, task) for rule in CARD_FILTERS) if task.gpus else (),
        )
        amounts = self._work.amounts[number]
        # how many zones a task needs goes by what it asks for exactly, in which shapes differ only where it was rounded
        exactly = () if shape.numa == ANY else (*sorted(amounts.demand.items()), amounts.memory)
        index = self._index.setdefault((shape, keys, exactly), len(self.shapes))
        if index == len(self.shapes):
            self.amounts.append(amounts)
            self.shapes.append(shape)
            self.keys.append(keys)
        return index

    def admitted_by_nodes(self, node_keys: list[tuple[Hashable, ...]]) -> Bools:
        """Return which shapes each node class admits, shape (S, K)."""
        return admission([keys[0] for keys in self.keys], node_keys, self.node_filters)

    def admitted_by_cards(self, card_keys: list[tuple[Hashable, ...]]) -> Bools:
        """Return which shapes each card kind admits, shape (S, C)."""
        return admission([keys[1] for keys in self.keys], card_keys, CARD_FILTERS)


def _taken(task: Task, amounts: Amounts, scale: Scale, profiles: Mapping[str, int]) -> Shape:
    units = round_up(amounts.part, scale.card)
    return Shape(
        gpus=0 if task.mig_profile else task.gpus,
        units=units,
        memory=round_up(amounts.memory, scale.memory),
        demand=tuple(round_up(amounts.demand.get(name, NONE), unit) for name, unit in scale.resources.items()),
        numa=_NUMA[task.numa],
        profile=profiles[plain_profile(task.mig_profile)] if task.mig_profile else -1,
        counts_whole=bool(task.gpus) and not task.mig_profile and amounts.share < 1 <= units * scale.card,
    )


def _gang(
    groups: tuple[TaskGroup, ...], shapes: Sequence[int], values: Sequence[int], levels: Mapping[str, int]
) -> Branch:
    """Return the job's tree, with the shape and the value of each leaf."""
    counter = iter(range(len(shapes)))

    def build(group: TaskGroup, above: str, copies: int) -> Group:
        path = f"{above}{group.name}"
        minimum = group.count if group.min_count is None else group.min_count
        if group.task is not None:
            leaf = next(counter)
            ties = _ties(group.topology, levels)
            return Leaf(path, leaf, shapes[leaf], group.count, minimum, copies, values[leaf], ties)
        children = tuple(build(child, f"{path}/", copies * group.count) for child in group.groups)
        needed = len(children) if group.min_groups is None else group.min_groups
        return Branch(path, children, group.count, minimum, needed, _ties(group.topology, levels))

    children = tuple(build(group, "", 1) for group in groups)
    return Branch("", children, 1, 1, len(children))


def _ties(topology: Topology | None, levels: Mapping[str, int]) -> Ties | None:
    """Return what a group says of the places of its tasks, or None if that is nothing."""
    if topology is None:
        return None
    ties = Ties(
        required=levels.get(topology.required, -1),
        preferred=levels.get(topology.preferred, -1),
        slices=tuple((levels[part.level], part.sizes) for part in topology.slices),
        balanced=levels.get(topology.balanced, -1),
        spread=tuple((levels[s.level], s.max_per_domain or 0, s.min_domains or 0) for s in topology.spread),
    )
    return None if ties == Ties() else ties


def _worths(job: Job, gang: int, work: Work) -> list[Fraction]:
    """Return the worth of one task of each leaf, as `placement.snapshot.Job` defines it."""
    tasks = list(work.leaves[gang].values())
    milli = [1000 * work.tasks[task].gpus * work.amounts[task].share for task, _ in tasks]
    if job.value is None:
        return [job.weight * amount for amount in milli]
    whole = total((amount, count) for amount, (_, count) in zip(milli, tasks, strict=True))
    if whole == 0:
        return [Fraction(job.value, sum(count for _, count in tasks))] * len(tasks)
    return [job.value * amount / whole for amount in milli]


def classify_jobs(
    snapshot: Snapshot,
    pending: Ints,
    job_spec: Ints,
    shapes: Shapes,
    work: Work,
    levels: Mapping[str, int],
    run_time: Callable[[Job], RunTime | None],
) -> tuple[tuple[JobClass, ...], Fraction, Ints, bool]:
    """Return the job classes, the unit of value, the class of each pending job, and whether all worths are exact.

    Parameters
    ----------
    snapshot : Snapshot
    pending : int array
        The entries of the snapshot's jobs that wait.
    job_spec : int array
        Entry of each pending job.
    shapes : Shapes
        Shapes are numbered as they come up here.
    work : Work
    levels : mapping of str to int
        Number of each level of domains.
    run_time : callable
        Returns what a job says of its run time.
    """
    jobs = [snapshot.jobs[i] for i in pending.tolist()]
    gang = work.of_job[pending] if len(pending) else pending
    # equal gangs of equal demands are one kind of work, equal kinds of equal worth one sort of job
    asks, _ = numbered(encode(_ASKS(job)) for job in jobs)
    kind, first_of_kind = numbered(zip(asks.tolist(), gang.tolist(), strict=True))
    shapes_of_kind = [shapes.of_leaves(jobs[i], int(gang[i])) for i in first_of_kind.tolist()]
    sort, first_of_sort = numbered((one, *_WORTH(job)) for one, job in zip(kind.tolist(), jobs, strict=True))
    examples = [(jobs[i], int(gang[i])) for i in first_of_sort.tolist()]
    worths = [_worths(job, one, work) for job, one in examples]
    copies = np.zeros(len(examples), dtype=np.int64)
    np.add.at(copies, sort, np.array([job.count for job in jobs], dtype=np.int64))
    unit, exact = _value_unit(worths, [work.leaves[one] for _, one in examples], copies.tolist())
    roots = [
        _gang(work.gangs[one], shapes_of_kind[number], [round_up(worth, unit) for worth in values], levels)
        for (_, one), number, values in zip(examples, kind[first_of_sort].tolist(), worths, strict=True)
    ]
    affinities = [
        tuple(Affinity(one.a, one.b, levels[one.level], one.kind == "together") for one in job.affinity)
        for job, _ in examples
    ]
    gangs = list(zip(roots, affinities, (run_time(job) for job, _ in examples), strict=True))
    root, first_of_root = numbered(gangs)
    root_of_job = root[sort] if len(sort) else sort
    parts = zip((job.priority for job in jobs), root_of_job.tolist(), strict=True)
    class_of_pending, first = numbered(parts)
    class_of_spec = np.zeros(len(snapshot.jobs), dtype=np.int64)
    class_of_spec[pending] = class_of_pending
    job_class = class_of_spec[job_spec] if len(job_spec) else job_spec
    trees = [gangs[first_of_root[i]] for i in root_of_job[first].tolist()]
    classes = tuple(
        JobClass(inside, jobs[i].priority, tree, tuple(leaves(tree)), affinity, run)
        for inside, i, (tree, affinity, run) in zip(members(job_class, len(first)), first.tolist(), trees, strict=True)
    )
    return classes, unit, job_class, exact


def _value_unit(
    worths: list[list[Fraction]], leaves_of: list[dict[str, tuple[int, int]]], copies: list[int]
) -> tuple[Fraction, bool]:
    """Return the unit of value, and whether every worth is a whole number of it."""
    unit = gcd(worth for values in worths for worth in values if worth)
    worth_of_all = total(
        (worth, count * jobs)
        for values, tasks, jobs in zip(worths, leaves_of, copies, strict=True)
        for worth, (_, count) in zip(values, tasks.values(), strict=True)
    )
    exact = worth_of_all / unit <= MOST_WORTH
    return unit if exact else worth_of_all * 2 / MOST_WORTH, exact


def arrival_order(snapshot: Snapshot, job_spec: Ints, job_copy: Ints) -> Ints:
    """Return the pending jobs by priority, then submit time, then as `placement.snapshot.Job.count` says."""
    if not len(job_spec):
        return job_spec
    priority = np.array([job.priority for job in snapshot.jobs], dtype=np.int64)
    submitted = np.array([-math.inf if job.submit_time is None else job.submit_time for job in snapshot.jobs])
    # sorting is stable, so what ties stays in the order of the file
    return np.lexsort((spread(job_spec, job_copy), submitted[job_spec], -priority[job_spec])).astype(np.int64)
