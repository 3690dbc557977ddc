"""The assignment as a picture: a row per node, a cell per card, a colour per job, as wide as the share it has."""

from __future__ import annotations

import html
from collections.abc import Collection, Iterator, Sequence
from fractions import Fraction
from string import ascii_lowercase, ascii_uppercase

from rich.text import Text

from placement.plan import Plan
from placement.report.occupancy import Card, Row, names, occupancy
from placement.report.terminal import plain, printable
from placement.snapshot import Snapshot
from placement.snapshot.leaves import leaf_tasks

COLOURS = (
    ("#0072b2", "#ffffff"),
    ("#e69f00", "#000000"),
    ("#009e73", "#ffffff"),
    ("#cc79a7", "#000000"),
    ("#56b4e9", "#000000"),
    ("#d55e00", "#ffffff"),
    ("#f0e442", "#000000"),
    ("#6a3d9a", "#ffffff"),
    ("#8c6d31", "#ffffff"),
    ("#666666", "#ffffff"),
)
"""Backgrounds that people with any colour vision tell apart (Okabe and Ito's, and three more), and a readable ink."""

CELL = 8
"""Characters of a card in a terminal; a share smaller than one of them still gets one."""


class Palette:
    """A letter and a colour for each job that is drawn; running work has small letters.

    They go by the job's place in the snapshot, so that they are the same under every plan.
    """

    def __init__(self, snapshot: Snapshot, rows: Sequence[Row]) -> None:
        drawn = {part.job for row in rows for card in row.cards for part in card.parts}
        self.running: set[str] = set()
        self._known: dict[str, tuple[str, tuple[str, str]]] = {}
        turns = {ascii_lowercase: 0, ascii_uppercase: 0}
        for turn, (name, running) in enumerate(_jobs(snapshot)):
            letters = ascii_lowercase if running else ascii_uppercase
            if name in drawn:
                self._known[name] = letters[turns[letters] % len(letters)], COLOURS[turn % len(COLOURS)]
                self.running |= {name} if running else set()
            turns[letters] += 1

    def letter(self, job: str) -> str:
        """Return the job's letter."""
        return self._known[job][0]

    def colours(self, job: str) -> tuple[str, str]:
        """Return the job's background and ink."""
        return self._known[job][1]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


def _jobs(snapshot: Snapshot) -> Iterator[tuple[str, bool]]:
    """Yield the name of every job with cards, and whether it runs."""
    for job in snapshot.jobs:
        if any(task.gpus for _, task in leaf_tasks(job.groups)):
            yield from ((name, job.running is not None) for name in names(job.name, job.count))


# --- terminal ------------------------------------------------------------------------------------------------


def fits(snapshot: Snapshot, plan: Plan | None = None, *, width: int = 80, height: int = 16) -> bool:
    """Return whether the picture of a cluster is small enough for a terminal."""
    if not 0 < sum(node.count for node in snapshot.nodes) <= height:
        return False
    rows = occupancy(snapshot, plan)
    cards = max((len(row.cards) for row in rows), default=0)
    return (
        cards > 0
        and _margin(rows) + cards * (CELL + 1) <= width
        and len(Palette(snapshot, rows)) <= len(ascii_lowercase)
    )


def text(snapshot: Snapshot, plan: Plan | None = None, *, width: int = 80) -> Text:
    """Return the picture for a terminal; without colours the letters still tell the jobs apart."""
    rows = occupancy(snapshot, plan)
    palette = Palette(snapshot, rows)
    picture = Text(no_wrap=True, overflow="ellipsis")
    for row in rows:
        picture.append_text(plain(row.node.ljust(_margin(rows))))
        for card in row.cards:
            picture.append("|", "dim")
            picture.append_text(card_cell(card, palette))
        picture.append("|\n", "dim")
    line = 0
    for item in legend(palette, any(card.gpu.health == "unhealthy" for row in rows for card in row.cards)):
        if line and line + len(item) > width:
            picture.append("\n")
            line = 0
        picture.append_text(item)
        line += len(item)
    return picture


def legend(palette: Palette, unhealthy: bool, jobs: Collection[str] | None = None) -> Iterator[Text]:
    """Yield what the letters stand for: of all jobs that are drawn, or of some."""
    for job in palette:
        if jobs is not None and job not in jobs:
            continue
        background, ink = palette.colours(job)
        name = plain(f" {job}{' (running)' if job in palette.running else ''}  ")
        yield Text(f" {palette.letter(job)} ", f"{ink} on {background}").append_text(name)
    yield Text(" .  free  ")
    if unhealthy:
        yield Text(" x  unhealthy  ")


def _margin(rows: Sequence[Row]) -> int:
    return 2 + max((len(printable(row.node)) for row in rows), default=0)


