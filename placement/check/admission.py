"""Admission: how the filters judge a plan, whatever else runs on a node."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from placement.check.case.case import Placed
from placement.check.exact import Bools
from placement.check.violation import Violation, show


def judge(case: Placed) -> Iterator[Violation]:
    """Yield every task on a node, and every card of a task, that a filter refuses; each under the filter's name."""
    for row in np.flatnonzero(_refused(case)).tolist():
        yield from _words(case, row)


def _refused(case: Placed) -> Bools:
    """Return which tasks are on a node or a card that refuses them."""
    rows, facts = case.rows, case.facts
    shape = facts.shape_of_leaf[rows.leaf]
    kind = facts.kind[rows.spec]
    refused: Bools = ~case.filters.admits_nodes(shape, kind)
    card = facts.first_card[kind[rows.row]] + rows.device
    refused[rows.row[~case.filters.admits_cards(shape[rows.row], card)]] = True
    return refused


def _words(case: Placed, row: int) -> Iterator[Violation]:
    rows, facts = case.rows, case.facts
    shape = facts.leaves[int(rows.leaf[row])].shape
    kind = facts.kinds[int(facts.kind[rows.spec[row]])]
    path, name = f"tasks[{rows.number[row]}]", show(case.node_name(row))
    for rule, reason in case.filters.node(shape, kind).items():
        yield Violation(rule, path, f"{name}: {reason}")
    for device in rows.devices(row):
        for rule, reason in case.filters.card(shape, kind.cards[device]).items():
            yield Violation(rule, path, f"{name} gpu {device}: {reason}")
