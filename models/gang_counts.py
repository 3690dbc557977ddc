r"""Gangs on counts: how many jobs, members and tasks of a job class run.

Let *P* be the running members of a branch over all jobs of the class; for the root these are the running jobs, at
most :math:`J_\kappa`. For each child *b* with count :math:`c_b` and minimum :math:`m_b`, :math:`A_b` counts the
members in which it runs and :math:`N_b` its own running members (for a leaf its tasks). With :math:`k` the groups a
member needs,

.. math:: A_b \le P, \qquad m_b A_b \le N_b \le c_b A_b, \qquad \sum_b A_b \ge k P .

Exact: every set of real jobs adds up to such counts. Conversely, counts that satisfy the rows can be dealt out:
give child *b* to :math:`A_b` members in turn, going on where the last child stopped and round from the start; as
:math:`A_b \le P` no member gets *b* twice, and every member gets :math:`\lfloor \sum_b A_b / P \rfloor \ge k` of
them or one more. Then share :math:`N_b` out evenly: each share lies between :math:`m_b` and :math:`c_b`, for their
mean does.

Where a branch needs all its children, :math:`A_b = P`. Needs `counts`.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from math import inf
from typing import Any

from pyomo import core as pyo

from placement.gang import Branch, Leaf
from placement.instance import Instance
from placement.models.core import Row, Terms, add_rows

NEEDS = ("counts",)


@dataclass(slots=True)
class GangVariables:
    """Variables of one job class.

    Attributes
    ----------
    jobs : variable
        Running jobs.
    active : dict of str to variable
        By path of a group: members of its parent in which it runs.
    members : dict of str to variable
        By path of a branch: its running members.
    """

    jobs: Any
    active: dict[str, Any] = field(default_factory=dict)
    members: dict[str, Any] = field(default_factory=dict)


def add(m: Any, instance: Instance) -> None:
    """Add the variables and rows of every job class; ``m.gangs`` has the variables by job class."""
    m.running = pyo.VarList(domain=pyo.NonNegativeIntegers)
    m.gangs = {}
    rows: dict[str, dict[Hashable, Row]] = {"members": {}, "minimum": {}, "count": {}, "groups": {}}
    for number, job_class in enumerate(instance.job_classes):
        jobs = _count(m, job_class.size)
        m.gangs[number] = GangVariables(jobs)
        _branch(m, number, job_class.root, jobs, job_class.size, rows)
    for name, mine in rows.items():
        add_rows(m, f"gang_{name}", mine)


def _count(m: Any, most: int) -> Any:
    variable = m.running.add()
    variable.setub(most)
    return variable


def _branch(m: Any, number: int, branch: Branch, running: Any, most: int, rows: dict[str, dict[Hashable, Row]]) -> None:
    """Add what the children of a branch owe to its running members, of which there are at most `most`."""
    variables: GangVariables = m.gangs[number]
    needs_all = branch.min_groups >= len(branch.children)
    runs: Terms = []
    for child in branch.children:
        key = (number, child.path)
        active = running if needs_all else _count(m, most)
        variables.active[child.path] = active
        if not needs_all:
            rows["members"][key] = (-inf, [(1, active), (-1, running)], 0)
            runs.append((1, active))
        if isinstance(child, Leaf):
            members = m.N[number, child.leaf]
        else:
            members = variables.members[child.path] = _count(m, most * child.count)
        rows["minimum"][key] = (0, [(1, members), (-child.minimum, active)], inf)
        rows["count"][key] = (-inf, [(1, members), (-child.count, active)], 0)
        if isinstance(child, Branch):
            _branch(m, number, child, members, most * child.count, rows)
    if not needs_all:
        rows["groups"][number, branch.path or "job"] = (0, [*runs, (-branch.min_groups, running)], inf)
