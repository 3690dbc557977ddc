"""Which tasks fit into what is left of nodes: the resources of a node, and the filters on nodes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from placement.check.exact import Bools, Ints, Whole, at_least_zero, whole
from placement.check.facts.facts import Facts
from placement.check.facts.kinds import Shape


class Rooms:
    """What is left of some nodes.

    Parameters
    ----------
    facts : Facts
    kind : int array
        Of each node.
    taken : dict of str to column, optional
        What is taken of each node, by resource; nothing where it is not given.
    """

    def __init__(self, facts: Facts, kind: Ints, taken: dict[str, Whole] | None = None) -> None:
        self.kind = kind
        self._left = {}
        for resource in sorted({name for shape in facts.shapes for name in shape.demand}):
            stated = [node.capacity.get(resource, 0) for node in facts.kinds]
            most = max(shape.demand.get(resource, 0) for shape in facts.shapes)
            there = whole([most if amount is None else amount for amount in stated], 1)[kind]
            if taken is not None:
                limited = np.array([amount is not None for amount in stated], dtype=np.bool_)
                there = np.where(limited[kind], at_least_zero(there - taken[resource]), there)
            # more than the most that a task asks for is as good as that, and keeps the numbers small
            self._left[resource] = np.minimum(there, whole([most], 1))

    def columns(self) -> Iterable[Whole]:
        """Return what is left, resource by resource."""
        return self._left.values()

    def hold(self, shape: Shape, nodes: Ints) -> Bools:
        """Return on which of some nodes there is enough left for one task of a shape, cards aside."""
        held = np.ones(len(nodes), dtype=np.bool_)
        for resource, needed in shape.demand.items():
            held &= np.asarray(self._left[resource][nodes] >= needed, dtype=np.bool_)
        return held
