"""Running tasks whose cards do not give what they ask for, by the rules on cards that new tasks must keep.

Such are isolation, device memory kept to a limit, a share of a card that is not shared, and the memory of an MPS
replica or of a MIG instance. What a model is, or whether a card is healthy now, only says where new tasks may go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from placement.check.case.load import Load
from placement.check.facts.facts import Facts
from placement.check.facts.kinds import Card, Shape
from placement.check.filters import isolation, memory_limit, mig_cards, replica_memory, sharing
from placement.snapshot import Gpu, Job, Task

_RULES: dict[str, Callable[[Job, Task, Gpu], str | None]] = {
    "sharing": sharing.refusal,
    "isolation": isolation.refusal,
    "replica_memory": replica_memory.refusal,
    "mig": mig_cards.refusal,
}


@dataclass(frozen=True, slots=True)
class Unmet:
    """What tasks of one job lack on one card.

    Attributes
    ----------
    card : int
        Position of the card in the load.
    job : int
        Entry of the snapshot's jobs.
    tasks : int
        How many of the job's tasks there lack it.
    rule, what : str
        Name of the rule, and what it says of one task.
    """

    card: int
    job: int
    tasks: int
    rule: str
    what: str


def unmet(facts: Facts, load: Load) -> Iterator[Unmet]:
    """Yield what running tasks lack, by card in the order of the load, then by job in that of the snapshot.

    Parameters
    ----------
    facts : Facts
    load : Load
        With what runs.
    """
    uses = load.running.uses
    if not len(uses.device):
        return
    position = load.first_card[load.running.node[uses.row]] + uses.device
    kind = np.array([card.kind for card in facts.cards], dtype=np.int64)[load.card[position]]
    kinds = int(kind.max()) + 1
    pairs, pair = np.unique(facts.shape_of_leaf[uses.leaf[uses.row]] * kinds + kind, return_inverse=True)
    example = {card.kind: card for card in facts.cards}
    lacks = [list(_lacks(facts.shapes[one // kinds], example[one % kinds])) for one in pairs.tolist()]
    broken = np.array([bool(some) for some in lacks], dtype=np.bool_)[pair.reshape(-1)]
    job = facts.running_job[uses.row]
    where = np.stack([position, job, pair.reshape(-1)])[:, broken]
    found, tasks = np.unique(where, axis=1, return_counts=True)
    for (card, entry, number), count in zip(found.T.tolist(), tasks.tolist(), strict=True):
        for rule, what in lacks[number]:
            yield Unmet(card, entry, count, rule, what)


def _lacks(shape: Shape, card: Card) -> Iterator[tuple[str, str]]:
    """Yield the rules that a task breaks on a card, and what each says."""
    said = [(name, rule(shape.job, shape.task, card.gpu)) for name, rule in _RULES.items()]
    said.append(("memory_limit", memory_limit.refusal(shape.job, shape.task, card.gpu, card.node)))
    yield from ((name, what) for name, what in said if what is not None)
