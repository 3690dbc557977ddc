"""``placement consolidate`` on the command line: what it prints and writes, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from cli_cases import placement, refused

from placement import check, load, load_plan
from placement.plan import Plan
from placement.snapshot import Gpu, Job, Node, Running, RunningTask, Snapshot, Task, TaskGroup
from placement.snapshot.read import dumps


def _runs(name: str, profile: str, card: int, start: int) -> Job:
    place = RunningTask(group="g", index=0, node="a", gpus=(card,), mig_starts=(start,))
    group = TaskGroup(name="g", task=Task(gpus=1, mig_profile=profile))
    return Job(name=name, preemptible=True, groups=(group,), running=Running(tasks=(place,)))


def _waits(name: str, profile: str, **fields: Any) -> Job:
    return Job(name=name, groups=(TaskGroup(name="g", task=Task(gpus=1, mig_profile=profile)),), **fields)


TWO_CARDS = Snapshot(
    nodes=(Node(name="a", gpus=(Gpu(model="A100-40GB", count=2, mig_enabled=True),)),),
    jobs=(_runs("x", "1g.5gb", 0, 0), _runs("y", "2g.10gb", 1, 2), _waits("big", "7g.40gb"), _waits("more", "7g.40gb")),
)
"""x has to leave card 0, for 100/7, or y card 1, for 200/7; then one 7g starts, and no other can."""


@pytest.fixture
def file(in_tmp: Path) -> Path:
    path = Path("in.json")
    path.write_bytes(dumps(TWO_CARDS))
    return path


class Answer(msgspec.Struct, forbid_unknown_fields=True):
    """What JSON holds."""

    moves: list[dict[str, object]]
    worth: float
    cost: float
    bound: float | None
    gap: float | None
    plan: Plan


def test_the_table(file: Path) -> None:
    result = placement("consolidate", file)
    assert result.exit_code == 0
    assert result.stderr == ""
    lines = [line.strip() for line in result.stdout.splitlines()]
    assert lines[0].split() == ["job", "task", "from", "to"]
    assert lines[2].split()[:8] == ["x", "g", "0", "a,", "card", "0,", "slot", "0"]
    assert lines[2].split()[8:11] == ["a,", "card", "1,"]
    assert lines[4:] == [
        "1 task to move, 1 task to start",
        # 1000 - 0.1 · 1000 / 7
        "worth 1,000 less 14.29 for the moves",
        "no answer is worth more than 985.71, gap 0.00 %",
        "1 job still waiting",
    ]
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_nothing_to_do(file: Path) -> None:
    """A move that costs eight times what the task is worth is never made for 7/7."""
    for words in (("--max-moves", "0"), ("--move-cost", "8")):
        result = placement("consolidate", file, *words)
        assert result.exit_code == 0
        assert result.stdout.splitlines() == [
            "0 tasks to move, 0 tasks to start",
            "worth 0 less 0 for the moves",
            "no answer is worth more than 0, gap 0.00 %",
            "2 jobs still waiting",
        ]


def test_json_and_files_agree(file: Path) -> None:
    result = placement("consolidate", file, "--format", "json", "-o", "plan.json", "--after", "after.json")
    assert result.exit_code == 0
    assert result.stderr == ""
    assert result.stdout.count("\n") == 1
    found = msgspec.json.decode(result.stdout_bytes, type=Answer)
    assert (found.worth, found.gap) == (1000, 0)
    assert found.bound == pytest.approx(1000 - 100 / 7)
    assert [(move["job"], move["source"]) for move in found.moves] == [("x", ["a", 0, 0])]
    plan, after = load_plan("plan.json"), load("after.json")
    assert plan == found.plan
    assert check(after, plan) == []
    (x,) = (job for job in after.jobs if job.name == "x")
    assert x.running is not None
    assert ["a", *x.running.tasks[0].gpus, *x.running.tasks[0].mig_starts] == found.moves[0]["target"]
    # the command that checks plans thinks so too
    assert placement("check", "after.json", "plan.json").exit_code == 0
    assert placement("check", file, "plan.json").exit_code != 0
    again = placement("consolidate", file, "--format", "json", "-o", "plan2.json", "--after", "after2.json")
    assert again.stdout_bytes == result.stdout_bytes
    for name in ("plan", "after"):
        assert Path(f"{name}.json").read_bytes() == Path(f"{name}2.json").read_bytes()


def test_from_and_to_standard_streams(file: Path) -> None:
    placement("consolidate", file, "-o", "plan.json", "--after", "after.json")
    data = file.read_bytes()
    assert placement("consolidate", "-", "-o", "-", stdin=data).stdout_bytes == Path("plan.json").read_bytes()
    assert placement("consolidate", "-", "--after", "-", stdin=data).stdout_bytes == Path("after.json").read_bytes()


def test_long_lists_are_cut(in_tmp: Path) -> None:
    """201 nodes of which each is like the one above: 201 moves, of which JSON has all."""
    node = TWO_CARDS.nodes[0]
    nodes, jobs = [], []
    for number in range(201):
        name = f"n{number}"
        nodes.append(msgspec.structs.replace(node, name=name))
        for job in TWO_CARDS.jobs[:2]:
            assert job.running is not None
            place = msgspec.structs.replace(job.running.tasks[0], node=name)
            jobs.append(msgspec.structs.replace(job, name=f"{job.name}{number}", running=Running(tasks=(place,))))
    jobs.append(_waits("big", "7g.40gb", count=500))
    Path("in.json").write_bytes(dumps(Snapshot(nodes=tuple(nodes), jobs=tuple(jobs))))
    words = ("consolidate", "in.json", "--gap", "0.001")
    found = msgspec.json.decode(placement(*words, "--format", "json").stdout_bytes, type=Answer)
    assert found.worth >= 201_000
    assert len(found.moves) > 200
    assert f"and {len(found.moves) - 200} more move" in placement(*words).stdout


# --- what is refused -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("--move-cost", "-0.5"), ("--move-cost: is -0.5", "at least 0")),
        (("--move-cost", "nan"), ("--move-cost: is nan", "at least 0")),
        (("--move-cost", "much"), ("--move-cost",)),
        (("--max-moves", "-1"), ("--max-moves: is -1", "at least 0")),
        (("--max-moves", "1.5"), ("--max-moves",)),
        (("--gap", "2"), ("--gap: is 2.0", "from 0 to 1")),
        (("--time-limit", "0"), ("--time-limit: is 0", "above 0")),
        (("--seed", "-1"), ("--seed: is -1",)),
    ],
)
def test_arguments_out_of_range(file: Path, words: tuple[str, ...], parts: tuple[str, ...]) -> None:
    refused(placement("consolidate", file, "-o", "plan.json", "--after", "after.json", *words), *parts)
    assert sorted(path.name for path in Path().iterdir()) == ["in.json"]


def test_fields_that_cannot_be_left_out(file: Path) -> None:
    refused(placement("consolidate", file, "--without", "jobs.nowhere"), "--without: there is no field", lines=2)


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("-o", "out.json", "--after", "out.json"), ("--after: out.json gets the plan already", "name another file")),
        (("-o", "./out.json", "--after", "out.json"), ("--after: out.json gets the plan already",)),
        (("-o", "-", "--after", "-"), ("--after: -o - writes the plan there already", "name a file")),
        (("-o", "-", "--format", "json"), ("--format: -o - writes the plan there already",)),
        (("--after", "-", "--format", "json"), ("--format: --after - writes the snapshot there already",)),
        (("-o", "in.json"), ("--output: in.json is the input",)),
        (("--after", "in.json"), ("--after: in.json is the input",)),
        (("--after", "nowhere/out.json"), ("--after: there is no directory nowhere",)),
        (("--after", ""), ("--after: the name is empty",)),
        (("-o", "out.json", "--after", "/"), ("--after: / is a directory",)),
    ],
)
@pytest.mark.parametrize("command", ["consolidate", "partition"])
def test_files_that_get_in_each_others_way(
    file: Path, command: str, words: tuple[str, ...], parts: tuple[str, ...]
) -> None:
    before = file.read_bytes()
    refused(placement(command, file, *words), *parts)
    assert sorted(path.name for path in Path().iterdir()) == ["in.json"]
    assert file.read_bytes() == before


def test_one_file_by_two_names(file: Path) -> None:
    """A link leads to the file that the plan goes to."""
    Path("out.json").write_text("old")
    Path("link.json").symlink_to("out.json")
    refused(
        placement("consolidate", file, "-o", "out.json", "--after", "link.json"), "--after: link.json gets the plan"
    )
    assert Path("out.json").read_text() == "old"


def test_work_that_nothing_can_be_said_of(in_tmp: Path) -> None:
    two = msgspec.structs.replace(TWO_CARDS, jobs=(*TWO_CARDS.jobs, _waits("first", "7g.40gb", priority=2)))
    Path("in.json").write_bytes(dumps(two))
    refused(placement("consolidate", "in.json", "-o", "plan.json"), "jobs: jobs of the priorities 2, 0 wait")
    none = msgspec.structs.replace(
        TWO_CARDS, jobs=(Job(name="whole", groups=(TaskGroup(name="g", task=Task(gpus=1)),)),)
    )
    Path("in.json").write_bytes(dumps(none))
    refused(placement("consolidate", "in.json", "-o", "plan.json"), "jobs: no waiting job", "placement solve")
    refused(placement("consolidate", "nowhere.json", "-o", "plan.json"), "nowhere.json")
    assert sorted(path.name for path in Path().iterdir()) == ["in.json"]


@pytest.mark.parametrize("command", ["consolidate", "partition"])
@pytest.mark.parametrize("written", ["-o", "--after"])
def test_both_files_or_none(in_tmp: Path, command: str, written: str) -> None:
    """One of the two names leads to a device on which there is no room; what the other had stays."""
    idle = Node(name="b", gpus=(Gpu(model="A100-40GB", mig_switchable=True),))
    Path("in.json").write_bytes(dumps(msgspec.structs.replace(TWO_CARDS, nodes=(*TWO_CARDS.nodes, idle))))
    other = "--after" if written == "-o" else "-o"
    Path("kept.json").write_text("old")
    leave_out = ("--without", "jobs.preemptible") if command == "partition" else ()
    result = placement(command, "in.json", written, "/dev/full", other, "kept.json", *leave_out)
    option = "--output" if written == "-o" else written
    refused(result, f"{option}: /dev/full cannot be written", "nothing was written")
    assert Path("kept.json").read_text() == "old"
    assert sorted(path.name for path in Path().iterdir()) == ["in.json", "kept.json"]
