"""Strict JSON: bytes to a record of one format, refusing what a lenient parser would let pass.

Each step finds one kind of mistake and says where it is: the bytes (empty, compressed badly, not UTF-8), the JSON
text (where it breaks off, keys given twice, NaN), the format it claims to be, and the fields and their types.
"""

from __future__ import annotations

import json
import os
import re
import sys
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec

from placement.collector import collector_paused
from placement.errors import InputError, Problem, SnapshotError
from placement.snapshot.report import excerpt, path_of, show
from placement.snapshot.structure import explain

PART = 2**24
"""Bytes that are asked for at a time where it is not known how many there are."""
LARGEST = 2**30
"""Most bytes read of one input, after decompression."""

FORMATS: dict[str, str] = {
    "placement-snapshot": "a snapshot",
    "placement-events": "an event log",
    "placement-plan": "a plan",
    "placement-schedule": "a schedule",
}
"""What each family of formats holds, in words."""

_OTHER = re.compile(r"\[|\"|(?:true|false|null|-?[0-9][0-9.eE+-]*)(?=[ \t\r\n]*$)")

Record = TypeVar("Record")


class Refused(Exception):  # noqa: N818 - not an error of its own: the caller turns it into the one it raises
    """Carries the problem to where it is known which file it is in and which error to raise."""

    def __init__(self, path: str, what: str, remedy: str) -> None:
        super().__init__(what)
        self.problem = Problem(path, what, remedy)


def name_of(source: str | Path | BinaryIO) -> str:
    """Return what to call a source in messages."""
    if isinstance(source, (str, Path)):
        return "standard input" if source == "-" else str(source)
    name = getattr(source, "name", "")
    return name if isinstance(name, str) else ""


def _all_of(stream: BinaryIO, size: int) -> bytes:
    """Return what is in a stream, at most one byte more than `LARGEST`; so much is set aside only where it is there."""
    # a regular file is read at once, and then no more comes
    first = stream.read(min(size, LARGEST) + 1)
    if not isinstance(first, bytes):
        return first
    parts, left = [first], LARGEST + 1 - len(first)
    while part := stream.read(min(left, PART)):
        parts.append(part)
        left -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def read(source: str | Path | BinaryIO, error: type[InputError] = SnapshotError) -> bytes:
    """Return all bytes of a file, of standard input for ``-``, or of an open binary file.

    Raises
    ------
    InputError
        Of the class `error`, if it cannot be read or is larger than `LARGEST`.
    """
    name = name_of(source)
    try:
        if isinstance(source, (str, Path)) and source != "-":
            with Path(source).open("rb") as file:
                data = _all_of(file, os.fstat(file.fileno()).st_size)
        else:
            stream = sys.stdin.buffer if isinstance(source, (str, Path)) else source
            data = _all_of(stream, 0)
    except FileNotFoundError:
        raise error([Problem("", "there is no such file", "check the name")], name[:200]) from None
    except IsADirectoryError:
        raise error([Problem("", "this is a directory, not a file", "name a file in it")], name) from None
    except (OSError, ValueError) as why:
        reason = why.strerror if isinstance(why, OSError) and why.strerror else str(why)
        raise error(
            [Problem("", f"the file cannot be read: {reason}", "check the name and your rights")], name[:200]
        ) from None
    if isinstance(data, str):
        raise error([Problem("", "the file is open as text", 'open it as binary (mode "rb")')], name)
    if len(data) > LARGEST:
        raise error([_too_large()], name)
    return data


def decode(
    data: bytes,
    record: type[Record],
    *,
    source: str = "",
    error: type[InputError] = SnapshotError,
    most: Mapping[str, int] | None = None,
) -> Record:
    """Return the record that the bytes hold.

    Parameters
    ----------
    data : bytes
        JSON in UTF-8, plain or compressed by gzip.
    record : type
        A tagged `msgspec.Struct` whose tag field is ``format``.
    source : str
        Name of the file, for messages.
    error : type
        Class of the error to raise.
    most : mapping of str to int, optional
        Most entries of top-level lists; checked before they are made into objects.

    Raises
    ------
    InputError
        Of the class `error`, with one problem: the first mistake in structure.
    """
    try:
        text = _text(data)
        del data
        pairs = _scan(text)
        _refuse_format(pairs, record)
        _refuse_long_lists(pairs, most or {})
        del pairs
        with collector_paused():
            return _decode(text, record)
    except Refused as refused:
        raise error([refused.problem], source) from None


