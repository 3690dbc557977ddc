"""What a pod asks for in all, of every resource, and of cards in the words of each system."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.errors import InputError
from placement.formats.kubernetes.cards import Part, made
from placement.formats.kubernetes.needs import Need, needs
from placement.formats.kubernetes.notes import Notes
from placement.formats.kubernetes.pod import PodSpec
from placement.formats.kubernetes.requests import amounts, guaranteed
from placement.units import exact, milli_up

GPU = "nvidia.com/gpu"


def spec(**fields: Any) -> PodSpec:
    return msgspec.convert(fields, PodSpec)


def container(requests: dict[str, Any] | None = None, limits: dict[str, Any] | None = None, **more: Any) -> Any:
    return {"name": "c", "resources": {"requests": requests, "limits": limits}, **more}


def asked(**fields: Any) -> dict[str, Any]:
    return amounts(spec(**fields), "pods.json", "items[0].spec")


# --- sums --------------------------------------------------------------------------------------------------------


def test_one_container_asks_for_what_is_written() -> None:
    assert asked(containers=[container({"cpu": "500m", "memory": "64Mi"})]) == {"cpu": "500m", "memory": "64Mi"}


def test_a_limit_stands_for_a_request_that_is_not_stated() -> None:
    # the limit of cpu does not matter, since a request is stated
    found = asked(containers=[container({"cpu": "1"}, {"cpu": "4", GPU: 2})])
    assert found == {"cpu": "1", GPU: 2}


@pytest.mark.parametrize("less", ["0", 0, "7"])
def test_of_cards_the_larger_of_request_and_limit_counts(less: Any) -> None:
    """A cluster has no such pod, for cards are not over-committed; processors are."""
    one = container({GPU: less, "cpu": "2"}, {GPU: "8", "cpu": "4"})
    assert asked(containers=[one]) == {GPU: "8", "cpu": "2"}
    assert asked(containers=[container({GPU: "8"}, {GPU: less})]) == {GPU: "8"}


def test_nothing_asked_is_nothing() -> None:
    assert asked(containers=[container({"cpu": "1", GPU: "0"}), {"name": "d"}]) == {"cpu": 1}
    assert asked() == {}


def test_containers_add_up_and_a_larger_init_container_counts_instead() -> None:
    # gpu: max(1 + 2, 4) = 4; cpu: max(1 + 1, 0.5) = 2
    found = asked(
        containers=[container({"cpu": 1, GPU: "1"}), container({"cpu": "1000m", GPU: "2"})],
        initContainers=[container({"cpu": "500m", GPU: "4"})],
    )
    assert found == {"cpu": 2, GPU: 4}


def test_sidecars_run_beside_the_containers_and_overhead_comes_on_top() -> None:
    # 1 + 1 (sidecar) + 1 (overhead) = 3
    found = asked(
        containers=[container({"cpu": "1"})],
        initContainers=[container({"cpu": "1"}, restartPolicy="Always")],
        overhead={"cpu": "1"},
    )
    assert found == {"cpu": 3}


def test_cards_and_their_memory_of_a_sidecar_count_too() -> None:
    one = {"volcano.sh/gpu-memory": 4, "volcano.sh/gpu-number": 1}
    found = asked(containers=[container(one)], initContainers=[container(one, restartPolicy="Always")])
    assert found == {"volcano.sh/gpu-memory": 8, "volcano.sh/gpu-number": 2}


def test_an_init_container_runs_beside_the_sidecars_before_it_only() -> None:
    # while init runs: sidecar a (2) + init (4) = 6, sidecar b not yet; afterwards 2 + 1 + container 2 = 5
    found = asked(
        containers=[container({"cpu": 2})],
        initContainers=[
            container({"cpu": 2}, restartPolicy="Always"),
            container({"cpu": 4}),
            container({"cpu": 1}, restartPolicy="Always"),
        ],
    )
    assert found == {"cpu": 6}


def test_what_the_pod_states_stands_for_its_containers() -> None:
    # cpu: 2 of the pod, not 1 + 1 + 1; memory: no container asks for any, so the limit of the pod; gpu: as before
    found = asked(
        containers=[container({"cpu": 1, GPU: 1}), container({"cpu": 1}), container({"cpu": 1})],
        resources={"requests": {"cpu": "2"}, "limits": {"cpu": "4", "memory": "1Gi"}},
        overhead={"cpu": "250m"},
    )
    assert found == {"cpu": "2.25", "memory": 2**30, GPU: 1}


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("256m", Fraction(256, 1000)),
        ("0.001Mi", Fraction(1048576, 1000)),
        ("1288490188800m", Fraction(12 * 2**30, 10)),
        ("3060164198400m", Fraction(285 * 2**30, 100)),
        ("0.5Gi", 2**29),
        ("1Pi", 2**50),
        ("1Ei", 2**60),
        ("1E", 10**18),
    ],
)
def test_amounts_are_exact(written: str, value: Fraction) -> None:
    """Fractions of bytes and the largest suffixes, alone and added up."""
    assert exact(asked(containers=[container({"memory": written})])["memory"]) == value
    both = asked(containers=[container({"memory": written}), container({"memory": "1Mi"})])
    assert exact(both["memory"]) == value + 2**20


@given(st.lists(st.integers(0, 10**6), min_size=2, max_size=5))
def test_sums_lose_nothing(milli: list[int]) -> None:
    found = asked(containers=[container({"cpu": f"{value}m"}) for value in milli])
    assert exact(found.get("cpu", 0)) == Fraction(sum(milli), 1000)


@pytest.mark.parametrize(
    ("amount", "said"),
    [
        ("6GiB", 'write "6Gi"'),
        ("NaN", "not a quantity"),
        (float("nan"), "not a finite number"),
        ("-1", "negative"),
        (-1, "negative"),
        (2**70, "larger"),
        ("16E", "larger"),
        ("1 Gi", "not a quantity"),
        ("", "not a quantity"),
    ],
)
def test_a_wrong_amount_is_an_error_with_its_place(amount: Any, said: str) -> None:
    with pytest.raises(InputError) as error:
        asked(containers=[container(), container({"memory": amount})])
    assert said in str(error.value)
    assert "items[0].spec.containers[1].resources.requests" in str(error.value)
    assert "pods.json" in str(error.value)


def test_a_sum_that_is_too_large_is_an_error() -> None:
    with pytest.raises(InputError, match="larger"):
        asked(containers=[container({"memory": "8E"}), container({"memory": "8E"})])


def test_guaranteed_pods_have_limits_that_equal_their_requests() -> None:
    right = container(None, {"cpu": "2", "memory": "1Gi"})
    assert guaranteed(spec(containers=[right]))
    assert guaranteed(spec(containers=[container({"cpu": "2000m"}, {"cpu": 2, "memory": "1Gi"})]))
    assert not guaranteed(spec(containers=[right, container(None, {"cpu": "2"})]))
    assert not guaranteed(spec(containers=[container({"cpu": 1}, {"cpu": 2, "memory": "1Gi"})]))
    assert not guaranteed(spec(containers=[]))


# --- cards in the words of each system ---------------------------------------------------------------------------


def wanted(
    asked_: dict[str, Any], offered: set[str], annotations: dict[str, str] | None = None
) -> tuple[tuple[Need, ...], dict[str, Any]]:
    return needs(asked_, annotations or {}, offered, "pods.json", "items[0].spec")


def test_units_of_an_offered_resource_are_cards_and_others_are_not() -> None:
    assert wanted({"cpu": 1, GPU: "2", "x/y": 3}, {GPU}) == ((Need(GPU, 2),), {"cpu": 1, "x/y": 3})


def test_annotations_of_kai() -> None:
    assert wanted({}, {GPU}, {"gpu-fraction": "0.5"})[0] == (Need(GPU, 1, Fraction(1, 2)),)
    both = {"gpu-memory": "2000", "gpu-fraction-num-devices": "2"}
    assert wanted({}, {GPU}, both)[0] == (Need(GPU, 2, memory=2000 * 2**20),)
    assert wanted({}, {GPU}, {"gpu-fraction": "1"})[0] == (Need(GPU, 1),)


def test_memory_and_cores_of_hami_are_of_each_card() -> None:
    found, rest = wanted({GPU: 2, "nvidia.com/gpumem": 3000, "nvidia.com/gpucores": 30, "cpu": 1}, {GPU})
    assert found == (Need(GPU, 2, Fraction(3, 10), 3000 * 2**20),)
    assert rest == {"cpu": 1}
    assert wanted({GPU: 1, "nvidia.com/gpumem-percentage": 50}, {GPU})[0] == (Need(GPU, 1, part=Fraction(1, 2)),)


def test_several_shares_of_koordinator_divide_what_is_asked_for() -> None:
    # four cards, 160 GiB in all: 40 GiB on each
    found, _ = wanted(
        {"koordinator.sh/gpu.shared": 4, "koordinator.sh/gpu-memory": "160Gi"}, {"koordinator.sh/gpu-core"}
    )
    assert found == (Need("koordinator.sh/gpu-core", 4, memory=40 * 2**30),)
    found, _ = wanted({"koordinator.sh/gpu-core": 200}, {"koordinator.sh/gpu-core"})
    assert made(found[0], (100, "", ""), 8, None, Notes()) == [Part(2, resource="koordinator.sh/gpu-core")]


def test_thousandths_of_alibaba() -> None:
    offered = {"alibabacloud.com/gpu-count"}
    said = {"alibabacloud.com/gpu-milli": "460", "alibabacloud.com/gpu-count": "1"}
    assert wanted({}, offered, said)[0] == (Need("alibabacloud.com/gpu-count", 1, Fraction(46, 100)),)


def test_a_bare_number_of_memory_has_the_unit_of_the_node() -> None:
    # 10 of 12 units of a card, whether these are GiB or MiB; of a card of 12 GiB that is 10 GiB
    (need,), _ = wanted({"aliyun.com/gpu-mem": 10}, {"aliyun.com/gpu-mem"})
    (part,) = made(need, (12, "", ""), 2, 12 * 2**30, Notes())
    assert (part.gpus, part.share, part.memory) == (1, "833m", 10 * 2**30)
    # where no node measures it in cards, it is a countable resource like others
    assert wanted({"aliyun.com/gpu-mem": 10}, set()) == ((), {"aliyun.com/gpu-mem": 10})


@pytest.mark.parametrize(
    ("asked_", "annotations"),
    [
        ({GPU: "500m"}, {}),
        ({}, {"gpu-fraction": "half"}),
        ({}, {"gpu-fraction": "1.5"}),
        ({}, {"gpu-fraction": "0"}),
        ({}, {"gpu-memory": "-1"}),
        ({}, {"gpu-fraction": "0.5", "gpu-fraction-num-devices": "0"}),
        ({GPU: 1, "nvidia.com/gpucores": 130}, {}),
    ],
)
def test_no_part_of_a_card_is_an_error(asked_: dict[str, Any], annotations: dict[str, str]) -> None:
    with pytest.raises(InputError, match="expected"):
        wanted(asked_, {GPU}, annotations)


# --- shares ------------------------------------------------------------------------------------------------------


@given(st.integers(2, 1000))
def test_as_many_shares_fit_on_a_card_as_it_has(replicas: int) -> None:
    """Models round a share up to thousandths of a card."""
    (part,) = made(Need(GPU, 1), (replicas, "", ""), 8, None, Notes())
    assert part.share is not None
    assert replicas * milli_up(part.share) <= 1000


def test_several_shares_are_on_cards_of_their_own() -> None:
    assert made(Need(GPU, 2), (4, "", ""), 8, None, Notes()) == [Part(2, "250m", resource=GPU)]
    # 16 units on 8 cards of 10 each: two tenths of each card
    assert made(Need(GPU, 16), (10, "", ""), 8, None, Notes()) == [Part(8, "200m", resource=GPU)]
    # all units of a card are the card
    assert made(Need(GPU, 8), (4, "", ""), 2, None, Notes()) == [Part(2, resource=GPU)]


def test_a_part_of_memory_is_the_same_part_of_the_card() -> None:
    # 2000 of 46068 MiB is 43.4 thousandths; 23 such fit by memory, and by share
    (part,) = made(Need(GPU, 1, memory=2000 * 2**20), (1, "", ""), 1, 46068 * 2**20, Notes())
    assert (part.share, part.memory) == ("43m", 2000 * 2**20)


def test_cards_of_unknown_memory_are_taken_whole() -> None:
    assert made(Need(GPU, 1, memory=2**30), (1, "", ""), 1, None, Notes())[0].share is None


def test_each_instance_is_a_part_of_its_own() -> None:
    found = made(Need("nvidia.com/mig-1g.5gb", 2), (1, "1g.5gb", ""), 7, None, Notes())
    assert found == [Part(1, profile="1g.5gb", resource="nvidia.com/mig-1g.5gb")] * 2
