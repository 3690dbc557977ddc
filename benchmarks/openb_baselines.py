"""Greedy rules on the openb trace, beside what the authors of FGD published.

Reads ``instances/openb.json``, or the node and pod lists given. For each seed it draws a workload of 1.3 times the
cluster (see `placement.arrivals`), lets every rule place it, and prints the means over the seeds. Ties go to the first
node of an order drawn from the seed, as in the published experiment.

    python benchmarks/openb_baselines.py --seeds 10
    python benchmarks/openb_baselines.py --nodes NODES.csv.gz --pods PODS.csv.gz --rules fgd,best-fit
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, stdev

from placement.arrivals import Load, draw, measure
from placement.compile import compile as compile_snapshot
from placement.formats import openb
from placement.heuristics import HEURISTICS
from placement.snapshot.read import load
from placement.solver import Limits

TRACE = Path(__file__).parent.parent / "instances" / "openb.json"
FIRST_SEED = 42
LOADS = (90, 95, 100, 110, 120)

PUBLISHED = {
    "random": 13.70,
    "dot-product": 9.38,
    "gpu-clustering": 8.35,
    "gpu-packing": 8.22,
    "best-fit": 7.14,
    "fgd": 4.77,
}
"""Unallocated percent of the cards on the default workload when as many had been asked for as there are, mean of ten
shuffles: Weng et al., "Beware of Fragmentation", ATC'23, from the result tables in their simulator's repository."""


@dataclass(slots=True)
class Runs:
    """What one rule did with every seed."""

    loads: list[dict[int, Load]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def unallocated(self, percent: int) -> list[float]:
        """Return the unallocated percentage of every seed at a load."""
        return [loads[percent].unallocated for loads in self.loads if percent in loads]


def main() -> None:
    """Run the experiment and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10, help="number of shuffles, from seed 42 on")
    parser.add_argument("--rules", default=",".join(HEURISTICS), help="names separated by commas")
    parser.add_argument("--nodes", help="node list in CSV instead of the default trace")
    parser.add_argument("--pods", help="pod list in CSV instead of the default trace")
    options = parser.parse_args()
    if (options.nodes is None) != (options.pods is None):
        parser.error("give both --nodes and --pods, or neither")
    rules = options.rules.split(",")
    unknown = [rule for rule in rules if rule not in HEURISTICS]
    if unknown:
        parser.error(f"unknown rule {unknown[0]}; the rules are {', '.join(HEURISTICS)}")
    trace = openb.read(options.nodes, options.pods) if options.nodes else load(TRACE)
    runs = {rule: Runs() for rule in rules}
    for seed in range(FIRST_SEED, FIRST_SEED + options.seeds):
        instance = compile_snapshot(draw(trace, seed))
        for rule in rules:
            began = time.perf_counter()
            result = HEURISTICS[rule].solve(instance, objectives=(), limits=Limits(), seed=seed)
            runs[rule].seconds.append(time.perf_counter() - began)
            runs[rule].loads.append({m.percent: m for m in measure(instance, result.assignment, LOADS)})
    print(f"{options.seeds} shuffles, unallocated % of the cards by % asked for; published at 100 %")
    heads = ("rule", *(str(percent) for percent in LOADS), "sd", "published", "failed", "fragmented", "seconds")
    print("".join(f"{head:>15}" if i == 0 else f"{head:>11}" for i, head in enumerate(heads)))
    for rule in rules:
        print(row(rule, runs[rule], None if options.nodes else PUBLISHED.get(rule)))


def row(rule: str, runs: Runs, published: float | None) -> str:
    """Return the line of one rule; failed and fragmented are at 100 %."""
    at = runs.unallocated(100)
    cells = [f"{rule:>15}", *(f"{fmean(runs.unallocated(percent) or [0.0]):11.2f}" for percent in LOADS)]
    cells.append(f"{stdev(at) if len(at) > 1 else 0.0:11.2f}")
    cells.append("          -" if published is None else f"{published:11.2f}")
    full = [loads[100] for loads in runs.loads if 100 in loads]
    cells.append(f"{fmean([load.failed for load in full] or [0]):11.0f}")
    cells.append(f"{fmean([load.fragmented for load in full] or [0.0]):11.2f}")
    cells.append(f"{fmean(runs.seconds):11.2f}")
    return "".join(cells)


if __name__ == "__main__":
    main()
