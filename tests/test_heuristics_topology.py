"""Gangs with ties under greedy rules, on clusters small enough to count by hand."""

from __future__ import annotations

from collections import Counter

import pytest
from msgspec.structs import replace
from tied_cases import CARD, CPU, one, rack, racks, solve

from placement.compile import compile as compile_snapshot
from placement.heuristics import HEURISTICS
from placement.instance import Assignment
from placement.snapshot import Affinity, Gpu, Job, Node, Slice, Snapshot, Spread, Task, TaskGroup, Topology
from placement.solver import Limits, Stop

# --- required and preferred -----------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [rule for rule in HEURISTICS if not rule.startswith(("kueue", "slurm-tree"))])
def test_leader_and_workers_share_a_rack(rule: str) -> None:
    # A replica is a leader without a card and three workers with one each. Cards: a 2, b 4, c 3. The workers fit in b
    # and in c; c has fewer idle cards. The second replica finds a 2, b 4, c 0, and only b holds it.
    pod = (TaskGroup(name="leader", task=CPU), TaskGroup(name="w", count=3, task=CARD))
    tied = TaskGroup(name="pod", groups=pod, topology=Topology(required="rack"))
    nodes = [*rack("a", 2, cpu=9), *rack("b", 2, 2, cpu=9), *rack("c", 1, 2, cpu=9)]
    (places,) = solve(nodes, one(TaskGroup(name="r", count=2, groups=(tied,))), rule=rule)
    assert racks(places["r/pod/leader"]) == ["c", "b"]
    assert racks(places["r/pod/w"]) == ["c", "c", "c", "b", "b", "b"]


def test_what_no_domain_holds_waits_and_leaves_nothing_behind() -> None:
    # 2 + 2 cards: the three that must share a rack do not start, and the pair after them takes what it likes
    tied = TaskGroup(name="w", count=3, task=CARD, topology=Topology(required="rack"))
    nodes = [*rack("a", 2), *rack("b", 2)]
    assert solve(nodes, one(tied), Job(name="k", groups=(TaskGroup(name="w", count=4, task=CARD),))) == [
        {},
        {"w": ["a-0", "a-0", "b-0", "b-0"]},
    ]


def test_idle_cards_that_no_task_can_use_are_no_room() -> None:
    # rack a has 4 idle cards, 1 on each node, and no room for a task of 2; b has 6, for 3 tasks
    tied = TaskGroup(name="w", count=2, task=Task(gpus=2), topology=Topology(required="rack"))
    (places,) = solve([*rack("a", 1, 1, 1, 1), *rack("b", 2, 4)], one(tied))
    assert places["w"] == ["b-0", "b-1"]


def test_a_node_outside_all_domains_takes_no_tied_task() -> None:
    loose = Node(name="loose", gpus=(Gpu(model="A", count=8),))
    tied = TaskGroup(name="w", task=CARD, topology=Topology(required="rack"))
    assert solve([loose, *rack("a", 1)], one(tied)) == [{"w": ["a-0"]}]


def test_preferring_a_narrow_domain_still_finds_the_wide_one() -> None:
    # 3 tasks: no rack holds more than 2 cards, zone y holds 2 + 2. 2 tasks: rack a of zone z, the first with 2.
    nodes = [*rack("a", 2), *rack("b", 2, zone="y"), *rack("c", 2, zone="y")]
    for count, expected in ((2, ["a", "a"]), (3, ["b", "b", "c"]), (5, ["a", "a", "b", "b", "c"])):
        wish = TaskGroup(name="w", count=count, task=CARD, topology=Topology(preferred="rack"))
        (places,) = solve(nodes, one(wish))
        assert racks(places["w"]) == expected
    # with the zone required five tasks find no room
    must = TaskGroup(name="w", count=5, task=CARD, topology=Topology(preferred="rack", required="zone"))
    assert solve(nodes, one(must)) == [{}]


def test_growth_stays_in_the_domain() -> None:
    # two of five must run: rack a (3 cards) is the tighter of both, and a third task fits there
    tied = TaskGroup(name="w", count=5, min_count=2, task=CARD, topology=Topology(required="rack"))
    assert solve([*rack("b", 4), *rack("a", 3)], one(tied)) == [{"w": ["a-0"] * 3}]


