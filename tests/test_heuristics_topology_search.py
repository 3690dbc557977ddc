"""The search for domains ends in time, counted in what it tries and not by the clock."""

from __future__ import annotations

from itertools import combinations
from typing import ClassVar

import numpy as np
from tied_cases import CARD, one, rack, solve

from placement.compile import compile as compile_snapshot
from placement.heuristics.balance import ends, even_splits
from placement.heuristics.domain_order import BEST_FIT
from placement.heuristics.domains import Domains
from placement.heuristics.first_fit import FirstFit
from placement.heuristics.gangs import Spot
from placement.heuristics.greedy import Greedy
from placement.heuristics.nodes import Nodes
from placement.heuristics.regions import MOST_TRIES_OF_A_JOB
from placement.heuristics.ties import TiedGang
from placement.instance import Bools
from placement.snapshot import Affinity, Job, Node, Slice, Snapshot, TaskGroup, Topology
from placement.solver import Limits


def apart(groups: int) -> Job:
    """Return a job of groups of one task, each pair of which must not share a rack."""
    names = [f"g{number}" for number in range(groups)]
    affinity = tuple(Affinity(a=a, b=b, level="rack", kind="apart") for a, b in combinations(names, 2))
    return one(*(TaskGroup(name=name, task=CARD) for name in names), affinity=affinity)


class CountingFirstFit(FirstFit):
    """First fit that counts its placements and gives up when there are too many."""

    name: ClassVar[str] = "counting-first-fit"
    placements: ClassVar[int] = 0

    def cards(self, shape: int, row: int) -> tuple[int, ...]:
        CountingFirstFit.placements += 1
        assert CountingFirstFit.placements < 8 * (MOST_TRIES_OF_A_JOB + 8)
        return super().cards(shape, row)


class Spots:
    """Room for one task more at each call, but for some calls."""

    def __init__(self, refused: range | tuple[int, ...]) -> None:
        self.asked = 0
        self._refused = refused

    def place(self, shape: int, within: Bools | None = None) -> Spot | None:
        self.asked += 1
        assert self.asked < 2 * MOST_TRIES_OF_A_JOB
        return None if self.asked in self._refused else (0, ())

    def mark(self) -> int:
        return 0

    def undo(self, mark: int) -> None:
        pass


def gang(nodes: list[Node], job: Job, spots: Spots) -> TiedGang:
    instance = compile_snapshot(Snapshot(topology=("zone", "rack"), nodes=tuple(nodes), jobs=(job,)))
    return TiedGang(instance.job_classes[0], spots, Domains(Nodes(instance, np.arange(len(nodes)))), BEST_FIT)


def test_more_groups_apart_than_domains_are_refused_at_once() -> None:
    # 8 groups in 7 racks: 28 affinities with two ways at least to keep each
    nodes = [node for number in range(7) for node in rack(f"r{number}", 1)]
    instance = compile_snapshot(Snapshot(topology=("zone", "rack"), nodes=tuple(nodes), jobs=(apart(8),)))
    CountingFirstFit.placements = 0
    assert not len(Greedy(CountingFirstFit).solve(instance, objectives=(), limits=Limits()).assignment)


def test_many_groups_apart_each_get_a_domain() -> None:
    # 33 groups, 528 affinities
    nodes = [node for number in range(33) for node in rack(f"r{number}", 1)]
    (places,) = solve(nodes, apart(33))
    assert sorted(place for (place,) in places.values()) == sorted(node.name for node in nodes)


def test_groups_within_groups_are_refused_at_once() -> None:
    # Each of 16 groups prefers a rack and takes what it gets, and the only card is not to be had after all.
    group = TaskGroup(name="w", task=CARD)
    for number in range(16):
        group = TaskGroup(name=f"g{number}", groups=(group,), topology=Topology(preferred="rack"))
    assert not gang(rack("a", 1), one(group), Spots(range(1, 10**6))).start()


def test_a_slice_that_grows_task_by_task_ends_when_it_is_full() -> None:
    # One of three tasks must run. The other two are placed at once, which the third call refuses, then one by one.
    topology = Topology(slices=(Slice(level="rack", sizes=(3,)),))
    tied = gang(rack("a", 3), one(TaskGroup(name="w", count=3, min_count=1, task=CARD, topology=topology)), Spots((3,)))
    assert tied.start()
    tied.grow()
    assert len(tied) == 3


def test_even_splits() -> None:
    # Units of 2 members, for which there is room 5, 3 and 3 times: 10 of them lie in three domains as 3 + 3 + 4, and 9
    # and 8 as 3 + 3 + 3 and 2 + 3 + 3. The single one that must be placed comes last.
    room = np.array([5, 3, 3])
    found = list(even_splits(room, 20, 2, 2, 1))
    assert found[:3] == [(20, 3), (18, 3), (16, 3)]
    assert found[-1] == (2, 1)
    assert ends(20, 3, 2) == [6, 12, 20]
    assert ends(18, 3, 2) == [6, 12, 18]
    assert ends(7, 2, 2) == [4, 7]
    # three domains at least, and there are two
    assert list(even_splits(np.array([5, 3]), 20, 2, 2, 3)) == []
    assert list(even_splits(np.array([], dtype=np.int64), 20, 2, 2, 1)) == []
