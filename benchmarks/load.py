"""An honest load: a used cluster that is asked for more than it has, listed node by node and job by job.

Twenty kinds of nodes with eight card models, two hundred kinds of jobs with cores, memory, shares of cards, device
memory and gangs of up to 64 cards. The cluster is filled with random tasks and many of them leave again, so that what
is free lies scattered as it does after a year of use. Pending jobs then ask for 1.2 to 1.3 times what each model has
free, and one in five counts double. All of it follows from the seed.

    python benchmarks/load.py --nodes 10000 --seed 0 -o load.json
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from placement.snapshot import Gpu, Job, Node, Running, RunningTask, Snapshot, Task, TaskGroup
from placement.snapshot.read import dumps

MODELS = {"T4": 16, "V100-32": 32, "A10": 24, "L40S": 48, "A100-40": 40, "A100-80": 80, "H100": 80, "H200": 141}
"""Card models and their device memory in GiB."""
LAYOUTS = ((8, 12, 120), (4, 16, 96), (8, 8, 240))
"""Cards of a node, and its cores and GiB for each of them."""
KINDS_OF_NODES, KINDS_OF_JOBS = 20, 200
USED, LEAVING = 2 / 3, 0.45
"""Share of the nodes that were ever used, and of their tasks that leave again; about 30 % of all cards stay taken."""
WEIGHTS = (1, 1, 1, 1, 2)
"""One pending job in five counts double, which greedy rules take no notice of; where all count alike the best of them
comes nearer."""
TASKS_PER_NODE = 5
SCARCEST, LEAST_SCARCE = 1.3, 1.2
"""Cards asked for of each model, relative to what is free of it."""
SHARES = (100, 150, 200, 250, 300, 350, 400, 450, 500, 550, 600, 700)
"""Thousandths of a card."""
CPU, MEMORY = (2, 4, 6, 8, 10, 12), (16, 32, 64, 96, 128, 160)
"""Cores and GiB that jobs ask for with each card; nodes have 8 to 16 and 96 to 240."""
GANGS = ((2, 1), (4, 1), (8, 1), (2, 4), (2, 8), (4, 4), (4, 8), (8, 4), (8, 8), (16, 4))
"""Tasks of a gang and cards of each."""


@dataclass(frozen=True, slots=True)
class NodeKind:
    """Hardware that many nodes share."""

    model: str
    cards: int
    cpu: int
    memory: int


@dataclass(frozen=True, slots=True)
class JobKind:
    """What many jobs ask for; `home` is the model that its demand counts for."""

    home: str
    models: tuple[str, ...]
    tasks: int
    gpus: int
    share: int
    device_memory: int
    cpu: int
    memory: int

    @property
    def thousandths(self) -> int:
        """Thousandths of cards that one task takes."""
        return self.gpus * self.share

    @property
    def size(self) -> int:
        """Thousandths of cards that a job takes."""
        return self.tasks * self.thousandths

    def groups(self) -> tuple[TaskGroup, ...]:
        """Return the job's one task group."""
        task = Task(
            gpus=self.gpus,
            gpu_share=None if self.share == 1000 else f"{self.share}m",
            gpu_memory=f"{self.device_memory}Gi" if self.device_memory else None,
            cpu=f"{self.cpu}m",
            memory=f"{self.memory}Gi",
            gpu_models=self.models,
        )
        return (TaskGroup(name="main", count=self.tasks, task=task),)


class Room:
    """What is free on one node while it is being filled: card by card, in thousandths and GiB."""

    def __init__(self, kind: NodeKind) -> None:
        self.kind = kind
        self.share = [1000] * kind.cards
        self.device = [MODELS[kind.model]] * kind.cards
        self.cpu, self.memory = kind.cpu * 1000, kind.memory

    def take(self, job: JobKind, rng: Random) -> tuple[int, ...] | None:
        """Take random cards with room for one task; None where there is none."""
        if job.cpu > self.cpu or job.memory > self.memory or (job.models and self.kind.model not in job.models):
            return None
        fit = [c for c, free in enumerate(self.share) if free >= job.share and self.device[c] >= job.device_memory]
        if len(fit) < job.gpus:
            return None
        cards = tuple(sorted(shuffled(rng, fit)[: job.gpus]))
        self.change(job, cards, -1)
        return cards

    def change(self, job: JobKind, cards: Sequence[int], sign: int) -> None:
        """Take (-1) or give back (+1)."""
        for card in cards:
            self.share[card] += sign * job.share
            self.device[card] += sign * job.device_memory
        self.cpu += sign * job.cpu
        self.memory += sign * job.memory

    def state(self) -> tuple[object, ...]:
        """Return what is free, equal for nodes that no job can tell apart."""
        return self.kind, self.cpu, self.memory, tuple(sorted(zip(self.share, self.device, strict=True)))


