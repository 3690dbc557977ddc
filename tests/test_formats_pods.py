"""Pods and gangs to jobs: what runs where on which cards, what waits, and which nodes it may use."""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import placement as pl
from placement.errors import InputError
from placement.formats.kubernetes import gangs, pods
from placement.formats.kubernetes.objects import Objects
from placement.formats.kubernetes.parts import Addition, Claim, Cluster, Devices, Gang, GangGroup, Offer
from placement.formats.kubernetes.pod import Container, PodSpec, Resources
from placement.formats.ledger import Ledger
from placement.formats.source import File
from placement.snapshot import (
    Gpu,
    Job,
    MigInstance,
    Node,
    NumaZone,
    RunningTask,
    Slice,
    Snapshot,
    Spread,
    Toleration,
    Topology,
)
from placement.snapshot.read import verified

GPU = "nvidia.com/gpu"
H100 = "NVIDIA-H100-80GB-HBM3"
EPOCH = "1970-01-01T00:01:40Z"


def node(name: str, count: int = 8, **more: Any) -> Node:
    labels = {"kubernetes.io/hostname": name, **more.pop("labels", {})}
    gpus = more.pop("gpus", (Gpu(model=H100, count=count, memory="80Gi"),) if count else ())
    return Node(name=name, labels=labels, gpus=gpus, cpu=64, memory="512Gi", pods=110, **more)


def cluster(*nodes: Node, offers: Mapping[str, Mapping[str, Offer]] | None = None, **more: Any) -> Cluster:
    """Return a cluster in which each node offers all of its cards, if nothing else is said."""
    given_ = dict(offers or {})
    for one in nodes:
        cards = sum(gpu.count for gpu in one.gpus)
        if one.name not in given_ and cards:
            given_[one.name] = {GPU: Offer(tuple(range(cards)))}
    return Cluster(
        nodes, offers=given_, level_of={"kubernetes.io/hostname": "node", **more.pop("level_of", {})}, **more
    )


def pod(name: str, node_: str = "", amounts: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    meta = {
        key: more.pop(key) for key in ("labels", "annotations", "ownerReferences", "deletionTimestamp") if key in more
    }
    phase = more.pop("phase", "Running" if node_ else "Pending")
    asked = {"requests": dict(amounts or {GPU: 1}), "limits": {}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ns", "uid": name, "creationTimestamp": EPOCH, **meta},
        "spec": {"containers": [{"name": "c", "resources": asked}], **({"nodeName": node_} if node_ else {}), **more},
        "status": {"phase": phase, **({"startTime": EPOCH} if node_ else {})},
    }


def read(
    cluster_: Cluster,
    objects: Sequence[dict[str, Any]],
    devices: Devices | None = None,
    additions: Sequence[Addition] = (),
    strict: bool = False,
    core: bool = False,
) -> Snapshot:
    """Return a verified snapshot, with its ledger."""
    ledger = Ledger(strict)
    data = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}).encode()
    found = Objects([File("pods.json", data)])
    systems = [*additions, *([gangs.read(found, ledger)] if core else [])]
    nodes, jobs = pods.read(found, cluster_, devices or Devices(), systems, ledger)
    made = Snapshot(time=1000.0, topology=cluster_.levels, nodes=nodes, jobs=jobs, ledger=ledger.entries())
    return verified(made)


def job(snapshot: Snapshot, name: str) -> Job:
    return next(one for one in snapshot.jobs if one.name == name)


def held(snapshot: Snapshot, name: str) -> tuple[RunningTask, ...]:
    running = job(snapshot, name).running
    assert running is not None
    return running.tasks


def cards(snapshot: Snapshot, name: str) -> tuple[int, ...]:
    return tuple(card for task in held(snapshot, name) for card in task.gpus)


def task(snapshot: Snapshot, name: str) -> Any:
    return job(snapshot, name).groups[0].task


def usable(snapshot: Snapshot, name: str) -> set[str]:
    """Return the nodes that the selector of a pending job admits."""
    wanted = task(snapshot, name).node_selector.items()
    return {one.name for one in snapshot.nodes if wanted <= one.labels.items()}


def said(snapshot: Snapshot, kind: str) -> dict[str, int]:
    return {entry.what: entry.count for entry in snapshot.ledger if entry.kind == kind}


