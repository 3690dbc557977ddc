r"""Topology on counts: how many confined units lie in which domain.

Units are the parts of jobs that one domain has to hold (`placement.confined`): a unit *u* of level :math:`\ell_u` takes
:math:`a_{us}` tasks of shape *s* that lie in no smaller unit. With :math:`H_{ud}` the units *u* in domain *d* of that
level, whole numbers, and domains that are nested in one another,

.. math::
    \sum_{u,\,d' \subseteq d} a_{us} H_{ud'} &\le \sum_{k \subseteq d} n_{sk} &\quad& \forall s, d, \\
    t_l &\le \sum_{u,d} a_{ul} H_{ud} && \forall l, \\
    \sum_{d' \subseteq d} H_{ud'} &= \tau_u H_{pd} && \forall u \text{ inside } p,\ d,

with :math:`\tau_u` units in each unit that holds them. Pools lie within one domain each. Because domains are nested
(where they are not, nothing is added), the first rows are not only needed: where they hold, the room in the pools can
be dealt out to the units, from the narrowest domains up (Hall's condition on a laminar family). In jobs that may run in
part a unit may have fewer tasks; then :math:`e_{ld} \le a_{ul} H_{ud}` of them count, the last rows are inequalities,
and a job that runs has at most :math:`\tau_u` units.

What else a topology asks (balance, spread, groups apart) is left out, so this is a relaxation. No two variables are
multiplied.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np

from placement.confined import Unit, confined, wider
from placement.instance import Instance, Ints
from placement.models.pooled_linear import Draft, Row, add_rows, whole_numbers
from placement.models.pools import Pooling

MOST_OPTIONS = 200_000
"""Units times domains of a model; more take longer to build than to do without."""


@dataclass(frozen=True, slots=True)
class Options:
    """Where units may lie, by unit and then by domain.

    Attributes
    ----------
    units : list of Unit
    unit, domain, most : int arrays (H,)
        Unit, domain at the unit's level, and how many of the unit could be there at most.
    """

    units: list[Unit]
    unit: Ints
    domain: Ints
    most: Ints


_NONE = np.zeros(0, dtype=np.int64)
NOWHERE = Options([], _NONE, _NONE, _NONE)
"""No units, and so no places for them."""


def options(view: Pooling) -> Options | None:
    """Return where units may lie, or None where the view does not tell domains apart or decides about a part only.

    Nor is there an answer where domains are not nested, because some of their nodes lie in no domain of a wider level,
    or where there would be too many of them.
    """
    instance = view.instance
    # the quick tests first: most models are of few nodes or of instances without ties
    if not view.pools or view.elsewhere.any() or not instance.tied or not _is_nested(instance):
        return None
    units = confined(instance)
    levels = sorted({unit.level for unit in units})
    if not units or not all(_is_pure(instance, pool.nodes, levels) for pool in view.pools):
        return None
    sizes = {level: int(instance.domains[level].max()) + 1 for level in levels}
    if sum(sizes[unit.level] for unit in units) > MOST_OPTIONS:
        return None
    room = {level: _room(view, level) for level in levels}
    contents = _contents(units)
    rows: list[tuple[int, int, int]] = []
    for number, unit in enumerate(units):
        most = _most(instance, units, number, contents[number], room[unit.level])
        rows += [(number, d, int(most[d])) for d in np.flatnonzero(most).tolist()]
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return Options(units, table[:, 0], table[:, 1], table[:, 2])


def _is_nested(instance: Instance) -> bool:
    """Return whether all nodes of each domain lie in one domain of every wider level, or all in none."""
    for narrow in range(1, len(instance.levels) - 1):
        inside = np.flatnonzero(instance.domains[narrow] >= 0)
        domain = instance.domains[narrow, inside]
        for wide in range(1, narrow):
            if (wider(instance, narrow, wide)[domain] != instance.domains[wide, inside]).any():
                return False
    return True


def _is_pure(instance: Instance, nodes: Ints, levels: list[int]) -> bool:
    return all((instance.domains[level, nodes] == instance.domains[level, nodes[0]]).all() for level in levels)


def pool_domains(view: Pooling, level: int) -> Ints:
    """Return the domain of each pool at a level."""
    return np.array([view.instance.domains[level, pool.nodes[0]] for pool in view.pools], dtype=np.int64)


def _room(view: Pooling, level: int) -> Ints:
    """Return the most tasks of each shape in each domain of a level, one shape at a time, shape (S, D)."""
    instance = view.instance
    room = np.zeros((len(instance.shapes), int(instance.domains[level].max(initial=-1)) + 1), dtype=np.int64)
    domain = pool_domains(view, level)[view.pool]
    inside = domain >= 0
    np.add.at(room, (view.shape[inside], domain[inside]), view.most[inside])
    return room


def _contents(units: list[Unit]) -> list[dict[int, int]]:
    """Return the tasks of each leaf in each unit, those in smaller units included."""
    contents = [dict(unit.tasks) for unit in units]
    # what is inside a unit comes after it
    for number in range(len(units) - 1, -1, -1):
        unit = units[number]
        if unit.inside >= 0:
            outer = contents[unit.inside]
            for leaf, tasks in contents[number].items():
                outer[leaf] = outer.get(leaf, 0) + unit.times * tasks
    return contents


def _most(instance: Instance, units: list[Unit], number: int, content: dict[int, int], room: Ints) -> Ints:
    """Return how many of a unit each domain could hold at most, by one shape after the other."""
    unit = units[number]
    job_class = instance.job_classes[unit.job_class]
    total, above = unit.times * job_class.size, unit.inside
    while above >= 0:
        total, above = total * units[above].times, units[above].inside
    most = np.full(room.shape[1], total, dtype=np.int64)
    needed: dict[int, int] = defaultdict(int)
    for leaf, tasks in content.items():
        needed[job_class.leaves[leaf].shape] += tasks
    if not unit.rigid:
        # it may have fewer tasks than all, and any of them
        return np.where(room[list(needed)].sum(axis=0) > 0, most, 0)
    for shape, tasks in needed.items():
        most = np.minimum(most, room[shape] // tasks)
    return most


def add(m: Any, instance: Instance) -> None:
    """Add `H` and its rows for the units that `options` finds in `Draft.view`; without units nothing is added."""
    draft: Draft = m.draft
    view = draft.view
    found = options(view)
    if found is None:
        return
    loose = [
        (number, leaf, int(found.most[number]) * tasks)
        for number, u in enumerate(found.unit.tolist())
        if not found.units[u].rigid
        for leaf, tasks in found.units[u].tasks
    ]
    extra = whole_numbers(m, "e", [most for _, _, most in loose])
    h = whole_numbers(m, "H", found.most.tolist())
    build = _Rows(instance, view, found, h)
    for (number, leaf, _), e in zip(loose, extra, strict=True):
        build.part(number, leaf, e)
    for number, u in enumerate(found.unit.tolist()):
        if found.units[u].rigid:
            for leaf, tasks in found.units[u].tasks:
                build.tasks(number, leaf, float(tasks), h[number])
    add_rows(m, "inside", build.inside(draft))
    add_rows(m, "units_for_tasks", build.started(draft))
    add_rows(m, "parts_of_units", build.parts)
    add_rows(m, "nested", build.nested())
    add_rows(m, "units_of_jobs", build.of_jobs(draft))


class _Rows:
    """The rows of one model under construction."""

    def __init__(self, instance: Instance, view: Pooling, found: Options, h: list[Any]) -> None:
        self.instance, self.view, self.found, self.h = instance, view, found, h
        self.terms: list[tuple[int, int, int, float, Any]] = []
        """(leaf's job class, leaf, option, tasks, variable)"""
        self.parts: list[Row] = []
        levels = {unit.level for unit in found.units}
        self.above = {(n, w): wider(instance, n, w).tolist() for n in levels for w in levels if w <= n}
        """The domain of a wider level, or of the same, that each domain of a level lies in."""

    def tasks(self, option: int, leaf: int, tasks: float, variable: Any) -> None:
        """Note that a variable stands for so many tasks of a leaf in the domain of an option."""
        unit = self.found.units[self.found.unit[option]]
        self.terms.append((unit.job_class, leaf, option, tasks, variable))

    def part(self, option: int, leaf: int, e: Any) -> None:
        """Note tasks of units that may have fewer than all."""
        unit = self.found.units[self.found.unit[option]]
        row = Row()
        row.add(1.0, e)
        row.add(-float(dict(unit.tasks)[leaf]), self.h[option])
        self.parts.append(row)
        self.tasks(option, leaf, 1.0, e)

    def inside(self, draft: Draft) -> list[Row]:
        """Return the rows of room in domains, by shape and domain."""
        levels = sorted({unit.level for unit in self.found.units}, reverse=True)
        used = {self.instance.job_classes[c].leaves[leaf].shape for c, leaf, _, _, _ in self.terms}
        rows: dict[tuple[int, int, int], Row] = defaultdict(Row)
        for job_class, leaf, option, tasks, variable in self.terms:
            shape = self.instance.job_classes[job_class].leaves[leaf].shape
            unit, domain = self.found.units[self.found.unit[option]], int(self.found.domain[option])
            for level in levels:
                if level <= unit.level:
                    above = self.above[unit.level, level][domain]
                    if above >= 0:
                        rows[shape, level, above].add(tasks, variable)
        for level in levels:
            domains = pool_domains(self.view, level)
            for pair, (shape, pool) in enumerate(zip(self.view.shape.tolist(), self.view.pool.tolist(), strict=True)):
                key = shape, level, int(domains[pool])
                if shape in used and key in rows:
                    rows[key].add(-1.0, draft.n[pair])
        return list(rows.values())

    def started(self, draft: Draft) -> list[Row]:
        """Return the rows by which started tasks of confined leaves need units."""
        rows: dict[tuple[int, int], Row] = defaultdict(Row)
        for job_class, leaf, _, tasks, variable in self.terms:
            rows[job_class, leaf].add(-tasks, variable)
        confined_leaves = {(unit.job_class, leaf) for unit in self.found.units for leaf, _ in unit.tasks}
        for (job_class, leaf), t in zip(self.view.leaves[:, :2].tolist(), draft.t, strict=True):
            if (job_class, leaf) in confined_leaves:
                rows[job_class, leaf].add(1.0, t)
        return list(rows.values())

    def nested(self) -> list[Row]:
        """Return the rows of units in the units that hold them: so many where all is rigid, at most so many else."""
        rows: list[Row] = []
        where: dict[int, dict[int, Any]] = defaultdict(dict)
        for number, (u, domain) in enumerate(zip(self.found.unit.tolist(), self.found.domain.tolist(), strict=True)):
            where[u][domain] = self.h[number]
        for number, unit in enumerate(self.found.units):
            if unit.inside < 0:
                continue
            outer = self.found.units[unit.inside]
            sums: dict[int, Row] = defaultdict(Row)
            for domain, variable in where[number].items():
                above = self.above[unit.level, outer.level][domain]
                if above in where[unit.inside]:
                    sums[above].add(1.0, variable)
                else:
                    sums[-1 - domain].add(1.0, variable)
            for domain, variable in where[unit.inside].items():
                row = sums[domain]
                row.add(-float(unit.times), variable)
                if unit.rigid:
                    other = Row()
                    for coefficient, one in zip(row.coefficients, row.variables, strict=True):
                        other.add(-coefficient, one)
                    rows.append(other)
            rows += sums.values()
        return rows

    def of_jobs(self, draft: Draft) -> list[Row]:
        """Return the rows by which running jobs have so many units, where it does not follow from their tasks."""
        rows: list[Row] = []
        edges = np.searchsorted(self.found.unit, np.arange(len(self.found.units) + 1)).tolist()
        for number, unit in enumerate(self.found.units):
            if unit.inside >= 0 or unit.rigid:
                continue
            row = Row(float(unit.times * self.instance.job_classes[unit.job_class].size))
            for one in range(edges[number], edges[number + 1]):
                row.add(1.0, self.h[one])
            if unit.job_class in draft.gangs:
                jobs = draft.gangs[unit.job_class][0]
                row.upper = 0.0
                row.add(-float(unit.times * jobs.factor), jobs.variable)
            rows.append(row)
        return rows
