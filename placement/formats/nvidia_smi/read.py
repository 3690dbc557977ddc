"""What nvidia-smi printed on a node, to what a snapshot says of its cards.

Alone it makes a node; beside a scheduler's view of the cluster it adds what only the node itself knows: links, zones,
NICs, the slots of MIG instances, and which cards are at work whatever the scheduler believes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

import msgspec

from placement.errors import InputError
from placement.formats.ledger import Ledger
from placement.formats.nvidia_smi import listing, mig, query, table, topology
from placement.formats.nvidia_smi.apply import applied
from placement.formats.nvidia_smi.busy import holding, on_nodes
from placement.formats.nvidia_smi.facts import Facts, merge
from placement.formats.slurm.hostlist import expand
from placement.formats.source import File
from placement.snapshot import Node, Snapshot
from placement.snapshot.fields import wrong_name
from placement.snapshot.report import names, show

NODE = "node"
"""Name of a node that no one named."""


def read(files: Sequence[File], snapshot: Snapshot | None, ledger: Ledger) -> Snapshot:
    """Return a snapshot with what the files say of its nodes.

    Parameters
    ----------
    files : sequence of File
        Each of the node, or the nodes that match the pattern, in `File.node`; without one, of the only node with cards,
        or of a node called ``node``.
    snapshot : Snapshot, optional
        None: the nodes are those of the files.
    ledger : Ledger
        Gets what was read, assumed and ignored.

    Raises
    ------
    InputError
        If a file is none of the outputs that are known, is damaged, or is about no node of the snapshot.
    """
    believed = snapshot is not None
    if snapshot is None:
        snapshot = _new(files)
    found: dict[int, list[tuple[File, bool]]] = {}
    for file in files:
        matches = _matches(file, snapshot)
        several = len(matches) > 1 or snapshot.nodes[matches[0]].count > 1
        for index in matches:
            found.setdefault(index, []).append((file, not several))
    parsed = {id(file): _parsed(file, ledger) for file in files}
    for file in files:
        _judge_names(file, parsed[id(file)])
    held = on_nodes(snapshot)
    nodes, jobs = list(snapshot.nodes), list(snapshot.jobs)
    for index, of_node in sorted(found.items()):
        node = nodes[index]
        if any(gpu.mig_instance for gpu in node.gpus):
            what = "nvidia-smi on a node where MIG instances that pods share are cards of their own"
            ledger.unsupported(what, "its numbers of cards are not those of the node", of_node[0][0].name)
            continue
        known = False
        for of_one in (False, True):
            facts = [one for file, alone in of_node if alone == of_one and (one := parsed[id(file)]) is not None]
            if facts:
                whole = merge(facts, ledger)
                nodes[index] = applied(nodes[index], whole, held.get(node.name, {}), of_one, ledger)
                jobs += holding(nodes[index], whole, held.get(node.name, {}), of_one, believed, ledger)
                known = True
        if not known and not believed:
            what = f"nothing in it says which cards {show(node.name)} has"
            raise of_node[0][0].error(what, "give what nvidia-smi -q -x prints too")
        models = dict(enumerate(gpu.model for gpu in nodes[index].gpus for _ in range(gpu.count)))
        for file, _ in of_node:
            if _kind(file) == "profiles":
                mig.profiles(file, models, ledger)
    ledger.read("outputs of nvidia-smi", count=len(files))
    return msgspec.structs.replace(snapshot, nodes=tuple(nodes), jobs=tuple(jobs))


def _judge_names(file: File, facts: Facts | None) -> None:
    for card in facts.cards.values() if facts is not None else ():
        for name in (card.model, card.uuid):
            if name and (what := wrong_name(name)):
                raise file.error(f"a card: {what}", "print it again", card.where.removeprefix(f"{file.name}: "))


def _new(files: Sequence[File]) -> Snapshot:
    """Return a snapshot of empty nodes, one for each name that the user gave."""
    for file in files:
        if re.search(r"[*?\[]", file.node):
            what = f"{show(file.node)} is a pattern, and no other file lists the nodes"
            raise file.error(what, "name one node: NODE=FILE")
    return Snapshot(nodes=tuple(Node(name=name) for name in dict.fromkeys(file.node or NODE for file in files)))


def _matches(file: File, snapshot: Snapshot) -> list[int]:
    """Return the entries of the nodes that a file is about."""
    nodes = snapshot.nodes
    if file.node:
        listed = _listed(file.node)
        found = [
            index
            for index, node in enumerate(nodes)
            if node.name == file.node or node.name in listed or fnmatchcase(node.name, file.node)
        ]
        if not found:
            known = names([node.name for node in nodes])
            raise file.error(f"no node is called {show(file.node)}", f"the nodes are {known}")
        return found
    every = range(len(nodes))
    for found in (
        list(every),
        [index for index in every if nodes[index].gpus],
        [index for index in every if nodes[index].name == NODE],
    ):
        if len(found) == 1:
            return found
    raise file.error("it does not say which node it is of", "name the node, or a pattern of nodes: NODE=FILE")


def _listed(pattern: str) -> frozenset[str]:
    """Return the nodes that a pattern stands for if it is a list such as Slurm's ``n[1-12]``."""
    if "[" not in pattern:
        return frozenset()
    try:
        return frozenset(expand(pattern))
    except InputError:
        return frozenset()


def _kind(file: File) -> str:
    """Return which output a file is, by what is in it."""
    text = topology.ANSI.sub("", file.data.decode("utf-8", "replace"))
    if "<nvidia_smi_log" in text:
        return "xml"
    if "NVSMI LOG" in text:
        return "text"
    for pattern, name in (
        (mig.PROFILES, "profiles"),
        (mig.COMPUTE, "compute"),
        (mig.INSTANCES, "instances"),
        (listing.SIGN, "listing"),
    ):
        if pattern.search(text):
            return name
    if table.is_table(text):
        return "table"
    return "topology" if any(topology.HEADER.match(line) for line in text.split("\n")) else ""


def _parsed(file: File, ledger: Ledger) -> Facts | None:
    """Return what a file says of cards; None where it says nothing of them.

    Raises
    ------
    InputError
        If it is no output that is known, or damaged.
    """
    kind = _kind(file)
    if kind == "profiles":
        return None
    if kind == "topology":
        return Facts(file, matrix=topology.read(file))
    if kind == "xml":
        return query.xml(file, ledger)
    if kind == "text":
        return query.text(file, ledger)
    if kind == "listing":
        return listing.read(file)
    if kind == "table":
        return table.read(file, ledger)
    if kind == "instances":
        return mig.instances(file)
    if kind == "compute":
        # compute instances split a GPU instance, and a snapshot has GPU instances
        ledger.ignored("compute instances", "a MIG instance is taken as a whole", file.name)
        return None
    known = "-q -x, -q, -L, --query-gpu=… --format=csv, topo -m, mig -lgi, -lci or -lgip"
    raise file.error("it is no output of nvidia-smi that is known", f"print it with {known}")
