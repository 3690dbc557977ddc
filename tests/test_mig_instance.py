"""Shared MIG instances: who gets a share of one, how many, and that exact, brute force and the judge agree."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import placement as pl
from placement.check.loads.clients import most
from placement.hardware.sharing import most_clients, unlimited
from placement.snapshot import Gpu, Job, Node, Snapshot, Task, TaskGroup
from placement.snapshot.read import verified

MODEL = "A100-40"


def instance(profile: str, **fields: object) -> Gpu:
    return Gpu(model=MODEL, mig_instance=profile, sharing="mps", **fields)  # type: ignore[arg-type]


def job(name: str, share: str | None, profile: str = "", gpus: int = 1, **fields: object) -> Job:
    task = Task(gpus=gpus, gpu_share=share, mig_instance=profile, **fields)  # type: ignore[arg-type]
    return Job(name=name, groups=(TaskGroup(name="g", task=task),))


def cluster(*gpus: Gpu, jobs: tuple[Job, ...] = ()) -> Snapshot:
    return verified(Snapshot(nodes=(Node(name="n", gpus=gpus),), jobs=jobs))


def placed(snapshot: Snapshot, solver: str = "exact") -> dict[str, list[int]]:
    plan = pl.solve(snapshot, solver=solver)
    assert pl.check(snapshot, plan) == []
    return {name: gpus for name, _, _, _, gpus in plan.tasks}


def test_shares_go_to_instances_of_their_profile_and_cards_to_who_asks_for_cards() -> None:
    # cards: 0 is a 3g.20gb, 1 a 1g.5gb, 2 a whole card
    jobs = (
        job("a", "0.5", "3g.20gb"),
        job("b", "0.5", "3g.20gb"),
        job("c", "0.5", "3g.20gb"),  # the only 3g.20gb is full
        job("d", "1", "1g.5gb"),
        job("e", None),
        job("f", "0.5", "2g.10gb"),  # there is none
    )
    snapshot = cluster(instance("3g.20gb"), instance("1g.5gb"), Gpu(model=MODEL), jobs=jobs)
    found = placed(snapshot)
    assert {name: gpus for name, gpus in found.items() if name in "de"} == {"d": [1], "e": [2]}
    assert len(found.keys() & {"a", "b", "c"}) == 2
    assert all(found[name] == [0] for name in found.keys() & {"a", "b", "c"})
    assert "f" not in found


def test_a_share_of_a_card_is_none_of_an_instance() -> None:
    assert placed(cluster(instance("7g.40gb"), jobs=(job("whole", None), job("half", "0.5")))) == {}
    assert placed(cluster(Gpu(model=MODEL, sharing="mps"), jobs=(job("half", "0.5", "7g.40gb"),))) == {}
    enabled = Gpu(model=MODEL, mig_enabled=True)
    assert placed(cluster(enabled, jobs=(job("half", "0.5", "3g.20gb"),))) == {}


@pytest.mark.parametrize(
    ("profile", "cuda", "capability", "clients"),
    [
        ("1g.5gb", "12.4", "", 6),  # 48 * 1/7 = 6.86
        ("2g.10gb", "12.4", "", 13),  # 48 * 2/7 = 13.7
        ("3g.20gb", "", "", 20),  # 48 * 3/7 = 20.6
        ("7g.40gb", "12.4", "8.0", 48),
        ("3g.20gb", "13.1", "8.0", 25),  # 60 * 3/7 = 25.7
        ("1g.5gb", "", "6.0", 2),  # 16 * 1/7 = 2.3
        ("", "12.4", "", 48),
    ],
)
def test_mps_takes_fewer_clients_on_an_instance(profile: str, cuda: str, capability: str, clients: int) -> None:
    gpu = instance(profile, compute_capability=capability)
    assert most_clients(gpu, cuda) == clients
    assert most(Node(name="n", cuda=cuda), gpu) == clients


def test_replicas_limit_it_further() -> None:
    assert most_clients(instance("3g.20gb", replicas=4), "") == 4
    assert most(Node(name="n"), instance("3g.20gb", replicas=40)) == 20


def test_no_more_clients_than_that() -> None:
    # 6 clients on a 1g.5gb, however little each takes: 0.1 x 8 = 0.8 of it would fit
    jobs = tuple(job(f"j{i}", "0.1", "1g.5gb") for i in range(8))
    assert len(placed(cluster(instance("1g.5gb"), jobs=jobs))) == 6


def test_memory_is_the_instances() -> None:
    # 4864 MiB: two of 2 GiB fit, a third does not
    jobs = tuple(job(f"j{i}", "0.1", "1g.5gb", gpu_memory="2Gi") for i in range(3))
    assert len(placed(cluster(instance("1g.5gb", memory="4864Mi"), jobs=jobs))) == 2


def test_memory_of_an_instance_is_not_partitioned() -> None:
    assert unlimited(instance("3g.20gb"), "13.4", 2, "enforced") is None
    assert (
        unlimited(instance("3g.20gb"), "13.4", 2, "partitioned")
        == "MPS does not partition the memory of a MIG instance"
    )
    asks = job("j", "0.5", "3g.20gb", gpu_memory="1Gi", gpu_memory_limit="partitioned")
    node = Node(name="n", cuda="13.4", cgroup=2, gpus=(instance("3g.20gb", memory="19968Mi"),))
    assert placed(verified(Snapshot(nodes=(node,), jobs=(asks,)))) == {}


def test_names_of_profiles_drift_with_the_driver() -> None:
    gpu = Gpu(model="A100-SXM4-80GB", mig_instance="3g.40gb", sharing="time_slicing")
    assert placed(cluster(gpu, jobs=(job("j", "0.5", "mig-3g.40gb"),))) == {"j": [0]}


def test_work_does_not_span_instances() -> None:
    with pytest.raises(pl.SnapshotError, match="work does not span MIG instances"):
        cluster(instance("3g.20gb", count=2), jobs=(job("j", "0.5", "3g.20gb", gpus=2),))
    with pytest.raises(pl.SnapshotError, match="does not say which"):
        cluster(instance("3g.20gb"), jobs=(job("j", None, "3g.20gb"),))


def test_a_wrong_place_is_a_violation() -> None:
    snapshot = cluster(instance("3g.20gb"), instance("2g.10gb"), jobs=(job("j", "0.5", "3g.20gb"),))
    plan = pl.solve(snapshot, solver="exact")
    plan.tasks.gpus[0] = [1]
    assert "mig_instance" in {violation.rule for violation in pl.check(snapshot, plan)}


PROFILES = ["", "1g.5gb", "3g.20gb"]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from(PROFILES), min_size=1, max_size=3),
    st.lists(
        st.tuples(st.sampled_from(PROFILES), st.sampled_from(["0.25", "0.5", "0.75", "1"])), min_size=1, max_size=4
    ),
)
def test_exact_is_as_good_as_trying_everything(cards: list[str], asked: list[tuple[str, str]]) -> None:
    gpus = tuple(instance(one) if one else Gpu(model=MODEL, sharing="mps") for one in cards)
    jobs = tuple(job(f"j{i}", share, profile) for i, (profile, share) in enumerate(asked))
    snapshot = cluster(*gpus, jobs=jobs)
    best = 0.0
    for where in itertools.product(range(-1, len(cards)), repeat=len(jobs)):
        fits = all(card < 0 or cards[card] == profile for card, (profile, _) in zip(where, asked, strict=True))
        load = [
            sum(float(s) for card, (_, s) in zip(where, asked, strict=True) if card == c) for c in range(len(cards))
        ]
        if fits and max(load) <= 1:
            best = max(best, sum(load))
    plan = pl.solve(snapshot, solver="exact")
    assert pl.check(snapshot, plan) == []
    assert plan.value == 1000 * best
    assert plan.bound == plan.value
    for solver in ("best-fit", "first-fit", "fgd"):
        greedy = pl.solve(snapshot, solver=solver)
        assert pl.check(snapshot, greedy) == []
        assert greedy.phases[0].value <= plan.phases[0].value
