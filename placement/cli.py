"""The command line: ``placement COMMAND ...``.

Exit codes: 0, there is an answer; 1, the answer is no; 2, bad input or usage, and no output file; 3, the solver
failed. What a machine reads goes to standard output alone, everything else to standard error.
"""

from __future__ import annotations

import errno
import io
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Annotated, Any, Literal, TextIO, cast

import typer
from typer.core import TyperGroup

from placement import interrupts
from placement.commands import (
    check,
    compare,
    consolidate,
    exports,
    generate,
    imports,
    instances,
    partition,
    preempt,
    repartition,
    schedule,
    schema,
    sharing,
    simulate,
    solve,
)
from placement.commands.once import Once
from placement.errors import InputError, PlacementError
from placement.interrupts import INTERRUPTED
from placement.report.terminal import discard, say, tell
from placement.version import VERSION

INPUT, FAILED, BROKEN_PIPE = 2, 3, 141
"""Exit codes for what ends a command early; the last is a shell's for the signal. Other signals are `interrupts`'."""

USAGE_ERROR = cast(type[typer.BadParameter], typer.BadParameter.__base__)
"""What the parser raises for any wrong command line; it has no public name of its own."""

OPTIONS = {
    "objective": "--objective",
    "objectives": "--objective",
    "solver": "--solver",
    "time_limit": "--time-limit",
    "gap": "--gap",
    "move_cost": "--move-cost",
    "max_moves": "--max-moves",
    "seed": "--seed",
    "without": "--without",
    "node": "--node",
    "budget": "--budget",
    "tries": "--tries",
    "sample": "--sample",
    "policy": "--policy",
    "job": "--job",
    "reclaim": "--reclaim",
    "format": "FORMAT",
    "plan": "PLAN",
}
"""Arguments of the Python interface by the options that set them."""


class Commands(TyperGroup):
    """Runs a command and turns what it raises into one message and an exit code."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command line."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                # a name that the terminal's encoding lacks must not end the command
                stream.reconfigure(errors="backslashreplace")
        try:
            code = super().main(args, prog_name, complete_var, False, windows_expand_args, **extra) or 0
        except USAGE_ERROR as error:
            code = _complain(error.format_message(), INPUT)
        if standalone_mode:
            sys.exit(code)
        return code

    def make_context(self, *args: Any, **extra: Any) -> Any:
        """Read the command line; prints the help and the version."""
        with _one_message():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command."""
        with _one_message():
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result


@contextmanager
def _one_message() -> Iterator[None]:
    """Turn whatever is raised into one message and an exit code."""
    try:
        with interrupts.heard():
            yield
    except InputError as error:
        raise typer.Exit(_complain(_text(error), INPUT)) from None
    except PlacementError as error:
        raise typer.Exit(_complain(str(error), FAILED)) from None
    except KeyboardInterrupt:
        raise typer.Exit(_interrupted()) from None
    except BrokenPipeError:
        discard(sys.stdout)
        raise typer.Exit(BROKEN_PIPE) from None
    except OSError as error:
        raise typer.Exit(_complain(*_lost(error))) from None
    except (typer.Exit, typer.Abort, USAGE_ERROR):
        raise
    except Exception:
        # not 1, which would read as an answer
        with suppress(OSError):
            traceback.print_exc()
        raise typer.Exit(_complain("this is a bug in placement", FAILED)) from None


WRITING = {errno.EBADF, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOSPC}
"""Errors of a system that come of writing; where no file is named, to standard output."""


def _lost(error: OSError) -> tuple[str, int]:
    """Return what to say of an error of the system, and the exit code: of standard output, or of the solver."""
    discard(sys.stdout)
    if error.filename is None and error.errno in WRITING:
        return f"standard output cannot be written ({error.strerror})", INPUT
    return str(error), FAILED


def _text(error: InputError) -> str:
    """Return the error's lines, arguments named as on the command line."""
    text = str(error)
    for problem in error.problems:
        option = OPTIONS.get(problem.path)
        if option and not error.source:
            text = text.replace(str(problem), option + str(problem).removeprefix(problem.path))
    return text


def _complain(text: str, code: int) -> int:
    say("error", text)
    return code


def _interrupted() -> int:
    interrupts.over()
    return _complain(interrupts.WORDS, INTERRUPTED)


app = typer.Typer(
    cls=Commands,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"placement {VERSION}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Optimal placement of GPU jobs on clusters: a checked plan, and a proven bound on any other."""
    if context.invoked_subcommand is None:
        tell(context.get_help())
        raise typer.Exit(INPUT)


app.command(cls=Once)(solve.solve)
app.command(cls=Once)(check.check)
app.command(cls=Once)(compare.compare)
app.command(cls=Once)(repartition.repartition)
app.command(cls=Once)(partition.partition)
app.command(cls=Once)(consolidate.consolidate)
app.command(cls=Once)(preempt.preempt)
app.command(cls=Once)(sharing.sharing)
app.command(cls=Once)(schedule.schedule)
app.command(cls=Once)(simulate.simulate)
app.command(cls=Once)(instances.instances)
app.command(cls=Once)(schema.schema)
app.command(cls=Once)(generate.generate)
app.command("import", cls=Once)(imports.imports)
app.command(cls=Once)(exports.export)


def _open_closed_streams() -> None:
    """Put something in the place of every standard stream that is closed.

    The next file that is opened would get its number otherwise, and be written over by what is meant for the stream.
    Using standard input or output is then an error, as it should be; what is said on standard error is lost, which is
    what closing it asks for.
    """
    # in ascending order, for a file gets the lowest number that is free
    for number, use in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, use)
    sys.stdin = sys.stdin or _stream(0, "r")
    sys.stdout = sys.stdout or _stream(1, "w")
    sys.stderr = sys.stderr or _stream(2, "w")


def _stream(number: int, mode: Literal["r", "w"]) -> TextIO:
    return open(number, mode, encoding="utf-8", closefd=False)


def main() -> None:
    """Run the command line; the entry point of ``placement``."""
    _open_closed_streams()
    interrupts.listen()
    try:
        with interrupts.heard():
            app()
    except KeyboardInterrupt:
        # it came before the command was under way, or at its very end
        sys.exit(_interrupted())
    finally:
        interrupts.over()
