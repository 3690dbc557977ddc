"""The area bound: what the whole cluster's free amounts allow, counted in several ways. Valid, and milliseconds."""

from __future__ import annotations

import math

import numpy as np

from placement.area.items import Free, items_of
from placement.area.prices import best_bound
from placement.area.rows import Floats, Rows, rows_of
from placement.instance import Instance, Ints
from placement.solver import Bound


def area_bounds(instance: Instance) -> tuple[Bound, ...]:
    r"""Return bounds on the ``value`` of each priority and on ``tasks``.

    With :math:`v_i` the worth of task i and :math:`\sum_i a_i x_i \le b` rows that every plan keeps
    (`placement.area.rows`), a plan is worth at most

    .. math:: \max \sum_i v_i x_i \quad \text{s.t. these rows, } 0 \le x_i \le 1,

    and what is proven of this linear program by prices (`placement.area.prices`) is returned. Plans are worth whole
    multiples of the greatest common divisor of their tasks' worth, so the bound is rounded down to one.
    """
    free = Free(instance)
    counted = items_of(instance, free)
    wanted = {job_class.priority for job_class in instance.job_classes if job_class.leaves}
    if not wanted:
        return ()
    shapes, place = np.unique(counted.shape, return_inverse=True)
    place = place.reshape(-1)
    table = rows_of(instance, free, shapes) if len(shapes) else None
    count = counted.count.astype(np.float64)
    bounds = []
    for priority in instance.priorities:
        tier = np.flatnonzero(counted.priority == priority)
        best = _whole_bound(table, place[tier], count[tier], counted.value[tier])
        bounds.append(Bound("value", priority, best * float(instance.value_unit)))
    bounds.append(Bound("tasks", None, _whole_bound(table, place, count, np.ones(len(place), dtype=np.int64))))
    return tuple(bounds)


def _whole_bound(table: Rows | None, place: Ints, count: Floats, value: Ints) -> float:
    """Return the bound, rounded up for the error of sums and then down to what a plan can be worth."""
    divisor = int(np.gcd.reduce(value)) if len(value) else 0
    if table is None or not divisor:
        return 0.0
    worth = value.astype(np.float64)
    # a task's gain is the difference of its worth and its price, so its error is in proportion to the worth
    best = best_bound(table, place, count, worth) * (1 + 1e-12) + 1e-14 * float(count @ worth)
    return min(best, float(divisor * math.floor(best / divisor * (1 + 1e-9) + 1e-6)))
