"""Gangs with ties under greedy rules, on clusters small enough to count by hand."""

from __future__ import annotations

from collections import Counter

import pytest
from msgspec.structs import replace

from placement.compile import compile as compile_snapshot
from placement.heuristics import BY_NAME, HEURISTICS, PORTFOLIO
from placement.instance import Assignment
from placement.snapshot import (
    Affinity,
    Gpu,
    Job,
    Node,
    Running,
    RunningTask,
    Slice,
    Snapshot,
    Spread,
    Task,
    TaskGroup,
    Topology,
)
from placement.solver import Limits, Stop

CARD = Task(gpus=1)
CPU = Task(cpu=1)


def rack(name: str, *cards: int, zone: str = "z", cpu: float | None = None) -> list[Node]:
    """Return a node for each number of cards, called ``rack-0``, ``rack-1``, …."""
    return [
        Node(
            name=f"{name}-{i}",
            position={"zone": zone, "rack": name},
            cpu=cpu,
            gpus=(Gpu(model="A", count=n),) if n else (),
        )
        for i, n in enumerate(cards)
    ]


def solve(nodes: list[Node], *jobs: Job, rule: str = "first-fit") -> list[dict[str, list[str]]]:
    """Return the nodes of each group's placed tasks by their numbers, for each job."""
    snapshot = Snapshot(topology=("zone", "rack"), nodes=tuple(nodes), jobs=jobs)
    instance = compile_snapshot(snapshot)
    found: Assignment = HEURISTICS[rule].solve(instance, objectives=(), limits=Limits()).assignment
    places: list[dict[str, list[str]]] = [{} for _ in jobs]
    for row in range(len(found)):
        job = int(found.job[row])
        leaf = instance.job_classes[instance.job_class[job]].leaves[int(found.leaf[row])]
        places[job].setdefault(leaf.path, []).append(instance.node_name(int(found.node[row])))
    return places


def racks(places: list[str]) -> list[str]:
    return [name.split("-")[0] for name in places]


def one(group: TaskGroup, *more: TaskGroup, affinity: tuple[Affinity, ...] = ()) -> Job:
    return Job(name="j", groups=(group, *more), affinity=affinity)


# --- required and preferred -----------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [rule for rule in HEURISTICS if not rule.startswith("kueue")])
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
    assert racks(places["w"]) == ["a"] * 6 + ["b"] * 4 or racks(places["w"]) == ["b"] * 6 + ["a"] * 4


def test_balance_of_members() -> None:
    # 4 members of 2 tasks: racks of 5 cards hold 2 members each
    tied = TaskGroup(
        name="g", count=4, groups=(TaskGroup(name="w", count=2, task=CARD),), topology=Topology(balanced="rack")
    )
    (places,) = solve([*rack("a", 5), *rack("b", 5)], one(tied))
    assert Counter(racks(places["g/w"])) == {"a": 4, "b": 4}


def test_a_balanced_group_takes_the_count_or_the_minimum() -> None:
    # 6 tasks do not split evenly over 4 + 1 cards, the 3 that must run go to the first rack
    tied = TaskGroup(name="w", count=6, min_count=3, task=CARD, topology=Topology(balanced="rack"))
    assert solve([*rack("a", 4), *rack("b", 1)], one(tied)) == [{"w": ["a-0"] * 3}]


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


# --- rules of other schedulers --------------------------------------------------------------------------------


def test_kueue_takes_the_domain_with_least_room_that_fits() -> None:
    # Room for tasks of 2 cards: a 3, b 2 (of 5 cards), c 2 (of 4 cards). Two tasks fit in b and in c alike, and b is
    # first; by idle cards it would be c.
    tied = TaskGroup(name="w", count=2, task=Task(gpus=2), topology=Topology(required="rack"))
    nodes = [*rack("a", 6), *rack("b", 5), *rack("c", 4)]
    assert solve(nodes, one(tied), rule="kueue-tas-best-fit") == [{"w": ["b-0", "b-0"]}]
    assert solve(nodes, one(tied)) == [{"w": ["c-0", "c-0"]}]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        # 3 + 3 + 1: two with most room, and of what holds the last one the node with least room
        ("kueue-tas-best-fit", {"n-0": 3, "n-1": 3, "n-3": 1}),
        # 1 + 2 + 3 + 1: those with least room first
        ("kueue-tas-least-free", {"n-3": 1, "n-2": 2, "n-0": 3, "n-1": 1}),
    ],
)
def test_kueue_deals_out_to_nodes(rule: str, expected: dict[str, int]) -> None:
    # the example of Kueue's KEP-2724: nodes with room for 3, 3, 2 and 1, and 7 tasks that must share a rack
    tied = TaskGroup(name="w", count=7, task=CARD, topology=Topology(required="rack"))
    (places,) = solve(rack("n", 3, 3, 2, 1), one(tied), rule=rule)
    assert Counter(places["w"]) == expected


