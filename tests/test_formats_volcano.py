"""Objects of Volcano: levels of hyper nodes, queues, gangs, and nominations of a plan."""

from __future__ import annotations

import json
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import placement as pl
from placement.errors import InputError
from placement.formats.kubernetes.nested import fewest, leaves, tree
from placement.formats.kubernetes.objects import Objects
from placement.formats.kubernetes.parts import Addition, Gang, GangGroup
from placement.formats.kubernetes.peers import least_of_each
from placement.formats.kubernetes.pod import Pod
from placement.formats.ledger import Ledger
from placement.formats.source import File
from placement.formats.volcano.read import read
from placement.formats.volcano.write import write
from placement.quota import Quotas
from placement.snapshot import Gpu, Job, Node, Snapshot, Task, TaskGroup, Topology

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

from translate import volcano_objects

Object = dict[str, Any]


def hyper(name: str, tier: int | str, members: list[Object], tier_name: str | None = None) -> Object:
    spec: Object = {"tier": tier, "members": members}
    if tier_name:
        spec["tierName"] = tier_name
    return {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": {"name": name}, "spec": spec}


def exact(name: str, kind: str = "Node") -> Object:
    return {"type": kind, "selector": {"exactMatch": {"name": name}}}


def node(name: str, **labels: str) -> Object:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


def pod(name: str, group: str = "pg", task: str = "", phase: str = "Pending", **labels: str) -> Object:
    notes = {"scheduling.k8s.io/group-name": group, **({"volcano.sh/task-spec": task} if task else {})}
    meta = {"name": name, "namespace": "ns", "annotations": notes, "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {}, "status": {"phase": phase}}


def pod_group(name: str = "pg", phase: str = "Inqueue", annotations: Object | None = None, **spec: Any) -> Object:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "ns", "annotations": annotations or {}},
        "spec": spec,
        "status": {"phase": phase},
    }


def queue(name: str, **spec: Any) -> Object:
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def found(*objects: Object, strict: bool = False, ledger: Ledger | None = None) -> Addition:
    data = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}).encode()
    return read(Objects([File("all.json", data)]), Ledger(strict) if ledger is None else ledger)


def only(addition: Addition) -> Gang:
    (gang,) = addition.gangs
    return gang


def asked(gang: Gang) -> dict[str, tuple[int | None, int | None]]:
    return {path: (group.count, group.min_count) for path, group in leaves(gang.groups)}


def kinds(ledger: Ledger) -> dict[str, str]:
    return {entry.what: entry.kind for entry in ledger.entries()}


THREE = [hyper(f"s{i}", 1, [exact(f"n{2 * i}"), exact(f"n{2 * i + 1}")], "rack") for i in range(3)]
ROOM = hyper("room", 2, [exact("s0", "HyperNode"), exact("s1", "HyperNode")])
SIX = [node(f"n{i}", row="a" if i < 2 else "b") for i in range(6)]


# --- hyper nodes -------------------------------------------------------------------------------------------------


def test_tiers_are_levels_from_wide_to_narrow_by_their_names() -> None:
    """A higher tier is wider; s2 is in no hyper node of tier 2."""
    got = found(*THREE, ROOM, *SIX)
    assert got.tiers == ("tier-2", "rack")
    assert got.positions["n0"] == {"tier-2": "room", "rack": "s0"}
    assert got.positions["n3"] == {"tier-2": "room", "rack": "s1"}
    assert got.positions["n5"] == {"rack": "s2"}


def test_members_by_pattern_and_by_label() -> None:
    """Patterns are found anywhere in a name, as in Go; labels by every operator."""
    expressions = [
        {"key": "row", "operator": "In", "values": ["b"]},
        {"key": "gone", "operator": "DoesNotExist"},
        {"key": "row", "operator": "Exists"},
        {"key": "row", "operator": "NotIn", "values": ["a"]},
    ]
    one = hyper("one", "1", [{"type": "Node", "selector": {"regexMatch": {"pattern": "[01]$"}}}])
    two = hyper("two", 1, [{"type": "Node", "selector": {"labelMatch": {"matchExpressions": expressions}}}])
    got = found(one, two, *SIX)
    assert {name: at["tier-1"] for name, at in got.positions.items()} == {
        "n0": "one",
        "n1": "one",
        "n2": "two",
        "n3": "two",
        "n4": "two",
        "n5": "two",
    }


