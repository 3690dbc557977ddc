"""Every formulation, the pooled bound and brute force on random tiny instances.

Each instance is solved twice, for all objectives in the order value, tasks, fragmentation, whole nodes, nodes, and for
some of them in a random order. Phase by phase the optimum must be that of brute force, every bound of a relaxation must
be a bound, and the plan made from the counts must be accepted by the judge with all phases proven.

With ``--zones`` the instances have gangs, jobs tied to domains and tasks bound to NUMA zones, all three in each, and
there is a line for domains that are chosen first, whose bounds must hold.

    python benchmarks/agreement.py
    python benchmarks/agreement.py --instances 50 --first 1000
    python benchmarks/agreement.py --zones
"""

from __future__ import annotations

import argparse
import itertools
import json
import platform
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import brute  # noqa: E402 - the brute force and the random instances are those of the tests
from strategies import OBJECTIVES, random_objectives, random_tiny  # noqa: E402
from zoned_tied import random_zoned_tied  # noqa: E402

from placement import models  # noqa: E402
from placement.check import check  # noqa: E402
from placement.compile import compile as compile_snapshot  # noqa: E402
from placement.confined import confined  # noqa: E402
from placement.evaluate import Score, scores  # noqa: E402
from placement.exact import run  # noqa: E402
from placement.exact.domains.tied import Tied  # noqa: E402
from placement.exact.ledger import Ledger  # noqa: E402
from placement.exact.milp import highs  # noqa: E402
from placement.exact.milp.arrays import program  # noqa: E402
from placement.exact.objectives.targets import targets_of  # noqa: E402
from placement.exact.pools.master import Master  # noqa: E402
from placement.exact.small.classes import solve_configurations  # noqa: E402
from placement.exact.timing import Timing  # noqa: E402
from placement.instance import Instance  # noqa: E402
from placement.models import FORMULATIONS, Formulation, Goal  # noqa: E402
from placement.models.parts import parts_of  # noqa: E402
from placement.models.pools import pooling  # noqa: E402
from placement.plan import Provenance  # noqa: E402
from placement.planning import plan_of  # noqa: E402
from placement.snapshot import Snapshot  # noqa: E402
from placement.snapshot.read import digest, verified  # noqa: E402
from placement.solver import Limits, Result, silent  # noqa: E402
from placement.state import State  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results"


@dataclass(slots=True)
class Line:
    """What one method did.

    Attributes
    ----------
    instances : int
        Instances it supports.
    phases : int
        Phases it solved or bounded.
    agree : int
        Phases in which its optimum was that of brute force.
    bounds, valid : int
        Bounds it gave, and those that no plan beats.
    tight : int
        Bounds of relaxations that equal the optimum.
    seconds : float
    """

    instances: int = 0
    phases: int = 0
    agree: int = 0
    bounds: int = 0
    valid: int = 0
    tight: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class Record:
    """All lines, and what went wrong."""

    lines: dict[str, Line] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def line(self, name: str) -> Line:
        """Return a method's line."""
        return self.lines.setdefault(name, Line())

    def bound(self, name: str, where: str, sense: int, bound: Fraction | None, optimum: Fraction) -> None:
        """Note a relaxation's bound."""
        if bound is None:
            return
        line = self.line(name)
        line.bounds += 1
        line.valid += sense * (bound - optimum) >= 0
        line.tight += bound == optimum
        if sense * (bound - optimum) < 0:
            self.wrong.append(f"{where}: {name} claims {float(bound)}, brute force reaches {float(optimum)}")

    def optimum(self, name: str, where: str, found: Fraction | None, optimum: Fraction) -> None:
        """Note a method's optimum."""
        line = self.line(name)
        line.phases += 1
        line.agree += found == optimum
        if found != optimum:
            self.wrong.append(f"{where}: {name} finds {found}, brute force {optimum}")

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the time of a block to a method's line."""
        began = time.perf_counter()
        yield
        self.line(name).seconds += time.perf_counter() - began


