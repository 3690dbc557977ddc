r"""Cards of a pool seen through prices, instead of patterns.

For any prices :math:`\pi_\sigma \ge 0` of the parts of a pool's slot types, let :math:`z_c(\pi)` be the most that one
card of group *c* can hold, in value of parts. All that lies on the pool's cards is then worth at most what its
:math:`C_c` cards of each group can hold:

.. math:: \sum_{\sigma} \pi_\sigma \sum_{s \in \sigma} g_s\, n_{sk} \;\le\; \sum_{c \in k} C_c\, z_c(\pi).

Every placement satisfies this for every price, so a model with a few such rows in place of all patterns is a
relaxation with whole counts and no more columns, and what branch and bound proves of it holds of the problem. The
prices are those met in column generation; the last of them give the linear relaxation's bound back.

Blocks of whole cards are stated as in `pooled_cards`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from placement.instance import Instance
from placement.models.pooled_cards import block_rows, row_numbers
from placement.models.pooled_linear import Draft, Row, add_rows


def add(m: Any, instance: Instance) -> None:
    """Add the rows for ``Draft.prices``: pairs of prices of slot types and values of cards, both pool by pool."""
    draft: Draft = m.draft
    view = draft.view
    first_slot, first_card = row_numbers(view)
    counts = np.array([group.count for pool in view.pools for group in pool.groups], dtype=np.float64)
    pairs = [np.flatnonzero((view.pool == k) & (view.slot >= 0)) for k in range(len(view.pools))]
    rows: list[Row] = []
    for prices, values in draft.prices:
        worth = np.asarray(values) * counts
        for k in range(len(view.pools)):
            mine = prices[first_slot[k] : first_slot[k + 1]]
            if not mine.any():
                continue
            row = Row(float(worth[first_card[k] : first_card[k + 1]].sum()) * (1 + 1e-9))
            for pair in pairs[k].tolist():
                price = float(mine[view.slot[pair]])
                if price:
                    row.add(price * instance.shapes[view.shape[pair]].gpus, draft.n[pair])
            rows.append(row)
    add_rows(m, "prices", rows)
    add_rows(m, "blocks", block_rows(m, instance))
