"""Rows: a contender's course against that of a reference, as JSON and as a line of the table."""

from __future__ import annotations

from dataclasses import dataclass

from .common import Course

GAP = 0.01
"""The proven relative gap that is timed."""

Row = dict[str, object]

HEAD = (
    f"{'nodes':>6} {'contender':25} {'value':>11} {'gap %':>7} {'to V, s':>9} {'ratio':>8} "
    f"{'to 1 %, s':>9} {'ratio':>8} {'common: s':>9} {'ratio':>8}  stop"
)


@dataclass(frozen=True, slots=True)
class Target:
    """What is timed against a reference.

    Attributes
    ----------
    value : float
        V: the value that the reference had when it first proved a gap of `GAP`; if it never did, its last.
    proven : bool
        Whether it did.
    """

    value: float
    proven: bool


def target_of(reference: Course) -> Target | None:
    """Return the target that a reference sets, or None if it found nothing."""
    proven = reference.to_gap(GAP)
    if proven is not None:
        return Target(proven[1], True)
    return None if reference.value is None else Target(reference.value, False)


def row(nodes: int, name: str, course: Course, reference: Course, limit: float) -> Row:
    """Return the row of a contender.

    Ratios are the contender's time over the reference's: above 1, the reference is faster. Where the contender did not
    get there, `at_least` is the limit over the reference's time.
    """
    found: Row = {
        "nodes": nodes,
        "contender": name,
        "limit": limit,
        "seconds": round(course.seconds, 3),
        "value": course.value,
        "bound": course.bound,
        "gap": course.gap,
        "refused": course.refused,
        "refusal": course.refusal,
        **course.about,
    }
    target = target_of(reference)
    if target is not None:
        times = reference.to_value(target.value), course.to_value(target.value)
        found["target"] = {"value": target.value, "reference_proved_gap": target.proven, **_compared(*times, limit)}
    gaps = reference.to_gap(GAP), course.to_gap(GAP)
    found["proof"] = {"gap": GAP, **_compared(gaps[0] and gaps[0][0], gaps[1] and gaps[1][0], limit)}
    if reference.value is not None and course.value is not None:
        common = min(reference.value, course.value)
        found["common"] = {"value": common, **_compared(reference.to_value(common), course.to_value(common), limit)}
    found["values"] = [[round(at, 3), value] for at, value in course.values]
    found["bounds"] = [[round(at, 3), bound] for at, bound in course.bounds]
    return found


def missing(nodes: int, name: str, note: str) -> Row:
    """Return the row of a contender that could not run."""
    return {"nodes": nodes, "contender": name, "value": None, "gap": None, "stop": note, "note": note}


def _compared(reference: float | None, mine: float | None, limit: float) -> Row:
    both = reference is not None and mine is not None
    return {
        "reference_seconds": _rounded(reference),
        "seconds": _rounded(mine),
        "ratio": _rounded(mine / max(reference, 1e-3)) if both and reference is not None and mine is not None else None,
        "at_least": _rounded(limit / max(reference, 1e-3)) if reference is not None and mine is None else None,
    }


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 3)


def line(found: Row) -> str:
    """Return a row as a line under `HEAD`."""
    parts = [f"{found['nodes']:>6} {found['contender']:25}"]
    value, gap = found["value"], found["gap"]
    parts.append(f"{value:>11,.0f}" if isinstance(value, float) else f"{'-':>11}")
    parts.append(f"{100 * gap:>7.2f}" if isinstance(gap, float) else f"{'-':>7}")
    for key in ("target", "proof", "common"):
        seconds, ratio = _cells(found.get(key), found.get("limit"))
        parts.append(f"{seconds:>9} {ratio:>8}")
    refused = f", {found['refused']} refused" if found.get("refused") else ""
    return " ".join(parts) + f"  {found.get('stop', '')}{refused}"


def _cells(compared: object, limit: object) -> tuple[str, str]:
    if not isinstance(compared, dict):
        return "-", "-"
    seconds, ratio, at_least = compared["seconds"], compared["ratio"], compared["at_least"]
    return (
        f">{limit:.0f}" if seconds is None and isinstance(limit, float) else f"{seconds}",
        f"{ratio:.2f}" if ratio is not None else f">{at_least:.1f}" if at_least is not None else "-",
    )
