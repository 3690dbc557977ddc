"""Where a snapshot uses fields that no rule honours."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from operator import attrgetter, ne
from typing import Any

from placement.errors import Problem
from placement.honoured.spec import Spec, spec_of
from placement.honoured.table import IN_TIME, ONLY, RULES
from placement.snapshot import Snapshot
from placement.snapshot.report import names


def uses_in(snapshot: Snapshot, without: frozenset[str]) -> dict[str, Use]:
    """Return the uses of fields that no rule honours, in the order of the table."""
    spec = spec_of(Snapshot)
    uses: dict[str, Use] = {}
    if not _nothing_refused([snapshot], spec):
        _look(snapshot, spec, (), without, uses)
    order = list(RULES)
    return {path: uses[path] for path in sorted(uses, key=order.index)}


def _nothing_refused(records: Collection[Any], spec: Spec) -> bool:
    """Return whether no record of one kind uses anything that is not honoured; a quick look at all of them at once."""
    if any(map(partial(ne, spec.absent), map(spec.get, records))):
        return False
    for name, _, honoured in spec.partly:
        values = set(map(attrgetter(name), records))
        if any(option not in honoured for value in values for _, option in values_of(value)):
            return False
    for name, part in spec.below:
        inside: list[Any] = list(filter(None, map(attrgetter(name), records)))
        if inside and isinstance(inside[0], tuple):
            # records that were read share equal lists, so that few of them are different objects
            inside = list(chain.from_iterable(dict(zip(map(id, inside), inside, strict=True)).values()))
        if inside and not _nothing_refused(inside, part):
            return False
    return True


_Where = tuple[Any, ...]
"""Way to a value, as (way to the record it is in, name, index); made into text only where something is wrong."""


@dataclass(slots=True)
class Use:
    """Uses of a field that is not honoured: where the first one is, which values, how many."""

    first: str
    values: dict[str, None] = field(default_factory=dict)
    count: int = 0


def _look(value: Any, spec: Spec, where: _Where, without: frozenset[str], uses: dict[str, Use]) -> None:
    if spec.get(value) != spec.absent:
        for name, path, default in spec.refused:
            if path not in without and getattr(value, name) != default:
                _note(uses, path, where, name)
    for name, path, honoured in spec.partly:
        if path not in without:
            for index, option in values_of(getattr(value, name)):
                if option not in honoured:
                    _note(uses, path, where, name, index).values[option] = None
    for name, part in spec.below:
        inside = getattr(value, name)
        if isinstance(inside, tuple):
            for index, item in enumerate(inside):
                _look(item, part, (where, name, index), without, uses)
        elif inside is not None:
            _look(inside, part, (where, name, None), without, uses)


def values_of(value: str | tuple[str, ...]) -> Iterator[tuple[int | None, str]]:
    """Give the one value of a field, or each of a list with its index."""
    if isinstance(value, str):
        yield None, value
    else:
        yield from enumerate(value)


def _note(uses: dict[str, Use], path: str, where: _Where, name: str, index: int | None = None) -> Use:
    if path not in uses:
        uses[path] = Use(_path((where, name, index)))
    uses[path].count += 1
    return uses[path]


def _path(where: _Where) -> str:
    if not where:
        return ""
    above, name, index = where
    start = _path(above)
    return f"{start}.{name}"[0 if start else 1 :] + ("" if index is None else f"[{index}]")


def problem(path: str, use: Use) -> Problem:
    """Return what is said of a field that is used and not honoured."""
    what = f"no rule honours {path} yet"
    if path == "policy.shares":
        remedy = "use placement solve, or do without shares by --without policy.shares"
        return Problem(use.first, f"{path} {names(use.values)} is honoured by placement solve alone", remedy)
    if path in ONLY:
        what = f"no rule honours {path} {names(use.values)} yet (it does {names(sorted(ONLY[path]))})"
    more = f", which is used {use.count} times" if use.count > 1 else ""
    if path in IN_TIME:
        remedy = f"plan over time with placement schedule, or solve with --without schedule or --without {path}"
        return Problem(use.first, what + more, remedy)
    return Problem(use.first, what + more, f"remove it, or solve as if it were absent with --without {path}")
