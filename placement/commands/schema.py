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
from placement.timetable import Schedule


class Document(StrEnum):
    """A file format."""

    SNAPSHOT = "snapshot"
    PLAN = "plan"
    SCHEDULE = "schedule"
    EVENTS = "events"


RECORDS: dict[Document, type[msgspec.Struct]] = {
    Document.PLAN: Plan,
    Document.SCHEDULE: Schedule,
    Document.EVENTS: EventLog,
}


def schema(
    document: Annotated[Document, typer.Argument(help="The format to describe.")] = Document.SNAPSHOT,
) -> None:
    """Print the JSON Schema of a file format."""
    described = snapshot_schema() if document is Document.SNAPSHOT else msgspec.json.schema(RECORDS[document])
    text = msgspec.json.format(msgspec.json.encode(described), indent=2)
    Output.to(STANDARD).write(text + b"\n")
