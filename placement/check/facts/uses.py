"""Tasks on nodes and cards, in columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

import numpy as np

from placement.check.exact import Bools, Ints, numbers
from placement.check.facts.kinds import Gang
from placement.check.facts.names import Names
from placement.snapshot import Job


@dataclass(frozen=True, slots=True)
class Uses:
    """Tasks of which every name is known, running or new; a row is one task.

    Attributes
    ----------
    leaf : int array
        Number of the task's leaf.
    spec, copy : int arrays
        Entry of its node, and number within the entry.
    device, row : int arrays
        Cards of all tasks, and the row of each: distinct devices that the node has.
    """

    leaf: Ints
    spec: Ints
    copy: Ints
    device: Ints
    row: Ints

    def __len__(self) -> int:
        return len(self.leaf)


@dataclass(frozen=True, slots=True)
class Rows(Uses):
    """New tasks, out of a plan.

    Attributes
    ----------
    number : int array
        Row in the plan.
    job, job_copy : int arrays
        Entry of the task's job, and number within the entry.
    index : int array
        Number of the task within the leaf.
    """

    number: Ints
    job: Ints
    job_copy: Ints
    index: Ints

    def devices(self, row: int) -> list[int]:
        """Return the cards of one task, in the order of the plan."""
        return [int(device) for device in self.device[slice(*np.searchsorted(self.row, [row, row + 1]))]]


def running(work: Iterable[tuple[Job, Gang]], nodes: Names) -> Uses:
    """Return the tasks of jobs that run already."""
    leaf, names, gpus = list[int](), list[str](), list[tuple[int, ...]]()
    for job, gang in work:
        assert job.running is not None
        for place in job.running.tasks:
            leaf.append(gang.leaves[place.group].number)
            names.append(place.node)
            gpus.append(place.gpus)
    spec, copy = nodes.find_all(names)
    device, row = flat(gpus)
    return Uses(np.array(leaf, dtype=np.int64), spec, copy, device, row)


def nothing() -> Uses:
    """Return no tasks at all."""
    none = np.zeros(0, dtype=np.int64)
    return Uses(none, none, none, none, none)


def flat(gpus: list[tuple[int, ...]] | list[list[int]]) -> tuple[Ints, Ints]:
    """Return the cards of all tasks one after the other, and the row of each; -1 for what cannot be an index."""
    lengths = np.fromiter(map(len, gpus), dtype=np.int64, count=len(gpus))
    return numbers(list(chain.from_iterable(gpus))), np.repeat(np.arange(len(gpus), dtype=np.int64), lengths)


def only(rows: Ints, kept: Bools) -> tuple[Ints, Bools]:
    """Return the new numbers of rows when only some are kept, and which entries of `rows` name a kept one."""
    position = np.cumsum(kept, dtype=np.int64) - 1
    there = kept[rows]
    return position[rows[there]], there
