"""Policies on a trace of 14 days from Philly: all baselines on the whole of it, and plans made anew every 5 minutes.

The trace is `philly_mix1.csv.gz` of the artifact of Chronus (SoCC'21), made from the Philly trace (ATC'19); it is given
by its path. Its times are minutes: submit times go up to 20,151, which is 14 days of minutes or not even 6 hours of
seconds, and the longest run time is 4,317, just below 3 days of minutes. The deadlines of its strict jobs are a little
above its run times, so they are in the same unit. Run times do not follow from iterations times a speed: within one
model and number of cards, minutes per iteration range over a factor of thousands, so `duration` alone counts here. What
the benchmark finds of this it prints. Jobs without a card are left out. A job of up to 8 cards is one task; a wider one
is a gang of tasks of 8, or of 4, 2 or 1 where that does not come out even, and runs as long wherever it is. Jobs of the
type "best" have a lower priority than the others. No job has a weight, so that the mean by weight is the mean; the one
by cards counts a job as often as it has cards. That every job may be stopped, and what that costs, is assumed: it
saves its work every 30 minutes and takes 2 minutes to be restored.

Nodes have 8 cards, and as many are taken as make the card minutes of all jobs, over those there are until the last job
comes, a load of 0.7, 0.9 and 1.1. Queues are the trace's users. The window holds the jobs that come in the 3 days, from
midnight of the trace, in which most card minutes are asked for; its number of nodes makes the same load of them alone.

    python benchmarks/philly.py TRACE --processes 2 --output philly.json
    python benchmarks/philly.py TRACE --jobs 3000 --loads 0.9
"""

from __future__ import annotations

import argparse
import csv
import gzip
import math
import time
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from table import Column, Row, heading, line, machine, write

import placement as pl
from placement.scheduling.baselines import BASELINES
from placement.scheduling.rolling import Rolling
from placement.snapshot.queues import Queue
from placement.snapshot.workload import Duration

MINUTE, DAY = 60, 86_400
CARDS = 8
DAYS = 3
"""Of the window."""
CHECKPOINT, RESTART = 1800.0, 120.0
"""Seconds of work between checkpoints, and seconds to restore a job that was stopped: assumptions, not in the trace."""
PERIOD = 300_000
"""Milliseconds between two plans."""
IN_WINDOW = ("fifo", "smith-area", "rolling")
"""Policies on the window."""
COLUMNS = (
    Column("what", "what", 8),
    Column("load", "load", 5, ".2f"),
    Column("nodes", "nodes", 6),
    Column("jobs", "jobs", 6),
    Column("policy", "policy", 20),
    Column("mean h", "mean_hours", 8, ".2f"),
    Column("by cards h", "by_cards_hours", 10, ".2f"),
    Column("p50 h", "p50_hours", 8, ".2f"),
    Column("p95 h", "p95_hours", 8, ".2f"),
    Column("p99 h", "p99_hours", 8, ".2f"),
    Column("queued h", "queued_hours", 8, ".2f"),
    Column("slowdown", "slowdown", 9, ".2f"),
    Column("stops", "stops", 6),
    Column("used %", "used_percent", 7, ".1f"),
    Column("seconds", "seconds", 8, ".1f"),
)


@dataclass(frozen=True, slots=True)
class Traced:
    """A job of the trace; seconds."""

    name: str
    user: str
    cards: int
    submit: float
    seconds: float
    best_effort: bool


def read(path: Path) -> tuple[list[Traced], Row]:
    """Return the jobs that have cards by submit time, and what is found of the unit of their times."""
    with gzip.open(path, "rt") as file:
        rows = list(csv.DictReader(file))
    pace: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in rows:
        pace[row["model_name"], row["num_gpu"]].append(float(row["duration"]) / float(row["iterations"]))
    jobs = [
        Traced(
            f"j{row['job_id']}",
            row["user"],
            int(row["num_gpu"]),
            MINUTE * float(row["submit_time"]),
            MINUTE * float(row["duration"]),
            row["job_type"] == "best",
        )
        for row in rows
        if int(row["num_gpu"]) > 0
    ]
    last = max(float(row["submit_time"]) for row in rows)
    return sorted(jobs, key=lambda one: one.submit), {
        "rows": len(rows),
        "with_cards": len(jobs),
        "span_days_if_minutes": round(last * MINUTE / DAY, 3),
        "span_days_if_seconds": round(last / DAY, 3),
        "longest_days_if_minutes": round(max(float(row["duration"]) for row in rows) * MINUTE / DAY, 3),
        "minutes_per_iteration_max_over_min": round(max(max(some) / min(some) for some in pace.values())),
    }


