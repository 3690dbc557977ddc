"""Planning over time: weighted completion time and its proven bound, beside every greedy rule and OR-tools' CP-SAT.

`load` draws gangs of 1 to 64 cards with lognormal run times that ask for 1.3 times what the cluster has until the last
comes (see `gangs.py`): 200 gangs on 32 nodes, 1,000 on 256, and 300 on 64 nodes of three models that differ in speed.
Each call is made in a process of its own, and its seconds are those of the whole call of `placement.schedule`, checked
schedule included. What was found and proven over time goes into the file of `--output`, and is drawn by `--svg`.

`rigid` takes small instances: those of known optima in the files that are given (see `gangs.known`), and 20 drawn ones
of 30 to 60 gangs. What is proven is held against the known optimum. Those gangs run for seconds: a rule that decides in
rounds of minutes, as `gavel` does, is far off there for that alone.

Gaps are (value - bound) / value, those of greedy rules to the bound of `placement.schedule`, or to the known optimum
where there is one. CP-SAT has the same limit, two workers for the two processes of our search, and a model without
nodes (see `peers/cpsat_time.py`): its bound holds, its value is that of a schedule that need not be placeable; `placed`
is what its order is worth on nodes. It runs once from nothing and once from the schedule of `smith-area`, and of
several card models as often where every gang is kept to one of them, which has no bound. The table has the best of
these runs in each column, and the file all. Without OR-tools its rows say so.

    python benchmarks/completion.py load --output completion.json --svg completion.svg
    python benchmarks/completion.py load --cases models --seeds 2 --seconds 10 --no-peer
    python benchmarks/completion.py rigid pool.jsonl.gz nodes.jsonl.gz --output completion_rigid.json
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import gangs
from curves import Curve, drawing
from planning import ONE_EACH, OURS, PEERS, apart, greedy, ours, peer, percent
from table import Column, Row, heading, line, machine, number, write

from placement.scheduling.baselines import BASELINES
from placement.snapshot.read import dumps

RULE_SECONDS = 120.0
"""What the process of a greedy rule may take."""
RIGID_SECONDS, DRAWN = 60.0, 20
"""Limit of a rigid instance, and how many are drawn."""
HOUR = 3600.0
SLACK = 1e-3
"""Sums of weight times seconds are of whole milliseconds; less than one is what floating point leaves."""


@dataclass(frozen=True, slots=True)
class Case:
    """Gangs on nodes of some models, and seconds to plan them."""

    gangs: int
    nodes: int
    factors: Mapping[str, float]
    seconds: float


CASES = {
    "small": Case(200, 32, gangs.ONE_MODEL, 15.0),
    "large": Case(1000, 256, gangs.ONE_MODEL, 60.0),
    "models": Case(300, 64, gangs.MODELS, 30.0),
}
COLUMNS = (
    Column("case", "case", 6),
    Column("seed", "seed", 4),
    Column("gangs", "gangs", 5),
    Column("nodes", "nodes", 5),
    Column("limit", "time_limit", 5, ".0f"),
    Column("seconds", "seconds", 7, ".2f"),
    Column("value h", "value_hours", 9, ".1f"),
    Column("bound h", "bound_hours", 9, ".1f"),
    Column("gap %", "gap_percent", 7, ".3f"),
    Column("stop", "stop", 8),
    Column("best greedy", "best_greedy", 20),
    Column("gap %", "best_greedy_gap", 7, ".3f"),
    Column("cp-sat gap %", "peer_gap", 12, ".3f"),
    Column("value/ours", "peer_ratio", 10, ".4f"),
    Column("placed/ours", "placed_ratio", 11, ".4f"),
    Column("bound/ours", "bound_ratio", 10, ".4f"),
)
RIGID = (
    Column("instance", "name", 20),
    Column("gangs", "gangs", 5),
    Column("cards", "cards", 5),
    Column("seconds", "seconds", 7, ".2f"),
    Column("value", "value", 9, ".0f"),
    Column("bound", "bound", 9, ".0f"),
    Column("optimum", "optimum", 9, ".0f"),
    Column("gap %", "gap_percent", 7, ".3f"),
    Column("status", "status", 8),
    *COLUMNS[10:12],
    Column("cp-sat s", "peer_seconds", 8, ".2f"),
    *COLUMNS[12:],
)


# --- rows ------------------------------------------------------------------------------------------------------------


def compared(row: Row, rules: Mapping[str, Row | None], peers: Mapping[str, Row]) -> Row:
    """Return a row with what greedy rules and peers found, and how far that is from ours."""
    value, bound = number(row, "value"), row["bound"]
    least = next((key for key in ("optimum", "bound") if row.get(key) is not None), None)
    floor = None if least is None else number(row, least)
    gaps = {rule: percent(number(one, "value"), floor) for rule, one in rules.items() if one is not None}
    row |= {"greedy": rules, "greedy_gaps": gaps, "greedy_cut_short": [rule for rule in rules if rules[rule] is None]}
    values = {rule: number(one, "value") for rule, one in rules.items() if one is not None}
    if values:
        best = min(values, key=lambda rule: values[rule])
        row |= {"best_greedy": best, "best_greedy_gap": gaps[best], "greedy_over_ours": values[best] / value}
    row["peers"] = dict(peers)
    there = [one for one in peers.values() if one.get("value") is not None]
    bounds = [number(one, "bound") for one in peers.values() if one.get("bound") is not None]
    if there:
        # the best of its runs, in each respect
        row |= {
            "peer_gap": percent(min(number(one, "value") for one in there), max(bounds, default=None)),
            "peer_seconds": min(number(one, "seconds") for one in there),
            "peer_ratio": min(number(one, "value") for one in there) / value,
            "placed_ratio": min(number(one, "placed") for one in there) / value,
        }
    if bounds and bound:
        row["bound_ratio"] = max(bounds) / number(row, "bound")
    refuse_contradictions(row, [*values.values(), *(number(one, "placed") for one in there)], bounds)
    return row


def refuse_contradictions(row: Row, values: Sequence[float], bounds: Sequence[float]) -> None:
    """Stop where a schedule that can be had is better than what is proven to be the best, ours or another's."""
    value, what = number(row, "value"), row.get("name") or f"{row.get('case')}, seed {row.get('seed')}"
    if row["bound"] is not None and min([value, *values]) < number(row, "bound") - SLACK:
        raise SystemExit(f"{what}: {min([value, *values])} can be had, but {row['bound']} is said to be the least")
    if max(bounds, default=value) > value + SLACK:
        raise SystemExit(f"{what}: {value} can be had, but CP-SAT says that {max(bounds)} is the least")


