r"""Cards of a pool, filled by patterns, and blocks of whole cards.

A pattern *p* says how many parts :math:`a_{\sigma p}` of each slot type :math:`\sigma` one card of a group holds at
once; a part is one task's share of one card. Variables: :math:`x_p`, whole: cards with pattern *p*. For pool *k*,
its card groups *c* with :math:`C_c` cards, and tasks of shape *s* that take :math:`g_s` cards:

.. math::
    \sum_{s \in \sigma} g_s\, n_{sk} &\le \sum_{p} a_{\sigma p}\, x_p &\quad& \forall \sigma \in k, \\
    \sum_{p \in c} x_p &\le C_c && \forall c \in k.

What is left of two cards does not add up: with 0.4 free on each there is no room for 0.8, and this is where the
model knows it. Not every pattern has to be there; maximal ones suffice, and column generation finds those needed.

Cards of one node only serve a task of several whole cards, so pools also have rows for blocks of *u* whole cards,
one for each number *u* that some task takes. With :math:`w_i` wholly free cards on node *i*,

.. math:: \sum_{s\ \text{whole},\ g_s \ge u} \lfloor g_s / u \rfloor\, n_{sk}
    \;\le\; \sum_{i \in k} \lfloor w_i / u \rfloor \qquad \forall u \ge 2,

which every placement satisfies: on one node :math:`\sum g_s n_s \le w` implies
:math:`\sum \lfloor g_s / u \rfloor n_s \le \lfloor w / u \rfloor`. Where tasks are bound to one NUMA zone, there are
such rows by zones, of cards and of resources; see `placement.models.zoned_pools`.
"""

from __future__ import annotations

from typing import Any

from placement.instance import Instance
from placement.models.pooled_linear import Draft, Row, add_rows, whole_numbers
from placement.models.pools import Pooling


def row_numbers(view: Pooling) -> tuple[list[int], list[int]]:
    """Return the first slot row and the first card row of each pool."""
    slots, cards = [0], [0]
    for pool in view.pools:
        slots.append(slots[-1] + len(pool.slots))
        cards.append(cards[-1] + len(pool.groups))
    return slots, cards


def add(m: Any, instance: Instance) -> None:
    """Add `x` and the slot, card and block rows for the patterns in `Draft.patterns`."""
    draft: Draft = m.draft
    view = draft.view
    patterns = draft.patterns
    first_slot, first_card = row_numbers(view)
    groups = [group for pool in view.pools for group in pool.groups]
    counts = [groups[first_card[p.pool] + p.group].count for p in patterns]
    x = whole_numbers(m, "x", counts)
    # not scaled: column generation adds to these rows later
    slots = [Row(scaled=False) for _ in range(first_slot[-1])]
    cards = [Row(float(group.count), scaled=False) for group in groups]
    for pair, (shape, pool, slot) in enumerate(
        zip(view.shape.tolist(), view.pool.tolist(), view.slot.tolist(), strict=True)
    ):
        if slot < 0:
            continue
        task = instance.shapes[shape]
        slots[first_slot[pool] + slot].add(float(task.gpus), draft.n[pair])
    for pattern, variable in zip(patterns, x, strict=True):
        cards[first_card[pattern.pool] + pattern.group].add(1.0, variable)
        for slot, parts in enumerate(pattern.parts):
            if parts:
                slots[first_slot[pattern.pool] + slot].add(-float(parts), variable)
    add_rows(m, "slots", slots)
    add_rows(m, "cards", cards)
    add_rows(m, "blocks", block_rows(m, instance))
    draft.x = x


def block_rows(m: Any, instance: Instance) -> list[Row]:
    """Return the rows for blocks of whole cards."""
    draft: Draft = m.draft
    view = draft.view
    blocks = [{u: Row(float(count)) for u, count in pool.blocks.items()} for pool in view.pools]
    for pair, (shape, pool) in enumerate(zip(view.shape.tolist(), view.pool.tolist(), strict=True)):
        task = instance.shapes[shape]
        if task.units == instance.card_units:
            for u, row in blocks[pool].items():
                if task.gpus >= u:
                    row.add(float(task.gpus // u), draft.n[pair])
    return [*(row for rows in blocks for row in rows.values() if row.variables), *_zone_rows(draft)]


def _zone_rows(draft: Draft) -> list[Row]:
    """Return the rows for what NUMA zones have room for."""
    view = draft.view
    if not view.instance.zoned:
        return []
    rows = [[Row(float(one.room)) for one in pool.zone_rows] for pool in view.pools]
    for pair, (shape, pool) in enumerate(zip(view.shape.tolist(), view.pool.tolist(), strict=True)):
        for one, row in zip(view.pools[pool].zone_rows, rows[pool], strict=True):
            if shape in one.weight:
                row.add(float(one.weight[shape]), draft.n[pair])
    return [row for some in rows for row in some if row.variables]
