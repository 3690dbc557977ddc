"""kube-scheduler's MostAllocated: the node of which most is allocated."""

from __future__ import annotations

from typing import ClassVar

from placement.heuristics.allocated import Allocated, percent
from placement.instance import Ints


class KubeMostAllocated(Allocated):
    r"""Mean over CPU, memory and cards of :math:`\lfloor 100\,r/a \rfloor`: of a, r is requested with the task.

    Source: ``mostResourceScorer`` in ``noderesources/most_allocated.go`` of kube-scheduler, as the scoring strategy of
    ``NodeResourcesFit`` with equal weights for CPU, memory and cards; `placement.heuristics.allocated` says what
    counts.
    """

    name: ClassVar[str] = "kube-most-allocated"

    def share(self, free: Ints, size: Ints) -> Ints:
        """Return the allocated share of one resource in hundredths."""
        return percent(size - free, size)
