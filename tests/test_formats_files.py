"""Bytes of files, documents in them, their format, and the ledger: what every reader goes through."""

from __future__ import annotations

import contextlib
import gzip
import io
import zipfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.errors import InputError
from placement.formats import documents as documents_module
from placement.formats import source
from placement.formats.documents import convert, documents
from placement.formats.guess import FORMATS, guessed
from placement.formats.ledger import MOST_PLACES, Ledger
from placement.formats.source import File, files
from placement.snapshot import LedgerEntry


class Thing(msgspec.Struct):
    name: str
    size: int | None = None


def zipped(members: dict[str, bytes], password: bool = False) -> bytes:
    found = io.BytesIO()
    with zipfile.ZipFile(found, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    data = bytearray(found.getvalue())
    if password:
        # the flag of an encrypted member, in both of its headers
        data[data.index(b"PK\x03\x04") + 6] |= 1
        data[data.index(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


def opened(tmp_path: Path, data: bytes, name: str = "file") -> list[File]:
    path = tmp_path / name
    path.write_bytes(data)
    return list(files(str(path)))


# --- bytes -------------------------------------------------------------------------------------------------------


def test_plain_gzip_and_zip_by_what_they_are(tmp_path: Path) -> None:
    for data in (b"{}", gzip.compress(b"{}")):
        (found,) = opened(tmp_path, data, "any.name")
        assert (found.name, found.data) == (str(tmp_path / "any.name"), b"{}")
    found_ = opened(tmp_path, zipped({"a/": b"", "a/x.json": b"1", "y": b"2"}), "z")
    assert [(one.name, one.data) for one in found_] == [
        (f"{tmp_path}/z/a/x.json", b"1"),
        (f"{tmp_path}/z/y", b"2"),
    ]
    # a zip that was packed again
    assert [one.data for one in opened(tmp_path, gzip.compress(zipped({"y": b"2"})))] == [b"2"]


def test_several_parts_of_gzip_are_one_file(tmp_path: Path) -> None:
    # as `cat a.gz b.gz` and parallel packers make them; RFC 1952, 2.2
    (found,) = opened(tmp_path, gzip.compress(b"ab") + gzip.compress(b"cd"))
    assert found.data == b"abcd"


def test_members_that_are_packed_are_unpacked(tmp_path: Path) -> None:
    (found,) = opened(tmp_path, zipped({"nodes.json.gz": gzip.compress(b"{}")}))
    assert found.data == b"{}"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (gzip.compress(b"{}" * 99)[:-9], "breaks off"),
        (gzip.compress(b"{}")[:5], "breaks off"),
        (gzip.compress(b"{}")[:-8] + b"\0" * 8, "damaged gzip"),
        (gzip.compress(b"{}") + b"rubbish", "behind the end"),
        (zipped({"x": b"1" * 99})[:-30], "damaged or encrypted zip"),
        (zipped({"x": b"1" * 99})[:30], "damaged or encrypted zip"),
        (zipped({"x": b"1"}, password=True), "damaged or encrypted zip"),
        (zipped({"../x": b"1"}), "points outside"),
        (zipped({"a/../../x": b"1"}), "points outside"),
        (zipped({"/etc/x": b"1"}), "points outside"),
        (zipped({"..\\x": b"1"}), "points outside"),
        (zipped({"C:\\x": b"1"}), "points outside"),
        (zipped({}), "no file in it"),
        (zipped({"a/": b""}), "no file in it"),
        (zipped({f"{index}": b"" for index in range(1001)}), "1001 files"),
    ],
    ids=range(15),
)
def test_damaged_and_hostile_archives(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        opened(tmp_path, data)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    "data",
    [
        gzip.compress(b"0" * 5000),
        zipped({"x": b"0" * 5000}),
        zipped({"x": b"0" * 900, "y": b"0" * 900}),
        zipped({"x": gzip.compress(b"0" * 5000)}),
        gzip.compress(b"0" * 900) + gzip.compress(b"0" * 900),
    ],
    ids=["gzip", "zip", "zip of two", "gzip in zip", "gzip of two"],
)
def test_bombs_are_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(source, "LARGEST", 1000)
    with pytest.raises(InputError, match="unpacks to more than 1,000 bytes"):
        opened(tmp_path, data)


@given(st.binary(max_size=40))
def test_no_bytes_end_in_anything_but_an_input_error(data: bytes) -> None:
    for start in (b"", b"\x1f\x8b\x08", b"PK\x03\x04", b"PK\x05\x06", b"{", b"[", b"a: ", b"\xef\xbb\xbf"):
        try:
            for one in source.unpacked("file", start + data):
                guessed(one)
                for path, value in documents(one):
                    convert(value, Thing, one.name, path)
        except InputError:
            pass


@given(st.integers(0, 200), st.integers(0, 255))
def test_damage_anywhere_in_an_archive_is_an_input_error(at: int, byte: int) -> None:
    for whole in (zipped({"x.json": b'{"kind": "List"}'}), gzip.compress(b'{"kind": "List"}', mtime=0)):
        data = bytearray(whole)
        data[at % len(data)] = byte
        with contextlib.suppress(InputError):
            list(source.unpacked("file", bytes(data)))


def test_text_is_utf8_with_or_without_its_mark() -> None:
    assert File("f", b"\xef\xbb\xbfa").text() == "a"
    with pytest.raises(InputError, match="f: line 2: byte 0xff is not UTF-8"):
        File("f", b"a\n\xff").text()


def test_utf16_with_its_mark_is_read_too() -> None:
    # what Windows PowerShell writes with `>`
    for codec in ("utf-16-le", "utf-16-be"):
        (found,) = source.unpacked("f", "\ufeffé\r\n".encode(codec))
        assert found.text() == "é\r\n"
    with pytest.raises(InputError, match="f: not UTF-16"):
        list(source.unpacked("f", b"\xff\xfe\x00"))


# --- documents ---------------------------------------------------------------------------------------------------


def plain(data: bytes) -> list[tuple[str, object]]:
    return [
        (path, msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else value)
        for path, value in documents(File("f", data))
    ]


def test_json_lines_and_yaml_and_their_places() -> None:
    assert plain(b'\xef\xbb\xbf {"a": 1}') == [("", {"a": 1})]
    assert plain(b"[1, 2]") == [("", [1, 2])]
    assert plain(b'{"a": 1}\n\n{"a": 2}\n') == [("line 1", {"a": 1}), ("line 3", {"a": 2})]
    # what two commands have appended to one file
    assert plain(b'\n{\n"a": 1\n}\n\n{"a":\n2}\n') == [("line 2", {"a": 1}), ("line 6", {"a": 2})]
    assert plain(b'{"a":\n1}{"a": 1}\n[]') == [("line 1", {"a": 1}), ("line 2", {"a": 1}), ("line 3", [])]
    assert plain(b"---\na: 1\n---\n---\nb: 2\n") == [("document 1", {"a": 1}), ("document 3", {"b": 2})]
    assert plain(b"\xef\xbb\xbfa: 1\n") == [("document 1", {"a": 1})]
    # dates stay text, as in JSON
    assert plain(b"a: 2026-01-01T00:00:00Z\n") == [("document 1", {"a": "2026-01-01T00:00:00Z"})]
    assert plain(b"base: &b {x: 1}\na: {<<: *b, y: 2}\n")[0][1] == {"base": {"x": 1}, "a": {"x": 1, "y": 2}}


BOMB = (
    b"a0: &a0 ["
    + b"x," * 9
    + b"x]\n"
    + b"".join(b"a%d: &a%d [%s]\n" % (index, index, b",".join([b"*a%d" % (index - 1)] * 10)) for index in range(1, 10))
)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the file is empty"),
        (b" \n\t", "the file is empty"),
        (b"\xef\xbb\xbf", "the file is empty"),
        (b'{"a": 1', "not JSON"),
        (b'{"a": 1}\n{"a"', "not JSON"),
        (b'{"a":\n1}\n{"a":\n', "not JSON"),
        (b'{"a":\n1}\n2 3 x', "not JSON"),
        (b'{"a": NaN}', "not JSON"),
        (b"[" * 100_000, "not JSON: nested too deeply"),
        (b'{"a":' * 100_000, "not JSON: nested too deeply"),
        (b"a: 1\na: 2\n", 'line 2, column 1: not YAML: the key "a" is given twice'),
        (b"a: {b: 1, b: 2}\n", 'the key "b" is given twice'),
        (b"a: [1\n", "not YAML"),
        (b"a: !!python/object/apply:os.system [ls]\n", "not YAML"),
        (b"a: \x00\n", "not YAML"),
        (b"a: \xff\n", "not UTF-8"),
        (b"a: &a [*a]\n", "an alias to what it is in"),
        (b"a: *b\n", "not YAML"),
        (BOMB, "2,000,000 values with its aliases"),
        (b"a: " + b"[" * 300 + b"]" * 300, "too many levels"),
        (b"a: " + b"[" * 100_000, "not YAML"),
        (b"? [1, 2]\n: 3\n", "not YAML"),
        (b"{a: 1}", "not JSON"),
    ],
)
def test_what_is_no_document(data: bytes, message: str) -> None:
    with pytest.raises(InputError) as error:
        plain(data)
    assert message in str(error.value)
    assert str(error.value).startswith("f: ")


