r"""Columns: what one node holds, and the started tasks that columns make room for.

The configurations model (see `configurations`) with columns that are generated rather than enumerated. A column *p* of
node class *k* holds :math:`a_{sp}` tasks of shape *s*. Variables, all whole:

- :math:`t_l`: started tasks of leaf *l*, the leaves of all job classes numbered through,
- :math:`x_p`: nodes of class :math:`k(p)` that hold column *p*,
- :math:`r_q`: what is left of limit *q*.

.. math::
    \sum_{l:\,\mathrm{shape}(l)=s} t_l &\le \sum_p a_{sp}\, x_p &\quad& \forall s, \\
    \sum_{p:\,k(p)=k} x_p &\le N_k && \forall k, \\
    \sum_{p:\,q \ni k(p)} \Big(\sum_s a_{sp}\, d_{s\,r(q)}\Big) x_p + r_q &\le L_q && \forall q.

Room that no task uses is allowed. With all columns the whole points of this are the placements, jobs by
`pooled_gangs`; with some it is a restriction, whose relaxation gives a bound once the price of every class is at least
what its best column, known or not, is worth (Gilmore and Gomory 1961; Lübbecke and Desrosiers 2005, section 2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyomo import core as pyo

from placement.collector import collector_paused
from placement.instance import Instance
from placement.models import pooled_gangs, pooled_objective
from placement.models.capacity import limit_use
from placement.models.pooled_linear import Draft, Row, Target, add_rows, power_of_two, whole_numbers
from placement.models.pools import Pooling


@dataclass(frozen=True, slots=True)
class Column:
    """What one node of a class holds.

    Attributes
    ----------
    node_class : int
    counts : tuple of (int, int)
        Shape and number of tasks, ascending, for those there are.
    """

    node_class: int
    counts: tuple[tuple[int, int], ...]


def terms_of(instance: Instance, column: Column) -> dict[tuple[str, int], float]:
    """Return the coefficients of a column by the name and index of its rows; limits in their row's scale."""
    terms = {("cover", shape): -float(count) for shape, count in column.counts}
    terms["nodes", column.node_class] = 1.0
    for q in instance.classes[column.node_class].limits:
        resource = instance.limits[q].resource
        use = sum(count * limit_use(instance.shapes[shape], resource) for shape, count in column.counts)
        if use:
            terms["limits", q] = use * limit_scale(instance, q)
    return terms


def limit_scale(instance: Instance, q: int) -> float:
    """Return the power of two by which a limit's row is multiplied; the same whatever columns there are."""
    return power_of_two([float(instance.limits[q].capacity)])


def add(m: Any, instance: Instance) -> None:
    """Add `t`, `left` and `x`, and the rows, for the columns in ``m.columns`` and the leaves of `Draft.view`."""
    draft: Draft = m.draft
    columns: Sequence[Column] = m.columns
    draft.t = whole_numbers(m, "t", draft.view.leaves[:, 3].tolist())
    m.left = pyo.Var(range(len(instance.limits)), domain=pyo.NonNegativeReals)
    draft.x = whole_numbers(m, "x", [instance.classes[column.node_class].size for column in columns])
    # not scaled here: column generation adds to these rows later
    rows = {
        "cover": [Row(scaled=False) for _ in instance.shapes],
        "nodes": [Row(float(c.size), scaled=False) for c in instance.classes],
        "limits": [Row(r.capacity * limit_scale(instance, q), scaled=False) for q, r in enumerate(instance.limits)],
    }
    for shape, t in zip(draft.view.leaves[:, 2].tolist(), draft.t, strict=True):
        rows["cover"][shape].add(1.0, t)
    for q, row in enumerate(rows["limits"]):
        row.add(1.0, m.left[q])
    for column, x in zip(columns, draft.x, strict=True):
        for (name, index), coefficient in terms_of(instance, column).items():
            if rows[name][index].variables or name == "nodes":
                rows[name][index].add(coefficient, x)
    for name, listed in rows.items():
        add_rows(m, name, listed)


def build(view: Pooling, columns: Sequence[Column], weights: Mapping[Target, float], held: Mapping[Target, int]) -> Any:
    """Return the master.

    Parameters
    ----------
    view : Pooling
        Without pools: only its leaves are looked at.
    columns : sequence of Column
        At least one of every node class, so that its row is there.
    weights : mapping of target to float
        What to maximise.
    held : mapping of target to int
        Values that must be kept, in units of the instance.

    Returns
    -------
    pyomo.environ.ConcreteModel
        Variables in the order t, left, x, then those of the gangs.
    """
    with collector_paused():
        m = pyo.ConcreteModel()
        m.draft = Draft(view, (), weights, held, (), ())
        m.columns = tuple(columns)
        add(m, view.instance)
        pooled_gangs.add(m, view.instance)
        pooled_objective.add(m, view.instance)
    return m
