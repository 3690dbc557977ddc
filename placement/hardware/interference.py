"""How much longer workloads run beside one another on one card, as it was measured for pairs of them.

The numbers are in ``interference.json`` beside this file: for three card models and each ordered pair of 26 training
workloads, how many times as long a step of the first takes beside the second. That is its throughput alone over its
throughput with the other on the same card, rounded to three decimals, for tasks of one card. Pairs that were not
measured, or did not run, such as those that do not fit into the card's memory, have none.

How the cards were shared is not stated with the measurements, nor what share each had: they stand for any mode in
which tasks share a card, and are a guide to cards of the very models alone.

Source: ``simulation_throughputs.json`` of stanford-futuredata/gavel (MIT), https://github.com/stanford-futuredata/gavel;
Narayanan et al., Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads, OSDI 2020.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from fractions import Fraction
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from placement import units

NEAR = 0.4
"""Least likeness of names that are told as near ones, from 0 to 1."""

_FORM = r"(m[0-9]+)?(-([0-9]+(gb)?|sxm[0-9]?|pcie|shared))*"
"""What names of cards add to the model without making it another: memory, form, that it is shared."""


def models() -> tuple[str, ...]:
    """Return the card models on which pairs were measured."""
    return tuple(_facts()["factors"])


def workloads() -> tuple[str, ...]:
    """Return the names of all workloads."""
    return tuple(_facts()["workloads"])


def factor(model: str, workload: str, beside: str) -> Fraction | None:
    """Return how many times as long a workload takes beside another on a card; None where that was not measured.

    Parameters
    ----------
    model : str
        Of the card: one of `models`, with the usual words before and after, as in ``"Tesla-V100-SXM2-32GB"``.
    workload, beside : str
        Names as `workloads` has them.

    Examples
    --------
    >>> factor("V100", "A3C", "CycleGAN"), factor("T4", "A3C", "CycleGAN")
    (Fraction(1573, 1000), None)
    """
    return _table(model).get(workload, {}).get(beside)


@cache
def usual(model: str, workload: str) -> Fraction | None:
    """Return the mean of how many times as long a workload takes, over all beside which it was measured, itself too.

    Not rounded; None where the workload was measured beside none on such a card.
    """
    measured = _table(model).get(workload, {}).values()
    return sum(measured, Fraction(0)) / len(measured) if measured else None


def nearest(name: str) -> tuple[str, ...]:
    """Return up to three workloads that are called most like a name, nearest first; case does not matter.

    Examples
    --------
    >>> nearest("resnet50 (batch size 64)")[0]
    'ResNet-50 (batch size 64)'
    """
    text = name.casefold()
    if len(text) > 100:
        return ()
    likeness = {one: max(_alike(text, one.casefold()), _alike(text, _family(one).casefold())) for one in workloads()}
    found = sorted((one for one in likeness if likeness[one] >= NEAR), key=lambda one: -likeness[one])
    return tuple(found[:3])


def _alike(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other).ratio()


def _family(workload: str) -> str:
    """Return a workload's name without its batch size."""
    return workload.partition(" (")[0]


@cache
def _facts() -> Any:
    return msgspec.json.decode(files(__package__).joinpath("interference.json").read_bytes())


@cache
def _table(model: str) -> dict[str, dict[str, Fraction]]:
    """Return the measured factors on a card by workload and by the one beside it; none for other cards."""
    plain = re.sub(r"[\s_-]+", "-", model.strip().casefold()).removeprefix("nvidia-").removeprefix("tesla-")
    for known, rows in _facts()["factors"].items():
        if re.fullmatch(rf"{known.casefold()}{_FORM}", plain):
            return {
                one: {
                    other: units.exact(cell) for other, cell in zip(workloads(), row, strict=True) if cell is not None
                }
                for one, row in zip(workloads(), rows, strict=True)
            }
    return {}
