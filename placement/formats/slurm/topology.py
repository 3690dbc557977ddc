"""The fabric that ``topology.conf`` or ``topology.yaml`` describes."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from placement.formats.documents import convert, documents
from placement.formats.ledger import Ledger
from placement.formats.slurm.conf import Line, lines
from placement.formats.slurm.fabric import Block, Fabric, Switch, of_blocks, of_tree
from placement.formats.source import File
from placement.snapshot.report import show

_CONF = re.compile(rb"(?im)^[ \t]*(switchname|blockname|blocksizes)[ \t]*=")
_YAML = re.compile(rb"(?m)^[ \t]*- +[\"']?topology[\"']?[ \t]*:")
_MODEL = re.compile(rb"(?m)\A(?:[ \t]*#.*\r?\n|[ \t\r]*\n|---\r?\n)*(switches|blocks):[ \t]*\r?$")
_START = 65536


def looks_like(data: bytes) -> bool:
    """Return whether a file is ``topology.conf``, ``topology.yaml`` or a model of a fabric."""
    start = data[:_START].removeprefix(b"\xef\xbb\xbf")
    return any(sign.search(start) for sign in (_CONF, _YAML, _MODEL))


def read(file: File, ledger: Ledger) -> Fabric:
    """Return the fabric that a file describes.

    Parameters
    ----------
    file : File
        ``topology.conf`` with switches or with blocks, or ``topology.yaml``, of which the cluster's default is read.
    ledger : Ledger

    Raises
    ------
    InputError
        If the file is damaged or contradicts itself, or is a model from which other programs make such files.
    """
    start = file.data[:_START].removeprefix(b"\xef\xbb\xbf")
    if _MODEL.search(start):
        raise file.error(
            "this is a model of a fabric (topograph), not a file of Slurm",
            "generate topology.conf or topology.yaml from it",
        )
    fabric = _yaml(file, ledger) if _YAML.search(start) and not _CONF.search(start) else _conf(file, ledger)
    ledger.read("nodes with a place in the fabric", file.name, len(fabric.positions))
    return fabric


# --- topology.conf -------------------------------------------------------------------------------------------

_KEYS = {"switchname", "switches", "nodes", "blockname", "blocksizes"}


def _conf(file: File, ledger: Ledger) -> Fabric:
    switches: list[Switch] = []
    blocks: list[Block] = []
    sizes: list[int] = []
    sized = ""
    for line in lines(file):
        _others(file, line, ledger)
        values = line.values
        kinds = [key for key in ("switchname", "blockname", "blocksizes") if key in values]
        if len(kinds) != 1:
            raise file.error(
                "the line has none, or two, of SwitchName, BlockName and BlockSizes", "correct the line", line.where
            )
        if "switchname" in values:
            switches.append(Switch(values["switchname"], values.get("switches"), values.get("nodes"), line.where))
        elif "blockname" in values:
            blocks.append(Block(values["blockname"], values.get("nodes"), line.where))
        elif sized:
            raise file.error(f"BlockSizes is there twice, first at {sized}", "keep one of them", line.where)
        else:
            sizes, sized = _sizes(file, line), line.where
    if switches and (blocks or sized):
        raise file.error("switches and blocks in one file", "keep what the TopologyPlugin of slurm.conf uses")
    return of_tree(file, switches, ledger) if switches else of_blocks(file, blocks, sizes, ledger, sized)


def _others(file: File, line: Line, ledger: Ledger) -> None:
    """Note what a line says beside the places of nodes."""
    for key in line.values:
        if key == "linkspeed":
            ledger.ignored("LinkSpeed", "Slurm does not use it", f"{file.name}: {line.where}")
        elif key not in _KEYS:
            ledger.ignored(show(key), "the key is not known", f"{file.name}: {line.where}")


def _sizes(file: File, line: Line) -> list[int]:
    text = line.values["blocksizes"]
    parts = text.split(",")
    if not all(re.fullmatch("[0-9]{1,9}", part) for part in parts):
        raise file.error(f"found {show(text)}, expected numbers such as 8,16", "correct BlockSizes", line.where)
    return [int(part) for part in parts]


# --- topology.yaml -------------------------------------------------------------------------------------------


class _Switch(msgspec.Struct, gc=False):
    switch: str
    children: str | None = None
    nodes: str | None = None


class _Tree(msgspec.Struct, gc=False):
    switches: list[_Switch] | None = None


class _Block(msgspec.Struct, gc=False):
    block: str
    nodes: str | None = None


class _Blocks(msgspec.Struct, gc=False):
    block_sizes: list[int] | None = None
    blocks: list[_Block] | None = None


class _Topology(msgspec.Struct, gc=False):
    topology: str
    cluster_default: bool | None = False
    tree: _Tree | None = None
    block: _Blocks | None = None
    flat: Any = None
    ring: Any = None
    torus3d: Any = None

    @property
    def kinds(self) -> list[str]:
        """What it is, which should be one thing."""
        found = [kind for kind in ("tree", "block", "ring", "torus3d") if getattr(self, kind) is not None]
        return found + ["flat"] * (self.flat is not None and self.flat is not False)


_UNSAID = {"ring": "a ring", "torus3d": "a three-dimensional torus"}
"""Kinds of topology that are no levels of domains."""


def _yaml(file: File, ledger: Ledger) -> Fabric:
    found = documents(file)
    if len(found) != 1:
        raise file.error(f"{len(found)} documents, expected one", "give one file for each cluster")
    topologies = convert(found[0][1], list[_Topology], file.name, "")
    seen: set[str] = set()
    for index, one in enumerate(topologies):
        path = f"[{index}]"
        if one.topology in seen:
            raise file.error(f"the topology {show(one.topology)} is there twice", "give it one entry", path)
        if len(one.kinds) != 1:
            kinds = " and ".join(one.kinds) or "nothing"
            raise file.error(
                f"the topology is {kinds}, expected one of tree, block, flat, ring, torus3d", "correct it", path
            )
        seen.add(one.topology)
    if not topologies:
        raise file.error("there is no topology in the list", "dump it again")
    default = _default(file, topologies, ledger)
    for index, one in enumerate(topologies):
        if index != default:
            what, why = f"a topology that is not the cluster's default ({one.kinds[0]})", "a snapshot has one topology"
            place = f"{file.name}: [{index}]"
            if one.kinds[0] in _UNSAID:
                ledger.unsupported(what, f"{why}, made of levels, and {_UNSAID[one.kinds[0]]} has none", place)
            else:
                ledger.ignored(what, why, place)
    return _fabric(file, topologies[default], f"[{default}]", ledger)


def _default(file: File, topologies: list[_Topology], ledger: Ledger) -> int:
    """Return which topology counts where a partition names none; Slurm takes the first that says so."""
    said = [index for index, one in enumerate(topologies) if one.cluster_default]
    if len(said) > 1:
        ledger.contradiction("several topologies that are the cluster's default", "the first of them is", file.name)
    if not said and len(topologies) > 1:
        ledger.assumed("no topology is the cluster's default", "the first one is", file.name)
    return said[0] if said else 0


def _fabric(file: File, topology: _Topology, path: str, ledger: Ledger) -> Fabric:
    if topology.tree is not None:
        switches = [
            Switch(one.switch, one.children, one.nodes, f"{path}.tree.switches[{index}]")
            for index, one in enumerate(topology.tree.switches or ())
        ]
        return of_tree(file, switches, ledger)
    if topology.block is not None:
        blocks = [
            Block(one.block, one.nodes, f"{path}.block.blocks[{index}]")
            for index, one in enumerate(topology.block.blocks or ())
        ]
        return of_blocks(file, blocks, topology.block.block_sizes or (), ledger, f"{path}.block.block_sizes")
    kind = topology.kinds[0]
    if kind in _UNSAID:
        what, why = f"the cluster's topology ({kind})", f"a topology is made of levels, and {_UNSAID[kind]} has none"
        ledger.unsupported(what, why, f"{file.name}: {path}")
    return Fabric()
