"""The bound on what nodes can hold: never below what trying all contents finds, whatever resources are charged."""

from __future__ import annotations

import numpy as np
import pytest
from test_exact_columns import contents, job, random_node

from placement.compile import compile as compile_snapshot
from placement.evaluate import demand
from placement.exact.columns.cardbound import CardBound
from placement.exact.columns.labels import Nodes
from placement.exact.milp.arrays import Floats
from placement.instance import Instance
from placement.snapshot import Gpu, Node, Snapshot

MOST = 8
"""Tasks of a node at most; `random_node` asks for no more in all."""


def bound_of(instance: Instance, prices: Floats, rng: np.random.Generator) -> CardBound:
    """Return the tables for all classes, for prices (K, S), with the shapes in some order."""
    nodes, wanted = Nodes(instance), demand(instance)
    order = rng.permutation(len(instance.shapes))
    worth = np.where(nodes.takes.T & (wanted > 0), prices, 0.0)[:, order]
    return CardBound(nodes, np.arange(len(instance.classes)), order, worth, wanted[order])


def best_of(instance: Instance, prices: Floats) -> Floats:
    """Return the most that any content of each class is worth, by trying all."""
    return np.array(
        [max(float(np.array(c) @ prices[k]) for c in contents(instance, k, MOST)) for k in range(len(instance.classes))]
    )


@pytest.mark.parametrize("seed", range(40))
def test_no_content_is_worth_more(seed: int) -> None:
    instance, rng = random_node(seed), np.random.default_rng(seed)
    prices = rng.uniform(0.1, 1.0, size=(len(instance.classes), len(instance.shapes)))
    best = best_of(instance, prices)
    bound = bound_of(instance, prices, rng)
    kinds = bound.free.shape[1]
    # nothing charged, and charges from small to far too large
    charge = np.stack([np.zeros((len(best), kinds)), *rng.exponential(0.1, size=(3, len(best), kinds))], axis=1)
    assert (bound.root(charge) >= best[:, None] - 1e-9).all()
    first = charge[:, 1]
    improved = bound.improved(first, 0, 4)
    assert (improved >= 0).all()
    assert (bound.root(improved[:, None]) <= bound.root(first[:, None]) + 1e-9).all()
    assert (bound.root(improved[:, None])[:, 0] >= best - 1e-9).all()


@pytest.mark.parametrize("seed", range(40))
def test_what_labels_can_reach_is_at_least_what_they_grow_to(seed: int) -> None:
    instance, rng = random_node(seed), np.random.default_rng(seed)
    prices = rng.uniform(0.1, 1.0, size=(len(instance.classes), len(instance.shapes)))
    bound = bound_of(instance, prices, rng)
    nodes = bound.nodes
    bound.fix(rng.exponential(0.1, size=(len(instance.classes), 2, bound.free.shape[1])))
    every = [contents(instance, k, MOST) for k in range(len(instance.classes))]
    for which in (np.flatnonzero(nodes.plain), np.flatnonzero(~nodes.plain)):
        if not len(which):
            continue
        labels = nodes.empty(which)
        for step in range(len(bound.order) + 1):
            reach = bound.reach(labels, step)
            decided = bound.order[:step]
            for i, k in enumerate(labels.node.tolist()):
                # contents with as many tasks of the shapes decided as the label has
                same = [c for c in every[k] if (np.array(c)[decided] == labels.counts[i, decided]).all()]
                most = max((float(np.array(c) @ prices[k]) for c in same), default=0.0)
                assert reach[i] >= most - 1e-9
            if step < len(bound.order) and len(labels) < 200:
                shape = int(bound.order[step])
                grown = nodes.with_one_more(labels, shape, prices[:, shape]) if rng.random() < 0.7 else labels
                labels = grown if len(grown) else labels


def test_shares_are_packed_card_by_card() -> None:
    # Two cards, tasks of 0.6: one on each card, so 2 * 5 = 10, and not the 3 * 5 that 2 / 0.6 = 3.3 cards would allow
    nodes = (Node(name="n", gpus=(Gpu(model="A", count=2),)),)
    instance = compile_snapshot(Snapshot(nodes=nodes, jobs=(job("s", 9, gpus=1, gpu_share=0.6),)))
    bound = bound_of(instance, np.array([[5.0]]), np.random.default_rng(0))
    assert bound.root(np.zeros((1, 1, bound.free.shape[1])))[0, 0] == pytest.approx(10.0)


def test_whole_cards_come_in_blocks() -> None:
    # Three cards: a task of two cards (5) and a task of one (2): 5 + 2 = 7, though 5 / 2 per card would be 7.5
    nodes = (Node(name="n", gpus=(Gpu(model="A", count=3),)),)
    instance = compile_snapshot(Snapshot(nodes=nodes, jobs=(job("one", 9, gpus=1), job("two", 9, gpus=2))))
    prices = np.array([[5.0 if shape.gpus == 2 else 2.0 for shape in instance.shapes]])
    bound = bound_of(instance, prices, np.random.default_rng(0))
    assert bound.root(np.zeros((1, 1, bound.free.shape[1])))[0, 0] == pytest.approx(7.0)
