"""Few jobs settled by their starts, and what the rest costs from each moment on: against brute force over nodes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from random import Random

import numpy as np
import pytest
from brute_relaxed import kind, of, there

import placement
from placement.scheduling.bounds.prices import Prices
from placement.scheduling.bounds.prove import Proof
from placement.scheduling.bounds.remaining import Ends, Job, Remaining
from placement.scheduling.bounds.spans import Span
from placement.scheduling.bounds.tolls import Tolls
from placement.scheduling.compile import compile_work
from placement.scheduling.counts import Counted, counted
from placement.scheduling.few import labels
from placement.scheduling.few.arranged import Arranged
from placement.scheduling.passes import Pass, parallel, present
from placement.snapshot import Duration, Gpu, Node, Running, RunningTask, Snapshot, Task, TaskGroup
from placement.snapshot import Job as Asked

SIZE = 4


def cluster(nodes: int, jobs: Sequence[Asked]) -> Snapshot:
    gpus = (Gpu(model="A", count=SIZE),)
    return Snapshot(nodes=tuple(Node(name=f"n-{node}", gpus=gpus) for node in range(nodes)), jobs=tuple(jobs))


def waiting(number: int, tasks: int, cards: int, seconds: int, weight: int = 1, submit: int = 0) -> Asked:
    return Asked(
        name=f"j{number}",
        groups=(TaskGroup(name="w", count=tasks, task=Task(gpus=cards)),),
        duration=Duration(seconds=seconds, levels={"cluster": 1.0}),
        weight=weight,
        submit_time=submit,
    )


def held(number: int, node: int, cards: range, seconds: int) -> Asked:
    """Return a job that runs now."""
    where = RunningTask(group="w", index=0, node=f"n-{node}", gpus=tuple(cards))
    return Asked(
        name=f"r{number}",
        groups=(TaskGroup(name="w", task=Task(gpus=len(cards))),),
        duration=Duration(seconds=seconds),
        running=Running(tasks=(where,)),
    )


def drawn(seed: int) -> Snapshot:
    """Return a few gangs on a few nodes, on some of which something runs."""
    rng = Random(seed)
    nodes = rng.randint(1, 3)
    jobs = []
    for number in range(rng.randint(2, 5)):
        tasks = rng.choice([1, 1, 1, min(2, nodes)])
        cards = SIZE if tasks > 1 else rng.randint(1, SIZE)
        jobs.append(
            waiting(number, tasks, cards, rng.randint(1, 5), rng.randint(1, 4), rng.choice([0, 0, rng.randint(1, 4)]))
        )
    busy = [node for node in range(nodes) if rng.random() < 0.3]
    jobs += [held(node, node, range(rng.randint(1, SIZE)), rng.randint(1, 4)) for node in busy]
    return cluster(nodes, jobs)


def best_of(snapshot: Snapshot) -> int:
    """Return the least weighted completion time of what waits: second by second, whoever may start does or does not."""
    nodes = len(snapshot.nodes)
    used = [[0] * 60 for _ in range(nodes)]
    pending = []
    for one in snapshot.jobs:
        task, duration = one.groups[0].task, one.duration
        assert task is not None
        assert duration is not None
        if one.running is None:
            pending.append(
                (one.groups[0].count, task.gpus, int(duration.seconds), one.weight, int(one.submit_time or 0))
            )
        else:
            node = int(one.running.tasks[0].node.split("-")[1])
            for moment in range(int(duration.seconds)):
                used[node][moment] += task.gpus
    least = [10**9]

    def follow(left: list[tuple[int, int, int, int, int]], value: int, after: tuple[int, int]) -> None:
        rest = sum(weight * (max(after[0] - release, 0) + run) for _, _, run, weight, release in left)
        if value + rest >= least[0]:
            return
        if not left:
            least[0] = value
            return
        for place, (tasks, cards, run, weight, release) in enumerate(left):
            others = left[:place] + left[place + 1 :]
            for some in combinations(range(nodes), tasks):
                for start in range(max(after[0], release), 40):
                    if all(used[node][start + k] + cards <= SIZE for node in some for k in range(run)):
                        for node in some:
                            for k in range(run):
                                used[node][start + k] += cards
                        follow(others, value + weight * (start + run - release), (start, place))
                        for node in some:
                            for k in range(run):
                                used[node][start + k] -= cards
                        break

    follow(pending, 0, (0, -1))
    return least[0]


def few_of(snapshot: Snapshot) -> tuple[Counted, Pass, labels.Few, Proof]:
    """Return the work, a schedule, and what is proven."""
    work = compile_work(snapshot)
    by_counts = counted(work)
    assert by_counts is not None
    jobs = [job for job in range(work.jobs) if job not in work.ongoing]
    first = parallel(by_counts, jobs, present(by_counts))
    few = labels.Few.of(by_counts, first)
    assert few is not None
    proof = Proof(work, math.inf, (), 0)
    assert proof.root(math.inf)
    return by_counts, first, few, proof


def settled_as_by_brute_force(seed: int) -> None:
    snapshot = drawn(seed)
    by_counts, first, few, proof = few_of(snapshot)
    best = 1000 * best_of(snapshot)
    for value in (first.value, best + 1000, best):
        proven = proof.ends(value)
        assert proven is not None
        found = few.arrange(value, proven)
        assert found is not None
        assert found.value == best, seed
        assert bool(found.starts) == (value > best), seed
        if found.starts:
            assert fits(by_counts, found), seed


def fits(by_counts: Counted, found: Pass) -> bool:
    """Return whether a schedule holds no more than there is, and is worth what it says."""
    base = present(by_counts)
    for job, start, end, nodes in found.starts:
        gang = by_counts.gangs[by_counts.job_class[job]]
        if start < by_counts.release[job] or sum(tasks for _, tasks in nodes) != gang.tasks:
            return False
        base.take(nodes, gang.cards, start, end)
    value = sum(by_counts.weight[job] * (end - by_counts.release[job]) for job, _, end, _ in found.starts)
    return value == found.value and bool((base.free() >= 0).all())


@pytest.mark.parametrize("seed", range(40))
def test_few_jobs_are_settled_by_their_starts(seed: int) -> None:
    settled_as_by_brute_force(seed)


# --- by hand -------------------------------------------------------------------------------------------------


def test_cards_of_two_nodes_are_not_those_of_one() -> None:
    # Two nodes of 4 cards. Three gangs of 3 cards and one of 2, 2 s each: with two of 3 cards 2 cards are left, but on
    # two nodes, so that nothing fits beside them.
    jobs = (waiting(0, 1, 3, 2), waiting(1, 1, 3, 2), waiting(2, 1, 3, 2), waiting(3, 1, 2, 2))
    snapshot = cluster(2, jobs)
    _, first, few, proof = few_of(snapshot)
    proven = proof.ends(first.value + 1000)
    assert proven is not None
    found = few.arrange(first.value + 1000, proven)
    assert found is not None
    # at 0 two start, at 2 the other two, on a node each: 2 + 2 + 4 + 4
    assert found.value == 12_000
    assert placement.schedule(snapshot).value == 12


def test_jobs_lie_otherwise_than_they_would_alone() -> None:
    # Two nodes of 4 cards; a, b of 2 cards for 4 s, c of 4 cards for 2 s; what runs holds 2 cards of n-0 until 1.
    jobs = (waiting(0, 1, 2, 4), waiting(1, 1, 2, 4), waiting(2, 1, 4, 2, 3), held(0, 0, range(2), 1))
    snapshot = cluster(2, jobs)
    _, first, few, proof = few_of(snapshot)
    proven = proof.ends(first.value + 5000)
    assert proven is not None
    found = few.arrange(first.value + 5000, proven)
    assert found is not None
    # c from 0 to 2 on n-1 (3 x 2 = 6), a beside what runs from 0 to 4, b from 1 to 5: 6 + 4 + 5 = 15. With a and b on
    # n-1 first, c from 1 to 3 costs 9: 4 + 4 + 9 = 17.
    assert found.value == 15_000


def test_what_was_not_used_is_lost() -> None:
    # 4 cards at a price of 1 each. Two jobs of 3 cards and 2 s, weights 6: whatever they do each pays 3 x 2 = 6, so
    # from 0 on they cost at least 6 x 2 + 6 each, less what 4 cards are worth until 4: 2 x 18 - 16 = 20. From 2 on,
    # with none started: 2 x (6 x 4 + 6) - 4 x 2 = 52. With the first one running until 2: (12 + 6) + 6 - 16.
    relaxed = of([kind(0, 2, 3, 6), kind(1, 2, 3, 6)], there((0, 4)))
    moments = np.array([0, 4], dtype=np.int64)
    tolls = Tolls(relaxed, Prices(moments, np.array([[1.0]])), [], np.zeros(0))
    jobs = [Job(0, 0, 2, 6, 3, 1), Job(1, 0, 2, 6, 3, 1)]
    remaining = Remaining.of(Ends({}, relaxed, tolls, moments), jobs, [0, 0], [2, 2], 1)
    assert remaining is not None
    assert remaining.least(0, (), 0) == 20
    assert remaining.least(2, (), 0) == 52
    assert remaining.least(0, ((2, 0),), 1) == 8
    # from 2 on the first one is over
    assert remaining.least(2, (), 1) == 6 * 4 + 6 - 8
    # and nothing costs less than 0 when all have started
    assert remaining.least(2, ((4, 1),), 3) == 0


def test_what_is_paid_for_a_length_before_a_moment_is_left_out() -> None:
    # Two jobs of 3 s, of which one counts where it runs on for 1 s and the other at any moment of that: together 1 at
    # most, at a price of 2 (over 8 s: 16). From 0 on the first costs 3 + 2 x (3 - 1), and the second, which at 0 has no
    # time before it to pay for, 9 + 2 x 3: 3 + 4 + 9 + 6 - 16 = 6.
    relaxed = of([kind(0, 3, 3), kind(1, 3, 3, 3)], there((0, 4)))
    moments = np.array([0, 8], dtype=np.int64)
    span = Span(0, 0, 8, 1, 1, np.array([1, 1]), 1)
    tolls = Tolls(relaxed, Prices(moments, np.array([[0.0]])), [span], np.array([16.0]))
    jobs = [Job(0, 0, 3, 1, 3, 1), Job(1, 0, 3, 3, 3, 1)]
    remaining = Remaining.of(Ends({}, relaxed, tolls, moments), jobs, [0, 0], [5, 5], 1)
    assert remaining is not None
    assert remaining.least(0, (), 0) == 3 + 4 + 9 + 6 - 16
    # from 3 on: 6 + 4, and for the second one 18 + 6, less 2 x 5; the second before 3 has nothing to pay for
    assert remaining.least(3, (), 0) == 6 + 4 + 18 + 6 - 10
    # the first from 0 until 3 pays for 1 and 2 to 2: at 1 for 1 s. The second starts at 1: 12 + 3 x 2
    assert remaining.least(1, ((3, 0),), 1) == 2 * 1 + 12 + 6 - 14


def test_it_is_given_up_after_so_many_beginnings() -> None:
    jobs = [Job(number, 0, 2, 1, 1, 1) for number in range(4)]
    relaxed = of([kind(number, 2, 1) for number in range(4)], there((0, 4)))
    moments = np.array([0, 8], dtype=np.int64)
    tolls = Tolls(relaxed, Prices(moments, np.array([[0.0]])), [], np.zeros(0))
    remaining = Remaining.of(Ends({}, relaxed, tolls, moments), jobs, [0] * 4, [4] * 4, 1)
    assert remaining is not None
    search = Arranged(jobs, ([0] * 4, [4] * 4), SIZE, [()], remaining)
    assert search.run(9, 3, math.inf) is None
    found = search.run(9, 1000, math.inf)
    assert found is not None
    assert (found[0], len(found[1])) == (8, 4)
    # what counts otherwise is not told apart
    assert Remaining.of(Ends({}, relaxed, tolls, moments), jobs[:3], [0] * 3, [4] * 3, 1) is None
