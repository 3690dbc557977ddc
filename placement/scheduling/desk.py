"""The cluster at one moment of its future: what a policy may do about what waits and what runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import cached_property, partial

import numpy as np

from placement.heuristics.fastest_fit import FastestFit
from placement.heuristics.gangs import Placed
from placement.heuristics.rule import Rule
from placement.instance import Ints
from placement.scheduling.bounds.modes import Modes
from placement.scheduling.line import Line, Turns
from placement.scheduling.timing import Stretch
from placement.scheduling.view import Live as Live
from placement.scheduling.view import View
from placement.scheduling.work import NEVER as NEVER
from placement.scheduling.work import Work

Key = Callable[["Desk", int], tuple[float, ...] | float]
"""Of a job that waits; the smallest comes first."""

Apart = Callable[["Desk", int], Hashable]
"""Of a job; that one was refused says nothing of another for which this is something else."""

Held = tuple[int, Sequence[Placed]]
"""A job, and places that are taken for it or given back."""

MANY = 4
"""So many jobs are taken off their places faster at once than one by one."""

MOST_HELD_BACK = 10
"""Most jobs of which is noted that a quota kept them waiting."""


class Desk(View):
    """What a policy sees and does."""

    def __init__(
        self,
        work: Work,
        rule: type[Rule] = FastestFit,
        seed: int = 0,
        slow: Sequence[Fraction] | None = None,
        deadline: float = math.inf,
    ) -> None:
        """Start with what runs now; see `placement.scheduling.view.View`."""
        super().__init__(work, rule, seed, slow, deadline)
        self._lines: dict[tuple[Key, Apart | None, bool], Line] = {}

    def line(self, key: Key) -> list[int]:
        """Return the jobs that wait by a key, which may change for a job only when it is stopped."""
        if (key, None, False) not in self._lines:
            self._lines[key, None, False] = Line(self.waiting, partial(key, self))
        return self._lines[key, None, False].jobs()

    def turns(self, key: Key, apart: Apart | None = None) -> Turns:
        """Return the same jobs to be tried in turn, where one that is refused may stand for all that are alike.

        These are those of which none fits, once one did not, until something comes free; see `refused_alike`.
        """
        if (key, apart, True) not in self._lines:
            self._lines[key, apart, True] = Line(self.waiting, partial(key, self), partial(self._alike, apart))
        return self._lines[key, apart, True].turns()

    def _alike(self, apart: Apart | None, job: int) -> Hashable:
        kind = self.refused_alike(job)
        return None if kind < 0 else (kind, apart and apart(self, job))

    def shortest(self, job: int) -> int:
        """Return a time than which no job takes less once it is started, wherever that is, restart included."""
        full = min(mode.run for mode in self._modes.of(self._class[job]))
        todo = self.todo.get(job)
        return full if todo is None else int(self.work.restart[job]) + math.ceil(full * todo)

    @cached_property
    def _modes(self) -> Modes:
        return Modes(self.work.instance)

    # --- doing ---------------------------------------------------------------------------------------------------

    def fit(self, job: int, within: Ints | None = None, most: tuple[int, ...] = ()) -> tuple[Placed, ...] | None:
        """Place a job that waits, and return where, or None where it does not fit; see `settle` and `withdraw`.

        Its queue may use what it takes there.

        Parameters
        ----------
        job : int
        within : int array, optional
            Nodes that it may use; all if absent.
        most : tuple of int
            Most tasks of each of its groups, see `placement.scheduling.counting.fewer`; all if there are none.
        """
        if self.admission is None:
            return self._place(job, within, most)
        self.short.pop(job, None)
        short = self.admission.short_at_least(job)
        if short is not None:
            self.short[job] = short
            return None
        tasks = self._admitted(job, self._place(job, within, most))
        if tasks is None and job in self.short:
            for nodes in self.admission.confinements(job):
                some = nodes if within is None else np.intersect1d(nodes, within)
                tasks = self._admitted(job, self._place(job, some, most))
                if tasks is not None:
                    del self.short[job]
                    break
        return tasks

    def _place(self, job: int, within: Ints | None = None, most: tuple[int, ...] = ()) -> tuple[Placed, ...] | None:
        """Place a job where no window is in the way, on some nodes or on all, whatever its queue may use."""
        if not self.may_fit(job):
            return None
        kept_to, length = self._closed or within is not None, self.shortest(job) if self._closed else 0
        while True:
            if kept_to:
                self.filling.keep_to(self._open(job, within, length))
            tasks = self.filling.serve(self._class[job], [], most)
            self._free -= self.units_of(job, tasks)
            if kept_to:
                self.filling.keep_to(None)
            if not tasks or not self._is_no_use(job, tasks):
                return tuple(tasks) or None
            self.withdraw(job, tasks)
            restart, work, _ = self.spell(job, tasks)
            if not self._closed or restart + work <= length:
                return None  # no window is in the way
            length = restart + work  # it runs longer there: on nodes that stay open for so long it may do

    def _admitted(self, job: int, tasks: tuple[Placed, ...] | None) -> tuple[Placed, ...] | None:
        """Return the tasks, of those that are placed, with which the quota admits a job; take the others back."""
        if tasks is None or self.admission is None:
            return tasks
        some = self.admission.admitted(job, tasks)
        if not some:
            short = self.admission.short_by(job, tasks)
            if short is not None:
                self.short.setdefault(job, short)
        return self.keep(job, tasks, some)

    def keep(self, job: int, tasks: tuple[Placed, ...], some: tuple[Placed, ...]) -> tuple[Placed, ...] | None:
        """Return some of the tasks that `fit` has placed and take the others back; all where those are no use."""
        if len(some) == len(tasks):
            return tasks
        kept = set(some)
        self.withdraw(job, [task for task in tasks if task not in kept])
        if some and self._is_no_use(job, some):
            self.withdraw(job, some)
            return None
        return some or None

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

    def stop(self, job: int) -> None:
        """Stop a job that runs, for others; it waits again.

        One that was started at this very moment has never run in this stretch, and waits as if it had not been started.
        """
        if job in self.work.ongoing:
            self._stopped.add(job)
        self._stop(job)

    def take_up(self, job: int, live: Live) -> None:
        """Let a job go on as if it had not been stopped at this very moment, given what it was while it ran."""
        del self.waiting[job], self.todo[job]
        self._stopped.discard(job)
        self.live[job] = live
        self.put_back(job)

    def _stop(self, job: int) -> None:
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
        return self._saved(job, live)[2] > 0 and live.full > 0 and live.kept < 1

    def _stopped_now(self, job: int, live: Live) -> tuple[int, int, Fraction]:
        """Return for how long a job was restored, how much work it loses and which part of all its work it keeps."""
        restart, worked, saved = self._saved(job, live)
        kept = live.kept + (Fraction(saved, live.full) if live.full else 0)
        return restart, min(worked, live.unsaved + worked - saved), min(kept, Fraction(1))

    def _saved(self, job: int, live: Live) -> tuple[int, int, int]:
        """Return for how long a job was restored and worked in this stretch, and how much work is safe that was not."""
        restart = min(live.restart, self.now - live.start)
        worked = self.now - live.start - restart
        every = int(self.work.checkpoint[job])
        unsaved = live.unsaved + worked
        saved = unsaved - unsaved % every if every else 0
        # what was not safe when the stretch began is safe only by a checkpoint after that
        return restart, worked, saved if saved > live.unsaved else 0

    def finish(self, job: int) -> None:
        """End a job, which may still be being restored when somebody takes it away."""
        live = self.live.pop(job)
        self._give(job, live.tasks)
        self._loads.pop(job, None)
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
                self._stop(job)
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
        self.lift_all(taken)
        try:
            yield
        finally:
            self.put_all_back(taken)

    def lift(self, job: int) -> None:
        """Take a job that runs off its places, until it is put back."""
        self._give(job, self.live[job].tasks)

    def put_back(self, job: int) -> None:
        """Put a job that runs back on its places."""
        self._take(job, self.live[job].tasks)

    def lift_all(self, jobs: Sequence[int]) -> None:
        """Take jobs that run off their places, until they are put back."""
        self.exchange([(job, self.live[job].tasks) for job in jobs], [])
        self._free += sum([self.live[job].units for job in jobs])

    def put_all_back(self, jobs: Sequence[int]) -> None:
        """Put jobs that run back on their places."""
        self.exchange([], [(job, self.live[job].tasks) for job in jobs])
        self._free -= sum([self.live[job].units for job in jobs])

    def exchange(self, given: Sequence[Held], taken: Sequence[Held]) -> None:
        """Do what `release` does for some jobs and `hold` for others, at once where that can be."""
        signs = [-1] * len(given) + [1] * len(taken)
        loads = [self.load(job, tasks) for job, tasks in (*given, *taken)] if len(signs) >= MANY else []
        if self.admission is None and loads and self.filling.exchange(loads, signs):
            return
        for job, tasks in given:
            self.release(job, tasks)
        for job, tasks in taken:
            self.hold(job, tasks)

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

    @contextmanager
    def at(self, moment: int) -> Iterator[None]:
        """Let it be another moment for a while, for what goes by the time: windows and deadlines."""
        now, self.now = self.now, moment
        try:
            yield
        finally:
            self.now = now
