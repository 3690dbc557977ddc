"""An instance in which it is decided which domain each confined unit lies in, and the way back from its answers.

Whatever a unit's domain is, its tasks are then tasks that only the nodes of that domain admit. So the derived instance
has no ties, every method for such instances serves, and its placements are placements of the original instance. Only
jobs that run in full, or of which one group may run in part, are carried over, and only where nothing is asked of them
that units do not say; the others are left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from placement.confined import is_rigid, lies_within, usable_slices, wider
from placement.gang import Branch, Group, Leaf, Ties
from placement.instance import Assignment, Instance, Ints, JobClass
from placement.models.pooled_topology import Options

Place = tuple[int, int]
"""Level and domain."""


@dataclass(frozen=True, slots=True)
class Derived:
    """A derived instance.

    Attributes
    ----------
    instance : Instance
    origin : list of list of (int, int array)
        By job class and leaf: the leaf in the original job, and the number there of each of its tasks.
    """

    instance: Instance
    origin: list[list[tuple[int, Ints]]]

    def back(self, assignment: Assignment) -> Assignment:
        """Return an assignment of the derived instance as one of the original."""
        leaf, task = assignment.leaf.copy(), assignment.task.copy()
        job_class = self.instance.job_class[assignment.job]
        order = np.lexsort((assignment.leaf, job_class))
        keys = np.stack([job_class[order], assignment.leaf[order]], axis=1)
        edges = np.flatnonzero((np.diff(keys, axis=0, prepend=-1) != 0).any(axis=1)).tolist()
        for begin, end in pairwise([*edges, len(order)]):
            mine = order[begin:end]
            original, numbers = self.origin[keys[begin, 0]][keys[begin, 1]]
            leaf[mine] = original
            task[mine] = numbers[assignment.task[mine]]
        order = np.lexsort((task, leaf, assignment.job))
        lengths = np.diff(assignment.offset)[order]
        offset = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
        first = np.repeat(assignment.offset[:-1][order] - offset[:-1], lengths)
        cards = assignment.cards[first + np.arange(int(offset[-1]))]
        return Assignment(assignment.job[order], leaf[order], task[order], assignment.node[order], cards, offset)


def derive(instance: Instance, found: Options, times: Ints, jobs: dict[int, int]) -> Derived:
    """Return the instance in which units lie where they were counted.

    Parameters
    ----------
    instance : Instance
    found : Options
    times : int array
        Units by option.
    jobs : dict of int to int
        How many jobs of each tied class are to run.
    """
    return _Build(instance, found, times, jobs).derived()


class _Build:
    def __init__(self, instance: Instance, found: Options, times: Ints, jobs: dict[int, int]) -> None:
        self.instance, self.found, self.times, self.jobs = instance, found, times, jobs
        self.shapes = list(instance.shapes)
        self.tied: dict[tuple[int, Place], int] = {}
        self.classes: list[JobClass] = []
        self.origin: list[list[tuple[int, Ints]]] = []
        self.units: dict[int, list[int]] = defaultdict(list)
        for number, unit in enumerate(found.units):
            self.units[unit.job_class].append(number)
        self.supply = self._supply()

    def derived(self) -> Derived:
        left: list[Ints] = []
        for number, job_class in enumerate(self.instance.job_classes):
            if not job_class.tied:
                self._add(job_class, [(leaf.leaf, np.arange(leaf.count * leaf.copies)) for leaf in job_class.leaves])
            elif carried(self.instance, job_class):
                left.append(self._split(number, job_class))
            else:
                left.append(job_class.jobs)
        idle = np.sort(np.concatenate(left)) if left else np.zeros(0, dtype=np.int64)
        if len(idle):
            self._leave_out(idle)
        job_class_of = np.zeros(self.instance.jobs, dtype=np.int64)
        for number, one in enumerate(self.classes):
            job_class_of[one.jobs] = number
        rows = [shape for shape, _ in self.tied]
        admits = self.instance.admits_node[rows].reshape(len(rows), len(self.instance.classes))
        first = np.array([c.nodes[0] for c in self.instance.classes], dtype=np.int64)
        for row, (_, (level, domain)) in enumerate(self.tied):
            admits[row] &= self.instance.domains[level, first] == domain
        nowhere = len(self.shapes) - len(self.instance.shapes) - len(rows)
        never = np.zeros((nowhere, len(self.instance.classes)), dtype=np.bool_)
        cards, bound = self.instance.admits_card, self.instance.bound
        instance = replace(
            self.instance,
            shapes=tuple(self.shapes),
            admits_node=np.concatenate([self.instance.admits_node, admits, never]),
            admits_card=np.concatenate([cards, cards[rows], np.zeros((nowhere, cards.shape[1]), dtype=np.bool_)]),
            bound=np.concatenate([bound, bound[rows], never.astype(np.int64)]),
            job_class=job_class_of,
            job_classes=tuple(self.classes),
        )
        return Derived(instance, self.origin)

    def _add(self, job_class: JobClass, origin: list[tuple[int, Ints]]) -> None:
        self.classes.append(job_class)
        self.origin.append(origin)

    def _leave_out(self, jobs: Ints) -> None:
        """Give jobs that are not to run a task that no node admits."""
        shape = len(self.shapes)
        self.shapes.append(self.instance.shapes[0])
        leaf = Leaf("-", 0, shape, 1, 1, 1, 0)
        priority = min(job_class.priority for job_class in self.instance.job_classes)
        self._add(JobClass(jobs, priority, Branch("", (leaf,), 1, 1, 1), (leaf,)), [(0, np.zeros(1, dtype=np.int64))])

    def _supply(self) -> dict[int, dict[int, list[int]]]:
        """Return for each unit the domains it is to be taken from, by the domain of the unit that holds it."""
        supply: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        units = self.found.units
        above = [
            None if unit.inside < 0 else wider(self.instance, unit.level, units[unit.inside].level) for unit in units
        ]
        # they are taken from the end, and the domains of most units come last: so jobs lie in few domains
        some = np.flatnonzero(self.times)
        for option in some[np.argsort(self.times[some], kind="stable")].tolist():
            number, domain = int(self.found.unit[option]), int(self.found.domain[option])
            of_unit = above[number]
            supply[number][-1 if of_unit is None else int(of_unit[domain])] += [domain] * int(self.times[option])
        return supply

    # --- one tied job class --------------------------------------------------------------------------------------

    def _split(self, number: int, job_class: JobClass) -> Ints:
        """Add the classes of the jobs that are to run, by where their units lie; return the jobs that are not."""
        by_place: dict[tuple[tuple[int, Place | None, tuple[int, ...]], ...], list[int]] = defaultdict(list)
        running = min(self.jobs.get(number, 0), job_class.size)
        used = 0
        for _ in range(running):
            parts = self._parts(number, job_class)
            if parts is None:
                break
            key = tuple(
                (leaf, place, tuple(tasks)) for (leaf, place), tasks in sorted(parts.items(), key=lambda p: str(p[0]))
            )
            by_place[key].append(int(job_class.jobs[used]))
            used += 1
        for key, jobs in by_place.items():
            self._add_placed(job_class, key, np.array(jobs, dtype=np.int64))
        return job_class.jobs[used:]

    def _parts(self, number: int, job_class: JobClass) -> dict[tuple[int, Place | None], list[int]] | None:
        """Return the task numbers of one job by leaf and place, None where no units are left for it."""
        parts: dict[tuple[int, Place | None], list[int]] = defaultdict(list)
        following = [0] * len(job_class.leaves)
        for unit in self.units[number]:
            if self.found.units[unit].inside < 0:
                for _ in range(self.found.units[unit].times):
                    if not self._take(unit, -1, parts, following):
                        return None
        for leaf in job_class.leaves:
            rest = range(following[leaf.leaf], leaf.count * leaf.copies)
            if len(rest):
                parts[leaf.leaf, None] += list(rest)
        return parts

    def _take(
        self, number: int, above: int, parts: dict[tuple[int, Place | None], list[int]], following: list[int]
    ) -> bool:
        """Take one unit with all that is inside it."""
        domains = self.supply[number][above]
        if not domains:
            return False
        domain, unit = domains.pop(), self.found.units[number]
        for leaf, tasks in unit.tasks:
            parts[leaf, (unit.level, domain)] += range(following[leaf], following[leaf] + tasks)
            following[leaf] += tasks
        for inner in self.units[unit.job_class]:
            if self.found.units[inner].inside == number:
                for _ in range(self.found.units[inner].times):
                    if not self._take(inner, domain, parts, following):
                        return False
        return True

    def _add_placed(
        self, job_class: JobClass, key: tuple[tuple[int, Place | None, tuple[int, ...]], ...], jobs: Ints
    ) -> None:
        leaves: list[Leaf] = []
        for leaf, place, tasks in key:
            original = job_class.leaves[leaf]
            shape = original.shape if place is None else self._shape(original.shape, place)
            least = len(tasks) if is_rigid(job_class.root) else original.minimum
            path = f"{original.path}@{len(leaves)}"
            leaves.append(Leaf(path, len(leaves), shape, len(tasks), least, 1, original.value))
        root = Branch("", tuple(leaves), 1, 1, len(leaves))
        numbers = [(leaf, np.array(tasks, dtype=np.int64)) for leaf, _, tasks in key]
        self._add(JobClass(jobs, job_class.priority, root, tuple(leaves)), numbers)

    def _shape(self, shape: int, place: Place) -> int:
        key = shape, place
        if key not in self.tied:
            self.tied[key] = len(self.shapes)
            self.shapes.append(self.instance.shapes[shape])
        return self.tied[key]


def carried(instance: Instance, job_class: JobClass) -> bool:
    """Return whether units say all that ties a job's tasks, and it runs in full or is one group of tasks."""
    root, node = job_class.root, len(instance.levels) - 1
    groups = list(_groups(root))
    one = len(root.children) == 1 and isinstance(root.children[0], Leaf)
    sliced = any(group.ties is not None and group.ties.slices for group in groups)
    if not all(_is_said(group, node) for group in groups) or not (is_rigid(root) or (one and not sliced)):
        return False
    near = {path: affinity.level for affinity in job_class.affinity for path in (affinity.a, affinity.b)}
    if not _follows(instance, root, 0, near):
        return False
    pairs = [{child.path for child in group.children} for group in groups if isinstance(group, Branch)]
    return len({affinity.level for affinity in job_class.affinity}) <= 1 and all(
        affinity.together and affinity.level < node and any({affinity.a, affinity.b} <= paths for paths in pairs)
        for affinity in job_class.affinity
    )


