"""Running the command line in one process, and a snapshot to run it on."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner, Result

from placement.cli import app
from placement.snapshot import Gpu, Job, Node, Running, RunningTask, Snapshot, Task, TaskGroup

ONE = TaskGroup(name="g", task=Task(gpus=1))
SMALL = Snapshot(
    nodes=(Node(name="a", gpus=(Gpu(model="T4", count=2),)),),
    jobs=(
        Job(name="runs", groups=(ONE,), running=Running(tasks=(RunningTask(group="g", index=0, node="a", gpus=(0,)),))),
        Job(name="fits", groups=(ONE,)),
        Job(name="waits", groups=(TaskGroup(name="g", task=Task(gpus=2)),)),
        Job(name="never", groups=(TaskGroup(name="g", task=Task(gpus=3)),)),
    ),
)
"""Two cards, one of them taken: one job of one card fits, one of two must wait, one of three can never run."""


def placement(*words: str | Path, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words], input=stdin)


def refused(result: Result, *parts: str, lines: int = 1) -> None:
    """Assert that a command ended with a clear message, and nothing else anywhere."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert "Traceback" not in result.stderr
    for part in parts:
        assert part in result.stderr
    assert len(result.stderr.splitlines()) == lines
