"""What users of schedulers reported as wrong, as objects and files of a cluster: the answer must be right.

Reports are named by system and number; the numbers in them are facts, the inputs here are this project's own. Those of
Kueue are in test_formats_kueue_whole.py, and what MIG and shared cards are, whatever the format, in
test_mig_reports.py. Where each of the 82 reports that were looked at has its test:

===========  ==========================================================================================================
1-3, 5, 8    kueue_whole: all pods take slots; pod sets share what there is; full nodes; what no queue counts
4, 10        kueue_whole: a leader does not take the place of a worker; overfull nodes count as full
11, 12       kueue_whole: amounts beyond 64 bits; kueue: a quota of an exabyte of cores, quotas out of range
14           here: nothing of a resource (in a full and in an overdrawn queue)
15, 114      kueue_whole: a hundred small pods; nodes that lack a label of the topology
16, 17       here: slices make racks equal; a gang without a rule is noted
18, 19       here: a tier by its name, soft mode
21, 22, 29   here: a whole rack, claims made on demand, a gang beyond its limit
23           here: cards free on two sockets
24, 25, 27   here: less than a gang, two gangs for one place; volcano: a gang that lost a pod
31           here: a gang of coscheduling or Koordinator
32, 33, 37   here: nothing allocatable; finished pods; one card for three
34-36, 39    here: memory and shares of each card
38           here: what is short is named
41           here: tenths
42, 43       here: pods on nodes that just fit; ranks side by side
44           here: work without cards leaves them what they need
46           a ranking of HAMi's: plans fill cards and do not spread over them; not ours
48, 49       here: several shares add up; a bare number needs a unit
52, 53, 55   here: counted once; whole cards beside instances; several shares
56-59, 61    here: a card or its instance; alternatives; media engines; layouts; a profile of another card
62, 66-73    here: files of Slurm
63, 65       here: pairs of one zone; zones without CPUs (zones: memory of cards is no zone)
75-81        here: amounts of memory
82, 89       highs: a bound is a bound; highs_past, exact_rounding: points are whole and feasible, and checked as such
84, 90, 91   highs_past: magnitudes that differ much, whole data is not exceeded by a tolerance
85, 86       highs_past: magnitudes that differ much; soundness: a heavy gang hides nothing; highs: presolve, safe bound
93, 96       highs: no values at a limit of 0 seconds, what there is at a limit; exact_rounding: time that runs out
97, 99       soundness: values beyond a double; units: refused; nobody guesses a bound: it comes from the data
100          highs: infeasible holds nothing
101-103      read: wrong snapshots (NaN by its place); here: amounts of memory
109, 110     here: sidecars and overhead
115          here: files of Slurm
===========  ==========================================================================================================
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
import slurm_records as slurm

import placement as pl
from placement.errors import InputError
from placement.formats.read import read
from placement.formats.source import File
from placement.snapshot import NumaZone, Snapshot

Object = dict[str, Any]

GPU = "nvidia.com/gpu"
WITHOUT = ("queues", "jobs.queue", "jobs.preemptible", "jobs.running.since")
CLIQUE = "nvidia.com/gpu.clique"
H100 = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}


def node(name: str, labels: Any = None, capacity: Any = None, **amounts: Any) -> Object:
    has = {"cpu": "64", "memory": "256Gi", "pods": "110", **{key: str(value) for key, value in amounts.items()}}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": {},
        "status": {
            "allocatable": has,
            "capacity": {**has, **(capacity or {})},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def gpus(name: str, number: int, rack: str = "") -> Object:
    return node(name, H100 | ({CLIQUE: rack} if rack else {}), **{GPU: number})


def pod(name: str, on: str = "", asks: Object | None = None, notes: Object | None = None, **more: Any) -> Object:
    phase = more.pop("phase", "Running" if on else "Pending")
    meta = {"name": name, "namespace": "ns", "uid": name, "labels": more.pop("labels", {}), "annotations": notes or {}}
    container = {"name": "c", "resources": {"requests": asks or {}, "limits": asks or {}}}
    spec = {"containers": [container], **({"nodeName": on} if on else {}), **more}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": phase}}


def made(version: str, kind: str, name: str, spec: Any, **more: Any) -> Object:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "ns"}, "spec": spec, **more}


def snapshot_of(*objects: Object, strict: bool = False) -> Snapshot:
    data = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}).encode()
    return read([File("dump.json", data)], strict=strict)


def solved(snapshot: Snapshot, proven: bool = True, **more: Any) -> pl.Plan:
    """Return a plan that the judge accepts, and that is proven unless not asked for."""
    plan = pl.solve(snapshot, without=WITHOUT, **{"solver": "exact", **more})
    assert pl.check(snapshot, plan, without=WITHOUT) == []
    assert plan.status == "proven" or not proven
    return plan


def places(*objects: Object) -> list[tuple[str, str, tuple[int, ...]]]:
    """Return job, node and cards of each task that starts."""
    return [(job, on, tuple(cards)) for job, _, _, on, cards in solved(snapshot_of(*objects)).tasks]


def started(*objects: Object) -> int:
    return len(places(*objects))


def noted(snapshot: Snapshot, kind: str) -> dict[str, str]:
    return {entry.what: entry.why for entry in snapshot.ledger if entry.kind == kind}


# --- what is in use, and what is short -------------------------------------------------------------------------------


def test_nothing_allocatable_below_what_is_used_is_nothing_free() -> None:
    """Volcano 2999: the device plugin restarts, and 0 of the 8 cards that a pod has are allocatable."""
    running = pod("old", "n", {GPU: 8})
    down = node("n", H100, {GPU: "8"}, **{GPU: 0})
    snapshot = snapshot_of(down, running, pod("new", "", {GPU: 1}))
    assert not solved(snapshot).tasks
    assert "cards that are there and not allocatable" in noted(snapshot, "contradiction")
    assert [sum(gpu.count for gpu in snapshot.nodes[0].gpus), len(snapshot.jobs)] == [8, 2]
    # the count returns: full, and free as soon as the pod is over
    assert started(gpus("n", 8), running, pod("new", "", {GPU: 1})) == 0
    assert started(gpus("n", 8), {**running, "status": {"phase": "Failed"}}, pod("new", "", {GPU: 8})) == 1


@pytest.mark.parametrize(("phase", "free"), [("Succeeded", 8), ("Failed", 8), ("Running", 0), ("Pending", 0)])
def test_only_finished_pods_hold_nothing(phase: str, free: int) -> None:
    """Volcano 4998."""
    new = [pod(f"new-{i}", "", {GPU: 1}) for i in range(9)]
    assert started(gpus("n", 8), pod("old", "n", {GPU: 8}, phase=phase), *new) == free


def test_one_card_is_for_one_of_three() -> None:
    """KAI: two queues sent three pods to a node of one card."""
    queues = [made("scheduling.run.ai/v2", "Queue", name, {"resources": {"gpu": {"quota": 1}}}) for name in "ab"]
    pods = [pod(f"p{i}", "", {GPU: 1}, labels={"kai.scheduler/queue": "ab"[i % 2]}) for i in range(3)]
    assert started(gpus("n", 1), *queues, *pods) == 1


@pytest.mark.parametrize(
    ("there", "old", "new", "short"),
    [
        # 32,457,011,200 - 32,290,433,792 = 166,577,408 bytes are left of 2,147,483,648
        ({"memory": "32457011200"}, {"memory": "32290433792"}, {"memory": "2147483648"}, "too little memory"),
        ({"cpu": "4"}, {"cpu": "3500m"}, {"cpu": "501m"}, "too little cpu"),
        ({"pods": "1"}, {}, {}, "too few pods"),
        ({"example.com/key": 2}, {"example.com/key": 1}, {"example.com/key": 2}, "too little example.com/key"),
        ({}, {GPU: 7}, {GPU: 2}, "too few cards are free"),
        ({}, {GPU: 8}, {}, "no card has enough free"),
    ],
)
def test_what_is_short_is_named(there: Object, old: Object, new: Object, short: str) -> None:
    """KAI: cards are free, and people think that the scheduler is wrong; what is missing is something else."""
    cluster = node("n", H100, **{GPU: 8, **there})
    plan = solved(snapshot_of(cluster, pod("old", "n", {GPU: 1, **old}), pod("new", "", {GPU: 1, **new})))
    (entry,) = plan.pending
    assert (entry.job, entry.reason) == ("ns/new", "no_room")
    assert entry.detail.endswith(f"(1: {short})")


def test_sidecars_and_overhead_count() -> None:
    """KubeRay 4996: 1 + 1 + 1 cores do not fit on 2. Volcano 5829: 4 + 4 units of 1 + 1 cards of 8."""
    beside = [{"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}]
    waits = pod("p", "", {"cpu": "1"}, initContainers=beside, overhead={"cpu": "1"})
    assert started(node("two", cpu="2"), waits) == 0
    assert started(node("three", cpu="3"), waits) == 1
    asks = {"volcano.sh/gpu-memory": "4", "volcano.sh/gpu-number": "1"}
    beside = [{"name": "s", "restartPolicy": "Always", "resources": {"limits": asks}}]
    units = node("n", **{"volcano.sh/gpu-memory": 16, "volcano.sh/gpu-number": 2})
    # half of both cards each
    two = [pod(f"p{i}", "", asks, initContainers=beside) for i in range(3)]
    assert Counter(cards for _, _, cards in places(units, *two)) == {(0, 1): 2}


AMOUNTS = {
    # as written: bytes, rounded up
    "256m": 1,
    "0.001Mi": 1049,
    "1048576m": 1049,
    "1288490188800m": 1_288_490_189,
    "1.2Gi": 1_288_490_189,
    "2.85Gi": 3_060_164_199,
    "3060164198400m": 3_060_164_199,
    "0.5Gi": 2**29,
    "1Pi": 2**50,
    "1Ei": 2**60,
    "1E": 10**18,
    "12e6": 12_000_000,
}


@pytest.mark.parametrize("written", AMOUNTS)
def test_a_byte_less_than_asked_is_too_little(written: str) -> None:
    """Kubernetes 49559, 64011 and others: the same on the side of the node, and of the pod that asks."""
    size = AMOUNTS[written]
    ask = pod("p", "", {"memory": written})
    assert started(node("n", memory=str(size)), ask) == 1
    assert started(node("n", memory=str(size - 1)), ask) == 0
    # amounts of models are rounded to what is surely there: a mebibyte beside must suffice, and less than it must not
    assert started(node("n", memory=written), pod("p", "", {"memory": str(max(0, size - 2**20 - 1))})) == 1
    assert started(node("n", memory=written), pod("p", "", {"memory": str(size + 1)})) == 0
    fraction = "memory in thousandths of a byte" in noted(snapshot_of(node("n"), ask), "assumed")
    assert fraction is (written in {"256m", "0.001Mi", "1048576m", "1.2Gi", "2.85Gi"} or written.endswith("00m"))


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("6GiB", r'(write "6Gi"|did you mean 6Gi\?)'),
        ("NaNm", "quantity"),
        ("nan", "quantity"),
        ("12x", "quantity"),
        ("m", "quantity"),
    ],
)
def test_what_is_no_amount_is_refused_by_its_place(written: str, said: str) -> None:
    """An unknown suffix is never 0, and NaN never goes on."""
    for objects, place in (
        ([node("n", memory=written)], "items[0].status.allocatable"),
        ([node("n"), pod("p", "", {"memory": written})], "items[1].spec.containers[0].resources"),
    ):
        with pytest.raises(InputError) as error:
            snapshot_of(*objects)
        assert re.search(said, str(error.value))
        assert f"dump.json: {place}" in str(error.value)


# --- parts of cards --------------------------------------------------------------------------------------------------


def test_memory_is_of_one_card() -> None:
    """Volcano 3616: 3 x 12288 > 24576. KAI 416: 23 x 2000 = 46000, 24 x 2000 = 48000 > 46068."""
    vgpu = node("n", **{"volcano.sh/vgpu-number": 20, "volcano.sh/vgpu-memory": 49152})
    vgpu["metadata"]["annotations"] = {
        "volcano.sh/node-vgpu-register": "".join(f"GPU-{i},10,24576,NVIDIA-A30,true:" for i in range(2))
    }
    half = {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "12288"}
    assert started(vgpu, *[pod(f"p{i}", "", half) for i in range(6)]) == 4
    # two thirds: one on each card, though 3 x 16384 is all there is of memory
    large = {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "16384"}
    assert started(vgpu, *[pod(f"p{i}", "", large) for i in range(3)]) == 2
    l40 = node("n", {**H100, "nvidia.com/gpu.memory": "46068"}, **{GPU: 1})
    assert started(l40, *[pod(f"p{i}", notes={"gpu-memory": "2000"}) for i in range(24)]) == 23


def test_without_a_register_it_is_said_that_cards_are_not_known() -> None:
    vgpu = node("n", **{"volcano.sh/vgpu-number": 10, "volcano.sh/vgpu-memory": 24576})
    assert "parts of cards of which nothing says how many are a card" in noted(snapshot_of(vgpu), "assumed")


def test_shares_are_of_one_card() -> None:
    """KAI: 16 halves on 8 cards are 2 on each. Ray: 0.4 + 0.4 left on two cards are not 0.8."""
    halves = places(gpus("n", 8), *[pod(f"p{i}", notes={"gpu-fraction": "0.5"}) for i in range(17)])
    assert Counter(cards for _, _, cards in halves) == {(card,): 2 for card in range(8)}
    old = [
        pod(f"old-{i}", "n", notes={"gpu-fraction": "0.6"}, labels={"runai-gpu-group": f"group-{i}"}) for i in range(2)
    ]
    for share, fits in (("0.8", 0), ("0.41", 0), ("0.4", 1)):
        assert started(gpus("n", 2), *old, pod("new", notes={"gpu-fraction": share})) == fits


def test_tenths_are_exact() -> None:
    """Ray: 0.1 + 0.9 and 0.9 of two cards, of which the last never started."""
    pods = [pod(f"p{i}", notes={"gpu-fraction": share}) for i, share in enumerate(("0.1", "0.9", "0.9"))]
    assert started(gpus("n", 2), *pods) == 3
    assert started(gpus("n", 1), *[pod(f"p{i}", notes={"gpu-fraction": "0.1"}) for i in range(11)]) == 10


def test_several_shares_divide_the_memory_that_they_ask_for() -> None:
    """Koordinator 2097: 160 GiB for four shares are 40 GiB of each of four cards of 80; two such fit on four cards."""
    core = {f"koordinator.sh/{name}": 400 for name in ("gpu", "gpu-core", "gpu-memory-ratio")}
    cards = node("n", {"node.koordinator.sh/gpu-model": "A100"}, **core, **{"koordinator.sh/gpu-memory": "320Gi"})
    asks = {"koordinator.sh/gpu.shared": "4", "koordinator.sh/gpu-memory": "160Gi"}
    found = places(cards, *[pod(f"p{i}", "", asks) for i in range(3)])
    assert [on for _, _, on in found] == [(0, 1, 2, 3)] * 2
    assert [gpu.memory for gpu in snapshot_of(cards).nodes[0].gpus] == [80 * 2**30]


def test_a_bare_number_means_what_the_node_says() -> None:
    """Alibaba's gpushare: 10 is most of a card of 11 units (GiB), and hardly anything of one of 12036 (MiB)."""
    two = [pod(f"p{i}", "", {"aliyun.com/gpu-mem": "10"}) for i in range(2)]
    assert started(node("n", **{"aliyun.com/gpu-count": 1, "aliyun.com/gpu-mem": 11}), *two) == 1
    assert started(node("n", **{"aliyun.com/gpu-count": 1, "aliyun.com/gpu-mem": 12036}), *two) == 2
    # where nothing says the unit, amounts are counted, and it is said
    bare = snapshot_of(node("n", **{"aliyun.com/gpu-mem": 11}), *two)
    assert len(solved(bare).tasks) == 1
    assert "parts of cards of which nothing says how many are a card" in noted(bare, "assumed")


