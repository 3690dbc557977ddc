"""What starts without nodes are worth on nodes: gangs are started in their order, each as soon as it fits.

Three ways are tried, of which the best counts. A gang may start before its time wherever it fits, as a greedy rule
would have it. Or it starts at its time at the earliest, so that cards are held back for those that need many. Or, where
there are several card models, before its time but on the models that were chosen for it. In the last two ways it is
tried on the nodes of its slowest model first, then on those that are as fast or faster, unless it is to stay on one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import placement as pl
from placement.instance import Ints
from placement.scheduling.compile import compile_work
from placement.scheduling.desk import Desk
from placement.scheduling.loop import Loop, Policy
from placement.scheduling.orders import ListPolicy, in_order
from placement.scheduling.work import Work


@dataclass(frozen=True, slots=True)
class AsChosen:
    """Starts jobs in an order, each on the first of some sets of nodes that it fits on.

    Attributes
    ----------
    order : dict of int to int
        Place of each job.
    within : list of sequence of (int array or None)
        Of each job, the sets of nodes; None for all.
    earliest : list of int
        Milliseconds before which a job is not started; ascending in the order.
    """

    order: dict[int, int]
    within: Sequence[Sequence[Ints | None]]
    earliest: Sequence[int]
    name: str = "as chosen"
    period: int = 0

    def decide(self, desk: Desk) -> None:
        """Start what fits and may start."""
        for job in sorted(desk.waiting, key=self.order.__getitem__):
            if self.earliest[job] > desk.now:
                desk.again = self.earliest[job]
                return
            for nodes in self.within[job]:
                tasks = desk.fit(job, nodes)
                if tasks is not None:
                    desk.settle(job, tasks)
                    break


def worth(snapshot: pl.Snapshot, chosen: Sequence[tuple[int, int]], models: Sequence[str], one_each: bool) -> float:
    """Return the value of gangs that are started on nodes in the order of some starts.

    Parameters
    ----------
    snapshot : Snapshot
    chosen : sequence of (int, int)
        Milliseconds at which each gang starts, and the number of the slowest model that it may use.
    models : sequence of str
        Card models, the fastest first.
    one_each : bool
        Whether a gang may use that one alone.

    Returns
    -------
    float
        Sum of weight times seconds from release to end.
    """
    work = compile_work(snapshot)
    order = sorted(range(len(chosen)), key=lambda job: chosen[job][0])
    places = {job: place for place, job in enumerate(order)}
    within: list[Sequence[Ints | None]] = [(None,)] * len(chosen)
    if len(models) > 1:
        alone = [_nodes(work, [model]) for model in models]
        as_fast = [_nodes(work, models[: number + 1]) for number in range(len(models))]
        within = [(alone[slowest],) if one_each else (alone[slowest], as_fast[slowest]) for _, slowest in chosen]
    policies: list[Policy] = [
        ListPolicy("order", in_order(order)),
        AsChosen(places, within, [start for start, _ in chosen]),
    ]
    if len(models) > 1:
        policies.append(AsChosen(places, within, [0] * len(chosen)))
    return min(Loop(Desk(work), policy).run().value(work) for policy in policies) / 1000


def _nodes(work: Work, models: Sequence[str]) -> Ints:
    """Return the nodes whose cards are of some models."""
    instance = work.instance
    kinds = instance.card_kinds
    classes = [
        row for row, one in enumerate(instance.classes) if any(kinds[kind].model in models for kind, _, _ in one.cards)
    ]
    return np.flatnonzero(np.isin(instance.node_class, classes))