def snapshot(jobs: Sequence[Traced], nodes: int) -> pl.Snapshot:
    """Return the jobs and an empty cluster."""
    return pl.Snapshot(
        description="Philly-derived trace of Chronus",
        licence="MIT (Chronus), CC-BY-4.0 (Philly)",
        time=jobs[0].submit,
        nodes=(pl.Node(name="n", count=nodes, gpus=(pl.Gpu(model="P100", count=CARDS),)),),
        queues=tuple(Queue(name=user) for user in sorted({job.user for job in jobs})),
        jobs=tuple(
            pl.Job(
                name=job.name,
                queue=job.user,
                groups=(pl.TaskGroup(name="w", count=tasks, task=pl.Task(gpus=cards)),),
                submit_time=job.submit,
                duration=Duration(seconds=job.seconds, levels={"node": 1.0}),
                priority=0 if job.best_effort else 1,
                preemptible=True,
                checkpoint_interval=CHECKPOINT,
                restart_seconds=RESTART,
            )
            for job in jobs
            for tasks, cards in [shape(job.cards)]
        ),
    )


def shape(cards: int) -> tuple[int, int]:
    """Return the number of tasks of a job, and the cards of each."""
    if cards <= CARDS:
        return 1, cards
    each = next(size for size in (8, 4, 2, 1) if cards % size == 0)
    return cards // each, each


def busiest(jobs: Sequence[Traced]) -> list[Traced]:
    """Return the jobs of the window."""
    found: list[Traced] = []
    most = -1.0
    for first in range(max(1, math.ceil(jobs[-1].submit / DAY) - DAYS + 1)):
        some = [job for job in jobs if first * DAY <= job.submit < (first + DAYS) * DAY]
        asked = sum(job.cards * job.seconds for job in some)
        if asked > most:
            found, most = some, asked
    return found


def nodes_for(jobs: Sequence[Traced], load: float) -> int:
    """Return how many nodes make a load, of card seconds asked for over those there are until the last job comes."""
    asked = sum(job.cards * job.seconds for job in jobs)
    return max(4, math.ceil(asked / (jobs[-1].submit - jobs[0].submit) / load / CARDS))


def measure(what: str, load: float, jobs: Sequence[Traced], nodes: int, policy: str) -> Row:
    """Return one row of the table."""
    given = snapshot(jobs, nodes)
    rolling = Rolling(period=PERIOD)
    began, cpu = time.perf_counter(), time.process_time()
    found = pl.simulate(given, rolling if policy == "rolling" else policy)
    every = found.figures.all
    return {
        "what": what,
        "load": load,
        "nodes": nodes,
        "jobs": len(jobs),
        "policy": policy,
        "mean_hours": every.mean / 3600,
        "weighted_hours": every.weighted / 3600,
        "by_cards_hours": by_cards(jobs, found) / 3600,
        "p50_hours": every.p50 / 3600,
        "p95_hours": every.p95 / 3600,
        "p99_hours": every.p99 / 3600,
        "queued_hours": every.queued / 3600,
        "slowdown": every.slowdown,
        "stops": found.figures.preemptions,
        "used_percent": None if found.figures.utilisation is None else 100 * found.figures.utilisation,
        "unfinished": len(found.unfinished),
        "plans": rolling.plans,
        "seconds": time.perf_counter() - began,
        "cpu_seconds": time.process_time() - cpu,
    }


def by_cards(jobs: Sequence[Traced], found: pl.Simulation) -> float:
    """Return the mean of the seconds from arrival to end, weighted by how many cards each job has."""
    cards = {job.name: job.cards for job in jobs}
    times = found.jobs
    rows = list(zip(times.job, times.release, times.end, strict=True))
    return sum(cards[job] * (end - release) for job, release, end in rows) / sum(cards[job] for job, *_ in rows)


def main() -> None:
    """Run the benchmark, print a table and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", type=Path, help="philly_mix1.csv.gz")
    parser.add_argument("--loads", default="0.7,0.9,1.1", help="separated by commas")
    parser.add_argument("--policies", default=",".join(BASELINES), help="for the whole trace")
    parser.add_argument("--jobs", type=int, help="only so many of the first jobs")
    parser.add_argument("--processes", type=int, default=1, help="runs at a time, each on a core of its own")
    parser.add_argument("--output", type=Path, help="file for the rows as JSON")
    options = parser.parse_args()
    about = machine()
    began = time.perf_counter()
    jobs, unit = read(options.trace)
    jobs = jobs[: options.jobs]
    print(about)
    print("times are minutes:", unit)
    print(heading(COLUMNS))
    window = busiest(jobs)
    runs = []
    for load in map(float, options.loads.split(",")):
        for what, some, policies in (("whole", jobs, options.policies.split(",")), ("window", window, IN_WINDOW)):
            runs += [(what, load, some, nodes_for(some, load), policy) for policy in policies]
    rows = []
    with ProcessPoolExecutor(options.processes) as pool:
        for row in pool.map(measure, *zip(*runs, strict=True)):
            rows.append(row)
            print(line(COLUMNS, row), flush=True)
    write(
        options.output,
        machine=about,
        unit=unit,
        window=[window[0].submit, window[-1].submit],
        period_ms=PERIOD,
        processes=options.processes,
        seconds=time.perf_counter() - began,
        rows=rows,
    )


if __name__ == "__main__":
    main()
