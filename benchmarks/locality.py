"""Gangs that must stay together: plans and bounds on a cluster of NVLink domains, and on racks in blocks.

Two used clusters. `nvl72`: domains of 18 nodes with 4 cards, gangs of 1 to 288 cards that require one domain, prefer
one, or lie in slices of 8 or 16 nodes. `blocks`: racks of 16 nodes with 8 cards in blocks of 16 racks, gangs of 1 to
512 cards that require a rack or a block, prefer a rack, or lie in slices of 4 or 8 nodes by rack. Both are filled
with random tasks of which many leave again, and asked for 1.3 times the cards that are free; a third of the tasks
take less than a node. Each is solved by the engine and by every greedy rule, on its own and in the same run.

    python benchmarks/locality.py --cluster nvl72 --domains 64 --seeds 5 --time-limit 20 --output locality.json
    python benchmarks/locality.py --cluster blocks --domains 32 --seeds 5 --time-limit 40
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from table import Column, Row, heading, line, machine, number, write

import placement as pl
from placement.compile import compile as compile_snapshot
from placement.heuristics import HEURISTICS
from placement.snapshot import (
    Gpu,
    Job,
    Node,
    Running,
    RunningTask,
    Slice,
    Snapshot,
    Task,
    TaskGroup,
    Topology,
)
from placement.snapshot.read import dumps

ASKED = 1.3
"""Cards asked for, relative to those that are free."""
USED, LEAVING = 2 / 3, 0.45
"""Share of the nodes that were ever used, and of their tasks that leave again."""
SMALL = 0.6
"""Share of the jobs that are drawn from those with tasks of less than a node; a third of all tasks are theirs."""
CORES, GIB = 16, 128
"""Cores and GiB of memory of a node for each card."""
RULE_SECONDS = 60.0
"""What a greedy rule may take; what it has placed by then counts."""
COLUMNS = (
    Column("cluster", "cluster", 7),
    Column("nodes", "nodes", 6),
    Column("seed", "seed", 4),
    Column("states", "states", 6),
    Column("gangs", "gangs", 6),
    Column("tasks", "tasks", 6),
    Column("free", "free", 6),
    Column("seconds", "seconds", 7, ".2f"),
    Column("cards", "cards", 6, ".0f"),
    Column("bound", "bound", 6, ".0f"),
    Column("gap %", "gap_percent", 7, ".3f"),
    Column("best greedy", "best_greedy", 18),
    Column("cards more", "cards_more", 10, ".0f"),
)


@dataclass(frozen=True, slots=True)
class Cluster:
    """What the two clusters differ in.

    Attributes
    ----------
    levels : tuple of str
        From wide to narrow.
    sizes : tuple of int
        Domains of the next level, or nodes, in a domain of each level.
    cards : int
        Of a node.
    gangs : tuple of (int, str, str, int)
        Nodes of a gang, level required, level preferred, nodes of a slice at the narrowest level; 0 or empty for none.
    """

    levels: tuple[str, ...]
    sizes: tuple[int, ...]
    cards: int
    gangs: tuple[tuple[int, str, str, int], ...]


CLUSTERS = {
    "nvl72": Cluster(
        ("nvlink",),
        (18,),
        4,
        (
            (2, "nvlink", "", 0),
            (2, "", "nvlink", 0),
            (4, "nvlink", "", 0),
            (4, "", "nvlink", 0),
            (8, "nvlink", "", 0),
            (8, "", "nvlink", 0),
            (12, "nvlink", "", 0),
            (16, "nvlink", "", 0),
            (18, "nvlink", "", 0),
            (16, "", "", 8),
            (32, "", "", 8),
            (64, "", "nvlink", 16),
            (72, "", "nvlink", 0),
        ),
    ),
    "blocks": Cluster(
        ("block", "rack"),
        (16, 16),
        8,
        (
            (2, "rack", "", 0),
            (2, "block", "rack", 0),
            (4, "rack", "", 0),
            (4, "block", "rack", 0),
            (8, "rack", "", 0),
            (8, "block", "", 4),
            (12, "rack", "", 0),
            (16, "block", "", 8),
            (32, "block", "", 8),
            (32, "block", "rack", 0),
            (64, "block", "", 8),
        ),
    ),
}


def load(cluster: Cluster, domains: int, seed: int) -> Snapshot:
    """Return a used cluster of so many widest domains and what is asked of it; all of it follows from the seed."""
    rng = Random(seed)
    positions = _positions(cluster, domains)
    free = [list(range(cluster.cards)) for _ in positions]
    running = _occupied(rng, cluster, free)
    left = sum(map(len, free))
    pending = _wanted(rng, cluster, left)
    return Snapshot(
        description=f"{len(positions)} nodes in domains, used, and gangs that stay together; seed {seed}",
        topology=cluster.levels,
        nodes=tuple(
            Node(
                name=f"node-{n}",
                position=position,
                cpu=CORES * cluster.cards,
                memory=f"{GIB * cluster.cards}Gi",
                gpus=(Gpu(model="GPU", count=cluster.cards),),
            )
            for n, position in enumerate(positions)
        ),
        jobs=(*running, *(Job(name=f"job-{n}", groups=(group,)) for n, group in enumerate(pending))),
    )


def _positions(cluster: Cluster, domains: int) -> list[dict[str, str]]:
    found: list[tuple[int, ...]] = [(d,) for d in range(domains)]
    for size in cluster.sizes[:-1]:
        found = [(*path, d) for path in found for d in range(size)]
    return [
        {level: "-".join(map(str, (level, *path[: depth + 1]))) for depth, level in enumerate(cluster.levels)}
        for path in found
        for _ in range(cluster.sizes[-1])
    ]


def _task(cards: int, rng: Random) -> Task:
    return Task(gpus=cards, cpu=cards * (4, 8, 12)[int(rng.random() * 3)], memory=f"{cards * 64}Gi")


def _occupied(rng: Random, cluster: Cluster, free: Sequence[list[int]]) -> list[Job]:
    """Fill nodes with random tasks, let many of them leave; return what stays."""
    sizes = [size for size in (1, 1, 2, 4, 8) if size <= cluster.cards]
    jobs: list[Job] = []
    for n, cards in enumerate(free):
        if rng.random() >= USED:
            continue
        placed: list[tuple[int, ...]] = []
        while cards and rng.random() < 0.95:
            size = sizes[int(rng.random() * len(sizes))]
            if size <= len(cards):
                placed.append(tuple(cards[:size]))
                del cards[:size]
        for devices in placed:
            if rng.random() < LEAVING:
                cards.extend(devices)
                cards.sort()
                continue
            place = RunningTask(group="main", index=0, node=f"node-{n}", gpus=devices)
            group = TaskGroup(name="main", task=_task(len(devices), rng))
            jobs.append(Job(name=f"running-{len(jobs)}", groups=(group,), running=Running(tasks=(place,))))
    return jobs


def _wanted(rng: Random, cluster: Cluster, free: int) -> list[TaskGroup]:
    """Draw gangs and small tasks; each kind of gang asks for about as many cards as the others."""
    asked = 0.0
    found: list[TaskGroup] = []
    while asked < ASKED * free:
        if rng.random() < SMALL:
            small = _small(rng, cluster)
            asked += small.count * (small.task.gpus if small.task else 0)
            found.append(small)
            continue
        nodes, required, preferred, size = _drawn(rng, cluster)
        slices = (Slice(level=cluster.levels[-1], sizes=(size,)),) if size else ()
        found.append(
            TaskGroup(
                name="main",
                count=nodes,
                task=_task(cluster.cards, rng),
                topology=Topology(required=required, preferred=preferred, slices=slices),
            )
        )
        asked += nodes * cluster.cards
    return found


def _drawn(rng: Random, cluster: Cluster) -> tuple[int, str, str, int]:
    """Draw a kind of gang, the less often the larger it is."""
    at = rng.random() * sum(1 / kind[0] for kind in cluster.gangs)
    for kind in cluster.gangs:
        at -= 1 / kind[0]
        if at < 0:
            return kind
    return cluster.gangs[-1]


def _small(rng: Random, cluster: Cluster) -> TaskGroup:
    """Draw tasks of less than a node: alone, or as a gang in one narrow domain."""
    cards = (1, 2) if cluster.cards == 4 else (1, 2, 4)
    count = (1, 1, 1, 4)[int(rng.random() * 4)]
    topology = Topology(required=cluster.levels[-1]) if count > 1 else None
    return TaskGroup(
        name="main", count=count, task=_task(cards[int(rng.random() * len(cards))], rng), topology=topology
    )


def run(name: str, domains: int, seed: int, limit: float, gap: float, rules: bool) -> Row:
    """Solve one load; return what the table shows."""
    snapshot = load(CLUSTERS[name], domains, seed)
    pending = [job for job in snapshot.jobs if job.running is None]
    free = sum(g.count for n in snapshot.nodes for g in n.gpus)
    free -= sum(len(t.gpus) for j in snapshot.jobs if j.running for t in j.running.tasks)
    began = time.perf_counter()
    plan = pl.solve(snapshot, objectives=["value"], time_limit=limit, gap=gap)
    seconds = time.perf_counter() - began
    value, bound = plan.phases[0].value, plan.phases[0].bound
    greedy = {rule: _cards(snapshot, rule) for rule in HEURISTICS} if rules else {}
    best = max(greedy, key=lambda rule: greedy[rule], default="")
    return {
        "cluster": name,
        "nodes": len(snapshot.nodes),
        "seed": seed,
        "states": len(compile_snapshot(snapshot).classes),
        "gangs": sum(1 for job in pending if job.groups[0].count > 1),
        "tasks": sum(job.groups[0].count for job in pending),
        "free": free,
        "seconds": seconds,
        "cards": (value or 0.0) / 1000,
        "bound": None if bound is None else bound / 1000,
        "gap_percent": None if bound is None or not value else 100 * (bound - value) / value,
        "best_greedy": best,
        "cards_more": (value or 0.0) / 1000 - greedy[best] if best else None,
        "greedy": greedy,
    }


def _cards(snapshot: Snapshot, rule: str) -> float:
    """Return the cards that a greedy rule gives work to."""
    plan = pl.solve(snapshot, objectives=["value"], solver=rule, time_limit=RULE_SECONDS)
    return (plan.phases[0].value or 0.0) / 1000


def main() -> None:
    """Print the table, and write it as JSON if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cluster", choices=tuple(CLUSTERS), default="nvl72")
    parser.add_argument("--domains", type=int, default=64, help="of the widest level")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--time-limit", type=float, default=20.0)
    parser.add_argument("--gap", type=float, default=0.01)
    parser.add_argument("--no-rules", action="store_true", help="leave the greedy rules out")
    parser.add_argument("--snapshot", type=Path, help="write the load of seed 0 there and stop")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    if options.snapshot is not None:
        options.snapshot.write_bytes(dumps(load(CLUSTERS[options.cluster], options.domains, 0)))
        return
    print(heading(COLUMNS))
    rows: list[Row] = []
    for seed in range(options.seeds):
        rows.append(run(options.cluster, options.domains, seed, options.time_limit, options.gap, not options.no_rules))
        print(line(COLUMNS, rows[-1]), flush=True)
    worst = max(number(row, "gap_percent") for row in rows)
    print(f"worst gap {worst:.3f} %, limit {options.time_limit:g} s, gap asked for {100 * options.gap:g} %")
    write(options.output, machine=machine(), time_limit=options.time_limit, gap=options.gap, rows=rows)


if __name__ == "__main__":
    main()
