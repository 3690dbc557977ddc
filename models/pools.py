"""Pools: nodes counted together, and the counts a placement has in each of them.

A pool stands for several nodes. Its capacity is what they have free in all, its cards are grouped by what is free on
each, and a shape belongs to it if one of its nodes could take one task. Whatever holds of every placement on the
nodes holds of the sums, so a model over pools is a relaxation: its optimum is a bound. The fewer unlike nodes a
pool merges, the closer the bound and the better the counts can be turned back into places; with one node a pool
the counts are a placement, but for tasks that take a share of each of several cards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from placement.evaluate import demand
from placement.instance import Assignment, Bools, Instance, Ints
from placement.models.zoned_pools import ZoneRow, most_within, zone_rows
from placement.state import State

FEW_NODES = 1000
"""Nodes up to which it is quicker to look at all shapes at once."""


@dataclass(frozen=True, slots=True)
class CardGroup:
    """Cards of a pool with the same kind and the same room.

    Attributes
    ----------
    kind, units, memory : int
        As in `NodeClass.cards`.
    count : int
    """

    kind: int
    units: int
    memory: int
    count: int


@dataclass(frozen=True, slots=True)
class SlotType:
    """Room on one card for one task's part, as far as a pool's cards can tell parts apart.

    Attributes
    ----------
    units, memory : int
        As in `Shape`.
    groups : tuple of int
        Card groups of the pool on which there is room for it.
    """

    units: int
    memory: int
    groups: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Pool:
    """Nodes counted together.

    Attributes
    ----------
    nodes : int array
        One node of each kind that the pool holds.
    times : int array
        How many nodes each of them stands for.
    capacity : int array (R,)
        Free amount of each resource over all nodes.
    binding : bool array (R,)
        Whether the pending tasks could use up the resource somewhere in the pool.
    groups : tuple of CardGroup
        Cards that some task may use.
    slots : tuple of SlotType
        Largest first.
    blocks : dict of int to int
        For each number u of whole cards that some task takes, 2 or more: how many such blocks the nodes have room for.
    limits : tuple of int
        Limit rows that its nodes count in.
    zone_rows : tuple of ZoneRow
        What the NUMA zones of its nodes have room for.
    """

    nodes: Ints
    times: Ints
    capacity: Ints
    binding: Bools
    groups: tuple[CardGroup, ...]
    slots: tuple[SlotType, ...]
    blocks: dict[int, int]
    limits: tuple[int, ...]
    zone_rows: tuple[ZoneRow, ...] = ()

    @property
    def size(self) -> int:
        """Number of nodes."""
        return int(self.times.sum())


@dataclass(frozen=True, slots=True)
class Pattern:
    """What one card of a group holds: a number of parts of each slot type of the pool.

    Attributes
    ----------
    pool, group : int
    parts : tuple of int
    """

    pool: int
    group: int
    parts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Pooling:
    """An instance seen through pools.

    Attributes
    ----------
    instance : Instance
    pools : tuple of Pool
    shape, pool, slot, most : int arrays (P,)
        For each pair of a shape and a pool that could take it: both indices, the slot type of one of its parts (-1
        for a task without cards), and the most tasks there could be.
    elsewhere : int array (S,)
        Tasks of each shape that run outside the pools, on nodes this model does not decide about.
    limits : int array (L,)
        What is left of each limit row for the tasks in the pools.
    leaves : int array (T, 5)
        The leaves that the model decides about, as (job class, leaf, shape, most tasks, value of one task).
    rows : int array (T,)
        Their rows in `leaf_table`.
    started : int array (T,)
        Tasks of leaves whose shape no pool is asked to take: they keep what they have. -1 for the others.
    """

    instance: Instance
    pools: tuple[Pool, ...]
    shape: Ints
    pool: Ints
    slot: Ints
    most: Ints
    elsewhere: Ints
    limits: Ints
    leaves: Ints
    rows: Ints
    started: Ints


def leaf_table(instance: Instance) -> Ints:
    """Return (job class, leaf, shape, wanted tasks, value of one task) of every leaf of every job class."""
    rows = [
        (number, leaf.leaf, leaf.shape, leaf.count * leaf.copies * job_class.size, leaf.value)
        for number, job_class in enumerate(instance.job_classes)
        for leaf in job_class.leaves
    ]
    return np.array(rows, dtype=np.int64).reshape(-1, 5)


def leaf_rows(instance: Instance, assignment: Assignment) -> Ints:
    """Return the row of `leaf_table` of every task of an assignment."""
    lengths = np.array([len(job_class.leaves) for job_class in instance.job_classes], dtype=np.int64)
    first = np.cumsum(lengths) - lengths
    rows: Ints = first[instance.job_class[assignment.job]] + assignment.leaf
    return rows


def pooling(
    state: State,
    parts: Sequence[tuple[Ints, Ints]],
    elsewhere: Ints | None = None,
    shapes: Ints | None = None,
    started: Ints | None = None,
    supply: Ints | None = None,
    classes: Sequence[int] = (),
    leaves: Ints | None = None,
) -> Pooling:
    """Return the view of a state through pools.

    Parameters
    ----------
    state : State
        What is free now on the nodes.
    parts : sequence of (nodes, times)
        One pool each; see `Pool`.
    elsewhere : int array (S,), optional
        See `Pooling`; zeros if absent.
    shapes : int array, optional
        The only shapes to decide about; absent for all.
    started : int array, optional
        With `shapes`: how many tasks of each row of `leaf_table` are started now.
    supply : int array (S,), optional
        Tasks of each shape that the pools may get; absent for all that are wanted.
    classes : sequence of int
        With `started`: job classes to include although none of their shapes is decided about.
    leaves : int array (T, 5), optional
        `leaf_table` of the instance, where it is at hand.
    """
    instance = state.instance
    wanted = demand(instance) if supply is None else supply
    considered = np.flatnonzero(wanted) if shapes is None else shapes
    nodes = np.concatenate([part[0] for part in parts]) if parts else np.zeros(0, dtype=np.int64)
    alone = _alone(state, considered, nodes)
    pools: list[Pool] = []
    pairs: list[Ints] = []
    first = 0
    for number, (mine, times) in enumerate(parts):
        last = first + len(mine)
        pool, rows = _pool(state, mine, times, considered, alone[:, first:last], wanted)
        pools.append(pool)
        rows[:, 1] = number
        pairs.append(rows)
        first = last
    table = np.concatenate(pairs) if pairs else np.zeros((0, 4), dtype=np.int64)
    table = table[np.lexsort((table[:, 1], table[:, 0]))]
    if elsewhere is None:
        elsewhere = np.zeros(len(instance.shapes), dtype=np.int64)
    every = leaf_table(instance) if leaves is None else leaves.copy()
    rows, decided, kept = _leaves(instance, every, table, elsewhere, shapes, started, classes)
    return Pooling(
        instance=instance,
        pools=tuple(pools),
        shape=table[:, 0],
        pool=table[:, 1],
        slot=table[:, 2],
        most=table[:, 3],
        elsewhere=elsewhere,
        limits=state.limits.copy(),
        leaves=decided,
        rows=rows,
        started=kept,
    )


def _leaves(
    instance: Instance,
    leaves: Ints,
    table: Ints,
    elsewhere: Ints,
    shapes: Ints | None,
    started: Ints | None,
    classes: Sequence[int],
) -> tuple[Ints, Ints, Ints]:
    """Return the rows and leaves of every job class with a shape to decide about, and the tasks that others keep."""
    reach = elsewhere + np.bincount(table[:, 0], table[:, 3], minlength=len(instance.shapes)).astype(np.int64)
    leaves[:, 3] = np.minimum(leaves[:, 3], reach[leaves[:, 2]])
    kept = np.full(len(leaves), -1, dtype=np.int64)
    if shapes is None or started is None:
        return np.arange(len(leaves)), leaves, kept
    decided = np.zeros(len(instance.shapes), dtype=np.bool_)
    decided[shapes] = True
    open_ = decided[leaves[:, 2]]
    kept = np.where(open_, -1, started)
    leaves[:, 3] = np.where(open_, leaves[:, 3], started)
    concerned = np.zeros(len(instance.job_classes), dtype=np.bool_)
    concerned[leaves[open_, 0]] = True
    concerned[list(classes)] = True
    mine = np.flatnonzero(concerned[leaves[:, 0]])
    return mine, leaves[mine], kept[mine]


def _alone(state: State, shapes: Ints, nodes: Ints) -> Ints:
    """Return the most tasks of each shape that each node could take if it took nothing else."""
    instance = state.instance
    most = np.zeros((len(shapes), len(nodes)), dtype=np.int64)
    if not most.size:
        return most
    # few nodes: all shapes at once; many: one shape after the other, and only nodes that admit it
    if len(nodes) <= FEW_NODES:
        block = max(1, 4_000_000 // (len(nodes) * max(1, state.units.shape[1])))
        for first in range(0, len(shapes), block):
            most[first : first + block] = _most(state, shapes[first : first + block], nodes)
    else:
        for row, s in enumerate(shapes.tolist()):
            columns = np.flatnonzero(instance.admits_node[s][instance.node_class[nodes]])
            most[row, columns] = _most(state, shapes[row : row + 1], nodes[columns])[0]
    if len(state.limits):
        for row, s in enumerate(shapes.tolist()):
            most[row] = np.where(state.fits(s, nodes), most[row], 0)
    return np.maximum(most, 0)


def _most(state: State, some: Ints, nodes: Ints) -> Ints:
    """Return the most tasks of some shapes that each node could take alone, domain limits apart."""
    instance = state.instance
    tasks = [instance.shapes[s] for s in some.tolist()]
    gpus = np.array([t.gpus for t in tasks], dtype=np.int64)
    units = np.array([max(1, t.units) for t in tasks], dtype=np.int64)
    memory = np.array([t.memory for t in tasks], dtype=np.int64)
    asked = state.demand[some][:, None, :]
    by_resource = np.where(asked > 0, state.free[nodes][None] // np.maximum(asked, 1), np.iinfo(np.int32).max)
    room = by_resource.min(axis=2, initial=np.iinfo(np.int32).max)
    parts = state.units[nodes][None] // units[:, None, None]
    by_memory = state.memory[nodes][None] // np.maximum(memory, 1)[:, None, None]
    parts = np.where(memory[:, None, None] > 0, np.minimum(parts, by_memory), parts)
    parts = np.where(state.admits_card[some][:, state.kind[nodes]], np.maximum(parts, 0), 0)
    # a task takes distinct cards, so no card counts more often than there are tasks
    enough = (parts > 0).sum(axis=2) >= gpus[:, None]
    on_cards = np.where(enough, parts.sum(axis=2) // np.maximum(gpus, 1)[:, None], 0)
    room = np.where(gpus[:, None] > 0, np.minimum(room, on_cards), room)
    if instance.zoned:
        room = most_within(state, some, nodes, parts, room)
    return np.where(instance.admits_node[some][:, instance.node_class[nodes]], room, 0)


def _pool(state: State, nodes: Ints, times: Ints, considered: Ints, alone: Ints, wanted: Ints) -> tuple[Pool, Ints]:
    """Return a pool and its (shape, 0, slot, most) rows."""
    instance = state.instance
    most = np.minimum(alone @ times, wanted[considered])
    shapes = considered[most > 0]
    groups = _groups(state, nodes, times, shapes)
    slots, slot_of = _slots(instance, groups, shapes.tolist())
    rows = np.zeros((len(shapes), 4), dtype=np.int64)
    rows[:, 0], rows[:, 2], rows[:, 3] = shapes, slot_of, most[most > 0]
    free = np.maximum(state.free[nodes], 0)
    total = wanted[shapes] @ state.demand[shapes]
    whole = ((state.units[nodes] == instance.card_units) & (state.kind[nodes] >= 0)).sum(axis=1)
    sizes = sorted({instance.shapes[s].gpus for s in shapes.tolist() if _is_block(instance, s)})
    pool = Pool(
        nodes=nodes,
        times=times,
        capacity=times @ free,
        binding=np.asarray((free < total).any(axis=0)),
        groups=groups,
        slots=slots,
        blocks={u: int(times @ (whole // u)) for u in sizes},
        limits=instance.classes[instance.node_class[nodes[0]]].limits,
        zone_rows=zone_rows(state, nodes, times, shapes.tolist(), alone[most > 0] > 0) if instance.zoned else (),
    )
    return pool, rows


def _is_block(instance: Instance, shape: int) -> bool:
    task = instance.shapes[shape]
    return task.gpus > 1 and task.units == instance.card_units


def _groups(state: State, nodes: Ints, times: Ints, shapes: Ints) -> tuple[CardGroup, ...]:
    useful: Bools = np.asarray(state.admits_card[shapes].any(axis=0))
    kind, units, memory = state.kind[nodes], state.units[nodes], state.memory[nodes]
    row, position = np.nonzero(useful[kind] & (units > 0))
    cards = np.stack([kind[row, position], units[row, position], memory[row, position]], axis=1)
    distinct, index = np.unique(cards, axis=0, return_inverse=True)
    counts = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(counts, index.reshape(-1), times[row])
    return tuple(
        CardGroup(kind=k, units=u, memory=m, count=n)
        for (k, u, m), n in zip(distinct.tolist(), counts.tolist(), strict=True)
    )


def _slots(
    instance: Instance, groups: tuple[CardGroup, ...], shapes: list[int]
) -> tuple[tuple[SlotType, ...], list[int]]:
    """Return the slot types of a pool, and the type of each shape."""
    keys: list[tuple[int, int, tuple[int, ...]] | None] = []
    for s in shapes:
        task = instance.shapes[s]
        usable = tuple(
            number
            for number, group in enumerate(groups)
            if instance.admits_card[s, group.kind] and group.units >= task.units and group.memory >= task.memory
        )
        keys.append((-task.units, -task.memory, usable) if task.gpus else None)
    order = {key: number for number, key in enumerate(sorted({key for key in keys if key is not None}))}
    slots = tuple(SlotType(-units, -memory, usable) for units, memory, usable in order)
    return slots, [-1 if key is None else order[key] for key in keys]
