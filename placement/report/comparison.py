"""Methods side by side on one snapshot, and the bound that none of them can pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table

from placement.heuristics import HEURISTICS
from placement.plan import Phase, Plan
from placement.planning import gap
from placement.report.table import phase_names
from placement.report.terminal import counted, number, percent, plain, table
from placement.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Comparison:
    """Plans of one snapshot for the same objectives.

    Attributes
    ----------
    snapshot : Snapshot
    plans : tuple of Plan
        From the worst to the best, by all objectives in order.
    bound : float, optional
        Best bound on the first phase that any of the methods proved; None where there is no phase, as for the value of
        a snapshot without pending jobs.
    """

    snapshot: Snapshot
    plans: tuple[Plan, ...]
    bound: float | None

    @classmethod
    def of(cls, snapshot: Snapshot, plans: Sequence[Plan]) -> Comparison:
        """Return the comparison of plans of a snapshot; at least one."""
        first = _first(plans[0])
        best = max if first is not None and first.sense == "min" else min
        bounds = [plan.bound for plan in plans if plan.bound is not None]
        return cls(snapshot, tuple(sorted(plans, key=_rank)), best(bounds) if bounds else None)

    def gap(self, plan: Plan) -> float | None:
        """Return the relative gap of a plan's first value to the best bound."""
        return None if self.bound is None or plan.value is None else gap(plan.value, self.bound)

    def unallocated_bound(self) -> float | None:
        """Return the percentage of GPU below which no plan can leave unallocated.

        It follows from the bound on the value where value is GPU: one priority, and every pending job worth its
        GPU-milli. None otherwise.
        """
        waiting = [job for job in self.snapshot.jobs if job.running is None]
        plan = self.plans[0]
        usage, first = plan.usage, _first(plan)
        if self.bound is None or first is None or first.objective != "value" or not usage.gpus:
            return None
        if any(job.weight != 1 or job.value is not None or job.priority != waiting[0].priority for job in waiting):
            return None
        allocated = usage.gpus_allocated + (self.bound - first.value) / 1000
        return 100 * max(0.0, 1 - allocated / usage.gpus)


def _first(plan: Plan) -> Phase | None:
    return plan.phases[0] if plan.phases else None


def _rank(plan: Plan) -> list[float]:
    return [phase.value if phase.sense == "max" else -phase.value for phase in plan.phases]


def comparison_table(comparison: Comparison, width: int = 80) -> Table:
    """Return the comparison for a terminal; the bound is the last row.

    Every objective that was asked for has a column. Where the columns do not fit, some of those that were not asked for
    are left out.
    """
    asked = {phase.objective for phase in comparison.plans[0].phases[1:]}
    columns = _columns(comparison)
    for _, name in sorted((LEAST.index(name), name) for name in columns if name in LEAST and name not in asked):
        if _width(columns) <= width:
            break
        del columns[name]
    grid = table("method", *(heading for heading, _, _ in columns.values()))
    grid.columns[0].no_wrap = True
    for row, plan in enumerate(comparison.plans):
        grid.add_row(plain(plan.provenance.method), *(cells[row] for _, cells, _ in columns.values()))
    grid.add_section()
    grid.add_row("bound", *(last for _, _, last in columns.values()))
    return grid


LEAST = ("whole_nodes", "fragmentation", "idle", "tasks", "seconds", "gap")
"""Columns that may be left out, those first that are missed least."""

_Column = tuple[str, list[str], str]
"""Heading, a cell for each plan, and the cell of the bound."""


