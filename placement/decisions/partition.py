r"""Which cards to partition: MIG mode on for some of those that may be switched, off for the others.

With k of the cards in MIG mode there is an ordinary snapshot and an ordinary plan. Several k are tried, at first far
apart and then around the best, each with two choices of cards: those of nodes with fewest, and those that MIG tasks
would use if they could have all and others would not. For a bound let :math:`M(k)` be one on what MIG tasks are worth
when no more than k cards' worth of instances lie on switched cards, and :math:`W(k)` one on what all other tasks are
worth when k cards less are there for them, whichever these are: both are caps on the cluster, which hold for every
choice of k cards. *M* grows with k and *W* falls, so between two neighbouring k, k' that were tried

.. math:: \mathrm{value} \le M(k') + W(k),

and the largest of these over all neighbours bounds every choice.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from numbers import Integral

import msgspec

from placement import arguments, units
from placement.engine import solve
from placement.errors import UsageError
from placement.hardware.mig import fraction, geometry
from placement.honoured import refuse_unhonoured
from placement.plan import Phase, Plan
from placement.snapshot import DomainLimit, Gpu, Job, Node, RunningTask, Snapshot, Task
from placement.snapshot.leaves import leaf_tasks
from placement.snapshot.read import verified

TRIES = 7
"""Numbers of cards that are tried, unless said otherwise."""

ADDED = ("value", "tasks")
"""Objectives that add up over jobs, so that bounds on two sorts of jobs are one on all."""

Spot = tuple[str, int]
"""A card: name of the node and index."""


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
        Seconds in all; each solve gets an equal part.
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
    cards = _switchable(snapshot)
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
        self.without, self.tries = without, tries
        # some of its jobs are a snapshot too: what names others is not honoured, so it is left out or refused here
        self.used = refuse_unhonoured(snapshot, without)
        self.deadline = math.inf if time_limit is None else time.monotonic() + time_limit
        self.plans: dict[int, tuple[Snapshot, Plan, frozenset[Spot]]] = {}
        self.bounds: dict[int, tuple[float | None, float | None]] = {}
        self._left = 4 * tries
        waiting = [job for job in snapshot.jobs if job.running is None]
        self._mixed = any(
            _asks(job) and any(task.gpus and not task.mig_profile for _, task in leaf_tasks(job.groups))
            for job in waiting
        )

    def run(self) -> None:
        """Try none, all, and then the middle of the interval beside the best with most cards in it."""
        for number in (0, len(self.cards)):
            self._try(number)
        while len(self.plans) < self.tries and time.monotonic() < self.deadline:
            known = sorted(self.plans)
            best = max(known, key=self._order)
            place = known.index(best)
            beside = [
                pair for pair in ((place - 1, place), (place, place + 1)) if pair[0] >= 0 and pair[1] < len(known)
            ]
            low, high = max(((known[a], known[b]) for a, b in beside), key=lambda pair: pair[1] - pair[0])
            if high - low < 2:
                break
            self._try((low + high) // 2)

    def _try(self, number: int) -> None:
        """Try some sets of so many cards, and bound all of them."""
        everything, nothing = dict.fromkeys(self.cards, True), dict.fromkeys(self.cards, False)
        fixed = [gpu for node, card, gpu in _cards(self.snapshot, every=True) if (node, card) not in everything]
        with_mig = sum(gpu.mig_enabled for gpu in fixed)
        instances = _capped(with_modes(_only(self.used, mig=True), everything), with_mig + number)
        others = _capped(
            with_modes(_only(self.used, mig=False), nothing), len(fixed) - with_mig + len(self.cards) - number
        )
        apart = [self._solved(one, ()) if _waits(one) else None for one in (instances, others)]
        best: tuple[Snapshot, Plan, frozenset[Spot]] | None = None
        for on in dict.fromkeys((frozenset(self.cards[:number]), self._wished_for(number, *apart))):
            after = with_modes(self.snapshot, {spot: spot in on for spot in self.cards})
            plan = self._solved(after, self.without)
            if best is None or _rank(plan) > _rank(best[1]):
                best = after, plan, on
        assert best is not None
        self.plans[number] = best
        first = best[1].phases[0]
        self.bounds[number] = self._bound(apart[0], first), self._bound(apart[1], first)

    def _wished_for(self, number: int, instances: Plan | None, others: Plan | None) -> frozenset[Spot]:
        """Return the cards that MIG tasks use most where they could have all, and other tasks not at all."""
        mig, whole = _uses(instances), _uses(others)
        place = {spot: i for i, spot in enumerate(self.cards)}
        order = sorted(self.cards, key=lambda spot: (whole[spot] - mig[spot], place[spot]))
        return frozenset(order[:number])

    def _solved(self, snapshot: Snapshot, without: Sequence[str]) -> Plan:
        limit = (
            None if self.deadline == math.inf else max(0.05, (self.deadline - time.monotonic()) / max(1, self._left))
        )
        self._left -= 1
        return solve(snapshot, gap=self.gap, time_limit=limit, seed=self.seed, without=without)

    def _bound(self, apart: Plan | None, first: Phase) -> float | None:
        """Return what a plan for one sort of jobs proves of the first objective, 0 where none of them counts in it."""
        if first.objective not in ADDED or self._mixed:
            return None
        if apart is None or apart.phases[0].priority != first.priority:
            return 0.0
        return apart.phases[0].bound

    def _order(self, number: int) -> tuple[list[float], int]:
        return _rank(self.plans[number][1]), -number

    def answer(self) -> Partition:
        """Return the best of what was tried."""
        after, plan, chosen = self.plans[max(sorted(self.plans), key=self._order)]
        was = {(node, card): gpu.mig_enabled for node, card, gpu in _cards(self.snapshot)}
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

    def _overall(self) -> float | None:
        """Return the largest sum of bounds over neighbouring numbers of cards."""
        known = sorted(self.bounds)
        pairs = [(self.bounds[high][0], self.bounds[low][1]) for low, high in pairwise(known)]
        if any(more is None or less is None for more, less in pairs):
            return None
        return max((more or 0.0) + (less or 0.0) for more, less in pairs)


def _rank(plan: Plan) -> list[float]:
    return [phase.value if phase.sense == "max" else -phase.value for phase in plan.phases]


def _uses(plan: Plan | None) -> Counter[Spot]:
    """Return how many tasks of a plan are on each card."""
    tasks = () if plan is None else zip(plan.tasks.node, plan.tasks.gpus, strict=True)
    return Counter((node, card) for node, cards in tasks for card in cards)


def _waits(snapshot: Snapshot) -> bool:
    return any(job.running is None for job in snapshot.jobs)


# --- snapshots ---------------------------------------------------------------------------------------------------


def _cards(snapshot: Snapshot, every: bool = False) -> list[tuple[str, int, Gpu]]:
    """Return the cards of the nodes on which some card is switchable, or those of all nodes."""
    found = []
    for node in snapshot.nodes:
        if every or any(gpu.mig_switchable for gpu in node.gpus):
            listed = [gpu for gpu in node.gpus for _ in range(gpu.count)]
            for name in _names(node):
                found += [(name, card, gpu) for card, gpu in enumerate(listed)]
    return found


def _names(node: Node) -> list[str]:
    return [node.name] if node.count == 1 else [f"{node.name}-{copy}" for copy in range(node.count)]


def _switchable(snapshot: Snapshot) -> list[Spot]:
    """Return the cards that may be switched, those on nodes with fewest of them first: so whole nodes stay whole."""
    busy = {
        (place.node, card)
        for job in snapshot.jobs
        if job.running is not None
        for place in job.running.tasks
        for card in place.gpus
    }
    free: dict[str, list[Spot]] = {}
    for node, card, gpu in _cards(snapshot):
        usable = gpu.mig_switchable and gpu.health == "healthy" and geometry(gpu.model) is not None
        if usable and (node, card) not in busy:
            free.setdefault(node, []).append((node, card))
    return [spot for spots in sorted(free.values(), key=len) for spot in spots]


def with_modes(snapshot: Snapshot, modes: dict[Spot, bool]) -> Snapshot:
    """Return the snapshot with MIG on or off on some cards; nodes with a count are listed one by one for it."""
    nodes: list[Node] = []
    for node in snapshot.nodes:
        if not any(gpu.mig_switchable for gpu in node.gpus):
            nodes.append(node)
            continue
        for name in _names(node):
            gpus: list[Gpu] = []
            for card, gpu in enumerate(entry for entry in node.gpus for _ in range(entry.count)):
                one = msgspec.structs.replace(gpu, count=1)
                on = modes.get((name, card))
                if on is not None and on != gpu.mig_enabled:
                    one = msgspec.structs.replace(one, mig_enabled=on, mig_layout=(), mig_static=False)
                    if on:  # instances are not shared; with MIG off the card is as its entry says
                        one = msgspec.structs.replace(one, sharing="shared", replicas=None, vgpu_policy="")
                if gpus and msgspec.structs.replace(gpus[-1], count=1) == one:
                    gpus[-1] = msgspec.structs.replace(gpus[-1], count=gpus[-1].count + 1)
                else:
                    gpus.append(one)
            nodes.append(msgspec.structs.replace(node, name=name, count=1, gpus=tuple(gpus)))
    return msgspec.structs.replace(snapshot, nodes=tuple(nodes))


def _only(snapshot: Snapshot, mig: bool) -> Snapshot:
    """Return the snapshot with the waiting jobs that have MIG tasks, or those that have none."""
    jobs = tuple(job for job in snapshot.jobs if job.running is not None or _asks(job) == mig)
    return msgspec.structs.replace(snapshot, jobs=jobs)


def _asks(job: Job) -> bool:
    """Return whether some task of a job asks for a MIG instance."""
    return any(task.mig_profile for _, task in leaf_tasks(job.groups))


def _capped(snapshot: Snapshot, cards: int) -> Snapshot:
    """Return the snapshot with a cap on the cards that new tasks may take, whichever these are."""
    taken = sum(
        (_part(task, place) for job in snapshot.jobs if job.running is not None for task, place in _running(job)),
        Fraction(0),
    )
    most: units.Quantity = _up(taken + cards)
    whole = next((limit for limit in snapshot.limits if limit.level == "cluster"), DomainLimit(level="cluster"))
    if whole.gpus is not None and units.exact(whole.gpus) <= units.exact(most):
        most = whole.gpus
    # a domain has one entry, which says all its caps
    others = tuple(limit for limit in snapshot.limits if limit.level != "cluster")
    return msgspec.structs.replace(snapshot, limits=(*others, msgspec.structs.replace(whole, gpus=most)))


def _up(amount: Fraction) -> str:
    """Return an amount as a decimal number, rounded up to millionths: so that a bound stays one."""
    whole, millionths = divmod(math.ceil(amount * 10**6), 10**6)
    return f"{whole}.{millionths:06}"


def _running(job: Job) -> Iterator[tuple[Task, RunningTask]]:
    tasks = dict(leaf_tasks(job.groups))
    for place in job.running.tasks if job.running is not None else ():
        yield tasks[place.group], place


def _part(task: Task, place: RunningTask) -> Fraction:
    """Return how many cards a running task counts as."""
    if task.mig_profile:
        return fraction(task.mig_profile) or Fraction(0)
    return len(place.gpus) * (Fraction(1) if task.gpu_share is None else units.exact(task.gpu_share))
