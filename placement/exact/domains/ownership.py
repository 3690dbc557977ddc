"""Which tenant owns which domain: as running work has it, as an assignment has it, and by what it is worth to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from placement.evaluate import demand
from placement.exact.milp.arrays import Floats
from placement.exact.objectives.targets import COUNTED
from placement.index import members, numbered
from placement.instance import Assignment, Instance, Ints
from placement.models.pools import leaf_rows, leaf_table
from placement.state import State
from placement.tenants import FREE, SHUT

GIVEN_AWAY = 0.25
"""Part of the domains that are given away again."""
LOWER = 1e3
"""How much less a task of the next lower priority counts where domains are given to tenants."""


def shapes_of(instance: Instance, assignment: Assignment) -> Ints:
    """Return the shape of each task."""
    found: Ints = leaf_table(instance)[leaf_rows(instance, assignment), 2]
    return found


def tenants_of(instance: Instance) -> Ints:
    """Return the tenant of each shape."""
    return np.array([shape.tenant for shape in instance.shapes], dtype=np.int64)


def owned(instance: Instance, owner: Ints) -> Instance:
    """Return an instance in which nodes admit the tasks of their domain's owner alone, and those without a tenant.

    Parameters
    ----------
    instance : Instance
    owner : int array (D,)
        Of each domain; `FREE` ones admit all.
    """
    assert instance.apart is not None
    of_node = owner[instance.apart.domain]
    number, first = numbered(zip(instance.node_class.tolist(), of_node.tolist(), strict=True))
    kept, whose, tenant = instance.node_class[first], of_node[first], tenants_of(instance)[:, None]
    return replace(
        instance,
        node_class=number,
        classes=tuple(
            replace(instance.classes[old], nodes=inside)
            for old, inside in zip(kept.tolist(), members(number, len(first)), strict=True)
        ),
        admits_node=instance.admits_node[:, kept] & ((tenant < 0) | (whose == FREE) | (whose == tenant)),
        bound=instance.bound[:, kept],
        apart=None,
    )


def keeps(instance: Instance, assignment: Assignment) -> bool:
    """Return whether an assignment keeps tenants apart, from each other and from running work."""
    apart = instance.apart
    assert apart is not None
    if not len(assignment):
        return True
    tenant, place = tenants_of(instance)[shapes_of(instance, assignment)], apart.domain[assignment.node]
    owner = apart.owner.reshape(-1)
    if apart.owner.ndim == 2:
        row = np.repeat(np.arange(len(assignment)), np.diff(assignment.offset))
        is_card = assignment.cards < apart.owner.shape[1]
        row, card = row[is_card], assignment.cards[is_card]
        tenant, place = tenant[row], place[row] * apart.owner.shape[1] + card
    place, tenant = place[tenant >= 0], tenant[tenant >= 0]
    lets_in = (owner[place] == FREE) | (owner[place] == tenant)
    pairs = np.unique(np.stack([place, tenant]), axis=1)
    return bool(lets_in.all() and len(np.unique(place)) == pairs.shape[1])


def within(instance: Instance, assignment: Assignment) -> Assignment:
    """Return the jobs of an assignment all of whose tasks are on nodes that admit them."""
    if not len(assignment):
        return assignment
    there = instance.admits_node[shapes_of(instance, assignment), instance.node_class[assignment.node]]
    return assignment.of_jobs(np.setdiff1d(assignment.job, assignment.job[~there]))


class Ownership:
    """Chooses owners of domains; where tenants are kept apart by card, each node is one.

    Attributes
    ----------
    by_card : bool
    domains : int
        How many there are.
    first : int array (D,)
        Owners at the start.
    waiting : int array
        Tenants of tasks that wait.
    """

    def __init__(self, instance: Instance, objectives: Sequence[str] = ()) -> None:
        assert instance.apart is not None
        self.instance, self._domain = instance, instance.apart.domain
        owner = instance.apart.owner
        self.by_card = owner.ndim == 2
        self.first: Ints = owner
        if self.by_card:
            most = len(instance.apart.tenants)
            low = np.where(owner == FREE, most, owner).min(axis=1, initial=most)
            high = owner.max(axis=1, initial=FREE)
            # where cards of a node are several tenants', none of these can have all of it
            self.first = np.where(low == most, FREE, np.where(low == high, high, SHUT))
        self.domains = len(self.first)
        self._tenant = tenants_of(instance)
        self._wanted = demand(instance)
        self.waiting: Ints = np.unique(self._tenant[(self._tenant >= 0) & (self._wanted > 0)])
        self._size = self._sizes()
        self._room = self._rooms()
        self._curves = self._worth(next((name for name in objectives if name in COUNTED), "value") == "value")

    def _sizes(self) -> Ints:
        """Return what a task of each shape counts: its cards, or one where nobody takes any."""
        size = np.array([shape.of_cards for shape in self.instance.shapes], dtype=np.int64)
        return size if size[self._tenant >= 0].any() else np.ones_like(size)

    def _rooms(self) -> np.ndarray:
        """Return what of each domain each waiting tenant could use, as a (tenants, D) table."""
        instance = self.instance
        state = State(replace(instance, apart=None))
        cards = any(shape.of_cards for shape in instance.shapes)
        free = state.units.sum(axis=1) if cards else np.ones(instance.nodes, dtype=np.int64)
        table = np.zeros((len(self.waiting), self.domains))
        for row, tenant in enumerate(self.waiting.tolist()):
            of_use = np.zeros(len(instance.classes), dtype=np.bool_)
            first = np.array([one.nodes[0] for one in instance.classes], dtype=np.int64)
            for shape in np.flatnonzero((self._tenant == tenant) & (self._wanted > 0)).tolist():
                of_use |= instance.admits_node[shape] & state.has_room(shape, first)
            np.add.at(table[row], self._domain, np.where(of_use[instance.node_class], free, 0))
        return table

    def alike(self) -> list[list[int]]:
        """Return the free domains in groups of such as are alike."""
        instance = self.instance
        free = np.flatnonzero(self.first == FREE)
        in_use = np.unique(self._domain)
        free = free[np.isin(free, in_use)]
        if instance.tied or instance.timed or instance.slots is not None:
            return [[domain] for domain in free.tolist()]
        order = np.lexsort((instance.node_class, self._domain))
        begin = np.searchsorted(self._domain[order], np.arange(self.domains + 1))
        looks: dict[bytes, list[int]] = {}
        for domain in free.tolist():
            inside = instance.node_class[order[begin[domain] : begin[domain + 1]]]
            looks.setdefault(inside.tobytes(), []).append(domain)
        return list(looks.values())

    def of(self, assignment: Assignment, rng: np.random.Generator | None = None) -> Ints:
        """Return the owners by majority in an assignment, and for what nobody owns those to whom it is worth most.

        Parameters
        ----------
        assignment : Assignment
        rng : Generator, optional
            To give some domains away that have owners.
        """
        shape = shapes_of(self.instance, assignment)
        tenant, domain = self._tenant[shape], self._domain[assignment.node]
        mine = np.zeros((len(self._curves), self.domains))
        some = tenant >= 0
        np.add.at(mine, (tenant[some], domain[some]), 1 + self._size[shape[some]])
        owner = np.where((self.first == FREE) & mine.any(axis=0), mine.argmax(axis=0), self.first)
        if rng is not None:
            again = rng.random(self.domains) < GIVEN_AWAY
            owner[again] = self.first[again]
        return self._given(owner, rng)

    def _given(self, owner: Ints, rng: np.random.Generator | None) -> Ints:
        """Return the owners with each domain that nobody owns given to whom more room is worth most."""
        has = np.array([room[owner == tenant].sum() for tenant, room in zip(self.waiting, self._room, strict=True)])
        curves = [self._curves[tenant] for tenant in self.waiting.tolist()]
        free = np.flatnonzero(owner == FREE)
        order = np.argsort(-self._room[:, free].max(axis=0, initial=0), kind="stable")
        for domain in free[order if rng is None else rng.permutation(len(free))].tolist():
            more = self._room[:, domain]
            gain = [
                float(np.interp(have + room, *curve) - np.interp(have, *curve))
                for have, room, curve in zip(has.tolist(), more.tolist(), curves, strict=True)
            ]
            best = int(np.argmax(gain)) if gain else -1
            if best >= 0 and gain[best] > 0:
                owner[domain] = self.waiting[best]
                has[best] += more[best]
        return owner

    def _worth(self, by_value: bool) -> list[tuple[Floats, Floats]]:
        """Return for each tenant what room for the best of its tasks is worth, as a curve."""
        instance = self.instance
        table = leaf_table(instance)
        rank = {priority: number for number, priority in enumerate(sorted(instance.priorities))}
        tier = np.array([rank[instance.job_classes[number].priority] for number in table[:, 0].tolist()], dtype=float)
        size = np.maximum(self._size[table[:, 2]], 1e-3)
        # a lower priority counts little beside a higher one
        value = table[:, 4] * LOWER ** (tier - tier.max(initial=0)) if by_value else np.ones(len(table))
        curves = []
        for tenant in range(len(instance.apart.tenants)):  # type: ignore[union-attr]
            rows = np.flatnonzero(self._tenant[table[:, 2]] == tenant)
            rows = rows[np.argsort(-value[rows] / size[rows], kind="stable")]
            steps = [np.cumsum(amount[rows] * table[rows, 3]) for amount in (size, value)]
            curves.append((np.append(0.0, steps[0]), np.append(0.0, steps[1])))
        return curves

    def closed(self, owner: Ints) -> Ints:
        """Return the owners with what nobody owns shut."""
        return np.where(owner == FREE, SHUT, owner)
