"""Pod groups of KAI: which pods start together, how many at least, and how near to one another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from placement.formats.kai.levels import PREFERRED, REQUIRED, TOPOLOGY, Levels
from placement.formats.kai.records import Constraint, KaiPodGroup, SubGroup
from placement.formats.kubernetes.objects import Item, Meta
from placement.formats.kubernetes.parts import Gang, GangGroup
from placement.formats.kubernetes.peers import Found, group_of, plain, wrong
from placement.formats.ledger import Ledger
from placement.snapshot import Slice, Topology
from placement.snapshot.report import show

GROUP_NAME = "pod-group-name"
SUBGROUP = "kai.scheduler/subgroup-name"
DEFAULT = "default"
"""Subgroup of a pod group that lists none."""

CLASSES = {"train": 50, "build-preemptible": 75, "build": 100, "inference": 125}
"""Priority classes that KAI brings along (``docs/priority/README.md``)."""

DEFAULT_PRIORITY = 50
NEVER_STOPPED = 100
"""Jobs of this priority and above are not stopped, where they do not say it themselves."""

MOST = 1_000_000
MOST_DEPTH = 16


@dataclass(frozen=True, slots=True)
class Groups:
    """The pod groups that there are, by ``namespace/name``, and the paths of their subgroups."""

    items: Mapping[str, Item[KaiPodGroup]]
    paths: Mapping[str, Mapping[str, str]]

    def member(self, meta: Meta) -> tuple[str, str] | None:
        """Return the key of a pod's gang and the path of its group in it."""
        name = (meta.annotations or {}).get(GROUP_NAME)
        if not name:
            return None
        key = f"{meta.namespace or 'default'}/{name}"
        subgroup = (meta.labels or {}).get(SUBGROUP) or DEFAULT
        return key, self.paths.get(key, {}).get(subgroup, plain(subgroup))


def grouped(items: Mapping[str, Item[KaiPodGroup]]) -> Groups:
    """Return pod groups with the paths of their subgroups.

    Raises
    ------
    InputError
        If subgroups go round, or two of one name are there.
    """
    return Groups(items, {key: _paths(item) for key, item in items.items()})


def _paths(item: Item[KaiPodGroup]) -> dict[str, str]:
    subgroups: dict[str, SubGroup] = {}
    for index, one in enumerate(item.value.spec.sub_groups or ()):
        if one.name in subgroups or not one.name:
            what = f"the subgroup {show(one.name)} is listed twice" if one.name else "the subgroup has no name"
            raise wrong(item, what, "name each apart", f"spec.subGroups[{index}].name")
        subgroups[one.name] = one
    paths = {}
    for index, one in enumerate(subgroups.values()):
        way, at = [plain(one.name)], one
        while at.parent:
            if at.parent not in subgroups or len(way) > MOST_DEPTH:
                what = f"there is no subgroup {show(at.parent)}" if at.parent not in subgroups else "too deep, or round"
                raise wrong(item, what, "correct the parent", f"spec.subGroups[{index}].parent")
            at = subgroups[at.parent]
            way.append(plain(at.name))
        paths[one.name] = "/".join(reversed(way))
    return paths


