"""The pool of kinds of nodes against the plain state of every node."""

from __future__ import annotations

import numpy as np
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.compile import compile as compile_snapshot
from placement.heuristics import pool as pool_module
from placement.heuristics.pool import Pool
from placement.instance import Instance
from placement.snapshot import Gpu, Job, Node, Snapshot, Task, TaskGroup
from placement.state import State


def assert_same(pool: Pool, state: State, instance: Instance) -> None:
    everywhere = np.arange(instance.nodes)
    slots = pool.slot_of
    assert np.array_equal(pool.state.free[slots], state.free)
    assert np.array_equal(pool.state.units[slots], state.units)
    assert np.array_equal(pool.state.memory[slots], state.memory)
    assert np.array_equal(pool.state.kind[slots], state.kind)
    assert np.array_equal(pool.size, np.bincount(slots, minlength=pool.capacity))
    rank = np.argsort(pool.order)
    for slot in np.flatnonzero(pool.size).tolist():
        assert pool.first[slot] == rank[pool.nodes(slot)].min()
        assert pool.first_node(slot) in pool.nodes(slot)
    for shape in range(len(instance.shapes)):
        within = pool.within_limits(shape)
        fits = pool.state.fits(shape, slots) & (True if within is None else within[slots])
        assert np.array_equal(fits, state.fits(shape, everywhere))


@settings(max_examples=80, deadline=None)
@given(strategies.snapshots(max_tasks=12), st.data())
def test_placing_and_undoing_follows_the_state(snapshot: Snapshot, data: st.DataObject) -> None:
    instance = compile_snapshot(snapshot)
    if not instance.nodes or not instance.shapes:
        return
    order = np.array(data.draw(st.permutations(range(instance.nodes))), dtype=np.int64)
    pool, state = Pool(instance, order), State(instance)
    placed: list[tuple[int, int, tuple[int, ...]]] = []
    for _ in range(data.draw(st.integers(0, 12))):
        back: int = data.draw(st.integers(0, 1))
        if placed and back:
            keep: int = data.draw(st.integers(0, len(placed)))
            pool.undo(keep)
            while len(placed) > keep:
                state.remove(*placed.pop())
        else:
            shape = data.draw(st.integers(0, len(instance.shapes) - 1))
            fits = np.flatnonzero(state.fits(shape, np.arange(instance.nodes)))
            if len(fits):
                node = int(data.draw(st.sampled_from(fits.tolist())))
                cards = state.tightest(shape, node)
                assert cards is not None
                assert pool.state.tightest(shape, int(pool.slot_of[node])) == cards
                pool.place(shape, node, cards)
                state.place(shape, node, cards)
                placed.append((shape, node, cards))
        assert pool.mark() == len(placed)
        assert_same(pool, state, instance)


def test_equal_nodes_share_a_slot_and_rows_are_used_again() -> None:
    nodes = (Node(name="n", count=50, cpu=100, gpus=(Gpu(model="A", count=4),)),)
    jobs = tuple(Job(name=f"j{i}", groups=(TaskGroup(name="w", task=Task(cpu=i + 1)),)) for i in range(9))
    instance = compile_snapshot(Snapshot(nodes=nodes, jobs=jobs))
    pool = Pool(instance, np.arange(50))
    assert (pool.size > 0).sum() == 1
    for node in (7, 3):
        pool.place(0, node, ())
    assert (pool.size > 0).sum() == 2
    assert pool.first_node(int(pool.slot_of[3])) == 3
    pool.place(0, 3, ())
    assert pool.first_node(int(pool.slot_of[7])) == 7
    before = pool.slot_of[7]
    pool.place(0, 7, ())
    pool.undo(pool.mark() - 1)
    assert pool.slot_of[7] == before  # the kind had kept its row


def test_more_kinds_than_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "LEAST_ROWS", 4)
    nodes = (Node(name="n", count=40, cpu=10**6, gpus=(Gpu(model="A", count=2),)),)
    jobs = tuple(Job(name=f"j{i}", groups=(TaskGroup(name="w", task=Task(cpu=i + 1)),)) for i in range(40))
    instance = compile_snapshot(Snapshot(nodes=nodes, jobs=jobs))
    pool, state = Pool(instance, np.arange(40)), State(instance)
    rng = np.random.default_rng(0)
    for _ in range(3):
        for shape in range(40):
            node = int(rng.integers(40))
            pool.place(shape, node, ())
            state.place(shape, node, ())
    assert pool.capacity >= 32
    assert_same(pool, state, instance)