@dataclass(frozen=True, slots=True)
class Load:
    """A snapshot, and the figures that say how hard it is."""

    snapshot: Snapshot
    states: int
    """Distinct states that nodes are left in by what runs."""
    demand: dict[str, float]
    """Cards asked for of each model, relative to what is free of it."""


def load(nodes: int, seed: int) -> Load:
    """Return a load of a size; the same bytes for the same arguments on every machine."""
    rng = Random(seed)
    node_kinds = kinds_of_nodes(rng)
    job_kinds = [job_kind(rng, number) for number in range(KINDS_OF_JOBS)]
    kinds = [node_kinds[int(rng.random() * KINDS_OF_NODES)] for _ in range(nodes)]
    rooms = [Room(kind) for kind in kinds]
    running = occupied(rng, rooms, job_kinds)
    free = dict.fromkeys(MODELS, 0)
    for room in rooms:
        free[room.kind.model] += sum(room.share)
    pending, demand = wanted(rng, job_kinds, {model: amount for model, amount in free.items() if amount}, nodes)
    snapshot = Snapshot(
        description=f"{nodes} nodes after use, {sum(k.tasks for k in pending)} pending tasks, seed {seed}",
        nodes=tuple(named_node(number, kind) for number, kind in enumerate(kinds)),
        jobs=(
            *running,
            *(
                Job(name=f"job-{n}", groups=kind.groups(), weight=WEIGHTS[int(rng.random() * len(WEIGHTS))])
                for n, kind in enumerate(pending)
            ),
        ),
    )
    return Load(snapshot, len({room.state() for room in rooms}), demand)


def shuffled(rng: Random, items: Sequence[int]) -> list[int]:
    """Return the items in random order; `Random.random` alone is the same in every version of Python."""
    return [item for _, item in sorted((rng.random(), item) for item in items)]


