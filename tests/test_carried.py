"""Plans that start from an earlier one: never worse than what of it still holds, and nothing moves without a gain."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mig_tiny import random_mig
from share_cases import cards, gang, shared
from strategies import random_tied_tiny, random_tiny
from tenant_cases import random_apart
from zoned_strategies import random_zoned

import placement as pl
from placement.carried import carried
from placement.compile import compile as compile_snapshot
from placement.plan import Plan, Tasks
from placement.session import Session
from placement.snapshot import Snapshot
from placement.snapshot.events import JobArrived, JobEnded, NodeFailed


def where(tasks: Tasks) -> dict[str, list[tuple[str, tuple[int, ...]]]]:
    """Return nodes and cards of each job."""
    found: dict[str, list[tuple[str, tuple[int, ...]]]] = {}
    for job, _, _, node, gpus in tasks:
        found.setdefault(job, []).append((node, tuple(gpus)))
    return found


def placed(**nodes: tuple[str, tuple[int, ...]]) -> Tasks:
    """Return tasks of jobs of one task each."""
    rows = sorted(nodes.items())
    return Tasks(
        job=[name for name, _ in rows],
        group=["g" for _ in rows],
        index=[0 for _ in rows],
        node=[node for _, (node, _) in rows],
        gpus=[list(gpus) for _, (_, gpus) in rows],
    )


TWO = Snapshot(nodes=(cards("x", "A", 4), cards("y", "A", 4)), jobs=(gang("a", "", 1, 2), gang("b", "", 1, 4)))


@pytest.mark.parametrize("solver", ["auto", "exact", "first-fit"])
def test_jobs_stay_where_they_were_if_nothing_is_better(solver: str) -> None:
    """Both fit either way round; first fit alone would put a on x, at its first cards."""
    start = placed(a=("y", (1, 3)), b=("x", (0, 1, 2, 3)))
    plan = pl.solve(TWO, solver=solver, start=start)
    assert plan.checked
    assert [node for job, node in zip(plan.tasks.job, plan.tasks.node, strict=True) if job in "ab"] == ["y", "x"]
    assert plan.provenance.solver == "carried-over"


def test_what_is_better_takes_its_place() -> None:
    """With a on x and c on y, 2 cards each, b has no room; of value 3 and 2 and 2 all three fit on x, y."""
    jobs = (*TWO.jobs, gang("c", "", 1, 2))
    snapshot = msgspec.structs.replace(TWO, jobs=jobs)
    plan = pl.solve(snapshot, start=placed(a=("x", (0, 1)), c=("y", (0, 1))))
    assert sorted(where(plan.tasks)) == ["a", "b", "c"]
    # first fit alone places a and b, and c beside a: it is as good
    assert plan.status == "proven"


def test_what_no_longer_holds_is_left_out() -> None:
    instance = compile_snapshot(TWO)
    for tasks, left in (
        (placed(a=("z", (0, 1))), []),
        (placed(gone=("x", (0, 1)), a=("x", (0, 1))), [0]),
        # the second takes cards that the first has
        (placed(a=("x", (0, 1)), b=("x", (0, 1, 2, 3))), [0]),
        (placed(a=("x", (0, 9))), []),
    ):
        assert carried(instance, tasks).job.tolist() == left
    shut = msgspec.structs.replace(TWO, nodes=(msgspec.structs.replace(TWO.nodes[0], cordoned=True), TWO.nodes[1]))
    assert carried(compile_snapshot(shut), placed(a=("x", (0, 1)), b=("y", (0, 1, 2, 3)))).job.tolist() == [1]


def value(plan: Plan) -> float:
    return plan.phases[0].value


@settings(max_examples=25, deadline=None)
@given(shared(kinds=("quota",)), st.sampled_from(["first-fit", "exact", "auto"]))
def test_no_rule_makes_it_worse_and_the_same_comes_back(snapshot: Snapshot, solver: str) -> None:
    best = pl.solve(snapshot, solver="exact")
    again = pl.solve(snapshot, solver=solver, start=best.tasks)
    assert again.checked
    assert value(again) == value(best)
    assert where(again.tasks) == where(best.tasks)
    # with one job less, what is left of it is kept
    for job in snapshot.jobs:
        if job.running is None:
            fewer = msgspec.structs.replace(snapshot, jobs=tuple(one for one in snapshot.jobs if one is not job))
            after = pl.solve(fewer, solver="first-fit", start=best.tasks)
            assert after.checked
            assert not any("refused" in note for note in after.notes)
            assert value(after) >= sum(
                one.value or 0 for one in fewer.jobs if one.running is None and one.name in best.tasks.job
            )


# --- sessions ----------------------------------------------------------------------------------------------------


def test_a_session_starts_from_its_last_plan() -> None:
    session = Session(TWO)
    first = session.solve()
    assert where(session.solve(solver="first-fit").tasks) == where(first.tasks)
    # one more arrives, and the others stay
    session.apply(JobArrived(time=1.0, job=gang("c", "", 1, 1)))
    second = where(session.solve(solver="worst-fit").tasks)
    assert {job: second[job] for job in "ab"} == where(first.tasks)
    assert "c" in second
    # what was on the node that fails is placed anew, if there is room
    node = second["b"][0][0]
    session.apply([NodeFailed(time=2.0, node=node), JobEnded(time=2.0, job="c")])
    third = session.solve()
    assert third.checked
    assert {one for one, _ in where(third.tasks)["a" if "a" in third.tasks.job else "b"]} == {"xy".replace(node, "")}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    "kind", [random_tiny, random_tied_tiny, random_zoned, random_apart, partial(random_mig, scarce=False, mixed=False)]
)
def test_whatever_decides_the_same_comes_back(kind: Callable[[int], Snapshot], seed: int) -> None:
    """Nodes, zones, domains, tenants, instances: an answer is kept as it is, and none is refused by the judge."""
    snapshot = kind(seed)
    best = pl.solve(snapshot, solver="exact")
    for solver in ("exact", "first-fit"):
        again = pl.solve(snapshot, solver=solver, start=best.tasks)
        assert again.checked
        assert not any("refused" in note for note in again.notes)
        assert [phase.value for phase in again.phases] == [phase.value for phase in best.phases]
        assert (again.tasks.job, again.tasks.node) == (best.tasks.job, best.tasks.node)
