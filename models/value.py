r"""Value of started work, one goal a priority.

With :math:`v_{\kappa l}` the worth of one task of leaf *l* of job class :math:`\kappa` and :math:`N_{\kappa l}` the
number of them that run,

.. math:: \max \sum_{\kappa \in K_\pi} \sum_l v_{\kappa l}\, N_{\kappa l}

for each priority :math:`\pi`, highest first, :math:`K_\pi` being its job classes. Unit: GPU-milli times weight, or
the value the snapshot states. Needs any family that says what is placed.
"""

from __future__ import annotations

from typing import Any

from placement.instance import Instance
from placement.models.core import Goal, Linear

NEEDS = ("assignment",)


def add(m: Any, instance: Instance) -> None:
    """Add one goal a priority."""
    for priority in instance.priorities:
        terms = [
            (job_class.leaves[leaf].value * coefficient, variable)
            for (number, leaf), placed in m.parts.placed.items()
            for job_class in [instance.job_classes[number]]
            if job_class.priority == priority
            for coefficient, variable in placed
        ]
        m.parts.goals[Goal("value", priority)] = Linear.of(terms, unit=instance.value_unit)
