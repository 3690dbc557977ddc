"""One model a family, written out, with every family it does not need switched off.

To write the files anew after a change that is meant, run this module with ``PLACEMENT_WRITE_GOLDEN=1`` and read the
difference.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import model_cases
import numpy as np
import pyomo.environ as pyo
import pytest

from placement import models
from placement.compile import compile as compile_snapshot
from placement.evaluate import Score, demand
from placement.exact.ledger import Ledger
from placement.exact.mig.method import MigCards
from placement.exact.mig.moves import MovingCards
from placement.exact.mig.settle import Mover
from placement.exact.pools.patterns import of_one_type
from placement.instance import Instance
from placement.models import FAMILIES, Goal, mig, mig_moves, node_columns, preemption, quota
from placement.models import time as time_model
from placement.models.core import Parts, add_goal, add_held
from placement.models.node_columns import Column
from placement.models.parts import parts_of
from placement.models.pooled_linear import Draft
from placement.models.pools import pooling
from placement.quota import Quotas
from placement.snapshot import (
    Affinity,
    Gpu,
    Job,
    Node,
    Policy,
    Running,
    RunningTask,
    Slice,
    Snapshot,
    Spread,
    Task,
    TaskGroup,
    Topology,
)
from placement.snapshot.queues import Queue
from placement.solver import Limits, silent
from placement.state import State

GOLDEN = Path(__file__).parent / "golden"
MODELS = Path(models.__file__).parent
HELPERS = {
    "__init__",
    "arranger",
    "core",
    "parts",
    "patterns",
    "pools",
    "pooled",
    "pooled_linear",
    "zoned_arranger",
    "zoned_pools",
}
"""Files in models/ that are no family."""
OBJECTIVES = ("value", "tasks", "nodes", "whole_nodes", "fragmentation")


def every_tie() -> Instance:
    """Two racks of one node each and a node in none, and two jobs that state every tie.

    Two members of two tasks are cut into slices across them, and a member's tasks lie on nodes of their own; of the
    second job's two tasks in one rack one may run, and together with a third.
    """
    nodes = tuple(Node(name=f"n{i}", position={"rack": rack} if rack else {}) for i, rack in enumerate(("r", "s", "")))
    a, b = (TaskGroup(name=name, task=Task()) for name in "ab")
    across = Topology(slices=(Slice(level="rack", sizes=(1, 3)),), balanced="rack")
    pair = TaskGroup(name="pair", count=2, groups=(a, b), topology=across)
    thin = Topology(required="rack", spread=(Spread(level="node", max_per_domain=1, min_domains=2),))
    some = TaskGroup(name="some", count=2, min_count=1, task=Task(), topology=thin)
    jobs = (
        Job(name="j", groups=(pair,), affinity=(Affinity(a="pair/a", b="pair/b", level="node", kind="apart"),)),
        Job(name="k", groups=(some, a), affinity=(Affinity(a="some", b="a", level="rack", kind="together"),)),
    )
    return compile_snapshot(Snapshot(topology=("rack",), nodes=nodes, jobs=jobs))


def a_wish() -> Instance:
    """A job of two tasks that prefers one rack, on a rack of one node and a node in none."""
    nodes = (Node(name="n", position={"rack": "r"}), Node(name="m"))
    group = TaskGroup(name="g", count=2, task=Task(), topology=Topology(preferred="rack"))
    return compile_snapshot(Snapshot(topology=("rack",), nodes=nodes, jobs=(Job(name="j", groups=(group,)),)))


def two_tenants() -> Instance:
    """A rack of two nodes and a node in none; a task of tenant a runs in it, and two tasks of a and one of b wait."""
    nodes = tuple(Node(name=f"n{i}", position={"rack": rack} if rack else {}) for i, rack in enumerate(("r", "r", "")))
    place = RunningTask(group="g", index=0, node="n0", gpus=())
    jobs = (
        Job(name="old", tenant="a", groups=(TaskGroup(name="g", task=Task()),), running=Running(tasks=(place,))),
        Job(name="j", tenant="a", groups=(TaskGroup(name="g", count=2, task=Task()),)),
        Job(name="k", tenant="b", groups=(TaskGroup(name="g", task=Task()),)),
    )
    policy = Policy(tenants_apart="rack")
    return compile_snapshot(Snapshot(topology=("rack",), nodes=nodes, jobs=jobs, policy=policy))


def with_needs(name: str) -> list[str]:
    found: dict[str, None] = {}
    for needed in FAMILIES[name].NEEDS:
        found |= dict.fromkeys(with_needs(needed))
    return [*found, name]


CASES: dict[str, Callable[[], Instance]] = {
    "ladder": model_cases.golden_ladder,
    "locality": a_wish,
    "numa": model_cases.golden_zoned,
    "run_time": model_cases.golden_timed,
    "tenants": two_tenants,
    "topology": every_tie,
}
"""Instances of families to which the common one has nothing to say."""


def model_of(name: str) -> Any:
    """Return the model of one family and of those it needs."""
    instance = CASES.get(name, model_cases.golden)()
    asked = frozenset(OBJECTIVES) if name == "pattern_goals" else frozenset({name} & set(OBJECTIVES))
    m = pyo.ConcreteModel(name)
    m.parts = Parts(instance, asked)
    for family in with_needs(name):
        FAMILIES[family].add(m, instance)
    reached = list(m.parts.goals)
    if not reached:
        m.goal = pyo.Objective(expr=0)
    elif len(reached) == 1:
        add_goal(m, reached[0])
    else:  # the last is optimised, the others are held, so that all of them are seen
        add_held(m, [Score(g.objective, g.priority, Fraction(1)) for g in reached[:-1]])
        add_goal(m, reached[-1])
    return m


POOLED = {
    path.stem: importlib.import_module(f"placement.models.{path.stem}")
    for path in sorted(MODELS.glob("pooled_*.py"))
    if path.stem not in HELPERS
}


def pooled_model_of(name: str) -> Any:
    """Return the pooled model of one family and of the counts that all of them need."""
    instance = model_cases.golden_tied() if name == "pooled_topology" else model_cases.golden()
    state = State(instance)
    view = pooling(state, parts_of(state, levels=range(1, len(instance.levels) - 1)))
    slots, groups = (sum(len(getattr(pool, what)) for pool in view.pools) for what in ("slots", "groups"))
    m = pyo.ConcreteModel(name)
    m.draft = Draft(
        view,
        patterns=of_one_type(view),
        weights={("value", 0): 1.0},
        held={("value", 10): 1},
        steps=(),
        prices=((np.ones(slots), np.full(groups, 2.0)),),
    )
    for family in dict.fromkeys(("pooled_counts", name)):
        POOLED[family].add(m, instance)
    if name != "pooled_objective":
        m.goal = pyo.Objective(expr=0)
    return m


COLUMNS = {"node_columns": node_columns}


def column_model() -> Any:
    """Return the master over an empty column of every class, and one with two tasks of each shape."""
    instance = model_cases.golden()
    view = pooling(State(instance), [], elsewhere=demand(instance))
    full = tuple((shape, 2) for shape in range(len(instance.shapes)))
    m = pyo.ConcreteModel("node_columns")
    m.draft = Draft(view, patterns=(), weights={}, held={}, steps=(), prices=())
    m.columns = [Column(k, counts) for counts in ((), full) for k in range(len(instance.classes))]
    node_columns.add(m, instance)
    m.goal = pyo.Objective(expr=0)
    return m


WHOLE = {"mig": mig, "mig_moves": mig_moves, "preemption": preemption, "time": time_model}
BESIDE = {"quota": quota}
"""Families whose rows are about expressions of others."""


def quota_model(name: str) -> Any:
    """Return the rows of two queues of 4 cards each, of which one lends 1 and the other borrows 2 at most."""
    queues = (
        Queue(name="all"),
        Queue(name="one", parent="all", quota={"A": 4}, lending_limit={"A": 1}),
        Queue(name="two", parent="all", quota={"A": 4}, borrowing_limit={"A": 2}),
    )
    m = pyo.ConcreteModel()
    m.used = pyo.Var(["one", "two"], within=pyo.NonNegativeReals)
    quota.add(m, Quotas(queues), {(queue, "A"): m.used[queue] for queue in ("one", "two")}, ["A"])
    m.goal = pyo.Objective(expr=m.used["one"] + m.used["two"], sense=pyo.maximize)
    return m


def victims_model() -> Any:
    """Return the model of a task that needs one of two places, on each of which a job runs that may be stopped."""
    victims = [preemption.Victim(range(n, n + 1), 3.0 + n, True, False, True) for n in range(2)]
    supplies = [preemption.Supply(0, {(0, n): 1}, {}, {n: 1}) for n in range(2)]
    question = preemption.Question(victims, [0, 0], [1], {(0, 0): 1, (0, 1): 1}, {}, supplies)
    m = preemption.build(question)
    m.goal = pyo.Objective(expr=sum(factor * variable for factor, variable in m.goals["cost"]))
    return m


def starts_model() -> Any:
    """Return the model of a job of one card for 2 s and two jobs of both cards for 3 s, at 0, 2 and 5 s."""
    one = [time_model.Start(0, begin, begin + 2, begin + 2.0, ((0, 1.0),)) for begin in (0, 2, 5)]
    both = [time_model.Start(1, begin, begin + 3, begin + 3.0, ((0, 2.0),)) for begin in (0, 2, 5)]
    return time_model.build((1, 2), [*one, *both], (0, 2, 5), [(2.0, 2.0)])


def whole_model_of(name: str) -> Any:
    """Return a model that is one family alone.

    Those of MIG are for three MIG cards and a gang of two instances with one beside. On one A100 an instance runs at
    slot 1, which may move in `mig_moves`; on the A30 only one media extension fits.
    """
    if name in ("time", "preemption"):
        return starts_model() if name == "time" else victims_model()
    gpus = (Gpu(model="A100-40GB", count=2, mig_enabled=True), Gpu(model="A30", mig_enabled=True))
    small, media = Task(gpus=1, mig_profile="1g.5gb"), Task(gpus=1, mig_profile="1g.6gb+me")
    pair = TaskGroup(name="pair", count=2, task=Task(gpus=1, mig_profile="3g.20gb"))
    place = RunningTask(group="one", index=0, node="n", gpus=(0,), mig_starts=(1,))
    stays = Running(tasks=(place,)) if name == "mig" else None
    jobs = (
        Job(name="r", groups=(TaskGroup(name="one", task=small),), running=stays),
        Job(name="j", groups=(pair, TaskGroup(name="media", task=media))),
    )
    instance = compile_snapshot(Snapshot(nodes=(Node(name="n", gpus=gpus),), jobs=jobs))
    if name == "mig_moves":
        card = int(np.flatnonzero(instance.host == 0)[1])
        mover = Mover(0, 0, 0, instance.job_classes[0].leaves[0].shape, card, 1, 2.0)
        return MovingCards(instance, [mover], 1, Limits(), 0).model()[0]
    cards = MigCards(Ledger(instance, (("value", 0),), Limits(), 0, None, silent))
    return cards.model({("value", 0): 1.0}, {("tasks", None): 1}, tidy=False)


@pytest.mark.parametrize("name", [*FAMILIES, *POOLED, *COLUMNS, *WHOLE, *BESIDE])
def test_golden(name: str, tmp_path: Path) -> None:
    written = tmp_path / "model.lp"
    of_name = {**dict.fromkeys(POOLED, pooled_model_of), **dict.fromkeys(WHOLE, whole_model_of)}
    of_name |= dict.fromkeys(BESIDE, quota_model)
    model = column_model() if name in COLUMNS else of_name.get(name, model_of)(name)
    model.write(str(written), format="lp", io_options={"symbolic_solver_labels": True})
    kept = GOLDEN / f"{name}.lp"
    if os.environ.get("PLACEMENT_WRITE_GOLDEN"):
        kept.write_bytes(written.read_bytes())
    assert written.read_text() == kept.read_text()


def test_every_family_is_listed_and_has_its_maths_and_its_golden_model() -> None:
    files = {path.stem for path in MODELS.glob("*.py")} - HELPERS
    assert files == set(FAMILIES) | set(POOLED) | set(COLUMNS) | set(WHOLE) | set(BESIDE)
    for name, module in {**FAMILIES, **POOLED, **COLUMNS, **WHOLE, **BESIDE}.items():
        assert module.__doc__ is not None
        assert ".. math::" in module.__doc__, name
        assert callable(module.build if name in WHOLE else module.add), name
        assert (GOLDEN / f"{name}.lp").exists(), name


def test_golden_files_belong_to_families() -> None:
    assert {path.stem for path in GOLDEN.glob("*.lp")} <= set(FAMILIES) | set(POOLED) | set(COLUMNS) | set(WHOLE) | set(
        BESIDE
    )


def test_goals_of_the_golden_instance() -> None:
    assert list(model_of("value").parts.goals) == [Goal("value", 10), Goal("value", 0)]
