"""What jobs say of their run time and of where their data are, by the numbers of levels and domains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil

import numpy as np

from placement import units
from placement.durations import DataCopy, RunTime
from placement.hardware import interference
from placement.instance import Ints
from placement.slowdown import usual
from placement.snapshot import DataLocality, Duration, Job, Node, TaskGroup

NONE = Duration(seconds=0)
ONE = Fraction(1)


class RunTimes:
    """Compiles run times.

    Parameters
    ----------
    nodes : sequence of Node
    node_spec : int array (N,)
    levels : tuple of str
        From wide to narrow, with ``"cluster"`` and ``"node"``.
    domains : int array (levels, N)
        See `placement.instance.Instance.domains`.
    """

    def __init__(self, nodes: Sequence[Node], node_spec: Ints, levels: tuple[str, ...], domains: Ints) -> None:
        self._nodes, self._spec, self._levels, self._domains = nodes, node_spec, levels, domains
        self._models = sorted({gpu.model for node in nodes for gpu in node.gpus})
        self._copies: dict[tuple[str, str], tuple[int, ...]] = {}

    def of(self, job: Job) -> RunTime | None:
        """Return what a job says, or None where that is nothing."""
        if job.duration is None and not job.data:
            return None
        duration = NONE if job.duration is None else job.duration
        return RunTime(
            weight=job.weight,
            seconds=units.exact(duration.seconds),
            models=tuple(sorted((model, units.exact(factor)) for model, factor in duration.gpu_models.items())),
            levels=self._factors(duration.levels) if job.duration is not None else (ONE,) * len(self._levels),
            numa=units.exact(duration.numa_misaligned) if duration.seconds else ONE,
            nic=units.exact(duration.nic_misaligned) if duration.seconds else ONE,
            data=tuple(map(self._copy, job.data)),
            shared=None if duration.shared is None else units.exact(duration.shared),
            measured=self._measured(duration),
            scaling=_scaling(duration, tasks_of(job.groups)),
        )

    def _measured(self, duration: Duration) -> tuple[tuple[str, Fraction], ...]:
        """Return by card model the factor of the workload that a job names; none where it states one itself."""
        if not duration.workload or duration.shared is not None:
            return ()
        found = ((model, interference.usual(model, duration.workload)) for model in self._models)
        return tuple((model, factor) for model, factor in found if factor is not None)

    def _factors(self, stated: Mapping[str, float]) -> tuple[Fraction, ...]:
        """Return the factor of each level, by what is stated or, if that is nothing, what is usual."""
        if not stated:
            return tuple(usual(wider) for wider in reversed(range(len(self._levels))))
        return _filled(self._levels, stated, ONE)

    def _copy(self, data: DataLocality) -> DataCopy:
        """Return a copy with the domain that holds it at each level down to its own."""
        key = data.level, data.domain
        if key not in self._copies:
            own = self._levels.index(data.level)
            inside = self._inside(own, data.domain)
            holding = [np.unique(self._domains[level, inside]).tolist() for level in range(own + 1)]
            self._copies[key] = (0, *(found[0] if len(found) == 1 else -1 for found in holding[1:]))
        domains = self._copies[key]
        seconds = _filled(self._levels, data.fetch_seconds, Fraction(0))[: len(domains)]
        return DataCopy(domains, tuple(ceil(1000 * one) for one in seconds))

    def _inside(self, level: int, name: str) -> Ints:
        """Return the nodes in a domain."""
        if self._levels[level] == "node":
            for spec, node in enumerate(self._nodes):
                number = _number(node, name)
                if number >= 0:
                    return np.flatnonzero(self._spec == spec)[number : number + 1]
            return np.zeros(0, dtype=np.int64)
        specs = [spec for spec, node in enumerate(self._nodes) if node.domains.get(self._levels[level]) == name]
        return np.flatnonzero(np.isin(self._spec, specs))


def tasks_of(groups: Sequence[TaskGroup]) -> int:
    """Return how many tasks some groups want."""
    return sum(group.count * (1 if group.task is not None else tasks_of(group.groups)) for group in groups)


def _scaling(duration: Duration, tasks: int) -> tuple[tuple[int, Fraction], ...]:
    """Return the speed by tasks, from none to all of them; nothing where it is not stated."""
    if not duration.scaling:
        return ()
    known = {0: Fraction(0)} | {members: units.exact(speed) for members, speed in duration.scaling}
    return tuple(sorted({tasks: ONE, **known}.items()))


def _number(node: Node, name: str) -> int:
    """Return which copy of an entry has a name, -1 if none has."""
    if node.count == 1:
        return 0 if node.name == name else -1
    text = name.removeprefix(f"{node.name}-") if name.startswith(f"{node.name}-") else ""
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 9 else -1
    return number if str(number) == text and number < node.count else -1


def _filled(levels: tuple[str, ...], stated: Mapping[str, float], otherwise: Fraction) -> tuple[Fraction, ...]:
    """Return what is stated of each level, or of the next narrower one of which something is."""
    found = []
    last = otherwise
    for level in reversed(levels):
        last = units.exact(stated[level]) if level in stated else last
        found.append(last)
    return tuple(reversed(found))
