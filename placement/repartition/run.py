"""The whole way from one snapshot to another: cards matched with targets, chosen within the budget, put into steps."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral
from typing import Literal

from placement.errors import SnapshotError, UsageError
from placement.hardware.layouts import Layout
from placement.repartition.budget import within
from placement.repartition.cards import Card, cards
from placement.repartition.change import Change, Holder, State, change
from placement.repartition.match import match
from placement.repartition.reach import reach
from placement.repartition.record import Blocked, CardChange, Repartition, Step
from placement.repartition.times import Times
from placement.snapshot import MigInstance, Snapshot
from placement.snapshot.read import verified


def repartition(
    before: Snapshot,
    after: Snapshot,
    *,
    permute: bool = False,
    anywhere: bool = False,
    budget: int | None = None,
    times: Times | None = None,
) -> Repartition:
    """Return how to get the MIG layouts of one snapshot from those of another.

    What is there now is ``mig_enabled`` and ``mig_layout`` of `before`, with the instances that its running tasks use;
    what is wanted is ``mig_enabled`` and ``mig_layout`` of `after`, and what runs there. Nothing else of it matters,
    nor does ``mig_static``, which binds who places tasks, not who sets up cards. What a task uses is never touched: a
    card whose target asks for that is left as it is, and is reported with the job.

    Parameters
    ----------
    before, after : Snapshot
        With the same nodes and, in the same order, cards of the same models, whatever entries these are split into.
    permute : bool
        Whether a layout may go to any card of its node that is the same but for MIG, where it is only asked how many
        cards of a node have which layout. The cards are matched with targets exactly: fewest blocked, then fewest
        instances destroyed, then fewest created, then least time.
    anywhere : bool
        Whether instances may stand at any slots, where it is only asked which ones a card has; see
        `placement.repartition.reach`. Of cards that have MIG mode on already; on others they stand where `after` says.
    budget : int, optional
        Most instances to destroy. Cards are then chosen such that the part of them which becomes usable as wanted
        (`CardChange.gain`) is most in sum, exactly; they are matched with targets before that. Without it, every card
        that is not blocked is changed.
    times : Times, optional
        How long each kind of step takes.

    Raises
    ------
    SnapshotError, InputError
        If a snapshot is wrong, the two have different nodes or cards, or a layout cannot exist.
    UsageError
        If an argument is out of range.
    """
    if budget is not None and (isinstance(budget, bool) or not isinstance(budget, Integral) or budget < 0):
        raise UsageError.one(f"is {budget!r:.40}", "give the most instances to destroy, 0 or more", path="budget")
    times = times or Times()
    times.refuse_wrong()
    changes = _Changes(anywhere, times)
    moves: list[_Move] = []
    number = 0
    for node, found in cards(_right(before, "before"), _right(after, "after")):
        targets = changes.matched(found) if permute else range(len(found))
        number += len(found)
        for card, target in zip(found, targets, strict=True):
            done = changes.of(card, found[target].wanted)
            if done or done.blocked_by:
                moves.append(_Move(node, card, target, done))
    return _told(moves, _chosen(moves, budget), number, times)


def _right(snapshot: Snapshot, source: str) -> Snapshot:
    try:
        return verified(snapshot)
    except SnapshotError as error:
        raise SnapshotError(error.problems, source, error.total) from None


@dataclass(frozen=True, slots=True)
class _Move:
    node: str
    card: Card
    target: int
    change: Change

    @property
    def gain(self) -> Fraction:
        geometry = self.card.geometry
        return Fraction(0) if geometry is None else self.change.gain(geometry)

    @property
    def resets(self) -> bool:
        return self.card.geometry is not None and self.card.geometry.reset_to_switch


class _Changes:
    """What each card has to do for each target; what idle cards do is found out once for each pair of states."""

    def __init__(self, anywhere: bool, times: Times) -> None:
        self.anywhere = anywhere
        self.times = times
        self.known: dict[tuple[str, int, int], Change] = {}
        self.matches: dict[tuple[tuple[Hashable, int, int], ...], list[int]] = {}

    def of(self, card: Card, wanted: State) -> Change:
        if card.holders:
            return self._of(card, wanted)
        # a state of an idle card is one of those that were read, and lives as long as they are compared
        key = card.model, id(card.present), id(wanted)
        if key not in self.known:
            self.known[key] = self._of(card, wanted)
        return self.known[key]

    def _of(self, card: Card, wanted: State) -> Change:
        if not (self.anywhere and card.geometry is not None and card.present.on and wanted.on):
            return change(card.present, wanted, card.holders)
        busy = [holder.instance for holder in card.holders if holder.instance is not None]
        found = reach(card.geometry, card.present.layout, busy, [profile for profile, _ in wanted.layout])
        return _blocked(card) if found is None else found

    def matched(self, found: Sequence[Card]) -> list[int]:
        """Return the card whose target each card of a node gets, among those that are alike."""
        if any(card.holders for card in found):
            return self._matched(found)
        # most nodes of a cluster look like some other one
        key = tuple((card.alike, id(card.present), id(card.wanted)) for card in found)
        if key not in self.matches:
            self.matches[key] = self._matched(found)
        return self.matches[key]

    def _matched(self, found: Sequence[Card]) -> list[int]:
        targets = list(range(len(found)))
        groups: dict[object, list[int]] = {}
        for card in found:
            groups.setdefault(card.alike, []).append(card.index)
        for group in groups.values():
            if not any(any(self._cost(found[i], found[i].wanted)) for i in group):
                continue
            costs = [[self._cost(found[i], found[j].wanted) for j in group] for i in group]
            for i, column in zip(group, match(_whole(costs)), strict=True):
                targets[i] = group[column]
        return targets

    def _cost(self, card: Card, wanted: State) -> tuple[int, int, int, int]:
        done = self.of(card, wanted)
        resets = card.geometry is not None and card.geometry.reset_to_switch
        microseconds = round(1e6 * done.seconds(self.times, resets))
        return len(done.blocked_by) > 0, len(done.destroyed), len(done.created), microseconds


def _blocked(card: Card) -> Change:
    """Return that every job with an instance of a card is in the way: the wanted ones have no place beside them."""
    busy: tuple[Holder, ...] = tuple(holder for holder in card.holders if holder.instance is not None)
    return Change(kept=card.present.layout, blocked_by=busy)


def _whole(costs: Sequence[Sequence[tuple[int, ...]]]) -> list[list[int]]:
    """Return costs in which earlier parts outweigh all that later ones can add up to, as whole numbers.

    Last of all it costs 1 to give a card another one's target, so that none is exchanged for nothing.
    """
    size = len(costs)
    above = [1 + size * max(cost[part] for row in costs for cost in row) for part in range(len(costs[0][0]))]
    table = []
    for i, row in enumerate(costs):
        numbers = []
        for j, cost in enumerate(row):
            total = 0
            for part, most in zip(cost, above, strict=True):
                total = total * most + part
            numbers.append(total * (size + 1) + (i != j))
        table.append(numbers)
    return table


def _chosen(moves: Sequence[_Move], budget: int | None) -> set[int]:
    """Return the numbers of the moves to make."""
    free = [number for number, move in enumerate(moves) if not move.change.blocked_by]
    if budget is None:
        return set(free)
    weights = [len(moves[number].change.destroyed) for number in free]
    return {free[k] for k in within(budget, weights, [moves[number].gain for number in free])}


def _told(moves: Sequence[_Move], chosen: set[int], number: int, times: Times) -> Repartition:
    steps: list[Step] = []
    told: list[CardChange] = []
    blocked: list[Blocked] = []
    nodes: dict[str, float] = {}
    for k, move in enumerate(moves):
        seconds = move.change.seconds(times, move.resets)
        outcome: Literal["changed", "blocked", "over_budget"] = "changed" if k in chosen else "over_budget"
        if move.change.blocked_by:
            outcome = "blocked"
            blocked += [_blocked_by(move, holder) for holder in move.change.blocked_by]
        elif k in chosen:
            steps += _steps(move, times)
            nodes[move.node] = max(seconds, nodes.get(move.node, 0.0))
        told.append(
            CardChange(
                node=move.node,
                card=move.card.index,
                model=move.card.model,
                target=move.target,
                outcome=outcome,
                kept=_records(move.change.kept),
                destroyed=_records(move.change.destroyed),
                created=_records(move.change.created),
                switch=move.change.switch,
                gain=0.0 if move.change.blocked_by else float(move.gain),
                seconds=seconds,
            )
        )
    return Repartition(
        steps=tuple(steps),
        cards=tuple(told),
        blocked=tuple(blocked),
        unchanged=number - len(moves),
        destroyed=sum(step.action == "destroy" for step in steps),
        created=sum(step.action == "create" for step in steps),
        seconds=sum(card.seconds for card in told if card.outcome == "changed"),
        node_seconds=nodes,
        critical_seconds=max(nodes.values(), default=0.0),
    )


def _steps(move: _Move, times: Times) -> Iterable[Step]:
    """Yield the steps of one card: all that goes is gone before anything is made in its place."""
    node, card, done = move.node, move.card.index, move.change
    for profile, start in done.destroyed:
        yield Step(
            node=node, card=card, action="destroy", profile=profile.name, start=start, seconds=float(times.destroy)
        )
    if done.switch:
        yield Step(
            node=node,
            card=card,
            action="enable" if done.switch == "on" else "disable",
            resets=move.resets,
            seconds=float(times.reset if move.resets else times.switch),
        )
    for profile, start in done.created:
        yield Step(
            node=node, card=card, action="create", profile=profile.name, start=start, seconds=float(times.create)
        )


def _blocked_by(move: _Move, holder: Holder) -> Blocked:
    node, card, job = move.node, move.card.index, holder.job
    if holder.instance is None:
        return Blocked(node=node, card=card, job=job)
    profile, start = holder.instance
    return Blocked(node=node, card=card, job=job, profile=profile.name, start=start)


def _records(layout: Layout) -> tuple[MigInstance, ...]:
    return tuple(MigInstance(profile=profile.name, start=start) for profile, start in layout)
