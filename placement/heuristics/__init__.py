"""Greedy rules, each in a file of its own and named after its source; the same interface as the exact solver."""

from __future__ import annotations

from placement.heuristics.best_fit import BestFit
from placement.heuristics.dot_product import DotProduct
from placement.heuristics.fgd import Fgd
from placement.heuristics.first_fit import FirstFit
from placement.heuristics.gpu_clustering import GpuClustering
from placement.heuristics.gpu_packing import GpuPacking
from placement.heuristics.greedy import Greedy
from placement.heuristics.random_fit import RandomFit
from placement.heuristics.worst_fit import WorstFit
from placement.solver import Solver

HEURISTICS: dict[str, Solver] = {
    rule.name: Greedy(rule)
    for rule in (FirstFit, Fgd, BestFit, GpuPacking, GpuClustering, DotProduct, WorstFit, RandomFit)
}
"""Every greedy rule by name, the quick and good ones first, for callers that cannot try them all."""
