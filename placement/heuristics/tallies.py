"""In which domains the tasks of a job lie while it is placed, for ties that shut domains out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from placement.gang import Branch, Group, common_path
from placement.heuristics.numbering import Numbering
from placement.instance import Affinity, JobClass


@dataclass(slots=True)
class Tally:
    """How many placed tasks of some leaves lie in each domain of a level, for each scope.

    Attributes
    ----------
    level : int
    copies : dict of int to int
        For each leaf that counts, how many copies of it one scope has.
    most, fewest : int
        Most tasks of a scope in a domain, and fewest domains; 0 for any number.
    """

    level: int
    copies: dict[int, int]
    most: int = 0
    fewest: int = 0
    counts: dict[int, Counter[int]] = field(default_factory=dict)

    def in_scope(self, scope: int) -> Counter[int]:
        """Return the tasks by domain in a scope."""
        return self.counts.setdefault(scope, Counter())

    def add(self, leaf: int, copy: int, domain: int, tasks: int) -> None:
        """Count tasks of a copy of a leaf that counts here."""
        counts = self.in_scope(copy // self.copies[leaf])
        counts[domain] += tasks
        if not counts[domain]:
            del counts[domain]

    def shut(self, leaf: int, copy: int, tasks: int, *, decided: bool) -> set[int]:
        """Return the domains that may not take so many more tasks of a copy of a leaf.

        While too few domains are in use, those are shut that are, unless it is `decided` which one the tasks are in.
        """
        counts = self.in_scope(copy // self.copies[leaf])
        full = {domain for domain, count in counts.items() if count + tasks > self.most} if self.most else set()
        return full if decided or len(counts) >= self.fewest else full | set(counts)


@dataclass(frozen=True, slots=True)
class Sides:
    """Both groups of an affinity, judged together for each member of the innermost group that holds both.

    Attributes
    ----------
    affinity : Affinity
    parent : Branch
        That innermost group.
    groups : tuple of Group
    tallies : tuple of Tally
        A scope is a member of the parent.
    """

    affinity: Affinity
    parent: Branch
    groups: tuple[Group, Group]
    tallies: tuple[Tally, Tally]

    @classmethod
    def of(cls, affinity: Affinity, job_class: JobClass) -> Sides:
        """Return both groups with nothing counted yet."""
        inside = dict(_below(job_class.root))
        parent = inside.get(common_path(affinity.a, affinity.b), job_class.root)
        assert isinstance(parent, Branch)
        one = {leaf: copies // parent.count for leaf, copies in Numbering(parent).copies.items()}
        groups = inside[affinity.a], inside[affinity.b]
        a, b = (Tally(affinity.level, {leaf: one[leaf] for leaf in Numbering(group).copies}) for group in groups)
        return cls(affinity, parent, groups, (a, b))

    def shut(self, leaf: int, copy: int) -> set[int]:
        """Return the domains that tasks of the other group keep from a copy of a leaf of one that must lie apart."""
        if self.affinity.together:
            return set()
        for tally, other in (self.tallies, self.tallies[::-1]):
            if leaf in tally.copies:
                return set(other.in_scope(copy // tally.copies[leaf]))
        return set()

    def held(self) -> bool:
        """Return whether the groups share a domain, or none, in every scope."""
        a, b = self.tallies
        for scope in {*a.counts, *b.counts}:
            first, second = set(a.in_scope(scope)), set(b.in_scope(scope))
            used = first | second
            if (len(used) > 1 or -1 in used) if self.affinity.together else (first & second) - {-1}:
                return False
        return True


def spreads(numberings: dict[str, Numbering]) -> list[Tally]:
    """Return a tally for each spread that some group asks for."""
    return [
        Tally(level, numbering.copies, most, fewest)
        for numbering in numberings.values()
        for level, most, fewest in (numbering.group.ties.spread if numbering.group.ties is not None else ())
    ]


def _below(group: Group) -> list[tuple[str, Group]]:
    """Return the groups below a group by path, each before those in it."""
    children = group.children if isinstance(group, Branch) else ()
    return [pair for child in children for pair in ((child.path, child), *_below(child))]
