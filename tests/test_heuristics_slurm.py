"""Slurm's topology/tree and topology/block, on clusters small enough to count by hand."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from rule_cases import cards, judge, runs, some_snapshots, spots
from tied_cases import CARD, one, rack, racks, solve

from placement.snapshot import Job, Node, Slice, Snapshot, Task, TaskGroup, Topology

TREE, BLOCK = "slurm-tree-best-fit", "slurm-block"


def group(count: int, **rules: object) -> Job:
    """Return a job of tasks with one card each; on nodes with one card each that is as many nodes."""
    topology = Topology(**rules) if rules else None  # type: ignore[arg-type]
    return one(TaskGroup(name="w", count=count, task=CARD, topology=topology))


# --- tree ----------------------------------------------------------------------------------------------------


def test_a_job_goes_to_the_leaf_with_fewest_nodes_that_holds_it() -> None:
    # leaves of 3, 2 and 4 nodes: the job of 2 nodes leaves 1, 0 or 2 of them
    nodes = [*rack("a", 1, 1, 1), *rack("b", 1, 1), *rack("c", 1, 1, 1, 1)]
    assert solve(nodes, group(2), rule=TREE) == [{"w": ["b-0", "b-1"]}]
    for other in ("first-fit", "kueue-tas-best-fit", "kube-most-allocated"):
        assert solve(nodes, group(2), rule=other) == [{"w": ["a-0", "a-1"]}]


def test_what_counts_is_nodes_and_not_cards() -> None:
    # 3 tasks: leaf a has three nodes with 3 cards together, leaf b one with 8, of which 5 stay idle
    nodes = [*rack("a", 1, 1, 1), *rack("b", 8)]
    assert solve(nodes, group(3), rule=TREE) == [{"w": ["b-0"] * 3}]
    assert racks(solve(nodes, group(3, required="rack"))[0]["w"]) == ["a"] * 3


def test_nodes_without_room_do_not_count() -> None:
    # a has two nodes, one of them full, so one that is usable; b has two
    busy = runs("busy", "a-0", (0, 1))
    assert solve([*rack("b", 2, 2), *rack("a", 2, 2)], busy, group(2), rule=TREE)[0] == {"w": ["a-1", "a-1"]}


def test_a_leaf_that_holds_all_comes_before_any_wider_switch() -> None:
    # zone y has 3 nodes and would be the tighter zone, but no leaf of it holds 3; leaf a of zone z does
    nodes = [*rack("c", 1, 1, zone="y"), *rack("d", 1, zone="y"), *rack("a", 1, 1, 1, 1), *rack("b", 1)]
    assert racks(solve(nodes, group(3), rule=TREE)[0]["w"]) == ["a"] * 3


def test_the_lowest_switch_that_holds_all_is_left_with_fewest_leaves() -> None:
    # 6 nodes: no leaf has them. Zone z has leaves of 3, 2 and 4: the one with most, 4, and then 2 are left, for which b
    # is the tightest. Zone y has 10 nodes in ones.
    nodes = [
        *(node for name in "defghklmno" for node in rack(name, 1, zone="y")),
        *rack("a", 1, 1, 1),
        *rack("b", 1, 1),
        *rack("c", 1, 1, 1, 1),
    ]
    assert Counter(racks(solve(nodes, group(6), rule=TREE)[0]["w"])) == {"c": 4, "b": 2}


def test_where_no_switch_below_the_root_holds_all_the_largest_comes_first() -> None:
    # 7 nodes: zone z has 4, y has 5 and x has 2. First y, the largest; x holds the other two more tightly than z.
    nodes = [*rack("a", 1, 1, 1, 1), *rack("b", 1, 1, 1, 1, 1, zone="y"), *rack("c", 1, 1, zone="x")]
    assert Counter(racks(solve(nodes, group(7), rule=TREE)[0]["w"])) == {"b": 5, "c": 2}


def test_nodes_of_a_leaf_are_filled_in_order() -> None:
    # kueue would take the node with 3 cards alone
    assert solve(rack("a", 1, 2, 3), group(3), rule=TREE) == [{"w": ["a-0", "a-1", "a-1"]}]


def test_a_required_leaf_is_waited_for() -> None:
    nodes = [*rack("a", 1, 1), *rack("b", 1)]
    assert solve(nodes, group(3, required="rack"), rule=TREE) == [{}]
    assert len(solve(nodes, group(3), rule=TREE)[0]["w"]) == 3


@pytest.mark.parametrize("rule", [TREE, BLOCK])
def test_a_node_below_no_switch_takes_nothing(rule: str) -> None:
    nodes: list[Node] = [cards("loose", 1), *rack("a", 1)]
    snapshot = Snapshot(topology=("zone", "rack"), nodes=tuple(nodes), jobs=(group(1),))
    assert spots(rule, snapshot) == {"j": [("a-0", [0])]}


@pytest.mark.parametrize("rule", [TREE, BLOCK])
def test_without_levels_nodes_are_filled_in_order(rule: str) -> None:
    snapshot = Snapshot(nodes=(cards("a", 1), cards("b", 2)), jobs=(group(2),))
    assert spots(rule, snapshot) == {"j": [("a", [0]), ("b", [0])]}


def test_tasks_beyond_the_minimum_take_what_is_there() -> None:
    # two must start and fit in a; the third of three finds room in b alone
    job = one(TaskGroup(name="w", count=3, min_count=2, task=CARD))
    assert solve([*rack("b", 1), *rack("a", 1, 1)], job, rule=TREE) == [{"w": ["a-0", "a-1", "b-0"]}]


# --- block ---------------------------------------------------------------------------------------------------


def test_of_equal_blocks_it_is_the_last() -> None:
    # base blocks of 3, 2 and 2 nodes: the job of 2 nodes takes a whole block, the last of the two that leave none
    nodes = [*rack("a", 1, 1, 1), *rack("b", 1, 1), *rack("c", 1, 1)]
    assert solve(nodes, group(2), rule=BLOCK) == [{"w": ["c-0", "c-1"]}]
    assert solve(nodes, group(2), rule=TREE) == [{"w": ["b-0", "b-1"]}]


def test_a_job_that_one_block_could_hold_waits_for_it() -> None:
    # Base blocks have 2 nodes, so a job of 2 belongs into one of them; each has one node left. The tree takes both.
    busy = runs("k", "a-0", (0,)), runs("l", "b-1", (0,))
    nodes = [*rack("a", 1, 1), *rack("b", 1, 1)]
    assert solve(nodes, *busy, group(2), rule=BLOCK)[0] == {}
    assert solve(nodes, *busy, group(2), rule=TREE)[0] == {"w": ["a-1", "b-0"]}


def test_a_larger_job_takes_whole_base_blocks_of_one_block() -> None:
    # 5 nodes are more than any base block has, and no more than a zone. Zone z has 2 + 3 + 1 of them, y only 4.
    # The one with most comes first, 3; 2 are left, and a is the block with fewest that holds them.
    nodes = [
        *rack("d", 1, 1, zone="y"),
        *rack("e", 1, 1, zone="y"),
        *rack("a", 1, 1),
        *rack("b", 1, 1, 1),
        *rack("c", 1),
    ]
    assert Counter(racks(solve(nodes, group(5), rule=BLOCK)[0]["w"])) == {"b": 3, "a": 2}


def test_a_job_larger_than_all_blocks_uses_the_cluster() -> None:
    # 5 nodes, zones of 3 and 3: the last of the largest is filled, and the other holds the two that are left
    nodes = [*rack("a", 1, 1, 1), *rack("b", 1, 1, 1, zone="y")]
    assert Counter(racks(solve(nodes, group(5), rule=BLOCK)[0]["w"])) == {"b": 3, "a": 2}


def test_nodes_are_reckoned_by_what_one_has_room_for() -> None:
    # 4 tasks of 2 cards on nodes of 4 are 2 nodes, which a base block of 2 holds
    job = one(TaskGroup(name="w", count=4, task=Task(gpus=2)))
    nodes = [*rack("a", 4, 4), *rack("b", 4, 4)]
    assert solve(nodes, job, rule=BLOCK) == [{"w": ["b-0", "b-0", "b-1", "b-1"]}]


def test_slices_are_segments_each_in_a_block_of_its_own() -> None:
    # three segments of 2 nodes: a holds one and a node more, b one, c one; none may lie in two blocks
    job = group(6, slices=(Slice(level="rack", sizes=(2,)),))
    nodes = [*rack("a", 1, 1, 1), *rack("b", 1, 1), *rack("c", 1, 1)]
    assert Counter(racks(solve(nodes, job, rule=BLOCK)[0]["w"])) == {"a": 2, "b": 2, "c": 2}


@pytest.mark.parametrize("rule", [TREE, BLOCK])
def test_its_plans_pass_the_check(rule: str) -> None:
    @settings(max_examples=60, deadline=None)
    @given(some_snapshots())
    def passes(snapshot: Snapshot) -> None:
        judge(rule, snapshot)

    passes()
