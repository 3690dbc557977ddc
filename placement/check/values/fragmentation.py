r"""Fragmentation: the idle GPU that the snapshot's own pending jobs could not use, in GPU-milli.

With :math:`R_n` the idle GPU on healthy cards of node n and :math:`p_m` the share of shape m among all tasks that
pending jobs want (placed or not),

.. math:: F = 1000 \sum_n \sum_m p_m F_n(m),

:math:`F_n(m)` is what of :math:`R_n` lies on cards that a task of m cannot use; all of :math:`R_n` if m takes no
card, or the node cannot take one more task of m. A task with a MIG profile can use cards on which an instance of it is
not used or can be made. Caps on domains, and on how many tasks share a card, do not count here. Source: Weng et al.,
"Beware of Fragmentation" (ATC'23), section 3, with every resource and filter of this snapshot in "cannot", and NUMA
zones where they could not hold the task even without any work.

Nodes of one kind with equal idle cards and equal room are looked at once, cards that are alike too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from placement.check.case.case import Placed
from placement.check.exact import LARGEST, Ints, Whole, at_least_zero, numbered, starts, sums, whole
from placement.check.facts.amounts import GPUS
from placement.check.facts.facts import Facts
from placement.check.facts.kinds import Shape
from placement.check.filters import mig_cards
from placement.check.waiting.possible import zones_hold
from placement.check.waiting.room import Rooms


def fragmentation(placed: Placed) -> Fraction:
    """Return the fragmentation that placed tasks leave."""
    facts = placed.facts
    wanted = demand(facts)
    total = sum(wanted)
    if not total:
        return Fraction(0)
    states = _states(placed)
    if states is None:
        return Fraction(0)
    # idle GPU weighted by the tasks that cannot use it: all idle GPU times all tasks, less what they can use
    lost = total * states.total() - _used(placed, states, wanted)
    return Fraction(1000 * lost, total * facts.scale[GPUS])


def demand(facts: Facts) -> list[int]:
    """Return how many tasks of each shape the pending jobs want."""
    wanted = [0] * len(facts.shapes)
    for gang, jobs in zip(facts.gangs, facts.waiting(), strict=True):
        for leaf in gang.leaves.values():
            wanted[leaf.shape.number] += leaf.wanted * jobs
    return wanted


@dataclass(frozen=True, slots=True)
class _Idle:
    """Idle healthy cards, one by one: node and card by position, what is idle, free memory, and what MIG took."""

    node: Ints
    card: Ints
    idle: Whole
    memory: Whole
    mig: Ints


@dataclass(frozen=True, slots=True)
class _States:
    """What nodes with idle cards are like, each state once.

    Attributes
    ----------
    rooms : Rooms
        Of all nodes.
    node, count : int arrays
        Of each state: the position of a node in it, and how many there are.
    set : int array
        Of each state: number of its set of idle cards.
    first : int array
        Where each set begins in `sort`, and last where they all end.
    sort : int array
        Of each card in the sets: what it is like, by number.
    card, idle, memory, mig : columns
        Of each sort of card: a position in `Facts.cards`, what is idle of it, its free memory, and which of
        `Slots.states` its instances are.
    """

    rooms: Rooms
    node: Ints
    count: Ints
    set: Ints
    first: Ints
    sort: Ints
    card: Ints
    idle: Whole
    memory: Whole
    mig: Ints

    def total(self) -> int:
        """Return all idle GPU."""
        return int((np.add.reduceat(self.idle[self.sort], self.first[:-1])[self.set] * self.count).sum())


def _states(placed: Placed) -> _States | None:
    """Return the states of the nodes with tasks, one by one, and of those without, kind by kind; None for no state."""
    facts, load = placed.facts, placed.load
    kinds = np.arange(len(facts.kinds), dtype=np.int64)
    kind = np.concatenate([load.kind, kinds])
    free = np.array(facts.nodes_of_kind(), dtype=np.int64) - np.bincount(load.kind, minlength=len(kinds))
    number = np.concatenate([np.ones(len(load), dtype=np.int64), free])
    none = np.zeros(len(kinds), dtype=np.int64)
    rooms = Rooms(facts, kind, {name: np.concatenate([load.demand(name), none]) for name in load.resources})
    cards = _idle(placed, number)
    if not len(cards.node):
        return None
    sort, example = numbered([_kinds_of_cards(facts)[cards.card], cards.idle, cards.memory, cards.mig])
    order = np.lexsort((sort, cards.node))
    nodes, begin = np.unique(cards.node[order], return_index=True)
    sets, first, members = _sets(sort[order], starts(np.diff(np.append(begin, len(order)))))
    state, node = numbered([sets, kind[nodes], *(column[nodes] for column in rooms.columns())])
    return _States(
        rooms=rooms,
        node=nodes[node],
        count=sums(state, number[nodes], len(node)),
        set=sets[node],
        first=first,
        sort=members,
        card=cards.card[example],
        idle=cards.idle[example],
        memory=cards.memory[example],
        mig=cards.mig[example],
    )


def _idle(placed: Placed, number: Ints) -> _Idle:
    """Return the idle healthy cards of nodes with tasks, then of one node of each kind without, if `number` has any."""
    facts, load = placed.facts, placed.load
    one, every = facts.scale[GPUS], np.arange(len(facts.cards), dtype=np.int64)
    kind = np.repeat(np.arange(len(facts.kinds), dtype=np.int64), np.diff(facts.first_card))
    unused = np.zeros(len(every), dtype=np.int64)
    card, node = np.concatenate([load.card, every]), np.concatenate([load.card_node, len(load) + kind])
    idle = at_least_zero(one - np.concatenate([load.share, unused + whole([0], 1, one)]))
    if (
        one * sum(len(kind.cards) * nodes for kind, nodes in zip(facts.kinds, facts.nodes_of_kind(), strict=True))
        >= LARGEST
    ):
        idle = idle.astype(object)
    most = max(shape.memory for shape in facts.shapes)
    stated = whole([most if fact.memory is None else fact.memory for fact in facts.cards], 1)[card]
    limited = np.array([fact.memory is not None for fact in facts.cards], dtype=np.bool_)[card]
    left = at_least_zero(stated - np.concatenate([load.memory, unused]))
    # more than the most that a task asks for is as good as that
    memory = np.minimum(np.where(limited, left, stated), whole([most], 1))
    healthy = np.array([fact.healthy for fact in facts.cards], dtype=np.bool_)[card]
    mig = np.concatenate([placed.slots.state, unused])
    rows = np.flatnonzero(healthy & np.asarray(idle > 0, dtype=np.bool_) & (number[node] > 0))
    return _Idle(node[rows], card[rows], idle[rows], memory[rows], mig[rows])


def _kinds_of_cards(facts: Facts) -> Ints:
    return np.array([fact.kind for fact in facts.cards], dtype=np.int64)


def _sets(sort: Ints, first: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the number of each stretch of sorts, equal where they are; where each begins, and the sorts, once each."""
    text, ends = sort.tobytes(), (first * sort.itemsize).tolist()
    known: dict[bytes, int] = {}
    number = [known.setdefault(text[a:b], len(known)) for a, b in pairwise(ends)]
    lengths = np.array([len(key) // sort.itemsize for key in known], dtype=np.int64)
    return np.array(number, dtype=np.int64), starts(lengths), np.frombuffer(b"".join(known), dtype=sort.dtype)


def _used(placed: Placed, states: _States, wanted: list[int]) -> int:
    """Return the idle GPU that wanted tasks can use, added up over all of them."""
    alike: dict[Hashable, list[Shape]] = defaultdict(list)
    for shape in placed.facts.shapes:
        if shape.gpus and wanted[shape.number]:
            alike[shape.card_key].append(shape)
    kind = states.rooms.kind[states.node]
    used = 0
    for shapes in alike.values():
        usable, idle = _cards_for(placed, states, shapes[0])
        some = np.flatnonzero(usable[states.set])
        usable, weight = usable[states.set[some]], idle[states.set[some]] * states.count[some]
        for shape in shapes:
            runs = usable >= shape.gpus
            runs &= placed.filters.admits_nodes(shape, kind[some])
            runs &= states.rooms.hold(shape, states.node[some])
            if shape.policy:
                able = {k: zones_hold(placed, shape, placed.facts.kinds[k]) for k in set(kind[some].tolist())}
                runs &= np.array([able[k] for k in kind[some].tolist()], dtype=np.bool_)
            used += wanted[shape.number] * int(weight[runs].sum())
    return used


def _cards_for(placed: Placed, states: _States, shape: Shape) -> tuple[Ints, Whole]:
    """Return how many cards of each set a shape can use, and the idle GPU on them."""
    good = placed.filters.admits_cards(shape, states.card)
    good &= np.asarray((states.idle >= shape.share) & (states.memory >= shape.memory), dtype=np.bool_)
    if shape.task.mig_profile:
        for sort in np.flatnonzero(good).tolist():
            gpu = placed.facts.cards[int(states.card[sort])].gpu
            good[sort] = mig_cards.opens(shape.task, gpu, *placed.slots.states[int(states.mig[sort])])
    begin = states.first[:-1]
    usable = np.add.reduceat(good[states.sort].astype(np.int64), begin)
    return usable, np.add.reduceat(np.where(good, states.idle, 0)[states.sort], begin)
