"""MIG: every new task with a MIG profile has one instance, at a slot where its profile starts, that nobody else holds.

No slot of a card is taken twice, running instances included, and the media engines of all instances are no more than
the card has. Where instances stay as they are, a task holds one of those. Whether a card has a profile at all is for
`placement.check.filters.mig_cards` to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from placement.check.case.case import Placed
from placement.check.case.slots import Held, asks, taken
from placement.check.filters.mig_cards import existing, profile_of
from placement.check.in_nodes.numa import uneven_column
from placement.check.violation import Violation, integer, many, show
from placement.hardware.mig import geometry

RULE = "mig"
ENGINES = ("decoders", "encoders", "JPEG units", "optical flow units")
MOST = 20
"""Slots that a message lists."""


def judge(case: Placed) -> Iterator[Violation]:
    """Yield every instance that cannot be as the plan has it."""
    column, needing = case.tasks.mig_starts, asks(case.facts, case.rows)
    if not isinstance(column, list):
        number = int(needing.sum())
        if number:
            what = f"the plan does not say in which slots the instances of {many(number, 'task')} are"
            yield Violation(RULE, "tasks.mig_starts", what)
        return
    if len(column) != len(case.tasks):
        yield uneven_column(RULE, "mig_starts", len(column), len(case.tasks))
        return
    said = np.fromiter(map(bool, column), dtype=np.bool_, count=len(column))[case.rows.number]
    # most rows have an instance that nothing is wrong with by itself
    for row in np.flatnonzero((needing | said) & ~case.slots.sound).tolist():
        starts = column[int(case.rows.number[row])]
        for what in _task(case, row, bool(needing[row]), starts):
            yield Violation(RULE, f"tasks[{case.rows.number[row]}]", f"{show(case.node_name(row))}{what}")
    for card, held in case.slots.crowded():
        yield from _card(case, card, held)


def _task(case: Placed, row: int, asks_for_one: bool, starts: Sequence[int]) -> Iterator[str]:
    """Yield what is wrong with the slots that the plan says of one task, to be put behind the name of its node."""
    listed = ", ".join(map(integer, starts[:MOST]))
    if not asks_for_one:
        yield f": slot {listed} of a MIG instance is listed, and the task asks for none"
        return
    if len(starts) != 1:
        yield f": {many(len(starts), 'slot')} listed, the one instance of the task starts at 1"
        return
    devices = case.rows.devices(row)
    if len(devices) != 1:
        return  # which the rule of identity says
    task = case.facts.leaves[int(case.rows.leaf[row])].shape.task
    gpu = case.facts.kinds[int(case.facts.kind[case.rows.spec[row]])].cards[devices[0]].gpu
    profile = profile_of(task, gpu)
    if profile is None:
        return  # which the filter of cards says
    if starts[0] not in profile.starts:
        legal = ", ".join(map(str, profile.starts))
        yield f" gpu {devices[0]}: an instance {profile.name} is at slot {listed}, allowed are {legal}"
    elif gpu.mig_static and (there := existing(profile, gpu)) and starts[0] not in there:
        ones = f"one is at {', '.join(map(str, there))}"
        yield f" gpu {devices[0]}: no instance {profile.name} exists at slot {listed}, and none is made: {ones}"


def _card(case: Placed, card: int, held: list[Held]) -> Iterator[Violation]:
    """Yield what is wrong with the instances of one card together, of which some are new."""
    node, device, path, fact = case.load.where(card)
    where = f"{show(node)} gpu {device}"
    holder: dict[int, Held] = {}
    for one in held:
        twice = [slot for slot in one.slots if slot in holder]
        if twice and one.new:
            other = holder[twice[0]]
            what = (
                f"{where}: the instance {one.profile.name} of {_of(case, one)} takes {_slots(twice)}, "
                f"which {other.profile.name} of {_of(case, other)} has already"
            )
            yield Violation(RULE, f"tasks[{case.rows.number[one.row]}]", what)
        for slot in one.slots:
            holder.setdefault(slot, one)
    known = geometry(fact.gpu.model)
    assert known is not None
    for name, number, most in zip(ENGINES, taken(held)[1], known.engines, strict=True):
        if number > most:
            running = sum(one.profile.engines[ENGINES.index(name)] for one in held if not one.new)
            already = f" ({running} of them by running work)" if running else ""
            yield Violation(RULE, path, f"{where}: its instances take {number} {name}{already}, at most {most}")


def _of(case: Placed, held: Held) -> str:
    """Return whose an instance is."""
    if held.new:
        return f"{show(case.job_name(held.row))} (tasks[{case.rows.number[held.row]}])"
    return f"{show(case.running_name(held.row))} (running)"


def _slots(slots: list[int]) -> str:
    return f"slot {slots[0]}" if len(slots) == 1 else f"slots {slots[0]} to {slots[-1]}"
