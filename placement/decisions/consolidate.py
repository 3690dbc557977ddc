"""Consolidation: which running MIG instances to move, at a cost, so that more of what waits can start."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from placement import arguments
from placement.compile import compile as compile_snapshot
from placement.decisions.consolidated import Case, Found, answer, bounded, standstill
from placement.decisions.consolidated import Consolidation as Consolidation
from placement.decisions.consolidated import Move as Move
from placement.decisions.others import with_others
from placement.errors import Problem, SolverError, UsageError
from placement.honoured import refuse_unhonoured
from placement.instance import Instance
from placement.naming import job_names
from placement.snapshot import Job, Snapshot, TaskGroup
from placement.snapshot.read import verified
from placement.solver import Limits, Stop

if TYPE_CHECKING:
    from placement.exact.mig.moves import Moved
    from placement.exact.mig.settle import Mover

MOVE_COST = 0.1
"""What moving an instance costs, as a part of what starting a task like it is worth, unless said otherwise."""

FEW_CARDS, CARDS_IN_TIME = 200, 2000
"""MIG cards up to which they are told apart by host where hosts lack something, without and with a time limit."""

CLOSE = 1e-9
"""Relative gap that is none: bounds of the solver are floating-point numbers."""

PREEMPTIBLE = "jobs.preemptible"
"""The field that says who may move; a plan of what starts is made without it."""


def consolidate(
    snapshot: Snapshot,
    *,
    move_cost: float = MOVE_COST,
    max_moves: int | None = None,
    time_limit: float | None = None,
    gap: float = 0.0,
    seed: int = 0,
    without: Sequence[str] = (),
) -> Consolidation:
    """Return which running MIG instances to move, and what starts in the room that makes.

    Running jobs may move that are ``preemptible``, have MIG tasks alone and say nothing of where these lie relative to
    one another; all others stay. What waits counts as far as the same holds of it, by its weight or value, and all that
    counts must be of one priority. What does not count starts where that leaves room, and changes neither worth nor
    bound. If moving costs nothing, more may move than needs to.

    The answer is the best there is, within the gap, where nothing but instances runs short. Where hosts do, it is for
    up to `FEW_CARDS` cards without media engines that can run out; else, and where domains do, the bound stays one.
    Given time, it is never worse than moving nothing, nor than what `placement.solve` starts of what counts.

    Parameters
    ----------
    snapshot : Snapshot
    move_cost : float
        What moving a task costs, as a part of what starting one like it is worth; at least 0.
    max_moves : int, optional
        Most moves.
    time_limit : float, optional
        Seconds that the search tries to keep.
    gap : float
        Relative gap that is good enough, in [0, 1].
    seed : int
    without : sequence of str
        As in `placement.solve`.

    Raises
    ------
    SnapshotError
        If the snapshot is wrong or uses fields that no rule honours yet.
    UsageError
        If an argument is out of range, or jobs of several priorities wait.
    SolverError
        If a card can hold too many different things, or the answer is refused by the check.
    """
    # not at the top: who only imports the package must not load the modelling language
    from placement.mig.runs import TooMany

    _refuse(move_cost, max_moves)
    arguments.refuse_arguments(None, "exact", time_limit, gap, seed, ("exact",))
    # numpy's numbers are as good, and have no place in a plan
    time_limit, gap, seed = None if time_limit is None else float(time_limit), float(gap), int(seed)
    deadline = math.inf if time_limit is None else time.monotonic() + time_limit
    snapshot = verified(snapshot)
    movable = frozenset(job.name for job in snapshot.jobs if PREEMPTIBLE not in without and _may_move(job))
    free = msgspec.structs.replace(snapshot, jobs=tuple(_freed(job, movable) for job in snapshot.jobs))
    instance = compile_snapshot(refuse_unhonoured(free, without))
    if instance.slots is None:
        raise UsageError.one(
            "no waiting job and no movable one asks for a MIG instance", "use `placement solve`", path="jobs"
        )
    if instance.apart is not None:
        what = "it keeps tenants apart, of which consolidation knows nothing"
        raise UsageError.one(what, "leave the field out, or use `placement solve`", path="policy.tenants_apart")
    _refuse_priorities(instance, movable)
    preemptible = (PREEMPTIBLE,) if any(job.preemptible for job in snapshot.jobs) else ()
    movers = _movers(instance, snapshot, movable, float(move_cost))
    limits = Limits(deadline, gap)
    left_out = tuple(dict.fromkeys((*without, *preemptible)))
    case = Case(snapshot, instance, movers, limits, time_limit, seed, left_out)
    try:
        return _best(case, max_moves)
    except TooMany:
        raise SolverError("a card can hold too many different sets of instances with media extensions") from None


def _best(case: Case, max_moves: int | None) -> Consolidation:
    """Return the best answer; hosts are looked at closely, and standing still is tried, where the first is not enough.

    What moves for the sake of something that then finds no place moves in vain, so standing still is an answer too: by
    counts, and by all that `placement.solve` knows. Each of these has half of the time left, the last all of it.
    """
    from placement.exact.mig.moves import MovingCards

    def found(most: int | None, by_host: bool, limits: Limits) -> Moved:
        return MovingCards(case.instance, case.movers, most, limits, case.seed, by_host).run()

    first = found(max_moves, False, case.limits)
    bound = first.bound
    best = answer(case, first, bound)
    in_time = first.in_time
    most_cards = FEW_CARDS if case.time_limit is None else CARDS_IN_TIME
    closely = first.short and case.instance.nodes - case.instance.hosts <= most_cards
    ways = [(max_moves, False), (max_moves, True), (0, False), (0, True)]
    for most, by_host in dict.fromkeys(ways if case.movers else ways[:2]):
        if (most, by_host) == ways[0] or (by_host and not closely):
            continue
        if _is_enough(best, case) or not case.limits.left:
            break
        moved = found(most, by_host, case.limits.share(0.5))
        if most == max_moves and moved.bound is not None:
            bound = moved.bound if bound is None else min(bound, moved.bound)
        in_time &= moved.in_time
        best = bounded(case, max(best, answer(case, moved, None), key=_net), bound)
    if not _is_enough(best, case) and (first.short or case.limits.left):
        still = standstill(case)
        in_time &= still.answer.plan.reproducible
        best = bounded(case, max(best, still, key=_net), bound)
    chosen = with_others(case, best).answer
    if not in_time:
        # whichever is the best, with more time another might have been
        chosen.plan.stop, chosen.plan.reproducible = Stop.TIME.value, False
    return chosen


def _net(found: Found) -> float:
    return found.answer.worth - found.answer.cost


def _is_enough(found: Found, case: Case) -> bool:
    return found.answer.gap is not None and found.answer.gap <= case.limits.gap + CLOSE


def _refuse(move_cost: float, max_moves: int | None) -> None:
    problems = []
    is_number = isinstance(move_cost, Real) and not isinstance(move_cost, bool)
    if not is_number or not math.isfinite(move_cost) or move_cost < 0:
        problems.append(Problem("move_cost", f"is {move_cost!r:.40}", "give a number of at least 0, such as 0.1"))
    if max_moves is not None:
        is_whole = isinstance(max_moves, Integral) and not isinstance(max_moves, bool)
        if not is_whole or max_moves < 0:
            problems.append(
                Problem("max_moves", f"is {max_moves!r:.40}", "give a whole number of at least 0, or none for no limit")
            )
    if problems:
        raise UsageError(problems)


def _refuse_priorities(instance: Instance, movable: frozenset[str]) -> None:
    from placement.exact.mig.moves import counted

    jobs = instance.snapshot.jobs
    waiting = {
        instance.job_classes[number].priority
        for number in counted(instance)
        if any(jobs[entry].name not in movable for entry in instance.job_spec[instance.job_classes[number].jobs])
    }
    if len(waiting) > 1:
        listed = ", ".join(map(str, sorted(waiting, reverse=True)))
        raise UsageError.one(
            f"jobs of the priorities {listed} wait", "consolidate for those of one priority at a time", path="jobs"
        )


def _may_move(job: Job) -> bool:
    return (
        job.running is not None and job.preemptible and not job.affinity and all(map(_asks_for_instances, job.groups))
    )


def _asks_for_instances(group: TaskGroup) -> bool:
    """Return whether a group has MIG tasks alone and says nothing of where they lie relative to one another."""
    if group.topology is not None:
        return False
    if group.task is not None:
        return bool(group.task.mig_profile)
    return all(_asks_for_instances(child) for child in group.groups)


def _freed(job: Job, movable: frozenset[str]) -> Job:
    """Return a job as waiting if it may move; whether jobs may be preempted is settled by that."""
    running = None if job.name in movable else job.running
    return msgspec.structs.replace(job, running=running, preemptible=False)


def _movers(instance: Instance, snapshot: Snapshot, movable: frozenset[str], move_cost: float) -> list[Mover]:
    host_of = {instance.node_name(node): node for node in range(instance.hosts)}
    card_of = {
        (int(instance.host[node]), instance.node_cards[node][0]): node for node in range(instance.hosts, instance.nodes)
    }
    from placement.exact.mig.settle import Mover

    number = {name: job for job, name in enumerate(job_names(instance, np.arange(instance.jobs)))}

    movers = []
    for job in snapshot.jobs:
        if job.name in movable and job.running is not None:
            one = instance.job_classes[instance.job_class[number[job.name]]]
            leaves = {leaf.path: leaf for leaf in one.leaves}
            for task in job.running.tasks:
                leaf = leaves[task.group]
                node = card_of[host_of[task.node], task.gpus[0]]
                cost = move_cost * leaf.value
                movers.append(
                    Mover(number[job.name], leaf.leaf, task.index, leaf.shape, node, task.mig_starts[0], cost)
                )
    return movers
