"""What the area bound counts: tasks that may run at all, and no more of a shape than fit on empty-handed nodes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from placement.evaluate import demand
from placement.gang import Group, Leaf
from placement.instance import Bools, Instance, Ints
from placement.state import State


@dataclass(frozen=True, slots=True)
class Items:
    """Pending tasks of equal shape, worth and priority.

    Attributes
    ----------
    shape, count, value, priority : int arrays (I,)
    """

    shape: Ints
    count: Ints
    value: Ints
    priority: Ints


class Free:
    """What is free on a node of each class, and what of it a task could use.

    Attributes
    ----------
    state : State
        One row per node class.
    size : int array (K,)
        Nodes of each class.
    healthy : bool array (K, C)
        Which cards are there, healthy, and of use to some task.
    of_use : bool array (K,)
        Whether a task asked about so far fits.
    """

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.state = State(replace(instance, node_class=np.arange(len(instance.classes)), apart=None))
        self.size: Ints = np.array([node_class.size for node_class in instance.classes], dtype=np.int64)
        healthy = np.array([kind.healthy for kind in instance.card_kinds] + [False], dtype=np.bool_)
        healthy[:-1] &= instance.admits_card.any(axis=0)
        self.healthy: Bools = healthy[self.state.kind]
        self._cards: dict[tuple[bytes, int], Bools] = {}
        self.of_use: Bools = np.zeros(len(instance.classes), dtype=np.bool_)

    def admitting(self, shape: int) -> Bools:
        """Return the node classes (K,) that admit a task, with as many cards as it takes, whatever is free."""
        task, state = self.instance.shapes[shape], self.state
        admits: Bools = self.instance.admits_node[shape]
        if not task.gpus:
            return admits
        key = (state.admits_card[shape].tobytes(), task.gpus)
        if key not in self._cards:
            self._cards[key] = state.admits_card[shape].take(state.kind.T).sum(axis=0) >= task.gpus
        return admits & self._cards[key]

    def most(self, shape: int, wanted: int) -> int:
        """Return a limit on the started tasks of a shape, not more than are wanted.

        Where as many nodes have room for one, that is all; else each node's own limit counts: a card gives room to as
        many as its units and its memory do, a node to as many as its resources do, and n tasks take `gpus` places
        each, no two of one task on one card.
        """
        task, state = self.instance.shapes[shape], self.state
        classes = np.flatnonzero(self.admitting(shape))
        classes = classes[state.has_room(shape, classes)]
        self.of_use[classes] = True
        if int(self.size[classes].sum()) >= wanted:
            return wanted
        most: Ints = np.full(len(classes), wanted)
        for resource, amount in enumerate(task.demand):
            if amount:
                np.minimum(most, state.free[:, resource][classes] // amount, out=most)
        if task.gpus:
            np.minimum(most, self._card_places(shape, classes) // task.gpus, out=most)
        return min(wanted, int(most @ self.size[classes]))

    def _card_places(self, shape: int, classes: Ints) -> Ints:
        """Return for how many tasks' shares there is room on the cards of each class, taken one by one."""
        task, state = self.instance.shapes[shape], self.state
        places = state.units.T.take(classes, axis=1) // task.units
        if task.memory:
            places = np.minimum(places, state.memory.T.take(classes, axis=1) // task.memory)
        found: Ints = (places * state.admits_card[shape].take(state.kind.T.take(classes, axis=1))).sum(axis=0)
        return found


def items_of(instance: Instance, free: Free) -> Items:
    """Return the tasks that the bound counts.

    A shape that fits on no node counts nothing, nor does a gang that needs such a one to start. Tasks of one shape
    take the same, so the most valuable ones of each priority stand for those that fit.
    """
    wanted = demand(instance)
    most = {shape: free.most(shape, int(wanted[shape])) for shape in np.flatnonzero(wanted).tolist()}
    amount: dict[tuple[int, int, int], int] = {}
    for job_class in instance.job_classes:
        living: set[int] = set()
        if _may_run(job_class.root, most, living):
            for leaf in job_class.leaves:
                if leaf.leaf in living:
                    key = (leaf.shape, job_class.priority, -leaf.value)
                    amount[key] = amount.get(key, 0) + leaf.count * leaf.copies * job_class.size
    rows = []
    left: dict[tuple[int, int], int] = {}
    for shape, priority, value in sorted(amount):  # by falling value within a shape and priority
        room = left.get((shape, priority), most[shape])
        count = min(amount[shape, priority, value], room)
        left[shape, priority] = room - count
        if count:
            rows.append((shape, count, -value, priority))
    table = np.array(rows, dtype=np.int64).reshape(-1, 4)
    return Items(table[:, 0], table[:, 1], table[:, 2], table[:, 3])


def _may_run(group: Group, most: dict[int, int], living: set[int]) -> bool:
    """Return whether enough tasks of a group fit for it to start once, and collect its leaves that may run."""
    if isinstance(group, Leaf):
        if most[group.shape] < group.minimum:
            return False
        living.add(group.leaf)
        return True
    below: set[int] = set()
    if sum([_may_run(child, most, below) for child in group.children]) < max(1, group.min_groups):
        return False
    living |= below
    return True
