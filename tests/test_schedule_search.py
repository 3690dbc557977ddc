"""The search for schedules: few jobs settled for good against brute force, orders improved, cards for counts."""

from __future__ import annotations

import math
import time
from collections import Counter
from itertools import combinations, permutations, product
from random import Random

import msgspec
import pytest
from brute_schedules import optimum

import placement
from placement.scheduling.baselines import BASELINES, baseline
from placement.scheduling.bounds.prove import Proof
from placement.scheduling.compile import compile_work
from placement.scheduling.counts import counted
from placement.scheduling.devices import stretches_of
from placement.scheduling.few import labels
from placement.scheduling.moves.bits import Bits, Future
from placement.scheduling.moves.improve import Improver
from placement.scheduling.moves.moving import Movable, Turns, move
from placement.scheduling.passes import Pass, parallel, present, serial
from placement.snapshot import Duration, Gpu, Job, Node, Running, RunningTask, Snapshot, Task, TaskGroup
from placement.solver import Limits

SIZE = 4
SLOW = {"gavel", "tiresias-las"}


def job(name: str, tasks: int, cards: int, seconds: int, weight: int = 1, submit: int = 0, **more: object) -> Job:
    return Job(
        name=name,
        groups=(TaskGroup(name="w", count=tasks, task=Task(gpus=cards)),),
        duration=Duration(seconds=seconds, levels={"cluster": 1.0}),
        weight=weight,
        submit_time=submit,
        **more,  # type: ignore[arg-type]
    )


def cluster(nodes: int, *jobs: Job) -> Snapshot:
    return Snapshot(nodes=(Node(name="n", count=nodes, gpus=(Gpu(model="A", count=SIZE),)),), jobs=jobs)


def random_cluster(seed: int, most: int = 5) -> Snapshot:
    rng = Random(seed)
    nodes = rng.randint(1, 3)
    jobs = []
    for number in range(rng.randint(2, most)):
        tasks = rng.choice([1, 1, 1, min(2, nodes)])
        cards = SIZE if tasks > 1 else rng.randint(1, SIZE)
        release = rng.choice([0, 0, rng.randint(1, 4)])
        jobs.append(job(f"j{number}", tasks, cards, rng.randint(1, 5), rng.randint(1, 4), release))
    return cluster(nodes, *jobs)


def brute(snapshot: Snapshot) -> int:
    """Return the least weighted completion time: all orders, and for each job all nodes, each as early as it can be."""
    nodes = range(snapshot.nodes[0].count)
    asked = [(one.groups[0].count, one.groups[0].task.gpus) for one in snapshot.jobs if one.groups[0].task is not None]
    best = 10**9
    for order in permutations(range(len(snapshot.jobs))):
        for choice in product(*(list(combinations(nodes, asked[number][0])) for number in order)):
            best = min(best, _value(snapshot, asked, order, choice, best))
    return best


def _value(
    snapshot: Snapshot,
    asked: list[tuple[int, int]],
    order: tuple[int, ...],
    choice: tuple[tuple[int, ...], ...],
    best: int,
) -> int:
    used: Counter[tuple[int, int]] = Counter()
    value = 0
    for number, places in zip(order, choice, strict=True):
        one = snapshot.jobs[number]
        assert one.duration is not None
        assert one.submit_time is not None
        length, cards, start = int(one.duration.seconds), asked[number][1], int(one.submit_time)
        while any(used[node, start + k] + cards > SIZE for node in places for k in range(length)):
            start += 1
        for node in places:
            for k in range(length):
                used[node, start + k] += cards
        value += one.weight * (start + length - int(one.submit_time))
        if value >= best:
            return best
    return value


def test_by_hand() -> None:
    # One node of 4 cards. wide: 4 cards, 2 s, weight 1; tall: 1 card, 4 s, weight 1; flat: 4 cards, 1 s, weight 4.
    # flat first (4 x 1), then wide (1 x 3), then tall (1 x 7): 14. With tall before wide: 4 + 5 + 7 = 16.
    snapshot = cluster(1, job("wide", 1, 4, 2), job("tall", 1, 1, 4), job("flat", 1, 4, 1, 4))
    found = placement.schedule(snapshot)
    assert (found.value, found.bound, found.status) == (14.0, 14.0, "proven")
    assert dict(zip(found.jobs.job, found.jobs.start, strict=True)) == {"wide": 1.0, "tall": 3.0, "flat": 0.0}


