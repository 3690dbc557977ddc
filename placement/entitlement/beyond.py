"""Which share or quota of a queue a job that waits would exceed, beside the other work of a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial

import numpy as np

from placement.entitlement.least import Least, short_for, too_much
from placement.gang import Leaf, least_of
from placement.instance import Assignment, Instance, Ints
from placement.quota import ALL, QueueLimit, Short

Models = frozenset[str | None]
"""Card models; None for those without a limit."""


def beyond(instance: Instance, assignment: Assignment, classes: Sequence[int]) -> dict[int, Short]:
    """Return for classes of jobs by how much they ask for more than is left to their queue; nothing for others.

    Parameters
    ----------
    instance : Instance
    assignment : Assignment
        The work of a plan, beside that which runs.
    classes : sequence of int
        Of jobs that wait.

    Returns
    -------
    dict of int to Short
        With the first limit that alone keeps the jobs of a class out, wherever they are placed.
    """
    left = _Left(instance, assignment) if classes else None
    if left is None or not left.rows:
        return {}
    found = {}
    for number in classes:
        one = instance.job_classes[number]
        short = left.short(one.leaves, partial(least_of, one.root))
        if short is not None:
            found[number] = short
    return found


def beyond_one_more(
    instance: Instance, assignment: Assignment, missing: Mapping[int, Sequence[int]]
) -> dict[int, Short]:
    """Return for classes of jobs by how much one more task asks for more than is left to their queue.

    Parameters
    ----------
    instance : Instance
    assignment : Assignment
    missing : mapping of int to sequence of int
        By class, the leaves of which a job that runs wants more tasks.

    Returns
    -------
    dict of int to Short
        The least of its leaves; nothing for a class where one more task of some leaf could be within all limits.
    """
    left = _Left(instance, assignment) if missing else None
    if left is None or not left.rows:
        return {}
    found = {}
    for number, leaves in missing.items():
        each = [left.short([instance.job_classes[number].leaves[leaf]], sum) for leaf in leaves]
        shorts = [short for short in each if short is not None]
        if shorts and len(shorts) == len(each):
            found[number] = min(shorts, key=lambda short: short.amount)
    return found


@dataclass(slots=True)
class _Left:
    """What the limits of queues leave beside a plan.

    Attributes
    ----------
    rows : dict of int to dict of str to int
        Limits by resource, which is a set of queues, and by card model, `ALL` among them.
    """

    instance: Instance
    assignment: Assignment
    rows: dict[int, dict[str, int]] = field(default_factory=dict)
    _left: dict[int, int] = field(default_factory=dict)
    _model: list[str | None] = field(default_factory=list)
    _where: dict[int, Models] = field(default_factory=dict)

    def __post_init__(self) -> None:
        instance = self.instance
        queues = {row: limit for row, limit in enumerate(instance.limits) if limit.queue is not None}
        if not queues:
            return
        inside: dict[int, list[bool]] = {row: [False] * len(instance.classes) for row in queues}
        for number, one in enumerate(instance.classes):
            self._model.append(None)
            for row in set(one.limits).intersection(queues):
                inside[row][number] = True
                model = _limit(instance, row).model
                if model != ALL:
                    self._model[-1] = model
        shapes, of_class = _shapes(instance, self.assignment), instance.node_class[self.assignment.node]
        for row, limit in queues.items():
            each = np.array([shape.demand[limit.resource] for shape in instance.shapes], dtype=np.int64)
            taken = each[shapes][np.array(inside[row], dtype=np.bool_)[of_class]].sum()
            self._left[row] = limit.capacity - int(taken)
            self.rows.setdefault(limit.resource, {})[_limit(instance, row).model] = row

    def short(self, leaves: Sequence[Leaf], least: Least) -> Short | None:
        """Return what has less left than the least that some leaves need of it: limits on some models, or on all.

        Parameters
        ----------
        leaves : sequence of Leaf
        least : callable
            The least that they need, from what a task of each takes.
        """
        for resource, rows in self.rows.items():
            takes = [self.instance.shapes[leaf.shape].demand[resource] for leaf in leaves]
            if any(takes):
                found = self._short(leaves, takes, least, rows, resource)
                if found is not None:
                    return found
        return None

    def _short(
        self,
        leaves: Sequence[Leaf],
        takes: list[int],
        least: Least,
        rows: dict[str, int],
        resource: int,
    ) -> Short | None:
        """Look at the models that tasks of each leaf may be on, at all of them together, and at all there are."""
        where = [self._rows_of(leaf.shape, rows) for leaf in leaves]
        found = too_much(takes, where, rows.get(ALL), self._left, least)
        if found is None:
            return None
        chosen, more = found
        limits = [_limit(self.instance, row) for row in chosen]
        cards = Fraction(more) * self.instance.resource_units[resource] / limits[0].scale
        return short_for([(limit.kind, limit.queue, limit.model) for limit in limits], cards)

    def _rows_of(self, shape: int, rows: dict[str, int]) -> frozenset[int]:
        """Return the limits on models that a task counts in one of, wherever it is; none if it may in none."""
        if shape not in self._where:
            self._where[shape] = self._models_of(shape)
        models = self._where[shape]
        if not models or any(model is None or model not in rows for model in models):
            return frozenset()
        return frozenset(rows[model] for model in models if model is not None)

    def _models_of(self, shape: int) -> Models:
        """Return the models of the nodes that a task may be on."""
        instance = self.instance
        profile = instance.shapes[shape].profile >= 0
        return frozenset(
            model
            for number, (one, model) in enumerate(zip(instance.classes, self._model, strict=True))
            if instance.admits_node[shape, number]
            and (one.slots >= 0) == profile
            and any(profile or instance.admits_card[shape, kind] for kind in {kind for kind, _, _ in one.cards})
        )


def _shapes(instance: Instance, assignment: Assignment) -> Ints:
    """Return the shape of each task of an assignment."""
    most = max((len(one.leaves) for one in instance.job_classes), default=0)
    table = np.zeros((len(instance.job_classes), most), dtype=np.int64)
    for number, one in enumerate(instance.job_classes):
        for leaf in one.leaves:
            table[number, leaf.leaf] = leaf.shape
    found: Ints = table[instance.job_class[assignment.job], assignment.leaf]
    return found


def _limit(instance: Instance, row: int) -> QueueLimit:
    found = instance.limits[row].queue
    assert found is not None
    return found
