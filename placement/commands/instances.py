"""``placement instances``: the names of the shipped snapshots."""

from __future__ import annotations

from placement import instances as shipped
from placement.commands.files import STANDARD, Output


def instances() -> None:
    """List the shipped instances; each name can be given where a command wants a SNAPSHOT."""
    Output.to(STANDARD).write("".join(f"{name}\n" for name in shipped.names()).encode())
