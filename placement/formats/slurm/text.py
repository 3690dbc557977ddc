"""What ``scontrol show`` prints as text, as records with the field names of its JSON.

Records are lines of ``Key=value`` pairs, or several such lines up to an empty one. Values may hold blanks and what
looks like a pair, so that a key that comes twice is an error rather than a guess. Times have no zone: UTC is assumed.
Tables of sinfo and squeue are refused: they cut their cells, and most do not say which cards are in use.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from placement.errors import InputError
from placement.formats.ledger import Ledger
from placement.formats.slurm.conf import Names
from placement.formats.slurm.gres import numbers
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
_NOTHING = frozenset({"", "(null)", "N/A", "n/a", "NONE", "None", "n/s", "Unknown"})

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
    return [_record(file, one, _NODE, "NodeName", ledger) for one in _shown(file) if one.kind == "NodeName"]


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
            record = _record(file, one, _JOB, "JobId", ledger)
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
            flat = _record(file, one, _PARTITION, "PartitionName", ledger)
            found.append(
                {
                    "name": flat["name"],
                    "nodes": {"configured": flat.get("nodes", "")},
                    "partition": {"state": flat.get("state", [])},
                    "maximums": {"time": flat.get("time"), "nodes": flat.get("most")},
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
    return [_record(file, one, _RESERVATION, "ReservationName", ledger) for one in shown]


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
        if "CPU_IDs=" in line:
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
    record["array_task_id" if task.isdigit() else "array_task_string"] = int(task) if task.isdigit() else task
    record["hold"] = record.get("state_reason") in ("JobHeldUser", "JobHeldAdmin")
    record["gres_detail"], allocation = [], []
    for listed, cpus, memory, devices in shown.held:
        try:
            count, mebibytes = len(numbers(cpus)) if cpus else 0, _whole(memory)
        except (ValueError, InputError) as why:
            raise file.error(f"CPU_IDs or Mem is damaged: {why}", "dump it again with --json", shown.where) from None
        for node in names.of(listed, shown.where):
            allocation.append({"name": node, "cpus": {"count": count}, "memory": {"allocated": mebibytes}})
            record["gres_detail"] += [devices] if devices else []
    if allocation:
        record["job_resources"] = {"nodes": {"list": record.get("nodes", ""), "allocation": allocation}}


_Reader = Callable[[str], Any]
_Fields = Mapping[str, tuple[str, _Reader]]


def _record(file: File, shown: _Shown, fields: _Fields, name: str, ledger: Ledger) -> Record:
    record: Record = {}
    for key, text in shown.values.items():
        if key in fields:
            field, reader = fields[key]
            try:
                record[field] = reader(text)
            except (ValueError, OverflowError) as why:
                raise file.error(f"found {key}={show(text)}: {why}", "dump it again with --json", shown.where) from None
            if reader is _time and record[field]:
                ledger.assumed("times in text, which has no time zone", "UTC", f"{file.name}: {shown.where}")
    for key in (name, *_NEEDED.get(name, ())):
        if record.get(fields[key][0]) in (None, "", []):
            raise file.error(f"there is no {key}", "dump it again, whole, or with --json", shown.where)
    return record


# --- values --------------------------------------------------------------------------------------------------


def _text(text: str) -> str:
    return "" if text in _NOTHING else text


def _whole(text: str) -> int:
    if re.fullmatch("[0-9]{1,18}", text, re.ASCII) is None:
        raise ValueError("expected a whole number")
    return int(text)


def _first(text: str) -> int:
    """Return the least of a range such as ``2-4``."""
    return _whole(text.partition("-")[0])


def _optional(text: str) -> int | None:
    return None if text in _NOTHING or text in ("UNLIMITED", "*") else _whole(text)


def _task(text: str) -> str:
    """Return the number of a task, or the numbers of those that wait."""
    return _text(text).partition("%")[0]


def _leading(text: str) -> int | None:
    """Return the number before ``:`` or ``@``."""
    return _optional(re.split("[:@]", text)[0])


def _last(text: str) -> int | None:
    """Return the number after the last ``:``."""
    return _optional(text.rpartition(":")[2])


def _list(text: str) -> list[str]:
    return [part for part in _text(text).split(",") if part]


def _tres(text: str) -> str:
    """Return resources such as ``cpu=4,gres/gpu=1``; a part without a value was cut off."""
    plain = _text(text)
    for part in plain.split(",") if plain else ():
        key, sign, value = part.partition("=")
        if not (key and sign and value):
            raise ValueError("a part without a value, as if cut off")
    return plain


def _time(text: str) -> int:
    if text in _NOTHING:
        return 0
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


_MINUTES = re.compile(r"(?:([0-9]{1,6})-)?([0-9]{1,4}):([0-9]{2}):([0-9]{2})", re.ASCII)


def _minutes(text: str) -> int | dict[str, Any] | None:
    """Return a time limit in minutes, as JSON has it, rounded up."""
    if text in ("UNLIMITED", "INFINITE"):
        return {"set": False, "infinite": True, "number": 0}
    if text in _NOTHING or text == "Partition_Limit":
        return None
    found = _MINUTES.fullmatch(text)
    if found is None:
        raise ValueError("expected a time such as 1-12:00:00")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return (days * 24 + hours) * 60 + minutes + (seconds > 0)


def _megabytes(text: str) -> int | None:
    """Return memory in mebibytes, as JSON has it, rounded up."""
    if text in _NOTHING or text == "0":
        return None
    found = re.fullmatch(r"([0-9]{1,15})(?:\.([0-9]{1,6}))?([KMGTP]?)", text, re.ASCII)
    if found is None:
        raise ValueError("expected memory such as 16G")
    scale: int = 1024 ** (("K", "M", "G", "T", "P").index(found[3]) if found[3] else 1)
    tenths: int = 10 ** len(found[2] or "")
    return -(-int(found[1] + (found[2] or "")) * scale // (tenths * 1024))


def _yes(text: str) -> bool:
    return text in ("1", "YES")


def _sharing(text: str) -> str:
    """Return the JSON's word: OverSubscribe is NO for a job that has its nodes for itself."""
    return {"NO": "none", "USER": "user", "MCS": "mcs", "YES": "oversubscribe"}.get(text, "")


