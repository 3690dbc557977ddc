"""The judge of schedules."""

from __future__ import annotations

from placement.check.violation import Violation
from placement.snapshot import Snapshot
from placement.timetable import Schedule


def check_schedule(snapshot: Snapshot, schedule: Schedule) -> list[Violation]:
    """Judge a schedule against the snapshot it was made for."""
    return []
