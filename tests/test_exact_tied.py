"""Jobs tied to domains, by the exact method: bounds against brute force, plans that keep the ties, hand-made cases."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise

import brute
import pytest
from msgspec.structs import replace
from strategies import random_tied_tiny

from placement.check import check
from placement.compile import compile as compile_snapshot
from placement.errors import SnapshotError
from placement.exact.domains.derive import carried
from placement.exact.domains.tied import Tied
from placement.exact.ledger import Ledger
from placement.exact.objectives.targets import targets_of
from placement.instance import Assignment, Instance
from placement.models.pools import leaf_rows, leaf_table
from placement.plan import Provenance
from placement.planning import plan_of
from placement.snapshot import Affinity, Gpu, Job, Node, Slice, Snapshot, Spread, Task, TaskGroup, Topology
from placement.snapshot.read import digest, verified
from placement.solver import Limits, Progress, Result, Stop

OBJECTIVES = ("value", "tasks")
TOPOLOGY = ("block", "rack")


def solved(snapshot: Snapshot, *, wishes: bool = False) -> tuple[Instance, Result, list[Progress]]:
    """Solve by domains, which `run` leaves to the reference model where an instance is small; the plan is judged."""
    instance = compile_snapshot(snapshot)
    told: list[Progress] = []
    ledger = Ledger(instance, targets_of(instance, OBJECTIVES), Limits(), 0, None, told.append)
    result = Tied(ledger, (), None, wishes).run()
    origin = Provenance(version="0", solver="exact", seed=0, objectives=OBJECTIVES)
    plan = plan_of(instance, result, {}, OBJECTIVES, origin, digest(snapshot))
    plan.checked = True
    assert check(snapshot, plan) == []
    return instance, result, told


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


def gang(name: str, count: int, gpus: int = 1, least: int | None = None, priority: int = 0, **topology: object) -> Job:
    ties = Topology(**topology) if topology else None  # type: ignore[arg-type]
    group = TaskGroup(name="g", count=count, min_count=least, task=Task(gpus=gpus), topology=ties)
    return Job(name=name, priority=priority, groups=(group,))


def test_a_gang_goes_where_all_of_it_fits() -> None:
    # Racks with 3, 2 and 4 free cards. A gang of 4 in one rack fits the third alone; one of 3 the first; the 2 cards
    # that are left hold a gang of 2. 9 cards in all.
    nodes = (node("a", "r", 3), node("b", "s", 2), node("c", "t", 4))
    jobs = tuple(gang(f"of-{n}", n, required="rack") for n in (2, 3, 4))
    instance, result, _ = solved(Snapshot(topology=TOPOLOGY, nodes=nodes, jobs=jobs))
    assert worth(instance, result.assignment) == 9000
    assert result.stop is Stop.OPTIMAL
    assert [racks_of(instance, result.assignment, f"of-{n}") for n in (2, 3, 4)] == [[[1] * 2], [[0] * 3], [[2] * 4]]


def test_what_is_asked_at_a_wider_level_is_kept_where_a_domain_lies_in_none() -> None:
    # Rack r has 4 cards and lies in no block, s has 2 and t 1 in block b. Both jobs want one block for their two tasks,
    # and one rack: as a wish, or as what the group around the tasks requires. Only s keeps both, and holds one of them;
    # of the wish alone t has a card left beside s, which is one task of two.
    outside = Node(name="a", position={"rack": "r"}, gpus=(Gpu(model="A", count=4),))
    nodes = (outside, node("b", "s", 2), node("c", "t", 1))
    wishing = tuple(gang(f"j{i}", 2, required="block", preferred="rack") for i in range(2))
    tasks = TaskGroup(name="w", count=2, task=Task(gpus=1), topology=Topology(required="block"))
    around = TaskGroup(name="g", groups=(tasks,), topology=Topology(required="rack"))
    nested = tuple(Job(name=f"j{i}", groups=(around,)) for i in range(2))
    pair = tuple(TaskGroup(name=name, task=Task(gpus=1), topology=Topology(required="block")) for name in "vw")
    near = Affinity(a="v", b="w", level="rack", kind="together")
    bonded = tuple(Job(name=f"j{i}", groups=pair, affinity=(near,)) for i in range(2))
    for jobs in (wishing, nested, bonded):
        instance, result, _ = solved(Snapshot(topology=TOPOLOGY, nodes=nodes, jobs=jobs), wishes=True)
        assert worth(instance, result.assignment) == 2000
        assert {instance.node_name(n) for n in result.assignment.node.tolist()} <= {"b", "c"}


def test_slices_within_one_domain_anyway_leave_a_gang_to_choose_its_domain() -> None:
    # Rack t alone has the 4 cards for the gang of 4, whose slices are at its own level and a wider one. First fit gives
    # t to nobody else: the pairs, which come first, lie in r and s, 2 each. 4 + 2 + 2 cards, all there are.
    nodes = (node("a", "t", 4), node("b", "r", 2), node("c", "s", 2))
    slices = (Slice(level="block", sizes=(2,)), Slice(level="rack", sizes=(1, 3)))
    jobs = (*(gang(f"pair-{i}", 2, required="rack") for i in range(2)), gang("four", 4, required="rack", slices=slices))
    instance, result, _ = solved(Snapshot(topology=TOPOLOGY, nodes=nodes, jobs=jobs))
    assert worth(instance, result.assignment) == 8000
    assert all(carried(instance, job_class) for job_class in instance.job_classes)


def test_rows_of_domains_are_no_plan_where_tasks_share_nodes() -> None:
    # Two racks of one node of 8 cards. Two tasks of 1 card in different racks, and one of 8 cards that may go anywhere:
    # the cards suffice for all 10, but the large one needs a whole node and the pair both: 8, or 2. As a pair in one
    # rack the small ones leave the other node whole: 8 + 2.
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


def test_a_part_may_be_absent() -> None:
    # One card of model A in a rack, none of B. Of a and b, each one task, one suffices: a runs, for 1.
    children = tuple(TaskGroup(name=n.lower(), task=Task(gpus=1, gpu_models=(n,))) for n in ("A", "B"))
    group = TaskGroup(name="m", min_groups=1, groups=children, topology=Topology(required="rack"))
    snapshot = Snapshot(topology=TOPOLOGY, nodes=(node("n", "r", 1),), jobs=(Job(name="j", groups=(group,)),))
    instance, result, _ = solved(snapshot)
    assert worth(instance, result.assignment) == 1000
    assert result.bounds[0].value == 1000


def test_bonds_to_a_part_that_is_absent_bind_nobody() -> None:
    # A card of model A in one rack and one of C in another, none of B. Two of a, b and c suffice, and b would have to
    # lie with each of the others: without it a and c run in their own racks, for 2.
    nodes = tuple(
        Node(name=rack, position={"block": "b", "rack": rack}, gpus=(Gpu(model=model),))
        for rack, model in (("r", "A"), ("s", "C"))
    )
    children = tuple(TaskGroup(name=n.lower(), task=Task(gpus=1, gpu_models=(n,))) for n in "ABC")
    bonds = tuple(Affinity(a=f"m/{a}", b=f"m/{b}", level="rack", kind="together") for a, b in ("ab", "bc"))
    job = Job(name="j", groups=(TaskGroup(name="m", min_groups=2, groups=children),), affinity=bonds)
    _, result, _ = solved(Snapshot(topology=TOPOLOGY, nodes=nodes, jobs=(job,)))
    assert result.bounds[0].value == 2000


def test_slices_at_the_level_of_what_holds_them_do_not_hide_finer_ones() -> None:
    # Racks of one card each in one block; two tasks in a block, in slices of 2 by block and by rack: no rack has 2.
    nodes = (node("a", "r", 1), node("b", "s", 1))
    slices = (Slice(level="block", sizes=(2,)), Slice(level="rack", sizes=(2,)))
    leaf = TaskGroup(name="w", count=2, task=Task(gpus=1), topology=Topology(slices=slices))
    group = TaskGroup(name="m", groups=(leaf,), topology=Topology(required="block"))
    snapshot = Snapshot(topology=TOPOLOGY, nodes=nodes, jobs=(Job(name="j", groups=(group,)),))
    instance, result, _ = solved(snapshot)
    assert worth(instance, result.assignment) == 0
    assert result.bounds[0].value == 0


def test_lower_priorities_are_served_where_the_highest_is_at_its_bound() -> None:
    # The job of priority 1 fits nowhere, so nothing is the most there; below it a gang of 3 fits a rack.
    jobs = (gang("wide", 1, 8, priority=1), gang("three", 3, required="rack"))
    snapshot = Snapshot(topology=TOPOLOGY, nodes=(node("a", "r", 3), node("b", "s", 2)), jobs=jobs)
    instance, result, _ = solved(snapshot)
    assert worth(instance, result.assignment) == 3000


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


def random_parts(seed: int) -> Snapshot:
    """Return two or three nodes with cards of two models, and a group of which parts may be absent, with bonds."""
    rng = random.Random(seed)
    nodes = tuple(
        Node(
            name=f"n{n}",
            position={"block": "b", "rack": f"r{rng.randint(0, 1)}"},
            gpus=(Gpu(model=rng.choice("AAB"), count=rng.randint(1, 3)),),
        )
        for n in range(rng.randint(2, 3))
    )
    names = ("a", "b", "c")[: rng.randint(2, 3)]
    children = tuple(
        TaskGroup(name=name, count=rng.choice((1, 1, 2)), task=Task(gpus=1, gpu_models=(rng.choice("ABC"),)))
        for name in names
    )
    level = rng.choice(("rack", "rack", "block"))
    bonds = tuple(
        Affinity(a=f"m/{one}", b=f"m/{other}", level=rng.choice((level, "rack")), kind="together")
        for one, other in pairwise(names)
        if rng.random() < 0.7
    )
    group = TaskGroup(
        name="m",
        count=rng.choice((1, 1, 2)),
        min_count=1,
        min_groups=rng.randint(1, len(names)),
        groups=children,
        topology=Topology(required=level) if rng.random() < 0.5 else None,
    )
    jobs = (
        Job(name="parts", priority=rng.choice((0, 1)), groups=(group,), affinity=bonds),
        gang("pair", 2, priority=1),
    )
    return Snapshot(topology=TOPOLOGY, nodes=nodes, jobs=jobs)


def random_gaps(seed: int) -> Snapshot:
    """Return one of the others in which some racks lie in no block."""
    rng = random.Random(seed)
    snapshot = rng.choice((random_tied, random_parts, random_tied_tiny))(seed)
    racks = sorted({node.position["rack"] for node in snapshot.nodes if "rack" in node.position})
    outside = {rack for rack in racks if rng.random() < 0.5}
    nodes = tuple(
        replace(one, position={"rack": rack}) if (rack := one.position.get("rack", "")) in outside else one
        for one in snapshot.nodes
    )
    return replace(snapshot, nodes=nodes)


SNAPSHOTS = {"tied": random_tied, "parts": random_parts, "strategy": random_tied_tiny, "gaps": random_gaps}


def valid(draw: Callable[[int], Snapshot], seed: int) -> Snapshot:
    """Return what is drawn for a seed, or for the next of its kind that is a snapshot; some ask for what cannot be."""
    for other in range(seed, seed + 100_000, 10_000):
        with suppress(SnapshotError):
            return verified(draw(other))
    raise AssertionError("none of ten draws is a snapshot")


@pytest.mark.parametrize("seed", range(150))
@pytest.mark.parametrize("kind", SNAPSHOTS)
def test_bounds_and_values_against_brute_force(kind: str, seed: int) -> None:
    snapshot = valid(SNAPSHOTS[kind], seed)
    expected = brute.optimum(snapshot, OBJECTIVES)
    instance, result, told = solved(snapshot, wishes=kind == "gaps")
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
