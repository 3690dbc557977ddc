"""How fair a schedule is: what each queue had, how much later jobs ended than alone, and how long they waited."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction

import msgspec

from placement.check.queues.held_cards import Amounts, HeldCards
from placement.snapshot import Snapshot
from placement.timetable import Schedule
from placement.units import exact


class QueueShare(msgspec.Struct, frozen=True, kw_only=True):
    """What one queue had.

    Attributes
    ----------
    queue : str
        Empty for jobs in no queue.
    model : str
        Card model of which it had the largest part; empty where it had none.
    share : float
        Dominant share (Ghodsi et al., NSDI'11): card seconds of that model that its jobs hold up to the makespan, over
        those there are of healthy cards.
    weighted : float, optional
        The same over the weight of the queue; None for weight 0.
    """

    queue: str
    model: str
    share: float
    weighted: float | None


class JobRho(msgspec.Struct, frozen=True, kw_only=True):
    """How much later a job ended than with a fair part of the cluster to itself.

    Attributes
    ----------
    job : str
    rho : float
        Finish-time fairness (Mahajan et al., Themis, NSDI'20): the time from its submission to its end, over that which
        it would take alone on 1/n of the cluster, for n queues that have jobs in the schedule, jobs in no queue being
        one. That is its run time where it is, and where it holds more than 1/n of the healthy cards of its models, by
        so much longer. 1 or less is fair.
    """

    job: str
    rho: float


class Fairness(msgspec.Struct, frozen=True, kw_only=True):
    """How fair a schedule is.

    Attributes
    ----------
    shares : list of QueueShare
        By queue, of all that hold cards or have jobs in `Schedule.jobs`.
    jobs : list of JobRho
        Of the jobs of `Schedule.jobs` that run for some time.
    worst : float
        Largest rho; 1 without jobs.
    longest_wait : float
        Most seconds that a job held no device, since it was submitted.
    beyond : float, optional
        Part of the jobs that held no device for longer than a limit; None without a limit.
    """

    shares: list[QueueShare]
    jobs: list[JobRho]
    worst: float
    longest_wait: float
    beyond: float | None


def fairness(snapshot: Snapshot, schedule: Schedule, wait_limit: float | None = None) -> Fairness:
    """Return how fair a schedule is.

    Parameters
    ----------
    snapshot : Snapshot
    schedule : Schedule
        A checked one.
    wait_limit : float, optional
        Seconds; if not given, `Policy.max_wait_seconds`.
    """
    limit = snapshot.policy.max_wait_seconds if wait_limit is None else wait_limit
    cards = _cards(snapshot)
    held = HeldCards(snapshot)
    taken = held.of_stretches(schedule)
    jobs = schedule.jobs
    waits = [queued + waited for queued, waited in zip(jobs.queued, jobs.waited, strict=True)]
    rho = _rho(schedule, taken, cards)
    return Fairness(
        shares=_shares(snapshot, schedule, held, taken, cards),
        jobs=rho,
        worst=max((one.rho for one in rho), default=1.0),
        longest_wait=max(waits, default=0.0),
        beyond=None if limit is None else sum(wait > limit for wait in waits) / len(waits) if waits else 0.0,
    )


def _cards(snapshot: Snapshot) -> dict[str, int]:
    found: dict[str, int] = defaultdict(int)
    for node in snapshot.nodes:
        for gpu in node.gpus:
            found[gpu.model] += node.count * gpu.count if gpu.health == "healthy" else 0
    return found


def _milli(seconds: float) -> int:
    return round(1000 * seconds)


def _shares(
    snapshot: Snapshot, schedule: Schedule, held: HeldCards, taken: list[Amounts], cards: Mapping[str, int]
) -> list[QueueShare]:
    makespan = max(map(_milli, schedule.stretches.end), default=0)
    seconds: dict[str, Amounts] = defaultdict(lambda: defaultdict(Fraction))
    for queue in schedule.jobs.queue:
        seconds[queue]
    spans = zip(schedule.stretches.job, schedule.stretches.start, schedule.stretches.end, taken, strict=True)
    for name, start, end, amounts in spans:
        for model, amount in amounts.items():
            seconds[held.queue(name)][model] += amount * (_milli(end) - _milli(start))
    ending = set(schedule.stretches.job)
    endless = [(job, amounts) for job, amounts in held.of_running() if job.name not in ending]
    for job, amounts in endless:
        for model, amount in amounts.items():
            seconds[job.queue][model] += amount * makespan
    weights = {queue.name: exact(queue.weight) for queue in snapshot.queues}
    found = []
    for queue, mine in sorted(seconds.items()):
        parts = {model: amount / (cards[model] * makespan) for model, amount in mine.items() if cards[model] * makespan}
        model = min(parts, key=lambda one: (-parts[one], one), default="")
        share, weight = parts.get(model, Fraction(0)), weights.get(queue, Fraction(1))
        weighted = float(share / weight) if weight else None
        found.append(QueueShare(queue=queue, model=model, share=float(share), weighted=weighted))
    return found


def _rho(schedule: Schedule, taken: list[Amounts], cards: Mapping[str, int]) -> list[JobRho]:
    jobs, most = schedule.jobs, dict[str, Fraction]()
    queues = len(set(jobs.queue))
    for name, amounts in zip(schedule.stretches.job, taken, strict=True):
        there = sum(cards[model] for model in amounts)
        part = sum(amounts.values(), Fraction(0)) / there if there else Fraction(0)
        most[name] = max(part, most.get(name, Fraction(0)))
    found = []
    for row, name in enumerate(jobs.job):
        run = _milli(jobs.run[row])
        if run:
            shared = _milli(jobs.end[row]) - _milli(jobs.release[row]) + _milli(jobs.waited[row])
            alone = run * max(Fraction(1), queues * most.get(name, Fraction(0)))
            found.append(JobRho(job=name, rho=float(shared / alone)))
    return found
