r"""Run time: how long jobs run where their tasks are, and how long their data take to get there.

A job runs in one of its modes :math:`\mu = (\ell, \varphi, h, i, \psi)`: one domain of level :math:`\ell` holds all
its placed tasks, no card of its has a larger factor than :math:`\varphi`, no card that its tasks share one larger than
:math:`\psi`, and unless :math:`h` (or :math:`i`) is 1 no task has cards in too many NUMA zones (or in zones with too
few NICs); :math:`R_\mu` milliseconds then. With
:math:`w_{j\mu}` and, for the domain *d* of the level, :math:`y_{jd}`, all of them 0 or 1, and :math:`z_{tn}` and
:math:`a_{tu}` as in `placement.models.assignment`,

.. math::
   \sum_n z_{tn} \le \sum_\mu w_{j\mu} \le 1, \qquad
   z_{tn} \le \sum_{d \ni n} y_{jd}, \qquad
   \sum_{d \in \ell} y_{jd} \le \sum_{\mu : \ell_\mu = \ell} w_{j\mu} \quad\forall t \in j, n, \ell

and for all factors :math:`\varphi` of models but the least, and but 1,

.. math::
   \sum_{u : \varphi(u) \ge \varphi} a_{tu} \le g_t \sum_{\mu : \varphi_\mu \ge \varphi} w_{j\mu}, \qquad
   \sum_{\mu : \varphi_\mu = \varphi} w_{j\mu} \le \sum_{t, u : \varphi(u) = \varphi} a_{tu},

which go for :math:`\psi` too, with the tasks that take less than whole cards.

A mode must be what it says where another would be shorter: where a narrower level has a larger factor, no one domain
of it, *d*, may hold all tasks,

.. math:: \sum_t \sum_{n \notin d} z_{tn} \ge \sum_{\mu : \ell_\mu = \ell} w_{j\mu} .

:math:`v_{t\zeta} = \max_{u \in \zeta} a_{tu}` says that task *t* has cards in zone :math:`\zeta`, of which :math:`b_t`
hold so many on an empty node and which has :math:`q_\zeta` NICs:

.. math::
   \sum_\zeta v_{t\zeta} \le b_t + M \sum_{\mu : h_\mu = 1} w_{j\mu}, \qquad
   \sum_\zeta q_\zeta v_{t\zeta} \ge q_t z_{tn} - q_t \sum_{\mu : i_\mu = 1} w_{j\mu},

and where such a factor is less than 1, :math:`r_{tn} \in \{0, 1\}` points to a task that lies so:
:math:`\sum_{\mu : h_\mu = 1} w_{j\mu} \le \sum r_{tn}`. Data are fetched from
copy *k* at level :math:`\ell` if :math:`f_{jk\ell}` is 1, tasks kept in the domain and dearer narrower levels kept out
as above. What is minimised is the sum of :math:`W_j (R_\mu w_{j\mu} + F_{k\ell} f_{jk\ell})`. Needs `assignment`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator
from fractions import Fraction
from itertools import product
from math import inf
from typing import Any

import numpy as np
from pyomo import core as pyo

from placement.durations import DataCopy, RunTime
from placement.instance import Instance
from placement.models.assignment import shape_of
from placement.models.core import Goal, Linear, Row, Terms, add_rows
from placement.run_time import Lying
from placement.shared_cards import parted, sharing_factor

NEEDS = ("assignment",)
ONE = Fraction(1)

Mode = tuple[int, Fraction, bool, bool, Fraction]
"""Level, factor of the models, whether zones are too many, whether NICs are few, and factor of sharing."""


def add(m: Any, instance: Instance) -> None:
    """Add the goal, and its variables and rows."""
    m.runs_so = pyo.VarList(domain=pyo.Binary)
    m.runs_in_domain = pyo.VarList(domain=pyo.Binary)
    m.fetches_so = pyo.VarList(domain=pyo.Binary)
    m.uses_zone = pyo.VarList(domain=pyo.Binary)
    m.lies_badly = pyo.VarList(domain=pyo.Binary)
    rows: dict[str, dict[Hashable, Row]] = defaultdict(dict)
    of_job: dict[int, list[int]] = defaultdict(list)
    for t, task in enumerate(m.tasks):
        of_job[task.job].append(t)
    cost: Terms = []
    lying = Lying(instance)
    for job, tasks in of_job.items():
        run = instance.job_classes[instance.job_class[job]].run
        if run is not None and run.weight:
            cost += _Job(m, instance, run, job, tasks, rows, lying).cost()
    for name, some in rows.items():
        add_rows(m, name, some)
    m.parts.goals[Goal("run_time")] = Linear.of(cost, unit=Fraction(1, 1000))


class _Job:
    """The variables and rows of one job."""

    def __init__(
        self,
        m: Any,
        instance: Instance,
        run: RunTime,
        job: int,
        tasks: list[int],
        rows: dict[str, dict[Hashable, Row]],
        lying: Lying,
    ) -> None:
        self.m, self.instance, self.run, self.job, self.tasks = m, instance, run, job, tasks
        self.rows, self.lying = rows, lying
        self.levels = len(instance.levels)

    def cost(self) -> Terms:
        """Add the rows and return what is to be minimised."""
        cost: Terms = []
        if self.run.seconds:
            modes = {mode: self.m.runs_so.add() for mode in self._modes()}
            self._one("runs_once", list(modes.values()))
            self._by_level(modes)
            self._by_cards(modes, lambda mode: mode[1], self._factors(), "card", self.tasks)
            self._by_cards(modes, lambda mode: mode[4], self._sharing(), "shared_card", self._parted())
            self._by_zones(modes)
            cost += [(self.run.weight * self.run.milliseconds(*mode), w) for mode, w in modes.items()]
        if self.run.data:
            cost += self._fetch()
        return cost

    def _one(self, name: str, chosen: list[Any]) -> None:
        """Have one of some variables be 1 where a task of the job is placed."""
        self.rows[name][self.job] = (-inf, [(1, w) for w in chosen], 1)
        for t in self.tasks:
            placed = [(1, self.m.z[t, n]) for n in range(self.instance.nodes)]
            self.rows[f"{name}_if_placed"][self.job, t] = (-inf, [*placed, *((-1, w) for w in chosen)], 0)

    # --- modes -----------------------------------------------------------------------------------------------

    def _modes(self) -> Iterator[Mode]:
        """Return the modes that there may be and that differ in what they cost."""
        shapes = [shape_of(self.m, t) for t in self.tasks]
        zoned = any(node.zones for node in self.instance.snapshot.nodes)
        far = zoned and self.run.numa != 1 and any(shape.gpus > 1 for shape in shapes)
        few = zoned and self.run.nic != 1 and any(shape.gpus for shape in shapes)
        models = sorted({ONE, *self._factors().values()}) if any(shape.gpus for shape in shapes) else [ONE]
        sharing = sorted({ONE, *self._sharing().values()}) if self._parted() else [ONE]
        return product(self._levels(), models, (False, True)[: 1 + far], (False, True)[: 1 + few], sharing)

    def _levels(self) -> list[int]:
        """Return the widest of levels, one next to the other, that are worth the same; one task lies in a node.

        A narrower one counts where it has nodes that are in no domain of the wider one.
        """
        last = self.levels - 1
        if len(self.tasks) == 1:
            return [last]
        factor, inside = self.run.levels, self.instance.domains >= 0
        return [
            level
            for level in range(self.levels)
            if level == 0 or factor[level] != factor[level - 1] or (inside[level] & ~inside[level - 1]).any()
        ]

    def _factors(self) -> dict[int, Fraction]:
        """Return the factor of each card kind."""
        listed = dict(self.run.models)
        return {number: listed.get(kind.model, ONE) for number, kind in enumerate(self.instance.card_kinds)}

    def _sharing(self) -> dict[int, Fraction]:
        """Return the factor of each card kind for tasks that share such cards."""
        kinds = enumerate(self.instance.card_kinds)
        return {number: sharing_factor(kind, self.run) for number, kind in kinds}

    def _parted(self) -> list[int]:
        """Return the tasks that take less than whole cards."""
        return [t for t in self.tasks if parted(self.instance, self.m.tasks[t].shape)]

    def _by_level(self, modes: dict[Mode, Any]) -> None:
        domains, factors = self.instance.domains, self.run.levels
        holding: dict[int, Terms] = defaultdict(list)
        for level in {mode[0] for mode in modes}:
            chosen: Terms = [(1, w) for mode, w in modes.items() if mode[0] == level]
            there = [self.m.runs_in_domain.add() for _ in range(int(domains[level].max(initial=-1)) + 1)]
            self.rows["runs_in_one"][self.job, level] = (
                -inf,
                [*((1, y) for y in there), *((-c, w) for c, w in chosen)],
                0,
            )
            for n, d in enumerate(domains[level].tolist()):
                if d >= 0:
                    holding[n].append((-1, there[d]))
            for narrower in range(level + 1, self.levels):
                if factors[narrower] > factors[level]:
                    for d in range(int(domains[narrower].max(initial=-1)) + 1):
                        self._not_within("runs_outside", (self.job, level, narrower, d), domains[narrower] == d, chosen)
        for t, n in product(self.tasks, range(self.instance.nodes)) if len(self.tasks) > 1 else ():
            self.rows["runs_there"][t, n] = (-inf, [(1, self.m.z[t, n]), *holding[n]], 0)

    def _not_within(self, name: str, key: tuple[int, ...], inside: Any, chosen: Terms) -> None:
        """Have a task lie outside some nodes where one of some variables is 1."""
        outside: Terms = [(1, self.m.z[t, n]) for t in self.tasks for n in np.flatnonzero(~inside).tolist()]
        self.rows[name][key] = (0, [*outside, *((-c, w) for c, w in chosen)], inf)

    def _by_cards(
        self,
        modes: dict[Mode, Any],
        of_mode: Callable[[Mode], Fraction],
        factors: dict[int, Fraction],
        name: str,
        tasks: list[int],
    ) -> None:
        """Have one of the factors of a mode be the largest over the cards of some tasks.

        Parameters
        ----------
        modes : dict of Mode to variable
        of_mode : callable
            Returns this factor of a mode.
        factors : dict of int to Fraction
            By card kind.
        name : str
            Of the rows.
        tasks : list of int
        """
        every = sorted({of_mode(mode) for mode in modes})
        of_card: dict[Fraction, list[tuple[int, Any]]] = defaultdict(list)
        for t in tasks:
            for n, c in self.m.cards if shape_of(self.m, t).gpus else ():
                kind = self.instance.classes[self.instance.node_class[n]].cards[c][0]
                of_card[factors[kind]].append((t, self.m.a[t, n, c]))
        for number, factor in enumerate(every):
            if number:
                least = [(1, w) for mode, w in modes.items() if of_mode(mode) >= factor]
                for t in tasks:
                    slow: Terms = [(1, a) for f in every[number:] for of, a in of_card[f] if of == t]
                    gpus = shape_of(self.m, t).gpus
                    self.rows[f"no_slower_{name}"][t, number] = (-inf, [*slow, *((-gpus, w) for _, w in least)], 0)
            if factor != 1:
                such: Terms = [(1, w) for mode, w in modes.items() if of_mode(mode) == factor]
                used: Terms = [(-1, a) for _, a in of_card[factor]]
                self.rows[f"such_a_{name}"][self.job, number] = (-inf, [*such, *used], 0)

    # --- zones -----------------------------------------------------------------------------------------------

    def _by_zones(self, modes: dict[Mode, Any]) -> None:
        far: Terms = [(1, w) for mode, w in modes.items() if mode[2]]
        few: Terms = [(1, w) for mode, w in modes.items() if mode[3]]
        pointing: tuple[Terms, Terms] = ([], [])
        for t, n in product(self.tasks, range(self.instance.nodes)) if far or few else ():
            of_card, shape = self.lying.zones(n), shape_of(self.m, t)
            k = int(self.instance.node_class[n])
            if not shape.gpus or not of_card or not self.instance.admits_node[self.m.tasks[t].shape, k]:
                continue
            used = self._zones_used(t, n, of_card)
            if far and shape.gpus > 1:
                pointing[0].extend(self._far(t, n, used, shape.gpus, far))
            if few and (asked := self.lying.nics(self.m.tasks[t].shape)):
                pointing[1].extend(self._few(t, n, used, asked, few))
        for number, (chosen, found, factor) in enumerate(
            zip((far, few), pointing, (self.run.numa, self.run.nic), strict=True)
        ):
            if chosen and factor < 1:
                self.rows["lies_badly_indeed"][self.job, number] = (-inf, [*chosen, *((-c, r) for c, r in found)], 0)

    def _zones_used(self, t: int, n: int, of_card: list[int]) -> dict[int, Any]:
        """Return whether a task has a card in each zone of a node."""
        used = {}
        for zone in sorted(set(of_card)):
            v = used[zone] = self.m.uses_zone.add()
            cards = [self.m.a[t, n, c] for c, of in enumerate(of_card) if of == zone]
            for c, a in enumerate(cards):
                self.rows["zone_of_card"][t, n, zone, c] = (-inf, [(1, a), (-1, v)], 0)
            self.rows["zone_with_card"][t, n, zone] = (-inf, [(1, v), *((-1, a) for a in cards)], 0)
        return used

    def _far(self, t: int, n: int, used: dict[int, Any], cards: int, chosen: Terms) -> Iterator[tuple[int, Any]]:
        """Add the rows by which too many zones need a mode; yield what says that there are too many."""
        needed = self.lying.needed(n, cards)
        if needed >= len(used):
            return
        zones: Terms = [(1, v) for v in used.values()]
        above = [(needed - len(used), w) for _, w in chosen]
        self.rows["few_zones"][t, n] = (-inf, [*zones, *above], needed)
        if self.run.numa < 1:
            yield self._points(t, n, "many_zones", lambda r: (0, [*zones, (-needed - 1, r)], inf))

    def _few(self, t: int, n: int, used: dict[int, Any], asked: int, chosen: Terms) -> Iterator[tuple[int, Any]]:
        """Add the rows by which too few NICs need a mode; yield what says that there are too few."""
        zones = self.instance.snapshot.nodes[self.instance.node_spec[n]].zones
        there: Terms = [(len(zones[zone].nics), v) for zone, v in used.items()]
        self.rows["enough_nics"][t, n] = (0, [*there, *((asked, w) for _, w in chosen), (-asked, self.m.z[t, n])], inf)
        if self.run.nic < 1:
            most = max(0, sum(c for c, _ in there) - asked + 1)
            yield self._points(t, n, "few_nics", lambda r: (-inf, [*there, (most, r)], asked - 1 + most))

    def _points(self, t: int, n: int, name: str, row: Callable[[Any], Row]) -> tuple[int, Any]:
        """Return a variable that says that a task lies badly on a node."""
        r = self.m.lies_badly.add()
        self.rows[name][t, n] = row(r)
        self.rows["lies_badly_there"][t, n, name] = (-inf, [(1, r), (-1, self.m.z[t, n])], 0)
        return 1, r

    # --- data ------------------------------------------------------------------------------------------------

    def _fetch(self) -> Terms:
        cost: Terms = []
        near: dict[int, Terms] = defaultdict(list)
        for number, copy in enumerate(self.run.data):
            for level, milliseconds in enumerate(copy.fetch):
                if copy.domains[level] >= 0:
                    f = self.m.fetches_so.add()
                    cost.append((self.run.weight * milliseconds, f))
                    for n in np.flatnonzero(self.instance.domains[level] == copy.domains[level]).tolist():
                        near[n].append((-1, f))
                    self._no_nearer(copy, number, level, f)
        self._one("fetches_once", [f for _, f in cost])
        for t, n in product(self.tasks, range(self.instance.nodes)):
            self.rows["near_data"][t, n] = (-inf, [(1, self.m.z[t, n]), *near[n]], 0)
        return cost

    def _no_nearer(self, copy: DataCopy, number: int, level: int, f: Any) -> None:
        """Have a copy be fetched at a level only where no narrower one that is dearer holds both."""
        for narrower in range(level + 1, len(copy.domains)):
            if copy.domains[narrower] >= 0 and copy.fetch[narrower] > copy.fetch[level]:
                inside = self.instance.domains[narrower] == copy.domains[narrower]
                self._not_within("far_from_data", (self.job, number, level, narrower), inside, [(1, f)])