def measure(name: str, case: Case, seed: int, limit: float, rules: Sequence[str], peers: Sequence[str]) -> Row:
    """Return one row of the loads."""
    made = gangs.load(case.gangs, case.nodes, case.factors, seed)
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "load.json"
        path.write_bytes(dumps(made))
        found = apart(OURS, path, limit)
        assert found is not None
        if found["left_out"]:
            raise SystemExit(f"{name}, seed {seed}: the schedule leaves gangs out")
        row: Row = {"case": name, "seed": seed, "gangs": case.gangs, "nodes": case.nodes, "time_limit": limit, **found}
        row |= {f"{key}_hours": None if row[key] is None else number(row, key) / HOUR for key in ("value", "bound")}
        greedies = {rule: apart(rule, path, limit, RULE_SECONDS) for rule in rules}
        others = {who: apart(who, path, limit) or {} for who in peers}
    return compared(row, greedies, others)


def measure_rigid(one: gangs.Rigid, limit: float, rules: Sequence[str], peers: Sequence[str]) -> Row:
    """Return one row of the rigid instances; all calls are in this process."""
    cards = sum(node.count * gpu.count for node in one.snapshot.nodes for gpu in node.gpus)
    row: Row = {"name": one.name, "gangs": len(one.snapshot.jobs), "cards": cards, "optimum": one.optimum}
    row |= ours(one.snapshot, limit)
    if row["left_out"]:
        raise SystemExit(f"{one.name}: the schedule leaves gangs out")
    if one.optimum is not None and (
        number(row, "value") < one.optimum
        or (row["bound"] is not None and number(row, "bound") > one.optimum)
        or (row["status"] == "proven" and row["value"] != one.optimum)
    ):
        raise SystemExit(f"{one.name}: value {row['value']} and bound {row['bound']}, but {one.optimum} is the optimum")
    greedies: dict[str, Row | None] = {rule: greedy(one.snapshot, rule) for rule in rules}
    return compared(row, greedies, {who: peer(one.snapshot, limit, who != PEERS[0]) for who in peers})


