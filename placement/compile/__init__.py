"""Compiling: snapshot to instance. Classes are built here and in the files beside it, and nowhere else.

The steps look at distinct things, not at all of them: a hundred thousand nodes are of a few dozen kinds, half a million
tasks of a few hundred. Only running work makes a node its own, and what it takes is added up in arrays.

`compile_work` finds the distinct gangs and tasks, `compile_cards` the kinds of nodes and cards, `scale` the units;
`compile_running` adds up what is taken, `compile_limits`, `compile_free` and `compile_zones` say what is left;
`compile_nodes` and `compile_jobs` make the classes, `compile_admission` what filters admit, `compile_tenants` says what
is whose where tenants are kept apart, and `compile_mig` makes nodes of MIG cards.
"""

from __future__ import annotations

import numpy as np

from placement.collector import collector_paused
from placement.compile.cards import Cards, NodeKinds
from placement.compile.clients import Clients, keeping_off
from placement.compile.domains import domains, levels_of, tied_places
from placement.compile.free import free
from placement.compile.jobs import Shapes, arrival_order, classify_jobs
from placement.compile.limits import limits
from placement.compile.mig import asks, in_use, sliced
from placement.compile.nodes import classify_nodes
from placement.compile.run_times import RunTimes
from placement.compile.running import running
from placement.compile.tenants import Tenants
from placement.compile.work import Work
from placement.compile.zones import NEVER, zoned, zones_needed
from placement.index import expand
from placement.instance import Instance
from placement.rules import node_filters
from placement.scale import LARGEST, choose_scale, total_demand, total_memory
from placement.snapshot import Snapshot

MANY = 2**20
"""How many times a job may run for which an instance is made that holds one of each kind."""


def compile(  # noqa: A001 - the word of the field; imported as compile_snapshot
    snapshot: Snapshot, many: int = 1, across: bool = False
) -> Instance:
    """Return the instance of a valid snapshot whose every field is honoured.

    Parameters
    ----------
    snapshot : Snapshot
        Already validated; see `placement.snapshot.read.verified` and `placement.honoured.refuse_unhonoured`.
    many : int
        What stands for "no limit" holds all jobs so many times, or as often as 64 bits allow.
    across : bool
        Whether work that is not in the snapshot may come to lie in several NUMA zones where no task that waits does,
        so that all sets of zones count (`Instance.zone_sets`).
    """
    with collector_paused():
        return _compile(snapshot, many, across)


def _compile(snapshot: Snapshot, many: int, across: bool) -> Instance:
    work = Work(snapshot.jobs)
    kinds = NodeKinds(snapshot.nodes)
    pending = np.array([i for i, job in enumerate(snapshot.jobs) if job.running is None], dtype=np.int64)
    clients = Clients(kinds.nodes, kinds.counts, work, pending)
    work.count_as(clients.least)
    wanted = work.wanted()
    scale = choose_scale(wanted, zip(kinds.capacity, kinds.counts, strict=True), clients.parts)
    total = total_demand(wanted, scale)
    memory = total_memory(wanted, scale)
    many = max(1, min(many, LARGEST // max(1, memory, *total.values()) // max(1, sum(kinds.counts))))
    for name in total:
        total[name] *= many
    filters = node_filters(work.tasks)

    node_spec, node_copy = expand([node.count for node in snapshot.nodes])
    cards = Cards(kinds.nodes, scale, many * memory)
    used = running(snapshot, work, scale)
    counted = clients.crowded(used, kinds.of_spec[node_spec[used.nodes]], cards, scale)
    crowded = not clients.exact or counted is not used
    used = counted
    limit_rows, place_of_spec, limits_of_place = limits(snapshot, node_spec, used, scale, total)
    levels = levels_of(snapshot.topology)
    domain = domains(snapshot.nodes, node_spec, levels)
    tenants = Tenants(snapshot, work, levels, domain, int(1 / scale.card))
    left = free(
        kinds,
        cards,
        kinds.of_spec[node_spec[used.nodes]],
        used,
        scale,
        total,
        asks(work, pending),
        tenants.on_cards(used.nodes),
    )
    waiting = [snapshot.jobs[i] for i in pending.tolist()]
    tied = tied_places(snapshot.nodes, waiting, work.gangs_of(pending), snapshot.topology)

    pending_spec, job_copy = expand([job.count for job in waiting])
    job_spec = pending[pending_spec]
    shapes = Shapes(scale, work, filters, tenants)
    job_classes, value_unit, job_class, exact_worth = classify_jobs(
        snapshot,
        pending,
        job_spec,
        shapes,
        work,
        {level: number for number, level in enumerate(levels)},
        RunTimes(snapshot.nodes, node_spec, levels, domain).of,
    )
    admits_card = shapes.admitted_by_cards(cards.keys)
    needed = zones_needed(kinds.nodes, cards, shapes, admits_card, list(scale.resources))
    with_zones = zoned(snapshot, work, kinds.nodes, needed, left, used.nodes, scale, total, across)
    widest = int(cards.counts.max(initial=0))
    apart = None
    if any(shape.tenant >= 0 for shape in shapes.shapes):
        apart = tenants.apart(with_zones.free, used.nodes, widest)
    nodes = classify_nodes(
        snapshot.nodes,
        node_spec,
        kinds.of_spec,
        with_zones.free,
        used,
        filters,
        place_of_spec,
        limits_of_place,
        tied,
        tenants.looks(apart),
    )
    needed = needed[:, left.kind[nodes.row]]
    instance = Instance(
        snapshot=snapshot,
        resources=tuple(scale.resources),
        resource_units=tuple(scale.resources.values()),
        card_units=int(1 / scale.card),
        memory_unit=scale.memory,
        value_unit=value_unit,
        exact=scale.exact and exact_worth and not crowded,
        node_spec=node_spec,
        node_copy=node_copy,
        node_class=nodes.of_node,
        node_cards=nodes.cards,
        job_spec=job_spec,
        job_copy=job_copy,
        job_class=job_class,
        arrival=arrival_order(snapshot, job_spec, job_copy),
        card_kinds=tuple(cards.kinds),
        classes=nodes.classes,
        shapes=tuple(shapes.shapes),
        admits_node=shapes.admitted_by_nodes(nodes.keys) & (needed != NEVER),
        admits_card=keeping_off(admits_card, shapes.shapes, cards, scale),
        job_classes=job_classes,
        limits=limit_rows,
        levels=levels,
        domains=domain,
        zone_sets=with_zones.sets,
        bound=np.maximum(needed, 0) if with_zones.sets else np.zeros_like(needed),
        node_zones=nodes.zones,
        widest=widest,
        rounded=not scale.exact,
        crowded=crowded,
        mig_cards=in_use(snapshot),
        apart=apart,
    )
    return sliced(instance, shapes.profiles, work, kinds, cards, scale, tenants)
