"""Where nodes are: the levels of the topology, and the domain of each node at each.

Said by the user, else by the objects of Kueue, KAI and Volcano, else by labels that clouds and tools put on nodes.
Region, zone and NVLink domain come to those that objects say.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from placement.errors import InputError
from placement.formats.kubernetes.parts import Addition
from placement.formats.ledger import Ledger
from placement.formats.options import Options
from placement.snapshot.cluster import NVLINK_DOMAIN
from placement.snapshot.fields import MOST_LEVELS, wrong_name
from placement.snapshot.report import show

HOSTNAME = "kubernetes.io/hostname"
RESERVED = ("node", "cluster")

WIDEST: tuple[tuple[str, str], ...] = (
    ("region", "topology.kubernetes.io/region"),
    ("region", "failure-domain.beta.kubernetes.io/region"),
    ("zone", "topology.kubernetes.io/zone"),
    ("zone", "failure-domain.beta.kubernetes.io/zone"),
)

KNOWN: tuple[tuple[str, str], ...] = (
    ("datacenter", "network.topology.nvidia.com/datacenter"),
    ("core", "network.topology.nvidia.com/core"),
    ("spine", "network.topology.nvidia.com/spine"),
    ("block", "network.topology.nvidia.com/block"),
    ("leaf", "network.topology.nvidia.com/leaf"),
    ("block", "cloud.provider.com/topology-block"),
    ("rack", "cloud.provider.com/topology-rack"),
    ("block", "cloud.google.com/gce-topology-block"),
    ("subblock", "cloud.google.com/gce-topology-subblock"),
    ("host", "cloud.google.com/gce-topology-host"),
    ("network_layer_1", "topology.k8s.aws/network-node-layer-1"),
    ("network_layer_2", "topology.k8s.aws/network-node-layer-2"),
    ("network_layer_3", "topology.k8s.aws/network-node-layer-3"),
    ("network_layer_4", "topology.k8s.aws/network-node-layer-4"),
    ("hpc_island", "oci.oraclecloud.com/rdma.hpc_island_id"),
    ("network_block", "oci.oraclecloud.com/rdma.network_block_id"),
    ("local_block", "oci.oraclecloud.com/rdma.local_block_id"),
    ("fabric", "ib.coreweave.cloud/fabric"),
    ("superpod", "ib.coreweave.cloud/superpod"),
    ("leafgroup", "ib.coreweave.cloud/leafgroup"),
    ("rack", "topology.kubernetes.io/rack"),
    ("rack", "topology.rook.io/rack"),
)
"""Names of levels and labels that say domains, from wide to narrow."""

FABRICS: tuple[tuple[str, str], ...] = (
    (NVLINK_DOMAIN, "nvidia.com/gpu.clique"),
    ("accelerator", "network.topology.nvidia.com/accelerator"),
    ("accelerator", "accelerator.topograph.run/domain"),
    ("accelerator_part", "accelerator.topograph.run/sub-domain"),
)
"""The same of fabrics between cards; which switches they are within differs."""

_TIER = re.compile(r"fabric\.topograph\.run/tier-([0-9]{1,2})")

Described = tuple[str, Mapping[str, str], str]
"""Name, labels and place in the files of a node."""


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Levels from wide to narrow, the level by label, and the domains of each node by level."""

    levels: tuple[str, ...]
    level_of: Mapping[str, str]
    positions: tuple[dict[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Level:
    name: str
    labels: tuple[str, ...]
    """Labels that say the domain, and other names of the level."""
    domains: tuple[str, ...]
    """Of each node; empty where it is in none."""
    fabric: bool = False
    """Whether it is one that nodes may well not have."""


def whereabouts(
    nodes: Sequence[Described], additions: Sequence[Addition], options: Options, ledger: Ledger
) -> Whereabouts:
    """Return where nodes are.

    Parameters
    ----------
    nodes : sequence of (str, mapping of str to str, str)
        Name, labels and place in the files of each node.
    additions : sequence of Addition
    options : Options
    ledger : Ledger

    Raises
    ------
    InputError
        If levels that the user names cannot be.
    """
    if options.levels:
        levels = _from_user(nodes, options)
    else:
        levels = _from_objects(nodes, additions, ledger)
        if len(levels) > MOST_LEVELS:
            ledger.ignored("levels of the topology", f"a snapshot has {MOST_LEVELS} at most: --levels chooses some", "")
            levels = levels[:MOST_LEVELS]
    for level in levels:
        for domain, (name, _, where) in zip(level.domains, nodes, strict=True):
            if not domain and not level.fabric:
                label = f"label {level.labels[0]}" if level.labels else f"HyperNode of tier {level.name}"
                ledger.assumed(f"a node has no {label}", f"it is in no {level.name}", f"{where} (node {name})")
            elif domain and (what := wrong_name(domain)):
                raise InputError.one(f"label {', '.join(level.labels)}: {what}", "correct the label", path=where)
    domains = _apart(levels, nodes, ledger)
    return Whereabouts(
        tuple(level.name for level in levels),
        {**{label: level.name for level in levels for label in level.labels}, HOSTNAME: "node"},
        tuple(
            {level.name: column[index] for level, column in zip(levels, domains, strict=True) if column[index]}
            for index in range(len(nodes))
        ),
    )


# --- who says the levels ---------------------------------------------------------------------------------------


def _from_user(nodes: Sequence[Described], options: Options) -> list[_Level]:
    levels: list[_Level] = []
    for name, label in options.levels:
        if label == HOSTNAME:
            continue
        domains = _column(nodes, label)
        if not any(domains):
            raise InputError.one(f"no node has a label {show(label)}", "name labels that nodes have", path="--levels")
        if name in RESERVED or wrong_name(name) or name in [level.name for level in levels]:
            what = f"a level cannot be called {show(name)}: the name is taken, or none"
            raise InputError.one(what, "name each level as you like", path="--levels")
        levels.append(_Level(name, (label,), domains))
    if len(levels) > MOST_LEVELS:
        raise InputError.one(f"{len(levels)} levels, expected at most {MOST_LEVELS}", "name fewer", path="--levels")
    return levels


def _from_objects(nodes: Sequence[Described], additions: Sequence[Addition], ledger: Ledger) -> list[_Level]:
    """Return the levels that objects say, with region, zone and NVLink domain; else all that are known."""
    present = {label for _, labels, _ in nodes for label, value in labels.items() if value}
    levels = _stated(nodes, additions, present, ledger)
    for addition in additions:
        for tier in addition.tiers:
            domains = tuple(addition.positions.get(name, {}).get(tier, "") for name, _, _ in nodes)
            if any(domains):
                levels.append(_Level(_name(tier, f"{tier} of HyperNodes", levels), (), domains))
            else:
                ledger.contradiction("a tier that no node is in", "the nodes", tier)
    alone = not levels
    if alone:
        for name, label in [*WIDEST, *_tiers(present), *KNOWN]:
            _insert(levels, name, label, nodes, present)
    else:
        _widen(levels, nodes, present, ledger)
    for name, label in FABRICS if alone else FABRICS[:1]:
        _insert(levels, name, label, nodes, present, fabric=True)
    if levels and alone:
        ledger.assumed("levels of the topology", "the node labels that clouds and tools are known to set", "")
    return levels


def _stated(
    nodes: Sequence[Described], additions: Sequence[Addition], present: Collection[str], ledger: Ledger
) -> list[_Level]:
    """Return the levels of which objects name the labels; each object's are in its order."""
    levels: list[_Level] = []
    for addition in additions:
        after = 0
        for number, said in enumerate(addition.levels):
            if said.label == HOSTNAME:
                continue
            if said.label not in present:
                ledger.contradiction("a level of the topology with a label that no node has", "the nodes", said.label)
                continue
            at = _index(levels, said.label)
            if at is None:
                later = (_index(levels, other.label) for other in addition.levels[number + 1 :])
                at = next((index for index in later if index is not None), after if after else len(levels))
                if said.name in [level.name for level in levels]:
                    ledger.contradiction("two labels for levels of one name", "the first", said.label)
                name = _name(said.name, said.label, levels)
                levels.insert(at, _Level(name, (said.label,), _column(nodes, said.label)))
            elif said.name != levels[at].name:
                levels[at] = replace(levels[at], labels=(*levels[at].labels, said.name))
            after = at + 1
    return levels


def _index(levels: Sequence[_Level], label: str) -> int | None:
    return next((index for index, level in enumerate(levels) if label in level.labels), None)


def _widen(levels: list[_Level], nodes: Sequence[Described], present: Collection[str], ledger: Ledger) -> None:
    """Add region and zone before the levels that objects say, where these lie within them."""
    for name, label in reversed(WIDEST):
        trial = list(levels)
        _insert(trial, name, label, nodes, present, at=0)
        if len(trial) > len(levels) and _torn(trial) and not _torn(levels):
            ledger.ignored(f"label {label} as a level", "the levels that objects name do not lie within it", "")
        else:
            levels[:] = trial


def _insert(
    levels: list[_Level],
    name: str,
    label: str,
    nodes: Sequence[Described],
    present: Collection[str],
    fabric: bool = False,
    at: int | None = None,
) -> None:
    """Add the level of a label, unless no node has it or another label says the same."""
    if label not in present or label == HOSTNAME or _index(levels, label) is not None:
        return
    domains = _column(nodes, label)
    for index, level in enumerate(levels):
        if level.domains == domains and level.labels:
            levels[index] = replace(level, labels=(*level.labels, label))
            return
    level = _Level(_name(name, label, levels), (label,), domains, fabric)
    last = len(levels) if at is None else at
    levels.insert(_nested(levels, level) if fabric else last, level)


def _tiers(present: set[str]) -> list[tuple[str, str]]:
    """Return the levels of topograph's labels; tier 0 is the switch next to the node."""
    numbers = sorted((int(found[1]), label) for label in present if (found := _TIER.fullmatch(label)))
    return [(f"tier_{number}", label) for number, label in reversed(numbers)]


def _column(nodes: Sequence[Described], label: str) -> tuple[str, ...]:
    return tuple(labels.get(label, "") for _, labels, _ in nodes)


def _name(name: str, label: str, levels: Sequence[_Level]) -> str:
    """Return a name for a level that no other has."""
    taken = {*RESERVED, *(level.name for level in levels)}
    for candidate in (name, label):
        if candidate not in taken:
            return candidate
    return next(candidate for number in range(2, 99) if (candidate := f"{name}_{number}") not in taken)


def _nested(levels: Sequence[_Level], level: _Level) -> int:
    """Return the narrowest place of a level among others at which no domain lies in two; the last where all tear."""
    for place in range(len(levels), -1, -1):
        if not _torn([*levels[:place], level, *levels[place:]]):
            return place
    return len(levels)


# --- domains ---------------------------------------------------------------------------------------------------


def _ways(levels: Sequence[_Level]) -> list[dict[str, dict[tuple[str, ...], int]]]:
    """Return for each level by domain the ways to it, as domains of the wider levels, with a node of each."""
    found: list[dict[str, dict[tuple[str, ...], int]]] = [{} for _ in levels]
    for index, path in enumerate(zip(*(level.domains for level in levels), strict=True)):
        for number, domain in enumerate(path):
            if domain:
                found[number].setdefault(domain, {}).setdefault(path[:number], index)
    return found


def _torn(levels: Sequence[_Level]) -> bool:
    return any(len(ways) > 1 for of_level in _ways(levels) for ways in of_level.values())


def _apart(levels: Sequence[_Level], nodes: Sequence[Described], ledger: Ledger) -> list[tuple[str, ...]]:
    """Return the domains of each level, those of one name in different wider domains named apart."""
    names: list[dict[tuple[tuple[str, ...], str], str]] = []
    for number, of_level in enumerate(_ways(levels)):
        mine: dict[tuple[tuple[str, ...], str], str] = {}
        taken = {domain for domain, ways in of_level.items() if len(ways) == 1}
        for domain, ways in of_level.items():
            for way, index in ways.items():
                name = domain
                if len(ways) > 1:
                    name = _within(way, domain, number, names)
                    while name in taken:
                        name += "+"
                    taken.add(name)
                    what = f"a {levels[number].name} that lies in several domains of a wider level, or in one by part"
                    ledger.contradiction(what, "one for each, named after the wider one", nodes[index][2])
                mine[way, domain] = name
        names.append(mine)
    paths = list(zip(*(level.domains for level in levels), strict=True))
    return [
        tuple(mine[path[:number], path[number]] if path[number] else "" for path in paths)
        for number, mine in enumerate(names)
    ]


def _within(way: tuple[str, ...], domain: str, number: int, names: list[dict[tuple[tuple[str, ...], str], str]]) -> str:
    """Return the name of a domain with that of the nearest wider one before it."""
    for wider in reversed(range(number)):
        if way[wider]:
            return f"{names[wider][way[:wider], way[wider]]}/{domain}"
    return domain
