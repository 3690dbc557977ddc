"""Gangs: every group of a job either reaches its minimum or has no task at all, however deep groups are nested.

Tasks are numbered through the copies of what is above their group: copy c of a group of n tasks has the tasks from
``c * n`` on, and copy c of a group is in member ``c // count`` of its parent's count. Only what a plan's tasks
touch is looked at, so a group of a million costs no more than its placed tasks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from placement.check.case.case import Placed
from placement.check.facts.facts import Facts
from placement.check.violation import Violation, integer, many, show
from placement.snapshot import TaskGroup

RULE = "gang"
_SHOWN = 3


@dataclass(slots=True)
class _Copies:
    """What became of the copies of a group: which have a task, which reach the minimum, and which are judged."""

    touched: set[int] = field(default_factory=set)
    run: set[int] = field(default_factory=set)
    judged: set[int] = field(default_factory=set)


def judge(case: Placed) -> Iterator[Violation]:
    """Yield every group with some of its tasks but less than its minimum, and every job that lacks a group."""
    for row, wrong in _broken(case):
        for path, what in wrong:
            yield Violation(RULE, f"jobs[{case.rows.job[row]}]{path}", f"job {show(case.job_name(row))}: {what}")


def _broken(case: Placed) -> list[tuple[int, list[tuple[str, str]]]]:
    """Return the jobs that break the rule by their first row, and what is wrong with each.

    Jobs of one gang with the same number of tasks in the same copies are judged once.
    """
    rows, facts = case.rows, case.facts
    if not len(rows):
        return []
    copy = rows.index // np.array([leaf.group.count for leaf in facts.leaves], dtype=np.int64)[rows.leaf]
    order = np.lexsort((copy, rows.leaf, case.job))
    columns = np.stack([case.job[order], rows.leaf[order], copy[order]])
    part = np.concatenate([np.ones(1, dtype=np.bool_), (columns[:, 1:] != columns[:, :-1]).any(axis=0)])
    begin = np.flatnonzero(part)
    placed = np.column_stack([columns[1:, begin].T, np.diff(np.append(begin, len(rows)))])
    job = columns[0, begin]
    ends = np.append(np.flatnonzero(job[1:] != job[:-1]) + 1, len(job)).tolist()
    found = []
    known: dict[bytes, list[tuple[str, str]]] = {}
    first = 0
    text, wide = placed.tobytes(), placed.itemsize * placed.shape[1]
    for end in ends:
        key = text[first * wide : end * wide]  # leaves are numbered through all gangs, so they name the gang too
        wrong = known.get(key)
        if wrong is None:
            known[key] = wrong = _job(facts, placed[first:end].tolist())
        if wrong:
            rows_of_job = order[begin[first] : begin[end] if end < len(begin) else len(rows)]
            found.append((int(rows_of_job.min()), wrong))
        first = end
    return sorted(found)


def _job(facts: Facts, placed: list[list[int]]) -> list[tuple[str, str]]:
    """Return what is wrong with a job of which (leaf, copy, tasks) are placed."""
    by_leaf: dict[str, Counter[int]] = {}
    for leaf, copy, tasks in placed:
        by_leaf.setdefault(facts.leaves[leaf].path, Counter())[copy] = tasks
    groups = facts.gang_of_leaf(placed[0][0]).job.groups
    found: list[tuple[str, str]] = []
    parts = [(group, _group(group, group.name, f".groups[{i}]", by_leaf, found)) for i, group in enumerate(groups)]
    for number, (group, part) in enumerate(parts):
        if 0 not in part.run | part.judged:
            found.append((f".groups[{number}]", f"group {show(group.name)} does not run, the job needs it"))
    return found


def _group(
    group: TaskGroup, path: str, where: str, placed: dict[str, Counter[int]], found: list[tuple[str, str]]
) -> _Copies:
    """Judge a group in every copy of its parent; what is wrong below a copy is not said again of the copy."""
    if group.task is not None:
        counts = placed.get(path, Counter())
        unit = "task"
        result = _Copies(touched=set(counts))
    else:
        members = _members(group, path, where, placed, found)
        counts = Counter(member // group.count for member in members.run)
        unit = "copy"
        result = _Copies(
            touched={member // group.count for member in members.touched},
            judged={member // group.count for member in members.judged},
        )
    minimum = group.count if group.min_count is None else group.min_count
    result.run = {copy for copy, number in counts.items() if number >= minimum}
    broken = sorted(result.touched - result.run - result.judged)
    for copy in broken[:_SHOWN]:
        which = f"group {show(path)}" if broken == [0] else f"copy {integer(copy)} of group {show(path)}"
        what = f"{which} has {many(counts[copy], unit)} running, at least {integer(minimum)} or no task at all"
        found.append((where, what))
    if len(broken) > _SHOWN:
        found.append((where, f"the same goes for {many(len(broken) - _SHOWN, 'more copy')} of group {show(path)}"))
    result.judged.update(broken)
    return result


def _members(
    group: TaskGroup, path: str, where: str, placed: dict[str, Counter[int]], found: list[tuple[str, str]]
) -> _Copies:
    """Judge the members of a group of groups: each needs enough of its groups, or no task."""
    below = [
        _group(child, f"{path}/{child.name}", f"{where}.groups[{i}]", placed, found)
        for i, child in enumerate(group.groups)
    ]
    needed = len(group.groups) if group.min_groups is None else group.min_groups
    running = Counter(member for child in below for member in child.run)
    members = _Copies(
        touched=set().union(*(child.touched for child in below)),
        run={member for member, number in running.items() if number >= needed},
        judged=set().union(*(child.judged for child in below)),
    )
    broken = sorted(members.touched - members.run - members.judged)
    for member in broken[:_SHOWN]:
        which = f"member {integer(member)} of group {show(path)}"
        what = f"{which} has {running[member]} of its groups running, at least {needed} or no task at all"
        found.append((where, what))
    if len(broken) > _SHOWN:
        found.append((where, f"the same goes for {many(len(broken) - _SHOWN, 'more member')} of group {show(path)}"))
    members.judged.update(broken)
    return members
