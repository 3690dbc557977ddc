"""From a file to named devices: what the real command takes on a used cluster of 1,000, 10,000 and 100,000 nodes.

The loads are those of `benchmarks/load.py`, made once and kept in a folder. Each is solved by
`python -m placement solve LOAD -o PLAN --objective value --gap G --time-limit T` in a fresh process, and measured from
its start to its end, with the memory of the command and its solver process together. `--time-limit` counts from the
start of solving, so it is given the seconds of the whole less 0.6 s and 0.06 ms for each node, which is what starting,
reading, writing and printing take. A second run in another process reads what is not in the plan: the share of its time
that goes into building models and handing them over. The greedy rules follow, each alone and outside the clock.

    python benchmarks/scale.py --output scale.json
    python benchmarks/scale.py --nodes 1000,10000,100000 --seeds 5,5,2
    python benchmarks/scale.py --nodes 100000 --rules fgd,best-fit,kube-most-allocated
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

from load import load
from memory import Watch
from table import Column, Row, heading, line, machine, number, write

import placement as pl
from placement.heuristics import HEURISTICS
from placement.snapshot.read import dumps

HERE = Path(__file__).resolve().parent
OUTSIDE, OUTSIDE_EACH = 0.6, 6e-5
"""Seconds that the command takes before and after solving, and for each node."""
LEADERS = ("fgd", "first-fit", "gpu-packing", "hived-buddy", "kai-fractions")
"""The best greedy rules on 1,000 and 10,000 nodes, one of those that are equal, for sizes where all take long."""
BEHIND, BUILD = 3.0, 15.0
"""Percent by which the best greedy rule has to be behind, and of the time that models may take to build, at most."""
COLUMNS = (
    Column("nodes", "nodes", 6),
    Column("seed", "seed", 4),
    Column("states", "states", 6),
    Column("tasks", "tasks", 6),
    Column("asked", "asked", 9),
    Column("limit", "time_limit", 6, ".2f"),
    Column("seconds", "seconds", 7, ".2f"),
    Column("MiB", "mebibytes", 6, ".0f"),
    Column("value", "value", 11, ".0f"),
    Column("bound", "bound", 11, ".0f"),
    Column("gap %", "gap_percent", 7, ".3f"),
    Column("stop", "stop", 8),
    Column("build %", "build_percent", 7, ".1f"),
    Column("best greedy", "best_greedy", 14),
    Column("behind %", "behind_percent", 8, ".2f"),
    Column("missed", "missed", 8),
)


@dataclass(frozen=True, slots=True)
class Goal:
    """What is asked of a size: seconds of the whole, and the proven gap."""

    seconds: float
    gap: float

    def limit(self, nodes: int) -> float:
        """Return what `--time-limit` is given; never less than a quarter."""
        return round(max(self.seconds / 4, self.seconds - OUTSIDE - OUTSIDE_EACH * nodes), 2)


GOALS = {1_000: Goal(3.0, 0.005), 10_000: Goal(20.0, 0.005), 100_000: Goal(60.0, 0.01)}
"""By size; another size has the goal of the next larger one, or of the largest."""


def goal_of(nodes: int) -> Goal:
    """Return the goal of a size."""
    return GOALS[min((size for size in GOALS if size >= nodes), default=max(GOALS))]


# --- one load --------------------------------------------------------------------------------------------------------


def made(folder: Path, nodes: int, seed: int) -> tuple[Path, Row]:
    """Return the file of a load and its figures; made now unless the folder has it from the same program."""
    program = hashlib.sha256((HERE / "load.py").read_bytes()).hexdigest()[:8]
    path = folder / f"load-{nodes}-{seed}-{program}.json"
    about = path.with_suffix(".about.json")
    if not about.exists():
        drawn = load(nodes, seed)
        pending = [job for job in drawn.snapshot.jobs if job.running is None]
        tasks = sum(group.count for job in pending for group in job.groups)
        path.write_bytes(dumps(drawn.snapshot))
        about.write_text(json.dumps({"states": drawn.states, "tasks": tasks, "demand": drawn.demand}))
    found: Row = json.loads(about.read_text())
    return path, found


def command(path: Path, plan: Path, goal: Goal, limit: float) -> Row:
    """Run the command and return what it took and what it found."""
    argv = [sys.executable, "-m", "placement", "solve", str(path), "-o", str(plan), "--objective", "value"]
    argv += ["--gap", str(goal.gap), "--time-limit", str(limit)]
    began = time.perf_counter()
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=HERE.parent) as process:
        with Watch(process.pid) as watch:
            _, said = process.communicate()
        seconds = time.perf_counter() - began
    if process.returncode:
        raise SystemExit(f"{' '.join(argv)}: {said.decode(errors='replace')}")
    found = pl.load_plan(plan)
    return {
        "time_limit": limit,
        "seconds": round(seconds, 3),
        "mebibytes": watch.mebibytes,
        "value": found.value,
        "bound": found.bound,
        "gap_percent": None if found.gap is None else 100 * found.gap,
        "stop": found.stop,
        "solver": found.provenance.solver,
    }


def inside(path: Path, plan: Path, gap: float, limit: float, rules: Sequence[str]) -> Row:
    """Check a plan, solve once more for what no plan says, and try greedy rules; in a process of its own."""
    began = time.perf_counter()
    snapshot = pl.load(path)
    again = pl.solve(snapshot, objectives=("value",), gap=gap, time_limit=limit)
    seconds = time.perf_counter() - began
    # a process that was killed at the deadline has not said what it did
    known = again.seconds.get("build"), again.seconds.get("handover")
    violations = pl.check(snapshot, pl.load_plan(plan))
    values, cut = {}, []
    for rule in rules:
        other = pl.solve(snapshot, objectives=("value",), solver=rule, time_limit=limit)
        values[rule] = other.value
        if other.stop != "complete":
            cut.append(rule)
    return {
        "valid": not violations,
        "build_percent": None if None in known else 100 * sum(part or 0.0 for part in known) / seconds,
        "activities": {name: round(taken, 3) for name, taken in again.seconds.items()},
        "greedy": values,
        "greedy_cut_short": cut,
    }


def measure(folder: Path, nodes: int, seed: int, goal: Goal, rules: Sequence[str]) -> Row:
    """Return one row of the table."""
    path, about = made(folder, nodes, seed)
    limit = goal.limit(nodes)
    with tempfile.TemporaryDirectory() as scratch:
        plan = Path(scratch) / "plan.json"
        row: Row = {"nodes": nodes, "seed": seed, **about, **command(path, plan, goal, limit)}
        argv = [sys.executable, __file__, "--inside", str(path), str(plan), str(goal.gap), str(limit), ",".join(rules)]
        row |= json.loads(subprocess.run(argv, stdout=subprocess.PIPE, check=True).stdout)
    if not row["valid"]:
        raise SystemExit(f"{nodes} nodes, seed {seed}: the check refused the plan")
    demand, greedy = row["demand"], row["greedy"]
    assert isinstance(demand, dict)
    assert isinstance(greedy, dict)
    row["asked"] = f"{min(demand.values()):.2f}-{max(demand.values()):.2f}" if demand else None
    if greedy:
        best = max(greedy, key=lambda rule: greedy[rule])
        row |= {"best_greedy": best, "behind_percent": 100 * (1 - greedy[best] / number(row, "value"))}
    row["targets"] = targets(row, goal)
    row["missed"] = ",".join(name for name, met in targets(row, goal).items() if met is False) or "none"
    return row


def targets(row: Row, goal: Goal) -> dict[str, bool | None]:
    """Return which targets a row meets; None for what was not measured."""
    gap = row["gap_percent"]
    return {
        "time": number(row, "seconds") <= goal.seconds,
        "gap": gap is not None and number(row, "gap_percent") <= 100 * goal.gap,
        "build": None if row["build_percent"] is None else number(row, "build_percent") <= BUILD,
        "greedy": number(row, "behind_percent") >= BEHIND if "behind_percent" in row else None,
    }


# --- the table -------------------------------------------------------------------------------------------------------


def worst(rows: Sequence[Row]) -> Row:
    """Return the worst of every column, of the rows of one size."""
    keys = ("seconds", "mebibytes", "build_percent", "gap_percent", "behind_percent")
    known = {key: [number(row, key) for row in rows if row.get(key) is not None] for key in keys}
    missed = {name for row in rows for name in str(row["missed"]).split(",")} - {"none"}
    return {
        "nodes": rows[0]["nodes"],
        "seed": "all",
        "states": min(int(number(row, "states")) for row in rows),
        "tasks": min(int(number(row, "tasks")) for row in rows),
        **{key: max(found, default=None) for key, found in known.items()},
        # a plan without a bound has the worst gap of all
        "gap_percent": max(known["gap_percent"]) if len(known["gap_percent"]) == len(rows) else None,
        "behind_percent": min(known["behind_percent"], default=None),
        "missed": ",".join(sorted(missed)) or "none",
    }


def report(rows: Sequence[Row], goals: dict[int, Goal]) -> list[str]:
    """Return what is said below the rows: the worst of each size, each target, and how time grows."""
    said = ["worst of each size:", heading(COLUMNS)]
    sizes = {nodes: [row for row in rows if row["nodes"] == nodes] for nodes in goals}
    said += [line(COLUMNS, worst(mine)) for mine in sizes.values()]
    for nodes, goal in goals.items():
        limits = {
            "time": f"at most {goal.seconds:g} s",
            "gap": f"at most {100 * goal.gap:g} %",
            "build": f"at most {BUILD:g} % of the time",
            "greedy": f"at least {BEHIND:g} % behind",
        }
        for name, limit in limits.items():
            found = [row["targets"][name] for row in sizes[nodes] if isinstance(row["targets"], dict)]
            known = [met for met in found if met is not None]
            verdict = "not measured" if not known else "met" if all(known) else f"MISSED by {known.count(False)}"
            said.append(f"{nodes:>7} nodes, {name:6} {limit:25} {verdict} of {len(known)}")
    times = {nodes: median(number(row, "seconds") for row in mine) for nodes, mine in sizes.items()}
    ordered = sorted(times)
    for small, large in pairwise(ordered):
        growth = f"{times[large] / times[small]:.1f} times the seconds (medians {times[small]:.2f}, {times[large]:.2f})"
        said.append(f"{small} to {large} nodes, {large / small:g} times the nodes: {growth}")
    return said


def main() -> None:
    """Run the benchmark, print a table and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", default=",".join(map(str, GOALS)), help="sizes, separated by commas")
    parser.add_argument("--seeds", default="5", help="how many, from 0 on; or one number for each size")
    parser.add_argument("--seconds", type=float, help="of the whole, instead of the target of each size")
    parser.add_argument("--gap", type=float, help="instead of the target of each size")
    parser.add_argument("--rules-up-to", type=int, default=10_000, help="nodes up to which every greedy rule is tried")
    parser.add_argument("--rules", default=",".join(LEADERS), help="those for larger sizes; empty for none")
    parser.add_argument("--loads", type=Path, default=Path(tempfile.gettempdir()) / "placement-loads", help="folder")
    parser.add_argument("--output", type=Path, help="file for the rows as JSON")
    options = parser.parse_args()
    sizes = [int(nodes) for nodes in options.nodes.split(",")]
    seeds = [int(count) for count in options.seeds.split(",")]
    if len(seeds) not in (1, len(sizes)):
        parser.error("--seeds: give one number, or one for each size")
    few = [rule for rule in options.rules.split(",") if rule]
    if unknown := sorted(set(few) - set(HEURISTICS)):
        parser.error(f"--rules: no greedy rule is named {unknown[0]}; known are {', '.join(HEURISTICS)}")
    goals = {}
    for nodes in sizes:
        goal = goal_of(nodes)
        goals[nodes] = Goal(options.seconds or goal.seconds, goal.gap if options.gap is None else options.gap)
    options.loads.mkdir(parents=True, exist_ok=True)
    about = machine()
    print(about)
    print(heading(COLUMNS))
    rows = []
    for nodes, count in zip(sizes, seeds * (len(sizes) if len(seeds) == 1 else 1), strict=True):
        for seed in range(count):
            rules = list(HEURISTICS) if nodes <= options.rules_up_to else few
            rows.append(measure(options.loads, nodes, seed, goals[nodes], rules))
            print(line(COLUMNS, rows[-1]), flush=True)
    print("\n".join(report(rows, goals)))
    limits = {nodes: {"seconds": goal.seconds, "gap": goal.gap} for nodes, goal in goals.items()}
    write(options.output, machine=about, limits=limits, outside=[OUTSIDE, OUTSIDE_EACH], rows=rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        file, plan_file, wanted, seconds_left, with_rules = sys.argv[2:]
        chosen = [rule for rule in with_rules.split(",") if rule]
        print(json.dumps(inside(Path(file), Path(plan_file), float(wanted), float(seconds_left), chosen)))
    else:
        main()
