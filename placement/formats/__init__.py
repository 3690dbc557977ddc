"""Outside formats: readers in, writers out; used by the command line and by users, never by what solves.

>>> import placement as pl
>>> from placement import formats
>>> snapshot = pl.load(pl.instances.path("fragmentation-two-nodes"))
>>> formats.dump("csv", snapshot, pl.solve(snapshot, solver="first-fit")).decode().splitlines()[0]
'job,group,index,name,node,gpus,mig_starts,zones,nics'
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from placement.plan import Plan
from placement.snapshot import Snapshot


def load(
    *paths: str | Path,
    format: str = "",  # noqa: A002 - the user's word for it
    levels: Sequence[tuple[str, str]] = (),
    time: float | None = None,
    strict: bool = False,
) -> Snapshot:
    """Read files in outside formats, of one cluster, as a snapshot that carries a ledger of how it was read.

    Parameters
    ----------
    *paths : str or Path
        In any order; ``NODE=FILE`` for what nvidia-smi printed on a node.
    format : str
        Of all files, one of `placement.formats.guess.FORMATS`; empty to tell it from what is in each.
    levels : sequence of (str, str)
        Levels of the topology from wide to narrow, each with the node label that says it.
    time : float, optional
        Moment of the snapshot in seconds; None where the files say it.
    strict : bool
        Whether what limits placement and a snapshot cannot say is an error.

    Raises
    ------
    InputError
        If a file cannot be read, or they are not of one cluster.
    UsageError
        If there is no such format.
    """
    # not at the top: who needs one format's file need not load them all
    from placement.formats.options import Options
    from placement.formats.read import named, read
    from placement.formats.source import files

    found = [file for name, node, path in named([format, *map(str, paths)]) for file in files(path, name, node)]
    return read(found, Options(levels=tuple(levels), time=time), strict)


def dump(format: str, snapshot: Snapshot, plan: Plan | None = None) -> bytes:  # noqa: A002 - the user's word for it
    """Return a plan, or a snapshot itself, as a document in an outside format.

    Parameters
    ----------
    format : str
        One of `placement.formats.write.WRITERS`.
    snapshot : Snapshot
    plan : Plan, optional
        Of the snapshot, and checked; for formats of plans.

    Raises
    ------
    UsageError
        If there is no such format, or a plan is given where none is written, or none where one is.
    InputError
        If the format cannot say what is in it.
    """
    from placement.formats.write import PlanWriter, writer_of
    from placement.snapshot.read import verified

    writer = writer_of(format, plan is not None)
    if isinstance(writer, PlanWriter):
        assert plan is not None
        return writer.write(verified(snapshot), plan)
    return writer.write(verified(snapshot))
