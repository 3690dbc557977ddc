"""Gangs: all or nothing down to a minimum, nested as deep as the workload is.

A job is a tree of groups. A leaf group wants `count` tasks of one shape and runs only with at least `minimum`.
A branch wants `count` copies of its children; a copy runs when at least `min_groups` of its children run, and a
branch runs when at least `minimum` copies do. The job's root is a branch of one copy that needs all its groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate, takewhile


@dataclass(frozen=True, slots=True)
class Ties:
    """Where the tasks of one copy of a group may lie relative to one another; see `placement.snapshot.Topology`.

    Levels are indices into `placement.instance.Instance.levels`, -1 for none.

    Attributes
    ----------
    required, preferred, balanced : int
        Levels.
    slices : tuple of (int, tuple of int)
        Level and sizes, from wide to narrow.
    spread : tuple of (int, int, int)
        Level, most tasks in one domain and fewest domains, 0 for any number.
    """

    required: int = -1
    preferred: int = -1
    slices: tuple[tuple[int, tuple[int, ...]], ...] = ()
    balanced: int = -1
    spread: tuple[tuple[int, int, int], ...] = ()

    @property
    def balance_unit(self) -> int:
        """By how many tasks the domains of a balanced group may differ: a slice, where all are of one size, or 1."""
        return max([1, *(sizes[0] for level, sizes in self.slices if len(sizes) == 1 and level >= self.balanced)])


@dataclass(frozen=True, slots=True)
class Leaf:
    """A group of identical tasks.

    Attributes
    ----------
    path : str
        Names from the job's top group down, joined by ``/``.
    leaf : int
        Index among the leaves of the job, in the order of the file.
    shape : int
        Index of the task shape in the instance.
    count, minimum : int
        Tasks wanted, and tasks without which the group does not run, in one copy of its parent; 1 <= minimum <= count.
    copies : int
        Copies of the leaf in a whole job, over all branches above it; the job wants ``count * copies`` tasks of it.
    value : int
        Worth of one task, in the instance's value unit.
    ties : Ties, optional
    """

    path: str
    leaf: int
    shape: int
    count: int
    minimum: int
    copies: int
    value: int
    ties: Ties | None = None


@dataclass(frozen=True, slots=True)
class Branch:
    """Copies of a set of groups; see the module's text for when it runs."""

    path: str
    children: tuple[Leaf | Branch, ...]
    count: int = 1
    minimum: int = 1
    min_groups: int = 0
    ties: Ties | None = None


Group = Leaf | Branch


def leaves(group: Group) -> Iterator[Leaf]:
    """Yield the leaves below a group, in the order of their index."""
    if isinstance(group, Leaf):
        yield group
    else:
        for child in group.children:
            yield from leaves(child)


def least_of(group: Group, of_leaf: Sequence[int | Fraction]) -> int | Fraction:
    """Return the least that a group comes to in one copy of its parent, given what a task of each leaf does."""
    if isinstance(group, Leaf):
        return group.minimum * of_leaf[group.leaf]
    children = sorted(least_of(child, of_leaf) for child in group.children)
    return group.minimum * sum(children[: group.min_groups])


def slice_ends(sizes: Sequence[int], tasks: int) -> list[int]:
    """Return the numbers at which the slices of a copy of so many tasks end; of one size as many as it takes."""
    if len(sizes) > 1:
        return list(accumulate(sizes))
    return list(range(sizes[0], tasks + sizes[0], sizes[0]))


def common_path(a: str, b: str) -> str:
    """Return the path of the innermost group that holds two groups, empty for the job."""
    steps = zip(a.split("/"), b.split("/"), strict=False)
    return "/".join(one for one, _ in takewhile(lambda step: step[0] == step[1], steps))


def is_tied(group: Group) -> bool:
    """Return whether a group, or one below it, says where its tasks may lie relative to one another."""
    if group.ties is not None:
        return True
    return isinstance(group, Branch) and any(is_tied(child) for child in group.children)


def is_flat(root: Branch) -> bool:
    """Return whether every group of the job is a leaf that the job needs."""
    return root.count == 1 and root.min_groups == len(root.children) and all(isinstance(c, Leaf) for c in root.children)


def at_most(root: Branch, counts: Sequence[int]) -> Branch:
    """Return a flat gang that wants no more than so many tasks of each leaf, and needs as many as before."""
    children = tuple(replace(child, count=counts[child.leaf]) for child in root.children if isinstance(child, Leaf))
    return replace(root, children=children)


def runs(root: Branch, placed: Sequence[Sequence[int]]) -> bool:
    """Return whether placed tasks form a job that may run.

    Parameters
    ----------
    root : Branch
    placed : sequence of int sequences
        For each leaf, placed tasks in each of its copies, outermost copy slowest (shape: leaves x copies).

    Returns
    -------
    bool
        True if every group either reaches its minimum or has no placed task at all, and the root runs.
    """
    ok, active = _visit(root, 0, placed)
    return ok and active


def _visit(group: Group, copy: int, placed: Sequence[Sequence[int]]) -> tuple[bool, bool]:
    if isinstance(group, Leaf):
        tasks = placed[group.leaf][copy]
        active = tasks >= group.minimum
        return tasks <= group.count and (active or tasks == 0), active
    running = 0
    for member in range(group.count):
        visits = [_visit(child, copy * group.count + member, placed) for child in group.children]
        if not all(ok for ok, _ in visits):
            return False, False
        if sum(active for _, active in visits) >= group.min_groups:
            running += 1
        elif _any_task(group, copy * group.count + member, placed):
            return False, False
    if running >= group.minimum:
        return True, True
    return not _any_task_in_copies(group, copy, placed), False


def _any_task(group: Branch, member: int, placed: Sequence[Sequence[int]]) -> bool:
    """Return whether any leaf below a member of a branch has a placed task."""
    for child in group.children:
        if isinstance(child, Leaf):
            if placed[child.leaf][member]:
                return True
        elif _any_task_in_copies(child, member, placed):
            return True
    return False


def _any_task_in_copies(group: Branch, copy: int, placed: Sequence[Sequence[int]]) -> bool:
    return any(_any_task(group, copy * group.count + member, placed) for member in range(group.count))
