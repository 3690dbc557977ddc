"""Synthetic clusters: seeded, valid, and the same to the byte for the same arguments on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import TypeVar

from placement import units
from placement.errors import Problem, UsageError
from placement.snapshot import Gpu, Job, Node, Running, RunningTask, Snapshot, Task, TaskGroup
from placement.snapshot.read import verified
from placement.snapshot.report import suggestion

T = TypeVar("T")

NODES_PER_RACK = 8
CPU_PER_CARD, MEMORY_PER_CARD = 12, 128
"""Cores and GiB of a node for each of its cards; more than most tasks ask for, so that cards run out first."""

TRIES = 50
"""Jobs in a row that find no place before the rest of the cluster is left empty."""


@dataclass(frozen=True, slots=True)
class Model:
    """A card model as nodes have it: name, cards in a node, GiB of device memory, compute capability."""

    name: str
    cards: int
    memory: int
    compute_capability: str


MODELS = {
    model.name: model
    for model in (
        Model("T4-16", 4, 16, "7.5"),
        Model("V100-32", 8, 32, "7.0"),
        Model("A10-24", 4, 24, "8.6"),
        Model("L40S-48", 8, 48, "8.9"),
        Model("A100-80", 8, 80, "8.0"),
        Model("H100-80", 8, 80, "9.0"),
    )
}
"""Card models that a cluster can be made of; sizes and capabilities are NVIDIA's, cards per node are usual ones."""

SHARES = ("0.1", "0.25", "0.5", "0.75")


