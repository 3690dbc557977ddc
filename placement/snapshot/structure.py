"""Explaining mistakes in structure: which field, what was found, what was expected, what may be meant."""

from __future__ import annotations

import re
import types
import typing
from functools import cache
from typing import Any, Literal, Union

import msgspec

from placement.snapshot.report import names, nearest, path_of, show

_STEP = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")


def explain(text: str, message: str, record: type) -> tuple[str, str, str]:
    """Return path, what is wrong and the remedy for a record that msgspec refused.

    Parameters
    ----------
    text : str
        JSON, well-formed.
    message : str
        What msgspec said of it.
    record : type
        The type it should have had.
    """
    what, _, where = message.rpartition(" - at `")
    if not what:
        what, where = message, "$`"
    try:
        parts, raw, hint, absent = _follow(text, where.removeprefix("key` in `").removeprefix("$").rstrip("`"), record)
    except (LookupError, StopIteration, msgspec.MsgspecError):
        # a field name that looks like the end of the message: say what msgspec said
        return "", message, "correct it there"
    quoted = re.search(r"`(.*)`", what, re.DOTALL)
    if what.startswith("Object contains unknown field") and quoted:
        return _unknown_field(parts, quoted[1], hint)
    if what.startswith("Object missing required field") and quoted:
        field = _field_hint(hint, raw, quoted[1])
        return path_of([*parts, quoted[1]]), "the field is missing", f"add it: {expected(field)}"
    found = _found(raw)
    if "out of range" in what:
        return path_of(parts), f"found {found}, which is too large", f"expected {expected(hint)}"
    return path_of(parts), f"found {found}, expected {expected(hint)}", _remedy(raw, hint, absent)


def _follow(text: str, where: str, record: type) -> tuple[list[str | int], bytes, Any, str]:
    """Walk msgspec's path; return it with the keys that msgspec leaves out, the JSON there, and the type expected.

    Last is what to do where there is nothing to say: a field may have a default or not, an item of a list has none.
    """
    parts: list[str | int] = []
    raw = msgspec.Raw(text)
    hint: Any = record
    absent = ""
    for name, index in _STEP.findall(where):
        if name:
            absent = "leave the field out for its default" if _optional(hint, _head(raw), name) else ""
            hint = _field_hint(hint, _head(raw), name)
            parts.append(name)
            raw = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])[name]
        elif index == "...":
            absent = "leave the key out"
            hint = _item_hint(hint, 0)
            entries = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
            key = next(key for key, value in entries.items() if not _fits(value, hint))
            parts.append(key)
            raw = entries[key]
        else:
            absent = "take it out of the list" if _any_length(hint) else ""
            hint = _item_hint(hint, int(index))
            parts.append(int(index))
            raw = msgspec.json.decode(raw, type=list[msgspec.Raw])[int(index)]
    return parts, _head(raw), hint, absent


def _head(raw: msgspec.Raw) -> bytes:
    """Return the first bytes of a value: what a message needs, be the value ever so long."""
    return memoryview(raw)[:4096].tobytes()


def _fits(raw: msgspec.Raw, hint: Any) -> bool:
    try:
        msgspec.json.decode(raw, type=hint)
    except msgspec.MsgspecError:
        return False
    return True


# --- types ---------------------------------------------------------------------------------------------------


@cache
def hints_of(record: type) -> dict[str, Any]:
    """Return the type of every field of a record."""
    return {name: hint for name, hint in typing.get_type_hints(record).items() if name in record.__struct_fields__}  # type: ignore[attr-defined]


def options(hint: Any) -> tuple[Any, ...]:
    """Return the alternatives of a type; itself alone where it is no union."""
    return typing.get_args(hint) if typing.get_origin(hint) in (Union, types.UnionType) else (hint,)


def records_in(record: type) -> list[type]:
    """Return a record and all records below it, each once, outer ones first."""
    found: dict[type, None] = {record: None}
    waiting: list[Any] = [record]
    while waiting:
        for hint in hints_of(waiting.pop(0)).values():
            for part in records_of(hint):
                if part not in found:
                    found[part] = None
                    waiting.append(part)
    return list(found)


def records_of(hint: Any) -> list[type]:
    """Return the records that a type names anywhere, in order."""
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return [hint]
    return [part for arg in typing.get_args(hint) for part in records_of(arg)]


def _records(hint: Any, raw: bytes) -> list[Any]:
    """Return the records that a type allows, or the one whose tag the JSON names."""
    records = [option for option in options(hint) if isinstance(option, type) and issubclass(option, msgspec.Struct)]
    if len(records) > 1:
        named = [
            r for r in records if re.search(rb'"type"\s*:\s*"' + str(r.__struct_config__.tag).encode() + b'"', raw)
        ]
        return named or records
    return records


