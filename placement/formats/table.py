"""Writer of a plan as a table: CSV with one row for each task that it starts, for a spreadsheet or a script.

Columns: ``job, group, index, name, node, gpus, mig_starts, zones, nics``. `name` is what the task is called in the
system that the job is from, empty where the snapshot does not say it. Lists are joined by single spaces, which no
number has in it; NICs by spaces too.

A spreadsheet takes a cell that begins with ``=``, ``+``, ``-`` or ``@`` for a formula, and one that begins with a tab
or a carriage return for one behind it. Names are whatever a user of the cluster made them, so such a cell gets an
apostrophe in front, which spreadsheets show as text (OWASP, "CSV injection"); a script takes it off again. A name that
begins with an apostrophe gets one too, so that taking off one apostrophe always gives the name. Names of nodes and
pods of Kubernetes never begin so. Rows end in a line feed, and the first one is the heading.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import Any

from placement.formats.tasks import placed
from placement.plan import Plan
from placement.snapshot import Snapshot

COLUMNS = ("job", "group", "index", "name", "node", "gpus", "mig_starts", "zones", "nics")

_RISKY = ("=", "+", "-", "@", "\t", "\r", "'")


def write(snapshot: Snapshot, plan: Plan) -> bytes:
    """Return the tasks that a plan starts as CSV, in the order of the plan.

    Parameters
    ----------
    snapshot : Snapshot
        Verified, and the one that the plan is of.
    plan : Plan
        Checked.
    """
    text = io.StringIO(newline="")
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    for task in placed(snapshot, plan):
        place = task.place
        rows.writerow(
            (
                _cell(task.job_name),
                _cell(task.group),
                task.index,
                _cell(task.name),
                _cell(place.node),
                _joined(place.gpus),
                _joined(place.mig_starts),
                _joined(place.zones),
                _cell(_joined(place.nics)),
            )
        )
    return text.getvalue().encode()


def _joined(parts: Iterable[Any]) -> str:
    return " ".join(map(str, parts))


def _cell(text: str) -> str:
    return f"'{text}" if text.startswith(_RISKY) else text
