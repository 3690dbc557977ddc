"""The tasks that a plan places, each with what other systems call it: what every writer goes through."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from placement.errors import InputError
from placement.plan import Place, Plan
from placement.snapshot import Job, Node, Snapshot, Task
from placement.snapshot.leaves import leaf_tasks
from placement.snapshot.report import many, show


@dataclass(frozen=True, slots=True)
class PlacedTask:
    """A task that a plan starts.

    Attributes
    ----------
    job : Job
        Entry of the snapshot.
    job_name : str
        After expansion of ``count``.
    group : str
        Path of the group.
    index : int
    task : Task
    node : Node
        Entry of the snapshot; the name of the node itself is `place.node`.
    place : Place
    name : str
        Name in the system that the job is from: what `Job.task_names` says; the job's name for a job of one task.
        Empty where the snapshot does not say it, as of pods that do not exist yet.
    """

    job: Job
    job_name: str
    group: str
    index: int
    task: Task
    node: Node
    place: Place
    name: str


def placed(snapshot: Snapshot, plan: Plan) -> Iterator[PlacedTask]:
    """Yield the tasks that a plan starts, in its order.

    Parameters
    ----------
    snapshot : Snapshot
        Verified, and the one that the plan is of.
    plan : Plan
        Checked.
    """
    nodes = {name: node for node in snapshot.nodes for name in copies(node)}
    jobs = {name: job for job in snapshot.jobs for name in copies(job)}
    leaves: dict[int, dict[str, Task]] = {}
    for job_name, group, index, node, _ in plan.tasks:
        job = jobs[job_name]
        tasks = leaves.setdefault(id(job.groups), dict(leaf_tasks(job.groups)))
        names = job.task_names.get(group, ())
        alone = len(tasks) == 1 and not job.task_names and job.groups[0].count == 1
        yield PlacedTask(
            job=job,
            job_name=job_name,
            group=group,
            index=index,
            task=tasks[group],
            node=nodes[node],
            place=plan.tasks[job_name, group, index],
            name=names[index] if index < len(names) else job_name if alone else "",
        )


def copies(entry: Node | Job) -> Iterator[str]:
    """Yield the names that an entry stands for."""
    if entry.count == 1:
        yield entry.name
    else:
        yield from (f"{entry.name}-{copy}" for copy in range(entry.count))


def pod_of(task: PlacedTask) -> tuple[str, str]:
    """Return namespace and name of the pod that a task is.

    Raises
    ------
    InputError
        If the snapshot does not say which pod it is.
    """
    namespace, slash, name = task.name.partition("/")
    if not (namespace and slash and name):
        which = f"task {task.index} of {show(task.group)} in job {show(task.job_name)}"
        raise InputError.one(
            f"the snapshot does not say which pod {which} is",
            "import again when the pod is there, or say it in the job's `task_names` as namespace/name",
        )
    return namespace, name


def pods(snapshot: Snapshot, plan: Plan) -> dict[tuple[str, str], tuple[PlacedTask, ...]]:
    """Return the pods that a plan starts, by namespace and name, each with all tasks that it is.

    A pod is several tasks where it asks for several kinds of devices; they lie on one node, and are given in the order
    of the groups. Tasks that are no pod yet are left out; `unnamed` says so.

    Raises
    ------
    InputError
        If the snapshot does not say of any task which pod it is, if two jobs have one pod, or the tasks of one lie on
        two nodes.
    """
    found: dict[tuple[str, str], list[PlacedTask]] = {}
    nameless: PlacedTask | None = None
    for task in placed(snapshot, plan):
        if not task.name:
            nameless = nameless or task
            continue
        pod = pod_of(task)
        before = found.setdefault(pod, [])
        if before and before[0].job_name != task.job_name:
            both = f"{show(before[0].job_name)} and {show(task.job_name)}"
            raise InputError.one(
                f"jobs {both} both say that a task is the pod {show(task.name)}", "correct the `task_names` of one"
            )
        if before and before[0].place.node != task.place.node:
            raise InputError.one(
                f"pod {show('/'.join(pod))} is tasks on {show(before[0].place.node)} and {show(task.place.node)}",
                "require one node of the group that its tasks are",
            )
        before.append(task)
    if nameless is not None and not found:
        pod_of(nameless)
    return {pod: _ordered(tasks) for pod, tasks in found.items()}


def _ordered(tasks: list[PlacedTask]) -> tuple[PlacedTask, ...]:
    if len(tasks) == 1:
        return tuple(tasks)
    order = [path for path, _ in leaf_tasks(tasks[0].job.groups)]
    return tuple(sorted(tasks, key=lambda task: order.index(task.group)))


def unnamed(snapshot: Snapshot, plan: Plan) -> list[str]:
    """Return a line for each job of which the plan starts tasks that `pods` leaves out, with how many."""
    counts = Counter(task.job_name for task in placed(snapshot, plan) if not task.name)
    return [
        f"job {show(job)}: {many(count, 'task')} not written, for {'it is' if count == 1 else 'they are'} no pod yet "
        "that the snapshot names; import again when all pods are there"
        for job, count in counts.items()
    ]
