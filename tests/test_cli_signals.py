"""Signals that come where an exception gets lost, or where nothing would catch it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

INTERRUPT, TERMINATE = int(signal.SIGINT), int(signal.SIGTERM)
ENDS = [(INTERRUPT, 130, b"error: interrupted\n"), (TERMINATE, 143, b"")]
SOLVE = [sys.executable, "-m", "placement", "solve", "fragmentation-two-nodes", "-o", "plan.json", "--log", "run.log"]
WHEN = """\
import signal, sys
done = []
def when(event, arguments):
    if {when} and not done:
        done.append(event)
        send()
sys.addaudithook(when)
def send():
    {send}
"""
"""A program that the interpreter runs at its start, and that sends a signal to its own process at an event."""
LOADING = "event == 'import' and arguments[0] == 'placement.engine'"
UNDER_WAY = "event == 'open' and arguments[0] == 'run.log'"
"""The log is opened before anything is solved."""
CLEARED = """\
    for _ in range(2):
        try:
            signal.raise_signal({sent})
        except BaseException:
            pass
"""
IN_A_DESTRUCTOR = """\
    class Dying:
        def __del__(self):
            signal.raise_signal({sent})
    Dying()
"""
TURNED = """\
    try:
        signal.raise_signal({sent})
    except BaseException:
        raise ImportError("no module of that name") from None
"""
INSIDE_EXEC = "    exec('signal.raise_signal({sent})')"
PLAIN = "    signal.raise_signal({sent})"


@pytest.fixture
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("start")


def run(start: Path, command: Sequence[str], when: str, send: str, sent: int = INTERRUPT) -> tuple[int, bytes, bytes]:
    """Run a command that gets a signal; return its exit code, its output and its errors."""
    (start / "sitecustomize.py").write_text(WHEN.format(when=when, send=send.format(sent=sent).strip()), "utf-8")
    paths = [str(start), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    # whoever runs the tests in the background may have them ignore interrupts, and so would the command
    heeded = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    ended = subprocess.run(command, capture_output=True, check=False, env=environment, timeout=60, preexec_fn=heeded)
    return ended.returncode, ended.stdout, ended.stderr


@pytest.mark.parametrize(
    ("send", "sent", "code", "words"),
    [
        pytest.param(CLEARED, *ENDS[0], id="cleared"),
        pytest.param(CLEARED, *ENDS[1], id="cleared-terminated"),
        pytest.param(IN_A_DESTRUCTOR, *ENDS[0], id="destructor"),
        pytest.param(TURNED, *ENDS[0], id="turned"),
    ],
)
def test_an_exception_that_gets_lost(in_tmp: Path, start: Path, send: str, sent: int, code: int, words: bytes) -> None:
    """Compiled modules, destructors and libraries do such things to an exception that they do not expect."""
    assert run(start, [*SOLVE, "--solver", "exact"], UNDER_WAY, send, sent) == (code, b"", words)
    assert not Path("plan.json").exists()
    assert not Path("run.log").exists() or b'"done"' not in Path("run.log").read_bytes()


def test_an_interrupt_inside_exec(in_tmp: Path, start: Path) -> None:
    """The interpreter remembers a plain `KeyboardInterrupt` that left `exec`, and dies of the signal at its end."""
    assert run(start, SOLVE, UNDER_WAY, INSIDE_EXEC) == (130, b"", b"error: interrupted\n")


@pytest.mark.parametrize(("sent", "code", "words"), ENDS, ids=["interrupted", "terminated"])
def test_a_signal_while_the_command_is_loaded(in_tmp: Path, start: Path, sent: int, code: int, words: bytes) -> None:
    assert run(start, SOLVE, LOADING, PLAIN, sent) == (code, b"", words)
    assert not os.listdir()


def test_a_program_that_loads_the_package_keeps_its_handlers(in_tmp: Path, start: Path) -> None:
    program = "try:\n    import placement\nexcept KeyboardInterrupt:\n    print('mine')"
    assert run(start, [sys.executable, "-c", program], LOADING, PLAIN) == (0, b"mine\n", b"")


def test_a_command_in_the_background_ignores_the_keyboard(in_tmp: Path, start: Path) -> None:
    """A shell starts it so."""
    program = (
        "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    )
    code, _, errors = run(start, [sys.executable, "-c", program, *SOLVE, "--solver", "fgd"], UNDER_WAY, PLAIN)
    assert (code, errors) == (0, b"")
    assert sorted(os.listdir()) == ["plan.json", "run.log"]
