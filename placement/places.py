"""Where a plan puts jobs, as a snapshot states where they run."""

from __future__ import annotations

from placement.plan import Tasks
from placement.snapshot import RunningTask


def places_of(tasks: Tasks) -> dict[str, tuple[RunningTask, ...]]:
    """Return where a plan puts the tasks of each job."""
    found: dict[str, list[RunningTask]] = {}
    for job, group, index, node, gpus in tasks:
        place = tasks[job, group, index]
        found.setdefault(job, []).append(
            RunningTask(
                group=group,
                index=index,
                node=node,
                gpus=tuple(gpus),
                zone=place.zones[0] if len(place.zones) == 1 else None,
                nics=place.nics,
                mig_starts=place.mig_starts,
            )
        )
    return {name: tuple(some) for name, some in found.items()}
