"""MIG instances as a method: counts of instances on free runs of slots, then cards, hosts and slots for them.

Where the number of MIG cards in use is the next objective after those that counts of tasks determine, it is one that
counts of instances determine, and the model bounds it.

However many cards there are, the model has the kinds of free runs; see `placement.models.mig`. Hosts are looked at when
the counts are placed: where CPU, memory or the cap of a domain is short, or tasks are tied to one another, some tasks
stay without a place, and what was found before stands if it is better. Then, if cards are not too many, another model
tells them apart by host.
"""

from __future__ import annotations

import math
import time
from collections import Counter, defaultdict
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from placement.evaluate import demand
from placement.exact.layouts.layout import Layout
from placement.exact.ledger import Ledger
from placement.exact.mig.moves import MovingCards, counted
from placement.exact.mig.places import binding, hand_out, items_of, kind_of, spots_of
from placement.exact.milp import highs
from placement.exact.milp.arrays import program
from placement.exact.pools.master import resolvable
from placement.exact.timing import Timing
from placement.mig.runs import Run, runs_of
from placement.models import mig
from placement.models.pooled_linear import Target, power_of_two
from placement.models.pools import pooling
from placement.solver import Bound, Result
from placement.state import State

NODES = 5000
"""Branch-and-bound nodes for a target where none were asked for."""
HOSTED, HOSTED_IN_TIME, BY_HOST_SHARE, BY_HOST_NODES = 200, 2000, 0.5, 500
"""Cards up to which hosts are told apart, without a clock and with one, the share of the time left that it gets, and
branch-and-bound nodes where none were asked for."""
TIDY_GAP = 0.01
"""Relative gap up to which few cards are looked for."""