@pytest.mark.parametrize(
    ("objects", "what"),
    [
        ([hyper("a", 1, [exact("b", "HyperNode")]), hyper("b", 1, [exact("a", "HyperNode")])], "tier 1 is in one of"),
        ([*THREE, hyper("x", 1, [exact("n0")])], "of one tier"),
        ([*THREE, ROOM, hyper("hall", 2, [exact("s0", "HyperNode")])], 'hyper node "s0" is in "room" and in "hall"'),
        ([hyper("a", 1, [{"type": "Node"}])], "has no selector"),
        ([hyper("a", 1, [{"type": "Rack", "selector": {"exactMatch": {"name": "n"}}}])], "no kind of member"),
        ([hyper("a", "low", [])], "the tier is"),
        ([hyper("a", 1, [{"selector": {"regexMatch": {"pattern": "("}}}])], "not a pattern"),
        ([hyper("a", 1, [{"selector": {"regexMatch": {"pattern": "(a+)+$"}}}])], "may take for ever"),
        ([hyper("a", 1, []), hyper("a", 2, [])], "differs"),
        ([hyper("a", 1, [], "rack"), hyper("b", 2, [], "rack")], "both called"),
        ([{"kind": "HyperNode", "name": "s0", "spec": {"tier": 1}}], "no `apiVersion`"),
    ],
)
def test_hyper_nodes_that_make_no_tree_are_refused_with_their_place(objects: list[Object], what: str) -> None:
    with pytest.raises(InputError) as raised:
        found(*objects)
    problem = raised.value.problems[0]
    assert what in problem.what
    assert problem.path.startswith("items[")


def test_members_that_are_not_there_are_noted() -> None:
    ledger = Ledger()
    got = found(hyper("a", 2, [exact("b", "HyperNode"), exact("n0"), exact("n9")]), node("n0"), ledger=ledger)
    assert got.positions == {"n0": {"tier-2": "a"}}
    assert kinds(ledger)["a member HyperNode that is not there"] == "contradiction"
    assert kinds(ledger)["a member node that is not there"] == "contradiction"


# --- how near ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked_for", "rules"),
    [
        ({"mode": "hard", "highestTierAllowed": 1}, Topology(required="rack")),
        ({"highestTierName": "rack"}, Topology(required="rack")),
        ({"mode": "hard", "highestTierAllowed": 2}, Topology(required="tier-2")),
        ({"mode": "hard", "highestTierAllowed": 3}, None),
        ({"mode": "hard", "highestTierAllowed": 0}, Topology(required="node")),
        ({"mode": "soft", "highestTierAllowed": 2}, Topology(preferred="rack")),
        ({}, None),
    ],
)
def test_network_topology(asked_for: Object, rules: Topology | None) -> None:
    """By number or by name: the limit by a name was once overlooked. Soft mode prefers the lowest tier that fits."""
    group = pod_group(minMember=2, networkTopology=asked_for)
    gang = only(found(*THREE, ROOM, *SIX, group, pod("a"), pod("b")))
    assert gang.groups[0].topology == rules
    assert gang.topology is None


def test_partitions_by_the_name_of_a_tier_lie_in_one_domain_each() -> None:
    """The limit is that of each partition, and also where only the job is there and no pods yet."""
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "ns"},
        "spec": {
            "minAvailable": 4,
            "tasks": [
                {
                    "name": "w",
                    "replicas": 4,
                    "template": {"spec": {"priority": 7}},
                    "partitionPolicy": {
                        "totalPartitions": 2,
                        "partitionSize": 2,
                        "networkTopology": {"mode": "hard", "highestTierName": "rack"},
                    },
                }
            ],
        },
    }
    gang = only(found(*THREE, *SIX, job))
    assert gang.key == "ns/j"
    assert asked(gang) == {"w/0": (2, None), "w/1": (2, None)}
    assert {group.topology for _, group in leaves(gang.groups)} == {Topology(required="rack")}
    assert all(group.template is not None and group.template.priority == 7 for _, group in leaves(gang.groups))


