"""The tiny instances are worth what their hand solutions say."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from placement import check, instances, schedule
from placement.honoured import refuse_unhonoured, refuse_unhonoured_in_time
from placement.scheduling.baselines import BASELINES
from placement.snapshot import Snapshot
from placement.snapshot.read import load

README = (Path(instances.__file__).parent / "README.md").read_text("utf-8")
BEST: dict[str, Any] = json.loads(instances.best_known().read_bytes())["instances"]
BY_HAND = [name for name, best in BEST.items() if best["who"].startswith("by hand")]
IN_TIME = "completion_time"
NOW = [name for name in BY_HAND if BEST[name]["phases"][0]["objective"] != IN_TIME]
SENSE = {"fragmentation": -1, "nodes": -1, IN_TIME: -1}


def in_time(snapshot: Snapshot) -> bool:
    return snapshot.policy.objectives == (IN_TIME,)


def test_names() -> None:
    assert "fragmentation-two-nodes" in instances.names()
    assert "best_known" not in instances.names()
    assert all(instances.path(name).is_file() for name in instances.names())
    with pytest.raises(KeyError):
        instances.path("best_known")


@pytest.mark.parametrize("name", instances.names())
def test_instances_are_right_and_honoured(name: str) -> None:
    snapshot = load(instances.path(name))
    refuse = refuse_unhonoured_in_time if in_time(snapshot) else refuse_unhonoured
    assert refuse(snapshot) is snapshot
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


@pytest.mark.parametrize("name", NOW)
def test_hand_solutions_are_what_trying_everything_finds(name: str) -> None:
    brute = pytest.importorskip("brute")
    found = brute.optimum(load(instances.path(name)))
    assert [(objective, priority) for objective, priority, _ in found] == [
        (phase["objective"], phase.get("priority")) for phase in BEST[name]["phases"]
    ]
    for (_, _, value), phase in zip(found, BEST[name]["phases"], strict=True):
        assert abs(value - Fraction(phase["value"])) < Fraction(1, 10**6)
        assert phase["bound"] == phase["value"]


def test_the_fullest_schedule_is_not_the_best() -> None:
    """Every start at a multiple of ten seconds is tried, which all ends are; no rule that fills cards waits."""
    snapshot, (phase,) = load(instances.path("time-hold-back")), BEST["time-hold-back"]["phases"]
    held = [2 * (time < 10) for time in range(0, 300, 10)]
    tried = []
    for filler in range(0, 200, 10):
        for wide in range(0, 200, 10):
            used = [
                now + 2 * (filler <= time < filler + 100) + 4 * (wide <= time < wide + 20)
                for time, now in zip(range(0, 300, 10), held, strict=True)
            ]
            if max(used) <= 4:
                tried.append(filler + 100 + wide + 20)
    assert min(tried) == phase["value"] == phase["bound"]
    found = {name: schedule(snapshot, solver=name) for name in BASELINES}
    assert min(one.value for one in found.values()) == 220
    assert schedule(snapshot).value == phase["value"]
    assert found["fifo-list"].figures.utilisation == (2 * 10 + 2 * 100 + 4 * 20) / (4 * 120)


def test_a_lab_that_shares_its_cards() -> None:
    """One job of 32 H100s in a queue that may use 24, and one with a hard deadline that is too soon."""
    snapshot = load(instances.path("time-shared-lab"))
    found = schedule(snapshot, solver="priority-preemptive")
    assert check(snapshot, found) == []
    assert {one.job: one.reason for one in found.left_out} == {"job-17": "quota", "job-19": "late"}
    assert sum(job.running is not None for job in snapshot.jobs) == 16
    assert found.figures.preemptions > 0


def test_there_are_enough_of_them() -> None:
    assert len(BY_HAND) >= 10
