"""The formats in which a plan, or the cluster itself, can be written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from placement.formats.kueue import write as kueue
from placement.plan import Plan
from placement.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class PlanWriter:
    """Writes what a scheduler applies to start what a plan places.

    Attributes
    ----------
    write : callable
        Takes a verified snapshot and its checked plan; returns the document.
    help : str
        One line.
    """

    write: Callable[[Snapshot, Plan], bytes]
    help: str


@dataclass(frozen=True, slots=True)
class SnapshotWriter:
    """Writes a snapshot itself.

    Attributes
    ----------
    write : callable
        Takes a verified snapshot; returns the document.
    help : str
        One line.
    """

    write: Callable[[Snapshot], bytes]
    help: str


WRITERS: Mapping[str, PlanWriter | SnapshotWriter] = {
    "kueue": PlanWriter(kueue.write, "admissions of Kueue's Workloads, v1beta2"),
    "kueue-v1beta1": PlanWriter(kueue.write_v1beta1, "admissions of Kueue's Workloads, v1beta1"),
}
"""By the name of the format."""