def card_cell(card: Card, palette: Palette) -> Text:
    """Return the characters of one card, shared out by largest remainder so that they always fill the cell."""
    shares = [part.share for part in card.parts]
    cell = Text()
    for part, characters in zip(card.parts, apportion([*shares, card.free], CELL), strict=False):
        background, ink = palette.colours(part.job)
        cell.append(palette.letter(part.job) * characters, f"{ink} on {background}")
    cell.append(("x" if card.gpu.health == "unhealthy" else ".") * (CELL - len(cell)), "dim")
    cell.truncate(CELL)
    return cell


def apportion(shares: Sequence[Fraction], places: int) -> list[int]:
    """Return whole numbers in proportion to shares that add up to `places`; what is more than nothing gets one."""
    total = sum(shares, Fraction(0)) or Fraction(1)
    exact = [share * places / total for share in shares]
    counts = [max(int(share), 1) if share else 0 for share in exact]
    by_remainder = sorted(range(len(exact)), key=lambda i: int(exact[i]) - exact[i])
    for index in by_remainder[: max(0, places - sum(counts))]:
        counts[index] += 1
    while sum(counts) > places and max(counts) > 1:
        counts[counts.index(max(counts))] -= 1
    return counts


# --- vector graphics -----------------------------------------------------------------------------------------

WIDTH, HEIGHT, GAP, LEFT, LINE = 92, 26, 4, 8, 18


def svg(snapshot: Snapshot, plan: Plan | None = None, title: str = "") -> str:
    """Return the picture as one SVG element, for a notebook or a page.

    Parameters
    ----------
    snapshot : Snapshot
    plan : Plan, optional
        Without one, running work alone is drawn.
    title : str
        Written above the picture.
    """
    rows = occupancy(snapshot, plan)
    palette = Palette(snapshot, rows)
    margin = LEFT + 7 * _margin(rows)
    top = LINE + 8 if title else 8
    width = max(margin + max((len(row.cards) for row in rows), default=0) * (WIDTH + GAP) + LEFT, 360)
    parts: list[str] = []
    if title:
        parts.append(label(LEFT, LINE, title, weight="bold"))
    for row in rows:
        parts.append(label(LEFT, top + HEIGHT * 0.65, row.node))
        for index, card in enumerate(row.cards):
            parts += card_shapes(card, palette, margin + index * (WIDTH + GAP), top)
        top += HEIGHT + GAP
    top += LINE
    x = float(LEFT)
    for job in palette:
        name = f"{job} (running)" if job in palette.running else job
        step = 26 + 7 * len(name)
        if x > LEFT and x + step > width:
            x, top = LEFT, top + LINE
        parts.append(box(x, top - 11, 14, 14, palette.colours(job)[0], name, job in palette.running))
        parts.append(label(x + 19, top, name))
        x += step
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{top + 10:g}" '
        f'font-family="system-ui, sans-serif" font-size="12" role="img">{"".join(parts)}</svg>'
    )


def card_shapes(card: Card, palette: Palette, x: float, y: float) -> list[str]:
    """Return the shapes of one card: its frame, and a box for each part."""
    healthy = card.gpu.health == "healthy"
    frame = f"{card.gpu.model}, {float(card.free):.0%} free" if healthy else f"{card.gpu.model}, unhealthy"
    shapes = [box(x, y, WIDTH, HEIGHT, "#f4f4f4" if healthy else "#d9d9d9", frame)]
    if not healthy:
        shapes.append(f'<path d="M{x:g} {y:g}l{WIDTH} {HEIGHT}m0 -{HEIGHT}l-{WIDTH} {HEIGHT}" stroke="#999"/>')
    # an over-full card is drawn full: what counts is how its parts compare
    scale = WIDTH / max(1.0, float(sum((part.share for part in card.parts), Fraction(0))))
    for part in card.parts:
        width = float(part.share) * scale
        background, ink = palette.colours(part.job)
        note = f"{part.job}: {float(part.share):.0%} of the card{', running' if part.running else ''}"
        shapes.append(box(x, y, width, HEIGHT, background, note, part.running))
        name = _shortened(part.job, int((width - 6) / 7))
        if name:
            shapes.append(label(x + 4, y + HEIGHT * 0.65, name, "#000" if part.running else ink))
        x += width
    return shapes


def _shortened(name: str, characters: int) -> str:
    if len(name) <= characters:
        return name
    return f"{name[: characters - 1]}…" if characters >= 4 else ""


def box(x: float, y: float, width: float, height: float, fill: str, note: str, running: bool = False) -> str:
    """Return a rectangle with a note that is shown when it is pointed at."""
    opacity = ' fill-opacity="0.55"' if running else ""
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="2" fill="{fill}"{opacity} '
        f'stroke="#333" stroke-width="0.6"><title>{html.escape(printable(note))}</title></rect>'
    )


def label(x: float, y: float, content: str, fill: str = "#222", weight: str = "normal") -> str:
    """Return a line of text."""
    content = html.escape(printable(content))
    return f'<text x="{x:g}" y="{y:g}" fill="{fill}" font-weight="{weight}">{content}</text>'
