r"""Gangs on counts: how many jobs, copies and tasks of a job class run.

Jobs of a class are identical, so it is enough to count. Let *P* be the number of running members of a branch (for
the root: running jobs, at most :math:`J`), and *b* one of its children with `count` :math:`c_b` and `minimum`
:math:`m_b`. With :math:`A_b` the members in which *b* runs and :math:`N_b` its running members (tasks
:math:`t_b` for a leaf), all whole numbers,

.. math:: A_b \le P, \qquad m_b A_b \;\le\; N_b \;\le\; c_b A_b, \qquad
    \sum_{b} A_b \;\ge\; \mathrm{min\_groups} \cdot P .

Counts that satisfy this can be dealt out: give child *b* to :math:`A_b` members going round from where the last
child stopped, then each member has at least `min_groups` children, no child twice; and share out :math:`N_b` evenly,
then every share is between minimum and count. Where a branch needs all its children :math:`A_b = P`, and where
minimum equals count :math:`N_b = c_b A_b`; no variable is spent on them.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from pyomo import core as pyo

from placement.gang import Branch, Leaf
from placement.instance import Instance, JobClass
from placement.models.pooled_linear import Draft, Row, add_rows


@dataclass(frozen=True, slots=True)
class Times:
    """A count that is a multiple of a variable."""

    factor: int
    variable: Any


@dataclass(frozen=True, slots=True)
class ChildCounts:
    """What the model counts of one child of a branch.

    Attributes
    ----------
    path : str
        Path of the child.
    active : Times
        Members of the branch in which the child runs.
    members : Times
        Running members of the child, or tasks of a leaf.
    """

    path: str
    active: Times
    members: Times


class _Rows:
    """Variables and rows of one model under construction."""

    def __init__(self, m: Any) -> None:
        self.m = m
        self.rows: list[Row] = []
        self.children: dict[str, ChildCounts] = {}
        m.gang_members = pyo.VarList(domain=pyo.NonNegativeIntegers)

    def count(self, most: int) -> Any:
        variable = self.m.gang_members.add()
        variable.setub(most)
        return variable

    def at_most(self, low: Times, high: Times) -> None:
        """State that one count is at most another."""
        row = Row()
        row.add(float(low.factor), low.variable)
        row.add(-float(high.factor), high.variable)
        self.rows.append(row)


def is_single(job_class: JobClass) -> bool:
    """Return whether jobs of a class are one task each."""
    children = job_class.root.children
    return len(children) == 1 and isinstance(children[0], Leaf) and children[0].count == 1


def add(m: Any, instance: Instance) -> None:
    """Add the gang rows of the job classes of `Draft.view`; jobs of one task need none.

    `Draft.gangs` gets, by job class, the count of running jobs and the counts of every child by path.
    """
    draft: Draft = m.draft
    by_class: dict[int, dict[int, Any]] = defaultdict(dict)
    for number, (job_class, leaf) in enumerate(draft.view.leaves[:, :2].tolist()):
        by_class[job_class][leaf] = draft.t[number]
    build = _Rows(m)
    draft.gangs = {}
    for number, tasks in by_class.items():
        job_class = instance.job_classes[number]
        if is_single(job_class):
            continue
        jobs = Times(1, build.count(job_class.size))
        build.children = {}
        _members(build, job_class.root, jobs, job_class.size, tasks)
        draft.gangs[number] = (jobs, build.children)
    add_rows(m, "gangs", build.rows)


def _members(build: _Rows, branch: Branch, running: Times, most: int, tasks: dict[int, Any]) -> None:
    """State what the children of a branch owe to its running members, of which there are at most `most`."""
    all_needed = branch.min_groups == len(branch.children)
    enough = Row()
    for child in branch.children:
        active = running if all_needed else Times(1, build.count(most))
        if not all_needed:
            build.at_most(active, running)
            enough.add(-1.0, active.variable)
        if isinstance(child, Leaf):
            members = Times(1, tasks[child.leaf])
        elif child.minimum == child.count:
            members = Times(active.factor * child.count, active.variable)
        else:
            members = Times(1, build.count(most * child.count))
        if members.variable is not active.variable:
            build.at_most(members, Times(child.count * active.factor, active.variable))
            build.at_most(Times(child.minimum * active.factor, active.variable), members)
        build.children[child.path] = ChildCounts(child.path, active, members)
        if isinstance(child, Branch):
            _members(build, child, members, most * child.count, tasks)
    if not all_needed:
        enough.add(float(branch.min_groups * running.factor), running.variable)
        build.rows.append(enough)
