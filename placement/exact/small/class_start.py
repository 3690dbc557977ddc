"""An assignment as a point of the configurations model, so that the solver starts from it."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from placement.exact.layouts.layout import Layout
from placement.gang import Branch, Leaf
from placement.instance import Assignment, Instance
from placement.models.gang_counts import GangVariables
from placement.models.patterns import ClassPatterns, Counts


def set_start(model: Any, instance: Instance, assignment: Assignment) -> None:
    """Set the variables of a configurations model to what an assignment stands for.

    Parameters
    ----------
    model : pyomo.environ.ConcreteModel
        Built by `models.build` for `models.CONFIGURATIONS`.
    instance : Instance
    assignment : Assignment
        A placement without violations.
    """
    _set_patterns(model, instance, Layout.of(instance, assignment))
    tasks: dict[int, Counter[tuple[int, int]]] = defaultdict(Counter)  # by job: tasks by leaf and copy
    for job, leaf, task in zip(
        assignment.job.tolist(), assignment.leaf.tolist(), assignment.task.tolist(), strict=True
    ):
        count = instance.job_classes[instance.job_class[job]].leaves[leaf].count
        tasks[job][leaf, task // count] += 1
    for number, job_class in enumerate(instance.job_classes):
        running = [tasks[job] for job in job_class.jobs.tolist() if tasks.get(job)]
        for leaf in job_class.leaves:
            mine = (mine[key] for mine in running for key in mine if key[0] == leaf.leaf)
            model.N[number, leaf.leaf].set_value(sum(mine), skip_validation=True)
        counts: Counter[tuple[str, str]] = Counter()
        for placed in running:
            _count(job_class.root, 0, placed, counts)
        gangs: GangVariables = model.gangs[number]
        for kind, variables in (("active", gangs.active), ("members", gangs.members)):
            for path, variable in variables.items():
                variable.set_value(counts[kind, path], skip_validation=True)
        gangs.jobs.set_value(len(running), skip_validation=True)


def _set_patterns(model: Any, instance: Instance, layout: Layout) -> None:
    for variable in model.x.values():
        variable.set_value(0, skip_validation=True)
    for k, node_class in enumerate(instance.classes):
        patterns: ClassPatterns = model.patterns[k]
        exact = {counts: p for p, counts in enumerate(patterns.counts)}
        used: Counter[Counts] = Counter()
        for node in node_class.nodes.tolist():
            shapes = Counter(shape for shape, _ in layout.tasks[node])
            used[tuple(shapes[s] for s in range(len(instance.shapes)))] += 1
        for counts, times in used.items():
            p = exact.get(counts)
            if p is None:  # only maximal patterns are there: one that holds as much will do
                p = next((q for q, more in enumerate(patterns.counts) if _covers(more, counts)), None)
            if p is not None:
                x = model.x[k, p]
                x.set_value(x.value + times, skip_validation=True)


def _covers(more: Counts, counts: Counts) -> bool:
    return all(a >= b for a, b in zip(more, counts, strict=True))


def _count(branch: Branch, copy: int, placed: Counter[tuple[int, int]], counts: Counter[tuple[str, str]]) -> int:
    """Return the running members of a copy of a branch, and count those of every group below."""
    running = 0
    for member in range(branch.count):
        number = copy * branch.count + member
        runs = 0
        for child in branch.children:
            if isinstance(child, Leaf):
                members = placed[child.leaf, number]
            else:
                members = _count(child, number, placed, counts)
                counts["members", child.path] += members
            if members:
                counts["active", child.path] += 1
                runs += 1
        running += runs > 0
    return running
