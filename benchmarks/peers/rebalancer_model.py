"""The problem in Rebalancer's words: tasks are objects, and cards and nodes are places for them.

Places are one container for every card that shares may use, one for the wholly free cards of every node, which takes
tasks of whole cards by number, and `WAITING`. An object is in exactly one container, so this is as near as it gets:

- node resources: capacities of dimensions over the scope ``node``;
- shares and device memory: capacities of single cards; nothing is added up over two cards;
- a wholly free card is either opened to shares or left for whole tasks: capacity with group presence over the scope
  ``blocks``, where a card with any share counts as one;
- filters: avoided assignments over the scope ``hardware``;
- gangs: a group's count among the placed is 0 or at least the minimum. Rebalancer's own documents say that local
  search works poorly with such rows, and here it starts no gang at all under them; only its MIP gets them;
- worth: free the container `WAITING` of value.

Not expressible: a gang's minimum to local search (see `rebalancer`), nested gangs, shares of several cards.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from placement.gang import is_flat
from placement.instance import Assignment, Instance

from .common import Unsupported

WAITING = "waiting"
ABSOLUTE, AT_LEAST = 1, 2
"""Numbers of `LimitType.ABSOLUTE` and `GroupCountSpecBound.MIN`; the wheel takes numbers where its stubs name names."""

Task = tuple[int, int, int]
"""Job, leaf, and number of the task."""


@dataclass(slots=True)
class Names:
    """Objects and containers by name.

    Attributes
    ----------
    tasks : dict of name to Task
    shape : dict of name to int
    whole : dict of container to node
    cards : dict of container to (node, card)
    hardware : dict of container to scope item
    blocks : dict of container to scope item
    """

    tasks: dict[str, Task] = field(default_factory=dict)
    shape: dict[str, int] = field(default_factory=dict)
    whole: dict[str, int] = field(default_factory=dict)
    cards: dict[str, tuple[int, int]] = field(default_factory=dict)
    hardware: dict[str, str] = field(default_factory=dict)
    blocks: dict[str, str] = field(default_factory=dict)
    keys: dict[Hashable, str] = field(default_factory=dict)
    """Item of the scope ``hardware`` for whatever filters can tell apart."""

    def node_of(self, container: str) -> int:
        """Return the node of a container other than `WAITING`."""
        return self.whole[container] if container in self.whole else self.cards[container][0]


def names(instance: Instance) -> Names:
    """Return the objects and containers of an instance."""
    if instance.limits:
        raise Unsupported("domain limits are not stated in this model")
    found = Names()
    for job in range(instance.jobs):
        job_class = instance.job_classes[instance.job_class[job]]
        if not is_flat(job_class.root):
            raise Unsupported("Rebalancer has no nested gangs")
        for leaf in job_class.leaves:
            task = instance.shapes[leaf.shape]
            if task.gpus > 1 and task.units < instance.card_units:
                raise Unsupported("in Rebalancer an object is in one container, so no task can share several cards")
            for number in range(leaf.count):
                name = f"{job}.{leaf.leaf}.{number}"
                found.tasks[name] = job, leaf.leaf, number
                found.shape[name] = leaf.shape
    for node in range(instance.nodes):
        number = int(instance.node_class[node])
        here = instance.admits_node[:, number].tobytes()
        whole = _full(instance, node)
        found.whole[f"n{node}"] = node
        kinds = frozenset(instance.classes[number].cards[c][0] for c in whole)
        if len({instance.admits_card[:, kind].tobytes() for kind in kinds}) > 1:
            raise Unsupported("a task of whole cards may use some free cards of a node and not others")
        _put(found, f"n{node}", ("whole", number if not kinds else (here, kinds)), f"n{node}")
        for c, (kind, units, _) in enumerate(instance.classes[number].cards):
            if units > 0:
                found.cards[f"n{node}c{c}"] = node, c
                _put(found, f"n{node}c{c}", ("card", here, kind), f"n{node}" if c in whole else "partly used")
    return found


def _full(instance: Instance, node: int) -> list[int]:
    """Return the wholly free cards of a node that some task may use."""
    cards = instance.classes[instance.node_class[node]].cards
    return [
        c
        for c, (kind, units, _) in enumerate(cards)
        if units == instance.card_units and instance.admits_card[:, kind].any()
    ]


def _put(found: Names, container: str, key: Hashable, blocks: str) -> None:
    found.hardware[container] = found.keys.setdefault(key, f"h{len(found.keys)}")
    found.blocks[container] = blocks


def state(
    solver: Any,
    instance: Instance,
    made: Names,
    *,
    gangs: bool,
    placed: Mapping[str, str],
    still: set[str],
    kept: set[str],
) -> None:
    """State the problem to a `rebalancer.ProblemSolver`.

    Parameters
    ----------
    solver : ProblemSolver
    instance : Instance
    made : Names
    gangs : bool
        Whether gangs have their minimum.
    placed : mapping of task to container
        Where tasks begin; the others wait.
    still : set of tasks
        Those that must stay where they are.
    kept : set of tasks
        Those that must not wait.
    """
    containers = [*made.whole, *made.cards, WAITING]
    at: dict[str, list[str]] = {container: [] for container in containers}
    for name in made.tasks:
        at[placed.get(name, WAITING)].append(name)
    solver.set_object_name("task").set_container_name("place").set_assignment(at)
    solver.add_scope("node", {c: WAITING if c == WAITING else f"n{made.node_of(c)}" for c in containers})
    solver.add_scope("blocks", {**made.blocks, WAITING: WAITING})
    solver.add_scope("hardware", {**made.hardware, WAITING: WAITING})
    _resources(solver, instance, made)
    _cards(solver, instance, made)
    _filters(solver, instance, made, kept)
    if gangs:
        _gangs(solver, instance, made, containers)
    if still:
        solver.add_constraint({"avoidMovingSpec": {"name": "still", "objects": sorted(still)}})
    unit = float(instance.value_unit)
    worth = {
        name: instance.job_classes[instance.job_class[job]].leaves[leaf].value * unit
        for name, (job, leaf, _) in made.tasks.items()
    }
    solver.add_object_dimension("value", worth)
    solver.add_goal({"toFreeSpec": {"name": "waiting", "containers": [WAITING], "dimension": "value"}})


def _capacity(solver: Any, scope: str, dimension: str, items: Iterable[str]) -> None:
    of = {"itemsWhitelist": sorted(items)}
    spec = {"name": dimension, "scope": scope, "dimension": dimension, "filter": of}
    solver.add_constraint({"capacitySpec": spec})


def _resources(solver: Any, instance: Instance, made: Names) -> None:
    for r, resource in enumerate(instance.resources):
        solver.add_object_dimension(resource, {t: float(instance.shapes[s].demand[r]) for t, s in made.shape.items()})
        free = {c: float(instance.classes[instance.node_class[node]].free[r]) for c, node in made.whole.items()}
        solver.add_scope_dimension(resource, "node", free)
        _capacity(solver, "node", resource, free)


def _cards(solver: Any, instance: Instance, made: Names) -> None:
    """State what cards hold; amounts are whole but for `room`, where a card in use counts as one by its presence."""
    shapes = {t: instance.shapes[s] for t, s in made.shape.items()}
    share = {t for t, task in shapes.items() if task.gpus and task.units < instance.card_units}
    card = {c: instance.classes[instance.node_class[node]].cards[number] for c, (node, number) in made.cards.items()}
    solver.add_object_dimension("units", {t: float(shapes[t].units) for t in share}, 0.0)
    solver.add_container_dimension("units", {c: float(units) for c, (_, units, _) in card.items()}, 0.0)
    solver.add_object_dimension("device", {t: float(shapes[t].memory) for t in share}, 0.0)
    solver.add_container_dimension("device", {c: float(memory) for c, (_, _, memory) in card.items()}, 0.0)
    for dimension in ("units", "device"):
        _capacity(solver, "place", dimension, card)
    whole = {t: float(task.gpus) for t, task in shapes.items() if t not in share and task.gpus}
    room = {**whole, **{t: shapes[t].units / instance.card_units for t in share}}
    solver.add_object_dimension("room", room, 0.0)
    solver.add_partition("kind", {k: v for k, v in {"share": sorted(share), "whole": sorted(whole)}.items() if v})
    free = {c: float(len(_full(instance, node))) for c, node in made.whole.items()}
    spec = {
        "name": "blocks",
        "scope": "blocks",
        "partition": "kind",
        "dimension": "room",
        "aggregationScope": "place",
        "roundUpGroupUtilOnScopeItem": False,
        "groupToPresenceWeight": {"type": ABSOLUTE, "globalLimit": 1.0},
        "scopeItemToLimit": {"type": ABSOLUTE, "globalLimit": 0.0, "scopeItemLimits": free},
        "scopeItemFilter": {"itemsWhitelist": sorted(free)},
    }
    solver.add_constraint({"capacityWithGroupPresenceSpec": spec})


def _filters(solver: Any, instance: Instance, made: Names, kept: set[str]) -> None:
    """Keep tasks away from hardware that refuses them, shares from whole nodes and whole tasks from single cards."""
    example = {item: container for container, item in made.hardware.items()}
    avoided: dict[int, list[str]] = defaultdict(list)
    for s in sorted(set(made.shape.values())):
        task = instance.shapes[s]
        for item, container in example.items():
            node = made.node_of(container)
            node_class = instance.classes[instance.node_class[node]]
            open_ = bool(instance.admits_node[s, instance.node_class[node]])
            if task.gpus and task.units < instance.card_units:
                on_card = made.cards.get(container)
                open_ &= on_card is not None and bool(instance.admits_card[s, node_class.cards[on_card[1]][0]])
            else:
                full = _full(instance, node)
                fits = not task.gpus or any(
                    instance.admits_card[s, node_class.cards[c][0]] and node_class.cards[c][2] >= task.memory
                    for c in full
                )
                open_ &= container in made.whole and fits
            if not open_:
                avoided[s].append(item)
    items = {t: avoided[s] + [WAITING] * (t in kept) for t, s in made.shape.items()}
    rows = [{"object": task, "scopeItems": some} for task, some in items.items() if some]
    if rows:
        solver.add_constraint({"avoidAssignmentsSpec": {"name": "filters", "scope": "hardware", "assignments": rows}})


def gang_minimum(instance: Instance, made: Names) -> dict[tuple[int, int], tuple[int, list[str]]]:
    """Return the minimum and the tasks of every leaf of a job that is more than one task, by job and leaf."""
    members: dict[tuple[int, int], list[str]] = defaultdict(list)
    for name, (job, leaf, _) in made.tasks.items():
        members[job, leaf].append(name)
    return {
        (job, leaf): (instance.job_classes[instance.job_class[job]].leaves[leaf].minimum, tasks)
        for (job, leaf), tasks in members.items()
        if len(instance.job_classes[instance.job_class[job]].leaves) > 1 or len(tasks) > 1
    }


def _gangs(solver: Any, instance: Instance, made: Names, containers: list[str]) -> None:
    found = gang_minimum(instance, made)
    if any(len(job_class.leaves) > 1 for job_class in instance.job_classes):
        raise Unsupported("gangs of several groups are not stated in this model")
    if not found:
        return
    solver.add_scope("state", {c: WAITING if c == WAITING else "placed" for c in containers})
    solver.add_partition("gang", {f"g{job}": tasks for (job, _), (_, tasks) in found.items()})
    least = {f"g{job}": float(minimum) for (job, _), (minimum, _) in found.items()}
    spec = {
        "name": "gangs",
        "scope": "state",
        "partitionName": "gang",
        "bound": AT_LEAST,
        "zeroAllowed": True,
        "limit": {"type": ABSOLUTE, "globalLimit": 0.0, "groupLimits": least},
        "filter": {"itemsWhitelist": ["placed"]},
    }
    solver.add_constraint({"groupCountSpec": spec})


def wanted(instance: Instance) -> float:
    """Return the value of all that is wanted."""
    leaves = [(job_class.size, leaf) for job_class in instance.job_classes for leaf in job_class.leaves]
    return sum(size * leaf.count * leaf.copies * leaf.value for size, leaf in leaves) * float(instance.value_unit)


# --- assignments ---------------------------------------------------------------------------------------------------


def placed_of(instance: Instance, made: Names, assignment: Assignment) -> dict[str, str]:
    """Return the container of every placed task of an assignment."""
    found = {}
    columns = (assignment.job, assignment.leaf, assignment.task, assignment.node)
    for row, (job, leaf, task, node) in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
        name = f"{job}.{leaf}.{task}"
        shape = instance.shapes[made.shape[name]]
        on_card = shape.gpus and shape.units < instance.card_units
        card = f"c{assignment.cards[assignment.offset[row]]}" if on_card else ""
        found[name] = f"n{node}{card}"
    return found


def incomplete(instance: Instance, made: Names, placed: Mapping[str, str]) -> set[str]:
    """Return the tasks of every job of which some group has fewer tasks placed than it needs, placed or not."""
    short = {
        job
        for (job, _), (minimum, tasks) in gang_minimum(instance, made).items()
        if sum(task in placed for task in tasks) < minimum
    }
    return {name for name, (job, _, _) in made.tasks.items() if job in short}


def assignment_of(instance: Instance, made: Names, placed: Mapping[str, str]) -> Assignment:
    """Return the assignment that placed tasks stand for; whole cards are those that no share took."""
    shared = {made.cards[c] for c in placed.values() if c in made.cards}
    left = {node: [c for c in _full(instance, node) if (node, c) not in shared] for node in range(instance.nodes)}
    rows = []
    for name, container in placed.items():
        node = made.node_of(container)
        if container in made.cards:
            cards: tuple[int, ...] = (made.cards[container][1],)
        else:
            cards = tuple(left[node].pop() for _ in range(min(instance.shapes[made.shape[name]].gpus, len(left[node]))))
        rows.append((*made.tasks[name], node, tuple(sorted(cards))))
    return Assignment.of(rows)
