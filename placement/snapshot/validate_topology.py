"""Rules for domains and what is tied to them: which lies in which, topologies of groups, and affinities."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from placement.snapshot.cluster import NVLINK_DOMAIN, Node
from placement.snapshot.fields import MOST_TASKS, distinct, level, whole
from placement.snapshot.fields import name as named
from placement.snapshot.report import Found, Memo, Report, show, step
from placement.snapshot.workload import Affinity, Topology


def judge_domains(nodes: Sequence[Node], levels: Sequence[str], report: Report) -> frozenset[str]:
    """Report domains that do not lie in one of each wider level, or in none of it; return the levels with a position.

    A domain is all the nodes that name it: if some of them name a wider domain and others do not, nobody knows whether
    it lies there, and counts by domain would miss what is in it.
    """
    positions: dict[tuple[tuple[str, str], ...], int] = {}
    for index, node in enumerate(nodes):
        if node.position or node.nvlink_domain:
            positions.setdefault(tuple(node.domains.items()), index)
    first: dict[tuple[int, str], tuple[tuple[str, ...], int]] = {}
    torn: set[tuple[int, str]] = set()
    seen: set[tuple[str, ...]] = {()}
    for items, index in positions.items():
        position = dict(items)
        where = tuple([position.get(name, "") for name in levels])
        # nodes before it may have the same domains down to some level
        known = len(levels)
        while where[:known] not in seen:
            seen.add(where[:known])
            known -= 1
        for number in range(known, len(levels)):
            domain = where[number]
            if not domain:
                continue
            way, before = first.setdefault((number, domain), (where[:number], index))
            outer = None if (number, domain) in torn else _parting(way, where)
            if outer is not None:
                torn.add((number, domain))
                ends = (way[outer], before), (where[outer], index)
                said = levels[number] == NVLINK_DOMAIN and nodes[index].nvlink_domain
                path = NVLINK_DOMAIN if said else f"position{step(levels[number])}"
                report.add(f"nodes[{index}].{path}", *_torn(levels[number], domain, levels[outer], ends))
    return frozenset(name for items in positions for name, _ in items)


def judge_nvlink_domains(nodes: Iterable[Node], levels: Collection[str], report: Report) -> None:
    """Report NVLink domains that no level is there for, or that a position contradicts."""
    known = NVLINK_DOMAIN in levels
    wrong: Memo[str, tuple[Found, ...]] = Memo(lambda domain: tuple(named("", domain)))
    for index, node in enumerate(nodes):
        domain = node.nvlink_domain
        if not domain:
            continue
        if not known:
            what = f"`topology` has no level {show(NVLINK_DOMAIN)}, of which {show(domain)} would be a domain"
            remedy = f"add {show(NVLINK_DOMAIN)} to `topology` where it belongs from wide to narrow, or leave this out"
            report.add(f"nodes[{index}].nvlink_domain", what, remedy)
        elif wrong[domain]:
            report.extend(f"nodes[{index}].nvlink_domain", wrong[domain])
        elif node.position.get(NVLINK_DOMAIN, domain) != domain:
            what = f"found {show(domain)}, but `position` says {show(node.position[NVLINK_DOMAIN])} at that level"
            report.add(f"nodes[{index}].nvlink_domain", what, "say it once, or the same twice")


def _parting(way: Sequence[str], other: Sequence[str]) -> int | None:
    """Return the nearest wider level at which two ways part; None where they meet first, in a domain that is torn."""
    for outer in reversed(range(len(way))):
        if way[outer] != other[outer]:
            return outer
        if way[outer]:
            return None
    return None


def _torn(name: str, domain: str, outer: str, ends: Sequence[tuple[str, int]]) -> tuple[str, str]:
    """Return what is wrong with a domain that lies in two places, and what to do."""
    (one, before), (other, index) = ends
    lies = [f"in {outer} {show(wider)}" if wider else f"in no {outer}" for wider in (one, other)]
    what = f"{name} {show(domain)} lies {lies[0]} (nodes[{before}]) and {lies[1]} (nodes[{index}])"
    remedy = "a domain lies in one domain of each wider level, or in none, all of it: "
    return what, remedy + "correct the positions, or name the domains apart"


class TiedLevels:
    """The levels that tasks may be tied at.

    Parameters
    ----------
    levels : sequence of str, optional
        From wide to narrow, `node` last; None where they are not known.
    stated : collection of str
        Those at which some node has a position.
    """

    def __init__(self, levels: Sequence[str] | None, stated: Collection[str]) -> None:
        self.levels = levels
        self.rank = {name: number for number, name in enumerate(levels or ())}
        self.empty = {*self.rank} - {*stated, "node", ""}

    def level(self, end: str, text: str, *, optional: bool = False) -> Iterator[Found]:
        """Yield what is wrong with a level at which tasks are tied."""
        yield from level(end, text, self.levels, optional=optional)
        if text in self.empty:
            what = f"no node has a position at level {show(text)}"
            fields = "`position` or `nvlink_domain`" if text == NVLINK_DOMAIN else "`position`"
            yield end, what, f"say where the nodes are in their {fields}, or name another level"

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
