r"""Cover inequalities over time: what of jobs that do not fit together is held in a span of time.

A cover inequality :math:`\sum_k a_k y_k \le b` of what runs at one moment (see `placement.scheduling.bounds.covers`)
holds at each moment of a span :math:`[\tau_0, \tau_1)`, so it holds of the mean over it. More can be said with a length
:math:`\ell`: let :math:`y_k(\tau) = 1` where job k runs in all of :math:`[\tau, \tau + \ell]`, and for one job i where
it runs at any moment of that. If i does, all the others that count run then, so the inequality holds too; and if it
does not, it holds without i. In the mean over the span this is as if each job ended :math:`\ell` sooner, and i began
:math:`\ell` sooner. What i meets may be as late as :math:`\tau_1 + \ell`, so the inequality has to hold with the most
that there is until then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from placement.exact.milp.arrays import Floats
from placement.instance import Ints

NOBODY = -1
Key = tuple[int | bytes, ...]
"""What an inequality says."""


@dataclass(frozen=True, slots=True)
class Span:
    """A cover inequality in the mean over a span of time.

    Attributes
    ----------
    resource : int
        What the jobs would take too much of; modes without it do not count.
    begin, end : int
        Of the span, in milliseconds.
    length : int
        How long the others have to run on, in milliseconds.
    anytime : int
        The kind that counts if it runs at any moment of that; `NOBODY` where the length is 0.
    coefficient : int array
        By kind.
    most : int
    """

    resource: int
    begin: int
    end: int
    length: int
    anytime: int
    coefficient: Ints
    most: int

    @property
    def key(self) -> Key:
        """What it says: the right-hand side goes by the coefficients."""
        return self.resource, self.begin, self.end, self.length, self.anytime, self.coefficient.tobytes()


def counted_by(spans: Sequence[Span], kind: Ints, begin: Ints, end: Ints) -> Floats:
    """Return the coefficients, by span, of jobs of some kinds that run from a begin to an end with the resource.

    Returns
    -------
    float array (spans, jobs)
    """
    if not spans:
        return np.zeros((0, len(kind)))
    fields = np.array([(one.begin, one.end, one.length, one.anytime) for one in spans], dtype=np.int64)
    from_, until, length, anytime = (field[:, None] for field in fields.T)
    those = anytime == kind
    held = np.minimum(np.where(those, end, end - length), until)
    held -= np.maximum(np.where(those, begin - length, begin), from_)
    coefficient = np.stack([one.coefficient for one in spans])[:, kind]
    found: Floats = coefficient * np.maximum(held, 0) / (until - from_)
    return found


def shares(begin: Ints, end: Ints, moments: Ints) -> Floats:
    """Return which part of each slot between neighbouring moments is covered from each begin to its end.

    Returns
    -------
    float array (columns, slots)
    """
    held = np.minimum(end[:, None], moments[None, 1:]) - np.maximum(begin[:, None], moments[None, :-1])
    found: Floats = np.maximum(held, 0) / np.diff(moments)
    return found