def _user(text: str) -> str:
    return text.partition("(")[0]


_NEEDED = {"NodeName": ("State", "CPUTot"), "JobId": ("JobState",)}
"""Without these a record is not whole."""

_NODE: _Fields = {
    "NodeName": ("name", _text),
    "State": ("state", _text),
    "CPUTot": ("cpus", _whole),
    "CPUEfctv": ("effective_cpus", _whole),
    "CPUAlloc": ("alloc_cpus", _whole),
    "RealMemory": ("real_memory", _whole),
    "AllocMem": ("alloc_memory", _whole),
    "MemSpecLimit": ("specialized_memory", _whole),
    "Sockets": ("sockets", _whole),
    "CoresPerSocket": ("cores", _whole),
    "ThreadsPerCore": ("threads", _whole),
    "Boards": ("boards", _whole),
    "Gres": ("gres", _text),
    "GresUsed": ("gres_used", _text),
    "GresDrain": ("gres_drained", _text),
    "AvailableFeatures": ("features", _list),
    "ActiveFeatures": ("active_features", _list),
    "Partitions": ("partitions", _list),
    "ReservationName": ("reservation", _text),
    "CfgTRES": ("tres", _tres),
    "AllocTRES": ("tres_used", _tres),
    "Owner": ("owner", _text),
    "MCS_label": ("mcs_label", _text),
}

_JOB: _Fields = {
    "JobId": ("job_id", _whole),
    "ArrayJobId": ("array_job_id", _whole),
    "ArrayTaskId": ("array_task", _task),
    "HetJobId": ("het_job_id", _whole),
    "HetJobOffset": ("het_job_offset", _whole),
    "JobName": ("name", _text),
    "UserId": ("user_name", _user),
    "Account": ("account", _text),
    "QOS": ("qos", _text),
    "Partition": ("partition", _text),
    "JobState": ("job_state", _list),
    "Reason": ("state_reason", str),
    "Priority": ("priority", _whole),
    "Dependency": ("dependency", _text),
    "Requeue": ("requeue", _yes),
    "Restarts": ("restart_cnt", _whole),
    "TimeLimit": ("time_limit", _minutes),
    "TimeMin": ("time_minimum", _minutes),
    "SubmitTime": ("submit_time", _time),
    "EligibleTime": ("eligible_time", _time),
    "StartTime": ("start_time", _time),
    "EndTime": ("end_time", _time),
    "Deadline": ("deadline", _time),
    "PreemptEligibleTime": ("preemptable_time", _time),
    "NodeList": ("nodes", _text),
    "ReqNodeList": ("required_nodes", _text),
    "ExcNodeList": ("excluded_nodes", _text),
    "NumNodes": ("node_count", _first),
    "NumCPUs": ("cpus", _first),
    "NumTasks": ("tasks", _optional),
    "CPUs/Task": ("cpus_per_task", _optional),
    "ReqTRES": ("tres_req_str", _tres),
    "AllocTRES": ("tres_alloc_str", _tres),
    "TresPerJob": ("tres_per_job", _text),
    "TresPerNode": ("tres_per_node", _text),
    "TresPerSocket": ("tres_per_socket", _text),
    "TresPerTask": ("tres_per_task", _text),
    "MinCPUsNode": ("minimum_cpus_per_node", _whole),
    "MinMemoryCPU": ("memory_per_cpu", _megabytes),
    "MinMemoryNode": ("memory_per_node", _megabytes),
    "Features": ("features", _text),
    "Reservation": ("resv_name", _text),
    "NtasksPerN:B:S:C": ("tasks_per_node", _leading),
    "ReqB:S:C:T": ("threads_per_core", _last),
    "MinTmpDiskNode": ("minimum_tmp_disk_per_node", _megabytes),
    "Switches": ("required_switches", _leading),
    "SegmentSize": ("segment_size", _optional),
    "ArrayTaskThrottle": ("array_max_tasks", _optional),
    "CpusPerTres": ("cpus_per_tres", _text),
    "MemPerTres": ("memory_per_tres", _text),
    "Prefer": ("prefer", _text),
    "OverSubscribe": ("shared", _sharing),
    "Contiguous": ("contiguous", _yes),
    "Licenses": ("licenses", _text),
}

_PARTITION: _Fields = {
    "PartitionName": ("name", _text),
    "Nodes": ("nodes", _text),
    "State": ("state", _list),
    "MaxTime": ("time", _minutes),
    "MaxNodes": ("most", _optional),
}

_RESERVATION: _Fields = {
    "ReservationName": ("name", _text),
    "StartTime": ("start_time", _time),
    "EndTime": ("end_time", _time),
    "Nodes": ("node_list", _text),
    "NodeCnt": ("node_count", _whole),
    "PartitionName": ("partition", _text),
    "Flags": ("flags", _list),
    "Users": ("users", _text),
    "Accounts": ("accounts", _text),
}
