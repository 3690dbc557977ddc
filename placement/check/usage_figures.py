"""Usage: the figures of what is in use, recomputed from the snapshot and the placed tasks."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from placement.check.case import Case, Placed
from placement.check.facts import GPUS
from placement.check.objectives import measure, place
from placement.check.violation import Violation, as_float, integer
from placement.plan import Tasks, Usage
from placement.snapshot import Snapshot

RULE = "usage"


def usage(snapshot: Snapshot, tasks: Tasks) -> Usage:
    """Return what is in use under placed tasks, running work included.

    Parameters
    ----------
    snapshot : Snapshot
        Valid, with every field honoured.
    tasks : Tasks
        Rows that name no task of the snapshot are left out; `check` reports them.

    Raises
    ------
    PlanError
        If the columns of the tasks differ in length.
    """
    return figures(place(snapshot, tasks))


def figures(placed: Placed) -> Usage:
    """Return the figures, each exact until it is turned into a float."""
    facts = placed.facts
    gpus = sum(fact.node.count * sum(card.healthy for card in fact.cards) for fact in facts.nodes)
    allocated = 0
    beyond = Fraction(0)  # what running work takes of cards beyond the whole of them is no use of the others
    for node in placed.load.nodes.values():
        for device in node.running.share.keys() | node.new.share.keys():
            allocated += node.share(device)
            beyond += max(Fraction(0), facts.base(GPUS, node.share(device)) - 1)
            gpus += not node.card(device).healthy
    taken = facts.base(GPUS, allocated)
    tasks_wanted = sum(fact.wanted * fact.job.count for fact in facts.pending())
    fragmented = measure(placed, "fragmentation") / 10 / gpus if gpus and tasks_wanted else None
    return Usage(
        gpus=float(gpus),
        gpus_allocated=as_float(taken),
        unallocated_percent=as_float(100 * (1 - (taken - beyond) / gpus)) if gpus else None,
        fragmented_percent=None if fragmented is None else as_float(fragmented),
        nodes=sum(fact.node.count for fact in facts.nodes),
        nodes_used=int(measure(placed, "nodes")),
        whole_nodes=int(measure(placed, "whole_nodes")),
        tasks_wanted=tasks_wanted,
        tasks_started=len(placed.rows),
        jobs_pending=sum(fact.job.count for fact in facts.pending()),
        jobs_started=len(placed.by_job),
    )


def judge(case: Case) -> Iterator[Violation]:
    """Yield every figure that is not what the tasks make."""
    due = figures(case)
    for name in Usage.__struct_fields__:
        found, right = getattr(case.plan.usage, name), getattr(due, name)
        if found != right:
            yield Violation(RULE, f"usage.{name}", f"the figure is {_text(found)}, the tasks make {_text(right)}")


def _text(value: float | None) -> str:
    return integer(value) if isinstance(value, int) else str(value)
