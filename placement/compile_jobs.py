"""Compiling jobs: task shapes, gangs and job classes."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from fractions import Fraction

import numpy as np

from placement.gang import Branch, Group, Leaf, leaves
from placement.index import members, spread
from placement.instance import Bools, Ints, JobClass, Shape
from placement.rules import CARD_FILTERS, CardFilter, NodeFilter
from placement.scale import Amounts, Scale, gcd, tasks_of
from placement.snapshot import Job, Snapshot, Task, TaskGroup

Keys = Sequence[tuple[Hashable, ...]]
"""What each rule reads, one tuple a thing."""

MOST_WORTH = 2**53
"""Most value of all jobs together, in units; a double holds every whole number up to it. Beyond it worths round up."""


class Shapes:
    """Task shapes by what filters and capacity see of them."""

    def __init__(self, scale: Scale, resources: tuple[str, ...], node_filters: Sequence[NodeFilter]) -> None:
        self.scale = scale
        self.node_filters = node_filters
        self.resources = resources
        self.shapes: list[Shape] = []
        self.keys: list[tuple[tuple[Hashable, ...], tuple[Hashable, ...]]] = []
        self._index: dict[Hashable, int] = {}

    def index(self, job: Job, task: Task, amount: Amounts) -> int:
        """Return the number of a task's shape, a new one if no task before was like it."""
        shape = Shape(
            gpus=task.gpus,
            units=math.ceil(amount.share / self.scale.card),
            memory=math.ceil(amount.memory / self.scale.memory),
            demand=tuple(
                math.ceil(amount.demand.get(name, Fraction(0)) / self.scale.resources[name]) for name in self.resources
            ),
        )
        keys = (
            tuple(rule.task_key(job, task) for rule in self.node_filters),
            tuple(rule.task_key(job, task) for rule in CARD_FILTERS) if task.gpus else (),
        )
        index = self._index.setdefault((shape, keys), len(self.shapes))
        if index == len(self.shapes):
            self.shapes.append(shape)
            self.keys.append(keys)
        return index

    def admissions(
        self, node_keys: list[tuple[Hashable, ...]], card_keys: list[tuple[Hashable, ...]]
    ) -> tuple[Bools, Bools]:
        """Return which shapes each node class and card kind admits."""
        nodes = _table([keys[0] for keys in self.keys], node_keys, self.node_filters)
        cards = _table([keys[1] for keys in self.keys], card_keys, CARD_FILTERS)
        return nodes, cards


def _table(
    tasks: Sequence[tuple[Hashable, ...]],
    places: Sequence[tuple[Hashable, ...]],
    rules: Sequence[NodeFilter | CardFilter],
) -> Bools:
    """Return which places admit which tasks; a task without keys is admitted everywhere."""
    answers = {(task, place): not task or _admitted(rules, task, place) for task in set(tasks) for place in set(places)}
    rows = [[answers[task, place] for place in places] for task in tasks]
    return np.array(rows, dtype=np.bool_).reshape(len(tasks), len(places))


def _admitted(
    rules: Sequence[NodeFilter | CardFilter], task_keys: tuple[Hashable, ...], place_keys: tuple[Hashable, ...]
) -> bool:
    for rule, task_key, place_key in zip(rules, task_keys, place_keys, strict=True):
        if rule.refusal(task_key, place_key) is not None:
            return False
    return True


def _gang(groups: tuple[TaskGroup, ...], shape_of: dict[int, int]) -> Branch:
    """Return the job's tree without values."""
    counter = iter(range(10**9))

    def build(group: TaskGroup, above: str, copies: int) -> Group:
        path = f"{above}{group.name}"
        minimum = group.count if group.min_count is None else group.min_count
        if group.task is not None:
            return Leaf(path, next(counter), shape_of[id(group.task)], group.count, minimum, copies, 0)
        children = tuple(build(child, f"{path}/", copies * group.count) for child in group.groups)
        needed = len(children) if group.min_groups is None else group.min_groups
        return Branch(path, children, group.count, minimum, needed)

    children = tuple(build(group, "", 1) for group in groups)
    return Branch("", children, 1, 1, len(children))


