"""A greedy rule on the nodes as they are, kept from one decision to the next.

The instance behind it is that of a cluster on which nothing runs and one job of each kind waits; what runs is held in
it. Kinds tell jobs apart by how they may be placed, so that a job like one seen before costs nothing to compile.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import islice

import msgspec
import numpy as np

from placement.compile import MANY
from placement.compile import compile as compile_snapshot
from placement.compile.work import encode
from placement.gang import least_of
from placement.heuristics.allowance import Allowance
from placement.heuristics.fastest_fit import FastestFit
from placement.heuristics.filling import Filling
from placement.naming import node_names
from placement.quota import Cards, Short
from placement.scheduling.clock import Clock
from placement.scheduling.compile import Spots
from placement.session.cluster import Cluster
from placement.session.demand import Demands
from placement.session.extend import Extender
from placement.snapshot import Job, RunningTask

MOST_KINDS = 512
"""Kinds of jobs that are remembered though no such job is there."""
LONG = 1000.0
"""Seconds that a job of each kind is taken to run."""


def kind_of(job: Job) -> Job:
    """Return a job that is placed like another, and says nothing else."""
    duration = job.duration
    return Job(
        name="kind",
        groups=job.groups,
        tenant=job.tenant,
        requires=job.requires,
        affinity=job.affinity,
        duration=None if duration is None else msgspec.structs.replace(duration, seconds=LONG),
    )


class Live:
    """The nodes of a session while jobs come and go.

    Parameters
    ----------
    cluster : Cluster
    kinds : iterable of Job
        Jobs of kinds that are known from the start, the one asked for last last.
    """

    def __init__(self, cluster: Cluster, kinds: Iterable[Job] = ()) -> None:
        self._cluster = cluster
        self._kinds: dict[bytes, Job] = {}
        """Those of the instance, the one asked for last last."""
        self._number: dict[bytes, int] = {}
        self._key: dict[str, bytes] = {}
        """What kind each job is that runs."""
        self._build(list(kinds))

    @property
    def kinds(self) -> list[Job]:
        """A job of each kind that is known, the one asked for last last."""
        return list(self._kinds.values())

    def _build(self, more: Sequence[Job]) -> None:
        """Compile the cluster with the kinds of what runs, what was asked for lately, and some more jobs."""
        running = self._cluster.running
        old = max(0, len(self._kinds) - MOST_KINDS)
        self._kinds = dict(islice(self._kinds.items(), old, None))
        for job in (*running.values(), *more):
            if job.name not in self._key or self._key[job.name] not in self._kinds:
                kind = kind_of(job)
                self._kinds.setdefault(encode(kind), kind)
        jobs = [msgspec.structs.replace(job, name=f"kind{number}") for number, job in enumerate(self._kinds.values())]
        self._number = {key: number for number, key in enumerate(self._kinds)}
        empty = self._cluster.whole(0.0, jobs)
        nodes = tuple(msgspec.structs.replace(node, cordoned=False) if node.cordoned else node for node in empty.nodes)
        self._instance = compile_snapshot(msgspec.structs.replace(empty, nodes=nodes), MANY)
        self._extender = Extender(self._instance)
        self._node = {name: node for node, name in enumerate(self._cluster.nodes)}
        self._names = node_names(self._instance, np.arange(self._instance.hosts))
        self._spots = Spots(self._instance, self._node)
        self._clock = Clock(self._instance)
        self._filling = Filling(self._instance, FastestFit, math.inf, 0)
        self._demands = Demands(self._instance, self._filling)
        for job in running.values():
            self._hold(job)
        self._filling.shut(self._node[name] for name, node in self._cluster.nodes.items() if node.cordoned)

    def _add(self, key: bytes, job: Job) -> bool:
        """Add one more kind to what is there; return whether that can be done."""
        if len(self._kinds) >= 2 * MOST_KINDS:
            return False
        kind = kind_of(job)
        named = msgspec.structs.replace(kind, name=f"kind{len(self._number)}")
        instance = self._extender.add(self._instance, named)
        if instance is None:
            return False
        self._kinds[key] = kind
        self._number[key] = len(self._number)
        self._instance = instance
        self._demands.extend(instance)
        self._spots = Spots(instance, self._node)
        self._clock = Clock(instance)
        filling = Filling(instance, FastestFit, math.inf, 0)
        filling.resume_from(self._filling)
        self._filling = filling
        return True

    def _kind(self, job: Job) -> int:
        key = encode(kind_of(job))
        if key not in self._number and not self._add(key, job):
            self._build([job])
        self._kinds[key] = self._kinds.pop(key)
        return self._number[key]

    def _class(self, kind: int) -> int:
        return int(self._instance.job_class[kind])

    # --- what runs -----------------------------------------------------------------------------------------------

    def hold(self, job: Job) -> None:
        """Take what a job that runs takes; it is in the cluster already."""
        key = encode(kind_of(job))
        if key in self._number:
            self._hold(job, key)
        else:
            self._build([])

    def _hold(self, job: Job, key: bytes | None = None) -> None:
        assert job.running is not None
        key = self._key.get(job.name) or key or encode(kind_of(job))
        self._key[job.name] = key
        kind = self._number[key]
        self._filling.hold(self._class(kind), self._spots.of(kind, job.running.tasks))

    def release(self, job: Job) -> None:
        """Give back what a job took."""
        assert job.running is not None
        kind = self._number[self._key.pop(job.name)]
        self._filling.release(self._class(kind), self._spots.of(kind, job.running.tasks))

    def shut(self, node: str) -> None:
        """Place nothing more on a node."""
        self._filling.shut([self._node[node]])

    def reopen(self, node: str) -> None:
        """Place work on a node again."""
        self._filling.reopen([self._node[node]])

    # --- what could run ------------------------------------------------------------------------------------------

    def short(self, job: Job, room: Mapping[str, Cards]) -> Short | None:
        """Return by how much a job needs more, wherever it is placed, than its queue may use of its quota.

        Parameters
        ----------
        job : Job
        room : mapping of str to int or Fraction
            What the queue may use, see `placement.session.queue_use.QueueUse.room`.
        """
        number = self._class(self._kind(job))
        takes, where = self._demands.of(number)
        least = partial(least_of, self._instance.job_classes[number].root)
        return self._cluster.queue_use.short(job.queue, takes, where, least, room)

    def place(self, job: Job, room: Mapping[str, Cards] | None = None) -> tuple[RunningTask, ...]:
        """Return where the tasks of a job would go now, with no more cards than there is `room`; nothing is taken."""
        kind = self._kind(job)
        number = self._class(kind)
        if room:
            allowance = Allowance(room, self._demands.by_shape(number), self._demands.models, self._demands.model)
            tasks = self._filling.serve_within(number, allowance)
        else:
            tasks = self._filling.serve(number, [])
        self._filling.release(number, tasks)
        leaves = self._instance.job_classes[number].leaves
        return tuple(self._named(leaves[leaf].path, index, node, cards) for leaf, index, (node, cards) in tasks)

    def stretched(self, job: Job) -> float:
        """Return how many times its stated seconds a job that runs takes where it is."""
        assert job.running is not None
        kind = self._number[self._key[job.name]]
        return self._clock.run(kind, self._spots.of(kind, job.running.tasks)) / (1000 * LONG)

    def _named(self, group: str, index: int, node: int, positions: Iterable[int]) -> RunningTask:
        instance = self._instance
        host = int(instance.host[node]) if len(instance.host) else node
        order = instance.node_cards.get(node)
        cards = [one for one in positions if one < instance.widest]
        zones = [one - instance.widest for one in positions if instance.widest <= one < instance.slot_base]
        starts = [one - instance.slot_base for one in positions if one >= instance.slot_base]
        listed = instance.snapshot.nodes[instance.node_spec[host]].zones
        zone_order = instance.node_zones.get(node, tuple(range(len(listed))))
        return RunningTask(
            group=group,
            index=index,
            node=self._names[host],
            gpus=tuple(sorted(cards if order is None else (order[card] for card in cards))),
            zone=listed[zone_order[zones[0]]].id if len(zones) == 1 else None,
            mig_starts=tuple(starts),
        )
