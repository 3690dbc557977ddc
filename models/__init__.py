"""The models: one family of variables, rows or goals a file, put together into formulations.

A family is a module with the maths in its docstring, the families it needs in ``NEEDS``, and ``add(m, instance)``. A
formulation names its families. An exact one has the placements of the snapshot as its solutions, a relaxation more
(bounds, no plans), a restriction fewer (plans, no bounds). All formulations of an instance agree on the optimum.

The pooled master has its own builder, `placement.models.pooled`.
"""

from __future__ import annotations

if __name__ != "placement.models":
    raise ImportError("import this package as placement.models; models is only where its files are")

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal

from pyomo import core as pyo

from placement.collector import collector_paused
from placement.evaluate import Score
from placement.instance import Instance
from placement.models import (
    admissibility,
    assignment,
    capacity,
    configurations,
    counts,
    device_memory,
    fragmentation,
    gang,
    gang_counts,
    ladder,
    locality,
    nodes,
    numa,
    pattern_goals,
    run_time,
    shares,
    tasks,
    tenants,
    topology,
    value,
    whole_nodes,
)
from placement.models.core import Goal as Goal
from placement.models.core import Parts, add_goal, add_held
from placement.models.core import goals as goals
from placement.models.patterns import TooMany, enumerate_patterns

FAMILIES: dict[str, ModuleType] = {
    module.__name__.rpartition(".")[2]: module
    for module in (
        assignment,
        admissibility,
        shares,
        device_memory,
        capacity,
        numa,
        gang,
        topology,
        tenants,
        counts,
        gang_counts,
        ladder,
        configurations,
        value,
        tasks,
        locality,
        run_time,
        nodes,
        whole_nodes,
        fragmentation,
        pattern_goals,
    )
}
"""Every family by name, each after those it needs."""

MOST_REFERENCE_VARIABLES = 20_000


@dataclass(frozen=True, slots=True)
class Formulation:
    """A set of families that together state the problem.

    Attributes
    ----------
    name : str
    kind : str
        ``"exact"``, ``"relaxation"`` or ``"restriction"``.
    families : tuple of str
        Names in `FAMILIES`, each after those it needs.
    objectives : mapping of str to str
        The family that states each objective it can express.
    supports : callable
        Returns why the formulation cannot take an instance, or None.
    """

    name: str
    kind: Literal["exact", "relaxation", "restriction"]
    families: tuple[str, ...]
    objectives: Mapping[str, str]
    supports: Callable[[Instance], str | None]


_TIED = "its jobs say where their tasks may lie relative to one another, which counts do not tell"


def _ladder_supports(instance: Instance) -> str | None:
    return _TIED if instance.tied else ladder.unsupported(instance)


def _reference_supports(instance: Instance) -> str | None:
    wanted = sum(leaf.count * leaf.copies * c.size for c in instance.job_classes for leaf in c.leaves)
    places = sum(c.size * (1 + len(c.cards) + numa.choices(instance, k)) for k, c in enumerate(instance.classes))
    if wanted * places > MOST_REFERENCE_VARIABLES:
        return f"{wanted} tasks on {places} nodes and cards are more than {MOST_REFERENCE_VARIABLES} variables"
    return None


def _configurations_supports(instance: Instance) -> str | None:
    if instance.tied:
        return _TIED
    try:
        enumerate_patterns(instance, maximal=True, fragmentation=False)
    except TooMany as reason:
        return str(reason)
    return None


_COUNTED = {"value": "value", "tasks": "tasks"}

REFERENCE = Formulation(
    name="reference",
    kind="exact",
    families=(
        "assignment",
        "admissibility",
        "shares",
        "device_memory",
        "capacity",
        "numa",
        "gang",
        "topology",
        "tenants",
    ),
    objectives=_COUNTED
    | {"locality": "locality", "run_time": "run_time"}
    | {"nodes": "nodes", "whole_nodes": "whole_nodes", "fragmentation": "fragmentation"},
    supports=_reference_supports,
)
"""Device by device, task by task: what every other formulation is measured against."""

LADDER = Formulation(
    name="ladder",
    kind="exact",
    families=("counts", "gang_counts", "ladder"),
    objectives=_COUNTED,
    supports=_ladder_supports,
)
"""Counts of job classes against blocks of cards; exact where cards alone bind and sizes divide one another."""

CONFIGURATIONS = Formulation(
    name="configurations",
    kind="exact",
    families=("counts", "gang_counts", "configurations"),
    objectives=_COUNTED | {"nodes": "pattern_goals", "whole_nodes": "pattern_goals", "fragmentation": "pattern_goals"},
    supports=_configurations_supports,
)
"""Counts of job classes against node patterns; exact wherever the patterns can be enumerated."""

FORMULATIONS: dict[str, Formulation] = {f.name: f for f in (REFERENCE, LADDER, CONFIGURATIONS)}


def build(
    instance: Instance,
    formulation: Formulation,
    objective: Goal | str,
    held: Sequence[Score] = (),
    shared: dict[str, Any] | None = None,
) -> Any:
    """Return the model of one phase.

    Parameters
    ----------
    instance : Instance
    formulation : Formulation
    objective : Goal or str
        What to optimise; a bare name will do for everything but ``value`` with several priorities.
    held : sequence of Score
        Values of earlier phases, which the solution must not fall below.
    shared : dict, optional
        Kept by the caller between models of one instance, so that patterns are enumerated once.

    Returns
    -------
    pyomo.environ.ConcreteModel
        Linear, never infeasible if the held values are those of a plan. Its objective counts in units of
        ``m.parts.goals[goal].unit``.

    Raises
    ------
    ValueError
        If the formulation does not express an objective.
    placement.models.patterns.TooMany
        If it needs patterns that are too many to enumerate.
    """
    goal = _goal(instance, objective)
    names = dict.fromkeys((goal.objective, *(score.objective for score in held)))
    for name in names:
        if name not in formulation.objectives:
            raise ValueError(f"the {formulation.name} formulation has no objective {name!r}")
    families = dict.fromkeys((*formulation.families, *(formulation.objectives[name] for name in names)))
    with collector_paused():
        m = pyo.ConcreteModel()
        m.parts = Parts(instance, frozenset(names), shared={} if shared is None else shared)
        for family in families:
            FAMILIES[family].add(m, instance)
        add_held(m, held)
        add_goal(m, goal)
    return m


def _goal(instance: Instance, objective: Goal | str) -> Goal:
    if isinstance(objective, Goal):
        return objective
    found = goals(instance, [objective])
    if len(found) != 1:
        raise ValueError(f"objective {objective!r} has {len(found)} priorities; name one of them")
    return found[0]
