"""Objectives that have one value whatever happens: methods leave them out, and bounds put them back.

Some are 0 since nobody wishes for them; how many MIG cards are in use stays as it is where nobody waits for an
instance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from placement.evaluate import wished_for
from placement.instance import Instance
from placement.models import Goal, goals
from placement.solver import Bound, Progress, Report, Result


class Idle:
    """The objectives of a call that have one value whatever happens.

    Attributes
    ----------
    others : tuple of str
        The other objectives, in order.
    """

    def __init__(self, instance: Instance, objectives: Sequence[str]) -> None:
        self._idle = {name: 0.0 for name, counts in wished_for(instance).items() if name in objectives and not counts}
        if instance.slots is None and "mig_cards" in objectives:
            self._idle["mig_cards"] = float(instance.mig_cards)
        self.others = tuple(objective for objective in objectives if objective not in self._idle)
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
        held = tuple(
            self._idle[goal.objective] if goal.objective in self._idle else next(given)
            for goal in self._phases[:number]
        )
        return replace(bound, held=held)
