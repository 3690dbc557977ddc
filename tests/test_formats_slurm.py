"""Slurm's JSON to a snapshot: what is in use, what is free, and what waits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from placement.errors import InputError
from placement.formats.read import read
from placement.formats.slurm.gres import Gres, allocated, amount, parse, tres
from placement.formats.slurm.labels import expression
from placement.formats.slurm.numbers import Field, Number, value
from placement.formats.source import File
from placement.snapshot import Affinity, Job, Node, NumaZone, Snapshot, Spread, Taint, Task, Topology

NOW = 1_800_000_000


def number(value: float) -> dict[str, Any]:
    return {"set": True, "infinite": False, "number": value}


UNSET = {"set": False, "infinite": False, "number": 0}


def node(name: str, gres: str = "gpu:h100:4", used: str | None = None, **more: Any) -> dict[str, Any]:
    """Return a node of 32 threads and 256 GiB as v0.0.44 prints it."""
    if used is None:
        used = ",".join(f"gpu:{part.split(':')[1]}:0(IDX:N/A)" for part in gres.split(",") if part.count(":") > 1)
    return {
        "name": name,
        "hostname": name,
        "state": ["IDLE"],
        "gres": gres,
        "gres_used": used,
        "gres_drained": "N/A",
        "cpus": 32,
        "effective_cpus": 32,
        "sockets": 2,
        "cores": 16,
        "threads": 1,
        "real_memory": 262144,
        "specialized_memory": 0,
        "alloc_memory": 0,
        "alloc_cpus": 0,
        "features": [],
        "active_features": [],
        "partitions": ["gpu"],
        "reservation": "",
        "owner": "",
        "tres_used": "",
        **more,
    }


def job(number_: int, **more: Any) -> dict[str, Any]:
    """Return a job that waits for one node with 4 threads and 1 GiB on each."""
    return {
        "job_id": number_,
        "array_job_id": number(0),
        "array_task_id": UNSET,
        "array_task_string": "",
        "het_job_id": number(0),
        "job_state": ["PENDING"],
        "state_reason": "Resources",
        "hold": False,
        "account": "physics",
        "partition": "gpu",
        "priority": number(100),
        "nodes": "",
        "gres_detail": [],
        "job_resources": None,
        "cpus": number(4),
        "node_count": number(1),
        "max_nodes": number(0),
        "tasks": number(1),
        "cpus_per_task": number(4),
        "memory_per_cpu": number(256),
        "memory_per_node": UNSET,
        "submit_time": number(NOW - 100),
        "start_time": number(0),
        "time_limit": number(60),
        **more,
    }


def runs(number_: int, nodes: str, detail: list[str], **more: Any) -> dict[str, Any]:
    return job(
        number_,
        **{"job_state": ["RUNNING"], "nodes": nodes, "gres_detail": detail, "start_time": number(NOW - 50), **more},
    )


def dump(**lists: Any) -> File:
    return File(f"{'-'.join(lists)}.json", json.dumps({**lists, "last_update": number(NOW)}).encode())


def of(nodes: list[dict[str, Any]], jobs: list[dict[str, Any]] | None = None, *files: File, **more: Any) -> Snapshot:
    """Return the snapshot of nodes and jobs, each of which is free of others' work."""
    found = [dump(nodes=nodes)]
    if jobs is not None:
        found.append(dump(jobs=jobs))
    return read([*found, *files], **more)


def held(snapshot: Snapshot) -> dict[str, list[tuple[str, tuple[int, ...]]]]:
    """Return nodes and cards of each running job."""
    return {job.name: [(task.node, task.gpus) for task in job.running.tasks] for job in snapshot.jobs if job.running}


def only(snapshot: Snapshot) -> tuple[Job, Task]:
    """Return the one job, and the task of its one group."""
    (found,) = snapshot.jobs
    (group,) = found.groups
    assert group.task is not None
    return found, group.task


def ledger(snapshot: Snapshot) -> dict[str, str]:
    return {entry.what: entry.why for entry in snapshot.ledger}


def kinds(snapshot: Snapshot, kind: str) -> list[str]:
    return [entry.what for entry in snapshot.ledger if entry.kind == kind]


def message(*files: File, **more: Any) -> str:
    with pytest.raises(InputError) as found:
        read(files, **more)
    return str(found.value)


