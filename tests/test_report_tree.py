"""The tree of domains and the table of tied groups, letter by letter."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from cli_cases import placement
from msgspec.structs import replace
from rich.console import Console
from rich.text import Text

import placement as pl
from placement.check import locality
from placement.plan import Plan, Tasks
from placement.report import picture
from placement.report.occupancy import occupancy
from placement.report.tree import (
    FREE,
    LINES,
    NODES,
    OTHER,
    ROWS,
    RUNNING,
    UNHEALTHY,
    asked_of,
    domains,
    tells,
    tree_report,
)
from placement.snapshot import (
    Affinity,
    Gpu,
    Job,
    Node,
    Running,
    RunningTask,
    Slice,
    Snapshot,
    Spread,
    Task,
    TaskGroup,
    Topology,
)

CARD = Task(gpus=1)
RACK = Topology(required="rack", preferred="node")


def job_of(name: str, tasks: int, count: int = 1) -> Job:
    group = TaskGroup(name="g", count=tasks, task=CARD, topology=Topology(required="rack"))
    return Job(name=name, count=count, groups=(group,))


def node(name: str, block: str, rack: str, *gpus: Gpu) -> Node:
    return Node(name=name, position={"block": block, "rack": rack}, gpus=gpus or (Gpu(model="H100", count=4),))


def running(name: str, node: str, gpus: Sequence[int]) -> Job:
    group = TaskGroup(name="g", task=Task(gpus=len(gpus)))
    return Job(
        name=name,
        groups=(group,),
        running=Running(tasks=(RunningTask(group="g", index=0, node=node, gpus=tuple(gpus)),)),
    )


REPLICA = TaskGroup(
    name="replica",
    count=2,
    groups=(TaskGroup(name="leader", task=CARD), TaskGroup(name="workers", count=2, task=CARD)),
)
CLUSTER = Snapshot(
    topology=("block", "rack"),
    nodes=(
        node("n0", "b0", "r0"),
        node("n1", "b0", "r0"),
        node("n2", "b0", "r1"),
        node("n3", "b0", "r1"),
        node("n4", "b1", "r2"),
        Node(name="odd", gpus=(Gpu(model="H100", count=2), Gpu(model="H100", health="unhealthy"))),
        Node(name="cpu", cpu=8),
    ),
    jobs=(
        running("old", "n0", (0, 1)),
        Job(name="half", groups=(TaskGroup(name="g", task=Task(gpus=1, gpu_share="0.5")),)),
        Job(name="ring", groups=(TaskGroup(name="workers", count=8, task=CARD, topology=RACK),)),
        Job(
            name="lead",
            groups=(REPLICA,),
            affinity=(Affinity(a="replica/leader", b="replica/workers", level="rack", kind="together"),),
        ),
    ),
)
PLACES = [
    ("half", "g", 0, "n0", [2]),
    *(("ring", "workers", index, f"n{2 + index // 4}", [index % 4]) for index in range(8)),
    ("lead", "replica/leader", 0, "n1", [0]),
    ("lead", "replica/leader", 1, "n4", [0]),
    *(("lead", "replica/workers", index, "n1" if index < 2 else "n4", [1 + index % 2]) for index in range(4)),
]
TREE = """\
Cards by domain
block / rack / node  cards  running    new  free
cluster                 23        2  14.50  5.50  --BBBBBBBBCCCCCC+.....x
├─ b0                   16        2  11.50  2.50  --BBBBBBBBCCC+..
│  ├─ r0                 8        2   3.50  2.50  --CCC+..
│  │  ├─ n0              4        2   0.50  1.50  --+.
│  │  └─ n1              4        0      3     1  CCC.
│  └─ r1                 8        0      8     0  BBBBBBBB
│     ├─ n2              4        0      4     0  BBBB
│     └─ n3              4        0      4     0  BBBB
├─ b1                    4        0      3     1  CCC.
│  └─ r2                 4        0      3     1  CCC.
│     └─ n4              4        0      3     1  CCC.
└─ odd                   3        0      0     2  ..x

 B  ring   C  lead   -  running   +  other new work   .  free   x  unhealthy
"""
TABLE = """\
Tied groups
   job   group            copy  asked                  spans  block  rack  nodes
