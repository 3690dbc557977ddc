"""Greedy rules, each in a file of its own and named after its source; the same interface as the exact solver."""

from __future__ import annotations

from placement.heuristics.best_fit import BestFit
from placement.heuristics.dot_product import DotProduct
from placement.heuristics.dra_first_fit import DraFirstFit
from placement.heuristics.fastest_fit import FastestFit
from placement.heuristics.fgd import Fgd
from placement.heuristics.first_fit import FirstFit
from placement.heuristics.go_gpuallocator import GoGpuallocatorBestEffort
from placement.heuristics.gpu_clustering import GpuClustering
from placement.heuristics.gpu_packing import GpuPacking
from placement.heuristics.greedy import Greedy
from placement.heuristics.hami_contiguous import HamiContiguous
from placement.heuristics.hived_buddy import HivedBuddy
from placement.heuristics.kai_fractions import KaiFractions
from placement.heuristics.kube_least_allocated import KubeLeastAllocated
from placement.heuristics.kube_most_allocated import KubeMostAllocated
from placement.heuristics.kueue_tas_balanced import KueueTasBalanced
from placement.heuristics.kueue_tas_best_fit import KueueTasBestFit
from placement.heuristics.kueue_tas_least_free_capacity import KueueTasLeastFreeCapacity
from placement.heuristics.mig_best_fit import MigBestFit
from placement.heuristics.mig_parted_fixed import MigPartedFixed
from placement.heuristics.miso import Miso
from placement.heuristics.random_fit import RandomFit
from placement.heuristics.slurm_block import SlurmBlock
from placement.heuristics.slurm_tree_best_fit import SlurmTreeBestFit
from placement.heuristics.volcano_hypernode import VolcanoHypernodeBinpack
from placement.heuristics.worst_fit import WorstFit
from placement.heuristics.worth import by_worth
from placement.solver import Solver

BY_NAME: dict[str, Solver] = {
    rule.name: Greedy(rule)
    for rule in (
        KubeMostAllocated,
        KubeLeastAllocated,
        KueueTasBestFit,
        KueueTasLeastFreeCapacity,
        KueueTasBalanced,
        VolcanoHypernodeBinpack,
        SlurmTreeBestFit,
        SlurmBlock,
        HivedBuddy,
        GoGpuallocatorBestEffort,
        DraFirstFit,
        MigPartedFixed,
        HamiContiguous,
        MigBestFit,
        Miso,
        KaiFractions,
    )
}
"""Rules of other schedulers, to compare with: tried when they are named, and by ``"auto"`` only as `TIED` says."""

_TRIED: dict[str, Solver] = {
    rule.name: Greedy(rule)
    for rule in (FirstFit, Fgd, BestFit, GpuPacking, GpuClustering, DotProduct, WorstFit, RandomFit)
}

HEURISTICS: dict[str, Solver] = {**_TRIED, FastestFit.name: Greedy(FastestFit), **BY_NAME}
"""Every greedy rule by name, the quick and good ones first, for callers that cannot try them all. Fastest fit, which is
best fit unless jobs say how long they run, is not tried: where they do, the exact method goes on by it."""

_AIMED = tuple(Greedy(rule, by_worth, "-by-worth") for rule in (FirstFit, Fgd))

PORTFOLIO: dict[str, Solver] = {
    solver.name: solver for solver in (HEURISTICS[FirstFit.name], *_AIMED, *_TRIED.values())
}
"""What ``"auto"`` tries, in order: a quick answer, quick ones that aim at the objectives, and then every rule but those
of other schedulers. Rules are compared on jobs in order of arrival, so those on jobs in another order are none of
`HEURISTICS`."""

TIED: dict[str, Solver] = {name: BY_NAME[name] for name in (VolcanoHypernodeBinpack.name, HivedBuddy.name)}
"""What ``"auto"`` tries besides where jobs say how their tasks may lie: other orders of domains suit other jobs."""
