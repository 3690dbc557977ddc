"""Jobs that never start since only so many tasks may share a card: what is said, and that it is so, by trying all."""

from __future__ import annotations

from typing import Any

import pytest
from check_cases import plan_of
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from shared_cases import card, job, node, plans, runs, shared_cards, shared_nodes

import placement as pl
from placement.check import check
from placement.compile import compile as compile_snapshot
from placement.empty import EmptyCluster
from placement.snapshot import DomainLimit, Gpu, Job, Node, Snapshot, Task, TaskGroup, Topology
from placement.snapshot.read import verified


def gang(count: int, share: object, name: str = "j", topology: Topology | None = None, **task: object) -> Job:
    """Return a job of which all tasks run or none, each with a share of one card unless it asks for more."""
    asked = Task(**{"gpus": 1, "gpu_share": share, **task})  # type: ignore[arg-type]
    return Job(name=name, groups=(TaskGroup(name="w", count=count, task=asked, topology=topology),))


def why(snapshot: Snapshot, name: str = "j") -> tuple[str, str]:
    """Return the reason and the detail of a job in a plan, which was checked; empty where it runs."""
    plan = pl.solve(snapshot, solver="first-fit")
    found = [(entry.reason, entry.detail) for entry in plan.pending if entry.job == name]
    return found[0] if found else ("", "")


def may_say_never(snapshot: Snapshot, name: str = "j") -> bool:
    """Return whether the judge accepts "never" of a job, where nothing of it is placed."""
    plan = plan_of(snapshot, [])
    entries = [replace(entry, reason="never") if entry.job == name else entry for entry in plan.pending]
    return not [one for one in check(snapshot, replace(plan, pending=entries)) if one.rule == "pending"]


NODE = Topology(required="node")
MPS = card("mps")
CASES: list[tuple[tuple[Node, ...], Job, str]] = [
    # 48 clients of MPS, 60 from CUDA 13.1 on, 16 before Volta, and as many as there are replicas
    ((node("n", MPS),), gang(49, 0.01), "w needs 49 tasks; all nodes together hold 48 when empty"),
    ((node("n", MPS),), gang(48, 0.01), ""),
    ((node("n", MPS, cuda="13.1"),), gang(61, 0.01), "w needs 61 tasks; all nodes together hold 60 when empty"),
    ((node("n", MPS, cuda="13.1"),), gang(60, 0.01), ""),
    (
        (node("n", card("mps", compute_capability="6.1")),),
        gang(17, 0.05),
        "w needs 17 tasks; all nodes together hold 16 when empty",
    ),
    (
        (node("n", card("time_slicing", replicas=4, count=2)),),
        gang(9, 0.1),
        "w needs 9 tasks; all nodes together hold 8 when empty",
    ),
    ((node("n", card("time_slicing", replicas=4, count=2)),), gang(8, 0.1), ""),
    # 3 of 0.3 on either card; of 0.4 there are 2 on the one with 2 replicas and 2 on the other
    ((node("n", card("time_slicing", replicas=3, memory=9)), node("m", card())), gang(6, 0.3, gpu_memory=3), ""),
    (
        (node("n", card("time_slicing", replicas=2)), node("m", card())),
        gang(5, 0.4),
        "w needs 5 tasks; all nodes together hold 4 when empty",
    ),
    # on one node: 2 * 4, though three nodes have 24
    (
        (node("n", card("mps", replicas=4, count=2), count=3),),
        gang(9, 0.1, topology=NODE),
        "topology: w needs 9 tasks in one node; the largest, n-0, holds 8 when empty",
    ),
    ((node("n", card("mps", replicas=4, count=2), count=3),), gang(8, 0.1, topology=NODE), ""),
    # two cards each: of 3 cards with 2 tasks 6 places, so 3 tasks
    (
        (node("n", card("mps", replicas=2, count=3)),),
        gang(4, 0.1, gpus=2),
        "w needs 4 tasks; all nodes together hold 3 when empty",
    ),
    # 20 clients would be let in, but the memory is enough for 5
    (
        (node("n", card("time_slicing", replicas=20, memory=10)),),
        gang(6, 0.01, gpu_memory=2),
        "w needs 6 tasks; all nodes together hold 5 when empty",
    ),
]


@pytest.mark.parametrize(("nodes", "work", "detail"), CASES)
def test_what_is_said(nodes: tuple[Node, ...], work: Job, detail: str) -> None:
    snapshot = Snapshot(nodes=nodes, jobs=(work,))
    never = EmptyCluster(compile_snapshot(verified(snapshot))).never(0)
    assert never == (detail or None)
    if detail:
        assert why(snapshot) == ("never", detail)
    assert may_say_never(snapshot) == bool(detail)


