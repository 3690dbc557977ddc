"""Snapshot to work: the instance of a cluster on which nothing runs, and what runs now as placed tasks of its jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import ceil, floor

import msgspec
import numpy as np

from placement import units
from placement.compile import compile as compile_snapshot
from placement.errors import Problem, SnapshotError
from placement.heuristics.gangs import Placed
from placement.instance import ANY, Instance, Ints
from placement.naming import job_names, node_names
from placement.scheduling.clock import Clock
from placement.scheduling.weights import weights
from placement.scheduling.work import Ongoing, Window, Work
from placement.snapshot import Job, Running, RunningTask, Snapshot
from placement.snapshot.fields import MOST_MOMENT

OVERRUNS = tuple(1000 * seconds for seconds in (60, 300, 900, 1800, 3600, 7200, 18000, 36000, 72000, 180000, 360000))
"""By how much longer than estimated a job may be running next, in milliseconds: the steps of Tsafrir, Etsion and
Feitelson (IEEE TPDS 18(6), 2007) for run times that were estimated too short."""


Moment = Callable[[float | None, int], int]
"""Turns seconds on the snapshot's clock into milliseconds after its time; the number is for what is not stated."""


def compile_work(snapshot: Snapshot) -> Work:
    """Return the work of a valid snapshot whose every field is honoured in schedules.

    Raises
    ------
    SnapshotError
        If a pending job states no run time.
    """
    _refuse_untimed(snapshot)
    empty = msgspec.structs.replace(snapshot, jobs=tuple(map(_waiting, snapshot.jobs)))
    instance = compile_snapshot(empty)
    _refuse_endless(instance)
    now = _rational(snapshot.time)
    spec = instance.job_spec.tolist()
    jobs, worth = [snapshot.jobs[entry] for entry in spec], weights(snapshot)
    number = {name: job for job, name in enumerate(job_names(instance, np.arange(instance.jobs)))}

    def moment(seconds: float | None, otherwise: int) -> int:
        return otherwise if seconds is None else ceil(1000 * (_rational(seconds) - now))

    def span(seconds: float | None) -> int:
        return 0 if seconds is None else ceil(1000 * units.exact(seconds))

    # what runs was submitted, and what it came after has ended, whatever its entry says
    submit = _ints([moment(job.submit_time, 0) if job.running is None else 0 for job in jobs])
    node_of = {name: node for node, name in enumerate(node_names(instance, np.arange(instance.hosts)))}
    spots = Spots(instance, node_of)
    if _across(snapshot, instance, number, spots):
        instance = compile_snapshot(empty, across=True)
        spots = Spots(instance, node_of)
    _refuse_zones(snapshot, instance, node_of, number, spots)
    return Work(
        instance=instance,
        submit=submit,
        release=np.maximum(submit, 0),
        weight=_ints([worth[entry] for entry in spec]),
        priority=_ints([job.priority for job in jobs]),
        deadline=_ints([moment(job.deadline, -1) for job in jobs]),
        hard=tuple(job.deadline is not None and job.hard_deadline for job in jobs),
        after=tuple(tuple(number[name] for name in job.after) if job.running is None else () for job in jobs),
        preemptible=tuple(job.preemptible for job in jobs),
        restart=_ints([span(job.restart_seconds) for job in jobs]),
        checkpoint=_ints([span(job.checkpoint_interval) for job in jobs]),
        minimum_run=_ints([span(job.minimum_run_seconds) for job in jobs]),
        queue=tuple(job.queue for job in jobs),
        ongoing=_ongoing(instance, jobs, spots, now),
        windows=_windows(snapshot, jobs, node_of, number, moment),
        max_wait=None if snapshot.policy.max_wait_seconds is None else span(snapshot.policy.max_wait_seconds),
    )


def _refuse_untimed(snapshot: Snapshot) -> None:
    problems = [
        Problem(
            f"jobs[{index}].duration",
            f"{job.name} waits and does not say how long it runs, so nothing can be planned after it",
            "state `duration` with an estimate in `seconds`",
        )
        for index, job in enumerate(snapshot.jobs)
        if job.running is None and job.duration is None
    ]
    if problems:
        raise SnapshotError(problems)


