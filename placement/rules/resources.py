"""Node resources: CPU, memory, pod slots, NICs and extended resources add up within each node."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import ClassVar

from placement import units
from placement.snapshot import Node, Task

ONE_POD = Fraction(1)


class NodeResources:
    """CPU in cores, memory in bytes, one pod slot a task, whole NICs, extended resources in their own unit."""

    name: ClassVar[str] = "capacity"

    def demand(self, task: Task) -> Mapping[str, Fraction]:
        """Return what one task uses."""
        amounts = {"cpu": units.exact(task.cpu), "memory": units.exact(task.memory), "pods": ONE_POD}
        if task.nics:
            amounts["nics"] = Fraction(task.nics)
        for resource, quantity in task.extended.items():
            amounts[extended(resource)] = units.exact(quantity)
        return amounts

    def capacity(self, node: Node) -> Mapping[str, Fraction | None]:
        """Return what one node provides."""
        amounts: dict[str, Fraction | None] = {
            "cpu": None if node.cpu is None else units.exact(node.cpu),
            "memory": None if node.memory is None else units.exact(node.memory),
            "pods": None if node.pods is None else Fraction(node.pods),
            "nics": Fraction(sum(len(zone.nics) for zone in node.zones)),
        }
        for resource, quantity in node.extended.items():
            amounts[extended(resource)] = units.exact(quantity)
        return amounts


def extended(resource: str) -> str:
    """Return the dimension of an extended resource, which cannot collide with a built-in one."""
    return f"extended:{resource}"
