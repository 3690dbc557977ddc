"""What ``scontrol show`` prints as text, as records with the field names of its JSON.

Records are lines of ``Key=value`` pairs, or several such lines up to an empty one. Values may hold blanks and what
looks like a pair, so that a key that comes twice is an error rather than a guess. Times have no zone: UTC is assumed.
Tables of sinfo and squeue are refused: they cut their cells, and most do not say which cards are in use.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from placement.errors import InputError
from placement.formats.ledger import Ledger
from placement.formats.slurm.conf import Names
from placement.formats.slurm.gres import numbers
from placement.formats.slurm.text_fields import JOB, NEEDED, NODE, PARTITION, RESERVATION, Fields, optional, time, whole
from placement.formats.source import File
from placement.snapshot.report import show

_RECORD = re.compile(
    rb"(?m)^(?:NodeName=\S+ (?=[^\n]*(?:Arch|CoresPerSocket|CPUAlloc|CPUTot)=)|JobId=[0-9]+ (?=[^\n]*=)"
    rb"|PartitionName=\S+\s+AllowGroups=|ReservationName=\S+ StartTime=)"
)
_TABLE = re.compile(
    rb"\A\s*(?:AVAIL|PARTITION|NODELIST|HOSTNAMES?|NODES?|JOBID|CLUSTER)\b|\A[\w.-]+ *\|(?:gpu:|\(null\))"
)
_START = 65536

_KEY = re.compile(r"(?<!\S)([A-Za-z][A-Za-z0-9_/&:.]*)=")
_HELD = re.compile(r"(?<!\S)Nodes=(\S+) CPU_IDs=(\S*) Mem=(\S*) GRES=(\S*)")

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Shown:
    """A record as it is printed.

    Attributes
    ----------
    where : str
    values : dict of str to str
        By key as it is printed.
    held : list of (str, str, str, str)
        Nodes, and CPUs, memory and devices that a job has on each of these, as ``-d`` prints them.
    """

    where: str
    values: dict[str, str]
    held: list[tuple[str, str, str, str]]

    @property
    def kind(self) -> str:
        """The first key."""
        return next(iter(self.values), "")


def looks_like(data: bytes) -> bool:
    """Return whether a file is what scontrol, sinfo or squeue prints as text."""
    start = data[:_START].removeprefix(b"\xef\xbb\xbf")
    return _RECORD.search(start) is not None or _TABLE.search(start) is not None


def nodes(file: File, ledger: Ledger) -> list[Record]:
    """Return what ``scontrol show nodes`` prints; empty for other records.

    Raises
    ------
    InputError
        If the file is damaged, or a table.
    """
    return [_record(file, one, NODE, "NodeName", ledger) for one in _shown(file) if one.kind == "NodeName"]


def jobs(file: File, ledger: Ledger) -> list[Record]:
    """Return what ``scontrol show jobs`` prints; empty for other records.

    Raises
    ------
    InputError
        If the file is damaged, or a table.
    """
    names, found = Names(file), []
    for one in _shown(file):
        if one.kind == "JobId":
            record = _record(file, one, JOB, "JobId", ledger)
            _hold(file, one, names, record)
            found.append(record)
    return found


def partitions(file: File, ledger: Ledger) -> list[Record]:
    """Return what ``scontrol show partitions`` prints; empty for other records.

    Raises
    ------
    InputError
        If the file is damaged, or a table.
    """
    found = []
    for one in _shown(file):
        if one.kind == "PartitionName":
            flat = _record(file, one, PARTITION, "PartitionName", ledger)
            found.append(
                {
                    "name": flat["name"],
                    "nodes": {"configured": flat.get("nodes", "")},
                    "partition": {"state": flat.get("state", [])},
                    "maximums": {"nodes": flat.get("most"), "shares": flat.get("shares")},
                }
            )
    return found


def reservations(file: File, ledger: Ledger) -> list[Record]:
    """Return what ``scontrol show reservations`` prints; empty for other records.

    Raises
    ------
    InputError
        If the file is damaged, or a table.
    """
    shown = [one for one in _shown(file) if one.kind == "ReservationName"]
    return [_record(file, one, RESERVATION, "ReservationName", ledger) for one in shown]


# --- records -------------------------------------------------------------------------------------------------


def _shown(file: File) -> Iterator[_Shown]:
    if _RECORD.search(file.data) is None:
        raise file.error(
            "a table of sinfo or squeue cuts its cells and does not say all that is in use",
            "dump it again with --json",
        )
    if not file.data.endswith(b"\n"):
        # a number that is cut, such as how many cards are in use, could pass for a smaller one
        last = file.data.count(b"\n") + 1
        raise file.error("the last line breaks off", "dump it again, whole, or end the line", f"line {last}")
    block: list[str] = []
    first = 0
    for number, line in enumerate([*file.text().split("\n"), ""], 1):
        begins = bool(line) and not line[0].isspace()
        if block and (begins or not line.strip()):
            yield _pairs(file, block, f"line {first}")
            block = []
        if line.strip():
            first = first if block else number
            block.append(line.strip())


def _pairs(file: File, block: list[str], where: str) -> _Shown:
    held: list[tuple[str, str, str, str]] = []
    values: dict[str, str] = {}
    for line in block:
        rest = line
        if line.startswith("Nodes=") or (len(block) == 1 and "CPU_IDs=" in line):
            held += [(one[1], one[2], one[3], one[4]) for one in _HELD.finditer(line)]
            rest = _HELD.sub("", line)
        before, *pairs = _KEY.split(rest)
        if before.strip():
            raise file.error(f"{show(line)} does not begin with Key=", "dump it again with --json", where)
        for key, value in zip(pairs[::2], pairs[1::2], strict=True):
            if key in values:
                raise file.error(f"the key {key} is there twice", "dump it again with --json", where)
            values[key] = value.strip()
    return _Shown(where, values, held)


def _hold(file: File, shown: _Shown, names: Names, record: Record) -> None:
    """Add to a job's record what it has, node by node."""
    task = record.pop("array_task", "")
    alone = re.fullmatch("[0-9]{1,18}", task) is not None
    record["array_task_id" if alone else "array_task_string"] = int(task) if alone else task
    record["hold"] = record.get("state_reason") in ("JobHeldUser", "JobHeldAdmin")
    record["max_nodes"] = optional(shown.values.get("NumNodes", "").partition("-")[2])
    allocation = []
    has: dict[str, str] = {}
    for listed, cpus, memory, devices in shown.held:
        try:
            count, mebibytes = len(numbers(cpus)) if cpus else 0, whole(memory)
        except (ValueError, InputError) as why:
            raise file.error(f"CPU_IDs or Mem is damaged: {why}", "dump it again with --json", shown.where) from None
        for node in names.of(listed, shown.where):
            allocation.append({"name": node, "cpus": {"count": count}, "memory": {"allocated": mebibytes}})
            has[node] = devices
    # one for each node, in the order of the job's own list
    record["gres_detail"] = [
        has.get(node, "") for node in names.of(record.get("nodes"), shown.where) if any(has.values())
    ]
    if allocation:
        record["job_resources"] = {"nodes": {"list": record.get("nodes", ""), "allocation": allocation}}


def _record(file: File, shown: _Shown, fields: Fields, name: str, ledger: Ledger) -> Record:
    record: Record = {}
    for key, text in shown.values.items():
        if key in fields:
            field, reader = fields[key]
            try:
                record[field] = reader(text)
            except (ValueError, OverflowError) as why:
                raise file.error(f"found {key}={show(text)}: {why}", "dump it again with --json", shown.where) from None
            if reader is time and record[field]:
                ledger.assumed("times in text, which has no time zone", "UTC", f"{file.name}: {shown.where}")
    for key in (name, *NEEDED.get(name, ())):
        if record.get(fields[key][0]) in (None, "", []):
            raise file.error(f"there is no {key}", "dump it again, whole, or with --json", shown.where)
    return record
