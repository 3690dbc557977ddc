"""Snapshot to objects of Kubernetes and back; plans exported, applied by what knows nothing of us, and read again."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import snapshots

import placement
from placement.formats.kubernetes import bindings, dump
from placement.formats.options import Options
from placement.formats.read import read
from placement.formats.source import File
from placement.honoured import timed
from placement.snapshot import (
    Gpu,
    Job,
    MigInstance,
    Node,
    Running,
    RunningTask,
    Snapshot,
    Taint,
    Task,
    TaskGroup,
    Toleration,
    Topology,
)
from placement.snapshot.read import verified
from placement.units import Quantity, exact

LEVELS = tuple((name, f"topology.gpu-placement.io/{name}") for name in ("block", "rack", "zone"))
PLACES: tuple[dict[str, str], ...] = (
    {"block": "b0", "rack": "r0"},
    {"block": "b0", "rack": "r1"},
    {"block": "b1", "rack": "r2"},
    {},
)
MODELS = (("NVIDIA-A100-SXM4-80GB", "80Gi", "8.0"), ("Tesla-T4", "15Gi", "7.5"))


def imported(objects: bytes) -> Snapshot:
    levels = tuple((name, label) for name, label in LEVELS if label.encode() in objects)
    return read([File("objects.json", objects)], Options(levels=levels, time=2000.0))


def solved(snapshot: Snapshot) -> placement.Plan:
    return placement.solve(snapshot, solver="best-fit", without=timed())


# --- what objects carry, drawn --------------------------------------------------------------------------------------


def carryable(rng: random.Random) -> Snapshot:
    """Return a snapshot of which objects carry every field but the time."""
    nodes = tuple(node(rng, f"n{index}") for index in range(rng.randint(1, 4)))
    free = {each.name: list(cards(each)) for each in nodes}
    jobs = tuple(job(rng, f"team-{rng.choice('ab')}/j{index}", nodes, free) for index in range(rng.randint(1, 6)))
    return verified(Snapshot(time=2000.0, topology=("block", "rack"), nodes=nodes, jobs=jobs))


def node(rng: random.Random, name: str) -> Node:
    model, memory, capability = rng.choice(MODELS)
    shared = name != "n0" and rng.random() < 0.3
    ways: dict[str, Any] = {"sharing": rng.choice(("time_slicing", "mps")), "replicas": 4} if shared else {}
    well, broken = rng.randint(1, 4), rng.choice((0, 0, 1))
    kind = Gpu(model=model, count=well, memory=memory, compute_capability=capability, **ways)
    gpus = (kind, msgspec.structs.replace(kind, count=1, health="unhealthy")) if broken else (kind,)
    return Node(
        name=name,
        position=PLACES[0] if name == "n0" else rng.choice(PLACES),
        labels={"pool": rng.choice(("a", "b"))} if rng.random() < 0.5 else {},
        taints=(Taint(key="dedicated", value="x"),) if rng.random() < 0.2 else (),
        cordoned=rng.random() < 0.1,
        cpu=rng.choice((8, "7910m")),
        memory="64Gi",
        pods=rng.choice((110, 6)),
        extended={"example.com/licence": 2} if rng.random() < 0.3 else {},
        driver=rng.choice(("", "550.54.14")),
        gpus=gpus if name == "n0" or rng.random() < 0.9 else (),
    )


def cards(entry: Node) -> Iterator[int]:
    """Yield the cards that are well and no replicas."""
    index = 0
    for gpu in entry.gpus:
        yield from (index + each for each in range(gpu.count) if gpu.health == "healthy" and gpu.replicas is None)
        index += gpu.count


def job(rng: random.Random, name: str, nodes: tuple[Node, ...], free: dict[str, list[int]]) -> Job:
    count = rng.choice((1, 1, 2, 3))
    task = Task(
        gpus=rng.choice((0, 1, 1, 2)),
        cpu=rng.choice((1, "500m")),
        memory="1Gi",
        node_selector={"pool": "a"} if rng.random() < 0.2 else {},
        tolerations=(Toleration(key="dedicated", operator="Exists"),) if rng.random() < 0.3 else (),
    )
    if task.gpus and rng.random() < 0.2:
        task = msgspec.structs.replace(task, gpu_models=("Tesla-T4",))
    if task.gpus and rng.random() < 0.25:
        task = msgspec.structs.replace(task, gpus=1, gpu_share="250m")
    alone = count == 1
    group = TaskGroup(
        name="pod" if alone else "pods",
        count=count,
        min_count=rng.choice((None, 1)) if count > 1 else None,
        task=task,
        topology=Topology(required="rack") if not alone and rng.random() < 0.3 else None,
    )
    running = None
    if rng.random() < 0.4 and task.gpu_share is None:
        running = where(rng, group, task, nodes, free)
    namespace, _, own = name.partition("/")
    names = {} if alone else {"pods": tuple(f"{namespace}/{own}-{index}" for index in range(count))}
    return Job(
        name=name,
        priority=rng.choice((0, 5)),
        submit_time=float(rng.randint(0, 1000)),
        groups=(group,),
        running=running,
        task_names=names,
    )


def where(
    rng: random.Random, group: TaskGroup, task: Task, nodes: tuple[Node, ...], free: dict[str, list[int]]
) -> Running | None:
    """Return places for all tasks on cards that nobody has, whatever else keeps them off: what runs is a fact."""
    tasks, left = [], {name: list(some) for name, some in free.items()}
    for index in range(group.count):
        able = [entry.name for entry in nodes if len(left[entry.name]) >= task.gpus]
        if not able:
            return None
        name = rng.choice(able)
        taken = sorted(rng.sample(left[name], task.gpus))
        left[name] = [card for card in left[name] if card not in taken]
        tasks.append(RunningTask(group=group.name, index=index, node=name, gpus=tuple(taken)))
    free.update(left)
    return Running(tasks=tuple(tasks), since=float(rng.randint(1000, 2000)))


# --- snapshot to objects to snapshot --------------------------------------------------------------------------------


def said(snapshot: Snapshot) -> dict[str, Any]:
    """Return what objects carry of a snapshot, in a form that does not depend on how it is written."""
    return {
        "topology": snapshot.topology,
        "nodes": {entry.name: said_of_node(entry) for entry in snapshot.nodes},
        "jobs": {entry.name: said_of_job(entry, snapshot.nodes) for entry in snapshot.jobs},
    }


def said_of_node(entry: Node) -> dict[str, Any]:
    assert entry.count == 1
    return {
        "domains": {level: domain for level, domain in entry.domains.items() if level in ("block", "rack")},
        "taints": entry.taints,
        "cordoned": entry.cordoned,
        "amounts": [None if amount is None else exact(amount) for amount in (entry.cpu, entry.memory, entry.pods)],
        "extended": amounts(entry.extended),
        "driver": entry.driver,
        "cards": [
            (
                gpu.model,
                None if gpu.memory is None else exact(gpu.memory),
                gpu.compute_capability,
                gpu.health,
                gpu.sharing,
                gpu.replicas,
            )
            for gpu in entry.gpus
            for _ in range(gpu.count)
        ],
    }


def said_of_job(entry: Job, nodes: tuple[Node, ...]) -> dict[str, Any]:
    (group,) = entry.groups
    assert group.task is not None
    task = group.task
    return {
        "priority": entry.priority,
        "submit": entry.submit_time,
        "count": (group.count, group.count if group.min_count is None else group.min_count),
        "level": "" if group.topology is None else group.topology.required,
        "task": (
            task.gpus,
            None if task.gpu_share is None else exact(task.gpu_share),
            exact(task.cpu),
            exact(task.memory),
            task.tolerations,
        ),
        # a model may come back as the label that says it
        "admitted": {one.name for one in nodes if admits(one, task)},
        "names": entry.task_names.get(group.name, ()),
        "running": None
        if entry.running is None
        else (entry.running.since, {(one.index, one.node, one.gpus) for one in entry.running.tasks}),
    }


def admits(entry: Node, task: Task) -> bool:
    """Return whether a node has the labels and the whole cards, or replicas, that a task asks for."""
    replicas = 1 if task.gpu_share is None else round(1 / exact(task.gpu_share))
    models = {gpu.model for gpu in entry.gpus if (gpu.replicas or 1) == replicas}
    labelled = task.node_selector.items() <= entry.labels.items()
    return labelled and (not task.gpus or bool(models & set(task.gpu_models) if task.gpu_models else models))


def amounts(found: dict[str, Quantity]) -> dict[str, Fraction]:
    return {name: exact(amount) for name, amount in found.items()}


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 10**9))
def test_what_is_carried_comes_back(seed: int) -> None:
    snapshot = carryable(random.Random(seed))
    assert [line for line in dump.lost(snapshot) if not line.startswith(("time ", "topology: the order"))] == []
    assert said(imported(dump.write(snapshot))) == said(snapshot)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(snapshots())
def test_anything_is_written_and_read_and_what_is_in_use_is_in_use(snapshot: Snapshot) -> None:
    snapshot = verified(snapshot)
    written = dump.write(snapshot)
    assert dump.write(snapshot) == written
    if not snapshot.nodes:
        return
    back = imported(written)
    before, after = Counter(used(snapshot)), Counter(used(back))
    assert before <= after, before - after


def used(snapshot: Snapshot) -> Iterator[tuple[str, int]]:
    """Yield the cards that running tasks have."""
    for entry in snapshot.jobs:
        for one in entry.running.tasks if entry.running is not None else ():
            yield from ((one.node, gpu) for gpu in one.gpus)


def test_instances_stay_as_many_and_running_ones_where_they_are() -> None:
    layout = (MigInstance(profile="3g.20gb", start=4), *(MigInstance(profile="1g.5gb", start=at) for at in (0, 1)))
    model = "NVIDIA-A100-SXM4-40GB"
    task = TaskGroup(name="pod", task=Task(gpus=1, mig_profile="3g.20gb"))
    here = RunningTask(group="pod", index=0, node="n", gpus=(1,), mig_starts=(4,))
    snapshot = verified(
        Snapshot(
            nodes=(
                Node(
                    name="n",
                    gpus=(
                        Gpu(model=model, count=2, memory="40Gi", mig_enabled=True, mig_static=True, mig_layout=layout),
                    ),
                ),
            ),
            jobs=(
                Job(name="a/wait", groups=(TaskGroup(name="pod", task=Task(gpus=1, mig_profile="1g.5gb")),)),
                Job(name="a/run", groups=(task,), running=Running(tasks=(here,))),
            ),
        )
    )
    back = imported(dump.write(snapshot))
    instances = Counter(one.profile for gpu in back.nodes[0].gpus for one in gpu.mig_layout for _ in range(gpu.count))
    assert instances == {"3g.20gb": 2, "1g.5gb": 4}
    jobs = {entry.name: entry for entry in back.jobs}
    assert jobs["a/wait"].groups[0].task == Task(gpus=1, mig_profile="1g.5gb")
    running = jobs["a/run"].running
    assert running is not None
    assert [(one.gpus, one.mig_starts) for one in running.tasks] == [((1,), (4,))]


# --- plan to bindings to a cluster where they are applied --------------------------------------------------------


def applied(objects: bytes, exported: bytes) -> bytes:
    """Return the objects after what an API server makes of Bindings: the node, and the annotations merged."""
    found = msgspec.json.decode(objects)
    pods = {(item["metadata"]["namespace"], item["metadata"]["name"]): item for item in found["items"] if is_pod(item)}
    for binding in msgspec.json.decode(exported)["items"]:
        assert (binding["apiVersion"], binding["kind"]) == ("v1", "Binding")
        pod = pods[binding["metadata"]["namespace"], binding["metadata"]["name"]]
        assert "nodeName" not in pod["spec"], "bound already"
        assert binding["target"]["kind"] == "Node"
        pod["spec"]["nodeName"] = binding["target"]["name"]
        pod["metadata"].setdefault("annotations", {}).update(binding["metadata"].get("annotations", {}))
        pod["status"] = {"phase": "Running", "startTime": "1970-01-01T00:33:20Z"}
    return msgspec.json.encode(found)


def is_pod(item: dict[str, Any]) -> bool:
    return bool(item["kind"] == "Pod")


def running_pods(snapshot: Snapshot) -> dict[str, tuple[str, tuple[int, ...], tuple[int, ...]]]:
    """Return node, cards and slots of every running pod."""
    found = {}
    for entry in snapshot.jobs:
        for one in entry.running.tasks if entry.running is not None else ():
            names = entry.task_names.get(one.group, ())
            found[names[one.index] if names else entry.name] = (one.node, one.gpus, one.mig_starts)
    return found


@pytest.mark.parametrize("seed", range(8))
def test_a_plan_applied_and_read_again_runs_where_it_says(seed: int) -> None:
    objects = dump.write(carryable(random.Random(seed)))
    before = imported(objects)
    plan = solved(before)
    after = imported(applied(objects, bindings.write(before, plan)))
    expected = running_pods(before)
    names = {entry.name: entry.task_names for entry in before.jobs}
    for job_name, group, index, node_name, gpus in plan.tasks:
        of_group = names[job_name].get(group, ())
        place = plan.tasks[job_name, group, index]
        expected[of_group[index] if of_group else job_name] = (node_name, tuple(gpus), place.mig_starts)
    assert running_pods(after) == expected
    # a plan of what is now running takes nothing that is in use, and says so to an independent judge
    assert placement.check(after, solved(after)) == []


def test_a_full_card_is_full_after_it_is_applied() -> None:
    node_ = Node(name="n", pods=110, gpus=(Gpu(model="Tesla-T4", count=2),))
    jobs = tuple(Job(name=f"a/{name}", groups=(TaskGroup(name="pod", task=Task(gpus=1)),)) for name in ("x", "y", "z"))
    objects = dump.write(verified(Snapshot(nodes=(node_,), jobs=jobs)))
    before = imported(objects)
    plan = solved(before)
    assert len(plan.tasks) == 2
    after = imported(applied(objects, bindings.write(before, plan)))
    assert len(solved(after).tasks) == 0


def test_shares_and_instances_are_where_the_plan_puts_them() -> None:
    layout = (MigInstance(profile="3g.20gb", start=4), *(MigInstance(profile="1g.5gb", start=at) for at in (0, 1)))
    mig = Gpu(model="NVIDIA-A100-SXM4-40GB", count=2, mig_enabled=True, mig_static=True, mig_layout=layout)
    nodes = (Node(name="mig", gpus=(mig,)), Node(name="t4", gpus=(Gpu(model="Tesla-T4", count=2),)))
    asks = {
        "a/share": Task(gpus=1, gpu_share="460m"),
        "a/more": Task(gpus=1, gpu_share="540m"),
        "a/whole": Task(gpus=1),
        **{f"a/large-{number}": Task(gpus=1, mig_profile="3g.20gb") for number in range(2)},
        **{f"a/small-{number}": Task(gpus=1, mig_profile="1g.5gb") for number in range(4)},
        "a/none-left": Task(gpus=1, mig_profile="1g.5gb"),
    }
    jobs = tuple(Job(name=name, groups=(TaskGroup(name="pod", task=task),)) for name, task in asks.items())
    objects = dump.write(verified(Snapshot(nodes=nodes, jobs=jobs)))
    before = imported(objects)
    plan = placement.solve(before)
    # 1 card for the two shares and 1 for the whole one; 2 and 4 instances
    assert len(plan.tasks) == 9
    after = imported(applied(objects, bindings.write(before, plan)))
    expected = {}
    for name, group, index, on, gpus in plan.tasks:
        expected[name] = (on, tuple(gpus), plan.tasks[name, group, index].mig_starts)
    assert running_pods(after) == expected
    shares = {entry.name: entry.groups[0].task.gpu_share for entry in after.jobs if entry.groups[0].task}
    assert exact(shares["a/share"] or 0) == Fraction(46, 100)
    assert len(solved(after).tasks) == 0
