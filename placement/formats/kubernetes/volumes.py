"""Volumes that only some nodes can reach.

A volume says by a node affinity where it can be; which volume a claim has, the claim says. Where the files have
neither, or a claim has no volume yet, it is noted.

The rules: https://kubernetes.io/docs/concepts/storage/persistent-volumes/#node-affinity
"""

from __future__ import annotations

from typing import Any

import msgspec

from placement.formats.kubernetes.labels import Labels
from placement.formats.kubernetes.objects import Item, Meta, Objects
from placement.formats.kubernetes.pod import Pod
from placement.formats.kubernetes.selection import admitted
from placement.formats.ledger import Ledger


class _ClaimSpec(msgspec.Struct, rename="camel", gc=False):
    volume_name: str | None = None


class _Claim(msgspec.Struct, gc=False):
    metadata: Meta = msgspec.field(default_factory=Meta)
    spec: _ClaimSpec | None = None


class _VolumeSpec(msgspec.Struct, rename="camel", gc=False):
    node_affinity: dict[str, Any] | None = None


class _Volume(msgspec.Struct, gc=False):
    metadata: Meta = msgspec.field(default_factory=Meta)
    spec: _VolumeSpec | None = None


class Volumes:
    """Knows which volumes claims have, and which nodes reach them.

    Parameters
    ----------
    objects : Objects
    labels : Labels
    ledger : Ledger
    """

    def __init__(self, objects: Objects, labels: Labels, ledger: Ledger) -> None:
        self.labels = labels
        self.ledger = ledger
        self._claims = {item.value.metadata.key: item.value for item in objects.of("", "PersistentVolumeClaim", _Claim)}
        self._volumes = {item.value.metadata.name: item for item in objects.of("", "PersistentVolume", _Volume)}
        self._nodes: dict[str, frozenset[int] | None] = {}

    def allowed(self, item: Item[Pod]) -> frozenset[int] | None:
        """Return the nodes that reach all volumes of a pending pod; None for all."""
        pod = item.value
        found: frozenset[int] | None = None
        for one in pod.spec.volumes or ():
            if one.ephemeral is not None:
                name = f"{pod.metadata.name}-{one.name}"
            elif one.persistent_volume_claim is not None:
                name = str(one.persistent_volume_claim.get("claimName", ""))
            else:
                continue
            claim = self._claims.get(f"{pod.metadata.namespace or 'default'}/{name}")
            volume = (claim.spec.volume_name or "") if claim is not None and claim.spec is not None else ""
            if volume not in self._volumes:
                why = "the files do not say which nodes reach them, or none is made yet: any may"
                self.ledger.unsupported("volumes of pods that wait", why, item.where, item.file)
                continue
            nodes = self._reach(volume)
            if nodes is not None:
                found = nodes if found is None else found & nodes
        return found

    def _reach(self, name: str) -> frozenset[int] | None:
        if name not in self._nodes:
            item = self._volumes[name]
            affinity = item.value.spec.node_affinity if item.value.spec is not None else None
            path = f"{item.path}.spec.nodeAffinity".removeprefix(".")
            required = affinity.get("required") if affinity else None
            self._nodes[name] = admitted(required, self.labels, item.file, path) if required else None
        return self._nodes[name]
