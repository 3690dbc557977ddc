"""Rules for what the cluster is asked to run: jobs, their groups and tasks, what they need and depend on."""

from __future__ import annotations

import graphlib
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

from placement.snapshot.fields import (
    MOST_CARDS,
    MOST_FACTOR,
    MOST_PRIORITY,
    MOST_SECONDS,
    MOST_TASKS,
    MOST_WORTH,
    Names,
    distinct,
    level,
    moment,
    name,
    number,
    quantities,
    quantity,
    share,
    version,
    whole,
)
from placement.snapshot.report import Found, Memo, Report, names, show, step
from placement.snapshot.validate_mig import judge_share_of_instance, judge_task
from placement.snapshot.validate_nodes import RESERVED_LEVELS
from placement.snapshot.validate_sharing import measured
from placement.snapshot.validate_task_names import judge_task_names
from placement.snapshot.validate_topology import TiedLevels
from placement.snapshot.workload import Duration, Job, Task, TaskGroup, Toleration, Topology

MOST_DEPTH = 16
"""Levels of task groups within one another."""

_COMMON = attrgetter("count", "priority", "weight", "value")
_TASK = attrgetter(
    "gpus",
    "gpu_share",
    "mig_profile",
    "mig_instance",
    "gpu_memory",
    "gpu_memory_limit",
    "cpu",
    "memory",
    "nics",
    "gpu_models",
    "tolerations",
    "isolation",
    "numa",
)
# what few jobs have is looked at one by one where it is there at all
_RARE = attrgetter(
    "duration",
    "affinity",
    "data",
    "deadline",
    "hard_deadline",
    "requires",
    "checkpoint_interval",
    "restart_seconds",
    "minimum_run_seconds",
    "task_names",
    "claims",
)
_NOT_RARE = _RARE(Job(name="", groups=()))

Where = tuple[int, ...]
"""Index of a job, and of the group in it, and of the group in that."""


