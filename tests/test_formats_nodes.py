"""Nodes of Kubernetes: how many cards there are, what they are, and where nodes are.

The labels and resources are those of NVIDIA's device plugin and feature discovery, of HAMi and of the clouds; the
numbers are ours.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.errors import InputError
from placement.formats.kubernetes import nodes
from placement.formats.kubernetes.mig_cards import distributed
from placement.formats.kubernetes.node_labels import parted, uncut
from placement.formats.kubernetes.objects import Objects
from placement.formats.kubernetes.parts import Addition, Claim, Cluster, Device, Devices, Level, Offer, Zones
from placement.formats.ledger import Ledger
from placement.formats.options import Options
from placement.formats.source import File
from placement.hardware import mig
from placement.hardware.layouts import clash
from placement.snapshot import Gpu, LedgerEntry, MigInstance, Node, NumaZone, Snapshot, Taint
from placement.snapshot.read import verified

A100 = "NVIDIA-A100-SXM4-80GB"
"""Seven instances 1g.10gb on one card; 3g.40gb starts at slots 0 and 4."""


def item(
    name: str = "n1", labels: Mapping[str, str] | None = None, devices: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return a node of 64 cores; devices by name, as allocatable or as (allocatable, capacity)."""
    amounts: dict[str, dict[str, Any]] = {
        field: {"cpu": "64", "memory": "256Gi", "pods": "110"} for field in ("allocatable", "capacity")
    }
    for key, value in (devices or {}).items():
        pair = value if isinstance(value, tuple) else (value, value)
        for field, number in zip(("allocatable", "capacity"), pair, strict=True):
            amounts[field][key] = number
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": {},
        "status": {**amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def read(
    *items: dict[str, Any],
    devices: Devices | None = None,
    zones: Mapping[str, Zones] | None = None,
    additions: tuple[Addition, ...] = (),
    levels: tuple[tuple[str, str], ...] = (),
) -> tuple[Cluster, tuple[LedgerEntry, ...]]:
    """Return the cluster and the ledger; the snapshot must be one that can be."""
    ledger = Ledger()
    file = File("nodes.json", json.dumps({"apiVersion": "v1", "kind": "List", "items": items}).encode())
    cluster = nodes.read(Objects([file]), devices or Devices(), zones or {}, additions, Options(levels=levels), ledger)
    verified(Snapshot(topology=cluster.levels, nodes=cluster.nodes))
    return cluster, ledger.entries()


def one(*items: dict[str, Any], **more: Any) -> tuple[Node, Mapping[str, Offer], list[str]]:
    """Return the only node, its offers, and what was assumed, ignored or contradicted."""
    cluster, entries = read(*items, **more)
    (node,) = cluster.nodes
    return node, cluster.offers[node.name], [f"{entry.kind}: {entry.what}" for entry in entries if entry.kind != "read"]


def kinds(node: Node) -> list[tuple[str, int, str, int | None]]:
    """Return model, count, sharing and replicas of the cards of a node."""
    return [(gpu.model, gpu.count, gpu.sharing, gpu.replicas) for gpu in node.gpus]


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
        {"nvidia.com/gpu.product": f"{A100}-MIG-1g.10gb-SHARED", "nvidia.com/gpu.replicas": "4"},
        {"nvidia.com/gpu.product": "Tesla-T4-SHARED", "nvidia.com/gpu.replicas": "3"},
    ],
)
def test_shares_of_nobody_knows_what_are_counted_and_are_no_cards(labels: dict[str, str]) -> None:
    """128 units: of MIG instances, of an unknown model, of an unknown number of replicas, and 128 / 3 is not whole."""
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


# --- MIG -------------------------------------------------------------------------------------------------------


