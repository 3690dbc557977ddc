r"""MIG instances on free runs of slots where some running instances may move, at a cost.

Cards are of one class if the same instances stay on them in any case and like instances that may move lie at the same
slots. For a class *K* of :math:`N_K` cards and a set *S* of those that may move, let :math:`z_{KS}` be the cards on
which just these stay. Each such card has :math:`r_{KSk}` free runs of kind *k*, and :math:`m_{KSi}` instances of item
*i* leave it and have to lie elsewhere. With the symbols of `mig`,

.. math::
    \sum_S z_{KS} &= N_K && \forall K, \\
    \sum_{i,s:\; s \le \tau < s + z_i} y_{kis} &\le \sum_{K,S} r_{KSk}\, z_{KS} && \forall k,\ \tau, \\
    \sum_{l:\, i(l) = i} t_l + \sum_{K,S} m_{KSi}\, z_{KS} &\le \sum_{k,s} y_{kis} + \sum_p a_{ip} x_p && \forall i, \\
    \sum_{K,S} |K \setminus S|\, z_{KS} &\le B, \\
    \sum_l d_{rl} t_l &\le C_r && \forall r .

What is maximised is the worth of started tasks less :math:`\sum_{K,S} c_{KS} z_{KS}`, the cost of what leaves. All of
it is whole. As there, whole points can be dealt out to cards. Of hosts and domains only what all cards share is looked
at: as *r*, of which a task takes :math:`d_{rl}` and the movers leave :math:`C_r`.

Where hosts are few, classes and kinds can be told apart by host, and items by what they ask of it. Then what is left
of a resource *r* of a host, or of the cap of a domain with several hosts *H*, beside all that is there now, and what
leaves these hosts, is enough for what comes: with :math:`d_{ri}` of an item,

.. math:: \sum_{k \in H} \sum_{i,s} d_{ri}\, y_{kis} - \sum_{K \in H} \sum_{S,i} d_{ri}\, m_{KSi}\, z_{KS} \le F_{Hr}
    \qquad \forall H, r ,

and instances of whole cards likewise, used or not, so that only where there are none the bound is one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyomo import core as pyo

from placement.collector import collector_paused
from placement.models import pooled_gangs
from placement.models.mig import Kind, add_cards, add_intervals, cap_row
from placement.models.pooled_linear import Draft, Row, add_rows, whole_numbers
from placement.models.pools import Pooling


@dataclass(frozen=True, slots=True)
class Option:
    """What may become of a card of a class.

    Attributes
    ----------
    runs : tuple of (int, int)
        Free runs: a kind, and how many of it.
    leaving : tuple of (int, int)
        Items, and how many instances of each leave the card.
    cost : float
        Of what leaves.
    """

    runs: tuple[tuple[int, int], ...]
    leaving: tuple[tuple[int, int], ...]
    cost: float

    @property
    def moves(self) -> int:
        """Number of instances that leave."""
        return sum(times for _, times in self.leaving)


@dataclass(frozen=True, slots=True)
class Amount:
    """What some hosts have of something: one of a resource, or all of a domain of what its cap says.

    Attributes
    ----------
    hosts : collection of int
        Those on whose cards instances take of it.
    asked : sequence of int
        What an instance of each item takes.
    left : int
        What there is beside all that is there now.
    """

    hosts: Collection[int]
    asked: Sequence[int]
    left: int


@dataclass(frozen=True, slots=True)
class Hosts:
    """What hosts and domains have, where cards are told apart by hosts.

    Attributes
    ----------
    of_class, of_kind : sequence of int
        Host of each class and of each kind.
    amounts : sequence of Amount
    """

    of_class: Sequence[int]
    of_kind: Sequence[int]
    amounts: Sequence[Amount]


def build(
    view: Pooling,
    item_of_leaf: Sequence[int],
    worth: Sequence[float],
    kinds: Sequence[Kind],
    classes: Sequence[tuple[int, Sequence[Option]]],
    most_moves: int | None,
    caps: Sequence[tuple[Sequence[int], int]] = (),
    hosts: Hosts | None = None,
) -> Any:
    """Return the model.

    Parameters
    ----------
    view : Pooling
        Without pools: its leaves are those of the jobs that wait.
    item_of_leaf : sequence of int
        Item of each leaf of the view.
    worth : sequence of float
        Of one task of each leaf.
    kinds : sequence of Kind
        Their counts are of no account here.
    classes : sequence of (int, sequence of Option)
        Cards of each class, and what may become of one.
    most_moves : int, optional
    caps : sequence of (sequence of int, int)
        What a task of each leaf takes of something that all cards share, and how much of it there is.
    hosts : Hosts, optional

    Returns
    -------
    pyomo.environ.ConcreteModel
        Variables in the order t, z, y, x, w, then those of the gangs; ``z_of`` says what z are, the others are as in
        `mig`.
    """
    with collector_paused():
        m = pyo.ConcreteModel()
        m.draft = Draft(view, (), {}, {}, (), ())
        m.draft.t = whole_numbers(m, "t", view.leaves[:, 3].tolist())
        supply: dict[int, Row] = {}
        for item, t in zip(item_of_leaf, m.draft.t, strict=True):
            supply.setdefault(item, Row()).add(1.0, t)
        runs: dict[int, list[tuple[float, Any]]] = {}
        terms = [(c, t) for c, t in zip(worth, m.draft.t, strict=True) if c]
        terms += _options(m, classes, supply, runs, most_moves)
        _instances(m, kinds, supply, runs)
        if hosts is not None:
            _hosts(m, hosts)
        add_rows(m, "caps", [cap_row(m.draft.t, taken, there) for taken, there in caps])
        add_rows(m, "supply", list(supply.values()))
        pooled_gangs.add(m, view.instance)
        m.objective = pyo.Objective(expr=sum(c * v for c, v in terms), sense=pyo.maximize)
    return m


def _options(
    m: Any,
    classes: Sequence[tuple[int, Sequence[Option]]],
    supply: dict[int, Row],
    runs: dict[int, list[tuple[float, Any]]],
    most_moves: int | None,
) -> list[tuple[float, Any]]:
    """Add what becomes of cards, and return what it costs."""
    m.z_of = [(number, option) for number, (_, options) in enumerate(classes) for option in options]
    z = whole_numbers(m, "z", [classes[number][0] for number, _ in m.z_of])
    rows = [[Row(float(count)), Row(-float(count))] for count, _ in classes]
    budget = Row(0.0 if most_moves is None else float(most_moves))
    for (number, option), variable in zip(m.z_of, z, strict=True):
        rows[number][0].add(1.0, variable)
        rows[number][1].add(-1.0, variable)
        for kind, times in option.runs:
            runs.setdefault(kind, []).append((-float(times), variable))
        for item, times in option.leaving:
            supply.setdefault(item, Row()).add(float(times), variable)
        if most_moves is not None and option.moves:
            budget.add(float(option.moves), variable)
    add_rows(m, "cards", [row for pair in rows for row in pair])
    add_rows(m, "moves", [budget])
    return [(-option.cost, variable) for (_, option), variable in zip(m.z_of, z, strict=True) if option.cost]


def _instances(
    m: Any, kinds: Sequence[Kind], supply: Mapping[int, Row], runs: Mapping[int, list[tuple[float, Any]]]
) -> None:
    """Add instances by start slot and whole cards by content, on as many runs of each kind as there come to be."""
    most = [sum(int(variable.ub) * int(-times) for times, variable in runs.get(k, ())) for k in range(len(kinds))]
    kinds = [replace(kind, count=count) for kind, count in zip(kinds, most, strict=True)]
    slots = add_intervals(m, kinds, supply, None)
    cards = add_cards(m, kinds, supply, None)
    of_cards = zip(dict.fromkeys(k for k, _ in m.x_of), cards, strict=False)
    for k, row in [*((k, row) for (k, _), row in slots.items()), *of_cards]:
        row.upper = 0.0
        for times, variable in runs.get(k, ()):
            row.add(times, variable)
    add_rows(m, "runs", [*slots.values(), *cards])


def _hosts(m: Any, hosts: Hosts) -> None:
    """State that hosts and domains have what the instances on their cards ask for."""
    terms: list[tuple[int, Sequence[tuple[int, int]], Any]]
    terms = [(hosts.of_kind[k], ((item, 1),), y) for (k, item, _), y in zip(m.y_of, m.y.values(), strict=True)]
    terms += [(hosts.of_kind[k], ((item, 1),), w) for (k, item), w in zip(m.w_of, m.w.values(), strict=True)]
    for (k, content), x in zip(m.x_of, m.x.values(), strict=True):
        # those that several items share are counted by w
        mine = [(m.wanted[k][profile][0], times) for profile, times in content if len(m.wanted[k][profile]) == 1]
        terms.append((hosts.of_kind[k], mine, x))
    for (number, option), z in zip(m.z_of, m.z.values(), strict=True):
        terms.append((hosts.of_class[number], [(item, -times) for item, times in option.leaving], z))
    rows = [Row(float(one.left)) for one in hosts.amounts]
    of_host: dict[int, list[tuple[Row, Sequence[int]]]] = {}
    for one, row in zip(hosts.amounts, rows, strict=True):
        for host in one.hosts:
            of_host.setdefault(host, []).append((row, one.asked))
    for host, instances, variable in terms:
        for row, asks in of_host.get(host, ()):
            asked = sum(asks[item] * times for item, times in instances)
            if asked:
                row.add(float(asked), variable)
    add_rows(m, "hosts", rows)