def _refuse_endless(instance: Instance) -> None:
    """Refuse run times that with all that makes them longer are beyond any moment, or could not be counted."""
    problems = []
    for number, one in enumerate(instance.job_classes):
        if one.run is None:
            continue
        run = one.run
        slowest = min([Fraction(1), run.speed(1), *(speed for tasks, speed in run.scaling if tasks)])
        longest = run.seconds * max(run.levels) / slowest
        for factors in ([factor for _, factor in run.models], [run.numa], [run.nic], [run.shared or Fraction(1)]):
            longest *= max([Fraction(1), *factors])
        if longest > MOST_MOMENT:
            entry = int(instance.job_spec[np.flatnonzero(instance.job_class == number)[0]])
            what = f"with its factors and `scaling` it may run for more than {MOST_MOMENT:,} s"
            problems.append(Problem(f"jobs[{entry}].duration", what, "correct the numbers"))
    if problems:
        raise SnapshotError(problems)


def _across(snapshot: Snapshot, instance: Instance, number: Mapping[str, int], spots: Spots) -> bool:
    """Return whether a running task is known to lie in several zones, and no set of several is counted."""
    if not instance.zone_sets or any(bits & (bits - 1) for bits in instance.zone_sets):
        return False
    running = ((job, task) for job in snapshot.jobs if job.running is not None for task in job.running.tasks)
    return any(len(spots.zones(number[job.name], task)) > 1 for job, task in running)


def _refuse_zones(
    snapshot: Snapshot, instance: Instance, node_of: Mapping[str, int], number: Mapping[str, int], spots: Spots
) -> None:
    """Refuse running tasks that lie in zones as cannot be said here, where tasks are bound to zones.

    A task takes all that it asks for from the same zones, NICs that are named among it, and MIG instances take from
    none.
    """
    problems = []
    for index, job in enumerate(snapshot.jobs):
        for place, task in enumerate(job.running.tasks if job.running is not None else ()):
            node = node_of[task.node]
            if instance.classes[instance.node_class[node]].zones is None:
                continue
            zones = snapshot.nodes[instance.node_spec[node]].zones
            held = [zone for zone, one in enumerate(zones) if any(nic.name in task.nics for nic in one.nics)]
            known = spots.zones(number[job.name], task)
            path, name = f"jobs[{index}].running.tasks[{place}]", f"{job.name} on {task.node}"
            if held and (known != held or len(held) > 1) and _binds_nics(instance, node):
                ids = ", ".join(str(zones[zone].id) for zone in held)
                what = f"{name} holds NICs of NUMA zones {ids}, and all else is not known to lie in just one with them"
                remedy = "this cannot be planned over time: state its `zone` if it has one, or leave out `nics`"
                problems.append(Problem(f"{path}.nics", what, remedy))
            elif task.zone is not None and not known:
                what = f"{name} has a MIG instance and states a NUMA zone"
                remedy = "this cannot be planned over time beside tasks bound to zones: leave out `zone`"
                problems.append(Problem(f"{path}.zone", what, remedy))
    if problems:
        raise SnapshotError(problems)


def _binds_nics(instance: Instance, node: int) -> bool:
    """Return whether some task that may be bound to zones of a node asks for NICs."""
    if "nics" not in instance.resources:
        return False
    resource, of_class = list(instance.resources).index("nics"), int(instance.node_class[node])
    return any(
        instance.bound[shape, of_class] > 0 and one.demand[resource] > 0 for shape, one in enumerate(instance.shapes)
    )


def _waiting(job: Job) -> Job:
    return job if job.running is None else msgspec.structs.replace(job, running=None)


def _rational(seconds: float) -> Fraction:
    """Return a moment, which may be negative, as the decimal it is written as."""
    return -units.exact(-seconds) if seconds < 0 else units.exact(seconds)


def _ints(values: list[int]) -> Ints:
    return np.array(values, dtype=np.int64)


# --- what runs now -------------------------------------------------------------------------------------------