# --- bytes to text -------------------------------------------------------------------------------------------


def _text(data: bytes) -> str:
    if data[:2] == b"\x1f\x8b":
        data = _decompress(data)
    if not data:
        raise Refused("", "the file is empty", "expected a JSON object; was it written completely?")
    if data.startswith(b"\xef\xbb\xbf"):
        raise Refused("", "the file starts with a byte order mark", "save it as UTF-8 without one")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise Refused("", "the file is UTF-16, expected UTF-8", "save it as UTF-8")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as why:
        what = f"byte {why.start} (0x{data[why.start]:02x}) is not UTF-8, expected JSON text in UTF-8"
        raise Refused("", what, "save the file as UTF-8, or name the right file") from None
    if "\0" in text[:4096]:
        raise Refused("", "this is a binary file, expected JSON text", "name the right file")
    return text


def _decompress(data: bytes) -> bytes:
    parts: list[bytes] = []
    room = LARGEST + 1
    while data:
        engine = zlib.decompressobj(wbits=31)
        try:
            parts.append(engine.decompress(data, room))
        except zlib.error:
            raise Refused("", "the gzip data are damaged", "compress the file again") from None
        room -= len(parts[-1])
        if room <= 0:
            raise Refused(*_parts(_too_large()))
        if not engine.eof:
            raise Refused("", "the gzip data break off", "compress or copy the file again")
        data = engine.unused_data.lstrip(b"\0")  # several compressed pieces in a row are one file
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_large() -> Problem:
    return Problem("", f"the file is larger than {LARGEST >> 20} MiB", "say `count` for identical nodes and jobs")


def _parts(problem: Problem) -> tuple[str, str, str]:
    return problem.path, problem.what, problem.remedy


# --- text to checked JSON ------------------------------------------------------------------------------------


class _Mark:
    """What the scan hands up instead of a value when it found a mistake below, with the way to it."""

    def __init__(self, path: tuple[str | int, ...], what: str, remedy: str) -> None:
        self.path = path
        self.what = what
        self.remedy = remedy


def _scan(text: str) -> list[tuple[str, Any]]:
    """Check that a text is one JSON object with distinct keys throughout; return its keys with lists left hollow.

    Objects are dropped as soon as they close, so lists hold None for each of them and little memory is needed.
    Numbers are not converted: their length stands for them.
    """
    first: list[_Mark] = []
    top: list[tuple[str, Any]] = []

    def close(pairs: list[tuple[str, Any]]) -> _Mark | None:
        nonlocal top
        # half of all objects have two keys, and comparing those is quicker than making a dict of them
        repeats = pairs[0][0] == pairs[1][0] if len(pairs) == 2 else len(dict(pairs)) != len(pairs)
        if repeats or first:
            return climb(pairs)
        top = pairs
        return None

    def climb(pairs: list[tuple[str, Any]]) -> _Mark | None:
        if not first:
            first.append(_repeated(pairs))
            return first[0]
        for key, value in pairs:
            way = _way(value, first[0])
            if way is not None:
                first[0].path = (key, *way, *first[0].path)
                return first[0]
        return None

    def constant(name: str) -> _Mark:
        mark = _Mark((), f"found {name}, expected a finite number", "correct the number")
        first.append(mark)
        return first[0]

    decoder = json.JSONDecoder(object_pairs_hook=close, parse_int=len, parse_float=len, parse_constant=constant)
    _refuse_non_object(text)
    try:
        decoder.decode(text)
    except json.JSONDecodeError as why:
        raise _malformed(text, why) from None
    except RecursionError:
        raise Refused("", "the JSON is nested too deeply", "a snapshot needs some twenty levels at most") from None
    if first:
        raise Refused(path_of(first[0].path), first[0].what, first[0].remedy)
    return top


def _refuse_non_object(text: str) -> None:
    start = len(text) - len(text.lstrip(" \t\r\n"))
    if start == len(text):
        raise Refused("", "the file holds nothing but blanks", "expected a JSON object")
    other = _OTHER.match(text, start)
    if other:
        kinds = {"[": "a list", '"': "text"}
        what = f"the file holds {kinds.get(other[0], excerpt(other[0]))}, expected a JSON object"
        raise Refused("", what, "put it into an object with a `format`")


def _repeated(pairs: list[tuple[str, Any]]) -> _Mark:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            return _Mark((key,), f"the key {show(key)} is given twice in one object", "keep one of them")
        seen.add(key)
    raise AssertionError("no key is repeated")


