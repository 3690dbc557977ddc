"""Rules for what the cluster is: nodes, cards, NUMA zones, links, limits and reservations."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from operator import attrgetter
from typing import Any

from placement.snapshot.cluster import DomainLimit, Gpu, Link, Node, NumaZone, Reservation, Taint
from placement.snapshot.fields import (
    MOST_CARDS,
    MOST_LEVELS,
    MOST_NODES,
    Names,
    distinct,
    level,
    name,
    number,
    quantities,
    quantity,
    version,
    whole,
    wrong_name,
)
from placement.snapshot.report import Found, Memo, Report, show, step

RESERVED_LEVELS = ("node", "cluster")
"""Levels that every snapshot has, below and above those it names."""

_CPUS = re.compile(r"[0-9]{1,6}(-[0-9]{1,6})?(,[0-9]{1,6}(-[0-9]{1,6})?)*", re.ASCII)

# what nodes of one kind have in common; whatever is hashable, so that each kind is looked at once
_COMMON = attrgetter(
    "count", "taints", "cpu", "memory", "pods", "driver", "cuda", "failure_rate", "gpus", "zones", "links"
)


def judge_nodes(nodes: Iterable[Node], levels: tuple[str, ...], names: Names, report: Report) -> None:
    """Report what is wrong with nodes."""
    names.judge(report)
    known = frozenset(levels)
    kinds: Memo[tuple[Any, ...], tuple[Found, ...]] = Memo(_kind)
    for index, node in enumerate(nodes):
        found = kinds[_COMMON(node)]
        if found:
            report.extend(f"nodes[{index}]", found)
        position = node.position
        if position and (not position.keys() <= known or any(map(wrong_name, position.values()))):
            _judge_position(f"nodes[{index}].position", position, known, report)
        if node.extended:
            report.extend(f"nodes[{index}]", quantities(".extended", node.extended, "resource"))
        if "" in node.labels:
            report.add(f"nodes[{index}].labels", "a label has an empty key", "name the label")
    total = sum(max(0, count) for count in names.counts)
    if total > MOST_NODES and all(count <= MOST_NODES for count in names.counts):
        report.add("nodes", f"{show(total)} nodes in all, expected at most {MOST_NODES:,}", "split the cluster")


def _judge_position(path: str, position: dict[str, str], levels: frozenset[str], report: Report) -> None:
    for key, domain in position.items():
        if key not in levels:
            report.unknown(f"{path}{step(key)}", "level in `topology` called", key, levels)
        elif not domain:
            report.add(f"{path}{step(key)}", "the name of the domain is empty", "name it, or leave the level out")
        else:
            report.extend(f"{path}{step(key)}", name("", domain))


def _kind(common: tuple[Any, ...]) -> tuple[Found, ...]:
    """Return what is wrong with all nodes that have this in common."""
    count, taints, cpu, memory, pods, driver, cuda, failure_rate, gpus, zones, links = common
    return (
        *whole(".count", count, 1, MOST_NODES, "say how many identical nodes there are"),
        *_taints(taints),
        *quantity(".cpu", cpu),
        *quantity(".memory", memory),
        *whole(".pods", pods),
        *version(".driver", driver),
        *version(".cuda", cuda),
        *number(".failure_rate", failure_rate, 0),
        *_gpus(gpus),
        *_zones(zones, sum(gpu.count for gpu in gpus)),
        *_links(links, sum(gpu.count for gpu in gpus)),
    )


def _taints(taints: tuple[Taint, ...]) -> Iterator[Found]:
    for index, taint in enumerate(taints):
        if not taint.key:
            yield f".taints[{index}].key", "the key is empty", "name the taint"


def _gpus(gpus: tuple[Gpu, ...]) -> Iterator[Found]:
    for index, gpu in enumerate(gpus):
        end = f".gpus[{index}]"
        yield from name(f"{end}.model", gpu.model)
        yield from whole(f"{end}.count", gpu.count, 1, MOST_CARDS, "say how many such cards the node has")
        yield from quantity(f"{end}.memory", gpu.memory)
        yield from version(f"{end}.compute_capability", gpu.compute_capability)
        if gpu.mig_layout and not gpu.mig_enabled:
            yield f"{end}.mig_layout", "there are MIG instances while MIG mode is off", 'say "mig_enabled": true'
        for number_, instance in enumerate(gpu.mig_layout):
            yield from name(f"{end}.mig_layout[{number_}].profile", instance.profile)
            yield from whole(f"{end}.mig_layout[{number_}].start", instance.start, 0, 63)
        yield from distinct(f"{end}.mig_layout", [instance.start for instance in gpu.mig_layout], "slot")
    total = sum(gpu.count for gpu in gpus)
    if total > MOST_CARDS and all(gpu.count <= MOST_CARDS for gpu in gpus):
        yield ".gpus", f"{total} cards in one node, expected at most {MOST_CARDS}", "split the node"


def _zones(zones: tuple[NumaZone, ...], cards: int) -> Iterator[Found]:
    yield from distinct(".zones", [zone.id for zone in zones], "zone")
    owner: dict[int | str, int] = {}
    switches: set[str] = set()
    for index, zone in enumerate(zones):
        end = f".zones[{index}]"
        yield from whole(f"{end}.id", zone.id)
        if zone.cpus and not _CPUS.fullmatch(zone.cpus):
            yield f"{end}.cpus", f"found {show(zone.cpus)}, expected a list such as 0-31,64-95", "write the CPU list"
        yield from quantity(f"{end}.cpu", zone.cpu)
        yield from quantity(f"{end}.memory", zone.memory)
        yield from _devices(f"{end}.gpus", zone.gpus, cards)
        for number_, gpu in enumerate(zone.gpus):
            if owner.setdefault(gpu, index) != index:
                yield f"{end}.gpus[{number_}]", f"card {gpu} is in zones[{owner[gpu]}] already", "keep it in one zone"
        for number_, nic in enumerate(zone.nics):
            yield from name(f"{end}.nics[{number_}].name", nic.name)
            if owner.setdefault(nic.name, index) != index:
                where = f"zones[{owner[nic.name]}]"
                yield f"{end}.nics[{number_}].name", f"{show(nic.name)} is in {where} already", "keep it in one zone"
        yield from distinct(f"{end}.nics", [nic.name for nic in zone.nics], "NIC")
        yield from _switches(end, zone, switches)


def _switches(end: str, zone: NumaZone, before: set[str]) -> Iterator[Found]:
    below: set[int | str] = set()
    nics = [nic.name for nic in zone.nics]
    for index, switch in enumerate(zone.switches):
        where = f"{end}.switches[{index}]"
        yield from name(f"{where}.name", switch.name)
        if switch.name in before:
            yield f"{where}.name", f"the node has a switch {show(switch.name)} already", "give each its own name"
        before.add(switch.name)
        of_kind: list[tuple[str, str, tuple[int | str, ...], Collection[int | str]]]
        of_kind = [("card", "gpus", switch.gpus, zone.gpus), ("NIC", "nics", switch.nics, nics)]
        for kind, key, devices, known in of_kind:
            for number_, device in enumerate(devices):
                if device not in known:
                    yield f"{where}.{key}[{number_}]", f"{kind} {show(device)} is not in this zone", "list it there too"
                elif device in below:
                    yield f"{where}.{key}[{number_}]", f"{kind} {show(device)} is listed twice", "keep it once"
                below.add(device)


def _devices(end: str, devices: tuple[int, ...], cards: int) -> Iterator[Found]:
    for index, device in enumerate(devices):
        if not 0 <= device < cards:
            yield f"{end}[{index}]", _no_card(device, cards), "cards are counted from 0 through the entries of `gpus`"
    yield from distinct(end, devices, "card")


def _no_card(device: int, cards: int) -> str:
    has = f"has cards 0 to {cards - 1}" if cards > 1 else "has card 0 alone" if cards == 1 else "has no cards"
    return f"there is no card {show(device)}: the node {has}"


def _links(links: tuple[Link, ...], cards: int) -> Iterator[Found]:
    pairs: dict[tuple[int, int], int] = {}
    for index, link in enumerate(links):
        end = f".links[{index}]"
        for key, device in (("a", link.a), ("b", link.b)):
            if not 0 <= device < cards:
                yield f"{end}.{key}", _no_card(device, cards), "correct the index"
        if link.a == link.b:
            yield end, f"card {show(link.a)} is linked to itself", "remove the link"
        pair = (min(link.a, link.b), max(link.a, link.b))
        if pairs.setdefault(pair, index) != index:
            what = f"cards {link.a} and {link.b} are linked in links[{pairs[pair]}] already"
            before = links[pairs[pair]]
            if (before.kind, before.width) == (link.kind, link.width):
                yield end, what, "keep it once"
            else:
                yield end, f"{what}, by {_path(before)} and here by {_path(link)}", "a pair has one path: keep the best"
        yield from whole(f"{end}.width", link.width, 1, 64)
        if link.width > 1 and link.kind != "NVLINK":
            yield f"{end}.width", f"a path of kind {link.kind} has no lanes to count", "leave `width` out"


def _path(link: Link) -> str:
    return f"{link.kind} of width {show(link.width)}" if link.kind == "NVLINK" else link.kind


def judge_topology(levels: tuple[str, ...], report: Report) -> None:
    """Report what is wrong with the names of levels."""
    if len(levels) > MOST_LEVELS:
        what = f"there are {len(levels):,} levels, expected at most {MOST_LEVELS}"
        report.add("topology", what, "keep those that something is tied to or capped at")
    report.extend("topology", distinct("", levels, "level"))
    for index, text in enumerate(levels):
        report.extend(f"topology[{index}]", name("", text))
        if text in RESERVED_LEVELS:
            report.add(f"topology[{index}]", f"{show(text)} is a level of every snapshot", "use another name")


def judge_limits(
    limits: tuple[DomainLimit, ...], nodes: Iterable[Node], levels: tuple[str, ...], report: Report
) -> None:
    """Report what is wrong with the caps on domains."""
    domains: dict[str, set[str]] = {name: set() for name in levels}
    for key, domain in chain.from_iterable(node.position.items() for node in nodes) if limits else ():
        domains.setdefault(key, set()).add(domain)
    seen: dict[tuple[str, str], int] = {}
    for index, limit in enumerate(limits):
        path = f"limits[{index}]"
        report.extend(
            path, [found for key in ("gpus", "cpu", "memory") for found in quantity(f".{key}", getattr(limit, key))]
        )
        report.extend(path, quantities(".extended", limit.extended, "resource"))
        if limit.gpus is None and limit.cpu is None and limit.memory is None and not limit.extended:
            report.add(path, "the limit caps nothing", "say `gpus`, `cpu`, `memory` or `extended`")
        if limit.level == "cluster":
            if limit.domain:
                report.add(f"{path}.domain", f"found {show(limit.domain)}, but there is one cluster", "leave it out")
        elif limit.level not in levels:
            report.extend(f"{path}.level", level("", limit.level, (*levels, "cluster")))
            continue
        elif limit.domain not in domains[limit.level]:
            kind = f"{limit.level} with nodes in it called"
            report.unknown(f"{path}.domain", kind, limit.domain, domains[limit.level])
        if seen.setdefault((limit.level, limit.domain), index) != index:
            other = f"limits[{seen[limit.level, limit.domain]}]"
            report.add(path, f"{other} is about the same domain", "state all caps of a domain in one entry")


def judge_reservations(
    reservations: tuple[Reservation, ...], nodes: Names, jobs: Names, queues: frozenset[str], report: Report
) -> None:
    """Report what is wrong with reservations."""
    report.extend("reservations", distinct("", [r.name for r in reservations], "name"))
    for index, reservation in enumerate(reservations):
        path = f"reservations[{index}]"
        report.extend(path, name(".name", reservation.name))
        report.extend(path, [*number(".start", reservation.start), *number(".end", reservation.end)])
        if reservation.end <= reservation.start:
            what = f"it ends at {show(reservation.end)}, which is not after its start {show(reservation.start)}"
            report.add(f"{path}.end", what, "give an end after the start")
        if not reservation.nodes:
            report.add(f"{path}.nodes", "no node is reserved", "name at least one")
        for key, listed, known in (("nodes", reservation.nodes, nodes), ("jobs", reservation.jobs, jobs)):
            report.extend(path, distinct(f".{key}", listed, known.kind))
            for number_, text in enumerate(listed):
                if known.find(text) is None:
                    report.unknown(f"{path}.{key}[{number_}]", known.kind, text, known.known)
        for number_, text in enumerate(reservation.queues):
            if text not in queues:
                report.unknown(f"{path}.queues[{number_}]", "queue", text, queues)