# --- which pods hold something -----------------------------------------------------------------------------------


def test_pods_that_are_over_hold_nothing_and_those_being_deleted_do() -> None:
    found = read(
        cluster(node("n", 2)),
        [
            pod("done", "n", {GPU: 2}, phase="Succeeded"),
            pod("failed", "n", {GPU: 2}, phase="Failed"),
            pod("going", "n", deletionTimestamp=EPOCH),
            pod("starting", "n", phase="Pending"),
        ],
    )
    assert [one.name for one in found.jobs] == ["ns/going", "ns/starting"]
    assert cards(found, "ns/going") == (0,)
    assert cards(found, "ns/starting") == (1,)
    assert said(found, "ignored")["pods that are over"] == 2


def test_a_lone_pod_is_a_job() -> None:
    found = job(read(cluster(node("n")), [pod("a", "n", priority=7)]), "ns/a")
    assert (found.priority, found.submit_time, found.preemptible) == (7, 100.0, False)
    assert [group.name for group in found.groups] == ["pod"]
    assert found.running is not None
    assert found.running.since == 100.0


def test_pods_on_unknown_nodes_are_left_out() -> None:
    found = read(cluster(node("n")), [pod("a", "elsewhere")])
    assert found.jobs == ()
    assert said(found, "contradiction") == {"a pod runs on a node that is not in the files": 1}


def test_a_pod_that_is_listed_twice_counts_once() -> None:
    other = pod("a", "n")
    other["metadata"]["uid"] = "another"
    found = read(cluster(node("n")), [pod("a", "n"), pod("a", "n"), other])
    assert len(found.jobs) == 1
    assert said(found, "ignored")["pods that are listed twice"] == 1
    assert said(found, "contradiction") == {"two pods of one name": 1}


def test_every_pod_takes_a_pod_slot() -> None:
    """One slot left of three; of two pods that wait for a little CPU one starts, though CPU is there for both."""
    three = pl.Node(name="n", cpu=10, pods=3)
    running = [pod(name, "n", {"cpu": "100m"}) for name in ("a", "b")]
    waiting = [pod(name, "", {"cpu": "100m"}) for name in ("c", "d")]
    plan = pl.solve(read(Cluster((three,)), [*running, *waiting]), solver="first-fit", without=("jobs.running.since",))
    assert len(plan.tasks) == 1


def test_a_request_of_nothing_fits_where_nothing_is_left() -> None:
    found = read(cluster(node("n", 1)), [pod("a", "n"), pod("b", "", {"cpu": 1, GPU: "0", "x/licence": 0})])
    assert (task(found, "ns/b").gpus, task(found, "ns/b").extended) == (0, {})


# --- cards of running pods ---------------------------------------------------------------------------------------


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


MIG = Gpu(
    model="NVIDIA-A100-SXM4-40GB",
    mig_enabled=True,
    mig_static=True,
    mig_layout=(MigInstance(profile="3g.20gb", start=0), MigInstance(profile="3g.20gb", start=4)),
)
SLICED = {"n": {"nvidia.com/mig-3g.20gb": Offer((0, 0), 1, "3g.20gb", (0, 4))}}
SLICE = {"nvidia.com/mig-3g.20gb": 1}


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


# --- which nodes a pending pod may use ---------------------------------------------------------------------------


def test_a_pod_is_kept_to_nodes_where_its_units_mean_the_same() -> None:
    shared = Gpu(model="T4", sharing="time_slicing", replicas=4)
    both = cluster(
        node("whole", 1),
        node("shared", gpus=(shared,), labels={"nvidia.com/gpu.product": "Tesla-T4-SHARED"}),
        node("renamed", gpus=(shared,)),
        offers={"shared": {GPU: Offer((0,), 4)}, "renamed": {"nvidia.com/gpu.shared": Offer((0,), 4)}},
    )
    found = read(
        both,
        [
            pod("any"),
            pod("label", nodeSelector={"nvidia.com/gpu.product": "Tesla-T4-SHARED"}),
            pod("name", amounts={"nvidia.com/gpu.shared": 1}),
            pod("cpu", amounts={"cpu": 1}),
        ],
    )
    assert (usable(found, "ns/any"), task(found, "ns/any").gpu_share) == ({"whole"}, None)
    assert (usable(found, "ns/label"), task(found, "ns/label").gpu_share) == ({"shared"}, "250m")
    assert (usable(found, "ns/name"), task(found, "ns/name").gpu_share) == ({"renamed"}, "250m")
    assert usable(found, "ns/cpu") == {"whole", "shared", "renamed"}


