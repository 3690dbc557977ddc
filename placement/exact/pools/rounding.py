"""Whole counts of units by domain, made from the relaxation a few domains at a time.

The pooled model with `placement.models.pooled_topology` falls apart into the domains of one level but for what counts
jobs and tasks over all of them: at a few thousand whole columns a program is much harder than all of its parts. So the
relaxation is solved once, and then the parts one after the other: the columns of the part are whole, those of the parts
before are what was found there, those of the parts to come are what the relaxation has there, and the counts over all
parts may be broken. So what a part cannot make whole, a later one takes up. In the end the counts over all parts are
made whole. Where the answer is still far from the relaxation, each part is solved again with all else as it is.

Solving a part ends by a gap or by branch-and-bound nodes, so a program has one answer unless time runs out.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from placement.confined import wider
from placement.exact.milp import highs
from placement.exact.milp.arrays import Floats, Program
from placement.instance import Bools, Ints
from placement.models.pooled_topology import Options, pool_domains
from placement.models.pools import Pattern, Pooling

PART_COLUMNS = 1000
"""Columns of a part; a domain with more is a part of its own."""
MOST_COLUMNS = 4000
"""Columns of a domain where a narrower level is better."""
PART_NODES = 10
"""Branch-and-bound nodes for a part."""
ROUNDS, PATIENCE = 2, 8
"""How often every part is solved again at most, and after how many in a row without a better point no more are."""
LAST_SECONDS = 1.0
"""What making whole what the parts share may take at least: it is quick, and without it there is no answer."""
NOISE = 1e-7
"""How far from whole a relaxed value may be that is meant to be whole."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Which columns of a program belong together.

    Attributes
    ----------
    part : int array (n,)
        By column, -1 for those of no part.
    count : int
    loose : bool array (n,)
        Columns of parts that may have to be lowered once the columns of no part are whole.
    """

    part: Ints
    count: int
    loose: Bools


def is_large(view: Pooling, patterns: Sequence[Pattern], found: Options) -> bool:
    """Return whether a program over them is worth taking apart; its other columns are few."""
    return len(view.shape) + len(patterns) + len(found.unit) > 2 * PART_COLUMNS


def parts_by_domain(view: Pooling, patterns: Sequence[Pattern], found: Options, columns: int) -> Parts | None:
    """Return the parts of a pooled program, or None where all of it is in one.

    Parameters
    ----------
    view, patterns
        Of the program.
    found : Options
        Its units.
    columns : int
        Of the program.
    """
    best: Parts | None = None
    for level in sorted({unit.level for unit in found.units}):
        domain = _domains(view, patterns, found, columns, level)
        sizes = np.bincount(domain[domain >= 0])
        part_of, count = _gathered(sizes.tolist())
        if count < 2:
            continue
        part = np.where(domain >= 0, part_of[domain], -1)
        best = Parts(part, count, _loose(found, level, columns))
        if sizes.max() <= MOST_COLUMNS:
            return best
    return best


def _domains(view: Pooling, patterns: Sequence[Pattern], found: Options, columns: int, level: int) -> Ints:
    """Return the domain of each column at a level: one more than the last where there is none, -1 for all domains."""
    instance = view.instance
    nowhere = int(instance.domains[level].max()) + 1
    domain = np.full(columns, -1, dtype=np.int64)
    of_pool = pool_domains(view, level)
    of_pool[of_pool < 0] = nowhere
    pairs, leaves = len(view.shape), len(view.leaves)
    domain[:pairs] = of_pool[view.pool]
    domain[pairs + leaves : pairs + leaves + len(patterns)] = of_pool[[p.pool for p in patterns]]
    of_option = np.full(len(found.unit), -1, dtype=np.int64)
    for narrow in {unit.level for unit in found.units if unit.level >= level}:
        mine = np.array([unit.level == narrow for unit in found.units])[found.unit]
        of_option[mine] = wider(instance, narrow, level)[found.domain[mine]]
        of_option[mine & (of_option < 0)] = nowhere
    owner = _owners(found)
    domain[columns - len(owner) :] = of_option[owner]
    return domain


def _owners(found: Options) -> Ints:
    """Return the option of each of the last columns: tasks of units that may have fewer than all, then the units."""
    several = [0 if unit.rigid else len(unit.tasks) for unit in found.units]
    options = np.arange(len(found.unit))
    return np.concatenate([np.repeat(options, np.array(several, dtype=np.int64)[found.unit]), options])


def _loose(found: Options, level: int, columns: int) -> Bools:
    """Return the columns of units of jobs that count units over all parts, or have units in wider domains."""
    jobs = {unit.job_class for unit in found.units if unit.level < level or not unit.rigid}
    owner = _owners(found)
    loose = np.zeros(columns, dtype=np.bool_)
    loose[columns - len(owner) :] = np.array([u.job_class in jobs for u in found.units])[found.unit[owner]]
    return loose


def _gathered(sizes: list[int]) -> tuple[Ints, int]:
    """Return the part of each domain, neighbours together, and how many parts there are."""
    part = np.zeros(len(sizes), dtype=np.int64)
    number, filled = 0, 0
    for domain, size in enumerate(sizes):
        if filled and size and filled + size > PART_COLUMNS:
            number, filled = number + 1, 0
        part[domain] = number
        filled += size
    return part, number + 1


@dataclass(frozen=True, slots=True)
class Rounded:
    """A point of a program.

    Attributes
    ----------
    x : float array (n,)
    bound : float
        No point is better.
    in_time : bool
        Whether it would be the same with more time.
    """

    x: Floats
    bound: float
    in_time: bool


def rounded(program: Program, parts: Parts, *, gap: float, seed: int, time_limit: float) -> Rounded | None:
    """Return a point of a program that is maximised, made part by part, or None if time is out before there is one.

    Parameters
    ----------
    program : Program
        Which 0 satisfies.
    parts : Parts
    gap : float
        Relative gap to the relaxation that is good enough; half of it is what the solver may leave in all parts.
    seed : int
        Of the solver.
    time_limit : float
        Seconds.
    """
    run = _Rounding(program, parts, gap, seed, time.perf_counter() + time_limit)
    solved = highs.solve(program, relax=True, time_limit=time_limit, seed=seed)
    if solved.x is None or solved.bound is None or solved.why is not highs.Why.OPTIMAL:
        return None
    run.bound = solved.bound
    if not run.first(solved.x):
        return None
    run.again()
    return Rounded(run.x, run.bound, run.in_time)


class _Rounding:
    def __init__(self, program: Program, parts: Parts, gap: float, seed: int, deadline: float) -> None:
        self.program, self.parts, self.gap, self.seed, self.deadline = program, parts, gap, seed, deadline
        self.x: Floats = np.zeros(len(program.cost))
        self.bound = np.inf
        self.in_time = True
        self.shared = parts.part < 0

    def first(self, relaxed: Floats) -> bool:
        """Make the parts whole one by one, then what they share; return whether there is a point then."""
        program, parts = self.program, self.parts
        whole = np.round(relaxed)
        self.x = np.where(np.abs(relaxed - whole) < NOISE, whole, relaxed)
        settled = np.zeros(parts.count, dtype=np.bool_)
        for number in range(parts.count):
            mine = parts.part == number
            settled[number] = self._solve(replace(program, integer=program.integer & mine), mine | self.shared)
        own = ~self.shared
        self.x[own] = np.where(settled[parts.part[own]], np.round(self.x[own]), 0.0)
        lower = np.where(self.shared | parts.loose, program.lower, self.x)
        upper = np.where(self.shared, program.upper, np.maximum(self.x, program.lower))
        last = replace(program, lower=lower, upper=upper)
        return self._solve(last, self.shared | parts.loose, least=LAST_SECONDS) and program.violation(self.x) is None

    def again(self) -> None:
        """Solve each part again with what is shared, while that is of use."""
        idle = 0
        for number in ROUNDS * list(range(self.parts.count)):
            if self._is_good() or idle == PATIENCE:
                return
            before, kept = self._value(), self.x.copy()
            self._solve(self.program, (self.parts.part == number) | self.shared, from_here=True)
            if self.program.violation(self.x) is not None:
                self.x = kept
            idle = 0 if self._value() > before else idle + 1

    def _value(self) -> float:
        return self.program.objective(self.x)

    def _is_good(self) -> bool:
        return self.bound - self._value() <= self.gap * abs(self._value())

    def _solve(self, program: Program, free: Bools, from_here: bool = False, least: float = 0.0) -> bool:
        """Solve for some columns, the others as they are; return whether there is an answer."""
        left = max(least, self.deadline - time.perf_counter())
        if left <= 0:
            self.in_time = False
            return False
        some = restricted(program, free, self.x)
        start = self.x[free] if from_here else None
        if start is not None and some.violation(start) is not None:
            return False
        solved = highs.solve(
            some, gap=self.gap / (2 * self.parts.count), nodes=PART_NODES, time_limit=left, seed=self.seed, start=start
        )
        self.in_time &= solved.why is not highs.Why.TIME
        if solved.x is None:
            return False
        self.x[free] = solved.x
        return True


def restricted(program: Program, free: Bools, x: Floats) -> Program:
    """Return the program for some columns, with all others at their values in a point; rows of those alone go."""
    number = np.cumsum(free) - 1
    inside, row = free[program.index], program.row_of
    rows = len(program.row_lower)
    outside = ~inside
    rest = np.bincount(row[outside], program.value[outside] * x[program.index[outside]], minlength=rows)
    terms = np.bincount(row[inside], minlength=rows)
    kept = terms > 0
    return replace(
        program,
        cost=program.cost[free],
        lower=program.lower[free],
        upper=program.upper[free],
        integer=program.integer[free],
        start=np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(terms[kept])]).astype(np.int32),
        index=number[program.index[inside]].astype(np.int32),
        value=program.value[inside],
        row_lower=(program.row_lower - rest)[kept],
        row_upper=(program.row_upper - rest)[kept],
        columns="x{}".format,
        rows="r{}".format,
        offset=program.offset + float(program.cost[~free] @ x[~free]),
    )
