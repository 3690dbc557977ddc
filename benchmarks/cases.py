"""Test cases of other schedulers through the engine: what their source expects, and what a plan does.

A folder holds cases as JSON, one a line, in files ``*.jsonl``, under a folder named for their kind. Each is turned into
a snapshot, solved, and judged anew from the snapshot. What is compared are properties, not names, for several answers
are often equally right: how many tasks start, and how many domains they use where the case states a rule for it. Where
the source says which cards each task gets, it is the rule named after it that answers, and node and cards are compared.
Where running work makes room, it is `placement.preempt` that answers, and how much leaves is compared too
(`benchmarks/victims.py`). Every case has a line, those that a snapshot cannot state too.

    python benchmarks/cases.py FOLDER
    python benchmarks/cases.py FOLDER --kind kueue_tas --output cases.json
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import table
import victims
from translate import go_gpuallocator, hived, k8s_topology_manager, kai, kueue, nrt, volcano
from translate.common import HELD, Answer, Case, InexpressibleError, Translated, UntranslatedError

import placement as pl
from placement.compile import compile as compile_snapshot
from placement.heuristics import HEURISTICS
from placement.snapshot import Snapshot
from placement.solver import Limits

TRANSLATIONS: dict[str, Callable[[Case], Translated]] = {
    "kueue_tas": kueue.translate,
    "volcano": volcano.translate,
    "k8s_topology_manager": k8s_topology_manager.translate,
    "nrt": nrt.translate,
    "kai": kai.translate,
}
"""Kinds of cases that are translated."""
VICTIMS = ("kai", "volcano")
"""Kinds of which some cases are about running work that makes room."""
ANSWERS = {"go_gpuallocator": go_gpuallocator, "hived": hived}
"""Kinds of cases that say node and cards of each task."""
WITHOUT = {
    "slurm_topology": "a topology alone: it states no job, so there is no answer to compare",
}
"""Kinds that are not, and why."""
KINDS = (*TRANSLATIONS, *ANSWERS, *WITHOUT)
SECONDS = 20.0

AGREES = "agrees"
OURS_FITS = "ours fits, checked"
OVERCHARGES = "source over-charges"
UNEVEN = "source is not even"
INEXPRESSIBLE = "not expressible"
UNTRANSLATED = "not translated"
WAITS = "waits for fields"
EXCUSED = "rule differs, see why"
WRONG = (
    "ours starts fewer",
    "ours spans more domains",
    "refused by the check",
    "refused by the reader",
    "rule differs",
    "ours starts others",
    *victims.WRONG,
)
"""Outcomes that nothing excuses."""
COLUMNS = (
    table.Column("case", "case", 22),
    table.Column("source", "source", 8),
    table.Column("ours", "ours", 8),
    table.Column("proof", "proof", 9),
    table.Column("level theirs/ours", "levels", 20),
    table.Column("outcome", "outcome", 23),
    table.Column("domains theirs/ours, or reason", "why", 0),
)


def main() -> None:
    """Go through a folder, print a table and write the rows down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="with one folder for each kind of cases")
    parser.add_argument("--kind", choices=KINDS, action="append", help="default: all that are there")
    parser.add_argument("--output", type=Path, help="JSON file to write")
    options = parser.parse_args()
    kinds = options.kind or [kind for kind in KINDS if (options.folder / kind).is_dir()]
    if not kinds:
        parser.error(f"{options.folder} has none of the folders {', '.join(KINDS)}")
    rows = []
    print(table.heading(COLUMNS))
    for kind in kinds:
        for case in cases_of(kind, options.folder / kind):
            rows.append({"kind": kind, **row_of(kind, case)})
            print(table.line(COLUMNS, rows[-1]), flush=True)
    for text in summary(rows):
        print(text)
    for kind in kinds:
        for path in sorted(options.folder.joinpath(kind).iterdir()):
            if kind in TRANSLATIONS and path.suffix != ".jsonl":
                print(f"{kind}: {path.name} holds no cases")
    table.write(options.output, machine=table.machine(), rows=rows)
    sys.exit(any(row["outcome"] in WRONG for row in rows))


def cases_of(kind: str, folder: Path) -> Iterator[Case]:
    """Yield every case of a folder."""
    if kind in ANSWERS:
        yield from ANSWERS[kind].cases(folder)
        return
    files = sorted(folder.glob("*.jsonl"))
    if not files and kind in WITHOUT:
        yield from ({"case_id": path.name} for path in sorted(folder.iterdir()))
    elif not files:
        sys.exit(f"{folder} has no *.jsonl; give a folder that has cases, one JSON object a line")
    for path in files:
        yield from map(json.loads, path.read_text("utf-8").splitlines())


def summary(rows: list[table.Row]) -> Iterator[str]:
    """Yield how many cases came out how, by kind; they add up to all."""
    for kind in dict.fromkeys(row["kind"] for row in rows):
        outcomes = Counter(str(row["outcome"]) for row in rows if row["kind"] == kind)
        yield f"{kind}: {outcomes.total()} cases; " + ", ".join(f"{n} {text}" for text, n in outcomes.most_common())


