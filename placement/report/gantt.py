"""A schedule as a picture: a band for each node, a line in it for each card, time from left to right, a colour per job.

A page or picture is one file that needs nothing else; what a box stands for is shown when it is pointed at.
"""

from __future__ import annotations

import html
from collections.abc import Iterator

from placement.report.boxes import Box, Chart, cards_of, chart
from placement.report.occupancy import names
from placement.report.picture import COLOURS, LEFT, LINE, label
from placement.report.schedule import aim
from placement.report.terminal import counted, number, percent, printable
from placement.snapshot import Node, Snapshot
from placement.timetable import Schedule

WIDTH, CARD, BETWEEN = 960, 12, 6
"""Of the time axis, of a card's line, and between nodes, in pixels."""
TICKS = 12
"""Most marks of the time axis."""
STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)
"""Seconds between two marks; beyond these, whole days."""

PATTERNS = (
    '<defs><pattern id="restart" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<rect width="3" height="6" fill="#fff" fill-opacity="0.6"/></pattern>'
    '<pattern id="lost" width="4" height="4" patternUnits="userSpaceOnUse">'
    '<rect width="2" height="2" fill="#000" fill-opacity="0.7"/></pattern></defs>'
)
"""What is laid over the time in which a job is restored, and over work that is lost."""


def svg(snapshot: Snapshot, schedule: Schedule) -> str:
    """Return the picture of a schedule as one SVG element.

    Parameters
    ----------
    snapshot : Snapshot
    schedule : Schedule
        Checked, for this snapshot.
    """
    drawn = chart(snapshot, schedule)
    margin = LEFT * 2 + 7 * max((len(printable(name)) for name, _ in drawn.nodes), default=0)
    scale = WIDTH / drawn.end if drawn.end > 0 else 0.0
    top = LEFT + LINE
    shapes, place = [PATTERNS, label(LEFT, LINE, _title(schedule), weight="bold")], {}
    top += LINE
    for name, node in drawn.nodes:
        height = CARD * cards_of(node)
        place[name] = top
        shapes.append(label(LEFT, top + min(height / 2 + 4, 11), name))
        shapes += _ground(snapshot, drawn, name, node, margin, top, scale)
        top += height + BETWEEN
    shapes[2:2] = _axis(drawn.end, scale, margin, LEFT + 2 * LINE, top)
    turns = _turns(snapshot)
    for box in drawn.boxes:
        shapes += _box(box, COLOURS[turns[box.job] % len(COLOURS)], margin, place[box.node], scale)
    for line in _legend(snapshot, drawn):
        top += LINE
        shapes.append(label(LEFT, top, line))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{margin + WIDTH + 60:g}" height="{top + LINE:g}" '
        f'font-family="system-ui, sans-serif" font-size="11" role="img">{"".join(shapes)}</svg>'
    )


def page(snapshot: Snapshot, schedule: Schedule) -> str:
    """Return the picture as a page of its own; see `svg`."""
    title = html.escape(printable(_title(schedule)))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>'
        f'<body style="margin:1em;background:#fff">{svg(snapshot, schedule)}</body></html>'
    )


def _title(schedule: Schedule) -> str:
    gap = "" if schedule.gap is None else f", at most {percent(100 * schedule.gap)} % from the best"
    return f"{counted(len(schedule.jobs), 'job')}, {aim(schedule)} {number(schedule.value)} s{gap}"


def _turns(snapshot: Snapshot) -> dict[str, int]:
    """Return a number for each job by its place in the snapshot, so that it has its colour in every schedule."""
    listed = (name for job in snapshot.jobs for name in names(job.name, job.count))
    return {name: turn for turn, name in enumerate(listed)}


