"""Allot tasks to pools: the relaxation's room for each shape in each pool, in whole tasks.

Many relaxed optima are worth the same. Those that use up what tasks need beside cards cannot be turned into places, for
the last cores of a pool never lie beside its last cards. So room is charged a little for the resources it takes.
"""

from __future__ import annotations

import numpy as np

from placement.exact.milp.arrays import Floats
from placement.instance import Ints
from placement.models.pools import Pooling


def charges(view: Pooling) -> Floats:
    """Return what room for one task of each pair of a view is charged, in tasks that take one unit of a card.

    All resources of a pool together are charged as much as all of its card units, so that a pool whose cores are scarce
    charges more for each.
    """
    demand = np.array([s.demand for s in view.instance.shapes], dtype=np.float64)
    capacity = np.array([np.maximum(pool.capacity, 1) for pool in view.pools], dtype=np.float64)
    units = np.array([sum(g.count * g.units for g in pool.groups) for pool in view.pools], dtype=np.float64)
    part = demand.reshape(len(view.instance.shapes), -1)[view.shape] / capacity.reshape(len(view.pools), -1)[view.pool]
    return np.asarray(part.sum(axis=1) * units[view.pool])


def allotments(view: Pooling, room: Floats, wanted: Ints) -> Ints:
    """Return whole tasks by pool and shape, near the room of a relaxation: largest remainders are rounded up.

    Parameters
    ----------
    view : Pooling
    room : float array (P,)
        By pair of the view.
    wanted : int array (S,)
        Most tasks of each shape.

    Returns
    -------
    int array (pools, S)
    """
    exact = np.zeros((len(view.pools), len(wanted)))
    exact[view.pool, view.shape] = room
    whole = np.floor(exact + 1e-9).astype(np.int64)
    rest = exact - whole
    total = np.minimum(wanted, np.floor(exact.sum(axis=0) + 0.5).astype(np.int64))
    missing = np.maximum(total - whole.sum(axis=0), 0)
    order = np.argsort(-rest, axis=0, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(len(order))[:, None], axis=0)
    whole += (rank < missing[None]) & (rest > 1e-6)
    return whole
