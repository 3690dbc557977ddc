"""Reader of traces of training jobs: who asked when for how many cards, and for how long they were in use.

Two forms. The log of Microsoft's Philly clusters, ``cluster_job_log`` (Jeon et al., ATC'19; msr-fiddle/philly-traces,
CC-BY-4.0): a JSON list of jobs with ``jobid``, ``vc``, ``submitted_time`` and ``attempts``, each with the cards that
it had. And the CSV files that simulators make of it, with one row a job, as in the artifacts of Tiresias (NSDI'19),
Chronus (SoCC'21), Gavel (OSDI'20) and Pollux (OSDI'21); what its columns may be called says `COLUMNS`.

Times of CSV files are seconds; with the columns of Chronus they are minutes, as its submit times of 14 days show. A
trace says nothing of the cluster: nodes of 8 cards, as many as its jobs keep busy, unless the options say it. A job of
more cards than a node has is a gang of equal tasks. Jobs without cards are left out. Queues are the virtual clusters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from placement.errors import InputError
from placement.formats.ledger import Ledger
from placement.formats.options import Options
from placement.formats.philly_log import attempts, is_log
from placement.formats.rows import Row, heading, rows
from placement.formats.source import File
from placement.snapshot import Duration, Gpu, Job, Node, Snapshot, Task, TaskGroup

COLUMNS: dict[str, tuple[str, ...]] = {
    "name": ("job_id", "jobid", "name"),
    "cards": ("num_gpu", "num_gpus", "gpus", "scale_factor", "num_replicas"),
    "submit": ("submit_time", "submitted_time", "arrival_s", "time"),
    "seconds": ("duration", "duration_s"),
    "queue": ("vc", "user"),
}
"""What the columns of a CSV trace are called, the first one that is there; names and run times may be missing."""

MODEL = "GPU"
"""Of cards of which nothing says it."""
CARDS = 8
"""Of a node, unless the user says another number: what most of Philly's have."""
CHRONUS = frozenset({"expect_time_list", "expect_value_list"})
"""Columns of the traces of Chronus, of which the times are minutes."""
APART = ("trace", "set", "workload")
"""Columns that tell traces apart, of which each has arrivals from 0."""


@dataclass(frozen=True, slots=True)
class Traced:
    """A job of a trace.

    Attributes
    ----------
    name : str
    cards : int
    submit : float
        Seconds.
    seconds : float, optional
        Run time.
    queue : str
        Virtual cluster, or user.
    """

    name: str
    cards: int
    submit: float
    seconds: float | None
    queue: str


def of(found: Sequence[File], options: Options, ledger: Ledger) -> Snapshot:
    """Return the snapshot of a trace: an empty cluster, and every job pending from its submit time.

    Raises
    ------
    InputError
        If there are several files, a column is missing, or a field is not what it has to be.
    """
    if len(found) != 1:
        names = ", ".join(file.name for file in found)
        raise InputError.one(f"found {names}", "give the one file that lists the jobs of the trace")
    file = found[0]
    traced = list(attempts(file, ledger) if is_log(file) else _of_rows(file, options, ledger))
    with_cards = [job for job in traced if job[1]]
    if len(with_cards) < len(traced):
        for _ in range(len(traced) - len(with_cards)):
            ledger.ignored("jobs without cards", "the trace does not say what else they take", file.name)
    jobs = [Traced(*job) for job in with_cards]
    if not jobs:
        raise file.error("there is no job with cards", "give the list of jobs of a trace")
    ledger.read("jobs, pending from their submit time", count=len(jobs))
    cards = CARDS if options.cards_per_node is None else options.cards_per_node
    if options.cards_per_node is None:
        ledger.assumed("cards of a node", f"{CARDS}; --cards-per-node says another number")
    ledger.assumed("model of the cards", f"{MODEL}, the same for all")
    ledger.assumed("CPU and memory", "do not limit what a node takes")
    nodes = options.nodes
    if nodes is None:
        nodes, why = busy(jobs, cards)
        ledger.assumed("nodes", f"{nodes}, {why}; --nodes says another number")
    return Snapshot(
        description=f"trace: {Path(file.name).name}",
        time=min(job.submit for job in jobs) if options.time is None else options.time,
        nodes=(Node(name="node", count=nodes, gpus=(Gpu(model=MODEL, count=cards),)),),
        jobs=tuple(_job(job, cards) for job in jobs),
    )


