"""From counts of MIG instances to cards, slots and tasks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from placement.evaluate import demand
from placement.exact.layouts.layout import Layout, limit_use
from placement.instance import NO_INTS, Bools, Instance, Ints, JobClass
from placement.mig.runs import Run, arranged, contents, dealt
from placement.mig.slots import Slots
from placement.models import mig
from placement.state import State

Spot = tuple[int, int]
"""A MIG card, by node, and the first slot of an instance."""

Items = list[tuple[int, list[int]]]
"""Profile and shapes of each item."""


def only(instance: Instance, numbers: Sequence[int], besides: Sequence[int] = ()) -> Instance:
    """Return the instance with the jobs of some classes alone, of these all besides some."""
    job_class = np.zeros_like(instance.job_class)
    kept = np.ones(len(job_class), dtype=np.bool_)
    kept[list(besides)] = False
    classes: list[JobClass] = []
    for old in numbers:
        one = instance.job_classes[old]
        jobs = one.jobs[kept[one.jobs]]
        if len(jobs):
            job_class[jobs] = len(classes)
            classes.append(replace(one, jobs=jobs))
    jobs = np.concatenate([one.jobs for one in classes]) if classes else NO_INTS
    arrival = instance.arrival[np.isin(instance.arrival, jobs)]
    return replace(instance, job_classes=tuple(classes), job_class=job_class, arrival=arrival)


def items_of(instance: Instance, at_home: Collection[tuple[int, int]] = ()) -> tuple[Items, Bools]:
    """Return profile and shapes of each item, and on which node classes each is admitted, as (items, K).

    Shapes with one profile that the same cards admit are one item: only what they ask of hosts differs. A card whose
    host has less free than a single task asks for admits none of them, unless they are `at_home` there.

    Parameters
    ----------
    instance : Instance
    at_home : collection of (int, int)
        Shapes of running tasks and the node classes of cards of their hosts: there they have what they ask for, though
        running work may ask for more than the host has.
    """
    wanted = demand(instance)
    free = np.array([one.free for one in instance.classes], dtype=np.int64).reshape(len(instance.classes), -1)
    number: dict[tuple[int, bytes], int] = {}
    items: Items = []
    rows: list[Bools] = []
    for shape, task in enumerate(instance.shapes):
        if task.profile < 0 or not wanted[shape]:
            continue
        enough: Bools = np.logical_and.reduce(free >= np.array(task.demand, dtype=np.int64), axis=1)
        enough[[number for one, number in at_home if one == shape]] = True
        admits = instance.admits_node[shape] & enough
        item = number.setdefault((task.profile, admits.tobytes()), len(items))
        if item == len(items):
            items.append((task.profile, []))
            rows.append(admits)
        items[item][1].append(shape)
    admitted = np.array(rows, dtype=np.bool_).reshape(len(items), len(instance.classes))
    return items, admitted


def kind_of(slots: Slots, items: Items, run: Run, count: int, fresh: bool = False) -> mig.Kind:
    """Return a kind of run for the model: the items that it admits by profile, and what a whole card can hold."""
    of_profile: dict[int, tuple[int, ...]] = defaultdict(tuple)
    for item in np.flatnonzero(np.frombuffer(run.admits, dtype=np.bool_)).tolist():
        of_profile[items[item][0]] += (item,)
    listed = contents(slots, run.state) if run.state >= 0 else []
    return mig.Kind(run, count, dict(of_profile), tuple(listed), fresh)


def binding(leaves: Ints, uses: Sequence[Sequence[int]], there: Sequence[int]) -> list[tuple[list[int], int]]:
    """Return what a task of each leaf takes of amounts that all wanted tasks could use up, and the amounts.

    Parameters
    ----------
    leaves : int array (T, 5)
        See `placement.models.pools.leaf_table`.
    uses : sequence of sequence of int
        What a task of each shape takes of each amount.
    there : sequence of int
        The amounts.
    """
    found = []
    for use, amount in zip(uses, there, strict=True):
        taken = [use[shape] for shape in leaves[:, 2].tolist()]
        if sum(each * times for each, times in zip(taken, leaves[:, 3].tolist(), strict=True)) > amount:
            found.append((taken, int(amount)))
    return found


def spots_of(
    slots: Slots, items: Items, kinds: Sequence[mig.Kind], nodes: Sequence[Sequence[int]], found: mig.Counts
) -> dict[int, list[Spot]]:
    """Return the places of all instances that were counted, by item; `nodes` are the cards of each kind's runs."""
    spots: dict[int, list[Spot]] = defaultdict(list)
    for kind, cards, places, whole in zip(kinds, nodes, found.places, found.cards, strict=True):
        intervals = [(place.start, place.size, item) for (item, place), times in places.items() for _ in range(times)]
        for node, held in zip(cards, dealt(intervals, len(cards)) if intervals else [], strict=False):
            for start, item in held:
                spots[item].append((node, start))
        position = 0
        for content, times in whole.items():
            for node in cards[position : position + times]:
                for item, start in _whole_card(slots, items, kind, content):
                    spots[item].append((node, start))
            position += times
    return spots


