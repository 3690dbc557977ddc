"""Running MIG instances that may move, at a cost: how much more starts then on the cards of the benchmark `mig`.

Its load: five models in equal parts, 30 % of the slots taken by what stayed, and 1.3 times the free slots asked for.
Here all that runs may move, each instance for a tenth of what starting a task like it is worth, and what is maximised
is the worth of what starts less that cost. Solved by the real command in a fresh process, whose seconds are from its
start to its end, file to plan; beside it `placement solve`, which moves nothing, in another. Answers are checked.

    python benchmarks/mig_moves.py --seeds 5 --output mig_moves.json
    python benchmarks/mig_moves.py --cards 200 --gangs --max-moves 20
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import mig
import msgspec
from scale import HERE, Goal, command
from table import Column, Row, heading, line, machine, number, write

import placement as pl
from placement.snapshot import Snapshot
from placement.snapshot.read import dumps

CARDS = 1_000
COST = 0.1
"""Of a move, as a part of what starting a task like it is worth."""
GOAL = Goal(20.0, 0.005)
COLUMNS = (
    Column("cards", "cards", 6),
    Column("seed", "seed", 4),
    Column("running", "running", 7),
    Column("requests", "requests", 8),
    Column("stay", "value_without", 9, ".0f"),
    Column("seconds", "seconds_without", 7, ".2f"),
    Column("worth", "worth", 9, ".0f"),
    Column("cost", "cost", 7, ".0f"),
    Column("moves", "moves", 5),
    Column("less", "reached", 9, ".0f"),
    Column("bound", "bound", 9, ".0f"),
    Column("gap %", "gap_percent", 7, ".4f"),
    Column("seconds", "seconds", 7, ".2f"),
    Column("more %", "more_percent", 6, ".2f"),
)


def load(cards: int, seed: int, gangs: bool) -> Snapshot:
    """Return the load of the benchmark `mig` in which all that runs may move."""
    made, _ = mig.load(cards, seed, gangs)
    jobs = tuple(msgspec.structs.replace(job, preemptible=job.running is not None) for job in made.jobs)
    return msgspec.structs.replace(made, jobs=jobs)


class Answer(msgspec.Struct):
    """What the command prints, as far as it is looked at."""

    moves: list[msgspec.Raw]
    worth: float
    cost: float
    bound: float | None
    gap: float | None


def measure(cards: int, seed: int, gangs: bool, most: int | None) -> Row:
    """Return one row of the table."""
    made = load(cards, seed, gangs)
    pending = [job for job in made.jobs if job.running is None]
    row: Row = {
        "cards": cards,
        "seed": seed,
        "gangs": gangs,
        "running": len(made.jobs) - len(pending),
        "requests": sum(group.count for job in pending for group in job.groups),
        "max_moves": most,
    }
    with tempfile.TemporaryDirectory() as scratch:
        path, plan, after = (Path(scratch) / f"{name}.json" for name in ("load", "plan", "after"))
        # `placement solve` honours no leave to move: what it gets says nothing of it
        path.write_bytes(dumps(mig.load(cards, seed, gangs)[0]))
        stay = command(path, plan, Goal(GOAL.seconds, mig.GAP), GOAL.seconds)
        path.write_bytes(dumps(made))
        row |= {"value_without": stay["value"], "bound_without": stay["bound"], "seconds_without": stay["seconds"]}
        row |= consolidated(path, plan, after, most)
        row["valid"] = not pl.check(pl.load(after), pl.load_plan(plan))
    if not row["valid"]:
        raise SystemExit(f"{cards} cards, seed {seed}: the check refused the plan")
    row["more_percent"] = 100 * (number(row, "reached") / number(row, "value_without") - 1)
    row["met"] = number(row, "seconds") <= GOAL.seconds and within_gap(row)
    return row


def consolidated(path: Path, plan: Path, after: Path, most: int | None) -> Row:
    """Run the command and return what it took and what it found."""
    argv = [sys.executable, "-m", "placement", "consolidate", str(path), "-o", str(plan), "--after", str(after)]
    argv += ["--move-cost", str(COST), "--gap", str(GOAL.gap), "--time-limit", str(GOAL.seconds), "--format", "json"]
    argv += [] if most is None else ["--max-moves", str(most)]
    began = time.perf_counter()
    done = subprocess.run(argv, stdout=subprocess.PIPE, check=True, cwd=HERE.parent)
    seconds = time.perf_counter() - began
    found = msgspec.json.decode(done.stdout, type=Answer)
    return {
        "seconds": round(seconds, 3),
        "worth": found.worth,
        "cost": found.cost,
        "reached": found.worth - found.cost,
        "moves": len(found.moves),
        "bound": found.bound,
        "gap_percent": None if found.gap is None else 100 * found.gap,
    }


def within_gap(row: Row) -> bool:
    """Return whether the proven gap is the one asked for."""
    return row["gap_percent"] is not None and number(row, "gap_percent") <= 100 * GOAL.gap


def report(rows: Sequence[Row]) -> list[str]:
    """Return what is said below the rows: the worst beside the targets, and what moving brings."""
    gap = "none" if any(row["gap_percent"] is None for row in rows) else f"{worst(rows, 'gap_percent'):.4f} %"
    least = min(number(row, "more_percent") for row in rows)
    return [
        f"worst: {worst(rows, 'seconds'):.2f} s from file to plan (target {GOAL.seconds:g}), gap {gap} (target "
        f"{100 * GOAL.gap:g} %); met by {sum(bool(row['met']) for row in rows)} of {len(rows)}",
        f"worth less cost is {least:.2f} to {worst(rows, 'more_percent'):.2f} % above what starts without moves",
        "other work on the machine lengthens the seconds",
    ]


def worst(rows: Sequence[Row], key: str) -> float:
    """Return the largest number of a column."""
    return max(number(row, key) for row in rows)


def main() -> None:
    """Run the benchmark, print a table and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cards", type=int, default=CARDS)
    parser.add_argument("--seeds", type=int, default=5, help="how many, from 0 on")
    parser.add_argument("--gangs", action="store_true", help="one job in ten is a gang of 2 to 8 instances")
    parser.add_argument("--max-moves", type=int, help="most tasks to move")
    parser.add_argument("--snapshot", type=Path, help="write the load of seed 0 there, and stop")
    parser.add_argument("--output", type=Path, help="file for the rows as JSON")
    options = parser.parse_args()
    if options.snapshot is not None:
        options.snapshot.write_bytes(dumps(load(options.cards, 0, options.gangs)))
        return
    about = machine()
    print(about)
    print(heading(COLUMNS))
    rows: list[Row] = []
    for seed in range(options.seeds):
        rows.append(measure(options.cards, seed, options.gangs, options.max_moves))
        print(line(COLUMNS, rows[-1]), flush=True)
    print("\n".join(report(rows)))
    limits = {"seconds": GOAL.seconds, "gap": GOAL.gap, "move_cost": COST}
    write(options.output, machine=about, limits=limits, gangs=options.gangs, rows=rows)


if __name__ == "__main__":
    main()
