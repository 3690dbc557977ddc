"""Pod sets that are admitted together: a gang, whatever kind of object they are from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from typing import Any

from placement.formats.kubernetes.objects import Item
from placement.formats.kubernetes.parts import Gang, GangGroup
from placement.formats.kueue.flavours import Flavours
from placement.formats.kueue.levels import Levels, RefusedError, Wish, annotated, wish
from placement.formats.kueue.queues import Queues
from placement.formats.kueue.records import PodSet, wrong
from placement.formats.ledger import Ledger
from placement.snapshot import Affinity, Topology

CLASS_LABEL = "kueue.x-k8s.io/priority-class"
BOOST = "kueue.x-k8s.io/priority-boost"

MOST_PODS = 10_000_000
"""Most pods of a pod set."""


@dataclass(slots=True)
class Context:
    """What is known when gangs are made.

    Attributes
    ----------
    levels : Levels
    queues : Queues
    flavours : Flavours
    priorities : mapping of str to int
        Value by WorkloadPriorityClass.
    ledger : Ledger
    gangs : dict of str to Gang
        Those that may start, or run, by key.
    withheld : set of str
        Keys of those that do not start.
    """

    levels: Levels
    queues: Queues
    flavours: Flavours
    priorities: Mapping[str, int]
    ledger: Ledger
    gangs: dict[str, Gang] = field(default_factory=dict)
    withheld: set[str] = field(default_factory=set)

    def queue(self, namespace: str, name: str, where: str) -> str:
        """Return the ClusterQueue of a LocalQueue; empty where the files do not say it."""
        if not name:
            return ""
        cluster = self.queues.local.get(f"{namespace or 'default'}/{name}")
        if cluster in self.queues.covered:
            return cluster or ""
        if self.queues.covered:
            raise RefusedError("a queue that is not there", "the workload is left out: Kueue does not admit it")
        self.ledger.assumed("queue of a workload", "none: there is no ClusterQueue in the files", where)
        return ""

    def stopped(self, namespace: str, name: str, queue: str) -> bool:
        """Return whether a queue starts nothing."""
        return queue in self.queues.held or f"{namespace or 'default'}/{name}" in self.queues.held_local

    def withhold(self, key: str, what: str, why: str, where: str) -> None:
        """Note that a gang does not start."""
        self.withheld.add(key)
        self.ledger.ignored(what, why, where)

    def refuse(self, key: str, why: RefusedError, where: str) -> None:
        """Note that Kueue would not admit a gang."""
        self.withheld.add(key)
        self.ledger.unsupported(why.what, why.why, where)

    def priority(self, stated: int | None, name: str, annotations: Mapping[str, str] | None) -> int | None:
        """Return the priority of a workload; None where only its pods say it."""
        value = self.priorities.get(name) if stated is None else stated
        boost = (annotations or {}).get(BOOST, "")
        digits = boost.removeprefix("-")
        if digits.isascii() and digits.isdigit() and len(digits) < 11:
            value = (value or 0) + int(boost)
        return value


def gang(
    context: Context,
    item: Item[Any],
    key: str,
    sets: Sequence[PodSet],
    *,
    queue: str,
    priority: int | None,
    submitted: str | None,
    started: bool,
    path: str = "spec",
) -> Gang:
    """Return a gang of pod sets.

    Parameters
    ----------
    context : Context
    item : Item
        The object that they are from.
    key : str
    sets : sequence of PodSet
    queue : str
        ClusterQueue, or empty.
    priority : int, optional
    submitted : str, optional
        When the object was made.
    started : bool
        Whether Kueue admitted it: then it is made of the pods that are there.
    path : str
        Where the object says its pod sets; ``[]`` stands for the number of one.

    Raises
    ------
    RefusedError
        If Kueue does not admit it.
    InputError
        If a count is out of range, or two pod sets have one name.
    """
    _judge(item, sets, path)
    sets = [one for one in sets if one.count]
    wishes = [_wish(context, item, one, started) for one in sets]
    together = [index for index, one in enumerate(wishes) if one.group]
    names = {wishes[index].group for index in together}
    whole: Topology | None = None
    affinity: tuple[Affinity, ...] = ()
    rules = [one.topology for one in wishes]
    for name in sorted(names):
        members = [index for index in together if wishes[index].group == name]
        if len(members) < 2:
            continue
        place = _place(context, item, [wishes[index] for index in members])
        if len(members) == len(sets):
            whole = None if place == Topology() else place
            rules = [_parts(one) for one in wishes]
        elif place.required:
            first = sets[members[0]].name
            affinity += tuple(
                Affinity(a=first, b=sets[other].name, level=place.required, kind="together") for other in members[1:]
            )
        elif place.preferred:
            context.ledger.ignored("a level that several pod sets prefer together", "each prefers it alone", item.where)
    groups = tuple(
        GangGroup(
            name=one.name,
            count=None if started else one.count,
            min_count=None if started else one.min_count,
            template=None if started else _template(context, item, one, queue),
            topology=rule,
        )
        for one, rule in zip(sets, rules, strict=True)
    )
    return Gang(
        key=key,
        groups=groups,
        queue=queue,
        priority=priority,
        topology=whole,
        preemptible=queue in context.queues.preemptible,
        submit_time=_time(item, submitted),
        where=item.where,
        affinity=affinity,
        started=started,
    )


def _judge(item: Item[Any], sets: Sequence[PodSet], way: str) -> None:
    seen = set()
    for index, one in enumerate(sets):
        path = way.replace("[]", f"[{index}]")
        if not one.name or "/" in one.name or not one.name.isprintable():
            raise wrong(item, f"{path}.name", "not a name of a pod set", "give small letters, digits and hyphens")
        if one.name in seen:
            raise wrong(item, f"{path}.name", "two pod sets have this name", "rename one of them")
        seen.add(one.name)
        if not 0 <= one.count <= MOST_PODS:
            raise wrong(item, f"{path}.count", f"found {one.count}", f"give 0 to {MOST_PODS:,} pods")
        if one.min_count is not None and not 1 <= one.min_count <= max(one.count, 1):
            raise wrong(item, f"{path}.minCount", f"found {one.min_count}", "give 1 to `count`")


def _wish(context: Context, item: Item[Any], one: PodSet, started: bool) -> Wish:
    """Return what a pod set asks of the topology; of one that was admitted what cannot be said does not matter."""
    try:
        request = one.topology_request or annotated(one.template.metadata.annotations)
        return wish(request, one.count, context.levels, context.ledger, item.where)
    except RefusedError:
        if started:
            return Wish(Topology(), (), "")
        raise


def _place(context: Context, item: Item[Any], wishes: Sequence[Wish]) -> Topology:
    """Return where pod sets that are placed as one have to be: what the last of them says."""
    if any(one.place != wishes[-1].place for one in wishes):
        context.ledger.contradiction("pod sets of a group that ask for different levels", "the last one", item.where)
    return wishes[-1].place


def _parts(one: Wish) -> Topology | None:
    return Topology(slices=one.parts) if one.parts else None


def _template(context: Context, item: Item[Any], one: PodSet, queue: str) -> Any:
    spec = one.template.spec
    return context.flavours.adjusted(spec, queue, context.ledger, item.where)


def _time(item: Item[Any], text: str | None) -> float | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise wrong(
            item, "metadata.creationTimestamp", "not a moment such as 2026-01-31T12:00:00Z", "dump it again"
        ) from None


def unique(context: Context, key: str, kind: str) -> str:
    """Return a key that no other gang has."""
    return next(k for k in _names(key, kind) if k not in context.gangs and k not in context.withheld)


def _names(key: str, kind: str) -> Iterator[str]:
    yield key
    yield f"{key} ({kind})"
    yield from (f"{key} ({kind} {number})" for number in count(2))
