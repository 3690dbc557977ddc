"""Simulations as people read them: a row for each policy, and how busy the cluster was over time."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from placement.report.terminal import plain, printable, table
from placement.simulation import Samples, Simulation
from placement.timetable import Spread

BARS = " ▁▂▃▄▅▆▇█"
"""From nothing to the most."""
WIDTH = 80
"""Columns of a line."""


def simulation_report(found: Sequence[Simulation]) -> RenderableType:
    """Return all policies beside one another, in seconds, and each by queue and priority and over time.

    Of idle cards those are scattered that are on nodes with some card in use; the mean is over the samples.
    """
    parts: list[RenderableType] = [_table([(one.policy, one.figures.all) for one in found], "policy"), Text()]
    parts.append(_cluster(found))
    for one in found:
        parts += [Text(), Text(one.policy)]
        for heading, groups in (("queue", one.figures.queues), ("priority", one.figures.priorities)):
            if len(groups) > 1:
                parts.append(_table(list(groups.items()), heading))
        parts += [Text(line) for line in picture(one.samples)]
        if one.unfinished:
            parts.append(Text(f"not ended, or without a start: {_some(one.unfinished)}"))
    return Group(*parts)


def _table(rows: Sequence[tuple[str, Spread]], heading: str) -> Table:
    shown = table(heading, "jobs", "T mean", "p50", "p95", "p99", "queued", "restart", "slowdown")
    for name, one in rows:
        seconds = (one.mean, one.p50, one.p95, one.p99, one.queued, one.restart)
        shown.add_row(plain(name), str(one.jobs), *(f"{value:,.0f}" for value in seconds), f"{one.slowdown:.2f}")
    return shown


def _cluster(found: Sequence[Simulation]) -> Table:
    shown = table("policy", "makespan", "used %", "stops", "failures", "scattered %", "not ended")
    for one in found:
        idle = sum(one.samples.idle)
        scattered = sum(one.samples.scattered) / idle if idle else None
        used = one.figures.utilisation
        shown.add_row(
            plain(one.policy),
            f"{one.figures.makespan:,.0f}",
            "" if used is None else f"{100 * used:.1f}",
            str(one.figures.preemptions),
            str(one.failures),
            "" if scattered is None else f"{100 * scattered:.1f}",
            str(len(one.unfinished)),
        )
    return shown


def _some(names: Sequence[str], most: int = 10) -> str:
    """Return the first names of a list, and how many more there are."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(map(printable, names[:most])) + more


def picture(samples: Samples, width: int = WIDTH) -> list[str]:
    """Return a line of bars for the cards in use, and one for the jobs that wait, over time.

    Each column is as much time as any other, and shows the most of the samples in it; where there is none, what the
    last one before it showed.
    """
    if len(samples) < 2 or not samples.time[-1] > samples.time[0]:
        return []
    room = max(used + idle for used, idle in zip(samples.used, samples.idle, strict=True))
    longest = max(samples.waiting)
    labels = f"cards in use, of {room:g}: ", f"jobs that wait, up to {longest}: "
    columns = width - max(map(len, labels))
    rows: tuple[Sequence[float], Sequence[float]] = samples.used, samples.waiting
    return [
        label.ljust(width - columns) + _bars(samples.time, values, most, columns)
        for label, values, most in zip(labels, rows, (room, longest), strict=True)
    ]


def _bars(times: Sequence[float], values: Sequence[float], most: float, width: int) -> str:
    columns: list[float | None] = [None] * width
    span = times[-1] - times[0]
    for time, value in zip(times, values, strict=True):
        column = min(width - 1, int((time - times[0]) / span * width))
        columns[column] = max(columns[column] or 0.0, value)
    shown, last = "", 0.0
    for highest in columns:
        last = last if highest is None else highest
        step = 0 if not most or last <= 0 else max(1, round(last / most * (len(BARS) - 1)))
        shown += BARS[min(step, len(BARS) - 1)]
    return shown
