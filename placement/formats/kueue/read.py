"""Kueue's objects: levels, queues and workloads.

.. code-block:: text

    ResourceFlavor ─ flavours ─┬─> queues ──┐
    ClusterQueue, Cohort ──────┘            ├─> workloads ─> jobs ─> members ─> Addition
    Topology ─ levels ──────────────────────┘

What Kueue would not admit, whatever is free, is withheld and noted.
"""

from __future__ import annotations

from placement.formats.kubernetes.objects import Objects
from placement.formats.kubernetes.parts import Addition
from placement.formats.kueue import flavours, jobs, levels, members, queues, workloads
from placement.formats.kueue.gangs import Context
from placement.formats.ledger import Ledger


def read(objects: Objects, ledger: Ledger) -> Addition:
    """Return what the objects of Kueue say.

    Raises
    ------
    InputError
        If an object is not what its kind has to be.
    """
    specs = flavours.read(objects, ledger)
    tree = queues.read(objects, specs, ledger)
    found = levels.read(objects, tree.topologies, ledger)
    context = Context(
        levels=found,
        queues=tree,
        flavours=flavours.Flavours(specs, tree.covered, flavours.gaps(objects, specs, found, ledger)),
        priorities=workloads.priorities(objects, ledger),
        ledger=ledger,
    )
    owners = workloads.read(objects, context)
    jobs.read(objects, context, owners)
    known = members.Members(context, owners)
    members.read(objects, known)
    if found.levels and not found.stated:
        ledger.assumed("levels of the topology", "the node labels that workloads name: there is no Topology")
    return Addition(
        levels=found.levels,
        queues=tree.queues,
        gangs=tuple(context.gangs.values()),
        member=known.member,
        queue_of=known.queue_of,
        withheld=frozenset(context.withheld),
        spec_of=known.spec_of,
    )
