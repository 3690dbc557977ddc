"""A plan as tables for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from placement.check import RUNNING
from placement.plan import Baseline, Phase, Plan, Usage
from placement.report import picture
from placement.report.terminal import counted, number, percent, plain, table
from placement.snapshot import Snapshot

CARRIED = "Broken by running work"
"""Heading of the rules that running work breaks, which is carried."""

EXAMPLES = 3
"""Jobs, notes and the like that are named before the rest is counted."""

STOP = {
    "optimal": "the search ended with a proof that no plan is better",
    "gap": "the search reached the gap asked for",
    "complete": "the method ran to its end",
    "work": "the search reached its limit on work",
    "time": "the search ran out of time",
    "failed": "the exact method failed",
}
STATUS = {
    "proven": "",
    "bounded": " The bound says how much better a plan can be at most.",
    "feasible": " Nothing is proven about other plans.",
}


def plan_report(snapshot: Snapshot, plan: Plan) -> RenderableType:
    """Return a plan for a terminal of 80 columns.

    Parameters
    ----------
    snapshot : Snapshot
    plan : Plan
    """
    parts: list[RenderableType] = [
        _headline(plan),
        Text(),
        _phases(plan.phases, plan.greedy)
        if plan.phases
        else Text("No job is pending, so there is no value to improve."),
        Text(),
        _usage(plan.usage, plan.greedy),
        Text(),
    ]
    if picture.fits(snapshot, plan):
        parts += [picture.text(snapshot, plan), Text()]
    parts += grouped("Jobs that do not run in full", [(item.job, item.detail) for item in plan.pending])
    parts += noted(plan.notes)
    return Group(*parts[:-1])


def _headline(plan: Plan) -> Text:
    usage, made = plan.usage, plan.provenance
    text = Text()
    text.append(f"{number(usage.jobs_started)} of {counted(usage.jobs_pending, 'pending job')} start", "bold")
    text.append(f", {number(usage.tasks_started)} of {counted(usage.tasks_wanted, 'task')}.\n")
    text.append(f"Plan of {made.solver}; {STOP.get(plan.stop, plan.stop)}.{STATUS[plan.status]}")
    return text


def phase_names(phases: Sequence[Phase]) -> list[str]:
    """Return what phases are called in a table; the priority is named only where there are several."""
    tiers = len({phase.priority for phase in phases if phase.priority is not None})
    return [
        f"{p.objective}, priority {p.priority}" if p.priority is not None and tiers > 1 else p.objective for p in phases
    ]


def _phases(phases: Sequence[Phase], greedy: Baseline | None) -> Table:
    grid = table("objective", "better", *([greedy.solver] if greedy else []), "value", "bound", "gap, %")
    for row, (name, phase) in enumerate(zip(phase_names(phases), phases, strict=True)):
        gap = None if phase.gap is None else 100 * phase.gap
        bound = number(phase.bound) + (" *" if phase.conditional else "")
        beside = [number(greedy.values[row])] if greedy else []
        grid.add_row(
            name, "more" if phase.sense == "max" else "less", *beside, number(phase.value), bound, percent(gap)
        )
    if any(phase.conditional for phase in phases):
        grid.caption = "* for plans that keep the values above"
        grid.caption_justify = "left"
    return grid


_FIGURES: dict[str, Callable[[Usage], str]] = {
    "GPUs": lambda u: f"{number(u.gpus_allocated)} of {number(u.gpus)}",
    "GPU unallocated, %": lambda u: percent(u.unallocated_percent),
    "GPU fragmented, %": lambda u: percent(u.fragmented_percent),
    "nodes": lambda u: f"{number(u.nodes_used)} of {number(u.nodes)}",
    "nodes with all cards free": lambda u: number(u.whole_nodes),
    "tasks started": lambda u: f"{number(u.tasks_started)} of {number(u.tasks_wanted)}",
}


def _usage(usage: Usage, greedy: Baseline | None) -> Table:
    """Return the figures of the plan, beside those of the best greedy rule where one was tried."""
    grid = table("in use, running work included", *([greedy.solver, "this plan"] if greedy else [""]))
    columns = [greedy.usage, usage] if greedy else [usage]
    for heading, cell in _FIGURES.items():
        grid.add_row(heading, *(cell(column) for column in columns))
    return grid


def grouped(heading: str, jobs: Sequence[tuple[str, str]]) -> list[RenderableType]:
    """Return jobs by what there is to say of them, what is said of most first; nothing where there are none.

    Parameters
    ----------
    heading : str
    jobs : sequence of (str, str)
        Name of the job, and what there is to say.
    """
    if not jobs:
        return []
    kinds: dict[str, list[str]] = {}
    for job, detail in jobs:
        kinds.setdefault(detail, []).append(job)
    grid = Table.grid(padding=(0, 2))
    grid.add_column(justify="right")
    grid.add_column(overflow="fold")
    for detail, found in sorted(kinds.items(), key=lambda kind: -len(kind[1])):
        named = ", ".join(found[:EXAMPLES])
        more = f" and {number(len(found) - EXAMPLES)} more" if len(found) > EXAMPLES else ""
        grid.add_row(number(len(found)), Text("\n").join([plain(detail), plain(f"{named}{more}", "dim")]))
    return [Text(heading, "bold"), grid, Text()]


def noted(notes: Sequence[str], first: Sequence[str] = ()) -> list[RenderableType]:
    """Return what running work breaks, and the other notes behind some that come first."""
    carried = [note.removeprefix(RUNNING) for note in notes if note.startswith(RUNNING)]
    others = [note for note in notes if not note.startswith(RUNNING)]
    return [*lines(CARRIED, carried, len(carried)), *lines("Notes", [*first, *others])]


def lines(heading: str, listed: Sequence[str], most: int = 3 * EXAMPLES) -> list[RenderableType]:
    """Return sentences below a heading, the first ones of many; nothing where there are none."""
    if not listed:
        return []
    shown = [plain(f"  {line}") for line in listed[:most]]
    if len(listed) > len(shown):
        shown.append(plain(f"  and {number(len(listed) - len(shown))} more"))
    return [Text(heading, "bold"), *shown, Text()]
