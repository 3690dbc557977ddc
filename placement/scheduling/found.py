"""What a method found."""

from __future__ import annotations

from dataclasses import dataclass

from placement.scheduling.timing import Timetable
from placement.solver import Stop


@dataclass(frozen=True, slots=True)
class Found:
    """What a method found.

    Attributes
    ----------
    method : str
    table : Timetable
    bound : int, optional
        On `Timetable.value` of every timetable that leaves out no more weight.
    stop : Stop
    """

    method: str
    table: Timetable
    bound: int | None
    stop: Stop
