"""What is left of MIG cards: free slots, those that nothing reaches, and what could still be created."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import msgspec

from placement.hardware.mig import Geometry, Profile, geometry
from placement.metrics.memory import memory_of
from placement.metrics.occupants import Card, Cards
from placement.snapshot import Gpu, Node

_MIB = 2**20


class MigRoom(msgspec.Struct, frozen=True, kw_only=True):
    """What is left on the MIG cards of one model.

    Attributes
    ----------
    model : str
    cards : int
    used : int
        Cards with an instance that a task uses.
    free_slots : int
        On cards that take new work; where instances stay as they are, those of instances that no task uses.
    stranded_slots : int
        Free slots that no profile without media extensions can cover beside what is there.
    capability : dict of str to int
        For each profile, how many instances could be created if all were of it, or exist unused where they stay as they
        are.
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


@dataclass(frozen=True, slots=True)
class _Look:
    """What matters of a card: taken slots as bits, instances that stay as they are, and whether it takes new work."""

    bits: int
    existing: tuple[tuple[Profile, int], ...] | None
    open: bool


def mig_rooms(cards: Cards) -> Iterable[MigRoom]:
    """Yield what is left, model by model."""
    looks: dict[str, Counter[_Look]] = defaultdict(Counter)
    used: Counter[str] = Counter()
    wasted: dict[str, Fraction] = defaultdict(Fraction)
    for card in cards.used.values():
        there = geometry(card.gpu.model) if card.gpu.mig_enabled else None
        if there is not None:
            held = list(_instances(there, card))
            bits = sum(profile.bits(start) for profile, start, _ in held)
            looks[there.model][_look(there, card.gpu, card.host, bits)] += 1
            used[there.model] += 1
            wasted[there.model] += sum(more for *_, more in held)
    for node, gpu, count in cards.idle():
        there = geometry(gpu.model) if gpu.mig_enabled else None
        if there is not None and count:
            looks[there.model][_look(there, gpu, node, 0)] += count
    for model in sorted(looks):
        there = geometry(model)
        assert there is not None
        yield _room(there, looks[model], used[model], wasted[model])


def _look(there: Geometry, gpu: Gpu, node: Node, bits: int) -> _Look:
    existing = None
    if gpu.mig_static:
        listed = [(there.profile(one.profile), one.start) for one in gpu.mig_layout]
        existing = tuple((profile, start) for profile, start in listed if profile is not None)
    return _Look(bits, existing, gpu.health == "healthy" and not node.cordoned)


def _instances(there: Geometry, card: Card) -> Iterable[tuple[Profile, int, Fraction]]:
    """Yield the instances in use, and how many bytes more they have than is asked for, as far as both are known."""
    for one in card.occupants:
        profile = there.profile(one.task.mig_profile)
        if profile is not None and one.start is not None:
            known = profile.memory is not None and one.task.gpu_memory is not None
            more = (profile.memory or 0) * _MIB - memory_of(one.task) if known else Fraction(0)
            yield profile, one.start, max(Fraction(0), more)


def _room(there: Geometry, looks: Counter[_Look], used: int, wasted: Fraction) -> MigRoom:
    free = stranded = 0
    plain = [profile for profile in there.profiles if profile.plain]
    capability: Counter[str] = Counter({profile.name: 0 for profile in plain})
    for look, times in looks.items():
        if not look.open:
            continue
        if look.existing is not None:
            left = [profile for profile, start in look.existing if not look.bits & profile.bits(start)]
            capability.update({name: times * number for name, number in Counter(one.name for one in left).items()})
            free += times * sum(profile.size for profile in left)
            continue
        capability.update({profile.name: times * profile.alone(look.bits) for profile in plain})
        open_ = there.slots - look.bits.bit_count()
        free += times * open_
        stranded += times * (open_ - _covered(plain, look.bits).bit_count())
    return MigRoom(
        model=there.model,
        cards=looks.total(),
        used=used,
        free_slots=free,
        stranded_slots=stranded,
        capability=dict(capability),
        wasted_memory=float(wasted),
    )


def _covered(plain: list[Profile], bits: int) -> int:
    """Return the slots, as bits, that some instance could cover beside taken ones."""
    covered = 0
    for profile in plain:
        for mine in map(profile.bits, profile.starts):
            covered |= 0 if bits & mine else mine
    return covered
