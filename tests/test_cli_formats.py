"""``placement import`` and ``placement export``: how they are called, and what they say of files."""

from __future__ import annotations

import csv
import gzip
import io
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cli_cases import NODES_CSV, PODS_CSV, SMALL, placement, refused

from placement import solve
from placement.formats.kubernetes import dump
from placement.formats.write import WRITERS, PlanWriter
from placement.planning import dump_plan
from placement.snapshot import Gpu, Job, MigInstance, Nic, Node, NumaZone, Snapshot, Task, TaskGroup
from placement.snapshot.read import dumps, load, verified

PAIR = Snapshot(
    nodes=(
        Node(name="gpu-a", cpu=8, gpus=(Gpu(model="T4", count=2),), devices=("GPU-0a", "GPU-0b")),
        Node(
            name="gpu-b",
            cpu=8,
            gpus=(Gpu(model="A100", count=2),),
            zones=(
                NumaZone(id=0, cpus="0-3", gpus=(0,), nics=(Nic(name="mlx5_0"),)),
                NumaZone(id=1, cpus="4-7", gpus=(1,), nics=(Nic(name="mlx5_1"),)),
            ),
        ),
        Node(
            name="mig",
            gpus=(
                Gpu(
                    model="A100-SXM4-40GB",
                    mig_enabled=True,
                    mig_layout=(MigInstance(profile="3g.20gb", start=4),),
                    mig_static=True,
                ),
            ),
        ),
    ),
    jobs=(
        Job(name="ml/solo", groups=(TaskGroup(name="pod", task=Task(gpus=2, gpu_models=("T4",))),)),
        Job(
            name="ml/gang",
            groups=(TaskGroup(name="w", count=2, task=Task(gpus=1, nics=1, numa="single-numa-node")),),
            task_names={"w": ("ml/gang-0", "ml/gang-1")},
        ),
        Job(name="ml/slice", groups=(TaskGroup(name="pod", task=Task(gpus=1, mig_profile="3g.20gb")),)),
        Job(name="ml/never", groups=(TaskGroup(name="pod", task=Task(gpus=64)),)),
    ),
)
"""One plan alone places all that fits: each job has cards, zones or an instance that no other can use."""


@cache
def plan_of_pair() -> bytes:
    return dump_plan(solve(verified(PAIR)))


@pytest.fixture
def pair(in_tmp: Path) -> None:
    Path("s.json").write_bytes(dumps(verified(PAIR)))
    Path("p.json").write_bytes(plan_of_pair())


@pytest.fixture
def trace(in_tmp: Path) -> None:
    Path("nodes.csv").write_text(NODES_CSV, "utf-8")
    Path("pods.csv").write_text(PODS_CSV, "utf-8")


def exported(name: str) -> Any:
    done = placement("export", name, "s.json", "p.json")
    assert (done.exit_code, done.stderr) == (0, "")
    return msgspec.json.decode(done.stdout_bytes)


# --- export ------------------------------------------------------------------------------------------------------


def test_bindings(pair: None) -> None:
    found = exported("kubernetes")
    assert (found["apiVersion"], found["kind"]) == ("v1", "List")
    solo = next(item for item in found["items"] if item["metadata"]["name"] == "solo")
    assert solo == {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {
            "name": "solo",
            "namespace": "ml",
            "annotations": {"gpu-placement.io/gpus": "0,1", "gpu-placement.io/devices": "GPU-0a,GPU-0b"},
        },
        "target": {"apiVersion": "v1", "kind": "Node", "name": "gpu-a"},
    }
    by_name = {item["metadata"]["name"]: item for item in found["items"]}
    assert sorted(by_name) == ["gang-0", "gang-1", "slice", "solo"]
    assert by_name["slice"]["metadata"]["annotations"] == {
        "gpu-placement.io/gpus": "0",
        "gpu-placement.io/mig-starts": "4",
    }
    gang = [by_name[name]["metadata"]["annotations"] for name in ("gang-0", "gang-1")]
    zones = {"0": ("0", "0-3", "mlx5_0"), "1": ("1", "4-7", "mlx5_1")}
    for one in gang:
        gpu = one["gpu-placement.io/gpus"]
        said = [one[f"gpu-placement.io/{key}"] for key in ("zones", "cpuset", "nics")]
        assert said == list(zones[gpu])
    assert {one["gpu-placement.io/gpus"] for one in gang} == {"0", "1"}


