"""Whether the least that a job needs is more than what limits of its queue leave, wherever it is placed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from placement.quota import Cards, Short

Least = Callable[[Sequence[Cards]], Cards]
"""Gives the least that leaves of a job come to, from what a task of each does."""

Limit = TypeVar("Limit", int, str)
"""What a limit on a card model, or on all, is called."""


def too_much(
    takes: Sequence[Cards],
    where: Sequence[frozenset[Limit]],
    everywhere: Limit | None,
    left: Mapping[Limit, Cards],
    least: Least,
) -> tuple[list[Limit], Cards] | None:
    """Return limits that leave less together than what is needed of them, in order, and how much less; None if none do.

    Looked at are the models that tasks of each leaf may be on, all of them together, and all that there are.

    Parameters
    ----------
    takes : sequence of int or Fraction
        What a task of each leaf takes.
    where : sequence of frozenset
        Limits of which it counts in one, wherever it is; empty if it may count in none.
    everywhere : int or str, optional
        The limit on all models together.
    left : mapping to int or Fraction
        What each limit leaves.
    least : callable
    """
    looked_at: list[frozenset[Limit]] = sorted({mine for mine in where if mine}, key=sorted)
    looked_at.append(frozenset(limit for mine in looked_at for limit in mine))
    whole: frozenset[Limit] = frozenset() if everywhere is None else frozenset([everywhere])
    looked_at.append(whole)
    for chosen in looked_at:
        inside = [
            take if chosen == whole or (mine and mine <= chosen) else 0 for take, mine in zip(takes, where, strict=True)
        ]
        room: Cards = sum(left[limit] for limit in chosen)
        more = least(inside) - room
        if chosen and more > 0:
            return sorted(chosen), more
    return None


def short_for(limits: Sequence[tuple[str, str, str]], cards: Cards) -> Short:
    """Return what is said where limits, each with kind, queue and model, leave so many cards too few together."""
    owners = tuple(dict.fromkeys((kind, queue) for kind, queue, _ in limits))
    models = ", ".join(sorted(model for _, _, model in limits))
    return Short(owners[0][1], models, cards, owners[0][0], owners[1:])
