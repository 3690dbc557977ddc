"""What of an earlier plan still holds, as a start for the next."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import numpy as np

from placement.gang import runs
from placement.heuristics.gangs import Placed
from placement.instance import Assignment, Instance
from placement.naming import job_names, node_names
from placement.places import places_of
from placement.plan import Tasks
from placement.scheduling.compile import Spots
from placement.snapshot import RunningTask
from placement.state import State


def carried(instance: Instance, tasks: Tasks, deadline: float = math.inf) -> Assignment:
    """Return the tasks of an earlier plan of jobs that still wait and may be where they were.

    Jobs that are gone, or of which a place is gone or taken, are left out, whole; so is one after another that takes
    more than there is room for beside the first ones. NUMA zones and what lies together are not looked at: the places
    of a job were right together, but what else is in a zone may have changed, see `placement.check`.

    Parameters
    ----------
    instance : Instance
    tasks : Tasks
    deadline : float
        Moment of the monotonic clock after which no more jobs are looked at.
    """
    state = State(instance)
    nodes = {name: node for node, name in enumerate(node_names(instance, np.arange(instance.hosts)))}
    jobs = {name: job for job, name in enumerate(job_names(instance, np.arange(instance.jobs)))}
    spots = Spots(instance, nodes)
    rows = []
    for name, places in places_of(tasks).items():
        if time.monotonic() > deadline:
            break
        if name in jobs:
            job = jobs[name]
            rows += [(job, leaf, index, node, cards) for leaf, index, (node, cards) in _held(state, spots, job, places)]
    return Assignment.of(sorted(rows))


def _held(state: State, spots: Spots, job: int, places: Sequence[RunningTask]) -> Sequence[Placed]:
    """Place all tasks of a job where they were, or none; return them."""
    try:
        tasks = spots.of(job, tuple(places))
    except (KeyError, ValueError, IndexError):
        # a node, a group or a card is no longer there
        return ()
    instance = state.instance
    one_class = instance.job_classes[instance.job_class[job]]
    leaves = one_class.leaves
    placed = [[0] * leaf.copies for leaf in leaves]
    for leaf, index, _ in tasks:
        if index >= leaves[leaf].count * leaves[leaf].copies:
            return ()
        placed[leaf][index // leaves[leaf].count] += 1
    if not runs(one_class.root, placed):
        return ()
    done: list[tuple[int, int, tuple[int, ...]]] = []
    for leaf, _, (node, cards) in tasks:
        shape = leaves[leaf].shape
        if not _fits(state, shape, node, cards):
            for one in reversed(done):
                state.remove(*one)
            return ()
        state.place(shape, node, cards)
        done.append((shape, node, cards))
    return tasks


def _fits(state: State, shape: int, node: int, cards: Sequence[int]) -> bool:
    """Return whether one more task fits on some cards of a node."""
    instance, here = state.instance, np.array([node])
    if not state.fits(shape, here)[0]:
        return False
    profile = instance.shapes[shape].profile
    if profile >= 0:
        starts = [one - instance.slot_base for one in cards if one >= instance.slot_base]
        slots = instance.slots
        return slots is not None and all(slots.after[state.slots[node], profile, start] >= 0 for start in starts)
    usable = state.usable(shape, here)[0]
    asked = {one for one in cards if one < len(usable)}
    return len(asked) == instance.shapes[shape].gpus and all(bool(usable[one]) for one in asked)
