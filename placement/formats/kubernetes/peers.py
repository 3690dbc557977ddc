"""What Volcano and KAI have in common: pods that belong to a group by name, least numbers, and priority classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import msgspec

from placement.errors import InputError
from placement.formats.kubernetes.objects import Item, Meta, Objects
from placement.formats.kubernetes.parts import GangGroup
from placement.formats.ledger import Ledger
from placement.snapshot import Topology
from placement.snapshot.fields import wrong_name
from placement.snapshot.report import show

FINISHED = ("Succeeded", "Failed")
"""Phases of pods that hold nothing any more."""

CRITICAL = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""Classes that every cluster has: https://kubernetes.io/docs/tasks/administer-cluster/guaranteed-scheduling-critical-addon-pods/"""


NO_GROUP = "a least number of pods, whatever groups they are from"


class Named(Protocol):
    """An object with metadata."""

    metadata: Meta


N = TypeVar("N", bound=Named)


class _Status(msgspec.Struct, rename="camel", gc=False):
    phase: str | None = None


class Member(msgspec.Struct, rename="camel", gc=False):
    """A pod, as far as it takes to know which group it belongs to."""

    metadata: Meta = msgspec.field(default_factory=Meta)
    status: _Status | None = None

    @property
    def phase(self) -> str:
        """Phase, or ``""``."""
        return (self.status.phase if self.status else None) or ""


class PriorityClass(msgspec.Struct, rename="camel", gc=False):
    """A class of priorities."""

    metadata: Meta = msgspec.field(default_factory=Meta)
    value: int = 0
    global_default: bool | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """How many pods of a gang there are, by path of their group.

    Attributes
    ----------
    alive : Counter of str
        Those that run or wait.
    succeeded : Counter of str
    """

    alive: Counter[str]
    succeeded: Counter[str]


def members(objects: Objects, of: Callable[[Meta], tuple[str, str] | None]) -> dict[str, Found]:
    """Return the pods of each gang, groups in the order in which their first pods come.

    Parameters
    ----------
    objects : Objects
    of : callable
        Key of the gang and path of the group by the metadata of a pod, or None.
    """
    found: dict[str, Found] = {}
    for item in objects.of("", "Pod", Member):
        place = of(item.value.metadata)
        if place is None:
            continue
        key, path = place
        gang = found.setdefault(key, Found(Counter(), Counter()))
        if item.value.phase not in FINISHED:
            gang.alive[path] += 1
        elif item.value.phase == "Succeeded":
            gang.succeeded[path] += 1
    return found


def priorities(objects: Objects) -> tuple[dict[str, int], int | None]:
    """Return the priority of each class, and that of pods that name none, where the cluster says it."""
    values, default = dict(CRITICAL), None
    for item in objects.of("scheduling.k8s.io", "PriorityClass", PriorityClass):
        values[item.value.metadata.name] = item.value.value
        if item.value.global_default:
            default = item.value.value
    return values, default


def wrong(item: Item[Any], what: str, remedy: str, path: str = "") -> InputError:
    """Return an error about an object, or a field of it."""
    return InputError.one(what, remedy, path=".".join(filter(None, (item.path, path))), source=item.file)


def by_name(items: Sequence[Item[N]], key: Callable[[Meta], str]) -> dict[str, Item[N]]:
    """Return objects by name; one that is there twice, alike, is one.

    Raises
    ------
    InputError
        If one has no proper name, or two of one name differ.
    """
    kept: dict[str, Item[N]] = {}
    for item in items:
        name = key(item.value.metadata)
        reason = wrong_name(item.value.metadata.name)
        if reason is not None:
            raise wrong(item, reason, "dump it again", "metadata.name")
        first = kept.setdefault(name, item)
        if first is not item and msgspec.to_builtins(first.value) != msgspec.to_builtins(item.value):
            raise wrong(item, f"{show(name)} is at {first.where} too, and differs", "keep one of them")
    return kept


def plain(text: str) -> str:
    """Return a text as the name of a group, in which there is no slash."""
    return text.replace("/", "-") or "default"


def least_of_each(
    least: int, counts: Mapping[str, int], stated: Mapping[str, int], ledger: Ledger, where: str
) -> tuple[dict[str, int], int | None]:
    """Return a least number for each group, and how many groups are needed (None: all).

    A gang needs `least` pods of all together, and of each group as many as `stated`, which counts only where these
    are not more than `least`, as in ``CheckTaskReady`` of ``pkg/scheduler/api/job_info.go`` of volcano-sh/volcano. A
    snapshot states least numbers group by group, so what is left is needed from the first groups: that is enough, and
    may be more than the source asks for.
    """
    stated = stated if sum(stated.values()) <= least else {}
    mins = {name: min(stated.get(name, 0), counts[name]) for name in counts}
    if not stated and len(mins) > 1 and least < len(mins):
        if least > 1:
            ledger.assumed(NO_GROUP, "as many groups as that, each with one pod", where)
        return dict.fromkeys(mins, 1), max(1, least)
    if any(not number for number in mins.values()):
        if stated and len(mins) > 1:
            ledger.assumed("a group of pods of which none is needed", "one is needed", where)
        mins = {name: max(1, number) for name, number in mins.items()}
    rest = least - sum(mins.values())
    if 0 < rest < sum(counts.values()) - sum(mins.values()) and len(mins) > 1:
        ledger.assumed(NO_GROUP, "the rest is needed from the first groups", where)
    for name, number in mins.items():
        more = max(0, min(rest, counts[name] - number))
        mins[name] += more
        rest -= more
    return mins, None


def group_of(
    name: str, count: int, least: int, alive: int, topology: Topology | None, ledger: Ledger, where: str
) -> GangGroup:
    """Return a group of like pods, of which some may not be there yet.

    Parameters
    ----------
    name : str
    count, least : int
        Wanted, and needed.
    alive : int
        Pods that are there.
    topology : Topology, optional
    ledger : Ledger
    where : str
    """
    least = max(1, least)
    count = max(count, least, 1)
    if count > alive > 0:
        ledger.assumed("pods of a gang that are not there yet", "they are like those that are", where)
    return GangGroup(name, count=count, min_count=None if least == count else least, topology=topology)