def test_patches(pair: None) -> None:
    found = exported("kubernetes-patches")
    (solo,) = [item for item in found["items"] if item["metadata"]["name"] == "solo"]
    assert solo["kind"] == "Pod"
    assert solo["metadata"]["annotations"]["gpu-placement.io/gpus"] == "0,1"
    # https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/: metadata.name is the one field
    assert solo["spec"] == {
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gpu-a"]}]}
                    ]
                }
            }
        }
    }


def test_csv(pair: None) -> None:
    text = placement("export", "csv", "s.json", "p.json").stdout
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0] == ["job", "group", "index", "name", "node", "gpus", "mig_starts", "zones", "nics"]
    assert rows[1] == ["ml/solo", "pod", "0", "ml/solo", "gpu-a", "0 1", "", "", ""]
    assert rows[4] == ["ml/slice", "pod", "0", "ml/slice", "mig", "0", "4", "", ""]
    assert [(row[3], row[4], row[5]) for row in rows[2:4]] in (
        [("ml/gang-0", "gpu-b", "0"), ("ml/gang-1", "gpu-b", "1")],
        [("ml/gang-0", "gpu-b", "1"), ("ml/gang-1", "gpu-b", "0")],
    )
    assert "\r" not in text


@pytest.mark.parametrize("name", ["=1+1", "+a", "-a", "@a", "'a", "plain", 'a"b,c', "a b"])
def test_no_cell_is_a_formula(in_tmp: Path, name: str) -> None:
    jobs = (Job(name=name, groups=(TaskGroup(name=name, task=Task(gpus=1)),)),)
    Path("s.json").write_bytes(dumps(Snapshot(nodes=(Node(name=name, gpus=(Gpu(model="T4"),)),), jobs=jobs)))
    assert placement("solve", "s.json", "--solver", "best-fit", "-o", "p.json").exit_code == 0
    (row,) = list(csv.reader(io.StringIO(placement("export", "csv", "s.json", "p.json").stdout)))[1:]
    assert all(cell[:1] not in tuple("=+-@") for cell in row)
    # one apostrophe taken off gives the name back
    assert {row[0].removeprefix("'"), row[1].removeprefix("'"), row[4].removeprefix("'")} == {name}


def test_objects_and_what_they_do_not_carry(pair: None) -> None:
    done = placement("export", "kubernetes-objects", "s.json", "-o", "o.json")
    assert done.exit_code == 0
    assert Path("o.json").read_bytes() == dump.write(load("s.json"))
    lines = done.stderr.splitlines()
    assert all(line.startswith("warning: ") for line in lines)
    for what in ("nodes[].zones", "nodes[].devices", "task.numa", "task.nics", "mig_layout"):
        assert any(what in line for line in lines), what


def test_the_same_bytes_again(pair: None) -> None:
    for name, writer in WRITERS.items():
        words = ["export", name, "s.json", *(["p.json"] if isinstance(writer, PlanWriter) else [])]
        first = placement(*words)
        if first.exit_code == 0:
            assert first.stdout_bytes == placement(*words).stdout_bytes


def test_a_task_that_is_no_pod_is_named(in_tmp: Path) -> None:
    Path("s.json").write_bytes(dumps(SMALL))
    assert placement("solve", "s.json", "--solver", "best-fit", "-o", "p.json").exit_code == 0
    for name in ("kubernetes", "kubernetes-patches"):
        refused(placement("export", name, "s.json", "p.json"), 'in job "fits"', "task_names")
    assert placement("export", "csv", "s.json", "p.json").stdout.splitlines()[1] == "fits,g,0,fits,a,1,,,"


