"""The snapshot: a cluster and its jobs at one moment, in one file."""

from __future__ import annotations

import msgspec

from placement.snapshot.cluster import DomainLimit, Node, Reservation
from placement.snapshot.ledger import LedgerEntry
from placement.snapshot.policy import Policy
from placement.snapshot.queues import Queue
from placement.snapshot.workload import Job

FORMAT = "placement-snapshot/1"


class Snapshot(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    kw_only=True,
    weakref=True,
    tag_field="format",
    tag=FORMAT,
):
    """A cluster and its jobs at one moment.

    In a file it carries ``"format": "placement-snapshot/1"`` beside these fields.

    Attributes
    ----------
    description, source, licence : str
        Free text for people: what this is, where the facts come from, under which licence.
    time : float
        Moment of the snapshot, in seconds on the clock that every time in it uses.
    topology : tuple of str
        Names of the levels of domains above the node, from wide to narrow, such as ``("block", "rack")``; 16 at most.
    nodes : tuple of Node
    limits : tuple of DomainLimit
    reservations : tuple of Reservation
    jobs : tuple of Job
        Pending and running ones.
    queues : tuple of Queue
    policy : Policy
    ledger : tuple of LedgerEntry
        What the reader of an outside format made of its files; empty where a snapshot was written as one.
    """

    description: str = ""
    source: str = ""
    licence: str = ""
    time: float = 0.0
    topology: tuple[str, ...] = ()
    nodes: tuple[Node, ...] = ()
    limits: tuple[DomainLimit, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    jobs: tuple[Job, ...] = ()
    queues: tuple[Queue, ...] = ()
    policy: Policy = Policy()
    ledger: tuple[LedgerEntry, ...] = ()
