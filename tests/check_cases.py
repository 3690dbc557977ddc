"""Plans for the tests of the judge, and a slow second opinion on them that shares no code with it.

Import it as ``check_cases``. The second opinion asks the engine's own filters and gangs and adds everything else up
anew in fractions, with every ``count`` written out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Literal

from brute_zones import sets_of
from strategies import Source

from placement.check import objective, usage
from placement.compile import compile as compile_snapshot
from placement.gang import leaves, runs
from placement.instance import Assignment, Instance
from placement.plan import Pending, Phase, Plan, Provenance, Tasks
from placement.rules import CARD_FILTERS, NODE_FILTERS
from placement.snapshot import Gpu, Job, Node, Snapshot, Task, TaskGroup
from placement.snapshot.read import digest
from placement.units import exact

Row = tuple[str, str, int, str, list[int]]
"""Job, group, index, node, cards."""

SENSE: dict[str, Literal["max", "min"]] = {
    "value": "max",
    "tasks": "max",
    "fragmentation": "min",
    "whole_nodes": "max",
    "nodes": "min",
}
PLACING = {
    "node_selector",
    "taints",
    "cordon",
    "software",
    "gpu_models",
    "compute_capability",
    "health",
    "sharing",
    "capacity",
    "limits",
    "shares",
    "device_memory",
    "gang",
    "identity",
}
"""Rules about where tasks are, as against what the plan says of itself."""


def tasks_of(rows: Sequence[Row]) -> Tasks:
    """Return rows as columns."""
    return Tasks(
        job=[row[0] for row in rows],
        group=[row[1] for row in rows],
        index=[row[2] for row in rows],
        node=[row[3] for row in rows],
        gpus=[list(row[4]) for row in rows],
    )


def plan_of(snapshot: Snapshot, rows: Sequence[Row], objectives: tuple[str, ...] | None = None) -> Plan:
    """Return a plan that says the truth about some placed tasks and proves nothing."""
    tasks = tasks_of(rows)
    chosen = snapshot.policy.objectives if objectives is None else objectives
    phases = [
        Phase(objective=name, priority=priority, sense=SENSE[name], value=float(value))
        for name, priority, value in objective(snapshot, tasks, chosen)
    ]
    return Plan(
        snapshot=digest(snapshot),
        status="feasible" if phases else "proven",
        stop="complete",
        reproducible=True,
        phases=phases,
        tasks=tasks,
        pending=pending_of(snapshot, rows, chosen),
        usage=usage(snapshot, tasks),
        notes=[],
        provenance=Provenance(version="0", solver="by hand", objectives=chosen),
        checked=False,
    )


# --- names ----------------------------------------------------------------------------------------------------


def named(entries: Sequence[Node] | Sequence[Job]) -> dict[str, Node | Job]:
    """Return what every name stands for, each ``count`` written out."""
    return {
        name: entry
        for entry in entries
        for name in ([entry.name] if entry.count == 1 else [f"{entry.name}-{i}" for i in range(entry.count)])
    }


def nodes_of(snapshot: Snapshot) -> dict[str, Node]:
    return {name: node for name, node in named(snapshot.nodes).items() if isinstance(node, Node)}


def jobs_of(snapshot: Snapshot) -> dict[str, Job]:
    return {name: job for name, job in named(snapshot.jobs).items() if isinstance(job, Job)}


def groups_of(groups: Sequence[TaskGroup], above: str = "", copies: int = 1) -> Iterator[tuple[str, Task, int]]:
    """Yield path, task and number of tasks in a whole job."""
    for group in groups:
        if group.task is not None:
            yield f"{above}{group.name}", group.task, copies * group.count
        yield from groups_of(group.groups, f"{above}{group.name}/", copies * group.count)


def cards_of(node: Node) -> list[Gpu]:
    return [gpu for gpu in node.gpus for _ in range(gpu.count)]


# --- second opinion -------------------------------------------------------------------------------------------


def pending_of(snapshot: Snapshot, rows: Sequence[Row], objectives: tuple[str, ...] | None = None) -> list[Pending]:
    """Return what a plan must say of the jobs that do not fully run."""
    chosen = snapshot.policy.objectives if objectives is None else objectives
    found = []
    for name, job in jobs_of(snapshot).items():
        wanted = sum(count for _, _, count in groups_of(job.groups))
        placed = len({row[:3] for row in rows if row[0] == name})
        if job.running is None and placed < wanted:
            reason: Literal["never", "not_wanted", "no_room"] = "no_room" if wanted_first(job, chosen) else "not_wanted"
            if not placed and not all(able(snapshot, job, group) for group in job.groups):
                reason = "never"
            found.append(Pending(job=name, placed=placed, wanted=wanted, reason=reason, detail=""))
    return found


def wanted_first(job: Job, objectives: Sequence[str]) -> bool:
    """Return whether starting a job serves an objective before any that it might make worse."""
    gpus = any(task.gpus for _, task, _ in groups_of(job.groups))
    neutral = {
        "value": not job.value if job.value is not None else not (job.weight and gpus),
        "run_time": job.duration is None and not job.data,
        "locality": "preferred" not in str(job.groups).replace("preferred=''", ""),
    }
    return next((name in ("value", "tasks") for name in objectives if not neutral.get(name)), False)


def able(snapshot: Snapshot, job: Job, group: TaskGroup) -> bool:
    """Return whether nodes without work could take what a group needs."""
    if group.task is not None:
        return any(_takes(job, group.task, node) for node in snapshot.nodes)
    enough = len(group.groups) if group.min_groups is None else group.min_groups
    return sum(able(snapshot, job, child) for child in group.groups) >= enough


def _takes(job: Job, task: Task, node: Node) -> bool:
    resources = demand(task)
    fits = all((have := capacity(node, name)) is None or amount <= have for name, amount in resources.items() if amount)
    good = [
        gpu for gpu in cards_of(node) if not card_refusals(job, task, gpu, node) and _memory(task) <= _room(gpu, task)
    ]
    bound = bool(sets_of(job, task, node))
    return fits and not node_refusals(job, task, node) and len(good) >= task.gpus and bound


def _memory(task: Task) -> Fraction:
    return Fraction(0) if task.gpu_memory is None else exact(task.gpu_memory)


def _room(gpu: Gpu, task: Task) -> Fraction:
    return _memory(task) if gpu.memory is None else exact(gpu.memory)


def demand(task: Task) -> dict[str, Fraction]:
    named = {f"extended:{name}": exact(amount) for name, amount in task.extended.items()}
    if task.nics:
        named["nics"] = Fraction(task.nics)
    return {"cpu": exact(task.cpu), "memory": exact(task.memory), "pods": Fraction(1), **named}


def capacity(node: Node, resource: str) -> Fraction | None:
    if resource.startswith("extended:"):
        return exact(node.extended.get(resource.removeprefix("extended:"), 0))
    if resource == "nics":
        return Fraction(sum(len(zone.nics) for zone in node.zones))
    have = {"cpu": node.cpu, "memory": node.memory, "pods": node.pods}[resource]
    return None if have is None else exact(have)


def node_refusals(job: Job, task: Task, node: Node) -> set[str]:
    return {rule.name for rule in NODE_FILTERS if rule.refusal(rule.task_key(job, task), rule.node_key(node))}


def card_refusals(job: Job, task: Task, gpu: Gpu, node: Node) -> set[str]:
    return {rule.name for rule in CARD_FILTERS if rule.refusal(rule.task_key(job, task), rule.card_key(gpu, node))}


def share(task: Task) -> Fraction:
    return exact(1 if task.gpu_share is None else task.gpu_share)


def opinion(snapshot: Snapshot, rows: Sequence[Row]) -> set[str]:
    """Return the names of the rules about placing that some rows break; ``identity`` alone where one is unknown."""
    nodes, jobs = nodes_of(snapshot), jobs_of(snapshot)
    if len({row[:3] for row in rows}) < len(rows) or not all(_known(nodes, jobs, row) for row in rows):
        return {"identity"}
    found = {"identity"} if any(list(gpus) != sorted(gpus) for *_, gpus in rows) else set()
    new: list[tuple[str, Task, list[int]]] = []
    for job_name, group, _, node_name, gpus in rows:
        job, node = jobs[job_name], nodes[node_name]
        task = next(task for path, task, _ in groups_of(job.groups) if path == group)
        found |= node_refusals(job, task, node)
        for device in gpus:
            found |= card_refusals(job, task, cards_of(node)[device], node)
        new.append((node_name, task, gpus))
    running = [
        (place.node, next(task for path, task, _ in groups_of(job.groups) if path == place.group), list(place.gpus))
        for job in snapshot.jobs
        if job.running is not None
        for place in job.running.tasks
    ]
    found |= _amounts(snapshot, nodes, running, new)
    return found | _gangs(snapshot, rows)


def _known(nodes: dict[str, Node], jobs: dict[str, Job], row: Row) -> bool:
    job_name, group, index, node_name, gpus = row
    job, node = jobs.get(job_name), nodes.get(node_name)
    if job is None or node is None or job.running is not None:
        return False
    for path, task, count in groups_of(job.groups):
        if path == group:
            cards = range(len(cards_of(node)))
            distinct = len(set(gpus)) == len(gpus) == task.gpus
            return 0 <= index < count and distinct and all(device in cards for device in gpus)
    return False


Use = Sequence[tuple[str, Task, list[int]]]


def _totals(use: Use) -> dict[tuple[str, ...], Fraction]:
    """Return what tasks take, by (node, resource) and (node, "share" or "gpu memory", card)."""
    totals: dict[tuple[str, ...], Fraction] = defaultdict(Fraction)
    for node, task, gpus in use:
        for resource, amount in demand(task).items():
            totals[node, resource] += amount
        for device in gpus:
            totals[node, "share", str(device)] += share(task)
            totals[node, "gpu memory", str(device)] += _memory(task)
    return totals


def _amounts(snapshot: Snapshot, nodes: dict[str, Node], running: Use, new: Use) -> set[str]:
    found = set()
    before, added = _totals(running), _totals(new)
    for key, amount in added.items():
        total, node = amount + before.get(key, 0), nodes[key[0]]
        if key[1] == "share":
            if total > 1:
                found.add("shares")
        elif key[1] == "gpu memory":
            memory = cards_of(node)[int(key[2])].memory
            if amount and memory is not None and total > exact(memory):
                found.add("device_memory")
        elif amount and (have := capacity(node, key[1])) is not None and total > have:
            found.add("capacity")
    for limit in snapshot.limits:
        caps = {"share": limit.gpus, "cpu": limit.cpu, "memory": limit.memory}
        caps |= {f"extended:{name}": cap for name, cap in limit.extended.items()}
        inside = {
            n for n, x in nodes.items() if limit.level == "cluster" or x.position.get(limit.level) == limit.domain
        }
        for resource, cap in caps.items():
            sums = [
                sum((v for key, v in part.items() if key[0] in inside and key[1] == resource), Fraction(0))
                for part in (before, added)
            ]
            if cap is not None and sums[1] and sum(sums) > exact(cap):
                found.add("limits")
    return found


def _gangs(snapshot: Snapshot, rows: Sequence[Row]) -> set[str]:
    instance = compile_snapshot(snapshot)
    names = {instance.job_name(job): job for job in range(instance.jobs)}
    for name in {row[0] for row in rows}:
        root = instance.job_classes[instance.job_class[names[name]]].root
        placed = [[0] * leaf.copies for leaf in leaves(root)]
        for leaf in leaves(root):
            for row in rows:
                if row[0] == name and row[1] == leaf.path:
                    placed[leaf.leaf][row[2] // leaf.count] += 1
        if not runs(root, placed):
            return {"gang"}
    return set()


# --- random placements ----------------------------------------------------------------------------------------


def wanted(snapshot: Snapshot) -> list[tuple[str, str, int, Task]]:
    """Return every task that pending jobs want."""
    return [
        (name, path, index, task)
        for name, job in jobs_of(snapshot).items()
        if job.running is None
        for path, task, count in groups_of(job.groups)
        for index in range(count)
    ]


def valid_rows(source: Source, snapshot: Snapshot) -> list[Row]:
    """Return a random placement that keeps every rule: each task tried on a random node and cards, job by job."""
    nodes, rows = nodes_of(snapshot), list[Row]()
    for name in jobs_of(snapshot):
        mine = list(rows)
        for job, group, index, task in wanted(snapshot):
            if job != name or source.one_in(8):
                continue
            for node in _shuffled(source, list(nodes)):
                cards = _shuffled(source, [str(i) for i in range(len(cards_of(nodes[node])))])
                row = (name, group, index, node, sorted(int(card) for card in cards[: task.gpus]))
                if opinion(snapshot, [*mine, row]) <= {"gang"}:
                    mine.append(row)
                    break
        if not opinion(snapshot, mine):
            rows = mine
    return rows


def _shuffled(source: Source, items: list[str]) -> list[str]:
    return [items.pop(source.number(0, len(items) - 1)) for _ in range(len(items))]


def device_indices(instance: Instance, node: int) -> tuple[int, ...]:
    """Return the device index of each card of a node, in the canonical order of its class."""
    return instance.node_cards.get(node) or tuple(range(len(instance.classes[instance.node_class[node]].cards)))


def assignment_of(instance: Instance, rows: Sequence[Row]) -> Assignment:
    """Return valid rows by the indices of an instance."""
    jobs = {instance.job_name(job): job for job in range(instance.jobs)}
    nodes = {instance.node_name(node): node for node in range(instance.nodes)}
    found = []
    for name, group, index, node, gpus in rows:
        leaf = next(leaf for leaf in instance.job_classes[instance.job_class[jobs[name]]].leaves if leaf.path == group)
        devices = device_indices(instance, nodes[node])
        found.append((jobs[name], leaf.leaf, index, nodes[node], tuple(sorted(devices.index(gpu) for gpu in gpus))))
    return Assignment.of(found)
