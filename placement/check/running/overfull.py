"""What running work breaks today; reported, never refused, and new work may not make it worse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from placement.check.case.load import Load
from placement.check.facts.amounts import GPU_MEMORY, GPUS
from placement.check.facts.facts import Facts, facts_of
from placement.check.facts.uses import nothing
from placement.check.loads import capacity, clients, device_memory, limits, shares, tenants
from placement.check.loads.capacity import amount, exceeds, in_order, label
from placement.check.loads.limits import name
from placement.check.queues import queue_shares
from placement.check.running.unmet import unmet
from placement.check.violation import decimal, many, of_jobs, show
from placement.snapshot import Snapshot

RUNNING = "running work: "
"""What begins the notes of a plan on running work, and no other."""
FEW = 3
"""Notes on one rule before the rest is counted."""


@dataclass(frozen=True, slots=True)
class Breach:
    """What running work breaks in one place: the rule, as in `placement.check.RULES`, and what is found and allowed."""

    rule: str
    what: str


def overfull(snapshot: Snapshot) -> list[str]:
    """Return one line for each place in which running work alone breaks a rule.

    Such are node resources, cards and caps that are over-full, cards with too many tasks, cards that do not give a task
    what it asks for (see `placement.check.running.unmet`), places in which tenants are together that are to be kept
    apart, and queues beyond a quota.

    Parameters
    ----------
    snapshot : Snapshot
        Valid, with every field honoured.

    Returns
    -------
    list of str
        Such as ``"n-3 gpu 1: shares add up to 1.25, at most 1 (jobs a, b)"``; nodes in the order of the snapshot, then
        caps, tenants and queues.
    """
    return [breach.what for breach in breaches(snapshot)]


def running_notes(snapshot: Snapshot) -> list[str]:
    """Return what a plan says of `overfull`: the first few of each rule, and then how many more there are.

    Parameters
    ----------
    snapshot : Snapshot
        Valid, with every field honoured.
    """
    found = breaches(snapshot)
    number = Counter(breach.rule for breach in found)
    told: dict[str, list[str]] = {rule: [] for rule in number}
    for breach in found:
        if len(told[breach.rule]) < FEW:
            told[breach.rule].append(f"{RUNNING}{breach.what}")
    for rule, lines in told.items():
        if number[rule] > len(lines):
            lines.append(f"{RUNNING}and {number[rule] - len(lines)} more that break the rule {rule}")
    return [line for lines in told.values() for line in lines]


def breaches(snapshot: Snapshot) -> list[Breach]:
    """Return what running work breaks, in the order of `overfull`."""
    facts = facts_of(snapshot)
    load = Load(facts, facts.running, nothing())
    found = [breach for *_, breach in sorted([*_resources(facts, load), *_cards(facts, load)], key=lambda e: e[:-1])]
    for index, caps in enumerate(facts.caps):
        for resource, cap in caps.items():
            taken = load.running.caps[index].get(resource, 0)
            if taken > cap:
                text = f"adds up to {amount(facts, resource, taken)}, at most {amount(facts, resource, cap)}"
                what = f"{name(snapshot.limits[index])}: {label(resource)} in use {text}"
                found.append(Breach(limits.RULE, what))
    found += [Breach(tenants.RULE, what) for what in tenants.together(facts, load)]
    return [*found, *(Breach(queue_shares.RULE, what) for what in queue_shares.running_beyond(snapshot))]


Entry = tuple[int, int, bool, int, int, Breach]
"""Entry of the node and number within it, whether it is about a card, two numbers to keep the order, and the breach."""


def _resources(facts: Facts, load: Load) -> Iterator[Entry]:
    over = {resource: exceeds(load, resource, taken) for resource, taken in load.running.demand.items()}
    for order, (node, resource) in enumerate(in_order(load, load.running, over)):
        there = facts.kinds[int(load.kind[node])].capacity.get(resource, 0) or 0
        taken = int(load.running.demand[resource][node])
        text = f"adds up to {amount(facts, resource, taken)}, at most {amount(facts, resource, there)}"
        place = int(load.spec[node]), int(load.copy[node])
        yield *place, False, order, 0, Breach(capacity.RULE, f"{show(load.name(node))}: {label(resource)} {text}")


def _cards(facts: Facts, load: Load) -> Iterator[Entry]:
    shared, needed = load.running.share > facts.scale[GPUS], device_memory.exceeds(load, load.running.memory)
    tasks, most = clients.on_cards(load, load.running), clients.allowed_on(facts)[load.card]
    holders = _Holders(facts, load)
    for card in np.flatnonzero(shared | needed | (tasks > most)).tolist():
        place, where, whose = *_place(load, card), f"({holders.on(card)})"
        _, _, _, fact = load.where(card)
        if shared[card]:
            share = decimal(facts.base(GPUS, load.running.share[card]))
            yield *place, 0, Breach(shares.RULE, f"{where}: shares add up to {share}, at most 1 {whose}")
        if tasks[card] > most[card]:
            text = f"{where}: {many(int(tasks[card]), 'task')} on it, at most {most[card]} {whose}"
            yield *place, 1, Breach(clients.RULE, text)
        if needed[card]:
            taken, memory = (amount(facts, GPU_MEMORY, size) for size in (load.running.memory[card], fact.memory or 0))
            text = f"{where}: tasks need {taken} of memory, at most {memory} {whose}"
            yield *place, 2, Breach(device_memory.RULE, text)
    for number, lack in enumerate(unmet(facts, load)):
        place, where = _place(load, lack.card)
        whose = f"job {show(facts.snapshot.jobs[lack.job].name)}"
        if lack.tasks > 1:
            whose += f", {many(lack.tasks, 'task')}"
        yield *place, 3 + number, Breach(lack.rule, f"{where}: {whose}: {lack.what}")


def _place(load: Load, card: int) -> tuple[tuple[int, int, bool, int], str]:
    """Return where a card is in the order of lines, and what it is called."""
    node, device, _, _ = load.where(card)
    number = int(load.card_node[card])
    return (int(load.spec[number]), int(load.copy[number]), True, card), f"{show(node)} gpu {device}"


class _Holders:
    """Whose tasks run on which card."""

    def __init__(self, facts: Facts, load: Load) -> None:
        uses = load.running.uses
        card = load.first_card[load.running.node[uses.row]] + uses.device
        order = np.argsort(card, kind="stable")
        self._card, self._job = card[order], facts.running_job[uses.row[order]]
        self._jobs = facts.snapshot.jobs

    def on(self, card: int) -> str:
        """Return the jobs on a card, in the order of the snapshot."""
        jobs = np.unique(self._job[slice(*np.searchsorted(self._card, [card, card + 1]))]).tolist()
        return of_jobs([self._jobs[job].name for job in jobs])
