"""Nodes of Kubernetes for tests: objects as the API writes them, read to a cluster that can be."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from placement.formats.kubernetes import nodes
from placement.formats.kubernetes.objects import Objects
from placement.formats.kubernetes.parts import Addition, Cluster, Devices, Offer, Zones
from placement.formats.ledger import Ledger
from placement.formats.options import Options
from placement.formats.source import File
from placement.snapshot import LedgerEntry, Node, Snapshot
from placement.snapshot.read import verified

A100 = "NVIDIA-A100-SXM4-80GB"
"""Seven instances 1g.10gb on one card; 3g.40gb starts at slots 0 and 4."""


def item(
    name: str = "n1", labels: Mapping[str, str] | None = None, devices: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return a node of 64 cores; devices by name, as allocatable or as (allocatable, capacity)."""
    amounts: dict[str, dict[str, Any]] = {
        field: {"cpu": "64", "memory": "256Gi", "pods": "110"} for field in ("allocatable", "capacity")
    }
    for key, value in (devices or {}).items():
        pair = value if isinstance(value, tuple) else (value, value)
        for field, number in zip(("allocatable", "capacity"), pair, strict=True):
            amounts[field][key] = number
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": {},
        "status": {**amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def read(
    *items: dict[str, Any],
    devices: Devices | None = None,
    zones: Mapping[str, Zones] | None = None,
    additions: tuple[Addition, ...] = (),
    levels: tuple[tuple[str, str], ...] = (),
) -> tuple[Cluster, tuple[LedgerEntry, ...]]:
    """Return the cluster and the ledger; the snapshot must be one that can be."""
    ledger = Ledger()
    file = File("nodes.json", json.dumps({"apiVersion": "v1", "kind": "List", "items": items}).encode())
    cluster = nodes.read(Objects([file]), devices or Devices(), zones or {}, additions, Options(levels=levels), ledger)
    verified(Snapshot(topology=cluster.levels, nodes=cluster.nodes))
    return cluster, ledger.entries()


def one(*items: dict[str, Any], **more: Any) -> tuple[Node, Mapping[str, Offer], list[str]]:
    """Return the only node, its offers, and what was assumed, ignored or contradicted."""
    cluster, entries = read(*items, **more)
    (node,) = cluster.nodes
    return node, cluster.offers[node.name], [f"{entry.kind}: {entry.what}" for entry in entries if entry.kind != "read"]


def kinds(node: Node) -> list[tuple[str, int, str, int | None]]:
    """Return model, count, sharing and replicas of the cards of a node."""
    return [(gpu.model, gpu.count, gpu.sharing, gpu.replicas) for gpu in node.gpus]
