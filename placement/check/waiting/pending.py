"""Pending: every job that waits, or runs with fewer tasks than it wants, is listed once, with the right reason.

A job can ``"never"`` run when so many of its groups have tasks that no node without work could take (filters, node
resources, enough cards that admit the task, NUMA zones that hold it; what else runs and the caps on domains do not
matter) that the others cannot make up a group the job needs. That much a plan must say. It may also say so where a
count of the tasks that domains hold when they are empty proves it; see `placement.check.waiting.most`.

Jobs are ``"not_wanted"`` where the first objective that their tasks change is none that they serve, or none is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from placement.check.case.case import Case
from placement.check.exact import Bools, Ints, numbers
from placement.check.facts.names import name_of
from placement.check.violation import Violation, integer, many, show
from placement.check.waiting.possible import Possible
from placement.plan import Pending
from placement.snapshot import Job, TaskGroup

RULE = "pending"
_REASONS = ("never", "not_wanted", "no_room")


def judge(case: Case) -> Iterator[Violation]:
    """Yield wrong, repeated and missing entries."""
    facts, entries = case.facts, case.plan.pending
    spec, copy = facts.job_names.find_all([entry.job for entry in entries])
    known = np.flatnonzero(spec >= 0)
    known = known[facts.waits[spec[known]]]
    number = facts.job_names.first[spec[known]] + copy[known]
    listed, first, again = np.unique(number, return_index=True, return_inverse=True)
    earlier = np.arange(len(entries), dtype=np.int64)
    earlier[known] = known[first[again.reshape(-1)]]
    placed = np.zeros(len(entries), dtype=np.int64)
    placed[known] = _placed(case, number)
    possible = Possible(case)
    words = _Words(case, possible, spec, earlier, placed)
    for row in np.flatnonzero(~_right(case, possible, known, spec, earlier, placed)).tolist():
        yield from words.of(row)
    yield from _missing(case, listed)


def _placed(case: Case, number: Ints) -> Ints:
    """Return how many tasks of jobs are placed; the jobs by number."""
    jobs, counts = case.started
    if not len(jobs):
        return np.zeros(len(number), dtype=np.int64)
    place = np.minimum(np.searchsorted(jobs, number), len(jobs) - 1)
    return np.where(jobs[place] == number, counts[place], 0)


def _right(case: Case, possible: Possible, known: Ints, spec: Ints, earlier: Ints, placed: Ints) -> Bools:
    """Return which entries say the truth of a job of which nothing was said before."""
    facts, entries = case.facts, case.plan.pending
    gang = facts.gang[spec[known]]
    wanted = np.array([kind.wanted for kind in facts.gangs], dtype=np.int64)[gang]
    never = ~possible.gangs()[gang] & (placed[known] == 0)
    says = [entries[row] for row in known.tolist()]
    said = np.array([_REASONS.index(entry.reason) for entry in says], dtype=np.int64)
    jobs, job = np.unique(spec[known], return_inverse=True)
    due = np.array([_wanted(case, facts.snapshot.jobs[number]) for number in jobs.tolist()], dtype=np.int64)
    due = np.where(never, 0, due[job.reshape(-1)])
    counted = (said == 0) & ~never & (placed[known] == 0)
    if counted.any():
        proven = {number: not possible.enough(facts.gangs[number]) for number in np.unique(gang[counted]).tolist()}
        due[counted & np.array([proven.get(number, False) for number in gang.tolist()], dtype=np.bool_)] = 0
    right = np.zeros(len(entries), dtype=np.bool_)
    right[known] = (
        (earlier[known] == known)
        & (placed[known] < wanted)
        & (numbers([entry.placed for entry in says]) == placed[known])
        & (numbers([entry.wanted for entry in says]) == wanted)
        & (said == due)
    )
    return right


def _wanted(case: Case, job: Job) -> int:
    """Return the reason of a job that could run on nodes without work, as its place among the reasons."""
    groups = list(_below(job.groups))
    worth = job.weight if job.value is None else job.value
    if job.value is None and not any(group.task is not None and group.task.gpus for group in groups):
        worth = 0
    changed = {
        "value": worth != 0,
        "run_time": job.duration is not None or bool(job.data),
        "mig_cards": any(group.task is not None and group.task.mig_profile for group in groups),
        "locality": any(group.topology is not None and group.topology.preferred for group in groups),
    }
    declared = case.plan.provenance.objectives or case.facts.snapshot.policy.objectives
    first = next((name for name in declared if changed.get(name, True)), "")
    return _REASONS.index("no_room" if first in ("value", "tasks") else "not_wanted")


def _below(groups: tuple[TaskGroup, ...]) -> Iterator[TaskGroup]:
    for group in groups:
        yield group
        yield from _below(group.groups)


@dataclass(frozen=True, slots=True)
class _Words:
    """Says of one entry what is wrong with it."""

    case: Case
    possible: Possible
    spec: Ints
    earlier: Ints
    placed: Ints

    def of(self, row: int) -> Iterator[Violation]:
        """Yield what is wrong with an entry."""
        entry, spec, earlier = self.case.plan.pending[row], int(self.spec[row]), int(self.earlier[row])
        path, name = f"pending[{row}]", show(entry.job)
        if spec < 0:
            yield Violation(RULE, path, f"no job is named {name}, only jobs of the snapshot can be pending")
        elif not self.case.facts.waits[spec]:
            yield Violation(RULE, path, f"job {name} runs already, only pending jobs can be listed")
        elif earlier != row:
            yield Violation(RULE, path, f"job {name} is listed by pending[{earlier}] already, once is allowed")
        else:
            yield from self._entry(path, entry, spec, int(self.placed[row]))

    def _entry(self, path: str, entry: Pending, spec: int, placed: int) -> Iterator[Violation]:
        gang = self.case.facts.gang_of(spec)
        if placed == gang.wanted:
            yield Violation(RULE, path, f"job {show(entry.job)} runs with all it wants, so it is not pending")
            return
        for field, found, right in (("placed", entry.placed, placed), ("wanted", entry.wanted, gang.wanted)):
            if found != right:
                what = f"job {show(entry.job)} has {many(right, 'task')} {field}, not {integer(found)}"
                yield Violation(RULE, f"{path}.{field}", what)
        due = _REASONS[_wanted(self.case, self.case.facts.snapshot.jobs[spec])]
        if due == "not_wanted" and (placed or self.possible.gang(gang)):
            why = "no objective that its tasks serve comes before those that they do not"
        elif placed:
            why = "some of its tasks run"
        elif self.possible.gang(gang):
            why = "nodes without work could take every task it needs"
        else:
            due, why = "never", "no node could take some task it needs, even without other work"
            unzoned = self.possible.unzoned(gang)
            why += f" ({unzoned})" if unzoned else ""
        proven = due != "never" and entry.reason == "never" and not placed and not self.possible.enough(gang)
        if entry.reason != due and not proven:
            yield Violation(RULE, f"{path}.reason", f"the reason is {entry.reason}, it must be {due}: {why}")


def _missing(case: Case, listed: Ints) -> Iterator[Violation]:
    """Yield one violation for each entry of the snapshot of which jobs are neither listed nor fully placed."""
    facts = case.facts
    jobs, counts = case.started
    first = facts.job_names.first
    wanted = np.array([kind.wanted for kind in facts.gangs], dtype=np.int64)
    full = jobs[counts == wanted[facts.gang[np.searchsorted(first, jobs, side="right") - 1]]]
    known = np.union1d(listed, full)
    begin = np.searchsorted(known, first)
    missing = np.where(facts.waits, facts.count - np.diff(begin), 0)
    for spec in np.flatnonzero(missing > 0).tolist():
        number, job = int(missing[spec]), facts.snapshot.jobs[spec]
        name = show(name_of(job, _first_gap(known[begin[spec] : begin[spec + 1]] - first[spec])))
        more = f" and {number - 1} more" if number > 1 else ""
        what = f"job {name}{more} of jobs[{spec}] does not fully run, so it must be listed"
        yield Violation(RULE, "pending", what)


def _first_gap(copies: Ints) -> int:
    """Return the least number that is not among some ascending ones."""
    gaps = np.flatnonzero(copies != np.arange(len(copies)))
    return int(gaps[0]) if len(gaps) else len(copies)
