"""Instances that the tests of the models share."""

from __future__ import annotations

from placement.compile import compile as compile_snapshot
from placement.instance import Instance
from placement.snapshot import (
    DataLocality,
    DomainLimit,
    Duration,
    Gpu,
    Job,
    Nic,
    Node,
    NumaZone,
    Running,
    RunningTask,
    Slice,
    Snapshot,
    Task,
    TaskGroup,
    Topology,
)


def golden() -> Instance:
    """A cluster small enough to read its models: a node of two cards, one of them half busy, and one of one card.

    It wants two tasks of half a card that may run alone, on the first node only; and two copies of a nested group of a
    task without a card and a task of one card of the second node's model, of which a copy needs one.
    """
    busy = Job(
        name="busy",
        groups=(TaskGroup(name="g", task=Task(gpus=1, gpu_share=0.5, gpu_memory="4Gi", cpu=1)),),
        running=Running(tasks=(RunningTask(group="g", index=0, node="a", gpus=(1,)),)),
    )
    half = Task(gpus=1, gpu_share=0.5, gpu_memory="4Gi", node_selector={"zone": "z"})
    pair = Job(name="pair", groups=(TaskGroup(name="half", count=2, min_count=1, task=half),))
    replica = TaskGroup(
        name="replica",
        count=2,
        min_count=1,
        min_groups=1,
        groups=(
            TaskGroup(name="driver", task=Task(cpu=1)),
            TaskGroup(name="worker", task=Task(gpus=1, cpu=1, gpu_models=("B",))),
        ),
    )
    in_zone = {"position": {"rack": "r"}, "labels": {"zone": "z"}}
    return compile_snapshot(
        Snapshot(
            topology=("rack",),
            nodes=(
                Node(name="a", cpu=3, gpus=(Gpu(model="A", count=2, memory="16Gi"),), **in_zone),  # type: ignore[arg-type]
                Node(name="b", cpu=2, gpus=(Gpu(model="B", memory="16Gi"),)),
            ),
            limits=(DomainLimit(level="rack", domain="r", gpus="1500m"),),
            jobs=(busy, pair, Job(name="nested", priority=10, groups=(replica,))),
        )
    )


def golden_ladder() -> Instance:
    """The same cards, and only what ladder rows support: halves of a card, single cards and pairs of cards."""
    busy = Job(
        name="busy",
        groups=(TaskGroup(name="g", task=Task(gpus=1, gpu_share=0.5)),),
        running=Running(tasks=(RunningTask(group="g", index=0, node="n0", gpus=(1,)),)),
    )
    jobs = (
        busy,
        job("half", Task(gpus=1, gpu_share=0.5), 2, 1),
        job("one", Task(gpus=1), priority=10),
        job("two", Task(gpus=2)),
    )
    limits = (DomainLimit(level="cluster", gpus=2),)
    return compile_snapshot(Snapshot(nodes=cards(2, 1), limits=limits, jobs=jobs))


def golden_tied() -> Instance:
    """Three nodes in two racks of one block, and two jobs.

    The one has four tasks in one block and in slices of two by rack, the other one to three tasks in one rack.
    """
    nodes = tuple(
        Node(name=f"n{i}", position={"block": "b", "rack": rack}, gpus=(Gpu(model="A", count=2),))
        for i, rack in enumerate(("r", "r", "s"))
    )
    sliced = Topology(required="block", slices=(Slice(level="rack", sizes=(2,)),))
    jobs = (
        Job(name="sliced", groups=(TaskGroup(name="g", count=4, task=Task(gpus=1), topology=sliced),)),
        Job(
            name="some",
            groups=(TaskGroup(name="g", count=3, min_count=1, task=Task(gpus=2), topology=Topology(required="rack")),),
        ),
    )
    return compile_snapshot(Snapshot(topology=("block", "rack"), nodes=nodes, jobs=jobs))


def golden_zoned() -> Instance:
    """A node of three zones with a card, two cores and a NIC each, and one that lists no zones.

    Two cards are within two zones at least; half a card with one core and a NIC is within one. Anywhere, a core.
    """
    zones = tuple(NumaZone(id=z, cpu=2, gpus=(z,), nics=(Nic(name=f"n{z}"),)) for z in range(3))
    jobs = (
        job("wide", Task(gpus=2, cpu=3, numa="restricted")),
        job("narrow", Task(gpus=1, gpu_share=0.5, cpu=1, nics=1, numa="single-numa-node"), 2, 1),
        job("any", Task(cpu=1)),
    )
    nodes = (
        Node(name="a", cpu=6, gpus=(Gpu(model="A", count=3),), zones=zones),
        Node(name="b", cpu=1, gpus=(Gpu(model="A"),)),
    )
    return compile_snapshot(Snapshot(nodes=nodes, jobs=jobs))


