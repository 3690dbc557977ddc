"""Best effort of go-gpuallocator: which cards of the first node with room a task gets.

The machines and the answers are those of `test_links_peers`, which names where they come from.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rule_cases import asks, cards, judge, runs, some_snapshots, spots
from test_links_peers import CASES, CELLS, Case, links_of, near_of

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

import cases as benchmark

import placement as pl
from placement.heuristics.go_gpuallocator import best_effort
from placement.instance import Ints
from placement.snapshot import Gpu, Job, Link, Node, Snapshot

RULE = "go-gpuallocator"


def chosen(node: Node, *jobs: Job, rule: str = RULE) -> list[list[int]]:
    """Return the cards of each job that is placed, in order."""
    places = spots(rule, Snapshot(nodes=(node,), jobs=jobs))
    return [found for job in jobs for _, found in places.get(job.name, [])]


def nvlinks(*pairs: tuple[int, int, int]) -> tuple[Link, ...]:
    return tuple(Link(a=a, b=b, kind="NVLINK", width=lanes) for a, b, lanes in pairs)


def test_the_best_division_and_not_the_best_set() -> None:
    # Pairs score 100 a lane: {1, 2} 300, {0, 1} and {2, 3} 200, the others 10 (SYS). The best set is {1, 2}, but then
    # {0, 3} is left: 310. {0, 1} and {2, 3} make 400, and of these the first is taken.
    node = cards("n", 4, links=nvlinks((0, 1, 2), (2, 3, 2), (1, 2, 3)))
    assert chosen(node, asks("p", 2), asks("q", 2)) == [[0, 1], [2, 3]]


def test_of_the_best_division_the_best_set() -> None:
    # {0, 2} and {1, 3} make 100 + 200; every other division has less. {1, 3} is the better one.
    node = cards("n", 4, links=nvlinks((0, 2, 1), (1, 3, 2)))
    assert chosen(node, asks("p", 2), asks("q", 2)) == [[1, 3], [0, 2]]
    assert chosen(node, asks("p", 2), asks("q", 2), rule="first-fit") == [[0, 1], [2, 3]]
    assert chosen(node, asks("p", 2), asks("q", 2), rule="hived-buddy") == [[0, 1], [2, 3]]


def test_what_is_left_over_counts_and_is_not_taken() -> None:
    # 3 cards for a pair: {0, 1} 100 leaves {2}; {1, 2} 200 leaves {0}. With 5 cards and 3 asked for, two are left over
    # as a set of their own: {0, 1} 900 and {2, 3, 4} 3 * 20 make 960. {0, 1, 2} 920 and {3, 4} 20 make 940 alone.
    assert chosen(cards("n", 3, links=nvlinks((0, 1, 1), (1, 2, 2))), asks("p", 2)) == [[1, 2]]
    near = tuple(Link(a=a, b=b, kind="NODE") for a, b in ((2, 3), (3, 4), (2, 4)))
    assert chosen(cards("n", 5, links=(*nvlinks((0, 1, 9)), *near)), asks("p", 3)) == [[2, 3, 4]]


def test_single_cards_are_taken_in_order_even_if_that_breaks_pairs() -> None:
    node = cards("n", 4, links=links_of("RTX 8000"))
    assert chosen(node, *(asks(name, 1) for name in "abcd")) == [[0], [1], [2], [3]]


def test_the_node_is_the_first_with_room() -> None:
    # the second node has the better pair, and nobody looks at it
    nodes = (cards("a", 2), cards("b", 2, links=nvlinks((0, 1, 4))))
    assert spots(RULE, Snapshot(nodes=nodes, jobs=(asks("p", 2),))) == {"p": [("a", [0, 1])]}


def test_only_cards_that_the_task_may_use_are_divided() -> None:
    gpus = (Gpu(model="A", count=2), Gpu(model="A", count=1, health="unhealthy"), Gpu(model="A", count=2))
    node = Node(name="n", gpus=gpus, links=nvlinks((1, 2, 9), (0, 4, 1), (1, 3, 1)))
    assert chosen(node, asks("p", 2)) == [[0, 4]]


def test_shares_get_the_card_with_least_room() -> None:
    node = cards("n", 2, links=nvlinks((0, 1, 1)))
    assert chosen(node, runs("x", "n", (1,), share=0.5), asks("p", 1, share=0.5)) == [[1]]


def test_a_plan_chooses_among_alike_cards_once_more() -> None:
    # One after the other 0, then the pair of the rest, {1, 2}, 200; as a plan single cards go where they break least.
    node = cards("n", 4, links=links_of("RTX 8000"))
    snapshot = Snapshot(nodes=(node,), jobs=(asks("p", 1), asks("q", 1)))
    assert chosen(node, *snapshot.jobs) == [[0], [1]]
    assert sorted(card for one in pl.solve(snapshot, solver=RULE).tasks.gpus for card in one) in ([0, 3], [1, 2])


# --- the source's tests, and its way to enumerate --------------------------------------------------------------


@pytest.mark.parametrize(
    "case", [one for one in CASES if not one.by_table and not one.required], ids=lambda one: one.name
)
def test_what_the_source_expects_of_both_paths(case: Case) -> None:
    near, free = near_of(case.machine, bus_too=True), list(case.free)
    for expected in case.expected:
        found = best_effort(near[np.ix_(free, free)], case.size)
        assert tuple(free[card] for card in found) == expected
        free = [card for card in free if card not in expected]


def test_what_the_source_expects_where_one_path_says_all() -> None:
    for name in ("pairs", "all-four", "halves"):
        (case,) = (one for one in CASES if one.name == name)
        node = cards("n", len(CELLS[case.machine]), links=links_of(case.machine))
        jobs = [asks(f"j{number}", case.size) for number in range(len(case.expected))]
        assert chosen(node, *jobs) == [list(one) for one in case.expected]


def test_cases_are_answered_by_the_rule(tmp_path: Path) -> None:
    source = {"repo": "NVIDIA/go-gpuallocator", "path": "p", "commit": "c", "licence": "Apache-2.0"}
    case = {"case_id": "a", "source": source, "node": "RTX 8000", "policy": "best-effort"}
    asked = [{"size": 2, "expected": [3, 0]}, {"size": 2, "expected": [1, 2]}, {"size": 1, "expected": "refused"}]
    lines = ({**case, "requests": asked}, {**case, "policy": "first free", "size": 1, "expected": [0]})
    (tmp_path / "node_topologies.json").write_text(json.dumps({"RTX 8000": {"links": CELLS["RTX 8000"]}}))
    (tmp_path / "alloc_cases.jsonl").write_text("\n".join(map(json.dumps, lines)))
    rows = [benchmark.row_of("go_gpuallocator", one) for one in benchmark.cases_of("go_gpuallocator", tmp_path)]
    assert [row["outcome"] for row in rows] == [benchmark.AGREES, benchmark.INEXPRESSIBLE]
    asked[0]["expected"] = [0, 1]
    wrong = {**case, "requests": asked, "links": CELLS["RTX 8000"]}
    assert benchmark.row_of("go_gpuallocator", wrong)["outcome"] in benchmark.WRONG


@st.composite
def tables(draw: st.DrawFn) -> Ints:
    count = draw(st.integers(2, 7))
    near = np.zeros((count, count), dtype=np.int64)
    for a, b in combinations(range(count), 2):
        near[a, b] = near[b, a] = draw(st.sampled_from((10, 20, 50, 100, 200)))
    return near


@settings(max_examples=200, deadline=None)
@given(tables(), st.integers(1, 7))
def test_it_is_the_first_of_all_divisions_listed_one_by_one(near: Ints, size: int) -> None:
    if not 1 < size <= len(near):
        return
    best = max(
        listed([*range(len(near)), *[BLANK] * (-len(near) % size)], size), key=lambda sets: sum(worth(near, sets))
    )
    whole = [one for one in best if BLANK not in one]
    assert best_effort(near, size) == max(whole, key=lambda one: worth(near, [one])[0])


BLANK = -1
"""Fills up the set of what is left over."""


def listed(left: list[int], size: int) -> Iterator[list[tuple[int, ...]]]:
    """Yield every division of some cards, and of as many blanks as there are to come out even, in order."""
    if len(left) == size:
        yield [tuple(left)]
        return
    for others in combinations(range(1, len(left)), size - 1):
        one = (left[0], *(left[place] for place in others))
        if one.count(BLANK) in (0, left.count(BLANK)):
            rest = [card for place, card in enumerate(left) if place and place not in others]
            yield from ([one, *more] for more in listed(rest, size))


def worth(near: Ints, sets: list[tuple[int, ...]]) -> list[int]:
    """Return the score of each set."""
    return [sum(int(near[a, b]) for a, b in combinations([card for card in one if card >= 0], 2)) for one in sets]


def test_many_cards_with_different_paths_are_taken_in_order() -> None:
    near = np.arange(17 * 17).reshape(17, 17)
    assert best_effort(near + near.T, 3) == (0, 1, 2)


@settings(max_examples=60, deadline=None)
@given(some_snapshots())
def test_its_plans_pass_the_check(snapshot: Snapshot) -> None:
    judge(RULE, snapshot)
