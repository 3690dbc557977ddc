"""Rules for MIG: which cards have it on, what instances they hold, who asks for an instance, and who runs on one.

A card with MIG on takes tasks with a MIG profile and no others. Names of profiles are those of a card model, so they
are looked up for each card anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import add

from placement import units
from placement.hardware import mig
from placement.snapshot.cluster import Gpu
from placement.snapshot.fields import name, quantity, whole, wrong_name
from placement.snapshot.report import Found, names, show
from placement.snapshot.workload import RunningTask, Task

MOST_SLOT = 63
"""Slots are numbered up to this; no card has as many."""

_ENGINES = ("decoders", "encoders", "JPEG units", "optical flow units")


# --- cards ---------------------------------------------------------------------------------------------------


def judge_card(end: str, gpu: Gpu) -> Iterator[Found]:
    """Yield what is wrong with MIG on a run of cards, given the end of its path."""
    if gpu.mig_instance:
        yield from _shared_instance(end, gpu)
        return
    before = False
    for number, instance in enumerate(gpu.mig_layout):
        path = f"{end}.mig_layout[{number}]"
        for found in (
            *name(f"{path}.profile", instance.profile),
            *whole(f"{path}.start", instance.start, 0, MOST_SLOT),
        ):
            before = True
            yield found
    if not gpu.mig_enabled:
        if gpu.mig_layout:
            yield f"{end}.mig_layout", "there are MIG instances while MIG mode is off", 'say "mig_enabled": true'
        elif gpu.mig_static:
            what = "MIG instances are to stay as they are while MIG mode is off"
            yield f"{end}.mig_static", what, 'say "mig_enabled": true, or leave this out'
        return
    geometry = mig.geometry(gpu.model)
    if geometry is not None and not before:
        yield from _layout(f"{end}.mig_layout", gpu, geometry)
    elif geometry is None and not wrong_name(gpu.model):
        what = f"MIG mode is on, and nothing is known of MIG on a card model {show(gpu.model)}"
        yield f"{end}.model", what, _known(gpu.model, mig.models())


def _shared_instance(end: str, gpu: Gpu) -> Iterator[Found]:
    """Yield what is wrong with an entry of which each card is a MIG instance that tasks share."""
    for field in ("mig_enabled", "mig_layout", "mig_static", "mig_switchable"):
        if getattr(gpu, field):
            what = "each card of the entry is a MIG instance, which has no MIG mode of its own"
            yield f"{end}.{field}", what, "leave it out, or leave `mig_instance` out"
    if gpu.sharing == "vgpu":
        what = "virtual GPUs on MIG instances are not supported as instances that tasks share"
        yield f"{end}.sharing", what, 'use "mps", "time_slicing" or "shared"'
    geometry = mig.geometry(gpu.model)
    if geometry is None:
        if not wrong_name(gpu.model):
            what = f"the entry stands for MIG instances, and nothing is known of MIG on a card model {show(gpu.model)}"
            yield f"{end}.model", what, _known(gpu.model, mig.models())
        return
    profile = geometry.profile(gpu.mig_instance)
    if profile is None:
        yield f"{end}.mig_instance", *_no_profile(gpu, geometry, gpu.mig_instance)
    elif profile.memory is not None and _more(gpu.memory, profile.memory):
        what = f"a {profile.name} of {show(gpu.model)} has {profile.memory} MiB, found {show(gpu.memory)}"
        yield f"{end}.memory", what, "state the memory of the instance, not of the card"


def _more(memory: units.Quantity | None, mebibytes: int) -> bool:
    """Return whether an amount of memory is one, and larger."""
    return memory is not None and not any(quantity("", memory)) and units.exact(memory) > mebibytes * 2**20


def _layout(path: str, gpu: Gpu, geometry: mig.Geometry) -> Iterator[Found]:
    """Yield what is wrong with the instances that exist on each of some cards."""
    holder: dict[int, int] = {}
    taken = (0,) * len(geometry.engines)
    right = True
    for number, instance in enumerate(gpu.mig_layout):
        profile = geometry.profile(instance.profile)
        if profile is None:
            yield f"{path}[{number}].profile", *_no_profile(gpu, geometry, instance.profile)
            right = False
        elif instance.start not in profile.starts:
            yield f"{path}[{number}].start", *_no_start(gpu, profile, instance.start)
            right = False
        else:
            slots = range(instance.start, instance.start + profile.size)
            twice = [slot for slot in slots if slot in holder]
            if twice:
                other = f"mig_layout[{holder[twice[0]]}]"
                what = f"{_slots(twice)} {_is(twice)} taken twice, by this instance and by {other}"
                yield f"{path}[{number}]", what, "correct one of them"
                right = False
            for slot in slots:
                holder.setdefault(slot, number)
            taken = _sum(taken, profile.engines)
    if right and (over := _over(taken, geometry.engines)):
        yield path, f"these instances take {over}", "leave out instances that do not exist"


# --- tasks ---------------------------------------------------------------------------------------------------


def judge_task(gpus: int, profile: str, numa: str) -> Iterator[Found]:
    """Yield what is wrong with the MIG profile of a task that asks for some card."""
    if not profile or gpus == 0:
        return
    yield from _instances(gpus, profile, ".mig_profile")
    if numa in ("restricted", "single-numa-node"):
        what = f"the policy {show(numa)} is not supported for a task with a MIG profile"
        yield ".numa", what, 'use "best-effort" or "none", or leave out `mig_profile`'


def judge_share_of_instance(gpus: int, profile: str) -> Iterator[Found]:
    """Yield what is wrong with the profile of the MIG instance that a task takes a share of."""
    if profile and gpus:
        yield from _instances(gpus, profile, ".mig_instance")


def _instances(gpus: int, profile: str, end: str) -> Iterator[Found]:
    if mig.fraction(profile) is None:
        known = dict.fromkeys(one.name for geometry in mig.geometries() for one in geometry.profiles)
        what = f"no card model that is known has a MIG profile {show(profile)}"
        yield end, what, _known(profile, tuple(known))
    if gpus > 1:
        what = f"found {show(gpus)} with a MIG profile, expected 1: work does not span MIG instances"
        yield ".gpus", what, "give each instance a task of its own"


# --- running tasks -------------------------------------------------------------------------------------------


def mig_cards(gpus: tuple[Gpu, ...]) -> dict[int, Gpu]:
    """Return the cards of a node on which MIG is on, or that list instances, by index; their counts must be right."""
    if not any(gpu.mig_enabled or gpu.mig_layout for gpu in gpus):
        return {}
    cards = enumerate(gpu for gpu in gpus for _ in range(gpu.count))
    return {index: gpu for index, gpu in cards if gpu.mig_enabled or gpu.mig_layout}


class RunningInstances:
    """Rules for running tasks on cards with MIG; remembers who holds which slots of them."""

    def __init__(self) -> None:
        self._holder: dict[tuple[str, int], dict[int, str]] = {}
        self._engines: dict[tuple[str, int], tuple[int, ...]] = {}
        # by identity: cards that were read are shared by nodes that have equal ones
        self._existing: dict[int, frozenset[tuple[str, int]]] = {}

    def judge(self, where: str, job: str, place: RunningTask, task: Task, cards: Mapping[int, Gpu]) -> Iterator[Found]:
        """Yield what is wrong with the instance of a running task, or with its having none.

        Parameters
        ----------
        where : str
            Path of the place.
        job : str
            Name of the job.
        place : RunningTask
            On cards that its node has.
        task : Task
        cards : mapping of int to Gpu
            See `mig_cards`.
        """
        if not task.mig_profile:
            for number, card in enumerate(place.gpus):
                if card in cards and cards[card].mig_enabled:
                    held = "all" if task.gpu_share is None else "a share"
                    what = f"MIG is on for card {card} of {show(place.node)}, and the task holds {held} of it"
                    remedy = 'say "mig_enabled": false for the card, or give the task a `mig_profile` and `mig_starts`'
                    yield f".gpus[{number}]", what, remedy
        elif len(place.gpus) == len(place.mig_starts) == 1:
            yield from self._instance(where, job, place, task.mig_profile, cards.get(place.gpus[0]))

    def _instance(self, where: str, job: str, place: RunningTask, profile: str, gpu: Gpu | None) -> Iterator[Found]:
        card, start = place.gpus[0], place.mig_starts[0]
        if gpu is None:
            what = f"MIG is off for card {card} of {show(place.node)}, and the task holds an instance of it"
            yield ".gpus[0]", what, 'say "mig_enabled": true for the card, or leave out `mig_profile` and `mig_starts`'
            return
        geometry = mig.geometry(gpu.model)
        if not gpu.mig_enabled or geometry is None or mig.fraction(profile) is None or not 0 <= start <= MOST_SLOT:
            return  # which has been said of the card, of the task, or of the number
        found = geometry.profile(profile)
        if found is None:
            what, remedy = _no_profile(gpu, geometry, profile)
            yield ".gpus[0]", f"card {card} of {show(place.node)}: {what}", remedy
        elif start not in found.starts:
            yield ".mig_starts[0]", *_no_start(gpu, found, start)
        else:
            existing = self._layout(gpu, geometry)
            if existing and (found.name, start) not in existing:
                what = f"`mig_layout` of card {card} of {show(place.node)} has no {show(found.name)} at slot {start}"
                yield ".mig_starts[0]", what, "list the instance there, or correct the slot"
            yield from self._take(f"{where} of job {show(job)}", place, found, geometry)

    def _layout(self, gpu: Gpu, geometry: mig.Geometry) -> frozenset[tuple[str, int]]:
        """Return the instances of a card's layout; none where something else is wrong with it."""
        if id(gpu) not in self._existing:
            found = {(one.name, i.start) for i in gpu.mig_layout if (one := geometry.profile(i.profile)) is not None}
            wrong = any(_layout("", gpu, geometry))
            self._existing[id(gpu)] = frozenset() if wrong else frozenset(found)
        return self._existing[id(gpu)]

    def _take(self, holder: str, place: RunningTask, profile: mig.Profile, geometry: mig.Geometry) -> Iterator[Found]:
        """Yield whose slots an instance takes once more, and that there are too few engines for it."""
        key, start = (place.node, place.gpus[0]), place.mig_starts[0]
        where = f"card {key[1]} of {show(key[0])}"
        holders = self._holder.setdefault(key, {})
        slots = range(start, start + profile.size)
        twice = [slot for slot in slots if slot in holders]
        if twice:
            what = f"{_slots(twice)} of {where} {_is(twice)} held by {holders[twice[0]]}"
            yield ".mig_starts[0]", what, "two instances cannot share a slot: correct one of them"
            return
        holders.update(dict.fromkeys(slots, holder))
        before = self._engines.get(key, (0,) * len(geometry.engines))
        taken = self._engines[key] = _sum(before, profile.engines)
        over = _over(taken, geometry.engines)
        if over and not _over(before, geometry.engines):
            what = f"with this one the instances on {where} take {over}"
            yield ".mig_starts[0]", what, "correct the profiles of the tasks on that card"


