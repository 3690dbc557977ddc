"""Origin: the plan names the snapshot it was made for by digest, and the fields of it that were left out."""

from __future__ import annotations

from collections.abc import Iterator

from placement.check.violation import Violation, show
from placement.errors import InputError
from placement.plan import Plan
from placement.snapshot import Snapshot
from placement.snapshot.read import digest

RULE = "snapshot"


def judge(snapshot: Snapshot, plan: Plan) -> list[Violation]:
    """Return a violation if the plan was made for another snapshot; `snapshot` is as it was read, nothing left out."""
    due = digest(snapshot)
    if plan.snapshot == due:
        return []
    return [Violation(RULE, "snapshot", f"the plan is for snapshot {show(plan.snapshot)}, this one is {due}")]


def fields(error: InputError) -> Iterator[Violation]:
    """Yield what is wrong with the fields a plan says it left out: those used and not honoured, and unknown ones."""
    for problem in error.problems:
        if not problem.remedy:
            continue  # the list of what is possible, not a problem of its own
        where = "" if problem.path == "without" else f"{problem.path}: "
        what = f"{where}{problem.what}, so the plan must name it" if where else problem.what
        yield Violation(RULE, "provenance.without", what)