def _way(value: object, mark: _Mark) -> tuple[int, ...] | None:
    """Return the list indices that lead from a value to the mark, or None."""
    if value is mark:
        return ()
    if isinstance(value, list):
        for index, item in enumerate(value):
            if item is mark or isinstance(item, list):
                way = _way(item, mark)
                if way is not None:
                    return (index, *way)
    return None


def _malformed(text: str, why: json.JSONDecodeError) -> Refused:
    where = f"line {why.lineno}, column {why.colno}"
    rest = text[why.pos : why.pos + 4096]
    unterminated = why.msg.startswith(("Unterminated", "Invalid \\escape", "Invalid \\u")) and '"' not in rest[1:]
    if why.pos >= len(text.rstrip()) or (unterminated and len(rest) < 4096):
        end = excerpt(text[-40:].strip())
        return Refused("", f"the JSON breaks off at {where}, after {end}", "write or copy the file again, completely")
    if why.msg == "Extra data":
        return Refused("", f"something follows the JSON object at {where}: {excerpt(rest)}", "keep one object a file")
    what = why.msg[0].lower() + why.msg[1:]
    return Refused("", f"not JSON at {where}, at {excerpt(rest)}: {what}", "correct it there")


# --- checked JSON to a record --------------------------------------------------------------------------------


def format_of(data: bytes) -> str | None:
    """Return the format that the bytes claim to be; None where they claim none, or cannot be read."""
    try:
        given = dict(_scan(_text(data))).get("format")
    except Refused:
        return None
    return given if isinstance(given, str) else None


def family_of(given: str) -> str:
    """Return the family of a format, which is its name without the version."""
    return given.partition("/")[0]


def _refuse_format(pairs: list[tuple[str, Any]], record: type[Record]) -> None:
    wanted = str(record.__struct_config__.tag)  # type: ignore[attr-defined]
    family = wanted.partition("/")[0]
    kind = FORMATS.get(family, "this file")
    fields = dict(pairs)
    if "format" not in fields:
        raise Refused("format", "the field is missing", f'{kind} starts with "format": {show(wanted)}')
    given = fields["format"]
    if given == wanted:
        return
    if not isinstance(given, str):
        raise Refused("format", f"expected {show(wanted)}", f'write "format": {show(wanted)}')
    other = given.partition("/")[0]
    if other == family:
        what = f"found {show(given)}, but this version reads {show(wanted)} only"
        raise Refused("format", what, "use a version of placement that reads it")
    if other in FORMATS:
        raise Refused("format", f"this is {FORMATS[other]} ({show(given)}), expected {kind}", "name the right file")
    raise Refused("format", f"found {show(given)}, expected {show(wanted)}", f"name {kind}")


def _refuse_long_lists(pairs: list[tuple[str, Any]], most: Mapping[str, int]) -> None:
    for key, value in pairs:
        if isinstance(value, list) and len(value) > most.get(key, sys.maxsize):
            what = f"{len(value):,} entries, at most {most[key]:,} are accepted"
            raise Refused(key, what, "say `count` for identical ones")


def _decode(text: str, record: type[Record]) -> Record:
    try:
        return msgspec.json.decode(text, type=record)
    except msgspec.ValidationError as why:
        raise Refused(*explain(text, str(why), record)) from None
    except RecursionError:
        raise Refused("", "the JSON is nested too deeply", "nest task groups less deeply") from None
    except (msgspec.DecodeError, UnicodeError):
        # the text is JSON, so what is left is text that is no Unicode: half of a surrogate pair
        what = "a text holds half of a surrogate pair (an escape from \\ud800 to \\udfff)"
        raise Refused(path_of(_half(text)), what, "write the character itself") from None


def _half(text: str) -> tuple[str | int, ...]:
    """Return the way to the first text that is no Unicode; empty if there is none."""
    waiting: list[tuple[tuple[str | int, ...], Any]] = [((), json.loads(text))]
    while waiting:
        way, value = waiting.pop()
        if isinstance(value, str) and not _unicode(value):
            return way
        inside: list[tuple[str | int, Any]] = []
        if isinstance(value, dict):
            for key in value:
                if not _unicode(key):
                    return (*way, key)
            inside = list(value.items())
        elif isinstance(value, list):
            inside = list(enumerate(value))
        waiting += [((*way, step), part) for step, part in reversed(inside)]
    return ()


def _unicode(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)
