"""NUMA zones of the compiled form: against `naive_zones`, and by hand."""

from __future__ import annotations

from itertools import combinations

import pytest
from check_cases import device_indices
from hypothesis import given
from naive_zones import assert_zoned_right
from zoned_strategies import random_zoned, zoned_snapshots

from placement.compile import compile as compile_snapshot
from placement.instance import Instance, Zones
from placement.snapshot import Gpu, Job, Nic, Node, NumaZone, Running, RunningTask, Snapshot, Task, TaskGroup
from placement.snapshot.read import verified


@given(zoned_snapshots(8))
def test_every_node_is_what_it_is_alone(snapshot: Snapshot) -> None:
    assert_zoned_right(compile_snapshot(snapshot))


def test_many_seeds() -> None:
    seen = set()
    for seed in range(150):
        instance = compile_snapshot(random_zoned(seed, 6))
        assert_zoned_right(instance)
        seen |= {("several", bool((instance.bound > 1).any())), ("zoned", instance.zoned)}
        seen.add(("in one class", any(c.zones and c.size > 1 for c in instance.classes)))
        seen.add(("another order", bool(instance.node_zones)))
        seen.add(("one kind, two ways", not instance.admits_node.all()))
    assert len(seen) == 10


def job(name: str, task: Task, *places: RunningTask) -> Job:
    group = TaskGroup(name="g", count=max(1, len(places)), task=task)
    return Job(name=name, groups=(group,), running=Running(tasks=places) if places else None)


def at(index: int = 0, node: str = "n", **more: object) -> RunningTask:
    return RunningTask(group="g", index=index, node=node, **more)  # type: ignore[arg-type]


def compiled(nodes: tuple[Node, ...], *jobs: Job) -> Instance:
    instance = compile_snapshot(verified(Snapshot(nodes=nodes, jobs=jobs)))
    assert_zoned_right(instance)
    return instance


def node_of(cards: int, *cpu: int | None, name: str = "n", model: str = "A") -> Node:
    """Return a node with so many cards and so much CPU in each zone."""
    total = sum(amount for amount in cpu if amount is not None)
    zones = tuple(
        NumaZone(id=number, cpu=amount, gpus=tuple(range(cards * number, cards * number + cards)))
        for number, amount in enumerate(cpu)
    )
    gpus = (Gpu(model=model, count=cards * len(cpu)),) if cards else ()
    return Node(name=name, cpu=None if None in cpu else total, gpus=gpus, zones=zones)


def zones_of(instance: Instance, k: int = 0) -> Zones:
    zones = instance.classes[k].zones
    assert zones is not None
    return zones


def cpu_slack(instance: Instance, node: int = 0) -> dict[tuple[int, ...], int]:
    """Return the CPU slack of a node by zones as the file has them."""
    zones = zones_of(instance, int(instance.node_class[node]))
    order = instance.node_zones.get(node, tuple(range(zones.count)))
    column = instance.resources.index("cpu")
    return {
        tuple(sorted(order[zone] for zone in range(zones.count) if bits >> zone & 1)): row[column]
        for bits, row in zip(instance.zone_sets, zones.slack, strict=True)
        if bits >> zones.count == 0
    }


ASK = Task(gpus=1, cpu=1, numa="single-numa-node")


def test_running_work_with_and_without_a_zone() -> None:
    # two zones of 8 cores. 3 run in zone 1 as stated, 2 of a single-zone task on a card of zone 0, and 4 of a task
    # without policy wherever they are least in the way: 8 - 2 = 6 and 8 - 3 = 5, and the node has 16 - 9 = 7
    instance = compiled(
        (node_of(2, 8, 8),),
        job("p", ASK),
        job("stated", Task(cpu=3), at(zone=1)),
        job("by card", Task(gpus=1, cpu=2, numa="single-numa-node"), at(gpus=(0,))),
        job("fluid", Task(gpus=1, cpu=4, numa="best-effort"), at(gpus=(3,))),
        job("without cards", Task(cpu=0, numa="single-numa-node"), at()),
    )
    assert cpu_slack(instance) == {(0,): 6, (1,): 5}
    assert instance.classes[0].free[instance.resources.index("cpu")] == 7


def test_a_stated_zone_goes_before_that_of_the_cards() -> None:
    # the card is in zone 0, the task says zone 1: 8 and 8 - 3 = 5
    task = Task(gpus=1, cpu=3, numa="single-numa-node")
    assert cpu_slack(compiled((node_of(2, 8, 8),), job("p", ASK), job("r", task, at(gpus=(0,), zone=1)))) == {
        (0,): 8,
        (1,): 5,
    }


