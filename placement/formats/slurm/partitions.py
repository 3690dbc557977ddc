"""Partitions and reservations: who may use which nodes, and when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from placement.formats.kubernetes.objects import Item
from placement.formats.ledger import Ledger
from placement.formats.slurm.hostlist import expand
from placement.formats.slurm.names import Entry
from placement.formats.slurm.nodes import Host
from placement.formats.slurm.numbers import moment, value, whole, wrong
from placement.formats.slurm.records import PartitionRecord, ReservationRecord, texts
from placement.snapshot import Reservation
from placement.snapshot.fields import MOST_MOMENT, wrong_name
from placement.snapshot.report import show

RECURRING = frozenset({"DAILY", "WEEKLY", "HOURLY", "WEEKDAY", "WEEKEND", "REOCCURRING"})


@dataclass(frozen=True, slots=True)
class Partitions:
    """Partitions by name.

    Attributes
    ----------
    members : mapping of str to frozenset of str
        Nodes.
    states : mapping of str to frozenset of str
        Of those that a record describes.
    exclusive : frozenset of str
        Those whose jobs share their nodes with nobody.
    """

    members: Mapping[str, frozenset[str]]
    states: Mapping[str, frozenset[str]]
    exclusive: frozenset[str]


def read(items: Sequence[Item[PartitionRecord]], hosts: Mapping[str, Host], ledger: Ledger) -> Partitions:
    """Return the partitions, from their own records and from what the nodes say.

    Raises
    ------
    InputError
        If a record is not right.
    """
    members: dict[str, set[str]] = {}
    for host in hosts.values():
        for name in host.partitions:
            members.setdefault(name, set()).add(host.name)
    states: dict[str, frozenset[str]] = {}
    exclusive: set[str] = set()
    for item in items:
        record = item.value
        name = record.name.rstrip("*")
        if not name:
            raise wrong(item, "name", "the partition has no name")
        listed = expand(record.hosts, item.file, f"{item.path}.nodes") if record.hosts != "ALL" else tuple(hosts)
        members.setdefault(name, set()).update(node for node in listed if node in hosts)
        if any(node not in hosts for node in listed):
            ledger.ignored("nodes of a partition that are in no file", "nothing is known of them", item.where)
        states[name] = frozenset(record.states)
        most = record.maximums
        if most is not None:
            if most.shares is not None and whole(item, "maximums.shares", most.shares, short=True) == 0:
                exclusive.add(name)
            if whole(item, "maximums.nodes", most.nodes):
                what = "most nodes of a job in a partition"
                ledger.unsupported(what, "a snapshot has no place for it", item.where, item.file)
    ledger.read("partitions", count=len(members))
    return Partitions({name: frozenset(nodes) for name, nodes in members.items()}, states, frozenset(exclusive))


def reservations(
    items: Sequence[Item[ReservationRecord]],
    hosts: Mapping[str, Host],
    entries: Mapping[str, Entry],
    time: float,
    ledger: Ledger,
) -> tuple[Reservation, ...]:
    """Return the reservations that have not ended, with the jobs that asked for each.

    Raises
    ------
    InputError
        If a record is not right.
    """
    jobs: dict[str, list[str]] = {}
    for entry in entries.values():
        for name in texts(entry.item.value.resv_name):
            jobs.setdefault(name, []).append(entry.name)
    found: dict[str, Reservation] = {}
    for item in items:
        record = item.value
        if wrong_name(record.name) is not None:
            raise wrong(item, "name", f"{show(record.name)} is no name of a reservation")
        listed = dict.fromkeys(expand(record.node_list or "", item.file, f"{item.path}.node_list"))
        nodes = tuple(node for node in listed if node in hosts)
        if len(nodes) < len(listed):
            ledger.ignored("nodes of a reservation that are in no file", "nothing is known of them", item.where)
        start = moment(item, "start_time", record.start_time) or 0.0
        end = moment(item, "end_time", record.end_time)
        if end is None:
            if value(record.end_time) != float("inf"):
                ledger.assumed("end of a reservation", "never", item.where)
            end = MOST_MOMENT
        flags = {flag.upper() for flag in texts(record.flags)}
        if end <= time:
            ledger.ignored("reservations that have ended", "their nodes are free of them", item.where)
            continue
        if not nodes:
            ledger.ignored("reservations without nodes", "there is nothing to set aside", item.where)
            continue
        if end <= start:
            raise wrong(item, "end_time", "the reservation ends before it starts")
        if flags & RECURRING:
            what = "reservations that come again"
            ledger.unsupported(what, "only the next time is kept free", item.where, item.file)
        if "MAGNETIC" in flags:
            ledger.assumed("jobs that a magnetic reservation draws in", "those that name it", item.where)
        cores = whole(item, "core_count", record.core_count) or 0
        if cores and all(host.cores and host.sockets for host in map(hosts.__getitem__, nodes)):
            all_cores = sum((hosts[node].cores or 0) * (hosts[node].sockets or 0) for node in nodes)
            if cores < all_cores:
                ledger.assumed("reservations of some cores", "whole nodes", item.where)
        if record.name in found:
            raise wrong(item, "name", "another reservation has this name")
        who = () if "MAINT" in flags else tuple(jobs.get(record.name, ()))
        found[record.name] = Reservation(name=record.name, nodes=nodes, start=start, end=end, jobs=who)
    if items:
        ledger.read("reservations", count=len(found))
    return tuple(found.values())
