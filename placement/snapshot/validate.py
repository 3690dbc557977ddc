"""The rules that the parts of a snapshot must keep together; everything wrong is reported at once.

Structure (fields, types, JSON) is checked before, by `placement.snapshot.strict`. What is wrong here is wrong in
meaning: a reference to nothing, a minimum above its count, a card that does not exist.
"""

from __future__ import annotations

import contextlib
from operator import attrgetter

from placement.snapshot.events import EventLog, JobArrived, JobEnded
from placement.snapshot.fields import (
    MOST_LEVELS,
    MOST_NODES,
    MOST_SECONDS,
    MOST_TASKS,
    Names,
    distinct,
    level,
    moment,
    name,
    number,
    whole,
    wrong_name,
)
from placement.snapshot.policy import Policy
from placement.snapshot.report import Report, TooMany, show
from placement.snapshot.snapshot import Snapshot
from placement.snapshot.validate_jobs import JobRules, judge_order
from placement.snapshot.validate_nodes import judge_limits, judge_nodes, judge_reservations, judge_topology
from placement.snapshot.validate_queues import judge_queues
from placement.snapshot.validate_running import RunningRules
from placement.snapshot.validate_topology import judge_domains, judge_nvlink_domains
from placement.snapshot.workload import Job

MOST_ENTRIES = {"nodes": MOST_NODES, "jobs": 10**6, "events": 10**7}
"""Most entries of the lists of a file; `count` says more."""


def judge(snapshot: Snapshot) -> Report:
    """Return everything that is wrong with a snapshot whose structure is right."""
    report = Report()
    with contextlib.suppress(TooMany):
        _judge(snapshot, report)
    return report


def _judge(snapshot: Snapshot, report: Report) -> None:
    nodes, jobs = _names("node", snapshot.nodes), _names("job", snapshot.jobs)
    queues = frozenset(queue.name for queue in snapshot.queues)
    report.extend("time", moment("", snapshot.time))
    judge_topology(snapshot.topology, report)
    judge_nodes(snapshot.nodes, snapshot.topology, nodes, report)
    judge_nvlink_domains(snapshot.nodes, snapshot.topology, report)
    stated = judge_domains(snapshot.nodes, snapshot.topology[:MOST_LEVELS], report)
    judge_limits(snapshot.limits, snapshot.nodes, snapshot.topology, report)
    judge_reservations(snapshot.reservations, nodes, jobs, queues, report)
    _judge_jobs(snapshot, nodes, jobs, queues, stated, report)
    judge_queues(snapshot.queues, snapshot.jobs, report)
    _judge_policy(snapshot.policy, snapshot.topology, report)
    for index, entry in enumerate(snapshot.ledger):
        report.extend(f"ledger[{index}]", whole(".count", entry.count, 1))


def _names(kind: str, entries: tuple[Job, ...] | tuple[object, ...]) -> Names:
    return Names(kind, list(map(attrgetter("name"), entries)), list(map(attrgetter("count"), entries)))


def _judge_jobs(
    snapshot: Snapshot, nodes: Names, jobs: Names, queues: frozenset[str], stated: frozenset[str], report: Report
) -> None:
    jobs.judge(report)
    rules = JobRules(snapshot.topology, queues, report, "jobs[{}]".format, stated)
    running = RunningRules(snapshot.nodes, nodes, snapshot.time, report)
    total = 0
    for index, job in enumerate(snapshot.jobs):
        tasks = rules.judge(index, job)
        if total <= MOST_TASKS < total + tasks:
            what = f"with this entry there are {show(total + tasks)} tasks, expected at most {MOST_TASKS:,} in all"
            report.add(f"jobs[{index}]", what, "split the work")
        total += tasks
        if job.running is not None:
            running.judge(index, job, job.running)
    judge_order(snapshot.jobs, jobs, report)


def _judge_policy(policy: Policy, topology: tuple[str, ...], report: Report) -> None:
    if not policy.objectives:
        report.add("policy.objectives", "there is no objective", "name at least one, or leave the field out")
    report.extend("policy", distinct(".objectives", policy.objectives, "objective"))
    report.extend("policy", whole(".max_moves", policy.max_moves))
    report.extend("policy", whole(".max_preemptions", policy.max_preemptions))
    report.extend("policy", number(".max_wait_seconds", policy.max_wait_seconds, 0, MOST_SECONDS))
    if policy.tenants_apart == "gpu" and "gpu" in topology:
        what = "`gpu` stands for single cards, and is a level of `topology` here"
        report.add("policy.tenants_apart", what, "give that level another name")
    elif policy.tenants_apart:
        report.extend("policy.tenants_apart", level("", policy.tenants_apart, ("gpu", "node", *topology)))


def judge_events(log: EventLog) -> Report:
    """Return everything that is wrong with an event log whose structure is right.

    Jobs, nodes and levels may be those of the snapshot that the log is replayed on, so they are not looked up.
    """
    report = Report()
    rules = JobRules(None, frozenset(), report, "events[{}].job".format)
    last, arrived = float("-inf"), dict[str, int]()
    for index, event in enumerate(log.events):
        path = f"events[{index}]"
        report.extend(path, moment(".time", event.time))
        if event.time < last:
            what = f"found {show(event.time)}, which is before the event above it ({show(last)})"
            report.add(f"{path}.time", what, "sort the events by time")
        last = max(last, event.time)
        if isinstance(event, JobArrived):
            _judge_arrival(index, event.job, rules, arrived, report)
        elif wrong_name(event.job if isinstance(event, JobEnded) else event.node) is not None:
            key = "job" if isinstance(event, JobEnded) else "node"
            report.extend(path, name(f".{key}", getattr(event, key)))
    return report


def _judge_arrival(index: int, job: Job, rules: JobRules, arrived: dict[str, int], report: Report) -> None:
    path = f"events[{index}].job"
    report.extend(path, name(".name", job.name))
    if arrived.setdefault(job.name, index) != index:
        report.add(f"{path}.name", f"{show(job.name)} arrived at events[{arrived[job.name]}] already", "rename one")
    rules.judge(index, job)
    if job.running is not None:
        report.add(f"{path}.running", "a job that arrives cannot be running", "leave the field out")
