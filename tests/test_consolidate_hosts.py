"""Moving MIG instances where hosts or domains are short of something else, by hand; see `consolidate_cases`."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from consolidate_cases import A100, SEVENTH, TWO, cluster, places, proven, runs, sound, started, waits

from placement import consolidate
from placement.snapshot import (
    DomainLimit,
    Node,
)


def test_a_host_that_is_too_small_for_a_mover() -> None:
    """x asks for two cores and b has one: it stays."""
    nodes = (Node(name="a", cpu=8, gpus=(A100,)), Node(name="b", cpu=1, gpus=(A100,)))
    y = runs("y", "1g.5gb", 0, 0, node="b", preemptible=False)
    snapshot = cluster(runs("x", "1g.5gb", 0, 0, cpu=2), y, waits("big", "7g.40gb"), nodes=nodes)
    found = consolidate(snapshot)
    sound(snapshot, found)
    proven(found, 0, 0)
    assert found.moves == ()


def test_a_host_that_is_too_small_for_two_movers() -> None:
    """x and w ask for a core each, and b has one in all: both stay."""
    nodes = (Node(name="a", cpu=8, gpus=(A100,)), Node(name="b", cpu=1, gpus=(A100,)))
    movers = (runs("x", "1g.5gb", 0, 0, cpu=1), runs("w", "1g.5gb", 0, 1, cpu=1))
    y = runs("y", "1g.5gb", 0, 0, node="b", preemptible=False)
    snapshot = cluster(*movers, y, waits("big", "7g.40gb"), nodes=nodes)
    found = consolidate(snapshot)
    sound(snapshot, found)
    proven(found, 0, 0)
    assert found.moves == ()
    # on c the other has its core
    third = Node(name="c", cpu=1, gpus=(A100,))
    snapshot = cluster(*movers, y, waits("big", "7g.40gb", cpu=8), nodes=(*nodes, third))
    proven(consolidate(snapshot), 1000, 2 * SEVENTH / 10)


def test_room_that_a_mover_makes_on_its_host() -> None:
    """new asks for the two cores that x has, not for its slots: x goes to the other node for a tenth of 1/7."""
    nodes = (Node(name="a", cpu=2, gpus=(A100,), labels={"zone": "a"}), Node(name="b", cpu=2, gpus=(A100,)))
    new = waits("new", "1g.5gb", cpu=2, node_selector={"zone": "a"})
    snapshot = cluster(runs("x", "1g.5gb", 0, 0, cpu=2), new, waits("more", "1g.5gb", cpu=3), nodes=nodes)
    found = consolidate(snapshot)
    sound(snapshot, found)
    proven(found, SEVENTH, SEVENTH / 10)
    assert places(found)["x"][0] == "b"


def test_a_host_that_is_too_small_for_what_starts() -> None:
    """The 7g asks for more cores than a host has: x need not move for it, and the 2g beside it starts all the same."""
    nodes = (Node(name="a", cpu=8, gpus=(TWO,)),)
    work = (runs("x", "1g.5gb", 0, 0, cpu=1), runs("y", "2g.10gb", 1, 2, cpu=1))
    snapshot = cluster(*work, waits("big", "7g.40gb", cpu=9), waits("two", "2g.10gb", cpu=6), nodes=nodes)
    found = consolidate(snapshot)
    sound(snapshot, found)
    assert started(found) == ["two"]
    assert found.worth == pytest.approx(2 * SEVENTH)
    assert found.moves == ()


def test_a_domain_that_is_full() -> None:
    """Rack q may have one card's worth in all, and has it: x cannot go there."""
    nodes = (
        Node(name="a", gpus=(A100,), position={"rack": "p"}),
        Node(name="b", gpus=(A100,), position={"rack": "q"}),
    )
    work = (runs("x", "1g.5gb", 0, 0), runs("y", "2g.10gb", 0, 2, node="b", preemptible=False))
    limits = (DomainLimit(level="rack", domain="q", gpus="0.3"),)
    big = waits("big", "7g.40gb")
    snapshot = cluster(*work, big, nodes=nodes, topology=("rack",), limits=limits)
    found = consolidate(snapshot)
    sound(snapshot, found)
    assert found.moves == ()
    wide = msgspec.structs.replace(snapshot, limits=(DomainLimit(level="rack", domain="q", gpus="0.5"),))
    assert places(consolidate(wide))["x"][0] == "b"


def test_a_cap_on_all_cards() -> None:
    """0.9 cards in all, of which x has 1/7: one 3g more is 4/7, and two would be 1. So it is with 7 cores of a host."""
    limits = (DomainLimit(level="cluster", gpus="0.9"),)
    threes = (waits("three", "3g.20gb", cpu=3), waits("four", "3g.20gb", cpu=3))
    snapshot = cluster(runs("x", "1g.5gb", 0, 0), *threes, limits=limits)
    found = consolidate(snapshot)
    sound(snapshot, found)
    proven(found, 3 * SEVENTH, 0)
    snapshot = cluster(runs("x", "1g.5gb", 0, 0, cpu=2), *threes, nodes=(Node(name="a", cpu=7, gpus=(TWO,)),))
    found = consolidate(snapshot)
    sound(snapshot, found)
    # 2 + 3 cores, and with both 3g it would be 8
    proven(found, 3 * SEVENTH, 0)


@pytest.mark.parametrize("asked", [{"cpu": 3}, {"memory": "3Gi"}, {"cpu": 3, "memory": "3Gi"}])
def test_moves_on_a_host_that_running_work_overfills(asked: dict[str, Any]) -> None:
    """x asks for three where the host has two, on any of its cards: beside y it leaves card 0 to the 7g for 1/70."""
    work = (runs("x", "1g.5gb", 0, 0, **asked), runs("y", "2g.10gb", 1, 2, preemptible=False), waits("big", "7g.40gb"))
    snapshot = cluster(*work, nodes=(Node(name="a", cpu=2, memory="2Gi", gpus=(TWO,)),))
    found = consolidate(snapshot)
    sound(snapshot, found)
    proven(found, 1000, SEVENTH / 10)
    assert places(found)["x"][:2] == ("a", 1)
    # nobody who asks for any of it comes to a host that is overfilled, from elsewhere or new
    nodes = (Node(name="a", cpu=2, memory="2Gi", gpus=(A100,)), Node(name="b", cpu=2, memory="2Gi", gpus=(A100,)))
    y = runs("y", "2g.10gb", 0, 2, node="b", preemptible=False, **asked)
    z = runs("z", "1g.5gb", 0, 0, cpu=1, memory="1Gi")
    apart = cluster(z, y, waits("big", "7g.40gb"), waits("new", "1g.5gb", cpu=2, memory="2Gi"), nodes=nodes)
    found = consolidate(apart)
    sound(apart, found)
    proven(found, 0, 0)


def test_a_domain_that_running_work_overfills() -> None:
    """The cluster may have two cores, and x has three, on the host that has eight: it moves there for 1/70."""
    limits = (DomainLimit(level="cluster", cpu=2),)
    work = (runs("x", "1g.5gb", 0, 0, cpu=3), runs("y", "2g.10gb", 1, 2, preemptible=False))
    snapshot = cluster(*work, waits("big", "7g.40gb"), nodes=(Node(name="a", cpu=8, gpus=(TWO,)),), limits=limits)
    found = consolidate(snapshot)
    sound(snapshot, found)
    proven(found, 1000, SEVENTH / 10)
