"""At most how many tasks the nodes of a domain hold together without any work, and which jobs that keeps from starting.

Every node is taken to hold as many tasks of one shape as it does by itself, so the numbers are upper bounds: a job that
needs more of them than there are can never start. What several shapes take from one another is looked at in one respect
alone: how many tasks may be on a card.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cached_property

import numpy as np

from placement import units
from placement.gang import Group, Leaf
from placement.instance import GPU, Instance, Ints, LimitRow

MANY = 2**31
"""Stands for more tasks than any job has; sums of it over all nodes are exact as doubles."""


class Most:
    """Upper bounds on the tasks that domains of an instance hold.

    Parameters
    ----------
    instance : Instance
        Without rounded amounts.
    of_node : function
        Returns at most how many tasks of a shape each node holds by itself when it is empty.
    of_cards : function
        Returns what part of a card a task of a shape takes of all its cards together.
    places : function, optional
        Returns at most how many tasks of some shapes the cards of each empty node take, each once on each of its
        cards; absent where that is no matter.
    """

    def __init__(
        self,
        instance: Instance,
        of_node: Callable[[int], Ints],
        of_cards: Callable[[int], Fraction],
        places: Callable[[frozenset[int]], Ints] | None,
    ) -> None:
        self._places = places
        self._instance = instance
        self._of_node = of_node
        self._of_cards = of_cards
        self._known: dict[tuple[int, int, bool], tuple[int, int, int]] = {}

    def refusal(self, group: Group) -> str | None:
        """Return why a group can never run, as far as the number of its tasks tells; None if it may."""
        leaves, needs = _leaves(group), _needs(group)
        if max(needs.values(), default=0) > MANY:
            return None
        for level in (-1 if group.ties is None else group.ties.required, 0):
            for number, tasks in needs.items() if level >= 0 else ():
                text = self._within(leaves[number], tasks, level)
                if text:
                    return text
            text = self._together(group, level) if level >= 0 else None
            if text:
                return text
        if isinstance(group, Leaf):
            return self._sliced(group) or self._spread(group)
        return None

    # --- one domain ------------------------------------------------------------------------------------------

    def _within(self, leaf: Leaf, tasks: int, level: int, what: str = "needs") -> str | None:
        """Return why no domain of a level holds so many tasks of a leaf, or None."""
        if tasks == 1 and not level and not self._instance.limits:
            return None  # some node takes one, or it would have been said already
        most, _, node = self._largest(leaf.shape, level, True)
        if most >= tasks:
            return None
        uncapped, _, _ = self._largest(leaf.shape, level, False)
        where = f" in one {self._instance.levels[level]}" if level else ""
        if uncapped >= tasks:
            return self._one_capped(leaf) or (
                f"limits: {leaf.path} {what} {_tasks(tasks)}{where}; the caps allow {most:,} even without other work"
            )
        if not level:
            return f"{leaf.path} {what} {_tasks(tasks)}; all nodes together hold {most:,} when empty"
        if node < 0:
            return f"topology: {leaf.path} {what} {_tasks(tasks)}{where}; none holds any when empty"
        largest = f"the largest, {self._name(level, node)}, holds {most:,} when empty"
        return f"topology: {leaf.path} {what} {_tasks(tasks)}{where}; {largest}"

    def _together(self, group: Group, level: int) -> str | None:
        """Return why the cards of no domain of a level take all tasks that a group needs at once, or None."""
        if self._places is None or isinstance(group, Leaf):
            return None
        instance, leaves = self._instance, _leaves(group)
        with_cards = {leaf: tasks for leaf, tasks in _needs(group).items() if instance.shapes[leaves[leaf].shape].gpus}
        asked = sum(tasks * instance.shapes[leaves[leaf].shape].gpus for leaf, tasks in with_cards.items())
        if len(with_cards) < 2 or asked > MANY:
            return None
        shapes = frozenset(leaves[leaf].shape for leaf in with_cards)
        domain, found = instance.domains[level], self._places(shapes)
        inside = np.flatnonzero(domain >= 0)
        most = int(_sums(domain[inside], found[inside], 1).max())
        if most >= asked:
            return None
        where = f"in one {instance.levels[level]}; the most is" if level else "in all; there are"
        needs = f"{group.path or 'the job'} needs {asked:,} places for tasks on cards"
        return f"clients: {needs} {where} {most:,} when empty"

    def _largest(self, shape: int, level: int, capped: bool) -> tuple[int, int, int]:
        """Return the most tasks that a domain of a level holds, in how many domains there is any, and a node of it."""
        key = shape, level, capped
        if key not in self._known:
            held = self._held(shape, level, capped)
            some = int((held > 0).sum())
            best = int(held.argmax()) if some else -1
            node = int((self._instance.domains[level] == best).argmax()) if some else -1
            self._known[key] = int(held[best]) if some else 0, some, node
        return self._known[key]

    def _held(self, shape: int, level: int, capped: bool = True) -> Ints:
        """Return at most how many tasks of a shape each domain of a level holds, as nodes and, if asked, caps allow."""
        tasks = np.minimum(self._of_node(shape), MANY)
        domain = self._instance.domains[level]
        nodes = np.flatnonzero((tasks > 0) & (domain >= 0))
        tasks, domain = tasks[nodes], domain[nodes]
        length = int(domain.max(initial=-1)) + 1
        caps = [(row[nodes], allowed) for row, allowed in self._caps(shape)] if capped else []
        for row, allowed in caps:
            tasks = np.minimum(tasks, allowed[row])
        total = _sums(domain, tasks, length)
        for row, allowed in caps:
            both, one, place = np.unique(domain * len(allowed) + row, return_index=True, return_inverse=True)
            part = np.minimum(_sums(place.reshape(-1), tasks, len(both)), allowed[row[one]])
            total = np.minimum(total, _sums(domain[one], part, length))
        return total

    # --- slices and spread -----------------------------------------------------------------------------------

    def _sliced(self, leaf: Leaf) -> str | None:
        """Return why slices of a leaf never find domains; where it may run with fewer tasks, slices may be short."""
        if leaf.ties is None or leaf.minimum < leaf.count:
            return None
        for level, sizes in leaf.ties.slices:
            text = self._within(leaf, max(sizes), level, "has a slice of")
            if text:
                return text
            slices = leaf.count // sizes[0]
            if len(sizes) == 1 and slices > 1:
                room = int((self._held(leaf.shape, level) // sizes[0]).sum())
                if room < slices:
                    asked = f"needs {slices:,} slices of {_tasks(sizes[0])}, each in one {self._instance.levels[level]}"
                    return f"topology: {leaf.path} {asked}; there is room for {room:,} when empty"
        return None

    def _spread(self, leaf: Leaf) -> str | None:
        for level, most, fewest in leaf.ties.spread if leaf.ties is not None else ():
            name = self._instance.levels[level]
            there = self._largest(leaf.shape, level, True)[1]
            if there < fewest:
                asked = f"must lie in {fewest:,} domains of level {name} at least"
                return f"topology: {leaf.path} {asked}; {there:,} could take one of its tasks when empty"
            if most:
                room = int(np.minimum(self._held(leaf.shape, level), most).sum())
                if room < leaf.minimum:
                    asked = f"needs {_tasks(leaf.minimum)} with {most:,} at most in one {name}"
                    return f"topology: {leaf.path} {asked}; there is room for {room:,} when empty"
        return None

    # --- caps ------------------------------------------------------------------------------------------------

    @cached_property
    def _rows(self) -> list[tuple[Ints, list[list[tuple[int, int | Fraction]]]]]:
        """For each level of limits: the number of each node's cap, and the rows and amounts of each; 0 is no cap."""
        instance, found = self._instance, []
        # limits of queues allow more once other queues ask for less
        stated = {index: row for index, row in enumerate(instance.limits) if row.queue is None}
        for level in dict.fromkeys(row.level for row in stated.values()):
            number: dict[str, int] = {}
            rows: list[list[tuple[int, int | Fraction]]] = [[]]
            for index, row in stated.items():
                if row.level == level:
                    if number.setdefault(row.domain, len(rows)) == len(rows):
                        rows.append([])
                    rows[number[row.domain]].append((index, _cap(instance, row)))
            of_class = [
                next((number[stated[i].domain] for i in one.limits if i in stated and stated[i].level == level), 0)
                for one in instance.classes
            ]
            found.append((np.array(of_class, dtype=np.int64)[instance.node_class], rows))
        return found

    def _caps(self, shape: int) -> list[tuple[Ints, Ints]]:
        """For each level of limits: the number of each node's cap, and the tasks of a shape that each cap allows."""
        return [
            (of_node, np.array([min([MANY, *self._allowed(shape, caps)]) for caps in rows], dtype=np.int64))
            for of_node, rows in self._rows
        ]

    def _allowed(self, shape: int, caps: list[tuple[int, int | Fraction]]) -> list[int]:
        takes = [(self._takes(shape, row), cap) for row, cap in caps]
        return [cap // taken for taken, cap in takes if taken]

    def _takes(self, shape: int, row: int) -> int | Fraction:
        """Return what one task of a shape takes of the resource of a row; of cards in cards."""
        resource = self._instance.limits[row].resource
        return self._of_cards(shape) if resource == GPU else self._instance.shapes[shape].demand[resource]

    def _one_capped(self, leaf: Leaf) -> str | None:
        """Return what caps allow less of than a single task takes, where that alone keeps it off every node."""
        if self._largest(leaf.shape, 0, True)[0]:
            return None
        instance, nodes = self._instance, np.flatnonzero(self._of_node(leaf.shape))
        for of_node, rows in self._rows:
            for row, cap in rows[int(of_node[nodes[0]])]:
                taken, limit = self._takes(leaf.shape, row), instance.limits[row]
                if taken > cap:
                    name = f"{limit.level} {limit.domain}".rstrip()
                    asked, allowed = (_amount(instance, limit, number) for number in (taken, cap))
                    return f"limits: one task of {leaf.path} takes {asked}, {name} allows {allowed}"
        return None

    def _name(self, level: int, node: int) -> str:
        instance = self._instance
        name = instance.levels[level]
        return instance.node_name(node) if name == "node" else _position(instance, node, name)


def blocked(group: Group, refusal: Callable[[Group], str | None]) -> str | None:
    """Return what keeps a group from ever running: itself, or so many of its groups that the rest is not enough."""
    if not isinstance(group, Leaf):
        why = [text for text in (blocked(child, refusal) for child in group.children) if text is not None]
        if len(group.children) - len(why) < group.min_groups:
            return why[0]
    return refusal(group)


def _needs(group: Group) -> dict[int, int]:
    """Return the tasks, leaf by leaf, without which one copy of a group does not run."""
    if isinstance(group, Leaf):
        return {group.leaf: group.minimum}
    if group.min_groups < len(group.children):
        return {}
    return {leaf: group.minimum * tasks for child in group.children for leaf, tasks in _needs(child).items()}


def _leaves(group: Group) -> dict[int, Leaf]:
    if isinstance(group, Leaf):
        return {group.leaf: group}
    return {number: leaf for child in group.children for number, leaf in _leaves(child).items()}


def _cap(instance: Instance, row: LimitRow) -> int | Fraction:
    """Return a whole cap, running work or not, in the instance's units; of cards in cards."""
    limit = instance.snapshot.limits[int(row.path.removeprefix("limits[").removesuffix("]"))]
    if row.resource == GPU:
        return units.exact(limit.gpus or 0)
    name = instance.resources[row.resource]
    plain = {"cpu": limit.cpu, "memory": limit.memory}
    stated = plain[name] if name in plain else limit.extended[name.removeprefix("extended:")]
    assert stated is not None
    return int(units.exact(stated) / instance.resource_units[row.resource])


def _amount(instance: Instance, row: LimitRow, number: int | Fraction) -> str:
    if row.resource == GPU:
        return f"{float(number):.6g} card{'' if number == 1 else 's'}"
    name = instance.resources[row.resource]
    value = float(number * instance.resource_units[row.resource])
    return f"{value / 2**30:.6g}Gi memory" if name == "memory" else f"{value:.6g} {name.removeprefix('extended:')}"


def _position(instance: Instance, node: int, level: str) -> str:
    return instance.snapshot.nodes[int(instance.node_spec[node])].domains[level]


def _sums(place: Ints, amounts: Ints, length: int) -> Ints:
    return np.bincount(place, weights=amounts, minlength=length).astype(np.int64)


def _tasks(number: int) -> str:
    return f"{number:,} task{'' if number == 1 else 's'}"
