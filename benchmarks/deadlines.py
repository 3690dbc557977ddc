"""Whether a deadline holds, and whether the answer is then as good as that of any rule which would have made it too.

Twenty mixed instances are solved by `placement.solve(snapshot, time_limit=T)` for several T in one process, whose
solver is warm. The call may take 5 % and 0.1 s more than T. Each greedy rule that by itself ends within T must not be
better, objective by objective in their order. The seconds of a call are split into compiling, the search, how
much of that the exact method had, and naming, checking and explaining the plan.

With `--quick`, 50 pending jobs on 200, 500 and 1,000 nodes in 0.05 s, each in a fresh process that did nothing else:
what the call takes, the first time and at most later, how much of that is processor time (the rest is waiting for other
programs), the gap it proves, and whether Pyomo or SciPy were loaded for it.

    python benchmarks/deadlines.py --output deadlines.json
    python benchmarks/deadlines.py --limits 0.5 --cases used-200,openb
    python benchmarks/deadlines.py --quick
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
from mixed import CASES, Case, chosen
from table import Column, Row, heading, line, machine, number, write

import placement as pl
from placement.generate import generate
from placement.heuristics import HEURISTICS
from placement.plan import Plan
from placement.snapshot import Snapshot
from placement.snapshot.read import dumps

LIMITS = "0.5,2,10"
RELATIVE, ABSOLUTE = 0.05, 0.1
"""How much longer than its limit a call may take."""
QUICK_LIMIT, QUICK_SIZES, QUICK_JOBS = 0.05, "200,500,1000", 50
UNWANTED = ("pyomo", "scipy")
"""Modules that a process which needs none of the exact method's models should not load."""
COLUMNS = (
    Column("instance", "case", 21),
    Column("limit", "limit", 5, "g"),
    Column("seconds", "seconds", 7, ".3f"),
    Column("over", "over", 6, ".3f"),
    Column("allowed", "allowed", 7, ".3f"),
    Column("compile", "compile", 7, ".3f"),
    Column("search", "search", 6, ".3f"),
    Column("exact", "exact", 6, ".3f"),
    Column("check", "check", 6, ".3f"),
    Column("gap %", "gap_percent", 7, ".3f"),
    Column("stop", "stop", 8),
    Column("solver", "solver", 13),
    Column("in time", "in_time", 7),
    Column("better rules", "beaten_by", 0),
)
QUICK_COLUMNS = (
    Column("nodes", "nodes", 6),
    Column("cards free", "free", 10),
    Column("tasks", "tasks", 6),
    Column("started", "started", 7),
    Column("limit", "limit", 5, "g"),
    Column("first", "first_seconds", 6, ".3f"),
    Column("later", "later_seconds", 6, ".3f"),
    Column("of CPU", "processor", 6, ".3f"),
    Column("gap %", "gap_percent", 7, ".3f"),
    Column("solver", "solver", 13),
    Column("loaded", "loaded", 12),
)


def values(plan: Plan) -> list[float]:
    """Return what a plan reaches, phase by phase, turned so that more is better."""
    return [phase.value if phase.sense == "max" else -phase.value for phase in plan.phases]


# --- deadlines -------------------------------------------------------------------------------------------------------


def measure(case: Case, snapshot: Snapshot, limit: float) -> Row:
    """Return one row: the call by the clock, and every greedy rule against it."""
    began, worked = time.perf_counter(), time.process_time()
    plan = pl.solve(snapshot, objectives=case.objectives, time_limit=limit)
    seconds, processor = time.perf_counter() - began, time.process_time() - worked
    mine = values(plan)
    rules, better = {}, []
    for rule in HEURISTICS:
        began = time.perf_counter()
        other = pl.solve(snapshot, objectives=case.objectives, solver=rule, time_limit=limit)
        taken = time.perf_counter() - began
        if other.stop == "complete" and taken <= limit:
            rules[rule] = {"seconds": round(taken, 3), "values": values(other)}
            if values(other) > mine:
                better.append(rule)
    return {
        "case": case.name,
        "limit": limit,
        "seconds": seconds,
        "processor": processor,
        "over": max(0.0, seconds - limit),
        "allowed": RELATIVE * limit + ABSOLUTE,
        **split(plan),
        "gap_percent": None if plan.gap is None else 100 * plan.gap,
        "stop": plan.stop,
        "solver": plan.provenance.solver,
        "values": mine,
        "in_time": f"{len(rules)} of {len(HEURISTICS)}",
        "rules": rules,
        "beaten_by": ",".join(better) or "none",
        "notes": plan.notes,
    }


def split(plan: Plan) -> Row:
    """Return the seconds of a call by step."""
    taken = plan.seconds
    before, after, total = taken["compile"], taken["check"], taken["total"]
    return {"compile": before, "search": total - before - after, "exact": taken.get("exact"), "check": after}