@pytest.mark.parametrize("seed", range(16))
def test_few_jobs_are_settled_as_by_brute_force(seed: int) -> None:
    snapshot = random_cluster(seed, 4)
    found = placement.schedule(snapshot)
    assert (found.value, found.status) == (brute(snapshot), "proven")


def test_seconds_beside_years_are_not_settled_moment_by_moment() -> None:
    """Few starts come into question, but each would hold cards for hundreds of millions of moments: no prices."""
    nodes = (Node(name="n", gpus=(Gpu(model="A", count=SIZE),)),)
    busy = Running(tasks=(RunningTask(group="w", index=0, node="n", gpus=(0,)),))
    for others in ((job("y", 1, 4, 315_360_000),), (job("x", 1, 1, 1), job("r", 1, 1, 315_360_000, running=busy))):
        snapshot = Snapshot(nodes=nodes, jobs=(job("s", 1, 2, 3, 1000), *others))
        by_counts = counted(compile_work(snapshot))
        assert by_counts is not None
        waits = [number for number, one in enumerate(snapshot.jobs) if one.running is None]
        few = labels.Few.of(by_counts, parallel(by_counts, waits, present(by_counts)))
        assert few is not None
        assert not few.priced
        found = placement.schedule(snapshot)
        assert (found.status, found.stop) == ("proven", "optimal")


@pytest.mark.parametrize("seed", range(24))
def test_what_lasts_for_years_is_settled_as_by_brute_force(seed: int) -> None:
    """As drawn, but some of the jobs take a hundred million times as long, and some half a second more."""
    rng, drawn = Random(seed), random_cluster(seed, 4)
    jobs = [
        msgspec.structs.replace(one, duration=msgspec.structs.replace(one.duration, seconds=seconds))
        for one in drawn.jobs
        if one.duration is not None
        for seconds in (one.duration.seconds * rng.choice((1, 1, 1e8)) + rng.choice((0, 0, 0.5)),)
    ]
    nodes = tuple(Node(name=f"n{node}", gpus=drawn.nodes[0].gpus) for node in range(drawn.nodes[0].count))
    known = optimum(Snapshot(nodes=nodes, jobs=tuple(map(_stated, jobs))))
    assert known is not None
    found = placement.schedule(Snapshot(nodes=drawn.nodes, jobs=tuple(jobs)))
    assert (round(1000 * found.value), found.status) == (known[0], "proven")


def _stated(one: Job) -> Job:
    (group,) = one.groups
    return msgspec.structs.replace(one, groups=(msgspec.structs.replace(group, min_count=group.count),))


def test_more_than_a_few_jobs_of_years_are_left_to_the_rest_of_the_search() -> None:
    years = [job(f"y{number}", 1, 4, 315_360_000 + number) for number in range(labels.MOST_UNPRICED + 1)]
    for count, few in ((labels.MOST_UNPRICED, True), (labels.MOST_UNPRICED + 1, False)):
        by_counts = counted(compile_work(cluster(1, *years[:count])))
        assert by_counts is not None
        first = parallel(by_counts, range(count), present(by_counts))
        assert (labels.Few.of(by_counts, first) is not None) == few


@pytest.mark.parametrize("seed", range(40, 46))
def test_nodes_together_bound_what_nodes_apart_reach(seed: int) -> None:
    snapshot = random_cluster(seed, 4)
    work = compile_work(snapshot)
    by_counts = counted(work)
    assert by_counts is not None
    first = parallel(by_counts, range(work.jobs), present(by_counts))
    few = labels.Few.of(by_counts, first)
    if few is None:
        pytest.fail("these are few jobs on nodes that are alike")
    together, apart = few.settle(first.value, False), few.settle(first.value, True)
    assert together is not None
    assert apart is not None
    assert together.bound <= apart.bound == 1000 * brute(snapshot) <= first.value


