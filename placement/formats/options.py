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
    events : bool
        Whether jobs are wanted as arrivals over time, for which a trace says how long they ran.
    nodes : int, optional
        Nodes of the cluster of a trace that lists none; None: as many as its jobs keep busy.
    cards_per_node : int, optional
        Cards of each of these; None: 8.
    unit : float, optional
        Seconds in the unit of a trace's times; None: what the trace is known for, else 1.
    """

    levels: tuple[tuple[str, str], ...] = ()
    time: float | None = None
    arrivals: int | None = None
    load: float | None = None
    events: bool = False
    nodes: int | None = None
    cards_per_node: int | None = None
    unit: float | None = None
