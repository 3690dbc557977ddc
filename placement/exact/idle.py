"""Objectives that nobody wishes for: they are 0 whatever happens, so methods leave them out; bounds put them back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from placement.instance import Instance
from placement.preferred import wishes
from placement.solver import Bound, Progress, Report, Result

Phase = tuple[str, int | None]
"""Objective and priority."""


class Idle:
    """The objectives of a call that are 0 whatever happens.

    Attributes
    ----------
    others : tuple of str
        The other objectives, in order.
    """

    def __init__(self, instance: Instance, objectives: Sequence[str]) -> None:
        counts = {"locality": bool(wishes(instance)), "run_time": instance.timed}
        self.others = tuple(objective for objective in objectives if counts.get(objective, True))
        self._idle = frozenset(objectives) - frozenset(self.others)
        self._phases: list[Phase] = []
        for objective in objectives:
            tiers = instance.priorities if objective == "value" else (None,)
            self._phases += [(objective, tier) for tier in tiers]

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
        number = self._phases.index((bound.objective, bound.priority))
        held = tuple(0.0 if name in self._idle else next(given) for name, _ in self._phases[:number])
        return replace(bound, held=held)
