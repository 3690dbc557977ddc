"""Where the instances of a wanted layout go, if any positions will do: with the least change to what is there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from placement.hardware.layouts import Instance, arrangements, in_order, openness
from placement.hardware.mig import Geometry, Profile
from placement.repartition.change import Change, State, change


def reach(
    geometry: Geometry, present: Iterable[Instance], busy: Iterable[Instance], wanted: Sequence[Profile]
) -> Change | None:
    """Return the least change after which a card with MIG mode on has exactly the wanted instances, wherever they are.

    Fewest instances are destroyed. As many are created as are wanted and not kept, so that is then least as well, and
    so is the time. Of the changes that are left, it is one after which most is open
    (`placement.hardware.layouts.openness`); of these, the one with the lowest starts. All positions are tried: a card
    has a few hundred layouts.

    Parameters
    ----------
    geometry : Geometry
    present : iterable of Instance
        The instances on the card now.
    busy : iterable of Instance
        Those of them that tasks use, which stay.
    wanted : sequence of Profile
        All instances that the card shall have, those in use included.

    Returns
    -------
    Change or None
        None if the wanted instances cannot exist together, or not beside those in use, or if one in use is not wanted.

    Examples
    --------
    >>> from placement.hardware.mig import geometry
    >>> card = geometry("A100-40GB")
    >>> small, large = card.profile("1g.5gb"), card.profile("3g.20gb")
    >>> found = reach(card, [(small, 0), (small, 5)], [(small, 5)], [large, small])
    >>> [(profile.name, start) for profile, start in found.created], len(found.destroyed)
    ([('3g.20gb', 0)], 1)
    """
    there, fixed = in_order({*present}), in_order({*busy})
    rest = list(wanted)
    for profile, _ in fixed:
        if profile not in rest:
            return None
        rest.remove(profile)
    now = Counter(there)

    def rank(starts: tuple[int, ...]) -> tuple[int, int, tuple[int, ...]]:
        layout = (*fixed, *zip(rest, starts, strict=True))
        return -sum(now[one] for one in layout), -openness(geometry, layout), starts

    best = min(arrangements(geometry, rest, fixed), key=rank, default=None)
    if best is None:
        return None
    layout = in_order((*fixed, *zip(rest, best, strict=True)))
    return change(State(on=True, layout=there), State(on=True, layout=layout))