class JobRules:
    """Rules for one job at a time; what is alike in many jobs is looked at once.

    Parameters
    ----------
    levels : tuple of str, optional
        Topology levels of the snapshot; None where it is not at hand, and then any level is taken.
    queues : frozenset of str
        Names of the queues; empty where none is listed, and then any name is taken.
    report : Report
    path : callable
        Path of a job by its index.
    stated : frozenset of str
        Levels at which some node has a position.
    """

    def __init__(
        self,
        levels: tuple[str, ...] | None,
        queues: frozenset[str],
        report: Report,
        path: Callable[[int], str],
        stated: frozenset[str] = frozenset(),
    ) -> None:
        self.inner = None if levels is None else (*levels, RESERVED_LEVELS[0])
        self.every = None if levels is None else (*levels, *RESERVED_LEVELS)
        self.queues = queues
        self.report = report
        self.path = path
        self.kinds: Memo[tuple[Any, ...], tuple[Found, ...]] = Memo(_kind)
        self.tasks: Memo[tuple[Any, ...], tuple[Found, ...]] = Memo(_task)
        self.group_names: Memo[str, tuple[Found, ...]] = Memo(lambda text: tuple(_group_name(text)))
        self.tied = TiedLevels(self.inner, stated)
        self.topologies: Memo[tuple[Topology, int], tuple[Found, ...]] = Memo(
            lambda key: tuple(self.tied.topology(*key))
        )
        self.right_kinds: set[tuple[Any, ...]] = set()
        self.right: dict[int, int] = {}
        """By identity, tasks of gangs with nothing wrong; jobs that were read share equal gangs."""

    def judge(self, index: int, job: Job) -> int:
        """Report what is wrong with a job in itself; return how many tasks it stands for."""
        common = _COMMON(job)
        tasks = self.right.get(id(job.groups))
        if tasks is None or common not in self.right_kinds or job.submit_time is not None or job.queue:
            tasks = self._judge_common(index, job)
        if _RARE(job) != _NOT_RARE:
            self._judge_rare(index, job)
        return common[0] * tasks if common[0] > 0 else 0

    def _judge_common(self, index: int, job: Job) -> int:
        found = self.kinds[_COMMON(job)]
        if found:
            self.report.extend(self.path(index), found)
        else:
            self.right_kinds.add(_COMMON(job))
        if job.submit_time is not None:
            self.report.extend(self.path(index), moment(".submit_time", job.submit_time))
        if self.queues and job.queue and job.queue not in self.queues:
            self.report.unknown(f"{self.path(index)}.queue", "queue", job.queue, self.queues)
        tasks = self.right.get(id(job.groups))
        return self._gang(index, job.groups) if tasks is None else tasks

    # --- groups ----------------------------------------------------------------------------------------------

    def _gang(self, index: int, groups: tuple[TaskGroup, ...]) -> int:
        before = self.report.total
        if not groups:
            self.report.add(f"{self.path(index)}.groups", "the job has no task group", "add a group with a task")
        tasks = self._siblings((index,), groups)
        if self.report.total == before:
            self.right[id(groups)] = tasks
        return tasks

    def _at(self, where: Where) -> str:
        return self.path(where[0]) + "".join(f".groups[{index}]" for index in where[1:])

    def _siblings(self, above: Where, groups: tuple[TaskGroup, ...]) -> int:
        """Report what is wrong with groups of one parent; return their tasks in one copy of it."""
        tasks = 0
        for index, group in enumerate(groups):
            tasks += self._group(above, index, group)
        if len(groups) > 1 and len({group.name for group in groups}) != len(groups):
            seen: dict[str, int] = {}
            for index, group in enumerate(groups):
                if seen.setdefault(group.name, index) != index:
                    other = f"{self._at((*above, seen[group.name]))}"
                    path = f"{self._at((*above, index))}.name"
                    self.report.add(path, f"{show(group.name)} is the name of {other} already", "rename one of them")
        return tasks

    def _group(self, above: Where, index: int, group: TaskGroup) -> int:
        count, task = group.count, group.task
        if count < 1 or count > MOST_TASKS or group.min_count is not None or group.min_groups is not None:
            self.report.extend(self._at((*above, index)), _counts(group))
        if found := self.group_names[group.name]:
            self.report.extend(self._at((*above, index)), found)
        if (task is None) == (not group.groups):
            what = "neither `task` nor `groups` is given" if task is None else "both `task` and `groups` are given"
            remedy = "a group is either one kind of task or a set of nested groups"
            self.report.add(self._at((*above, index)), what, remedy)
        tasks = 0
        if task is not None:
            self._task(above, index, task)
            tasks = 1
        if group.groups:
            tasks += self._nested((*above, index), group.groups)
        tasks *= max(0, count)
        if group.topology is not None and (found := self.topologies[group.topology, tasks]):
            self.report.extend(f"{self._at((*above, index))}.topology", found)
        return tasks

    def _nested(self, where: Where, groups: tuple[TaskGroup, ...]) -> int:
        if len(where) > MOST_DEPTH:
            path = f"{self._at(where)}.groups"
            self.report.add(path, f"groups are nested more than {MOST_DEPTH} deep", "nest them less deeply")
            return 0
        return self._siblings(where, groups)

    def _task(self, above: Where, index: int, task: Task) -> None:
        found = self.tasks[_TASK(task)]
        if found:
            self.report.extend(f"{self._at((*above, index))}.task", found)
        if task.extended:
            path = f"{self._at((*above, index))}.task"
            self.report.extend(path, quantities(".extended", task.extended, "resource"))
        if "" in task.node_selector:
            path = f"{self._at((*above, index))}.task.node_selector"
            self.report.add(path, "a label has an empty key", "name the label")

    # --- what few jobs have ----------------------------------------------------------------------------------

    def _judge_rare(self, index: int, job: Job) -> None:
        path = self.path(index)
        self.report.extend(path, _moments(job))
        if job.duration is not None:
            self.report.extend(f"{path}.duration", self._duration(job.duration))
        if job.task_names or job.claims:
            self.report.extend(path, judge_task_names(job))
        known = set(group_paths(job.groups)) if job.affinity else set()
        for number_, affinity in enumerate(job.affinity):
            where = f"{path}.affinity[{number_}]"
            for key, group in (("a", affinity.a), ("b", affinity.b)):
                if group not in known:
                    self.report.unknown(f"{where}.{key}", "group in this job called", group, known)
            self.report.extend(where, self.tied.affinity(affinity, known))
        for number_, data in enumerate(job.data):
            where = f"{path}.data[{number_}]"
            self.report.extend(where, level(".level", data.level, self.inner))
            self.report.extend(where, name(".domain", data.domain))
            for key, seconds in data.fetch_seconds.items():
                end = f".fetch_seconds{step(key)}"
                self.report.extend(where, [*level(end, key, self.every), *number(end, seconds, 0, MOST_SECONDS)])

    def _duration(self, duration: Duration) -> Iterator[Found]:
        yield from number(".seconds", duration.seconds, 0, MOST_SECONDS)
        for model, factor in duration.gpu_models.items():
            yield from name(".gpu_models", model)
            yield from number(f".gpu_models{step(model)}", factor, 0, MOST_FACTOR, above=True)
        for key, factor in duration.levels.items():
            yield from level(f".levels{step(key)}", key, self.every)
            yield from number(f".levels{step(key)}", factor, 0, MOST_FACTOR, above=True)
        for key in ("numa_misaligned", "nic_misaligned", "shared"):
            yield from number(f".{key}", getattr(duration, key), 0, MOST_FACTOR, above=True)
        if duration.workload:
            yield from measured(".workload", duration.workload)
        last = 0
        for index, (members, speed) in enumerate(duration.scaling):
            yield from whole(f".scaling[{index}][0]", members, 1, MOST_TASKS)
            yield from number(f".scaling[{index}][1]", speed, 1 / MOST_FACTOR, MOST_FACTOR)
            if 1 <= members <= last:
                yield f".scaling[{index}][0]", f"{members} members come after {last}", "list them in ascending order"
            last = max(last, members)


