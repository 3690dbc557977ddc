"""Tenants: no card, node or domain of the level that the policy names holds tasks of two tenants at a time.

Running work counts. What of it is together already stays, and nothing may be placed there. Jobs without a tenant are
one tenant. A node in no domain of the level is one by itself. Between cards tasks without any do not count.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from placement.check.case.case import Case
from placement.check.case.load import Load
from placement.check.exact import Bools, Ints
from placement.check.facts.facts import Facts
from placement.check.facts.uses import Uses
from placement.check.violation import Violation, of_jobs, show

RULE = "tenants"
CARD = "gpu"
_SHOWN = 5


def judge(case: Case) -> Iterator[Violation]:
    """Yield every card, node or domain with a new task in which tasks of several tenants are together."""
    snapshot = case.facts.snapshot
    if not snapshot.policy.tenants_apart:
        return
    mine = [snapshot.jobs[spec].tenant for spec in case.rows.job.tolist()]
    there = _There(case.facts, case.load, case.rows, mine)
    for place in np.flatnonzero(there.mixed & there.new).tolist():
        first = int(there.task[there.place == place].max())  # new tasks come after running ones
        row = first - there.running
        what = f"{there.name(place)} has tasks of tenants {there.tenants(place)}; one may be there at a time"
        yield Violation(RULE, f"tasks[{case.rows.number[row]}]", what)


def together(facts: Facts, load: Load) -> Iterator[str]:
    """Yield one line for each card, node or domain in which running work of several tenants is together.

    Parameters
    ----------
    facts : Facts
    load : Load
        Without new tasks.
    """
    if facts.snapshot.policy.tenants_apart:
        there = _There(facts, load, load.new.uses, [])
        for place in np.flatnonzero(there.mixed).tolist():
            who = f"running tasks of tenants {there.tenants(place)} together"
            yield f"{there.name(place)}: {who} ({there.jobs(place)})"


class _There:
    """Who is where: each task once for each card that it takes, or once.

    Attributes
    ----------
    running : int
        How many tasks run already; they come first.
    task, place, tenant : int arrays
        Of each entry; places, and tenants by name, are numbered.
    mixed, new : bool arrays
        Of each place: whether it has tasks of several tenants, and whether it has new ones.
    """

    def __init__(self, facts: Facts, load: Load, new: Uses, mine: list[str]) -> None:
        self._facts, self._load = facts, load
        jobs = facts.snapshot.jobs
        whose = [job.tenant for job in jobs if job.running is not None for _ in job.running.tasks] + mine
        self._names = sorted(set(whose))
        number = {name: place for place, name in enumerate(self._names)}
        old = facts.running
        self.running = len(old)
        level = facts.snapshot.policy.tenants_apart
        self._spec = np.concatenate([old.spec, new.spec])
        self._node = np.concatenate([load.running.node, load.new.node])
        if level == CARD:
            self.task = np.concatenate([old.row, self.running + new.row])
            self._device = np.concatenate([old.device, new.device])
            where = load.first_card[self._node[self.task]] + self._device
        else:
            self.task = np.arange(len(whose), dtype=np.int64)
            where = self._domains(level)
        _, self._first, place = np.unique(where, return_index=True, return_inverse=True)
        self.place: Ints = place.reshape(-1)
        self.tenant: Ints = np.array([number[name] for name in whose], dtype=np.int64)[self.task]
        pairs = np.unique(np.stack([self.place, self.tenant]), axis=1)
        self.mixed: Bools = np.bincount(pairs[0], minlength=len(self._first)) > 1
        self.new: Bools = np.bincount(self.place[self.task >= self.running], minlength=len(self._first)) > 0

    def _domains(self, level: str) -> Ints:
        """Return a number for the domain that each task is in; below 0 where its node is one by itself."""
        alone = -1 - self._node
        if level == "node":
            return alone
        specs, entry = np.unique(self._spec, return_inverse=True)
        named = [self._facts.snapshot.nodes[spec].domains.get(level) for spec in specs.tolist()]
        known = {name: number for number, name in enumerate(dict.fromkeys(named))}
        code = np.array([-1 if name is None else known[name] for name in named], dtype=np.int64)[entry.reshape(-1)]
        return np.where(code < 0, alone, code)

    def name(self, place: int) -> str:
        """Return what a place is called."""
        entry = int(self._first[place])
        task, level = int(self.task[entry]), self._facts.snapshot.policy.tenants_apart
        node = show(self._load.name(int(self._node[task])))
        if level == CARD:
            return f"{node} gpu {self._device[entry]}"
        domain = None if level == "node" else self._facts.snapshot.nodes[int(self._spec[task])].domains.get(level)
        return node if domain is None else f"{level} {show(domain)}"

    def tenants(self, place: int) -> str:
        """Return the tenants that are in a place."""
        found = [self._names[number] for number in np.unique(self.tenant[self.place == place]).tolist()]
        named = ", ".join(show(name) if name else "'' (none named)" for name in found[:_SHOWN])
        return named + (f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else "")

    def jobs(self, place: int) -> str:
        """Return the running jobs that are in a place, in the order of the snapshot."""
        tasks = self.task[self.place == place]
        jobs = np.unique(self._facts.running_job[tasks[tasks < self.running]]).tolist()
        return of_jobs([self._facts.snapshot.jobs[job].name for job in jobs])