class Reader:
    """Makes gangs.

    Parameters
    ----------
    groups : Groups
    found : mapping of str to Found
        Pods by gang.
    levels : Levels
    classes : (dict of str to int, int or None)
        Priorities.
    seconds : mapping of str to float
        Least run time by queue.
    ledger : Ledger
    """

    def __init__(
        self,
        groups: Groups,
        found: Mapping[str, Found],
        levels: Levels,
        classes: tuple[Mapping[str, int], int | None],
        seconds: Mapping[str, float],
        ledger: Ledger,
    ) -> None:
        self._groups = groups
        self._found = found
        self._levels = levels
        self._classes = {**CLASSES, **classes[0]}
        self._default = classes[1]
        self._seconds = seconds
        self._ledger = ledger

    def gangs(self) -> Iterator[Gang]:
        """Yield the gang of each pod group that has pods."""
        for key, item in self._groups.items.items():
            found = self._found.get(key)
            if found is None or not found.alive:
                self._ledger.ignored("pod groups without pods", "there is nothing to place", item.where)
                continue
            yield self._gang(key, item, found.alive)

    def _gang(self, key: str, item: Item[KaiPodGroup], alive: Counter[str]) -> Gang:
        spec, where = item.value.spec, item.where
        asked = _asked(item)
        topology = self._levels.rules(asked, self._ledger, where)
        part = self._levels.segments(item.value.metadata, asked, self._ledger, where)
        for number in (spec.min_member, spec.min_sub_group):
            self._refuse(item, number, "spec")
        min_groups = spec.min_sub_group
        if spec.sub_groups:
            groups = tuple(self._within("", item, alive))
            others = [path for path in alive if path not in self._groups.paths[key].values()]
            if others:
                self._ledger.contradiction("pods of a subgroup that is not listed", "none of them is needed", where)
                groups += tuple(self._leaf(path, alive[path], 1, alive[path], None, where) for path in others)
                min_groups = len(groups) - len(others) if min_groups is None else min_groups
        else:
            groups = tuple(self._flat(spec.min_member or 1, alive, where))
        if min_groups is not None and min_groups > len(groups):
            self._ledger.contradiction("more subgroups needed than there are", "all that there are", where)
        if min_groups is not None and min_groups >= len(groups):
            min_groups = None
        if part is not None:
            groups, topology = self._sliced(groups, topology, part, where)
        if len(groups) == 1 and topology is not None and groups[0].topology is None:
            groups, topology = (replace(groups[0], topology=topology),), None
        priority = self._priority(spec.priority_class_name, where)
        queue = spec.queue or (item.value.metadata.labels or {}).get("kai.scheduler/queue", "")
        return Gang(
            key=key,
            groups=groups,
            queue=queue,
            priority=priority,
            topology=topology,
            preemptible=self._preemptible(spec.preemptibility, priority, where),
            minimum_run_seconds=self._seconds.get(queue, 0.0),
            where=where,
            min_groups=min_groups,
        )

    def _flat(self, least: int, alive: Counter[str], where: str) -> Iterator[GangGroup]:
        """Yield the groups of a pod group that lists no subgroups."""
        total = sum(alive.values())
        if len(alive) == 1:
            yield self._leaf(next(iter(alive)), total, least, total, None, where)
            return
        self._ledger.contradiction("pods of a subgroup that is not listed", "all of them are needed", where)
        for path, number in alive.items():
            yield self._leaf(plain(path), number, number, number, None, where)

    def _within(self, parent: str, item: Item[KaiPodGroup], alive: Counter[str]) -> Iterator[GangGroup]:
        """Yield the subgroups of a subgroup, or those at the top."""
        paths = self._groups.paths[item.value.metadata.key]
        listed = item.value.spec.sub_groups or []
        for index, one in enumerate(listed):
            if (one.parent or "") != parent:
                continue
            at = f"spec.subGroups[{index}]"
            self._refuse(item, one.min_member, f"{at}.minMember")
            self._refuse(item, one.min_sub_group, f"{at}.minSubGroup")
            rules = self._levels.rules(one.topology_constraint, self._ledger, item.where)
            inner = tuple(self._within(one.name, item, alive))
            if inner:
                least = one.min_sub_group
                if least is not None and least > len(inner):
                    self._ledger.contradiction("more subgroups needed than there are", "all", item.where)
                least = None if least is None or least >= len(inner) else least
                yield GangGroup(plain(one.name), topology=rules, groups=inner, min_groups=least)
            else:
                number = alive[paths[one.name]]
                yield self._leaf(plain(one.name), number, one.min_member or 1, number, rules, item.where)

    def _leaf(self, name: str, count: int, least: int, alive: int, topology: Topology | None, where: str) -> GangGroup:
        return group_of(name, count, least, alive, topology, self._ledger, where)

    def _sliced(
        self, groups: tuple[GangGroup, ...], topology: Topology | None, part: Slice, where: str
    ) -> tuple[tuple[GangGroup, ...], Topology | None]:
        """Return groups of which each is cut into segments."""
        found = []
        for group in groups:
            size = part.sizes[0]
            if group.groups or group.topology is not None or (group.count or 0) % size:
                self._ledger.unsupported("segments that do not divide a group", "they are left out", where)
                found.append(group)
                continue
            rules = topology if topology is not None and len(groups) == 1 else Topology()
            found.append(replace(group, topology=_with_slice(rules, part)))
        return tuple(found), None if len(groups) == 1 else topology

    def _refuse(self, item: Item[KaiPodGroup], number: int | None, path: str) -> None:
        if number is not None and not 0 <= number <= MOST:
            raise wrong(item, f"{number} are needed", f"give 1 to {MOST:,}", path)

    def _priority(self, name: str | None, where: str) -> int:
        default = DEFAULT_PRIORITY if self._default is None else self._default
        if not name:
            self._ledger.assumed("the priority of a pod group without a class", str(default), where)
            return default
        if name not in self._classes:
            self._ledger.assumed("the value of a priority class that is not there", str(default), where)
        return self._classes.get(name, default)

    def _preemptible(self, text: str | None, priority: int, where: str) -> bool:
        if text in ("preemptible", "non-preemptible"):
            return text == "preemptible"
        if text:
            self._ledger.assumed("an unknown preemptibility", "by the priority", where)
        return priority < NEVER_STOPPED


def _with_slice(topology: Topology, part: Slice) -> Topology:
    return Topology(required=topology.required, preferred=topology.preferred, slices=(part,))


def _asked(item: Item[KaiPodGroup]) -> Constraint | None:
    """Return the constraint of a pod group, or what its annotations say."""
    asked = item.value.spec.topology_constraint
    if asked is not None and (asked.required_topology_level or asked.preferred_topology_level):
        return asked
    notes = item.value.metadata.annotations or {}
    if not (notes.get(REQUIRED) or notes.get(PREFERRED)):
        return asked
    return Constraint(notes.get(TOPOLOGY, ""), notes.get(REQUIRED, ""), notes.get(PREFERRED, ""))


def note_beyond(gangs: Sequence[Gang], quotas: Mapping[str, bool], ledger: Ledger) -> None:
    """Note jobs that are never stopped, in queues with a quota: KAI never lets them go beyond it."""
    for gang in gangs:
        if not gang.preemptible and quotas.get(gang.queue):
            what = "a job that is never stopped, in a queue with a quota"
            ledger.unsupported(what, "beyond the quota it is started all the same, up to the limit", gang.where)
