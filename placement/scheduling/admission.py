"""Quotas over time: what jobs take of each card model where they are placed, and whether their queues may use that."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from placement.entitlement.cards import part_of
from placement.gang import least_of
from placement.heuristics.gangs import Placed
from placement.instance import Instance, Ints
from placement.quota import ALL, Cards, Quotas, Short
from placement.scheduling.counting import fewer, members
from placement.scheduling.work import Work
from placement.snapshot import Task
from placement.snapshot.leaves import leaf_tasks


class Taken:
    """What tasks take of each card model, in cards.

    Parameters
    ----------
    instance : Instance
    """

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._kinds = [[instance.card_kinds[kind].model for kind, _, _ in one.cards] for one in instance.classes]
        self._node_class = instance.node_class.tolist()
        self._tasks: dict[int, dict[str, Task]] = {}
        self._parts: dict[tuple[int, int], tuple[Cards, Cards]] = {}

    def amounts(self, job: int, tasks: Sequence[Placed]) -> dict[str, Cards]:
        """Return the cards of each model that some placed tasks of a job take.

        A share counts as it is stated, and a MIG instance as `placement.hardware.mig.fraction` says.
        """
        found: dict[str, Cards] = defaultdict(int)
        for leaf, _, (node, cards) in tasks:
            each, _ = self.parts(job, leaf)
            kinds = self._kinds[self._node_class[node]]
            for card in cards:
                if card < self._instance.widest and each:
                    found[kinds[card]] += each
        return dict(found)

    def parts(self, job: int, leaf: int) -> tuple[Cards, Cards]:
        """Return what a task of a leaf takes of each of its cards, and of all of them together."""
        entry = int(self._instance.job_spec[job])
        if (entry, leaf) not in self._parts:
            path = self._instance.job_classes[self._instance.job_class[job]].leaves[leaf].path
            self._parts[entry, leaf] = _parts(self._task(entry, path))
        return self._parts[entry, leaf]

    def _task(self, entry: int, path: str) -> Task:
        if entry not in self._tasks:
            self._tasks[entry] = dict(leaf_tasks(self._instance.snapshot.jobs[entry].groups))
        return self._tasks[entry][path]


def _parts(task: Task) -> tuple[Cards, Cards]:
    each = part_of(task)
    whole: Cards = each.numerator if each.denominator == 1 else each
    return whole, task.gpus * whole


class Admission:
    """The quotas of a cluster at one moment of its future.

    Attributes
    ----------
    quotas : Quotas
    """

    def __init__(self, work: Work) -> None:
        self.quotas = Quotas(work.instance.snapshot.queues)
        self._unused = Quotas(work.instance.snapshot.queues)
        self._work, self._taken = work, Taken(work.instance)
        self._class = work.instance.job_class.tolist()
        self._limited = [self.quotas.limited(queue) for queue in work.queue]
        self._models: dict[int, tuple[frozenset[str], ...]] = {}
        self._needs: dict[tuple[int, int], tuple[tuple[frozenset[str], Cards], ...]] = {}
        self._nodes: dict[frozenset[str], Ints] = {}
        self._ways: dict[int, list[tuple[int, ...]]] = {}

    @classmethod
    def of(cls, work: Work) -> Admission | None:
        """Return the quotas that some job falls under; None where there are none."""
        if not work.instance.snapshot.queues:
            return None
        found = cls(work)
        return found if any(found._limited) else None

    # --- what is used --------------------------------------------------------------------------------------------

    def change(self, job: int, tasks: Sequence[Placed], sign: int = 1) -> None:
        """Add what a job takes to the usage of its queue, or give it back."""
        if self._limited[job]:
            self.quotas.change(self._work.queue[job], self._taken.amounts(job, tasks), sign)

    def short_by(self, job: int, tasks: Sequence[Placed]) -> Short | None:
        """Return what keeps a job from being started where it is placed; None for nothing."""
        if not self._limited[job]:
            return None
        return self.quotas.short_by(self._work.queue[job], self._taken.amounts(job, tasks))

    def short_at_least(self, job: int) -> Short | None:
        """Return what keeps a job from being started now wherever it is placed; None where that is not known."""
        return self._short(job, self.quotas) if self._limited[job] else None

    def never(self, job: int) -> Short | None:
        """Return what keeps a job from ever being started, even if nothing else was used; None for nothing."""
        return self._short(job, self._unused) if self._limited[job] else None

    def _short(self, job: int, quotas: Quotas) -> Short | None:
        """Return by how much the least that a job needs of some models is more than there is room for in these."""
        queue = self._work.queue[job]
        for models, need in self._least(job):
            rooms = [quotas.room(queue, model) for model in models]
            room = sum(one for one in rooms if one is not None)
            if None not in rooms and need > room:
                if len(models) > 1:
                    return Short(queue, ", ".join(sorted(models)), need - room)
                short = quotas.short_by(queue, {next(iter(models)): need})
                return Short(queue if short is None else short.queue, next(iter(models)), need - room)
        return None

    # --- where a job may be placed -------------------------------------------------------------------------------

    def confinements(self, job: int) -> Iterator[Ints]:
        """Yield nodes to which a job may be kept, so that it takes fewer models than it could: all with room, then one.

        The models on which the job runs fastest come first.
        """
        queue = self._work.queue[job]
        possible = frozenset[str]().union(*self._possible(self._class[job]))
        if len(possible) < 2:
            return
        with_room = frozenset(model for model in possible if self.quotas.room(queue, model) != 0)
        if with_room and with_room != possible:
            yield self._only(with_room, possible)
        run = self._work.instance.job_classes[self._class[job]].run
        factors = {} if run is None else dict(run.models)
        for model in sorted(possible, key=lambda one: (factors.get(one, Fraction(1)), one)):
            if model in with_room and len(with_room) > 1:
                yield self._only(frozenset({model}), possible)

    def _only(self, models: frozenset[str], possible: frozenset[str]) -> Ints:
        """Return the nodes that have no card of the other models that are possible."""
        shut = possible - models
        if shut not in self._nodes:
            instance = self._work.instance
            right = [
                not shut & {instance.card_kinds[kind].model for kind, _, _ in one.cards} for one in instance.classes
            ]
            self._nodes[shut] = np.flatnonzero(np.array(right)[instance.node_class])
        return self._nodes[shut]

    def admitted(self, job: int, tasks: tuple[Placed, ...]) -> tuple[Placed, ...]:
        """Return the tasks with which a job may be started, of those that are placed; none where it may not.

        Fewer than all are tried where it does not matter which of a group these are.
        """
        if self.short_by(job, tasks) is None:
            return tasks
        for some in self._fewer(job, tasks):
            if self.short_by(job, some) is None:
                return some
        return ()

    def _fewer(self, job: int, tasks: tuple[Placed, ...]) -> Iterator[tuple[Placed, ...]]:
        """Yield the first tasks of each group, with which a job may run, most first."""
        one = self._work.instance.job_classes[self._class[job]]
        for count in reversed(members(one)):
            if count < len(tasks):
                yield tasks[:count]
        of_leaf = [[task for task in tasks if task[0] == leaf.leaf] for leaf in one.leaves]
        if self._class[job] not in self._ways:
            self._ways[self._class[job]] = fewer(one)[::-1]
        for counts in self._ways[self._class[job]]:
            if all(count <= len(placed) for count, placed in zip(counts, of_leaf, strict=True)):
                yield tuple(task for count, placed in zip(counts, of_leaf, strict=True) for task in placed[:count])

    # --- what a job needs ----------------------------------------------------------------------------------------

    def _possible(self, number: int) -> tuple[frozenset[str], ...]:
        """Return the models that tasks of each leaf of a job class may get."""
        if number not in self._models:
            leaves = self._work.instance.job_classes[number].leaves
            self._models[number] = tuple(_models(self._work.instance, leaf.shape) for leaf in leaves)
        return self._models[number]

    def _least(self, job: int) -> tuple[tuple[frozenset[str], Cards], ...]:
        """Return the least cards that a job needs of some sets of models: of those of each leaf, and of all."""
        key = self._class[job], int(self._work.instance.job_spec[job])
        if key not in self._needs:
            one, possible = self._work.instance.job_classes[key[0]], self._possible(key[0])
            parts = [self._taken.parts(job, leaf.leaf)[1] for leaf in one.leaves]
            sets = sorted({models for models, part in zip(possible, parts, strict=True) if part}, key=sorted)
            wholes = [frozenset().union(*sets)] if len(sets) > 1 else []
            needs = []
            for models in (*sets, *wholes):
                of_leaf = [part if mine <= models else 0 for mine, part in zip(possible, parts, strict=True)]
                needs.append((models, least_of(one.root, of_leaf)))
            needs.append((frozenset({ALL}), least_of(one.root, parts)))
            self._needs[key] = tuple((models, need) for models, need in needs if need)
        return self._needs[key]


def _models(instance: Instance, shape: int) -> frozenset[str]:
    """Return the models of the cards that tasks of a shape may get."""
    instances = instance.shapes[shape].profile >= 0
    found: set[str] = set()
    for number, one in enumerate(instance.classes):
        if (one.slots >= 0) == instances and instance.admits_node[shape, number]:
            kinds = {kind for kind, _, _ in one.cards if instances or instance.admits_card[shape, kind]}
            found.update(instance.card_kinds[kind].model for kind in kinds)
    return frozenset(found)
