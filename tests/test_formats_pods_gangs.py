"""Gangs to jobs, whole and in part, and what other systems say of pods."""

from __future__ import annotations

from typing import Any

import pytest
from pod_cases import GPU, NODES, away, cards, cluster, held, job, labelled, members, node, pod, read, task, usable

from placement.errors import InputError
from placement.formats.kubernetes.parts import Addition, Cluster, Gang, GangGroup
from placement.formats.kubernetes.pod import Container, PodSpec, Resources
from placement.snapshot import (
    Slice,
    Snapshot,
    Spread,
    Topology,
)


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
    # the pods that are there come first, and the others have no names
    assert one.task_names == {"pods": ("ns/g-0", "ns/g-1")}


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


# --- what other systems add ------------------------------------------------------------------------------------------


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