def kinds_of_nodes(rng: Random) -> list[NodeKind]:
    """Draw the kinds of nodes, all different; every model has two or three."""
    layouts = {model: shuffled(rng, range(len(LAYOUTS))) for model in MODELS}
    found = []
    for number in range(KINDS_OF_NODES):
        model = list(MODELS)[number % len(MODELS)]
        cards, cpu, memory = LAYOUTS[layouts[model][number // len(MODELS)]]
        found.append(NodeKind(model, cards, cards * cpu, cards * memory))
    return found


def job_kind(rng: Random, number: int) -> JobKind:
    """Draw a kind of jobs: shares, whole cards and gangs in turn."""
    names = list(MODELS)
    home = names[number % len(names)]
    others = tuple(m for m in names if m != home and MODELS[m] >= MODELS[home] and rng.random() < 0.25)
    role = number // len(names) % 5
    tasks, gpus, share, device_memory = 1, 1, 1000, 0
    if role < 2:
        share = SHARES[int(rng.random() * len(SHARES))]
        if rng.random() < 0.5:
            device_memory = max(1, int(MODELS[home] * share / 1000 * (0.5 + rng.random())))
    elif role < 4:
        gpus = (1, 1, 2, 4, 8)[int(rng.random() * 5)]
    else:
        tasks, gpus = GANGS[int(rng.random() * len(GANGS))]
    cards = gpus * share / 1000
    cpu = int(cards * CPU[int(rng.random() * len(CPU))] * 4 + 1) * 250
    memory = int(cards * MEMORY[int(rng.random() * len(MEMORY))]) + 1
    return JobKind(home, (home, *others), tasks, gpus, share, min(device_memory, MODELS[home]), cpu, memory)


def occupied(rng: Random, rooms: Sequence[Room], kinds: Sequence[JobKind]) -> list[Job]:
    """Fill nodes with random tasks and let many of them leave; return what stays as running jobs."""
    jobs: list[Job] = []
    for number, room in enumerate(rooms):
        # to about nine tenths at first
        if rng.random() >= USED:
            continue
        placed: list[tuple[JobKind, tuple[int, ...]]] = []
        for _ in range(60):
            kind = kinds[int(rng.random() * len(kinds))]
            cards = room.take(kind, rng)
            if cards is not None:
                placed.append((kind, cards))
            if sum(room.share) < 100 * room.kind.cards:
                break
        for kind, cards in placed:
            if rng.random() < LEAVING:
                room.change(kind, cards, 1)
                continue
            place = RunningTask(group="main", index=0, node=f"node-{number}", gpus=cards)
            group = kind.groups()[0]
            alone = TaskGroup(name="main", task=group.task)
            jobs.append(Job(name=f"running-{len(jobs)}", groups=(alone,), running=Running(tasks=(place,))))
    return jobs


def wanted(
    rng: Random, kinds: Sequence[JobKind], free: dict[str, int], nodes: int
) -> tuple[list[JobKind], dict[str, float]]:
    """Draw pending jobs: as many tasks as wanted, and of each model as many cards."""
    factors = [LEAST_SCARCE + (SCARCEST - LEAST_SCARCE) * n / max(1, len(free) - 1) for n in range(len(free))]
    ask = {
        model: free[model] * factors[place] for place, model in zip(shuffled(rng, range(len(free))), free, strict=True)
    }
    mean = sum(ask.values()) / (TASKS_PER_NODE * nodes)
    found: list[JobKind] = []
    reached: dict[str, float] = {}
    for model, amount in ask.items():
        own = [kind for kind in kinds if kind.home == model]
        light = [kind for kind in own if kind.thousandths < mean]
        heavy = [kind for kind in own if kind.thousandths >= mean]
        # the chance of a light kind by which the mean over tasks comes out
        chance = mixing(light, heavy, mean)
        taken = 0
        while taken < amount:
            kind = drawn(rng, light if rng.random() < chance else heavy)
            found.append(kind)
            taken += kind.size
        reached[model] = taken / free[model]
    return [found[i] for i in shuffled(rng, range(len(found)))], reached


def drawn(rng: Random, kinds: Sequence[JobKind]) -> JobKind:
    """Draw a kind so that all kinds come to ask for about equally many cards: large jobs are rare."""
    total = sum(1 / kind.size for kind in kinds)
    left = rng.random() * total
    for kind in kinds:
        left -= 1 / kind.size
        if left < 0:
            return kind
    return kinds[-1]


def mixing(light: Sequence[JobKind], heavy: Sequence[JobKind], mean: float) -> float:
    """Return the share of jobs to draw from the light kinds so that a task takes `mean` thousandths on average."""

    def sums(some: Sequence[JobKind]) -> tuple[float, float]:
        total = sum(1 / kind.size for kind in some)
        return sum(kind.tasks / kind.size for kind in some) / total, len(some) / total

    (few, little), (many, much) = sums(light), sums(heavy)
    under, over = few * mean - little, much - many * mean
    return over / (under + over)


def named_node(number: int, kind: NodeKind) -> Node:
    """Return a node of a kind."""
    gpu = Gpu(model=kind.model, count=kind.cards, memory=f"{MODELS[kind.model]}Gi")
    return Node(name=f"node-{number}", cpu=kind.cpu, memory=f"{kind.memory}Gi", pods=110, gpus=(gpu,))


def main() -> None:
    """Write a load and say what it is like."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    made = load(options.nodes, options.seed)
    options.output.write_bytes(dumps(made.snapshot))
    total = sum(g.count for node in made.snapshot.nodes for g in node.gpus)
    pending = [job for job in made.snapshot.jobs if job.running is None]
    tasks = sum(group.count for job in pending for group in job.groups)
    print(f"{options.nodes} nodes, {total} cards, {made.states} states, {len(pending)} jobs, {tasks} tasks")
    print("cards asked for / free: " + ", ".join(f"{model} {ratio:.2f}" for model, ratio in made.demand.items()))


if __name__ == "__main__":
    main()
