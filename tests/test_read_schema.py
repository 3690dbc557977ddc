"""The JSON Schema and the page of the format say what the records say."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from bad_snapshots import GOOD, STRUCTURE, Bad

from placement import instances
from placement.honoured import IN_TIME, ONLY, RULES, SHARED
from placement.snapshot import EventLog, Snapshot
from placement.snapshot.read import loads, schema
from placement.snapshot.structure import hints_of, records_in, records_of

PAGE = (Path(__file__).parent.parent / "docs" / "snapshot.md").read_text("utf-8")
SCHEMA = schema()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def objects(value: Any) -> list[dict[str, Any]]:
    """Return every schema of an object within a schema."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    found = [part for item in inside for part in objects(item)]
    return [*found, value] if isinstance(value, dict) and "properties" in value else found


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.Draft202012Validator.check_schema(schema(EventLog))
    assert json.loads(json.dumps(SCHEMA)) == SCHEMA


def test_no_object_takes_unknown_fields() -> None:
    assert all(part["additionalProperties"] is False for part in objects(SCHEMA))
    assert len(objects(SCHEMA["$defs"])) == len(records_in(Snapshot))


def test_the_format_is_required() -> None:
    definition = SCHEMA["$defs"]["Snapshot"]
    assert definition["required"] == ["format"]
    assert definition["properties"]["format"]["enum"] == ["placement-snapshot/1"]


def test_descriptions_come_from_the_docstrings() -> None:
    fields = SCHEMA["$defs"]["Task"]["properties"]
    assert fields["gpu_share"]["description"].startswith("quantity of one card, optional. Fraction of each")
    assert "Attributes" not in json.dumps(SCHEMA)


@pytest.mark.parametrize("name", instances.names())
def test_instances_keep_the_schema(name: str) -> None:
    VALIDATOR.validate(json.loads(instances.path(name).read_bytes()))


def test_the_example_keeps_the_schema() -> None:
    VALIDATOR.validate(GOOD)


@pytest.mark.parametrize("bad", STRUCTURE, ids=lambda bad: bad.name)
def test_mistakes_in_structure_break_the_schema(bad: Bad) -> None:
    assert not VALIDATOR.is_valid(json.loads(bad.data))


def test_events_keep_their_schema() -> None:
    events = [{"type": "job_arrived", "time": 1, "job": copy.deepcopy(GOOD["jobs"][1])}]
    validator = jsonschema.Draft202012Validator(schema(EventLog))
    validator.validate({"format": "placement-events/1", "events": events})
    assert not validator.is_valid({"format": "placement-events/1", "events": [{"type": "job_lost", "time": 1}]})


# --- the page ---------------------------------------------------------------------------------------------------


def rows() -> dict[str, dict[str, list[str]]]:
    """Return the rows of the page's tables of fields, by heading and field."""
    found: dict[str, dict[str, list[str]]] = {}
    for section in re.split(r"^### ", PAGE, flags=re.MULTILINE)[1:]:
        heading, _, body = section.partition("\n")
        cells = [
            [cell.strip() for cell in line.strip("|").split(" | ")] for line in body.splitlines() if line[:3] == "| `"
        ]
        found[heading.strip("`")] = {row[0].strip("` |"): row for row in cells if len(row) == 5}
    return found


def expected() -> dict[str, dict[str, tuple[str, str]]]:
    """Return default and rule of every field, by heading and field."""
    found: dict[str, dict[str, tuple[str, str]]] = {}

    def visit(record: type[msgspec.Struct], heading: str, prefix: str) -> None:
        fields = found.setdefault(heading, {})
        for info in msgspec.structs.fields(record):
            fields[info.name] = (default(info), rule(f"{prefix}{info.name}"))
            for part in records_of(hints_of(record)[info.name]):
                if part is not record:
                    mark = "[]" if "tuple" in str(hints_of(record)[info.name]) else ""
                    below = info.name if heading == "The file" else f"{heading}.{info.name}"
                    visit(part, below + mark, f"{prefix}{info.name}.")

    visit(Snapshot, "The file", "")
    return {heading.removesuffix("[]"): fields for heading, fields in found.items()}


def default(info: msgspec.structs.FieldInfo) -> str:
    if info.required:
        return "required"
    value = info.default if info.default_factory is msgspec.NODEFAULT else info.default_factory()
    if value is None:
        return "absent"
    if isinstance(value, msgspec.Struct):
        return "`{}`"
    return f"`{value:g}`" if isinstance(value, float) else f"`{json.dumps(msgspec.to_builtins(value))}`"


def rule(path: str) -> str:
    known = path
    while known and known not in RULES:
        known = known.rpartition(".")[0]
    if not known:
        return "see below"
    name = RULES[known]
    if known in SHARED:
        return f"queue_shares, and {IN_TIME[known]} in a schedule"
    if name is None:
        return f"{IN_TIME[known]}, in a schedule" if known in IN_TIME else "not yet"
    return f"{name}, in part" if known in ONLY else name


def test_the_page_has_every_field_with_its_default_and_rule() -> None:
    page, records = rows(), expected()
    assert sorted(page) == sorted(records)
    assert page["The file"].pop("format")[2] == "required"
    for heading, fields in records.items():
        assert list(page[heading]) == list(fields), heading
        for name, (value, honoured_by) in fields.items():
            _, unit, given, meaning, by = page[heading][name]
            assert (given, by) == (value, honoured_by), f"{heading}.{name}"
            assert unit
            assert meaning


def test_the_example_on_the_page_is_a_snapshot() -> None:
    (block,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    assert len(loads(block.encode()).jobs) == 2
    VALIDATOR.validate(json.loads(block))
