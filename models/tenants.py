r"""Tenants: no domain of the level at which they are kept apart, or no card, has tasks of two of them.

With :math:`o_t` the tenant of task *t*, and :math:`y_{qo}`, 0 or 1, saying that domain *q* is tenant *o*'s,

.. math:: \sum_o y_{qo} \le 1 \quad\forall q, \qquad z_{tn} \le y_{q(n)\, o_t} \quad\forall t, n,

or between cards, for tasks that others could share a card with, :math:`a_{tu} \le y_{u\, o_t}`. What running work owns
already takes no task of others: these are upper bounds of the variables, no rows. Needs `assignment`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator
from math import inf
from typing import Any

from pyomo import core as pyo

from placement.instance import Instance
from placement.models.assignment import shape_of
from placement.models.core import Row, Terms, add_rows
from placement.tenants import FREE

NEEDS = ("assignment",)


def add(m: Any, instance: Instance) -> None:
    """Add variables and rows, where tenants are kept apart."""
    if instance.apart is None:
        return
    inside: dict[tuple[int, ...], dict[int, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for place, tenant, variable in _places(m, instance):
        owner = instance.apart.owner[place]
        if owner == FREE:
            inside[place][tenant].append(variable)
        elif owner != tenant:
            variable.setub(0)
    m.owned = pyo.VarList(domain=pyo.Binary)
    one: dict[Hashable, Row] = {}
    let_in: dict[Hashable, Row] = {}
    for place, tenants in inside.items():
        owns: Terms = []
        for tenant, variables in tenants.items() if len(tenants) > 1 else ():
            owns.append((1, m.owned.add()))
            for number, variable in enumerate(variables):
                let_in[*place, tenant, number] = (-inf, [(1, variable), (-1, owns[-1][1])], 0)
        if owns:
            one[place if len(place) > 1 else place[0]] = (-inf, owns, 1)
    add_rows(m, "one_tenant", one)
    add_rows(m, "let_in", let_in)


def _places(m: Any, instance: Instance) -> Iterator[tuple[tuple[int, ...], int, Any]]:
    """Yield the domain or card that each variable is about, the tenant of its task, and itself."""
    apart = instance.apart
    assert apart is not None
    if apart.owner.ndim == 1:
        for (t, n), variable in m.z.items():
            yield (int(apart.domain[n]),), shape_of(m, t).tenant, variable
        return
    for (t, n, c), variable in m.a.items():
        if shape_of(m, t).tenant >= 0:
            yield (n, c), shape_of(m, t).tenant, variable
