r"""Starts on a grid of moments, priced by weighted completion time.

For jobs of kind *k*, of which there are :math:`n_k`, let :math:`x_c` be how many of them go by column *c*, in which
they hold :math:`u_{cr}` units of resource *r* from :math:`b_c` until :math:`e_c`, at a cost :math:`f_c` of weight times
completion time. With the moments :math:`0 = t_0 < t_1 < \dots < t_M` of the grid, and :math:`G_{rs}` the units that
there are in the slot :math:`[t_s, t_{s+1})` on average,

.. math::
    \min \sum_c f_c\, x_c \quad \text{s.t.} \quad \sum_{c \in k} x_c &= n_k && \forall k, \\
    \sum_c u_{cr} \frac{|[b_c, e_c) \cap [t_s, t_{s+1})|}{t_{s+1} - t_s}\, x_c &\le G_{rs} && \forall r,\ s, \\
    x &\ge 0 .

What is held in a slot is limited on average, so that a job may be shorter than a slot. After the last moment nothing is
limited: every job can start there, and the program has always a solution.

The dual :math:`-\lambda_{rs} (t_{s+1} - t_s)` of a row of a slot is the price of a unit in all of it. Whatever prices
are taken, each job at its cheapest, less the price of all that there is, is a bound on every schedule in continuous
time; see `placement.scheduling.bounds.prices`. This is the readable form of what `placement.scheduling.bounds.grid`
builds as arrays, whose rows are the differences of neighbouring ones here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyomo import core as pyo


@dataclass(frozen=True, slots=True)
class Start:
    """A column.

    Attributes
    ----------
    kind : int
    begin, end : int
        From when until when it holds its units.
    cost : float
    units : tuple of (int, float)
        Resources and how much of each.
    """

    kind: int
    begin: int
    end: int
    cost: float
    units: tuple[tuple[int, float], ...]


def build(
    counts: Sequence[int], starts: Sequence[Start], moments: Sequence[int], there: Sequence[Sequence[float]]
) -> Any:
    """Return the model.

    Parameters
    ----------
    counts : sequence of int
        Jobs of each kind.
    starts : sequence of Start
        At least one that ends by no slot for each kind, so that there is a solution.
    moments : sequence of int
    there : sequence of sequence of float
        Units of each resource in each slot.

    Returns
    -------
    pyomo.environ.ConcreteModel
    """
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(len(starts)), domain=pyo.NonNegativeReals)
    m.jobs = pyo.Constraint(
        range(len(counts)),
        rule=lambda _, k: sum(m.x[c] for c, start in enumerate(starts) if start.kind == k) == counts[k],
    )
    m.slots = pyo.Constraint(
        range(len(there)), range(len(moments) - 1), rule=lambda _, r, s: _held(m, starts, moments, r, s, there[r][s])
    )
    m.cost = pyo.Objective(expr=sum(start.cost * m.x[c] for c, start in enumerate(starts)))
    return m


def _held(m: Any, starts: Sequence[Start], moments: Sequence[int], r: int, s: int, there: float) -> Any:
    """Return the row of a resource in a slot."""
    begin, end = moments[s], moments[s + 1]
    terms = []
    for c, start in enumerate(starts):
        overlap = min(start.end, end) - max(start.begin, begin)
        units = dict(start.units).get(r, 0.0)
        if overlap > 0 and units:
            terms.append(units * overlap / (end - begin) * m.x[c])
    return sum(terms) <= there if terms else pyo.Constraint.Skip