class Spots:
    """Where running tasks are, as an instance calls it."""

    def __init__(self, instance: Instance, node_of: Mapping[str, int]) -> None:
        self._instance, self._node_of = instance, node_of
        self._mig = {
            (int(instance.host[node]), instance.node_cards.get(node, (0,))[0]): node
            for node in range(instance.hosts, instance.nodes)
        }

    def of(self, job: int, tasks: tuple[RunningTask, ...]) -> tuple[Placed, ...]:
        """Return running tasks of a job as placed ones."""
        leaves = {leaf.path: leaf for leaf in self._instance.job_classes[self._instance.job_class[job]].leaves}
        return tuple(self._placed(leaves[task.group].leaf, leaves[task.group].shape, task) for task in tasks)

    def _placed(self, leaf: int, shape: int, task: RunningTask) -> Placed:
        instance, node = self._instance, self._node_of[task.node]
        if instance.shapes[shape].profile >= 0:
            card = self._mig[node, task.gpus[0]]
            return leaf, task.index, (card, (0, instance.slot_base + task.mig_starts[0]))
        order = instance.node_cards.get(node)
        cards = task.gpus if order is None else tuple(order.index(device) for device in task.gpus)
        return leaf, task.index, (node, (*sorted(cards), *self._zones(shape, node, task)))

    def _zones(self, shape: int, node: int, task: RunningTask) -> tuple[int, ...]:
        """Return the positions of the zones that a task is known to lie in."""
        inside = self._inside(shape, node, task)
        order = self._instance.node_zones.get(node)
        return tuple(sorted(self._instance.widest + (order.index(zone) if order else zone) for zone in inside))

    def zones(self, job: int, task: RunningTask) -> list[int]:
        """Return the zones, in the order of the file, that a task is known to lie in and takes what it asks for from.

        None where no other task is bound to zones of the node, and of a task with a MIG instance.
        """
        leaves = self._instance.job_classes[self._instance.job_class[job]].leaves
        shape = next(leaf.shape for leaf in leaves if leaf.path == task.group)
        return [] if self._instance.shapes[shape].profile >= 0 else self._inside(shape, self._node_of[task.node], task)

    def _inside(self, shape: int, node: int, task: RunningTask) -> list[int]:
        instance = self._instance
        zones = instance.snapshot.nodes[instance.node_spec[node]].zones
        if instance.classes[instance.node_class[node]].zones is None:
            return []
        if task.zone is not None:
            return [number for number, zone in enumerate(zones) if zone.id == task.zone]
        if instance.shapes[shape].numa == ANY:
            return []
        return [number for number, zone in enumerate(zones) if set(zone.gpus) & set(task.gpus)]


def _ongoing(instance: Instance, jobs: list[Job], spots: Spots, now: Fraction) -> dict[int, Ongoing]:
    clock = Clock(instance)
    found = {}
    for number, job in enumerate(jobs):
        if job.running is not None:
            tasks = spots.of(number, job.running.tasks)
            full = None if job.duration is None or not tasks else clock.run(number, tasks)
            found[number] = _state(job, job.running, tasks, full, now)
    return found


def _state(job: Job, running: Running, tasks: tuple[Placed, ...], full: int | None, now: Fraction) -> Ongoing:
    """Return how far a running job is, given how long all of it takes where it is."""
    since = 0 if running.since is None else min(0, floor(1000 * (_rational(running.since) - now)))
    if full is None:
        return Ongoing(tasks, since, None, Fraction(0), Fraction(0))
    worked = -since if running.work_done is None else floor(1000 * units.exact(running.work_done))
    overrun = max(0, worked - full)
    left = full - worked if worked < full else expected(overrun) - overrun
    if not full:
        return Ongoing(tasks, since, left, Fraction(1), Fraction(1), worked)
    # of a job past its estimate all its work is more than that, and to do it again takes as much longer
    done = 1 - Fraction(left, full)
    unsaved = worked - _saved(job, running, worked, now)
    return Ongoing(tasks, since, left, done, done - Fraction(unsaved, full), None if worked < full else overrun)


def expected(overrun: int) -> int:
    """Return by how much a job is now expected to run longer than estimated."""
    return next((step for step in OVERRUNS if step > overrun), 2 * overrun)


def _saved(job: Job, running: Running, worked: int, now: Fraction) -> int:
    """Return how much of a job's work is safe in its last checkpoint."""
    if running.last_checkpoint is not None:
        since_then = max(0, ceil(1000 * (now - _rational(running.last_checkpoint))))
    elif job.checkpoint_interval:
        since_then = worked % ceil(1000 * units.exact(job.checkpoint_interval))
    else:
        since_then = worked
    return max(0, worked - since_then)


# --- windows -------------------------------------------------------------------------------------------------


def _windows(
    snapshot: Snapshot, jobs: list[Job], node_of: Mapping[str, int], number: Mapping[str, int], moment: Moment
) -> tuple[Window, ...]:
    found = []
    for one in snapshot.reservations:
        queues = frozenset(one.queues)
        allowed = frozenset(number[name] for name in one.jobs if name in number)
        allowed |= frozenset(job for job, spec in enumerate(jobs) if spec.queue and spec.queue in queues)
        hosts = np.array([node_of[name] for name in one.nodes], dtype=np.int64)
        found.append(Window(hosts, moment(one.start, 0), moment(one.end, 0), allowed))
    return tuple(found)