def test_the_single_strategy_offers_instances_and_no_cards() -> None:
    """Fourteen instances of which a card holds seven: two cards; the label counts instances, and memory is theirs."""
    labels = {
        "nvidia.com/gpu.product": f"{A100}-MIG-1g.10gb",
        "nvidia.com/gpu.count": "14",
        "nvidia.com/gpu.memory": "9728",
        "nvidia.com/mig.strategy": "single",
    }
    node, offers, _ = one(item(labels=labels, devices={"nvidia.com/gpu": "14"}))
    layout = tuple(MigInstance(profile="1g.10gb", start=start) for start in range(7))
    assert node.gpus == (
        Gpu(model=A100, count=2, memory="81920Mi", mig_enabled=True, mig_static=True, mig_layout=layout),
    )
    offer = offers["nvidia.com/gpu"]
    assert (offer.cards, offer.starts, offer.profile) == ((0,) * 7 + (1,) * 7, (*range(7), *range(7)), "1g.10gb")


def test_the_mixed_strategy_has_whole_cards_beside_instances() -> None:
    """8 cards by the label, 4 whole ones by the resource: 28 instances are on the other 4, seven on each."""
    labels = {
        "nvidia.com/gpu.product": A100,
        "nvidia.com/gpu.count": "8",
        "nvidia.com/mig.strategy": "mixed",
        "nvidia.com/mig-1g.10gb.count": "28",
    }
    node, offers, said = one(item(labels=labels, devices={"nvidia.com/gpu": "4", "nvidia.com/mig-1g.10gb": "28"}))
    assert [(gpu.count, gpu.mig_enabled, len(gpu.mig_layout)) for gpu in node.gpus] == [(4, False, 0), (4, True, 7)]
    assert offers["nvidia.com/gpu"].cards == (0, 1, 2, 3)
    assert offers["nvidia.com/mig-1g.10gb"].cards == tuple(card for card in (4, 5, 6, 7) for _ in range(7))
    assert said == ["assumed: where MIG instances are"]


def test_several_profiles_share_one_card() -> None:
    """2 x 1g, 1 x 2g and 1 x 3g take 1 + 1 + 2 + 4 of 8 slots; 3g leaves room for the others only at slot 4."""
    labels = {"nvidia.com/gpu.product": A100, "nvidia.com/gpu.count": "1", "nvidia.com/gpu.replicas": "0"}
    made = item(
        labels=labels,
        devices={
            "nvidia.com/gpu": "0",
            "nvidia.com/mig-1g.10gb": "2",
            "nvidia.com/mig-2g.20gb": "1",
            "nvidia.com/mig-3g.40gb": "1",
        },
    )
    node, offers, _ = one(made)
    assert [(one.profile, one.start) for one in node.gpus[0].mig_layout] == [
        ("1g.10gb", 0),
        ("1g.10gb", 1),
        ("2g.20gb", 2),
        ("3g.40gb", 4),
    ]
    assert sum(len(offer.cards) for offer in offers.values()) == 4
    assert node.gpus[0].count == 1


def test_profiles_with_media_engines_are_other_profiles() -> None:
    labels = {"nvidia.com/gpu.product": A100, "nvidia.com/gpu.count": "1"}
    made = item(labels=labels, devices={"nvidia.com/mig-1g.10gb": "1", "nvidia.com/mig-1g.10gb.me": "1"})
    _, offers, _ = one(made)
    assert {name: offer.profile for name, offer in offers.items()} == {
        "nvidia.com/mig-1g.10gb": "1g.10gb",
        "nvidia.com/mig-1g.10gb.me": "1g.10gb+me",
    }


@pytest.mark.parametrize(
    ("product", "count", "resources", "what"),
    [
        # nothing says the model
        ("", "", {"mig-3g.20gb": "16"}, "assumed: MIG instances on cards of which no MIG geometry is known"),
        # a profile of the card with 40 GB
        (A100, "1", {"mig-3g.20gb": "2"}, "contradiction: a MIG profile that the card model does not have"),
        # three 3g need two cards, and five hundred of them 250
        (A100, "1", {"mig-3g.40gb": "600"}, "contradiction: MIG instances that no legal layouts hold"),
        # a part of an instance
        (A100, "1", {"mig-1c.3g.40gb": "6"}, "contradiction: a MIG profile that the card model does not have"),
    ],
)
def test_instances_without_a_legal_place_are_countable(
    product: str, count: str, resources: dict[str, str], what: str
) -> None:
    labels = {"nvidia.com/gpu.product": product, "nvidia.com/gpu.count": count} if product else {}
    made = {f"nvidia.com/{name}": number for name, number in resources.items()}
    node, offers, said = one(item(labels=labels, devices=made))
    assert (node.gpus, offers, node.extended) == ((), {}, made)
    assert what in said


