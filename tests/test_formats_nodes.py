"""Nodes of Kubernetes: how many cards there are, what they are, and where nodes are.

The labels and resources are those of NVIDIA's device plugin and feature discovery, of HAMi and of the clouds; the
numbers are ours.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from node_cases import A100, item, kinds, one, read

from placement.errors import InputError
from placement.formats.kubernetes import nodes
from placement.formats.kubernetes.node_labels import parted, uncut
from placement.formats.kubernetes.objects import Objects
from placement.formats.kubernetes.parts import Devices, Offer
from placement.formats.ledger import Ledger
from placement.formats.options import Options
from placement.formats.source import File
from placement.snapshot import Gpu, Snapshot, Taint
from placement.snapshot.read import verified

# --- amounts, taints, conditions -------------------------------------------------------------------------------


def test_amounts_keep_their_text_and_nothing_that_is_not_there_is_listed() -> None:
    """allocatable is what tasks get: 7.91 cores of 8; hugepages of which there are none are left out."""
    made = item(
        devices={
            "cpu": ("7910m", "8"),
            "ephemeral-storage": ("192188443124", "209702892Ki"),
            "hugepages-2Mi": "0",
            "example.com/fpga": "3",
            "attachable-volumes-csi": "25",
        }
    )
    node, offers, said = one(made)
    assert (node.cpu, node.memory, node.pods) == ("7910m", "256Gi", 110)
    assert node.extended == {"ephemeral-storage": "192188443124", "example.com/fpga": "3"}
    assert (node.gpus, offers) == ((), {})
    assert said == ["ignored: how many volumes nodes take"]


def test_thousandths_of_a_byte_are_read_and_said() -> None:
    node, _, said = one(item(devices={"memory": "1288490188800m"}))
    assert node.memory == "1288490188800m"
    assert said == ["assumed: memory in thousandths of a byte"]


def test_capacity_stands_in_for_allocatable_and_nothing_for_neither() -> None:
    made = item(devices={"nvidia.com/gpu": "2"})
    del made["status"]["allocatable"]
    node, _, said = one(made)
    assert (node.cpu, node.gpus[0].count) == ("64", 2)
    assert "assumed: a node states no allocatable" in said
    node, _, said = one({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "bare"}})
    assert (node.cpu, node.memory, node.pods, node.cordoned) == (None, None, None, False)
    no_amounts = [f"assumed: a node states no {name}" for name in ("cpu", "memory", "pods")]
    assert sorted(said) == sorted([*no_amounts, "assumed: a node without conditions"])


@pytest.mark.parametrize(
    ("conditions", "cordoned"),
    [
        ([{"type": "Ready", "status": "True"}, {"type": "EtcdIsVoter", "status": "True"}], False),
        ([{"type": "MemoryPressure", "status": "True"}, {"type": "Ready", "status": "True"}], False),
        ([{"type": "Ready", "status": "False"}], True),
        ([{"type": "Ready", "status": "Unknown"}], True),
        ([{"type": "EtcdIsVoter", "status": "True"}], True),
        ([], False),
        (None, False),
    ],
)
def test_only_the_condition_ready_says_whether_a_node_takes_work(conditions: Any, cordoned: bool) -> None:
    made = item(devices={"nvidia.com/gpu": "8"})
    made["status"]["conditions"] = conditions
    node, _, _ = one(made)
    assert node.cordoned is cordoned
    assert node.gpus[0].count == 8


def test_unschedulable_and_deleted_nodes_are_cordoned_and_taints_kept() -> None:
    made = item()
    made["spec"] = {
        "unschedulable": True,
        "taints": [
            {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"},
            {"key": "gpu", "value": "yes", "effect": "NoExecute"},
            {"key": "old", "effect": "PreferNoSchedule"},
        ],
    }
    node, _, said = one(made)
    assert node.cordoned
    assert node.taints == (
        Taint(key="node.kubernetes.io/unschedulable"),
        Taint(key="gpu", value="yes", effect="NoExecute"),
    )
    assert said == ["ignored: taints with the effect PreferNoSchedule"]
    gone = item()
    gone["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert one(gone)[0].cordoned


# --- NVIDIA: whole and shared cards ----------------------------------------------------------------------------


def test_whole_cards_with_versions_of_either_spelling() -> None:
    labels = {
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
        "nvidia.com/gpu.count": "8",
        "nvidia.com/gpu.memory": "81559",
        "nvidia.com/gpu.replicas": "1",
        "nvidia.com/gpu.sharing-strategy": "none",
        "nvidia.com/gpu.compute.major": "9",
        "nvidia.com/gpu.compute.minor": "0",
        "nvidia.com/mig.capable": "true",
        "nvidia.com/mig.strategy": "single",
        "nvidia.com/mig.config": "all-disabled",
        "nvidia.com/cuda.driver.major": "550",
        "nvidia.com/cuda.driver.minor": "54",
        "nvidia.com/cuda.driver.rev": "15",
        "nvidia.com/cuda.runtime-version.full": "12.4",
    }
    node, offers, said = one(item(labels=labels, devices={"nvidia.com/gpu": "8"}))
    assert node.gpus == (Gpu(model="NVIDIA-H100-80GB-HBM3", count=8, memory="81559Mi", compute_capability="9.0"),)
    assert (node.driver, node.cuda) == ("550.54.15", "12.4")
    assert offers == {"nvidia.com/gpu": Offer(tuple(range(8)))}
    assert (node.extended, node.labels, said) == ({}, labels, [])


def test_cards_that_are_not_allocatable_are_unhealthy() -> None:
    """6 of 8 work; when the plugin restarts, none does, and what runs on them still has a place."""
    labels = {"nvidia.com/gpu.product": A100}
    node, offers, said = one(item(labels=labels, devices={"nvidia.com/gpu": ("6", "8")}))
    assert [(gpu.count, gpu.health) for gpu in node.gpus] == [(6, "healthy"), (2, "unhealthy")]
    assert offers["nvidia.com/gpu"].cards == tuple(range(8))
    assert said == ["contradiction: cards that are there and not allocatable"]
    node, _, _ = one(item(labels=labels, devices={"nvidia.com/gpu": ("0", "8")}))
    assert [(gpu.count, gpu.health) for gpu in node.gpus] == [(8, "unhealthy")]


@pytest.mark.parametrize(
    ("labels", "resource", "units", "sharing", "cards", "replicas"),
    [
        ({"gpu.product": "Tesla-T4-SHARED", "gpu.replicas": "4", "gpu.count": "4"}, "gpu", 16, "time_slicing", 4, 4),
        (
            {"gpu.product": "Tesla-T4", "gpu.replicas": "4", "gpu.count": "4", "gpu.sharing-strategy": "time-slicing"},
            "gpu.shared",
            16,
            "time_slicing",
            4,
            4,
        ),
        (
            {"gpu.product": "NVIDIA-H200-SHARED", "gpu.replicas": "10", "gpu.sharing-strategy": "mps"},
            "gpu",
            80,
            "mps",
            8,
            10,
        ),
        # the label says no replicas: 6 units of 2 cards are 3 of each
        ({"gpu.product": "Tesla-T4-SHARED", "gpu.count": "2"}, "gpu", 6, "time_slicing", 2, 3),
        # 4 replicas do not divide 6 units, 2 cards do
        ({"gpu.product": "Tesla-T4-SHARED", "gpu.count": "2", "gpu.replicas": "4"}, "gpu", 6, "time_slicing", 2, 3),
    ],
)
def test_shared_cards_are_units_over_replicas(
    labels: dict[str, str], resource: str, units: int, sharing: str, cards: int, replicas: int
) -> None:
    made = item(
        labels={f"nvidia.com/{key}": value for key, value in labels.items()},
        devices={"nvidia.com/gpu": "0", f"nvidia.com/{resource}": str(units)},
    )
    node, offers, _ = one(made)
    model = labels["gpu.product"].removesuffix("-SHARED")
    assert kinds(node) == [(model, cards, sharing, replicas)]
    assert offers == {f"nvidia.com/{resource}": Offer(tuple(range(cards)), replicas)}
    assert node.extended == {}


@pytest.mark.parametrize(
    "labels",
    [
        {"nvidia.com/gpu.count": "32", "nvidia.com/gpu.replicas": "4"},
        {"nvidia.com/gpu.product": "Tesla-T4-SHARED"},
        {"nvidia.com/gpu.product": f"{A100}-MIG-1g.10gb-SHARED", "nvidia.com/gpu.replicas": "3"},
        {"nvidia.com/gpu.product": f"{A100}-MIG-1g.10gb-SHARED"},
        {"nvidia.com/gpu.product": "Tesla-T4-SHARED", "nvidia.com/gpu.replicas": "3"},
    ],
)
def test_shares_of_nobody_knows_what_are_counted_and_are_no_cards(labels: dict[str, str]) -> None:
    """128 units: of an unknown model, of an unknown number of replicas, and 128 / 3 is not whole."""
    node, offers, said = one(item(labels=labels, devices={"nvidia.com/gpu": "0", "nvidia.com/gpu.shared": "128"}))
    assert (node.gpus, offers, node.extended) == ((), {}, {"nvidia.com/gpu.shared": "128"})
    assert said


def test_a_shared_card_that_half_works_takes_no_new_work() -> None:
    """3 of 8 units are gone: with 4 to a card that is one card."""
    labels = {"nvidia.com/gpu.product": "Tesla-T4-SHARED", "nvidia.com/gpu.replicas": "4"}
    node, _, _ = one(item(labels=labels, devices={"nvidia.com/gpu": ("5", "8")}))
    assert [(gpu.count, gpu.health) for gpu in node.gpus] == [(1, "healthy"), (1, "unhealthy")]


def test_a_rule_for_another_resource_shares_nothing() -> None:
    labels = {
        "nvidia.com/gpu.product": "Tesla-T4",
        "nvidia.com/gpu.replicas": "1",
        "nvidia.com/gpu.sharing-strategy": "none",
    }
    node, _, said = one(item(labels=labels, devices={"nvidia.com/gpu": "1"}))
    assert (kinds(node), said) == ([("Tesla-T4", 1, "shared", None)], [])


def test_clouds_say_model_and_sharing_in_labels_of_their_own() -> None:
    labels = {
        "cloud.google.com/gke-accelerator": "nvidia-tesla-t4",
        "cloud.google.com/gke-gpu-sharing-strategy": "time-sharing",
        "cloud.google.com/gke-max-shared-clients-per-gpu": "3",
    }
    node, _, _ = one(item(labels=labels, devices={"nvidia.com/gpu": "6"}))
    assert kinds(node) == [("nvidia-tesla-t4", 2, "time_slicing", 3)]
    node, _, said = one(item(devices={"nvidia.com/gpu": "6"}))
    assert kinds(node) == [("unknown", 6, "shared", None)]
    assert said == ["assumed: cards of which no label says the model"]


def test_a_virtual_gpu_is_the_card_that_the_node_sees() -> None:
    labels = {
        "nvidia.com/gpu.product": "NVIDIA-A16-4Q",
        "nvidia.com/gpu.memory": "4096",
        "nvidia.com/vgpu.present": "true",
    }
    node, _, said = one(item(labels=labels, devices={"nvidia.com/gpu": "1"}))
    assert node.gpus == (Gpu(model="NVIDIA-A16-4Q", memory="4096Mi"),)
    assert said == ["assumed: a virtual GPU as the device of a node"]


def test_cards_that_only_labels_count_are_none() -> None:
    node, offers, said = one(item(labels={"nvidia.com/gpu.product": A100, "nvidia.com/gpu.count": "8"}))
    assert (node.gpus, offers) == ((), {})
    assert said == ["contradiction: cards in the labels of a node that no resource offers"]


# --- products --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("product", "expected"),
    [
        ("MOCKMODEL", ("MOCKMODEL", "", False)),
        ("MOCKMODEL-SHARED", ("MOCKMODEL", "", True)),
        ("MOCKMODEL-MIG-1g.300gb-SHARED", ("MOCKMODEL", "1g.300gb", True)),
        ("A30-MIG-2g.12gb.me", ("A30", "2g.12gb+me", False)),
        ("A100-MIG-INVALID", ("A100", "INVALID", False)),
        ("NVIDIA-TITAN-X-Pascal", ("NVIDIA-TITAN-X-Pascal", "", False)),
    ],
)
def test_products_are_parted(product: str, expected: tuple[str, str, bool]) -> None:
    assert parted(product) == expected


@pytest.mark.parametrize("profile", ["1g.24gb", "1g.24gb.me", "1g.24gb-SHARED"])
def test_a_product_that_was_cut_is_the_one_model_that_begins_so(profile: str) -> None:
    """63 characters with the profile, and a dash that would come last is left out, as the plugin does it."""
    full = "NVIDIA-RTX-PRO-6000-Blackwell-Max-Q-Workstation-Edition"
    end = f"-MIG-{profile}"
    product = full[: 63 - len(end)].rstrip("-") + end
    model, _, _ = parted(product)
    assert model != full
    assert uncut(product, model) == full
    # two models begin so: it stays what it is
    assert uncut("NVIDIA-RTX-PRO-6000-Blackwell".ljust(63, "x"), "NVIDIA-RTX-PRO-6000-Blackwell-") == (
        "NVIDIA-RTX-PRO-6000-Blackwell-"
    )


# --- damage ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"metadata": {"name": ""}}, r"items\[0\]\.metadata\.name"),
        ({"metadata": {"name": "a\x07"}}, r"items\[0\]\.metadata\.name"),
        ({"metadata": {"name": "n1", "labels": {"": "x"}}}, r"items\[0\]\.metadata\.labels"),
        ({"metadata": {"name": "n1", "labels": {"topology.kubernetes.io/zone": "a\n"}}}, r"items\[0\]"),
        ({"status": {"allocatable": {"cpu": "-1"}}}, r"items\[0\]\.status\.allocatable\.cpu"),
        ({"status": {"allocatable": {"memory": "6GiB"}}}, r"items\[0\]\.status\.allocatable\.memory.*did you mean 6Gi"),
        ({"status": {"allocatable": {"x": 1e300}}}, r"items\[0\]\.status\.allocatable\.x"),
        ({"status": {"allocatable": {"nvidia.com/gpu": "1500m"}}}, r"items\[0\]\.status\.allocatable\.nvidia"),
        ({"spec": {"taints": [{"key": "a", "effect": "Never"}]}}, r"items\[0\]\.spec\.taints\[0\]\.effect"),
        ({"spec": {"taints": [{"effect": "NoSchedule"}]}}, r"items\[0\]\.spec\.taints\[0\]\.key"),
        ({"status": {"allocatable": ["cpu"]}}, r"items\[0\]\.status\.allocatable"),
    ],
)
def test_what_cannot_be_is_an_error_with_its_place(change: dict[str, Any], place: str) -> None:
    with pytest.raises(InputError, match=place):
        read({**item(), **change})


def test_two_nodes_of_one_name_are_an_error_with_both_places() -> None:
    with pytest.raises(InputError, match=r"items\[1\].*nodes\.json: items\[0\]"):
        read(item(), item())


SEED = item(
    labels={
        "nvidia.com/gpu.product": A100,
        "nvidia.com/gpu.count": "8",
        "nvidia.com/gpu.replicas": "2",
        "nvidia.com/mig-1g.10gb.count": "7",
        "topology.kubernetes.io/zone": "z",
    },
    devices={
        "nvidia.com/gpu": "4",
        "nvidia.com/mig-1g.10gb": "7",
        "nvidia.com/gpu.shared": "2",
        "aliyun.com/gpu-mem": "2",
        "amd.com/gpu": "3",
    },
)
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**40), 10**40),
    st.floats(),
    st.sampled_from(
        ["", "0", "1", "3", "255", "256", "257", "9" * 30, "-1", "1Gi", "NaN", "1e9", "\x00", "A-MIG-x", "-SHARED"]
    ),
    st.text(max_size=5),
    st.just([]),
    st.just({}),
)


@given(st.data())
def test_no_damage_is_a_traceback(data: st.DataObject) -> None:
    """Any value in place of any other: it is read, to a snapshot that can be, or it is an error of the input."""
    made = copy.deepcopy(SEED)
    for _ in range(data.draw(st.integers(1, 3))):
        at: Any = made
        while True:
            key = data.draw(st.sampled_from(sorted(at)))
            if not isinstance(at[key], dict) or not at[key] or data.draw(st.integers(0, 5)) == 0:
                at[key] = data.draw(VALUES)
                break
            at = at[key]
    file = File("x.json", json.dumps(made).encode())
    try:
        cluster = nodes.read(Objects([file]), Devices(), {}, (), Options(), Ledger())
    except InputError:
        return
    verified(Snapshot(topology=cluster.levels, nodes=cluster.nodes))
    for node in cluster.nodes:
        number = sum(gpu.count for gpu in node.gpus)
        for offer in cluster.offers[node.name].values():
            assert all(0 <= card < number for card in offer.cards)
