"""The best that any plan of a tiny cluster with MIG cards can do: every task on every card, at every slot.

Written from what the snapshot's fields mean. Of the engine it takes the catalogue of MIG profiles and the numbers
(`placement.units`), of `brute_facts` what filters, capacities and gangs mean; no state, no table, no instance. Cards
that look alike are interchangeable, and of the ways to one cluster the most valuable is remembered.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from brute import TooLarge, Value
from brute_facts import (
    amounts_of,
    capacity_of,
    card_allows,
    card_memory_of,
    cards_of,
    job_totals,
    leaf_groups,
    leaf_tasks,
    node_allows,
    plus,
    share_of,
)

from placement import units
from placement.hardware.mig import Profile, geometries, geometry
from placement.snapshot import Gpu, Job, Snapshot, Task

Card = tuple[int, Any, Any]
"""Entry of the node's list of cards, then taken slots and engines of a MIG card, or free share and memory of others."""
State = tuple[tuple[tuple[Fraction, ...], tuple[Card, ...]], ...]
"""What new tasks use of each resource, and the cards, sorted; by node."""
Best = dict[State, tuple[Fraction, ...]]

MOST_STATES = 15_000


def part_of(task: Task) -> Fraction:
    """Return what part of a card a task counts as: for a MIG profile the least that a card so named is of its card."""
    if not task.mig_profile:
        return share_of(task)
    found = [(one.profile(task.mig_profile), one.compute) for one in geometries()]
    return min(Fraction(profile.compute, whole) for profile, whole in found if profile is not None)


def profile_on(task: Task, gpu: Gpu) -> Profile | None:
    """Return what a card in MIG mode gives a task, or None; a need for memory is met by published figures alone."""
    there = geometry(gpu.model)
    profile = there.profile(task.mig_profile) if gpu.mig_enabled and there is not None else None
    need = card_memory_of(task)
    if profile is None or (need and (profile.memory is None or need > profile.memory * 2**20)):
        return None
    return profile


def starts_on(profile: Profile, gpu: Gpu) -> list[int]:
    """Return where instances may start: anywhere, or where the layout has such ones if it stays as it is."""
    there = geometry(gpu.model)
    assert there is not None
    if not gpu.mig_static:
        return list(profile.starts)
    return [one.start for one in gpu.mig_layout if there.profile(one.profile) == profile]


@dataclass(frozen=True)
class Kind:
    """A pending task: what it takes and where it may be."""

    job: Job
    task: Task
    demand: tuple[Fraction, ...]
    worth: Fraction
    allowed: tuple[bool, ...]


def optimum(snapshot: Snapshot, objectives: Iterable[str]) -> list[Value]:
    """Return the best value of each objective in order, each among the plans that are best in those before it.

    Parameters
    ----------
    snapshot : Snapshot
        Without topology, zones and affinity.
    objectives : iterable of str
        Of ``value``, ``tasks``, ``nodes``, ``mig_cards``.

    Raises
    ------
    TooLarge
        If the snapshot is not tiny.
    """
    return _Search(snapshot, tuple(objectives)).run()


