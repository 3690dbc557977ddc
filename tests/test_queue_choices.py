"""Rows of quotas say of every usage that pending jobs can come to what the recursive rule says of it."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st
from quota_cases import leaves
from share_cases import cards, gang

from placement.check.queues.quota import exceeded
from placement.entitlement.rows import queue_rows
from placement.snapshot import Job, Queue, Running, RunningTask, Snapshot

MOST = 64
"""Cards of the one node, more than are ever asked for."""


@st.composite
def lending(draw: st.DrawFn) -> Snapshot:
    """A tree of up to seven queues, most of which keep something; up to four cards in use and four wanted in each."""
    queues = [Queue(name="top", quota=draw(st.sampled_from([{}, {}, {"A": 1}])))]
    for number in range(draw(st.integers(1, 6))):
        quota = draw(st.integers(0, 3))
        lent, borrowed = draw(st.integers(-1, quota)), draw(st.integers(-5, 3))
        queues.append(
            Queue(
                name=f"q{number}",
                parent=draw(st.sampled_from(queues)).name,
                quota={"A": quota},
                lending_limit={} if lent < 0 else {"A": lent},
                borrowing_limit={} if borrowed < 0 else {"A": borrowed},
            )
        )
    jobs: list[Job] = []
    first = 0
    for name in leaves(tuple(queues)):
        used, wanted = draw(st.integers(0, 4)), draw(st.integers(0, 4))
        if used:
            place = RunningTask(group="g", index=0, node="x", gpus=tuple(range(first, first + used)))
            jobs.append(gang(f"run-{name}", name, 1, used, running=Running(tasks=(place,))))
            first += used
        if wanted:
            jobs.append(gang(f"wait-{name}", name, wanted))
    return Snapshot(nodes=(cards("x", "A", MOST),), jobs=tuple(jobs), queues=tuple(queues))


@settings(max_examples=200)
@given(lending())
def test_rows_admit_what_the_rule_admits(snapshot: Snapshot) -> None:
    rows = queue_rows(snapshot)
    names = leaves(snapshot.queues)
    used, wanted = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    for job in snapshot.jobs:
        if job.running is None:
            wanted[job.queue] = job.groups[0].count
        else:
            used[job.queue] = len(job.running.tasks[0].gpus)
    old = {name: {"A": Fraction(amount)} for name, amount in used.items()}
    for counts in product(*(range(wanted[name] + 1) for name in names)):
        new = dict(zip(names, counts, strict=True))
        now = {name: {"A": Fraction(used[name] + new[name])} for name in names}
        within = all(sum(new[name] for name in row.queues) <= row.room for row in rows)
        assert within != any(True for _ in exceeded(snapshot.queues, old, now))
