"""What greedy rules remember of nodes, against the plain state of every node worked out anew."""

from __future__ import annotations

import numpy as np
import pytest
import strategies
import zoned_strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from tenant_cases import apart_snapshots

from placement.compile import compile as compile_snapshot
from placement.heuristics import frontier as frontier_module
from placement.heuristics import ranking as ranking_module
from placement.heuristics.best_fit import BestFit
from placement.heuristics.fgd import Fgd
from placement.heuristics.frontier import Frontier
from placement.heuristics.gpu_clustering import GpuClustering
from placement.heuristics.nodes import Nodes
from placement.heuristics.ranking import Ranking
from placement.heuristics.rule import Rule
from placement.heuristics.typical import typical_tasks
from placement.heuristics.typical_tables import MIXED, Tables
from placement.instance import Bools, Instance
from placement.snapshot import Gpu, Job, Node, Snapshot, Task, TaskGroup
from placement.state import State

RULES: tuple[type[Rule], ...] = (BestFit, Fgd, GpuClustering)


class Twin:
    """Nodes, and beside them a plain state from which everything is worked out anew."""

    def __init__(self, instance: Instance, rule: type[Rule], seed: int = 1) -> None:
        self.instance = instance
        self.order = np.random.default_rng(seed).permutation(instance.nodes)
        self.marks = (
            np.zeros(instance.nodes, dtype=np.int64) if rule is not GpuClustering else rule.first_marks(instance)
        )
        self.nodes = Nodes(instance, self.order, self.marks)
        self.state = State(instance)
        self.placed: list[tuple[int, int, tuple[int, ...]]] = []
        self.rule = rule(self.nodes, np.random.default_rng(0))
        self.ranking, self.frontier = Ranking(self.rule), Frontier(self.nodes)

    def place(self, shape: int, row: int) -> None:
        cards = self.nodes.state.tightest(shape, row)
        assert cards is not None
        assert cards == self.state.tightest(shape, int(self.order[row]))
        self.nodes.place(shape, row, cards, self.rule.marks(shape))
        self.state.place(shape, int(self.order[row]), cards)
        self.placed.append((shape, int(self.order[row]), cards))

    def undo(self, keep: int) -> None:
        rows = self.nodes.undo(keep)
        for finder in (self.ranking, self.frontier):
            finder.undone(rows)
        while len(self.placed) > keep:
            self.state.remove(*self.placed.pop())

    def commit(self) -> None:
        self.nodes.commit()
        for finder in (self.ranking, self.frontier):
            finder.commit()
        self.placed.clear()

    def fits(self, shape: int) -> Bools:
        """Return where one more task fits, by row."""
        fits: Bools = self.state.fits(shape, self.order)
        return fits

    def check(self, shape: int) -> None:
        """Compare what is remembered with what a rule without a past thinks of the nodes as they are."""
        fits, within = self.fits(shape), self.nodes.within_limits(shape)
        rows = np.flatnonzero(fits)
        assert self.frontier.find(shape, within) == (rows[0] if len(rows) else -1)
        best = self.ranking.find(shape, within)
        assert (best >= 0) == bool(len(rows))
        if best >= 0:
            fresh = type(self.rule)(self.nodes, np.random.default_rng(0))
            score = fresh.scores(shape, rows)
            assert best == rows[score.argmax()]
            # the card of a share is the one a fresh look at the node would choose
            assert self.rule.cards(shape, best) == fresh.cards(shape, best)


@pytest.mark.parametrize("rule", RULES)
def test_placing_and_undoing_follows_the_state(rule: type[Rule]) -> None:
    @settings(max_examples=60, deadline=None)
    @given(
        strategies.snapshots(max_tasks=12) | zoned_strategies.zoned_snapshots(max_tasks=8) | apart_snapshots(),
        st.data(),
    )
    def follow(snapshot: Snapshot, data: st.DataObject) -> None:
        instance = compile_snapshot(snapshot)
        if not instance.nodes or not instance.shapes:
            return
        twin = Twin(instance, rule)
        for _ in range(data.draw(st.integers(0, 14))):
            action = data.draw(st.integers(0, 6))
            shape = data.draw(st.integers(0, len(instance.shapes) - 1))
            if action == 0:
                twin.undo(data.draw(st.integers(0, len(twin.placed))))
            elif action == 1:
                twin.commit()
            else:
                twin.check(shape)
                rows = np.flatnonzero(twin.fits(shape))
                if len(rows):
                    twin.place(shape, int(data.draw(st.sampled_from(rows.tolist()))))
        for shape in range(len(instance.shapes)):
            twin.check(shape)
        for name in ("free", "units", "memory", "kind", "zone", "slack"):
            kept = getattr(twin.nodes.state, name)[: instance.nodes]
            assert np.array_equal(kept, getattr(twin.state, name)[twin.order])

    follow()


