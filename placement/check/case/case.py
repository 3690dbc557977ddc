"""A plan before the judge: the plan, the facts, and what each rule would otherwise work out again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from placement.check.case.filtered import Filters
from placement.check.case.identity import resolve
from placement.check.case.load import Load
from placement.check.case.lying import Lying
from placement.check.case.slots import Slots
from placement.check.exact import Ints
from placement.check.facts.facts import Facts
from placement.check.facts.names import name_of
from placement.check.facts.uses import Rows
from placement.check.violation import Violation
from placement.plan import Plan, Tasks


class Placed:
    """A set of placed tasks beside the facts.

    Attributes
    ----------
    facts : Facts
    rows : Rows
    tasks : Tasks
        As they are listed.
    starts : list of list of int, or None
        First slots of MIG instances by row of the plan; None where the plan says nothing of them, or not of each row.
    load : Load
    filters : Filters
    measured : dict of str to Fraction
        Objectives worked out so far; see `placement.check.values.objectives.measure`.
    kept : dict of str to object
        What a rule has worked out and needs again, by its name.
    """

    loads: type[Load] = Load

    def __init__(self, facts: Facts, rows: Rows, tasks: Tasks) -> None:
        self.facts = facts
        self.rows = rows
        self.tasks = tasks
        starts = tasks.mig_starts
        self.starts = starts if isinstance(starts, list) and len(starts) == len(tasks) else None
        self.load = self.loads(facts, facts.running, rows)
        self.filters = Filters(facts)
        self.measured: dict[str, Fraction] = {}
        self.kept: dict[str, Any] = {}

    @classmethod
    def of(cls, facts: Facts, tasks: Tasks) -> Placed:
        """Return the placed tasks of a plan, without the rows that break the identity rule."""
        return cls(facts, resolve(facts, tasks)[0], tasks)

    @cached_property
    def started(self) -> tuple[Ints, Ints]:
        """Numbers of the jobs with a placed task, ascending, and how many tasks of each are placed."""
        jobs, counts = np.unique(self.job, return_counts=True)
        return jobs, counts.astype(np.int64)

    @cached_property
    def job(self) -> Ints:
        """Number of each task's job, where the jobs of all entries are numbered in order."""
        return self.facts.job_names.first[self.rows.job] + self.rows.job_copy

    @cached_property
    def slots(self) -> Slots:
        """What is taken of cards with MIG, running work included."""
        return Slots(self.facts, self.load, self.rows, self.starts)

    def node_name(self, row: int) -> str:
        """Return the name of a task's node."""
        return name_of(self.facts.snapshot.nodes[int(self.rows.spec[row])], int(self.rows.copy[row]))

    def job_name(self, row: int) -> str:
        """Return the name of a task's job."""
        return name_of(self.facts.snapshot.jobs[int(self.rows.job[row])], int(self.rows.job_copy[row]))

    def running_name(self, row: int) -> str:
        """Return the name of a running task's job."""
        jobs = (job for job in self.facts.snapshot.jobs if job.running is not None for _ in job.running.tasks)
        return next(islice(jobs, row, None)).name


class Case(Placed):
    """A plan before the judge."""

    def __init__(self, facts: Facts, plan: Plan) -> None:
        rows, self.unknown = resolve(facts, plan.tasks)
        super().__init__(facts, rows, plan.tasks)
        self.plan = plan

    @cached_property
    def lying(self) -> Lying:
        """Where in their nodes the plan says that the tasks lie."""
        return Lying(self.facts, self.rows, self.filters, self.plan.tasks)


Judge = Callable[[Case], Iterator[Violation]]
"""A rule: looks at a case and yields what breaks it."""