def test_growth_goes_beyond_what_is_preferred_but_not_beyond_what_is_required() -> None:
    # two of eight must run and prefer a rack: the other six fill its 4 cards and the 4 of the next rack
    wish = TaskGroup(name="w", count=8, min_count=2, task=CARD, topology=Topology(preferred="rack"))
    assert solve([*rack("a", 4), *rack("b", 4)], one(wish)) == [{"w": ["a-0"] * 4 + ["b-0"] * 4}]
    # with the zone required rack c is out of reach
    both = replace(wish, topology=Topology(preferred="rack", required="zone"))
    nodes = [*rack("a", 2), *rack("c", 9, zone="y"), *rack("b", 2)]
    assert solve(nodes, one(both)) == [{"w": ["a-0"] * 2 + ["b-0"] * 2}]
    # and slices stay whole: one in each rack, where a third card is left over
    topology = Topology(preferred="rack", slices=(Slice(level="rack", sizes=(2,)),))
    assert solve([*rack("a", 3), *rack("b", 3)], one(replace(wish, topology=topology))) == [
        {"w": ["a-0"] * 2 + ["b-0"] * 2}
    ]


def test_members_and_their_tasks_grow_beyond_what_is_preferred() -> None:
    nodes = [*rack("a", 2), *rack("b", 2)]
    # four members of one task, of which one must run
    member = (TaskGroup(name="w", task=CARD),)
    wish = TaskGroup(name="g", count=4, min_count=1, groups=member, topology=Topology(preferred="rack"))
    assert solve(nodes, one(wish)) == [{"g/w": ["a-0"] * 2 + ["b-0"] * 2}]
    # one member of three tasks, of which one must run
    few = replace(wish, count=1, groups=(TaskGroup(name="w", count=3, min_count=1, task=CARD),))
    assert solve(nodes, one(few)) == [{"g/w": ["a-0"] * 2 + ["b-0"]}]


def test_a_start_is_kept_as_it_is() -> None:
    # job a has two of its three tasks; where a third may go is not known of it, and b takes what is left of the rack
    tied = TaskGroup(name="w", count=3, min_count=2, task=CARD, topology=Topology(required="rack"))
    jobs = (Job(name="a", groups=(tied,)), Job(name="b", groups=(replace(tied, count=2, min_count=1),)))
    instance = compile_snapshot(Snapshot(topology=("zone", "rack"), nodes=tuple(rack("a", 3)), jobs=jobs))
    start = Assignment.of([(0, 0, 0, 0, (0,)), (0, 0, 1, 0, (2,))])
    found = HEURISTICS["fgd"].solve(instance, objectives=(), limits=Limits(), start=start).assignment
    assert list(zip(found.job.tolist(), found.task.tolist(), found.cards.tolist(), strict=True)) == [
        (0, 0, 0),
        (0, 1, 2),
        (1, 0, 1),
    ]


def test_a_passed_deadline_leaves_no_part_of_a_tied_job() -> None:
    tied = TaskGroup(name="w", count=3, task=CARD, topology=Topology(required="rack"))
    snapshot = Snapshot(topology=("zone", "rack"), nodes=tuple(rack("a", 3)), jobs=(one(tied),))
    result = HEURISTICS["fgd"].solve(compile_snapshot(snapshot), objectives=(), limits=Limits(deadline=0.0))
    assert (len(result.assignment), result.stop) == (0, Stop.TIME)


# --- slices ---------------------------------------------------------------------------------------------------


def test_slices_of_four_over_racks() -> None:
    # Cards: a 6, b 8, c 5. Three slices of 4: a holds one, b two, c one. b holds most of the three left; the last one
    # then fits in a (6) and in c (5), and c has fewer idle cards.
    tied = TaskGroup(name="w", count=12, task=CARD, topology=Topology(slices=(Slice(level="rack", sizes=(4,)),)))
    (places,) = solve([*rack("a", 3, 3), *rack("b", 4, 4), *rack("c", 5)], one(tied))
    assert racks(places["w"]) == ["b"] * 8 + ["c"] * 4