# --- words ---------------------------------------------------------------------------------------------------


def _no_profile(gpu: Gpu, geometry: mig.Geometry, profile: str) -> tuple[str, str]:
    what = f"a card {show(gpu.model)} has no MIG profile {show(profile)}"
    return what, _known(profile, tuple(one.name for one in geometry.profiles))


def _no_start(gpu: Gpu, profile: mig.Profile, start: int) -> tuple[str, str]:
    legal = ", ".join(map(str, profile.starts))
    what = f"found {show(start)}, but an instance {show(profile.name)} of a card {show(gpu.model)} starts at {legal}"
    return what, "correct the slot, or the profile"


def _known(text: str, known: tuple[str, ...]) -> str:
    """Return the remedy for a name that is not among the known ones: the nearest of them, and all of them."""
    listed = f"the known ones are {names(known)}"
    near = mig.nearest(text, known)
    return f"did you mean {' or '.join(map(show, near))}? {listed}" if near else listed


def _slots(slots: list[int]) -> str:
    """Return slots that follow one another as text."""
    return f"slot {slots[0]}" if len(slots) == 1 else f"slots {slots[0]} to {slots[-1]}"


def _is(slots: list[int]) -> str:
    return "is" if len(slots) == 1 else "are"


def _sum(one: Iterable[int], other: Iterable[int]) -> tuple[int, ...]:
    return tuple(map(add, one, other))


def _over(taken: tuple[int, ...], there: tuple[int, ...]) -> str:
    """Return of which media engines more are taken than there are; empty for none."""
    over = zip(_ENGINES, taken, there, strict=True)
    return ", ".join(f"{number} {name_} of {most}" for name_, number, most in over if number > most)
