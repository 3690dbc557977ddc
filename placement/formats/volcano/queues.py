"""Queues of Volcano: what each may have of cards."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from placement.formats.kubernetes.objects import Item, Objects
from placement.formats.kubernetes.peers import by_name
from placement.formats.kubernetes.quotas import Entitlement, amount, queues
from placement.formats.ledger import Ledger
from placement.formats.volcano.records import SCHEDULING, VolcanoQueue
from placement.snapshot import Queue
from placement.units import Quantity

HIERARCHY = "volcano.sh/hierarchy"
TOP = "root"
"""Queue that all are in, whether its object is there or not."""


def read(objects: Objects, ledger: Ledger) -> tuple[Queue, ...]:
    """Return the queues.

    Volcano lets a queue use what is free up to its ``capability``; what is beyond ``deserved`` is taken back for
    others.
    """
    found = by_name(objects.of(SCHEDULING, "Queue", VolcanoQueue), lambda meta: meta.name)
    if found:
        ledger.read("queues", count=len(found))
    parents = {item.value.spec.parent for item in found.values()}
    stated = []
    for name, item in found.items():
        if name == TOP and not (item.value.spec.capability or item.value.spec.deserved) and TOP not in parents:
            continue
        stated.append(_entitlement(name, item, TOP in found, ledger))
    return queues(stated, ledger)


def _entitlement(name: str, item: Item[VolcanoQueue], has_top: bool, ledger: Ledger) -> Entitlement:
    spec, where = item.value.spec, item.where
    quota = _cards(spec.deserved, "deserved", where, ledger)
    limit = _cards(spec.capability, "capability", where, ledger)
    guarantee = _cards(spec.guarantee.resource if spec.guarantee else None, "guarantee", where, ledger)
    if guarantee:
        ledger.unsupported(
            "a queue's guarantee", "cards are not kept free for a queue while it has no use for them", where
        )
    if quota is None and guarantee is not None:
        quota = guarantee
    if spec.weight is not None and spec.weight < 0:
        ledger.contradiction("a negative weight of a queue", "0", where)
    if spec.reclaimable is False and quota is not None and limit != quota:
        ledger.ignored("a queue that gives nothing back", "what it uses beyond its quota may be taken back here", where)
    if spec.priority:
        ledger.ignored("the priority of a queue", "jobs are ordered by their own priority", where)
    if spec.affinity:
        ledger.unsupported("the affinity of a queue to groups of nodes", "a queue is not tied to nodes", where)
    if HIERARCHY in (item.value.metadata.annotations or {}):
        ledger.ignored("the hierarchy annotation of a queue", "it says shares, and no limits", where)
    if item.value.status and item.value.status.state in ("Closed", "Closing"):
        ledger.unsupported("a closed queue", "its jobs are planned as if it were open", where)
    parent = spec.parent or ""
    if parent == TOP and not has_top:
        parent = ""
    return Entitlement(
        name=name,
        where=where,
        parent=parent,
        quota=Fraction(0) if quota is None else quota,
        limit=limit,
        weight=float(max(0, 1 if spec.weight is None else spec.weight)),
    )


def _cards(amounts: Mapping[str, Quantity] | None, what: str, where: str, ledger: Ledger) -> Fraction | None:
    """Return how many cards a list of resources has; None where it says nothing of cards."""
    cards: Fraction | None = None
    for name, quantity in (amounts or {}).items():
        value = amount(quantity, f"{where}.spec.{what}.{name}")
        if name.endswith("/gpu"):
            cards = value + (cards or 0)
        elif what == "deserved":
            ledger.ignored("a queue's deserved amount of other resources", "quotas are of cards", where)
        else:
            ledger.unsupported(f"a queue's {what} of other resources", "quotas are of cards", where)
    return cards
