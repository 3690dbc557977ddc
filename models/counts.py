r"""Counts: how many tasks of each leaf of a job class run.

Jobs of a class are identical, so only their number matters:

.. math:: N_{\kappa l} \in \{0, \dots, J_\kappa\, c_l\}

for leaf *l* of job class :math:`\kappa`, with :math:`J_\kappa` jobs and :math:`c_l` tasks a job. Needs nothing; adds
``N`` and what each leaf has placed.
"""

from __future__ import annotations

from typing import Any

from pyomo import core as pyo

from placement.instance import Instance
from placement.models.core import Parts

NEEDS: tuple[str, ...] = ()


def add(m: Any, instance: Instance) -> None:
    """Add the variables."""
    parts: Parts = m.parts
    most = {
        (number, leaf.leaf): leaf.count * leaf.copies * job_class.size
        for number, job_class in enumerate(instance.job_classes)
        for leaf in job_class.leaves
    }
    m.N = pyo.Var(list(most), domain=pyo.NonNegativeIntegers)
    for key, bound in most.items():
        m.N[key].setub(bound)
        parts.placed[key] = [(1, m.N[key])]