# --- texts ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("gpu:h100:4(S:0,2-3)", [Gres("gpu", "h100", 4, sockets=(0, 2, 3))]),
        ("gpu:4", [Gres("gpu", "", 4)]),
        ("gpu", [Gres("gpu", "", 1)]),
        ("gpu:h100", [Gres("gpu", "h100", 1)]),
        ("gpu:h100:2(IDX:0,3-5)", [Gres("gpu", "h100", 2, indices=(0, 3, 4, 5))]),
        ("gpu:h100:0(IDX:N/A)", [Gres("gpu", "h100", 0, indices=())]),
        ("(null)", []),
        ("N/A", []),
        ("", []),
        ("gres/gpu=2", [Gres("gpu", "", 2)]),
        ("gres/gpu:h100=2,gres/gpu:2", [Gres("gpu", "h100", 2), Gres("gpu", "", 2)]),
        ("gres:gpu:a100:1", [Gres("gpu", "a100", 1)]),
        ("gpu:1g.5gb:7", [Gres("gpu", "1g.5gb", 7)]),
        ("gpu:a100_1g.5gb", [Gres("gpu", "a100_1g.5gb", 1)]),
        # a count with a suffix is a power of 1024
        ("bandwidth:lustre:4G", [Gres("bandwidth", "lustre", 4 * 1024**3)]),
        ("gpu:2080:1,tmp:no_consume:2K", [Gres("gpu", "2080", 1), Gres("tmp", "", 2048)]),
        ("shard:a100:6(3/4,0/4,3/4)", [Gres("shard", "a100", 6, shares=(3, 0, 3))]),
        ("cpu=2,gres/gpu=1", [Gres("gpu", "", 1)]),
    ],
)
def test_gres(text: str, found: list[Gres]) -> None:
    assert list(parse(text)) == found


@pytest.mark.parametrize("text", ["gpu:h100:4(IDX:0-3", "gpu:h 100:4", ",gpu:1", "gres/gpu=x", "gpu:4(IDX:3-1)", ":4"])
def test_gres_that_is_none(text: str) -> None:
    with pytest.raises(InputError, match=r"n\.json: nodes\[0\]\.gres"):
        parse(text, "n.json", "nodes[0].gres")


def test_only_whole_cards_are_cards() -> None:
    names = {
        "gpu:h100:1": True,
        "gpu:1": True,
        "gpu:a100_3g.20gb:1": False,
        "gpu:1g.10gb+me:1": False,
        "mps:100": False,
    }
    assert {name: parse(name)[0].is_card for name in names} == names


def test_trackable_resources() -> None:
    assert tres("cpu=4,mem=32G,node=1,gres/gpu=1") == {"cpu": "4", "mem": "32G", "node": "1", "gres/gpu": "1"}
    # the sum and its parts stand side by side: 4 cards, of which 3 are h100
    assert allocated("gres/gpu=4,gres/gpu:h100=3") == (Gres("gpu", "h100", 3), Gres("gpu", "", 1))
    assert allocated("gres/gpu=3,gres/gpu:h100=3") == (Gres("gpu", "h100", 3),)
    assert amount("512M", unit=2**20) == 512 * 2**20
    assert amount("500", unit=2**20) == 500 * 2**20
    assert amount("1.50G") == 3 * 2**29


@pytest.mark.parametrize("text", ["cpu=4,mem=32G,node=", "cpu=4,mem=32G,gres/g"])
def test_a_cut_cell_is_refused(text: str) -> None:
    # columns of squeue and sacct are 20 letters wide by default
    with pytest.raises(InputError, match="print the column in full width"):
        tres(text)


def test_numbers_of_all_versions() -> None:
    unset: list[Field] = [None, Number(set=False), 2**32 - 2, 2**64 - 2, "", "N/A"]
    assert [value(raw) for raw in unset] == [None] * 6
    for raw in (Number(infinite=True), 2**32 - 1, 2**64 - 1, "UNLIMITED"):
        assert value(raw) == float("inf")
    assert value(65534) == 65534
    assert value(65534, short=True) is None
    assert value(Number(number=7)) == value(7) == value("7") == 7


@pytest.mark.parametrize(
    ("text", "right", "wrong"),
    [
        ("a&b", ["ab"], ["a", "b"]),
        ("a|b", ["a", "b"], ["c"]),
        # from left to right: (a or b) and c
        ("a|b&c", ["ac", "bc"], ["a", "b", "c"]),
        ("a|(b&c)", ["a", "bc"], ["b", "c"]),
    ],
)
def test_expressions_of_features(text: str, right: list[str], wrong: list[str]) -> None:
    judge = expression(text)
    assert all(judge(frozenset(features)) for features in right)
    assert not any(judge(frozenset(features)) for features in wrong)


# --- nodes ---------------------------------------------------------------------------------------------------


