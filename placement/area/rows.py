r"""Inequalities that every plan keeps, for the area bound.

Nodes are gathered in cells c, the nodes that the same shapes may use: A(s) are the cells of shape s. With
:math:`x_s` its started tasks, every row is of the form

.. math:: \sum_{s: A(s) \subseteq C} a_s\,x_s \le \sum_{c \in C} b_c \quad\text{for every set C of cells,}

which holds if a says what a task takes of any node it may be on, and b what there is on the nodes of a cell. (Say
where each task runs and add up over the nodes of C: the tasks that can be nowhere else are among those there.) The
measures a, b:

- a resource, or device memory: the amount, and what is free;
- **cards of a size**, for each size t of a task's share: :math:`\text{gpus}\,\lfloor \text{units}/t \rfloor`, and the
  sum over cards of :math:`\lfloor \text{free units}/t \rfloor`. Sound since :math:`\lfloor x/t \rfloor + \lfloor y/t
  \rfloor \le \lfloor (x + y)/t \rfloor` on each card; t = 1 is the plain amount, t a whole card counts the free ones;
- **the ladder**, for each number u of whole cards that a task takes: :math:`\lfloor \text{gpus}/u \rfloor` for tasks of
  whole cards, 0 for others, and the sum over nodes of :math:`\lfloor \text{free cards}/u \rfloor`. Sound for the same
  reason, whole cards being wholly free before. Where sizes divide one another and nothing else binds the rows of all u
  are all there is to say; elsewhere they are still true.

A limit on a domain is one more row over the cells in it, and a limit on each of them; cells therefore tell domains with
limits apart. What is free on nodes on which no task fits counts nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from placement.area.items import Free
from placement.instance import GPU, Bools, Instance, Ints

Floats = npt.NDArray[np.float64]

MOST_CELLS = 64
"""Beyond so many the smallest are made one, which admits what any of them admits."""

MOST_SIZES = 24
"""Sizes of shares that have a row each; beyond, some in between are left out."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows; S shapes, A cells, M measures, L limits.

    Attributes
    ----------
    admits : bool array (S, A)
    use : float array (S, M)
    free : float array (A, M)
    limit_use : float array (S, L)
    limit_cells : bool array (L, A)
    limit_free : float array (L,)
    """

    admits: Bools
    use: Floats
    free: Floats
    limit_use: Floats
    limit_cells: Bools
    limit_free: Floats


def rows_of(instance: Instance, free: Free, shapes: Ints) -> Rows:
    """Return the rows for some shapes, the only ones that count."""
    admits = np.array([free.admitting(shape) for shape in shapes.tolist()], dtype=np.bool_)
    cell, count = _cells(instance, free, admits)
    use, have = _measures(instance, free, shapes)
    amount = np.zeros((count, have.shape[1]))
    for measure in range(have.shape[1]):
        amount[:, measure] = np.bincount(cell, weights=have[:, measure] * free.size, minlength=count)
    by_cell = np.zeros((len(shapes), count), dtype=np.bool_)
    for number in range(count):
        by_cell[:, number] = admits[:, cell == number].any(axis=1)
    inside = np.zeros((len(instance.limits), count), dtype=np.bool_)
    for k, node_class in enumerate(instance.classes) if instance.limits else ():
        # a cell made of several may be partly inside, and is then left out: its tasks cost nothing
        inside[list(node_class.limits), cell[k]] = True
    for k, node_class in enumerate(instance.classes) if instance.limits else ():
        outside = np.ones(len(instance.limits), dtype=np.bool_)
        outside[list(node_class.limits)] = False
        inside[outside, cell[k]] = False
    limit_use = np.zeros((len(shapes), len(instance.limits)))
    for row, limit in enumerate(instance.limits):
        for place, shape in enumerate(shapes.tolist()):
            task = instance.shapes[shape]
            limit_use[place, row] = task.of_cards if limit.resource == GPU else task.demand[limit.resource]
    for row, limit in enumerate(instance.limits):
        # no cell has more than the limit leaves; the plain amount of cards comes right after the resources
        column = len(instance.resources) if limit.resource == GPU else limit.resource
        amount[inside[row], column] = np.minimum(amount[inside[row], column], limit.capacity)
    limit_free = np.array([limit.capacity for limit in instance.limits], dtype=np.float64)
    return Rows(by_cell, use, amount, limit_use, inside, limit_free)


def _cells(instance: Instance, free: Free, admits: Bools) -> tuple[Ints, int]:
    """Return the cell of each node class, and how many there are."""
    columns = np.packbits(admits, axis=0).T.copy()
    numbers: dict[tuple[bytes, tuple[int, ...]], int] = {}
    keys = zip(map(bytes, columns), (node_class.limits for node_class in instance.classes), strict=True)
    cell = np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)
    if len(numbers) <= MOST_CELLS:
        return cell, len(numbers)
    nodes = np.bincount(cell, weights=free.size)
    place = np.empty(len(numbers), dtype=np.int64)
    place[np.argsort(-nodes, kind="stable")] = np.arange(len(numbers))
    return np.minimum(place, MOST_CELLS - 1)[cell], MOST_CELLS


def _measures(instance: Instance, free: Free, shapes: Ints) -> tuple[Floats, Floats]:
    """Return what a task takes by each measure (S, M), and what a node of each class has (K, M)."""
    state, whole = free.state, instance.card_units
    tasks = [instance.shapes[shape] for shape in shapes.tolist()]
    gpus = np.array([task.gpus for task in tasks], dtype=np.int64)
    units = np.array([task.units if task.gpus else 0 for task in tasks], dtype=np.int64)
    memory = np.array([task.memory if task.gpus else 0 for task in tasks], dtype=np.int64)
    use: list[Ints] = list(state.demand[shapes].T)
    have: list[Ints] = list(state.free.T)
    idle = np.where(free.healthy & free.of_use[:, None], state.units, 0).T
    sizes = sorted({1, *units[gpus > 0].tolist()})
    if len(sizes) > MOST_SIZES:
        sizes = [sizes[i] for i in np.linspace(0, len(sizes) - 1, MOST_SIZES).astype(int).tolist()]
    for size in sizes:
        use.append(gpus * (units // size))
        have.append((idle // size).sum(axis=0))
    if memory.any():
        use.append(gpus * memory)
        have.append(np.where(free.healthy, state.memory, 0).sum(axis=1))
    free_cards = (idle == whole).sum(axis=0)
    for number in sorted(set(gpus[(gpus > 1) & (units == whole)].tolist())):
        use.append(np.where(units == whole, gpus // number, 0))
        have.append(free_cards // number)
    table = np.array(have, dtype=np.float64).T.reshape(len(instance.classes), -1) * free.of_use[:, None]
    return np.array(use, dtype=np.float64).T.reshape(len(tasks), -1), table