def golden_timed() -> Instance:
    """A node of a card A and a card B, each in a zone with a NIC, in a rack; and one of three cards A in two zones.

    One job runs 10 seconds, and longer on B, within a node, and over both nodes most; its data lie in the rack. The
    other has a task of two cards and would run shorter where they lie in different zones.
    """
    cards = (Gpu(model="A"), Gpu(model="B"))
    zones = tuple(NumaZone(id=z, gpus=(z,), nics=(Nic(name=f"n{z}"),)) for z in range(2))
    nodes = (
        Node(name="a", position={"rack": "r"}, gpus=cards, zones=zones),
        Node(name="b", gpus=(Gpu(model="A", count=3),), zones=(NumaZone(id=0, gpus=(0, 1)), NumaZone(id=1, gpus=(2,)))),
    )
    levels = {"node": 1.2, "rack": 1, "cluster": 1.5}
    slow = Duration(seconds=10, gpu_models={"B": 2}, levels=levels, numa_misaligned=1, nic_misaligned=1.5)
    data = (DataLocality(level="rack", domain="r", fetch_seconds={"rack": 1, "cluster": 0.5}),)
    odd = Duration(seconds=3, numa_misaligned=0.5, nic_misaligned=1)
    first = TaskGroup(name="g", count=2, min_count=1, task=Task(gpus=1, nics=1))
    jobs = (
        Job(name="slow", weight=3, duration=slow, data=data, groups=(first,)),
        Job(name="odd", duration=odd, groups=(TaskGroup(name="g", task=Task(gpus=2)),)),
    )
    return compile_snapshot(Snapshot(topology=("rack",), nodes=nodes, jobs=jobs))


def job(name: str, task: Task, count: int = 1, minimum: int | None = None, copies: int = 1, priority: int = 0) -> Job:
    """A job of one group."""
    group = TaskGroup(name="g", count=count, min_count=minimum, task=task)
    return Job(name=name, count=copies, priority=priority, groups=(group,))


def cards(*counts: int, **more: object) -> tuple[Node, ...]:
    """Nodes n0, n1, … with so many cards."""
    return tuple(
        Node(name=f"n{i}", gpus=(Gpu(model="A", count=count),) if count else (), **more)  # type: ignore[arg-type]
        for i, count in enumerate(counts)
    )


def shares() -> Instance:
    """Three tasks of 0.6 and two of 0.5 on two cards: two halves on one, a 0.6 on the other, 1.6 cards' worth."""
    jobs = (job("a", Task(gpus=1, gpu_share=0.6), copies=3), job("b", Task(gpus=1, gpu_share=0.5), copies=2))
    return compile_snapshot(Snapshot(nodes=cards(2), jobs=jobs))


def blocks() -> Instance:
    """Nodes of 3, 3 and 2 cards; gangs of two 2-card tasks (three of them) and four 1-card jobs.

    Blocks of two: 1 + 1 + 1 = 3, so one gang of two tasks runs, and the four singles fill the rest: 4 + 4 of 8 cards.
    """
    jobs = (job("pairs", Task(gpus=2), count=2, copies=3), job("singles", Task(gpus=1), copies=4))
    return compile_snapshot(Snapshot(nodes=cards(3, 3, 2), jobs=jobs))


def gangs() -> Instance:
    """Two gangs of three on four cards: one runs; half a gang more would fit the cards."""
    jobs = (job("gang", Task(gpus=1), count=3, copies=2), job("elastic", Task(gpus=1), count=4, minimum=2))
    return compile_snapshot(Snapshot(nodes=cards(2, 2), jobs=jobs))


EDGES: dict[str, Snapshot] = {
    "nothing": Snapshot(),
    "no nodes": Snapshot(jobs=(job("j", Task(gpus=1)),)),
    "no jobs": Snapshot(nodes=cards(2, 1)),
    "no cards": Snapshot(nodes=cards(0, 0, cpu=2), jobs=(job("g", Task(gpus=1)), job("c", Task(cpu=1), copies=5))),
    "worthless": Snapshot(
        nodes=cards(1), jobs=(Job(name="j", value=0, groups=(TaskGroup(name="g", task=Task(gpus=1)),)),)
    ),
    "cpu only": Snapshot(nodes=cards(2, cpu=3), jobs=(job("j", Task(cpu="1500m"), count=2, minimum=1, copies=3),)),
    "everything runs": Snapshot(
        nodes=cards(1),
        jobs=(
            Job(
                name="r",
                groups=(TaskGroup(name="g", task=Task(gpus=1)),),
                running=Running(tasks=(RunningTask(group="g", index=0, node="n0", gpus=(0,)),)),
            ),
        ),
    ),
    "nobody fits": Snapshot(nodes=cards(2, 2), jobs=(job("j", Task(gpus=3), copies=2),)),
}
"""Snapshots at the edge of what there is."""