def test_cards_that_no_node_offers_fit_nowhere() -> None:
    waiting = {"a": {"amd.com/gpu": 1}, "b": {GPU: 1000}, "c": {"x.y/tpu": 1}}
    found = read(cluster(node("n")), [pod(name, amounts=asked) for name, asked in waiting.items()])
    assert usable(found, "ns/a") == set()
    assert task(found, "ns/c").extended == {"x.y/tpu": 1}
    assert task(found, "ns/b").extended == {GPU: 1000}


def test_storage_counts_where_some_node_lists_it() -> None:
    asked = {"ephemeral-storage": "1Gi", "hugepages-2Mi": "4Mi"}
    found = read(Cluster((node("n", 0, extended={"ephemeral-storage": "10Gi"}),)), [pod("a", amounts=asked)])
    assert task(found, "ns/a").extended == {"ephemeral-storage": "1Gi"}
    assert said(found, "ignored") == {"storage and huge pages that no node lists": 1}


def terms(*expressions: dict[str, Any], fields: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    term = {"matchExpressions": list(expressions), "matchFields": list(fields)}
    required = {"nodeSelectorTerms": [{key: value for key, value in term.items() if value}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


NODES = (
    node("a", 0, labels={"zone": "1", "gen": "3"}),
    node("b", 0, labels={"zone": "2", "gen": "10"}),
    node("c", 0, labels={"gen": "x"}),
)


@pytest.mark.parametrize(
    ("expression", "right"),
    [
        ({"key": "zone", "operator": "In", "values": ["1"]}, "a"),
        ({"key": "zone", "operator": "In", "values": ["1", "2"]}, "ab"),
        ({"key": "zone", "operator": "NotIn", "values": ["1"]}, "bc"),
        ({"key": "zone", "operator": "Exists"}, "ab"),
        ({"key": "zone", "operator": "DoesNotExist"}, "c"),
        ({"key": "gen", "operator": "Gt", "values": ["3"]}, "b"),
        ({"key": "gen", "operator": "Lt", "values": ["10"]}, "a"),
        ({"key": "zone", "operator": "In", "values": []}, ""),
    ],
)
def test_expressions_are_exact_for_the_nodes_there_are(expression: dict[str, Any], right: str) -> None:
    found = read(Cluster(NODES), [pod("p", amounts={"cpu": 1}, affinity=terms(expression))])
    assert usable(found, "ns/p") == set(right)


def test_terms_are_alternatives_and_fields_name_nodes() -> None:
    either = terms({"key": "zone", "operator": "In", "values": ["1"]})
    either["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"].append(
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["c"]}]}
    )
    found = read(
        Cluster(NODES),
        [
            pod("p", amounts={"cpu": 1}, affinity=either),
            pod("q", amounts={"cpu": 1}, affinity=either, nodeSelector={"gen": "x"}),
            pod("plain", amounts={"cpu": 1}, affinity=terms({"key": "zone", "operator": "In", "values": ["1"]})),
        ],
    )
    assert (usable(found, "ns/p"), usable(found, "ns/q")) == ({"a", "c"}, {"c"})
    # what a selector can say needs no label
    assert task(found, "ns/plain").node_selector == {"zone": "1"}


@pytest.mark.parametrize(
    "expression", [{"key": "zone", "operator": "Near"}, {"key": "gen", "operator": "Gt", "values": ["many"]}]
)
def test_an_expression_that_is_none_is_an_error(expression: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"pods\.json.*items\[0\]\.spec"):
        read(Cluster(NODES), [pod("p", amounts={"cpu": 1}, affinity=terms(expression))])


def test_tolerations() -> None:
    given_ = [
        {"operator": "Exists"},
        {"key": "gpu", "value": "yes", "effect": "NoSchedule", "tolerationSeconds": 5},
        {"key": "soft", "operator": "Exists", "effect": "PreferNoSchedule"},
    ]
    found = read(Cluster(NODES), [pod("p", amounts={"cpu": 1}, tolerations=given_)])
    assert task(found, "ns/p").tolerations == (
        Toleration(operator="Exists"),
        Toleration(key="gpu", value="yes", effect="NoSchedule"),
    )


