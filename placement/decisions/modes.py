"""Snapshots in which the MIG mode of some cards is another, or some of the jobs wait."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import msgspec

from placement import units
from placement.decisions.entries import Spot, changed, node_names
from placement.hardware.mig import fraction, geometry
from placement.snapshot import DomainLimit, Gpu, Job, RunningTask, Snapshot, Task
from placement.snapshot.leaves import leaf_tasks


def cards_of(snapshot: Snapshot, every: bool = False, backwards: bool = False) -> list[tuple[str, int, Gpu]]:
    """Return the cards of the nodes on which some card is switchable, or those of all nodes; copies in turn."""
    found = []
    for node in snapshot.nodes:
        if every or any(gpu.mig_switchable for gpu in node.gpus):
            listed = [gpu for gpu in node.gpus for _ in range(gpu.count)]
            for name in node_names(node)[:: -1 if backwards else 1]:
                found += [(name, card, gpu) for card, gpu in enumerate(listed)]
    return found


def switchable(snapshot: Snapshot, backwards: bool = False) -> list[Spot]:
    """Return the cards that may be switched, those on nodes with fewest of them first: so whole nodes stay whole."""
    busy = {
        (place.node, card)
        for job in snapshot.jobs
        if job.running is not None
        for place in job.running.tasks
        for card in place.gpus
    }
    free: dict[str, list[Spot]] = {}
    for node, card, gpu in cards_of(snapshot, backwards=backwards):
        usable = gpu.mig_switchable and gpu.health == "healthy" and geometry(gpu.model) is not None
        if usable and (node, card) not in busy:
            free.setdefault(node, []).append((node, card))
    return [spot for spots in sorted(free.values(), key=len) for spot in spots]


def with_modes(snapshot: Snapshot, modes: dict[Spot, bool]) -> Snapshot:
    """Return the snapshot with MIG on or off on some cards; nodes with a count stay counted while they are alike."""

    def switched(spot: Spot, gpu: Gpu) -> Gpu:
        on = modes.get(spot)
        if on is None or on == gpu.mig_enabled:
            return gpu
        one = msgspec.structs.replace(gpu, mig_enabled=on, mig_layout=(), mig_static=False)
        # instances are not shared; with MIG off the card is as its entry says
        return msgspec.structs.replace(one, sharing="shared", replicas=None, vgpu_policy="") if on else one

    nodes = (
        changed(node, switched) if any(gpu.mig_switchable for gpu in node.gpus) else [node] for node in snapshot.nodes
    )
    return msgspec.structs.replace(snapshot, nodes=tuple(entry for entries in nodes for entry in entries))


def only(snapshot: Snapshot, mig: bool) -> Snapshot:
    """Return the snapshot with the waiting jobs that have MIG tasks, or those that have none."""
    jobs = tuple(job for job in snapshot.jobs if job.running is not None or asks(job) == mig)
    return msgspec.structs.replace(snapshot, jobs=jobs)


def asks(job: Job) -> bool:
    """Return whether some task of a job asks for a MIG instance."""
    return any(task.mig_profile for _, task in leaf_tasks(job.groups))


def capped(snapshot: Snapshot, cards: int) -> Snapshot:
    """Return the snapshot with a cap on the cards that new tasks may take, whichever these are."""
    taken = sum(
        (_part(task, place) for job in snapshot.jobs if job.running is not None for task, place in _running(job)),
        Fraction(0),
    )
    most: units.Quantity = rounded_up(taken + cards)
    whole = next((limit for limit in snapshot.limits if limit.level == "cluster"), DomainLimit(level="cluster"))
    if whole.gpus is not None and units.exact(whole.gpus) <= units.exact(most):
        most = whole.gpus
    # a domain has one entry, which says all its caps
    others = tuple(limit for limit in snapshot.limits if limit.level != "cluster")
    return msgspec.structs.replace(snapshot, limits=(*others, msgspec.structs.replace(whole, gpus=most)))


def rounded_up(amount: Fraction) -> str:
    """Return an amount as a decimal number, rounded up to millionths: so that a bound stays one."""
    whole, millionths = divmod(math.ceil(amount * 10**6), 10**6)
    return f"{whole}.{millionths:06}"


def _running(job: Job) -> Iterator[tuple[Task, RunningTask]]:
    tasks = dict(leaf_tasks(job.groups))
    for place in job.running.tasks if job.running is not None else ():
        yield tasks[place.group], place


def _part(task: Task, place: RunningTask) -> Fraction:
    """Return how many cards a running task counts as."""
    if task.mig_profile:
        return fraction(task.mig_profile) or Fraction(0)
    return len(place.gpus) * (Fraction(1) if task.gpu_share is None else units.exact(task.gpu_share))


def waits(snapshot: Snapshot) -> bool:
    """Return whether some job waits."""
    return any(job.running is None for job in snapshot.jobs)
