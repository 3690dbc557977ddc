"""Queues of KAI: what each may have of cards, and for how long its jobs are left alone."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from fractions import Fraction

from placement.formats.kai.records import SCHEDULING, KaiQueue, Share
from placement.formats.kubernetes.objects import Item, Objects
from placement.formats.kubernetes.peers import by_name, wrong
from placement.formats.kubernetes.quotas import Entitlement, queues
from placement.formats.ledger import Ledger
from placement.snapshot import Queue

MOST = 10**12
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_PART = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)(h|ms|us|µs|ns|m|s)", re.ASCII)


def found(objects: Objects) -> dict[str, Item[KaiQueue]]:
    """Return the objects by name."""
    return by_name(objects.of(SCHEDULING, "Queue", KaiQueue), lambda meta: meta.name)


def read(items: Mapping[str, Item[KaiQueue]], ledger: Ledger) -> tuple[Queue, ...]:
    """Return the queues.

    A quota or limit below 0 is any amount; a limit that is 0 or absent allows nothing beyond the quota
    (``docs/queues/README.md`` of kai-scheduler/KAI-Scheduler).
    """
    if items:
        ledger.read("queues", count=len(items))
    return queues([_entitlement(name, item, ledger) for name, item in items.items()], ledger)


def _entitlement(name: str, item: Item[KaiQueue], ledger: Ledger) -> Entitlement:
    spec, where = item.value.spec, item.where
    resources = spec.resources
    cards = resources.gpu if resources else None
    for other, what in ((resources.cpu, "cpu"), (resources.memory, "memory")) if resources else ():
        if other is not None and ((other.quota or 0) > 0 or (other.limit or 0) > 0):
            ledger.unsupported(f"a queue's {what}", "quotas are of cards", where)
    if cards is None:
        ledger.assumed("the cards of a queue that says nothing of them", "none", where)
        cards = Share()
    most, least, share = (cards.limit or 0.0), (cards.quota or 0.0), (cards.over_quota_weight or 0.0)
    for field, value in (("quota", least), ("limit", most), ("overQuotaWeight", share)):
        if not math.isfinite(value) or value > MOST:
            raise wrong(item, f"found {value}", f"give at most {MOST:,}", f"spec.resources.gpu.{field}")
    if cards.lending_limit is not None:
        ledger.unsupported("a queue's lendingLimit", "what it does not use is there for all others", where)
    if spec.priority is not None:
        ledger.ignored("the priority of a queue", "jobs are ordered by their own priority", where)
    quota = None if least < 0 else Fraction(repr(least))
    limit = None if most < 0 else Fraction(repr(most))
    if limit is not None:
        limit = (limit or None) if quota is None else max(limit, quota)
    return Entitlement(
        name=name,
        where=where,
        parent=spec.parent_queue or "",
        quota=quota,
        limit=limit,
        weight=max(0.0, share),
    )


def minimum_seconds(items: Mapping[str, Item[KaiQueue]], ledger: Ledger) -> dict[str, float]:
    """Return for how long a job of each queue is not stopped, where that is said of the queue or of one above it."""
    seconds: dict[str, float] = {}
    for name, item in items.items():
        at: Item[KaiQueue] | None = item
        known: set[str] = set()
        parts: dict[str, float] = {}
        while at is not None and at.value.metadata.name not in known:
            known.add(at.value.metadata.name)
            for field in ("preemptMinRuntime", "reclaimMinRuntime"):
                spec = at.value.spec
                text = spec.preempt_min_runtime if field == "preemptMinRuntime" else spec.reclaim_min_runtime
                if text is not None:
                    parts.setdefault(field, _duration(at, text, field))
            at = items.get(at.value.spec.parent_queue or "")
        if parts:
            seconds[name] = max(parts.values())
            if len(set(parts.values())) > 1 or len(parts) == 1:
                what = "least run time before preemption and before reclaiming"
                ledger.assumed(what, "the longer of the two, for both", item.where)
    return seconds


def _duration(item: Item[KaiQueue], text: str, field: str) -> float:
    parts = _PART.findall(text)
    if text == "0":
        return 0.0
    if not parts or "".join(number + unit for number, unit in parts) != text.removeprefix("+"):
        raise wrong(item, f"{text[:40]!r} is no duration", "write it as 1h30m or 90s", f"spec.{field}")
    return min(sum(float(number) * _UNITS[unit] for number, unit in parts), 1e9)
