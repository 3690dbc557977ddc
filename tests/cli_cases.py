"""Running the command line in one process, and a snapshot to run it on."""

from __future__ import annotations

from pathlib import Path

import pytest
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


NODES_CSV = "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,P100\nn1,96000,393216,8,T4\n"
PODS_CSV = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
    "p0,12000,16384,1,1000,,LS,Running,0,1,0\n"
    "p1,6000,12288,1,460,T4,LS,Running,5,6,5\n"
)
"""Two nodes and two pods in the format of the openb trace."""

needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")


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