def test_large_yaml_is_dumped_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents_module, "LARGEST_YAML", 10)
    with pytest.raises(InputError, match="as JSON"):
        plain(b"a: 0123456789\n")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"name": 1}', "f: name: Expected str, got int"),
        (b'{"size": 1}', "required field name"),
        (b'{"name": "a", "size": "b"}', "f: size: Expected int | null, got str"),
        (b"[]", "Expected object, got array"),
        (b"name: 1\n", "f: document 1.name: Expected str, got int"),
        (b'{"name": "\xff"}', "f: "),
    ],
)
def test_a_wrong_type_is_named_with_its_path(data: bytes, message: str) -> None:
    ((path, value),) = documents(File("f", data))
    with pytest.raises(InputError) as error:
        convert(value, Thing, "f", path)
    assert message in str(error.value)


def test_what_a_record_does_not_list_is_left_out() -> None:
    ((path, value),) = documents(File("f", b'{"name": "a", "other": [1]}'))
    assert convert(value, Thing, "f", path) == Thing("a")


# --- the format of a file ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('{"apiVersion": "v1", "kind": "List", "items": []}', "kubernetes"),
        ('{\n    "apiVersion": "v1",\n    "items": [{"kind": "Node"}]}', "kubernetes"),
        ('{"config": {}, "rawObjects": {"pods": []}}', "kubernetes"),
        ("# a comment\n---\napiVersion: kueue.x-k8s.io/v1beta1\nkind: ClusterQueue\n", "kubernetes"),
        ("kind: Node\n", "kubernetes"),
        ('{"meta": {"plugin": {}}, "nodes": [{"name": "n1", "gres": "gpu:8"}]}', "slurm"),
        ('{"jobs": []}', "slurm"),
        ("# nodes\nNodeName=n[1-4] Gres=gpu:a100:8\n", "slurm"),
        ("   NodeName=n1 Arch=x86_64\n", "slurm"),
        ("SwitchName=s1 Nodes=n[1-4]\n", "slurm"),
        ("BlockName=b1 Nodes=n[1-4]\nBlockSizes=4\n", "slurm"),
        ("AutoDetect=nvml\n", "slurm"),
        ("- topology: t\n  cluster_default: true\n", "slurm"),
        ("\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV12\t0-31\n", "nvidia-smi"),
        ('<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "x.dtd">\n<nvidia_smi_log>', "nvidia-smi"),
        ("GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-1)\n", "nvidia-smi"),
        ("sn,cpu_milli,memory_mib,gpu,model\n", "openb"),
        ("name,cpu_milli,memory_mib,num_gpu,gpu_milli\n", "openb"),
        ("\ufeffname,cpu_milli,memory_mib,num_gpu,gpu_milli\n", "openb"),
        ("job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n", "philly"),
        ("vc,job_type,total_steps,arrival_s,scale_factor\n", "philly"),
        ('[\n {"status": "Pass", "vc": "a", "jobid": "j", "attempts": [', "philly"),
        ('[{"jobid": "j", "submitted_time": "2017-10-07 01:11:39", "attempts": []}]', "philly"),
    ],
)
def test_the_format_is_told_from_the_file(text: str, name: str) -> None:
    assert guessed(File("f", text.encode())) == name
    assert name in FORMATS


