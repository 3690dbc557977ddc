"""Why empty nodes cannot take a task that is bound to NUMA zones: the engine says the figures, as the judge does."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from numa_cases import BARE, TWO, cluster, job
from zoned_strategies import random_zoned

from placement.check import check
from placement.compile import compile as compile_snapshot
from placement.engine import solve
from placement.instance import Assignment
from placement.pending import pending
from placement.refusals import Refusals
from placement.rules import NODE_FILTERS
from placement.snapshot import Gpu, Node

# three cards of 80Gi in each zone and one of 40Gi
MIXED = replace(TWO, gpus=(Gpu(model="A", count=3, memory="80Gi"), Gpu(model="B", memory="40Gi")) * 2)

REFUSED: list[tuple[Node, dict[str, Any], str]] = [
    (TWO, {"gpus": 5}, "5 cards asked for in one NUMA zone, the largest has 4"),
    (MIXED, {"gpus": 4, "gpu_memory": "41Gi"}, "4 cards asked for in one NUMA zone, the largest has 3"),
    (TWO, {"cpu": "8500m"}, "8.5 cpu asked for in one NUMA zone, the largest has 8"),
    (TWO, {"memory": "33Gi"}, "33Gi memory asked for in one NUMA zone, the largest has 32Gi"),
    (TWO, {"nics": 3}, "3 NICs asked for in one NUMA zone, the largest has 2"),
    (BARE, {"gpus": 1}, "no NUMA zones are listed, single-numa-node asks for some"),
    # what no zones change is said as it is of every task
    (TWO, {"gpus": 9}, "fewer than 9 cards"),
    (TWO, {"cpu": 17}, "too little cpu"),
    (TWO, {"nics": 5}, "too few NICs"),
]


@pytest.mark.parametrize(("node", "asks", "reason"), REFUSED)
def test_what_a_zone_lacks(node: Node, asks: dict[str, Any], reason: str) -> None:
    (found,) = _pending(cluster(job(numa="single-numa-node", **asks), nodes=(node,)))
    assert found == ("never", f"no node could take a task of g even without other work (1: {reason})")


def test_no_zone_has_everything() -> None:
    # the first zone has the cards, the second the cores
    first, second = TWO.zones
    zones = (replace(first, cpu=4), replace(second, gpus=(), cpu=12))
    node = replace(TWO, gpus=(Gpu(model="A", count=4),), zones=zones)
    (found,) = _pending(cluster(job(numa="single-numa-node", gpus=1, cpu=6), nodes=(node,)))
    assert found[1].endswith("(1: no NUMA zone has all it asks for at once)")
    (found,) = _pending(cluster(job(numa="restricted", gpus=1, cpu=6), nodes=(node,)))
    assert found[0] == "no_room"


def _pending(snapshot: Any) -> list[tuple[str, str]]:
    found = pending(compile_snapshot(snapshot), Assignment.empty())
    return [(entry.reason, entry.detail) for entry in found]


@pytest.mark.parametrize("seed", range(0, 200, 4))
def test_the_reasons_agree_with_the_instance_and_the_judge(seed: int) -> None:
    snapshot = random_zoned(seed)
    instance = compile_snapshot(snapshot)
    refusals = Refusals(snapshot.nodes, NODE_FILTERS)
    for number, entry in enumerate(snapshot.jobs):
        if entry.running is None and len(entry.groups) == 1 and entry.groups[0].task is not None:
            alone = replace(snapshot, jobs=(entry,))
            (found,) = pending(compile_snapshot(alone), Assignment.empty())
            refused = found.detail.startswith("no node could take a task of ")  # and not only too many of them
            assert refused == (not refusals.takes(entry, entry.groups[0].task)), number
    assert instance.jobs == sum(entry.running is None for entry in snapshot.jobs)
    assert check(snapshot, solve(snapshot, solver="first-fit")) == []
