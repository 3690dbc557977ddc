"""Valid plans for snapshots with NUMA zones, made without the engine. Import it as ``zoned_plans``.

Tasks are tried one after the other on random nodes, cards and zones, as long as the second opinion and the brute force
have nothing against it; what comes from which zone is a flow through the zones of each node.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TypeVar

from brute_zones import COUNTED, Load, Within, all_running, counted, flow, hold, sets_of, zones_of
from check_cases import Row, cards_of, jobs_of, nodes_of, opinion, plan_of, wanted
from msgspec.structs import replace
from strategies import Source

from placement.plan import Plan, Tasks
from placement.snapshot import Snapshot, Task
from placement.units import Quantity

T = TypeVar("T")
ZonedRow = tuple[Row, Within]
"""A placed task, and the zones that it lies within, by place in the file; none where its node lists none."""


def task_of(snapshot: Snapshot, row: Row) -> Task:
    return next(task for job, group, index, task in wanted(snapshot) if (job, group, index) == row[:3])


def held(snapshot: Snapshot, rows: list[ZonedRow], node: str) -> bool:
    """Return whether the zones of a node hold what the rows place there."""
    zones = zones_of(nodes_of(snapshot)[node])
    return zones is None or hold(zones, all_running(snapshot)[node], [load for _, load in _on(snapshot, rows, node)])


def _on(snapshot: Snapshot, rows: list[ZonedRow], node: str) -> list[tuple[int, Load]]:
    return [
        (number, (within, counted(task_of(snapshot, row))))
        for number, (row, within) in enumerate(rows)
        if row[3] == node
    ]


def zoned_rows(source: Source, snapshot: Snapshot) -> list[ZonedRow]:
    """Return a random placement that keeps every rule, job by job."""
    nodes, jobs, rows = nodes_of(snapshot), jobs_of(snapshot), list[ZonedRow]()
    for name, job in jobs.items():
        mine = list(rows)
        for owner, group, index, task in wanted(snapshot):
            if owner != name or source.one_in(8):
                continue
            for node in _shuffled(source, list(nodes)):
                cards = _shuffled(source, list(range(len(cards_of(nodes[node])))))
                row = (name, group, index, node, sorted(cards[: task.gpus]))
                zones = zones_of(nodes[node])
                fits = [
                    within or frozenset()
                    for within in sets_of(job, task, nodes[node])
                    if zones is None or {zones.of_card[card] for card in row[4]} <= (within or set())
                ]
                if not fits or opinion(snapshot, [*(one for one, _ in mine), row]) - {"gang"}:
                    continue
                more = [*mine, (row, source.pick(fits))]
                if held(snapshot, more, node):
                    mine = more
                    break
        if not opinion(snapshot, [row for row, _ in mine]):
            rows = mine
    return rows


def _shuffled(source: Source, items: list[T]) -> list[T]:
    return [items.pop(source.number(0, len(items) - 1)) for _ in range(len(items))]


def zoned_plan(snapshot: Snapshot, rows: list[ZonedRow]) -> Plan:
    """Return a plan that says the truth about placed tasks."""
    plan = plan_of(snapshot, [row for row, _ in rows])
    return replace(plan, tasks=columns(snapshot, plan.tasks, rows))


def columns(snapshot: Snapshot, tasks: Tasks, rows: list[ZonedRow]) -> Tasks:
    """Return columns with what comes from which zone."""
    taken: dict[tuple[int, str], list[Fraction]] = {}
    nics: list[list[str]] = [[] for _ in rows]
    running = all_running(snapshot)
    for name, node in nodes_of(snapshot).items():
        zones = zones_of(node)
        if zones is None:
            continue
        new = _on(snapshot, rows, name)
        for place, (resource, there) in enumerate(zip(COUNTED, zones.there, strict=True)):
            loads = [load for _, load in new] + running[name]
            lies = flow(there or (), [(within, amounts[place]) for within, amounts in loads] if there else [])
            taken |= {(number, resource): lies[i] for i, (number, _) in enumerate(new) if there}
        busy = {
            nic
            for job in snapshot.jobs
            for at in (job.running.tasks if job.running else ())
            if at.node == name
            for nic in at.nics
        }
        for number, _ in new:
            for zone, amount in zip(node.zones, taken[number, "nics"], strict=True):
                free = [nic.name for nic in zone.nics if nic.name not in busy]
                nics[number] += free[: int(amount)]
                busy.update(free[: int(amount)])
    lists = [
        _lists(snapshot, row, {r: taken[n, r] for r in COUNTED if (n, r) in taken}) for n, (row, _) in enumerate(rows)
    ]
    return replace(
        tasks,
        zones=[zones for zones, _, _ in lists],
        cpu=[cpu for _, cpu, _ in lists],
        memory=[memory for _, _, memory in lists],
        nics=nics,
    )


def _lists(
    snapshot: Snapshot, row: Row, taken: dict[str, list[Fraction]]
) -> tuple[list[int], list[Quantity], list[Quantity]]:
    node = nodes_of(snapshot)[row[3]]
    used = [
        place
        for place, zone in enumerate(node.zones)
        if {*zone.gpus} & {*row[4]} or any(amounts[place] for amounts in taken.values())
    ]
    cpu, memory = ([text(taken[r][p]) for p in used] if any(taken.get(r, ())) else [] for r in ("cpu", "memory"))
    return [node.zones[place].id for place in used], cpu, memory


def text(amount: Fraction) -> Quantity:
    """Return a whole number, or an exact decimal: those of the tests are multiples of a thousandth."""
    return int(amount) if amount.denominator == 1 else f"{float(amount):.3f}"
