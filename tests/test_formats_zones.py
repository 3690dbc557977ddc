"""NodeResourceTopology: NUMA zones of nodes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from placement.errors import InputError
from placement.formats.kubernetes import zones
from placement.formats.kubernetes.objects import Objects
from placement.formats.kubernetes.parts import Zones
from placement.formats.ledger import Ledger
from placement.formats.source import File
from placement.snapshot import NumaZone


def zone(name: str, costs: dict[str, int] | None = None, **resources: Any) -> dict[str, Any]:
    listed = [
        {"name": {"gpu": "nvidia.com/gpu", "nic": "vendor/nic"}.get(key, key), "capacity": value, "allocatable": value}
        for key, value in resources.items()
    ]
    distances = [{"name": other, "value": value} for other, value in (costs or {}).items()]
    return {"name": name, "type": "Node", "resources": listed, "costs": distances}


def topology(*listed: dict[str, Any], name: str = "n1", **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {"name": name},
        "zones": list(listed),
        **more,
    }


def read(*items: Any, strict: bool = False) -> tuple[dict[str, Zones], Ledger]:
    ledger = Ledger(strict)
    document = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(items)})
    return dict(zones.read(Objects([File("nrt.json", document.encode())]), ledger)), ledger


def said(ledger: Ledger) -> set[str]:
    return {entry.what for entry in ledger.entries() if entry.kind != "read"}


def test_zones_have_what_pods_may_use_and_cards() -> None:
    attributes = [{"name": "topologyManagerPolicy", "value": "restricted"}]
    one = topology(
        zone("node-0", cpu="31500m", memory="64Gi", gpu="4"),
        zone("node-1", cpu=32, memory="63Gi", gpu=2),
        attributes=attributes,
    )
    # what is free now is not what a zone has
    one["zones"][0]["resources"][0]["available"] = "1"
    found, ledger = read(one)
    assert found["n1"] == Zones(
        zones=(NumaZone(id=0, cpu="31500m", memory="64Gi"), NumaZone(id=1, cpu=32, memory="63Gi")),
        cards=(4, 2),
        policy="restricted",
    )
    assert said(ledger) == set()


def test_the_older_form_says_the_policy_in_a_list_and_may_have_capacity_alone() -> None:
    one = topology(zone("node-0", cpu="20"), topologyPolicies=["SingleNUMANodeContainerLevel"])
    one["apiVersion"] = "topology.node.k8s.io/v1alpha1"
    del one["zones"][0]["resources"][0]["allocatable"]
    found, ledger = read(one)
    assert found["n1"] == Zones(zones=(NumaZone(id=0, cpu="20"),), policy="single-numa-node")
    assert said(ledger) == {"scope of the topology manager"}


@pytest.mark.parametrize(
    ("listed", "policy"),
    [
        ("SingleNUMANodePodLevel", "single-numa-node"),
        ("Restricted", "restricted"),
        ("BestEffortPodLevel", "best-effort"),
    ],
)
def test_every_policy_has_its_name(listed: str, policy: str) -> None:
    found, _ = read(topology(zone("node-0", cpu=1), topologyPolicies=[listed]))
    assert found["n1"].policy == policy


def test_memory_of_cards_is_no_zone() -> None:
    # bytedance/xpu-perf issue 129: nine NUMA nodes, of which one has CPUs
    found, ledger = read(
        topology(
            zone("node-0", cpu=72, memory="480Gi", gpu=1), *(zone(f"node-{n}", memory="12Gi") for n in range(1, 9))
        )
    )
    assert found["n1"] == Zones(zones=(NumaZone(id=0, cpu=72, memory="480Gi"),), cards=(1,))
    assert said(ledger) == {"NUMA zones without CPU"}


def test_cards_in_a_zone_without_cpu_are_left_open() -> None:
    found, ledger = read(topology(zone("node-0", cpu=72), zone("node-1", gpu=1)))
    assert found["n1"].cards == ()
    assert "cards in a NUMA zone without CPU" in said(ledger)


def test_zones_keep_their_numbers() -> None:
    found, _ = read(topology(zone("numa-3", cpu=1), zone("numa-1", cpu=1)))
    assert [one.id for one in found["n1"].zones] == [3, 1]
    found, ledger = read(topology(zone("left", cpu=1), zone("right", cpu=1)))
    assert [one.id for one in found["n1"].zones] == [0, 1]
    assert said(ledger) == {"numbers of NUMA zones"}


def test_distances_that_differ_by_direction_are_named_and_not_mirrored() -> None:
    # between zones 6 and 7 as one machine says it: 11 one way and 13 the other
    pair = zone("node-6", {"node-6": 10, "node-7": 11}, cpu=1), zone("node-7", {"node-6": 13, "node-7": 10}, cpu=1)
    _, ledger = read(topology(*pair))
    assert said(ledger) == {"distance of NUMA zones that differs by direction", "distances of NUMA zones"}
    alike = zone("node-6", {"node-7": 11}, cpu=1), zone("node-7", {"node-6": 11}, cpu=1)
    _, ledger = read(topology(*alike))
    assert said(ledger) == {"distances of NUMA zones"}


def test_other_resources_by_zone_limit_placement_where_pods_are_aligned() -> None:
    free = topology(zone("node-0", cpu=1, nic=3))
    _, ledger = read(free, strict=True)
    assert said(ledger) == {"other resources by NUMA zone"}
    with pytest.raises(InputError, match="other resources by NUMA zone"):
        read({**free, "topologyPolicies": ["Restricted"]}, strict=True)


def test_amounts_that_only_some_zones_say_are_left_out() -> None:
    found, ledger = read(topology(zone("node-0", cpu=1, memory="1Gi"), zone("node-1", cpu=1)))
    assert [one.memory for one in found["n1"].zones] == [None, None]
    assert said(ledger) == {"memory of NUMA zones"}


def test_too_many_zones_and_zones_of_other_kinds_are_named() -> None:
    found, ledger = read(topology(*(zone(f"node-{n}", cpu=1) for n in range(9))))
    assert found == {}
    assert said(ledger) == {"NUMA zones of a node"}
    found, ledger = read(topology(zone("node-0", cpu=1), {"name": "core-0", "type": "Core"}))
    assert len(found["n1"].zones) == 1
    assert said(ledger) == {"zones that are no NUMA nodes"}
    found, ledger = read(topology())
    assert found == {}
    assert said(ledger) == {"NodeResourceTopology without zones"}


def test_the_first_of_two_objects_is_believed() -> None:
    found, ledger = read(topology(zone("node-0", cpu=1)), topology(zone("node-0", cpu=2)))
    assert found["n1"].zones[0].cpu == 1
    assert said(ledger) == {"several NodeResourceTopology objects of one node"}


@pytest.mark.parametrize(
    ("one", "what"),
    [
        (topology(zone("node-0", cpu="6GiB")), "items[0].zones[0].resources[0]: '6GiB' is not a quantity"),
        (topology(zone("node-0", cpu=-1)), "items[0].zones[0].resources[0]: -1 is negative"),
        (topology(zone("node-0", cpu=1, gpu="500m")), "items[0].zones: a zone has nvidia.com/gpu in fractions"),
        (topology(zone("node-0", cpu=1), name=""), "items[0].metadata.name: the object has no name"),
        (topology(zone("node-0", cpu=[])), "items[0].zones[0].resources[0].capacity"),
    ],
)
def test_what_is_no_amount_is_an_error_with_its_place(one: dict[str, Any], what: str) -> None:
    with pytest.raises(InputError) as raised:
        read(one)
    assert what in str(raised.value)
