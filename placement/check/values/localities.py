"""Locality: how near one another tied tasks lie, recomputed from the snapshot and the placed tasks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from placement.check.case.case import Case, Placed
from placement.check.facts.facts import facts_of, states
from placement.check.facts.kinds import Gang
from placement.check.groups.ties import Group, Tied, groups_of, scattered, tallies
from placement.check.groups.topology import bond, levels_of
from placement.check.values.objectives import place
from placement.check.values.tables import differing
from placement.check.violation import Violation, integer, show
from placement.plan import Locality, Tasks
from placement.snapshot import Snapshot

RULE = "locality"


def locality(snapshot: Snapshot, tasks: Tasks) -> Locality | None:
    """Return how near one another the tied tasks of a plan lie; None where none are tied.

    Parameters
    ----------
    snapshot : Snapshot
        Valid, with every field honoured.
    tasks : Tasks
        Rows that name no task of the snapshot are left out; `check` reports them.

    Raises
    ------
    PlanError
        If the columns of the tasks differ in length.
    """
    return locality_of(place(snapshot, tasks)) if facts_of(snapshot).tied else None


def locality_of(placed: Placed) -> Locality | None:
    """Return the locality of placed tasks."""
    facts = placed.facts
    bonds = [bond(group) for gang in facts.tied for group in _named(gang)]
    if not bonds:
        return None
    tied = Tied(placed, bonds)
    units, levels = len(tied.first), levels_of(facts)
    narrowest = np.zeros(units, dtype=np.int64)
    used = np.zeros((len(levels), units), dtype=np.int64)
    for number, level in enumerate(levels):
        domain = tied.domains(level)
        whole = np.ones(units, dtype=np.bool_)
        whole[scattered(tied.unit, domain)] = False
        narrowest[whole] = number + 1
        used[number] = np.bincount(tallies(tied.unit, domain)[0], minlength=units)
    if not units:
        return None
    every = ["cluster", *levels]
    return Locality(
        job=[placed.job_name(row) for row in tied.row[tied.first].tolist()],
        group=[bonds[number].sides[0].path for number in tied.bond[tied.first].tolist()],
        copy=tied.copy[tied.first].tolist(),
        level=[every[number] for number in narrowest.tolist()],
        domains=used.T.tolist(),
    )


def _named(gang: Gang) -> Iterator[Group]:
    """Yield the groups of a gang that state a topology or are named in an affinity."""
    named = {path for affinity in gang.job.affinity for path in (affinity.a, affinity.b)}
    for group in groups_of(gang):
        if states(group.group) or group.path in named:
            yield group


def judge(case: Case) -> Iterator[Violation]:
    """Yield every row that is not what the tasks make."""
    found, due = (Locality() if one is None else one for one in (case.plan.locality, locality_of(case)))
    yield from differing(RULE, "locality", found, due, _text)


_Row = tuple[str, str, int, str, list[int]]


def _text(row: _Row) -> str:
    job, group, copy, level, domains = row
    used = ", ".join(map(integer, domains[:20]))
    return f"{show(job)} {show(group)} {integer(copy)}: one {show(level)}, domains [{used}]"
