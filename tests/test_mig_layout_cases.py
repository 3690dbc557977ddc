"""Instances wanted together on one card: all of them start if and only if they can exist together.

The verdicts are those of NVIDIA's mig-parted (its tests of known configurations of an A100 of 40 GB, Apache-2.0) and of
a search over starts that was done apart from this project: its twelve layouts to which nothing can be added, taken or
left here by hand. A card has seven compute slices and eight memory slots; 3g has four slots of them, starting at 0 or
4, 2g two at 0, 2 or 4, 4g four at 0, 7g all eight.
"""

from __future__ import annotations

from itertools import permutations

import pytest

import placement as pl
from placement.snapshot import Gpu, Job, Node, Snapshot, Task, TaskGroup

SMALL, LARGE = "A100-40GB", "A100-80GB"

CASES = [
    # as many as there are compute slices
    (SMALL, {"1g.5gb": 7}, True),
    (SMALL, {"1g.5gb": 8}, False),
    # 2 + 2 of 2g, and 3 of the slots that are left: 4 is one too many
    (SMALL, {"1g.5gb": 3, "2g.10gb": 2}, True),
    (SMALL, {"1g.5gb": 2, "2g.10gb": 2}, True),
    (SMALL, {"1g.5gb": 4, "2g.10gb": 2}, False),
    # 2g starts at 0, 2 and 4, and 1g at 6 is beside three of them
    (SMALL, {"1g.5gb": 1, "2g.10gb": 3}, True),
    (SMALL, {"1g.5gb": 2, "2g.10gb": 3}, False),
    (SMALL, {"2g.10gb": 4}, False),
    # two 3g have all eight slots: the seventh compute slice is lost
    (SMALL, {"3g.20gb": 2}, True),
    (SMALL, {"1g.5gb": 1, "3g.20gb": 2}, False),
    # 3g at 4 is beside 4g at 0, and 4g has no other start
    (SMALL, {"3g.20gb": 1, "4g.20gb": 1}, True),
    (SMALL, {"4g.20gb": 2}, False),
    # 3g at 4: slots 0 to 3 are two of 2g, or 2g and two of 1g, or four of 1g
    (SMALL, {"2g.10gb": 2, "3g.20gb": 1}, True),
    (SMALL, {"1g.5gb": 2, "2g.10gb": 1, "3g.20gb": 1}, True),
    (SMALL, {"1g.5gb": 4, "3g.20gb": 1}, True),
    # 1 + 2 x 2 + 3 are eight slices, and though 2 + 2 + 3 are seven, none is left for a 1g
    (SMALL, {"1g.5gb": 1, "2g.10gb": 2, "3g.20gb": 1}, False),
    # 4g at 0, 2g at 4, 1g at 6: seven slices
    (SMALL, {"1g.5gb": 1, "2g.10gb": 1, "4g.20gb": 1}, True),
    (SMALL, {"1g.5gb": 2, "2g.10gb": 1, "4g.20gb": 1}, False),
    (SMALL, {"1g.5gb": 3, "4g.20gb": 1}, True),
    (SMALL, {"1g.5gb": 5, "2g.10gb": 1}, True),
    (SMALL, {"7g.40gb": 1}, True),
    (SMALL, {"1g.5gb": 1, "7g.40gb": 1}, False),
    # the one profile with media engines is there once
    (SMALL, {"1g.5gb+me": 1, "1g.5gb": 6}, True),
    (SMALL, {"1g.5gb+me": 2}, False),
    # 1g.10gb has two slots on this card, and starts at 0, 2, 4 and 6; one on a card of 80 GB
    (SMALL, {"1g.10gb": 4}, True),
    (SMALL, {"1g.10gb": 5}, False),
    (SMALL, {"1g.10gb": 3, "1g.5gb": 2}, True),
    (LARGE, {"1g.10gb": 7}, True),
    # layouts that a driver refused while other instances were on the card: nothing is wrong with them
    (LARGE, {"7g.80gb": 1}, True),
    (LARGE, {"2g.20gb": 3}, True),
    (LARGE, {"3g.40gb": 1, "4g.40gb": 1}, True),
    (LARGE, {"1g.10gb": 1, "2g.20gb": 1, "4g.40gb": 1}, True),
    # four slots: 1g at any, 2g at 0 and 2
    ("A30-24GB", {"1g.6gb": 2, "2g.12gb": 1}, True),
    ("A30-24GB", {"1g.6gb": 1, "2g.12gb": 2}, False),
]


def card(model: str, groups: list[tuple[str, int]]) -> Snapshot:
    """Return one card and a job that starts with all of its instances or not at all."""
    wanted = (
        TaskGroup(name=f"g{number}", count=count, task=Task(gpus=1, mig_profile=profile))
        for number, (profile, count) in enumerate(groups)
    )
    node = Node(name="n", gpus=(Gpu(model=model, mig_enabled=True),))
    return Snapshot(nodes=(node,), jobs=(Job(name="all", groups=tuple(wanted)),))


@pytest.mark.parametrize(("model", "counts", "valid"), CASES, ids=lambda one: str(one))
def test_all_start_if_and_only_if_they_can_exist_together(model: str, counts: dict[str, int], valid: bool) -> None:
    """In whichever order they are asked for."""
    for order in permutations(counts.items()):
        snapshot = card(model, list(order))
        plan = pl.solve(snapshot, time_limit=10)
        assert pl.check(snapshot, plan) == []
        assert len(plan.tasks) == (sum(counts.values()) if valid else 0)
        assert plan.status == "proven"


@pytest.mark.parametrize("instances", [{"bogus": 1}, {"3g.21gb": 1, "1g": 2}])
def test_a_profile_that_no_card_has_is_refused(instances: dict[str, int]) -> None:
    with pytest.raises(pl.SnapshotError, match="no card model that is known has a MIG profile"):
        pl.solve(card(SMALL, list(instances.items())))
