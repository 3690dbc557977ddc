"""Plans made anew in a run: better than every list where all is known, and no worse where more comes."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

import placement as pl
from placement.scheduling.compile import compile_work
from placement.scheduling.counts import counted
from placement.scheduling.desk import Desk
from placement.scheduling.passes import parallel, present
from placement.scheduling.replan import Present, Replanner, base
from placement.scheduling.rolling import Rolling
from placement.snapshot.events import Event, NodeDrained, NodeFailed
from placement.snapshot.workload import Duration


def _job(name: str, tasks: int, cards: int, seconds: float, submit: float = 0.0, **fields: object) -> pl.Job:
    group = pl.TaskGroup(name="w", count=tasks, task=pl.Task(gpus=cards))
    duration = Duration(seconds=seconds, levels={"node": 1.0})
    job = pl.Job(name=name, groups=(group,), duration=duration, submit_time=submit)
    return msgspec.structs.replace(job, **fields)


def _snapshot(nodes: int, *jobs: pl.Job) -> pl.Snapshot:
    return pl.Snapshot(nodes=(pl.Node(name="n", count=nodes, gpus=(pl.Gpu(model="A", count=4),)),), jobs=jobs)


def _ends(found: pl.Simulation) -> dict[str, float]:
    return dict(zip(found.jobs.job, found.jobs.end, strict=True))


def test_a_wide_job_is_waited_for_where_that_gains() -> None:
    # 4 cards, of which a holds 2 until 10; w has a weight of 3. Lists start b at 1, since w does not fit, which ends at
    # 31 + 20: in all, from 1 on, 30 + 50 x 3 = 180. If b waits for w it is 29 x 3 + 59 = 146.
    jobs = (
        _job("a", 1, 2, 10.0),
        _job("b", 1, 2, 30.0, 1.0),
        _job("w", 1, 4, 20.0, 1.0, weight=3),
    )
    assert _ends(pl.simulate(_snapshot(1, *jobs), "smith-area")) == {"a": 10.0, "b": 31.0, "w": 51.0}
    assert _ends(pl.simulate(_snapshot(1, *jobs), Rolling(period=1000))) == {"a": 10.0, "w": 30.0, "b": 60.0}


def test_a_failed_node_is_not_planned_and_what_is_left_of_a_job_is() -> None:
    # x has done 4 of 10 s, saved at 4, when n-0 fails; restoring takes 1 s: 7 s on n-1, from 20 on, when y ends; z is
    # shorter than that by area (2 x 1 s) and starts first, on the 2 cards that y leaves
    jobs = (
        _job("x", 1, 4, 10.0, checkpoint_interval=4.0, restart_seconds=1.0),
        _job("y", 1, 2, 20.0),
        _job("z", 1, 2, 1.0, 5.0),
    )
    log: list[Event] = [NodeFailed(time=5.0, node="n-0")]
    assert _ends(pl.simulate(_snapshot(2, *jobs), "rolling", events=log)) == {"z": 6.0, "y": 20.0, "x": 27.0}


_JOBS = st.lists(
    st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 9), st.integers(0, 6)), min_size=2, max_size=8
)


@settings(max_examples=15, deadline=None)
@given(_JOBS, st.integers(2, 3))
def test_what_is_free_later_is_what_the_work_itself_says(jobs: Sequence[tuple[int, int, int, int]], nodes: int) -> None:
    """Before anything has started the plan's view is that of the search, and its passes have the same starts."""
    work = compile_work(_snapshot(nodes, *(_job(f"j{n}", t, c, float(s)) for n, (t, c, s, _) in enumerate(jobs))))
    of = counted(work)
    assert of is not None
    desk = Desk(work)
    desk.waiting.update(dict.fromkeys(range(work.jobs), 0))
    now = Present(of, desk)
    order = [job for job in range(work.jobs) if of.gangs[of.job_class[job]].kinds]
    mine, other = parallel(now, order, base(now, desk)), parallel(of, order, present(of))
    assert mine == other
    assert {job for job, _ in Replanner()(desk, None)} <= set(order)


@settings(max_examples=20, deadline=None)
@given(_JOBS, st.integers(0, 3), st.booleans())
def test_every_job_ends_whatever_happens(jobs: Sequence[tuple[int, int, int, int]], slow: int, drains: bool) -> None:
    snapshot = _snapshot(3, *(_job(f"j{n}", t, c, float(s), float(at)) for n, (t, c, s, at) in enumerate(jobs)))
    actual = {f"j{n}": (0.5, 1.0, 2.0)[(n + slow) % 3] for n in range(len(jobs))}
    log: list[Event] = [NodeDrained(time=4.0, node="n-2")] if drains else []
    found = pl.simulate(snapshot, "rolling", actual=actual, events=log)
    fits = {f"j{n}" for n, (tasks, cards, _, _) in enumerate(jobs) if tasks <= (4 // cards) * (2 if drains else 3)}
    assert fits <= set(found.jobs.job)
