"""``nvidia-smi -q``, as XML and as text: all that is known of each card.

Both are read as one tree of keys and values; the text has a level of the tree for each step to the right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element, ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import fromstring

from placement.formats.ledger import Ledger
from placement.formats.nvidia_smi.facts import (
    MOST_INDEX,
    Card,
    Facts,
    Instance,
    absent,
    broken,
    mebibytes,
    mode,
    model,
)
from placement.formats.source import File

MOST_DEPTH = 30
"""Levels of the tree; nvidia-smi prints some eight."""

_PENDING = frozenset(
    {
        "pending_retirement",
        "pending_blacklist",
        "pending_page_blacklist",
        "remapped_row_pending",
        "remapped_row_failure",
        "remapping_failure_occurred",
        "channel_repair_pending",
        "tpc_repair_pending",
        "unrepairable_memory",
    }
)
"""Keys of which ``Yes`` means that the card has to be reset or replaced."""


@dataclass(slots=True)
class _Tree:
    key: str
    value: str = ""
    parts: list[_Tree] = field(default_factory=list)

    def get(self, *path: str) -> str:
        """Return the value at the first of some paths, with ``/`` between keys; empty where there is none."""
        for one in path:
            tree: _Tree | None = self
            for key in one.split("/"):
                tree = next((part for part in tree.parts if part.key == key), None) if tree is not None else None
            if tree is not None:
                return tree.value
        return ""

    def all(self, *keys: str) -> Iterator[_Tree]:
        """Yield the parts with some keys."""
        return (part for part in self.parts if part.key in keys)

    def leaves(self) -> Iterator[_Tree]:
        """Yield all parts with a value, at any depth."""
        for part in self.parts:
            if part.value:
                yield part
            yield from part.leaves()


def xml(file: File, ledger: Ledger) -> Facts:
    """Return what the XML says.

    Raises
    ------
    InputError
        If it is damaged.
    """
    try:
        root = fromstring(file.data)
    except ParseError as why:
        raise file.error(f"not XML: {why}", "print it again, whole: nvidia-smi -q -x") from None
    except (DefusedXmlException, ValueError, LookupError) as why:
        raise file.error(f"the XML has what nvidia-smi does not print: {why}", "print it again") from None
    if root.tag != "nvidia_smi_log":
        raise file.error("the XML is not of nvidia-smi", "print it again: nvidia-smi -q -x")
    return _facts(file, _of_element(file, root, 0), ledger)


def text(file: File, ledger: Ledger) -> Facts:
    """Return what the text says.

    Raises
    ------
    InputError
        If it is damaged.
    """
    root = _Tree("")
    above = [(-1, root)]
    for number, line in enumerate(file.text().splitlines(), 1):
        if not line.strip() or line.startswith("="):
            continue
        indent = len(line) - len(line.lstrip(" "))
        name, _, value = line.strip().partition(" :")
        if name.startswith("GPU ") and indent == 0:
            name, value = "gpu", ""
        while above[-1][0] >= indent:
            above.pop()
        if len(above) > MOST_DEPTH:
            raise file.error("too many levels", "print it again: nvidia-smi -q", f"line {number}")
        part = _Tree(_key(name), value.strip())
        above[-1][1].parts.append(part)
        above.append((indent, part))
    return _facts(file, root, ledger)


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.strip().lower()).strip("_")


def _of_element(file: File, element: Element, depth: int) -> _Tree:
    if depth > MOST_DEPTH:
        raise file.error("too many levels", "print it again: nvidia-smi -q -x")
    parts = [_of_element(file, part, depth + 1) for part in element if isinstance(part.tag, str)]
    return _Tree(element.tag, "" if parts else (element.text or "").strip(), parts)


def _facts(file: File, root: _Tree, ledger: Ledger) -> Facts:
    facts = Facts(file)
    facts.driver, facts.cuda = (
        "" if absent(version) else version for version in (root.get("driver_version"), root.get("cuda_version"))
    )
    for index, gpu in enumerate(root.all("gpu")):
        if index > MOST_INDEX:
            raise file.error(f"more than {MOST_INDEX + 1} cards", "print it again")
        facts.cards[index] = _card(file, gpu, index, ledger)
    facts.total = len(facts.cards)
    attached = root.get("attached_gpus")
    if not facts.cards or (attached.isdigit() and int(attached[:9]) != facts.total):
        what = f"it lists {facts.total} cards and says that there are {attached or 'some'}"
        raise file.error(what, "print it again, whole, and without -i")
    return facts


def _card(file: File, gpu: _Tree, index: int, ledger: Ledger) -> Card:
    where = f"card {index}"
    place = f"{file.name}: {where}"
    current = mode(gpu.get("mig_mode/current_mig", "mig_mode/current"))
    pending = mode(gpu.get("mig_mode/pending_mig", "mig_mode/pending"))
    if current is not None and pending is not None and current != pending:
        ledger.contradiction("MIG mode that is pending is not the current one", "the current one", place)
    processes = list(_processes(gpu))
    product, uuid = gpu.get("product_name"), gpu.get("uuid", "gpu_uuid")
    instances = _instances(file, gpu, where) if current else None
    if not current and _devices(gpu):
        ledger.contradiction("MIG devices of a card with MIG off", "the mode", place)
    _note_fabric(gpu, place, ledger)
    memory = mebibytes(file, gpu.get("fb_memory_usage/total"), where)
    return Card(
        model="" if absent(product) or broken(product) else model(product),
        memory=memory,
        uuid="" if absent(uuid) or broken(uuid) else uuid,
        mig=bool(current),
        instances=instances,
        busy=bool(processes),
        busy_instances={int(one) for one in processes if one.isascii() and one.isdigit() and len(one) < 6},
        healthy=not any(map(_ill, gpu.leaves())),
        where=place,
    )


def _ill(leaf: _Tree) -> bool:
    if leaf.key in _PENDING or (leaf.key == "pending" and leaf.value == "Yes"):
        return leaf.value == "Yes"
    return broken(leaf.value) or (leaf.key == "gpu_recovery_action" and not absent(leaf.value))


def _processes(gpu: _Tree) -> Iterator[str]:
    """Yield the number of the GPU instance, or something else, for each process that computes."""
    for part in gpu.all("processes"):
        # as text the processes follow one another, each after the numbers of its instances
        instance = ""
        for one in part.parts:
            if one.key == "gpu_instance_id":
                instance = one.value
            elif one.key in ("process_info", "process_id"):
                kind = one.get("type")
                if not kind or "C" in kind:
                    yield one.get("gpu_instance_id") or instance or "none"


def _devices(gpu: _Tree) -> list[_Tree]:
    return [*gpu.all("mig_device"), *(one for part in gpu.all("mig_devices") for one in part.all("mig_device"))]


def _instances(file: File, gpu: _Tree, where: str) -> list[Instance]:
    """Return the GPU instances of a card's MIG devices; several of them share one."""
    found: dict[str, Instance] = {}
    for number, device in enumerate(_devices(gpu)):
        place = f"{where}, MIG device {number}"
        key = device.get("gpu_instance_id")
        if not (key.isascii() and key.isdigit() and len(key) < 6):
            raise file.error("a MIG device has no number of its GPU instance", "print it again", place)
        memory = mebibytes(file, device.get("fb_memory_usage/total", "shared_fb_memory_usage/total"), place)
        sm = device.get("device_attributes/shared/multiprocessor_count")
        one = found.setdefault(key, Instance(id=int(key), memory=memory))
        if one.memory != memory:
            raise file.error("MIG devices of one GPU instance have different memory", "print it again", place)
        one.sm += _whole(sm) or 0
        engines = [_whole(device.get(f"device_attributes/shared/{key}_count")) for key in _ENGINES]
        one.engines = tuple(number for number in engines if number is not None)
    return list(found.values())


_ENGINES = ("decoder", "encoder", "jpg", "ofa")


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else None


def _note_fabric(gpu: _Tree, place: str, ledger: Ledger) -> None:
    """Note an NVLink domain over several nodes: which nodes share it takes the outputs of all of them."""
    cluster = gpu.get("fabric/clusteruuid", "fabric/cluster_uuid")
    if re.search(r"[1-9a-fA-F]", cluster) and not absent(cluster):
        ledger.ignored("NVLink domain of a node", "say it in the node's `nvlink_domain`, or by a label", place)
