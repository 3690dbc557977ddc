"""MIG cards after use: instances asked for, 1.3 times the memory slots that are free, on cards listed node by node.

Five models in equal parts, eight cards a node. Cards are filled with random instances at random legal slots until 60 %
of all slots are taken, then random ones leave until 30 % are: what stays may not move, and leaves holes as they are
after a year of use. Requests are drawn over the profiles without media extensions of all models, five for each card of
the cluster, the less often the larger they are. Models with the same profiles are a family (A100 and H100 with 80 GB;
each other model by itself), and each family is asked for 1.3 times its free slots: the sizes of its requests in slots,
added up, over the free slots of its cards, whether or not anything fits into them. How fast larger requests become rare
is worked out from these two, one exponent for all families. A quarter of the requests name one model of their family.
With `--gangs` one job in ten is a gang of two to eight instances that start together or not at all. Hosts have more
cores and memory than all instances of their cards could ask for.

Each load is solved by the real command in a fresh process, whose seconds are from its start to its end; the call of
`placement.solve` follows in another, first with no solver process ready and then once more; and then every greedy rule.

    python benchmarks/mig.py --seeds 5 --cards 1000,20000 --output mig.json
    python benchmarks/mig.py --gangs --cards 1000
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from load import shuffled
from scale import Goal, command
from table import Column, Row, heading, line, machine, number, write

import placement as pl
from placement.compile import compile as compile_snapshot
from placement.hardware.mig import Geometry, Profile, geometry
from placement.heuristics import HEURISTICS
from placement.plan import Plan
from placement.snapshot import Gpu, Job, Node, Running, RunningTask, Snapshot, Task, TaskGroup
from placement.snapshot.read import dumps

MODELS = ("A100-80GB", "H100-SXM5-80GB", "H200-141GB", "B200-180GB", "RTX-PRO-6000-BLACKWELL-96GB")
CARDS_OF_NODE, CORES, GIB = 8, 256, 2048
"""Of a node: 56 instances of at most 4 cores and 24 GiB, which is what seven small ones on each card take, fit."""
FILLED, TAKEN = 0.6, 0.3
"""Share of the memory slots that are taken at first, and by what stays."""
PER_CARD, ASKED = 5, 1.3
"""Requests for each card, and slots they ask for relative to those that are free."""
NAMED, TOGETHER = 0.25, 0.1
"""Share of the requests that name a model, and of the jobs that are gangs where there are any."""
GANGS = (2, 3, 4, 5, 6, 7, 8)
GAP = 0.0005
"""The proven gap asked for."""
RULE_SECONDS = 60.0
"""What a greedy rule may take; what it has placed by then counts."""
GOALS = {1_000: Goal(1.0, GAP), 20_000: Goal(10.0, GAP)}
"""By cards; another number has the seconds of the next larger one, or of the largest."""
COLUMNS = (
    Column("cards", "cards", 6),
    Column("seed", "seed", 4),
    Column("states", "states", 6),
    Column("requests", "requests", 8),
    Column("file-plan", "seconds", 9, ".2f"),
    Column("solve", "solve_seconds", 6, ".2f"),
    Column("again", "again_seconds", 6, ".2f"),
    Column("target", "target", 6, ".0f"),
    Column("value", "value", 10, ".0f"),
    Column("bound", "bound", 10, ".0f"),
    Column("gap %", "gap_percent", 7, ".4f"),
    Column("stop", "stop", 8),
    Column("accepted", "accepted", 8),
    Column("used", "cards_used", 6),
    Column("best greedy", "best_greedy", 18),
    Column("behind %", "behind_percent", 8, ".3f"),
)


# --- the load --------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Card:
    """A card while it is being filled: its model, and the instances on it."""

    model: str
    geometry: Geometry
    instances: list[tuple[Profile, int]] = field(default_factory=list)

    @property
    def bits(self) -> int:
        """Taken slots."""
        return sum(profile.bits(start) for profile, start in self.instances)


def load(cards: int, seed: int, gangs: bool = False) -> tuple[Snapshot, int]:
    """Return a used cluster and what is asked of it, and how many states cards are in; both follow from the seed."""
    rng = Random(seed)
    there: list[Card] = []
    for number_of_card in range(cards):
        model = MODELS[number_of_card // CARDS_OF_NODE % len(MODELS)]
        there.append(Card(model, known(model)))
    use(rng, there)
    running = [
        Job(
            name=f"running-{n}",
            groups=(TaskGroup(name="main", task=task(rng, profile)),),
            running=Running(
                tasks=(
                    RunningTask(
                        group="main",
                        index=0,
                        node=f"node-{place // CARDS_OF_NODE}",
                        gpus=(place % CARDS_OF_NODE,),
                        mig_starts=(start,),
                    ),
                )
            ),
        )
        for n, (place, profile, start) in enumerate(
            (place, profile, start) for place, card in enumerate(there) for profile, start in sorted_by_slot(card)
        )
    ]
    pending = wanted(rng, there, gangs)
    nodes = tuple(
        Node(
            name=f"node-{first // CARDS_OF_NODE}",
            cpu=CORES,
            memory=f"{GIB}Gi",
            gpus=(Gpu(model=there[first].model, count=min(CARDS_OF_NODE, cards - first), mig_enabled=True),),
        )
        for first in range(0, cards, CARDS_OF_NODE)
    )
    snapshot = Snapshot(
        description=f"{cards} MIG cards after use, {len(pending)} jobs, seed {seed}",
        nodes=nodes,
        jobs=(*running, *(Job(name=f"job-{n}", groups=(group,)) for n, group in enumerate(pending))),
    )
    return snapshot, len({(card.model, card.bits) for card in there})


def known(model: str) -> Geometry:
    """Return the geometry of a model of the catalogue."""
    found = geometry(model)
    assert found is not None
    return found


def base(there: Geometry) -> tuple[Profile, ...]:
    """Return the profiles without media extensions."""
    return tuple(profile for profile in there.profiles if profile.name.endswith("gb"))


def sorted_by_slot(card: Card) -> list[tuple[Profile, int]]:
    """Return the instances of a card, first slots first."""
    return sorted(card.instances, key=lambda instance: instance[1])


def use(rng: Random, cards: Sequence[Card]) -> None:
    """Put random instances at random free slots of random cards, then let random ones leave."""
    slots = sum(card.geometry.slots for card in cards)
    taken = 0
    while taken < FILLED * slots:
        card = cards[int(rng.random() * len(cards))]
        profile = drawn(rng, base(card.geometry), 1.0)
        legal = [start for start in profile.starts if not card.bits & profile.bits(start)]
        if legal:
            card.instances.append((profile, legal[int(rng.random() * len(legal))]))
            taken += profile.size
    everything = [(card, instance) for card in cards for instance in card.instances]
    for at in shuffled(rng, range(len(everything))):
        if taken <= TAKEN * slots:
            break
        card, instance = everything[at]
        card.instances.remove(instance)
        taken -= instance[0].size


def drawn(rng: Random, profiles: Sequence[Profile], power: float) -> Profile:
    """Draw a profile; one of s slots is drawn s**power times less often than one of a single slot."""
    weights = [profile.size**-power for profile in profiles]
    at = rng.random() * sum(weights)
    for profile, weight in zip(profiles, weights, strict=True):
        at -= weight
        if at < 0:
            return profile
    return profiles[-1]


def wanted(rng: Random, cards: Sequence[Card], gangs: bool) -> list[TaskGroup]:
    """Draw requests of every family, until they ask for as many slots as they should, and mix them."""
    free: Counter[str] = Counter()
    for card in cards:
        free[card.model] += card.geometry.slots - card.bits.bit_count()
    families: dict[tuple[str, ...], list[str]] = {}
    for model in free:
        families.setdefault(tuple(profile.name for profile in base(known(model))), []).append(model)
    ask = {tuple(models): ASKED * sum(free[model] for model in models) for models in families.values()}
    power = steepness({base(known(models[0])): slots for models, slots in ask.items()}, PER_CARD * len(cards))
    groups: list[TaskGroup] = []
    for models, slots in ask.items():
        asked = 0
        while asked < slots:
            profile = drawn(rng, base(known(models[0])), power)
            only = (models[int(rng.random() * len(models))],) if rng.random() < NAMED else ()
            count = GANGS[int(rng.random() * len(GANGS))] if gangs and rng.random() < TOGETHER else 1
            groups.append(TaskGroup(name="main", count=count, task=task(rng, profile, only)))
            asked += count * profile.size
    return [groups[at] for at in shuffled(rng, range(len(groups)))]


def steepness(ask: Mapping[tuple[Profile, ...], float], requests: int) -> float:
    """Return the power of `drawn` by which so many slots of each family come to so many requests in all."""

    def expected(power: float) -> float:
        return sum(slots / mean_size(profiles, power) for profiles, slots in ask.items())

    low, high = 0.0, 16.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if expected(middle) < requests else (low, middle)
    return high


def mean_size(profiles: Sequence[Profile], power: float) -> float:
    """Return the mean number of slots of profiles as `drawn` draws them."""
    weights = [float(profile.size**-power) for profile in profiles]
    return sum(w * profile.size for w, profile in zip(weights, profiles, strict=True)) / sum(weights)


def task(rng: Random, profile: Profile, models: tuple[str, ...] = ()) -> Task:
    """Return a task with 2 to 8 cores and 8 to 24 GiB for each compute slice."""
    cpu = min(8, profile.compute + 1 + int(rng.random() * 3))
    memory = 8 * profile.compute * (1 + int(rng.random() * 3))
    return Task(gpus=1, mig_profile=profile.name, gpu_models=models, cpu=cpu, memory=f"{memory}Gi")


# --- one load, solved ------------------------------------------------------------------------------------------------


def goal_of(cards: int) -> Goal:
    """Return the target of a number of cards."""
    return GOALS[min((size for size in GOALS if size >= cards), default=max(GOALS))]


def measure(cards: int, seed: int, gangs: bool, limit: float, rules: bool) -> Row:
    """Return one row of the table."""
    goal = goal_of(cards)
    made, states = load(cards, seed, gangs)
    pending = [job for job in made.jobs if job.running is None]
    with tempfile.TemporaryDirectory() as scratch:
        path, plan = Path(scratch) / "load.json", Path(scratch) / "plan.json"
        path.write_bytes(dumps(made))
        row: Row = {
            "cards": cards,
            "seed": seed,
            "gangs": gangs,
            "states": states,
            "running": len(made.jobs) - len(pending),
            "jobs": len(pending),
            "requests": sum(group.count for job in pending for group in job.groups),
            "target": goal.seconds,
        }
        row |= command(path, plan, goal, limit)
        argv = [sys.executable, __file__, "--inside", str(path), str(plan), str(limit), str(int(rules))]
        row |= json.loads(subprocess.run(argv, stdout=subprocess.PIPE, check=True).stdout)
    if not row["valid"]:
        raise SystemExit(f"{cards} cards, seed {seed}: the check refused the plan")
    greedy = row["greedy"]
    assert isinstance(greedy, dict)
    if greedy:
        best = max(greedy, key=lambda rule: greedy[rule])
        value = number(row, "value")
        # in no time at all there is nothing to compare
        row |= {"best_greedy": best, "behind_percent": 100 * (1 - greedy[best] / value) if value else None}
    gap = row["solve_gap_percent"]
    row["met"] = number(row, "solve_seconds") <= goal.seconds and isinstance(gap, float) and gap <= 100 * GAP
    return row


def inside(path: Path, plan_file: Path, limit: float, rules: bool) -> Row:
    """Check the command's plan, time the call of `placement.solve` twice, and try greedy rules; in its own process."""
    began = time.perf_counter()
    snapshot = pl.load(path)
    reading = time.perf_counter() - began
    calls: list[tuple[float, Plan]] = []
    for _ in range(2):
        began = time.perf_counter()
        plan = pl.solve(snapshot, objectives=("value",), gap=GAP, time_limit=limit)
        calls.append((time.perf_counter() - began, plan))
    given = pl.load_plan(plan_file)
    greedy, seconds, cut = {}, {}, []
    instance = compile_snapshot(snapshot)
    for name in [name for name, rule in HEURISTICS.items() if rules and rule.supports(instance) is None]:
        began = time.perf_counter()
        other = pl.solve(snapshot, objectives=("value",), solver=name, time_limit=RULE_SECONDS)
        greedy[name], seconds[name] = other.value, round(time.perf_counter() - began, 2)
        if other.stop != "complete":
            cut.append(name)
    return {
        "valid": not pl.check(snapshot, given),
        "accepted": len(given.tasks.job),
        "cards_used": cards_used(snapshot, given),
        "read_seconds": round(reading, 3),
        "solve_seconds": round(calls[0][0], 3),
        "again_seconds": round(calls[1][0], 3),
        "solve_gap_percent": None if calls[0][1].gap is None else 100 * calls[0][1].gap,
        "activities": [{name: round(taken, 3) for name, taken in plan.seconds.items()} for _, plan in calls],
        "greedy": greedy,
        "greedy_seconds": seconds,
        "greedy_cut_short": cut,
    }


