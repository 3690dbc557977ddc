"""Who shares cards with whom, what that costs, and what is left of cards that nobody can use."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction

import msgspec

from placement import units
from placement.hardware import interference
from placement.hardware.sharing import mode_of, slowed
from placement.metrics.memory import idle_memory, memory_of
from placement.metrics.mig import MigRoom, mig_rooms
from placement.metrics.occupants import Card, Cards, Occupant
from placement.plan import Plan
from placement.snapshot import Gpu, Snapshot

_MIB = 2**20


class Exposure(msgspec.Struct, frozen=True, kw_only=True):
    """What sharing cards means for one job.

    Attributes
    ----------
    job : str
    slow_down : float
        Largest expected factor on the run time of its tasks that comes of sharing, given who else is on their cards, or
        under ``fixed_share`` who may be: what was measured where two tasks of workloads that were measured together
        share one, else what is usual.
    falls_with : tuple of str
        Jobs a fault of which may end it, and which a fault of it may end: those on a card whose mode does not isolate
        faults.
    """

    job: str
    slow_down: float
    falls_with: tuple[str, ...]


class CardLoad(msgspec.Struct, frozen=True, kw_only=True):
    """A card on which tasks ask for more device memory than there is; only running work can do that.

    Attributes
    ----------
    node : str
    card : int
    asked, memory : float
        Bytes.
    """

    node: str
    card: int
    asked: float
    memory: float


class Sharing(msgspec.Struct, frozen=True, kw_only=True):
    """What sharing cards means in a plan, running work included.

    Attributes
    ----------
    jobs : tuple of Exposure
        Those that share a card with another, or run longer for sharing one among their own tasks or for a fixed part of
        the time; by name.
    slow_down, slow_down_p99 : float
        Mean, and the value that 99 % do not exceed, over all jobs with cards; 1 where there are none.
    most_exposed : int
        Most jobs that the fault of one may end beside itself.
    oversubscribed : tuple of CardLoad
    mig : tuple of MigRoom
    idle_memory, unusable_memory : float
        Bytes of device memory that nobody asked for on healthy cards without MIG, and on those of them that no task of
        a pending job could use, looking at each card by itself: shares, memory, clients and the filters of node and
        card being what they are there.
    """

    jobs: tuple[Exposure, ...]
    slow_down: float
    slow_down_p99: float
    most_exposed: int
    oversubscribed: tuple[CardLoad, ...]
    mig: tuple[MigRoom, ...]
    idle_memory: float
    unusable_memory: float


def sharing(snapshot: Snapshot, plan: Plan) -> Sharing:
    """Return what sharing cards means in a plan.

    Parameters
    ----------
    snapshot : Snapshot
    plan : Plan
        A checked plan for it.
    """
    cards = Cards(snapshot, plan)
    factor: dict[str, Fraction] = {}
    falls: dict[str, set[str]] = defaultdict(set)
    shared: set[str] = set()
    for card in cards.used.values():
        jobs = [one.job for one in card.occupants]
        for one in card.occupants:
            slow_down = _slow_down(card, one)
            factor[one.job] = max(factor.get(one.job, Fraction(1)), slow_down)
            if slow_down > 1:
                shared.add(one.job)  # nobody else need be there: its own tasks take turns, or what others would get
        if len(set(jobs)) > 1:
            shared.update(jobs)
            if not card.gpu.mig_enabled and not mode_of(card.gpu).fault.holds:
                for job in jobs:
                    falls[job].update(other for other in jobs if other != job)
    values = sorted(factor.values())
    idle, unusable = idle_memory(cards, plan)
    return Sharing(
        jobs=tuple(
            Exposure(job=job, slow_down=float(factor[job]), falls_with=tuple(sorted(falls[job])))
            for job in sorted(shared)
        ),
        slow_down=float(sum(values) / len(values)) if values else 1.0,
        slow_down_p99=float(values[-(-99 * len(values) // 100) - 1]) if values else 1.0,
        most_exposed=max(map(len, falls.values()), default=0),
        oversubscribed=tuple(_overloads(cards.used.values())),
        mig=tuple(mig_rooms(cards)),
        idle_memory=float(idle),
        unusable_memory=float(unusable),
    )


def _slow_down(card: Card, one: Occupant) -> Fraction:
    """Return what sharing a card costs somebody on it, given who else is there.

    That is nothing for a task that is alone, unless it has a fixed part of the time. Else it is what its job says, or
    where two tasks of measured workloads share the card what was measured of the two on such a one, or else what the
    mode usually costs.
    """
    if card.gpu.mig_enabled or (len(card.occupants) == 1 and not _has_fixed_part(card.gpu, one)):
        return Fraction(1)  # a task that is alone takes no turns
    if one.shared is not None:
        return Fraction(str(one.shared))
    if len(card.occupants) == 2:
        (other,) = (beside for beside in card.occupants if beside is not one)
        measured = interference.factor(card.gpu.model, one.workload, other.workload)
        if measured is not None:
            return measured
    return slowed(card.gpu, len(card.occupants))


def _has_fixed_part(gpu: Gpu, one: Occupant) -> bool:
    """Return whether a task has the same part of the time whoever is there, so that being alone is no gain."""
    return one.task.gpu_share is not None and units.exact(one.task.gpu_share) < 1 and gpu.vgpu_policy == "fixed_share"


def _overloads(cards: Iterable[Card]) -> Iterable[CardLoad]:
    for card in cards:
        if card.gpu.memory is None or card.gpu.mig_enabled:
            continue
        asked = sum(memory_of(one.task) for one in card.occupants)
        if asked > units.exact(card.gpu.memory):
            there = float(units.exact(card.gpu.memory))
            yield CardLoad(node=card.node, card=card.device, asked=float(asked), memory=there)