def test_caps_count_what_tasks_take() -> None:
    # tasks of a tenth count as a quarter; a cap of 0.35 cards allows 3 of them, not 1
    nodes, cap = (node("n", card("mps", replicas=4)),), DomainLimit(level="cluster", gpus=0.35)
    for count, said in ((3, False), (4, True)):
        snapshot = Snapshot(nodes=nodes, jobs=(gang(count, 0.1),), limits=(cap,))
        never = EmptyCluster(compile_snapshot(verified(snapshot))).never(0)
        detail = "limits: w needs 4 tasks; the caps allow 3 even without other work"
        assert never == (detail if said else None)
        assert may_say_never(snapshot) == said
    # the smaller of two shares that count as the same
    both = Snapshot(nodes=nodes, jobs=(gang(3, 0.25, "k"), gang(3, 0.1)), limits=(cap,))
    assert EmptyCluster(compile_snapshot(verified(both))).never(1) is None


def test_shares_that_count_as_the_same() -> None:
    # tasks of 0.1 and 0.4 both count as a half: of 0.4 two fit on either card, of 0.1 two and three
    nodes = (node("n", card("time_slicing", replicas=2), card("time_slicing", replicas=3)),)
    for count, share, said in ((4, 0.4, False), (5, 0.4, True), (5, 0.1, False), (6, 0.1, True)):
        snapshot = Snapshot(nodes=nodes, jobs=(gang(1, 0.1, "k"), gang(1, 0.4, "l"), gang(count, share)))
        assert (EmptyCluster(compile_snapshot(verified(snapshot))).never(2) is not None) == said
        assert may_say_never(snapshot) == said


def test_what_runs_does_not_matter() -> None:
    # 3 of 4 clients run; the gang of 4 has no room today, that of 5 never has
    nodes, old = (node("n", card("mps", replicas=4)),), runs("r", 0.05, *[("n", 0)] * 3)
    for count, reason in ((4, "no_room"), (5, "never")):
        assert why(Snapshot(nodes=nodes, jobs=(old, gang(count, 0.1))))[0] == reason
    # what runs crowds the card, but nothing that waits counts as more: halves, of which 2 fit
    for count, reason in ((2, "no_room"), (3, "never")):
        assert why(Snapshot(nodes=nodes, jobs=(old, gang(count, 0.5))))[0] == reason


def test_groups_that_others_make_up_for() -> None:
    # of two groups one is enough; the one with 5 of 4 clients can never run, the other can
    groups = tuple(TaskGroup(name=f"g{n}", count=n, task=Task(gpus=1, gpu_share=0.1)) for n in (5, 2))
    nodes = (node("n", card("mps", replicas=4)),)
    for needed, reason in ((1, ""), (2, "never")):
        above = TaskGroup(name="all", min_groups=needed, groups=groups)
        snapshot = Snapshot(nodes=nodes, jobs=(Job(name="j", groups=(above,)),))
        never = EmptyCluster(compile_snapshot(verified(snapshot))).never(0)
        assert (never is not None) == (reason == "never")
        assert may_say_never(snapshot) == (reason == "never")


# --- at random ------------------------------------------------------------------------------------------------


@st.composite
def gangs_on_shared_cards(draw: st.DrawFn) -> Snapshot:
    """Draw a gang of tasks that share cards, and some running work."""
    nodes = tuple(draw(shared_nodes(f"n{i}")) for i in range(draw(st.integers(1, 2))))
    if draw(st.booleans()):
        nodes = (node("n0", *(draw(shared_cards(["time_slicing", "shared"])) for _ in range(2))),)
    memory = draw(st.sampled_from((None, 2**31, 2**32)))
    work = gang(draw(st.integers(2, 6)), draw(st.sampled_from((0.1, 0.2, 0.4, 0.5, None))), gpu_memory=memory)
    old = runs("r", draw(st.sampled_from((0.1, 0.5))), (nodes[0].name, 0))
    return Snapshot(nodes=nodes, jobs=(*draw(st.sampled_from(((), (old,)))), work, job("small", 0.1)))


def can_run(snapshot: Snapshot) -> bool:
    """Return whether the gang runs on the nodes without any work, by trying all plans."""
    alone = replace(snapshot, jobs=tuple(one for one in snapshot.jobs if one.name == "j"))
    return any(all(c is not None for _, c in placed) for placed, _ in plans(alone))


@given(snapshot=gangs_on_shared_cards())
@settings(max_examples=80, deadline=None)
def test_never_is_said_just_where_no_plan_of_the_empty_nodes_has_the_gang(snapshot: Snapshot) -> None:
    instance = compile_snapshot(verified(snapshot))
    number = next(n for n, one in enumerate(instance.job_classes) if instance.job_name(int(one.jobs[0])) == "j")
    never = EmptyCluster(instance).never(number)
    assert (never is None) == can_run(snapshot)
    assert may_say_never(snapshot) == (never is not None)


def test_random_gangs_are_of_all_sorts() -> None:
    found: set[tuple[bool, bool]] = set()

    @given(snapshot=gangs_on_shared_cards())
    @settings(max_examples=40, deadline=None, database=None)
    def look(snapshot: Snapshot) -> None:
        found.add((compile_snapshot(verified(snapshot)).crowded, can_run(snapshot)))

    look()
    assert found >= {(True, True), (True, False)}


# --- several groups -------------------------------------------------------------------------------------------


