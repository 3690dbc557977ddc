"""Device memory: what tasks need of each card's memory, running work included, fits in it.

A card without a figure has no limit. A task that needs none takes nothing of a card that running work overfills.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from placement.check.case.case import Placed
from placement.check.case.load import Load
from placement.check.exact import Bools, whole
from placement.check.facts.amounts import GPU_MEMORY
from placement.check.loads.capacity import amount
from placement.check.violation import Violation, show

RULE = "device_memory"


def judge(case: Placed) -> Iterator[Violation]:
    """Yield every card whose memory new tasks overfill."""
    load = case.load
    for card in np.flatnonzero(exceeds(load, load.memory) & (load.new.memory > 0)).tolist():
        name, device, path, fact = load.where(card)
        running, new = int(load.running.memory[card]), int(load.new.memory[card])
        taken, before, allowed = (
            amount(case.facts, GPU_MEMORY, number) for number in (running + new, running, fact.memory or 0)
        )
        already = f" ({before} of it by running work)" if running else ""
        what = f"{show(name)} gpu {device}: tasks need {taken} of memory{already}, at most {allowed}"
        yield Violation(RULE, path, what)


def exceeds(load: Load, taken: np.ndarray) -> Bools:
    """Return of which cards more memory is needed than there is."""
    cards = load.facts.cards
    memory = whole([card.memory or 0 for card in cards], 1)
    limited = np.array([card.memory is not None for card in cards], dtype=np.bool_)
    return np.asarray((taken > memory[load.card]) & limited[load.card], dtype=np.bool_)
