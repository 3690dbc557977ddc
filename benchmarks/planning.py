"""One call on one snapshot of gangs, alone in a process: `placement.schedule`, a greedy rule, or CP-SAT.

`benchmarks/completion.py` runs it:

    python benchmarks/planning.py WHO SNAPSHOT SECONDS
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from peers import cpsat_time
from peers.common import NotInstalled, Unsupported
from table import Row

import placement as pl

OURS = "auto"
START = "smith-area"
"""The rule whose schedule CP-SAT is given to start from; making it is not on CP-SAT's clock."""
PEERS = ("cp-sat", "cp-sat, started")
ONE_EACH = ("cp-sat, one model each", "cp-sat, one model each, started")
"""CP-SAT where every gang is kept to cards of one model, which proves nothing; only of use where there are several."""

WORKERS = 2
"""Of CP-SAT: as many as our search has processes."""


def ours(snapshot: pl.Snapshot, limit: float) -> Row:
    """Call `placement.schedule` and return what it found, and the course of value and bound."""
    course: list[list[object]] = []
    began = time.perf_counter()

    def report(value: float | None, bound: float | None, phase: str) -> None:
        # branching tells of each node, and most change nothing
        if not course or [value, bound] != course[-1][1:3]:
            course.append([round(time.perf_counter() - began, 3), value, bound, phase])

    found = pl.schedule(snapshot, time_limit=limit, report=report)
    seconds = time.perf_counter() - began
    course.append([round(seconds, 3), found.value, found.bound, "end"])
    return {
        "seconds": round(seconds, 3),
        "value": found.value,
        "bound": found.bound,
        "gap_percent": percent(found.value, found.bound),
        "status": found.status,
        "stop": found.stop,
        "left_out": len(found.left_out),
        "solver": found.provenance.solver,
        "activities": {name: round(taken, 3) for name, taken in found.seconds.items()},
        "course": course,
    }


def greedy(snapshot: pl.Snapshot, rule: str) -> Row:
    """Return the value of a rule, and the seconds of its whole call."""
    began = time.perf_counter()
    found = pl.schedule(snapshot, solver=rule)
    return {"value": found.value, "seconds": round(time.perf_counter() - began, 3), "left_out": len(found.left_out)}


def peer(snapshot: pl.Snapshot, limit: float, started: bool, one_each: bool = False) -> Row:
    """Return what CP-SAT found, or why there is nothing."""
    hint = None
    if started:
        jobs = pl.schedule(snapshot, solver=START).jobs
        hint = list(zip(jobs.start, jobs.end, strict=True))
    try:
        found = cpsat_time.run(snapshot, limit, 0, WORKERS, started=hint, one_each=one_each)
    except (NotInstalled, Unsupported) as why:
        return {"note": str(why)}
    return {
        "seconds": round(found.seconds, 3),
        "value": found.value,
        "bound": found.bound,
        "gap_percent": percent(found.value, found.bound),
        "placed": found.placed,
        "values": found.values,
        "bounds": found.bounds,
        **found.about,
    }


def percent(value: float | None, bound: float | None) -> float | None:
    """Return a gap in percent of the value; None where there is no value or no bound."""
    if value is None or bound is None:
        return None
    return 100 * (value - bound) / value if value else 0.0


def inside(who: str, path: Path, limit: float) -> Row:
    """Make one call on the snapshot of a file."""
    snapshot = pl.load(path)
    if who in (*PEERS, *ONE_EACH):
        return peer(snapshot, limit, who in (PEERS[1], ONE_EACH[1]), who in ONE_EACH)
    return ours(snapshot, limit) if who == OURS else greedy(snapshot, who)


def apart(who: str, path: Path, limit: float, most: float | None = None) -> Row | None:
    """Return what `inside` finds in a process of its own; None if that takes longer than `most` seconds."""
    argv = [sys.executable, __file__, who, str(path), str(limit)]
    try:
        done = subprocess.run(argv, stdout=subprocess.PIPE, timeout=most)
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        raise SystemExit(f"{' '.join(argv)}: exit status {done.returncode}")
    found: Row = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    who, file, seconds_left = sys.argv[1:]
    print(json.dumps(inside(who, Path(file), float(seconds_left))))
