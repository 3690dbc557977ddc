"""Large instances: bound, guide, places, search.

The pooled model's relaxation gives a bound, its whole counts say which tasks go to which pool. The counts are dealt out
to nodes and cards and repaired; then a large-neighbourhood search improves the places, objective by objective, until
value meets bound, the work allowed is done, or time is up.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from placement.evaluate import demand
from placement.exact.allot import allotments
from placement.exact.arrays import Floats
from placement.exact.fill import fill
from placement.exact.gangs import named
from placement.exact.guided import Guided
from placement.exact.layout import Layout
from placement.exact.master import Counts, Master, Timing
from placement.exact.polish import Polish
from placement.exact.repair import drop_beyond_limits, drop_excess, relieve
from placement.exact.residual import RESIDUAL
from placement.exact.search import Search
from placement.exact.spread import spread
from placement.exact.standing import Goals, Standing
from placement.instance import Assignment, Instance, Ints
from placement.models.pooled_linear import Target, power_of_two
from placement.models.pools import parts_of, pooling
from placement.solver import Bound, Limits, Progress, Report, Result, Stop
from placement.state import State

PATIENCE = 120
"""Neighbourhoods without an improvement after which the search goes on to the next objective."""
ROUNDS = 600
"""Most neighbourhoods for one objective."""
WORTH_TIGHTENING = 1e-4
"""Relative gap to the relaxation above which whole counts are asked for a better bound."""
GUIDE_GAP, LATER_GAP = 2e-5, 1e-3
"""Relative gaps that are good enough for counts that guide places: of the first target, and of the later ones."""
GUIDE_NODES = 100
BALANCE_NODES = 10
ROUGH_PAIRS = 3000
"""Pools times shapes of the first, rough pooling."""
LATER_TARGET = 0.02
"""Weight of each target relative to the one before, where the relaxation only guides."""
TASKS: Target = ("tasks", None)
TASK_WORTH = 5e-3
"""What a started task may cost in filling pools, in the unit of `placement.exact.master.STEPS`."""
REPORT_EVERY = 1.0
"""Seconds between reports of better assignments."""
REPORT_SHARE = 8.0
"""Seconds to work on for every second that a report took."""
RESERVE, RESERVE_PER_JOB = 0.05, 2e-5
"""Seconds kept for naming the answer."""


COUNTED = ("value", "tasks")
"""The objectives that counts of started tasks determine."""


def targets_of(instance: Instance, objectives: Sequence[str]) -> tuple[Target, ...]:
    """Return the leading objectives that counts of tasks determine, one target a priority for ``value``."""
    targets: list[Target] = []
    for objective in objectives:
        if objective == "value":
            targets += [("value", priority) for priority in instance.priorities]
        elif objective == "tasks":
            targets.append(("tasks", None))
        else:
            break
    return tuple(targets)


def rest_of(objectives: Sequence[str]) -> tuple[str, ...]:
    """Return the objectives on what nodes are left like that follow the leading ones directly."""
    others = itertools.dropwhile(COUNTED.__contains__, objectives)
    return tuple(itertools.takewhile(RESIDUAL.__contains__, others))


class Pipeline:
    """One run over a large instance.

    Parameters
    ----------
    instance : Instance
    targets : tuple of Target
        At least one.
    limits : Limits
    seed : int
    start : Assignment, optional
        A checked assignment; the answer is never worse.
    report : callable
    rest : tuple of str
        Objectives on what nodes are left like, to be improved after the targets.
    """

    def __init__(
        self,
        instance: Instance,
        targets: tuple[Target, ...],
        limits: Limits,
        seed: int,
        start: Assignment | None,
        report: Report,
        rest: tuple[str, ...] = (),
    ) -> None:
        self.rest = rest
        self.instance, self.targets, self.seed, self.report = instance, targets, seed, report
        # the answer has to be named and sent in time, too
        spare = min(0.1 * limits.left, RESERVE + RESERVE_PER_JOB * instance.jobs) if limits.left < math.inf else 0.0
        self.limits = replace(limits, deadline=limits.deadline - spare)
        self.timing = Timing()
        self.goals = Goals(instance, targets)
        self.units = {t: float(instance.value_unit) if t[0] == "value" else 1.0 for t in targets}
        self.standing = Standing.of_assignment(self.goals, Assignment.empty() if start is None else start)
        self.known: list[list[tuple[tuple[int, ...], int]]] = [[] for _ in targets]
        """For each target, the earlier values that were held, and the bound found."""
        self.stop = Stop.WORK
        self._next_report = 0.0

    def run(self) -> Result:
        """Return the best assignment found, with a bound for every target that has one."""
        began = time.perf_counter()
        state = State(self.instance)
        rough = parts_of(state, ROUGH_PAIRS)
        fine = rough
        self.timing.add("build", time.perf_counter() - began)
        masters = [self._master(state, rough)]
        guided = False
        for focus in range(len(self.targets)):
            self._relax(masters[0], focus)
            if not focus and not self._done(focus):
                self._sketch(masters[0], rough)
            if self._done(focus):
                continue
            if fine is rough:
                fine = parts_of(state)
                if len(fine) > len(rough):
                    masters.append(self._master(state, fine))
            if len(masters) > 1:
                self._relax(masters[-1], focus)
            # whole counts are dealt out to nodes that are alike; merged pools have none
            if len(fine) == len(self.instance.classes):
                if not guided and not self._done(focus):
                    self._guide(masters[-1], fine, focus)
                    guided = True
                self._tighten(masters[-1], focus)
            self._search(focus, self._idle_price(masters[-1], fine if len(masters) > 1 else rough))
        if self.rest:
            self._polish()
        return Result(
            assignment=self._named(),
            stop=self._why(),
            bounds=self._bounds(),
            seconds=dict(self.timing.seconds),
        )

    def _master(self, state: State, parts: list[tuple[Ints, Ints]]) -> Master:
        began = time.perf_counter()
        view = pooling(state, parts)
        self.timing.add("build", time.perf_counter() - began)
        return Master(view, self.seed, self.timing)

    # --- bounds --------------------------------------------------------------------------------------------------

    def _relax(self, master: Master, focus: int) -> None:
        """Bound a target by the relaxation, given what the standing has of the earlier ones."""
        reached = self.standing.ranks[:focus]
        held = dict(zip(self.targets, reached, strict=False))
        limits = self._share(0.5)
        for bound in master.bounds(self.targets[focus], held, limits):
            self.known[focus].append((reached, bound))
        self._note(limits.left > 0)
        self.report(Progress(f"bound on {self.targets[focus][0]}", None, self._bounds()))

    def _tighten(self, master: Master, focus: int) -> None:
        """Bound a target by whole counts, where the relaxation leaves a gap that is worth it."""
        bound, value = self._bound(focus), self.standing.ranks[focus]
        if self._done(focus) or bound is None or bound - value < WORTH_TIGHTENING * abs(value):
            return
        reached = self.standing.ranks[:focus]
        found, in_time = master.whole_bound(
            self.targets[focus],
            dict(zip(self.targets, reached, strict=False)),
            gap=max(GUIDE_GAP, self.limits.gap / 4),
            nodes=self.limits.nodes or GUIDE_NODES,
            time_limit=self._share(0.2).left,
        )
        self._note(in_time)
        if found is not None:
            self.known[focus].append((reached, found))
            self.report(Progress(f"bound on {self.targets[focus][0]}", None, self._bounds()))

    def _bound(self, focus: int) -> int | None:
        """Return the best bound on a target that holds for plans with at least the standing's earlier values."""
        reached = self.standing.ranks[:focus]
        valid = [
            bound
            for held, bound in self.known[focus]
            if all(have >= need for have, need in zip(reached, held, strict=True))
        ]
        return min(valid, default=None)

    def _bounds(self) -> tuple[Bound, ...]:
        """Return the bounds known, in the objectives' own units; there is none for the rest."""
        found = []
        for focus, target in enumerate(self.targets):
            bound = self._bound(focus)
            value = bound * self.units[target] if bound is not None and self.instance.exact else None
            reached = zip(self.standing.ranks[:focus], self.targets, strict=False)
            found.append(Bound(target[0], target[1], value, tuple(r * self.units[t] for r, t in reached)))
        return tuple(found)

    def _done(self, focus: int) -> bool:
        """Return whether the value of a target is as near its bound as was asked for."""
        bound, value = self._bound(focus), self.standing.ranks[focus]
        allowed = self.limits.gap * abs(value) if not focus else 0
        return bound is not None and bound - value <= allowed

    def _why(self) -> Stop:
        if self.rest:
            return self.stop
        if all(self._bound(focus) == value for focus, value in enumerate(self.standing.ranks)):
            return Stop.OPTIMAL
        if all(self._done(focus) for focus in range(len(self.targets))):
            return Stop.GAP
        return self.stop

    # --- places --------------------------------------------------------------------------------------------------

    def _sketch(self, master: Master, parts: list[tuple[Ints, Ints]]) -> None:
        """Pack the pools with what the relaxation allots them."""
        weights: dict[Target, float] = {}
        for number, target in enumerate(self.targets):
            weights[target] = power_of_two(self.goals.worth[number].tolist()) * LATER_TARGET**number
        limits = self._share(0.6)
        room = master.thrifty_room(weights, limits)
        if room is None:
            return
        began = time.perf_counter()
        pools = [self._members(nodes) for nodes, _ in parts]
        allotted = allotments(master.view, room, demand(self.instance))
        guided = Guided(self.goals, pools, allotted, self._worth(), limits, self.seed)

        def propose(standing: Standing) -> bool:
            if standing.ranks > self.standing.ranks:
                self.standing = Standing(self.goals, standing.layout.copy(), standing.started.copy())
                self._tell("packed")
            return not self._done(0)

        guided.run(propose)
        self._note(limits.left > 0)
        self.timing.add("place", time.perf_counter() - began)

    def _members(self, nodes: Ints) -> Ints:
        """Return all nodes of the classes of some."""
        classes = self.instance.classes
        return np.sort(np.concatenate([classes[self.instance.node_class[node]].nodes for node in nodes.tolist()]))

    def _guide(self, master: Master, parts: list[tuple[Ints, Ints]], first: int) -> None:
        """Find whole counts, best for the targets from the first one on in order, and their places."""
        counts: Counts | None = None
        held = dict(zip(self.targets[:first], self.standing.ranks, strict=False))
        for focus, target in enumerate(self.targets[first:], first):
            bound = self._bound(focus) if focus == first else self._relaxed(master, focus, held)
            found = self._counts(master, focus, held, counts, near=True)
            value = -1 if found is None else int(self.goals.worth[focus] @ found.started)
            enough = GUIDE_GAP if focus == first else LATER_GAP
            if bound is None or bound - value > enough * abs(bound):
                found = self._counts(master, focus, held, found or counts, near=False) or found
            if found is None:
                break
            counts = found
            held[target] = int(self.goals.worth[focus] @ counts.started)
        if counts is None:
            return
        self._place(counts, master, parts, 0.02)
        # full pools cannot be dealt out; where even balanced ones cannot, the first target goes before the others
        for keep, weights, most in ((len(self.targets), {}, 0.1), (first + 1, {TASKS: TASK_WORTH}, 1.0)):
            kept = dict(itertools.islice(held.items(), keep))
            if self.standing.ranks[:keep] >= tuple(kept.values()) or not self.limits.left:
                break
            even = master.balanced(weights, kept, counts, nodes=BALANCE_NODES, time_limit=self._share(0.35).left)
            self._note(even.in_time if even is not None else self.limits.left > 0)
            if even is not None:
                self._place(even, master, parts, most)

    def _counts(
        self, master: Master, focus: int, held: Mapping[Target, int], start: Counts | None, near: bool
    ) -> Counts | None:
        """Return whole counts, best for one target; with `near` only among those near the relaxation."""
        started = self.standing.started if start is None else start.started
        # nothing but the target: a second objective beside it costs the solver its best heuristics
        found = master.counts(
            {self.targets[focus]: power_of_two(self.goals.worth[focus].tolist())},
            held,
            gap=max(GUIDE_GAP, self.limits.gap / 2),
            nodes=self.limits.nodes or GUIDE_NODES,
            time_limit=self._share(0.2 if near else 0.35).left,
            start=start,
            fixed=self._settled(focus, started),
            near=near,
        )
        self._note(found.in_time if found is not None else self.limits.left > 0)
        return found

    def _relaxed(self, master: Master, focus: int, held: Mapping[Target, int]) -> int | None:
        """Solve the relaxation of a target beside what whole counts have of the earlier ones; return its bound."""
        bound = None
        for bound in master.bounds(self.targets[focus], held, self._share(0.2)):
            self.known[focus].append((tuple(held.values()), bound))
        return bound

    def _settled(self, focus: int, started: Ints) -> Ints:
        """Return the started tasks of jobs whose priority has had its turn; -1 for the others.

        Their value could be kept by a row instead, but branch and bound gets lost in rows of that kind.
        """
        had_their_turn = {priority for _, priority in self.targets[:focus] if priority is not None}
        if self.targets[focus][0] != "value":
            had_their_turn = set()
        priorities = np.array([c.priority for c in self.instance.job_classes], dtype=np.int64)
        settled = np.isin(priorities[self.goals.leaves[:, 0]], list(had_their_turn))
        return np.where(settled, started, -1)

    def _note(self, in_time: bool) -> None:
        if not in_time:
            self.stop = Stop.TIME

    def _place(self, counts: Counts, master: Master, parts: list[tuple[Ints, Ints]], most_over_full: float) -> None:
        """Deal whole counts out; the standing becomes the result if that is better.

        Where more than a share of the nodes comes out over-full, exchanges would take long and not suffice.
        """
        began = time.perf_counter()
        instance = self.instance
        members = [self._members(nodes) for nodes, _ in parts]
        layout = Layout(instance)
        spread(layout, master.view, counts, members)
        waiting = demand(instance) - layout.count
        if len(layout.over_full()) <= most_over_full * instance.nodes:
            relieve(layout, waiting, self._share(0.3))
        worth = self._worth()
        waiting += drop_excess(layout, worth)
        waiting += drop_beyond_limits(layout, worth)
        fill(layout, waiting, worth)
        self._propose(layout)
        self.timing.add("place", time.perf_counter() - began)

    def _propose(self, layout: Layout) -> None:
        """Take a layout as standing if it is better."""
        proposed = Standing.of_layout(self.goals, layout, self.seed)
        legal = (proposed.layout.state.free >= 0).all() and (proposed.layout.state.limits >= 0).all()
        if legal and proposed.ranks > self.standing.ranks:
            self.standing = proposed
            self._tell("placed")

    def _worth(self) -> Floats:
        """Return an average worth of a task of each shape, earlier targets far before later ones."""
        times = self.goals.by_shape(self.goals.leaves[:, 3])
        worth = np.zeros(len(times))
        for number, value in enumerate(self.goals.worth):
            mean = self.goals.by_shape(value * self.goals.leaves[:, 3]) / np.maximum(times, 1)
            worth += mean / max(1.0, float(mean.max(initial=1.0))) * 1e-3**number
        return worth

    # --- search --------------------------------------------------------------------------------------------------

    def _idle_price(self, master: Master, parts: list[tuple[Ints, Ints]]) -> Floats:
        """Return by node class what its idle cards may be worth at the relaxation's prices."""
        price = np.zeros(len(self.instance.classes))
        for (nodes, _), worth in zip(parts, master.idle_price().tolist(), strict=True):
            price[self.instance.node_class[nodes]] = worth
        return price

    def _search(self, focus: int, price: Floats) -> None:
        last = focus == len(self.targets) - 1
        limits = self.limits if last and not self.rest else self._share(0.7)
        search = Search(self.standing, focus, limits, self.seed + focus, self.timing, price)
        idle = 0
        for _ in range(ROUNDS):
            if idle >= PATIENCE or self._done(focus):
                break
            if limits.left <= 0:
                self.stop = Stop.TIME
                break
            if search.round():
                idle = 0
                self._tell("search")
            else:
                idle += 1
            if search.bound is not None:
                self.known[focus].append((self.standing.ranks[:focus], search.bound))
            if search.exhausted:
                break

    def _polish(self) -> None:
        """Improve what the nodes are left like; nothing is proven about it."""
        began = time.perf_counter()
        layout = self.standing.layout
        if not Polish(layout, self.rest, self.limits, self.seed).run():
            self.stop = Stop.TIME
        self.timing.add("place", time.perf_counter() - began)

    def _share(self, share: float) -> Limits:
        """Return limits that end when a share of the time left is over."""
        if self.limits.deadline == math.inf:
            return self.limits
        return replace(self.limits, deadline=time.monotonic() + share * self.limits.left)

    # --- telling -------------------------------------------------------------------------------------------------

    def _named(self) -> Assignment:
        return named(self.standing.layout, self.standing.started, self.seed)

    def _tell(self, phase: str) -> None:
        began = time.monotonic()
        if began >= self._next_report:
            self.report(Progress(phase, self._named(), self._bounds()))
            now = time.monotonic()
            # naming a large answer takes long, and only the last one counts
            self._next_report = now + max(REPORT_EVERY, REPORT_SHARE * (now - began))
