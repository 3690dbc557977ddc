"""Instances with MIG tasks: those jobs and all others, each by the methods that suit them, and put together.

Instances and whole cards are different things, so the two sorts of jobs only meet at what hosts and domains have beside
cards. Bounds add up, whatever is there to meet at. Where something is short, the one sort is placed beside the other
both ways round, and a greedy rule fills in what still fits. Jobs that have both sorts of tasks count with the MIG
jobs in bounds, and run where a greedy rule started them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

import numpy as np

from placement.evaluate import Score, better, demand, scores
from placement.exact.ledger import Ledger
from placement.exact.mig.method import MigCards
from placement.exact.mig.places import only
from placement.exact.objectives.targets import COUNTED, targets_of
from placement.heuristics.first_fit import FirstFit
from placement.heuristics.greedy import Greedy
from placement.heuristics.worth import by_worth
from placement.index import members, numbered
from placement.instance import NO_INTS, Assignment, Instance, Ints, JobClass, NodeClass
from placement.mig.runs import TooMany
from placement.solver import Bound, Limits, Report, Result, Stop, silent
from placement.state import State

Solve = Callable[..., Result]
"""`placement.exact.run`."""


def takes_instances(instance: Instance, job_class: JobClass) -> bool:
    """Return whether some task of a job asks for a MIG instance."""
    return any(instance.shapes[leaf.shape].profile >= 0 for leaf in job_class.leaves)


def is_sliced(instance: Instance) -> bool:
    """Return whether some pending job asks for a MIG instance."""
    return instance.slots is not None and any(takes_instances(instance, one) for one in instance.job_classes)


def solve_sliced(
    instance: Instance,
    objectives: tuple[str, ...],
    limits: Limits,
    seed: int,
    start: Assignment | None,
    report: Report,
    solve: Solve,
) -> Result:
    """Return the best assignment found, with bounds; see `placement.solver.Solver.solve`."""
    first = start or Assignment.empty()
    mine = [number for number, one in enumerate(instance.job_classes) if takes_instances(instance, one)]
    others = [number for number in range(len(instance.job_classes)) if number not in set(mine)]
    with_mig = only(instance, mine)
    found = _instances(with_mig, objectives, limits, seed, _of(with_mig, first), silent if others else report)
    if others:
        return _together(instance, objectives, limits, seed, first, found, with_mig, only(instance, others), solve)
    if found.stop is Stop.OPTIMAL and _counted(objectives):
        return found
    best, stop = _best(instance, objectives, [found.assignment, first], limits), found.stop
    if stop is Stop.OPTIMAL and not _proven(scores(instance, best, objectives), found.bounds):
        stop = Stop.COMPLETE
    return replace(found, stop=stop, assignment=best)


def _instances(
    with_mig: Instance, objectives: tuple[str, ...], limits: Limits, seed: int, start: Assignment, report: Report
) -> Result:
    """Solve for the MIG jobs."""
    tied = [number for number, one in enumerate(with_mig.job_classes) if one.tied]
    if not tied:
        return _counted_out(with_mig, objectives, limits, seed, start, report)
    # counts know no ties: of all jobs they say a bound, and those with ties run where a greedy rule started them
    bounds = _counted_out(with_mig, objectives, limits.share(0.5), seed, Assignment.empty(), silent).bounds
    loose = only(with_mig, [number for number, one in enumerate(with_mig.job_classes) if not one.tied])
    kept = _of(only(with_mig, tied), start)
    ways = [start]
    for stays in (kept, Assignment.empty()) if len(kept) else (kept,):
        left = beside(loose, with_mig, stays, sliced=True)[0]
        found = _counted_out(left, objectives, limits, seed, _fitting(left, start), silent)
        ways.append(joined(found.assignment, stays))
    best = _best(with_mig, objectives, ways, limits)
    reached = scores(with_mig, best, objectives)
    # a bound on a later target takes the values of the earlier ones that counts reach as given
    first = next(
        (number for number in range(1, len(bounds)) if not _proven(reached[:number], bounds[:number])), len(bounds)
    )
    bounds = bounds[:first]
    stop = Stop.OPTIMAL if _proven(reached, bounds) else Stop.COMPLETE
    return Result(best, stop if limits.left else Stop.TIME, bounds)


def _counted_out(
    with_mig: Instance, objectives: tuple[str, ...], limits: Limits, seed: int, start: Assignment, report: Report
) -> Result:
    """Solve for MIG jobs by counts of instances, which look at no ties."""
    targets = targets_of(with_mig, objectives)
    found = Result(start, Stop.COMPLETE)
    if targets:
        with suppress(TooMany):
            few = next((name for name in objectives if name not in COUNTED), "") == "mig_cards"
            found = MigCards(Ledger(with_mig, targets, limits, seed, start, report), few).run()
    return found


def _together(
    instance: Instance,
    objectives: tuple[str, ...],
    limits: Limits,
    seed: int,
    first: Assignment,
    found: Result,
    with_mig: Instance,
    others: Instance,
    solve: Solve,
) -> Result:
    """Solve for the other jobs what is left beside the MIG tasks, and return both together."""
    left_over, same = beside(others, instance, found.assignment, sliced=False)
    half = limits if same else limits.share(0.5)
    rest = solve(left_over, objectives=objectives, limits=half, seed=seed, start=_fitting(left_over, first))
    ways = [joined(found.assignment, rest.assignment)]
    parts = [found, rest]
    if not same:
        # what is proven beside these MIG tasks is not proven beside others; and it may be better to place them last
        whole = beside(others, instance, Assignment.empty(), sliced=False)[0]
        rest = solve(whole, objectives=objectives, limits=limits, seed=seed, start=_fitting(whole, first))
        left = beside(with_mig, instance, rest.assignment, sliced=True)[0]
        last = _instances(left, objectives, limits, seed, _fitting(left, first), silent)
        ways.append(joined(last.assignment, rest.assignment))
        parts += [rest, last]
    best_there_is = same and _counted(objectives) and all(part.stop is Stop.OPTIMAL for part in parts)
    both = ways[0] if best_there_is else _best(instance, objectives, [*ways, first], limits)
    stop = next((one for one in _STOPS if one in {part.stop for part in parts}), Stop.COMPLETE)
    together = _added(instance, objectives, both, (found.bounds, with_mig.priorities), (rest.bounds, others.priorities))
    if stop in (Stop.GAP, Stop.OPTIMAL) and not (same and _counted(objectives)):
        stop = Stop.OPTIMAL if _proven(scores(instance, both, objectives), together) else Stop.COMPLETE
    seconds: dict[str, float] = {}
    for part in parts:
        for name, amount in part.seconds.items():
            seconds[name] = seconds.get(name, 0.0) + amount
    notes = tuple(dict.fromkeys(note for part in parts for note in part.notes))
    return Result(both, stop, together, seconds, notes=notes)


_STOPS = (Stop.FAILED, Stop.TIME, Stop.WORK, Stop.COMPLETE, Stop.GAP, Stop.OPTIMAL)
"""What all together stopped for: the first of these that one of them did."""


def _counted(objectives: Sequence[str]) -> bool:
    """Return whether all objectives are such as add up over both sorts of jobs."""
    return all(objective in COUNTED for objective in objectives)


def _best(instance: Instance, objectives: tuple[str, ...], ways: Sequence[Assignment], limits: Limits) -> Assignment:
    """Return the best of some assignments, each with whatever else a greedy rule can place beside it."""
    rule = Greedy(FirstFit, by_worth)
    best, reached = Assignment.empty(), scores(instance, Assignment.empty(), objectives)
    for way in ways:
        filled = rule.solve(instance, objectives=objectives, limits=limits, start=way).assignment
        for one in (way, filled):
            found = scores(instance, one, objectives)
            if better(found, reached):
                best, reached = one, found
    return best


def _of(instance: Instance, assignment: Assignment) -> Assignment:
    """Return the part of an assignment that is about the jobs of an instance."""
    jobs = [one.jobs for one in instance.job_classes]
    return assignment.of_jobs(np.concatenate(jobs) if jobs else NO_INTS)


# --- one sort beside the other -------------------------------------------------------------------------------


def beside(instance: Instance, whole: Instance, placed: Assignment, sliced: bool) -> tuple[Instance, bool]:
    """Return an instance with what tasks of other jobs leave, and whether that is all that its own could use.

    What is taken of more than all its jobs could use counts as not taken.

    Parameters
    ----------
    instance : Instance
        Some jobs of `whole`.
    whole : Instance
    placed : Assignment
        Tasks of others.
    sliced : bool
        Whether MIG cards are kept.
    """
    before, after = State(whole), State(whole)
    after.apply(placed)
    enough, enough_of_limits = _enough(instance, before)
    after.free[:] = np.where(after.free >= enough, before.free, after.free)
    limits = np.where(after.limits >= enough_of_limits, before.limits, after.limits)
    nodes = instance.nodes if sliced else instance.hosts
    used = np.zeros((whole.nodes, 1), dtype=np.int64)
    used[whole.hosts_of(placed.node)] = 1
    columns = [getattr(before, name) - getattr(after, name) for name in ("free", "units", "memory", "slack")]
    columns += [(before.slots - after.slots)[:, None]] if whole.slots is not None else []
    taken = np.hstack([*(column.reshape(whole.nodes, -1) for column in columns), used])[:nodes]
    same = not taken[:, :-1].any() and bool((limits == before.limits).all())
    keys = [(number, b"") for number in instance.node_class[:nodes].tolist()]
    for node in np.flatnonzero(taken.any(axis=1)).tolist():
        keys[node] = keys[node][0], taken[node].tobytes()
    number, first = numbered(keys)
    kept = instance.node_class[first]
    found = replace(
        instance,
        node_spec=instance.node_spec[:nodes],
        node_copy=instance.node_copy[:nodes],
        node_class=number,
        classes=tuple(
            _with_left(instance.classes[old], inside, after, node, bool(used[node]))
            for old, inside, node in zip(kept.tolist(), members(number, len(first)), first.tolist(), strict=True)
        ),
        admits_node=instance.admits_node[:, kept],
        bound=instance.bound[:, kept],
        domains=instance.domains[:, :nodes],
        limits=tuple(
            replace(row, capacity=max(0, left)) for row, left in zip(instance.limits, limits.tolist(), strict=True)
        ),
    )
    return (found if sliced else replace(found, slots=None, host=NO_INTS, mates={})), same


def _with_left(one: NodeClass, nodes: Ints, state: State, node: int, used: bool) -> NodeClass:
    """Return a class of nodes with what is left of one of them."""
    left = zip(one.cards, state.units[node].tolist(), state.memory[node].tolist(), strict=False)
    zones = one.zones
    if zones is not None:
        zones = replace(zones, slack=tuple(map(tuple, state.slack[node].tolist())))
    return replace(
        one,
        nodes=nodes,
        free=tuple(state.free[node].tolist()),
        cards=tuple((kind, units, memory) for (kind, _, _), units, memory in left),
        zones=zones,
        in_use=one.in_use or used,
        slots=int(state.slots[node]) if one.slots >= 0 else -1,
    )


def _enough(instance: Instance, state: State) -> tuple[Ints, Ints]:
    """Return of each resource, and of each limit, what all tasks of an instance and one more of each shape take."""
    wanted = demand(instance)
    wanted += wanted > 0
    shapes = np.flatnonzero(wanted).tolist()
    of_limits = [sum(int(wanted[s]) * state.limit_use(s, row) for s in shapes) for row in range(len(instance.limits))]
    return wanted @ state.demand, np.array(of_limits, dtype=np.int64)


def _fitting(instance: Instance, assignment: Assignment) -> Assignment:
    """Return the part of an assignment that is about the jobs of an instance, or nothing where that does not fit."""
    mine = _of(instance, assignment)
    state = State(instance)
    state.apply(mine)
    columns = [state.free, state.units, state.memory, state.slack, state.limits]
    if instance.slots is not None:
        columns.append(state.slots[mine.node[mine.node >= instance.hosts]])  # -1 where an instance has no place
    return mine if all(bool((column >= 0).all()) for column in columns) else Assignment.empty()


def joined(one: Assignment, other: Assignment) -> Assignment:
    """Return the tasks of two assignments of different jobs."""
    lengths = np.concatenate([np.diff(one.offset), np.diff(other.offset)])
    columns = [np.concatenate([getattr(one, name), getattr(other, name)]) for name in ("job", "leaf", "task", "node")]
    start = np.concatenate([one.offset[:-1], other.offset[:-1] + len(one.cards)])
    cards = np.concatenate([one.cards, other.cards])
    order = np.lexsort((columns[2], columns[1], columns[0]))
    offset = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths[order])])
    index = np.repeat(start[order] - offset[:-1], lengths[order]) + np.arange(int(offset[-1]))
    job, leaf, task, node = (column[order] for column in columns)
    return Assignment(job, leaf, task, node, cards[index], offset)


# --- bounds --------------------------------------------------------------------------------------------------

Part = tuple[Sequence[Bound], Sequence[int]]
"""Bounds of one sort of jobs, and the priorities that these have."""


def _added(
    instance: Instance, objectives: tuple[str, ...], assignment: Assignment, mine: Part, others: Part
) -> tuple[Bound, ...]:
    """Return the bounds of both sorts of jobs added up, phase by phase.

    A bound of a later phase takes the values of the earlier ones as given, for each sort its own. The sums only tell
    these where both are the best there can be, so the bounds end where an earlier phase is not proven. MIG cards are
    used by the one sort alone.
    """
    known = [({(one.objective, one.priority): one for one in bounds}, tiers) for bounds, tiers in (mine, others)]
    found: list[Bound] = []
    held: list[float] = []
    for score in scores(instance, assignment, objectives):
        key = score.objective, score.priority
        if score.objective not in COUNTED:
            cards = known[0][0].get(key) if score.objective == "mig_cards" else None
            if cards is not None and cards.value is not None:
                found.append(Bound(*key, cards.value, tuple(held)))
            break
        unit = instance.value_unit if score.objective == "value" else Fraction(1)
        total = 0
        for bounds, tiers in known:
            if score.priority is not None and score.priority not in tiers:
                continue  # no job of this sort has the priority
            bound = bounds.get(key)
            if bound is None or bound.value is None:
                return tuple(found)
            total += round(bound.value / float(unit))
        found.append(Bound(*key, float(total * unit), tuple(held)))
        held.append(float(score.value))
        if total * unit != score.value:
            break
    return tuple(found)


def _proven(reached: Sequence[Score], bounds: Sequence[Bound]) -> bool:
    """Return whether every value has a bound that equals it."""
    return len(bounds) == len(reached) and all(
        bound.value == float(score.value) for score, bound in zip(reached, bounds, strict=True)
    )