def test_a_node() -> None:
    snapshot = of([node("n1", "gpu:h100:2,gpu:h200:4", specialized_memory=2048, effective_cpus=30)])
    (found,) = snapshot.nodes
    assert [(gpu.model, gpu.count) for gpu in found.gpus] == [("h100", 2), ("h200", 4)]
    assert (found.cpu, found.memory) == (30, "260096Mi")
    assert found.labels == {"slurm/partition/gpu": "yes"}
    assert not found.cordoned
    assert snapshot.jobs == ()
    assert snapshot.time == NOW


def test_the_oldest_version() -> None:
    """v0.0.37 has plain numbers, states in lower case, and flags beside them."""
    old = {"name": "n1", "state": "idle", "state_flags": ["DRAIN"], "gres": "gpu:4", "gres_used": "gpu:1", "cpus": 64}
    old |= {
        "real_memory": 1000,
        "alloc_cpus": 4,
        "alloc_memory": 10,
        "features": "a,b",
        "owner": None,
        "tres_used": None,
    }
    snapshot = read([File("n.json", json.dumps({"nodes": [old], "errors": []}).encode())])
    (found,) = snapshot.nodes
    assert found.cordoned
    assert found.labels == {"slurm/feature/a": "yes", "slurm/feature/b": "yes"}
    assert found.gpus[0].model == "gpu"
    # one of the four cards is in use, and nothing says which: the first
    assert held(snapshot) == {"slurm/unknown/n1": [("n1", (0,))]}
    task = snapshot.jobs[0].groups[0].task
    assert task is not None
    assert (task.cpu, task.memory) == (4, "10Mi")
    assert {"model of cards without a type", "which cards are in use"} <= ledger(snapshot).keys()


@pytest.mark.parametrize(
    ("state", "cordoned"),
    [
        (["DOWN"], True),
        (["MIXED", "DRAIN"], True),
        (["IDLE", "DRAIN"], True),
        (["IDLE", "INVALID_REG"], True),
        ("inval", True),
        (["IDLE", "NOT_RESPONDING"], True),
        ("idle*", True),
        (["MAINTENANCE"], True),
        (["FUTURE"], True),
        (["UNKNOWN"], True),
        (["IDLE", "PLANNED"], False),
        (["IDLE", "CLOUD", "POWERED_DOWN"], False),
        ("idle~", False),
        (["IDLE", "COMPLETING"], False),
    ],
)
def test_states(state: Any, cordoned: bool) -> None:
    snapshot = of([node("n1", state=state)])
    assert snapshot.nodes[0].cordoned is cordoned
    assert held(snapshot) == {}


def test_a_node_with_fewer_devices_than_configured_offers_nothing() -> None:
    """The node found 3 of the 4 devices of gres.conf, and Slurm marked it invalid."""
    conf = File("gres.conf", b"NodeName=n1 Name=gpu Type=h100 File=/dev/nvidia[0-3]\n")
    snapshot = of([node("n1", "gpu:h100:3", state=["IDLE", "INVALID_REG"])], None, conf)
    assert snapshot.nodes[0].cordoned
    assert "gres.conf has another number of cards than the node" in kinds(snapshot, "contradiction")


def test_null_is_no_type_of_card() -> None:
    conf = File("gres.conf", b"Name=gpu Type=h100 File=/dev/nvidia[0-7]\n")
    snapshot = of([node("n1", "(null)", "")], None, conf)
    assert snapshot.nodes[0].gpus == ()
    assert snapshot.nodes[0].extended == {}
    assert "gres.conf has another number of cards than the node" in kinds(snapshot, "contradiction")


def test_mig_instances_are_counted_and_not_cards() -> None:
    """Slurm numbers the two cards 0 and 9 to ..., for the seven instances come between them."""
    gres = "gpu:a100:1,gpu:1g.5gb:7,gpu:h100:1"
    snapshot = of([node("n1", gres, "gpu:a100:0(IDX:N/A),gpu:1g.5gb:2(IDX:1-2),gpu:h100:1(IDX:8)")])
    (found,) = snapshot.nodes
    assert [(gpu.model, gpu.count) for gpu in found.gpus] == [("a100", 1), ("h100", 1)]
    assert found.extended == {"gres/gpu:1g.5gb": 7}
    assert held(snapshot) == {"slurm/unknown/n1": [("n1", (1,))]}
    task = snapshot.jobs[0].groups[0].task
    assert task is not None
    assert task.extended == {"gres/gpu:1g.5gb": 2}


