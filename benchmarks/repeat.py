"""The same snapshot, the same command, the same bytes: in two fresh processes, and under other interpreters.

A dozen instances are solved by `python -m placement solve` without a clock, to a gap; the plans are compared byte by
byte. The gap is that of the first objective, so what is large is solved for that one alone. `--python` names another
interpreter that has the package's dependencies, and may be given several times. The exit code is 1 if any plan differs,
or if a command did not end while patience lasted.

    python benchmarks/repeat.py
    python benchmarks/repeat.py --python venv312/bin/python --python venv313/bin/python --output repeat.json
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from mixed import CASES, Case, chosen
from table import Column, Row, heading, line, machine, write

HOME = Path(__file__).resolve().parent.parent
NAMES = (
    "domain-limit,nested-groups,generated-8,generated-16-goals,generated-64-ranked,generated-200-limited,"
    "generated-300-tasks,generated-500-gangs,openb,openb-gpushare100,used-200,vectors-256-ranked"
)
COLUMNS = (
    Column("instance", "case", 21),
    Column("gap", "gap", 6, "g"),
    Column("runs", "runs", 4),
    Column("seconds at most", "seconds", 15, ".1f"),
    Column("solver", "solver", 13),
    Column("stop", "stop", 8),
    Column("bytes", "bytes", 9),
    Column("plans", "plans", 9),
    Column("differing", "differing", 0),
)


@dataclass(frozen=True, slots=True)
class Run:
    """How often the first interpreter solves, with which more options, and the seconds that a command may take."""

    times: int = 2
    more: Sequence[str] = ()
    patience: float = 600.0


def options_of(case: Case) -> list[str]:
    """Return the options by which a case's search ends without a clock."""
    objectives = case.objectives[:1] if case.gap else case.objectives
    return ["--gap", str(case.gap), "--objective", ",".join(objectives)]


def plan_of(python: str, case: Case, snapshot: Path, plan: Path, run: Run) -> tuple[bytes, float]:
    """Solve in a fresh process; return the bytes of the plan, none if it did not end, and the seconds."""
    argv = [python, "-m", "placement", "solve", str(snapshot), "-o", str(plan), *options_of(case), *run.more]
    began = time.perf_counter()
    try:
        done = subprocess.run(
            argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=HOME, check=False, timeout=run.patience
        )
    except subprocess.TimeoutExpired:
        return b"", time.perf_counter() - began
    if done.returncode:
        raise SystemExit(f"{python}, {case.name}: {done.stderr.decode(errors='replace')}")
    return plan.read_bytes(), time.perf_counter() - began


def measure(case: Case, pythons: Sequence[str], run: Run, keep: Path) -> Row:
    """Return one row: which runs of which interpreter gave other bytes than the first run of the first one."""
    snapshot = keep / f"{case.name}.json"
    snapshot.write_bytes(case.data())
    runs: list[tuple[Path, bytes, float]] = []
    for place, python in enumerate(pythons):
        # the first interpreter shows whether two processes agree; of the others one run is enough to see
        for turn in range(run.times if place == 0 else 1):
            path = keep / f"{case.name}.plan-{place}-{turn}.json"
            runs.append((path, *plan_of(python, case, snapshot, path, run)))
            if not runs[-1][1]:
                never = f"{path.name} did not end in {run.patience:g} s"
                return {"case": case.name, "gap": case.gap, "runs": len(runs), "ended": False, "differing": never}
    first = runs[0][1]
    said = json.loads(first)
    return {
        "ended": True,
        "case": case.name,
        "gap": case.gap,
        "options": options_of(case),
        "runs": len(runs),
        "seconds": max(seconds for _, _, seconds in runs),
        "solver": said["provenance"]["solver"],
        "stop": said["stop"],
        "bytes": len(first),
        "plans": len({written for _, written, _ in runs}),
        "sha256": [sha256(written).hexdigest() for _, written, _ in runs],
        "differing": differing(runs),
    }


def differing(runs: Sequence[tuple[Path, bytes, float]]) -> str:
    """Return the plans that are not the first one, or why the comparison says nothing."""
    failed = [note for _, written, _ in runs for note in _failure(json.loads(written))]
    return failed[0] if failed else ",".join(path.name for path, written, _ in runs if written != runs[0][1]) or "none"


def _failure(plan: Row) -> list[str]:
    return [f"failed: {plan['notes']}"] if plan["stop"] == "failed" else []


def main() -> int:
    """Run the benchmark, print a table and write it as JSON; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", default=[], help="another interpreter to compare with")
    parser.add_argument("--times", type=int, default=2, help="runs of this interpreter")
    parser.add_argument("--cases", default=NAMES, help=f"some of {', '.join(CASES)}")
    parser.add_argument("--solver", help="instead of auto")
    parser.add_argument("--patience", type=float, default=600.0, help="seconds after which a command is ended")
    parser.add_argument("--keep", type=Path, help="folder for snapshots and plans, to look into differences")
    parser.add_argument("--output", type=Path, help="file for the rows as JSON")
    options = parser.parse_args()
    about = machine()
    pythons = [sys.executable, *(str(Path(python).absolute()) for python in options.python)]
    run = Run(options.times, ("--solver", options.solver) if options.solver else (), options.patience)
    print(about)
    for place, python in enumerate(pythons):
        print(f"interpreter {place}: {python}")
    print(heading(COLUMNS))
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        keep = options.keep or Path(scratch)
        keep.mkdir(parents=True, exist_ok=True)
        for case in chosen(options.cases):
            rows.append(measure(case, pythons, run, keep))
            print(line(COLUMNS, rows[-1]), flush=True)
    differing = [row for row in rows if row["differing"] != "none"]
    print(f"{len(differing)} of {len(rows)} instances have plans that differ, or did not end")
    write(options.output, machine=about, interpreters=pythons, rows=rows)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
