"""What there is to see of a cluster at one moment of its future: what runs, what waits, how long jobs take."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from placement.gang import least_of
from placement.heuristics.fastest_fit import FastestFit
from placement.heuristics.filling import Filling
from placement.heuristics.gangs import Placed
from placement.heuristics.load import Load
from placement.heuristics.rule import Rule
from placement.instance import Ints
from placement.quota import Cards, Short
from placement.scheduling.admission import Admission, Taken
from placement.scheduling.clock import Clock
from placement.scheduling.counting import counts_say_it
from placement.scheduling.line import Waiting
from placement.scheduling.timing import Stretch
from placement.scheduling.work import NEVER, Work


@dataclass(slots=True)
class Live:
    """A job that runs.

    Attributes
    ----------
    tasks : tuple of Placed
    start : int
        Of this stretch; 0 for a job that ran before, see `since`.
    since : int
        When it was started.
    restart : int
        Time at the beginning in which it is restored.
    full : int
        Time that all of its work takes where it is, as it turns out.
    kept : Fraction
        Part of its work that was safe when this stretch began.
    unsaved : int
        Time of work that was done, but not safe, when this stretch began.
    end : int
        When it ends if it is not stopped; `NEVER` for one without an end.
    expected : int
        When it is expected to end; at least one millisecond ahead.
    estimate : int
        When it was to end by the first estimate.
    units : int
        Card units that it holds.
    came : int
        When it came to wait before this stretch; 0 for a job that ran before.
    """

    tasks: tuple[Placed, ...]
    start: int
    since: int
    restart: int
    full: int
    kept: Fraction
    unsaved: int
    end: int
    expected: int
    estimate: int
    units: int
    came: int = 0


class View:
    """What a policy sees.

    Attributes
    ----------
    work : Work
    clock : Clock
    now : int
    waiting : Waiting
        Jobs that may start, by the time at which each came to wait.
    live : dict of int to Live
    todo : dict of int to Fraction
        Part of its work that is still to be done, of a job that was stopped.
    stretches : list of Stretch
        What is over.
    again : int
        When the policy wants to be asked again though nothing happens until then; at each decision it starts as never.
    all_units : int
        Card units there are.
    counts : bool
        Whether a job surely does not fit where fewer card units are free than it needs: not where running work may
        overfill cards, nor where cards take MIG instances.
    memory : dict of str to object
        What policies remember from one decision to the next, by their names.
    lowest : int
        Priority below which no job is.
    admission : Admission, optional
        The quotas of the queues, and what is used; absent where no job falls under any.
    short : dict of int to Short
        What kept a job that waits from being started when it was last tried, if that was a quota.
    held_back : dict of int to Short
        Jobs that a quota kept waiting when they came though devices were free, the first of them.
    changes : int
        How often nodes were lost, drained or restored.
    """

    def __init__(
        self,
        work: Work,
        rule: type[Rule] = FastestFit,
        seed: int = 0,
        slow: Sequence[Fraction] | None = None,
        deadline: float = math.inf,
    ) -> None:
        """Start with what runs now.

        Parameters
        ----------
        work : Work
        rule : type
            Of the nodes on which jobs are placed.
        seed : int
        slow : sequence of Fraction, optional
            How much longer than estimated each job runs, by job; 1 where it is absent.
        deadline : float
            On the clock of `time.monotonic`; after it placing a task raises `OutOfTimeError`.
        """
        self.work, self.clock, self.now = work, Clock(work.instance), 0
        self.waiting = Waiting()
        self.live: dict[int, Live] = {}
        self.todo: dict[int, Fraction] = {}
        self.stretches: list[Stretch] = []
        self.again = NEVER
        self.memory: dict[str, Any] = {}
        self.filling = Filling(work.instance, rule, deadline, seed, reorder=True)
        self._class: list[int] = work.instance.job_class.tolist()
        self._slow = slow
        self._least: dict[int, int] = {}
        self._comes_back: dict[int, bool] = {}
        self._alone: dict[int, list[Placed]] = {}
        """Where a job of each kind is placed on the empty cluster."""
        self._empty: Filling | None = None
        self._closed = len(work.windows) > 0
        shapes = work.instance.shapes
        self._of_leaf = [[shapes[leaf.shape].of_cards for leaf in one.leaves] for one in work.instance.job_classes]
        """Card units that a task of each leaf of a class of jobs takes."""
        self._wanted = [
            sum(leaf.count * leaf.copies * units for leaf, units in zip(one.leaves, of_leaf, strict=True))
            for one, of_leaf in zip(work.instance.job_classes, self._of_leaf, strict=True)
        ]
        self._loads: dict[int, tuple[Sequence[Placed], Load]] = {}
        """What each job takes where it is, or was seen last."""
        of_cards = [shape.of_cards for shape in work.instance.shapes]
        least = [
            int(least_of(one.root, [of_cards[leaf.shape] for leaf in one.leaves])) for one in work.instance.job_classes
        ]
        self._least_units: list[int] = [least[one] for one in self._class]
        self.lowest = int(work.priority.min(initial=0))
        self.all_units = sum(one.size * sum(units for _, units, _ in one.cards) for one in work.instance.classes)
        self._free = self.all_units
        self.counts = counts_say_it(work)
        self._taken: dict[int, tuple[tuple[Placed, ...], dict[str, Cards]]] = {}
        self._taking: Taken | None = None
        self.admission = Admission.of(work)
        self.short: dict[int, Short] = {}
        self.held_back: dict[int, Short] = {}
        self.changes = 0
        self._minimum_run: list[int] = work.minimum_run.tolist()
        most = work.instance.snapshot.policy.max_preemptions
        self._most_stopped = work.jobs if most is None else most
        self._stopped: set[int] = set()
        """Jobs that ran at the beginning and were stopped for others, of which there may be so many."""
        for job, ongoing in work.ongoing.items():
            self._take(job, ongoing.tasks)
            full = self.clock.run(job, ongoing.tasks) if ongoing.left is not None else 0
            unsaved = math.floor((ongoing.done - ongoing.kept) * full)
            end = NEVER if ongoing.left is None else self._truly(job, ongoing.left)
            left = NEVER if ongoing.left is None else ongoing.left
            estimate = left if ongoing.overrun is None else -ongoing.overrun
            self.live[job] = Live(
                ongoing.tasks,
                0,
                ongoing.since,
                0,
                self._truly(job, full),
                ongoing.kept,
                unsaved,
                end,
                left,
                estimate,
                self.units_of(job, ongoing.tasks),
            )

    def _truly(self, job: int, estimated: int) -> int:
        return estimated if self._slow is None else math.ceil(estimated * self._slow[job])

    # --- looking -------------------------------------------------------------------------------------------------

    def length(self, job: int) -> int:
        """Return how long a job is expected to run where it is placed first on the empty cluster, restart included.

        Elsewhere it may take less, see `shortest`. `NEVER` where not even the empty cluster holds it.
        """
        if job not in self._least:
            self._least[job] = self._length(job)
        full = self._least[job]
        todo = self.todo.get(job)
        if todo is None or full == NEVER:
            return full
        return int(self.work.restart[job]) + math.ceil(full * todo)

    def _length(self, job: int) -> int:
        number, kind = self._class[job], self.kind(job)
        if kind not in self._alone:
            if self._empty is None:
                self._empty = Filling(self.work.instance, FastestFit, math.inf, 0, reorder=True)
            self._alone[kind] = self._empty.serve(number, [])
            self._empty.release(number, self._alone[kind])
        tasks = self._alone[kind]
        return self.clock.run(job, tasks) if tasks else NEVER

    def kind(self, job: int) -> int:
        """Return a number that is the same for all jobs that are placed in the same way."""
        return self.filling.kind(self._class[job])

    def cards(self, job: int) -> int:
        """Return how many card units a job wants in all."""
        return self._wanted[self._class[job]]

    def tasks(self, job: int) -> int:
        """Return how many tasks a job wants in all."""
        return sum(leaf.count * leaf.copies for leaf in self.work.instance.job_classes[self._class[job]].leaves)

    def units(self, job: int, tasks: Iterable[Placed]) -> list[tuple[int, int]]:
        """Return the node of each task of a job, and the card units that the task takes."""
        of_leaf = self._of_leaf[self._class[job]]
        return [(node, of_leaf[leaf]) for leaf, _, (node, _) in tasks]

    def least_units(self, job: int) -> int:
        """Return the card units without which a job does not run."""
        return self._least_units[job]

    def units_of(self, job: int, tasks: Iterable[Placed]) -> int:
        """Return the card units that some tasks of a job take."""
        of_leaf = self._of_leaf[self._class[job]]
        return sum([of_leaf[leaf] for leaf, _, _ in tasks])

    def load(self, job: int, tasks: Sequence[Placed]) -> Load:
        """Return what some tasks of a job take where they are."""
        known = self._loads.get(job)
        if known is None or known[0] is not tasks:
            known = self._loads[job] = tasks, self.filling.load(self._class[job], tasks)
        return known[1]

    def least_tasks(self, job: int) -> tuple[int, int] | None:
        """Return how many tasks a job needs at least, and the card units of each; None where counts do not say all.

        That is where `counts` is false, where its tasks are not all alike, or take no cards.
        """
        of_leaf = self._of_leaf[self._class[job]]
        if not self.counts or len(of_leaf) != 1 or not of_leaf[0]:
            return None
        return self._least_units[job] // of_leaf[0], of_leaf[0]

    def may_fit(self, job: int, more: int = 0) -> bool:
        """Return whether as many card units are free as a job needs, held places and some `more` among them."""
        return not self.counts or self._least_units[job] <= self._free + more

    def that_may_fit(self, jobs: Sequence[int]) -> list[int]:
        """Return those of some jobs that need no more card units than are free, held places among them."""
        if not self.counts or self.admission is not None:
            return list(jobs)  # of a job that its queue keeps waiting that is to be noted, whatever is free
        least, free = self._least_units, self._free
        return [job for job in jobs if least[job] <= free]

    def refused_alike(self, job: int) -> int:
        """Return a number that jobs share of which none fits, once one did not, until something comes free.

        It is -1 for a job of which that is not known, or for which more counts than what is free.
        """
        number = self._class[job]
        if self._closed or self.admission is not None or self.work.hard[job]:
            return -1
        if not self.filling.refuses_for_long(number):
            return -1
        return self.filling.kind(number)

    def has_room(self, job: int, nodes: Ints) -> bool:
        """Return whether some task of a job fits on one of some nodes."""
        leaves = self.work.instance.job_classes[self._class[job]].leaves
        return any(self.filling.has_room(leaf.shape, nodes) for leaf in leaves)

    def taken(self, job: int) -> dict[str, Cards]:
        """Return how many cards of each model a job that runs takes."""
        tasks = self.live[job].tasks
        known = self._taken.get(job)
        if known is None or known[0] is not tasks:
            if self._taking is None:
                self._taking = Taken(self.work.instance)
            known = self._taken[job] = tasks, self._taking.amounts(job, tasks)
        return known[1]

    def waited(self, job: int) -> int:
        """Return how long a job that waits has waited since it could start, or was stopped."""
        came = self.waiting[job]
        return self.now - (came if came > 0 or job in self.todo else min(came, int(self.work.submit[job])))

    def may_stop(self, job: int) -> bool:
        """Return whether a job that runs may be stopped now.

        One with a hard deadline is not, for it might not be started again.
        """
        return self.stoppable_from(job) <= self.now

    def stoppable_from(self, job: int) -> int:
        """Return when a job that runs may first be stopped; `NEVER` where it may not, or could not start again."""
        work, live = self.work, self.live[job]
        if not work.preemptible[job] or work.hard[job] or live.end >= NEVER or not self._may_come_back(job):
            return NEVER
        if not live.full:
            # what is left of work that was to take no time cannot be told as a part of that
            return NEVER
        if job in work.ongoing and not self.may_stop_together([job]):
            return NEVER
        return live.since + self._minimum_run[job]

    def may_stop_together(self, jobs: Iterable[int]) -> bool:
        """Return whether no more running jobs would be stopped, with some that run, than the snapshot's policy allows.

        Those are jobs that ran at the beginning; each counts once.
        """
        return len(self._stopped.union(job for job in jobs if job in self.work.ongoing)) <= self._most_stopped

    def _may_come_back(self, job: int) -> bool:
        """Return whether an empty cluster could take a job again that runs now: not if it is over its quota."""
        if job not in self._comes_back:
            admitted = self.admission is None or self.admission.never(job) is None
            self._comes_back[job] = admitted and self.length(job) < NEVER
        return self._comes_back[job]

    def spell(self, job: int, tasks: Sequence[Placed]) -> tuple[int, int, int]:
        """Return how long a job is restored and works from now on when it is started on some places, and all its work.

        That is by estimate.
        """
        todo = self.todo.get(job)
        full = self.clock.run(job, tasks)
        if todo is None:
            return 0, full, full
        return int(self.work.restart[job]), math.ceil(full * todo), full

    def _is_no_use(self, job: int, tasks: Sequence[Placed]) -> bool:
        """Return whether a job would end after its hard deadline, or after a window takes one of its places."""
        hard = self.work.hard[job]
        if not hard and not self._closed:
            return False
        restart, work, _ = self.spell(job, tasks)
        end = self.now + restart + work
        if hard and end > int(self.work.deadline[job]):
            return True
        nodes = self.work.instance.hosts_of(np.array([spot[0] for _, _, spot in tasks]))
        return any(
            window.start < end
            and self.now < window.end
            and job not in window.jobs
            and np.isin(nodes, window.nodes).any()
            for window in self.work.windows
        )

    def _open(self, job: int, within: Ints | None, length: int) -> Ints | None:
        """Return the nodes, of some or of all, that no window takes from a job for some time; None for all."""
        instance = self.work.instance
        closed = [
            window.nodes
            for window in self.work.windows
            if job not in window.jobs and window.start < self.now + max(length, 1) and self.now < window.end
        ]
        if not closed:
            return within
        shut = np.zeros(instance.nodes, dtype=np.bool_)
        shut[np.concatenate(closed)] = True
        nodes = np.arange(instance.nodes) if within is None else within
        return nodes[~shut[instance.hosts_of(nodes)]]

    # --- places ---------------------------------------------------------------------------------------------------

    def _take(self, job: int, tasks: Sequence[Placed]) -> None:
        """Take what a job takes on some places, whether or not it is there."""
        self.filling.hold(self._class[job], tasks)
        self._free -= self.units_of(job, tasks)
        if self.admission is not None:
            self.admission.change(job, tasks)

    def _give(self, job: int, tasks: Sequence[Placed]) -> None:
        self.filling.release(self._class[job], tasks)
        self._free += self.units_of(job, tasks)
        if self.admission is not None:
            self.admission.change(job, tasks, -1)