def test_one_node_listed_for_each_partition() -> None:
    one = node("n1", partitions=["gpu"])
    other = node("n1", partitions=["debug*"])
    (found,) = of([one, other]).nodes
    assert found.labels == {"slurm/partition/gpu": "yes", "slurm/partition/debug": "yes"}


def test_records_of_a_node_that_disagree() -> None:
    used = node("n1", used="gpu:h100:2(IDX:2-3)", state=["MIXED"])
    snapshot = of([node("n1", used="gpu:h100:1(IDX:0)"), used])
    # neither of what the two say is in use is free
    assert held(snapshot) == {"slurm/unknown/n1": [("n1", (0, 2, 3))]}
    assert kinds(snapshot, "contradiction") == ["records of one node say different states or use"]
    for field, other in (("gres", "gpu:h100:8"), ("cpus", 64), ("real_memory", 1)):
        found = message(dump(nodes=[node("n1"), {**node("n1"), field: other}]))
        assert found.startswith(f'nodes.json: nodes[1].{field}: node "n1" has another value at nodes.json: nodes[0]')


def test_sinfo() -> None:
    """What sinfo prints since v0.0.39 is grouped, with ranges; here 8 of 64 threads of two nodes are in use."""
    entry = {
        "node": {"state": ["MIXED"]},
        "nodes": {"nodes": ["n1", "n2"], "hostnames": []},
        "cpus": {"allocated": 8, "total": 64, "minimum": 32, "maximum": 32},
        "memory": {"minimum": 1000, "maximum": 1000, "allocated": 0},
        "gres": {"total": "gpu:h100:4", "used": "gpu:h100:1(IDX:2)"},
        "features": {"total": "x", "active": "x"},
        "partition": {"name": "gpu", "nodes": {"configured": "n[1-2]"}, "partition": {"state": ["UP"]}},
    }
    snapshot = read([dump(sinfo=[entry, {**entry, "partition": {"name": "all"}}])])
    assert [found.name for found in snapshot.nodes] == ["n1", "n2"]
    assert snapshot.nodes[0].labels.keys() == {"slurm/partition/gpu", "slurm/partition/all", "slurm/feature/x"}
    assert held(snapshot) == {"slurm/unknown/n1": [("n1", (2,))], "slurm/unknown/n2": [("n2", (2,))]}


def test_sockets_become_zones() -> None:
    snapshot = of([node("n1", "gpu:h100:2(S:0),gpu:h100:2(S:1)", "", sockets=2, cpus=28, effective_cpus=28)])
    assert snapshot.nodes[0].zones == (NumaZone(id=0, cpu=14, gpus=(0, 1)), NumaZone(id=1, cpu=14, gpus=(2, 3)))


def test_cores_beyond_the_socket_of_the_card() -> None:
    """One card reaches only the 14 cores of its socket; a job that wants 20 near it fits nowhere."""
    there = node("n1", "gpu:h100:2(S:0),gpu:h100:2(S:1)", "", sockets=2, cpus=28, effective_cpus=28)
    wants = job(1, tres_per_node="gres/gpu:1", cpus=number(20), flags=["GRES_BINDING_ENFORCED"])
    _, task = only(of([there], [wants]))
    assert (task.gpus, task.cpu, task.numa) == (1, 20, "single-numa-node")
    wants = job(1, tres_per_node="gres/gpu:4", cpus=number(20), flags=["GRES_BINDING_ENFORCED"])
    assert only(of([there], [wants]))[1].numa == "restricted"


# --- what is in use ------------------------------------------------------------------------------------------


def test_running_jobs_hold_the_cards_that_they_list() -> None:
    snapshot = of(
        [
            # 4 threads of either job on n1, and 4 spread over two nodes of the first: 4 + 2 and 2
            node("n1", used="gpu:h100:3(IDX:0,2-3)", alloc_cpus=6, alloc_memory=1536),
            node("n2", used="gpu:h100:1(IDX:3)", alloc_cpus=2, alloc_memory=512),
        ],
        [runs(7, "n[1-2]", ["gpu:h100:2(IDX:2-3)", "gpu:h100:1(IDX:3)"]), runs(8, "n1", ["gpu:h100:1(IDX:0)"])],
    )
    assert held(snapshot) == {"7": [("n1", (2, 3)), ("n2", (3,))], "8": [("n1", (0,))]}
    assert kinds(snapshot, "contradiction") == []
    first = snapshot.jobs[0]
    assert first.running is not None
    assert first.running.since == NOW - 50
    assert first.duration is not None
    assert first.duration.seconds == 3600
    assert first.tenant == "physics"


