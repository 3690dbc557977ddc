r"""The linear program over a grid of start times: in which order jobs start, and prices that prove a bound.

`placement.models.time` has the maths. Its rows say of neighbouring slots how what is held in the one differs from what
is held in the other, with the free units of each slot as columns: a start changes that in few slots, however long the
job runs, so the matrix is sparse.

The program's value is no bound: on the grid a job cannot start between two moments, and in a slot it is only the mean
of what is held that is limited. The bound comes from its duals, as prices of cards in each slot (`prices`), and holds
for continuous time, whatever the solver did. The two are usually less than 0.1 % apart.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from placement.exact.milp.arrays import Floats, Program
from placement.instance import Ints
from placement.scheduling.bounds.area import area_bound
from placement.scheduling.bounds.columns import Columns, chosen
from placement.scheduling.bounds.modes import Relaxation, relaxation
from placement.scheduling.bounds.multiples import Multiples
from placement.scheduling.bounds.near import near
from placement.scheduling.bounds.prices import Prices, on_lines, priced
from placement.scheduling.work import Work

FIRST = 120_000
"""Length of the first slots of coarse grids, in milliseconds."""
GRIDS = (
    (1.5, FIRST),
    (1.2, FIRST),
    (1.06, FIRST),
    (1.03, FIRST),
    (1.015, FIRST // 2),
    (1.0075, FIRST // 4),
    (1.004, FIRST // 8),
    (1.002, FIRST // 16),
)
"""Ratio of each moment to the one before, and least length of a slot in milliseconds, of grids, one after the other."""
THINNED = 1.2
"""Ratio of the first grid after which only starts near the best are columns (`placement.scheduling.bounds.near`)."""
SLOWER, THINNED_SLOWER, MOST_STARTS = 4, 2, 2_000_000
"""How many times as long as the one before a grid may take, and one of few starts; and starts that it has at most."""
SPLITS = (1, 4, 16)
"""Into how many pieces slots are cut, for prices that change on a line from the middle of a slot to the next."""
ROOM = 1.15
"""How much longer than all work would take at full use the grid is, beside the longest job."""
OPTIONS = {"solver": "ipm", "run_crossover": "off"}
"""Interior points are faster here than the simplex method, and any duals will do."""


@dataclass(frozen=True, slots=True)
class GridBound:
    """What the program over a grid says.

    Attributes
    ----------
    bound : int
        On `Timetable.value`, in milliseconds; of every timetable in which all jobs end that were not left out.
    masses : dict of int to (float array, float array)
        By job that counts, moments and the part of it that has started by each of them; empty where nothing was found.
    runs : dict of int to int
        By job of which all work is done at a stretch, how long it runs in the mode that has the largest part of it.
    prices : Prices, optional
        That prove the bound, where the program does.
    """

    bound: int
    masses: dict[int, tuple[Floats, Floats]] = field(default_factory=dict)
    runs: dict[int, int] = field(default_factory=dict)
    prices: Prices | None = None

    def at(self, part: float) -> dict[int, float]:
        """Return by job when so much of it has started (its alpha point)."""
        found = {}
        for job, (moments, mass) in self.masses.items():
            found[job] = float(moments[min(int(np.searchsorted(mass, part - 1e-9)), len(moments) - 1)])
        return found

    @property
    def mean(self) -> dict[int, float]:
        """Mean start of each job."""
        return {
            job: float(moments @ np.diff(mass, prepend=0.0) / mass[-1]) for job, (moments, mass) in self.masses.items()
        }


def best_bound(work: Work, deadline: float = math.inf, out: Collection[int] = ()) -> GridBound:
    """Return the best bound over several grids, and what the last one says of starts.

    Parameters
    ----------
    work : Work
    deadline : float
        On the clock of `time.monotonic`. Another grid is begun only if it can be expected to be done by then.
    out : collection of int
        Jobs that get no start.
    """
    return bound_of(relaxation(work, out), deadline)


def bound_of(relaxed: Relaxation, deadline: float, grids: int = len(GRIDS)) -> GridBound:
    """Return what `best_bound` does, of a relaxation that is there already; over so many grids at most."""
    up = Multiples.of(relaxed).up
    best = GridBound(up(area_bound(relaxed)))
    took, modes = 0.0, sum(len(kind.parts) for kind in relaxed.kinds)
    for number, (ratio, first) in enumerate(GRIDS[:grids]):
        began = time.monotonic()
        thinned = number > 0 and GRIDS[number - 1][0] <= THINNED
        if began + (THINNED_SLOWER if thinned else SLOWER) * took > deadline:
            break
        if thinned and (best.prices is None or modes * len(grid(relaxed, ratio, first)) > MOST_STARTS):
            break
        found = _bound(
            relaxed,
            ratio,
            first,
            deadline,
            (best.prices, GRIDS[number - 1][0] - 1) if thinned and best.prices else None,
        )
        better = found.prices is not None and (best.prices is None or up(found.bound) >= best.bound)
        best = GridBound(
            max(best.bound, up(found.bound)),
            found.masses or best.masses,
            found.runs or best.runs,
            found.prices if better else best.prices,
        )
        if thinned and not better:
            break
        took = time.monotonic() - began
    return best


def grid_bound(
    work: Work, ratio: float, first: int, deadline: float = math.inf, out: Collection[int] = ()
) -> GridBound:
    """Return the bound of one grid, or that by areas where this is better.

    Parameters
    ----------
    work : Work
    ratio : float
        Of each moment of the grid to the one before, above 1.
    first : int
        Least length of a slot, in milliseconds.
    deadline : float
        On the clock of `time.monotonic`; after it the bound by areas must do.
    out : collection of int
        Jobs that get no start.
    """
    return _bound(relaxation(work, out), ratio, first, deadline)


def _bound(
    relaxed: Relaxation, ratio: float, first: int, deadline: float, coarse: tuple[Prices, float] | None = None
) -> GridBound:
    """Return the bound of one grid; of starts that are near the best at prices of a coarser one, if these are given."""
    least = area_bound(relaxed)
    if not any(kind.weight and mode.uses for kind in relaxed.kinds for mode in kind.parts):
        return GridBound(least)
    # loaded where it is needed, for it takes a while
    from placement.exact.milp.highs import solve

    moments = grid(relaxed, ratio, first)
    columns = columns_of(relaxed, moments)
    if coarse is not None:
        one = columns
        columns = chosen(one, near(relaxed, *coarse, moments, one.kind, one.part, one.begin, one.end, one.cost))
    left = max(0.0, deadline - time.monotonic())
    solved = solve(program(relaxed, moments, columns), time_limit=left, options=OPTIONS)
    if solved.row_duals is None or solved.x is None:
        return GridBound(least)
    prices = prices_of(relaxed, moments, columns, solved.row_duals)
    proving = None
    # of fine slots prices that change on a line prove next to nothing more
    for pieces in SPLITS if coarse is None else SPLITS[:1]:
        split = on_lines(moments, prices, pieces)
        bound = priced(relaxed, split).bound
        if bound >= least:
            least, proving = bound, split
    x = solved.x[: len(columns.kind)]
    return GridBound(least, masses(relaxed, columns, x), runs(relaxed, columns, x), proving)


# --- the program ---------------------------------------------------------------------------------------------


def grid(relaxed: Relaxation, ratio: float, first: int, most: int | None = None) -> Ints:
    """Return the moments of a geometric grid that is long enough for all jobs; `most` is of the longest slot."""
    start = max(kind.start for kind in relaxed.kinds)
    area = sum(kind.count * min(mode.area(relaxed.cards) for mode in kind.parts) for kind in relaxed.kinds)
    units = max(1, sum(int(profile.units[-1]) for profile in relaxed.profiles[: relaxed.cards]))
    last = max(int(profile.times[-1]) for profile in relaxed.profiles)
    longest = max(mode.run for kind in relaxed.kinds for mode in kind.parts)
    horizon = max(start, last) + longest + math.ceil(ROOM * area / units)
    found = [0, max(1, first)]
    while found[-1] < horizon:
        longer = math.floor(found[-1] * ratio) - found[-1]
        found.append(found[-1] + max(1, first, longer if most is None else min(longer, most)))
    return np.array(found, dtype=np.int64)


def columns_of(relaxed: Relaxation, moments: Ints) -> Columns:
    """Return all starts at moments of a grid, and at the release of each job within its slot."""
    pieces: list[Columns] = []
    for number, kind in enumerate(relaxed.kinds):
        first = int(np.searchsorted(moments, kind.start, side="right")) - 1
        begin = np.maximum(moments[first:], kind.start)
        if kind.kept is not None:
            cost = np.array([float(kind.weight) * (kind.kept.run - kind.release)])
            pieces.append(_piece(number, 0, np.zeros(1, dtype=np.int64), np.array([kind.kept.run]), np.ones(1), cost))
        for part, mode in enumerate(kind.modes, 0 if kind.kept is None else 1):
            if kind.whole:
                cost = float(kind.weight) * (begin + (mode.run - kind.release))
                pieces.append(_piece(number, part, begin, begin + mode.run, np.ones(len(begin)), cost))
            else:
                end = np.append(moments[first + 1 :], begin[-1])
                share = np.where(end > begin, mode.run / np.maximum(end - begin, 1), 0.0)
                time_ = np.maximum(begin + kind.least / 2, kind.stopped)
                pieces.append(_piece(number, part, begin, end, share, kind.weight * (time_ - kind.release)))
    return Columns(
        kind=np.concatenate([piece.kind for piece in pieces]),
        part=np.concatenate([piece.part for piece in pieces]),
        begin=np.concatenate([piece.begin for piece in pieces]),
        end=np.concatenate([piece.end for piece in pieces]),
        share=np.concatenate([piece.share for piece in pieces]),
        cost=np.concatenate([piece.cost for piece in pieces]),
    )


def _piece(kind: int, part: int, begin: Ints, end: Ints, share: Floats, cost: Floats) -> Columns:
    return Columns(np.full(len(begin), kind), np.full(len(begin), part), begin, end, share, cost)


def program(relaxed: Relaxation, moments: Ints, columns: Columns) -> Program:
    """Return the program: rows of kinds, then of each resource and slot; columns, then free units."""
    slots, kinds, starts = len(moments) - 1, len(relaxed.kinds), len(columns.kind)
    row, column, value = [columns.kind], [np.arange(starts)], [np.ones(starts)]
    changes = [*_changes(columns.begin, moments, 1.0), *_changes(columns.end, moments, -1.0)]
    size = sizes(relaxed)
    for resource in range(len(relaxed.profiles)):
        held = units(relaxed, columns, resource) / size[resource] * columns.share
        base = kinds + resource * slots
        for slot, change in changes:
            here = (held != 0) & (slot < slots) & (change != 0)
            row.append(base + slot[here])
            column.append(np.flatnonzero(here))
            value.append((held * change)[here])
        unused = starts + resource * slots + np.arange(slots)
        row += [base + np.arange(slots), base + np.arange(1, slots)]
        column += [unused, unused[:-1]]
        value += [np.ones(slots), -np.ones(slots - 1)]
    free = [there(relaxed, moments, resource) / size[resource] for resource in range(len(relaxed.profiles))]
    sides = np.concatenate([[kind.count for kind in relaxed.kinds], *(np.diff(one, prepend=0.0) for one in free)])
    rows, at, values = np.concatenate(row), np.concatenate(column), np.concatenate(value)
    total = starts + slots * len(relaxed.profiles)
    rows, at, values = _added_up(rows, at, values, total)
    begins = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(sides)))])
    return Program(
        sense=1,
        cost=np.concatenate([columns.cost / scale(columns), np.zeros(total - starts)]),
        lower=np.zeros(total),
        upper=np.full(total, np.inf),
        integer=np.zeros(total, dtype=np.bool_),
        start=begins.astype(np.int32),
        index=at.astype(np.int32),
        value=values,
        row_lower=sides.astype(np.float64),
        row_upper=sides.astype(np.float64),
    )


def _changes(times: Ints, moments: Ints, sign: float) -> list[tuple[Ints, Floats]]:
    """Return slots, and by how much more than in the slot before is held in them, on average, from some times on."""
    slot = np.searchsorted(moments, times, side="right") - 1
    length = np.append(np.diff(moments), 1)[slot]
    gone = np.where(slot < len(moments) - 1, (times - moments[slot]) / length, 0.0)
    return [(slot, sign * (1 - gone)), (slot + 1, sign * gone)]


def _added_up(rows: Ints, columns: Ints, values: Floats, width: int) -> tuple[Ints, Ints, Floats]:
    """Return a matrix by rows in which no place comes twice."""
    places, which = np.unique(rows.astype(np.int64) * width + columns, return_inverse=True)
    summed = np.bincount(which.reshape(-1), values)
    places, summed = places[summed != 0], summed[summed != 0]
    return places // width, places % width, summed


def units(relaxed: Relaxation, columns: Columns, resource: int) -> Floats:
    """Return the units of a resource that the mode of each column holds."""
    of = [[dict(mode.uses).get(resource, 0) for mode in kind.parts] for kind in relaxed.kinds]
    table = np.zeros((len(of), max(map(len, of))))
    for number, units in enumerate(of):
        table[number, : len(units)] = units
    found: Floats = table[columns.kind, columns.part]
    return found


def there(relaxed: Relaxation, moments: Ints, resource: int) -> Floats:
    """Return the units that there are of a resource in each slot, on average."""
    totals = relaxed.profiles[resource].total(moments)
    areas = np.array([end - begin for begin, end in pairwise(totals)], dtype=np.float64)
    found: Floats = areas / np.diff(moments)
    return found


def sizes(relaxed: Relaxation) -> list[int]:
    """Return in which units each resource is counted in the program: as coarse as possible."""
    units: list[list[int]] = [[] for _ in relaxed.profiles]
    for kind in relaxed.kinds:
        for mode in kind.parts:
            for resource, amount in mode.uses:
                units[resource].append(amount)
    return [max(1, math.gcd(*amounts)) for amounts in units]


def scale(columns: Columns) -> float:
    """Return in which unit costs are counted in the program."""
    return max(1.0, float(np.abs(columns.cost).mean()))


def prices_of(relaxed: Relaxation, moments: Ints, columns: Columns, duals: Floats) -> Floats:
    """Return the prices of a unit of each resource for a millisecond in each slot, from the duals of the rows."""
    slots = len(moments) - 1
    of_rows = duals[len(relaxed.kinds) :].reshape(len(relaxed.profiles), slots)
    following = np.concatenate([of_rows[:, 1:], np.zeros((len(of_rows), 1))], axis=1)
    size = np.array(sizes(relaxed))[:, None]
    found: Floats = np.maximum((following - of_rows) * scale(columns) / size / np.diff(moments), 0.0)
    return found


def masses(relaxed: Relaxation, columns: Columns, x: Floats) -> dict[int, tuple[Floats, Floats]]:
    """Return what a solution says of starts; of jobs of one kind the first ones start first."""
    found = {}
    order = np.lexsort((columns.begin, columns.kind))
    order = order[x[order] > 1e-9]
    edges = np.searchsorted(columns.kind[order], np.arange(len(relaxed.kinds) + 1))
    for (begin, end), kind in zip(pairwise(edges.tolist()), relaxed.kinds, strict=True):
        mine = order[begin:end]
        if not len(mine):
            continue
        mass = np.cumsum(x[mine]) / x[mine].sum() * kind.count
        moments = columns.begin[mine].astype(np.float64)
        for number, job in enumerate(kind.jobs):
            first, last = np.searchsorted(mass, (number + 1e-9, number + 1 - 1e-9))
            last = min(int(last), len(mass) - 1)
            found[job] = moments[first : last + 1], np.minimum(mass[first : last + 1] - number, 1.0)
    return found


def runs(relaxed: Relaxation, columns: Columns, x: Floats) -> dict[int, int]:
    """Return how long each job runs in the mode that a solution has most of, of those that run at a stretch."""
    found: dict[int, int] = {}
    for number, kind in enumerate(relaxed.kinds):
        if kind.whole and kind.kept is None:
            mine = columns.kind == number
            mass = np.bincount(columns.part[mine], weights=x[mine], minlength=len(kind.modes))
            found |= dict.fromkeys(kind.jobs, kind.modes[int(mass.argmax())].run)
    return found
