"""The formats in which a plan, or the cluster itself, can be written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from placement.errors import UsageError
from placement.formats import mig_parted, table
from placement.formats.dra import write as dra
from placement.formats.kai import write as kai
from placement.formats.kubernetes import bindings, dump
from placement.formats.kueue import write as kueue
from placement.formats.slurm import write as slurm
from placement.formats.tasks import unnamed
from placement.formats.volcano import write as volcano
from placement.plan import Plan
from placement.snapshot import Snapshot
from placement.snapshot.report import suggestion


@dataclass(frozen=True, slots=True)
class PlanWriter:
    """Writes what a scheduler applies to start what a plan places.

    Attributes
    ----------
    write : callable
        Takes a verified snapshot and its checked plan; returns the document.
    help : str
        One line.
    notes : callable, optional
        Takes the same; returns what the document does not say of the plan, a line each.
    """

    write: Callable[[Snapshot, Plan], bytes]
    help: str
    notes: Callable[[Snapshot, Plan], Sequence[str]] | None = None


@dataclass(frozen=True, slots=True)
class SnapshotWriter:
    """Writes a snapshot itself.

    Attributes
    ----------
    write : callable
        Takes a verified snapshot; returns the document.
    help : str
        One line.
    notes : callable, optional
        Takes the same; returns what the document does not say of the snapshot, a line each.
    """

    write: Callable[[Snapshot], bytes]
    help: str
    notes: Callable[[Snapshot], Sequence[str]] | None = None


WRITERS: Mapping[str, PlanWriter | SnapshotWriter] = {
    "kubernetes": PlanWriter(bindings.write, "Bindings of pods to nodes", unnamed),
    "kubernetes-patches": PlanWriter(
        bindings.write_patches, "patches of gated pods, for the scheduler to bind them", unnamed
    ),
    "kubernetes-objects": SnapshotWriter(dump.write, "the snapshot as nodes and pods", dump.lost),
    "kueue": PlanWriter(kueue.write, "admissions of Workloads, topology assignments in slices", kueue.notes),
    "kueue-v1beta1": PlanWriter(
        kueue.write_v1beta1, "the same with a list of domains, as older versions have it", kueue.notes
    ),
    "volcano": PlanWriter(volcano.write, "nominations of nodes, as patches of pods' status", unnamed),
    "kai": PlanWriter(kai.write, "BindRequests", unnamed),
    "dra": PlanWriter(dra.write, "ResourceClaims with their allocation", dra.notes),
    "slurm": PlanWriter(slurm.write, "a shell script of scontrol commands"),
    "slurm-sbatch": PlanWriter(slurm.write_sbatch, "options of sbatch, a line for each job"),
    "mig-parted": PlanWriter(mig_parted.write, "MIG layouts, a configuration for each sort of node"),
    "csv": PlanWriter(table.write, "a row for each task"),
}
"""By the name of the format."""


def writer_of(name: str, has_plan: bool) -> PlanWriter | SnapshotWriter:
    """Return what writes a format.

    Raises
    ------
    UsageError
        If there is no such format, or a plan is given where none is written, or none where one is.
    """
    writer = WRITERS.get(name)
    if writer is None:
        raise UsageError.one(f"there is no format {name}", suggestion(name, list(WRITERS)), path="format")
    if isinstance(writer, PlanWriter) and not has_plan:
        raise UsageError.one(f"{name} writes what a plan starts", "name a plan behind the snapshot", path="plan")
    if isinstance(writer, SnapshotWriter) and has_plan:
        raise UsageError.one(f"{name} writes the snapshot alone", "leave the plan out", path="plan")
    return writer
