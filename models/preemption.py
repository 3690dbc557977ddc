r"""Which running tasks to take off their places so that one job can start, by counts.

A victim *j* is a running job that may be stopped, shrunk or moved; its tasks are *t*. Places *g* are nodes on which
some victim has a task, and kinds of others. With :math:`y_t` for a task that leaves its place, :math:`a_t` for one that
goes on at another, :math:`s_j` for a job that is stopped, :math:`d_j` for one that has to be restarted, :math:`h_j` for
one that is touched at all, :math:`x_{lg}` tasks of leaf *l* of the job that starts, :math:`z_{kg}` moved tasks of shape
*k*, and :math:`w_c` for a card that is wholly free,

.. math::
    s_j \le d_j \le h_j, \quad y_t &\le h_j, \quad s_j \le y_t, \quad a_t \le y_t, \quad a_t \le 1 - s_j
        && \forall t \in j, \\
    \sum_{t \in c} y_t &\le (n_c - q_c) h_j + q_c d_j && \forall j,\ c, \\
    \sum_{t \in c} (y_t - a_t) &\le (n_c - q_c) h_j + q_c s_j && \forall j,\ c, \\
    \sum_g x_{lg} &\ge n_l && \forall l, \\
    \sum_g z_{kg} &= \sum_{t \in k} a_t && \forall k, \\
    \sum_{l,g} r_{lg} x_{lg} + \sum_{k,g} r_{kg} z_{kg} &\le R + \sum_t r_t y_t + \sum_c w_c && \forall R, \\
    w_c &\le y_t && \forall t \text{ on } c, \\
    x_{lg} &\le u_{lgt} + (U_{lg} - u_{lgt}) y_t && \forall l,\ t \text{ at } g, \\
    x_{lg} &\le U_{lg} \delta_D, \quad \sum_D \delta_D = 1 && \forall g \in D,\ l, \\
    \sum_t b_t (y_t - a_t) &\le B + \sum_{j \in B} (b_j - 1)\, e_{Bj}, \quad \sum_j e_{Bj} \le 1, \quad e_{Bj} \le s_j
        && \forall B, \\
    \sum_j s_j &\le S .

*c* are the copies of the victim's groups, :math:`n_c` their tasks and :math:`q_c` their minima: a gang of which enough
stays where it is goes on without a loss, and one of which enough is somewhere afterwards is not stopped. Victims whose
tasks go together have :math:`y_t = h_j = d_j`. A job that may not be stopped has no :math:`s_j` and moves each
task that leaves. *R* is what a place or the cap of a domain has left, :math:`u_{lgt}` the most that fit beside *t*,
*D* are domains of a level that the job requires. *B* is what a queue has beyond its quota; the last job *e* to be
stopped, whose tasks take :math:`b_j` together, may still bring it below, if the queue was beyond its quota before.
Goals, each kept while the next is made least: the cost :math:`\sum_j c_j d_j`, the stopped jobs :math:`\sum_j s_j`, the
touched ones, the tasks that leave, and the priorities of those touched.

It is a relaxation: what nodes cannot be told apart by counts is left to whoever tries to place the tasks, and excludes
what has failed. Where tasks outside :math:`Y` stay and those of *A* move there is no room:
:math:`\sum_{t \notin Y} y_t + \sum_{t \in A} (1 - a_t) \ge 1`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyomo import core as pyo

from placement.collector import collector_paused
from placement.models.pooled_linear import Row, add_rows, whole_numbers

Key = tuple[int, int]
"""A leaf or shape, and a place."""

GOALS = ("cost", "stopped", "touched", "tasks", "priorities")
"""In order."""


@dataclass(frozen=True, slots=True)
class Victim:
    """A running job that may be taken off its places.

    Attributes
    ----------
    tasks : range
        Numbers of its tasks.
    cost : float
        Of restarting it.
    may_stop, may_move : bool
    whole : bool
        Whether all its tasks leave if one does.
    minima : tuple of (tuple of int, int)
        Tasks of each copy of each group, and how many of them it needs.
    rank : int
        Place of its priority among those of all victims.
    """

    tasks: range
    cost: float
    may_stop: bool
    may_move: bool
    whole: bool
    minima: tuple[tuple[tuple[int, ...], int], ...] = ()
    rank: int = 0


@dataclass(slots=True)
class Supply:
    """What there is of something at a place or in a domain.

    Attributes
    ----------
    left : int
        Beside what is there now.
    leaves, shapes : dict of Key to int
        What a task takes that starts, or that comes.
    tasks : dict of int to int
        What a task leaves.
    cards : list of tuple of int
        Tasks on each card that comes free when all of them leave.
    """

    left: int
    leaves: dict[Key, int] = field(default_factory=dict)
    shapes: dict[Key, int] = field(default_factory=dict)
    tasks: dict[int, int] = field(default_factory=dict)
    cards: list[tuple[int, ...]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Cap:
    """How much of something may be taken from running work.

    Attributes
    ----------
    most : int
    taken : mapping of int to int
        By task.
    beyond : bool
        Whether one job may be stopped that takes more than what is left of it, if anything is.
    """

    most: int
    taken: Mapping[int, int]
    beyond: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked.

    Attributes
    ----------
    victims : sequence of Victim
    shape_of : sequence of int
        Shape of each task of the victims.
    needed : sequence of int
        Tasks that the job needs of each of its leaves.
    most : mapping of Key to int
        Most tasks of a leaf at each place that may take some.
    open_to : mapping of int to sequence of int
        Places that may take tasks of a shape.
    supplies : sequence of Supply
    beside : sequence of (Key, int, int)
        Leaf and place, a task there, and how many tasks of the leaf fit while that one stays.
    domains : sequence of (sequence of int, mapping of int to int)
        Leaves of which one domain must hold all tasks, and the domain of each place.
    caps : sequence of Cap
    most_stopped : int, optional
    """

    victims: Sequence[Victim]
    shape_of: Sequence[int]
    needed: Sequence[int]
    most: Mapping[Key, int]
    open_to: Mapping[int, Sequence[int]]
    supplies: Sequence[Supply]
    beside: Sequence[tuple[Key, int, int]] = ()
    domains: Sequence[tuple[Sequence[int], Mapping[int, int]]] = ()
    caps: Sequence[Cap] = ()
    most_stopped: int | None = None