def test_the_resource_rules_over_the_profile_in_the_labels() -> None:
    """One profile, which the labels round to 3g.21gb: counted once."""
    labels = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB", "nvidia.com/mig-3g.21gb.count": "2"}
    node, offers, said = one(item(labels=labels, devices={"nvidia.com/mig-3g.20gb": "2"}))
    assert list(offers) == ["nvidia.com/mig-3g.20gb"]
    assert [(gpu.count, len(gpu.mig_layout)) for gpu in node.gpus] == [(1, 2)]
    assert said[0] == "contradiction: a MIG profile in the labels that no resource is called by"


def test_a_partition_that_a_cloud_makes_is_a_mig_instance() -> None:
    labels = {
        "cloud.google.com/gke-accelerator": "nvidia-h100-80gb",
        "cloud.google.com/gke-gpu-partition-size": "1g.10gb",
    }
    node, offers, _ = one(item(labels=labels, devices={"nvidia.com/gpu": "7"}))
    assert [(gpu.count, gpu.mig_enabled, len(gpu.mig_layout)) for gpu in node.gpus] == [(1, True, 7)]
    assert offers["nvidia.com/gpu"].profile == "1g.10gb"
    labels["cloud.google.com/gke-max-shared-clients-per-gpu"] = "2"
    node, offers, _ = one(item(labels=labels, devices={"nvidia.com/gpu": "14"}))
    assert (node.gpus, offers, node.extended) == ((), {}, {"nvidia.com/gpu": "14"})


def test_instances_that_are_alternatives_are_made_for_pods() -> None:
    """4 cards could have 28 of 1g.10gb, or 8 of 3g.40gb, or 4 of 7g.80gb, and not all of them."""
    labels = {"nvidia.com/gpu.product": A100, "nvidia.com/gpu.count": "4"}
    counts = {"nvidia.com/mig-1g.10gb": "28", "nvidia.com/mig-3g.40gb": "8", "nvidia.com/mig-7g.80gb": "4"}
    node, offers, _ = one(item(labels=labels, devices=counts))
    assert [(gpu.count, gpu.mig_enabled, gpu.mig_static, gpu.mig_layout) for gpu in node.gpus] == [(4, True, False, ())]
    assert (offers, node.extended) == ({}, {})


def test_shared_instances_are_countable() -> None:
    labels = {
        "nvidia.com/gpu.product": A100,
        "nvidia.com/gpu.count": "1",
        "nvidia.com/mig-1g.10gb.count": "4",
        "nvidia.com/mig-1g.10gb.replicas": "2",
    }
    made = {"nvidia.com/mig-1g.10gb": "8", "nvidia.com/mig-2g.20gb.shared": "2"}
    node, offers, said = one(item(labels=labels, devices=made))
    assert (node.gpus, offers, node.extended) == ((), {}, made)
    assert said == ["assumed: MIG instances that are shared in turn"]


def test_an_invalid_layout_offers_nothing() -> None:
    labels = {"nvidia.com/gpu.product": f"{A100}-MIG-INVALID", "nvidia.com/gpu.count": "0"}
    node, offers, said = one(item(labels=labels, devices={"nvidia.com/gpu": "0"}))
    assert (node.gpus, offers) == ((), {})
    assert said == ["contradiction: MIG instances that the single strategy does not offer (MIG-INVALID)"]


