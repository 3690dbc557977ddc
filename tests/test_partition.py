"""Which cards to partition: by hand, and against all choices there are."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cli_cases import placement
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mig_brute import optimum

import placement as pl
from placement import units
from placement.decisions.modes import rounded_up, with_modes
from placement.snapshot import DomainLimit, Gpu, Job, Node, Running, RunningTask, Snapshot, Task, TaskGroup

H100 = "H100-80GB"


def job(name: str, task: Task, count: int = 1, tasks: int = 1, **more: object) -> Job:
    return Job(name=name, count=count, groups=(TaskGroup(name="g", count=tasks, task=task),), **more)  # type: ignore[arg-type]


def two_nodes(*jobs: Job, cards: int = 4, **more: object) -> Snapshot:
    gpus = (Gpu(model=H100, count=cards, mig_switchable=True, **more),)  # type: ignore[arg-type]
    return Snapshot(nodes=(Node(name="n", count=2, gpus=gpus),), jobs=jobs)


SMALL = Task(gpus=1, mig_profile="1g.10gb")


def test_as_many_as_are_left_over() -> None:
    """Eight cards: 4 and 2 go to whole-card jobs, 6,000. Twelve sevenths fit on the other two: 12 / 7 * 1000."""
    snapshot = two_nodes(job("big", Task(gpus=4)), job("two", Task(gpus=2)), job("s", SMALL, count=12))
    found = pl.partition(snapshot)
    assert found.value == pytest.approx(6000 + 12000 / 7, rel=1e-12)
    assert found.bound == pytest.approx(found.value, rel=1e-9)
    # both cards on one node, or the gang of four would not fit on the other
    assert len(found.on) == 2
    assert len({node for node, _ in found.on}) == 1
    assert pl.check(found.after, found.plan) == []


def test_none_where_nobody_wants_instances_and_all_where_nobody_wants_cards() -> None:
    assert pl.partition(two_nodes(job("a", Task(gpus=1), count=5), cards=2)).on == ()
    # 22 sevenths on 4 cards, which hold 28: three hold 21
    assert len(pl.partition(two_nodes(job("s", SMALL, count=22), cards=2)).on) == 4


def test_switched_off_where_whole_cards_are_worth_more() -> None:
    snapshot = two_nodes(job("a", Task(gpus=2), count=2), job("s", SMALL), cards=2, mig_enabled=True)
    found = pl.partition(snapshot)
    assert (found.value, len(found.off), found.on) == (4000.0, 4, ())


def test_cards_with_work_stay_as_they_are() -> None:
    place = RunningTask(group="g", index=0, node="n-0", gpus=(1,))
    snapshot = two_nodes(job("r", Task(gpus=1), running=Running(tasks=(place,))), job("s", SMALL, count=25), cards=2)
    found = pl.partition(snapshot)
    assert len(found.on) == 3
    assert ("n-0", 1) not in found.on


SEVENTH = 1000 / 7


@pytest.mark.parametrize(
    ("caps", "value"),
    [
        # half a card: three sevenths, or no whole card
        ({"gpus": "500m"}, 3 * SEVENTH),
        ({"gpus": "0.3", "cpu": 9}, 2 * SEVENTH),
        # two cores, one for each task: both cards
        ({"cpu": 2}, 2000),
        ({"memory": "3Gi", "gpus": 1.5}, 1000 + 3 * SEVENTH),
        ({"gpus": "1n"}, 0),
        ({"extended": {"licences": 1}}, 2000),
    ],
)
def test_caps_on_the_cluster(caps: dict[str, Any], value: float) -> None:
    snapshot = msgspec.structs.replace(
        two_nodes(job("big", Task(gpus=1, cpu=1), count=2), job("s", msgspec.structs.replace(SMALL, cpu=1), count=9)),
        nodes=(Node(name="n", count=2, gpus=(Gpu(model=H100, mig_switchable=True),)),),
        limits=(DomainLimit(level="cluster", **caps),),
    )
    found = pl.partition(snapshot, tries=3)
    assert found.value == pytest.approx(value)
    assert found.bound is not None
    assert found.bound >= value - 1e-6
    assert found.after.limits == snapshot.limits


def test_running_parts_of_cards() -> None:
    """Two sevenths and a half run on two cards that stay. Seven sevenths fit on the third, and five beside the two."""
    nodes = (
        Node(name="m", gpus=(Gpu(model=H100, mig_enabled=True),)),
        Node(name="h", gpus=(Gpu(model=H100),)),
        Node(name="s", gpus=(Gpu(model=H100, mig_switchable=True),)),
    )
    seven = RunningTask(group="g", index=0, node="m", gpus=(0,), mig_starts=(0,))
    also = RunningTask(group="g", index=0, node="m", gpus=(0,), mig_starts=(1,))
    half = RunningTask(group="g", index=0, node="h", gpus=(0,))
    running = (
        job("a", SMALL, running=Running(tasks=(seven,))),
        job("b", SMALL, running=Running(tasks=(also,))),
        job("c", Task(gpus=1, gpu_share=0.5), running=Running(tasks=(half,))),
    )
    found = pl.partition(Snapshot(nodes=nodes, jobs=(*running, job("s", SMALL, count=12))))
    assert found.on == (("s", 0),)
    assert found.value == pytest.approx(12 * SEVENTH)
    assert found.bound == pytest.approx(12 * SEVENTH)


SHARED: tuple[dict[str, Any], ...] = (
    {"sharing": "mps"},
    {"sharing": "time_slicing", "replicas": 3},
    {"sharing": "vgpu", "vgpu_policy": "equal_share"},
    {"sharing": "exclusive"},
    {"replicas": 2},
)


@pytest.mark.parametrize("more", SHARED)
def test_shared_cards_are_not_shared_with_mig_on_and_are_with_it_off(more: dict[str, Any]) -> None:
    """One card has a seventh, the other a whole card."""
    found = pl.partition(
        Snapshot(
            nodes=(Node(name="n", gpus=(Gpu(model=H100, count=2, mig_switchable=True, **more),)),),
            jobs=(job("s", SMALL), job("big", Task(gpus=1))),
        )
    )
    assert found.value == pytest.approx(1000 + SEVENTH)
    assert found.after.nodes[0].gpus == (
        Gpu(model=H100, mig_enabled=True, mig_switchable=True),
        Gpu(model=H100, mig_switchable=True, **more),
    )
    assert pl.check(found.after, found.plan) == []


def test_a_card_with_mig_on_keeps_what_its_entry_says() -> None:
    gpu = Gpu(model=H100, mig_switchable=True, mig_enabled=True, sharing="exclusive")
    snapshot = Snapshot(nodes=(Node(name="n", gpus=(gpu,)),))
    assert with_modes(snapshot, {("n", 0): True}) == snapshot
    off = with_modes(snapshot, {("n", 0): False}).nodes[0].gpus[0]
    assert (off.mig_enabled, off.sharing) == (False, "exclusive")


@given(st.fractions(0, 10**6))
def test_rounded_up(amount: Fraction) -> None:
    decimal = units.exact(rounded_up(amount))
    assert amount <= decimal < amount + Fraction(1, 10**6)


def test_the_cards_that_instances_fit_on() -> None:
    """Two 7g need the A100s, and the whole card the A30, though the node of the A30 has fewest cards."""
    nodes = (
        Node(name="x", gpus=(Gpu(model="A30", mig_switchable=True),)),
        Node(name="n", gpus=(Gpu(model="A100-40GB", count=2, mig_switchable=True),)),
    )
    jobs = (job("s", Task(gpus=1, mig_profile="7g.40gb"), count=2), job("w", Task(gpus=1)))
    found = pl.partition(Snapshot(nodes=nodes, jobs=jobs))
    assert (found.value, found.bound, found.on) == (3000.0, 3000.0, (("n", 0), ("n", 1)))


def test_jobs_that_name_jobs_of_the_other_sort() -> None:
    """Bounds are on one sort of jobs alone, in which the other is not there to be named."""
    snapshot = two_nodes(job("w", Task(gpus=1)), job("s", SMALL, after=("w",)))
    found = pl.partition(snapshot, without=("jobs.after",))
    assert found.value == found.bound == pytest.approx(1000 + 1000 / 7)


@pytest.mark.parametrize(
    ("snapshot", "arguments", "words"),
    [
        (two_nodes(job("s", SMALL)), {"tries": 1}, "at least 2"),
        (Snapshot(nodes=(Node(name="n", gpus=(Gpu(model=H100),)),), jobs=(job("s", SMALL),)), {}, "mig_switchable"),
        (
            Snapshot(nodes=(Node(name="n", gpus=(Gpu(model="T4", mig_switchable=True),)),)),
            {},
            "no card may be switched",
        ),
        (two_nodes(job("s", SMALL)), {"gap": 2.0}, "gap"),
        (two_nodes(job("s", SMALL)), {"time_limit": float("nan")}, "time_limit"),
        (two_nodes(job("s", SMALL)), {"time_limit": -1.0}, "time_limit"),
    ],
)
def test_bad_input(snapshot: Snapshot, arguments: dict[str, object], words: str) -> None:
    with pytest.raises(pl.PlacementError, match=words):
        pl.partition(snapshot, **arguments)  # type: ignore[arg-type]


@st.composite
def tiny(draw: st.DrawFn) -> Snapshot:
    nodes = tuple(
        Node(
            name=f"n{i}",
            cpu=draw(st.sampled_from([2, 8])),
            gpus=(Gpu(model="A30", count=draw(st.integers(1, 2)), mig_switchable=True),),
        )
        for i in range(draw(st.integers(1, 2)))
    )
    profiles = st.sampled_from(["1g.6gb", "2g.12gb", "4g.24gb"])
    tasks = st.one_of(
        st.builds(lambda profile, cpu: Task(gpus=1, mig_profile=profile, cpu=cpu), profiles, st.integers(0, 2)),
        st.builds(lambda gpus, cpu: Task(gpus=gpus, cpu=cpu), st.integers(1, 2), st.integers(0, 2)),
    )
    jobs = draw(st.lists(st.tuples(tasks, st.integers(1, 2), st.integers(1, 3)), min_size=1, max_size=3))
    return Snapshot(
        nodes=nodes, jobs=tuple(job(f"j{i}", task, count=n, weight=w) for i, (task, n, w) in enumerate(jobs))
    )


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(tiny())
def test_against_all_choices(snapshot: Snapshot) -> None:
    """The best of all choices by brute force; cards of a node are alike, so how many of each node says it all."""
    found = pl.partition(snapshot)
    assert pl.check(found.after, found.plan) == []
    best = 0.0
    for numbers in itertools.product(*(range(node.gpus[0].count + 1) for node in snapshot.nodes)):
        modes = {
            (node.name, card): card < number
            for node, number in zip(snapshot.nodes, numbers, strict=True)
            for card in range(node.gpus[0].count)
        }
        best = max(best, float(optimum(with_modes(snapshot, modes), ("value",))[0].value))
    assert found.value <= best * (1 + 1e-12)
    assert found.bound is not None
    assert found.bound >= best * (1 - 1e-12)


def test_command(in_tmp: Path) -> None:
    source, plan, after = (in_tmp / name for name in ("s.json", "p.json", "a.json"))
    source.write_bytes(pl.dumps(two_nodes(job("two", Task(gpus=2)), job("s", SMALL, count=7))))
    done = placement("partition", source, "-o", plan, "--after", after, "--format", "json")
    answer = json.loads(done.stdout)
    assert (len(answer["on"]), answer["value"]) == (1, 3000.0)
    assert pl.check(pl.load(after), pl.load_plan(str(plan))) == []


def test_counted_nodes_stay_counted() -> None:
    """Ten sevenths want two cards of twelve nodes of four, and the others 44: the last node alone is another."""
    gpus = (Gpu(model=H100, count=4, mig_switchable=True),)
    nodes = (Node(name="n", count=12, cpu=8, gpus=gpus),)
    snapshot = Snapshot(nodes=nodes, jobs=(job("w", Task(gpus=1), count=44), job("s", SMALL, count=10)))
    found = pl.partition(snapshot)
    assert found.value == pytest.approx(44_000 + 10 * SEVENTH)
    assert found.bound == pytest.approx(found.value)
    assert {node for node, _ in found.on} == {"n-11"}
    assert [(node.name, node.count, node.cpu) for node in found.after.nodes] == [("n", 11, 8), ("n-11", 1, 8)]
    # and where most are switched on, those at the front are
    most = Snapshot(nodes=nodes, jobs=(job("w", Task(gpus=4)), job("s", SMALL, count=7 * 40)))
    found = pl.partition(most)
    assert found.value == pytest.approx(44_000)
    assert found.after.nodes[0].count == len(found.on) // 4
    assert found.after.nodes[0].gpus[0].mig_enabled


def test_many_counted_nodes() -> None:
    """What both sorts ask for says how many cards, so the first number that is tried gives all they are worth.

    20 nodes of 8: whole nodes 4 times, 2 cards 20 times, 560 sevenths on 80 cards: 152 of 160 cards.
    """
    gpus = (Gpu(model=H100, count=8, mig_switchable=True),)
    jobs = (
        job("big", Task(gpus=8, cpu=64), count=4),
        job("two", Task(gpus=2, cpu=8), count=20),
        job("s", msgspec.structs.replace(SMALL, cpu=1), count=560),
    )
    found = pl.partition(Snapshot(nodes=(Node(name="n", count=20, cpu=128, gpus=gpus),), jobs=jobs))
    assert found.value == pytest.approx(32_000 + 40_000 + 80_000)
    assert found.bound == pytest.approx(found.value)
    assert len(found.tried) == 1
    assert len(found.on) == 80


def test_the_best_of_a_contested_number() -> None:
    """Four cards, and more of both sorts than there is room for. A 7g weighs 3, a pair of cards 2 and one card 1.

    A card for the 7g, 3,000, a pair, 4,000, and a card: 8,000, with one or two cards; with others no more than 6,000.
    """
    jobs = (
        job("seven", Task(gpus=1, mig_profile="7g.80gb"), count=1, weight=3),
        job("pair", Task(gpus=2), count=1, weight=2),
        job("card", Task(gpus=1), count=8),
        job("small", SMALL, count=30, weight=1),
    )
    found = pl.partition(two_nodes(*jobs, cards=2))
    assert found.value == pytest.approx(8_000)
    assert found.bound == pytest.approx(8_000)
    assert len(found.on) in (1, 2)


def test_a_second_choice_of_cards() -> None:
    """The nodes with fewest cards are those with the cores that the whole cards need: instances go to the other."""
    nodes = (
        Node(name="few", cpu=8, gpus=(Gpu(model=H100, count=1, mig_switchable=True),)),
        Node(name="more", cpu=1, gpus=(Gpu(model=H100, count=2, mig_switchable=True),)),
    )
    jobs = (job("w", Task(gpus=1, cpu=8)), job("s", SMALL, count=14))
    found = pl.partition(Snapshot(nodes=nodes, jobs=jobs))
    assert found.value == pytest.approx(3000)
    assert found.bound == pytest.approx(3000)
    assert found.on == (("more", 0), ("more", 1))