def test_two_shares_are_no_larger_share() -> None:
    """NVIDIA's device plugin: two of four replicas are of two cards, and none of a node with one."""
    labels = {"nvidia.com/gpu.product": "Tesla-T4", "nvidia.com/gpu.replicas": "4"}
    two = pod("p", "", {"nvidia.com/gpu.shared": "2"})
    assert places(node("n", labels, **{"nvidia.com/gpu.shared": 8}), two) == [("ns/p", "n", (0, 1))]
    snapshot = snapshot_of(node("n", labels, **{"nvidia.com/gpu.shared": 8}), two)
    assert "several shares of cards" in noted(snapshot, "assumed")


# --- MIG -------------------------------------------------------------------------------------------------------------

A100, A100_80, A30 = "NVIDIA-A100-SXM4-40GB", "NVIDIA-A100-SXM4-80GB", "NVIDIA-A30"
CAPACITIES = {"1g.5gb": 28, "2g.10gb": 12, "3g.20gb": 8, "4g.20gb": 4, "7g.40gb": 4}


def sliced(model: str, cards: int, profiles: dict[str, int], **more: Any) -> Object:
    labels = {"nvidia.com/gpu.product": model, "nvidia.com/gpu.count": str(cards), "nvidia.com/mig.strategy": "mixed"}
    return node("n", labels, **{f"nvidia.com/mig-{name}": count for name, count in profiles.items()}, **more)


