"""MIG instances of which annotations of bound pods say where they are, and layouts of cards around them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from placement.formats.kubernetes.annotations import GPUS, MIG_STARTS, numbers
from placement.formats.kubernetes.mig_cards import MOST_STEPS, Layout
from placement.formats.kubernetes.objects import Meta, Objects
from placement.formats.kubernetes.pod import Container, PodSpec, PodStatus, Resources
from placement.formats.kubernetes.requests import amounts
from placement.hardware import mig
from placement.hardware.layouts import Instance, clash, placements
from placement.units import Quantity, exact

Pin = tuple[str, int, int]
"""Resource, card and first slot of an instance of a running pod."""
PLAIN, MIG = "nvidia.com/gpu", "nvidia.com/mig-"
MOST = 128
"""Instances of a pod that are looked at."""


class _Spec(msgspec.Struct, rename="camel", gc=False):
    node_name: str | None = None
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    overhead: dict[str, Quantity] | None = None
    resources: Resources | None = None


class _Pod(msgspec.Struct, gc=False):
    metadata: Meta = msgspec.field(default_factory=Meta)
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: PodStatus | None = None


def pins(objects: Objects) -> dict[str, tuple[Pin, ...]]:
    """Return the instances that annotations of running pods say, by node.

    What a pod asks for says of which profile they are, in this order. An annotation that is wrong is left to those who
    give running pods their cards.
    """
    found: dict[str, tuple[Pin, ...]] = {}
    for item in objects.of("", "Pod", _Pod):
        said, spec = item.value.metadata.annotations or {}, item.value.spec
        over = item.value.status is not None and item.value.status.phase in ("Succeeded", "Failed")
        if MIG_STARTS not in said or not spec.node_name or over:
            continue
        cards, starts = numbers(said.get(GPUS, "")) or [], [part.strip() for part in said[MIG_STARTS].split(",")]
        asked = amounts(
            PodSpec(
                containers=spec.containers,
                init_containers=spec.init_containers,
                overhead=spec.overhead,
                resources=spec.resources,
            ),
            item.file,
            f"{item.path}.spec".removeprefix("."),
        )
        units = {name: exact(value) for name, value in asked.items() if name == PLAIN or name.startswith(MIG)}
        if not cards or len(starts) != len(cards) or sum(units.values()) != len(cards) or len(cards) > MOST:
            continue
        named = [name for name, number in units.items() for _ in range(int(number))]
        if len(named) == len(cards):
            # a card that is whole has no slot
            mine = tuple(
                (name, card, slot[0])
                for name, card, start in zip(named, cards, starts, strict=True)
                if (slot := numbers(start))
            )
            found[spec.node_name] = (*found.get(spec.node_name, ()), *mine)
    return found


def around(
    model: str, layouts: Sequence[Layout], pinned: Mapping[int, Sequence[tuple[str, int]]]
) -> tuple[Layout, ...] | None:
    """Return layouts of the same instances in all, in which some are where they have to be; None where there are none.

    Parameters
    ----------
    model : str
        One of which the MIG geometry is known.
    layouts : sequence of Layout
        Of each card.
    pinned : mapping of int to sequence of (str, int)
        Profile and first slot of instances, by card.

    Examples
    --------
    >>> around("A100-40GB", ((("1g.5gb", 0), ("3g.20gb", 4)),), {0: [("1g.5gb", 2)]})
    ((('1g.5gb', 2), ('3g.20gb', 4)),)
    """
    geometry = mig.geometry(model)
    if geometry is None or not all(0 <= card < len(layouts) for card in pinned):
        return None
    if all(one in layouts[card] for card, some in pinned.items() for one in some):
        return tuple(layouts)
    search = _Search(geometry, layouts, pinned)
    return search.exchanged() or search.anew()


class _Search:
    def __init__(
        self, geometry: mig.Geometry, layouts: Sequence[Layout], pinned: Mapping[int, Sequence[tuple[str, int]]]
    ) -> None:
        self.geometry = geometry
        self.layouts = layouts
        self.pinned = [tuple(pinned.get(card, ())) for card in range(len(layouts))]
        self.steps = MOST_STEPS
        self._known: dict[tuple[int, tuple[str, ...]], Layout | None] = {}

    def exchanged(self) -> tuple[Layout, ...] | None:
        """Return the same instances card by card, perhaps of another card."""
        holds = [tuple(sorted(name for name, _ in layout)) for layout in self.layouts]
        left = Counter(holds)
        found: list[Layout] = []

        def place(card: int) -> bool:
            if card == len(holds):
                return True
            for one in (holds[card], *(other for other in sorted(left) if other != holds[card])):
                self.steps -= 1
                if not left[one] or self.steps < 0 or (layout := self._laid(card, one)) is None:
                    continue
                left[one] -= 1
                found.append(layout)
                if place(card + 1):
                    return True
                found.pop()
                left[one] += 1
            return False

        return tuple(found) if place(0) else None

    def anew(self) -> tuple[Layout, ...] | None:
        """Return the same instances in all, the largest given first to the first card that takes them."""
        self.steps = MOST_STEPS
        rest = Counter(name for layout in self.layouts for name, _ in layout)
        rest.subtract(Counter(name for some in self.pinned for name, _ in some))
        if min(rest.values(), default=0) < 0:
            return None
        order = sorted(rest.elements(), key=lambda name: (-self._profile(name).size, name))
        held = [tuple(sorted(name for name, _ in some)) for some in self.pinned]

        def place(number: int) -> bool:
            if number == len(order):
                return all(self._laid(card, holds) is not None for card, holds in enumerate(held))
            for card, before in enumerate(held):
                self.steps -= 1
                after = tuple(sorted((*before, order[number])))
                if self.steps >= 0 and self._laid(card, after) is not None:
                    held[card] = after
                    if place(number + 1):
                        return True
                    held[card] = before
            return False

        if not place(0):
            return None
        return tuple(self._laid(card, holds) or () for card, holds in enumerate(held))

    def _laid(self, card: int, holds: tuple[str, ...]) -> Layout | None:
        """Return a layout of a card with these instances, of which some are where they have to be."""
        if (card, holds) not in self._known:
            self._known[card, holds] = self._around(self.pinned[card], holds)
        return self._known[card, holds]

    def _around(self, pinned: tuple[tuple[str, int], ...], holds: tuple[str, ...]) -> Layout | None:
        rest = Counter(holds)
        rest.subtract(Counter(name for name, _ in pinned))
        fixed: list[Instance] = [(self._profile(name), start) for name, start in pinned]
        if len(holds) > self.geometry.slots or min(rest.values(), default=0) < 0:
            return None
        if clash(self.geometry, fixed) is not None:
            return None
        names = sorted(rest.elements())
        starts = placements(self.geometry, [self._profile(name) for name in names], fixed)
        if starts is None:
            return None
        return tuple(sorted((*pinned, *zip(names, starts, strict=True)), key=lambda one: one[1]))

    def _profile(self, name: str) -> mig.Profile:
        profile = self.geometry.profile(name)
        assert profile is not None  # names are those of the geometry
        return profile
