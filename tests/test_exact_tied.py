"""Jobs tied to domains, by the exact method: bounds against brute force, plans that keep the ties, hand-made cases."""

from __future__ import annotations

import random
from itertools import pairwise

import brute
import pytest

from placement.compile import compile as compile_snapshot
from placement.exact import run
from placement.instance import Assignment, Instance
from placement.models.pools import leaf_rows, leaf_table
from placement.snapshot import Affinity, Gpu, Job, Node, Slice, Snapshot, Spread, Task, TaskGroup, Topology
from placement.solver import Limits, Progress, Result, Stop

OBJECTIVES = ("value", "tasks")
TOPOLOGY = ("block", "rack")


def solved(snapshot: Snapshot) -> tuple[Instance, Result, list[Progress]]:
    instance = compile_snapshot(snapshot)
    told: list[Progress] = []
    return instance, run(instance, objectives=OBJECTIVES, limits=Limits(), report=told.append), told


def worth(instance: Instance, assignment: Assignment) -> float:
    values = leaf_table(instance)[leaf_rows(instance, assignment), 4]
    return float(values.sum() * instance.value_unit)


def racks_of(instance: Instance, assignment: Assignment, job: str) -> list[list[int]]:
    """Return the racks of a job's tasks, leaf by leaf, in the order of their numbers."""
    (number,) = (j for j in range(instance.jobs) if instance.job_name(j) == job)
    rack = instance.domains[instance.levels.index("rack")]
    mine = [i for i in range(len(assignment)) if assignment.job[i] == number]
    leaves = sorted({int(assignment.leaf[i]) for i in mine})
    return [[int(rack[assignment.node[i]]) for i in mine if assignment.leaf[i] == leaf] for leaf in leaves]


def node(name: str, rack: str, cards: int, block: str = "b") -> Node:
    return Node(name=name, position={"block": block, "rack": rack}, gpus=(Gpu(model="A", count=cards),))


def gang(name: str, count: int, gpus: int = 1, least: int | None = None, **topology: object) -> Job:
    ties = Topology(**topology) if topology else None  # type: ignore[arg-type]
    group = TaskGroup(name="g", count=count, min_count=least, task=Task(gpus=gpus), topology=ties)
    return Job(name=name, groups=(group,))


def test_a_gang_goes_where_all_of_it_fits() -> None:
    # Racks with 3, 2 and 4 free cards. A gang of 4 in one rack fits the third alone; one of 3 the first; the 2 cards
    # that are left hold a gang of 2. 9 cards in all.
    nodes = (node("a", "r", 3), node("b", "s", 2), node("c", "t", 4))
    jobs = tuple(gang(f"of-{n}", n, required="rack") for n in (2, 3, 4))
    instance, result, _ = solved(Snapshot(topology=TOPOLOGY, nodes=nodes, jobs=jobs))
    assert worth(instance, result.assignment) == 9000
    assert result.stop is Stop.OPTIMAL
    assert [racks_of(instance, result.assignment, f"of-{n}") for n in (2, 3, 4)] == [[[1] * 2], [[0] * 3], [[2] * 4]]


def test_rows_of_domains_are_no_plan_where_tasks_share_nodes() -> None:
    # Two racks of one node of 8 cards. One task of 1 card is tied to each rack by its model's rack, and a task of 8
    # cards may go anywhere. All cards suffice for 10, but whichever node holds the large one has no room for a small
    # one: 8 + 1. A gang of the two small ones in one rack leaves the other node whole: 8 + 2.
    nodes = (node("a", "r", 8), node("b", "s", 8))
    apart = Affinity(a="g", b="h", level="rack", kind="apart")
    one = TaskGroup(name="g", task=Task(gpus=1))
    pair = Job(name="pair", groups=(one, TaskGroup(name="h", task=Task(gpus=1))), affinity=(apart,))
    wide = gang("wide", 1, 8)
    instance, result, _ = solved(Snapshot(topology=TOPOLOGY, nodes=nodes, jobs=(pair, wide)))
    assert worth(instance, result.assignment) == 8000
    together = gang("pair", 2, required="rack")
    instance, result, _ = solved(Snapshot(topology=TOPOLOGY, nodes=nodes, jobs=(together, wide)))
    assert worth(instance, result.assignment) == 10_000
    assert result.stop is Stop.OPTIMAL


def test_slices_fill_racks_and_keep_their_numbers() -> None:
    # Racks with 4, 2 and 2 cards; 6 tasks in slices of 2, one rack each: two slices in the first rack, or one in each.
    # A gang of 2 in one rack takes what is left: 8 cards.
    nodes = (node("a", "r", 4), node("b", "s", 2), node("c", "t", 2))
    sliced = gang("sliced", 6, required="block", slices=(Slice(level="rack", sizes=(2,)),))
    instance, result, _ = solved(
        Snapshot(topology=TOPOLOGY, nodes=nodes, jobs=(sliced, gang("two", 2, required="rack")))
    )
    assert worth(instance, result.assignment) == 8000
    (racks,) = racks_of(instance, result.assignment, "sliced")
    assert all(a == b for a, b in zip(racks[::2], racks[1::2], strict=True))


def test_unequal_slices() -> None:
    # Racks with 5 and 3 cards; 8 tasks as 5 + 3 fit, as 4 + 4 they do not.
    nodes = (node("a", "r", 5), node("b", "s", 3))
    for sizes, value in (((5, 3), 8000), ((4, 4), 0), ((3, 5), 8000)):
        job = gang("j", 8, slices=(Slice(level="rack", sizes=sizes),))
        instance, result, _ = solved(Snapshot(topology=TOPOLOGY, nodes=nodes, jobs=(job,)))
        assert worth(instance, result.assignment) == value, sizes
        if value:
            (racks,) = racks_of(instance, result.assignment, "j")
            edges = (0, sizes[0], 8)
            assert all(len(set(racks[begin:end])) == 1 for begin, end in pairwise(edges)), sizes


