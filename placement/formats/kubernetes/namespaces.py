"""Labels of namespaces, by which terms of pod affinity choose them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from placement.formats.kubernetes.objects import Meta, Objects

NAME = "kubernetes.io/metadata.name"
"""Label that every namespace has: its name."""


class _Namespace(msgspec.Struct, gc=False):
    metadata: Meta = msgspec.field(default_factory=Meta)


class Namespaces:
    """What labels namespaces have.

    Parameters
    ----------
    objects : Objects
        Namespaces among them are looked at; of others only the name is known.
    """

    def __init__(self, objects: Objects) -> None:
        self._labels = {
            item.value.metadata.name: item.value.metadata.labels or {}
            for item in objects.of("", "Namespace", _Namespace)
        }

    def labels(self, name: str) -> Mapping[str, str]:
        """Return what is known of the labels of a namespace."""
        return {**self._labels.get(name, {}), NAME: name}

    def known(self, name: str, keys: Iterable[str]) -> bool:
        """Return whether it is known what some labels of a namespace are."""
        return name in self._labels or all(key == NAME for key in keys)
