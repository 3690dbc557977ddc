"""Admission: how the filters judge a plan, whatever else runs on a node."""

from __future__ import annotations

from collections.abc import Iterator

from placement.check.case import Case
from placement.check.violation import Violation, show


def judge(case: Case) -> Iterator[Violation]:
    """Yield every task on a node, and every card of a task, that a filter refuses; each under the filter's name."""
    for row in case.rows:
        shape = row.leaf.shape
        for rule, reason in case.filters.node(shape, row.node).items():
            yield Violation(rule, f"tasks[{row.number}]", f"{show(row.node_name)}: {reason}")
        for device in row.gpus:
            for rule, reason in case.filters.card(shape, row.node.cards[device]).items():
                yield Violation(rule, f"tasks[{row.number}]", f"{show(row.node_name)} gpu {device}: {reason}")
