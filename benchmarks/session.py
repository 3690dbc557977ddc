"""How long a session takes to place one arriving job: 1,000 nodes of 8 cards, about 70 % full, warm.

Jobs of 1 to 64 cards, in gangs of tasks of 1, 2, 4 or 8 cards, some within one rack, come and go, so that about the
same part of the cluster stays in use; now and then a node fails or is drained, and comes back. One job in `--fresh`
asks for an amount of CPU that no job before it asked for, which has to be compiled. With `--queues` each job is in one
of so many queues, which lend to and borrow from one another. Each decision is checked on the
nodes that it touches. At the end 200 jobs with durations wait on the cluster as it is, and all is planned anew within
`--limit` seconds, `--again` times each: what can start now, and when everything starts. What is printed: percentiles of
the time from `Session.decide` to its answer, over jobs of known kinds and over new ones, of the time that all events
take, and of what planning anew took beyond its limit; decisions that were refused; and memory at the start, in the
middle and at the end.

    python benchmarks/session.py --output session.json
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
from table import Column, Row, heading, line, machine, write

import placement as pl
from placement.session import Session
from placement.snapshot import Queue
from placement.snapshot.events import JobArrived, JobEnded, NodeDrained, NodeFailed, NodeRestored
from placement.snapshot.workload import Duration, Topology

GIB = 2**30
COLUMNS = (
    Column("what", "what", 30),
    Column("number", "number", 7),
    Column("p50 ms", "p50", 8, ".2f"),
    Column("p90 ms", "p90", 8, ".2f"),
    Column("p99 ms", "p99", 8, ".2f"),
    Column("max ms", "max", 8, ".2f"),
)
WAITING = 200
"""Jobs that wait when all is planned anew."""
TARGET = 50.0
"""Milliseconds that 99 of 100 decisions may take."""


def tree(queues: int, cards: int) -> tuple[Queue, ...]:
    """Return queues in teams of 5 that share all cards, lend half of what they have and borrow as much again."""
    if not queues:
        return ()
    each, teams = cards // queues, range((queues + 4) // 5)
    model = "H100-80GB"
    return (
        Queue(name="top"),
        *(Queue(name=f"team{team}", parent="top", borrowing_limit={model: 5 * each}) for team in teams),
        *(
            Queue(
                name=f"q{one}",
                parent=f"team{one // 5}",
                quota={model: each},
                borrowing_limit={model: each},
                lending_limit={model: each // 2},
            )
            for one in range(queues)
        ),
    )


def cluster(nodes: int, queues: int) -> pl.Snapshot:
    """Return an empty cluster in racks of 16 nodes."""
    cards = (pl.Gpu(model="H100-80GB", count=8, memory=80 * GIB),)
    return pl.Snapshot(
        topology=("rack",),
        queues=tree(queues, 8 * nodes),
        nodes=tuple(
            pl.Node(name=f"n{i}", position={"rack": f"r{i // 16}"}, cpu=128, memory=1024 * GIB, gpus=cards)
            for i in range(nodes)
        ),
    )


def job(number: int, rng: random.Random, fresh: bool, queues: int = 0) -> pl.Job:
    """Return a job; one that is fresh asks for what none before it did."""
    gpus = rng.choice((1, 1, 2, 4, 8, 8))
    tasks = rng.choice((1, 1, 1, 2, 4, 8))
    cpu = 4 * gpus + (number % 7919 + 1) / 10_000 if fresh else 4 * gpus
    topology = Topology(required="rack") if tasks > 1 and rng.random() < 0.3 else None
    task = pl.Task(gpus=gpus, cpu=cpu, memory=32 * GIB * gpus)
    return pl.Job(
        name=f"job{number}",
        groups=(pl.TaskGroup(name="workers", count=tasks, task=task, topology=topology),),
        # some queues have more to do than others
        queue=f"q{int(queues * rng.random() ** 2)}" if queues else "",
    )


def percentiles(what: str, seconds: Sequence[float]) -> Row:
    """Return a row of the table."""
    ordered = sorted(1000 * one for one in seconds)

    def rank(part: float) -> float | None:
        return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else None

    return {"what": what, "number": len(ordered), "p50": rank(0.5), "p90": rank(0.9), "p99": rank(0.99), "max": rank(1)}


def cards_of(one: pl.Job) -> int:
    """Return the cards that a job asks for."""
    return sum(group.count * (group.task.gpus if group.task else 0) for group in one.groups)


def resident() -> float:
    """Return the MiB of memory that this process has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def anew(
    session: Session, now: float, limit: float, times: int, rng: random.Random, queues: int
) -> tuple[list[Row], Row]:
    """Return what planning everything anew took beyond its limit, and how good it was the last time."""
    for number in range(WAITING):
        one = job(10**9 + number, rng, False, queues)
        timed = msgspec.structs.replace(one, duration=Duration(seconds=float(rng.randrange(60, 3600))))
        session.apply(JobArrived(time=now, job=timed))
    late: dict[str, list[float]] = {"solve": [], "schedule": []}
    gaps: Row = {}
    for _ in range(times):
        for what, plan in (("solve", session.solve), ("schedule", session.schedule)):
            began = time.perf_counter()
            found = plan(time_limit=limit)
            late[what].append(max(0.0, time.perf_counter() - began - limit))
            gaps[f"{what}_gap"] = found.phases[0].gap if isinstance(found, pl.Plan) else found.gap
    return [percentiles(f"{what} anew, beyond {limit:g} s", seconds) for what, seconds in late.items()], gaps


