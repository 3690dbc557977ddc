"""What a driver does to cards, step by step, and what it refuses; it knows the table of profiles and nothing else.

It shares no code with the package: snapshots are taken apart anew, and slots and engines are counted one by one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from placement.hardware import mig
from placement.repartition import Step
from placement.snapshot import Gpu, Snapshot

Instances = dict[int, str]
"""Profiles on a card by the first slot of their instance."""


class Refused(Exception):  # noqa: N818 - what a driver answers
    """The driver refuses a step."""


def can_be(geometry: mig.Geometry, instances: Instances) -> bool:
    """Return whether instances can exist together: legal starts, no slot twice, and enough engines of each kind."""
    slots: Counter[int] = Counter()
    engines: Counter[int] = Counter()
    for start, name in instances.items():
        profile = geometry.profile(name)
        if profile is None or start not in profile.starts:
            return False
        slots.update(range(start, start + profile.size))
        for kind, number in enumerate(profile.engines):
            engines[kind] += number
    within = all(engines[kind] <= there for kind, there in enumerate(geometry.engines))
    return within and all(number == 1 for number in slots.values())


@dataclass
class SimulatedCard:
    """A card: whether MIG mode is on, its instances, the slots of those in use, and whether the card itself is."""

    model: str
    on: bool
    instances: Instances
    busy: set[int] = field(default_factory=set)
    whole: bool = False


class Simulator:
    """The cards of a snapshot, by node and index."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.cards = states(snapshot)
        for job in snapshot.jobs:
            for task in job.running.tasks if job.running is not None else ():
                profile = next(group.task for group in job.groups if group.name == task.group)
                assert profile is not None
                for number, index in enumerate(task.gpus):
                    card = self.cards[task.node, index]
                    if not task.mig_starts:
                        card.whole = True
                        continue
                    geometry = mig.geometry(card.model)
                    assert geometry is not None
                    found = geometry.profile(profile.mig_profile)
                    assert found is not None
                    card.instances[task.mig_starts[number]] = found.name
                    card.busy.add(task.mig_starts[number])

    def do(self, step: Step) -> None:
        """Do one step, or refuse it as a driver would."""
        card = self.cards[step.node, step.card]
        geometry = mig.geometry(card.model)
        if geometry is None:
            raise Refused("no MIG on this model")
        if step.action in ("enable", "disable"):
            if card.instances or card.whole:
                raise Refused("the card is in use")
            if card.on == (step.action == "enable"):
                raise Refused("MIG mode is as wanted")
            if step.resets != geometry.reset_to_switch:
                raise Refused("the reset is not as said")
            card.on = not card.on
            return
        assert step.start is not None
        if not card.on:
            raise Refused("MIG mode is off")
        if step.action == "destroy":
            if card.instances.get(step.start) != step.profile:
                raise Refused("there is no such instance")
            if step.start in card.busy:
                raise Refused("the instance is in use")
            del card.instances[step.start]
            return
        if step.start in card.instances or not can_be(geometry, {**card.instances, step.start: step.profile}):
            raise Refused("insufficient resources")
        card.instances[step.start] = step.profile


def states(snapshot: Snapshot) -> dict[tuple[str, int], SimulatedCard]:
    """Return what the entries of a snapshot say of each card."""
    found: dict[tuple[str, int], SimulatedCard] = {}
    for node in snapshot.nodes:
        names = [node.name] if node.count == 1 else [f"{node.name}-{number}" for number in range(node.count)]
        for name in names:
            index = 0
            for gpu in node.gpus:
                for _ in range(gpu.count):
                    found[name, index] = _state(gpu)
                    index += 1
    return found


def _state(gpu: Gpu) -> SimulatedCard:
    geometry = mig.geometry(gpu.model)
    instances: Instances = {}
    for one in gpu.mig_layout:
        profile = None if geometry is None else geometry.profile(one.profile)
        assert profile is not None
        instances[one.start] = profile.name
    return SimulatedCard(gpu.model, gpu.mig_enabled, instances)