def _kind(common: tuple[Any, ...]) -> tuple[Found, ...]:
    """Return what is wrong with all jobs that have this in common."""
    count, priority, weight, value = common
    found = [
        *whole(".count", count, 1, MOST_TASKS, "say how many identical jobs there are"),
        *whole(".priority", priority, -MOST_PRIORITY, MOST_PRIORITY),
        *whole(".weight", weight, 0, MOST_WORTH),
        *whole(".value", value, 0, MOST_WORTH),
    ]
    if value is not None and weight != 1:
        found.append((".value", f"both value and weight ({show(weight)}) are given", "keep one of them"))
    return tuple(found)


def _moments(job: Job) -> Iterator[Found]:
    yield from moment(".deadline", job.deadline)
    if job.hard_deadline and job.deadline is None:
        yield (
            ".hard_deadline",
            "the job states no `deadline` that could be hard",
            "state the `deadline`, or leave it out",
        )
    yield from number(".checkpoint_interval", job.checkpoint_interval, 0, MOST_SECONDS, above=True)
    yield from number(".restart_seconds", job.restart_seconds, 0, MOST_SECONDS)
    yield from number(".minimum_run_seconds", job.minimum_run_seconds, 0, MOST_SECONDS)
    yield from version(".requires.driver", job.requires.driver)
    yield from version(".requires.cuda", job.requires.cuda)
    yield from version(".requires.compute_capability", job.requires.compute_capability)


def _counts(group: TaskGroup) -> Iterator[Found]:
    yield from whole(".count", group.count, 1, MOST_TASKS, "say how many members the group wants")
    if group.min_count is not None and not 1 <= group.min_count <= max(1, group.count):
        what = f"found {show(group.min_count)}, expected 1 to count, which is {show(group.count)}"
        yield ".min_count", what, "leave it out to need all members"
    if group.min_groups is not None and not group.groups:
        yield ".min_groups", "the group has no nested groups", "leave it out, or use min_count"
    elif group.min_groups is not None and not 1 <= group.min_groups <= len(group.groups):
        what = (
            f"found {show(group.min_groups)}, expected 1 to the number of nested groups, which is {len(group.groups)}"
        )
        yield ".min_groups", what, "leave it out to need all groups"


def _group_name(text: str) -> Iterator[Found]:
    yield from name(".name", text)
    if "/" in text:
        yield ".name", f'found {show(text)}, expected no "/"', 'nested groups are addressed as "parent/child"'


