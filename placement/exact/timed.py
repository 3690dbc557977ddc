"""Run times on large instances: the other objectives first, then jobs that run longer than they need to.

Where it counts how long jobs run, jobs that differ in that are classes of their own, which the other methods need not
tell apart (`untimed`). They reach the objectives before ``run_time``. Then jobs are taken out, those that run longer
than on their best place and some others, and placed again by the greedy rule fastest fit, in whose eyes they differ
(`told_apart`): first the ones with most to lose. What is worse in any objective before is not kept. Nothing is proven
of run times but that they are not less than 0, and objectives after ``run_time`` are not improved.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np

from placement.durations import RunTime
from placement.evaluate import better, scores
from placement.gang import Branch, Group, Ties, leaves
from placement.heuristics.fastest_fit import FastestFit
from placement.heuristics.greedy import Greedy
from placement.index import members
from placement.instance import Assignment, Instance, Ints
from placement.run_time import placed
from placement.shared_cards import parted, sharing_factor
from placement.solver import Limits, Progress, Report, Result, Stop

SHARE = 0.75
"""Share of the time left for the objectives before."""
TRIES, FAILURES = 24, 6
"""How often jobs are taken out at most, and how often one after the other in vain."""
NOTE = "run_time: on an instance of this size nothing is proven of it; its bound of 0 says only that time passes"

Solve = Callable[..., Result]


def solve_timed(
    instance: Instance,
    objectives: tuple[str, ...],
    limits: Limits,
    seed: int,
    start: Assignment | None,
    report: Report,
    solve: Solve,
) -> Result:
    """Return the best assignment found for objectives of which one is ``run_time``.

    Parameters
    ----------
    instance : Instance
    objectives : tuple of str
    limits : Limits
    seed : int
    start : Assignment, optional
        A checked assignment; the answer is never worse.
    report : callable
    solve : callable
        Solves the instance for other objectives; as `placement.exact.run`.
    """
    leading = objectives[: objectives.index("run_time")]
    best = Assignment.empty() if start is None else start
    result = Result(best, Stop.COMPLETE)
    if leading:
        share = limits.share(SHARE)
        result = solve(untimed(instance), objectives=leading, limits=share, seed=seed, start=start, report=report)
    began = time.perf_counter()
    search = _Search(instance, objectives, limits, seed, report)
    for one in (best, result.assignment, Assignment.empty()):
        search.take(one)
    search.run()
    seconds = {**result.seconds, "place": result.seconds.get("place", 0.0) + time.perf_counter() - began}
    stop = Stop.COMPLETE if result.stop is Stop.OPTIMAL else result.stop
    stop = Stop.TIME if search.cut else stop
    return replace(result, assignment=search.best, stop=stop, seconds=seconds, notes=(*result.notes, NOTE))


def untimed(instance: Instance) -> Instance:
    """Return an instance in which it is not told how long jobs run, and job classes that differ in that alone are one.

    Jobs keep their numbers, so that assignments of the one are assignments of the other.
    """
    if not instance.timed:
        return instance
    number: dict[object, int] = {}
    to = np.array(
        [number.setdefault((one.priority, one.root, one.affinity), len(number)) for one in instance.job_classes],
        dtype=np.int64,
    )
    _, first = np.unique(to, return_index=True)
    job_class = to[instance.job_class]
    # not by the class of each job: there may be jobs that are none of these
    jobs = [[instance.job_classes[k].jobs for k in some.tolist()] for some in members(to, len(first))]
    classes = tuple(
        replace(instance.job_classes[k], jobs=np.sort(np.concatenate(mine)), run=None)
        for k, mine in zip(first.tolist(), jobs, strict=True)
    )
    return replace(instance, job_class=job_class, job_classes=classes)


def told_apart(instance: Instance) -> Instance:
    """Return an instance in which tasks of jobs with other run times are of other shapes, and near ones preferred.

    Shapes that are alike to nodes are told apart by a rule that looks at run times, and groups of several tasks that do
    not say where they like to lie would like to lie on one node.
    """
    narrowest = len(instance.levels) - 1
    number: dict[tuple[int, RunTime | None], int] = {}
    classes = []
    for job_class in instance.job_classes:
        shape = {leaf.shape: number.setdefault((leaf.shape, job_class.run), len(number)) for leaf in job_class.leaves}
        root = _shaped(job_class.root, shape)
        assert isinstance(root, Branch)
        wide = job_class.run is not None and sum(leaf.count * leaf.copies for leaf in job_class.leaves) > 1
        if wide and not job_class.tied:
            near = tuple(replace(child, ties=Ties(preferred=narrowest)) for child in root.children)
            root = replace(root, children=near)
        classes.append(replace(job_class, root=root, leaves=tuple(leaves(root))))
    rows = np.array([shape for shape, _ in number], dtype=np.int64)
    return replace(
        instance,
        job_classes=tuple(classes),
        shapes=tuple(instance.shapes[row] for row in rows.tolist()),
        admits_node=instance.admits_node[rows],
        admits_card=instance.admits_card[rows],
        bound=instance.bound[rows],
    )


def _shaped(group: Group, shape: dict[int, int]) -> Group:
    """Return a group with other numbers of shapes."""
    if isinstance(group, Branch):
        return replace(group, children=tuple(_shaped(child, shape) for child in group.children))
    return replace(group, shape=shape[group.shape])


class _Search:
    """Takes jobs out and places them again.

    Attributes
    ----------
    best : Assignment
    cut : bool
        Whether time ended it.
    """

    def __init__(
        self, instance: Instance, objectives: tuple[str, ...], limits: Limits, seed: int, report: Report
    ) -> None:
        self.instance, self.objectives, self.limits, self.report = instance, objectives, limits, report
        self.rng = np.random.default_rng(seed)
        self.seed = seed
        self.apart = told_apart(instance)
        self.best = Assignment.empty()
        self.scores = scores(instance, self.best, objectives)
        self.cut, self.tries = False, 0
        self.least, self.loss = _extremes(instance)

    def take(self, assignment: Assignment) -> bool:
        """Take an assignment if it is better."""
        if not len(assignment) and not len(self.best):
            return False
        found = scores(self.instance, assignment, self.objectives)
        if not better(found, self.scores):
            return False
        self.best, self.scores = assignment, found
        self.report(Progress("run_time", assignment))
        return True

    def run(self) -> None:
        """Place again until nothing runs too long, or tries or time are used up."""
        share, failures = 1.0, 0
        for self.tries in range(1, TRIES + 1):
            if not self.limits.left:
                self.cut = True
            if self.cut or failures == FAILURES:
                return
            out = self._out(share)
            if not len(out):
                return
            rest = self.best.of_jobs(np.setdiff1d(np.unique(self.best.job), out))
            failures += 1
            if self.take(self._placed(rest, out)):
                failures = 0
            else:
                share = max(share / 2, 1 / max(1, len(out)))

    def _out(self, share: float) -> Ints:
        """Return jobs to be taken out: of those that run too long a share, and half as much of the others."""
        found = placed(self.instance, self.best)
        number = self.instance.job_class[found.job]
        taken = np.array([float(a + b) for a, b in zip(found.run, found.fetch, strict=True)])
        slow = taken > self.least[number] * (1 + 1e-12)
        if not slow.any():
            return np.zeros(0, dtype=np.int64)
        drawn = self.rng.random(len(slow)) < np.where(slow, share, share / 2 if share < 1 else 1)
        return found.job[drawn] if drawn.any() else found.job[slow][:1]

    def _placed(self, rest: Assignment, out: Ints) -> Assignment:
        """Return an assignment with jobs placed again around others, then whatever else fits."""
        number = self.instance.job_class[out]
        # not always in the same order: what is worth most is not always worth to be placed first
        loss = self.loss[number] * (self.rng.uniform(0.25, 1, len(out)) if self.tries > 1 else 1)
        first = out[np.argsort(-loss, kind="stable")]
        arrival = self.instance.arrival
        order = np.concatenate([first, arrival[~np.isin(arrival, first)]])
        greedy = Greedy(FastestFit, lambda instance, objectives: order)
        return greedy.solve(self.apart, objectives=(), limits=self.limits, seed=self.seed, start=rest).assignment


def _extremes(instance: Instance) -> tuple[np.ndarray, np.ndarray]:
    """Return the least milliseconds that jobs of each class may take, and what cards and data may lose, weighted."""
    kinds = set(instance.card_kinds)
    least, loss = np.zeros(len(instance.job_classes)), np.zeros(len(instance.job_classes))
    for number, job_class in enumerate(instance.job_classes):
        run = job_class.run
        if run is None:
            continue
        listed = dict(run.models)
        shapes = [leaf.shape for leaf in job_class.leaves]
        of_kinds = kinds if any(instance.shapes[shape].gpus for shape in shapes) else ()
        factors = [listed.get(kind.model, Fraction(1)) for kind in of_kinds] or [Fraction(1)]
        parts = [parted(instance, shape) for shape in shapes]
        sharing = [sharing_factor(kind, run) for kind in kinds] if any(parts) else []
        sharing = sharing or [Fraction(1)]
        if not all(parts):
            sharing.append(Fraction(1))  # it may run without those that share
        ends = (min(factors), min(sharing)), (max(factors), max(sharing))
        alone = sum(leaf.count * leaf.copies for leaf in job_class.leaves) == 1
        levels = range(len(run.levels))[-1:] if alone else range(len(run.levels))
        spans = [run.milliseconds(level, f, False, False, g) for level in levels for f, g in ends]
        last = [run.milliseconds(len(run.levels) - 1, f, False, False, g) for f, g in ends]
        fetch = [min(copy.fetch) for copy in run.data], [max(copy.fetch) for copy in run.data]
        least[number] = min(spans) + min(fetch[0], default=0)
        loss[number] = run.weight * (last[1] - last[0] + min(fetch[1], default=0) - min(fetch[0], default=0))
    return least, loss
