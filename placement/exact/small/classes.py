"""Small instances to the end: class counts and node patterns, phase by phase, with proven bounds.

Where all patterns of all node classes can be enumerated, the configurations model is exact and has few columns however
many nodes and jobs there are. Its counts are turned into places: patterns are given to the nodes of their class in
order, tasks to cards as the pattern was arranged, and jobs of a class share its tasks.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from placement import models
from placement.evaluate import Score, better, scores
from placement.exact.layouts.gangs import named
from placement.exact.layouts.layout import Layout
from placement.exact.milp import highs
from placement.exact.milp.arrays import current_point, load_solution, program
from placement.exact.milp.highs import Solved, Why
from placement.exact.small.class_start import set_start
from placement.instance import Assignment, Instance
from placement.models.core import Goal, Linear
from placement.models.patterns import TooMany, arranger
from placement.models.pools import leaf_table
from placement.solver import Bound, Limits, Progress, Report, Result, Stop, silent

EXACT_IN_DOUBLE = 2**53
"""Whole numbers up to this are exact in double precision."""

_STOPS = {Why.OPTIMAL: Stop.OPTIMAL, Why.GAP: Stop.GAP, Why.TIME: Stop.TIME, Why.NODES: Stop.WORK}


def solve_configurations(
    instance: Instance,
    objectives: tuple[str, ...],
    limits: Limits,
    seed: int = 0,
    start: Assignment | None = None,
    report: Report = silent,
) -> Result | None:
    """Solve an instance over its node patterns.

    Parameters
    ----------
    instance : Instance
    objectives : tuple of str
        In order; each is held while the next is improved.
    limits : Limits
    seed : int
    start : Assignment, optional
        A checked assignment; the answer is never worse.
    report : callable
        Told of every finished phase.

    Returns
    -------
    Result or None
        None if there are too many patterns, an objective that the model does not have, or the solver fails.
    """
    if any(objective not in models.CONFIGURATIONS.objectives for objective in objectives):
        return None
    return _Configurations(instance, objectives, limits, seed, start, report).run()


class Phases(ABC):
    """A small instance solved to the end over one formulation, phase by phase.

    Parameters
    ----------
    instance : Instance
    objectives : tuple of str
        Of the formulation, in order.
    limits : Limits
    seed : int
    start : Assignment, optional
        A checked assignment.
    report : callable
    """

    formulation: ClassVar[models.Formulation]

    def __init__(
        self,
        instance: Instance,
        objectives: tuple[str, ...],
        limits: Limits,
        seed: int,
        start: Assignment | None,
        report: Report,
    ) -> None:
        self.instance, self.objectives, self.limits, self.seed, self.report = instance, objectives, limits, seed, report
        self.best = Assignment.empty() if start is None else start
        self.scores = scores(instance, self.best, objectives)
        self.seconds: dict[str, float] = defaultdict(float)
        self.shared: dict[str, Any] = {}
        self.bounds: list[Bound] = []
        self.stops: list[Stop] = []

    def prepare(self, model: Any) -> None:  # noqa: B027 - there may be nothing to give
        """Give a model the best assignment to start from, if the formulation can say it."""

    @abstractmethod
    def place(self, model: Any) -> Assignment:
        """Return the assignment that the values of a model stand for."""

    def run(self) -> Result | None:
        """Return the best assignment; None if the model is too large or the solver fails."""
        for number, goal in enumerate(models.goals(self.instance, self.objectives)):
            if not self.limits.left:
                self.stops.append(Stop.TIME)
                break
            try:
                self._phase(number, goal)
            except TooMany:
                return None
            if Stop.FAILED in self.stops:
                return None
            self.report(Progress(goal.objective, self.best, tuple(self.bounds)))
        order = (Stop.TIME, Stop.WORK, Stop.GAP)
        stop = next((stop for stop in order if stop in self.stops), Stop.OPTIMAL)
        return Result(self.best, stop, tuple(self.bounds), dict(self.seconds))

    def _phase(self, number: int, goal: Goal) -> None:
        held = self.scores[:number]
        with self._timed("build"):
            model = models.build(self.instance, self.formulation, goal, held, self.shared)
        with self._timed("handover"):
            task = program(model)
            self.prepare(model)
            point = current_point(model)
        for options in ({}, {"presolve": "off"}):
            solved = highs.solve(
                task,
                gap=0.0 if number else self.limits.gap,
                time_limit=self.limits.left,
                nodes=self.limits.nodes,
                seed=self.seed,
                start=point if task.violation(point) is None else None,
                options=options,
            )
            self.seconds["handover"] += solved.handover
            self.seconds["solve"] += solved.seconds
            # the best plan so far is a point of the model, so who denies that there is one is wrong
            if solved.why not in (Why.INFEASIBLE, Why.INFEASIBLE_OR_UNBOUNDED):
                break
        if solved.x is not None:
            load_solution(model, solved.x)
            with self._timed("place"):
                found = self.place(model)
            after = scores(self.instance, found, self.objectives)
            if better(after[: number + 1], self.scores[: number + 1]):
                self.best, self.scores = found, after
        self._conclude(goal, model.parts.goals[goal], solved, number)

    def _conclude(self, goal: Goal, expression: Linear, solved: Solved, number: int) -> None:
        """Note the bound and why the phase stopped."""
        reached: Score = self.scores[number]
        proven = None
        if solved.bound is not None and self.instance.exact and _size(expression) < EXACT_IN_DOUBLE:
            proven = expression.rounded(solved.bound, goal.sense)
        value = None if proven is None else float(proven)
        earlier = tuple(float(score.value) for score in self.scores[:number])
        self.bounds.append(Bound(goal.objective, goal.priority, value, earlier))
        is_proven = proven is not None and goal.sense * (reached.value - proven) >= 0
        self.stops.append(Stop.OPTIMAL if is_proven else _STOPS.get(solved.why, Stop.FAILED))

    @contextmanager
    def _timed(self, activity: str) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[activity] += time.perf_counter() - began


class _Configurations(Phases):
    """The phases over node patterns."""

    formulation = models.CONFIGURATIONS

    def prepare(self, model: Any) -> None:
        set_start(model, self.instance, self.best)

    def place(self, model: Any) -> Assignment:
        return place(model, self.instance, self.seed)


def _size(expression: Linear) -> int:
    """Return the largest absolute value that a goal can take in its unit."""
    return abs(expression.constant) + sum(abs(c) * int(variable.ub) for c, variable in expression.terms)


def place(model: Any, instance: Instance, seed: int) -> Assignment:
    """Return the assignment that the values of a configurations model stand for.

    Parameters
    ----------
    model : pyomo.environ.ConcreteModel
        Built by `models.build` for `models.CONFIGURATIONS`, with a solution loaded.
    instance : Instance
    seed : int
    """
    fragmentation = "fragmentation" in model.parts.objectives
    layout = Layout(instance)
    for k, node_class in enumerate(instance.classes):
        nodes = iter(node_class.nodes.tolist())
        filler = arranger(instance, k, work=1 << 60)
        for p, counts in enumerate(model.patterns[k].counts):
            times = round(model.x[k, p].value)
            if not times or not any(counts):
                continue
            spots = filler.arrange(counts, fragmentation)
            for _ in range(times):
                node = next(nodes)
                for shape, cards in spots:
                    layout.place(shape, node, cards)
    started = leaf_table(instance)[:, 3] * 0
    for row, (number, leaf) in enumerate(leaf_table(instance)[:, :2].tolist()):
        started[row] = round(model.N[number, leaf].value)
    return named(layout, started, seed)
