"""Values and bounds over time, drawn as SVG: one panel a case, steps, percent above the last bound."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 300, 220, 46, 14, 30, 36
"""Pixels of a panel, and of the room around its axes."""
COLOURS = {"value": "#c0392b", "bound": "#2471a3"}
HIGHEST, LOWEST = 30.0, -30.0
"""Percent, where the axis ends at the latest; lines that go further are cut."""


class Curve(NamedTuple):
    """A line: what it is of (a key of `COLOURS`), and seconds and percent at each step."""

    kind: str
    points: Sequence[tuple[float, float]]


def drawing(panels: Mapping[str, Sequence[Curve]]) -> str:
    """Return an SVG file with a panel for each title, side by side."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH * len(panels)} {HEIGHT}" '
        'font-family="sans-serif" font-size="10">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for place, (title, curves) in enumerate(panels.items()):
        parts.append(f'<g transform="translate({WIDTH * place},0)">')
        parts += _panel(title, curves)
        parts.append("</g>")
    return "\n".join([*parts, "</svg>", ""])


def _panel(title: str, curves: Sequence[Curve]) -> list[str]:
    percents = [percent for curve in curves for _, percent in curve.points]
    last = max((at for curve in curves for at, _ in curve.points), default=1.0)
    step = _step(min(HIGHEST, max(percents, default=1.0)) - max(LOWEST, min(percents, default=0.0)))
    top = step * math.ceil(min(HIGHEST, max([*percents, step])) / step)
    low = step * math.floor(max(LOWEST, min([*percents, 0.0])) / step)
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def spot(at: float, percent: float) -> tuple[float, float]:
        return LEFT + wide * at / last, TOP + high * (top - min(max(percent, low), top)) / (top - low)

    parts = [f'<text x="{LEFT}" y="18" font-size="12">{escape(title)}</text>']
    for mark in range(round((top - low) / step) + 1):
        percent = low + mark * step
        y = spot(0, percent)[1]
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 4}" y="{y + 3:.1f}" text-anchor="end">{percent:g} %</text>')
    seconds = _step(last)
    for mark in range(int(last / seconds) + 1):
        x = spot(mark * seconds, low)[0]
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 14}" text-anchor="middle">{mark * seconds:g} s</text>')
    for number, (kind, colour) in enumerate(COLOURS.items()):
        parts.append(f'<text x="{LEFT + 60 * number}" y="{HEIGHT - 6}" fill="{colour}">{kind}</text>')
    parts += [_line(curve, [spot(*point) for point in curve.points], spot(last, low)[0]) for curve in curves]
    return parts


def _line(curve: Curve, spots: Sequence[tuple[float, float]], end: float) -> str:
    """Return steps: what there is holds until the next point, and the last until the end."""
    path = ""
    for x, y in spots:
        path += f"H{x:.1f}V{y:.1f}" if path else f"M{x:.1f},{y:.1f}"
    if path:
        path += f"H{end:.1f}"
    return f'<path d="{path}" fill="none" stroke="{COLOURS[curve.kind]}" stroke-opacity="0.7"/>'


def _step(span: float) -> float:
    """Return 1, 2 or 5 times a power of ten, of which four to ten make a span."""
    power = 10.0 ** math.floor(math.log10(max(span, 1e-9) / 4))
    return max(power * factor for factor in (1, 2, 5) if power * factor <= max(span, 1e-9) / 4)
