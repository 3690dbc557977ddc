"""Better orders for serial passes, found by moving one job at a time.

Whoever waits moves before one that started while it waited, or one that keeps others waiting moves behind some of them,
most often by few places; what comes out worse is accepted by chance, the less so the worse it is and the later
(simulated annealing, Kirkpatrick, Gelatt and Vecchi, Science 220, 1983). Only what comes after the first changed place
is passed through again, and no further than the jobs so far have lost more than is accepted: what comes later seldom
makes up for it.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence

from placement.scheduling.bits import Bits, Future, Held
from placement.scheduling.counts import Counted, Profile
from placement.scheduling.passes import Pass, Start, end_of

HOT, MOST_HOT, COLD = 20.0, 0.02, 0.05
"""By which part of its value a schedule may be worse at first on average, times the square of the number of jobs, and
at most; and by which part of that at last. Found by trial on 30 to 300 jobs."""
EVERY, MOST_KEPT = 8, 64
"""Places after which what is free then is kept, and how often at most."""
OTHER, BACKWARD, UNIFORM = 0.25, 0.4, 0.7
"""Part of the moves that go to cards of another model; and of the others those that go behind others, and those of any
job, where others are of jobs by their weight and wait."""
FEW = 16
"""Jobs up to which all moves go to any place."""

Passed = tuple[Pass, list[Future], list[Held]]
"""A pass, what was free on its way, and what each job holds."""


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
        self._work = work
        self._rng = random.Random(seed)
        self._ordered = any(work.work.after)
        order = [job for job, *_ in sorted(starts, key=lambda one: (one[1], one[0]))]
        self._kinds = {job: work.kind_of(job, nodes) for job, _, _, nodes in starts}
        self._several = [job for job in order if len(work.gangs[work.job_class[job]].kinds) > 1]
        self._bits = bits = Bits(work)
        self._every = max(EVERY, len(order) // MOST_KEPT)
        self._run = work.run if work.by_level else None
        self._kept = [Future.of(bits, base)]
        self.best = self._now = Pass([], 0, [])
        self._held: list[Held] = []
        self._cost = dict.fromkeys(order, 0)
        self.moves = 0
        self._first = order

    @classmethod
    def of(cls, work: Counted, base: Profile, starts: Sequence[Start], seed: int) -> Improver | None:
        """Return one that goes on from a schedule; None where its serial pass ends some job after a hard deadline."""
        found = cls(work, base, starts, seed)
        passed = found._pass(found._first, 0, 0, None)
        if passed is None:
            return None
        found._set(*passed)
        found.best = found._now
        return found

    def run(self, done: Callable[[int], float]) -> Pass:
        """Move jobs until all is done, of which a function tells the part after so many moves; return the best pass."""
        hot = min(MOST_HOT, HOT / max(1, len(self._order)) ** 2) * self._now.value
        while (part := done(self.moves)) < 1:
            self.moves += 1
            limit = self._now.value + int(hot * COLD**part * self._rng.expovariate(1))
            other = self._other_kind()
            if other is None:
                changed = self._moved()
            else:
                at = self._order.index(other[0])
                changed = self._order, at, at
            if changed is None:
                continue
            passed = self._pass(*changed, limit)
            if passed is not None:
                self._accept(passed)
            elif other is not None:
                self._kinds[other[0]] = other[1]
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

    def _moved(self) -> tuple[list[int], int, int] | None:
        """Return another order, and the first and the last place at which it differs."""
        rng, order = self._rng, self._order
        count = len(order)
        place = (
            rng.randrange(count)
            if rng.random() < UNIFORM or not self._sums[-1]
            else bisect_left(self._sums, rng.random() * self._sums[-1])
        )
        if rng.random() < BACKWARD:
            most = (bisect_left(self._moments, self._now.starts[place][2]) if count > FEW else count) - 1 - place
            if most <= 0:
                return None
            target = place + int((most + 1) ** rng.random())
        else:
            most = place - (bisect_left(self._moments, self._work.release[order[place]]) if count > FEW else 0)
            if most <= 0:
                return None
            target = place - int((most + 1) ** rng.random())
        if place == target:
            return None
        changed = order.copy()
        changed.insert(target, changed.pop(place))
        if self._ordered and not self._keeps_order(changed, min(place, target), max(place, target)):
            return None
        return changed, min(place, target), max(place, target)

    def _keeps_order(self, order: Sequence[int], first: int, last: int) -> bool:
        seen: set[int] = set()
        among = set(order[first : last + 1])
        for job in order[first : last + 1]:
            if any(other in among and other not in seen for other in self._work.work.after[job]):
                return False
            seen.add(job)
        return True

    def _accept(self, passed: Passed) -> None:
        self._set(*passed)
        if self._now.value < self.best.value:
            self.best = self._now

    def _set(self, now: Pass, kept: list[Future], held: list[Held]) -> None:
        self._now, self._kept, self._held = now, kept, held
        self._order = [start[0] for start in now.starts]
        # the order of a pass need not be that of its starts; what is looked up by time is made so that it can be
        self._moments: list[int] = []
        latest = 0
        total = 0
        self._sums: list[int] = []
        weight, release, cost = self._work.weight, self._work.release, self._cost
        for job, start, end, _ in now.starts:
            if start > latest:
                latest = start
            self._moments.append(latest)
            total += weight[job] * (start - release[job])
            self._sums.append(total)
            cost[job] = weight[job] * (end - release[job])

    # --- passes --------------------------------------------------------------------------------------------------

    def _pass(self, order: Sequence[int], first: int, last: int, limit: int | None) -> Passed | None:
        """Return the serial pass over an order that is other from one place to another; None where it changes nothing.

        Nor is there one where jobs so far make it worse than a limit.
        """
        every, work, before = self._every, self._work, self._now.starts
        kept = self._kept[: first // every + 1]
        begin = (len(kept) - 1) * every
        future = kept[-1].copy()
        starts, held = before[:first], self._held[:first]
        for (_, start, end, _), one in zip(starts[begin:], held[begin:], strict=True):
            future.take(one, start, end)
        value = self._now.value
        ends = {job: end for job, _, end, _ in starts} if self._ordered else {}
        for place in range(first, len(order)):
            if place % every == 0 and place > begin:
                kept.append(future.copy())
            job = order[place]
            after = work.release[job]
            if self._ordered:
                after = max([after, *self._before(job, ends)])
            found = future.earliest(job, self._bits.ask(work.job_class[job], self._kinds[job]), after, self._run)
            if found is None or 0 <= work.deadline[job] < found[1]:
                return None
            start, end, nodes, one = found
            future.take(one, start, end)
            starts.append((job, start, end, nodes))
            held.append(one)
            value += work.weight[job] * (end - work.release[job]) - self._cost[job]
            if limit is not None and value > limit:
                return None
            if limit is not None and place == last and set(starts[first:]) == set(before[first : last + 1]):
                return None
            if self._ordered:
                ends[job] = end
        return Pass(starts, value, []), kept, held

    def _before(self, job: int, ends: dict[int, int]) -> Iterable[int]:
        return (ends[other] if other in ends else end_of(self._work, other) for other in self._work.work.after[job])
