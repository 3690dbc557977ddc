"""HiveD's buddy cells, on clusters small enough to count by hand."""

from __future__ import annotations

from hypothesis import given, settings
from rule_cases import asks, cards, judge, runs, some_snapshots, spots
from tied_cases import rack

from placement.snapshot import Gpu, Job, Link, Node, Snapshot, Task, TaskGroup, Topology

RULE = "hived-buddy"


def chosen(nodes: list[Node], *jobs: Job, rule: str = RULE) -> list[tuple[str, list[int]]]:
    """Return node and cards of each task, in order."""
    places = spots(rule, Snapshot(topology=("zone", "rack"), nodes=tuple(nodes), jobs=jobs))
    return [place for job in jobs for place in places.get(job.name, [])]


def test_small_tasks_are_buddies_and_large_cells_stay_free() -> None:
    # Cards 0 and 1 are the halves of one pair. 2 then breaks the free cell of two, {2, 3}; 4 takes {4, …, 7}.
    jobs = asks("a", 1), asks("b", 1), asks("c", 2), asks("d", 4)
    assert chosen([cards("n", 8)], *jobs) == [("n", [0]), ("n", [1]), ("n", [2, 3]), ("n", [4, 5, 6, 7])]


def test_the_smallest_free_cell_is_halved() -> None:
    # In use: 0 and 5. Free cells: {1}, {2, 3}, {4}, {6, 7}. Single cards take 1, then 4, then both of {2, 3}.
    busy = runs("x", "n", (0,)), runs("y", "n", (5,))
    jobs = [asks(name, 1) for name in "abcd"]
    assert chosen([cards("n", 8)], *busy, *jobs) == [("n", [1]), ("n", [4]), ("n", [2]), ("n", [3])]
    # first fit does not look at which cards go together
    pair = asks("p", 2)
    assert chosen([cards("n", 8)], *busy, pair) == [("n", [2, 3])]
    assert chosen([cards("n", 8)], *busy, pair, rule="first-fit") == [("n", [1, 2])]


def test_the_node_with_the_smallest_free_cell_is_taken() -> None:
    # For two cards: "whole" is a cell of 4; "odd", where 1 and 2 are in use, has no cell; "half" has {2, 3}.
    busy = runs("x", "odd", (1,)), runs("y", "odd", (2,)), runs("z", "half", (0, 1))
    nodes = [cards("whole", 4), cards("odd", 4), cards("half", 4)]
    assert chosen(nodes, *busy, asks("p", 2)) == [("half", [2, 3])]
    assert chosen(nodes, *busy, asks("p", 2), rule="first-fit") == [("whole", [0, 1])]
    # without "half" a free cell that is larger comes before cards that are no cell
    assert chosen(nodes[:2], *busy[:2], asks("p", 2)) == [("whole", [0, 1])]
    assert chosen(nodes[1:2], *busy[:2], asks("p", 2)) == [("odd", [0, 3])]


def test_a_node_of_a_broken_rack_comes_before_one_of_a_whole_rack() -> None:
    # Rack a: two free nodes, a cell of 8 cards. Rack b: one node in use, so b-1 is a cell of 4. Rack c: one node of 4,
    # a cell of 4 and after b-1 in the file.
    busy = runs("x", "b-0", (0,))
    nodes = [*rack("a", 4, 4), *rack("b", 4, 4, zone="y"), *rack("c", 4, zone="x")]
    assert chosen(nodes, busy, asks("p", 4), asks("q", 4), asks("r", 4)) == [
        ("b-1", [0, 1, 2, 3]),
        ("c-0", [0, 1, 2, 3]),
        ("a-0", [0, 1, 2, 3]),
    ]
    for other in ("first-fit", "kube-most-allocated"):
        assert chosen(nodes, busy, asks("p", 4), rule=other) == [("a-0", [0, 1, 2, 3])]


