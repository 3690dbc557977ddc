"""Bounds of many phases: which of them hold for a plan, and which method is not believed."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from placement.compile import compile as compile_snapshot
from placement.evaluate import SENSE
from placement.phases import ROUNDING, Reached, _Kept, phases_of
from placement.snapshot import Job, Node, Snapshot, Task, TaskGroup
from placement.solver import Bound

FOUR: list[Reached] = [("value", tier, Fraction(value)) for tier, value in ((3, 10), (2, 0), (1, 7))]
FOUR.append(("nodes", None, Fraction(5)))


def plainly(bound: Bound) -> bool:
    """Return whether a bound holds for a plan that reached `FOUR`: by its definition."""
    for number, (name, tier, _) in enumerate(FOUR):
        if (bound.objective, bound.priority) == (name, tier) and bound.value is not None:
            if not bound.held:
                return True
            return len(bound.held) == number and all(
                (value - Fraction(held)) * SENSE[objective] >= -Fraction(ROUNDING) * abs(Fraction(held))
                for held, (objective, _, value) in zip(bound.held, FOUR[:number], strict=True)
            )
    return False


held = st.sampled_from([(), (10.0,), (10.0, 0.0), (10.0, 0.0, 7.0), (9.0, 0.0), (10.0, 1.0), (11.0,), (10.0, 0.0, 8.0)])
bounds = st.builds(
    lambda phase, value, held: Bound(phase[0], phase[1], value, held),
    st.sampled_from([("value", 3), ("value", 2), ("value", 1), ("nodes", None), ("tasks", None)]),
    st.sampled_from([None, 1.0, 20.0]),
    held,
)


@given(st.lists(bounds, max_size=8))
def test_which_bounds_hold_does_not_depend_on_those_before(given_bounds: list[Bound]) -> None:
    kept = _Kept(FOUR)
    assert [kept.holds(bound) for bound in given_bounds] == [plainly(bound) for bound in given_bounds]


def test_a_thousand_priorities() -> None:
    # each tier has one task of a card, worth 1000; half of them start. The method "good" proves each value, "bad" says
    # that the last tier cannot be worth anything, and it is.
    count = 1000
    jobs = tuple(
        Job(name=f"j{tier}", priority=tier, value=1000, groups=(TaskGroup(name="g", task=Task(cpu=1)),))
        for tier in range(count)
    )
    instance = compile_snapshot(Snapshot(nodes=(Node(name="n", cpu=count // 2),), jobs=jobs))
    values = [1000 if tier >= count // 2 else 0 for tier in reversed(range(count))]
    reached: list[Reached] = [("value", count - 1 - i, Fraction(value)) for i, value in enumerate(values)]
    good = [
        Bound("value", tier, float(value), tuple(map(float, values[:i]))) for i, (_, tier, value) in enumerate(reached)
    ]
    bad = [Bound("value", count - 1, 0.0)]
    phases, proven, notes = phases_of(instance, reached, {"good": good, "bad": bad})
    assert proven
    assert [phase.bound for phase in phases] == values
    assert [phase.conditional for phase in phases] == [value == 0 for value in values]
    assert notes == ["bad: the plan contradicts a bound it gave, so none of its bounds is used"]
