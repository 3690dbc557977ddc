"""``placement schedule`` on the command line: what it prints, writes and draws, and what it refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jsonschema
import msgspec
import pytest
from cli_cases import placement, refused

from placement import check, load, load_schedule, schedule
from placement.scheduling.baselines import BASELINES
from placement.snapshot import Duration, Gpu, Job, Node, Queue, Running, RunningTask, Snapshot, Task, TaskGroup
from placement.snapshot.read import dumps


def _job(name: str, gpus: int, seconds: float, **fields: object) -> Job:
    group = TaskGroup(name="g", task=Task(gpus=gpus))
    job = Job(name=name, groups=(group,), duration=Duration(seconds=seconds))
    return msgspec.structs.replace(job, **fields)


def _on(job: Job, *cards: int) -> Job:
    place = RunningTask(group="g", index=0, node="n", gpus=cards)
    return msgspec.structs.replace(job, running=Running(tasks=(place,)))


FOUR = Snapshot(
    time=1000.0,
    nodes=(Node(name="n", gpus=(Gpu(model="A", count=4),)),),
    queues=(Queue(name="q", quota={"A": 4}), Queue(name="r", quota={"A": 2})),
    jobs=(
        _on(_job("runs", 2, 10.0), 0, 1),
        _job("x", 4, 20.0, queue="q", weight=2),
        _job("y", 2, 30.0, queue="q", deadline=1025.0),
        _job("big", 5, 1.0),
        _job("late", 1, 40.0, deadline=1030.0, hard_deadline=True),
        _job("more", 3, 1.0, queue="r"),
    ),
)
"""By arrival (fifo-list): y runs from 0 to 30 beside runs, then x until 50. Value 2 * 50 + 30 = 130."""


@pytest.fixture
def file(in_tmp: Path) -> Path:
    path = Path("in.json")
    path.write_bytes(dumps(FOUR))
    return path


def test_a_table(file: Path) -> None:
    result = placement("schedule", file, "--solver", "fifo-list")
    assert result.exit_code == 0, result.output
    # held: 2 cards for 10 s, 2 for 30 s, 4 for 20 s, of 4 for 50 s: 160 of 200
    assert [line.rstrip() for line in result.stdout.splitlines()] == [
        "2 jobs, weighted completion time 130 s",
        "nothing is proven about other schedules",
        "Schedule of fifo-list; the method ran to its end.",
        "",
        "job  start  end  queued  run  restart  nodes",
        "────────────────────────────────────────────",
        "y        0   30       0   30        0   n",
        "x       30   50      30   20        0   n",
        "",
        "T, seconds  jobs  mean  weighted  p50  p95  p99  slowdown",
        "─────────────────────────────────────────────────────────",
        "all            2    40     43.33   30   50   50      1.75",
        "queue q        2    40     43.33   30   50   50      1.75",
        "",
        "T is 15 queued, 25 run, 0 restart on average",
        "the last job ends after 50 s, 80.00 % of all card time used until then",
        "jobs are stopped 0 times",
        "",
        "Jobs without a start",
        "1  never: no node could take a task of g even without other work (1: fewer than",
        "   5 cards)",
        "   big",
        "1  late: it would end after its deadline",
        "   late",
        "1  quota: it asks for 1 card of A too many for the quota of queue r",
        "   more",
        "",
        "Notes",
        "  1 job ends after its deadline, y by 5 s",
    ]


def test_json_files_and_pipes(file: Path) -> None:
    printed = placement("schedule", file, "--solver", "smith", "--format", "json", "-o", "out.json")
    assert printed.stdout_bytes == Path("out.json").read_bytes()
    found = load_schedule("out.json")
    assert found == schedule(load(file), solver="smith")
    assert check(load(file), found) == []
    piped = placement("schedule", "-", "--solver", "smith", "-o", "-", stdin=file.read_bytes())
    assert piped.stdout_bytes == printed.stdout_bytes
    assert placement("check", file, "-", stdin=piped.stdout_bytes).exit_code == 0
    assert placement("schedule", file, "--solver", "smith", "-o", "again.json").stdout.startswith("2 jobs")
    assert Path("again.json").read_bytes() == printed.stdout_bytes


def test_a_pipe_that_nobody_reads(file: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    words = [sys.executable, "-m", "placement", "schedule", str(file), "--solver", "fifo", "--picture", "p.svg"]
    done = subprocess.run(words, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


def test_baselines_beside(file: Path) -> None:
    result = placement("schedule", file, "--solver", "fifo-list", "--compare", "smith,fifo")
    lines = [line.split() for line in result.stdout.splitlines()]
    (head,) = (row for row, line in enumerate(lines) if line[:1] == ["method"])
    assert [line[:1] for line in lines[head + 2 : head + 6]] == [["smith"], ["fifo"], ["fifo-list"], []]
    # strictly by arrival, y waits for x, which runs from 10 to 30: 2 * 30 + 60 = 120 is less than 130
    values = {line[0]: line[1] for line in lines[head + 2 : head + 5]}
    assert values["fifo-list"] == "130"
    assert values == {name: f"{schedule(FOUR, solver=name).value:g}" for name in values}
    answer = json.loads(placement("schedule", file, "--compare", "all", "--format", "json").stdout)
    assert [one["method"] for one in answer["compared"]] == list(BASELINES)
    assert answer["schedule"]["value"] <= min(one["value"] for one in answer["compared"])
    assert answer["schedule"]["checked"]


def test_many_jobs_are_cut(in_tmp: Path) -> None:
    many = msgspec.structs.replace(FOUR, queues=(), jobs=(_job("j", 1, 1.0, count=70),))
    Path("many.json").write_bytes(dumps(many))
    shown = placement("schedule", "many.json", "--solver", "fifo").stdout
    assert "and 20 more jobs" in shown
    assert len(shown.splitlines()) < 70


def test_nothing_to_do(in_tmp: Path) -> None:
    for name, jobs in (("idle", ()), ("busy", (msgspec.structs.replace(FOUR.jobs[0], duration=None),))):
        Path(f"{name}.json").write_bytes(dumps(msgspec.structs.replace(FOUR, queues=(), jobs=jobs)))
        result = placement("schedule", f"{name}.json", "--compare", "fifo", "--picture", "p.svg")
        assert result.exit_code == 0, result.output
        assert result.stdout.startswith("0 jobs, weighted completion time 0 s")
        assert Path("p.svg").read_text("utf-8").startswith("<svg")


def test_a_picture(file: Path) -> None:
    result = placement("schedule", file, "--solver", "fifo", "--picture", "out.html", "-o", "out.json")
    assert result.exit_code == 0, result.output
    assert Path("out.html").read_text("utf-8").startswith("<!doctype html>")
    assert sorted(os.listdir()) == ["in.json", "out.html", "out.json"]


def _changed(change: Callable[[Job], Job]) -> Snapshot:
    return msgspec.structs.replace(FOUR, jobs=tuple(change(job) if job.name == "x" else job for job in FOUR.jobs))


BAD = {
    "no duration": (
        _changed(lambda job: msgspec.structs.replace(job, duration=None)),
        ["jobs[1].duration", "x waits and does not say how long it runs", "state `duration`"],
    ),
    "unhonoured": (
        msgspec.structs.replace(FOUR, nodes=(msgspec.structs.replace(FOUR.nodes[0], failure_rate=0.1),)),
        ["nodes[0].failure_rate", "no rule honours", "--without nodes.failure_rate"],
    ),
    "cycle": (
        msgspec.structs.replace(
            FOUR,
            jobs=(
                *FOUR.jobs,
                _job("then", 1, 1.0, after=("thereafter",)),
                _job("thereafter", 1, 1.0, after=("then",)),
            ),
        ),
        ["jobs[6].after", "the jobs wait for one another"],
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_snapshots(in_tmp: Path, name: str) -> None:
    snapshot, parts = BAD[name]
    Path("in.json").write_bytes(msgspec.json.encode(snapshot))
    refused(placement("schedule", "in.json", "-o", "out.json", "--picture", "p.svg"), *parts)
    assert os.listdir() == ["in.json"]


@pytest.mark.parametrize("seconds", [-1, 1e11, "1 h", None])
def test_bad_durations(in_tmp: Path, seconds: object) -> None:
    record = json.loads(dumps(FOUR))
    record["jobs"][1]["duration"]["seconds"] = seconds
    Path("in.json").write_text(json.dumps(record), "utf-8")
    refused(placement("schedule", "in.json", "-o", "out.json"), "jobs[1].duration.seconds")


def test_jobs_that_take_no_time(in_tmp: Path) -> None:
    """x needs all cards for no time, once runs has ended; y, which comes later, starts then."""
    none = _changed(lambda job: msgspec.structs.replace(job, duration=Duration(seconds=0.0)))
    Path("in.json").write_bytes(dumps(none))
    result = placement("schedule", "in.json", "--solver", "fifo", "-o", "out.json", "--picture", "p.svg")
    assert result.exit_code == 0, result.output
    jobs = load_schedule("out.json").jobs
    assert list(zip(jobs.job, jobs.start, jobs.end, strict=True)) == [("x", 10.0, 10.0), ("y", 10.0, 40.0)]


def test_what_may_be_left_out(in_tmp: Path) -> None:
    Path("in.json").write_bytes(dumps(BAD["unhonoured"][0]))
    result = placement("schedule", "in.json", "--without", "nodes.failure_rate", "--solver", "fifo", "-o", "out.json")
    assert result.exit_code == 0, result.output
    assert load_schedule("out.json").provenance.without == ("nodes.failure_rate",)
    refused(placement("schedule", "in.json", "--without", "jobs.after"), "--without", "is honoured (order)", lines=2)


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--solver", "smit"], ["--solver", 'did you mean "smith"?']),
        (["--solver", "exact"], ["--solver", "'exact' is unknown", "auto", "fifo"]),
        (["--compare", "fifo,smit"], ["--compare", 'did you mean "smith"?']),
        (["--compare", "fifo,fifo"], ["--compare: 'fifo' is named twice"]),
        (["--compare", "fifo,"], ["--compare", "empty name"]),
        (["--compare", "all,fifo"], ["--compare: all stands for every baseline"]),
        (["--time-limit", "0"], ["--time-limit", "above 0"]),
        (["--gap", "2"], ["--gap", "from 0 to 1"]),
        (["--seed", "-1"], ["--seed"]),
        (["-o", "in.json"], ["--output", "is the input"]),
        (["-o", "-", "--format", "json"], ["--format", "-o -"]),
        (["--picture", "p.png"], ["--picture", "name a .html or .svg file"]),
        (["--picture", "-"], ["--picture", "name a .html or .svg file"]),
        (["--picture", "nowhere/p.svg"], ["--picture", "no directory nowhere"]),
        (["--picture", "p.svg", "-o", "p.svg"], ["--picture: p.svg gets the schedule already"]),
    ],
    ids=lambda value: " ".join(value)[:40],
)
def test_bad_usage(file: Path, words: list[str], parts: list[str]) -> None:
    refused(placement("schedule", file, *words), *parts)
    assert os.listdir() == ["in.json"]


def test_solve_names_the_command_for_what_counts_in_time_alone() -> None:
    refused(placement("solve", "time-hold-back"), "policy.objectives[0]", "placement schedule")
    words = ["--objective", "completion_time"]
    refused(
        placement("solve", "whole-nodes", *words), "--objective: completion_time is about when", "placement schedule"
    )


def test_the_format_has_a_schema(file: Path) -> None:
    schema = json.loads(placement("schema", "schedule").stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads(placement("schedule", file, "--format", "json").stdout), schema)


def test_a_picture_that_cannot_be_written_is_named_by_its_option(file: Path) -> None:
    result = placement("schedule", file, "-o", "out.json", "--picture", "/proc/x.svg")
    assert (result.exit_code, result.stderr.startswith("error: --picture: /proc/x.svg")) == (2, True)
    assert not Path("out.json").exists()
