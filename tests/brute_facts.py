"""What the fields of a snapshot mean for one job, one task, one node: the facts that `brute` searches over."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from placement import units
from placement.snapshot import Gpu, Job, Node, Task, TaskGroup

Card = tuple[int, Fraction, Fraction | None, int]
"""Entry of the node's list of cards, free share, free memory (None: no limit), NUMA zone (0 where it is all one)."""


@dataclass(frozen=True)
class Kind:
    """A pending task: what it takes, and whether each node of the cluster may take it."""

    gpus: int
    share: Fraction
    memory: Fraction
    demand: tuple[Fraction, ...]
    worth: Fraction
    allowed: tuple[bool, ...]
    cards: tuple[tuple[bool, ...], ...]
    """By node and entry of its list of cards."""
    zones: tuple[tuple[frozenset[int] | None, ...], ...]
    """Sets of NUMA zones that it may lie in, by node; None stands for no zones."""
    counted: tuple[Fraction, ...]
    """What it takes of what zones count."""


# --- gangs ------------------------------------------------------------------------------------------------------


def job_totals(job: Job, leaves: int) -> set[tuple[int, ...]]:
    """Return how many tasks of each leaf the job may run with; the job itself needs all its groups."""
    counter = iter(range(leaves))
    options = [_options(group, counter, leaves) for group in job.groups]
    return {total for active, total in _combined(options, leaves) if active == len(job.groups) or not any(total)}


def _options(group: TaskGroup, counter: Iterator[int], leaves: int) -> set[tuple[bool, tuple[int, ...]]]:
    """Return (whether it runs, tasks by leaf) of all that one copy of a group may do."""
    least = group.count if group.min_count is None else group.min_count
    if group.task is not None:
        leaf = next(counter)
        return {(n > 0, _unit(leaf, n, leaves)) for n in (0, *range(least, group.count + 1))}
    children = [_options(child, counter, leaves) for child in group.groups]
    needed = len(children) if group.min_groups is None else group.min_groups
    member = {
        (active >= needed, total) for active, total in _combined(children, leaves) if active >= needed or not any(total)
    }
    found = set()
    for members in itertools.combinations_with_replacement(sorted(member), group.count):
        running = sum(active for active, _ in members)
        total = tuple(sum(column) for column in zip(*(total for _, total in members), strict=True))
        if running >= least or not any(total):
            found.add((running >= least, total))
    return found


def _combined(options: list[set[tuple[bool, tuple[int, ...]]]], leaves: int) -> set[tuple[int, tuple[int, ...]]]:
    """Return (number that run, tasks by leaf) of all choices of one option each."""
    sums = {(0, (0,) * leaves)}
    for choice in options:
        sums = {
            (active + one, tuple(a + b for a, b in zip(total, more, strict=True)))
            for active, total in sums
            for one, more in choice
        }
    return sums


def _unit(leaf: int, count: int, leaves: int) -> tuple[int, ...]:
    return tuple(count if i == leaf else 0 for i in range(leaves))


def leaf_groups(job: Job) -> Iterator[TaskGroup]:
    def walk(groups: Iterable[TaskGroup]) -> Iterator[TaskGroup]:
        for group in groups:
            if group.task is not None:
                yield group
            else:
                yield from walk(group.groups)

    return walk(job.groups)


def leaf_tasks(job: Job) -> Iterator[tuple[str, Task, int]]:
    """Yield (path, task, copies) of every leaf of a job."""

    def walk(groups: Iterable[TaskGroup], above: str, copies: int) -> Iterator[tuple[str, Task, int]]:
        for group in groups:
            if group.task is not None:
                yield above + group.name, group.task, copies
            else:
                yield from walk(group.groups, f"{above}{group.name}/", copies * group.count)

    return walk(job.groups, "", 1)


# --- tasks, nodes and cards -------------------------------------------------------------------------------------


def share_of(task: Task) -> Fraction:
    if not task.gpus:
        return Fraction(0)
    return Fraction(1) if task.gpu_share is None else units.exact(task.gpu_share)


def card_memory_of(task: Task) -> Fraction:
    return units.exact(task.gpu_memory) if task.gpus and task.gpu_memory is not None else Fraction(0)


