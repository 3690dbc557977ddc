"""Plans that keep quotas and shares of queues, on the used cluster of 1,000 nodes of `benchmarks/load.py`.

Ten queues of unlike size below one share all cards of eight models: each has quotas that come to what the cluster has.
The cases leave queues out (`none`), let queues lend what they do not use without limit (`quotas`), let each lend half
of its quota at most and borrow a quarter (`lending`), and divide cards by what queues ask for (`fair_share`,
`dominant_share`). Jobs that wait and run are in queues by lot, in larger ones more of them, so that some ask for more
than their part and others for less. Every plan is judged by the check.

    python benchmarks/queues.py --output queues.json
    python benchmarks/queues.py --nodes 100 --seeds 1 --cases quotas,lending
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

import msgspec
from load import load
from table import Column, Row, heading, line, machine, number, write

import placement as pl
from placement.snapshot import Queue, Snapshot
from placement.units import Quantity

CASES = ("none", "quotas", "lending", "fair_share", "dominant_share")
RULES = ("fgd", "first-fit", "gpu-packing")
"""Greedy rules that led without queues; see `scale.LEADERS`."""
SIZES = (20, 16, 14, 12, 10, 8, 7, 6, 4, 3)
"""Percent of all cards that each queue has."""
DRAWN = (10, 10, 10, 10, 10, 10, 10, 10, 10, 10)
"""Percent of the jobs that it has: as many in small queues as in large ones."""
BORROWS, LENDS = 0.25, 0.5
"""Parts of its quota that a queue borrows and lends at most, where there are limits."""
COLUMNS = (
    Column("case", "case", 14),
    Column("seed", "seed", 4),
    Column("jobs", "jobs", 6),
    Column("seconds", "seconds", 7, ".2f"),
    Column("check s", "check_seconds", 7, ".2f"),
    Column("value", "value", 9, ".0f"),
    Column("bound", "bound", 9, ".0f"),
    Column("gap %", "gap_percent", 7, ".3f"),
    Column("stop", "stop", 8),
    Column("by quota", "by_quota", 8),
    Column("best greedy", "best_greedy", 11),
    Column("behind %", "behind_percent", 8, ".2f"),
)


def with_queues(snapshot: Snapshot, case: str, seed: int) -> Snapshot:
    """Return a snapshot whose jobs are in ten queues that a case is about."""
    rng = Random(seed)
    cards: Counter[str] = Counter(gpu.model for node in snapshot.nodes for gpu in node.gpus for _ in range(gpu.count))
    names = [f"team-{number}" for number in range(len(SIZES))]
    queues = [Queue(name="all")]
    for name, size in zip(names, SIZES, strict=True):
        quota = {model: count * size // 100 for model, count in sorted(cards.items())}
        one = Queue(name=name, parent="all", quota={**quota})
        if case == "lending":
            borrows: dict[str, Quantity] = {model: int(count * BORROWS) for model, count in quota.items()}
            lends: dict[str, Quantity] = {model: int(count * LENDS) for model, count in quota.items()}
            one = msgspec.structs.replace(one, borrowing_limit=borrows, lending_limit=lends)
        queues.append(one)
    jobs = [msgspec.structs.replace(job, queue=rng.choices(names, DRAWN)[0]) for job in snapshot.jobs]
    shares = "quota" if case in ("none", "quotas", "lending") else case
    policy = msgspec.structs.replace(snapshot.policy, shares=shares)
    return msgspec.structs.replace(snapshot, queues=tuple(queues), jobs=tuple(jobs), policy=policy)


def measure(snapshot: Snapshot, case: str, limit: float, rules: Sequence[str]) -> Row:
    """Solve for value, check, and try greedy rules."""
    without = ("queues",) if case == "none" else ()
    began = time.perf_counter()
    plan = pl.solve(snapshot, objectives=("value",), time_limit=limit, without=without)
    ended = time.perf_counter()
    violations = pl.check(snapshot, plan)
    checked = time.perf_counter()
    if violations:
        raise SystemExit(f"{case}: the check refused the plan ({violations[0]})")
    greedy = {}
    for rule in rules:
        other = pl.solve(snapshot, objectives=("value",), solver=rule, time_limit=limit, without=without)
        greedy[rule] = other.value if other.stop == "complete" else None
    row: Row = {
        "jobs": sum(job.count for job in snapshot.jobs if job.running is None),
        "time_limit": limit,
        "seconds": round(ended - began, 3),
        "check_seconds": round(checked - ended, 3),
        "value": plan.value,
        "bound": plan.bound,
        "gap_percent": None if plan.gap is None else 100 * plan.gap,
        "stop": plan.stop,
        "solver": plan.provenance.solver,
        "by_quota": sum("of queue" in one.detail for one in plan.pending),
        "greedy": greedy,
    }
    done = {rule: value for rule, value in greedy.items() if value is not None}
    if done:
        best = max(done, key=lambda rule: done[rule])
        row |= {"best_greedy": best, "behind_percent": 100 * (1 - done[best] / number(row, "value"))}
    return row


def parsed(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10.0, help="time limit of each call")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--rules", default=",".join(RULES), help="greedy rules beside; empty for none")
    parser.add_argument("--output", type=Path, help="write the rows as JSON")
    options = parser.parse_args(argv)
    options.cases = options.cases.split(",")
    wrong = [case for case in options.cases if case not in CASES]
    if wrong:
        parser.error(f"no case is called {wrong[0]}; expected some of {', '.join(CASES)}")
    return options


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table."""
    options = parsed(argv)
    rules = [rule for rule in options.rules.split(",") if rule]
    before, rows = machine(), []
    print(heading(COLUMNS))
    # the first call starts the process that all have
    pl.solve(load(10, 0).snapshot, objectives=("value",), time_limit=1.0)
    for case in options.cases:
        for seed in range(options.seeds):
            snapshot = with_queues(load(options.nodes, seed).snapshot, case, seed)
            rows.append({"case": case, "seed": seed, **measure(snapshot, case, options.seconds, rules)})
            print(line(COLUMNS, rows[-1]), flush=True)
    write(options.output, machine=before, nodes=options.nodes, rows=rows)


if __name__ == "__main__":
    main()