def _whole_card(
    slots: Slots, items: Items, kind: mig.Kind, content: tuple[tuple[int, int], ...]
) -> list[tuple[int, int]]:
    """Return item and first slot of each instance of a content."""
    counts = [0] * len(slots.profiles)
    of_profile: dict[int, list[int]] = defaultdict(list)
    for item, number in content:
        profile = items[item][0]
        counts[profile] += number
        of_profile[profile] += [item] * number
    return [(of_profile[profile].pop(), start) for profile, start in arranged(slots, kind.run.state, counts)]


def hand_out(layout: Layout, wanted: list[tuple[int, int]], spots: list[Spot]) -> None:
    """Place tasks of some shapes on spots, those that ask most of hosts first, where the hosts have what they ask."""
    state, base = layout.state, layout.instance.slot_base
    scale = np.maximum(state.free.max(axis=0, initial=1), 1)
    order = sorted(wanted, key=lambda one: (-float((state.demand[one[0]] / scale).max(initial=0.0)), one[0]))
    shapes = np.repeat(
        np.array([shape for shape, _ in order], dtype=np.int64), np.array([times for _, times in order], dtype=np.int64)
    )[: len(spots)]
    nodes = np.array([node for node, _ in spots[: len(shapes)]], dtype=np.int64)
    if _have_room(layout, shapes, nodes):
        layout.add(shapes, nodes, [(0, base + start) for _, start in spots[: len(shapes)]])
        return
    left = spots
    for shape, times in order:
        rest: list[Spot] = []
        for node, start in left:
            if times and has_room(state, shape, node):
                layout.place(shape, node, (0, base + start))
                times -= 1
            else:
                rest.append((node, start))
        left = rest


def _have_room(layout: Layout, shape: Ints, node: Ints) -> bool:
    """Return whether hosts and domains have what some tasks ask beside their instances, all of them together."""
    state, hosts = layout.state, layout.instance.hosts_of(node)
    for r in np.flatnonzero(state.demand.any(axis=0)).tolist():
        asked = np.zeros(len(state.free), dtype=np.int64)
        np.add.at(asked, hosts, state.demand[shape, r])
        if (asked > state.free[:, r])[hosts].any():
            return False
    return bool((limit_use(layout, shape, node) <= state.limits).all())


def has_room(state: State, shape: int, node: int) -> bool:
    """Return whether a host and its domains have what a task asks beside its instance.

    What running work overfills has nothing left, and nobody who asks for nothing of it minds.
    """
    if (state.demand[shape] > np.maximum(state.free[node], 0)).any():
        return False
    rows = state.instance.classes[state.instance.node_class[node]].limits
    return all(state.limit_use(shape, row) <= max(0, int(state.limits[row])) for row in rows)
