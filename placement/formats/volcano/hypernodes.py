"""Hyper nodes: the levels of the network, from the members that they name."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import msgspec

from placement.formats.kubernetes.objects import Item, Meta, Objects
from placement.formats.kubernetes.peers import by_name, wrong
from placement.formats.ledger import Ledger
from placement.formats.volcano.records import (
    TOPOLOGY,
    HyperMember,
    HyperNode,
    LabelSelector,
    NetworkTopology,
    Requirement,
)
from placement.snapshot import Topology
from placement.snapshot.report import show

Labels = Mapping[str, str]

LONGEST_PATTERN = 1000
MOST_STEPS = 2 * 10**9
"""Steps that the names of all nodes may take with one pattern."""


class _Node(msgspec.Struct, gc=False):
    metadata: Meta = msgspec.field(default_factory=Meta)


@dataclass(frozen=True, slots=True)
class Tree:
    """Tiers as levels.

    Attributes
    ----------
    levels : dict of int to str
        Level of each tier, from wide to narrow: the higher a tier, the wider.
    names : dict of str to int
        Tier by its name.
    positions : dict of str to (dict of str to str)
        Hyper node by level, by node.
    """

    levels: Mapping[int, str] = field(default_factory=dict)
    names: Mapping[str, int] = field(default_factory=dict)
    positions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def rules(self, wanted: NetworkTopology | None, ledger: Ledger, where: str) -> Topology | None:
        """Return what a network topology asks for.

        Hard mode wants one hyper node of the highest tier that is allowed, or of a lower one. A tier above all that
        there are is the whole cluster. Soft mode prefers the lowest tier in which the pods fit.
        """
        if wanted is None or (wanted.mode is None and wanted.highest_tier_allowed is None):
            wanted = wanted if wanted is not None and wanted.highest_tier_name else None
        if wanted is None:
            return None
        mode = wanted.mode or "hard"
        if mode not in ("hard", "soft"):
            ledger.contradiction("a network topology of an unknown mode", "hard", where)
        if not self.levels:
            why = "there is no HyperNode that says what is near what"
            if mode == "soft":
                ledger.ignored("a network topology", why, where)
            else:
                ledger.unsupported("a network topology", why, where)
            return None
        if mode == "soft":
            return Topology(preferred=list(self.levels.values())[-1])
        tier = self._tier(wanted, ledger, where)
        if tier is None or tier > max(self.levels):
            return None
        within = [level for known, level in self.levels.items() if known <= tier]
        if not within:
            ledger.assumed("a tier below that of every HyperNode", "the pods lie on one node", where)
        return Topology(required=within[0] if within else "node")

    def _tier(self, wanted: NetworkTopology, ledger: Ledger, where: str) -> int | None:
        tiers = [] if wanted.highest_tier_allowed is None else [wanted.highest_tier_allowed]
        if wanted.highest_tier_name:
            named = self.names.get(wanted.highest_tier_name)
            if named is None:
                why = "no HyperNode has that name of a tier, so nothing says how far it goes"
                ledger.unsupported("a network topology up to a tier by name", why, where)
            else:
                tiers.append(named)
        if len(set(tiers)) > 1:
            ledger.contradiction("the highest tier by number and by name", "the lower one", where)
        if not tiers and not wanted.highest_tier_name:
            ledger.assumed("the highest tier of a hard network topology", "any", where)
        return min(tiers, default=None)


def tree(objects: Objects, ledger: Ledger) -> Tree:
    """Return the tree of hyper nodes.

    Raises
    ------
    InputError
        If hyper nodes go round, overlap, or lie in one of a tier that is not higher.
    """
    found = by_name(objects.of(TOPOLOGY, "HyperNode", HyperNode), lambda meta: meta.name)
    if not found:
        return Tree()
    nodes = {item.value.metadata.name: item.value.metadata.labels or {} for item in objects.of("", "Node", _Node)}
    ledger.read("hyper nodes", count=len(found))
    return _Reader(found, nodes, ledger).tree()


class _Reader:
    """Members of hyper nodes, and who is in whom."""

    def __init__(self, found: Mapping[str, Item[HyperNode]], nodes: Mapping[str, Labels], ledger: Ledger) -> None:
        self._found = found
        self._nodes = nodes
        self._ledger = ledger
        self._tier = {name: _tier_of(item) for name, item in found.items()}
        self._parent: dict[str, str] = {}
        self._own: dict[str, list[str]] = {name: [] for name in found}

    def tree(self) -> Tree:
        for name, item in self._found.items():
            for index, member in enumerate(item.value.spec.members or ()):
                self._add(name, item, index, member)
        names, levels = self._levels()
        positions: dict[str, dict[str, str]] = {}
        for name, item in self._found.items():
            above = list(self._above(name))
            for node in self._own[name]:
                at = positions.setdefault(node, {})
                for one in above:
                    level = levels[self._tier[one]]
                    if at.setdefault(level, one) != one:
                        what = f"node {show(node)} is in hyper nodes {show(at[level])} and {show(one)} of one tier"
                        raise wrong(item, what, "a node is in one of each tier", "spec.members")
        order = list(levels.values())
        sorted_ = {node: {level: at[level] for level in order if level in at} for node, at in positions.items()}
        return Tree(levels, names, sorted_)

    def _add(self, name: str, item: Item[HyperNode], index: int, member: HyperMember) -> None:
        path = f"spec.members[{index}]"
        where = f"{item.where}.{path}"
        selector = member.selector
        if member.type not in ("Node", "HyperNode"):
            raise wrong(item, f"{show(member.type)} is no kind of member", "Node or HyperNode", f"{path}.type")
        if selector is None or not (selector.exact_match or selector.regex_match or selector.label_match):
            raise wrong(item, "the member has no selector", "give exactMatch, regexMatch or labelMatch", path)
        if member.type == "Node":
            self._own[name] += self._chosen(item, path, member, where)
            return
        if selector.exact_match is None:
            raise wrong(item, "a hyper node is a member by its name alone", "give exactMatch", f"{path}.selector")
        inner = selector.exact_match.name
        if inner not in self._found:
            self._ledger.contradiction("a member HyperNode that is not there", "it has no nodes", where)
        elif self._parent.setdefault(inner, name) != name:
            what = f"hyper node {show(inner)} is in {show(self._parent[inner])} and in {show(name)}"
            raise wrong(item, what, "it is in one at most", path)
        elif self._tier[inner] >= self._tier[name]:
            what = f"hyper node {show(inner)} of tier {self._tier[inner]} is in one of tier {self._tier[name]}"
            raise wrong(item, what, "the outer one has the higher tier", path)

    def _chosen(self, item: Item[HyperNode], path: str, member: HyperMember, where: str) -> list[str]:
        selector = member.selector
        assert selector is not None
        if selector.exact_match is not None:
            name = selector.exact_match.name
            if self._nodes and name not in self._nodes:
                self._ledger.contradiction("a member node that is not there", "it is left out", where)
                return []
            return [name]
        if selector.regex_match is not None:
            found = self._matching(item, f"{path}.selector.regexMatch.pattern", selector.regex_match.pattern)
        else:
            label = selector.label_match
            assert label is not None
            found = [name for name, labels in self._nodes.items() if selects(label, labels)]
        if not found:
            self._ledger.ignored("a member that no node is", "its selector fits none", where)
        return found

    def _matching(self, item: Item[HyperNode], path: str, pattern: str) -> list[str]:
        if len(pattern) > LONGEST_PATTERN or _steps(pattern, self._nodes) > MOST_STEPS:
            raise wrong(item, "the pattern may take for ever", "write it without a repetition in a repetition", path)
        try:
            found = re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as why:
            raise wrong(item, f"not a pattern: {why}", "correct it", path) from None
        return [name for name in self._nodes if found.search(name)]

    def _above(self, name: str) -> Iterator[str]:
        """Yield a hyper node and all that it is in; tiers grow, so there is an end."""
        yield name
        while name in self._parent:
            name = self._parent[name]
            yield name

    def _levels(self) -> tuple[dict[str, int], dict[int, str]]:
        names: dict[str, int] = {}
        levels: dict[int, str] = {}
        for tier in sorted(set(self._tier.values()), reverse=True):
            said: dict[str, Item[HyperNode]] = {}
            for name, item in self._found.items():
                text = item.value.spec.tier_name
                if self._tier[name] == tier and text:
                    said.setdefault(text, item)
            for text, item in said.items():
                if names.setdefault(text, tier) != tier:
                    what = f"tier {tier} and tier {names[text]} are both called {show(text)}"
                    raise wrong(item, what, "a name is of one tier", "spec.tierName")
            if len(said) > 1:
                self._ledger.contradiction(
                    "names of one tier", "all of them, for the same tier", said.popitem()[1].where
                )
                said = {}
            level = next(iter(said), f"tier-{tier}")
            taken = level in ("node", "cluster") or level in levels.values()
            levels[tier] = f"tier-{tier}" if taken else level
        return names, levels


def _steps(pattern: str, names: Iterable[str]) -> float:
    """Return how many steps a pattern takes with names at most; infinity where no power of their length bounds it.

    Python tries each way in which a pattern may match. A repetition of what may itself match in several ways has too
    many; others make it once more the length of the name, and choices as many times more as there are.
    """
    repetitions, choices = 0, 1
    several, branches = [False], [1]
    pieces = re.findall(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?|.", pattern, re.DOTALL)
    for piece, after in zip(pieces, [*pieces[1:], ""], strict=True):
        repetitions += piece in ("*", "+", "{")
        choices *= 2 if piece == "?" else 1
        branches[-1] += piece == "|"
        if piece in ("*", "+", "{", "?", "|"):
            several[-1] = True
        elif piece in ("(", "(?"):
            several.append(False)
            branches.append(1)
        elif piece == ")" and len(several) > 1:
            choices *= branches.pop()
            inside = several.pop()
            if inside and after in ("*", "+", "{"):
                return math.inf
            several[-1] = several[-1] or inside
    places: int = sum((len(name) + 1) ** (repetitions + 1) for name in names)
    return choices * branches[0] * places


def _tier_of(item: Item[HyperNode]) -> int:
    tier = item.value.spec.tier
    if isinstance(tier, str) and re.fullmatch(r"-?[0-9]{1,9}", tier, re.ASCII):
        tier = int(tier)
    if not isinstance(tier, int) or abs(tier) > 10**9:
        raise wrong(item, f"the tier is {show(tier)}", "give a number", "spec.tier")
    return tier


def selects(selector: LabelSelector, labels: Labels) -> bool:
    """Return whether labels fulfil all conditions: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/."""
    if any(labels.get(key) != value for key, value in (selector.match_labels or {}).items()):
        return False
    return all(_holds(one, labels) for one in selector.match_expressions or ())


def _holds(one: Requirement, labels: Labels) -> bool:
    match one.operator:
        case "In":
            return labels.get(one.key) in (one.values or ())
        case "NotIn":
            return labels.get(one.key) not in (one.values or ())
        case "Exists":
            return one.key in labels
        case "DoesNotExist":
            return one.key not in labels
    return False
