"""What a rule tells the engine.

A rule is known by one name in four places: here (what it looks at and whom it refuses), in `placement.models`
(its rows), in `placement.check` (its independent judgement) and in the tests. The engine asks the registry
`placement.rules.RULES` and knows no rule by name.

There are two kinds. A **filter** compares what it reads of a task with what it reads of a node or a card, and
either refuses the pair for good or has no opinion. A **dimension** is an amount that tasks use up and nodes
provide. What only depends on how cards are shared is in `placement.cards`; gangs are in `placement.gang`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from placement.snapshot import Gpu, Job, Node, Task


class NodeFilter(Protocol):
    """Refuses a task on a whole node.

    The two keys are the rule's signature: nodes with equal keys are alike to this rule, tasks with equal keys too.
    """

    name: ClassVar[str]

    def node_key(self, node: Node) -> Hashable:
        """Return all that the rule reads of a node."""
        ...

    def task_key(self, job: Job, task: Task) -> Hashable:
        """Return all that the rule reads of a task and its job, whose name, times, worth and count it leaves alone."""
        ...

    def refusal(self, task_key: Hashable, node_key: Hashable) -> str | None:
        """Return why such a task may not run on such a node, or None."""
        ...


class CardFilter(Protocol):
    """Refuses a task on a card."""

    name: ClassVar[str]

    def card_key(self, gpu: Gpu, node: Node) -> Hashable:
        """Return all that the rule reads of a card, and of the node that it is in beside its name, place and labels."""
        ...

    def task_key(self, job: Job, task: Task) -> Hashable:
        """Return all that the rule reads of a task and its job."""
        ...

    def refusal(self, task_key: Hashable, card_key: Hashable) -> str | None:
        """Return why such a task may not use such a card, or None."""
        ...


@runtime_checkable
class Tabulated(Protocol):
    """A filter that knows a quicker way to many refusals than one pair after the other.

    Only a rule of which both sides may read thousands of different things needs it.
    """

    def refusals(self, task_keys: Sequence[Hashable], keys: Sequence[Hashable]) -> npt.NDArray[np.bool_]:
        """Return which of some nodes or cards refuse which of some tasks, in a (tasks, places) mask."""
        ...


class Dimensions(Protocol):
    """Amounts that tasks use up and nodes provide, by resource name."""

    name: ClassVar[str]

    def demand(self, task: Task) -> Mapping[str, Fraction]:
        """Return what one task uses; a resource not named is not used."""
        ...

    def capacity(self, node: Node) -> Mapping[str, Fraction | None]:
        """Return what one node provides: None is no limit, a resource not named is not there.

        It does not depend on the node's name, position, labels or count.
        """
        ...
