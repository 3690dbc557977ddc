"""The cluster at one moment of its future: what runs, what waits, and what a policy may do about it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from placement.heuristics.fastest_fit import FastestFit
from placement.heuristics.filling import Filling
from placement.heuristics.gangs import Placed
from placement.heuristics.rule import Rule
from placement.instance import Ints
from placement.quota import Cards, Short
from placement.scheduling.admission import Admission, Taken
from placement.scheduling.clock import Clock
from placement.scheduling.counting import counts_say_it, least_units
from placement.scheduling.line import Line
from placement.scheduling.profile import Profile
from placement.scheduling.timing import Stretch
from placement.scheduling.work import NEVER as NEVER
from placement.scheduling.work import Work

MOST_HELD_BACK = 10
"""Most jobs of which is noted that a quota kept them waiting."""


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


class Desk:
    """What a policy sees and does.

    Attributes
    ----------
    work : Work
    clock : Clock
    now : int
    waiting : dict of int to int
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
        Jobs that a quota kept waiting when they came though devices were free, the first `MOST_HELD_BACK`.
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
        self.waiting: dict[int, int] = {}
        self.live: dict[int, Live] = {}
        self.todo: dict[int, Fraction] = {}
        self.stretches: list[Stretch] = []
        self.again = NEVER
        self.memory: dict[str, Any] = {}
        self.filling = Filling(work.instance, rule, deadline, seed)
        self._class: list[int] = work.instance.job_class.tolist()
        self._slow = slow
        self._least: dict[int, int] = {}
        self._comes_back: dict[int, bool] = {}
        self._alone: dict[int, list[Placed]] = {}
        """Where a job of each kind is placed on the empty cluster."""
        self._empty: Filling | None = None
        self._lines: dict[Callable[[Desk, int], tuple[float, ...] | float], Line] = {}
        self._closed = len(work.windows) > 0
        least = [least_units(work.instance, one.root) for one in work.instance.job_classes]
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
        for job, ongoing in work.ongoing.items():
            self._take(job, ongoing.tasks)
            full = self.clock.run(job, ongoing.tasks) if ongoing.left is not None else 0
            unsaved = math.floor((ongoing.done - ongoing.kept) * full)
            end = NEVER if ongoing.left is None else self._truly(job, ongoing.left)
            left = NEVER if ongoing.left is None else ongoing.left
            estimate = -ongoing.overrun if ongoing.done == 1 else left
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
        """Return how long a job is expected to run at least once it is started, on the empty cluster, restart included.

        `NEVER` where not even that holds it.
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
                self._empty = Filling(self.work.instance, FastestFit, math.inf, 0)
            self._alone[kind] = self._empty.serve(number, [])
            self._empty.release(number, self._alone[kind])
        tasks = self._alone[kind]
        return self.clock.run(job, tasks) if tasks else NEVER

    def line(self, key: Callable[[Desk, int], tuple[float, ...] | float]) -> list[int]:
        """Return the jobs that wait by a key, which may change for a job only when it is stopped."""
        if key not in self._lines:
            self._lines[key] = Line(self.waiting, partial(key, self))
        return self._lines[key].jobs()

    def kind(self, job: int) -> int:
        """Return a number that is the same for all jobs that are placed in the same way."""
        return self.filling.kind(self._class[job])

    def cards(self, job: int) -> int:
        """Return how many card units a job wants in all."""
        one = self.work.instance.job_classes[self._class[job]]
        shapes = self.work.instance.shapes
        return sum(leaf.count * leaf.copies * shapes[leaf.shape].of_cards for leaf in one.leaves)

    def tasks(self, job: int) -> int:
        """Return how many tasks a job wants in all."""
        return sum(leaf.count * leaf.copies for leaf in self.work.instance.job_classes[self._class[job]].leaves)

    def units(self, job: int, tasks: Iterable[Placed]) -> list[tuple[int, int]]:
        """Return the node of each task of a job, and the card units that the task takes."""
        leaves, shapes = self.work.instance.job_classes[self._class[job]].leaves, self.work.instance.shapes
        return [(node, shapes[leaves[leaf].shape].of_cards) for leaf, _, (node, _) in tasks]

    def least_units(self, job: int) -> int:
        """Return the card units without which a job does not run."""
        return self._least_units[job]

    def units_of(self, job: int, tasks: Iterable[Placed]) -> int:
        """Return the card units that some tasks of a job take."""
        return sum(units for _, units in self.units(job, tasks))

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
        return live.since + int(work.minimum_run[job])

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

    # --- doing ---------------------------------------------------------------------------------------------------

    def fit(self, job: int, within: Ints | None = None) -> tuple[Placed, ...] | None:
        """Place a job that waits, and return where, or None where it does not fit; see `settle` and `withdraw`.

        Its queue may use what it takes there.

        Parameters
        ----------
        job : int
        within : int array, optional
            Nodes that it may use; all if absent.
        """
        if self.admission is None:
            return self._place(job, within)
        self.short.pop(job, None)
        short = self.admission.short_at_least(job)
        if short is not None:
            self.short[job] = short
            return None
        tasks = self._admitted(job, self._place(job, within))
        if tasks is None and job in self.short:
            for nodes in self.admission.confinements(job):
                some = nodes if within is None else np.intersect1d(nodes, within)
                tasks = self._admitted(job, self._place(job, some))
                if tasks is not None:
                    del self.short[job]
                    break
        return tasks

    def _place(self, job: int, within: Ints | None = None) -> tuple[Placed, ...] | None:
        """Place a job where no window is in the way, on some nodes or on all, whatever its queue may use."""
        if not self.may_fit(job):
            return None
        kept_to, length = self._closed or within is not None, self.length(job)
        while True:
            if kept_to:
                self.filling.keep_to(self._open(job, within, length))
            tasks = self.filling.serve(self._class[job], [])
            self._free -= self.units_of(job, tasks)
            if kept_to:
                self.filling.keep_to(None)
            if not tasks or not self._is_no_use(job, tasks):
                return tuple(tasks) or None
            self.withdraw(job, tasks)
            restart, work, _ = self.spell(job, tasks)
            if restart + work <= length:
                return None  # no window is in the way
            length = restart + work  # it runs longer there: on nodes that stay open for so long it may do

    def _admitted(self, job: int, tasks: tuple[Placed, ...] | None) -> tuple[Placed, ...] | None:
        """Return the tasks, of those that are placed, with which the quota admits a job; take the others back."""
        if tasks is None or self.admission is None:
            return tasks
        count = self.admission.trimmed(job, tasks)
        if count < len(tasks):
            short = self.admission.short_by(job, tasks)
            if not count and short is not None:
                self.short.setdefault(job, short)
        return self.cut(job, tasks, count)

    def cut(self, job: int, tasks: tuple[Placed, ...], count: int) -> tuple[Placed, ...] | None:
        """Return the first of the tasks that `fit` has placed and take the others back; all where those are no use."""
        if count >= len(tasks):
            return tasks
        self.withdraw(job, tasks[count:])
        if count and self._is_no_use(job, tasks[:count]):
            self.withdraw(job, tasks[:count])
            return None
        return tasks[:count] or None

    def withdraw(self, job: int, tasks: Sequence[Placed]) -> None:
        """Take back what `fit` has placed."""
        self.filling.release(self._class[job], tasks)
        self._free += self.units_of(job, tasks)

    def put(self, job: int, tasks: tuple[Placed, ...]) -> None:
        """Start a job that waits on places that are free."""
        self.filling.hold(self._class[job], tasks)
        self._free -= self.units_of(job, tasks)
        self.settle(job, tasks)

    def settle(self, job: int, tasks: tuple[Placed, ...]) -> None:
        """Start a job where `fit` has placed it."""
        restart, work, full = self.spell(job, tasks)
        if self.admission is not None:
            self.admission.change(job, tasks)
        kept = 1 - self.todo.get(job, Fraction(1))
        end, estimate = self.now + restart + self._truly(job, work), self.now + restart + work
        self.live[job] = Live(
            tasks,
            self.now,
            self.now,
            restart,
            self._truly(job, full),
            kept,
            0,
            end,
            estimate,
            estimate,
            self.units_of(job, tasks),
            self.waiting.pop(job),
        )

    def start(self, job: int) -> bool:
        """Start a job if it fits now."""
        tasks = self.fit(job)
        if tasks is None:
            self._note(job)
            return False
        self.settle(job, tasks)
        return True

    def _note(self, job: int) -> None:
        """Note of a job that came just now if a quota alone keeps it waiting."""
        short = self.short.get(job)
        if short is None or self.waiting[job] != self.now or job in self.held_back:
            return
        if len(self.held_back) < MOST_HELD_BACK and (tasks := self._place(job)) is not None:
            self.withdraw(job, tasks)
            self.held_back[job] = short

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

    def stop(self, job: int) -> None:
        """Stop a job that runs; it waits again.

        One that was started at this very moment has never run in this stretch, and waits as if it had not been started.
        """
        self.lift(job)
        live = self.live.pop(job)
        if live.start == self.now and (job in self.todo or job not in self.work.ongoing):
            self.waiting[job] = live.came
            return
        restart, lost, kept = self._stopped_now(job, live)
        if self.now > live.start:
            self.stretches.append(Stretch(job, live.start, self.now, restart, lost, live.tasks))
        self.todo[job] = 1 - kept
        self.waiting[job] = self.now

    def saves(self, job: int) -> bool:
        """Return whether a job that runs would keep some work of this stretch if it were stopped now."""
        live = self.live[job]
        return self._stopped_now(job, live)[2] > live.kept

    def _stopped_now(self, job: int, live: Live) -> tuple[int, int, Fraction]:
        """Return for how long a job was restored, how much work it loses and which part of all its work it keeps."""
        restart = min(live.restart, self.now - live.start)
        worked = self.now - live.start - restart
        every = int(self.work.checkpoint[job])
        unsaved = live.unsaved + worked
        saved = unsaved - unsaved % every if every else 0
        if saved <= live.unsaved:
            saved = 0  # what was not safe when the stretch began is safe only by a checkpoint after that
        kept = live.kept + (Fraction(saved, live.full) if live.full else 0)
        return restart, min(worked, unsaved - saved), min(kept, Fraction(1))

    def finish(self, job: int) -> None:
        """End a job, which may still be being restored when somebody takes it away."""
        live = self.live.pop(job)
        self._give(job, live.tasks)
        restart = min(live.restart, live.end - live.start)
        self.stretches.append(Stretch(job, live.start, live.end, restart, 0, live.tasks))

    def fail(self, node: int) -> None:
        """Lose a node: jobs on it are stopped, whatever they allow, and nothing more is placed there.

        A job of which it is not known how long it runs is gone.
        """
        hosts = self.work.instance.hosts_of(np.arange(self.work.instance.nodes))
        hit = [job for job, live in self.live.items() if any(hosts[spot[0]] == node for _, _, spot in live.tasks)]
        for job in hit:
            if self.live[job].end < NEVER:
                self.stop(job)
            else:
                self.live[job].end = self.now
                self.finish(job)
        self.drain(node)

    def drain(self, node: int) -> None:
        """Place nothing more on a node; jobs on it stay."""
        self.filling.shut([node])
        self.changes += 1

    def restore(self, node: int) -> None:
        """Place jobs again on a node that was lost or drained."""
        self.filling.reopen([node])
        self.changes += 1

    # --- what if -------------------------------------------------------------------------------------------------

    @contextmanager
    def without(self, jobs: Iterable[int]) -> Iterator[None]:
        """Take jobs that run off their places for a while."""
        taken = [job for job in jobs if job in self.live]
        for job in taken:
            self.lift(job)
        try:
            yield
        finally:
            for job in taken:
                self.put_back(job)

    def lift(self, job: int) -> None:
        """Take a job that runs off its places, until it is put back."""
        self._give(job, self.live[job].tasks)

    def put_back(self, job: int) -> None:
        """Put a job that runs back on its places."""
        self._take(job, self.live[job].tasks)

    @contextmanager
    def beside(self, held: Iterable[tuple[int, Sequence[Placed]]]) -> Iterator[None]:
        """Hold places for jobs, and their part of the quota, for a while, though others may be on them now."""
        held = list(held)
        for job, tasks in held:
            self.hold(job, tasks)
        try:
            yield
        finally:
            for job, tasks in held:
                self.release(job, tasks)

    def hold(self, job: int, tasks: Sequence[Placed]) -> None:
        """Hold places, and a part of the quota, for a job until they are released, though others may be on them."""
        self.filling.hold(self._class[job], tasks)
        if self.admission is not None:
            self.admission.change(job, tasks)

    def release(self, job: int, tasks: Sequence[Placed]) -> None:
        """Hold places for a job no longer."""
        self.filling.release(self._class[job], tasks)
        if self.admission is not None:
            self.admission.change(job, tasks, -1)

    def earliest(self, job: int) -> tuple[int, tuple[Placed, ...]] | None:
        """Return when a job fits first as jobs that run end as expected, and where; None where that is never."""
        found = Profile(self, {}).earliest(job)
        return None if found is None else (found.start, found.tasks)

    @contextmanager
    def at(self, moment: int) -> Iterator[None]:
        """Let it be another moment for a while, for what goes by the time: windows and deadlines."""
        now, self.now = self.now, moment
        try:
            yield
        finally:
            self.now = now

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