def build(question: Question) -> Any:
    """Return the model, without an objective; ``goals`` are lists of (coefficient, variable) by name.

    Returns
    -------
    pyomo.environ.ConcreteModel
        Variables in the order y, a, s, d, h, x, z, w, and those of domains and caps; the first two by task, the next
        three by victim.
    """
    with collector_paused():
        m = pyo.ConcreteModel()
        tasks, victims = len(question.shape_of), question.victims
        may_move = [victim.may_move for victim in victims for _ in victim.tasks]
        y = whole_numbers(m, "y", [1] * tasks)
        a = whole_numbers(m, "a", [int(may) for may in may_move])
        s = whole_numbers(m, "s", [int(victim.may_stop) for victim in victims])
        d = whole_numbers(m, "d", [1] * len(victims))
        h = whole_numbers(m, "h", [1] * len(victims))
        rows: list[Row] = []
        for j, victim in enumerate(victims):
            rows += _victim(victim, y, a, s[j], d[j], h[j])
        x = dict(zip(question.most, whole_numbers(m, "x", list(question.most.values())), strict=True))
        z = _moved(m, question, a, rows)
        rows += _needed(question, x)
        rows += [
            _row(float(fewer), [(1.0, x[key]), (float(fewer - question.most[key]), y[t])])
            for key, t, fewer in question.beside
        ]
        for supply, cards in zip(question.supplies, _cards(m, question, y, rows), strict=True):
            rows.append(_supply(supply, x, z, y, cards))
        for number, (leaves, domain_of) in enumerate(question.domains):
            rows += _one_domain(m, f"domain{number}", leaves, domain_of, question.most, x)
        for number, cap in enumerate(question.caps):
            rows += _cap(m, f"last{number}", cap, victims, y, a, s)
        if question.most_stopped is not None:
            rows.append(_row(float(question.most_stopped), [(1.0, one) for one in s]))
        add_rows(m, "rows", rows)
        m.goals = {
            "cost": [(victim.cost, d[j]) for j, victim in enumerate(victims)],
            "stopped": [(1.0, one) for one in s],
            "touched": [(1.0, one) for one in h],
            "tasks": [(1.0, one) for one in y],
            "priorities": [(float(victim.rank), h[j]) for j, victim in enumerate(victims)],
        }
    return m


def _row(upper: float, terms: Sequence[tuple[float, Any]]) -> Row:
    row = Row(upper)
    for coefficient, variable in terms:
        row.add(coefficient, variable)
    return row


def _victim(victim: Victim, y: Sequence[Any], a: Sequence[Any], s: Any, d: Any, h: Any) -> list[Row]:
    """Return what may become of a running job."""
    rows = [_row(0.0, [(1.0, s), (-1.0, d)]), _row(0.0, [(1.0, d), (-1.0, h)])]
    for t in victim.tasks:
        rows += [
            _row(0.0, [(1.0, y[t]), (-1.0, h)]),
            _row(0.0, [(1.0, s), (-1.0, y[t])]),
            _row(0.0, [(1.0, a[t]), (-1.0, y[t])]),
            _row(1.0, [(1.0, a[t]), (1.0, s)]),
        ]
        if victim.whole:
            rows.append(_row(0.0, [(1.0, h), (-1.0, y[t])]))
        if victim.whole or not victim.may_stop:
            # all that leaves goes on elsewhere, unless the job is stopped
            rows.append(_row(0.0, [(1.0, y[t]), (-1.0, a[t]), (-1.0, s)]))
    if victim.whole:
        return [*rows, _row(0.0, [(1.0, h), (-1.0, d)])]
    for tasks, minimum in victim.minima:
        gone = [(1.0, y[t]) for t in tasks]
        back = [(-1.0, a[t]) for t in tasks]
        spare = float(minimum - len(tasks)), h
        rows.append(_row(0.0, [*gone, spare, (-float(minimum), d)]))
        rows.append(_row(0.0, [*gone, *back, spare, (-float(minimum), s)]))
    return rows


