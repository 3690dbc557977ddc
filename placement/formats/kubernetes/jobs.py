"""Pods to jobs: a lone pod is one, and so is a gang.

Of a gang that runs in part, what runs is one job and what does not is a second one, which needs what is missing to the
minimum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from placement.formats.kubernetes.asks import Tasks
from placement.formats.kubernetes.entries import Entry, Kind, Members, group_of, kinds_of, paths_of, places_of
from placement.formats.kubernetes.gang_job import GangJob, Parts
from placement.formats.kubernetes.parts import Gang, GangGroup
from placement.formats.ledger import Ledger
from placement.snapshot import Job, Running, TaskGroup
from placement.snapshot.nothing import NOTHING


class Jobs:
    """Makes jobs, each with a name of its own.

    Parameters
    ----------
    ledger : Ledger
    lone : set of str
        Names of the pods that are in no gang.
    level : callable
        Name of a level of the snapshot by its name or node label; None where there is none.
    asked : callable
        Tasks of a pod by the template of a group.
    near : callable
        Given tasks, a level and nodes: the same tasks, kept to the domain that holds these nodes.
    """

    def __init__(
        self,
        ledger: Ledger,
        lone: set[str],
        level: Callable[[str], str | None],
        asked: Callable[[Gang, GangGroup], Tasks],
        near: Callable[[Tasks, str, set[str]], Tasks],
    ) -> None:
        self.ledger = ledger
        self.level = level
        self.asked = asked
        self.near = near
        self._names = lone
        self._alone: dict[int, tuple[TaskGroup, ...]] = {}

    # --- lone pods -----------------------------------------------------------------------------------------------

    def alone(self, entry: Entry, queue: str) -> Job:
        """Return the job of a pod that is in no gang."""
        groups = self._alone.get(id(entry.tasks))
        if groups is None:
            groups = self._alone[id(entry.tasks)] = (group_of("pod", entry.tasks, 1, None, None, alone=True),)
        paths = paths_of("pod", entry.tasks, alone=True)
        return Job(
            name=entry.name,
            queue=queue,
            priority=entry.priority,
            submit_time=entry.made,
            groups=groups,
            running=None if not entry.node else Running(tasks=places_of(entry, paths, 0), since=entry.since),
            task_names=dict.fromkeys(paths, (entry.name,)) if len(paths) > 1 else NOTHING,
            claims={entry.name: entry.claim} if entry.claim else NOTHING,
        )

    # --- gangs ---------------------------------------------------------------------------------------------------

    def together(self, key: str, members: Members) -> list[Job]:
        """Return the jobs of a gang: what runs of it, and what does not."""
        gang = members.gang or Gang(key, tuple(GangGroup(name) for name in members.groups))
        leaves = dict(_leaves(gang.groups))
        extra = tuple(GangGroup(name) for name in members.groups if name not in leaves)
        runs: dict[str, tuple[GangGroup, list[Kind]]] = {}
        waits: dict[str, tuple[GangGroup, list[Kind]]] = {}
        for name, group in [*leaves.items(), *((one.name, one) for one in extra)]:
            entries = sorted(members.groups.get(name, ()), key=lambda entry: entry.order)
            over = members.over.get(name, 0)
            running = [entry for entry in entries if entry.node]
            least = group.min_count
            wanted = max((group.count or 0) - over, len(entries), 0 if least is None else least - over)
            kinds = kinds_of([entry for entry in entries if not entry.node])
            missing = wanted - len(entries)
            if missing and not self._add_missing(gang, group, kinds, entries, missing):
                continue
            if running:
                runs[name] = group, kinds_of(running)
            if kinds:
                left = None if least is None else max(1, least - over - len(running))
                waits[name] = replace(group, min_count=left), kinds
        jobs = []
        every = (*gang.groups, *extra)
        own = self._name(key)
        if runs:
            jobs.append(GangJob(self.ledger, self.level, gang, runs, True).made(own, every, members))
        if waits:
            if runs or gang.started:
                self.ledger.assumed(
                    "gangs that run in part" if runs else "gangs that were started and do not run yet",
                    "what is left of each is a job of its own, named with #pending",
                    gang.where,
                )
                self._near(gang, waits, runs)
                own = self._name(f"{key}#pending")
            gone = frozenset(runs.keys() - waits.keys())
            jobs.append(GangJob(self.ledger, self.level, gang, waits, False, gone).made(own, every, members))
        return jobs

    def _add_missing(self, gang: Gang, group: GangGroup, kinds: list[Kind], entries: list[Entry], missing: int) -> bool:
        """Add pods that do not exist yet; return False where nothing says what they ask for."""
        if kinds:
            kinds[0].missing = missing
        elif group.template is not None:
            kinds.append(Kind(self.asked(gang, group), [], missing))
        elif entries:
            kinds.append(Kind(self.asked(gang, replace(group, template=entries[0].item.value.spec)), [], missing))
        else:
            self.ledger.contradiction(
                "a group of a gang without pods and without a template", "it is left out", gang.where
            )
            return False
        self.ledger.assumed("pods of a gang that do not exist yet", "they ask for what the others do", gang.where)
        return True

    def _name(self, wanted: str) -> str:
        name, number = wanted, 1
        while name in self._names:
            number += 1
            name = f"{wanted}#{number}"
        self._names.add(name)
        return name

    def _near(self, gang: Gang, waits: Parts, runs: Parts) -> None:
        """Keep what is left of a gang to the domain that what runs of it is in, where all must be in one."""
        at = {name: {entry.node for kind in kinds for entry in kind.entries} for name, (_, kinds) in runs.items()}
        everywhere = set().union(*at.values())
        for name, (group, kinds) in waits.items():
            for topology, nodes in ((group.topology, at.get(name, set())), (gang.topology, everywhere)):
                level = self.level(topology.required) if topology is not None and topology.required else None
                if level and nodes:
                    for kind in kinds:
                        kind.tasks = self.near(kind.tasks, level, nodes)


def _leaves(groups: Sequence[GangGroup], above: str = "") -> Iterator[tuple[str, GangGroup]]:
    """Yield the groups that have pods, by full name."""
    for group in groups:
        if group.groups:
            yield from _leaves(group.groups, f"{above}{group.name}/")
        else:
            yield f"{above}{group.name}", group
