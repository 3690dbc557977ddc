"""Which cards to change if only so many instances may be destroyed: those that bring most, exactly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction


def within(budget: int, weights: Sequence[int], gains: Sequence[Fraction]) -> set[int]:
    """Return which things to take, so that their weights add up to a budget at most and their gains to the most.

    Of equal gains, those with most things; of these, one that weighs least.

    It is a knapsack whose weights are few small numbers: instances on one card. Of things that weigh the same, the
    best ones are taken first, so the gain of the first k of a weight is concave in k. Weights are added one after
    another, each by a search for the best split that uses this: exact, and in time that grows with the budget times
    its logarithm for each weight.

    Parameters
    ----------
    budget : int
    weights : sequence of int
        0 or more.
    gains : sequence of Fraction
        0 or more.

    Examples
    --------
    >>> sorted(within(7, [7, 3, 3, 1], [Fraction(1), Fraction(1, 2), Fraction(4, 7), Fraction(1, 7)]))
    [1, 2, 3]
    """
    # gains as whole numbers, each with one more at the end for the thing itself
    whole = math.lcm(*(gain.denominator for gain in gains)) * (len(gains) + 1)
    worth = [int(gain * whole) + 1 for gain in gains]
    by_weight: dict[int, list[int]] = {}
    for number in sorted(range(len(weights)), key=lambda k: (-worth[k], k)):
        by_weight.setdefault(weights[number], []).append(number)
    taken = {*by_weight.pop(0, ())}
    budget = min(budget, sum(weights))
    best = [0] * (budget + 1)
    counts: list[tuple[list[int], int, list[int]]] = []
    for weight, numbers in sorted(by_weight.items()):
        sums = [0]
        for number in numbers[: budget // weight]:
            sums.append(sums[-1] + worth[number])
        best, chosen = _with(best, weight, sums)
        counts.append((numbers, weight, chosen))
    # the first room in which the most is reached
    room = best.index(max(best))
    for numbers, weight, chosen in reversed(counts):
        taken.update(numbers[: chosen[room]])
        room -= weight * chosen[room]
    return taken


def _with(best: list[int], weight: int, sums: list[int]) -> tuple[list[int], list[int]]:
    """Return the best gains by room when things of one more weight can be taken, and how many of them are.

    Parameters
    ----------
    best : list of int
        Gain by room, without them.
    weight : int
        1 or more.
    sums : list of int
        Gain of the first k of them; concave.
    """
    gain, chosen = list(best), [0] * len(best)
    for remainder in range(min(weight, len(best))):
        places = range(remainder, len(best), weight)
        # (first and last room asked about, first and last room that can be left for the others), all in steps of weight
        spans = [(0, len(places) - 1, 0, len(places) - 1)]
        while spans:
            low, high, least, most = spans.pop()
            if low > high:
                continue
            middle = (low + high) // 2
            rests = range(max(least, middle - len(sums) + 1), min(most, middle) + 1)
            together = [best[places[rest]] + sums[middle - rest] for rest in rests]
            left = rests[together.index(max(together))]
            chosen[places[middle]] = middle - left
            gain[places[middle]] = best[places[left]] + sums[middle - left]
            spans += [(low, middle - 1, least, left), (middle + 1, high, left, most)]
    return gain, chosen
