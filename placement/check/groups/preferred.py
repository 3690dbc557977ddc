"""Preferred levels: by how many levels copies of groups lie wider than they prefer, from the snapshot and the tasks.

A copy counts from the narrowest level, no narrower than the preferred one, of which one domain holds all its placed
tasks; the cluster, which is one, is the widest.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from placement.check.case.case import Placed
from placement.check.groups.ties import Tied, groups_of, scattered
from placement.check.groups.topology import bond, levels_of


def preferred(placed: Placed) -> Fraction:
    """Return the sum over all copies with placed tasks."""
    facts, levels = placed.facts, levels_of(placed.facts)
    groups = [
        (group, levels.index(topology.preferred) + 1)
        for gang in facts.tied
        for group in groups_of(gang)
        if (topology := group.group.topology) is not None and topology.preferred in levels
    ]
    if not groups:
        return Fraction(0)
    tied = Tied(placed, [bond(group) for group, _ in groups])
    wish = np.array([level for _, level in groups], dtype=np.int64)[tied.bond[tied.first]]
    reached = np.zeros(len(wish), dtype=np.int64)
    for number, level in enumerate(levels, start=1):
        whole = number <= wish
        whole[scattered(tied.unit, tied.domains(level))] = False
        reached[whole] = number
    return Fraction(int((wish - reached).sum()))
