"""Who shares cards with whom, what that costs, and what is left of cards that nobody can use."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from fractions import Fraction

import msgspec

from placement import units
from placement.hardware import interference, mig
from placement.hardware.sharing import mode_of, slowed
from placement.metrics.occupants import Card, Cards, Occupant
from placement.plan import Plan
from placement.snapshot import Gpu, Snapshot, Task, TaskGroup

_MIB = 2**20


class Exposure(msgspec.Struct, frozen=True, kw_only=True):
    """What sharing cards means for one job.

    Attributes
    ----------
    job : str
    slow_down : float
        Largest expected factor on the run time of its tasks that comes of sharing, given who else is on their cards:
        what was measured where two tasks of workloads that were measured together share one, else what is usual.
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


class MigRoom(msgspec.Struct, frozen=True, kw_only=True):
    """What is left on the MIG cards of one model.

    Attributes
    ----------
    model : str
    cards : int
    used : int
        Cards with an instance that a task uses.
    free_slots : int
    stranded_slots : int
        Free slots that no profile without media extensions can cover beside what is there.
    capability : dict of str to int
        For each such profile, how many instances could be created if all were of it.
    wasted_memory : float
        Bytes of device memory in instances beyond what their tasks ask for, as far as both are known.
    """

    model: str
    cards: int
    used: int
    free_slots: int
    stranded_slots: int
    capability: dict[str, int]
    wasted_memory: float


