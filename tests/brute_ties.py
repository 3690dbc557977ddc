"""What gangs, topologies and affinities mean for the placed tasks of one job: read off the fields, copy by copy.

A job is written out in full, every copy of every group with its tasks by name. Nothing is shared with the judge.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from placement.snapshot import Job, Node, TaskGroup, Topology

Name = tuple[str, int]
"""Path of a task's group, and its number within it."""
Placed = Mapping[Name, tuple[str, Node]]
"""Name of the node of each placed task, and what the node is."""


@dataclass(frozen=True)
class Copy:
    """One copy of a group, with its members: tasks, or copies of the groups in it."""

    path: str
    group: TaskGroup
    members: list[Name | list[Copy]]


def written_out(job: Job) -> list[Copy]:
    """Return the job's own groups, each with all that is in it."""
    return [_copy(group, "", Counter()) for group in job.groups]


def _copy(group: TaskGroup, above: str, numbers: Counter[str]) -> Copy:
    path = above + group.name
    members: list[Name | list[Copy]] = []
    for _ in range(group.count):
        if group.task is not None:
            members.append((path, numbers[path]))
            numbers[path] += 1
        else:
            members.append([_copy(child, f"{path}/", numbers) for child in group.groups])
    return Copy(path, group, members)


def names_of(groups: list[Copy]) -> list[Name]:
    """Return the tasks of some groups, in the order of the file."""
    return [
        name
        for copy in groups
        for member in copy.members
        for name in (names_of(member) if isinstance(member, list) else [member])
    ]


def _members(groups: list[Copy], path: str = "") -> Iterator[tuple[str, list[Copy]]]:
    """Yield every member that is a set of groups, and the path of the group that it is a member of."""
    yield path, groups
    for copy in groups:
        for member in copy.members:
            if isinstance(member, list):
                yield from _members(member, copy.path)


def is_tied(job: Job) -> bool:
    """Return whether it matters where the tasks of a job lie relative to one another."""
    members = _members(written_out(job))
    return bool(job.affinity) or any(
        copy.group.topology not in (None, Topology()) for _, groups in members for copy in groups
    )


def may_run(job: Job, groups: list[Copy], placed: Placed, topology: tuple[str, ...]) -> bool:
    """Return whether a job, written out in its groups, may run with these tasks, where they are."""
    return all(_active(copy, placed) for copy in groups) and keeps(job, groups, placed, topology)


def _active(copy: Copy, placed: Placed) -> bool | None:
    """Return whether a copy runs; None where it may not be as it is."""
    running = 0
    for member in copy.members:
        if not isinstance(member, list):
            running += member in placed
            continue
        below = [_active(child, placed) for child in member]
        if None in below:
            return None
        enough = len(member) if copy.group.min_groups is None else copy.group.min_groups
        if below.count(True) >= enough:
            running += 1
        elif any(name in placed for name in names_of(member)):
            return None
    least = copy.group.count if copy.group.min_count is None else copy.group.min_count
    if running >= least:
        return True
    return None if any(name in placed for name in names_of([copy])) else False


def keeps(job: Job, groups: list[Copy], placed: Placed, topology: tuple[str, ...]) -> bool:
    """Return whether placed tasks lie as the job's topologies and affinities say."""
    members = list(_members(groups))
    copies = [copy for _, within in members for copy in within]
    ties = all(
        _lies_right(copy, copy.group.topology, placed, (*topology, "node")) for copy in copies if copy.group.topology
    )
    return ties and all(
        _near(within, affinity.a, affinity.b, affinity.level, affinity.kind, placed)
        for affinity in job.affinity
        for path, within in members
        if path == posixpath.commonpath([affinity.a, affinity.b])
    )


def levels_wider(groups: list[Copy], placed: Placed, topology: tuple[str, ...]) -> Fraction:
    """Return by how many levels copies lie wider than they prefer, all copies together."""
    levels = ("cluster", *topology, "node")
    wider = 0
    for copy in (copy for _, within in _members(groups) for copy in within):
        wish = copy.group.topology.preferred if copy.group.topology else ""
        names = names_of([copy])
        if wish and any(name in placed for name in names):
            place = level = levels.index(wish)
            while level and not _one(_domains(names, placed, levels[level])):
                level -= 1
            wider += place - level
    return Fraction(wider)


def _domains(names: list[Name], placed: Placed, level: str) -> list[str | None]:
    """Return the domain of each of some tasks that is placed."""
    places = [placed[name] for name in names if name in placed]
    return [called if level == "node" else node.position.get(level) for called, node in places]


def _one(domains: list[str | None]) -> bool:
    return len(set(domains)) <= 1 and None not in domains


def _lies_right(copy: Copy, topology: Topology, placed: Placed, levels: tuple[str, ...]) -> bool:
    names = names_of([copy])
    if topology.required and not _one(_domains(names, placed, topology.required)):
        return False
    uneven = [1]
    for part in topology.slices:
        sizes = part.sizes if len(part.sizes) > 1 else part.sizes * (len(names) // part.sizes[0])
        for number, size in enumerate(sizes):
            begin = sum(sizes[:number])
            if not _one(_domains(names[begin : begin + size], placed, part.level)):
                return False
        if len(part.sizes) == 1 and topology.balanced and levels.index(part.level) >= levels.index(topology.balanced):
            uneven.append(part.sizes[0])
    if topology.balanced:
        domains = _domains(names, placed, topology.balanced)
        counts = Counter(domains).values()
        if None in domains or (counts and max(counts) - min(counts) > max(uneven)):
            return False
    return all(
        _thin(spread.max_per_domain, spread.min_domains, names, placed, spread.level) for spread in topology.spread
    )


def _thin(most: int | None, fewest: int | None, names: list[Name], placed: Placed, level: str) -> bool:
    domains = _domains(names, placed, level)
    if not domains:
        return True
    counts = Counter(domains)
    if None in counts or (most is not None and max(counts.values()) > most):
        return False
    return fewest is None or len(counts) >= fewest


def _near(groups: list[Copy], a: str, b: str, level: str, kind: str, placed: Placed) -> bool:
    sides = []
    for side in (a, b):
        copies = [copy for _, within in _members(groups) for copy in within if copy.path == side]
        sides.append(_domains(names_of(copies), placed, level))
    if kind == "together":
        return _one([*sides[0], *sides[1]])
    return not ({*sides[0]} - {None}) & {*sides[1]}
