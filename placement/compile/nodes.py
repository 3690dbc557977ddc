"""Node classes: nodes that no task can tell apart now."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from placement.compile.free import Free
from placement.compile.running import Used
from placement.index import members, numbered
from placement.instance import Ints, NodeClass
from placement.rules import NodeFilter
from placement.snapshot import Node


@dataclass(frozen=True, slots=True)
class Classes:
    """The classes of the nodes.

    Attributes
    ----------
    classes : tuple of NodeClass
        By first appearance in the file.
    of_node : int array (N,)
    cards : dict of int to tuple of int
        See `placement.instance.Instance.node_cards`.
    zones : dict of int to tuple of int
        See `placement.instance.Instance.node_zones`.
    row : int array (K,)
        Row of `Free` that each class is like.
    keys : list of tuple
        What the node filters read of each class.
    """

    classes: tuple[NodeClass, ...]
    of_node: Ints
    cards: dict[int, tuple[int, ...]]
    zones: dict[int, tuple[int, ...]]
    row: Ints
    keys: list[tuple[Hashable, ...]]


def classify_nodes(
    nodes: Sequence[Node],
    node_spec: Ints,
    kind_of_spec: Ints,
    free: Free,
    used: Used,
    filters: Sequence[NodeFilter],
    place_of_spec: Ints,
    limits_of_place: Sequence[tuple[int, ...]],
    domain_of_spec: Ints,
    owner: Ints,
) -> Classes:
    """Group the nodes by what is free of them, what filters read of them, limits, domains, owners, and use.

    Parameters
    ----------
    nodes : sequence of Node
    node_spec : int array (N,)
        Entry of each node.
    kind_of_spec : int array
        What an entry provides: the row of `free` for its nodes without running work.
    free : Free
    used : Used
    filters : sequence of NodeFilter
    place_of_spec : int array
        Where each entry is, as far as limits are concerned.
    limits_of_place : sequence of tuple of int
    domain_of_spec : int array
        Where each entry is, as far as jobs care which domain their tasks share.
    owner : int array (N,)
        Whose each node is, as far as tenants are kept apart; equal for all unused nodes of an entry.
    """
    keys = list(zip(*[[rule.node_key(node) for node in nodes] for rule in filters], strict=True))
    key_of_spec, first_of_key = numbered(keys)
    limits_of_spec = numbered(limits_of_place)[0][place_of_spec] if len(nodes) else place_of_spec
    # a row for the unused nodes of each entry, where the first of them is, and one for each node with running work
    unused = np.ones(len(node_spec), dtype=np.bool_)
    unused[used.nodes] = False
    unused_nodes = np.flatnonzero(unused)
    specs, first = np.unique(node_spec[unused_nodes], return_index=True)
    node = np.concatenate([unused_nodes[first], used.nodes])
    row = np.concatenate([kind_of_spec[specs], np.arange(len(used.nodes)) + len(free.alike) - len(used.nodes)])
    order = np.argsort(node, kind="stable")
    node, row, spec = node[order], row[order], node_spec[node[order]]
    busy = ~unused[node]
    columns = (free.alike[row], key_of_spec[spec], busy, limits_of_spec[spec], domain_of_spec[spec], owner[node])
    number, first = numbered(zip(*(column.tolist() for column in columns), strict=True))

    class_of_spec = np.zeros(len(nodes), dtype=np.int64)
    class_of_spec[spec[~busy]] = number[~busy]
    of_node = class_of_spec[node_spec]
    of_node[node[busy]] = number[busy]
    classes = tuple(
        NodeClass(
            nodes=inside,
            free=free.amounts_of(one),
            cards=free.cards_of(one),
            in_use=in_use,
            limits=limits_of_place[place_of_spec[entry]],
            zones=free.zones[one] if free.zones else None,
        )
        for inside, one, in_use, entry in zip(
            members(of_node, len(first)), row[first].tolist(), busy[first].tolist(), spec[first].tolist(), strict=True
        )
    )
    unused_row = kind_of_spec[node_spec[unused_nodes]]
    rows = dict(
        zip([*unused_nodes.tolist(), *node[busy].tolist()], [*unused_row.tolist(), *row[busy].tolist()], strict=True)
    )
    return Classes(
        classes,
        of_node,
        cards=_orders(rows, np.flatnonzero(free.reordered()).tolist(), free.devices_of),
        zones=_orders(
            rows, [one for one, order in enumerate(free.zone_order) if order], lambda one: free.zone_order[one]
        ),
        row=row[first],
        keys=[keys[first_of_key[i]] for i in key_of_spec[spec[first]].tolist()],
    )


def _orders(
    rows: dict[int, int], reordered: Sequence[int], order_of: Callable[[int], tuple[int, ...]]
) -> dict[int, tuple[int, ...]]:
    """Return the order of each node whose row has things in another order than that of the file."""
    orders = {row: order_of(row) for row in reordered}
    return {node: orders[row] for node, row in rows.items() if row in orders} if orders else {}
