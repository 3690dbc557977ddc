r"""Which cards to partition: MIG mode on for some of those that may be switched, off for the others.

With k of the cards in MIG mode there is an ordinary snapshot and an ordinary plan, so several k are tried: first what
both sorts of tasks would use could each have all cards, then the middle of the interval to which the bound leaves most;
intervals that it rules out are left alone. For each k several choices
of cards are tried: those of nodes with fewest, those that MIG tasks would use or others would not, alone and under
the caps below, and those of the best choice so far with most instances.

For a bound let :math:`M(k)` be one on what MIG tasks are worth when no more than k cards' worth of instances lie on
switched cards, and :math:`W(k)` one on what all other tasks are worth when k cards less are there for them, whichever
these are: both are caps on the cluster, which hold for every choice of k cards. With k cards no more than
*M*(k) + *W*(k) is reached; and as *M* grows with k and *W* falls, between neighbouring k, k' for which they are known

.. math:: \mathrm{value} \le M(k') + W(k).

The largest of all these bounds every choice.
"""

from __future__ import annotations

import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral

from placement import arguments
from placement.decisions.entries import Spot
from placement.decisions.modes import asks, capped, cards_of, only, switchable, waits, with_modes
from placement.engine import solve
from placement.errors import UsageError
from placement.honoured import refuse_unhonoured
from placement.plan import Plan
from placement.snapshot import Snapshot
from placement.snapshot.leaves import leaf_tasks
from placement.snapshot.read import verified

TRIES = 7
"""Numbers of cards that are tried, unless said otherwise."""

PART, APART = 0.4, 0.12
"""Share of the time left that a solve gets, and one for one sort of tasks alone."""

CLOSE = 1e-9
"""Relative gap that is none: bounds are floating-point numbers."""

ADDED = ("value", "tasks")
"""Objectives that add up over jobs, so that bounds on two sorts of jobs are one on all."""

Choice = Callable[[int], frozenset[Spot]]
"""Which cards to switch on, given how many."""


@dataclass(frozen=True, slots=True)
class Partition:
    """Which cards to have in MIG mode, and the plan for that.

    Attributes
    ----------
    on, off : tuple of (str, int)
        Cards to switch on and off, by node and index.
    after : Snapshot
        The cluster with these modes.
    plan : Plan
        Checked, for `after`. Its bounds are those of this choice.
    value : float
        Of the plan's first objective.
    bound : float or None
        No choice of cards allows more; None where nothing is proven, as where a job has tasks of both sorts.
    gap : float or None
    tried : tuple of (int, float)
        Cards in MIG mode of those that may be switched, and the value reached.
    """

    on: tuple[Spot, ...]
    off: tuple[Spot, ...]
    after: Snapshot
    plan: Plan
    value: float
    bound: float | None
    gap: float | None
    tried: tuple[tuple[int, float], ...]


def partition(
    snapshot: Snapshot,
    *,
    tries: int = TRIES,
    time_limit: float | None = None,
    gap: float = 0.0,
    seed: int = 0,
    without: Sequence[str] = (),
) -> Partition:
    """Return which cards to partition, of those that are ``mig_switchable`` and on which nothing runs.

    Parameters
    ----------
    snapshot : Snapshot
        Whose first objective is ``value`` or ``tasks``.
    tries : int
        Numbers of cards to try, at least 2.
    time_limit : float, optional
        Seconds in all that the search tries to keep; each solve gets a part of what is left.
    gap, seed, without
        As in `placement.solve`.

    Raises
    ------
    SnapshotError
        If the snapshot is wrong or uses fields that no rule honours yet.
    UsageError
        If an argument is out of range, or no card may be switched.
    """
    if not isinstance(tries, Integral) or isinstance(tries, bool) or tries < 2:
        raise UsageError.one(f"is {tries!r:.40}", "give a whole number of at least 2", path="tries")
    arguments.refuse_arguments(None, "exact", time_limit, gap, seed, ("exact",))
    snapshot = verified(snapshot)
    cards = switchable(snapshot)
    if not cards:
        raise UsageError.one(
            "no card may be switched: none is mig_switchable, healthy, of a model with MIG, and without running work",
            'say "mig_switchable": true where that is so',
            path="nodes",
        )
    search = _Search(snapshot, cards, gap, seed, without, time_limit, tries)
    search.run()
    return search.answer()


