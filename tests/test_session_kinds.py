"""New kinds of jobs in a session: what is added to what was compiled before goes as if all were compiled at once."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

import placement as pl
from placement.session import Session
from placement.session.live import Live
from placement.snapshot import Job
from placement.snapshot.events import JobArrived, JobEnded, NodeDrained, NodeRestored
from placement.snapshot.workload import Duration, Topology

GIB = 2**30


def _nodes(count: int) -> tuple[pl.Node, ...]:
    return tuple(
        pl.Node(
            name=f"n{number}",
            position={"rack": f"r{number // 2}"},
            cpu=None if number == 3 else 16,
            memory=64 * GIB,
            labels={"pool": "ab"[number % 2], "host": f"n{number}"},
            gpus=(pl.Gpu(model="AB"[number // 2 % 2], count=4, memory=40 * GIB),),
        )
        for number in range(count)
    )


@st.composite
def _jobs(draw: st.DrawFn) -> Job:
    gpus = draw(st.sampled_from((1, 2, 4)))
    share = draw(st.sampled_from((None, None, 0.5))) if gpus == 1 else None
    selector = draw(st.sampled_from(({}, {}, {"pool": "a"}, {"host": "n1"})))
    tasks = draw(st.integers(1, 3))
    topology = Topology(required="rack") if draw(st.booleans()) and tasks > 1 else None
    task = pl.Task(
        gpus=gpus,
        gpu_share=share,
        gpu_memory=None if share is None else 8 * GIB,
        cpu=draw(st.sampled_from((2, 4, 1.5))),
        memory=draw(st.sampled_from((4, 8))) * GIB,
        node_selector=selector,
    )
    duration = draw(st.sampled_from((None, Duration(seconds=5), Duration(seconds=5, gpu_models={"A": 2.0}))))
    return Job(name="", groups=(pl.TaskGroup(name="w", count=tasks, task=task, topology=topology),), duration=duration)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 6), st.lists(st.tuples(_jobs(), st.booleans()), min_size=2, max_size=8), st.data())
def test_new_kinds_are_placed_as_if_all_were_compiled_at_once(
    count: int, steps: list[tuple[Job, bool]], data: st.DataObject
) -> None:
    session = Session(pl.Snapshot(topology=("rack",), nodes=_nodes(count)))
    for number, (one, turns) in enumerate(steps):
        job = msgspec.structs.replace(one, name=f"j{number}")
        session.apply(JobArrived(time=float(number), job=job))
        found = session._live.place(job)
        assert found == Live(session._cluster, session._live.kinds).place(job)
        decision = session.decide(job.name)
        if decision.starts:
            session.start(decision)
        if turns and session.running:
            session.apply(JobEnded(time=float(number), job=data.draw(st.sampled_from(sorted(session.running)))))
        elif turns:
            session.apply(NodeDrained(time=float(number), node="n0"))
        else:
            session.apply(NodeRestored(time=float(number), node="n0"))


def test_a_new_size_and_a_new_task_are_added_and_finer_units_compiled_anew() -> None:
    session = Session(pl.Snapshot(topology=("rack",), nodes=_nodes(2)))

    def arrives(name: str, tasks: int, cpu: float) -> bool:
        """Return whether the node side of what was compiled is still there."""
        before = session._live._extender
        group = pl.TaskGroup(name="w", count=tasks, task=pl.Task(gpus=1, cpu=cpu))
        session.apply(JobArrived(time=0.0, job=pl.Job(name=name, groups=(group,))))
        assert session.decide(name).starts
        return session._live._extender is before

    assert not arrives("first", 1, 2)  # nothing is known before
    assert arrives("size", 2, 2)
    assert arrives("task", 1, 4)  # twice the unit of 2 cores
    assert not arrives("finer", 1, 3)
    assert arrives("whole", 1, 7)  # the unit is one core now


def test_a_kind_that_no_node_can_tell_from_one_known_is_ranked_with_it() -> None:
    # n2 and n3 are twice as fast for the first job; the second says nothing of its speed, asks for the same, and goes
    # where best fit puts it among the nodes that such tasks are best on: beside the first
    group = pl.TaskGroup(name="w", task=pl.Task(gpus=1, cpu=2, memory=4 * GIB))
    session = Session(pl.Snapshot(topology=("rack",), nodes=_nodes(3)))
    for name, duration in (("first", Duration(seconds=5, gpu_models={"A": 2.0})), ("second", None)):
        session.apply(JobArrived(time=0.0, job=Job(name=name, groups=(group,), duration=duration)))
        decision = session.decide(name)
        session.start(decision)
        assert decision.tasks.node == ["n2"]
