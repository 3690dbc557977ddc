"""Who may be stopped, shrunk or moved for whom, and what restarting it costs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, lcm

from placement import units
from placement.decisions.preempted import names
from placement.entitlement.cards import Amounts, models_of, of_task
from placement.entitlement.dominant import by_dominant_share
from placement.entitlement.entitled import Entitled, Reclaim, by_fair_share, by_quota
from placement.exact.preemption.counts import Role, goes_as_one
from placement.exact.preemption.landing import task_of
from placement.quota import ALL, Quotas
from placement.snapshot import Job, Snapshot, Task, TaskGroup


@dataclass(frozen=True, slots=True)
class Preemptable:
    """The running jobs that may leave for one that waits.

    Attributes
    ----------
    jobs : tuple of Job
    roles : tuple of Role
        What may become of each.
    caps : tuple of (int, bool)
        How much may be taken of what, see `Role.taken`, and whether the last job may take more.
    """

    jobs: tuple[Job, ...]
    roles: tuple[Role, ...]
    caps: tuple[tuple[int, bool], ...]


def preemptable(
    snapshot: Snapshot,
    running: Sequence[Job],
    job: Job,
    *,
    move: bool,
    restarted: Collection[str],
    reclaim: Reclaim = "quota",
) -> Preemptable:
    """Return who may leave for a job.

    A running job may be stopped or shrunk that is preemptible, has run for `Job.minimum_run_seconds`, and is of lower
    priority; or is of another queue that uses more than its quota, as long as the queue of the job that starts stays
    within its own: one after the other, as long as that queue is still beyond its quota. Where `reclaim` says so, fair
    shares or dominant ones take the place of these quotas. With `move`, one of any priority may be moved.

    Parameters
    ----------
    snapshot : Snapshot
    running : sequence of Job
        As it is by now.
    job : Job
        What is to start.
    move : bool
    restarted : collection of str
        Jobs that have to be restarted in any case, so that it costs nothing more.
    reclaim : str
        What a queue may claim back; see `placement.entitlement.entitled`.
    """
    entitled = _entitled(snapshot, running, reclaim)
    quotas = _used(snapshot, running)
    models = {gpu.model for node in snapshot.nodes for gpu in node.gpus}
    wants = _counted(quotas, job, models)
    reclaims = _within(entitled, quotas, job, wants)
    ranks = {priority: rank for rank, priority in enumerate(sorted({one.priority for one in running}))}
    jobs, roles, lines = [], [], _Lines()
    counted: list[dict[int, list[Fraction]]] = []
    if wants is not None:
        _must_free(quotas, job.queue, wants, lines)
    card_models = models_of(snapshot.nodes)
    for one in running:
        if one.running is None or not one.preemptible or not _long_enough(snapshot, one):
            continue
        lower = one.priority < job.priority
        over = reclaims and one.queue != job.queue and _over(snapshot, entitled, quotas, one.queue)
        if not (lower or over or move):
            continue
        taken = [of_task(task_of(one, place.group), card_models(place.node, place.gpus)) for place in one.running.tasks]
        cost = 0 if one.name in restarted else cost_of(snapshot, one)
        jobs.append(one)
        counted.append(lines.of(quotas, one.queue, taken, over and not lower, entitled))
        may_move = move and (not goes_as_one(one) or len(one.running.tasks) == _tasks(one.groups))
        roles.append(Role(float(cost), lower or over, may_move, ranks[one.priority]))
    return Preemptable(
        tuple(jobs),
        tuple(replace(role, taken=lines.scaled(amounts)) for role, amounts in zip(roles, counted, strict=True)),
        lines.limits(),
    )


def _entitled(snapshot: Snapshot, running: Sequence[Job], reclaim: Reclaim) -> Entitled:
    if reclaim == "quota":
        return by_quota(snapshot)
    by = by_fair_share if reclaim == "fair_share" else by_dominant_share
    return by(snapshot, _asked(snapshot, running))


def cost_of(snapshot: Snapshot, job: Job) -> int:
    """Return what restarting a running job costs: weight times milliseconds.

    These are what restoring it takes, and its work since its last checkpoint, which is lost: all of its work if it
    never wrote one. Milliseconds are rounded up.
    """
    seconds = units.exact(job.restart_seconds or 0) + lost(snapshot, job)
    return job.weight * ceil(1000 * seconds)


def lost(snapshot: Snapshot, job: Job) -> Fraction:
    """Return the seconds of work that a running job would lose."""
    running = job.running
    assert running is not None
    since = Fraction(0) if running.since is None else _rational(snapshot.time) - _rational(running.since)
    since = max(since, Fraction(0))
    worked = since if running.work_done is None else units.exact(running.work_done)
    if running.last_checkpoint is not None:
        return min(worked, max(Fraction(0), _rational(snapshot.time) - _rational(running.last_checkpoint)))
    if job.checkpoint_interval:
        return worked % units.exact(job.checkpoint_interval)
    return worked


def _rational(seconds: float) -> Fraction:
    return -units.exact(-seconds) if seconds < 0 else units.exact(seconds)


def _long_enough(snapshot: Snapshot, job: Job) -> bool:
    assert job.running is not None
    if not job.minimum_run_seconds:
        return True
    if job.running.since is None:
        return False
    return _rational(snapshot.time) - _rational(job.running.since) >= units.exact(job.minimum_run_seconds)


# --- quotas ------------------------------------------------------------------------------------------------------


class _Lines:
    """What may be taken from queues at most, and what has to come back from them at least, in whole numbers."""

    def __init__(self) -> None:
        self._most: list[Fraction] = []
        self._number: dict[tuple[str, str, int], int] = {}
        self._parts: list[Fraction] = []

    def line(self, queue: str, model: str, sign: int, most: Fraction) -> int:
        key = queue, model, sign
        if key not in self._number:
            self._number[key] = len(self._most)
            self._most.append(most)
            self._parts.append(most)
        return self._number[key]

    def of(
        self, quotas: Quotas, queue: str, taken: Sequence[Amounts], reclaimed: bool, entitled: Entitled
    ) -> dict[int, list[Fraction]]:
        """Return what each task of a job takes of each line that it counts in."""
        found: dict[int, list[Fraction]] = {}
        if not quotas.limited(queue):
            return found
        rows = [dict(quotas.rows(queue, one)) for one in taken]
        for model in {model for one in rows for model in one}:
            amounts = [Fraction(one.get(model, 0)) for one in rows]
            self._parts += amounts
            if reclaimed:
                beyond = Fraction(quotas.usage(queue, model) - entitled(queue, model))
                found[self.line(queue, model, 1, max(Fraction(0), beyond))] = amounts
            for above in quotas.chain(queue):
                number = self._number.get((above, model, -1))
                if number is not None:
                    found[number] = [-amount for amount in amounts]
        return found

    def _scale(self) -> int:
        return lcm(*(part.denominator for part in self._parts)) if self._parts else 1

    def scaled(self, amounts: Mapping[int, Sequence[Fraction]]) -> dict[int, list[int]]:
        scale = self._scale()
        return {number: [int(scale * amount) for amount in mine] for number, mine in amounts.items()}

    def limits(self) -> tuple[tuple[int, bool], ...]:
        scale = self._scale()
        beyond = [sign > 0 for _, _, sign in self._number]
        return tuple((int(scale * most), last) for most, last in zip(self._most, beyond, strict=True))


def _must_free(quotas: Quotas, queue: str, wants: Amounts, lines: _Lines) -> None:
    """State what has to come back so that no limit of the queue is exceeded, up to the first that keeps some back.

    What counts above that is no sum of what counts below; `quota_refusal` judges it.
    """
    if not quotas.limited(queue):
        return
    for model, amount in quotas.rows(queue, wants):
        for above in quotas.chain(queue):
            row = quotas.row(above, model)
            if row.limit is not None:
                lines.line(above, model, -1, Fraction(row.limit - quotas.usage(above, model)) - amount)
            if row.guaranteed:
                break


def quota_refusal(snapshot: Snapshot, running: Sequence[Job], job: Job) -> str | None:
    """Return which quota keeps a job from starting beside those that run, or None."""
    quotas = _used(snapshot, running)
    wants = _counted(quotas, job, {gpu.model for node in snapshot.nodes for gpu in node.gpus})
    short = None if wants is None else quotas.short_by(job.queue, wants)
    return None if short is None else str(short)


def _used(snapshot: Snapshot, running: Sequence[Job]) -> Quotas:
    quotas = Quotas(snapshot.queues)
    card_models = models_of(snapshot.nodes)
    for job in running:
        assert job.running is not None
        if quotas.limited(job.queue):
            for place in job.running.tasks:
                quotas.change(job.queue, of_task(task_of(job, place.group), card_models(place.node, place.gpus)))
    return quotas


def _over(snapshot: Snapshot, entitled: Entitled, quotas: Quotas, queue: str) -> bool:
    if not quotas.limited(queue):
        return False
    models = {gpu.model for node in snapshot.nodes for gpu in node.gpus}
    rows = dict(quotas.rows(queue, dict.fromkeys(models, Fraction(0))))
    return any(quotas.usage(queue, model) > entitled(queue, model) for model in rows)


def _within(entitled: Entitled, quotas: Quotas, job: Job, wants: Amounts | None) -> bool:
    """Return whether a job's queue stays with it within what it may claim."""
    if wants is None or not wants or not quotas.limited(job.queue):
        return False
    rows = quotas.rows(job.queue, wants)
    return all(quotas.usage(job.queue, model) + amount <= entitled(job.queue, model) for model, amount in rows)


