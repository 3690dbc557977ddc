"""Identity: every row of the plan's tasks names a task that waits, a node that is there, and the right cards."""

from __future__ import annotations

from collections.abc import Iterator

from placement.check.facts import Facts, JobFact, Leaf, NodeFact
from placement.check.load import Row
from placement.check.violation import Violation, integer, many, show
from placement.plan import Tasks

RULE = "identity"


def columns(tasks: Tasks) -> Violation | None:
    """Return what is wrong with the columns as such, or None."""
    lengths = {
        "job": len(tasks.job),
        "group": len(tasks.group),
        "index": len(tasks.index),
        "node": len(tasks.node),
        "gpus": len(tasks.gpus),
    }
    if len(set(lengths.values())) == 1:
        return None
    listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
    return Violation(RULE, "tasks", f"the columns differ in length ({listed}), they must be equal")


def resolve(facts: Facts, tasks: Tasks) -> tuple[list[Row], list[Violation]]:
    """Look up every row.

    Parameters
    ----------
    facts : Facts
    tasks : Tasks
        With columns of equal length.

    Returns
    -------
    rows : list of Row
        Rows of which job, group, index and node are known, without second mentions of a task; of their cards, those
        that the node has. The other rules judge these.
    violations : list of Violation
    """
    rows: list[Row] = []
    found: list[Violation] = []
    first: dict[tuple[str, str, int], int] = {}
    for number, (name, group, index, node_name, gpus) in enumerate(tasks):
        path = f"tasks[{number}]"
        place = facts.job_names.find(name)
        if place is None:
            found.append(
                Violation(RULE, path, f"no job is named {show(name)}, only jobs of the snapshot can be placed")
            )
            continue
        job = facts.jobs[place[0]]
        if job.job.running is not None:
            found.append(Violation(RULE, path, f"job {show(name)} runs already, only pending jobs can be placed"))
            continue
        leaf = job.leaves.get(group)
        node = facts.node_names.find(node_name)
        wrong = _wrong_names(name, job, group, index, node_name, node is not None)
        if wrong or leaf is None or node is None:
            found += [Violation(RULE, path, what) for what in wrong]
            continue
        earlier = first.setdefault((name, group, index), number)
        if earlier != number:
            task = f"{show(name)} {show(group)} {integer(index)}"
            found.append(Violation(RULE, path, f"task {task} is placed by tasks[{earlier}] already, once is allowed"))
            continue
        fact = facts.nodes[node[0]]
        found += [Violation(RULE, path, what) for what in _wrong_cards(leaf, fact, node_name, gpus)]
        devices = tuple(dict.fromkeys(device for device in gpus if 0 <= device < len(fact.cards)))
        rows.append(Row(number, name, job, place[1], leaf, index, fact, node_name, devices))
    return rows, found


def _wrong_names(name: str, job: JobFact, group: str, index: int, node: str, node_known: bool) -> list[str]:
    found = []
    leaf = job.leaves.get(group)
    if leaf is None:
        listed = ", ".join(show(path) for path in list(job.leaves)[:10])
        found.append(f"job {show(name)} has no tasks in a group {show(group)}, its groups with tasks are {listed}")
    elif not 0 <= index < leaf.wanted:
        allowed = f"it has 0 to {integer(leaf.wanted - 1)}"
        found.append(f"group {show(group)} of job {show(name)} has no task {integer(index)}, {allowed}")
    if not node_known:
        found.append(f"no node is named {show(node)}, only nodes of the snapshot can be used")
    return found


def _wrong_cards(leaf: Leaf, fact: NodeFact, node: str, gpus: list[int]) -> Iterator[str]:
    if len(gpus) != leaf.shape.gpus:
        yield f"{many(len(gpus), 'card')} listed, a task of group {show(leaf.path)} takes {integer(leaf.shape.gpus)}"
    seen: set[int] = set()
    for device in gpus:
        if not 0 <= device < len(fact.cards):
            there = f"it has 0 to {len(fact.cards) - 1}" if fact.cards else "it has none"
            yield f"{show(node)} has no gpu {integer(device)}, {there}"
        elif device in seen:
            yield f"{show(node)} gpu {device} is listed twice, the cards of a task must be distinct"
        seen.add(device)
