"""Second opinions by other people's code, where brute force cannot go.

scipy carries a solver build of its own, so the reference model is solved twice by different binaries. And where every
task takes one whole card of a node it may use, the most tasks that can start is a maximum flow (Ford and Fulkerson
1956), which networkx finds for clusters far beyond brute force.
"""

from __future__ import annotations

import random

import networkx as nx
import numpy as np
import pytest
import strategies
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from placement import models
from placement.compile import compile as compile_snapshot
from placement.exact import run
from placement.exact.milp.arrays import Program, program
from placement.exact.milp.highs import solve
from placement.snapshot import Gpu, Job, Node, Snapshot, Task, TaskGroup
from placement.solver import Limits, Stop


def scipy_optimum(problem: Program) -> float:
    if not len(problem.cost):
        return problem.offset
    matrix = csr_array((problem.value, problem.index, problem.start), shape=problem.size)
    result = milp(
        problem.sense * problem.cost,
        integrality=problem.integer.astype(int),
        bounds=Bounds(problem.lower, problem.upper),
        constraints=LinearConstraint(matrix, problem.row_lower, problem.row_upper),
    )
    assert result.success
    return problem.sense * float(result.fun) + problem.offset


@pytest.mark.parametrize("seed", range(100, 130))
def test_another_solver_build_agrees_on_the_reference_model(seed: int) -> None:
    instance = compile_snapshot(strategies.random_tiny(seed))
    problem = program(models.build(instance, models.REFERENCE, "tasks"))
    solved = solve(problem)
    assert solved.objective is not None
    assert round(solved.objective) == round(scipy_optimum(problem))


def one_card_cluster(seed: int) -> Snapshot:
    """Return a cluster of one-card tasks that may run on some of its zones only."""
    rng = random.Random(seed)
    zones = [f"z{i}" for i in range(rng.randint(3, 6))]
    nodes = tuple(
        Node(
            name=f"n{i}",
            count=rng.randint(1, 6),
            labels={zone: "yes" for zone in zones if rng.random() < 0.4},
            gpus=(Gpu(model=rng.choice(("A", "B")), count=rng.randint(1, 8)),),
        )
        for i in range(rng.randint(4, 9))
    )
    jobs = tuple(
        Job(
            name=f"j{i}",
            count=rng.randint(1, 25),
            groups=(
                TaskGroup(
                    name="w",
                    task=Task(
                        gpus=1,
                        gpu_models=rng.choice(((), ("A",), ("B",))),
                        node_selector={zone: "yes" for zone in zones if rng.random() < 0.25},
                    ),
                ),
            ),
        )
        for i in range(rng.randint(5, 15))
    )
    return Snapshot(nodes=nodes, jobs=jobs)


def most_tasks(snapshot: Snapshot) -> int:
    """Return the value of a maximum flow from jobs through nodes that may take them."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(("source", "sink"))
    for node in snapshot.nodes:
        graph.add_edge(f"node {node.name}", "sink", capacity=node.count * node.gpus[0].count)
    for job in snapshot.jobs:
        task = job.groups[0].task
        assert task is not None
        graph.add_edge("source", f"job {job.name}", capacity=job.count)
        for node in snapshot.nodes:
            right_model = not task.gpu_models or node.gpus[0].model in task.gpu_models
            if right_model and task.node_selector.items() <= node.labels.items():
                graph.add_edge(f"job {job.name}", f"node {node.name}", capacity=job.count)
    return int(nx.maximum_flow_value(graph, "source", "sink"))


@pytest.mark.parametrize("seed", range(20))
def test_one_card_tasks_reach_the_maximum_flow(seed: int) -> None:
    snapshot = one_card_cluster(seed)
    instance = compile_snapshot(snapshot)
    result = run(instance, objectives=("tasks",), limits=Limits())
    most = most_tasks(snapshot)
    assert len(result.assignment) == most
    (bound,) = result.bounds
    assert bound.value is not None
    assert most <= bound.value + 1e-6 < most + 1
    assert result.stop is Stop.OPTIMAL
    assert np.all(np.diff(result.assignment.offset) == 1)