def _asked(snapshot: Snapshot, running: Sequence[Job]) -> dict[str, list[Amounts]]:
    """Return what jobs have and wait for, by queue."""
    models, card_models = {gpu.model for node in snapshot.nodes for gpu in node.gpus}, models_of(snapshot.nodes)
    found: dict[str, list[Amounts]] = {}
    for job in running:
        assert job.running is not None
        for place in job.running.tasks:
            taken = of_task(task_of(job, place.group), card_models(place.node, place.gpus))
            found.setdefault(job.queue, []).append(taken)
    there = {job.name for job in running}
    for job in snapshot.jobs:
        waiting = sum(name not in there for name in names(job))
        if waiting:
            wants = _wanted(job, models)
            found.setdefault(job.queue, []).extend([_of_any(job) if wants is None else wants] * waiting)
    return found


def _counted(quotas: Quotas, job: Job, models: Collection[str]) -> Amounts | None:
    """Return the cards that a job needs at least as quotas count them, or None where that is not settled."""
    wants = _wanted(job, models)
    return _of_any(job) if wants is None and not quotas.by_model(job.queue) else wants


def _of_any(job: Job) -> Amounts:
    """Return the cards that a job needs at least, whatever models they are of."""
    found = (of_task(task, [ALL] * task.gpus).get(ALL, Fraction(0)) * count for task, count in _least(job.groups, 1))
    return {ALL: sum(found, Fraction(0))}


def _wanted(job: Job, models: Collection[str]) -> Amounts | None:
    """Return the cards that a job needs at least, or None where it is not settled of which model they will be."""
    found: Amounts = {}
    for task, count in _least(job.groups, 1):
        if not task.gpus:
            continue
        possible = [model for model in models if not task.gpu_models or model in task.gpu_models]
        if len(possible) != 1:
            return None
        for model, amount in of_task(task, [possible[0]] * task.gpus).items():
            found[model] = found.get(model, Fraction(0)) + count * amount
    return found


def _least(groups: Sequence[TaskGroup], copies: int) -> Iterator[tuple[Task, int]]:
    for group in groups:
        count = copies * (group.count if group.min_count is None else group.min_count)
        if group.task is not None:
            yield group.task, count
        else:
            yield from _least(group.groups, count)


def _tasks(groups: Sequence[TaskGroup]) -> int:
    """Return how many tasks a job wants."""
    return sum(group.count * (1 if group.task is not None else _tasks(group.groups)) for group in groups)