def instances(start: str, *profiles: str, on: str = "") -> list[Object]:
    return [pod(f"{start}{i}", on, {f"nvidia.com/mig-{profile}": 1}) for i, profile in enumerate(profiles)]


@pytest.mark.parametrize("busy", [0, 1, 3, 4])
def test_capacities_of_profiles_are_alternatives(busy: int) -> None:
    """InstaSlice 285: a 7g needs a card on which nothing runs, though 4 are advertised beside 28 of 1g."""
    cluster = sliced(A100, 4, CAPACITIES)
    where = [{"gpu-placement.io/gpus": f"{i}", "gpu-placement.io/mig-starts": "0"} for i in range(busy)]
    old = [pod(f"old-{i}", "n", {"nvidia.com/mig-1g.5gb": 1}, notes) for i, notes in enumerate(where)]
    new = instances("new-", *["7g.40gb"] * 4)
    assert started(cluster, *old, *new) == 4 - busy
    # where nothing says the cards, they share one as far as they can
    old = instances("old-", *["1g.5gb"] * busy, on="n")
    assert started(cluster, *old, *new) == (4 if not busy else 3)


def test_running_instances_of_alternatives_are_where_all_of_them_can_be() -> None:
    """1g + 1g + 1g + 4g are the slices of one card, with 4g at slot 0; 3g + 2g + 1g of another: 7g has two of four.

    Whatever the order in which they are listed: the small ones do not take the only slot of the large one.
    """
    cluster = sliced(A100, 4, CAPACITIES)
    old = instances("old-", *["1g.5gb"] * 3, "4g.20gb", "3g.20gb", "2g.10gb", "1g.5gb", on="n")
    for order in (old, old[::-1]):
        snapshot = snapshot_of(cluster, *order, *instances("new-", *["7g.40gb"] * 4))
        assert noted(snapshot, "contradiction") == {}
        assert len(solved(snapshot).tasks) == 2


def test_an_instance_that_the_node_no_longer_offers_keeps_its_card_closed() -> None:
    """A pod has a 1g on a node that now offers two of 3g: one of them cannot be there."""
    snapshot = snapshot_of(
        sliced(A100, 1, {"3g.20gb": 2}), *instances("old-", "1g.5gb", on="n"), *instances("new-", "3g.20gb")
    )
    assert not solved(snapshot).tasks
    assert "a pod runs with cards or instances of which its node has none left" in noted(snapshot, "contradiction")


