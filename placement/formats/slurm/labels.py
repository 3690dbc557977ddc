"""Where jobs may run, as labels of nodes: partitions, features, named nodes and reservations."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from placement.formats.slurm.hostlist import compress
from placement.formats.slurm.nodes import FEATURE, PARTITION, RESERVED, Host
from placement.snapshot.report import show

NODES = "slurm/nodes/"
WITHOUT = "slurm/without/"
FEATURES = "slurm/features/"

Judge = Callable[[frozenset[str]], bool]
"""Says whether the features of a node are right."""

_TOKEN = re.compile(r"\s*([&,|()]|[^&,|()\[\]*!\s]+)")


class Labels:
    """Labels that nodes get so that jobs can select them.

    A set of nodes that no single partition, feature or reservation is, gets a label of its own.

    Parameters
    ----------
    hosts : mapping of str to Host
    members : mapping of str to frozenset of str
        Nodes of each partition.
    """

    def __init__(self, hosts: Mapping[str, Host], members: Mapping[str, frozenset[str]]) -> None:
        self.hosts = hosts
        self.by_node: dict[str, dict[str, str]] = {name: {} for name in hosts}
        self._nodes: dict[str, frozenset[str]] = {}
        self._members = members

    @property
    def any_partition(self) -> bool:
        """Whether the files say of any node which partitions it is in."""
        return bool(self._members)

    def has_partition(self, name: str) -> bool:
        """Return whether a partition has nodes."""
        return bool(self._members.get(name))

    def partitions(self, names: tuple[str, ...]) -> str:
        """Return a label of all nodes in any of some partitions."""
        label = f"{PARTITION}{','.join(names)}"
        return self._mark(
            label, self._those(lambda host: any(host.name in self._members.get(name, ()) for name in names))
        )

    def feature(self, name: str) -> str:
        """Return the label of the nodes that have a feature."""
        return self._mark(f"{FEATURE}{name}", self._those(lambda host: name in host.features))

    def features(self, text: str) -> str:
        """Return a label of the nodes that have what an expression of features, ``&``, ``|`` and parentheses says.

        Raises
        ------
        ValueError
            If it is another expression: one that counts, or sets nodes in relation to one another.
        """
        judge = expression(text)
        return self._mark(f"{FEATURES}{text}", self._those(lambda host: judge(frozenset(host.features))))

    def only(self, names: Iterable[str]) -> str:
        """Return a label of some nodes."""
        wanted = tuple(names)
        return self._mark(f"{NODES}{compress(wanted)}", lambda: (name for name in wanted if name in self.hosts))

    def without(self, names: Iterable[str]) -> str:
        """Return a label of all nodes but some."""
        unwanted = frozenset(names)
        return self._mark(f"{WITHOUT}{compress(sorted(unwanted))}", self._those(lambda host: host.name not in unwanted))

    def reservation(self, names: tuple[str, ...], nodes: frozenset[str]) -> str:
        """Return a label of the nodes in any of some reservations: those listed, and those that say so themselves."""
        label = f"{RESERVED}/{','.join(names)}"
        return self._mark(label, self._those(lambda host: host.name in nodes or host.reservation in names))

    def nodes(self, labels: Iterable[str]) -> Iterable[Host]:
        """Return the nodes that carry all of some labels; which nodes a job may not have is left out of account."""
        sets = sorted((self._nodes[label] for label in labels if not label.startswith(WITHOUT)), key=len)
        if not sets:
            return self.hosts.values()
        return [self.hosts[name] for name in sets[0].intersection(*sets[1:])]

    def _those(self, wanted: Callable[[Host], bool]) -> Callable[[], Iterable[str]]:
        return lambda: (name for name, host in self.hosts.items() if wanted(host))

    def _mark(self, label: str, nodes: Callable[[], Iterable[str]]) -> str:
        if label not in self._nodes:
            self._nodes[label] = frozenset(nodes())
            for name in self._nodes[label]:
                self.by_node[name][label] = "yes"
        return label


def simple(text: str) -> tuple[str, ...] | None:
    """Return the features of an expression that asks for all of them; None for another one."""
    words = tuple(word.strip() for word in re.split("[&,]", text))
    return words if all(word and not re.search(r"[\s|()\[\]*!]", word) for word in words) else None


def expression(text: str) -> Judge:
    """Return what says whether features fulfil an expression.

    ``&`` (or a comma) and ``|`` bind alike and from left to right, as in Slurm; parentheses hold together.

    Raises
    ------
    ValueError
        If it is no such expression.

    Examples
    --------
    >>> judge = expression("a|b&c")
    >>> judge(frozenset("a")), judge(frozenset("ac"))
    (False, True)
    """
    tokens: list[str] = []
    at = 0
    while at < len(text.rstrip()):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"{show(text[at : at + 20])} is not understood")
        tokens.append(match[1])
        at = match.end()
    judge, rest = _chain(tokens, 0)
    if rest < len(tokens):
        raise ValueError("a parenthesis without its other half")
    return judge


def _chain(tokens: list[str], at: int, depth: int = 0) -> tuple[Judge, int]:
    judge, at = _term(tokens, at, depth)
    while at < len(tokens) and tokens[at] != ")":
        mark = tokens[at]
        if mark not in "&,|":
            raise ValueError(f"{show(mark)} where & or | is expected")
        other, at = _term(tokens, at + 1, depth)
        judge = _both(judge, other) if mark in "&," else _either(judge, other)
    return judge, at


def _term(tokens: list[str], at: int, depth: int) -> tuple[Judge, int]:
    if at >= len(tokens) or tokens[at] in "&,|)" or depth > 20:
        raise ValueError("a feature is missing")
    if tokens[at] == "(":
        judge, at = _chain(tokens, at + 1, depth + 1)
        if at >= len(tokens):
            raise ValueError("a parenthesis without its other half")
        return judge, at + 1
    name = tokens[at]
    return (lambda features: name in features), at + 1


def _both(one: Judge, other: Judge) -> Judge:
    return lambda features: one(features) and other(features)


def _either(one: Judge, other: Judge) -> Judge:
    return lambda features: one(features) or other(features)
