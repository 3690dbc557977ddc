"""Which cards running pods have."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pod_cases import GPU, H100, MIG, SLICE, SLICED, cards, cluster, held, job, node, pod, read, said, task, usable

from placement.formats.kubernetes.parts import Claim, Devices, Offer
from placement.snapshot import (
    Gpu,
    NumaZone,
    Topology,
)


def test_known_cards_come_first_and_others_get_the_lowest_that_are_free() -> None:
    found = read(
        cluster(node("n", 4)),
        [pod("a", "n", {GPU: 2}), pod("b", "n", {GPU: 2}, annotations={"gpu-placement.io/gpus": "0,3"})],
    )
    assert cards(found, "ns/b") == (0, 3)
    assert cards(found, "ns/a") == (1, 2)


@pytest.mark.parametrize("text", ["0,9", "1", "x", "1,1", "", "-1,0"])
def test_cards_that_cannot_be_are_not_believed(text: str) -> None:
    found = read(cluster(node("n", 4)), [pod("a", "n", {GPU: 2}, annotations={"gpu-placement.io/gpus": text})])
    assert cards(found, "ns/a") == (0, 1)
    assert sum(said(found, "contradiction").values()) == 1


def test_hami_says_cards_by_uuid() -> None:
    one = node("n", gpus=(Gpu(model="V100", count=2, memory="32Gi", replicas=10),), devices=("GPU-a", "GPU-b"))
    asked = {GPU: 1, "nvidia.com/gpumem": 3000, "nvidia.com/gpucores": 30}
    said_ = {"hami.io/vgpu-devices-allocated": "GPU-b,NVIDIA,3000,30:;"}
    found = read(
        cluster(one, offers={"n": {GPU: Offer((0, 1), 10)}}),
        [pod("a", "n", asked), pod("b", "n", asked, annotations=said_), pod("whole", "", {GPU: 1})],
    )
    assert (cards(found, "ns/a"), cards(found, "ns/b")) == ((0,), (1,))
    assert (task(found, "ns/b").gpu_share, task(found, "ns/b").gpu_memory) == ("300m", 3000 * 2**20)
    # who asks for no memory gets all of it
    assert task(found, "ns/whole").gpu_share is None


def test_shares_go_where_least_is_taken() -> None:
    shared = cluster(
        node("n", gpus=(Gpu(model="T4", count=2, sharing="time_slicing", replicas=3),)),
        offers={"n": {GPU: Offer((0, 1), 3)}},
    )
    found = read(shared, [pod(name, "n") for name in "abcdef"])
    assert [cards(found, f"ns/{name}")[0] for name in "abcdef"] == [0, 1, 0, 1, 0, 1]
    assert task(found, "ns/a").gpu_share == "333m"
    assert said(found, "contradiction") == {}


def test_pods_of_one_shared_card_of_kai_are_on_it_and_the_reserving_pod_holds_nothing() -> None:
    half = {"annotations": {"gpu-fraction": "0.5"}, "labels": {"runai-gpu-group": "g"}}
    reserving = pod("r", "n", labels={"runai-gpu-group": "g"}, annotations={"run.ai/reserve_for_gpu_index": "GPU-c"})
    reserving["metadata"]["namespace"] = "kai-resource-reservation"
    found = read(
        cluster(node("n", 3, devices=("GPU-a", "GPU-b", "GPU-c"))),
        [pod("a", "n", {"cpu": 1}, **half), pod("b", "n", {"cpu": 1}, **half), reserving],
    )
    assert (cards(found, "ns/a"), cards(found, "ns/b")) == ((2,), (2,))
    assert cards(found, "kai-resource-reservation/r") == ()


def test_more_than_there_is_runs_on_the_lowest_cards_and_is_named() -> None:
    found = read(cluster(node("n", 2)), [pod("a", "n", {GPU: 2}), pod("b", "n"), pod("c", "n", {GPU: 3})])
    assert (cards(found, "ns/a"), cards(found, "ns/b"), cards(found, "ns/c")) == ((0, 1), (0,), (0, 1))
    assert said(found, "contradiction") == {
        "a pod runs with more cards than its node has": 1,
        "running pods have more cards than are left on their node": 2,
    }


def test_cards_that_a_node_no_longer_offers_are_still_held() -> None:
    """A device plugin that is gone lists nothing; what runs has its cards nevertheless."""
    found = read(cluster(node("n", 2), offers={"n": {}}), [pod("a", "n")])
    assert cards(found, "ns/a") == (0,)
    nothing = read(cluster(node("n", 0)), [pod("a", "n")])
    assert task(nothing, "ns/a").extended == {GPU: 1}


def test_instances_are_given_out_in_order_and_one_too_many_closes_the_node() -> None:
    stated = {"gpu-placement.io/gpus": "0", "gpu-placement.io/mig-starts": "0"}
    found = read(
        cluster(node("n", gpus=(MIG,)), offers=SLICED),
        [pod("a", "n", SLICE), pod("b", "n", SLICE, annotations=stated), pod("c", "n", SLICE)],
    )
    assert [held(found, f"ns/{name}")[0].mig_starts for name in "abc"] == [(4,), (0,), ()]
    assert found.nodes[0].cordoned
    assert len(said(found, "contradiction")) == 1


def test_a_pod_of_two_instances_is_two_tasks_on_one_node() -> None:
    found = read(
        cluster(node("n", gpus=(MIG,)), offers=SLICED),
        [pod("a", "n", {"cpu": 2, "nvidia.com/mig-3g.20gb": 2}), pod("b", "", {"cpu": 2, "nvidia.com/mig-3g.20gb": 2})],
    )
    assert [(one.group, one.gpus, one.mig_starts) for one in held(found, "ns/a")] == [
        ("pod/1", (0,), (0,)),
        ("pod/2", (0,), (4,)),
    ]
    (group,) = job(found, "ns/b").groups
    assert group.topology == Topology(required="node")
    # CPU is asked for once
    assert [(one.task.mig_profile, one.task.cpu) for one in group.groups if one.task] == [
        ("3g.20gb", 2),
        ("3g.20gb", 0),
    ]
    assert job(found, "ns/b").task_names == {"pod/1": ("ns/b",), "pod/2": ("ns/b",)}


def test_claims_say_cards_and_what_they_may_be() -> None:
    claims = {
        "ns/c": Claim(2, (H100,), node="n", cards=(1, 3), reserved_for=("a",)),
        "ns/s": Claim(1, node="n", cards=(0,)),
    }
    devices = Devices({"n": ()}, claims, {"ns/t": Claim(1, (H100,))})
    one = {"cpu": 1}
    shared = {"resourceClaims": [{"name": "x", "resourceClaimName": "s"}]}
    found = read(
        cluster(node("n", 4), node("other", 4), offers={"n": {}, "other": {}}),
        [
            pod("a", "n", one, resourceClaims=[{"name": "x", "resourceClaimName": "c"}]),
            pod("b", "n", one, **shared),
            pod("d", "n", one, **shared),
            pod("e", "", one, resourceClaims=[{"name": "x", "resourceClaimTemplateName": "t"}]),
        ],
        devices,
    )
    assert cards(found, "ns/a") == (1, 3)
    # two pods share a card: a half for each
    assert (cards(found, "ns/b"), cards(found, "ns/d"), task(found, "ns/d").gpu_share) == ((0,), (0,), "500m")
    assert (task(found, "ns/e").gpus, task(found, "ns/e").gpu_models) == (1, (H100,))
    assert usable(found, "ns/e") == {"n"}


def test_kubelets_that_align_give_cards_of_one_zone() -> None:
    zones = (NumaZone(id=0, gpus=(0, 1)), NumaZone(id=1, gpus=(2, 3)))
    asked = {"cpu": 1, "memory": "1Gi", GPU: 2}
    one = pod("b", "n", asked)
    waits = pod("c", "", asked)
    for each in (one, waits):
        each["spec"]["containers"][0]["resources"]["limits"] = asked
    found = read(cluster(node("n", 4, zones=zones), policies={"n": "single-numa-node"}), [pod("a", "n"), one, waits])
    assert (cards(found, "ns/a"), cards(found, "ns/b")) == ((0,), (2, 3))
    assert task(found, "ns/c").numa == "single-numa-node"
    mixed = cluster(node("n", 4, zones=zones), node("m", 4, zones=zones), policies={"n": "single-numa-node"})
    assert task(read(mixed, [waits]), "ns/c").numa == "none"


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 4), st.sampled_from(["a", "b"])), max_size=8))
def test_no_two_running_pods_share_a_whole_card_that_need_not(asked: list[tuple[int, str]]) -> None:
    found = read(cluster(node("a", 8), node("b", 8)), [pod(f"p{i}", n, {GPU: k}) for i, (k, n) in enumerate(asked)])
    for name in "ab":
        taken = [card for i, (_, n) in enumerate(asked) if n == name for card in cards(found, f"ns/p{i}")]
        total = sum(k for k, n in asked if n == name)
        assert len(taken) == total
        assert len(set(taken)) == min(total, 8)
    assert bool(said(found, "contradiction")) == any(sum(k for k, n in asked if n == name) > 8 for name in "ab")


def test_devices_of_a_claim_that_no_pod_uses_are_not_free() -> None:
    devices = Devices({"n": ()}, {"ns/c": Claim(1, node="n", cards=(0,)), "ns/d": Claim(1)})
    found = read(cluster(node("n", 2)), [pod("a", "n")], devices)
    assert {one.name for one in found.jobs} == {"ns/a", "ns/c#claim"}
    assert (cards(found, "ns/a"), cards(found, "ns/c#claim")) == ((1,), (0,))


def test_a_claim_of_several_kinds_is_several_tasks() -> None:
    claim = Claim(1, node="n", cards=(0,), more=(Claim(1, profile="3g.20gb", node="n", cards=(1,), starts=(4,)),))
    one = node("n", gpus=(Gpu(model="NVIDIA-A100-SXM4-40GB"), MIG))
    asked = pod("a", "n", {"cpu": 1}, resourceClaims=[{"name": "x", "resourceClaimName": "c"}])
    found = read(cluster(one, offers={"n": {}}), [asked], Devices({"n": ()}, {"ns/c": claim}))
    assert [(part.gpus, part.mig_starts) for part in held(found, "ns/a")] == [((0,), ()), ((1,), (4,))]


def test_devices_of_claims_that_waiting_pods_have_in_part_are_held_and_not_asked_for_again() -> None:
    devices = Devices({"n": ()}, {"ns/c": Claim(1, node="n", cards=(0,)), "ns/d": Claim(1), "ns/e": Claim(2)})
    waits = [{"name": "x", "resourceClaimName": "c"}, {"name": "y", "resourceClaimName": "e"}]
    found = read(
        cluster(node("n", 4), node("other", 4), offers={"n": {}, "other": {}}),
        [pod("a", "n"), pod("b", "", {"cpu": 1}, resourceClaims=waits)],
        devices,
    )
    assert (cards(found, "ns/c#claim"), cards(found, "ns/a")) == ((0,), (1,))
    assert (task(found, "ns/b").gpus, usable(found, "ns/b")) == (2, {"n"})


def test_pods_that_share_a_claim_hold_all_of_it() -> None:
    claims = {
        "ns/c": Claim(1, node="n", cards=(0,)),
        "ns/m": Claim(1, profile="3g.20gb", node="n", cards=(1,), starts=(4,)),
    }
    one = node("n", gpus=(Gpu(model="NVIDIA-A100-SXM4-40GB"), MIG))
    both = [{"name": "x", "resourceClaimName": "c"}, {"name": "y", "resourceClaimName": "m"}]
    found = read(
        cluster(one, offers={"n": {}}),
        [pod(name, "n", {"cpu": 1}, resourceClaims=both) for name in "abc"],
        Devices({"n": ()}, claims),
    )
    # a third each, and what is left of 1000 thousandths for the first; an instance is for one task
    assert [(part.gpus, part.mig_starts) for part in held(found, "ns/a")] == [((0,), ()), ((1,), (4,))]
    assert [(part.gpus, part.mig_starts) for part in held(found, "ns/b")] == [((0,), ())]
    assert job(found, "ns/a").groups[0].groups[0].task.gpu_share == "334m"  # type: ignore[union-attr]
    assert [task(found, f"ns/{name}").gpu_share for name in "bc"] == ["333m", "333m"]
    assert not said(found, "contradiction")


def test_devices_of_a_claim_are_held_beside_one_that_has_none() -> None:
    claims = {"ns/c": Claim(1, node="n", cards=(2,)), "ns/d": Claim(1)}
    both = [{"name": "x", "resourceClaimName": "d"}, {"name": "y", "resourceClaimName": "c"}]
    found = read(
        cluster(node("n", 4), offers={"n": {}}),
        [pod("a", "n", {"cpu": 1}, resourceClaims=both)],
        Devices({"n": ()}, claims),
    )
    assert {card for part in held(found, "ns/a") for card in part.gpus} == {0, 2}
