r"""Gangs, job by job: all or nothing down to a minimum, nested.

A branch copy has members *p*, each with one copy of every child. Variables, all 0 or 1: :math:`r_p`, member *p*
runs; :math:`y_b`, copy *b* of a group runs. With :math:`c_b, m_b` count and minimum of group *b*, :math:`k_b` the
groups that each of its members needs, and :math:`p(b)` the member that *b* is part of:

.. math::
   m_b\, y_b \le \sum_{t \in b} \sum_n z_{tn} \le c_b\, y_b & \quad\text{leaf } b, \\
   m_b\, y_b \le \sum_{p \in b} r_p, \qquad r_p \le y_b \quad\forall p \in b & \quad\text{branch } b, \\
   k_b\, r_p \le \sum_{b':\, p(b') = p} y_{b'}, \qquad y_{b'} \le r_p & \quad\text{member } p \text{ of } b.

So a group that does not run has no task below it. Tasks of a leaf copy, and members of a branch copy, are alike;
they run in the order of their numbers, which loses nothing:

.. math:: \sum_n z_{tn} \ge \sum_n z_{t+1,n}, \qquad r_p \ge r_{p+1}.

Needs `assignment`.
"""

from __future__ import annotations

from collections.abc import Hashable
from math import inf
from typing import Any

from pyomo import core as pyo

from placement.gang import Branch, Group, Leaf
from placement.instance import Instance
from placement.models.core import Row, Terms, add_rows

NEEDS = ("assignment",)


def add(m: Any, instance: Instance) -> None:
    """Add the rows of every pending job."""
    numbers = {(task.job, task.leaf, task.number): t for t, task in enumerate(m.tasks)}
    gangs = _Gangs(m, numbers, range(instance.nodes))
    # those of its classes, which may be some of the jobs that wait
    for job in sorted(job for one in instance.job_classes for job in one.jobs.tolist()):
        root = instance.job_classes[instance.job_class[job]].root
        gangs.branch(job, root, 0, gangs.active(job, root, 0))
    gangs.finish()


class _Gangs:
    """Rows under construction; keys are (job, path, copy) with member or task last."""

    def __init__(self, m: Any, numbers: dict[tuple[int, int, int], int], nodes: range) -> None:
        self.m, self.numbers, self.nodes = m, numbers, nodes
        self.rows: dict[str, dict[Hashable, Row]] = {}
        m.group_runs = pyo.VarList(domain=pyo.Binary)
        m.member_runs = pyo.VarList(domain=pyo.Binary)

    def row(self, name: str, key: Hashable, low: float, terms: Terms, high: float) -> None:
        self.rows.setdefault(name, {})[key] = (low, terms, high)

    def finish(self) -> None:
        for name, rows in self.rows.items():
            add_rows(self.m, name, rows)

    def active(self, job: int, group: Group, copy: int) -> Any:
        """Return the variable of a copy of a group, with the rows below it."""
        y = self.m.group_runs.add()
        if isinstance(group, Leaf):
            self.leaf(job, group, copy, y)
        return y

    def leaf(self, job: int, leaf: Leaf, copy: int, y: Any) -> None:
        key = (job, leaf.path, copy)
        starts = [
            [(1, self.m.z[self.numbers[job, leaf.leaf, copy * leaf.count + i], n]) for n in self.nodes]
            for i in range(leaf.count)
        ]
        every = [term for start in starts for term in start]
        self.row("leaf_minimum", key, 0, [*every, (-leaf.minimum, y)], inf)
        self.row("leaf_count", key, -inf, [*every, (-leaf.count, y)], 0)
        for i in range(leaf.count - 1):
            terms = [*starts[i], *((-1, variable) for _, variable in starts[i + 1])]
            self.row("task_order", (*key, i), 0, terms, inf)

    def branch(self, job: int, group: Branch, copy: int, y: Any) -> None:
        # no group's path is empty or ends in a slash
        key = (job, group.path or "/", copy)
        members = [self.m.member_runs.add() for _ in range(group.count)]
        self.row("branch_minimum", key, 0, [*((1, r) for r in members), (-group.minimum, y)], inf)
        for i, r in enumerate(members):
            self.row("member_of_group", (*key, i), -inf, [(1, r), (-1, y)], 0)
            if i:
                self.row("member_order", (*key, i), 0, [(1, members[i - 1]), (-1, r)], inf)
            below: Terms = []
            for child in group.children:
                child_copy = copy * group.count + i
                runs = self.active(job, child, child_copy)
                below.append((1, runs))
                self.row("group_of_member", (job, child.path, child_copy), -inf, [(1, runs), (-1, r)], 0)
                if isinstance(child, Branch):
                    self.branch(job, child, child_copy, runs)
            self.row("groups_needed", (*key, i), 0, [*below, (-group.min_groups, r)], inf)
