"""What Slurm's commands and configuration files say, to a snapshot.

.. code-block:: text

    nodes, sinfo ────────> hosts ───┬─────────────────────────┐
    jobs that run ──> claims ───────┴─> held: cards, CPU, ... ─┼─> nodes and jobs
    jobs that wait ─> asks, labels ───────────────────────────┘
    topology.conf ──> positions     reservations ─> reservations
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import msgspec

from placement.collector import collector_paused
from placement.errors import InputError
from placement.formats.documents import Value, convert, documents
from placement.formats.kubernetes.objects import Item
from placement.formats.ledger import Ledger
from placement.formats.options import Options
from placement.formats.slurm import gres_conf, held, jobs, names, nodes, partitions, text, topology
from placement.formats.slurm.claims import claims, exclusive
from placement.formats.slurm.fabric import Fabric
from placement.formats.slurm.labels import Labels
from placement.formats.slurm.names import Entry
from placement.formats.slurm.nodes import Host
from placement.formats.slurm.numbers import Field, moment
from placement.formats.slurm.partitions import Partitions
from placement.formats.slurm.records import (
    JobRecord,
    NodeRecord,
    PartitionRecord,
    ReservationRecord,
    SinfoRecord,
    texts,
)
from placement.formats.source import File
from placement.snapshot import Job, Node, Reservation, Snapshot, Task, TaskGroup

T = TypeVar("T")

ALONE = "slurm/node"
"""Countable resource of every node, where jobs wait that share theirs with nobody: these take all of it."""

MOST_TOGETHER = 10**6
"""How much of it there is: every other task takes 1."""


class _Dump(msgspec.Struct, gc=False):
    """What a command prints with ``--json``."""

    nodes: list[msgspec.Raw] | None = None
    sinfo: list[msgspec.Raw] | None = None
    jobs: list[msgspec.Raw] | None = None
    partitions: list[msgspec.Raw] | None = None
    reservations: list[msgspec.Raw] | None = None
    last_update: Field = None
    errors: list[msgspec.Raw] | None = None


@dataclass(slots=True)
class _Records:
    """All that the files say, by kind."""

    nodes: list[Item[NodeRecord]] = field(default_factory=list)
    jobs: list[Item[JobRecord]] = field(default_factory=list)
    partitions: list[Item[PartitionRecord]] = field(default_factory=list)
    reservations: list[Item[ReservationRecord]] = field(default_factory=list)
    fabric: Fabric | None = None
    devices: dict[str, tuple[gres_conf.GresLine, ...]] | None = None
    updates: list[float] = field(default_factory=list)
    says_jobs: bool = False
    described: set[str] = field(default_factory=set)


def read(files: Sequence[File], options: Options, ledger: Ledger) -> Snapshot:
    """Return the snapshot of a Slurm cluster.

    Parameters
    ----------
    files : sequence of File
        In any order: ``scontrol show nodes|jobs|partitions|reservations`` with ``--json`` or as text,
        ``squeue --json``, ``sinfo --json``, ``topology.conf``, ``topology.yaml`` and ``gres.conf``.
    options : Options
    ledger : Ledger
        Gets what was read, assumed and ignored.

    Raises
    ------
    InputError
        If a file is none of these, or is damaged, or no file describes nodes.
    """
    with collector_paused():
        records = _Records()
        for file in files:
            _add(file, records, ledger)
        if not records.nodes:
            listed = ", ".join(file.name for file in files)
            raise InputError.one(f"there is no node in {listed}", "add what `scontrol show nodes --json` prints")
        hosts = _configured(nodes.read(records.nodes, ledger), records.devices, ledger)
        entries = names.entries(records.jobs, ledger)
        time = _time(records, entries, options, ledger)
        parts = partitions.read(records.partitions, hosts, ledger)
        reserved = partitions.reservations(records.reservations, hosts, entries, time, ledger)
        fabric = records.fabric
        around = jobs.Surroundings(
            hosts=hosts,
            labels=Labels(hosts, parts.members),
            levels=() if fabric is None else fabric.levels,
            apart=fabric is not None and fabric.apart,
            reserved={one.name: frozenset(one.nodes) for one in reserved},
            partitions=parts.states,
            time=time,
            priorities=jobs.priorities(entries),
        )
        if entries:
            ledger.assumed("priority of jobs", "that of Slurm: a job of a higher one comes first, whatever waits")
            ledger.assumed("whether running jobs may be stopped for others", "no: their records do not say it")
            ledger.ignored(
                "limits of accounts, users and QOS", "they are in the accounting database, not in these files"
            )
        if options.levels:
            ledger.ignored("levels that were named with node labels", "the levels of Slurm are those of its topology")
        made = _jobs(entries, around, records.says_jobs, ledger)
        called = {job.name for job in made}
        reserved = tuple(
            msgspec.structs.replace(one, jobs=tuple(name for name in one.jobs if name in called)) for one in reserved
        )
        alone = _alone(entries, parts)
        if alone:
            made = tuple(_with_company(job, MOST_TOGETHER if job.name in alone else 1) for job in made)
        return Snapshot(
            time=time,
            topology=around.levels,
            nodes=_nodes(around, fabric, reserved, {ALONE: MOST_TOGETHER} if alone else {}, ledger),
            reservations=reserved,
            jobs=made,
        )


# --- files ---------------------------------------------------------------------------------------------------


def _add(file: File, records: _Records, ledger: Ledger) -> None:
    start = file.data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if start == b"{":
        for path, value in documents(file):
            _json(file, path, value, records, ledger)
    elif topology.looks_like(file.data):
        if records.fabric is not None:
            raise file.error("a second topology", "give one of them")
        records.fabric = topology.read(file, ledger)
    elif text.looks_like(file.data):
        records.nodes += _items(file, "", text.nodes(file, ledger), NodeRecord)
        found = text.jobs(file, ledger)
        records.jobs += _items(file, "", found, JobRecord)
        records.says_jobs |= bool(found)
        records.partitions += _items(file, "", text.partitions(file, ledger), PartitionRecord)
        records.reservations += _items(file, "", text.reservations(file, ledger), ReservationRecord)
    elif gres_conf.looks_like(file.data):
        if records.devices is not None:
            raise file.error("a second gres.conf", "give one of them")
        records.devices = gres_conf.read(file, ledger)
    else:
        raise file.error(
            "it is nothing that Slurm prints or reads", "give what `scontrol show nodes --json` prints, for instance"
        )


def _json(file: File, path: str, value: Value, records: _Records, ledger: Ledger) -> None:
    dump = convert(value, _Dump, file.name, path)
    lists = (dump.nodes, dump.sinfo, dump.jobs, dump.partitions, dump.reservations)
    if dump.errors:
        if not any(lists):
            raise file.error("Slurm says that the command failed", "run it again", f"{path}.errors".strip("."))
        ledger.contradiction("Slurm says that the command failed in part", "what it printed", file.name)
    if all(listed is None for listed in lists):
        raise file.error(
            "there is none of `nodes`, `sinfo`, `jobs`, `partitions`, `reservations`", "print it with --json", path
        )
    update = moment(Item(file.name, path, dump), "last_update", dump.last_update)
    records.updates += [] if update is None else [update]
    records.says_jobs |= dump.jobs is not None
    # what says most of a node comes first
    records.nodes += _items(file, f"{path}.nodes", dump.nodes or (), NodeRecord)
    for item in _items(file, f"{path}.sinfo", dump.sinfo or (), SinfoRecord):
        records.nodes += [Item(item.file, item.path, node) for node in item.value.records()]
        described = item.value.partition
        if described is not None and described.name and described.name not in records.described:
            records.described.add(described.name)
            records.partitions.append(Item(item.file, f"{item.path}.partition", described))
    records.jobs += _items(file, f"{path}.jobs", dump.jobs or (), JobRecord)
    records.partitions += _items(file, f"{path}.partitions", dump.partitions or (), PartitionRecord)
    records.reservations += _items(file, f"{path}.reservations", dump.reservations or (), ReservationRecord)


def _items(file: File, path: str, values: Sequence[Value], record: type[T]) -> list[Item[T]]:
    found = []
    for index, value in enumerate(values):
        where = f"{path}[{index}]".removeprefix(".") if path else f"record {index + 1}"
        found.append(Item(file.name, where, convert(value, record, file.name, where)))
    return found


def _configured(
    hosts: Mapping[str, Host], devices: Mapping[str, tuple[gres_conf.GresLine, ...]] | None, ledger: Ledger
) -> Mapping[str, Host]:
    """Return the nodes with the cores near their cards that gres.conf lists; note what it has otherwise than they."""
    if devices is None:
        return hosts
    found = {}
    for host in hosts.values():
        lines = [*devices.get(host.name, ()), *devices.get(gres_conf.ALL_NODES, ())]
        configured = gres_conf.cards(tuple(lines)) if lines else None
        there = sum(gres.count for gres in host.gres if gres.name == "gpu")
        if configured is not None and configured != there:
            what = "gres.conf has another number of cards than the node"
            ledger.contradiction(what, "the node", host.item.where)
        beyond = [(one, gres_conf.beyond(one, host.all_cores)) for one in lines if host.all_cores]
        wrong = [(one, highest) for one, highest in beyond if highest is not None]
        for one, highest in wrong:
            ledger.contradiction(
                "gres.conf lists cores that the node does not have; they may be CPUs as nvidia-smi numbers them",
                "the node; the line says no cores",
                f"gres.conf: {one.where}: core {highest}, and {host.name} has {host.all_cores}",
            )
        right = [one for one in lines if all(one is not other for other, _ in wrong)]
        plain = all(number == card for number, card in host.numbering.items())
        found[host.name] = replace(host, near=gres_conf.near(right, host.models) if plain else ())
    return found


def _time(records: _Records, entries: Mapping[str, Entry], options: Options, ledger: Ledger) -> float:
    """Return the moment of the snapshot."""
    if options.time is not None:
        return options.time
    if records.updates:
        return max(records.updates)
    found = [
        moment(entry.item, name, getattr(entry.item.value, name)) or 0.0
        for entry in entries.values()
        for name in ("submit_time", "start_time")[: 1 + entry.holds]
    ]
    ledger.assumed("moment of the snapshot", "the latest time in it; --time says another")
    return max(found, default=0.0)


# --- the snapshot --------------------------------------------------------------------------------------------


def _jobs(entries: Mapping[str, Entry], around: jobs.Surroundings, says_jobs: bool, ledger: Ledger) -> tuple[Job, ...]:
    """Return the jobs, and a stand-in for each node on which something runs that no job explains."""
    claimed: dict[str, list[tuple[str, held.Claim]]] = {name: [] for name in around.hosts}
    for entry in entries.values():
        if entry.holds:
            for node, claim in claims(entry.item, around.hosts, ledger).items():
                claimed[node].append((entry.name, claim))
    has: dict[str, list[tuple[str, held.Held]]] = {}
    rest: list[Job] = []
    for node, host in around.hosts.items():
        mine, others = held.settle(host, [claim for _, claim in claimed[node]], says_jobs, ledger)
        for (name, _), one in zip(claimed[node], mine, strict=True):
            has.setdefault(name, []).append((node, one))
        if others.anything:
            ledger.assumed("work on a node that no job explains", "a running job in its place", host.item.where)
            rest.append(jobs.unknown(node, others))
    after = names.Dependencies(entries)
    made = []
    for entry in entries.values():
        if not entry.holds:
            made.append(jobs.waiting(entry, around, after, ledger))
        elif entry.name in has:
            made.append(jobs.running(entry, has[entry.name], around, ledger))
    gone = {entry.name for entry in entries.values() if entry.holds and entry.name not in has}
    kept = [
        msgspec.structs.replace(job, after=tuple(name for name in job.after if name not in gone))
        if gone & {*job.after}
        else job
        for job in made
    ]
    return (*kept, *rest)


def _alone(entries: Mapping[str, Entry], parts: Partitions) -> frozenset[str]:
    """Return the jobs that wait and share their nodes with nobody."""
    return frozenset(
        entry.name
        for entry in entries.values()
        if not entry.holds and (exclusive(entry.item.value) or parts.exclusive & {*texts(entry.item.value.partition)})
    )


def _with_company(job: Job, amount: int) -> Job:
    def task(one: Task | None) -> Task | None:
        return one and msgspec.structs.replace(one, extended={**one.extended, ALONE: amount})

    def group(one: TaskGroup) -> TaskGroup:
        return msgspec.structs.replace(one, task=task(one.task), groups=tuple(map(group, one.groups)))

    return msgspec.structs.replace(job, groups=tuple(map(group, job.groups)))


def _nodes(
    around: jobs.Surroundings,
    fabric: Fabric | None,
    reserved: Sequence[Reservation],
    extended: Mapping[str, int],
    ledger: Ledger,
) -> tuple[Node, ...]:
    known = {one.name for one in reserved}
    now = {node for one in reserved if one.start <= around.time for node in one.nodes}
    found = []
    for name, host in around.hosts.items():
        named = bool(host.reservation) and host.reservation not in known
        aside = named or ("RESERVED" in host.states and name not in now)
        if aside:
            what = "a node in a reservation that no file describes"
            ledger.assumed(
                what, "until when is not known: only jobs of this reservation may start on it", host.item.where
            )
        position = {} if fabric is None else fabric.positions.get(name, {})
        if fabric is not None and not position:
            ledger.contradiction("a node is not in the topology", "it is in no domain", host.item.where)
        found.append(nodes.node(host, position, around.labels.by_node[name], aside, extended))
    for name in () if fabric is None else fabric.positions:
        if name not in around.hosts:
            ledger.ignored("nodes in the topology that are in no other file", "nothing is known of them", name)
    return tuple(found)
