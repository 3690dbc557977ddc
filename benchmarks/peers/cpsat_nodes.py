r"""CP-SAT on nodes and cards: the whole problem, stated as well for the peer as we know how.

Whole numbers throughout. :math:`J_\kappa` is how many jobs of class :math:`\kappa` run, :math:`t_l` how many tasks of
leaf *l*, :math:`n_{si}` tasks of shape *s* on node *i*, :math:`y_{\sigma ic}` shares of size :math:`\sigma`, units and
device memory, on its card *c*, and :math:`o_{ic}` whether a wholly free card is opened to shares:

.. math::
    \max \sum_l v_l t_l, \qquad m_l J_\kappa \le t_l \le c_l J_\kappa, \qquad
    \sum_{l:\,\mathrm{shape}(l)=s} t_l \le \sum_i n_{si}, \\
    \sum_s d_{sr} n_{si} \le f_{ir}, \qquad \sum_{s \in \sigma} n_{si} = \sum_c y_{\sigma ic}, \qquad
    \sum_\sigma u_\sigma y_{\sigma ic} \le U_{ic} o_{ic}, \qquad
    \sum_\sigma b_\sigma y_{\sigma ic} \le B_{ic} o_{ic}, \\
    \sum_{s\ \mathrm{whole}} g_s n_{si} + \sum_c o_{ic} \le W_i, \qquad o_{ic} \ge o_{i,c+1} \ \text{(like cards)}

where a card that running work shares has no *o*. This is exact: wholly free cards that no share opened are alike to
tasks of whole cards, so counting them is enough, while shares are stated card by card, because what is left of two
cards does not add up. Why it is fair to the peer:

- identical jobs are counted, not told apart, and so are identical tasks; one Boolean for every job and node would be
  several times larger and full of symmetry;
- cards come in only where they must, for shares, which a card does not tell apart by cores and memory, and like cards
  of a node are ordered;
- rows that cannot bind and pairs that cannot be are left out;
- incumbents are turned into assignments after the run, at no cost to the peer.

Node classes are not used, for that is what the other model (`cpsat_classes`) is about. The started variant is given the
first greedy rule's answer as a hint, as our exact pipeline is; finding it is on the peer's clock.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from placement.evaluate import demand
from placement.exact.layouts.gangs import named
from placement.exact.layouts.layout import Layout
from placement.gang import is_flat
from placement.heuristics import HEURISTICS
from placement.instance import Assignment, Instance, Ints
from placement.models.pools import leaf_table
from placement.solver import Limits

from . import cpsat
from .common import OBJECTIVE, Case, Course, Trace, Unsupported, judged

Terms = list[tuple[int, Any]]
Card = tuple[int, int, int, int]
"""Position, kind, free units and free device memory."""


@dataclass(slots=True)
class Model:
    """The CP-SAT model and its variables by what they stand for.

    Attributes
    ----------
    running : dict of job class to variable
    started : dict of (job class, leaf) to (variable, factor)
        Tasks are the variable times the factor.
    placed : dict of (shape, node) to variable
    slots : dict of (shape, node) to int
        Number of the share's size among those of the node.
    shared : dict of (node, slot, card) to variable
    opened : dict of (node, card) to variable
    """

    instance: Instance
    cp: Any
    linear: Any
    """The library's class of linear expressions."""
    running: dict[int, Any] = field(default_factory=dict)
    started: dict[tuple[int, int], tuple[Any, int]] = field(default_factory=dict)
    placed: dict[tuple[int, int], Any] = field(default_factory=dict)
    slots: dict[tuple[int, int], int] = field(default_factory=dict)
    shared: dict[tuple[int, int, int], Any] = field(default_factory=dict)
    opened: dict[tuple[int, int], Any] = field(default_factory=dict)

    def at_most(self, terms: Terms, bound: int) -> None:
        """Add ``sum(coefficient * variable) <= bound`` unless it is empty."""
        if terms:
            variables, coefficients = [v for _, v in terms], [c for c, _ in terms]
            self.cp.add(self.linear.weighted_sum(variables, coefficients) <= bound)


