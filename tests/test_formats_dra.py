"""Dynamic resource allocation: slices, classes and claims read; allocations written."""

from __future__ import annotations

import json
from typing import Any

import pytest

import placement as pl
from placement.errors import InputError
from placement.formats.dra import read as dra
from placement.formats.dra import selectors, write
from placement.formats.kubernetes.objects import Objects
from placement.formats.kubernetes.parts import Claim, Devices
from placement.formats.ledger import Ledger
from placement.formats.source import File
from placement.snapshot import Gpu, Job, Node, Snapshot, Task, TaskGroup

DRIVER = "gpu.nvidia.com"
H100 = "NVIDIA H100 80GB HBM3"
LABEL = "NVIDIA-H100-80GB-HBM3"


def attributes(**said: str | int) -> dict[str, Any]:
    return {name: {"int" if isinstance(value, int) else "string": value} for name, value in said.items()}


def slots(*numbers: int) -> dict[str, Any]:
    return {f"memory-slice-{number}": {"value": "1"} for number in numbers}


def gpu(index: int, product: str = H100, memory: str = "81559Mi", **more: Any) -> dict[str, Any]:
    return {
        "name": f"gpu-{index}",
        "attributes": {
            **attributes(type="gpu", uuid=f"GPU-{index}", productName=product, index=index),
            "cudaComputeCapability": {"version": "9.0.0"},
        },
        "capacity": {"memory": {"value": memory}},
        "consumesCounters": [{"counterSet": f"gpu-{index}-counter-set", "counters": slots(*range(8))}],
        **more,
    }


def part(index: int, profile: str, name: str, *taken: int) -> dict[str, Any]:
    return {
        "name": name,
        "attributes": attributes(type="mig", parentUUID=f"GPU-{index}", productName=H100, profile=profile),
        "capacity": {"memory": {"value": "9984Mi"}},
        "consumesCounters": [{"counterSet": f"gpu-{index}-counter-set", "counters": slots(*taken)}],
    }


def piece(devices: list[dict[str, Any]], node: str = "n1", generation: int = 1, count: int = 1, **more: Any) -> Any:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-{generation}"},
        "spec": {
            "driver": DRIVER,
            "nodeName": node,
            "pool": {"name": node, "generation": generation, "resourceSliceCount": count},
            "devices": devices,
            **more,
        },
    }


def claim(name: str, request: dict[str, Any], status: Any = None, **devices: Any) -> Any:
    spec = {"devices": {"requests": [{"name": "r", **request}], **devices}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"namespace": "a", "name": name},
        "spec": spec,
        "status": status,
    }


def allocated(*devices: str, pool: str = "n1", pod: str = "p") -> dict[str, Any]:
    results = [{"request": "r", "driver": DRIVER, "pool": pool, "device": device} for device in devices]
    return {"allocation": {"devices": {"results": results}}, "reservedFor": [{"resource": "pods", "name": pod}]}


def device_class(name: str, *expressions: str) -> Any:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": expression}} for expression in expressions]},
    }


def read(*items: Any, strict: bool = False) -> tuple[Devices, Ledger]:
    ledger = Ledger(strict)
    document = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(items)})
    return dra.read(Objects([File("dump.json", document.encode())]), ledger), ledger


def said(ledger: Ledger) -> set[str]:
    return {entry.what for entry in ledger.entries() if entry.kind != "read"}


def exactly(class_name: str = DRIVER, *expressions: str, **more: Any) -> dict[str, Any]:
    chosen = [{"cel": {"expression": one}} for one in expressions]
    return {"exactly": {"deviceClassName": class_name, "selectors": chosen, **more}}


# --- slices ------------------------------------------------------------------------------------------------------


def test_cards_come_in_the_order_of_their_indices_with_what_they_are() -> None:
    devices, ledger = read(piece([gpu(10), gpu(2)]))
    first, second = devices.by_node["n1"]
    assert (first.name, second.name) == ("gpu-2", "gpu-10")
    assert (first.model, first.memory, first.uuid) == (LABEL, 81559 * 2**20, "GPU-2")
    assert first.compute_capability == "9.0"
    assert first.healthy
    assert first.whole
    assert first.profiles == {}
    assert devices.drivers == {"n1": (DRIVER, "n1")}
    assert said(ledger) == set()


