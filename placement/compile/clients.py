"""Cards that only so many tasks may share: said by what a task takes of a card, which is all that is counted of it.

On a card for at most N tasks each takes at least one Nth, so that no more than N fit. Where every share is as large as
that anyway, nothing changes and the limit holds by itself. Where a share is smaller, its tasks take one Nth everywhere,
or keep off such cards, whichever leaves more room; plans then keep the limit, but they may leave out what would fit,
so no bound may be claimed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from placement import units
from placement.compile.cards import Cards
from placement.compile.running import Used
from placement.compile.work import Work
from placement.hardware.sharing import lacking, memory_of_replica, mode_of, most_clients, unlimited
from placement.instance import Bools, Ints, Shape
from placement.rules.isolation import takes_part
from placement.rules.mig_instance import serves
from placement.scale import Scale, round_up
from placement.snapshot import Gpu, Node, Task


class Clients:
    """What limits on the tasks of a card make of shares.

    Parameters
    ----------
    nodes : sequence of Node
        The first of each kind.
    counts : sequence of int
        Nodes of each kind.
    work : Work
    pending : int array
        Entries of the jobs that wait.

    Attributes
    ----------
    least : dict of int to Fraction
        What tasks take of each card at least, by their number, where that is more than they ask for.
    exact : bool
        Whether no limit makes a difference to any pending task.
    parts : tuple of Fraction
        Parts of a card that tasks may be counted as because of limits.
    """

    def __init__(self, nodes: Sequence[Node], counts: Sequence[int], work: Work, pending: Ints) -> None:
        self.least: dict[int, Fraction] = {}
        self.exact = True
        self.parts: tuple[Fraction, ...] = ()
        self._sharing = False
        self._cards: Counter[tuple[Gpu, int | None, tuple[str, int | None]]] = Counter()
        limits = {most_clients(gpu, node.cuda) for node in nodes for gpu in node.gpus} - {None}
        mine = _tasks_of(work, np.unique(work.of_job[pending])) if limits and len(pending) else []
        mine = [task for task in mine if takes_part(work.tasks[task])]
        if not mine:
            return
        self._sharing = True
        for node, count in zip(nodes, counts, strict=True):
            for gpu in node.gpus:
                software = node.cuda, node.cgroup
                self._cards[gpu, most_clients(gpu, node.cuda), software] += gpu.count * count
        for task in mine:
            self._look(task, work)
        # what runs counts as one client too, however little it takes
        smallest = min(amounts.share for amounts in work.amounts if amounts.share)
        parts = {Fraction(1, limit) for limit in limits if limit is not None and smallest * limit < 1}
        self.parts = tuple(sorted(parts))

    def _look(self, number: int, work: Work) -> None:
        """Find out what tasks of one sort take at least."""
        task, share = work.tasks[number], work.amounts[number].share
        mine = [
            (limit, count, _held(task, gpu))
            for (gpu, limit, node), count in self._cards.items()
            if _admits(task, gpu, *node) and _held(task, gpu) != 0
        ]
        larger = {Fraction(1, limit) for limit, _, _ in mine if limit is not None and share * limit < 1}
        if not larger:
            return
        self.exact = False

        def room(part: Fraction) -> int:
            on_each = part.denominator // part.numerator
            return sum(
                count * (on_each if held is None else min(on_each, held))
                for limit, count, held in mine
                if limit is None or part * limit >= 1
            )

        best = max((share, *larger), key=lambda part: (room(part), -part))
        if best > share:
            self.least[number] = best

    def crowded(self, used: Used, kind: Ints, cards: Cards, scale: Scale) -> Used:
        """Return what running work takes, at least one Nth of a card for N tasks; the same where nothing changes.

        Parameters
        ----------
        used : Used
        kind : int array (B,)
            Kind of each node with running work.
        cards : Cards
        scale : Scale
        """
        if not self._sharing or not len(used.card_row):
            return used
        unit = scale.whole.card
        parts = [round_up(Fraction(1, one.clients), unit) if one.clients else 0 for one in cards.kinds]
        of_card = cards.kind[cards.start[kind[used.card_row]] + used.card_device]
        least = np.array(parts, dtype=used.card_share.dtype)[of_card]
        raised = np.where(used.card_share > 0, np.maximum(used.card_share, least), 0)
        return used if np.array_equal(raised, used.card_share) else replace(used, card_share=raised)


def keeping_off(admits_card: Bools, shapes: Sequence[Shape], cards: Cards, scale: Scale) -> Bools:
    """Return which cards take which shapes when none is on a card of which it takes too little to keep the limit.

    Parameters
    ----------
    admits_card : bool array (S, C)
    shapes : sequence of Shape
    cards : Cards
    scale : Scale
    """
    if all(kind.clients is None for kind in cards.kinds):
        return admits_card
    one = int(1 / scale.card)
    taken = [shape.units if shape.gpus and shape.units < one else one for shape in shapes]
    limit = [one if kind.clients is None else kind.clients for kind in cards.kinds]
    enough = [[part * most >= one for most in limit] for part in taken]
    mask: Bools = admits_card & np.array(enough, dtype=np.bool_).reshape(admits_card.shape)
    return mask


def _tasks_of(work: Work, gangs: Ints) -> list[int]:
    """Return the numbers of the tasks of some gangs."""
    return sorted({task for gang in gangs.tolist() for task, _ in work.leaves[gang].values()})


def _held(task: Task, gpu: Gpu) -> int | None:
    """Return how many tasks of a sort the device memory of a card is enough for; None where it does not matter."""
    need = Fraction(0) if task.gpu_memory is None else units.exact(task.gpu_memory)
    if not need or gpu.memory is None:
        return None
    replica = memory_of_replica(gpu)
    return 0 if replica is not None and need > replica else int(units.exact(gpu.memory) // need)


def _admits(task: Task, gpu: Gpu, cuda: str, cgroup: int | None) -> bool:
    """Return whether a card may take tasks of a sort that share it, as far as the task itself says."""
    if gpu.mig_enabled or gpu.sharing == "exclusive" or gpu.health != "healthy" or not serves(task, gpu):
        return False
    if task.gpu_memory_limit and unlimited(gpu, cuda, cgroup, task.gpu_memory_limit) is not None:
        return False
    return (not task.gpu_models or gpu.model in task.gpu_models) and lacking(mode_of(gpu).name, task.isolation) is None
