r"""Number of started tasks.

.. math:: \max \sum_\kappa \sum_l N_{\kappa l}

with :math:`N_{\kappa l}` the running tasks of leaf *l* of job class :math:`\kappa`. Needs any family that says what is
placed.
"""

from __future__ import annotations

from typing import Any

from placement.instance import Instance
from placement.models.core import Goal, Linear

NEEDS = ("assignment",)


def add(m: Any, instance: Instance) -> None:
    """Add the goal."""
    terms = [term for placed in m.parts.placed.values() for term in placed]
    m.parts.goals[Goal("tasks")] = Linear.of(terms)
