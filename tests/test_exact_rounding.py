"""Whole counts made a few domains at a time: points of the program, the same ones each time, also with little time."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import brute
import numpy as np
import pytest
from strategies import random_tied_tiny
from test_exact_tied import OBJECTIVES, gang, random_parts, random_tied, solved, valid, worth

from placement.compile import compile as compile_snapshot
from placement.confined import confined
from placement.exact.ledger import Ledger
from placement.exact.milp import highs
from placement.exact.milp.arrays import Program
from placement.exact.objectives.targets import targets_of
from placement.exact.pools import rounding
from placement.exact.pools.rounding import Parts, parts_by_domain, restricted, rounded
from placement.exact.pools.sketch import Relaxed
from placement.exact.timing import Timing
from placement.models.parts import parts_of
from placement.models.pooled_topology import options
from placement.snapshot import Gpu, Job, Node, Slice, Snapshot
from placement.solver import Limits, Stop
from placement.state import State

DRAWS: dict[str, Callable[[int], Snapshot]] = {
    "tied": random_tied,
    "parts": random_parts,
    "strategy": random_tied_tiny,
}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have programs of a few columns taken apart."""
    monkeypatch.setattr(rounding, "PART_COLUMNS", 4)
    monkeypatch.setattr(rounding, "MOST_COLUMNS", 12)


def program_of(snapshot: Snapshot) -> tuple[Program, Parts] | None:
    """Return the program that chooses domains, and its parts, if there are any."""
    instance = compile_snapshot(snapshot)
    ledger = Ledger(instance, targets_of(instance, OBJECTIVES), Limits(), 0, None, lambda _: None)
    levels = sorted({unit.level for unit in confined(instance)})
    state = State(instance)
    relaxed = Relaxed(ledger, state, parts_of(state, 30_000, levels), Timing())
    relaxed.bound(0)
    master = relaxed.master
    found = options(master.view)
    if found is None:
        return None
    weights = {target: 0.01**number for number, target in enumerate(ledger.targets)}
    arrays = master._program(weights, {}, ())
    parts = parts_by_domain(master.view, master.patterns, found, len(arrays.cost))
    return None if parts is None else (arrays, parts)


def racks(seed: int) -> Snapshot:
    """Return two blocks of three racks with one to four nodes each, and gangs of every kind."""
    rng = np.random.default_rng(seed)
    nodes = tuple(
        Node(
            name=f"{block}{rack}{n}",
            position={"block": block, "rack": f"{block}{rack}"},
            gpus=(Gpu(model="A", count=int(rng.integers(1, 5))),),
        )
        for block in "bc"
        for rack in range(3)
        for n in range(int(rng.integers(1, 5)))
    )
    jobs: list[Job] = []
    for number in range(12):
        count, cards, priority = int(rng.integers(1, 7)), int(rng.integers(1, 4)), int(rng.integers(0, 2))
        match int(rng.integers(0, 4)):
            case 0:
                stated: dict[str, object] = {"required": "rack"}
            case 1:
                stated = {"required": "block"}
            case 2:
                count *= 2
                slices = (Slice(level="rack", sizes=(count // 2,)),)
                stated = {"slices": slices} if rng.random() < 0.5 else {"slices": slices, "required": "block"}
            case _:
                stated = {}
        least = None if "slices" in stated or rng.random() < 0.5 else int(rng.integers(1, count + 1))
        jobs.append(gang(f"j{number}", count, cards, least, priority, **stated))
    return Snapshot(topology=("block", "rack"), nodes=nodes, jobs=tuple(jobs))


def test_columns_are_fixed_at_a_point() -> None:
    # 2x + 3y + z <= 7 with y = 2: 2x + z <= 1; the row of y alone goes, and y's cost of 5 is an offset of 10.
    program = Program(
        sense=-1,
        cost=np.array([1.0, 5.0, 1.0]),
        lower=np.zeros(3),
        upper=np.full(3, 9.0),
        integer=np.ones(3, dtype=np.bool_),
        start=np.array([0, 3, 4], dtype=np.int32),
        index=np.array([0, 1, 2, 1], dtype=np.int32),
        value=np.array([2.0, 3.0, 1.0, 1.0]),
        row_lower=np.full(2, -np.inf),
        row_upper=np.array([7.0, 2.0]),
    )
    some = restricted(program, np.array([True, False, True]), np.array([0.0, 2.0, 0.0]))
    assert some.size == (1, 2)
    assert some.row_upper.tolist() == [1.0]
    assert (some.index.tolist(), some.value.tolist()) == ([0, 1], [2.0, 1.0])
    assert highs.solve(some).objective == 11.0


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("kind", [*DRAWS, "racks"])
def test_points_are_whole_and_feasible_and_the_same_again(kind: str, seed: int) -> None:
    found = program_of(racks(seed) if kind == "racks" else valid(DRAWS[kind], seed))
    if found is None:
        return
    program, parts = found
    point = rounded(program, parts, gap=1e-3, seed=0, time_limit=60.0)
    assert point is not None
    assert point.in_time
    assert program.violation(point.x) is None
    assert 0.0 <= program.objective(point.x) <= point.bound + 1e-6
    best = highs.solve(program).objective
    assert best is not None
    assert program.objective(point.x) <= best + 1e-6
    again = rounded(program, parts, gap=1e-3, seed=0, time_limit=60.0)
    assert again is not None
    assert (again.x == point.x).all()


@pytest.mark.usefixtures("small")
def test_points_are_near_the_best() -> None:
    best, reached = 0.0, 0.0
    for seed in range(30):
        found = program_of(racks(seed))
        assert found is not None
        point = rounded(*found, gap=1e-3, seed=0, time_limit=60.0)
        objective = highs.solve(found[0]).objective
        assert point is not None
        assert objective is not None
        reached, best = reached + found[0].objective(point.x), best + objective
    assert reached >= 0.9 * best


@pytest.mark.usefixtures("small")
def test_time_that_runs_out_leaves_a_point(monkeypatch: pytest.MonkeyPatch) -> None:
    found = program_of(racks(0))
    assert found is not None
    program, parts = found
    assert parts.count > 2
    assert rounded(program, parts, gap=1e-3, seed=0, time_limit=0.0) is None
    # the clock goes on by a second with every look at it: there is time for the first two parts only
    now = iter(range(1000))
    monkeypatch.setattr("placement.exact.pools.rounding.time", SimpleNamespace(perf_counter=lambda: float(next(now))))
    point = rounded(program, parts, gap=1e-3, seed=0, time_limit=2.5)
    assert point is not None
    assert not point.in_time
    assert program.violation(point.x) is None
    assert (point.x[parts.part > 1] == 0).all()
    assert (point.x[parts.part == 0] > 0).any()


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("kind", DRAWS)
def test_whole_runs_against_brute_force(kind: str, seed: int) -> None:
    snapshot = valid(DRAWS[kind], seed)
    expected = brute.optimum(snapshot, OBJECTIVES)
    instance, result, _ = solved(snapshot)
    if len({job.priority for job in snapshot.jobs}) == 1 and expected:
        assert worth(instance, result.assignment) <= float(expected[0].value) + 1e-6
        assert result.bounds[0].value is None or result.bounds[0].value >= float(expected[0].value) - 1e-6
        if result.stop is Stop.OPTIMAL:
            assert worth(instance, result.assignment) == pytest.approx(float(expected[0].value))


def test_small_programs_are_left_whole() -> None:
    found = program_of(racks(0))
    assert found is None
