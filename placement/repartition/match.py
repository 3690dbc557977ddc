"""A one-to-one matching of least cost, in whole numbers of any size: the Hungarian method with potentials.

Costs here are several goals in one number, one far above the next, which floating point would blur. The method is that
of Kuhn (1955) and Munkres (1957) in its form of cubic time, by shortest augmenting paths: rows are added one at a time.
"""

from __future__ import annotations

from collections.abc import Sequence


def match(costs: Sequence[Sequence[int]]) -> list[int]:
    """Return for each row its column, each column once, such that the sum of the costs is least.

    Parameters
    ----------
    costs : sequence of sequence of int
        A square table.

    Examples
    --------
    >>> match([[4, 1, 3], [2, 0, 5], [3, 2, 2]])
    [1, 0, 2]
    """
    size = len(costs)
    rows, columns = [0] * (size + 1), [0] * (size + 1)  # potentials; of rows and columns the last is a place to start
    row_of = [-1] * (size + 1)
    for row in range(size):
        row_of[size] = row
        column = size
        least: list[int | None] = [None] * size
        before = [size] * size
        seen = [False] * (size + 1)
        while row_of[column] >= 0:
            seen[column] = True
            here = row_of[column]
            step, following = None, size
            for other in range(size):
                if seen[other]:
                    continue
                cost = costs[here][other] - rows[here] - columns[other]
                known = least[other]
                if known is None or cost < known:
                    least[other], before[other], known = cost, column, cost
                if step is None or known < step:
                    step, following = known, other
            assert step is not None, "a table without as many columns as rows"
            for other in range(size + 1):
                if seen[other]:
                    rows[row_of[other]] += step
                    columns[other] -= step
                elif (known := least[other]) is not None:
                    least[other] = known - step
            column = following
        while column != size:
            row_of[column] = row_of[before[column]]
            column = before[column]
    found = [0] * size
    for column in range(size):
        found[row_of[column]] = column
    return found
