"""What the user says about an import beside the files."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    """Options of an import.

    Attributes
    ----------
    levels : tuple of (str, str)
        Levels of the topology from wide to narrow, each with the node label that says the domain; empty where the
        files or the known conventions say them.
    time : float, optional
        Moment of the snapshot in seconds; None where the files say it.
    arrivals : int, optional
        Seed with which arrivals are drawn from a trace; None to take it as it is.
    load : float, optional
        With `arrivals`: cards asked for, as a multiple of those there are.
    """

    levels: tuple[tuple[str, str], ...] = ()
    time: float | None = None
    arrivals: int | None = None
    load: float | None = None
