"""The first answer of the exact method: a rough relaxation, its bound, and pools packed with what it allots them.

Rough pools merge all nodes that admit the same tasks, so the relaxation is small whatever the number of nodes, and so
is the time until there is a bound and an answer near it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import numpy as np

from placement.evaluate import demand
from placement.exact.layouts.standing import Standing
from placement.exact.ledger import Ledger
from placement.exact.milp.arrays import Floats
from placement.exact.pools.allot import allotments
from placement.exact.pools.guided import Guided
from placement.exact.pools.master import Master
from placement.exact.timing import Timing
from placement.instance import Instance, Ints
from placement.models.parts import parts_of
from placement.models.pooled_linear import Target, power_of_two
from placement.models.pools import pooling
from placement.state import State

ROUGH_PAIRS = 3000
"""Pools times shapes of the rough pooling."""
SHARE, QUICK_SHARE = 0.9, 0.5
"""Shares of the time left for packing, and where more precise ways are to follow."""
RETOUCH_SHARE = 0.7
"""Share of the time left for improving a layout."""
LATER_TARGET = 0.02
"""Weight of each target relative to the one before, where the relaxation only guides."""


class Relaxed:
    """A pooling of an instance and its master.

    Parameters
    ----------
    ledger : Ledger
    state : State
        Of the instance before any new task.
    parts : list of (nodes, times)
        See `placement.models.parts.parts_of`.
    timing : Timing
    """

    def __init__(self, ledger: Ledger, state: State, parts: list[tuple[Ints, Ints]], timing: Timing) -> None:
        began = time.perf_counter()
        self.ledger, self.parts = ledger, parts
        view = pooling(state, parts)
        timing.add("build", time.perf_counter() - began)
        self.master = Master(view, ledger.seed, timing)

    def bound(self, focus: int) -> None:
        """Bound a target by the relaxation, given what the standing has of the earlier ones."""
        ledger = self.ledger
        limits = ledger.share(0.5)
        for bound in self.master.bounds(ledger.targets[focus], ledger.held(focus), limits):
            ledger.prove(focus, bound)
        ledger.note(limits.left > 0)
        ledger.tell_bounds(f"bound on {ledger.targets[focus][0]}")

    def members(self) -> list[Ints]:
        """Return all nodes of each pool."""
        return [members_of(self.ledger.instance, nodes.tolist()) for nodes, _ in self.parts]

    def idle_price(self) -> Floats:
        """Return by node class what its idle cards may be worth at the relaxation's prices."""
        instance = self.ledger.instance
        price = np.zeros(len(instance.classes))
        for (nodes, _), worth in zip(self.parts, self.master.idle_price().tolist(), strict=True):
            price[instance.node_class[nodes]] = worth
        return price


def rough(ledger: Ledger, state: State, timing: Timing) -> Relaxed:
    """Return the relaxation of the roughest pooling."""
    began = time.perf_counter()
    parts = parts_of(state, ROUGH_PAIRS)
    timing.add("build", time.perf_counter() - began)
    return Relaxed(ledger, state, parts, timing)


def sketch(relaxed: Relaxed, steps: int, timing: Timing) -> None:
    """Pack the pools with what a relaxation allots them, and improve that in some steps; the ledger has the result."""
    ledger = relaxed.ledger
    weights: dict[Target, float] = {}
    for number, target in enumerate(ledger.targets):
        weights[target] = power_of_two(ledger.goals.worth[number].tolist()) * LATER_TARGET**number
    limits = ledger.share(QUICK_SHARE if steps == 1 else SHARE)
    room = relaxed.master.thrifty_room(weights, limits)
    if room is None:
        return
    began = time.perf_counter()
    allotted = allotments(relaxed.master.view, room, demand(ledger.instance))
    guided = Guided(ledger.goals, relaxed.members(), allotted, ledger.blended_worth(), limits, ledger.seed, steps)
    guided.run(_proposer(ledger, "packed"))
    ledger.tell("packed", at_once=True)
    ledger.note(limits.left > 0)
    timing.add("place", time.perf_counter() - began)


def retouch(relaxed: Relaxed, steps: int, timing: Timing) -> None:
    """Improve what stands by the steps that improve packed pools.

    Whole columns are chosen for each node with regard to all others, but only those that are known: what one node has
    too little of for another task, and its neighbour too much, no column brings together. Exchanges do.
    """
    ledger = relaxed.ledger
    limits = ledger.share(RETOUCH_SHARE)
    began = time.perf_counter()
    pools = relaxed.members()
    nothing = np.zeros((len(pools), len(ledger.instance.shapes)), dtype=np.int64)
    guided = Guided(ledger.goals, pools, nothing, ledger.blended_worth(), limits, ledger.seed, steps)
    guided.go_on(ledger.standing, _proposer(ledger, "exchanged"))
    ledger.note(limits.left > 0)
    timing.add("place", time.perf_counter() - began)


def _proposer(ledger: Ledger, phase: str) -> Callable[[Standing], bool]:
    """Return what takes a standing and says whether the first target is still worth work."""

    def propose(standing: Standing) -> bool:
        ledger.take(standing, phase)
        return not ledger.done(0)

    return propose


def members_of(instance: Instance, nodes: Iterable[int]) -> Ints:
    """Return all nodes of the classes of some, ascending."""
    return np.sort(np.concatenate([instance.classes[instance.node_class[node]].nodes for node in nodes]))