def test_a_named_format_is_believed() -> None:
    assert guessed(File("f", b"kind: Node\n", "slurm")) == "slurm"


def test_an_empty_file_is_said_to_be_empty() -> None:
    for data in (b"", b"\xef\xbb\xbf", b" \n"):
        with pytest.raises(InputError, match="f: the file is empty; dump it again"):
            guessed(File("f", data))


@pytest.mark.parametrize("data", [b"hello\n", b"\x00\x01\x02\xff", b"a,b,c\n1,2,3\n", b"[]", b"{}", b"\x7fELF"])
def test_a_file_of_no_format_is_an_error_that_lists_them(data: bytes) -> None:
    with pytest.raises(InputError, match="kubernetes, kueue") as error:
        guessed(File("f", data))
    assert str(error.value).startswith("f: ")


# --- the ledger --------------------------------------------------------------------------------------------------


def test_what_is_alike_is_one_entry_and_kinds_are_in_order() -> None:
    ledger = Ledger()
    ledger.read("nodes", "f: items[0]", 7)
    for index in range(5):
        ledger.assumed("cards", "none", f"f: items[{index}]")
    ledger.ignored("field x", "it is y", "f: items[1]")
    ledger.contradiction("count and list", "the list")
    ledger.unsupported("wish", "no rule", "f: items[2]")
    ledger.read("jobs", count=0)
    assert ledger.entries() == (
        LedgerEntry(kind="contradiction", what="count and list", why="the list"),
        LedgerEntry(kind="ignored", what="field x", why="it is y", where=("f: items[1]",)),
        LedgerEntry(kind="ignored", what="wish", why="no rule", where=("f: items[2]",)),
        LedgerEntry(
            kind="assumed",
            what="cards",
            why="none",
            where=tuple(f"f: items[{index}]" for index in range(MOST_PLACES)),
            count=5,
        ),
        LedgerEntry(kind="read", what="nodes", where=("f: items[0]",), count=7),
    )


def test_a_strict_ledger_refuses_what_limits_placement_and_nothing_else() -> None:
    ledger = Ledger(strict=True)
    ledger.ignored("field x", "it is y")
    with pytest.raises(InputError) as error:
        ledger.unsupported("wish", "no rule", "items[2]", "f")
    assert str(error.value) == "f: items[2]: wish: no rule; remove it, or import without --strict, which ignores it"


def test_where_with_the_name_of_the_file_is_not_doubled() -> None:
    with pytest.raises(InputError) as error:
        Ledger(strict=True).unsupported("wish", "no rule", "f: items[2]", "f")
    assert str(error.value).startswith("f: items[2]: wish")
