"""Node records to nodes: what each has, what of it is in use, and whether it takes work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from placement.formats.kubernetes.objects import Item
from placement.formats.ledger import Ledger
from placement.formats.slurm import states
from placement.formats.slurm.gres import Gres, allocated, parse
from placement.formats.slurm.numbers import Number, value, whole, wrong
from placement.formats.slurm.records import NodeRecord, texts
from placement.snapshot import Gpu, Node, NumaZone, Taint
from placement.snapshot.fields import MOST_CARDS, MOST_ZONES, wrong_name
from placement.snapshot.report import show

UNTYPED = "gpu"
"""Model of cards of which Slurm does not say the type."""

PARTITION = "slurm/partition/"
FEATURE = "slurm/feature/"
RESERVED = "slurm/reservation"
"""Key of the taint of nodes in a reservation that no file describes; of every one the label, with a slash and name."""


@dataclass(frozen=True, slots=True)
class Host:
    """A node as Slurm sees it.

    Attributes
    ----------
    item : Item
        Its first record.
    name : str
    states : frozenset of str
    gres : tuple of Gres
    used : tuple of Gres, optional
        None where no record says it.
    cpus, memory : int, optional
        What jobs may have: threads; MiB.
    alloc_cpus, alloc_memory : int
        What they have of it.
    partitions, features : tuple of str
    reservation : str
    owned : bool
        Whether one user has all of it.
    sockets, cores, threads : int, optional
        Of the node; of a socket; of a core.
    near : tuple of frozenset of int
        Cores near each card, by its index; empty where nothing says them.
    """

    item: Item[NodeRecord]
    name: str
    states: frozenset[str]
    gres: tuple[Gres, ...]
    used: tuple[Gres, ...] | None
    cpus: int | None
    memory: int | None
    alloc_cpus: int
    alloc_memory: int
    partitions: tuple[str, ...]
    features: tuple[str, ...]
    reservation: str
    owned: bool = False
    sockets: int | None = None
    cores: int | None = None
    threads: int | None = None
    near: tuple[frozenset[int], ...] = ()

    @property
    def all_cores(self) -> int:
        """Cores of the node; 0 where it is not said."""
        return (self.sockets or 0) * (self.cores or 0)

    @property
    def models(self) -> tuple[str, ...]:
        """Model of each card, by its index."""
        return tuple(gres.type or UNTYPED for gres in self.gres if gres.is_card for _ in range(gres.count))

    @property
    def numbering(self) -> dict[int, int]:
        """Index of the card by Slurm's number of the device, which runs through all types in their order."""
        found: dict[int, int] = {}
        number = 0
        for gres in self.gres:
            if gres.name == "gpu":
                if gres.is_card:
                    found |= {number + copy: len(found) + copy for copy in range(gres.count)}
                number += gres.count
        return found

    @property
    def extended(self) -> dict[str, int]:
        """What can be counted beside cards, by name."""
        return counted(self.gres)

    @property
    def takes_work(self) -> bool:
        """Whether new work may start on it."""
        return not (self.states & states.UNUSABLE or self.owned)


def counted(gres: Iterable[Gres]) -> dict[str, int]:
    """Return how much of each resource that is no card there is, by its name in the snapshot."""
    found: dict[str, int] = {}
    for one in gres:
        if not one.is_card:
            found[one.label] = found.get(one.label, 0) + one.count
    return found


def read(items: Sequence[Item[NodeRecord]], ledger: Ledger) -> dict[str, Host]:
    """Return the nodes by name, in the order of the files; records of one node are made one.

    Raises
    ------
    InputError
        If a record is not right, or two of one node disagree about what it has.
    """
    found: dict[str, Host] = {}
    for item in items:
        host = _host(item, ledger)
        known = found.get(host.name)
        found[host.name] = host if known is None else _merged(known, host, ledger)
    for host in found.values():
        _note(host, ledger)
    if len({whole(host.item, "weight", host.item.value.weight) for host in found.values()}) > 1:
        ledger.ignored("weights of nodes", "a wish: which of those that are free are taken first")
    ledger.read("nodes", count=len(found))
    return found


