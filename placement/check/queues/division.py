"""Which share of all cards each queue has, from the snapshot alone.

By fair shares a queue has, once a level has risen to x, its quota and x times its weight, and never more than it asks
for; the level rises until all is given away. By dominant shares the level is that of the largest part of any model,
beyond the quota, over the weight, and a queue's pace goes by the models that are left. Levels at which something
changes are looked for one after the other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property

from placement.check.queues.held_cards import Amounts
from placement.hardware.mig import fraction
from placement.snapshot import Queue, Snapshot, Task, TaskGroup
from placement.units import exact

ALL = "*"
NOTHING = Fraction(0)


class Division:
    """The shares of queues.

    Parameters
    ----------
    snapshot : Snapshot
        With shares in its policy.
    old : mapping of str to mapping of str to Fraction
        What running work takes, by queue and card model.
    """

    def __init__(self, snapshot: Snapshot, old: Mapping[str, Amounts]) -> None:
        self._snapshot = snapshot
        self._children: dict[str, list[Queue]] = defaultdict(list)
        for queue in snapshot.queues:
            self._children[queue.parent].append(queue)
        self._models = sorted({gpu.model for node in snapshot.nodes for gpu in node.gpus})
        self._asked: dict[str, dict[str, Fraction]] = defaultdict(lambda: defaultdict(Fraction))
        for name, amounts in old.items():
            for model, amount in amounts.items():
                self._asked[name][model] += amount
                self._asked[name][ALL] += amount
        for job in snapshot.jobs:
            if job.running is None:
                for task, count in _tasks(job.groups, job.count):
                    amount = _part(task) * task.gpus * count
                    self._asked[job.queue][ALL] += amount
                    for model in self._models:
                        if not task.gpu_models or model in task.gpu_models:
                            self._asked[job.queue][model] += amount
        self._there: dict[str, Fraction] = defaultdict(Fraction)
        for node in snapshot.nodes:
            for gpu in node.gpus:
                if gpu.health == "healthy":
                    offers = Fraction(1)
                    if gpu.mig_enabled and gpu.mig_static:
                        offers = sum((fraction(one.profile) or NOTHING for one in gpu.mig_layout), NOTHING)
                    self._there[gpu.model] += node.count * gpu.count * offers
                    self._there[ALL] += node.count * gpu.count * offers

    def counts(self, queue: str, model: str) -> bool:
        """Return whether a queue has a share of a model, or of all of them: that goes by what its tree states."""
        stated = self._stated[queue]
        return ALL in stated if model == ALL else stated != {ALL}

    @cached_property
    def _stated(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for top in self._children[""]:
            tree = list(self._tree(top))
            stated = {model for one in tree for model in (*one.quota, *one.borrowing_limit, *one.lending_limit)}
            found |= {one.name: stated for one in tree}
        return found

    def _tree(self, queue: Queue) -> Iterator[Queue]:
        yield queue
        for child in self._children[queue.name]:
            yield from self._tree(child)

    def sum_below(self, queue: str, used: Mapping[str, Amounts]) -> Amounts:
        """Return what a queue and all below it use, by card model."""
        found: Amounts = defaultdict(Fraction)
        for model, amount in used.get(queue, {}).items():
            found[model] += amount
        for child in self._children[queue]:
            for model, amount in self.sum_below(child.name, used).items():
                found[model] += amount
        return found

    def share(self, queue: str, model: str) -> Fraction:
        """Return the share of a queue of a model, or of all of them."""
        return self._shares[model][queue]

    @cached_property
    def _shares(self) -> dict[str, dict[str, Fraction]]:
        found: dict[str, dict[str, Fraction]] = {model: {} for model in (*self._models, ALL)}
        dominant = self._snapshot.policy.shares == "dominant_share"
        groups = [self._models, [ALL]] if dominant else [[model] for model in (*self._models, ALL)]
        for models in groups:
            self._share_out("", {model: self._there[model] for model in models}, dominant and models != [ALL], found)
        return found

    def _share_out(
        self, parent: str, there: dict[str, Fraction], dominant: bool, found: dict[str, dict[str, Fraction]]
    ) -> None:
        queues = self._children[parent]
        least = {model: [self._ends(queue, model)[0] for queue in queues] for model in there}
        more = {model: [most - low for low, most in (self._ends(queue, model) for queue in queues)] for model in there}
        weights = [exact(queue.weight) for queue in queues]
        left = {model: there[model] - sum(least[model], NOTHING) for model in there}
        if dominant:
            # of which a model is part of the largest part does not depend on the parent
            given = _by_dominance(more, weights, there, left)
        else:
            given = {model: _by_level(more[model], weights, left[model]) for model in there}
        for number, queue in enumerate(queues):
            mine = {model: least[model][number] + given[model][number] for model in there}
            for model, amount in mine.items():
                found[model][queue.name] = amount
            self._share_out(queue.name, mine, dominant, found)

    def _ends(self, queue: Queue, model: str) -> tuple[Fraction, Fraction]:
        """Return what a queue gets first and at most."""
        wants = sum((self._asked[one.name][model] for one in self._tree(queue)), NOTHING)
        stated = queue.quota.get(model)
        if stated is None and model == ALL:
            quota = sum(map(exact, queue.quota.values()), NOTHING)
        else:
            quota = exact(queue.quota.get(ALL, 0) if stated is None else stated)
        borrows = queue.borrowing_limit.get(model)
        return min(quota, wants), wants if borrows is None else min(wants, quota + exact(borrows))


def _by_level(more: Sequence[Fraction], weights: Sequence[Fraction], left: Fraction) -> list[Fraction]:
    """Return ``min(more, level * weight)`` at the level at which all that is left is given away."""
    open_ends = sorted((amount / weight, weight) for amount, weight in zip(more, weights, strict=True) if weight > 0)
    full, rising = NOTHING, sum((weight for _, weight in open_ends), NOTHING)
    level = NOTHING
    for end, weight in open_ends:
        if full + rising * end >= left:
            break
        level = end
        full, rising = full + weight * end, rising - weight
    if rising > 0:
        level = max(NOTHING, (left - full) / rising)
    return [min(amount, level * weight) for amount, weight in zip(more, weights, strict=True)]


def _by_dominance(
    more: Mapping[str, Sequence[Fraction]],
    weights: Sequence[Fraction],
    there: Mapping[str, Fraction],
    left: Mapping[str, Fraction],
) -> dict[str, list[Fraction]]:
    """Return what is given of each model when the level has risen until nobody gets any more.

    Between two moments at which a model runs out every queue has a pace, the part of what it asks for per level; when
    it has all of it, it stops.
    """
    queues = range(len(weights))
    done = [NOTHING for _ in queues]
    frozen: dict[str, list[Fraction]] = {model: [NOTHING for _ in queues] for model in more if left[model] <= 0}
    while True:
        still = [model for model in more if model not in frozen]
        parts = [max((more[model][i] / there[model] for model in still), default=NOTHING) for i in queues]
        paces = [weights[i] / parts[i] if parts[i] else NOTHING for i in queues]

        def at(i: int, level: Fraction, done: list[Fraction] = done, paces: list[Fraction] = paces) -> Fraction:
            return min(Fraction(1), done[i] + level * paces[i])

        ends = sorted({(1 - done[i]) / paces[i] for i in queues if paces[i] and done[i] < 1})
        outs = {}
        for model in still:
            begin = NOTHING
            for end in ends:
                taken = [sum((more[model][i] * at(i, x) for i in queues), NOTHING) for x in (begin, end)]
                if taken[1] >= left[model]:
                    outs[model] = begin + (end - begin) * (left[model] - taken[0]) / (taken[1] - taken[0])
                    break
                begin = end
        level = min(outs.values(), default=ends[-1] if ends else NOTHING)
        done = [at(i, level) for i in queues]
        gone = [model for model in still if outs.get(model) == level]
        for model in gone if outs else still:
            frozen[model] = [more[model][i] * done[i] for i in queues]
        if len(frozen) == len(more):
            return frozen


def _tasks(groups: Sequence[TaskGroup], copies: int) -> Iterator[tuple[Task, int]]:
    for group in groups:
        if group.task is not None:
            yield group.task, copies * group.count
        yield from _tasks(group.groups, copies * group.count)


def _part(task: Task) -> Fraction:
    if task.mig_profile:
        return fraction(task.mig_profile) or NOTHING
    return Fraction(1) if task.gpu_share is None else exact(task.gpu_share)
