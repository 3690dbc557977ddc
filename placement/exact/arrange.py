"""Which cards of a node some tasks take: a depth-first search for where the quick rules fail."""

from __future__ import annotations

from collections.abc import Iterator

from placement.exact.layout import Layout

Room = tuple[int, int, int]
"""Kind, free units and free device memory of a card."""


def arrange(layout: Layout, node: int, tasks: list[int], steps: int = 5000) -> bool:
    """Place tasks of given shapes on a node, all or none.

    Parameters
    ----------
    layout : Layout
        Changed in place if a way is found.
    node : int
    tasks : list of int
        Shapes.
    steps : int
        Most choices to try.

    Returns
    -------
    bool
        Whether they are placed; False also when the steps did not suffice.
    """
    instance, state = layout.instance, layout.state
    need = state.demand[tasks].sum(axis=0)
    if (state.free[node] < need).any():
        return False
    shapes = instance.shapes
    order = sorted(tasks, key=lambda s: (-shapes[s].gpus * shapes[s].units, -shapes[s].memory, s))
    rooms: list[Room] = [
        (int(state.kind[node, c]), int(state.units[node, c]), int(state.memory[node, c]))
        for c in range(len(instance.classes[instance.node_class[node]].cards))
    ]
    left = steps
    chosen: list[tuple[int, ...]] = []

    def place(position: int) -> bool:
        nonlocal left
        if position == len(order):
            return True
        task = shapes[order[position]]
        usable = [
            c
            for c, (kind, units, memory) in enumerate(rooms)
            if instance.admits_card[order[position], kind] and units >= task.units and memory >= task.memory
        ]
        usable.sort(key=lambda c: (rooms[c][1], rooms[c][2], c))
        for cards in _choices(usable, rooms, task.gpus):
            left -= 1
            if left < 0:
                return False
            for c in cards:
                kind, units, memory = rooms[c]
                rooms[c] = (kind, units - task.units, memory - task.memory)
            chosen.append(cards)
            if place(position + 1):
                return True
            chosen.pop()
            for c in cards:
                kind, units, memory = rooms[c]
                rooms[c] = (kind, units + task.units, memory + task.memory)
        return False

    if not place(0):
        return False
    for shape, cards in zip(order, chosen, strict=True):
        layout.place(shape, node, tuple(sorted(cards)))
    return True


def _choices(usable: list[int], rooms: list[Room], count: int, first: int = 0) -> Iterator[tuple[int, ...]]:
    """Yield the ways to choose some usable cards; equal cards are taken in order."""
    if not count:
        yield ()
        return
    tried: set[Room] = set()
    for i in range(first, len(usable) - count + 1):
        room = rooms[usable[i]]
        if room in tried:
            continue
        tried.add(room)
        for rest in _choices(usable, rooms, count - 1, i + 1):
            yield (usable[i], *rest)
