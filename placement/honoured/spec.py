"""The table as a tree of records, so that what no rule honours is found without a look at every field."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from operator import attrgetter
from typing import Any

import msgspec

from placement.honoured.table import ONLY, RULES
from placement.snapshot.structure import hints_of, records_of


@dataclass(slots=True, eq=False)
class Spec:
    """What to look at in one kind of record.

    Attributes
    ----------
    refused : tuple of (str, str, object)
        Name, path and default of the fields that no rule honours.
    partly : tuple of (str, str, frozenset)
        Name, path and honoured values of fields of which some values are.
    below : tuple of (str, Spec)
        Fields that hold records worth looking at.
    """

    refused: tuple[tuple[str, str, Any], ...] = ()
    partly: tuple[tuple[str, str, frozenset[str]], ...] = ()
    below: tuple[tuple[str, Spec], ...] = ()
    get: Callable[[Any], Any] = field(default=lambda _: None)
    absent: Any = None


@cache
def spec_of(record: Any, prefix: str = "") -> Spec:
    """Return what to look at in a kind of record whose fields have a prefix in the table."""
    return _build(record, prefix, {})


def _build(record: type[msgspec.Struct], prefix: str, above: dict[type, Spec]) -> Spec:
    spec = Spec()
    within = {**above, record: spec}
    refused, partly, below = [], [], []
    for info in msgspec.structs.fields(record):
        path = prefix + info.name
        records = records_of(hints_of(record)[info.name])
        if path in ONLY:
            partly.append((info.name, path, ONLY[path]))
        elif RULES.get(path, "") is None:
            default = info.default if info.default_factory is msgspec.NODEFAULT else info.default_factory()
            refused.append((info.name, path, default))
        elif records:
            part = records[0]
            below.append((info.name, within[part] if part in within else _build(part, f"{path}.", within)))
    spec.refused, spec.partly = tuple(refused), tuple(partly)
    spec.below = tuple(
        (name, part) for name, part in below if part is spec or part.refused or part.partly or part.below
    )
    if refused:
        spec.get = attrgetter(*(name for name, _, _ in refused))
        defaults = tuple(default for _, _, default in refused)
        spec.absent = defaults if len(defaults) > 1 else defaults[0]
    return spec