def test_numbers_run_through_the_models() -> None:
    snapshot = of(
        [node("n1", "gpu:h100:2,gpu:h200:4", "gpu:h100:0(IDX:N/A),gpu:h200:2(IDX:4-5)")],
        [runs(7, "n1", ["gpu:h200:2(IDX:4-5)"])],
    )
    assert held(snapshot) == {"7": [("n1", (4, 5))]}


@pytest.mark.parametrize("asked", ["N/A", ""])
def test_what_a_job_has_is_its_allocation(asked: str) -> None:
    """A job of --gpus=2 asks for nothing by node: still 8 - 2 = 6 cards are free."""
    has = runs(7, "n1", [], tres_per_node=asked, tres_alloc_str="cpu=8,mem=64G,node=1,gres/gpu=2")
    snapshot = of([node("n1", "gpu:h100:8", "", state=["MIXED"], alloc_cpus=8, alloc_memory=65536)], [has])
    assert held(snapshot) == {"7": [("n1", (0, 1))]}
    _, task = only(snapshot)
    assert (task.gpus, task.cpu, task.memory) == (2, 8, "65536Mi")


def test_cards_without_numbers_are_those_that_the_node_says() -> None:
    snapshot = of([node("n1", used="gpu:h100:2(IDX:1,3)")], [runs(7, "n1", [], tres_alloc_str="cpu=1,gres/gpu:h100=1")])
    assert held(snapshot) == {"7": [("n1", (1,))], "slurm/unknown/n1": [("n1", (3,))]}


@pytest.mark.parametrize(
    ("fields", "cards"),
    [
        ({"tres_per_node": "gres/gpu:1"}, 1),
        ({"tres_per_job": "gres/gpu:4"}, 2),
        ({"tres_per_task": "gres/gpu=1", "tasks": number(4)}, 2),
        ({"tres_per_socket": "gres/gpu:1", "sockets_per_node": number(2)}, 2),
    ],
)
def test_an_allocation_without_gres(fields: Mapping[str, Any], cards: int) -> None:
    """AccountingStorageTRES leaves GRES out by default: then a job has what it asked for, here on two nodes."""
    snapshot = of(
        [node("n1", used=""), node("n2", used="")],
        [runs(7, "n[1-2]", [], tres_alloc_str="cpu=2,mem=1G,node=2", **fields)],
    )
    assert held(snapshot) == {"7": [("n1", tuple(range(cards))), ("n2", tuple(range(cards)))]}


def test_more_devices_than_numbers() -> None:
    """JOB_GRES says 8 and the indices 0-3: the larger use is believed."""
    snapshot = of([node("n1", "gpu:h100:8", "")], [runs(7, "n1", ["gpu:h100:8(IDX:0-3)"])])
    assert held(snapshot) == {"7": [("n1", (0, 1, 2, 3, 4, 5, 6, 7))]}
    assert "a job has another number of cards than it lists" in kinds(snapshot, "contradiction")


def test_two_jobs_that_list_one_card() -> None:
    snapshot = of([node("n1", used="")], [runs(7, "n1", ["gpu:h100:1(IDX:0)"]), runs(8, "n1", ["gpu:h100:1(IDX:0)"])])
    assert held(snapshot) == {"7": [("n1", (0,))], "8": [("n1", (1,))]}
    assert kinds(snapshot, "contradiction") != []


def test_what_no_job_explains_is_held_all_the_same() -> None:
    busy = node("n1", used="gpu:h100:3(IDX:0-2)", state=["MIXED"], alloc_cpus=20, alloc_memory=5000)
    snapshot = of([busy], [runs(7, "n1", ["gpu:h100:1(IDX:1)"], tres_alloc_str="cpu=4,mem=1000M")])
    assert held(snapshot) == {"7": [("n1", (1,))], "slurm/unknown/n1": [("n1", (0, 2))]}
    task = snapshot.jobs[1].groups[0].task
    assert task is not None
    # 20 - 4 threads, 5000 - 1000 MiB
    assert (task.gpus, task.cpu, task.memory) == (2, 16, "4000Mi")


def test_use_of_a_type_that_the_node_does_not_have() -> None:
    """gres says gpu:4, gres_used gpu:a100:2 and which: two cards are in use, not four."""
    snapshot = of([node("n1", "gpu:4", "gpu:a100:2(IDX:1-2)")])
    assert held(snapshot) == {"slurm/unknown/n1": [("n1", (1, 2))]}


def test_jobs_that_have_more_than_their_node_says() -> None:
    snapshot = of([node("n1", used="gpu:h100:1(IDX:0)")], [runs(7, "n1", ["gpu:h100:2(IDX:0-1)"])])
    assert held(snapshot) == {"7": [("n1", (0, 1))]}
    assert "jobs have more cards than their node says" in kinds(snapshot, "contradiction")


