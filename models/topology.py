r"""Topology: where the tasks of one copy of a group lie relative to one another, domain by domain.

Tasks are numbered within a copy member after member, and within a member group after group. With :math:`Z_{td} =
\sum_{n \in d} z_{tn}` for "task *t* lies in domain *d*" and variables of 0 or 1, a set of tasks that one domain of a
level must hold (a group with a required level, each of its slices, two groups together) has :math:`x_d` for "it lies
in *d*":

.. math:: Z_{td} \le x_d \quad\forall t, d, \qquad \sum_d x_d \le 1.

Groups *a* and *b* apart share none of the domains, of which :math:`x_d` says that *d* is left to *a*:

.. math:: Z_{td} \le x_d \quad\forall t \in a, d, \qquad Z_{td} \le 1 - x_d \quad\forall t \in b, d.

A group of *T* tasks whose numbers may differ by *k* has :math:`u_d` for "it uses *d*" and a whole number *m*, not
above any number that is not 0:

.. math:: Z_{td} \le u_d, \qquad m - T (1 - u_d) \le \sum_t Z_{td} \le m + k \quad\forall t, d.

A group spread with at most *M* tasks in a domain, over at least *D* domains if it runs, has

.. math:: \sum_t Z_{td} \le M, \qquad u_d \le \sum_t Z_{td} \quad\forall d, \qquad
   D \sum_n z_{tn} \le \sum_d u_d \quad\forall t.

A node in no domain of a level takes no task that must lie in one, or be counted in one: the upper bound of that *z* is
0. Groups apart say nothing of such nodes. A preferred level asks for nothing.

Tasks of a leaf copy are alike for `gang` and run in the order of their numbers. Where slices tell neighbours apart,
that would lose plans, so the rows between them are taken back; so are those between members of branches that are in
slices. Needs `assignment` and `gang`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import pairwise
from math import inf
from typing import Any

import numpy as np
from pyomo import core as pyo

from placement.gang import Branch, Group, Leaf, Ties, common_path, slice_ends
from placement.instance import Affinity, Instance
from placement.models.core import Row, Terms, add_rows

NEEDS = ("assignment", "gang")

Key = tuple[int, str, int]
"""Job, what ties its tasks, and number of the copy."""


def add(m: Any, instance: Instance) -> None:
    """Add the rows of every tied job; nothing for an instance without ties."""
    if not instance.tied or not instance.nodes:
        return
    rows = _Rows(m, instance)
    for job in sorted(job for one in instance.job_classes for job in one.jobs.tolist()):
        job_class = instance.job_classes[instance.job_class[job]]
        if job_class.tied:
            rows.job(job, job_class.root, job_class.affinity)
    rows.finish()


class _Rows:
    """Rows under construction; tasks are numbers in the model."""

    def __init__(self, m: Any, instance: Instance) -> None:
        self.m, self.nodes = m, range(instance.nodes)
        self.numbers = {(task.job, task.leaf, task.number): t for t, task in enumerate(m.tasks)}
        self.domains = [
            [np.flatnonzero(level == d).tolist() for d in range(int(level.max()) + 1)] for level in instance.domains
        ]
        self.outside = [np.flatnonzero(level < 0).tolist() for level in instance.domains]
        self.slices: dict[int, list[Key]] = {}
        self.rows: dict[str, dict[Hashable, Row]] = {}
        m.lies_in_domain = pyo.VarList(domain=pyo.Binary)
        m.uses_domain = pyo.VarList(domain=pyo.Binary)
        m.least_in_domain = pyo.VarList(domain=pyo.NonNegativeIntegers)

    def row(self, name: str, key: Hashable, low: float, terms: Terms, high: float) -> None:
        self.rows.setdefault(name, {})[key] = (low, terms, high)

    def finish(self) -> None:
        for name, rows in self.rows.items():
            add_rows(self.m, name, rows)

    def job(self, job: int, root: Branch, affinity: Sequence[Affinity]) -> None:
        """Add the rows of one job."""
        for group, copy in _copies(root, 0):
            if group.ties is not None:
                self.ties(job, group.path, copy, self.tasks(job, group, copy), group.ties)
        self.take_back_order(job, root, 0, False)
        for number, one in enumerate(affinity):
            for member, below in _members(root, one):
                a, b = (
                    [task for group, copy in below if group.path == path for task in self.tasks(job, group, copy)]
                    for path in (one.a, one.b)
                )
                key = (job, f"affinity {number}", member)
                if one.together:
                    self.one_domain(key, [*a, *b], one.level)
                else:
                    self.apart(key, a, b, one.level)

    def tasks(self, job: int, group: Group, copy: int) -> list[int]:
        """Return the tasks of a copy of a group in the order of their numbers in it."""
        return [self.numbers[job, leaf, number] for leaf, number in _tasks(group, copy)]

    # --- one kind of tie after the other ------------------------------------------------------------------------

    def ties(self, job: int, path: str, copy: int, tasks: list[int], ties: Ties) -> None:
        """Add the rows of what one copy of a group says."""
        if ties.required >= 0:
            self.one_domain((job, f"{path} required", copy), tasks, ties.required)
        for number, (level, sizes) in enumerate(ties.slices):
            ends = slice_ends(sizes, len(tasks))
            for piece, (begin, end) in enumerate(pairwise([0, *ends])):
                part = tasks[begin:end]
                key = (job, f"{path} slices {number} {piece}", copy)
                self.one_domain(key, part, level)
                for t in part:
                    self.slices.setdefault(t, []).append(key)
        if ties.balanced >= 0:
            self.balanced((job, f"{path} balanced", copy), tasks, ties.balanced, ties.balance_unit)
        for number, (level, most, fewest) in enumerate(ties.spread):
            self.spread((job, f"{path} spread {number}", copy), tasks, level, most, fewest)

    def one_domain(self, key: Key, tasks: list[int], level: int) -> None:
        self.keep_inside(tasks, level)
        lies = [self.m.lies_in_domain.add() for _ in self.domains[level]]
        for d, x in enumerate(lies):
            for t in tasks:
                self.row("in_its_domain", (*key, d, t), -inf, [*self.lying([t], level, d), (-1, x)], 0)
        self.row("one_domain", key, -inf, [(1, x) for x in lies], 1)

    def apart(self, key: Key, a: list[int], b: list[int], level: int) -> None:
        for d in range(len(self.domains[level])):
            x = self.m.lies_in_domain.add()
            for t in a:
                self.row("in_its_domain", (*key, d, t), -inf, [*self.lying([t], level, d), (-1, x)], 0)
            for t in b:
                self.row("in_another_domain", (*key, d, t), -inf, [*self.lying([t], level, d), (1, x)], 1)

    def balanced(self, key: Key, tasks: list[int], level: int, differ: int) -> None:
        self.keep_inside(tasks, level)
        least = self.m.least_in_domain.add()
        least.setub(len(tasks))
        for d in range(len(self.domains[level])):
            used = self.m.uses_domain.add()
            for t in tasks:
                self.row("in_used_domain", (*key, d, t), -inf, [*self.lying([t], level, d), (-1, used)], 0)
            inside = self.lying(tasks, level, d)
            enough: Terms = [*inside, (-1, least), (-len(tasks), used)]
            self.row("not_too_few_in_domain", (*key, d), -len(tasks), enough, inf)
            self.row("not_too_many_in_domain", (*key, d), -inf, [*inside, (-1, least)], differ)

    def spread(self, key: Key, tasks: list[int], level: int, most: int, fewest: int) -> None:
        """Add the rows of a spread; a limit of 0 is none."""
        self.keep_inside(tasks, level)
        domains = range(len(self.domains[level]))
        if most:
            for d in domains:
                self.row("most_in_domain", (*key, d), -inf, self.lying(tasks, level, d), most)
        if fewest:
            used: Terms = [(1, self.m.uses_domain.add()) for _ in domains]
            for d in domains:
                self.row("really_used", (*key, d), 0, [*self.lying(tasks, level, d), (-1, used[d][1])], inf)
            for t in tasks:
                runs: Terms = [(-fewest, self.m.z[t, n]) for n in self.nodes]
                self.row("enough_domains", (*key, t), 0, [*used, *runs], inf)

    def lying(self, tasks: list[int], level: int, domain: int) -> Terms:
        """Return the number of some tasks in a domain."""
        return [(1, self.m.z[t, n]) for t in tasks for n in self.domains[level][domain]]

    def keep_inside(self, tasks: list[int], level: int) -> None:
        """Keep tasks off the nodes that are in no domain of a level."""
        for n in self.outside[level]:
            for t in tasks:
                self.m.z[t, n].setub(0)

    # --- what is not alike --------------------------------------------------------------------------------------

    def take_back_order(self, job: int, group: Group, copy: int, sliced: bool) -> None:
        """Take back the order of tasks and members that slices tell apart; `sliced` where a group above has any."""
        sliced = sliced or (group.ties is not None and bool(group.ties.slices))
        if isinstance(group, Leaf):
            for i, (one, other) in enumerate(pairwise(self.tasks(job, group, copy))):
                if self.slices.get(one) != self.slices.get(other):
                    self.m.task_order[job, group.path, copy, i].deactivate()
            return
        for member in range(group.count):
            if member and sliced:
                self.m.member_order[job, group.path, copy, member].deactivate()
            for child in group.children:
                self.take_back_order(job, child, copy * group.count + member, sliced)


def _copies(group: Group, copy: int) -> Iterator[tuple[Group, int]]:
    """Yield a copy of a group, and all copies of groups in it."""
    yield group, copy
    if isinstance(group, Branch):
        for member in range(group.count):
            for child in group.children:
                yield from _copies(child, copy * group.count + member)


def _tasks(group: Group, copy: int) -> Iterator[tuple[int, int]]:
    """Yield leaf and number of the tasks of a copy of a group, in the order of their numbers in it."""
    for below, number in _copies(group, copy):
        if isinstance(below, Leaf):
            yield from ((below.leaf, number * below.count + i) for i in range(below.count))


def _members(root: Branch, affinity: Affinity) -> Iterator[tuple[int, list[tuple[Group, int]]]]:
    """Yield the number of each member of the innermost group that holds two groups, and all copies in it."""
    path = common_path(affinity.a, affinity.b)
    for group, copy in _copies(root, 0):
        if group.path == path and isinstance(group, Branch):
            for member in range(copy * group.count, (copy + 1) * group.count):
                yield member, [pair for child in group.children for pair in _copies(child, member)]
