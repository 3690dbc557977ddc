"""kube-scheduler's LeastAllocated, its default: the node of which least is allocated."""

from __future__ import annotations

from typing import ClassVar

from placement.heuristics.allocated import Allocated, percent
from placement.instance import Ints


class KubeLeastAllocated(Allocated):
    r"""Mean over CPU, memory and cards of :math:`\lfloor 100\,(a - r)/a \rfloor`: of a, r is requested with the task.

    Source: ``leastResourceScorer`` in ``noderesources/least_allocated.go`` of kube-scheduler, the default scoring
    strategy of ``NodeResourcesFit``, here with cards beside CPU and memory, and equal weights;
    `placement.heuristics.allocated` says what counts.
    """

    name: ClassVar[str] = "kube-least-allocated"

    def share(self, free: Ints, size: Ints) -> Ints:
        """Return the free share of one resource in hundredths."""
        return percent(free, size)