def test_the_pin_of_a_daemon_does_not_make_each_pod_another_kind() -> None:
    owner = [{"kind": "DaemonSet", "name": "d"}]
    both = [
        pod(name, name, {"cpu": 1}, ownerReferences=owner, affinity=terms(fields=[
            {"key": "metadata.name", "operator": "In", "values": [name]}
        ]))
        for name in ("a", "b")
    ]  # fmt: skip
    found = read(Cluster(NODES), both)
    assert job(found, "ns/a").groups is job(found, "ns/b").groups


# --- other pods --------------------------------------------------------------------------------------------------


def away(label: str, kind: str = "podAntiAffinity", key: str = "kubernetes.io/hostname") -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": label}}}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def test_pods_keep_away_from_those_that_run_both_ways() -> None:
    found = read(
        Cluster(NODES),
        [
            pod("db", "a", {"cpu": 1}, labels={"app": "db"}),
            pod("shy", "b", {"cpu": 1}, labels={"app": "shy"}, affinity=away("web")),
            pod("web", amounts={"cpu": 1}, labels={"app": "web"}, affinity=away("db")),
            pod("near", amounts={"cpu": 1}, affinity=away("db", "podAffinity", "zone")),
            pod("free", amounts={"cpu": 1}),
        ],
    )
    # web may not be with db (a); and shy (b) does not want web
    assert usable(found, "ns/web") == {"c"}
    assert usable(found, "ns/near") == {"a"}
    assert usable(found, "ns/free") == {"a", "b", "c"}


def test_what_cannot_be_said_of_pods_that_wait_is_an_error_if_strict() -> None:
    both = [pod(name, amounts={"cpu": 1}, labels={"app": "x"}, affinity=away("x")) for name in ("p", "q")]
    assert said(read(Cluster(NODES), both), "ignored") == {"anti-affinity among pods that wait": 2}
    with pytest.raises(InputError, match="anti-affinity among pods that wait"):
        read(Cluster(NODES), both, strict=True)
    spread = [pod("p", amounts={"cpu": 1}, topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "zone"}])]
    with pytest.raises(InputError, match="topologySpreadConstraints"):
        read(Cluster(NODES), spread, strict=True)


# --- gangs -------------------------------------------------------------------------------------------------------


def labelled(*gangs_: Gang) -> Addition:
    """Return a system in which two labels say gang and group."""

    def member(one: Any) -> tuple[str, str] | None:
        labels = one.metadata.labels or {}
        return (f"ns/{labels['gang']}", labels.get("group", "pods")) if "gang" in labels else None

    return Addition(gangs=gangs_, member=member)


def members(count: int, running: int = 0, **more: Any) -> list[dict[str, Any]]:
    labels = {"gang": "g", **more.pop("labels", {})}
    return [
        pod(
            f"g-{i}",
            "n" if i < running else "",
            labels={**labels, "batch.kubernetes.io/job-completion-index": f"{i}"},
            **more,
        )
        for i in range(count)
    ]


def test_a_gang_is_one_job_and_its_pods_are_in_the_order_of_their_numbers() -> None:
    found = read(cluster(node("n", 16)), list(reversed(members(11))), additions=[labelled()])
    (one,) = found.jobs
    assert (one.name, one.groups[0].name, one.groups[0].count, one.groups[0].min_count) == ("ns/g", "pods", 11, None)
    assert one.task_names["pods"][9:] == ("ns/g-9", "ns/g-10")


def test_a_gang_that_runs_in_part_is_two_jobs() -> None:
    gang = Gang("ns/g", (GangGroup("pods", min_count=3),), queue="", preemptible=True)
    found = read(cluster(node("n")), members(5, running=2), additions=[labelled(gang)])
    runs, waits = found.jobs
    assert (runs.name, runs.groups[0].count, cards(found, "ns/g")) == ("ns/g", 2, (0, 1))
    # two of at least three run: one more is needed
    assert (waits.name, waits.groups[0].count, waits.groups[0].min_count) == ("ns/g#pending", 3, 1)
    assert waits.task_names == {"pods": ("ns/g-2", "ns/g-3", "ns/g-4")}
    assert runs.preemptible
    assert waits.preemptible