class Sharing(msgspec.Struct, frozen=True, kw_only=True):
    """What sharing cards means in a plan, running work included.

    Attributes
    ----------
    jobs : tuple of Exposure
        Those that share a card, by name.
    slow_down, slow_down_p99 : float
        Mean, and the value that 99 % do not exceed, over all jobs with cards; 1 where there are none.
    most_exposed : int
        Most jobs that the fault of one may end beside itself.
    oversubscribed : tuple of CardLoad
    mig : tuple of MigRoom
    idle_memory, unusable_memory : float
        Bytes of device memory that nobody asked for on healthy cards without MIG, and on those of them that no task of
        a pending job could use, shares and memory being what they are there.
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
            factor[one.job] = max(factor.get(one.job, Fraction(1)), _slow_down(card, one))
        if len(set(jobs)) > 1:
            shared.update(jobs)
            if not card.gpu.mig_enabled and not mode_of(card.gpu).fault.holds:
                for job in jobs:
                    falls[job].update(other for other in jobs if other != job)
    values = sorted(factor.values())
    idle, unusable = _memory(cards, plan)
    return Sharing(
        jobs=tuple(
            Exposure(job=job, slow_down=float(factor[job]), falls_with=tuple(sorted(falls[job])))
            for job in sorted(shared)
        ),
        slow_down=float(sum(values) / len(values)) if values else 1.0,
        slow_down_p99=float(values[-(-99 * len(values) // 100) - 1]) if values else 1.0,
        most_exposed=max(map(len, falls.values()), default=0),
        oversubscribed=tuple(_overloads(cards.used.values())),
        mig=tuple(_mig_rooms(cards)),
        idle_memory=float(idle),
        unusable_memory=float(unusable),
    )


def _slow_down(card: Card, one: Occupant) -> Fraction:
    """Return what sharing a card costs somebody on it, given who else is there.

    Where two tasks of measured workloads share it, that is what was measured of the two on such a card.
    """
    if card.gpu.mig_enabled or len(card.occupants) == 1:
        return Fraction(1)  # a task that is alone takes no turns
    if len(card.occupants) == 2:
        (other,) = (beside for beside in card.occupants if beside is not one)
        measured = interference.factor(card.gpu.model, one.workload, other.workload)
        if measured is not None:
            return measured
    return slowed(card.gpu, len(card.occupants))


def _overloads(cards: Iterable[Card]) -> Iterable[CardLoad]:
    for card in cards:
        if card.gpu.memory is None or card.gpu.mig_enabled:
            continue
        asked = sum(_memory_of(one.task) for one in card.occupants)
        if asked > units.exact(card.gpu.memory):
            there = float(units.exact(card.gpu.memory))
            yield CardLoad(node=card.node, card=card.device, asked=float(asked), memory=there)


def _memory_of(task: Task) -> Fraction:
    return Fraction(0) if task.gpu_memory is None else units.exact(task.gpu_memory)


# --- MIG ---------------------------------------------------------------------------------------------------------


def _mig_rooms(cards: Cards) -> Iterable[MigRoom]:
    number: Counter[str] = Counter()
    held: dict[str, list[list[tuple[mig.Profile, int, Task]]]] = defaultdict(list)
    empty: Counter[str] = Counter()
    for card in cards.used.values():
        there = mig.geometry(card.gpu.model) if card.gpu.mig_enabled else None
        if there is not None:
            number[there.model] += 1
            held[there.model].append(list(_instances(there, card)))
    for _, gpu, count in cards.idle():
        there = mig.geometry(gpu.model) if gpu.mig_enabled else None
        if there is not None and count:
            number[there.model] += count
            empty[there.model] += count
    for model in sorted(number):
        there = mig.geometry(model)
        assert there is not None
        yield _room(there, held[model], empty[model])


def _instances(there: mig.Geometry, card: Card) -> Iterable[tuple[mig.Profile, int, Task]]:
    for one in card.occupants:
        profile = there.profile(one.task.mig_profile)
        if profile is not None and one.start is not None:
            yield profile, one.start, one.task


def _room(there: mig.Geometry, used: list[list[tuple[mig.Profile, int, Task]]], empty: int) -> MigRoom:
    plain = [profile for profile in there.profiles if profile.name.endswith("gb")]
    patterns = Counter(sum(profile.bits(start) for profile, start, _ in card) for card in used)
    patterns[0] += empty
    free = stranded = 0
    capability: Counter[str] = Counter({profile.name: 0 for profile in plain})
    for bits, times in patterns.items():
        covered = 0
        for profile in plain:
            number, taken = 0, bits
            for start in profile.starts:
                mine = profile.bits(start)
                if not bits & mine:
                    covered |= mine
                if not taken & mine:
                    taken |= mine
                    number += 1
            capability[profile.name] += number * times
        open_ = there.slots - bits.bit_count()
        free += open_ * times
        stranded += (open_ - covered.bit_count()) * times
    wasted = sum(
        max(Fraction(0), profile.memory * _MIB - _memory_of(task))
        for card in used
        for profile, _, task in card
        if profile.memory is not None and task.gpu_memory is not None
    )
    return MigRoom(
        model=there.model,
        cards=len(used) + empty,
        used=len(used),
        free_slots=free,
        stranded_slots=stranded,
        capability=dict(capability),
        wasted_memory=float(wasted),
    )


# --- memory ------------------------------------------------------------------------------------------------------


def _memory(cards: Cards, plan: Plan) -> tuple[Fraction, Fraction]:
    """Return the idle device memory, and what of it no task of a pending job could use."""
    waiting = _waiting(cards.snapshot, plan)
    idle = unusable = Fraction(0)
    for gpu, count in ((gpu, count) for _, gpu, count in cards.idle()):
        there = _free(gpu, Fraction(0), Fraction(0))
        if there is not None and count:
            idle += there * count
            unusable += 0 if _usable(gpu, Fraction(1), there, waiting) else there * count
    for card in cards.used.values():
        share = sum((_share(one.task) for one in card.occupants), Fraction(0))
        taken = sum((_memory_of(one.task) for one in card.occupants), Fraction(0))
        there = _free(card.gpu, share, taken)
        if there is not None:
            idle += there
            unusable += 0 if _usable(card.gpu, 1 - share, there, waiting) else there
    return idle, unusable


def _free(gpu: Gpu, share: Fraction, taken: Fraction) -> Fraction | None:
    """Return the memory of a card that nobody asked for, or None where that is not a question."""
    if gpu.memory is None or gpu.mig_enabled or gpu.health != "healthy":
        return None
    return max(Fraction(0), units.exact(gpu.memory) - taken)


def _share(task: Task) -> Fraction:
    return Fraction(1) if task.gpu_share is None else units.exact(task.gpu_share)


def _usable(gpu: Gpu, share: Fraction, memory: Fraction, waiting: list[Task]) -> bool:
    return any(
        _share(task) <= share
        and _memory_of(task) <= memory
        and (not task.gpu_models or gpu.model in task.gpu_models)
        and not (gpu.sharing == "exclusive" and _share(task) < 1)
        for task in waiting
    )


def _waiting(snapshot: Snapshot, plan: Plan) -> list[Task]:
    """Return the distinct tasks with cards of jobs that do not run in full."""
    names = {one.job for one in plan.pending}
    copies = {name.rpartition("-")[0] for name in names}
    found: dict[bytes, Task] = {}
    for job in snapshot.jobs:
        if job.running is None and (job.name in (names if job.count == 1 else copies)):
            for task in _tasks(job.groups):
                if task.gpus and not task.mig_profile:
                    found.setdefault(msgspec.json.encode(task), task)
    return list(found.values())


def _tasks(groups: tuple[TaskGroup, ...]) -> Iterable[Task]:
    for group in groups:
        if group.task is not None:
            yield group.task
        yield from _tasks(group.groups)
