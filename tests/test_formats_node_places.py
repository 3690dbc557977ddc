"""Nodes of Kubernetes: where their cards are in them, and where they are in the cluster."""

from __future__ import annotations

import pytest
from node_cases import A100, item, one, read

from placement.errors import InputError
from placement.formats.kubernetes.parts import Addition, Level, Zones
from placement.snapshot import NumaZone

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
