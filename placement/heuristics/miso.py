"""MISO: an instance goes to the card with the fewest jobs, so that whoever comes next can be given a large one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from placement.heuristics.best_fit import BestFit
from placement.heuristics.mig_rule import MigRule
from placement.instance import Instance, Ints
from placement.mig import Slots
from placement.snapshot.leaves import leaf_tasks


class Miso(MigRule, BestFit):
    """The card with the fewest instances in use that has room, large or small; there the start that leaves most.

    What is left is counted profile by profile, see `placement.mig.slots.room`. Tasks without a profile are placed by
    `placement.heuristics.best_fit.BestFit`.

    MISO runs the jobs of a card together by MPS for a while, predicts from that how fast each would be on which slice,
    and then cuts the card so that together they are fastest. Where a job goes is decided before: to the card with the
    fewest jobs, of those that could be cut so that each job, the new one too, has the smallest slice that will do.

    Source: Li et al., "MISO: Exploiting Multi-Instance GPU Capability on Multi-Tenant Systems for Machine Learning",
    SoCC 2022 (arXiv:2207.11428), and ``try_schedule`` in ``exp_miso.py`` of boringlee24/socc22-miso (at 1e16f2ad).
    Differs from the source in: a task states its profile, so that slices are not chosen by predicted speed; what runs
    stays in its instance, where MISO cuts the card anew around it, so the start that leaves most stands in for that;
    and a job that has no room holds up no others, while there the queue is strictly first in, first out.
    """

    name: ClassVar[str] = "miso"
    marks_add: ClassVar[bool] = True

    def start(self, slots: Slots, state: int, profile: int, starts: Sequence[int]) -> int:
        """Return the start that leaves most."""
        return int(slots.best[state, profile])

    def scores(self, shape: int, rows: Ints) -> Ints:
        """Return the number of instances in use on each card, below zero."""
        if self.shapes[shape].profile < 0:
            return BestFit.scores(self, shape, rows)
        fewest: Ints = -self.nodes.marks[rows]
        return fewest

    def marks(self, shape: int) -> int:
        """Return 1 for an instance."""
        return int(self.shapes[shape].profile >= 0)

    @classmethod
    def first_marks(cls, instance: Instance) -> Ints:
        """Return how many instances running work holds on each card."""
        marks = np.zeros(instance.nodes, dtype=np.int64)
        mig = np.array([one.slots >= 0 for one in instance.classes], dtype=np.bool_)[instance.node_class]
        node_of = {
            (instance.node_name(node), instance.node_cards.get(node, (0,))[0]): node
            for node in np.flatnonzero(mig).tolist()
        }
        for job in instance.snapshot.jobs:
            tasks = dict(leaf_tasks(job.groups)) if job.running is not None else {}
            for place in job.running.tasks if job.running is not None else ():
                if tasks[place.group].mig_profile and (place.node, place.gpus[0]) in node_of:
                    marks[node_of[place.node, place.gpus[0]]] += 1
        return marks
