"""The cheapest victims that let one job start: counts say who, and what counts do not know of is asked and excluded.

The model of `placement.models.preemption` names tasks that leave; whether the job then has room is asked of
`placement.exact.preemption.landing`. If not, neither has it where fewer leave and more have to go on elsewhere, so all
of these are excluded at once (combinatorial Benders cuts, Codato and Fischetti, 2006), first with as many more leaving
as still do not help. Every goal is least when the model's own answer to it has room.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from placement.exact.milp import highs
from placement.exact.milp.arrays import Floats, Program, program, variables_of
from placement.exact.preemption.landing import Ground, Landing
from placement.instance import Ints
from placement.models.preemption import GOALS, Question, build

MOST_CUTS, NODES = 2000, 50_000
"""Most exclusions, and branch-and-bound nodes of a solve where no time limit is given."""
GROWTH = 60
"""Most questions in making one exclusion exclude more."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Who leaves.

    Attributes
    ----------
    left : dict of int to tuple of int
        Positions of the tasks that leave, by victim.
    moved : dict of int to tuple of int
        Those that go on elsewhere.
    stopped : tuple of int
        Victims that are stopped.
    restarted : tuple of int
        Those that cost something: stopped, or moved with more than they can do without.
    """

    left: dict[int, tuple[int, ...]]
    moved: dict[int, tuple[int, ...]]
    stopped: tuple[int, ...]
    restarted: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """What was found.

    Attributes
    ----------
    choice : Choice, optional
        Absent where no victims let the job start, as far as is known.
    landing : Landing, optional
        With it.
    bound : float, optional
        No victims that let the job start cost less; absent where there are none at all.
    proven : bool
        Whether the choice is the best, or that there is none is certain.
    in_time : bool
        Whether the search ended by itself.
    """

    choice: Choice | None
    landing: Landing | None
    bound: float | None
    proven: bool
    in_time: bool = True


class Search:
    """One search.

    Parameters
    ----------
    question : Question
    ground : Ground
        Its victims are those of the question, in the same order.
    """

    def __init__(self, question: Question, ground: Ground) -> None:
        self.question, self.ground = question, ground
        self.tasks = len(question.shape_of)
        self.cuts = 0
        self._program: Program | None = None
        self._goals: dict[str, Floats] = {}
        self._in_time = True

    def run(self) -> Found:
        """Return the cheapest victims."""
        everyone = {j: tuple(range(len(victim.tasks))) for j, victim in enumerate(self.question.victims)}
        # a limit that nobody who may leave counts in
        hopeless = any(cap.most < 0 and not cap.taken for cap in self.question.caps)
        if hopeless or self.ground.land(everyone, {}) is None:
            return Found(None, None, None, not self.ground.unsure)
        self._build()
        best: tuple[Choice, Landing] | None = None
        bound: float | None = 0.0
        for number, goal in enumerate(GOALS):
            found, least = self._least(goal)
            if number == 0:
                bound = least
            if found is None:
                break
            best = found
            self._keep(goal, found[0])
        if best is None:
            none = bound is None and self._in_time
            rest = None if none else self._enough(everyone)
            if rest is None:
                return Found(None, None, bound, none and not self.ground.unsure, self._in_time)
            return Found(*rest, bound, False, self._in_time)
        proven = number == len(GOALS) - 1 and found is not None and self._in_time and not self.ground.unsure
        return Found(*best, bound if not self.ground.unsure else 0.0, proven, self._in_time)

    # --- the model -----------------------------------------------------------------------------------------------

    def _build(self) -> None:
        model = build(self.question)
        self._program = program(model)
        column = {id(variable): number for number, variable in enumerate(variables_of(model))}
        for goal in GOALS:
            cost = np.zeros(len(self._program.cost))
            for coefficient, variable in model.goals[goal]:
                cost[column[id(variable)]] += coefficient
            self._goals[goal] = cost

    def _least(self, goal: str) -> tuple[tuple[Choice, Landing] | None, float | None]:
        """Return the choice that is best by a goal and has room, and a bound on the goal; None for no such choice."""
        assert self._program is not None
        bound = 0.0
        while True:
            asked = replace(self._program, cost=self._goals[goal])
            limits = self.ground.limits
            nodes = NODES if limits.deadline == math.inf else None
            solved = highs.solve(asked, time_limit=limits.left, nodes=nodes, seed=self.ground.seed)
            if solved.why is highs.Why.INFEASIBLE:
                return None, None
            if solved.bound is not None:
                bound = max(bound, solved.bound)
            best = solved.why is highs.Why.OPTIMAL
            self._in_time &= best
            if solved.x is None:
                return None, bound
            choice = self._choice(solved.x)
            landing = self.ground.land(choice.left, choice.moved)
            if landing is not None:
                return (choice, landing), bound
            if not best:
                return None, bound
            self._exclude(choice)
            if self.cuts >= MOST_CUTS or not self.ground.limits.left:
                self._in_time = False
                return None, bound

    def _choice(self, x: Floats) -> Choice:
        y, a = x[: self.tasks] > 0.5, x[self.tasks : 2 * self.tasks] > 0.5
        victims = len(self.question.victims)
        s = x[2 * self.tasks : 2 * self.tasks + victims] > 0.5
        d = x[2 * self.tasks + victims : 2 * self.tasks + 2 * victims] > 0.5
        left, moved = {}, {}
        for j, victim in enumerate(self.question.victims):
            gone = tuple(t - victim.tasks.start for t in victim.tasks if y[t])
            on = tuple(t - victim.tasks.start for t in victim.tasks if a[t])
            if gone:
                left[j] = gone
            if on:
                moved[j] = on
        stopped = tuple(j for j in left if s[j])
        return Choice(left, moved, stopped, tuple(j for j in left if d[j]))

    def _keep(self, goal: str, choice: Choice) -> None:
        """State that a goal stays as good as it is."""
        reached = self._worth(goal, choice)
        cost = self._goals[goal]
        columns = np.flatnonzero(cost)
        if len(columns):
            scale = max(1.0, float(np.abs(cost[columns]).max()) / 1024)
            self._add_row(columns, cost[columns] / scale, -np.inf, (reached + 0.5 * self._unit(goal)) / scale)

    def _unit(self, goal: str) -> float:
        """Return by how much a goal differs at least: its coefficients are whole."""
        return 0.0 if goal == "cost" and not all(victim.cost.is_integer() for victim in self.question.victims) else 1.0

    def _worth(self, goal: str, choice: Choice) -> float:
        victims = self.question.victims
        if goal == "cost":
            return sum(victims[j].cost for j in choice.restarted)
        if goal == "stopped":
            return len(choice.stopped)
        if goal == "touched":
            return len(choice.left)
        if goal == "tasks":
            return sum(map(len, choice.left.values()))
        return sum(victims[j].rank for j in choice.left)

    def _add_row(self, columns: Ints, values: Floats, lower: float, upper: float) -> None:
        old = self._program
        assert old is not None
        self._program = replace(
            old,
            start=np.append(old.start, old.start[-1] + len(columns)).astype(np.int32),
            index=np.concatenate([old.index, columns]).astype(np.int32),
            value=np.concatenate([old.value, values]),
            row_lower=np.append(old.row_lower, lower),
            row_upper=np.append(old.row_upper, upper),
            rows="r{}".format,
        )

    # --- what has no room ----------------------------------------------------------------------------------------

    def _exclude(self, choice: Choice) -> None:
        """Exclude a choice without room, and with it all that leave less and move more than one that has none."""
        self.cuts += 1
        left = {j: set(gone) for j, gone in choice.left.items()}
        moved = self._fewer(left, choice.moved)
        self._more(left, moved)
        stays = [
            t
            for j, victim in enumerate(self.question.victims)
            for t in victim.tasks
            if t - victim.tasks.start not in left.get(j, ())
        ]
        goes_on = [self.question.victims[j].tasks.start + place for j, places in moved.items() for place in places]
        columns = np.array([*stays, *(self.tasks + t for t in goes_on)], dtype=np.int64)
        values = np.concatenate([np.ones(len(stays)), -np.ones(len(goes_on))])
        self._add_row(columns, values, 1.0 - len(goes_on), np.inf)

    def _fewer(self, left: dict[int, set[int]], moved: dict[int, tuple[int, ...]]) -> dict[int, tuple[int, ...]]:
        """Return as few tasks that move as still leave no room."""
        if not moved or self.ground.land(left, {}) is None:
            return {}
        kept = dict(moved)
        for j in list(moved)[:GROWTH]:
            others = {other: places for other, places in kept.items() if other != j}
            if self.ground.land(left, others) is None:
                kept = others
        return kept

    def _more(self, left: dict[int, set[int]], moved: dict[int, tuple[int, ...]]) -> None:
        """Let as many more leave as still leave no room, by halves."""
        victims = self.question.victims
        whole = {j: set(range(len(victim.tasks))) for j, victim in enumerate(victims)}
        todo = [[j for j in range(len(victims)) if left.get(j, set()) != whole[j]]]
        asked = 0
        while todo and asked < GROWTH and self.ground.limits.left:
            some = todo.pop()
            if not some:
                continue
            asked += 1
            tried = {**left, **{j: whole[j] for j in some}}
            if self.ground.land(tried, moved) is None:
                left.update({j: whole[j] for j in some})
            elif len(some) > 1:
                todo += [some[len(some) // 2 :], some[: len(some) // 2]]

    def _enough(self, everyone: dict[int, tuple[int, ...]]) -> tuple[Choice, Landing] | None:
        """Return victims that may all be stopped and suffice, the dearest of them left alone as far as possible."""
        victims = self.question.victims
        chosen = [j for j in everyone if victims[j].may_stop]
        if self.question.caps or self.question.most_stopped is not None:
            return None
        landing = self.ground.land({j: everyone[j] for j in chosen}, {})
        # the dearest half of them first
        todo = [sorted(chosen, key=lambda j: victims[j].cost)] if landing is not None else []
        for _ in range(GROWTH):
            if not todo:
                break
            some = todo.pop()
            fewer = [j for j in chosen if j not in some]
            found = self.ground.land({j: everyone[j] for j in fewer}, {})
            if found is not None:
                chosen, landing = fewer, found
            elif len(some) > 1:
                todo += [some[: len(some) // 2], some[len(some) // 2 :]]
        if landing is None:
            return None
        left = {j: everyone[j] for j in chosen}
        return Choice(left, {}, tuple(chosen), tuple(chosen)), landing