def cards_used(snapshot: Snapshot, plan: Plan) -> int:
    """Return the cards with at least one instance, running ones included."""
    used = {
        (place.node, card) for job in snapshot.jobs if job.running for place in job.running.tasks for card in place.gpus
    }
    used |= {(node, card) for node, cards in zip(plan.tasks.node, plan.tasks.gpus, strict=True) for card in cards}
    return len(used)


# --- the table -------------------------------------------------------------------------------------------------------


def report(rows: Sequence[Row], sizes: Sequence[int]) -> list[str]:
    """Return what is said below the rows: the worst of each size beside its target."""
    said = []
    for cards in sizes:
        mine, goal = [row for row in rows if row["cards"] == cards], goal_of(cards)
        gaps = [row["gap_percent"] for row in mine]
        gap = "none" if None in gaps else f"{max(number(row, 'gap_percent') for row in mine):.4f} %"
        solve, again, whole = (
            max(number(row, key) for row in mine) for key in ("solve_seconds", "again_seconds", "seconds")
        )
        met = sum(bool(row["met"]) for row in mine)
        said.append(
            f"{cards} cards, worst: solve {solve:.2f} s, once more {again:.2f} s (target {goal.seconds:g}), file to "
            f"plan {whole:.2f} s, gap {gap} (target {100 * GAP:g} %); both targets met by {met} of {len(mine)} calls"
        )
    return [*said, "other work on the machine lengthens the seconds"]


