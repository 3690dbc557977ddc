"""Clients: how many tasks are on a card at a time, running ones included, where the card limits that.

A card's replicas limit it, and so does MPS: 16 clients before Volta (compute capability 7.0), 48 from then on, and 60
with CUDA 13.1 or later on the node; on a MIG instance as much less as it has fewer compute slices than the card, but
one at least. A card that running work fills beyond that takes nothing more.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from placement import units
from placement.check.case.case import Placed
from placement.check.case.load import Load, Taken
from placement.check.exact import Ints
from placement.check.facts.facts import Facts
from placement.check.filters.mig_instance import slices
from placement.check.violation import Violation, many, show
from placement.snapshot import Gpu, Node

RULE = "clients"
NO_LIMIT = 2**62


def most(node: Node, gpu: Gpu) -> int:
    """Return how many tasks may be on a card at a time."""
    if gpu.mig_enabled or gpu.sharing == "exclusive":
        return NO_LIMIT
    allowed = NO_LIMIT if gpu.replicas is None else gpu.replicas
    if gpu.sharing == "mps":
        mine, whole = slices(gpu)
        if gpu.compute_capability and units.version(gpu.compute_capability) < units.version("7"):
            clients = 16
        elif node.cuda and units.version(node.cuda) >= units.version("13.1"):
            clients = 60
        else:
            clients = 48
        allowed = min(allowed, max(1, clients * mine // whole))
    return allowed


def allowed_on(facts: Facts) -> Ints:
    """Return the limit of each card, in the order of `Facts.cards`."""
    limits = [most(kind.node, card.gpu) for kind in facts.kinds for card in kind.cards]
    return np.array(limits, dtype=np.int64)


def on_cards(load: Load, taken: Taken) -> Ints:
    """Return how many of some tasks are on each card of a load."""
    card = load.first_card[taken.node[taken.uses.row]] + taken.uses.device
    return np.bincount(card, minlength=len(load.card)).astype(np.int64)


def judge(case: Placed) -> Iterator[Violation]:
    """Yield every card that new tasks crowd."""
    allowed = allowed_on(case.facts)
    if not (allowed < NO_LIMIT).any():
        return
    load = case.load
    running, new = on_cards(load, load.running), on_cards(load, load.new)
    limit = allowed[load.card]
    for card in np.flatnonzero((running + new > limit) & (new > 0)).tolist():
        name, device, path, _ = load.where(card)
        already = f" ({int(running[card])} of them running work)" if running[card] else ""
        what = f"{many(int(running[card] + new[card]), 'task')} on it{already}, at most {int(limit[card])}"
        yield Violation(RULE, path, f"{show(name)} gpu {device}: {what}")
