r"""Fragmentation: the idle GPU that the snapshot's own pending jobs could not use, in GPU-milli.

With :math:`R_n` the idle GPU on healthy cards of node n and :math:`p_m` the share of shape m among all tasks that
pending jobs want (placed or not),

.. math:: F = 1000 \sum_n \sum_m p_m F_n(m),

:math:`F_n(m)` is what of :math:`R_n` lies on cards that a task of m cannot use; all of :math:`R_n` if m takes no
card, or the node cannot take one more task of m. Caps on domains do not count here. Source: Weng et al., "Beware of
Fragmentation" (ATC'23), section 3, with every resource and filter of this snapshot in "cannot".
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable
from fractions import Fraction

from placement.check.case import Placed
from placement.check.facts import GPUS, Card, NodeFact, Shape
from placement.check.load import NodeLoad

_State = tuple[int, int, int | None]
"""Of a card: its kind, what is idle of it, and its free memory."""


def fragmentation(placed: Placed) -> Fraction:
    """Return the fragmentation that placed tasks leave."""
    wanted = demand(placed)
    total = sum(wanted.values())
    if not total:
        return Fraction(0)
    count = _Count(placed, wanted)
    # idle GPU weighted by the tasks that cannot use it: all idle GPU times all tasks, less what they can use
    lost = 0
    untouched = [fact.node.count for fact in placed.facts.nodes]
    for node in placed.load.nodes.values():
        untouched[node.fact.spec] -= 1
        lost += count.lost(node)
    for fact, number in zip(placed.facts.nodes, untouched, strict=True):
        if number:
            lost += number * count.lost(NodeLoad("", fact))
    return Fraction(1000 * lost, total * placed.facts.scale[GPUS])


def demand(placed: Placed) -> Counter[Shape]:
    """Return how many tasks of each shape the pending jobs want."""
    wanted: Counter[Shape] = Counter()
    for fact in placed.facts.pending():
        for leaf in fact.leaves.values():
            wanted[leaf.shape] += leaf.wanted * fact.job.count
    return wanted


class _Count:
    """Counts what one node loses; shapes that ask the same of cards are looked at together."""

    def __init__(self, placed: Placed, wanted: Counter[Shape]) -> None:
        self._filters = placed.filters
        self._card = placed.facts.scale[GPUS]
        self._total = sum(wanted.values())
        self._alike: dict[Hashable, list[tuple[Shape, int]]] = defaultdict(list)
        for shape, number in wanted.items():
            if shape.gpus:
                self._alike[shape.card_key].append((shape, number))
        self._usable: dict[tuple[Hashable, frozenset[tuple[_State, int]]], tuple[int, int]] = {}

    def lost(self, node: NodeLoad) -> int:
        """Return the idle GPU of a node times the number of wanted tasks that cannot use it."""
        cards: Counter[_State] = Counter()
        kinds: dict[int, Card] = {}
        for device, card in enumerate(node.fact.cards):
            idle = max(0, self._card - node.share(device))
            if idle and card.healthy:
                free = None if card.memory is None else max(0, card.memory - node.memory(device))
                cards[card.kind, idle, free] += 1
                kinds[card.kind] = card
        if not cards:
            return 0
        lost = self._total * sum(idle * number for (_, idle, _), number in cards.items())
        state = frozenset(cards.items())
        room = node.room()
        for card_key, shapes in self._alike.items():
            key = (card_key, state)
            if key not in self._usable:
                self._usable[key] = self._use(shapes[0][0], cards, kinds)
            usable, idle = self._usable[key]
            if usable:
                for shape, number in shapes:
                    if shape.gpus <= usable and fits(shape, room) and not self._filters.node(shape, node.fact):
                        lost -= idle * number
        return lost

    def _use(self, shape: Shape, cards: Counter[_State], kinds: dict[int, Card]) -> tuple[int, int]:
        """Return how many cards a shape can use, and the idle GPU on them."""
        usable = total = 0
        for (kind, idle, free), number in cards.items():
            room = idle >= shape.share and (free is None or free >= shape.memory)
            if room and not self._filters.card(shape, kinds[kind]):
                usable += number
                total += idle * number
        return usable, total


def fits(shape: Shape, room: dict[str, float]) -> bool:
    """Return whether what is left of a node's resources, cards aside, holds one more task."""
    for resource, needed in shape.demand.items():  # noqa: SIM110 - most of the time is spent here, and all() is slower
        if needed > room.get(resource, 0):
            return False
    return True


def whole(fact: NodeFact, node: NodeLoad | None = None) -> bool:
    """Return whether a node has healthy cards and all of them are wholly free."""
    healthy = [device for device, card in enumerate(fact.cards) if card.healthy]
    return bool(healthy) and (node is None or not any(node.share(device) for device in healthy))
