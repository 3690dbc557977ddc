"""The rules by kind; compiling, pricing, disaggregation and heuristics iterate over these registries."""

from __future__ import annotations

from collections.abc import Iterable

from placement.rules.base import CardFilter as CardFilter
from placement.rules.base import Dimensions as Dimensions
from placement.rules.base import NodeFilter as NodeFilter
from placement.rules.base import Tabulated as Tabulated
from placement.rules.card_model import CardModel, ComputeCapability, Exclusive, Health
from placement.rules.isolation import Isolation, MemoryLimit, ReplicaMemory
from placement.rules.labels import NodeSelector
from placement.rules.mig import Mig
from placement.rules.mig_instance import SharedInstance
from placement.rules.resources import NodeResources
from placement.rules.software import Software
from placement.rules.taints import Cordon, Taints
from placement.snapshot import Task

NODE_FILTERS: tuple[NodeFilter, ...] = (NodeSelector(), Taints(), Cordon(), Software())
CARD_FILTERS: tuple[CardFilter, ...] = (
    Health(),
    CardModel(),
    ComputeCapability(),
    Mig(),
    SharedInstance(),
    Exclusive(),
    Isolation(),
    ReplicaMemory(),
    MemoryLimit(),
)
DIMENSIONS: tuple[Dimensions, ...] = (NodeResources(),)


def node_filters(tasks: Iterable[Task]) -> tuple[NodeFilter, ...]:
    """Return the node filters, reading no more of a node than some of the tasks ask about."""
    asked = {item for task in tasks for item in task.node_selector.items()}
    return tuple(NodeSelector(asked) if isinstance(rule, NodeSelector) else rule for rule in NODE_FILTERS)