def _worth(job: Job, gang_leaves: list[Leaf], tasks: list[Task], amounts: dict[int, Amounts]) -> list[Fraction]:
    """Return the worth of one task of each leaf, as `placement.snapshot.Job` defines it."""
    milli = [1000 * task.gpus * amounts[id(task)].share for task in tasks]
    if job.value is None:
        return [job.weight * amount for amount in milli]
    counts = [leaf.count * leaf.copies for leaf in gang_leaves]
    total = sum((m * c for m, c in zip(milli, counts, strict=True)), Fraction(0))
    if total == 0:
        return [Fraction(job.value, sum(counts))] * len(tasks)
    return [job.value * m / total for m in milli]


def _with_values(group: Group, values: list[int]) -> Group:
    if isinstance(group, Leaf):
        return Leaf(group.path, group.leaf, group.shape, group.count, group.minimum, group.copies, values[group.leaf])
    children = tuple(_with_values(child, values) for child in group.children)
    return Branch(group.path, children, group.count, group.minimum, group.min_groups)


def classify_jobs(
    snapshot: Snapshot, job_spec: Ints, shapes: Shapes, amounts: dict[int, Amounts]
) -> tuple[tuple[JobClass, ...], Fraction, Ints, bool]:
    """Return the job classes, the unit of value, the class of each pending job, and whether all worths are exact."""
    specs = sorted(set(job_spec.tolist()))
    roots: dict[int, Branch] = {}
    worths: dict[int, list[Fraction]] = {}
    for spec in specs:
        job = snapshot.jobs[spec]
        tasks = list(tasks_of(job.groups))
        shape_of = {id(task): shapes.index(job, task, amounts[id(task)]) for task in tasks}
        roots[spec] = _gang(job.groups, shape_of)
        worths[spec] = _worth(job, list(leaves(roots[spec])), tasks, amounts)
    unit = gcd(worth for values in worths.values() for worth in values if worth)
    total = sum(
        (
            worth * leaf.count * leaf.copies * snapshot.jobs[spec].count
            for spec, values in worths.items()
            for worth, leaf in zip(values, leaves(roots[spec]), strict=True)
        ),
        Fraction(0),
    )
    exact = total / unit <= MOST_WORTH
    if not exact:
        unit = total * 2 / MOST_WORTH
    index: dict[Hashable, int] = {}
    class_of_spec = np.zeros(len(snapshot.jobs), dtype=np.int64)
    parts: list[tuple[int, Branch]] = []
    for spec in specs:
        valued = _with_values(roots[spec], [math.ceil(worth / unit) for worth in worths[spec]])
        part = (snapshot.jobs[spec].priority, valued)
        class_of_spec[spec] = index.setdefault(part, len(parts))
        if class_of_spec[spec] == len(parts):
            parts.append(part)  # type: ignore[arg-type]
    job_class = class_of_spec[job_spec] if len(job_spec) else job_spec
    groups = members(job_class, len(parts))
    classes = tuple(
        JobClass(jobs, priority, root, tuple(leaves(root)))
        for jobs, (priority, root) in zip(groups, parts, strict=True)
    )
    return classes, unit, job_class, exact


def arrival_order(snapshot: Snapshot, job_spec: Ints, job_copy: Ints) -> Ints:
    """Return the pending jobs by priority, then submit time, then as `placement.snapshot.Job.count` says."""
    specs = list(snapshot.jobs)
    priority = np.array([job.priority for job in specs], dtype=np.int64)
    submitted = np.array([-math.inf if job.submit_time is None else job.submit_time for job in specs])
    if not len(job_spec):
        return job_spec
    jobs = np.arange(len(job_spec), dtype=np.int64)
    return np.lexsort((jobs, spread(job_spec, job_copy), submitted[job_spec], -priority[job_spec])).astype(np.int64)