class _Search:
    def __init__(self, snapshot: Snapshot, objectives: tuple[str, ...]) -> None:
        self.snapshot, self.objectives = snapshot, objectives
        self.pending = [job for job in snapshot.jobs if job.running is None for _ in range(job.count)]
        self.priorities = sorted({job.priority for job in self.pending}, reverse=True)
        self.resources = ["cpu", "memory", "pods"]
        self.keys: list[tuple[str, int | None]] = []
        for objective in objectives:
            self.keys += [("value", p) for p in self.priorities] if objective == "value" else [(objective, None)]
        self._cluster()
        self._caps()

    def _cluster(self) -> None:
        """Expand the nodes and take off what running tasks use."""
        used: dict[str, list[tuple[Task, Any]]] = defaultdict(list)
        for job in self.snapshot.jobs:
            tasks = {path: task for path, task, _ in leaf_tasks(job)}
            for place in job.running.tasks if job.running else ():
                used[place.node].append((tasks[place.group], place))
        self.nodes, self.names, self.free, self.busy = [], [], [], []
        self.running = []
        start = []
        for node in self.snapshot.nodes:
            for name in [node.name] if node.count == 1 else [f"{node.name}-{i}" for i in range(node.count)]:
                taken = [amounts_of(task) for task, _ in used[name]]
                free = []
                for resource in self.resources:
                    have = capacity_of(node, resource)
                    total = sum((amounts[resource] for amounts in taken), Fraction(0))
                    free.append(None if have is None else max(Fraction(0), have - total))
                cards = [
                    self._card(entry, gpu, [(task, place) for task, place in used[name] if index in place.gpus], index)
                    for index, (entry, gpu) in enumerate(cards_of(node))
                ]
                self.nodes.append(node)
                self.names.append(name)
                self.free.append(tuple(free))
                self.busy.append(bool(used[name]))
                self.running.append([task for task, _ in used[name]])
                start.append(((Fraction(0),) * len(self.resources), tuple(sorted(cards))))
        self.start: State = tuple(start)

    @staticmethod
    def _card(entry: int, gpu: Gpu, holding: list[tuple[Task, Any]], index: int) -> Card:
        if gpu.mig_enabled:
            there = geometry(gpu.model)
            assert there is not None
            bits, engines = 0, (0,) * len(there.engines)
            for task, place in holding:
                profile = there.profile(task.mig_profile)
                assert profile is not None
                bits |= profile.bits(place.mig_starts[place.gpus.index(index)])
                engines = tuple(a + b for a, b in zip(engines, profile.engines, strict=True))
            return entry, bits, engines
        share = sum((share_of(task) for task, _ in holding), Fraction(0))
        memory = sum((card_memory_of(task) for task, _ in holding), Fraction(0))
        have = Fraction(2**60) if gpu.memory is None else units.exact(gpu.memory)
        return entry, max(Fraction(0), 1 - share), max(Fraction(0), have - memory)

    def _caps(self) -> None:
        """Collect (nodes inside, amount of one task, what is left) of every cap."""
        self.caps: list[tuple[set[int], Any, Fraction]] = []
        for limit in self.snapshot.limits:
            inside = {
                i
                for i, node in enumerate(self.nodes)
                if limit.level == "cluster" or node.position.get(limit.level) == limit.domain
            }
            for name, quantity in (("gpus", limit.gpus), ("cpu", limit.cpu), ("memory", limit.memory)):
                if quantity is not None:
                    taken = sum((_capped(name, task) for i in inside for task in self.running[i]), Fraction(0))
                    self.caps.append((inside, name, max(Fraction(0), units.exact(quantity) - taken)))

    def run(self) -> list[Value]:
        frontier: dict[tuple[State, tuple[Fraction, ...]], tuple[Fraction, ...]]
        frontier = {(self.start, (Fraction(0),) * len(self.caps)): (Fraction(0),) * len(self.keys)}
        for job in self.pending:
            frontier = self._with_job(frontier, job)
        best = max(self._rank(state, sums) for (state, _), sums in frontier.items())
        return [
            Value(name, priority, -value if name in ("nodes", "mig_cards") else value)
            for (name, priority), value in zip(self.keys, best, strict=True)
        ]

    def _rank(self, state: State, sums: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
        in_use = sum(busy or used[2] > 0 for busy, (used, _) in zip(self.busy, state, strict=True))
        sliced = sum(
            node.gpus[entry].mig_enabled and taken > 0
            for node, (_, cards) in zip(self.nodes, state, strict=True)
            for entry, taken, _ in cards
        )
        least = {"nodes": Fraction(-in_use), "mig_cards": Fraction(-sliced)}
        return tuple(least.get(key[0], value) for key, value in zip(self.keys, sums, strict=True))

    # --- jobs -------------------------------------------------------------------------------------------------

    def _kinds(self, job: Job) -> list[Kind]:
        leaves = list(leaf_tasks(job))
        counts = [group.count * n for group, (_, _, n) in zip(leaf_groups(job), leaves, strict=True)]
        milli = [1000 * task.gpus * part_of(task) for _, task, _ in leaves]
        total = sum((m * c for m, c in zip(milli, counts, strict=True)), Fraction(0))
        kinds = []
        for (_, task, _), m in zip(leaves, milli, strict=True):
            worth = job.weight * m
            if job.value is not None:
                worth = job.value * m / total if total else Fraction(job.value, sum(counts))
            kinds.append(
                Kind(
                    job=job,
                    task=task,
                    demand=tuple(amounts_of(task)[name] for name in self.resources),
                    worth=worth,
                    allowed=tuple(node_allows(job, task, node) for node in self.nodes),
                )
            )
        return kinds

    def _with_job(self, frontier: Any, job: Job) -> Any:
        kinds = self._kinds(job)
        totals = job_totals(job, len(kinds))
        level: dict[tuple[int, ...], Any] = {(): frontier}
        for number, kind in enumerate(kinds):
            add = tuple(
                Fraction(1) if key[0] == "tasks" else kind.worth if key == ("value", job.priority) else Fraction(0)
                for key in self.keys
            )
            following: dict[tuple[int, ...], Any] = {}
            for prefix, states in level.items():
                counts = {total[number] for total in totals if total[:number] == prefix}
                current = states
                for count in range(max(counts) + 1):
                    if count in counts:
                        _merge(following.setdefault((*prefix, count), {}), current.items())
                    current = self._one_more(current, kind, add) if count < max(counts) else {}
            level = following
        result: Any = {}
        for states in level.values():
            _merge(result, states.items())
        return result

    def _one_more(self, states: Any, kind: Kind, add: tuple[Fraction, ...]) -> Any:
        result: Any = {}
        for (state, capped), sums in states.items():
            more = plus(sums, add)
            for node, placed in self._places(state, kind):
                use = tuple(
                    used + (_capped(name, kind.task) if node in inside else 0)
                    for used, (inside, name, _) in zip(capped, self.caps, strict=True)
                )
                over = any(
                    new > old and new > left for new, old, (_, _, left) in zip(use, capped, self.caps, strict=True)
                )
                if not over:
                    _merge(result, [((placed, use), more)])
        if len(result) > MOST_STATES:
            raise TooLarge(f"{len(result)} arrangements")
        return result

    def _places(self, state: State, kind: Kind) -> Iterator[tuple[int, State]]:
        for node, (used, cards) in enumerate(state):
            if not kind.allowed[node]:
                continue
            more = tuple(u + d for u, d in zip(used, kind.demand, strict=True))
            if any(f is not None and d and m > f for m, d, f in zip(more, kind.demand, self.free[node], strict=True)):
                continue
            for left in self._take(node, cards, kind):
                yield node, (*state[:node], (more, left), *state[node + 1 :])

    def _take(self, node: int, cards: tuple[Card, ...], kind: Kind) -> set[tuple[Card, ...]]:
        """Return what the cards of a node can look like once a task has taken its own."""
        task, gpus = kind.task, self.nodes[node].gpus
        if not task.gpus:
            return {cards}
        usable = [i for i, card in enumerate(cards) if card_allows(kind.job, task, gpus[card[0]])]
        found = set()
        if task.mig_profile:
            for i in usable:
                found |= {tuple(sorted((*cards[:i], one, *cards[i + 1 :]))) for one in _with(task, gpus, cards[i])}
            return found
        share, memory = share_of(task), card_memory_of(task)
        usable = [
            i for i in usable if not gpus[cards[i][0]].mig_enabled and cards[i][1] >= share and cards[i][2] >= memory
        ]
        for chosen in itertools.combinations(usable, task.gpus):
            left = list(cards)
            for i in chosen:
                left[i] = (left[i][0], left[i][1] - share, left[i][2] - memory)
            found.add(tuple(sorted(left)))
        return found


def _with(task: Task, gpus: tuple[Gpu, ...], card: Card) -> Iterator[Card]:
    """Yield a card with one more instance, once for each slot where it may start."""
    entry, bits, engines = card
    gpu = gpus[entry]
    profile, there = profile_on(task, gpu), geometry(gpu.model)
    if profile is None or there is None:
        return
    taken = tuple(a + b for a, b in zip(engines, profile.engines, strict=True))
    if any(a > b for a, b in zip(taken, there.engines, strict=True)):
        return
    for start in starts_on(profile, gpu):
        if not bits & profile.bits(start):
            yield entry, bits | profile.bits(start), taken


def _capped(name: str, task: Task) -> Fraction:
    """Return what a task takes of a cap; a MIG instance is a part of a card."""
    return task.gpus * part_of(task) if name == "gpus" else amounts_of(task)[name]


def _merge(into: Any, states: Iterable[Any]) -> None:
    for state, sums in states:
        known = into.get(state)
        if known is None or sums > known:
            into[state] = sums
