"""What is free now: arrays by node and card that placing and removing tasks change.

How cards are shared is stated here once for all methods that build a placement: a task takes `gpus` distinct
cards that admit it, `units` of each, and its device memory fits what is left on each. Shares on two cards are not
a card: 0.4 free here and 0.4 free there hold no task of 0.8. So is how NUMA zones hold tasks that are bound to them:
such a task takes cards of so many zones, and all it demands comes from these; see `placement.instance.Zones`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from operator import gt

import numpy as np

from placement.instance import ANY, GPU, NO_INTS, Assignment, Bools, Instance, Ints
from placement.tenants import Owners


class State:
    """Free amounts of every node and card of an instance.

    Attributes
    ----------
    free : int array (N, R)
        Free amount of each resource.
    units, memory, kind : int arrays (N, C)
        Free units, free device memory and kind of each card in canonical order; C is the most cards in a node, and
        absent cards have 0 units, 0 memory and kind -1.
    limits : int array (L,)
        What is left of each limit row.
    zone : int array (N, C)
        NUMA zone of each card; no columns where no task is bound to any.
    slack : int array (N, M, R)
        What tasks bound within each of the M sets of zones may still take; see `placement.instance.Zones`.
    slots : int array (N,)
        State of each MIG card, see `placement.mig.Slots`; -1 for other nodes. No rows where there are none.
    owners : Owners, optional
        Whose the domains or cards are; absent where all tasks may be together.
    """

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        widest = max((len(c.cards) for c in instance.classes), default=0)
        count, resources = len(instance.classes), len(instance.resources)
        free = np.array([c.free for c in instance.classes], dtype=np.int64).reshape(count, resources)
        cards = np.zeros((count, widest, 3), dtype=np.int64)
        cards[:, :, 0] = -1
        for k, node_class in enumerate(instance.classes):
            if node_class.cards:
                cards[k, : len(node_class.cards)] = node_class.cards
        of_node = instance.node_class
        # stored column by column, (R, N) and (C, N): what is done to many nodes at once then runs along memory, which
        # for sums and tests over the few columns is several times faster
        self.free: Ints = free.T.take(of_node, axis=1).T
        self.kind: Ints = cards[:, :, 0].T.take(of_node, axis=1).T
        self.units: Ints = cards[:, :, 1].T.take(of_node, axis=1).T
        self.memory: Ints = cards[:, :, 2].T.take(of_node, axis=1).T
        self.limits: Ints = np.array([row.capacity for row in instance.limits], dtype=np.int64)
        self.demand: Ints = np.array([s.demand for s in instance.shapes], dtype=np.int64).reshape(
            len(instance.shapes), resources
        )
        self._asked = list(self.demand[:, :, None])  # a column each, to compare many nodes with
        self._zones(instance)
        self._mig = instance.slots
        self.mates = instance.mates
        state_of = np.array([c.slots for c in instance.classes], dtype=np.int64)
        self.slots: Ints = state_of[of_node] if self._mig is not None else NO_INTS
        self._beyond: dict[int, tuple[int, list[tuple[int, int]]]] = {}
        """Of MIG cards on which more is held than fits, the state without that; profile and first slot of that."""
        kinds = len(instance.card_kinds)
        # one more column, so that kind -1 (no card) looks up False
        self.admits_card: Bools = np.zeros((len(instance.shapes), kinds + 1), dtype=np.bool_)
        self.admits_card[:, :kinds] = instance.admits_card
        self._admits: list[list[bool]] = self.admits_card.tolist()
        self.owners = None if instance.apart is None else Owners(instance.apart)

    def _zones(self, instance: Instance) -> None:
        """Set up what tasks bound to NUMA zones may take."""
        sets, resources = instance.zone_sets, len(instance.resources)
        widest = self.units.shape[1] if sets else 0
        zone = np.zeros((len(instance.classes), widest), dtype=np.int64)
        slack = np.zeros((len(instance.classes), len(sets), resources), dtype=np.int64)
        counts = np.zeros(len(instance.classes), dtype=np.int64)
        for k, node_class in enumerate(instance.classes):
            if node_class.zones is not None:
                zone[k, : len(node_class.cards)] = node_class.zones.card
                slack[k] = np.array(node_class.zones.slack, dtype=np.int64).reshape(len(sets), resources)
                counts[k] = node_class.zones.count
        self.zone: Ints = zone[instance.node_class]
        self.slack: Ints = slack[instance.node_class]
        self._zone_count = counts
        most = int(counts.max(initial=0))
        self._choices: list[list[int]] = [
            [sum(1 << zone for zone in some) for some in combinations(range(most), size)] for size in range(most + 1)
        ]
        self._covering: dict[int, Ints] = {}

    def sets_over(self, bits: int) -> Ints:
        """Return the rows of the sets that hold all of some zones."""
        if bits not in self._covering:
            rows = [row for row, one in enumerate(self.instance.zone_sets) if not bits & ~one]
            self._covering[bits] = np.array(rows, dtype=np.int64)
        return self._covering[bits]

    def zone_count(self, nodes: Ints) -> Ints:
        """Return how many NUMA zones some nodes have; 0 where no task is bound to any."""
        count: Ints = self._zone_count[self.instance.node_class[nodes]]
        return count

    def usable(self, shape: int, nodes: Ints) -> Bools:
        """Return which cards of some nodes have room for one task's share, as a (nodes, C) mask."""
        return self._usable(shape, nodes).T

    def _usable(self, shape: int, nodes: Ints) -> Bools:
        """Return the same with the cards first: (C, nodes)."""
        task = self.instance.shapes[shape]
        room: Bools = self.units.T.take(nodes, axis=1) >= task.units
        room &= self.admits_card[shape].take(self.kind.T.take(nodes, axis=1))
        if task.memory:
            room &= self.memory.T.take(nodes, axis=1) >= task.memory
        if task.tenant >= 0 and self.owners is not None and self.owners.by_card:
            room &= self.owners.lets_in(task.tenant, nodes)[:, : len(room)].T
        return room

    def let_in(self, shape: int, nodes: Ints) -> Bools | None:
        """Return which of some nodes, MIG cards included, other tenants leave to a task, or None for all.

        Other cards that are kept apart one by one are none of its affair; see `usable`.
        """
        task = self.instance.shapes[shape]
        if self.owners is None or task.tenant < 0 or (self.owners.by_card and task.profile < 0):
            return None
        mask = self.owners.lets_in(task.tenant, nodes)
        return mask[:, 0] if self.owners.by_card else mask

    def has_room(self, shape: int, nodes: Ints) -> Bools:
        """Return which of some nodes have free what one more task takes; filters on nodes and limits aside."""
        task = self.instance.shapes[shape]
        ok: Bools = np.logical_and.reduce(self.free.T.take(nodes, axis=1) >= self._asked[shape])
        let_in = self.let_in(shape, nodes)
        if let_in is not None:
            ok &= let_in
        if task.numa != ANY and self.instance.zone_sets:
            return self._has_room_within(shape, nodes, ok)
        if task.profile >= 0 and self._mig is not None:
            ok &= self._mig.takes[self.slots[nodes], task.profile]
        if task.gpus == 1:
            ok &= np.logical_or.reduce(self._usable(shape, nodes))
        elif task.gpus:
            ok &= self._usable(shape, nodes).sum(axis=0) >= task.gpus
        return ok

    def _has_room_within(self, shape: int, nodes: Ints, ok: Bools) -> Bools:
        """Return the same for tasks that are bound to zones on some nodes, given whose resources suffice in all."""
        usable = self._usable(shape, nodes).T
        needed = self.instance.bound[shape][self.instance.node_class[nodes]]
        found: Bools = ok & (needed == 0) & (usable.sum(axis=1) >= self.instance.shapes[shape].gpus)
        unknown = ok & (needed > 0)
        for rows, _ in self._holding(shape, nodes, usable, unknown):
            found[rows], unknown[rows] = True, False
        return found

    def _holding(self, shape: int, nodes: Ints, usable: Bools, among: Bools) -> Iterator[tuple[Ints, Bools]]:
        """Yield for each set of zones the places in `nodes` where it holds one more task, and its usable cards there.

        What is `among` those to look at may change in between.
        """
        gpus, counts = self.instance.shapes[shape].gpus, self.zone_count(nodes)
        needed = self.instance.bound[shape][self.instance.node_class[nodes]]
        for size in np.unique(needed[needed > 0]).tolist():
            for bits in self._choices[size]:
                rows = np.flatnonzero(among & (needed == size) & (bits >> counts == 0))
                inside = (bits >> self.zone[nodes[rows]] & 1 == 1) & usable[rows]
                slack = self.slack[np.ix_(nodes[rows], self.sets_over(bits))]
                holds = (inside.sum(axis=1) >= gpus) & (slack >= self.demand[shape]).all(axis=(1, 2))
                yield rows[holds], inside[holds]

    def within_reach(self, shape: int, nodes: Ints) -> Bools:
        """Return which cards of some nodes one more task could be on, as a (nodes, C) mask, resources of all aside.

        These are those with room for its share, and where it is bound to NUMA zones, in zones that hold it.
        """
        usable = self.usable(shape, nodes)
        if self.instance.shapes[shape].numa == ANY or not self.instance.zone_sets:
            return usable
        bound = self.instance.bound[shape][self.instance.node_class[nodes]] > 0
        reach: Bools = usable & ~bound[:, None]
        for rows, inside in self._holding(shape, nodes, usable, bound):
            reach[rows] |= inside
        return reach

    def _with_room(self, shape: int, node: int) -> list[tuple[int, int, int]]:
        """Return free units, free memory and position of each card of a node with room for one task's share."""
        task, admits = self.instance.shapes[shape], self._admits[shape]
        asked_units, asked_memory = task.units, task.memory
        if task.tenant >= 0 and self.owners is not None and self.owners.by_card:
            usable = self.usable(shape, np.array([node]))[0]
            rows = np.stack([self.units[node], self.memory[node], np.arange(len(usable))], axis=1)[usable]
            return [(free, memory, position) for free, memory, position in rows.tolist()]
        cards = zip(self.units[node].tolist(), self.memory[node].tolist(), self.kind[node].tolist(), strict=True)
        return [
            (free, memory, position)
            for position, (free, memory, kind) in enumerate(cards)
            if free >= asked_units and memory >= asked_memory and admits[kind]
        ]

    def fits(self, shape: int, nodes: Ints) -> Bools:
        """Return which of some nodes can take one more task of a shape; domain limits included."""
        ok: Bools = self.instance.admits_node[shape][self.instance.node_class[nodes]]
        ok = ok & self.has_room(shape, nodes)
        if len(self.limits):
            ok &= self._within_limits(shape, nodes)
        return ok

    def _within_limits(self, shape: int, nodes: Ints) -> Bools:
        full = np.array([self.limit_use(shape, row) > self.limits[row] for row in range(len(self.limits))])
        blocked = np.array([bool(full[list(c.limits)].any()) for c in self.instance.classes], dtype=np.bool_)
        return ~blocked[self.instance.node_class[nodes]]

    def limit_use(self, shape: int, row: int) -> int:
        """Return what one task of a shape takes of a limit row, on a node that counts in it."""
        task = self.instance.shapes[shape]
        resource = self.instance.limits[row].resource
        return task.of_cards if resource == GPU else task.demand[resource]

    def tightest(self, shape: int, node: int) -> tuple[int, ...] | None:
        """Return the usable cards with least room left, ties by position, or None if there are too few.

        A task that is bound to NUMA zones gets those in which that leaves least, and their positions behind the cards.
        """
        gpus, profile = self.instance.shapes[shape].gpus, self.instance.shapes[shape].profile
        if profile >= 0:
            return self._instance_of(profile, node)
        if self.instance.zone_sets:
            return self._tightest_within(shape, node, self._with_room(shape, node) if gpus else [])
        if not gpus:
            return ()
        cards = self._with_room(shape, node)
        if len(cards) < gpus:
            return None
        if gpus == 1:
            return (min(cards)[2],)
        cards.sort()
        return tuple(sorted([position for _, _, position in cards[:gpus]]))

    def _instance_of(self, profile: int, node: int) -> tuple[int, ...] | None:
        """Return the card and the slot at which an instance leaves most room, or None if there is none for it."""
        start = -1 if self._mig is None or self.slots[node] < 0 else int(self._mig.best[self.slots[node], profile])
        return None if start < 0 else (0, self.instance.slot_base + start)

    def on_card(self, shape: int, node: int, card: int) -> tuple[int, ...]:
        """Return what a task of one card takes on a node that has room when it is on a card within its reach."""
        if not self.instance.bound[shape, self.instance.node_class[node]]:
            return (card,)
        spot = self._tightest_within(shape, node, [one for one in self._with_room(shape, node) if one[2] == card])
        assert spot is not None
        return spot

    def _tightest_within(self, shape: int, node: int, usable: list[tuple[int, int, int]]) -> tuple[int, ...] | None:
        """Return the same where cards are in zones: those of zones with few that are usable come first."""
        instance, k = self.instance, self.instance.node_class[node]
        gpus, size, count = instance.shapes[shape].gpus, int(instance.bound[shape, k]), int(self._zone_count[k])
        if len(usable) < gpus:
            return None
        of_card = self.zone[node].tolist()
        inside = [sum(of_card[card[2]] == zone for card in usable) for zone in range(max(1, count))]
        cards = sorted((units, memory, inside[of_card[card]], card) for units, memory, card in usable)
        if not size:
            return self._of_one_zone(cards, gpus, of_card)
        best: tuple[object, ...] | None = None
        spot: tuple[int, ...] | None = None
        for bits in self._choices[size]:
            some = [card for card in cards if bits >> of_card[card[3]] & 1]
            slack = self.slack[node, self.sets_over(bits)]
            if bits >> count or len(some) < gpus or (slack < self.demand[shape]).any():
                continue
            rank = ([card[:2] for card in some[:gpus]], len(some), slack.min(axis=0).tolist())
            if best is None or rank < best:
                zones = [instance.widest + zone for zone in range(count) if bits >> zone & 1]
                best, spot = rank, (*sorted(card[3] for card in some[:gpus]), *zones)
        return spot

    @staticmethod
    def _of_one_zone(cards: list[tuple[int, int, int, int]], gpus: int, of_card: list[int]) -> tuple[int, ...]:
        """Return the first of some cards, or as good ones of one zone with few of them: that is nobody's loss."""
        first = cards[:gpus]
        for zone in {of_card[card[3]]: None for card in cards}:
            some = [card for card in cards if of_card[card[3]] == zone][:gpus]
            if [card[:2] for card in some] == [card[:2] for card in first]:
                first = some
                break
        return tuple(sorted(card[3] for card in first))

    def spot(self, shape: int, node: int) -> tuple[int, ...] | None:
        """Return the same, or None too if the node is short of a resource; filters on nodes and limits aside."""
        if any(map(gt, self.instance.shapes[shape].demand, self.free[node].tolist())):
            return None
        if self.owners is not None:
            let_in = self.let_in(shape, np.array([node]))
            if let_in is not None and not let_in[0]:
                return None
        return self.tightest(shape, node)

    def place(self, shape: int, node: int, cards: tuple[int, ...], sign: int = 1) -> None:
        """Take what one task needs of a node and its cards; with ``sign=-1`` give it back."""
        task = self.instance.shapes[shape]
        # MIG cards and their host share what is free of it
        self.free[self.mates.get(node, node)] -= sign * self.demand[shape]
        bits = 0
        for card in cards:
            if task.profile >= 0 and card >= self.instance.slot_base:
                self._change_slots(task.profile, node, card - self.instance.slot_base, sign)
                continue
            if card >= self.instance.widest:
                bits |= 1 << card - self.instance.widest
                continue
            self.units[node, card] -= sign * task.units
            if task.memory:
                self.memory[node, card] -= sign * task.memory
        if bits:
            self.slack[node, self.sets_over(bits)] -= sign * self.demand[shape]
        for row in self.instance.classes[self.instance.node_class[node]].limits:
            self.limits[row] -= sign * self.limit_use(shape, row)
        if self.owners is not None and task.tenant >= 0:
            self.owners.change(task.tenant, node, cards, sign)

    def _change_slots(self, profile: int, node: int, start: int, sign: int) -> None:
        """Take an instance or give it back; a card on which more is held than there is room for is in no state."""
        assert self._mig is not None
        now, beyond = self._beyond.pop(node, (int(self.slots[node]), []))
        instance = profile, start
        if sign > 0:
            beyond = [*beyond, instance]
        elif instance in beyond:
            beyond.remove(instance)
        else:
            now = int(self._mig.before[now, profile, start])
        over = []
        for one in beyond:
            then = int(self._mig.after[now, *one])
            if then < 0:
                over.append(one)
            else:
                now = then
        if over:
            self._beyond[node] = now, over
        self.slots[node] = -1 if over else now

    def bind(self, rows: Ints, bits: int, shape: Ints, node: Ints) -> None:
        """Take what some tasks demand of a set of zones, by their shapes and nodes."""
        sets = self.sets_over(bits)
        np.subtract.at(self.slack, (node[rows][:, None], sets), self.demand[shape[rows]][:, None, :])

    def remove(self, shape: int, node: int, cards: tuple[int, ...]) -> None:
        """Give back what one task took."""
        self.place(shape, node, cards, sign=-1)

    def apply(self, assignment: Assignment) -> None:
        """Place every task of an assignment."""
        instance = self.instance
        for row in range(len(assignment)):
            job_class = instance.job_classes[instance.job_class[assignment.job[row]]]
            shape = job_class.leaves[assignment.leaf[row]].shape
            cards = assignment.cards[assignment.offset[row] : assignment.offset[row + 1]]
            self.place(shape, int(assignment.node[row]), tuple(cards.tolist()))