def test_instances_that_do_not_work_are_those_on_the_last_cards() -> None:
    """21 instances on 3 cards, 9 of which work: card 0 whole, 2 of card 1, none of card 2."""
    labels = {"nvidia.com/gpu.product": A100, "nvidia.com/gpu.count": "3"}
    node, offers, said = one(item(labels=labels, devices={"nvidia.com/mig-1g.10gb": ("9", "21")}))
    assert [(gpu.health, len(gpu.mig_layout)) for gpu in node.gpus] == [
        ("healthy", 7),
        ("healthy", 2),
        ("unhealthy", 7),
    ]
    assert offers["nvidia.com/mig-1g.10gb"].cards == (0,) * 7 + (1,) * 2 + (2,) * 7
    assert "contradiction: MIG instances that are there and not allocatable" in said


def test_mig_that_is_being_configured_is_said() -> None:
    labels = {"nvidia.com/gpu.product": A100, "nvidia.com/mig.config.state": "pending"}
    node, _, said = one(item(labels=labels, devices={"nvidia.com/gpu": "2"}))
    assert (node.gpus[0].count, said) == (2, ["assumed: MIG is being configured"])


@given(st.lists(st.sampled_from(["1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"]), max_size=12))
def test_distributed_instances_are_all_there_and_can_exist(profiles: list[str]) -> None:
    """Every instance once, on legal slots; at least as many cards as slots need, and none without an instance."""
    wanted = tuple((name, profiles.count(name)) for name in sorted(set(profiles)))
    layouts = distributed("A100-80GB", wanted, None)
    assert layouts is not None
    card = mig.geometry("A100-80GB")
    assert card is not None
    assert sorted(name for layout in layouts for name, _ in layout) == sorted(profiles)
    for layout in layouts:
        assert clash(card, [(profile, start) for name, start in layout if (profile := card.profile(name))]) is None
    assert all(layouts) or not profiles


# --- shares that HAMi registers --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "GPU-a,10,32768,100,NVIDIA-Tesla V100-PCIE-32GB,0,true:GPU-b,10,32768,100,NVIDIA-Tesla V100-PCIE-32GB,1,false:",
        "GPU-a,10,32768,100,NVIDIA-Tesla V100-PCIE-32GB,0,true,0,hami-core:"
        "GPU-b,10,32768,100,NVIDIA-Tesla V100-PCIE-32GB,1,false,1,hami-core:",
        '[{"id":"GPU-a","count":10,"devmem":32768,"devcore":100,"type":"NVIDIA-Tesla V100-PCIE-32GB","health":true},'
        '{"id":"GPU-b","index":1,"count":10,"devmem":32768,"type":"NVIDIA-Tesla V100-PCIE-32GB","health":false}]',
    ],
)
def test_registered_cards_have_shares(text: str) -> None:
    made = item(devices={"nvidia.com/gpu": "20"})
    made["metadata"]["annotations"] = {"hami.io/node-nvidia-register": text}
    node, offers, said = one(made)
    assert [(gpu.model, gpu.memory, gpu.replicas, gpu.health) for gpu in node.gpus] == [
        ("NVIDIA-Tesla-V100-PCIE-32GB", "32768Mi", 10, "healthy"),
        ("NVIDIA-Tesla-V100-PCIE-32GB", "32768Mi", 10, "unhealthy"),
    ]
    assert offers == {"nvidia.com/gpu": Offer((0, 1), 10)}
    assert (node.devices, said) == (("GPU-a", "GPU-b"), [])


@pytest.mark.parametrize("text", ["GPU-a,10", "GPU-a,x,1,100,T4,0,true", "[{", "GPU-a,0,1,100,T4,0,true"])
def test_damaged_registers_are_errors_with_their_place(text: str) -> None:
    made = item(devices={"nvidia.com/gpu": "20"})
    made["metadata"]["annotations"] = {"hami.io/node-nvidia-register": text}
    with pytest.raises(InputError, match=r"items\[0\]\.metadata\.annotations\.hami\.io/node-nvidia-register"):
        read(made)


# --- other vendors, other units --------------------------------------------------------------------------------


