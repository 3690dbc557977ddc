"""The choice among alike cards where nodes list NUMA zones, alone or beside paths."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from itertools import combinations, permutations

import msgspec
import numpy as np
from hypothesis import given
from zoned_strategies import zoned_snapshots

import placement as pl
from placement.check import check
from placement.compile import compile as compile_snapshot
from placement.heuristics import HEURISTICS
from placement.instance import Assignment, Instance
from placement.links import by_links
from placement.links.scale import by_zones, same_zone, table
from placement.naming import name_tasks
from placement.numa import without_zones
from placement.snapshot import (
    Gpu,
    Job,
    Link,
    Node,
    NumaZone,
    PcieSwitch,
    Running,
    RunningTask,
    Snapshot,
    Task,
    TaskGroup,
)
from placement.solver import Limits

ODD = (NumaZone(id=0, gpus=(0, 2)), NumaZone(id=1, gpus=(1, 3)))
"""Cards 0 and 2 are in one zone, 1 and 3 in the other."""
ALL_ALIKE = tuple(Link(a=a, b=b, kind="NVLINK", width=2) for a, b in combinations(range(4), 2))


def job(name: str, gpus: int, **task: object) -> Job:
    return Job(name=name, groups=(TaskGroup(name="g", task=Task(gpus=gpus, **task)),))  # type: ignore[arg-type]


def runs(name: str, *gpus: int) -> Job:
    groups = (TaskGroup(name="g", task=Task(gpus=len(gpus))),)
    return Job(name=name, groups=groups, running=Running(tasks=(RunningTask(group="g", index=0, node="n", gpus=gpus),)))


def cluster(*jobs: Job, zones: tuple[NumaZone, ...] = ODD, links: tuple[Link, ...] = (), cards: int = 4) -> Snapshot:
    return Snapshot(nodes=(Node(name="n", gpus=(Gpu(model="A", count=cards),), zones=zones, links=links),), jobs=jobs)


def chosen(snapshot: Snapshot, *rows: Sequence[int]) -> list[list[int]]:
    """Return the cards that unbound tasks get after they were given these, in the order of the pending jobs."""
    instance = compile_snapshot(snapshot)
    assert not instance.node_cards
    given_ = Assignment.of([(number, 0, 0, 0, tuple(row)) for number, row in enumerate(rows)])
    return name_tasks(instance, given_).gpus


# --- by hand -------------------------------------------------------------------------------------------------


def test_pairs_as_nvidia_smi_would_name_them() -> None:
    zones = (
        NumaZone(id=0, gpus=(0, 1, 2), switches=(PcieSwitch(name="p", gpus=(0, 2)),)),
        NumaZone(id=1, gpus=(3,)),
    )
    assert by_zones(zones, 4).tolist() == [[0, 20, 50, 10], [20, 0, 20, 10], [50, 20, 0, 10], [10, 10, 10, 0]]
    assert same_zone(zones, 4).tolist() == [[a // 3 == b // 3 for b in range(4)] for a in range(4)]


def test_cards_of_one_zone_go_together_without_paths() -> None:
    # {0, 1} and {2, 3} are SYS, 10 each; {0, 2} and {1, 3} are NODE, 20 each
    for numa in ("none", "best-effort"):
        found = chosen(cluster(job("a", 2, numa=numa), job("b", 2, numa=numa)), [0, 1], [2, 3])
        assert sorted(found) == [[0, 2], [1, 3]]
    # one single card breaks one pair at most: what stays free is the other two and one
    assert chosen(cluster(job("a", 1), job("b", 1)), [0], [1]) in ([[0], [2]], [[2], [0]], [[1], [3]], [[3], [1]])


def test_switches_come_before_zones() -> None:
    # both pairs are in one zone, {0, 3} and {1, 2} below a switch each: PIX 50 is better than NODE 20
    switches = (PcieSwitch(name="p", gpus=(0, 3)), PcieSwitch(name="q", gpus=(1, 2)))
    zones = (NumaZone(id=0, gpus=(0, 1, 2, 3), switches=switches), NumaZone(id=1))
    assert sorted(chosen(cluster(job("a", 2), job("b", 2), zones=zones), [0, 1], [2, 3])) == [[0, 3], [1, 2]]


def test_a_plan_states_no_score_of_what_is_not_listed() -> None:
    plan = pl.solve(cluster(job("a", 2)), solver="best-fit")
    assert plan.checked
    assert (plan.tasks.links, plan.tasks.zones) == (msgspec.UNSET, plan.tasks.zones)
    assert plan.tasks.gpus in ([[0, 2]], [[1, 3]])
    said = msgspec.structs.replace(plan.tasks, links=[20])
    (wrong,) = map(str, check(cluster(job("a", 2)), msgspec.structs.replace(plan, tasks=said)))
    assert wrong == "links: tasks[0]: the cards of a on n score nothing, and the plan says 20"


def test_equal_paths_are_decided_by_zone() -> None:
    # all pairs are NVLINK of 2 lanes: 200 whichever is taken, and so it is stated
    snapshot = cluster(job("a", 2), job("b", 2), links=ALL_ALIKE)
    assert sorted(chosen(snapshot, [0, 1], [2, 3])) == [[0, 2], [1, 3]]
    plan = pl.solve(snapshot, solver="best-fit")
    assert plan.checked
    assert (sorted(plan.tasks.gpus), plan.tasks.links) == ([[0, 2], [1, 3]], [200, 200])


def test_a_better_path_comes_before_the_zone() -> None:
    # {0, 1} has one lane more than all others and lies across zones: 300 + 200 is better than 200 + 200
    links = (Link(a=0, b=1, kind="NVLINK", width=3), *ALL_ALIKE[1:])
    assert sorted(chosen(cluster(job("a", 2), job("b", 2), links=links), [0, 2], [1, 3])) == [[0, 1], [2, 3]]


def test_more_cards_than_are_enumerated() -> None:
    # twenty cards, those of one parity in a zone; five tasks of four: 2 or 3 in a zone, the fifth half and half
    zones = (NumaZone(id=0, gpus=tuple(range(0, 20, 2))), NumaZone(id=1, gpus=tuple(range(1, 20, 2))))
    snapshot = cluster(*(job(f"j{number}", 4) for number in range(5)), zones=zones, cards=20)
    found = chosen(snapshot, *(range(4 * number, 4 * number + 4) for number in range(5)))
    assert sorted(len({card % 2 for card in row}) for row in found) == [1, 1, 1, 1, 2]


def test_bound_tasks_keep_their_zones() -> None:
    # the single-zone task is bound to the zone of its two cards, though a path of 9 lanes crosses the zones
    links = (Link(a=0, b=1, kind="NVLINK", width=9),)
    plan = pl.solve(cluster(job("a", 2, numa="single-numa-node"), job("b", 1), links=links), solver="best-fit")
    assert plan.checked
    assert plan.tasks.gpus[0] in ([0, 2], [1, 3])
    assert plan.tasks.links == [10, None]


# --- everything tried ----------------------------------------------------------------------------------------


def test_against_all_permutations() -> None:
    """Sets score best by paths, then by pairs in one zone, then what stays free does, in that order."""
    changed = 0
    for seed in range(100):
        source = random.Random(seed)
        cards = source.randint(2, 6)
        zone_of = [source.randint(0, 1) for _ in range(cards)]
        zones = tuple(NumaZone(id=z, gpus=tuple(c for c in range(cards) if zone_of[c] == z)) for z in (0, 1))
        links = tuple(
            Link(a=a, b=b, kind="NVLINK", width=source.randint(1, 2))
            for a, b in combinations(range(cards), 2)
            if seed % 2 and source.random() < 0.5
        )
        order, rows = source.sample(range(cards), cards), list[list[int]]()
        while order and source.random() < 0.8:
            size = source.randint(1, min(4, len(order)))
            rows.append(sorted(order[:size]))
            del order[:size]
        near = table(links, cards) if links else by_zones(zones, cards)
        same = np.triu(same_zone(zones, cards), 1) if links else np.zeros((cards, cards), dtype=np.int64)

        def worth(sets: Sequence[Sequence[int]]) -> tuple[int, ...]:
            free = [card for card in range(cards) if not any(card in row for row in sets)]  # noqa: B023
            return tuple(
                sum(int(score[a, b]) for row in rows_ for a, b in combinations(sorted(row), 2))
                for rows_ in (sets, [free])
                for score in (near, same)  # noqa: B023
            )

        best = max(worth([[to[card] for card in row] for row in rows]) for to in permutations(range(cards)))
        snapshot = cluster(
            *(job(f"j{n}", len(row)) for n, row in enumerate(rows)), zones=zones, links=links, cards=cards
        )
        found = chosen(snapshot, *rows)
        assert worth(found) == best
        changed += found != rows
    assert changed > 30


# --- any snapshot --------------------------------------------------------------------------------------------


def contents(instance: Instance, assignment: Assignment) -> Counter[tuple[int, object, int, tuple[int, ...]]]:
    """Return what is on each used card: node, what the card is and has left, its zone where that counts, tasks."""
    tasks: dict[tuple[int, int], list[int]] = {}
    for row, (begin, end) in enumerate(zip(assignment.offset[:-1], assignment.offset[1:], strict=True)):
        for card in assignment.cards[begin:end].tolist():
            tasks.setdefault((int(assignment.node[row]), card), []).append(row)
    found: Counter[tuple[int, object, int, tuple[int, ...]]] = Counter()
    for (node, card), rows in tasks.items():
        own = instance.classes[instance.node_class[node]]
        found[node, own.cards[card], -1 if own.zones is None else own.zones.card[card], tuple(rows)] += 1
    return found


@given(zoned_snapshots())
def test_only_interchangeable_cards_move(snapshot: Snapshot) -> None:
    instance = compile_snapshot(snapshot)
    result = HEURISTICS["first-fit"].solve(instance, objectives=("tasks",), limits=Limits())
    before, bound = without_zones(instance, result.assignment)
    after = by_links(instance, before)
    assert contents(instance, after) == contents(instance, before)
    for name in ("job", "leaf", "task", "node", "offset"):
        assert np.array_equal(getattr(after, name), getattr(before, name))
    again = by_links(instance, after)
    assert np.array_equal(again.cards, after.cards)
    if not instance.zoned:
        assert not bound.any()
        assert before is result.assignment