def generate(
    *,
    nodes: int = 16,
    models: Sequence[str] = ("A100-80", "H100-80"),
    load: float = 1.0,
    gangs: float = 0.2,
    shares: float = 0.3,
    running: float = 0.25,
    seed: int = 0,
) -> Snapshot:
    """Return a cluster with running and pending jobs.

    Parameters
    ----------
    nodes : int
        How many, at least 1; the models take turns, eight nodes to a rack.
    models : sequence of str
        Names of card models, from `MODELS`.
    load : float
        What pending jobs ask for, as a multiple of the GPU that running work leaves free; from 0 to 100.
    gangs : float
        Fraction of the jobs that are gangs of several tasks, some of them nested, from 0 to 1.
    shares : float
        Fraction of the other jobs that ask for less than a card, from 0 to 1.
    running : float
        Fraction of the cluster's GPU that running jobs take, from 0 to 1; less where they find no place.
    seed : int
        Non-negative.

    Raises
    ------
    UsageError
        If an argument is out of range or a model is unknown.
    """
    _refuse(nodes, models, load, gangs, shares, running, seed)
    rng = Random(seed)
    racks = -(-nodes // NODES_PER_RACK)
    cluster = [_node(index, MODELS[models[index % len(models)]]) for index in range(nodes)]
    cards = sum(gpu.count for node in cluster for gpu in node.gpus)
    jobs = _Jobs(rng, tuple(dict.fromkeys(models)), gangs, shares, cards)
    there = _running(rng, cluster, jobs, Fraction(running) * cards)
    wanted = Fraction(load) * (cards - sum((_gpu(job.groups) for job in there), Fraction(0)))
    pending: list[Job] = []
    asked = Fraction(0)
    while asked < wanted:
        job = jobs.draw(f"job-{len(pending)}")
        pending.append(job)
        asked += _gpu(job.groups)
    return verified(
        Snapshot(
            description=f"Synthetic cluster of {nodes} nodes in {racks} racks, load {load:g}, seed {seed}",
            topology=("rack",),
            nodes=tuple(cluster),
            jobs=(*there, *pending),
        )
    )


def _refuse(
    nodes: int, models: Sequence[str], load: float, gangs: float, shares: float, running: float, seed: int
) -> None:
    problems = []
    if not 1 <= nodes <= 1_000_000:
        problems.append(Problem("nodes", f"is {nodes}", "give a whole number from 1 to 1000000"))
    if not models:
        problems.append(Problem("models", "the list is empty", f"give some of {', '.join(MODELS)}"))
    problems += [
        Problem("models", f"{name!r} is unknown", suggestion(name, MODELS)) for name in models if name not in MODELS
    ]
    if not 0 <= load <= 100:
        problems.append(Problem("load", f"is {load}", "give a number from 0 to 100"))
    problems += [
        Problem(name, f"is {value}", "give a number from 0 to 1")
        for name, value in (("gangs", gangs), ("shares", shares), ("running", running))
        if not 0 <= value <= 1
    ]
    if seed < 0:
        problems.append(Problem("seed", f"is {seed}", "give a whole number that is not negative"))
    if problems:
        raise UsageError(problems)


def _node(index: int, model: Model) -> Node:
    return Node(
        name=f"node-{index}",
        position={"rack": f"rack-{index // NODES_PER_RACK}"},
        cpu=CPU_PER_CARD * model.cards,
        memory=f"{MEMORY_PER_CARD * model.cards}Gi",
        pods=110,
        gpus=(
            Gpu(
                model=model.name,
                count=model.cards,
                memory=f"{model.memory}Gi",
                compute_capability=model.compute_capability,
            ),
        ),
    )


# --- jobs ----------------------------------------------------------------------------------------------------


def _pick(rng: Random, items: Sequence[T]) -> T:
    """Return one of the items; `Random.random` alone is promised to be the same in every version of Python."""
    return items[int(rng.random() * len(items))]


@dataclass(slots=True)
class _Jobs:
    """Draws jobs; no gang asks for more than half of the cluster's cards."""

    rng: Random
    models: tuple[str, ...]
    gangs: float
    shares: float
    cards: int

    def draw(self, name: str) -> Job:
        """Return a job."""
        if self.rng.random() < self.gangs:
            return Job(name=name, groups=self._gang())
        task = self._share() if self.rng.random() < self.shares else self._whole(_pick(self.rng, (1, 1, 1, 2, 4, 8)))
        return Job(name=name, groups=(TaskGroup(name="main", task=task),))

    def _gang(self) -> tuple[TaskGroup, ...]:
        rng = self.rng
        most = max(2, self.cards // 2)
        task = self._whole(_pick(rng, [gpus for gpus in (1, 2, 4, 8) if 2 * gpus <= most]))
        if rng.random() < 0.2:
            # replicas of a leader and its workers, of which some may be missing
            leader = TaskGroup(name="leader", task=self._whole(1))
            workers = TaskGroup(name="worker", count=_pick(rng, (1, 2, 3)), task=task)
            count = min(_pick(rng, (2, 3, 4)), max(1, most // (1 + workers.count * task.gpus)))
            return (TaskGroup(name="replica", count=count, min_count=1, groups=(leader, workers)),)
        count = min(_pick(rng, (2, 2, 3, 4, 6, 8)), most // task.gpus)
        elastic = rng.random() < 0.3
        return (TaskGroup(name="worker", count=count, min_count=-(-count // 2) if elastic else None, task=task),)

    def _whole(self, gpus: int) -> Task:
        cards = min(gpus, max(MODELS[name].cards for name in self.models))
        picky = len(self.models) > 1 and self.rng.random() < 0.25
        models = (_pick(self.rng, self.models),) if picky else ()
        if models:
            cards = min(cards, MODELS[models[0]].cards)
        cpu = _pick(self.rng, (2, 4, 8, CPU_PER_CARD)) * cards
        memory = _pick(self.rng, (16, 32, 64, MEMORY_PER_CARD)) * cards
        return Task(gpus=cards, cpu=cpu, memory=f"{memory}Gi", gpu_models=models)

    def _share(self) -> Task:
        share = _pick(self.rng, SHARES)
        smallest = min(MODELS[name].memory for name in self.models)
        # a third of them say how much device memory they need, never more than their share of the smallest card
        memory = f"{int(smallest * Fraction(share) * 1024)}Mi" if self.rng.random() < 1 / 3 else None
        return Task(gpus=1, gpu_share=share, gpu_memory=memory, cpu=_pick(self.rng, (1, 2, 4)), memory="8Gi")


def _gpu(groups: Sequence[TaskGroup]) -> Fraction:
    """Return the cards that groups ask for."""
    total = Fraction(0)
    for group in groups:
        own = Fraction(0) if group.task is None else group.task.gpus * _share(group.task)
        total += group.count * (own + _gpu(group.groups))
    return total


def _share(task: Task) -> Fraction:
    return units.exact(1 if task.gpu_share is None else task.gpu_share)


# --- running work --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Need:
    """A task in whole numbers: cards, thousandths and MiB of each, cores, GiB."""

    gpus: int
    share: int
    memory: int
    cpu: int
    host: int
    models: tuple[str, ...]

    @classmethod
    def of(cls, task: Task) -> _Need:
        memory = units.mebibytes_up(task.gpu_memory or 0)
        cpu, host = units.milli_up(task.cpu) // 1000, units.mebibytes_up(task.memory) // 1024
        return cls(task.gpus, int(_share(task) * 1000), memory, cpu, host, task.gpu_models)


class _Room:
    """What is left of a node, and of each card the thousandths and MiB; `slot` is its place in a list of rooms."""

    def __init__(self, slot: int, node: Node) -> None:
        gpu = node.gpus[0]
        self.slot, self.name, self.model = slot, node.name, gpu.model
        self.cpu, self.host = CPU_PER_CARD * gpu.count, MEMORY_PER_CARD * gpu.count
        self.share = [1000] * gpu.count
        self.memory = [units.mebibytes_down(gpu.memory or 0)] * gpu.count

    def take(self, need: _Need) -> tuple[int, ...] | None:
        """Take what a task needs and return its cards, or None if it does not fit; the fullest cards go first."""
        if need.cpu > self.cpu or need.host > self.host or (need.models and self.model not in need.models):
            return None
        fitting = [
            (free, card)
            for card, free in enumerate(self.share)
            if free >= need.share and self.memory[card] >= need.memory
        ]
        if len(fitting) < need.gpus:
            return None
        chosen = tuple(sorted(card for _, card in sorted(fitting)[: need.gpus]))
        self.change(need, chosen, -1)
        return chosen

    def change(self, need: _Need, cards: Sequence[int], sign: int) -> None:
        """Take (-1) or give back (+1) what a task needs."""
        for card in cards:
            self.share[card] += sign * need.share
            self.memory[card] += sign * need.memory
        self.cpu += sign * need.cpu
        self.host += sign * need.host

    @property
    def full(self) -> bool:
        """Whether no card has anything left."""
        return not any(self.share)


def _running(rng: Random, cluster: Sequence[Node], jobs: _Jobs, wanted: Fraction) -> list[Job]:
    """Return running jobs, each of whose tasks is on the first node with room from a random one on."""
    rooms = [_Room(slot, node) for slot, node in enumerate(cluster)]
    found: list[Job] = []
    taken, failures = Fraction(0), 0
    while taken < wanted and failures < TRIES:
        job = jobs.draw(f"running-{len(found)}")
        amount = _gpu(job.groups)
        placed = _place(rng, rooms, job) if taken + amount <= wanted else None
        if placed is None:
            failures += 1
            continue
        failures = 0
        taken += amount
        found.append(Job(name=job.name, groups=job.groups, running=Running(tasks=tuple(place for _, place in placed))))
        for room, _ in placed:
            if room.full and room.slot < len(rooms) and rooms[room.slot] is room:
                # the last one takes its slot: nobody looks at full nodes again
                last = rooms.pop()
                if last is not room:
                    rooms[room.slot], last.slot = last, room.slot
    return found


def _place(rng: Random, rooms: Sequence[_Room], job: Job) -> list[tuple[_Room, RunningTask]] | None:
    """Place every task of a job and return where, or place none."""
    placed: list[tuple[_Room, _Need, RunningTask]] = []
    for group, task, count in _leaves(job.groups, "", 1):
        need = _Need.of(task)
        for index in range(count):
            start = int(rng.random() * len(rooms))
            for step in range(len(rooms)):
                room = rooms[(start + step) % len(rooms)]
                cards = room.take(need)
                if cards is not None:
                    placed.append((room, need, RunningTask(group=group, index=index, node=room.name, gpus=cards)))
                    break
            else:
                for room, taken, place in placed:
                    room.change(taken, place.gpus, 1)
                return None
    return [(room, place) for room, _, place in placed]


def _leaves(groups: Sequence[TaskGroup], above: str, copies: int) -> list[tuple[str, Task, int]]:
    found: list[tuple[str, Task, int]] = []
    for group in groups:
        path = f"{above}{group.name}"
        if group.task is not None:
            found.append((path, group.task, copies * group.count))
        found += _leaves(group.groups, f"{path}/", copies * group.count)
    return found
