"""How long one placed job runs and how long its data take, read off the fields: for `brute` and for tests.

Numbers are the decimals that they are written as; no code of the engine or of the judge is here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from math import ceil
from typing import NamedTuple

from brute_facts import Card, leaf_tasks
from brute_ties import Name

from placement.snapshot import DataLocality, Job, Node

CURVE = {0: Fraction(1), 1: Fraction(3, 2)}
WIDEST = Fraction(2)


class Lies(NamedTuple):
    """Where a task lies: the node's name, the node, and a (model, NUMA zone by place in the file) for each card."""

    name: str
    node: Node
    cards: tuple[tuple[str, int], ...]


def lies_on(name: str, node: Node, before: Iterable[Card], after: Iterable[Card], share: Fraction) -> Lies:
    """Return where a task lies that takes a share of each of its cards, by what is left of those of its node."""
    taken: dict[tuple[int, int], Fraction] = defaultdict(Fraction)
    for sign, cards in ((1, before), (-1, after)):
        for entry, free, _, zone in cards:
            taken[entry, zone] += sign * free
    lies = [((node.gpus[entry].model, zone), amount / share) for (entry, zone), amount in taken.items() if amount]
    return Lies(name, node, tuple(card for card, number in lies for _ in range(int(number))))


def states_times(job: Job) -> bool:
    """Return whether a job says anything that counts here."""
    return job.duration is not None or bool(job.data)


def weighted(job: Job, placed: Mapping[Name, Lies], topology: Sequence[str], names: Mapping[str, Node]) -> Fraction:
    """Return seconds of run and fetch, times weight; `names` has every node of the cluster."""
    if not placed:
        return Fraction(0)
    levels = ["cluster", *topology, "node"]
    return job.weight * (_run(job, placed, levels) + _fetch(job, placed.values(), levels, names))


def _run(job: Job, placed: Mapping[Name, Lies], levels: list[str]) -> Fraction:
    duration = job.duration
    if duration is None:
        return Fraction(0)
    narrowest = next(level for level in reversed(levels) if _within_one(placed.values(), level))
    place = levels.index(narrowest)
    models = [_number(duration.gpu_models.get(model, 1)) for task in placed.values() for model, _ in task.cards]
    by_level = CURVE.get(len(levels) - 1 - place, WIDEST)
    if duration.levels:
        by_level = _listed(duration.levels, levels[place:], 1)
    tasks = {path: task for path, task, _ in leaf_tasks(job)}
    exactly = _number(duration.seconds) * max(models, default=Fraction(1)) * by_level
    if any(_too_wide(lies) for lies in placed.values()):
        exactly *= _number(duration.numa_misaligned)
    if any(_too_few(lies, tasks[path].nics) for (path, _), lies in placed.items()):
        exactly *= _number(duration.nic_misaligned)
    return Fraction(ceil(exactly * 1000), 1000)


def _too_wide(lies: Lies) -> bool:
    used = {zone for _, zone in lies.cards}
    sizes = [len(zone.gpus) for zone in lies.node.zones]
    # fewer zones than it uses would do
    return bool(sizes and used) and any(sum(some) >= len(lies.cards) for some in combinations(sizes, len(used) - 1))


def _too_few(lies: Lies, nics: int) -> bool:
    used = {zone for _, zone in lies.cards}
    return bool(lies.node.zones and used) and sum(len(lies.node.zones[zone].nics) for zone in used) < nics


def _fetch(job: Job, placed: Iterable[Lies], levels: list[str], names: Mapping[str, Node]) -> Fraction:
    costs = [_fetched(data, list(placed), levels, names) for data in job.data]
    return min(costs, default=Fraction(0))


def _fetched(data: DataLocality, placed: list[Lies], levels: list[str], names: Mapping[str, Node]) -> Fraction:
    there = [
        Lies(name, node, ())
        for name, node in names.items()
        if (name if data.level == "node" else node.position.get(data.level)) == data.domain
    ]
    own = levels.index(data.level)
    shared = next(
        place for place in range(own, -1, -1) if place == 0 or (there and _within_one([*placed, *there], levels[place]))
    )
    return Fraction(ceil(_listed(data.fetch_seconds, levels[shared:], 0) * 1000), 1000)


def _within_one(tasks: Iterable[Lies], level: str) -> bool:
    if level == "cluster":
        return True
    domains = {lies.name if level == "node" else lies.node.position.get(level) for lies in tasks}
    return len(domains) == 1 and None not in domains


def _listed(stated: Mapping[str, float], levels: list[str], otherwise: float) -> Fraction:
    return _number(next((stated[level] for level in levels if level in stated), otherwise))


def _number(value: float) -> Fraction:
    return Fraction(str(value))
