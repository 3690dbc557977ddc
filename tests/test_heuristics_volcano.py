"""Volcano's hypernode bin-packing, on clusters small enough to count by hand."""

from __future__ import annotations

from hypothesis import given, settings
from rule_cases import cards, judge, runs, some_snapshots, spots
from tied_cases import CARD, one, rack, racks, solve

from placement.snapshot import Job, Node, Snapshot, Task, TaskGroup, Topology

RULE = "volcano-hypernode"


def test_a_group_goes_to_the_domain_that_it_fills_most() -> None:
    # Rack a has 4 cards, all free; b has 8, of which 4 are free. With the group of 3 cards in it
    #   a: (0 + 3) / 4 = 0.75      b: (4 + 3) / 8 = 0.875
    busy = runs("busy", "b-0", (0, 1, 2, 3))
    tied = TaskGroup(name="w", count=3, task=CARD, topology=Topology(required="rack"))
    nodes = [*rack("a", 4), *rack("b", 8)]
    assert racks(solve(nodes, busy, one(tied), rule=RULE)[0]["w"]) == ["b"] * 3
    for other in ("first-fit", "kueue-tas-best-fit", "slurm-tree-best-fit", "kube-least-allocated"):
        assert racks(solve(nodes, busy, one(tied), rule=other)[0]["w"]) == ["a"] * 3


def test_hard_mode_tries_narrow_domains_before_the_one_that_is_allowed() -> None:
    # 4 tasks in one zone: zone z holds 4 in two racks, zone y in one. Of the racks d alone holds all.
    tied = TaskGroup(name="w", count=4, task=CARD, topology=Topology(required="zone"))
    nodes = [*rack("a", 2), *rack("b", 2), *rack("d", 6, zone="y")]
    assert racks(solve(nodes, one(tied), rule=RULE)[0]["w"]) == ["d"] * 4
    assert racks(solve(nodes, one(tied))[0]["w"]) == ["a", "a", "b", "b"]


def test_hard_mode_does_not_go_beyond_the_domain_that_is_allowed() -> None:
    # 5 tasks: racks of 3 and 3 hold them together, and the zone would do, but a rack is required
    tied = TaskGroup(name="w", count=5, task=CARD, topology=Topology(required="rack"))
    wish = TaskGroup(name="w", count=5, task=CARD, topology=Topology(preferred="rack"))
    nodes = [*rack("a", 3), *rack("b", 3)]
    assert solve(nodes, one(tied), rule=RULE) == [{}]
    assert racks(solve(nodes, one(wish), rule=RULE)[0]["w"]) == ["a", "a", "a", "b", "b"]


def test_soft_mode_climbs_to_the_zone_that_it_fills_most() -> None:
    # 5 tasks: no rack holds them. Zone z has 6 cards, all free: 5 / 6 = 0.83. Zone y has 8 of which 6 are free:
    # (2 + 5) / 8 = 0.875. Within y rack c has 2 of 4 in use, so its score for one task is (2 + 1) / 4, that of d 1 / 4.
    busy = runs("busy", "c-0", (0, 1))
    wish = TaskGroup(name="w", count=5, task=CARD, topology=Topology(preferred="rack"))
    nodes = [*rack("a", 3), *rack("b", 3), *rack("d", 4, zone="y"), *rack("c", 4, zone="y")]
    places = solve(nodes, busy, one(wish), rule=RULE)[0]["w"]
    assert racks(places) == ["c", "c", "d", "d", "d"]
    assert set(racks(solve(nodes, busy, one(wish))[0]["w"])) == {"a", "b"}


def test_all_resources_that_are_asked_for_count_alike() -> None:
    # Two tasks of 1 card and 4 CPUs.
    #   a: cards 2 / 4 = 0.5, CPU 8 / 8 = 1: 0.75      b: cards 2 / 2 = 1, CPU 8 / 32 = 0.25: 0.625
    tied = TaskGroup(name="w", count=2, task=Task(gpus=1, cpu=4), topology=Topology(required="rack"))
    assert racks(solve([*rack("b", 2, cpu=32), *rack("a", 4, cpu=8)], one(tied), rule=RULE)[0]["w"]) == ["a", "a"]