def test_an_unknown_tier_name_is_an_error_in_a_strict_import() -> None:
    objects = [*THREE, pod_group(minMember=1, networkTopology={"highestTierName": "row"}), pod("a")]
    ledger = Ledger()
    assert only(found(*objects, ledger=ledger)).groups[0].topology is None
    assert kinds(ledger)["a network topology up to a tier by name"] == "ignored"
    with pytest.raises(InputError, match="tier by name"):
        found(*objects, strict=True)


# --- gangs -------------------------------------------------------------------------------------------------------


def test_a_gang_that_is_larger_than_its_pods_waits_for_the_others() -> None:
    """20 of 20 are needed and 8 are there: the gang has 20, all of them needed."""
    gang = only(found(pod_group(minMember=20), *(pod(f"p{i}") for i in range(8))))
    assert asked(gang) == {"default": (20, None)}


def test_least_numbers_by_task_count_where_they_add_up_to_no_more_than_the_gangs() -> None:
    pods = [pod("m0", task="m"), pod("m1", task="m"), *(pod(f"w{i}", task="w") for i in range(3))]
    gang = only(found(pod_group(minMember=3, minTaskMember={"m": 1, "w": 2}), *pods))
    assert (asked(gang), gang.min_groups) == ({"m": (2, 1), "w": (3, 2)}, None)
    # 2 < 1 + 2: any two pods will do, so here a pod of each
    gang = only(found(pod_group(minMember=2, minTaskMember={"m": 1, "w": 2}), *pods))
    assert (asked(gang), gang.min_groups) == ({"m": (2, 1), "w": (3, 1)}, None)


def test_one_pod_of_whatever_task_is_enough() -> None:
    gang = only(found(pod_group(minMember=1), pod("m", task="m"), pod("w", task="w")))
    assert (asked(gang), gang.min_groups) == ({"m": (1, None), "w": (1, None)}, 1)


def test_what_has_ended_is_needed_no_more() -> None:
    """4 of 6 are needed, and one has succeeded: 3 of the 4 that are left. A failed pod is none of them."""
    pods = [pod(f"p{i}") for i in range(4)]
    gang = only(found(pod_group(minMember=4), *pods, pod("s", phase="Succeeded"), pod("f", phase="Failed")))
    assert asked(gang) == {"default": (4, 3)}


def test_a_gang_that_lost_a_pod_is_whole_or_nothing() -> None:
    """Three of four hold their places and one is gone: the gang still needs four."""
    pods = [pod(f"p{i}", phase="Running") for i in range(3)]
    assert asked(only(found(pod_group(minMember=4, phase="Unknown"), *pods))) == {"default": (4, None)}


