"""Lists of CPUs as the kernel writes them, such as ``0-31,64-95``."""

from __future__ import annotations

from collections.abc import Iterable


def union(lists: Iterable[str]) -> str:
    """Return the list of all CPUs of some lists, ascending and as short as can be; empty where one of them is unknown.

    Examples
    --------
    >>> union(["0-3,8", "4-7,16-17"]), union(["2,1,0,5"]), union(["0-3", ""])
    ('0-8,16-17', '0-2,5', '')
    """
    lists = list(lists)
    if not all(lists):
        return ""
    runs = sorted(_run(part) for text in lists for part in text.split(","))
    joined: list[tuple[int, int]] = []
    for first, last in runs:
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = joined[-1][0], max(joined[-1][1], last)
        else:
            joined.append((first, last))
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in joined)


def _run(part: str) -> tuple[int, int]:
    first, _, last = part.partition("-")
    return int(first), int(last or first)
