"""Serial passes over jobs that share nodes, of which only what comes after the first changed place is made again.

Jobs on cards of different models do not meet, so each of these has a line of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from placement.instance import Ints
from placement.scheduling.counts import Counted, Profile
from placement.scheduling.moves.bits import Bits, Future, Held, Run
from placement.scheduling.passes import Start, end_of

EVERY, MOST_KEPT = 8, 64
"""Places after which what is free then is kept, and how often at most."""


@dataclass(frozen=True, slots=True)
class Passed:
    """The serial pass over the jobs of a line.

    Attributes
    ----------
    starts : list of Start
    held : list of Held
        By job.
    kept : list of Future
        What is free before every some places.
    value : int
        Weighted completion time of the whole schedule then, in milliseconds times weight.
    """

    starts: list[Start]
    held: list[Held]
    kept: list[Future]
    value: int


@dataclass(slots=True)
class Line:
    """Jobs in the order of a serial pass.

    Attributes
    ----------
    passing : Passing
        Makes passes over them.
    passed : Passed
    order : list of int
    moments : list of int
        By place, the latest start so far; the order of a pass need not be that of its starts.
    sums : list of int
        By place, the sum of weight times wait so far.
    """

    passing: Passing
    passed: Passed
    order: list[int] = field(default_factory=list)
    moments: list[int] = field(default_factory=list)
    sums: list[int] = field(default_factory=list)

    def set(self, passed: Passed, work: Counted, cost: dict[int, int]) -> None:
        """Take over a pass, and tell what each of its jobs costs."""
        self.passed = passed
        self.order = [start[0] for start in passed.starts]
        self.moments, self.sums = [], []
        latest = total = 0
        weight, release = work.weight, work.release
        for job, start, end, _ in passed.starts:
            if start > latest:
                latest = start
            self.moments.append(latest)
            total += weight[job] * (start - release[job])
            self.sums.append(total)
            cost[job] = weight[job] * (end - release[job])


class Passing:
    """Passes over the jobs of a line.

    Parameters
    ----------
    work : Counted
    count : int
        Jobs altogether.
    nodes : int array
        On which its jobs run.
    """

    def __init__(self, work: Counted, count: int, nodes: Ints) -> None:
        self._work = work
        self._bits = Bits(work, nodes)
        self._every = max(EVERY, count // MOST_KEPT)
        self._run: Run | None = work.run if work.by_level else None
        self._ordered = any(work.work.after)

    def none(self, base: Profile) -> Passed:
        """Return the pass over no jobs, given what is free as what runs now comes to its end."""
        return Passed([], [], [Future.of(self._bits, base)], 0)

    def again(
        self,
        passed: Passed,
        value: int,
        order: Sequence[int],
        changed: tuple[int, int],
        kinds: Callable[[int], int],
        cost: dict[int, int],
        limit: int | None,
    ) -> Passed | None:
        """Return the pass over an order that is other from one place to another; None where it changes nothing.

        Nor is there one where jobs so far make it worse than a limit, or one ends after a hard deadline.

        Parameters
        ----------
        passed : Passed
            The pass before.
        value : int
            What the whole schedule is worth before.
        order : sequence of int
        changed : (int, int)
            The first place, and the last one if all other jobs are as before; else -1.
        kinds : callable
            Tells the kind on which a job runs.
        cost : dict of int to int
            What each job cost.
        limit : int, optional
        """
        every, work, before = self._every, self._work, passed.starts
        ask, classes, run = self._bits.ask, work.job_class, self._run
        first, last = changed
        kept = passed.kept[: first // every + 1]
        begin = (len(kept) - 1) * every
        future = kept[-1].copy()
        starts, held = before[:first], passed.held[:first]
        for (_, start, end, _), one in zip(starts[begin:], held[begin:], strict=True):
            future.take(one, start, end)
        ends = {job: end for job, _, end, _ in starts} if self._ordered else {}
        for place in range(first, len(order)):
            if place % every == 0 and place > begin:
                kept.append(future.copy())
            job = order[place]
            after = work.release[job]
            if self._ordered:
                after = max([after, *self._before(job, ends)])
            found = future.earliest(job, ask(classes[job], kinds(job)), after, run)
            if found is None or work.deadline[job] < found[1]:
                return None
            start, end, nodes, one = found
            future.take(one, start, end)
            starts.append((job, start, end, nodes))
            held.append(one)
            value += work.weight[job] * (end - work.release[job]) - cost[job]
            if limit is not None and value > limit:
                return None
            if limit is not None and place == last and set(starts[first:]) == set(before[first : last + 1]):
                return None
            if self._ordered:
                ends[job] = end
        return Passed(starts, held, kept, value)

    def _before(self, job: int, ends: dict[int, int]) -> Iterable[int]:
        return (ends[other] if other in ends else end_of(self._work, other) for other in self._work.work.after[job])
