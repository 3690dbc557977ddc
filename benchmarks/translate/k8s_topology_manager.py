"""Cases of the merge of NUMA hints, as Kubernetes' topology manager does it: sets of zones that can give a resource.

A case has hints and no amounts. Here each resource becomes an amount that is asked for, and what zones have and have
free, the least whole numbers under which the hints come out: a task's amount is free in a set of zones if and only if
the set holds all zones of some hint, and an empty node, whose zones are alike, has it in as few zones as a preferred
hint names, or in one fewer than any where none is preferred. What is not free is in use by running tasks that lie in
the zone. Whether the pod is admitted is compared, and not where: Kubernetes takes the zones with the lowest numbers,
the nearest, or those a score is best for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

from placement.snapshot import Job, Node, NumaZone, Running, RunningTask, Snapshot, Task, TaskGroup
from translate.common import Case, InexpressibleError, Translated, source_of

NOTHING_TO_SAY = "no opinion"
ANY = "any"
KINDS = ("cpu", "memory")
"""What resources are called here; no case has more."""
MOST = 4
"""Largest amount that is tried."""


@dataclass(frozen=True, slots=True)
class Amounts:
    """A resource in numbers: what the task asks for, what each zone has, and what it has free."""

    asked: int
    total: int
    free: tuple[int, ...]


def translate(case: Case) -> Translated:
    """Return a case as a snapshot.

    Raises
    ------
    InexpressibleError
        If no amounts stand behind the hints.
    """
    zones, policy = case["numa_nodes"], case["policy"]
    resources = [amounts_of(hints, zones, policy) for hints in _opinions(case["providers"])]
    named = dict(zip(KINDS, resources, strict=False))
    has = {resource: one.total for resource, one in named.items()}
    node = Node(
        name="n",
        zones=tuple(NumaZone(id=zone, cpu=has.get("cpu"), memory=has.get("memory")) for zone in range(zones)),
        cpu=zones * has["cpu"] if "cpu" in has else None,
        memory=zones * has["memory"] if "memory" in has else None,
    )
    task = Task(numa=policy, **{resource: one.asked for resource, one in named.items()})  # type: ignore[arg-type]
    in_use = [job for resource, one in named.items() for job in _in_use(resource, one)]
    snapshot = Snapshot(
        description=case.get("note", ""),
        source=source_of(case),
        licence=case["source"]["licence"],
        nodes=(node,),
        jobs=(*in_use, Job(name="pod", groups=(TaskGroup(name="main", task=task),))),
    )
    stricter = (
        "" if policy != "restricted" else "each resource in its own fewest zones, we: all resources in the fewest"
    )
    return Translated(snapshot, 1, int(case["expected"].get("pod_admitted", True)), stricter=stricter)


def _opinions(providers: Sequence[Any]) -> Iterator[list[Case]]:
    """Yield the hints of each resource of which a provider has any; some list those of a resource without its name."""
    for provider in providers:
        if provider != NOTHING_TO_SAY:
            for hints in [provider] if isinstance(provider, list) else provider.values():
                if hints not in (NOTHING_TO_SAY, [{"numa": ANY, "preferred": True}]):
                    yield hints


def amounts_of(hints: Sequence[Case], zones: int, policy: str) -> Amounts:
    """Return the least amounts under which hints come out, of a resource on so many zones.

    Raises
    ------
    InexpressibleError
        If there are none.
    """
    if any(hint["numa"] == ANY for hint in hints):
        raise InexpressibleError("nodes.zones", "a hint of any zone that is not preferred: no amount is behind it")
    if not hints:
        if policy == "restricted":
            raise InexpressibleError("nodes.zones", "no hint at all, under a policy that takes as few zones as need be")
        return Amounts(2, 1, (1, 1, *[0] * (zones - 2)))  # it is there, and in no single zone
    sets = [frozenset(hint["numa"]) for hint in hints]
    least = [one for one in sets if not any(other < one for other in sets)]
    widths = {len(one) for one, hint in zip(sets, hints, strict=True) if hint["preferred"]}
    wide = min(map(len, sets))
    if not widths and wide == 1:
        raise InexpressibleError("nodes.zones", "a hint of one zone that is not preferred: none is narrower")
    if len(widths) > 1:
        raise InexpressibleError("nodes.zones", "preferred hints of different widths: an amount has one fewest")
    width = widths.pop() if widths else wide - 1
    if width > wide:
        raise InexpressibleError("nodes.zones", "a hint that is narrower than a preferred one")
    used = sorted(frozenset().union(*sets))
    for asked in range(1, MOST + 1):
        for amounts in product(range(asked + 1), repeat=len(used)):
            free = dict(zip(used, amounts, strict=True))
            if _comes_out(free, asked, least):
                for total in range(max(amounts), asked + 1):
                    if (width - 1) * total < asked <= width * total:
                        return Amounts(asked, total, tuple(free.get(zone, 0) for zone in range(zones)))
    raise InexpressibleError("nodes.zones", f"no amounts up to {MOST} make these sets, and no others, sufficient")


def _comes_out(free: dict[int, int], asked: int, least: Sequence[frozenset[int]]) -> bool:
    """Return whether what is free in some zones is enough exactly where these hold all of one of some sets."""
    return all(
        (sum(free[zone] for zone in some) >= asked) == any(one <= set(some) for one in least)
        for size in range(1, len(free) + 1)
        for some in combinations(free, size)
    )


def _in_use(resource: str, one: Amounts) -> Iterator[Job]:
    """Yield a running job for what each zone has and has not free."""
    for zone, free in enumerate(one.free):
        if one.total > free:
            group = TaskGroup(name="main", task=Task(**{resource: one.total - free}))  # type: ignore[arg-type]
            place = RunningTask(group="main", index=0, node="n", zone=zone)
            yield Job(name=f"{resource}-{zone}", groups=(group,), running=Running(tasks=(place,)))
