"""Compiling compared with the plainest way to say the same: node by node, in fractions, without any class."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import cast

import msgspec
import numpy as np
import strategies
from check_cases import device_indices
from hypothesis import given
from hypothesis import strategies as st

from placement import units
from placement.compile import cards as compile_cards
from placement.compile import compile as compile_snapshot
from placement.compile import jobs as compile_jobs
from placement.compile.cards import NodeKinds
from placement.compile.work import Work
from placement.index import integers, members, numbered
from placement.instance import Instance, Shape
from placement.rules import CARD_FILTERS, DIMENSIONS, NODE_FILTERS, Tabulated
from placement.rules.labels import NodeSelector
from placement.rules.taints import Taints
from placement.scale import amounts_of, counted
from placement.snapshot import Gpu, Job, Node, Running, RunningTask, Snapshot, Taint, Task, TaskGroup, Toleration

SELECTOR = NodeSelector()
TAINTS = Taints()


def tasks_of(groups: tuple[TaskGroup, ...], above: str = "") -> Iterator[tuple[str, Task]]:
    for group in groups:
        if group.task is not None:
            yield f"{above}{group.name}", group.task
        yield from tasks_of(group.groups, f"{above}{group.name}/")


def held(snapshot: Snapshot, name: str) -> Iterator[tuple[Task, tuple[int, ...]]]:
    """Yield the tasks that run on a node, and their cards."""
    for job in snapshot.jobs:
        for place in () if job.running is None else job.running.tasks:
            if place.node == name:
                yield dict(tasks_of(job.groups))[place.group], place.gpus


def free_of(instance: Instance, node: int) -> tuple[list[int | None], list[tuple[str, int, int | None]]]:
    """Return what is free of a node by resource, and (model, units, memory) by device; None is no limit."""
    spec = instance.snapshot.nodes[instance.node_spec[node]]
    on = list(held(instance.snapshot, instance.node_name(node)))
    capacity = {name: amount for dimension in DIMENSIONS for name, amount in dimension.capacity(spec).items()}
    amounts: list[int | None] = []
    for name, unit in zip(instance.resources, instance.resource_units, strict=True):
        have = capacity.get(name, Fraction(0))
        taken = sum((amounts_of(task).demand.get(name, Fraction(0)) for task, _ in on), Fraction(0))
        amounts.append(None if have is None else max(0, math.floor((have - taken) / unit)))
    cards: list[tuple[str, int, int | None]] = []
    for device, gpu in enumerate([one for one in spec.gpus for _ in range(one.count)]):
        share = sum((amounts_of(task).share for task, gpus in on if device in gpus), Fraction(0))
        memory = sum((amounts_of(task).memory for task, gpus in on if device in gpus), Fraction(0))
        left = None if gpu.memory is None else math.floor((units.exact(gpu.memory) - memory) / instance.memory_unit)
        free = max(0, math.floor((1 - share) * instance.card_units))
        cards.append((gpu.model, free, None if left is None else max(0, left)))
    return amounts, cards


def all_memory(instance: Instance) -> int:
    """Return the device memory of all tasks, and of one more of each group of a job entry."""
    return math.ceil(
        sum(
            (
                amounts_of(task).memory * (count + 1)
                for job in instance.snapshot.jobs
                for task, count in counted(job.groups, job.count)
            ),
            Fraction(0),
        )
        / instance.memory_unit
    )


def assert_free(instance: Instance, node: int) -> None:
    amounts, cards = free_of(instance, node)
    node_class = instance.classes[instance.node_class[node]]
    for have, want in zip(node_class.free, amounts, strict=True):
        assert want is None or have == want
    unlimited = all_memory(instance)
    devices = device_indices(instance, node)
    assert sorted(devices) == list(range(len(cards)))
    assert list(node_class.cards) == sorted(node_class.cards)
    for device, (kind, free, memory) in zip(devices, node_class.cards, strict=True):
        model, units_left, memory_left = cards[device]
        assert (instance.card_kinds[kind].model, free) == (model, units_left)
        # more than all tasks ask for is as good as no limit
        most = instance.card_kinds[kind].memory if memory_left is None else memory_left
        assert memory == min(most, unlimited)
    assert node_class.in_use == bool(list(held(instance.snapshot, instance.node_name(node))))


def shape_of(instance: Instance, task: Task) -> Shape:
    amounts = amounts_of(task)
    return Shape(
        task.gpus,
        math.ceil(amounts.share * instance.card_units),
        math.ceil(amounts.memory / instance.memory_unit),
        tuple(
            math.ceil(amounts.demand.get(name, Fraction(0)) / unit)
            for name, unit in zip(instance.resources, instance.resource_units, strict=True)
        ),
    )


def assert_admissions(instance: Instance, job: Job, tasks: list[Task], shapes: list[int]) -> None:
    for task, shape in zip(tasks, shapes, strict=True):
        assert instance.shapes[shape] == shape_of(instance, task)
        for node in range(instance.nodes):
            spec = instance.snapshot.nodes[instance.node_spec[node]]
            refused = any(rule.refusal(rule.task_key(job, task), rule.node_key(spec)) for rule in NODE_FILTERS)
            assert instance.admits_node[shape, instance.node_class[node]] != refused
            of_device = [gpu for gpu in spec.gpus for _ in range(gpu.count)]
            kinds = [kind for kind, _, _ in instance.classes[instance.node_class[node]].cards]
            for device, kind in zip(device_indices(instance, node) if task.gpus else (), kinds, strict=False):
                gpu = of_device[device]
                refused = any(rule.refusal(rule.task_key(job, task), rule.card_key(gpu, spec)) for rule in CARD_FILTERS)
                assert instance.admits_card[shape, kind] != refused


@given(strategies.snapshots(12))
def test_every_node_and_task_is_what_it_is_alone(snapshot: Snapshot) -> None:
    instance = compile_snapshot(snapshot)
    for node in range(instance.nodes):
        assert_free(instance, node)
    for number in range(instance.jobs):
        job = snapshot.jobs[instance.job_spec[number]]
        job_class = instance.job_classes[instance.job_class[number]]
        tasks = [task for _, task in tasks_of(job.groups)]
        assert [leaf.path for leaf in job_class.leaves] == [path for path, _ in tasks_of(job.groups)]
        assert job_class.priority == job.priority
        assert_admissions(instance, job, tasks, [leaf.shape for leaf in job_class.leaves])


@given(strategies.snapshots(12))
def test_classes_are_numbered_as_they_come(snapshot: Snapshot) -> None:
    instance = compile_snapshot(snapshot)
    for of_thing, classes in ((instance.node_class, instance.classes), (instance.job_class, instance.job_classes)):
        assert list(dict.fromkeys(of_thing.tolist())) == list(range(len(classes)))
    members_of = [c.nodes.tolist() for c in instance.classes]
    assert members_of == [np.flatnonzero(instance.node_class == k).tolist() for k in range(len(members_of))]
    seen = dict.fromkeys(leaf.shape for job_class in instance.job_classes for leaf in job_class.leaves)
    assert list(seen) == list(range(len(instance.shapes)))


def one(name: str, task: Task, **more: object) -> Job:
    return Job(name=name, groups=(TaskGroup(name="w", task=task),), **more)  # type: ignore[arg-type]


def test_a_whole_number_and_the_double_equal_to_it_are_told_apart() -> None:
    # Python says 2**60 == float(2**60), but as it is written the double is 1.152921504606847e+18, which is 24 more
    assert float(2**60) == 2**60
    assert units.exact(float(2**60)) - 2**60 == 24
    nodes = (Node(name="a", cpu=2**60), Node(name="b", cpu=float(2**60)))
    jobs = (one("j", Task(cpu=2**60)), one("k", Task(cpu=float(2**60))))
    work = Work(jobs)
    assert [amounts.demand["cpu"] for amounts in work.amounts] == [2**60, 2**60 + 24]
    assert [capacity["cpu"] for capacity in NodeKinds(nodes).capacity] == [2**60, 2**60 + 24]


def test_what_is_written_differently_and_means_the_same_is_one_class() -> None:
    nodes = (
        Node(name="a", cpu=1, extended={"x": 1, "y": 2}, gpus=(Gpu(model="A", count=2),)),
        Node(name="b", cpu="1000m", extended={"y": 2, "x": "1"}, gpus=(Gpu(model="A"), Gpu(model="A"))),
    )
    jobs = (
        one("j", Task(cpu="500m", extended={"x": 1, "y": 1})),
        one("k", Task(cpu=0.5, extended={"y": 1.0, "x": 1})),
    )
    instance = compile_snapshot(Snapshot(nodes=nodes, jobs=jobs))
    assert [c.nodes.tolist() for c in instance.classes] == [[0, 1]]
    assert [c.jobs.tolist() for c in instance.job_classes] == [[0, 1]]
    assert len(instance.shapes) == 1


def test_running_work_finer_than_64_bits_is_added_up_exactly() -> None:
    # 10^-15 of a card is finer than the finest unit, 10^-12; ten tasks of 0.09 still leave a tenth to the last unit
    tiny = "0.000000000000001"
    tasks = [one(f"r{i}", Task(gpus=1, gpu_share="0.09"), running=at("n", 0)) for i in range(10)]
    nodes = (Node(name="n", gpus=(Gpu(model="A"),)),)
    instance = compile_snapshot(Snapshot(nodes=nodes, jobs=(*tasks, one("p", Task(gpus=1, gpu_share=tiny)))))
    assert not instance.exact
    assert instance.classes[0].cards == ((0, instance.card_units // 10, 0),)


def at(node: str, *gpus: int) -> Running:
    return Running(tasks=(RunningTask(group="w", index=0, node=node, gpus=gpus),))


LABELS = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xyz"), max_size=3)
TAINT = st.builds(Taint, key=st.sampled_from("ab"), value=st.sampled_from("xy"))
TOLERATION = st.builds(
    Toleration,
    key=st.sampled_from(("", "a", "b")),
    value=st.sampled_from(("", "x", "y")),
    operator=st.sampled_from(("Equal", "Exists")),
    effect=st.sampled_from(("", "NoSchedule", "NoExecute")),
)


@given(st.lists(LABELS, max_size=6), st.lists(LABELS, max_size=6))
def test_selectors_in_a_table_refuse_what_they_refuse_one_by_one(
    asked: list[dict[str, str]], has: list[dict[str, str]]
) -> None:
    tasks = [SELECTOR.task_key(one("j", task), task) for task in (Task(node_selector=labels) for labels in asked)]
    assert_table(SELECTOR, tasks, [SELECTOR.node_key(Node(name="n", labels=labels)) for labels in has])


@given(
    st.lists(st.lists(TOLERATION, max_size=3).map(tuple), max_size=5),
    st.lists(st.lists(TAINT, max_size=3).map(tuple), max_size=5),
)
def test_taints_in_a_table_refuse_what_they_refuse_one_by_one(
    tolerations: list[tuple[Toleration, ...]], taints: list[tuple[Taint, ...]]
) -> None:
    assert_table(TAINTS, tolerations, taints)


def assert_table(rule: NodeSelector | Taints, tasks: list, places: list) -> None:  # type: ignore[type-arg]
    assert isinstance(rule, Tabulated)
    table = rule.refusals(tasks, places)
    assert table.shape == (len(tasks), len(places))
    assert table.tolist() == [[rule.refusal(task, place) is not None for place in places] for task in tasks]


class Blind:
    """A record of which some fields may not be read."""

    def __init__(self, record: msgspec.Struct, hidden: set[str]) -> None:
        self._record = record
        self._hidden = hidden

    def __getattr__(self, field: str) -> object:
        assert field not in self._hidden, f"a rule reads {field}, in which things of one kind differ"
        return getattr(self._record, field)


def test_rules_read_nothing_in_which_things_of_one_kind_differ() -> None:
    job = cast(Job, Blind(one("j", Task(gpus=1)), compile_jobs._BESIDES))
    node = cast(Node, Blind(Node(name="n"), compile_cards._BESIDES))
    for node_rule in NODE_FILTERS:
        node_rule.task_key(job, Task(gpus=1))
    for card_rule in CARD_FILTERS:
        card_rule.task_key(job, Task(gpus=1))
    for dimension in DIMENSIONS:
        dimension.capacity(node)


def test_steps_between_kinds_and_things() -> None:
    codes, first = numbered(["b", "a", "b", "c", "a"])
    assert (codes.tolist(), first.tolist()) == ([0, 1, 0, 2, 1], [0, 1, 3])
    assert [inside.tolist() for inside in members(codes, 3)] == [[0, 2], [1, 4], [3]]
    assert [part.tolist() for part in (*numbered([]), *members(np.zeros(0, dtype=np.int64), 0))] == [[], []]
    assert int(integers([2**62, 2**62], 2**63).sum()) == 2**63