def test_the_older_form_keeps_attributes_in_basic_and_quantities_bare() -> None:
    new = gpu(0)
    old = {"name": new.pop("name"), "basic": {**new, "capacity": {"memory": "81559Mi"}}}
    devices, _ = read({**piece([old]), "apiVersion": "resource.k8s.io/v1alpha3"})
    assert devices.by_node["n1"][0].memory == 81559 * 2**20
    assert devices.by_node["n1"][0].model == LABEL


def test_mig_devices_are_parts_of_the_card_whose_counters_they_draw_from() -> None:
    # names that say nothing: the counters alone say where the instances are
    devices, ledger = read(
        piece(
            [
                gpu(0),
                part(0, "3g.40gb", "x", 4, 5, 6, 7),
                part(0, "3g.40gb", "y", 0, 1, 2, 3),
                part(0, "1g.10gb", "z", 6),
            ]
        )
    )
    (card,) = devices.by_node["n1"]
    assert card.profiles == {"3g.40gb": (0, 4), "1g.10gb": (6,)}
    assert card.whole
    assert said(ledger) == set()


@pytest.mark.parametrize("name", ["gpu-3-mig-1g10gb-19-5", "gpu-3-mig-19-5-1"])
def test_a_card_that_only_has_mig_devices_is_read_from_their_names(name: str) -> None:
    device = part(3, "1g.10gb", name)
    del device["consumesCounters"]
    devices, _ = read(piece([device]))
    (card,) = devices.by_node["n1"]
    assert (card.name, card.model, card.uuid, card.whole) == ("gpu-3", LABEL, "GPU-3", False)
    assert card.profiles == {"1g.10gb": (5,)}


def test_only_the_newest_generation_of_a_pool_counts() -> None:
    devices, ledger = read(piece([gpu(0), gpu(1)]), piece([gpu(0)], generation=2))
    assert [card.name for card in devices.by_node["n1"]] == ["gpu-0"]
    assert said(ledger) == {"slice of an old generation of its pool"}


def test_cards_of_a_pool_with_missing_slices_are_not_used() -> None:
    devices, ledger = read(piece([gpu(0)], count=2))
    assert [card.healthy for card in devices.by_node["n1"]] == [False]
    assert said(ledger) == {"number of slices of a pool"}


def test_counters_may_be_in_a_slice_of_their_own() -> None:
    counters = piece([], count=2, sharedCounters=[{"name": "gpu-0-counter-set", "counters": slots(*range(8))}])
    devices, ledger = read(counters, piece([gpu(0)], count=2))
    assert [card.healthy for card in devices.by_node["n1"]] == [True]
    assert said(ledger) == set()


def test_tainted_cards_take_no_work() -> None:
    rule = {
        "apiVersion": "resource.k8s.io/v1alpha3",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "r"},
        "spec": {
            "deviceSelector": {"driver": DRIVER, "pool": "n1", "device": "gpu-1"},
            "taint": {"key": "broken", "effect": "NoExecute"},
        },
    }
    devices, _ = read(piece([gpu(0, taints=[{"key": "k", "effect": "NoSchedule"}]), gpu(1), gpu(2)]), rule)
    assert [card.healthy for card in devices.by_node["n1"]] == [False, False, True]


def test_a_taint_of_a_mig_device_keeps_its_card_free_of_new_work() -> None:
    tainted = {**part(0, "1g.10gb", "m", 6), "taints": [{"key": "k", "effect": "NoSchedule"}]}
    devices, ledger = read(piece([gpu(0), tainted]))
    assert not devices.by_node["n1"][0].healthy
    assert said(ledger) == {"card of a MIG device with a taint"}


