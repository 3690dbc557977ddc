"""Shares: the shares taken of each card, running work included, add up to one card at most.

A task without a share takes whole cards, so it shares them with nobody.
"""

from __future__ import annotations

from collections.abc import Iterator

from placement.check.case import Case
from placement.check.facts import GPUS
from placement.check.violation import Violation, decimal, show

RULE = "shares"


def judge(case: Case) -> Iterator[Violation]:
    """Yield every card that new tasks overfill."""
    card = case.facts.scale[GPUS]
    for node in case.load.nodes.values():
        for device in sorted(node.new.share):
            if node.share(device) > card:
                running = node.running.share.get(device, 0)
                total, before = (decimal(case.facts.base(GPUS, number)) for number in (node.share(device), running))
                already = f" ({before} of it by running work)" if running else ""
                what = f"{show(node.name)} gpu {device}: shares add up to {total}{already}, at most 1"
                yield Violation(RULE, node.where(device), what)
