"""Device memory that nobody asked for, and what of it nobody who waits could use."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import msgspec

from placement import units
from placement.check.case.filtered import CARD_ON_NODE_RULES, CARD_RULES, NODE_RULES
from placement.hardware.sharing import most_clients
from placement.metrics.occupants import Cards, Occupant
from placement.plan import Plan
from placement.snapshot import Gpu, Job, Node, Snapshot, Task
from placement.snapshot.leaves import leaf_tasks

Waiting = tuple[Job, Task]


def memory_of(task: Task) -> Fraction:
    """Return the bytes of device memory that a task asks for on each of its cards."""
    return Fraction(0) if task.gpu_memory is None else units.exact(task.gpu_memory)


def idle_memory(cards: Cards, plan: Plan) -> tuple[Fraction, Fraction]:
    """Return the idle device memory, and what of it no task of a pending job could use."""
    waiting = _waiting(cards.snapshot, plan)
    idle = unusable = Fraction(0)
    for node, gpu, count in cards.idle():
        there = _free(gpu, ())
        if there is not None and count:
            idle += there * count
            unusable += 0 if _usable(node, gpu, (), there, waiting) else there * count
    for card in cards.used.values():
        there = _free(card.gpu, card.occupants)
        if there is not None:
            idle += there
            unusable += 0 if _usable(card.host, card.gpu, card.occupants, there, waiting) else there
    return idle, unusable


def _free(gpu: Gpu, occupants: Sequence[Occupant]) -> Fraction | None:
    """Return the memory of a card that nobody asked for, or None where that is not a question."""
    if gpu.memory is None or gpu.mig_enabled or gpu.health != "healthy":
        return None
    taken = sum((memory_of(one.task) for one in occupants), Fraction(0))
    return max(Fraction(0), units.exact(gpu.memory) - taken)


def _share(task: Task) -> Fraction:
    return Fraction(1) if task.gpu_share is None else units.exact(task.gpu_share)


def _usable(node: Node, gpu: Gpu, occupants: Sequence[Occupant], memory: Fraction, waiting: Sequence[Waiting]) -> bool:
    most = most_clients(gpu, node.cuda)
    if most is not None and len(occupants) >= most:
        return False
    left = 1 - sum((_share(one.task) for one in occupants), Fraction(0))
    return any(
        _share(task) <= left and memory_of(task) <= memory and _admitted(job, task, node, gpu) for job, task in waiting
    )


def _admitted(job: Job, task: Task, node: Node, gpu: Gpu) -> bool:
    """Return whether no filter refuses the node or the card."""
    if task.gpus > sum(one.count for one in node.gpus):
        return False
    return (
        all(rule(job, task, node) is None for rule in NODE_RULES.values())
        and all(rule(job, task, gpu) is None for rule in CARD_RULES.values())
        and all(rule(job, task, gpu, node) is None for rule in CARD_ON_NODE_RULES.values())
    )


def _waiting(snapshot: Snapshot, plan: Plan) -> list[Waiting]:
    """Return the distinct tasks with cards of jobs that do not run in full, each with a job that has it."""
    names = {one.job for one in plan.pending}
    copies = {name.rpartition("-")[0] for name in names}
    found: dict[bytes, Waiting] = {}
    for job in snapshot.jobs:
        if job.running is None and (job.name in (names if job.count == 1 else copies)):
            for _, task in leaf_tasks(job.groups):
                if task.gpus and not task.mig_profile:
                    found.setdefault(msgspec.json.encode((task, job.requires)), (job, task))
    return list(found.values())
