"""Links: what a plan says that the cards of a task score by the paths between them is so.

A pair of cards scores 100 for each NVLink lane, else 50 for PIX, 40 for PXB, 30 for PHB, 20 for NODE and 10 for SYS; a
pair that is not listed scores as SYS. A set scores the sum of its pairs. A plan that says nothing of it is as good, and
of a node that lists NUMA zones alone it says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from placement.check.case.case import Case
from placement.check.violation import Violation, integer, many, show
from placement.snapshot import Link

RULE = "links"

_SCORES = {"PIX": 50, "PXB": 40, "PHB": 30, "NODE": 20, "SYS": 10}


def judge(case: Case) -> Iterator[Violation]:
    """Yield every task of which the plan states a wrong score."""
    stated = case.plan.tasks.links
    if not isinstance(stated, list):
        return
    if len(stated) != len(case.plan.tasks):
        expected = f"expected one for each of {many(len(case.plan.tasks), 'task')}"
        yield Violation(RULE, "tasks.links", f"found {many(len(stated), 'score')}, {expected}")
        return
    rows = case.rows
    nodes = case.facts.snapshot.nodes
    ends = np.searchsorted(rows.row, np.arange(len(rows) + 1)).tolist()
    devices = rows.device.tolist()
    pairs: dict[int, dict[frozenset[int], int]] = {}
    known: dict[tuple[int, tuple[int, ...]], int | None] = {}
    for row, (number, spec) in enumerate(zip(rows.number.tolist(), rows.spec.tolist(), strict=True)):
        # nodes that were read share equal lists, so few of them are different objects
        links = nodes[spec].links
        key = id(links), tuple(devices[ends[row] : ends[row + 1]])
        if key not in known:
            if key[0] not in pairs:
                pairs[key[0]] = _pairs(links)
            known[key] = _score(pairs[key[0]], key[1])
        if stated[number] != known[key]:
            where = f"the cards of {show(case.job_name(row))} on {show(case.node_name(row))} score {_said(known[key])}"
            yield Violation(RULE, f"tasks[{number}]", f"{where}, and the plan says {_said(stated[number])}")


def _pairs(links: tuple[Link, ...]) -> dict[frozenset[int], int]:
    """Return what the pairs of cards score that a node lists."""
    return {
        frozenset((link.a, link.b)): 100 * link.width if link.kind == "NVLINK" else _SCORES[link.kind] for link in links
    }


def _score(pairs: dict[frozenset[int], int], cards: tuple[int, ...]) -> int | None:
    """Return what cards score as a set; None for fewer than two, and where the node lists no paths."""
    if not pairs or len(cards) < 2:
        return None
    return sum(pairs.get(frozenset(pair), _SCORES["SYS"]) for pair in combinations(cards, 2))


def _said(score: int | None) -> str:
    return "nothing" if score is None else integer(score)
