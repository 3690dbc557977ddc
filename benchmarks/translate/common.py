"""What all translations share: amounts, tasks held in place, and what a translated case says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from placement.snapshot import Gpu, Job, Node, Running, RunningTask, Snapshot, Task, TaskGroup, Topology

Case = Mapping[str, Any]

HELD = "held"
"""Begin of the names of groups that stand for tasks which run already."""
HOST = "kubernetes.io/hostname"


class InexpressibleError(Exception):
    """A case states something that a snapshot has no field for, or that is decided by a rule not about placing."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"{where}: {why}")


class UntranslatedError(Exception):
    """A case is about something that a translation leaves out, though a snapshot may have fields for it."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"{where}: {why}")


@dataclass(frozen=True, slots=True)
class Translated:
    """A case in the project's format, and what its source expects.

    Attributes
    ----------
    snapshot : Snapshot
    wanted, expected : int
        Tasks that are asked for, and those of them that the source places.
    held : bool
        Whether these numbers have the tasks that run already in them.
    jobs : dict of str to int
        How many the source places of each job; empty where it does not matter of which.
    domains : dict of str to int
        Domains that the source uses, by level; empty where it does not say.
    ruled : tuple of str
        Levels down to the one that the case requires or prefers: where the source needs one domain, so should we.
    overcharged : str
        Where the source's own answer uses more than there is; empty if nowhere.
    uneven : str
        Where the source's own answer is not even, though the case asks for an even split; empty if nowhere.
    stricter : str
        What the source asks for beyond what the case needs, so that it may refuse what fits; empty if nothing.
    malformed : bool
        Whether the source refuses the request itself, so that a reader should too.
    """

    snapshot: Snapshot
    wanted: int
    expected: int
    held: bool = False
    jobs: dict[str, int] = field(default_factory=dict)
    domains: dict[str, int] = field(default_factory=dict)
    ruled: tuple[str, ...] = ()
    overcharged: str = ""
    uneven: str = ""
    stricter: str = ""
    malformed: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """A case of which the source says node and cards of each task, for the rule that is named after the source.

    Attributes
    ----------
    snapshot : Snapshot
        Its jobs have one task each, or are gangs of one group each.
    rule : str
    expected : dict of str to list
        Node and device indices of the tasks of each job that starts.
    differs : str
        Why another answer is no mistake; empty if it is one.
    """

    snapshot: Snapshot
    rule: str
    expected: dict[str, list[tuple[str, list[int]]]]
    differs: str = ""


def amounts(resources: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of a `Task` that ask for Kubernetes resources; what is called gpu is a card."""
    cards = {name: int(text) for name, text in resources.items() if name.endswith("/gpu")}
    usual = {name: text for name, text in resources.items() if name in ("cpu", "memory")}
    extended = {n: t for n, t in resources.items() if n not in cards and n not in ("cpu", "memory", "pods")}
    return {**usual, "gpus": sum(cards.values()), "extended": extended}


def node_of(node: Case, position: dict[str, str]) -> Node:
    """Return a node with its amounts, labels and place; one that takes no new pod is cordoned."""
    fields = amounts(node["allocatable"])
    cards = fields.pop("gpus")
    return Node(
        name=node["name"],
        position=position,
        labels={**node.get("labels", {}), HELD: node["name"]},
        cordoned=bool(node.get("unschedulable")) or not node.get("ready", True),
        pods=int(node["allocatable"]["pods"]),
        gpus=(Gpu(model="gpu", count=cards),) if cards else (),
        **fields,
    )


def held(name: str, count: int, task: Task, node: str) -> TaskGroup:
    """Return a group for tasks that are on a node: they can be placed nowhere else.

    A snapshot has no job that runs in part and waits in part. That all tasks of one are placed anew, those that run
    where they are, asks the same question, as long as the nodes' amounts are those without the job.
    """
    pinned = {field: getattr(task, field) for field in task.__struct_fields__}
    pinned["node_selector"] = {**task.node_selector, HELD: node}
    return TaskGroup(name=f"{HELD}-{name}", count=count, task=Task(**pinned))


def fact(name: str, resources: Mapping[str, str], places: Sequence[str]) -> Job:
    """Return a running job of equal tasks without cards, one on each of the nodes named.

    Raises
    ------
    InexpressibleError
        If it has cards: a snapshot says which, and the cases do not.
    """
    task = Task(**amounts(resources))
    if task.gpus:
        raise InexpressibleError("jobs.running.tasks.gpus", "the case does not say which cards are in use")
    tasks = tuple(RunningTask(group="main", index=index, node=node) for index, node in enumerate(places))
    return Job(name=name, groups=(TaskGroup(name="main", count=len(places), task=task),), running=Running(tasks=tasks))


def topology_of(**rules: Any) -> Topology | None:
    """Return the rules of a group, or None if there are none."""
    topology = Topology(**rules)
    return None if topology == Topology() else topology


def source_of(case: Case) -> str:
    """Return where a case comes from."""
    source = case["source"]
    line = f", line {source['line']}" if "line" in source else ""
    return f"{source['repo']}, {source['path']} at {source['commit']}{line} ({case['case_id']})"