────────────────────────────────────────────────────────────────────────────────
B  ring  workers                required: rack;        rack       1     1      2
                                preferred: node
C  lead  replica/leader   0     together with          node       1     1      1
                                replica/workers: rack
C  lead  replica/leader   1     together with          node       1     1      1
                                replica/workers: rack
C  lead  replica/workers  0     together with          node       1     1      1
                                replica/leader: rack
C  lead  replica/workers  1     together with          node       1     1      1
                                replica/leader: rack
"""


def shown(snapshot: Snapshot, plan: Plan, width: int = 80) -> list[str]:
    console = Console(width=width, force_terminal=False, highlight=False)
    with console.capture() as captured:
        console.print(tree_report(snapshot, plan, width=min(80, width)))
    return [line.rstrip() for line in captured.get().splitlines()]


@pytest.fixture(scope="module")
def plan() -> Plan:
    made = pl.solve(CLUSTER, solver="first-fit")
    job, group, index, nodes, gpus = (list(column) for column in zip(*PLACES, strict=True))
    tasks = Tasks(job=job, group=group, index=index, node=nodes, gpus=gpus)
    return replace(made, tasks=tasks, locality=locality(CLUSTER, tasks))


def test_tree_and_table(plan: Plan) -> None:
    assert shown(CLUSTER, plan) == [*TREE.splitlines(), "", *TABLE.splitlines()]


@pytest.mark.parametrize("width", [80, 60, 40, 25])
def test_nothing_is_wider_than_the_terminal(plan: Plan, width: int) -> None:
    long = replace(CLUSTER, topology=("block", "cloud.example.com/topology-rack"))
    for snapshot in (CLUSTER, long):
        assert all(Text(line).cell_len <= width for line in shown(snapshot, plan, width))


def test_letters_are_those_of_the_picture(plan: Plan) -> None:
    rows = picture.text(CLUSTER, plan).plain.splitlines()
    assert "BBBBBBBB" in rows[2]
    assert "CCCCCCCC" in rows[1]


def test_a_letter_stands_for_one_job() -> None:
    many = replace(CLUSTER, jobs=(job_of("ring", 1, count=30),), nodes=CLUSTER.nodes[:5])
    lines = shown(many, pl.solve(many, solver="first-fit"))
    assert [line.split()[:2] for line in lines if "required" in line][:2] == [["A", "ring-0"], ["B", "ring-1"]]
    more = replace(many, nodes=(replace(CLUSTER.nodes[0], count=8),))
    used = domains(more, occupancy(more, pl.solve(more, solver="first-fit")), {"ring-0": "A"}).use
    assert used == {"A": 1, OTHER: 29, FREE: 2}
    marks = "".join(shown(more, pl.solve(more, solver="first-fit")))
    assert " +  other new work" in marks
    assert " A  ring-0 " in marks
    assert "ring-26  " not in marks


def test_narrow_domains_are_folded_and_the_fullest_shown() -> None:
    nodes = tuple(
        Node(name=f"{rack}n", count=20, position={"rack": rack}, gpus=(Gpu(model="T4", count=2),))
        for rack in ("r0", "r1", "r2")
    )
    jobs = (running("old", "r1n-7", (0, 1)), running("half", "r1n-9", (0,)), job_of("ring", 2))
    cluster = Snapshot(topology=("rack",), nodes=nodes, jobs=jobs)
    lines = shown(cluster, pl.solve(cluster, solver="first-fit"))
    assert len(lines[2 : lines.index("")]) == LINES
    racks = [line for line in lines if line.startswith(("├─", "└─"))]
    assert [line.split()[1] for line in racks] == ["r0", "r1", "r2"]
    inside = lines[lines.index(racks[1]) + 1 : lines.index(racks[2])]
    assert [line.split()[2] for line in inside[:3]] == ["r1n-0", "r1n-7", "r1n-9"]
    assert inside[-1].split() == ["│", "└─", "…", "9", "more,", "alike", "18", "0", "0", "18", "." * 18]


def test_what_is_not_drawn_is_counted() -> None:
    nodes = tuple(
        Node(name=f"n{rack}", count=2, position={"rack": f"r{rack}"}, gpus=(Gpu(model="T4"),)) for rack in range(100)
    )
    cluster = Snapshot(topology=("rack",), nodes=nodes, jobs=(job_of("ring", 2),))
    lines = shown(cluster, pl.solve(cluster, solver="first-fit"))
    assert lines[2].split()[:2] == ["cluster", "200"]
    assert lines[2 + LINES - 1].startswith("└─ … 62 more, alike    124")
    assert lines[2 + LINES] == "200 narrower domains not drawn, for there are too many."
    wide = replace(
        cluster,
        topology=("block", "rack"),
        nodes=tuple(replace(n, position={"block": f"b{i % 39}", **n.position}) for i, n in enumerate(nodes)),
    )
    lines = shown(wide, pl.solve(wide, solver="first-fit"))
    assert lines[2 + LINES - 1].split()[1] == "b38"
    assert lines[2 + LINES] == "300 narrower domains not drawn, for there are too many."


def test_only_the_first_groups_are_listed() -> None:
    nodes = (replace(CLUSTER.nodes[0], count=10),)
    cluster = Snapshot(topology=("block", "rack"), nodes=nodes, jobs=(job_of("ring", 1, count=ROWS + 3),))
    lines = shown(cluster, pl.solve(cluster, solver="first-fit"))
    assert sum("required" in line for line in lines) == ROWS
    assert lines[-1] == "and 3 more"


def test_a_card_that_is_over_full_is_one_card() -> None:
    crowded = replace(CLUSTER, jobs=(running("x", "n0", (0,)), running("y", "n0", (0,))))
    assert domains(crowded, occupancy(crowded), {}).use == {RUNNING: 1, FREE: 21, UNHEALTHY: 1}


def test_names_are_no_markup() -> None:
    hostile = replace(CLUSTER, nodes=(node("[red]n", "[bold]", "[/]"),), jobs=(job_of("[b]", 2),))
    lines = shown(hostile, pl.solve(hostile, solver="first-fit"))
    assert [line.split()[1] for line in lines[3:6]] == ["[bold]", "[/]", "[red]n"]
    assert " A  [b]   .  free" in lines


def test_what_was_asked() -> None:
    group = TaskGroup(
        name="g",
        count=8,
        task=CARD,
        topology=Topology(
            required="block",
            preferred="rack",
            slices=(Slice(level="rack", sizes=(4,)), Slice(level="node", sizes=(1, 3, 4))),
            balanced="rack",
            spread=(Spread(level="node", max_per_domain=4, min_domains=2),),
        ),
    )
    apart = Affinity(a="h", b="g", level="node", kind="apart")
    job = Job(name="j", groups=(group, TaskGroup(name="h", task=CARD)), affinity=(apart,))
    assert asked_of(job, "g") == (
        "required: block; preferred: rack; slices of 4: rack; slices of 1, 3, 4: node; balanced: rack;"
        " spread: node, at most 4 tasks in each, 2 or more; apart from h: node"
    )
    assert asked_of(job, "h") == "apart from g: node"


def test_it_is_shown_where_it_says_something(in_tmp: Path) -> None:
    assert tells(CLUSTER)
    assert not tells(replace(CLUSTER, topology=()))
    assert not tells(replace(CLUSTER, nodes=(replace(CLUSTER.nodes[0], count=NODES + 1),)))
    assert not tells(replace(CLUSTER, jobs=CLUSTER.jobs[:2]))
    empty = Job(name="empty", groups=(TaskGroup(name="g", task=CARD, topology=Topology()),))
    assert not tells(replace(CLUSTER, jobs=(empty,)))  # a topology that says nothing
    (in_tmp / "s.json").write_bytes(msgspec.json.encode(CLUSTER))
    printed = "\n".join(line.rstrip() for line in placement("solve", "s.json").stdout.splitlines())
    page = (Path(__file__).parent.parent / "docs" / "cli.md").read_text("utf-8")
    excerpts = [text.removesuffix("\n") for text in page.split("```")[1::2] if text.startswith(("\nCards", "\nTied"))]
    assert len(excerpts) == 2
    assert all(text in printed for text in excerpts)
    assert "Cards by domain" not in placement("solve", "s.json", "--format", "json").stdout
    (in_tmp / "s.json").write_bytes(msgspec.json.encode(replace(CLUSTER, jobs=CLUSTER.jobs[:2])))
    assert "Cards by domain" not in placement("solve", "s.json").stdout