def _field_hint(hint: Any, raw: bytes, name: str) -> Any:
    for record in _records(hint, raw):
        if name in hints_of(record):
            return hints_of(record)[name]
        if name == record.__struct_config__.tag_field:
            return Literal[tuple(str(r.__struct_config__.tag) for r in _records(hint, b""))]
    return Any


def _optional(hint: Any, raw: bytes, name: str) -> bool:
    """Return whether a field of a record has a default."""
    return any(
        info.name == name and not info.required for r in _records(hint, raw) for info in msgspec.structs.fields(r)
    )


def _any_length(hint: Any) -> bool:
    """Return whether a type is a list of as many items as one likes."""
    return any(typing.get_origin(option) is list or typing.get_args(option)[1:] == (...,) for option in options(hint))


def _item_hint(hint: Any, index: int) -> Any:
    for option in options(hint):
        args = typing.get_args(option)
        if typing.get_origin(option) is dict:
            return args[1]
        if typing.get_origin(option) is list:
            return args[0]
        if typing.get_origin(option) is tuple:
            return args[0] if args[-1] is Ellipsis else args[min(index, len(args) - 1)]
    return Any


def expected(hint: Any) -> str:
    """Return what a type asks for, in words.

    Examples
    --------
    >>> expected(int | None), expected(Literal["a", "b"])
    ('a whole number', 'one of "a", "b"')
    >>> expected(list[list[int]]), expected(tuple[str, ...])
    ('a list of lists of whole numbers', 'a list of texts')
    """
    parts = [option for option in options(hint) if option not in (type(None), msgspec.UnsetType)]
    if {int, float, str} <= set(parts):
        return 'a quantity, such as 0.5 or "80Gi"'
    return " or ".join(dict.fromkeys(_in_words(part) for part in parts))


def _in_words(part: Any) -> str:
    simple = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
    if isinstance(part, type) and part in simple:
        return simple[part]
    args = typing.get_args(part)
    origin = typing.get_origin(part)
    if origin is Literal:
        return show(args[0]) if len(args) == 1 else f"one of {', '.join(show(arg) for arg in args)}"
    if origin is tuple and args[-1] is not Ellipsis:
        return f"a list of {len(args)}: {' and '.join(expected(arg) for arg in args)}"
    if origin in (tuple, list):
        return f"a list of {_plural(args[0])}"
    if origin is dict or (isinstance(part, type) and issubclass(part, msgspec.Struct)):
        return "an object"
    return "a value"


def _plural(hint: Any) -> str:
    """Return what the items of a list are, in words."""
    words = expected(hint)
    if words.startswith("a quantity"):
        return words.replace("a quantity", "quantities")
    known = {"text": "texts", "an object": "objects", "a whole number": "whole numbers", "a number": "numbers"}
    return known.get(words) or words.replace("a list of", "lists of", 1)


# --- messages ------------------------------------------------------------------------------------------------


def _unknown_field(parts: list[str | int], name: str, hint: Any) -> tuple[str, str, str]:
    known = list(dict.fromkeys(field for record in _records(hint, b"") for field in hints_of(record)))
    similar = nearest(name, known)
    remedy = f"did you mean {show(similar)}?" if similar else f"the fields here are {names(known, 30)}"
    return path_of([*parts, name]), "there is no such field", remedy


def _found(raw: bytes) -> str:
    first = raw.lstrip()[:1]
    if first == b"{":
        return "an object"
    if first == b"[":
        return "a list"
    try:
        value = msgspec.json.decode(raw)
    except msgspec.MsgspecError:  # too large a number, or a text that is cut
        text = raw[:40].decode("utf-8", "replace")
        return f'the text {text}…"' if first == b'"' else text + "…" * (len(raw) > 40)
    if isinstance(value, str):
        return f"the text {show(value)}"
    return "null" if value is None else raw.decode() if len(raw) <= 40 else show(value, 40)


def _remedy(raw: bytes, hint: Any, absent: str) -> str:
    parts = options(hint)
    first = raw.lstrip()[:1]
    choices = [choice for part in parts if typing.get_origin(part) is Literal for choice in typing.get_args(part)]
    if choices and first == b'"' and _fits(msgspec.Raw(raw), str):
        similar = nearest(msgspec.json.decode(raw, type=str), [str(choice) for choice in choices])
        return f"did you mean {show(similar)}?" if similar else "write one of these"
    if first == b"n":
        return absent or f"write {expected(hint)}"
    if first == b'"' and (int in parts or float in parts):
        return "write it without quotes"
    if first not in b"[{" and any(typing.get_origin(part) in (tuple, list) for part in parts):
        return "put it in a list" if _fits(msgspec.Raw(raw), _item_hint(hint, 0)) else "write a list"
    if int in parts and float not in parts and re.fullmatch(rb"-?[0-9.eE+-]+", raw.strip() or b"x"):
        return "write it without a fraction or exponent"
    if str in parts and int in parts and first in b"tf":
        return "write the amount"
    if str in parts and first in b"-0123456789tf":
        return "write it in quotes"
    return "correct the value"
