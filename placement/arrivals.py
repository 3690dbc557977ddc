"""The arrival experiment: jobs come one at a time until more is asked for than there is, and what does not fit is lost.

How good a rule is shows only when the cluster is nearly full, so a workload is drawn until its requests exceed the
cluster by some factor, and what is idle is read at chosen loads. The procedure is that of FGD (Weng et al.,
"Beware of Fragmentation", ATC'23): all jobs of the snapshot in random order, then jobs drawn from them with
replacement; nothing ends and nothing moves. The order of arrival is the submit time of the drawn snapshot, so any
solver can be measured: a greedy one sees the jobs one at a time, an exact one all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import msgspec
import numpy as np

from placement.evaluate import fragmentation
from placement.gang import Leaf
from placement.instance import Assignment, Instance, Ints
from placement.scale import amounts_of, counted
from placement.snapshot import Job, Snapshot
from placement.state import State


def draw(snapshot: Snapshot, seed: int, load: float = 1.3) -> Snapshot:
    """Return a snapshot whose jobs arrive in random order and ask for about `load` times the cluster's cards.

    Parameters
    ----------
    snapshot : Snapshot
        The cluster and the jobs to draw from; its running work stays.
    seed : int
        Feeds the order and the draws.
    load : float
        Cards asked for, relative to the healthy ones. Jobs are added as long as the next one drawn does not pass
        it; when the snapshot asks for more already, jobs drawn at random are dropped until it does not.
    """
    rng = np.random.default_rng(seed)
    pending = [(job, _cards_asked(job)) for job in snapshot.jobs if job.running is None]
    pool = np.repeat(np.arange(len(pending)), [job.count for job, _ in pending])
    stream: list[int] = rng.permutation(pool).tolist()
    most = Fraction(load) * cards(snapshot)
    asked = sum((pending[i][1] for i in stream), Fraction(0))
    if not asked:
        return snapshot
    while asked > most:
        asked -= pending[stream.pop(int(rng.integers(len(stream))))][1]
    while True:
        i = int(pool[rng.integers(len(pool))])
        asked += pending[i][1]
        if asked > most:
            break
        stream.append(i)
    arriving = tuple(
        msgspec.structs.replace(pending[i][0], name=f"arrival-{number:06}", count=1, submit_time=float(number))
        for number, i in enumerate(stream)
    )
    running = tuple(job for job in snapshot.jobs if job.running is not None)
    return msgspec.structs.replace(snapshot, jobs=running + arriving)


def cards(snapshot: Snapshot) -> int:
    """Return the number of healthy cards of a snapshot."""
    return sum(gpu.count * node.count for node in snapshot.nodes for gpu in node.gpus if gpu.health == "healthy")


def _cards_asked(job: Job) -> Fraction:
    """Return the cards that one copy of a job asks for, shares counted by their fraction."""
    asked = ((amounts_of(task), task.gpus * count) for task, count in counted(job.groups))
    return sum((amounts.share * number for amounts, number in asked), Fraction(0))


@dataclass(frozen=True, slots=True)
class Load:
    """What was measured when some percentage of the cluster's cards had been asked for.

    Attributes
    ----------
    percent : int
        Cards asked for so far, in percent of the cluster's.
    unallocated : float
        Cards not in use, in percent of the cluster's: the mean over the arrivals at which the cards asked for round
        to `percent`.
    failed : int
        Jobs without a place, up to the last of these arrivals.
    fragmented : float
        Fragmentation after the last of these arrivals, in percent of the cluster's cards; see
        `placement.evaluate.fragmentation`.
    """

    percent: int
    unallocated: float
    failed: int
    fragmented: float


def measure(instance: Instance, assignment: Assignment, percents: Iterable[int]) -> list[Load]:
    """Return what an assignment had reached at some loads; loads that no arrival rounds to are left out.

    Parameters
    ----------
    instance : Instance
        Compiled from what `draw` returned.
    assignment : Assignment
    percents : iterable of int
    """
    order = instance.arrival
    total = cards(instance.snapshot) * instance.card_units
    asked = np.cumsum(_units_asked(instance)[order])
    idle = _idle(instance, State(instance)) - np.cumsum(_units_placed(instance, assignment)[order])
    failed = np.cumsum(np.bincount(assignment.job, minlength=instance.jobs)[order] == 0)
    rounded = np.rint(100 * asked / total).astype(np.int64)
    found = []
    for percent in percents:
        at = np.flatnonzero(rounded == percent)
        if not len(at):
            continue
        state = State(instance)
        state.apply(assignment.of_jobs(order[: at[-1] + 1]))
        lost = fragmentation(instance, state) / 1000 * instance.card_units
        found.append(
            Load(percent, float(100 * idle[at].mean() / total), int(failed[at[-1]]), float(100 * lost / total))
        )
    return found


def _idle(instance: Instance, state: State) -> int:
    healthy = np.array([kind.healthy for kind in instance.card_kinds] + [False])[state.kind]
    return int(state.units[healthy].sum())


def _units_asked(instance: Instance) -> Ints:
    """Return the card units that each pending job asks for."""
    of_class = [
        sum(leaf.count * leaf.copies * _units(instance, leaf) for leaf in job_class.leaves)
        for job_class in instance.job_classes
    ]
    return np.array(of_class, dtype=np.int64)[instance.job_class]


def _units_placed(instance: Instance, assignment: Assignment) -> Ints:
    """Return the card units that each pending job got."""
    placed = np.zeros(instance.jobs, dtype=np.int64)
    for job, leaf in zip(assignment.job.tolist(), assignment.leaf.tolist(), strict=True):
        placed[job] += _units(instance, instance.job_classes[instance.job_class[job]].leaves[leaf])
    return placed


def _units(instance: Instance, leaf: Leaf) -> int:
    shape = instance.shapes[leaf.shape]
    return shape.gpus * shape.units
