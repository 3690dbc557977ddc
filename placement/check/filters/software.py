"""Software: the node's driver and CUDA version must reach what the job requires; unknown reaches nothing."""

from __future__ import annotations

from placement import units
from placement.snapshot import Job, Node, Task


def refusal(job: Job, task: Task, node: Node) -> str | None:
    """Return which version is too old or unknown, or None."""
    return too_old("driver version", node.driver, job.requires.driver) or too_old(
        "CUDA version", node.cuda, job.requires.cuda
    )


def too_old(what: str, found: str, required: str) -> str | None:
    """Return why a version does not reach the required one, or None."""
    if not required:
        return None
    if not found:
        return f"the {what} is unknown, at least {required} is required"
    if units.version(found) < units.version(required):
        return f"the {what} is {found}, at least {required} is required"
    return None
