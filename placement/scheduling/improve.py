"""Better orders for serial passes, found by moving one job at a time.

Whoever waits moves before one that started while it waited, or one that keeps others waiting moves behind some of them;
what comes out worse is accepted if it is no worse than what stood some moves ago (late acceptance, Burke and Bykov,
EJOR 258(1), 2017). Only what comes after the first changed place is passed through again.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence

from placement.scheduling.counts import Counted, Profile
from placement.scheduling.passes import Pass, Start, end_of

MEMORY = 30
"""How many moves ago a schedule stood that one may be as bad as."""
KEPT = 12
"""Profiles that are kept on the way of a pass."""
OTHER, ANYWHERE, BACKWARD = 0.25, 0.1, 0.25
"""Part of the moves that go to cards of another model; and of the others those to any place, and behind others."""
FEW = 16
"""Jobs up to which all moves go to any place."""


class Improver:
    """A serial pass and the way to better ones.

    Parameters
    ----------
    work : Counted
    base : Profile
        What is free as what runs now comes to its end.
    starts : sequence of Start
        A schedule to begin with.
    seed : int
    """

    def __init__(self, work: Counted, base: Profile, starts: Sequence[Start], seed: int) -> None:
        self._work, self._base = work, base
        self._rng = random.Random(seed)
        self._ordered = any(work.work.after)
        self._least = {
            job: work.weight[job] * min(kind.least for kind in work.gangs[work.job_class[job]].kinds)
            for job, *_ in starts
        }
        order = [job for job, *_ in sorted(starts, key=lambda one: (one[1], one[0]))]
        self._kinds = {job: work.kind_of(job, nodes) for job, _, _, nodes in starts}
        self._several = [job for job in order if len(work.gangs[work.job_class[job]].kinds) > 1]
        self._kept: list[tuple[int, Profile]] = []
        self.best = self._now = Pass([], 0, [])
        self.moves = 0
        self._first = order
        self._past: list[int] = []

    @classmethod
    def of(cls, work: Counted, base: Profile, starts: Sequence[Start], seed: int) -> Improver | None:
        """Return one that goes on from a schedule; None where its serial pass ends some job after a hard deadline."""
        found = cls(work, base, starts, seed)
        passed = found._pass(found._first, 0, None)
        if passed is None:
            return None
        found._set(*passed)
        found.best = found._now
        found._past = [found._now.value] * MEMORY
        return found

    def run(self, enough: Callable[[int], bool]) -> Pass:
        """Move jobs until a function of the number of moves says that it is enough; return the best pass."""
        while not enough(self.moves):
            self.moves += 1
            place = self.moves % MEMORY
            other = self._other_kind()
            changed = self._moved() if other is None else (self._order, self._order.index(other[0]))
            if changed is not None:
                limit = max(self._now.value, self._past[place])
                passed = self._pass(*changed, limit)
                if passed is not None:
                    self._accept(passed)
                elif other is not None:
                    self._kinds[other[0]] = other[1]
            self._past[place] = min(self._past[place], self._now.value)
        return self.best

    # --- moves ---------------------------------------------------------------------------------------------------

    def _other_kind(self) -> tuple[int, int] | None:
        """Let some job run on cards of another model, now and then; return it, and what it ran on before."""
        if not self._several or self._rng.random() >= OTHER:
            return None
        job = self._rng.choice(self._several)
        before = self._kinds[job]
        others = len(self._work.gangs[self._work.job_class[job]].kinds) - 1
        self._kinds[job] = (before + self._rng.randrange(1, others + 1)) % (others + 1)
        return job, before

    def _moved(self) -> tuple[list[int], int] | None:
        """Return another order, and the first place at which it differs."""
        rng, order = self._rng, self._order
        which = rng.random()
        if which < ANYWHERE or len(order) <= FEW:
            place, target = rng.randrange(len(order)), rng.randrange(len(order))
        elif which < ANYWHERE + BACKWARD:
            place = rng.randrange(len(order))
            end = self._now.starts[place][2]
            last = bisect_left(self._moments, end)
            if last <= place + 1:
                return None
            target = rng.randrange(place + 1, last)
        else:
            place = bisect_left(self._sums, rng.random() * self._sums[-1]) if self._sums[-1] else 0
            job = order[place]
            first = bisect_left(self._moments, self._work.release[job])
            if first >= place:
                return None
            # those that started last are the most likely to be in the way
            target = max(first, place - 1 - int(rng.expovariate(4 / max(1, place - first))))
        if place == target:
            return None
        changed = order.copy()
        changed.insert(target, changed.pop(place))
        if self._ordered and not self._keeps_order(changed, min(place, target), max(place, target)):
            return None
        return changed, min(place, target)

    def _keeps_order(self, order: Sequence[int], first: int, last: int) -> bool:
        seen: set[int] = set()
        among = set(order[first : last + 1])
        for job in order[first : last + 1]:
            if any(other in among and other not in seen for other in self._work.work.after[job]):
                return False
            seen.add(job)
        return True

    def _accept(self, passed: tuple[Pass, list[tuple[int, Profile]]]) -> None:
        self._set(*passed)
        if self._now.value < self.best.value:
            self.best = self._now

    def _set(self, now: Pass, kept: list[tuple[int, Profile]]) -> None:
        self._now, self._kept = now, kept
        self._order = [start[0] for start in now.starts]
        # the order of a pass need not be that of its starts; what is looked up by time is made so that it can be
        self._moments: list[int] = []
        latest = 0
        for one in now.starts:
            latest = max(latest, one[1])
            self._moments.append(latest)
        total = 0.0
        self._sums: list[float] = []
        for job, start, _, _ in now.starts:
            total += self._work.weight[job] * (start - self._work.release[job])
            self._sums.append(total)

    # --- passes --------------------------------------------------------------------------------------------------

    def _pass(
        self, order: Sequence[int], first: int, limit: int | None
    ) -> tuple[Pass, list[tuple[int, Profile]]] | None:
        """Return the serial pass over an order that is as it stands up to a place; None where it is above a limit."""
        kept = [one for one in self._kept if one[0] <= first] if first else []
        begin, profile = kept[-1] if kept else (0, self._base)
        profile = profile.copy()
        starts = list(self._now.starts[:begin]) if begin else []
        work, release = self._work, self._work.release
        value = sum(work.weight[job] * (end - release[job]) for job, _, end, _ in starts)
        rest = sum(self._least[job] for job in order[begin:])
        ends = {job: end for job, _, end, _ in starts} if self._ordered else {}
        every = max(1, len(order) // KEPT)
        for place in range(begin, len(order)):
            if place % every == 0 and place > begin:
                kept.append((place, profile.copy()))
            job = order[place]
            kind = work.gangs[work.job_class[job]].kinds[self._kinds[job]]
            found = profile.earliest(job, max([release[job], *self._before(job, ends)]), (kind,))
            if found is None or 0 <= work.deadline[job] < found[1]:
                return None
            start, end, nodes = found
            profile.take(nodes, work.gangs[work.job_class[job]].cards, start, end)
            starts.append((job, start, end, nodes))
            value += work.weight[job] * (end - release[job])
            rest -= self._least[job]
            if limit is not None and value + rest > limit:
                return None
            if self._ordered:
                ends[job] = end
        return Pass(starts, value, []), kept

    def _before(self, job: int, ends: dict[int, int]) -> Iterable[int]:
        return (ends[other] if other in ends else end_of(self._work, other) for other in self._work.work.after[job])
