"""``nvidia-smi topo -m``: how near the cards of a node are to one another and to its NICs.

The matrix is printed for people: with tabs or blanks, in colours, with cells that are empty, cut or run together. It is
read by rows, each against the names of its columns, and believed only where both halves of it say the same. A cell that
cannot be read is an error that names its row: a matrix that is shifted by one cell would look right and be wrong.

The legend: https://docs.nvidia.com/deploy/nvidia-smi/index.html
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from placement.formats.source import File
from placement.snapshot.report import names, show

ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
HEADER = re.compile(r"[\s]*GPU0(\s|GPU1|NIC|mlx|CPU|$)")
_COLUMN = re.compile(r"(?:GPU|NIC)\d+|(?:(?!GPU\d|NIC\d)\S)+")
_AFFINITY = re.compile(r"CPU Affinity|NUMA Affinity|GPU NUMA ID")
_CELL = re.compile(r"\s*(\S+)")
_KIND = re.compile(r"NV(?P<width>[1-9]\d{0,2})|X|PIX|PXB|PHB|NODE|SYS|SOC")
_LEGEND = re.compile(r"\s*(NIC\d+)\s*:\s*(\S+)\s*")

NEAR = ("PIX", "PXB", "PHB", "NODE")
"""Kinds of path within one NUMA zone, from near to far."""

_BESIDE = 4
"""Letters by which a cell is in the next column: a tab is up to eight of them."""

MOST_DEVICES = 512
"""Cards and NICs of a matrix."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """What a matrix says.

    Attributes
    ----------
    cards : int
    kinds : mapping of (str, str) to (str, int)
        Kind of path, and lanes of NVLink, by the names of two columns; both ways round. Pairs of NICs may be missing.
    nics : mapping of str to str
        Name of a NIC by its column.
    cpus : tuple of str
        CPU affinity by card, as printed; empty where nothing is.
    numa : tuple of str
        NUMA affinity by card, as printed; empty where nothing is, or there is no such column.
    nic_numa : mapping of str to str
        Likewise by the column of a NIC.
    cut : tuple of str
        NICs that have a column and no row.
    unnamed : bool
        Whether NICs have no other name than that of their column.
    hides_nvlink : bool
        Whether the legend has no NVLink: the option ``-mp``.
    old : bool
        Whether the legend has none because the driver is from before it.
    legend : bool
    """

    cards: int
    kinds: Mapping[tuple[str, str], tuple[str, int]]
    nics: Mapping[str, str]
    cpus: tuple[str, ...]
    numa: tuple[str, ...]
    nic_numa: Mapping[str, str] = field(default_factory=dict)
    cut: tuple[str, ...] = ()
    unnamed: bool = False
    hides_nvlink: bool = False
    old: bool = False
    legend: bool = True


def read(file: File) -> Matrix:
    """Return the matrix of a file.

    Raises
    ------
    InputError
        If a row of a card is missing, a row is damaged, or the matrix says different things of one pair.
    """
    lines = [ANSI.sub("", line).rstrip("\r") for line in file.text().split("\n")]
    start = next((index for index, line in enumerate(lines) if HEADER.match(line)), None)
    if start is None:
        raise file.error("there is no matrix in it", "print it again: nvidia-smi topo -m")
    columns, affinity = _columns(file, lines[start], start)
    # where the first affinity begins, if blanks keep what is in one column below one another
    first = _AFFINITY.search(lines[start])
    aligned = first.start() if first is not None and "\t" not in lines[start] else None
    rows: dict[str, list[str]] = {}
    tails: dict[str, tuple[str, str]] = {}
    end = len(lines)
    for index in range(start + 1, len(lines)):
        name = lines[index].split(maxsplit=1)[:1]
        if not name or name[0].startswith("Legend"):
            end = index
            break
        if name[0] not in columns or name[0] in rows:
            what = "is there twice" if name[0] in rows else "has no column"
            raise file.error(f"row {show(name[0])} {what}", _AGAIN, f"line {index + 1}")
        rows[name[0]], tail = _row(file, lines[index], index, name[0], columns)
        begin = len(lines[index]) - len(tail.lstrip())
        tails[name[0]] = _tail(tail, affinity, right=aligned is not None and begin >= aligned + _BESIDE)
    cards = [name for name in columns if re.fullmatch(r"GPU\d+", name)]
    missing = [name for name in cards if name not in rows]
    if missing:
        raise file.error(f"the output is cut: the row is missing for {names(missing)}", _AGAIN, f"line {end}")
    legend = "\n".join(lines[end:])
    other = [name for name in columns if name not in cards]
    called, unnamed = _nic_names(other, lines[end:])
    explained = re.search(r"(?m)^[ \t]*X[ \t]*=", legend) is not None
    hidden = explained and not re.search(r"(?m)^[ \t]*NV#[ \t]*=", legend) and not any(map(_lanes, _cells(rows)))
    old = re.search(r"(?m)^[ \t]*SOC[ \t]*=", legend) is not None
    return Matrix(
        cards=len(cards),
        kinds=_pairs(file, columns, rows),
        nics=called,
        cpus=tuple(tails[name][0] for name in cards),
        numa=tuple(tails[name][1] for name in cards),
        nic_numa={name: tails[name][1] for name in other if name in tails},
        cut=tuple(name for name in other if name not in rows),
        unnamed=unnamed,
        hides_nvlink=hidden and not old,
        old=hidden and old,
        legend=explained,
    )


_AGAIN = "print it again, whole, and straight into a file"


def _columns(file: File, line: str, index: int) -> tuple[list[str], list[str]]:
    """Return the names of the devices in the header, and its columns of affinities."""
    affinity = _AFFINITY.findall(line)
    first = _AFFINITY.search(line)
    columns = [name for word in line[: first.start() if first else None].split() for name in _COLUMN.findall(word)]
    cards = [name for name in columns if re.fullmatch(r"GPU\d+", name)]
    wrong = cards != [f"GPU{number}" for number in range(len(cards))] or columns[: len(cards)] != cards
    if wrong or len(set(columns)) < len(columns) or len(columns) > MOST_DEVICES:
        what = f"the header does not name GPU0 and so on once each, in order: {show(line.strip())}"
        raise file.error(what, _AGAIN, f"line {index + 1}")
    return columns, affinity


def _row(file: File, line: str, index: int, name: str, columns: list[str]) -> tuple[list[str], str]:
    """Return the cells of a row, one for each column, and what comes after them."""
    position = line.index(name) + len(name)
    cells = []
    for column in columns:
        found = _CELL.match(line, position)
        cell = found[1] if found else ""
        if found is None or not _KIND.fullmatch(cell) or (cell == "X") != (column == name):
            what = f"row {name[:40]} is damaged: for {column[:40]} it has {show(cell) if cell else 'nothing'}"
            raise file.error(what, _AGAIN, f"line {index + 1}")
        cells.append("SYS" if cell == "SOC" else cell)
        position = found.end()
    return cells, line[position:]


def _tail(tail: str, affinity: list[str], right: bool) -> tuple[str, str]:
    """Return CPU and NUMA affinity; `right` is whether the first cell begins to the right of the first column.

    Cells may be empty, and so may be those of the row's end. With tabs it is known which; with blanks the CPUs are
    taken for the empty ones, for only they are hidden from a container.
    """
    if "\t" in tail:
        cells = [cell.strip() for cell in tail.split("\t")]
        # the tab, or blanks, after the last cell of the matrix
        cells = cells[1:] if not cells[0] else cells
    else:
        cells = tail.split()
        if (len(cells) > 1 or right) and len(cells) == len(affinity) - 1 and cells[0].isdigit():
            cells.insert(0, "")
    found = dict(zip(affinity, cells, strict=False))
    return found.get("CPU Affinity", ""), found.get("NUMA Affinity", "")


def _nic_names(columns: list[str], lines: list[str]) -> tuple[dict[str, str], bool]:
    """Return the names of NICs by column, and whether some have no other name than that."""
    legend = {found[1]: found[2] for line in lines if (found := _LEGEND.fullmatch(line)) is not None}
    called = {name: legend.get(name, name) for name in columns}
    if len(set(called.values())) < len(called):
        called = {name: name for name in columns}
    return called, any(name.startswith("NIC") and called[name] == name for name in columns)


def _cells(rows: Mapping[str, list[str]]) -> set[str]:
    return {cell for row in rows.values() for cell in row}


def _lanes(cell: str) -> int:
    found = _KIND.fullmatch(cell)
    return int(found["width"]) if found is not None and found["width"] else 0


def _pairs(file: File, columns: list[str], rows: Mapping[str, list[str]]) -> dict[tuple[str, str], tuple[str, int]]:
    """Return kind and lanes of each pair; what both halves of the matrix say has to be the same."""
    said: dict[tuple[str, str], str] = {}
    for row, cells in rows.items():
        for column, cell in zip(columns, cells, strict=True):
            if column == row:
                continue
            if said.get((row, column), cell) != cell:
                what = f"row {row} has {cell} for {column}, and row {column} has {said[row, column]} for {row}"
                raise file.error(what, _AGAIN)
            said[row, column] = said[column, row] = cell
    return {pair: ("NVLINK", lanes) if (lanes := _lanes(cell)) else (cell, 1) for pair, cell in said.items()}
