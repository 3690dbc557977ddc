"""Suggestions for misspelt names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a remedy that names the nearest known name, or lists them all.

    Examples
    --------
    >>> nearest("best_fit", ["best-fit", "fgd"])
    "did you mean 'best-fit'?"
    """
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"choose among {', '.join(names)}" if names else "there is none to choose"
