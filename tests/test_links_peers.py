"""The choice among alike cards against the best-effort policy of NVIDIA's go-gpuallocator.

The cases are facts out of that project's tests, gpuallocator/besteffort_test.go and gpuallocator/staticdgx_test.go at
876e7b7609bb839919e4eb06ce00607db76e907e (https://github.com/NVIDIA/go-gpuallocator, Apache-2.0): which cards are free,
which one must be among them, how many are asked for one request after the other, and which it expects. The three
machines are those of its tests, as ``nvidia-smi topo -m`` prints them. There a pair with NVLink scores its PCIe path
as well; a snapshot has one path for each pair, so both tables are tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pytest
from check_cases import assignment_of

from placement.compile import compile as compile_snapshot
from placement.instance import Ints
from placement.links import by_links, exact
from placement.links.scale import BUS, LANE, table
from placement.naming import name_tasks
from placement.snapshot import Gpu, Job, Link, Node, Running, RunningTask, Snapshot, Task, TaskGroup
from placement.snapshot.read import verified

MACHINES = {
    "RTX 8000": "X NODE SYS NV2 | NODE X NV2 SYS | SYS NV2 X NODE | NV2 SYS NODE X",
    "DGX-1 P100": """
        X NV1+PHB NV1+PIX NV1+PHB NV1+SYS SYS SYS SYS | NV1+PHB X NV1+PHB NV1+PIX SYS NV1+SYS SYS SYS |
        NV1+PIX NV1+PHB X NV1+PHB SYS SYS NV1+SYS SYS | NV1+PHB NV1+PIX NV1+PHB X SYS SYS SYS NV1+SYS |
        NV1+SYS SYS SYS SYS X NV1+PHB NV1+PIX NV1+PHB | SYS NV1+SYS SYS SYS NV1+PHB X NV1+PHB NV1+PIX |
        SYS SYS NV1+SYS SYS NV1+PIX NV1+PHB X NV1+PHB | SYS SYS SYS NV1+SYS NV1+PHB NV1+PIX NV1+PHB X""",
    "DGX-1 V100": """
        X NV1+PIX NV1+PHB NV2+PHB NV2+SYS SYS SYS SYS | NV1+PIX X NV2+PHB NV1+PHB SYS NV2+SYS SYS SYS |
        NV1+PHB NV2+PHB X NV2+PIX SYS SYS NV1+SYS SYS | NV2+PHB NV1+PHB NV2+PIX X SYS SYS SYS NV1+SYS |
        NV2+SYS SYS SYS SYS X NV1+PIX NV1+PHB NV2+PHB | SYS NV2+SYS SYS SYS NV1+PIX X NV2+PHB NV1+PHB |
        SYS SYS NV1+SYS SYS NV1+PHB NV2+PHB X NV2+PIX | SYS SYS SYS NV1+SYS NV2+PHB NV1+PHB NV2+PIX X""",
}
CELLS = {name: [row.split() for row in text.split("|")] for name, text in MACHINES.items()}


@dataclass(frozen=True)
class Case:
    """Requests of one size, one after the other, and the cards that the source expects for each."""

    name: str
    machine: str
    free: tuple[int, ...]
    required: tuple[int, ...]
    expected: tuple[tuple[int, ...], ...]
    size: int
    by_table: bool = False
    """The source expects it of its fixed table of sets for a DGX-1, which may differ from what best effort gives."""


ALL = tuple(range(8))
CASES = (
    Case("two-of-four", "DGX-1 V100", (0, 4, 5, 6), (), ((5, 6),), 2),
    Case("two-of-three", "DGX-1 V100", (0, 1, 4), (), ((0, 4),), 2),
    Case("one-that-is-named", "DGX-1 V100", ALL, (4,), ((4,),), 1),
    Case("two-with-one-named", "DGX-1 V100", ALL, (4,), ((4, 7),), 2),
    Case("singles", "RTX 8000", (0, 1, 2, 3), (), ((0,), (1,), (2,), (3,)), 1),
    Case("pairs", "RTX 8000", (0, 1, 2, 3), (), ((0, 3), (1, 2)), 2),
    Case("all-four", "RTX 8000", (0, 1, 2, 3), (), ((0, 1, 2, 3),), 4),
    Case("pairs-of-eight", "DGX-1 P100", ALL, (), ((0, 2), (1, 3), (4, 6), (5, 7)), 2),
    Case("halves", "DGX-1 V100", ALL, (), ((0, 1, 2, 3), (4, 5, 6, 7)), 4),
    Case("table-half-with-one-named", "DGX-1 V100", ALL, (4,), ((4, 5, 6, 7),), 4, True),
    Case("table-pairs", "DGX-1 V100", ALL, (), ((0, 3), (1, 2), (4, 7), (5, 6)), 2, True),
)


def near_of(machine: str, *, bus_too: bool) -> Ints:
    """Return the score of each pair, with the PCIe path of those with NVLink or without."""

    def pair(cell: str) -> int:
        parts = [
            0 if part == "X" else LANE * int(part[2:]) if part[:2] == "NV" else BUS[part] for part in cell.split("+")
        ]
        return sum(parts) if bus_too else max(parts)

    return np.array([[pair(cell) for cell in row] for row in CELLS[machine]], dtype=np.int64)


def links_of(machine: str) -> tuple[Link, ...]:
    links = []
    for a, b in combinations(range(len(CELLS[machine])), 2):
        kind = CELLS[machine][a][b].split("+")[0]
        lanes = kind.startswith("NV")
        links.append(Link(a=a, b=b, kind="NVLINK" if lanes else kind, width=int(kind[2:]) if lanes else 1))  # type: ignore[arg-type]
    return tuple(links)


def score(near: Ints, cards: Sequence[int]) -> int:
    return sum(int(near[a, b]) for a, b in combinations(cards, 2))


# --- the policy ----------------------------------------------------------------------------------------------


def best_effort(near: Ints, free: Sequence[int], required: Sequence[int], size: int) -> tuple[int, ...]:
    """Return the set that the best-effort policy takes: the best one of the best division of all free cards.

    Its divisions are into sets of the size asked for; cards that are left over form a set of their own.
    """
    over = len(free) % size
    best = max(
        (sets for sets in divisions(tuple(free), size, over) if holds(sets, required, size)),
        key=lambda sets: sum(score(near, one) for one in sets),
    )
    return max((one for one in best if set(required) <= set(one)), key=lambda one: score(near, one))


def holds(sets: Sequence[tuple[int, ...]], required: Sequence[int], size: int) -> bool:
    return any(len(one) == size and set(required) <= set(one) for one in sets)


def divisions(free: tuple[int, ...], size: int, over: int) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Yield every division in sets of one size and at most one set of what is left over."""
    if not free:
        yield ()
    elif size == 1:
        # the policy looks at each card alone
        yield from (((card,),) for card in free)
    else:
        for length in {size, over} - {0}:
            for others in combinations(free[1:], length - 1) if length <= len(free) else ():
                one = (free[0], *others)
                rest = tuple(card for card in free if card not in one)
                if length == size or len(rest) % size == 0:
                    left = 0 if length == over else over
                    yield from ((one, *more) for more in divisions(rest, size, left))


