"""One job of a gang: its groups, nested as the gang says, and the tasks that run of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from placement.formats.kubernetes.entries import Kind, Members, free_name, group_of, paths_of, places_of
from placement.formats.kubernetes.parts import Gang, GangGroup
from placement.formats.ledger import Ledger
from placement.snapshot import Job, Running, RunningTask, Spread, TaskGroup, Topology
from placement.snapshot.nothing import NOTHING

Parts = Mapping[str, tuple[GangGroup, list[Kind]]]
"""Pods of the groups that have some, by the full name of the group."""


class GangJob:
    """Makes the job of some pods of a gang.

    Parameters
    ----------
    ledger : Ledger
    level : callable
        Name of a level of the snapshot by its name or node label; None where there is none.
    gang : Gang
    parts : mapping of str to (GangGroup, list of Kind)
    running : bool
    elsewhere : frozenset of str
        Full names of groups that are in another job of the gang altogether.
    """

    def __init__(
        self,
        ledger: Ledger,
        level: Callable[[str], str | None],
        gang: Gang,
        parts: Parts,
        running: bool,
        elsewhere: frozenset[str] = frozenset(),
    ) -> None:
        self.ledger = ledger
        self.level = level
        self.gang = gang
        self.parts = parts
        self.running = running
        self.elsewhere = elsewhere
        self.names: dict[str, tuple[str, ...]] = {}
        self.places: list[RunningTask] = []

    def made(self, name: str, groups: Sequence[GangGroup], members: Members) -> Job:
        """Return the job, given all groups of the gang."""
        gang = self.gang
        kinds = [kind for _, some in self.parts.values() for kind in some]
        entries = [entry for kind in kinds for entry in kind.entries]
        whole = None
        if gang.topology is not None:
            whole = self._topology(gang.topology, sum(kind.count for kind in kinds))
        wrapped = whole is not None or (gang.min_groups is not None and len(self.parts) > 1)
        made = self._groups(groups, "", "gang/" if wrapped else "", gang.min_groups is not None)
        if wrapped:
            least = self._least(gang.min_groups, groups, "", len(made))
            made = [TaskGroup(name="gang", groups=tuple(made), min_groups=least, topology=whole)]
        titles = {group.name for group in made}
        created = [entry.made for entry in entries if entry.made is not None]
        since = [entry.since for entry in entries if entry.since is not None]
        highest = max((entry.priority for entry in entries), default=0)
        return Job(
            name=name,
            queue=gang.queue or members.queue,
            priority=highest if gang.priority is None else gang.priority,
            submit_time=gang.submit_time if gang.submit_time is not None else min(created, default=None),
            preemptible=gang.preemptible,
            minimum_run_seconds=gang.minimum_run_seconds,
            groups=tuple(made),
            affinity=tuple(one for one in gang.affinity if {one.a, one.b} <= titles),
            running=Running(tasks=tuple(self.places), since=min(since, default=None)) if self.running else None,
            task_names=self.names or NOTHING,
            claims={entry.name: entry.claim for entry in entries if entry.claim} or NOTHING,
        )

    # --- groups --------------------------------------------------------------------------------------------------

    def _groups(self, groups: Sequence[GangGroup], above: str, path: str, counted: bool) -> list[TaskGroup]:
        """Return the groups of one parent that have pods.

        Parameters
        ----------
        groups : sequence of GangGroup
        above, path : str
            What the full names of groups, and the paths of task groups begin with.
        counted : bool
            Whether the parent needs only some of them, so that each has to stay one.
        """
        taken: set[str] = set()
        made: list[TaskGroup] = []
        for group in groups:
            full = f"{above}{group.name}"
            if group.groups:
                title = free_name(group.name.replace("/", "-") or "pods", taken)
                inner = self._groups(group.groups, f"{full}/", f"{path}{title}/", group.min_groups is not None)
                if inner:
                    least = self._least(group.min_groups, group.groups, f"{full}/", len(inner))
                    topology = self._topology(group.topology, self._count(group.groups, f"{full}/"))
                    made.append(TaskGroup(name=title, groups=tuple(inner), min_groups=least, topology=topology))
                else:
                    taken.discard(title)
            elif full in self.parts:
                made += self._of_pods(group, full, path, counted, taken)
        return made

    def _of_pods(self, group: GangGroup, full: str, path: str, counted: bool, taken: set[str]) -> list[TaskGroup]:
        """Return a group of pods; several where they ask for different things."""
        said, kinds = self.parts[full]
        topology = self._of_group(group, kinds)
        title = free_name(group.name.replace("/", "-") or "pods", taken)
        nested = len(kinds) > 1 and (topology is not None or counted)
        minima = self._minima(said.min_count, [kind.count for kind in kinds])
        made: list[TaskGroup] = []
        for number, (kind, least) in enumerate(zip(kinds, minima, strict=True)):
            own = title if number == 0 else f"{title}-{number + 1}"
            if number and not nested:
                own = free_name(own, taken)
            paths = paths_of(f"{path}{title}/{own}" if nested else f"{path}{own}", kind.tasks)
            made.append(group_of(own, kind.tasks, kind.count, least, None if nested else topology))
            # a job of one task that says no names at all would be the pod of its own name
            if kind.entries or kind.count == 1:
                self.names.update(dict.fromkeys(paths, tuple(entry.name for entry in kind.entries)))
            for index, entry in enumerate(kind.entries if self.running else ()):
                self.places += places_of(entry, paths, index)
        return [TaskGroup(name=title, groups=tuple(made), topology=topology)] if nested else made

    def _least(self, least: int | None, groups: Sequence[GangGroup], above: str, there: int) -> int | None:
        """Return how many of the groups that are there are needed; those in another job count as running."""
        if least is None:
            return None
        gone = sum(f"{above}{group.name}" in self.elsewhere for group in groups)
        needed = max(1, least - gone)
        return None if needed >= there else needed

    def _count(self, groups: Sequence[GangGroup], above: str) -> int:
        return sum(
            self._count(group.groups, f"{above}{group.name}/")
            if group.groups
            else sum(kind.count for kind in self.parts.get(f"{above}{group.name}", (group, []))[1])
            for group in groups
        )

    def _minima(self, least: int | None, counts: list[int]) -> list[int | None]:
        """Return the minimum of each kind of pods in a group; None where all are needed."""
        total = sum(counts)
        if least is None or least >= total:
            return [None] * len(counts)
        if len(counts) == 1:
            return [least]
        self.ledger.assumed(
            "minimum of a group whose pods ask for different things",
            "at least one of each kind, the first ones first",
            self.gang.where,
        )
        left = max(0, least - len(counts))
        minima: list[int | None] = []
        for count in counts:
            more = min(count - 1, left)
            left -= more
            minima.append(1 + more)
        return minima

    # --- topology ------------------------------------------------------------------------------------------------

    def _of_group(self, group: GangGroup, kinds: list[Kind]) -> Topology | None:
        """Return the topology of a group, and what its pods say of one another."""
        topology = group.topology or Topology()
        entries = [entry for kind in kinds for entry in kind.entries]
        apart = {entry.spread for entry in entries}
        if len(apart) == 1 and (label := next(iter(apart))):
            topology = msgspec.structs.replace(
                topology, spread=(*topology.spread, Spread(level=label, max_per_domain=1))
            )
        near = {entry.together for entry in entries}
        if len(near) == 1 and (label := next(iter(near))) and not topology.required:
            topology = msgspec.structs.replace(topology, required=label)
        return self._topology(topology, sum(kind.count for kind in kinds))

    def _topology(self, given: Topology | None, count: int) -> Topology | None:
        """Return a topology at levels that the snapshot has, for so many tasks; None where nothing is left of it."""
        if given is None:
            return None

        def at(name: str) -> str:
            found = self.level(name) if name else ""
            if found is None:
                self.ledger.unsupported(
                    "level of a gang's topology", "no node is known to be in a domain of it", self.gang.where
                )
            return found or ""

        slices = []
        for one in given.slices:
            level = at(one.level)
            if level and (sum(one.sizes) == count or (len(one.sizes) == 1 and count % one.sizes[0] == 0)):
                slices.append(msgspec.structs.replace(one, level=level))
            elif level:
                self.ledger.assumed("slices of a gang that its pods do not divide into", "no slices", self.gang.where)
        spread = []
        for limit in given.spread:
            if level := at(limit.level):
                fewest = None if limit.min_domains is None else min(limit.min_domains, count)
                spread.append(msgspec.structs.replace(limit, level=level, min_domains=fewest))
        found = Topology(
            required=at(given.required),
            preferred=at(given.preferred),
            slices=tuple(slices),
            balanced=at(given.balanced),
            spread=tuple(spread),
        )
        return None if found == Topology() else found
