"""An instance whose plans keep queues to their quotas and shares.

What a queue may take of a card model is a limit on a domain like any other: the nodes of the model, or the cluster, and
of a resource that its tasks alone ask for, with the cards that they take. So every method that honours limits honours
these, and its bounds are bounds. The resource has a name that no snapshot can have, nodes have enough of it, and what
running work takes is off the limit already.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import floor, lcm

import msgspec

from placement.compile import compile as compile_snapshot
from placement.entitlement.asked import counted
from placement.entitlement.cards import part_of
from placement.entitlement.rows import QueueRow, queue_rows
from placement.instance import Instance
from placement.quota import ALL, QueueLimit
from placement.snapshot import DomainLimit, Job, Node, Snapshot, TaskGroup

MODEL = "\0model"
"""Level of the nodes of one card model."""


def compile_with_shares(snapshot: Snapshot) -> Instance:
    """Return the instance of a valid snapshot, in which queues are kept to quotas, and to shares if its policy says so.

    Parameters
    ----------
    snapshot : Snapshot
        See `placement.honoured.refuse_unhonoured_in_plan`.

    Returns
    -------
    Instance
        Its `Instance.snapshot` states the limits beside all else.

    Raises
    ------
    UnhonouredError
        If lending limits are too many to be kept.
    """
    rows = queue_rows(snapshot) if snapshot.queues else ()
    if not rows:
        return compile_snapshot(snapshot)
    jobs = [job for job in snapshot.jobs if job.running is None]
    scale = lcm(*(part_of(task).denominator for job in jobs for task, _ in counted(job.groups, 1)))
    instance = compile_snapshot(_with_limits(snapshot, rows, scale))
    first, limits = len(snapshot.limits), []
    for row in instance.limits:
        number = int(row.path.removeprefix("limits[").removesuffix("]")) - first
        if number >= 0:
            of = rows[number]
            row = replace(row, queue=QueueLimit(of.owner, of.model, of.kind, scale))
        limits.append(row)
    return replace(instance, limits=tuple(limits))


def _with_limits(snapshot: Snapshot, rows: tuple[QueueRow, ...], scale: int) -> Snapshot:
    """Return a snapshot with the rows as limits, of resources of which a card is so many."""
    sets = {queues: f"\0{number}" for number, queues in enumerate(dict.fromkeys(row.queues for row in rows))}
    names = {
        queue.name: tuple(name for queues, name in sets.items() if queue.name in queues) for queue in snapshot.queues
    }
    limits = tuple(
        DomainLimit(
            level="cluster" if row.model == ALL else MODEL,
            domain="" if row.model == ALL else row.model,
            extended={sets[row.queues]: floor(row.room * scale)},
        )
        for row in rows
    )
    largest = max(task.gpus for job in snapshot.jobs for task, _ in counted(job.groups, 1))
    known: dict[tuple[int, tuple[str, ...]], tuple[TaskGroup, ...]] = {}

    def with_demand(job: Job) -> Job:
        mine = names.get(job.queue, ())
        if job.running is not None or not mine:
            return job
        # gangs that jobs share they still share
        key = id(job.groups), mine
        if key not in known:
            known[key] = tuple(_demanding(group, mine, scale) for group in job.groups)
        return msgspec.structs.replace(job, groups=known[key])

    nodes = tuple(_providing(node, tuple(sets.values()), largest, scale) for node in snapshot.nodes)
    jobs = tuple(with_demand(job) for job in snapshot.jobs)
    return msgspec.structs.replace(snapshot, nodes=nodes, jobs=jobs, limits=(*snapshot.limits, *limits))


def _demanding(group: TaskGroup, names: tuple[str, ...], scale: int) -> TaskGroup:
    task = group.task
    if task is not None and task.gpus:
        amount: Fraction = task.gpus * part_of(task) * scale
        task = msgspec.structs.replace(task, extended={**task.extended, **dict.fromkeys(names, int(amount))})
    below = tuple(_demanding(child, names, scale) for child in group.groups)
    return msgspec.structs.replace(group, task=task, groups=below)


def _providing(node: Node, names: tuple[str, ...], largest: int, scale: int) -> Node:
    """Return a node with more of each resource than its cards hold tasks, and a task more, as its domain's limit."""
    cards = sum(gpu.count for gpu in node.gpus)
    # a card holds MIG instances of no more than two cards by what they count as
    extended = {**node.extended, **dict.fromkeys(names, (2 * cards + largest) * scale)}
    position = {**node.position, MODEL: node.gpus[0].model} if node.gpus else node.position
    return msgspec.structs.replace(node, extended=extended, position=position)
