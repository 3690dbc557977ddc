"""One node inside: its cards and NICs by NUMA zone and PCIe switch, who has them, and what tasks take of zones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from placement import units
from placement.errors import UsageError
from placement.plan import Place, Plan
from placement.report.occupancy import Card, Row, occupancy
from placement.report.picture import GAP, HEIGHT, LEFT, LINE, WIDTH, Palette, box, card_cell, card_shapes, label, legend
from placement.report.terminal import number, plain, table
from placement.snapshot import Node, Snapshot
from placement.snapshot.fields import Names
from placement.snapshot.report import show, suggestion
from placement.units import Quantity

ROWS = 20
"""New tasks that are listed before the rest is counted."""
SWITCH = 16
"""Columns that names of switches may take."""
CARD = 19
"""Columns that a card takes."""
NIC = 12
"""Columns of a NIC's name that are kept, however long its holder's is."""


@dataclass(frozen=True, slots=True)
class Part:
    """Cards and NICs below one PCIe switch, or those of a zone that are below none.

    Attributes
    ----------
    name : str
        Of the switch; empty where there is none.
    cards : list of (int, Card)
        Device index, and who is on it.
    nics : list of (str, str)
        Name, and the job that holds it, empty where nobody does.
    """

    name: str
    cards: list[tuple[int, Card]]
    nics: list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Inside:
    """What is in a node.

    Attributes
    ----------
    zones : list of (str, list of Part)
        What each NUMA zone is called, and its parts; one without a name where the node lists no zones.
    tasks : list of ((str, str, int), Place)
        The plan's tasks on it.
    palette : Palette
        Of the whole cluster.
    """

    zones: list[tuple[str, list[Part]]]
    tasks: list[tuple[tuple[str, str, int], Place]]
    palette: Palette


def node_of(snapshot: Snapshot, name: str) -> Node:
    """Return the entry of a node, by its name after expansion of ``count``.

    Raises
    ------
    UsageError
        If the snapshot has no node of that name.
    """
    nodes = snapshot.nodes
    if not isinstance(name, str):
        raise UsageError.one(f"is {show(name)}", "give the name of a node", path="node")
    known = Names("node", [node.name for node in nodes], [node.count for node in nodes])
    entry = known.find(name)
    if entry is not None:
        return nodes[entry]
    what = f"no node is named {show(name)}" if name else "the name is empty"
    kind = known.first.get(name)
    if kind is not None:
        copies = f"{name}-0", f"{name}-{nodes[kind].count - 1}"
        raise UsageError.one(what, f"its copies are {show(copies[0])} to {show(copies[1])}", path="node")
    raise UsageError.one(what, suggestion(name, known.known) if nodes else "the snapshot has no nodes", path="node")


def inside(snapshot: Snapshot, plan: Plan | None, name: str) -> Inside:
    """Return what is in a node, and who has it."""
    node = node_of(snapshot, name)
    rows = occupancy(snapshot, plan)
    row = next((row for row in rows if row.node == name), Row(name, []))
    here = [] if plan is None else [(job, group, index) for job, group, index, where, _ in plan.tasks if where == name]
    tasks = [] if plan is None else [(key, plan.tasks[key]) for key in here]
    holder = {nic: key[0] for key, place in tasks for nic in place.nics}
    for job in snapshot.jobs:
        for running in job.running.tasks if job.running is not None else ():
            if running.node == name:
                holder.update(dict.fromkeys(running.nics, job.name))
    return Inside(list(_zones(node, row.cards, holder)), tasks, Palette(snapshot, rows))


def _zones(node: Node, cards: Sequence[Card], holder: dict[str, str]) -> Iterator[tuple[str, list[Part]]]:
    if not node.zones:
        yield "", [Part("", list(enumerate(cards)), [])]
    for zone in node.zones:
        listed = [(switch.name, switch.gpus, switch.nics) for switch in zone.switches]
        below = {device for _, gpus, nics in listed for device in (*gpus, *nics)}
        loose = [gpu for gpu in zone.gpus if gpu not in below], [nic.name for nic in zone.nics if nic.name not in below]
        if any(loose):
            listed.append(("", tuple(loose[0]), tuple(loose[1])))
        parts = [
            Part(name, [(gpu, cards[gpu]) for gpu in gpus], [(nic, holder.get(nic, "")) for nic in nics])
            for name, gpus, nics in listed
        ]
        amounts = [] if zone.cpu is None else [f"{_amount(zone.cpu)} CPU"]
        amounts += [] if zone.memory is None else [_size(zone.memory)]
        yield ", ".join([f"NUMA zone {zone.id}", *amounts]), parts


def _amount(quantity: Quantity) -> str:
    return number(float(units.exact(quantity)))


def _size(quantity: Quantity) -> str:
    return f"{number(float(units.exact(quantity) / 2**30))} GiB"


# --- terminal ------------------------------------------------------------------------------------------------


def layout(snapshot: Snapshot, plan: Plan | None, node: str, *, width: int = 80) -> RenderableType:
    """Return the picture of a node for a terminal, and a table of the new tasks on it.

    Parameters
    ----------
    snapshot : Snapshot
    plan : Plan, optional
        Without one, running work alone is drawn.
    node : str
        Name of a node, after expansion of ``count``.
    width : int
        Columns that lines may take; names are cut to fit, cards and holders are not.

    Raises
    ------
    UsageError
        If the snapshot has no node of that name.
    """
    found = inside(snapshot, plan, node)
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append_text(plain(node, "bold")).append("\n")
    switches = [part.name for _, parts in found.zones for part in parts]
    margin = min(SWITCH, max((plain(switch).cell_len for switch in switches), default=0))
    for name, parts in found.zones:
        if name:
            text.append(f"{name}\n")
        for part in parts:
            for line in range(max(len(part.cards), len(part.nics))):
                switch = _cut(plain(part.name if not line else "", "dim"), margin, pad=True)
                text.append("  ").append_text(switch).append("  ")
                text.append_text(_line(part, line, found.palette, width - margin - 4)).append("\n")
    drawn = {item.job for _, parts in found.zones for part in parts for _, card in part.cards for item in card.parts}
    text.append_text(_legend(found, drawn, width))
    parts_: list[RenderableType] = [text]
    if found.tasks:
        parts_ += [Text(), _table(snapshot, found, node)]
        rest = len(found.tasks) - ROWS
        parts_ += [Text(f"and {number(rest)} more")] if rest > 0 else []
    return Group(*parts_)


def _line(part: Part, line: int, palette: Palette, width: int) -> Text:
    """Return a card and a NIC beside it, in so many columns."""
    text = Text()
    if line < len(part.cards):
        device, card = part.cards[line]
        text.append(f"gpu {device:<2} ").append("|", "dim").append_text(card_cell(card, palette)).append("|  ", "dim")
    else:
        text.append(" " * CARD)
    if line < len(part.nics):
        nic, job = part.nics[line]
        name, room = plain(nic), width - text.cell_len - 1
        if job in {*palette}:
            background, ink = palette.colours(job)
            holder = Text(f" {palette.letter(job)} ", f"{ink} on {background}")
        else:
            # the name of a job without a letter is all that tells who holds the NIC, so the NIC's is cut first
            holder = _cut(plain(f" {job or '.'}", "" if job else "dim"), room - min(NIC, name.cell_len))
        text.append_text(_cut(name, room - holder.cell_len)).append(" ").append_text(holder)
    return text


def _cut(text: Text, width: int, *, pad: bool = False) -> Text:
    """Return text in so many columns at most, an ellipsis for what is cut off; wide characters count two."""
    text.truncate(max(0, width), overflow="ellipsis", pad=pad)
    return text


def _legend(found: Inside, drawn: set[str], width: int) -> Text:
    unhealthy = any(
        card.gpu.health == "unhealthy" for _, parts in found.zones for part in parts for _, card in part.cards
    )
    holders = {job for _, parts in found.zones for part in parts for _, job in part.nics}
    text, used = Text(), 0
    for item in legend(found.palette, unhealthy, drawn | holders):
        if used and used + item.cell_len > width:
            text.append("\n")
            used = 0
        text.append_text(item)
        used += item.cell_len
    return text


def _table(snapshot: Snapshot, found: Inside, name: str) -> Table:
    """Return a table of the new tasks: their cards and NICs, and what they take of each zone."""
    node = node_of(snapshot, name)
    grid = table("", "task", "cards", "NICs", *(f"zone {zone.id}" for zone in node.zones), left=4)
    for (job, group, index), place in found.tasks[:ROWS]:
        amounts: dict[int, list[str]] = {zone.id: [] for zone in node.zones}
        for said, quantities in ((_amount, place.cpu), (_size, place.memory)):
            for zone, quantity in zip(place.zones, quantities, strict=False):
                amounts[zone].append(said(quantity))
        letter = found.palette.letter(job) if job in {*found.palette} else ""
        cells = [letter, f"{job} {group} {index}", ", ".join(map(str, place.gpus)), ", ".join(place.nics)]
        grid.add_row(*map(plain, cells), *(plain(", ".join(said)) for said in amounts.values()))
    return grid


# --- vector graphics -----------------------------------------------------------------------------------------


def layout_svg(snapshot: Snapshot, plan: Plan | None, node: str, title: str = "") -> str:
    """Return the picture of a node as one SVG element: a frame for each zone, a row in it for each PCIe switch.

    Parameters
    ----------
    snapshot : Snapshot
    plan : Plan, optional
        Without one, running work alone is drawn.
    node : str
        Name of a node, after expansion of ``count``.
    title : str
        Written above the picture; the name of the node if it is empty.
    """
    found = inside(snapshot, plan, node)
    every = [part for _, parts in found.zones for part in parts]
    margin = 2 * LEFT + 7 * (2 + max((len(part.name) for part in every), default=0))
    width = margin + max(len(part.cards) + len(part.nics) for part in every) * (WIDTH + GAP) + 2 * LEFT if every else 0
    width = max(width, 360)
    parts = [label(LEFT, LINE, title or node, weight="bold")]
    top = LINE + 8.0
    for name, rows in found.zones:
        heading = LINE if name else 0
        high = heading + len(rows) * (HEIGHT + GAP) + GAP
        parts.append(box(LEFT, top, width - 2 * LEFT, high, "#ffffff", name or node))
        if name:
            parts.append(label(2 * LEFT, top + 13, name))
        top += heading + GAP
        for part in rows:
            parts += _svg_row(part, found.palette, margin, top)
            top += HEIGHT + GAP
        top += 2 * GAP
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{top + 10:g}" '
        f'font-family="system-ui, sans-serif" font-size="12" role="img">{"".join(parts)}</svg>'
    )


def _svg_row(part: Part, palette: Palette, x: float, y: float) -> Iterator[str]:
    yield label(2 * LEFT, y + HEIGHT * 0.65, part.name)
    for _, card in part.cards:
        yield from card_shapes(card, palette, x, y)
        x += WIDTH + GAP
    for nic, job in part.nics:
        fill, ink = palette.colours(job) if job in {*palette} else ("#d9d9d9" if job else "#ffffff", "#000000")
        note = f"{nic}: {job or 'free'}{', running' if job in palette.running else ''}"
        yield box(x, y + 4, WIDTH, HEIGHT - 8, fill, note, job in palette.running)
        yield label(x + 4, y + HEIGHT * 0.65, nic[:12], "#000" if job in palette.running else ink)
        x += WIDTH + GAP