@pytest.mark.parametrize("seed", range(46, 58))
def test_windows_of_ends_leave_the_best_in(seed: int) -> None:
    snapshot = random_cluster(seed)
    work = compile_work(snapshot)
    by_counts = counted(work)
    assert by_counts is not None
    first = parallel(by_counts, range(work.jobs), present(by_counts))
    few = labels.Few.of(by_counts, first)
    assert few is not None
    proof = Proof(work, math.inf, (), 0)
    proof.root(math.inf)
    plain, settled = few.settle(first.value, True), few.settle(first.value, True, proven=proof.ends(first.value))
    assert plain is not None
    assert settled is not None
    assert settled.bound == plain.bound == 1000 * brute(snapshot)
    if settled.order:
        assert serial(by_counts, settled.order, present(by_counts)).value == settled.bound
    # nothing is better than the best, and nothing of what is as good is shut out
    again = few.settle(plain.bound, True, proven=proof.ends(plain.bound))
    assert again is not None
    assert again.bound == plain.bound
    worse = few.settle(plain.bound + 1000, True, proven=proof.ends(plain.bound + 1000))
    assert worse is not None
    assert serial(by_counts, worse.order, present(by_counts)).value == worse.bound == plain.bound


@pytest.mark.parametrize("seed", range(3))
def test_never_worse_than_a_rule(seed: int) -> None:
    rng = Random(seed)
    jobs = [
        job(f"j{n}", 1, rng.randint(1, SIZE), rng.randint(1, 50), rng.randint(1, 5), rng.randint(0, 60))
        for n in range(18)
    ]
    snapshot = cluster(2, *jobs)
    found = placement.schedule(snapshot)
    work = compile_work(snapshot)
    rules = {name: baseline(work, name).table.value(work) / 1000 for name in BASELINES.keys() - SLOW}
    assert found.bound is not None
    assert found.bound <= found.value <= min(rules.values())


def test_moves_only_make_it_better_and_each_pass_is_whole() -> None:
    rng = Random(5)
    jobs = [
        job(f"j{n}", 1, rng.randint(1, SIZE), rng.randint(1, 30), rng.randint(1, 5), rng.randint(0, 40))
        for n in range(30)
    ]
    by_counts = counted(compile_work(cluster(2, *jobs)))
    assert by_counts is not None
    base = present(by_counts)
    begin = parallel(by_counts, range(30), base)
    improver = Improver.of(by_counts, base, begin.starts, 0)
    assert improver is not None
    values = [begin.value]
    for moves in (10, 50, 200):
        best = improver.run(lambda done, moves=moves: done >= moves)  # type: ignore[misc]
        # what is remembered of passes on the way gives what a whole pass over the same order gives
        assert serial(by_counts, [start[0] for start in best.starts], base).value == best.value
        values.append(best.value)
    assert values == sorted(values, reverse=True)
    assert values[-1] < values[0]


def test_moves_of_several_jobs_lose_none_and_keep_the_order_of_jobs() -> None:
    rng = Random(7)
    jobs = [
        job(
            f"j{n}",
            1,
            rng.randint(1, SIZE),
            rng.randint(1, 30),
            rng.randint(1, 5),
            after=(f"j{n - 5}",) if n % 3 == 0 and n >= 5 else (),
        )
        for n in range(24)
    ]
    work = compile_work(cluster(2, *jobs))
    by_counts = counted(work)
    assert by_counts is not None
    base = present(by_counts)
    improver = Improver.of(by_counts, base, parallel(by_counts, range(24), base).starts, 0)
    assert improver is not None
    seen = []
    for moves in range(20, 420, 20):
        best = improver.run(lambda done, moves=moves: done >= moves)  # type: ignore[misc]
        begin = {one: start for one, start, _, _ in best.starts}
        end = {one: until for one, _, until, _ in best.starts}
        assert sorted(begin) == list(range(24))
        assert all(end[other] <= begin[one] for one in begin for other in work.after[one])
        assert best.value == sum(by_counts.weight[one] * end[one] for one in end)
        seen.append(best.value)
    assert seen == sorted(seen, reverse=True)
    assert seen[-1] < seen[0]


def test_there_are_no_moves_where_their_part_of_the_time_is_over() -> None:
    work = compile_work(random_cluster(3))
    by_counts = counted(work)
    assert by_counts is not None
    base = present(by_counts)
    first = parallel(by_counts, range(work.jobs), base)
    offered: list[Pass] = []
    limits = Limits(time.monotonic() - 1)
    assert move(Movable(by_counts, base, {}), Turns(first, 0, 3), limits, lambda: False, offered.append) is first
    assert offered == []