def _host(item: Item[NodeRecord], ledger: Ledger) -> Host:
    record = item.value
    name = record.name or record.hostname or ""
    if wrong_name(name) is not None or any(letter.isspace() or letter in "[]," for letter in name):
        raise wrong(item, "name", f"{show(name)} is no name of a node")
    gres = parse(record.gres, item.file, f"{item.path}.gres")
    if sum(one.count for one in gres if one.name == "gpu") > MOST_CARDS:
        raise wrong(item, "gres", f"more than {MOST_CARDS} GPUs in a node")
    used: tuple[Gres, ...] | None = parse(record.gres_used, item.file, f"{item.path}.gres_used")
    if not used:
        used = allocated(record.tres_used, item.file, f"{item.path}.tres_used") or None
    for one in parse(record.gres_drained, item.file, f"{item.path}.gres_drained"):
        if one.count:
            ledger.unsupported("drained GRES", "which cards they are is not said", item.where, item.file)
    cpus = whole(item, "effective_cpus", record.effective_cpus, short=True)
    if not cpus:
        cpus = whole(item, "cpus", record.cpus, short=True)
    memory = whole(item, "real_memory", record.real_memory)
    reserve = whole(item, "specialized_memory", record.specialized_memory)
    if memory is not None and reserve:
        memory = max(0, memory - reserve)
    return Host(
        item=item,
        name=name,
        states=states.of_node(record.state, record.state_flags),
        gres=gres,
        used=used,
        cpus=cpus,
        memory=memory,
        alloc_cpus=whole(item, "alloc_cpus", record.alloc_cpus, short=True) or 0,
        alloc_memory=whole(item, "alloc_memory", record.alloc_memory) or 0,
        partitions=tuple(name.rstrip("*") for name in texts(record.partitions)),
        features=texts(record.active_features) or texts(record.features),
        reservation=(record.reservation or "").replace("(null)", ""),
        owned=_owned(record.owner),
        sockets=whole(item, "sockets", record.sockets, short=True),
        cores=whole(item, "cores", record.cores, short=True),
        threads=whole(item, "threads", record.threads, short=True),
    )


def _merged(one: Host, other: Host, ledger: Ledger) -> Host:
    """Return a node of which there are two records: sinfo lists it once for each of its partitions."""
    what = [(gres.name, gres.type, gres.count) for gres in one.gres]
    for name, same in (
        ("gres", other.item.value.gres is None or what == [(g.name, g.type, g.count) for g in other.gres]),
        ("cpus", _agree(one, other, "cpus")),
        ("real_memory", _agree(one, other, "real_memory")),
    ):
        if not same:
            raise wrong(
                other.item, name, f"node {show(one.name)} has another value at {one.item.where}", "keep one of them"
            )
    if one.states != other.states or one.alloc_cpus != other.alloc_cpus or one.used != other.used:
        believed = "all states, and the larger use"
        ledger.contradiction("records of one node say different states or use", believed, other.item.where)
    return replace(
        one,
        states=one.states | other.states,
        used=_larger(one.used, other.used),
        alloc_cpus=max(one.alloc_cpus, other.alloc_cpus),
        alloc_memory=max(one.alloc_memory, other.alloc_memory),
        partitions=tuple(dict.fromkeys((*one.partitions, *other.partitions))),
        features=tuple(dict.fromkeys((*one.features, *other.features))),
        reservation=one.reservation or other.reservation,
        owned=one.owned or other.owned,
    )


def _owned(owner: str | int | Number | None) -> bool:
    """Return whether a user owns the node, by name or number; root owns none."""
    if isinstance(owner, str):
        return owner not in ("", "(null)", "N/A")
    return bool(value(owner))


def _agree(one: Host, other: Host, name: str) -> bool:
    values = [whole(host.item, name, getattr(host.item.value, name), short=name == "cpus") for host in (one, other)]
    return None in values or values[0] == values[1]


def _larger(one: tuple[Gres, ...] | None, other: tuple[Gres, ...] | None) -> tuple[Gres, ...] | None:
    """Return what is in use by either of two lists, type by type."""
    if one is None or other is None:
        return one if other is None else other
    found = {(gres.name, gres.type): gres for gres in one}
    for gres in other:
        known = found.get((gres.name, gres.type))
        if known is None:
            found[gres.name, gres.type] = gres
        else:
            indices = tuple(sorted({*(known.indices or ()), *(gres.indices or ())}))
            shares = max(known.shares, gres.shares)
            more = replace(known, count=max(known.count, gres.count, len(indices)), indices=indices, shares=shares)
            found[gres.name, gres.type] = more
    return tuple(found.values())


