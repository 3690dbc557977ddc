"""The exact pipeline on the openb traces: the arrivals of a full cluster known together, with a bound of its own.

For each trace and seed it draws the arrivals that ask for as many cards as there are (see `placement.arrivals`), gives
all of them to `placement.solve` at once, and prints what is left unallocated beside the bound, the failed tasks, and
what the best greedy rule and FGD leave on the same arrivals. Every plan is checked before it is measured.

    python benchmarks/openb_exact.py --seeds 3
    python benchmarks/openb_exact.py --traces openb-gpuspec33 --time-limit 120
"""

from __future__ import annotations

import argparse
import json
import platform
from importlib.metadata import version
from pathlib import Path
from statistics import fmean

import placement as pl
from placement.arrivals import cards, draw
from placement.heuristics import HEURISTICS

FIRST_SEED = 42
TRACES = ("openb", "openb-gpuspec33", "openb-gpushare100")
PUBLISHED_FGD = {"openb": 4.77, "openb-gpuspec33": 12.16, "openb-gpushare100": 13.36}
"""Unallocated percent, mean of ten shuffles: Weng et al., "Beware of Fragmentation", ATC'23, from the result tables in
their simulator's repository."""
BUILD = ("build", "handover")


def main() -> None:
    """Run the benchmark, print a table and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", default=",".join(TRACES), help="shipped instances or files, separated by commas")
    parser.add_argument("--seeds", type=int, default=3, help="draws per trace, from seed 42 on; 0: the trace itself")
    parser.add_argument("--load", type=float, default=1.0, help="cards asked for, relative to those there are")
    parser.add_argument("--time-limit", type=float, default=120.0, help="seconds of wall clock per solve")
    parser.add_argument("--output", type=Path, help="file for the rows as JSON")
    options = parser.parse_args()
    rows = []
    print(
        f"{'trace':18} {'seed':>4} {'limit s':>7} {'seconds':>7} {'build %':>7} {'unalloc %':>9} {'bound %':>8}",
        end=" ",
    )
    print(f"{'points':>7} {'failed':>6} {'fgd %':>6} {'failed':>6} {'best greedy':>20}")
    for trace in options.traces.split(","):
        snapshot = pl.load(trace if Path(trace).exists() else pl.instances.path(trace))
        trace = Path(trace).stem
        seeds = range(FIRST_SEED, FIRST_SEED + options.seeds) if options.seeds else [None]
        for seed in seeds:
            drawn = snapshot if seed is None else draw(snapshot, seed, options.load)
            rows.append(measure(trace, seed, drawn, options.time_limit))
            print_row(rows[-1])
    print_means(rows)
    if options.output:
        about = {"highspy": version("highspy"), "pyomo": version("pyomo"), "python": platform.python_version()}
        options.output.write_text(json.dumps({"versions": about, "load": options.load, "rows": rows}, indent=1) + "\n")


def measure(trace: str, seed: int | None, snapshot: pl.Snapshot, limit: float) -> dict[str, object]:
    """Return one row of the table."""
    plan = pl.solve(snapshot, solver="exact", objectives=("value", "tasks"), time_limit=limit)
    if pl.check(snapshot, plan):
        raise SystemExit(f"{trace} {seed}: the check refused the plan")
    total = 1000.0 * cards(snapshot)
    greedy = {rule: pl.solve(snapshot, solver=rule, seed=seed or 0) for rule in HEURISTICS}
    best = min(greedy, key=lambda rule: greedy[rule].usage.unallocated_percent or 0.0)
    unallocated = {rule: round(p.usage.unallocated_percent or 0.0, 3) for rule, p in greedy.items()}
    # all pods have weight 1, so the value is GPU-milli and its bound limits what can be allocated
    value, bound = plan.value or 0.0, plan.bound or total
    return {
        "trace": trace,
        "seed": seed,
        "time_limit": limit,
        "seconds": round(plan.seconds["total"], 1),
        "build_percent": round(100 * sum(plan.seconds.get(k, 0.0) for k in BUILD) / plan.seconds["total"], 1),
        "unallocated": round(100 * (1 - value / total), 3),
        "bound": round(100 * (1 - bound / total), 3),
        "gap": plan.gap,
        "stop": plan.stop,
        "failed": plan.usage.tasks_wanted - plan.usage.tasks_started,
        "greedy": unallocated,
        "greedy_failed": {r: p.usage.tasks_wanted - p.usage.tasks_started for r, p in greedy.items()},
        "best_greedy": best,
    }


def print_row(row: dict[str, object]) -> None:
    """Print one row."""
    greedy, failed, best = row["greedy"], row["greedy_failed"], row["best_greedy"]
    assert isinstance(greedy, dict)
    assert isinstance(failed, dict)
    assert isinstance(row["unallocated"], float)
    assert isinstance(row["bound"], float)
    points = row["unallocated"] - row["bound"]
    print(f"{row['trace']:18} {row['seed'] or '-':>4} {row['time_limit']:7.0f} {row['seconds']:7}", end=" ")
    print(f"{row['build_percent']:7} {row['unallocated']:9.3f} {row['bound']:8.3f} {points:7.3f}", end=" ")
    print(f"{row['failed']:6} {greedy['fgd']:6.2f} {failed['fgd']:6} {best:>13} {greedy[best]:6.2f}", flush=True)


def print_means(rows: list[dict[str, object]]) -> None:
    """Print the mean of each trace."""
    print()
    for trace in dict.fromkeys(str(row["trace"]) for row in rows):
        mine = [row for row in rows if row["trace"] == trace]
        mean = fmean(float(str(row["unallocated"])) for row in mine)
        bound = fmean(float(str(row["bound"])) for row in mine)
        print(
            f"{trace}: mean unallocated {mean:.2f} %, bound {bound:.2f} %, published FGD {PUBLISHED_FGD.get(trace)} %"
        )


if __name__ == "__main__":
    main()