def main() -> None:
    """Run the comparison, print a table and write the numbers down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=500)
    parser.add_argument("--first", type=int, default=0, help="seed of the first instance")
    parser.add_argument("--zones", action="store_true", help="gangs, ties and NUMA zones together")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    record = Record()
    drawn = zoned(options.first) if options.zones else tiny(options.first)
    for seed, snapshot, orders in itertools.islice(drawn, options.instances):
        instance = compile_snapshot(snapshot)
        for formulation in FORMULATIONS.values():
            record.line(formulation.name).instances += formulation.supports(instance) is None
        for name in ("brute force", "plans", "pooled", *(["domains first"] if instance.tied else [])):
            record.line(name).instances += 1
        for objectives in orders:
            compare(snapshot, instance, objectives, f"seed {seed}, {' '.join(objectives)}", record)
    print(table(record))
    for text in record.wrong[:20]:
        print(text)
    numbers = {
        "instances": options.instances,
        "first_seed": options.first,
        "highs": highs.version(),
        "python": platform.python_version(),
        "lines": {name: asdict(line) for name, line in record.lines.items()},
        "wrong": record.wrong,
    }
    output = options.output or RESULTS / ("agreement_zones.json" if options.zones else "agreement.json")
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(numbers, indent=2) + "\n")
    sys.exit(1 if record.wrong else 0)


Drawn = Iterator[tuple[int, Snapshot, tuple[tuple[str, ...], ...]]]
"""Seeds with their snapshots, and the objectives in the orders to solve them for."""


def tiny(first: int) -> Drawn:
    """Yield tiny instances of every rule but ties and zones."""
    for seed in itertools.count(first):
        yield seed, verified(random_tiny(seed)), (OBJECTIVES, random_objectives(seed))


def zoned(first: int) -> Drawn:
    """Yield tiny instances in which some job is tied and some task bound to zones."""
    for seed in itertools.count(first):
        snapshot = verified(random_zoned_tied(seed))
        instance = compile_snapshot(snapshot)
        if instance.zoned and instance.tied:
            yield seed, snapshot, (OBJECTIVES, random_objectives(seed))


def compare(snapshot: Snapshot, instance: Instance, objectives: tuple[str, ...], where: str, record: Record) -> None:
    """Solve one instance for some objectives with every method."""
    with record.timed("brute force"):
        expected = brute.optimum(snapshot, objectives)
    for _, _, value in expected:
        record.optimum("brute force", where, value, value)
    for formulation in FORMULATIONS.values():
        if formulation.supports(instance) is None:
            _formulation(instance, formulation, expected, where, record)
    _pooled(instance, expected, where, record)
    if instance.tied:
        _domains_first(instance, objectives, expected, where, record)
    _plan(snapshot, instance, objectives, expected, where, record)


def _formulation(
    instance: Instance, formulation: Formulation, expected: brute.Optimum, where: str, record: Record
) -> None:
    held: list[Score] = []
    shared: dict[str, Any] = {}
    for objective, priority, value in expected:
        if objective not in formulation.objectives:
            return
        goal = Goal(objective, priority)
        with record.timed(formulation.name):
            model = models.build(instance, formulation, goal, held, shared)
            task = program(model)
            solved = highs.solve(task)
        relaxed = highs.solve(task, relax=True)
        unit = model.parts.goals[goal]
        found = None if solved.objective is None else unit.value(solved.objective)
        record.optimum(formulation.name, f"{where}, phase {objective} {priority}", found, value)
        relaxed_bound = None if relaxed.bound is None else unit.rounded(relaxed.bound, goal.sense)
        record.bound(formulation.name, where, goal.sense, relaxed_bound, value)
        if solved.bound is None or goal.sense * (unit.rounded(solved.bound, goal.sense) - value) < 0:
            record.wrong.append(f"{where}: {formulation.name} has no valid bound on {objective} {priority}")
        held.append(Score(objective, priority, value))


def _pooled(instance: Instance, expected: brute.Optimum, where: str, record: Record) -> None:
    """Bound the leading phases of value and tasks by the pooled relaxation."""
    state = State(instance)
    held: dict[tuple[str, int | None], int] = {}
    with record.timed("pooled"):
        levels = {unit.level for unit in confined(instance)} if instance.tied else ()
        master = Master(pooling(state, parts_of(state, levels=sorted(levels))), 0, Timing())
        for objective, priority, value in expected:
            if objective not in ("value", "tasks"):
                return
            unit = instance.value_unit if objective == "value" else Fraction(1)
            found = list(master.bounds((objective, priority), held, Limits()))
            record.line("pooled").phases += 1
            record.bound("pooled", where, 1, found[-1] * unit if found else None, value)
            held[objective, priority] = int(value / unit)


def _domains_first(
    instance: Instance, objectives: tuple[str, ...], expected: brute.Optimum, where: str, record: Record
) -> None:
    """Choose domains, then places: the value of the first phase may be less than the optimum, and its bound no less."""
    targets = targets_of(instance, objectives)
    if not targets:
        return
    with record.timed("domains first"):
        result = Tied(Ledger(instance, targets, Limits(), 0, None, silent), (), None).run()
    reached = scores(instance, result.assignment, objectives)
    record.line("domains first").phases += 1
    record.line("domains first").agree += reached[0].value == expected[0].value
    if reached[0].value > expected[0].value:
        record.wrong.append(f"{where}: domains first reaches {reached[0].value}, brute force {expected[0].value}")
    bound = result.bounds[0].value
    if bound is not None:
        unit = instance.value_unit if objectives[0] == "value" else Fraction(1)
        record.bound("domains first", where, 1, round(Fraction(bound) / unit) * unit, expected[0].value)


def _plan(
    snapshot: Snapshot,
    instance: Instance,
    objectives: tuple[str, ...],
    expected: brute.Optimum,
    where: str,
    record: Record,
) -> None:
    """Go the whole way: counts, places, names, and the judge."""
    with record.timed("plans"):
        if instance.tied:
            result: Result | None = run(instance, objectives=objectives, limits=Limits())
        else:
            result = solve_configurations(instance, objectives, Limits())
    if result is None:
        record.wrong.append(f"{where}: too many patterns")
        return
    for score, (_, _, value) in zip(scores(instance, result.assignment, objectives), expected, strict=True):
        record.optimum("plans", where, score.value, value)
    provenance = Provenance(version="", solver="exact", objectives=objectives)
    plan = plan_of(instance, result, {"exact": result.bounds}, objectives, provenance, digest(snapshot))
    record.wrong += [f"{where}: {violation}" for violation in check(snapshot, plan)]
    if plan.status != "proven":
        record.wrong.append(f"{where}: the plan is {plan.status}, not proven")


def table(record: Record) -> str:
    """Return the lines as a table."""
    columns: dict[str, Callable[[str, Line], str]] = {
        "method": lambda name, line: name,
        "instances": lambda name, line: str(line.instances),
        "phases": lambda name, line: str(line.phases),
        "optimum agrees": lambda name, line: str(line.agree) if line.agree else "",
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