def amounts_of(task: Task) -> dict[str, Fraction]:
    amounts = {
        "gpus": task.gpus * share_of(task),
        "cpu": units.exact(task.cpu),
        "memory": units.exact(task.memory),
        "pods": Fraction(1),
    }
    if task.nics:
        amounts["nics"] = Fraction(task.nics)
    return amounts | {f"extended {name}": units.exact(quantity) for name, quantity in task.extended.items()}


def capacity_of(node: Node, resource: str) -> Fraction | None:
    """Return what a node has of a resource; None is no limit."""
    if resource == "gpus":
        return None  # the cards say
    if resource == "nics":
        return Fraction(sum(len(zone.nics) for zone in node.zones))
    if resource.startswith("extended "):
        return units.exact(node.extended.get(resource.removeprefix("extended "), 0))
    have = {"cpu": node.cpu, "memory": node.memory, "pods": node.pods}[resource]
    return None if have is None else units.exact(have)


def cards_of(node: Node) -> Iterator[tuple[int, Gpu]]:
    for entry, gpu in enumerate(node.gpus):
        for _ in range(gpu.count):
            yield entry, gpu


def node_allows(job: Job, task: Task, node: Node) -> bool:
    if node.cordoned or any(node.labels.get(label) != value for label, value in task.node_selector.items()):
        return False
    for taint in node.taints:
        for toleration in task.tolerations:
            if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
                continue
            if toleration.operator == "Exists" or (toleration.key and toleration.value == taint.value):
                break
        else:
            return False
    return _reaches(node.driver, job.requires.driver) and _reaches(node.cuda, job.requires.cuda)


def card_allows(job: Job, task: Task, gpu: Gpu) -> bool:
    if gpu.health != "healthy" or (task.gpu_models and gpu.model not in task.gpu_models):
        return False
    if gpu.sharing == "exclusive" and share_of(task) < 1:
        return False
    return _reaches(gpu.compute_capability, job.requires.compute_capability)


def _reaches(have: str, need: str) -> bool:
    if not need:
        return True
    if not have:
        return False
    a, b = ([int(part) for part in text.split(".")] for text in (have, need))
    longest = max(len(a), len(b))
    return a + [0] * (longest - len(a)) >= b + [0] * (longest - len(b))


# --- one task on the cards of a node ----------------------------------------------------------------------------


def has_room(card: Card, kind: Kind, allowed: tuple[bool, ...]) -> bool:
    entry, share, memory, _ = card
    return allowed[entry] and share >= kind.share and (memory is None or memory >= kind.memory)


def take(
    cards: tuple[Card, ...], kind: Kind, allowed: tuple[bool, ...], within: frozenset[int] | None = None
) -> set[tuple[Card, ...]]:
    """Return what the cards can look like once a task has taken its own, within some zones if any are given."""
    if not kind.gpus:
        return {cards}
    inside = [i for i, card in enumerate(cards) if within is None or card[3] in within]
    room = [i for i in inside if has_room(cards[i], kind, allowed)]
    found = set()
    for chosen in itertools.combinations(room, kind.gpus):
        left = list(cards)
        for i in chosen:
            entry, share, memory, zone = left[i]
            left[i] = (entry, share - kind.share, None if memory is None else memory - kind.memory, zone)
        found.add(sorted_cards(left))
    return found


def sorted_cards(cards: Iterable[Card]) -> tuple[Card, ...]:
    return tuple(sorted(cards, key=lambda card: (card[0], card[1], -1 if card[2] is None else card[2], card[3])))


# --- objectives that add up -------------------------------------------------------------------------------------


def added(job: Job, kind: Kind, keys: list[tuple[str, int | None]]) -> tuple[Fraction, ...]:
    """Return what one task adds to the objectives that add up task by task."""
    return tuple(
        Fraction(1) if key[0] == "tasks" else kind.worth if key[1] == job.priority else Fraction(0) for key in keys
    )


def plus(one: tuple[Fraction, ...], other: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
    return tuple(a + b for a, b in zip(one, other, strict=True))


def close(a: float | None, b: Fraction) -> bool:
    """Return whether a number in double precision is an exact one."""
    return a is not None and math.isclose(a, float(b), rel_tol=1e-9, abs_tol=1e-6)
