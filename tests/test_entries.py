"""Entries that stand for several nodes or cards, where some of them change."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from placement.decisions.entries import changed, node_names
from placement.snapshot import Gpu, Node

A30, T4 = Gpu(model="A30", count=3), Gpu(model="T4", count=2)


def _listed(nodes: list[Node]) -> list[tuple[str, int, Gpu]]:
    """Return every card by itself."""
    return [
        (name, card, gpu)
        for node in nodes
        for name in node_names(node)
        for card, gpu in enumerate(msgspec.structs.replace(one, count=1) for one in node.gpus for _ in range(one.count))
    ]


def test_the_front_stays_counted() -> None:
    """Card 1 of the third of five nodes."""
    node = Node(name="n", count=5, cpu=4, gpus=(A30, T4))

    found = changed(node, lambda spot, gpu: msgspec.structs.replace(gpu, mig_enabled=spot == ("n-2", 1)))
    assert [(one.name, one.count, one.cpu) for one in found] == [
        ("n", 2, 4),
        ("n-2", 1, 4),
        ("n-3", 1, 4),
        ("n-4", 1, 4),
    ]
    one = Gpu(model="A30")
    on = msgspec.structs.replace(one, mig_enabled=True)
    assert [entry.gpus for entry in found] == [(A30, T4), (one, on, one, T4), (A30, T4), (A30, T4)]
    first = changed(node, lambda spot, gpu: msgspec.structs.replace(gpu, mig_enabled=spot[0] == "n-0"))
    assert [(one.name, one.count) for one in first] == [(f"n-{copy}", 1) for copy in range(5)]


@given(
    st.integers(1, 4), st.lists(st.integers(1, 3), max_size=3), st.sets(st.tuples(st.integers(0, 3), st.integers(0, 8)))
)
def test_every_card_is_what_it_should_be(count: int, cards: list[int], others: set[tuple[int, int]]) -> None:
    node = Node(name="n", count=count, gpus=tuple(msgspec.structs.replace(A30, count=number) for number in cards))
    spots = {(name, card) for copy, card in others for name in node_names(node)[copy : copy + 1]}

    def other(spot: tuple[str, int], gpu: Gpu) -> Gpu:
        return msgspec.structs.replace(gpu, mig_enabled=True) if spot in spots else gpu

    want = [(name, card, other((name, card), gpu)) for name, card, gpu in _listed([node])]
    found = changed(node, other)
    assert _listed(found) == want
    assert [name for one in found for name in node_names(one)] == node_names(node)
    if not any(gpu.mig_enabled for _, _, gpu in want):
        assert found == [node]