def test_restricted_over_two_of_four_zones() -> None:
    # three cards need two zones of two; a running task on cards of zones 0 and 1 takes 6 of their 8 cores, of which no
    # zone can be told: alone each has 4, together 8 - 6 = 2, and 4 + 4 + 4 - 6 = 6 with a third
    wide = Task(gpus=3, cpu=1, numa="restricted")
    instance = compiled(
        (node_of(2, 4, 4, 4, 4),), job("p", wide), job("r", Task(gpus=2, cpu=6, numa="restricted"), at(gpus=(1, 2)))
    )
    assert instance.bound.tolist() == [[2]]
    assert instance.zone_sets == tuple(range(1, 15))
    left = cpu_slack(instance)
    assert [left[zone,] for zone in range(4)] == [4, 4, 4, 4]
    assert [left[pair] for pair in combinations(range(4), 2)] == [2, 8, 8, 8, 8, 8]
    assert [left[three] for three in combinations(range(4), 3)] == [6, 6, 12, 12]


def test_restricted_by_all_it_asks_for_together() -> None:
    # 4 cards fit two zones, 9 cores need three of 4 cores each; with 13 it is all of them, and then it is not bound
    zones = node_of(2, 4, 4, 4, 4)
    for cpu, bound in ((8, 2), (9, 3), (13, 0)):
        instance = compiled((zones,), job("p", Task(gpus=4, cpu=cpu, numa="restricted")))
        assert instance.bound.tolist() == [[bound]]
        assert instance.admits_node.tolist() == [[True]]
        assert instance.zoned == (bound > 0)
    assert not compiled((zones,), job("p", Task(gpus=4, cpu=17, numa="restricted"))).admits_node.any()
    # what is most in one zone may be least in another: cards of zone 0 and cores of zone 1 make it two of three
    gpus, cores = NumaZone(id=0, gpus=(0, 1), cpu=1), NumaZone(id=1, cpu=8)
    node = Node(name="n", cpu=9, gpus=(Gpu(model="A", count=2),), zones=(gpus, cores, NumaZone(id=2, cpu=0)))
    assert compiled((node,), job("p", Task(gpus=2, cpu=8, numa="restricted"))).bound.tolist() == [[2]]
    assert not compiled((node,), job("p", Task(gpus=2, cpu=8, numa="single-numa-node"))).admits_node.any()


def test_fewest_of_an_empty_node_whatever_runs() -> None:
    # both cards of zone 0 and one of zone 1 are taken, so that two cards lie in no zone; the task still needs one
    taken = job("r", Task(gpus=3), at(gpus=(0, 1, 2)))
    instance = compiled((node_of(2, 4, 4),), taken, job("p", Task(gpus=2, numa="restricted")))
    assert instance.bound.tolist() == [[1]]


def test_cards_that_a_task_may_use() -> None:
    # zone 0 has a healthy card and one that is not, zone 1 two with too little memory
    gpus = (Gpu(model="A"), Gpu(model="A", health="unhealthy"), Gpu(model="B", count=2, memory="8Gi"))
    zones = (NumaZone(id=0, gpus=(0, 1)), NumaZone(id=1, gpus=(2, 3)), NumaZone(id=2))
    node = Node(name="n", gpus=gpus, zones=zones)
    for task, bound in (
        (Task(gpus=1, gpu_memory="9Gi"), 1),
        (Task(gpus=2), 1),  # two of model B
        (Task(gpus=3), 2),
        (Task(gpus=2, gpu_models=("A",)), None),
        (Task(gpus=2, gpu_memory="9Gi"), None),
    ):
        restricted = Task(
            **{name: getattr(task, name) for name in ("gpus", "gpu_memory", "gpu_models")}, numa="restricted"
        )
        instance = compiled((node,), job("p", restricted))
        assert instance.admits_node.tolist() == [[bound is not None]]
        assert instance.bound.tolist() == [[bound or 0]]


def test_zones_without_cpu() -> None:
    # zones that do not state CPU do not count it: one zone is enough for 100 cores, and its slack is no limit
    instance = compiled((node_of(1, None, None),), job("p", Task(gpus=1, cpu=100, numa="restricted")))
    assert instance.bound.tolist() == [[1]]
    column = instance.resources.index("cpu")
    assert all(row[column] >= instance.shapes[0].demand[column] for row in zones_of(instance).slack)


def test_a_node_without_zones_takes_no_bound_task() -> None:
    # nodes that hold as much are two classes where the task is bound on one, and where it may be anywhere on it
    one = node_of(2, 4, name="one")
    none = Node(name="none", cpu=4, gpus=one.gpus)
    for policy in ("restricted", "single-numa-node"):
        instance = compiled((one, none), job("p", Task(gpus=1, cpu=1, numa=policy)))
        assert instance.node_class.tolist() == [0, 1]
        assert instance.admits_node.tolist() == [[True, False]]
        assert not instance.zoned
    assert compiled((one, none), job("p", Task(gpus=1, numa="best-effort"))).node_class.tolist() == [0, 0]


