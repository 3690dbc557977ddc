"""The tiny snapshots that other tests are made of: valid, honoured, the same every time, and of every kind."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

from hypothesis import given, settings
from strategies import OBJECTIVES, objective_orders, random_objectives, random_tiny, snapshots

from placement.compile import compile as compile_snapshot
from placement.gang import is_flat
from placement.honoured import refuse_unhonoured
from placement.snapshot import Snapshot
from placement.snapshot.read import digest, dumps, loads, verified

SEEDS = range(300)


def test_every_seed_gives_a_valid_snapshot_that_is_honoured() -> None:
    for seed in SEEDS:
        snapshot = random_tiny(seed)
        assert refuse_unhonoured(verified(snapshot)) == snapshot
        assert loads(dumps(snapshot)) == snapshot


@settings(deadline=None, max_examples=100)
@given(snapshots())
def test_drawn_snapshots_are_valid(snapshot: Snapshot) -> None:
    assert refuse_unhonoured(verified(snapshot)) == snapshot


def test_the_same_seed_gives_the_same_snapshot() -> None:
    assert random_tiny(7) == random_tiny(7)
    assert len({digest(random_tiny(seed)) for seed in SEEDS}) > 0.9 * len(SEEDS)


@given(objective_orders())
def test_objectives_are_known_and_distinct(objectives: tuple[str, ...]) -> None:
    assert 0 < len(objectives) == len(set(objectives))
    assert set(objectives) <= set(OBJECTIVES)
    assert set(random_objectives(3)) <= set(OBJECTIVES)


def test_all_rules_come_up() -> None:
    """Each feature is in some of the first snapshots, and what the compiled form has to tell apart is told apart."""
    seen: Counter[str] = Counter()
    for seed in SEEDS:
        snapshot = random_tiny(seed)
        instance = compile_snapshot(snapshot)
        tasks = [g.task for job in snapshot.jobs for g in job.groups if g.task]
        features = {
            "no nodes": not instance.nodes,
            "no jobs": not instance.jobs,
            "identical nodes": any(c.size > 1 for c in instance.classes),
            "identical jobs": any(c.size > 1 for c in instance.job_classes),
            "shares": any(s.gpus and s.units < instance.card_units for s in instance.shapes),
            "shares of several cards": any(s.gpus > 1 and s.units < instance.card_units for s in instance.shapes),
            "device memory": any(s.memory for s in instance.shapes),
            "no cards asked": any(not s.gpus for s in instance.shapes),
            "extended": any(task.extended for task in tasks),
            "node refused": instance.admits_node.size > instance.admits_node.sum(),
            "card refused": instance.admits_card.size > instance.admits_card.sum(),
            "limits": bool(instance.limits),
            "priorities": len(instance.priorities) > 1,
            "nested": any(not is_flat(c.root) for c in instance.job_classes),
            "minimum": any(leaf.minimum < leaf.count for c in instance.job_classes for leaf in c.leaves),
            "running": any(c.in_use for c in instance.classes),
            "full card": any(units == 0 for c in instance.classes for _, units, _ in c.cards),
            "over-full card": _has_overfull_card(snapshot),
            "cordoned": any(node.cordoned for node in snapshot.nodes),
            "tainted": any(node.taints for node in snapshot.nodes),
            "worth nothing": any(leaf.value == 0 for c in instance.job_classes for leaf in c.leaves),
        }
        seen += Counter({name: int(present) for name, present in features.items()})
    assert min(seen[name] for name in features) >= 5, seen


def _has_overfull_card(snapshot: Snapshot) -> bool:
    used: Counter[tuple[str, int]] = Counter()
    for job in snapshot.jobs:
        task = job.groups[0].task
        for place in job.running.tasks if job.running and task else ():
            share = 1 if task is None or task.gpu_share is None else _share(task.gpu_share)
            for card in place.gpus:
                used[place.node, card] += int(share * 1000)
    return any(amount > 1000 for amount in used.values())


def _share(quantity: object) -> Fraction:
    text = str(quantity)
    return Fraction(text.removesuffix("m")) / (1000 if text.endswith("m") else 1)