def test_media_engines_make_another_profile() -> None:
    """InstaSlice 478: 2g.12gb beside two 1g.6gb was taken to be 2g.12gb+me, of which a card has one."""
    both = {"1g.6gb": 4, "2g.12gb": 2, "4g.24gb": 1}
    old = instances("old-", "1g.6gb", "1g.6gb", on="n")
    assert started(sliced(A30, 1, both), *old, *instances("new-", "2g.12gb", "2g.12gb")) == 1
    fixed = sliced(A30, 1, {"1g.6gb": 2, "2g.12gb": 1})
    assert started(fixed, *old, *instances("me-", "2g.12gb.me")) == 0
    assert started(fixed, *old, *instances("new-", "2g.12gb")) == 1


@pytest.mark.parametrize(
    "profiles", [["7g.80gb"], ["2g.20gb"] * 3, ["3g.40gb", "4g.40gb"], ["1g.10gb", "2g.20gb", "4g.40gb"]], ids="+".join
)
def test_legal_layouts_are_not_called_impossible(profiles: list[str]) -> None:
    """NVIDIA/mig-parted 29."""
    cluster = sliced(A100_80, 1, Counter(profiles))
    assert snapshot_of(cluster).nodes[0].extended == {}
    assert started(cluster, *instances("p", *profiles, *profiles)) == len(profiles)


def test_an_instance_counts_once_by_the_name_of_its_resource() -> None:
    """NVIDIA/gpu-feature-discovery 7: a label rounds 3g.20gb to 3g.21gb. nos: 3g.20gb is none of a card of 80 GB."""
    there = sliced(A100, 1, {"3g.20gb": 2})
    there["metadata"]["labels"]["nvidia.com/mig-3g.21gb.count"] = "2"
    assert started(there, *instances("p", *["3g.20gb"] * 3)) == 2
    wrong = snapshot_of(sliced(A100_80, 1, {"2g.20gb": 2, "3g.20gb": 1}))
    assert "a MIG profile that the card model does not have" in noted(wrong, "contradiction")


def test_whole_cards_are_those_that_are_allocatable() -> None:
    """NVIDIA/k8s-device-plugin 738: the label says 8 cards, of which 4 are cut into 28."""
    cluster = sliced(A100_80, 8, {"1g.10gb": 28}, **{GPU: 4})
    whole = [pod(f"whole-{i}", "", {GPU: 1}) for i in range(8)]
    found = places(cluster, *whole, *instances("part-", *["1g.10gb"] * 30))
    assert Counter(name.split("/")[1].split("-")[0] for name, _, _ in found) == {"whole": 4, "part": 28}


