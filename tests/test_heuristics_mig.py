"""Rules for MIG instances and shares of cards: what each does on cards small enough to count their slots by hand.

Slots of an A100 of 40 GB, of which there are eight: 1g.5gb at 0 to 6, 1g.10gb (two slots) at 0, 2, 4 and 6, 2g.10gb
(two) at 0, 2 and 4, 3g.20gb (four) at 0 and 4, 4g.20gb (four) at 0, 7g.40gb at 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mig_tiny import random_mig
from msgspec.structs import replace
from rule_cases import asks, cards, judge
from rule_cases import runs as occupies
from rule_cases import spots as without_slots
from test_heuristics import no_single_task_was_forgotten, rows

from placement.compile import compile as compile_snapshot
from placement.hardware.layouts import clash, multiset
from placement.hardware.mig import geometries, geometry
from placement.heuristics import HEURISTICS
from placement.heuristics.hami_contiguous import halves
from placement.heuristics.mig_parted_fixed import balanced
from placement.snapshot import Gpu, Job, MigInstance, Node, Running, RunningTask, Snapshot, Task, TaskGroup
from placement.solver import Limits
from placement.state import State

DRA, FIXED, HAMI, BEST, KAI = "dra-first-fit", "mig-parted-fixed", "hami-contiguous", "mig-best-fit", "kai-fractions"
RULES = (DRA, FIXED, HAMI, BEST, KAI)

Spot = tuple[str, int, int]
"""Node, device index and first slot."""

SHORT = {"1g": "1g.5gb", "1g2": "1g.10gb", "2g": "2g.10gb", "3g": "3g.20gb", "4g": "4g.20gb", "7g": "7g.40gb"}


def wants(name: str, profile: str, cpu: float = 0) -> Job:
    task = Task(gpus=1, mig_profile=SHORT.get(profile, profile), cpu=cpu)
    return Job(name=name, groups=(TaskGroup(name="g", task=task),))


def runs(name: str, profile: str, start: int, card: int = 0, node: str = "n") -> Job:
    place = RunningTask(group="g", index=0, node=node, gpus=(card,), mig_starts=(start,))
    group = TaskGroup(name="g", task=Task(gpus=1, mig_profile=SHORT.get(profile, profile)))
    return Job(name=name, groups=(group,), running=Running(tasks=(place,)))


def host(count: int = 1, model: str = "A100-40GB", name: str = "n", layout: Sequence[tuple[str, int]] = ()) -> Node:
    """Return a node of MIG cards; with a layout they stay as they are."""
    exist = tuple(MigInstance(profile=SHORT.get(profile, profile), start=start) for profile, start in layout)
    gpu = Gpu(model=model, count=count, mig_enabled=True, mig_layout=exist, mig_static=bool(layout))
    return Node(name=name, cpu=64, gpus=(gpu,))


def spots(rule: str, snapshot: Snapshot, seed: int = 0) -> dict[str, Spot]:
    """Return where the instance of each job of one task is, as the rule chose it."""
    instance = compile_snapshot(snapshot)
    found = HEURISTICS[rule].solve(instance, objectives=(), limits=Limits(), seed=seed).assignment
    places = {}
    for row in range(len(found)):
        node, (position, slot) = int(found.node[row]), found.cards[found.offset[row] : found.offset[row + 1]].tolist()
        card = instance.node_cards[node][position]
        places[instance.job_name(int(found.job[row]))] = instance.node_name(node), card, slot - instance.slot_base
    return places


def starts(rule: str, arrivals: str, there: Node | None = None, *running: Job) -> list[int | None]:
    """Return the first slot of each instance asked for, in order of arrival, on one card; None for those that wait."""
    jobs = [wants(f"j{number:02}", profile) for number, profile in enumerate(arrivals.split())]
    found = spots(rule, Snapshot(nodes=(there or host(),), jobs=(*running, *jobs)))
    return [found[job.name][2] if job.name in found else None for job in jobs]


# --- a 3g at slot 0 blocks a 4g ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        # the first placement that is announced
        (DRA, [0, None]),
        # slots 4 to 7 leave room for a 4g, slots 0 to 3 do not
        (BEST, [4, 0]),
        # both halves leave the other one untouched, and the upper one is for instances of four slots
        (HAMI, [4, 0]),
        # the layout has a 3g at 4 and no 4g
        (FIXED, [4, None]),
        (KAI, [4, None]),
    ],
)
def test_a_3g_and_then_a_4g(rule: str, expected: list[int | None]) -> None:
    assert starts(rule, "3g 4g") == expected


# --- dra-first-fit -------------------------------------------------------------------------------------------


def test_dra_takes_the_lowest_start_of_the_first_card() -> None:
    assert starts(DRA, "1g 1g 2g 1g 3g 1g") == [0, 1, 2, 4, None, 5]
    # 1g at 1 and 5 are in the way of 3g at 0 and at 4, of 2g at 0 and at 4, of 1g.10gb at 0 and at 4
    gaps = runs("r", "1g", 1), runs("s", "1g", 5)
    assert starts(DRA, "3g 2g 1g2 1g2 1g 1g 1g", None, *gaps) == [None, 2, 6, None, 0, 4, None]


def test_dra_does_not_look_for_a_fuller_card() -> None:
    # card 1 is nearly full and would do for the 1g; card 0 is idle, comes first and is broken
    nodes = (host(2),)
    jobs = (runs("r", "3g", 4, card=1), runs("s", "2g", 0, card=1), wants("a", "1g"), wants("b", "7g"))
    assert spots(DRA, Snapshot(nodes=nodes, jobs=jobs)) == {"a": ("n", 0, 0)}
    assert spots(BEST, Snapshot(nodes=nodes, jobs=jobs)) == {"a": ("n", 1, 2), "b": ("n", 0, 0)}
    assert spots(HAMI, Snapshot(nodes=nodes, jobs=jobs)) == {"a": ("n", 1, 2), "b": ("n", 0, 0)}


def test_dra_passes_over_a_start_for_want_of_engines() -> None:
    # there is one optical flow unit, so one 1g.5gb+me on a card
    found = spots(DRA, Snapshot(nodes=(host(2),), jobs=(wants("a", "1g.5gb+me"), wants("b", "1g.5gb+me"))))
    assert found == {"a": ("n", 0, 0), "b": ("n", 1, 0)}


def test_cards_come_node_by_node() -> None:
    nodes = host(name="a"), host(2, name="b")
    found = spots(DRA, Snapshot(nodes=nodes, jobs=tuple(wants(f"j{i}", "7g") for i in range(4))))
    assert found == {"j0": ("a", 0, 0), "j1": ("b", 0, 0), "j2": ("b", 1, 0)}


# --- miso ----------------------------------------------------------------------------------------------------


def test_miso_goes_to_the_card_with_the_fewest_jobs() -> None:
    # In use: 0 on card 0, 1 on card 1, 2 on card 2. The 1g go to 0, then to the first of 0 and 1, to the other,
    # and so on until all have 3: 3 on card 0, 2 on card 1, 1 on card 2.
    running = runs("r", "1g", 0, card=1), runs("s", "1g", 0, card=2), runs("t", "1g", 1, card=2)
    jobs = (*running, *(wants(f"j{i}", "1g") for i in range(6)), wants("all", "7g"))
    found = spots("miso", Snapshot(nodes=(host(3),), jobs=jobs))
    assert Counter(card for _, card, _ in found.values()) == {0: 3, 1: 2, 2: 1}
    assert "all" not in found  # which best fit has room for


def test_miso_counts_jobs_and_not_slots() -> None:
    # one job on card 0, of four slots, and two on card 1, of two slots; the static card of the other node is last
    running = runs("r", "3g", 4), runs("s", "1g", 0, card=1), runs("t", "1g", 1, card=1)
    nodes = host(2), host(name="m", layout=[("1g", 0), ("1g", 1), ("1g", 2), ("1g", 3)])
    held = tuple(runs(f"u{slot}", "1g", slot, node="m") for slot in range(2))
    found = spots("miso", Snapshot(nodes=nodes, jobs=(*running, *held, *(wants(f"j{i}", "1g") for i in range(4)))))
    # 1, 2, 2 jobs: the first goes to card 0, and of three equal ones the first is 0 again, then 1, then that of m
    assert [found[f"j{i}"][:2] for i in range(4)] == [("n", 0), ("n", 0), ("n", 1), ("m", 0)]


def test_miso_forgets_what_was_taken_back() -> None:
    # The gang wants two 4g, of which the first goes to card 0 and the second has no room: then card 0 has no job, as
    # card 1, and is the first of the two.
    task = Task(gpus=1, mig_profile="4g.20gb")
    gang = Job(name="a", groups=(TaskGroup(name="g", count=2, task=task),))
    jobs = (runs("r", "4g", 0, card=1), gang, wants("b", "1g"), wants("c", "1g"))
    found = spots("miso", Snapshot(nodes=(host(2),), jobs=jobs))
    assert {name: card for name, (_, card, _) in found.items()} == {"b": 0, "c": 0}  # 0 and 1, then 1 and 1


def test_miso_takes_the_start_that_leaves_most() -> None:
    assert starts("miso", "1g 3g 1g 1g") == starts(BEST, "1g 3g 1g 1g")


# --- mig-best-fit --------------------------------------------------------------------------------------------


def test_best_fit_gathers_what_first_fit_scatters() -> None:
    # Card 0 is idle, card 1 has a 1g, card 2 has two: 8, 7 and 6 slots are free. Seven 1g: five fill card 2, of which a
    # 1g cannot have slot 7, two go to card 1. First fit puts them all on card 0, and no 7g has room any more.
    running = runs("r", "1g", 0, card=1), runs("s", "1g", 0, card=2), runs("t", "1g", 1, card=2)
    jobs = (*running, *(wants(f"j{i}", "1g") for i in range(7)), wants("all", "7g"))
    snapshot = Snapshot(nodes=(host(3),), jobs=jobs)
    best, first = spots(BEST, snapshot), spots(DRA, snapshot)
    assert Counter(card for _, card, _ in best.values()) == {2: 5, 1: 2, 0: 1}
    assert best["all"] == ("n", 0, 0)
    assert Counter(card for _, card, _ in first.values()) == {0: 7}


def test_best_fit_takes_the_start_that_leaves_most() -> None:
    # What could be created beside it, alone: of 1g n, 1g.10gb 2n, 2g 2n, 3g 4n, 4g 4n, 7g 8n slots.
    #   at 6: 1g 6, 1g.10gb 6, 2g 6, 3g 4 (at 0), 4g 4: 26      at 4: 1g 6, 1g.10gb 6, 2g 4, 3g 4, 4g 4: 24
    #   at 0: 1g 6, 1g.10gb 6, 2g 4, 3g 4 (at 4), no 4g: 20     1, 2 and 3 the same
    assert starts(BEST, "1g") == [6]
    # then the 3g at 0, at which alone there is room
    assert starts(BEST, "1g 3g 1g 1g") == [6, 0, 4, 5]


def test_best_fit_counts_only_instances_that_exist() -> None:
    # On a one 1g exists, on b a 3g, in use, and two 1g; slots 2 and 3 of b belong to no instance.
    a = host(name="a", layout=[("1g", 6)])
    b = host(name="b", layout=[("3g", 4), ("1g", 0), ("1g", 1)])
    jobs = runs("r", "3g", 4, node="b"), wants("j", "1g"), wants("k", "1g")
    # free are one slot on a and two on b
    assert spots(BEST, Snapshot(nodes=(b, a), jobs=jobs)) == {"j": ("a", 0, 6), "k": ("b", 0, 0)}


def test_other_tasks_are_placed_by_best_fit() -> None:
    nodes = host(), cards("large", 4), cards("small", 2)
    jobs = wants("i", "1g"), asks("j", 1), asks("k", 1, share=0.5)
    for rule, expected in ((BEST, "small"), (DRA, "large"), (HAMI, "large"), (FIXED, "large")):
        found = without_plain(rule, Snapshot(nodes=nodes, jobs=jobs))
        assert {found["j"][0], found["k"][0]} == {expected}


def without_plain(rule: str, snapshot: Snapshot) -> dict[str, tuple[str, list[int]]]:
    """Return node and cards of the jobs that ask for no instance."""
    instance = compile_snapshot(snapshot)
    found = HEURISTICS[rule].solve(instance, objectives=(), limits=Limits()).assignment
    places = {}
    for row in range(len(found)):
        taken = found.cards[found.offset[row] : found.offset[row + 1]].tolist()
        if all(card < instance.widest for card in taken):
            places[instance.job_name(int(found.job[row]))] = instance.node_name(int(found.node[row])), taken
    return places


# --- hami-contiguous: the cases of its own tests, in their order of arrival ----------------------------------------


@pytest.mark.parametrize(
    ("occupied", "arrivals", "expected"),
    [
        ((), "3g 2g 1g 1g", [4, 0, 2, 3]),
        ((), "1g 1g 1g 1g 1g 1g 1g", [0, 1, 2, 3, 6, 5, 4]),
        ((), "1g 1g 2g 3g", [0, 1, 2, 4]),
        ((), "3g 2g 2g", [4, 0, 2]),
        ((), "3g 3g", [4, 0]),
        ((), "1g 3g 1g", [0, 4, 1]),
        ((), "2g 2g 2g 1g", [0, 2, 4, 6]),
        ((6,), "1g 3g", [5, 0]),
        ((0, 6), "1g 2g", [1, 2]),
        ((), "1g2 1g2 1g2 1g2", [0, 2, 6, 4]),
        ((), "3g 1g2 1g 1g", [4, 0, 2, 3]),
        ((), "1g.5gb+me 1g", [0, 1]),
        ((), "7g 1g", [0, None]),
        ((6,), "7g", [None]),
    ],
)
def test_hami_keeps_halves_free(occupied: tuple[int, ...], arrivals: str, expected: list[int | None]) -> None:
    running = [runs(f"r{slot}", "1g", slot) for slot in occupied]
    assert starts(HAMI, arrivals, None, *running) == expected


def test_hami_on_cards_of_four_slots() -> None:
    # halves of two slots, equally many starts in both, so the upper one is kept for 2g
    there = host(model="A30-24GB")
    assert starts(HAMI, "1g.6gb 2g.12gb 1g.6gb", there) == [0, 2, 1]
    assert starts(HAMI, "2g.12gb 2g.12gb", there) == [2, 0]


def test_hami_takes_the_card_of_which_most_is_taken() -> None:
    # With the 1g 1 of 8 slots, 2 of 8 and 1 of 4 are taken: the A30 and the second A100 tie at 25, the first is taken.
    nodes = host(2, name="a"), host(model="A30-24GB", name="b")
    jobs = (runs("r", "1g", 0, card=1, node="a"), wants("j", "1g.5gb"))
    assert spots(HAMI, Snapshot(nodes=nodes, jobs=jobs)) == {"j": ("a", 1, 1)}


def test_halves_of_every_model() -> None:
    for one in geometries():
        middle = one.slots // 2
        # no profile but that of the whole card lies in both, and the upper half never has more starts
        assert halves(one) == (((0, middle), (middle, one.slots)), 1), one.model


# --- mig-parted-fixed ----------------------------------------------------------------------------------------


def test_the_fixed_layout_is_handed_out_and_nothing_else() -> None:
    assert starts(FIXED, "1g 1g 1g 2g 2g 3g 3g") == [2, 3, None, 0, None, 4, None]
    # of two cards the first
    found = spots(FIXED, Snapshot(nodes=(host(2),), jobs=tuple(wants(f"j{i}", "2g") for i in range(3))))
    assert found == {"j0": ("n", 0, 0), "j1": ("n", 1, 0)}
    # 4g, 7g and double 1g are never asked of the driver, however idle the cards
    assert starts(FIXED, "4g 7g 1g2", host(3)) == [None, None, None]


def test_beside_running_instances_what_they_leave_of_the_layout() -> None:
    # 3g at 0 lies on the 2g and on both 1g: of the layout the 3g at 4 is left, though 2g would have room at 4
    assert starts(FIXED, "2g 1g 3g", None, runs("r", "3g", 0)) == [None, None, 4]
    # 1g at 3 is one of the two
    assert starts(FIXED, "1g 1g 2g 3g", None, runs("r", "1g", 3)) == [2, None, 0, 4]
    # 1g at 5 lies on the 3g
    assert starts(FIXED, "1g 1g 2g 3g", None, runs("r", "1g", 5)) == [2, 3, 0, None]


def test_static_cards_have_the_layout_that_they_have() -> None:
    there = host(layout=[("4g", 0), ("1g", 4), ("1g", 6)])
    for rule in RULES:
        assert starts(rule, "4g 1g 1g 1g", there)[0] == 0
        assert sorted(slot for slot in starts(rule, "1g 1g 1g", there) if slot is not None) == [4, 6]
        assert starts(rule, "2g 3g", there) == [None, None]
        assert starts(rule, "1g 1g", there, runs("r", "1g", 4)) == [6, None]


def test_a_refused_profile_still_goes_to_a_card_that_has_it() -> None:
    # the A100 comes first and has room for a 4g, which is not in its layout; the static card has one
    nodes = host(name="a"), host(name="b", layout=[("4g", 0)])
    for rule in (FIXED, KAI):
        assert spots(rule, Snapshot(nodes=nodes, jobs=(wants("j", "4g"), wants("k", "4g")))) == {"j": ("b", 0, 0)}


# facts of all-balanced in deployments/systemd/config-default.yaml of NVIDIA/mig-parted, by model
LAYOUTS = {
    "GB200-186GB": "1g.24gb 1g.24gb 2g.47gb 3g.95gb",
    "RTX-PRO-6000-BLACKWELL-96GB": "1g.24gb 1g.24gb 2g.48gb",
    "B200-180GB": "1g.23gb 1g.23gb 2g.45gb 3g.90gb",
    "GH200-144GB": "1g.18gb 1g.18gb 2g.36gb 3g.72gb",
    "H200-141GB": "1g.18gb 1g.18gb 2g.35gb 3g.71gb",
    "H100-94GB": "1g.12gb 1g.12gb 2g.24gb 3g.47gb",
    "H100-SXM5-80GB": "1g.10gb 1g.10gb 2g.20gb 3g.40gb",
    "H100-PCIE-80GB": "1g.10gb 1g.10gb 2g.20gb 3g.40gb",
    "A100-80GB": "1g.10gb 1g.10gb 2g.20gb 3g.40gb",
    "A100-40GB": "1g.5gb 1g.5gb 2g.10gb 3g.20gb",
    "A30-24GB": "1g.6gb 1g.6gb 2g.12gb",
    "H20-96GB": "1g.12gb 1g.12gb 2g.24gb 3g.48gb",
    "GH200-96GB": "1g.12gb 1g.12gb 2g.24gb 3g.48gb",
}


def test_the_layout_of_every_model() -> None:
    for one in geometries():
        layout = balanced(one)
        assert clash(one, layout) is None
        assert bool(layout) == (one.compute in (4, 7)), one.model
        assert sum(profile.compute for profile, _ in layout) == (one.compute if layout else 0)
        if one.model in LAYOUTS:
            profiles = [one.profile(name) for name in LAYOUTS[one.model].split()]
            assert multiset(layout) == tuple(sorted(profile.name for profile in profiles if profile is not None))
    large = geometry("H100-80GB") or geometry("A100-80GB")
    assert large is not None
    assert [start for _, start in balanced(large)] == [4, 0, 2, 3]


# --- kai-fractions -------------------------------------------------------------------------------------------


def test_shares_go_to_cards_in_use() -> None:
    # idle: a 2, b 1, c 1; in use with room for 0.4: b's card 1, and c's cards 0 (0.3 used) and 1 (0.6 used)
    nodes = cards("a", 2), cards("b", 2), cards("c", 3)
    used = occupies("x", "b", (1,), 0.7), occupies("y", "c", (0,), 0.3), occupies("z", "c", (1,), 0.6)
    snapshot = Snapshot(nodes=nodes, jobs=(*used, asks("j", 1, 0.4), asks("k", 1, 0.4), asks("l", 1, 0.3)))
    # 0.7 + 0.4 is too much on b; on c the card of which most is used, then the other; the 0.3 fits b, which comes first
    assert without_slots(KAI, snapshot) == {"j": [("c", [1])], "k": [("c", [0])], "l": [("b", [1])]}


def test_a_share_without_room_on_cards_in_use_breaks_a_card_where_few_are_idle() -> None:
    nodes = cards("a", 2), cards("b", 2)
    snapshot = Snapshot(nodes=nodes, jobs=(occupies("x", "b", (1,), 0.7), asks("j", 1, 0.4)))
    assert without_slots(KAI, snapshot) == {"j": [("b", [0])]}


def test_whole_cards_come_from_the_node_with_fewest_idle() -> None:
    nodes = cards("a", 3), cards("b", 3), cards("cpu", 0)
    jobs = occupies("x", "b", (0,)), asks("j", 1), asks("k", 2), asks("l", 1), asks("none", 0)
    # b has two idle; then one, which is too few for k; then it is the first with one for l, a or b
    found = without_slots(KAI, Snapshot(nodes=nodes, jobs=jobs))
    assert found == {"j": [("b", [1])], "k": [("a", [0, 1])], "l": [("a", [2])], "none": [("cpu", [])]}


def test_tasks_without_cards_go_where_least_cpu_is_free() -> None:
    nodes = Node(name="a", cpu=8), Node(name="b", cpu=4), cards("c", 1, cpu=2)
    tasks = [Job(name=name, groups=(TaskGroup(name="g", task=Task(cpu=2)),)) for name in "jkl"]
    found = without_slots(KAI, Snapshot(nodes=nodes, jobs=tuple(tasks)))
    assert {name: place for name, [(place, _)] in found.items()} == {"j": "b", "k": "b", "l": "a"}


# --- any instances -------------------------------------------------------------------------------------------


def drawn(seed: int, *, scarce: bool = False, mixed: bool = False) -> Snapshot:
    """Return a random snapshot, without caps on racks that have no node in them: these are errors."""
    snapshot = random_mig(seed, scarce=scarce, mixed=mixed, max_tasks=14)
    racks = {node.position["rack"] for node in snapshot.nodes if node.position}
    limits = tuple(one for one in snapshot.limits if one.level == "cluster" or one.domain in racks)
    return replace(snapshot, limits=limits)


@pytest.mark.parametrize("rule", RULES)
def test_the_independent_judge_accepts_every_plan(rule: str) -> None:
    @settings(max_examples=60, deadline=None)
    @given(st.integers(0, 10**6), st.booleans(), st.booleans())
    def one(seed: int, scarce: bool, mixed: bool) -> None:
        judge(rule, drawn(seed, scarce=scarce, mixed=mixed))

    one()


@pytest.mark.parametrize("rule", RULES)
def test_the_same_seed_gives_the_same_answer_and_no_task_is_forgotten(rule: str) -> None:
    for number in range(40):
        snapshot = drawn(number, scarce=bool(number % 2), mixed=bool(number % 3))
        for seed in (0, 1):
            instance = compile_snapshot(snapshot)
            found = HEURISTICS[rule].solve(instance, objectives=(), limits=Limits(), seed=seed).assignment
            again = HEURISTICS[rule].solve(compile_snapshot(snapshot), objectives=(), limits=Limits(), seed=seed)
            assert rows(found) == rows(again.assignment)
            if rule in (DRA, HAMI, BEST):
                no_single_task_was_forgotten(instance, found)


@pytest.mark.parametrize("rule", [FIXED, KAI])
def test_only_instances_of_layouts_are_handed_out(rule: str) -> None:
    for number in range(60):
        instance = compile_snapshot(drawn(number))
        found = HEURISTICS[rule].solve(instance, objectives=(), limits=Limits()).assignment
        state = State(instance)
        for row in range(len(found)):
            shape = instance.job_classes[instance.job_class[found.job[row]]].leaves[found.leaf[row]].shape
            slot = int(found.cards[found.offset[row] + 1]) - instance.slot_base
            assert instance.slots is not None
            card = instance.slots.cards[state.slots[found.node[row]]]
            profile = instance.slots.profile(card, instance.shapes[shape].profile)
            assert profile is not None
            exist = card.board.existing
            there = {(one.name, start) for one, start in balanced(card.board.geometry)} if exist is None else set(exist)
            assert (profile.name, slot) in there
