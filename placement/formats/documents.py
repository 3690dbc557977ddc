"""JSON and YAML: the documents of a file, with their places, and typed parts of them.

JSON stays raw until it is known what it is, so that half a gigabyte of pods is decoded once and straight into records.
YAML is read by the safe loader, made strict: a key given twice is an error, and aliases may not multiply what a file
says beyond `MOST_YAML` values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec
import yaml

from placement.errors import InputError
from placement.formats.source import File
from placement.snapshot.report import show

LARGEST_YAML = 2**26
"""Most bytes of YAML; more than that is dumped as JSON."""

MOST_YAML = 2_000_000
"""Most values of a YAML file, aliases written out."""

MOST_DEPTH = 200
"""Levels of nesting of a YAML document."""

LONGEST_NUMBER = 100
"""Characters of a number in YAML; the time to read one grows with its square."""

TEXT = "tag:yaml.org,2002:str"
NUMBERS = frozenset({"tag:yaml.org,2002:int", "tag:yaml.org,2002:float"})

T = TypeVar("T")

Value = Any
"""A parsed document, or part of one: plain Python values, or `msgspec.Raw` JSON."""


def documents(file: File) -> list[tuple[str, Value]]:
    """Return the documents of a JSON or YAML file with the path of each.

    A JSON file is one document, as `msgspec.Raw`, or several that follow one another. What does not begin like JSON is
    YAML.

    Raises
    ------
    InputError
        If it is neither, or too large.
    """
    start = file.data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if not start:
        raise file.error("the file is empty", "dump it again")
    return _json(file) if start in b"{[" else list(_yaml(file))


def convert(value: Value, record: type[T], file: str, path: str) -> T:
    """Return a value as a record; fields that the record does not have are left out.

    Raises
    ------
    InputError
        If a field is missing or has another type.
    """
    try:
        if isinstance(value, msgspec.Raw):
            return msgspec.json.decode(value, type=record)
        return msgspec.convert(value, record)
    except msgspec.ValidationError as why:
        what, _, where = str(why).partition(" - at `$")
        raise InputError.one(
            what.replace("`", ""), "correct the field", path=f"{path}{where.rstrip('`')}".removeprefix("."), source=file
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as why:
        raise InputError.one(f"not JSON: {why}", "dump it again", path=path, source=file) from None


# --- JSON ----------------------------------------------------------------------------------------------------


def _json(file: File) -> list[tuple[str, Value]]:
    data = file.data.removeprefix(b"\xef\xbb\xbf")
    try:
        return [("", msgspec.json.decode(data, type=msgspec.Raw))]
    except (msgspec.DecodeError, RecursionError) as why:
        found = _lines(data)
        if found is not None:
            return found
        what = "nested too deeply" if isinstance(why, RecursionError) else str(why)
        raise file.error(f"not JSON: {what}", "dump it again, whole", _line_of(data, str(why))) from None


def _lines(data: bytes) -> list[tuple[str, Value]] | None:
    """Return the documents of a file of several JSON values, of one line or of many; None where it is none."""
    try:
        found = msgspec.json.Decoder(msgspec.Raw).decode_lines(data)
    except (msgspec.DecodeError, RecursionError):
        return None
    documents, number, at = [], 1, 0
    for value in found:
        # values follow one another with nothing but blanks between them
        text = bytes(value)
        start = data.index(text, at)
        number += data.count(b"\n", at, start)
        documents.append((f"line {number}", value))
        at = start + len(text)
        number += data.count(b"\n", start, at)
    return documents


def _line_of(data: bytes, message: str) -> str:
    digits = message.rpartition("(byte ")[2].rstrip(")")
    return f"line {data.count(chr(10).encode(), 0, int(digits)) + 1}" if digits.isdigit() else ""


# --- YAML ----------------------------------------------------------------------------------------------------


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """The safe loader; dates and numbers with colons stay text, as Kubernetes takes them."""

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:
        """Return the tag of a value: ``1:30`` is text, and no number to the base 60."""
        tag: str = super().resolve(kind, value, implicit)
        return TEXT if tag in NUMBERS and ":" in value else tag

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Return what a node says; a value that is not what its tag says is an error with its place."""
        if node.tag in NUMBERS and len(node.value) > LONGEST_NUMBER:
            raise _not(node, f"a number of {len(node.value):,} characters")
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError):
            raise _not(node, f"a value that is not what its tag {show(node.tag)} says") from None


def _not(node: yaml.Node, what: str) -> yaml.MarkedYAMLError:
    return yaml.constructor.ConstructorError(None, None, what, node.start_mark)


def _refuse_repeated(node: yaml.MappingNode) -> None:
    """Raise if a key is given twice; asked before merge keys put other mappings' keys beside the node's own."""
    seen: set[str] = set()
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
            if key.value in seen:
                raise _not(key, f"the key {show(key.value)} is given twice")
            seen.add(key.value)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _yaml(file: File) -> Iterator[tuple[str, Value]]:
    if len(file.data) > LARGEST_YAML:
        raise file.error(f"more than {LARGEST_YAML:,} bytes of YAML", "dump it as JSON (-o json)")
    loader = _Loader(file.text())
    index, left = 0, MOST_YAML
    try:
        while loader.check_node():
            node = loader.get_node()
            left -= _values(file, node, left)
            value = loader.construct_document(node)
            if value is not None:
                yield f"document {index + 1}", value
            index += 1
    except yaml.MarkedYAMLError as why:
        mark = why.problem_mark or why.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
        what = why.context if why.problem in (None, "second occurrence") else why.problem
        raise file.error(f"not YAML: {what}", "correct the file", where) from None
    except yaml.reader.ReaderError as why:
        line = file.data.count(b"\n", 0, why.position) + 1
        raise file.error(f"not YAML: character {why.character:#04x} in it", "remove it", f"line {line}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as why:
        raise file.error(f"not YAML: {why}", "correct the file") from None
    finally:
        loader.dispose()


def _values(file: File, node: yaml.Node, most: int) -> int:
    """Return how many values a document has with its aliases written out; an alias to what it is in has no end."""
    sizes: dict[int, int] = {}
    above: set[int] = set()

    def size(node: yaml.Node, depth: int) -> int:
        key = id(node)
        if key in sizes:
            return sizes[key]
        where = f"line {node.start_mark.line + 1}"
        if key in above or depth > MOST_DEPTH:
            raise file.error("an alias to what it is in, or too many levels", "write the values out", where)
        above.add(key)
        total = 1
        if isinstance(node, yaml.SequenceNode):
            total += sum(size(item, depth + 1) for item in node.value)
        elif isinstance(node, yaml.MappingNode):
            _refuse_repeated(node)
            total += sum(size(part, depth + 1) for pair in node.value for part in pair)
        above.discard(key)
        if total > most:
            raise file.error(f"more than {MOST_YAML:,} values with its aliases", "give a smaller file", where)
        sizes[key] = total
        return total

    return size(node, 0)
