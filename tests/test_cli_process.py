"""The command line as a process: pipes, terminals and signals."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

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


@pytest.mark.parametrize(
    ("sent", "code", "words"), [(signal.SIGINT, 130, b"error: interrupted"), (signal.SIGTERM, 143, b"")]
)
@pytest.mark.parametrize("solver", ["random", "exact"])
def test_signals_end_it_without_a_trace(in_tmp: Path, solver: str, sent: int, code: int, words: bytes) -> None:
    with on_a_terminal(*LARGE, "--solver", solver) as (process, terminal):
        shown = b""
        while b"solving" not in shown:
            shown += read(terminal)
        process.send_signal(sent)
        while part := read(terminal):
            shown += part
        assert process.wait(timeout=5) == code
    assert words in shown
    assert b"Traceback" not in shown
    assert not os.listdir()


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


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_standard_output_is_full() -> None:
    with open("/dev/full", "wb") as full:
        run = subprocess.run([*PLACEMENT, "schema"], stdout=full, stderr=subprocess.PIPE, check=False)
    assert run.returncode == 2
    assert run.stderr.startswith(b"error: ")
    assert len(run.stderr.splitlines()) == 1


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
