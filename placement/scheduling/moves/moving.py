"""Moving jobs of one schedule, anew several times; what is moved here is moved elsewhere too (`beside`)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from placement.scheduling.counts import Counted, Profile
from placement.scheduling.moves.improve import Improver
from placement.scheduling.moves.switches import Losses
from placement.scheduling.passes import Pass
from placement.solver import Limits

ROUND = 200
"""Moves after which is told how far it is."""


@dataclass(frozen=True, slots=True)
class Movable:
    """What is moved.

    Attributes
    ----------
    work : Counted
    base : Profile
        What is free as what runs now comes to its end.
    losses : mapping of int to mapping of int to float
        What jobs lose on cards of some models; empty where that is not known.
    """

    work: Counted
    base: Profile
    losses: Losses

    def bare(self) -> Movable:
        """Return the same without the snapshot."""
        return Movable(*self.work.bare(self.base), self.losses)


@dataclass(frozen=True, slots=True)
class Turns:
    """How often jobs are moved anew, and from what.

    Attributes
    ----------
    found : Pass
        The schedule to begin with. What it leaves out stays out.
    seed : int
        Of the first time; each other one has the next.
    times : int
    onward : bool
        Whether each time begins with the best until then; else all do with the first.
    most : float
        Moves each time.
    heat : float
        As in `Improver.run`.
    """

    found: Pass
    seed: int
    times: int = 1
    onward: bool = True
    most: float = math.inf
    heat: float = 1.0


def move(
    what: Movable, turns: Turns, limits: Limits, over: Callable[[], bool], offer: Callable[[Pass], None]
) -> Pass | None:
    """Move jobs; return the best schedule, or None where the first one is none that can be moved.

    Parameters
    ----------
    what : Movable
    turns : Turns
    limits : Limits
        The time left is parted among all times.
    over : callable
        Tells whether to end before.
    offer : callable
        Told of the best schedule of each time so far, now and then.
    """
    best = turns.found
    for number in range(turns.times):
        some = limits.share(1 / (turns.times - number))
        if over() or not some.left:
            break
        begun = best if turns.onward else turns.found
        improver = Improver.of(what.work, what.base, begun.starts, turns.seed + number, what.losses)
        if improver is None:
            # later on it may be the serial pass over what a serial pass gave
            return None if number == 0 else best
        found = _once(improver, turns, some, over, offer)
        if found.value < best.value:
            best = found
    return best


def _once(
    improver: Improver, turns: Turns, limits: Limits, over: Callable[[], bool], offer: Callable[[Pass], None]
) -> Pass:
    whole, late = limits.left, turns.found.late

    def found() -> Pass:
        return Pass(improver.best.starts, improver.best.value, late)

    def done(moves: int) -> float:
        if moves % ROUND == 0:
            offer(found())
        if not limits.left or over():
            return 1.0
        return max(moves / turns.most, 0.0 if whole == math.inf else 1 - limits.left / whole)

    improver.run(done, turns.heat)
    offer(found())
    return found()
