"""The rules that refuse a task on a node or a card whatever else runs there.

Each is a file of its own with a function ``refusal`` that returns why, or None.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import cached_property
from typing import TypeVar

import numpy as np

from placement.check.exact import Bools, Ints
from placement.check.facts.facts import Facts
from placement.check.facts.kinds import Card, NodeKind, Shape
from placement.check.filters import (
    compute_capability,
    cordon,
    gpu_models,
    health,
    isolation,
    memory_limit,
    mig_cards,
    mig_instance,
    node_selector,
    replica_memory,
    sharing,
    software,
    taints,
)
from placement.snapshot import Gpu, Job, Node, Task

NODE_RULES: dict[str, Callable[[Job, Task, Node], str | None]] = {
    "node_selector": node_selector.refusal,
    "taints": taints.refusal,
    "cordon": cordon.refusal,
    "software": software.refusal,
}
CARD_RULES: dict[str, Callable[[Job, Task, Gpu], str | None]] = {
    "gpu_models": gpu_models.refusal,
    "compute_capability": compute_capability.refusal,
    "health": health.refusal,
    "sharing": sharing.refusal,
    "isolation": isolation.refusal,
    "replica_memory": replica_memory.refusal,
    "mig": mig_cards.refusal,
    "mig_instance": mig_instance.refusal,
}
CARD_ON_NODE_RULES: dict[str, Callable[[Job, Task, Gpu, Node], str | None]] = {"memory_limit": memory_limit.refusal}
"""Those that look at the node's versions too."""


Thing = TypeVar("Thing")


class Filters:
    """Answers of the filters: in words for one pair, and in tables for all of them at once."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def node(self, shape: Shape, kind: NodeKind) -> dict[str, str]:
        """Return why a node refuses a task, by rule; empty where it does not."""
        reasons = ((name, rule(shape.job, shape.task, kind.node)) for name, rule in NODE_RULES.items())
        return {name: reason for name, reason in reasons if reason is not None}

    def card(self, shape: Shape, card: Card) -> dict[str, str]:
        """Return why a card refuses a task, by rule; empty where it does not."""
        reasons = [(name, rule(shape.job, shape.task, card.gpu)) for name, rule in CARD_RULES.items()]
        beside = CARD_ON_NODE_RULES.items()
        reasons += [(name, rule(shape.job, shape.task, card.gpu, card.node)) for name, rule in beside]
        return {name: reason for name, reason in reasons if reason is not None}

    def admits_nodes(self, shape: Shape | Ints, kind: Ints) -> Bools:
        """Return whether no node filter refuses: of one shape, or of the numbers of many, with kinds by number."""
        table, shapes, kinds = self._nodes
        return np.array(table[shapes[_number(shape)], kinds[kind]])

    def admits_cards(self, shape: Shape | Ints, card: Ints) -> Bools:
        """Return whether no card filter refuses; cards by their position in `Facts.cards`."""
        table, shapes, cards = self._cards
        return np.array(table[shapes[_number(shape)], cards[card]])

    def usable(self, shape: Shape, kind: NodeKind) -> Bools:
        """Return which cards of an empty node a task could use: those that admit it and have memory enough."""
        fits = np.array([card.memory is None or shape.memory <= card.memory for card in kind.cards], dtype=np.bool_)
        first = self._facts.first_card[kind.number]
        fits &= self.admits_cards(shape, first + np.arange(len(kind.cards)))
        return fits

    @cached_property
    def _nodes(self) -> tuple[Bools, Ints, Ints]:
        shapes, shape_number = _distinct((shape.node_key, shape) for shape in self._facts.shapes)
        kinds, kind_number = _distinct((kind.look, kind) for kind in self._facts.kinds)
        return _table([[not self.node(shape, kind) for kind in kinds] for shape in shapes]), shape_number, kind_number

    @cached_property
    def _cards(self) -> tuple[Bools, Ints, Ints]:
        shapes, shape_number = _distinct((shape.card_key, shape) for shape in self._facts.shapes)
        cards, card_number = _distinct((card.kind, card) for card in self._facts.cards)
        return _table([[not self.card(shape, card) for card in cards] for shape in shapes]), shape_number, card_number


def _distinct(pairs: Iterable[tuple[Hashable, Thing]]) -> tuple[list[Thing], Ints]:
    """Return one thing for each key, and the number of every thing's key."""
    number: dict[Hashable, int] = {}
    things: list[Thing] = []
    found = []
    for key, thing in pairs:
        index = number.setdefault(key, len(things))
        if index == len(things):
            things.append(thing)
        found.append(index)
    return things, np.array(found, dtype=np.int64)


def _number(shape: Shape | Ints) -> Ints | int:
    return shape.number if isinstance(shape, Shape) else shape


def _table(answers: list[list[bool]]) -> Bools:
    return np.array(answers, dtype=np.bool_).reshape(len(answers), -1 if answers else 0)