def test_devices_of_other_kinds_and_of_no_single_node_are_named() -> None:
    channels = piece([{"name": "channel-0"}])
    channels["spec"]["driver"] = "compute-domain.nvidia.com"
    everywhere = piece([gpu(0)], node="")
    everywhere["spec"] |= {"allNodes": True, "pool": {"name": "shared", "generation": 1, "resourceSliceCount": 1}}
    devices, ledger = read(channels, everywhere)
    assert devices.by_node == {}
    assert said(ledger) == {"devices that are no cards", "devices that several nodes reach"}


def test_cards_of_other_drivers_are_cards() -> None:
    other = gpu(0, "AMD Instinct MI300X")
    other["attributes"]["type"] = {"string": "amdgpu"}
    slice_ = piece([other, {**part(0, "x", "p"), "attributes": attributes(type="amdgpu-partition")}])
    slice_["spec"]["driver"] = "gpu.amd.com"
    devices, ledger = read(slice_)
    assert [card.model for card in devices.by_node["n1"]] == ["AMD-Instinct-MI300X"]
    assert devices.drivers["n1"] == ("gpu.amd.com", "n1")
    assert said(ledger) == {"card in another form, or a part of it that is no MIG device"}


def test_a_slice_may_name_its_node_by_a_selector() -> None:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n7"]}]}
    devices, _ = read(piece([gpu(0)], node="", nodeSelector={"nodeSelectorTerms": [term]}))
    assert list(devices.by_node) == ["n7"]


@pytest.mark.parametrize(
    ("items", "what"),
    [
        ([piece([gpu(0), gpu(0)])], 'items[0].spec.devices[1]: the pool lists a device "gpu-0" twice'),
        ([piece([gpu(0, memory="80GiB")])], "items[0].spec.devices[0]: '80GiB' is not a quantity"),
        ([piece([gpu(0, memory="-1")])], "items[0].spec.devices[0]: '-1' is negative"),
        (
            [piece([gpu(0)]), claim("c", exactly(), allocated("gpu-0")), claim("d", exactly(), allocated("gpu-0"))],
            'the device "gpu-0" is allocated twice',
        ),
        ([claim("c", exactly(count=-1))], "found -1 devices"),
    ],
)
def test_what_cannot_be_is_an_error_with_its_place(items: list[Any], what: str) -> None:
    with pytest.raises(InputError) as raised:
        read(*items)
    assert what in str(raised.value)


# --- claims ------------------------------------------------------------------------------------------------------


def test_claims_ask_for_cards_or_for_mig_devices() -> None:
    devices, ledger = read(
        piece([gpu(0), part(0, "1g.10gb", "a", 0), part(0, "3g.40gb", "b", 4, 5, 6, 7)]),
        device_class(DRIVER, f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].type == 'gpu'"),
        device_class("mig.nvidia.com", f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].type == 'mig'"),
        claim("whole", exactly(count=4)),
        claim("part", exactly("mig.nvidia.com", f"device.attributes['{DRIVER}'].profile == '3g.40gb'")),
        claim("old", {"deviceClassName": DRIVER, "allocationMode": "ExactCount", "count": 2}),
        claim("first", {"firstAvailable": [{"name": "s", "deviceClassName": DRIVER, "count": 2}]}),
        claim("all", exactly(allocationMode="All")),
        claim("watch", exactly(adminAccess=True)),
    )
    asked = {name: (one.gpus, one.gpu_models, one.profile) for name, one in devices.claims.items()}
    assert asked == {
        "a/whole": (4, (), ""),
        "a/part": (1, (), "3g.40gb"),
        "a/old": (2, (), ""),
        "a/first": (2, (), ""),
        "a/all": (1, (), ""),
        "a/watch": (0, (), ""),
    }
    assert said(ledger) == {"request with admin access"}


