"""Branch and bound over when jobs end: a bound that rises as long as there is time.

Each node of the tree says from when until when each job may end; its bound is that of
`placement.scheduling.bounds.starts` in these windows, lifted by inequalities that hold in all of the tree. The job
whose ends lie furthest apart in the solution, by weight, is told to end at their mean or before, or after it. What no
node can be better than, and neither what is known, bounds all schedules.

Ends are multiples of some time, and so is the best value (`placement.scheduling.bounds.multiples`): bounds are rounded
up, and nobody looks at ends between.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from placement.exact.milp.arrays import Floats
from placement.instance import Ints
from placement.scheduling.bounds.modes import in_windows
from placement.scheduling.bounds.multiples import Multiples
from placement.scheduling.bounds.remaining import Ends
from placement.scheduling.bounds.starts import Spot, Starts
from placement.scheduling.bounds.tolls import Windows

Offer = Callable[[dict[int, float]], int]
"""Told when each job starts in a relaxed schedule; returns the value of the best timetable known."""
ROOT_ROUNDS, ROUNDS = 20, 2
"""Rounds in which inequalities are added, at first and in each node."""
ROOT_NEAR, NEAR = 2e-4, 1e-3
"""How near the value of the program is to come to the bound by further starts, as a part of it."""
PRICED = 4
"""Rounds of further starts."""
ROOT_MOST = 80
"""Inequalities that are added in a round at first."""
MOST, JOBS_EACH = 24, 2
"""The same in each node, or one for so many jobs where that is more, where they are kept for its children alone."""
MOST_KEPT, JOBS_KEPT = 8, 8
"""The same where they are kept for all nodes."""
LEAST_GAIN = 3e-4
"""By what part of it a round has to lift the value for another one."""
LONG_EVERY = 4
"""In which of the nodes inequalities with a length are looked for."""
LENGTHS = (1 / 16, 1 / 8, 1 / 4, 1 / 2)
"""Of spans, in mean run times."""
REFINED = 4
"""How often spans are cut in two where all ends are settled, and more is held at some moment than there is."""
UNKNOWN = 1 << 62
"""More than any value."""
STILL = 1.0
"""Milliseconds below which the ends of a job do not lie apart."""


@dataclass(order=True, slots=True)
class _Node:
    """What is known of some windows, the basis of their program, and on which job and moment to branch next."""

    bound: int
    number: int
    windows: Windows = field(compare=False)
    spot: Spot = field(compare=False)
    kind: int = field(compare=False)
    moment: int = field(compare=False)


class Tree:
    """The tree.

    Parameters
    ----------
    starts : Starts
    deadline : float
        On the clock of `time.monotonic`.
    keep : bool
        Whether inequalities of a node are kept for all others. Where jobs come one after the other those of a time
        tell of few jobs, and are as good elsewhere; else they make each node slower than they are worth.

    Attributes
    ----------
    bound : int
        On the weighted completion time of all that the program covers, in milliseconds.
    nodes : int
        That were looked at.
    """

    def __init__(self, starts: Starts, deadline: float = math.inf, keep: bool = False) -> None:
        self._starts, self._deadline, self._keep = starts, deadline, keep
        self._open: list[_Node] = []
        self._stuck = UNKNOWN
        self.bound, self.nodes = 0, 0
        kinds = starts.relaxed.kinds
        self._multiples = Multiples.of(starts.relaxed)
        runs = [min(mode.run for mode in kind.modes) for kind in kinds if in_windows(kind)]
        mean = sum(runs) / max(1, len(runs))
        self._lengths = tuple(dict.fromkeys(int(part * mean) for part in LENGTHS if part * mean >= 1))

    def ends(self, value: int) -> Ends:
        """Return what is proven of when jobs end in schedules no worse than a value, before anything is branched on."""
        starts = self._starts
        windows = starts.tolled(value).windows
        pairs = zip(windows.first.tolist(), windows.last.tolist(), strict=True)
        kinds = zip(starts.relaxed.kinds, pairs, strict=True)
        within = {kind.jobs[0]: pair for kind, pair in kinds if in_windows(kind)}
        return Ends(within, starts.relaxed, starts.tolls(), starts.edges)

    @property
    def open(self) -> bool:
        """Whether there is a node to branch on."""
        return bool(self._open)

    @property
    def _left(self) -> float:
        return self._deadline - time.monotonic()

    def root(self) -> bool:
        """Lift the bound without branching as far as it goes; return whether that came to an end."""
        done = True
        for lengths in ((0,), (0, *self._lengths)):
            done = done and self._lift(True, lengths)
            if done:
                self._starts.trim()
                done = self._priced(ROOT_NEAR, UNKNOWN)
        if done:
            self._open = [self._node(self.bound, self._starts.windows)]
        return done

    def run(self, value: int, offer: Offer, deadline: float, nodes: int | None = None) -> None:
        """Branch until nothing can be better than what is known, or the limits are reached.

        Parameters
        ----------
        value : int
            Of the best schedule known, on the same scale as `bound`.
        offer : Offer
        deadline : float
            On the clock of `time.monotonic`.
        nodes : int, optional
            Most nodes, in all.
        """
        self._deadline = deadline
        while self.open and self._open[0].bound < value and self._left > 0 and (nodes is None or self.nodes < nodes):
            parent = heapq.heappop(self._open)
            found = self._branched(parent, value)
            if found is None:
                heapq.heappush(self._open, parent)
                break
            for child, means in found:
                value = min(value, offer(means))
                if child.bound < value:
                    heapq.heappush(self._open, child)
            self._bounded(value)
        self._bounded(value)

    def _bounded(self, value: int) -> None:
        least = min([value, self._stuck, *(node.bound for node in self._open[:1])])
        self.bound = max(self.bound, least)

    # --- nodes ---------------------------------------------------------------------------------------------------

    def _branched(self, parent: _Node, value: int) -> list[tuple[_Node, dict[int, float]]] | None:
        """Return the children of a node; None where the time is not enough."""
        kind, moment = parent.kind, parent.moment
        if kind < 0:
            self._stuck = min(self._stuck, parent.bound)
            return []
        starts = self._starts
        one = starts.relaxed.kinds[kind]
        until = moment - moment % self._multiples.time
        then = until + self._multiples.time
        for end in (until, then):
            begin = {part: end - mode.run for part, mode in enumerate(one.modes) if end - mode.run >= one.start}
            starts.add(np.full(len(begin), kind), np.array([*begin]), np.array([*begin.values()]))
        found = []
        for side in (0, 1):
            first, last = parent.windows.first.copy(), parent.windows.last.copy()
            if side:
                first[kind] = then
            else:
                last[kind] = until
            starts.windows = Windows(first, last)
            starts.restart(parent.spot, beside=self._keep or side > 0)
            self.nodes += 1
            bound = self._lifted(parent.bound, value)
            if bound is None:
                return None
            found.append((self._node(bound, starts.windows), self._means()))
        return found

    def _lifted(self, bound: int, value: int) -> int | None:
        """Return the bound of the present windows; None where the time is not enough."""
        kept, self.bound = self.bound, bound
        lengths = (0, *self._lengths) if not self.nodes % LONG_EVERY else (0,)
        done = self._lift(False, lengths, value)
        for _ in range(REFINED):
            if not done or self.bound >= value or self._ending()[1].max() >= STILL or not self._starts.refine():
                break
            done = self._lift(False, (0,), value)
        found, self.bound = self.bound, kept
        return found if done else None

    def _node(self, bound: int, windows: Windows) -> _Node:
        kind, moment = self._choice(windows)
        return _Node(bound, self.nodes, windows, self._starts.spot(), kind, moment)

    def _lift(self, root: bool, lengths: tuple[int, ...], value: int = UNKNOWN) -> bool:
        """Lift the bound by inequalities, while it is below a value; return whether that came to an end."""
        starts = self._starts
        most, each = (MOST_KEPT, JOBS_KEPT) if self._keep else (MOST, JOBS_EACH)
        few = max(most, len(starts.relaxed.kinds) // each)
        rounds, near, most = (ROOT_ROUNDS, ROOT_NEAR, ROOT_MOST) if root else (ROUNDS, NEAR, few)
        if not self._priced(near, value):
            return False
        for _ in range(rounds):
            before = starts.value
            if self.bound >= value or not starts.cut(lengths, most):
                break
            if not self._priced(near, value):
                return False
            if starts.value - before < LEAST_GAIN * starts.value:
                break
        return True

    def _priced(self, near: float, value: int) -> bool:
        """Solve, and add starts that are called for until the bound is near; return whether that came to an end."""
        starts = self._starts
        for left in range(PRICED, -1, -1):
            if not starts.solve(self._left):
                return False
            found = starts.tolled(value if value < UNKNOWN else -1)
            self.bound = max(self.bound, self._multiples.up(found.bound))
            if found.windows is not starts.windows:
                starts.windows = found.windows
                if (found.windows.first > found.windows.last).any():  # nothing here is as good as what is known
                    self.bound = max(self.bound, value)
                    break
            if not left or starts.value - found.bound <= near * starts.value:
                break
            if not starts.add(np.arange(len(found.start)), found.mode, found.start):
                break
        return True

    # --- what to branch on ---------------------------------------------------------------------------------------

    def _mean(self, times: Ints) -> Floats:
        """Return by kind the mean of times of columns."""
        columns, mass, kinds = self._starts.columns, self._starts.mass, len(self._starts.relaxed.kinds)
        total = np.maximum(np.bincount(columns.kind, mass, kinds), 1e-9)
        found: Floats = np.bincount(columns.kind, mass * times, kinds) / total
        return found

    def _ending(self) -> tuple[Floats, Floats]:
        """Return the mean end of each kind, and how far its ends lie from it on average."""
        columns = self._starts.columns
        mean = self._mean(columns.end)
        return mean, self._mean(np.abs(columns.end - mean[columns.kind]))

    def _choice(self, windows: Windows) -> tuple[int, int]:
        """Return a kind and a moment by which it is to end or not; -1 for no kind where there is nothing to say."""
        kinds = self._starts.relaxed.kinds
        mean, apart = self._ending()
        weight = np.array([kind.weight if in_windows(kind) else 0 for kind in kinds], dtype=np.float64)
        score = weight * np.where(apart >= STILL, apart, 0.0)
        kind = int(score.argmax())
        if score[kind] > 0:
            first, last = int(windows.first[kind]), int(windows.last[kind])
            return kind, min(max(int(mean[kind]), first), last - 1) if first < last else first
        horizon = int(self._starts.moments[-1])
        first_, last_ = np.minimum(windows.first, horizon), np.minimum(windows.last, horizon)
        width = weight * (last_ - first_)
        kind = int(width.argmax())
        return (kind, int(first_[kind] + last_[kind]) // 2) if width[kind] > 0 else (-1, 0)

    def _means(self) -> dict[int, float]:
        """Return the mean start of each job."""
        mean = self._mean(self._starts.columns.begin).tolist()
        return {kind.jobs[0]: each for kind, each in zip(self._starts.relaxed.kinds, mean, strict=True)}
