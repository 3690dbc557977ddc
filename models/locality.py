r"""Locality: by how many levels copies of groups lie wider than the level they prefer.

For each copy of a group that prefers level *p* (0 is the cluster), :math:`y_\ell` says that one domain of level
:math:`\ell` holds all its placed tasks, and :math:`x_d` which domain that is; with :math:`Z_{td}` as in
`placement.models.topology`,

.. math:: \sum_{\ell = 0}^{p} y_\ell = 1, \qquad Z_{td} + y_\ell \le 1 + x_d \quad\forall t,\, d \in \ell, \qquad
   \sum_{d \in \ell} x_d \le 1,

and a node in no domain of the level takes no task: :math:`z_{tn} + y_\ell \le 1`. What is minimised is the sum of
:math:`(p - \ell)\, y_\ell` over all copies; a copy without placed tasks may have :math:`y_p = 1`. Needs `assignment`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from math import inf
from typing import Any

import numpy as np
from pyomo import core as pyo

from placement.gang import leaves
from placement.instance import Instance
from placement.models.core import Goal, Linear, Row, Terms, add_rows
from placement.preferred import Wish, wishes

NEEDS = ("assignment",)


def add(m: Any, instance: Instance) -> None:
    """Add the goal, and its variables and rows."""
    m.holds_copy = pyo.VarList(domain=pyo.Binary)
    m.holds_in_domain = pyo.VarList(domain=pyo.Binary)
    rows: dict[str, dict[Hashable, Row]] = defaultdict(dict)
    cost: Terms = []
    numbers = {(task.job, task.leaf, task.number): t for t, task in enumerate(m.tasks)}
    for number, wish in enumerate(wishes(instance)):
        for job in instance.job_classes[wish.job_class].jobs.tolist():
            for copy in range(wish.copies):
                tasks = [numbers[job, leaf, task] for leaf, task in _tasks(wish, copy)]
                chosen = [m.holds_copy.add() for _ in range(wish.level + 1)]
                rows["one_level"][number, job, copy] = (1, [(1, y) for y in chosen], 1)
                cost += [(wish.level - level, y) for level, y in enumerate(chosen)]
                for level in range(1, wish.level + 1):
                    _hold(m, rows, (number, job, copy, level), instance.domains[level], tasks, chosen[level])
    for name, some in rows.items():
        add_rows(m, name, some)
    m.parts.goals[Goal("locality")] = Linear.of(cost)


def _tasks(wish: Wish, copy: int) -> list[tuple[int, int]]:
    """Return leaf and number of the tasks of a copy of a group."""
    tasks: list[tuple[int, int]] = []
    for leaf in leaves(wish.group):
        inside = leaf.count * leaf.copies // wish.copies
        tasks += [(leaf.leaf, copy * inside + number) for number in range(inside)]
    return tasks


def _hold(
    m: Any,
    rows: dict[str, dict[Hashable, Row]],
    key: tuple[int, ...],
    domain: np.ndarray,
    tasks: list[int],
    y: Any,
) -> None:
    """Add the rows by which one domain of a level holds some tasks if y is 1."""
    some: Terms = []
    for d in range(int(domain.max(initial=-1)) + 1):
        x = m.holds_in_domain.add()
        some.append((1, x))
        for t in tasks:
            inside: Terms = [(1, m.z[t, n]) for n in np.flatnonzero(domain == d).tolist()]
            rows["held_in_domain"][(*key, d, t)] = (-inf, [*inside, (1, y), (-1, x)], 1)
    for n in np.flatnonzero(domain < 0).tolist():
        for t in tasks:
            rows["held_in_none"][(*key, n, t)] = (-inf, [(1, m.z[t, n]), (1, y)], 1)
    rows["held_in_one"][key] = (-inf, some, 1)
