r"""Which cards to partition: MIG mode on for some of those that may be switched, off for the others.

With k of the cards in MIG mode there is an ordinary snapshot and an ordinary plan. Several k are tried, few cards at
first far apart and then around the best. For a bound let :math:`M(k)` be one on what MIG tasks are worth when no more
than k cards' worth of instances lie on switched cards, and :math:`W(k)` one on what all other tasks are worth when k
cards less are there for them, whichever these are: both are caps on the cluster, which hold for every choice of k
cards. *M* grows with k and *W* falls, so between two neighbouring k, k' that were tried

.. math:: \mathrm{value} \le M(k') + W(k),

and the largest of these over all neighbours bounds every choice.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import msgspec

from placement import units
from placement.engine import solve
from placement.errors import UsageError
from placement.hardware.mig import fraction, geometry
from placement.plan import Phase, Plan
from placement.snapshot import DomainLimit, Gpu, Job, Node, RunningTask, Snapshot, Task, TaskGroup
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
    if tries < 2:
        raise UsageError.one(f"{tries} numbers of cards", "try 2 at least", path="tries")
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
        self.deadline = math.inf if time_limit is None else time.monotonic() + time_limit
        self.plans: dict[int, tuple[Snapshot, Plan]] = {}
        self.bounds: dict[int, tuple[float | None, float | None]] = {}
        self._left = 3 * tries
        waiting = [job for job in snapshot.jobs if job.running is None]
        self._mixed = any(
            _asks(job) and any(task.gpus and not task.mig_profile for _, task in _tasks(job.groups)) for job in waiting
        )

    def run(self) -> None:
        """Try none, all, and then the middle of the interval beside the best with most cards in it."""
        for number in (0, len(self.cards)):
            self._try(number)
        while len(self.plans) < self.tries and time.monotonic() < self.deadline:
            known = sorted(self.plans)
            best = max(known, key=lambda number: (self._rank(number), -number))
            place = known.index(best)
            beside = [
                pair for pair in ((place - 1, place), (place, place + 1)) if pair[0] >= 0 and pair[1] < len(known)
            ]
            low, high = max(((known[a], known[b]) for a, b in beside), key=lambda pair: pair[1] - pair[0])
            if high - low < 2:
                break
            self._try((low + high) // 2)

    def _try(self, number: int) -> None:
        after = with_modes(
            self.snapshot, dict.fromkeys(self.cards[:number], True) | dict.fromkeys(self.cards[number:], False)
        )
        self.plans[number] = after, self._solved(after)
        everything = dict.fromkeys(self.cards, True)
        nothing = dict.fromkeys(self.cards, False)
        fixed = [gpu for node, card, gpu in _cards(self.snapshot, every=True) if (node, card) not in everything]
        with_mig = sum(gpu.mig_enabled for gpu in fixed)
        instances = _capped(with_modes(_only(self.snapshot, mig=True), everything), with_mig + number)
        others = _capped(
            with_modes(_only(self.snapshot, mig=False), nothing), len(fixed) - with_mig + len(self.cards) - number
        )
        first = self.plans[number][1].phases[0]
        self.bounds[number] = self._bound(instances, first), self._bound(others, first)

    def _solved(self, snapshot: Snapshot) -> Plan:
        limit = (
            None if self.deadline == math.inf else max(0.05, (self.deadline - time.monotonic()) / max(1, self._left))
        )
        self._left -= 1
        return solve(snapshot, gap=self.gap, time_limit=limit, seed=self.seed, without=self.without)

    def _bound(self, snapshot: Snapshot, first: Phase) -> float | None:
        """Return the bound on the first objective, 0 where nothing that waits counts in it."""
        if first.objective not in ADDED or self._mixed:
            return None
        if not any(job.running is None for job in snapshot.jobs):
            return 0.0
        mine = self._solved(snapshot).phases[0]
        return mine.bound if mine.priority == first.priority else 0.0

    def _rank(self, number: int) -> list[float]:
        return [phase.value if phase.sense == "max" else -phase.value for phase in self.plans[number][1].phases]

    def answer(self) -> Partition:
        """Return the best of what was tried."""
        best = max(sorted(self.plans), key=lambda number: (self._rank(number), -number))
        after, plan = self.plans[best]
        was = {(node, card): gpu.mig_enabled for node, card, gpu in _cards(self.snapshot)}
        value = float(plan.phases[0].value)
        bound = self._overall()
        distance = (
            None if bound is None or (value == 0 and bound > 0) else max(0.0, bound - value) / (abs(value) or 1.0)
        )
        return Partition(
            on=tuple(spot for spot in self.cards[:best] if not was[spot]),
            off=tuple(spot for spot in self.cards[best:] if was[spot]),
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
    def any_of(groups: tuple[TaskGroup, ...]) -> bool:
        return any(
            (group.task is not None and bool(group.task.mig_profile)) or any_of(group.groups) for group in groups
        )

    return any_of(job.groups)


def _capped(snapshot: Snapshot, cards: int) -> Snapshot:
    """Return the snapshot with a cap on the cards that new tasks may take, whichever these are."""
    taken = sum(
        (_part(task, place) for job in snapshot.jobs if job.running is not None for task, place in _running(job)),
        Fraction(0),
    )
    caps = [limit for limit in snapshot.limits if limit.level == "cluster" and limit.gpus is not None]
    most = min([taken + cards, *(units.exact(limit.gpus) for limit in caps if limit.gpus is not None)])
    others = tuple(msgspec.structs.replace(limit, gpus=None) if limit in caps else limit for limit in snapshot.limits)
    kept = tuple(limit for limit in others if limit not in caps and limit != DomainLimit(level="cluster"))
    return msgspec.structs.replace(snapshot, limits=(*kept, DomainLimit(level="cluster", gpus=str(_up(most)))))


def _up(amount: Fraction) -> Fraction:
    """Return an amount rounded up to what decimals can say."""
    return Fraction(-(-amount.numerator * 10**6 // amount.denominator), 10**6)


def _running(job: Job) -> Iterator[tuple[Task, RunningTask]]:
    tasks = dict(_tasks(job.groups))
    for place in job.running.tasks if job.running is not None else ():
        yield tasks[place.group], place


def _part(task: Task, place: RunningTask) -> Fraction:
    """Return how many cards a running task counts as."""
    if task.mig_profile:
        return fraction(task.mig_profile) or Fraction(0)
    return len(place.gpus) * (Fraction(1) if task.gpu_share is None else units.exact(task.gpu_share))


def _tasks(groups: tuple[TaskGroup, ...], above: str = "") -> Iterator[tuple[str, Task]]:
    for group in groups:
        if group.task is not None:
            yield f"{above}{group.name}", group.task
        yield from _tasks(group.groups, f"{above}{group.name}/")