def test_cards_and_thousandths_of_them_are_the_same_cards() -> None:
    labels = {"alibabacloud.com/gpu-card-model": "P100"}
    made = {"alibabacloud.com/gpu-count": "2", "alibabacloud.com/gpu-milli": "2000"}
    node, offers, _ = one(item(labels=labels, devices=made))
    assert kinds(node) == [("P100", 2, "shared", None)]
    assert offers == {
        "alibabacloud.com/gpu-count": Offer((0, 1)),
        "alibabacloud.com/gpu-milli": Offer((0, 1), 1000),
    }


def test_memory_of_a_vendor_has_the_unit_that_makes_it_the_cards() -> None:
    """22 units on 2 cards: a unit is an eleventh of a card, be it GiB or MiB; without cards nobody knows."""
    node, offers, _ = one(item(devices={"aliyun.com/gpu-count": "2", "aliyun.com/gpu-mem": "22"}))
    assert (node.gpus[0].count, offers["aliyun.com/gpu-mem"]) == (2, Offer((0, 1), 11))
    node, offers, said = one(item(devices={"aliyun.com/gpu-mem": "22"}))
    assert (node.gpus, offers, node.extended) == ((), {}, {"aliyun.com/gpu-mem": "22"})
    assert said == ["assumed: parts of cards of which nothing says how many are a card"]


def test_parts_beside_a_resource_are_of_its_cards() -> None:
    labels = {"node.koordinator.sh/gpu-model": "A30"}
    parts = {"koordinator.sh/gpu-core": "200", "koordinator.sh/gpu-memory": "48Gi"}
    node, offers, said = one(item(labels=labels, devices={"nvidia.com/gpu": "2", **parts}))
    assert kinds(node) == [("A30", 2, "shared", None)]
    assert offers == {"nvidia.com/gpu": Offer((0, 1)), "koordinator.sh/gpu-core": Offer((0, 1), 100)}
    assert (node.extended, said) == ({"koordinator.sh/gpu-memory": "48Gi"}, [])
    node, _, said = one(item(labels=labels, devices={"nvidia.com/gpu": "3", **parts}))
    assert (node.gpus[0].count, node.extended) == (3, parts)
    assert said == ["contradiction: one resource states more cards than another"]


def test_volcano_registers_cards_in_fewer_fields() -> None:
    made = item(devices={"volcano.sh/vgpu-number": "8"})
    made["metadata"]["annotations"] = {"volcano.sh/node-vgpu-register": "GPU-a,8,24576,NVIDIA-NVIDIA A10,true:"}
    node, offers, _ = one(made)
    assert node.gpus == (Gpu(model="NVIDIA-A10", memory="24576Mi", replicas=8),)
    assert offers == {"volcano.sh/vgpu-number": Offer((0,), 8)}


def test_cards_of_other_vendors() -> None:
    labels = {"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM", "amd.com/gpu.vram": "192G"}
    node, _, _ = one(item(labels=labels, devices={"amd.com/gpu": "8"}))
    assert node.gpus == (Gpu(model="AMD_Instinct_MI300X_OAM", count=8, memory="192Gi"),)
    old = {"beta.amd.com/gpu.product-name.Instinct_MI210": "4"}
    assert kinds(one(item(labels=old, devices={"amd.com/gpu": "4"}))[0]) == [("Instinct_MI210", 4, "shared", None)]
    intel = {"gpu.intel.com/product": "Max_1550", "gpu.intel.com/gpu-numbers": "0.1"}
    node, offers, _ = one(item(labels=intel, devices={"gpu.intel.com/i915": "20"}))
    assert (kinds(node), offers["gpu.intel.com/i915"].replicas) == ([("Max_1550", 2, "shared", 10)], 10)
    assert kinds(one(item(devices={"habana.ai/gaudi": "8"}))[0]) == [("Gaudi", 8, "shared", None)]
    node, offers, _ = one(item(devices={"aws.amazon.com/neuron": "16", "aws.amazon.com/neuroncore": "32"}))
    assert (node.gpus[0].count, offers["aws.amazon.com/neuroncore"].replicas) == (16, 2)


# --- slices ----------------------------------------------------------------------------------------------------


def devices(*listed: Device, claims: Mapping[str, Claim] | None = None) -> Devices:
    return Devices(by_node={"n1": listed}, claims=claims or {})


