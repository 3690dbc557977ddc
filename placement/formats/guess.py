"""The format of a file, by what is in it."""

from __future__ import annotations

import re

import msgspec

from placement.formats.source import File

FORMATS = ("kubernetes", "kueue", "volcano", "kai", "slurm", "nvidia-smi", "openb", "philly")
"""Formats that can be named."""

OBJECTS = frozenset({"kubernetes", "kueue", "volcano", "kai"})
"""Formats that are objects of a Kubernetes cluster, read all together."""

_START = 65536

_SIGNS: tuple[tuple[str, str], ...] = (
    (r'\A\{.*"(kind|rawObjects)"\s*:', "kubernetes"),
    (r'\A\{.*"(apiVersion)"\s*:', "kubernetes"),
    (r'\A\{.*"(nodes|jobs|sinfo|reservations|partitions|meta)"\s*:', "slurm"),
    (r"(?m)^(- )?[ \t]*(kind|apiVersion)[ \t]*:", "kubernetes"),
    (r"(?m)^[ \t]*- topology[ \t]*:", "slurm"),
    (
        r"(?im)^[ \t]*(SwitchName|BlockName|BlockSizes|NodeName|Name|AutoDetect|PartitionName|JobId|ReservationName)"
        r"[ \t]*=",
        "slurm",
    ),
    (r"<nvidia_smi_log|NVSMI LOG|NVIDIA-SMI|(?m:^GPU \d+: )|(?m:^(?:[ \t]|\x1b\[4m)*GPU0)", "nvidia-smi"),
    (r"GPU instance|Compute instances:|\A[^\n]*\b(gpu_uuid|uuid|pci\.bus_id|memory\.total|mig\.mode)\b", "nvidia-smi"),
    (r"\A\S*(NODELIST|HOSTNAMES|PARTITION|JOBID)\b", "slurm"),
    (r"\Asn,|\Aname,cpu_milli", "openb"),
    (r'\A\[?\s*\{[^\[]*"(attempts|submitted_time)"\s*:', "philly"),
    (r"\A[^\n]*\b(num_gpus?|scale_factor|num_replicas)\b[^\n]*\n", "philly"),
)
"""What only files of a format have; the first that is found decides. Blanks before it are cut off.

No two parts that match the same blanks stand side by side, so that a file of blanks takes no more time than another.
"""


_FIRST = re.compile(rb'(?:\xef\xbb\xbf)?[ \t\r\n]*\{[ \t\r\n]*"(?:apiVersion|kind|rawObjects)"[ \t\r\n]*:')
"""A JSON object of which the first key says that it is of Kubernetes."""


class _Top(msgspec.Struct, rename="camel"):
    """What tells the JSON of one system from that of another."""

    kind: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    api_version: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    raw_objects: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    meta: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


def _of_json(data: bytes) -> str:
    """Return the system that a JSON object is of by its own keys, not those of what is in it; empty where none says."""
    if _FIRST.match(data):
        # as kubectl prints it: half a gigabyte need not be gone through to see that
        return "kubernetes"
    try:
        top = msgspec.json.decode(data, type=_Top)
    except (msgspec.MsgspecError, RecursionError):
        return ""
    if any(found is not msgspec.UNSET for found in (top.kind, top.api_version, top.raw_objects)):
        return "kubernetes"
    return "" if top.meta is msgspec.UNSET else "slurm"


def guessed(file: File) -> str:
    """Return the format of a file.

    Raises
    ------
    InputError
        If it has no sign of any, or nothing in it.
    """
    if file.format:
        return file.format
    if file.data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{" and (name := _of_json(file.data)):
        return name
    text = file.data[:_START].decode("utf-8", "replace").removeprefix("\ufeff").lstrip()
    if not text and len(file.data) <= _START:
        raise file.error("the file is empty", "dump it again")
    for pattern, name in _SIGNS:
        if re.search(pattern, text, re.DOTALL):
            return name
    raise file.error("the format cannot be told from what is in it", f"name it: one of {', '.join(FORMATS)}")
