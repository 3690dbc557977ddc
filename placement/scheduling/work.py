"""The work of a cluster over time, as whole numbers: what may start when, what runs now, what is known of each job.

All times are milliseconds after the snapshot's own time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from placement.heuristics.gangs import Placed
from placement.instance import Instance, Ints

NEVER = 1 << 60
"""Later than everything, in milliseconds."""


@dataclass(frozen=True, slots=True)
class Ongoing:
    """A job that runs now.

    Attributes
    ----------
    tasks : tuple of Placed
        Leaf, number, and node and cards of each task.
    since : int
        When it was started, at most 0.
    left : int, optional
        How long it still runs if it is left alone; None where it has no end that is known.
    done, kept : Fraction
        Part of its work that is done, and that would be kept if it were stopped now: 1 less what is left then over what
        all of it was estimated to take where it is. Below 0 where it takes longer than that.
    overrun : int, optional
        By how much it has run longer than estimated; None before its estimate is over.
    """

    tasks: tuple[Placed, ...]
    since: int
    left: int | None
    done: Fraction
    kept: Fraction
    overrun: int | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """Nodes that only some jobs may use for some time.

    Attributes
    ----------
    nodes : int array
    start, end : int
    jobs : frozenset of int
        Who may; see `Work`.
    """

    nodes: Ints
    start: int
    end: int
    jobs: frozenset[int]


@dataclass(frozen=True, slots=True)
class Work:
    """A snapshot compiled for planning over time; J jobs, pending and running ones, in the order of the snapshot.

    Attributes
    ----------
    instance : Instance
        Of the snapshot as if nothing ran: all jobs wait in it, and their numbers are its.
    submit : int array (J,)
        When each was submitted; 0 where that is not stated.
    release : int array (J,)
        When it may first start: ``max(submit, 0)``.
    weight, priority : int array (J,)
    deadline : int array (J,)
        When it should have ended; -1 for none.
    hard : bool list (J,)
        Whether it is not to be started if it would end later than that.
    after : tuple of tuple of int
        Jobs that must end before it starts.
    preemptible : tuple of bool
    restart : int array (J,)
        How long it takes to restore it once it was stopped.
    checkpoint : int array (J,)
        Time of work between checkpoints; 0 where it writes none.
    minimum_run : int array (J,)
        How long it may not be stopped once it has started.
    queue : tuple of str
    ongoing : mapping of int to Ongoing
        By job.
    windows : tuple of Window
    max_wait : int, optional
        After how long a wait a job comes before all others; None for never.
    """

    instance: Instance
    submit: Ints
    release: Ints
    weight: Ints
    priority: Ints
    deadline: Ints
    hard: tuple[bool, ...]
    after: tuple[tuple[int, ...], ...]
    preemptible: tuple[bool, ...]
    restart: Ints
    checkpoint: Ints
    minimum_run: Ints
    queue: tuple[str, ...]
    ongoing: Mapping[int, Ongoing]
    windows: tuple[Window, ...] = ()
    max_wait: int | None = None

    @property
    def jobs(self) -> int:
        """Number of jobs."""
        return self.instance.jobs

    def counts(self, job: int) -> bool:
        """Return whether what becomes of a job counts: it waits, or could be stopped and has an end."""
        ongoing = self.ongoing.get(job)
        return ongoing is None or (self.preemptible[job] and ongoing.left is not None)