def test_an_allocated_node_of_which_nothing_else_is_said() -> None:
    """ALLOCATED with alloc_cpus 0: all threads are in use, and without gres_used all cards."""
    snapshot = of([node("n1", used="", state=["ALLOCATED"])])
    assert held(snapshot) == {"slurm/unknown/n1": [("n1", (0, 1, 2, 3))]}
    assert only(snapshot)[1].cpu == 32
    snapshot = of([node("n1", used="", state=["MIXED"])])
    assert held(snapshot) == {"slurm/unknown/n1": [("n1", (0, 1, 2, 3))]}


def test_shares_in_use_hold_their_cards() -> None:
    """shard:8 over two cards, of which the second has 3 of 4 in use."""
    snapshot = of([node("n1", "gpu:a100:2,shard:8", "gpu:a100:0(IDX:N/A),shard:3(0/4,3/4)")])
    assert held(snapshot) == {"slurm/unknown/n1": [("n1", (1,))]}


@pytest.mark.parametrize("fields", [{"exclusive": ["true"]}, {"shared": ["none"]}])
def test_an_exclusive_job_has_all_of_its_node(fields: Mapping[str, Any]) -> None:
    snapshot = of([node("n1", used="gpu:h100:1(IDX:1)")], [runs(7, "n1", ["gpu:h100:1(IDX:1)"], **fields)])
    assert held(snapshot) == {"7": [("n1", (0, 1, 2, 3))]}
    assert only(snapshot)[1].cpu == 32


@pytest.mark.parametrize(
    ("state", "holds"),
    [
        (["RUNNING"], True),
        (["SUSPENDED"], True),
        (["COMPLETED", "COMPLETING"], True),
        ("CONFIGURING", True),
        (["COMPLETED"], False),
        (["CANCELLED"], False),
        ("TIMEOUT", False),
        (["STRANGE"], True),
    ],
)
def test_states_of_jobs(state: Any, holds: bool) -> None:
    snapshot = of([node("n1", used="")], [runs(7, "n1", ["gpu:h100:1(IDX:2)"], job_state=state)])
    assert held(snapshot) == ({"7": [("n1", (2,))]} if holds else {})


@pytest.mark.parametrize(
    "resources",
    [
        {"nodes": {"list": "n[1-2]", "allocation": [
            {"name": "n1", "cpus": {"count": 6, "used": 0}, "memory": {"used": 0, "allocated": 600}},
            {"name": "n2", "cpus": {"count": 2, "used": 0}, "memory": {"used": 0, "allocated": 200}}]}},
        {"nodes": "n[1-2]", "allocated_nodes": [
            {"nodename": "n1", "cpus_used": 6, "memory_allocated": 600},
            {"nodename": "n2", "cpus_used": 2, "memory_allocated": 200}]},
        {"nodes": "n[1-2]", "allocated_nodes": {"0": {"cpus": 6, "memory": 600}, "1": {"cpus": 2, "memory": 200}}},
    ],
    ids=["v0.0.44", "v0.0.40", "v0.0.37"],
)  # fmt: skip
def test_shares_of_a_job_in_all_versions(resources: Any) -> None:
    detail = ["gpu:h100:1(IDX:0)", "gpu:h100:1(IDX:0)"]
    snapshot = of([node("n1", used=""), node("n2", used="")], [runs(7, "n[1-2]", detail, job_resources=resources)])
    found = {group.name: group.task for group in snapshot.jobs[0].groups}
    assert {name: (task.cpu, task.memory) for name, task in found.items() if task} == {
        "node-0": (6, "600Mi"),
        "node-1": (2, "200Mi"),
    }
    assert held(snapshot) == {"7": [("n1", (0,)), ("n2", (0,))]}


def test_a_job_on_a_node_that_is_in_no_file() -> None:
    snapshot = of([node("n1", used="")], [runs(7, "n[1-2]", ["gpu:h100:1(IDX:0)", "gpu:h100:1(IDX:0)"])])
    assert held(snapshot) == {"7": [("n1", (0,))]}
    assert "a job runs on a node that is in no file" in kinds(snapshot, "contradiction")


# --- what waits ----------------------------------------------------------------------------------------------

APART = Topology(spread=(Spread(level="node", max_per_domain=1),))