def _moved(m: Any, question: Question, a: Sequence[Any], rows: list[Row]) -> dict[Key, Any]:
    """Add where tasks move to, by shape, and state that as many come as leave for it."""
    movers: dict[int, list[int]] = {}
    for victim in question.victims:
        for t in victim.tasks if victim.may_move else ():
            movers.setdefault(question.shape_of[t], []).append(t)
    keys = [(shape, place) for shape in movers for place in question.open_to.get(shape, ())]
    z = dict(zip(keys, whole_numbers(m, "z", [len(movers[shape]) for shape, _ in keys]), strict=True))
    for shape, tasks in movers.items():
        there = [(-1.0, z[shape, place]) for place in question.open_to.get(shape, ())]
        leave = [(1.0, a[t]) for t in tasks]
        rows.append(_row(0.0, [*leave, *there]))
    return z


def _needed(question: Question, x: Mapping[Key, Any]) -> list[Row]:
    rows = [Row(-float(needed)) for needed in question.needed]
    for (leaf, _), variable in x.items():
        rows[leaf].add(-1.0, variable)
    return rows


def _cards(m: Any, question: Question, y: Sequence[Any], rows: list[Row]) -> list[list[Any]]:
    """Add the cards that may come free, for each supply."""
    count = sum(len(supply.cards) for supply in question.supplies)
    w = iter(whole_numbers(m, "w", [1] * count))
    found = []
    for supply in question.supplies:
        mine = []
        for tasks in supply.cards:
            card = next(w)
            rows += [_row(0.0, [(1.0, card), (-1.0, y[t])]) for t in tasks]
            mine.append(card)
        found.append(mine)
    return found


def _supply(supply: Supply, x: Mapping[Key, Any], z: Mapping[Key, Any], y: Sequence[Any], cards: Sequence[Any]) -> Row:
    row = Row(float(supply.left))
    for taken, variables in ((supply.leaves, x), (supply.shapes, z)):
        for key, amount in taken.items():
            if key in variables:
                row.add(float(amount), variables[key])
    if not row.variables:
        return Row()
    for task, amount in supply.tasks.items():
        row.add(-float(amount), y[task])
    for card in cards:
        row.add(-1.0, card)
    return row


def _one_domain(
    m: Any,
    name: str,
    leaves: Sequence[int],
    domain_of: Mapping[int, int],
    most: Mapping[Key, int],
    x: Mapping[Key, Any],
) -> list[Row]:
    """State that one domain holds all tasks of some leaves; a place outside of all of them holds none."""
    domains = sorted({domain for domain in domain_of.values() if domain >= 0})
    chosen = dict(zip(domains, whole_numbers(m, name, [1] * len(domains)), strict=True))
    rows = [_row(1.0, [(1.0, one) for one in chosen.values()])]
    for (leaf, place), variable in x.items():
        if leaf in leaves:
            domain = domain_of[place]
            terms = [(1.0, variable)]
            if domain >= 0:
                terms.append((-float(most[leaf, place]), chosen[domain]))
            rows.append(_row(0.0, terms))
    return rows


def _cap(
    m: Any, name: str, cap: Cap, victims: Sequence[Victim], y: Sequence[Any], a: Sequence[Any], s: Sequence[Any]
) -> list[Row]:
    """State that no more is taken than there is beyond what has to stay."""
    row = Row(float(cap.most))
    for task, amount in cap.taken.items():
        row.add(float(amount), y[task])
        row.add(-float(amount), a[task])
    rows = [row]
    if cap.beyond:
        whole = {j: sum(cap.taken.get(t, 0) for t in victim.tasks) for j, victim in enumerate(victims)}
        whole = {j: amount for j, amount in whole.items() if amount}
        last = dict(zip(whole, whole_numbers(m, name, [1] * len(whole)), strict=True))
        for j, one in last.items():
            row.add(1.0 - whole[j], one)
            rows.append(_row(0.0, [(1.0, one), (-1.0, s[j])]))
        rows.append(_row(1.0, [(1.0, one) for one in last.values()]))
    return rows