def groups(*parts: tuple[int, object], **more: object) -> tuple[TaskGroup, ...]:
    return tuple(
        TaskGroup(name=f"g{i}", count=count, task=Task(gpus=1, gpu_share=share, **more))  # type: ignore[arg-type]
        for i, (count, share) in enumerate(parts)
    )


FOUR = node("n", card("mps", replicas=4, count=2), count=2)


@pytest.mark.parametrize(
    ("parts", "topology", "said"),
    [
        # two nodes of two cards with 4 clients: 8 in one, 16 in all
        (((6, 0.1), (2, 0.05)), NODE, ""),
        (((6, 0.1), (3, 0.05)), NODE, "9 places for tasks on cards in one node; the most is 8"),
        (((8, 0.1), (8, 0.05)), None, ""),
        (((8, 0.1), (9, 0.05)), None, "17 places for tasks on cards in all; there are 16"),
        # equal tasks in two groups, and whole cards, which are clients too
        (((5, 0.1), (4, 0.1)), NODE, "9 places for tasks on cards in one node; the most is 8"),
        (((8, 0.1), (1, None)), NODE, "9 places for tasks on cards in one node; the most is 8"),
    ],
)
def test_groups_that_share_the_clients_of_cards(
    parts: tuple[tuple[int, object], ...], topology: Topology | None, said: str
) -> None:
    said = f"clients: all needs {said} when empty" if said else ""
    above = TaskGroup(name="all", groups=groups(*parts), topology=topology)
    snapshot = Snapshot(nodes=(FOUR,), jobs=(Job(name="j", groups=(above,)),))
    assert EmptyCluster(compile_snapshot(verified(snapshot))).never(0) == (said or None)
    assert may_say_never(snapshot) == bool(said)
    if said:
        assert why(snapshot) == ("never", said)
    # groups of which one is enough may do without the other, and so may tasks beyond the minimum
    free = replace(above, min_groups=1), replace(above, groups=tuple(replace(g, min_count=1) for g in above.groups))
    for group in free:
        less = Snapshot(nodes=(FOUR,), jobs=(Job(name="j", groups=(group,)),))
        assert EmptyCluster(compile_snapshot(verified(less))).never(0) is None
        assert not may_say_never(less)


def test_mig_cards_beside_are_not_shared() -> None:
    # the instance that waits makes the MIG card a node by itself; the shared card has 4 clients all the same
    mig = Gpu(model="A100-40GB", mig_enabled=True)
    waits = Job(name="m", groups=(TaskGroup(name="w", task=Task(gpus=1, mig_profile="1g.5gb")),))
    for count, said in ((4, False), (5, True)):
        snapshot = Snapshot(nodes=(node("n", card("mps", replicas=4), mig),), jobs=(gang(count, 0.1), waits))
        assert (EmptyCluster(compile_snapshot(verified(snapshot))).never(0) is not None) == said
        assert may_say_never(snapshot) == said
        two = Job(name="j", groups=groups((2, 0.1), (count - 2, 0.05)))
        snapshot = replace(snapshot, jobs=(two, waits))
        assert (EmptyCluster(compile_snapshot(verified(snapshot))).never(0) is not None) == said
        assert may_say_never(snapshot) == said


def test_groups_of_the_job_itself() -> None:
    snapshot = Snapshot(nodes=(FOUR,), jobs=(Job(name="j", groups=groups((8, 0.1), (9, 0.05))),))
    said = "clients: the job needs 17 places for tasks on cards in all; there are 16 when empty"
    assert why(snapshot) == ("never", said)
    assert may_say_never(snapshot)


@st.composite
def gangs_of_two_groups(draw: st.DrawFn) -> tuple[Snapshot, Snapshot]:
    """Draw a gang of two groups, and the same tasks as two jobs, for trying all plans of them."""
    one = draw(shared_nodes("n0"))
    parts = [(draw(st.integers(1, 3)), draw(st.sampled_from((0.1, 0.2, 0.5, None)))) for _ in range(2)]
    memory = draw(st.sampled_from((None, 2**31, 2**32)))
    asked = draw(st.sampled_from(((), (), ("security",))))
    more: dict[str, Any] = {"gpu_memory": memory, "isolation": asked}
    both = Job(name="j", groups=groups(*parts, **more))
    small = job("small", 0.1)
    apart = tuple(gang(count, share, f"j{i}", **more) for i, (count, share) in enumerate(parts))
    return Snapshot(nodes=(one,), jobs=(both, small)), Snapshot(nodes=(one,), jobs=apart)


@given(drawn=gangs_of_two_groups())
@settings(max_examples=80, deadline=None)
def test_never_is_true_of_groups(drawn: tuple[Snapshot, Snapshot]) -> None:
    snapshot, apart = drawn
    never = EmptyCluster(compile_snapshot(verified(snapshot))).never(0)
    if never is not None:
        assert may_say_never(snapshot)
    if any(all(c is not None for _, c in placed) for placed, _ in plans(apart)):
        assert never is None
        assert not may_say_never(snapshot)