def test_cards_are_kept_for_the_whole_of_a_stretch() -> None:
    running = Running(tasks=(RunningTask(group="w", index=0, node="n-0", gpus=(1, 2)),))
    old = Job(
        name="old",
        groups=(TaskGroup(name="w", task=Task(gpus=2)),),
        duration=Duration(seconds=3),
        running=running,
    )
    jobs = [job(f"j{n}", 1, 1 + n % 3, 1 + n % 4, 1, n % 5) for n in range(12)]
    by_counts = counted(compile_work(cluster(2, old, *jobs)))
    assert by_counts is not None
    found = stretches_of(by_counts, parallel(by_counts, range(1, 13), present(by_counts)).starts)
    assert [one.tasks for one in found if one.job == 0] == [((0, 0, (0, (1, 2))),)]
    for one, other in combinations(found, 2):
        if one.start < other.end and other.start < one.end:
            held = [{(node, card) for _, _, (node, cards) in each.tasks for card in cards} for each in (one, other)]
            assert not held[0] & held[1]


def test_models_and_order_and_deadlines() -> None:
    # c and d have to end at 5, which they can on the fast card alone, one after the other; e could not even alone. So a
    # and b, in this order, come behind them: 4 to 6 and 6 to 8. Before them they would leave c or d out, or both.
    # c goes first, being heavier: 2 x 2 + 4 x 1 + 6 x 9 + 8 x 9 = 134.
    fast, slow = Node(name="f", gpus=(Gpu(model="F", count=1),)), Node(name="s", gpus=(Gpu(model="S", count=1),))

    def one(name: str, **more: object) -> Job:
        duration = Duration(seconds=8, gpu_models={"F": 0.25})
        group = TaskGroup(name="w", task=Task(gpus=1))
        return Job(name=name, groups=(group,), duration=duration, **more)  # type: ignore[arg-type]

    due = {"deadline": 5.0, "hard_deadline": True}
    late = one("e", deadline=1.0, hard_deadline=True)
    jobs = (one("a", weight=9), one("b", weight=9, after=("a",)), one("c", weight=2, **due), one("d", **due), late)
    found = placement.schedule(Snapshot(nodes=(fast, slow), jobs=jobs))
    assert dict(zip(found.jobs.job, found.jobs.end, strict=True)) == {"a": 6.0, "b": 8.0, "c": 2.0, "d": 4.0}
    assert found.value == 134
    assert [(out.job, out.reason) for out in found.left_out] == [("e", "late")]


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_bits_find_what_counts_find(seed: int, apart: bool) -> None:
    # Two models, gangs of several tasks of which a node takes more than one, and cards that are held at first.
    rng = Random(seed)
    nodes = tuple(Node(name=model, count=rng.randint(2, 4), gpus=(Gpu(model=model, count=SIZE),)) for model in "AB")
    old = Job(
        name="old",
        groups=(TaskGroup(name="w", task=Task(gpus=2)),),
        duration=Duration(seconds=7),
        running=Running(tasks=(RunningTask(group="w", index=0, node="A-0", gpus=(1, 2)),)),
    )
    jobs = [
        job(f"j{n}", rng.randint(1, 3), rng.choice([1, 1, 2]), rng.randint(1, 9), 1, rng.randint(0, 20))
        for n in range(40)
    ]
    by_counts = counted(compile_work(Snapshot(nodes=nodes, jobs=(old, *jobs))))
    assert by_counts is not None
    assert all(kind.nodes is by_counts.pools[kind.pool] for gang in by_counts.gangs for kind in gang.kinds)
    profile = present(by_counts)
    # bits of all nodes, or of each pool by itself, of which no two share nodes
    many = [Bits(by_counts, nodes) for nodes in by_counts.pools] if apart else [Bits(by_counts)]
    laid = [(bits, Future.of(bits, profile)) for bits in many] * (1 if apart else len(by_counts.pools))
    for number in range(1, 41):
        gang = by_counts.gangs[by_counts.job_class[number]]
        kind = rng.randrange(len(gang.kinds))
        after = by_counts.release[number]
        expected = profile.earliest(number, after, (gang.kinds[kind],))
        bits, future = laid[gang.kinds[kind].pool]
        found = future.earliest(number, bits.ask(by_counts.job_class[number], kind), after)
        assert found is not None
        assert found[:3] == expected
        profile.take(found[2], gang.cards, found[0], found[1])
        future.take(found[3], found[0], found[1])