# --- the tables ------------------------------------------------------------------------------------------------------


def worst(rows: Sequence[Row]) -> Row:
    """Return the worst of what is ours, and the best of what is not, of rows of one case."""

    def known(key: str) -> list[float]:
        return [number(row, key) for row in rows if row.get(key) is not None]

    gaps = known("gap_percent")
    return {
        **{
            key: rows[0][key]
            for key in ("case", "gangs", "nodes", "time_limit")
            if len({row.get(key) for row in rows}) == 1 and key in rows[0]
        },
        "name": "worst",
        "seed": "all",
        "seconds": max(known("seconds")),
        # a schedule without a bound has the worst gap of all
        "gap_percent": max(gaps) if len(gaps) == len(rows) else None,
        "status": f"{sum(row['status'] == 'proven' for row in rows)}/{len(rows)}",
        "best_greedy_gap": min(known("best_greedy_gap"), default=None),
        **{key: min(known(key), default=None) for key in ("peer_gap", "peer_ratio", "placed_ratio", "peer_seconds")},
        "bound_ratio": max(known("bound_ratio"), default=None),
    }


def rules_of(rows: Sequence[Row]) -> list[str]:
    """Return a line for each greedy rule: its gaps, how far its values are above ours, and its longest seconds."""
    names = list(dict.fromkeys(rule for row in rows for rule in _of(row, "greedy")))
    said = []
    for rule in names:
        done = [(row, one) for row in rows if isinstance(one := _of(row, "greedy")[rule], dict)]
        late = f", {len(rows) - len(done)} of {len(rows)} took too long" if len(done) < len(rows) else ""
        gaps = [gap for row, _ in done if isinstance(gap := _of(row, "greedy_gaps")[rule], float)]
        above = [100 * (number(one, "value") / number(row, "value") - 1) for row, one in done]
        seconds = max((number(one, "seconds") for _, one in done), default=None)
        parts = [f"{_range(gaps):>20}", f"{_range(above):>20} above ours"]
        said.append(f"  {rule:22}{','.join(parts)}{'' if seconds is None else f', at most {seconds:.2f} s'}{late}")
    return said


def _range(percents: Sequence[float]) -> str:
    return f"{min(percents):.3f} to {max(percents):.3f} %" if percents else "-"


def _of(row: Row, key: str) -> dict[str, object]:
    found = row[key]
    assert isinstance(found, dict)
    return found


def report(rows: Sequence[Row], columns: Sequence[Column]) -> list[str]:
    """Return what is said below the rows of one case."""
    said = ["worst (of greedy rules and CP-SAT: the best):", heading(columns), line(columns, worst(rows))]
    notes = {
        str(one["note"])
        for row in rows
        for one in _of(row, "peers").values()
        if isinstance(one, dict) and one.get("note")
    }
    return [
        *said,
        "greedy rules, gaps to the same bound or optimum:",
        *rules_of(rows),
        *(f"cp-sat: {note}" for note in notes),
    ]


