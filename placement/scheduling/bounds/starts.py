r"""The linear program of starts that grows: by starts that prices call for, and by cover inequalities that it breaks.

It begins as the program of `placement.models.time` over a grid: each start of a kind in a mode is a column, and what is
held of a resource is limited on average over each slot. Columns may then start at any time, not only at moments of the
grid, so its value comes down to the bound that its duals prove (`placement.scheduling.bounds.tolls`), and inequalities
(`placement.scheduling.bounds.spans`) lift both.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from placement.exact.milp.arrays import Floats
from placement.exact.milp.growing import BASIC, Answer, Basis, Growing
from placement.instance import Bools, Ints
from placement.scheduling.bounds import grid
from placement.scheduling.bounds.columns import Columns, chosen, joined, none
from placement.scheduling.bounds.covers import BROKEN, covers, overfull
from placement.scheduling.bounds.modes import Relaxation, in_windows
from placement.scheduling.bounds.prices import Prices
from placement.scheduling.bounds.spans import NOBODY, Key, Span, counted_by, shares
from placement.scheduling.bounds.tolls import Tolled, Tolls, Windows, tolled, whole_windows

THIN = 4
"""Of how many moments one is a start of the first columns."""
CHUNK = 4096
"""Columns of which the slots are looked at together."""
MOST_ROOM = 4096
"""Units of a resource, counted as coarsely as jobs allow, up to which inequalities are looked for."""
MOST_CUT, SHORTEST = 5, 2000
"""Spans that are cut in two together, and milliseconds of the shortest such."""
MOST_PAIRS = 600
"""Pairs of a span and a job that is to count at any moment of a length: those that are looked at, which hold most."""
LONGER = 0.02
"""How much more of a job must run at any moment of a length than in all of it, for an inequality to be looked for."""
TOO_LATE = 4.0
"""How many times as much as the dearest end leaving a job out costs."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A solution: the basis of columns and of rows but inequalities, and those that are tight, with how they are."""

    basis: Basis
    tight: list[tuple[Span, Any]]