def _columns(comparison: Comparison) -> dict[str, _Column]:
    """Return the columns beside the methods, by objective or by what they are."""
    plans = comparison.plans
    usages = [plan.usage for plan in plans]
    behind = [comparison.gap(plan) for plan in plans]
    headings = [name.replace(", ", ",\n") for name in phase_names(plans[0].phases)] or ["value"]
    gaps = [percent(None if part is None else 100 * part) for part in behind]
    columns: dict[str, _Column] = {
        "first": (headings[0], [number(plan.value) for plan in plans], number(comparison.bound)),
        "gap": ("gap, %", gaps, ""),
    }
    for place, phase in list(enumerate(plans[0].phases))[1:]:
        if phase.objective not in LEAST:
            cells = [number(plan.phases[place].value) for plan in plans]
            columns[f"phase {place}"] = (headings[place], cells, "")
    wanted, idle = f"of {number(usages[0].tasks_wanted)}", percent(comparison.unallocated_bound())
    fragmented = [percent(usage.fragmented_percent) for usage in usages]
    columns["tasks"] = ("tasks", [number(usage.tasks_started) for usage in usages], wanted)
    columns["idle"] = ("idle, %", [percent(usage.unallocated_percent) for usage in usages], idle)
    columns["fragmentation"] = ("frag., %", fragmented, "")
    columns["whole_nodes"] = ("whole\nnodes", [number(usage.whole_nodes) for usage in usages], "")
    columns["seconds"] = ("time, s", [f"{seconds(plan):.1f}" for plan in plans], "")
    return columns


def _width(columns: Mapping[str, _Column]) -> int:
    """Return how many characters a table of some columns needs beside the longest name of a method."""
    method = max(map(len, (*HEURISTICS, "configurations")))
    every = ([*heading.split("\n"), *cells, last] for heading, cells, last in columns.values())
    return method + sum(2 + max(map(len, texts)) for texts in every)


def kind(plan: Plan) -> str:
    """Return ``"greedy"`` for a plan of a greedy rule alone, ``"exact"`` for one of the exact method."""
    return "greedy" if plan.provenance.method in HEURISTICS else "exact"


CAPTION = (
    "gap: distance from the bound, relative to the plan's value. idle: GPU that nothing is allocated to."
    " frag.: GPU that is idle and too scattered for the tasks there are."
)
"""What the short headings of the table stand for."""


def verdict(comparison: Comparison) -> str:
    """Return what goes below the table: which methods are greedy, whether all plans were judged, what headings mean."""
    by_kind: dict[str, list[str]] = {}
    for plan in comparison.plans:
        by_kind.setdefault(kind(plan), []).append(plan.provenance.method)
    methods = " ".join(f"{name.capitalize()}: {', '.join(found)}." for name, found in sorted(by_kind.items()))
    unchecked = [plan.provenance.method for plan in comparison.plans if not plan.checked]
    judged = f"Not checked: {', '.join(unchecked)}." if unchecked else "Every plan was checked and is valid."
    return f"{methods}\n{judged}\n{CAPTION}"


def headline(comparison: Comparison) -> str:
    """Return what the methods had before them."""
    usage = comparison.plans[0].usage
    cluster = f"{counted(usage.nodes, 'node')} with {counted(usage.gpus, 'GPU')}"
    return f"{cluster}, {counted(usage.jobs_pending, 'pending job')} with {counted(usage.tasks_wanted, 'task')}"


def comparison_record(comparison: Comparison) -> dict[str, object]:
    """Return the comparison for a machine; fields that are not known are null."""
    return {
        "phases": [
            {"objective": phase.objective, "priority": phase.priority, "sense": phase.sense}
            for phase in comparison.plans[0].phases
        ],
        "methods": [
            {
                "method": plan.provenance.method,
                "kind": kind(plan),
                "checked": plan.checked,
                "solver": plan.provenance.solver,
                "stop": plan.stop,
                "values": [phase.value for phase in plan.phases],
                "bounds": [phase.bound for phase in plan.phases],
                "gap": comparison.gap(plan),
                "usage": plan.usage,
                "seconds": seconds(plan),
            }
            for plan in comparison.plans
        ],
        "bound": comparison.bound,
        "unallocated_percent_bound": comparison.unallocated_bound(),
    }


def seconds(plan: Plan) -> float:
    """Return the wall time that making the plan took; 0 for a plan from a file."""
    timing: dict[str, float] = getattr(plan, "seconds", {})
    return timing.get("total", 0.0)