def summary(rows: Sequence[Row]) -> list[str]:
    """Return what is said below the rows: the worst overruns, and how many calls broke a promise."""
    late = [row for row in rows if number(row, "over") > number(row, "allowed")]
    beaten = [row for row in rows if row["beaten_by"] != "none"]
    worst = sorted(rows, key=lambda row: number(row, "allowed") - number(row, "over"))[:5]
    said = ["nearest to what is allowed, or beyond it:", heading(COLUMNS), *(line(COLUMNS, row) for row in worst)]
    for limit in dict.fromkeys(row["limit"] for row in rows):
        most = max(number(row, "over") for row in rows if row["limit"] == limit)
        said.append(f"limit {limit} s: at most {most:.3f} s over it")
    said.append(
        f"{len(late)} of {len(rows)} calls took longer than {100 * RELATIVE:g} % and {ABSOLUTE} s over the limit"
    )
    return [*said, f"{len(beaten)} of {len(rows)} answers were worse than a greedy rule that ended in time"]


def deadlines(cases: Sequence[Case], limits: Sequence[float]) -> list[Row]:
    """Measure every case under every limit, and print the rows."""
    # the first call of a process starts the solver and loads its libraries
    pl.solve(CASES["generated-8"].make(), time_limit=10.0)
    print(heading(COLUMNS))
    rows = []
    for case in cases:
        data = case.data()
        for limit in limits:
            # read again for each: what was worked out from a snapshot stays with it
            rows.append(measure(case, pl.loads(data), limit))
            print(line(COLUMNS, rows[-1]), flush=True)
    print("\n".join(summary(rows)))
    return rows


# --- quick -----------------------------------------------------------------------------------------------------------


def cluster(nodes: int) -> Snapshot:
    """Return a nearly full cluster, with 50 pending jobs that ask for about what is free."""
    drawn = generate(nodes=nodes, load=3.0, gangs=0.1, running=max(0.0, 1 - 150 / (8 * nodes)), seed=nodes)
    running = [job for job in drawn.jobs if job.running is not None]
    pending = [job for job in drawn.jobs if job.running is None]
    return msgspec.structs.replace(drawn, jobs=(*running, *pending[:QUICK_JOBS]))


def quick(nodes: int, limit: float) -> Row:
    """Solve in a process that did nothing else, once and then five times more."""
    made = cluster(nodes)
    data = dumps(made)
    taken: list[float] = []
    processor: list[float] = []
    plans: list[Plan] = []
    for _ in range(6):
        snapshot = pl.loads(data)
        began, worked = time.perf_counter(), time.process_time()
        plans.append(pl.solve(snapshot, time_limit=limit))
        taken.append(time.perf_counter() - began)
        processor.append(time.process_time() - worked)
    loaded = [name for name in UNWANTED if name in sys.modules]
    usage = plans[0].usage
    there = tuple(job for job in made.jobs if job.running is not None)
    idle = pl.solve(msgspec.structs.replace(made, jobs=there), solver="first-fit").usage
    return {
        "nodes": nodes,
        "free": round(idle.gpus - idle.gpus_allocated),
        "tasks": usage.tasks_wanted,
        "started": usage.tasks_started,
        "limit": limit,
        "first_seconds": taken[0],
        "later_seconds": max(taken[1:]),
        "processor": max(processor[1:]),
        "gap_percent": None if plans[0].gap is None else 100 * plans[0].gap,
        "gaps_percent": [None if plan.gap is None else 100 * plan.gap for plan in plans],
        "solver": plans[0].provenance.solver,
        "loaded": ",".join(loaded) or "none",
        "seconds": plans[0].seconds,
    }


def all_quick(sizes: str, limit: float) -> list[Row]:
    """Run every size in a process of its own, and print the rows."""
    print(heading(QUICK_COLUMNS))
    rows: list[Row] = []
    for nodes in sizes.split(","):
        argv = [sys.executable, __file__, "--quick-alone", nodes, str(limit)]
        rows.append(json.loads(subprocess.run(argv, stdout=subprocess.PIPE, check=True).stdout))
        print(line(QUICK_COLUMNS, rows[-1]), flush=True)
    return rows


def main() -> None:
    """Run the benchmark, print a table and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limits", default=LIMITS, help="seconds, separated by commas")
    parser.add_argument("--cases", help=f"some of {', '.join(CASES)}")
    parser.add_argument("--quick", action="store_true", help="small jobs of 0.05 s alone")
    parser.add_argument("--quick-nodes", default=QUICK_SIZES, help="sizes, separated by commas")
    parser.add_argument("--output", type=Path, help="file for the rows as JSON")
    options = parser.parse_args()
    about = machine()
    print(about)
    if options.quick:
        rows = all_quick(options.quick_nodes, QUICK_LIMIT)
    else:
        rows = deadlines(chosen(options.cases), [float(limit) for limit in options.limits.split(",")])
    write(options.output, machine=about, allowed={"relative": RELATIVE, "absolute": ABSOLUTE}, rows=rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--quick-alone"]:
        print(json.dumps(quick(int(sys.argv[2]), float(sys.argv[3]))))
    else:
        main()