@pytest.mark.parametrize("case", [case for case in CASES if not case.by_table], ids=lambda case: case.name)
def test_the_policy_gives_what_its_source_expects(case: Case) -> None:
    near, free = near_of(case.machine, bus_too=True), case.free
    for expected in case.expected:
        assert best_effort(near, free, case.required, case.size) == expected
        free = tuple(card for card in free if card not in expected)


# --- against it ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_same_or_better_with_both_paths(case: Case) -> None:
    near, free, reached = near_of(case.machine, bus_too=True), case.free, 0
    for _ in case.expected:
        groups = sum(1 << card for card in free if card not in case.required), sum(1 << card for card in case.required)
        own = case.size - len(case.required), len(case.required)
        (bits,), _ = exact.best_sets(near, exact.Wanted(groups, ((own, 1),), (len(free) - case.size, 0)))
        one = [card for card in free if bits >> card & 1]
        assert score(near, one) >= score(near, best_effort(near, free, case.required, case.size))
        reached += score(near, one)
        free = tuple(card for card in free if card not in one)
    assert reached >= sum(score(near, one) for one in case.expected)


def snapshot_of(case: Case, requests: int) -> Snapshot:
    """Return the case as a snapshot: other cards are in use, and a card that must be taken is of its own model."""
    cards = range(len(CELLS[case.machine]))
    gpus = tuple(Gpu(model="named" if card in case.required else "any") for card in cards)
    busy = tuple(card for card in cards if card not in case.free)
    jobs = [Job(name=f"j{i}", groups=(TaskGroup(name="g", task=Task(gpus=case.size)),)) for i in range(requests)]
    if busy:
        place = RunningTask(group="g", index=0, node="n", gpus=busy)
        group = TaskGroup(name="g", task=Task(gpus=len(busy)))
        jobs.append(Job(name="r", groups=(group,), running=Running(tasks=(place,))))
    return verified(Snapshot(nodes=(Node(name="n", gpus=gpus, links=links_of(case.machine)),), jobs=tuple(jobs)))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_same_or_better_as_a_snapshot(case: Case) -> None:
    near = near_of(case.machine, bus_too=False)
    assert (table(links_of(case.machine), len(near)) == near).all()
    instance = compile_snapshot(snapshot_of(case, len(case.expected)))
    others = [card for card in case.free if card not in case.required]
    cards = [*case.required, *others]
    sets = [sorted(cards[i * case.size : (i + 1) * case.size]) for i in range(len(case.expected))]
    assignment = assignment_of(instance, [(f"j{i}", "g", 0, "n", one) for i, one in enumerate(sets)])
    found = name_tasks(instance, by_links(instance, assignment)).gpus
    assert set(case.required) <= set(found[0])
    assert sum(score(near, one) for one in found) >= sum(score(near, one) for one in case.expected)


def test_single_cards_leave_a_pair_where_the_policy_breaks_both() -> None:
    # one card after the other: the policy takes 0 and 1 and leaves {2, 3}, NODE, 20; here 0 and 3 leave {1, 2}, 200
    near, policy, ours = near_of("RTX 8000", bus_too=True), {0, 1, 2, 3}, {0, 1, 2, 3}
    for _ in range(2):
        policy -= {*best_effort(near, sorted(policy), (), 1)}
        wanted = exact.Wanted((sum(1 << card for card in ours),), (), (len(ours) - 1,))
        _, stays = exact.best_sets(near, wanted)
        ours = {card for card in ours if stays >> card & 1}
    assert (score(near, sorted(policy)), score(near, sorted(ours))) == (20, 200)
