"""What counts in a schedule and not in what a session decides."""

from __future__ import annotations

from collections.abc import Container

from placement.errors import UsageError
from placement.snapshot import Snapshot

AHEAD = ("reservations", "queues", "jobs.hard_deadline", "policy.max_wait_seconds")
"""Fields of schedules that a session can leave out of account: nothing in it looks ahead, and it keeps no line.

It honours queues unless they are left out.
"""


def refuse_ahead(snapshot: Snapshot, without: Container[str]) -> None:
    """Raise for what would count in a schedule and has no effect in a session, but for what is left out.

    Raises
    ------
    UsageError
    """
    used = {
        "reservations": bool(snapshot.reservations),
        "jobs.hard_deadline": any(job.hard_deadline and job.deadline is not None for job in snapshot.jobs),
        "policy.max_wait_seconds": snapshot.policy.max_wait_seconds is not None,
    }
    for name, is_used in used.items():
        if is_used and name not in without:
            raise UsageError.one(
                f"a session does not honour {name}", f"leave it out of account with without=({name!r},)", path=name
            )
