"""What running work takes of nodes and cards, as whole numbers in arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from placement.compile.work import Work
from placement.index import integers
from placement.instance import Ints
from placement.scale import Scale, round_up
from placement.snapshot import RunningTask, Snapshot
from placement.snapshot.fields import Names

NONE = Fraction(0)


@dataclass(frozen=True, slots=True)
class Used:
    """What running work takes; B nodes have some. All of it is in `Scale.whole` units.

    Attributes
    ----------
    nodes : int array (B,)
        Indices of the nodes, ascending.
    demand : dict of str to int array (B,)
    shares : int array (B,)
        Card units, of all cards of a node together.
    card_row, card_device : int arrays
        Row in `nodes` and device index of each card that a task holds; a shared card is there several times.
    card_share, card_memory : int arrays
        What the task takes of the card.
    """

    nodes: Ints
    demand: dict[str, Ints]
    shares: Ints
    card_row: Ints
    card_device: Ints
    card_share: Ints
    card_memory: Ints


def running(snapshot: Snapshot, work: Work, scale: Scale) -> Used:
    """Return what the running jobs of a snapshot take."""
    found = list(places(snapshot, work))
    node, task = np.array([one[:2] for one in found], dtype=np.int64).reshape(-1, 2).T
    nodes, row = np.unique(node, return_inverse=True)
    devices = [place.gpus for _, _, place in found]
    cards = np.array(list(map(len, devices)), dtype=np.int64)
    unit = scale.whole

    def per_task(values: list[Fraction], unit: Fraction) -> Ints:
        whole = [round_up(value, unit) for value in values]  # nothing is rounded: the unit divides them all
        return integers(whole, max(whole, default=0) * max(1, int(cards.sum()), len(found)))

    def per_node(amounts: Ints) -> Ints:
        total = np.zeros(len(nodes), dtype=amounts.dtype)
        np.add.at(total, row, amounts)
        return total

    share = per_task([amounts.share for amounts in work.amounts], unit.card)
    memory = per_task([amounts.memory for amounts in work.amounts], unit.memory)
    return Used(
        nodes=nodes,
        demand={
            name: per_node(per_task([amounts.demand.get(name, NONE) for amounts in work.amounts], one)[task])
            for name, one in unit.resources.items()
        },
        shares=per_node(share[task] * cards),
        card_row=np.repeat(row, cards),
        card_device=np.array([device for some in devices for device in some], dtype=np.int64),
        card_share=np.repeat(share[task], cards),
        card_memory=np.repeat(memory[task], cards),
    )


def places(snapshot: Snapshot, work: Work) -> Iterator[tuple[int, int, RunningTask]]:
    """Yield the node and the number of the task of every running task, and where it is."""
    counts = [node.count for node in snapshot.nodes]
    names = Names("node", [node.name for node in snapshot.nodes], counts)
    first = (np.cumsum(counts, dtype=np.int64) - counts).tolist()
    for job, gang in zip(snapshot.jobs, work.of_job.tolist(), strict=True):
        if job.running is None:
            continue
        leaves = work.leaves[gang]
        for place in job.running.tasks:
            entry = names.find(place.node)
            if entry is not None:
                copy = 0 if counts[entry] == 1 else int(place.node.rpartition("-")[2])
                yield first[entry] + copy, leaves[place.group][0], place


def on_cards(used: Used, amounts: Ints, start: Ints, total: int) -> Ints:
    """Return amounts by card, where the cards of the node in row i are from ``start[i]`` on."""
    taken = np.zeros(total, dtype=amounts.dtype)
    np.add.at(taken, start[used.card_row] + used.card_device, amounts)
    return taken
