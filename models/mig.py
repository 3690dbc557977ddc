r"""MIG instances on free runs of memory slots, counted by kind of run.

For a kind of run *k* of which there are :math:`N_k`, let :math:`y_{kis}` be the instances of item *i* that start at
slot *s*, where an item is what tasks with one profile and the same cards to choose from ask for, and :math:`z_i` its
size on that model. For started tasks :math:`t_l` of leaf *l*,

.. math::
    \sum_{i,s:\; s \le \tau < s + z_i} y_{kis} &\le N_k && \forall k,\ \tau, \\
    \sum_{l:\, i(l) = i} t_l &\le \sum_{k,s} y_{kis} + \sum_p a_{ip} x_p && \forall i .

The first rows say all of it: intervals of which at most :math:`N_k` cover any slot can be dealt out to :math:`N_k` runs
so that none overlap, since interval graphs are perfect. In every column the ones are consecutive, so these rows are
totally unimodular. Each :math:`y` is whole.

Cards whose media engines can run out cannot be cut into runs. For them :math:`x_p` counts the cards of a kind with
content *p*, which has :math:`a_{ip}` instances of item *i*, and :math:`\sum_{p \in k} x_p \le N_k`. Where several items
have one profile, *p* says only how many instances there are of that, and :math:`w_{ki}` of those on the cards of the
kind are for item *i*: they add up to at most what the :math:`x_p` have, and take their place above.

What all MIG cards together have of a resource of their hosts, or share of a cap, is a row too, with :math:`d_{ls}` what
a task of leaf *l* takes of it and :math:`D_s` what is left: :math:`\sum_l d_{ls}\, t_l \le D_s`.

Of placements that are as good, the model can look for one that uses few cards: for kinds of runs that are whole cards
on which nothing runs, :math:`u_k \le N_k` of them are used and take the place of :math:`N_k` above. What is then
minimised is :math:`\sum_k u_k`, and among equals how much less room instances leave than at their best slots; or the
cards alone, for what no placement can do without. Then cards whose instances stay as they are must not be cut into
runs, each of which would count for a card: they have one content.

Where nothing else can run short on a host, whole points are the placements of the tasks, jobs by `pooled_gangs`; CPU,
memory, domain caps and ties are left out, so in general it is a relaxation: its bound is one, its counts have to be
placed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyomo import core as pyo
from pyomo.core.expr.numeric_expr import LinearExpression

from placement.collector import collector_paused
from placement.mig.runs import Place, Run
from placement.models import pooled_gangs, pooled_objective
from placement.models.pooled_linear import Draft, Row, Target, add_rows, whole_numbers
from placement.models.pools import Pooling

LOSS = 1e-4
"""What a slot of lost room costs beside a card."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of run and what may lie in it.

    Attributes
    ----------
    run : Run
    count : int
        How many there are.
    items : dict of int to int
        For each profile that tasks may have there, the items with it; several where tasks differ in cards they may use.
    contents : tuple of tuple of int
        Instances of each profile on a whole card, where media engines can run out; else empty.
    fresh : bool
        Whether such a run is a card on which nothing runs.
    """

    run: Run
    count: int
    items: Mapping[int, tuple[int, ...]]
    contents: tuple[tuple[int, ...], ...] = ()
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class Counts:
    """What a solution counts.

    Attributes
    ----------
    places : list of Counter of (item, Place)
        By kind.
    cards : list of Counter of tuple of (item, int)
        By kind, where contents are listed: items with their instances.
    started : list of int
        By leaf of the view.
    """

    places: list[Counter[tuple[int, Place]]]
    cards: list[Counter[tuple[tuple[int, int], ...]]]
    started: list[int]


def build(
    view: Pooling,
    item_of_leaf: Sequence[int],
    kinds: Sequence[Kind],
    weights: Mapping[Target, float],
    held: Mapping[Target, int],
    tidy: bool = False,
    caps: Sequence[tuple[Sequence[int], int]] = (),
    loss: float = LOSS,
) -> Any:
    """Return the model.

    Parameters
    ----------
    view : Pooling
        Without pools: only its leaves are looked at.
    item_of_leaf : sequence of int
        Item of each leaf of the view; -1 for leaves that take no instance and are not limited here.
    kinds : sequence of Kind
    weights : mapping of target to float
        What to maximise.
    held : mapping of target to int
        Values that must be kept, in units of the instance.
    tidy : bool
        Whether to minimise cards that are used, and what room is lost, instead.
    caps : sequence of (sequence of int, int)
        What a task of each leaf takes of something that all cards share, and how much of it there is.
    loss : float
        What a slot of lost room costs beside a card when `tidy`.

    Returns
    -------
    pyomo.environ.ConcreteModel
        Variables in the order t, y, x, w, u, then those of the gangs.
    """
    with collector_paused():
        m = pyo.ConcreteModel()
        m.draft = Draft(view, (), weights, held, (), ())
        m.draft.t = whole_numbers(m, "t", view.leaves[:, 3].tolist())
        supply: dict[int, Row] = {item: Row() for item in item_of_leaf if item >= 0}
        for item, t in zip(item_of_leaf, m.draft.t, strict=True):
            if item >= 0:
                supply[item].add(1.0, t)
        costs: list[tuple[float, Any]] = []
        slots = add_intervals(m, kinds, supply, costs if tidy and loss else None, loss)
        cards = add_cards(m, kinds, supply, costs if tidy else None)
        if tidy:
            _used(m, kinds, slots, costs)
        add_rows(m, "runs", [*slots.values(), *cards])
        add_rows(m, "caps", [cap_row(m.draft.t, taken, there) for taken, there in caps])
        add_rows(m, "supply", list(supply.values()))
        pooled_gangs.add(m, view.instance)
        pooled_objective.add(m, view.instance)
        if tidy:
            m.del_component(m.objective)
            terms = LinearExpression(linear_coefs=[c for c, _ in costs], linear_vars=[v for _, v in costs])
            m.objective = pyo.Objective(expr=terms, sense=pyo.minimize)
    return m


def cap_row(tasks: Sequence[Any], taken: Sequence[int], there: int) -> Row:
    """Return the row of something that all cards share, of which each task takes so much."""
    row = Row(float(there))
    for each, t in zip(taken, tasks, strict=True):
        if each:
            row.add(float(each), t)
    return row


def add_intervals(
    m: Any, kinds: Sequence[Kind], supply: Mapping[int, Row], costs: list[tuple[float, Any]] | None, loss: float = LOSS
) -> dict[tuple[int, int], Row]:
    """Add instances by start slot, and return the rows of slots by kind and slot; with costs, those of room lost."""
    keys = [
        (k, item, place)
        for k, kind in enumerate(kinds)
        if not kind.contents
        for place in kind.run.places
        for item in kind.items.get(place.profile, ())
        if item in supply
    ]
    m.y_of = keys
    variables = whole_numbers(m, "y", [kinds[k].count for k, _, _ in keys])
    rows: dict[tuple[int, int], Row] = {}
    for (k, item, place), y in zip(keys, variables, strict=True):
        supply[item].add(-1.0, y)
        for slot in range(place.start, place.start + place.size):
            rows.setdefault((k, slot), Row(float(kinds[k].count))).add(1.0, y)
        if costs is not None and place.loss:
            costs.append((loss * place.loss, y))
    return rows


def _used(m: Any, kinds: Sequence[Kind], rows: Mapping[tuple[int, int], Row], costs: list[tuple[float, Any]]) -> None:
    """Add the cards that are used of each kind on which nothing runs, and let their rows count no others."""
    fresh = sorted({k for k, _ in rows if kinds[k].fresh})
    used = dict(zip(fresh, whole_numbers(m, "u", [kinds[k].count for k in fresh]), strict=True))
    for (k, _), row in rows.items():
        if k in used:
            row.upper = 0.0
            row.add(-1.0, used[k])
    costs += [(1.0, variable) for variable in used.values()]


def add_cards(
    m: Any, kinds: Sequence[Kind], supply: Mapping[int, Row], costs: list[tuple[float, Any]] | None
) -> list[Row]:
    """Add whole cards by content, and return the row of each kind, as they come up in ``x_of``, and further ones.

    With costs, add those of cards on which nothing runs.

    Where several items have a profile, its instances on the cards of a kind are shared out among them by counts of
    their own: all these cards admit all of them, so whatever adds up can be dealt out.
    """
    wanted = [{p: mine for p, items in kind.items.items() if (mine := _among(items, supply))} for kind in kinds]
    contents = [
        (k, tuple((p, times) for p, times in enumerate(counts) if times and p in wanted[k]))
        for k, kind in enumerate(kinds)
        for counts in kind.contents
    ]
    m.x_of = [(k, content) for k, content in dict.fromkeys(contents) if content]
    variables = whole_numbers(m, "x", [kinds[k].count for k, _ in m.x_of])
    rows: dict[int, Row] = {}
    shared: dict[tuple[int, int], Row] = {}
    most: dict[tuple[int, int], int] = {}
    for (k, content), x in zip(m.x_of, variables, strict=True):
        rows.setdefault(k, Row(float(kinds[k].count))).add(1.0, x)
        for profile, times in content:
            if len(wanted[k][profile]) == 1:
                supply[wanted[k][profile][0]].add(-float(times), x)
            else:
                shared.setdefault((k, profile), Row()).add(-float(times), x)
                most[k, profile] = max(times, most.get((k, profile), 0))
        if costs is not None and kinds[k].fresh:
            costs.append((1.0, x))
    m.w_of = [(k, item) for k, profile in shared for item in wanted[k][profile]]
    of_each = [kinds[k].count * most[k, profile] for k, profile in shared for _ in wanted[k][profile]]
    parts = iter(whole_numbers(m, "w", of_each))
    for (k, profile), row in shared.items():
        for item in wanted[k][profile]:
            part = next(parts)
            row.add(1.0, part)
            supply[item].add(-1.0, part)
    m.wanted = wanted
    return [*rows.values(), *shared.values()]


def _among(items: Sequence[int], supply: Mapping[int, Row]) -> tuple[int, ...]:
    return tuple(item for item in items if item in supply)


def counts(m: Any, kinds: Sequence[Kind], values: Sequence[int]) -> Counts:
    """Return what whole values of the model's variables, in their order, count."""
    leaves, places, cards = len(m.draft.t), len(m.y_of), len(m.x_of)
    found = Counts([Counter() for _ in kinds], [Counter() for _ in kinds], list(values[:leaves]))
    for (k, item, place), value in zip(m.y_of, values[leaves:], strict=False):
        if value:
            found.places[k][item, place] += value
    left = dict(zip(m.w_of, values[leaves + places + cards :], strict=False))
    for (k, content), value in zip(m.x_of, values[leaves + places :], strict=False):
        mine = m.wanted[k]
        if all(len(mine[profile]) == 1 for profile, _ in content):
            alike = [(tuple((mine[profile][0], times) for profile, times in content), value)] if value else []
        else:
            alike = [(_dealt(k, content, mine, left), 1) for _ in range(value)]
        for items, times in alike:
            found.cards[k][items] += times
    return found


def _dealt(
    k: int, content: Sequence[tuple[int, int]], items: Mapping[int, tuple[int, ...]], left: dict[tuple[int, int], int]
) -> tuple[tuple[int, int], ...]:
    """Return a content by items, taken off what is left of those that share a profile; some places may be nobody's."""
    found = []
    for profile, times in content:
        if len(items[profile]) == 1:
            found.append((items[profile][0], times))
            continue
        for item in items[profile]:
            taken = min(times, left[k, item])
            left[k, item] -= taken
            times -= taken
            if taken:
                found.append((item, taken))
    return tuple(found)