def test_slices_list_cards_by_name() -> None:
    listed = devices(*(Device(f"gpu-{k}", A100, 80 * 2**30, healthy=k != 2) for k in range(3)))
    node, offers, said = one(item(), devices=listed)
    assert [(gpu.count, gpu.health, gpu.memory) for gpu in node.gpus] == [
        (2, "healthy", 80 * 2**30),
        (1, "unhealthy", 80 * 2**30),
    ]
    assert (node.devices, offers, said) == (("gpu-0", "gpu-1", "gpu-2"), {}, [])


def test_slices_beside_a_resource_are_the_same_cards() -> None:
    listed = devices(*(Device(f"gpu-{k}", A100, 80 * 2**30) for k in range(2)))
    labels = {"nvidia.com/gpu.product": A100}
    node, offers, said = one(item(labels=labels, devices={"nvidia.com/gpu": "2"}), devices=listed)
    assert (kinds(node), offers, said) == (
        [(A100, 2, "shared", None)],
        {"nvidia.com/gpu": Offer((0, 1))},
        [],
    )
    for units, cards, named in (("1", 2, 2), ("3", 3, 0)):
        node, _, said = one(item(labels=labels, devices={"nvidia.com/gpu": units}), devices=listed)
        assert (sum(gpu.count for gpu in node.gpus), len(node.devices)) == (cards, named)
        assert said == ["contradiction: the cards of a resource and of the slices of a node"]


def test_mig_devices_in_slices() -> None:
    """A card that is not listed itself has the instances listed; one that is could have them, unless some runs."""
    cut = Device("gpu-0", A100, profiles={"3g.40gb": (4,), "1g.10gb": (0, 1)}, whole=False)
    node, _, _ = one(item(), devices=devices(cut))
    (gpu,) = node.gpus
    assert (gpu.mig_enabled, gpu.mig_static, [one.start for one in gpu.mig_layout]) == (True, True, [0, 1, 4])
    could = Device("gpu-0", A100, profiles={"3g.40gb": (0, 4), "7g.80gb": (0,)})
    node, _, _ = one(item(), devices=devices(could))
    (gpu,) = node.gpus
    assert (gpu.mig_enabled, gpu.mig_switchable, gpu.mig_layout) == (False, True, ())
    held = Claim(1, profile="3g.40gb", node="n1", cards=(0,), starts=(4,))
    node, _, _ = one(item(), devices=devices(could, claims={"default/c": held}))
    assert (node.gpus[0].mig_enabled, node.gpus[0].mig_static) == (True, False)


# --- zones -----------------------------------------------------------------------------------------------------


def zones(cpus: tuple[str, str], cards: tuple[int, ...], policy: str = "") -> dict[str, Zones]:
    made = tuple(NumaZone(id=k, cpu=cpu, memory="128Gi") for k, cpu in enumerate(cpus))
    return {"n1": Zones(made, cards, policy)}


def test_cards_are_dealt_to_zones() -> None:
    made = item(labels={"nvidia.com/gpu.product": A100}, devices={"nvidia.com/gpu": "8"})
    cluster, entries = read(made, zones=zones(("32", "32"), (6, 2), "single-numa-node"))
    assert [zone.gpus for zone in cluster.nodes[0].zones] == [(0, 1, 2, 3, 4, 5), (6, 7)]
    assert [zone.cpu for zone in cluster.nodes[0].zones] == ["32", "32"]
    assert cluster.policies == {"n1": "single-numa-node"}
    assert "which cards are in which zone" in [entry.what for entry in entries]


def test_zones_that_do_not_add_up_state_no_cpu() -> None:
    """32 + 31 is not 64; 128Gi twice is 256Gi."""
    node, _, said = one(item(), zones=zones(("32", "31"), ()))
    assert [(zone.cpu, zone.memory) for zone in node.zones] == [(None, "128Gi")] * 2
    assert said == ["contradiction: cpu of the zones and of the node"]