def test_replicas_of_a_leader_and_workers_each_in_one_rack() -> None:
    # Racks with 3, 3 and 2 cards; three replicas of a leader and two workers need 3 in one rack: two of them run.
    nodes = (node("a", "r", 3), node("b", "s", 3), node("c", "t", 2))
    replica = TaskGroup(
        name="replica",
        count=3,
        min_count=1,
        groups=(TaskGroup(name="leader", task=Task(gpus=1)), TaskGroup(name="worker", count=2, task=Task(gpus=1))),
        topology=Topology(),
    )
    together = Affinity(a="replica/leader", b="replica/worker", level="rack", kind="together")
    job = Job(name="j", groups=(replica,), affinity=(together,))
    instance, result, _ = solved(Snapshot(topology=TOPOLOGY, nodes=nodes, jobs=(job,)))
    assert worth(instance, result.assignment) == 6000


# --- against brute force -------------------------------------------------------------------------------------------


def random_tied(seed: int) -> Snapshot:
    """Return up to four nodes in two racks each of up to two blocks, and up to three jobs with ties of every kind."""
    rng = random.Random(seed)
    blocks = rng.choice((("b",), ("b", "c")))
    nodes = []
    for n in range(rng.randint(2, 4)):
        block = rng.choice(blocks)
        position = {"block": block, "rack": f"{block}{rng.randint(0, 1)}"} if rng.random() < 0.9 else {}
        nodes.append(
            Node(
                name=f"n{n}",
                position=position,
                cpu=rng.choice((None, 2, 4)),
                gpus=(Gpu(model="A", count=rng.randint(1, 4)),),
            )
        )
    jobs: list[Job] = []
    left = 6
    for number in range(rng.randint(1, 3)):
        job = _random_job(rng, f"j{number}", left)
        size = sum(g.count if g.task else g.count * sum(c.count for c in g.groups) for g in job.groups)
        if size <= left:
            left -= size
            jobs.append(job)
    return Snapshot(topology=TOPOLOGY, nodes=tuple(nodes), jobs=tuple(jobs))


def _random_task(rng: random.Random) -> Task:
    return Task(gpus=rng.choice((1, 1, 2)), cpu=rng.choice((0, 1)), gpu_share=rng.choice((None, None, 0.5)))


def _random_job(rng: random.Random, name: str, most: int) -> Job:
    priority, weight = rng.choice((0, 0, 1)), rng.choice((1, 1, 3))
    kind = rng.randrange(4)
    if kind == 0:
        inner = tuple(TaskGroup(name=n, task=_random_task(rng)) for n in ("leader", "worker"))
        copies = rng.randint(1, 2)
        group = TaskGroup(
            name="r",
            count=copies,
            min_count=rng.choice((None, 1)),
            groups=inner,
            topology=Topology(required=rng.choice(("rack", "block"))) if rng.random() < 0.7 else None,
        )
        level, how = rng.choice(("rack", "node", "block")), rng.choice(("together", "apart"))
        affinity = Affinity(a="r/leader", b="r/worker", level=level, kind=how)  # type: ignore[arg-type]
        return Job(name=name, priority=priority, weight=weight, groups=(group,), affinity=(affinity,))
    count = rng.randint(1, max(1, min(4, most)))
    stated: dict[str, object] = {}
    if rng.random() < 0.6:
        stated["required"] = rng.choice(("rack", "block", "node"))
    if rng.random() < 0.2:
        stated["preferred"] = "node"
    if kind == 1 and count > 1:
        sizes = rng.choice([(d,) for d in range(1, count) if count % d == 0] + [(count - 1, 1), (1, count - 1)])
        level = rng.choice(("rack", "node")) if stated.get("required") in (None, "block") else "node"
        stated["slices"] = (Slice(level=level, sizes=sizes),)
    if kind == 2:
        stated["spread"] = (Spread(level=rng.choice(("rack", "node")), max_per_domain=rng.choice((1, 2))),)
    if kind == 3 and rng.random() < 0.3:
        stated["balanced"] = "rack"
    least = None if "slices" in stated else rng.choice((None, None, rng.randint(1, count)))
    topology = Topology(**stated) if stated else None  # type: ignore[arg-type]
    group = TaskGroup(name="g", count=count, min_count=least, task=_random_task(rng), topology=topology)
    return Job(name=name, priority=priority, weight=weight, groups=(group,), count=rng.choice((1, 1, 2)))


@pytest.mark.parametrize("seed", range(250))
def test_bounds_and_values_against_brute_force(seed: int) -> None:
    snapshot = random_tied(seed)
    try:
        expected = brute.optimum(snapshot, OBJECTIVES)
    except brute.TooLarge:
        pytest.skip("too many arrangements")
    instance, result, told = solved(snapshot)
    for bounds in (*(progress.bounds for progress in told), result.bounds):
        first = bounds[0] if bounds else None
        if first is not None and first.value is not None:
            assert first.value >= float(expected[0].value) - 1e-6
    table = leaf_table(instance)
    rows = leaf_rows(instance, result.assignment)
    top = max((c.priority for c in instance.job_classes), default=0)
    mine = [instance.job_classes[table[row, 0]].priority == top for row in rows.tolist()]
    reached = float(table[rows, 4][mine].sum() * instance.value_unit)
    if expected:
        assert reached <= float(expected[0].value) + 1e-6
        if result.stop is Stop.OPTIMAL:
            assert reached == pytest.approx(float(expected[0].value))