def run(case: Case, limit: float, seed: int, workers: int, started: bool = False) -> Course:
    """Solve a case and return its course."""
    cpsat.library()
    trace = Trace()
    instance = case.compile()
    model = build(instance)
    if started:
        rule = next(rule for rule in HEURISTICS.values() if rule.supports(instance) is None)
        hint(model, rule.solve(instance, objectives=(OBJECTIVE,), limits=Limits(), seed=seed).assignment)
    built = trace.now

    def incumbent(solution: list[int]) -> None:
        trace.incumbent(lambda: decode(model, solution, seed))

    unit = float(instance.value_unit)
    cpsat.solve(model.cp, trace, limit=limit, seed=seed, workers=workers, unit=unit, incumbent=incumbent)
    trace.about |= {
        "build_seconds": round(built, 3),
        "variables": len(model.cp.proto.variables),
        "rows": len(model.cp.proto.constraints),
        "note": "exact model of nodes and cards" + (", hinted with the first greedy rule's answer" if started else ""),
    }
    return judged(case, instance, trace)


# --- the model -----------------------------------------------------------------------------------------------------


def build(instance: Instance) -> Model:
    """Return the model of an instance, or raise `Unsupported`."""
    if instance.limits:
        raise Unsupported("domain limits are not stated in this model")
    if len(instance.priorities) > 1:
        raise Unsupported("several priorities are several solves; this model does one")
    library = cpsat.library()
    model = Model(instance, library.CpModel(), library.LinearExpr)
    _jobs(model)
    wanted = demand(instance)
    for number, node_class in enumerate(instance.classes):
        most = _most(instance, number, wanted)
        for node in node_class.nodes.tolist():
            _node(model, number, node, most)
    supply: dict[int, Terms] = defaultdict(list)
    for (shape, _), variable in model.placed.items():
        supply[shape].append((-1, variable))
    asked: dict[int, Terms] = defaultdict(list)
    worth: Terms = []
    for (job_class, leaf), (variable, factor) in model.started.items():
        found = instance.job_classes[job_class].leaves[leaf]
        asked[found.shape].append((factor, variable))
        worth.append((factor * found.value, variable))
    for shape, terms in asked.items():
        model.at_most(terms + supply[shape], 0)
    model.cp.maximize(model.linear.weighted_sum([v for _, v in worth], [c for c, _ in worth]))
    return model


def _jobs(model: Model) -> None:
    """Add the jobs that run and the tasks they start."""
    for number, job_class in enumerate(model.instance.job_classes):
        if not is_flat(job_class.root):
            raise Unsupported("nested gangs are not stated in this model")
        jobs = model.running[number] = model.cp.new_int_var(0, job_class.size, f"J{number}")
        for leaf in job_class.leaves:
            if leaf.minimum == leaf.count:
                model.started[number, leaf.leaf] = jobs, leaf.count
                continue
            tasks = model.cp.new_int_var(0, leaf.count * job_class.size, f"t{number},{leaf.leaf}")
            model.started[number, leaf.leaf] = tasks, 1
            model.at_most([(1, tasks), (-leaf.count, jobs)], 0)
            model.at_most([(leaf.minimum, jobs), (-1, tasks)], 0)


