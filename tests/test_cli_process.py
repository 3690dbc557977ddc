"""The command line as a process: pipes, terminals and signals."""

from __future__ import annotations

import json
import os
import pty
import re
import resource
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cli_cases import NODES_CSV, PODS_CSV, needs_full, placement

PLACEMENT = [sys.executable, "-m", "placement"]
LARGE = ["solve", "openb", "-o", "plan.json"]


def default_signals() -> None:
    """Undo what a shell does to what it runs in the background: its children ignore these signals, and so do theirs."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def read(terminal: int) -> bytes:
    """Return what is there to read of a terminal, and nothing at its end."""
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""


@contextmanager
def on_a_terminal(*words: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Run a command whose standard error is a terminal."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(
        [*PLACEMENT, *words],
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=environment,
        preexec_fn=default_signals,
    ) as process:
        os.close(theirs)
        try:
            yield process, ours
        finally:
            process.kill()
            os.close(ours)


def test_a_pipe_gets_no_progress_and_no_colour() -> None:
    words = ["solve", "fragmentation-two-nodes", "--solver", "fgd"]
    run = subprocess.run([*PLACEMENT, *words], capture_output=True, check=True, env={**os.environ, "TERM": "xterm"})
    assert run.stderr == b""
    assert b"\x1b" not in run.stdout


def test_a_terminal_gets_progress(in_tmp: Path) -> None:
    with on_a_terminal(*LARGE, "--solver", "best-fit") as (process, terminal):
        shown = b""
        while part := read(terminal):
            shown += part
        assert process.wait() == 0
    assert b"solving" in shown
    assert b"best-fit" in shown
    assert Path("plan.json").stat().st_size > 100_000


def test_progress_shows_what_is_known(in_tmp: Path) -> None:
    with on_a_terminal(*LARGE, "--time-limit", "60") as (_, terminal):
        shown = b""
        while b"gap" not in shown and (part := read(terminal)):
            shown += part
    # the clock of the line, the phase, the incumbent, the bound and the gap
    assert re.search(rb"solving  \d+ s  [a-z-]+[^\r\n]*  value [\d,]+  bound [\d,.]+  gap [\d.<]+ %", shown)


@pytest.mark.parametrize(
    ("sent", "code", "words"), [(signal.SIGINT, 130, b"error: interrupted"), (signal.SIGTERM, 143, b"")]
)
@pytest.mark.parametrize("solver", ["random", "exact"])
def test_signals_end_it_without_a_trace(in_tmp: Path, solver: str, sent: int, code: int, words: bytes) -> None:
    # a greedy rule takes less than a second, and on a busy machine the signal may come after its end
    for _ in range(5):
        shown, ended = _interrupted(solver, sent)
        if ended:
            break
        Path("plan.json").unlink()
        Path("run.log").unlink()
    assert ended == code
    assert words in shown
    assert b"Traceback" not in shown
    # what was logged stays, and does not claim an end
    assert os.listdir() == ["run.log"]
    assert "done" not in [json.loads(line)["phase"] for line in Path("run.log").read_bytes().splitlines()]


def _interrupted(solver: str, sent: int) -> tuple[bytes, int]:
    """Send a signal once something is in the log; return what was shown, and the exit code."""
    with on_a_terminal(*LARGE, "--solver", solver, "--log", "run.log") as (process, terminal):
        shown = b""
        while process.poll() is None and not (Path("run.log").exists() and Path("run.log").stat().st_size):
            time.sleep(0.005)
        process.send_signal(sent)
        while part := read(terminal):
            shown += part
        return shown, process.wait(timeout=5)


@pytest.mark.parametrize(
    "words", [["schema"], ["solve", "openb", "--solver", "best-fit", "-o", "-"]], ids=lambda w: w[0]
)
def test_nobody_reads(words: list[str]) -> None:
    with subprocess.Popen([*PLACEMENT, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141


COMMANDS = {
    "--help": "",
    "--version": "",
    "import openb --help": "",
    "solve fragmentation-two-nodes --solver fgd": "-o plan.json",
    "solve fragmentation-two-nodes --solver fgd -o -": "--log run.log",
    "check fragmentation-two-nodes {plan}": "--format json",
    "compare fragmentation-two-nodes --solvers fgd": "--format json",
    "instances": "",
    "schema": "plan",
    "generate --nodes 1": "",
    "import openb {nodes} {pods}": "",
}
"""Every command that prints, by what follows it."""


def shells(redirection: str, commands: Iterable[str], **files: Path) -> dict[str, tuple[int, bytes, bytes]]:
    """Run commands at the same time, each with a stream redirected; return their codes, outputs and errors."""
    started = {}
    for command in commands:
        words = f"{shlex.join(PLACEMENT)} {command.format(**files)} {redirection}"
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        started[command] = subprocess.Popen(["sh", "-c", words], **pipes)  # type: ignore[call-overload]
    ended = {command: (*process.communicate(timeout=60), process.returncode) for command, process in started.items()}
    return {command: (code, output, errors) for command, (output, errors, code) in ended.items()}


@pytest.fixture
def files(in_tmp: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    elsewhere = tmp_path_factory.mktemp("input")
    found = {"plan": elsewhere / "plan.json", "nodes": elsewhere / "nodes.csv", "pods": elsewhere / "pods.csv"}
    made = placement("solve", "fragmentation-two-nodes", "--solver", "fgd", "-o", found["plan"])
    assert made.exit_code == 0, made.output
    found["nodes"].write_text(NODES_CSV, "utf-8")
    found["pods"].write_text(PODS_CSV, "utf-8")
    return found


@pytest.mark.parametrize(
    ("redirection", "why", "unbuffered"),
    [
        (">&-", b"Bad file descriptor", "1"),
        pytest.param(">/dev/full", b"No space left on device", "", marks=needs_full),
    ],
)
def test_standard_output_takes_nothing(
    files: dict[str, Path], monkeypatch: pytest.MonkeyPatch, redirection: str, why: bytes, unbuffered: str
) -> None:
    """One clear line, and nothing half done: no plan that nobody is told of, no traceback."""
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    commands = [f"{command} {rest}" for command, rest in COMMANDS.items()]
    for command, (code, _, errors) in shells(redirection, commands, **files).items():
        assert errors.startswith(b"error: standard output cannot be written (" + why), command
        assert (code, len(errors.splitlines())) == (2, 1), command
    assert not os.listdir()


@pytest.mark.parametrize("redirection", ["2>&-", pytest.param("2>/dev/full", marks=needs_full)])
def test_standard_error_takes_nothing(
    files: dict[str, Path], monkeypatch: pytest.MonkeyPatch, redirection: str
) -> None:
    """What is said there is lost; the answer and the exit code are not."""
    monkeypatch.setenv("PYTHONUNBUFFERED", "")
    due = {"solve missing": 2, "nothing": 2, "": 2, "solve fragmentation-two-nodes --solver fgd -o - --log -": 0}
    due |= {"solve fragmentation-two-nodes --solver exact": 0, "check fragmentation-two-nodes {plan}": 0}
    for command, (code, output, errors) in shells(redirection, due, **files).items():
        assert (code, errors) == (due[command], b""), command
        assert bool(output) == (code == 0), command
    assert not os.listdir()


def test_standard_input_is_closed(files: dict[str, Path]) -> None:
    wrong = ["solve - -o plan.json", "check - {plan}", "check fragmentation-two-nodes -", "compare -"]
    right = ["solve fragmentation-two-nodes --solver exact"]
    found = shells("<&-", [*wrong, *right], **files)
    for command in wrong:
        code, output, errors = found[command]
        assert (code, output) == (2, b""), command
        assert errors.startswith(b"error: "), command
        assert b"cannot be read" in errors, command
        assert len(errors.splitlines()) == 1, command
    assert [found[command][0] for command in right] == [0]
    assert not os.listdir()


def test_no_file_takes_the_place_of_a_closed_stream(in_tmp: Path) -> None:
    """With all streams closed, the first file that is opened would be standard input, output and error at once."""
    ((code, _, _),) = shells("<&- >&- 2>&-", ["generate --nodes 1 -o made.json"]).values()
    assert code == 0
    assert Path("made.json").read_bytes() == placement("generate", "--nodes", "1").stdout_bytes


def test_a_log_that_fills_the_disk(in_tmp: Path) -> None:
    """The first line fits; the answer comes all the same."""
    command = "solve fragmentation-two-nodes --solver fgd -o - --log run.log"
    run = subprocess.run(
        [*PLACEMENT, *command.split()],
        capture_output=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)),
    )
    assert run.returncode == 0
    assert run.stderr == b"warning: --log: run.log could not be written in full (File too large)\n"
    assert json.loads(run.stdout)["checked"]
    written = Path("run.log").read_bytes()
    assert len(written) == 100
    assert json.loads(written.splitlines()[0])["phase"] == "fgd"


def test_a_terminal_without_unicode(in_tmp: Path) -> None:
    """Names and lines that the encoding lacks are written out; nothing ends in a traceback."""
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"}
    node = '{"name": "caf\\u00e9", "gpus": [{"model": "T4"}]}'
    Path("small.json").write_text(f'{{"format": "placement-snapshot/1", "nodes": [{node}]}}', "utf-8")
    run = subprocess.run(
        [*PLACEMENT, "solve", "small.json", "--solver", "fgd"], capture_output=True, check=False, env=environment
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.isascii()
    assert b"caf" in run.stdout


def test_the_module_is_the_command() -> None:
    run = subprocess.run([*PLACEMENT, "--help"], capture_output=True, text=True, check=True)
    assert "Usage: python -m placement" in run.stdout