def _task(fields: tuple[Any, ...]) -> tuple[Found, ...]:
    """Return what is wrong with all tasks that have this in common."""
    gpus, gpu_share, mig_profile, mig_instance, gpu_memory, limit, cpu, memory, nics = fields[:9]
    gpu_models, tolerations, isolation, numa = fields[9:]
    found = [
        *whole(".gpus", gpus, 0, MOST_CARDS),
        *(share(".gpu_share", gpu_share) if gpu_share is not None else ()),
        *quantity(".gpu_memory", gpu_memory),
        *quantity(".cpu", cpu),
        *quantity(".memory", memory),
        *whole(".nics", nics, 0, MOST_CARDS),
        *_tolerations(tolerations),
        *distinct(".isolation", isolation, "need"),
    ]
    if gpus == 0:
        given = {"gpu_share": gpu_share is not None, "gpu_memory": gpu_memory is not None}
        given |= {"gpu_models": bool(gpu_models), "mig_profile": bool(mig_profile)}
        given |= {"mig_instance": bool(mig_instance)}
        what = "the task asks for no card (gpus is 0)"
        found += [
            (f".{key}", what, "say how many `gpus`, or leave this out") for key, is_given in given.items() if is_given
        ]
    if limit and gpu_memory is None and not mig_profile:
        what = f"found {show(limit)}, but the task does not say how much memory it may have"
        found.append((".gpu_memory_limit", what, "state `gpu_memory`, or leave it out"))
    if mig_profile and gpu_share is not None:
        found.append((".mig_profile", "both a MIG profile and a share of the card are given", "keep one of them"))
    elif mig_instance and mig_profile:
        what = "both a MIG instance of its own and a share of one are asked for"
        found.append((".mig_instance", what, "keep one of `mig_profile` and `mig_instance`"))
    elif mig_instance and gpus and gpu_share is None:
        what = "the task takes a share of a MIG instance, but does not say which"
        found.append((".mig_instance", what, "state `gpu_share`, or ask for a `mig_profile` of its own"))
    found += judge_task(gpus, mig_profile, numa)
    found += judge_share_of_instance(gpus, mig_instance)
    if "" in gpu_models:
        found.append((f".gpu_models[{gpu_models.index('')}]", "the name is empty", "name the model, or leave it out"))
    return tuple(found)


def _tolerations(tolerations: tuple[Toleration, ...]) -> Iterator[Found]:
    for index, toleration in enumerate(tolerations):
        end = f".tolerations[{index}]"
        if toleration.operator == "Equal" and not toleration.key:
            yield f"{end}.key", 'the key is empty and the operator is "Equal"', 'name the key, or use "Exists" for all'
        if toleration.operator == "Exists" and toleration.value:
            yield f"{end}.value", '"Exists" compares no value', 'leave the value out, or use "Equal"'


def group_paths(groups: tuple[TaskGroup, ...], above: str = "", depth: int = 1) -> Iterator[str]:
    """Yield the path of every group, such as ``"replica/leader"``."""
    for group in groups:
        yield f"{above}{group.name}"
        if depth < MOST_DEPTH:
            yield from group_paths(group.groups, f"{above}{group.name}/", depth + 1)


def judge_order(jobs: tuple[Job, ...], known: Names, report: Report) -> None:
    """Report jobs that wait for jobs that do not exist, for themselves, or in a circle."""
    waits = {index: job.after for index, job in enumerate(jobs) if job.after}
    graph: dict[int, set[int]] = {}
    for index, after in waits.items():
        report.extend(f"jobs[{index}]", distinct(".after", after, "job"))
        for number_, text in enumerate(after):
            other = known.find(text)
            path = f"jobs[{index}].after[{number_}]"
            if other is None:
                report.unknown(path, "job", text, known.known)
            elif other == index:
                report.add(path, "the job waits for itself", "remove it")
            else:
                graph.setdefault(index, set()).add(other)
    called = [job.name for job in jobs] if graph else []
    report_cycle(graph, called, "jobs[{}].after", "the jobs wait for one another", report)


def report_cycle(graph: dict[int, set[int]], called: list[str], path: str, what: str, report: Report) -> None:
    """Report a circle of references between entries, if there is one."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as why:
        circle = why.args[1][::-1]
        report.add(path.format(min(circle)), f"{what} in a circle: {names([called[i] for i in circle])}", "break it")
