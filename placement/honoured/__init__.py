"""Fields of a snapshot that no rule honours yet are refused, never ignored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from placement.errors import Problem, UnhonouredError, UsageError
from placement.honoured.left_out import refuse_names, without_fields
from placement.honoured.table import IN_TIME as IN_TIME
from placement.honoured.table import ONLY as ONLY
from placement.honoured.table import RULES as RULES
from placement.honoured.table import SHARED as SHARED
from placement.honoured.table import TIMED as TIMED
from placement.honoured.table import every as every
from placement.honoured.table import removable as removable
from placement.honoured.table import timed as timed
from placement.honoured.uses import problem, uses_in
from placement.quota import ALL
from placement.snapshot import Snapshot
from placement.snapshot.report import show


def unhonoured(snapshot: Snapshot, without: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the fields that a snapshot uses and plans do not honour, beside those left out anyway."""
    return tuple(uses_in(snapshot, frozenset(every(without))))


def timeless(snapshot: Snapshot, kept: Sequence[str] = ()) -> Snapshot:
    """Return a snapshot without what counts in a schedule alone, but for fields that are kept, such as `SHARED`."""
    return without_fields(snapshot, [path for path in IN_TIME if path not in kept])


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


def refuse_unhonoured_in_plan(snapshot: Snapshot, without: Sequence[str] = ()) -> Snapshot:
    """Return the snapshot when a plan honours every field it uses; see `refuse_unhonoured`.

    Queues count in a plan too, and ``"schedule"`` leaves them out with the rest; but not where the policy has shares,
    which must be left out before their queues can be.

    Raises
    ------
    UnhonouredError
        If a field is used that no rule honours, or there are shares and no queues, or a node with several card models
        where queues count cards by model.
    UsageError
        If `without` names a field that is honoured or does not exist.
    """
    names = every(without)
    refuse_names(names)
    shares = snapshot.policy.shares != "quota" and "policy.shares" not in names
    if shares:
        left = [path for path in SHARED if path in without]
        if left:
            what = f"{left[0]} counts in the shares of queues, so leaving it out would change the problem"
            raise UsageError([Problem("without", what, "leave out policy.shares as well")])
        names = tuple(path for path in names if path not in SHARED)
    uses = uses_in(snapshot, frozenset((*names, *SHARED, "policy.shares")))
    problems = [problem(path, use) for path, use in uses.items()]
    if shares and not snapshot.queues:
        what = f"found {show(snapshot.policy.shares)}, but there are no queues that have a share"
        problems.append(Problem("policy.shares", what, "list the queues, or leave it out"))
    if shares or ("queues" not in names and _by_model(snapshot)):
        problems += _mixed(snapshot, shares)
    if problems:
        raise UnhonouredError(problems)
    return without_fields(snapshot, names)


def _by_model(snapshot: Snapshot) -> bool:
    """Return whether a queue states a quota or a limit of a card model, and not of all together alone."""
    stated = {model for one in snapshot.queues for model in (*one.quota, *one.borrowing_limit, *one.lending_limit)}
    return not stated <= {ALL}


def _mixed(snapshot: Snapshot, shares: bool) -> Iterator[Problem]:
    """Yield the first node with cards of several models, with what to do about it."""
    for index, node in enumerate(snapshot.nodes):
        if len({gpu.model for gpu in node.gpus}) > 1:
            what = f"{'shares' if shares else 'quotas by model'} of queues are not honoured yet"
            remedy = (
                "do without shares by --without policy.shares" if shares else "do without queues by --without queues"
            )
            yield Problem(f"nodes[{index}].gpus", f"{what} where a node has cards of several models", remedy)
            return
