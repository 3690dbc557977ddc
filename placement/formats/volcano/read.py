"""Volcano's objects."""

from __future__ import annotations

from placement.errors import InputError
from placement.formats.kubernetes.objects import Meta, Objects
from placement.formats.kubernetes.parts import Addition
from placement.formats.kubernetes.peers import by_name, members, priorities
from placement.formats.kubernetes.pod import Pod
from placement.formats.kubernetes.quotas import queued
from placement.formats.ledger import Ledger
from placement.formats.volcano import queues
from placement.formats.volcano.gangs import DEFAULT_QUEUE, Reader
from placement.formats.volcano.hypernodes import tree
from placement.formats.volcano.membership import QUEUE, Groups, said
from placement.formats.volcano.records import BATCH, SCHEDULING, HyperNode, PodGroup, VolcanoJob

SCHEDULING_QUEUE = f"{SCHEDULING}/queue-name"
"""Annotation of a pod without a pod group that names its queue."""


def read(objects: Objects, ledger: Ledger) -> Addition:
    """Return the levels, queues and gangs that objects of Volcano say.

    Raises
    ------
    InputError
        If hyper nodes or queues contradict one another.
    """
    if objects.has("", "HyperNode"):
        item = objects.of("", "HyperNode", HyperNode)[0]
        what = "a HyperNode has no `apiVersion`"
        raise InputError.one(what, "write topology.volcano.sh/v1alpha1", path=item.path, source=item.file)
    network = tree(objects, ledger)
    groups = Groups(
        by_name(objects.of(SCHEDULING, "PodGroup", PodGroup), _key),
        by_name(objects.of(BATCH, "Job", VolcanoJob), _key),
    )
    found_queues = queues.read(objects, ledger)
    if not groups.pod_groups and not groups.jobs and not network.levels and not found_queues:
        return Addition()
    names = frozenset(queue.name for queue in found_queues)
    found = members(objects, groups.member)
    has_default = DEFAULT_QUEUE in names
    gangs = tuple(Reader(groups, found, network, priorities(objects), ledger, has_default).gangs())
    if gangs:
        ledger.read("pod groups of Volcano", count=len(gangs))
    return Addition(
        tiers=tuple(network.levels.values()),
        positions=network.positions,
        queues=found_queues,
        gangs=queued(gangs, found_queues, ledger),
        member=lambda pod: groups.member(pod.metadata),
        queue_of=lambda pod: _queue_of(pod, names),
    )


def _key(meta: Meta) -> str:
    return meta.key


def _queue_of(pod: Pod, known: frozenset[str]) -> str | None:
    name = said(pod.metadata, SCHEDULING_QUEUE) or said(pod.metadata, QUEUE)
    return name if name in known else None
