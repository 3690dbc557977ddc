r"""Tasks by shape and pool, and the started tasks they stand for.

Variables, all whole numbers:

- :math:`n_{sk}`: room made for tasks of shape *s* in pool *k*, for pairs where one node of *k* could take one task,
- :math:`t_l`: started tasks of leaf *l*; the leaves of all job classes are numbered through.

A started task needs room in a pool, or is one of the :math:`e_s` tasks that run elsewhere:

.. math:: \sum_{l:\,\mathrm{shape}(l)=s} t_l \;\le\; e_s + \sum_k n_{sk} \qquad \forall s.

Room that no task uses is allowed, so this is an inequality: integer solutions may have some, and it does no harm.
"""

from __future__ import annotations

from typing import Any

from placement.instance import Instance
from placement.models.pooled_linear import Draft, Row, add_rows, whole_numbers


def add(m: Any, instance: Instance) -> None:
    """Add `n`, `t` and the rows that link them; `Draft.view` says which pools and leaves there are."""
    draft: Draft = m.draft
    view = draft.view
    n = whole_numbers(m, "n", view.most.tolist())
    t = whole_numbers(m, "t", view.leaves[:, 3].tolist())
    rows = [Row(float(e)) for e in view.elsewhere.tolist()]
    for leaf, (shape, most, kept) in enumerate(
        zip(view.leaves[:, 2].tolist(), view.leaves[:, 3].tolist(), view.started.tolist(), strict=True)
    ):
        if kept >= 0:
            t[leaf].setlb(kept)
        elif most:
            rows[shape].add(1.0, t[leaf])
    for pair, shape in enumerate(view.shape.tolist()):
        if rows[shape].variables:
            rows[shape].add(-1.0, n[pair])
    add_rows(m, "room_for_started_tasks", rows)
    draft.n, draft.t = n, t