class MigCards:
    """One run over an instance whose pending jobs all have tasks with MIG profiles.

    Parameters
    ----------
    ledger : Ledger
    few : bool
        Whether to use as few cards as can be, which is the objective after the targets.
    """

    def __init__(self, ledger: Ledger, few: bool = False) -> None:
        self.ledger, self.instance, self.few = ledger, ledger.instance, few
        self.timing = Timing()
        began = time.perf_counter()
        self.view = pooling(State(self.instance), [], elsewhere=demand(self.instance))
        self.item_of, self.admitted = items_of(self.instance)
        self.kinds, self.nodes = self._kinds()
        # counts that are as good can differ in how much they leave
        self.untidy = any(kind.fresh or any(place.loss for place in kind.run.places) for kind in self.kinds)
        self.found: mig.Counts | None = None
        self.ranks = ledger.standing.ranks
        self.bound: Bound | None = None
        self.timing.add("build", time.perf_counter() - began)

    def run(self) -> Result:
        """Return the best assignment found, with a bound for every target that has one."""
        ledger = self.ledger
        for focus in range(len(ledger.targets)):
            ledger.note(ledger.limits.left > 0)
            if not ledger.limits.left:
                break
            self._phase(focus)
        before = self.found
        if self.few and ledger.limits.left:
            self._fewest()
        if self.found is not None and ledger.limits.left and self.untidy:
            self._tidy()
        if self.found is not None:
            began = time.perf_counter()
            ledger.propose(self._placed(self.found), also_equal=True)
            if before is not None and ledger.standing.ranks < self.ranks:
                # on few cards hosts may be short that on others would not
                ledger.propose(self._placed(before))
            self.timing.add("place", time.perf_counter() - began)
            self._by_host()
        result = ledger.result(self.timing, proven=True)
        return result if self.bound is None else replace(result, bounds=(*result.bounds, self.bound))

    def _by_host(self) -> None:
        """Look at what each host and domain has, where less was placed than was counted and cards are few."""
        ledger = self.ledger
        most = HOSTED if ledger.limits.deadline == math.inf else HOSTED_IN_TIME
        goal = ledger.targets[0][0]
        one_goal = goal == "tasks" or len(self.instance.priorities) == 1
        every = len(counted(self.instance)) == len(self.instance.job_classes)
        short = ledger.standing.ranks[0] < self.ranks[0] and not ledger.done(0)
        if not (short and one_goal and every and self.instance.nodes - self.instance.hosts <= most):
            return
        limits = replace(ledger.share(BY_HOST_SHARE), nodes=ledger.limits.nodes or BY_HOST_NODES)
        moved = MovingCards(self.instance, (), None, limits, ledger.seed, by_host=True, goal=goal).run()
        ledger.note(moved.in_time)
        if moved.bound is not None:
            ledger.prove(0, math.floor(moved.bound + 1e-6))
        ledger.propose(Layout.of(self.instance, moved.assignment))

    def _kinds(self) -> tuple[list[mig.Kind], list[list[int]]]:
        """Return the kinds of free runs, and the cards of each run of each kind."""
        instance = self.instance
        assert instance.slots is not None
        of_run: dict[tuple[Run, bool], list[int]] = defaultdict(list)
        known: dict[tuple[int, bytes], list[list[int]]] = {}
        for number, one in enumerate(instance.classes):
            admits = self.admitted[:, number]
            if one.slots >= 0 and admits.any():
                key = one.slots, admits.tobytes()
                if key not in known:
                    card = instance.slots.cards[one.slots]
                    # where cards count, one must not be taken for as many as it has instances
                    whole = self.few and not card.bits and card.board.existing is not None
                    known[key] = [of_run[run, not card.bits] for run in runs_of(instance.slots, *key, whole)]
                cards = one.nodes.tolist()
                for there in known[key]:
                    there += cards
        kinds = [
            kind_of(instance.slots, self.item_of, run, len(nodes), fresh) for (run, fresh), nodes in of_run.items()
        ]
        return kinds, list(of_run.values())

    def _phase(self, focus: int) -> None:
        """Bound a target, and keep the counts that reach it; what reaches less than another answer is no use."""
        ledger, target = self.ledger, self.ledger.targets[focus]
        worth = ledger.goals.worth[focus].tolist()
        scale = power_of_two(worth)
        held = dict(zip(ledger.targets[:focus], self.ranks, strict=False))
        model, solved = self._solved({target: scale}, held, gap=0.0 if focus else ledger.limits.gap / 2)
        ledger.note(solved.why is not highs.Why.TIME)
        if solved.bound is not None and math.isfinite(solved.bound) and resolvable(worth):
            ledger.prove(focus, math.floor(solved.bound / scale + 1e-6), tuple(held.values()))
            ledger.tell_bounds(f"bound on {target[0]}")
        if solved.x is not None:
            found = mig.counts(model, self.kinds, np.round(solved.x).astype(np.int64).tolist())
            ranks = ledger.goals.ranks(np.array(found.started, dtype=np.int64))
            if ranks[: focus + 1] >= self.ranks[: focus + 1]:
                self.found, self.ranks = found, ranks

    def _fewest(self) -> None:
        """Bound how many cards are in use where tasks are as many as found, and keep counts that use so few."""
        ledger = self.ledger
        held = dict(zip(ledger.targets, self.ranks, strict=True))
        model, solved = self._solved({}, held, gap=0.0, tidy=True, loss=0.0)
        ledger.note(solved.why is not highs.Why.TIME)
        if solved.bound is not None and math.isfinite(solved.bound):
            least = self.instance.mig_cards + math.ceil(solved.bound - 1e-6)
            self.bound = ledger.beyond("mig_cards", least, self.ranks)
        self._take(model, solved)

    def _tidy(self) -> None:
        """Look for counts as good that use fewer of the cards on which nothing runs, and leave more room."""
        held = dict(zip(self.ledger.targets, self.ranks, strict=True))
        self._take(*self._solved({}, held, gap=TIDY_GAP, tidy=True))

    def _take(self, model: Any, solved: highs.Solved) -> None:
        """Keep counts that reach what was found before, where cards count with no more of them."""
        if solved.x is None:
            return
        found = mig.counts(model, self.kinds, np.round(solved.x).astype(np.int64).tolist())
        if self.few and self.found is not None and self._cards(found) > self._cards(self.found):
            return
        if self.ledger.goals.ranks(np.array(found.started, dtype=np.int64)) >= self.ranks:
            self.found = found

    def _cards(self, found: mig.Counts) -> int:
        """Return how many cards on which nothing runs counts use."""
        used = 0
        for kind, places, cards in zip(self.kinds, found.places, found.cards, strict=True):
            covers = Counter[int]()
            for (_, place), times in places.items():
                covers.update(dict.fromkeys(range(place.start, place.start + place.size), times))
            used += kind.fresh * (max(covers.values(), default=0) + cards.total())
        return used

    def model(self, weights: dict[Target, float], held: dict[Target, int], tidy: bool, loss: float = mig.LOSS) -> Any:
        """Return the model; see `placement.models.mig.build`."""
        items = [self.item_of_shape.get(shape, -1) for shape in self.view.leaves[:, 2].tolist()]
        return mig.build(self.view, items, self.kinds, weights, held, tidy, self.caps, loss)

    @cached_property
    def caps(self) -> list[tuple[list[int], int]]:
        """Return what all cards share and could run short of: amounts of all hosts, caps that all cards count in."""
        instance, state = self.instance, State(self.instance)
        admitted = np.flatnonzero(self.admitted.any(axis=0))
        nodes = np.flatnonzero(np.isin(instance.node_class, admitted))
        there = [sum(column) for column in state.free[np.unique(instance.hosts_of(nodes))].T.tolist()]
        uses = [[shape.demand[r] for shape in instance.shapes] for r in range(len(instance.resources))]
        inside = [set(instance.classes[number].limits) for number in admitted.tolist()]
        for row in sorted(set.intersection(*inside)) if inside else ():
            uses.append([state.limit_use(shape, row) for shape in range(len(instance.shapes))])
            there.append(int(state.limits[row]))
        # what other tasks of these jobs take may come from elsewhere
        mine = [shape in self.item_of_shape for shape in range(len(instance.shapes))]
        uses = [[each * counts for each, counts in zip(use, mine, strict=True)] for use in uses]
        return binding(self.view.leaves, uses, there)

    def _solved(
        self,
        weights: dict[Target, float],
        held: dict[Target, int],
        gap: float,
        tidy: bool = False,
        loss: float = mig.LOSS,
    ) -> tuple[Any, highs.Solved]:
        """Return a model and what the solver found for it."""
        began = time.perf_counter()
        model = self.model(weights, held, tidy, loss)
        built = time.perf_counter()
        task = program(model)
        self.timing.add("build", built - began)
        self.timing.add("handover", time.perf_counter() - built)
        ledger = self.ledger
        solved = highs.solve(
            task,
            gap=gap,
            time_limit=ledger.limits.left / 2 if tidy else ledger.limits.left,
            nodes=ledger.limits.nodes or NODES,
            seed=ledger.seed,
        )
        self.timing.add("solve", solved.seconds)
        self.timing.add("handover", solved.handover)
        return model, solved

    @cached_property
    def item_of_shape(self) -> dict[int, int]:
        """Return the item of each shape that takes an instance."""
        return {shape: item for item, (_, shapes) in enumerate(self.item_of) for shape in shapes}

    # --- places ----------------------------------------------------------------------------------------------

    def _placed(self, found: mig.Counts) -> Layout:
        """Return the tasks that counts say, on cards and slots; those whose host lacks something are left out."""
        assert self.instance.slots is not None
        spots = spots_of(self.instance.slots, self.item_of, self.kinds, self.nodes, found)
        wanted = np.bincount(
            self.view.leaves[:, 2], np.array(found.started, dtype=np.int64), minlength=len(self.instance.shapes)
        ).astype(np.int64)
        layout = Layout(self.instance)
        for item, (_, shapes) in enumerate(self.item_of):
            hand_out(layout, [(shape, int(wanted[shape])) for shape in shapes], spots[item])
        return layout
