"""Usage: the figures of what is in use, recomputed from the snapshot and the placed tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from placement.check.case.case import Case, Placed
from placement.check.exact import at_least_zero
from placement.check.facts.amounts import GPUS
from placement.check.facts.facts import Facts
from placement.check.values.localities import locality_of
from placement.check.values.objectives import Score, measure, place, refuse_unknown, scores
from placement.check.values.run_time import run_times_of
from placement.check.violation import Violation, as_float, integer
from placement.plan import Locality, RunTimes, Tasks, Usage
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


def worth(
    snapshot: Snapshot, tasks: Tasks, objectives: Sequence[str]
) -> tuple[list[Score], Usage, Locality | None, RunTimes | None]:
    """Return scores, figures, locality and run times, each of which would look the tasks up anew by itself."""
    refuse_unknown(objectives)
    placed = place(snapshot, tasks)
    return scores(placed, objectives), figures(placed), locality_of(placed), run_times_of(placed)


def figures(placed: Placed) -> Usage:
    """Return the figures, each exact until it is turned into a float."""
    facts, load = placed.facts, placed.load
    healthy = np.array([card.healthy for card in facts.cards], dtype=np.bool_)
    used, share, one = load.share > 0, load.share, facts.scale[GPUS]
    gpus = _healthy(facts) + int((used & ~healthy[load.card]).sum())
    taken = facts.base(GPUS, share.sum())
    # what running work takes of cards beyond the whole of them is no use of the others
    beyond = facts.base(GPUS, at_least_zero(share - one).sum())
    jobs = facts.waiting()
    tasks_wanted = sum(gang.wanted * number for gang, number in zip(facts.gangs, jobs, strict=True))
    fragmented = measure(placed, "fragmentation") / 10 / gpus if gpus and tasks_wanted else None
    return Usage(
        gpus=float(gpus),
        gpus_allocated=as_float(taken),
        unallocated_percent=as_float(100 * (1 - (taken - beyond) / gpus)) if gpus else None,
        fragmented_percent=None if fragmented is None else as_float(fragmented),
        nodes=int(facts.node_names.first[-1]),
        nodes_used=int(measure(placed, "nodes")),
        whole_nodes=int(measure(placed, "whole_nodes")),
        tasks_wanted=tasks_wanted,
        tasks_started=len(placed.rows),
        jobs_pending=sum(jobs),
        jobs_started=len(placed.started[0]),
    )


def _healthy(facts: Facts) -> int:
    """Return the number of healthy cards."""
    number = [sum(card.healthy for card in kind.cards) for kind in facts.kinds]
    return sum(cards * nodes for cards, nodes in zip(number, facts.nodes_of_kind(), strict=True))


def judge(case: Case) -> Iterator[Violation]:
    """Yield every figure that is not what the tasks make."""
    due = figures(case)
    for name in Usage.__struct_fields__:
        found, right = getattr(case.plan.usage, name), getattr(due, name)
        if found != right:
            yield Violation(RULE, f"usage.{name}", f"the figure is {_text(found)}, the tasks make {_text(right)}")


def _text(value: float | None) -> str:
    return integer(value) if isinstance(value, int) else str(value)