def _is_said(group: Group, node: int) -> bool:
    """Return whether units say all that a group asks, and number its slices as they are listed."""
    ties = group.ties
    if ties is None:
        return True
    if ties.balanced >= 0 or ties.spread or ties.required == node:
        return False
    # one domain holds the whole group, and so what is cut off at its level or a wider one
    level = max(0, ties.required)
    slices = tuple(part for part in ties.slices if part[0] > level)
    if not slices:
        return True
    if isinstance(group, Branch) or usable_slices(group, level, node) != slices:
        return False
    sizes = slices[0][1]
    return len(sizes) == 1 or (group.copies == 1 and list(sizes) == sorted(sizes, reverse=True))


def _follows(instance: Instance, group: Group, around: int, near: dict[str, int]) -> bool:
    """Return whether what a group asks at levels wider than that of the unit around it goes without saying.

    It does not where some domain of that level lies in none of the wider one. `near` has levels by path of groups that
    belong together.
    """
    ties = group.ties or Ties()
    for level in (near.get(group.path, -1), ties.required, *(level for level, _ in ties.slices)):
        if 0 < level < around and not lies_within(instance, around, level):
            return False
        around = max(around, level)
    return isinstance(group, Leaf) or all(_follows(instance, child, around, near) for child in group.children)


def _groups(group: Group) -> Iterator[Group]:
    yield group
    if isinstance(group, Branch):
        for child in group.children:
            yield from _groups(child)
