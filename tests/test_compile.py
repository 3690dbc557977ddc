"""Compiling: units, classes, what running work leaves, and what the filters admit."""

from fractions import Fraction

import numpy as np
from check_cases import device_indices

from placement.compile import compile as compile_snapshot
from placement.evaluate import fragmentation
from placement.instance import GPU, Assignment, Instance
from placement.snapshot import (
    DomainLimit,
    Gpu,
    Job,
    Node,
    Requires,
    Running,
    RunningTask,
    Snapshot,
    Taint,
    Task,
    TaskGroup,
    Toleration,
)
from placement.state import State
from placement.units import Quantity


def job(name: str, task: Task, count: int = 1, **more: object) -> Job:
    return Job(name=name, groups=(TaskGroup(name="w", task=task),), count=count, **more)  # type: ignore[arg-type]


def test_units_are_the_gcd_of_requests_and_capacities_round_down() -> None:
    # CPU requests 1.5 and 2.5 cores: unit 0.5; a node of 7.9 cores holds 15 of them.
    # Shares 0.6 and 0.8 and a whole card: unit 0.2, five to a card.
    instance = compile_snapshot(
        Snapshot(
            nodes=(Node(name="n", cpu=7.9, gpus=(Gpu(model="A"),)),),
            jobs=(
                job("a", Task(cpu="1500m", gpus=1, gpu_share=0.6)),
                job("b", Task(cpu=2.5, gpus=1, gpu_share="800m")),
            ),
        )
    )
    assert instance.resources == ("cpu", "memory", "pods")
    assert instance.resource_units[0] == Fraction(1, 2)
    assert instance.classes[0].free[0] == 15
    assert [shape.demand[0] for shape in instance.shapes] == [3, 5]
    assert instance.card_units == 5
    assert [shape.units for shape in instance.shapes] == [3, 4]


def test_rounding_requests_would_be_wrong_and_is_not_done() -> None:
    # Three tasks of 0.5 MiB fit a node of 1.5 MiB; rounding to MiB would say one.
    half = 2**19
    instance = compile_snapshot(
        Snapshot(nodes=(Node(name="n", memory=3 * half),), jobs=(job("a", Task(memory=half), count=9),))
    )
    assert instance.exact
    assert instance.classes[0].free[1] // instance.shapes[0].demand[1] == 3


def test_numbers_beyond_64_bits_are_rounded_and_said_to_be() -> None:
    nodes = tuple(Node(name=f"n{i}", memory=2**62) for i in range(8))
    instance = compile_snapshot(
        Snapshot(nodes=nodes, jobs=(job("a", Task(memory=2**61 + 1)), job("b", Task(memory=2**61))))
    )
    assert not instance.exact
    unit = instance.resource_units[1]
    assert all(shape.demand[1] * unit >= 2**61 for shape in instance.shapes)
    assert instance.classes[0].free[1] * unit <= 2**62


def running(name: str, node: str, gpus: tuple[int, ...], share: Quantity = 1, cpu: Quantity = 0) -> Job:
    task = Task(gpus=len(gpus), gpu_share=share, gpu_memory="10Gi", cpu=cpu)
    place = RunningTask(group="w", index=0, node=node, gpus=gpus)
    return job(name, task, running=Running(tasks=(place,)))


def test_running_work_makes_classes_of_its_own() -> None:
    node = Node(name="n", count=4, cpu=8, gpus=(Gpu(model="A", count=2, memory="40Gi"),))
    instance = compile_snapshot(
        Snapshot(
            nodes=(node,),
            jobs=(
                running("r1", "n-1", (0,), cpu=1),
                running("r2", "n-3", (1,), cpu=1),
                job("p", Task(gpus=1, gpu_memory="5Gi")),
            ),
        )
    )
    # n-1 and n-3 have one card in use each, at different indices: one class all the same
    assert [c.nodes.tolist() for c in instance.classes] == [[0, 2], [1, 3]]
    assert [c.in_use for c in instance.classes] == [False, True]
    used = instance.classes[1]
    assert [units for _, units, _ in used.cards] == [0, 1]
    assert [device_indices(instance, n) for n in (1, 3)] == [(0, 1), (1, 0)]
    # what is left: 7 of 8 cores, and 30 of 40 GiB on the card in use. The unit is 5 GiB.
    assert used.free[0] == 7
    assert [memory for _, _, memory in used.cards] == [6, 8]


def test_over_full_running_work_leaves_nothing_and_is_no_error() -> None:
    instance = compile_snapshot(
        Snapshot(
            nodes=(Node(name="n", cpu=1, gpus=(Gpu(model="A"),)),),
            jobs=(running("a", "n", (0,), 0.7, cpu=2), running("b", "n", (0,), 0.7), job("p", Task(cpu=1))),
        )
    )
    assert instance.classes[0].free[0] == 0
    assert instance.classes[0].cards[0][1] == 0


def test_limits_count_running_work_and_cover_their_domain_only() -> None:
    instance = compile_snapshot(
        Snapshot(
            topology=("rack",),
            nodes=(
                Node(name="a", position={"rack": "r1"}, gpus=(Gpu(model="A", count=4),)),
                Node(name="b", position={"rack": "r2"}, gpus=(Gpu(model="A", count=4),)),
            ),
            limits=(
                DomainLimit(level="rack", domain="r1", gpus=3),
                DomainLimit(level="cluster", cpu=10),
            ),
            jobs=(running("r", "a", (0, 1), cpu=4), job("p", Task(gpus=1, gpu_share="500m", cpu=2))),
        )
    )
    # 3 cards less the 2 in use: 1 card = 2 units of half a card; 10 cores less 4 = 6 = 3 units of 2 cores
    assert [(row.resource, row.capacity) for row in instance.limits] == [(GPU, 2), (0, 3)]
    of_node = {int(n): c.limits for c in instance.classes for n in c.nodes}
    assert of_node == {0: (0, 1), 1: (1,)}


