"""A schedule as tables for a terminal: when each job runs and where, what that comes to, and baselines beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from placement.report.table import EXAMPLES, grouped, noted
from placement.report.terminal import counted, number, percent, plain, table
from placement.snapshot import Snapshot
from placement.snapshot.fields import Names
from placement.timetable import Schedule

ROWS = 50
"""Jobs that are listed, those that start first; JSON has all."""

GROUPS = 20
"""Queues that are listed, those with most jobs, and as many priorities."""

STOP = {
    "optimal": "the search ended with a proof that no schedule is better",
    "gap": "the search reached the gap asked for",
    "complete": "the method ran to its end",
    "work": "the search reached its limit on work",
    "time": "the search ran out of time",
    "failed": "the exact method failed",
}


def schedule_report(snapshot: Snapshot, schedule: Schedule, compared: Sequence[Schedule] = ()) -> RenderableType:
    """Return a schedule for a terminal of 80 columns; all times are seconds.

    Parameters
    ----------
    snapshot : Snapshot
    schedule : Schedule
    compared : sequence of Schedule
        Of baselines, for the same snapshot.
    """
    parts: list[RenderableType] = [_headline(schedule), Text()]
    if len(schedule.jobs):
        parts += [_jobs(schedule), *_more(len(schedule.jobs) - ROWS, "job"), Text(), *_figures(schedule), Text()]
    if compared:
        parts += [comparison_table(snapshot, schedule, compared), Text()]
    parts += grouped("Jobs without a start", [(one.job, f"{one.reason}: {one.detail}") for one in schedule.left_out])
    parts += noted(schedule.notes, [*_late(snapshot, schedule)])
    return Group(*parts[:-1])


def aim(schedule: Schedule) -> str:
    """Return what the value of a schedule is, in words."""
    fair = "finish_time_fairness" in schedule.provenance.objectives
    return "completion time weighted for finish-time fairness" if fair else "weighted completion time"


def _headline(schedule: Schedule) -> Text:
    jobs = len(schedule.jobs)
    text = Text()
    text.append(f"{counted(jobs, 'job')}, {aim(schedule)} {number(schedule.value)} s\n", "bold")
    if schedule.bound is None:
        text.append("nothing is proven about other schedules\n")
    else:
        text.append(f"no schedule has less than {number(schedule.bound)} s, gap {_gap(schedule.gap)} %\n")
    text.append(f"Schedule of {schedule.provenance.solver}; {STOP.get(schedule.stop, schedule.stop)}.")
    return text


def _gap(gap: float | None) -> str:
    return percent(None if gap is None else 100 * gap)


def _seconds(value: float) -> str:
    """Return seconds for a column: without decimals where these are less than a part in a hundred."""
    return number(value, 0 if value >= 100 else 2)


# --- jobs ----------------------------------------------------------------------------------------------------


def _jobs(schedule: Schedule) -> Table:
    """Return the jobs that start first: when they start and end, the parts of the time between, and their nodes."""
    jobs = schedule.jobs
    rows = sorted(range(len(jobs)), key=lambda row: (jobs.start[row], row))[:ROWS]
    where = _nodes(schedule, {jobs.job[row] for row in rows})
    grid = table("job", "start", "end", "queued", "run", "restart", "nodes")
    grid.columns[-1].justify, grid.columns[-1].no_wrap, grid.columns[-1].overflow = "left", False, "fold"
    for row in rows:
        times = (jobs.start, jobs.end, jobs.queued, jobs.run, jobs.restart)
        name = jobs.job[row]
        grid.add_row(plain(name), *(_seconds(column[row]) for column in times), plain(f" {_where(where[name])}"))
    return grid


def _nodes(schedule: Schedule, named: set[str]) -> dict[str, list[list[str]]]:
    """Return the nodes of each stretch of some jobs, each once."""
    at: dict[int, dict[str, None]] = {row: {} for row, job in enumerate(schedule.stretches.job) if job in named}
    for stretch, node in zip(schedule.tasks.stretch, schedule.tasks.node, strict=True):
        if stretch in at:
            at[stretch][node] = None
    found: dict[str, list[list[str]]] = {job: [] for job in named}
    for stretch, nodes in at.items():
        found[schedule.stretches.job[stretch]].append(list(nodes))
    return found


def _where(stretches: Sequence[Sequence[str]]) -> str:
    """Return where a job is, one stretch after the other."""
    texts = [_few(nodes) for nodes in stretches[:EXAMPLES]]
    more = len(stretches) - len(texts)
    return "; ".join([*texts, *([f"{more} more times"] if more else [])])


def _few(nodes: Sequence[str]) -> str:
    more = len(nodes) - EXAMPLES
    return ", ".join(nodes) if more <= 0 else f"{', '.join(nodes[:EXAMPLES])} and {more} more"


def _more(count: int, what: str) -> list[Text]:
    return [plain(f"and {counted(count, f'more {what}')}")] if count > 0 else []


# --- figures -------------------------------------------------------------------------------------------------


def _figures(schedule: Schedule) -> list[RenderableType]:
    figures = schedule.figures
    grid = table("T, seconds", "jobs", "mean", "weighted", "p50", "p95", "p99", "slowdown")
    rows = [("all", figures.all)]
    for kind, groups in (("queue", figures.queues), ("priority", figures.priorities)):
        if len(groups) > 1 or (kind == "queue" and groups):
            most = sorted(groups, key=lambda name: -groups[name].jobs)[:GROUPS]
            rows += [(f"{kind} {name}", one) for name, one in groups.items() if name in most]
    for name, one in rows:
        seconds = (one.mean, one.weighted, one.p50, one.p95, one.p99)
        grid.add_row(plain(name), number(one.jobs), *map(_seconds, seconds), f"{one.slowdown:.2f}")
    used = figures.utilisation
    whole = figures.all
    cards = "" if used is None else f", {percent(100 * used)} % of all card time used until then"
    parts = f"T is {_seconds(whole.queued)} queued, {_seconds(whole.run)} run, {_seconds(whole.restart)} restart"
    ends = f"the last job ends after {_seconds(figures.makespan)} s{cards}"
    stops = f"jobs are stopped {counted(figures.preemptions, 'time')}"
    hidden = _more(len(figures.queues) - GROUPS, "queue")
    return [grid, *hidden, Text(), plain(f"{parts} on average"), plain(ends), plain(stops)]


def _late(snapshot: Snapshot, schedule: Schedule) -> Iterator[str]:
    """Yield how many jobs end after a deadline, which is a wish where it is not hard."""
    known = Names("job", [job.name for job in snapshot.jobs], [job.count for job in snapshot.jobs])
    late = []
    for name, end in zip(schedule.jobs.job, schedule.jobs.end, strict=True):
        entry = known.find(name)
        deadline = None if entry is None else snapshot.jobs[entry].deadline
        if deadline is not None and snapshot.time + end > deadline:
            late.append((snapshot.time + end - deadline, name))
    if late:
        worst, name = max(late)
        who = (
            "1 job ends after its deadline" if len(late) == 1 else f"{number(len(late))} jobs end after their deadline"
        )
        yield f"{who}, {name} by {_seconds(worst)} s"


# --- baselines -----------------------------------------------------------------------------------------------


def gap_of(schedule: Schedule, bound: Schedule, snapshot: Snapshot) -> float | None:
    """Return how far a schedule is from the bound of another one for the same snapshot, relative to its value.

    None without a bound, and where more is left out for its deadline, of which the bound says nothing.

    Parameters
    ----------
    schedule : Schedule
    bound : Schedule
        Whose bound is taken.
    snapshot : Snapshot
    """
    if bound.bound is None or _missed(schedule, snapshot) > _missed(bound, snapshot):
        return None
    return (schedule.value - bound.bound) / schedule.value if schedule.value else 0.0


def _missed(schedule: Schedule, snapshot: Snapshot) -> int:
    """Return the weight of the jobs that get no start for their deadline."""
    known = Names("job", [job.name for job in snapshot.jobs], [job.count for job in snapshot.jobs])
    entries = [known.find(one.job) for one in schedule.left_out if one.reason == "late"]
    return sum(snapshot.jobs[entry].weight for entry in entries if entry is not None)


def comparison_table(snapshot: Snapshot, schedule: Schedule, compared: Sequence[Schedule]) -> Table:
    """Return baselines from the worst to the best, this schedule after them, and its bound.

    How many jobs have no start is a column where that is not the same in all.
    """
    ordered = [*sorted(compared, key=lambda one: (-_missed(one, snapshot), -one.value)), schedule]
    differ = len({len(one.left_out) for one in ordered}) > 1
    grid = table("method", "value, s", "gap, %", "T mean", "p99", "used, %", "stops", *(["left out"] * differ))
    for one in ordered:
        used = one.figures.utilisation
        grid.add_row(
            plain(one.provenance.method),
            _seconds(one.value),
            _gap(gap_of(one, schedule, snapshot)),
            _seconds(one.figures.all.mean),
            _seconds(one.figures.all.p99),
            percent(None if used is None else 100 * used),
            number(one.figures.preemptions),
            *([number(len(one.left_out))] * differ),
        )
    grid.add_section()
    grid.add_row("bound", number(schedule.bound))
    return grid
