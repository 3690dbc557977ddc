"""MIG cards as nodes of their own behind the others, which share what is free of their host."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from placement.compile.cards import Cards, NodeKinds
from placement.compile.running import places
from placement.compile.tenants import Tenants, with_cards
from placement.compile.work import Work
from placement.hardware.mig import Geometry, Profile, fraction, geometry
from placement.index import members, numbered
from placement.instance import Instance, Ints, NodeClass
from placement.mig.slots import Board, Card, Slots, card
from placement.scale import Scale
from placement.snapshot import Gpu, Node, Snapshot

Held = dict[tuple[int, int], list[tuple[str, int]]]
"""Profile and first slot of each running instance, by node and device index."""

ONE = Fraction(1)


def asks(work: Work, pending: Ints) -> bool:
    """Return whether some job among the entries that wait asks for a MIG instance."""
    gangs = np.unique(work.of_job[pending]).tolist() if len(pending) else []
    return any(work.tasks[task].mig_profile for gang in gangs for task, _ in work.leaves[gang].values())


def sliced(
    instance: Instance,
    profiles: Sequence[str],
    work: Work,
    kinds: NodeKinds,
    cards: Cards,
    scale: Scale,
    tenants: Tenants,
) -> Instance:
    """Return the instance with its MIG cards as nodes, or as it is where no pending task asks for an instance.

    Parameters
    ----------
    instance : Instance
    profiles : sequence of str
        Those that tasks ask for, as shapes number them.
    work : Work
    kinds : NodeKinds
    cards : Cards
    scale : Scale
    tenants : Tenants
    """
    with_profile = np.array([shape.profile >= 0 for shape in instance.shapes], dtype=np.bool_)
    if not with_profile.any():
        return instance
    admits = instance.admits_node.copy()
    admits[with_profile] = False
    found = list(_cards(instance, work, kinds))
    # hashing cards and fractions takes long, and equal ones mostly are one object
    distinct = {id(one): one for _, _, one, _ in found}
    slots = Slots(profiles, dict.fromkeys(distinct.values()))
    state_of = {key: slots.number(one) for key, one in distinct.items()}
    host = np.array([node for node, _, _, _ in found], dtype=np.int64)
    device = np.array([number for _, number, _, _ in found], dtype=np.int64)
    state = np.array([state_of[id(one)] for _, _, one, _ in found], dtype=np.int64)
    units = {key: int(left / scale.card) for key, left in {id(left): left for *_, left in found}.items()}
    idle = [units[id(left)] for *_, left in found]
    kind = cards.kind[cards.start[kinds.of_spec[instance.node_spec[host]]] + device] if len(found) else host
    owner = tenants.of_cards(host, device) if instance.apart is not None else np.zeros_like(host)
    rows = zip(instance.node_class[host].tolist(), state.tolist(), kind.tolist(), idle, owner.tolist(), strict=True)
    number, first = numbered(rows)
    classes = [
        NodeClass(
            nodes=inside + instance.nodes,
            free=of_host.free,
            cards=((int(kind[one]), idle[one], 0),),
            in_use=bool(slots.cards[int(state[one])].bits),
            limits=of_host.limits,
            slots=int(state[one]),
        )
        for inside, one in zip(members(number, len(first)), first.tolist(), strict=True)
        for of_host in (instance.classes[instance.node_class[host[one]]],)
    ]
    on_cards = instance.admits_node[:, instance.node_class[host[first]]] & instance.admits_card[:, kind[first]]
    on_cards &= with_profile[:, None]
    everywhere = np.concatenate([np.arange(instance.nodes, dtype=np.int64), host])
    return replace(
        instance,
        node_spec=instance.node_spec[everywhere],
        node_copy=instance.node_copy[everywhere],
        node_class=np.concatenate([instance.node_class, number + len(instance.classes)]),
        node_cards=instance.node_cards | {instance.nodes + i: (one,) for i, one in enumerate(device.tolist())},
        classes=(*instance.classes, *classes),
        admits_node=np.concatenate([admits, on_cards], axis=1),
        domains=instance.domains[:, everywhere],
        bound=np.concatenate([instance.bound, np.zeros_like(on_cards, dtype=np.int64)], axis=1),
        widest=max(1, instance.widest),
        slots=slots,
        host=everywhere,
        mates=_mates(everywhere, instance.nodes),
        apart=with_cards(instance.apart, host, owner),
    )


def in_use(snapshot: Snapshot) -> int:
    """Return on how many MIG cards running tasks have instances."""
    running = [job.running.tasks for job in snapshot.jobs if job.running is not None]
    return len({(place.node, place.gpus) for places in running for place in places if place.mig_starts})


def _mates(host: Ints, hosts: int) -> dict[int, Ints]:
    """Return for each host with MIG cards, and for each of these, the nodes that share what is free."""
    with_cards, number = np.unique(host[hosts:], return_inverse=True)
    found: dict[int, Ints] = {}
    for one, inside in zip(with_cards.tolist(), members(number.reshape(-1), len(with_cards)), strict=True):
        together = np.concatenate([np.array([one], dtype=np.int64), inside + hosts])
        found |= dict.fromkeys(together.tolist(), together)
    return found


def _cards(instance: Instance, work: Work, kinds: NodeKinds) -> Iterator[tuple[int, int, Card, Fraction]]:
    """Yield node, device index, what is on it and which part counts as idle of every MIG card, node by node."""
    held = _held(instance, work)
    names = {plain for shape in work.tasks if (plain := shape.mig_profile)}
    by_kind = [list(_devices(node, names)) for node in kinds.nodes]
    empty = [[(device, card(board, ())) for device, board in devices] for devices in by_kind]
    known: dict[tuple[int, tuple[tuple[str, int], ...]], tuple[Card, Fraction]] = {}
    for node, kind in enumerate(kinds.of_spec[instance.node_spec].tolist()):
        for device, one in empty[kind]:
            mine = held.get((node, device))
            if mine is None:
                yield node, device, one, ONE
                continue
            key = id(one.board), tuple(sorted(mine))
            if key not in known:
                taken = sum((fraction(profile) or 0 for profile, _ in mine), Fraction(0))
                there = card(one.board, _resolved(one.board.geometry, mine))
                known[key] = there, max(Fraction(0), ONE - taken)
            yield node, device, *known[key]


def _held(instance: Instance, work: Work) -> Held:
    held: Held = defaultdict(list)
    for node, task, place in places(instance.snapshot, work):
        profile = work.tasks[task].mig_profile
        for device, start in zip(place.gpus, place.mig_starts, strict=False) if profile else ():
            held[node, device].append((profile, start))
    return held


def _resolved(there: Geometry, instances: Sequence[tuple[str, int]]) -> Iterator[tuple[Profile, int]]:
    for name, start in instances:
        profile = there.profile(name)
        if profile is not None:
            yield profile, start


def _devices(node: Node, names: set[str]) -> Iterator[tuple[int, Board]]:
    """Yield the device index and the board of each card in MIG mode."""
    first = 0
    for gpu in node.gpus:
        if gpu.mig_enabled:
            board = _board(gpu, names)
            if board is not None:
                yield from ((first + number, board) for number in range(gpu.count))
        first += gpu.count


def _board(gpu: Gpu, names: set[str]) -> Board | None:
    there = geometry(gpu.model)
    if there is None:
        return None
    existing = None
    if gpu.mig_static:
        existing = tuple(
            sorted((one.name, start) for one, start in _resolved(there, [(i.profile, i.start) for i in gpu.mig_layout]))
        )
    mine = [profile for profile in map(there.profile, names) if profile is not None]
    return Board(there, existing, not all(profile.plain for profile in mine))
