"""The ladder as a method: counts of tasks against blocks of cards, then places, which there always are.

Where cards alone bind and task sizes divide one another (`placement.ladder`), the model has a variable for each shape
and pool and a row for each size, however many nodes and tasks there are, and its whole points are the plans. So each
target is solved as it stands, and nothing has to be repaired or searched afterwards.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from placement import models
from placement.evaluate import Score
from placement.exact.ladder.places import Counts, placed
from placement.exact.layouts.layout import Layout
from placement.exact.layouts.standing import Goals, Standing
from placement.exact.ledger import Ledger
from placement.exact.milp import highs
from placement.exact.milp.arrays import Floats, load_solution, program
from placement.exact.neighbourhoods.tune import polish
from placement.exact.pools.master import resolvable
from placement.exact.small.classes import EXACT_IN_DOUBLE
from placement.exact.timing import Timing
from placement.instance import Ints
from placement.ladder import Pool
from placement.models.core import Goal, Linear
from placement.solver import Result

NODES = 5000
"""Branch-and-bound nodes for a target where none were asked for."""
PLACING, MOST_FOR_PLACING = 5e-6, 0.3
"""Seconds kept for placing and naming each wanted task, and the most of the time left that they may be."""


class Counted(Standing):
    """A standing known by its counts; places are made when they are asked for.

    Parameters
    ----------
    goals : Goals
    pools : tuple of Pool
    counts : mapping of (int, int) to int
        Tasks by shape and pool.
    started : int array (T,)
        Started tasks by row of `leaf_table`.
    """

    def __init__(self, goals: Goals, pools: tuple[Pool, ...], counts: Counts, started: Ints) -> None:
        self.goals, self.started = goals, started
        self.ranks = goals.ranks(started)
        self._pools, self._counts = pools, counts

    @cached_property
    def layout(self) -> Layout:  # type: ignore[override]
        """The places, by best fit."""
        return placed(self.goals.instance, self._pools, self._counts)


class Ladder:
    """One run over an instance that `placement.ladder.unsupported` has nothing against.

    Parameters
    ----------
    ledger : Ledger
    rest : tuple of str
        Objectives on what nodes are left like, to be improved after the targets.
    """

    def __init__(self, ledger: Ledger, rest: tuple[str, ...] = ()) -> None:
        self.ledger, self.rest = ledger, rest
        self.instance, self.targets, self.seed = ledger.instance, ledger.targets, ledger.seed
        self.timing = Timing()
        wanted = int(self.ledger.goals.leaves[:, 3].sum())
        self._spare = min(PLACING * wanted, MOST_FOR_PLACING * ledger.limits.left)
        self._shared: dict[str, Any] = {}
        self._point: Floats | None = None
        """The standing as a point of the models, whose columns are the same for all targets."""

    def run(self) -> Result:
        """Return the best assignment found, with a bound for every target that has one."""
        ledger = self.ledger
        for focus in range(len(self.targets)):
            ledger.note(self._left() > 0)
            if not self._left():
                break
            self._phase(focus)
        began = time.perf_counter()
        _ = ledger.standing.layout  # asking makes the places
        self.timing.add("place", time.perf_counter() - began)
        if not self.rest:
            return ledger.result(self.timing, proven=True)
        polish(ledger, self.rest, self.timing)
        note = f"the ladder counts blocks of cards, which proves nothing about {', '.join(self.rest)}"
        return replace(ledger.result(self.timing, proven=False), notes=(note,))

    def _phase(self, focus: int) -> None:
        """Bound a target by the relaxation, and solve it where that leaves a gap."""
        ledger = self.ledger
        began = time.perf_counter()
        goal = Goal(*self.targets[focus])
        model = models.build(self.instance, models.LADDER, goal, self._held(focus), self._shared)
        built = time.perf_counter()
        task = program(model)
        self.timing.add("build", built - began)
        self.timing.add("handover", time.perf_counter() - built)
        expression = model.parts.goals[goal]
        relaxed = highs.solve(task, relax=True, time_limit=self._left(), seed=self.seed)
        self._count(relaxed)
        self._prove(focus, expression, relaxed.bound)
        if ledger.done(focus):
            return
        point = self._point
        solved = highs.solve(
            task,
            gap=0.0 if focus else ledger.limits.gap,
            time_limit=self._left(),
            nodes=ledger.limits.nodes or NODES,
            seed=self.seed,
            start=point if point is not None and task.violation(point) is None else None,
        )
        self._count(solved)
        ledger.note(solved.why is not highs.Why.TIME)
        if resolvable(ledger.goals.worth[focus].tolist()):
            self._prove(focus, expression, solved.bound)
        last = focus == len(self.targets) - 1 and not self.rest
        if solved.x is not None and self._take(model, solved.x) and not last:
            began = time.perf_counter()
            ledger.tell(goal.objective)
            self.timing.add("place", time.perf_counter() - began)

    def _left(self) -> float:
        """Return the seconds left for solving: what is found is of no use before it has places."""
        left = self.ledger.limits.left
        return left if left == math.inf else max(0.0, left - self._spare)

    def _held(self, focus: int) -> list[Score]:
        """Return what the standing has of the targets before one."""
        return [
            Score(objective, priority, rank * self._unit(objective))
            for (objective, priority), rank in self.ledger.held(focus).items()
        ]

    def _unit(self, objective: str) -> Fraction:
        return self.instance.value_unit if objective == "value" else Fraction(1)

    def _prove(self, focus: int, expression: Linear, bound: float | None) -> None:
        """Note a bound on a goal's expression, unless double precision is too coarse for it."""
        wanted = self.ledger.goals.leaves[:, 3].tolist()
        worth = self.ledger.goals.worth[focus].tolist()
        most = sum(each * tasks for each, tasks in zip(worth, wanted, strict=True))
        if bound is None or not math.isfinite(bound) or most >= EXACT_IN_DOUBLE:
            return
        proven = expression.rounded(bound, 1) / self._unit(self.targets[focus][0])
        self.ledger.prove(focus, math.floor(proven))
        self.ledger.tell_bounds(f"bound on {self.targets[focus][0]}")

    def _take(self, model: Any, x: Floats) -> bool:
        """Take a point of the model as standing if it is better; return whether it is."""
        load_solution(model, x)
        goals = self.ledger.goals
        started = goals.leaves[:, 3] * 0
        for row, (number, leaf) in enumerate(goals.leaves[:, :2].tolist()):
            started[row] = model.N[number, leaf].value
        counts = {key: variable.value for key, variable in model.n.items() if variable.value}
        found = Counted(goals, model.pools, counts, started)
        if found.ranks <= self.ledger.standing.ranks:
            return False
        self.ledger.standing = found
        self._point = x
        return True

    def _count(self, solved: highs.Solved) -> None:
        self.timing.add("solve", solved.seconds)
        self.timing.add("handover", solved.handover)