def run(
    nodes: int, arrivals: int, full: float, every: int, seed: int, limit: float, again: int, queues: int
) -> tuple[list[Row], Row]:
    """Return the rows of the table, and what was counted."""
    rng = random.Random(seed)
    session = Session(cluster(nodes, queues))
    room, used, now = 8 * nodes * full, 0, 0.0
    running: list[str] = []
    size: dict[str, int] = {}
    known: list[float] = []
    new: list[float] = []
    busy: list[float] = []
    events: list[float] = []
    down: list[str] = []
    counted = {"placed": 0, "no_room": 0, "by_quota": 0, "refused": 0, "stopped": 0}
    memory: list[float] = []
    number = measured = 0

    def happens(*some: object) -> None:
        began = time.perf_counter()
        session.apply(some)  # type: ignore[arg-type]
        events.extend([(time.perf_counter() - began) / len(some)] * len(some))

    while measured < arrivals:
        now += 1.0
        warm = used >= room or measured > 0
        if warm and measured >= len(memory) * arrivals // 2:
            gc.collect()
            memory.append(resident())
        while used >= room and running:
            at = rng.randrange(len(running))
            running[at], running[-1] = running[-1], running[at]
            name = running.pop()
            used -= size.pop(name)
            happens(JobEnded(time=now, job=name))
        if warm and measured and measured % 100 == 0:
            if down:
                happens(NodeRestored(time=now, node=down.pop()))
            else:
                node = f"n{rng.randrange(nodes)}"
                down.append(node)
                happens((NodeFailed if rng.random() < 0.5 else NodeDrained)(time=now, node=node))
                lost = [name for name in session.waiting if name in size]
                for name in lost:
                    used -= size.pop(name)
                    running.remove(name)
                    counted["stopped"] += 1
                    happens(JobEnded(time=now, job=name, outcome="failed"))
        number += 1
        fresh = warm and number % every == 0
        one = job(number, rng, fresh, queues)
        happens(JobArrived(time=now, job=one))
        began, cpu = time.perf_counter(), time.process_time()
        try:
            decision = session.decide(one.name)
        except pl.SolverError as error:
            counted["refused"] += 1
            print(error)
            happens(JobEnded(time=now, job=one.name, outcome="failed"))
            continue
        taken = time.perf_counter() - began
        if warm:
            (new if fresh else known).append(taken)
            busy.append(time.process_time() - cpu)
            measured += 1
        if decision.starts:
            session.start(decision)
            running.append(one.name)
            size[one.name] = cards_of(one)
            used += size[one.name]
            counted["placed"] += 1
        else:
            counted["by_quota" if "quota" in decision.reason else "no_room"] += 1
            happens(JobEnded(time=now, job=one.name, outcome="cancelled"))
    gc.collect()
    memory.append(resident())
    rows = [
        percentiles("decisions, known kinds", known),
        percentiles("decisions, new kinds", new),
        percentiles("decisions, all", [*known, *new]),
        percentiles("the same, CPU time", busy),
        percentiles("events", events),
    ]
    violations = pl.check(session.snapshot(in_time=False), session.solve(solver="first-fit"))
    planned, gaps = anew(session, now, limit, again, rng, queues)
    return [*rows, *planned], {
        **gaps,
        **counted,
        "events": len(events),
        "running": len(running),
        "used_percent": 100 * used / (8 * nodes),
        "mebibytes": [round(one, 1) for one in memory],
        "full_check": len(violations),
    }


def main() -> None:
    """Run the benchmark, print a table and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--arrivals", type=int, default=4000)
    parser.add_argument("--full", type=float, default=0.7, help="part of all cards that is kept in use")
    parser.add_argument("--fresh", type=int, default=20, help="one job in so many is of a new kind")
    parser.add_argument("--limit", type=float, default=5.0, help="seconds for planning everything anew")
    parser.add_argument("--again", type=int, default=5, help="how often everything is planned anew")
    parser.add_argument("--queues", type=int, default=0, help="queues with quotas that jobs are in; none if 0")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, help="file for the rows as JSON")
    options = parser.parse_args()
    about = machine()
    print(about)
    rows, counted = run(
        options.nodes,
        options.arrivals,
        options.full,
        options.fresh,
        options.seed,
        options.limit,
        options.again,
        options.queues,
    )
    print(heading(COLUMNS))
    for row in rows:
        print(line(COLUMNS, row))
    print(counted)
    p99 = rows[2]["p99"]
    assert isinstance(p99, float)
    print(f"target: 99 of 100 decisions within {TARGET:g} ms: {'met' if p99 <= TARGET else 'MISSED'}")
    write(options.output, machine=about, nodes=options.nodes, rows=rows, counted=counted, target_ms=TARGET)


if __name__ == "__main__":
    main()
