"""The benchmark of planning over time: what its loads are like, rows of its tables, its drawing, and CP-SAT beside."""

from __future__ import annotations

import gzip
import importlib.util
import json
import math
import re
import sys
from pathlib import Path
from random import Random
from statistics import median
from xml.etree import ElementTree

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

import completion
import curves
import gangs
import planning
import table
from peers import cpsat, cpsat_time, in_its_order
from peers.common import NotInstalled, Unsupported

import placement as pl
from placement.snapshot.workload import Duration


def _seconds(job: pl.Job) -> float:
    assert job.duration is not None
    return job.duration.seconds


def _cards(job: pl.Job) -> int:
    task = job.groups[0].task
    assert task is not None
    return job.groups[0].count * task.gpus


# --- loads -----------------------------------------------------------------------------------------------------------


# 64 nodes are 22 H100, 21 A100 and 21 V100 ones: (22 x 2 + 21 + 21 / 2) x 8 cards of speed 1
@pytest.mark.parametrize(("factors", "speed"), [(gangs.ONE_MODEL, 512.0), (gangs.MODELS, 604.0)])
def test_what_a_load_is_like(factors: dict[str, float], speed: float) -> None:
    made = gangs.load(1000, 64, factors, 3)
    assert pl.loads(pl.snapshot.read.dumps(made)) == made
    assert made == gangs.load(1000, 64, factors, 3) != gangs.load(1000, 64, factors, 4)
    assert sum(node.count for node in made.nodes) == 64
    lengths = [_seconds(job) for job in made.jobs]
    assert all(length % 2 == 0 and 0 < length <= 8 * 3600 for length in lengths)
    assert median(lengths) == pytest.approx(1800, rel=0.1)
    asked = sum(_cards(job) * _seconds(job) for job in made.jobs)
    # 1.3 times what there is until the last comes: the latest of 1,000 comes in the last hundredth, but for 1 in 20,000
    horizon = asked / (1.3 * speed)
    last = max(job.submit_time or 0.0 for job in made.jobs)
    assert 0.99 * horizon < last < horizon
    shares = [sum(_cards(job) == cards for job in made.jobs) / 1000 for cards in gangs.SIZES]
    assert shares == pytest.approx(list(gangs.SIZES.values()), abs=0.05)
    assert {(job.priority, job.weight) for job in made.jobs} == {(0, 1), (1, 2), (2, 4)}
    for job in made.jobs:
        task = job.groups[0].task
        assert task is not None
        assert task.gpus == min(_cards(job), 8)


def test_a_small_cluster_is_asked_for_no_more_than_it_has() -> None:
    assert {_cards(job) for job in gangs.load(100, 1, gangs.ONE_MODEL, 0).jobs} == {1, 2, 4, 8}


def test_run_times_are_lognormal() -> None:
    rng = Random(0)
    logs = sorted(math.log(gangs.run_time(rng) / gangs.MEDIAN) for _ in range(4000))
    # one sigma on either side of the median holds 68.3 %, and 8 h are 2.77 sigma above it
    assert sum(abs(one) < 1 for one in logs) / 4000 == pytest.approx(0.683, abs=0.02)
    assert logs[-1] == math.log(16)


def test_small_instances_come_at_once_or_one_after_the_other() -> None:
    for seed in range(4):
        made = gangs.small(seed).snapshot
        assert 30 <= len(made.jobs) <= 60
        assert 2 <= made.nodes[0].count <= 8
        assert all(1 <= _seconds(job) <= 1000 and 1 <= job.weight <= 10 for job in made.jobs)
        assert any(job.submit_time for job in made.jobs) == (seed % 2 == 1)


# --- known optima ----------------------------------------------------------------------------------------------------

POOL = {
    "name": "wait",
    "gpus": 8,
    "jobs": [{"q": 8, "p": 3, "w": 1, "r": 0}, {"q": 8, "p": 1, "w": 5, "r": 1}],
    # the first ends at 3 and the second at 4: 3 + 20; the second at 2 and the first then at 5: 10 + 5
    "optimum": 15,
}
NODES = {
    "name": "wide",
    "nodes": 2,
    "gpus_per_node": 8,
    "jobs": [{"q": 16, "p": 2, "w": 1, "r": 0}, {"q": 4, "p": 1, "w": 1, "r": 0}],
    # the short one first: 1 + 3
    "optimum": 4,
}