def test_zones_that_do_not_say_where_cards_are_are_left_out() -> None:
    made = item(labels={"nvidia.com/gpu.product": A100}, devices={"nvidia.com/gpu": "8"})
    node, _, said = one(made, zones=zones(("32", "32"), (3, 2)))
    assert (node.zones, said) == ((), ["assumed: zones that do not say where the cards are"])


def test_zones_count_units_of_shared_cards_and_know_those_of_hami() -> None:
    labels = {"nvidia.com/gpu.product": "Tesla-T4-SHARED", "nvidia.com/gpu.replicas": "4"}
    node, _, _ = one(item(labels=labels, devices={"nvidia.com/gpu": "16"}), zones=zones(("32", "32"), (4, 12)))
    assert [zone.gpus for zone in node.zones] == [(0,), (1, 2, 3)]
    made = item(devices={"nvidia.com/gpu": "2"})
    made["metadata"]["annotations"] = {"hami.io/node-nvidia-register": "a,1,9,100,T4,1,true:b,1,9,100,T4,0,true:"}
    node, _, _ = one(made, zones=zones(("32", "32"), ()))
    assert [zone.gpus for zone in node.zones] == [(1,), (0,)]


def test_of_many_zones_those_with_cpus_are_kept() -> None:
    """One zone has the CPUs, eight are memory of cards."""
    made = tuple(NumaZone(id=k, cpu="64" if k == 0 else "0") for k in range(9))
    listed = {"n1": Zones(made, (1, *[0] * 8))}
    node, _, said = one(item(labels={"nvidia.com/gpu.product": "GH200"}, devices={"nvidia.com/gpu": "1"}), zones=listed)
    assert [(zone.id, zone.gpus) for zone in node.zones] == [(0, (0,))]
    assert "ignored: zones without CPUs and cards" in said


# --- levels ----------------------------------------------------------------------------------------------------

BLOCK, RACK = "cloud.provider.com/topology-block", "cloud.provider.com/topology-rack"


def test_known_labels_are_levels() -> None:
    labels = {"topology.kubernetes.io/zone": "z", BLOCK: "b", RACK: "r", "nvidia.com/gpu.clique": "c.1"}
    cluster, entries = read(item(labels=labels), item("n2", labels={**labels, RACK: "q", "nvidia.com/gpu.clique": ""}))
    assert cluster.levels == ("zone", "block", "rack", "nvlink_domain")
    assert [node.position for node in cluster.nodes] == [
        {"zone": "z", "block": "b", "rack": "r", "nvlink_domain": "c.1"},
        {"zone": "z", "block": "b", "rack": "q"},
    ]
    assert cluster.level_of == {
        "topology.kubernetes.io/zone": "zone",
        BLOCK: "block",
        RACK: "rack",
        "nvidia.com/gpu.clique": "nvlink_domain",
        "kubernetes.io/hostname": "node",
    }
    assert [entry.what for entry in entries if entry.kind == "assumed"] == ["levels of the topology"]


def test_tiers_of_switches_are_widest_last() -> None:
    labels = {f"fabric.topograph.run/tier-{k}": f"s{k}" for k in (0, 1, 10)}
    labels2 = {f"fabric.topograph.run/tier-{k}": f"t{k}" for k in (0, 1)} | {"fabric.topograph.run/tier-10": "s10"}
    cluster, _ = read(
        item(labels=labels),
        item("n2", labels=labels2),
        item("n3", labels={**labels2, "fabric.topograph.run/tier-0": "u"}),
    )
    assert cluster.levels == ("tier_10", "tier_1", "tier_0")


def test_a_node_without_a_label_is_in_no_domain_and_named() -> None:
    """n2 lacks the rack: it is left out of that level, and no rack is called by nothing."""
    cluster, entries = read(
        item(labels={BLOCK: "b1", RACK: "r1"}),
        item("n2", labels={BLOCK: "b1"}),
        additions=(Addition(levels=(Level("block", BLOCK), Level("rack", RACK))),),
    )
    assert [node.position for node in cluster.nodes] == [{"block": "b1", "rack": "r1"}, {"block": "b1"}]
    (said,) = [entry for entry in entries if entry.kind == "assumed"]
    assert (said.what, said.where) == (f"a node has no label {RACK}", ("nodes.json: items[1] (node n2)",))


