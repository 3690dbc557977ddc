"""Topology assignments of Kueue: how many pods go to which domain, long (v1beta1) and short (v1beta2).

The short form lists values by level, and pods; what all have in common is said once
(https://kueue.sigs.k8s.io/docs/reference/kueue.v1beta2/, TopologyAssignment):

.. code-block:: text

    levels: [kubernetes.io/hostname]
    slices:
    - domainCount: 3
      valuesPerLevel: [{individual: {prefix: node-, roots: ["1", "2", "3"]}}]
      podCounts: {universal: 4}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MOST_DOMAINS = 100_000
"""Domains in a slice of the short form."""

MOST_SHARED = 63
"""Characters of a common prefix or suffix."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """Pods by domain.

    Attributes
    ----------
    levels : tuple of str
        Node labels, from wide to narrow.
    domains : tuple of (tuple of str, int)
        Values at these levels, and pods; ascending.
    """

    levels: tuple[str, ...]
    domains: tuple[tuple[tuple[str, ...], int], ...]


# --- the long form -------------------------------------------------------------------------------------------------


def long(assignment: Assignment) -> dict[str, Any]:
    """Return the form of v1beta1."""
    return {
        "levels": list(assignment.levels),
        "domains": [{"values": list(values), "count": count} for values, count in assignment.domains],
    }


# --- the short form ------------------------------------------------------------------------------------------------


def short(assignment: Assignment) -> dict[str, Any]:
    """Return the form of v1beta2."""
    domains = assignment.domains
    parts = [domains[start : start + MOST_DOMAINS] for start in range(0, len(domains), MOST_DOMAINS)]
    return {"levels": list(assignment.levels), "slices": [_slice(part, len(assignment.levels)) for part in parts]}


def _slice(domains: Sequence[tuple[tuple[str, ...], int]], levels: int) -> dict[str, Any]:
    counts = [count for _, count in domains]
    same = len(set(counts)) == 1
    return {
        "domainCount": len(domains),
        "valuesPerLevel": [_values([values[level] for values, _ in domains]) for level in range(levels)],
        "podCounts": {"universal": counts[0]} if same else {"individual": counts},
    }


def _values(values: Sequence[str]) -> dict[str, Any]:
    if len(set(values)) == 1:
        return {"universal": values[0]}
    prefix = _common(values)
    rests = [value[len(prefix) :] for value in values]
    # prefix and suffix do not overlap: what is before was cut off
    suffix = _common([rest[::-1] for rest in rests])[::-1]
    found: dict[str, Any] = {"prefix": prefix} if prefix else {}
    if suffix:
        found["suffix"] = suffix
    return {"individual": {**found, "roots": [rest[: len(rest) - len(suffix)] for rest in rests]}}


def _common(texts: Sequence[str]) -> str:
    """Return what all texts begin with; it is what the first and the last of them in order begin with."""
    first, last = min(texts), max(texts)
    length = next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    return first[: min(length, MOST_SHARED)]


# --- back ----------------------------------------------------------------------------------------------------------


def expanded(form: Mapping[str, Any]) -> Assignment:
    """Return the assignment that either form says.

    Raises
    ------
    ValueError
        If a slice lists more or fewer values or pods than domains.
    """
    levels = tuple(form["levels"])
    if "domains" in form:
        found = [(tuple(domain["values"]), domain["count"]) for domain in form["domains"]]
        return Assignment(levels, tuple(found))
    return Assignment(levels, tuple(domain for part in form["slices"] for domain in _domains(part)))


def _domains(part: Mapping[str, Any]) -> list[tuple[tuple[str, ...], int]]:
    number = part["domainCount"]
    columns = [_column(values, number) for values in part["valuesPerLevel"]]
    pods = part["podCounts"]
    counts = [pods["universal"]] * number if "universal" in pods else pods["individual"]
    return list(zip(zip(*columns, strict=True), counts, strict=True))


def _column(values: Mapping[str, Any], number: int) -> list[str]:
    if "universal" in values:
        return [values["universal"]] * number
    own = values["individual"]
    found = [own.get("prefix", "") + root + own.get("suffix", "") for root in own["roots"]]
    if len(found) != number:
        raise ValueError(f"{len(found)} values for {number} domains")
    return found
