"""``placement schema``: the file formats as JSON Schema."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec
import typer

from placement.commands.files import STANDARD, Output
from placement.plan import Plan
from placement.snapshot import EventLog
from placement.snapshot.read import schema as snapshot_schema


class Document(StrEnum):
    """A file format."""

    SNAPSHOT = "snapshot"
    PLAN = "plan"
    EVENTS = "events"


def schema(
    document: Annotated[Document, typer.Argument(help="The format to describe.")] = Document.SNAPSHOT,
) -> None:
    """Print the JSON Schema of a file format."""
    if document is Document.SNAPSHOT:
        described = snapshot_schema()
    else:
        described = msgspec.json.schema(Plan if document is Document.PLAN else EventLog)
    text = msgspec.json.format(msgspec.json.encode(described), indent=2)
    Output.to(STANDARD).write(text + b"\n")
