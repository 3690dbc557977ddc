"""CPU sets: the list of CPUs that a plan states of a task is that of its NUMA zones, as the kernel writes it.

It has all CPUs of these zones, ascending, runs as ``first-last``, and is empty where one of the zones lists none. A
plan that says nothing of CPUs is as good.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from placement.check.case.case import Case
from placement.check.violation import Violation, many, show
from placement.snapshot import NumaZone

RULE = "cpuset"


def judge(case: Case) -> Iterator[Violation]:
    """Yield every task of which the plan states a wrong list of CPUs."""
    tasks = case.plan.tasks
    if not isinstance(tasks.cpus, list):
        return
    if len(tasks.cpus) != len(tasks):
        expected = f"expected one for each of {many(len(tasks), 'task')}"
        yield Violation(RULE, "tasks.cpus", f"found {many(len(tasks.cpus), 'list')}, {expected}")
        return
    # a column of another length is the business of the rule that judges zones
    zones = tasks.zones if isinstance(tasks.zones, list) and len(tasks.zones) == len(tasks) else [[]] * len(tasks)
    nodes = case.facts.snapshot.nodes
    known: dict[tuple[int, tuple[int, ...]], str] = {}
    for row, (number, spec) in enumerate(zip(case.rows.number.tolist(), case.rows.spec.tolist(), strict=True)):
        # nodes that were read share equal lists, so few of them are different objects
        key = id(nodes[spec].zones), tuple(zones[number])
        if key not in known:
            known[key] = _of(nodes[spec].zones, key[1])
        if tasks.cpus[number] != known[key]:
            there = f"the NUMA zones of {show(case.job_name(row))} on {show(case.node_name(row))}"
            due = f"have CPUs {known[key]}" if known[key] else "list no CPUs, or not all of them"
            yield Violation(RULE, f"tasks[{number}]", f"{there} {due}, and the plan says {show(tasks.cpus[number])}")


def _of(zones: Sequence[NumaZone], ids: Sequence[int]) -> str:
    """Return the CPUs of some zones of a node as one list."""
    lists = [zone.cpus for zone in zones if zone.id in ids]
    if not lists or "" in lists:
        return ""
    # where runs begin counts 1 and where they have ended -1; a CPU is there where the sum is above 0
    steps: dict[int, int] = {}
    for part in ",".join(lists).split(","):
        ends = [int(number) for number in part.split("-")]
        steps[ends[0]] = steps.get(ends[0], 0) + 1
        steps[ends[-1] + 1] = steps.get(ends[-1] + 1, 0) - 1
    depth, parts = 0, list[str]()
    first: int | None = None
    for here in sorted(steps):
        depth += steps[here]
        if depth and first is None:
            first = here
        elif not depth and first is not None:
            parts.append(str(first) if here == first + 1 else f"{first}-{here - 1}")
            first = None
    return ",".join(parts)
