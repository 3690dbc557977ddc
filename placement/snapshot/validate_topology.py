"""Rules for domains and what is tied to them: which lies in which, topologies of groups, and affinities."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from placement.snapshot.cluster import Node
from placement.snapshot.fields import MOST_TASKS, distinct, level, whole
from placement.snapshot.report import Found, Report, show, step
from placement.snapshot.workload import Affinity, Topology


def judge_domains(nodes: Iterable[Node], levels: tuple[str, ...], report: Report) -> frozenset[str]:
    """Report domains that lie in two wider ones; return the levels at which some node has a position."""
    positions: dict[tuple[tuple[str, str], ...], int] = {}
    for index, node in enumerate(nodes):
        if node.position:
            positions.setdefault(tuple(node.position.items()), index)
    wider: dict[tuple[str, str, str], tuple[str, int]] = {}
    torn: set[tuple[str, str]] = set()
    for items, index in positions.items():
        position = dict(items)
        given = [name for name in levels if position.get(name)]
        for number, name in enumerate(given):
            domain = position[name]
            for outer in reversed(given[:number]):
                other, first = wider.setdefault((name, domain, outer), (position[outer], index))
                if other != position[outer] and (name, domain) not in torn:
                    torn.add((name, domain))
                    lies = f"{show(other)} (nodes[{first}]) and in {outer} {show(position[outer])} (nodes[{index}])"
                    what = f"{name} {show(domain)} lies in {outer} {lies}"
                    remedy = "a domain lies in one wider domain: correct the position, or name the domains apart"
                    report.add(f"nodes[{index}].position{step(name)}", what, remedy)
    return frozenset(name for items in positions for name, _ in items)


class TiedLevels:
    """The levels that tasks may be tied at.

    Parameters
    ----------
    levels : sequence of str
        From wide to narrow, `node` last.
    stated : collection of str
        Those at which some node has a position.
    """

    def __init__(self, levels: Sequence[str], stated: Collection[str]) -> None:
        self.levels = levels
        self.rank = {name: number for number, name in enumerate(levels)}
        self.empty = {*levels} - {*stated, levels[-1], ""}

    def level(self, end: str, text: str, *, optional: bool = False) -> Iterator[Found]:
        """Yield what is wrong with a level at which tasks are tied."""
        yield from level(end, text, self.levels, optional=optional)
        if text in self.empty:
            what = f"no node has a position at level {show(text)}"
            yield end, what, "say where the nodes are in their `position`, or name another level"

    def topology(self, topology: Topology, tasks: int) -> Iterator[Found]:
        """Yield what is wrong with the topology of a group of which a copy has a number of tasks."""
        for key in ("required", "preferred", "balanced"):
            yield from self.level(f".{key}", getattr(topology, key), optional=True)
        yield from self._slices(topology, tasks)
        yield from self._spread(topology, tasks)
        if self._wider(topology.preferred, topology.required):
            what = f"found {show(topology.preferred)}, which is wider than the required level {show(topology.required)}"
            yield ".preferred", what, "name a level within it, or leave it out"
        yield from self._inside(".balanced", topology.balanced, topology)
        for index, spread in enumerate(topology.spread):
            yield from self._inside(f".spread[{index}].level", spread.level, topology)

    def affinity(self, affinity: Affinity, known: Collection[str]) -> Iterator[Found]:
        """Yield what is wrong with an affinity between groups that are there."""
        a, b = affinity.a, affinity.b
        if a == b:
            yield "", "both groups are the same", "use the group's `topology` for its own tasks"
        for inner, outer in ((a, b), (b, a)):
            if inner.startswith(f"{outer}/") and inner in known and outer in known:
                what = f"group {show(inner)} is within group {show(outer)}"
                yield "", what, "name two groups of which neither holds the other, or use `topology`"
        yield from self.level(".level", affinity.level)

    def _wider(self, one: str, other: str) -> bool:
        return one in self.rank and other in self.rank and self.rank[one] < self.rank[other]

    def _inside(self, end: str, text: str, topology: Topology) -> Iterator[Found]:
        if topology.required and (text == topology.required or self._wider(text, topology.required)):
            what = f"found {show(text)}, expected a level within the required one, {show(topology.required)}"
            yield end, what, "one domain of the required level holds all tasks: name a narrower level than it"

    def _slices(self, topology: Topology, tasks: int) -> Iterator[Found]:
        before = ""
        for index, part in enumerate(topology.slices):
            end = f".slices[{index}]"
            yield from self.level(f"{end}.level", part.level)
            if self._wider(part.level, before):
                what = f"{show(part.level)} comes after {show(before)}, which is narrower"
                yield f"{end}.level", what, "list the slices from wide to narrow"
            before = part.level
            if not part.sizes:
                yield f"{end}.sizes", "there is no size", "give at least one"
            wrong = [
                found
                for number, size in enumerate(part.sizes)
                for found in whole(f"{end}.sizes[{number}]", size, 1, MOST_TASKS)
            ]
            yield from wrong or _sizes(f"{end}.sizes", part.sizes, tasks)
        yield from distinct(".slices", [part.level for part in topology.slices], "level")

    def _spread(self, topology: Topology, tasks: int) -> Iterator[Found]:
        for index, spread in enumerate(topology.spread):
            end = f".spread[{index}]"
            yield from self.level(f"{end}.level", spread.level)
            yield from whole(f"{end}.max_per_domain", spread.max_per_domain, 1)
            yield from whole(f"{end}.min_domains", spread.min_domains, 1)
            if spread.max_per_domain is None and spread.min_domains is None:
                yield end, "it asks for nothing", "give `max_per_domain` or `min_domains`"
            if spread.min_domains is not None and spread.min_domains > tasks > 0:
                what = f"found {show(spread.min_domains)}, but a copy of the group has {show(tasks)} tasks to spread"
                yield f"{end}.min_domains", what, "ask for at most as many domains as there are tasks"
        yield from distinct(".spread", [spread.level for spread in topology.spread], "level")


def _sizes(end: str, sizes: tuple[int, ...], tasks: int) -> Iterator[Found]:
    if tasks <= 0 or not sizes:
        return
    if len(sizes) == 1 and tasks % sizes[0]:
        what = f"slices of {sizes[0]} do not divide the {show(tasks)} tasks of a copy of the group"
        yield end, what, "give a size that divides them, or the size of every slice"
    elif len(sizes) > 1 and sum(sizes) != tasks:
        what = f"the sizes add up to {show(sum(sizes))}, but a copy of the group has {show(tasks)} tasks"
        yield end, what, "list the sizes of all slices, or one that is repeated"
