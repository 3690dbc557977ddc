"""What happens to a cluster over time, for replay: a format of its own beside the snapshot."""

from __future__ import annotations

from typing import Literal

import msgspec

from placement.snapshot.workload import Job

FORMAT = "placement-events/1"


class JobArrived(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    kw_only=True,
    gc=False,
    tag="job_arrived",
):
    """A job is submitted."""

    time: float
    job: Job


class JobEnded(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, gc=False, tag="job_ended"
):
    """A job finished, failed or was cancelled."""

    time: float
    job: str
    outcome: Literal["finished", "failed", "cancelled"] = "finished"


class NodeFailed(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    kw_only=True,
    gc=False,
    tag="node_failed",
):
    """A node is lost with everything on it."""

    time: float
    node: str


class NodeDrained(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    kw_only=True,
    gc=False,
    tag="node_drained",
):
    """A node takes no new work from now on."""

    time: float
    node: str


class NodeRestored(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    kw_only=True,
    gc=False,
    tag="node_restored",
):
    """A failed or drained node is back."""

    time: float
    node: str


Event = JobArrived | JobEnded | NodeFailed | NodeDrained | NodeRestored


class EventLog(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    kw_only=True,
    tag_field="format",
    tag=FORMAT,
):
    """Events in the order of their times.

    In a file it carries ``"format": "placement-events/1"`` beside these fields.

    Attributes
    ----------
    events : tuple of Event
    """

    events: tuple[Event, ...] = ()