def test_a_card_is_given_away_whole_or_in_part() -> None:
    """kubernetes-sigs/dra-driver-nvidia-gpu 719: the device of the card, and that of an instance of it."""

    def counters(*slots: int) -> Object:
        taken = {f"memory-slice-{slot}": {"value": "1"} for slot in slots}
        return {"consumesCounters": [{"counterSet": "gpu-0-counter-set", "counters": taken}]}

    name = {"productName": {"string": "NVIDIA H100 80GB HBM3"}}
    card = {"type": {"string": "gpu"}, "uuid": {"string": "GPU-0"}, "index": {"int": 0}, **name}
    part = {"type": {"string": "mig"}, "parentUUID": {"string": "GPU-0"}, "profile": {"string": "3g.40gb"}, **name}
    devices = [
        {"name": "gpu-0", "attributes": card, "capacity": {"memory": {"value": "81559Mi"}}, **counters(*range(8))},
        {"name": "gpu-0-mig-3g40gb-9-4", "attributes": part, **counters(4, 5, 6, 7)},
    ]
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.nvidia.com", "nodeName": "n", "pool": pool, "devices": devices}
    asks = [
        made(
            "resource.k8s.io/v1",
            "ResourceClaim",
            kind,
            {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": f"{kind}.nvidia.com"}}]}},
        )
        for kind in ("gpu", "mig")
    ]
    classes = [
        made(
            "resource.k8s.io/v1",
            "DeviceClass",
            f"{kind}.nvidia.com",
            {"selectors": [{"cel": {"expression": f"device.attributes['gpu.nvidia.com'].type == '{kind}'"}}]},
        )
        for kind in ("gpu", "mig")
    ]
    pods = [pod(kind, resourceClaims=[{"name": "c", "resourceClaimName": kind}]) for kind in ("gpu", "mig")]
    slices = made("resource.k8s.io/v1", "ResourceSlice", "s", spec)
    assert started(node("n"), slices, *classes, *asks, *pods) == 1


# --- gangs -----------------------------------------------------------------------------------------------------------


def volcano(name: str = "pg", **spec: Any) -> Object:
    return made("scheduling.volcano.sh/v1beta1", "PodGroup", name, spec, status={"phase": "Inqueue"})


def members(asks: Sequence[Object], on: Sequence[str] = (), group: str = "pg", **more: Any) -> list[Object]:
    notes = {"scheduling.k8s.io/group-name": group}
    where = [*on, *[""] * (len(asks) - len(on))]
    return [
        pod(f"{group}-{i}", place, one, notes, **more) for i, (place, one) in enumerate(zip(where, asks, strict=True))
    ]


def hypernode(name: str, tier: int, members_: Sequence[str], kind: str = "Node", called: str = "") -> Object:
    listed = [{"type": kind, "selector": {"exactMatch": {"name": member}}} for member in members_]
    spec = {"tier": tier, "members": listed, **({"tierName": called} if called else {})}
    return made("topology.volcano.sh/v1alpha1", "HyperNode", name, spec)


def test_a_gang_starts_whole_or_not() -> None:
    """Volcano 2462: 8 places for 20. 3373: 100 places for two gangs of 100."""
    assert started(gpus("a", 4), gpus("b", 4), volcano(minMember=20), *members([{GPU: 1}] * 20)) == 0
    groups = [volcano(name, minMember=100) for name in "xy"]
    pods = [one for name in "xy" for one in members([{GPU: 1}] * 100, group=name)]
    assert Counter(job for job, _, _ in places(*[gpus(f"n{i}", 1) for i in range(100)], *groups, *pods)) in (
        {"ns/x": 100},
        {"ns/y": 100},
    )


def test_a_gang_that_lost_a_pod_gets_what_is_missing() -> None:
    """Volcano 5805: three of four run; the fourth starts where there is room, and waits where there is none."""
    gang = volcano(minMember=4), *members([{GPU: 1}] * 4, ["n"] * 3)
    assert places(gpus("n", 4), *gang) == [("ns/pg#pending", "n", (3,))]
    assert places(gpus("n", 3), *gang) == []


@pytest.mark.parametrize(
    ("labels", "notes", "version"),
    [
        ({"scheduling.x-k8s.io/pod-group": "g"}, {}, "scheduling.x-k8s.io/v1alpha1"),
        ({"pod-group.scheduling.sigs.k8s.io": "g"}, {}, "scheduling.sigs.k8s.io/v1alpha1"),
        ({"pod-group.scheduling.sigs.k8s.io/name": "g", "pod-group.scheduling.sigs.k8s.io/min-available": "2"}, {}, ""),
        ({}, {"gang.scheduling.koordinator.sh/name": "g", "gang.scheduling.koordinator.sh/min-available": "2"}, ""),
    ],
)
def test_devices_are_for_the_whole_gang(labels: Object, notes: Object, version: str) -> None:
    """Koordinator 1136: one card, a gang of two; the first pod got it before the gang was found to be incomplete."""
    groups = [made(version, "PodGroup", "g", {"minMember": 2})] if version else []
    pods = [pod(f"p{i}", "", {GPU: 1}, notes, labels=labels) for i in range(3)]
    assert started(gpus("n", 1), *groups, *pods) == 0
    # two of three suffice
    assert started(gpus("n", 2), *groups, *pods) == 2
    assert {job for job, _, _ in places(gpus("n", 3), *groups, *pods)} == {"ns/g"}
    # with one of the three running, one more is needed, and two are wanted
    running = pod("p0", "n", {GPU: 1}, notes, labels=labels)
    assert places(gpus("n", 2), *groups, running, *pods[1:]) == [("ns/g#pending", "n", (1,))]


def test_wrong_gangs_of_coscheduling_are_named() -> None:
    with pytest.raises(InputError, match=r"items\[1\]\.spec: minMember is 0, expected 1 or more"):
        snapshot_of(gpus("n", 1), made("scheduling.x-k8s.io/v1alpha1", "PodGroup", "g", {"minMember": 0}))
    light = {"gang.scheduling.koordinator.sh/name": "g", "gang.scheduling.koordinator.sh/min-available": "two"}
    with pytest.raises(InputError, match=r'items\[1\]\.metadata: .*min-available is "two", expected a whole number'):
        snapshot_of(gpus("n", 1), pod("p", "", {GPU: 1}, light))
    together = light | {
        "gang.scheduling.koordinator.sh/min-available": "1",
        "gang.scheduling.koordinator.sh/groups": '["ns/g", "ns/h"]',
    }
    cluster = gpus("n", 1), pod("p", "", {GPU: 1}, together)
    assert "gangs that start together" in noted(snapshot_of(*cluster), "ignored")
    with pytest.raises(InputError, match="gangs that start together"):
        snapshot_of(*cluster, strict=True)


def test_a_group_that_no_object_describes_is_no_gang() -> None:
    pods = [pod(f"p{i}", "", {GPU: 1}, labels={"scheduling.x-k8s.io/pod-group": "lost"}) for i in range(2)]
    assert started(gpus("n", 1), *pods) == 1


def test_a_gang_beyond_the_limit_of_its_queue_waits() -> None:
    """KAI 500: six workers of a queue that may have four cards, of 8 that are free."""

    def gang(limit: int) -> list[Object]:
        queue = made("scheduling.run.ai/v2", "Queue", "q", {"resources": {"gpu": {"quota": -1, "limit": limit}}})
        group = made("scheduling.run.ai/v2alpha2", "PodGroup", "pg", {"minMember": 6, "queue": "q"})
        return [queue, group, *[pod(f"p{i}", "", {GPU: 1}, {"pod-group-name": "pg"}) for i in range(6)]]

    refused = pl.preempt(snapshot_of(gpus("n", 8), *gang(4)))
    assert (refused.started, [one.reason for one in refused.waiting]) == ((), ["quota"])
    assert pl.preempt(snapshot_of(gpus("n", 8), *gang(6))).started == ("ns/pg",)


@pytest.mark.parametrize("claims", [False, True])
def test_an_idle_rack_is_not_refused(claims: bool) -> None:
    """KAI 1217 and 577: 16 and 17 of 18 nodes; claims that appear once a pod is on its node are not missing."""
    label = {"levels": [{"nodeLabel": CLIQUE}]}
    rule = {"topology": "t", "requiredTopologyLevel": CLIQUE}
    channel = {"name": "c", "exactly": {"deviceClassName": "compute-domain-default-channel.nvidia.com"}}
    template = made("resource.k8s.io/v1", "ResourceClaimTemplate", "cd", {"spec": {"devices": {"requests": [channel]}}})
    claimed = {"resourceClaims": [{"name": "c", "resourceClaimTemplateName": "cd"}]} if claims else {}
    size = 17 if claims else 16
    found = places(
        *[gpus(f"n{i}", 4, rack="r") for i in range(18)],
        made("kai.scheduler/v1alpha1", "Topology", "t", label),
        made("scheduling.run.ai/v2", "Queue", "q", {}),
        made(
            "scheduling.run.ai/v2alpha2",
            "PodGroup",
            "pg",
            {"minMember": size, "queue": "q", "topologyConstraint": rule},
        ),
        template,
        *[pod(f"p{i}", "", {GPU: 4}, {"pod-group-name": "pg"}, **claimed) for i in range(size)],
    )
    assert len({on for _, on, _ in found}) == size


def test_pods_go_to_nodes_that_just_fit() -> None:
    """Ray: 8, 16 and 16 cores on nodes of 8, 16 and 16, in whatever order they are listed."""
    nodes = [node(name, cpu=cores) for name, cores in (("a", "16"), ("b", "8"), ("c", "16"))]
    for cores in (("8", "16", "16"), ("16", "8", "16"), ("16", "16", "8")):
        snapshot = snapshot_of(*nodes, volcano(minMember=3), *members([{"cpu": one} for one in cores]))
        plan = solved(snapshot)
        size = {group.name: group.task.cpu for group in snapshot.jobs[0].groups if group.task is not None}
        assert sorted((on, str(size[group])) for _, group, _, on, _ in plan.tasks) == [
            ("a", "16"),
            ("b", "8"),
            ("c", "16"),
        ]


def test_ranks_are_side_by_side() -> None:
    """Ray: eight bundles on two nodes of four: 0-3 on the one and 4-7 on the other."""
    pods = members([{GPU: 1}] * 8)
    for number, one in enumerate(pods):
        one["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] = str(number)
    snapshot = snapshot_of(gpus("a", 4), gpus("b", 4), volcano(minMember=8), *reversed(pods))
    (names,) = snapshot.jobs[0].task_names.values()
    rows = sorted((int(names[index].split("-")[1]), on) for _, _, index, on, _ in solved(snapshot).tasks)
    assert [on for _, on in rows] in (["a"] * 4 + ["b"] * 4, ["b"] * 4 + ["a"] * 4)


def test_work_without_cards_leaves_them_what_they_need() -> None:
    """Ray: two pods of 16 cores, and eight of a card and 3 cores, which need 24 of the 32 beside the cards."""
    nodes = node("cards", H100, cpu="32", **{GPU: 8}), node("none", cpu="32")
    plain = [pod(f"plain-{i}", "", {"cpu": "16"}) for i in range(2)]
    work = [pod(f"work-{i}", "", {"cpu": "3", GPU: 1}) for i in range(8)]
    found = places(*nodes, *plain, *work)
    assert len(found) == 10
    assert {on for job, on, _ in found if "plain" in job} == {"none"}
    # without work that needs them, the rule of KAI keeps cards free
    idle = solved(snapshot_of(*nodes, *plain), solver="kai-fractions", proven=False)
    assert [on for _, _, _, on, _ in idle.tasks] == ["none", "none"]


# --- topology and zones ----------------------------------------------------------------------------------------------


def test_a_tier_is_called_by_its_name() -> None:
    """Volcano 5189: two pods of 2 cores in one hyper node of tier 1, each of which has 2; by the gang and its parts."""
    called = "volcano.sh/hypernode"
    cluster = [*[node(f"n{i}", cpu="2") for i in range(3)]]
    tiers = [hypernode(f"h{i}", 1, [f"n{i}"], called=called) for i in range(3)]
    rule = {"mode": "hard", "highestTierName": called}
    gang = volcano(minMember=2, networkTopology=rule)
    assert started(*cluster, *tiers, gang, *members([{"cpu": "2"}] * 2)) == 0
    assert started(*cluster, *tiers, gang, *members([{"cpu": "1"}] * 2)) == 2
    template = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}}
    parts = {"totalPartitions": 1, "partitionSize": 2, "networkTopology": rule}
    task = {"name": "w", "replicas": 2, "partitionPolicy": parts, "template": template}
    job = made("batch.volcano.sh/v1alpha1", "Job", "j", {"minAvailable": 2, "tasks": [task]})
    assert started(*cluster, *tiers, job) == 0
    larger = [node(f"n{i}", cpu="4" if i == 1 else "2") for i in range(3)]
    assert [on for _, on, _ in places(*larger, *tiers, job)] == ["n1", "n1"]


