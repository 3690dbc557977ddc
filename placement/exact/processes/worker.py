"""The exact pipeline in a process of its own, so that a deadline holds whatever the solver does.

HiGHS does not look at its time limit inside presolve and cut separation, and a solver can crash. So it runs in
another process, which sends what it has as soon as it has it, and is killed at the deadline. The process stays for
the next call if it answered in time; see `placement.exact.processes.pool`.
"""

from __future__ import annotations

import contextlib
import dataclasses

from placement.exact import unsupported
from placement.exact.processes import pool as processes
from placement.exact.processes.child import Done, Job
from placement.exact.processes.handover import BEAT
from placement.exact.processes.process import Process
from placement.instance import Assignment, Instance
from placement.run_time import by_cards
from placement.snapshot import Snapshot
from placement.solver import Bound, Limits, Progress, Report, Result, Stop, silent

GRACE = 0.02
"""Seconds before the deadline at which the process is killed, so that the answer is there in time."""
SILENCE = 30.0
"""Seconds without a sign of life after which a process is given up; it gives one each second, see
`placement.exact.processes.child`."""
_STEP = 1.0
"""Seconds to listen at a time."""
BEATS = 2
"""Signs of life that a process may miss before a deadline without a word about it."""


def warm() -> None:
    """Start a solver process that loads its libraries while the caller does something else; returns at once.

    Nothing happens if one waits for work already, or if the system starts none.
    """
    with contextlib.suppress(OSError):
        processes.pool.warm()


def ready() -> bool:
    """Return whether a solver process waits for work."""
    return processes.pool.has_idle()


def prepare() -> None:
    """Start a solver process for a later call; it leaves the machine to others for a moment before it loads."""
    processes.pool.replace()


class Exact:
    """Mixed-integer models solved by HiGHS, with a proven bound; killed at the deadline.

    Parameters
    ----------
    name : str
        One of `placement.exact.METHODS`.
    silence : float
        Seconds without a sign of life after which the process is given up, with or without a deadline.
    """

    def __init__(self, name: str = "exact", silence: float = SILENCE) -> None:
        self.name = name
        self.silence = silence

    def supports(self, instance: Instance) -> str | None:
        """Return why the method cannot take an instance, or None."""
        return unsupported(self.name, instance)

    def solve(
        self,
        instance: Instance,
        *,
        objectives: tuple[str, ...],
        limits: Limits,
        seed: int = 0,
        start: Assignment | None = None,
        report: Report = silent,
    ) -> Result:
        """Return the best assignment and bounds that the process sent in time; see `Solver.solve`."""
        # node and job names stay here: the process works on indices
        # what is compiled says all, but for the cards of nodes where zones make jobs run longer
        nodes = instance.snapshot.nodes if by_cards(instance) else ()
        bare = dataclasses.replace(instance, snapshot=Snapshot(nodes=nodes))
        within = dataclasses.replace(limits, deadline=limits.deadline - 2 * GRACE)
        job = Job(bare, objectives, within, seed, start, self.name)
        pool = processes.pool
        try:
            process = pool.take()
        except OSError as error:
            return _Told(start).result(Stop.FAILED, f"no solver process could be started: {error}")
        try:
            answer = _supervise(process, job, limits, self.silence, report)
        except BaseException:
            # the caller gave up: nobody is left to take the answer
            pool.end(process)
            raise
        if isinstance(answer, Done):
            assert isinstance(answer.result, Result)
            pool.give(process, answer.resident)
            return answer.result
        pool.end(process)
        pool.replace()
        return answer


@dataclasses.dataclass(slots=True)
class _Told:
    """The best that was told so far, which is the answer if the process fails to give one."""

    best: Assignment | None
    bounds: dict[tuple[str, int | None], Bound] = dataclasses.field(default_factory=dict)

    def add(self, progress: Progress) -> None:
        self.best = progress.assignment or self.best
        self.bounds |= {(bound.objective, bound.priority): bound for bound in progress.bounds}

    def result(self, stop: Stop, *notes: str) -> Result:
        return Result(self.best or Assignment.empty(), stop, tuple(self.bounds.values()), notes=notes)


def _supervise(process: Process, job: Job, limits: Limits, silence: float, report: Report) -> Done | Result:
    """Return the process's answer, or where it gave none, what is known without it."""
    told = _Told(job.start)
    try:
        process.channel.send(job)
    except ConnectionError:
        return told.result(Stop.FAILED, process.reason())
    except OSError as error:
        return told.result(Stop.FAILED, f"the solver process could not be handed its work: {error}")
    silent_for = 0.0
    while True:
        late = limits.left <= GRACE
        # late: what has been sent is still taken, and nothing is waited for
        wait = 0.0 if late else min(_STEP, limits.left - GRACE, silence)
        try:
            item = process.channel.receive(wait)
        except TimeoutError:
            if late:
                silent = silent_for >= BEATS * _STEP
                return told.result(Stop.TIME, *["the solver process had stopped answering"] * silent)
            # by what was waited and not by the clock: when this process was stopped, so was the other
            silent_for += wait
            if silent_for >= silence:
                return told.result(Stop.FAILED, "the solver process stopped answering")
            continue
        except EOFError:
            return told.result(Stop.FAILED, process.reason())
        except Exception as error:
            return told.result(Stop.FAILED, f"the solver process sent what cannot be read: {error!r}")
        silent_for = 0.0
        if isinstance(item, Done):
            return item
        if isinstance(item, Progress):
            told.add(item)
            if not late:
                report(item)
        elif item is not BEAT:
            return told.result(Stop.FAILED, f"the solver process sent what nobody asked for: {item!r:.80}")