def test_selectors_mean_the_models_whose_cards_pass() -> None:
    cluster = piece([gpu(0), gpu(1, "NVIDIA A100-SXM4-40GB", "40960Mi"), gpu(2, "NVIDIA L4", "23034Mi")])
    product = f"device.attributes['{DRIVER}'].productName"
    memory = f"device.capacity['{DRIVER}'].memory"
    devices, ledger = read(
        cluster,
        device_class(DRIVER, f"device.driver == '{DRIVER}'"),
        claim("name", exactly(DRIVER, f"{product} == '{H100}'")),
        claim("either", exactly(DRIVER, f"{product} in ['NVIDIA L4', '{H100}']")),
        claim("large", exactly(DRIVER, f"{memory}.compareTo(quantity('40Gi')) >= 0")),
        claim("larger", exactly(DRIVER, f"{memory} > quantity('40Gi')")),
        claim("any", exactly(DRIVER, f"{memory} >= quantity('1Gi')")),
        claim("absent", exactly(DRIVER, f"{product} == 'NVIDIA B200'")),
        claim("none", exactly(DRIVER, f"{memory} >= quantity('1Ti')")),
        claim("like", exactly(DRIVER, f"{product}.lowerAscii().matches('^.*a100.*$')")),
        claim("end", exactly(DRIVER, f"{product}.endsWith('L4')")),
        claim("start", exactly(DRIVER, f"{product}.matches('^L4')")),
    )
    a100, l4 = "NVIDIA-A100-SXM4-40GB", "NVIDIA-L4"
    assert {name: one.gpu_models for name, one in devices.claims.items()} == {
        "a/name": (LABEL,),
        "a/either": (LABEL, l4),
        "a/large": (a100, LABEL),
        "a/larger": (LABEL,),
        "a/any": (),
        "a/absent": ("NVIDIA-B200",),
        "a/none": ("no card that its claim admits",),
        "a/like": (a100,),
        "a/end": (l4,),
        "a/start": ("no card that its claim admits",),
    }
    assert said(ledger) == set()


def test_a_selector_of_another_form_is_named_and_refused_when_strict() -> None:
    items = (
        piece([gpu(0)]),
        device_class(DRIVER, f"device.driver == '{DRIVER}'"),
        claim("c", exactly(DRIVER, "device.attributes['x'].y.matches('^H+')  ||  true")),
    )
    _, ledger = read(*items)
    assert said(ledger) == {"selector of devices device.attributes['x'].y.matches('^H+') || true"}
    with pytest.raises(InputError, match="without --strict"):
        read(*items, strict=True)


def test_allocated_devices_are_cards_of_nodes() -> None:
    devices, ledger = read(
        piece([gpu(0), gpu(1), part(1, "1g.10gb", "m", 6), gpu(2)]),
        claim("two", exactly(count=2), allocated("gpu-2", "gpu-0", pod="w")),
        claim("m", exactly("mig.nvidia.com"), allocated("m")),
        claim("gone", exactly(), allocated("gpu-9")),
    )
    assert devices.claims["a/two"] == Claim(gpus=2, node="n1", cards=(2, 0), reserved_for=("w",))
    assert devices.claims["a/m"] == Claim(
        gpus=1, profile="1g.10gb", node="n1", cards=(1,), starts=(6,), reserved_for=("p",)
    )
    assert devices.claims["a/gone"] == Claim(gpus=1, reserved_for=("p",), request="r")
    assert "device that is allocated and that no slice lists" in said(ledger)


def test_a_device_may_be_shared_under_numbers_of_shares() -> None:
    shared = [allocated("gpu-0", pod=pod) for pod in ("p", "q")]
    for number, status in enumerate(shared):
        status["allocation"]["devices"]["results"][0]["shareID"] = f"00000000-0000-0000-0000-00000000000{number}"
    devices, ledger = read(
        piece([gpu(0, allowMultipleAllocations=True)]),
        *(claim(f"c{n}", exactly(), one) for n, one in enumerate(shared)),
    )
    assert [devices.claims[f"a/c{n}"].cards for n in range(2)] == [(0,), (0,)]
    assert "devices that several claims share" in said(ledger)


def test_a_card_given_away_whole_and_in_part_is_named() -> None:
    # kubernetes-sigs/dra-driver-nvidia-gpu issue 719
    _, ledger = read(
        piece([gpu(0), part(0, "3g.40gb", "gpu-0-mig-3g40gb-9-0", 0, 1, 2, 3)]),
        claim("whole", exactly(), allocated("gpu-0")),
        claim("part", exactly("mig.nvidia.com"), allocated("gpu-0-mig-3g40gb-9-0")),
    )
    assert "card that is allocated whole and as a MIG device" in said(ledger)


