"""A schedule in numbers: completion times and their parts, by queue and priority, and how busy the cards are."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction

from placement import units
from placement.hardware.mig import fraction
from placement.snapshot import Snapshot, Task
from placement.snapshot.fields import Names
from placement.snapshot.leaves import leaf_tasks
from placement.timetable import Figures, JobTimes, Spread, Stretches, StretchTasks


def figures(snapshot: Snapshot, jobs: JobTimes, stretches: Stretches, tasks: StretchTasks) -> Figures:
    """Return the figures of what a schedule says.

    Parameters
    ----------
    snapshot : Snapshot
    jobs : JobTimes
    stretches : Stretches
    tasks : StretchTasks
    """
    queues: dict[str, list[int]] = defaultdict(list)
    priorities: dict[str, list[int]] = defaultdict(list)
    for row, (queue, priority) in enumerate(zip(jobs.queue, jobs.priority, strict=True)):
        queues[queue].append(row)
        priorities[str(priority)].append(row)
    makespan = max(stretches.end, default=0.0)
    return Figures(
        all=spread(jobs, range(len(jobs))),
        queues={name: spread(jobs, rows) for name, rows in sorted(queues.items()) if name},
        priorities={name: spread(jobs, rows) for name, rows in sorted(priorities.items(), key=lambda one: int(one[0]))},
        makespan=makespan,
        utilisation=_utilisation(snapshot, stretches, tasks, makespan),
        preemptions=_preemptions(snapshot, jobs, stretches, tasks),
    )


def spread(jobs: JobTimes, rows: Sequence[int]) -> Spread:
    """Return the figures of some rows."""
    ends = zip(jobs.release, jobs.end, strict=True)
    total = [_milli(end) - _milli(release) for release, end in ends]
    took = sorted(total[row] for row in rows)
    weight = sum(jobs.weight[row] for row in rows)
    ratios = [Fraction(total[row], _milli(jobs.run[row])) for row in rows if _milli(jobs.run[row])]
    return Spread(
        jobs=len(took),
        mean=_mean(took),
        weighted=float(Fraction(sum(total[row] * jobs.weight[row] for row in rows), 1000 * weight)) if weight else 0.0,
        p50=_rank(took, 50),
        p95=_rank(took, 95),
        p99=_rank(took, 99),
        queued=_mean([_milli(jobs.queued[row]) for row in rows]),
        run=_mean([_milli(jobs.run[row]) for row in rows]),
        restart=_mean([_milli(jobs.restart[row]) for row in rows]),
        slowdown=float(sum(ratios) / len(ratios)) if ratios else 1.0,
    )


def _milli(seconds: float) -> int:
    return round(seconds * 1000)


def _mean(milli: Sequence[int]) -> float:
    return float(Fraction(sum(milli), 1000 * len(milli))) if milli else 0.0


def _rank(ordered: Sequence[int], percent: int) -> float:
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)] / 1000 if ordered else 0.0


def _preemptions(snapshot: Snapshot, jobs: JobTimes, stretches: Stretches, tasks: StretchTasks) -> int:
    """Return how often jobs are stopped: before each stretch but a first one, and before that, too, if it runs now.

    A job that is stopped at once has no stretch of what it did until now. It is told from one that goes on by where it
    is in its first stretch, by when that starts, and by being restored in it.
    """
    listed = set(jobs.job)
    first: dict[str, int] = {}
    for stretch, name in enumerate(stretches.job):
        first.setdefault(name, stretch)
    places: dict[int, set[tuple[str, int, str, tuple[int, ...]]]] = defaultdict(set)
    columns = zip(tasks.stretch, tasks.group, tasks.index, tasks.node, tasks.gpus, strict=True)
    for stretch, group, index, node, gpus in columns:
        places[stretch].add((group, index, node, tuple(sorted(gpus))))
    stops = sum(name in listed for name in stretches.job) - len(jobs)
    for job in snapshot.jobs:
        if job.running is not None and job.name in listed:
            stretch = first[job.name]
            here = {(task.group, task.index, task.node, tuple(sorted(task.gpus))) for task in job.running.tasks}
            later = _milli(stretches.start[stretch]) or _milli(stretches.restart[stretch])
            stops += bool(later or here != places[stretch])
    return stops


def _utilisation(snapshot: Snapshot, stretches: Stretches, tasks: StretchTasks, makespan: float) -> float | None:
    cards = sum(node.count * gpu.count for node in snapshot.nodes for gpu in node.gpus if gpu.health == "healthy")
    if not cards or not _milli(makespan):
        return None
    part = _Parts(snapshot)
    held = Fraction(0)
    for number, group, gpus in zip(tasks.stretch, tasks.group, tasks.gpus, strict=True):
        length = _milli(stretches.end[number]) - _milli(stretches.start[number])
        held += length * part(stretches.job[number], group, gpus)
    ending = set(stretches.job)
    for job in snapshot.jobs:
        if job.running is not None and job.name not in ending:
            for task in job.running.tasks:
                held += _milli(makespan) * part(job.name, task.group, task.gpus)
    return float(held / (cards * _milli(makespan)))


class _Parts:
    """Cards that tasks take, as parts of whole ones."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._jobs = snapshot.jobs
        self._job_names = Names("job", [one.name for one in self._jobs], [one.count for one in self._jobs])
        self._tasks: dict[int, dict[str, Task]] = {}

    def __call__(self, job: str, group: str, gpus: Sequence[int]) -> Fraction:
        """Return what a task takes."""
        entry = self._job_names.find(job)
        assert entry is not None
        if entry not in self._tasks:
            self._tasks[entry] = dict(leaf_tasks(self._jobs[entry].groups))
        task = self._tasks[entry][group]
        if task.mig_profile:
            part = fraction(task.mig_profile)
            assert part is not None
            return part
        return len(gpus) * (Fraction(1) if task.gpu_share is None else units.exact(task.gpu_share))
