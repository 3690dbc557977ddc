"""The search over devices, every bound and brute force on random tiny schedules.

The instances have gangs, some of them elastic, topology that is required, quotas with borrowing and lending, releases,
and running jobs that may be stopped, with checkpoints, restarts and minimum run times. The value found must be the
optimum, every bound must be a bound, and the judge must accept the schedule.

Brute force stops running jobs at once or never. Policies may stop them later; where that is better, it is counted as
such.

    python benchmarks/agreement_time.py
    python benchmarks/agreement_time.py --instances 50 --first 1000
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from brute_schedules import optimum, random_schedule_case  # noqa: E402 - those of the tests

from placement.check.schedules.judge import check_schedule  # noqa: E402
from placement.exact.milp import highs  # noqa: E402
from placement.plan import Provenance  # noqa: E402
from placement.scheduling.answer import schedule_of  # noqa: E402
from placement.scheduling.bounds.area import area_bound, trivial_bound  # noqa: E402
from placement.scheduling.bounds.grid import grid_bound  # noqa: E402
from placement.scheduling.bounds.modes import relaxation  # noqa: E402
from placement.scheduling.compile import compile_work  # noqa: E402
from placement.scheduling.found import Found  # noqa: E402
from placement.scheduling.on_devices.search import search_devices  # noqa: E402
from placement.scheduling.progress import silent  # noqa: E402
from placement.scheduling.work import Work  # noqa: E402
from placement.snapshot import Snapshot  # noqa: E402
from placement.snapshot.read import digest, verified  # noqa: E402
from placement.solver import Limits  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results"
GRIDS = ((1.5, 500), (1.2, 500), (1.06, 250))
"""Ratios and first slots of grids, in milliseconds."""


@dataclass(slots=True)
class Line:
    """What one method did.

    Attributes
    ----------
    instances : int
    agree : int
        Values that are the optimum.
    bounds, valid, tight : int
        Bounds it gave, those that are bounds, and those that are the optimum.
    seconds : float
    """

    instances: int = 0
    agree: int = 0
    bounds: int = 0
    valid: int = 0
    tight: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class Record:
    """All lines, what instances have, what went wrong, and what was missed."""

    lines: dict[str, Line] = field(default_factory=dict)
    features: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)

    def line(self, name: str) -> Line:
        """Return a method's line."""
        return self.lines.setdefault(name, Line())

    def count(self, feature: str, there: bool) -> None:
        """Count an instance that has something."""
        self.features[feature] = self.features.get(feature, 0) + there

    def bound(self, name: str, where: str, bound: int, best: int) -> None:
        """Note a bound on the best value."""
        line = self.line(name)
        line.bounds += 1
        line.valid += bound <= best
        line.tight += bound == best
        if bound > best:
            self.wrong.append(f"{where}: {name} claims {bound / 1000}, and {best / 1000} is reached")

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the time of a block, which is one instance, to a method's line."""
        began = time.perf_counter()
        yield
        self.line(name).instances += 1
        self.line(name).seconds += time.perf_counter() - began


def main() -> None:
    """Run the comparison, print a table and write the numbers down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="seed of the first instance")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    record = Record()
    for seed in range(options.first, options.first + options.instances):
        compare(verified(random_schedule_case(seed)), f"seed {seed}", record)
    print(table(record))
    print(", ".join(f"{feature}: {count}" for feature, count in record.features.items()))
    for text in (*record.missed, *record.wrong):
        print(text)
    numbers = {
        "instances": options.instances,
        "first_seed": options.first,
        "highs": highs.version(),
        "python": platform.python_version(),
        "lines": {name: asdict(line) for name, line in record.lines.items()},
        "features": record.features,
        "missed": record.missed,
        "wrong": record.wrong,
    }
    output = options.output or RESULTS / "agreement_time.json"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(numbers, indent=2) + "\n")
    sys.exit(1 if record.wrong else 0)


def compare(snapshot: Snapshot, where: str, record: Record) -> None:
    """Solve one instance by brute force and by the engine, and bound it in every way."""
    with record.timed("brute force"):
        known = optimum(snapshot)
    assert known is not None
    optimal, never = known
    record.line("brute force").agree += 1
    work = compile_work(snapshot)
    with record.timed("search over devices"):
        found = search_devices(work, Limits(), 0, silent)
    value = found.table.value(work)
    later = stops_later(work, found)
    note_features(snapshot, work, found, later, record)
    if value == optimal:
        record.line("search over devices").agree += 1
    elif value > optimal:
        record.missed.append(f"{where}: the search finds {value / 1000}, brute force {optimal / 1000}")
    elif not later:
        record.wrong.append(f"{where}: the search claims {value / 1000}, brute force finds {optimal / 1000}")
    record.count("better by stopping later", value < optimal and later)
    out = found.table.never | found.table.quota.keys()
    if {snapshot.jobs[job].name for job in out} != never:
        record.wrong.append(f"{where}: {sorted(out)} get no start, by brute force {sorted(never)}")
    best = min(value, optimal)
    assert found.bound is not None
    record.bound("search over devices", where, found.bound, best)
    relaxed = relaxation(work, out)
    for name, bound in {"trivial": trivial_bound, "area": area_bound}.items():
        with record.timed(name):
            least = bound(relaxed)
        record.bound(name, where, least, best)
    for ratio, first in GRIDS:
        with record.timed(f"grid {ratio}"):
            least = grid_bound(work, ratio, first, out=out).bound
        record.bound(f"grid {ratio}", where, least, best)
    judge(snapshot, work, found, where, record)


def stops_later(work: Work, found: Found) -> bool:
    """Return whether a job is stopped after it has run on from now, or was started."""
    began = [one.job for one in found.table.stretches]
    return len(set(began)) < len(began)


def note_features(snapshot: Snapshot, work: Work, found: Found, later: bool, record: Record) -> None:
    """Count what an instance has and what was done about it."""
    groups = [job.groups[0] for job in snapshot.jobs if job.running is None]
    record.count("gangs", any(group.count > 1 for group in groups))
    record.count("elastic", any(group.min_count not in (None, group.count) for group in groups))
    record.count("topology", any(group.topology is not None for group in groups))
    record.count("quotas", bool(snapshot.queues))
    record.count("preemptible", any(job.running is not None and job.preemptible for job in snapshot.jobs))
    record.count("stopped now", any(one.start > 0 and one.job in work.ongoing for one in found.table.stretches))
    record.count("stopped later", later)


def judge(snapshot: Snapshot, work: Work, found: Found, where: str, record: Record) -> None:
    """Let the judge see the schedule."""
    provenance = Provenance(version="", solver=found.method, objectives=("completion_time",))
    made = schedule_of(work, found.table, found.bound, found.stop, provenance, digest(snapshot), (), snapshot)
    record.wrong += [f"{where}: {violation}" for violation in check_schedule(snapshot, made)]


def table(record: Record) -> str:
    """Return the lines as a table."""
    columns: dict[str, Callable[[str, Line], str]] = {
        "method": lambda name, line: name,
        "instances": lambda name, line: str(line.instances),
        "optimum": lambda name, line: str(line.agree) if line.agree else "",
        "bounds": lambda name, line: str(line.bounds) if line.bounds else "",
        "valid": lambda name, line: str(line.valid) if line.bounds else "",
        "tight": lambda name, line: str(line.tight) if line.bounds else "",
        "seconds": lambda name, line: f"{line.seconds:.1f}",
    }
    rows = [[cell(name, line) for cell in columns.values()] for name, line in record.lines.items()]
    rows = [list(columns), ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


if __name__ == "__main__":
    main()
