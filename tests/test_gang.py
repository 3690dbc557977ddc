"""`gang.runs` on hand-made trees, and against a definition written another way."""

from itertools import product

import pytest

from placement.gang import Branch, Leaf, is_flat, leaves, runs


def leaf(index: int, count: int, minimum: int, copies: int = 1) -> Leaf:
    return Leaf(f"g{index}", index, 0, count, minimum, copies, 1)


FLAT = Branch("", (leaf(0, 2, 1), leaf(1, 3, 3)), 1, 1, 2)


@pytest.mark.parametrize(
    ("placed", "answer"),
    [
        ([[1], [3]], True),
        ([[2], [3]], True),
        ([[0], [3]], False),  # the first group needs one task
        ([[2], [2]], False),  # the second needs all three
        ([[0], [0]], False),  # nothing runs
        ([[3], [3]], False),  # more than wanted
    ],
)
def test_flat(placed: list[list[int]], answer: bool) -> None:
    assert is_flat(FLAT)
    assert runs(FLAT, placed) is answer


# three replicas of a leader and two workers (one worker is enough), two replicas needed
REPLICAS = Branch("", (Branch("r", (leaf(0, 1, 1, 3), leaf(1, 2, 1, 3)), 3, 2, 2),), 1, 1, 1)


@pytest.mark.parametrize(
    ("leaders", "workers", "answer"),
    [
        ([1, 1, 1], [2, 1, 1], True),
        ([1, 0, 1], [1, 0, 2], True),  # the middle replica is left out
        ([1, 0, 0], [1, 0, 0], False),  # one replica, two needed
        ([1, 1, 1], [1, 1, 0], False),  # the third has a leader without workers
        ([1, 1, 0], [1, 1, 1], False),  # and here workers without a leader
        ([1, 1, 0], [2, 2, 0], True),
    ],
)
def test_nested(leaders: list[int], workers: list[int], answer: bool) -> None:
    assert not is_flat(REPLICAS)
    assert [x.leaf for x in leaves(REPLICAS)] == [0, 1]
    assert runs(REPLICAS, [leaders, workers]) is answer


ANY_TWO = Branch("", (Branch("any", (leaf(0, 1, 1), leaf(1, 2, 2), leaf(2, 1, 1)), 1, 1, 2),), 1, 1, 1)


def test_min_groups_against_the_definition() -> None:
    for a, b, c in product(range(2), range(3), range(2)):
        whole = [a == 1, b == 2, c == 1]
        answer = sum(whole) >= 2 and b in (0, 2)  # a group that does not reach its minimum has no task
        assert runs(ANY_TWO, [[a], [b], [c]]) is answer, (a, b, c)
