"""The tiny instances are worth what their hand solutions say."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from placement import instances
from placement.honoured import refuse_unhonoured
from placement.snapshot.read import load

README = (Path(instances.__file__).parent / "README.md").read_text("utf-8")
BEST: dict[str, Any] = json.loads(instances.best_known().read_bytes())["instances"]
BY_HAND = [name for name, best in BEST.items() if best["who"].startswith("by hand")]
SENSE = {"fragmentation": -1, "nodes": -1}


def test_names() -> None:
    assert "fragmentation-two-nodes" in instances.names()
    assert "best_known" not in instances.names()
    assert all(instances.path(name).is_file() for name in instances.names())
    with pytest.raises(KeyError):
        instances.path("best_known")


@pytest.mark.parametrize("name", instances.names())
def test_instances_are_right_and_honoured(name: str) -> None:
    snapshot = load(instances.path(name))
    assert refuse_unhonoured(snapshot) is snapshot
    assert snapshot.description
    assert f"\n## {name}\n" in README or (snapshot.source and snapshot.licence)


@pytest.mark.parametrize("name", BEST)
def test_best_known_values_have_one_line_for_each_phase(name: str) -> None:
    snapshot = load(instances.path(name))
    phases: list[tuple[str, int | None]] = []
    for objective in snapshot.policy.objectives:
        tiers = sorted({job.priority for job in snapshot.jobs if job.running is None}, reverse=True)
        phases += [(objective, tier) for tier in tiers] if objective == "value" else [(objective, None)]
    assert [(phase["objective"], phase.get("priority")) for phase in BEST[name]["phases"]] == phases
    for phase in BEST[name]["phases"]:
        sense = SENSE.get(phase["objective"], 1)
        assert phase["bound"] is None or phase["bound"] * sense >= phase["value"] * sense
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", BEST[name]["when"])


@pytest.mark.parametrize("name", BY_HAND)
def test_hand_solutions_are_what_trying_everything_finds(name: str) -> None:
    brute = pytest.importorskip("brute")
    found = brute.optimum(load(instances.path(name)))
    assert [(objective, priority) for objective, priority, _ in found] == [
        (phase["objective"], phase.get("priority")) for phase in BEST[name]["phases"]
    ]
    for (_, _, value), phase in zip(found, BEST[name]["phases"], strict=True):
        assert abs(value - Fraction(phase["value"])) < Fraction(1, 10**6)
        assert phase["bound"] == phase["value"]


def test_there_are_enough_of_them() -> None:
    assert len(BY_HAND) >= 10
