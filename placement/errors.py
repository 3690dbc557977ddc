"""One tree of errors; every message names the place and the remedy.

.. code-block:: text

    PlacementError
    ├── InputError              something the user gave is wrong (exit code 2)
    │   ├── SnapshotError       a snapshot: one or more problems, each with its path
    │   │   └── UnhonouredError a field that no rule honours yet
    │   ├── PlanError           a plan file that cannot be read or does not belong to the snapshot
    │   └── UsageError          an argument or option out of range or unknown
    └── SolverError             the solver failed and no checked plan exists (exit code 3)

A bug in `placement` itself is never a `PlacementError`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong in an input.

    Attributes
    ----------
    path : str
        Where, as a path in the file, such as ``jobs[3].groups[0].count``; ``""`` for the whole file.
    what : str
        What was found and what was expected.
    remedy : str
        What to do about it.
    """

    path: str
    what: str
    remedy: str

    def __str__(self) -> str:
        where = f"{self.path}: " if self.path else ""
        return _one_line(f"{where}{self.what}; {self.remedy}" if self.remedy else f"{where}{self.what}")


def _one_line(text: str) -> str:
    """Return the text with line ends written out: names of files and of fields come from outside."""
    if text.isprintable():
        return text
    return "".join(c if len(f"{c}x".splitlines()) == 1 else c.encode("unicode_escape").decode() for c in text)


class PlacementError(Exception):
    """Base of every error that `placement` raises on purpose."""


class InputError(PlacementError):
    """Something the user gave is wrong.

    Parameters
    ----------
    problems : sequence of Problem
        What is wrong, in the order of the file; at least one.
    source : str
        Name of the file, or ``""``.
    total : int, optional
        How many problems there are when the list was cut.
    """

    def __init__(
        self, problems: list[Problem] | tuple[Problem, ...], source: str = "", total: int | None = None
    ) -> None:
        self.problems = tuple(problems)
        self.source = source
        self.total = len(self.problems) if total is None else total
        super().__init__(self.message())

    def message(self) -> str:
        """Return the text of all problems, one a line."""
        prefix = _one_line(f"{self.source}: ") if self.source else ""
        lines = [prefix + str(problem) for problem in self.problems]
        if self.total > len(self.problems):
            lines.append(f"{prefix}and {self.total - len(self.problems)} more problems")
        return "\n".join(lines)

    @classmethod
    def one(cls, what: str, remedy: str = "", *, path: str = "", source: str = "") -> InputError:
        """Return an error of this class with a single problem."""
        return cls([Problem(path, what, remedy)], source)


class SnapshotError(InputError):
    """A snapshot is wrong: one or more problems, each with its path."""


class UnhonouredError(SnapshotError):
    """A snapshot uses fields that no rule of this version honours."""


class PlanError(InputError):
    """A plan cannot be read, or does not belong to the snapshot."""


class UsageError(InputError):
    """An argument or option is out of range or unknown."""


class SolverError(PlacementError):
    """The solver failed and there is no checked plan to give."""