class _Search:
    """Tries numbers of cards."""

    def __init__(
        self,
        snapshot: Snapshot,
        cards: list[Spot],
        gap: float,
        seed: int,
        without: Sequence[str],
        time_limit: float | None,
        tries: int,
    ) -> None:
        self.snapshot, self.cards, self.gap, self.seed = snapshot, cards, gap, seed
        self.backwards = switchable(snapshot, backwards=True)
        self.without, self.tries = without, tries
        # some of its jobs are a snapshot too: what names others is not honoured, so it is left out or refused here
        self.used = refuse_unhonoured(snapshot, without)
        self.deadline = math.inf if time_limit is None else time.monotonic() + time_limit
        self.plans: dict[int, tuple[Snapshot, Plan, frozenset[Spot]]] = {}
        self.instances: dict[int, Plan | None] = {}
        self.others: dict[int, Plan | None] = {}
        self.tried: dict[int, set[frozenset[Spot]]] = defaultdict(set)
        self._beside = 0.0
        waiting = [job for job in snapshot.jobs if job.running is None]
        self._mixed = any(
            asks(job) and any(task.gpus and not task.mig_profile for _, task in leaf_tasks(job.groups))
            for job in waiting
        )

    # --- which numbers -------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Try numbers of cards until the best is good enough, or the tries or the time are used up."""
        self._bound_instances(len(self.cards))
        self._bound_others(0)
        # where time is short, another number is worth more than another choice of so many cards
        usual: list[Choice] = [self._front]
        usual += [self._used_alone, self._used_within] if self.deadline == math.inf else []
        for number in self._asked_for():
            self._try(number, usual)
        looked_at: set[int] = set()
        while not self._is_done():
            best = self._best()
            if best not in looked_at:
                looked_at.add(best)
                self._try(best, (self._used_alone, self._left_alone, self._used_within, self._as_in_best))
                continue
            following = self._next()
            if following is None or len(self.plans) >= self.tries:
                break
            self._try(following, usual)

    def _asked_for(self) -> list[int]:
        """Return how many cards MIG tasks would use, or leave to others, had each sort all of them.

        Where that is enough for both it is what MIG tasks use, or what is halfway if some tasks found no place.
        """
        last = len(self.cards)
        (most, all_of_them), (whole, all_others) = (self._used(plan) for plan in (self.instances[last], self.others[0]))
        left = last - whole
        if most > left:
            return [left, most]
        return [most if all_of_them and all_others else (most + left) // 2]

    def _used(self, plan: Plan | None) -> tuple[int, bool]:
        """Return how many of the cards a plan uses, and whether all tasks run.

        Those that found no place in the time are taken to use as much as the others, as far as there are cards.
        """
        if plan is None:
            return 0, True
        used = _uses(plan)
        cards, tasks = sum(1 for spot in self.cards if used[spot]), len(plan.tasks)
        missing = sum(job.wanted - job.placed for job in plan.pending if job.reason == "no_room")
        return min(len(self.cards), cards * (tasks + missing) // max(1, tasks)), not missing

    def _next(self) -> int | None:
        """Return a number that is not tried yet, where the bound leaves most; of equals beside the best one."""
        points = sorted({0, len(self.cards), *self.plans})
        best = self._best()
        value = self._value(best)
        found: list[tuple[float, bool, int, int]] = []
        for low, high in pairwise(points):
            new = [(low + high) // 2] if high - low > 1 else [one for one in (low, high) if one not in self.plans]
            bound = self._between(low, high)
            most = math.inf if bound is None else bound
            if new and most >= value * (1 - CLOSE):
                found.append((most, best in (low, high), high - low, new[0]))
        return max(found)[-1] if found else None

    def _value(self, number: int) -> float:
        return float(self.plans[number][1].phases[0].value)

    def _is_enough(self) -> bool:
        """Return whether the best is within the gap, and nothing that counts later could be better."""
        plan = self.plans[self._best()][1]
        bound, value = self._overall(), plan.phases[0].value
        close = bound is not None and bound - value <= (self.gap + CLOSE) * abs(value)
        return close and (len(plan.phases) == 1 or not plan.pending)

    def _is_done(self) -> bool:
        """Return whether the best is good enough, or a solve would have little time beside compiling and checking."""
        return self._is_enough() or self.deadline - time.monotonic() <= 2 * self._beside

    # --- one number ----------------------------------------------------------------------------------------------

    def _try(self, number: int, choices: Sequence[Choice]) -> None:
        """Try some sets of so many cards, until the best is good enough or time is up; one in any case."""
        for choose in choices:
            if self.plans and self._is_done():
                return
            on = choose(number)
            if on in self.tried[number]:
                continue
            self.tried[number].add(on)
            after = with_modes(self.snapshot, {spot: spot in on for spot in self.cards})
            plan = self._solved(after, self.without)
            if number not in self.plans or _rank(plan) > _rank(self.plans[number][1]):
                self.plans[number] = after, plan, on

    def _front(self, number: int) -> frozenset[Spot]:
        """Return cards of the nodes with fewest; of counted nodes such that the smaller part gets listed."""
        few = 2 * number <= len(self.cards)
        return frozenset((self.backwards if few else self.cards)[:number])

    def _used_alone(self, number: int) -> frozenset[Spot]:
        return self._wished_for(number, self.instances[len(self.cards)], self.others[0])

    def _left_alone(self, number: int) -> frozenset[Spot]:
        """Return the cards that other tasks would not use if they could have all."""
        whole = _uses(self.others[0])
        return frozenset(sorted(self.cards, key=lambda spot: whole[spot])[:number])

    def _used_within(self, number: int) -> frozenset[Spot]:
        self._bound_instances(number)
        self._bound_others(number)
        return self._wished_for(number, self.instances[number], self.others[number])

    def _as_in_best(self, number: int) -> frozenset[Spot]:
        """Return the cards of the best choice so far: those without instances leave first, those that idle come."""
        _, plan, on = self.plans[self._best()]
        used = _uses(plan)
        order = sorted(self.cards, key=lambda spot: (spot not in on, -used[spot] if spot in on else used[spot]))
        return frozenset(order[:number])

    def _wished_for(self, number: int, instances: Plan | None, others: Plan | None) -> frozenset[Spot]:
        """Return the cards that MIG tasks use most where they could have all, and other tasks not at all."""
        mig, whole = _uses(instances), _uses(others)
        place = {spot: i for i, spot in enumerate(self.cards)}
        order = sorted(self.cards, key=lambda spot: (whole[spot] - mig[spot], place[spot]))
        return frozenset(order[:number])

    def _solved(self, snapshot: Snapshot, without: Sequence[str], share: float = PART) -> Plan:
        """Return the plan for a snapshot, found in a share of the time left, or in all that is left for the last."""
        left = self.deadline - time.monotonic()
        part = left if share == PART and share * left <= 2 * self._beside else share * left
        limit = None if left == math.inf else max(0.05, part)
        plan = solve(snapshot, gap=self.gap, time_limit=limit, seed=self.seed, without=without)
        self._beside = max(self._beside, plan.seconds["compile"] + plan.seconds["check"])
        return plan

    # --- bounds --------------------------------------------------------------------------------------------------

    def _bound_instances(self, number: int) -> None:
        """Solve for the MIG tasks where all cards are switched on, and so many may be used."""
        if number not in self.instances:
            _, with_mig = self._fixed()
            modes = dict.fromkeys(self.cards, True)
            self.instances[number] = self._alone(with_modes(only(self.used, mig=True), modes), with_mig + number)

    def _bound_others(self, number: int) -> None:
        """Solve for the other tasks where all cards are switched off, and all but so many may be used."""
        if number not in self.others:
            fixed, with_mig = self._fixed()
            modes = dict.fromkeys(self.cards, False)
            left = fixed - with_mig + len(self.cards) - number
            self.others[number] = self._alone(with_modes(only(self.used, mig=False), modes), left)

    def _alone(self, snapshot: Snapshot, cards: int) -> Plan | None:
        return self._solved(capped(snapshot, cards), (), APART) if waits(snapshot) else None

    def _fixed(self) -> tuple[int, int]:
        """Return how many cards cannot be switched, and how many of these have MIG on."""
        mine = set(self.cards)
        others = [gpu for node, card, gpu in cards_of(self.snapshot, every=True) if (node, card) not in mine]
        return len(others), sum(gpu.mig_enabled for gpu in others)

    def _bound(self, apart: Plan | None) -> float | None:
        """Return what a plan for one sort of jobs proves of the first objective, 0 where none of them counts in it."""
        first = next(iter(self.plans.values()))[1].phases[0]
        if first.objective not in ADDED or self._mixed:
            return None
        if apart is None or apart.phases[0].priority != first.priority:
            return 0.0
        return apart.phases[0].bound

    def _between(self, low: int, high: int) -> float | None:
        """Return a bound on what is reached with a number of cards from one to another."""
        above = min(number for number in self.instances if number >= high)
        below = max(number for number in self.others if number <= low)
        more, less = self._bound(self.instances[above]), self._bound(self.others[below])
        return None if more is None or less is None else more + less

    def _overall(self) -> float | None:
        """Return a bound on what is reached with any number of cards: those known, and those strictly between them."""
        known = sorted({0, len(self.cards), *self.instances, *self.others})
        found = [self._between(number, number) for number in known]
        found += [self._between(low, high) for low, high in pairwise(known) if high - low > 1]
        return None if any(one is None for one in found) else max(one for one in found if one is not None)

    def _best(self) -> int:
        return max(sorted(self.plans), key=self._order)

    def _order(self, number: int) -> tuple[list[float], int]:
        return _rank(self.plans[number][1]), -number

    def answer(self) -> Partition:
        """Return the best of what was tried."""
        after, plan, chosen = self.plans[self._best()]
        was = {(node, card): gpu.mig_enabled for node, card, gpu in cards_of(self.snapshot)}
        value = float(plan.phases[0].value)
        bound = self._overall()
        distance = (
            None if bound is None or (value == 0 and bound > 0) else max(0.0, bound - value) / (abs(value) or 1.0)
        )
        return Partition(
            on=tuple(spot for spot in self.cards if spot in chosen and not was[spot]),
            off=tuple(spot for spot in self.cards if spot not in chosen and was[spot]),
            after=after,
            plan=plan,
            value=value,
            bound=None if bound is None else max(bound, value),
            gap=distance,
            tried=tuple((number, float(self.plans[number][1].phases[0].value)) for number in sorted(self.plans)),
        )


def _rank(plan: Plan) -> list[float]:
    return [phase.value if phase.sense == "max" else -phase.value for phase in plan.phases]


def _uses(plan: Plan | None) -> Counter[Spot]:
    """Return how many tasks of a plan are on each card."""
    tasks = () if plan is None else zip(plan.tasks.node, plan.tasks.gpus, strict=True)
    return Counter((node, card) for node, cards in tasks for card in cards)