def test_pods_that_are_over_are_not_missed() -> None:
    gang = Gang("ns/g", (GangGroup("pods", count=3),))
    done = members(3, running=3)
    done[0]["status"]["phase"] = "Succeeded"
    found = read(cluster(node("n")), done, additions=[labelled(gang)])
    assert [(one.name, one.groups[0].count) for one in found.jobs] == [("ns/g", 2)]


def test_pods_that_do_not_exist_yet_ask_for_what_the_template_or_the_others_do() -> None:
    template = PodSpec(containers=[Container(resources=Resources(limits={GPU: 4}))])
    gang = Gang("ns/g", (GangGroup("pods", count=4), GangGroup("late", 2, template=template), GangGroup("none")))
    (one,) = read(cluster(node("n")), members(2), additions=[labelled(gang)]).jobs
    assert [(g.name, g.count, g.task.gpus) for g in one.groups if g.task] == [("pods", 4, 1), ("late", 2, 4)]
    # names are known of all tasks of a group, or of none
    assert one.task_names == {}


def test_pods_of_a_group_that_ask_for_different_things_are_groups_of_their_own() -> None:
    gang = Gang("ns/g", (GangGroup("pods", min_count=3),))
    both = [
        *members(2),
        pod("big", amounts={GPU: 4}, labels={"gang": "g"}),
        pod("big2", amounts={GPU: 4}, labels={"gang": "g"}),
    ]
    (one,) = read(cluster(node("n")), both, additions=[labelled(gang)]).jobs
    # of four pods three: two of the first kind and one of the second
    assert [(g.name, g.count, g.min_count) for g in one.groups] == [("pods", 2, 2), ("pods-2", 2, 1)]


def test_the_topology_of_a_gang_is_at_levels_of_the_snapshot() -> None:
    racks = [node(name, position={"rack": rack}, labels={"rack": rack}) for name, rack in (("n", "r"), ("m", "s"))]
    there = cluster(*racks, levels=("rack",), level_of={"example.com/rack": "rack"})
    topology = Topology(required="example.com/rack", slices=(Slice(level="kubernetes.io/hostname", sizes=(2,)),))
    gang = Gang("ns/g", (GangGroup("pods", topology=topology),))
    (one,) = read(there, members(4), additions=[labelled(gang)]).jobs
    assert one.groups[0].topology == Topology(required="rack", slices=(Slice(level="node", sizes=(2,)),))
    # what is left of a gang is kept to the rack that the rest runs in; three pods are no slices of two
    found = read(there, members(4, running=1), additions=[labelled(gang)])
    assert usable(found, "ns/g#pending") == {"n"}
    assert job(found, "ns/g#pending").groups[0].topology == Topology(required="rack")
    unknown = Gang("ns/g", (GangGroup("pods", topology=Topology(required="no-such-level")),))
    assert read(there, members(2), additions=[labelled(unknown)]).jobs[0].groups[0].topology is None
    with pytest.raises(InputError, match="level"):
        read(there, members(2), additions=[labelled(unknown)], strict=True)


def test_a_topology_of_the_whole_gang_holds_all_of_its_groups() -> None:
    gang = Gang("ns/g", (GangGroup("a"), GangGroup("b")), topology=Topology(required="node"))
    both = [pod("x", labels={"gang": "g", "group": "a"}), pod("y", labels={"gang": "g", "group": "b"})]
    (one,) = read(cluster(node("n")), both, additions=[labelled(gang)]).jobs
    assert one.groups[0].topology == Topology(required="node")
    assert one.task_names == {"gang/a": ("ns/x",), "gang/b": ("ns/y",)}


def test_pods_of_a_gang_that_keep_apart_are_spread_over_nodes() -> None:
    (one,) = read(cluster(node("n")), members(2, labels={"app": "x"}, affinity=away("x")), additions=[labelled()]).jobs
    assert one.groups[0].topology == Topology(spread=(Spread(level="node", max_per_domain=1),))


def test_jobs_have_names_of_their_own() -> None:
    found = read(cluster(node("n")), [pod("g"), *members(2)], additions=[labelled()])
    assert [one.name for one in found.jobs] == ["ns/g", "ns/g#2"]


