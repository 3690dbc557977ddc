"""Kueue's balanced placement, on clusters small enough to count by hand."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from rule_cases import judge, some_snapshots
from tied_cases import CARD, one, rack, racks, solve

from placement.heuristics.kueue_tas_balanced import tightest
from placement.snapshot import Job, Slice, Snapshot, TaskGroup, Topology

RULE = "kueue-tas-balanced"


def wish(count: int, level: str = "zone", **rules: object) -> Job:
    """Return a job of tasks with one card each that prefers a level."""
    return one(TaskGroup(name="w", count=count, task=CARD, topology=Topology(preferred=level, **rules)))  # type: ignore[arg-type]


def test_eight_and_eight_and_not_fifteen_and_one() -> None:
    # Two racks of 15: it takes two, each can hold min(16 / 2, 15) = 8
    nodes = [*rack("a", 15), *rack("b", 15)]
    assert Counter(racks(solve(nodes, wish(16), rule=RULE)[0]["w"])) == {"a": 8, "b": 8}
    for other in ("kueue-tas-best-fit", "kueue-tas-least-free", "first-fit", "slurm-tree-best-fit"):
        counts = Counter(racks(solve(nodes, wish(16), rule=other)[0]["w"]))
        assert sorted(counts.values()) == [1, 15]


def test_what_is_left_goes_to_those_with_most_room() -> None:
    # 14 tasks over racks of 5, 7 and 7: two of 7 hold them, min(14 / 2, 7) = 7 each. 13: 6 each and one more, in a.
    nodes = [*rack("c", 5), *rack("a", 7), *rack("b", 7)]
    assert Counter(racks(solve(nodes, wish(14), rule=RULE)[0]["w"])) == {"a": 7, "b": 7}
    assert Counter(racks(solve(nodes, wish(13), rule=RULE)[0]["w"])) == {"a": 7, "b": 6}


def test_the_tightest_of_the_fewest_domains_are_taken() -> None:
    # 12 tasks over racks of 9, 6, 7 and 6: with most room 9 + 7 hold them, so two do, 6 each: min(12 / 2, 7). All racks
    # have 6. Of two racks that hold 12 those of 6 and 6 have the least room.
    nodes = [*rack("a", 9), *rack("b", 6), *rack("c", 7), *rack("d", 6)]
    assert Counter(racks(solve(nodes, wish(12), rule=RULE)[0]["w"])) == {"b": 6, "d": 6}


def test_the_zone_in_which_each_can_hold_most_wins() -> None:
    # 6 tasks: zone z has racks of 5 and 1, min(6 / 2, 1) = 1 each; zone y 2, 2 and 2: min(6 / 3, 2) = 2 each
    nodes = [*rack("a", 5), *rack("b", 1), *(node for name in "cde" for node in rack(name, 2, zone="y"))]
    assert Counter(racks(solve(nodes, wish(6), rule=RULE)[0]["w"])) == {"c": 2, "d": 2, "e": 2}


def test_one_domain_that_holds_all_gets_all() -> None:
    assert racks(solve([*rack("a", 3), *rack("b", 6), *rack("c", 4)], wish(4), rule=RULE)[0]["w"]) == ["c"] * 4


def test_nodes_are_even_where_a_rack_is_preferred() -> None:
    # 6 tasks in rack a: nodes of 5, 4 and 3. Two hold them, min(6 / 2, 4) = 3 each; the tightest two are those of 4 and
    # 3 with 7, not 5 and 3 with 8.
    assert Counter(solve(rack("a", 5, 4, 3), wish(6, "rack"), rule=RULE)[0]["w"]) == {"a-1": 3, "a-2": 3}


def test_slices_are_what_is_even() -> None:
    # 3 slices of 2 on nodes of 5 and 4: 2 and 2 of them fit; two nodes, min(3 / 2, 2) = 1 each, and one more: 4 and 2
    job = wish(6, "rack", slices=(Slice(level="node", sizes=(2,)),))
    assert Counter(solve(rack("a", 5, 4), job, rule=RULE)[0]["w"]) == {"a-0": 4, "a-1": 2}


def test_where_no_even_split_is_found_it_is_best_fit() -> None:
    # 4 tasks; the cluster has 3, so nothing starts; 3 tasks over 2 and 1: min(3 / 2, 1) = 1 each and one more
    nodes = [*rack("a", 2), *rack("b", 1)]
    assert solve(nodes, wish(4), rule=RULE) == [{}]
    assert Counter(racks(solve(nodes, wish(3), rule=RULE)[0]["w"])) == {"a": 2, "b": 1}


def test_only_groups_that_prefer_a_level_are_split() -> None:
    nodes = [*rack("a", 6), *rack("b", 6)]
    must = one(TaskGroup(name="w", count=8, task=CARD, topology=Topology(required="zone")))
    for job in (must, one(TaskGroup(name="w", count=8, task=CARD))):
        assert solve(nodes, job, rule=RULE) == solve(nodes, job, rule="kueue-tas-best-fit")


def test_the_fewest_with_least_room() -> None:
    # 10 of 7, 4, 6, 3: two of them hold it; 7 + 4 = 11, 6 + 4 = 10
    room = np.array([7, 4, 6, 3])
    assert sorted(tightest(room, range(4), 10)) == [1, 2]


# --- what the source's tests expect (kubernetes-sigs/kueue, Apache-2.0), re-expressed ---------------------------


def test_twenty_three_pods_over_four_hosts() -> None:
    # hosts of 6 pods each in one rack: 4 of them, min(23 / 4, 6) = 5 each, and three get one more
    (places,) = solve(rack("r", 6, 6, 6, 6), wish(23, "rack"), rule=RULE)
    assert sorted(Counter(places["w"]).values()) == [5, 6, 6, 6]


def test_twenty_five_pods_in_slices_of_five() -> None:
    job = wish(25, "rack", slices=(Slice(level="node", sizes=(5,)),))
    # 12 and 17 pods are 2 and 3 slices, which hold 5: min(5 / 2, 2) = 2 each, and one more where the room is
    (places,) = solve(rack("r", 12, 17, 7), job, rule=RULE)
    assert Counter(places["w"]) == {"r-0": 10, "r-1": 15}


@settings(max_examples=60, deadline=None)
@given(some_snapshots())
def test_its_plans_pass_the_check(snapshot: Snapshot) -> None:
    judge(RULE, snapshot)
