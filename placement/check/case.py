"""A plan before the judge: the plan, the facts, and what each rule would otherwise work out again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from fractions import Fraction

from placement.check.facts import Facts
from placement.check.filters import Filters
from placement.check.identity import resolve
from placement.check.load import Load, Row
from placement.check.violation import Violation
from placement.plan import Plan, Tasks


class Placed:
    """A set of placed tasks beside the facts.

    Attributes
    ----------
    facts : Facts
    rows : list of Row
    load : Load
    filters : Filters
    by_job : dict of str to list of Row
        Rows by the name of their job.
    measured : dict of str to Fraction
        Objectives worked out so far; see `placement.check.objectives.measure`.
    """

    def __init__(self, facts: Facts, rows: list[Row]) -> None:
        self.facts = facts
        self.rows = rows
        self.load = Load(facts, rows)
        self.filters = Filters()
        self.measured: dict[str, Fraction] = {}
        self.by_job: dict[str, list[Row]] = defaultdict(list)
        for row in rows:
            self.by_job[row.name].append(row)

    @classmethod
    def of(cls, facts: Facts, tasks: Tasks) -> Placed:
        """Return the placed tasks of a plan, without the rows that break the identity rule."""
        return cls(facts, resolve(facts, tasks)[0])


class Case(Placed):
    """A plan before the judge."""

    def __init__(self, facts: Facts, plan: Plan) -> None:
        rows, self.unknown = resolve(facts, plan.tasks)
        super().__init__(facts, rows)
        self.plan = plan


Judge = Callable[[Case], Iterator[Violation]]
"""A rule: looks at a case and yields what breaks it."""
