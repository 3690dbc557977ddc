"""The fabric of a Slurm cluster: levels of domains, and the position of each node in them.

Of a tree the levels are counted from the leaves: ``switch`` is the switch that nodes are on, ``switch-2`` the one above
it. A switch that hangs further up than others of its height stands for itself at the levels between, so that what fits
into it fits into one domain there as well. Of blocks the narrowest level is ``block``; a block size of n times the
smallest one is a level ``block-xn``, whose domains are n blocks that follow each other in the file (topology.conf(5)).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from placement.formats.ledger import Ledger
from placement.formats.slurm.conf import Names
from placement.formats.slurm.hostlist import compress
from placement.formats.source import File
from placement.snapshot.report import show

OUTSIDE = "no-topology"
"""Switch under which generated files keep the nodes that are not on the fabric."""

MOST_LEVELS = 16
"""Most levels of a snapshot, and of block sizes in Slurm."""


@dataclass(frozen=True, slots=True)
class Fabric:
    """Domains of the nodes of a cluster.

    Attributes
    ----------
    levels : tuple of str
        From wide to narrow.
    positions : dict of str to dict of str to str
        Domain by level of each node that is on the fabric.
    apart : bool
        Whether the fabric has several parts that are not connected: then Slurm runs no job on nodes of two domains of
        the widest level, nor on nodes of one and nodes outside the fabric.
    """

    levels: tuple[str, ...] = ()
    positions: dict[str, dict[str, str]] = field(default_factory=dict)
    apart: bool = False


@dataclass(frozen=True, slots=True)
class Switch:
    """A switch as a file gives it; `children` and `nodes` are lists of names as text."""

    name: str
    children: str | None
    nodes: str | None
    where: str


@dataclass(frozen=True, slots=True)
class Block:
    """A block as a file gives it; `nodes` is a list of names as text."""

    name: str
    nodes: str | None
    where: str


def of_tree(file: File, switches: Sequence[Switch], ledger: Ledger) -> Fabric:
    """Return the fabric of switches in a tree, or in several.

    Raises
    ------
    InputError
        If a name is given twice or missing, a switch has two parents or is above itself, or has nodes and switches.
    """
    names = Names(file)
    switches = _inside(file, switches, names, ledger)
    parents = _parents(file, switches, names)
    heights = _heights(file, switches, parents)
    tallest = max(heights.values(), default=0)
    if tallest > MOST_LEVELS:
        raise file.error(f"switches in {tallest} levels, expected {MOST_LEVELS} at most", "leave levels out")
    levels = tuple("switch" if height == 1 else f"switch-{height}" for height in range(tallest, 0, -1))
    positions: dict[str, dict[str, str]] = {}
    for switch in switches:
        chain = _chain(switch.name, parents, heights, tallest)
        position = {level: chain[height] for level, height in zip(levels, range(tallest, 0, -1), strict=True)}
        _place(positions, names.of(switch.nodes, switch.where), position, f"{file.name}: {switch.where}", ledger)
    roots = sum(switch.name not in parents for switch in switches)
    if roots > 1:
        ledger.assumed("a fabric of several trees", "Slurm keeps each job within one of them", file.name)
    return Fabric(levels, positions, apart=roots > 1)


def of_blocks(file: File, blocks: Sequence[Block], sizes: Sequence[int], ledger: Ledger, where: str) -> Fabric:
    """Return the fabric of blocks.

    Parameters
    ----------
    file : File
    blocks : sequence of Block
        In the order of the file, by which they are put together to larger ones.
    sizes : sequence of int
        Nodes of a block, and of those that blocks are put together to; empty where the file does not say.
    ledger : Ledger
    where : str
        Of the sizes.

    Raises
    ------
    InputError
        If a name is given twice, or a size is not a power of two times the first one.
    """
    _once(file, [(block.name, block.where) for block in blocks], "block")
    names, positions = Names(file), dict[str, dict[str, str]]()
    if any(after <= before for before, after in pairwise((0, *sizes))):
        raise file.error("the block sizes do not increase from 1 on", "list each once, the smallest first", where)
    many = [_times(file, size, sizes[0], where) for size in sizes[1:]]
    levels = {"block": 1, **{f"block-x{times}": times for times in many}}
    if not sizes:
        ledger.assumed("no block sizes", "blocks are one level, not put together to larger ones", file.name)
    elif blocks:
        default = "levels of the topology, to which no job is bound unless it says so"
        ledger.assumed("block sizes", default, f"{file.name}: {where}")
    order = [block.name for block in blocks]
    wide = tuple(reversed(levels))
    domain: dict[str, str] = {}
    for index, block in enumerate(blocks):
        nodes = names.of(block.nodes, block.where)
        if sizes and len(nodes) < sizes[0]:
            what = "a block with fewer nodes than the smallest block size"
            ledger.contradiction(what, "it is a domain of the nodes that it has", f"{file.name}: {block.where}")
        for level, times in levels.items():
            if index % times == 0:
                domain[level] = block.name if times == 1 else _together(order[index : index + times])
        position = {level: domain[level] for level in wide}
        _place(positions, nodes, position, f"{file.name}: {block.where}", ledger)
    return Fabric(wide if blocks else (), positions)


def _once(file: File, given: Sequence[tuple[str, str]], kind: str) -> None:
    """Refuse a name that is given twice, or is none."""
    first: dict[str, str] = {}
    for name, where in given:
        if not name or not name.isprintable() or name.isspace():
            raise file.error(f"{show(name)} is no name of a {kind}", f"name the {kind}", where)
        if name in first:
            raise file.error(
                f"the {kind} {show(name)} is there twice, first at {first[name]}", "give it one entry", where
            )
        first[name] = where


def _place(
    positions: dict[str, dict[str, str]], nodes: Sequence[str], position: dict[str, str], where: str, ledger: Ledger
) -> None:
    """Put nodes at a position, but for those that have another one."""
    for node in nodes:
        if positions.setdefault(node, position) is not position:
            ledger.contradiction("a node in two places of the fabric", "it is where the file names it first", where)


# --- trees ---------------------------------------------------------------------------------------------------


def _inside(file: File, switches: Sequence[Switch], names: Names, ledger: Ledger) -> list[Switch]:
    """Return the switches but for that of nodes which are not on the fabric."""
    _once(file, [(switch.name, switch.where) for switch in switches], "switch")
    found = []
    for switch in switches:
        if switch.children and switch.nodes:
            raise file.error(
                f"the switch {show(switch.name)} has nodes and switches, which Slurm does not take",
                "put its nodes on a switch of their own",
                switch.where,
            )
        if switch.name == OUTSIDE and not switch.children:
            for _ in names.of(switch.nodes, switch.where):
                ledger.assumed(
                    f"nodes of the switch {OUTSIDE}", "they are in no domain", f"{file.name}: {switch.where}"
                )
        else:
            found.append(switch)
    return found


def _parents(file: File, switches: Sequence[Switch], names: Names) -> dict[str, str]:
    """Return the switch above each that has one."""
    known = {switch.name for switch in switches}
    parents: dict[str, str] = {}
    for switch in switches:
        for child in names.of(switch.children, switch.where):
            if child not in known:
                raise file.error(f"the switch {show(child)} is not in the file", "add it", switch.where)
            if parents.setdefault(child, switch.name) != switch.name:
                both = f"{show(parents[child])} and {show(switch.name)}"
                raise file.error(
                    f"the switch {show(child)} is below both {both}", "keep it below one of them", switch.where
                )
    return parents


def _heights(file: File, switches: Sequence[Switch], parents: dict[str, str]) -> dict[str, int]:
    """Return how many levels each switch and those below it make."""
    waits = Counter(parents.values())
    heights = {switch.name: 1 for switch in switches}
    free = [switch.name for switch in switches if not waits[switch.name]]
    for name in free:
        above = parents.get(name)
        if above is not None:
            heights[above] = max(heights[above], heights[name] + 1)
            waits[above] -= 1
            if not waits[above]:
                free.append(above)
    if len(free) < len(switches):
        done = set(free)
        first = next(switch for switch in switches if switch.name not in done)
        raise file.error(f"the switch {show(first.name)} is above itself", "correct the switches", first.where)
    return heights


def _chain(name: str, parents: dict[str, str], heights: dict[str, int], tallest: int) -> dict[int, str]:
    """Return the switch that stands for a leaf at each height."""
    chain: dict[int, str] = {}
    height, at = 1, name
    while True:
        above = parents.get(at)
        until = tallest if above is None else heights[above] - 1
        for reached in range(height, until + 1):
            chain[reached] = at
        if above is None:
            return chain
        height, at = heights[above], above


# --- blocks --------------------------------------------------------------------------------------------------


def _together(names: Sequence[str]) -> str:
    """Return the name that Slurm gives to several blocks: a list with ranges."""
    try:
        return compress(names)
    except ValueError:
        return ",".join(names)


def _times(file: File, size: int, smallest: int, where: str) -> int:
    """Return how many blocks of the smallest size a size is."""
    times, rest = divmod(size, smallest)
    if rest or times < 1 or times & (times - 1) or times >= 2**MOST_LEVELS:
        raise file.error(
            f"the block size {show(size)} is not {smallest} times a power of two", "correct the block sizes", where
        )
    return times