def curves_of(row: Row) -> list[Curve]:
    """Return value and bound of a row over time, in percent above its last bound."""
    bound = row["bound"]
    if not isinstance(bound, float) or not bound:
        return []
    found = []
    course = row["course"]
    assert isinstance(course, list)
    for place, kind, better in ((1, "value", min), (2, "bound", max)):
        points: list[tuple[float, float]] = []
        for at in course:
            if at[place] is not None:
                best = better(at[place], points[-1][1]) if points else at[place]
                points.append((at[0], best))
        found.append(Curve(kind, [(at, 100 * (have / bound - 1)) for at, have in points]))
    return found


# --- the command -----------------------------------------------------------------------------------------------------


def run_load(options: argparse.Namespace, rules: Sequence[str], peers: Sequence[str], about: Row) -> None:
    """Measure the loads."""
    print(heading(COLUMNS))
    rows: list[Row] = []
    said: list[str] = []
    panels: dict[str, list[Curve]] = {}
    chosen = {name: CASES[name] for name in options.cases.split(",")}
    for name, case in chosen.items():
        limit = options.seconds or case.seconds
        beside = (*peers, *ONE_EACH) if peers and len(case.factors) > 1 else peers
        for seed in range(options.first, options.first + options.seeds):
            rows.append(measure(name, case, seed, limit, rules, beside))
            print(line(COLUMNS, rows[-1]), flush=True)
        mine = [row for row in rows if row["case"] == name]
        said += report(mine, COLUMNS)
        panels[f"{case.gangs} gangs, {case.nodes} nodes"] = [curve for row in mine for curve in curves_of(row)]
    print("\n".join(said))
    limits = {name: options.seconds or case.seconds for name, case in chosen.items()}
    write(options.output, machine=about, limits=limits, load=gangs.LOAD, sizes=gangs.SIZES, rows=rows)
    if options.svg is not None:
        options.svg.write_text(drawing(panels))


def run_rigid(options: argparse.Namespace, rules: Sequence[str], peers: Sequence[str], about: Row) -> None:
    """Measure the rigid instances."""
    limit = options.seconds or RIGID_SECONDS
    # whatever is imported on first use is not on the clock
    measure_rigid(gangs.small(0), 0.5, rules, peers)
    print(heading(RIGID))
    rows: list[Row] = []
    sets = {path.name: list(gangs.known(path)) for path in options.files}
    sets["drawn"] = [gangs.small(seed) for seed in range(options.first, options.first + options.seeds)]
    said: list[str] = []
    for name, some in sets.items():
        mine = []
        for one in some:
            mine.append(measure_rigid(one, limit, rules, peers) | {"set": name})
            print(line(RIGID, mine[-1]), flush=True)
        rows += mine
        if mine:
            said += [f"{name}:", *report(mine, RIGID)]
    print("\n".join(said))
    write(options.output, machine=about, limit=limit, rows=rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark, print a table and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    loads, rigid = kinds.add_parser("load", help="drawn loads"), kinds.add_parser("rigid", help="small instances")
    loads.add_argument("--cases", default=",".join(CASES), help="separated by commas")
    loads.add_argument("--seeds", type=int, default=5, help="how many")
    loads.add_argument("--svg", type=Path, help="file for value and bound over time")
    rigid.add_argument("files", nargs="*", type=Path, help="instances of known optima, JSON lines in gzip")
    rigid.add_argument("--seeds", type=int, default=DRAWN, help="how many are drawn")
    for one in (loads, rigid):
        one.add_argument("--first", type=int, default=0, help="first seed")
        one.add_argument("--seconds", type=float, help="limit, instead of that of each case")
        one.add_argument("--rules", default=",".join(BASELINES), help="greedy rules, separated by commas")
        one.add_argument("--no-peer", action="store_true", help="without CP-SAT")
        one.add_argument("--output", type=Path, help="file for the rows as JSON")
    options = parser.parse_args(arguments)
    about = machine()
    print(about)
    rules = [rule for rule in options.rules.split(",") if rule]
    (run_load if options.kind == "load" else run_rigid)(options, rules, () if options.no_peer else PEERS, about)


if __name__ == "__main__":
    main()
