"""Whatever the reader is given, it returns a snapshot that keeps the rules or raises a `SnapshotError`."""

from __future__ import annotations

import contextlib
import copy
import json
import random
from typing import Any

from bad_snapshots import GOOD, HEAD
from hypothesis import example, given, settings
from hypothesis import strategies as st
from strategies import snapshots

from placement.errors import SnapshotError, UnhonouredError
from placement.honoured import refuse_unhonoured, removable
from placement.snapshot import Snapshot
from placement.snapshot.read import dumps, loads, verified

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.integers(-3, 12)
    | st.floats()
    | st.text(max_size=12)
    | st.sampled_from(["", "500m", "80Gi", "1e400", "-1", "rack", "node", "dgx-0", "dgx", "train", "workers", "9.0"])
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def judge(error: SnapshotError) -> None:
    """Check that an error says something, in lines that a terminal can show."""
    assert error.total >= len(error.problems) > 0
    assert all(problem.what and str(problem).isprintable() for problem in error.problems)


def read(data: bytes) -> Snapshot | None:
    """Return the snapshot, or None where it is refused; nothing else may happen."""
    try:
        snapshot = loads(data)
    except SnapshotError as error:
        judge(error)
        return None
    assert loads(dumps(snapshot)) == snapshot
    return snapshot


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return (container, key) of everything in a JSON value."""
    items = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    return [(value, key) for key, _ in items] + [place for _, item in items for place in places(item)]


@given(st.binary(max_size=200))
@example(b"\x1f\x8b")
@example(b"\xff\xfe")
def test_any_bytes(data: bytes) -> None:
    read(data)
    read(HEAD + data)
    read(HEAD + b'"nodes": [' + data + b"]}")


@given(st.text(max_size=80))
def test_any_text(text: str) -> None:
    read(text.encode("utf-8", "surrogatepass"))
    read(HEAD + b'"source": "' + text.encode("utf-8", "surrogatepass") + b'"}')


@given(JSON)
def test_any_json(value: Any) -> None:
    read(json.dumps(value).encode())
    read(json.dumps({"format": "placement-snapshot/1", "nodes": value, "jobs": value}).encode())


@settings(max_examples=400)
@given(st.data())
def test_any_change(data: st.DataObject) -> None:
    snapshot = copy.deepcopy(GOOD)
    for _ in range(data.draw(st.integers(1, 3))):
        container, key = data.draw(st.sampled_from(places(snapshot)))
        action = data.draw(st.sampled_from(["replace", "remove", "copy", "repeat"]))
        if action == "replace":
            container[key] = data.draw(JSON)
        elif action == "remove":
            del container[key]
        elif action == "copy":
            other, other_key = data.draw(st.sampled_from(places(snapshot)))
            container[key] = copy.deepcopy(other[other_key])
        elif isinstance(container, list):
            container.append(copy.deepcopy(container[key]))
    read_back = read(json.dumps(snapshot).encode())
    if read_back is not None:
        with contextlib.suppress(UnhonouredError):
            refuse_unhonoured(read_back)
        refuse_unhonoured(read_back, removable())


@settings(max_examples=300)
@given(st.integers(0, 2**32))
def test_any_cut_or_flipped_byte(seed: int) -> None:
    rng = random.Random(seed)
    data = bytearray(json.dumps(GOOD).encode())
    for _ in range(rng.randint(1, 3)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    read(bytes(data[: rng.randrange(len(data))] if rng.random() < 0.3 else data))


@given(snapshots())
def test_snapshots_that_other_tests_make_are_right(snapshot: Snapshot) -> None:
    assert verified(snapshot) == snapshot
    assert read(dumps(snapshot)) == snapshot
    assert refuse_unhonoured(snapshot) is snapshot
