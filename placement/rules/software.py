"""Software: the node's driver and CUDA version must reach what the job requires."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar, cast

from placement import units
from placement.snapshot import Job, Node, Task


class Software:
    """Driver and CUDA versions; an unknown version satisfies no requirement."""

    name: ClassVar[str] = "software"

    def node_key(self, node: Node) -> Hashable:
        """Return the node's driver and CUDA versions."""
        return (node.driver, node.cuda)

    def task_key(self, job: Job, task: Task) -> Hashable:
        """Return the least driver and CUDA versions."""
        return (job.requires.driver, job.requires.cuda)

    def refusal(self, task_key: Hashable, node_key: Hashable) -> str | None:
        """Name the first version that is too old or unknown."""
        needs, has = cast(tuple[str, str], task_key), cast(tuple[str, str], node_key)
        for what, need, have in zip(("driver", "CUDA"), needs, has, strict=True):
            if need and not have:
                return f"{what} {need} is required and the node's version is unknown"
            if need and units.version(have) < units.version(need):
                return f"{what} {need} is required and the node has {have}"
        return None
