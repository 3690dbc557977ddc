"""A snapshot without fields that no rule honours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import is_not
from typing import Any, TypeVar

import msgspec

from placement.errors import Problem, UsageError
from placement.honoured.spec import Spec, spec_of
from placement.honoured.table import IN_TIME, RULES, removable
from placement.honoured.uses import values_of
from placement.snapshot import Snapshot
from placement.snapshot.read import remember
from placement.snapshot.report import nearest, show

Record = TypeVar("Record", bound=msgspec.Struct)


def without_fields(snapshot: Snapshot, without: Iterable[str]) -> Snapshot:
    """Return a snapshot with some fields at their defaults; the same one where nothing changes."""
    reduced = _reset(snapshot, spec_of(Snapshot), frozenset(without), {})
    if reduced is not snapshot:
        remember(reduced)
    return reduced


def refuse_names(without: Iterable[str], honoured: frozenset[str] = frozenset()) -> None:
    """Refuse to leave out fields that do not exist or that some rule honours, or that `honoured` names.

    Raises
    ------
    UsageError
        With every such name, and the list of possible ones.
    """
    possible = tuple(path for path in removable() if path not in honoured)
    problems = []
    for path in without:
        if path in IN_TIME and path not in honoured:
            # also one that makes no difference to a plan
            continue
        if path in RULES and path not in possible:
            rule = RULES[path] or IN_TIME[path]
            what = f"{path} is honoured ({rule}), so leaving it out would change the problem"
            problems.append(Problem("without", what, "name fields that no rule honours"))
        elif inside := {below: rule for below, rule in RULES.items() if below.startswith(f"{path}.")}:
            problems.append(_record_named(path, inside))
        elif path not in possible:
            what = f"there is no field {show(path)} that no rule honours"
            similar = nearest(path, possible)
            problems.append(Problem("without", what, f"did you mean {show(similar)}?" if similar else "see the list"))
    if problems:
        raise UsageError([*problems, Problem("without", f"possible are {', '.join(possible)}", "")])


def _record_named(path: str, inside: Mapping[str, str | None]) -> Problem:
    """Return why a record cannot be left out of which some fields, or all, are honoured."""
    possible = [below for below in inside if below in removable()]
    rules = ", ".join(dict.fromkeys(rule for rules in inside.values() if rules for rule in rules.split(", ")))
    if not possible:
        what = f"{path} is honoured ({rules}), so leaving it out would change the problem"
        return Problem("without", what, "name fields that no rule honours")
    what = f"of {path} some is honoured ({rules}), so leaving all of it out would change the problem"
    few = len(possible) <= 6
    return Problem(
        "without", what, f"name {' or '.join(possible)}" if few else "name fields in it that no rule honours"
    )


def _reset(value: Record, spec: Spec, without: frozenset[str], known: dict[tuple[int, int], Any]) -> Record:
    """Return an equal record but for the fields `without` names; the same one where nothing changes.

    `known` remembers lists by identity, so that what records shared they still share.
    """
    changed: dict[str, Any] = {name: default for name, path, default in spec.refused if path in without}
    changed = {name: default for name, default in changed.items() if getattr(value, name) != default}
    for name, path, honoured in spec.partly:
        if path in without and any(option not in honoured for _, option in values_of(getattr(value, name))):
            changed[name] = _kept(value, name, honoured)
    for name, part in spec.below:
        inside = getattr(value, name)
        if isinstance(inside, tuple):
            key = id(inside), id(part)
            if key not in known:
                items = tuple(_reset(item, part, without, known) for item in inside)
                known[key] = items if any(map(is_not, items, inside)) else inside
            if known[key] is not inside:
                changed[name] = known[key]
        elif inside is not None and (item := _reset(inside, part, without, known)) is not inside:
            changed[name] = item
    return msgspec.structs.replace(value, **changed) if changed else value


def _kept(value: msgspec.Struct, name: str, honoured: frozenset[str]) -> Any:
    """Return what is left of a field without the values that are not honoured: its default where nothing is."""
    default = next(info.default for info in msgspec.structs.fields(value) if info.name == name)
    given = getattr(value, name)
    if isinstance(given, str):
        return default
    return tuple(option for option in given if option in honoured) or default
