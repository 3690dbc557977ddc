"""From layouts to layouts: by hand, and step by step in a simulator."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest
from mig_simulator import Refused, SimulatedCard, Simulator, states
from repartition_cases import drawn_pair, gpu, one_node, uses

import placement as pl
from placement.errors import InputError, SnapshotError, UsageError
from placement.repartition import Repartition, Step, Times
from placement.snapshot import Gpu, Job, MigInstance, Node, Running, RunningTask, Snapshot, Task, TaskGroup


def brief(steps: tuple[Step, ...]) -> list[str]:
    return [f"{s.card} {s.action}" + (f" {s.profile}@{s.start}" if s.profile else "") for s in steps]


# --- by hand -------------------------------------------------------------------------------------------------

ONES = " ".join(f"1g.5gb@{slot}" for slot in range(7))
DAY = one_node(gpu("A100-40", ONES, 3), jobs=(uses("chat", "n", 1, "1g.5gb", 3),))
NIGHT = one_node(gpu("A100-40", "1g.5gb@3 3g.20gb@4"), gpu("A100-40", "7g.40gb@0"), gpu("A100-40", None))


def test_day_and_night() -> None:
    """Card 0 keeps one of seven, card 1 would have to lose the one in use, card 2 gives up MIG."""
    found = pl.repartition(DAY, NIGHT)
    gone = [f"destroy 1g.5gb@{slot}" for slot in range(7)]
    assert brief(found.steps) == [
        *(f"0 {step}" for step in gone if not step.endswith("3")),
        "0 create 3g.20gb@4",
        *(f"2 {step}" for step in gone),
        "2 disable",
    ]
    assert [(b.node, b.card, b.job, b.profile, b.start) for b in found.blocked] == [("n", 1, "chat", "1g.5gb", 3)]
    assert [(card.card, card.outcome, card.switch) for card in found.cards] == [
        (0, "changed", ""),
        (1, "blocked", ""),
        (2, "changed", "off"),
    ]
    # card 0: 6 · 0.15 + 0.12 = 1.02; card 2: 7 · 0.15 + 30 = 31.05, for an A100 is reset
    assert [card.seconds for card in found.cards] == pytest.approx([1.02, 0, 31.05])
    assert found.seconds == pytest.approx(32.07) == pytest.approx(sum(step.seconds for step in found.steps))
    assert found.node_seconds == {"n": pytest.approx(31.05)}
    assert found.critical_seconds == pytest.approx(31.05)
    assert (found.destroyed, found.created, found.unchanged) == (13, 1, 0)
    # three of seven slices; a whole card
    assert [card.gain for card in found.cards] == pytest.approx([3 / 7, 0, 1])


def test_day_and_night_with_layouts_exchanged() -> None:
    """The card in use gets the layout that has an instance where it runs: 7 + 6 + 7 go, and nothing is blocked."""
    found = pl.repartition(DAY, NIGHT, permute=True)
    assert found.blocked == ()
    assert [(card.card, card.target) for card in found.cards] == [(0, 1), (1, 0), (2, 2)]
    assert (found.destroyed, found.created) == (20, 2)


def test_day_and_night_within_a_budget() -> None:
    """With 7 to destroy: a whole card by card 2 is more than three sevenths by card 0. With 6: card 0 alone fits."""
    outcomes = {}
    for budget in (0, 6, 7, 12, 13):
        found = pl.repartition(DAY, NIGHT, budget=budget)
        assert found.destroyed <= budget
        outcomes[budget] = "".join(card.outcome[0] for card in found.cards)
    assert outcomes == {0: "obo", 6: "cbo", 7: "obc", 12: "obc", 13: "cbc"}


def test_a_switch_takes_the_whole_card() -> None:
    """A Hopper card is not reset; one that a task holds, or a share of it, is not switched."""
    before = one_node(gpu("H100", None, 2), gpu("A30", None), jobs=(uses("train", "n", 1),))
    after = one_node(gpu("H100", "4g.40gb@0 3g.40gb@4", 2), gpu("A30", ""))
    found = pl.repartition(before, after)
    assert brief(found.steps) == ["0 enable", "0 create 4g.40gb@0", "0 create 3g.40gb@4", "2 enable"]
    assert [step.resets for step in found.steps] == [False, False, False, True]
    assert [(b.card, b.job, b.profile, b.start) for b in found.blocked] == [(1, "train", "", None)]
    # 1 + 2 · 0.12, and 30 for the reset
    assert found.node_seconds == {"n": pytest.approx(30)}
    assert found.seconds == pytest.approx(31.24)
    off = pl.repartition(after, before)
    assert off.blocked == ()
    assert brief(off.steps)[:3] == ["0 destroy 4g.40gb@0", "0 destroy 3g.40gb@4", "0 disable"]


def test_running_work_is_there_though_not_listed() -> None:
    """An entry without a layout may have running instances; as targets they count like any other."""
    before = one_node(gpu("A30", ""), jobs=(uses("a", "n", 0, "1g.6gb", 1),))
    kept = pl.repartition(before, one_node(gpu("A30", "1g.6gb@1 2g.12gb@2")))
    assert brief(kept.steps) == ["0 create 2g.12gb@2"]
    assert kept.cards[0].kept == (MigInstance(profile="1g.6gb", start=1),)
    lost = pl.repartition(before, one_node(gpu("A30", "")))
    assert [b.job for b in lost.blocked] == ["a"]


def test_anywhere() -> None:
    """Two of the instances there can stay, wherever `after` has them; 2g at 0 and 1g at 3."""
    before = one_node(gpu("A30", "2g.12gb@0 1g.6gb@2 1g.6gb@3"), jobs=(uses("a", "n", 0, "1g.6gb", 3),))
    after = one_node(gpu("A30", "1g.6gb@0 2g.12gb@2"))
    assert [b.job for b in pl.repartition(before, after).blocked] == ["a"]
    found = pl.repartition(before, after, anywhere=True)
    assert brief(found.steps) == ["0 destroy 1g.6gb@2"]
    # no half of the card is free of running work, so no 2g has a place
    both = (uses("a", "n", 0, "1g.6gb", 1), uses("b", "n", 0, "1g.6gb", 3))
    full = one_node(gpu("A30", "1g.6gb@1 1g.6gb@3"), jobs=both)
    assert [b.job for b in pl.repartition(full, after, anywhere=True).blocked] == ["a", "b"]


def test_profiles_by_other_names_are_the_same() -> None:
    before, after = one_node(gpu("A100-80GB", "7g.79gb@0")), one_node(gpu("A100-80GB", "mig-7g.80gb@0"))
    found = pl.repartition(before, after)
    assert (found.steps, found.unchanged) == ((), 1)


def test_nothing_to_do() -> None:
    plain = Snapshot(nodes=(Node(name="x", count=2), Node(name="t", gpus=(Gpu(model="T4", count=4),))))
    assert pl.repartition(plain, plain) == Repartition(unchanged=4)
    assert pl.repartition(DAY, DAY, permute=True) == Repartition(unchanged=3)
    assert pl.repartition(Snapshot(), Snapshot()) == Repartition()


def test_nodes_and_entries_may_be_written_differently() -> None:
    """Nodes are known by name, cards by index: order of nodes, `count` and how entries are split do not matter."""
    before = Snapshot(nodes=(Node(name="n", count=2, gpus=(gpu("A30", "", 2),)),))
    empty, full = gpu("A30", ""), gpu("A30", "4g.24gb@0")
    after = Snapshot(nodes=(Node(name="n-1", gpus=(empty, full)), Node(name="n-0", gpus=(gpu("A30", "", 2),))))
    assert [(step.node, step.card) for step in pl.repartition(before, after).steps] == [("n-1", 1)]


def test_it_can_be_written_as_json() -> None:
    found = pl.repartition(DAY, NIGHT)
    assert msgspec.json.decode(msgspec.json.encode(found), type=Repartition) == found


# --- in the simulator ----------------------------------------------------------------------------------------


def frozen(card: SimulatedCard) -> tuple[str, bool, tuple[tuple[int, str], ...]]:
    return card.model, card.on, tuple(sorted(card.instances.items()))


@pytest.mark.parametrize("permute", [False, True])
@pytest.mark.parametrize("seed", range(50))
def test_steps_can_be_done_and_reach_the_target(seed: int, permute: bool) -> None:
    before, after = drawn_pair(seed)
    found = pl.repartition(before, after, permute=permute)
    simulator, wanted, start = Simulator(before), states(after), Simulator(before)
    for step in found.steps:
        simulator.do(step)
    told = {(card.node, card.card): card for card in found.cards}
    in_the_way = {(blocked.node, blocked.card) for blocked in found.blocked}
    assert in_the_way == {place for place, card in told.items() if card.outcome == "blocked"}
    reached: Counter[object] = Counter()
    targets: Counter[object] = Counter()
    for place, card in simulator.cards.items():
        target = told[place].target if place in told else None
        if place in in_the_way:
            assert frozen(card) == frozen(start.cards[place])
            assert card.busy or card.whole
        else:
            if target is not None or not permute:
                assert frozen(card) == frozen(wanted[place[0], place[1] if target is None else target])
            reached[place[0], frozen(card)] += 1
        targets[place[0], frozen(wanted[place])] += 1
    assert reached <= targets
    assert len(found.cards) + found.unchanged == len(wanted)
    assert found.seconds == pytest.approx(sum(step.seconds for step in found.steps))
    assert found.critical_seconds == max(found.node_seconds.values(), default=0)


def test_what_the_draws_hold() -> None:
    """The pairs above have what makes them hard."""
    found = [pl.repartition(*drawn_pair(seed)) for seed in range(50)]
    assert sum(bool(one.blocked) for one in found) > 10
    assert sum(any(step.action in ("enable", "disable") for step in one.steps) for one in found) > 10
    assert sum(any(card.kept and card.destroyed for card in one.cards) for one in found) > 10


@pytest.mark.parametrize(
    ("layout", "step"),
    [
        ("2g.12gb@0", Step(node="n", card=0, action="create", profile="1g.6gb", start=1)),
        ("1g.6gb+me@0", Step(node="n", card=0, action="create", profile="1g.6gb+me", start=1)),
        ("", Step(node="n", card=0, action="create", profile="2g.12gb", start=1)),
        ("1g.6gb@2", Step(node="n", card=0, action="destroy", profile="1g.6gb", start=2)),
        ("1g.6gb@2", Step(node="n", card=0, action="destroy", profile="1g.6gb", start=1)),
        ("1g.6gb@2", Step(node="n", card=0, action="disable", resets=True)),
        ("", Step(node="n", card=0, action="disable")),
        ("", Step(node="n", card=0, action="enable", resets=True)),
        (None, Step(node="n", card=0, action="create", profile="1g.6gb", start=1)),
    ],
)
def test_the_simulator_refuses(layout: str | None, step: Step) -> None:
    jobs = (uses("a", "n", 0, "1g.6gb", 2),) if layout == "1g.6gb@2" else ()
    with pytest.raises(Refused):
        Simulator(one_node(gpu("A30", layout), jobs=jobs)).do(step)


# --- what is refused -----------------------------------------------------------------------------------------


def test_other_nodes() -> None:
    many = tuple(Node(name=f"x{k}") for k in range(7))
    with pytest.raises(InputError) as caught:
        pl.repartition(Snapshot(nodes=(Node(name="a"), *many)), Snapshot(nodes=(Node(name="b"),)))
    assert str(caught.value).splitlines() == [
        'nodes: of the two snapshots, only the one before has "a", "x0", "x1", "x2", "x3" and 3 more; '
        "list the same nodes in both",
        'nodes: of the two snapshots, only the one after has "b"; list the same nodes in both',
    ]


@pytest.mark.parametrize(
    ("gpus", "part"),
    [
        ((Gpu(model="A30", count=2),), 'nodes[0].gpus: "n" has 2 cards here, and 3 before (nodes[0].gpus)'),
        ((Gpu(model="A30", count=2), Gpu(model="T4")), 'card 2 of "n" is "T4" here, and "A30" before'),
        ((), "0 cards"),
    ],
)
def test_other_cards(gpus: tuple[Gpu, ...], part: str) -> None:
    with pytest.raises(InputError) as caught:
        pl.repartition(one_node(Gpu(model="A30", count=3)), one_node(*gpus))
    assert part in str(caught.value)
    assert "only the MIG fields may differ" in str(caught.value)
    assert str(caught.value).startswith("after: ")


@pytest.mark.parametrize("layout", ["1g.6gb@0 2g.12gb@0", "2g.12gb@1", "3g.20gb@0", "1g.6gb+me@0 1g.6gb+me@1"])
def test_layouts_that_cannot_be(layout: str) -> None:
    wrong, right = one_node(gpu("A30", layout)), one_node(gpu("A30", ""))
    for pair, source in (((wrong, right), "before"), ((right, wrong), "after")):
        with pytest.raises(SnapshotError, match=rf"^{source}: nodes\[0\]\.gpus\[0\]\.mig_layout"):
            pl.repartition(*pair)


def test_models_without_mig() -> None:
    with pytest.raises(SnapshotError, match=r"^after: nodes\[0\]\.gpus\[0\]\.model"):
        pl.repartition(one_node(gpu("T4", None)), one_node(gpu("T4", "")))


@pytest.mark.parametrize("budget", [-1, 1.5, True, "many", float("nan")])
def test_budgets_out_of_range(budget: object) -> None:
    with pytest.raises(UsageError, match="budget: is"):
        pl.repartition(DAY, NIGHT, budget=budget)  # type: ignore[arg-type]


@pytest.mark.parametrize("seconds", [-1, float("inf"), float("nan"), "1", True])
def test_times_out_of_range(seconds: object) -> None:
    with pytest.raises(UsageError, match=r"times\.reset: is"):
        pl.repartition(DAY, NIGHT, times=Times(reset=seconds))  # type: ignore[arg-type]


def test_other_times() -> None:
    found = pl.repartition(DAY, NIGHT, times=Times(destroy=1, create=2, reset=100))
    # 6 + 2, and 7 + 100
    assert [card.seconds for card in found.cards] == [8, 0, 107]


def test_what_runs_in_the_target_is_wanted_whether_or_not_it_is_listed() -> None:
    place = RunningTask(group="g", index=0, node="n", gpus=(0,), mig_starts=(5,))
    group = TaskGroup(name="g", task=Task(gpus=1, mig_profile="1g.5gb"))
    job = Job(name="r", groups=(group,), running=Running(tasks=(place,)))
    snapshot = Snapshot(nodes=(Node(name="n", gpus=(Gpu(model="A100-40GB", mig_enabled=True),)),), jobs=(job,))
    found = pl.repartition(snapshot, snapshot)
    assert (found.steps, found.blocked, found.unchanged) == ((), (), 1)
