"""The engine, CP-SAT and Rebalancer on the same instances in the same run.

For each size it takes `load.load(nodes, seed)` and lets every contender maximise the value of what is placed. A plan's
value counts once `placement.check` has accepted the plan, for our engine as for the peers; building models and
compiling the snapshot are on everybody's clock, importing libraries is on nobody's. The table shows

- to V: seconds until the contender had V, the value that our engine had when it first proved a gap of 1 % (its last
  value where it never did);
- to 1 %: seconds until the contender had proved a gap of 1 % for a value of its own;
- common: seconds until it had the larger value that both it and our engine reached;

each with the ratio to our engine's time; above 1, ours was faster. `>` says that the limit came first. The rows
"master" are no plans: they compare two solvers on the same MIP (see `cpsat_classes`), and HiGHS is their reference.

    python -m benchmarks.peers --sizes 64,256,1024 --time-limit 60 --output benchmarks/results/peers.json
    python -m benchmarks.peers --sizes 16 --time-limit 10 --contenders cp-sat
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from load import load

from . import cpsat_classes, cpsat_nodes, ours, rebalancer
from .common import Case, Course, NotInstalled, Unsupported
from .report import HEAD, Row, line, missing, row

SETTLE = 3.0
"""Seconds between contenders: what one leaves behind, such as a solver process being replaced, is over by then."""
WARM_NODES, WARM_SECONDS = 4, 5.0
"""Size and limit of the unmeasured run before the first, in which libraries are imported."""

Run = Callable[[], Course]


def contenders(case: Case, limit: float, seed: int, workers: int, value: float) -> dict[str, tuple[str | None, Run]]:
    """Return the peers by name, each with the contender it is compared with: None for our engine.

    Parameters
    ----------
    case : Case
    limit, seed, workers
        For all alike.
    value : float
        That of our engine's plan, of which the gaps asked of Rebalancer's MIP are shares.
    """
    # the same arrays for both solvers, made when the first asks
    master = functools.cache(lambda: cpsat_classes.master_of(case.compile(), seed, limit))
    return {
        "cp-sat nodes": (None, lambda: cpsat_nodes.run(case, limit, seed, workers)),
        "cp-sat nodes, started": (None, lambda: cpsat_nodes.run(case, limit, seed, workers, started=True)),
        "master: highs": ("master: highs", lambda: cpsat_classes.run_highs(master(), limit, seed)),
        "master: cp-sat": ("master: highs", lambda: cpsat_classes.run_cpsat(master(), limit, seed, workers)),
        "rebalancer local": (None, lambda: rebalancer.run(case, limit, seed)),
        "rebalancer local, started": (None, lambda: rebalancer.run(case, limit, seed, started=True)),
        "rebalancer mip": (None, lambda: rebalancer.run(case, limit, seed, value)),
    }


def measure(case: Case, limit: float, seed: int, workers: int, chosen: str) -> list[Row]:
    """Run all contenders on a case, print their rows and return them."""
    rows: list[Row] = []

    def add(found: Row) -> None:
        rows.append(found)
        print(line(found), flush=True)

    reference = ours.run(case, limit, seed)
    add(row(case.nodes, "placement", reference, reference, limit))
    done: dict[str | None, Course] = {None: reference}
    for name, (against, run) in contenders(case, limit, seed, workers, reference.value or 0.0).items():
        if chosen not in name:
            continue
        time.sleep(SETTLE)
        try:
            done[name] = run()
        except (NotInstalled, Unsupported) as why:
            add(missing(case.nodes, name, str(why)))
            continue
        if against in done:
            add(row(case.nodes, name, done[name], done[against], limit))
    return rows


def warm(seed: int, workers: int) -> None:
    """Import what is imported on first use, in this process and in the engine's solver process."""
    case = Case(WARM_NODES, seed, load(WARM_NODES, seed).snapshot)
    ours.run(case, WARM_SECONDS, seed)
    try:
        cpsat_nodes.run(case, WARM_SECONDS, seed, workers)
    except NotInstalled as why:
        print(f"cp-sat: {why}", file=sys.stderr)


def main() -> None:
    """Run the benchmark, print a table and write it as JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--sizes", default="64,256,1024", help="nodes of each instance, separated by commas")
    parser.add_argument("--seed", type=int, default=0, help="of the instances and of every contender")
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds of wall clock per contender and size")
    parser.add_argument("--workers", type=int, default=1, help="CP-SAT's workers")
    parser.add_argument("--contenders", default="", help="only those whose name contains this; placement always runs")
    parser.add_argument("--output", type=Path, help="file for the rows as JSON")
    options = parser.parse_args()
    warm(options.seed, options.workers)
    before = os.getloadavg()[0]
    print(HEAD)
    rows: list[Row] = []
    about: list[str | None] = []
    for nodes in map(int, options.sizes.split(",")):
        case = Case(nodes, options.seed, load(nodes, options.seed).snapshot)
        about.append(case.snapshot.description)
        rows += measure(case, options.time_limit, options.seed, options.workers, options.contenders)
    for name, note in {str(found["contender"]): found.get("note") for found in rows}.items():
        print(f"{name}: {note}")
    if options.output:
        machine = {
            "python": platform.python_version(),
            "machine": platform.machine(),
            "cores": os.cpu_count(),
            "load_average_before": round(before, 2),
        }
        ran = {"seed": options.seed, "time_limit": options.time_limit, "workers": options.workers}
        options.output.parent.mkdir(parents=True, exist_ok=True)
        written = {"machine": machine, "instances": about, **ran, "rows": rows}
        options.output.write_text(json.dumps(written, indent=1) + "\n")


if __name__ == "__main__":
    main()
