"""MIG layouts as a configuration of mig-parted, which the MIG manager of the GPU operator reads as well.

A configuration says how many instances of each profile a card has, not where they lie; mig-parted looks for an order in
which they fit. It clears a card whose instances are not those wanted, so what runs there has to stop first.

Format: ``api/spec/v1`` in https://github.com/NVIDIA/mig-parted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec
import yaml

from placement.errors import InputError
from placement.formats.documents import convert, documents
from placement.formats.source import File
from placement.formats.tasks import placed
from placement.hardware.layouts import Instance, fits, in_order, placements
from placement.hardware.mig import geometry, nearest
from placement.plan import Plan
from placement.snapshot import Gpu, Node, Snapshot
from placement.snapshot.leaves import leaf_tasks
from placement.snapshot.report import show

VERSION = "v1"

_PROFILE = re.compile(r"(?:[0-9]+c\.)?[0-9]+g\.[0-9]+gb(?:[+-][a-z]+(?:[.,][a-z]+)*)?", re.ASCII)

State = tuple[bool, tuple[tuple[str, int], ...]]
"""Whether MIG is on in a card, and how many instances of each profile there are."""

Cards = dict[int, State]
"""By the index of a card."""

Used = dict[tuple[str, int], list[tuple[str, int]]]
"""Profile and first slot of instances that tasks have, by node and index of the card."""


def write(snapshot: Snapshot, plan: Plan | None = None) -> bytes:
    """Return a configuration for each layout that nodes have, or have under a plan.

    Instances that neither a running nor a placed task uses stay where there is room beside those.

    Parameters
    ----------
    snapshot : Snapshot
        Verified.
    plan : Plan, optional
        Checked, and of that snapshot.

    Raises
    ------
    InputError
        If there is no card of a model of which MIG geometry is known.
    """
    running = _running(snapshot)
    wanted: Used = {key: list(there) for key, there in running.items()}
    for task in () if plan is None else placed(snapshot, plan):
        for card, start in zip(task.place.gpus, task.place.mig_starts, strict=False):
            wanted.setdefault((task.place.node, card), []).append((task.task.mig_profile, start))
    found: dict[tuple[tuple[tuple[int, State], ...], int], tuple[list[str], list[str]]] = {}
    for name, node in _nodes(snapshot):
        after, before = _cards(name, node, wanted), _cards(name, node, running)
        if after:
            names, cleared = found.setdefault((tuple(after.items()), sum(gpu.count for gpu in node.gpus)), ([], []))
            names.append(name)
            changed = [card for card in after if after[card] != before[card]]
            cleared += [f"{name}: {card}" for card in changed if (name, card) in running]
    if not found:
        raise InputError.one("no card is of a model of which MIG geometry is known", "name the cards by their models")
    out = [f"version: {VERSION}\nmig-configs:\n"]
    for index, ((layout, number), (names, cleared)) in enumerate(found.items(), 1):
        out.append(f"  # nodes: {', '.join(names)}\n")
        if cleared:
            out.append(f"  # in use, and cleared for this (node: card): {', '.join(cleared)}\n")
        entries = {f"placement-{index}": _entries(dict(layout), number)}
        text = yaml.safe_dump(entries, sort_keys=False, default_flow_style=None, width=2**20)
        out += [f"  {line}\n" for line in text.splitlines()]
    return "".join(out).encode()


def _nodes(snapshot: Snapshot) -> Iterator[tuple[str, Node]]:
    for node in snapshot.nodes:
        names = [node.name] if node.count == 1 else [f"{node.name}-{copy}" for copy in range(node.count)]
        yield from ((name, node) for name in names)


def _running(snapshot: Snapshot) -> Used:
    used: Used = {}
    for job in snapshot.jobs:
        if job.running is not None:
            tasks = dict(leaf_tasks(job.groups))
            for one in job.running.tasks:
                for card, start in zip(one.gpus, one.mig_starts, strict=False):
                    used.setdefault((one.node, card), []).append((tasks[one.group].mig_profile, start))
    return used


def _cards(name: str, node: Node, used: Used) -> Cards:
    """Return the cards of a node of which MIG geometry is known."""
    cards: Cards = {}
    for index, gpu in enumerate(entry for entry in node.gpus for _ in range(entry.count)):
        if geometry(gpu.model) is not None:
            names = Counter(profile.name for profile, _ in _layout(gpu, used.get((name, index), [])))
            cards[index] = gpu.mig_enabled, tuple(sorted(names.items()))
    return cards


def _layout(gpu: Gpu, used: list[tuple[str, int]]) -> list[Instance]:
    """Return the instances that tasks have, and of those that exist the ones that fit beside them."""
    card = geometry(gpu.model)
    assert card is not None

    def instances(listed: list[tuple[str, int]]) -> list[Instance]:
        there = [(card.profile(profile), start) for profile, start in listed]
        return [(profile, start) for profile, start in there if profile is not None]

    layout = instances(used)
    for one in in_order(instances([(one.profile, one.start) for one in gpu.mig_layout])):
        if one not in layout and fits(card, layout, one):
            layout.append(one)
    return layout


def _entries(cards: Cards, number: int) -> list[dict[str, object]]:
    """Return a configuration: cards that are to be alike are one entry."""
    alike: dict[State, list[int]] = {}
    for index, state in cards.items():
        alike.setdefault(state, []).append(index)
    return [
        {
            "devices": "all" if len(devices) == number else devices,
            "mig-enabled": on,
            **({"mig-devices": dict(names)} if on else {}),
        }
        for (on, names), devices in alike.items()
    ]


# --- reading -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Config:
    """What a configuration says of some cards of a node.

    Attributes
    ----------
    devices : tuple of int or None
        Their indices; None for all.
    enabled : bool
        Whether MIG is on.
    instances : mapping of str to int
        How many of each profile.
    filters : tuple of str
        PCI device numbers of the models that are meant; empty for any.
    """

    devices: tuple[int, ...] | None
    enabled: bool
    instances: Mapping[str, int]
    filters: tuple[str, ...] = ()


class _Entry(msgspec.Struct, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    devices: list[int] | Literal["all"]
    mig_enabled: bool
    mig_devices: dict[str, int] | None = None
    device_filter: list[str] | str | None = None


class _File(msgspec.Struct, forbid_unknown_fields=True, rename="kebab"):
    version: Literal["v1"]
    mig_configs: dict[str, list[_Entry]]


def read_configs(file: File, model: str = "") -> dict[str, tuple[Config, ...]]:
    """Return the configurations of a file by name.

    Parameters
    ----------
    file : File
    model : str
        Card model of the nodes; where it is named, all instances of a card must be able to exist together on it, unless
        an entry is for the cards of some device numbers.

    Raises
    ------
    InputError
        If the file is damaged, or asks for what cannot exist.
    """
    found = documents(file)
    if len(found) != 1:
        raise file.error(f"{len(found)} documents, expected one", "give one file for each")
    whole = convert(found[0][1], _File, file.name, "")
    configs = {}
    for name, entries in whole.mig_configs.items():
        path = f"mig-configs.{name}"
        if not entries:
            raise file.error("the configuration has no entry", "write which devices it is for", path)
        configs[name] = tuple(_config(file, entry, f"{path}[{index}]", model) for index, entry in enumerate(entries))
        _refuse_twice(file, configs[name], path)
    return configs


def _config(file: File, entry: _Entry, path: str, model: str) -> Config:
    wanted = entry.mig_devices or {}
    if entry.mig_enabled and entry.mig_devices is None:
        raise file.error("MIG is on, and mig-devices is missing", "list the instances, or {}", path)
    if not entry.mig_enabled and wanted:
        raise file.error("MIG is off, and mig-devices lists instances", "switch it on, or list none", path)
    for profile, count in wanted.items():
        if _PROFILE.fullmatch(profile) is None:
            raise file.error(f"{show(profile)} is no MIG profile", "write it as nvidia-smi does: 1g.5gb", path)
        if count < 1:
            raise file.error(f"found {show(count)} of {profile}, expected 1 or more", "leave it out", path)
    filters = [entry.device_filter] if isinstance(entry.device_filter, str) else entry.device_filter or []
    if model and not filters:
        _refuse_impossible(file, wanted, path, model)
    devices = None if entry.devices == "all" else tuple(entry.devices)
    if devices is not None and any(index < 0 for index in devices):
        raise file.error("the index of a device is negative", "count devices from 0", path)
    return Config(devices, entry.mig_enabled, wanted, tuple(filters))


def _refuse_impossible(file: File, wanted: Mapping[str, int], path: str, model: str) -> None:
    card = geometry(model)
    if card is None:
        raise file.error(f"the MIG geometry of {show(model)} is not known", "name the card as nvidia-smi does", path)
    profiles = []
    for name, count in wanted.items():
        profile = card.profile(name)
        if profile is None:
            near = ", ".join(nearest(name, [one.name for one in card.profiles]))
            raise file.error(f"a card {card.model} has no profile {show(name)}", f"use another one: {near}", path)
        profiles += [profile] * min(count, card.slots + 1)
    if sum(profile.size for profile in profiles) > card.slots or placements(card, profiles) is None:
        listed = ", ".join(f"{count} x {name}" for name, count in wanted.items())
        raise file.error(f"{listed} cannot exist together on a card {card.model}", "ask for fewer", path)


def _refuse_twice(file: File, configs: tuple[Config, ...], path: str) -> None:
    """Refuse a configuration of which two entries are for one device, whatever its model."""
    plain = [one for one in configs if not one.filters]
    listed = [index for one in plain for index in one.devices or ()]
    everything = sum(one.devices is None for one in plain)
    if len(set(listed)) < len(listed) or everything > 1 or (everything and listed):
        raise file.error("two entries are for one device", "name each device once", path)
