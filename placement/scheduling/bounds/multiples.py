"""What the value of the best schedule is a multiple of, so that bounds may be rounded up.

Where all jobs run at a stretch, and all run times, earliest starts and changes of what there is are multiples of some
time, so are all ends in some best schedule of the relaxation: ends with one remainder other than 0 meet nothing but
each other, so that these jobs can all run a little sooner, until they meet something else. The sum of weights times
ends is then a multiple of that time and of what the weights have in common.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from placement.scheduling.bounds.modes import Relaxation


@dataclass(frozen=True, slots=True)
class Multiples:
    """What times and values are multiples of.

    Attributes
    ----------
    time : int
        In milliseconds; all ends in some best schedule are multiples of it.
    value : int
        Of it the least weighted completion time is a multiple, with `before`.
    before : int
        Weights times releases.
    """

    time: int
    value: int
    before: int

    @classmethod
    def of(cls, relaxed: Relaxation) -> Multiples:
        """Return the largest that can be told of a relaxation."""
        kinds, time = relaxed.kinds, 1
        if all(kind.whole and kind.kept is None for kind in kinds):
            changes = [moment for profile in relaxed.profiles for moment in profile.times.tolist()]
            runs = [mode.run for kind in kinds for mode in kind.modes]
            time = max(1, math.gcd(*changes, *runs, *(kind.start for kind in kinds)))
        value = max(1, time * math.gcd(*(kind.weight for kind in kinds)))
        return cls(time, value, sum(kind.count * kind.weight * kind.release for kind in kinds))

    def up(self, bound: int) -> int:
        """Return the least value that may be the best and is no less than a bound."""
        return -(-(bound + self.before) // self.value) * self.value - self.before