def busy(jobs: Sequence[Traced], cards: int) -> tuple[int, str]:
    """Return how many nodes a trace is taken to be of, and why.

    They are the fewest that hold the widest job, and of which the cards are as many as are in use on average from the
    first arrival to the last. Where that is no time, or no run times are known, they hold all jobs at once.

    Parameters
    ----------
    jobs : sequence of Traced
        At least one.
    cards : int
        Of a node.
    """
    widest = max(_tasks(job.cards, cards)[0] for job in jobs)
    span = max(job.submit for job in jobs) - min(job.submit for job in jobs)
    work = sum(job.cards * job.seconds for job in jobs if job.seconds is not None)
    if not span or not work:
        return max(widest, math.ceil(sum(job.cards for job in jobs) / cards)), "which hold all jobs at once"
    return max(widest, math.ceil(work / span / cards)), "which the jobs keep busy from the first arrival to the last"


def _tasks(wanted: int, cards: int) -> tuple[int, int]:
    """Return the number of tasks of a job and the cards of each: the largest equal parts that a node holds."""
    if wanted <= cards:
        return 1, wanted
    each = next(size for size in range(cards, 0, -1) if wanted % size == 0)
    return wanted // each, each


def _job(job: Traced, cards: int) -> Job:
    count, each = _tasks(job.cards, cards)
    return Job(
        name=job.name,
        queue=job.queue,
        submit_time=job.submit,
        # measured where the job lay, which the trace does not say: the same wherever it lies here
        duration=None if job.seconds is None else Duration(seconds=job.seconds, levels={"node": 1.0}),
        groups=(TaskGroup(name="workers", count=count, task=Task(gpus=each)),),
    )


# --- CSV ---------------------------------------------------------------------------------------------------------


def _of_rows(file: File, options: Options, ledger: Ledger) -> Iterator[tuple[str, int, float, float | None, str]]:
    columns = heading(file)
    named = {part: next((name for name in names if name in columns), "") for part, names in COLUMNS.items()}
    for part in ("cards", "submit"):
        if not named[part]:
            remedy = f"give a trace with a column called {' or '.join(COLUMNS[part])}"
            raise file.error("a column is missing", remedy, "line 1")
    unit = options.unit
    if unit is None:
        unit = 60.0 if set(columns) >= CHRONUS else 1.0
        ledger.assumed("unit of the times", f"{'minutes' if unit > 1 else 'seconds'}; --time-unit says another")
    for column in columns:
        if column not in named.values():
            ledger.ignored(f"column {column}", "a trace is read for arrivals, cards and run times alone", file.name)
    apart = [column for column in APART if column in columns]
    first: list[str] = []
    for index, row in enumerate(rows(file, [name for name in named.values() if name])):
        traces = [row.fields[column] for column in apart]
        if (first := first or traces) != traces:
            raise row.error(apart[0], "the file holds several traces", "keep the rows of one")
        yield (
            _name(row, named["name"], index),
            row.number(named["cards"]),
            unit * row.amount(named["submit"]),
            _seconds(row, named["seconds"], unit, ledger),
            row.fields[named["queue"]] if named["queue"] else "",
        )


def _name(row: Row, column: str, index: int) -> str:
    """Return the name of a job; numbers get a letter in front, so that they read as names."""
    text = row.fields[column] if column else str(index)
    return f"job-{text}" if text.isdigit() else text


def _seconds(row: Row, column: str, unit: float, ledger: Ledger) -> float | None:
    if not column:
        ledger.assumed("run time", "none: no column says it", row.source)
        return None
    seconds = unit * row.amount(column)
    if not seconds:
        ledger.assumed("run time of 0", "none", row.where)
        return None
    return seconds
