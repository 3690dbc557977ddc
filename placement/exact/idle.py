"""Objectives that nobody wishes for: they are 0 whatever happens, so methods leave them out; bounds put them back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from placement.evaluate import wished_for
from placement.instance import Instance
from placement.models import Goal, goals
from placement.solver import Bound, Progress, Report, Result


class Idle:
    """The objectives of a call that are 0 whatever happens.

    Attributes
    ----------
    others : tuple of str
        The other objectives, in order.
    """

    def __init__(self, instance: Instance, objectives: Sequence[str]) -> None:
        counts = wished_for(instance)
        self.others = tuple(objective for objective in objectives if counts.get(objective, True))
        self._idle = frozenset(objectives) - frozenset(self.others)
        self._phases = goals(instance, objectives)

    def result(self, result: Result) -> Result:
        """Return what a method found as an answer to the whole call."""
        return replace(result, bounds=tuple(map(self.bound, result.bounds))) if self._idle else result

    def report(self, report: Report) -> Report:
        """Return what to tell a method's progress to."""
        if not self._idle:
            return report

        def tell(progress: Progress) -> None:
            report(replace(progress, bounds=tuple(map(self.bound, progress.bounds))))

        return tell

    def bound(self, bound: Bound) -> Bound:
        """Return a bound with the values of all earlier phases, where it takes those of the others as given."""
        if not bound.held:
            return bound
        given = iter(bound.held)
        number = self._phases.index(Goal(bound.objective, bound.priority))
        held = tuple(0.0 if goal.objective in self._idle else next(given) for goal in self._phases[:number])
        return replace(bound, held=held)