def _axis(end: float, scale: float, left: float, top: float, bottom: float) -> Iterator[str]:
    """Yield the marks of the time axis."""
    if not end > 0:
        yield label(left, top - 6, "nothing here has an end")
        return
    step = next((step for step in STEPS if end / step <= TICKS), 0)
    step = step or 86400 * -int(-end // (86400 * TICKS))
    mark = 0
    while mark <= end:
        x = left + mark * scale
        yield f'<path d="M{x:g} {top - 2:g}V{bottom:g}" stroke="#ddd"/>'
        yield label(x, top - 6, clock(mark))
        mark += step


def clock(seconds: int) -> str:
    """Return whole seconds in the largest units that say them.

    Examples
    --------
    >>> clock(0), clock(90), clock(5400), clock(172800)
    ('0', '1 min 30 s', '1 h 30 min', '2 d')
    """
    parts = []
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        amount, seconds = divmod(seconds, size)
        parts += [f"{amount:,} {unit}"] if amount else []
    return " ".join(parts) or "0"


def _ground(
    snapshot: Snapshot, drawn: Chart, name: str, node: Node, left: float, top: float, scale: float
) -> Iterator[str]:
    """Yield the lines of a node's cards, and the times for which it is set aside."""
    y = top
    for gpu in node.gpus:
        colour = "#f4f4f4" if gpu.health == "healthy" else "#cfcfcf"
        yield _rect(left, y, WIDTH, CARD * gpu.count, colour, f"{name}: {gpu.count} {gpu.model}, {gpu.health}")
        for line in range(1, gpu.count):
            yield f'<path d="M{left:g} {y + CARD * line:g}h{WIDTH}" stroke="#fff"/>'
        y += CARD * gpu.count
    for window in snapshot.reservations:
        begin, over = max(0.0, window.start - snapshot.time), min(drawn.end, window.end - snapshot.time)
        if name in window.nodes and begin < over:
            whom = ", ".join([*window.jobs, *window.queues]) or "nobody"
            note = f"{window.name}: {name} is set aside for {whom}"
            yield _rect(left + begin * scale, top, (over - begin) * scale, y - top, "#d7e3f4", note)


def _box(box: Box, colours: tuple[str, str], left: float, top: float, scale: float) -> Iterator[str]:
    x, y = left + box.start * scale, top + CARD * (box.first + float(box.low))
    width = WIDTH if box.endless else max((box.end - box.start) * scale, 0.5)
    height = CARD * box.cards * float(box.share)
    yield _rect(x, y, width, height, colours[0], _note(box), 0.55 if box.running else 1)
    for pattern, begin, length in (("restart", box.start, box.restart), ("lost", box.end - box.lost, box.lost)):
        if length > 0:
            yield _rect(left + begin * scale, y, length * scale, height, f"url(#{pattern})", f"{box.job}: {pattern}")
    fits = int((width - 4) / 6.5)
    if height >= CARD - 1 and fits >= 3:
        shown = box.job if len(box.job) <= fits else f"{box.job[: fits - 1]}…"
        yield label(x + 2, y + height / 2 + 4, shown, "#000" if box.running else colours[1])


def _note(box: Box) -> str:
    cards = f"card {box.first}" if box.cards == 1 else f"cards {box.first} to {box.first + box.cards - 1}"
    share = "" if box.share == 1 else f", {float(box.share):.0%}"
    when = "without an end" if box.endless else f"{number(box.start, 3)} to {number(box.end, 3)} s"
    more = [f"{number(box.restart, 3)} s restored first"] if box.restart else []
    more += [f"{number(box.lost, 3)} s of work lost at the end"] if box.lost else []
    more += ["runs now"] if box.running else []
    return ", ".join([f"{box.job}: {when}", f"{box.node} {cards}{share}", *more])


def _rect(x: float, y: float, width: float, height: float, fill: str, note: str, opacity: float = 1) -> str:
    faint = "" if opacity == 1 else f' fill-opacity="{opacity:g}"'
    edge = "" if fill.startswith(("#f4", "#cf", "url")) else ' stroke="#333" stroke-width="0.4"'
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{fill}"{faint}{edge}>'
        f"<title>{html.escape(printable(note))}</title></rect>"
    )


def _legend(snapshot: Snapshot, drawn: Chart) -> Iterator[str]:
    """Yield what marks mean that are there, and what is left out."""
    told = []
    if any(box.running for box in drawn.boxes):
        told.append("faint: runs now")
    if any(box.restart for box in drawn.boxes):
        told.append("striped: restored after a stop")
    if any(box.lost for box in drawn.boxes):
        told.append("dotted: work that is lost")
    if snapshot.reservations:
        told.append("blue ground: set aside")
    if told:
        yield "; ".join(told)
    hidden = [
        counted(amount, what)
        for amount, what in (
            (drawn.hidden_nodes, "more node"),
            (drawn.hidden_boxes, "shorter or smaller stretch on some card"),
            (drawn.without_cards, "task without cards"),
        )
        if amount
    ]
    if hidden:
        yield f"not drawn: {', '.join(hidden)}".replace("stretch on some cards", "stretches on some card")