def test_one_pod_is_not_bound_twice(in_tmp: Path) -> None:
    group = (TaskGroup(name="g", task=Task(gpus=1)),)
    jobs = tuple(Job(name=name, groups=group, task_names={"g": ("ml/p",)}) for name in ("a", "b"))
    Path("s.json").write_bytes(dumps(Snapshot(nodes=(Node(name="n", gpus=(Gpu(model="T4", count=2),)),), jobs=jobs)))
    assert placement("solve", "s.json", "--solver", "best-fit", "-o", "p.json").exit_code == 0
    refused(placement("export", "kubernetes", "s.json", "p.json"), '"a" and "b"', '"ml/p"')
    refused(placement("export", "kubernetes-objects", "s.json"), "Pod ml/p")


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["kubernetis", "s.json", "p.json"], ["no format kubernetis", "kubernetes"]),
        (["kubernetes", "s.json"], ["PLAN", "name a plan"]),
        (["kubernetes-objects", "s.json", "p.json"], ["PLAN", "leave the plan out"]),
        (["kubernetes", "s.json", "p.json", "-o", "s.json"], ["--output", "is the input"]),
        (["kubernetes", "s.json", "p.json", "-o", "p.json"], ["--output", "is the input"]),
        (["kubernetes", "-", "-"], ["standard input"]),
        (["kubernetes", "s.json", "missing.json"], ["missing.json", "cannot be read"]),
        (["kubernetes", "missing.json", "p.json"], ["missing.json", "no such file"]),
        (["kubernetes", "s.json", "s.json"], ["s.json", "snapshot"]),
        (["kubernetes", "p.json", "p.json"], ["p.json", "plan"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_bad_usage_of_export(pair: None, words: list[str], parts: list[str]) -> None:
    before = {path.name: path.read_bytes() for path in Path().iterdir()}
    refused(placement("export", *words), *parts)
    assert {path.name: path.read_bytes() for path in Path().iterdir()} == before


def test_a_plan_of_another_snapshot_is_refused(pair: None) -> None:
    Path("other.json").write_bytes(dumps(msgspec.structs.replace(PAIR, time=5.0)))
    refused(placement("export", "kubernetes", "other.json", "p.json"), "p.json", "other.json was changed", "solve")


def test_a_schedule_is_no_plan_to_export(pair: None) -> None:
    assert placement("schedule", "time-hold-back", "-o", "schedule.json").exit_code == 0
    said = placement("export", "kubernetes", "time-hold-back", "schedule.json")
    refused(said, "schedule.json", "this is a schedule", "placement solve")


def test_a_plan_that_breaks_a_rule_is_refused(pair: None) -> None:
    plan = msgspec.json.decode(Path("p.json").read_bytes())
    plan["tasks"]["node"] = ["gpu-b" if node == "gpu-a" else node for node in plan["tasks"]["node"]]
    Path("p.json").write_bytes(msgspec.json.encode(plan))
    refused(placement("export", "csv", "s.json", "p.json"), "p.json", "the plan breaks a rule")


# --- import ------------------------------------------------------------------------------------------------------


def test_the_format_is_told_or_named_and_named_twice(trace: None) -> None:
    expected = placement("import", "openb", "nodes.csv", "pods.csv").stdout_bytes
    assert expected
    assert placement("import", "nodes.csv", "pods.csv").stdout_bytes == expected
    assert placement("import", "openb", "nodes.csv", "openb", "pods.csv").stdout_bytes == expected


def test_a_format_without_files(trace: None) -> None:
    refused(placement("import", "openb"), "there is no file", "behind the format")


def test_two_systems_are_two_clusters(trace: None) -> None:
    Path("nodes.conf").write_text("NodeName=n1 Gres=gpu:8\n", "utf-8")
    Path("nodes.yaml").write_text("kind: Node\napiVersion: v1\n", "utf-8")
    for words in (["nodes.conf", "nodes.yaml"], ["slurm", "nodes.conf", "kubernetes", "nodes.yaml"]):
        refused(placement("import", *words), "nodes.conf is of slurm and nodes.yaml of kubernetes", "one cluster")
    refused(placement("import", "nodes.csv", "pods.csv", "nodes.yaml"), "openb", "kubernetes")


def test_the_ledger_is_in_the_snapshot_and_printed_on_request(trace: None) -> None:
    done = placement("import", "nodes.csv", "pods.csv", "-v")
    Path("s.json").write_bytes(done.stdout_bytes)
    ledger = load("s.json").ledger
    assert ("read", "nodes", 2) in [(entry.kind, entry.what, entry.count) for entry in ledger]
    assert "Read:" in done.stderr
    assert "  2 nodes" in done.stderr.splitlines()
    assert "  1 column qos: a snapshot has no place for it (pods.csv)" in done.stderr.splitlines()
    assert placement("import", "nodes.csv", "pods.csv").stderr == ""


def test_packed_files_and_standard_input_and_marks(trace: None) -> None:
    expected = load_of(placement("import", "nodes.csv", "pods.csv").stdout_bytes)
    Path("pods.csv.gz").write_bytes(gzip.compress(PODS_CSV.encode()))
    assert load_of(placement("import", "nodes.csv", "pods.csv.gz").stdout_bytes) == expected
    assert load_of(placement("import", "nodes.csv", "-", stdin=PODS_CSV.encode()).stdout_bytes) == expected
    assert (
        load_of(placement("import", "-", "pods.csv", stdin=gzip.compress(NODES_CSV.encode())).stdout_bytes) == expected
    )
    Path("marked.csv").write_bytes(b"\xef\xbb\xbf" + PODS_CSV.encode())
    assert load_of(placement("import", "nodes.csv", "marked.csv").stdout_bytes) == expected
    Path("wide.csv").write_bytes(PODS_CSV.encode("utf-16"))
    assert load_of(placement("import", "nodes.csv", "wide.csv").stdout_bytes) == expected
    with zipfile.ZipFile("both.zip", "w") as archive:
        archive.writestr("a/nodes.csv", NODES_CSV)
        archive.writestr("a/pods.csv", PODS_CSV)
    assert load_of(placement("import", "both.zip").stdout_bytes) == expected


def load_of(data: bytes) -> tuple[Any, Any]:
    found = msgspec.json.decode(data)
    return found["nodes"], found["jobs"]


YAML_BOMB = "".join(
    [
        "kind: List\na0: &a0 [x,x,x,x,x,x,x,x,x]\n",
        *(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10)),
    ]
)


@pytest.mark.parametrize(
    ("data", "parts"),
    [
        (b"", ["the file is empty"]),
        (bytes(range(256)), ["the format cannot be told"]),
        (b"\x7fELF\x02\x01", ["the format cannot be told"]),
        (gzip.compress(b"x" * 1000)[:-20], ["breaks off"]),
        (b'{"kind": "List", "items": [', ["not JSON"]),
        (b'{"kind": "List", "items": {}}', ["items"]),
        (b'{"kind": "List", "items": [1]}', ["items[0]"]),
        (b'{"kind": "List", "items": []}', ["there is no Node"]),
        (b'{"kind": ["List"]}', ["kind"]),
        (YAML_BOMB.encode(), ["values with its aliases"]),
        (b"kind: List\nitems: &a [*a]\n", ["alias"]),
        (b"kind: List\nkind: Node\n", ["given twice"]),
    ],
    ids=range(12),
)
def test_damaged_files(in_tmp: Path, data: bytes, parts: list[str]) -> None:
    Path("f").write_bytes(data)
    refused(placement("import", "f", "-o", "s.json"), "f", *parts)
    assert not Path("s.json").exists()


def test_a_named_format_of_an_empty_file(in_tmp: Path) -> None:
    Path("f").write_bytes(b"")
    refused(placement("import", "kubernetes", "f"), "f: the file is empty")


def test_hostile_zips(in_tmp: Path) -> None:
    with zipfile.ZipFile("z.zip", "w") as archive:
        archive.writestr("../../nodes.csv", NODES_CSV)
    refused(placement("import", "z.zip"), "z.zip", "points outside")
    assert [path.name for path in Path().iterdir()] == ["z.zip"]


def test_directories_and_missing_files(in_tmp: Path) -> None:
    Path("d").mkdir()
    refused(placement("import", "d"), "d", "directory")
    refused(placement("import", "kubernetes", "missing"), "missing", "no such file")
    refused(placement("import", "-", "-", stdin=b""), "standard input")


def test_a_node_and_its_file(in_tmp: Path) -> None:
    refused(placement("import", "n1=missing.txt"), "missing.txt", "no such file")
    # a file of that very name goes before
    Path("n1=nodes.csv").write_text(NODES_CSV, "utf-8")
    Path("pods.csv").write_text(PODS_CSV, "utf-8")
    assert len(load_of(placement("import", "n1=nodes.csv", "pods.csv").stdout_bytes)[0]) == 2
    # behind another format it is a name like any other
    refused(placement("import", "openb", "n2=nodes.csv"), "n2=nodes.csv", "no such file")


@pytest.mark.parametrize("level", ["rack", "=x", "rack=", ""])
def test_levels_have_a_name_and_a_label(trace: None, level: str) -> None:
    refused(placement("import", "nodes.csv", "pods.csv", "--level", level), "--level", "node label")


def test_help_lists_the_formats() -> None:
    text = "".join(placement("export", "--help").stdout.split())  # lines break within names
    for name in WRITERS:
        assert f"{name}:" in text
