"""Files that are meant to harm: odd YAML, patterns and blanks that take for ever, names that speak for the program."""

from __future__ import annotations

import contextlib
import json
import zipfile
from io import BytesIO
from typing import Any

import pytest

from placement.errors import InputError
from placement.formats import source
from placement.formats.documents import documents
from placement.formats.guess import guessed
from placement.formats.read import read
from placement.formats.source import File
from placement.formats.volcano.hypernodes import MOST_STEPS, _steps


def node(cards: str = "8") -> dict[str, Any]:
    amounts = {"cpu": "8", "memory": "64Gi", "pods": "9", "nvidia.com/gpu": cards}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": amounts}}


def pod(name: str = "p", cards: object = "4", at: str | None = "n") -> dict[str, Any]:
    container = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": cards}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "d"},
        "spec": {"nodeName": at, "containers": [container]},
    }


def objects(*items: object) -> File:
    return File("f", json.dumps({"apiVersion": "v1", "kind": "List", "items": items}).encode())


def message(*files: File) -> str:
    with pytest.raises(InputError) as caught:
        read(files)
    return str(caught.value)


# --- YAML --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ("!!int ''", "tag:yaml.org,2002:int"),
        ("!!int x", "tag:yaml.org,2002:int"),
        ("!!float x", "tag:yaml.org,2002:float"),
        ("!!bool x", "tag:yaml.org,2002:bool"),
        ("!!timestamp x", "tag:yaml.org,2002:timestamp"),
        ("!!timestamp 2020-13-45", "tag:yaml.org,2002:timestamp"),
        ("9" * 6000, "a number of 6,000 characters"),
        ("0b" + "1" * 6000, "a number of 6,002 characters"),
        ("!!int 1" + ":59" * 6000, "a number of 18,001 characters"),
    ],
)
def test_a_value_that_is_not_what_its_tag_says(value: str, what: str) -> None:
    said = message(File("f", f"kind: Node\nmetadata: {{name: {value}}}\n".encode()))
    assert said.startswith("f: line 2, column 18: not YAML: a ")
    assert what in said


def test_numbers_with_colons_are_text() -> None:
    # no number to the base 60, as 1.1 of YAML has them: Kubernetes takes them for text
    ((_, found),) = documents(File("f", b"kind: Node\na: [12:30:45, 1:30.5, 12, 1.5]\n"))
    assert found["a"] == ["12:30:45", "1:30.5", 12, 1.5]


def test_a_key_that_comes_by_a_merge_too_is_given_once() -> None:
    text = b"kind: x\nx: {d: &d {<<: &b {key: 1}, key: 2}}\ny: {<<: *d}\n"
    ((_, found),) = documents(File("f", text))
    assert found["x"]["d"] == {"key": 2}
    assert found["y"] == {"key": 2}
    with pytest.raises(InputError, match='line 1, column 15: not YAML: the key "a" is given twice'):
        documents(File("f", b"x: {y: {a: 1, a: 2}}"))


def test_characters_that_may_not_be_in_yaml_are_one_message_with_its_line() -> None:
    assert message(File("f", b"kind: Node\nmetadata: {name: a\0b}\n")) == (
        "f: line 2: not YAML: character 0x00 in it; remove it"
    )


# --- lists -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b'{"kind": "NodeList", "items": 5}', "f: items: Expected array | null, got int"),
        (b'{"kind": "NodeList", "items": {}}', "f: items: Expected array | null, got object"),
        (b"kind: NodeList\nitems: 5\n", "f: document 1: `items` is 5, expected a list"),
        (b"apiVersion: v1\nrawObjects: {nodes: 5}\n", "Expected array | null, got int"),
        (b"apiVersion: v1\nrawObjects: 5\n", "Expected object | null, got int"),
    ],
)
def test_lists_that_are_none(data: bytes, said: str) -> None:
    assert said in message(File("f", data))


# --- time --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("blanks", [b" ", b"\n", b"\t \n", b"- \n", b"\r\n"])
@pytest.mark.parametrize("start", [b"", b"- ", b"[", b"{"])
def test_a_file_of_blanks_is_told_from_others_at_once(blanks: bytes, start: bytes) -> None:
    # patterns that try each division of the blanks among two parts would take hours
    with pytest.raises(InputError, match="the format cannot be told"):
        guessed(File("f", start + blanks * 60_000 + b"x"))