def test_subgroups() -> None:
    """Two policies; of prefill one of two subgroups of two is needed, of decode each pod of the one."""
    policies = [
        {
            "name": "prefill",
            "subGroupSize": 2,
            "minSubGroups": 1,
            "labelSelector": {"matchLabels": {"role": "p"}},
            "matchLabelKeys": ["shard"],
            "networkTopology": {"mode": "hard", "highestTierAllowed": 1},
        },
        {"name": "decode", "labelSelector": {"matchLabels": {"role": "d"}}},
    ]
    pods = [pod(f"p{i}", role="p", shard=str(i // 2)) for i in range(4)] + [pod("d", role="d"), pod("x", role="x")]
    got = found(*THREE, pod_group(minMember=3, subGroupPolicy=policies), *pods)
    gang = only(got)
    assert asked(gang) == {"prefill/0": (2, None), "prefill/1": (2, None), "decode": (1, None), "default": (1, None)}
    assert (gang.groups[0].min_groups, gang.min_groups) == (1, None)
    assert gang.groups[0].groups[0].topology == Topology(required="rack")
    records = Objects([File("pods", json.dumps({"kind": "List", "items": pods}).encode())]).of("", "Pod", Pod)
    assert [got.member(item.value) for item in records] == [
        ("ns/pg", "prefill/0"),
        ("ns/pg", "prefill/0"),
        ("ns/pg", "prefill/1"),
        ("ns/pg", "prefill/1"),
        ("ns/pg", "decode"),
        ("ns/pg", "default"),
    ]


def test_priority_and_whether_it_may_be_preempted() -> None:
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9}
    group = pod_group(minMember=1, priorityClassName="high", annotations={"volcano.sh/preemptable": "false"})
    gang = only(found(high, group, pod("a")))
    assert (gang.priority, gang.preemptible) == (9, False)
    gang = only(found(pod_group(minMember=1), pod("a")))
    assert (gang.priority, gang.preemptible) == (None, True)


@given(st.integers(1, 12), st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
@settings(max_examples=150, deadline=None)
def test_what_is_asked_of_groups_is_always_enough(least: int, sizes: list[int], data: st.DataObject) -> None:
    """Whatever starts by the numbers of the groups has as many pods as the gang needs, and of each task."""
    counts = {f"g{i}": size for i, size in enumerate(sizes)}
    stated = {name: data.draw(st.integers(0, size)) for name, size in counts.items()}
    least = min(least, sum(sizes))
    mins, groups = least_of_each(least, counts, stated, Ledger(), "")
    assert all(1 <= mins[name] <= counts[name] for name in counts)
    smallest = sorted(mins.values())[: groups or len(mins)]
    assert sum(smallest) >= least
    if 0 < sum(stated.values()) <= least:
        assert groups is None
        assert all(mins[name] >= stated[name] for name in counts)


# --- queues ------------------------------------------------------------------------------------------------------


def test_a_queue_may_have_what_it_deserves_and_more_up_to_its_capability() -> None:
    """a: 2 and up to 5; b: any amount; what is in both is in neither limit."""
    gpu = "nvidia.com/gpu"
    got = found(queue("a", deserved={gpu: 2}, capability={gpu: "5", "cpu": 8}, weight=3), queue("b", weight=1))
    quotas = Quotas(got.queues)
    assert quotas.room("a", "*") == 5
    assert quotas.room("b", "*") == 1_000_000 + 2
    assert [queue.weight for queue in got.queues] == [1.0, 3.0, 1.0]
    assert got.queues[1].quota == {"*": 2}


def test_queues_within_queues_keep_to_every_limit() -> None:
    """The parent's 4 bind together before the 3 of each child do: 3 + 1."""
    gpu = "nvidia.com/gpu"
    above = queue("above", capability={gpu: 4}, parent="root")
    children = [queue(name, capability={gpu: 3}, deserved={gpu: "1500m"}, parent="above") for name in "ab"]
    quotas = Quotas(found(above, *children).queues)
    assert quotas.room("a", "*") == 3
    quotas.change("a", {"gpu": 3})
    assert quotas.room("b", "*") == 1
    assert quotas.row("b", "*").subtree == Fraction(3, 2)


def test_queues_that_go_round_or_are_not_there() -> None:
    with pytest.raises(InputError, match="go round"):
        found(queue("a", parent="b"), queue("b", parent="a"))
    ledger = Ledger()
    got = found(queue("a", parent="gone"), pod_group(minMember=1, queue="none"), pod("p"), ledger=ledger)
    assert got.queues[0].parent == ""
    assert only(got).queue == ""
    assert kinds(ledger)["a queue whose parent is not there"] == "contradiction"
    assert kinds(ledger)["a queue that is not there"] == "ignored"


def test_a_wrong_amount_is_an_error_with_its_place() -> None:
    with pytest.raises(InputError, match="negative") as raised:
        found(queue("a", capability={"nvidia.com/gpu": "-1"}))
    assert "items[0].spec.capability" in str(raised.value)


# --- groups of a job, and nominations ----------------------------------------------------------------------------


def test_groups_of_a_gang_become_groups_of_a_job() -> None:
    """Of three groups two are needed: where one has started elsewhere, one of those that wait. What is empty goes."""
    pairs = GangGroup("a", groups=tuple(map(GangGroup, "xyz")), min_groups=2, topology=Topology(required="rack"))
    gang = (pairs, GangGroup("b"), GangGroup("c", groups=(GangGroup("gone"),)))
    assert [path for path, _ in leaves(gang)] == ["a/x", "a/y", "a/z", "b", "c/gone"]
    made = {path: [TaskGroup(name=path[-1], count=2, task=Task())] for path in ("a/x", "a/y", "b")}
    seen: list[tuple[Topology, int]] = []

    def judged(topology: Topology, count: int) -> Topology | None:
        seen.append((topology, count))
        return topology

    first, second = tree(gang, made, {"a/z"}, judged)
    assert (first.name, first.min_groups, len(first.groups), first.topology) == ("a", 1, 2, Topology(required="rack"))
    assert (second.name, second.min_groups) == ("b", None)
    assert seen == [(Topology(required="rack"), 4)]
    assert [fewest(number, ["a", "b"], (), 2) for number in (None, 1, 2, 3)] == [None, 1, None, None]


def test_nominations() -> None:
    job = Job(
        name="ns/pg",
        groups=(TaskGroup(name="w", count=2, task=Task(gpus=1)),),
        task_names={"w": ("ns/w-0", "ns/w-1")},
    )
    snapshot = Snapshot(nodes=(Node(name="n", gpus=(Gpu(model="m", count=2),)),), jobs=(job,))
    document = json.loads(write(snapshot, pl.solve(snapshot)))
    assert document["kind"] == "List"
    assert document["items"] == [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"w-{i}", "namespace": "ns"},
            "status": {"nominatedNodeName": "n"},
        }
        for i in range(2)
    ]


def test_a_case_as_objects_and_what_becomes_of_it() -> None:
    """Hyper nodes that are called alike are told apart; fewer and more than the source binds are told apart too."""
    pods = [{"name": f"p{i}", "phase": "Pending", "requests": {"cpu": "1"}, "group": "pg"} for i in range(2)]
    amounts = {"cpu": "2", "memory": "4Gi", "pods": "10"}
    case = {
        "case_id": "v",
        "source": {"repo": "here", "path": "none", "commit": "0", "licence": "none"},
        "action": "allocate",
        "nodes": [{"name": name, "allocatable": amounts} for name in "ab"],
        "hypernodes": [
            {"name": "s", "tier": 1, "members": [name], "member_kind": "node", "tier_name": "rack"} for name in "ab"
        ],
        "queues": [{"name": "q", "weight": 1}],
        "groups": [
            {
                "name": "pg",
                "queue": "q",
                "min_member": 2,
                "phase": "PodGroupInqueue",
                "topology": {"mode": "hard", "highest_tier_name": "rack"},
            }
        ],
        "pods": pods,
        "expected": {"binds": 2},
    }
    got = read(Objects(volcano_objects.files(case)), Ledger())
    assert got.positions == {"a": {"rack": "s-0"}, "b": {"rack": "s-1"}}
    assert only(got).groups == (GangGroup("default", count=2, topology=Topology(required="rack")),)
    group = TaskGroup(name="w", count=2, task=Task(cpu=1))
    job = Job(name="default/pg", groups=(group,), task_names={"w": ("default/p0", "default/p1")})
    snapshot = Snapshot(nodes=(Node(name="a", cpu=2),), jobs=(job,))
    plan = pl.solve(snapshot)
    document = write(snapshot, plan)
    assert volcano_objects.compare(case, snapshot, plan, document) == "agrees"
    assert volcano_objects.compare({**case, "expected": {"binds": 1}}, snapshot, plan, document) == "better"
    assert volcano_objects.compare({**case, "expected": {"binds": 3}}, snapshot, plan, document).startswith("differs")
    assert "not the pods that wait" in volcano_objects.compare({**case, "pods": []}, snapshot, plan, document)
