"""The empty mapping that records share as a default."""

from __future__ import annotations

from typing import Any, NoReturn


class _Nothing(dict[str, Any]):
    """A mapping that stays empty; a million nodes without labels need not have a million of them."""

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("this mapping is the default of every record: make a record with a mapping of its own")

    __setitem__ = __delitem__ = __ior__ = update = setdefault = pop = popitem = clear = _refuse

    def __reduce__(self) -> str:
        return "NOTHING"

    def __copy__(self) -> _Nothing:
        return self

    def __deepcopy__(self, memo: object) -> _Nothing:
        return self


NOTHING: dict[str, Any] = _Nothing()
"""Default of every field that maps names to something."""
