"""Notes: what a plan or a schedule says of the rules that running work breaks is true of its snapshot, word for word.

It need not be said. Of other notes nothing is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from placement.check.case.case import Case
from placement.check.running.overfull import RUNNING, running_notes
from placement.check.violation import Violation, show
from placement.snapshot import Snapshot

RULE = "notes"


def judge(case: Case) -> Iterator[Violation]:
    """Yield every note on running work that is none of those due."""
    yield from untrue(case.facts.snapshot, case.plan.notes)


def untrue(snapshot: Snapshot, notes: Sequence[str]) -> Iterator[Violation]:
    """Yield every note of a plan or schedule on running work that is none of those due."""
    said = [(number, note) for number, note in enumerate(notes) if note.startswith(RUNNING)]
    if not said:
        return
    due = set(running_notes(snapshot))
    for number, note in said:
        if note not in due:
            what = f"{show(note.removeprefix(RUNNING))}: running work of the snapshot breaks no such rule"
            yield Violation(RULE, f"notes[{number}]", what)