def test_pod_groups_of_the_core() -> None:
    groups = [
        {
            "apiVersion": "scheduling.k8s.io/v1alpha2",
            "kind": "PodGroup",
            "metadata": {"name": name, "namespace": "ns"},
            "spec": {"schedulingPolicy": policy},
        }
        for name, policy in (("all", {"gang": {"minCount": 2}}), ("loose", {"basic": {}}))
    ]
    workload = {
        "apiVersion": "scheduling.k8s.io/v1alpha1",
        "kind": "Workload",
        "metadata": {"name": "w", "namespace": "ns"},
        "spec": {"podGroups": [{"name": "x", "policy": {"gang": {"minCount": 1}}}]},
    }
    these = [pod(f"p{i}", schedulingGroup={"podGroupName": "all"}) for i in range(3)]
    those = [
        pod("q", schedulingGroup={"podGroupName": "loose"}),
        pod("r", ownerReferences=[{"kind": "Job", "name": "j"}]),
    ]
    older = [
        pod(f"w{i}", workloadRef={"name": "w", "podGroup": "x", "podGroupReplicaKey": f"{i % 2}"}) for i in range(4)
    ]
    found = read(cluster(node("n", 16)), [*these, *those, *older, *groups, workload], core=True)
    assert {one.name: (one.groups[0].count, one.groups[0].min_count) for one in found.jobs} == {
        "ns/all": (3, 2),
        "ns/q": (1, None),
        "ns/r": (1, None),
        "ns/w-x-0": (2, 1),
        "ns/w-x-1": (2, 1),
    }


# --- priorities, times, errors -----------------------------------------------------------------------------------


def test_priorities_by_name() -> None:
    classes = [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 50},
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "usual"},
            "value": 5,
            "globalDefault": True,
        },
    ]
    names = {"a": "high", "b": "", "c": "system-node-critical", "d": "gone"}
    found = read(cluster(node("n")), [*classes, *(pod(key, priorityClassName=name) for key, name in names.items())])
    assert [one.priority for one in found.jobs] == [50, 5, 2_000_001_000, 5]


def test_priorities_that_are_too_large_become_ranks() -> None:
    found = read(cluster(node("n")), [pod("a", priority=2**40), pod("b", priority=-3), pod("c", priority=0)])
    assert [one.priority for one in found.jobs] == [2, 0, 1]


@pytest.mark.parametrize("time", ["yesterday", "2026-13-01T00:00:00Z", "9" * 30])
def test_a_time_that_is_none_is_an_error(time: str) -> None:
    one = pod("a")
    one["metadata"]["creationTimestamp"] = time
    with pytest.raises(InputError, match=r"pods\.json.*items\[0\]\.metadata\.creationTimestamp"):
        read(cluster(node("n")), [one])


def test_equal_pods_share_what_they_ask_for() -> None:
    found = read(cluster(node("n")), [pod("a"), pod("b"), pod("c", "n")])
    assert job(found, "ns/a").groups is job(found, "ns/b").groups


def test_the_same_files_give_the_same_snapshot() -> None:
    objects = [pod("a", "n"), pod("g"), *members(3, running=1)]
    assert read(cluster(node("n")), objects, additions=[labelled()]) == read(
        cluster(node("n")), objects, additions=[labelled()]
    )


WRONG: tuple[Any, ...] = (None, "", -1, 2**70, 1.5, True, [], {}, "\u0000", "x" * 2000, [None], {"": ""}, [{}])


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        found += _places(part, (*path, key))
    return found


