"""The rules of queues: a tree, with quotas that can be kept, and jobs in its leaves alone.

Limits on lending and borrowing are refused where Kueue refuses them (``pkg/webhooks/clusterqueue_webhook.go`` and
``cohort_webhook.go`` of kubernetes-sigs/kueue): at the top of a tree, and lending of more than the quota of a queue
that has no children to lend for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from operator import attrgetter

from placement import units
from placement.snapshot.fields import MOST_WORTH, name, number, quantities
from placement.snapshot.queues import Queue
from placement.snapshot.report import Found, Report, show
from placement.snapshot.validate_jobs import report_cycle
from placement.snapshot.workload import Job

MOST_DEPTH = 16
"""Levels of queues below one another."""


def judge_queues(queues: tuple[Queue, ...], jobs: tuple[Job, ...], report: Report) -> None:
    """Report everything that is wrong with queues; if nothing is, report jobs in queues that take none."""
    index_of = {queue.name: index for index, queue in reversed(list(enumerate(queues)))}
    parents = frozenset(queue.parent for queue in queues if queue.parent and queue.parent != queue.name)
    graph: dict[int, set[int]] = {}
    wrong = report.total
    for index, queue in enumerate(queues):
        path = f"queues[{index}]"
        report.extend(path, name(".name", queue.name))
        if index_of[queue.name] != index:
            other = f"queues[{index_of[queue.name]}]"
            report.add(f"{path}.name", f"{show(queue.name)} is the name of {other} already", "rename one of them")
        if queue.parent and queue.parent == queue.name:
            report.add(f"{path}.parent", "the queue is its own parent", "name another one, or leave it out")
        elif queue.parent and queue.parent not in index_of:
            report.unknown(f"{path}.parent", "queue", queue.parent, list(index_of))
        elif queue.parent:
            graph[index] = {index_of[queue.parent]}
        for key in ("quota", "borrowing_limit", "lending_limit"):
            report.extend(path, quantities(f".{key}", getattr(queue, key), "card model"))
        report.extend(path, _limits(queue, queue.name in parents))
        report.extend(path, number(".weight", queue.weight, 0, MOST_WORTH))
    report_cycle(graph, [queue.name for queue in queues], "queues[{}].parent", "the parents go round", report)
    if report.total == wrong:
        _judge_depth([index_of.get(queue.parent, -1) for queue in queues], report)
    if parents and report.total == wrong:
        _judge_jobs(jobs, parents, index_of, report)


def _judge_depth(parent: list[int], report: Report) -> None:
    """Report the first queue that has too many above it."""
    for index, above in enumerate(parent):
        depth = 1
        while above >= 0 and depth <= MOST_DEPTH:
            depth, above = depth + 1, parent[above]
        if depth > MOST_DEPTH:
            what = f"queues are more than {MOST_DEPTH} deep below one another"
            report.add(f"queues[{index}].parent", what, "name a queue further up")
            return


def _limits(queue: Queue, has_children: bool) -> Iterator[Found]:
    for key, what in (("borrowing_limit", "borrow from"), ("lending_limit", "lend to")):
        if getattr(queue, key) and not queue.parent:
            yield f".{key}", f"the queue has no parent, so there is nobody to {what}", "name a `parent`, or remove it"
    right = all(_known(value) is not None for value in queue.quota.values())
    if queue.parent and right and not has_children:
        for model in queue.lending_limit:
            most, lent = _amount(queue.quota, model), _known(queue.lending_limit[model])
            if lent is not None and lent > most:
                what = f"found {show(queue.lending_limit[model])}, but its quota is {float(most):.12g}"
                yield f".lending_limit.{model}", what, "lend at most the quota"


def _amount(quota: Mapping[str, units.Quantity], model: str) -> Fraction:
    """Return what a quota comes to for a model, as `placement.quota` says."""
    if model == "*" and model not in quota:
        return sum(map(units.exact, quota.values()), Fraction(0))
    return units.exact(quota.get(model, quota.get("*", 0)))


def _known(quantity: units.Quantity) -> Fraction | None:
    """Return a quantity; None for one that is wrong, which is reported elsewhere."""
    try:
        return units.exact(quantity)
    except ValueError:
        return None


def _judge_jobs(jobs: tuple[Job, ...], parents: frozenset[str], known: Mapping[str, int], report: Report) -> None:
    if parents.isdisjoint(map(attrgetter("queue"), jobs)):
        return
    for index, job in enumerate(jobs):
        if job.queue in parents and job.queue in known:
            what = f"queue {show(job.queue)} has queues below it, and only those without take jobs"
            report.add(f"jobs[{index}].queue", what, "name one of the queues below it")
