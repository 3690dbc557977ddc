"""Fastest fit: the node with the cards on which such jobs run shortest."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from placement.heuristics.best_fit import BestFit
from placement.heuristics.domain_order import Candidates, DomainOrder, lowest
from placement.heuristics.nodes import Nodes
from placement.instance import Instance, Ints
from placement.shared_cards import parted, sharing_factor

MOST_FIT = 1000
"""More than best fit says of any node with room."""
NEVER = 2**31
"""Place of a card that a task cannot have."""


class FastestFit(BestFit):
    """The models with the least factor on the run time first; of these what others want least; then best fit.

    Others want least the models that all jobs together run longest on. A node counts by the slowest of the fastest
    cards that a task could have there. What a model is worth to tasks that no node can tell apart, of jobs that differ
    in how long they run where, is the mean over them, weighted by tasks, seconds and weight. Where no job states a
    duration it is best fit.

    Domains that could hold all of a gang are tried in the same order, by the mean over their nodes.

    Source: own; the greedy step of heterogeneity-aware schedulers such as AlloX (EuroSys'20) and Gavel (OSDI'20),
    which is to give a job the accelerator it is fastest on.
    """

    name: ClassVar[str] = "fastest-fit"

    def __init__(self, nodes: Nodes, rng: np.random.Generator) -> None:
        super().__init__(nodes, rng)
        self._rank = ranks(nodes.instance)
        self.has_small_scores = self.has_small_scores and not self._rank.any()

    def scores(self, shape: int, rows: Ints) -> Ints:
        """Return the score above."""
        fit = np.clip(super().scores(shape, rows), 0, MOST_FIT - 1)
        gpus = self.shapes[shape].gpus
        if not gpus or not self._rank.any():
            return fit
        state = self.nodes.state
        place = np.where(state.usable(shape, rows), self._rank[shape][state.kind[rows]], NEVER)
        place.sort(axis=1)
        return np.asarray(fit - MOST_FIT * place[:, gpus - 1], dtype=np.int64)

    def domain_order(self) -> DomainOrder:
        """Return the order in which domains with fast nodes come first."""
        return FastestDomains(self.nodes, self._rank) if self._rank.any() else self.domains


class FastestDomains(DomainOrder):
    """Of domains that could hold all that is left, or as much of it, those with the fastest nodes first."""

    def __init__(self, nodes: Nodes, rank: Ints) -> None:
        self._nodes, self._rank = nodes, rank
        self._means: dict[tuple[int, int], Ints] = {}

    def order(self, among: Candidates, wanted: int) -> Ints:
        """Return positions among the candidates."""
        asked = among.asked
        if not asked.needs:
            return super().order(among, wanted)
        place = self._mean(asked.needs[0].shape, asked.level, asked.domains.of_row[asked.level])[among.numbers]
        held = np.minimum(among.room, wanted)
        return lowest(place - held * (int(place.max(initial=0)) + 1), among.spare)

    def _mean(self, shape: int, level: int, of_row: Ints) -> Ints:
        """Return the mean over the nodes of each domain of a level, in hundredths."""
        if (shape, level) not in self._means:
            rows, gpus = np.arange(self._nodes.count), self._nodes.instance.shapes[shape].gpus
            kinds = self._nodes.state.kind[rows]
            places = np.sort(np.where(kinds >= 0, self._rank[shape][kinds], NEVER), axis=1)
            place = places[:, gpus - 1] if 0 < gpus <= places.shape[1] else np.full(len(rows), NEVER)
            known = (of_row >= 0) & (place < NEVER)
            domains = int(of_row.max(initial=-1)) + 1
            sums = np.bincount(of_row[known], weights=place[known], minlength=domains)
            number = np.bincount(of_row[known], minlength=domains)
            self._means[shape, level] = (100 * sums / np.maximum(number, 1)).astype(np.int64)
        return self._means[shape, level]


def ranks(instance: Instance) -> Ints:
    """Return the place of each card kind for each shape, shape (S, C + 1), 0 for the first; the last is no card."""
    kinds = instance.card_kinds
    found = np.zeros((len(instance.shapes), len(kinds) + 1), dtype=np.int64)
    seconds = np.zeros((len(instance.shapes), len(kinds)))
    apart = any(kind.slowdown not in (None, 1) for kind in kinds)
    for job_class in instance.job_classes:
        run = job_class.run
        if run is not None and (run.models or apart or run.shared is not None or run.measured):
            listed = dict(run.models)
            factors = np.array([float(listed.get(kind.model, 1)) for kind in kinds])
            sharing = np.array([float(sharing_factor(kind, run)) for kind in kinds])
            for leaf in job_class.leaves:
                tasks = leaf.count * leaf.copies * job_class.size
                by_kind = factors * sharing if parted(instance, leaf.shape) else factors
                seconds[leaf.shape] += by_kind * float(run.seconds * run.weight) * tasks
    unwanted = _places(-seconds.sum(axis=0))
    for shape, row in enumerate(seconds):
        found[shape, :-1] = _places(row) * (len(kinds) + 1) + unwanted
    return found


def _places(numbers: np.ndarray) -> Ints:
    """Return the place of each number, 0 for the least; equal ones share theirs."""
    return np.unique(numbers, return_inverse=True)[1].reshape(-1)
