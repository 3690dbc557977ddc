"""The choice among alike cards by the paths between them: by hand, by trying everything, and as a property."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations, permutations, product
from pathlib import Path

import msgspec
import numpy as np
import pytest
from check_cases import assignment_of, valid_rows
from hypothesis import given
from hypothesis import strategies as st
from strategies import Source, snapshots

import placement as pl
from placement.check import check
from placement.compile import compile as compile_snapshot
from placement.errors import SnapshotError
from placement.honoured import refuse_unhonoured
from placement.instance import Assignment, Instance, Ints
from placement.links import by_links, exact, swaps
from placement.links.scale import table
from placement.naming import name_tasks
from placement.planning import dump_plan, load_plan
from placement.snapshot import Gpu, Job, Link, Node, Running, RunningTask, Snapshot, Task, TaskGroup
from placement.snapshot.read import verified

PAIRS = (Link(a=0, b=3, kind="NVLINK", width=2), Link(a=1, b=2, kind="NVLINK", width=2))
"""Two pairs of cards; all other pairs are not listed and score 10."""


def job(name: str, gpus: int, **task: object) -> Job:
    return Job(name=name, groups=(TaskGroup(name="g", task=Task(gpus=gpus, **task)),))  # type: ignore[arg-type]


def runs(name: str, *gpus: int, **task: object) -> Job:
    groups = (TaskGroup(name="g", task=Task(gpus=len(gpus), **task)),)  # type: ignore[arg-type]
    return Job(name=name, groups=groups, running=Running(tasks=(RunningTask(group="g", index=0, node="n", gpus=gpus),)))


def cluster(
    *jobs: Job, gpus: tuple[Gpu, ...] = (Gpu(model="A", count=4),), links: tuple[Link, ...] = PAIRS
) -> Snapshot:
    return Snapshot(nodes=(Node(name="n", gpus=gpus, links=links),), jobs=jobs)


def chosen(snapshot: Snapshot, *rows: Sequence[int]) -> list[list[int]]:
    """Return the cards that tasks get after they were given these, in the order of the pending jobs."""
    instance = compile_snapshot(verified(snapshot))
    names = [one.name for one in snapshot.jobs if one.running is None]
    given_ = [(name, "g", 0, "n", list(row)) for name, row in zip(names, rows, strict=True)]
    return name_tasks(instance, by_links(instance, assignment_of(instance, given_))).gpus


def score(near: Ints, cards: Iterable[int]) -> int:
    return sum(int(near[a, b]) for a, b in combinations(cards, 2))


def test_scale() -> None:
    kinds = ("PIX", "PXB", "PHB", "NODE", "SYS")
    links = tuple(Link(a=0, b=number, kind=kind) for number, kind in enumerate(kinds, 1))  # type: ignore[arg-type]
    near = table((*links, Link(a=7, b=0, kind="NVLINK", width=18), Link(a=1, b=2, kind="NVLINK")), 8)
    assert near[0].tolist() == [0, 50, 40, 30, 20, 10, 10, 1800]
    assert (near == near.T).all()
    assert near[1, 2] == 100
    assert near[5, 6] == 10  # not listed


def test_pairs_go_together() -> None:
    # {0, 1} and {2, 3} score 10 + 10; {0, 3} and {1, 2} score 200 + 200
    assert sorted(chosen(cluster(job("a", 2), job("b", 2)), [0, 1], [2, 3])) == [[0, 3], [1, 2]]
    # a pair: 200. Three cards hold one pair: 200 + 10 + 10, whichever stays free
    assert chosen(cluster(job("a", 2)), [0, 1]) in ([[0, 3]], [[1, 2]])


def test_what_is_as_good_stays() -> None:
    snapshot = cluster(job("a", 2), job("b", 1))
    assert chosen(snapshot, [1, 2], [3]) == [[1, 2], [3]]
    assert chosen(cluster(job("a", 3)), [1, 2, 3]) == [[1, 2, 3]]


def test_single_cards_and_shares_leave_pairs_whole() -> None:
    # two singles on 0 and 1 leave {2, 3}: 10; on 0 and 3 they leave {1, 2}: 200
    (first,), (second,) = chosen(cluster(job("a", 1), job("b", 1)), [0], [1])
    assert {first, second} in ({0, 3}, {1, 2})
    # card 0 is taken: of 1, 2, 3 only 3 leaves a pair
    assert chosen(cluster(runs("r", 0), job("a", 1, gpu_share=0.5)), [1]) == [[3]]
    # two shares on one card move together
    half = {"gpu_share": 0.5}
    assert chosen(cluster(runs("r", 0), job("a", 1, **half), job("b", 1, **half)), [1], [1]) == [[3], [3]]


def test_the_tasks_come_before_what_stays_free() -> None:
    # 0-1 300, 1-2 200, 2-3 10, 0-3 200: {0, 1} scores most and leaves {2, 3} with 10, where {1, 2} would leave 200
    links = (
        Link(a=0, b=1, kind="NVLINK", width=3),
        Link(a=1, b=2, kind="NVLINK", width=2),
        Link(a=0, b=3, kind="NVLINK", width=2),
    )
    assert chosen(cluster(job("a", 2), links=links), [2, 3]) == [[0, 1]]


def test_only_alike_cards_are_exchanged() -> None:
    # two models: a task on one A and one B may move from (0, 2) to (0, 3) or (1, 2), but never to two cards of a model
    models = (Gpu(model="A", count=2), Gpu(model="B", count=2))
    assert chosen(cluster(job("a", 2), gpus=models), [0, 2]) in ([[0, 3]], [[1, 2]])
    both = (Link(a=0, b=1, kind="NVLINK", width=4),)
    assert chosen(cluster(job("a", 2), gpus=models, links=both), [0, 2]) == [[0, 2]]
    # running work has half of card 3, so card 3 is not like the others: 0 cannot be had with it
    half = cluster(runs("r", 3, gpu_share=0.5), job("a", 2), job("b", 1, gpu_share=0.5))
    assert chosen(half, [0, 1], [3]) == [[1, 2], [3]]
    # device memory that is left counts, too
    big = (Gpu(model="A", count=4, memory=16),)
    memory = cluster(runs("r", 3, gpu_share=0.1, gpu_memory=8), job("a", 2, gpu_share=0.5, gpu_memory=8), gpus=big)
    assert chosen(memory, [0, 3]) == [[0, 3]]


def test_without_paths_nothing_is_touched() -> None:
    snapshot = cluster(job("a", 2), links=())
    instance = compile_snapshot(verified(snapshot))
    assignment = assignment_of(instance, [("a", "g", 0, "n", [1, 2])])
    assert by_links(instance, assignment) is assignment
    assert name_tasks(instance, assignment).links is msgspec.UNSET
    alike = tuple(Link(a=a, b=b, kind="NVLINK", width=18) for a, b in combinations(range(4), 2))
    assert chosen(cluster(job("a", 2), links=alike), [1, 3]) == [[1, 3]]


@pytest.mark.parametrize("solver", ["auto", "first-fit", "fgd", "random"])
def test_every_method_gets_it(solver: str, in_tmp: Path) -> None:
    snapshot = cluster(job("a", 2), job("b", 2), job("c", 0, cpu=1))
    plan = pl.solve(snapshot, solver=solver)
    assert plan.checked
    assert sorted(plan.tasks.gpus) == [[], [0, 3], [1, 2]]
    assert plan.tasks.links == [200, 200, None]
    Path("plan.json").write_bytes(dump_plan(plan))
    assert check(snapshot, load_plan("plan.json")) == []
    near = plan.tasks["a", "g", 0]
    assert near.cdi_devices == tuple(f"nvidia.com/gpu={device}" for device in near.gpus)
    assert near.nvidia_visible_devices in ("0,3", "1,2")
    assert plan.tasks["c", "g", 0].nvidia_visible_devices == "void"


def test_a_stated_score_is_judged() -> None:
    snapshot = cluster(job("a", 2), job("b", 1))
    plan = pl.solve(snapshot, solver="best-fit")

    def found(links: object) -> list[str]:
        tasks = msgspec.structs.replace(plan.tasks, links=links)
        return [str(violation) for violation in check(snapshot, msgspec.structs.replace(plan, tasks=tasks))]

    assert found([200, None]) == found(msgspec.UNSET) == []
    assert found([210, None]) == ["links: tasks[0]: the cards of a on n score 200, and the plan says 210"]
    assert found([200, 0]) == ["links: tasks[1]: the cards of b on n score nothing, and the plan says 0"]
    assert found([200]) == ["links: tasks.links: found 1 score, expected one for each of 2 tasks"]


@pytest.mark.parametrize(
    ("links", "path", "what"),
    [
        ([(0, 1, "PIX", 1), (1, 0, "PIX", 1)], "nodes[0].links[1]", "cards 1 and 0 are linked in links[0] already"),
        (
            [(0, 1, "NVLINK", 4), (1, 0, "NVLINK", 2)],
            "nodes[0].links[1]",
            "links[0] already, by NVLINK of width 4 and here by NVLINK of width 2",
        ),
        ([(0, 1, "NVLINK", 4), (0, 1, "PHB", 1)], "nodes[0].links[1]", "by NVLINK of width 4 and here by PHB"),
        ([(2, 4, "PIX", 1)], "nodes[0].links[0].b", "there is no card 4: the node has cards 0 to 3"),
        ([(-1, 3, "PIX", 1)], "nodes[0].links[0].a", "there is no card -1: the node has cards 0 to 3"),
        ([(2, 2, "PIX", 1)], "nodes[0].links[0]", "card 2 is linked to itself"),
        ([(2, 3, "SYS", 2)], "nodes[0].links[0].width", "a path of kind SYS has no lanes to count"),
        ([(2, 3, "NVLINK", 0)], "nodes[0].links[0].width", "expected"),
    ],
)
def test_wrong_paths_are_named(links: list[tuple[int, int, str, int]], path: str, what: str) -> None:
    given_ = tuple(Link(a=a, b=b, kind=kind, width=width) for a, b, kind, width in links)  # type: ignore[arg-type]
    with pytest.raises(SnapshotError) as caught:
        verified(cluster(links=given_))
    (problem,) = caught.value.problems
    assert problem.path == path
    assert what in str(problem)


# --- everything tried ----------------------------------------------------------------------------------------


def random_case(source: random.Random) -> tuple[Snapshot, list[list[int]]]:
    """Return a node of a few cards, and tasks on it."""
    cards = source.randint(2, 6)
    cut = source.choice([0, 0, 1, cards // 2])
    gpus = tuple(Gpu(model=model, count=count) for model, count in (("A", cut), ("B", cards - cut)) if count)
    kinds = ("PIX", "SYS", "NVLINK")
    links = []
    for a, b in combinations(range(cards), 2):
        kind = source.choice(kinds)
        if source.random() < 0.8:
            links.append(Link(a=a, b=b, kind=kind, width=source.randint(1, 3) if kind == "NVLINK" else 1))  # type: ignore[arg-type]
    left, rows = source.sample(range(cards), cards), list[list[int]]()
    while left and source.random() < 0.8:
        size = source.randint(1, min(4, len(left)))
        rows.append(sorted(left[:size]))
        del left[:size]
    busy = [runs("r", left.pop())] if left and source.random() < 0.3 else []
    jobs = [job(f"j{number}", len(row)) for number, row in enumerate(rows)]
    return cluster(*busy, *jobs, gpus=gpus, links=tuple(links)), rows


def worth(near: Ints, rows: Sequence[Sequence[int]], taken: set[int]) -> tuple[int, int]:
    free = set(range(len(near))) - taken - {card for row in rows for card in row}
    return sum(score(near, row) for row in rows), score(near, free)


def test_against_all_permutations() -> None:
    changed = 0
    for seed in range(150):
        snapshot, rows = random_case(random.Random(seed))
        node = snapshot.nodes[0]
        models = [gpu.model for gpu in node.gpus for _ in range(gpu.count)]
        taken = {card for one in snapshot.jobs if one.running for place in one.running.tasks for card in place.gpus}
        near = table(node.links, len(models))
        legal = (
            to
            for to in permutations(range(len(models)))
            if all(models[a] == models[b] and (a == b or not {a, b} & taken) for a, b in enumerate(to))
        )
        best = max(worth(near, [[to[card] for card in row] for row in rows], taken) for to in legal)
        found = chosen(snapshot, *rows)
        assert worth(near, found, taken) == best
        changed += found != rows
    assert changed > 50


@pytest.mark.parametrize("disjoint", [True, False])
def test_gains_are_what_an_exchange_adds(disjoint: bool) -> None:
    rng = np.random.default_rng(5)
    for _ in range(40):
        n = int(rng.integers(2, 9))
        near = np.triu(rng.integers(0, 50, (n, n)), 1)
        near += near.T
        # the last column stands for free cards; where sets are disjoint a card is in one column or in none
        member = rng.integers(0, 2, (n, 4))
        if disjoint:
            member = np.eye(5, dtype=np.int64)[rng.integers(0, 5, n)][:, :4]
        weight = np.array([1000, 1000, 1000, 1])

        def value(inside: Ints, near: Ints = near, weight: Ints = weight) -> int:
            return int((weight * inside * (near @ inside)).sum()) // 2

        gains = swaps._gains(near, member, near @ member, weight)
        for a in range(n):
            for b in range(n):
                at = np.arange(n)
                at[[a, b]] = [b, a]
                assert a == b or gains[a, b] == value(member[at]) - value(member)


def test_swaps_against_enumeration() -> None:
    """The exchanges are never worse than the start, and mostly best; what they say they reach is so."""
    same = 0
    for seed in range(60):
        source = np.random.default_rng(seed)
        near = np.triu(source.integers(1, 9, (8, 8)) * 10, 1)
        near += near.T
        group = np.array([0, 0, 0, 0, 0, 1, 1, 1])
        places = source.permutation(8).tolist()
        sets = [tuple(places[:3]), tuple(places[3:5])]
        free = np.isin(np.arange(8), places[6:])
        reached = []
        for start in (np.arange(8), swaps.grown(near, group, sets)):
            assert sorted(start.tolist()) == list(range(8))
            assert (group[start] == group).all()
            value, at = swaps.improve(near, group, sets, free, start)
            assert (group[at] == group).all()
            to = np.argsort(at)
            own = sum(score(near, to[list(cards)].tolist()) for cards in sets)
            assert value == own * (1 + near.sum()) + score(near, to[free].tolist())
            reached.append(value)
        numbers = tuple(
            (tuple(Counter(group[list(cards)].tolist()).get(one, 0) for one in (0, 1)), 1) for cards in sets
        )
        rest = tuple(int((free & (group == one)).sum()) for one in (0, 1))
        best, stays = exact.best_sets(near, exact.Wanted((31, 224), numbers, rest))
        inside = [[card for card in range(8) if bits >> card & 1] for bits in (*best, stays)]
        most = sum(score(near, cards) for cards in inside[:2]) * (1 + near.sum()) + score(near, inside[2])
        assert max(reached) <= most
        same += int(max(reached) == most)
    assert same > 40


def test_more_cards_than_are_enumerated() -> None:
    # five islands of four cards, each card next to those with the same rest by 5; tasks of four fit islands exactly:
    # 6 pairs of 600 each
    links = tuple(Link(a=a, b=b, kind="NVLINK", width=6) for a, b in combinations(range(20), 2) if (a - b) % 5 == 0)
    snapshot = cluster(*(job(f"j{i}", 4) for i in range(4)), gpus=(Gpu(model="A", count=20),), links=links)
    found = chosen(snapshot, *([4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3] for i in range(4)))
    assert sorted(found) == [[i, i + 5, i + 10, i + 15] for i in sorted(row[0] for row in found)]
    # halves of cards, of which tasks share the middle one: 0-5 and 5-10 are near, 600 each
    jobs = (job("a", 2, gpu_share=0.5), job("b", 2, gpu_share=0.5))
    one, other = chosen(cluster(*jobs, gpus=(Gpu(model="A", count=20),), links=links), [0, 1], [1, 2])
    assert {(b - a) % 5 for a, b in (one, other)} == {0}
    assert len({*one, *other}) == 3


def test_tasks_that_overlap() -> None:
    # halves of cards: a on {0, 1}, b on {1, 2}; 1 is in both. 10 + 200, and no card is in both near pairs
    half = {"gpu_share": 0.5}
    snapshot = cluster(job("a", 2, **half), job("b", 2, **half))
    assert chosen(snapshot, [0, 1], [1, 2]) == [[0, 1], [1, 2]]
    # two halves on the same two cards count twice and move together
    assert chosen(snapshot, [0, 1], [0, 1]) in ([[0, 3], [0, 3]], [[1, 2], [1, 2]])
    # a chain 0-3-1 has both pairs near: 200 + 300, three exchanges away
    chain = (PAIRS[0], Link(a=3, b=1, kind="NVLINK", width=3))
    found = chosen(cluster(*snapshot.jobs, links=chain), [0, 1], [1, 2])
    assert sorted(found) == [[0, 3], [1, 3]]


# --- any snapshot --------------------------------------------------------------------------------------------


def with_links(snapshot: Snapshot, source: Source) -> Snapshot:
    """Return the snapshot with paths between the cards of its nodes."""
    nodes = []
    for node in snapshot.nodes:
        cards = sum(gpu.count for gpu in node.gpus)
        pairs = [pair for pair in combinations(range(cards), 2) if source.one_in(2)]
        links = tuple(Link(a=a, b=b, kind="NVLINK", width=source.number(1, 4)) for a, b in pairs)
        nodes.append(msgspec.structs.replace(node, links=links))
    return msgspec.structs.replace(snapshot, nodes=tuple(nodes))


def contents(instance: Instance, assignment: Assignment) -> Counter[tuple[int, tuple[int, ...], tuple[int, ...]]]:
    """Return what is on each used card: node, what the card is and has left, tasks."""
    tasks: dict[tuple[int, int], list[int]] = {}
    for row, (begin, end) in enumerate(zip(assignment.offset[:-1], assignment.offset[1:], strict=True)):
        for card in assignment.cards[begin:end].tolist():
            tasks.setdefault((int(assignment.node[row]), card), []).append(row)
    return Counter(
        (node, instance.classes[instance.node_class[node]].cards[card], tuple(rows))
        for (node, card), rows in tasks.items()
    )


@given(snapshots(), st.randoms(use_true_random=False))
def test_only_interchangeable_cards_move(snapshot: Snapshot, choices: random.Random) -> None:
    source = Source(choices.randint)
    snapshot = refuse_unhonoured(verified(with_links(snapshot, source)))
    instance = compile_snapshot(snapshot)
    before = assignment_of(instance, valid_rows(source, snapshot))
    after = by_links(instance, before)
    assert contents(instance, after) == contents(instance, before)
    for name in ("job", "leaf", "task", "node", "offset"):
        assert (getattr(after, name) == getattr(before, name)).all()
    one, other = (name_tasks(instance, assignment).links for assignment in (before, after))
    if isinstance(one, list) and isinstance(other, list):
        assert sum(filter(None, other)) >= sum(filter(None, one))
    again = by_links(instance, after)
    assert (again.cards == after.cards).all()


@given(snapshots(), st.randoms(use_true_random=False), st.sampled_from(["best-fit", "fgd", "worst-fit"]))
def test_plans_are_checked(snapshot: Snapshot, choices: random.Random, solver: str) -> None:
    snapshot = with_links(snapshot, Source(choices.randint))
    plan = pl.solve(snapshot, solver=solver)
    assert plan.checked
    assert not plan.notes or "refused" not in " ".join(plan.notes)


def test_many_nodes_are_solved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    solved: list[exact.Wanted] = []
    best_sets = exact.best_sets

    def counted(near: object, wanted: exact.Wanted) -> tuple[list[int], int]:
        solved.append(wanted)
        return best_sets(near, wanted)  # type: ignore[arg-type]

    monkeypatch.setattr(exact, "best_sets", counted)
    nodes = Node(name="n", count=300, gpus=(Gpu(model="A", count=4),), links=PAIRS)
    jobs = (Job(name="j", count=600, groups=(TaskGroup(name="g", task=Task(gpus=2)),)),)
    instance = compile_snapshot(Snapshot(nodes=(nodes,), jobs=jobs))
    halves = product(range(300), ((0, 1), (2, 3)))
    rows = ((2 * node + half[0] // 2, 0, 0, node, half) for node, half in halves)
    after = by_links(instance, Assignment.of(rows))
    assert len(solved) == 1
    assert set(map(tuple, after.cards.reshape(-1, 2).tolist())) == {(0, 3), (1, 2)}