def many(nodes: int, shapes: int) -> Instance:
    """Equal nodes, and jobs of one task that ask for 1, 2, 3, … cores and a card."""
    cluster = (Node(name="n", count=nodes, cpu=100, gpus=(Gpu(model="A", count=4),)),)
    jobs = tuple(Job(name=f"j{i}", groups=(TaskGroup(name="w", task=Task(cpu=i + 1, gpus=1)),)) for i in range(shapes))
    return compile_snapshot(Snapshot(nodes=cluster, jobs=jobs))


def test_rows_given_up_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking_module, "MOST_BYTES", 120)  # two rows of 50 bytes
    twin = Twin(many(50, 5), BestFit)
    rng = np.random.default_rng(0)
    for _ in range(60):
        shape = int(rng.integers(5))
        twin.check(shape)
        assert len(twin.ranking._rows) <= 2
        twin.place(shape, int(rng.choice(np.flatnonzero(twin.fits(shape)))))


def test_a_long_past_is_no_more_than_all_nodes() -> None:
    twin = Twin(many(3, 2), BestFit)
    twin.check(1)
    for _ in range(4):
        for row in range(3):
            twin.place(0, row)
    assert twin.nodes.changed(0).tolist() == [0, 1, 2]
    twin.check(1)


def test_full_stretches_are_passed_over_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frontier_module, "TRIES", 1)
    monkeypatch.setattr(frontier_module, "AHEAD", 8)
    twin = Twin(many(50, 1), BestFit, seed=0)
    for _ in range(4):
        for row in range(30):
            twin.place(0, row)
    twin.check(0)
    twin.undo(50)
    twin.check(0)
    assert twin.frontier.find(0, None) == 20


def test_scores_beyond_a_byte_are_kept() -> None:
    # a node without CPU limit takes a task of 1000 cores, 125 times the largest node: 100 (1 + 124 / 2) and more
    nodes = (Node(name="a", cpu=8, gpus=(Gpu(model="A"),)), Node(name="b", gpus=(Gpu(model="A"),)))
    jobs = (Job(name="j", groups=(TaskGroup(name="w", task=Task(cpu=1000, gpus=1)),)),)
    twin = Twin(compile_snapshot(Snapshot(nodes=nodes, jobs=jobs)), BestFit, seed=0)
    assert not twin.rule.has_small_scores
    twin.check(0)
    assert twin.ranking.of(0).max() > 127


@settings(max_examples=60, deadline=None)
@given(strategies.snapshots(max_tasks=12), st.data())
def test_tables_say_what_the_sum_over_typical_tasks_says(snapshot: Snapshot, data: st.DataObject) -> None:
    instance = compile_snapshot(snapshot)
    typical = typical_tasks(instance)
    tables = Tables(instance, typical)
    classes = np.flatnonzero(tables.group != MIXED)
    if not len(classes):
        return
    state = State(instance)
    node = np.array([int(instance.classes[k].nodes[0]) for k in classes])
    healthy = np.array([kind.healthy for kind in instance.card_kinds] + [False])[state.kind[node]]
    idle = np.where(healthy, np.minimum(state.units[node], data.draw(st.integers(0, instance.card_units))), 0)
    cpu = np.array([data.draw(st.integers(0, 20)) for _ in classes], dtype=np.int64)
    group, kind = tables.group[classes], state.kind[node]
    expected = typical.saved(classes, cpu, idle, kind)
    assert tables.saved(group, cpu, idle.T).tolist() == expected.tolist()
    if not idle.shape[1]:
        return
    taken, after = data.draw(st.integers(1, instance.card_units)), np.maximum(cpu - 1, 0)
    gain = tables.saved_by_share(group, (cpu, after), idle.T, taken)
    for card in range(idle.shape[1]):
        less = idle.copy()
        less[:, card] -= taken
        rows = np.flatnonzero(less[:, card] >= 0)
        found = typical.saved(classes[rows], after[rows], less[rows], kind[rows]) - expected[rows]
        assert gain[card, rows].tolist() == found.tolist()