def _most(instance: Instance, number: int, wanted: Ints) -> dict[int, int]:
    """Return the most tasks of each shape that a node of a class could take by its resources; cards come later."""
    free = instance.classes[number].free
    found = {}
    for s in np.flatnonzero((wanted > 0) & instance.admits_node[:, number]).tolist():
        rooms = [have // each for have, each in zip(free, instance.shapes[s].demand, strict=True) if each]
        room = min(rooms, default=int(wanted[s]))
        if room > 0:
            found[s] = min(room, int(wanted[s]))
    return found


def _node(model: Model, number: int, node: int, most: dict[int, int]) -> None:
    """Add the variables and rows of one node."""
    instance = model.instance
    here: dict[int, Any] = {}
    cards = [(c, *card) for c, card in enumerate(instance.classes[number].cards) if card[1] > 0]
    useful = [card for card in cards if any(instance.admits_card[s, card[1]] for s in most if instance.shapes[s].gpus)]
    full = [card for card in useful if card[2] == instance.card_units]
    blocks: Terms = []
    sizes: dict[tuple[int, int, tuple[Card, ...]], list[int]] = defaultdict(list)
    for s, room in most.items():
        task = instance.shapes[s]
        usable = [
            card
            for card in useful
            if instance.admits_card[s, card[1]] and card[2] >= task.units and card[3] >= task.memory
        ]
        if task.gpus and task.units == instance.card_units:
            if usable and len(usable) < len(full):
                raise Unsupported("a task of whole cards may use some free cards of a node and not others")
            room = min(room, len(usable) // task.gpus)
        elif task.gpus > 1:
            raise Unsupported("a task takes shares of several cards")
        elif task.gpus and not usable:
            room = 0
        if not room:
            continue
        here[s] = model.placed[s, node] = model.cp.new_int_var(0, room, f"n{s},{node}")
        if task.gpus and task.units == instance.card_units:
            blocks.append((task.gpus, here[s]))
        elif task.gpus:
            sizes[task.units, task.memory, tuple(usable)].append(s)
    loads: dict[int, list[tuple[int, int, Any]]] = defaultdict(list)
    for slot, ((size, held, usable_cards), shapes) in enumerate(sizes.items()):
        model.slots |= {(s, node): slot for s in shapes}
        for c, _, units, memory in usable_cards:
            fit = min(sum(most[s] for s in shapes), units // size, memory // held if held else units)
            model.shared[node, slot, c] = model.cp.new_int_var(0, fit, f"y{node},{slot},{c}")
            loads[c].append((size, held, model.shared[node, slot, c]))
        parts = [model.shared[node, slot, card[0]] for card in usable_cards]
        model.cp.add(model.linear.sum(parts) == model.linear.sum([here[s] for s in shapes]))
    _cards(model, node, full, loads, blocks, [card for card in useful if card[0] in loads])
    _resources(model, number, here, most)


def _cards(
    model: Model,
    node: int,
    full: list[Card],
    loads: dict[int, list[tuple[int, int, Any]]],
    blocks: Terms,
    shared: list[Card],
) -> None:
    """Add what cards hold: `loads` has units, memory and shares by card, `blocks` the cards of tasks of whole ones."""
    whole = {card[0] for card in full}
    before: dict[tuple[int, int, int], Any] = {}
    for c, kind, units, memory in shared:
        load: Terms = [(size, y) for size, _, y in loads[c]]
        held: Terms = [(size, y) for _, size, y in loads[c] if size]
        room_units, room_memory = units, memory
        if c in whole:
            open_ = model.opened[node, c] = model.cp.new_bool_var(f"o{node},{c}")
            blocks.append((1, open_))
            load.append((-units, open_))
            if held:
                held.append((-memory, open_))
            room_units = room_memory = 0
            like = (kind, units, memory)
            if like in before:
                model.at_most([(1, open_), (-1, before[like])], 0)
            before[like] = open_
        model.at_most(load, room_units)
        model.at_most(held, room_memory)
    model.at_most(blocks, len(full))


def _resources(model: Model, number: int, here: dict[int, Any], most: dict[int, int]) -> None:
    """Add the rows of node resources that the tasks which fit could exceed."""
    shapes = model.instance.shapes
    for r, free in enumerate(model.instance.classes[number].free):
        if sum(shapes[s].demand[r] * most[s] for s in here) > free:
            model.at_most([(shapes[s].demand[r], n) for s, n in here.items() if shapes[s].demand[r]], free)


# --- assignments ---------------------------------------------------------------------------------------------------


def decode(model: Model, solution: list[int], seed: int) -> Assignment:
    """Return the assignment that a solution stands for; like tasks are dealt to jobs in the engine's own way."""
    instance = model.instance
    layout = Layout(instance)
    spots: dict[tuple[int, int], list[int]] = defaultdict(list)
    for (node, slot, c), variable in model.shared.items():
        spots[node, slot] += [c] * solution[variable.index]
    for (s, node), variable in model.placed.items():
        if (s, node) in model.slots:
            for _ in range(solution[variable.index]):
                layout.place(s, node, (spots[node, model.slots[s, node]].pop(),))
    for (s, node), variable in model.placed.items():
        task = instance.shapes[s]
        for _ in range(solution[variable.index] if (s, node) not in model.slots else 0):
            everywhere = np.flatnonzero(layout.state.usable(s, np.array([node]))[0])
            layout.place(s, node, tuple(int(c) for c in everywhere[: task.gpus]))
    started = [
        solution[model.started[number, leaf][0].index] * model.started[number, leaf][1]
        for number, leaf in leaf_table(instance)[:, :2].tolist()
    ]
    return named(layout, np.array(started, dtype=np.int64), seed)


def hint(model: Model, assignment: Assignment) -> None:
    """Give the model an assignment to begin from, with like cards in the order that the model asks for."""
    instance = model.instance
    order = _order(model, assignment)
    jobs: dict[int, set[int]] = defaultdict(set)
    tasks: Counter[tuple[int, int]] = Counter()
    placed: Counter[tuple[int, int]] = Counter()
    shared: Counter[tuple[int, int, int]] = Counter()
    for row, (job, leaf, node) in enumerate(
        zip(assignment.job.tolist(), assignment.leaf.tolist(), assignment.node.tolist(), strict=True)
    ):
        number = int(instance.job_class[job])
        s = instance.job_classes[number].leaves[leaf].shape
        jobs[number].add(job)
        tasks[number, leaf] += 1
        placed[s, node] += 1
        if (s, node) in model.slots:
            card = int(assignment.cards[assignment.offset[row]])
            shared[node, model.slots[s, node], order.get((node, card), card)] += 1
    for number, variable in model.running.items():
        model.cp.add_hint(variable, len(jobs[number]))
    for key, (variable, _) in model.started.items():
        if variable is not model.running[key[0]]:
            model.cp.add_hint(variable, tasks[key])
    for pair, variable in model.placed.items():
        model.cp.add_hint(variable, placed[pair])
    for place, variable in model.shared.items():
        model.cp.add_hint(variable, shared[place])
    used = {(node, c) for node, _, c in shared}
    for place_of_card, variable in model.opened.items():
        model.cp.add_hint(variable, int(place_of_card in used))


def _order(model: Model, assignment: Assignment) -> dict[tuple[int, int], int]:
    """Return new positions for the cards of `opened`, so that of like cards of a node those with tasks come first."""
    instance = model.instance
    used: set[tuple[int, int]] = set()
    for row, node in enumerate(assignment.node.tolist()):
        cards = assignment.cards[assignment.offset[row] : assignment.offset[row + 1]].tolist()
        shape = instance.job_classes[instance.job_class[assignment.job[row]]].leaves[assignment.leaf[row]].shape
        if instance.shapes[shape].units < instance.card_units:
            used |= {(node, card) for card in cards}
    groups: dict[tuple[int, tuple[int, int, int]], list[int]] = defaultdict(list)
    for node, card in model.opened:
        groups[node, instance.classes[instance.node_class[node]].cards[card]].append(card)
    order: dict[tuple[int, int], int] = {}
    for (node, _), cards in groups.items():
        first = [c for c in cards if (node, c) in used] + [c for c in cards if (node, c) not in used]
        order |= {(node, card): position for card, position in zip(first, cards, strict=True)}
    return order
