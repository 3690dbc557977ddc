"""How long it takes to change the MIG instances and the MIG mode of a card."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from numbers import Real

from placement.errors import Problem, UsageError


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of each kind of step.

    Nothing is added for work that would have to start again: instances that a task uses are never touched.

    Attributes
    ----------
    destroy : float
        Destroying one instance. The default is what one call of ``nvidia-smi mig -dgi`` took on idle A100: medians of
        18 layouts, 300 runs each, lie between 0.12 and 0.17 s (raw data of spcl/gpuless-thesis,
        ``mig-reconfiguration``). A call may destroy several instances for little more, so a call for each is an upper
        estimate.
    create : float
        Creating one instance. The default is from the same measurements with ``nvidia-smi mig -cgi``: medians between
        0.05 s (one ``7g``) and 0.13 s (seven ``1g`` in one call). They are of GPU instances alone; the compute instance
        within is not in them.
    reset : float
        Switching MIG mode on or off where that resets the card (Ampere, see
        `placement.hardware.mig.Geometry.reset_to_switch`). The default is an assumption; no measurement is known.
    switch : float
        Switching it where the card is not reset. The default is an assumption likewise.
    """

    destroy: float = 0.15
    create: float = 0.12
    reset: float = 30.0
    switch: float = 1.0

    def refuse_wrong(self) -> None:
        """Raise `UsageError` if one of the times is not a number of seconds."""
        problems = []
        for field in fields(self):
            value = getattr(self, field.name)
            is_number = isinstance(value, Real) and not isinstance(value, bool)
            if not (is_number and 0 <= value < math.inf):
                problems.append(Problem(f"times.{field.name}", f"is {value!r:.40}", "give seconds, 0 or more"))
        if problems:
            raise UsageError(problems)
