"""A cluster in counts for the model of victims: what each place has, what tasks take of it, and what leaves it.

Nodes on which no victim has a task, and which are alike, are one place. What is left out here (NUMA zones, device
memory, slots of MIG cards, shares that fit together but not on any one card) can only make more seem possible.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from placement.compile import compile as compile_snapshot
from placement.exact.preemption.landing import Ground
from placement.gang import Branch, Group, Leaf, leaves
from placement.instance import GPU
from placement.models.preemption import Cap, Key, Question, Supply, Victim
from placement.naming import job_names, node_names
from placement.snapshot import Job, TaskGroup


@dataclass(frozen=True, slots=True)
class Role:
    """What may become of a running job.

    Attributes
    ----------
    cost : float
        Of restarting it.
    may_stop, may_move : bool
    rank : int
        Of its priority.
    taken : dict of int to int
        What each of its tasks takes of each of the caps, by the number of the cap; the same for all of them.
    """

    cost: float
    may_stop: bool
    may_move: bool
    rank: int = 0
    taken: Mapping[int, Sequence[int]] = field(default_factory=dict)


def question(
    ground: Ground, roles: Sequence[Role], caps: Sequence[tuple[int, bool]] = (), most_stopped: int | None = None
) -> Question:
    """Return what is asked, in counts.

    Parameters
    ----------
    ground : Ground
    roles : sequence of Role
        Of its victims.
    caps : sequence of (int, bool)
        How much may be taken, see `Role.taken`, and whether the last job may take more.
    most_stopped : int, optional
    """
    return _Counts(ground, roles).question(caps, most_stopped)


def goes_as_one(job: Job) -> bool:
    """Return whether all tasks of a job leave if one does.

    So it is where it matters how they lie to one another, and where a group may do without some of its copies or
    groups: then it is not enough to count the tasks of each copy.
    """
    return bool(job.affinity) or any(
        group.topology is not None
        or (group.task is None and (group.min_count not in (None, group.count)))
        or (group.task is None and (group.min_groups not in (None, len(group.groups))))
        for group in _groups(job.groups)
    )


def _groups(groups: Sequence[TaskGroup]) -> Iterator[TaskGroup]:
    for group in groups:
        yield group
        yield from _groups(group.groups)


class _Counts:
    """The instance in which victims wait like the job, and where they are now."""

    def __init__(self, ground: Ground, roles: Sequence[Role]) -> None:
        self.ground, self.roles = ground, roles
        waiting = tuple(msgspec.structs.replace(job, running=None) for job in ground.victims)
        jobs = (*ground.snapshot.jobs, *waiting, ground.job)
        self.instance = compile_snapshot(msgspec.structs.replace(ground.snapshot, jobs=jobs))
        self.number = {name: job for job, name in enumerate(job_names(self.instance, np.arange(self.instance.jobs)))}
        self.root, self.leaves = self._class(ground.job.name)
        self.tied = list(_required(self.root))
        self.shape_of: list[int] = []
        self.home: list[int] = []
        self.cards: list[tuple[int, ...]] = []
        self.minima: list[tuple[tuple[tuple[int, ...], int], ...]] = []
        self.tasks: list[range] = []
        self._lay_out()
        self.place_of, self.members = self._places()

    def _class(self, name: str) -> tuple[Branch, tuple[Leaf, ...]]:
        one = self.instance.job_classes[self.instance.job_class[self.number[name]]]
        return one.root, one.leaves

    def _lay_out(self) -> None:
        """Give the tasks of victims numbers, and note where they are and what copies of groups they are of."""
        node_of = {name: n for n, name in enumerate(node_names(self.instance, np.arange(self.instance.hosts)))}
        for job in self.ground.victims:
            assert job.running is not None
            by_path = {leaf.path: leaf for leaf in self._class(job.name)[1]}
            first = len(self.shape_of)
            copies: dict[tuple[str, int], list[int]] = {
                (path, copy): [] for path, leaf in by_path.items() for copy in range(leaf.copies)
            }
            for task in job.running.tasks:
                leaf = by_path[task.group]
                node = node_of[task.node]
                copies[task.group, task.index // leaf.count].append(len(self.shape_of))
                order = self.instance.node_cards.get(node)
                mig = self.instance.shapes[leaf.shape].profile >= 0
                places = task.gpus if order is None or mig else tuple(order.index(card) for card in task.gpus)
                self.shape_of.append(leaf.shape)
                self.home.append(node)
                self.cards.append(() if mig else places)
            self.tasks.append(range(first, len(self.shape_of)))
            self.minima.append(tuple((tuple(mine), by_path[path].minimum) for (path, _), mine in copies.items()))

    def _places(self) -> tuple[list[int], list[list[int]]]:
        """Return the place of each host, and the hosts of each place."""
        instance = self.instance
        with_victims = set(self.home)
        slices: dict[int, list[int]] = defaultdict(list)
        for node in range(instance.hosts, instance.nodes):
            slices[int(instance.host[node])].append(int(instance.node_class[node]))
        levels = sorted({level for level, _ in self.tied})
        found: dict[object, int] = {}
        members: list[list[int]] = []
        place_of = []
        for host in range(instance.hosts):
            alike: object = host
            if host not in with_victims:
                domains = tuple(int(instance.domains[level, host]) for level in levels)
                alike = int(instance.node_class[host]), domains, tuple(sorted(slices.get(host, ())))
            place = found.setdefault(alike, len(members))
            if place == len(members):
                members.append([])
            members[place].append(host)
            place_of.append(place)
        return place_of, members

    # --- what is asked -------------------------------------------------------------------------------------------

    def question(self, caps: Sequence[tuple[int, bool]], most_stopped: int | None) -> Question:
        """Return what is asked."""
        victims = [
            Victim(tasks, role.cost, role.may_stop, role.may_move, together, () if together else minima, role.rank)
            for tasks, role, together, minima in zip(
                self.tasks, self.roles, self.ground.together, self.minima, strict=True
            )
        ]
        open_to = self._open_to()
        most = {}
        for leaf in self.leaves:
            for place in open_to[leaf.shape]:
                most[leaf.leaf, place] = leaf.count * leaf.copies
        needed = [_needed(self.root, leaf) for leaf in self.leaves]
        supplies = self._supplies()
        beside = self._beside(supplies, most)
        taken: list[dict[int, int]] = [{} for _ in caps]
        for tasks, role in zip(self.tasks, self.roles, strict=True):
            for cap, amounts in role.taken.items():
                taken[cap].update({t: amounts[t - tasks.start] for t in tasks if amounts[t - tasks.start]})
        domains = [
            (leaves, {place: int(self.instance.domains[level, hosts[0]]) for place, hosts in enumerate(self.members)})
            for level, leaves in self.tied
        ]
        return Question(
            victims, self.shape_of, needed, most, open_to, supplies, beside, domains,
            [Cap(limit, mine, beyond) for mine, (limit, beyond) in zip(taken, caps, strict=True)], most_stopped,
        )  # fmt: skip

    def _beside(self, supplies: Sequence[Supply], most: dict[Key, int]) -> list[tuple[Key, int, int]]:
        """Lower how many tasks fit at each place to what its supplies allow, and return how many beside each victim."""
        fewer: dict[tuple[Key, int], int] = {}
        for supply in supplies:
            if len({place for _, place in supply.leaves}) != 1:
                continue
            there = supply.left + sum(supply.tasks.values()) + len(supply.cards)
            kept = Counter(supply.tasks)
            for tasks in supply.cards:
                kept.update(dict.fromkeys(tasks, 1))
            for key, amount in supply.leaves.items():
                if key in most:
                    # like hosts have the same each, and a task needs all it asks for of one
                    hosts = len(self.members[key[1]])
                    most[key] = min(most[key], hosts * (there // hosts // amount))
                    for t, taken in kept.items():
                        fewer[key, t] = min(fewer.get((key, t), most[key]), (there - taken) // amount)
        return [(key, t, count) for (key, t), count in fewer.items() if count < most[key]]

    def _open_to(self) -> dict[int, list[int]]:
        """Return the places that may take tasks of each shape."""
        instance = self.instance
        found: dict[int, list[int]] = {}
        for shape, one in enumerate(instance.shapes):
            nodes = np.flatnonzero(instance.admits_node[shape, instance.node_class])
            nodes = nodes[(nodes >= instance.hosts) == (one.profile >= 0)]
            found[shape] = sorted({self.place_of[host] for host in instance.hosts_of(nodes).tolist()})
        return found

    def _supplies(self) -> list[Supply]:
        instance = self.instance
        found = []
        for place, hosts in enumerate(self.members):
            free = instance.classes[instance.node_class[hosts[0]]].free
            for resource in range(len(instance.resources)):
                amount = [shape.demand[resource] for shape in instance.shapes]
                found.append(self._supply({place}, len(hosts) * int(free[resource]), amount))
            found += self._card_supplies(place, hosts)
        for row, limit in enumerate(instance.limits):
            within = {
                self.place_of[host]
                for host in range(instance.hosts)
                if row in instance.classes[instance.node_class[host]].limits
            }
            if limit.resource == GPU:
                amount = [shape.of_cards for shape in instance.shapes]
            else:
                amount = [shape.demand[limit.resource] for shape in instance.shapes]
            found.append(self._supply(within, limit.capacity, amount))
        return found

    def _supply(self, places: set[int], free: int, amount: Sequence[int]) -> Supply:
        """Return what some places have of what a task of each shape takes so much of."""
        here = {t: amount[shape] for t, shape in enumerate(self.shape_of) if self.place_of[self.home[t]] in places}
        here = {t: taken for t, taken in here.items() if taken}
        # what is over-full now stays so; nothing of it is free before as much has left
        supply = Supply(max(0, free - sum(here.values())), tasks=here)
        for place in places:
            supply.leaves.update({(leaf.leaf, place): amount[leaf.shape] for leaf in self.leaves})
            supply.shapes.update({(shape, place): amount[shape] for shape in set(self.shape_of)})
        supply.leaves = {key: taken for key, taken in supply.leaves.items() if taken}
        supply.shapes = {key: taken for key, taken in supply.shapes.items() if taken}
        return supply

    def _card_supplies(self, place: int, hosts: Sequence[int]) -> Iterator[Supply]:
        """Yield what a place has of cards: of units, of whole cards, and of whole cards that each shape may use."""
        instance = self.instance
        whole = instance.card_units
        cards = instance.classes[instance.node_class[hosts[0]]].cards
        units = [0 if shape.profile >= 0 else shape.of_cards for shape in instance.shapes]
        yield self._supply({place}, len(hosts) * sum(free for _, free, _ in cards), units)
        on: dict[int, list[int]] = defaultdict(list)
        for t, home in enumerate(self.home):
            if home == hosts[0]:
                for card in self.cards[t]:
                    on[card].append(t)
        counts = [shape.gpus if shape.profile < 0 and shape.units == whole else 0 for shape in instance.shapes]
        admitted = {tuple(instance.admits_card[shape].tolist()) for shape, count in enumerate(counts) if count}
        if not any(counts):
            return
        everything = tuple([True] * len(instance.card_kinds))
        for kinds in {everything, *admitted}:
            usable = [card for card, (kind, _, _) in enumerate(cards) if kinds[kind]]
            free = [card for card in usable if cards[card][1] >= whole and card not in on]
            amount = [
                count if all(a <= b for a, b in zip(instance.admits_card[shape].tolist(), kinds, strict=True)) else 0
                for shape, count in enumerate(counts)
            ]
            supply = self._supply({place}, 0, amount)
            supply.left, supply.tasks = len(hosts) * len(free), {}
            supply.cards = [tuple(on[card]) for card in usable if card in on and cards[card][1] >= whole]
            yield supply


def _needed(root: Branch, leaf: Leaf) -> int:
    """Return how many tasks of a leaf a job has at least; 0 where it may do without the group."""

    def least(group: Group) -> int:
        if isinstance(group, Leaf):
            return group.minimum if group.leaf == leaf.leaf else 0
        if group.min_groups < len(group.children):
            return 0
        return group.minimum * sum(least(child) for child in group.children)

    return least(root)


def _required(group: Group, copies: int = 1) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield the levels of which one domain must hold all tasks of some leaves, with these leaves."""
    if group.ties is not None and group.ties.required >= 0 and copies == 1:
        yield group.ties.required, tuple(leaf.leaf for leaf in leaves(group))
    if isinstance(group, Branch):
        for child in group.children:
            yield from _required(child, copies * group.count)
