"""Nodes of Kubernetes: MIG instances, registered shares, cards of other vendors, and cards that slices list."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from node_cases import A100, item, kinds, one, read

from placement.errors import InputError
from placement.formats.kubernetes.mig_cards import distributed
from placement.formats.kubernetes.parts import Claim, Device, Devices, Offer
from placement.hardware import mig
from placement.hardware.layouts import clash
from placement.snapshot import Gpu, MigInstance

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
    assert [(gpu.count, gpu.mig_instance, gpu.replicas, gpu.mig_enabled) for gpu in node.gpus] == [
        (7, "1g.10gb", 2, False)
    ]
    assert offers["nvidia.com/gpu"] == Offer(tuple(range(7)), 2, instance="1g.10gb")


def test_instances_that_are_alternatives_are_made_for_pods() -> None:
    """4 cards could have 28 of 1g.10gb, or 8 of 3g.40gb, or 4 of 7g.80gb, and not all of them."""
    labels = {"nvidia.com/gpu.product": A100, "nvidia.com/gpu.count": "4"}
    counts = {"nvidia.com/mig-1g.10gb": "28", "nvidia.com/mig-3g.40gb": "8", "nvidia.com/mig-7g.80gb": "4"}
    node, offers, _ = one(item(labels=labels, devices=counts))
    assert [(gpu.count, gpu.mig_enabled, gpu.mig_static, gpu.mig_layout) for gpu in node.gpus] == [(4, True, False, ())]
    assert (offers, node.extended) == ({}, {})


def test_shared_instances_are_cards_of_their_own() -> None:
    """8 units of 4 instances of which each is 2; of the other resource nothing says how many a unit is of."""
    labels = {
        "nvidia.com/gpu.product": A100,
        "nvidia.com/gpu.count": "1",
        "nvidia.com/mig-1g.10gb.count": "4",
        "nvidia.com/mig-1g.10gb.replicas": "2",
    }
    made = {"nvidia.com/mig-1g.10gb": "8", "nvidia.com/mig-2g.20gb.shared": "2"}
    node, offers, said = one(item(labels=labels, devices=made))
    (gpu,) = node.gpus
    assert (gpu.count, gpu.mig_instance, gpu.replicas, gpu.sharing) == (4, "1g.10gb", 2, "time_slicing")
    assert gpu.memory == "9856Mi"
    assert offers == {"nvidia.com/mig-1g.10gb": Offer((0, 1, 2, 3), 2, instance="1g.10gb")}
    assert node.extended == {"nvidia.com/mig-2g.20gb.shared": "2"}
    assert said == [
        "assumed: MIG instances that pods share",
        "assumed: shared MIG instances of which the kind, or how many a unit is of, is not known",
    ]


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
