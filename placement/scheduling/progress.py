"""What a search tells while it runs."""

from __future__ import annotations

from collections.abc import Callable

Report = Callable[[float | None, float | None, str], None]
"""Told of the value and the bound, in seconds times weight, None where there is none, and of what is being done."""


def silent(value: float | None, bound: float | None, phase: str) -> None:
    """Ignore progress."""
