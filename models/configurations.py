r"""Configurations: every node of a class holds one pattern of tasks.

For node class *k* with :math:`K_k` nodes and its patterns *p*, where pattern *p* holds :math:`a_{sp}` tasks of
shape *s*: :math:`x_{kp} \in \{0, \dots, K_k\}` nodes have pattern *p*, and

.. math::
   \sum_p x_{kp} = K_k \quad\forall k, \qquad
   \sum_{\kappa, l:\, s(\kappa l) = s} N_{\kappa l} \le \sum_k \sum_p a_{sp}\, x_{kp} \quad\forall s.

Patterns are enumerated card by card (`placement.models.patterns`), so the model is exact. Only maximal patterns are
needed as long as nothing looks at what a pattern leaves free or where tasks are; otherwise (a goal on
fragmentation, nodes in use or wholly free nodes, or a limit on a domain) all patterns are taken and the second row
is an equality. Limits bind the classes of their domain, for all nodes of a class count in the same limits:

.. math:: \sum_{k \in D_q} \sum_p \Big( \sum_s a_{sp}\, d_{s\,r(q)} \Big) x_{kp} \le L_q \quad\forall q.

Needs `counts`.
"""

from __future__ import annotations

from math import inf
from typing import Any

from pyomo import core as pyo

from placement.instance import Instance
from placement.models.capacity import limit_use
from placement.models.core import Parts, Terms, add_rows, placed_by_shape
from placement.models.patterns import ClassPatterns, enumerate_patterns

NEEDS = ("counts",)

RESIDUAL = frozenset({"fragmentation", "nodes", "whole_nodes"})
"""Objectives that look at what a pattern leaves free."""


def patterns_of(parts: Parts) -> tuple[ClassPatterns, ...]:
    """Return the patterns that a model needs, kept in ``parts.shared`` for the next one."""
    maximal = all_maximal(parts.instance, parts.objectives)
    fragmentation = "fragmentation" in parts.objectives
    key = f"patterns maximal={maximal} fragmentation={fragmentation}"
    if key not in parts.shared:
        parts.shared[key] = enumerate_patterns(parts.instance, maximal=maximal, fragmentation=fragmentation)
    patterns: tuple[ClassPatterns, ...] = parts.shared[key]
    return patterns


def all_maximal(instance: Instance, objectives: frozenset[str]) -> bool:
    """Return whether maximal patterns suffice."""
    return not instance.limits and not objectives & RESIDUAL


def add(m: Any, instance: Instance) -> None:
    """Add the variables and rows; ``m.patterns`` has the patterns."""
    parts: Parts = m.parts
    m.patterns = patterns_of(parts)
    m.x = pyo.Var(
        [(k, p) for k, mine in enumerate(m.patterns) for p in range(len(mine.counts))], domain=pyo.NonNegativeIntegers
    )
    every: dict[int, Terms] = {}
    supply: dict[int, Terms] = {}
    limited: dict[int, Terms] = {q: [] for q in range(len(instance.limits))}
    for (k, p), x in m.x.items():
        x.setub(instance.classes[k].size)
        every.setdefault(k, []).append((1, x))
        counts = m.patterns[k].counts[p]
        for s, count in enumerate(counts):
            if count:
                supply.setdefault(s, []).append((-count, x))
        for q in instance.classes[k].limits:
            resource = instance.limits[q].resource
            use = sum(count * limit_use(instance.shapes[s], resource) for s, count in enumerate(counts) if count)
            limited[q].append((use, x))
    sizes = {k: (node_class.size, every[k], node_class.size) for k, node_class in enumerate(instance.classes)}
    add_rows(m, "one_pattern_a_node", sizes)
    low = -inf if all_maximal(instance, parts.objectives) else 0
    rows = {s: (low, [*placed, *supply.get(s, [])], 0) for s, placed in placed_by_shape(parts).items()}
    add_rows(m, "cover", rows)
    add_rows(m, "limits", {q: (-inf, terms, instance.limits[q].capacity) for q, terms in limited.items()})
