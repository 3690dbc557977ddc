"""What tasks, nodes and limits state of each resource, exactly and in base units."""

from __future__ import annotations

from fractions import Fraction

from placement import units
from placement.check.filters.mig_cards import part
from placement.snapshot import DomainLimit, Node, Task

GPUS = "gpus"
"""The resource that shares of cards are counted in."""
GPU_MEMORY = "gpu_memory"
NICS = "nics"
BYTES = ("memory", GPU_MEMORY)


def amounts(task: Task) -> dict[str, Fraction]:
    """Return what one task takes: of its node, and (under `GPUS` and `GPU_MEMORY`) of each of its cards.

    A MIG instance has memory of its own, so it takes none of that which shares of a card divide.
    """
    taken = {"cpu": units.exact(task.cpu), "memory": units.exact(task.memory), "pods": Fraction(1)}
    if task.gpus:
        taken[GPUS] = units.exact(1 if task.gpu_share is None else task.gpu_share)
        taken[GPU_MEMORY] = units.exact(0 if task.gpu_memory is None else task.gpu_memory)
    if task.gpus and task.mig_profile:
        taken[GPUS], taken[GPU_MEMORY] = part(task), Fraction(0)
    if task.nics:
        taken[NICS] = Fraction(task.nics)
    for name, quantity in task.extended.items():
        taken[f"extended:{name}"] = units.exact(quantity)
    return taken


def capacity(node: Node) -> dict[str, Fraction | None]:
    """Return what a node has: None is no limit, a resource that is not named is not there."""
    there: dict[str, Fraction | None] = {
        "cpu": None if node.cpu is None else units.exact(node.cpu),
        "memory": None if node.memory is None else units.exact(node.memory),
        "pods": None if node.pods is None else Fraction(node.pods),
    }
    if node.zones:
        there[NICS] = Fraction(sum(len(zone.nics) for zone in node.zones))
    for name, quantity in node.extended.items():
        there[f"extended:{name}"] = units.exact(quantity)
    return there


def by_zone(node: Node) -> dict[str, tuple[Fraction, ...]]:
    """Return what each zone of a node has of the resources that its zones count: CPU and memory where they state it."""
    there = {NICS: tuple(Fraction(len(zone.nics)) for zone in node.zones)}
    for name in ("cpu", "memory"):
        stated = [units.exact(amount) for zone in node.zones if (amount := getattr(zone, name)) is not None]
        if len(stated) == len(node.zones):
            there[name] = tuple(stated)
    return there


def caps(limit: DomainLimit) -> dict[str, Fraction]:
    """Return what a limit allows."""
    named = {GPUS: limit.gpus, "cpu": limit.cpu, "memory": limit.memory}
    allowed = {name: units.exact(quantity) for name, quantity in named.items() if quantity is not None}
    return allowed | {f"extended:{name}": units.exact(quantity) for name, quantity in limit.extended.items()}
