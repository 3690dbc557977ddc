"""Rules for what the cluster is: nodes, cards, links, limits and reservations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from operator import attrgetter
from typing import Any

from placement.snapshot.cluster import DomainLimit, Gpu, Link, Node, Reservation, Taint
from placement.snapshot.fields import (
    MOST_CARDS,
    MOST_LEVELS,
    MOST_NODES,
    Names,
    distinct,
    level,
    moment,
    name,
    number,
    quantities,
    quantity,
    version,
    whole,
    wrong_name,
)
from placement.snapshot.report import Found, Memo, Report, many, show, step
from placement.snapshot.validate_mig import judge_card
from placement.snapshot.validate_sharing import judge_sharing
from placement.snapshot.validate_zones import cards_of, judge_zones, no_card, outside

RESERVED_LEVELS = ("node", "cluster")
"""Levels that every snapshot has, below and above those it names."""

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
        if node.devices:
            report.extend(f"nodes[{index}]", _devices(node))
        if "" in node.labels:
            report.add(f"nodes[{index}].labels", "a label has an empty key", "name the label")
    total = sum(max(0, count) for count in names.counts)
    if total > MOST_NODES and all(count <= MOST_NODES for count in names.counts):
        report.add("nodes", f"{show(total)} nodes in all, expected at most {MOST_NODES:,}", "split the cluster")


def _devices(node: Node) -> Iterator[Found]:
    cards = cards_of(node.gpus)
    if node.count > 1:
        yield ".devices", f"the entry stands for {show(node.count)} nodes", "give each its own entry, or leave it out"
    elif cards is not None and len(node.devices) != cards:
        yield (
            ".devices",
            f"{many(len(node.devices), 'name')} for {many(cards, 'card')}",
            "name each card, or leave it out",
        )
    for place, device in enumerate(node.devices):
        yield from name(f".devices[{place}]", device)
    yield from distinct(".devices", node.devices, "device")


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
        *judge_sharing(gpus),
        *judge_zones(zones, cpu, memory, cards_of(gpus)),
        *_links(links, cards_of(gpus)),
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
        yield from judge_card(end, gpu)
    total = sum(gpu.count for gpu in gpus)
    if total > MOST_CARDS and all(gpu.count <= MOST_CARDS for gpu in gpus):
        yield ".gpus", f"{total} cards in one node, expected at most {MOST_CARDS}", "split the node"


def _links(links: tuple[Link, ...], cards: int | None) -> Iterator[Found]:
    pairs: dict[tuple[int, int], int] = {}
    for index, link in enumerate(links):
        end = f".links[{index}]"
        for key, device in (("a", link.a), ("b", link.b)):
            if outside(device, cards):
                yield f"{end}.{key}", no_card(device, cards), "correct the index"
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
    for key, domain in chain.from_iterable(node.domains.items() for node in nodes) if limits else ():
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
        report.extend(path, [*moment(".start", reservation.start), *moment(".end", reservation.end)])
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