def test_kueue_deals_out_level_by_level() -> None:
    # 5 tasks prefer a rack. None holds 5, zone z holds 4 + 3 and zone y 4 + 4: z has less room. In it rack b (4) has
    # most room, and rack a holds the last one. In b the node of 3 is filled before that of 1.
    wish = TaskGroup(name="w", count=5, task=CARD, topology=Topology(preferred="rack"))
    nodes = [*rack("a", 3), *rack("b", 1, 3), *rack("c", 4, zone="y"), *rack("d", 4, zone="y")]
    (places,) = solve(nodes, one(wish), rule="kueue-tas-best-fit")
    assert Counter(places["w"]) == {"b-1": 3, "b-0": 1, "a-0": 1}


def test_kueue_without_a_level_looks_at_nodes_alone() -> None:
    # three tasks: of the nodes with 4, 3 and 2 cards one holds all with least room, whatever its rack
    free = TaskGroup(name="w", count=3, task=CARD)
    nodes = [*rack("a", 4), *rack("b", 3), *rack("c", 2)]
    for rule in ("kueue-tas-best-fit", "kueue-tas-least-free"):
        assert solve(nodes, one(free), rule=rule) == [{"w": ["b-0"] * 3}]
    # and four tasks, where a is gone: most room first, or least room first
    nodes = [*rack("b", 3), *rack("c", 2)]
    free = TaskGroup(name="w", count=4, task=CARD)
    assert solve(nodes, one(free), rule="kueue-tas-best-fit") == [{"w": ["b-0"] * 3 + ["c-0"]}]
    assert solve(nodes, one(free), rule="kueue-tas-least-free") == [{"w": ["c-0"] * 2 + ["b-0"] * 2}]


def test_kueue_fills_one_rack_with_slices_before_the_next() -> None:
    # Five slices of 2 cards over racks that hold 3, 3 and 2 of them: a is filled, and the last two fit in c and in b,
    # of which c has less room.
    topology = Topology(required="zone", slices=(Slice(level="rack", sizes=(2,)),))
    tied = TaskGroup(name="w", count=10, task=CARD, topology=topology)
    (places,) = solve([*rack("a", 6), *rack("b", 6), *rack("c", 4)], one(tied), rule="kueue-tas-best-fit")
    assert Counter(racks(places["w"])) == {"a": 6, "c": 4}


def test_kube_scheduler_scores_by_what_is_allocated() -> None:
    # The task asks for 2 of the CPUs and 1 card; memory is asked for by no task.
    #   small: 4 CPU and 2 cards, nothing runs     (50 + 50) / 2 = 50 allocated with it, 50 free
    #   large: 16 CPU and 8 cards, 4 and 1 in use  CPU 6 / 16 -> 37, cards 2 / 8 -> 25: 62 / 2 = 31, 62 + 75 -> 68 free
    #   third: 12 CPU and 1 card                   CPU 2 / 12 -> 16, card 100: 58 allocated, 83 + 0 -> 41 free
    def node(name: str, cpu: float, cards: int) -> Node:
        return Node(name=name, cpu=cpu, gpus=(Gpu(model="A", count=cards),))

    busy = Job(
        name="busy",
        groups=(TaskGroup(name="g", task=Task(gpus=1, cpu=4)),),
        running=Running(tasks=(RunningTask(group="g", index=0, node="large", gpus=(0,)),)),
    )
    nodes = (node("small", 4, 2), node("large", 16, 8), node("third", 12, 1))
    snapshot = Snapshot(nodes=nodes, jobs=(busy, one(TaskGroup(name="w", task=Task(gpus=1, cpu=2)))))
    instance = compile_snapshot(snapshot)
    for rule, expected in (("kube-most-allocated", "third"), ("kube-least-allocated", "large")):
        found = HEURISTICS[rule].solve(instance, objectives=(), limits=Limits()).assignment
        assert [instance.node_name(node) for node in found.node.tolist()] == [expected]


def test_equal_free_amounts_of_different_nodes_score_apart() -> None:
    # Both have 4 CPUs free. Of "full" 12 are in use: with the task 14 / 16 -> 87. Of "empty" none: 2 / 4 -> 50.
    busy = Job(
        name="busy",
        groups=(TaskGroup(name="g", task=Task(cpu=12)),),
        running=Running(tasks=(RunningTask(group="g", index=0, node="full"),)),
    )
    nodes = (Node(name="empty", cpu=4), Node(name="full", cpu=16))
    instance = compile_snapshot(Snapshot(nodes=nodes, jobs=(busy, one(TaskGroup(name="w", task=Task(cpu=2))))))
    for rule, expected in (("kube-most-allocated", "full"), ("kube-least-allocated", "empty")):
        found = HEURISTICS[rule].solve(instance, objectives=(), limits=Limits()).assignment
        assert [instance.node_name(node) for node in found.node.tolist()] == [expected]


def test_rules_of_others_are_tried_by_name_alone() -> None:
    assert set(BY_NAME) < set(HEURISTICS)
    assert not set(BY_NAME) & set(PORTFOLIO)