def main() -> None:
    """Run the benchmark, print a table and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cards", default=",".join(map(str, GOALS)), help="sizes, separated by commas")
    parser.add_argument("--seeds", type=int, default=5, help="how many, from 0 on")
    parser.add_argument("--gangs", action="store_true", help="one job in ten is a gang of 2 to 8 instances")
    parser.add_argument("--time-limit", type=float, help="seconds for solving, instead of the target of each size")
    parser.add_argument("--rules-up-to", type=int, default=20_000, help="cards up to which greedy rules are tried")
    parser.add_argument("--snapshot", type=Path, help="write the load of the first size and seed 0 there, and stop")
    parser.add_argument("--output", type=Path, help="file for the rows as JSON")
    options = parser.parse_args()
    sizes = [int(cards) for cards in options.cards.split(",")]
    if options.snapshot is not None:
        options.snapshot.write_bytes(dumps(load(sizes[0], 0, options.gangs)[0]))
        return
    about = machine()
    print(about)
    print(heading(COLUMNS))
    rows: list[Row] = []
    for cards in sizes:
        limit = options.time_limit or goal_of(cards).seconds
        for seed in range(options.seeds):
            rows.append(measure(cards, seed, options.gangs, limit, cards <= options.rules_up_to))
            print(line(COLUMNS, rows[-1]), flush=True)
    print("\n".join(report(rows, sizes)))
    limits = {cards: {"seconds": goal_of(cards).seconds, "gap": GAP} for cards in sizes}
    write(options.output, machine=about, limits=limits, gangs=options.gangs, rows=rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        load_file, plan_file, seconds_left, with_rules = sys.argv[2:]
        print(json.dumps(inside(Path(load_file), Path(plan_file), float(seconds_left), with_rules == "1")))
    else:
        main()
