"""EASY backfilling: later jobs go ahead where they do not delay the first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from placement.heuristics.gangs import Placed
from placement.scheduling.desk import Desk
from placement.scheduling.orders import by_arrival
from placement.scheduling.policies import evicting
from placement.scheduling.profile import Profile


@dataclass(frozen=True, slots=True)
class EasyBackfill:
    """Jobs start as they came; when the first does not fit, it alone gets a reservation, and others may go ahead.

    The reservation is for the earliest moment at which the first job fits as running ones end by their estimates, on
    the places it fits on then. A later job goes ahead if it ends by that moment, or fits beside these places.

    Source: Lifka, The ANL/IBM SP scheduling system (JSSPP 1995), with the rule for who may go ahead as in Mu'alem and
    Feitelson (IEEE TPDS 12(6), 2001), whose spare processors are here all places but the reserved ones. Priority goes
    before time of arrival.
    """

    name: str = "easy-backfill"
    period: int = 0

    def decide(self, desk: Desk) -> None:
        """Start the first ones, reserve for the next and let others go ahead."""
        queue = desk.line(by_arrival)
        started = 0
        while started < len(queue) and desk.start(queue[started]):
            started += 1
        rest = _that_fit(desk, queue[started + 1 :])
        if not rest:
            return
        head = queue[started]
        reserved = Profile(desk, {}).earliest(head)
        if reserved is None:
            for job in rest:
                desk.start(job)  # nothing that ends lets the first job in, so nothing delays it
            return
        _go_ahead(desk, rest, head, reserved.start, reserved.tasks)


def _that_fit(desk: Desk, jobs: Sequence[int]) -> list[int]:
    """Return some jobs without those of which it is sure that they do not fit, one of each kind being tried."""
    fits: dict[int, bool] = {-1: True}
    found = []
    for job in desk.that_may_fit(jobs):
        kind = desk.refused_alike(job)
        if kind not in fits:
            fits[kind] = evicting.fits(desk, job)
        if fits[kind]:
            found.append(job)
    return found


def _go_ahead(desk: Desk, jobs: Sequence[int], head: int, moment: int, places: tuple[Placed, ...]) -> None:
    """Start jobs that end by the moment of the reservation, or fit beside it."""
    held = False
    refused: set[int] = set()
    """Kinds of jobs that do not fit beside the reservation."""
    for job in jobs:
        if not desk.may_fit(job):
            continue
        if desk.now + desk.length(job) <= moment:  # no job ends sooner than on the empty cluster
            if held:
                desk.release(head, places)
                held = False
            if _ends_by(desk, job, moment):
                continue
        kind = desk.refused_alike(job)
        if kind in refused:
            continue
        if not held:
            desk.hold(head, places)
            held = True
        if not desk.start(job) and kind >= 0:
            refused.add(kind)
    if held:
        desk.release(head, places)


def _ends_by(desk: Desk, job: int, moment: int) -> bool:
    """Start a job if it fits and ends by some moment."""
    tasks = desk.fit(job)
    if tasks is None:
        return False
    restart, work, _ = desk.spell(job, tasks)
    if desk.now + restart + work > moment:
        desk.withdraw(job, tasks)
        return False
    desk.settle(job, tasks)
    return True
