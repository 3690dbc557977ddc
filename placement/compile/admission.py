"""Which tasks the filters admit where: each rule is asked once for each two things it reads."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from placement.index import numbered
from placement.instance import Bools
from placement.rules import CardFilter, NodeFilter, Tabulated

Keys = Sequence[tuple[Hashable, ...]]
"""What each rule reads, one tuple a thing."""


def admission(tasks: Keys, places: Keys, rules: Sequence[NodeFilter | CardFilter]) -> Bools:
    """Return which places admit which tasks; a task without keys is admitted everywhere.

    Parameters
    ----------
    tasks, places : sequence of tuple
        For each, what every rule reads of it.
    rules : sequence of filter
    """
    task, first_task = numbered(tasks)
    place, first_place = numbered(places)
    distinct_tasks = [tasks[i] for i in first_task.tolist()]
    distinct_places = [places[i] for i in first_place.tolist()]
    asking = np.array([bool(keys) for keys in distinct_tasks], dtype=np.bool_)
    admitted = np.ones((len(distinct_tasks), len(distinct_places)), dtype=np.bool_)
    for position, rule in enumerate(rules if asking.any() and distinct_places else ()):
        needs = [keys[position] for keys in distinct_tasks if keys]
        offers = [keys[position] for keys in distinct_places]
        need, first_need = numbered(needs)
        offer, first_offer = numbered(offers)
        table = _refusals(rule, [needs[i] for i in first_need.tolist()], [offers[i] for i in first_offer.tolist()])
        if table.any():
            admitted[asking] &= ~table[np.ix_(need, offer)]
    return admitted[np.ix_(task, place)]


def _refusals(rule: NodeFilter | CardFilter, needs: Sequence[Hashable], offers: Sequence[Hashable]) -> Bools:
    if isinstance(rule, Tabulated):
        return rule.refusals(needs, offers)
    answers = [[rule.refusal(need, offer) is not None for offer in offers] for need in needs]
    return np.array(answers, dtype=np.bool_).reshape(len(needs), len(offers))
