"""The JSON Schema of the snapshot format, made from the records and their docstrings."""

from __future__ import annotations

import inspect
import re
from typing import Any

import msgspec

from placement.snapshot.events import EventLog
from placement.snapshot.snapshot import Snapshot
from placement.snapshot.structure import hints_of, records_in

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema(record: type[msgspec.Struct] = Snapshot) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a format.

    It describes structure: fields, types, defaults. What else a snapshot must keep (references, minima, devices
    that exist) is said by `placement.load` when it reads one.

    Parameters
    ----------
    record : type
        `Snapshot` or `EventLog`.
    """
    made = msgspec.json.schema(record)
    for definition in made["$defs"].values():
        definition.setdefault("additionalProperties", False)
    for part in records_in(record):
        definition = made["$defs"][part.__name__]
        definition["description"] = summary(part)
        for name, text in field_texts(part).items():
            definition["properties"][name] = _described(definition["properties"][name], text)
    title = "Placement events" if record is EventLog else "Placement snapshot"
    described: dict[str, Any] = msgspec.json.decode(msgspec.json.encode({"$schema": _DIALECT, "title": title, **made}))
    return described


def _described(definition: dict[str, Any], text: str) -> dict[str, Any]:
    return {**definition, "description": text} if text else definition


def summary(record: type) -> str:
    """Return the docstring of a record without its table of attributes, on one line."""
    text = inspect.cleandoc(record.__doc__ or "").partition("\nAttributes\n")[0]
    return " ".join(text.split())


def field_texts(record: type) -> dict[str, str]:
    """Return what the docstring says of each field: its type in words and its meaning."""
    lines = inspect.cleandoc(record.__doc__ or "").partition("\nAttributes\n")[2].splitlines()[1:]
    texts: dict[str, str] = {}
    current: list[str] = []
    for line in lines:
        heading = re.fullmatch(r"(\w+(?:, \w+)*) : (.*)", line)
        if heading:
            current = heading[1].split(", ")
            texts.update(dict.fromkeys(current, f"{heading[2]}."))
        elif line.strip():
            texts.update({name: f"{texts[name]} {line.strip()}" for name in current})
    return {name: texts[name].replace("``", "`") for name in hints_of(record) if name in texts}
