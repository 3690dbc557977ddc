"""Cards of which it was assumed that they do not work, and that pods have: then it is others that do not work.

A node says how many cards there are and how many can be given out, not which. Pods may say which they have.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

import msgspec

from placement.snapshot import Gpu, Job, Node


def worked(nodes: Sequence[Node], jobs: Iterable[Job]) -> tuple[Node, ...]:
    """Return nodes on which cards that running pods have work, and as many that nobody has do not.

    Nodes that name their cards say of each whether it works, and stay as they are.
    """
    suspect = {node.name for node in nodes if not node.devices and any(gpu.health != "healthy" for gpu in node.gpus)}
    if not suspect:
        return tuple(nodes)
    held: dict[str, set[int]] = {}
    for job in jobs:
        for task in job.running.tasks if job.running is not None else ():
            if task.node in suspect:
                held.setdefault(task.node, set()).update(task.gpus)
    return tuple(_swapped(node, held[node.name]) if node.name in held else node for node in nodes)


def _swapped(node: Node, held: set[int]) -> Node:
    cards = [msgspec.structs.replace(gpu, count=1) for gpu in node.gpus for _ in range(gpu.count)]
    wrong = [card for card, gpu in enumerate(cards) if gpu.health != "healthy" and card in held]
    changed = False
    for card in wrong:
        works = msgspec.structs.replace(cards[card], health="healthy")
        for other in range(len(cards) - 1, -1, -1):
            if other not in held and cards[other] == works:
                cards[card], cards[other] = works, cards[card]
                changed = True
                break
    return msgspec.structs.replace(node, gpus=_runs(cards)) if changed else node


def _runs(cards: Sequence[Gpu]) -> tuple[Gpu, ...]:
    return tuple(msgspec.structs.replace(gpu, count=len(list(alike))) for gpu, alike in groupby(cards))
