"""Snapshots that come with the package: tiny ones solved by hand (see README.md), and real ones."""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).parent
_NOT_SNAPSHOTS = {"best_known"}


def names() -> list[str]:
    """Return the names of the instances, sorted.

    Examples
    --------
    >>> "fragmentation-two-nodes" in names()
    True
    """
    return sorted(file.stem for file in _FOLDER.glob("*.json") if file.stem not in _NOT_SNAPSHOTS)


def path(name: str) -> Path:
    """Return the file of an instance.

    Raises
    ------
    KeyError
        If there is no instance of that name.
    """
    if name not in names():
        raise KeyError(name)
    return _FOLDER / f"{name}.json"


def best_known() -> Path:
    """Return the file with the best known value and bound of every instance."""
    return _FOLDER / "best_known.json"
