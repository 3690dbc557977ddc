"""What is wrong with a job that arrives, beside what may have been there before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from placement.errors import UsageError
from placement.snapshot import Job
from placement.snapshot.report import show, suggestion


def refuse_arriving(
    job: Job,
    copies: Iterable[Job],
    there: tuple[Mapping[str, object], Mapping[str, object], Mapping[str, object]],
    path: str,
) -> None:
    """Raise for a name given before, for a job that comes after one that was never there, and for one that runs.

    Parameters
    ----------
    job : Job
    copies : iterable of Job
        The jobs that it stands for.
    there : tuple of mappings
        Jobs that wait, run and have ended, by name.
    path : str
        Of the event.

    Raises
    ------
    UsageError
    """
    waiting, running, _ = there
    for one in copies:
        if any(one.name in some for some in there):
            what = f"{show(one.name)} has arrived before"
            raise UsageError.one(what, "give each job a name of its own", path=f"{path}.job.name")
    for name in job.after:
        if not any(name in some for some in there):
            remedy = suggestion(name, [*waiting, *running])
            raise UsageError.one(f"there is no job {show(name)}", remedy, path=f"{path}.job.after")
    if job.running is not None:
        remedy = "leave the field out"
        raise UsageError.one("a job that arrives cannot be running", remedy, path=f"{path}.job.running")
