"""NICs: every new task gets as many as it asks for, each of its node, in a zone that it lies in, and its alone.

What runs keeps its own. Where the snapshot does not say which those are, as many are left for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from placement.check.case.case import Case
from placement.check.case.lying import Lie
from placement.check.facts.amounts import NICS
from placement.check.facts.zones import Zoning
from placement.check.in_nodes.numa import overfull_zones, uneven_column
from placement.check.in_nodes.zone_loads import overfilled
from placement.check.violation import Violation, integer, many, show

RULE = "nics"

MOST = 20
"""NICs that a message lists."""


def judge(case: Case) -> Iterator[Violation]:
    """Yield every task with the wrong NICs, and zones of which new tasks take more than there are."""
    lying = case.lying
    if NICS in lying.uneven:
        yield uneven_column(RULE, NICS, lying.uneven[NICS], len(case.plan.tasks))
        return
    asks = np.array([bool(lie.nics or NICS in lie.shape.demand) for lie in lying.lies], dtype=np.bool_)
    which = np.flatnonzero(asks[lying.number]) if len(lying.rows) else lying.rows
    if not len(which):
        return
    if NICS in lying.absent:
        what = f"the plan does not say which NICs {many(len(which), 'task')} of it get"
        yield Violation(RULE, "tasks.nics", what if len(which) > 1 else what.replace("get", "gets"))
        return
    wrong = [list(_wrong(lie, lying.zoning(lie))) for lie in lying.lies]
    nodes = case.load.new.node[lying.rows[which]]
    holder = _held(case, np.unique(nodes))
    for place, node in zip(which.tolist(), nodes.tolist(), strict=True):
        number = int(lying.number[place])
        row = int(lying.rows[place])
        task = f"tasks[{case.rows.number[row]}]"
        taken = []
        for name in dict.fromkeys(lying.lies[number].nics):
            before = holder.setdefault((node, name), task)
            if before != task:
                taken.append(f"NIC {show(name)} is held by {before} already")
        for what in [*wrong[number], *taken]:
            yield Violation(RULE, task, f"{show(case.node_name(row))}: {what}")
    for over in overfilled(case, (NICS,)):
        yield overfull_zones(RULE, case, over)


def _held(case: Case, nodes: np.ndarray) -> dict[tuple[int, str], str]:
    """Return who holds the NICs of some nodes that running work names."""
    rows = np.flatnonzero(np.isin(case.load.running.node, nodes)).tolist()
    places = case.facts.places if rows else []
    at = case.load.running.node
    return {(int(at[row]), name): "running work" for row in rows for name in places[row].nics}


def _wrong(lie: Lie, zoning: Zoning | None) -> Iterator[str]:
    """Yield what is wrong with the NICs of a task, whatever others hold."""
    asked = lie.shape.demand.get(NICS, 0)
    if len(lie.nics) != asked:
        yield f"{many(len(lie.nics), 'NIC')} listed, the task takes {integer(asked)}"
    known = {} if zoning is None else zoning.nic
    for name, times in Counter(lie.nics).items():
        if times > 1:
            yield f"NIC {show(name)} is listed twice, the NICs of a task must be distinct"
        if name not in known:
            yield f"it has no NIC {show(name)}"
        elif zoning is not None and lie.zones and zoning.ids[known[name]] not in lie.zones:
            yield f"NIC {show(name)} is in NUMA zone {zoning.ids[known[name]]}, which the plan does not list"
    place = {name: number for number, name in enumerate(known)}
    there = [name for name in lie.nics if name in place]
    if any(place[one] > place[other] for one, other in pairwise(there)):
        listed, due = (", ".join(map(show, names[:MOST])) for names in (there, sorted(there, key=place.__getitem__)))
        yield f"NICs {listed} are listed, in the order of the file that is {due}"