@pytest.mark.parametrize(
    "file",
    [
        File("f", b"NodeName=a" + b" " * 200_000 + b"x", "slurm"),
        File("f", b"\tGPU0\nGPU0\t X \n\nLegend:\n\n  X    = Self\n" + b"\n" * 200_000, "nvidia-smi"),
        File("f", b"| GPU instance profiles: |\n| 0 MIG 1g.10gb 19 7/7 " + b"1" * 200_000, "nvidia-smi"),
        File("f", b'index, name\n0, "' + b"x" * 200_000 + b"\n", "nvidia-smi"),
        File("f", b"| GPU instances: |\n| " + b"1" * 5000 + b" MIG 1g.5gb 19 7 4:1 |\n", "nvidia-smi"),
        File("f", b"GPU 0: a (UUID: x)\n  MIG " + b"1" * 5000 + b"g.5gb Device 0: (UUID: y)\n", "nvidia-smi"),
    ],
    ids=range(6),
)
def test_long_lines_end_at_once_and_without_a_fault(file: File) -> None:
    with contextlib.suppress(InputError):
        read([file])


@pytest.mark.parametrize(
    ("pattern", "bounded"),
    [
        ("^node-[0-9]+$", True),
        (r"^rack1-.*-node-\d+$", True),
        ("^(node-1|node-2|node-30)$", True),
        ("gpu-(0[1-9]|1[0-9]|2[0-4])(?:-x)?$", True),
        (r"[)]*(a)+\(", True),
        (r"rack.*-row.*-node-\d+", True),
        ("((a+))+b", False),
        ("(a|aa)+b", False),
        ("(?:a?){30}b", False),
        ("a?" * 40 + "a" * 40, False),
        ("(a|a)" * 40 + "b", False),
        ("a*" * 20 + "b", False),
    ],
)
def test_patterns_that_take_for_ever(pattern: str, bounded: bool) -> None:
    assert (_steps(pattern, [f"node-{index}" for index in range(5000)]) <= MOST_STEPS) == bounded


def test_steps_of_a_pattern() -> None:
    # a name of 9 characters has 10 places to start at; each repetition is 10 times that, each choice as many as it has
    assert _steps("a", ["x" * 9]) == 10
    assert _steps("a*b+", ["x" * 9]) == 1000
    assert _steps("(a|b|c)d?", ["x" * 9]) == 60


# --- names -------------------------------------------------------------------------------------------------------


def test_no_name_makes_a_line_of_its_own_in_a_message() -> None:
    named = "a\nerror: all is well"
    bad = node()
    bad["status"]["allocatable"][named] = "1"
    assert message(objects(bad)).startswith("f: items[0].status.allocatable.a\\nerror: all is well: ")
    assert str(InputError.one("x", source=named)) == "a\\nerror: all is well: x"
    assert str(InputError.one("x\u2028y\r", "z")) == "x\\u2028y\\r; z"


def test_names_in_a_zip_can_be_printed_and_are_short() -> None:
    for name in ("a\x1b[31m", "a\nerror: b", "n" * 1001):
        packed = BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr(name, "{}")
        with pytest.raises(InputError, match="too long or cannot be printed") as caught:
            list(source.unpacked("z", packed.getvalue()))
        assert str(caught.value).isprintable()
        assert len(str(caught.value)) < 300


def test_a_pod_whose_name_cannot_be_printed_is_named_with_its_place() -> None:
    assert message(objects(node(), pod("a\x1b[2J"))).startswith('f: items[1].metadata: a pod: the name "d/a\\u001b[2J"')


def test_a_card_whose_name_cannot_be_printed_is_named_with_its_place() -> None:
    said = message(File("f", b"GPU 0: NVIDIA\x1b[2J H100 (UUID: GPU-1)\n", "nvidia-smi"))
    assert said.startswith('f: line 1: a card: the name "NVIDIA\\u001b[2J-H100"')


def test_the_ledger_cuts_kinds() -> None:
    snapshot = read([objects(node(), {"kind": "k" * 5000, "apiVersion": "v1"})])
    (entry,) = (entry for entry in snapshot.ledger if entry.kind == "ignored")
    assert entry.what == f"objects of kind {'k' * 200}…"


# --- what is in use is never free --------------------------------------------------------------------------------


@pytest.mark.parametrize("cards", ["9", "256", "257", "500M", 10**9])
def test_a_pod_that_runs_with_more_cards_than_there_can_be_holds_all(cards: object) -> None:
    (job,) = read([objects(node(), pod(cards=cards))]).jobs
    assert job.running is not None
    assert job.running.tasks[0].gpus == tuple(range(8))
    assert job.groups[0].task is not None
    assert job.groups[0].task.extended == {}


@pytest.mark.parametrize("order", [1, -1])
def test_a_pod_that_waits_in_one_dump_and_runs_in_another_runs(order: int) -> None:
    files = [File("one", objects(node(), pod(at=None)).data), File("two", objects(pod()).data)][::order]
    (job,) = read(files).jobs
    assert job.running is not None
    assert job.running.tasks[0].gpus == (0, 1, 2, 3)


def test_a_refusal_of_the_api_server_is_told() -> None:
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": 'nodes is forbidden: "me" cannot list',
    }
    with pytest.raises(InputError, match=r"f: the API server refused: .*cannot list"):
        read([File("f", json.dumps(status).encode())])
