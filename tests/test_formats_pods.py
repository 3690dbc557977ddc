"""Pods to jobs: what runs, what waits, which nodes it may use, and what a damaged file gives."""

from __future__ import annotations

import contextlib
import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pod_cases import (
    EPOCH,
    GPU,
    NODES,
    away,
    cards,
    cluster,
    job,
    labelled,
    members,
    node,
    pod,
    read,
    said,
    task,
    terms,
    usable,
)

import placement as pl
from placement.errors import InputError
from placement.formats.kubernetes.parts import Cluster, Offer
from placement.snapshot import (
    Gpu,
    Toleration,
)


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


# --- which nodes a pending pod may use -------------------------------------------------------------------------------


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


# --- other pods ------------------------------------------------------------------------------------------------------


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


# --- priorities, times, errors ---------------------------------------------------------------------------------------


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
