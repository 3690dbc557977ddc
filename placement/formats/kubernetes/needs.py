"""What a pod asks of cards: resources of device plugins, and annotations and resources of systems that share cards.

Each system counts in its own way. A `Need` says it in one: so many units of a resource, and perhaps how much of the
memory and of the time of each card.

The systems: https://github.com/NVIDIA/k8s-device-plugin#shared-access-to-gpus (units are shares of cards),
https://project-hami.io/docs/userguide/configure (memory in MiB, cores in percent, of each card),
https://volcano.sh/en/docs/gpu_virtualization (likewise), https://koordinator.sh/docs/designs/fine-grained-device-scheduling
(of all cards together), KAI (annotations, memory in MiB, of each card).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from placement.errors import InputError
from placement.formats.kubernetes.requests import Amounts
from placement.snapshot.report import show
from placement.units import exact

MEBIBYTE = 2**20
GPU = "nvidia.com/gpu"

FRACTION, MEMORY, DEVICES = "gpu-fraction", "gpu-memory", "gpu-fraction-num-devices"
"""Annotations of KAI."""
MILLI, COUNT = "alibabacloud.com/gpu-milli", "alibabacloud.com/gpu-count"
"""Resources or annotations: thousandths of each card, and cards."""
SHARED, CORE, SHARED_MEMORY, RATIO = (
    f"koordinator.sh/{name}" for name in ("gpu.shared", "gpu-core", "gpu-memory", "gpu-memory-ratio")
)
"""Resources of Koordinator: cards, and of all of them together percent, bytes and percent of memory."""

VIRTUAL = (
    (GPU, "nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores"),
    ("nvidia.com/vgpu", "nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores"),
    ("volcano.sh/vgpu-number", "volcano.sh/vgpu-memory", "volcano.sh/vgpu-memory-percentage", "volcano.sh/vgpu-cores"),
)
"""Resources that count cards, and of each MiB and percent of memory, and percent of the time."""

MEASURES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("aliyun.com/gpu-mem", "aliyun.com/gpu-core.percentage"), "aliyun.com/gpu-count"),
    (("volcano.sh/gpu-memory",), "volcano.sh/gpu-number"),
    (("tencent.com/vcuda-core", "tencent.com/vcuda-memory"), ""),
    (("aws.amazon.com/neuroncore",), ""),
)
"""Resources that measure parts of cards in units that the node knows, all cards together; and one that counts cards."""

PARTS = frozenset((MILLI, CORE, RATIO, "koordinator.sh/gpu", *(name for names, _ in MEASURES for name in names)))
"""Resources of which the units of a card are not so many pods that share it."""


@dataclass(frozen=True, slots=True)
class Need:
    """Cards that a pod asks for.

    Attributes
    ----------
    resource : str
        That a node offers; see `Cluster.offers`.
    units : int
    share : Fraction, optional
        Of each card.
    memory : int, optional
        Bytes of each card.
    part : Fraction, optional
        Of the memory of each card, where `memory` does not say it.
    measure : int, optional
        Units of the resource on all cards together; then `units` may be 0, for as many cards as that takes.
    """

    resource: str
    units: int
    share: Fraction | None = None
    memory: int | None = None
    part: Fraction | None = None
    measure: int | None = None

    @property
    def limited(self) -> bool:
        """Whether it says how much of a card it takes."""
        return self.share is not None or self.memory is not None or self.part is not None


def needs(
    amounts: Amounts,
    annotations: Mapping[str, str],
    offered: Collection[str],
    file: str,
    path: str,
    each: Sequence[Amounts] = (),
) -> tuple[tuple[Need, ...], Amounts]:
    """Return what a pod asks of cards, and the amounts of everything else.

    Parameters
    ----------
    amounts : dict of str to quantity
    annotations : mapping of str to str
    offered : collection of str
        Resources that stand for cards on some node.
    file, path : str
        Where the pod is, for errors.
    each : sequence of dict of str to quantity
        Amounts of its containers, of which each gets parts of cards of its own; empty for one container.

    Raises
    ------
    InputError
        If there are parts of a unit, or an annotation is no number.
    """
    rest = dict(amounts)
    found: list[Need] = []
    reader = _Reader(rest, annotations, offered, file, path)
    found += reader.of_each(each)
    found += reader.koordinator()
    found += reader.openb()
    found += reader.virtual()
    found += reader.measured()
    found += [Need(name, reader.whole(name, rest.pop(name))) for name in [name for name in rest if name in offered]]
    if not any(need.resource == GPU for need in found):
        found += reader.kai()
    return tuple(found), rest


class _Reader:
    def __init__(
        self, rest: Amounts, annotations: Mapping[str, str], offered: Collection[str], file: str, path: str
    ) -> None:
        self.rest = rest
        self.annotations = annotations
        self.offered = offered
        self.file = file
        self.path = path

    def whole(self, name: str, value: object) -> int:
        """Return an amount of things that are not divided."""
        amount = self.number(name, value)
        if amount.denominator != 1:
            raise self.error(name, value, "a whole number")
        return int(amount)

    def number(self, name: str, value: object) -> Fraction:
        """Return an amount."""
        try:
            return exact(value)
        except (ValueError, TypeError):
            raise self.error(name, value, "a number") from None

    def error(self, name: str, value: object, wanted: str) -> InputError:
        """Return an error at the pod."""
        return InputError.one(
            f"{name} is {show(value)}, expected {wanted}", "correct the amount", path=self.path, source=self.file
        )

    def _part(self, name: str, value: object, of: int) -> Fraction:
        """Return a part of a card, from thousandths or percent, above 0 and at most 1."""
        part = self.number(name, value) / of
        if not 0 < part <= 1:
            raise self.error(name, value, f"above 0 and at most {of}")
        return part

    def _one_of(self, *names: str) -> str:
        """Return the first of some resources that a node offers."""
        return next((name for name in (*names, GPU) if name in self.offered), "")

    def of_each(self, each: Sequence[Amounts]) -> list[Need]:
        """Return cards of which several containers ask for memory or time, container by container."""
        found: list[Need] = []
        for names in VIRTUAL:
            count, *parts = names
            asking = [one for one in each if count in one or any(name in one for name in parts)]
            if count not in self.offered or len(asking) < 2 or not any(name in self.rest for name in parts):
                continue
            for one in asking:
                mine = {name: one[name] for name in names if name in one}
                container = _Reader(mine, self.annotations, self.offered, self.file, self.path)
                found += container.virtual() or [Need(count, self.whole(count, one[count]))]
            for name in names:
                self.rest.pop(name, None)
        return found

    def virtual(self) -> list[Need]:
        """Return cards of which memory or time is asked for in MiB and percent."""
        found = []
        for count, memory, percent, cores in VIRTUAL:
            asked = [name for name in (memory, percent, cores) if name in self.rest]
            if not asked or count not in self.offered:
                continue
            units = self.whole(count, self.rest.pop(count)) if count in self.rest else 1
            size = int(self.number(memory, self.rest.pop(memory)) * MEBIBYTE) if memory in asked else None
            part = self._part(percent, self.rest.pop(percent), 100) if percent in asked else None
            share = self._part(cores, self.rest.pop(cores), 100) if cores in asked else None
            # who asks for time alone gets all of the memory
            part = Fraction(1) if part is None else part
            found.append(Need(count, units, share, size, None if size is not None else part))
        return found

    def koordinator(self) -> list[Need]:
        """Return cards of which a part is asked for in all."""
        resource = self._one_of(SHARED, CORE, "koordinator.sh/gpu")
        if not resource or not any(name in self.rest for name in (SHARED, CORE, SHARED_MEMORY, RATIO)):
            return []
        taken = {
            name: self.number(name, self.rest.pop(name))
            for name in (SHARED, CORE, SHARED_MEMORY, RATIO)
            if name in self.rest
        }
        percent = taken.get(CORE, taken.get(RATIO, Fraction(0)))
        cards = max(1, int(taken.get(SHARED, percent / 100)))
        share = min(Fraction(1), percent / cards / 100) if percent else None
        memory = int(taken[SHARED_MEMORY] / cards) if SHARED_MEMORY in taken else None
        part = min(Fraction(1), taken[RATIO] / cards / 100) if RATIO in taken and memory is None else None
        return [Need(resource, cards, share, memory, part)]

    def openb(self) -> list[Need]:
        """Return cards of which thousandths are asked for."""
        said = {name: self.rest.get(name, self.annotations.get(name)) for name in (MILLI, COUNT)}
        resource = self._one_of(COUNT, MILLI)
        if said[MILLI] is None or not resource:
            return []
        self.rest.pop(MILLI, None), self.rest.pop(COUNT, None)
        units = 1 if said[COUNT] is None else self.whole(COUNT, said[COUNT])
        if not units or not self.number(MILLI, said[MILLI]):
            return []
        share = self._part(MILLI, said[MILLI], 1000)
        return [Need(resource, units, share)]

    def measured(self) -> list[Need]:
        """Return cards of which so many units are asked for."""
        found = []
        for names, count in MEASURES:
            asked = [name for name in names if name in self.rest and name in self.offered]
            if asked:
                measure = self.whole(asked[0], self.rest[asked[0]])
                cards = self.whole(count, self.rest[count]) if count in self.rest else 0
                for name in (*asked, count):
                    self.rest.pop(name, None)
                found.append(Need(asked[0], cards, measure=measure))
        return found

    def kai(self) -> list[Need]:
        """Return cards of which annotations ask for a part."""
        fraction, memory = self.annotations.get(FRACTION), self.annotations.get(MEMORY)
        if fraction is None and memory is None:
            return []
        units = self.whole(DEVICES, self.annotations.get(DEVICES, "1"))
        if not units:
            raise self.error(DEVICES, units, "1 or more")
        if fraction is not None:
            share = self._part(FRACTION, fraction, 1)
            return [Need(GPU, units, None if share == 1 else share)]
        size = self.whole(MEMORY, memory) * MEBIBYTE
        return [Need(GPU, units, None, size)]
