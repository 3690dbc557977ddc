"""The benchmark of MIG cards: what its loads are like, and one row of its table at a small size."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

import mig
import table

import placement as pl
from placement.snapshot import Snapshot


def _slots(snapshot: Snapshot, *, running: bool) -> dict[str, int]:
    """Return the slots of running instances by model, or of requests by profile."""
    model = {node.name: node.gpus[0].model for node in snapshot.nodes}
    found: dict[str, int] = {}
    for job in snapshot.jobs:
        group = job.groups[0]
        if group.task is None or (job.running is not None) != running:
            continue
        profile = group.task.mig_profile
        key = model[job.running.tasks[0].node] if job.running else profile
        there = [one.profile(profile) for one in map(mig.known, [key] if running else mig.MODELS)]
        found[key] = found.get(key, 0) + group.count * max(one.size for one in there if one is not None)
    return found


@pytest.mark.parametrize("gangs", [False, True])
def test_what_a_load_is_like(gangs: bool) -> None:
    snapshot, states = mig.load(200, 0, gangs)
    assert pl.loads(pl.snapshot.read.dumps(snapshot)) == snapshot
    # 40 cards of each model with 8, 8, 8, 8 and 12 slots
    slots = {model: 40 * mig.known(model).slots for model in mig.MODELS}
    assert sum(slots.values()) == 1760
    taken = _slots(snapshot, running=True)
    # at most 30 % = 528 slots, and the last to leave took no more than a card's 12
    assert 528 - 12 <= sum(taken.values()) <= 528
    assert states > len(mig.MODELS)
    asked = _slots(snapshot, running=False)
    for family in (("A100-80GB", "H100-SXM5-80GB"), ("H200-141GB",), ("RTX-PRO-6000-BLACKWELL-96GB",)):
        free = sum(slots[model] - taken.get(model, 0) for model in family)
        mine = sum(asked.get(profile.name, 0) for profile in mig.base(mig.known(family[0])))
        # 1.3 times what is free, and the last job drawn may take eight times a whole card
        assert 1.3 * free <= mine < 1.3 * free + (8 * 12 if gangs else 12)
    pending = [job.groups[0] for job in snapshot.jobs if job.running is None]
    # five for each card, by expectation
    assert sum(group.count for group in pending) == pytest.approx(1000, rel=0.1)
    assert (max(group.count for group in pending) > 1) == gangs
    named = sum(bool(group.task and group.task.gpu_models) for group in pending)
    assert named / len(pending) == pytest.approx(0.25, abs=0.06)


def test_large_requests_are_rarer_by_the_power_of_their_size() -> None:
    profiles = mig.base(mig.known("A100-80GB"))
    assert [profile.size for profile in profiles] == [1, 2, 2, 4, 4, 8]
    # power 1: (1 + 1 + 1 + 1 + 1 + 1) slots over 1 + 1/2 + 1/2 + 1/4 + 1/4 + 1/8
    assert mig.mean_size(profiles, 1.0) == pytest.approx(6 / 2.625)
    # 210 slots at that mean are 91.875 requests
    assert mig.steepness({profiles: 210.0}, 91) == pytest.approx(1.0, abs=0.05)


def test_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    row = mig.measure(10, 0, False, 5.0, rules=True)
    assert row["valid"]
    assert 0 < table.number(row, "accepted") < table.number(row, "requests")
    assert 0 < table.number(row, "cards_used") <= 10
    greedy = row["greedy"]
    assert isinstance(greedy, dict)
    assert greedy
    assert table.number(row, "value") >= max(greedy.values())
    assert "of 1" in mig.report([row], [10])[0]
