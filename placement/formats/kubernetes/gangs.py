"""Gangs of the core: PodGroup and Workload of scheduling.k8s.io, and jobs with indexed pods."""

from __future__ import annotations

from placement.formats.kubernetes.objects import Objects
from placement.formats.kubernetes.parts import Addition
from placement.formats.ledger import Ledger


def read(objects: Objects, ledger: Ledger) -> Addition:
    """Return what the gangs of the core say."""
    return Addition()