def test_nodes_of_a_job_that_asks_in_all() -> None:
    """12 cards on nodes of 4 are 3 nodes, though Slurm shows 1."""
    snapshot = of([node(f"n{i}") for i in range(4)], [job(1, tres_per_job="gres/gpu:12")])
    found, task = only(snapshot)
    assert (found.groups[0].count, task.gpus, found.groups[0].topology) == (3, 4, APART)
    assert "cards on each node of a job that asks for them in all" in kinds(snapshot, "assumed")


def test_a_remainder_is_a_node_of_its_own() -> None:
    """9 cards on nodes of 4 are 4 + 4 + 1; 8 threads in all are ceil(8 x 4 / 9) = 4 for each four cards."""
    (found,) = of([node(f"n{i}") for i in range(4)], [job(1, tres_per_job="gres/gpu:h100:9", cpus=number(8))]).jobs
    assert [(group.name, group.count, group.task and group.task.gpus) for group in found.groups] == [
        ("node", 2, 4),
        ("rest", 1, 1),
    ]
    assert [group.task and group.task.cpu for group in found.groups] == [4, 1]
    assert [group.task and group.task.gpu_models for group in found.groups] == [("h100",), ("h100",)]
    assert found.affinity == (Affinity(a="node", b="rest", level="node", kind="apart"),)


def test_cards_in_all_on_a_number_of_nodes() -> None:
    wants = job(1, tres_per_job="gres/gpu:7", node_count=number(3), max_nodes=number(3))
    (found,) = of([node(f"n{i}") for i in range(4)], [wants]).jobs
    # 3 + 2 + 2
    assert [(group.count, group.task and group.task.gpus) for group in found.groups] == [(1, 3), (2, 2)]


def test_the_size_of_nodes_is_that_of_those_it_may_use() -> None:
    nodes = [node("a1"), node("a2"), node("b1", "gpu:h100:8", partitions=["big"])]
    found, task = only(of(nodes, [job(1, tres_per_job="gres/gpu:16", partition="big")]))
    assert (found.groups[0].count, task.gpus) == (2, 8)


@pytest.mark.parametrize(
    ("fields", "count", "least", "gpus", "cpu", "memory"),
    [
        # by node: 16 threads over 2 nodes, 256 MiB for each thread
        ({"tres_per_node": "gres/gpu:2", "node_count": number(2), "cpus": number(16)}, 2, None, 2, 8, "2048Mi"),
        # 2 to 4 nodes
        ({"tres_per_node": "gres/gpu:1", "node_count": number(2), "max_nodes": number(4), "cpus": number(8)},
         4, 2, 1, 4, "1024Mi"),
        # 8 in all, 4 on each node
        ({"tres_per_node": "gres/gpu:4", "tres_per_job": "gres/gpu:8", "cpus": number(8)}, 2, None, 4, 4, "1024Mi"),
        # by task: 6 tasks, wherever they fit
        ({"tres_per_task": "gres/gpu=2", "tasks": number(6), "cpus": number(24)}, 6, None, 2, 4, "1024Mi"),
        # 6 tasks, 2 on each node: 3 nodes with twice as much each
        ({"tres_per_task": "gres/gpu:2", "tasks": number(6), "tasks_per_node": number(2)}, 3, None, 4, 8, "2048Mi"),
        # by socket, of which it asks for 2
        ({"tres_per_socket": "gres/gpu:2", "sockets_per_node": number(2)}, 1, None, 4, 4, "1024Mi"),
        # 10 threads for each card; 512 MiB for each node
        ({"tres_per_node": "gres/gpu:2", "cpus_per_tres": "gres/gpu:10", "memory_per_cpu": UNSET,
          "memory_per_node": number(512)}, 1, None, 2, 20, "512Mi"),
        # 3000 MiB for each card
        ({"tres_per_node": "gres/gpu:2", "memory_per_tres": "gres/gpu:3000", "memory_per_cpu": UNSET},
         1, None, 2, 4, "6000Mi"),
        # no cards: 3 tasks of 4 threads
        ({"tasks": number(3), "cpus": number(12)}, 3, None, 0, 4, "1024Mi"),
        # all memory is said by tres_req_str alone
        ({"memory_per_cpu": UNSET, "tres_req_str": "cpu=4,mem=3G,node=1"}, 1, None, 0, 4, "3072Mi"),
    ],
)  # fmt: skip
def test_forms_of_requests(
    fields: Mapping[str, Any], count: int, least: int | None, gpus: int, cpu: int, memory: str
) -> None:
    found, task = only(of([node(f"n{i}") for i in range(4)], [job(1, **fields)]))
    (group,) = found.groups
    assert (group.count, group.min_count) == (count, least)
    assert (task.gpus, task.cpu, task.memory) == (gpus, cpu, memory)
    apart = "tres_per_task" not in fields and "tasks" not in fields and count > 1
    if apart:
        assert group.topology == APART