def test_a_zone_is_a_cell_of_all_its_racks() -> None:
    # Zone z is free, 2 racks of 4: 8 cards. Zone y has one rack in use, so its other rack is a cell of 6.
    busy = runs("x", "c-0", (0, 1))
    nodes = [*rack("a", 4), *rack("b", 4), *rack("c", 2, zone="y"), *rack("d", 6, zone="y")]
    assert chosen(nodes, busy, asks("p", 2)) == [("d-0", [0, 1])]


def test_sizes_that_are_no_power_of_two() -> None:
    # 3 cards need a cell of 4, of which one stays free; 5 need one of 8. A node of 6 has cells {0, …, 3} and {4, 5}.
    assert chosen([cards("n", 8)], asks("p", 3), asks("q", 1)) == [("n", [0, 1, 2]), ("n", [3])]
    assert chosen([cards("n", 8)], asks("p", 5)) == [("n", [0, 1, 2, 3, 4])]
    assert chosen([cards("n", 6)], asks("p", 1), asks("q", 2)) == [("n", [0]), ("n", [2, 3])]
    assert chosen([cards("n", 6)], runs("x", "n", (0,)), asks("q", 2)) == [("n", [2, 3])]


def test_shares_fill_a_card_in_use_before_a_cell_is_broken() -> None:
    busy = runs("x", "b", (1,), share=0.5)
    assert chosen([cards("a", 1), cards("b", 2)], busy, asks("p", 1, share=0.5)) == [("b", [1])]
    assert chosen([cards("a", 2), cards("b", 1)], asks("p", 1, share=0.5)) == [("b", [0])]


def test_unhealthy_cards_are_in_no_free_cell() -> None:
    gpus = (Gpu(model="A", count=1, health="unhealthy"), Gpu(model="A", count=3))
    assert chosen([Node(name="n", gpus=gpus)], asks("p", 2), asks("q", 1)) == [("n", [2, 3]), ("n", [1])]


def test_tasks_without_cards_take_the_first_node() -> None:
    assert chosen([cards("a", 2), cards("b", 0)], asks("p", 0)) == [("a", [])]


def test_cells_are_by_device_index_whatever_the_order_inside() -> None:
    # 3 of two nodes is half in use, so the engine lists it first; 0 and 1 are still the first pair
    busy = runs("x", "n", (3,), share=0.5)
    assert chosen([cards("n", 4)], busy, asks("p", 2), asks("q", 1)) == [("n", [0, 1]), ("n", [2])]


def test_a_tied_group_goes_to_the_domain_with_fewest_idle_cards() -> None:
    group = TaskGroup(name="g", count=2, task=Task(gpus=4), topology=Topology(required="rack"))
    nodes = [*rack("a", 4, 4, 4), *rack("b", 4, 4)]
    assert chosen(nodes, Job(name="j", groups=(group,))) == [("b-0", [0, 1, 2, 3]), ("b-1", [0, 1, 2, 3])]


# --- the source's own example (microsoft/hivedscheduler, MIT, pkg/algorithm/hived_algorithm_test.go), re-expressed ---


def test_three_guaranteed_pods_on_one_node_of_sixteen_cards() -> None:
    # pods of 1, 1 and 8 cards in this order: beside one another, and the other half of the node
    jobs = asks("pod1", 1), asks("pod2", 1), asks("pod3", 8)
    assert chosen([cards("n", 16)], *jobs) == [("n", [0]), ("n", [1]), ("n", [8, 9, 10, 11, 12, 13, 14, 15])]


def test_paths_may_change_the_cards_of_a_plan_and_not_those_of_the_rule() -> None:
    # 0 and 1 are the first pair; the path between 1 and 3 is better, which is looked at when the plan is named
    links = (Link(a=1, b=3, kind="NVLINK", width=2),)
    assert chosen([cards("n", 4, links=links)], asks("p", 2)) == [("n", [0, 1])]


@settings(max_examples=60, deadline=None)
@given(some_snapshots())
def test_its_plans_pass_the_check(snapshot: Snapshot) -> None:
    judge(RULE, snapshot)
