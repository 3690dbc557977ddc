"""The best that any plan of a tiny snapshot can do, by trying all of them.

Written from what the snapshot's fields mean, with no code of the engine but its numbers (`placement.units`): no
instance, no state, no rule. All jobs are taken in turn, and all that is remembered of the past is what the cluster
looks like. Nodes that began alike and cards that look alike are interchangeable, so only one arrangement of each
kind is kept; of the ways to reach the same cluster the most valuable one is.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import NamedTuple

from brute_facts import (
    Card,
    Kind,
    added,
    amounts_of,
    capacity_of,
    card_allows,
    card_memory_of,
    cards_of,
    has_room,
    job_totals,
    leaf_groups,
    leaf_tasks,
    node_allows,
    plus,
    share_of,
    sorted_cards,
    take,
)
from brute_facts import close as close
from brute_ties import Name, is_tied, levels_wider, may_run, names_of, written_out
from brute_times import Lies, lies_on, states_times, weighted
from brute_zones import Load, Within, all_running, counted, hold, in_order, is_bound, sets_of, zones_of

from placement import units
from placement.snapshot import Job, Snapshot

NodeState = tuple[tuple[Fraction, ...], tuple[Card, ...], tuple[Load, ...]]
"""What new tasks use of each resource, the cards, sorted, and what new tasks take within which NUMA zones."""
State = tuple[NodeState, ...]
Best = dict[State, tuple[Fraction, ...]]


class Value(NamedTuple):
    """The best of one objective, or of one priority of it, in its own unit."""

    objective: str
    priority: int | None
    value: Fraction


Optimum = list[Value]

MOST_STATES = 300_000


class TooLarge(Exception):  # noqa: N818 - not an error of the snapshot
    """There are too many arrangements to try."""


def optimum(snapshot: Snapshot, objectives: Iterable[str] | None = None) -> Optimum:
    """Return the best value of each objective in order, each among the plans that are best in those before it.

    Parameters
    ----------
    snapshot : Snapshot
    objectives : iterable of str, optional
        Those of the snapshot's policy if absent.

    Returns
    -------
    list of Value
        ``value`` has one entry a priority, highest first; the others have priority None.

    Raises
    ------
    TooLarge
        If the snapshot is not tiny.
    """
    return _Search(snapshot, tuple(snapshot.policy.objectives if objectives is None else objectives)).run()


class _Search:
    def __init__(self, snapshot: Snapshot, objectives: tuple[str, ...]) -> None:
        self.snapshot = snapshot
        self.objectives = objectives
        self.pending = [job for job in snapshot.jobs if job.running is None for _ in range(job.count)]
        self.priorities = sorted({job.priority for job in self.pending}, reverse=True)
        extended = {name for job in snapshot.jobs for _, task, _ in leaf_tasks(job) for name in task.extended}
        self.resources = ["gpus", "cpu", "memory", "pods", *(f"extended {name}" for name in sorted(extended))]
        tasks = [task for job in self.pending for _, task, _ in leaf_tasks(job)]
        if any(task.nics for task in tasks):
            self.resources.append("nics")
        self.timed = any(map(states_times, self.pending)) and "run_time" in objectives
        self.zoned = any(map(is_bound, tasks)) or self.timed
        self._cluster()
        self._domains()

    def _cluster(self) -> None:
        """Expand the nodes and take off what running tasks use."""
        used: dict[str, dict[str, Fraction]] = defaultdict(lambda: defaultdict(Fraction))
        share: dict[tuple[str, int], Fraction] = defaultdict(Fraction)
        memory: dict[tuple[str, int], Fraction] = defaultdict(Fraction)
        busy: set[str] = set()
        within = all_running(self.snapshot) if self.zoned else {}
        for job in self.snapshot.jobs:
            tasks = {path: task for path, task, _ in leaf_tasks(job)}
            for place in job.running.tasks if job.running else ():
                task = tasks[place.group]
                busy.add(place.node)
                for name, amount in amounts_of(task).items():
                    used[place.node][name] += amount
                for card in place.gpus:
                    share[place.node, card] += share_of(task)
                    memory[place.node, card] += card_memory_of(task)
        rows = []
        for spec, node in enumerate(self.snapshot.nodes):
            for name in [node.name] if node.count == 1 else [f"{node.name}-{i}" for i in range(node.count)]:
                free = []
                for resource in self.resources:
                    have = capacity_of(node, resource)
                    free.append(None if have is None else max(Fraction(0), have - used[name][resource]))
                cards: list[Card] = []
                zones = zones_of(node) if self.zoned else None
                for index, (entry, gpu) in enumerate(cards_of(node)):
                    limit = None if gpu.memory is None else units.exact(gpu.memory)
                    left = None if limit is None else max(Fraction(0), limit - memory[name, index])
                    zone = 0 if zones is None else zones.of_card[index]
                    cards.append((entry, max(Fraction(0), 1 - share[name, index]), left, zone))
                alike = (spec, name in busy, tuple(free), sorted_cards(cards), in_order(within.get(name, ())))
                rows.append((*alike, dict(used[name]), name))
        order = sorted(range(len(rows)), key=lambda i: repr(rows[i][:5]))  # equal nodes side by side
        self.rows = [rows[i] for i in order]
        self.nodes = [self.snapshot.nodes[row[0]] for row in self.rows]
        self.busy = [row[1] for row in self.rows]
        self.free = [row[2] for row in self.rows]
        self.names = [row[6] for row in self.rows]
        keys = [(row[:5], row[6] if self.timed else "") for row in self.rows]
        self.groups = [list(g) for _, g in itertools.groupby(range(len(self.rows)), key=keys.__getitem__)]
        self.zones = [zones_of(node) if self.zoned else None for node in self.nodes]
        self.start: State = tuple((tuple(Fraction(0) for _ in self.resources), row[3], ()) for row in self.rows)

    def _domains(self) -> None:
        """Collect (nodes inside, resource, what is left) of every limit."""
        self.limits: list[tuple[set[int], int, Fraction]] = []
        for limit in self.snapshot.limits:
            inside = {
                i
                for i, node in enumerate(self.nodes)
                if limit.level == "cluster" or node.position.get(limit.level) == limit.domain
            }
            caps = {"gpus": limit.gpus, "cpu": limit.cpu, "memory": limit.memory}
            caps |= {f"extended {name}": quantity for name, quantity in limit.extended.items()}
            for name, quantity in caps.items():
                if quantity is not None and name in self.resources:
                    taken = sum((self.rows[i][5].get(name, Fraction(0)) for i in inside), Fraction(0))
                    left = max(Fraction(0), units.exact(quantity) - taken)
                    self.limits.append((inside, self.resources.index(name), left))

    def run(self) -> Optimum:
        keys = self._keys()
        frontier: Best = {self.start: tuple(Fraction(0) for _ in keys)}
        kinds_of = {id(job): self._kinds(job) for job in self.pending}
        # where tasks lie is tried task by task, so those jobs come first, while there is little to remember
        for job in sorted(self.pending, key=lambda job: not self._by_task(job)):
            place = self._with_tied_job if self._by_task(job) else self._with_job
            frontier = place(frontier, job, kinds_of[id(job)], keys)
        wanted = [
            (kind, count * copies)
            for job in self.pending
            for kind, (_, _, copies), count in zip(
                kinds_of[id(job)], leaf_tasks(job), [g.count for g in leaf_groups(job)], strict=True
            )
        ]
        best: tuple[Fraction, ...] | None = None
        for state, sums in frontier.items():
            rank = self._rank(state, dict(zip(keys, sums, strict=True)), wanted)
            if best is None or rank > best:
                best = rank
        assert best is not None
        names: list[tuple[str, int | None]] = []
        for objective in self.objectives:
            names += [("value", p) for p in self.priorities] if objective == "value" else [(objective, None)]
        signs = [-1 if name in ("locality", "run_time", "fragmentation", "nodes") else 1 for name, _ in names]
        return [Value(name, p, sign * value) for (name, p), sign, value in zip(names, signs, best, strict=True)]

    def _keys(self) -> list[tuple[str, int | None]]:
        """Return the objectives that add up task by task, in order."""
        keys: list[tuple[str, int | None]] = []
        for objective in self.objectives:
            if objective == "value":
                keys += [("value", p) for p in self.priorities]
            elif objective in ("tasks", "locality", "run_time"):
                keys.append((objective, None))
        return keys

    def _by_task(self, job: Job) -> bool:
        """Return whether it counts where each task of a job is."""
        return is_tied(job) or (self.timed and states_times(job))

    # --- one job ----------------------------------------------------------------------------------------------

    def _kinds(self, job: Job) -> list[Kind]:
        kinds = []
        leaves = list(leaf_tasks(job))
        groups = list(leaf_groups(job))
        counts = [group.count * copies for group, (_, _, copies) in zip(groups, leaves, strict=True)]
        milli = [1000 * task.gpus * share_of(task) for _, task, _ in leaves]
        total = sum((m * c for m, c in zip(milli, counts, strict=True)), Fraction(0))
        for (_, task, _), m in zip(leaves, milli, strict=True):
            if job.value is None:
                worth = job.weight * m
            elif total:
                worth = job.value * m / total
            else:
                worth = Fraction(job.value, sum(counts))
            amounts = amounts_of(task)
            kinds.append(
                Kind(
                    gpus=task.gpus,
                    share=share_of(task),
                    memory=card_memory_of(task),
                    demand=tuple(amounts.get(name, Fraction(0)) for name in self.resources),
                    worth=worth,
                    allowed=tuple(node_allows(job, task, node) for node in self.nodes),
                    cards=tuple(tuple(card_allows(job, task, gpu) for gpu in node.gpus) for node in self.nodes),
                    zones=tuple(tuple(sets_of(job, task, node)) if self.zoned else (None,) for node in self.nodes),
                    counted=counted(task),
                )
            )
        return kinds

    def _with_job(self, frontier: Best, job: Job, kinds: list[Kind], keys: list[tuple[str, int | None]]) -> Best:
        """Return every cluster that there can be after the job ran, with any number of tasks that it may run with."""
        totals = job_totals(job, len(kinds))
        level: dict[tuple[int, ...], Best] = {(): frontier}
        for number, kind in enumerate(kinds):
            add = added(job, kind, keys)
            following: dict[tuple[int, ...], Best] = {}
            for prefix, states in level.items():
                counts = {total[number] for total in totals if total[:number] == prefix}
                current = states
                for count in range(max(counts) + 1):
                    if count in counts:
                        _merge(following.setdefault((*prefix, count), {}), current.items())
                    current = self._one_more(current, kind, add) if count < max(counts) else {}
            level = following
        result: Best = {}
        for states in level.values():
            _merge(result, states.items())
        return result

    def _one_more(self, states: Best, kind: Kind, add: tuple[Fraction, ...]) -> Best:
        result: Best = {}
        for state, sums in states.items():
            more = plus(sums, add)
            _merge(result, ((placed, more) for placed in self._places(state, kind)))
        if len(result) > MOST_STATES:
            raise TooLarge(f"{len(result)} arrangements")
        return result

    def _places(self, state: State, kind: Kind) -> Iterator[State]:
        for group in self.groups:
            for node in {state[i]: i for i in group}.values():
                for after in self._onto(state, kind, node):
                    yield self._in_order((*state[:node], after, *state[node + 1 :]))

    def _onto(self, state: State, kind: Kind, node: int) -> Iterator[NodeState]:
        """Yield what a node can look like with one more task."""
        if not kind.allowed[node] or not self._within_limits(state, kind, node):
            return
        used, cards, loads = state[node]
        more = tuple(u + d for u, d in zip(used, kind.demand, strict=True))
        if any(f is not None and d and m > f for m, d, f in zip(more, kind.demand, self.free[node], strict=True)):
            return
        for within in kind.zones[node]:
            lies = self._within(node, loads, kind, within)
            if lies is not None:
                yield from ((more, left, lies) for left in take(cards, kind, kind.cards[node], within))

    def _within(self, node: int, loads: tuple[Load, ...], kind: Kind, within: Within | None) -> tuple[Load, ...] | None:
        """Return what lies within which zones of a node with one more task, or None where they do not hold it."""
        zones = self.zones[node]
        if zones is None or within is None:
            return loads
        both = in_order([*loads, (within, kind.counted)])
        return both if hold(zones, self.rows[node][4], both) else None

    def _in_order(self, state: State) -> State:
        """Return a cluster with interchangeable nodes in the one order that is kept."""
        ordered = list(state)
        for group in self.groups:
            for i, member in zip(group, sorted((state[i] for i in group), key=repr), strict=True):
                ordered[i] = member
        return tuple(ordered)

    # --- one job whose tasks are tied to one another ------------------------------------------------------------

    def _with_tied_job(self, frontier: Best, job: Job, kinds: list[Kind], keys: list[tuple[str, int | None]]) -> Best:
        """Return every cluster after the job, with each of its tasks on each node or on none."""
        paths = [path for path, _, _ in leaf_tasks(job)]
        groups = written_out(job)
        tasks = [(name, paths.index(name[0])) for name in names_of(groups)]
        result = dict(frontier)
        ways: list[tuple[State, tuple[Fraction, ...], dict[Name, Lies]]]
        ways = [(state, sums, {}) for state, sums in frontier.items()]
        for name, number in tasks:
            add = added(job, kinds[number], keys)
            ways += [
                (
                    (*state[:node], after, *state[node + 1 :]),
                    plus(sums, add),
                    {
                        **placed,
                        name: lies_on(
                            self.names[node], self.nodes[node], state[node][1], after[1], kinds[number].share
                        ),
                    },
                )
                for state, sums, placed in ways
                for node in range(len(state))
                for after in self._onto(state, kinds[number], node)
            ]
            if len(ways) > MOST_STATES:
                raise TooLarge(f"{len(ways)} placements of a job")
        for state, sums, placed in ways:
            places = {name: (lies.name, lies.node) for name, lies in placed.items()}
            if placed and may_run(job, groups, places, self.snapshot.topology):
                topology, nodes = self.snapshot.topology, dict(zip(self.names, self.nodes, strict=True))
                took = weighted(job, placed, topology, nodes)
                costs = {"locality": levels_wider(groups, places, topology), "run_time": took}
                cost = tuple(-costs.get(key[0], Fraction(0)) for key in keys)
                _merge(result, [(self._in_order(state), plus(sums, cost))])
        return result

    def _within_limits(self, state: State, kind: Kind, node: int) -> bool:
        for inside, resource, left in self.limits:
            if node in inside and kind.demand[resource]:
                used = sum((state[i][0][resource] for i in inside), Fraction(0))
                if used + kind.demand[resource] > left:
                    return False
        return True

    # --- what a cluster is worth --------------------------------------------------------------------------------

    def _rank(
        self, state: State, sums: dict[tuple[str, int | None], Fraction], wanted: list[tuple[Kind, int]]
    ) -> tuple[Fraction, ...]:
        rank: list[Fraction] = []
        for objective in self.objectives:
            if objective == "value":
                rank += [sums["value", p] for p in self.priorities]
            elif objective in ("tasks", "locality", "run_time"):
                rank.append(sums[objective, None])
            elif objective == "whole_nodes":
                rank.append(Fraction(sum(self._is_whole(i, state[i][1]) for i in range(len(state)))))
            elif objective == "nodes":
                pods = self.resources.index("pods")
                in_use = [self.busy[i] or state[i][0][pods] > 0 for i in range(len(state))]
                rank.append(-Fraction(sum(in_use)))
            else:
                total = sum(count for _, count in wanted)
                lost = sum(
                    (count * self._fragments(i, state[i], kind) for i in range(len(state)) for kind, count in wanted),
                    Fraction(0),
                )
                rank.append(-lost / total if total else Fraction(0))
        return tuple(rank)

    def _healthy(self, node: int, cards: tuple[Card, ...]) -> list[Card]:
        return [card for card in cards if self.nodes[node].gpus[card[0]].health == "healthy"]

    def _is_whole(self, node: int, cards: tuple[Card, ...]) -> bool:
        healthy = self._healthy(node, cards)
        return bool(healthy) and all(card[1] == 1 for card in healthy)

    def _fragments(self, node: int, state: NodeState, kind: Kind) -> Fraction:
        """Return the idle GPU of a node that a task could not use, in GPU-milli."""
        used, cards, _ = state
        idle = self._healthy(node, cards)
        everything = 1000 * sum((card[1] for card in idle), Fraction(0))
        usable = [card for card in cards if has_room(card, kind, kind.cards[node])]
        room = all(f is None or u + d <= f for u, d, f in zip(used, kind.demand, self.free[node], strict=True))
        able = kind.allowed[node] and bool(kind.zones[node])  # zones may hold no such task, whatever else is there
        if not kind.gpus or not able or not room or len(usable) < kind.gpus:
            return everything
        return everything - 1000 * sum((card[1] for card in usable), Fraction(0))


def _merge(into: Best, states: Iterable[tuple[State, tuple[Fraction, ...]]]) -> None:
    for state, sums in states:
        known = into.get(state)
        if known is None or sums > known:
            into[state] = sums