def test_domains_of_one_name_are_told_apart() -> None:
    """Each block numbers its racks from 1."""
    made = [item(f"n{k}", labels={BLOCK: block, RACK: rack}) for k, (block, rack) in enumerate([*PLACES])]
    cluster, entries = read(*made)
    assert [node.position["rack"] for node in cluster.nodes] == ["b1/r1", "b2/r1", "r2"]
    assert [entry.count for entry in entries if entry.kind == "contradiction"] == [2]


PLACES = (("b1", "r1"), ("b2", "r1"), ("b2", "r2"))


def test_an_nvlink_domain_is_as_narrow_as_it_nests() -> None:
    """A clique of two racks lies between block and rack."""
    made = [item(f"n{k}", labels={BLOCK: "b", RACK: f"r{k}", "nvidia.com/gpu.clique": "c.0"}) for k in range(2)]
    made.append(item("n2", labels={BLOCK: "a", RACK: "r2"}))
    cluster, _ = read(*made)
    assert cluster.levels == ("block", "nvlink_domain", "rack")


def test_the_users_levels_come_before_all_others() -> None:
    made = item(labels={"my/row": "x", BLOCK: "b"})
    cluster, _ = read(made, levels=(("row", "my/row"), ("node", "kubernetes.io/hostname")))
    assert (cluster.levels, cluster.nodes[0].position) == (("row",), {"row": "x"})
    for levels in ((("row", "my/raw"),), (("node", "my/row"),), (("a", "my/row"), ("a", BLOCK))):
        with pytest.raises(InputError, match="--levels"):
            read(made, levels=levels)


def test_levels_of_several_objects_are_one_order() -> None:
    """One says block and rack, the other z and, by a name of its own, rack: z comes before rack, names stay."""
    labels = {"z": "z1", BLOCK: "b1", RACK: "r1"}
    first = Addition(levels=(Level("block", BLOCK), Level("rack", RACK)))
    other = Addition(levels=(Level("z", "z"), Level("topology-rack", RACK)))
    cluster, _ = read(item(labels=labels), item("n2", labels={**labels, RACK: "r2"}), additions=(first, other))
    assert cluster.levels == ("block", "z", "rack")
    assert (cluster.level_of[RACK], cluster.level_of["topology-rack"]) == ("rack", "rack")


def test_a_zone_that_cuts_across_the_levels_of_objects_is_left_out() -> None:
    """Block b lies in two zones; named apart, its domains would not be those that the objects mean."""
    made = [item(f"n{k}", labels={BLOCK: "b", "topology.kubernetes.io/zone": f"z{k}"}) for k in range(2)]
    cluster, entries = read(*made, additions=(Addition(levels=(Level("block", BLOCK),)),))
    assert cluster.levels == ("block",)
    assert [entry.what for entry in entries if entry.kind == "ignored"] == [
        "label topology.kubernetes.io/zone as a level"
    ]


def test_tiers_of_hypernodes_and_zones_beside_them() -> None:
    """n3 is in no HyperNode at all."""
    labels = {"topology.kubernetes.io/zone": "z1"}
    positions = {"n1": {"tier2": "s2", "tier1": "s0"}, "n2": {"tier2": "s2", "tier1": "s1"}}
    tiers = Addition(tiers=("tier2", "tier1"), positions=positions)
    cluster, entries = read(*(item(f"n{k}", labels=labels) for k in (1, 2, 3)), additions=(tiers,))
    assert cluster.levels == ("zone", "tier2", "tier1")
    assert [node.position for node in cluster.nodes] == [
        {"zone": "z1", "tier2": "s2", "tier1": "s0"},
        {"zone": "z1", "tier2": "s2", "tier1": "s1"},
        {"zone": "z1"},
    ]
    places = [entry.where for entry in entries if entry.kind == "assumed" and "HyperNode" in entry.what]
    assert places == [("nodes.json: items[2] (node n3)",)] * 2


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
