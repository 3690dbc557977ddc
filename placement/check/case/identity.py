"""Identity: every row of the plan's tasks names a task that waits, a node that is there, and the right cards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from placement.check.exact import Bools, Ints, numbers
from placement.check.facts.facts import Facts
from placement.check.facts.kinds import Gang, Leaf, NodeKind
from placement.check.facts.uses import Rows, flat, only
from placement.check.violation import Violation, integer, many, show
from placement.plan import Tasks

RULE = "identity"

MOST = 20
"""Cards that a message lists."""


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


def resolve(facts: Facts, tasks: Tasks) -> tuple[Rows, list[Violation]]:
    """Look up every row.

    Parameters
    ----------
    facts : Facts
    tasks : Tasks
        With columns of equal length.

    Returns
    -------
    rows : Rows
        Rows of which job, group, index and node are known, without second mentions of a task; of their cards, those
        that the node has. The other rules judge these.
    violations : list of Violation
    """
    job, job_copy = facts.job_names.find_all(tasks.job)
    spec, copy = facts.node_names.find_all(tasks.node)
    index = numbers(tasks.index)
    leaf = _leaves(facts, job, tasks.group)
    named = (leaf >= 0) & (spec >= 0) & (index >= 0)
    named[named] &= index[named] < facts.wanted_of_leaf[leaf[named]]
    earlier = _earlier(np.where(named, facts.job_names.first[job] + job_copy, -1), leaf, index, named)
    fine = named & (earlier == np.arange(len(named)))
    device, row = flat(tasks.gpus)
    there = _there(facts, spec, device, row, fine)
    listed, right = (np.bincount(rows, minlength=len(leaf)) for rows in (row, row[there]))
    wrong = fine & ((right < listed) | (listed != _gpus(facts)[leaf]) | _descends(device, row, len(leaf)))
    words = _Words(facts, tasks, job, spec, earlier)
    found = [violation for number in np.flatnonzero(~fine | wrong).tolist() for violation in words.of(number)]
    kept_row, kept = only(row[there], fine)
    rows = Rows(
        leaf=leaf[fine],
        spec=spec[fine],
        copy=copy[fine],
        device=device[there][kept],
        row=kept_row,
        number=np.flatnonzero(fine),
        job=job[fine],
        job_copy=job_copy[fine],
        index=index[fine],
    )
    return rows, found


def _leaves(facts: Facts, job: Ints, groups: list[str]) -> Ints:
    """Return the leaf that each row names; -1 where its job does not wait or has no such group."""
    known = {
        (number, path): leaf.number for number, gang in enumerate(facts.gangs) for path, leaf in gang.leaves.items()
    }
    if not len(facts.gang):
        return np.full(len(groups), -1, dtype=np.int64)
    gangs = np.where((job >= 0) & facts.waits[job], facts.gang[job], -1).tolist()
    return np.array([known.get(key, -1) for key in zip(gangs, groups, strict=True)], dtype=np.int64)


def _earlier(job: Ints, leaf: Ints, index: Ints, named: Bools) -> Ints:
    """Return the first row that names the same task as each row."""
    rows = np.flatnonzero(named)
    order = rows[np.lexsort((index[rows], leaf[rows], job[rows]))]  # stable: of equal rows the first comes first
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = np.any([column[order[1:]] != column[order[:-1]] for column in (job, leaf, index)], axis=0)
    earlier = np.arange(len(named), dtype=np.int64)
    earlier[order] = order[np.flatnonzero(new)][np.cumsum(new) - 1]
    return earlier


def _there(facts: Facts, spec: Ints, device: Ints, row: Ints, fine: Bools) -> Bools:
    """Return which of the listed cards a node has and a task names for the first time."""
    there = fine[row] & (device >= 0)
    kind = facts.kind[spec[row[there]]]
    there[there] &= device[there] < np.diff(facts.first_card)[kind]
    rows = np.flatnonzero(there)
    order = rows[np.lexsort((device[rows], row[rows]))]
    again = order[1:][(row[order[1:]] == row[order[:-1]]) & (device[order[1:]] == device[order[:-1]])]
    there[again] = False
    return there


def _descends(device: Ints, row: Ints, rows: int) -> Bools:
    """Return which rows list a card after one with a larger index."""
    descends = np.zeros(rows, dtype=np.bool_)
    descends[row[1:][(row[1:] == row[:-1]) & (device[1:] < device[:-1])]] = True
    return descends


def _gpus(facts: Facts) -> Ints:
    """Return the cards that a task of each leaf takes; one more entry for rows that name no leaf."""
    return np.array([leaf.shape.gpus for leaf in facts.leaves] + [0], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class _Words:
    """Says of one row what is wrong with it."""

    facts: Facts
    tasks: Tasks
    job: Ints
    spec: Ints
    earlier: Ints

    def of(self, number: int) -> Iterator[Violation]:
        """Yield what is wrong with a row."""
        for what in self._wrong(number, int(self.job[number]), int(self.spec[number])):
            yield Violation(RULE, f"tasks[{number}]", what)

    def _wrong(self, number: int, job: int, spec: int) -> Iterator[str]:
        tasks = self.tasks
        name, group, index, node = tasks.job[number], tasks.group[number], tasks.index[number], tasks.node[number]
        if job < 0:
            yield f"no job is named {show(name)}, only jobs of the snapshot can be placed"
            return
        if not self.facts.waits[job]:
            yield f"job {show(name)} runs already, only pending jobs can be placed"
            return
        gang = self.facts.gang_of(job)
        wrong = list(_wrong_names(name, gang, group, index, node, spec >= 0))
        yield from wrong
        if wrong:
            return
        earlier = self.earlier[number]
        if earlier != number:
            task = f"{show(name)} {show(group)} {integer(index)}"
            yield f"task {task} is placed by tasks[{earlier}] already, once is allowed"
            return
        kind = self.facts.kinds[int(self.facts.kind[spec])]
        yield from _wrong_devices(gang.leaves[group], kind, node, tasks.gpus[number])


def _wrong_names(name: str, gang: Gang, group: str, index: int, node: str, node_known: bool) -> Iterator[str]:
    leaf = gang.leaves.get(group)
    if leaf is None:
        listed = ", ".join(show(path) for path in list(gang.leaves)[:10])
        yield f"job {show(name)} has no tasks in a group {show(group)}, its groups with tasks are {listed}"
    elif not 0 <= index < leaf.wanted:
        allowed = f"it has 0 to {integer(leaf.wanted - 1)}"
        yield f"group {show(group)} of job {show(name)} has no task {integer(index)}, {allowed}"
    if not node_known:
        yield f"no node is named {show(node)}, only nodes of the snapshot can be used"


def _wrong_devices(leaf: Leaf, kind: NodeKind, node: str, gpus: list[int]) -> Iterator[str]:
    if len(gpus) != leaf.shape.gpus:
        yield f"{many(len(gpus), 'card')} listed, a task of group {show(leaf.path)} takes {integer(leaf.shape.gpus)}"
    seen: set[int] = set()
    for device in gpus:
        if not 0 <= device < len(kind.cards):
            there = f"it has 0 to {len(kind.cards) - 1}" if kind.cards else "it has none"
            yield f"{show(node)} has no gpu {integer(device)}, {there}"
        elif device in seen:
            yield f"{show(node)} gpu {device} is listed twice, the cards of a task must be distinct"
        seen.add(device)
    if any(one > other for one, other in pairwise(gpus)):
        listed, due = (", ".join(map(integer, devices)) for devices in (gpus[:MOST], sorted(gpus)[:MOST]))
        yield f"gpus {listed} are listed, in ascending order that is {due}"
