"""Equal parts of a snapshot as one object: half a million tasks of a few hundred kinds need not be kept one by one.

It saves most of the memory, and whatever looks at every job can tell by identity that it has seen the like. Records
are frozen, so nobody can tell the difference, but for the mappings in them: those of a snapshot that was read are not
to be changed in any case, since its checks are not made again.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from placement.snapshot.snapshot import Snapshot

_encode = msgspec.msgpack.Encoder().encode


def share(snapshot: Snapshot) -> None:
    """Make equal task groups of jobs one object, and equal cards of nodes.

    Parameters
    ----------
    snapshot : Snapshot
        One that nobody else has seen yet.
    """
    _share(snapshot.jobs, "groups")
    _share(snapshot.nodes, "gpus")


def _share(records: Iterable[msgspec.Struct], field: str) -> None:
    """Give records that hold equal values in a field the same one; values are equal where they are written alike."""
    first: dict[bytes, object] = {}
    for record in records:
        value = getattr(record, field)
        try:
            key = _encode(value)
        except OverflowError:
            # a number that is too large, of which validation tells
            continue
        one = first.setdefault(key, value)
        if one is not value:
            msgspec.structs.force_setattr(record, field, one)