def row_of(kind: str, case: Case) -> table.Row:
    """Return what became of a case."""
    row: table.Row = {"case": case["case_id"]}
    if kind in WITHOUT:
        return {**row, "outcome": UNTRANSLATED, "why": WITHOUT[kind]}
    try:
        if kind in VICTIMS and case["action"] in victims.ACTIONS:
            return {**row, **victims.row_of(kind, case)}
        if kind in ANSWERS:
            return {**row, **answered(ANSWERS[kind].translate(case))}
        translated = TRANSLATIONS[kind](case)
    except InexpressibleError as error:
        return {**row, "outcome": INEXPRESSIBLE, "why": str(error)}
    except UntranslatedError as error:
        return {**row, "outcome": UNTRANSLATED, "why": str(error)}
    row["source"] = f"{translated.expected} of {translated.wanted}"
    try:
        return {**row, **solved(translated)}
    except pl.UnhonouredError as error:
        return {**row, "outcome": WAITS, "why": ", ".join(problem.path for problem in error.problems)}
    except pl.SnapshotError as error:
        outcome = AGREES if translated.malformed else WRONG[3]
        return {**row, "ours": "refused", "outcome": outcome, "why": str(error.problems[0])}


def solved(case: Translated) -> table.Row:
    """Solve a translated case and compare."""
    snapshot = pl.loads(pl.dumps(case.snapshot))
    plan = pl.solve(snapshot, time_limit=SECONDS)
    started = sum(case.held or not path.rpartition("/")[2].startswith(HELD) for path in plan.tasks.group)
    ours = domains(snapshot, plan)
    outcome = outcome_of(case, started, ours, bool(pl.check(snapshot, plan)))
    if outcome == AGREES and case.jobs and Counter(plan.tasks.job) != case.jobs:
        outcome = WRONG[5]
    levels = ("cluster", *snapshot.topology, "node")
    excuses = {OVERCHARGES: case.overcharged, UNEVEN: case.uneven, OURS_FITS: case.stricter}
    reasons = [excuses.get(outcome), compared(levels, case.domains, ours)]
    return {
        "ours": f"{started} of {case.wanted}",
        "proof": plan.status,
        "levels": f"{spanned(levels, case.domains)}/{spanned(levels, ours)}",
        "outcome": outcome,
        "why": "; ".join(filter(None, reasons)),
    }


def answered(case: Answer) -> table.Row:
    """Let the rule named after the source answer a case, and compare node and cards of every task."""
    snapshot = pl.loads(pl.dumps(case.snapshot))
    ours = cards_of(snapshot, case.rule)
    wanted = sum(len(job.groups) for job in case.snapshot.jobs if job.running is None)
    plan = pl.solve(snapshot, solver=case.rule)
    outcome = AGREES if ours == case.expected else EXCUSED if case.differs else WRONG[4]
    return {
        "source": f"{sum(map(len, case.expected.values()))} of {wanted}",
        "ours": f"{sum(map(len, ours.values()))} of {wanted}",
        "outcome": WRONG[2] if pl.check(snapshot, plan) else outcome,
        "why": "" if ours == case.expected else f"{case.differs}: {said(case.expected)} / {said(ours)}",
    }


def cards_of(snapshot: Snapshot, rule: str) -> dict[str, list[tuple[str, list[int]]]]:
    """Return node and device indices of the tasks of each job that a rule starts, as the rule itself chose them."""
    instance = compile_snapshot(snapshot)
    found = HEURISTICS[rule].solve(instance, objectives=(), limits=Limits()).assignment
    places: dict[str, list[tuple[str, list[int]]]] = {}
    for row, (job, node) in enumerate(zip(found.job.tolist(), found.node.tolist(), strict=True)):
        cards = found.cards[found.offset[row] : found.offset[row + 1]].tolist()
        devices = instance.node_cards.get(node)
        gpus = sorted(cards if devices is None else (devices[card] for card in cards))
        places.setdefault(instance.job_name(job), []).append((instance.node_name(node), gpus))
    return places


def said(places: dict[str, list[tuple[str, list[int]]]]) -> str:
    """Return node and cards of every task in a few words."""
    return ", ".join(f"{node} {gpus}" for spots in places.values() for node, gpus in spots) or "nothing"


def outcome_of(case: Translated, started: int, ours: dict[str, int], refused: bool) -> str:
    """Return how an answer compares with the source's."""
    fewer, more, invalid, *_ = WRONG
    if refused:
        return invalid
    if started > case.expected:
        return OURS_FITS
    if started < case.expected:
        return OVERCHARGES if case.overcharged else fewer
    wider = any(ours.get(level, 0) > 1 for level in case.ruled if case.domains.get(level) == 1)
    return AGREES if not wider else UNEVEN if case.uneven else more


def domains(snapshot: Snapshot, plan: pl.Plan) -> dict[str, int]:
    """Return the number of domains in use by a plan's tasks, by level."""
    position = {node.name: {**node.position, "node": node.name} for node in snapshot.nodes}
    used = {(level, domain) for node in plan.tasks.node for level, domain in position[node].items()}
    return dict(Counter(level for level, _ in used))


def spanned(levels: tuple[str, ...], used: dict[str, int]) -> str:
    """Return the narrowest level of which one domain has all; a dash if nothing is used."""
    return next((short(level) for level in reversed(levels) if used.get(level) == 1), "cluster" if used else "-")


def compared(levels: tuple[str, ...], theirs: dict[str, int], ours: dict[str, int]) -> str:
    """Return both numbers of domains by level."""
    parts = (f"{short(at)} {theirs.get(at, '-')}/{ours.get(at, '-')}" for at in levels if at in theirs or at in ours)
    return ", ".join(parts)


def short(level: str) -> str:
    """Return a level's name without what label keys begin with."""
    return level.rpartition("/")[2].removeprefix("topology-")


if __name__ == "__main__":
    main()
