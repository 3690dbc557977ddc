"""What Slurm's waiting jobs ask for: how many tasks, and what each needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from slurm_records import UNSET, job, kinds, node, number, of, only

from placement.snapshot import Affinity, Spread, Topology

APART = Topology(spread=(Spread(level="node", max_per_domain=1),))


def test_nodes_of_a_job_that_asks_in_all() -> None:
    """12 cards on nodes of 4 are 3 nodes, though Slurm shows 1."""
    snapshot = of([node(f"n{i}") for i in range(4)], [job(1, tres_per_job="gres/gpu:12")])
    found, task = only(snapshot)
    assert (found.groups[0].count, task.gpus, found.groups[0].topology) == (3, 4, APART)
    assert "cards on each node of a job that asks for them in all" in kinds(snapshot, "assumed")


def test_a_remainder_is_a_node_of_its_own() -> None:
    """9 cards on nodes of 4 are 4 + 4 + 1; 8 threads in all are ceil(8 x 4 / 9) = 4 for each four cards."""
    (found,) = of([node(f"n{i}") for i in range(4)], [job(1, tres_per_job="gres/gpu:h100:9", cpus=number(8))]).jobs
    assert [(group.name, group.count, group.task and group.task.gpus) for group in found.groups] == [
        ("node", 2, 4),
        ("rest", 1, 1),
    ]
    assert [group.task and group.task.cpu for group in found.groups] == [4, 1]
    assert [group.task and group.task.gpu_models for group in found.groups] == [("h100",), ("h100",)]
    assert found.affinity == (Affinity(a="node", b="rest", level="node", kind="apart"),)


def test_cards_in_all_on_a_number_of_nodes() -> None:
    wants = job(1, tres_per_job="gres/gpu:7", node_count=number(3), max_nodes=number(3))
    (found,) = of([node(f"n{i}") for i in range(4)], [wants]).jobs
    # 3 + 2 + 2
    assert [(group.count, group.task and group.task.gpus) for group in found.groups] == [(1, 3), (2, 2)]


def test_the_size_of_nodes_is_that_of_those_it_may_use() -> None:
    nodes = [node("a1"), node("a2"), node("b1", "gpu:h100:8", partitions=["big"])]
    found, task = only(of(nodes, [job(1, tres_per_job="gres/gpu:16", partition="big")]))
    assert (found.groups[0].count, task.gpus) == (2, 8)


@pytest.mark.parametrize(
    ("fields", "count", "least", "gpus", "cpu", "memory"),
    [
        # by node: 16 threads over 2 nodes, 256 MiB for each thread
        ({"tres_per_node": "gres/gpu:2", "node_count": number(2), "cpus": number(16)}, 2, None, 2, 8, "2048Mi"),
        # 2 to 4 nodes
        ({"tres_per_node": "gres/gpu:1", "node_count": number(2), "max_nodes": number(4), "cpus": number(8)},
         4, 2, 1, 4, "1024Mi"),
        # 8 in all, 4 on each node
        ({"tres_per_node": "gres/gpu:4", "tres_per_job": "gres/gpu:8", "cpus": number(8)}, 2, None, 4, 4, "1024Mi"),
        # by task: 6 tasks, wherever they fit
        ({"tres_per_task": "gres/gpu=2", "tasks": number(6), "cpus": number(24)}, 6, None, 2, 4, "1024Mi"),
        # 6 tasks, 2 on each node: 3 nodes with twice as much each
        ({"tres_per_task": "gres/gpu:2", "tasks": number(6), "tasks_per_node": number(2)}, 3, None, 4, 8, "2048Mi"),
        # by socket, of which it asks for 2
        ({"tres_per_socket": "gres/gpu:2", "sockets_per_node": number(2)}, 1, None, 4, 4, "1024Mi"),
        # 10 threads for each card; 512 MiB for each node
        ({"tres_per_node": "gres/gpu:2", "cpus_per_tres": "gres/gpu:10", "memory_per_cpu": UNSET,
          "memory_per_node": number(512)}, 1, None, 2, 20, "512Mi"),
        # 3000 MiB for each card
        ({"tres_per_node": "gres/gpu:2", "memory_per_tres": "gres/gpu:3000", "memory_per_cpu": UNSET},
         1, None, 2, 4, "6000Mi"),
        # no cards: 3 tasks of 4 threads
        ({"tasks": number(3), "cpus": number(12)}, 3, None, 0, 4, "1024Mi"),
        # all memory is said by tres_req_str alone
        ({"memory_per_cpu": UNSET, "tres_req_str": "cpu=4,mem=3G,node=1"}, 1, None, 0, 4, "3072Mi"),
    ],
)  # fmt: skip
def test_forms_of_requests(
    fields: Mapping[str, Any], count: int, least: int | None, gpus: int, cpu: int, memory: str
) -> None:
    found, task = only(of([node(f"n{i}") for i in range(4)], [job(1, **fields)]))
    (group,) = found.groups
    assert (group.count, group.min_count) == (count, least)
    assert (task.gpus, task.cpu, task.memory) == (gpus, cpu, memory)
    apart = "tres_per_task" not in fields and "tasks" not in fields and count > 1
    if apart:
        assert group.topology == APART


def test_cores_are_left_for_cards() -> None:
    """Of two nodes with 8 cards the one with 32 threads has to take the job of 12, or 3 cards have no thread left."""
    nodes = [node("small", "gpu:h100:8", cpus=16, effective_cpus=16), node("large", "gpu:h100:8")]
    big = job(1, tres_per_node="gres/gpu:1", cpus=number(12))
    small = [job(2 + i, tres_per_node="gres/gpu:1", cpus=number(1), cpus_per_task=number(1)) for i in range(15)]
    snapshot = of(nodes, [big, *small])
    assert [found.cpu for found in snapshot.nodes] == [16, 32]
    assert [found.groups[0].task and found.groups[0].task.cpu for found in snapshot.jobs] == [12, *[1] * 15]


@pytest.mark.parametrize(
    ("gres", "tasks", "most", "count", "memory", "named"),
    [
        ("gres/gpu=1", 1, 0, 1, 4096, False),
        ("gres/gpu=1", 3, 0, 3, 1366, True),
        ("gres/gpu=1", 4, 1, 1, 4096, False),
        ("", 3, 0, 3, 1366, True),
    ],
)
def test_memory_by_node_of_a_job_that_asks_by_task(
    gres: str, tasks: int, most: int, count: int, memory: int, named: bool
) -> None:
    """4096 MiB are for all tasks on a node: 4096 / 3 is 1366, rounded up; a job of one node asks for it there."""
    by_node = {"memory_per_cpu": UNSET, "memory_per_node": number(4096), "max_nodes": number(most)}
    snapshot = of([node("n1")], [job(1, tres_per_task=gres, tasks=number(tasks), cpus=number(4 * tasks), **by_node)])
    found, task = only(snapshot)
    assert (found.groups[0].count, task.memory) == (count, f"{memory}Mi")
    assert ("memory by node of a job whose tasks may be on any nodes" in kinds(snapshot, "ignored")) is named
