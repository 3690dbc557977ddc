"""Instances in which tenants are kept apart: who owns what is chosen first, and then it is a matter of filters.

Bounds are those of the instance without the rule, but for what running work owns. A plan comes from an owner for each
domain: with that settled, nodes admit the tasks of their owner alone, and the ordinary methods apply. Owners are those
of the best greedy answer, those to whom domains are worth most, those of the plan without the rule by majority, and
then those of the best plan with some domains given away again. Where there are few ways, all are tried, and the best of
them is proven to be the best there is. Between cards filters cannot say whose a card is; there plans that keep tenants
apart by node stand beside greedy ones. Small instances are solved task by task first, which is all where it ends with a
proof.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations_with_replacement, product

import numpy as np

from placement.evaluate import SENSE, Score, better, scores
from placement.exact.domains.ownership import Ownership, keeps, owned, within
from placement.exact.small.reference import MOST_TIMED, TIMED_NODES, is_small, solve_reference
from placement.heuristics.fgd import Fgd
from placement.heuristics.first_fit import FirstFit
from placement.heuristics.greedy import Greedy
from placement.heuristics.worth import by_worth
from placement.instance import Assignment, Instance, Ints
from placement.solver import Bound, Limits, Progress, Report, Result, Stop, silent
from placement.tenants import FREE

Solve = Callable[..., Result]
"""`placement.exact.run`."""

MOST_WAYS = 24
"""Ways to give domains to tenants up to which all of them are tried."""
ROUNDS, SMALL_ROUNDS, SMALL = 2, 6, 60
"""Times that some domains are given away again, and times where domains and wanted jobs are at most `SMALL`."""
ROUNDS_IN_TIME = 20
"""The same at most where a clock runs."""
FOR_GREEDY, FOR_BOUND, FOR_ROUND = 0.15, 0.4, 0.5
"""Parts of the time left for greedy rules, for the instance without the rule, and for each choice of owners."""
LEAST = 0.02
"""Seconds with which it is worth to go on."""
BY_CARD = (
    "tenants are kept apart by card, so the plan is the best of greedy rules and of plans that keep them apart by node"
)


def solve_tenants(
    instance: Instance,
    objectives: tuple[str, ...],
    limits: Limits,
    seed: int,
    start: Assignment | None,
    report: Report,
    solve: Solve,
) -> Result:
    """Return the best assignment found, with bounds; see `placement.solver.Solver.solve`."""
    return _Run(instance, objectives, limits, seed, report, solve).run(start)


class _Run:
    """One run: the best assignment so far, and the bounds."""

    def __init__(
        self,
        instance: Instance,
        objectives: tuple[str, ...],
        limits: Limits,
        seed: int,
        report: Report,
        solve: Solve,
    ) -> None:
        self.instance, self.objectives, self.limits, self.seed = instance, objectives, limits, seed
        self.report, self.solve = report, solve
        self.ownership = Ownership(instance, objectives)
        self.best = Assignment.empty()
        self.reached = scores(instance, self.best, objectives)
        self.bounds: tuple[Bound, ...] = ()
        self.seconds: dict[str, float] = {}
        self.stops: list[Stop] = []
        self.tried: set[bytes] = set()

    def run(self, start: Assignment | None) -> Result:
        """Return the result."""
        self._greedy(start)
        if self._task_by_task():
            return Result(self.best, Stop.OPTIMAL, self.bounds, self.seconds)
        # idle GPU counts as lost by what filters say, so with that objective they must say what they do for all
        exactly = "fragmentation" in self.objectives or self.ownership.by_card
        relaxed = replace(self.instance, apart=None) if exactly else owned(self.instance, self.ownership.first)
        whole = self._solved(relaxed, FOR_BOUND, self.best, silent)
        self.bounds = whole.bounds
        if keeps(self.instance, whole.assignment):
            self._take(whole.assignment)
        if not self._good_enough():
            self._owners(whole.assignment)
        stop = self._stop()
        notes = (BY_CARD,) if self.ownership.by_card and stop is not Stop.OPTIMAL else ()
        notes = tuple(dict.fromkeys((*whole.notes, *notes)))
        return Result(self.best, stop, self.bounds, self.seconds, notes=notes)

    def _greedy(self, start: Assignment | None) -> None:
        """Start from the best of some greedy answers: tenant by tenant they come to lie in fewer domains."""
        self._take(start)
        limits = self.limits.share(FOR_GREEDY)
        for rule in (FirstFit, Fgd):
            for order in (by_worth, by_tenant):
                if limits.left:
                    greedy = Greedy(rule, order)
                    self._take(greedy.solve(self.instance, objectives=self.objectives, limits=limits).assignment)

    def _task_by_task(self) -> bool:
        """Try to prove the best of a small instance, task by task."""
        if self.instance.slots is not None or not is_small(self.instance, MOST_TIMED):
            return False
        limits = replace(self.limits.share(FOR_BOUND), nodes=self.limits.nodes or TIMED_NODES)
        found = solve_reference(self.instance, self.objectives, limits, self.seed, self.best)
        if found is None:
            return False
        self._note(found)
        self._take(found.assignment)
        if not self.instance.exact or not _proven(self.reached, found.bounds):
            return False
        self.bounds = found.bounds
        return True

    def _owners(self, relaxed: Assignment) -> None:
        """Try owners of domains."""
        ways = list(self._all_ways())
        if ways:
            results = [self._with(owner, len(ways) - number) for number, owner in enumerate(ways)]
            # all there is was looked at, each to its end; what filters say is what idle GPU is measured by
            if "fragmentation" not in self.objectives and all(results) and self.instance.exact:
                self.bounds = _as_reached(self.reached)
            return
        self._with(self.ownership.of(self.best))
        self._with(self.ownership.of(Assignment.empty()))
        self._with(self.ownership.of(relaxed))
        rng = np.random.default_rng(self.seed)
        small = self.ownership.domains + self.instance.jobs <= SMALL
        rounds = SMALL_ROUNDS if small else ROUNDS
        for _ in range(rounds if self.limits.deadline == math.inf else ROUNDS_IN_TIME):
            if self._good_enough() or self.limits.left < LEAST:
                return
            self._with(self.ownership.of(self.best, rng))

    def _all_ways(self) -> Iterator[Ints]:
        """Yield all ways to give the free domains to tenants, none if they are too many or would prove nothing."""
        alike = self.ownership.alike()
        tenants = self.ownership.waiting
        if self.ownership.by_card or not len(tenants):
            return
        count = math.prod(math.comb(len(some) + len(tenants) - 1, len(some)) for some in alike)
        if count > MOST_WAYS:
            return
        for chosen in product(*(combinations_with_replacement(tenants, len(some)) for some in alike)):
            owner = self.ownership.first.copy()
            for some, whose in zip(alike, chosen, strict=True):
                owner[some] = whose
            yield owner

    def _with(self, owner: Ints, rounds: int = 0) -> bool:
        """Solve with the domains' owners given, and return whether the answer is proven to be the best with these."""
        if self.limits.left < LEAST and self.stops:
            self.stops.append(Stop.TIME)
            return False
        owner = self.ownership.closed(owner)
        if owner.tobytes() in self.tried:
            return False
        self.tried.add(owner.tobytes())
        settled = owned(self.instance, owner)
        begin = within(settled, self.best)
        if len(begin) < len(self.best) or not len(begin):
            greedy = Greedy(FirstFit, by_worth)
            limits = self.limits.share(FOR_ROUND / 2)
            begin = greedy.solve(settled, objectives=self.objectives, limits=limits, start=begin).assignment
        found = self._solved(settled, 1 / rounds if rounds else FOR_ROUND, begin, silent)
        self._take(found.assignment)
        return _proven(scores(settled, found.assignment, self.objectives), found.bounds)

    def _solved(self, instance: Instance, part: float, start: Assignment, report: Report) -> Result:
        limits = self.limits.share(part)
        found = self.solve(
            instance, objectives=self.objectives, limits=limits, seed=self.seed, start=start, report=report
        )
        self._note(found)
        return found

    def _note(self, found: Result) -> None:
        for name, amount in found.seconds.items():
            self.seconds[name] = self.seconds.get(name, 0.0) + amount
        self.stops.append(found.stop)

    def _take(self, assignment: Assignment | None) -> None:
        """Take an assignment that keeps the rule as the best so far if it is better."""
        if assignment is None:
            return
        found = scores(self.instance, assignment, self.objectives)
        if better(found, self.reached):
            self.best, self.reached = assignment, found
            self.report(Progress("tenants", self.best, self.bounds))

    def _good_enough(self) -> bool:
        """Return whether nothing is left to find, or the gap that was asked for is reached."""
        if _proven(self.reached, self.bounds):
            return True
        if not self.limits.gap or not self.bounds or self.bounds[0].value is None:
            return False
        value = float(self.reached[0].value)
        return abs(self.bounds[0].value - value) <= self.limits.gap * abs(value)

    def _stop(self) -> Stop:
        if _proven(self.reached, self.bounds):
            return Stop.OPTIMAL
        if self._good_enough() and _proven(self.reached, self.bounds, since=1):
            return Stop.GAP
        stops = (Stop.FAILED, Stop.TIME, Stop.WORK)
        return next((stop for stop in stops if stop in self.stops), Stop.COMPLETE)