def test_a_free_task_goes_where_its_domains_are_fullest() -> None:
    # Racks of two nodes with 2 cards each, b-0 is full. Zone: (2 + 1) / 8 for all.
    #   rack a: (0 + 1) / 4 = 0.25      rack b: (2 + 1) / 4 = 0.75
    # After it b: (3 + 1) / 4 = 1, and then only a has room.
    busy = runs("busy", "b-0", (0, 1))
    jobs = tuple(Job(name=name, groups=(TaskGroup(name="w", task=CARD),)) for name in "klm")
    nodes = [*rack("a", 2, 2), *rack("b", 2, 2)]
    places = solve(nodes, busy, *jobs, rule=RULE)
    assert [one["w"] for one in places[:3]] == [["b-1"], ["b-1"], ["a-0"]]
    assert solve(nodes, busy, *jobs, rule="kube-most-allocated")[0]["w"] == ["a-0"]


def test_narrow_domains_weigh_more_than_wide_ones() -> None:
    # One task. Zone z has racks a (4 cards, none in use) and b (4, full), zone y has c (4, 3 in use) and d (12, none).
    #   a: 1 / 4 and (4 + 1) / 8: (0.25 + 0.8 * 0.625) / 1.8 = 0.417
    #   c: 4 / 4 and (3 + 1) / 16: (1 + 0.8 * 0.25) / 1.8 = 0.667      d: 1 / 12 and the same: 0.157
    busy = runs("b", "b-0", (0, 1, 2, 3)), runs("c", "c-0", (0, 1, 2))
    nodes = [*rack("a", 4), *rack("b", 4), *rack("d", 12, zone="y"), *rack("c", 4, zone="y")]
    assert solve(nodes, *busy, one(TaskGroup(name="w", task=CARD)), rule=RULE)[0] == {"w": ["c-0"]}


def test_a_free_task_prefers_a_node_that_is_in_no_hypernode() -> None:
    nodes: list[Node] = [*rack("a", 2), cards("loose", 2)]
    snapshot = Snapshot(topology=("zone", "rack"), nodes=tuple(nodes), jobs=(one(TaskGroup(name="w", task=CARD)),))
    assert spots(RULE, snapshot) == {"j": [("loose", [0])]}


def test_nodes_without_a_limit_keep_a_resource_out_of_the_score() -> None:
    # CPU is unlimited in a, so cards decide: a 1 / 2, b (1 / 4 + 1 / 1) / 2 = 0.625
    tied = TaskGroup(name="w", task=Task(gpus=1, cpu=1), topology=Topology(required="rack"))
    assert solve([*rack("a", 2), *rack("b", 4, cpu=1)], one(tied), rule=RULE) == [{"w": ["b-0"]}]


# --- what the source's tests expect (volcano-sh/volcano, Apache-2.0, pkg/scheduler/actions/allocate), re-expressed ---


def test_two_pods_in_hard_mode_share_the_leaf_with_room_for_both() -> None:
    # two leaves of two nodes with 2 CPUs each below one root; each pod takes a node
    tied = TaskGroup(name="w", count=2, task=Task(cpu=2), topology=Topology(required="rack"))
    (places,) = solve([*rack("s0", 0, 0, cpu=2), *rack("s1", 0, 0, cpu=2)], one(tied), rule=RULE)
    assert len(set(racks(places["w"]))) == 1


def test_three_pods_in_soft_mode_use_both_leaves() -> None:
    wish = TaskGroup(name="w", count=3, task=Task(cpu=2), topology=Topology(preferred="rack"))
    (places,) = solve([*rack("s0", 0, 0, cpu=2), *rack("s1", 0, 0, cpu=2)], one(wish), rule=RULE)
    assert sorted(map(racks(places["w"]).count, ("s0", "s1"))) == [1, 2]


@settings(max_examples=60, deadline=None)
@given(some_snapshots())
def test_its_plans_pass_the_check(snapshot: Snapshot) -> None:
    judge(RULE, snapshot)
