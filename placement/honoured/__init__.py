"""Fields of a snapshot that no rule honours yet are refused, never ignored."""

from __future__ import annotations

from collections.abc import Sequence

from placement.errors import UnhonouredError
from placement.honoured.left_out import refuse_names, without_fields
from placement.honoured.table import IN_TIME as IN_TIME
from placement.honoured.table import ONLY as ONLY
from placement.honoured.table import RULES as RULES
from placement.honoured.table import TIMED as TIMED
from placement.honoured.table import every as every
from placement.honoured.table import removable as removable
from placement.honoured.table import timed as timed
from placement.honoured.uses import problem, uses_in
from placement.snapshot import Snapshot


def unhonoured(snapshot: Snapshot, without: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the fields that a snapshot uses and plans do not honour, beside those left out anyway."""
    return tuple(uses_in(snapshot, frozenset(every(without))))


def timeless(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot without what counts in a schedule alone."""
    return without_fields(snapshot, IN_TIME)


def refuse_unhonoured_in_time(snapshot: Snapshot, without: Sequence[str] = ()) -> Snapshot:
    """Return the snapshot when a schedule honours every field it uses; see `refuse_unhonoured`.

    Raises
    ------
    UnhonouredError
        If a field is used that no rule honours.
    UsageError
        If `without` names a field that is honoured or does not exist.
    """
    refuse_names(without, frozenset(IN_TIME))
    refuse_unhonoured(timeless(snapshot), without)
    return without_fields(snapshot, without)


def refuse_unhonoured(snapshot: Snapshot, without: Sequence[str] = ()) -> Snapshot:
    """Return the snapshot when every field it uses is honoured; refuse it otherwise.

    Parameters
    ----------
    snapshot : Snapshot
        A verified one.
    without : sequence of str
        Fields to solve as if they were absent, such as ``"queues"``; only such as are not honoured. ``"schedule"``
        stands for all that count in a schedule alone.

    Returns
    -------
    Snapshot
        With the fields `without` names at their defaults.

    Raises
    ------
    UnhonouredError
        If a field is used that no rule honours; each such field is named once.
    UsageError
        If `without` names a field that is honoured or does not exist.
    """
    without = every(without)
    refuse_names(without)
    uses = uses_in(snapshot, frozenset(without))
    if uses:
        raise UnhonouredError([problem(path, use) for path, use in uses.items()])
    if not without:
        return snapshot
    return without_fields(snapshot, without)
