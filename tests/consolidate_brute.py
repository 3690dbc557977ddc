"""The most that moving MIG instances can bring on a tiny cluster: every place of every mover, then every start.

Movers are put on every card at every slot, one after the other, on cards from which all of them are gone; what waits is
placed in each arrangement by `mig_brute`. Of the engine it knows no more than that does.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, Literal

import msgspec
from brute_facts import card_allows, cards_of, leaf_tasks, node_allows
from mig_brute import State, _merge, _Search, part_of, profile_on, starts_on

from placement.hardware.mig import geometry
from placement.snapshot import Gpu, Job, MigInstance, Node, Running, RunningTask, Snapshot, Task, TaskGroup

MODELS = ("A30-24GB", "A100-40GB", "RTX-PRO-6000-BLACKWELL-96GB")


# --- snapshots -------------------------------------------------------------------------------------------------


def tiny(source: int | random.Random, cores: int | None = None) -> Snapshot:
    """Return the snapshot of a seed, or one drawn: up to three cards, four running instances and five tasks that wait.

    Most of what runs may move. With `cores` each host has so many, and tasks ask for 0 to 2.
    """
    draw = random.Random(f"consolidate {source}") if isinstance(source, int) else source
    models = draw.sample(MODELS, 2)
    nodes: list[Node] = []
    running: list[Job] = []
    places: list[tuple[str, int, str, int]] = []
    for number in range(draw.randint(1, 2)):
        gpus: list[Gpu] = []
        for _ in range(draw.randint(1, 3 - number) if number else draw.randint(1, 2)):
            model = draw.choice(models)
            some = _some(draw, model, draw.choice((1, 1, 2, 3)))
            layout = tuple(MigInstance(profile=p, start=s) for p, s in some) if draw.random() < 0.3 else ()
            places += [(f"n{number}", len(gpus), *one) for one in some]
            static = bool(layout) and draw.random() < 0.5
            health: Literal["healthy", "unhealthy"] = "unhealthy" if draw.random() < 0.05 else "healthy"
            gpus.append(Gpu(model=model, mig_enabled=True, mig_layout=layout, mig_static=static, health=health))
        labels = {"zone": draw.choice("ab")}
        nodes.append(Node(name=f"n{number}", cpu=cores, gpus=tuple(gpus), labels=labels, cordoned=draw.random() < 0.05))
    for number, (node, card, profile, start) in enumerate(draw.sample(places, min(4, len(places)))):
        running.append(
            Job(
                name=f"old{number}",
                weight=draw.choice((1, 1, 2)),
                preemptible=draw.random() < 0.85,
                groups=(TaskGroup(name="g", task=_task(draw, profile, cores)),),
                running=Running(tasks=(RunningTask(group="g", index=0, node=node, gpus=(card,), mig_starts=(start,)),)),
            )
        )
    waiting: list[Job] = []
    left = 5
    while left > 0 and (not waiting or draw.random() < 0.75):
        count = min(left, draw.choice((1, 1, 1, 2, 3)))
        profile = max(draw.sample(_known(draw.choice(models)).profiles, 3), key=lambda one: one.size).name
        group = TaskGroup(
            name="g",
            count=count,
            min_count=draw.choice((None, 1)),
            task=_task(draw, profile, cores),
        )
        more: dict[str, Any] = (
            {"value": draw.randint(1, 2000)} if draw.random() < 0.2 else {"weight": draw.choice((1, 1, 2, 3))}
        )
        waiting.append(Job(name=f"new{len(waiting)}", groups=(group,), **more))
        left -= count
    return Snapshot(nodes=tuple(nodes), jobs=(*running, *waiting))


def _task(draw: random.Random, profile: str, cores: int | None) -> Task:
    selector = {"zone": draw.choice("ab")} if draw.random() < 0.1 else {}
    return Task(gpus=1, mig_profile=profile, node_selector=selector, cpu=0 if cores is None else draw.randint(0, 2))


def _known(model: str) -> Any:
    found = geometry(model)
    assert found is not None
    return found


def _some(draw: random.Random, model: str, most: int) -> list[tuple[str, int]]:
    """Return instances that can be together on a card, small ones the more often."""
    there = _known(model)
    found: list[tuple[str, int]] = []
    bits, engines = 0, (0,) * len(there.engines)
    for _ in range(most):
        profile = min(draw.sample(there.profiles, 3), key=lambda one: one.size)
        start = draw.choice(profile.starts)
        more = tuple(a + b for a, b in zip(engines, profile.engines, strict=True))
        if not bits & profile.bits(start) and all(a <= b for a, b in zip(more, there.engines, strict=True)):
            bits, engines = bits | profile.bits(start), more
            found.append((profile.name, start))
    return found


# --- the best there is -----------------------------------------------------------------------------------------


class Moves(_Search):
    """Every way to move and to start; see `mig_brute.optimum`.

    Parameters
    ----------
    snapshot : Snapshot
        Without caps; all jobs that wait are of one priority.
    cost : Fraction
        Of a move, as a part of the worth of starting a task like it.
    most : int, optional
        Most moves.
    """

    def __init__(self, snapshot: Snapshot, cost: Fraction, most: int | None = None) -> None:
        self.movers = [job for job in snapshot.jobs if job.running is not None and job.preemptible]
        rest = tuple(job for job in snapshot.jobs if job not in self.movers)
        super().__init__(msgspec.structs.replace(snapshot, jobs=rest), ("value",))
        self.cost, self.most = cost, most
        # cards in the order of the file, for movers must know their own
        self.cards = self._ordered(rest)

    def _ordered(self, jobs: tuple[Job, ...]) -> list[list[Any]]:
        found = []
        for node, name in zip(self.nodes, self.names, strict=True):
            cards = []
            for index, (entry, gpu) in enumerate(cards_of(node)):
                holding = [
                    (task, place)
                    for job in jobs
                    for _, task, _ in leaf_tasks(job)
                    for place in (job.running.tasks if job.running else ())
                    if place.node == name and index in place.gpus
                ]
                cards.append(self._card(entry, gpu, holding, index))
            found.append(cards)
        return found

    def best(self) -> Fraction:
        """Return the largest worth less cost."""
        frontier: dict[Any, tuple[Fraction, ...]] = {}
        zero = [Fraction(0)] * len(self.nodes)
        for cards, cpu, cost in self._arranged(0, self.cards, zero, ()):
            # resources of `mig_brute` are cpu, memory and pods
            state: State = tuple(
                ((used, Fraction(0), Fraction(0)), tuple(sorted(mine))) for used, mine in zip(cpu, cards, strict=True)
            )
            _merge(frontier, [((state, ()), (-cost,) * max(1, len(self.keys)))])
        for job in self.pending:
            frontier = self._with_job(frontier, job)
        return max(sums[0] for sums in frontier.values())

    def _arranged(
        self, number: int, cards: list[list[Any]], cpu: list[Fraction], come: tuple[tuple[int, bool], ...]
    ) -> Iterator[Any]:
        """Yield the cards of each node, what movers take of its cores, and what it costs.

        `come` are the nodes that movers came to, and whether they came from another one and their tasks ask for cores.
        Nobody who does comes to a node that has too few for all who are there then.
        """
        if number == len(self.movers):
            over = [free[0] is not None and used > free[0] for free, used in zip(self.free, cpu, strict=True)]
            if not any(asks and over[node] for node, asks in come):
                yield cards, cpu, Fraction(0)
            return
        job = self.movers[number]
        (_, task, _), *_ = leaf_tasks(job)
        assert job.running is not None
        here = job.running.tasks[0]
        price = self.cost * (job.weight if job.value is None else 1) * 1000 * part_of(task)
        for node, name in enumerate(self.names):
            allowed = node_allows(job, task, self.nodes[node])
            for index, (_, gpu) in enumerate(cards_of(self.nodes[node])):
                for start, card in _on(task, gpu, cards[node][index]):
                    home = (name, (index,), (start,)) == (here.node, here.gpus, here.mig_starts)
                    if not home and not (allowed and card_allows(job, task, gpu)):
                        continue
                    after = [list(mine) for mine in cards]
                    after[node][index] = card
                    taken = [*cpu[:node], cpu[node] + Fraction(task.cpu or 0), *cpu[node + 1 :]]
                    moved = come if home else (*come, (node, name != here.node and bool(task.cpu)))
                    if self.most is None or len(moved) <= self.most:
                        for rest in self._arranged(number + 1, after, taken, moved):
                            yield rest[0], rest[1], rest[2] + (0 if home else price)


def _on(task: Task, gpu: Gpu, card: Any) -> Iterator[tuple[int, Any]]:
    """Yield each start at which a card has room for a task, and the card with it."""
    profile, there = profile_on(task, gpu), geometry(gpu.model)
    if profile is None or there is None:
        return
    entry, bits, engines = card
    more = tuple(a + b for a, b in zip(engines, profile.engines, strict=True))
    if all(a <= b for a, b in zip(more, there.engines, strict=True)):
        for start in starts_on(profile, gpu):
            if not bits & profile.bits(start):
                yield start, (entry, bits | profile.bits(start), more)
