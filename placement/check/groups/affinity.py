"""Affinity: two groups of a job lie in one domain of a level, or share none.

That goes for each member of the innermost group that holds both of them, and for the whole job where none does. Groups
that must be together lie in one domain with all their placed tasks, so none may be on a node that is in no domain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from placement.check.case.case import Placed
from placement.check.exact import Ints, numbered
from placement.check.facts.kinds import Gang
from placement.check.groups.ties import Bond, Group, Tied, groups_of, scattered
from placement.check.groups.topology import levels_of
from placement.check.violation import Violation, show
from placement.snapshot import Affinity

RULE = "affinity"


def judge(case: Placed) -> Iterator[Violation]:
    """Yield every copy in which two groups lie apart that must be together, or the other way round."""
    found = [one for gang in case.facts.tied for one in _bonds(gang)]
    if not found:
        return
    bonds = [bond for bond, _, _ in found]
    tied = Tied(case, bonds)
    for level in levels_of(case.facts):
        for kind in ("together", "apart"):
            some = tied.under([one.level == level and one.kind == kind for _, _, one in found])
            unit, domain = tied.unit[some], tied.domains(level)[some]
            together = kind == "together"
            wrong = scattered(unit, domain) if together else _shared(unit, domain, tied.side[some])
            for number in wrong.tolist():
                yield _violation(tied, found, number)


def _bonds(gang: Gang) -> Iterator[tuple[Bond, int, Affinity]]:
    """Yield what each affinity of a gang ties, its number, and itself."""
    groups = {group.path: group for group in groups_of(gang)} if gang.job.affinity else {}
    for number, affinity in enumerate(gang.job.affinity):
        sides = groups[affinity.a], groups[affinity.b]
        yield Bond(_members(groups, affinity), sides), number, affinity


def _members(groups: dict[str, Group], affinity: Affinity) -> int:
    """Return how many members a job has of the innermost group that holds both groups."""
    above: list[str] = []
    for one, other in zip(affinity.a.split("/")[:-1], affinity.b.split("/")[:-1], strict=False):
        if one != other:
            break
        above.append(one)
    holds = groups.get("/".join(above))
    return 1 if holds is None else holds.copies * holds.group.count


def _shared(unit: Ints, domain: Ints, side: Ints) -> Ints:
    """Return the units of which some domain holds tasks of both groups."""
    inside = domain >= 0
    unit, side = unit[inside], side[inside]
    place, first = numbered([unit, domain[inside]])
    both = [np.bincount(place[side == one], minlength=len(first)) > 0 for one in (0, 1)]
    return np.unique(unit[first[both[0] & both[1]]])


def _violation(tied: Tied, found: Sequence[tuple[Bond, int, Affinity]], unit: int) -> Violation:
    bond, number, affinity = found[int(tied.bond[tied.first[unit]])]
    entries = tied.of(unit)
    places = [
        f"{show(group.path)} in {tied.places([e for e in entries if tied.side[e] == side], affinity.level) or 'none'}"
        for side, group in enumerate(bond.sides)
    ]
    rule = "one domain must hold both" if affinity.kind == "together" else "no domain may hold tasks of both"
    what = f"{tied.name(unit, bond)}: at level {affinity.level} there is {', and '.join(places)}; {rule}"
    return Violation(RULE, tied.path(unit, f".affinity[{number}]"), what)
