"""The picture of one node inside, letter by letter."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest
from cli_cases import placement
from rich.cells import cell_len
from rich.console import Console

import placement as pl
from placement.errors import UsageError
from placement.planning import dump_plan
from placement.report.layout import ROWS, layout, layout_svg
from placement.snapshot import (
    Gpu,
    Job,
    Nic,
    Node,
    NumaZone,
    PcieSwitch,
    Running,
    RunningTask,
    Snapshot,
    Task,
    TaskGroup,
)

NICS = tuple(Nic(name=f"mlx5_{number}") for number in range(3))
ZONES = (
    NumaZone(
        id=0,
        cpu=8,
        memory="32Gi",
        gpus=(0, 1),
        nics=NICS[:2],
        switches=(PcieSwitch(name="pex0", gpus=(0,), nics=("mlx5_0",)),),
    ),
    NumaZone(id=1, cpu=8, memory="32Gi", gpus=(2,), nics=NICS[2:]),
)


def job(name: str, count: int = 1, **task: object) -> Job:
    return Job(name=name, groups=(TaskGroup(name="g", count=count, task=Task(**task)),))  # type: ignore[arg-type]


OLD = Job(
    name="old",
    groups=(TaskGroup(name="g", task=Task(gpus=1, nics=1)),),
    running=Running(tasks=(RunningTask(group="g", index=0, node="n", gpus=(2,), nics=("mlx5_2",)),)),
)
GPUS = (Gpu(model="A", count=3),)
CLUSTER = Snapshot(
    nodes=(Node(name="n", cpu=16, memory="64Gi", gpus=GPUS, zones=ZONES), Node(name="m", gpus=GPUS, pods=0)),
    jobs=(OLD, job("train", gpus=2, nics=1, cpu=6, memory="20Gi", numa="restricted"), job("io", nics=1, cpu=4)),
)


def drawn(snapshot: Snapshot, plan: pl.Plan | None, node: str = "n", width: int = 80) -> list[str]:
    console = Console(width=width, record=True, file=StringIO())
    console.print(layout(snapshot, plan, node, width=width))
    return [line.rstrip() for line in console.export_text().splitlines()]


@pytest.fixture(scope="module")
def plan() -> pl.Plan:
    plan = pl.solve(CLUSTER, solver="best-fit")
    assert plan.checked
    return plan


def test_who_has_what(plan: pl.Plan) -> None:
    # train has both cards of zone 0, 6 of its 8 cores, and of its NICs the one below the switch of card 0. io gets the
    # last NIC, and the 2 cores beside it before 2 of zone 1
    assert drawn(CLUSTER, plan) == [
        "n",
        "NUMA zone 0, 8 CPU, 32 GiB",
        "  pex0  gpu 0  |AAAAAAAA|  mlx5_0  A",
        "        gpu 1  |AAAAAAAA|  mlx5_1  io",
        "NUMA zone 1, 8 CPU, 32 GiB",
        "        gpu 2  |aaaaaaaa|  mlx5_2  a",
        " a  old (running)   A  train   .  free",
        "",
        "   task       cards  NICs       zone 0  zone 1",
        "──────────────────────────────────────────────",
        "A  train g 0  0, 1   mlx5_0  6, 20 GiB",
        "   io g 0            mlx5_1          2       2",
    ]


def test_without_a_plan_and_without_zones() -> None:
    assert drawn(CLUSTER, None)[2:6] == [
        "  pex0  gpu 0  |........|  mlx5_0  .",
        "        gpu 1  |........|  mlx5_1  .",
        "NUMA zone 1, 8 CPU, 32 GiB",
        "        gpu 2  |aaaaaaaa|  mlx5_2  a",
    ]
    assert drawn(CLUSTER, None, "m")[:3] == ["m", "    gpu 0  |........|", "    gpu 1  |........|"]
    bare = Snapshot(nodes=(Node(name="n", count=2),))
    assert drawn(bare, None, "n-1")[0] == "n-1"
    assert ElementTree.fromstring(layout_svg(bare, None, "n-1")) is not None


def test_more_tasks_than_are_listed() -> None:
    snapshot = Snapshot(nodes=(Node(name="n"),), jobs=(job("j", ROWS + 7, cpu=1),))
    assert drawn(snapshot, pl.solve(snapshot, solver="best-fit"))[-1] == "and 7 more"


@pytest.mark.parametrize("switch", ["s", "pex" * 30, "开关" * 30, "é́" * 50])
@pytest.mark.parametrize("nic", ["m", "mlx5_" * 60, "网卡" * 150])
@pytest.mark.parametrize("name", ["io", "job" * 100, "作业" * 40])
@pytest.mark.parametrize("width", [80, 60])
def test_long_names_cut_neither_cards_nor_holders(switch: str, nic: str, name: str, width: int) -> None:
    nics = tuple(Nic(name=f"{nic}{number}") for number in range(3))
    below = PcieSwitch(name=switch, gpus=(0,), nics=(nics[0].name, nics[1].name))
    zone = NumaZone(id=0, gpus=(0, 1), nics=nics, switches=(below,))
    node = Node(name="n", gpus=(Gpu(model="A", count=2),), zones=(zone,))
    snapshot = Snapshot(nodes=(node,), jobs=(job("train", gpus=1, nics=1), job(name, nics=1)))
    lines = drawn(snapshot, pl.solve(snapshot, solver="best-fit"), width=width)
    assert all(cell_len(line) <= width for line in lines)
    picture = "\n".join(lines[2:5])
    assert "gpu 0  |" in picture
    assert "gpu 1  |" in picture
    assert len(re.findall(r"\|  \S", picture)) == 2  # a NIC beside each card
    assert picture.count("|AAAAAAAA|") == 1
    ends = [line.rstrip(" …").split()[-1] for line in lines[2:5]]
    assert ends.count("A") == 1
    assert ends.count(".") == 1
    (holder,) = {*ends} - {"A", "."}
    assert name.startswith(holder)


def test_as_svg(plan: pl.Plan) -> None:
    drawing = ElementTree.fromstring(layout_svg(CLUSTER, plan, "n", title="<n> & its zones"))
    texts = [element.text for element in drawing.iter("{http://www.w3.org/2000/svg}text")]
    notes = [element.text for element in drawing.iter("{http://www.w3.org/2000/svg}title")]
    assert texts[:3] == ["<n> & its zones", "NUMA zone 0, 8 CPU, 32 GiB", "pex0"]
    assert {"mlx5_0: train", "mlx5_1: io", "mlx5_2: old, running", "train: 100% of the card"} <= {*notes}
    boxes = list(drawing.iter("{http://www.w3.org/2000/svg}rect"))
    assert all(float(box.attrib["x"]) + float(box.attrib["width"]) <= float(drawing.attrib["width"]) for box in boxes)
    assert all(float(box.attrib["y"]) + float(box.attrib["height"]) <= float(drawing.attrib["height"]) for box in boxes)


def test_commands_draw_a_node(plan: pl.Plan, in_tmp: Path) -> None:
    (in_tmp / "s.json").write_bytes(msgspec.json.encode(CLUSTER))
    (in_tmp / "p.json").write_bytes(dump_plan(plan))
    for command in (["solve", "s.json", "--solver", "best-fit"], ["check", "s.json", "p.json"]):
        assert "NUMA zone 0, 8 CPU, 32 GiB" not in placement(*command).stdout
        assert "NUMA zone 0, 8 CPU, 32 GiB" in placement(*command, "--node", "n").stdout
        wrong = placement(*command, "--node", "x\x1b")
        assert wrong.exit_code == 2
        assert wrong.stderr.startswith('error: --node: no node is named "x\\u001b"; ')


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "--node: the name is empty; the known ones are"),
        ("n", '--node: no node is named "n"; its copies are "n-0" to "n-2"'),
        ("other1", '--node: no node is named "other1"; did you mean "other"?'),
        ("n-3", '--node: no node is named "n-3"; did you mean "n-'),
        ("x" * 100_000, '--node: no node is named "xxx'),
    ],
)
def test_a_wrong_node_is_quoted_and_met_with_those_there_are(in_tmp: Path, name: str, message: str) -> None:
    nodes = Node(name="n", count=3), Node(name="other")
    (in_tmp / "s.json").write_bytes(msgspec.json.encode(Snapshot(nodes=nodes)))
    wrong = placement("solve", "s.json", "--solver", "fgd", "--node", name)
    assert wrong.exit_code == 2
    assert wrong.stderr.startswith(f"error: {message}")
    assert len(wrong.stderr) < 200


def test_several_nodes_are_drawn_each_once(in_tmp: Path) -> None:
    nodes = Node(name="n", count=3, gpus=(Gpu(model="A"),)), Node(name="other")
    (in_tmp / "s.json").write_bytes(msgspec.json.encode(Snapshot(nodes=nodes)))
    words = "--solver", "fgd", "--node", "n-0", "--node", "n-2", "--node", "n-0"
    one = placement("solve", "s.json", *words[:4]).stdout
    assert placement("solve", "s.json", *words).stdout.count("gpu 0 ") == 2 * one.count("gpu 0 ") == 2


@pytest.mark.parametrize("node", [None, 3])
def test_a_node_is_named_by_text(plan: pl.Plan, node: object) -> None:
    with pytest.raises(UsageError, match="give the name of a node"):
        layout_svg(CLUSTER, plan, node)  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        layout(CLUSTER, plan, "n-0")
