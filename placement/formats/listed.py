"""The document of every writer of objects: a ``List``, as kubectl prints and takes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec


def listed(items: Sequence[Any], annotations: Mapping[str, str] | None = None) -> bytes:
    """Return a ``List`` of objects on one line of JSON.

    Parameters
    ----------
    items : sequence
        Of what JSON can hold.
    annotations : mapping of str to str, optional
        Of the list itself.
    """
    metadata = {"metadata": {"annotations": annotations}} if annotations else {}
    return msgspec.json.encode({"apiVersion": "v1", "kind": "List", **metadata, "items": items}) + b"\n"
