"""Priorities of pods, by number or by the name of a PriorityClass."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from placement.formats.kubernetes.objects import Meta, Objects
from placement.formats.kubernetes.pod import PodSpec
from placement.formats.ledger import Ledger
from placement.snapshot import Job
from placement.snapshot.fields import MOST_PRIORITY

SYSTEM = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""Classes that every cluster has."""


class _Class(msgspec.Struct, rename="camel", gc=False):
    metadata: Meta
    value: int = 0
    global_default: bool | None = None


class Priorities:
    """Looks up priorities.

    Parameters
    ----------
    objects : Objects
    ledger : Ledger
    """

    def __init__(self, objects: Objects, ledger: Ledger) -> None:
        self.ledger = ledger
        found = objects.of("scheduling.k8s.io", "PriorityClass", _Class)
        self.known = {**SYSTEM, **{item.value.metadata.name: item.value.value for item in found}}
        defaults = [item.value.value for item in found if item.value.global_default]
        self.default = min(defaults, default=0)
        if len(defaults) > 1:
            ledger.contradiction("several priority classes are the default", "the lowest of them")
        if found:
            ledger.read("priority classes", count=len(found))

    def of(self, spec: PodSpec, where: str) -> int:
        """Return the priority of a pod."""
        if spec.priority is not None:
            return spec.priority
        if not spec.priority_class_name:
            return self.default
        if spec.priority_class_name not in self.known:
            self.ledger.assumed("value of a priority class that is not in the files", "that of no class", where)
            return self.default
        return self.known[spec.priority_class_name]


def ranked(jobs: Sequence[Job], ledger: Ledger) -> tuple[Job, ...]:
    """Return jobs with ranks for priorities where some are beyond what a snapshot takes; their order stays."""
    if all(abs(job.priority) <= MOST_PRIORITY for job in jobs):
        return tuple(jobs)
    ledger.assumed("priorities beyond 2**31 - 1", "their ranks, from 0")
    rank = {priority: number for number, priority in enumerate(sorted({job.priority for job in jobs}))}
    return tuple(msgspec.structs.replace(job, priority=rank[job.priority]) for job in jobs)
