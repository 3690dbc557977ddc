"""Shares and quotas of queues: new work takes no queue above a quota, nor above its share of any card model.

Shares only where the policy has them. Running work counts, and what of it is above stays, with nothing added to it.
How all cards are shared out is worked out here by itself; see `placement.check.queues.division`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from fractions import Fraction

from placement.check.case.case import Case
from placement.check.queues import quota
from placement.check.queues.division import ALL, Division
from placement.check.queues.held_cards import Amounts, HeldCards, add
from placement.check.violation import Violation, decimal, show
from placement.snapshot import Snapshot

RULE = "queue_shares"


def judge(case: Case) -> Iterator[Violation]:
    """Yield every share and quota that new work exceeds."""
    snapshot = case.facts.snapshot
    if not snapshot.queues:
        return
    held = HeldCards(snapshot)
    old = _of_running(held)
    now: dict[str, Amounts] = defaultdict(lambda: defaultdict(Fraction))
    for queue, amounts in old.items():
        add(now[queue], amounts)
    for name, amounts in held.of_tasks(case.tasks).items():
        add(now[held.queue(name)], amounts)
    if snapshot.policy.shares != "quota":
        yield from _beyond_shares(snapshot, old, now)
    for queue, model, used, limit in quota.exceeded(snapshot.queues, old, now):
        yield _violation(queue, model, used, limit, "quota")


def running_beyond(snapshot: Snapshot) -> Iterator[str]:
    """Yield what running work uses beyond a quota, each as queue, cards and limit."""
    if snapshot.queues:
        for queue, model, used, limit in quota.exceeded(snapshot.queues, {}, _of_running(HeldCards(snapshot))):
            yield _violation(queue, model, used, limit, "quota").what


def _of_running(held: HeldCards) -> dict[str, Amounts]:
    """Return the cards that running work of each queue holds."""
    found: dict[str, Amounts] = defaultdict(lambda: defaultdict(Fraction))
    for job, amounts in held.of_running():
        add(found[job.queue], amounts)
    return found


def _beyond_shares(snapshot: Snapshot, old: Mapping[str, Amounts], now: Mapping[str, Amounts]) -> Iterator[Violation]:
    division = Division(snapshot, old)
    for queue in snapshot.queues:
        before, after = (division.sum_below(queue.name, used) for used in (old, now))
        for model in sorted({*after, ALL}):
            if not division.counts(queue.name, model):
                continue
            share = division.share(queue.name, model)
            taken, was = ((sum(one.values()) if model == ALL else one.get(model, 0)) for one in (after, before))
            if taken > max(share, was):
                yield _violation(queue.name, model, Fraction(taken), share, "share")


def _violation(queue: str, model: str, used: Fraction, limit: Fraction, kind: str) -> Violation:
    cards = "all models" if model == ALL else show(model)
    what = f"queue {show(queue)} uses {decimal(used)} cards of {cards}, at most {decimal(limit)} by its {kind}"
    return Violation(RULE, "tasks", what)
