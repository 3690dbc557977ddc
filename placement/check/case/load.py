"""What running work and a plan's tasks take of every node and card they touch, side by side and in columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placement.check.exact import Ints, Whole, at_least_zero, starts, sums, whole
from placement.check.facts.amounts import GPUS
from placement.check.facts.facts import Facts
from placement.check.facts.kinds import Card
from placement.check.facts.names import name_of
from placement.check.facts.uses import Uses


@dataclass(frozen=True, slots=True)
class Taken:
    """What some tasks take.

    Attributes
    ----------
    uses : Uses
        The tasks.
    node : int array
        Position of each task's node in the load.
    demand : dict of str to column
        Of each node, by resource.
    share, memory : columns
        Of each card.
    caps : list of dict of str to int
        In the domain of each of the snapshot's limits, by resource.
    """

    uses: Uses
    node: Ints
    demand: dict[str, Whole]
    share: Whole
    memory: Whole
    caps: list[dict[str, int]]


class Load:
    """Everything that is taken under a plan.

    Attributes
    ----------
    spec, copy, kind : int arrays
        Of the nodes with any task: entry, number within it, and kind; in the order in which running and new tasks
        first name them.
    first_card : int array
        Where the cards of each node begin in the columns of cards, and last where they all end.
    card_node : int array
        Position of each card's node.
    card : int array
        Position of each card in `Facts.cards`.
    running, new : Taken
    """

    def __init__(self, facts: Facts, running: Uses, new: Uses) -> None:
        self.facts = facts
        spec = np.concatenate([running.spec, new.spec])
        copy = np.concatenate([running.copy, new.copy])
        _, first, place = np.unique(facts.node_names.first[spec] + copy, return_index=True, return_inverse=True)
        order = np.argsort(first)
        self.spec: Ints = spec[first[order]]
        self.copy: Ints = copy[first[order]]
        self.kind: Ints = facts.kind[self.spec]
        position = np.empty(len(order), dtype=np.int64)
        position[order] = np.arange(len(order))
        node = position[place.reshape(-1)]
        cards = np.diff(facts.first_card)[self.kind]
        self.first_card: Ints = starts(cards)
        self.card_node: Ints = np.repeat(np.arange(len(self), dtype=np.int64), cards)
        within = np.arange(len(self.card_node), dtype=np.int64) - self.first_card[self.card_node]
        self.card: Ints = facts.first_card[self.kind[self.card_node]] + within
        # no sum has more terms than there are tasks, and each card of a task is one
        self._terms = len(running) + len(new) + len(running.device) + len(new.device)
        self._demand = self._table({name for shape in facts.shapes for name in shape.demand})
        self._share = whole([shape.share for shape in facts.shapes], self._terms, facts.scale[GPUS])
        self._memory = whole([shape.memory for shape in facts.shapes], self._terms)
        self.running = self._taken(running, node[: len(running)])
        self.new = self._taken(new, node[len(running) :])

    def __len__(self) -> int:
        return len(self.spec)

    def demand(self, resource: str) -> Whole:
        """Return what is taken of a resource, by node."""
        return self.running.demand[resource] + self.new.demand[resource]

    @property
    def share(self) -> Whole:
        """Shares taken, by card."""
        return self.running.share + self.new.share

    @property
    def memory(self) -> Whole:
        """Device memory taken, by card."""
        return self.running.memory + self.new.memory

    @property
    def resources(self) -> list[str]:
        """Resources of nodes that some task asks for."""
        return list(self._demand)

    def capacity(self, resource: str) -> tuple[Whole, np.ndarray]:
        """Return what there is of a resource by kind of node, and where there is a limit."""
        stated = [kind.capacity.get(resource, 0) for kind in self.facts.kinds]
        limited = np.array([amount is not None for amount in stated], dtype=np.bool_)
        return whole([amount or 0 for amount in stated], 1), limited

    def room(self, resource: str, most: int) -> Whole:
        """Return what is left of a resource by node, at least 0 and, where there is no limit, `most`."""
        capacity, limited = self.capacity(resource)
        left = at_least_zero(capacity[self.kind] - self.demand(resource))
        return np.where(limited[self.kind], left, whole([most], 1))

    # --- names -----------------------------------------------------------------------------------------------

    def name(self, node: int) -> str:
        """Return the name of a node by its position."""
        return name_of(self.facts.snapshot.nodes[int(self.spec[node])], int(self.copy[node]))

    def where(self, card: int) -> tuple[str, int, str, Card]:
        """Return the node's name, the device, its path in the snapshot and the card at a position."""
        node = int(self.card_node[card])
        fact = self.facts.cards[int(self.card[card])]
        path = f"nodes[{self.spec[node]}].gpus[{fact.entry}]"
        return self.name(node), card - int(self.first_card[node]), path, fact

    def first_named(self, taken: Taken, resource: str) -> Ints:
        """Return the first task on each node that asks for a resource."""
        asks = np.array([resource in shape.demand for shape in self.facts.shapes], dtype=np.bool_)
        rows = np.flatnonzero(asks[self.facts.shape_of_leaf[taken.uses.leaf]])
        first = np.full(len(self), len(taken.uses), dtype=np.int64)
        np.minimum.at(first, taken.node[rows], rows)
        return first

    # --- sums ------------------------------------------------------------------------------------------------

    def _table(self, resources: set[str]) -> dict[str, Whole]:
        """Return what a task of each shape takes, by resource."""
        shapes = self.facts.shapes
        return {name: whole([shape.demand.get(name, 0) for shape in shapes], self._terms) for name in sorted(resources)}

    def _taken(self, uses: Uses, node: Ints) -> Taken:
        shape = self.facts.shape_of_leaf[uses.leaf]
        card = self.first_card[node[uses.row]] + uses.device
        cards = len(self.card)
        return Taken(
            uses=uses,
            node=node,
            demand={name: sums(node, amount[shape], len(self)) for name, amount in self._demand.items()},
            share=sums(card, self._share[shape[uses.row]], cards),
            memory=sums(card, self._memory[shape[uses.row]], cards),
            caps=self._caps(uses, self.kind[node], shape),
        )

    def _caps(self, uses: Uses, kind: Ints, shape: Ints) -> list[dict[str, int]]:
        """Add up by kind of node first: nodes of one kind are in the same domains that are limited."""
        totals: list[dict[str, int]] = [{} for _ in self.facts.caps]
        if not totals:
            return totals
        kinds = self.facts.kinds
        by_kind = {name: sums(kind, amount[shape], len(kinds)) for name, amount in self._demand.items()}
        by_kind[GPUS] = sums(kind[uses.row], self._share[shape[uses.row]], len(kinds))
        for number in np.unique(kind).tolist():
            for limit in kinds[number].limits:
                for name, amounts in by_kind.items():
                    totals[limit][name] = totals[limit].get(name, 0) + int(amounts[number])
        return totals
