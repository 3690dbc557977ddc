"""Preferred levels on large instances: first as if they were required, then by placing again what lies too wide.

Nothing is proven about how near jobs can lie. Where all of them find a place with every preferred level taken as
required, nothing is left to wish for; else jobs that lie too wide are taken out, all of them or some drawn by lot, and
placed again by a greedy rule, which tries preferred domains first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np

from placement.confined import lies_within
from placement.gang import Branch, Group, leaves
from placement.heuristics import HEURISTICS
from placement.instance import Assignment, Instance, Ints
from placement.preferred import costs
from placement.solver import Limits

TRIES = 12
"""How often jobs are taken out."""


def hardened(instance: Instance) -> Instance:
    """Return the instance in which groups require the levels that they prefer; those of nodes stay wishes.

    So does the wish of a group that requires a wider level of which some of the preferred domains lie in no domain: it
    would not ask for that any more. Placements in the instance are placements in the original.
    """
    narrowest = len(instance.levels) - 1

    @cache
    def holds(wide: int, narrow: int) -> bool:
        return wide <= 0 or lies_within(instance, narrow, wide)

    def harden(group: Group) -> Group:
        ties = group.ties
        if ties is not None and ties.required < ties.preferred < narrowest and holds(ties.required, ties.preferred):
            ties = replace(ties, required=ties.preferred)
        if isinstance(group, Branch):
            return replace(group, children=tuple(map(harden, group.children)), ties=ties)
        return replace(group, ties=ties)

    classes = []
    for job_class in instance.job_classes:
        root = harden(job_class.root)
        assert isinstance(root, Branch)
        classes.append(replace(job_class, root=root, leaves=tuple(leaves(root))))
    return replace(instance, job_classes=tuple(classes))


def place_nearer(
    instance: Instance, assignment: Assignment, limits: Limits, seed: int, better: Callable[[Assignment], bool]
) -> None:
    """Place jobs that lie too wide again, some at a time.

    Parameters
    ----------
    instance : Instance
    assignment : Assignment
    limits : Limits
    seed : int
    better : callable
        Told of every assignment found; returns whether it is better, and so to be gone on from.
    """
    rng = np.random.default_rng(seed)
    share = 1.0
    for _ in range(TRIES):
        wide = _too_wide(instance, assignment)
        if not len(wide) or limits.left <= 0:
            return
        out = wide[rng.random(len(wide)) < share]
        rest = assignment.of_jobs(np.setdiff1d(np.unique(assignment.job), out))
        first_fit = HEURISTICS["first-fit"]
        found = first_fit.solve(instance, objectives=(), limits=limits, seed=seed, start=rest).assignment
        if better(found):
            assignment = found
        else:
            share = max(share / 2, 1 / len(wide))


def _too_wide(instance: Instance, assignment: Assignment) -> Ints:
    """Return the jobs of which some copy lies wider than it prefers."""
    jobs = [copy[cost > 0] // wish.copies for wish, copy, cost in costs(instance, assignment)]
    return np.unique(np.concatenate([*jobs, np.zeros(0, dtype=np.int64)]))