def test_cores_are_left_for_cards() -> None:
    """Of two nodes with 8 cards the one with 32 threads has to take the job of 12, or 3 cards have no thread left."""
    nodes = [node("small", "gpu:h100:8", cpus=16, effective_cpus=16), node("large", "gpu:h100:8")]
    big = job(1, tres_per_node="gres/gpu:1", cpus=number(12))
    small = [job(2 + i, tres_per_node="gres/gpu:1", cpus=number(1), cpus_per_task=number(1)) for i in range(15)]
    snapshot = of(nodes, [big, *small])
    assert [found.cpu for found in snapshot.nodes] == [16, 32]
    assert [found.groups[0].task and found.groups[0].task.cpu for found in snapshot.jobs] == [12, *[1] * 15]


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
    assert found[2] == APART
    assert [one.position[narrow] for one in snapshot.nodes] == ["s1", "s1", "s2"]


def test_partitions_that_are_down() -> None:
    part = dump(partitions=[{"name": "gpu", "nodes": {"configured": "n[1-2]"}, "partition": {"state": ["INACTIVE"]}}])
    snapshot = of([node("n1", partitions=[])], [job(1)], part)
    assert "a job in a partition that is INACTIVE" in kinds(snapshot, "ignored")
    assert snapshot.nodes[0].labels == {"slurm/partition/gpu": "yes"}


# --- errors --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        (node("n1", "gpu:h100:x(IDX:"), 'nodes.json: nodes[0].gres: a parenthesis without its other half'),
        (node("n1", "gpu:300"), "nodes.json: nodes[0].gres: more than 256 GPUs in a node"),
        (node(""), 'nodes.json: nodes[0].name: "" is no name of a node'),
        (node("a b"), 'nodes.json: nodes[0].name: "a b" is no name of a node'),
        (node("n1", cpus=-1, effective_cpus=None), "nodes.json: nodes[0].cpus: found -1, expected a whole number"),
        (node("n1", real_memory=2**70), "nodes.json: nodes[0].real_memory: found"),
        (node("n1", alloc_cpus="many"), 'nodes.json: nodes[0].alloc_cpus: found "many", expected a number'),
        (node("n1", state=7), "nodes.json: nodes[0].state: Expected str | array | null, got int"),
    ],
)  # fmt: skip
def test_wrong_nodes(bad: Any, what: str) -> None:
    assert message(dump(nodes=[bad])).startswith(what)


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        (runs(1, "n[1-", []), "jobs.json: jobs[0].nodes: a bracket that is not closed"),
        (job(0), "jobs.json: jobs[0].job_id: found 0, expected the number of a job"),
        (job(1, tres_per_node="gres/gpu:400"), "jobs.json: jobs[0].tres_per_node: found 400 in all, expected at most"),
        (job(1, memory_per_cpu=2**39), "jobs.json: jobs[0].memory_per_cpu: found 2199023255552 in all"),
        (runs(1, "n1", [], tres_alloc_str="cpu=4,node="), 'jobs.json: jobs[0].tres_alloc_str: "node=" has no amount'),
    ],
)
def test_wrong_jobs(bad: Any, what: str) -> None:
    assert message(dump(nodes=[node("n1")]), dump(jobs=[bad])).startswith(what)


def test_files_that_are_not_enough() -> None:
    assert message(dump(jobs=[job(1)])).startswith("there is no node in jobs.json")
    failed = File("n.json", b'{"nodes": [], "errors": [{"error": "no route"}]}')
    assert "Slurm says that the command failed" in message(failed)
    assert "there is none of `nodes`" in message(File("n.json", b'{"meta": {}}'))


def test_same_files_same_bytes() -> None:
    nodes = [node("n1", used="gpu:h100:2(IDX:1,3)", features=["b", "a"]), node("n2")]
    jobs = [runs(7, "n1", ["gpu:h100:1(IDX:1)"]), job(8, features="a|b", partition="gpu,x"), job(9, exclusive=["true"])]
    one, other = (msgspec.json.encode(of(nodes, jobs)) for _ in range(2))
    assert one == other


def test_order_of_files_does_not_matter() -> None:
    found = [dump(nodes=[node("n1", used="gpu:h100:1(IDX:3)")]), dump(jobs=[runs(7, "n1", ["gpu:h100:1(IDX:3)"])])]
    one, other = read(found), read(found[::-1])
    assert (one.nodes, one.jobs) == (other.nodes, other.jobs)
    assert isinstance(one.nodes[0], Node)
