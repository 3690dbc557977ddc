"""Two snapshots of one cluster as cards: what each has now, who uses it, and what it is to have."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

import msgspec

from placement.errors import InputError, Problem
from placement.hardware.layouts import Instance, in_order
from placement.hardware.mig import Geometry, geometry
from placement.repartition.change import Holder, State
from placement.snapshot import Gpu, Node, Snapshot, TaskGroup

MOST_NAMED = 5
"""Nodes that a message names."""


@dataclass(frozen=True, slots=True)
class Card:
    """One card.

    Attributes
    ----------
    index : int
        In its node.
    model : str
        As in the snapshot.
    geometry : Geometry or None
        None where nothing is known of the model; MIG mode is off then, before and after.
    alike : object
        Equal for cards that are the same but for MIG.
    present, wanted : State
    holders : tuple of Holder
        Who uses it now.
    """

    index: int
    model: str
    geometry: Geometry | None
    alike: Hashable
    present: State
    wanted: State
    holders: tuple[Holder, ...]


def cards(before: Snapshot, after: Snapshot) -> Iterator[tuple[str, list[Card]]]:
    """Yield the cards of every node with cards, by its name, in the order of the snapshot.

    What runs is taken from `before` alone; what runs in `after` only says which instances are there then.

    Parameters
    ----------
    before, after : Snapshot
        After their checks (`placement.snapshot.read.verified`), by which models and profiles are known and layouts can
        exist.

    Raises
    ------
    InputError
        If the snapshots have different nodes or cards.
    """
    places, others = dict(_named(before)), dict(_named(after))
    _refuse_other_nodes(places, others)
    held, then = _held(before), _held(after)
    read = _Reader()
    for name, place in places.items():
        node, other = before.nodes[place], after.nodes[others[name]]
        _refuse_other_cards(name, node, place, other, others[name])
        found = []
        for index, (gpu, target) in enumerate(zip(_each(node), _each(other), strict=True)):
            uses = held.get((name, index), ())
            holders = tuple(Holder(job, _instance(gpu, profile, start)) for job, profile, start in uses)
            present = _with_running(read.state(gpu), holders)
            later = tuple(
                Holder(job, _instance(target, profile, start)) for job, profile, start in then.get((name, index), ())
            )
            wanted = _with_running(read.state(target), later)
            card = Card(index, gpu.model, geometry(gpu.model), read.alike(gpu), present, wanted, holders)
            found.append(card)
        if found:
            yield name, found


class _Reader:
    """Reads entries of cards; equal ones are read once, and have the same state."""

    def __init__(self) -> None:
        self.states: dict[tuple[Hashable, ...], State] = {}
        self.kinds: dict[Gpu, Gpu] = {}

    def state(self, gpu: Gpu) -> State:
        """Return what an entry says of MIG."""
        key = gpu.model, gpu.mig_enabled, gpu.mig_layout
        if key not in self.states:
            placed = [_instance(gpu, one.profile, one.start) for one in gpu.mig_layout]
            self.states[key] = State(gpu.mig_enabled, in_order(one for one in placed if one is not None))
        return self.states[key]

    def alike(self, gpu: Gpu) -> Gpu:
        """Return an entry without what it says of MIG and how many cards it has."""
        if gpu not in self.kinds:
            changed = msgspec.structs.replace(
                gpu, count=1, mig_enabled=False, mig_layout=(), mig_static=False, mig_switchable=False
            )
            self.kinds[gpu] = changed
        return self.kinds[gpu]


def _instance(gpu: Gpu, profile: str, start: int | None) -> Instance | None:
    """Return an instance on a card, or None for the card itself."""
    card = geometry(gpu.model)
    found = None if card is None or start is None else card.profile(profile)
    return None if found is None or start is None else (found, start)


def _with_running(state: State, holders: tuple[Holder, ...]) -> State:
    """Return a state together with the instances that tasks run on: these are there, listed or not."""
    running = {holder.instance for holder in holders if holder.instance is not None}
    return state if running <= {*state.layout} else State(state.on, in_order({*state.layout, *running}))


def _each(node: Node) -> Iterator[Gpu]:
    """Yield the entry of each card of a node."""
    return (gpu for gpu in node.gpus for _ in range(gpu.count))


def _named(snapshot: Snapshot) -> Iterator[tuple[str, int]]:
    """Yield the name of each node and the number of its entry."""
    for place, node in enumerate(snapshot.nodes):
        if node.count == 1:
            yield node.name, place
        else:
            for number in range(node.count):
                yield f"{node.name}-{number}", place


def _refuse_other_nodes(nodes: dict[str, int], others: dict[str, int]) -> None:
    problems = []
    for missing, source in ((nodes.keys() - others.keys(), "before"), (others.keys() - nodes.keys(), "after")):
        if missing:
            first = ", ".join(f'"{name}"' for name in sorted(missing)[:MOST_NAMED])
            more = f" and {len(missing) - MOST_NAMED} more" if len(missing) > MOST_NAMED else ""
            what = f"of the two snapshots, only the one {source} has {first}{more}"
            problems.append(Problem("nodes", what, "list the same nodes in both"))
    if problems:
        raise InputError(problems)


def _refuse_other_cards(name: str, node: Node, place: int, other: Node, other_place: int) -> None:
    """Raise unless two entries list the same cards, in whatever runs."""
    if node.gpus == other.gpus:
        return
    here, there = ([gpu.model for gpu in _each(one)] for one in (node, other))
    if here == there:
        return
    if len(here) != len(there):
        what = f'"{name}" has {len(there)} cards here, and {len(here)} before (nodes[{place}].gpus)'
    else:
        index = next(k for k in range(len(here)) if here[k] != there[k])
        what = f'card {index} of "{name}" is "{there[index]}" here, and "{here[index]}" before (nodes[{place}].gpus)'
    remedy = "list the same cards in the same order; only the MIG fields may differ"
    raise InputError.one(what, remedy, path=f"nodes[{other_place}].gpus", source="after")


def _held(snapshot: Snapshot) -> dict[tuple[str, int], list[tuple[str, str, int | None]]]:
    """Return who uses each card, by node and index: the job, its MIG profile, and the first slot of its instance."""
    held: dict[tuple[str, int], list[tuple[str, str, int | None]]] = {}
    for job in snapshot.jobs:
        if job.running is None:
            continue
        profiles = dict(_profiles(job.groups))
        for task in job.running.tasks:
            starts: list[int | None] = [*task.mig_starts] or [None] * len(task.gpus)
            for card, start in zip(task.gpus, starts, strict=True):
                held.setdefault((task.node, card), []).append((job.name, profiles[task.group], start))
    return held


def _profiles(groups: tuple[TaskGroup, ...], above: str = "") -> Iterator[tuple[str, str]]:
    """Yield the path of each group with tasks, and the MIG profile these ask for."""
    for group in groups:
        if group.task is not None:
            yield f"{above}{group.name}", group.task.mig_profile
        yield from _profiles(group.groups, f"{above}{group.name}/")