def admitted(instance: Instance, shape: int) -> tuple[list[bool], list[bool]]:
    return instance.admits_node[shape].tolist(), instance.admits_card[shape].tolist()


def test_filters() -> None:
    nodes = (
        Node(name="plain", gpus=(Gpu(model="A", compute_capability="8.0"),)),
        Node(name="labelled", labels={"zone": "x"}, gpus=(Gpu(model="B", compute_capability="9.0"),)),
        Node(name="tainted", taints=(Taint(key="dedicated", value="ml"),), driver="550.54", cuda="12.4"),
        Node(name="cordoned", cordoned=True),
    )
    cards = Task(gpus=1, gpu_models=("B", "C", "B"))
    instance = compile_snapshot(
        Snapshot(
            nodes=nodes,
            jobs=(
                job("any", Task()),
                job("label", Task(node_selector={"zone": "x"})),
                job("tolerant", Task(tolerations=(Toleration(key="dedicated", value="ml"),))),
                job("driver", Task(tolerations=(Toleration(operator="Exists"),)), requires=Requires(driver="550")),
                job("model", cards),
                job("capability", Task(gpus=1), requires=Requires(compute_capability="8.6")),
            ),
        )
    )
    assert admitted(instance, 0)[0] == [True, True, False, False]
    assert admitted(instance, 1)[0] == [False, True, False, False]
    assert admitted(instance, 2)[0] == [True, True, True, False]
    assert admitted(instance, 3)[0] == [False, False, True, False]  # unknown versions satisfy nothing
    assert admitted(instance, 4)[1] == [False, True]
    assert admitted(instance, 5)[1] == [False, True]


def test_jobs_of_equal_gangs_are_one_class_and_values_are_shared() -> None:
    group = TaskGroup(name="w", count=3, min_count=2, task=Task(gpus=1))
    helper = TaskGroup(name="h", task=Task(gpus=1, gpu_share=0.5))
    instance = compile_snapshot(
        Snapshot(
            jobs=(
                Job(name="a", count=2, groups=(group, helper), value=7),
                Job(name="b", groups=(group, helper), value=7),
                Job(name="c", groups=(group, helper), weight=2),
                Job(name="d", groups=(group, helper), weight=2, priority=1),
            )
        )
    )
    assert [c.jobs.tolist() for c in instance.job_classes] == [[0, 1, 2], [3], [4]]
    # 7 over 3 whole cards and a half: 2 a card, 1 for the half; weight 2: 2000 and 1000
    worth = [[leaf.value * instance.value_unit for leaf in c.leaves] for c in instance.job_classes]
    assert worth == [[2, 1], [2000, 1000], [2000, 1000]]
    assert instance.priorities == (1, 0)
    assert instance.arrival.tolist() == [4, 0, 2, 3, 1]


def test_arrival_order() -> None:
    jobs = (
        job("late", Task(), submit_time=9.0),
        job("none", Task()),
        job("early", Task(), submit_time=1.0),
        job("urgent", Task(), submit_time=50.0, priority=2),
        job("early-too", Task(), submit_time=1.0),
    )
    instance = compile_snapshot(Snapshot(jobs=jobs))
    names = [instance.job_name(int(j)) for j in instance.arrival]
    assert names == ["urgent", "none", "early", "early-too", "late"]


def test_copies_of_a_counted_job_are_spread_over_the_others() -> None:
    # copies at (2k + 1) / (2 count): a at 1/6, 3/6, 5/6; b at 1/4, 3/4; c at 1/2, after a-1 by the order of the file
    jobs = (job("a", Task(), 3), job("b", Task(), 2), job("c", Task()))
    instance = compile_snapshot(Snapshot(jobs=jobs))
    assert [instance.job_name(int(j)) for j in instance.arrival] == ["a-0", "b-0", "a-1", "c", "b-1", "a-2"]


def test_empty() -> None:
    instance = compile_snapshot(Snapshot())
    assert (instance.nodes, instance.jobs) == (0, 0)
    assert instance.job_class.shape == (0,)
    assert np.array_equal(instance.arrival, np.zeros(0))


def test_what_has_no_limit_holds_one_task_more_than_all_that_is_wanted() -> None:
    # both tasks run on one card of unknown memory, on a node without a figure for CPU; a third would still fit
    task = Task(gpus=1, gpu_share="250m", gpu_memory="6Gi", cpu=2)
    group = TaskGroup(name="g", count=2, task=task)
    snapshot = Snapshot(nodes=(Node(name="n", gpus=(Gpu(model="A"),)),), jobs=(Job(name="p", groups=(group,)),))
    instance = compile_snapshot(snapshot)
    state = State(instance)
    state.apply(Assignment.of([(0, 0, 0, 0, (0,)), (0, 0, 1, 0, (0,))]))
    assert state.fits(0, np.array([0])).all()
    # the idle half of the card is of use to both tasks wanted
    assert fragmentation(instance, state) == 0
