"""All objects of a cluster in one bag, by kind, whatever files they came from and in whatever order.

A file holds one object, a ``List`` of them, several YAML documents, or what KAI's scheduler gives at
``/get-snapshot``. An object stays as it was read until somebody asks for its kind; kinds that nobody asks for are in
the ledger.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from placement.formats.documents import Value, convert, documents
from placement.formats.ledger import Ledger
from placement.formats.source import File
from placement.snapshot.report import show

T = TypeVar("T")

KAI_LISTS: dict[str, tuple[str, str]] = {
    "pods": ("", "Pod"),
    "nodes": ("", "Node"),
    "configMaps": ("", "ConfigMap"),
    "persistentVolumeClaims": ("", "PersistentVolumeClaim"),
    "storageClasses": ("storage.k8s.io", "StorageClass"),
    "csiDrivers": ("storage.k8s.io", "CSIDriver"),
    "csiStorageCapacities": ("storage.k8s.io", "CSIStorageCapacity"),
    "queues": ("scheduling.run.ai", "Queue"),
    "podGroups": ("scheduling.run.ai", "PodGroup"),
    "bindRequests": ("scheduling.run.ai", "BindRequest"),
    "priorityClasses": ("scheduling.k8s.io", "PriorityClass"),
    "resourceClaims": ("resource.k8s.io", "ResourceClaim"),
    "resourceSlices": ("resource.k8s.io", "ResourceSlice"),
    "deviceClasses": ("resource.k8s.io", "DeviceClass"),
    "topologies": ("kai.scheduler", "Topology"),
    "nodeResourceTopologies": ("topology.node.k8s.io", "NodeResourceTopology"),
}
"""Lists in ``rawObjects`` of a KAI snapshot, and the group and kind of what is in them."""

LONGEST = 200
"""Characters of a kind that the ledger shows."""


class Owner(msgspec.Struct, rename="camel", gc=False):
    """What an object belongs to."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    controller: bool | None = None


class Meta(msgspec.Struct, rename="camel", gc=False):
    """Metadata of an object; mappings and lists may be null, as kubectl prints them."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    generate_name: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    owner_references: list[Owner] | None = None

    @property
    def key(self) -> str:
        """``namespace/name``; an object that says no namespace is in ``default``."""
        return f"{self.namespace or 'default'}/{self.name}"


class _Peek(msgspec.Struct, rename="camel", gc=False):
    kind: str = ""
    api_version: str = ""


class _List(msgspec.Struct):
    items: list[msgspec.Raw] | None = None


class _Whole(msgspec.Struct):
    items: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _Kai(msgspec.Struct, rename="camel"):
    raw_objects: dict[str, list[msgspec.Raw] | None] | None = None


class _KaiInYaml(msgspec.Struct, rename="camel"):
    raw_objects: dict[str, list[Any] | None] | None = None


@dataclass(frozen=True, slots=True)
class Item(Generic[T]):
    """An object of one kind, and where it is: a file and a path in it."""

    file: str
    path: str
    value: T

    @property
    def where(self) -> str:
        """Place for the ledger."""
        return f"{self.file}: {self.path}" if self.path else self.file


class Objects:
    """Objects by API group and kind.

    Parameters
    ----------
    files : iterable of File
    """

    def __init__(self, files: Iterable[File] = ()) -> None:
        self._raw: dict[tuple[str, str], list[tuple[str, str, Value]]] = {}
        self._asked: set[tuple[str, str]] = set()
        for file in files:
            for path, value in documents(file):
                self._add(file, path, value)

    def of(self, group: str, kind: str, record: type[T]) -> list[Item[T]]:
        """Return all objects of a kind as records.

        Parameters
        ----------
        group : str
            API group without the version, such as ``"kueue.x-k8s.io"``; ``""`` for the core.
        kind : str
        record : type
            A `msgspec.Struct`; what it does not list is not looked at.

        Raises
        ------
        InputError
            If an object does not have this form.
        """
        self._asked.add((group, kind))
        return [
            Item(file, path, convert(value, record, file, path))
            for file, path, value in self._raw.get((group, kind), ())
        ]

    def has(self, group: str, kind: str) -> bool:
        """Return whether there is any object of a kind."""
        return (group, kind) in self._raw

    def note_unread(self, ledger: Ledger) -> None:
        """Note the kinds that nobody asked for."""
        for (group, kind), found in self._raw.items():
            if (group, kind) not in self._asked:
                name = f"{kind} of {group}" if group else kind
                name = name if len(name) <= LONGEST else f"{name[:LONGEST]}…"
                for file, path, _ in found:
                    ledger.ignored(f"objects of kind {name}", "no reader looks at them", f"{file}: {path}")

    def _add(self, file: File, path: str, value: Value) -> None:
        peek = convert(value, _Peek, file.name, path)
        if not peek.kind and isinstance(kai := _kai_lists(file, path, value), dict):
            for name, items in kai.items():
                group, kind = KAI_LISTS.get(name, ("", f"list {name}"))
                for index, item in enumerate(items or ()):
                    self._put(file, f"rawObjects.{name}[{index}]", group, kind, item)
            return
        if not peek.kind:
            raise file.error("there is no `kind`", "give objects as kubectl get -o json prints them", path)
        group, slash, _ = peek.api_version.rpartition("/")
        group = group if slash else ""
        if peek.kind == "List" or (peek.kind.endswith("List") and _is_list(value)):
            for index, item in enumerate(_items(file, path, value)):
                where = f"{path}.items[{index}]".removeprefix(".")
                inner = convert(item, _Peek, file.name, where)
                if inner.kind:
                    self._add(file, where, item)
                else:
                    # lists of one kind leave it out in their items
                    self._put(file, where, group, peek.kind.removesuffix("List"), item)
            return
        self._put(file, path, group, peek.kind, value)

    def _put(self, file: File, path: str, group: str, kind: str, value: Value) -> None:
        self._raw.setdefault((group, kind), []).append((file.name, path, value))


def _is_list(value: Value) -> bool:
    """Return whether an object has items, be they a list or not."""
    if isinstance(value, msgspec.Raw):
        return msgspec.json.decode(value, type=_Whole).items is not msgspec.UNSET
    return "items" in value


def _items(file: File, path: str, value: Value) -> Iterator[Value]:
    if isinstance(value, msgspec.Raw):
        yield from convert(value, _List, file.name, path).items or ()
        return
    items = value.get("items")
    if not isinstance(items, list):
        raise file.error(f"`items` is {show(items)}, expected a list", "dump it again", path)
    yield from items


def _kai_lists(file: File, path: str, value: Value) -> dict[str, list[Any] | None] | None:
    if isinstance(value, msgspec.Raw):
        return convert(value, _Kai, file.name, path).raw_objects
    return convert(value, _KaiInYaml, file.name, path).raw_objects
