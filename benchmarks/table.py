"""What the benchmarks print and write alike: rows in columns, and what they were measured on."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

Row = dict[str, object]


class Column(NamedTuple):
    """A column of a table: its heading, the key of its cells in a row, its width, and the format of numbers."""

    head: str
    key: str
    width: int
    form: str = ""


def heading(columns: Sequence[Column]) -> str:
    """Return the line above the rows."""
    return " ".join(f"{column.head:>{column.width}}" for column in columns)


def line(columns: Sequence[Column], row: Row) -> str:
    """Return a row as a line; what is missing or None is a dash."""
    return " ".join(f"{_cell(row.get(column.key), column.form):>{column.width}}" for column in columns)


def _cell(value: object, form: str) -> str:
    if value is None:
        return "-"
    return format(value, form) if isinstance(value, int | float) else str(value)


def number(row: Row, key: str) -> float:
    """Return a number of a row."""
    value = row[key]
    assert isinstance(value, int | float)
    return float(value)


def machine() -> Row:
    """Return versions, cores and how busy they are."""
    return {
        **{name: version(name) for name in ("gpu-placement", "highspy", "pyomo", "numpy", "msgspec")},
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load_average": [round(load, 2) for load in os.getloadavg()],
    }


def write(path: Path | None, **parts: object) -> None:
    """Write what was measured as JSON, if a file is given."""
    if path is not None:
        path.write_text(json.dumps(parts, indent=1) + "\n")