def test_a_claim_of_several_profiles_keeps_them_all() -> None:
    request = {"requests": [{"name": f"r{profile[0]}", **_of_profile(profile)} for profile in ("4g.40gb", "1g.10gb")]}
    one = claim("c", {}, **request, constraints=[{"matchAttribute": f"{DRIVER}/parentUUID"}])
    devices, ledger = read(piece([part(0, "4g.40gb", "a", 0, 1, 2, 3), part(0, "1g.10gb", "b", 4)]), one)
    asked = devices.claims["a/c"]
    assert [(part.profile, part.gpus) for part in (asked, *asked.more)] == [("4g.40gb", 1), ("1g.10gb", 1)]
    assert "devices of a claim that must be alike" in said(ledger)


def _of_profile(profile: str) -> dict[str, Any]:
    return exactly("mig.nvidia.com", f"device.attributes['{DRIVER}'].profile == '{profile}'")


def test_templates_are_read_like_claims() -> None:
    template = {
        "apiVersion": "resource.k8s.io/v1beta1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "t"},
        "spec": {"spec": {"devices": {"requests": [{"name": "r", "deviceClassName": DRIVER, "count": 8}]}}},
    }
    devices, _ = read(piece([gpu(0)]), template)
    assert devices.templates == {"default/t": Claim(gpus=8, request="r")}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "true",
        "a && b",
        "device.driver == 'x' || true",
        "((",
        "device.driver == x",
        "device.attributes['x'].y.matches('a|b')",
    ],
)
def test_other_expressions_are_not_guessed_at(text: str) -> None:
    assert selectors.tests(text) is None


# --- writing -----------------------------------------------------------------------------------------------------


def _snapshot(node: Node, task: Task, name: str = "a/p") -> Snapshot:
    return Snapshot(nodes=(node,), jobs=(Job(name=name, groups=(TaskGroup(name="pod", task=task),)),))


def _written(snapshot: Snapshot) -> Any:
    plan = pl.solve(snapshot, solver="fastest-fit")
    assert plan.checked
    assert len(plan.tasks) == 1
    return json.loads(write.write(snapshot, plan))


def test_a_plan_is_written_as_allocated_claims() -> None:
    node = Node(name="n1", gpus=(Gpu(model="A", count=2),), devices=("gpu-0", "gpu-1"))
    document = _written(_snapshot(node, Task(gpus=2)))
    (item,) = document["items"]
    assert document["kind"] == "List"
    assert item["metadata"] == {"namespace": "a", "name": "p"}
    assert item["status"]["allocation"]["devices"]["results"] == [
        {"request": "gpu", "driver": DRIVER, "pool": "n1", "device": "gpu-0"},
        {"request": "gpu", "driver": DRIVER, "pool": "n1", "device": "gpu-1"},
    ]
    # a reservation needs the uid of the pod: the scheduler makes it
    assert item["status"].keys() == {"allocation"}
    # what is written is read again as what was planned
    devices, _ = read(piece([gpu(0), gpu(1)]), item)
    assert devices.claims["a/p"].cards == (0, 1)


@pytest.mark.parametrize(
    ("devices", "task", "name", "what"),
    [
        ((), Task(gpus=1), "a/p", "what a ResourceSlice calls the cards"),
        (("GPU-0", "GPU-1"), Task(gpus=1), "a/p", "what a ResourceSlice calls the cards"),
        (("gpu-0", "gpu-1"), Task(gpus=1, gpu_share="500m"), "a/p", "takes a part of a card"),
        (("gpu-0", "gpu-1"), Task(gpus=1), "p", "which pod"),
    ],
)
def test_what_a_claim_cannot_say_is_not_written(devices: tuple[str, ...], task: Task, name: str, what: str) -> None:
    node = Node(name="n1", gpus=(Gpu(model="A", count=2),), devices=devices)
    with pytest.raises(InputError, match=what):
        _written(_snapshot(node, task, name))
