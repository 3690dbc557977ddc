"""Why a job stays pending."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import cached_property

import msgspec
import numpy as np

from placement import units
from placement.compile import compile as compile_snapshot
from placement.gang import Group, Leaf
from placement.instance import Assignment, Bools, Instance, JobClass
from placement.plan import Pending
from placement.rules import CARD_FILTERS, DIMENSIONS, NODE_FILTERS
from placement.snapshot import Gpu, Job, Node, Task, TaskGroup
from placement.state import State


def pending(instance: Instance, assignment: Assignment) -> list[Pending]:
    """Return the jobs that do not run with all their tasks, in the order of the snapshot."""
    placed = np.bincount(assignment.job, minlength=instance.jobs)
    wanted = np.array(
        [sum(leaf.count * leaf.copies for leaf in job_class.leaves) for job_class in instance.job_classes],
        dtype=np.int64,
    )
    empty = EmptyCluster(instance)
    found = []
    for job in np.flatnonzero(placed < wanted[instance.job_class]) if instance.jobs else ():
        number = int(instance.job_class[job])
        never = None if placed[job] else empty.never(number)
        found.append(
            Pending(
                job=instance.job_name(int(job)),
                placed=int(placed[job]),
                wanted=int(wanted[number]),
                reason="never" if never else "no_room",
                detail=never or _no_room(int(placed[job])),
            )
        )
    return found


def _no_room(placed: int) -> str:
    if placed:
        return "runs with fewer tasks than it wants: there is no room for more beside the other work of this plan"
    return "every task fits on a node without work, but not all it needs beside the other work of this plan"


class EmptyCluster:
    """The same cluster without any work: what can never start there can never start at all."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self._known: dict[int, str | None] = {}

    @cached_property
    def _twin(self) -> tuple[Instance, Bools]:
        """The instance without running work, and which of its shapes fit on some node of it."""
        snapshot = self.instance.snapshot
        idle = tuple(job for job in snapshot.jobs if job.running is None)
        twin = compile_snapshot(msgspec.structs.replace(snapshot, jobs=idle))
        state = State(twin)
        state.limits = state.limits[:0]  # a domain's cap depends on other work; a node's size does not
        first = np.array([node_class.nodes[0] for node_class in twin.classes], dtype=np.int64)
        fits = [len(first) > 0 and bool(state.fits(shape, first).any()) for shape in range(len(twin.shapes))]
        return twin, np.array(fits, dtype=np.bool_)

    def never(self, number: int) -> str | None:
        """Return why jobs of a class can never start, or None if nodes without work could take what they need."""
        if number not in self._known:
            self._known[number] = self._find(self.instance.job_classes[number])
        return self._known[number]

    def _find(self, job_class: JobClass) -> str | None:
        snapshot = self.instance.snapshot
        job = int(job_class.jobs[0])
        spec = snapshot.jobs[int(self.instance.job_spec[job])]
        if self.instance.exact:
            twin, fits = self._twin
            # pending jobs have the same numbers in both instances
            leaf = _blocking(twin.job_classes[twin.job_class[job]].root, lambda leaf: bool(fits[leaf.shape]))
        else:
            # rounded amounts say "no" too often, and "never" must be true
            leaf = _blocking(job_class.root, lambda leaf: self._fits_somewhere(spec, leaf))
        if leaf is None:
            return None
        task = _task(spec.groups, leaf.path.split("/"))
        causes: Counter[str] = Counter()
        for node in snapshot.nodes:
            causes[refusal(spec, task, node) or ""] += node.count
        listed = "; ".join(f"{count}: {cause}" for cause, count in causes.most_common(4))
        return f"no node could take a task of {leaf.path} even without other work ({listed or 'there are no nodes'})"

    def _fits_somewhere(self, spec: Job, leaf: Leaf) -> bool:
        task = _task(spec.groups, leaf.path.split("/"))
        return any(refusal(spec, task, node) is None for node in self.instance.snapshot.nodes)


def _blocking(group: Group, fits: Callable[[Leaf], bool]) -> Leaf | None:
    """Return a leaf that keeps the group from ever reaching its minimum, or None."""
    if isinstance(group, Leaf):
        return None if fits(group) else group
    blocked = [leaf for leaf in (_blocking(child, fits) for child in group.children) if leaf is not None]
    return blocked[0] if len(group.children) - len(blocked) < group.min_groups else None


def _task(groups: Iterable[TaskGroup], path: list[str]) -> Task:
    group = next(group for group in groups if group.name == path[0])
    return group.task if group.task is not None else _task(group.groups, path[1:])


def refusal(job: Job, task: Task, node: Node) -> str | None:
    """Return the first reason why a node without work cannot take a task, or None if it can."""
    for rule in NODE_FILTERS:
        text = rule.refusal(rule.task_key(job, task), rule.node_key(node))
        if text:
            return text
    for dimension in DIMENSIONS:
        capacity = dimension.capacity(node)
        for name, amount in dimension.demand(task).items():
            have = capacity.get(name, 0)
            if have is not None and amount > have:
                return f"too little {name.removeprefix('extended:')}"
    cards = [gpu for gpu in node.gpus for _ in range(gpu.count)]
    if len(cards) < task.gpus:
        return f"fewer than {task.gpus} cards"
    texts = [text for text in (_card_refusal(job, task, gpu) for gpu in cards) if text]
    if len(cards) - len(texts) < task.gpus:
        return Counter(texts).most_common(1)[0][0]
    return None


def _card_refusal(job: Job, task: Task, gpu: Gpu) -> str | None:
    for rule in CARD_FILTERS:
        text = rule.refusal(rule.task_key(job, task), rule.card_key(gpu))
        if text:
            return text
    if (
        task.gpu_memory is not None
        and gpu.memory is not None
        and units.exact(task.gpu_memory) > units.exact(gpu.memory)
    ):
        return "too little device memory"
    return None