class Starts:
    """The program.

    Parameters
    ----------
    relaxed : Relaxation
        Of kinds of one job each.
    moments : int array
        Of the grid.
    seed : int

    Attributes
    ----------
    spans : list of Span
    columns : Columns
        In the order in which they came.
    edges : int array
        Moments, when there comes to be more or less of a resource, and where spans are cut in two.
    """

    def __init__(self, relaxed: Relaxation, moments: Ints, seed: int = 0) -> None:
        self.relaxed, self.moments = relaxed, moments
        changes = np.concatenate([moments, *(profile.times for profile in relaxed.profiles)])
        self.edges = np.unique(changes[changes <= moments[-1]])
        self.spans: list[Span] = []
        first = grid.columns_of(relaxed, np.unique(np.append(moments[::THIN], moments[-1])))
        self._scale = grid.scale(first)
        self._sizes = grid.sizes(relaxed)
        self._seed = seed
        self._program = self._opened()
        self._whole: Bools = np.array([in_windows(kind) for kind in relaxed.kinds])
        self._covered = [self._units_in_covers(resource) for resource in range(len(self._sizes))]
        self._windows = whole_windows(relaxed)
        self.columns = none()
        self._known: set[tuple[int, int, int]] = set()
        self._rows: dict[Key, int] = {}
        self._add(first)
        self._answer: Answer | None = None
        self._solved: list[Span] = []

    def _opened(self) -> Growing:
        """Return the program without a column but for jobs that are left out."""
        relaxed, moments = self.relaxed, self.moments
        there = [grid.there(relaxed, moments, number) / size for number, size in enumerate(self._sizes)]
        counts = np.array([kind.count for kind in relaxed.kinds], dtype=np.float64)
        program = Growing(counts, np.concatenate(there) if there else np.zeros(0), self._seed)
        kinds = np.arange(len(counts))
        most = max(kind.weight * (float(moments[-1]) + max(mode.run for mode in kind.parts)) for kind in relaxed.kinds)
        late = np.full(len(kinds), TOO_LATE * max(1.0, most) / self._scale)
        program.add_columns(late, kinds, np.stack([kinds, np.ones(len(kinds))], axis=1))
        return program

    def trim(self) -> None:
        """Drop inequalities that are not tight in the solution; it has to be solved again."""
        self.restart(self.spot())

    def _keep(self, keys: Collection[Key]) -> None:
        """Drop the inequalities that are not among some."""
        gone = [row for key, row in self._rows.items() if key not in keys]
        if gone:
            self._program.drop_rows(self._first + np.array(gone))
            left = set(range(len(self.spans))) - set(gone)
            self.spans = [self.spans[row] for row in sorted(left)]
            self._rows = {span.key: row for row, span in enumerate(self.spans)}

    # --- columns -------------------------------------------------------------------------------------------------

    def _add(self, new: Columns) -> None:
        """Add columns."""
        kinds, slots = len(self.relaxed.kinds), len(self.moments) - 1
        count = len(new.kind)
        column, row, value = [np.arange(count)], [new.kind], [np.ones(count)]
        units = [
            grid.units(self.relaxed, new, resource) / size * new.share for resource, size in enumerate(self._sizes)
        ]
        uses, of_span = self._uses(new), [span.resource for span in self.spans]
        base = kinds + len(units) * slots
        for begin in range(0, count, CHUNK):
            part = slice(begin, begin + CHUNK)
            covered = shares(new.begin[part], new.end[part], self.moments)
            for resource, mine in enumerate(units):
                at, slot = np.nonzero(covered * mine[part, None])
                column.append(begin + at)
                row.append(kinds + resource * slots + slot)
                value.append(covered[at, slot] * mine[begin + at])
            counted = counted_by(self.spans, new.kind[part], new.begin[part], new.end[part])
            counted *= uses[of_span, part]
            number, at = np.nonzero(counted)
            column.append(begin + at)
            row.append(base + number)
            value.append(counted[number, at])
        columns, rows = np.concatenate(column), np.concatenate(row)
        order = np.lexsort((rows, columns))
        entry = np.stack([rows[order], np.concatenate(value)[order]], axis=1)
        self._program.add_columns(new.cost / self._scale, columns[order], entry)
        self.columns = joined(self.columns, new)
        self._known.update(zip(new.kind.tolist(), new.part.tolist(), new.begin.tolist(), strict=True))

    def add(self, kinds: Ints, parts: Ints, starts: Ints) -> int:
        """Add starts of jobs that run at a stretch, but for those that are there; return how many are new.

        Parameters
        ----------
        kinds, parts, starts : int array
            Of each start its kind, the mode of `Kind.parts`, and when, in milliseconds.
        """
        wanted = zip(kinds.tolist(), parts.tolist(), starts.tolist(), strict=True)
        new = [
            one for one in dict.fromkeys(wanted) if one not in self._known and in_windows(self.relaxed.kinds[one[0]])
        ]
        if new:
            kind, part, begin = (np.array(values, dtype=np.int64) for values in zip(*new, strict=True))
            of = [self.relaxed.kinds[number] for number in kind.tolist()]
            run = np.array([one.modes[mode].run for one, mode in zip(of, part.tolist(), strict=True)])
            weight = np.array([float(one.weight) for one in of])
            release = np.array([one.release for one in of])
            cost = weight * (begin + run - release)
            self._add(Columns(kind, part, begin, begin + run, np.ones(len(new)), cost))
            self._allow()
        return len(new)

    # --- solving -------------------------------------------------------------------------------------------------

    @property
    def windows(self) -> Windows:
        """When jobs may end."""
        return self._windows

    @windows.setter
    def windows(self, windows: Windows) -> None:
        self._windows = windows
        self._allow()

    def _allow(self) -> None:
        late = np.ones(len(self.relaxed.kinds), dtype=np.bool_)
        self._program.allow(np.concatenate([late, self._allowed()]))

    def _allowed(self) -> Bools:
        kind, end = self.columns.kind, self.columns.end
        inside = (end >= self._windows.first[kind]) & (end <= self._windows.last[kind])
        found: Bools = inside | ~self._whole[kind]
        return found

    def solve(self, time_limit: float) -> bool:
        """Solve; return whether there is a solution now."""
        answer = self._program.solve(time_limit)
        if answer is not None:
            self._answer, self._solved = answer, [*self.spans]
        return answer is not None

    @property
    def value(self) -> float:
        """Value of the solution; no bound."""
        assert self._answer is not None
        return self._answer.value * self._scale

    @property
    def mass(self) -> Floats:
        """Which part of its job each column starts."""
        assert self._answer is not None
        found: Floats = np.maximum(self._answer.x[len(self.relaxed.kinds) :], 0.0)
        return found

    def said(self) -> tuple[dict[int, tuple[Floats, Floats]], dict[int, int]]:
        """Return what the solution says of starts: see `placement.scheduling.bounds.grid.GridBound`."""
        mass = self.mass
        return grid.masses(self.relaxed, self.columns, mass), grid.runs(self.relaxed, self.columns, mass)

    def tolled(self, value: int = -1) -> Tolled:
        """Return the bound that the duals prove, for the present windows, and the starts that they call for."""
        prices, spans, multipliers = self._duals()
        return tolled(self.relaxed, prices, spans, multipliers, self._windows, value)

    def tolls(self) -> Tolls:
        """Return what the duals have jobs pay."""
        return Tolls(self.relaxed, *self._duals())

    def _duals(self) -> tuple[Prices, list[Span], Floats]:
        """Return prices, and inequalities with their multipliers."""
        assert self._answer is not None
        kinds, slots, resources = len(self.relaxed.kinds), len(self.moments) - 1, len(self.relaxed.profiles)
        duals = np.maximum(-self._answer.duals, 0.0) * self._scale
        price = duals[kinds : kinds + resources * slots].reshape(resources, slots)
        price = price / np.array(self._sizes)[:, None] / np.diff(self.moments)
        price = price[:, np.searchsorted(self.moments, self.edges[:-1], side="right") - 1]
        return Prices(self.edges, price), self._solved, duals[kinds + resources * slots :]

    def spot(self) -> Spot:
        """Return where the solution is: its basis, and the inequalities that are tight in it."""
        basis = self._program.basis()
        fixed, of_spans = basis.rows[: self._first], basis.rows[self._first :]
        tight = [(span, status) for span, status in zip(self.spans, of_spans, strict=True) if status != BASIC]
        return Spot(Basis(basis.columns, fixed), tight)

    def restart(self, spot: Spot, beside: bool = False) -> None:
        """Go on from an earlier solution, with the inequalities that were tight there.

        Parameters
        ----------
        spot : Spot
        beside : bool, optional
            Whether to keep the other inequalities of now.
        """
        tight = {span.key: (span, status) for span, status in spot.tight}
        if not beside:
            self._keep(tight)
        self._add_spans([span for key, (span, _) in tight.items() if key not in self._rows])
        of_spans = [tight[key][1] if key in tight else BASIC for key in (span.key for span in self.spans)]
        self._program.restart(Basis(spot.basis.columns, spot.basis.rows + of_spans))

    # --- inequalities --------------------------------------------------------------------------------------------

    def cut(self, lengths: Sequence[int], most: int) -> int:
        """Add inequalities that the solution breaks; return how many.

        Parameters
        ----------
        lengths : sequence of int
            Of spans, see `placement.scheduling.bounds.spans`; 0 for plain ones.
        most : int
            How many at most, those that are broken most.
        """
        found: list[tuple[float, Span]] = []
        for resource in range(len(self._sizes)):
            holds = self._holding(resource)
            if len(holds):
                for length in lengths:
                    found += self._broken(resource, length, holds)
        found.sort(key=lambda one: -one[0])
        new = {span.key: span for _, span in found[:most]}
        self._add_spans([*new.values()])
        return len(new)

    def refine(self) -> int:
        """Cut spans in two in which more is held at some moment than there is; return how many."""
        new: list[int] = []
        edges = self.edges
        for resource in range(len(self._sizes)):
            holds = self._holding(resource)
            begin, end = self.columns.begin[holds], self.columns.end[holds]
            amount = self._covered[resource][self.columns.kind[holds]] * self.mass[holds]
            moments = np.union1d(begin, self.relaxed.profiles[resource].times)
            load = np.array([float(amount[(begin <= now) & (now < end)].sum()) for now in moments.tolist()])
            slot = np.searchsorted(edges, moments, side="right") - 1
            inside = slot < len(edges) - 1
            moments, load, slot = moments[inside], load[inside], slot[inside]
            room, width = self._room(resource)[slot], np.diff(edges)[slot]
            over = (load - room) * width
            over[(load < room + BROKEN) | (width < SHORTEST)] = 0.0
            worst = np.argsort(-over, kind="stable")[:MOST_CUT]
            those = dict.fromkeys(slot[worst[over[worst] > 0]].tolist())
            new += [(int(edges[number]) + int(edges[number + 1])) // 2 for number in those]
        self.edges = np.union1d(edges, np.array(new, dtype=np.int64))
        return len(self.edges) - len(edges)

    def _holding(self, resource: int) -> Ints:
        """Return the columns of the solution that hold a resource and of whose kinds inequalities can tell."""
        used = np.flatnonzero(self.mass > 1e-9)
        used = used[self._covered[resource][self.columns.kind[used]] > 0]
        found: Ints = used[grid.units(self.relaxed, chosen(self.columns, used), resource) > 0]
        return found

    def _broken(self, resource: int, length: int, holds: Ints) -> list[tuple[float, Span]]:
        """Return spans of one resource and length that are broken, and by how much."""
        begin, end, kind = self.columns.begin[holds], self.columns.end[holds], self.columns.kind[holds]
        running = self._running(kind, self.mass[holds], begin, end - length)
        slots = np.arange(running.shape[1])
        who = np.full(len(slots), NOBODY)
        if length:
            anytime = self._running(kind, self.mass[holds], begin - length, end)
            who, slots = np.nonzero(anytime > running + LONGER)
            more = (anytime - running)[who, slots] * self._covered[resource][who]
            best = np.sort(np.argsort(-more, kind="stable")[:MOST_PAIRS])
            who, slots = who[best], slots[best]
            running = running[:, slots]
            running[who, np.arange(len(who))] = anytime[who, slots]
        units = self._covered[resource].tolist()
        found: list[tuple[float, Span]] = []
        rooms = self._room(resource, length)[slots]
        for room in np.unique(rooms[(rooms > 0) & (rooms <= MOST_ROOM)]).tolist():
            mine = np.flatnonzero(rooms == room)
            some = covers(running[:, mine], units, room)
            if not length and len(self.edges) > len(self.moments):
                some += overfull(running[:, mine], units, room)
            for one in some:
                at = mine[one.column]
                slot = int(slots[at])
                first, last = self.edges[slot : slot + 2].tolist()
                span = Span(resource, first, last, length, int(who[at]), one.coefficient, one.most)
                if span.key not in self._rows:
                    found.append((one.broken, span))
        return found

    def _running(self, kind: Ints, mass: Floats, begin: Ints, end: Ints) -> Floats:
        """Return which part of each kind runs in each span between edges on average."""
        found = np.zeros((len(self.relaxed.kinds), len(self.edges) - 1))
        np.add.at(found, kind, shares(begin, end, self.edges) * mass[:, None])
        return np.minimum(found, 1.0)

    def _add_spans(self, spans: list[Span]) -> None:
        if not spans:
            return
        one, row, entry = self.columns, [], []
        uses = self._uses(one)
        for number, span in enumerate(spans):
            counted = counted_by([span], one.kind, one.begin, one.end)[0] * uses[span.resource]
            at = np.flatnonzero(counted)
            row.append(np.full(len(at), number))
            entry.append(np.stack([len(self.relaxed.kinds) + at, counted[at]], axis=1))
        most = np.array([float(span.most) for span in spans])
        self._program.add_rows(most, np.concatenate(row), np.concatenate(entry))
        self._rows.update((span.key, len(self.spans) + row) for row, span in enumerate(spans))
        self.spans += spans

    @property
    def _first(self) -> int:
        """Row of the first inequality."""
        return len(self.relaxed.kinds) + len(self._sizes) * (len(self.moments) - 1)

    def _uses(self, columns: Columns) -> Bools:
        return np.array([grid.units(self.relaxed, columns, resource) > 0 for resource in range(len(self._sizes))])

    def _room(self, resource: int, length: int = 0) -> Ints:
        """Return the most units that there are in each span between neighbouring edges, or so long after its end."""
        profile, begin, end = self.relaxed.profiles[resource], self.edges[:-1], self.edges[1:] + length
        found = profile.units[np.searchsorted(profile.times, begin, side="right") - 1]
        for moment, units in zip(profile.times.tolist(), profile.units.tolist(), strict=True):
            found = np.where((begin < moment) & (moment < end), np.maximum(found, units), found)
        room: Ints = found // self._sizes[resource]
        return room

    def _units_in_covers(self, resource: int) -> Ints:
        """Return what jobs of each kind hold of a resource all the while; 0 where that is not one amount.

        Jobs that hold it for no time at all are left out: they get in nobody's way.
        """
        found = np.zeros(len(self.relaxed.kinds), dtype=np.int64)
        for number, kind in enumerate(self.relaxed.kinds):
            mode = kind.modes[0]
            if in_windows(kind) and len(kind.modes) == 1 and mode.run:
                found[number] = dict(mode.uses).get(resource, 0) // self._sizes[resource]
        return found
