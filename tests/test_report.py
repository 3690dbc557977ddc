"""Tables and pictures."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from fractions import Fraction

import msgspec
import pytest
from rich.console import Console, Group

import placement as pl
from placement.heuristics import HEURISTICS
from placement.report import picture
from placement.report.comparison import Comparison, comparison_record, comparison_table, verdict
from placement.report.occupancy import occupancy
from placement.report.table import plan_report
from placement.report.terminal import number, percent
from placement.snapshot import Gpu, Job, Node, Running, RunningTask, Snapshot, Task, TaskGroup


def job(name: str, gpus: int, share: str | None = None, count: int = 1) -> Job:
    task = Task(gpus=gpus, gpu_share=share)
    return Job(name=name, count=count, groups=(TaskGroup(name="g", task=task),))


def on(job: Job, node: str, *gpus: int) -> Job:
    return msgspec.structs.replace(job, running=Running(tasks=(RunningTask(group="g", index=0, node=node, gpus=gpus),)))


CLUSTER = Snapshot(
    nodes=(
        Node(name="a", gpus=(Gpu(model="T4", count=2), Gpu(model="T4", health="unhealthy"))),
        Node(name="b", count=2, gpus=(Gpu(model="A10", count=2),)),
        Node(name="cpu", cpu=8),
    ),
    jobs=(on(job("old", 1, "0.5"), "a", 1), job("half", 1, "0.5"), job("twins", 2, count=2)),
)


def shown(renderable: object, width: int = 80) -> str:
    console = Console(width=width, record=True, file=None, force_terminal=False, highlight=False)
    with console.capture() as captured:
        console.print(renderable)
    return captured.get()


@pytest.fixture(scope="module")
def plan() -> pl.Plan:
    return pl.solve(CLUSTER, solver="best-fit")


def test_occupancy(plan: pl.Plan) -> None:
    rows = {row.node: row.cards for row in occupancy(CLUSTER, plan)}
    assert sorted(rows) == ["a", "b-0", "b-1"]
    assert [(part.job, part.share, part.running) for part in rows["a"][1].parts] == [
        ("old", Fraction(1, 2), True),
        ("half", Fraction(1, 2), False),
    ]
    assert rows["a"][1].free == 0
    assert [part.job for part in rows["b-1"][0].parts] == ["twins-1"]
    before = {row.node: row.cards for row in occupancy(CLUSTER)}
    assert not any(card.parts for node in ("b-0", "b-1") for card in before[node])


def test_picture_as_text(plan: pl.Plan) -> None:
    lines = picture.text(CLUSTER, plan).plain.splitlines()
    assert lines[0] == "a    |........|aaaaAAAA|xxxxxxxx|"
    assert lines[1] == "b-0  |BBBBBBBB|BBBBBBBB|"
    assert lines[2] == "b-1  |CCCCCCCC|CCCCCCCC|"
    assert "old (running)" in lines[3]
    before = picture.text(CLUSTER).plain.splitlines()
    assert before[:2] == ["a    |........|aaaa....|xxxxxxxx|", "b-0  |........|........|"]


@pytest.mark.parametrize(
    ("shares", "counts"),
    [
        (["1/2", "1/2"], [4, 4]),
        (["1/3", "1/3", "1/3"], [3, 3, 2]),
        (["1/100", "99/100"], [1, 7]),
        (["0", "1"], [0, 8]),
        (["1", "1"], [4, 4]),
        ([f"{1}/10"] * 10, [1] * 10),
    ],
    ids=lambda value: " ".join(map(str, value)),
)
def test_a_cell_is_shared_out_whole(shares: list[str], counts: list[int]) -> None:
    assert picture.apportion([Fraction(share) for share in shares], picture.CELL) == counts


def test_an_over_full_card_is_drawn_full() -> None:
    crowded = msgspec.structs.replace(CLUSTER, jobs=(on(job("x", 1), "a", 0), on(job("y", 1), "a", 0)))
    assert "|aaaabbbb|........|" in picture.text(crowded).plain
    assert ElementTree.fromstring(picture.svg(crowded)) is not None


def test_picture_as_svg(plan: pl.Plan) -> None:
    drawing = ElementTree.fromstring(picture.svg(CLUSTER, plan, title="<5 % & more"))
    texts = [element.text for element in drawing.iter() if element.text]
    assert "<5 % & more" in texts
    assert "old: 50% of the card, running" in texts
    assert "T4, unhealthy" in texts
    assert texts.count("twins-0: 100% of the card") == 2


def test_a_job_looks_the_same_under_every_plan(plan: pl.Plan) -> None:
    tasks = plan.tasks
    fewer = pl.Plan(
        **{
            **{name: getattr(plan, name) for name in pl.Plan.__struct_fields__},
            "tasks": type(tasks)(
                job=tasks.job[1:],
                group=tasks.group[1:],
                index=tasks.index[1:],
                node=tasks.node[1:],
                gpus=tasks.gpus[1:],
            ),
        }
    )
    all_of_them = picture.Palette(CLUSTER, occupancy(CLUSTER, plan))
    some = picture.Palette(CLUSTER, occupancy(CLUSTER, fewer))
    assert list(some) == ["old", "twins-0", "twins-1"]
    assert [some.letter(name) for name in some] == [all_of_them.letter(name) for name in some]
    assert [some.colours(name) for name in some] == [all_of_them.colours(name) for name in some]


def test_only_small_clusters_are_drawn() -> None:
    assert picture.fits(CLUSTER)
    assert not picture.fits(CLUSTER, width=30)
    assert not picture.fits(CLUSTER, height=3)
    assert not picture.fits(Snapshot())
    assert not picture.fits(Snapshot(nodes=(Node(name="cpu"),)))
    assert ElementTree.fromstring(picture.svg(Snapshot())) is not None


def test_a_picture_that_does_not_fit_says_that_it_is_cut(plan: pl.Plan) -> None:
    whole, cut = (shown(Group(picture.text(CLUSTER, plan)), width).splitlines() for width in (80, 20))
    assert not any("…" in line for line in whole)
    assert [line[:19] for line in whole[:3]] == [line[:19] for line in cut[:3]]
    assert [line[19:] for line in cut[:3]] == ["…"] * 3


def test_report_groups_what_waits() -> None:
    cluster = msgspec.structs.replace(CLUSTER, jobs=(*CLUSTER.jobs, job("big", 2, count=5), job("huge", 9)))
    plan = pl.solve(cluster, solver="first-fit")
    plan.notes += ["of a method", "running work: a gpu 0: too much"]
    text = shown(plan_report(cluster, plan))
    assert "5  every task fits on a node without work" in text
    assert "and 2 more" in text
    assert "no node could take a task of g" in text
    assert "Broken by running work\n  a gpu 0: too much\n\nNotes\n  of a method" in text
    assert max(map(len, text.splitlines())) <= 80


def test_report_of_nothing() -> None:
    empty = Snapshot()
    text = shown(plan_report(empty, pl.solve(empty, solver="first-fit")))
    assert "0 of 0 pending jobs start" in text
    assert "–" in text


def test_priorities_are_named_where_there_are_several() -> None:
    snapshot = pl.load(pl.instances.path("priorities"))
    plan = pl.solve(snapshot, solver="best-fit")
    assert "value, priority" in shown(plan_report(snapshot, plan))
    comparison = Comparison.of(snapshot, [plan])
    assert "priority" in shown(comparison_table(comparison))
    assert comparison.unallocated_bound() is None


def test_headings_and_methods_are_whole_words_in_80_columns() -> None:
    snapshot = pl.load(pl.instances.path("priorities"))
    comparison = Comparison.of(snapshot, [pl.solve(snapshot, solver=rule) for rule in HEURISTICS])
    lines = shown(comparison_table(comparison)).splitlines()
    assert max(map(len, lines)) <= 80
    assert set(HEURISTICS) <= {line.split()[0] for line in lines if line.strip()}
    assert not [word for line in lines for word in line.split() if word.endswith("-")]
    assert "gap, %" in lines[1]
    assert verdict(comparison).startswith("Greedy: ")
    assert "Exact" not in verdict(comparison)


@pytest.mark.parametrize(
    "objectives",
    [
        ("value", "locality", "run_time"),
        ("run_time", "value", "locality", "nodes"),
        ("tasks", "nodes", "fragmentation", "whole_nodes", "run_time", "locality"),
        ("nodes", "value"),
    ],
    ids=" ".join,
)
def test_every_objective_has_a_column_in_80_columns(objectives: tuple[str, ...]) -> None:
    plans = [pl.solve(CLUSTER, objectives=objectives, solver=rule) for rule in HEURISTICS]
    # figures of a large cluster, which differ where two plans do
    for row, plan in enumerate(plans):
        for phase in plan.phases:
            msgspec.structs.force_setattr(phase, "value", 123_456.0 + row)
    lines = shown(comparison_table(Comparison.of(CLUSTER, plans))).splitlines()
    assert max(map(len, lines)) <= 80
    assert "…" not in "".join(lines)
    own = {"fragmentation": "frag., %", "whole_nodes": "whole"}
    heading = " ".join(lines[:2])
    assert all(own.get(objective, objective) in heading for objective in objectives)
    extra = 1 + sum(objective not in {"tasks", *own} for objective in objectives[1:])
    assert sum(line.count(" 123,4") for line in lines) == extra * len(plans)


def test_plans_that_were_not_checked_are_named() -> None:
    snapshot = pl.load(pl.instances.path("priorities"))
    plan = msgspec.structs.replace(pl.solve(snapshot, solver="fgd"), checked=False)
    assert "Not checked: fgd." in verdict(Comparison.of(snapshot, [plan]))


def test_comparison_without_phases() -> None:
    idle = msgspec.structs.replace(CLUSTER, jobs=CLUSTER.jobs[:1])
    plans = [pl.solve(idle, objectives=["value"], solver=rule) for rule in ("fgd", "random")]
    comparison = Comparison.of(idle, plans)
    assert (comparison.bound, comparison.unallocated_bound(), comparison.gap(plans[0])) == (None, None, None)
    assert "–" in shown(comparison_table(comparison))
    assert comparison_record(comparison)["phases"] == []
    assert "no value to improve" in shown(plan_report(idle, plans[0]))


def test_comparison_goes_from_worst_to_best() -> None:
    snapshot = pl.load(pl.instances.path("fragmentation-two-nodes"))
    plans = [pl.solve(snapshot, solver=method) for method in ("fgd", "worst-fit")]
    comparison = Comparison.of(snapshot, plans)
    values = [plan.value for plan in comparison.plans]
    assert values == sorted(values, key=lambda value: value or 0)
    assert [plan.provenance.method for plan in comparison.plans] == ["worst-fit", "fgd"]
    assert comparison.bound == min(plan.bound for plan in plans if plan.bound is not None)
    record = comparison_record(comparison)
    assert record["bound"] == comparison.bound
    # the bound of the value, 6 cards of 8 beside the 2 in use, leaves nothing that has to stay idle
    assert comparison.unallocated_bound() == 0


def test_the_best_bound_of_what_should_be_small_is_the_largest() -> None:
    snapshot = pl.load(pl.instances.path("fragmentation-two-nodes"))
    plans = [pl.solve(snapshot, objectives=["nodes"], solver=method) for method in ("fgd", "worst-fit")]
    best = max(plan.bound for plan in plans if plan.bound is not None)
    assert Comparison.of(snapshot, plans).bound == best


def test_numbers_for_people() -> None:
    texts = {0.0: "0", -3.0: "-3", 1234.5: "1,234.50", 12.345: "12.35", 8152: "8,152"}
    assert {value: number(value) for value in texts} == texts
    assert [percent(value) for value in (0.004, 0.005, 100.0)] == ["<0.01", "0.01", "100.00"]