RICH: list[dict[str, Any]] = [
    pod("a", "n", {GPU: 2, "cpu": "1"}, annotations={"gpu-placement.io/gpus": "0,1"}, labels={"app": "x"}),
    pod("f", "n", {"cpu": 1}, annotations={"gpu-fraction": "0.5"}, affinity=away("x")),
    pod(
        "p",
        affinity={**terms({"key": "zone", "operator": "In", "values": ["1", "2"]}), **away("x")},
        tolerations=[{"key": "k", "operator": "Exists"}],
        overhead={"cpu": 1},
        priorityClassName="high",
        schedulingGates=[{"name": "x"}],
        topologySpreadConstraints=[{"whenUnsatisfiable": "ScheduleAnyway"}],
        initContainers=[{"name": "i", "restartPolicy": "Always", "resources": {"limits": {"cpu": 1}}}],
        resourceClaims=[{"name": "x", "resourceClaimName": "c"}],
    ),
    {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "ns"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}, "schedulingConstraints": {"topology": [{"key": "x"}]}},
    },
    {
        "apiVersion": "scheduling.k8s.io/v1alpha1",
        "kind": "Workload",
        "metadata": {"name": "w", "namespace": "ns"},
        "spec": {"podGroups": [{"name": "x", "policy": {"gang": {"minCount": 1}}}]},
    },
    {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 50,
        "globalDefault": True,
    },
    pod("r", schedulingGroup={"podGroupName": "g"}),
    pod("s", workloadRef={"name": "w", "podGroup": "x", "podGroupReplicaKey": "0"}),
    pod("q", labels={"leaderworkerset.sigs.k8s.io/name": "l", "leaderworkerset.sigs.k8s.io/group-index": "0"}),
]


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(_places(RICH)), st.sampled_from(WRONG))
def test_a_damaged_file_is_read_or_refused_with_a_message(path: tuple[Any, ...], wrong: Any) -> None:
    damaged: Any = copy.deepcopy(RICH)
    inner = damaged
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = wrong
    with contextlib.suppress(InputError):
        assert read(cluster(node("n")), damaged, core=True).nodes


# --- what other systems add --------------------------------------------------------------------------------------


def test_groups_within_groups_and_how_many_of_them_are_needed() -> None:
    inner = (GangGroup("leader"), GangGroup("workers", min_count=1))
    gang = Gang("ns/g", (GangGroup("a", groups=inner), GangGroup("b"), GangGroup("c")), min_groups=2)
    where = ["a/leader", "a/workers", "a/workers", "b", "c"]
    waiting = [pod(f"p{i}", labels={"gang": "g", "group": group}) for i, group in enumerate(where)]
    (one,) = read(cluster(node("n")), waiting, additions=[labelled(gang)]).jobs
    (whole,) = one.groups
    assert (whole.name, whole.min_groups, [group.name for group in whole.groups]) == ("gang", 2, ["a", "b", "c"])
    assert [(group.name, group.count, group.min_count) for group in whole.groups[0].groups] == [
        ("leader", 1, None),
        ("workers", 2, 1),
    ]
    assert one.task_names["gang/a/workers"] == ("ns/p1", "ns/p2")
    # b runs: of the other two one is needed
    waiting[3] = pod("p3", "n", labels={"gang": "g", "group": "b"})
    runs, waits = read(cluster(node("n")), waiting, additions=[labelled(gang)]).jobs
    assert [place.group for place in held(Snapshot(jobs=(runs,)), "ns/g")] == ["b"]
    assert (waits.groups[0].min_groups, [group.name for group in waits.groups[0].groups]) == (1, ["a", "c"])


def test_a_pod_that_is_being_bound_holds_its_cards_and_shared_cards_have_names() -> None:
    names = {"a": ("x",), "b": ("y",), "c": ("x", "y")}
    system = Addition(bound=lambda one: "n", shared=lambda one: names[one.metadata.name])
    half = {"gpu-fraction": "0.25"}
    found = read(
        cluster(node("n", 3)),
        [
            pod("a", "", {"cpu": 1}, annotations=half),
            pod("b", "", {"cpu": 1}, annotations=half),
            pod("c", "", {"cpu": 1}, annotations={**half, "gpu-fraction-num-devices": "2"}),
        ],
        additions=[system],
    )
    assert [cards(found, f"ns/{name}") for name in "abc"] == [(0,), (1,), (0, 1)]


def test_what_a_system_adds_to_pods_and_holds_back() -> None:
    def wider(one: Any) -> PodSpec:
        spec: PodSpec = one.spec
        spec.node_selector = {"zone": "1"}
        return spec

    def member(one: Any) -> tuple[str, str] | None:
        return ("ns/h", "pods") if one.metadata.name == "h" else None

    system = Addition(member=member, spec_of=wider, withheld=frozenset({"ns/h"}))
    found = read(Cluster(NODES), [pod("p", amounts={"cpu": 1}), pod("h", amounts={"cpu": 1})], additions=[system])
    assert [one.name for one in found.jobs] == ["ns/p"]
    assert task(found, "ns/p").node_selector == {"zone": "1"}


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