def _note(host: Host, ledger: Ledger) -> None:
    where = host.item.where
    for state in sorted(host.states & states.UNUSABLE):
        ledger.read(f"nodes in state {state}: they take no new work", where)
    for state, why in states.NOTABLE.items():
        if state in host.states and host.takes_work:
            ledger.assumed(f"node in state {state}", why, where)
    if (host.threads or 1) > 1:
        # SelectTypeParameters of slurm.conf says it, which is none of the files
        ledger.assumed("cores of several threads", "jobs may share a core; with CR_Core they take whole ones", where)
    if host.owned:
        ledger.assumed("a node that one user owns", "it takes no new work, for whose it is is not looked at", where)
    if host.item.value.mcs_label not in (None, "", "(null)", "N/A"):
        ledger.unsupported("a node with a security label", "it takes any job", where, host.item.file)
    types = [gres for gres in host.gres if gres.name == "gpu"]
    if any(not gres.type for gres in types):
        ledger.assumed("model of cards without a type", f'"{UNTYPED}"', where)
    if any(not gres.is_card for gres in types):
        ledger.assumed("MIG instances that are a GRES", "counted, for nothing says which card each is on", where)
    if any(gres.name in ("mps", "shard") for gres in host.gres):
        why = "counted beside the cards that they are shares of"
        ledger.unsupported("shares of cards (mps, shard)", why, where, host.item.file)
    if len({gres.type for gres in types}) > 1:
        ledger.assumed("numbers of a node's devices", "counted through its types in the order of its Gres", where)


def node(
    host: Host, position: Mapping[str, str], labels: Mapping[str, str], reserved: bool, extended: Mapping[str, int]
) -> Node:
    """Return a node of the snapshot.

    Parameters
    ----------
    host : Host
    position : mapping of str to str
    labels : mapping of str to str
        Beside those of its partitions and features.
    reserved : bool
        Whether only jobs in its reservation may start on it.
    extended : mapping of str to int
        What it has beside what Slurm counts.
    """
    return Node(
        name=host.name,
        position=dict(position),
        labels={
            **{f"{PARTITION}{name}": "yes" for name in host.partitions},
            **{f"{FEATURE}{name}": "yes" for name in host.features},
            **labels,
        },
        taints=(Taint(key=RESERVED, value=host.reservation),) if reserved else (),
        cordoned=not host.takes_work,
        cpu=host.cpus,
        memory=None if host.memory is None else f"{host.memory}Mi",
        extended={**host.extended, **extended},
        gpus=tuple(Gpu(model=model, count=len(list(run))) for model, run in groupby(host.models)),
        zones=zones(host),
    )


def zones(host: Host) -> tuple[NumaZone, ...]:
    """Return the cores near cards as zones; or the sockets, where the GRES say for each card the one it is near."""
    found = _of_cores(host)
    if found:
        return found
    cards = [gres for gres in host.gres if gres.is_card]
    if not cards or not host.sockets or not host.cpus or host.cpus % host.sockets or host.sockets > MOST_ZONES:
        return ()
    if any(gres.sockets is None or len(gres.sockets) != 1 or gres.sockets[0] >= host.sockets for gres in cards):
        return ()
    near = [gres.sockets[0] for gres in cards if gres.sockets for _ in range(gres.count)]
    return tuple(
        NumaZone(
            id=socket,
            cpu=host.cpus // host.sockets,
            gpus=tuple(card for card, other in enumerate(near) if other == socket),
        )
        for socket in range(host.sockets)
    )


def _of_cores(host: Host) -> tuple[NumaZone, ...]:
    """Return the sets of cores that cards are near, such as half a socket, and the rest; nothing where they overlap."""
    sets = sorted({cores for cores in host.near if cores}, key=min)
    total, threads = host.all_cores, host.threads or 1
    listed = sum(len(cores) for cores in sets)
    if not sets or len(frozenset().union(*sets)) < listed or listed > total or host.cpus != total * threads:
        return ()
    rest = [frozenset(range(total)).difference(*sets)] if listed < total else []
    if len(sets) + len(rest) > MOST_ZONES:
        return ()
    return tuple(
        NumaZone(
            id=number,
            cpu=len(cores) * threads,
            gpus=tuple(card for card, other in enumerate(host.near) if other == cores),
        )
        for number, cores in enumerate([*sets, *rest])
    )