def test_slices_within_slices() -> None:
    # Slices of 4 in racks are made of slices of 2 on nodes. Rack a has 6 cards in threes, so 2 nodes of one pair each;
    # rack b has 5 as 1 + 4, so a pair on its first node finds no room and both are on the second.
    topology = Topology(slices=(Slice(level="rack", sizes=(4,)), Slice(level="node", sizes=(2,))))
    tied = TaskGroup(name="w", count=8, task=CARD, topology=topology)
    (places,) = solve([*rack("a", 3, 3), *rack("b", 1, 4)], one(tied))
    assert places["w"] == ["b-1"] * 4 + ["a-0"] * 2 + ["a-1"] * 2


def test_unequal_slices() -> None:
    # 1 + 3 + 4 tasks in three nodes of 4, 3 and 1 cards, and none of the slices may be torn
    topology = Topology(slices=(Slice(level="node", sizes=(1, 3, 4)),))
    tied = TaskGroup(name="w", count=8, task=CARD, topology=topology)
    assert solve(rack("a", 4, 3, 1), one(tied)) == [{"w": ["a-2"] + ["a-1"] * 3 + ["a-0"] * 4}]


def test_whole_slices_grow() -> None:
    # 4 of 12 must run. Racks of 4 and 5 cards: a second slice grows, and a third finds 1 card and is left out.
    topology = Topology(slices=(Slice(level="rack", sizes=(4,)),))
    tied = TaskGroup(name="w", count=12, min_count=4, task=CARD, topology=topology)
    (places,) = solve([*rack("a", 5), *rack("b", 4)], one(tied))
    assert racks(places["w"]) == ["b"] * 4 + ["a"] * 4
    # 6 of 12 must run: the slice that is begun takes what fits of it
    tied = TaskGroup(name="w", count=12, min_count=5, task=CARD, topology=topology)
    (places,) = solve([*rack("a", 3), *rack("b", 4)], one(tied))
    assert racks(places["w"]) == ["b"] * 4 + ["a"] * 3


def test_slices_of_whole_members() -> None:
    # A member is a leader without a card and two workers; a slice of 6 is two members. Each rack holds the workers
    # of two members.
    member = (TaskGroup(name="l", task=CPU), TaskGroup(name="w", count=2, task=CARD))
    topology = Topology(slices=(Slice(level="rack", sizes=(6,)),))
    tied = TaskGroup(name="g", count=4, groups=member, topology=topology)
    (places,) = solve([*rack("a", 3, cpu=9), *rack("b", 4, cpu=9), *rack("c", 5, cpu=9)], one(tied))
    assert racks(places["g/l"]) == ["b", "b", "c", "c"]
    assert racks(places["g/w"]) == ["b"] * 4 + ["c"] * 4


# --- balance and spread ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", HEURISTICS)
def test_eight_and_eight_and_not_fifteen_and_one(rule: str) -> None:
    # Two racks of 15 cards. One rack does not hold 16 tasks, so they go to two, 8 each.
    tied = TaskGroup(name="w", count=16, task=CARD, topology=Topology(balanced="rack"))
    (places,) = solve([*rack("a", 8, 7), *rack("b", 15)], one(tied), rule=rule)
    assert Counter(racks(places["w"])) == {"a": 8, "b": 8}


def test_balance_in_units_of_slices() -> None:
    # 5 slices of 2 over racks of 7 and 6 cards: 3 slices and 2, which differ by one slice
    topology = Topology(balanced="rack", slices=(Slice(level="node", sizes=(2,)),))
    tied = TaskGroup(name="w", count=10, task=CARD, topology=topology)
    (places,) = solve([*rack("a", 4, 2), *rack("b", 7)], one(tied))
    assert racks(places["w"]) == ["b"] * 4 + ["a"] * 6


def test_balance_of_members() -> None:
    # 4 members of 2 tasks: racks of 5 cards hold 2 members each
    tied = TaskGroup(
        name="g", count=4, groups=(TaskGroup(name="w", count=2, task=CARD),), topology=Topology(balanced="rack")
    )
    (places,) = solve([*rack("a", 5), *rack("b", 5)], one(tied))
    assert Counter(racks(places["g/w"])) == {"a": 4, "b": 4}


def test_a_balanced_group_takes_as_many_as_lie_evenly() -> None:
    # Two racks of 3 cards hold 3 + 3 of 8 tasks. Of racks with 4 and 1 the first holds 4 by itself, both 1 + 2 at most.
    tied = TaskGroup(name="w", count=8, min_count=2, task=CARD, topology=Topology(balanced="rack"))
    (places,) = solve([*rack("a", 3), *rack("b", 3)], one(tied))
    assert Counter(racks(places["w"])) == {"a": 3, "b": 3}
    assert solve([*rack("a", 4), *rack("b", 1)], one(tied)) == [{"w": ["a-0"] * 4}]