def by_tenant(instance: Instance, objectives: tuple[str, ...]) -> Ints:
    """Return the pending jobs by worth, but those of a tenant one after the other within a priority."""
    order = by_worth(instance, objectives)
    tenant = np.array([max(_tenants(instance, number)) for number in range(len(instance.job_classes))], dtype=np.int64)
    priority = np.array([one.priority for one in instance.job_classes], dtype=np.int64)
    number = instance.job_class[order]
    # tenants come in the order of their first jobs
    _, first, place = np.unique(tenant[number], return_index=True, return_inverse=True)
    return order[np.lexsort((np.arange(len(order)), first[place.reshape(-1)], -priority[number]))]


def _tenants(instance: Instance, number: int) -> set[int]:
    return {FREE} | {instance.shapes[leaf.shape].tenant for leaf in instance.job_classes[number].leaves}


def _as_reached(reached: tuple[Score, ...]) -> tuple[Bound, ...]:
    """Return bounds that equal what was reached."""
    values = [float(score.value) for score in reached]
    return tuple(
        Bound(score.objective, score.priority, value, tuple(values[:number]))
        for number, (score, value) in enumerate(zip(reached, values, strict=True))
    )


def _proven(reached: tuple[Score, ...], bounds: tuple[Bound, ...], since: int = 0) -> bool:
    """Return whether every value, or every one from some phase on, has a bound that equals it and holds for it."""
    values = [float(score.value) for score in reached]
    if len(bounds) != len(values):
        return False
    signs = [SENSE[score.objective] for score in reached]
    return all(
        bound.value == value
        and all((have - held) * sign >= 0 for have, held, sign in zip(values, bound.held, signs, strict=False))
        for bound, value in zip(bounds[since:], values[since:], strict=True)
    )
