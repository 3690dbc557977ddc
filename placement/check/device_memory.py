"""Device memory: what tasks need of each card's memory, running work included, fits in it.

A card without a figure has no limit. A task that needs none takes nothing of a card that running work overfills.
"""

from __future__ import annotations

from collections.abc import Iterator

from placement.check.capacity import amount
from placement.check.case import Case
from placement.check.facts import GPU_MEMORY
from placement.check.violation import Violation, show

RULE = "device_memory"


def judge(case: Case) -> Iterator[Violation]:
    """Yield every card whose memory new tasks overfill."""
    for node in case.load.nodes.values():
        for device, new in sorted(node.new.memory.items()):
            memory = node.card(device).memory
            if new and memory is not None and node.memory(device) > memory:
                running = node.running.memory.get(device, 0)
                taken, before, allowed = (
                    amount(case.facts, GPU_MEMORY, number) for number in (node.memory(device), running, memory)
                )
                already = f" ({before} of it by running work)" if running else ""
                what = f"{show(node.name)} gpu {device}: tasks need {taken} of memory{already}, at most {allowed}"
                yield Violation(RULE, node.where(device), what)
