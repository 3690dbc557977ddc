"""Shares: the shares taken of each card, running work included, add up to one card at most.

A task without a share takes whole cards, so it shares them with nobody.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from placement.check.case.case import Placed
from placement.check.facts.amounts import GPUS
from placement.check.violation import Violation, decimal, show

RULE = "shares"


def judge(case: Placed) -> Iterator[Violation]:
    """Yield every card that new tasks overfill."""
    load, whole_card = case.load, case.facts.scale[GPUS]
    over = (load.share > whole_card) & (load.new.share > 0)
    for card in np.flatnonzero(over).tolist():
        name, device, path, _ = load.where(card)
        running, new = int(load.running.share[card]), int(load.new.share[card])
        total, before = (decimal(case.facts.base(GPUS, number)) for number in (running + new, running))
        already = f" ({before} of it by running work)" if running else ""
        yield Violation(RULE, path, f"{show(name)} gpu {device}: shares add up to {total}{already}, at most 1")
