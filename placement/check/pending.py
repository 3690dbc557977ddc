"""Pending: every job that waits, or runs with fewer tasks than it wants, is listed once, with the right reason.

A job can ``"never"`` run when so many of its groups have tasks that no node without work could take (filters, node
resources, enough cards that admit the task; what else runs and the caps on domains do not matter) that the others
cannot make up a group the job needs.
"""

from __future__ import annotations

from collections.abc import Iterator

from placement.check.case import Case, Placed
from placement.check.facts import GPUS, JobFact, NodeFact, Shape
from placement.check.fragmentation import fits
from placement.check.load import NodeLoad
from placement.check.violation import Violation, integer, many, show
from placement.plan import Pending
from placement.snapshot import TaskGroup

RULE = "pending"


def judge(case: Case) -> Iterator[Violation]:
    """Yield wrong, repeated and missing entries."""
    listed: dict[int, set[int]] = {}
    first: dict[str, int] = {}
    possible = Possible(case)
    for number, entry in enumerate(case.plan.pending):
        path, name = f"pending[{number}]", show(entry.job)
        place = case.facts.job_names.find(entry.job)
        if place is None:
            yield Violation(RULE, path, f"no job is named {name}, only jobs of the snapshot can be pending")
            continue
        job = case.facts.jobs[place[0]]
        if job.job.running is not None:
            yield Violation(RULE, path, f"job {name} runs already, only pending jobs can be listed")
            continue
        earlier = first.setdefault(entry.job, number)
        if earlier != number:
            yield Violation(RULE, path, f"job {name} is listed by pending[{earlier}] already, once is allowed")
            continue
        listed.setdefault(place[0], set()).add(place[1])
        yield from _entry(path, entry, job, len(case.by_job.get(entry.job, ())), possible)
    yield from _missing(case, listed)


def _entry(path: str, entry: Pending, job: JobFact, placed: int, possible: Possible) -> Iterator[Violation]:
    if placed == job.wanted:
        yield Violation(RULE, path, f"job {show(entry.job)} runs with all it wants, so it is not pending")
        return
    for field, found, right in (("placed", entry.placed, placed), ("wanted", entry.wanted, job.wanted)):
        if found != right:
            what = f"job {show(entry.job)} has {many(right, 'task')} {field}, not {integer(found)}"
            yield Violation(RULE, f"{path}.{field}", what)
    if placed:
        due, why = "no_room", "some of its tasks run"
    elif possible.job(job):
        due, why = "no_room", "nodes without work could take every task it needs"
    else:
        due, why = "never", "no node could take some task it needs, even without other work"
    if entry.reason != due:
        yield Violation(RULE, f"{path}.reason", f"the reason is {entry.reason}, it must be {due}: {why}")


def _missing(case: Case, listed: dict[int, set[int]]) -> Iterator[Violation]:
    """Yield one violation for each entry of the snapshot of which jobs are neither listed nor fully placed."""
    complete: dict[int, set[int]] = {}
    for rows in case.by_job.values():
        if len(rows) == rows[0].job.wanted:
            complete.setdefault(rows[0].job.spec, set()).add(rows[0].copy)
    for fact in case.facts.pending():
        known = listed.get(fact.spec, set()) | complete.get(fact.spec, set())
        missing = fact.job.count - len(known)
        if missing:
            copy = next(copy for copy in range(fact.job.count) if copy not in known)
            name = show(fact.job.name if fact.job.count == 1 else f"{fact.job.name}-{copy}")
            more = f" and {missing - 1} more" if missing > 1 else ""
            what = f"job {name}{more} of jobs[{fact.spec}] does not fully run, so it must be listed"
            yield Violation(RULE, "pending", what)


class Possible:
    """What nodes without any work could take."""

    def __init__(self, placed: Placed) -> None:
        self._placed = placed
        self._shapes: dict[Shape, bool] = {}
        self._rooms = [(fact, NodeLoad("", fact).room()) for fact in placed.facts.nodes]

    def job(self, job: JobFact) -> bool:
        """Return whether nodes without work could take tasks enough for a job to run."""
        return all(self._group(job, group, group.name) for group in job.job.groups)

    def _group(self, job: JobFact, group: TaskGroup, path: str) -> bool:
        if group.task is not None:
            return self.shape(job.leaves[path].shape)
        able = sum(self._group(job, child, f"{path}/{child.name}") for child in group.groups)
        return able >= (len(group.groups) if group.min_groups is None else group.min_groups)

    def shape(self, shape: Shape) -> bool:
        """Return whether some node without work could take one task of a shape."""
        if shape not in self._shapes:
            self._shapes[shape] = any(self._holds(fact, room, shape) for fact, room in self._rooms)
        return self._shapes[shape]

    def _holds(self, fact: NodeFact, room: dict[str, float], shape: Shape) -> bool:
        if not fits(shape, room) or self._placed.filters.node(shape, fact):
            return False
        if not shape.gpus:
            return True
        usable = sum(
            shape.share <= self._placed.facts.scale[GPUS]
            and (card.memory is None or shape.memory <= card.memory)
            and not self._placed.filters.card(shape, card)
            for card in fact.cards
        )
        return usable >= shape.gpus