def test_nodes_with_mirrored_use_are_one_class() -> None:
    # on n a task takes card 0 and 3 cores of zone 0, on m card 3 and 3 cores of zone 1
    task = Task(gpus=1, cpu=3, numa="single-numa-node")
    nodes = (node_of(2, 8, 8), node_of(2, 8, 8, name="m"))
    instance = compiled(nodes, job("p", ASK), job("a", task, at(gpus=(0,))), job("b", task, at(node="m", gpus=(3,))))
    assert instance.node_class.tolist() == [0, 0]
    assert zones_of(instance).card == (0, 0, 1, 1)
    # the zone with the card in use comes first; of n that is zone 0 and of m zone 1
    assert instance.node_zones == {1: (1, 0)}
    assert [device_indices(instance, number) for number in (0, 1)] == [(0, 1, 2, 3), (3, 2, 0, 1)]
    assert (cpu_slack(instance, 0), cpu_slack(instance, 1)) == ({(0,): 5, (1,): 8}, {(0,): 8, (1,): 5})


def test_equal_cards_in_other_zones_are_two_classes() -> None:
    # both nodes have two cards of A and two of B; n has one model in each zone, m both in both
    gpus = (Gpu(model="A", count=2), Gpu(model="B", count=2))
    zones = tuple(
        (NumaZone(id=0, gpus=first), NumaZone(id=1, gpus=second))
        for first, second in (((0, 1), (2, 3)), ((0, 2), (1, 3)))
    )
    nodes = tuple(Node(name=name, gpus=gpus, zones=some) for name, some in zip("nm", zones, strict=True))
    instance = compiled(nodes, job("p", ASK), job("q", Task(gpus=1, gpu_models=("B",))))
    assert instance.node_class.tolist() == [0, 1]


def test_one_kind_for_which_a_task_needs_more_zones() -> None:
    # what is in use makes both nodes alike: 2 cards free in each; empty, n needs two of its zones for 3 cards, m one
    zones = (NumaZone(id=0, gpus=(0, 1)), NumaZone(id=1, gpus=(2, 3)), NumaZone(id=2))
    other = (NumaZone(id=0, gpus=(0, 1, 2)), NumaZone(id=1, gpus=(3,)), NumaZone(id=2))
    nodes = tuple(
        Node(name=name, gpus=(Gpu(model="A", count=4),), zones=some) for name, some in (("n", zones), ("m", other))
    )
    instance = compiled(nodes, job("p", Task(gpus=3, numa="restricted")))
    assert instance.node_class.tolist() == [0, 1]
    assert instance.bound.tolist() == [[2, 1]]


def test_a_zone_that_is_overfilled_takes_nothing_and_nothing_from_others() -> None:
    # 6 cores run in zone 0 of 4: it is full, and the 2 it is short of are not taken from zones 1 and 2
    instance = compiled(
        (node_of(2, 4, 4, 4),), job("p", Task(gpus=3, cpu=1, numa="restricted")), job("r", Task(cpu=6), at(zone=0))
    )
    left = cpu_slack(instance)
    assert left == {(0,): 0, (1,): 4, (2,): 4, (0, 1): 4, (0, 2): 4, (1, 2): 8}


@pytest.mark.parametrize(
    ("place", "left"),
    [
        (at(nics=("a", "c")), [1, 0]),  # one in each zone
        (at(nics=("a", "b")), [0, 1]),
        (at(zone=0), [0, 1]),  # those that are not named lie in its zone
        (at(), [2, 1]),  # two of any
    ],
)
def test_nics_by_zone(place: RunningTask, left: list[int]) -> None:
    zones = (NumaZone(id=0, nics=(Nic(name="a"), Nic(name="b"))), NumaZone(id=1, nics=(Nic(name="c"),)))
    node = Node(name="n", zones=zones)
    instance = compiled((node,), job("p", Task(nics=1, numa="single-numa-node")), job("r", Task(nics=2), place))
    column = instance.resources.index("nics")
    order = instance.node_zones.get(0, (0, 1))
    slack_of = dict(zip(order, (row[column] for row in zones_of(instance).slack), strict=True))
    assert [slack_of[0], slack_of[1]] == left
    assert instance.classes[0].free[column] == 1  # three less two


def test_amounts_too_fine_for_64_bits() -> None:
    # the unit is 44 / 2^60 of a core: rounded up, 9 cores are more than a zone has, though they just fit one
    fine = "8.000000000000000000000000000001"
    wide = Task(gpus=1, cpu=fine, numa="restricted")
    instance = compiled((node_of(1, 9, 9, 9),), job("p", wide), job("q", Task(cpu="9.0", numa="restricted")))
    assert not instance.exact
    assert instance.bound.tolist() == [[1], [1]]


def test_without_bound_tasks_zones_change_nothing() -> None:
    zoned = node_of(2, 4, 4)
    plain = Node(name="n", cpu=8, gpus=zoned.gpus)
    jobs = (job("p", Task(gpus=2, cpu=1)), job("r", Task(gpus=1, cpu=3), at(gpus=(3,))))
    first, second = (compile_snapshot(Snapshot(nodes=(node,), jobs=jobs)) for node in (zoned, plain))
    assert first.classes[0].cards == second.classes[0].cards
    assert first.node_cards == second.node_cards
    assert not first.zoned
    assert not first.node_zones
    assert not first.bound.any()
    assert first.classes[0].zones is None
