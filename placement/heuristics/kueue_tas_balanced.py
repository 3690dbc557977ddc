"""Kueue's topology-aware scheduling, balanced: what prefers a level is spread evenly over as few domains as may be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from placement.gang import Leaf, Ties
from placement.heuristics.domain_order import DomainOrder
from placement.heuristics.domains import Domains, Region
from placement.heuristics.kueue_tas_best_fit import FewestDomains, KueueTasBestFit
from placement.heuristics.needs import need
from placement.instance import Ints

MOST_TOTALS = 4096
"""Totals remembered for each number of domains when the fewest are chosen; only clusters of very unequal ones have
more, and then the domains need not be the tightest."""

Shares = tuple[int, list[tuple[int, int]]]
"""A level, and tasks by domain."""


class Balanced(FewestDomains):
    """Even shares for groups that prefer a level; all others as by best fit."""

    def shares(self, leaf: Leaf, tasks: int, domains: Domains, region: Region) -> Shares | None:
        """Return how many tasks each of some domains is to hold, as evenly as may be; see `DomainOrder.shares`."""
        ties = leaf.ties or Ties()
        if ties.preferred <= 0 or ties.required > 0 or ties.balanced >= 0 or tasks == 1 or region.level:
            return None
        inner, size = (ties.slices[0][0], ties.slices[0][1][0]) if ties.slices else (domains.levels - 1, 1)
        if tasks % size or len(ties.slices) > 1 or (ties.slices and len(ties.slices[0][1]) > 1):
            return None
        level = ties.preferred + (ties.preferred < inner)
        numbers, room = domains.room(level, need(leaf, size), region)
        known, first = np.unique(domains.of_row[level][region.rows], return_index=True)
        rows = region.rows[first[np.searchsorted(known, numbers)]]
        split = even_shares(
            room // size, domains.of_row[ties.preferred][rows], domains.of_row[ties.preferred - 1][rows], tasks // size
        )
        return (level, [(int(numbers[place]), part * size) for place, part in split]) if split else None


def even_shares(room: Ints, parent: Ints, above: Ints, wanted: int) -> list[tuple[int, int]]:
    """Return positions of domains and how many slices each holds; nothing if none can hold them evenly.

    Parameters
    ----------
    room : int array (n,)
        Slices that each domain has room for.
    parent, above : int arrays (n,)
        Its domain of the preferred level, perhaps itself, and of the level above; -1 for none.
    wanted : int
    """
    best: tuple[int, int, Ints] = (0, 0, np.zeros(0, dtype=np.int64))
    for whole in np.unique(above[(above >= 0) & (parent >= 0)]).tolist():
        inside = np.flatnonzero((above == whole) & (parent >= 0))
        fewest = _fewest(room[inside], wanted)
        if not fewest:
            continue
        # so many each of the fewest domains can hold: no more than the last of those with most room
        least = min(wanted // fewest, int(np.sort(room[inside])[-fewest]))
        kept = inside[room[inside] >= max(least, 1)]
        used = _fewest(_totals(room[kept], parent[kept]), wanted)
        if least and used and (least > best[0] or (least == best[0] and used < best[1])):
            best = least, used, kept
    least, _, kept = best
    if not least:
        return []
    groups = np.unique(parent[kept])
    if len(groups) < len(kept):
        # the fewest domains of the preferred level first, those whose own parts are the most alike where it is equal
        total = _totals(room[kept], parent[kept])
        order = sorted(
            range(len(groups)), key=lambda one: (-total[one], -_entropy(room[kept[parent[kept] == groups[one]]]))
        )
        chosen = tightest(total, order, wanted)
        kept = kept[np.isin(parent[kept], groups[chosen])]
    used_last = [int(kept[place]) for place in tightest(room[kept], range(len(kept)), wanted)]
    extra = wanted - least * len(used_last)
    if extra < 0:
        return []
    found = []
    for place in sorted(used_last, key=lambda one: (-int(room[one]), one)):
        more = min(int(room[place]) - least, extra)
        extra -= more
        found.append((place, least + more))
    return found if not extra else []


def tightest(room: Ints, order: Sequence[int], wanted: int) -> list[int]:
    """Return the fewest positions that hold what is wanted, with least room in all; of equals those found first.

    Parameters
    ----------
    room : int array
        Together at least what is wanted.
    order : sequence of int
        Positions, in the order in which they are looked at.
    wanted : int
    """
    fewest, most = _fewest(room, wanted), int(room.max(initial=0))
    known: list[dict[int, tuple[int, ...]]] = [{0: ()}, *({} for _ in range(fewest))]
    for position in order:
        for used in range(fewest, 0, -1):
            for total, chosen in known[used - 1].items():
                now = total + int(room[position])
                # those that can no more reach what is wanted are forgotten, and so are more than can be remembered
                hopeless = total >= wanted or now + (fewest - used) * most < wanted
                if not hopeless and now not in known[used] and len(known[used]) < MOST_TOTALS:
                    known[used][now] = (*chosen, position)
    enough = [total for total in known[fewest] if total >= wanted]
    return list(known[fewest][min(enough)]) if enough else np.argsort(-room, kind="stable")[:fewest].tolist()


def _fewest(room: Ints, wanted: int) -> int:
    """Return how many domains it takes, those with most room first; 0 if all hold too little."""
    held = np.cumsum(np.sort(room)[::-1])
    return 0 if not len(held) or held[-1] < wanted else int(np.searchsorted(held, wanted)) + 1


def _totals(room: Ints, parent: Ints) -> Ints:
    """Return the room of each parent, ascending by its number."""
    known, place = np.unique(parent, return_inverse=True)
    found: Ints = np.bincount(place.reshape(-1), weights=room, minlength=len(known)).astype(np.int64)
    return found


def _entropy(room: Ints) -> float:
    """Return how alike the parts of a domain are."""
    part = room[room > 0] / max(1, int(room.sum()))
    return float(-(part * np.log2(part)).sum())


class KueueTasBalanced(KueueTasBestFit):
    """Best fit, but a group that prefers a level and requires none is split evenly over the domains below that level.

    For each domain of the level above the preferred one, or the cluster, it is reckoned how many slices or tasks the
    fewest domains below the preferred level can all hold; the largest such number wins, and of equals that with fewer
    domains of the preferred level. Domains with less room than that are left out, the fewest domains of the preferred
    level that hold all are chosen and in them the fewest of the level below, each time those with least room in all.
    Each of these gets that number, and what is left goes to those with most room. Within them, and wherever no such
    split is found, it is the best fit of `placement.heuristics.kueue_tas_best_fit`, of which all else holds as well.

    Source: ``findBestDomainsForBalancedPlacement``, ``selectOptimalDomainSetToFit`` and
    ``placeSlicesOnDomainsBalanced`` in ``pkg/cache/scheduler/tas_balanced_placement.go`` of Kueue
    (kubernetes-sigs/kueue, feature gate ``TASBalancedPlacement``). Differs from the source in: room is counted in whole
    slices throughout; a leader has no place of its own in the reckoning, and groups of several kinds of tasks are not
    split evenly, nor are those with slices of several sizes or levels; tasks beyond the minimum come after the split.
    A group that asks to be ``balanced`` is so under every rule; this one makes a wish of it, as Kueue does.
    """

    name: ClassVar[str] = "kueue-tas-balanced"
    domains: ClassVar[DomainOrder] = Balanced()
