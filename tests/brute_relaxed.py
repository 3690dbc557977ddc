"""The best schedule of a few jobs of a relaxation, by trying all, and random relaxations.

Sorted by start, each job of some best schedule starts as soon as what is there allows, given those before it in some
order. Nothing here knows the bounds. Import it as ``brute_relaxed``.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import numpy as np

from placement.scheduling.bounds.modes import NO_END, Kind, Mode, Relaxation
from placement.scheduling.capacity import Profile

Placed = tuple[int, int, Mode]
"""Begin, end, and mode of a job."""


def kind(number: int, run: int, units: int, weight: int = 1, start: int = 0, due: int = NO_END) -> Kind:
    """Return the kind of one job that takes units of the first resource."""
    mode = Mode(run, ((0, units),) if units else ())
    return Kind((number,), weight, start, start, due, (mode,), True)


def there(*steps: tuple[int, int]) -> Profile:
    """Return a profile of times and units."""
    times, units = zip(*steps, strict=True)
    return Profile(np.array(times, dtype=np.int64), np.array(units, dtype=np.int64))


def of(kinds: Sequence[Kind], *profiles: Profile) -> Relaxation:
    """Return the relaxation of some kinds."""
    return Relaxation(tuple(kinds), profiles, len(profiles))


def random_relaxed(draw: random.Random, most: int = 4) -> Relaxation:
    """Return a few jobs of one or two modes, on one or two resources of which there is more and less at times."""
    unit = draw.choice((1, 1000, 1009))
    profiles = []
    for _ in range(draw.choice((1, 1, 2))):
        times = sorted({0, *(draw.randint(1, 9) * unit for _ in range(draw.choice((0, 0, 1, 3))))})
        room = draw.randint(1, 5)
        profiles.append(there(*((time, draw.randint(0, room)) for time in times[:-1]), (times[-1], room)))
    kinds = []
    for number in range(draw.randint(2, most)):
        weight, release = draw.choice((0, 1, 1, 2, 5)), draw.choice((0, 0, draw.randint(1, 6) * unit))
        modes = []
        for _ in range(draw.choice((1, 1, 1, 2))):
            units = (draw.randint(0, int(profile.units[-1])) for profile in profiles)
            uses = tuple((resource, held) for resource, held in enumerate(units) if held)
            modes.append(Mode(draw.randint(0, 9) * unit, uses))
        start = release + draw.choice((0, 0, 2 * unit))  # later where it comes after others
        kinds.append(Kind((number,), weight, release, start, NO_END, tuple(dict.fromkeys(modes)), True))
    if draw.random() < 0.2:  # jobs alike
        kinds = [Kind((number,), *_fields(kinds[0])) for number in range(len(kinds))]
    return of(kinds, *profiles)


def _fields(one: Kind) -> tuple[int, int, int, int, tuple[Mode, ...], bool]:
    return one.weight, one.release, one.start, one.due, one.modes, one.whole


def schedules(relaxed: Relaxation) -> list[tuple[int, list[Placed]]]:
    """Return the value and the runs of all schedules in which jobs start as soon as they can, in some order."""
    found = []
    for modes in itertools.product(*(one.modes for one in relaxed.kinds)):
        for order in itertools.permutations(range(len(modes))):
            runs: dict[int, Placed] = {}
            for number in order:
                start = soonest(relaxed, number, modes[number], list(runs.values()))
                runs[number] = start, start + modes[number].run, modes[number]
            kinds = relaxed.kinds
            if all(runs[number][1] <= kinds[number].due for number in runs):
                value = sum(one.weight * (runs[number][1] - one.release) for number, one in enumerate(kinds))
                found.append((value, [runs[number] for number in range(len(kinds))]))
    return found


def soonest(relaxed: Relaxation, number: int, mode: Mode, placed: Sequence[Placed], after: int = 0) -> int:
    """Return when a job may start first beside others."""
    first = max(relaxed.kinds[number].start, after)
    moments = {first, *(end for _, end, _ in placed)}
    moments |= {time for profile in relaxed.profiles for time in profile.times.tolist()}
    return next(moment for moment in sorted(moments) if moment >= first and _fits(relaxed, mode, placed, moment))


def _fits(relaxed: Relaxation, mode: Mode, placed: Sequence[Placed], start: int) -> bool:
    end = start + mode.run
    for resource, units in mode.uses:
        profile = relaxed.profiles[resource]
        moments = {start, *profile.times.tolist(), *(begin for begin, _, _ in placed)}
        for moment in (moment for moment in moments if start <= moment < end):
            held = sum(dict(one.uses).get(resource, 0) for begin, until, one in placed if begin <= moment < until)
            if held + units > profile.units[profile.times <= moment][-1]:
                return False
    return True
