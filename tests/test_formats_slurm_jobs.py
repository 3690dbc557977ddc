"""Slurm's waiting jobs: where and when they may run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from slurm_records import NOW, dump, job, kinds, ledger, message, node, number, of, only, runs

from placement.errors import InputError
from placement.formats.source import File
from placement.scheduling.schedule import schedule
from placement.snapshot import Spread, Taint, Topology

APART = Topology(spread=(Spread(level="node", max_per_domain=1),))


def test_where_a_job_may_run() -> None:
    nodes = [
        node("n1", features=["ib", "x"], partitions=["gpu"]),
        node("n2", features=["ib"], partitions=["gpu", "long"]),
        node("n3", features=["eth"], partitions=["long"]),
    ]

    def fits(**fields: Any) -> list[str]:
        snapshot = of(nodes, [job(1, **fields)])
        wanted = only(snapshot)[1].node_selector.items()
        return [found.name for found in snapshot.nodes if wanted <= found.labels.items()]

    assert fits() == ["n1", "n2"]
    assert fits(partition="long") == ["n2", "n3"]
    assert fits(partition="gpu,long") == ["n1", "n2", "n3"]
    assert fits(features="ib&x") == ["n1"]
    assert fits(partition="long", features="x|eth") == ["n3"]
    assert fits(features="(x|eth)&ib") == ["n1"]
    assert fits(required_nodes="n2") == ["n2"]
    assert fits(excluded_nodes="n[2-3]") == ["n1"]
    assert fits(partition="gone") == []


def test_features_that_a_snapshot_cannot_say() -> None:
    snapshot = of([node("n1")], [job(1, features="[rack1*2&rack2*4]")])
    assert "features that are counted or set in relation" in kinds(snapshot, "ignored")
    with pytest.raises(InputError, match=r"jobs\.json.*features that are counted"):
        of([node("n1")], [job(1, features="[rack1*2&rack2*4]")], strict=True)


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"hold": True}, "a job that is held"),
        ({"state_reason": "JobHeldAdmin"}, "a job that is held"),
        ({"state_reason": "Dependency", "priority": number(0)}, "a job that is held"),
        ({"eligible_time": number(NOW + 60)}, "a job that may not start before a time"),
        ({"licenses": "matlab:1"}, "field licenses of a job"),
        ({"contiguous": True}, "nodes that must be neighbours"),
        ({"required_switches": 2, "node_count": number(2)}, "most switches of a job"),
        ({"dependency": "afterok:2(failed)"}, "a job that waits for what cannot happen"),
        ({"state_reason": "DependencyNeverSatisfied"}, "a job that waits for what cannot happen"),
        ({"network": "sn_all"}, "field network of a job"),
        ({"cores_per_socket": number(8)}, "field cores_per_socket of a job"),
        ({"dependency": "singleton(unfulfilled)"}, "a job that waits for those of its name"),
        ({"tres_per_node": "gres/gpu:h100:1,gres/gpu:h200:1"}, "cards of several types in one request"),
    ],
)
def test_what_limits_a_job_and_cannot_be_said(fields: Mapping[str, Any], what: str) -> None:
    assert what in kinds(of([node("n1")], [job(1, **fields)]), "ignored")
    with pytest.raises(InputError, match=what):
        of([node("n1")], [job(1, **fields)], strict=True)


def test_arrays() -> None:
    waits = job(50, array_job_id=number(50), array_task_string="1-3,7,10-14:2%2")
    has = runs(61, "n1", ["gpu:h100:1(IDX:0)"], array_job_id=number(50), array_task_id=number(0))
    snapshot = of([node("n1", used="")], [waits, has, job(9, dependency="afterok:50_7(unfulfilled),afterany:50_*")])
    names = ["50_1", "50_2", "50_3", "50_7", "50_10", "50_12", "50_14", "50_0"]
    assert [found.name for found in snapshot.jobs] == [*names, "9"]
    assert sorted(snapshot.jobs[-1].after) == sorted(names)
    assert "how many tasks of an array run at once" in kinds(snapshot, "ignored")
    endless = dump(jobs=[job(50, array_job_id=number(50), array_task_string="1-999999999")])
    assert message(dump(nodes=[node("n1")]), endless).startswith("jobs.json: jobs[0].array_task_string: more than")


def test_parts_of_a_heterogeneous_job() -> None:
    parts = [job(70 + part, het_job_id=number(70), het_job_offset=number(part)) for part in range(2)]
    snapshot = of([node("n1")], [*parts, job(80, dependency="afterok:70")])
    assert [found.name for found in snapshot.jobs] == ["70+0", "70+1", "80"]
    assert snapshot.jobs[2].after == ("70+0", "70+1")


def test_dependencies() -> None:
    jobs = [runs(1, "n1", ["gpu:h100:1(IDX:0)"]), job(2), job(3, dependency="afterok:1(unfulfilled),afterany:2:99")]
    snapshot = of([node("n1", used="")], [*jobs, job(4, dependency="afterok:1(fulfilled)")])
    assert [found.after for found in snapshot.jobs] == [(), (), ("1", "2"), ()]
    assert "a job that waits for one that is in no file" in ledger(snapshot)
    found = message(dump(nodes=[node("n1")]), dump(jobs=[job(1, dependency="whenever:2")]))
    assert found.startswith('jobs.json: jobs[0].dependency: "whenever:2" is no form of dependency')


def test_priorities_are_tiers() -> None:
    snapshot = of([node("n1")], [job(1, priority=number(181)), job(2, priority=number(909))])
    assert [found.priority for found in snapshot.jobs] == [181, 909]
    # what is beyond a snapshot's numbers becomes ranks
    snapshot = of([node("n1")], [job(1, priority=4294901759), job(2, priority=5), job(3, priority=4294901758)])
    assert [found.priority for found in snapshot.jobs] == [2, 0, 1]


def test_limits_and_deadlines() -> None:
    jobs = [
        job(1, time_limit={"set": False, "infinite": True, "number": 0}),
        job(2, time_limit=30, deadline=number(NOW + 500)),
    ]
    one, other = of([node("n1")], jobs).jobs
    assert (one.duration, one.deadline, one.hard_deadline) == (None, None, False)
    assert other.duration is not None
    assert (other.duration.seconds, other.deadline, other.hard_deadline) == (1800, NOW + 500, True)


def test_exclusive_jobs_are_alone() -> None:
    snapshot = of([node("n1", used="")], [job(1, exclusive=["true"]), job(2), runs(3, "n1", ["gpu:h100:1(IDX:0)"])])
    (there,) = snapshot.nodes
    takes = [found.groups[0].task and found.groups[0].task.extended["slurm/node"] for found in snapshot.jobs]
    # either the first alone, or a million others
    assert (there.extended["slurm/node"], takes) == (10**6, [10**6, 1, 1])
    part = dump(partitions=[{"name": "gpu", "nodes": {"configured": "n1"}, "maximums": {"shares": 0}}])
    snapshot = of([node("n1")], [job(1)], part)
    assert only(snapshot)[1].extended == {"slurm/node": 10**6}


def test_reservations() -> None:
    record = {
        "name": "course",
        "node_list": "n[1-2]",
        "start_time": number(NOW + 10),
        "end_time": number(NOW + 100),
        "flags": ["SPEC_NODES"],
    }
    maintenance = {**record, "name": "service", "node_list": "n3", "flags": ["MAINT"]}
    over = {**record, "name": "over", "start_time": number(1), "end_time": number(NOW - 1)}
    snapshot = of(
        [node("n1"), node("n2"), node("n3")],
        [job(1, resv_name="course"), job(2)],
        dump(reservations=[record, maintenance, over]),
    )
    assert [(one.name, one.nodes, one.jobs) for one in snapshot.reservations] == [
        ("course", ("n1", "n2"), ("1",)),
        ("service", ("n3",), ()),
    ]
    assert (snapshot.reservations[0].start, snapshot.reservations[0].end) == (NOW + 10, NOW + 100)
    task = snapshot.jobs[0].groups[0].task
    assert task is not None
    assert task.node_selector["slurm/reservation/course"] == "yes"
    assert [found.labels.get("slurm/reservation/course") for found in snapshot.nodes] == ["yes", "yes", None]


def test_a_reserved_node_without_its_reservation() -> None:
    snapshot = of([node("n1", state=["IDLE", "RESERVED"], reservation="course")], [job(1, resv_name="course"), job(2)])
    assert snapshot.nodes[0].taints == (Taint(key="slurm/reservation", value="course"),)
    tasks = [found.groups[0].task for found in snapshot.jobs]
    assert [[one.value for one in task.tolerations] for task in tasks if task] == [["course"], []]


def test_switches_and_segments() -> None:
    topology = File(
        "topology.conf", b"SwitchName=s1 Nodes=n[1-2]\nSwitchName=s2 Nodes=n3\nSwitchName=s0 Switches=s[1-2]\n"
    )
    wants = {"tres_per_node": "gres/gpu:4", "node_count": number(2)}
    jobs = [job(1, **wants, required_switches=1), job(2, **wants, segment_size=2), job(3, **wants)]
    snapshot = of([node("n1"), node("n2"), node("n3")], jobs, topology)
    narrow = snapshot.topology[-1]
    found = [one.groups[0].topology for one in snapshot.jobs]
    assert found[0] is not None
    assert found[0].required == narrow
    assert found[0].spread == APART.spread
    assert found[1] is not None
    assert [(part.level, part.sizes) for part in found[1].slices] == [(narrow, (2,))]
    # as few switches as can be, which is no more than a preference
    assert found[2] == Topology(preferred=narrow, spread=APART.spread)
    assert {one.preferred for one in found[:2] if one is not None} == {"", narrow}
    assert [one.position[narrow] for one in snapshot.nodes] == ["s1", "s1", "s2"]


def test_no_place_makes_a_job_longer_than_its_limit() -> None:
    """Slurm ends it then: on two nodes of two switches a limit of 10 minutes is 600 s, not 1.5 or 2 times that."""
    topology = File("topology.conf", b"SwitchName=s1 Nodes=n1\nSwitchName=s2 Nodes=n2\nSwitchName=s0 Switches=s[1-2]\n")
    wide = job(1, tres_per_node="gres/gpu:4", node_count=number(2), time_limit=number(10))
    snapshot = of([node("n1"), node("n2")], [wide], topology)
    assert list(schedule(snapshot).jobs.run) == [600]


def test_partitions_that_are_down() -> None:
    part = dump(partitions=[{"name": "gpu", "nodes": {"configured": "n[1-2]"}, "partition": {"state": ["INACTIVE"]}}])
    snapshot = of([node("n1", partitions=[])], [job(1)], part)
    assert "a job in a partition that is INACTIVE" in kinds(snapshot, "ignored")
    assert snapshot.nodes[0].labels == {"slurm/partition/gpu": "yes"}


@pytest.mark.parametrize(("nodes", "named"), [(1, False), (2, True)])
def test_alternatives_in_brackets_are_asked_of_each_node(nodes: int, named: bool) -> None:
    """All nodes of a job must have the same of them, which is nothing more for a job of one node."""
    there = [node(name, features=[name[0]], active_features=[name[0]]) for name in ("a1", "b1", "c1")]
    snapshot = of(there, [job(1, features="[a|b]", tres_per_node="gres/gpu:1", node_count=number(nodes))])
    _, task = only(snapshot)
    fits = [one.name for one in snapshot.nodes if task.node_selector.items() <= one.labels.items()]
    assert fits == ["a1", "b1"]
    assert ("features of which all nodes must have the same" in kinds(snapshot, "ignored")) is named
