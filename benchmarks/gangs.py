"""Gangs that all have to be run at some time: drawn loads, small rigid ones, and those of known optima.

A gang of g cards is tasks of min(g, 8) cards each on nodes of 8. It is never stopped, and a gang whose cards are of
several models runs as on the slowest of them.

The loads have sizes as traces have them, powers of two of which small ones are the most; but in the Philly trace (Jeon
et al., ATC'19), as Chronus (SoCC'21) mixed it, 92.2 % of the jobs with cards ask for one, 0.7 % for two, 3.8 % for
four, 2.9 % for eight and 0.5 % for more, and of such jobs few ever stand in each other's way. So the large ones are
drawn more often here (`SIZES`). Run times are lognormal. Gangs come evenly over as long as the cluster would need for
all of them at 1 / 1.3 of its speed. All of it follows from the seed.
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import NormalDist

import placement as pl
from placement.snapshot.workload import Duration

CARDS = 8
"""Of a node."""
SIZES = {1: 0.25, 2: 0.15, 4: 0.15, 8: 0.2, 16: 0.12, 32: 0.08, 64: 0.05}
"""Cards of a gang, and how often it is drawn; sizes that the cluster has not are left out."""
MEDIAN, SIGMA, LONGEST = 1800.0, 1.0, 8 * 3600.0
"""Seconds of run time, lognormal, and the most there are."""
LOAD = 1.3
"""Card seconds asked for, over those there are until the last gang comes."""
WEIGHTS = (1, 2, 4)
"""By priority, which are equally frequent."""
ONE_MODEL: Mapping[str, float] = {"A100": 1.0}
MODELS: Mapping[str, float] = {"H100": 0.5, "A100": 1.0, "V100": 2.0}
"""Factor of the run time."""


@dataclass(frozen=True, slots=True)
class Gang:
    """A gang: cards, seconds of run time on a model of factor 1, weight, priority, and when it comes."""

    cards: int
    seconds: float
    weight: int
    release: float = 0.0
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Rigid:
    """A small instance; the optimum is None where nobody knows it, else a sum of weight times (end - release)."""

    name: str
    snapshot: pl.Snapshot
    optimum: float | None = None


def snapshot(
    gangs: Sequence[Gang], nodes: Mapping[str, int], factors: Mapping[str, float], each: int = CARDS
) -> pl.Snapshot:
    """Return the gangs on an empty cluster.

    Parameters
    ----------
    gangs : sequence of Gang
    nodes : dict of str to int
        Number by card model.
    factors : dict of str to float
        Of the run time, by card model.
    each : int
        Cards of a node.

    Raises
    ------
    ValueError
        If a gang asks for more cards than a node has, and not for whole nodes.
    """
    odd = [gang.cards for gang in gangs if gang.cards > each and gang.cards % each]
    if odd:
        raise ValueError(f"a gang of {odd[0]} cards is not of whole nodes of {each}")
    return pl.Snapshot(
        description=f"{len(gangs)} gangs on {sum(nodes.values())} nodes of {each} cards",
        nodes=tuple(
            pl.Node(name=model.lower(), count=number, gpus=(pl.Gpu(model=model, count=each),))
            for model, number in nodes.items()
        ),
        jobs=tuple(
            pl.Job(
                name=f"gang-{number}",
                weight=gang.weight,
                priority=gang.priority,
                submit_time=gang.release,
                duration=Duration(
                    seconds=gang.seconds,
                    levels={"cluster": 1.0},
                    gpu_models={model: factor for model, factor in factors.items() if factor != 1},
                ),
                groups=(
                    pl.TaskGroup(
                        name="workers",
                        count=max(1, gang.cards // each),
                        task=pl.Task(gpus=min(gang.cards, each)),
                    ),
                ),
            )
            for number, gang in enumerate(gangs)
        ),
    )


def load(gangs: int, nodes: int, factors: Mapping[str, float], seed: int) -> pl.Snapshot:
    """Return a drawn load on nodes of some models in equal parts."""
    rng = Random(seed)
    models = list(factors)
    parts = {model: len(range(at, nodes, len(models))) for at, model in enumerate(models)}
    # in whole even seconds, so that half of them are whole ones too
    drawn = [
        (size(rng, CARDS * nodes), 2.0 * math.ceil(run_time(rng) / 2), int(rng.random() * len(WEIGHTS)))
        for _ in range(gangs)
    ]
    speed = CARDS * sum(number / factors[model] for model, number in parts.items())
    horizon = sum(cards * seconds for cards, seconds, _ in drawn) / (LOAD * speed)
    found = [
        Gang(cards, seconds, WEIGHTS[priority], float(math.floor(rng.random() * horizon)), priority)
        for cards, seconds, priority in drawn
    ]
    return snapshot(found, parts, factors)


def size(rng: Random, most: int) -> int:
    """Draw the cards of a gang."""
    there = {cards: often for cards, often in SIZES.items() if cards <= most}
    at = rng.random() * sum(there.values())
    for cards, often in there.items():
        at -= often
        if at < 0:
            return cards
    return max(there)


def run_time(rng: Random) -> float:
    """Draw seconds of run time; `Random.random` alone is the same in every version of Python."""
    at = min(max(rng.random(), 1e-12), 1 - 1e-12)
    return min(LONGEST, MEDIAN * math.exp(SIGMA * NormalDist().inv_cdf(at)))


def small(seed: int) -> Rigid:
    """Return 30 to 60 gangs of up to 1,000 seconds on 2 to 8 nodes; those of odd seeds come one after the other."""
    rng = Random(seed)
    number, nodes = 30 + int(rng.random() * 31), 2 + int(rng.random() * 7)
    drawn = [
        (size(rng, CARDS * nodes), 1.0 + int(rng.random() * 1000), 1 + int(rng.random() * 10)) for _ in range(number)
    ]
    horizon = seed % 2 * sum(cards * seconds for cards, seconds, _ in drawn) / (LOAD * CARDS * nodes)
    gangs = [
        Gang(cards, seconds, weight, float(math.floor(rng.random() * horizon))) for cards, seconds, weight in drawn
    ]
    return Rigid(f"drawn-{seed}", snapshot(gangs, {"A100": nodes}, ONE_MODEL))


def known(path: Path) -> Iterator[Rigid]:
    """Read instances of known optima, one JSON object a line.

    Fields are ``name``, ``gpus`` (one pool) or ``nodes`` and ``gpus_per_node``, ``optimum`` (the least sum of w times
    the end) and ``jobs``, with cards ``q``, run time ``p``, weight ``w`` and release ``r`` of each.
    """
    with gzip.open(path, "rt") as file:
        for text in file:
            row = json.loads(text)
            nodes, each = (row["nodes"], row["gpus_per_node"]) if "nodes" in row else (1, row["gpus"])
            gangs = [Gang(job["q"], float(job["p"]), job["w"], float(job["r"])) for job in row["jobs"]]
            # time counts from when a gang comes here, and from 0 there
            optimum = row["optimum"] - sum(gang.weight * gang.release for gang in gangs)
            yield Rigid(row["name"], snapshot(gangs, {"A100": nodes}, ONE_MODEL, each), optimum)
