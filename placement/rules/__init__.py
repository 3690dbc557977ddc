"""The rules by kind; compiling, pricing, disaggregation and heuristics iterate over these registries."""

from __future__ import annotations

from placement.rules.base import CardFilter as CardFilter
from placement.rules.base import Dimensions as Dimensions
from placement.rules.base import NodeFilter as NodeFilter
from placement.rules.card_model import CardModel, ComputeCapability, Exclusive, Health
from placement.rules.labels import NodeSelector
from placement.rules.resources import NodeResources
from placement.rules.software import Software
from placement.rules.taints import Cordon, Taints

NODE_FILTERS: tuple[NodeFilter, ...] = (NodeSelector(), Taints(), Cordon(), Software())
CARD_FILTERS: tuple[CardFilter, ...] = (Health(), CardModel(), ComputeCapability(), Exclusive())
DIMENSIONS: tuple[Dimensions, ...] = (NodeResources(),)