def _written(folder: Path, *rows: object) -> list[gangs.Rigid]:
    path = folder / "known.jsonl.gz"
    with gzip.open(path, "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    return list(gangs.known(path))


def test_known_optima_are_read(tmp_path: Path) -> None:
    wait, wide = _written(tmp_path, POOL, NODES)
    # the second comes at 1 and has weight 5
    assert (wait.name, wait.optimum) == ("wait", 10)
    assert (wide.name, wide.optimum) == ("wide", 4)
    assert [(job.groups[0].count, _cards(job)) for job in wide.snapshot.jobs] == [(2, 16), (1, 4)]
    assert (wide.snapshot.nodes[0].count, wide.snapshot.nodes[0].gpus[0].count) == (2, 8)


def test_a_gang_of_more_than_a_node_is_of_whole_nodes(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="12 cards is not of whole nodes of 8"):
        _written(tmp_path, {**NODES, "jobs": [{"q": 12, "p": 1, "w": 1, "r": 0}]})


def test_a_row_of_a_known_optimum(tmp_path: Path) -> None:
    (wait,) = _written(tmp_path, POOL)
    row = completion.measure_rigid(wait, 5.0, ("smith", "fifo"), ())
    assert 10 <= table.number(row, "value") <= 18
    greedy, gaps = row["greedy"], row["greedy_gaps"]
    assert isinstance(greedy, dict)
    assert isinstance(gaps, dict)
    # both start at once what is there: 3 for the first, and 5 x (4 - 1) for the second
    assert greedy["smith"]["value"] == greedy["fifo"]["value"] == 18
    assert gaps["smith"] == pytest.approx(100 * 8 / 18)
    said = "\n".join(completion.report([row], completion.RIGID))
    assert "44.444 to 44.444 %" in said


def test_a_value_below_the_optimum_is_told(tmp_path: Path) -> None:
    (wrong,) = _written(tmp_path, {**POOL, "optimum": 1000})
    with pytest.raises(SystemExit, match="wait: value"):
        completion.measure_rigid(wrong, 5.0, (), ())


# --- the table -------------------------------------------------------------------------------------------------------


def test_a_row_of_a_load() -> None:
    case = completion.Case(gangs=5, nodes=3, factors=gangs.MODELS, seconds=1.0)
    row = completion.measure("tiny", case, 0, 1.0, ("smith",), planning.PEERS[:1])
    value = table.number(row, "value")
    assert row["best_greedy"] == "smith"
    assert table.number(row, "greedy_over_ours") >= 1
    course = row["course"]
    assert isinstance(course, list)
    assert course[-1][1:] == [row["value"], row["bound"], "end"]
    peers = row["peers"]
    assert isinstance(peers, dict)
    found = peers["cp-sat"]
    assert "note" in found or found["bound"] <= value
    said = "\n".join(completion.report([row], completion.COLUMNS))
    assert "smith" in said
    assert ("not installed" in said) == ("note" in found)


def test_the_worst_of_ours_and_the_best_of_others() -> None:
    same: table.Row = {"case": "a", "status": "bounded"}
    first = same | {"seconds": 1.0, "gap_percent": 2.0, "peer_gap": 7.0, "bound_ratio": 0.8, "gangs": 3}
    other = same | {"seconds": 3.0, "gap_percent": 1.0, "peer_gap": 5.0, "bound_ratio": 0.9, "gangs": 4}
    worst = completion.worst([first, other])
    assert [worst.get(key) for key in ("case", "gangs", "seconds", "gap_percent", "peer_gap", "bound_ratio")] == [
        *("a", None, 3.0, 2.0, 5.0, 0.9)
    ]
    assert worst["status"] == "0/2"
    # no bound at all is worse than any gap
    assert completion.worst([first, other | {"gap_percent": None}])["gap_percent"] is None


def test_what_contradicts_itself_is_told() -> None:
    row: table.Row = {"name": "x", "value": 20.0, "bound": 15.0}
    completion.compared(row, {"fifo": {"value": 15.0}}, {"cp-sat": {"bound": 20.0}})
    assert row["bound_ratio"] == 20 / 15
    # the best value and the best bound of all runs, one of which has no bound
    free: table.Row = {"value": 30.0, "bound": 12.0, "placed": 40.0, "seconds": 1.0}
    completion.compared(row, {}, {"a": free, "b": free | {"value": 24.0, "bound": None}})
    assert (row["peer_gap"], row["peer_ratio"], row["bound_ratio"]) == (50.0, 1.2, 0.8)
    with pytest.raises(SystemExit, match=r"x: 14\.0 can be had, but 15\.0 is said"):
        completion.compared(row, {"fifo": {"value": 14.0}}, {})
    with pytest.raises(SystemExit, match=r"x: 20\.0 can be had, but CP-SAT says that 21\.0"):
        completion.compared(row, {}, {"cp-sat": {"bound": 21.0}})


def test_gaps_and_courses_in_percent() -> None:
    assert planning.percent(20.0, 15.0) == 25.0
    assert planning.percent(0.0, 0.0) == 0.0
    assert planning.percent(20.0, None) is None
    course = [[1.0, 30.0, None, "rules"], [2.0, 35.0, 10.0, "search"], [3.0, 24.0, 20.0, "end"]]
    value, bound = completion.curves_of({"bound": 20.0, "course": course})
    # 35 is no improvement on 30
    assert value == curves.Curve("value", [(1.0, 50.0), (2.0, 50.0), (3.0, 100 * (24 / 20 - 1))])
    assert bound == curves.Curve("bound", [(2.0, -50.0), (3.0, 0.0)])
    assert completion.curves_of({"bound": None, "course": course}) == []


def test_a_drawing() -> None:
    made = curves.drawing(
        {
            "a < b": [curves.Curve("value", [(0.0, 8.0), (5.0, 4.0)]), curves.Curve("bound", [(10.0, 0.0)])],
            "empty": [],
        }
    )
    root = ElementTree.fromstring(made)
    paths = [one.get("d") for one in root.iter() if one.tag.endswith("path")]
    # 10 s are 240 wide from 46 on, and 0 to 8 % are 154 high from 30 on
    assert paths == ["M46.0,30.0H166.0V107.0H286.0", "M286.0,184.0H286.0"]
    words = re.findall(r">([^<]+)</text>", made)
    assert "a &lt; b" in words
    assert {"0 %", "2 %", "8 %", "0 s", "10 s"} <= set(words)


# --- CP-SAT ----------------------------------------------------------------------------------------------------------


def test_without_ortools_rows_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    found = planning.peer(gangs.load(3, 1, gangs.ONE_MODEL, 0), 1.0, started=False)
    assert "not installed" in str(found["note"])


def test_what_cp_sat_is_told() -> None:
    made = gangs.snapshot([gangs.Gang(16, 100.0, 3, release=7.0)], {"V100": 1, "H100": 2}, gangs.MODELS)
    # from the fastest on
    demand = cpsat_time.Demand(16, (50_000, 200_000), 3, 7_000)
    assert cpsat_time.read(made) == (["H100", "V100"], [16, 8], [demand])
    mixed = gangs.snapshot([gangs.Gang(1, 1.0, 1)], {"A100": 1}, gangs.ONE_MODEL).jobs[0]
    with pytest.raises(Unsupported, match="different speeds"):
        cpsat_time.read(
            pl.Snapshot(
                nodes=made.nodes,
                jobs=(*made.jobs, pl.Job(name="x", groups=mixed.groups, duration=Duration(seconds=1.0))),
            )
        )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("row", [POOL, NODES])
def test_cp_sat_finds_known_optima(tmp_path: Path, row: object) -> None:
    _cp_sat()
    (one,) = _written(tmp_path, row)
    found = cpsat_time.run(one.snapshot, 10.0, 0)
    assert found.value == found.bound == one.optimum


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("started", [False, True])
def test_cp_sat_knows_models(started: bool) -> None:
    _cp_sat()
    # two of 8 cards, one after the other on the H100: 50 + 100, and not 50 + 200
    two = gangs.snapshot([gangs.Gang(8, 100.0, 1)] * 2, {"V100": 1, "H100": 1}, gangs.MODELS)
    # 16 cards are of both models and take 200, after the other's 50 on the H100
    wide = gangs.snapshot([gangs.Gang(8, 100.0, 1), gangs.Gang(16, 100.0, 1)], {"V100": 1, "H100": 1}, gangs.MODELS)
    for made, optimum in ((two, 150.0), (wide, 300.0)):
        hint = pl.schedule(made, solver="smith").jobs
        spans = list(zip(hint.start, hint.end, strict=True)) if started else None
        found = cpsat_time.run(made, 10.0, 0, started=spans)
        assert found.value == found.bound == optimum


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("started", [False, True])
def test_cp_sat_keeps_gangs_to_one_model(started: bool) -> None:
    _cp_sat()
    # two of 16 cards: side by side for 200 each where one has the H100s and a V100 node, else one after the other
    made = gangs.snapshot([gangs.Gang(16, 100.0, 1)] * 2, {"V100": 3, "H100": 1}, gangs.MODELS)
    hint = pl.schedule(made, solver="smith").jobs
    spans = list(zip(hint.start, hint.end, strict=True)) if started else None
    mixed = cpsat_time.run(made, 10.0, 0, started=spans)
    assert mixed.value == mixed.bound == mixed.placed == 400.0
    apart = cpsat_time.run(made, 10.0, 0, started=spans, one_each=True)
    # what is proven of such gangs is no bound on others; on nodes they may mix models all the same
    assert (apart.value, apart.bound, apart.placed) == (600.0, None, 400.0)


@pytest.mark.filterwarnings("ignore")
def test_a_gang_that_no_model_has_the_cards_for() -> None:
    _cp_sat()
    made = gangs.snapshot([gangs.Gang(16, 100.0, 1)], {"V100": 1, "H100": 1}, gangs.MODELS)
    assert "any one model" in str(planning.peer(made, 1.0, started=False, one_each=True)["note"])


@pytest.mark.parametrize("one_each", [False, True])
@pytest.mark.parametrize(("first", "value"), [(1, 700.0), (0, 1040.0)])
def test_what_an_order_is_worth_on_nodes(first: int, value: float, one_each: bool) -> None:
    # on whatever is free, the first takes the H100s for 50, and the second the V100s for 200: 50 + 10 x 200. Kept to
    # models, the first has the V100s for 200 and the second the H100s for 50: 200 + 10 x 50; both the H100s: the second
    # waits from 1 to 50: 50 + 10 x (49 + 50)
    two = [gangs.Gang(8, 100.0, 1), gangs.Gang(8, 100.0, 10, release=1.0)]
    made = gangs.snapshot(two, {"V100": 1, "H100": 1}, gangs.MODELS)
    assert in_its_order.worth(made, [(0, first), (1000, 0)], ["H100", "V100"], one_each) == value


def test_cards_are_held_back_where_an_order_has_them_so() -> None:
    # a wide gang that comes at 1 and weighs 10, and a narrow one that fits before: wide first, 10 x 10 + (11 + 20); as
    # soon as there is room for it, the narrow one runs from 0 to 20, and the wide one waits: 20 + 10 x (19 + 10)
    two = [gangs.Gang(8, 20.0, 1), gangs.Gang(16, 10.0, 10, release=1.0)]
    made = gangs.snapshot(two, {"A100": 2}, gangs.ONE_MODEL)
    assert in_its_order.worth(made, [(11_000, 0), (1000, 0)], ["A100"], False) == 131.0
    # at times that are no use it is as soon as there is room
    assert in_its_order.worth(made, [(0, 0), (90_000, 0)], ["A100"], False) == 310.0


@pytest.mark.filterwarnings("ignore")
def test_what_cp_sat_starts_may_not_be_placeable() -> None:
    _cp_sat()
    # three of 5 cards on two nodes of 8: 15 of 16 cards, but one on each node
    made = gangs.snapshot([gangs.Gang(5, 10.0, 1)] * 3, {"A100": 2}, gangs.ONE_MODEL)
    found = cpsat_time.run(made, 10.0, 0)
    assert (found.value, found.placed) == (30.0, 40.0)


def _cp_sat() -> None:
    try:
        cpsat.library()
    except NotInstalled as why:
        pytest.skip(str(why))