def test_soft_mode_does_not_scatter() -> None:
    """Volcano 4343: 4 x 4 cores are within the 2 x 8 of any hyper node of tier 1."""
    tiers = [hypernode(f"s{i}", 1, [f"n{2 * i}", f"n{2 * i + 1}"]) for i in range(3)]
    top = hypernode("top", 2, ["s0", "s1", "s2"], "HyperNode")
    gang = volcano(minMember=4, networkTopology={"mode": "soft", "highestTierAllowed": 1})
    found = places(*[node(f"n{i}", cpu="8") for i in range(6)], *tiers, top, gang, *members([{"cpu": "4"}] * 4))
    assert len(found) == 4
    assert len({int(on[1:]) // 2 for _, on, _ in found}) == 1


def kueue(nominal: str, request: Object, count: int, asks: Object) -> list[Object]:
    """Return a queue for cards and cores, and a workload of one pod set."""
    quotas = [{"name": "cpu", "nominalQuota": "10k"}, {"name": GPU, "nominalQuota": nominal}]
    group = {"coveredResources": ["cpu", GPU], "flavors": [{"name": "f", "resources": quotas}]}
    spec = {"containers": [{"name": "c", "resources": {"requests": asks}}]}
    sets = [{"name": "w", "count": count, "template": {"spec": spec}, "topologyRequest": request or None}]
    version = "kueue.x-k8s.io/v1beta2"
    return [
        made(version, "Topology", "t", {"levels": [{"nodeLabel": CLIQUE}, {"nodeLabel": "kubernetes.io/hostname"}]}),
        made(version, "ResourceFlavor", "f", {"topologyName": "t"}),
        made(version, "ClusterQueue", "cq", {"resourceGroups": [group]}),
        made(version, "LocalQueue", "lq", {"clusterQueue": "cq"}),
        made(version, "Workload", "w", {"queueName": "lq", "podSets": sets}),
    ]


@pytest.mark.parametrize(("pods", "size"), [(128, 16), (24, 12), (48, 16)])
def test_slices_make_racks_equal(pods: int, size: int) -> None:
    """NVL72: 128 nodes of racks of 18 are 8 x 16, and not 7 x 18 + 2."""
    request = {"preferred": CLIQUE, "podSetSliceRequiredTopology": CLIQUE, "podSetSliceSize": size}
    racks = [gpus(f"r{rack}-{i}", 4, rack=f"r{rack}") for rack in range(8) for i in range(18)]
    plan = solved(snapshot_of(*racks, *kueue("1k", request, pods, {GPU: "4"})), proven=False)
    assert list(Counter(on.split("-")[0] for _, _, _, on, _ in plan.tasks).values()) == [size] * (pods // size)


def test_a_gang_without_a_rule_is_noted() -> None:
    """ComputeDomains: four nodes of two racks of 18; nothing in the request says that one rack is meant."""
    racks = [gpus(f"r{i}-{rack}", 4, rack=f"r{rack}") for i in range(18) for rack in range(2)]
    what = "where a gang without a topology rule lies"
    free = snapshot_of(*racks, volcano(minMember=4), *members([{GPU: 4}] * 4))
    assert noted(free, "assumed")[what] == "anywhere, so in several domains too"
    rule = {"mode": "hard", "highestTierAllowed": 1}
    tiers = [hypernode(f"h{rack}", 1, [f"r{i}-{rack}" for i in range(18)]) for rack in range(2)]
    kept = snapshot_of(*racks, *tiers, volcano(minMember=4, networkTopology=rule), *members([{GPU: 4}] * 4))
    assert what not in noted(kept, "assumed")
    assert len({on.split("-")[1] for _, _, _, on, _ in solved(kept).tasks}) == 1
    assert what not in noted(snapshot_of(*racks, *members([{GPU: 4}])), "assumed")


def test_nothing_of_a_resource_fits_a_full_queue() -> None:
    """Kueue 2520: 0 cards of a queue that has all its 8, or 8 of a quota that is 4 by now; nobody is stopped for it."""
    held = pod("old", "n", {GPU: "8"}, labels={"kueue.x-k8s.io/queue-name": "lq"})
    for nominal in ("8", "4"):
        cluster = gpus("n", 8, rack="r"), held, *kueue(nominal, {}, 1, {"cpu": "1", GPU: "0"})
        found = pl.preempt(snapshot_of(*cluster))
        assert (found.started, found.evictions) == (("ns/w",), ())
    one_more = gpus("n", 9, rack="r"), held, *kueue("8", {}, 1, {"cpu": "1", GPU: "1"})
    assert [one.reason for one in pl.preempt(snapshot_of(*one_more)).waiting] == ["quota"]


def test_cards_free_on_two_sockets_are_not_free_on_one() -> None:
    """A kubelet with single-numa-node: 1 + 1 cards of one socket and 2 of the other are held, 2 + 2 are free."""
    amounts = [{"name": name, "capacity": size, "allocatable": size} for name, size in (("cpu", "32"), (GPU, "4"))]
    policy = [
        {"name": "topologyManagerPolicy", "value": "single-numa-node"},
        {"name": "topologyManagerScope", "value": "pod"},
    ]
    zones = {
        **made("topology.node.k8s.io/v1alpha2", "NodeResourceTopology", "n", None),
        "attributes": policy,
        "zones": [{"name": f"node-{i}", "type": "Node", "resources": amounts} for i in range(2)],
    }
    held = [("0", 1), ("4,5", 2), ("1", 1)]
    sizes = {"cpu": "1", "memory": "1Gi"}
    old = [
        pod(f"old-{i}", "n", {GPU: number, **sizes}, {"gpu-placement.io/gpus": cards})
        for i, (cards, number) in enumerate(held)
    ]
    for number, fits in ((4, 0), (3, 0), (2, 1)):
        plan = solved(snapshot_of(gpus("n", 8), zones, *old, pod("new", "", {GPU: number, **sizes})))
        assert len(plan.tasks) == fits
        assert all(one.detail.endswith("(1: too little is free within its NUMA zones)") for one in plan.pending)
    # packed on one socket the same pods leave the other
    packed = [{**one, "metadata": {**one["metadata"], "annotations": {}}} for one in old]
    assert started(gpus("n", 8), zones, *packed, pod("new", "", {GPU: 4, **sizes})) == 1


def test_pairs_are_of_one_zone_where_all_links_are_alike() -> None:
    """go-gpuallocator: eight cards with SYS between all of them, four in each zone, some are held."""
    names = [f"GPU{i}" for i in range(8)]
    rows = [
        "\t".join(
            [
                name,
                *("X" if i == j else "SYS" for j in range(8)),
                f"{32 * (i // 4)}-{32 * (i // 4) + 31}",
                str(i // 4),
                "N/A",
            ]
        )
        for i, name in enumerate(names)
    ]
    header = "\t".join(["", *names, "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"])
    legend = "Legend:\n\n  X    = Self\n  SYS  = far\n  NV#  = NVLinks\n"
    topo = File("topo.txt", ("\n".join([header, *rows]) + f"\n\n{legend}").encode())
    # of 3, 4 and 7 the last two, of 0 and 3 to 5 and 7 a pair of either zone
    for held, pairs in (("01256", [(4, 7)]), ("126", [(0, 3), (4, 5), (4, 7), (5, 7)])):
        old = [pod(f"old-{card}", "n", {GPU: 1}, {"gpu-placement.io/gpus": card}) for card in held]
        items = [gpus("n", 8), *old, pod("pair", "", {GPU: 2})]
        dump = File("dump.json", json.dumps({"apiVersion": "v1", "kind": "List", "items": items}).encode())
        snapshot = read([dump, topo])
        assert [zone.gpus for zone in snapshot.nodes[0].zones] == [(0, 1, 2, 3), (4, 5, 6, 7)]
        ((*_, cards),) = solved(snapshot).tasks
        assert tuple(cards) in pairs


def test_zones_without_cpus_are_no_zones() -> None:
    """GH200: one zone with CPUs, eight that are memory of cards; 72 cores are not 8 to each."""
    first = {
        "name": "node-0",
        "type": "Node",
        "resources": [
            {"name": name, "capacity": size, "allocatable": size} for name, size in (("cpu", "72"), (GPU, "1"))
        ],
    }
    others = [
        {
            "name": f"node-{i}",
            "type": "Node",
            "resources": [{"name": "memory", "capacity": "12Gi", "allocatable": "12Gi"}],
        }
        for i in range(1, 9)
    ]
    policy = [{"name": "topologyManagerPolicy", "value": "single-numa-node"}]
    zones = {
        **made("topology.node.k8s.io/v1alpha2", "NodeResourceTopology", "n", None),
        "attributes": policy,
        "zones": [first, *others],
    }
    cluster = node("n", H100, cpu="72", **{GPU: 1})
    assert [str(zone.cpu) for zone in snapshot_of(cluster, zones).nodes[0].zones] == ["72"]
    assert started(cluster, zones, pod("p", "", {GPU: 1, "cpu": "70", "memory": "100Gi"})) == 1


# --- Slurm -----------------------------------------------------------------------------------------------------------


def ran(snapshot: Snapshot) -> list[tuple[str, str, tuple[int, ...]]]:
    plan = pl.solve(snapshot, without=("jobs.running.since",), solver="exact")
    assert pl.check(snapshot, plan, without=("jobs.running.since",)) == []
    return [(job, on, tuple(cards)) for job, _, _, on, cards in plan.tasks]


def small(first: int, count: int, **more: Any) -> list[Object]:
    one = {"cpus": slurm.number(1), "cpus_per_task": slurm.number(1), "tres_per_node": "gres/gpu:1"}
    return [slurm.job(first + i, **{**one, **more}) for i in range(count)]


@pytest.mark.parametrize("asked", ["N/A", "", "gres/gpu:1"])
def test_cards_of_running_jobs_are_those_of_their_allocation(asked: str) -> None:
    """SkyPilot 10283, slurm_exporter 35: the field for what it asks for by node says nothing; 8 - 2 = 6 are free."""
    there = slurm.node("n1", "gpu:h100:8", "", state=["MIXED"], alloc_cpus=8, alloc_memory=65536)
    has = slurm.runs(7, "n1", [], tres_per_node=asked, tres_alloc_str="cpu=8,mem=64G,node=1,gres/gpu=2")
    assert len(ran(slurm.of([there], [has, *small(8, 9)]))) == 6


@pytest.mark.parametrize("end", ["", "1,gr", "1,gres/gpu", "1,gres/gpu="])
def test_cells_that_are_cut_are_refused(end: str) -> None:
    has = slurm.runs(7, "n1", [], tres_alloc_str=f"cpu=4,mem=32G,node={end}")
    with pytest.raises(InputError, match=r"jobs\[0\]\.tres_alloc_str: .* print the column in full width"):
        slurm.of([slurm.node("n1")], [has])


def test_a_job_wide_number_of_cards_is_so_many_nodes() -> None:
    """ParallelCluster 178: 12 cards on nodes of 4 are 3 nodes, though NODES says 1."""
    found = ran(slurm.of([slurm.node(f"n{i}") for i in range(4)], [slurm.job(1, tres_per_job="gres/gpu:12")]))
    assert [cards for _, _, cards in found] == [(0, 1, 2, 3)] * 3
    assert ran(slurm.of([slurm.node(f"n{i}") for i in range(2)], [slurm.job(1, tres_per_job="gres/gpu:12")])) == []


def test_cores_are_left_for_cards() -> None:
    """SchedMD/slurm 185: 16 - 12 = 4 cores for 7 cards, or 32 - 12 = 20."""
    nodes = [
        slurm.node("small", "gpu:h100:8", cpus=16, effective_cpus=16, sockets=1),
        slurm.node("large", "gpu:h100:8", sockets=1),
    ]
    (large,) = small(1, 1, cpus=slurm.number(12), cpus_per_task=slurm.number(12))
    found = ran(slurm.of(nodes, [large, *small(2, 15)]))
    assert len(found) == 16
    assert {job: on for job, on, _ in found}["1"] == "large"


NEAR = {"flags": ["GRES_BINDING_ENFORCED"], "tres_per_node": "gres/gpu:1"}


def near(wanted: int, *files: File, gres: str = "gpu:h100:4", **fields: Any) -> Snapshot:
    """Return a node, and a job that wants a card with so many cores near it."""
    wants = slurm.job(1, **NEAR, cpus=slurm.number(wanted), cpus_per_task=slurm.number(wanted))
    return slurm.of([slurm.node("n1", gres, "", **fields)], [wants], *files)


def test_a_card_reaches_the_cores_of_its_socket() -> None:
    """Two sockets of 14 cores with two cards each: 20 near one card are too many, and the plan says why."""
    fields: Object = {"gres": "gpu:h100:2(S:0),gpu:h100:2(S:1)", "cores": 14, "cpus": 28, "effective_cpus": 28}
    assert len(ran(near(14, **fields))) == 1
    (entry,) = pl.solve(near(20, **fields)).pending
    assert (entry.reason, "20 cpu asked for in one NUMA zone, the largest has 14" in entry.detail) == ("never", True)


HALVES = File(
    "gres.conf",
    b"NodeName=n1 Name=gpu Type=h100 File=/dev/nvidia0 Cores=0-15\n"
    b"NodeName=n1 Name=gpu Type=h100 File=/dev/nvidia1 Cores=16-31\n"
    b"NodeName=n1 Name=gpu Type=h100 File=/dev/nvidia[2-3] Cores=32-63\n",
)
TWO_SOCKETS: Object = {"sockets": 2, "cores": 32, "cpus": 64, "effective_cpus": 64}


def test_a_card_may_reach_half_a_socket() -> None:
    """SlinkyProject/slurm-operator 205: cores 0-15 of socket 0-31. 20 cores are near cards 2 and 3 alone."""
    snapshot = near(20, HALVES, **TWO_SOCKETS)
    assert snapshot.nodes[0].zones == (
        NumaZone(id=0, cpu=16, gpus=(0,)),
        NumaZone(id=1, cpu=16, gpus=(1,)),
        NumaZone(id=2, cpu=32, gpus=(2, 3)),
    )
    assert [cards[0] in (2, 3) for _, _, cards in ran(snapshot)] == [True]
    assert ran(near(33, HALVES, **TWO_SOCKETS)) == []
    # threads: 16 cores are 32 of them
    threads = {**TWO_SOCKETS, "threads": 2, "cpus": 128, "effective_cpus": 128}
    assert [zone.cpu for zone in near(1, HALVES, **threads).nodes[0].zones] == [32, 32, 64]


@pytest.mark.parametrize(
    ("lines", "zones"),
    [
        # cores that no card is near are a zone without cards
        ("File=/dev/nvidia[0-3] Cores=0-15", [(16, (0, 1, 2, 3)), (48, ())]),
        # which of two a core is near is not said
        ("File=/dev/nvidia[0-1] Cores=0-31\nName=gpu Type=h100 File=/dev/nvidia[2-3] Cores=31-63", []),
        # nothing is said of two cards, or of cards of another type
        ("File=/dev/nvidia[0-1] Cores=0-31", []),
        ("File=/dev/nvidia[0-1] Cores=0-31\nName=gpu Type=a100 File=/dev/nvidia[2-3] Cores=32-63", []),
    ],
)
def test_cores_are_zones_where_they_are_told_apart(lines: str, zones: list[tuple[int, tuple[int, ...]]]) -> None:
    conf = File("gres.conf", f"Name=gpu Type=h100 {lines}\n".encode())
    assert [(zone.cpu, zone.gpus) for zone in near(1, conf, **TWO_SOCKETS).nodes[0].zones] == zones
    # beside MIG instances, numbers of devices are not those of cards
    assert near(1, conf, gres="gpu:1g.5gb:7,gpu:h100:4", **TWO_SOCKETS).nodes[0].zones == ()


@pytest.mark.parametrize(("cores", "named"), [("48-63,176-191", 191), ("48-63,127", None), ("128", 128)])
def test_cores_that_the_node_does_not_have_are_named(cores: str, named: int | None) -> None:
    """DeepOps 1102: 2 x 64 cores of 2 threads, numbered 0 to 127; 176-191 are threads of 48-63."""
    conf = File("gres.conf", f"NodeName=n1 Name=gpu Type=h100 File=/dev/nvidia[0-3] Cores={cores}\n".encode())
    there = slurm.node("n1", sockets=2, cores=64, threads=2, cpus=256, effective_cpus=256)
    entries = [entry for entry in slurm.of([there], None, conf).ledger if entry.kind == "contradiction"]
    place = f"gres.conf: line 1: core {named}, and n1 has 128"
    assert [(entry.what.partition(";")[0], entry.where) for entry in entries] == (
        [("gres.conf lists cores that the node does not have", (place,))] if named is not None else []
    )


@pytest.mark.parametrize(("gres", "type_"), [("gpu:a100:3", "a100"), ("gpu:1g.5gb:3", "1g.5gb"), ("(null)", "h100")])
def test_a_node_with_fewer_devices_than_configured_offers_nothing(gres: str, type_: str) -> None:
    """gres.conf says 4, and the node 3 or none: it is invalid, or there is no card, and the files differ."""
    conf = File("gres.conf", f"NodeName=n1 Name=gpu Type={type_} Count=4\n".encode())
    state = ["IDLE"] if gres == "(null)" else ["IDLE", "INVALID_REG"]
    snapshot = slurm.of(
        [slurm.node("n1", gres, "", state=state)], small(1, 2, tres_per_node=f"gres/gpu:{type_}:1"), conf
    )
    assert ran(snapshot) == []
    assert "gres.conf has another number of cards than the node" in noted(snapshot, "contradiction")
