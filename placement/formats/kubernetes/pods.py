"""Pods and gangs: the jobs of the snapshot, running and pending."""

from __future__ import annotations

from collections.abc import Sequence

from placement.formats.kubernetes.objects import Objects
from placement.formats.kubernetes.parts import Addition, Cluster, Devices
from placement.formats.ledger import Ledger
from placement.snapshot import Job, Node


def read(
    objects: Objects, cluster: Cluster, devices: Devices, additions: Sequence[Addition], ledger: Ledger
) -> tuple[tuple[Node, ...], tuple[Job, ...]]:
    """Return the nodes, with what jobs select them by, and the jobs."""
    return cluster.nodes, ()