def test_a_balanced_group_takes_as_many_slices_as_lie_evenly() -> None:
    # slices of 2 on nodes: two in rack a and one in rack b differ by one slice
    topology = Topology(balanced="rack", slices=(Slice(level="node", sizes=(2,)),))
    tied = TaskGroup(name="w", count=8, min_count=2, task=CARD, topology=topology)
    (places,) = solve([*rack("a", 2, 2), *rack("b", 3)], one(tied))
    assert Counter(racks(places["w"])) == {"a": 4, "b": 2}


def test_a_balanced_group_takes_as_many_members_as_lie_evenly() -> None:
    # Members of 2 tasks: racks of 6 and 4 cards hold 3 and 2, which differ by 2 tasks; 2 and 2 do not.
    member = (TaskGroup(name="w", count=2, task=CARD),)
    tied = TaskGroup(name="g", count=8, min_count=1, groups=member, topology=Topology(balanced="rack"))
    (places,) = solve([*rack("a", 6), *rack("b", 4)], one(tied))
    assert Counter(racks(places["g/w"])) == {"a": 4, "b": 4}


def test_spread_by_most_in_a_domain() -> None:
    spread = (Spread(level="rack", max_per_domain=2),)
    tied = TaskGroup(name="w", count=5, min_count=1, task=CARD, topology=Topology(spread=spread))
    (places,) = solve([*rack("a", 4), *rack("b", 2, 2)], one(tied))
    assert racks(places["w"]) == ["a", "a", "b", "b"]


def test_spread_by_fewest_domains() -> None:
    # first one task in each of three racks, then first fit goes on in the first; four racks there are not
    nodes = [*rack("a", 4), *rack("b", 4), *rack("c", 4)]
    for fewest, expected in ((3, ["a", "b", "c", "a", "a"]), (4, [])):
        spread = (Spread(level="rack", min_domains=fewest),)
        tied = TaskGroup(name="w", count=5, task=CARD, topology=Topology(spread=spread))
        (places,) = solve(nodes, one(tied))
        assert racks(places.get("w", [])) == expected


def test_slices_are_spread() -> None:
    # two slices of 2 in nodes, in two racks at least: rack a alone would hold both
    topology = Topology(slices=(Slice(level="node", sizes=(2,)),), spread=(Spread(level="rack", min_domains=2),))
    tied = TaskGroup(name="w", count=4, task=CARD, topology=topology)
    (places,) = solve([*rack("a", 2, 2), *rack("b", 3)], one(tied))
    assert places["w"] == ["a-0", "a-0", "b-0", "b-0"]


# --- affinity -------------------------------------------------------------------------------------------------


def test_groups_together_share_a_domain_for_each_member() -> None:
    # a member is a task of 2 cards and two of 1: 4 cards, so rack b and rack c, which is tighter, hold one each
    member = (TaskGroup(name="a", task=Task(gpus=2)), TaskGroup(name="b", count=2, task=CARD))
    nodes = [*rack("a", 3), *rack("b", 3, 2), *rack("c", 4)]
    job = one(
        TaskGroup(name="g", count=2, groups=member),
        affinity=(Affinity(a="g/a", b="g/b", level="rack", kind="together"),),
    )
    (places,) = solve(nodes, job)
    assert racks(places["g/a"]) == ["c", "b"]
    assert racks(places["g/b"]) == ["c", "c", "b", "b"]


@pytest.mark.parametrize("rule", HEURISTICS)
def test_groups_apart_share_none(rule: str) -> None:
    # Spread over both racks the first group would leave none to the second: then it is kept in one of them.
    groups = (TaskGroup(name="a", count=2, task=CARD), TaskGroup(name="b", count=2, task=CARD))
    job = one(*groups, affinity=(Affinity(a="a", b="b", level="rack", kind="apart"),))
    (places,) = solve([*rack("a", 2, 1), *rack("b", 1, 2)], job, rule=rule)
    a, b = set(racks(places["a"])), set(racks(places["b"]))
    assert len(places["a"]) == len(places["b"]) == 2
    assert not a & b
