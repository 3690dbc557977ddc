"""The fields of records that ``scontrol show`` prints as text: what each is called in the JSON, and how it is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

Fields = Mapping[str, tuple[str, Callable[[str], Any]]]
"""By key: the name in the JSON, and what reads the text; it raises ValueError for what is not of the form."""

_NOTHING = frozenset({"", "(null)", "N/A", "n/a", "NONE", "None", "n/s", "Unknown"})


def _text(text: str) -> str:
    return "" if text in _NOTHING else text


def whole(text: str) -> int:
    """Return a number.

    Raises
    ------
    ValueError
        If it is none.
    """
    if re.fullmatch("[0-9]{1,18}", text, re.ASCII) is None:
        raise ValueError("expected a whole number")
    return int(text)


def _first(text: str) -> int:
    """Return the least of a range such as ``2-4``."""
    low, _, high = text.partition("-")
    return min(whole(low), whole(high or low))


def optional(text: str) -> int | None:
    """Return a number, or None where none is said.

    Raises
    ------
    ValueError
        If it is something else.
    """
    return None if text in _NOTHING or text in ("UNLIMITED", "*") else whole(text)


def _task(text: str) -> str:
    """Return the number of a task, or the numbers of those that wait."""
    return _text(text).partition("%")[0]


def _leading(text: str) -> int | None:
    """Return the number before ``:`` or ``@``."""
    return optional(re.split("[:@]", text)[0])


def _last(text: str) -> int | None:
    """Return the number after the last ``:``."""
    return optional(text.rpartition(":")[2])


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


def time(text: str) -> int:
    """Return a time in seconds since 1970, as if it were of UTC; 0 for none.

    Raises
    ------
    ValueError
        If it is no time.
    """
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
    return {"NO": "none", "USER": "user", "MCS": "mcs", "TOPO": "topo", "YES": "oversubscribe"}.get(text, "")


def _shares(text: str) -> int | None:
    """Return how many jobs may share what a partition has: 0 where not even nodes are shared."""
    return 0 if text == "EXCLUSIVE" else None


def _binding(text: str) -> list[str]:
    """Return the JSON's flags for a job that takes no cores but those near its cards."""
    return ["GRES_BINDING_ENFORCED"] if text == "Yes" else []


NEEDED = {"NodeName": ("State", "CPUTot"), "JobId": ("JobState",)}
"""Without these a record is not whole."""

NODE: Fields = {
    "NodeName": ("name", _text),
    "State": ("state", _text),
    "CPUTot": ("cpus", whole),
    "CPUEfctv": ("effective_cpus", whole),
    "CPUAlloc": ("alloc_cpus", whole),
    "RealMemory": ("real_memory", whole),
    "AllocMem": ("alloc_memory", whole),
    "MemSpecLimit": ("specialized_memory", whole),
    "Sockets": ("sockets", whole),
    "CoresPerSocket": ("cores", whole),
    "ThreadsPerCore": ("threads", whole),
    "Gres": ("gres", _text),
    "GresUsed": ("gres_used", _text),
    "GresDrain": ("gres_drained", _text),
    "AvailableFeatures": ("features", _list),
    "ActiveFeatures": ("active_features", _list),
    "Partitions": ("partitions", _list),
    "ReservationName": ("reservation", _text),
    "AllocTRES": ("tres_used", _tres),
    "Owner": ("owner", _text),
    "MCS_label": ("mcs_label", _text),
}

JOB: Fields = {
    "JobId": ("job_id", whole),
    "ArrayJobId": ("array_job_id", whole),
    "ArrayTaskId": ("array_task", _task),
    "HetJobId": ("het_job_id", whole),
    "HetJobOffset": ("het_job_offset", whole),
    "Account": ("account", _text),
    "Partition": ("partition", _text),
    "JobState": ("job_state", _list),
    "Reason": ("state_reason", str),
    "Priority": ("priority", whole),
    "Dependency": ("dependency", _text),
    "Restarts": ("restart_cnt", whole),
    "TimeLimit": ("time_limit", _minutes),
    "SubmitTime": ("submit_time", time),
    "EligibleTime": ("eligible_time", time),
    "StartTime": ("start_time", time),
    "Deadline": ("deadline", time),
    "NodeList": ("nodes", _text),
    "ReqNodeList": ("required_nodes", _text),
    "ExcNodeList": ("excluded_nodes", _text),
    "NumNodes": ("node_count", _first),
    "NumCPUs": ("cpus", _first),
    "NumTasks": ("tasks", optional),
    "CPUs/Task": ("cpus_per_task", optional),
    "ReqTRES": ("tres_req_str", _tres),
    "AllocTRES": ("tres_alloc_str", _tres),
    "TresPerJob": ("tres_per_job", _text),
    "TresPerNode": ("tres_per_node", _text),
    "TresPerSocket": ("tres_per_socket", _text),
    "TresPerTask": ("tres_per_task", _text),
    "MinCPUsNode": ("minimum_cpus_per_node", whole),
    "MinMemoryCPU": ("memory_per_cpu", _megabytes),
    "MinMemoryNode": ("memory_per_node", _megabytes),
    "Features": ("features", _text),
    "Reservation": ("resv_name", _text),
    "NtasksPerN:B:S:C": ("tasks_per_node", _leading),
    "Socks/Node": ("sockets_per_node", optional),
    "ReqB:S:C:T": ("threads_per_core", _last),
    "MinTmpDiskNode": ("minimum_tmp_disk_per_node", _megabytes),
    "Switches": ("required_switches", _leading),
    "SegmentSize": ("segment_size", optional),
    "ArrayTaskThrottle": ("array_max_tasks", optional),
    "CpusPerTres": ("cpus_per_tres", _text),
    "MemPerTres": ("memory_per_tres", _text),
    "Prefer": ("prefer", _text),
    "GresEnforceBind": ("flags", _binding),
    "OverSubscribe": ("shared", _sharing),
    "Contiguous": ("contiguous", _yes),
    "Licenses": ("licenses", _text),
}

PARTITION: Fields = {
    "PartitionName": ("name", _text),
    "Nodes": ("nodes", _text),
    "State": ("state", _list),
    "MaxNodes": ("most", optional),
    "OverSubscribe": ("shares", _shares),
}

RESERVATION: Fields = {
    "ReservationName": ("name", _text),
    "StartTime": ("start_time", time),
    "EndTime": ("end_time", time),
    "Nodes": ("node_list", _text),
    "Flags": ("flags", _list),
}
