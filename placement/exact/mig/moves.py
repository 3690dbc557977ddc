"""MIG cards on which some running instances may move: which leave, where they go, and what starts in their place."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice
from typing import Any

import numpy as np

from placement.evaluate import demand
from placement.exact.layouts.gangs import named, startable
from placement.exact.layouts.standing import prune
from placement.exact.mig.places import Spot, binding, hand_out, items_of, kind_of, only, spots_of
from placement.exact.mig.settle import Mover, Settling, at_home
from placement.exact.milp import highs
from placement.exact.milp.arrays import program
from placement.exact.objectives.targets import targets_of
from placement.exact.pools.master import resolvable
from placement.instance import Assignment, Instance, Ints
from placement.mig.runs import Run, runs_of
from placement.models import mig, mig_moves
from placement.models.pooled_linear import power_of_two
from placement.models.pools import pooling
from placement.solver import Limits
from placement.state import State

NODES = 5000
"""Most branch-and-bound nodes where none were asked for."""


@dataclass(frozen=True, slots=True)
class Moved:
    """What was found.

    Attributes
    ----------
    places : list of (int, int)
        Card and slot of each mover.
    assignment : Assignment
        The tasks that start.
    bound : float or None
        On worth less cost, in the instance's unit of value.
    in_time : bool
        Whether the search ended by itself.
    short : bool
        Whether less was placed than was counted, since hosts or domains lack something.
    """

    places: list[tuple[int, int]]
    assignment: Assignment
    bound: float | None
    in_time: bool
    short: bool


Home = tuple[int, int, int, float]
"""Profile, first slot, item and cost of an instance that may move."""

CardClass = tuple[int, bytes, tuple[Home, ...], int]
"""What cards have in common: state without movers, admitted items, movers, and the host or -1."""

Runs = tuple[tuple[int, int], ...]
"""Kinds of free runs, and how many of each."""


def counted(instance: Instance) -> list[int]:
    """Return the job classes that ask for MIG instances alone and say nothing of where these lie to one another."""
    return [
        number
        for number, one in enumerate(instance.job_classes)
        if not one.tied and all(instance.shapes[leaf.shape].profile >= 0 for leaf in one.leaves)
    ]


class MovingCards:
    """One search.

    Parameters
    ----------
    instance : Instance
        In which the movers wait like other jobs.
    movers : sequence of Mover
    most_moves : int, optional
    limits : Limits
    seed : int
    by_host : bool
        Whether to tell cards apart by their hosts and look at what these and their domains have; for few cards.
    goal : {"value", "tasks"}
        What counts: the worth of what starts, or how many tasks do. For tasks, costs of moving are in tasks.
    """

    def __init__(
        self,
        instance: Instance,
        movers: Sequence[Mover],
        most_moves: int | None,
        limits: Limits,
        seed: int,
        by_host: bool = False,
        goal: str = "value",
    ) -> None:
        assert instance.slots is not None
        self.instance, self.movers, self.most_moves = instance, movers, most_moves
        self.slots, self.limits, self.seed, self.by_host = instance.slots, limits, seed, by_host
        self.items, self.admitted = items_of(instance, at_home(instance, movers))
        if by_host:
            self.admitted = self.admitted.repeat([len(shapes) for _, shapes in self.items], axis=0)
            self.items = [(profile, [shape]) for profile, shapes in self.items for shape in shapes]
        self.item_of_shape = {shape: item for item, (_, shapes) in enumerate(self.items) for shape in shapes}
        self.fresh = only(instance, counted(instance), [mover.job for mover in movers])
        self.view = pooling(State(self.fresh), [], elsewhere=demand(self.fresh))
        self.leaves = self.view.leaves
        self.goals = ("value", "tasks") if goal == "value" else ("tasks", "value")
        self.worth: Ints = self.leaves[:, 4] if goal == "value" else np.ones_like(self.leaves[:, 4])
        self.most_worth = int(self.leaves[:, 3] @ self.worth)
        self.kinds: list[mig.Kind] = []
        self.host_of_kind: list[int] = []
        self._kind_of: dict[tuple[Run, int], int] = {}
        self._runs_of: dict[tuple[int, bytes, int], Runs] = {}
        self.homes: dict[int, list[int]] = defaultdict(list)
        for number, mover in enumerate(movers):
            self.homes[mover.node].append(number)
        self.cards = self._cards()
        self.options = [self._options(*key) for key in self.cards]

    def _cards(self) -> dict[CardClass, list[int]]:
        """Return the cards that are alike."""
        found: dict[CardClass, list[int]] = defaultdict(list)
        for number, one in enumerate(self.instance.classes):
            admits = self.admitted[:, number].tobytes()
            for node in one.nodes.tolist() if one.slots >= 0 else ():
                homes = tuple(sorted(map(self._home, self.homes.get(node, ()))))
                found[one.slots, admits, homes, int(self.instance.host[node]) if self.by_host else -1].append(node)
        return found

    def _home(self, number: int) -> Home:
        mover = self.movers[number]
        item = self.item_of_shape[mover.shape]
        return self.items[item][0], mover.start, item, mover.cost

    def _options(
        self, state: int, admits: bytes, homes: tuple[Home, ...], host: int
    ) -> dict[mig_moves.Option, tuple[Home, ...]]:
        """Return what may become of a card, with the movers that stay: first all of them; of like options the first.

        Left out is what moves too many or costs more than all that waits is worth, and where hosts are not looked at
        what moves more than another for the same runs.
        """
        found: dict[mig_moves.Option, tuple[Home, ...]] = {}
        stays: dict[Runs, list[set[Home]]] = defaultdict(list)
        most = len(homes) if self.most_moves is None else self.most_moves
        for size in range(len(homes), max(0, len(homes) - most) - 1, -1):
            for kept in combinations(homes, size):
                left = [one for one in homes if one not in kept]
                cost = math.fsum(cost for *_, cost in left)
                if cost > self.most_worth:
                    continue
                after = state
                for p, start, _, _ in kept:
                    after = int(self.slots.after[after, p, start])
                runs = self._runs(after, admits, host)
                if host < 0 and any(others.issuperset(kept) for others in stays[runs]):
                    continue
                stays[runs].append(set(kept))
                leaving = tuple(sorted(Counter(item for _, _, item, _ in left).items()))
                found.setdefault(mig_moves.Option(runs, leaving, cost), kept)
        return found

    def _runs(self, state: int, admits: bytes, host: int) -> Runs:
        """Return the kinds of free runs of a card, and how many of each."""
        key = state, admits, host
        if key not in self._runs_of:
            counts = Counter(self._kind(run, host) for run in runs_of(self.slots, state, admits))
            self._runs_of[key] = tuple(sorted(counts.items()))
        return self._runs_of[key]

    def _kind(self, run: Run, host: int) -> int:
        number = self._kind_of.setdefault((run, host), len(self.kinds))
        if number == len(self.kinds):
            self.host_of_kind.append(host)
            self.kinds.append(kind_of(self.slots, self.items, run, 0))
        return number

    # --- solving ---------------------------------------------------------------------------------------------

    def model(self) -> tuple[Any, float]:
        """Return the model, and by what worths and costs are multiplied in it."""
        worth = self.worth.astype(np.float64)
        scale = power_of_two([*worth.tolist(), *self._costs()])
        classes = [
            (len(nodes), [_scaled(option, scale) for option in options])
            for nodes, options in zip(self.cards.values(), self.options, strict=True)
        ]
        items = [self.item_of_shape[shape] for shape in self.leaves[:, 2].tolist()]
        scaled = (worth * scale).tolist()
        most, caps, hosts = self.most_moves, self._caps(), self._hosts() if self.by_host else None
        return mig_moves.build(self.view, items, scaled, self.kinds, classes, most, caps, hosts), scale

    def _hosts(self) -> mig_moves.Hosts:
        """Return what hosts and domains have: for movers that are at home there, at least what these take."""
        free, home = self._free_and_home()
        left = (np.maximum(free, home) - home).T.tolist()
        of_class = [host for *_, host in self.cards]
        asked = [self.instance.shapes[shapes[0]].demand for _, shapes in self.items]
        found = [
            mig_moves.Amount((host,), each, there[host])
            for host in dict.fromkeys(of_class)
            for each, there in zip(zip(*asked, strict=True), left, strict=False)
        ]
        return mig_moves.Hosts(of_class, self.host_of_kind, found + self._domains())

    def _domains(self) -> list[mig_moves.Amount]:
        """Return what is left of caps in which some cards count and others do not."""
        state, shape_of = State(self.fresh), [shapes[0] for _, shapes in self.items]
        found = []
        for row, limit in enumerate(state.limits.tolist()):
            hosts = {host for (*_, host), (card, *_) in self.cards.items() if row in self._limits_of(card)}
            if not hosts or len(hosts) == len({host for *_, host in self.cards}):
                continue
            home = sum(state.limit_use(one.shape, row) for one in self.movers if row in self._limits_of(one.node))
            asked = [state.limit_use(shape, row) for shape in shape_of]
            found.append(mig_moves.Amount(hosts, asked, max(0, limit - home)))
        return found

    def _limits_of(self, node: int) -> tuple[int, ...]:
        return self.fresh.classes[int(self.fresh.node_class[node])].limits

    def _free_and_home(self) -> tuple[Ints, Ints]:
        """Return what hosts have free without movers, and what movers that are at home there take."""
        state = State(self.fresh)
        home = np.zeros_like(state.free)
        for mover in self.movers:
            home[self.instance.host[mover.node]] += state.demand[mover.shape]
        return state.free, home

    def _caps(self) -> list[tuple[list[int], int]]:
        """Return what of all hosts together, and of caps that all cards count in, could run short of.

        What is on a host is no more than it has free, or than movers take that are at home there; and all movers run
        somewhere.
        """
        instance, state = self.fresh, State(self.fresh)
        inside = [set(one.limits) for one in instance.classes if one.slots >= 0]
        rows = sorted(set.intersection(*inside)) if inside else []
        cards = np.flatnonzero(np.array([one.slots >= 0 for one in instance.classes])[instance.node_class])
        hosts = np.unique(instance.hosts_of(cards))
        free, home = self._free_and_home()
        there = [sum(column) for column in (np.maximum(free, home) - home)[hosts].T.tolist()]
        uses = list(state.demand.T.tolist())
        for row in rows:
            uses.append([state.limit_use(shape, row) for shape in range(len(instance.shapes))])
            there.append(max(0, int(state.limits[row]) - sum(uses[-1][mover.shape] for mover in self.movers)))
        return binding(self.leaves, uses, there)

    def _costs(self) -> list[float]:
        return [option.cost for options in self.options for option in options]

    def run(self) -> Moved:
        """Return the best that was found; at worst nothing moves and nothing starts."""
        model, scale = self.model()
        solved = highs.solve(
            program(model),
            gap=self.limits.gap,
            time_limit=self.limits.left,
            nodes=self.limits.nodes or NODES,
            seed=self.seed,
        )
        worths = self.worth.tolist()
        # whole cards count what they could hold as taken from their hosts
        told_apart = not (self.by_host and model.x_of) and resolvable(
            [*worths, max([*worths, *self._costs()], default=0)]
        )
        bound = None
        if solved.bound is not None and math.isfinite(solved.bound) and told_apart:
            bound = solved.bound / scale
        values = self._standstill(model) if solved.x is None else np.round(solved.x).astype(np.int64).tolist()
        places, assignment = self._placed(model, values)
        short = len(assignment) < sum(values[: len(self.leaves)]) or solved.x is None
        return Moved(places, assignment, bound, solved.why is not highs.Why.TIME, short)

    def _standstill(self, model: Any) -> list[int]:
        """Return the values of the answer in which nothing moves and nothing starts."""
        stays = [
            0 if number else len(nodes)
            for nodes, options in zip(self.cards.values(), self.options, strict=True)
            for number in range(len(options))
        ]
        return [0] * len(self.leaves) + stays + [0] * (len(model.y_of) + len(model.x_of) + len(model.w_of))

    def _placed(self, model: Any, values: list[int]) -> tuple[list[Spot], Assignment]:
        """Return where movers are and what starts."""
        leaves = len(self.leaves)
        nodes, leaving = self._chosen(values[leaves : leaves + len(model.z_of)])
        rest = [*values[:leaves], *values[leaves + len(model.z_of) :]]
        spots = spots_of(self.slots, self.items, self.kinds, nodes, mig.counts(model, self.kinds, rest))
        settling = Settling(self.fresh, self.movers, self.items)
        settling.settle(leaving, spots)
        layout = settling.layout
        started = np.array(values[:leaves], dtype=np.int64)
        wanted = np.bincount(self.leaves[:, 2], started, minlength=len(self.instance.shapes)).astype(np.int64)
        for item, (_, shapes) in enumerate(self.items):
            hand_out(layout, [(shape, int(wanted[shape])) for shape in shapes], settling.left.get(item, []))
        started = startable(layout, targets_of(self.fresh, self.goals), self.seed)
        prune(layout, started)
        settling.return_home()
        return settling.places, named(layout, started, self.seed)

    def _chosen(self, values: list[int]) -> tuple[list[list[int]], set[int]]:
        """Return the cards of the runs of each kind, and the movers that leave, given how often options are taken."""
        nodes: list[list[int]] = [[] for _ in self.kinds]
        leaving: set[int] = set()
        given = iter(values)
        for cards, options in zip(self.cards.values(), self.options, strict=True):
            left = iter(cards)
            for option, kept in options.items():
                for node in islice(left, next(given)):
                    for kind, times in option.runs:
                        nodes[kind] += [node] * times
                    stays = Counter(kept)
                    for number in self.homes.get(node, ()):
                        home = self._home(number)
                        if stays[home]:
                            stays[home] -= 1
                        else:
                            leaving.add(number)
        return nodes, leaving


def _scaled(option: mig_moves.Option, scale: float) -> mig_moves.Option:
    return replace(option, cost=option.cost * scale)
