"""Slurm's JSON to a snapshot: texts, nodes and errors."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from slurm_records import NOW, dump, held, job, kinds, ledger, message, node, number, of, only, runs

from placement.errors import InputError
from placement.formats.read import read
from placement.formats.slurm.gres import Gres, allocated, amount, parse, tres
from placement.formats.slurm.labels import expression
from placement.formats.slurm.numbers import Field, Number, value
from placement.formats.source import File
from placement.snapshot import Node, NumaZone


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


@pytest.mark.parametrize(
    ("cores", "named"),
    [
        ("0-15", []),
        ("16-31", []),
        ("32-33", ["gres.conf: line 2: core 33, and n1 has 32"]),
        ("16-31,48-63", ["gres.conf: line 2: core 63, and n1 has 32"]),
    ],
)
def test_cores_are_numbered_without_their_threads(cores: str, named: list[str]) -> None:
    """2 sockets of 16 cores are the cores 0 to 31; nvidia-smi shows 64 threads."""
    lines = f"Name=gpu File=/dev/nvidia[0-1] Cores=0-15\nName=gpu File=/dev/nvidia[2-3] Cores={cores}\n"
    there = [node("n1", cpus=64, effective_cpus=64, threads=2), node("n2", sockets=4)]
    snapshot = of(there, None, File("gres.conf", lines.encode()))
    found = [entry for entry in snapshot.ledger if entry.kind == "contradiction"]
    assert [place for entry in found for place in entry.where] == named
    assert all("cores that the node does not have" in entry.what for entry in found)


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
