"""Clusters with MIG layouts, written briefly or drawn at random."""

from __future__ import annotations

import random

from mig_simulator import can_be

from placement.hardware.mig import Geometry, geometry
from placement.snapshot import Gpu, Job, MigInstance, Node, Running, RunningTask, Snapshot, Task, TaskGroup

MODELS = ("A100-40", "A100-80GB", "A30", "NVIDIA H100 80GB HBM3", "B200", "RTX-PRO-6000", "H20")


def known(model: str) -> Geometry:
    found = geometry(model)
    assert found is not None
    return found


def gpu(model: str, layout: str | None, count: int = 1) -> Gpu:
    """Cards with instances such as ``"1g.5gb@0 3g.20gb@4"``; None is MIG mode off."""
    if layout is None:
        return Gpu(model=model, count=count)
    placed = [one.partition("@") for one in layout.split()]
    instances = tuple(MigInstance(profile=name, start=int(start)) for name, _, start in placed)
    return Gpu(model=model, count=count, mig_enabled=True, mig_layout=instances)


def uses(name: str, node: str, card: int, profile: str = "", start: int | None = None) -> Job:
    """A running job with one instance, or with one whole card."""
    place = RunningTask(group="g", index=0, node=node, gpus=(card,), mig_starts=() if start is None else (start,))
    groups = (TaskGroup(name="g", task=Task(gpus=1, mig_profile=profile)),)
    return Job(name=name, groups=groups, running=Running(tasks=(place,)))


def one_node(*gpus: Gpu, jobs: tuple[Job, ...] = ()) -> Snapshot:
    return Snapshot(nodes=(Node(name="n", gpus=gpus),), jobs=jobs)


def drawn_layout(draw: random.Random, one: Geometry, start_with: dict[int, str]) -> dict[int, str]:
    """Add instances in random order where they fit, as many as come; by start."""
    layout = dict(start_with)
    every = [(start, profile.name) for profile in one.profiles for start in profile.starts]
    for start, name in draw.sample(every, draw.randint(0, len(every))):
        if start not in layout and can_be(one, {**layout, start: name}):
            layout[start] = name
    return layout


def text(layout: dict[int, str]) -> str:
    return " ".join(f"{name}@{start}" for start, name in layout.items())


def drawn_pair(seed: int, models: tuple[str, ...] = MODELS, most: int = 4) -> tuple[Snapshot, Snapshot]:
    """Two nodes of up to so many cards; some have MIG off before or after, some instances are in use."""
    draw = random.Random(seed)
    before, after, jobs = [], [], []
    for node in ("n", "m"):
        here, there = [], []
        model = draw.choice(models)
        for card in range(draw.randint(1, most)):
            model = draw.choice(models) if draw.random() < 0.3 else model
            on, then = draw.random() < 0.85, draw.random() < 0.85
            layout = drawn_layout(draw, known(model), {}) if on else {}
            busy = {start: name for start, name in layout.items() if draw.random() < 0.2}
            jobs += [uses(f"{node}{card}-{start}", node, card, name, start) for start, name in busy.items()]
            if not on and draw.random() < 0.3:
                jobs.append(uses(f"{node}{card}", node, card))
            kept = busy if draw.random() < 0.8 else {}
            wanted = drawn_layout(draw, known(model), kept if then else {})
            here.append(gpu(model, text(layout) if on else None))
            there.append(gpu(model, text(wanted) if then else None))
        before.append(Node(name=node, gpus=tuple(here)))
        after.append(Node(name=node, gpus=tuple(there)))
    return Snapshot(nodes=tuple(before), jobs=tuple(jobs)), Snapshot(nodes=tuple(after))
