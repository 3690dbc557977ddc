"""Twenty instances with little in common: shipped, generated, used and real ones, with many orders of objectives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec
from load import load
from vectors import vectors

import placement as pl
from placement.arrivals import draw
from placement.generate import generate
from placement.snapshot import DomainLimit, Snapshot
from placement.snapshot.read import dumps

Objectives = tuple[str, ...]
PLAIN: Objectives = ("value", "tasks")


@dataclass(frozen=True, slots=True)
class Case:
    """An instance, what is optimised on it, and the gap at which its search may end where no clock ends it."""

    name: str
    make: Callable[[], Snapshot]
    objectives: Objectives = PLAIN
    gap: float = 0.0

    def data(self) -> bytes:
        """Return the instance as a file has it; one that was read is not judged again, as one made in Python is."""
        return dumps(self.make())


def shipped(name: str) -> Snapshot:
    """Return an instance that comes with the package."""
    return pl.load(pl.instances.path(name))


def ranked(snapshot: Snapshot, priorities: int) -> Snapshot:
    """Return a snapshot whose pending jobs have so many priorities in turn."""
    jobs = (
        job if job.running is not None else msgspec.structs.replace(job, priority=number % priorities)
        for number, job in enumerate(snapshot.jobs)
    )
    return msgspec.structs.replace(snapshot, jobs=tuple(jobs))


def limited(snapshot: Snapshot, gpus: int) -> Snapshot:
    """Return a snapshot in which no more than so many cards may be in use in every other rack."""
    racks = list(dict.fromkeys(node.position["rack"] for node in snapshot.nodes))
    limits = tuple(DomainLimit(level="rack", domain=rack, gpus=gpus) for rack in racks[::2])
    return msgspec.structs.replace(snapshot, limits=limits)


CASES = {
    case.name: case
    for case in (
        Case("domain-limit", lambda: shipped("domain-limit")),
        Case("nested-groups", lambda: shipped("nested-groups"), ("tasks", "fragmentation")),
        Case("generated-8", lambda: generate(nodes=8, load=1.5, seed=1), ("value", "nodes")),
        Case("generated-16-goals", lambda: generate(nodes=16, seed=2), ("fragmentation", "value", "whole_nodes"), 0.01),
        Case("generated-64-ranked", lambda: ranked(generate(nodes=64, load=1.4, seed=3), 3), gap=0.01),
        Case("generated-128-nodes", lambda: generate(nodes=128, load=0.7, seed=4), ("value", "nodes"), 0.01),
        Case("generated-200-limited", lambda: limited(generate(nodes=200, load=1.3, seed=5), 50), gap=0.01),
        Case("generated-300-tasks", lambda: generate(nodes=300, load=1.4, seed=6), ("tasks", "value"), 0.01),
        Case("generated-500-gangs", lambda: generate(nodes=500, load=1.3, gangs=0.9, shares=0.1, seed=7), gap=0.01),
        Case("generated-1000-ranked", lambda: ranked(generate(nodes=1000, load=1.2, seed=8), 4), gap=0.01),
        Case("generated-2000", lambda: generate(nodes=2000, load=1.2, running=0.5, seed=9), gap=0.01),
        Case("openb", lambda: shipped("openb"), gap=0.001),
        Case("openb-gpuspec33", lambda: shipped("openb-gpuspec33"), gap=0.01),
        Case("openb-gpushare100", lambda: shipped("openb-gpushare100"), gap=0.01),
        Case("openb-arrivals", lambda: draw(shipped("openb"), 42, 1.0), ("value", "fragmentation"), 0.01),
        Case("used-200", lambda: load(200, 1).snapshot, gap=0.01),
        Case("used-1000-goals", lambda: load(1000, 2).snapshot, ("value", "tasks", "fragmentation"), 0.02),
        Case("used-4000", lambda: load(4000, 3).snapshot, ("value",), 0.02),
        Case("vectors-256-ranked", lambda: ranked(vectors(1, 256, 800)[0], 2), ("value", "whole_nodes"), 0.02),
        Case("vectors-1024", lambda: vectors(2)[0], ("value",), 0.02),
    )
}
"""By name."""


def chosen(names: str | None) -> list[Case]:
    """Return the cases of names separated by commas, or all of them."""
    if names is None:
        return list(CASES.values())
    unknown = [name for name in names.split(",") if name not in CASES]
    if unknown:
        raise SystemExit(f"unknown: {', '.join(unknown)}; there are {', '.join(CASES)}")
    return [CASES[name] for name in names.split(",")]
